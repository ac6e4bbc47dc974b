/* tarn price: a kernel with a schedule -> seconds and features; the search for the cheapest
 * schedule. */
#ifndef TARN_PRICE_H
#define TARN_PRICE_H
#include "plan/schedule.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- features and price ---- */
/* Bytes of operands and of results, each once, in whole lines of 64 bytes: what any schedule has to
 * move between the level that holds them and the unit. Pure. */
TARN_API void tarn_ksig_traffic(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, double *read,
                                double *write);
/* Operations of one run, a multiply-add being 2; without those on padding, which add nothing: of
 * the taps of windows those count that lie inside. Pure. */
TARN_API double tarn_ksig_flops(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* Lanes of 32 bits of the vector instructions that one run has to issue, whatever its schedule: of
 * each distinct value of a scalar expression (not of each place where it is used: what does not
 * depend on a loop is computed outside of it) what tarn_fx_slots says, a product that is added to
 * something being one with the addition, and taps in padding left out. Loads, stores and shuffles
 * are not counted. Pure. */
TARN_API double tarn_ksig_slots(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* Those of them that multiply floats: products and multiply-adds, those within functions too. */
TARN_API double tarn_ksig_products(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* Vector instructions of one operator, the fewest on any target. Those of a function are what
 * lower/math.c emits for it where one instruction multiplies by a power of two; functions that are
 * called count as one. */
TARN_API double tarn_fx_slots(tarn_fxop op);
TARN_API double tarn_fx_products(tarn_fxop op); /* those of them that multiply */
typedef struct tarn_cost {                      /* analytic, one run */
  double seconds;                               /* the estimate */
  double flops;                                 /* multiply-add = 2, padding included */
  double bytes[8]; /* moved between memory level i and i+1 of the description (reuse of each loop
                      counted) */
  double compute_seconds, memory_seconds[8], overhead_seconds;
  /* On a GPU: registers of a thread, bytes of shared memory of a block that holds tiles, warps that
   * are resident on a unit. */
  double registers, shared, warps;
  const char *binds; /* which of them is largest: "fma", a memory's name, "launch" … */
  double parallel;   /* units kept busy */
  double least; /* by tarn_solve(): seconds of the kernel's best schedule by the analytic price,
                   another one perhaps */
} tarn_cost;
/* Analytic estimate of a scheduled kernel: operations, bytes per memory level from the reuse of
 * each loop, vector use, register pressure, parallelism. Pure; raises only on memory. */
TARN_API void tarn_cost_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                           const tarn_schedule *s, uint32_t threads, tarn_cost *out);
/* Numbers that a learned price works on, and what each is in words. Pure. */
#define TARN_FEATURES 167
TARN_API const char *tarn_feature_name(uint32_t i); /* NULL beyond the last */
TARN_API void tarn_features(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                            const tarn_schedule *s, uint32_t threads, const tarn_cost *cost,
                            float out[TARN_FEATURES]);
/* The price of a kernel. The analytic price is the default; a learned one takes its place (tune/).
 */
typedef struct tarn_price {
  const char *name; /* "analytic", "learned: …"; shown in the report */
  void *user;
  /* Predicted seconds of a canonical kernel with this schedule; analytic: what tarn_cost_of says.
   * May return the analytic seconds. Pure. */
  double (*seconds)(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                    const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic);
  /* The schedule that a canonical kernel shall have, or NULL: the solver looks for one. May itself
   * be NULL. */
  const tarn_schedule *(*schedule)(void *user, tarn_lang *L, const tarn_ksig *k);
  /* What a selection among kernels is told of one that has this schedule; cost: tarn_solve()'s.
   * NULL: `seconds`. Another one since a selection looks for what is priced too low, and a learned
   * price is wrong most where nothing was measured. */
  double (*kernel)(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                   const tarn_schedule *s, uint32_t threads, const tarn_cost *cost);
  /* Measured seconds of one call of a kernel written by hand, at these sizes; 0: nobody measured
   * them. NULL: nothing is known of any. */
  double (*call)(void *user, const tarn_written *w, const int64_t *size);
  /* How much of what it says beside the analytic price (the logarithm of their ratio) counts where
   * the solver compares schedules of a kernel, up to 1; 0: a third. */
  double within;
} tarn_price;
/* The best schedule found by the analytic price: enumerates vector dims, register tiles and loop
 * orders whose sizes come from the description. Deterministic. Memoise by signature (tarn_solver).
 */
typedef struct tarn_solver tarn_solver;
TARN_API tarn_solver *tarn_solver_new(tarn_lang *L, const tarn_hw *hw,
                                      uint32_t threads); /* arena */
TARN_API const tarn_schedule *tarn_solve(tarn_solver *s, const tarn_ksig *canonical,
                                         tarn_cost *cost);
/* The best schedule of a CPU's kernel some of whose dims are open: open[i * TARN_MAX_DIMS + d] is 1
 * + the least that dim d of stage i may be; 0: it is as it is. The solver does not keep it. */
TARN_API const tarn_schedule *tarn_solve_open(tarn_solver *s, const tarn_ksig *canonical,
                                              const int64_t *open);
/* What a schedule of the kernel costs. */
TARN_API void tarn_solver_cost(const tarn_solver *s, const tarn_ksig *canonical,
                               const tarn_schedule *sched, tarn_cost *cost);
/* The signature as it lies in the solver, which keeps one of those that are the same. */
TARN_API const tarn_ksig *tarn_solver_kept(tarn_solver *s, const tarn_ksig *canonical);
/* The search and the price of another kind of hardware in place of the CPU's. The search returns
 * NULL, at an infinite cost, where the hardware cannot run the kernel. */
typedef const tarn_schedule *tarn_solver_search_fn(tarn_lang *L, const tarn_hw *hw,
                                                   const tarn_ksig *k, tarn_cost *cost);
typedef void tarn_solver_price_fn(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                                  const tarn_schedule *s, uint32_t threads, tarn_cost *out);
TARN_API void tarn_solver_search(tarn_solver *s, tarn_solver_search_fn *f,
                                 tarn_solver_price_fn *price);
/* From now on kernels are given to it as they are: nothing is cut before, no constant is packed. */
TARN_API void tarn_solver_take_as_is(tarn_solver *s);
TARN_API bool tarn_solver_takes_as_is(const tarn_solver *s);
/* Its machine lays out what others read: small copies are one thread's where that is faster. */
TARN_API void tarn_solver_of_host(tarn_solver *s);
TARN_API tarn_lang *tarn_solver_lang(const tarn_solver *s);
TARN_API const tarn_hw *tarn_solver_hw(const tarn_solver *s);
/* From now on this kernel has this schedule, whatever another one costs. */
TARN_API void tarn_solver_give(tarn_solver *s, const tarn_ksig *canonical,
                               const tarn_schedule *sched);
/* From now on single-stage kernels get, of their `top` best schedules by the analytic price (at
 * most TARN_RANKED), the best by p and the analytic price together. */
#define TARN_RANKED 96
TARN_API void tarn_solver_rank(tarn_solver *s, const tarn_price *p, uint32_t top);
/* From now on kernels are priced with weights from the last-level cache, not from memory. Schedules
 * of one kernel are compared as before. */
TARN_API void tarn_solver_cache_weights(tarn_solver *s);
/* Every schedule that the solver tries for a kernel of one stage, with its analytic seconds (launch
 * left out); false, and no visit, for other kernels. */
typedef void tarn_schedule_visit(void *user, const tarn_schedule *s, double seconds);
TARN_API bool tarn_schedules(tarn_solver *s, const tarn_ksig *canonical, tarn_schedule_visit *visit,
                             void *user);
typedef struct tarn_solver_stats {
  uint64_t signatures, uses, evaluations;
} tarn_solver_stats;
TARN_API tarn_solver_stats tarn_solver_count(const tarn_solver *s);

#ifdef __cplusplus
}
#endif
#endif
