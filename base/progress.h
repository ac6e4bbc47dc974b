/* What runs and how far it is: one watcher in the context, which what takes long tells.
 *
 * A program shows it as a line on the terminal, or hands it on. Telling costs a call, so a loop
 * whose steps take microseconds tells in each. Nothing here changes a result. */
#ifndef TARN_PROGRESS_H
#define TARN_PROGRESS_H
#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_told {
  const char *name; /* "choosing kernels"; a literal. NULL: what ran has ended */
  uint64_t done;
  uint64_t of;      /* 0: it is not known how many there are */
  const char *unit; /* "kernels", a literal; NULL: nothing is counted */
} tarn_told;

typedef struct tarn_watcher {
  void (*see)(void *user, const tarn_told *s); /* from any thread that has the context. NULL: no */
  void *user;
} tarn_watcher;

/* Of the context and all its children, from now on. */
TARN_API void tarn_watch(tarn_ctx *cx, tarn_watcher w);
TARN_API void tarn_progress(const tarn_ctx *cx, const char *stage, uint64_t done, uint64_t of,
                            const char *unit);
TARN_API void tarn_progress_end(const tarn_ctx *cx);

#ifdef __cplusplus
}
#endif
#endif
