/* Kernels that sample images: GridSample, RoiAlign, MaxUnpool; and Det. */
#include "runtime/ref/ref_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- GridSample */

typedef struct grid {
  const tarn_ref_tensor *x;
  int64_t plane, h, w;
  bool align;
  enum { ZEROS, BORDER, REFLECTION } padding;
} grid;

/* Mirrors v at lo and hi until it lies between. */
static double mirrored(double v, double lo, double hi) {
  double range = hi - lo;
  if (!(range > 0)) return lo;
  double d = fmod(fabs(v - lo), 2 * range);
  return d > range ? lo + 2 * range - d : lo + d;
}

static double bounded(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }

static double padded(const grid *g, double v, int64_t extent) {
  double last = (double)(extent - 1);
  if (g->padding == BORDER) return bounded(v, 0, last);
  if (g->padding == REFLECTION)
    return bounded(g->align ? mirrored(v, 0, last) : mirrored(v, -0.5, last + 0.5), 0, last);
  return v;
}

static double pixel(const grid *g, double row, double column) {
  row = padded(g, row, g->h);
  column = padded(g, column, g->w);
  if (!(row >= 0 && column >= 0 && row <= (double)(g->h - 1) && column <= (double)(g->w - 1)))
    return 0;
  return ref_get(g->x, (g->plane * g->h + (int64_t)row) * g->w + (int64_t)column);
}

/* What has no weight has no part in the result, infinite or not. */
static double weighed(const grid *g, double weight, double row, double column) {
  return weight == 0 ? 0 : weight * pixel(g, row, column);
}

static double bilinear(const grid *g, double y, double x) {
  double r = floor(y), c = floor(x), fy = y - r, fx = x - c;
  return weighed(g, (1 - fy) * (1 - fx), r, c) + weighed(g, (1 - fy) * fx, r, c + 1) +
         weighed(g, fy * (1 - fx), r + 1, c) + weighed(g, fy * fx, r + 1, c + 1);
}

/* Keys' cubic with a = -0.75. */
static double cubic(double d) {
  const double a = -0.75;
  d = fabs(d);
  return d <= 1  ? ((a + 2) * d - (a + 3)) * d * d + 1
         : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                 : 0;
}

static double bicubic(const grid *g, double y, double x) {
  double r = floor(y), c = floor(x), sum = 0;
  for (int i = -1; i <= 2; i++)
    for (int j = -1; j <= 2; j++)
      sum += weighed(g, cubic(y - r - i) * cubic(x - c - j), r + i, c + j);
  return sum;
}

static double denormalised(const grid *g, double v, int64_t extent) {
  return g->align ? (v + 1) / 2 * (double)(extent - 1) : ((v + 1) * (double)extent - 1) / 2;
}

int ref_grid_sample(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *at = &c->in[1], *out = &c->out[0];
  const char *mode = ref_str(c, "mode", "bilinear"), *padding = ref_str(c, "padding_mode", "zeros");
  grid g = {x, 0, x->dim[2], x->dim[3], ref_int(c, "align_corners", 0), ZEROS};
  g.padding = strcmp(padding, "border") == 0       ? BORDER
              : strcmp(padding, "reflection") == 0 ? REFLECTION
                                                   : ZEROS;
  bool nearest = strcmp(mode, "nearest") == 0,
       smooth = strcmp(mode, "bicubic") == 0 || strcmp(mode, "cubic") == 0;
  int64_t area = out->dim[2] * out->dim[3], channels = x->dim[1];
  for (int64_t i = 0, count = ref_count(out); i < count; i++) {
    int64_t where = (i / (area * channels) * area + i % area) * 2;
    double v = denormalised(&g, ref_get(at, where), g.w),
           u = denormalised(&g, ref_get(at, where + 1), g.h);
    g.plane = i / area;
    if (!(fabs(v) < 1e15 && fabs(u) < 1e15))
      v = u = -1e15; /* outside, whatever the padding makes of it */
    if (!smooth) v = padded(&g, v, g.w), u = padded(&g, u, g.h);
    ref_set(out, i,
            nearest  ? pixel(&g, nearbyint(u), nearbyint(v))
            : smooth ? bicubic(&g, u, v)
                     : bilinear(&g, u, v));
  }
  return 0;
}

/* ---------------------------------------------------------------- regions of interest */

/* The four corners around (y, x) and their weights; outside by more than a pixel: nothing. */
static int corners(int64_t h, int64_t w, double y, double x, int64_t *at, double *weight) {
  if (!(y >= -1 && y <= (double)h && x >= -1 && x <= (double)w) || h == 0 || w == 0) return 0;
  y = y > 0 ? y : 0;
  x = x > 0 ? x : 0;
  int64_t r = (int64_t)y, c = (int64_t)x, r1 = r + 1, c1 = c + 1;
  if (r >= h - 1) r = r1 = h - 1, y = (double)r;
  if (c >= w - 1) c = c1 = w - 1, x = (double)c;
  double fy = y - (double)r, fx = x - (double)c;
  at[0] = r * w + c, at[1] = r * w + c1, at[2] = r1 * w + c, at[3] = r1 * w + c1;
  weight[0] = (1 - fy) * (1 - fx), weight[1] = (1 - fy) * fx, weight[2] = fy * (1 - fx),
  weight[3] = fy * fx;
  return 4;
}

typedef struct bin {
  double y, x, height, width;
  int64_t rows, columns;
} bin;

/* Samples on a grid inside the bin: their mean, or the largest weighted corner (ONNX's max). */
static double sampled(const tarn_ref_tensor *x, int64_t plane, const bin *b, bool max) {
  int64_t h = x->dim[2], w = x->dim[3], at[4];
  double weight[4], sum = 0, most = -INFINITY;
  for (int64_t i = 0; i < b->rows; i++)
    for (int64_t j = 0; j < b->columns; j++) {
      double y = b->y + ((double)i + 0.5) * b->height / (double)b->rows;
      int k =
          corners(h, w, y, b->x + ((double)j + 0.5) * b->width / (double)b->columns, at, weight);
      if (k == 0) most = most > 0 ? most : 0;
      for (int q = 0; q < k; q++) {
        double v = weight[q] == 0 ? 0 : weight[q] * ref_get(x, plane * h * w + at[q]);
        sum += v;
        most = v > most ? v : most;
      }
    }
  int64_t count = b->rows * b->columns;
  return max ? (isinf(most) ? 0 : most) : count ? sum / (double)count : 0;
}

#define MAX_SAMPLES 4096

static bool bin_of(tarn_ref_call *c, const tarn_ref_tensor *boxes, int64_t roi, int64_t i,
                   int64_t j, bin *b) {
  double scale = ref_real(c, "spatial_scale", 1), ph = (double)c->out[0].dim[2],
         pw = (double)c->out[0].dim[3];
  bool half = strcmp(ref_str(c, "coordinate_transformation_mode", "half_pixel"), "half_pixel") == 0;
  double shift = half ? 0.5 : 0, v[4];
  for (int k = 0; k < 4; k++) v[k] = ref_get(boxes, roi * 4 + k) * scale - shift;
  double width = v[2] - v[0], height = v[3] - v[1];
  if (!half) width = width > 1 ? width : 1, height = height > 1 ? height : 1;
  int64_t ratio = ref_int(c, "sampling_ratio", 0);
  b->height = height / ph, b->width = width / pw;
  if (!(fabs(b->height) <= MAX_SAMPLES && fabs(b->width) <= MAX_SAMPLES && ratio <= MAX_SAMPLES))
    return false;
  b->y = v[1] + (double)i * b->height, b->x = v[0] + (double)j * b->width;
  b->rows = ratio > 0 ? ratio : (int64_t)ceil(b->height);
  b->columns = ratio > 0 ? ratio : (int64_t)ceil(b->width);
  return true;
}

int ref_roi_align(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *boxes = &c->in[1], *batch = &c->in[2], *out = &c->out[0];
  bool max = strcmp(ref_str(c, "mode", "avg"), "max") == 0;
  if (batch->n != 1 || batch->dim[0] != boxes->dim[0])
    return ref_fail(c, "one batch index per box is needed");
  for (int64_t k = 0, count = ref_count(out); k < count; k++) {
    int64_t area = out->dim[2] * out->dim[3], roi = k / (area * x->dim[1]),
            channel = k / area % x->dim[1];
    int64_t image = ref_get_int(batch, roi);
    bin b;
    if (image < 0 || image >= x->dim[0]) return ref_outside(c, "a batch index");
    if (!bin_of(c, boxes, roi, k % area / out->dim[3], k % out->dim[3], &b))
      return ref_fail(c, "a box is too large");
    ref_set(out, k, sampled(x, image * x->dim[1] + channel, &b, max));
  }
  return 0;
}

/* ---------------------------------------------------------------- MaxUnpool */

/* Indices are flat positions in the output that strides and kernel imply, placed at the start of
 * output_shape. */
int ref_max_unpool(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *index = &c->in[1], *out = &c->out[0];
  const tarn_ref_attr *kernel = ref_attr(c, "kernel_shape"), *stride = ref_attr(c, "strides"),
                      *pads = ref_attr(c, "pads");
  int64_t dim[16], count = ref_count(x), whole = 1;
  memset(out->data, 0, (size_t)ref_count(out) * ref_size(out->dtype));
  if (x->n > 16 || ref_count(index) != count || index->n != x->n)
    return ref_fail(c, "the indices do not fit the input");
  for (int32_t i = 0; i < x->n; i++) {
    int32_t k = i - 2, r = x->n - 2;
    dim[i] = x->dim[i];
    if (k >= 0)
      dim[i] = (x->dim[i] - 1) * (stride ? stride->is[k] : 1) + kernel->is[k] -
               (pads ? pads->is[k] + pads->is[r + k] : 0);
    whole *= dim[i];
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t at = ref_get_int(index, i), to = 0, scale = 1;
    bool inside = at >= 0 && at < whole;
    for (int32_t k = x->n - 1; inside && k >= 0; k--) {
      int64_t v = at % dim[k];
      inside = v < out->dim[k];
      at /= dim[k];
      to += v * scale;
      scale *= out->dim[k];
    }
    if (!inside) return ref_outside(c, "an index");
    memcpy((char *)out->data + (size_t)to * ref_size(out->dtype),
           (const char *)x->data + (size_t)i * ref_size(x->dtype), ref_size(x->dtype));
  }
  return 0;
}

/* ---------------------------------------------------------------- Det */

/* Gaussian elimination with partial pivoting. */
static double determinant(double *a, int64_t n) {
  double det = 1;
  for (int64_t k = 0; k < n; k++) {
    int64_t p = k;
    for (int64_t i = k + 1; i < n; i++)
      if (fabs(a[i * n + k]) > fabs(a[p * n + k])) p = i;
    if (a[p * n + k] == 0) return 0;
    if (p != k) det = -det;
    for (int64_t j = k; p != k && j < n; j++) {
      double t = a[k * n + j];
      a[k * n + j] = a[p * n + j];
      a[p * n + j] = t;
    }
    det *= a[k * n + k];
    for (int64_t i = k + 1; i < n; i++) {
      double f = a[i * n + k] / a[k * n + k];
      for (int64_t j = k; j < n; j++) a[i * n + j] -= f * a[k * n + j];
    }
  }
  return det;
}

int ref_det(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0];
  int64_t n = x->dim[x->n - 1];
  double *a = malloc((size_t)(n * n + 1) * sizeof *a);
  if (!a) return ref_fail(c, "out of memory");
  for (int64_t k = 0, count = ref_count(&c->out[0]); k < count; k++) {
    for (int64_t i = 0; i < n * n; i++) a[i] = ref_get(x, k * n * n + i);
    ref_set(&c->out[0], k, determinant(a, n));
  }
  free(a);
  return 0;
}
