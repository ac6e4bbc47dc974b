/* Calls of intrinsics: what they stand for at every point of their access dims, step after step on
 * an accumulator, and which are refused. */
#include "tests/terms.h"

/* ---------------------------------------------------------------- repeated over access dims */
typedef struct meaning {
  const char *in[3]; /* shapes and types of the operands a, b, c */
  const char *term;
} meaning;
static const meaning meanings[] = {
    {{"((4) ()) f32", "((4) ()) f32"}, "(compute (map (sub $0 $1)) %a %b)"},
    {{"((2 3) ()) f32", "((4 3) ()) f32"},
     "(compute dotProd (cartProd (access 1 %a) (access 1 %b)))"},
    {{"((2 3) ()) f32", "((4 3) ()) f32"},
     "(transpose (1 0) (compute dotProd (cartProd (access 1 %a) (access 1 %b))))"},
    {{"((5) ()) i32", NULL}, "(compute (map (add $0 $1)) %a (const i32 ((5) ()) 1 2 3 4 5))"},
    {{"((4) ()) f32", NULL}, "(pad 0 7 1 2 (slice 0 1 3 %a))"},
    {{"((3 4) ()) f32", NULL}, "(fold sum 0 (access 1 %a))"},
    {{"((3 4) ()) f32", NULL}, "(compute reduceMax (windows (2) (1) (access 1 %a)))"},
    {{"((2 3) ()) f32", "((2 2) ()) f32"}, "(concat 1 %a %b)"},
    {{"((2 3) ()) f32", "((3 4) ()) f32"}, "(systolicArray 3 4 (access 1 %a) (access 0 %b))"},
    {{"((2 3) ()) f32", "((3 4) ()) f32", "((2 4) ()) f32"},
     "(systolicArrayAcc 3 4 (access 1 %a) (access 0 %b) (access 2 %c))"},
    {{"((2 4) ()) f32", NULL},
     "(nest (stages (children 1) (shared 2) (split 1) (stage (own) (reduce 4) reduceMax (child 0 "
     "(index ((2) (4)) (2 4) (d0 "
     "d1))))"
     " (stage (own 4) (reduce) (map (exp (sub $0 $1))) (child 0 (index ((2 4) ()) (2 4) (d0 d1)))"
     " (stage 0 (index ((2 4) ()) () ())) out)) (access 1 %a))"},
    {{"((6) ()) i8", NULL}, "(compute (map (cast i32 $0)) (materialise (reshape ((2 3) ()) %a)))"},
    {{"(() ()) f32", NULL}, "(compute (map (tanh $0)) %a)"},
};

typedef struct job {
  const meaning *m;
  uint64_t seed;
  uint32_t n;
  tarn_term in[3], body;
} job;

/* (let ((%a (input a SHAPE TYPE))…) TERM), defined as "m.f". */
static void define(tarn_ctx *c, void *arg) {
  job *j = arg;
  tarn_buf b = {.cx = c};
  tarn_buf_str(&b, "(let (");
  for (j->n = 0; j->n < 3 && j->m->in[j->n]; j->n++)
    tarn_buf_fmt(&b, "(%%%c (input %c %s))", 'a' + j->n, 'a' + j->n, j->m->in[j->n]);
  tarn_buf_fmt(&b, ") %s)", j->m->term);
  j->body = tarn_term_parse(L, read1(c, b.p));
  for (uint32_t i = 0; i < j->n; i++) {
    tarn_buf t = {.cx = c};
    tarn_buf_fmt(&t, "(input %c %s)", 'a' + i, j->m->in[i]);
    j->in[i] = tarn_term_parse(L, read1(c, t.p));
  }
  tarn_call_define(
      L, &(tarn_call_def){
             .name = "m.f", .nin = j->n, .in = j->in, .meaning = j->body, .start = TARN_NONE});
}

/* A type with S in front, then the operand's dims as compute dims. */
static uint32_t over(const tarn_type *t, uint32_t ns, const int64_t *s) {
  int64_t dim[TARN_MAX_DIMS];
  memcpy(dim, s, ns * sizeof *s);
  memcpy(dim + ns, t->dim, t->n * sizeof *dim);
  return tarn_type_tensor(L, t->dtype, ns, ns + t->n, dim);
}
static tarn_term call(const char *name, uint32_t ntheta, int64_t theta, uint32_t type,
                      const tarn_term *kid, uint32_t n) {
  uint32_t p = tarn_payload_intern(
      L, &(tarn_payload){
             .kind = TARN_P_CALL, .name = name, .n = ntheta, .ints = &theta, .type = type});
  return tarn_mk(L, TARN_OP_CALL, p, kid, n);
}
static tarn_tensor *values(tarn_ctx *c, const tarn_type *t, uint64_t *seed) {
  tarn_tensor *x = tarn_tensor_new(c, t->dtype, t->n, t->dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    tarn_value v = {.i = (int64_t)below(seed, 200) - 100};
    if (tarn_dtype_is_float(t->dtype)) v.d = (double)(float)((double)below(seed, 4000) / 1000 - 2);
    tarn_tensor_set(x, i, v);
  }
  return x;
}
/* Point number `at` of a tensor over S. */
static tarn_tensor *point(tarn_ctx *c, const tarn_tensor *x, uint32_t ns, int64_t at) {
  tarn_tensor *p = tarn_tensor_new(c, x->dtype, x->n - ns, x->dim + ns);
  size_t bytes = (size_t)tarn_tensor_count(p) * tarn_dtype_size(x->dtype);
  memcpy(p->data, (const char *)x->data + (size_t)at * bytes, bytes);
  return p;
}
static tarn_tensor *value_of(tarn_term t, const tarn_binding *in, uint32_t n) {
  tarn_tensor *out;
  tarn_eval(L, &t, 1, in, n, TARN_STRICT, NULL, &out);
  return out;
}

static void repeat(tarn_ctx *c, void *arg) {
  static const char *const names[] = {"A", "B", "C"}, *const inner[] = {"a", "b", "c"};
  static const int64_t s[] = {2, 3};
  job *j = arg;
  tarn_term kid[3];
  tarn_binding all[3], one[3];
  for (uint32_t ns = 0; ns <= 2; ns++) {
    for (uint32_t i = 0; i < j->n; i++) {
      kid[i] = tarn_input(L, tarn_format(c, "%s%u", names[i], ns),
                          over(tarn_term_type(L, j->in[i]), ns, s));
      all[i] = (tarn_binding){tarn_format(c, "%s%u", names[i], ns),
                              values(c, tarn_term_type(L, kid[i]), &j->seed)};
    }
    tarn_term t = call("m.f", 0, 0, over(tarn_term_type(L, j->body), ns, s), kid, j->n);
    const tarn_tensor *y = value_of(t, all, j->n);
    int64_t points = ns == 0 ? 1 : ns == 1 ? 2 : 6;
    for (int64_t at = 0; at < points; at++) {
      for (uint32_t i = 0; i < j->n; i++)
        one[i] = (tarn_binding){inner[i], point(c, all[i].value, ns, at)};
      const tarn_tensor *want = value_of(j->body, one, j->n), *got = point(c, y, ns, at);
      size_t bytes = tarn_tensor_bytes(want);
      ck_assert_int_eq(tarn_tensor_count(want), tarn_tensor_count(got));
      ck_assert_msg(memcmp(want->data, got->data, bytes) == 0, "%s: point %d of %d", j->m->term,
                    (int)at, (int)points);
    }
    ck_assert_int_eq(tarn_tensor_count(y), points * tarn_type_count(tarn_term_type(L, j->body)));
  }
}
START_TEST(repeated) {
  job j = {.m = &meanings[_i], .seed = (uint64_t)_i};
  must(define, &j);
  must(repeat, &j);
}
END_TEST

/* ---------------------------------------------------------------- steps on an accumulator */
static const meaning chain = {{"((4) ()) i32", "((4) ()) i32"},
                              "(compute (map (add (mul $1 (i32 3)) $0)) %a %b)"};
static void define_chain(tarn_ctx *c, void *arg) {
  job *j = arg;
  define(c, j);
  tarn_call_def d = {.name = "m.acc",
                     .nin = 2,
                     .in = j->in,
                     .meaning = j->body,
                     .acc = true,
                     .start = tarn_fx_iconst(L, TARN_I32, 5)};
  tarn_call_define(L, &d);
}
static void steps(tarn_ctx *c, void *arg) {
  static const int64_t dims[] = {2, 3, 2, 4};
  job *j = arg;
  for (uint32_t given = 0; given < 2; given++)
    for (uint32_t r = 0; r <= 2; r++) {
      tarn_term kid[] = {
          tarn_input(L, tarn_format(c, "A%u", r),
                     tarn_type_tensor(L, TARN_I32, 1 + r, 2 + r,
                                      r == 2 ? dims
                                      : r    ? (int64_t[]){2, 3, 4}
                                             : (int64_t[]){2, 4})),
          tarn_input(L, "P", tarn_type_tensor(L, TARN_I32, 1, 2, (int64_t[]){2, 4}))};
      tarn_binding in[] = {
          {tarn_format(c, "A%u", r), values(c, tarn_term_type(L, kid[0]), &j->seed)},
          {"P", values(c, tarn_term_type(L, kid[1]), &j->seed)}};
      tarn_term t = call("m.acc", r > 0, r, tarn_term_get(L, kid[1])->type, kid, 1 + given);
      const tarn_tensor *y = value_of(t, in, 2);
      int64_t n = r == 2 ? 6 : r ? 3 : 1;
      for (int64_t s = 0; s < 2; s++)
        for (int64_t e = 0; e < 4; e++) {
          int64_t acc = given ? tarn_tensor_get(in[1].value, s * 4 + e).i : 5;
          for (int64_t k = 0; k < n; k++)
            acc = 3 * acc + tarn_tensor_get(in[0].value, (s * n + k) * 4 + e).i;
          ck_assert_int_eq(tarn_tensor_get(y, s * 4 + e).i, acc);
        }
    }
}
START_TEST(accumulated) {
  job j = {.m = &chain, .seed = 3};
  must(define_chain, &j);
  must(steps, &j);
}
END_TEST

/* ---------------------------------------------------------------- refusals */
static const char *const refused[] = {
    "(call m.acc () ((i32 ((2) (5)))) (input x ((2) (4)) i32))",   /* another result */
    "(call m.acc () ((f32 ((2) (4)))) (input x ((2) (4)) i32))",   /* of another type */
    "(call m.acc () ((i32 ((2) (4)))) (input x ((2) (4)) i8))",    /* an operand of another type */
    "(call m.acc () ((i32 ((2) (4)))) (input x ((2 4) ()) i32))",  /* split elsewhere */
    "(call m.acc () ((i32 ((3) (4)))) (input x ((2) (4)) i32))",   /* another S */
    "(call m.acc (1) ((i32 ((2) (4)))) (input x ((2) (4)) i32))",  /* no dim for the steps */
    "(call m.acc (1 1) ((i32 (() (4)))) (input x ((2) (4)) i32))", /* two integers */
    "(call m.acc (-1) ((i32 ((2) (4)))) (input x ((2) (4)) i32))", /* a negative one */
    "(call m.acc () ((i32 ((2) (4)))) (input x ((2) (4)) i32) (input p ((2 1) (4)) i32))", /* the
                                                                                              accumulator's
                                                                                              S */
    "(call m.acc () ((i32 ((2) (4)))) (input x ((2) (4)) i32) (input x ((2) (4)) i32) (input x "
    "((2) (4)) i32))",
    "(call m.acc () ((i32 ((2) (4))) (i32 ((2) (4)))) (input x ((2) (4)) i32))", /* two results */
    "(call m.f () ((i32 ((2) (4)))) (input x ((2) (4)) i32))", /* not an accumulator: both are
                                                                  needed */
    "(call m.f (1) ((i32 (() (4)))) (input x ((2) (4)) i32) (input y ((2) (4)) i32))", /* and no
                                                                                          steps */
};
static void parse(tarn_ctx *c, void *arg) { tarn_term_parse(L, read1(c, arg)); }
START_TEST(ill_typed) {
  job j = {.m = &chain};
  must(define_chain, &j);
  must(parse, (void *)(uintptr_t) "(call m.acc (1) ((i32 (() (4)))) (input x ((2) (4)) i32))");
  must(parse, (void *)(uintptr_t) "(call elsewhere (1 2) ((i32 (() (4)))) (input x ((2) (4)) i8))");
  ck_assert_msg(tarn_protect(cx, parse, (void *)(uintptr_t)refused[_i]) == TARN_BAD_INPUT,
                "accepted: %s", refused[_i]);
  ck_assert_msg(strncmp(tarn_message(cx), "t:1:1: (call m.", 15) == 0 &&
                    !strchr(tarn_message(cx), '\n'),
                "%s", tarn_message(cx));
}
END_TEST

static void evaluate(tarn_ctx *c, void *arg) {
  value_of(
      tarn_term_parse(L, read1(c, "(call other () ((f32 ((2) ()))) (const f32 ((2) ()) 1 2))")),
      NULL, 0);
  (void)arg;
}
START_TEST(definitions) {
  job j = {.m = &chain}, other = {.m = &meanings[0]},
      gather = {.m = &(meaning){{"((4) ()) f32", "((2) ()) i64"}, "(gather 0 %a %b)"}};
  must(define, &j), must(define, &j); /* the same again */
  ck_assert_ptr_nonnull(tarn_call_find(L, "m.f"));
  ck_assert_ptr_null(tarn_call_find(L, "m.g"));
  ck_assert_int_eq(tarn_protect(cx, define, &other), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx), "call m.f: it means something else already");
  ck_assert_int_eq(tarn_protect(cx, evaluate, NULL), TARN_BAD_INPUT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "other"));
  teardown(), setup();
  ck_assert_int_eq(tarn_protect(cx, define, &gather), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx), "call m.f: its meaning has an operator gather");
}
END_TEST

int main(void) {
  const looped tests[] = {
      {repeated, COUNT(meanings)}, {accumulated, 1}, {ill_typed, COUNT(refused)}, {definitions, 1}};
  return run_suite("call", tests, sizeof tests / sizeof *tests);
}
