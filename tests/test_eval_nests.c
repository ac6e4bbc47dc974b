/* access/: nests, opaque operators, refusals and memory of the reference interpreter. */
#include "tests/eval_kit.h"

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
  b.r[0][0] = (tarn_read){.map = whole};
  b.r[1][0] = (tarn_read){.map = whole};
  b.r[1][1] = (tarn_read){.stage = true, .map = row};
  b.r[2][0] = (tarn_read){.stage = true, .src = 1, .map = own};
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
  tarn_read r = {.map = tarn_map_intern(L, &m)};
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
int main(void) {
  TCase *t = tcase_create("eval_nests");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, nests);
  tcase_add_test(t, two_fills);
  tcase_add_test(t, ill_formed_nests_are_refused);
  tcase_add_test(t, opaque_operators_run_once);
  tcase_add_test(t, what_cannot_be_computed_is_an_error);
  tcase_add_test(t, buffers_go_after_their_last_use);
  tcase_add_test(t, every_allocation_may_fail);
  return run_checks("eval_nests", t);
}
