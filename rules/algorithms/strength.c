/* Operations that cheaper ones can do.
 *
 *   powers      pow by 1 or 2, division by a power of two: exact
 *   roots       pow by 3, -1, of what is not below 0 by 1/2, of what is above by -1/2: the same
 *               over the reals
 *   reciprocal  division by a stage's result that is read many times: the stage divides once, and
 *               the others multiply
 *
 * Division by another constant stays here: its reciprocal would be rounded (constants.c, affine).
 */
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <math.h>

static bool constant_of(const tarn_lang *L, uint32_t f, double *v) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->op != TARN_FX_CONST || !tarn_dtype_is_float(x->dtype)) return false;
  return *v = x->value, true;
}

static uint32_t op2(tarn_lang *L, tarn_fxop op, uint32_t a, uint32_t b) {
  return tarn_fx_op(L, op, a, b, 0);
}

/* lo: no value of what is raised is below. The power of -inf by 1/2 is inf, that of -0 by -1/2 too.
 */
static uint32_t power(tarn_lang *L, const tarn_fx *x, double v, bool exact, double lo) {
  uint32_t a = x->kid[0], one = tarn_fx_const(L, tarn_fx_get(L, x->kid[1])->dtype, 1);
  if (v == 1) return a;
  if (v == 2) return op2(L, TARN_FX_MUL, a, a);
  if (exact) return TARN_NONE;
  if (v == 3) return op2(L, TARN_FX_MUL, op2(L, TARN_FX_MUL, a, a), a);
  if (v == 0.5 && lo >= 0) return op2(L, TARN_FX_SQRT, a, 0);
  if (v == -0.5 && lo > 0) return op2(L, TARN_FX_DIV, one, op2(L, TARN_FX_SQRT, a, 0));
  if (v == -1) return op2(L, TARN_FX_DIV, one, a);
  return TARN_NONE;
}

static uint32_t quotient(tarn_lang *L, const tarn_fx *x, double v) {
  tarn_dtype t = tarn_fx_get(L, x->kid[1])->dtype;
  int e;
  if (fabs(frexp(v, &e)) != 0.5 || e > 100 || e < -100 || (t != TARN_F32 && t != TARN_F64))
    return TARN_NONE;
  return op2(L, TARN_FX_MUL, x->kid[0], tarn_fx_const(L, t, 1 / v));
}

/* A node that can be had cheaper, and what with; false: there is none. */
static bool find(const rhost *h, const kern *k, const kstage *st, bool body, bool exact,
                 uint32_t *node, uint32_t *with) {
  tarn_lang *L = k->L;
  fxwalk w;
  double v;
  vrange hole[K_READS + 1];
  if (!fx_walk(L, body ? st->body : st->epi, &w)) return false;
  uint32_t n = exact ? 0 : vrange_holes(h, k, st, body, hole);
  for (uint32_t i = 0; i < w.n; i++) {
    tarn_fx x = *tarn_fx_get(L, w.id[i]);
    if ((x.op != TARN_FX_POW && x.op != TARN_FX_DIV) || !constant_of(L, x.kid[1], &v)) continue;
    *node = w.id[i];
    double lo = exact || x.op != TARN_FX_POW ? 0 : vrange_of(L, x.kid[0], hole, n).r.lo;
    *with = x.op == TARN_FX_POW ? power(L, &x, v, exact, lo)
            : exact             ? quotient(L, &x, v)
                                : TARN_NONE;
    if (*with != TARN_NONE) return true;
  }
  return false;
}

static bool reduce(const rhost *h, kern *k, kstage *st, bool body, bool exact, bool *any) {
  uint32_t node, with, *f = body ? &st->body : &st->epi;
  while (*f != TARN_NONE && find(h, k, st, body, exact, &node, &with)) {
    *any = true;
    if ((*f = fx_replace(k->L, *f, &node, &with, 1)) == TARN_NONE) return false;
  }
  return true;
}

static uint32_t weaker(rsite *s, bool exact) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++)
    if (!reduce(s->e->host, &k, &k.stage[i], true, exact, &any) ||
        !reduce(s->e->host, &k, &k.stage[i], false, exact, &any))
      return TARN_NONE;
  return any ? kern_store(&k) : TARN_NONE;
}

uint32_t build_powers(rsite *s) { return weaker(s, true); }
uint32_t build_roots(rsite *s) { return weaker(s, false); }

/* ---- reciprocals ---- */
/* Points of a stage beside the shared loops. */
static int64_t points(const kstage *s, bool body) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s->nown; d++) n *= s->own[d];
  for (uint32_t d = 0; d < s->nred && body; d++) n *= s->red[d];
  return n;
}
/* Is the hole read, and only to be divided by? */
static bool only_divides(tarn_lang *L, uint32_t f, uint32_t hole) {
  fxwalk w;
  bool any = false;
  if (f == hole || !fx_walk(L, f, &w)) return false;
  for (uint32_t i = 0; i < w.n; i++) {
    const tarn_fx *x = tarn_fx_get(L, w.id[i]);
    for (uint32_t a = 0; a < tarn_fx_arity(x->op); a++)
      if (x->kid[a] == hole) {
        if (x->op != TARN_FX_DIV || a != 1) return false;
        any = true;
      }
  }
  return any;
}
/* f with every division by a hole as a product with it; TARN_NONE: the hole is read otherwise, or
 * not at all. */
static uint32_t by_product(tarn_lang *L, uint32_t f, uint32_t number) {
  uint32_t hole = tarn_fx_hole(L, number), at = 0;
  fxwalk w;
  if (!only_divides(L, f, hole)) return TARN_NONE;
  while (at != TARN_NONE) {
    if (!fx_walk(L, f, &w)) return TARN_NONE;
    at = TARN_NONE;
    for (uint32_t i = 0; i < w.n && at == TARN_NONE; i++) {
      const tarn_fx x = *tarn_fx_get(L, w.id[i]);
      if (x.op != TARN_FX_DIV || x.kid[1] != hole) continue;
      uint32_t mul = op2(L, TARN_FX_MUL, x.kid[0], hole);
      at = w.id[i];
      if ((f = fx_replace(L, f, &at, &mul, 1)) == TARN_NONE) return TARN_NONE;
    }
  }
  return f;
}
/* The one read of stage i's result, and the stage that reads; NULL: an output, or read twice or not
 * at all. */
static const tarn_read *only_read(kern *k, uint32_t i, kstage **by) {
  const tarn_read *one = NULL;
  if (k->stage[i].out) return NULL;
  for (uint32_t c = i + 1; c < k->nstage; c++)
    for (uint32_t r = 0; r < k->stage[c].nb + k->stage[c].ne; r++) {
      if (!k->stage[c].read[r].stage || k->stage[c].read[r].src != i) continue;
      if (one) return NULL;
      one = &k->stage[c].read[r], *by = &k->stage[c];
    }
  return one;
}
static bool invert(kern *k, uint32_t i) {
  kstage *p = &k->stage[i], *c;
  const tarn_read *r = only_read(k, i, &c);
  if (!r) return false;
  uint32_t at = (uint32_t)(r - c->read), one = tarn_fx_const(k->L, TARN_F32, 1);
  bool body = at < c->nb;
  uint32_t *f = body ? &c->body : &c->epi, *g = p->reducer == TARN_NONE ? &p->body : &p->epi;
  if (points(c, body) < 2 * points(p, false)) return false;
  uint32_t now = by_product(k->L, *f, body ? at : at - c->nb + 1);
  if (now == TARN_NONE) return false;
  *f = now;
  *g = op2(k->L, TARN_FX_DIV, one, *g == TARN_NONE ? tarn_fx_hole(k->L, 0) : *g);
  return true;
}
uint32_t build_reciprocal(rsite *s) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nleaf; i++)
    if (kern_leaf_type(&k, i)->dtype != TARN_F32) return TARN_NONE;
  for (uint32_t i = 0; i + 1 < k.nstage; i++) any |= invert(&k, i);
  return any ? kern_store(&k) : TARN_NONE;
}
