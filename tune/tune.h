/* tarn tune: measured kernels, the store that keeps them, and a price learned from them (libtarn-tune).
 *
 * A price is learned as a correction of the analytic one: boosted trees (XGBoost) predict log2(measured / analytic) from the
 * features of a scheduled kernel (tarn_features). Source of the approach: Chen et al., "Learning to Optimize Tensor Programs"
 * (NeurIPS 2018); Zheng et al., "Ansor" (OSDI 2020).
 *
 * Errors: functions here raise (tarn_protect), except where they say otherwise. What they return lives in the arena. */
#ifndef TARN_TUNE_H
#define TARN_TUNE_H
#include "loop/loop.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- the store: every measurement, in an SQLite file ---- */
typedef struct tarn_store tarn_store;
typedef struct tarn_sample {     /* one schedule of one kernel, measured on one kind of hardware */
  uint64_t kernel, schedule;     /* hashes of the canonical kernel and of the schedule */
  double seconds, analytic;      /* measured; INFINITY: it failed or ran out of time */
  float feature[TARN_FEATURES];
} tarn_sample;
/* Opens or makes a store; closed when the enclosing protected call ends. A file of another kind is refused. */
TARN_API tarn_store *tarn_store_open(tarn_ctx *cx, const char *path);
TARN_API const char *tarn_hw_key(const tarn_hw *hw, tarn_ctx *cx); /* processor, vector width, clock and cache sizes, in words */
TARN_API bool tarn_store_has(tarn_store *s, const char *hw, uint32_t threads, uint64_t kernel, uint64_t schedule, tarn_sample *out);
/* All of them become durable, or none. */
TARN_API void tarn_store_add(tarn_store *s, const char *hw, uint32_t threads, const tarn_sample *x, uint32_t n);
/* All finite measurements of a hardware, ordered by kernel and schedule; returns how many. */
TARN_API uint32_t tarn_store_read(tarn_store *s, const char *hw, const tarn_sample **out);

/* ---- measuring ---- */
typedef struct tarn_trial {
  const tarn_ksig *sig;          /* canonical */
  const tarn_schedule *sched;
} tarn_trial;
/* The least seconds of each trial, its buffers warm: all are compiled into one program and take turns for a while.
 * Done in a child process with a time limit: a crash or a hang costs only its batch, whose seconds become INFINITY. */
TARN_API void tarn_measure(tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n, uint32_t threads,
                           double limit_seconds, double *seconds);

/* ---- the learned price ---- */
typedef struct tarn_fit {        /* how well predictions on kernels that were held out agree with measurements */
  double pairwise;               /* pairs of schedules of one kernel put in the right order */
  double r2;                     /* of throughput, normalised within each kernel */
  double recall30;               /* of the 30 fastest schedules of a kernel, those among the 30 predicted so; kernels with > 30 */
  uint32_t rows, kernels;        /* held out */
} tarn_fit;
/* Trains on samples and writes the model (XGBoost's JSON) to path; deterministic for a seed. fit may be NULL; else every
 * fifth kernel is held out of a first training to fill it. Raises TARN_NO_RESULT for fewer than 50 samples. */
TARN_API void tarn_learn(tarn_ctx *cx, const char *hw, const tarn_sample *x, uint32_t n, uint64_t seed, const char *path,
                         tarn_fit *fit);
/* A price from a model file or, with path NULL, the shipped model for this hardware. NULL, with the reason in *why, when
 * there is none that fits: what was trained on another processor, or vectors of another width, prices nothing. */
TARN_API const tarn_price *tarn_learned(tarn_ctx *cx, const tarn_hw *hw, const char *path, const char **why);
/* The features that the trees of a file use, by falling share of the gain; returns how many. */
typedef struct tarn_importance { const char *feature; double share; } tarn_importance;
TARN_API uint32_t tarn_learned_importance(tarn_ctx *cx, const char *path, const tarn_importance **out);

/* ---- tuning ---- */
typedef struct tarn_tune_options {
  uint32_t trials;               /* measurements wanted, those already in the store included; 0: 1,000 */
  double seconds;                /* 0: none */
  uint32_t threads;              /* 0: hw->units */
  uint64_t seed;
  uint32_t per_kernel;           /* schedules of one kernel; 0: 40 */
  const char *model;             /* file to write the price to; NULL: none */
  bool train_only;
  void (*progress)(void *user, uint32_t done, uint32_t of);
  void *user;
} tarn_tune_options;
typedef struct tarn_tune_report {
  uint32_t trials, fresh, failed;
  double best;                   /* seconds: sum over the kernels tried of their fastest schedule */
  bool trained;
  tarn_fit fit;
} tarn_tune_report;
/* Measures schedules of the kernels (canonical, distinct) and learns from everything in the store for this hardware. */
TARN_API tarn_tune_report tarn_tune(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *const *sig, uint32_t nsig, tarn_store *s,
                                    const tarn_tune_options *o);

#ifdef __cplusplus
}
#endif
#endif
