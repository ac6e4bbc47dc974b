/* The search over schedules of one stage, for solve.c. */
#ifndef TARN_PRICE_CANDIDATES_H
#define TARN_PRICE_CANDIDATES_H
#include "price/internal.h"

typedef struct stage_best {
  double seconds;
  tarn_stage_sched sched;
} stage_best;
typedef struct stage_search {
  const tarn_hw *hw;
  uint32_t threads;
  uint64_t priced; /* so many until now */
  const tarn_stage_work *m;
  const tarn_level *shared;
  uint32_t nshared;
  bool strict;         /* reduce dims keep their order */
  bool large;          /* a product larger than L2 */
  bool far;            /* one stage that touches more than all L2s hold */
  const int64_t *open; /* NULL, or of each dim: 1 + the least it may be, if it is open; else 0 */
  /* The least seconds of those that are compared with one another before they are with the best;
   * what takes as long as both is not priced to the end. 0: only the best count. */
  double least;
  loop_room *room;
  uint32_t want, n;
  stage_best *b; /* room for TARN_RANKED: the n <= want best, by rising price */
  void (*visit)(void *user, const tarn_stage_sched *st, double seconds);
  void *user;
} stage_search;
/* Fills q->b with the best, by the analytic price, and shows all to q->visit. */
void stage_solve(stage_search *q, bool strict);
/* The outermost levels become parallel until there is enough for every thread several times over.
 */
void stage_mark_parallel(const int64_t *dim, tarn_level *level, uint32_t n, uint32_t limit,
                         uint32_t threads);
#endif
