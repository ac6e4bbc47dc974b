/* rules/proof: changed proofs under --strict. Chains of compiled networks, with their model, and of
 * pairs of terms, without one, are changed at random, what they say of constants too. What still
 * passes, with nothing assumed, must be true: both sides of each step and of the theorem are
 * evaluated on random inputs, by the interpreter, which knows nothing of rules.
 *
 *   test_mutated [--all]      --all: more of each */
#include "model/model.h"
#include "rules/rules.h"
#include "tests/context.h"
#include "tests/mutate.h"
#include "tests/rules_kit.h"
#include "tests/small_nets.h"
#include <stdio.h>

static uint32_t each = 60; /* changes of a chain */

/* ---------------------------------------------------------------- chains */

typedef struct chain {
  const char *name;
  tarn_rule_level level;
  const char *from, *to; /* a network; a term and one that is equal to it */
  const char *text;      /* of the proof */
} chain;

/* `numbers NAME TYPE DIMS MOD`: whole numbers below MOD as an initialiser. */
static const char *with_numbers(tarn_ctx *cx, const char *text) {
  tarn_buf b = {.cx = cx};
  for (const char *s = text; *s;) {
    size_t len = strcspn(s, "\n");
    char *line = tarn_strndup(cx, s, len), name[64], type[16], dims[64];
    int mod;
    if (sscanf(line, "numbers %63s %15s %63s %d", name, type, dims, &mod) == 4) {
      tarn_buf_fmt(&b, "init %s %s %s :", name, type, dims);
      for (int64_t i = 0; i < kit_count(dims); i++) tarn_buf_fmt(&b, " %d", (int)(i * 37 % mod));
    } else tarn_buf_str(&b, line);
    tarn_buf_str(&b, "\n");
    s += len + (s[len] == '\n');
  }
  return b.p;
}
#define GATHERED(MOD)                                                                              \
  "in i i64 8\nin x i32 8,4\nnumbers c i32 300,4 " MOD "\nnode Gather g c i -> t\n"                \
  "node Cast a t -> u : to=2\nnode Cast b u -> v : to=6\nnode Add d v x -> y\nout y\n"
/* (const f32 ((R C) ()) …), in a term: `large R C A B` */
static const char *with_large(tarn_ctx *cx, const char *text) {
  tarn_buf b = {.cx = cx};
  int r, c, x, y, n;
  for (const char *s = text; *s; s++) {
    if (sscanf(s, "{%d %d %d %d}%n", &r, &c, &x, &y, &n) != 4) {
      tarn_buf_add(&b, s, 1);
      continue;
    }
    tarn_buf_fmt(&b, "(const f32 ((%d %d) ())", r, c);
    for (int i = 0; i < r * c; i++) tarn_buf_fmt(&b, " %d", (x * (i / c) + y * (i % c)) % 97);
    tarn_buf_str(&b, ")");
    s += n - 1;
  }
  return b.p;
}

static const chain chains[] = {
    {"a table of bytes", TARN_RULE_KERNEL, GATHERED("256"), NULL, NULL},
    {"wide convolution, norm, relu", TARN_RULE_KERNEL,
     "in x f32 1,8,4,4\nrand w 20,8,3,3\npos s 20\nrand b 20\nrand m 20\npos v 20\n"
     "node Conv c x w -> t : pads=1,1,1,1\nnode BatchNormalization n t s b m v -> u\n"
     "node Relu r u -> y\nout y\n",
     NULL, NULL},
    {"two wide products", TARN_RULE_KERNEL,
     "in x f32 3,36\nrand w 36,40\nrand v 40,36\nrand b 40\ninit h f32 1 : 0.5\n"
     "node MatMul m x w -> t\nnode Add a t b -> u\nnode Mul k u h -> p\nnode Relu r p -> q\n"
     "node MatMul n q v -> z\nnode Softmax s z -> y : axis=-1\nout y\n",
     NULL, NULL},
    {"residual block", TARN_RULE_KERNEL, NET_RESIDUAL, NULL, NULL},
    {"layer norm", TARN_RULE_KERNEL, NET_LAYER_NORM, NULL, NULL},
    {"transpose of a constant", TARN_RULE_SURFACE,
     "(compute (map (add $0 $1)) (transpose (1 0) {40 30 5 7}) (input x ((30 40) ()) f32))",
     "(compute (map (add $0 $1)) {30 40 7 5} (input x ((30 40) ()) f32))", NULL},
    {"function of a slice of a constant", TARN_RULE_SURFACE,
     "(compute (map (mul $0 $1)) (compute (map (exp $0)) (slice 0 0 30 {60 40 5 7})) (input x ((30 "
     "40) ()) f32))",
     "(compute (map (mul $0 $1)) (compute (map (exp $0)) {30 40 5 7}) (input x ((30 40) ()) f32))",
     NULL},
    {"products side by side", TARN_RULE_SURFACE,
     "(compute dotProd (cartProd (concat 0 (input a ((2) (6)) f32) (input c ((1) (6)) f32)) (input "
     "b ((3) (6)) f32)))",
     "(concat 0 (compute dotProd (cartProd (input a ((2) (6)) f32) (input b ((3) (6)) f32)))"
     " (compute dotProd (cartProd (input c ((1) (6)) f32) (input b ((3) (6)) f32))))",
     NULL},
    {"slice of a padded map", TARN_RULE_SURFACE,
     "(slice 0 1 3 (pad 0 0 1 1 (compute (map (max $0 0)) (transpose (1 0) (transpose (1 0) (input "
     "x "
     "((2 2) ()) f32))))))",
     "(compute (map (max $0 0)) (input x ((2 2) ()) f32))", NULL},
};
enum { CHAINS = sizeof chains / sizeof *chains };

static tarn_ruleset *rules_of(tarn_lang *L, const chain *c) {
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, c->level);
  return rs;
}
static tarn_program *program_of(tarn_lang *L, const chain *c) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  if (!c->to) return kit_model(L, with_numbers(cx, c->from));
  tarn_program *p = TARN_NEW(cx, tarn_program);
  tarn_io *out = TARN_NEW(cx, tarn_io);
  const char *text = with_large(cx, c->from);
  out->name = "out";
  out->term = tarn_term_parse(L, tarn_sx_read(cx, text, strlen(text), "t")->kid[0]);
  out->type = tarn_term_get(L, out->term)->type;
  *p = (tarn_program){.L = L, .nout = 1, .out = out};
  return p;
}
static void explain(tarn_ctx *cx, void *arg) {
  chain *c = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_sat_options o = tarn_sat_defaults();
  tarn_buf b = {.cx = cx};
  o.reasons = TARN_EG_REASONS_ALL;
  o.proof_of_program = !c->to;
  if (c->to) {
    const char *to = with_large(cx, c->to);
    o.surface = true, o.max_iterations = 12;
    o.goal = tarn_term_parse(L, tarn_sx_read(cx, to, strlen(to), "t")->kid[0]);
  }
  tarn_saturation *s = tarn_saturate(program_of(L, c), rules_of(L, c), &o);
  if (c->to) tarn_sat_explain(s, 0, o.goal, &b);
  else b = kit_explain(s, kit_picks(s));
  c->text = b.p;
}

/* ---------------------------------------------------------------- judging */

typedef struct verdict {
  const chain *c;
  const char *text;
  bool replay, alone; /* alone: without the model */
  tarn_proof_result r;
} verdict;
static void judge(tarn_ctx *cx, void *arg) {
  verdict *v = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_proof_options o = {.replay = v->replay, .samples = 3, .seed = 5, .opaque = tarn_opaque_eval};
  if (!v->c->to && !v->alone) o.program = program_of(L, v->c);
  v->r = tarn_proof_check(rules_of(L, v->c), tarn_sx_read(cx, v->text, strlen(v->text), "p"), &o);
}
static bool strictly(const tarn_proof_result *r) {
  return r->ok && r->nassumed == 0 && r->skipped == 0;
}

typedef struct tally {
  uint32_t unreadable, refused, assumed, passed;
} tally;
/* Of one changed text: what does the checker say, and is it right? */
static void try_change(const chain *c, const char *text, const char *what, bool alone, tally *t) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  verdict v = {.c = c, .text = text, .alone = alone};
  tarn_status st = tarn_protect(cx, judge, &v);
  ck_assert_msg(st == TARN_OK || st == TARN_BAD_INPUT, "%s, %s: %s\n%s", c->name, what,
                tarn_message(cx), text);
  if (st) t->unreadable++;
  else if (!v.r.ok) t->refused++;
  else if (!strictly(&v.r)) t->assumed++;
  else {
    t->passed++;
    v.replay = true;
    ck_assert_int_eq(tarn_protect(cx, judge, &v), TARN_OK);
    ck_assert_msg(v.r.ok, "%s, %s: a false proof passes: step %u: %s\n%s", c->name, what, v.r.bad,
                  v.r.why, text);
  }
  tarn_ctx_free(cx);
}

static void change(tarn_ctx *cx, void *arg) {
  chain c = *(const chain *)arg;
  uint64_t rng = 17;
  tally t = {0}, alone = {0};
  explain(cx, &c);
  verdict right = {.c = &c, .text = c.text, .replay = true};
  judge(cx, &right);
  ck_assert_msg(strictly(&right.r), "%s: step %u: %s\n%.3000s", c.name, right.r.bad, right.r.why,
                c.text);
  for (uint32_t n = 0; n < each;) {
    tarn_ctx *own = tarn_ctx_new(NULL);
    const char *what, *text = mutate(own, c.text, &rng, &what);
    if (text && tarn_random(&rng) % 4 == 0) { /* two at once */
      const char *also, *more = mutate(own, text, &rng, &also);
      if (more) what = tarn_format(own, "%s and %s", what, also), text = more;
    }
    if (text && strcmp(text, c.text)) {
      try_change(&c, text, what, false, &t);
      if (!c.to) try_change(&c, text, what, true, &alone);
      n++;
    }
    tarn_ctx_free(own);
  }
  printf("%s: %u changed: %u unreadable, %u refused, %u assumed, %u true\n", c.name, each,
         t.unreadable, t.refused, t.assumed, t.passed);
  if (!c.to)
    printf("  without the model: %u unreadable, %u refused, %u assumed, %u true\n",
           alone.unreadable, alone.refused, alone.assumed, alone.passed);
  ck_assert_uint_gt(t.refused, each / 8);
}
START_TEST(changed_chains) { in_context_of(chains[_i].name, change, &chains[_i]); }
END_TEST

/* ---------------------------------------------------------------- facts of another constant */

static char *replaced(tarn_ctx *cx, const char *text, const char *old, const char *now) {
  tarn_buf b = {.cx = cx};
  for (const char *at; (at = strstr(text, old)); text = at + strlen(old)) {
    tarn_buf_add(&b, text, (size_t)(at - text));
    tarn_buf_str(&b, now);
  }
  tarn_buf_str(&b, text);
  return b.p;
}
static char *hash_of(tarn_ctx *cx, const char *text) {
  const char *s = strstr(text, "(hash \"");
  ck_assert_ptr_nonnull(s);
  return tarn_strndup(cx, s + 7, 16);
}
/* The chain of a table of bytes, said of a table of more than bytes. */
static void forge(tarn_ctx *cx, void *arg) {
  static const char *const ranges[] = {"range 0 255", "range 0 798", "range 0 0", "range -inf inf"};
  chain bytes = chains[0], more = {"more", TARN_RULE_KERNEL, GATHERED("799"), NULL, NULL};
  (void)arg;
  explain(cx, &bytes), explain(cx, &more);
  ck_assert(strstr(bytes.text, "rule recast") && !strstr(more.text, "rule recast"));
  char *text = replaced(cx, bytes.text, hash_of(cx, bytes.text), hash_of(cx, more.text));
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    verdict v = {.c = &more, .text = replaced(cx, text, ranges[0], ranges[i])};
    judge(cx, &v);
    ck_assert_msg(!v.r.ok, "%s", ranges[i]);
    ck_assert_msg(i != 1 || strstr(v.r.why, "recast"), "%s", v.r.why);
  }
}
START_TEST(facts_of_another_constant) { in_context(forge, NULL); }
END_TEST

/* `-(i32)(u8)x` is `-x` for a whole number of a byte: of %0, which is given. */
#define INDEX " (child 0 (index ((1100) ()) (1100) (d0))) out)))"
#define NEST(K, BODY)                                                                              \
  "(nest !" #K " (stages (children 1) (shared) (split 1) (stage (own 1100) (reduce) (map " BODY    \
  ")" INDEX
#define RECAST                                                                                     \
  NEST(1, "(neg $0)")                                                                              \
  NEST(2, "(neg (cast i32 (cast u8 $0)))") "(node %1 (nest !2 %0)) (node %2 (nest !1 %0)) "

/* A lemma about any constant, proved of those within a range. */
static void ranged_parameter(tarn_ctx *cx, void *arg) {
  static const char text[] =
      "(proof y (node %0 (tensor p i32 ((1100) ()) (hash \"?0\") (range 0 255)))" RECAST
      "(lemma 0 (for %0) %1 %2 (step 1 rule recast -> %1 %2))"
      "(node %3 (tensor q i32 ((1100) ()) (fill 700)))"
      "(node %4 (nest !2 %3)) (node %5 (nest !1 %3))"
      "(lemma 1 %4 %5 (step 2 lemma 0 -> %4 %5 (with %3))) (theorem %4 %5))";
  const chain c = {.level = TARN_RULE_KERNEL, .to = ""};
  verdict v = {.c = &c, .text = text};
  (void)arg;
  judge(cx, &v);
  ck_assert(!v.r.ok);
  ck_assert_msg(v.r.bad == 1 && strstr(v.r.why, "parameter"), "step %u: %s", v.r.bad, v.r.why);
  v.text = replaced(cx, text, "(for %0) ", ""); /* then the range is assumed */
  v.text = replaced(cx, v.text, "step 2 lemma 0 -> %4 %5 (with %3)", "step 2 rule recast -> %4 %5");
  judge(cx, &v);
  ck_assert_msg(!v.r.ok && v.r.bad == 2 && v.r.nassumed == 1, "step %u: %s", v.r.bad, v.r.why);
}
START_TEST(parameters_have_no_range) { in_context(ranged_parameter, NULL); }
END_TEST

/* A range that only the values show, of more than what saturation computes. */
static void by_values(tarn_ctx *cx, void *arg) {
  const chain c = {.level = TARN_RULE_KERNEL, .to = ""};
  (void)arg;
  for (int below = 256; below < 258; below++) {
    tarn_buf b = {.cx = cx};
    tarn_buf_fmt(&b,
                 "(proof y (node %%8 (tensor d i32 ((1100) ()) (fill %d)))"
                 "(node %%9 (tensor c i32 ((1100) ()) (bytes)))"
                 "(node %%0 (compute (map (mod $0 $1)) %%9 %%8))",
                 below);
    tarn_buf_str(&b, RECAST "(lemma 0 %1 %2 (step 1 rule recast -> %1 %2)) (theorem %1 %2)"
                            "(bytes c \"");
    for (int i = 0; i < 1100; i++) tarn_buf_fmt(&b, "%02x%02x0000", i & 255, i >> 8);
    tarn_buf_str(&b, "\"))");
    verdict v = {.c = &c, .text = b.p};
    judge(cx, &v);
    ck_assert_msg(v.r.ok == (below == 256), "%d: step %u: %s", below, v.r.bad, v.r.why);
  }
}
START_TEST(ranges_are_computed) { in_context(by_values, NULL); }
END_TEST

int main(int argc, char **argv) {
  TCase *t = tcase_create("all");
  bool all = argc > 1 && !strcmp(argv[1], "--all");
  if (all) each = 400;
  tcase_set_timeout(t, all ? 1800 : 120);
  tcase_add_loop_test(t, changed_chains, 0, CHAINS);
  tcase_add_test(t, facts_of_another_constant);
  tcase_add_test(t, parameters_have_no_range);
  tcase_add_test(t, ranges_are_computed);
  return run_checks("mutated", t);
}
