/* What the tests of access/ share: a context and a language, and terms from text. */
#ifndef TARN_TESTS_TERMS_H
#define TARN_TESTS_TERMS_H
#include <math.h>
#include <string.h>

#include "access/access.h"
#include "access/internal.h"
#include "tests/random_fx.h"
#include "tests/suite.h"

static tarn_ctx *cx;
static tarn_lang *L;

static inline void make_lang(tarn_ctx *c, void *arg) { *(tarn_lang **)arg = tarn_lang_new(c); }

static inline void setup(void) {
  cx = tarn_ctx_new(NULL);
  ck_assert_int_eq(tarn_protect(cx, make_lang, &L), TARN_OK);
}
static inline void teardown(void) { tarn_ctx_free(cx); }

/* Runs fn protected; it must succeed. */
static inline void must(tarn_fn *fn, void *arg) {
  tarn_status st = tarn_protect(cx, fn, arg);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
}

static inline tarn_status attempt(tarn_fn *fn, void *arg) { return tarn_protect(cx, fn, arg); }

static inline const tarn_sx *read1(tarn_ctx *c, const char *text) {
  return tarn_sx_read(c, text, strlen(text), "t")->kid[0];
}

static inline void parse_one(tarn_ctx *c, void *arg) {
  const char **io = arg;
  tarn_term t = tarn_term_parse(L, read1(c, io[0]));
  tarn_buf b = {.cx = c};
  tarn_type_print(L, &b, tarn_term_get(L, t)->type);
  io[1] = b.p;
}

static inline uint32_t fn_of(tarn_ctx *c, const char *text) {
  return tarn_fn_parse(L, read1(c, text));
}

/* ---------------------------------------------------------------- suites */
static inline int run_suite(const char *name, const looped *tests, size_t n) {
  return run_looped(name, setup, teardown, tests, n);
}
#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

#endif
