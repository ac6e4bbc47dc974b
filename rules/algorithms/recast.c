/* Removes casts to integers and back from whole numbers, and sums of these with 0: a tensor that is
 * quantised and at once dequantised, or quantised with a zero point of 0.
 *
 * Bottom up, each node gets bounds and whether it is whole (range.c). A cast to integers of a whole
 * operand within their range changes only NaN, which becomes 0; if NaN is possible, a test replaces
 * the cast. Sums of integers that a float type holds (f32: up to 2^24) can be computed in it, but
 * for machines that sum integers and scale them as they leave. A cast turns -0 into 0, and this
 * does not: class reassoc. */
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <math.h>

typedef struct recast {
  tarn_lang *L;
  bool sums; /* of integers stay */
  fxwalk w;
  vrange is[K_FX];
  uint32_t now[K_FX]; /* what stands for each */
} recast;

static uint32_t walk_at(const recast *c, uint32_t id) {
  uint32_t i = 0;
  while (c->w.id[i] != id) i++;
  return i;
}
static uint32_t kid_at(const recast *c, uint32_t i, uint32_t a) {
  return walk_at(c, tarn_fx_get(c->L, c->w.id[i])->kid[a]);
}

/* ---- what stands for it ---- */
/* A number that is cast to integers, which makes 0 of a NaN. */
static uint32_t number(const recast *c, uint32_t i, uint32_t f) {
  tarn_lang *L = c->L;
  if (!tarn_dtype_is_float(c->is[i].type) || !c->is[i].r.nan) return f;
  uint32_t zero = tarn_fx_const(L, c->is[i].type, 0);
  return tarn_fx_op(L, TARN_FX_SEL, tarn_fx_op(L, TARN_FX_ISNAN, f, 0, 0), zero, f);
}
/* A sum of integers that does not wrap. */
static bool plain_sum(const recast *c, const tarn_fx *x, uint32_t a, uint32_t b) {
  if (x->op != TARN_FX_ADD && x->op != TARN_FX_SUB) return false;
  tarn_range all = vrange_any(c->is[a].type).r, p = c->is[a].r, q = c->is[b].r;
  double lo = x->op == TARN_FX_ADD ? p.lo + q.lo : p.lo - q.hi,
         hi = x->op == TARN_FX_ADD ? p.hi + q.hi : p.hi - q.lo;
  return lo >= all.lo && hi <= all.hi;
}
/* The integer i as a number of type t, without casts that change nothing. */
static uint32_t in_type(const recast *c, uint32_t i, tarn_dtype t) {
  tarn_lang *L = c->L;
  tarn_fx x = *tarn_fx_get(L, c->w.id[i]);
  if (c->is[i].type == t) return c->now[i];
  if (x.op == TARN_FX_CONST && tarn_dtype_is_float(t)) return tarn_fx_const(L, t, (double)x.ivalue);
  uint32_t a = tarn_fx_arity(x.op) ? kid_at(c, i, 0) : 0,
           b = tarn_fx_arity(x.op) == 2 ? kid_at(c, i, 1) : 0;
  if (x.op == TARN_FX_CAST && vrange_survives(&c->is[a], x.dtype) && vrange_survives(&c->is[a], t))
    return number(c, a, in_type(c, a, t));
  bool sum = tarn_dtype_is_float(t) && plain_sum(c, &x, a, b);
  if (sum && c->is[b].r.lo == 0 && c->is[b].r.hi == 0 && vrange_survives(&c->is[a], t))
    return in_type(c, a, t);
  if (sum && !c->sums && vrange_survives(&c->is[a], t) && vrange_survives(&c->is[b], t))
    return tarn_fx_op(L, x.op, in_type(c, a, t), in_type(c, b, t), 0);
  return tarn_fx_cast(L, t, c->now[i]);
}

/* The operand that is 0, where the other one is whole: a zero point. TARN_NONE. */
static uint32_t zero_summand(const recast *c, uint32_t i, const tarn_fx *x) {
  for (uint32_t a = 2; a-- > 0 && (x->op == TARN_FX_ADD || (x->op == TARN_FX_SUB && a));) {
    const tarn_fx *z = tarn_fx_get(c->L, x->kid[a]);
    if (z->op == TARN_FX_CONST && tarn_dtype_is_float(z->dtype) && z->value == 0 &&
        c->is[kid_at(c, i, 1 - a)].r.whole)
      return a;
  }
  return TARN_NONE;
}

static uint32_t rewritten(const recast *c, uint32_t i) {
  tarn_fx x = *tarn_fx_get(c->L, c->w.id[i]);
  uint32_t kid[3] = {0}, n = tarn_fx_arity(x.op), zero = zero_summand(c, i, &x);
  for (uint32_t a = 0; a < n; a++) kid[a] = c->now[kid_at(c, i, a)];
  if (zero != TARN_NONE) return kid[1 - zero];
  if (x.op != TARN_FX_CAST) return n ? fx_rebuild(c->L, &x, kid) : c->w.id[i];
  const vrange *from = &c->is[kid_at(c, i, 0)];
  bool integers = from->typed && !tarn_dtype_is_float(from->type);
  return integers && vrange_survives(from, x.dtype) ? in_type(c, kid_at(c, i, 0), x.dtype)
                                                    : tarn_fx_cast(c->L, x.dtype, kid[0]);
}

/* What is known of each node of a part. */
static bool learn_all(const rhost *h, recast *c, const kern *k, const kstage *st, bool body) {
  vrange hole[K_READS + 1];
  c->L = k->L;
  if (!fx_walk(k->L, body ? st->body : st->epi, &c->w)) return false;
  uint32_t n = vrange_holes(h, k, st, body, hole);
  vrange_walk(k->L, &c->w, hole, n, c->is);
  return true;
}

static bool part(const rsite *s, kern *k, kstage *st, bool body, bool *any) {
  uint32_t *f = body ? &st->body : &st->epi;
  recast c;
  if (*f == TARN_NONE) return true;
  if (!learn_all(s->e->host, &c, k, st, body)) return false;
  c.sums = s->e->hw && tarn_hw_scales(s->e->hw);
  for (uint32_t i = 0; i < c.w.n; i++)
    if ((c.now[i] = rewritten(&c, i)) == TARN_NONE) return false;
  *any |= c.now[c.w.n - 1] != *f;
  *f = c.now[c.w.n - 1];
  return true;
}

uint32_t build_recast(rsite *s) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++)
    if (!part(s, &k, &k.stage[i], true, &any) || !part(s, &k, &k.stage[i], false, &any))
      return TARN_NONE;
  return any ? kern_store(&k) : TARN_NONE;
}
