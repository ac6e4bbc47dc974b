/* Resize and Upsample, one axis after the other: the nearest element is a view, interpolation a sum of weighted views
 * (two taps an axis for linear, four for cubic).
 * Source: ONNX Resize; Keys, "Cubic convolution interpolation for digital image processing", 1981. */
#include "model/import.h"
#include <math.h>
#include <string.h>

im_handler im_do_resize_by_scales, im_do_resize, im_do_upsample;

typedef struct resize {
  im_node *n;
  const char *mode, *coordinates, *nearest;
  double cubic_a, outside;
  bool exclude_outside;
  double lo, hi; /* roi of this axis, for tf_crop_and_resize */
} resize;

/* Where output element i lies in the input. */
static double source(const resize *r, int64_t i, int64_t in, int64_t out, double scale) {
  double x = (double)i, width = scale * (double)in;
  if (strcmp(r->coordinates, "asymmetric") == 0) return x / scale;
  if (strcmp(r->coordinates, "align_corners") == 0) return width == 1 ? 0 : x * (double)(in - 1) / (width - 1);
  if (strcmp(r->coordinates, "pytorch_half_pixel") == 0) return width > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (strcmp(r->coordinates, "tf_half_pixel_for_nn") == 0) return (x + 0.5) / scale;
  if (strcmp(r->coordinates, "half_pixel_symmetric") == 0) {
    double adjust = (double)out / width, centre = (double)in / 2;
    return centre * (1 - adjust) + (x + 0.5) / scale - 0.5;
  }
  if (strcmp(r->coordinates, "tf_crop_and_resize") == 0) {
    double last = (double)(in - 1);
    return out > 1 ? r->lo * last + x * (r->hi - r->lo) * last / (double)(out - 1) : 0.5 * (r->lo + r->hi) * last;
  }
  if (strcmp(r->coordinates, "half_pixel") != 0) im_bad(r->n, "coordinates %s are unknown", r->coordinates);
  return (x + 0.5) / scale - 0.5;
}

static int64_t nearest(const resize *r, double x) {
  if (strcmp(r->nearest, "floor") == 0) return (int64_t)floor(x);
  if (strcmp(r->nearest, "ceil") == 0) return (int64_t)ceil(x);
  if (strcmp(r->nearest, "round_prefer_ceil") == 0) return (int64_t)floor(x + 0.5);
  if (strcmp(r->nearest, "round_prefer_floor") != 0) im_bad(r->n, "nearest_mode %s is unknown", r->nearest);
  return (int64_t)ceil(x - 0.5);
}

static int64_t inside(int64_t i, int64_t in) { return i < 0 ? 0 : i >= in ? in - 1 : i; }

static bool crops(const resize *r) { return strcmp(r->coordinates, "tf_crop_and_resize") == 0; }

#define MAX_TAPS 4
typedef struct taps {
  uint32_t k;
  int64_t out;
  int64_t *index[MAX_TAPS];
  tarn_tensor *weight[MAX_TAPS];
  tarn_tensor *outside; /* bool per output element: outside the input; NULL when none is */
} taps;

static void cubic_weights(const resize *r, double t, double *w) {
  double a = r->cubic_a;
  for (int k = 0; k < 4; k++) {
    double d = fabs(t - (k - 1));
    w[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
}

/* Taps of one output element at x: first index and weights. */
static int64_t weigh(const resize *r, const taps *t, double x, int64_t in, double *w) {
  int64_t base = (int64_t)floor(x);
  double frac = x - (double)base, sum = 0;
  if (t->k == 2) w[0] = 1 - frac, w[1] = frac;
  else cubic_weights(r, frac, w);
  int64_t first = base - (int64_t)(t->k / 2 - 1);
  for (uint32_t k = 0; k < t->k; k++) {
    if (r->exclude_outside && (first + k < 0 || first + k >= in)) w[k] = 0;
    sum += w[k];
  }
  for (uint32_t k = 0; r->exclude_outside && sum != 0 && k < t->k; k++) w[k] /= sum;
  return first;
}

static void make_taps(const resize *r, taps *t, tarn_dtype dt, int64_t in, int64_t out, double scale) {
  bool any = false;
  t->out = out;
  for (uint32_t k = 0; k < t->k; k++) {
    t->weight[k] = im_new(r->n, dt, 1, &out);
    t->index[k] = TARN_ARRAY(r->n->cx, int64_t, out + 1);
  }
  t->outside = im_new(r->n, TARN_BOOL, 1, &out);
  for (int64_t i = 0; i < out; i++) {
    double x = source(r, i, in, out, scale), w[MAX_TAPS] = {1};
    bool off = crops(r) && (x < 0 || x > (double)(in - 1));
    if (!(fabs(x) < 1e15)) im_bad(r->n, "a coordinate is not finite");
    int64_t first = t->k == 1 ? nearest(r, x) : weigh(r, t, x, in, w);
    any |= off;
    tarn_tensor_set(t->outside, i, (tarn_value){.i = off});
    for (uint32_t k = 0; k < t->k; k++) {
      t->index[k][i] = inside(first + k, in);
      tarn_tensor_set(t->weight[k], i, (tarn_value){.d = w[k]});
    }
  }
  if (!any) t->outside = NULL;
}

/* A vector along an axis, for broadcasting over rank dims. */
static tarn_term along(im_node *n, const tarn_tensor *v, uint32_t axis, uint32_t rank) {
  int64_t dim[TARN_MAX_DIMS];
  for (uint32_t i = axis; i < rank; i++) dim[i - axis] = i == axis ? v->dim[0] : 1;
  return im_reshape(n, im_const(n, v), rank - axis, dim);
}

static tarn_term resize_axis(const resize *r, tarn_term x, uint32_t axis, int64_t out, double scale) {
  im_node *n = r->n;
  im_dims d = im_shape(n, x);
  taps t = {.k = strcmp(r->mode, "nearest") == 0 ? 1 : strcmp(r->mode, "cubic") == 0 ? 4 : 2};
  if (out > IM_MAX_MADE) im_bad(n, "extent %lld is too large", (long long)out);
  if (d.d[axis] == 0 && out != 0) im_bad(n, "an empty axis cannot be resized");
  make_taps(r, &t, im_type(n, x), d.d[axis], out, scale);
  tarn_term y = im_take(n, x, axis, t.index[0], out);
  for (uint32_t k = 0; t.k > 1 && k < t.k; k++) {
    tarn_term part = im_take(n, x, axis, t.index[k], out), w = along(n, t.weight[k], axis, d.n);
    y = k == 0 ? im_el(n, "(mul $0 $1)", 2, part, w) : im_el(n, "(add $0 (mul $1 $2))", 3, y, part, w);
  }
  im_param p = {"v", r->outside, (int64_t)r->outside};
  if (!t.outside) return y;
  tarn_term keep[] = {along(n, t.outside, axis, d.n), y};
  return im_map(n, im_formula(n, "(select $0 v $1)", im_type(n, x), &p, 1), keep, 2);
}

static tarn_term resize_all(resize *r, tarn_term x, const int64_t *out, const double *scale, const double *roi) {
  uint32_t rank = im_shape(r->n, x).n;
  for (uint32_t i = 0; i < rank; i++) {
    r->lo = roi ? roi[i] : 0;
    r->hi = roi ? roi[rank + i] : 1;
    if (out[i] == im_shape(r->n, x).d[i] && scale[i] == 1 && !(crops(r) && (r->lo != 0 || r->hi != 1))) continue;
    x = resize_axis(r, x, i, out[i], scale[i]);
  }
  return x;
}

static void check_mode(resize *r) {
  if (strcmp(r->mode, "bilinear") == 0) r->mode = "linear";
  if (strcmp(r->mode, "nearest") != 0 && strcmp(r->mode, "linear") != 0 && strcmp(r->mode, "cubic") != 0)
    im_bad(r->n, "mode %s is unknown", r->mode);
  if (strcmp(r->mode, "nearest") != 0 && !tarn_dtype_is_float(im_type(r->n, im_arg(r->n, 0))))
    im_bad(r->n, "interpolation of integers is not supported");
}

static double *reals(im_node *n, uint32_t i, const char *what, uint32_t count) {
  const tarn_tensor *t = im_known(n, n->in[i], what);
  if (t->n != 1 || t->dim[0] != (int64_t)count || !tarn_dtype_is_float(t->dtype))
    im_bad(n, "%s does not have %u entries", what, count);
  double *v = TARN_ARRAY(n->cx, double, count + 1);
  for (uint32_t k = 0; k < count; k++) v[k] = tarn_tensor_get(t, k).d;
  return v;
}

static void by_scales(resize *r, const double *scale, const double *roi) {
  tarn_term x = im_arg(r->n, 0);
  im_dims d = im_shape(r->n, x);
  int64_t out[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < d.n; i++) {
    double extent = (double)d.d[i] * scale[i] * (crops(r) && roi ? roi[d.n + i] - roi[i] : 1);
    if (!(scale[i] > 0 && extent < 1e12)) im_bad(r->n, "scale %g is out of range", scale[i]);
    out[i] = extent < 0 ? 0 : (int64_t)floor(extent);
  }
  im_set(r->n, 0, resize_all(r, x, out, scale, roi));
}

/* Sizes with keep_aspect_ratio_policy (as of 18): one scale for all axes. */
static void keep_aspect(resize *r, const im_dims *d, int64_t *out, double *scale) {
  const char *policy = im_attr_str(r->n, "keep_aspect_ratio_policy", "stretch");
  if (strcmp(policy, "stretch") == 0) return;
  double best = scale[0];
  for (uint32_t i = 1; i < d->n; i++)
    if (strcmp(policy, "not_larger") == 0 ? scale[i] < best : scale[i] > best) best = scale[i];
  for (uint32_t i = 0; i < d->n; i++) {
    scale[i] = best;
    out[i] = (int64_t)floor(best * (double)d->d[i] + 0.5);
  }
}

static void by_sizes(resize *r, const double *roi) {
  im_node *n = r->n;
  im_dims d = im_shape(n, im_arg(n, 0));
  uint32_t k;
  const int64_t *sizes = im_ints(n, 3, "sizes", &k);
  int64_t out[TARN_MAX_DIMS];
  double scale[TARN_MAX_DIMS];
  if (k != d.n) im_bad(n, "%u sizes for %u dims", k, d.n);
  for (uint32_t i = 0; i < k; i++) {
    out[i] = sizes[i];
    if (out[i] < 0) im_bad(n, "extent %lld", (long long)out[i]);
    scale[i] = d.d[i] ? (double)out[i] / (double)d.d[i] : 1;
  }
  keep_aspect(r, &d, out, scale);
  im_set(n, 0, resize_all(r, im_arg(n, 0), out, scale, roi));
}

static bool absent(im_node *n, uint32_t i) {
  if (im_opt(n, i) == TARN_NONE) return true;
  im_dims d = im_shape(n, n->in[i]->t);
  return im_count(&d) == 0;
}

void im_do_resize(im_node *n) {
  resize r = {.n = n, .mode = im_attr_str(n, "mode", "nearest")};
  r.coordinates = im_attr_str(n, "coordinate_transformation_mode", "half_pixel");
  r.nearest = im_attr_str(n, "nearest_mode", "round_prefer_floor");
  r.cubic_a = im_attr_real(n, "cubic_coeff_a", -0.75);
  r.outside = im_attr_real(n, "extrapolation_value", 0);
  r.exclude_outside = im_attr_int(n, "exclude_outside", 0);
  if (im_attr_int(n, "antialias", 0)) im_bad(n, "antialias is not supported");
  check_mode(&r);
  uint32_t rank = im_shape(n, im_arg(n, 0)).n;
  double *roi = crops(&r) && !absent(n, 1) ? reals(n, 1, "roi", 2 * rank) : NULL;
  if (!absent(n, 3)) by_sizes(&r, roi);
  else if (!absent(n, 2)) by_scales(&r, reals(n, 2, "scales", rank), roi);
  else im_bad(n, "neither scales nor sizes are given");
}

/* Before operator set 11: floor(i / scale). */
static resize old_resize(im_node *n) {
  resize r = {.n = n, .mode = im_attr_str(n, "mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"};
  check_mode(&r);
  return r;
}

void im_do_resize_by_scales(im_node *n) {
  resize r = old_resize(n);
  by_scales(&r, reals(n, 1, "scales", im_shape(n, im_arg(n, 0)).n), NULL);
}

void im_do_upsample(im_node *n) {
  resize r = old_resize(n);
  const Onnx__AttributeProto *a = im_attr(n, "scales");
  uint32_t rank = im_shape(n, im_arg(n, 0)).n;
  if (!a || a->n_floats != rank) im_bad(n, "scales do not have %u entries", rank);
  double scale[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < rank; i++) scale[i] = (double)a->floats[i];
  by_scales(&r, scale, NULL);
}
