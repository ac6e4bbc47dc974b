/* Division by a stage's result that is read many times: the stage divides once, and the others
 * multiply. In C because it changes two stages of one nest at once, and the left sides of the
 * notation of loops have one. */
#include "rules/algorithms/build.h"
#include "access/fx_internal.h"
#include "rules/lang/range.h"

/* ---------------------------------------------------------------- weights of a softmax */

bool kern_is_top(const kern *k, uint32_t i) {
  const kstage *s = &k->stage[i];
  return s->reducer == tarn_reducer_of(k->L, TARN_RED_MAX, TARN_F32) && s->epi == TARN_NONE &&
         s->nown == 0 && s->nred == 1;
}
/* Is f, of what stage s reads, exp(x - m), where m is that maximum of x, read for read? */
static bool weighs(const kern *k, uint32_t i, const kstage *s, uint32_t f) {
  tarn_lang *L = k->L;
  const kstage *top = &k->stage[i];
  const tarn_fx *e = tarn_fx_get(L, f),
                *d = e->op == TARN_FX_EXP ? tarn_fx_get(L, e->kid[0]) : NULL;
  uint32_t with[K_READS];
  if (!d || d->op != TARN_FX_SUB) return false;
  const tarn_fx *m = tarn_fx_get(L, d->kid[1]);
  if (m->op != TARN_FX_HOLE || !s->read[m->hole].stage || s->read[m->hole].src != i) return false;
  for (uint32_t r = 0; r < top->nb; r++) {
    with[r] = TARN_NONE;
    for (uint32_t q = 0; q < s->nb; q++) {
      const tarn_read *a = &top->read[r], *b = &s->read[q];
      uint32_t ns = tarn_imap_get(L, b->map)->ns;
      if (a->stage == b->stage && a->src == b->src && map_with_split(L, a->map, ns) == b->map)
        with[r] = tarn_fx_hole(L, q);
    }
    if (with[r] == TARN_NONE) return false;
  }
  return tarn_fx_subst(L, top->body, with, top->nb) == d->kid[0];
}
bool kern_is_weight(const kern *k, uint32_t top, const kstage *s) {
  return s->nown == 1 && weighs(k, top, s, s->body);
}
/* The weights of a whole row, of which one is exp(0): their sum is at least 1. */
static bool sums_weights(const kern *k, const kstage *s, uint32_t top) {
  const tarn_fx *x = tarn_fx_get(k->L, s->body);
  const tarn_read *r = x->op == TARN_FX_HOLE ? &s->read[x->hole] : NULL;
  if (s->reducer != tarn_reducer_of(k->L, TARN_RED_SUM, TARN_F32) || s->epi != TARN_NONE ||
      s->nred != 1 || s->red[0] != k->stage[top].red[0])
    return false;
  if (!r) return s->nown == 0 && weighs(k, top, s, s->body);
  const kstage *w = r->stage ? &k->stage[r->src] : NULL;
  const tarn_imap *m = tarn_imap_get(k->L, r->map);
  return w && w->reducer == TARN_NONE && kern_is_weight(k, top, w) && m->nin == 1 &&
         m->nguard == 0 && ix_loop(k->L, m->e[0]) == k->depth + s->nown;
}

/* ---------------------------------------------------------------- the reciprocal */

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
/* Is the reciprocal of each number that the stage gives, but of 0, a number too? That of a large
 * one may have a few digits less. */
static bool inverts(const rsite *s, kern *k, uint32_t i) {
  const kstage *p = &k->stage[i];
  bool body = p->reducer == TARN_NONE;
  vrange hole[K_READS + 1], r;
  for (uint32_t top = 0; top < i; top++)
    if (kern_is_top(k, top) && sums_weights(k, p, top)) return true;
  uint32_t n = vrange_holes(s->e->host, k, p, body, hole), f = body ? p->body : p->epi;
  r = f == TARN_NONE ? hole[0] : vrange_of(k->L, f, hole, n);
  return r.typed && vrange_least(r.r) >= 2 * vrange_normal(r.type);
}
/* Is a rounding computed from it? There another one would be seen. */
static bool steps_from(const kern *k, const kstage *from) {
  tarn_ctx *cx = tarn_lang_ctx(k->L);
  for (const kstage *s = from; s < k->stage + k->nstage; s++)
    if ((s->body != TARN_NONE && tarn_fx_steps(cx, k->L, s->body).n) ||
        (s->epi != TARN_NONE && tarn_fx_steps(cx, k->L, s->epi).n))
      return true;
  return false;
}
static bool invert(const rsite *s, kern *k, uint32_t i) {
  kstage *p = &k->stage[i], *c = NULL;
  const tarn_read *r = only_read(k, i, &c);
  if (!r || tarn_imap_get(k->L, r->map)->nguard) return false; /* its padding is no reciprocal */
  if (!inverts(s, k, i) || steps_from(k, c)) return false;
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
  for (uint32_t i = 0; i + 1 < k.nstage; i++) any |= invert(s, &k, i);
  return any ? kern_store(&k) : TARN_NONE;
}
