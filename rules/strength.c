/* Operations with a constant that cheaper ones can do.
 *
 * powers  pow by 1 or 2, division by a power of two: exact
 * roots   pow by 3, 1/2, -1/2, -1: the same over the reals
 *
 * Division by another constant stays: its reciprocal would be rounded. */
#include "rules/build.h"
#include <math.h>

static bool constant_of(const tarn_lang *L, uint32_t f, double *v) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->op != TARN_FX_CONST || !tarn_dtype_is_float(x->dtype)) return false;
  return *v = x->value, true;
}

static uint32_t op2(tarn_lang *L, tarn_fxop op, uint32_t a, uint32_t b) { return tarn_fx_op(L, op, a, b, 0); }

static uint32_t power(tarn_lang *L, const tarn_fx *x, double v, bool exact) {
  uint32_t a = x->kid[0], one = tarn_fx_const(L, tarn_fx_get(L, x->kid[1])->dtype, 1);
  if (v == 1) return a;
  if (v == 2) return op2(L, TARN_FX_MUL, a, a);
  if (exact) return TARN_NONE;
  if (v == 3) return op2(L, TARN_FX_MUL, op2(L, TARN_FX_MUL, a, a), a);
  if (v == 0.5) return op2(L, TARN_FX_SQRT, a, 0);
  if (v == -0.5) return op2(L, TARN_FX_DIV, one, op2(L, TARN_FX_SQRT, a, 0));
  if (v == -1) return op2(L, TARN_FX_DIV, one, a);
  return TARN_NONE;
}

static uint32_t quotient(tarn_lang *L, const tarn_fx *x, double v) {
  tarn_dtype t = tarn_fx_get(L, x->kid[1])->dtype;
  int e;
  if (fabs(frexp(v, &e)) != 0.5 || e > 100 || e < -100 || (t != TARN_F32 && t != TARN_F64)) return TARN_NONE;
  return op2(L, TARN_FX_MUL, x->kid[0], tarn_fx_const(L, t, 1 / v));
}

/* A node that can be had cheaper, and what with; false: there is none. */
static bool find(tarn_lang *L, uint32_t f, bool exact, uint32_t *node, uint32_t *with) {
  fxwalk w;
  double v;
  if (!fx_walk(L, f, &w)) return false;
  for (uint32_t i = 0; i < w.n; i++) {
    tarn_fx x = *tarn_fx_get(L, w.id[i]);
    if ((x.op != TARN_FX_POW && x.op != TARN_FX_DIV) || !constant_of(L, x.kid[1], &v)) continue;
    *node = w.id[i];
    *with = x.op == TARN_FX_POW ? power(L, &x, v, exact) : exact ? quotient(L, &x, v) : TARN_NONE;
    if (*with != TARN_NONE) return true;
  }
  return false;
}

static bool reduce(tarn_lang *L, uint32_t *f, bool exact, bool *any) {
  uint32_t node, with;
  while (*f != TARN_NONE && find(L, *f, exact, &node, &with)) {
    *any = true;
    if ((*f = fx_replace(L, *f, &node, &with, 1)) == TARN_NONE) return false;
  }
  return true;
}

static uint32_t weaker(rsite *s, bool exact) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++)
    if (!reduce(k.L, &k.stage[i].body, exact, &any) || !reduce(k.L, &k.stage[i].epi, exact, &any)) return TARN_NONE;
  return any ? kern_store(&k) : TARN_NONE;
}

uint32_t build_powers(rsite *s) { return weaker(s, true); }
uint32_t build_roots(rsite *s) { return weaker(s, false); }
