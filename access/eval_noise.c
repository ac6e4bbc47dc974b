/* The reference interpreter: noisy runs, which estimate the rounding error of each element.
 *
 * The processor's rounding direction is drawn for a few values at a time, and each operator
 * computed in f64 in that direction: a result that f64 cannot hold then lies beyond the number of
 * the type that it would else be taken for, so that rounding it once more in the same direction
 * rounds the exact result.  Directions are not drawn for each value: changing them takes as long as
 * ten additions. */
#include "access/eval.h"
#include "access/fx_internal.h"
#include "access/judge.h"
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define DIRECTED 16 /* values that are rounded in the same direction */
#define OFF      4  /* elementary functions: units in the last place */

bool tarn_ev_draw_rounding(tarn_ev *e) {
  bool up = e->noise.toward ? e->noise.toward > 0 : tarn_random(&e->random) >> 63;
  fesetround(up ? FE_UPWARD : FE_DOWNWARD);
  return up;
}

void tarn_ev_restore_rounding(void) { fesetround(FE_TONEAREST); }

static tarn_value wide_step(const tarn_fxstep *s, const tarn_value *const *kid, uint32_t v) {
  const tarn_value in[3] = {kid[0][v], kid[1][v], kid[2][v]};
  return tarn_fx_step(s->op, (tarn_dtype)s->dtype, (tarn_dtype)s->out, in, TARN_WIDE);
}

static void directed_general(tarn_ev *e, const tarn_fxstep *s, const tarn_value *const *kid,
                             uint32_t at, uint32_t end, tarn_value *out) {
  bool up = tarn_ev_draw_rounding(e);
  for (uint32_t v = at; v < end; v++) out[v] = wide_step(s, kid, v);
  tarn_ev_restore_rounding();
  for (uint32_t v = at; v < end; v++)
    out[v].d = tarn_round_toward((tarn_dtype)s->out, out[v].d, up);
}

/* A processor that rounds up takes the largest number and a little for infinite, and down, what is
 * beyond for the largest. */
static void turn_lanes(tarn_ev *e, const tarn_fxstep *s, tarn_lane_fn *lanes,
                       const tarn_value *const *kid, uint32_t at, uint32_t end, tarn_value *out) {
  bool large = false;
  tarn_ev_draw_rounding(e);
  lanes(out + at, kid[0] + at, kid[1] + at, end - at);
  tarn_ev_restore_rounding();
  for (uint32_t v = at; s->out == TARN_F32 && v < end; v++)
    large |= !(fabs(out[v].d) < (double)FLT_MAX);
  if (large) directed_general(e, s, kid, at, end, out);
}

static void round_once(tarn_ev *e, const tarn_fxstep *s, tarn_lane_fn *lanes,
                       const tarn_value *const *kid, uint32_t n, tarn_value *out) {
  for (uint32_t at = 0; at < n; at += DIRECTED) {
    uint32_t end = at + DIRECTED < n ? at + DIRECTED : n;
    if (lanes) turn_lanes(e, s, lanes, kid, at, end, out);
    else directed_general(e, s, kid, at, end, out);
  }
}

static void be_off(tarn_ev *e, tarn_dtype t, double most, uint32_t n, tarn_value *v) {
  for (uint32_t i = 0; i < n; i++)
    v[i].d = tarn_round_to(t, v[i].d * (1 + most * tarn_random_unit(&e->random)));
}

/* A number that was counted or chosen: its last bits are zero. */
static bool is_short(tarn_dtype t, double v) {
  float f = (float)v;
  uint64_t d;
  uint32_t b;
  memcpy(&d, &v, sizeof d);
  memcpy(&b, &f, sizeof b);
  return t == TARN_F32 ? !(b & 0x3FF) : !(d & 0x3FF);
}

/* Sums that another order would round. */
static void shift(tarn_ev *e, tarn_dtype t, const tarn_value *a, const tarn_value *b, uint32_t n,
                  tarn_value *out) {
  for (uint32_t i = 0; i < n; i++) {
    double large = fmax(fabs(a[i].d), fabs(b[i].d)), by = tarn_random_unit(&e->random);
    if (a[i].d == 0 || b[i].d == 0 || !isfinite(large) ||
        (is_short(t, a[i].d) && is_short(t, b[i].d)))
      continue;
    by += by < 0 ? -0.5 : 0.5; /* 0.5 to 1.5 of a unit */
    if (e->noise.toward) by = e->noise.toward * fabs(by);
    out[i].d = tarn_round_to(t, out[i].d + by * tarn_dtype_ulp(t, large));
  }
}

static bool is_power_of_two(double v) {
  int exponent;
  return fabs(frexp(v, &exponent)) == 0.5;
}
/* Quotients that a product with the reciprocal would round. */
static void shift_quotients(tarn_ev *e, tarn_dtype t, const tarn_value *by, uint32_t n,
                            tarn_value *out) {
  for (uint32_t i = 0; i < n; i++) {
    double unit = tarn_random_unit(&e->random), v = out[i].d;
    if (v == 0 || !isfinite(v) || is_power_of_two(by[i].d)) continue;
    unit += unit < 0 ? -0.5 : 0.5;
    if (e->noise.toward) unit = e->noise.toward * fabs(unit);
    out[i].d = tarn_round_to(t, v + unit * tarn_dtype_ulp(t, v));
  }
}

/* What other ways to compute the same round, exact or not: f16 and bf16 are rounded as written. */
static void shift_also(tarn_ev *e, const tarn_fxstep *s, const tarn_value *const *kid, uint32_t n,
                       tarn_value *out) {
  tarn_dtype t = (tarn_dtype)s->out;
  if (t != TARN_F32 && t != TARN_F64) return;
  if (s->op == TARN_FX_ADD || s->op == TARN_FX_SUB) shift(e, t, kid[0], kid[1], n, out);
  else if (s->op == TARN_FX_DIV) shift_quotients(e, t, kid[1], n, out);
}

bool tarn_ev_noise(tarn_ev *e, const tarn_fxstep *s, tarn_lane_fn *lanes,
                   const tarn_value *const *kid, double products, uint32_t n, tarn_value *out) {
  tarn_dtype t = (tarn_dtype)s->out;
  if (!tarn_dtype_is_float(t) || tarn_ev_skips(e)) return false;
  switch (tarn_fx_info(s->op)->rounds) {
  case TARN_FXR_ONCE:
    round_once(e, s, lanes, kid, n, out);
    if (s->op == TARN_FX_MUL && products > 0) be_off(e, t, products, n, out);
    if (e->noise.sums) shift_also(e, s, kid, n, out);
    return true;
  case TARN_FXR_LIB:
    for (uint32_t v = 0; v < n; v++) out[v] = wide_step(s, kid, v);
    be_off(e, t, OFF * tarn_dtype_ulp(t, 1), n, out);
    return true;
  case TARN_FXR_NEVER: break;
  }
  return false;
}

void tarn_eval_noisy(tarn_lang *L, const tarn_term *root, uint32_t nroot, const tarn_binding *in,
                     uint32_t nin, tarn_noise noise, tarn_opaque_fn *opaque, tarn_tensor **out) {
  tarn_ev e = {.L = L,
               .cx = tarn_lang_ctx(L),
               .mode = TARN_STRICT,
               .noisy = true,
               .noise = noise,
               .random = noise.seed};
  tarn_ev_roots(&e, root, nroot, in, nin, opaque, out);
}

/* ---------------------------------------------------------------- what rounding does */
/* A run's distance from wide; where one of them is no number and the run is not as strict,
 * infinite. */
static double distance(double run, double wide, double strict) {
  if (isfinite(run) && isfinite(wide)) return fabs(run - wide);
  return tarn_same_number(run, strict) || tarn_same_number(run, wide) ? 0 : INFINITY;
}

void tarn_rounding_add(tarn_rounding *r, const tarn_tensor *run) {
  for (int64_t i = 0, n = tarn_tensor_count(run); i < n; i++) {
    double x = tarn_tensor_number(run, i), wide = tarn_tensor_number(r->wide, i);
    double d = distance(x, wide, tarn_tensor_number(r->strict, i));
    if (d > tarn_tensor_get(r->error, i).d) tarn_tensor_set(r->error, i, (tarn_value){.d = d});
  }
}

void tarn_eval_rounding(tarn_lang *L, const tarn_term *root, uint32_t nroot, const tarn_binding *in,
                        uint32_t nin, uint32_t runs, tarn_noise noise, tarn_opaque_fn *opaque,
                        tarn_rounding *out) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_tensor **t = TARN_ARRAY(cx, tarn_tensor *, nroot + 1);
  tarn_eval(L, root, nroot, in, nin, TARN_STRICT, opaque, t);
  for (uint32_t i = 0; i < nroot; i++) out[i].strict = t[i];
  tarn_eval(L, root, nroot, in, nin, TARN_WIDE, opaque, t);
  for (uint32_t i = 0; i < nroot; i++) {
    out[i].wide = t[i];
    out[i].error = tarn_tensor_new(cx, TARN_F64, t[i]->n, t[i]->dim);
    tarn_rounding_add(&out[i], out[i].strict);
  }
  for (uint32_t k = 0; k < runs; k++, noise.seed++) {
    tarn_eval_noisy(L, root, nroot, in, nin, noise, opaque, t);
    for (uint32_t i = 0; i < nroot; i++) tarn_rounding_add(&out[i], t[i]);
  }
}
