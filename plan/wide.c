/* Loads of several elements at once, on a GPU: where a thread's unrolled copies read side by side,
 * and index maps prove that these begin at multiples of 8 or 16 bytes, the first is aligned so, and
 * LLVM joins them. Operands lie in the device's memory, or in shared memory: held, or in a buffer
 * between stages. Buffers begin at multiples of 16 bytes there. */
#include "plan/internal.h"

enum { WIDEST = 16 };

bool tarn_plan_multiple(const tarn_plan_lin *a, int64_t w) {
  for (uint32_t i = 0; i < a->n; i++)
    if (a->t[i].coef % w) return false;
  return a->c % w == 0;
}
/* Along a level from number `from` on; it begins `begins` elements behind a buffer's beginning. */
static void settle(const tarn_plan_stage *st, const tarn_plan_list *list, uint32_t from,
                   int64_t begins, tarn_plan_access *a) {
  int64_t size = (int64_t)tarn_dtype_size(a->dtype), by;
  for (uint32_t i = from; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    if (l->kind != TARN_UNROLL || !tarn_plan_moves_by(a->off, l->var, &by) || by != 1) continue;
    const tarn_plan_lin *x = tarn_plan_lin_var(&st->space, 1, l->var);
    const tarn_plan_lin *first = tarn_plan_lin_add(&st->space, a->off, -1, x);
    int64_t w = WIDEST / size;
    while (w > 1 && (l->trips % w || begins % w || !tarn_plan_multiple(first, w))) w /= 2;
    if (w <= a->wide) continue;
    a->wide = (uint32_t)w;
    a->wide_var = l->var;
  }
}
static void settle_read(const tarn_plan_nest *N, tarn_plan_stage *st, uint32_t r,
                        const tarn_plan_operand *in) {
  const tarn_plan_list *list = &N->list[1 + (st - N->stage)];
  const tarn_read *rd = &st->s->read[r];
  tarn_plan_access *a = &st->read[r];
  int64_t size = (int64_t)tarn_dtype_size(a->dtype);
  a->wide = 1;
  if (st->unit) return; /* see fragment.c */
  if (a->held) settle(st, list, st->until, st->held[a->held - 1].at / size, a);
  else if (a->nguard || a->few) return;
  else if (!rd->stage) settle(st, list, 0, in[rd->src].layout.offset, a);
  else if (N->stage[rd->src].shared_at >= 0)
    settle(st, list, 0, N->stage[rd->src].shared_at / size, a);
}
void tarn_plan_wide_settle(tarn_plan_nest *N, const tarn_plan_operand *in) {
  for (uint32_t i = 0; i < N->nstage; i++)
    for (uint32_t r = 0; r < N->stage[i].nread; r++) settle_read(N, &N->stage[i], r, in);
}
