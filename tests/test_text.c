/* access/: text there and back: terms, random terms, programs and their constants. */
#include "access/access.h"
#include "tests/alloc.h"
#include "tests/terms.h"
#include "tests/typings.h"
#include <stdio.h>
#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

/* ---------------------------------------------------------------- text there and back */
static const char *const texts[] = {
    /* printed as written */
    X234,
    "(slice 2 0 4 3 " X234 ")",
    "(slice 2 1 3 " X234 ")",
    "(windows (1 3 3) (1 1 2) (1 2 3) " IMG ")",
    "(windows (3 2 2) (1 2 1) " IMG ")",
    "(pad 2 -inf 1 2 " X234 ")",
    "(pad 0 (i64 -3) 1 2 (input k ((2) ()) i64))",
    "(insertAxis 2 1 " X234 ")",
    "(cartProd 1 " X234 " " Y234 ")",
    "(cartProd " X234 " " Y234 ")",
    "(const f32 ((2 4) ()) 1 -0 0.1 3.4028235e38 1e-45 inf -inf nan)",
    "(const f32 ((1) ()) nan:7fc00001)",
    "(const f64 ((2) ()) 0.1 nan:fff8000000000000)",
    "(const f16 ((3) ()) 0.1 6e-8 nan:fe00)",
    "(const bf16 ((2) ()) 0.1 3.39e38)",
    "(const i64 ((2) ()) -9223372036854775808 9223372036854775807)",
    "(const u64 ((2) ()) 1 18446744073709551615)",
    "(const bool ((2) ()) 0 1)",
    "(const f32 (() ()) 2)",
    "(compute dotProd (cartProd " X234 " " Y234 "))",
    "(compute (dotProd f64) (input x ((2) (2 3)) f64))",
    "(compute (dotProd f16) (input x ((2) (2 3)) f16))",
    "(compute (epi (max (cast f16 $0) (f16 0)) (red sum (mul (cast f32 $0) (cast f32 $1)) (tuple "
    "2))) (input x ((2) (2 3)) "
    "f16))",
    "(compute (reduceSum bf16) (input x ((2) (2 3)) bf16))",
    "(compute (red sum (mul $1 $0) (tuple 2)) (cartProd " X234 " " Y234 "))",
    "(compute (red sum (mul $0 $1)) " X234 " " Y234 ")",
    "(compute reduceMax " X234 ")",
    "(compute (reduceProd i32) (input x ((2) (3)) i32))",
    "(compute (map $0 (ops 2)) " X234 " " Y234 ")",
    "(compute (map 1) " X234 ")",
    "(compute (map (let ((%0 (add $0 1))) (mul %0 %0))) " X234 ")",
    "(compute (epi (add $0 1) reduceSum (ops 2)) " X234 " " X23 " " X23 ")",
    "(compute (epi (max (add $0 $1) 0) dotProd) (cartProd 2 " X234 " " Y234 ") " X23 ")",
    "(compute (red (reducer f32 (state (-inf (max $0 $2)) ((i64 0) (select (lt $0 $2) $3 $1))) $1) "
    "$0) " X234 ")",
    "(compute (red (reducer f32 (state (0 (add $0 (mul $1 $1)) (add $0 $1))) (sqrt $0) "
    "commutative) $0) " X234 ")",
    "(fold (max i32) 0 (input k ((2) ()) i32))",
    "(gather 1 " X234 " (input n ((5) (6)) i64))",
    "(opaque \"f32\" (axis 1) (beta 0.5) (\"k k\" (reals 1.0 2.5 -0.0)) (mode \"a\\\"b\") (none "
    "(ints)) "
    "(pads (ints 1 2)) (r 3.0) (s \"\") ((f32 ((2) ())) (tuple (f32 (() ())) (i8 (() ())))) " X234
    ")",
    "(opaque Foo ((f32 ((2) ()))))",
    "(call vfma (16 4) ((f32 ((2) ()))) " X234 ")",
    "(to \"a;b\" " X234 ")",
    "(view (index ((9) ()) (2 3) (1 (+ d0 -3)) (fill 0 (d0 3 6))) " X23 ")",
    "(view (index ((24) ()) (2 3 4) ((div d0 12) (mod (div d0 4) 3) (mod d0 4))) " X234 ")",
    "(let ((%0 (access 0 " X234 ")))\n  (pair %0 %0))",
};

typedef struct round {
  tarn_lang *lang;
  const char *text, *again;
  tarn_term term;
} round_;

static void go_round(tarn_ctx *c, void *arg) {
  round_ *r = arg;
  tarn_buf b = {.cx = c};
  r->term = tarn_term_parse(r->lang, read1(c, r->text));
  tarn_term_print(r->lang, &b, r->term);
  r->again = b.p;
}

START_TEST(text_prints_as_written) {
  round_ r = {.lang = L, .text = texts[_i]};
  must(go_round, &r);
  ck_assert_str_eq(r.again, texts[_i]);
}
END_TEST

/* Every well-typed text of the other table too, up to the first printing. */
START_TEST(text_goes_round) {
  if (typings[_i][1][0] == '!') return;
  round_ r = {.lang = L, .text = typings[_i][0]}, s = {0};
  must(go_round, &r);
  must(make_lang, &s.lang);
  s.text = r.again;
  must(go_round, &s);
  ck_assert_str_eq(s.again, r.again);
  r.text = r.again;
  tarn_term first = r.term;
  must(go_round, &r);
  ck_assert_uint_eq(r.term, first);
}
END_TEST

/* ---------------------------------------------------------------- bad text */
static const char *const bad_texts[][2] = {
    {"(compute (map (frob $0)) " X234 ")", "frob"},
    {"(compute (map (add $0)) " X234 ")", "2 operands"},
    {"(compute (map %a) " X234 ")", "scalar expression"},
    {"(compute (map $70000) " X234 ")", "scalar expression"},
    {"(compute (map (add $300 $0)) " X234 ")", "255"},
    {"(compute (epi $1 (epi $1 reduceSum)) " X234 ")", "epilogue of an epilogue"},
    {"(compute (red mean $0) " X234 ")", "a reducer"},
    {"(compute (epi (add $0 $1) (map (add $0 $1) (tuple 2))) " X234 " " X23 ")", "tuple form"},
    {"(compute relu " X234 ")", "a function"},
    {"(compute (map $0 (ops 0)) " X234 ")", "range"},
    {"(compute (map $0 (ops 300)) " X234 ")", "range"},
    {"(compute)", "the function is missing"},
    {"(compute (red (reducer f32 (state ($0 $0)) $0) $0) " X234 ")", "constants"},
    {"(compute (red (reducer f32 (state (0 $9)) $0) $0) " X234 ")", "constants"},
    {"(view (index ((2) ()) (2) (d1)) (input a ((2) ()) f32))", "d0"},
    {"(view (index ((2) ()) (2) ((div d0 0))) (input a ((2) ()) f32))", "positive"},
    {"(view (index ((2) ()) (2)) (input a ((2) ()) f32))", "index"},
    {"(view (index ((3) ()) (2) (d0)) (input a ((2) ()) f32))", ""},
    {"(nest (stages (children 1) (shared) (split 0)) " X234 ")", "stages"},
    {"(let ((a " X23 ")) " X23 ")", "%a"},
    {"(let ((%a " X23 ")))", "let"},
    {"(const f32 ((2) ()) 1 2 3)", "more than 2 elements"},
    {"(opaque Foo (a))", "value"},
    {"(opaque Foo (a (b 1)) ())", "ints"},
    {"(input x ((2) ()) f31)", "element type"},
    {"(input x (2) f32)", "shape"},
    {"(1 2)", "no operator"},
    {"((access) 1)", "no operator"},
    {"()", "operator is missing"},
    {"(transpose 1 " X234 ")", "list of integers"},
    {"(slice 1 2 " X234 ")", "integer"},
};

START_TEST(bad_text_is_refused_with_its_place) {
  const char *io[2] = {bad_texts[_i][0], NULL};
  ck_assert_int_eq(tarn_protect(cx, parse_one, io), TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), bad_texts[_i][1]), "%s: %s", io[0], tarn_message(cx));
}
END_TEST

/* ---------------------------------------------------------------- random terms */
typedef struct pool {
  uint64_t s;
  tarn_term t[400];
  uint32_t n;
} pool;

static tarn_term pick(pool *p) { return p->t[below(&p->s, p->n)]; }

/* A payload for op over a child of type t that has some chance to type. */
static uint32_t some_payload(pool *p, uint32_t op, const tarn_type *t) {
  uint64_t *s = &p->s;
  int64_t v[3 * TARN_MAX_DIMS];
  uint32_t n = t->n, a = n ? below(s, n) : 0, m = n - t->ns;
  int64_t d = n ? t->dim[a] : 1, lo = d > 0 ? (int64_t)below(s, (uint32_t)d) : 0;
  tarn_payload valued = {.n = 3, .ints = v};
  v[0] = a;
  switch (op) {
  case TARN_OP_ACCESS:
  case TARN_OP_INSERT_AXIS: v[0] = below(s, n + 1); return tarn_payload_ints(L, 1, v);
  case TARN_OP_SQUEEZE:
  case TARN_OP_CONCAT:
  case TARN_OP_GATHER: return tarn_payload_ints(L, 1, v);
  case TARN_OP_NTH: v[0] = below(s, 2); return tarn_payload_ints(L, 1, v);
  case TARN_OP_CART_PROD: v[0] = below(s, t->ns + 1u); return tarn_payload_ints(L, 1, v);
  case TARN_OP_SLICE:
    v[1] = lo, v[2] = lo + below(s, (uint32_t)(d - lo) + 1), v[3] = 1 + below(s, 2);
    return tarn_payload_ints(L, 4, v);
  case TARN_OP_TRANSPOSE:
    for (uint32_t i = 0; i < n; i++) v[i] = i;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t j = i + below(s, n - i);
      int64_t x = v[i];
      v[i] = v[j], v[j] = x;
    }
    return tarn_payload_ints(L, n, v);
  case TARN_OP_WINDOWS:
    for (uint32_t i = 0; i < 3 * m; i++) v[i] = 1 + below(s, 2);
    return tarn_payload_ints(L, 3 * m, v);
  case TARN_OP_PAD:
    v[1] = below(s, 3), v[2] = below(s, 3);
    valued.kind = TARN_P_PADV;
    valued.value = some_const(L, s, t->dtype);
    return tarn_payload_intern(L, &valued);
  case TARN_OP_FOLD:
    valued = (tarn_payload){.kind = TARN_P_FOLD, .n = 1, .ints = v};
    valued.value = tarn_reducer_of(L, (tarn_red_kind)(1 + below(s, 4)), t->dtype);
    return tarn_payload_intern(L, &valued);
  case TARN_OP_BROADCAST:
    for (uint32_t i = 0; i < n; i++) v[i] = t->dim[i] == 1 ? 1 + (int64_t)below(s, 3) : t->dim[i];
    return tarn_payload_of(L, TARN_P_SHAPE, tarn_type_tensor(L, TARN_F32, t->ns, n, v));
  case TARN_OP_RESHAPE: {
    int64_t left = tarn_type_count(t);
    if (t->ns != t->n) return TARN_NONE;
    for (m = 0; m < 3 && left > 1; m++) {
      v[m] = left % 2 == 0 ? 2 : left % 3 == 0 ? 3 : left;
      left /= v[m];
    }
    v[m++] = left;
    return tarn_payload_of(L, TARN_P_SHAPE, tarn_type_tensor(L, TARN_F32, m, m, v));
  }
  case TARN_OP_VIEW: return TARN_NONE;
  default: return 0;
  }
}

static uint32_t some_function(pool *p, const tarn_term *kid, uint32_t n) {
  tarn_dtype holes[4], t;
  for (uint32_t i = 0; i < n; i++) holes[i] = tarn_term_type(L, kid[i])->dtype;
  t = below(&p->s, 3) ? TARN_F32 : some_type(&p->s);
  uint32_t body = some_fx(L, &p->s, t, holes, n, 3);
  if (below(&p->s, 2)) return tarn_fn_map(L, body, n);
  return tarn_fn_reduce(L, body, n, tarn_reducer_of(L, (tarn_red_kind)(1 + below(&p->s, 4)), t));
}

/* One more term, if what was drawn types; false if not. */
static bool grow(pool *p, uint32_t *made) {
  static const uint32_t ops[] = {
      TARN_OP_ACCESS,  TARN_OP_TRANSPOSE,   TARN_OP_WINDOWS,   TARN_OP_SLICE,     TARN_OP_PAD,
      TARN_OP_SQUEEZE, TARN_OP_INSERT_AXIS, TARN_OP_BROADCAST, TARN_OP_FLATTEN,   TARN_OP_RESHAPE,
      TARN_OP_VIEW,    TARN_OP_CONCAT,      TARN_OP_PAIR,      TARN_OP_CART_PROD, TARN_OP_COMPUTE,
      TARN_OP_FOLD,    TARN_OP_MATERIALISE, TARN_OP_GATHER,    TARN_OP_TUPLE,     TARN_OP_NTH,
      TARN_OP_PLACE};
  uint32_t op = ops[below(&p->s, sizeof ops / sizeof *ops)], type[3], payload;
  const tarn_opinfo *info = tarn_op_info(op);
  uint32_t n = info->max_kids < 0 ? 1 + below(&p->s, 3) : (uint32_t)info->max_kids;
  tarn_term kid[3];
  for (uint32_t i = 0; i < n; i++) {
    kid[i] = i && below(&p->s, 2) ? kid[0] : pick(p);
    type[i] = tarn_term_get(L, kid[i])->type;
    if (tarn_type_get(L, type[i])->tuple && op != TARN_OP_NTH) return false;
  }
  const tarn_type *t = tarn_type_get(L, type[0]);
  if (op == TARN_OP_COMPUTE) payload = tarn_payload_of(L, TARN_P_FN, some_function(p, kid, n));
  else if (op == TARN_OP_PLACE)
    payload = tarn_payload_intern(L, &(tarn_payload){.kind = TARN_P_PLACE, .name = "l2"});
  else if (op == TARN_OP_VIEW) {
    uint32_t of = ops[below(&p->s, 10)], inner = some_payload(p, of, t);
    if (inner == TARN_NONE || tarn_type_of(L, of, inner, type, 1) == TARN_NONE) return false;
    payload = tarn_payload_of(L, TARN_P_MAP, tarn_map_of(L, of, inner, type[0]));
    ck_assert_uint_eq(tarn_type_of(L, op, payload, type, 1), tarn_type_of(L, of, inner, type, 1));
  } else payload = some_payload(p, op, t);
  if (payload == TARN_NONE) return false;
  uint32_t result = tarn_type_of(L, op, payload, type, n);
  if (result == TARN_NONE) return false;
  if (tarn_type_count(tarn_type_get(L, result)) > 100000) return false;
  p->t[p->n++] = tarn_mk(L, op, payload, kid, n);
  made[op]++;
  return true;
}

static void start_pool(pool *p) {
  static const int64_t dims[][3] = {{2, 3, 4}, {6, 1, 2}, {0, 2, 5}, {3, 3, 3}};
  for (uint32_t i = 0; i < 32; i++) {
    char name[8];
    snprintf(name, sizeof name, "x%u", i);
    uint32_t n = below(&p->s, 4), ns = below(&p->s, n + 1);
    const int64_t *dim = dims[below(&p->s, 4)];
    tarn_dtype dt = below(&p->s, 2) ? TARN_F32 : some_type(&p->s);
    if (i % 2) {
      p->t[p->n++] = tarn_input(L, name, tarn_type_tensor(L, dt, ns, n, dim));
      continue;
    }
    tarn_tensor *v = tarn_tensor_new(L->cx, dt, n, dim);
    for (int64_t k = 0; k < tarn_tensor_count(v); k++)
      tarn_tensor_set(v, k, tarn_fx_value(L, some_const(L, &p->s, dt)));
    p->t[p->n++] = tarn_constant(L, name, v, ns);
  }
}

static const char *term_text(tarn_ctx *c, tarn_term t) {
  tarn_buf b = {.cx = c};
  tarn_term_print(L, &b, t);
  return b.p;
}

static void random_terms(tarn_ctx *c, void *arg) {
  uint32_t made[TARN_OP_COUNT] = {0};
  (void)arg;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    pool p = {.s = seed};
    start_pool(&p);
    for (int tries = 0; p.n < 400 && tries < 20000; tries++) grow(&p, made);
    for (uint32_t i = 0; i < p.n; i++) {
      const char *text = term_text(c, p.t[i]);
      tarn_sx *s = tarn_sx_read(c, text, strlen(text), "r");
      ck_assert_uint_eq(s->n, 1);
      ck_assert_uint_eq(tarn_term_parse(L, s->kid[0]), p.t[i]);
    }
    /* and in a new language the text is the same */
    tarn_lang *old = L;
    const char *text = term_text(c, p.t[p.n - 1]);
    L = tarn_lang_new(c);
    ck_assert_str_eq(term_text(c, tarn_term_parse(L, read1(c, text))), text);
    L = old;
  }
  for (uint32_t op = TARN_OP_ACCESS; op <= TARN_OP_NTH; op++)
    ck_assert_msg(made[op] > 4 || op == TARN_OP_NEST, "%s: %u", tarn_op_info(op)->text, made[op]);
}

START_TEST(random_terms_go_round) { must(random_terms, NULL); }
END_TEST

/* A chain far deeper than the reader's limit prints with names and reads back. */
static void deep(tarn_ctx *c, void *arg) {
  tarn_term t = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 1, 1, (int64_t[]){3}));
  (void)arg;
  for (int i = 0; i < 30000; i++)
    t = tarn_slice(L, 0, 0, 3, 1, tarn_pad(L, 0, tarn_fx_const(L, TARN_F32, 0), i % 2, 1, t));
  const char *text = term_text(c, t);
  ck_assert_uint_eq(tarn_term_parse(L, read1(c, text)), t);
}

START_TEST(deep_terms_go_round) { must(deep, NULL); }
END_TEST

/* ---------------------------------------------------------------- programs */
static const char program_text[] = "(program\n"
                                   " (inputs\n"
                                   "  (x ((1 3) ()) f32)\n"
                                   "  (unused (() ()) i64))\n"
                                   " (let\n"
                                   "  (%0 (access 1 (input x ((1 3) ()) f32))))\n"
                                   " (outputs\n"
                                   "  (y (compute reduceSum %0))\n"
                                   "  (\"a z\" %0)))\n";

static void program_round(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_program *p = tarn_program_parse(L, read1(c, program_text), NULL);
  ck_assert_uint_eq(p->nin, 2);
  ck_assert_uint_eq(p->nout, 2);
  ck_assert_str_eq(p->out[1].name, "a z");
  ck_assert_uint_eq(p->out[0].type, tarn_type_tensor(L, TARN_F32, 1, 1, (int64_t[]){1}));
  tarn_buf b = {.cx = c};
  tarn_program_print(p, &b);
  ck_assert_str_eq(b.p, program_text);
}

START_TEST(programs_go_round) { must(program_round, NULL); }
END_TEST

static const char *const bad_programs[][2] = {
    {"(program (inputs (x ((2) ()) f32)) (outputs (y (input z ((2) ()) f32))))", "reads z"},
    {"(program (inputs (x ((2) ()) f32)) (outputs (y (input x ((3) ()) f32))))", "reads x"},
    {"(program (inputs (x ((2) ()) f32) (x ((2) ()) f32)) (outputs))", "twice"},
    {"(program (inputs) (outputs (y (const w f32 ((100) ())))))", "no folder"},
    {"(program (inputs))", "(program"},
    {"(program (inputs) (outputs (y)))", "(NAME TERM)"},
    {"(program (inputs) (led) (outputs))", "let"},
    {"(program (inputs (x ((2) ()) f32)) (outputs (y (tuple (input x ((2) ()) f32)))))",
     "y is a tuple"},
};

static void parse_program(tarn_ctx *c, void *arg) { tarn_program_parse(L, read1(c, arg), NULL); }

START_TEST(bad_programs_are_refused) {
  ck_assert_int_eq(tarn_protect(cx, parse_program, (char *)(uintptr_t)bad_programs[_i][0]),
                   TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), bad_programs[_i][1]), "%s", tarn_message(cx));
}
END_TEST

static tarn_program *outputs(tarn_ctx *c, const tarn_term *t, uint32_t n) {
  tarn_program *p = TARN_NEW(c, tarn_program);
  p->L = L;
  p->nout = n;
  p->out = TARN_ARRAY(c, tarn_io, n);
  for (uint32_t i = 0; i < n; i++)
    p->out[i] = (tarn_io){tarn_format(c, "y%u", i), t[i], tarn_term_get(L, t[i])->type};
  return p;
}

/* NAME.npy, with %XX for what is unusual in a file name. */
static void write_constant(tarn_ctx *c, const char *dir, tarn_term t) {
  const tarn_payload *p = tarn_payload_get(L, tarn_term_get(L, t)->payload);
  tarn_buf path = {.cx = c}, b = {.cx = c};
  tarn_buf_fmt(&path, "%s/", dir);
  for (const char *s = p->name; *s; s++)
    tarn_buf_fmt(&path,
                 isalnum(*s) || strchr("_-", *s) || (*s == '.' && s > p->name) ? "%c" : "%%%02X",
                 (unsigned char)*s);
  tarn_buf_str(&path, ".npy");
  tarn_npy_write_bytes(&b, p->tensor);
  tarn_write_file(c, path.p, b.p, b.n);
}
/* Large constants of every type, with awkward names, go to files and come back. */
static void constant_files(tarn_ctx *c, void *arg) {
  const char *dir = arg;
  const int64_t dim[] = {5, 20};
  tarn_term t[TARN_DTYPES];
  uint64_t s = 3;
  for (uint32_t i = 0; i < TARN_DTYPES; i++) {
    tarn_tensor *v = tarn_tensor_new(c, (tarn_dtype)i, 2, dim);
    for (int64_t k = 0; k < 100; k++)
      tarn_tensor_set(v, k, tarn_fx_value(L, some_const(L, &s, (tarn_dtype)i)));
    t[i] = tarn_constant(L, i % 2 ? "../w/0 w" : "f32", v, i % 3);
  }
  tarn_program *p = outputs(c, t, TARN_DTYPES);
  tarn_buf b = {.cx = c};
  tarn_program_print(p, &b);
  for (uint32_t i = 0; i < TARN_DTYPES; i++) write_constant(c, dir, t[i]);
  tarn_program *q = tarn_program_parse(L, read1(c, b.p), dir);
  for (uint32_t i = 0; i < TARN_DTYPES; i++) ck_assert_uint_eq(q->out[i].term, p->out[i].term);
  L = tarn_lang_new(c);
  q = tarn_program_parse(L, read1(c, b.p), dir);
  tarn_buf again = {.cx = c};
  tarn_program_print(q, &again);
  ck_assert_str_eq(again.p, b.p);
}

static void wrong_file(tarn_ctx *c, void *dir) {
  tarn_write_file(c, tarn_format(c, "%s/w.npy", (char *)dir), "\x93NUMPY\x01\x00\x04\x00{'de", 14);
  tarn_program_parse(L, read1(c, "(program (inputs) (outputs (y (const w f32 ((100) ())))))"), dir);
}

START_TEST(constants_go_to_files_and_back) {
  char dir[] = "/tmp/tarn-test-XXXXXX", command[64];
  ck_assert_ptr_nonnull(mkdtemp(dir));
  tarn_status good = tarn_protect(cx, constant_files, dir);
  char *why = strdup(tarn_message(cx));
  tarn_status bad = tarn_protect(cx, wrong_file, dir);
  snprintf(command, sizeof command, "rm -r %s", dir);
  ck_assert_int_eq(system(command), 0);
  ck_assert_msg(good == TARN_OK, "%s", why);
  free(why);
  ck_assert_int_eq(bad, TARN_BAD_INPUT);
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "w.npy: not a .npy file: "));
}
END_TEST

/* ---------------------------------------------------------------- memory */
static void use_it_all(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_lang *M = tarn_lang_new(c);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    tarn_buf b = {.cx = c};
    tarn_term_print(M, &b, tarn_term_parse(M, read1(c, texts[i])));
  }
}

START_TEST(every_failing_allocation_is_reported) {
  uint64_t bad, tried = tarn_test_fail_each(use_it_all, NULL, 1, &bad);
  ck_assert_uint_eq(bad, 0);
  ck_assert_uint_gt(tried, 5);
}
END_TEST

int main(void) {
  const looped tests[] = {{text_prints_as_written, COUNT(texts)},
                          {text_goes_round, COUNT(typings)},
                          {bad_text_is_refused_with_its_place, COUNT(bad_texts)},
                          {random_terms_go_round, 1},
                          {deep_terms_go_round, 1},
                          {programs_go_round, 1},
                          {bad_programs_are_refused, COUNT(bad_programs)},
                          {constants_go_to_files_and_back, 1},
                          {every_failing_allocation_is_reported, 1}};
  return run_suite("text", tests, sizeof tests / sizeof *tests);
}
