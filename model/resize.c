/* Resize and Upsample, one axis after the other: the nearest element is a view, interpolation a sum
 * of weighted views (two taps an axis for linear, four for cubic), with more taps (antialias) a
 * reduction over gathered elements. An element of weight 0 is left out: were it infinite, it would
 * spoil a result that it has no part in.
 * Source: ONNX Resize; Keys, "Cubic convolution interpolation for digital image processing", 1981.
 */
#include "model/import.h"
#include <math.h>
#include <string.h>

typedef struct resize {
  im_node *n;
  const char *mode, *coordinates, *nearest, *policy;
  double cubic_a, outside;
  bool exclude_outside, antialias;
  uint32_t rank;
  int64_t in[TARN_MAX_DIMS], out[TARN_MAX_DIMS];
  double scale[TARN_MAX_DIMS];
  double lo[TARN_MAX_DIMS], hi[TARN_MAX_DIMS]; /* roi, for tf_crop_and_resize */
  uint32_t axes;                               /* those that are resized */
  tarn_term roi;                               /* that the run has; TARN_NONE: lo, hi */
  uint32_t roi_at[TARN_MAX_DIMS], nroi; /* by axis, where lo stands in it; hi is nroi later */
} resize;

/* Where output element i lies in the input. Lengths are whole, as ONNX's text and ONNX Runtime have
 * them; two of ONNX's node tests (downsample_scales_…_align_corners) take in · scale, unrounded.
 * For one pixel, pytorch_half_pixel is as in ONNX's tests, which differs from its text for cubic.
 */
static double source(const resize *r, uint32_t axis, int64_t i) {
  const char *how = r->coordinates;
  double x = (double)i, scale = r->scale[axis], centre = (x + 0.5) / scale;
  double last = (double)(r->in[axis] - 1), out_last = (double)(r->out[axis] - 1);
  bool one = r->out[axis] == 1;
  if (strcmp(how, "asymmetric") == 0) return x / scale;
  if (strcmp(how, "align_corners") == 0) return one ? 0 : x * last / out_last;
  if (strcmp(how, "pytorch_half_pixel") == 0) return one ? -0.5 : centre - 0.5;
  if (strcmp(how, "tf_half_pixel_for_nn") == 0) return centre;
  if (strcmp(how, "half_pixel_symmetric") == 0) {
    double in = (double)r->in[axis], adjust = (double)r->out[axis] / (scale * in);
    return in / 2 * (1 - adjust) + centre - 0.5;
  }
  if (strcmp(how, "tf_crop_and_resize") == 0) {
    double lo = r->lo[axis], hi = r->hi[axis];
    return one ? 0.5 * (lo + hi) * last : lo * last + x * (hi - lo) * last / out_last;
  }
  if (strcmp(how, "half_pixel") != 0) im_bad(r->n, "coordinates %s are unknown", how);
  return centre - 0.5;
}

static int64_t clamp(int64_t v, int64_t most) { return v < 0 ? 0 : v > most ? most : v; }

static int64_t nearest(const resize *r, uint32_t axis, double x) {
  if (strcmp(r->nearest, "simple") == 0) return (int64_t)(r->scale[axis] < 1 ? ceil(x) : floor(x));
  if (strcmp(r->nearest, "floor") == 0) return (int64_t)floor(x);
  if (strcmp(r->nearest, "ceil") == 0) return (int64_t)ceil(x);
  if (strcmp(r->nearest, "round_prefer_ceil") == 0) return (int64_t)floor(x + 0.5);
  if (strcmp(r->nearest, "round_prefer_floor") != 0)
    im_bad(r->n, "nearest_mode %s is unknown", r->nearest);
  return (int64_t)ceil(x - 0.5);
}

static bool crops(const resize *r) { return strcmp(r->coordinates, "tf_crop_and_resize") == 0; }
static bool interpolates(const resize *r) { return strcmp(r->mode, "nearest") != 0; }

/* ---------------------------------------------------------------- taps of one axis */

#define FEW_TAPS 4 /* each a term of its own */
typedef struct taps {
  uint32_t axis;
  int64_t k, first; /* taps an element, from floor(x) + first on */
  double stretch;   /* of the filter */
  int64_t *index;   /* by tap, then by output element */
  double *weight;
  tarn_tensor *outside; /* bool per output element: outside the input; NULL when none is */
} taps;

static double filter(const resize *r, double d) {
  double a = r->cubic_a;
  d = fabs(d);
  if (strcmp(r->mode, "linear") == 0) return d < 1 ? 1 - d : 0;
  if (d == 1 || d >= 2) return 0;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

/* As far as the filter goes: 1 or 2 elements of the input, or of the output where it is smaller. */
static taps taps_of(const resize *r, uint32_t axis) {
  double reach = strcmp(r->mode, "cubic") == 0 ? 2 : 1, scale = r->scale[axis];
  taps t = {.axis = axis, .k = 1, .stretch = r->antialias && scale < 1 ? scale : 1};
  if (!interpolates(r)) return t;
  if (!(reach / t.stretch < (double)IM_MAX_MADE)) im_bad(r->n, "scale %g is out of range", scale);
  t.first = (int64_t)floor(-reach / t.stretch) + 1;
  t.k = 2 - 2 * t.first;
  return t;
}

static void scale_weights(double *w, int64_t k) {
  double sum = 0;
  for (int64_t j = 0; j < k; j++) sum += w[j];
  for (int64_t j = 0; sum != 0 && j < k; j++) w[j] /= sum;
}

/* Weights of the taps of the element at x; the first tap's index. */
static int64_t weigh(const resize *r, const taps *t, double x, double *w) {
  int64_t base = (int64_t)floor(x), first = base + t->first;
  double frac = x - (double)base;
  for (int64_t j = 0; j < t->k; j++) w[j] = filter(r, ((double)(t->first + j) - frac) * t->stretch);
  if (t->stretch != 1) scale_weights(w, t->k);
  if (!r->exclude_outside) return first;
  for (int64_t j = 0; j < t->k; j++)
    if (first + j < 0 || first + j >= r->in[t->axis]) w[j] = 0;
  scale_weights(w, t->k);
  return first;
}

/* Few taps: one of weight 0 takes half of what the heaviest has, and its element, which changes
 * no result; so none is multiplied by 0. */
static void share(double *w, int64_t *at, int64_t k) {
  int64_t top = 0;
  for (int64_t j = 1; j < k; j++)
    if (fabs(w[j]) > fabs(w[top])) top = j;
  for (int64_t j = 0; j < k; j++) {
    if (w[j] != 0) continue;
    w[top] /= 2;
    w[j] = w[top];
    at[j] = at[top];
  }
}

static void taps_at(const resize *r, const taps *t, int64_t i, double x) {
  int64_t in = r->in[t->axis], out = r->out[t->axis];
  double *w = TARN_ARRAY(r->n->cx, double, t->k);
  int64_t *at = TARN_ARRAY(r->n->cx, int64_t, t->k);
  int64_t first = interpolates(r) ? weigh(r, t, x, w) : nearest(r, t->axis, x);
  for (int64_t j = 0; j < t->k; j++) at[j] = clamp(first + j, in - 1);
  if (t->k > 1 && t->k <= FEW_TAPS) share(w, at, t->k);
  for (int64_t j = 0; j < t->k; j++) t->index[j * out + i] = at[j], t->weight[j * out + i] = w[j];
}

static void make_taps(const resize *r, taps *t) {
  im_node *n = r->n;
  int64_t in = r->in[t->axis], out = r->out[t->axis];
  bool any = false;
  if (t->k > IM_MAX_MADE / out)
    im_bad(n, "extent %lld of %lld taps is too large", (long long)out, (long long)t->k);
  t->index = TARN_ARRAY(n->cx, int64_t, t->k * out + 1);
  t->weight = TARN_ARRAY(n->cx, double, t->k *out + 1);
  t->outside = im_new(n, TARN_BOOL, 1, &out);
  for (int64_t i = 0; i < out; i++) {
    double x = source(r, t->axis, i);
    bool off = crops(r) && (x < 0 || x > (double)(in - 1));
    if (!(fabs(x) < 1e15)) im_bad(n, "a coordinate is not finite");
    any |= off;
    tarn_tensor_set(t->outside, i, (tarn_value){.i = off});
    tarn_mark scratch = tarn_arena_mark(n->cx);
    taps_at(r, t, i, x);
    tarn_release(n->cx, scratch);
  }
  if (!any) t->outside = NULL;
}

/* ---------------------------------------------------------------- one axis of a box of the run */

/* A formula for the pixel of a place, or the one before it. */
static const char *rounded(const resize *r) {
  static const char *const by[][2] = {{"floor", "(floor $0)"},
                                      {"ceil", "(ceil $0)"},
                                      {"round_prefer_ceil", "(floor (add $0 0.5))"},
                                      {"round_prefer_floor", "(ceil (sub $0 0.5))"}};
  if (interpolates(r)) return "(floor $0)";
  for (size_t i = 0; i < sizeof by / sizeof *by; i++)
    if (strcmp(by[i][0], r->nearest) == 0) return by[i][1];
  im_bad(r->n, "nearest_mode %s is unknown", r->nearest);
}

/* filter() at each distance. */
static tarn_term weight_at(const resize *r, tarn_term d) {
  im_param a[] = {{"a", r->cubic_a, 0}};
  if (strcmp(r->mode, "linear") == 0) return im_el(r->n, "(max 0 (sub 1 $0))", 1, d);
  return im_elp(
      r->n,
      "(select (lt $0 1) (add (mul (mul (sub (mul (add a 2) $0) (add a 3)) $0) $0) 1)"
      " (select (lt $0 2) (sub (mul (add (mul (sub (mul a $0) (mul 5 a)) $0) (mul 8 a)) $0)"
      " (mul 4 a)) 0))",
      a, 1, 1, d);
}

/* Where the output's elements lie in the input, in f64: a vector, or one place for all. */
static tarn_term places_of(const resize *r, uint32_t axis) {
  im_node *n = r->n;
  int64_t at = r->roi_at[axis], out = r->out[axis];
  tarn_term lo = im_cast(n, im_pick(n, r->roi, 0, at), TARN_F64),
            hi = im_cast(n, im_pick(n, r->roi, 0, at + r->nroi), TARN_F64);
  im_param p[] = {{"last", (double)(r->in[axis] - 1), 0}, {"steps", (double)(out - 1), 0}};
  if (out == 1)
    return im_reshape(n, im_elp(n, "(mul (mul 0.5 (add $0 $1)) last)", p, 2, 2, lo, hi), 1, &out);
  return im_elp(n, "(add (mul $0 last) (div (mul (mul $2 (sub $1 $0)) last) steps))", p, 2, 3, lo,
                hi, im_iota(n, TARN_F64, out));
}

/* (taps, out): each tap's weight, which lies at `at`. */
static tarn_term weights_of_run(const resize *r, const taps *t, tarn_term v, tarn_term at) {
  im_node *n = r->n;
  im_param p[] = {{"stretch", t->stretch, 0}, {"last", (double)(r->in[t->axis] - 1), 0}};
  tarn_term w = weight_at(r, im_elp(n, "(abs (mul (sub $0 $1) stretch))", p, 2, 2, at, v));
  if (r->exclude_outside)
    w = im_elp(n, "(select (and (le 0 $1) (le $1 last)) $0 0)", p, 2, 2, w, at);
  if (!r->exclude_outside && t->stretch == 1) return w;
  tarn_term sum = im_reduce(n, w, 1, TARN_NONE, TARN_RED_SUM, true);
  return im_el(n, "(select (eq $1 0) $0 (div $0 $1))", 2, w, sum);
}

/* A vector of the axis, or (taps, out), for broadcasting over the dims behind it. */
static tarn_term before_others(const resize *r, uint32_t axis, tarn_term t) {
  im_dims d = im_shape(r->n, t);
  for (uint32_t i = axis + 1; i < r->rank; i++) d.d[d.n++] = 1;
  return im_reshape(r->n, t, d.n, d.d);
}

/* What lies outside of the input, or nowhere, is the value for it. */
static tarn_term axis_of_run(const resize *r, tarn_term x, uint32_t axis) {
  im_node *n = r->n;
  taps t = taps_of(r, axis);
  im_param p[] = {{"last", (double)(r->in[axis] - 1), 0}, {"v", r->outside, (int64_t)r->outside}};
  tarn_term v = places_of(r, axis);
  tarn_term inside = im_elp(n, "(and (le 0 $0) (le $0 last))", p, 1, 1, v);
  v = im_el(n, "(select $1 $0 0)", 2, v, inside);
  im_param first = {"first", (double)t.first, 0};
  tarn_term number = im_reshape(n, im_iota(n, TARN_F64, t.k), 2, (int64_t[]){t.k, 1});
  tarn_term base = im_el(n, rounded(r), 1, v),
            at = im_elp(n, "(add $0 (add $1 first))", &first, 1, 2, base, number);
  tarn_term y = im_gather(n, x, axis, im_elp(n, "(cast i64 (max 0 (min last $0)))", p, 1, 1, at));
  if (interpolates(r)) {
    tarn_term w = before_others(r, axis, im_cast(n, weights_of_run(r, &t, v, at), im_type(n, x)));
    y = im_el(n, "(select (eq $1 0) 0 (mul $0 $1))", 2, y, w);
  }
  y = interpolates(r) ? im_reduce(n, y, 1u << axis, TARN_NONE, TARN_RED_SUM, false)
                      : im_drop(n, y, axis);
  return im_elp(n, "(select $1 $0 v)", p, 2, 2, y, before_others(r, axis, inside));
}

/* ---------------------------------------------------------------- one axis in terms */

/* A vector along an axis, for broadcasting over rank dims. */
static tarn_term along(im_node *n, const tarn_tensor *v, uint32_t axis, uint32_t rank) {
  int64_t dim[TARN_MAX_DIMS];
  for (uint32_t i = axis; i < rank; i++) dim[i - axis] = i == axis ? v->dim[0] : 1;
  return im_reshape(n, im_const(n, v), rank - axis, dim);
}

/* The weights of taps from ... on, `count` of them, as a vector. */
static tarn_tensor *weights(im_node *n, tarn_dtype t, const double *w, int64_t count) {
  tarn_tensor *v = im_new(n, t, 1, &count);
  for (int64_t i = 0; i < count; i++) tarn_tensor_set(v, i, (tarn_value){.d = w[i]});
  return v;
}

static tarn_term few_taps(const resize *r, const taps *t, tarn_term x) {
  im_node *n = r->n;
  int64_t out = r->out[t->axis];
  tarn_term y = TARN_NONE;
  for (int64_t k = 0; k < t->k; k++) {
    tarn_term part = im_take(n, x, t->axis, t->index + k * out, out);
    tarn_term w = along(n, weights(n, im_type(n, x), t->weight + k * out, out), t->axis, r->rank);
    y = k == 0 ? im_el(n, "(mul $0 $1)", 2, part, w)
               : im_el(n, "(add $0 (mul $1 $2))", 3, y, part, w);
  }
  return y;
}

/* (…,in,…) -> (…,k·out,…) -> (…,k,out,…), multiplied by weights and summed over k. */
static tarn_term many_taps(const resize *r, const taps *t, tarn_term x) {
  im_node *n = r->n;
  int64_t out = r->out[t->axis], count = t->k * out;
  if (r->rank == TARN_MAX_DIMS) im_bad(n, "%u dims are too many", r->rank);
  tarn_term part = im_take(n, x, t->axis, t->index, count);
  tarn_term w = im_const(n, weights(n, im_type(n, x), t->weight, count));
  im_dims d = im_shape(n, part), column = {.n = r->rank - t->axis + 1};
  memmove(d.d + t->axis + 1, d.d + t->axis, (r->rank - t->axis) * sizeof *d.d);
  d.d[t->axis] = t->k, d.d[t->axis + 1] = out;
  for (uint32_t i = 0; i < column.n; i++) column.d[i] = i < 2 ? d.d[t->axis + i] : 1;
  bool all = true;
  for (int64_t i = 0; i < count; i++) all &= t->weight[i] != 0;
  const char *weighed = all ? "(mul $0 $1)" : "(select (eq $1 0) 0 (mul $0 $1))";
  part = im_reshape(n, part, r->rank + 1, d.d);
  tarn_term y = im_el(n, weighed, 2, part, im_reshape(n, w, column.n, column.d));
  return im_reduce(n, y, 1u << t->axis, TARN_NONE, TARN_RED_SUM, false);
}

static tarn_term resize_axis(const resize *r, tarn_term x, uint32_t axis) {
  im_node *n = r->n;
  int64_t out = r->out[axis];
  if (out > IM_MAX_MADE) im_bad(n, "extent %lld is too large", (long long)out);
  if (r->in[axis] == 0 && out != 0) im_bad(n, "an empty axis cannot be resized");
  if (out == 0) return im_cut(n, x, axis, 0, 0, 1);
  if (r->roi != TARN_NONE && r->axes >> axis & 1) return axis_of_run(r, x, axis);
  taps t = taps_of(r, axis);
  make_taps(r, &t);
  tarn_term y = !interpolates(r)  ? im_take(n, x, axis, t.index, out)
                : t.k <= FEW_TAPS ? few_taps(r, &t, x)
                                  : many_taps(r, &t, x);
  im_param p = {"v", r->outside, (int64_t)r->outside};
  if (!t.outside) return y;
  tarn_term keep[] = {along(n, t.outside, axis, r->rank), y};
  return im_map(n, im_formula(n, "(select $0 v $1)", im_type(n, x), &p, 1), keep, 2);
}

/* Integers are interpolated as reals that hold them, and cut off. */
static void resize_all(const resize *r) {
  tarn_term x = im_arg(r->n, 0);
  tarn_dtype t = im_type(r->n, x);
  if (interpolates(r) && !tarn_dtype_is_float(t))
    x = im_cast(r->n, x, tarn_dtype_size(t) < 4 ? TARN_F32 : TARN_F64);
  for (uint32_t i = 0; i < r->rank; i++) {
    bool whole = !crops(r) || (r->lo[i] == 0 && r->hi[i] == 1 && r->roi == TARN_NONE);
    if (r->out[i] != r->in[i] || r->scale[i] != 1 || !whole) x = resize_axis(r, x, i);
  }
  im_set(r->n, 0, im_cast(r->n, x, t));
}

/* ---------------------------------------------------------------- what a node asks for */

static const double *reals(im_node *n, uint32_t i, const char *what, uint32_t count) {
  const tarn_tensor *t = im_known(n, n->in[i], what);
  if (t->n != 1 || !tarn_dtype_is_float(t->dtype)) im_bad(n, "%s is not a list of reals", what);
  if (t->dim[0] != (int64_t)count)
    im_bad(n, "%s has %lld entries, %u are needed", what, (long long)t->dim[0], count);
  double *v = TARN_ARRAY(n->cx, double, count + 1);
  for (uint32_t k = 0; k < count; k++) v[k] = tarn_tensor_get(t, k).d;
  return v;
}

static void check_mode(resize *r) {
  if (strcmp(r->mode, "bilinear") == 0) r->mode = "linear";
  if (interpolates(r) && strcmp(r->mode, "linear") != 0 && strcmp(r->mode, "cubic") != 0)
    im_bad(r->n, "mode %s is unknown", r->mode);
}

static resize new_resize(im_node *n) {
  resize r = {.n = n, .mode = im_attr_str(n, "mode", "nearest"), .policy = "stretch"};
  r.roi = TARN_NONE;
  im_dims d = im_shape(n, im_arg(n, 0));
  r.rank = d.n;
  for (uint32_t i = 0; i < d.n; i++) {
    r.in[i] = r.out[i] = d.d[i];
    r.scale[i] = r.hi[i] = 1;
  }
  check_mode(&r);
  return r;
}

/* The axes that sizes, scales and roi are about (as of 18); all of them where none are given. */
static uint32_t read_axes(resize *r, uint32_t *axis) {
  uint32_t k;
  const int64_t *given = im_attr_ints(r->n, "axes", &k);
  if (!given) k = r->rank;
  if (k > r->rank) im_bad(r->n, "%u axes of %u", k, r->rank);
  for (uint32_t i = 0; i < k; i++) {
    axis[i] = given ? im_axis(r->n, given[i], r->rank) : i;
    if (r->axes >> axis[i] & 1) im_bad(r->n, "an axis occurs twice");
    r->axes |= 1u << axis[i];
  }
  return k;
}

/* As in ONNX's inference of shapes the product is one of floats. */
static void by_scales(resize *r, const double *scale, const uint32_t *axis, uint32_t k) {
  for (uint32_t i = 0; i < k; i++) {
    uint32_t a = axis[i];
    float extent = (float)r->in[a] * (float)scale[i];
    if (crops(r)) extent *= (float)(r->hi[a] - r->lo[a]);
    if (!(scale[i] > 0 && extent < 1e12f)) im_bad(r->n, "scale %g is out of range", scale[i]);
    r->scale[a] = scale[i];
    r->out[a] = extent < 0 ? 0 : (int64_t)floorf(extent);
  }
}

/* One scale for all axes (as of 18). */
static void keep_aspect(resize *r, const uint32_t *axis, uint32_t k) {
  bool larger = strcmp(r->policy, "not_smaller") == 0;
  if (strcmp(r->policy, "stretch") == 0 || k == 0) return;
  if (!larger && strcmp(r->policy, "not_larger") != 0)
    im_bad(r->n, "keep_aspect_ratio_policy %s is unknown", r->policy);
  double best = r->scale[axis[0]];
  for (uint32_t i = 1; i < k; i++) {
    double s = r->scale[axis[i]];
    best = larger ? fmax(best, s) : fmin(best, s);
  }
  for (uint32_t i = 0; i < k; i++) {
    r->scale[axis[i]] = best;
    r->out[axis[i]] = (int64_t)floor(best * (double)r->in[axis[i]] + 0.5);
  }
}

static void by_sizes(resize *r, const uint32_t *axis, uint32_t k) {
  uint32_t given;
  const int64_t *sizes = im_ints(r->n, 3, "sizes", &given);
  if (given != k) im_bad(r->n, "%u sizes for %u axes", given, k);
  for (uint32_t i = 0; i < k; i++) {
    uint32_t a = axis[i];
    if (sizes[i] < 0) im_bad(r->n, "extent %lld", (long long)sizes[i]);
    r->out[a] = sizes[i];
    r->scale[a] = r->in[a] ? (double)sizes[i] / (double)r->in[a] : 1;
  }
  keep_aspect(r, axis, k);
}

static bool absent(im_node *n, uint32_t i) {
  if (im_opt(n, i) == TARN_NONE) return true;
  im_dims d = im_shape(n, n->in[i]->t);
  return im_count(&d) == 0;
}

static void read_roi(resize *r, const uint32_t *axis, uint32_t k) {
  if (!crops(r) || absent(r->n, 1)) return;
  if (!im_is_known(r->n, 1) && !absent(r->n, 3)) { /* with scales it gives the shape */
    im_dims d = im_shape(r->n, r->roi = im_arg(r->n, 1));
    if (d.n != 1 || d.d[0] != 2 * k) im_bad(r->n, "roi does not have %u entries", 2 * k);
    for (uint32_t i = 0; i < k; i++) r->roi_at[axis[i]] = i;
    r->nroi = k;
    return;
  }
  const double *roi = reals(r->n, 1, "roi", 2 * k);
  for (uint32_t i = 0; i < k; i++) r->lo[axis[i]] = roi[i], r->hi[axis[i]] = roi[k + i];
}

void im_do_resize(im_node *n) {
  resize r = new_resize(n);
  uint32_t axis[TARN_MAX_DIMS], k = read_axes(&r, axis);
  r.coordinates = im_attr_str(n, "coordinate_transformation_mode", "half_pixel");
  r.nearest = im_attr_str(n, "nearest_mode", "round_prefer_floor");
  r.policy = im_attr_str(n, "keep_aspect_ratio_policy", "stretch");
  r.cubic_a = im_attr_real(n, "cubic_coeff_a", -0.75);
  r.outside = im_attr_real(n, "extrapolation_value", 0);
  r.exclude_outside = im_attr_int(n, "exclude_outside", 0);
  r.antialias = im_attr_int(n, "antialias", 0);
  read_roi(&r, axis, k);
  if (!absent(n, 3)) by_sizes(&r, axis, k);
  else if (!absent(n, 2)) by_scales(&r, reals(n, 2, "scales", k), axis, k);
  else im_bad(n, "neither scales nor sizes are given");
  resize_all(&r);
}

/* Before operator set 11: i / scale rounded down; up where Resize makes an axis smaller. */
static void old_resize(im_node *n, const double *scale, const char *how) {
  resize r = new_resize(n);
  uint32_t axis[TARN_MAX_DIMS], k = read_axes(&r, axis);
  r.coordinates = "asymmetric";
  r.nearest = how;
  by_scales(&r, scale, axis, k);
  resize_all(&r);
}

void im_do_resize_by_scales(im_node *n) {
  uint32_t rank = im_shape(n, im_arg(n, 0)).n;
  old_resize(n, reals(n, 1, "scales", rank), strcmp(n->op, "Resize") == 0 ? "simple" : "floor");
}

void im_do_upsample(im_node *n) {
  const Onnx__AttributeProto *a = im_attr(n, "scales");
  uint32_t rank = im_shape(n, im_arg(n, 0)).n;
  if (!a || a->n_floats != rank) im_bad(n, "scales do not have %u entries", rank);
  double scale[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < rank; i++) scale[i] = (double)a->floats[i];
  old_resize(n, scale, "floor");
}
