/* rules: the parts of the vocabulary. */
#ifndef TARN_RULES_VOCAB_H
#define TARN_RULES_VOCAB_H
#include "rules/lang/lang.h"
bool rv_int(rv *out, int64_t i);
bool rv_bool(rv *out, bool b);
bool rv_list(renv *e, rv *out, const int64_t *p, uint32_t n);
static inline const tarn_func *rv_func(renv *e, const rv *a) { return tarn_fn_get(e->L, a->id); }
static inline const tarn_type *rv_type(renv *e, const rv *a) {
  return tarn_type_get(e->L, e->host->nest.type(e->host->nest.user, e->cls[a->id]));
}
bool rv_func_made(renv *e, rv *out, const tarn_func *f);
extern const rfun rfun_fn_table[]; /* vocab_fn.c */
extern const uint32_t rfun_fn_count;
extern const rfun rfun_call_table[]; /* vocab_call.c */
extern const uint32_t rfun_call_count;
extern const rfun rfun_make_table[]; /* vocab_make.c */
extern const uint32_t rfun_make_count;
extern const rfun rfun_loops_table[]; /* vocab_loops.c */
extern const uint32_t rfun_loops_count;
extern const rfun rfun_units_table[]; /* vocab_units.c */
extern const uint32_t rfun_units_count;
extern const rfun rfun_slice_table[]; /* vocab_slice.c */
extern const uint32_t rfun_slice_count;
extern const rfun rfun_fusion_table[]; /* vocab_fusion.c */
extern const uint32_t rfun_fusion_count;
#endif
