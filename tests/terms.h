/* What the tests of access/ share: a context and a language, terms from text, random scalar
 * expressions, and the table of terms with their types. */
#ifndef TARN_TESTS_TERMS_H
#define TARN_TESTS_TERMS_H
#include <check.h>
#include <math.h>
#include <string.h>

#include "access/access.h"
#include "access/internal.h"

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

static inline uint64_t next_random(uint64_t *s) {
  *s += 0x9E3779B97F4A7C15u;
  uint64_t z = (*s ^ (*s >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static inline uint32_t below(uint64_t *s, uint32_t n) { return (uint32_t)(next_random(s) % n); }

static inline const tarn_sx *read1(tarn_ctx *c, const char *text) { return tarn_sx_read(c, text, strlen(text), "t")->kid[0]; }

static inline void parse_one(tarn_ctx *c, void *arg) {
  const char **io = arg;
  tarn_term t = tarn_term_parse(L, read1(c, io[0]));
  tarn_buf b = {.cx = c};
  tarn_type_print(L, &b, tarn_term_get(L, t)->type);
  io[1] = b.p;
}

static inline tarn_dtype some_type(uint64_t *s) { return (tarn_dtype)below(s, TARN_DTYPES); }

static const double odd_numbers[] = {0.0, -0.0, 1, -1, 0.5, 2, 3, -7, 0.1, 1e30, -1e-30, 65504, 255, 1e300};

static inline uint32_t some_const(uint64_t *s, tarn_dtype t) {
  if (tarn_dtype_is_float(t)) {
    static const double special[] = {INFINITY, -INFINITY, NAN};
    if (below(s, 8) == 0) return tarn_fx_const(L, t, special[below(s, 3)]);
    if (below(s, 3) == 0) return tarn_fx_const(L, t, ldexp((double)(next_random(s) >> 11), -53));
    return tarn_fx_const(L, t, odd_numbers[below(s, sizeof odd_numbers / sizeof *odd_numbers)]);
  }
  if (below(s, 2)) return tarn_fx_iconst(L, t, (int64_t)below(s, 9) - 4);
  return tarn_fx_iconst(L, t, (int64_t)next_random(s));
}

/* An expression of type t over holes of the given types. */
static inline uint32_t some_fx(uint64_t *s, tarn_dtype t, const tarn_dtype *holes, uint32_t n, int depth) {
  for (int tries = 0; depth > 0 && tries < 40; tries++) {
    uint32_t op = below(s, TARN_FX_COUNT), kid[3] = {0};
    tarn_dtype from = some_type(s), types[3] = {from, from, from}, out;
    if (op <= TARN_FX_CONST) continue;
    if (op == TARN_FX_CAST) return tarn_fx_cast(L, t, some_fx(s, from, holes, n, depth - 1));
    if (op == TARN_FX_SEL) types[0] = TARN_BOOL, types[1] = types[2] = t;
    uint32_t probe[3]; /* does op give t for operands of these types? */
    for (int i = 0; i < 3; i++) probe[i] = tarn_fx_hole(L, (uint32_t)i);
    uint32_t p = tarn_fx_op(L, (tarn_fxop)op, probe[0], probe[1], probe[2]);
    if (!tarn_fx_type(L, p, types, 3, &out) || out != t) continue;
    for (int i = 0; i < 3; i++) kid[i] = some_fx(s, types[i], holes, n, depth - 1);
    return tarn_fx_op(L, (tarn_fxop)op, kid[0], kid[1], kid[2]);
  }
  uint32_t h = below(s, n + 1);
  for (uint32_t i = 0; i < n; i++)
    if (holes[(h + i) % n] == t && below(s, 3)) return tarn_fx_hole(L, (h + i) % n);
  return some_const(s, t);
}

static inline uint32_t fn_of(tarn_ctx *c, const char *text) { return tarn_fn_parse(L, read1(c, text)); }

/* ---------------------------------------------------------------- suites */
typedef struct looped {
  const TTest *test;
  int n;
} looped;

static inline int run_suite(const char *name, const looped *tests, size_t n) {
  Suite *suite = suite_create(name);
  TCase *t = tcase_create(name);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  for (size_t i = 0; i < n; i++) tcase_add_loop_test(t, tests[i].test, 0, tests[i].n);
  suite_add_tcase(suite, t);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

#endif
