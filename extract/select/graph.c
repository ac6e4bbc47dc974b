/* The graph and its builder. Nodes are kept in order of addition; the arrays by class are made on
 * demand. */
#include "extract/select/internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
  TEXT_BLOCK = 1 << 18
}; /* bytes; a longer text is cut to fit: names this long are no names */

void *sel_grow(tarn_ctx *cx, void *p, size_t old, size_t n, size_t each) {
  const tarn_allocator *a = tarn_ctx_allocator(cx);
  void *q = n <= SIZE_MAX / 2 / each ? a->realloc(a->user, p, old * each, n * each) : NULL;
  if (!q) tarn_raise(cx, TARN_MEMORY, "selection: out of memory (%zu bytes)", n * each);
  return q;
}

void sel_drop(tarn_ctx *cx, void *p, size_t n, size_t each) {
  const tarn_allocator *a = tarn_ctx_allocator(cx);
  if (p) a->realloc(a->user, p, n * each, 0);
}

/* Half as much again: a stream of unknown length must not hold twice its size. */
static uint32_t more(tarn_ctx *cx, uint32_t cap, uint64_t need) {
  uint64_t n = cap + cap / 2 + 16;
  if (n < need) n = need;
  if (n >= UINT32_MAX)
    tarn_raise(cx, TARN_MEMORY, "selection: more than 2^32 nodes, children or names");
  return (uint32_t)n;
}

uint32_t sel_text_add(tarn_sel_graph *g, const char *s, size_t n) {
  sel_texts *t = &g->texts;
  if (n > TEXT_BLOCK - 8) n = TEXT_BLOCK - 8;
  uint32_t units = (uint32_t)((n + 1 + 3) / 4), room = TEXT_BLOCK / 4;
  if (!t->n || t->used + units > room) {
    if (t->n == t->cap) {
      uint32_t cap = t->cap ? 2 * t->cap : 8;
      t->block = sel_grow(g->cx, t->block, t->cap, cap, sizeof *t->block);
      t->cap = cap;
    }
    t->block[t->n] = sel_grow(g->cx, NULL, 0, TEXT_BLOCK, 1);
    t->n++;
    t->used = t->n == 1; /* reference 0 means none */
  }
  char *at = t->block[t->n - 1] + (size_t)t->used * 4;
  memset(at + (size_t)units * 4 - 4, 0, 4); /* texts are compared by units */
  memcpy(at, s, n);
  uint32_t ref = (t->n - 1) * room + t->used;
  t->used += units;
  return ref;
}

const char *sel_text(const tarn_sel_graph *g, uint32_t ref) {
  uint32_t room = TEXT_BLOCK / 4;
  return g->texts.block[ref / room] + (size_t)(ref % room) * 4;
}

static void stale(tarn_sel_graph *g) {
  sel_drop(g->cx, g->class_first, g->n_classes + 1, sizeof(uint32_t));
  sel_drop(g->cx, g->class_node, g->n_nodes ? g->n_nodes : 1, sizeof(uint32_t));
  g->class_first = g->class_node = NULL;
}

void tarn_sel_graph_free(tarn_sel_graph *g) {
  if (!g) return;
  tarn_ctx *cx = g->cx;
  stale(g);
  sel_drop(cx, g->node_class, g->cap_nodes, sizeof(uint32_t));
  sel_drop(cx, g->kid_first, g->cap_first, sizeof(uint32_t));
  sel_drop(cx, g->cost, g->cap_cost, sizeof(double));
  sel_drop(cx, g->kid, g->cap_kids, sizeof(uint32_t));
  sel_drop(cx, g->root, g->cap_roots, sizeof(uint32_t));
  sel_drop(cx, g->class_name, g->cap_class_names, sizeof(uint32_t));
  sel_drop(cx, g->node_name, g->cap_node_names, sizeof(uint32_t));
  sel_drop(cx, g->node_op, g->cap_node_ops, sizeof(uint32_t));
  sel_drop(cx, g->origin, g->n_origin + 1, sizeof(uint32_t));
  sel_drop(cx, g->value, g->cap_values, sizeof(double));
  for (uint32_t i = 0; i < g->texts.n; i++) sel_drop(cx, g->texts.block[i], TEXT_BLOCK, 1);
  sel_drop(cx, g->texts.block, g->texts.cap, sizeof(char *));
  if (g->file) sel_drop(cx, g->file, strlen(g->file) + 1, 1);
  sel_drop(cx, g, 1, sizeof *g);
}

tarn_status tarn_sel_graph_new(tarn_ctx *cx, tarn_sel_graph **out) {
  const tarn_allocator *a = tarn_ctx_allocator(cx);
  tarn_sel_graph *g = a->realloc(a->user, NULL, 0, sizeof *g);
  if (!g) {
    tarn_set_message(cx, "selection: out of memory");
    return TARN_MEMORY;
  }
  memset(g, 0, sizeof *g);
  g->cx = cx;
  *out = g;
  return TARN_OK;
}

/* ---- additions, each a protected body over its arguments ---- */
typedef struct add_args {
  tarn_sel_graph *g;
  uint32_t at, n, id;
  double cost;
  const uint32_t *kids;
  const char *text;
  size_t text_n;
} add_args;

static void need_class(add_args *a, uint32_t cls, const char *what) {
  if (cls >= a->g->n_classes)
    tarn_raise(a->g->cx, TARN_USAGE,
               "selection: %s %" PRIu32 ": there are only %" PRIu32 " classes", what, cls,
               a->g->n_classes);
}

static void need_cost(tarn_ctx *cx, uint32_t node, double cost) {
  if (!(cost > -INFINITY))
    tarn_raise(cx, TARN_BAD_INPUT, "selection: node %" PRIu32 ": a cost must be a number", node);
}

static void add_classes(tarn_ctx *cx, void *arg) {
  add_args *a = arg;
  if (a->n >= UINT32_MAX - a->g->n_classes)
    tarn_raise(cx, TARN_MEMORY, "selection: more than 2^32 classes");
  stale(a->g);
  a->id = a->g->n_classes;
  a->g->n_classes += a->n;
}

tarn_status tarn_sel_add_classes(tarn_sel_graph *g, uint32_t n, uint32_t *first) {
  add_args a = {.g = g, .n = n};
  tarn_status st = tarn_protect(g->cx, add_classes, &a);
  if (!st && first) *first = a.id;
  return st;
}

/* Each array has a size of its own, so that a failure between two leaves both known. */
static void room_for_node(tarn_ctx *cx, tarn_sel_graph *g) {
  uint32_t cap = more(cx, g->n_nodes, 0), old = g->cap_nodes;
  if (g->n_nodes < old) return;
  if (g->cap_cost < cap)
    g->cost = sel_grow(cx, g->cost, g->cap_cost, cap, sizeof *g->cost), g->cap_cost = cap;
  if (g->cap_first < cap + 1) {
    g->kid_first = sel_grow(cx, g->kid_first, g->cap_first, (size_t)cap + 1, sizeof *g->kid_first);
    g->cap_first = cap + 1;
    if (!old) g->kid_first[0] = 0;
  }
  g->node_class = sel_grow(cx, g->node_class, old, cap, sizeof *g->node_class);
  g->cap_nodes = cap;
}

static void add_node(tarn_ctx *cx, void *arg) {
  add_args *a = arg;
  tarn_sel_graph *g = a->g;
  need_class(a, a->at, "class");
  need_cost(cx, g->n_nodes, a->cost);
  for (uint32_t i = 0; i < a->n; i++) need_class(a, a->kids[i], "child");
  stale(g);
  room_for_node(cx, g);
  if (a->n > g->cap_kids - g->n_kids) {
    uint32_t cap = more(cx, g->cap_kids, (uint64_t)g->n_kids + a->n);
    g->kid = sel_grow(cx, g->kid, g->cap_kids, cap, sizeof *g->kid);
    g->cap_kids = cap;
  }
  if (a->n) memcpy(g->kid + g->n_kids, a->kids, a->n * sizeof *a->kids);
  g->n_kids += a->n;
  a->id = g->n_nodes++;
  g->node_class[a->id] = a->at;
  g->cost[a->id] = a->cost;
  g->kid_first[a->id + 1] = g->n_kids;
}

tarn_status tarn_sel_add_node(tarn_sel_graph *g, uint32_t cls, double cost, const uint32_t *kids,
                              uint32_t n_kids, uint32_t *node) {
  add_args a = {.g = g, .at = cls, .cost = cost, .kids = kids, .n = n_kids};
  tarn_status st = tarn_protect(g->cx, add_node, &a);
  if (!st && node) *node = a.id;
  return st;
}

static void add_root(tarn_ctx *cx, void *arg) {
  add_args *a = arg;
  tarn_sel_graph *g = a->g;
  need_class(a, a->at, "root");
  if (g->n_roots == g->cap_roots) {
    uint32_t cap = more(cx, g->cap_roots, 0);
    g->root = sel_grow(cx, g->root, g->cap_roots, cap, sizeof *g->root);
    g->cap_roots = cap;
  }
  g->root[g->n_roots++] = a->at;
}

tarn_status tarn_sel_add_root(tarn_sel_graph *g, uint32_t cls) {
  add_args a = {.g = g, .at = cls};
  return tarn_protect(g->cx, add_root, &a);
}

static void put_name(tarn_ctx *cx, add_args *a, uint32_t **names, uint32_t *cap, uint32_t count) {
  if (a->at >= count)
    tarn_raise(cx, TARN_USAGE, "selection: a name for %" PRIu32 ", of %" PRIu32, a->at, count);
  if (a->at >= *cap) {
    uint32_t want = more(cx, *cap, (uint64_t)a->at + 1);
    *names = sel_grow(cx, *names, *cap, want, sizeof **names);
    memset(*names + *cap, 0, (want - *cap) * sizeof **names);
    *cap = want;
  }
  (*names)[a->at] = sel_text_add(a->g, a->text, a->text_n);
}

static void name_class(tarn_ctx *cx, void *arg) {
  add_args *a = arg;
  put_name(cx, a, &a->g->class_name, &a->g->cap_class_names, a->g->n_classes);
}

static void name_node(tarn_ctx *cx, void *arg) {
  add_args *a = arg;
  put_name(cx, a, &a->g->node_name, &a->g->cap_node_names, a->g->n_nodes);
}

static void name_op(tarn_ctx *cx, void *arg) {
  add_args *a = arg;
  put_name(cx, a, &a->g->node_op, &a->g->cap_node_ops, a->g->n_nodes);
}

tarn_status tarn_sel_name_class(tarn_sel_graph *g, uint32_t cls, const char *name, size_t n) {
  add_args a = {.g = g, .at = cls, .text = name, .text_n = n};
  return tarn_protect(g->cx, name_class, &a);
}

tarn_status tarn_sel_name_node(tarn_sel_graph *g, uint32_t node, const char *name, size_t n) {
  add_args a = {.g = g, .at = node, .text = name, .text_n = n};
  return tarn_protect(g->cx, name_node, &a);
}

tarn_status tarn_sel_name_op(tarn_sel_graph *g, uint32_t node, const char *op, size_t n) {
  add_args a = {.g = g, .at = node, .text = op, .text_n = n};
  return tarn_protect(g->cx, name_op, &a);
}

/* ---- reading ---- */
static void sort_by_class(tarn_sel_graph *g) {
  g->class_first = sel_grow(g->cx, NULL, 0, (size_t)g->n_classes + 1, sizeof(uint32_t));
  const tarn_allocator *a = tarn_ctx_allocator(g->cx);
  g->class_node = a->realloc(a->user, NULL, 0, (g->n_nodes ? g->n_nodes : 1) * sizeof(uint32_t));
  if (!g->class_node) {
    sel_drop(g->cx, g->class_first, g->n_classes + 1, sizeof(uint32_t));
    g->class_first = NULL;
    tarn_raise(g->cx, TARN_MEMORY, "selection: out of memory");
  }
  uint32_t *first = g->class_first;
  memset(first, 0, ((size_t)g->n_classes + 1) * sizeof *first);
  for (uint32_t v = 0; v < g->n_nodes; v++) first[g->node_class[v] + 1]++;
  for (uint32_t c = 0; c < g->n_classes; c++) first[c + 1] += first[c];
  for (uint32_t v = 0; v < g->n_nodes; v++) g->class_node[first[g->node_class[v]]++] = v;
  for (uint32_t c = g->n_classes; c > 0; c--) first[c] = first[c - 1];
  first[0] = 0;
}

void sel_graph_view(tarn_sel_graph *g, tarn_sel_view *v) {
  static const uint32_t zero = 0, no_kid = 0;
  if (!g->class_first) sort_by_class(g);
  *v = (tarn_sel_view){TARN_SEL_ABI,
                       g->n_classes,
                       g->n_nodes,
                       g->n_roots,
                       g->class_first,
                       g->class_node,
                       g->node_class,
                       g->cost,
                       g->n_nodes ? g->kid_first : &zero,
                       g->kid ? g->kid : &no_kid,
                       g->root};
}

typedef struct view_args {
  tarn_sel_graph *g;
  tarn_sel_view v;
} view_args;
static void view_body(tarn_ctx *cx, void *arg) {
  (void)cx;
  view_args *a = arg;
  sel_graph_view(a->g, &a->v);
}

tarn_status tarn_sel_graph_view(tarn_sel_graph *g, tarn_sel_view *out) {
  view_args a = {.g = g};
  tarn_status st = tarn_protect(g->cx, view_body, &a);
  if (!st) *out = a.v;
  return st;
}

static const char *name_of(const tarn_sel_graph *g, const uint32_t *names, uint32_t cap,
                           uint32_t id, char *buf, size_t n) {
  if (id < cap && names[id]) snprintf(buf, n, "%s", sel_text(g, names[id]));
  else snprintf(buf, n, "%" PRIu32, id);
  return buf;
}

const char *tarn_sel_class_name(const tarn_sel_graph *g, uint32_t cls, char *buf, size_t n) {
  return name_of(g, g->class_name, g->cap_class_names, cls, buf, n);
}

const char *tarn_sel_node_name(const tarn_sel_graph *g, uint32_t node, char *buf, size_t n) {
  return name_of(g, g->node_name, g->cap_node_names, node, buf, n);
}
const char *tarn_sel_node_op(const tarn_sel_graph *g, uint32_t node, char *buf, size_t n) {
  if (node >= g->cap_node_ops || !g->node_op[node]) return tarn_sel_node_name(g, node, buf, n);
  return name_of(g, g->node_op, g->cap_node_ops, node, buf, n);
}
double tarn_sel_node_value(const tarn_sel_graph *g, uint32_t node, uint32_t key) {
  return g->value[(size_t)node * g->n_values + key];
}
tarn_status tarn_sel_set_cost(tarn_sel_graph *g, uint32_t node, double cost) {
  if (node >= g->n_nodes || !(cost > -INFINITY)) {
    tarn_set_message(g->cx, "selection: node %u: a cost of %g", node, cost);
    return TARN_USAGE;
  }
  g->cost[node] = cost;
  return TARN_OK;
}
