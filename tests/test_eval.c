/* access/: the reference interpreter and the normal form, against an evaluation of every operator
 * by its definition, one scalar at a time. */
#include "tests/eval_kit.h"

/* ---------------------------------------------------------------- random terms */
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

int main(void) {
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
  tcase_add_test(t, sixteen_bit_floats);
  return run_checks("eval", t);
}
