/* Invariant: the top's watcher serves all its children. */
#include "base/internal.h"
#include "base/progress.h"

void tarn_watch(tarn_ctx *cx, tarn_watcher w) { cx->top->watcher = w; }

static void tell(const tarn_ctx *top, tarn_told s) {
  if (top->watcher.see) top->watcher.see(top->watcher.user, &s);
}
void tarn_progress(const tarn_ctx *cx, const char *stage, uint64_t done, uint64_t of,
                   const char *unit) {
  tell(cx->top, (tarn_told){.name = stage, .done = done, .of = of, .unit = unit});
}
void tarn_progress_end(const tarn_ctx *cx) { tell(cx->top, (tarn_told){0}); }
