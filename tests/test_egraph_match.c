/* Searching against a matcher that tries everything: random patterns on random graphs, all at once
 * and step by step. */
#include "tests/egraph_proof.h"

enum { MAX_MATCHES = 60000, WORDS = 8, LEAVES = 8, MAX_GIVEN = 1000 };

static lab L;
static uint32_t given[MAX_GIVEN][2], n_given; /* the unions, by their notes */

static uint32_t lcg(uint64_t *s, uint32_t n) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*s >> 33) % n;
}

/* ---- trying everything ---- */

typedef struct todo { /* this pattern is to match this class */
  const tarn_eg_pat *pat;
  uint32_t cls;
} todo;

typedef struct brute {
  const tarn_egraph *g;
  uint32_t bound[16], n_vars;
  todo stack[32];
  const tarn_eg_root *root;
  uint32_t n_roots, next;
  uint32_t (*out)[WORDS]; /* the roots' variables, then the others */
  uint32_t n;
} brute;

static bool brute_go(brute *b, uint32_t depth);

static bool brute_node(brute *b, todo t, uint32_t depth) {
  for (uint32_t n = tarn_eg_next_node(b->g, t.cls, TARN_NONE); n != TARN_NONE;
       n = tarn_eg_next_node(b->g, t.cls, n)) {
    tarn_eg_node e = tarn_eg_node_at(b->g, n);
    if (e.op != t.pat->op || e.n != t.pat->n) continue;
    for (uint32_t i = 0; i < e.n; i++)
      b->stack[depth + i] = (todo){t.pat->kids[i], tarn_eg_find(b->g, e.kids[i])};
    todo saved[32];
    memcpy(saved, b->stack, sizeof saved);
    if (!brute_go(b, depth + e.n)) return false;
    memcpy(b->stack, saved, sizeof saved);
  }
  return true;
}

/* The next root, in the class that its variable has or in any. */
static bool brute_root(brute *b) {
  const tarn_eg_root *r = &b->root[b->next++];
  uint32_t *v = &b->bound[r->var], was = *v;
  bool ok = true;
  for (uint32_t c = tarn_eg_next_class(b->g, TARN_NONE); ok && c != TARN_NONE;
       c = tarn_eg_next_class(b->g, c)) {
    if (was != TARN_NONE && c != was) continue;
    *v = c;
    b->stack[0] = (todo){r->pat, c};
    ok = brute_go(b, 1);
  }
  *v = was;
  b->next--;
  return ok;
}

/* Whether there was room for all. */
static bool brute_go(brute *b, uint32_t depth) {
  if (!depth && b->next < b->n_roots) return brute_root(b);
  if (!depth) {
    if (b->n == MAX_MATCHES) return false;
    memcpy(b->out[b->n++], b->bound, sizeof *b->out);
    return true;
  }
  todo t = b->stack[depth - 1];
  if (t.pat->kind == TARN_EG_PAT_NODE) return brute_node(b, t, depth - 1);
  uint32_t *v = &b->bound[t.pat->var], was = *v;
  if (was != TARN_NONE && was != t.cls) return true;
  *v = t.cls;
  bool ok = brute_go(b, depth - 1);
  *v = was;
  return ok;
}

static int by_words(const void *a, const void *b) { return memcmp(a, b, sizeof(uint32_t[WORDS])); }

/* All matches of the roots, sorted; false: too many. */
static bool brute_all(brute *b, const tarn_eg_root *root, uint32_t n_roots) {
  b->n = b->next = 0, b->root = root, b->n_roots = n_roots;
  for (int i = 0; i < 16; i++) b->bound[i] = TARN_NONE;
  if (!brute_root(b)) return false;
  qsort(b->out, b->n, sizeof *b->out, by_words);
  return true;
}

/* ---- random patterns and graphs ---- */

static void pattern_text(uint64_t *s, char *to, uint32_t depth, uint32_t *nodes) {
  static const char *const op[] = {"k", "u", "f", "g", "t"}; /* of 0, 1, 2, 2, 3 kids */
  static const uint32_t kids[] = {0, 1, 2, 2, 3};
  if (depth && (*nodes >= 4 || depth > 3 || lcg(s, 5) < 2)) {
    sprintf(to, "?%c", 'a' + (int)lcg(s, 3));
    return;
  }
  uint32_t o = depth ? lcg(s, 9) : 1 + lcg(s, 8);
  o = o < 5 ? o : 2 + o % 2;
  ++*nodes;
  if (!o) {
    strcpy(to, "k0");
    return;
  }
  to += sprintf(to, "(%s", op[o]);
  for (uint32_t i = 0; i < kids[o]; i++) {
    *to++ = ' ';
    pattern_text(s, to, depth + 1, nodes);
    to += strlen(to);
  }
  strcpy(to, ")");
}

static void unite(uint32_t a, uint32_t b) {
  ck_assert_uint_lt(n_given, MAX_GIVEN);
  given[n_given][0] = a, given[n_given][1] = b;
  tarn_eg_union(L.g, a, b, TARN_EG_RULE_GIVEN, n_given++);
}

/* New nodes over random classes, most of them put into the class of a leaf, so that classes are
 * large; a few unions. */
static void add_some(uint64_t *s, uint32_t nodes, uint32_t unions) {
  static const struct {
    const char *op;
    uint32_t n;
  } kind[] = {{"u", 1}, {"f", 2}, {"f", 2}, {"g", 2}, {"t", 3}};
  for (uint32_t i = 0; i < nodes; i++) {
    uint32_t k = lcg(s, 5), op = lab_op(&L, kind[k].op, 1), kid[3];
    for (uint32_t j = 0; j < kind[k].n; j++)
      kid[j] = lcg(s, lcg(s, 10) ? LEAVES : tarn_eg_id_count(L.g));
    if (tarn_eg_lookup(L.g, op, 0, kid, kind[k].n) != TARN_NONE) continue;
    uint32_t id = tarn_eg_add(L.g, op, 0, kid, kind[k].n);
    if (lcg(s, 12)) unite(id, lcg(s, LEAVES));
  }
  for (uint32_t i = 0; i < unions; i++)
    unite(lcg(s, tarn_eg_id_count(L.g)), lcg(s, tarn_eg_id_count(L.g)));
  ck_assert_int_eq(tarn_eg_rebuild(L.g), TARN_OK);
}

/* ---- what the engine finds ---- */

typedef struct record {
  uint32_t (*m)[WORDS];
  uint32_t n, n_vars;
} record;

static bool note(void *user, const tarn_eg_match *m) {
  record *r = user;
  if (r->n == MAX_MATCHES) return false;
  for (uint32_t i = 0; i < WORDS; i++) r->m[r->n][i] = i < r->n_vars ? m->vars[i] : TARN_NONE;
  r->n++;
  return true;
}
static int apply_note(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result) {
  (void)g, (void)result;
  note(user, m);
  return 0;
}

typedef struct trial {
  tarn_eg_root root[4];
  uint32_t n_roots, n_vars, rule;
  brute b;
  record r;
} trial;

static uint32_t brute_space[MAX_MATCHES][WORDS], seen_space[MAX_MATCHES][WORDS];

/* A rule whose left side is one to four random patterns and whose right side takes notes. */
static void open_trial(trial *t, uint64_t *s, uint32_t n_roots) {
  static const tarn_eg_config config = {.reasons = TARN_EG_REASONS_FIRST};
  char text[4][400];
  n_given = 0;
  ck_assert(lab_open(&L, &config));
  for (uint32_t i = 0; i < LEAVES; i++) {
    snprintf(text[0], sizeof text[0], "k%u", i);
    lab_add(&L, text[0]);
  }
  *t = (trial){.n_roots = n_roots};
  lab_start_rule(&L);
  for (uint32_t r = 0; r < n_roots; r++) {
    uint32_t nodes = n_roots - 1;
    pattern_text(s, text[r], 0, &nodes);
    char name[2] = {(char)((r && lcg(s, 2) ? 'a' : 'x') + (int)(r && lcg(s, 2))), 0};
    t->root[r] = (tarn_eg_root){lab_var(&L, name, 1), lab_pat(&L, text[r])};
  }
  t->n_vars = L.n_vars;
  t->b = (brute){.g = L.g, .n_vars = L.n_vars, .out = brute_space};
  t->r = (record){.m = seen_space, .n_vars = L.n_vars};
  tarn_eg_rule rule = {
      .name = text[0], .lhs = t->root, .n_lhs = n_roots, .apply = apply_note, .user = &t->r};
  t->rule = tarn_eg_rules_add(L.rules, &rule);
  ck_assert_msg(t->rule != TARN_NONE, "%s: %s", text[0], tarn_eg_rules_message(L.rules));
}

static void canonical(record *r) {
  for (uint32_t i = 0; i < r->n; i++)
    for (uint32_t k = 0; k < r->n_vars; k++) r->m[i][k] = tarn_eg_find(L.g, r->m[i][k]);
  qsort(r->m, r->n, sizeof *r->m, by_words);
}

/* What is equal follows from the unions that were given. */
static void prove_given(uint32_t pairs) {
  judge j = {.l = &L,
             .rule = (const char *const(*)[2])L.side,
             .given = (const uint32_t(*)[2])given,
             .n_given = n_given};
  judge_pairs(&j, L.g, pairs);
}

START_TEST(finds_all) {
  uint32_t large = 0;
  for (uint64_t seed = 1; seed <= 1000; seed++) {
    uint64_t s = seed * 977;
    trial t;
    open_trial(&t, &s, (uint32_t)(seed % 3 ? 1 : 2 + seed / 3 % 3));
    add_some(&s, 20 + lcg(&s, 400), lcg(&s, 4) == 0);
    if (brute_all(&t.b, t.root, t.n_roots)) {
      uint64_t n = tarn_eg_search(L.g, L.rules, t.rule, note, &t.r);
      ck_assert_msg(n == t.b.n, "seed %llu, %s: %llu matches, not %u", (unsigned long long)seed,
                    tarn_eg_rule_name(L.rules, 0), (unsigned long long)n, t.b.n);
      canonical(&t.r);
      ck_assert_int_eq(memcmp(t.r.m, t.b.out, t.b.n * sizeof *t.b.out), 0);
      large += n > 20;
    }
    lab_close(&L);
  }
  ck_assert_uint_gt(large, 150); /* the graphs are no deserts */
}
END_TEST

/* What is found from step to step is all there is, as far as classes have joined since; under
 * backoff, where every match is counted, the count is that of all. */
static void step_by_step(tarn_eg_scheduler sched) {
  for (uint64_t seed = 1; seed <= 400; seed++) {
    uint64_t s = seed * 1543;
    trial t;
    open_trial(&t, &s, (uint32_t)(seed % 3 ? 1 : 2 + seed / 3 % 3));
    tarn_eg_runner *run = tarn_eg_runner_new(L.g, L.rules);
    tarn_eg_run_config c = {.scheduler = sched, .match_limit = 1u << 30, .max_iterations = 1};
    for (uint32_t step = 0; step < 6; step++) {
      add_some(&s, lcg(&s, 80), lcg(&s, 3) == 0);
      if (!brute_all(&t.b, t.root, t.n_roots) || t.r.n + t.b.n > MAX_MATCHES) break;
      tarn_eg_run(run, &c);
      tarn_eg_iteration it = tarn_eg_iteration_at(run, tarn_eg_iteration_count(run) - 1);
      if (sched == TARN_EG_BACKOFF) ck_assert_uint_eq(it.matches, t.b.n);
      canonical(&t.r);
      for (uint32_t i = 0; i < t.b.n; i++)
        ck_assert_msg(bsearch(t.b.out[i], t.r.m, t.r.n, sizeof *t.r.m, by_words) != NULL,
                      "seed %llu, step %u, %s", (unsigned long long)seed, step,
                      tarn_eg_rule_name(L.rules, 0));
    }
    if (seed % 8 == 0) prove_given(2);
    tarn_eg_runner_free(run);
    lab_close(&L);
  }
}

START_TEST(finds_all_step_by_step) {
  step_by_step(TARN_EG_SIMPLE);
  step_by_step(TARN_EG_BACKOFF);
}
END_TEST

/* ---- threads ---- */

/* Every id: its class, its node. */
static uint64_t fingerprint(const tarn_egraph *g) {
  uint64_t h = tarn_eg_id_count(g);
  for (uint32_t i = 0; i < tarn_eg_id_count(g); i++) {
    tarn_eg_node n = tarn_eg_node_at(g, i);
    h = tarn_hash_mix(tarn_hash_mix(h, tarn_eg_find(g, i)), n.op);
    for (uint32_t k = 0; k < n.n; k++) h = tarn_hash_mix(h, n.kids[k]);
  }
  return h;
}

static double never_late(void *user) {
  ++*(uint32_t *)user;
  return 0;
}

static uint64_t grown(unsigned threads, tarn_eg_scheduler scheduler, uint32_t iterations,
                      tarn_eg_reasons reasons) {
  uint32_t asked = 0;
  tarn_eg_config config = {.reasons = reasons};
  ck_assert(lab_open(&L, &config));
  lab_load_pure(&L);
  tarn_eg_runner *r = tarn_eg_runner_new(L.g, L.rules);
  tarn_eg_run_config c = {.scheduler = scheduler,
                          .max_iterations = iterations,
                          .threads = threads,
                          .max_seconds = 1,
                          .clock = never_late,
                          .user = &asked};
  ck_assert_int_eq(tarn_eg_run(r, &c), TARN_EG_STOP_ITERATIONS);
  uint64_t h = fingerprint(L.g);
  for (uint32_t i = 0; i < iterations; i++)
    h = tarn_hash_mix(h, tarn_eg_iteration_at(r, i).matches);
  if (reasons && threads > 1) judge_found(&L, 3, NULL);
  tarn_eg_runner_free(r);
  lab_close(&L);
  return h;
}

START_TEST(threads_change_nothing) {
  for (int sched = TARN_EG_SIMPLE; sched <= TARN_EG_BACKOFF; sched++) {
    uint32_t n = sched == TARN_EG_SIMPLE ? 10 : 48;
    for (int reasons = TARN_EG_REASONS_NONE; reasons <= TARN_EG_REASONS_FIRST; reasons++) {
      uint64_t one = grown(1, (tarn_eg_scheduler)sched, n, (tarn_eg_reasons)reasons);
      ck_assert(grown(2, (tarn_eg_scheduler)sched, n, (tarn_eg_reasons)reasons) == one);
      ck_assert(grown(5, (tarn_eg_scheduler)sched, n, (tarn_eg_reasons)reasons) == one);
    }
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("match");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, finds_all);
  tcase_add_test(t, finds_all_step_by_step);
  tcase_add_test(t, threads_change_nothing);
  return run_checks("egraph_match", t);
}
