/* Judges results: compares each element with its expected value and its rounding error. */
#include "access/eval.h"
#include "access/judge.h"
#include <float.h>
#include <math.h>
#include <string.h>

typedef struct element {
  double got, strict, wide, error;
} element;

/* What it is held against: the wide run where that is a number, or neither is. */
static double wanted(const element *x) {
  return isfinite(x->wide) || !isfinite(x->strict) ? x->wide : x->strict;
}

static double least_normal(tarn_dtype t) {
  if (t == TARN_F16) return 0;
  return t == TARN_F64 ? DBL_MIN : (double)FLT_MIN;
}

static double largest(tarn_dtype t) {
  if (t == TARN_F16) return 65504;
  if (t == TARN_F64) return DBL_MAX;
  return t == TARN_F32 ? (double)FLT_MAX : 0x1.FEp127;
}

/* Programs round integers and 16-bit floats where the strict run does: less is left to chance. */
static double multiple(tarn_dtype t, double times) {
  return t == TARN_F32 || t == TARN_F64 ? times : times / 8;
}

static double allowed(tarn_dtype t, const element *x, double times, double rtol) {
  double want = fabs(wanted(x)), noise = multiple(t, times) * x->error;
  if (!tarn_dtype_is_float(t) || !isfinite(want)) return noise;
  return noise + rtol * want + 2 * tarn_dtype_ulp(t, want) + least_normal(t);
}

/* Of what is allowed: how much is it off? */
static double share(tarn_dtype t, const element *x, double most) {
  double want = wanted(x), off = fabs(x->got - want);
  if (isinf(x->error) || tarn_same_number(x->got, x->strict)) return 0;
  if (isfinite(off)) return off > 0 ? off / most : 0;
  if (isfinite(x->got)) return INFINITY;
  bool reached =
      isinf(x->got) && signbit(x->got) == signbit(want) && fabs(want) + most > largest(t);
  return reached ? 0 : INFINITY;
}

static element element_at(const tarn_tensor *got, const tarn_rounding *want, int64_t i) {
  return (element){tarn_tensor_number(got, i), tarn_tensor_number(want->strict, i),
                   tarn_tensor_number(want->wide, i), tarn_tensor_number(want->error, i)};
}

static const char *unlike(const tarn_tensor *a, const tarn_tensor *b) {
  if (a->dtype != b->dtype) return "another type";
  if (a->n != b->n || memcmp(a->dim, b->dim, a->n * sizeof *a->dim)) return "another shape";
  return NULL;
}

tarn_verdict tarn_judge(const tarn_tensor *got, const tarn_rounding *want, double times,
                        double rtol) {
  tarn_verdict v = {.ok = true, .wrong = unlike(got, want->strict), .at = -1, .share = -1};
  double top = 0;
  if (v.wrong) return v.ok = false, v.share = INFINITY, v;
  v.got_nan = v.want_nan = tarn_tensor_count(got) > 0 && tarn_dtype_is_float(got->dtype);
  for (int64_t i = 0, n = tarn_tensor_count(got); i < n; i++) {
    element x = element_at(got, want, i);
    double most = allowed(got->dtype, &x, times, rtol), part = share(got->dtype, &x, most);
    v.got_nan &= isnan(x.got), v.want_nan &= isnan(x.strict);
    if (isfinite(x.wide)) top = fmax(top, fabs(x.wide));
    if (isfinite(x.wide) && isfinite(x.got)) v.max_abs = fmax(v.max_abs, fabs(x.got - x.wide));
    if (part <= v.share) continue;
    v.share = part, v.at = i;
    v.got = x.got, v.wanted = wanted(&x), v.allowed = most;
  }
  v.share = fmax(v.share, 0);
  v.max_rel = top > 0 ? v.max_abs / top : v.max_abs > 0 ? INFINITY : 0;
  v.ok = v.share <= 1;
  return v;
}

const char *tarn_verdict_text(tarn_ctx *cx, const tarn_verdict *v, const char *name,
                              const tarn_tensor *got) {
  tarn_buf b = {.cx = cx};
  int64_t index[TARN_MAX_DIMS];
  tarn_buf_str(&b, name);
  if (v->wrong) return tarn_buf_fmt(&b, " has %s", v->wrong), b.p;
  if (v->at < 0) return tarn_buf_str(&b, " has no elements"), b.p;
  if (v->got_nan)
    tarn_buf_fmt(&b, " is NaN everywhere%s%s", v->want_nan ? ", as it should be" : "; ",
                 v->want_nan ? "" : name);
  if (v->got_nan && v->want_nan) return b.p;
  if (v->want_nan) tarn_buf_fmt(&b, " should be NaN everywhere; %s", name);
  tarn_tensor_index(got, v->at, index);
  for (uint32_t d = 0; d < got->n; d++)
    tarn_buf_fmt(&b, "%c%lld", d ? ',' : '[', (long long)index[d]);
  tarn_buf_fmt(&b, "%s is %.9g, %.9g is right (%.3g allowed)", got->n ? "]" : "", v->got, v->wanted,
               v->allowed);
  return b.p;
}

/* ---------------------------------------------------------------- what is expected */
/* Further runs, one after another: what several read is rounded apart; all roundings go one way; as
 * the first, but only some operators round. */
enum { APART = 6, TOWARD = APART + 2, SOME = TOWARD + 24 };
struct tarn_expected {
  tarn_lang *L;
  const tarn_term *root;
  uint32_t nroot, nin, runs;
  const tarn_binding *in;
  tarn_noise noise;
  tarn_opaque_fn *opaque;
  tarn_rounding *out;
  uint32_t closer; /* further runs that were made */
};

tarn_expected *tarn_expect(tarn_lang *L, const tarn_term *root, uint32_t nroot,
                           const tarn_binding *in, uint32_t nin, uint32_t runs, tarn_noise noise,
                           tarn_opaque_fn *opaque) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_expected *e = TARN_NEW(cx, tarn_expected);
  *e = (tarn_expected){
      .L = L, .root = root, .nroot = nroot, .in = in, .nin = nin, .runs = runs, .noise = noise};
  e->opaque = opaque;
  e->out = TARN_ARRAY(cx, tarn_rounding, nroot + 1);
  tarn_eval_rounding(L, root, nroot, in, nin, runs, noise, opaque, e->out);
  return e;
}

const tarn_rounding *tarn_expected_root(const tarn_expected *e, uint32_t root) {
  return &e->out[root];
}

/* One more noisy run, of those that look closer; false: there are no more. */
static bool look_closer(tarn_expected *e) {
  tarn_noise noise = e->noise;
  tarn_tensor **t = TARN_ARRAY(tarn_lang_ctx(e->L), tarn_tensor *, e->nroot + 1);
  uint32_t k = e->closer;
  if (k == SOME) return false;
  noise.seed += e->runs + k;
  noise.apart = k < APART || k >= TOWARD, noise.some = k >= TOWARD;
  if (k >= APART && k < TOWARD) noise.toward = k > APART ? 1 : -1;
  tarn_eval_noisy(e->L, e->root, e->nroot, e->in, e->nin, noise, e->opaque, t);
  for (uint32_t i = 0; i < e->nroot; i++) tarn_rounding_add(&e->out[i], t[i]);
  e->closer++;
  return true;
}

/* Where numbers are rounded to whole ones, or jump as remainders do, a few runs do not move each
 * element by a step that rounding may move. The wrong elements are no more than those that the runs
 * moved at least half as far, and none is off by more than twice the largest step. */
static bool are_steps(const tarn_tensor *got, const tarn_rounding *want, double times,
                      double rtol) {
  double least = INFINITY, most = 0, seen = 0;
  int64_t wrong = 0, steps = 0, n = tarn_tensor_count(got);
  for (int64_t i = 0; i < n; i++) {
    element x = element_at(got, want, i);
    double off = fabs(x.got - wanted(&x));
    if (share(got->dtype, &x, allowed(got->dtype, &x, times, rtol)) <= 1) continue;
    least = fmin(least, off);
    most = fmax(most, off);
    wrong++;
  }
  for (int64_t i = 0; i < n; i++) {
    double error = tarn_tensor_number(want->error, i);
    if (!isfinite(error)) continue;
    seen = fmax(seen, error);
    steps += 2 * error >= least;
  }
  return wrong <= steps && most <= 2 * seen;
}

tarn_verdict tarn_expected_judge(tarn_expected *e, uint32_t root, const tarn_tensor *got,
                                 double times, double rtol) {
  tarn_verdict v = tarn_judge(got, &e->out[root], times, rtol);
  bool steps = !v.ok && !v.wrong && tarn_ev_steps(e->L, e->root[root]), more = true;
  while (!v.ok && !v.wrong && more) {
    more = look_closer(e);
    v = tarn_judge(got, &e->out[root], times, rtol);
    bool look = steps && isfinite(v.share) && (!more || e->closer == TOWARD);
    if (v.ok || !look || !are_steps(got, &e->out[root], times, rtol)) continue;
    v.ok = true, v.share = 1;
  }
  return v;
}
