/* See near.h. */
#include "tune/near.h"
#include <math.h>
#include <string.h>

struct near_field {
  uint32_t n, d;
  uint32_t which[TARN_FEATURES]; /* features that differ at all */
  double scale[TARN_FEATURES], mean, variance;
  double reach,
      noise;     /* how far a measurement tells; variance of a single one relative to that of all */
  double *x;     /* n rows of d scaled features */
  double *apart; /* the square of the distance of every two */
  double *lower; /* Cholesky's factor of the covariances, relative to the variance */
  double *weight, *row;
};

static void scale_features(near_field *g, const near_point *x, uint32_t n) {
  for (uint32_t f = 0; f < TARN_FEATURES; f++) {
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < n; i++) mean += (double)x[i].feature[f] / n;
    for (uint32_t i = 0; i < n; i++)
      square += ((double)x[i].feature[f] - mean) * ((double)x[i].feature[f] - mean) / n;
    if (square > 1e-12) g->which[g->d] = f, g->scale[g->d++] = 1 / sqrt(square);
  }
}
static void to_row(const near_field *g, const float feature[TARN_FEATURES], double *row) {
  for (uint32_t i = 0; i < g->d; i++) row[i] = (double)feature[g->which[i]] * g->scale[i];
}
static double distance(const near_field *g, const double *a, const double *b) {
  double sum = 0;
  for (uint32_t i = 0; i < g->d; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum / g->d;
}
static double alike(const near_field *g, double apart) {
  return exp(-0.5 * apart / (g->reach * g->reach));
}
/* v := the solution of lower * v = v, or of its transpose. */
static void forward(const near_field *g, double *v) {
  for (uint32_t i = 0; i < g->n; i++) {
    for (uint32_t k = 0; k < i; k++) v[i] -= g->lower[i * g->n + k] * v[k];
    v[i] /= g->lower[i * g->n + i];
  }
}
static void backward(const near_field *g, double *v) {
  for (uint32_t i = g->n; i-- > 0;) {
    for (uint32_t k = i + 1; k < g->n; k++) v[i] -= g->lower[k * g->n + i] * v[k];
    v[i] /= g->lower[i * g->n + i];
  }
}
static void decompose(near_field *g) {
  uint32_t n = g->n;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j <= i; j++) {
      double v = alike(g, g->apart[i * n + j]) + (i == j ? g->noise : 0);
      for (uint32_t k = 0; k < j; k++) v -= g->lower[i * n + k] * g->lower[j * n + k];
      g->lower[i * n + j] = i == j ? sqrt(fmax(v, 1e-9)) : v / g->lower[j * n + j];
    }
}
/* The logarithm of how likely y is, but for what all settings share; the variance is the likeliest.
 */
static double settle(near_field *g, const double *y) {
  double fit = 0, volume = 0;
  decompose(g);
  memcpy(g->weight, y, g->n * sizeof *y);
  forward(g, g->weight);
  for (uint32_t i = 0; i < g->n; i++)
    fit += g->weight[i] * g->weight[i] / g->n, volume += log(g->lower[i * g->n + i]);
  backward(g, g->weight);
  g->variance = fit;
  return -0.5 * g->n * log(fit + 1e-12) - volume;
}

const near_field *near_learn(tarn_ctx *cx, const near_point *x, uint32_t n, uint32_t others) {
  static const double reach[] = {0.15, 0.3, 0.6, 1.2, 2.4}, noise[] = {0.01, 0.03, 0.1, 0.3, 1};
  if (n < NEAR_LEAST) return NULL;
  near_field *g = TARN_NEW(cx, near_field);
  *g = (near_field){.n = n};
  scale_features(g, x, n + others);
  g->x = TARN_ARRAY(cx, double, (size_t)n * g->d + 1),
  g->apart = TARN_ARRAY(cx, double, (size_t)n *n);
  g->lower = TARN_ARRAY(cx, double, (size_t)n *n);
  g->weight = TARN_ARRAY(cx, double, n), g->row = TARN_ARRAY(cx, double, n + TARN_FEATURES);
  double *y = TARN_ARRAY(cx, double, n), best = -INFINITY, of[2] = {1, 1};
  for (uint32_t i = 0; i < n; i++)
    to_row(g, x[i].feature, g->x + i * g->d), g->mean += x[i].off / n;
  for (uint32_t i = 0; i < n; i++) y[i] = x[i].off - g->mean;
  for (uint32_t i = 0; i < n && g->d; i++)
    for (uint32_t j = 0; j <= i; j++)
      g->apart[i * n + j] = distance(g, g->x + i * g->d, g->x + j * g->d);
  for (size_t a = 0; g->d && a < sizeof reach / sizeof *reach; a++)
    for (size_t b = 0; b < sizeof noise / sizeof *noise; b++) {
      g->reach = reach[a], g->noise = noise[b];
      double likely = settle(g, y);
      if (likely > best) best = likely, of[0] = reach[a], of[1] = noise[b];
    }
  g->reach = of[0], g->noise = of[1];
  if (g->d) settle(g, y);
  return g;
}
double near_off(const near_field *g, const float feature[TARN_FEATURES], double *unsure) {
  double *k = g->row, *row = g->row + g->n, off = g->mean, left = 1;
  *unsure = 0;
  if (!g->d) return off;
  to_row(g, feature, row);
  for (uint32_t i = 0; i < g->n; i++)
    k[i] = alike(g, distance(g, row, g->x + i * g->d)), off += k[i] * g->weight[i];
  forward(g, k);
  for (uint32_t i = 0; i < g->n; i++) left -= k[i] * k[i];
  *unsure = sqrt(fmax(left, 0) * g->variance);
  return off;
}
