/* Test bodies that run in a context with a language; random types, and random transforms of them.
 */
#ifndef TARN_TESTS_TRANSFORMS_H
#define TARN_TESTS_TRANSFORMS_H
#include <string.h>

#include "access/access.h"
#include "base/base.h"
#include "tests/suite.h"

static tarn_ctx *cx;
static tarn_lang *L;
static uint64_t seed;
static uint32_t fills[2]; /* f32 until a test says otherwise */
static int number;        /* of the loop test */

static inline void make_lang(tarn_ctx *c, void *arg) {
  (void)arg;
  L = tarn_lang_new(c);
  fills[0] = tarn_fx_const(L, TARN_F32, 0), fills[1] = tarn_fx_const(L, TARN_F32, 1);
}
static inline void setup(void) {
  cx = tarn_ctx_new(NULL);
  seed = 1;
  ck_assert_int_eq(tarn_protect(cx, make_lang, NULL), TARN_OK);
}
static inline void teardown(void) { tarn_ctx_free(cx); }

/* Every test body runs protected; a raise fails it with its message. */
static inline void run(tarn_fn *body, int i) {
  number = i;
  seed = (uint64_t)i * 1000003 + 1;
  tarn_status st = tarn_protect(cx, body, NULL);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
}
#define TEST(name)                                                                                 \
  static void name##_body(tarn_ctx *ctx, void *arg);                                               \
  START_TEST(name) { run(name##_body, _i); }                                                       \
  END_TEST                                                                                         \
  static void name##_body(tarn_ctx *ctx, void *arg)
#define UNUSED (void)ctx, (void)arg

/* For inner loops: Check writes a record for every assertion that it evaluates. */
#define MUST(x)                                                                                    \
  do {                                                                                             \
    if (!(x)) ck_abort_msg("%s", #x);                                                              \
  } while (0)

static uint64_t next_random(void) { return tarn_random(&seed); }
static int64_t below(int64_t n) { return (int64_t)(next_random() % (uint64_t)n); }

static bool step_index(uint32_t n, const int64_t *dim, int64_t *x) {
  for (uint32_t i = n; i-- > 0; x[i] = 0)
    if (++x[i] < dim[i]) return true;
  return false;
}
static int64_t product(uint32_t n, const int64_t *dim) {
  int64_t c = 1;
  for (uint32_t i = 0; i < n; i++) c *= dim[i];
  return c;
}

static inline uint32_t random_type(void) {
  int64_t dim[3];
  uint32_t n = 1 + (uint32_t)below(3);
  for (uint32_t i = 0; i < n; i++) dim[i] = below(20) ? 1 + below(6) : 0;
  return tarn_type_tensor(L, TARN_F32, (uint32_t)below(n + 1), n, dim);
}

static uint32_t ints(uint32_t n, const int64_t *v) { return tarn_payload_ints(L, n, v); }

/* Factors of c in random order and grouping. */
static uint32_t random_factors(int64_t c, int64_t *dim) {
  uint32_t n = 0;
  if (c == 0) return dim[0] = 0, 1;
  while (c > 1) {
    int64_t f = 1 + below(c);
    while (c % f) f--;
    dim[n++] = f;
    c /= f;
    if (n == 3) dim[n - 1] *= c, c = 1;
  }
  return n;
}

static uint32_t random_shape(const tarn_type *t) {
  int64_t dim[2 * TARN_MAX_DIMS];
  uint32_t ns = random_factors(product(t->ns, t->dim), dim);
  uint32_t nc = random_factors(product(t->n - t->ns, t->dim + t->ns), dim + ns);
  return tarn_payload_of(L, TARN_P_SHAPE, tarn_type_tensor(L, TARN_F32, ns, ns + nc, dim));
}

static uint32_t random_windows(const tarn_type *t) {
  int64_t v[3 * TARN_MAX_DIMS];
  uint32_t m = (uint32_t)(t->n - t->ns);
  for (uint32_t i = 0; i < 3 * m; i++) v[i] = 1 + below(2);
  for (uint32_t i = 0; i < m; i++) v[i] += below(2);
  return ints(3 * m, v);
}

static uint32_t random_slice(const tarn_type *t, uint32_t axis) {
  int64_t d = t->dim[axis], l = below(d + 1), h = l + below(d - l + 1);
  if (below(3) || !d) return ints(4, (int64_t[]){axis, l, h, 1 + below(3)});
  l = below(d), h = l - below(l + 2);
  return ints(4, (int64_t[]){axis, l, h, -1 - below(2)});
}

static uint32_t random_pad(uint32_t axis) {
  const int64_t v[] = {axis, below(3), below(3)};
  return tarn_payload_intern(
      L, &(tarn_payload){.kind = TARN_P_PADV, .n = 3, .ints = v, .value = fills[below(8) == 0]});
}

static uint32_t random_broadcast(const tarn_type *t) {
  int64_t dim[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < t->n; i++) dim[i] = t->dim[i] == 1 ? below(4) : t->dim[i];
  return tarn_payload_of(L, TARN_P_SHAPE, tarn_type_tensor(L, TARN_F32, t->ns, t->n, dim));
}

static uint32_t random_perm(const tarn_type *t) {
  int64_t p[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < t->n; i++) p[i] = i;
  for (uint32_t i = t->n; i-- > 1;) {
    int64_t j = below(i + 1), s = p[i];
    p[i] = p[j], p[j] = s;
  }
  return ints(t->n, p);
}

/* A random transform of a value of this type; false: none this time. */
static inline bool random_op(uint32_t type, uint32_t *op, uint32_t *payload) {
  const tarn_type *t = tarn_type_get(L, type);
  uint32_t axis = t->n ? (uint32_t)below(t->n) : 0;
  *op = TARN_OP_ACCESS + (uint32_t)below(TARN_OP_VIEW - TARN_OP_ACCESS);
  *payload = 0;
  switch (*op) {
  case TARN_OP_ACCESS: *payload = ints(1, &(int64_t){below(t->n + 1)}); return true;
  case TARN_OP_INSERT_AXIS: *payload = ints(1, &(int64_t){below(t->n + 1)}); return t->n < 6;
  case TARN_OP_TRANSPOSE: *payload = random_perm(t); return true;
  case TARN_OP_WINDOWS: *payload = random_windows(t); return t->n < 5;
  case TARN_OP_RESHAPE: *payload = random_shape(t); return true;
  case TARN_OP_BROADCAST: *payload = random_broadcast(t); return true;
  case TARN_OP_FLATTEN: return true;
  default:
    if (!t->n) return false;
  }
  if (*op == TARN_OP_SLICE) *payload = random_slice(t, axis);
  else if (*op == TARN_OP_PAD) *payload = random_pad(axis);
  else *payload = ints(1, &(int64_t){axis}); /* squeeze */
  return true;
}

#endif
