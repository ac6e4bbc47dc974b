/* A test's body in a context of its own. */
#ifndef TARN_TESTS_CONTEXT_H
#define TARN_TESTS_CONTEXT_H
#include "base/base.h"
#include <check.h>

static inline void in_context(tarn_fn *f, const void *arg) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, f, (void *)(uintptr_t)arg);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
#endif
