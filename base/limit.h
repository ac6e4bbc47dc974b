/* When to end early: one token in the context, a moment and a question.
 *
 * The caller sets a deadline and a function that reports an interruption (Ctrl-C). Long loops ask:
 * tarn_late() where they can end with what they have, and tarn_go_on() where they cannot. Both cost
 * a fraction of a microsecond, so a loop whose steps take longer asks in each step. Nothing here
 * changes a result unless a limit is set. */
#ifndef TARN_LIMIT_H
#define TARN_LIMIT_H
#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_limit {
  double until;              /* tarn_now() at which to end; 0: none */
  bool (*asked)(void *user); /* true: end now. NULL: never. May be called from any thread */
  void *user;
  double (*clock)(void *user); /* that `until` is compared with; NULL: tarn_now() */
} tarn_limit;

/* Of the context and all its children, from now on. What was asked for before is forgotten. */
TARN_API void tarn_limit_set(tarn_ctx *cx, tarn_limit l);
TARN_API tarn_limit tarn_limit_get(const tarn_ctx *cx);
/* The same with a moment that is no later than `until`; 0 leaves it as it is. */
TARN_API void tarn_limit_until(tarn_ctx *cx, double until);
/* True once the moment has come or the question was answered with yes, and ever after, until the
 * limit is set again. */
TARN_API bool tarn_late(const tarn_ctx *cx);
TARN_API bool tarn_interrupted(const tarn_ctx *cx); /* late, and not for the moment */
/* Raises TARN_NO_RESULT where it is late. */
TARN_API void tarn_go_on(tarn_ctx *cx);

#ifdef __cplusplus
}
#endif
#endif
