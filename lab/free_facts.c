/* The analyses of a free rule set, as the engine wants them: constants, whose value is 1 + the
 * symbol of the leaf that a class is known to be, and sets of classes, whose value is a number of a
 * table. */
#include "lab/free.h"
#include <stdio.h>
#include <string.h>

/* ---- sets; each once, ascending ---- */
typedef struct set_view {
  const uint32_t *p;
  uint32_t n;
} set_view;
static set_view set_at(const free_state *f, uint64_t set) {
  size_t n;
  const uint32_t *p = tarn_intern_key(f->set, (uint32_t)set, &n);
  return (set_view){p, (uint32_t)(n / sizeof *p)};
}
static uint64_t intern_scratch(free_state *f) {
  return tarn_intern_add(f->set, f->scratch.n ? f->scratch.p : (const uint32_t[]){0},
                         f->scratch.n * sizeof(uint32_t));
}
uint64_t free_set_one(free_state *f, uint32_t cls) {
  return tarn_intern_add(f->set, &cls, sizeof cls);
}
uint64_t free_set_merge(free_state *f, uint64_t a, uint64_t b, set_how how) {
  if (a == b && how != SET_WITHOUT) return a;
  if (how == SET_UNION && (!a || !b)) return a | b;
  if (!a || (!b && how == SET_BOTH)) return 0;
  set_view x = set_at(f, a), y = how == SET_WITHOUT ? (set_view){NULL, 0} : set_at(f, b);
  uint32_t i = 0, k = 0;
  f->scratch.n = 0;
  while (i < x.n || k < y.n) {
    bool left = k == y.n || (i < x.n && x.p[i] <= y.p[k]),
         both = i < x.n && k < y.n && x.p[i] == y.p[k];
    uint32_t c = left ? x.p[i] : y.p[k];
    i += left, k += both || !left;
    if (how == SET_BOTH ? both : how == SET_WITHOUT ? c != b : true)
      tarn_push(f->cx, &f->scratch, c);
  }
  return intern_scratch(f);
}
/* Members are classes as they were when the set was made. */
bool free_set_has(const free_state *f, const tarn_egraph *g, uint64_t set, uint32_t cls) {
  set_view x = set_at(f, set);
  cls = tarn_eg_find(g, cls);
  for (uint32_t i = 0; i < x.n; i++)
    if (tarn_eg_find(g, x.p[i]) == cls) return true;
  return false;
}

/* ---- making ---- */
typedef struct making {
  free_state *f;
  uint32_t analysis;
  const tarn_egraph *g;
  const tarn_eg_node *node;
  uint64_t value;
} making;

static bool fits(const making *k, const fclause *c) {
  if (c->op != k->node->op || c->n != k->node->n) return false;
  for (uint32_t i = 0; i < c->n; i++) {
    if (!c->fixed[i]) continue;
    uint64_t v = tarn_eg_data(k->g, k->analysis, k->node->kids[i]);
    fval have = v ? free_value_of(k->f, (uint32_t)(v - 1)) : (fval){0};
    if (free_compare(&have, &c->want[i]) != 0) return false;
  }
  return true;
}
/* The first clause that fits and, of constants, has a value. */
static bool by_clause(making *k) {
  const fanalysis *a = k->f->analysis.p[k->analysis];
  const uint64_t *first = tarn_map_get(k->f->first[k->analysis], k->node->op);
  fenv e = {.f = k->f, .g = (tarn_egraph *)(uintptr_t)k->g, .cls = k->node->kids};
  for (uint32_t i = first ? (uint32_t)(*first - 1) : a->clause.n; i < a->clause.n; i++) {
    const fclause *c = &a->clause.p[i];
    fval v = {0};
    if (!fits(k, c) || !c->x->fun->fn(&e, c->x, &v)) continue;
    k->value = a->set ? (uint64_t)v.p : 1 + (uint64_t)free_value_symbol(k->f, &v);
    return true;
  }
  return false;
}
static void make_raises(tarn_ctx *cx, void *arg) {
  making *k = arg;
  (void)cx;
  if (by_clause(k) || !k->f->analysis.p[k->analysis]->set) return;
  for (uint32_t i = 0; i < k->node->n; i++)
    k->value = free_set_merge(k->f, k->value, tarn_eg_data(k->g, k->analysis, k->node->kids[i]),
                              SET_UNION);
}
/* Of a leaf: it is a value, or a clause says what it is; in a lattice the clause comes first. */
static void leaf_raises(tarn_ctx *cx, void *arg) {
  making *k = arg;
  const fanalysis *a = k->f->analysis.p[k->analysis];
  bool own = free_value_of(k->f, k->node->op).kind != FV_NONE && (!a->lattice || a->leaves);
  (void)cx;
  if ((a->lattice || !own) && by_clause(k)) return;
  if (own)
    k->value = 1 + (uint64_t)free_value_symbol(k->f, &k->f->value.p[k->node->op]); /* 1.0 is 1 */
}
/* Nothing to compute: no clause, and no kid with anything in its set. */
static bool plain(const making *k) {
  if (tarn_map_get(k->f->first[k->analysis], k->node->op)) return false;
  for (uint32_t i = 0; k->f->analysis.p[k->analysis]->set && i < k->node->n; i++)
    if (tarn_eg_data(k->g, k->analysis, k->node->kids[i])) return false;
  return true;
}
typedef struct one_analysis {
  free_state *f;
  uint32_t number;
} one_analysis;
static bool make(void *user, const tarn_egraph *g, const tarn_eg_node *node, uint64_t *value) {
  const one_analysis *a = user;
  making k = {a->f, a->number, g, node, 0};
  *value = 0;
  if (node->n ? plain(&k) : a->f->analysis.p[a->number]->set) return true;
  tarn_status st = tarn_protect(a->f->cx, node->n ? make_raises : leaf_raises, &k);
  if (st) a->f->failed = st;
  *value = k.value;
  return !st;
}

/* ---- joining ---- */
typedef struct joining {
  free_state *f;
  uint64_t a, b, out;
  set_how how;
} joining;
static void join_raises(tarn_ctx *cx, void *arg) {
  joining *j = arg;
  (void)cx;
  j->out = free_set_merge(j->f, j->a, j->b, j->how);
}
typedef struct merging {
  const one_analysis *x;
  uint64_t a, b, out; /* out 0: they have no merge */
} merging;
static void merge_raises(tarn_ctx *cx, void *arg) {
  merging *k = arg;
  free_state *f = k->x->f;
  fval slot[2] = {free_value_of(f, (uint32_t)(k->a - 1)), free_value_of(f, (uint32_t)(k->b - 1))};
  fenv e = {.f = f, .slot = slot};
  const fexpr *m = f->analysis.p[k->x->number]->merge;
  fval v = {0};
  (void)cx;
  if (m->fun->fn(&e, m, &v)) k->out = 1 + (uint64_t)free_value_symbol(f, &v);
}
/* Of a lattice: what :merge says. */
static unsigned merge_values(const one_analysis *x, uint64_t *a, uint64_t b) {
  merging k = {x, *a, b, 0};
  tarn_status st = tarn_protect(x->f->cx, merge_raises, &k);
  if (st) x->f->failed = st;
  if (st || !k.out) return TARN_EG_JOIN_FAIL;
  unsigned changed = (k.out != *a ? TARN_EG_JOIN_A : 0u) | (k.out != b ? TARN_EG_JOIN_B : 0u);
  *a = k.out;
  return changed;
}
static unsigned join(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  const one_analysis *x = user;
  (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  const fanalysis *is = x->f->analysis.p[x->number];
  if (!is->set) {
    if (!b) return TARN_EG_JOIN_B;
    if (*a && is->lattice) return merge_values(x, a, b);
    if (*a) return TARN_EG_JOIN_FAIL;
    *a = b;
    return TARN_EG_JOIN_A;
  }
  joining j = {x->f, *a, b, 0, x->f->analysis.p[x->number]->either ? SET_UNION : SET_BOTH};
  tarn_status st = tarn_protect(x->f->cx, join_raises, &j);
  if (st) {
    x->f->failed = st;
    return TARN_EG_JOIN_FAIL;
  }
  unsigned changed = (j.out != *a ? TARN_EG_JOIN_A : 0u) | (j.out != b ? TARN_EG_JOIN_B : 0u);
  *a = j.out;
  return changed;
}

/* ---- a constant's class holds its leaf; where it is to be pruned, nothing but leaves ---- */
enum { EVIDENCE = 64 };
static void modify(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause) {
  const one_analysis *x = user;
  uint64_t v = tarn_eg_data(g, x->number, cls);
  uint32_t kid[EVIDENCE], leaf = v ? tarn_eg_add(g, (uint32_t)(v - 1), 0, NULL, 0) : TARN_NONE;
  if (leaf == TARN_NONE) return;
  tarn_eg_node n = cause == TARN_NONE ? (tarn_eg_node){0} : tarn_eg_node_at(g, cause);
  if (n.n > EVIDENCE) n.n = 0;
  for (uint32_t i = 0; i < n.n; i++) { /* the leaves that the kids are known to be */
    uint64_t k = tarn_eg_data(g, x->number, n.kids[i]);
    kid[i] = k ? tarn_eg_lookup(g, (uint32_t)(k - 1), 0, NULL, 0) : TARN_NONE;
    if (kid[i] == TARN_NONE) kid[i] = n.kids[i];
  }
  if (n.n) tarn_eg_union_at(g, cause, kid, n.n, leaf, TARN_EG_RULE_ANALYSIS, x->number);
  else
    tarn_eg_union(g, cause == TARN_NONE ? cls : cause, leaf, TARN_EG_RULE_ANALYSIS,
                  x->number); /* a leaf, as it is written */
  if (x->f->analysis.p[x->number]->prune) tarn_eg_prune_to_leaves(g, cls);
}

void tarn_free_prepare(const tarn_ruleset *rs, tarn_egraph *g) {
  free_state *f = free_of(rs);
  for (uint32_t i = 0; i < f->analysis.n; i++) {
    one_analysis *a = TARN_NEW(rs->cx, one_analysis);
    *a = (one_analysis){f, i};
    tarn_eg_analysis e = {f->analysis.p[i]->name, a, make, join, i == f->constants ? modify : NULL,
                          i == f->constants};
    if (tarn_eg_add_analysis(g, &e) != i)
      tarn_raise(rs->cx, tarn_eg_status(g) ? tarn_eg_status(g) : TARN_USAGE, "analysis %s: %s",
                 e.name, tarn_eg_message(g));
  }
}
tarn_status tarn_free_failed(const tarn_ruleset *rs) { return free_of(rs)->failed; }

/* Of a class, for people: "value 3", "free {x y}". */
static void print_set(const tarn_ruleset *rs, const tarn_egraph *g, uint64_t set, tarn_buf *b) {
  set_view x = set_at(free_of(rs), set);
  tarn_buf_str(b, "{");
  for (uint32_t i = 0; i < x.n; i++) {
    uint32_t n = tarn_eg_next_node(g, tarn_eg_find(g, x.p[i]), TARN_NONE);
    tarn_eg_node v = n == TARN_NONE ? (tarn_eg_node){0} : tarn_eg_node_at(g, n);
    tarn_buf_str(b, i ? " " : "");
    if (n != TARN_NONE && v.n == 0) tarn_free_print(rs, b, v.op);
    else tarn_buf_fmt(b, "#%u", tarn_eg_find(g, x.p[i]));
  }
  tarn_buf_str(b, "}");
}
void tarn_free_facts(const tarn_ruleset *rs, const tarn_egraph *g, uint32_t cls, tarn_buf *b) {
  const free_state *f = free_of(rs);
  for (uint32_t i = 0; i < f->analysis.n; i++) {
    uint64_t v = tarn_eg_data(g, i, cls);
    if (!f->analysis.p[i]->set && !v) continue;
    tarn_buf_fmt(b, "%s%s ", b->n ? ", " : "", f->analysis.p[i]->name);
    if (f->analysis.p[i]->set) print_set(rs, g, v, b);
    else tarn_free_print(rs, b, (uint32_t)(v - 1));
  }
}
