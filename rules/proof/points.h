/* rules: the value of a term at one point, when its leaves are random tensors that nobody writes
 * down: an element of a leaf is a function of the leaf, the index and a seed. What the point does
 * not need is not computed, so terms of any extents can be compared. Written apart from the
 * reference interpreter, so that the two check each other. */
#ifndef TARN_RULES_POINTS_H
#define TARN_RULES_POINTS_H
#include "rules/lang/lang.h"
#include "rules/lang/rounding.h"

/* A value, and where bounds are asked for what rounding may do to it. */
typedef struct pvalue {
  tarn_value v;
  rounding r;
} pvalue;
typedef struct points {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_mode mode;
  uint64_t seed;
  bool positive;         /* random numbers in [0.5, 1.5], else in [-1, 1] */
  int rise;              /* 1, -1: along every dim random numbers grow, or fall; 0: neither */
  const tarn_map *range; /* input -> where its two bounds lie; NULL */
  tarn_map *leaf;        /* terms that stand for random tensors, besides inputs; NULL */
  tarn_map *given;       /* terms whose elements lie somewhere (pvalue[]); NULL */
  bool bounds;           /* wide: with what rounding may do */
  tarn_map *memo, *part; /* values so far; what was worked out of a term or a stage */
  int64_t work, budget;  /* scalar operations */
  struct points_room *room;
  uint32_t depth;               /* terms and stages above the one that is evaluated */
  struct points_awaited *first; /* what has to come first, having raised TARN_NO_RESULT */
} points;

/* Of t, not a tuple, at an index over all its dims. Raises TARN_NO_RESULT when the budget is used
 * up, or with the reason why it has no value here. */
pvalue points_at(points *p, tarn_term t, const int64_t *index);
/* One element of a random tensor, by its row-major number. */
tarn_value points_leaf(const points *p, tarn_term t, int64_t flat);
#endif
