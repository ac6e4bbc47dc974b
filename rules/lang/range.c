/* Ranges of the elements of a value. */
#include "rules/lang/range.h"
#include "access/fx_internal.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- types */

vrange vrange_any(tarn_dtype t) {
  vrange k = {.typed = true, .type = t, .r = {.lo = -INFINITY, .hi = INFINITY, .nan = true}};
  unsigned bits = (unsigned)tarn_dtype_size(t) * 8;
  if (tarn_dtype_is_float(t)) return k;
  bool sign = tarn_dtype_is_signed(t);
  k.r = (tarn_range){
      .lo = sign ? -ldexp(1, (int)bits - 1) : 0, .finite = true, .whole = t != TARN_BOOL};
  k.r.hi = t == TARN_BOOL ? 1 : ldexp(1, (int)(bits - sign)) - 1;
  return k;
}

double vrange_largest(tarn_dtype t) {
  return t == TARN_F64    ? DBL_MAX
         : t == TARN_F16  ? 65504
         : t == TARN_BF16 ? 0x1.FEp127
                          : (double)FLT_MAX;
}
double vrange_normal(tarn_dtype t) {
  return t == TARN_F64 ? DBL_MIN : t == TARN_F16 ? 0x1p-14 : 0x1p-126;
}
double vrange_exact(tarn_dtype t) {
  return ldexp(1, t == TARN_F64 ? 53 : t == TARN_F32 ? 24 : t == TARN_F16 ? 11 : 8);
}

bool vrange_exactly(tarn_dtype t, tarn_range r) {
  return r.whole && vrange_most(r) <= vrange_exact(t);
}
bool vrange_rounds(tarn_dtype t, tarn_range a, tarn_range b) {
  return !tarn_dtype_is_float(t) || !vrange_exactly(t, a) || !vrange_exactly(t, b);
}

bool vrange_survives(const vrange *k, tarn_dtype t) {
  tarn_range r = vrange_any(t).r;
  if (tarn_dtype_is_float(t)) r.whole = true, r.hi = vrange_exact(t), r.lo = -r.hi;
  return k->r.whole && r.whole && k->r.lo >= r.lo && k->r.hi <= r.hi;
}

/* Is each value of the one type, infinities and NaN included, one of the other? */
bool vrange_widens(tarn_dtype from, tarn_dtype to) {
  vrange any = vrange_any(from);
  if (!tarn_dtype_is_float(from) || !tarn_dtype_is_float(to)) return vrange_survives(&any, to);
  return vrange_exact(from) <= vrange_exact(to) && vrange_largest(from) <= vrange_largest(to);
}

static vrange of_number(tarn_dtype t, double v) {
  vrange k = {
      .typed = true, .type = t, .r = {.lo = v, .hi = v, .finite = isfinite(v), .nan = isnan(v)}};
  if (isnan(v)) k.r.lo = INFINITY, k.r.hi = -INFINITY; /* no number at all */
  k.r.whole = isfinite(v) && v == floor(v);
  return k;
}
static vrange vrange_value(tarn_dtype t, tarn_value v) {
  bool real = tarn_dtype_is_float(t),
       small = real || (v.i < INT64_C(1) << 53 && v.i > -(INT64_C(1) << 53));
  if (!small || (t == TARN_U64 && v.i < 0)) return vrange_any(t); /* a double would round it */
  return of_number(t, real ? v.d : (double)v.i);
}

/* Elements of either kind. */
void vrange_widen(tarn_range *r, tarn_range more) {
  bool zero = r->lo == 0 && r->hi == 0 && !r->nan, none = more.lo == 0 && more.hi == 0 && !more.nan;
  r->rounded = zero   ? more.rounded
               : none ? r->rounded
                      : r->rounded && more.rounded; /* 0 has no error either way */
  r->lo = fmin(r->lo, more.lo);
  r->hi = fmax(r->hi, more.hi);
  r->finite &= more.finite;
  r->nan |= more.nan;
  r->whole &= more.whole;
}
tarn_range vrange_both(tarn_range a, tarn_range b) {
  a.lo = fmax(a.lo, b.lo);
  a.hi = fmin(a.hi, b.hi);
  a.finite |= b.finite;
  a.nan &= b.nan;
  a.whole |= b.whole;
  a.rounded &= b.rounded; /* one of them may be exact */
  return a;
}

static vrange of_bytes(const tarn_tensor *t, int64_t n) {
  const uint8_t *p = t->data;
  uint8_t flip = t->dtype == TARN_I8 ? 0x80 : 0, lo = p[0] ^ flip, hi = lo; /* in order */
  for (int64_t i = 1; i < n; i++) {
    uint8_t v = p[i] ^ flip;
    lo = v < lo ? v : lo, hi = v > hi ? v : hi;
  }
  vrange k = vrange_any(t->dtype);
  k.r.lo = lo - flip, k.r.hi = hi - flip;
  return k;
}
vrange vrange_tensor(const tarn_tensor *t) {
  int64_t n = tarn_tensor_count(t);
  enum { MANY = 1 << 20 }; /* of other types than f32 and bytes */
  if (n && (t->dtype == TARN_I8 || t->dtype == TARN_U8)) return of_bytes(t, n);
  if (n == 0 || t->dtype == TARN_U64 || t->dtype == TARN_I64) return vrange_any(t->dtype);
  if (t->dtype != TARN_F32 && n > MANY) return vrange_any(t->dtype);
  vrange k = vrange_value(t->dtype, tarn_tensor_get(t, 0));
  const float *p = t->data;
  for (int64_t i = 1; i < n; i++) {
    tarn_value x = t->dtype == TARN_F32 ? (tarn_value){.d = (double)p[i]} : tarn_tensor_get(t, i);
    double v = tarn_dtype_is_float(t->dtype) ? x.d : (double)x.i;
    if (v < k.r.lo) k.r.lo = v;
    if (v > k.r.hi) k.r.hi = v;
    k.r.nan |= v != v;
    k.r.whole = k.r.whole && v == floor(v);
  }
  k.r.finite = !k.r.nan && isfinite(k.r.lo) && isfinite(k.r.hi);
  k.r.whole &= k.r.finite;
  return k;
}

double vrange_most(tarn_range r) { return fmax(fabs(r.lo), fabs(r.hi)); }
double vrange_least(tarn_range r) {
  return r.lo > 0 || r.hi < 0 ? fmin(fabs(r.lo), fabs(r.hi)) : 0;
}

bool vrange_folds(tarn_dtype t, tarn_range a, tarn_range b) {
  double most = vrange_most(a) * vrange_most(b);
  return a.finite && b.finite && most <= vrange_largest(t) * 0x1p-20 &&
         (most >= 2 * vrange_normal(t) || most == 0);
}
bool vrange_loses_none(tarn_dtype t, tarn_range a, tarn_range b) {
  return vrange_least(a) * vrange_least(b) >= vrange_normal(t);
}
bool vrange_apart(tarn_range x, tarn_range y) {
  bool sign = (x.lo >= 0 && y.lo >= 0) || (x.hi <= 0 && y.hi <= 0);
  return sign || vrange_least(x) >= 2 * vrange_most(y) || vrange_least(y) >= 2 * vrange_most(x);
}

/* ---------------------------------------------------------------- floats */

static bool infinite(const tarn_range *r) { return isinf(r->lo) || isinf(r->hi); }
static bool holds_zero(const tarn_range *r) { return r->lo <= 0 && r->hi >= 0; }

/* From the ends of an interval in real arithmetic: rounded to the type, as its elements are. */
static tarn_range ends(tarn_dtype t, double lo, double hi, bool nan) {
  tarn_range r = {.nan = nan};
  r.lo = isnan(lo) ? -INFINITY : tarn_round_to(t, lo);
  r.hi = isnan(hi) ? INFINITY : tarn_round_to(t, hi);
  r.finite = !nan && isfinite(r.lo) && isfinite(r.hi);
  return r;
}
/* May it be NaN, of numbers in these ranges? */
static bool may_be_nan(uint32_t op, const tarn_range *a, const tarn_range *b, bool same) {
  const tarn_fxinfo *row = tarn_fx_info(op);
  switch (row->error) {
  case TARN_FXE_SUM: return infinite(a) && infinite(b);
  case TARN_FXE_PRODUCT:
    return !same && ((infinite(a) && holds_zero(b)) || (infinite(b) && holds_zero(a)));
  case TARN_FXE_QUOTIENT: return (infinite(a) && infinite(b)) || (holds_zero(a) && holds_zero(b));
  case TARN_FXE_MODULO: return true;
  default: return !(a->lo >= row->domain.lo && a->hi <= row->domain.hi);
  }
}
static tarn_span span_of(uint32_t op, tarn_dtype t, const tarn_range *a, const tarn_range *b,
                         bool same) {
  const tarn_span of[3] = {{a->lo, a->hi}, {b->lo, b->hi}};
  return tarn_fx_span(op, t, of, same);
}

/* ---------------------------------------------------------------- was it rounded? */

/* A number that one multiplies and divides by exactly. */
static bool shifts(const tarn_lang *L, uint32_t f) {
  int e;
  const tarn_fx *x = tarn_fx_get(L, f);
  return x->op == TARN_FX_CONST && tarn_dtype_is_float(x->dtype) && isfinite(x->value) &&
         fabs(frexp(x->value, &e)) == 0.5;
}
static bool is_number(const tarn_lang *L, uint32_t f, double v) {
  const tarn_fx *x = tarn_fx_get(L, f);
  return x->op == TARN_FX_CONST && tarn_dtype_is_float(x->dtype) && x->value == v;
}

/* Does a float come out with an error of half a unit in its last place, by the bound of rounding.c?
 */
static bool rounds(const tarn_lang *L, const tarn_fx *x, const vrange *a, const vrange *b) {
  tarn_range r = a->r;
  switch (tarn_fx_info(x->op)->error) {
  case TARN_FXE_SIGN: return a->r.rounded;
  case TARN_FXE_STEP:
  case TARN_FXE_MODULO: return false;
  case TARN_FXE_SUM:
    if (is_number(L, x->kid[1], 0)) return a->r.rounded;
    return x->op == TARN_FX_ADD && is_number(L, x->kid[0], 0) ? b->r.rounded : true;
  case TARN_FXE_PRODUCT:
    if (shifts(L, x->kid[1])) return a->r.rounded;
    return shifts(L, x->kid[0]) ? b->r.rounded : true;
  case TARN_FXE_QUOTIENT: return shifts(L, x->kid[1]) ? a->r.rounded : true;
  case TARN_FXE_POWER: return is_number(L, x->kid[1], 1) ? a->r.rounded : true;
  case TARN_FXE_EXTREME: return vrange_widen(&r, b->r), r.rounded;
  case TARN_FXE_NONE:
  case TARN_FXE_TEST:
  case TARN_FXE_COMPARE:
  case TARN_FXE_EXP:
  case TARN_FXE_ROUND:
  case TARN_FXE_SMOOTH: break;
  }
  return true;
}

/* ---------------------------------------------------------------- expressions */

/* Of whole operands. */
static bool keeps_whole(uint32_t op) {
  tarn_fxerror e = tarn_fx_info(op)->error;
  return e == TARN_FXE_SUM || e == TARN_FXE_PRODUCT || e == TARN_FXE_EXTREME || e == TARN_FXE_SIGN;
}

static vrange of_floats(const tarn_lang *L, const tarn_fx *x, const vrange *a, const vrange *b) {
  bool two = tarn_fx_arity(x->op) == 2, same = x->kid[0] == x->kid[1],
       makes_whole = tarn_fx_info(x->op)->error == TARN_FXE_STEP;
  bool nan = a->r.nan || (two && b->r.nan) || may_be_nan(x->op, &a->r, &b->r, same);
  tarn_span s = span_of(x->op, a->type, &a->r, &b->r, same);
  vrange k = {.typed = true, .type = a->type, .r = ends(a->type, s.lo, s.hi, nan)};
  k.r.whole = makes_whole || (keeps_whole(x->op) && a->r.whole && (!two || b->r.whole));
  bool exact = k.r.whole && vrange_most(k.r) <= vrange_exact(a->type) && !makes_whole;
  k.r.rounded = !exact && rounds(L, x, a, b);
  return k;
}
/* Integers wrap: where the type's bounds may be passed they are all that is known. */
static vrange of_integers(const tarn_fx *x, const vrange *a, const vrange *b) {
  vrange k = vrange_any(a->type);
  if (x->op == TARN_FX_SHR && b->r.lo == b->r.hi && b->r.lo >= 0 && b->r.lo < 32) {
    k.r.lo = floor(ldexp(a->r.lo, -(int)b->r.lo)), k.r.hi = floor(ldexp(a->r.hi, -(int)b->r.lo));
    return k;
  }
  if (x->op == TARN_FX_AND && (a->r.lo >= 0 || b->r.lo >= 0)) { /* no bit that either has not */
    k.r.lo = 0;
    k.r.hi = fmin(a->r.lo >= 0 ? a->r.hi : k.r.hi, b->r.lo >= 0 ? b->r.hi : k.r.hi);
    return k;
  }
  if (!keeps_whole(x->op)) return k;
  tarn_span s = span_of(x->op, a->type, &a->r, &b->r, x->kid[0] == x->kid[1]);
  double most = fmin(k.r.hi, vrange_exact(TARN_F64)); /* beyond, a double would round the bounds */
  if (s.lo >= fmax(k.r.lo, -most) && s.hi <= most) k.r.lo = s.lo, k.r.hi = s.hi;
  return k;
}

static vrange of_cast(const vrange *a, tarn_dtype t) {
  vrange k = vrange_any(t), all = k;
  if (!a->typed) return k;
  bool from = tarn_dtype_is_float(a->type), to = tarn_dtype_is_float(t);
  if (t == TARN_BOOL) return k;
  if (to) {
    k.r = ends(t, a->r.lo, a->r.hi, a->r.nan);
    k.r.whole = a->r.whole && (vrange_survives(a, t) || !from);
    k.r.rounded = from && (a->r.rounded || vrange_exact(t) < vrange_exact(a->type));
    return k;
  }
  double lo = from ? trunc(a->r.lo) : a->r.lo, hi = from ? trunc(a->r.hi) : a->r.hi;
  if (from && a->r.nan) lo = fmin(lo, 0), hi = fmax(hi, 0);
  if (!from && (lo < all.r.lo || hi > all.r.hi)) return k; /* it wraps */
  k.r.lo = fmax(lo, all.r.lo), k.r.hi = fmin(hi, all.r.hi);
  return k;
}

static vrange of_node(tarn_lang *L, const tarn_fx *x, const vrange *kid) {
  if (x->op == TARN_FX_CONST) {
    tarn_value v =
        tarn_dtype_is_float(x->dtype) ? (tarn_value){.d = x->value} : (tarn_value){.i = x->ivalue};
    return vrange_value(x->dtype, v);
  }
  if (x->op == TARN_FX_CAST) return of_cast(&kid[0], x->dtype);
  if (tarn_fx_gives_bool(x->op)) return vrange_any(TARN_BOOL);
  if (x->op == TARN_FX_SEL) {
    vrange k = kid[1].typed ? kid[1] : kid[2];
    if (kid[1].typed && kid[2].typed) vrange_widen(&k.r, kid[2].r);
    else if (k.typed) k = vrange_any(k.type);
    return k;
  }
  if (!kid[0].typed || (tarn_fx_arity(x->op) > 1 && !kid[1].typed)) {
    const vrange *some = kid[0].typed ? &kid[0] : &kid[1];
    return some->typed ? vrange_any(some->type) : (vrange){0};
  }
  return tarn_dtype_is_float(kid[0].type) ? of_floats(L, x, &kid[0], &kid[1])
                                          : of_integers(x, &kid[0], &kid[1]);
}

void vrange_walk(tarn_lang *L, const fxwalk *w, const vrange *hole, uint32_t nhole, vrange *is) {
  for (uint32_t i = 0; i < w->n; i++) {
    const tarn_fx x = *tarn_fx_get(L, w->id[i]);
    vrange kid[3] = {{0}};
    for (uint32_t a = 0; a < tarn_fx_arity(x.op); a++) kid[a] = is[w->kid[i].at[a]];
    if (x.op == TARN_FX_HOLE) is[i] = x.hole < nhole ? hole[x.hole] : (vrange){0};
    else is[i] = of_node(L, &x, kid);
  }
}
vrange vrange_of(tarn_lang *L, uint32_t f, const vrange *hole, uint32_t nhole) {
  fxwalk w;
  vrange is[K_FX];
  if (!fx_walk(L, f, &w)) return (vrange){0};
  vrange_walk(L, &w, hole, nhole, is);
  return is[w.n - 1];
}

/* ---------------------------------------------------------------- stages */

/* Of what a stage reads: of children, of earlier stages. */
static vrange vrange_read(tarn_lang *L, const tarn_read *r, const vrange *leaf,
                          const vrange *stage) {
  vrange k = r->stage ? stage[r->src] : leaf[r->src];
  const tarn_imap *m = tarn_imap_get(L, r->map);
  if (!m->nguard || !k.typed) return k;
  const tarn_fx *x = tarn_fx_get(L, m->fill);
  tarn_value v =
      tarn_dtype_is_float(x->dtype) ? (tarn_value){.d = x->value} : (tarn_value){.i = x->ivalue};
  vrange_widen(&k.r, vrange_value(x->dtype, v).r);
  return k;
}

/* A sum of n terms, taken in any order. */
static vrange summed(vrange k, double n) {
  double most = vrange_most(k.r), loss = n * n * most / vrange_exact(k.type);
  bool real = tarn_dtype_is_float(k.type), one_sign = k.r.lo >= 0 || k.r.hi <= 0;
  vrange s = vrange_any(k.type);
  double lo = n * k.r.lo, hi = n * k.r.hi;
  if (n == 0) return of_number(k.type, 0);
  if (!real) {
    if (lo >= s.r.lo && hi <= s.r.hi) s.r.lo = lo, s.r.hi = hi;
    return s;
  }
  if (one_sign)
    loss = 0, lo -= fabs(lo) * n / vrange_exact(k.type), hi += fabs(hi) * n / vrange_exact(k.type);
  s.r = ends(k.type, lo - loss, hi + loss, k.r.nan || (isinf(k.r.lo) && isinf(k.r.hi)));
  s.r.whole = k.r.whole && n * most <= vrange_exact(k.type);
  s.r.rounded = n > 1 ? !s.r.whole : k.r.rounded;
  return s;
}
static vrange of_reduction(tarn_lang *L, uint32_t red, vrange k, double n) {
  const tarn_reducer *r = tarn_reducer_get(L, red);
  if (!k.typed || r->kind == TARN_RED_CUSTOM) return (vrange){0};
  if (r->kind == TARN_RED_SUM) return summed(k, n);
  if ((r->kind == TARN_RED_MAX || r->kind == TARN_RED_MIN) && n > 0) return k;
  vrange all = vrange_any(k.type);
  all.r.rounded = r->kind == TARN_RED_PROD && n > 1 && tarn_dtype_is_float(k.type);
  return all;
}

typedef struct loops { /* a stage of a nest, or of a kernel that is being changed */
  const tarn_read *read;
  uint32_t nb, ne, body, red, epi;
  const int64_t *dim; /* reduced */
  uint32_t ndim;
} loops;
static vrange of_stage(tarn_lang *L, const loops *s, const vrange *leaf, const vrange *stage) {
  vrange hole[K_READS + 1];
  double n = 1;
  if (s->nb > K_READS || s->ne > K_READS) return (vrange){0};
  for (uint32_t i = 0; i < s->nb; i++) hole[i] = vrange_read(L, &s->read[i], leaf, stage);
  vrange k = vrange_of(L, s->body, hole, s->nb);
  for (uint32_t d = 0; d < s->ndim; d++) n *= (double)s->dim[d];
  if (s->red != TARN_NONE) k = of_reduction(L, s->red, k, n);
  if (s->epi == TARN_NONE) return k;
  hole[0] = k;
  for (uint32_t i = 0; i < s->ne; i++)
    hole[i + 1] = vrange_read(L, &s->read[s->nb + i], leaf, stage);
  return vrange_of(L, s->epi, hole, s->ne + 1);
}

/* Of a nest with one output over such children; of another one nothing. */
static vrange vrange_nest(tarn_lang *L, uint32_t nest, const vrange *leaf) {
  const tarn_nest *n = tarn_nest_get(L, nest);
  vrange stage[K_STAGES];
  uint32_t outs = 0;
  if (n->nstage > K_STAGES) return (vrange){0};
  for (uint32_t i = 0; i < n->nstage; i++) {
    const tarn_stage *s = &n->stage[i];
    const tarn_func *f = tarn_fn_get(L, s->fn);
    loops l = {s->read, f->nops, f->nepi, f->body, f->red, f->epi, s->red, s->nred};
    stage[i] = of_stage(L, &l, leaf, stage);
    outs += s->out;
  }
  return outs == 1 ? stage[n->nstage - 1] : (vrange){0};
}

uint32_t vrange_holes(const rhost *h, const kern *k, const kstage *st, bool body, vrange *hole) {
  vrange leaf[K_LEAVES], stage[K_STAGES];
  uint32_t number = (uint32_t)(st - k->stage), first = !body, n = body ? st->nb : st->ne;
  for (uint32_t i = 0; i < k->nleaf; i++) {
    leaf[i] = (vrange){true, kern_leaf_type(k, i)->dtype, h->range(h->user, k->leaf[i])};
    leaf[i].r = vrange_both(leaf[i].r, vrange_any(leaf[i].type).r);
    leaf[i].r.rounded = h->range(h->user, k->leaf[i]).rounded;
  }
  for (uint32_t i = 0; i <= number; i++) {
    const kstage *s = &k->stage[i];
    loops l = {s->read, s->nb,  s->ne, s->body, s->reducer, i == number ? TARN_NONE : s->epi,
               s->red,  s->nred};
    if (i < number || !body) stage[i] = of_stage(k->L, &l, leaf, stage);
  }
  if (!body) hole[0] = stage[number];
  for (uint32_t i = 0; i < n; i++)
    hole[first + i] = vrange_read(k->L, &st->read[body ? i : st->nb + i], leaf, stage);
  return first + n;
}

/* ---------------------------------------------------------------- nodes */

/* A map of operands as they are. */
static vrange of_map(tarn_lang *L, uint32_t fn, const vrange *kid, uint32_t n) {
  const tarn_func *f = tarn_fn_get(L, fn);
  bool map = f->red == TARN_NONE && !f->ntuple && f->epi == TARN_NONE && f->nops == n;
  return map ? vrange_of(L, f->body, kid, n) : (vrange){0};
}
vrange vrange_node(tarn_lang *L, uint32_t op, uint32_t payload, uint32_t type, const vrange *kid,
                   uint32_t n) {
  const tarn_type *t = tarn_type_get(L, type);
  const tarn_payload *p = tarn_payload_get(L, payload);
  if (t->tuple) return (vrange){0};
  if (op == TARN_OP_CONST) return vrange_tensor(p->tensor);
  vrange k = vrange_any(t->dtype), of;
  uint32_t fill = TARN_NONE;
  if (op == TARN_OP_NEST || op == TARN_OP_COMPUTE) {
    of = op == TARN_OP_NEST ? vrange_nest(L, p->id, kid) : of_map(L, p->id, kid, n);
    return of.typed ? of : k;
  }
  tarn_opvalues from = tarn_op_info(op)->values;
  if (from != TARN_OPV_NEW) k = kid[0];
  for (uint32_t i = 1; from == TARN_OPV_ALL && i < n; i++) vrange_widen(&k.r, kid[i].r);
  if (op == TARN_OP_PAD) fill = p->value;
  if (op == TARN_OP_VIEW && tarn_imap_get(L, p->id)->nguard) fill = tarn_imap_get(L, p->id)->fill;
  if (fill != TARN_NONE) {
    const tarn_fx *x = tarn_fx_get(L, fill);
    tarn_value v =
        tarn_dtype_is_float(x->dtype) ? (tarn_value){.d = x->value} : (tarn_value){.i = x->ivalue};
    vrange_widen(&k.r, vrange_value(x->dtype, v).r);
  }
  return k;
}
