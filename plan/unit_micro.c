/* Micro-ops of a kernel: which lists of them its statements have, and whether all of them come
 * before its tiles. */
#include "plan/unit_internal.h"

int64_t tarn_unit_new_micro(const tarn_unit_plan *p, tarn_unit_lists *seen,
                            const tarn_unit_stmt *s) {
  (void)p;
  const tarn_hw_instruction *is = s->issue.is[0];
  uint64_t h = 1;
  if (is->steps == TARN_NONE) return 0;
  for (uint32_t i = 0; i < is->nindex; i++) {
    uint32_t x = is->index[i].operand;
    if (s->operand[x] == TARN_NONE) continue;
    h = tarn_hash_mix(tarn_hash_mix(h, is->index[i].field), (uint64_t)s->first[x]);
    h = tarn_hash_mix(tarn_hash_mix(h, s->operand[x]), s->slot[s->operand[x]]);
    for (uint32_t w = 0; w < s->issue.nwalk; w++)
      if (s->issue.by[w] != TARN_UNIT_LOOP)
        h = tarn_hash_mix(tarn_hash_mix(h, (uint64_t)s->issue.walk[w].step[x]),
                          (uint64_t)s->issue.walk[w].trips);
  }
  for (uint32_t i = 0; i < seen->n; i++)
    if (seen->list[i] == h) return 0;
  if (seen->n < TARN_UNIT_LISTS) seen->list[seen->n++] = h;
  return s->issue.micro * s->issue.instructions;
}

typedef struct sum {
  tarn_unit_lists seen;
  int64_t micro;
} sum;
static bool add(void *user, const tarn_unit_plan *p, const tarn_unit_stmt *s) {
  sum *k = user;
  if (s->does != TARN_UNIT_FILL && s->does != TARN_UNIT_LEAVE)
    k->micro += tarn_unit_new_micro(p, &k->seen, s);
  return true;
}
bool tarn_unit_micro_fits(const tarn_hw *hw, int64_t micro) {
  int64_t depth = 0;
  for (uint32_t i = 0; i < hw->ninstruction; i++)
    if (hw->instruction[i].does == TARN_HW_RUNS && hw->instruction[i].steps != TARN_NONE)
      depth = tarn_hw_depth(&hw->mem[hw->instruction[i].steps]);
  return micro > 0 && micro <= depth;
}
bool tarn_unit_micro_first(const tarn_unit_plan *p, bool *first, int64_t *micro) {
  sum *k = TARN_NEW(tarn_lang_ctx(p->L), sum);
  if (!tarn_unit_visit(p, add, k)) return false;
  *micro = k->micro;
  *first = tarn_unit_micro_fits(p->hw, k->micro);
  return true;
}
