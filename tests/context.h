/* A test's body in a context of its own. */
#ifndef TARN_TESTS_CONTEXT_H
#define TARN_TESTS_CONTEXT_H
#include "base/base.h"
#include "tests/suite.h"

/* A failure names what it was of. */
static inline void in_context_of(const char *name, tarn_fn *f, const void *arg) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, f, (void *)(uintptr_t)arg);
  ck_assert_msg(st == TARN_OK, "%s%s%s", name, *name ? ": " : "", tarn_message(cx));
  tarn_ctx_free(cx);
}
static inline void in_context(tarn_fn *f, const void *arg) { in_context_of("", f, arg); }
#endif
