/* Choosing the least terms of an e-graph, and writing the graph out. */
#include "cli/explore.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the least terms ---- */
/* What e-nodes cost. */
typedef struct costing {
  tarn_ctx *cx;
  const char *weights; /* OPERATOR=COST,… or NULL: 1 each */
  const cli_explore *x;
  const explore_view *v;
} costing;
typedef struct choosing {
  costing by;
  tarn_egraph *g;
  tarn_sel_graph *s;
  uint32_t *dense;         /* class -> number in s */
  TARN_VEC(uint32_t) node; /* number in s -> e-node */
  TARN_VEC(uint32_t) cls;
} choosing;
static void free_graph(void *arg) { tarn_sel_graph_free(arg); }
static void must(tarn_ctx *cx, tarn_status st) {
  if (st) tarn_reraise(cx, st);
}

static void add_classes(tarn_ctx *cx, choosing *k) {
  uint32_t ids = tarn_eg_id_count(k->g);
  k->dense = TARN_ARRAY(cx, uint32_t, ids + 1);
  TARN_EG_CLASSES(k->g, c) {
    k->dense[c] = k->cls.n;
    tarn_push(cx, &k->cls, c);
  }
  must(cx, tarn_sel_add_classes(k->s, k->cls.n, NULL));
}
/* The operator's name is the first word of the node's. */
static double weight(const costing *k, uint32_t node) {
  tarn_eg_node e = tarn_eg_node_at(k->v->g, node);
  char name[256], *end;
  if (k->x->legal && !k->x->legal(k->x->legal_user, e.op, e.payload)) return INFINITY;
  if (!k->weights) return 1;
  k->v->name(k->v->user, e.op, e.payload, name, sizeof name);
  size_t n = strcspn(name, " ");
  for (const char *s = k->weights; *s; s += strcspn(s, ","), s += *s == ',') {
    const char *item_end = s + strcspn(s, ","), *eq = item_end;
    while (eq > s && *eq != '=') eq--; /* the last one: an operator may be called = */
    double w = strtod(eq + 1, &end);
    if (eq == s || end == eq + 1 || end != item_end || !(w > 0))
      tarn_raise(k->cx, TARN_USAGE, "cost %s: OPERATOR=COST,… is expected, costs above 0",
                 k->weights);
    if ((size_t)(eq - s) == n && !strncmp(s, name, n)) return w;
  }
  return 1;
}
static costing costs(tarn_ctx *cx, const cli_explore *x, const explore_view *v) {
  return (costing){cx, x->cost && strchr(x->cost, '=') ? x->cost : NULL, x, v};
}
static void add_nodes(tarn_ctx *cx, choosing *k) {
  TARN_VEC(uint32_t) kid = {0};
  for (uint32_t i = 0; i < k->cls.n; i++)
    TARN_EG_NODES(k->g, k->cls.p[i], v) {
      tarn_eg_node e = tarn_eg_node_at(k->g, v);
      kid.n = 0;
      for (uint32_t a = 0; a < e.n; a++)
        tarn_push(cx, &kid, k->dense[tarn_eg_find(k->g, e.kids[a])]);
      must(cx, tarn_sel_add_node(k->s, i, weight(&k->by, v), kid.p, kid.n, NULL));
      tarn_push(cx, &k->node, v);
    }
}

static double depth(void *user, uint32_t node, const double *kid, uint32_t n) {
  double most = 0;
  (void)user, (void)node;
  for (uint32_t i = 0; i < n; i++) most = fmax(most, kid[i]);
  return most + 1;
}

/* Cost and size of each chosen class below a root, children first; without recursion: terms can be
 * deep. */
typedef struct totals {
  double *cost, *size;
} totals;
static void sum_up(tarn_ctx *cx, const choosing *k, const uint32_t *pick, bool deep, totals t,
                   uint32_t root) {
  TARN_VEC(uint32_t) todo = {0};
  tarn_push(cx, &todo, root);
  while (todo.n) {
    uint32_t c = todo.p[todo.n - 1], have = todo.n;
    tarn_eg_node e = tarn_eg_node_at(k->g, pick[c]);
    double sum = 0, most = 0, size = 1;
    for (uint32_t i = 0; i < e.n; i++) {
      uint32_t kid = tarn_eg_find(k->g, e.kids[i]);
      if (t.size[kid] == 0) tarn_push(cx, &todo, kid);
      sum += t.cost[kid], most = fmax(most, t.cost[kid]), size += t.size[kid];
    }
    if (todo.n > have) continue;
    t.cost[c] = weight(&k->by, pick[c]) + (deep ? most : sum), t.size[c] = size;
    todo.n--;
  }
}

static uint32_t *picks_of(tarn_ctx *cx, const choosing *k, const tarn_sel_result *r) {
  uint32_t ids = tarn_eg_id_count(k->g), *pick = TARN_ARRAY(cx, uint32_t, ids + 1);
  memset(pick, 0xFF, (size_t)ids * sizeof *pick);
  for (uint32_t i = 0; i < k->cls.n; i++)
    if (r->choice[i] != TARN_SEL_NONE) pick[k->cls.p[i]] = k->node.p[r->choice[i]];
  return pick;
}
enum { SHARING_STEPS = 20000000 };
static void choose_shared(tarn_ctx *cx, const choosing *k, explore_choice *out) {
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_EXACT);
  tarn_sel_result r;
  o.seconds = INFINITY, o.steps = SHARING_STEPS;
  must(cx, tarn_sel_run(k->s, TARN_SEL_EXACT, &o, &r));
  out->dag = r.dag_cost, out->bound = r.lower_bound, out->optimal = r.optimal;
  out->shared = picks_of(cx, k, &r);
  tarn_sel_result_free(&r);
}
explore_choice explore_choose(tarn_ctx *cx, cli_explore *x, const explore_view *v) {
  choosing k = {.by = costs(cx, x, v), .g = v->g};
  bool deep = !strcmp(x->cost, "depth");
  uint32_t ids = tarn_eg_id_count(v->g), n = v->n;
  must(cx, tarn_sel_graph_new(cx, &k.s));
  tarn_defer(cx, free_graph, k.s);
  add_classes(cx, &k);
  add_nodes(cx, &k);
  for (uint32_t i = 0; i < n; i++)
    must(cx, tarn_sel_add_root(k.s, k.dense[tarn_eg_find(v->g, v->root[i])]));
  tarn_sel_options o = tarn_sel_defaults(TARN_SEL_TREE);
  tarn_sel_cost by_depth = {.k = 1, .term = depth};
  if (deep) o.cost = &by_depth;
  tarn_sel_result r;
  tarn_status st = tarn_sel_run(k.s, TARN_SEL_TREE, &o, &r);
  if (st == TARN_NO_RESULT && x->legal) {
    tarn_warn(cx, "no term of it is made of what the hardware has units for; any may be chosen");
    x->legal = NULL;
    return explore_choose(cx, x, v);
  }
  must(cx, st);
  explore_choice out = {.pick = picks_of(cx, &k, &r),
                        .cost = TARN_ARRAY(cx, double, n + 1),
                        .size = TARN_ARRAY(cx, double, n + 1),
                        .tree_dag = r.dag_cost};
  tarn_sel_result_free(&r);
  totals t = {TARN_ARRAY(cx, double, ids + 1), TARN_ARRAY(cx, double, ids + 1)};
  for (uint32_t i = 0; i < n; i++) {
    uint32_t c = tarn_eg_find(v->g, v->root[i]);
    sum_up(cx, &k, out.pick, deep, t, c);
    out.cost[i] = t.cost[c], out.size[i] = t.size[c];
  }
  if (!deep && !x->session) choose_shared(cx, &k, &out);
  return out;
}

/* ---- files ---- */
typedef struct writing {
  FILE *f;
  explore_name_fn *name;
  void *user;
  costing by;
} writing;
static bool put(void *user, const char *text, size_t n) {
  return fwrite(text, 1, n, ((writing *)user)->f) == n;
}
static void name_of(void *user, uint32_t op, uint32_t payload, char *buf, size_t n) {
  writing *w = user;
  w->name(w->user, op, payload, buf, n);
}

static double cost_of(void *user, const tarn_egraph *g, uint32_t node) {
  (void)g;
  return fmin(weight(&((writing *)user)->by, node), 1e30); /* JSON has no infinity */
}

void explore_write(tarn_ctx *cx, const cli_explore *x, const explore_view *v) {
  for (int kind = 0; kind < 2; kind++) {
    const char *path = kind ? x->egraph : x->dot;
    if (!path) continue;
    writing to = {cli_open(cx, path), v->name, v->user, costs(cx, x, v)};
    tarn_eg_writer w = {.write = put, .name = name_of, .cost = cost_of, .user = &to};
    tarn_status st = kind ? tarn_eg_write_json(v->g, v->root, v->n, &w)
                          : tarn_eg_write_dot(v->g, v->root, v->n, (uint32_t)x->dot_classes, &w);
    cli_close(cx, to.f, path);
    if (st) tarn_raise(cx, st, "%s: %s", path, tarn_eg_message(v->g));
  }
}
