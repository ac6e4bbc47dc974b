/* Index expressions over loop levels.
 *
 * They are the sums of atoms of access/, over up to 64 levels instead of 16 dims. A division by d
 * takes out the terms that are multiples of d and vanishes if the rest lies in 0 … d-1, so a
 * blocked layout costs nothing for an aligned tile. */
#include "plan/plan.h"
#include <string.h>

const tarn_plan_lin *tarn_plan_lin_const(tarn_ctx *cx, int64_t c) {
  tarn_plan_lin *r = TARN_NEW(cx, tarn_plan_lin);
  r->c = c;
  return r;
}

static bool same_lin(const tarn_plan_lin *a, const tarn_plan_lin *b);
static bool same_atom(const tarn_plan_term *a, const tarn_plan_term *b) {
  if (a->kind != b->kind || a->by != b->by) return false;
  if (a->kind != TARN_IX_DIV && a->kind != TARN_IX_MOD && a->var != b->var) return false;
  return a->kind == TARN_IX_VAR || same_lin(a->arg, b->arg);
}
static bool same_lin(const tarn_plan_lin *a, const tarn_plan_lin *b) {
  if (a->c != b->c || a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++) {
    bool found = false;
    for (uint32_t k = 0; k < b->n && !found; k++)
      found = a->t[i].coef == b->t[k].coef && same_atom(&a->t[i], &b->t[k]);
    if (!found) return false;
  }
  return true;
}

const tarn_plan_lin *tarn_plan_lin_add(const tarn_plan_space *s, const tarn_plan_lin *a, int64_t k,
                                       const tarn_plan_lin *b) {
  tarn_plan_lin *r = TARN_NEW(s->cx, tarn_plan_lin);
  tarn_plan_term *t = TARN_ARRAY(s->cx, tarn_plan_term, a->n + b->n);
  r->c = a->c + k * b->c, r->t = t;
  for (uint32_t i = 0; i < a->n; i++) t[r->n++] = a->t[i];
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t j = 0;
    while (j < r->n && !same_atom(&t[j], &b->t[i])) j++;
    if (j == r->n) t[r->n] = b->t[i], t[r->n++].coef = 0;
    t[j].coef += k * b->t[i].coef;
    if (t[j].coef == 0) t[j] = t[--r->n];
  }
  return r;
}

static const tarn_plan_lin *one_term(tarn_ctx *cx, tarn_plan_term t) {
  tarn_plan_lin *r = TARN_NEW(cx, tarn_plan_lin);
  r->n = t.coef != 0;
  r->t = tarn_copy(cx, &t, sizeof t);
  return r;
}

const tarn_plan_lin *tarn_plan_lin_var(const tarn_plan_space *s, int64_t coef, uint32_t var) {
  if (s->hi[var] == 0) return tarn_plan_lin_const(s->cx, 0);
  return one_term(
      s->cx, (tarn_plan_term){
                 .coef = coef, .kind = TARN_IX_VAR, .var = var, .deps = 1ull << var, .last = var});
}

uint64_t tarn_plan_lin_deps(const tarn_plan_lin *a) {
  uint64_t d = 0;
  for (uint32_t i = 0; i < a->n; i++) d |= a->t[i].deps;
  return d;
}

static void term_range(const tarn_plan_term *t, const int64_t *lo, const int64_t *hi, int64_t *rlo,
                       int64_t *rhi) {
  if (t->kind == TARN_IX_VAR) {
    *rlo = lo ? lo[t->var] : 0, *rhi = hi[t->var];
    return;
  }
  if (t->kind == TARN_PLAN_ROW) {
    *rlo = 0, *rhi = t->by - 1;
    return;
  }
  tarn_plan_lin_range(t->arg, lo, hi, rlo, rhi);
  if (t->kind == TARN_IX_DIV) *rlo = tarn_floordiv(*rlo, t->by), *rhi = tarn_floordiv(*rhi, t->by);
  else if (tarn_floordiv(*rlo, t->by) == tarn_floordiv(*rhi, t->by))
    *rlo = tarn_floormod(*rlo, t->by), *rhi = tarn_floormod(*rhi, t->by);
  else *rlo = 0, *rhi = t->by - 1;
}

void tarn_plan_lin_range(const tarn_plan_lin *a, const int64_t *lo, const int64_t *hi, int64_t *rlo,
                         int64_t *rhi) {
  *rlo = *rhi = a->c;
  for (uint32_t i = 0; i < a->n; i++) {
    int64_t l, h, k = a->t[i].coef;
    term_range(&a->t[i], lo, hi, &l, &h);
    *rlo += k > 0 ? k * l : k * h;
    *rhi += k > 0 ? k * h : k * l;
  }
}

/* a = d·(*q) + *r, the constant of r in 0 … d-1. */
static void take_multiples(const tarn_plan_space *s, const tarn_plan_lin *a, int64_t d,
                           const tarn_plan_lin **q, const tarn_plan_lin **r) {
  tarn_plan_lin *x = TARN_NEW(s->cx, tarn_plan_lin), *y = TARN_NEW(s->cx, tarn_plan_lin);
  tarn_plan_term *xt = TARN_ARRAY(s->cx, tarn_plan_term, a->n),
                 *yt = TARN_ARRAY(s->cx, tarn_plan_term, a->n);
  x->c = tarn_floordiv(a->c, d), x->t = xt;
  y->c = tarn_floormod(a->c, d), y->t = yt;
  for (uint32_t i = 0; i < a->n; i++) {
    if (a->t[i].coef % d) yt[y->n++] = a->t[i];
    else xt[x->n] = a->t[i], xt[x->n++].coef /= d;
  }
  *q = x, *r = y;
}

static const tarn_plan_lin *atom(const tarn_plan_space *s, uint8_t kind, uint32_t var,
                                 const tarn_plan_lin *arg, int64_t by) {
  uint64_t deps = tarn_plan_lin_deps(arg);
  uint32_t last = deps ? 63 - (uint32_t)__builtin_clzll(deps) : 0;
  return one_term(
      s->cx,
      (tarn_plan_term){
          .coef = 1, .kind = kind, .var = var, .arg = arg, .by = by, .deps = deps, .last = last});
}

const tarn_plan_lin *tarn_plan_lin_div(const tarn_plan_space *s, const tarn_plan_lin *a,
                                       int64_t d) {
  const tarn_plan_lin *q, *r;
  int64_t lo, hi;
  take_multiples(s, a, d, &q, &r);
  tarn_plan_lin_range(r, NULL, s->hi, &lo, &hi);
  if (tarn_floordiv(lo, d) == tarn_floordiv(hi, d))
    return tarn_plan_lin_add(s, q, 1, tarn_plan_lin_const(s->cx, tarn_floordiv(lo, d)));
  return tarn_plan_lin_add(s, q, 1, atom(s, TARN_IX_DIV, 0, r, d));
}

const tarn_plan_lin *tarn_plan_lin_mod(const tarn_plan_space *s, const tarn_plan_lin *a,
                                       int64_t d) {
  const tarn_plan_lin *q, *r;
  int64_t lo, hi;
  take_multiples(s, a, d, &q, &r);
  tarn_plan_lin_range(r, NULL, s->hi, &lo, &hi);
  if (tarn_floordiv(lo, d) == tarn_floordiv(hi, d))
    return tarn_plan_lin_add(s, r, 1, tarn_plan_lin_const(s->cx, -d * tarn_floordiv(lo, d)));
  return atom(s, TARN_IX_MOD, 0, r, d);
}

const tarn_plan_lin *tarn_plan_lin_ix(const tarn_plan_space *s, const tarn_lang *L, uint32_t ix,
                                      const tarn_plan_lin *const *sub) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  const tarn_plan_lin *r = tarn_plan_lin_const(s->cx, x->c);
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    const tarn_plan_lin *a =
        t->kind == TARN_IX_VAR ? sub[t->arg] : tarn_plan_lin_ix(s, L, t->arg, sub);
    if (t->kind == TARN_IX_DIV) a = tarn_plan_lin_div(s, a, t->by);
    if (t->kind == TARN_IX_MOD) a = tarn_plan_lin_mod(s, a, t->by);
    r = tarn_plan_lin_add(s, r, t->coef, a);
  }
  return r;
}

const tarn_plan_lin *tarn_plan_lin_row(const tarn_plan_space *s, uint32_t lookup,
                                       const tarn_plan_lin *off, int64_t extent) {
  return atom(s, TARN_PLAN_ROW, lookup, off, extent);
}

const tarn_plan_lin *tarn_plan_lin_layout(const tarn_plan_space *s, const tarn_layout *l,
                                          const tarn_plan_lin *const *idx) {
  const tarn_plan_lin *r = tarn_plan_lin_const(s->cx, 0);
  for (uint32_t a = 0; a < l->n; a++) {
    bool blocked = l->block && a == l->baxis;
    r = tarn_plan_lin_add(s, r, l->stride[a],
                          blocked ? tarn_plan_lin_div(s, idx[a], l->block) : idx[a]);
    if (blocked) r = tarn_plan_lin_add(s, r, 1, tarn_plan_lin_mod(s, idx[a], l->block));
  }
  return r;
}

bool tarn_plan_moves_by(const tarn_plan_lin *a, uint32_t var, int64_t *by) {
  *by = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    const tarn_plan_term *t = &a->t[i];
    if (!(t->deps >> var & 1)) continue;
    if (t->kind != TARN_IX_VAR) return false;
    *by += t->coef;
  }
  return true;
}

int64_t tarn_plan_lin_at(const tarn_plan_lin *a, const int64_t *at) {
  int64_t sum = a->c;
  for (uint32_t i = 0; i < a->n; i++) {
    const tarn_plan_term *t = &a->t[i];
    if (t->kind == TARN_PLAN_ROW) continue;
    int64_t x = t->kind == TARN_IX_VAR ? at[t->var] : tarn_plan_lin_at(t->arg, at);
    if (t->kind == TARN_IX_DIV) x = tarn_floordiv(x, t->by);
    if (t->kind == TARN_IX_MOD) x = tarn_floormod(x, t->by);
    sum += t->coef * x;
  }
  return sum;
}
