/* Constants of a program: their values, their bytes in a layout, and the operands of a kernel,
 * including small constants whose elements are numbers in its code. */
#include "plan/work.h"
#include <string.h>

/* n elements from `from` on, `step` elements apart in `to`. */
static void spread(char *to, const char *from, int64_t n, int64_t step, size_t size) {
  if (step == 1) memcpy(to, from, (size_t)n * size);
  else if (size == sizeof(uint32_t))
    for (int64_t i = 0; i < n; i++) memcpy(to + i * step * 4, from + i * 4, sizeof(uint32_t));
  else
    for (int64_t i = 0; i < n; i++)
      memcpy(to + i * step * (int64_t)size, from + i * (int64_t)size, size);
}

/* Every element of t to its place, row by row of the last dim; a row that is blocked, block by
 * block. */
void tarn_plan_const_lay_out(const tarn_layout *l, const tarn_tensor *t, char *to) {
  size_t size = tarn_dtype_size(t->dtype);
  int64_t idx[TARN_MAX_DIMS] = {0}, n = tarn_tensor_count(t), row = l->n ? l->dim[l->n - 1] : 1;
  bool blocked = l->n && l->block && l->baxis == l->n - 1;
  int64_t step = blocked ? 1 : l->n ? l->stride[l->n - 1] : 1, piece = blocked ? l->block : row;
  for (int64_t i = 0; i < n; i += row) {
    char *start = to + tarn_layout_at(l, idx) * (int64_t)size;
    for (int64_t k = 0, b = 0; k < row; k += piece, b++) {
      char *at = start + (blocked ? b * l->stride[l->n - 1] * (int64_t)size : 0);
      spread(at, (const char *)t->data + (i + k) * (int64_t)size, row - k < piece ? row - k : piece,
             step, size);
    }
    for (uint32_t d = l->n; d-- > 1 && ++idx[d - 1] == l->dim[d - 1];) idx[d - 1] = 0;
  }
}

const tarn_tensor *tarn_plan_const_value(const tarn_kprog *p, const tarn_buffer *b) {
  if (b->value) return b->value;
  const tarn_node *n = tarn_term_get(p->L, b->term);
  if (n->op == TARN_OP_CONST) return tarn_payload_get(p->L, n->payload)->tensor;
  tarn_tensor *t;
  tarn_eval(p->L, &b->term, 1, NULL, 0, TARN_STRICT, NULL, &t);
  return t;
}

/* The memory of a small constant of f32 as numbers, *n of them; NULL when it is no such one. */
static const double *numbers_of(const tarn_kprog *p, uint32_t i, uint32_t *n) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_buffer *b = &p->buf[i];
  int64_t elems = tarn_layout_elems(&b->layout) + b->layout.offset;
  if (b->kind != TARN_BUF_CONST || b->parent != TARN_NONE || b->dtype != TARN_F32 || elems < 1 ||
      elems > TARN_PLAN_FEW)
    return NULL;
  float memory[TARN_PLAN_FEW] = {0};
  tarn_plan_const_lay_out(&b->layout, tarn_plan_const_value(p, b), (char *)memory);
  double *few = TARN_ARRAY(cx, double, elems);
  for (int64_t k = 0; k < elems; k++) few[k] = memory[k];
  *n = (uint32_t)elems;
  return few;
}

void tarn_plan_operands(const tarn_kprog *p, const tarn_kernel *k, tarn_plan_operand *in,
                        tarn_plan_operand *out) {
  for (uint32_t i = 0; i < k->nin; i++) {
    const tarn_buffer *b = &p->buf[k->in[i]];
    in[i] = (tarn_plan_operand){.dtype = b->dtype,
                                .constant = b->kind == TARN_BUF_CONST,
                                .layout = k->in_layout ? k->in_layout[i] : b->layout};
    in[i].few = numbers_of(p, k->in[i], &in[i].nfew);
    if (!in[i].few) continue;
    int64_t at = in[i].layout.offset < in[i].nfew ? in[i].layout.offset : in[i].nfew;
    in[i].few += at;
    in[i].nfew -= (uint32_t)at;
  }
  for (uint32_t i = 0; i < k->nout; i++) {
    const tarn_buffer *b = &p->buf[k->out[i]];
    out[i] = (tarn_plan_operand){.dtype = b->dtype,
                                 .layout = k->out_layout ? k->out_layout[i] : b->layout};
  }
}
