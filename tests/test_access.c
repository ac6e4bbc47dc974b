/* access/: types, scalar expressions, functions, payloads, terms: their typing and their text.
 * (Index maps: test_map.c; values of terms: test_eval.c.) */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "access/access.h"
#include "access/internal.h"
#include "tests/alloc.h"

static tarn_ctx *cx;
static tarn_lang *L;

static void make_lang(tarn_ctx *c, void *arg) {
  *(tarn_lang **)arg = tarn_lang_new(c);
}

static void setup(void) {
  cx = tarn_ctx_new(NULL);
  ck_assert_int_eq(tarn_protect(cx, make_lang, &L), TARN_OK);
}
static void teardown(void) {
  tarn_ctx_free(cx);
}

/* Runs fn protected; it must succeed. */
static void must(tarn_fn *fn, void *arg) {
  tarn_status st = tarn_protect(cx, fn, arg);
  ck_assert_msg(st == TARN_OK, "%s", tarn_message(cx));
}

static uint64_t next_random(uint64_t *s) {
  *s += 0x9E3779B97F4A7C15u;
  uint64_t z = (*s ^ (*s >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static uint32_t below(uint64_t *s, uint32_t n) {
  return (uint32_t)(next_random(s) % n);
}

static const tarn_sx *read1(tarn_ctx *c, const char *text) {
  return tarn_sx_read(c, text, strlen(text), "t")->kid[0];
}

/* ---------------------------------------------------------------- typing of every operator */
#define X234 "(input x ((2 3) (4)) f32)"
#define Y234 "(input y ((2 3) (4)) f32)"
#define X23  "(input v ((2 3) ()) f32)"
#define ONES "(input o ((1 3) (1)) f32)"
#define IMG  "(input i ((1) (3 8 8)) f32)"
#define BOTH "(tuple " X234 " " X23 ")"

/* A term and its type; or ! and a part of the message. */
static const char *const typings[][2] = {
    {"(input x ((2 3) ()) i8)", "i8 ((2 3) ())"},
    {"(input \"a b\" (() ()) bool)", "bool (() ())"},
    {"(input x ((2 -3) ()) f32)", "!negative"},
    {"(input x ((4000000000 4000000000) ()) f32)", "!overflow"},
    {"(input x ((4000000000 4000000000 0) ()) f32)", "!overflow"},
    {"(input x ((1 1 1 1 1 1 1 1) (1 1 1 1 1 1 1 1 1)) f32)", "!dims"},
    {"(const f32 ((2) (1)) 1 2.5)", "f32 ((2) (1))"},
    {"(const f32 ((0) ()))", "f32 ((0) ())"},
    {"(const i8 ((2) ()) 1 200)", "!200 is no i8"},
    {"(const i32 ((2) ()) 1 2.5)", "!integer"},
    {"(const f32 ((2) ()) 1)", "!2 elements"},
    {"(const nowhere)", "!no constant"},

    {"(access 0 " X234 ")", "f32 (() (2 3 4))"},
    {"(access 3 " X234 ")", "f32 ((2 3 4) ())"},
    {"(access 4 " X234 ")", "!axis 4"},
    {"(access -1 " X234 ")", "!axis -1"},
    {"(transpose (2 0 1) " X234 ")", "f32 ((4 2) (3))"},
    {"(transpose (2 0) " X234 ")", "!2 axes for 3"},
    {"(transpose (2 0 0) " X234 ")", "!twice"},
    {"(transpose (2 0 3) " X234 ")", "!axis 3"},
    {"(windows (3 2 2) (1 2 1) " IMG ")", "f32 ((1 1 4 7) (3 2 2))"},
    {"(windows (1 3 3) (1 1 2) (1 2 3) " IMG ")", "f32 ((1 3 4 1) (1 3 3))"},
    {"(windows (1 8 8) (1 9 9) " IMG ")", "f32 ((1 3 1 1) (1 8 8))"},
    {"(windows (1 9 1) (1 1 1) " IMG ")", "!fit"},
    {"(windows (1 5 1) (1 1 1) (1 2 1) " IMG ")", "!fit"},
    {"(windows (1 0 1) (1 1 1) " IMG ")", "!at least 1"},
    {"(windows (1 1 1) (1 0 1) " IMG ")", "!at least 1"},
    {"(windows (2) (1) " IMG ")", "!3 compute dims"},
    {"(windows () () " X23 ")", "f32 ((2 3) ())"},
    {"(slice 2 1 3 " X234 ")", "f32 ((2 3) (2))"},
    {"(slice 2 0 4 3 " X234 ")", "f32 ((2 3) (2))"},
    {"(slice 2 3 -1 -1 " X234 ")", "f32 ((2 3) (4))"},
    {"(slice 2 3 0 -2 " X234 ")", "f32 ((2 3) (2))"},
    {"(slice 0 1 1 " X234 ")", "f32 ((0 3) (4))"},
    {"(slice 2 1 5 " X234 ")", "!lie within"},
    {"(slice 2 3 1 " X234 ")", "!lie within"},
    {"(slice 2 4 0 -1 " X234 ")", "!lie within"},
    {"(slice 2 0 4 0 " X234 ")", "!step 0"},
    {"(slice 3 0 4 " X234 ")", "!axis 3"},
    {"(pad 2 0 1 2 " X234 ")", "f32 ((2 3) (7))"},
    {"(pad 0 (i64 0) 1 0 " X234 ")", "!value is i64"},
    {"(pad 0 $0 1 0 " X234 ")", "!not a constant"},
    {"(pad 0 0 -1 0 " X234 ")", "!negative"},
    {"(pad 3 0 0 0 " X234 ")", "!axis 3"},
    {"(pad 0 0 9223372036854775807 0 " X234 ")", "!overflow"},
    {"(squeeze 2 " ONES ")", "f32 ((1 3) ())"},
    {"(squeeze 0 " ONES ")", "f32 ((3) (1))"},
    {"(squeeze 1 " ONES ")", "!extent 3"},
    {"(insertAxis 0 " X234 ")", "f32 ((1 2 3) (4))"},
    {"(insertAxis 2 " X234 ")", "f32 ((2 3 1) (4))"},
    {"(insertAxis 2 1 " X234 ")", "f32 ((2 3) (1 4))"},
    {"(insertAxis 3 " X234 ")", "f32 ((2 3) (4 1))"},
    {"(insertAxis 3 1 " X234 ")", "!front of the compute"},
    {"(insertAxis 2 0 " X234 ")", "!side"},
    {"(insertAxis 4 " X234 ")", "!axis 4"},
    {"(broadcast ((5 3) (2)) " ONES ")", "f32 ((5 3) (2))"},
    {"(broadcast ((5 6) (2)) " ONES ")", "!dim 1"},
    {"(broadcast ((5 3 2) ()) " ONES ")", "!ranks"},
    {"(flatten " X234 ")", "f32 ((6) (4))"},
    {"(flatten " X23 ")", "f32 ((6) ())"},
    {"(flatten (access 0 " X23 "))", "f32 (() (6))"},
    {"(reshape ((6) (2 2)) " X234 ")", "f32 ((6) (2 2))"},
    {"(reshape ((1 6) (4 1)) " X234 ")", "f32 ((1 6) (4 1))"},
    {"(reshape ((24) ()) " X234 ")", "!6 access elements"},
    {"(reshape ((6) (5)) " X234 ")", "!4 compute elements"},
    {"(view (index ((4) (2)) (2 3 4) (d1 1 d0)) " X234 ")", "f32 ((4) (2))"},
    {"(view (index ((4) (2)) (2 3 5) (d1 1 d0)) " X234 ")", "!other dims"},
    {"(view (index ((9) ()) (2 3) (1 (+ d0 -3)) (fill 0 ((+ d0 -3) 0 3))) " X23 ")",
     "f32 ((9) ())"},
    {"(view (index ((9) ()) (2 3) (1 (+ d0 -3)) (fill (i8 0) ((+ d0 -3) 0 3))) " X23 ")",
     "!fill value is i8"},

    {"(concat 1 " X234 " " Y234 " " X234 ")", "f32 ((2 9) (4))"},
    {"(concat 3 " X234 " " Y234 ")", "!axis 3"},
    {"(concat 0 " X234 " (access 1 " Y234 "))", "!split"},
    {"(concat 0 " X234 " (slice 1 0 2 " Y234 "))", "!dim 1"},
    {"(concat 0)", "!0 operands"},
    {"(pair " X234 " " Y234 ")", "f32 ((2 3) (2 4))"},
    {"(pair " X234 " " X23 ")", "!differ in type"},
    {"(cartProd " X234 " " Y234 ")", "f32 ((2 3 2 3) (2 4))"},
    {"(cartProd 0 " X234 " " Y234 ")", "f32 ((2 3 2 3) (2 4))"},
    {"(cartProd 1 " X234 " " Y234 ")", "f32 ((2 3 3) (2 4))"},
    {"(cartProd 2 " X234 " " Y234 ")", "f32 ((2 3) (2 4))"},
    {"(cartProd 3 " X234 " " Y234 ")", "!axis 3"},
    {"(cartProd 1 " X234 " (slice 0 0 1 " Y234 "))", "!shared dims"},
    {"(cartProd " X234 " " X23 ")", "!compute dims"},
    {"(cartProd " X234 " (input b ((2) (4)) f64))", "!element type"},

    {"(compute dotProd (cartProd " X234 " " Y234 "))", "f32 ((2 3 2 3) ())"},
    {"(compute dotProd " X234 ")", "!tuple of 2"},
    {"(compute dotProd " X23 ")", "!tuple of 2"},
    {"(compute (dotProd f64) (cartProd " X234 " " Y234 "))", "!the reducer takes f64"},
    {"(compute reduceMax " X234 ")", "f32 ((2 3) ())"},
    {"(compute (reduceSum f64) " X234 ")", "!the reducer takes f64"},
    {"(compute (map (add $0 $1)) " X234 " " Y234 ")", "f32 ((2 3) (4))"},
    {"(compute (map (add $0 $1)) " X234 ")", "!2 operands"},
    {"(compute (map (add $0 $1)) " X234 " (access 1 " Y234 "))", "!operand 1 differs"},
    {"(compute (map (add $0 $1) (tuple 2)) (pair " X234 " " Y234 "))", "f32 ((2 3) (4))"},
    {"(compute (map (lt $0 0)) " X234 ")", "bool ((2 3) (4))"},
    {"(compute (map (exp $0)) (input k ((2) ()) i32))", "!exp of i32"},
    {"(compute (map (add $0 (i32 1))) " X234 ")", "!differ in type"},
    {"(compute (map (select $0 $0 $0)) " X234 ")", "!condition"},
    {"(compute (map (add $0 $1) (ops 1)) " X234 ")", "!more values"},
    {"(compute (epi (max (add $0 $1) 0) dotProd) (cartProd 2 " X234 " " Y234 ") " X23 ")",
     "f32 ((2 3) ())"},
    {"(compute (epi (add $0 $1) reduceSum) " X234 " " Y234 ")", "!access dims"},
    {"(compute (epi (cast i32 $0) reduceSum) " X234 ")", "i32 ((2 3) ())"},
    {"(compute (red (reducer f32 (state (-inf (max $0 $2)) ((i64 0) (select (lt $0 $2) $3 $1))) "
     "$1) $0) " X234 ")",
     "i64 ((2 3) ())"},
    {"(compute (red (reducer f32 (state (0 (add $0 (i64 1)))) $0) $0) " X234 ")",
     "!differ in type"},
    {"(compute (red (reducer f32 (state ((i64 0) (lt $1 0))) $0) $0) " X234 ")",
     "!step 0 gives bool"},
    {"(nest (stages (children 1) (shared 2 3) (split 2) (stage (own) (reduce 4) reduceMax (child 0 "
     "(index ((2 3) "
     "(4)) (2 3 4) (d0 d1 d2)))) (stage (own 4) (reduce) (map (sub $0 $1)) (child 0 (index ((2 3 "
     "4) ()) (2 3 4) "
     "(d0 d1 d2))) (stage 0 (index ((2 3 4) ()) () ())) out)) " X234 ")",
     "f32 ((2 3) (4))"},
    {"(nest (stages (children 1) (shared 2) (split 1) (stage (own) (reduce 4) reduceMax (child 0 "
     "(index ((2) (4)) "
     "(2 4) (d0 d1))) out)) " X234 ")",
     "!child"},
    {"(fold sum 0 " X234 ")", "f32 ((3) (4))"},
    {"(fold sum 2 " X234 ")", "!axis 2"},
    {"(fold (sum i32) 0 " X234 ")", "!takes i32"},
    {"(materialise " X234 ")", "f32 ((2 3) (4))"},
    {"(to smem " X234 ")", "f32 ((2 3) (4))"},
    {"(gather 1 " X234 " (input n ((5) (6)) i64))", "f32 ((2 5 6) (4))"},
    {"(gather 2 " X234 " (input n (() ()) i32))", "f32 ((2 3) ())"},
    {"(gather 0 " X234 " " X23 ")", "!integer type"},
    {"(gather 3 " X234 " (input n (() ()) i32))", "!axis 3"},
    {BOTH, "tuple (f32 ((2 3) (4))) (f32 ((2 3) ()))"},
    {"(nth 1 " BOTH ")", "f32 ((2 3) ())"},
    {"(nth 2 " BOTH ")", "!2 elements"},
    {"(nth 0 " X234 ")", "!not a tuple"},
    {"(access 0 " BOTH ")", "!tuple"},
    {"(opaque Foo (axis 1) (mode \"up\") ((f32 ((2) ()))) " X234 ")", "f32 ((2) ())"},
    {"(opaque Foo ((f32 ((2) ())) (i64 (() ()))) " X234 ")", "tuple (f32 ((2) ())) (i64 (() ()))"},
    {"(opaque Foo (axis 1) (axis 2) ((f32 ((2) ()))) " X234 ")", "!twice"},
    {"(systolicArray 4 5 " X234 " (input w (() (4 5)) f32))", "f32 ((2 3 5) ())"},
    {"(systolicArray 4 5 " X234 " (input w ((4) (5)) f32))", "!(() (4 5))"},
    {"(systolicArray 3 5 " X234 " (input w (() (3 5)) f32))", "!(3)"},
    {"(systolicArray 4 5 " X234 " (input w (() (4 5)) i8))", "!one type"},
    {"(systolicArrayAcc 4 5 " X234 " (input w (() (4 5)) f32) (input p ((2 3 5) ()) f32))",
     "f32 ((2 3 5) ())"},
    {"(systolicArrayAcc 4 5 " X234 " (input w (() (4 5)) f32) " X23 ")", "!accumulator"},
    {"(call vfma (16 4) ((f32 ((2) ()))) " X234 ")", "f32 ((2) ())"},
    {"(call vfma (16 4) ())", "!result types"},
    {"(access 0 " X234 " " Y234 ")", "!2 operands"},
    {"(frobnicate 1)", "!no operator is called frobnicate"},
    {"%a", "!no let binds %a"},
    {"(let ((%a " X23 ")) (pair %a (let ((%a " X23 ")) %a)))", "f32 ((2 3) (2))"},
    {"(pair (let ((%a " X23 ")) %a) %a)", "!no let binds %a"},
};

static void parse_one(tarn_ctx *c, void *arg) {
  const char **io = arg;
  tarn_term t = tarn_term_parse(L, read1(c, io[0]));
  tarn_buf b = {.cx = c};
  tarn_type_print(L, &b, tarn_term_get(L, t)->type);
  io[1] = b.p;
}

START_TEST(operators_type) {
  const char *want = typings[_i][1], *io[2] = {typings[_i][0], NULL};
  tarn_status st = tarn_protect(cx, parse_one, io);
  if (*want == '!') {
    ck_assert_msg(st == TARN_BAD_INPUT, "%s: accepted as %s", io[0], io[1] ? io[1] : "");
    ck_assert_msg(strstr(tarn_message(cx), want + 1) && strncmp(tarn_message(cx), "t:1:", 4) == 0,
                  "%s: %s", io[0], tarn_message(cx));
  } else {
    ck_assert_msg(st == TARN_OK, "%s: %s", io[0], tarn_message(cx));
    ck_assert_str_eq(io[1], want);
  }
}
END_TEST

/* Each operator stands in the table at least once well-typed and, where it can go wrong, once
 * ill-typed. */
START_TEST(every_operator_is_tested) {
  for (uint32_t op = 0; op < TARN_OP_COUNT; op++) {
    char head[40];
    bool good = false;
    snprintf(head, sizeof head, "(%s", tarn_op_info(op)->text);
    for (size_t i = 0; i < sizeof typings / sizeof *typings; i++) {
      const char *at = strstr(typings[i][0], head);
      good |= at && typings[i][1][0] != '!' && strchr(" )", at[strlen(head)]);
    }
    ck_assert_msg(good, "%s", head);
    ck_assert_uint_eq(tarn_op_find(tarn_op_info(op)->text), op);
  }
  ck_assert_uint_eq(tarn_op_find("none such"), TARN_NONE);
}
END_TEST

/* The message holds the node's text and its operands' types. */
START_TEST(messages_show_the_node) {
  const char *io[2] = {"(flatten (slice 2 1 5 " X234 "))", NULL};
  ck_assert_int_eq(tarn_protect(cx, parse_one, io), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx),
                   "t:1:10: (slice 2 1 5 f32 ((2 3) (4))): 1 to 5 by 1 does not lie within 4");
}
END_TEST

static void typed_wrong(tarn_ctx *c, void *arg) {
  (void)arg;
  uint32_t none = tarn_payload_ints(L, 0, NULL), one = tarn_payload_ints(L, 1, (int64_t[]){0});
  uint32_t type = tarn_type_tensor(L, TARN_F32, 1, 1, (int64_t[]){3});
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_SLICE, one, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_ACCESS, none, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_FLATTEN, one, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_COUNT, 0, &type, 1), TARN_NONE);
  ck_assert_uint_eq(tarn_type_of(L, TARN_OP_FLATTEN, 999999, &type, 1), TARN_NONE);
  ck_assert_str_ne(tarn_message(c), "");
}

START_TEST(typing_never_trusts_a_payload) {
  must(typed_wrong, NULL);
}
END_TEST

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
    "(const u64 ((1) ()) -1)",
    "(const bool ((2) ()) 0 1)",
    "(const f32 (() ()) 2)",
    "(compute dotProd (cartProd " X234 " " Y234 "))",
    "(compute (dotProd f64) (input x ((2) (2 3)) f64))",
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

/* ---------------------------------------------------------------- the manual */
/* Every TERM ; TYPE in docs/language.md, and every operator is among them. */
static void check_manual(tarn_ctx *c, void *arg) {
  size_t n;
  char *text = tarn_read_file(c, TARN_TOP "/docs/language.md", &n), *line, *next;
  uint32_t checked = 0;
  bool shown[TARN_OP_COUNT] = {0}, inside = false;
  (void)arg;
  for (line = text; line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    if (strncmp(line, "```", 3) == 0) inside = strcmp(line, "```term") == 0;
    char *type = strstr(line, " ; ");
    if (!inside || line[0] != '(') continue;
    ck_assert_msg(type != NULL, "%s", line);
    *type = 0;
    const char *io[2] = {line, NULL};
    parse_one(c, io);
    ck_assert_msg(strcmp(io[1], type + 3) == 0, "%s has the type %s", line, io[1]);
    const tarn_term *terms, t = tarn_term_parse(L, read1(c, line));
    for (uint32_t k = tarn_term_reachable(L, &t, 1, &terms); k-- > 0;)
      shown[tarn_term_get(L, terms[k])->op] = true;
    checked++;
  }
  for (uint32_t op = 0; op < TARN_OP_COUNT; op++)
    ck_assert_msg(shown[op], "%s", tarn_op_info(op)->text);
  ck_assert_uint_gt(checked, 35);
}

START_TEST(the_manuals_examples_hold) {
  must(check_manual, NULL);
}
END_TEST

/* ---------------------------------------------------------------- random scalar expressions */
static tarn_dtype some_type(uint64_t *s) {
  return (tarn_dtype)below(s, TARN_DTYPES);
}

static const double odd_numbers[] = {0.0, -0.0, 1,    -1,     0.5,   2,   3,
                                     -7,  0.1,  1e30, -1e-30, 65504, 255, 1e300};

static uint32_t some_const(uint64_t *s, tarn_dtype t) {
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
static uint32_t some_fx(uint64_t *s, tarn_dtype t, const tarn_dtype *holes, uint32_t n, int depth) {
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

static bool same_value(tarn_dtype t, tarn_value a, tarn_value b) {
  if (!tarn_dtype_is_float(t)) return a.i == b.i;
  return isnan(a.d) ? isnan(b.d) : a.d == b.d && signbit(a.d) == signbit(b.d);
}

static const char *fx_text(tarn_ctx *c, uint32_t f) {
  tarn_buf b = {.cx = c};
  tarn_fx_print(L, &b, f);
  return b.p;
}

/* Putting constants for the holes folds to what evaluating with those values gives; and text goes
 * round. */
static void random_fx(tarn_ctx *c, void *arg) {
  uint64_t s = 1;
  uint32_t folded = 0;
  (void)arg;
  for (int i = 0; i < 3000; i++) {
    tarn_dtype holes[4], t = some_type(&s), out;
    uint32_t with[4];
    tarn_value v[4];
    for (int k = 0; k < 4; k++) {
      holes[k] = some_type(&s);
      with[k] = some_const(&s, holes[k]);
      v[k] = tarn_fx_value(L, with[k]);
    }
    uint32_t f = some_fx(&s, t, holes, 4, 5), g = tarn_fx_subst(L, f, with, 4);
    ck_assert(tarn_fx_type(L, f, holes, 4, &out) && out == t);
    ck_assert_uint_eq(tarn_fx_holes(L, g), 0);
    ck_assert_int_eq(tarn_fx_get(L, g)->op, TARN_FX_CONST);
    tarn_value want = tarn_fx_eval(L, f, v, holes, TARN_STRICT);
    ck_assert_msg(same_value(t, tarn_fx_value(L, g), want), "%s", fx_text(c, f));
    folded += tarn_fx_holes(L, f) > 0;
    ck_assert_uint_eq(tarn_fx_parse(L, read1(c, fx_text(c, f)), TARN_F32), f);
    ck_assert_uint_eq(tarn_fx_parse(L, read1(c, fx_text(c, g)), TARN_F32), g);
  }
  ck_assert_uint_gt(folded, 1000);
}

START_TEST(scalars_fold_to_what_they_evaluate_to) {
  must(random_fx, NULL);
}
END_TEST

/* ---------------------------------------------------------------- scalar arithmetic, against other
 * means */
/* An expression of constants, and what it folds to. */
static const char *const folds[][2] = {
    {"(add 0.1 0.2)", "0.3"}, /* one rounding of the f32 operands: 0.1f + 0.2f == 0.3f */
    {"(add (f64 0.1) (f64 0.2))", "(f64 0.30000000000000004)"},
    {"(sub 1 1)", "0"},
    {"(neg 0)", "-0"},
    {"(mul -0 0)", "-0"},
    {"(add -0 -0)", "-0"},
    {"(add -0 0)", "0"},
    {"(div 1 0)", "inf"},
    {"(div 0 0)", "nan"},
    {"(neg nan)", "nan"},
    {"(min 0 -0)", "-0"},
    {"(max -0 0)", "0"},
    {"(max nan 1)", "nan"},
    {"(min 1 nan)", "nan"},
    {"(mod -7 3)", "2"},
    {"(mod 7 -3)", "-2"},
    {"(fmod -7 3)", "-1"},
    {"(mod -6 3)", "0"},
    {"(round 2.5)", "2"},
    {"(round -3.5)", "-4"},
    {"(sign -0)", "0"},
    {"(sign nan)", "nan"},
    {"(isnan nan)", "true"},
    {"(isinf -inf)", "true"},
    {"(lt nan 1)", "false"},
    {"(eq 0 -0)", "true"},
    {"(add (i8 100) (i8 100))", "(i8 -56)"},
    {"(mul (u8 200) (u8 2))", "(u8 144)"},
    {"(sub (u16 0) (u16 1))", "(u16 65535)"},
    {"(neg (i32 -2147483648))", "(i32 -2147483648)"},
    {"(div (i32 -7) (i32 2))", "(i32 -3)"},
    {"(div (i64 -9223372036854775808) (i64 -1))", "(i64 -9223372036854775808)"},
    {"(div (i32 7) (i32 0))", "(i32 0)"},
    {"(mod (i32 -7) (i32 3))", "(i32 2)"},
    {"(mod (i32 7) (i32 0))", "(i32 0)"},
    {"(fmod (i32 -7) (i32 3))", "(i32 -1)"},
    {"(pow (i32 -3) (i32 3))", "(i32 -27)"},
    {"(pow (i32 2) (i32 -1))", "(i32 0)"},
    {"(pow 2 0.5)", "1.4142135"},
    {"(cast i8 300.7)", "(i8 127)"},
    {"(cast u8 -3)", "(u8 0)"},
    {"(cast i32 -2.9)", "(i32 -2)"},
    {"(cast i64 nan)", "(i64 0)"},
    {"(cast u64 1e30)", "(u64 -1)"},
    {"(cast i8 (i32 300))", "(i8 44)"},
    {"(cast bool 0.5)", "true"},
    {"(cast f32 (i64 16777217))", "16777216"},
    {"(cast f32 (i64 9007199791611905))",
     "9007200000000000"}, /* 2^53 + 2^29 + 1: just above a tie; by way of f64 it would be on it */
    {"(cast f16 65520)", "(f16 inf)"},
    {"(cast f16 65519.9)", "(f16 65500)"},
    {"(cast f16 (f64 1.000488281250001))", "(f16 1.001)"}, /* just above a tie */
    {"(cast bf16 (f64 1.00390625))", "(bf16 1)"},
    {"(cast bf16 (f64 1.0039062500000002))", "(bf16 1.01)"},
    {"(cast f32 (u64 -1))", "1.8446744e19"},
    {"(and true false)", "false"},
    {"(not (i8 0))", "(i8 -1)"},
    {"(not (u8 0))", "(u8 255)"},
    {"(not true)", "false"},
    {"(shl (u8 3) (u8 7))", "(u8 128)"},
    {"(shl (i32 1) (i32 32))", "(i32 0)"},
    {"(shr (i8 -5) (i8 1))", "(i8 -3)"},
    {"(shr (i8 -5) (i8 8))", "(i8 -1)"},
    {"(shr (u8 200) (u8 3))", "(u8 25)"},
    {"(lt (u64 1) (u64 -1))", "true"},
    {"(max (u64 1) (u64 -1))", "(u64 -1)"},
    {"(div (u64 -1) (u64 2))", "(u64 9223372036854775807)"},
    {"(max true false)", "true"},
    {"(select (lt 1 2) 3 4)", "3"},
    {"(cast f32 (cast f32 $0))", "(cast f32 $0)"},
};

static void fold_one(tarn_ctx *c, void *arg) {
  const char **io = arg;
  io[1] = fx_text(c, tarn_fx_parse(L, read1(c, io[0]), TARN_F32));
}

START_TEST(constants_fold) {
  const char *io[2] = {folds[_i][0], NULL};
  must(fold_one, io);
  ck_assert_str_eq(io[1], folds[_i][1]);
}
END_TEST

/* Strict f32 against the processor's own f32 arithmetic. */
static void against_float(tarn_ctx *c, void *arg) {
  uint64_t s = 7;
  const tarn_dtype t[2] = {TARN_F32, TARN_F32};
  (void)c, (void)arg;
  for (int i = 0; i < 20000; i++) {
    uint32_t bits[2] = {(uint32_t)next_random(&s), (uint32_t)next_random(&s)};
    if (i & 1) bits[1] = (bits[0] & 0xFF800000u) ^ (bits[1] & 0x807FFFFFu); /* of like size */
    float a, b;
    memcpy(&a, &bits[0], 4), memcpy(&b, &bits[1], 4);
    volatile const float want[] = {a + b, a - b, a * b, a / b, sqrtf(a), fmodf(a, b)};
    static const tarn_fxop op[] = {TARN_FX_ADD, TARN_FX_SUB,  TARN_FX_MUL,
                                   TARN_FX_DIV, TARN_FX_SQRT, TARN_FX_FMOD};
    const tarn_value v[2] = {{.d = (double)a}, {.d = (double)b}};
    for (int k = 0; k < 6; k++) {
      uint32_t f = tarn_fx_op(L, op[k], tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
      tarn_value got = tarn_fx_eval(L, f, v, t, TARN_STRICT);
      ck_assert(same_value(TARN_F32, got, (tarn_value){.d = (double)want[k]}));
    }
  }
}

START_TEST(strict_f32_is_the_processors) {
  must(against_float, NULL);
}
END_TEST

static void wide(tarn_ctx *c, void *arg) {
  const tarn_dtype t[2] = {TARN_F32, TARN_F32};
  const tarn_value v[2] = {{.d = 1}, {.d = 3}};
  (void)arg;
  uint32_t f = tarn_fx_parse(L, read1(c, "(cast f16 (div $0 $1))"), TARN_F32);
  ck_assert(tarn_fx_eval(L, f, v, t, TARN_WIDE).d == 1.0 / 3.0);
  ck_assert(tarn_fx_eval(L, f, v, t, TARN_STRICT).d == 0.333251953125);
}

START_TEST(wide_does_not_round) {
  must(wide, NULL);
}
END_TEST

static void fx_facts(tarn_ctx *c, void *arg) {
  (void)arg;
  uint32_t f = tarn_fx_parse(L, read1(c, "(add (mul $2 $0) (mul $2 $0))"), TARN_F32);
  ck_assert_uint_eq(tarn_fx_holes(L, f), 3);
  ck_assert_uint_eq(tarn_fx_size(L, f), 2);
  ck_assert(tarn_fx_uses(L, f, 2) && tarn_fx_uses(L, f, 0) && !tarn_fx_uses(L, f, 1) &&
            !tarn_fx_uses(L, f, 3));
  const uint32_t swap[3] = {tarn_fx_hole(L, 2), TARN_NONE, tarn_fx_hole(L, 0)};
  ck_assert_str_eq(fx_text(c, tarn_fx_subst(L, f, swap, 3)),
                   "(let ((%0 (mul $0 $2))) (add %0 %0))");
  const tarn_dtype two[2] = {TARN_F32, TARN_F32};
  tarn_dtype out;
  ck_assert(!tarn_fx_type(L, f, two, 2, &out));
  ck_assert_ptr_nonnull(strstr(tarn_message(c), "$2"));
  /* a chain that would be a million nodes as a tree */
  for (int i = 0; i < 20; i++) f = tarn_fx_op(L, TARN_FX_ADD, f, f, 0);
  ck_assert_uint_eq(tarn_fx_size(L, f), 22);
  ck_assert_uint_lt(strlen(fx_text(c, f)), 1000);
  ck_assert_uint_eq(tarn_fx_parse(L, read1(c, fx_text(c, f)), TARN_F32), f);
}

START_TEST(facts_about_scalars) {
  must(fx_facts, NULL);
}
END_TEST

/* ---------------------------------------------------------------- functions and reducers */
static uint32_t fn_of(tarn_ctx *c, const char *text) {
  return tarn_fn_parse(L, read1(c, text));
}

static void functions(tarn_ctx *c, void *arg) {
  (void)arg;
  ck_assert_uint_eq(fn_of(c, "dotProd"), tarn_fn_dot(L, TARN_F32));
  ck_assert_uint_eq(fn_of(c, "(red (sum f64) (mul $0 $1) (tuple 2))"), tarn_fn_dot(L, TARN_F64));
  ck_assert_uint_eq(fn_of(c, "reduceMax"), fn_of(c, "(red max $0)"));
  ck_assert_uint_eq(fn_of(c, "(epi $0 reduceMax)"), fn_of(c, "reduceMax"));
  /* an elementwise epilogue is a part of the body */
  ck_assert_uint_eq(fn_of(c, "(epi (add $0 $1) (map (exp $0)))"),
                    fn_of(c, "(map (add (exp $0) $1))"));
  /* a custom reducer that is a sum is the sum */
  ck_assert_uint_eq(fn_of(c, "(red (reducer f32 (state (0 (add $0 $1) (add $0 $1))) $0) $0)"),
                    fn_of(c, "reduceSum"));
  ck_assert(tarn_fn_is_dot(L, fn_of(c, "(epi (max $0 0) dotProd)")));
  ck_assert(tarn_fn_is_dot(L, fn_of(c, "(red sum (mul $1 $0))")));
  ck_assert(!tarn_fn_is_dot(L, fn_of(c, "(red max (mul $1 $0))")));
  ck_assert(!tarn_fn_is_dot(L, fn_of(c, "(red sum (mul $0 $0) (ops 2))")));
  ck_assert(!tarn_fn_is_dot(L, fn_of(c, "(map (mul $1 $0))")));
  uint32_t max = tarn_reducer_of(L, TARN_RED_MAX, TARN_F32);
  ck_assert(tarn_fx_get(L, tarn_reducer_identity(L, max))->value == -INFINITY);
  static const struct {
    tarn_red_kind k;
    tarn_dtype t;
    int64_t id;
  } ints[] = {{TARN_RED_MAX, TARN_I8, -128},       {TARN_RED_MIN, TARN_I8, 127},
              {TARN_RED_MIN, TARN_U16, 65535},     {TARN_RED_MAX, TARN_U64, 0},
              {TARN_RED_MIN, TARN_U64, -1},        {TARN_RED_MAX, TARN_I64, INT64_MIN},
              {TARN_RED_MIN, TARN_I64, INT64_MAX}, {TARN_RED_MIN, TARN_BOOL, 1},
              {TARN_RED_MAX, TARN_BOOL, 0},        {TARN_RED_PROD, TARN_I32, 1},
              {TARN_RED_SUM, TARN_U8, 0}};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
    uint32_t r = tarn_reducer_of(L, ints[i].k, ints[i].t);
    ck_assert_int_eq(tarn_fx_get(L, tarn_reducer_identity(L, r))->ivalue, ints[i].id);
  }
}

START_TEST(functions_have_one_form) {
  must(functions, NULL);
}
END_TEST

static const char *const bad_texts[][2] = {
    {"(compute (map (frob $0)) " X234 ")", "frob"},
    {"(compute (map (add $0)) " X234 ")", "2 operands"},
    {"(compute (map %a) " X234 ")", "scalar expression"},
    {"(compute (map $70000) " X234 ")", "scalar expression"},
    {"(compute (map (add $300 $0)) " X234 ")", "255"},
    {"(compute (epi $1 (epi $1 reduceSum)) " X234 ")", "epilogue of an epilogue"},
    {"(compute (red mean $0) " X234 ")", "a reducer"},
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

/* ---------------------------------------------------------------- interning */
static tarn_tensor *counting(tarn_ctx *c, uint32_t n, const int64_t *dim, float from) {
  tarn_tensor *t = tarn_tensor_new(c, TARN_F32, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) ((float *)t->data)[i] = from + (float)i;
  return t;
}

static void constants(tarn_ctx *c, void *arg) {
  const int64_t dim[2] = {3, 40};
  tarn_tensor *a = counting(c, 2, dim, 0), *b = counting(c, 2, dim, 0), *d = counting(c, 2, dim, 1);
  (void)arg;
  tarn_term ta = tarn_constant(L, "w", a, 2);
  ck_assert_uint_eq(tarn_constant(L, "other", b, 2), ta);
  ck_assert_ptr_eq(tarn_payload_get(L, tarn_term_get(L, ta)->payload)->tensor->data, a->data);
  ck_assert_uint_ne(tarn_constant(L, "w", a, 1), ta);
  tarn_term td = tarn_constant(L, "w", d, 2);
  ck_assert_uint_ne(td, ta);
  ck_assert_str_ne(tarn_payload_get(L, tarn_term_get(L, td)->payload)->name, "w");
  ck_assert_uint_eq(tarn_term_parse(L, read1(c, "(const w f32 ((3 40) ()))")), ta);
  ck_assert_uint_eq(tarn_term_parse(L, read1(c, "(const w)")), ta);
  ck_assert_uint_ne(tarn_scalar(L, TARN_F32, 0.0), tarn_scalar(L, TARN_F32, -0.0));
  ck_assert_uint_eq(tarn_scalar(L, TARN_F32, 0.1), tarn_scalar(L, TARN_F32, (double)0.1f));
  ck_assert_uint_ne(tarn_fx_const(L, TARN_F32, 0.0), tarn_fx_const(L, TARN_F32, -0.0));
  ck_assert_uint_eq(tarn_fx_const(L, TARN_F32, NAN), tarn_fx_const(L, TARN_F32, -NAN));
  ck_assert_uint_eq(tarn_fx_const(L, TARN_I32, 3), tarn_fx_iconst(L, TARN_I32, 3));
}

START_TEST(constants_are_their_contents) {
  must(constants, NULL);
}
END_TEST

static void builders(tarn_ctx *c, void *arg) {
  const int64_t dim[4] = {2, 3, 8, 8}, w[3] = {3, 3, 3}, one[3] = {1, 1, 1}, flat[2] = {6, 64},
                bc[4] = {2, 3, 8, 8};
  (void)arg;
  tarn_term x = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 4, 4, dim));
  tarn_term win = tarn_windows(L, w, one, NULL, tarn_access(L, 1, x));
  const uint32_t p[] = {0, 2, 3, 1};
  const struct {
    tarn_term t;
    const char *want;
  } made[] = {
      {win, "(windows (3 3 3) (1 1 1) (access 1 (input x ((2 3 8 8) ()) f32)))"},
      {tarn_transpose(L, p, x), "(transpose (0 2 3 1) (input x ((2 3 8 8) ()) f32))"},
      {tarn_slice(L, 1, 0, 2, 1, x), "(slice 1 0 2 (input x ((2 3 8 8) ()) f32))"},
      {tarn_pad(L, 2, tarn_fx_const(L, TARN_F32, 0), 1, 1, x),
       "(pad 2 0 1 1 (input x ((2 3 8 8) ()) f32))"},
      {tarn_reshape_all(L, 1, 2, flat, x),
       "(access 1 (reshape ((6 64) ()) (access 4 (input x ((2 3 8 8) ()) f32))))"},
      {tarn_reshape(L, 2, 2, flat, x), "(reshape ((6 64) ()) (input x ((2 3 8 8) ()) f32))"},
      {tarn_broadcast(L, 4, 4, bc, x), "(broadcast ((2 3 8 8) ()) (input x ((2 3 8 8) ()) f32))"},
      {tarn_squeeze(L, 0, tarn_insert_axis(L, 0, x)),
       "(squeeze 0 (insertAxis 0 (input x ((2 3 8 8) ()) f32)))"},
      {tarn_concat(L, 0, (tarn_term[]){x, x}, 2),
       "(concat 0 (input x ((2 3 8 8) ()) f32) (input x ((2 3 8 8) ()) f32))"},
      {tarn_cart(L, 1, x, x),
       "(cartProd 1 (input x ((2 3 8 8) ()) f32) (input x ((2 3 8 8) ()) f32))"},
      {tarn_compute(L, fn_of(c, "reduceSum"), &win, 1),
       "(compute reduceSum (windows (3 3 3) (1 1 1) (access 1 (input x ((2 3 8 8) ()) f32))))"},
  };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    tarn_buf b = {.cx = c};
    tarn_term_print(L, &b, made[i].t);
    ck_assert_str_eq(b.p, made[i].want);
  }
  ck_assert_uint_eq(tarn_view(L, tarn_map_identity(L, tarn_term_get(L, x)->type), x), x);
}

START_TEST(builders_build) {
  must(builders, NULL);
}
END_TEST

static void ill_typed(tarn_ctx *c, void *arg) {
  (void)c;
  tarn_access(L, 9, *(tarn_term *)arg);
}

static void an_input(tarn_ctx *c, void *arg) {
  (void)c;
  *(tarn_term *)arg = tarn_input(L, "x", tarn_type_tensor(L, TARN_F32, 1, 1, (int64_t[]){3}));
}

START_TEST(building_ill_typed_raises) {
  tarn_term x;
  must(an_input, &x);
  uint32_t before = tarn_term_count(L);
  ck_assert_int_eq(tarn_protect(cx, ill_typed, &x), TARN_BAD_INPUT);
  ck_assert_str_eq(tarn_message(cx), "(access 9 f32 ((3) ())): axis 9 is out of range");
  ck_assert_uint_eq(tarn_term_count(L), before);
}
END_TEST

/* ---------------------------------------------------------------- random terms */
typedef struct pool {
  uint64_t s;
  tarn_term t[400];
  uint32_t n;
} pool;

static tarn_term pick(pool *p) {
  return p->t[below(&p->s, p->n)];
}

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
  case TARN_OP_INSERT_AXIS:
    v[0] = below(s, n + 1);
    return tarn_payload_ints(L, 1, v);
  case TARN_OP_SQUEEZE:
  case TARN_OP_CONCAT:
  case TARN_OP_GATHER:
    return tarn_payload_ints(L, 1, v);
  case TARN_OP_NTH:
    v[0] = below(s, 2);
    return tarn_payload_ints(L, 1, v);
  case TARN_OP_CART_PROD:
    v[0] = below(s, t->ns + 1u);
    return tarn_payload_ints(L, 1, v);
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
    valued.value = some_const(s, t->dtype);
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
  case TARN_OP_VIEW:
    return TARN_NONE;
  default:
    return 0;
  }
}

static uint32_t some_function(pool *p, const tarn_term *kid, uint32_t n) {
  tarn_dtype holes[4], t;
  for (uint32_t i = 0; i < n; i++) holes[i] = tarn_term_type(L, kid[i])->dtype;
  t = below(&p->s, 3) ? TARN_F32 : some_type(&p->s);
  uint32_t body = some_fx(&p->s, t, holes, n, 3);
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
      tarn_tensor_set(v, k, tarn_fx_value(L, some_const(&p->s, dt)));
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

START_TEST(random_terms_go_round) {
  must(random_terms, NULL);
}
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

START_TEST(deep_terms_go_round) {
  must(deep, NULL);
}
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

START_TEST(programs_go_round) {
  must(program_round, NULL);
}
END_TEST

static const char *const bad_programs[][2] = {
    {"(program (inputs (x ((2) ()) f32)) (outputs (y (input z ((2) ()) f32))))", "reads z"},
    {"(program (inputs (x ((2) ()) f32)) (outputs (y (input x ((3) ()) f32))))", "reads x"},
    {"(program (inputs (x ((2) ()) f32) (x ((2) ()) f32)) (outputs))", "twice"},
    {"(program (inputs) (outputs (y (const w f32 ((100) ())))))", "no folder"},
    {"(program (inputs))", "(program"},
    {"(program (inputs) (outputs (y)))", "(NAME TERM)"},
    {"(program (inputs) (led) (outputs))", "let"},
};

static void parse_program(tarn_ctx *c, void *arg) {
  tarn_program_parse(L, read1(c, arg), NULL);
}

START_TEST(bad_programs_are_refused) {
  ck_assert_int_eq(tarn_protect(cx, parse_program, (char *)(uintptr_t)bad_programs[_i][0]),
                   TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), bad_programs[_i][1]), "%s", tarn_message(cx));
}
END_TEST

static tarn_program *one_output(tarn_ctx *c, tarn_term t) {
  tarn_program *p = TARN_NEW(c, tarn_program);
  p->L = L;
  p->nout = 1;
  p->out = TARN_NEW(c, tarn_io);
  *p->out = (tarn_io){"y", t, tarn_term_get(L, t)->type};
  return p;
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
      tarn_tensor_set(v, k, tarn_fx_value(L, some_const(&s, (tarn_dtype)i)));
    t[i] = tarn_constant(L, i % 2 ? "../w/0 w" : "f32", v, i % 3);
  }
  tarn_program *p = one_output(c, tarn_mk(L, TARN_OP_TUPLE, 0, t, TARN_DTYPES));
  tarn_buf b = {.cx = c};
  tarn_program_print(p, &b);
  tarn_program_save_constants(p, dir);
  tarn_program *q = tarn_program_parse(L, read1(c, b.p), dir);
  ck_assert_uint_eq(q->out[0].term, p->out[0].term);
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
  ck_assert_ptr_nonnull(strstr(tarn_message(cx), "w.npy is not a NumPy array"));
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

#define COUNT(table) (int)(sizeof(table) / sizeof *(table))

int main(void) {
  Suite *suite = suite_create("access");
  TCase *t = tcase_create("access");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, operators_type, 0, COUNT(typings));
  tcase_add_loop_test(t, text_prints_as_written, 0, COUNT(texts));
  tcase_add_loop_test(t, text_goes_round, 0, COUNT(typings));
  tcase_add_loop_test(t, constants_fold, 0, COUNT(folds));
  tcase_add_loop_test(t, bad_text_is_refused_with_its_place, 0, COUNT(bad_texts));
  tcase_add_loop_test(t, bad_programs_are_refused, 0, COUNT(bad_programs));
  const TTest *const tests[] = {every_operator_is_tested,
                                messages_show_the_node,
                                the_manuals_examples_hold,
                                typing_never_trusts_a_payload,
                                scalars_fold_to_what_they_evaluate_to,
                                strict_f32_is_the_processors,
                                wide_does_not_round,
                                facts_about_scalars,
                                functions_have_one_form,
                                constants_are_their_contents,
                                builders_build,
                                building_ill_typed_raises,
                                random_terms_go_round,
                                deep_terms_go_round,
                                programs_go_round,
                                constants_go_to_files_and_back,
                                every_failing_allocation_is_reported};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) tcase_add_test(t, tests[i]);
  suite_add_tcase(suite, t);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
