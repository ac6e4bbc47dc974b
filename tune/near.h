/* Predicts from a kernel's measured schedules how far the price of similar ones is off.
 *
 * A Gaussian process (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006,
 * chapters 2 and 5) on the features, each divided by its standard deviation. It learns from a dozen
 * measurements, where trees want hundreds, and it says how sure it is. */
#ifndef TARN_TUNE_NEAR_H
#define TARN_TUNE_NEAR_H
#include "tune/tune.h"

typedef struct near_point {
  float feature[TARN_FEATURES];
  double off; /* log2(measured / price) */
} near_point;
typedef struct near_field near_field;
/* From x[0 … n-1]; x[n … n+others-1] are schedules of the same kernel that were not measured: they
 * only tell how far features are spread. NULL for fewer than NEAR_LEAST. */
#define NEAR_LEAST 8
const near_field *near_learn(tarn_ctx *cx, const near_point *x, uint32_t n, uint32_t others);
/* The expected log2(measured / price) and its standard deviation. */
double near_off(const near_field *g, const float feature[TARN_FEATURES], double *unsure);
#endif
