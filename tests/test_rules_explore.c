/* rules/: the surface rules derive what they should from a start term, and nothing false. */
#include "rules/rules.h"
#include "tests/rules_kit.h"
#include "tests/context.h"
#include <string.h>

#define HW        "x86-64-v3"
#define LONG      "(input l ((11 20) ()) f32)"
#define X         "(input x ((5 4) ()) f32)"
#define A         "(input a ((6 4) ()) f32)"
#define B         "(input b ((6 4) ()) f32)"
#define I         "(input i ((1 3 6 6) ()) f32)"
#define DOT(p, q) "(compute dotProd (cartProd (access 1 " p ") (access 1 " q ")))"
#define WIN(w)    "(squeeze 1 (windows " w " (1 1 1) (access 1 " I ")))"
#define RELU      "(compute (map (max $0 0)) "
#define EXP       "(compute (map (exp $0)) (access 1 " X "))"
#define TOP       "(broadcast ((5) (4)) (insertAxis 1 1 (compute reduceMax (access 1 " X "))))"
#define SHIFTED   "(compute (map (exp (sub $0 $1))) (access 1 " X ") " TOP ")"
#define C1        "(const f32 ((2 4) ()) 1 2 3 4 5 6 7 8)"
#define C2        "(const f32 ((3 4) ()) 1 0 0 0 0 1 0 0 0 0 1 0)"
#define C12       "(concat 0 (access 1 " C1 ") (access 1 " C2 "))"

typedef struct goal {
  const char *name, *start, *goal;
  bool reached;
  const char *hw;
} goal;
static const goal goals[] = {
    {"transposes cancel", "(transpose (1 0) (transpose (1 0) " X "))", X, true, NULL},
    {"a map between transposes", "(transpose (1 0) " RELU "(transpose (1 0) " X ")))", RELU X ")",
     true, NULL},
    {"a slice across a concat of slices",
     "(slice 0 1 4 (concat 0 (slice 0 0 2 " X ") (slice 0 2 5 " X ")))", "(slice 0 1 4 " X ")",
     true, NULL},
    {"a slice of a pad", "(slice 0 1 6 (pad 0 0 1 2 " X "))", X, true, NULL},
    {"im2col",
     "(compute dotProd (cartProd (access 1 (input w ((4 3 3 3) ()) f32)) " WIN("(3 3 3)") "))",
     "(reshape ((4 1 4 4) ()) (compute dotProd (cartProd (flatten (access 1 (input w ((4 3 3 3) "
     "()) f32))) (flatten " WIN("(3 3 3)") "))))",
     true, NULL},
    {"a convolution of one pixel",
     "(compute dotProd (cartProd (access 1 (input w ((4 3 1 1) ()) f32)) " WIN("(3 1 1)") "))",
     "(compute dotProd (cartProd (access 1 (input w ((4 3 1 1) ()) f32)) (reshape ((1 6 6) (3 1 "
     "1)) (access 3 (transpose (0 2 "
     "3 1) " I ")))))",
     true, NULL},
    {"bias and relu as epilogue",
     RELU "(compute (map (add $0 $1)) " DOT(
         X, A) " (broadcast ((5 6) ()) (insertAxis 0 (input v ((6) ()) f32)))))",
     "(compute (epi (max (add $0 $1) 0) dotProd) (cartProd (access 1 " X ") (access 1 " A
     ")) (broadcast ((5 6) ()) (insertAxis 0 (input v ((6) ()) f32))))",
     true, NULL},
    {"products of constants merged", "(concat 1 " DOT(X, C1) " " DOT(X, C2) ")",
     "(compute dotProd (cartProd (access 1 " X ") " C12 "))", true, NULL},
    {"the order of two products",
     "(compute dotProd (cartProd (access 1 " DOT(X, A) ") (access 1 (input c ((3 6) ()) f32))))",
     "(compute dotProd (cartProd (access 1 " X
     ") (access 1 (compute dotProd (cartProd (access 1 (input c ((3 6) ()) f32)) (access 1 "
     "(transpose (1 0) (access 1 " A "))))))))",
     true, NULL},
    {"distribution", "(compute (map (add $0 $1)) " DOT(X, A) " " DOT(X, B) ")",
     "(compute dotProd (cartProd (access 1 " X ") (access 1 (compute (map (add $0 $1)) " A " " B
     "))))",
     true, NULL},
    {"a sum of products as one",
     "(compute (map (add $0 $1)) " DOT(X, A) " " DOT("(input y ((5 4) ()) f32)", B) ")",
     "(compute dotProd (cartProd (concat 1 (access 1 " X
     ") (access 1 (input y ((5 4) ()) f32))) (concat 1 (access 1 " A ") (access 1 " B "))))",
     true, NULL},
    {"the pad of a maximum", "(compute reduceMax (pad 1 -inf 1 2 (access 1 " X ")))",
     "(compute reduceMax (access 1 " X "))", true, NULL},
    {"softmax without overflow",
     "(compute (map (div $0 $1)) " EXP
     " (broadcast ((5) (4)) (insertAxis 1 1 (compute reduceSum " EXP "))))",
     "(compute (map (div $0 $1)) " SHIFTED
     " (broadcast ((5) (4)) (insertAxis 1 1 (compute reduceSum " SHIFTED "))))",
     true, NULL},
    {"its sum in one pass", "(compute reduceSum " SHIFTED ")",
     "(compute (red (reducer f32 (state (-inf (max $0 $2) (max $0 $2))"
     " (0 (let ((%m (max (max $0 $2) -3.4028234663852886e38))) (add (mul $1 (exp (sub $0 %m))) "
     "(exp (sub $2 %m))))"
     " (let ((%m (max (max $0 $2) -3.4028234663852886e38))) (add (mul $1 (exp (sub $0 %m))) (mul "
     "$3 (exp (sub $2 %m)))))))"
     " (add $1 (mul $0 0)) commutative) $0) (access 1 " X "))",
     true, NULL},
    {"constants",
     "(compute (map (add $0 $1)) (transpose (1 0) (const f32 ((2 1) ()) 1 2)) (const f32 ((1 2) "
     "()) 3 4))",
     "(const f32 ((1 2) ()) 4 6)", true, NULL},
    {"an array with an accumulator",
     "(compute (map (add $0 $1)) " DOT(X, A) " (input p ((5 6) ()) f32))",
     "(systolicArrayAcc 4 6 (access 1 " X ") (access 0 (transpose (1 0) (access 1 " A
     "))) (input p ((5 6) ()) f32))",
     true, NULL},
    {"rows in tiles", DOT(LONG, "(input a ((3 20) ()) f32)"),
     "(concat 0 " DOT("(slice 0 0 8 " LONG ")", "(input a ((3 20) ()) f32)") " " DOT(
         "(slice 0 8 11 " LONG ")", "(input a ((3 20) ()) f32)") ")",
     true, HW},
    {"a reduction in tiles", DOT(LONG, "(input a ((3 20) ()) f32)"),
     "(compute (map (add $0 $1)) " DOT(
         "(slice 1 0 16 " LONG ")",
         "(slice 1 0 16 (input a ((3 20) "
         "()) f32))") " " DOT("(slice 1 16 20 " LONG ")",
                              "(slice 1 16 20 (input a ((3 20) ()) f32))") ")",
     true, HW},
    {"an axis padded to tiles", LONG, "(slice 1 0 20 (pad 1 0 0 4 " LONG "))", true, HW},
    {"not: exp through a pad", "(compute (map (exp $0)) (pad 0 0 1 1 " X "))",
     "(pad 0 0 1 1 (compute (map (exp $0)) " X "))", false, NULL},
    {"not: zeros as the pad of a maximum", "(compute reduceMax (pad 1 0 1 2 (access 1 " X ")))",
     "(compute reduceMax (access 1 " X "))", false, NULL},
    {"not: operands of a subtraction", "(compute (map (sub $0 $1)) " A " " B ")",
     "(compute (map (sub $0 $1)) " B " " A ")", false, NULL},
    {"not: the other order of a product", DOT(X, A), DOT(A, X), false, NULL},
};

static tarn_term parse(tarn_lang *L, const char *text) {
  return tarn_term_parse(L, tarn_sx_read(tarn_lang_ctx(L), text, strlen(text), "test")->kid[0]);
}

/* The chain that was found holds on paper and in numbers. */
static void prove(tarn_saturation *s, const tarn_ruleset *rs, const goal *k, tarn_term end) {
  tarn_ctx *cx = tarn_lang_ctx(tarn_sat_lang(s));
  tarn_buf b = {.cx = cx};
  tarn_proof_options o = {.replay = true, .samples = 2, .seed = 1};
  tarn_sat_explain(s, 0, end, &b);
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(cx, b.p, b.n, "proof"), &o);
  ck_assert_msg(r.ok && r.steps > 0 && r.skipped == 0, "%s: step %u: %s\n%s", k->name, r.bad, r.why,
                b.p);
}

static void explore(tarn_ctx *cx, void *arg) {
  const goal *k = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_sat_options o = tarn_sat_defaults();
  tarn_term t = parse(L, k->start);
  tarn_io out = {"y", t, tarn_term_get(L, t)->type};
  tarn_program p = {.L = L, .nout = 1, .out = &out};
  tarn_ruleset_ship(rs, NULL, TARN_RULE_SURFACE);
  o.surface = true;
  o.goal = parse(L, k->goal);
  o.max_nodes = 50000;
  o.reasons = TARN_EG_REASONS_ALL;
  if (k->hw) o.hw = tarn_hw_load(L, k->hw);
  tarn_saturation *s = tarn_saturate(&p, rs, &o);
  const char *stop = tarn_sat_result(s)->stop;
  const char *want = tarn_eg_stop_name(k->reached ? TARN_EG_STOP_GOAL : TARN_EG_STOP_SATURATED);
  ck_assert_msg(strcmp(stop, want) == 0, "%s: %s, not %s", k->name, stop, want);
  if (k->reached) prove(s, rs, k, o.goal);
  kit_prove(s, rs);
}
START_TEST(test_goals) { in_context_of(goals[_i].name, explore, &goals[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("goals");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, test_goals, 0, sizeof goals / sizeof *goals);
  return run_checks("rules-explore", t);
}
