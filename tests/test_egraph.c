/* The e-graph engine: patterns, wide nodes, congruence, phases. */
#include "tests/egraph_lab.h"
#include "tests/egraph_folds.h"
#include "tests/egraph_proof.h"
#include "tests/suite.h"

static lab L;
static const tarn_eg_config reasons = {.reasons = TARN_EG_REASONS_ALL};

/* ---- patterns ---- */

typedef struct seen {
  uint32_t n;
  char text[512];
} seen;

static bool note_match(void *user, const tarn_eg_match *m) {
  seen *s = user;
  s->n++;
  snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), "[%u|%u]", m->segs[0].n,
           m->segs[1].n);
  return true;
}

static tarn_eg_node term(const judge *j, uint32_t t) { return tarn_eg_proof_term(j->p, t); }
/* Is b what (f … (g x) …) turns into where the g is kid i? */
static bool turns(const judge *j, tarn_eg_node f, uint32_t i, tarn_eg_node h) {
  tarn_eg_node g = term(j, f.kids[i]);
  uint32_t after = f.n - i - 1;
  return g.n == 1 && !strcmp(judge_op(j, f.kids[i]), "g") && h.kids[after] == g.kids[0] &&
         !memcmp(h.kids, f.kids + i + 1, after * sizeof *h.kids) &&
         !memcmp(h.kids + after + 1, f.kids, i * sizeof *h.kids);
}
static bool turned(const judge *j, const tarn_eg_step *s) {
  uint32_t left = s->forward ? s->before : s->after, right = s->forward ? s->after : s->before;
  tarn_eg_node f = term(j, left), h = term(j, right);
  bool any = false;
  for (uint32_t i = 0; i < f.n && f.n == h.n; i++) any |= turns(j, f, i, h);
  return any && s->rule == 0 && !strcmp(judge_op(j, left), "f") && !strcmp(judge_op(j, right), "h");
}

/* (f ?*0 (g ?x) ?*1): every place where a g stands. */
START_TEST(matches_segments) {
  ck_assert(lab_open(&L, &reasons));
  lab_start_rule(&L);
  tarn_eg_pat x = {.kind = TARN_EG_PAT_VAR, .var = 0}, s0 = {.kind = TARN_EG_PAT_SEG, .var = 0},
              s1 = {.kind = TARN_EG_PAT_SEG, .var = 1};
  const tarn_eg_pat *gk[] = {&x};
  tarn_eg_pat g = {
      .kind = TARN_EG_PAT_NODE, .var = TARN_NONE, .op = lab_op(&L, "g", 1), .kids = gk, .n = 1};
  const tarn_eg_pat *fk[] = {&s0, &g, &s1}, *hk[] = {&s1, &x, &s0};
  tarn_eg_pat f = {
      .kind = TARN_EG_PAT_NODE, .var = TARN_NONE, .op = lab_op(&L, "f", 1), .kids = fk, .n = 3};
  tarn_eg_pat h = {
      .kind = TARN_EG_PAT_NODE, .var = TARN_NONE, .op = lab_op(&L, "h", 1), .kids = hk, .n = 3};
  tarn_eg_root lhs = {TARN_NONE, &f}, rhs = {TARN_NONE, &h};
  tarn_eg_rule r = {.name = "turn", .lhs = &lhs, .n_lhs = 1, .rhs = &rhs, .n_rhs = 1};
  ck_assert_uint_eq(tarn_eg_rules_add(L.rules, &r), 0);
  uint32_t root = lab_add(&L, "(f a (g b) (g c) d)");
  lab_add(&L, "(f (g a))");
  lab_add(&L, "(f)");
  seen s = {0, ""};
  ck_assert_uint_eq(tarn_eg_search(L.g, L.rules, 0, note_match, &s), 3);
  ck_assert_str_eq(s.text, "[1|2][2|1][0|0]");
  tarn_eg_runner *run = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.max_iterations = 1};
  tarn_eg_run(run, &c);
  ck_assert_uint_eq(tarn_eg_find(L.g, root), tarn_eg_find(L.g, lab_add(&L, "(h (g c) d b a)")));
  ck_assert_uint_eq(tarn_eg_find(L.g, root), tarn_eg_find(L.g, lab_add(&L, "(h d c a (g b))")));
  /* what becomes a g later is found later, at its place only */
  uint32_t given[1][2] = {{lab_exact(&L, "d"), lab_exact(&L, "(g e)")}};
  tarn_eg_union(L.g, given[0][0], given[0][1], TARN_EG_RULE_GIVEN, 0);
  tarn_eg_rebuild(L.g);
  tarn_eg_run(run, &c);
  ck_assert_uint_eq(tarn_eg_iteration_at(run, 1).matches, 1);
  ck_assert_uint_eq(tarn_eg_find(L.g, root), tarn_eg_find(L.g, lab_add(&L, "(h e a (g b) (g c))")));
  ck_assert_uint_eq(tarn_eg_search(L.g, L.rules, 0, NULL, NULL), 4);
  judge j = {.l = &L, .rule = (const char *const(*)[2])L.side, .n_rules = 1, .other = turned};
  j.given = (const uint32_t(*)[2])given, j.n_given = 1;
  ck_assert_uint_gt(judge_pairs(&j, L.g, 20), 0);
  tarn_eg_runner_free(run);
  lab_close(&L);
}
END_TEST

static bool odd(void *user, uint32_t op, uint32_t payload) {
  (void)user, (void)op;
  return payload % 2;
}
static bool sum(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *payload) {
  (void)user, (void)g;
  *payload = m->payloads[0] + m->payloads[1];
  return true;
}

static bool added(const judge *j, const tarn_eg_step *s) {
  tarn_eg_node f = term(j, s->forward ? s->before : s->after),
               h = term(j, s->forward ? s->after : s->before);
  tarn_eg_node in = f.n == 1 ? term(j, f.kids[0]) : f;
  return s->rule == 0 && f.n == 1 && in.n == 1 && h.n == 1 && f.op == in.op && h.op == f.op &&
         f.payload % 2 && h.payload == f.payload + in.payload && h.kids[0] == in.kids[0];
}

/* (f:p (f:q x)) with p odd becomes (f:p+q x); payload and op variables, predicates, computed
 * payloads. */
START_TEST(matches_payloads) {
  ck_assert(lab_open(&L, &reasons));
  uint32_t fop = lab_op(&L, "f", 1), x = lab_add(&L, "x");
  tarn_eg_pat v = {.kind = TARN_EG_PAT_VAR, .var = 0};
  const tarn_eg_pat *k0[] = {&v};
  tarn_eg_pat in = {.kind = TARN_EG_PAT_NODE,
                    .var = TARN_NONE,
                    .op_how = TARN_EG_BIND,
                    .op = 0,
                    .payload_how = TARN_EG_BIND,
                    .payload = 1,
                    .kids = k0,
                    .n = 1};
  const tarn_eg_pat *k1[] = {&in};
  tarn_eg_pat outer = in;
  outer.payload = 0, outer.test = odd, outer.kids = k1;
  tarn_eg_pat made = {.kind = TARN_EG_PAT_NODE,
                      .op_how = TARN_EG_BIND,
                      .op = 0,
                      .payload_how = TARN_EG_COMPUTED,
                      .compute = sum,
                      .kids = k0,
                      .n = 1};
  tarn_eg_root lhs = {TARN_NONE, &outer}, rhs = {TARN_NONE, &made};
  tarn_eg_rule r = {.name = "add", .lhs = &lhs, .n_lhs = 1, .rhs = &rhs, .n_rhs = 1};
  ck_assert_uint_eq(tarn_eg_rules_add(L.rules, &r), 0);
  uint32_t f4 = tarn_eg_add(L.g, fop, 4, &x, 1), f3 = tarn_eg_add(L.g, fop, 3, &f4, 1);
  tarn_eg_add(L.g, fop, 2, &f4, 1);                /* even */
  tarn_eg_add(L.g, lab_op(&L, "g", 1), 1, &f4, 1); /* another op */
  ck_assert_uint_eq(tarn_eg_search(L.g, L.rules, 0, NULL, NULL), 1);
  tarn_eg_runner *run = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {0};
  ck_assert_int_eq(tarn_eg_run(run, &c), TARN_EG_STOP_SATURATED);
  ck_assert_uint_eq(tarn_eg_find(L.g, f3), tarn_eg_find(L.g, tarn_eg_lookup(L.g, fop, 7, &x, 1)));
  judge_found(&L, 2, added);
  tarn_eg_runner_free(run);
  lab_close(&L);
}
END_TEST

/* (* x a) is (both (* x a) (* x (h b))). */
static bool merged(const judge *j, const tarn_eg_step *s) {
  uint32_t left = s->forward ? s->before : s->after, right = s->forward ? s->after : s->before;
  tarn_eg_node b = term(j, right), p = term(j, left), q = b.n == 2 ? term(j, b.kids[1]) : b;
  return s->rule == 3 && b.n == 2 && !strcmp(judge_op(j, right), "both") && b.kids[0] == left &&
         p.n == 2 && q.n == 2 && !strcmp(judge_op(j, left), "*") && q.op == p.op &&
         p.kids[0] == q.kids[0] && !strcmp(judge_op(j, q.kids[1]), "h");
}

/* Two products of one factor, anywhere: roots that share a variable. */
START_TEST(matches_several_roots) {
  ck_assert(lab_open(&L, &reasons));
  lab_start_rule(&L);
  tarn_eg_root lhs[2], rhs[1];
  lhs[0] = (tarn_eg_root){lab_var(&L, "p", 1), lab_pat(&L, "(* ?x ?a)")};
  lhs[1] = (tarn_eg_root){lab_var(&L, "q", 1), lab_pat(&L, "(* ?x (h ?b))")};
  rhs[0] = (tarn_eg_root){lab_var(&L, "p", 1), lab_pat(&L, "(both ?p ?q)")};
  tarn_eg_rule r = {.name = "merge", .id = 3, .lhs = lhs, .n_lhs = 2, .rhs = rhs, .n_rhs = 1};
  ck_assert_uint_eq(tarn_eg_rules_add(L.rules, &r), 0);
  lab_add(&L, "(* x u)"), lab_add(&L, "(* x (h w))"), lab_add(&L, "(* y (h w))"),
      lab_add(&L, "(* y (h w2))");
  ck_assert_uint_eq(tarn_eg_search(L.g, L.rules, 0, NULL, NULL), 2 + 4);
  tarn_eg_runner *run = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.max_iterations = 1};
  tarn_eg_run(run, &c);
  ck_assert_uint_eq(tarn_eg_iteration_at(run, 0).applied, 6);
  /* a new one pairs with the old ones, both ways, once */
  lab_add(&L, "(* x (h z))");
  tarn_eg_run(run, &c);
  uint64_t now = tarn_eg_search(L.g, L.rules, 0, NULL, NULL);
  ck_assert_uint_eq(now, 6 + 4);
  ck_assert_uint_eq(tarn_eg_iteration_at(run, 1).matches, 4);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  judge_found(&L, 10, merged);
  tarn_eg_runner_free(run);
  lab_close(&L);
}
END_TEST

START_TEST(refuses_wrong_rules) {
  ck_assert(lab_open(&L, NULL));
  ck_assert_uint_eq(lab_rule(&L, "unbound", "(f ?x)", "(g ?y)"), TARN_NONE);
  ck_assert_ptr_nonnull(strstr(tarn_eg_rules_message(L.rules), "unbound"));
  ck_assert_uint_eq(lab_rule(&L, "beside", "(f ?*x ?*y)", "a"), TARN_NONE);
  ck_assert_ptr_nonnull(strstr(tarn_eg_rules_message(L.rules), "side by side"));
  ck_assert_uint_eq(lab_rule(&L, "fine", "(f ?*x)", "(g ?*x)"), 0);
  lab_close(&L);
}
END_TEST

/* ---- an analysis that refuses nodes ---- */

static bool no_odd_g(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *v) {
  (void)g;
  const lab *l = user;
  *v = n->n ? 0 : n->op;
  return *l->name[n->op] != 'g' || tarn_eg_data(g, 0, n->kids[0]) % 2 == 0;
}
static unsigned keep_larger(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  unsigned r = (*a < b ? TARN_EG_JOIN_A : 0u) | (*a > b ? TARN_EG_JOIN_B : 0u);
  if (*a < b) *a = b;
  return r;
}

/* A match whose right side is refused is dropped, those beside it are not. */
START_TEST(drops_what_is_refused) {
  ck_assert(lab_open(&L, &reasons));
  tarn_eg_analysis a = {"no odd g", &L, no_odd_g, keep_larger, NULL, false};
  ck_assert_uint_eq(tarn_eg_add_analysis(L.g, &a), 0);
  lab_rule(&L, "turn", "(f ?x)", "(h (g ?x) ?x)");
  char text[32];
  uint32_t id[100], odd = 0;
  for (uint32_t i = 0; i < 100; i++) {
    snprintf(text, sizeof text, "(f x%u)", i);
    id[i] = lab_add(&L, text);
  }
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {0};
  ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_SATURATED);
  ck_assert_int_eq(tarn_eg_status(L.g), TARN_OK);
  for (uint32_t i = 0; i < 100; i++) {
    uint32_t x = tarn_eg_node_at(L.g, id[i]).kids[0],
             other = tarn_eg_next_node(L.g, id[i], tarn_eg_next_node(L.g, id[i], TARN_NONE));
    bool refused = tarn_eg_data(L.g, 0, x) % 2;
    ck_assert_int_eq(other == TARN_NONE, refused);
    odd += refused;
  }
  ck_assert_uint_eq(odd, 50);
  tarn_eg_rule_stats s = tarn_eg_stats(r, 0);
  ck_assert(s.refused == odd && s.applied == 100 - odd && s.unions == 100 - odd);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  judge_found(&L, 10, NULL);
  tarn_eg_runner_free(r);
  lab_close(&L);
}
END_TEST

/* ---- many kids ---- */

START_TEST(holds_wide_nodes) {
  enum { N = 1500 };
  static uint32_t kid[N];
  ck_assert(lab_open(&L, NULL));
  char text[16];
  for (uint32_t i = 0; i < N; i++) {
    snprintf(text, sizeof text, "w%u", i);
    kid[i] = lab_add(&L, text);
  }
  uint32_t a = tarn_eg_add(L.g, 5000, 0, kid, N);
  ck_assert_uint_eq(tarn_eg_add(L.g, 5000, 0, kid, N), a);
  uint32_t was = kid[700];
  kid[700] = kid[3];
  uint32_t b = tarn_eg_add(L.g, 5000, 0, kid, N);
  ck_assert_uint_ne(a, b);
  ck_assert_uint_eq(tarn_eg_lookup(L.g, 5000, 0, kid, N), b);
  tarn_eg_union(L.g, was, kid[3], TARN_EG_RULE_GIVEN, 0);
  ck_assert_int_eq(tarn_eg_rebuild(L.g), TARN_OK);
  ck_assert_uint_eq(tarn_eg_find(L.g, a), tarn_eg_find(L.g, b));
  ck_assert_uint_eq(tarn_eg_node_count(L.g), N + 1);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  lab_close(&L);
}
END_TEST

/* ---- large graphs: what is left of them was counted with another engine ---- */

static uint32_t lcg(uint64_t *s, uint32_t n) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*s >> 33) % n;
}

static void expect_counts(uint32_t nodes, uint32_t classes) {
  ck_assert_int_eq(tarn_eg_rebuild(L.g), TARN_OK);
  ck_assert_uint_eq(tarn_eg_node_count(L.g), nodes);
  ck_assert_uint_eq(tarn_eg_class_count(L.g), classes);
}

enum { FIRST = 256, MILLION = 1000000 };

static void add_million(uint32_t *id) {
  uint64_t s = 1;
  for (uint32_t i = 0; i < MILLION; i++) {
    uint32_t op = lcg(&s, 8), k[2];
    k[0] = id[lcg(&s, FIRST + i)], k[1] = id[lcg(&s, FIRST + i)];
    id[FIRST + i] = tarn_eg_add(L.g, op, 0, k, 2);
  }
}

START_TEST(holds_a_million) {
  static uint32_t id[FIRST + MILLION];
  ck_assert(lab_open(&L, NULL));
  for (uint32_t i = 0; i < FIRST; i++) id[i] = tarn_eg_add(L.g, 100 + i, 0, NULL, 0);
  add_million(id);
  add_million(id); /* all known */
  expect_counts(1000256, 1000256);
  uint64_t s = 7;
  for (uint32_t i = 0; i < 10000; i++) {
    uint32_t a = lcg(&s, FIRST + MILLION), b = lcg(&s, FIRST + MILLION);
    tarn_eg_union(L.g, id[a], id[b], TARN_EG_RULE_GIVEN, 0);
  }
  expect_counts(1000256, 990256);
  for (uint32_t i = 1; i < FIRST; i++) tarn_eg_union(L.g, id[0], id[i], TARN_EG_RULE_GIVEN, 0);
  expect_counts(999829, 989574);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  lab_close(&L);
}
END_TEST

/* A thousand chains of a thousand whose ends are joined become one. */
START_TEST(joins_chains) {
  ck_assert(lab_open(&L, NULL));
  uint32_t first = TARN_NONE;
  for (uint32_t c = 0; c < 1000; c++) {
    uint32_t leaf = tarn_eg_add(L.g, 100 + c, 0, NULL, 0), x = leaf;
    for (int i = 0; i < 1000; i++) x = tarn_eg_add(L.g, 1, 0, &x, 1);
    if (first == TARN_NONE) first = leaf;
    tarn_eg_union(L.g, first, leaf, TARN_EG_RULE_GIVEN, 0);
  }
  expect_counts(2000, 1001);
  ck_assert_int_eq(tarn_eg_check(L.g), TARN_OK);
  lab_close(&L);
}
END_TEST

/* ---- many at once ---- */

enum { ITEMS = 100, MOST_KIDS = 20, BATCHES = 200 };
typedef struct batch {
  tarn_eg_node node[ITEMS];
  uint32_t kid[ITEMS][MOST_KIDS], n;
} batch;

/* Nodes of many kinds, often the same ones again, over the ids there are and over one another. */
static void draw_batch(batch *b, uint64_t *s, uint32_t n_ids) {
  b->n = 1 + lcg(s, ITEMS);
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t op = lcg(s, 40), n = op < 30    ? 2
                                  : op < 34  ? 1
                                  : op < 36  ? 0
                                  : op == 36 ? MOST_KIDS
                                             : 3;
    for (uint32_t k = 0; k < n; k++)
      b->kid[i][k] = i && !lcg(s, 4) ? TARN_EG_ITEM(lcg(s, i)) : lcg(s, n_ids < 60 ? n_ids : 60);
    b->node[i] = (tarn_eg_node){op % 30, n == 0 ? lcg(s, 5) : 0, n, b->kid[i]};
  }
}

static size_t add_singly(tarn_egraph *g, const batch *b, uint32_t *ids) {
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t kid[MOST_KIDS];
    for (uint32_t k = 0; k < b->node[i].n; k++)
      kid[k] = b->kid[i][k] >> 31 ? ids[b->kid[i][k] & 0x7FFFFFFF] : b->kid[i][k];
    if ((ids[i] = tarn_eg_add(g, b->node[i].op, b->node[i].payload, kid, b->node[i].n)) ==
        TARN_NONE)
      return i;
  }
  return b->n;
}

static void same_graphs(uint64_t seed, const tarn_eg_config *config, bool to_end) {
  static batch b;
  static uint32_t one[ITEMS], all[ITEMS];
  tarn_egraph *g = tarn_eg_new(NULL, config), *h = tarn_eg_new(NULL, config);
  tarn_eg_add(g, 99, 0, NULL, 0), tarn_eg_add(h, 99, 0, NULL, 0);
  size_t done = 0;
  for (int i = 0; i < BATCHES; i++) {
    draw_batch(&b, &seed, tarn_eg_id_count(g));
    done = add_singly(g, &b, one);
    ck_assert_uint_eq(tarn_eg_add_all(h, b.node, b.n, all), done);
    ck_assert_mem_eq(one, all, done * sizeof *one);
    for (size_t k = done; k < b.n; k++) ck_assert_uint_eq(all[k], TARN_NONE);
    if (done < b.n) break;
    uint32_t x = all[lcg(&seed, b.n)], y = lcg(&seed, 40) % tarn_eg_id_count(g);
    tarn_eg_union(g, x, y, TARN_EG_RULE_GIVEN, 0), tarn_eg_union(h, x, y, TARN_EG_RULE_GIVEN, 0);
    if (i % 3 == 0) tarn_eg_rebuild(g), tarn_eg_rebuild(h);
    ck_assert_uint_eq(tarn_eg_id_count(g), tarn_eg_id_count(h));
  }
  ck_assert(to_end == (done == b.n));
  ck_assert_int_eq(tarn_eg_status(g), tarn_eg_status(h));
  tarn_eg_clear_status(g), tarn_eg_clear_status(h);
  ck_assert_int_eq(tarn_eg_rebuild(h), TARN_OK);
  ck_assert_int_eq(tarn_eg_check(h), TARN_OK);
  tarn_eg_rebuild(g);
  ck_assert_uint_eq(tarn_eg_node_count(g), tarn_eg_node_count(h));
  ck_assert_uint_eq(tarn_eg_class_count(g), tarn_eg_class_count(h));
  tarn_eg_free(g), tarn_eg_free(h);
}

/* In batches the same nodes get the same ids as one by one. */
START_TEST(adds_many) {
  for (uint64_t seed = 1; seed <= 12; seed++) {
    same_graphs(seed, &(tarn_eg_config){.reasons = seed % 3}, true);
    same_graphs(seed, &(tarn_eg_config){.max_nodes = 60 * seed}, false);
  }
  tarn_egraph *g = tarn_eg_new(NULL, NULL);
  uint32_t self = TARN_EG_ITEM(1), none = 7, ids[2];
  tarn_eg_node leaf = {1, 0, 0, NULL}, wrong[] = {leaf, {2, 0, 1, &self}},
               absent[] = {leaf, {2, 0, 1, &none}};
  ck_assert_uint_eq(tarn_eg_add_all(g, wrong, 2, ids), 1); /* a kid that is the node itself */
  ck_assert_int_eq(tarn_eg_status(g), TARN_USAGE);
  tarn_eg_clear_status(g);
  ck_assert_uint_eq(tarn_eg_add_all(g, absent, 2, ids), 1);
  ck_assert(ids[0] == 0 && ids[1] == TARN_NONE && tarn_eg_status(g) == TARN_USAGE);
  ck_assert_uint_eq(tarn_eg_add_all(g, NULL, 0, NULL), 0);
  tarn_eg_free(g);
}
END_TEST

/* ---- against a naive closure ---- */

enum { TERMS = 120, MERGES = 40 };
typedef struct naive {
  uint32_t op[TERMS], kid[TERMS][3], n[TERMS], cls[TERMS];
} naive;

static void naive_merge(naive *v, uint32_t a, uint32_t b) {
  uint32_t from = v->cls[b], to = v->cls[a];
  for (uint32_t i = 0; i < TERMS; i++)
    if (v->cls[i] == from) v->cls[i] = to;
}
static bool naive_same(const naive *v, uint32_t a, uint32_t b) {
  if (v->op[a] != v->op[b] || v->n[a] != v->n[b]) return false;
  for (uint32_t i = 0; i < v->n[a]; i++)
    if (v->cls[v->kid[a][i]] != v->cls[v->kid[b][i]]) return false;
  return true;
}
static void naive_close(naive *v) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t a = 0; a < TERMS; a++)
      for (uint32_t b = 0; b < a; b++)
        if (v->cls[a] != v->cls[b] && naive_same(v, a, b)) naive_merge(v, a, b), again = true;
  }
}
/* All that a proof has besides congruences is unions that were asked for. */
static bool is_given(const judge *j, const tarn_eg_step *s) {
  (void)j;
  return s->rule == TARN_EG_RULE_GIVEN && s->note < MERGES;
}
START_TEST(agrees_with_naive_closure) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    uint64_t s = seed;
    naive v = {.op = {0}};
    uint32_t id[TERMS];
    tarn_eg_config config = {.reasons = (tarn_eg_reasons)(seed % 3)};
    tarn_egraph *g = tarn_eg_new(NULL, &config);
    for (uint32_t i = 0; i < TERMS; i++) {
      v.n[i] = i < 8 ? 0 : lcg(&s, 4);
      v.op[i] = i < 8 ? 100 + i : lcg(&s, 3), v.cls[i] = i;
      uint32_t k[3];
      for (uint32_t j = 0; j < v.n[i]; j++) v.kid[i][j] = lcg(&s, i), k[j] = id[v.kid[i][j]];
      id[i] = tarn_eg_add(g, v.op[i], 0, k, v.n[i]);
    }
    for (uint32_t m = 0; m < MERGES; m++) {
      uint32_t a = lcg(&s, TERMS), b = lcg(&s, TERMS);
      if (lcg(&s, 6) == 0) a = lcg(&s, 8), b = lcg(&s, 8);
      naive_merge(&v, a, b);
      ck_assert_int_ge(tarn_eg_union(g, id[a], id[b], TARN_EG_RULE_GIVEN, m), 0);
      if (m % 5 == 4) ck_assert_int_eq(tarn_eg_rebuild(g), TARN_OK);
    }
    naive_close(&v);
    ck_assert_int_eq(tarn_eg_rebuild(g), TARN_OK);
    ck_assert_int_eq(tarn_eg_check(g), TARN_OK);
    uint32_t nodes = 0, classes = 0;
    for (uint32_t a = 0; a < TERMS; a++) {
      bool first = true, own = true;
      for (uint32_t b = 0; b < a; b++) {
        ck_assert_int_eq(v.cls[a] == v.cls[b], tarn_eg_find(g, id[a]) == tarn_eg_find(g, id[b]));
        first &= v.cls[a] != v.cls[b], own &= !naive_same(&v, a, b);
      }
      nodes += own, classes += first;
    }
    ck_assert_uint_eq(tarn_eg_node_count(g), nodes);
    ck_assert_uint_eq(tarn_eg_class_count(g), classes);
    judge j = {.other = is_given};
    if (config.reasons) judge_pairs(&j, g, 20);
    tarn_egraph *c = tarn_eg_copy(g);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(tarn_eg_check(c), TARN_OK);
    ck_assert_uint_eq(tarn_eg_node_count(c), nodes);
    tarn_eg_free(c);
    tarn_eg_free(g);
  }
}
END_TEST

/* Running in small steps, with pauses and other rules between, finds what one run finds. */
START_TEST(phases_lose_nothing) {
  tarn_eg_config config = {.reasons = TARN_EG_REASONS_ALL};
  ck_assert(lab_open(&L, &config));
  lab_load_assoc(&L, 7);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  static const uint32_t only[2][1] = {{0}, {1}};
  for (uint32_t i = 0, idle = 0; idle < 2; i++) {
    tarn_eg_run_config c = {.active = only[i % 2], .n_active = 1, .max_iterations = 1 + i % 3};
    idle = tarn_eg_run(r, &c) == TARN_EG_STOP_SATURATED && tarn_eg_stats(r, i % 2).matches == 0
               ? idle + 1
               : idle;
    if (i > 60) break;
  }
  ck_assert_uint_eq(tarn_eg_node_count(L.g), 1939);
  ck_assert_uint_eq(tarn_eg_class_count(L.g), 127);
  judge j = {.l = &L, .rule = (const char *const(*)[2])L.side, .n_rules = 2};
  judge_pairs(&j, L.g, 30);
  tarn_eg_runner_free(r);
  lab_close(&L);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("engine");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, matches_segments);
  tcase_add_test(t, matches_payloads);
  tcase_add_test(t, matches_several_roots);
  tcase_add_test(t, refuses_wrong_rules);
  tcase_add_test(t, drops_what_is_refused);
  tcase_add_test(t, holds_wide_nodes);
  tcase_add_test(t, adds_many);
  tcase_add_test(t, holds_a_million);
  tcase_add_test(t, joins_chains);
  tcase_add_test(t, agrees_with_naive_closure);
  tcase_add_test(t, phases_lose_nothing);
  return run_checks("egraph", t);
}
