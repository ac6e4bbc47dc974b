/* Division by a stage's result that is read many times: the stage divides once, and the others
 * multiply. In C because it changes two stages of one nest at once, and the left sides of the
 * notation of loops have one. */
#include "rules/algorithms/build.h"

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
  int64_t uses = points(c->own, c->nown) * (body ? points(c->red, c->nred) : 1);
  if (uses < 2 * points(p->own, p->nown)) return false;
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
