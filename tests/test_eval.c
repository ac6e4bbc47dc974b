/* access/: the reference interpreter and the normal form, against an evaluation of every operator
 * by its definition, one scalar at a time. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "access/access.h"
#include "base/base.h"
#include "tests/alloc.h"

static tarn_ctx *cx;
static tarn_lang *L;
#include "tests/transforms.h"
#include "tests/eval_naive.h"

static void make_lang(tarn_ctx *c, void *arg) {
  (void)arg;
  L = tarn_lang_new(c);
}
static void setup(void) {
  cx = tarn_ctx_new(NULL);
  seed = 1;
  ck_assert_int_eq(tarn_protect(cx, make_lang, NULL), TARN_OK);
}
static void teardown(void) { tarn_ctx_free(cx); }
static void run(tarn_fn *body) {
  tarn_status st = tarn_protect(cx, body, NULL);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
}
#define TEST(name)                                                                                 \
  static void name##_body(tarn_ctx *c, void *arg);                                                 \
  START_TEST(name) { run(name##_body); }                                                           \
  END_TEST                                                                                         \
  static void name##_body(tarn_ctx *c, void *arg)
#define UNUSED (void)c, (void)arg

/* ---------------------------------------------------------------- comparing */
static void same_value(tarn_dtype t, tarn_value a, tarn_value b, tarn_term term, int64_t at) {
  bool same = a.i == b.i;
  if (tarn_dtype_is_float(t)) same = !memcmp(&a.d, &b.d, sizeof a.d) || (isnan(a.d) && isnan(b.d));
  if (!same)
    ck_abort_msg("term %u, element %lld: %.17g (%lld), by definition %.17g (%lld)", term,
                 (long long)at, a.d, (long long)a.i, b.d, (long long)b.i);
}

/* The interpreter and the definitions agree to the bit, in both modes. */
static void agree(const tarn_term *root, uint32_t n, const tarn_binding *in, uint32_t nin) {
  tarn_tensor *out[8];
  given = in, ngiven = nin;
  for (int m = 0; m < 2; m++) {
    mode = m ? TARN_WIDE : TARN_STRICT;
    tarn_eval(L, root, n, in, nin, mode, NULL, out);
    memo = TARN_ARRAY(cx, naive, tarn_term_count(L));
    for (uint32_t i = 0; i < n; i++) {
      naive want = define(root[i]);
      bool widened = m && tarn_dtype_is_float(want.t->dtype);
      ck_assert_int_eq(out[i]->dtype, widened ? TARN_F64 : want.t->dtype);
      ck_assert_uint_eq(out[i]->n, want.t->n);
      ck_assert_int_eq(tarn_tensor_count(out[i]), tarn_type_count(want.t));
      for (int64_t j = 0; j < tarn_tensor_count(out[i]); j++)
        same_value(want.t->dtype, tarn_tensor_get(out[i], j), want.v[j], root[i], j);
    }
  }
}

/* ---------------------------------------------------------------- random terms */
static tarn_value random_value(tarn_dtype t) {
  static const double odd[] = {-0.0, INFINITY, NAN, 1e30, 1e-30, 1};
  tarn_value v;
  if (!tarn_dtype_is_float(t)) v.i = below(9) - 4;
  else v.d = below(40) ? (double)below(1 << 24) / (1 << 20) - 8 : odd[below(6)];
  return v;
}

static tarn_tensor *random_tensor(tarn_dtype t, uint32_t n, const int64_t *dim) {
  tarn_tensor *x = tarn_tensor_new(cx, t, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) tarn_tensor_set(x, i, random_value(t));
  return x;
}

#define POOL 40
typedef struct pool {
  tarn_term term[POOL];
  uint32_t n, nin;
  tarn_binding in[8];
} pool;

static const tarn_dtype kinds[] = {TARN_F32, TARN_F32, TARN_F32,  TARN_F64,
                                   TARN_F16, TARN_I32, TARN_BF16, TARN_U8};

static void add_input(pool *p, uint32_t ns, uint32_t n, const int64_t *dim) {
  tarn_dtype t = kinds[below(8)];
  uint32_t type = tarn_type_tensor(L, t, ns, n, dim);
  const char *name = tarn_format(cx, "x%u", p->nin);
  if (below(3)) {
    p->in[p->nin++] = (tarn_binding){name, random_tensor(t, n, dim)};
    p->term[p->n++] = tarn_input(L, name, type);
  } else p->term[p->n++] = tarn_constant(L, "k", random_tensor(t, n, dim), ns);
}

static tarn_term any(const pool *p) { return p->term[below(p->n)]; }
/* Another term of exactly this type, or itself. */
static tarn_term alike(const pool *p, tarn_term a) {
  for (int i = 0; i < 12; i++) {
    tarn_term b = any(p);
    if (tarn_term_get(L, b)->type == tarn_term_get(L, a)->type) return b;
  }
  return a;
}

static uint32_t random_body(tarn_dtype t, uint32_t n) {
  static const tarn_fxop two[] = {TARN_FX_ADD, TARN_FX_MUL, TARN_FX_MAX,
                                  TARN_FX_SUB, TARN_FX_MIN, TARN_FX_DIV};
  uint32_t f = tarn_fx_hole(L, 0);
  for (uint32_t i = 1; i < n; i++) f = tarn_fx_op(L, two[below(6)], f, tarn_fx_hole(L, i), 0);
  if (tarn_dtype_is_float(t) && !below(3))
    f = tarn_fx_op(L, below(2) ? TARN_FX_TANH : TARN_FX_SQRT, f, 0, 0);
  if (!below(3)) {
    uint32_t k = tarn_dtype_is_float(t) ? tarn_fx_const(L, t, 0.5) : tarn_fx_iconst(L, t, 2);
    f = tarn_fx_op(L, TARN_FX_SEL, tarn_fx_op(L, TARN_FX_LT, f, k, 0), f, k);
  }
  return f;
}

/* Position of the first largest element. */
static uint32_t argmax(tarn_dtype t) {
  uint32_t h[4];
  for (uint32_t i = 0; i < 4; i++) h[i] = tarn_fx_hole(L, i);
  uint32_t more = tarn_fx_op(L, TARN_FX_LT, h[0], h[2], 0);
  uint32_t least = tarn_dtype_is_float(t)
                       ? tarn_fx_const(L, t, -INFINITY)
                       : tarn_reducer_get(L, tarn_reducer_of(L, TARN_RED_MAX, t))->init[0];
  tarn_reducer r = {.kind = TARN_RED_CUSTOM,
                    .dtype = t,
                    .ns = 2,
                    .init = {least, tarn_fx_iconst(L, TARN_I64, -1)},
                    .step = {tarn_fx_op(L, TARN_FX_SEL, more, h[2], h[0]),
                             tarn_fx_op(L, TARN_FX_SEL, more, h[3], h[1])},
                    .merge = {TARN_NONE, TARN_NONE},
                    .result = h[1]};
  return tarn_reducer_intern(L, &r);
}

static uint32_t random_reducer(tarn_dtype t) {
  int64_t k = below(6);
  if (k == 0) return argmax(t);
  return tarn_reducer_of(L, k < 3 ? TARN_RED_SUM : (tarn_red_kind)(TARN_RED_SUM + k - 2), t);
}

static tarn_term random_compute(const pool *p) {
  tarn_term a = any(p), arg[4] = {a};
  const tarn_type *t = tarn_term_type(L, a);
  tarn_func f = {.nops = 1, .red = TARN_NONE, .epi = TARN_NONE};
  uint32_t n = 1 + (uint32_t)below(3), narg = 1;
  if (t->n > t->ns && t->dim[t->ns] > 0 && t->dim[t->ns] <= 3 && below(2))
    f.ntuple = (uint8_t)(n = (uint32_t)t->dim[t->ns]);
  else {
    f.nops = (uint8_t)n;
    for (; narg < n; narg++) arg[narg] = alike(p, a);
  }
  f.body = below(2) && n == 2
               ? tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0)
               : random_body(t->dtype, n);
  if (below(3)) f.red = random_reducer(t->dtype);
  bool keeps = f.red == TARN_NONE || tarn_reducer_get(L, f.red)->kind != TARN_RED_CUSTOM;
  if (keeps && f.red != TARN_NONE && below(2)) {
    uint32_t one =
        tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, tarn_reducer_of(L, TARN_RED_MAX, t->dtype));
    arg[narg++] = tarn_compute(L, one, &a, 1);
    f.nepi = 1;
    f.epi = random_body(t->dtype, 2);
  }
  return tarn_compute(L, tarn_fn_intern(L, &f), arg, narg);
}

static tarn_term try_mk(uint32_t op, uint32_t payload, const tarn_term *kid, uint32_t n) {
  uint32_t types[4];
  for (uint32_t i = 0; i < n; i++) types[i] = tarn_term_get(L, kid[i])->type;
  uint32_t t = tarn_type_of(L, op, payload, types, n);
  bool fits = t != TARN_NONE && tarn_type_count(tarn_type_get(L, t)) <= 600;
  return fits ? tarn_mk(L, op, payload, kid, n) : TARN_NONE;
}

static tarn_term random_transform(const pool *p) {
  tarn_term a = any(p);
  uint32_t op, payload, type = tarn_term_get(L, a)->type;
  tarn_dtype t = tarn_type_get(L, type)->dtype;
  fills[0] = tarn_dtype_is_float(t) ? tarn_fx_const(L, t, -0.5) : tarn_fx_iconst(L, t, 3);
  fills[1] = tarn_dtype_is_float(t) ? tarn_fx_const(L, t, 7) : tarn_fx_iconst(L, t, 1);
  return random_op(type, &op, &payload) ? try_mk(op, payload, &a, 1) : TARN_NONE;
}

static tarn_term random_gather(const pool *p, tarn_term a) {
  const tarn_type *t = tarn_term_type(L, a);
  int64_t dim[] = {1 + below(3), 1 + below(2)};
  if (!t->n) return TARN_NONE;
  uint32_t axis = (uint32_t)below(t->n), n = (uint32_t)below(3);
  if (!t->dim[axis]) return TARN_NONE;
  tarn_tensor *x = tarn_tensor_new(cx, TARN_I32, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++)
    tarn_tensor_set(x, i, (tarn_value){.i = below(2 * t->dim[axis]) - t->dim[axis]});
  tarn_term k[] = {a, tarn_constant(L, "i", x, n)};
  (void)p;
  return try_mk(TARN_OP_GATHER, ints(1, &(int64_t){axis}), k, 2);
}

static tarn_term random_systolic(const pool *p, tarn_term a) {
  const tarn_type *t = tarn_term_type(L, a);
  if (t->n == 0 || t->n != t->ns + 1) return TARN_NONE;
  int64_t dim[] = {t->dim[t->ns], 1 + below(4)};
  tarn_term k[3] = {a, tarn_constant(L, "b", random_tensor(t->dtype, 2, dim), 0)};
  tarn_term r = try_mk(TARN_OP_SYSTOLIC, ints(2, dim), k, 2);
  if (r == TARN_NONE || below(2)) return r;
  k[2] = alike(p, r);
  return try_mk(TARN_OP_SYSTOLIC_ACC, ints(2, dim), k, 3);
}

static tarn_term random_other(const pool *p) {
  tarn_term a = any(p), k[] = {a, alike(p, a)};
  const tarn_type *t = tarn_term_type(L, a);
  tarn_payload pl = {.kind = TARN_P_FOLD, .n = 1, .ints = &(int64_t){below(4)}};
  switch (below(8)) {
  case 0: return t->n ? try_mk(TARN_OP_CONCAT, ints(1, &(int64_t){below(t->n)}), k, 2) : TARN_NONE;
  case 1: return try_mk(TARN_OP_PAIR, 0, k, 2);
  case 2:
  case 3:
    k[1] = below(2) ? any(p) : k[1];
    return try_mk(TARN_OP_CART_PROD, ints(1, &(int64_t){below(2)}), k, 2);
  case 4:
    pl.value = random_reducer(t->dtype);
    return try_mk(TARN_OP_FOLD, tarn_payload_intern(L, &pl), k, 1);
  case 5: return random_gather(p, a);
  case 6: return random_systolic(p, a);
  default: return try_mk(TARN_OP_MATERIALISE, 0, k, 1);
  }
}

static void random_pool(pool *p) {
  *p = (pool){0};
  for (int i = 0; i < 3; i++) {
    const tarn_type *t = tarn_type_get(L, random_type());
    add_input(p, t->ns, t->n, t->dim);
  }
  for (int tries = 0; p->n < 18 && tries < 60; tries++) {
    int64_t k = below(4);
    tarn_term t = k < 2 ? random_transform(p) : k == 2 ? random_other(p) : random_compute(p);
    if (t == TARN_NONE || tarn_type_count(tarn_term_type(L, t)) > 600) continue;
    p->term[p->n++] = t;
  }
}

TEST(random_terms_mean_what_they_say) {
  UNUSED;
  for (int round = 0; round < 700; round++) {
    pool p;
    random_pool(&p);
    tarn_term roots[4];
    for (int i = 0; i < 4; i++) roots[i] = p.term[p.n - 1 - (uint32_t)i * (p.n > 8)];
    agree(roots, 4, p.in, p.nin);
  }
}

/* ---------------------------------------------------------------- the normal form */
static bool is_normal(tarn_term t) {
  const tarn_node *n = tarn_term_get(L, t);
  bool ok = !tarn_op_is_view(n->op) || n->op == TARN_OP_VIEW;
  ok &= n->op != TARN_OP_PAIR && n->op != TARN_OP_CART_PROD;
  for (uint32_t i = 0; ok && i < n->n; i++) ok = is_normal(n->kid[i]);
  return ok;
}

TEST(normal_forms) {
  UNUSED;
  for (int round = 0; round < 500; round++) {
    pool p;
    random_pool(&p);
    for (uint32_t i = 0; i < p.n; i++) {
      tarn_term n = tarn_normalise(L, p.term[i]);
      ck_assert(is_normal(n));
      ck_assert_uint_eq(tarn_term_get(L, n)->type, tarn_term_get(L, p.term[i])->type);
      ck_assert_uint_eq(tarn_normalise(L, n), n);
    }
  }
}

/* x as ((N,P,Q),(C,k,k)), weights ((O),(C,k,k)) -> NCHW. */
static tarn_term conv(tarn_term x, tarn_term w, int64_t k, int64_t stride, int64_t pad) {
  const tarn_type *t = tarn_term_type(L, x);
  uint32_t zero = tarn_fx_const(L, t->dtype, 0);
  x = tarn_pad(L, 2, zero, pad, pad, tarn_pad(L, 3, zero, pad, pad, x));
  x = tarn_windows(L, (int64_t[]){t->dim[1], k, k}, (int64_t[]){1, stride, stride}, NULL,
                   tarn_access(L, 1, x));
  tarn_term c = tarn_cart(L, 0, tarn_access(L, 1, w), tarn_squeeze(L, 1, x));
  c = tarn_compute(L, tarn_fn_dot(L, t->dtype), &c, 1);
  return tarn_transpose(L, (uint32_t[]){1, 0, 2, 3}, c);
}

TEST(a_convolution_is_one_compute_over_two_views) {
  UNUSED;
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 4, 4, (int64_t[]){1, 3, 9, 9}));
  tarn_term w = tarn_input(L, "w", tarn_type_tensor(L, TARN_F32, 4, 4, (int64_t[]){5, 3, 3, 3}));
  const tarn_node *n = tarn_term_get(L, tarn_normalise(L, conv(x, w, 3, 1, 1)));
  ck_assert_uint_eq(n->op, TARN_OP_VIEW); /* the transposition */
  n = tarn_term_get(L, n->kid[0]);
  ck_assert_uint_eq(n->op, TARN_OP_COMPUTE);
  ck_assert_uint_eq(n->n, 2);
  for (uint32_t i = 0; i < 2; i++) {
    ck_assert_uint_eq(tarn_term_get(L, n->kid[i])->op, TARN_OP_VIEW);
    ck_assert_uint_eq(tarn_term_get(L, n->kid[i])->kid[0], i ? x : w);
  }
  ck_assert(tarn_fn_is_dot(L, tarn_payload_get(L, n->payload)->id));
}

/* ---------------------------------------------------------------- sums of products */
static void check_conv(tarn_dtype t, int64_t size, int64_t channels, int64_t k, int64_t stride,
                       int64_t pad) {
  const int64_t xd[] = {2, channels, size, size}, wd[] = {11, channels, k, k};
  tarn_binding in[] = {{"x", random_tensor(t, 4, xd)}, {"w", random_tensor(t, 4, wd)}};
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, t, 4, 4, xd));
  tarn_term w = tarn_input(L, "w", tarn_type_tensor(L, t, 4, 4, wd));
  tarn_term y = conv(x, w, k, stride, pad);
  agree(&y, 1, in, 2);
}

TEST(convolutions) {
  UNUSED;
  check_conv(TARN_F32, 9, 3, 3, 1, 1);
  check_conv(TARN_F32, 19, 2, 3, 1, 1); /* more results in a plane than fit in a run */
  check_conv(TARN_F32, 12, 3, 5, 2, 2);
  check_conv(TARN_F32, 8, 4, 1, 1, 0);
  check_conv(TARN_F64, 9, 2, 3, 1, 1);
  check_conv(TARN_F16, 9, 2, 3, 1, 1);
  check_conv(TARN_I32, 9, 2, 3, 1, 1);
  check_conv(TARN_I32, 19, 2, 3, 1, 1);
  check_conv(TARN_I32, 12, 3, 5, 2, 2);
}

/* Each axis of the last two with s - 1 zeros after every element. */
static tarn_term spread(tarn_term x, int64_t s) {
  for (uint32_t axis = 2; axis < 4; axis++) {
    const tarn_type *t = tarn_term_type(L, x);
    int64_t d[4];
    memcpy(d, t->dim, sizeof d);
    d[axis] *= s;
    x = tarn_insert_axis(L, axis + 1, x);
    x = tarn_pad(L, axis + 1, tarn_fx_const(L, t->dtype, 0), 0, s - 1, x);
    x = tarn_reshape(L, 4, 4, d, x);
  }
  return x;
}

/* A transposed convolution: divisions and remainders of sums of result and window indices. */
static void check_transposed(tarn_dtype t, int64_t s, int64_t k, bool product) {
  const int64_t xd[] = {1, 3, 5, 5}, wd[] = {10, 3, k, k};
  tarn_binding in[] = {{"x", random_tensor(t, 4, xd)}, {"w", random_tensor(t, 4, wd)}};
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, t, 4, 4, xd)), y;
  tarn_term w = tarn_input(L, "w", tarn_type_tensor(L, t, 4, 4, wd));
  if (product) y = conv(spread(x, s), w, k, 1, k - 1);
  else {
    y = tarn_access(L, 2, spread(x, s));
    y = tarn_windows(L, (int64_t[]){k, k}, (int64_t[]){1, 1}, NULL, y);
    y = tarn_compute(
        L, tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, tarn_reducer_of(L, TARN_RED_MAX, t)), &y, 1);
  }
  agree(&y, 1, in, 2);
}

TEST(transposed_convolutions) {
  UNUSED;
  check_transposed(TARN_F32, 2, 4, true);
  check_transposed(TARN_F32, 3, 5, true);
  check_transposed(TARN_F32, 3, 4, false);
  check_transposed(TARN_I32, 2, 3, true);
}

/* Windows over windows over a reshape: a division within a division. */
TEST(nested_divisions) {
  UNUSED;
  const int64_t d[] = {60}, d2[] = {9, 7}, d1[] = {63};
  tarn_binding in[] = {{"x", random_tensor(TARN_F32, 2, d2)}};
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 0, 2, d2));
  x = tarn_slice(L, 0, 0, 60, 1, tarn_reshape(L, 0, 1, d1, x));
  x = tarn_reshape(L, 0, 2, (int64_t[]){5, 12}, x);
  x = tarn_transpose(L, (uint32_t[]){1, 0}, x);
  x = tarn_reshape(L, 0, 1, d, x);
  x = tarn_windows(L, (int64_t[]){7}, (int64_t[]){3}, NULL, x);
  x = tarn_access(L, 0, tarn_transpose(L, (uint32_t[]){1, 0}, tarn_access(L, 2, x)));
  x = tarn_reshape(L, 0, 2, (int64_t[]){14, 9}, x);
  x = tarn_windows(L, (int64_t[]){3, 2}, (int64_t[]){2, 1}, NULL, x);
  uint32_t f = tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  x = tarn_compute(L, f, &x, 1);
  agree(&x, 1, in, 1);
}

static void check_product(tarn_dtype t, int64_t m, int64_t n, int64_t k, bool bias) {
  const int64_t xd[] = {m, k}, wd[] = {n, k}, bd[] = {1, n};
  tarn_binding in[] = {{"x", random_tensor(t, 2, xd)}, {"w", random_tensor(t, 2, wd)}};
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, t, 1, 2, xd));
  tarn_term w = tarn_input(L, "w", tarn_type_tensor(L, t, 1, 2, wd));
  tarn_term c = tarn_cart(L, 0, x, w), arg[2] = {c};
  tarn_func f = *tarn_fn_get(L, tarn_fn_dot(L, t));
  if (bias) {
    f.nepi = 1;
    f.epi = tarn_fx_op(L, TARN_FX_ADD, f.epi == TARN_NONE ? tarn_fx_hole(L, 0) : f.epi,
                       tarn_fx_hole(L, 1), 0);
    arg[1] = tarn_constant(L, "b", random_tensor(t, 2, bd), 2);
    arg[1] = tarn_broadcast(L, 2, 2, (int64_t[]){m, n}, arg[1]);
  }
  tarn_term y = tarn_compute(L, tarn_fn_intern(L, &f), arg, 1 + bias);
  agree(&y, 1, in, 2);
}

TEST(matrix_products) {
  UNUSED;
  check_product(TARN_F32, 5, 300, 7, true);
  check_product(TARN_F32, 19, 17, 20, false);
  check_product(TARN_F32, 1, 40, 2500, true); /* more steps than are held at once */
  check_product(TARN_F32, 3, 2, 2500, false); /* too short for the fast path */
  check_product(TARN_F32, 4, 20, 0, true);
  check_product(TARN_BF16, 3, 30, 9, true);
  check_product(TARN_F64, 9, 33, 9, true);
  check_product(TARN_I32, 5, 300, 7, true);
  check_product(TARN_I32, 1, 40, 2500, true);
}

/* Depthwise: both factors depend on the channel. */
TEST(shared_dims) {
  UNUSED;
  const int64_t xd[] = {6, 7, 7}, wd[] = {6, 3, 3};
  tarn_binding in[] = {{"x", random_tensor(TARN_F32, 3, xd)},
                       {"w", random_tensor(TARN_F32, 3, wd)}};
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 1, 3, xd));
  tarn_term w = tarn_input(L, "w", tarn_type_tensor(L, TARN_F32, 1, 3, wd));
  x = tarn_windows(L, (int64_t[]){3, 3}, (int64_t[]){1, 1}, NULL, x);
  tarn_term c1 = tarn_cart(L, 1, x, w), y = tarn_compute(L, tarn_fn_dot(L, TARN_F32), &c1, 1);
  agree(&y, 1, in, 2);
}

/* ---------------------------------------------------------------- nests */
typedef struct builder {
  tarn_nest n;
  tarn_stage s[3];
  tarn_read r[3][3];
} builder;

/* own loop i reads dim i, shared ones in front. */
static uint32_t map_of(uint32_t n, const int64_t *dim, uint32_t nin, const int64_t *in,
                       const uint32_t *loop) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = (uint8_t)nin, .fill = TARN_NONE};
  memcpy(m.dim, dim, n * sizeof *dim);
  for (uint32_t i = 0; i < nin; i++) m.in[i] = in[i], m.e[i] = tarn_ix_var(L, loop[i], dim);
  return tarn_map_intern(L, &m);
}

/* Softmax over rows: e = exp(x - max) with the maximum and the sum local to a row. */
static uint32_t softmax_nest(int64_t rows, int64_t cols, bool both) {
  const int64_t rc[] = {rows, cols}, one[] = {rows};
  uint32_t h0 = tarn_fx_hole(L, 0), h1 = tarn_fx_hole(L, 1);
  uint32_t whole = map_of(2, rc, 2, rc, (uint32_t[]){0, 1}), row = map_of(2, rc, 0, NULL, NULL);
  uint32_t own = map_of(2, rc, 1, rc + 1, (uint32_t[]){1});
  uint32_t e = tarn_fx_op(L, TARN_FX_EXP, tarn_fx_op(L, TARN_FX_SUB, h0, h1, 0), 0, 0);
  builder b = {.n = {.depth = 1, .out_ns = 1, .shared = {rows}, .nstage = 3, .nchild = 1}};
  (void)one;
  b.r[0][0] = (tarn_read){false, 0, whole};
  b.r[1][0] = (tarn_read){false, 0, whole};
  b.r[1][1] = (tarn_read){true, 0, row};
  b.r[2][0] = (tarn_read){true, 1, own};
  b.s[0] = (tarn_stage){.nred = 1, .red = {cols}, .read = b.r[0]};
  b.s[0].fn = tarn_fn_reduce(L, h0, 1, tarn_reducer_of(L, TARN_RED_MAX, TARN_F32));
  b.s[1] = (tarn_stage){.nown = 1, .own = {cols}, .read = b.r[1], .out = both};
  b.s[1].fn = tarn_fn_map(L, e, 2);
  b.s[2] = (tarn_stage){.nred = 1, .red = {cols}, .read = b.r[2], .out = true};
  b.s[2].fn = tarn_fn_reduce(L, h0, 1, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  b.n.stage = b.s;
  return tarn_nest_intern(L, &b.n);
}

/* The same as computes: exp(x - max), and its sum. */
static tarn_term softmax_sum(tarn_term x, int64_t rows, int64_t cols, tarn_term *e) {
  uint32_t h0 = tarn_fx_hole(L, 0), h1 = tarn_fx_hole(L, 1);
  uint32_t f = tarn_fx_op(L, TARN_FX_EXP, tarn_fx_op(L, TARN_FX_SUB, h0, h1, 0), 0, 0);
  tarn_term m =
      tarn_compute(L, tarn_fn_reduce(L, h0, 1, tarn_reducer_of(L, TARN_RED_MAX, TARN_F32)), &x, 1);
  m = tarn_broadcast(L, 1, 2, (int64_t[]){rows, cols},
                     tarn_access(L, 1, tarn_insert_axis(L, 1, m)));
  *e = tarn_compute(L, tarn_fn_map(L, f, 2), (tarn_term[]){x, m}, 2);
  return tarn_compute(L, tarn_fn_reduce(L, h0, 1, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32)), e,
                      1);
}

static void check_softmax(int64_t rows, int64_t cols) {
  const int64_t d[] = {rows, cols};
  tarn_binding in[] = {{"x", random_tensor(TARN_F32, 2, d)}};
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 1, 2, d)), e, root[4];
  root[0] = softmax_sum(x, rows, cols, &e);
  root[1] = e;
  tarn_term n = tarn_mk(L, TARN_OP_NEST,
                        tarn_payload_of(L, TARN_P_NEST, softmax_nest(rows, cols, true)), &x, 1);
  root[2] = tarn_mk(L, TARN_OP_NTH, ints(1, &(int64_t){1}), &n, 1);
  root[3] = tarn_mk(L, TARN_OP_NTH, ints(1, &(int64_t){0}), &n, 1);
  tarn_term single = tarn_mk(
      L, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, softmax_nest(rows, cols, false)), &x, 1);
  for (int m = 0; m < 2; m++) {
    tarn_tensor *out[4], *alone;
    tarn_eval(L, root, 4, in, 1, m ? TARN_WIDE : TARN_STRICT, NULL, out);
    tarn_eval(L, &single, 1, in, 1, m ? TARN_WIDE : TARN_STRICT, NULL, &alone);
    size_t item = tarn_dtype_size(out[0]->dtype);
    ck_assert(!memcmp(out[0]->data, out[2]->data, (size_t)rows * item));
    ck_assert(!memcmp(out[0]->data, alone->data, (size_t)rows * item));
    ck_assert(!memcmp(out[1]->data, out[3]->data, (size_t)(rows * cols) * item));
  }
}

TEST(nests) {
  UNUSED;
  check_softmax(3, 5);
  check_softmax(300, 41);
  check_softmax(5, 700);
  check_softmax(2500, 4100); /* local buffers in several blocks */
}

/* A nest that reads a padded view through a guarded map of another fill. */
TEST(two_fills) {
  UNUSED;
  const int64_t d[] = {6}, wide[] = {12};
  tarn_binding in[] = {{"x", random_tensor(TARN_F32, 1, d)}};
  uint32_t one = tarn_fx_const(L, TARN_F32, 1), two = tarn_fx_const(L, TARN_F32, 2);
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 1, 1, d));
  tarn_term inner = tarn_pad(L, 0, one, 1, 1, x), y = tarn_pad(L, 0, two, 2, 2, inner);
  tarn_imap m = {.ns = 1, .n = 1, .dim = {12}, .nin = 1, .in = {8}, .nguard = 1, .fill = two};
  uint32_t v = tarn_ix_var(L, 0, wide);
  m.e[0] = tarn_ix_add(L, v, tarn_ix_const(L, -2), wide);
  m.guard[0] = (tarn_guard){v, 2, 10};
  tarn_read r = {false, 0, tarn_map_intern(L, &m)};
  tarn_stage s = {.nown = 1, .own = {12}, .read = &r, .out = true};
  s.fn = tarn_fn_map(L, tarn_fx_hole(L, 0), 1);
  tarn_nest n = {.out_ns = 1, .nstage = 1, .nchild = 1, .stage = &s};
  tarn_term nest =
      tarn_mk(L, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, tarn_nest_intern(L, &n)), &inner, 1);
  agree(&y, 1, in, 1);
  tarn_tensor *out[2];
  tarn_eval(L, (tarn_term[]){y, nest}, 2, in, 1, TARN_STRICT, NULL, out);
  ck_assert(!memcmp(out[0]->data, out[1]->data, 12 * sizeof(float)));
  uint32_t wrong = tarn_type_tensor(L, TARN_F32, 1, 1, d);
  uint32_t payload = tarn_term_get(L, nest)->payload;
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_NEST, payload, &wrong, 1), TARN_NONE);
  wrong = tarn_type_tensor(L, TARN_F64, 1, 1, (int64_t[]){8}); /* the fill is f32 */
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_NEST, payload, &wrong, 1), TARN_NONE);
}

static void bad_nest(tarn_ctx *c, void *arg) {
  (void)c;
  tarn_nest_intern(L, arg);
}
TEST(ill_formed_nests_are_refused) {
  UNUSED;
  tarn_nest good = *tarn_nest_get(L, softmax_nest(3, 5, false));
  tarn_stage s[3];
  tarn_read r[2] = {good.stage[1].read[0], good.stage[1].read[1]};
  for (int k = 0; k < 7; k++) {
    tarn_nest n = good;
    memcpy(s, good.stage, sizeof s);
    n.stage = s;
    s[1].read = r;
    if (k == 1) s[2].out = false;
    if (k == 2) r[1].src = 1; /* itself */
    if (k == 3) n.nchild = 0;
    if (k == 4) s[1].own[0] = 6;                                 /* the reads' maps are over 5 */
    if (k == 5) s[2].fn = tarn_fn_map(L, tarn_fx_hole(L, 0), 1); /* reduce loops, no reducer */
    if (k == 6) n.out_ns = 2;
    tarn_status st = tarn_protect(cx, bad_nest, &n);
    ck_assert_int_eq(st, k ? TARN_BAD_INPUT : TARN_OK);
    r[1].src = 0;
  }
}

/* ---------------------------------------------------------------- opaque operators, life of values
 */
static int calls;

static void twice(tarn_ctx *c, const tarn_payload *p, const tarn_tensor *const *in, uint32_t nin,
                  tarn_tensor *const *out, uint32_t nout) {
  (void)c;
  calls++;
  ck_assert_str_eq(p->name, "twice");
  ck_assert_uint_eq(nin, 1);
  for (uint32_t k = 0; k < nout; k++)
    for (int64_t i = 0; i < tarn_tensor_count(in[0]); i++) {
      tarn_value v = tarn_tensor_get(in[0], i);
      v.d *= 2 + k;
      tarn_tensor_set(out[k], i, v);
    }
}

TEST(opaque_operators_run_once) {
  UNUSED;
  const int64_t d[] = {4, 6};
  uint32_t type = tarn_type_tensor(L, TARN_F32, 2, 2, d);
  tarn_binding in[] = {{"x", random_tensor(TARN_F32, 2, d)}};
  tarn_term x = tarn_input(L, "x", type);
  tarn_payload p = {.kind = TARN_P_OPAQUE,
                    .name = "twice",
                    .type = tarn_type_tuple(L, 2, (uint32_t[]){type, type})};
  tarn_term same = tarn_compute(L, tarn_fn_map(L, tarn_fx_hole(L, 0), 1), &x, 1);
  tarn_term y = tarn_mk(L, TARN_OP_OPAQUE, tarn_payload_intern(L, &p), &same, 1);
  tarn_term a = tarn_mk(L, TARN_OP_NTH, ints(1, &(int64_t){0}), &y, 1);
  tarn_term b = tarn_mk(L, TARN_OP_NTH, ints(1, &(int64_t){1}), &y, 1), root[3];
  root[0] = tarn_transpose(L, (uint32_t[]){1, 0}, a);
  root[1] = tarn_slice(L, 0, 3, -1, -2, a);
  root[2] = b;
  for (int m = 0; m < 2; m++) {
    tarn_tensor *out[3];
    calls = 0;
    tarn_eval(L, root, 3, in, 1, m ? TARN_WIDE : TARN_STRICT, twice, out);
    ck_assert_int_eq(calls, 1);
    for (int64_t i = 0; i < 4; i++)
      for (int64_t j = 0; j < 6; j++) {
        double v = tarn_tensor_get(in[0].value, i * 6 + j).d;
        if (isnan(v)) continue;
        ck_assert(tarn_tensor_get(out[0], j * 4 + i).d == 2 * v);
        if (i % 2) ck_assert(tarn_tensor_get(out[1], (3 - i) / 2 * 6 + j).d == 2 * v);
        ck_assert(tarn_tensor_get(out[2], i * 6 + j).d == (double)(float)(3 * v));
      }
  }
}

/* ---------------------------------------------------------------- errors and memory */
typedef struct job {
  tarn_term root;
  const tarn_binding *in;
  uint32_t nin;
  tarn_tensor *out;
} job;
static void do_eval(tarn_ctx *c, void *arg) {
  (void)c;
  job *j = arg;
  tarn_eval(L, &j->root, 1, j->in, j->nin, TARN_STRICT, NULL, &j->out);
}
static void refuse(tarn_term root, const tarn_binding *in, uint32_t nin, const char *why) {
  job j = {root, in, nin, NULL};
  ck_assert_int_eq(tarn_protect(cx, do_eval, &j), TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), why), "%s", tarn_message(cx));
}

TEST(what_cannot_be_computed_is_an_error) {
  UNUSED;
  const int64_t d[] = {4, 6};
  uint32_t type = tarn_type_tensor(L, TARN_F32, 2, 2, d);
  tarn_binding in[] = {{"x", random_tensor(TARN_F32, 2, d)}};
  tarn_term x = tarn_input(L, "x", type), k[] = {x, 0};
  tarn_tensor *i = tarn_tensor_new(cx, TARN_I64, 0, NULL);
  refuse(x, NULL, 0, "input x");
  in[0].value = random_tensor(TARN_F64, 2, d);
  refuse(x, in, 1, "input x");
  in[0].value = random_tensor(TARN_F32, 1, d);
  refuse(x, in, 1, "input x");
  in[0].value = random_tensor(TARN_F32, 2, d);
  tarn_tensor_set(i, 0, (tarn_value){.i = 4});
  k[1] = tarn_constant(L, "i", i, 0);
  refuse(tarn_mk(L, TARN_OP_GATHER, ints(1, &(int64_t){0}), k, 2), in, 1, "index 4");
  tarn_payload p = {.kind = TARN_P_OPAQUE, .name = "Mystery", .type = type};
  refuse(tarn_mk(L, TARN_OP_OPAQUE, tarn_payload_intern(L, &p), &x, 1), in, 1, "Mystery");
}

/* An allocator that knows the most that was ever held outside the arena's blocks. */
typedef struct meter {
  size_t held, most;
} meter;
static void *metered(void *user, void *ptr, size_t old, size_t n) {
  meter *m = user;
  void *p = tarn_malloc_allocator.realloc(tarn_malloc_allocator.user, ptr, old, n);
  if (p || n == 0) m->held += n - (ptr ? old : 0);
  if (m->held > m->most) m->most = m->held;
  return p;
}

/* A chain of 40 maps over 1 MiB tensors, each used twice. */
static void long_chain(tarn_ctx *c, void *arg) {
  tarn_lang *l = tarn_lang_new(c);
  const int64_t d[] = {512, 512};
  meter *m = arg;
  tarn_binding in = {"x", tarn_tensor_new(c, TARN_F32, 2, d)};
  tarn_term x = tarn_input(l, "x", tarn_type_tensor(l, TARN_F32, 2, 2, d));
  uint32_t f = tarn_fx_op(l, TARN_FX_ADD, tarn_fx_hole(l, 0), tarn_fx_hole(l, 1), 0);
  tarn_tensor *out;
  for (int i = 0; i < 40; i++)
    x = tarn_compute(l, tarn_fn_map(l, f, 2),
                     (tarn_term[]){x, tarn_transpose(l, (uint32_t[]){1, 0}, x)}, 2);
  size_t before = m->most = m->held;
  tarn_eval(l, &x, 1, &in, 1, TARN_STRICT, NULL, &out);
  ck_assert_uint_lt(m->most - before, 5u << 20);
}

START_TEST(buffers_go_after_their_last_use) {
  meter m = {0};
  tarn_ctx *c = tarn_ctx_new(&(tarn_allocator){metered, &m});
  ck_assert_int_eq(tarn_protect(c, long_chain, &m), TARN_OK);
  tarn_ctx_free(c);
  ck_assert_uint_eq(m.held, 0);
}
END_TEST

/* Everything that allocates, once. */
static void some_work(tarn_ctx *c, void *arg) {
  (void)arg;
  cx = c;
  seed = 7;
  L = tarn_lang_new(c);
  const int64_t xd[] = {1, 2, 7, 7}, wd[] = {3, 2, 3, 3};
  tarn_binding in[] = {{"x", random_tensor(TARN_F32, 4, xd)},
                       {"w", random_tensor(TARN_F32, 4, wd)}};
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 4, 4, xd));
  tarn_term w = tarn_input(L, "w", tarn_type_tensor(L, TARN_F32, 4, 4, wd));
  tarn_term y = conv(x, w, 3, 1, 1), k[] = {y, y};
  tarn_tensor *out;
  y = tarn_concat(L, 1, k, 2);
  tarn_eval(L, &y, 1, in, 2, TARN_STRICT, NULL, &out);
}

START_TEST(every_allocation_may_fail) {
  tarn_ctx *saved = cx;
  for (uint64_t k = 1;; k++) {
    tarn_test_alloc t = {.fail_at = k};
    tarn_allocator a = tarn_test_allocator(&t);
    tarn_ctx *c = tarn_ctx_new(&a);
    tarn_status st = c ? tarn_protect(c, some_work, NULL) : TARN_MEMORY;
    ck_assert_int_eq(st, t.failed ? TARN_MEMORY : TARN_OK);
    tarn_ctx_free(c);
    ck_assert_uint_eq(t.held, 0);
    ck_assert(!t.wrong_size);
    if (t.count < k) break;
  }
  cx = saved;
}
END_TEST

/* ---------------------------------------------------------------- 16-bit floats */
/* The nearest of the two neighbours of x, the even one at a tie: what both conversions must give.
 */
static void check_nearest(float x, uint16_t got, float (*from)(uint16_t)) {
  float g = from(got), up, down;
  if (isnan(x)) {
    MUST(isnan(g));
    return;
  }
  MUST(!!signbit(x) == got >> 15);
  if (g == x || isinf(g)) {
    if (isinf(g) && !isinf(x)) { /* the largest finite number is further off than half a step */
      double last = from((uint16_t)(got - 1)), before = from((uint16_t)(got - 2));
      MUST(fabs((double)x) >= fabs(last + (last - before) / 2));
    }
    return;
  }
  uint16_t mag = got & 0x7FFF, sign = got & 0x8000;
  up = from((uint16_t)(sign | (mag + 1)));
  down = mag ? from((uint16_t)(sign | (mag - 1))) : -from((uint16_t)(sign | 1));
  double e = fabs((double)g - (double)x);
  double eu = isinf(up) ? INFINITY : fabs((double)up - (double)x),
         ed = fabs((double)down - (double)x);
  MUST(e <= eu && e <= ed && ((e < eu && e < ed) || got % 2 == 0));
}

START_TEST(sixteen_bit_floats) {
  for (uint32_t h = 0; h < 65536; h++) {
    float a = tarn_from_f16((uint16_t)h), b = tarn_from_bf16((uint16_t)h);
    if (isnan(a)) MUST(isnan(tarn_from_f16(tarn_to_f16(a))));
    else MUST(tarn_to_f16(a) == h);
    if (isnan(b)) MUST(isnan(tarn_from_bf16(tarn_to_bf16(b))));
    else MUST(tarn_to_bf16(b) == h);
  }
  for (int i = 0; i < 2000000; i++) {
    uint32_t bits = (uint32_t)next_random();
    if (i % 2) bits = (bits & 0x8FFFFFFF) | 0x30000000; /* near the range of f16 */
    if (i % 4 == 1) bits &= ~(uint32_t)0xFFF;           /* ties */
    float x;
    memcpy(&x, &bits, sizeof x);
    check_nearest(x, tarn_to_f16(x), tarn_from_f16);
    check_nearest(x, tarn_to_bf16(x), tarn_from_bf16);
  }
  ck_assert(tarn_from_f16(0x3C00) == 1 && tarn_from_f16(0x7BFF) == 65504 &&
            tarn_from_f16(1) == 0x1p-24f);
  ck_assert(tarn_to_f16(65520) == 0x7C00 && tarn_to_f16(65519) == 0x7BFF);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("eval");
  TCase *t = tcase_create("all");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, random_terms_mean_what_they_say);
  tcase_add_test(t, normal_forms);
  tcase_add_test(t, a_convolution_is_one_compute_over_two_views);
  tcase_add_test(t, convolutions);
  tcase_add_test(t, transposed_convolutions);
  tcase_add_test(t, nested_divisions);
  tcase_add_test(t, matrix_products);
  tcase_add_test(t, shared_dims);
  tcase_add_test(t, nests);
  tcase_add_test(t, two_fills);
  tcase_add_test(t, ill_formed_nests_are_refused);
  tcase_add_test(t, opaque_operators_run_once);
  tcase_add_test(t, what_cannot_be_computed_is_an_error);
  tcase_add_test(t, buffers_go_after_their_last_use);
  tcase_add_test(t, every_allocation_may_fail);
  tcase_add_test(t, sixteen_bit_floats);
  suite_add_tcase(s, t);
  return s;
}

int main(void) {
  SRunner *r = srunner_create(suite());
  srunner_run_all(r, CK_NORMAL);
  int bad = srunner_ntests_failed(r);
  srunner_free(r);
  return bad != 0;
}
