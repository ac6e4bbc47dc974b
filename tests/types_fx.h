/* Programs of every scalar operator (access/fx.def) for every combination of types that it takes:
 * the table drives it, a new row is in them without a word here. Included by tests of types_kit.h.
 */
#ifndef TARN_TESTS_TYPES_FX_H
#define TARN_TESTS_TYPES_FX_H
#include "access/fx_internal.h"
#include "tests/types_kit.h"

typedef struct ty_table {
  tarn_lang *L;
  tarn_dtype t; /* of the first operand */
  int64_t n;
  bool constants; /* the last operand is one number */
  uint64_t seed;
} ty_table;

/* Operand k of type t: numbered, so that all pairs of hostile values meet. */
static inline tarn_term ty_operand(ty_program *q, uint32_t k, tarn_dtype t, int64_t n) {
  tarn_lang *L = q->p.L;
  return ty_input(q, tarn_format(tarn_lang_ctx(L), "%c_%s", (int)('a' + k), tarn_dtype_name(t)),
                  tarn_type_tensor(L, t, 1, 1, &n));
}
static inline void ty_pairs(tarn_tensor *x, uint32_t input, uint32_t run, void *user,
                            uint64_t *seed) {
  const ty_program *q = user;
  uint32_t k = (uint32_t)(q->in[input].name[0] - 'a'), n = ty_hostile(x->dtype);
  (void)seed;
  if (run) return;
  for (int64_t i = 0; i < tarn_tensor_count(x) && i < (int64_t)n * n && k < 2; i++)
    tarn_tensor_set(x, i, ty_value(x->dtype, (uint32_t)(k ? i / n : i % n)));
}

static inline void ty_add(ty_table *j, ty_program *q, uint32_t fx, const tarn_dtype *types,
                          uint32_t arity) {
  tarn_term kid[3];
  uint32_t holes = tarn_fx_holes(j->L, fx);
  for (uint32_t k = 0; k < holes && k < arity; k++) kid[k] = ty_operand(q, k, types[k], j->n);
  if (holes) ty_output(q, tarn_compute(j->L, tarn_fn_map(j->L, fx, holes), kid, holes));
}
/* op over operands of these types, where it is legal. */
static inline void ty_instance(ty_table *j, ty_program *q, uint32_t op, const tarn_dtype *types,
                               uint32_t arity) {
  tarn_dtype out;
  uint32_t h[3];
  for (uint32_t k = 0; k < 3; k++) h[k] = tarn_fx_hole(j->L, k);
  if (j->constants && arity > 1) h[arity - 1] = ty_constant(j->L, types[arity - 1], &j->seed);
  uint32_t fx = tarn_fx_op(j->L, (tarn_fxop)op, h[0], h[1], h[2]);
  if (tarn_fx_type(j->L, fx, types, arity, &out)) ty_add(j, q, fx, types, arity);
  if (!j->constants || arity != 2) return;
  fx = tarn_fx_op(j->L, (tarn_fxop)op, ty_constant(j->L, types[0], &j->seed), tarn_fx_hole(j->L, 0),
                  0);
  if (tarn_fx_type(j->L, fx, types + 1, 1, &out)) ty_add(j, q, fx, types + 1, 1);
}
static inline void ty_every_type(ty_table *j, ty_program *q, uint32_t op, tarn_dtype *types,
                                 uint32_t at) {
  uint32_t arity = tarn_fx_info(op)->arity;
  if (at == arity) {
    ty_instance(j, q, op, types, arity);
    return;
  }
  for (uint32_t t = 0; t < TARN_DTYPES; t++) {
    types[at] = (tarn_dtype)t;
    if (at > 0 || types[0] == j->t) ty_every_type(j, q, op, types, at + 1);
  }
}
static inline ty_program *ty_operators(ty_table *j) {
  ty_program *q = ty_program_new(j->L);
  tarn_dtype types[3];
  for (uint32_t op = 0; op < TARN_FX_COUNT; op++) {
    if (tarn_fx_info(op)->gives == TARN_FXG_LEAF) continue;
    if (op != TARN_FX_CAST) ty_every_type(j, q, op, types, 0);
    for (uint32_t to = 0; op == TARN_FX_CAST && !j->constants && to < TARN_DTYPES; to++)
      ty_add(j, q, tarn_fx_cast(j->L, (tarn_dtype)to, tarn_fx_hole(j->L, 0)), &j->t, 1);
  }
  ck_assert_uint_gt(q->p.nout, j->constants ? 4 : 15);
  return q;
}
#endif
