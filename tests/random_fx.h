/* Random numbers, the same on every machine, and random scalar expressions. */
#ifndef TARN_TESTS_RANDOM_FX_H
#define TARN_TESTS_RANDOM_FX_H
#include "access/access.h"
#include <math.h>

static inline uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)(tarn_random(s) % n); }

static inline tarn_dtype some_type(uint64_t *s) { return (tarn_dtype)below(s, TARN_DTYPES); }

static const double odd_numbers[] = {0.0, -0.0, 1,    -1,     0.5,   2,   3,
                                     -7,  0.1,  1e30, -1e-30, 65504, 255, 1e300};

static inline uint32_t some_const(tarn_lang *L, uint64_t *s, tarn_dtype t) {
  if (tarn_dtype_is_float(t)) {
    static const double special[] = {INFINITY, -INFINITY, NAN};
    if (below(s, 8) == 0) return tarn_fx_const(L, t, special[below(s, 3)]);
    if (below(s, 3) == 0) return tarn_fx_const(L, t, ldexp((double)(tarn_random(s) >> 11), -53));
    return tarn_fx_const(L, t, odd_numbers[below(s, sizeof odd_numbers / sizeof *odd_numbers)]);
  }
  if (below(s, 2)) return tarn_fx_iconst(L, t, (int64_t)below(s, 9) - 4);
  return tarn_fx_iconst(L, t, (int64_t)tarn_random(s));
}

/* An expression of type t over holes of the given types. */
static inline uint32_t some_fx(tarn_lang *L, uint64_t *s, tarn_dtype t, const tarn_dtype *holes,
                               uint32_t n, int depth) {
  for (int tries = 0; depth > 0 && tries < 40; tries++) {
    uint32_t op = below(s, TARN_FX_COUNT), kid[3] = {0};
    tarn_dtype from = some_type(s), types[3] = {from, from, from}, out;
    if (op <= TARN_FX_CONST) continue;
    if (op == TARN_FX_CAST) return tarn_fx_cast(L, t, some_fx(L, s, from, holes, n, depth - 1));
    if (op == TARN_FX_SEL) types[0] = TARN_BOOL, types[1] = types[2] = t;
    uint32_t probe[3]; /* does op give t for operands of these types? */
    for (int i = 0; i < 3; i++) probe[i] = tarn_fx_hole(L, (uint32_t)i);
    uint32_t p = tarn_fx_op(L, (tarn_fxop)op, probe[0], probe[1], probe[2]);
    if (!tarn_fx_type(L, p, types, 3, &out) || out != t) continue;
    for (int i = 0; i < 3; i++) kid[i] = some_fx(L, s, types[i], holes, n, depth - 1);
    return tarn_fx_op(L, (tarn_fxop)op, kid[0], kid[1], kid[2]);
  }
  uint32_t h = below(s, n + 1);
  for (uint32_t i = 0; i < n; i++)
    if (holes[(h + i) % n] == t && below(s, 3)) return tarn_fx_hole(L, (h + i) % n);
  return some_const(L, s, t);
}

#endif
