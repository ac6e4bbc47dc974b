/* Casts to integers and back of what is whole already: a tensor that is quantised and at once dequantised.
 *
 * Bottom up, each node gets bounds and whether it is whole, from its type, from casts and rounding, and through sums, minima
 * and maxima.  A cast to integers whose operand is whole and in their range changes nothing, and sums of integers that
 * a float type holds (f32: up to 2^24) can be made in it, where the zero point meets the scale (constants.c, affine).  A NaN,
 * which is no integer, would come out otherwise: class reassoc. */
#include "rules/algorithms/build.h"
#include <math.h>

typedef struct known {
  bool typed, whole;
  tarn_dtype type;
  double lo, hi;
} known;
typedef struct recast {
  tarn_lang *L;
  fxwalk w;
  known is[K_FX];
  uint32_t now[K_FX]; /* what stands for each */
} recast;

static uint32_t walk_at(const recast *c, uint32_t id) {
  uint32_t i = 0;
  while (c->w.id[i] != id) i++;
  return i;
}
static uint32_t kid_at(const recast *c, uint32_t i, uint32_t a) { return walk_at(c, tarn_fx_get(c->L, c->w.id[i])->kid[a]); }

/* ---- what is known ---- */
static known any_of(tarn_dtype t) {
  known k = {.typed = true, .type = t, .lo = -INFINITY, .hi = INFINITY};
  unsigned bits = (unsigned)tarn_dtype_size(t) * 8;
  if (tarn_dtype_is_float(t) || t == TARN_BOOL) return k;
  bool sign = t == TARN_I8 || t == TARN_I16 || t == TARN_I32 || t == TARN_I64;
  k.whole = true, k.lo = sign ? -ldexp(1, (int)bits - 1) : 0, k.hi = ldexp(1, (int)bits - sign) - 1;
  return k;
}
/* Whole numbers up to here are numbers of a float type (IEEE 754; bf16 has 8 bits). */
static double exact(tarn_dtype t) { return ldexp(1, t == TARN_F64 ? 53 : t == TARN_F32 ? 24 : t == TARN_F16 ? 11 : 8); }
/* Kept by a cast to t? */
static bool survives(const known *k, tarn_dtype t) {
  known r = any_of(t);
  if (tarn_dtype_is_float(t)) r.whole = true, r.hi = exact(t), r.lo = -r.hi;
  return k->whole && r.whole && k->lo >= r.lo && k->hi <= r.hi;
}
/* The type's own bounds where they are passed (integers wrap), and where a double would round them. */
static known within(known k) {
  known r = any_of(k.type);
  double most = fmin(r.hi, exact(TARN_F64));
  return tarn_dtype_is_float(k.type) || (k.lo >= fmax(r.lo, -most) && k.hi <= most) ? k : r;
}
static known of_two(tarn_fxop op, known a, known b) {
  known k = {.typed = a.typed && b.typed, .type = a.type, .whole = a.whole && b.whole};
  switch (op) {
  case TARN_FX_ADD: k.lo = a.lo + b.lo, k.hi = a.hi + b.hi; break;
  case TARN_FX_SUB: k.lo = a.lo - b.hi, k.hi = a.hi - b.lo; break;
  case TARN_FX_MIN: k.lo = fmin(a.lo, b.lo), k.hi = fmin(a.hi, b.hi); break;
  default: k.lo = fmax(a.lo, b.lo), k.hi = fmax(a.hi, b.hi); break;
  }
  return within(k);
}
static known learn(const recast *c, uint32_t i, const known *hole, uint32_t nhole) {
  const tarn_fx *x = tarn_fx_get(c->L, c->w.id[i]);
  known a = tarn_fx_arity(x->op) ? c->is[kid_at(c, i, 0)] : (known){0};
  double v;
  switch (x->op) {
  case TARN_FX_HOLE: return x->hole < nhole ? hole[x->hole] : (known){0};
  case TARN_FX_CONST:
    v = tarn_dtype_is_float(x->dtype) ? x->value : (double)x->ivalue;
    if (x->dtype == TARN_U64 && x->ivalue < 0) return any_of(x->dtype);
    return within((known){true, isfinite(v) && v == floor(v), x->dtype, v, v});
  case TARN_FX_CAST: return survives(&a, x->dtype) ? (known){true, true, x->dtype, a.lo, a.hi} : any_of(x->dtype);
  case TARN_FX_FLOOR:
  case TARN_FX_CEIL:
  case TARN_FX_ROUND: return (known){a.typed, true, a.type, floor(a.lo), ceil(a.hi)};
  case TARN_FX_ADD:
  case TARN_FX_SUB:
  case TARN_FX_MIN:
  case TARN_FX_MAX: return a.typed ? of_two(x->op, a, c->is[kid_at(c, i, 1)]) : a;
  case TARN_FX_SEL: a = c->is[kid_at(c, i, 1)]; break;
  case TARN_FX_EQ:
  case TARN_FX_LT:
  case TARN_FX_LE:
  case TARN_FX_ISNAN:
  case TARN_FX_ISINF: return any_of(TARN_BOOL);
  default: break;
  }
  return a.typed ? any_of(a.type) : a;
}

/* ---- what stands for it ---- */
/* The integer i as a number of type t, without casts that change nothing. */
static uint32_t in_type(const recast *c, uint32_t i, tarn_dtype t) {
  tarn_lang *L = c->L;
  tarn_fx x = *tarn_fx_get(L, c->w.id[i]);
  if (c->is[i].type == t) return c->now[i];
  if (x.op == TARN_FX_CONST && tarn_dtype_is_float(t)) return tarn_fx_const(L, t, (double)x.ivalue);
  uint32_t a = tarn_fx_arity(x.op) ? kid_at(c, i, 0) : 0, b = tarn_fx_arity(x.op) == 2 ? kid_at(c, i, 1) : 0;
  if (x.op == TARN_FX_CAST && survives(&c->is[a], x.dtype) && survives(&c->is[a], t)) return in_type(c, a, t);
  bool sum = (x.op == TARN_FX_ADD || x.op == TARN_FX_SUB) && tarn_dtype_is_float(t);
  if (sum && c->is[b].lo == 0 && c->is[b].hi == 0 && survives(&c->is[a], t)) return in_type(c, a, t);
  if (sum && survives(&c->is[a], t) && survives(&c->is[b], t))
    return tarn_fx_op(L, x.op, in_type(c, a, t), in_type(c, b, t), 0);
  return tarn_fx_cast(L, t, c->now[i]);
}

static uint32_t rewritten(const recast *c, uint32_t i) {
  tarn_fx x = *tarn_fx_get(c->L, c->w.id[i]);
  uint32_t kid[3] = {0}, n = tarn_fx_arity(x.op);
  for (uint32_t a = 0; a < n; a++) kid[a] = c->now[kid_at(c, i, a)];
  if (x.op != TARN_FX_CAST) return n ? fx_rebuild(c->L, &x, kid) : c->w.id[i];
  const known *from = &c->is[kid_at(c, i, 0)];
  bool integers = from->typed && !tarn_dtype_is_float(from->type);
  return integers && survives(from, x.dtype) ? in_type(c, kid_at(c, i, 0), x.dtype) : tarn_fx_cast(c->L, x.dtype, kid[0]);
}

/* What is known of each node of a part. */
static bool learn_all(recast *c, const kern *k, const kstage *st, bool body) {
  known hole[K_READS + 1] = {0};
  uint32_t first = !body, n = first + (body ? st->nb : st->ne);
  c->L = k->L;
  if (!fx_walk(k->L, body ? st->body : st->epi, &c->w)) return false;
  for (uint32_t h = first; h < n; h++) {
    const tarn_read *r = body ? &st->read[h] : &st->read[st->nb + h - 1];
    if (!r->stage) hole[h] = any_of(kern_leaf_type(k, r->src)->dtype);
  }
  if (!body && st->reducer != TARN_NONE && tarn_reducer_get(k->L, st->reducer)->kind != TARN_RED_CUSTOM)
    hole[0] = any_of(tarn_reducer_get(k->L, st->reducer)->dtype);
  for (uint32_t i = 0; i < c->w.n; i++) c->is[i] = learn(c, i, hole, n);
  return true;
}

bool part_types(const kern *k, const kstage *st, bool body, tarn_dtype type, bool *is) {
  recast c;
  if (!learn_all(&c, k, st, body)) return false;
  for (uint32_t i = 0; i < c.w.n; i++) is[i] = c.is[i].typed && c.is[i].type == type;
  return true;
}

static bool part(kern *k, kstage *st, bool body, bool *any) {
  uint32_t *f = body ? &st->body : &st->epi;
  recast c;
  if (*f == TARN_NONE) return true;
  if (!learn_all(&c, k, st, body)) return false;
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
    if (!part(&k, &k.stage[i], true, &any) || !part(&k, &k.stage[i], false, &any)) return TARN_NONE;
  return any ? kern_store(&k) : TARN_NONE;
}
