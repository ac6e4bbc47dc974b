/* Incremental matching against an engine that searches everything anew: random rules, of one and of
 * two roots, some with conditions that are read when they are applied, on random graphs that are
 * added to, joined and pruned between iterations. One graph keeps its runner, the other gets a new
 * one for each iteration; both must be the same, to the e-node. */
#include "tests/egraph_proof.h"

enum { LEAVES = 8, STEPS = 6, MOST_RULES = 5, MOST_NODES = 3000, MOST_GIVEN = 2000, TEXT = 240 };

static lab L;            /* with the graph that keeps its runner */
static tarn_egraph *new; /* the other one */
static uint32_t given[MOST_GIVEN][2], n_given;
static uint32_t pair[MOST_GIVEN][2], n_pair; /* what was added to both: ids there and here */
static char side[MOST_RULES][2][TEXT];
static uint32_t step_now;

static uint32_t lcg(uint64_t *s, uint32_t n) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*s >> 33) % n;
}

/* ---- random rules ---- */

static const struct {
  const char *name;
  uint32_t n;
} op[] = {{"k0", 0}, {"u", 1}, {"f", 2}, {"g", 2}, {"t", 3}};

/* A term of at most *nodes operators over the variables; used collects those that it holds. */
static char *random_term(uint64_t *s, char *to, uint32_t depth, uint32_t *nodes, const char *vars,
                         uint32_t *used) {
  if (depth && (!*nodes || lcg(s, 5) < 2)) {
    uint32_t v = lcg(s, (uint32_t)strlen(vars));
    *used |= 1u << (vars[v] - 'a');
    return to + sprintf(to, "?%c", vars[v]);
  }
  uint32_t o = depth && !lcg(s, 8) ? 0 : 1 + lcg(s, 7);
  o = o < 5 ? o : 2 + o % 2;
  if (!o) return to + sprintf(to, "k0");
  if (*nodes) --*nodes;
  to += sprintf(to, "(%s", op[o].name);
  for (uint32_t i = 0; i < op[o].n; i++) {
    *to++ = ' ';
    to = random_term(s, to, depth + 1, nodes, vars, used);
  }
  return to + sprintf(to, ")");
}

static void random_right(uint64_t *s, char *to, uint32_t nodes, uint32_t used) {
  char vars[8], *v = vars;
  for (char c = 'a'; c < 'd'; c++)
    if (used >> (c - 'a') & 1) *v++ = c;
  *v = 0;
  if (!*vars || !lcg(s, 4)) {
    if (*vars) sprintf(to, "?%c", vars[lcg(s, (uint32_t)strlen(vars))]);
    else strcpy(to, "(u k0)");
    return;
  }
  random_term(s, to, 0, &nodes, vars, &used);
}

/* Conditions: from a step on, the same for all matches of a rule; what an analysis knows of a
 * class. */
typedef struct limit {
  uint32_t from;
  bool of_root; /* there is no variable */
} limit;
static bool step_reached(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  (void)g, (void)m;
  return step_now >= ((const limit *)user)->from;
}
static bool known_enough(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  const limit *l = user;
  return tarn_eg_data(g, 0, l->of_root ? m->root : m->vars[0]) >= l->from;
}

static bool make_most(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *value) {
  (void)user;
  *value = 0;
  for (uint32_t i = 0; i < n->n; i++)
    if (tarn_eg_data(g, 0, n->kids[i]) > *value) *value = tarn_eg_data(g, 0, n->kids[i]);
  return true;
}
static unsigned join_most(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user, (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  if (*a > b) return TARN_EG_JOIN_B;
  *a = b;
  return TARN_EG_JOIN_A;
}

static void add_rule(uint64_t *s, uint32_t i, bool flat, limit *l) {
  uint32_t used = 0, roots = 1 + !lcg(s, 3);
  char second[TEXT], second_right[TEXT];
  for (uint32_t r = 0; r < roots; r++) {
    uint32_t nodes = roots == 1 ? 4 : 2;
    random_term(s, r ? second : side[i][0], 0, &nodes, "abc", &used);
  }
  random_right(s, side[i][1], flat ? 1 : 2, used);
  random_right(s, second_right, 1, used);
  *l = (limit){lcg(s, 2) ? 0 : 1 + lcg(s, STEPS), roots == 1 && !used};
  tarn_eg_condition c = {.holds = flat ? known_enough : step_reached,
                         .user = l,
                         .reads = flat ? 1 : TARN_EG_READS_GRAPH};
  if (roots == 1) {
    lab_rule_if(&L, "rule", side[i][0], side[i][1], &c, l->from > 0);
    return;
  }
  lab_start_rule(&L);
  uint32_t x = lab_var(&L, "x", 1), y = lab_var(&L, "y", 1);
  tarn_eg_root left[2] = {{x, lab_pat(&L, side[i][0])}, {y, lab_pat(&L, second)}};
  tarn_eg_root right[2] = {{x, lab_pat(&L, side[i][1])}, {y, lab_pat(&L, second_right)}};
  tarn_eg_rule rule = {.name = "pair",
                       .id = L.next_id++,
                       .lhs = left,
                       .n_lhs = 2,
                       .rhs = right,
                       .n_rhs = 1 + lcg(s, 2),
                       .conditions = &c,
                       .n_conditions = l->from > 0};
  ck_assert_uint_ne(tarn_eg_rules_add(L.rules, &rule), TARN_NONE);
}

/* ---- the same to both graphs ---- */

static void add_both(uint32_t o, const uint32_t *kid, uint32_t n) {
  uint32_t here[3], there[3];
  for (uint32_t i = 0; i < n; i++) here[i] = pair[kid[i]][0], there[i] = pair[kid[i]][1];
  ck_assert_uint_lt(n_pair, MOST_GIVEN);
  pair[n_pair][0] = tarn_eg_add(L.g, o, 0, here, n);
  pair[n_pair++][1] = tarn_eg_add(new, o, 0, there, n);
}

static void join_both(uint32_t a, uint32_t b) {
  ck_assert_uint_lt(n_given, MOST_GIVEN);
  given[n_given][0] = pair[a][0], given[n_given][1] = pair[b][0];
  tarn_eg_union(L.g, pair[a][0], pair[b][0], TARN_EG_RULE_GIVEN, n_given++);
  tarn_eg_union(new, pair[a][1], pair[b][1], TARN_EG_RULE_GIVEN, 0);
}

static void rebuild_both(void) {
  ck_assert_int_eq(tarn_eg_rebuild(L.g), TARN_OK);
  ck_assert_int_eq(tarn_eg_rebuild(new), TARN_OK);
}

/* A new leaf, new nodes, a few unions; some class loses all nodes but its leaves; some class is
 * known better. */
static void change(uint64_t *s, uint32_t nodes, bool prune) {
  char leaf[16];
  add_both(lab_op(&L, leaf, (size_t)sprintf(leaf, "n%u", n_pair)), NULL, 0);
  for (uint32_t i = 0; i < nodes; i++) {
    uint32_t o = 1 + lcg(s, 4), kid[3];
    for (uint32_t k = 0; k < op[o].n; k++) kid[k] = lcg(s, lcg(s, 4) ? LEAVES : n_pair);
    add_both(lab_op(&L, op[o].name, 1), kid, op[o].n);
    if (lcg(s, 3)) join_both(n_pair - 1, lcg(s, LEAVES));
  }
  if (!lcg(s, 3)) join_both(lcg(s, n_pair), lcg(s, n_pair));
  rebuild_both();
  uint32_t at = lcg(s, n_pair), value = 1 + lcg(s, STEPS);
  tarn_eg_join_data(L.g, 0, pair[at][0], value), tarn_eg_join_data(new, 0, pair[at][1], value);
  rebuild_both();
  if (!prune) return;
  at = lcg(s, LEAVES);
  tarn_eg_prune_to_leaves(L.g, pair[at][0]), tarn_eg_prune_to_leaves(new, pair[at][1]);
}

/* ---- are they the same? ---- */

static uint32_t visible(const tarn_egraph *g, uint32_t cls) {
  uint32_t count = 0;
  for (uint32_t n = tarn_eg_next_node(g, cls, TARN_NONE); n != TARN_NONE;
       n = tarn_eg_next_node(g, cls, n))
    count++;
  return count;
}

/* The class there of each class here, through the nodes from the leaves up; TARN_NONE: not met. */
static uint32_t *map_classes(void) {
  uint32_t ids = tarn_eg_id_count(L.g), left = 1, *to = malloc(ids * sizeof *to);
  memset(to, 0xFF, ids * sizeof *to);
  while (left) {
    left = 0;
    for (uint32_t i = 0; i < ids; i++) {
      tarn_eg_node n = tarn_eg_node_at(L.g, i);
      uint32_t kid[3], cls = tarn_eg_find(L.g, i), k = 0;
      for (; k < n.n && to[tarn_eg_find(L.g, n.kids[k])] != TARN_NONE; k++)
        kid[k] = to[tarn_eg_find(L.g, n.kids[k])];
      if (k < n.n || to[cls] != TARN_NONE) continue;
      uint32_t there = tarn_eg_lookup(new, n.op, n.payload, kid, n.n);
      if (there != TARN_NONE) to[cls] = tarn_eg_find(new, there), left = 1;
    }
  }
  return to;
}

/* NULL, or how they differ. */
static const char *difference(void) {
  if (tarn_eg_class_count(L.g) != tarn_eg_class_count(new)) return "classes";
  if (tarn_eg_node_count(L.g) != tarn_eg_node_count(new)) return "nodes";
  uint32_t *to = map_classes(), *back = calloc(tarn_eg_id_count(new), sizeof *back);
  const char *how = NULL;
  for (uint32_t c = tarn_eg_next_class(L.g, TARN_NONE); c != TARN_NONE && !how;
       c = tarn_eg_next_class(L.g, c)) {
    if (to[c] == TARN_NONE) how = "a class that the other has not";
    else if (back[to[c]]++) how = "two classes that are one there";
    else if (visible(L.g, c) != visible(new, to[c])) how = "nodes of a class";
    else if (tarn_eg_data(L.g, 0, c) != tarn_eg_data(new, 0, to[c]))
      how = "what is known of a class";
    for (uint32_t n = tarn_eg_next_node(L.g, c, TARN_NONE); n != TARN_NONE && !how;
         n = tarn_eg_next_node(L.g, c, n)) {
      tarn_eg_node e = tarn_eg_node_at(L.g, n);
      uint32_t kid[3];
      for (uint32_t k = 0; k < e.n; k++) kid[k] = to[tarn_eg_find(L.g, e.kids[k])];
      uint32_t there = tarn_eg_lookup(new, e.op, e.payload, kid, e.n);
      if (there == TARN_NONE || tarn_eg_find(new, there) != to[c])
        how = "a node that the other has elsewhere or not";
    }
  }
  free(to), free(back);
  return how;
}

/* ---- stepping ---- */

static void open_trial(uint64_t *s, bool flat, limit *limits) {
  static const tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
  static const tarn_eg_analysis most = {.name = "most", .make = make_most, .join = join_most};
  char leaf[8];
  n_given = n_pair = step_now = 0;
  ck_assert(lab_open(&L, &config));
  new = tarn_eg_new(NULL, NULL);
  ck_assert_uint_eq(tarn_eg_add_analysis(L.g, &most) + tarn_eg_add_analysis(new, &most), 0);
  for (uint32_t i = 0; i < LEAVES; i++)
    add_both(lab_op(&L, leaf, (size_t)sprintf(leaf, "k%u", i)), NULL, 0);
  for (uint32_t i = 0, n = 2 + lcg(s, MOST_RULES - 1); i < n; i++) add_rule(s, i, flat, &limits[i]);
}

static tarn_eg_stop run_anew(const tarn_eg_run_config *c, uint64_t *matches) {
  tarn_eg_runner *r = tarn_eg_runner_new(new, L.rules);
  tarn_eg_stop stop = tarn_eg_run(r, c);
  *matches = tarn_eg_iteration_at(r, 0).matches;
  tarn_eg_runner_free(r);
  return stop;
}

static bool given_only(const judge *j, const tarn_eg_step *s) {
  return (void)j, s->rule < L.next_id && !L.side[s->rule][0];
}

static void prove_some(uint32_t pairs) {
  judge j = {.l = &L,
             .rule = (const char *const(*)[2])L.side,
             .n_rules = L.next_id,
             .other = given_only, /* a step of a rule of two roots is about two terms; test_proof.c
                                     judges those */
             .given = (const uint32_t(*)[2])given,
             .n_given = n_given};
  judge_pairs(&j, L.g, pairs);
}

/* flat: right sides of one node, conditions on what an analysis knows, compared when nothing new is
 * found: what can be found does not depend on the order then. Else each iteration is compared, and
 * conditions depend on the step alone. The number of trials that were large enough to tell. */
static uint32_t compare(tarn_eg_scheduler scheduler, bool flat, uint64_t from, uint64_t to) {
  uint32_t told = 0;
  for (uint64_t seed = from; seed < to; seed++) {
    uint64_t s = seed * 7919, all[2];
    limit limits[MOST_RULES];
    open_trial(&s, flat, limits);
    tarn_eg_runner *kept = tarn_eg_runner_new(L.g, L.rules);
    tarn_eg_run_config c = {
        .scheduler = scheduler, .match_limit = 1u << 30, .max_iterations = flat ? 40 : 1};
    bool prune = seed % 3 == 0;
    for (step_now = 1; step_now <= STEPS && tarn_eg_node_count(L.g) < MOST_NODES; step_now++) {
      change(&s, 1 + lcg(&s, 25), prune && lcg(&s, 2));
      uint32_t first = tarn_eg_iteration_count(kept);
      tarn_eg_stop a = tarn_eg_run(kept, &c), b = run_anew(&c, &all[1]);
      if (flat && (a != TARN_EG_STOP_SATURATED || b != TARN_EG_STOP_SATURATED)) break;
      all[0] = tarn_eg_iteration_at(kept, first).matches;
      if (scheduler == TARN_EG_BACKOFF)
        ck_assert_msg(all[0] == all[1], "seed %llu: matches", (unsigned long long)seed);
      const char *how = difference();
      ck_assert_msg(!how, "seed %llu, step %u, %u rules: other %s", (unsigned long long)seed,
                    step_now, tarn_eg_rules_count(L.rules), how);
      told += tarn_eg_node_count(L.g) > 40 && step_now > 2;
    }
    if (seed % 16 == 0 && !prune) prove_some(2);
    tarn_eg_runner_free(kept);
    tarn_eg_free(new);
    lab_close(&L);
  }
  return told;
}

START_TEST(each_iteration_finds_what_a_new_search_finds) {
  ck_assert_uint_gt(compare(TARN_EG_SIMPLE, false, 1, 1500), 300);
  ck_assert_uint_gt(compare(TARN_EG_BACKOFF, false, 3000, 3700), 140);
}
END_TEST

START_TEST(conditions_that_turn_true_are_seen) {
  ck_assert_uint_gt(compare(TARN_EG_SIMPLE, true, 5000, 6000), 150);
  ck_assert_uint_gt(compare(TARN_EG_BACKOFF, true, 7000, 7500), 75);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("steps");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, each_iteration_finds_what_a_new_search_finds);
  tcase_add_test(t, conditions_that_turn_true_are_seen);
  return run_checks("egraph_steps", t);
}
