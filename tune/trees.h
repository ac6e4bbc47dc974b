/* The trees of a model file, flattened so that one kernel is priced without a call into the library that trained them. */
#ifndef TARN_TUNE_TREES_H
#define TARN_TUNE_TREES_H
#include "tune/tune.h"

typedef struct tree_node {
  uint32_t feature; /* TARN_NONE: a leaf */
  float at;         /* below it: left; a leaf's value */
  uint32_t left, right;
} tree_node;
typedef struct trees {
  uint32_t ntree, nnode;
  const uint32_t *root;
  const tree_node *node;
  double base;
  const char *hw, *features; /* what it was trained on; "" when the file does not say */
  tarn_trust trust;
  uint64_t threads; /* bit n - 1: kernels of n threads are judged; learned from many of them */
} trees;
/* Raises TARN_BAD_INPUT "NAME: reason" for text that is no model of this kind. */
const trees *trees_read(tarn_ctx *cx, const char *name, const char *text, size_t n);
double trees_predict(const trees *t, const float feature[TARN_FEATURES]);
/* Learns them: `rounds` trees on log2(seconds / analytic). Deterministic. */
const trees *trees_train(tarn_ctx *cx, const tarn_sample *x, uint32_t n, uint64_t seed, uint32_t rounds);
const tarn_price *trees_price(tarn_ctx *cx, const trees *t, const char *name);
/* A word that changes with the list of features and with how they, and the analytic price, are computed. */
const char *trees_features(tarn_ctx *cx);
#endif
