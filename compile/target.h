/* tarn targets: the table of what code can be emitted for. What tarn does for a target is in its
 * row of target.c: adding one is adding a row. Who emits, searches or measures asks the row, never
 * the kind of hardware; of one kind there may be several, of which the first that fits is taken.
 * Hardware without a row can be described, explored and have mapping rules derived; nothing can be
 * emitted for it. */
#ifndef TARN_TARGET_H
#define TARN_TARGET_H
#include "lower/lower.h"
#include "price/price.h"
#ifdef __cplusplus
extern "C" {
#endif

/* What one word of --emit makes. Lists of them end with a NULL name. */
typedef struct tarn_emission {
  const char *name; /* "so" */
  unsigned emit;    /* set of tarn_emit */
  const char *file; /* the one that the word names: "model.so" */
} tarn_emission;

typedef struct tarn_target {
  tarn_hw_kind kind;
  bool (*is)(const tarn_hw *hw); /* which descriptions of its kind it is for; NULL: all */
  const char *name;              /* as messages say it: "CPU" */
  /* A program may have kernels on the host that the hardware hangs on. */
  bool hosted;
  /* What a description lacks to be emitted for, as "has no …"; NULL, or a call that gives NULL:
   * nothing. */
  const char *(*lacks)(const tarn_hw *hw);
  /* Why it cannot run this kernel; NULL, or a call that gives NULL: it can. */
  const char *(*refuses)(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
  /* The space of schedules: the search for a kernel's best one, and a visit to each of them. */
  tarn_solver *(*solver)(tarn_lang *L, const tarn_hw *hw, uint32_t threads);
  bool (*schedules)(tarn_solver *s, const tarn_ksig *k, tarn_schedule_visit *visit, void *user);
  /* The check of a schedule against its kernel; raises TARN_BAD_INPUT with the reason. */
  void (*check)(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s);
  /* The analytic price of a kernel with a schedule. */
  void (*price)(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                uint32_t threads, tarn_cost *out);
  /* The loop program of a kernel as text; NULL: tarn_plan_print(). */
  void (*plan)(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
               tarn_buf *b);
  /* The memory plan, its buffers aligned to so many bytes, and the emitter. */
  tarn_memory_plan *(*memory)(const tarn_kprog *p, int64_t align);
  int64_t align;
  void (*emit)(const tarn_kprog *p, const tarn_memory_plan *m, const tarn_lower_options *o);
  /* Several programs in one; NULL: there are none of this kind. */
  void (*emit_sizes)(const tarn_lower_sizes *s, const tarn_lower_options *o);
  bool in_place;                /* an input may lie in an output (tarn_in_place) */
  bool budget;                  /* its workspace, in one memory, may have one */
  bool apart;                   /* constants may lie in a file of their own */
  const tarn_emission *program; /* what a model may become, the default first */
  const tarn_emission *listing; /* what one kernel may be read as */
  const char *const *file;      /* what a model may leave; ends with NULL */
  bool away;                    /* it runs on a device that this machine need not have */
  /* How to measure: an emitted folder opened, and the seconds of one run of one of its kernels;
   * NULL: nothing measures them. */
  tarn_loaded *(*load)(tarn_ctx *cx, const char *dir);
  double (*time)(tarn_loaded *m, const tarn_tensor *const *in, tarn_tensor *const *out,
                 uint32_t threads, uint32_t kernel);
} tarn_target;

/* The solver of a machine, by its row or one of its kind, else the CPU's. */
TARN_API tarn_solver *tarn_target_solver(tarn_lang *L, const tarn_hw *hw, uint32_t threads);
/* The analytic price, likewise. */
TARN_API void tarn_target_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                                const tarn_schedule *s, uint32_t threads, tarn_cost *out);
/* The rows, i = 0, 1, …; NULL beyond the last. */
TARN_API const tarn_target *tarn_target_at(uint32_t i);
/* The row of a description; NULL: there is none. */
TARN_API const tarn_target *tarn_target_find(const tarn_hw *hw);
/* The same. Raises TARN_BAD_INPUT, with what there are rows for, when there is none. */
TARN_API const tarn_target *tarn_target_of(tarn_ctx *cx, const tarn_hw *hw);
/* The same for a whole program: raises too when the hardware hangs on a host and the row's programs
 * may not. */
TARN_API const tarn_target *tarn_target_of_program(tarn_ctx *cx, const tarn_hw *hw);
/* The one of this name (NULL: the first) in a list of the row. Raises TARN_USAGE with the words
 * there are. */
TARN_API const tarn_emission *tarn_target_emission(tarn_ctx *cx, const tarn_target *t,
                                                   const tarn_emission *list, const char *word);

#ifdef __cplusplus
}
#endif
#endif
