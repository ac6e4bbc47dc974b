/* The tuning of one kernel: its measurements, and the choice of the next ones. */
#ifndef TARN_TUNE_SEARCH_H
#define TARN_TUNE_SEARCH_H
#include "compile/target.h"
#include "tune/evolve.h"

typedef struct search_trial {
  uint64_t hash; /* of the schedule, within this program */
  const tarn_schedule *sched;
  double seconds; /* INFINITY: failed */
  uint32_t times; /* measured so often: the seconds are the (geometric) mean */
} search_trial;
typedef struct search_task {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_target *target;
  const tarn_ksig *sig;
  uint32_t threads;
  double weight, flops; /* uses in the network; operations of one run */
  const evolve_space *space;
  const tarn_schedule *own; /* the solver's choice */
  uint64_t random;
  TARN_VEC(const tarn_schedule *)
  pool; /* to begin with: the best by the analytic price, then a uniform sample */
  uint32_t nbest;
  TARN_VEC(search_trial) done; /* measured */
  tarn_map *seen;              /* hash -> 1 + index into done */
  double least, before;        /* seconds of the fastest; of the fastest before the last batch */
  uint32_t batches;
  bool dry; /* nothing new is found */
} search_task;

search_task *search_new(tarn_lang *L, const tarn_hw *hw, tarn_solver *solver, const tarn_ksig *k,
                        uint32_t threads, uint64_t seed, uint32_t pool);
/* Returns what is now known of the schedule. */
double search_note(search_task *t, const tarn_schedule *s, double seconds);
/* The fastest `most` that were measured; returns how many there are. */
uint32_t search_fastest(const search_task *t, uint32_t most, const search_trial **out);
uint64_t search_hash(const tarn_schedule *s);
/* Seconds that a price expects; analytic when price is NULL. */
double search_price(const search_task *t, const tarn_price *price, const tarn_schedule *s);
/* Up to n schedules that are not measured yet: mostly the best by the price among what evolves from
 * the pool and from the fastest measured, and a share at random. Returns how many. They live in the
 * arena. */
uint32_t search_next(search_task *t, const tarn_price *price, uint32_t n,
                     const tarn_schedule **out);
/* A sample for learning: a third the best by the analytic price, a third at random, a third mutants
 * of those. */
uint32_t search_spread(search_task *t, uint32_t n, const tarn_schedule **out);
#endif
