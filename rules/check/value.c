/* Random functions, constants and elements. */
#include "rules/check/check.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- scalar expressions */

static uint32_t real_constant(gen *g, double v) {
  return tarn_dtype_is_float(g->dtype) ? tarn_fx_const(g->L, g->dtype, v)
                                       : tarn_fx_iconst(g->L, g->dtype, (int64_t)v);
}

uint32_t some_unary(gen *g, uint32_t x) {
  static const tarn_fxop op[] = {TARN_FX_NEG, TARN_FX_MAX, TARN_FX_ADD,  TARN_FX_MUL,
                                 TARN_FX_MIN, TARN_FX_ABS, TARN_FX_TANH, TARN_FX_EXP};
  static const double with[] = {0, 0, 1, 2, 1, 0, 0, 0};
  uint32_t k = draw(g, tarn_dtype_is_float(g->dtype) ? 8 : 6);
  double by = g->whole && op[k] == TARN_FX_MUL ? 0.7 : with[k]; /* which rounds */
  return tarn_fx_op(g->L, op[k], x, real_constant(g, by), 0);
}

static uint32_t binary(gen *g, uint32_t x, uint32_t y) {
  static const tarn_fxop op[] = {TARN_FX_ADD, TARN_FX_MUL, TARN_FX_SUB,
                                 TARN_FX_MAX, TARN_FX_MIN, TARN_FX_DIV};
  return tarn_fx_op(g->L, op[draw(g, sizeof op / sizeof *op)], x, y, 0);
}

/* An expression that uses all n holes. */
static uint32_t some_body(gen *g, uint32_t n) {
  uint32_t f = tarn_fx_hole(g->L, 0);
  if (chance(g, 3)) f = some_unary(g, f);
  for (uint32_t i = 1; i < n; i++) f = binary(g, f, tarn_fx_hole(g->L, i));
  if (chance(g, 2)) f = some_unary(g, f);
  return f;
}

uint32_t some_reducer(gen *g) {
  static const tarn_red_kind kind[] = {TARN_RED_SUM, TARN_RED_MAX, TARN_RED_MIN, TARN_RED_PROD};
  return tarn_reducer_of(g->L, kind[draw(g, 4)], g->dtype);
}

uint32_t some_function(gen *g, uint32_t nops, uint32_t nepi, bool reduce, uint32_t tuple) {
  uint32_t holes = tuple ? tuple : nops;
  tarn_func f = {.ntuple = (uint8_t)tuple,
                 .nops = (uint8_t)nops,
                 .nepi = (uint8_t)nepi,
                 .red = TARN_NONE,
                 .epi = TARN_NONE};
  if (!reduce) f.body = some_body(g, holes);
  else {
    f.red = chance(g, 3) ? some_reducer(g) : tarn_reducer_of(g->L, TARN_RED_SUM, g->dtype);
    f.body = tarn_fx_hole(g->L, 0);
    for (uint32_t i = 1; i < holes; i++)
      f.body = tarn_fx_op(g->L, TARN_FX_MUL, f.body, tarn_fx_hole(g->L, i), 0);
    if (chance(g, 3)) f.body = some_body(g, holes);
    if (nepi || chance(g, 5)) f.epi = some_body(g, nepi + 1);
  }
  return tarn_fn_intern(g->L, &f);
}

uint32_t some_constant(gen *g, bool finite) {
  static const double v[] = {0, 1, 2, -1, 0.5, -0.0, -INFINITY, INFINITY};
  if (g->r && g->r->numeric == TARN_RULE_REASSOC && chance(g, 3))
    return real_constant(g, some_magnitude(g));
  return real_constant(g, v[draw(g, !tarn_dtype_is_float(g->dtype) ? 4 : finite ? 6 : 8)]);
}

/* ---------------------------------------------------------------- elements */

static double tame(gen *g) {
  static const double v[] = {1, 2, -1, 3, 0, -2, 4, -3};
  uint32_t k = draw(g, 24);
  if (k < 8) return v[k];
  return ((double)draw(g, 4096) - 2048) / 1024;
}

static double wild(gen *g, bool finite) {
  static const double v[] = {-0.0, 0.1f, 3e38f, 1e-40f, -3e38f, 16777217, INFINITY, -INFINITY, NAN};
  if (!chance(g, 6)) return tame(g);
  double x = v[draw(g, finite ? 6 : 9)];
  return g->dtype == TARN_F16 && isfinite(x) && fabs(x) > 6e4 ? copysign(6e4, x) : x;
}

/* Within an instance all magnitudes are from 1e-3 to 1e3, from 1e-12 to 1e12, from 1e-30 to 1e30 or
 * from the least to the largest of the type; or most are the largest, or the least, or close to
 * 1. */
void some_span(gen *g) {
  static const uint32_t decades[] = {3, 12, 30, 39};
  static const double by[] = {0.2, 0.6, 0.25, 3};
  uint32_t how = draw(g, 6);
  bool half = g->dtype == TARN_F16;
  double end = how == 5 ? (half ? 0x1p-13 : 0x1p-124) : half ? 6e4 : 3.3e38;
  g->span = decades[how < 4 ? how : 0];
  g->ends = how > 3;
  for (uint32_t i = 0; i < 4; i++) g->seen[i] = how < 4 ? 1 : i < 2 ? by[i] * end : by[i];
}
double some_magnitude(gen *g) {
  uint32_t how = draw(g, 4), k = draw(g, 4);
  if (how == 0) return tame(g);
  double x = g->seen[k];
  if (how > 1 && !g->ends) {
    double e = ((double)draw(g, 4096) / 2048 - 1) * g->span;
    x = fmin((double)(float)pow(10, e), g->dtype == TARN_F16 ? 6e4 : 3.3e38);
    g->seen[k] = x;
  }
  return draw(g, 2) ? -x : x;
}
static double spread(gen *g, bool finite) {
  static const double v[] = {-INFINITY, INFINITY, NAN};
  if (!finite && chance(g, 16)) return v[draw(g, 3)];
  return some_magnitude(g);
}

static double element(gen *g, const leaf *f, values how) {
  bool finite = f->kind != F_WILD;
  double x = how == V_TAME ? tame(g) : how == V_STRANGE ? wild(g, finite) : spread(g, finite);
  return f->kind == F_NONNEG ? fabs(x) : x;
}

values const_values(const gen *g) {
  return g->r && g->r->numeric == TARN_RULE_REASSOC ? V_SPREAD : V_TAME;
}

/* A stretch of it -inf, as what a mask leaves. */
static void masked(gen *g, tarn_tensor *x) {
  int64_t n = tarn_tensor_count(x), from = draw(g, (uint32_t)n),
          to = from + 1 + draw(g, (uint32_t)(n - from));
  for (int64_t i = from; i < to; i++) tarn_tensor_set(x, i, (tarn_value){.d = -INFINITY});
}

enum { FEW_VALUES = 24 };
static void fill(gen *g, tarn_tensor *x, const tarn_type *t, const leaf *f, values how) {
  int64_t n = tarn_tensor_count(x);
  if (some_peaked(g, x, t, f, how)) return;
  for (int64_t i = 0; i < n; i++) {
    tarn_value v;
    if (f->kind == F_INDEX) v.i = some_place(g, f->below);
    else if (!tarn_dtype_is_float(t->dtype) && f->kind == F_UNIFORM)
      v.i = tarn_fx_get(g->L, f->uniform)->ivalue;
    else if (!tarn_dtype_is_float(t->dtype)) v.i = (int64_t)draw(g, 2001) - 1000;
    else if (f->kind == F_UNIFORM) v.d = tarn_fx_get(g->L, f->uniform)->value;
    else v.d = element(g, f, how);
    tarn_tensor_set(x, i, v);
  }
  if (how == V_SPREAD && f->kind == F_WILD && n && tarn_dtype_is_float(t->dtype) && chance(g, 4))
    masked(g, x);
}
/* Those of a large tensor follow from one number: where there may be one, of all but small ones. */
tarn_tensor *some_values(gen *g, const tarn_type *t, const leaf *f, values how) {
  tarn_tensor *x = tarn_tensor_new(g->cx, t->dtype, t->n, t->dim);
  uint64_t seed = g->t.seed;
  if (tarn_tensor_count(x) <= (g->far ? FEW_VALUES : C_LEAF)) {
    fill(g, x, t, f, how);
    return x;
  }
  g->t.seed = draw(g, 1 << 30);
  g->t.silent = true;
  fill(g, x, t, f, how);
  g->t.silent = false, g->t.seed = seed;
  return x;
}

/* ---------------------------------------------------------------- what conditions are told */

static const leaf *leaf_at(const gen *g, uint32_t term) {
  for (uint32_t i = 0; i < g->nleaf; i++)
    if (g->leaf[i].term == term) return &g->leaf[i];
  return NULL;
}

static bool host_const(void *user, uint32_t id) {
  const gen *g = user;
  return g->plain.is_const(g->plain.user, id);
}
static uint32_t host_uniform(void *user, uint32_t id) {
  const gen *g = user;
  const leaf *f = leaf_at(g, id);
  return f && f->kind == F_UNIFORM ? f->uniform : g->plain.uniform(g->plain.user, id);
}
static tarn_range host_range(void *user, uint32_t id) {
  const gen *g = user;
  const leaf *f = leaf_at(g, id);
  tarn_range r = {.lo = -INFINITY, .hi = INFINITY, .nan = true};
  if (!tarn_dtype_is_float(tarn_term_type(g->L, id)->dtype)) r.finite = true, r.nan = false;
  if (!f) return g->plain.range(g->plain.user, id);
  if (f->kind == F_WILD || f->kind == F_DERIVED) return r;
  r.finite = true, r.nan = false;
  if (f->kind == F_NONNEG) r.lo = 0;
  const tarn_fx *u = f->kind == F_UNIFORM ? tarn_fx_get(g->L, f->uniform) : NULL;
  if (u) r.lo = r.hi = tarn_dtype_is_float(u->dtype) ? u->value : (double)u->ivalue;
  if (f->kind == F_UNIFORM) r.finite = isfinite(r.lo), r.nan = isnan(r.lo);
  if (f->kind == F_CONST) return g->plain.range(g->plain.user, id);
  return r;
}
static bool host_depends(void *user, uint32_t on, uint32_t id) {
  const gen *g = user;
  return g->plain.depends(g->plain.user, on, id);
}
static unsigned host_facts(void *user, uint32_t id) {
  const gen *g = user;
  return g->plain.facts(g->plain.user, id);
}
rhost check_host(gen *g) {
  g->plain = tarn_r_term_host(g->L);
  return (rhost){.nest = kern_term_host(g->L),
                 .user = g,
                 .is_const = host_const,
                 .uniform = host_uniform,
                 .range = host_range,
                 .depends = host_depends,
                 .facts = host_facts};
}
