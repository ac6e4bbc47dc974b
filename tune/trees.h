/* A learned price as trees: what XGBoost learned, flattened, so that a schedule is priced without a
 * call into that library; and the file that keeps it. */
#ifndef TARN_TUNE_TREES_H
#define TARN_TUNE_TREES_H
#include "tune/tune.h"

#define TREES_LEFT_BITS 24 /* a node in 8 bytes: a price should stay in L2 */
#define TREES_LEFT      ((1u << TREES_LEFT_BITS) - 1)
typedef struct tree_node {
  float at; /* below it: the left child; a leaf's value */
  /* The number of the left child in trees.node, the right one is the next; 0: a leaf, whose feature
   * does not matter but exists. */
  uint32_t left : TREES_LEFT_BITS, feature : 32 - TREES_LEFT_BITS;
} tree_node;
static inline tree_node tree_split(float at, uint32_t left, uint32_t feature) {
  return (tree_node){at, left & TREES_LEFT, (uint8_t)feature};
}
typedef struct trees {
  uint32_t ntree, nnode;
  const uint32_t *root;  /* numbers of nodes, ascending */
  const tree_node *node; /* tree by tree, each breadth first */
  uint32_t nfeature;     /* TARN_FEATURES, if it was learned on those of this program */
  const float *share;    /* of each feature: what splits by it gained, of all gain */
  const char *hw;        /* what it was learned on: tarn_hw_key() */
  const char *features;  /* trees_features() then */
  tarn_trust trust;
  uint64_t threads; /* bit n - 1: kernels of n threads are judged; learned from many of them */
} trees;

/* The format is described in trees.c. Raises TARN_BAD_INPUT "NAME: reason" for bytes that are no
 * price. */
const trees *trees_read(tarn_ctx *cx, const char *name, const void *bytes, size_t n);
void trees_print(tarn_buf *b, const trees *t);

/* f: as many as t->nfeature. The sum of the leaves, log2(seconds / analytic). */
double trees_predict(const trees *t, const float *f);
/* Schedules of one kernel on so many threads are compared with one another. */
static inline uint64_t trees_group(const tarn_sample *x) {
  return tarn_hash_mix(x->kernel, x->threads);
}
/* Learns `rounds` steps of trees on log2(seconds / analytic), fewer where the time is over;
 * deterministic otherwise. For kernels of any number of threads, until the caller says otherwise.
 * Steps that are missing leave a price nearer to the analytic one. */
trees *trees_train(tarn_ctx *cx, const tarn_sample *x, uint32_t n, uint64_t seed, uint32_t rounds);
#define TREES_ROUNDS                                                                               \
  300 /* steps of a price that is kept; fewer make smaller trees, for a search                     \
       */
const tarn_price *trees_price(tarn_ctx *cx, const trees *t, const char *name);
/* A word that changes with the list of features and with how they, and the analytic price, are
 * computed. */
const char *trees_features(tarn_ctx *cx);
#endif
