/* tarn tune: measured kernels, the store that keeps them, and a price learned from them
 * (libtarn-tune).
 *
 * A price is learned as a correction of the analytic one: boosted trees (XGBoost) predict
 * log2(measured / analytic) from the features of a scheduled kernel (tarn_features). Source of the
 * approach: Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018); Zheng et al.,
 * "Ansor" (OSDI 2020).
 *
 * Errors: functions here raise (tarn_protect), except where they say otherwise. What they return
 * lives in the arena. */
#ifndef TARN_TUNE_H
#define TARN_TUNE_H
#include "plan/plan.h"
#include "runtime/cuda.h"
#include "price/price.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- the store: every measurement, in an SQLite file ---- */
/* Of the texts and of what a measurement is: a store keeps measurements of several versions apart.
 */
#define TARN_STORE_VERSION 6
typedef struct tarn_store tarn_store;
typedef struct tarn_record { /* one schedule of one kernel, measured */
  uint64_t kernel, schedule; /* hashes of the texts */
  uint32_t threads;
  double seconds;                          /* INFINITY: it failed or ran out of time */
  const char *kernel_text, *schedule_text; /* tarn_ksig_text(), tarn_schedule_text() */
} tarn_record;
TARN_API tarn_record tarn_record_of(tarn_lang *L, const tarn_ksig *k, const tarn_schedule *s,
                                    uint32_t threads);
/* Opens or makes a store; closed when the enclosing protected call ends. A file of another kind is
 * refused. */
TARN_API tarn_store *tarn_store_open(tarn_ctx *cx, const char *path);
TARN_API const char *
tarn_hw_key(const tarn_hw *hw,
            tarn_ctx *cx); /* processor, vector width, clock and cache sizes, in words */
TARN_API bool tarn_store_has(tarn_store *s, const char *hw, uint32_t threads, uint64_t kernel,
                             uint64_t schedule, double *seconds);
/* All of them become durable, or none. What is there already gets the new seconds, unless it failed
 * now. */
TARN_API void tarn_store_add(tarn_store *s, const char *hw, const tarn_record *x, uint32_t n);
/* All finite measurements of a hardware (NULL: of any, of each schedule one), ordered by threads,
 * kernel and schedule; returns how many. */
TARN_API uint32_t tarn_store_read(tarn_store *s, const char *hw, const tarn_record **out);

/* The keys of the hardware that it holds measurements of; returns how many. */
TARN_API uint32_t tarn_store_keys(tarn_store *s, const char *const **out);

/* All finite measurements as text (described in exchange.c), written to path; returns how many. */
TARN_API uint32_t tarn_store_export(tarn_ctx *cx, tarn_store *s, const char *path);
/* Adds such a text, all of it or, when it raises "NAME:LINE: reason", nothing; returns how many
 * measurements. */
TARN_API uint32_t tarn_store_import(tarn_ctx *cx, tarn_store *s, const char *name, const char *text,
                                    size_t n);

typedef struct tarn_sample { /* what a price is learned from */
  uint64_t kernel, schedule;
  uint32_t threads;
  double seconds, analytic;
  float feature[TARN_FEATURES];
} tarn_sample;
/* Records as samples, with this program's features and analytic price; records it cannot read are
 * left out. */
TARN_API uint32_t tarn_samples(tarn_lang *L, const tarn_hw *hw, const tarn_record *r, uint32_t n,
                               const tarn_sample **out);

/* ---- measuring ---- */
/* The GPU that kernels run on here (runtime/cuda.h); NULL: *why there is none. A child process asks
 * the driver, which does not survive a fork once it has been started. */
TARN_API const tarn_rt_cuda_info *tarn_gpu_here(tarn_ctx *cx, const char **why);
typedef tarn_plan_choice tarn_trial; /* a kernel with a schedule */
/* Raises when nothing here measures kernels of this hardware. */
TARN_API void tarn_measures(tarn_ctx *cx, const tarn_hw *hw);
/* The least seconds of each trial, its buffers warm: those of the same numerics are compiled into
 * one program, and all take turns for a while. The seed gives the data and the order of the turns.
 * Done in a child process with a time limit: a crash or a hang costs only its batch, whose seconds
 * become INFINITY. */
#define TARN_MEASURE_SEED 1 /* where nothing asks for another */
TARN_API void tarn_measure(tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n,
                           uint32_t threads, double limit_seconds, uint32_t seed, double *seconds);

/* Seconds of one call of a kernel written by hand, on one thread, its operands where its
 * declaration lets them lie and warm: the least of several runs, in a child process. INFINITY: it
 * failed, as *why says. */
TARN_API double tarn_measure_call(tarn_ctx *cx, tarn_written *w, const int64_t *size,
                                  const char **why);
/* What the store keeps of it. */
TARN_API tarn_record tarn_record_of_call(tarn_ctx *cx, const tarn_written *w, const int64_t *size);

/* Who measures, other than this machine: several trials in one call. */
typedef struct tarn_measurer {
  void *user;
  /* unsure: true where a time is to be told but not to be learned from. Raises when nothing can be
   * measured any more; one trial that fails has INFINITY. */
  void (*measure)(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n,
                  uint32_t threads, double *seconds, bool *unsure);
} tarn_measurer;
/* One that takes the analytic price for a time, or, of an accelerator, what the simulator says:
 * the same always. */
TARN_API const tarn_measurer *tarn_simulating(tarn_ctx *cx, const tarn_hw *hw);

/* ---- the learned price ---- */
typedef struct tarn_agreement { /* of predictions with measurements */
  double pairwise;              /* pairs of schedules of one kernel put in the right order */
  double r2;                    /* of throughput, normalised within each kernel */
  double recall30; /* of the 30 fastest schedules of a kernel, those among the 30 predicted so;
                      kernels with > 30 */
} tarn_agreement;
typedef struct tarn_fit { /* on kernels that were held out */
  tarn_agreement learned, analytic;
  uint32_t rows, kernels;
} tarn_fit;
/* Which kernels (tarn_record.kernel) are judged: those with `least` measurements or more on so many
 * threads. */
typedef struct tarn_judged {
  const uint64_t *kernel;
  uint32_t n, threads, least;
} tarn_judged;
/* How much of what a learned price says beside the analytic one (the logarithm of their ratio)
 * counts where kernels are compared, 0 to 1, and where schedules of one kernel are, above 0 to 1;
 * 0: a third. */
typedef struct tarn_trust {
  double between, within;
} tarn_trust;
/* Trains on samples and writes the price to path (the format is described in trees.c);
 * deterministic for a seed. fit may be NULL; else five trainings before, each without a fifth of
 * the kernels, fill it, with those in `of` (NULL: all). Raises TARN_NO_RESULT for fewer than 50
 * samples. */
TARN_API void tarn_learn(tarn_ctx *cx, const char *hw, const tarn_sample *x, uint32_t n,
                         uint64_t seed, tarn_trust trust, const char *path, const tarn_judged *of,
                         tarn_fit *fit);
/* A price from such a file or, with path NULL, the shipped price for this hardware. NULL, with the
 * reason in *why, when there is none that fits: what was trained on another processor, or vectors
 * of another width, prices nothing. */
TARN_API const tarn_price *tarn_learned(tarn_ctx *cx, const tarn_hw *hw, const char *path,
                                        const char **why);
/* The features that the trees of a file use, by falling share of the gain; returns how many. */
typedef struct tarn_importance {
  const char *feature;
  double share;
} tarn_importance;
TARN_API uint32_t tarn_learned_importance(tarn_ctx *cx, const char *path,
                                          const tarn_importance **out);

/* ---- tuning ---- */
typedef struct tarn_tune_options {
  uint32_t trials;  /* measurements wanted, those of these kernels already in the store included; 0:
                       1,000 */
  double seconds;   /* 0: none */
  uint32_t threads; /* 0: hw->units */
  uint64_t seed;
  bool spread; /* a sample of every kernel, to learn from, instead of a search for the fastest
                  schedules */
  uint32_t per_kernel;     /* spread: schedules of one kernel; 0: 40 */
  const tarn_price *price; /* to begin with; NULL: the analytic one */
  const char *model;       /* file to write the price to; NULL: none */
  tarn_trust trust;        /* in the price that is learned */
  bool train_only;         /* the kernels are those that the price is judged by; none: by all */
  const tarn_measurer *by; /* NULL: this machine */
  /* After every batch: trials done of those wanted, how many of them were measured now, and the sum
   * over the kernels of uses times least seconds. */
  void (*progress)(void *user, uint32_t done, uint32_t of, uint32_t fresh, double seconds);
  void *user;
} tarn_tune_options;
typedef struct tarn_tune_report {
  uint32_t trials, fresh, failed;
  uint32_t kernels;  /* with a measurement */
  double best;       /* seconds: sum over the kernels of uses times their fastest schedule */
  double untuned;    /* seconds of the solver's own choice over those of the fastest, geometric mean
                        over … */
  uint32_t compared; /* … so many kernels; NAN when none */
  bool trained;
  tarn_fit fit;
} tarn_tune_report;
/* Measures schedules of the kernels (canonical; uses[i] times in the network, NULL: once each; 0:
 * only what is known of it counts), those first whose trials are expected to shorten the network
 * most, and learns from everything in the store for this hardware. The same measurements give the
 * same choices. */
TARN_API tarn_tune_report tarn_tune(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *const *sig,
                                    const uint32_t *uses, uint32_t nsig, tarn_store *s,
                                    const tarn_tune_options *o);

/* Measures on this hardware, on as many threads, the schedules that another store holds of whatever
 * hardware, and keeps them in `to`; what is there already is not measured again. Of the options
 * seconds, progress and user count. A processor for which no price was learned gets one so, from
 * schedules that were worth trying on another with vectors as wide. */
TARN_API tarn_tune_report tarn_measure_again(tarn_lang *L, const tarn_hw *hw, tarn_store *of,
                                             tarn_store *to, const tarn_tune_options *o);

/* ---- what was measured, used ---- */
/* A price that knows the store: measured seconds where a schedule of a kernel was measured with so
 * many threads, else what `otherwise` says (NULL: the analytic price), of whole kernels times the
 * median of what those that were measured would take untuned over what it says of them, and
 * somewhat more; and, as its schedule, the fastest measured one of a kernel. explores: for a
 * program whose kernels are to be measured next, so that others than those measured have their
 * turn. */
TARN_API const tarn_price *tarn_measured(tarn_lang *L, const tarn_hw *hw, const char *path,
                                         uint32_t threads, const tarn_price *otherwise,
                                         bool explores);

#ifdef __cplusplus
}
#endif
#endif
