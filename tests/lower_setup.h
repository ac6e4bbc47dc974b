/* For tests of lower/: a context, a language and this machine for each test. */
#ifndef TARN_TESTS_LOWER_SETUP_H
#define TARN_TESTS_LOWER_SETUP_H
#include "tests/lower_kit.h"

static tarn_ctx *cx;
static tarn_lang *L;
static const tarn_hw *hw;

static inline void setup(void) {
  cx = tarn_ctx_new(NULL);
  L = tarn_lang_new(cx);
  hw = kit_host(cx);
}
static inline void teardown(void) { tarn_ctx_free(cx); }
#endif
