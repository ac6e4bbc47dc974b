/* What a kernel has to move and to compute whatever its schedule. */
#include "price/internal.h"

void tarn_ksig_traffic(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, double *read,
                       double *write) {
  const tarn_nest *nest = tarn_nest_get(L, k->nest);
  const tarn_kernel_work *m = tarn_work_of(L, hw, k);
  double line = tarn_hw_mem(hw, TARN_HW_MAIN)->line;
  double of[TARN_MAX_OPERANDS] = {0};
  uint32_t out = 0;
  *read = *write = 0;
  for (uint32_t i = 0; i < m->nstage; i++) {
    const tarn_stage_work *s = &m->stage[i];
    for (uint32_t r = 0; r < s->nread; r++) {
      const tarn_read *t = &nest->stage[i].read[r];
      if (t->stage) continue;
      double all = (double)tarn_layout_elems(&k->in[t->src]) * s->read[r].bytes;
      double bytes = tarn_fmin(tarn_touch_bytes(&s->read[r], s->dim, line), all);
      if (bytes > of[t->src])
        of[t->src] = bytes; /* accesses of one operand: as if they met the same elements */
    }
    if (s->result.local) continue;
    double all = (double)tarn_layout_elems(&k->out[out++]) * s->result.bytes;
    *write += tarn_fmin(tarn_touch_bytes(&s->result, s->dim, line), all);
  }
  for (uint32_t i = 0; i < k->nin; i++) *read += of[i];
}

double tarn_ksig_flops(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k) {
  const tarn_nest *nest = tarn_nest_get(L, k->nest);
  const tarn_kernel_work *km = tarn_work_of(L, hw, k);
  double sum = 0;
  for (uint32_t i = 0; i < km->nstage; i++) {
    const tarn_stage_work *m = &km->stage[i];
    sum += tarn_work_inside(L, &nest->stage[i], m) * m->flops_each +
           tarn_work_points(m, tarn_first_dims(m->nacc)) * m->flops_result;
  }
  return sum;
}
