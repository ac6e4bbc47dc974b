/* Costs that depend on the parent: a graph in which every node has one cost.
 *
 * What an operator costs below another parent makes two things of a node: [v], which costs what it
 * costs by itself, and (v, P), which costs what it does below an operator P. A class whose nodes
 * have such costs is there once for each of these parents, with the nodes (v, P), and links to [v]
 * for the nodes that P does not concern; and once for all other parents, with links alone. So a
 * node that costs the same below two parents is still shared by them, and counts once. Links cost
 * nothing, come after all nodes, and are left out of what is printed. */
#include "extract/select/internal.h"
#include <inttypes.h>
#include <string.h>

typedef struct splitting {
  tarn_ctx *cx;
  tarn_sel_graph *g, *to;
  const tarn_sel_parent_cost *cost;
  uint32_t n_costs, n_parents;
  const char **parent; /* each once */
  tarn_sel_view v;
  uint32_t *own;         /* by node: the class [v], or NONE */
  uint32_t *at;          /* by class and parent: that class, or NONE */
  uint32_t *above;       /* by node: which parent it is, or NONE */
  sel_u32s kids, origin; /* origin: by node of `to` */
  sel_pool mem;
} splitting;

static void must(splitting *s, tarn_status st) {
  if (st) tarn_reraise(s->cx, st);
}

static const char *op_of(const splitting *s, uint32_t v) {
  bool named = v < s->g->cap_node_ops && s->g->node_op[v];
  return named ? sel_text(s->g, s->g->node_op[v]) : "";
}

/* The cost of node v below parent p; the last one given counts. NULL: its own. */
static const double *cost_below(const splitting *s, uint32_t v, uint32_t p) {
  const char *op = op_of(s, v);
  for (uint32_t i = s->n_costs; i-- > 0;)
    if (!strcmp(s->cost[i].op, op) && !strcmp(s->cost[i].parent, s->parent[p]))
      return &s->cost[i].cost;
  return NULL;
}

static void find_parents(splitting *s) {
  s->parent = SEL_NEW(&s->mem, const char *, s->n_costs + 1);
  for (uint32_t i = 0; i < s->n_costs; i++) {
    uint32_t k = 0;
    while (k < s->n_parents && strcmp(s->parent[k], s->cost[i].parent)) k++;
    if (k == s->n_parents) s->parent[s->n_parents++] = s->cost[i].parent;
  }
  s->above = SEL_NEW(&s->mem, uint32_t, s->v.n_nodes);
  for (uint32_t v = 0; v < s->v.n_nodes; v++) {
    s->above[v] = NONE;
    for (uint32_t p = 0; p < s->n_parents; p++)
      if (!strcmp(s->parent[p], op_of(s, v))) s->above[v] = p;
  }
}

static uint32_t new_class(splitting *s, uint32_t of, const char *sep, const char *what) {
  char name[1024];
  uint32_t id;
  tarn_sel_class_name(s->g, of, name, sizeof name);
  const char *text = tarn_format(s->cx, "%s%s%s", name, sep, what);
  must(s, tarn_sel_add_classes(s->to, 1, &id));
  must(s, tarn_sel_name_class(s->to, id, text, strlen(text)));
  return id;
}

/* The classes of c below parents, and those of its nodes alone. */
static void split_class(splitting *s, uint32_t c) {
  char name[1024];
  bool any = false;
  uint32_t from = s->v.class_first[c], end = s->v.class_first[c + 1];
  for (uint32_t p = 0; p < s->n_parents; p++) {
    uint32_t *at = &s->at[(size_t)c * s->n_parents + p];
    *at = NONE;
    for (uint32_t i = from; i < end && *at == NONE; i++)
      if (cost_below(s, s->v.class_node[i], p)) *at = new_class(s, c, "@", s->parent[p]);
    any |= *at != NONE;
  }
  for (uint32_t i = from; any && i < end; i++) {
    uint32_t v = s->v.class_node[i];
    s->own[v] = new_class(s, c, "/", tarn_sel_node_name(s->g, v, name, sizeof name));
  }
}

static void make_classes(splitting *s) {
  char name[1024];
  must(s, tarn_sel_add_classes(s->to, s->v.n_classes, NULL));
  s->own = SEL_NEW(&s->mem, uint32_t, s->v.n_nodes);
  s->at = SEL_NEW(&s->mem, uint32_t, (size_t)s->v.n_classes * s->n_parents + 1);
  memset(s->own, 0xff, s->v.n_nodes * sizeof *s->own);
  for (uint32_t c = 0; c < s->v.n_classes; c++) {
    tarn_sel_class_name(s->g, c, name, sizeof name);
    must(s, tarn_sel_name_class(s->to, c, name, strlen(name)));
    split_class(s, c);
  }
}

/* The children of node v, as its operator sees them. */
static void find_kids(splitting *s, uint32_t v) {
  uint32_t p = s->above[v];
  s->kids.n = 0;
  for (uint32_t i = s->v.kid_first[v]; i < s->v.kid_first[v + 1]; i++) {
    uint32_t c = s->v.kid[i], below = p == NONE ? NONE : s->at[(size_t)c * s->n_parents + p];
    SEL_PUSH(&s->mem, &s->kids, below == NONE ? c : below);
  }
}

static void put_node(splitting *s, uint32_t v, uint32_t cls, double cost, const char *below) {
  char name[1024];
  uint32_t id;
  if (!(s->v.cost[v] < INFINITY)) cost = INFINITY; /* it is never chosen */
  tarn_sel_node_name(s->g, v, name, sizeof name);
  const char *text = below ? tarn_format(s->cx, "%s@%s", name, below) : name;
  must(s, tarn_sel_add_node(s->to, cls, cost, s->kids.p, s->kids.n, &id));
  must(s, tarn_sel_name_node(s->to, id, text, strlen(text)));
  const char *op = op_of(s, v);
  if (*op) must(s, tarn_sel_name_op(s->to, id, op, strlen(op)));
  SEL_PUSH(&s->mem, &s->origin, v);
}

static void put_nodes(splitting *s) {
  for (uint32_t v = 0; v < s->v.n_nodes; v++) {
    uint32_t c = s->v.node_class[v];
    find_kids(s, v);
    put_node(s, v, s->own[v] == NONE ? c : s->own[v], s->v.cost[v], NULL);
    for (uint32_t p = 0; p < s->n_parents; p++) {
      const double *cost = cost_below(s, v, p);
      if (cost) put_node(s, v, s->at[(size_t)c * s->n_parents + p], *cost, s->parent[p]);
    }
  }
}

static void put_links(splitting *s) {
  s->to->links = s->to->n_nodes;
  for (uint32_t v = 0; v < s->v.n_nodes; v++) {
    uint32_t c = s->v.node_class[v];
    if (s->own[v] == NONE) continue;
    must(s, tarn_sel_add_node(s->to, c, 0, &s->own[v], 1, NULL));
    for (uint32_t p = 0; p < s->n_parents; p++) {
      uint32_t at = s->at[(size_t)c * s->n_parents + p];
      if (at != NONE && !cost_below(s, v, p))
        must(s, tarn_sel_add_node(s->to, at, 0, &s->own[v], 1, NULL));
    }
  }
}

static void split(tarn_ctx *cx, void *arg) {
  splitting *s = arg;
  sel_pool_open(&s->mem, cx);
  sel_graph_view(s->g, &s->v);
  for (uint32_t i = 0; i < s->n_costs; i++)
    if (!(s->cost[i].cost > -INFINITY))
      tarn_raise(cx, TARN_USAGE, "selection: the cost of %s below %s is no number", s->cost[i].op,
                 s->cost[i].parent);
  find_parents(s);
  make_classes(s);
  put_nodes(s);
  s->to->origin = sel_grow(cx, NULL, 0, s->origin.n + 1, sizeof *s->to->origin);
  s->to->n_origin = s->origin.n;
  memcpy(s->to->origin, s->origin.p, s->origin.n * sizeof *s->to->origin);
  put_links(s);
  for (uint32_t i = 0; i < s->v.n_roots; i++) must(s, tarn_sel_add_root(s->to, s->v.root[i]));
}

tarn_status tarn_sel_by_parent(tarn_sel_graph *g, const tarn_sel_parent_cost *cost, uint32_t n,
                               tarn_sel_graph **out) {
  splitting s = {.cx = g->cx, .g = g, .cost = cost, .n_costs = n};
  tarn_status st = tarn_sel_graph_new(g->cx, &s.to);
  if (st) return st;
  st = tarn_protect(g->cx, split, &s);
  if (st) tarn_sel_graph_free(s.to);
  else *out = s.to;
  return st;
}

bool tarn_sel_is_link(const tarn_sel_graph *g, uint32_t node) {
  return g->links && node >= g->links && node < g->n_nodes;
}
uint32_t tarn_sel_past_links(const tarn_sel_graph *g, const uint32_t *choice, uint32_t cls) {
  while (choice[cls] != NONE && tarn_sel_is_link(g, choice[cls]))
    cls = g->kid[g->kid_first[choice[cls]]];
  return cls;
}
uint32_t tarn_sel_origin(const tarn_sel_graph *g, uint32_t node) {
  return node < g->n_origin ? g->origin[node] : node;
}
