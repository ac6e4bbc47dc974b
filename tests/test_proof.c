/* rules/: proofs. Small networks are compiled to kernels and explained; the proofs must hold, on
 * paper and in numbers, and no proof with a changed step may. */
#include "model/model.h"
#include "rules/rules.h"
#include "tests/rules_kit.h"
#include "tests/small_nets.h"
#include "tests/context.h"
#include <ctype.h>

typedef struct net {
  const char *name, *text, *rule;
} net; /* rule: one that the proof must use */

static const net nets[] = {
    {"convolution, batch norm, relu", NET_CONV_NORM_RELU, "scale-apart"},
    {"three alike",
     "in x f32 1,4,3,3\nrand p 20,4,1,1\nrand q 20,20,1,1\nrand r 20,20,1,1\n"
     "pos s 20\nrand b 20\nrand m 20\npos v 20\npos s2 20\nrand b2 20\nrand m2 20\npos v2 20\n"
     "node Conv c x p -> t\nnode BatchNormalization n t s b m v -> u\nnode Relu e u -> z\n"
     "node Conv d z q -> t2\nnode BatchNormalization n2 t2 s2 b2 m2 v2 -> u2\nnode Relu e2 u2 -> "
     "z2\n"
     "node Conv f z2 r -> t3\nnode BatchNormalization n3 t3 s b m v -> u3\nnode Relu e3 u3 -> "
     "y\nout y\n",
     "epilogue"},
    {"residual block", NET_RESIDUAL, "scale-apart"},
    {"softmax", NET_SOFTMAX, "place"},
    {"layer norm", NET_LAYER_NORM, "place"},
    {"attention", NET_ATTENTION, "place"},
    {"depthwise and pointwise", NET_SEPARABLE, "epilogue"},
    {"gelu", NET_GELU, "inline"},
    {"map read through padding",
     "in x f32 1,1,4,4\nrand w 1,1,3,3\nnode Exp e x -> t\nnode Conv c t w -> y : "
     "pads=1,1,1,1\nout y\n",
     "inline-reduced"},
};

/* ---------------------------------------------------------------- compiling */

/* Points of its loops. */
static double points(const tarn_lang *L, uint32_t payload) {
  const tarn_nest *n = tarn_nest_get(L, tarn_payload_get(L, payload)->id);
  double all = 0;
  for (uint32_t i = 0; i < n->nstage; i++) {
    double p = 1;
    for (uint32_t d = 0; d < n->stage[i].nown; d++) p *= (double)n->stage[i].own[d];
    for (uint32_t d = 0; d < n->stage[i].nred; d++) p *= (double)n->stage[i].red[d];
    all += p;
  }
  return all;
}
/* Calls rather than loops. */
static double few_points(const tarn_lang *L, tarn_eg_node x) {
  return kit_few(L, x) + (x.op == TARN_OP_NEST ? points(L, x.payload) : 0);
}

static tarn_ruleset *kernel_rules(tarn_lang *L) {
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  return rs;
}
static const char *explained(tarn_ctx *cx, const net *n) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_sat_options o = tarn_sat_defaults();
  o.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(kit_model(L, n->text), kernel_rules(L), &o);
  return kit_explain(s, kit_picks(s)).p;
}

/* A checker that has seen nothing of what made the proof. */
static tarn_proof_result check_text(tarn_ctx *cx, const char *text, bool replay) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_proof_options o = {.replay = replay, .opaque = tarn_opaque_eval};
  return tarn_proof_check(kernel_rules(L), tarn_sx_read(cx, text, strlen(text), "proof"), &o);
}

static void holds_one(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  const char *text = explained(cx, n);
  tarn_proof_result r = check_text(cx, text, true);
  ck_assert_msg(r.ok, "%s: step %u: %s\n%.2000s", n->name, r.bad, r.why, text);
  ck_assert_uint_gt(r.steps, 1);
  ck_assert_uint_gt(r.replayed, 0);
  ck_assert_uint_eq(r.skipped, 0);
  bool used = false;
  for (uint32_t i = 0; i < r.nuse; i++)
    used |= strcmp(r.use[i].rule, n->rule) == 0 && r.use[i].count > 0;
  ck_assert_msg(used, "%s: %s is not used\n%.2000s", n->name, n->rule, text);
  ck_assert_str_eq(text, explained(cx, n)); /* the same every time */
}

static void run_net(tarn_fn *fn, int i) { in_context_of(nets[i].name, fn, &nets[i]); }

START_TEST(proofs_hold) { run_net(holds_one, _i); }
END_TEST

static void shares_lemmas(tarn_ctx *cx, void *arg) {
  const char *text = explained(cx, arg), *with = strstr(text, "(for ");
  uint32_t instances = 0;
  ck_assert_ptr_nonnull(with);
  for (const char *s = text; (s = strstr(s, " lemma ")); s++) instances++;
  ck_assert_uint_ge(instances, 2); /* two layers alike */
}
START_TEST(layers_share_lemmas) { run_net(shares_lemmas, 1); }
END_TEST

/* ---------------------------------------------------------------- changed proofs */

typedef struct page {
  tarn_ctx *cx;
  uint32_t n;
  char **line;
} page;

static page page_of(tarn_ctx *cx, const char *text) {
  TARN_VEC(char *) v = {0};
  for (const char *s = text; *s;) {
    size_t k = strcspn(s, "\n");
    tarn_push(cx, &v, tarn_strndup(cx, s, k));
    s += k + (s[k] == '\n');
  }
  return (page){cx, v.n, v.p};
}
/* Line i replaced by other text ("" drops it), and a line put before line j. */
static char *with_change(const page *p, uint32_t i, const char *other, uint32_t j,
                         const char *more) {
  tarn_buf b = {.cx = p->cx};
  for (uint32_t k = 0; k < p->n; k++) {
    if (k == j) tarn_buf_fmt(&b, "%s\n", more);
    tarn_buf_fmt(&b, "%s\n", k == i ? other : p->line[k]);
  }
  return b.p;
}
/* Brackets that a line closes beyond those it opens: they close the lemma, and must stay. */
static const char *closing(tarn_ctx *cx, const char *line) {
  int depth = 0;
  for (const char *s = line; *s; s++) depth += (*s == '(') - (*s == ')');
  char *c = tarn_strdup(cx, "))))");
  c[depth < 0 ? -depth : 0] = 0;
  return c;
}

typedef struct judged {
  const char *text;
  tarn_proof_result r;
} judged;
static void judge(tarn_ctx *cx, void *arg) {
  judged *j = arg;
  j->r = check_text(cx, j->text, false);
}
/* 1: refused at this step; 0: it does not even parse. Anything else fails. */
static int refused(tarn_ctx *cx, const char *text, uint32_t step, const char *what) {
  judged j = {.text = text};
  tarn_status st = tarn_protect(cx, judge, &j);
  if (st) {
    ck_assert_msg(st == TARN_BAD_INPUT, "%s, step %u: %s", what, step, tarn_message(cx));
    return 0;
  }
  ck_assert_msg(!j.r.ok, "%s, step %u: still accepted\n%.2000s", what, step, text);
  ck_assert_msg(j.r.bad == step, "%s, step %u: refused at %u: %s", what, step, j.r.bad, j.r.why);
  return 1;
}

typedef struct step_line {
  uint32_t line, number, lemma_line;
  char kind[24], name[64];
  uint32_t before, after;
} step_line;

static bool read_step(const page *p, uint32_t i, step_line *s) {
  const char *at = strstr(p->line[i], "(step ");
  char way[8];
  if (!at || at - p->line[i] != 4) return false;
  *s = (step_line){.line = i};
  for (uint32_t k = 0; k < i; k++)
    if (strstr(p->line[k], "  (lemma ") == p->line[k]) s->lemma_line = k;
  if (sscanf(at, "(step %u rule %63s %7s %%%u %%%u", &s->number, s->name, way, &s->before,
             &s->after) == 5)
    return strcpy(s->kind, "rule"), true;
  return sscanf(at, "(step %u %23s %%%u %%%u", &s->number, s->kind, &s->before, &s->after) == 4;
}

static char *replaced(tarn_ctx *cx, const char *line, const char *old, const char *now) {
  const char *at = strstr(line, old);
  return at ? tarn_format(cx, "%.*s%s%s", (int)(at - line), line, now, at + strlen(old)) : NULL;
}

/* A token of the text after `from` that fits, replaced. NULL: there is none. */
static char *edited(tarn_ctx *cx, const char *text, const char *from,
                    bool (*fits)(const char *token, size_t n), const char *now) {
  const char *s = strstr(text, from);
  for (s = s ? s + strlen(from) : NULL; s && *s; s++) {
    if (!strchr(" (", s[-1])) continue;
    size_t n = strcspn(s, " ()");
    if (n && fits(s, n)) return tarn_format(cx, "%.*s%s%s", (int)(s - text), text, now, s + n);
  }
  return NULL;
}
static bool is_real(const char *t, size_t n) {
  return isdigit((unsigned char)t[0]) && memchr(t, '.', n) != NULL;
}
static bool is_loop(const char *t, size_t n) {
  return n == 2 && t[0] == 'd' && isdigit((unsigned char)t[1]);
}

/* The step leads to a term with another nest, which differs in one token. */
static int change_nest(const page *p, const step_line *s, bool map) {
  char *node = tarn_format(p->cx, "  (node %%%u (nest !", s->after);
  for (uint32_t i = 0; i < s->line; i++) {
    uint32_t nest;
    if (strstr(p->line[i], node) != p->line[i] ||
        sscanf(p->line[i] + strlen(node), "%u", &nest) != 1)
      continue;
    char *head = tarn_format(p->cx, "  (nest !%u (", nest);
    for (uint32_t k = 0; k < i; k++) {
      if (strstr(p->line[k], head) != p->line[k]) continue;
      char *body = map ? edited(p->cx, p->line[k], "(index ", is_loop, "0")
                       : edited(p->cx, p->line[k], "$0", is_real, "3.25");
      if (!body) return 0;
      body = replaced(p->cx, body, tarn_format(p->cx, "!%u ", nest), "!9000 ");
      char *other = replaced(p->cx, p->line[i], tarn_format(p->cx, "%%%u ", s->after), "%9000 ");
      other = replaced(p->cx, other, tarn_format(p->cx, "!%u ", nest), "!9000 ");
      char *step =
          replaced(p->cx, p->line[s->line], tarn_format(p->cx, " %%%u %%%u", s->before, s->after),
                   tarn_format(p->cx, " %%%u %%9000", s->before));
      const char *more = tarn_format(p->cx, "%s\n%s", body, other);
      return refused(p->cx, with_change(p, s->line, step, s->lemma_line, more), s->number,
                     map ? "a map" : "a constant");
    }
  }
  return 0;
}

typedef struct tally {
  int dropped, renamed, turned, constant, map, misled;
} tally;

static void change_step(const page *p, const step_line *s, tally *t) {
  const char *line = p->line[s->line], *end = closing(p->cx, line);
  t->dropped += refused(p->cx, with_change(p, s->line, end, TARN_NONE, ""), s->number, "dropped");
  t->constant += change_nest(p, s, false);
  t->map += change_nest(p, s, true);
  if (strcmp(s->kind, "rule") == 0) {
    const char *other = strcmp(s->name, "scale") ? " rule scale " : " rule epilogue ";
    char *now = replaced(p->cx, line, tarn_format(p->cx, " rule %s ", s->name), other);
    t->renamed += refused(p->cx, with_change(p, s->line, now, TARN_NONE, ""), s->number, "renamed");
    now = replaced(p->cx, line, " -> ", " <- ");
    if (!now) now = replaced(p->cx, line, " <- ", " -> ");
    t->turned += refused(p->cx, with_change(p, s->line, now, TARN_NONE, ""), s->number, "turned");
  }
  if (strcmp(s->kind, "congruence") == 0) {
    char *now = tarn_strdup(p->cx, line), *kid = strstr(now, " (kid ");
    *kid = 0;
    now = tarn_format(p->cx, "%s)%s", now, end);
    t->misled +=
        refused(p->cx, with_change(p, s->line, now, TARN_NONE, ""), s->number, "without its lemma");
  }
}

static void change_all(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  page p = page_of(cx, explained(cx, n));
  tally t = {0};
  int steps = 0;
  for (uint32_t i = 0; i < p.n; i++) {
    step_line s;
    if (!read_step(&p, i, &s)) continue;
    steps++;
    change_step(&p, &s, &t);
  }
  ck_assert_int_eq(t.dropped, steps); /* each of them */
  ck_assert_int_gt(t.renamed, 0);
  ck_assert_int_gt(t.map, 0);
  if (n == &nets[0]) ck_assert_int_gt(t.constant + t.misled, 1);
}
START_TEST(changed_proofs_do_not) { run_net(change_all, _i); }
END_TEST

/* The theorem must be what the last lemma says. */
static void other_theorem(tarn_ctx *cx, void *arg) {
  page p = page_of(cx, explained(cx, arg));
  for (uint32_t i = 0; i < p.n; i++) {
    uint32_t from, to, steps = 0;
    if (sscanf(p.line[i], "  (theorem %%%u %%%u)", &from, &to) != 2) continue;
    for (uint32_t k = 0; k < i; k++) steps += strstr(p.line[k], "    (step ") == p.line[k];
    char *end = strchr(p.line[i], ')');
    char *now = tarn_format(cx, "  (theorem %%%u %%%u)%s", from, from, end + 1);
    ck_assert_int_eq(refused(cx, with_change(&p, i, now, TARN_NONE, ""), steps, "another theorem"),
                     1);
    return;
  }
  ck_abort_msg("no theorem");
}
START_TEST(theorem_is_the_last_lemma) { run_net(other_theorem, 0); }
END_TEST

/* Whatever bytes are in it: refused, unreadable or true, never a crash. */
static void garbled(tarn_ctx *cx, void *arg) {
  const char *text = explained(cx, arg);
  size_t n = strlen(text);
  uint64_t seed = 11;
  for (int k = 0; k < 150; k++) {
    tarn_ctx *own = tarn_ctx_new(NULL);
    char *copy = tarn_strdup(own, text);
    for (int e = 0; e < 1 + k % 3; e++) {
      size_t at = (size_t)(kit_random(&seed) % n), from = (size_t)(kit_random(&seed) % n);
      copy[at] = text[from];
    }
    judged j = {.text = copy};
    tarn_status st = tarn_protect(own, judge, &j);
    ck_assert_msg(st == TARN_OK || st == TARN_BAD_INPUT, "%s", tarn_message(own));
    tarn_ctx_free(own);
  }
}
START_TEST(garbled_proofs_are_survived) { run_net(garbled, _i); }
END_TEST

/* ---------------------------------------------------------------- surface terms */

static tarn_term term(tarn_lang *L, const char *text) {
  return tarn_term_parse(L, tarn_sx_read(tarn_lang_ctx(L), text, strlen(text), "term")->kid[0]);
}

typedef struct pair {
  const char *from, *to;
} pair;
static const pair pairs[] = {
    {"(transpose (1 0) (transpose (1 0) (input x ((3 4) ()) f32)))", "(input x ((3 4) ()) f32)"},
    {"(compute (map (max $0 0)) (concat 0 (input a ((2 3) ()) f32) (input b ((4 3) ()) f32)))",
     "(concat 0 (compute (map (max $0 0)) (input a ((2 3) ()) f32)) (compute (map (max $0 0)) "
     "(input b ((4 3) ()) f32)))"},
    {"(compute dotProd (cartProd (concat 0 (input a ((2) (6)) f32) (input c ((1) (6)) f32)) (input "
     "b ((3) (6)) f32)))",
     "(concat 0 (compute dotProd (cartProd (input a ((2) (6)) f32) (input b ((3) (6)) f32)))"
     " (compute dotProd (cartProd (input c ((1) (6)) f32) (input b ((3) (6)) f32))))"},
    {"(slice 0 1 3 (pad 0 0 1 1 (input x ((2 2) ()) f32)))", "(input x ((2 2) ()) f32)"},
};

static const char *proved(tarn_ctx *cx, tarn_lang *L, const tarn_ruleset *rs, const pair *p) {
  tarn_io out = {"out", term(L, p->from), 0};
  tarn_program prog = {.L = L, .nout = 1, .out = &out};
  out.type = tarn_term_get(L, out.term)->type;
  tarn_sat_options o = tarn_sat_defaults();
  o.surface = true, o.reasons = TARN_EG_REASONS_ALL, o.max_iterations = 12, o.goal = term(L, p->to);
  tarn_saturation *s = tarn_saturate(&prog, rs, &o);
  ck_assert_str_eq(tarn_sat_result(s)->stop, "goal");
  tarn_buf b = {.cx = cx};
  tarn_sat_explain(s, 0, o.goal, &b);
  return b.p;
}
static void prove_pair(tarn_ctx *cx, void *arg) {
  tarn_lang *L = tarn_lang_new(cx), *M = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L), *other = tarn_ruleset_new(M);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_SURFACE);
  tarn_ruleset_ship(other, NULL, TARN_RULE_SURFACE);
  const char *text = proved(cx, L, rs, arg);
  tarn_proof_options o = {.replay = true};
  tarn_proof_result r = tarn_proof_check(other, tarn_sx_read(cx, text, strlen(text), "proof"), &o);
  ck_assert_msg(r.ok, "step %u: %s\n%.2000s", r.bad, r.why, text);
  ck_assert_uint_gt(r.replayed, 0);
}
START_TEST(surface_proofs_hold) { in_context(prove_pair, &pairs[_i]); }
END_TEST

/* What the variables are said to stand for is compared. */
static void other_variables(tarn_ctx *cx, void *arg) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  (void)arg;
  tarn_ruleset_ship(rs, NULL, TARN_RULE_SURFACE);
  const char *text = proved(cx, L, rs, &pairs[1]);
  char *other = replaced(cx, text, "(?i 0)", "(?i 1)");
  ck_assert_ptr_nonnull(other);
  tarn_proof_options o = {0};
  tarn_proof_result r = tarn_proof_check(rs, tarn_sx_read(cx, other, strlen(other), "proof"), &o);
  ck_assert(!r.ok);
  ck_assert_uint_eq(r.bad, 1);
}
START_TEST(variables_are_compared) { in_context(other_variables, NULL); }
END_TEST

/* A proof of one network is none of another with the same layers but other weights. */
static void about_one(tarn_ctx *cx, void *arg) {
  const net *n = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const char *text = explained(cx, n);
  char *other = replaced(cx, n->text, "rand w 4", "pos w 4");
  tarn_sx *sx = tarn_sx_read(cx, text, strlen(text), "proof");
  tarn_proof_options o = {.program = kit_model(L, n->text)};
  ck_assert(tarn_proof_check(kernel_rules(L), sx, &o).ok);
  o.program = kit_model(L, other);
  ck_assert(!tarn_proof_check(kernel_rules(L), sx, &o).ok);
}
START_TEST(proofs_are_about_one_model) { run_net(about_one, 0); }
END_TEST

/* ---------------------------------------------------------------- mapped to an intrinsic */

static const char machine[] =
    "(hw h (kind dsa) (clock 1e8) (memory acc (capacity 65536) (read 64) (write 64)) (memory dram "
    "(read 8) (write 8))"
    " (intrinsic u (meaning (compute dotProd (cartProd (access 1 ?a) (access 1 ?b))))"
    " (operand a (type f32) (dims 4 3)) (operand b (type f32) (dims 4 3)) (operand y (type f32) "
    "(dims 4 4))))";
static const char padded[] =
    "in x f32 1,3,6,6\nrand w 5,3,3,3\nnode Conv c x w -> y : pads=1,1,1,1\nout y\n";

static tarn_ruleset *mapping_rules(tarn_lang *L, const tarn_hw **hw) {
  tarn_ruleset *rs = kernel_rules(L);
  *hw = tarn_hw_parse(L, tarn_sx_read(tarn_lang_ctx(L), machine, sizeof machine - 1, "h.hw"));
  ck_assert_uint_gt(tarn_ruleset_derive(rs, *hw), 0);
  return rs;
}
static void mapped(tarn_ctx *cx, void *arg) {
  tarn_lang *L = tarn_lang_new(cx), *M = tarn_lang_new(cx);
  tarn_sat_options o = tarn_sat_defaults();
  tarn_ruleset *rs = mapping_rules(L, &o.hw);
  const tarn_hw *other;
  (void)arg;
  o.reasons = TARN_EG_REASONS_ALL;
  tarn_saturation *s = tarn_saturate(kit_model(L, padded), rs, &o);
  tarn_buf b = kit_explain(s, kit_cheapest(s, false, few_points).pick);
  ck_assert_msg(strstr(b.p, "(call h.u ") != NULL, "%.2000s", b.p);
  tarn_proof_options po = {.replay = true};
  tarn_proof_result r =
      tarn_proof_check(mapping_rules(M, &other), tarn_sx_read(cx, b.p, b.n, "proof"), &po);
  ck_assert_msg(r.ok, "step %u: %s\n%.2000s", r.bad, r.why, b.p);
  ck_assert_uint_gt(r.replayed, 0);
  ck_assert_uint_eq(r.skipped, 0);
}
START_TEST(mappings_are_proved) { in_context(mapped, NULL); }
END_TEST

/* ---------------------------------------------------------------- what a check must find */

/* A rule that is wrong: its steps are instances of it, but evaluating shows what it is. */
static void wrong_rule(tarn_ctx *cx, void *arg) {
  static const char rule[] = "(family wrong :level surface (rule swapped (compute (map (sub $0 "
                             "$1)) ?a ?b) => (compute (map (sub $0 $1)) ?b ?a)))";
  static const pair p = {
      "(compute (map (sub $0 $1)) (input a ((3 4) ()) f32) (input b ((3 4) ()) f32))",
      "(compute (map (sub $0 $1)) (input b ((3 4) ()) f32) (input a ((3 4) ()) f32))"};
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = tarn_ruleset_new(L);
  (void)arg;
  tarn_ruleset_read(rs, rule, sizeof rule - 1, "wrong");
  const char *text = proved(cx, L, rs, &p);
  tarn_sx *sx = tarn_sx_read(cx, text, strlen(text), "proof");
  tarn_proof_options o = {0};
  ck_assert(tarn_proof_check(rs, sx, &o).ok);
  o.replay = true;
  tarn_proof_result r = tarn_proof_check(rs, sx, &o);
  ck_assert(!r.ok);
  ck_assert_uint_eq(r.bad, 1);
}
START_TEST(replay_finds_wrong_rules) { in_context(wrong_rule, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("proofs");
  int n = (int)(sizeof nets / sizeof *nets);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, proofs_hold, 0, n);
  tcase_add_test(t, layers_share_lemmas);
  tcase_add_loop_test(t, changed_proofs_do_not, 0, n);
  tcase_add_test(t, theorem_is_the_last_lemma);
  tcase_add_loop_test(t, garbled_proofs_are_survived, 0, 5);
  tcase_add_loop_test(t, surface_proofs_hold, 0, (int)(sizeof pairs / sizeof *pairs));
  tcase_add_test(t, variables_are_compared);
  tcase_add_test(t, proofs_are_about_one_model);
  tcase_add_test(t, replay_finds_wrong_rules);
  tcase_add_test(t, mappings_are_proved);
  return run_checks("proof", t);
}
