/* Signal operators: windows and mel weights are constants, transforms are products with constant
 * matrices. */
#include "model/import.h"
#include <math.h>
#include <string.h>

static tarn_dtype output_type(im_node *n, const char *attr) {
  tarn_dtype t;
  int64_t code = im_attr_int(n, attr, 1);
  if (code < 0 || code > 100 || !im_dtype((int32_t)code, &t))
    im_bad(n, "type %lld is not supported", (long long)code);
  return t;
}

static int64_t length_of(im_node *n, uint32_t i, const char *what) {
  double v = im_real(n, i, what);
  if (!(v >= 0 && v <= (double)IM_MAX_MADE)) im_bad(n, "%s %g is out of range", what, v);
  return (int64_t)v;
}

static tarn_value scalar_of(tarn_dtype t, double v) {
  return tarn_dtype_is_float(t) ? (tarn_value){.d = v} : (tarn_value){.i = (int64_t)v};
}

static double pi(void) { return acos(-1.0); }

/* a0 - a1·cos(2πi/N) + a2·cos(4πi/N), N the size or (symmetric) one less. */
void im_do_window(im_node *n) {
  static const struct {
    const char *op;
    double a[3];
  } kinds[] = {{"HannWindow", {0.5, 0.5, 0}},
               {"HammingWindow", {25.0 / 46, 1 - 25.0 / 46, 0}},
               {"BlackmanWindow", {0.42, 0.5, 0.08}}};
  int64_t size = length_of(n, 0, "size");
  double period = (double)(im_attr_int(n, "periodic", 1) ? size : size - 1);
  tarn_dtype t = output_type(n, "output_datatype");
  tarn_tensor *w = im_new(n, t, 1, &size);
  for (size_t k = 0; k < 3; k++)
    for (int64_t i = 0; strcmp(kinds[k].op, n->op) == 0 && i < size; i++) {
      double x = 2 * pi() * (double)i / period;
      tarn_tensor_set(
          w, i, scalar_of(t, kinds[k].a[0] - kinds[k].a[1] * cos(x) + kinds[k].a[2] * cos(2 * x)));
    }
  im_set_tensor(n, 0, w);
}

static double mel(double hz) { return 2595 * log10(1 + hz / 700); }
static double hertz(double m) { return 700 * (pow(10, m / 2595) - 1); }

/* Triangles between the DFT bins of equally spaced mel frequencies; ONNX MelWeightMatrix. */
void im_do_mel_weights(im_node *n) {
  int64_t bands = length_of(n, 0, "num_mel_bins"), dft = length_of(n, 1, "dft_length"),
          dim[] = {dft / 2 + 1, bands};
  double rate = im_real(n, 2, "sample_rate"), lo = mel(im_real(n, 3, "lower_edge_hertz")),
         hi = mel(im_real(n, 4, "upper_edge_hertz"));
  tarn_dtype t = output_type(n, "output_datatype");
  if (!(rate > 0)) im_bad(n, "sample_rate %g is out of range", rate);
  tarn_tensor *w = im_new(n, t, 2, dim);
  double step = (hi - lo) / (double)(bands + 2);
  for (int64_t b = 0; b < bands; b++) {
    double edge[3];
    for (int k = 0; k < 3; k++)
      edge[k] = floor((double)(dft + 1) * hertz((double)(b + k) * step + lo) / rate);
    for (int64_t f = 0; f < dim[0]; f++) {
      double x = (double)f, v = 0;
      if (edge[1] == edge[0] && x == edge[1]) v = 1;
      else if (x >= edge[0] && x <= edge[1]) v = (x - edge[0]) / (edge[1] - edge[0]);
      else if (x > edge[1] && x < edge[2]) v = (edge[2] - x) / (edge[2] - edge[1]);
      tarn_tensor_set(w, f * bands + b, scalar_of(t, v));
    }
  }
  im_set_tensor(n, 0, w);
}

/* The matrix (time, 2 in, frequency, 2 out) of a transform of `length`: a complex product per
 * entry. */
static tarn_term fourier(im_node *n, tarn_dtype t, int64_t time, int64_t length, int64_t bins,
                         bool complex_in, bool inverse) {
  int64_t parts = complex_in ? 2 : 1, dim[] = {time, parts, bins, 2};
  tarn_tensor *m = im_new(n, t, 4, dim);
  double scale = inverse ? 1 / (double)length : 1, sign = inverse ? 1 : -1;
  for (int64_t i = 0; i < time; i++)
    for (int64_t f = 0; f < bins; f++) {
      double angle = sign * 2 * pi() * (double)((i * f) % length) / (double)length;
      double c = cos(angle) * scale, s = sin(angle) * scale;
      int64_t at = (i * parts * bins + f) * 2, next = at + bins * 2;
      tarn_tensor_set(m, at, (tarn_value){.d = c});
      tarn_tensor_set(m, at + 1, (tarn_value){.d = s});
      if (complex_in) {
        tarn_tensor_set(m, next, (tarn_value){.d = -s});
        tarn_tensor_set(m, next + 1, (tarn_value){.d = c});
      }
    }
  return im_const(n, m);
}

/* The matrix (frequency, 2 in, time, 1 out) back from the half of a real signal's spectrum: each
 * frequency but 0 and the highest of an even length stands for two. */
static tarn_term half_fourier(im_node *n, tarn_dtype t, int64_t bins, int64_t length) {
  int64_t dim[] = {bins, 2, length, 1};
  tarn_tensor *m = im_new(n, t, 4, dim);
  for (int64_t f = 0; f < bins; f++)
    for (int64_t i = 0; i < length; i++) {
      double angle = 2 * pi() * (double)((i * f) % length) / (double)length;
      double times = (f == 0 || 2 * f == length ? 1 : 2) / (double)length;
      tarn_tensor_set(m, 2 * f * length + i, (tarn_value){.d = cos(angle) * times});
      tarn_tensor_set(m, (2 * f + 1) * length + i, (tarn_value){.d = -sin(angle) * times});
    }
  return im_const(n, m);
}

/* x (…, time at `axis`, …, 1 or 2): the product with the matrix, frequencies in the place of time.
 */
static tarn_term transform(im_node *n, tarn_term x, uint32_t axis, tarn_term matrix) {
  im_dims d = im_shape(n, x);
  uint8_t lx[TARN_MAX_DIMS], lm[] = {(uint8_t)axis, (uint8_t)(d.n - 1), 100, 101},
                             lo[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < d.n; i++) lo[i] = lx[i] = (uint8_t)i;
  lo[axis] = 100;
  lo[d.n - 1] = 101;
  return im_contract(n, x, lx, matrix, lm, lo, d.n);
}

static tarn_term dft_along(im_node *n, uint32_t axis) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  bool inverse = im_attr_int(n, "inverse", 0), onesided = im_attr_int(n, "onesided", 0);
  bool half = inverse && onesided;
  int64_t whole = half ? 2 * (d.d[axis] - 1) : d.d[axis];
  int64_t length = im_opt(n, 1) == TARN_NONE ? whole : length_of(n, 1, "dft_length");
  if (length < 1) im_bad(n, "dft_length %lld is out of range", (long long)length);
  if (half && d.d[d.n - 1] != 2) im_bad(n, "half a spectrum needs complex numbers");
  int64_t bins = onesided ? length / 2 + 1 : length, most = half ? bins : length;
  int64_t time = d.d[axis] < most ? d.d[axis] : most;
  tarn_term m = half ? half_fourier(n, im_type(n, x), time, length)
                     : fourier(n, im_type(n, x), time, length, bins, d.d[d.n - 1] == 2, inverse);
  return transform(n, im_cut(n, x, axis, 0, time, 1), axis, m);
}

/* Among the dims but the last, which is not counted: a number below 0 is one more. */
static tarn_term axis_of_run(im_node *n) {
  im_param p = {"nowhere", 0, INT64_MAX};
  tarn_term number = im_cast(n, im_arg(n, 2), TARN_I64);
  return im_elp(n, "(select (lt $0 0) (select (eq $0 -1) nowhere (add $0 1)) $0)", &p, 1, 1,
                number);
}

void im_do_dft(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  if (d.n < 3 || d.d[d.n - 1] < 1 || d.d[d.n - 1] > 2)
    im_bad(n, "the last dim holds neither real nor complex numbers");
  if (!tarn_dtype_is_float(im_type(n, x))) im_bad(n, "integers are not supported");
  bool by_input = n->version >= 20, given = by_input && im_opt(n, 2) != TARN_NONE;
  if (given && !im_is_known(n, 2) && !im_attr_int(n, "onesided", 0)) { /* else it gives the shape */
    im_set(n, 0, im_by_axis(n, axis_of_run(n), d.n - 1, dft_along));
    return;
  }
  int64_t at = given ? im_int(n, 2, "axis") : by_input ? -2 : im_attr_int(n, "axis", 1);
  if (at == -1) im_bad(n, "the last dim cannot be transformed");
  im_set(n, 0, dft_along(n, im_axis(n, at < 0 ? at + 1 : at, d.n - 1)));
}

/* (batch, samples, 1 or 2) -> windows (batch, frames, frame, parts), times the window, transformed.
 */
void im_do_stft(im_node *n) {
  tarn_term x = im_arg(n, 0), window = im_opt(n, 2);
  im_dims d = im_shape(n, x);
  /* Exporters write real signals without the last dim, and ONNX Runtime takes them. */
  if (d.n == 2) {
    d.d[d.n++] = 1;
    x = im_reshape(n, x, d.n, d.d);
  }
  int64_t step = length_of(n, 1, "frame_step"), length;
  if (im_opt(n, 3) != TARN_NONE) length = length_of(n, 3, "frame_length");
  else length = window != TARN_NONE ? im_shape(n, window).d[0] : 0;
  if (d.n != 3 || d.d[2] < 1 || d.d[2] > 2 || !tarn_dtype_is_float(im_type(n, x)))
    im_bad(n, "the signal is not (batch, samples) or (batch, samples, 1 or 2)");
  if (step < 1 || length < 1 || length > d.d[1])
    im_bad(n, "frames of %lld every %lld do not fit", (long long)length, (long long)step);
  static const uint32_t last[] = {0, 2, 1}, back[] = {0, 2, 3, 1};
  int64_t one = 1;
  tarn_term f = tarn_access(n->L, 2, im_permute(n, x, last));
  f = tarn_windows(n->L, &length, &step, &one, f); /* ((batch, parts, frames), (frame)) */
  f = im_permute(n, tarn_access(n->L, 4, f), back);
  if (window != TARN_NONE) {
    int64_t column[] = {length, 1};
    f = im_el(n, "(mul $0 $1)", 2, f, im_reshape(n, window, 2, column));
  }
  int64_t bins = im_attr_int(n, "onesided", 1) ? length / 2 + 1 : length;
  im_set(n, 0,
         transform(n, f, 2, fourier(n, im_type(n, x), length, length, bins, d.d[2] == 2, false)));
}
