/* An e-graph of another program: egraph-serialize JSON as e-nodes, and what is in one class as
 * given equations. */
#include "cli/explore_lab.h"
#include "extract/select.h"
#include "lab/lab.h"
#include <string.h>

struct lab_file {
  const char *name;
  tarn_sel_view v;
  uint32_t *op;   /* by node */
  bool *subsumed; /* by node */
  uint32_t *user; /* by kid: the node */
};

bool lab_is_graph(const char *text) { return text[strspn(text, " \t\r\n")] == '{'; }

/* What is looked at when the graph is gone. */
static void keep_view(tarn_ctx *cx, tarn_sel_view *v) {
  v->node_class = tarn_copy(cx, v->node_class, v->n_nodes * sizeof *v->node_class);
  v->kid_first = tarn_copy(cx, v->kid_first, (v->n_nodes + 1) * sizeof *v->kid_first);
  v->kid = tarn_copy(cx, v->kid, v->kid_first[v->n_nodes] * sizeof *v->kid);
  v->root = tarn_copy(cx, v->root, v->n_roots * sizeof *v->root);
}
static void free_graph(void *g) { tarn_sel_graph_free(g); }
enum { LONGEST = 65536 }; /* of an operator */
lab_file *lab_read_graph(lab *l, const char *name, const char *text, size_t n) {
  lab_file *f = TARN_NEW(l->cx, lab_file);
  char *op = TARN_ARRAY(l->cx, char, LONGEST);
  tarn_sel_read_options o = {
      .ops = true, .no_roots = true, .values = (const char *const[]){"subsumed"}, .n_values = 1};
  tarn_sel_graph *g;
  *f = (lab_file){.name = name};
  tarn_status st = tarn_sel_parse_json(l->cx, text, n, name, &o, &g);
  if (st) tarn_reraise(l->cx, st);
  tarn_defer(l->cx, free_graph, g);
  st = tarn_sel_graph_view(g, &f->v);
  if (st) tarn_reraise(l->cx, st);
  keep_view(l->cx, &f->v);
  f->op = TARN_ARRAY(l->cx, uint32_t, f->v.n_nodes);
  f->subsumed = TARN_ARRAY(l->cx, bool, f->v.n_nodes);
  f->user = TARN_ARRAY(l->cx, uint32_t, lab_file_kids(f) + 1);
  for (uint32_t i = 0; i < f->v.n_nodes; i++) {
    tarn_sel_node_op(g, i, op, LONGEST);
    f->op[i] = tarn_free_symbol(l->rs, op, strlen(op));
    f->subsumed[i] = tarn_sel_node_value(g, i, 0) > 0;
    for (uint32_t k = f->v.kid_first[i]; k < f->v.kid_first[i + 1]; k++) f->user[k] = i;
  }
  return f;
}

uint32_t lab_file_nodes(const lab_file *f) { return f->v.n_nodes; }
uint32_t lab_file_classes(const lab_file *f) { return f->v.n_classes; }
uint32_t lab_file_kids(const lab_file *f) { return f->v.kid_first[f->v.n_nodes]; }
lab_node lab_file_node(const lab_file *f, uint32_t i) {
  uint32_t first = f->v.kid_first[i];
  return (lab_node){f->op[i], f->v.node_class[i], first, f->v.kid_first[i + 1] - first};
}
uint32_t lab_file_kid_class(const lab_file *f, uint32_t kid) { return f->v.kid[kid]; }
lab_node lab_file_user(const lab_file *f, uint32_t kid) { return lab_file_node(f, f->user[kid]); }
bool lab_file_is_root(const lab_file *f, uint32_t cls) {
  for (uint32_t i = 0; i < f->v.n_roots; i++)
    if (f->v.root[i] == cls) return true;
  return false;
}

/* ---- into a graph: a node is added when each of its kids' classes has one ---- */
typedef struct putting {
  lab *l;
  const lab_file *f;
  tarn_egraph *g;
  uint32_t *have;         /* per class: an id of the graph, or NONE */
  uint32_t *missing;      /* per node: kids whose classes have none yet */
  uint32_t *waits, *next; /* per class the first kid that waits for it; per kid the next one */
  TARN_VEC(uint32_t) ready;
} putting;

static uint32_t *filled(tarn_ctx *cx, size_t n, int byte) {
  uint32_t *p = TARN_ARRAY(cx, uint32_t, n + 1);
  memset(p, byte, (n + 1) * sizeof *p);
  return p;
}

static void queue(putting *p) {
  for (uint32_t i = 0; i < lab_file_nodes(p->f); i++) {
    lab_node v = lab_file_node(p->f, i);
    p->missing[i] = v.n;
    for (uint32_t k = v.first; k < v.first + v.n; k++) {
      uint32_t c = lab_file_kid_class(p->f, k);
      p->next[k] = p->waits[c], p->waits[c] = k;
    }
    if (!v.n) tarn_push(p->l->cx, &p->ready, i);
  }
}
static void put_node(putting *p, uint32_t node) {
  const lab_file *f = p->f;
  lab_node v = lab_file_node(f, node);
  uint32_t *kids = TARN_ARRAY(p->l->cx, uint32_t, v.n + 1);
  for (uint32_t k = 0; k < v.n; k++) kids[k] = p->have[lab_file_kid_class(f, v.first + k)];
  uint32_t id = tarn_eg_add(p->g, v.op, 0, kids, v.n);
  bool first = p->have[v.cls] == TARN_NONE;
  if (id == TARN_NONE ||
      (!first && tarn_eg_union(p->g, id, p->have[v.cls], TARN_EG_RULE_GIVEN, 0) < 0))
    tarn_raise(p->l->cx, tarn_eg_status(p->g), "%s: %s", f->name, tarn_eg_message(p->g));
  if (f->subsumed[node]) tarn_eg_subsume(p->g, id);
  if (!first) return;
  p->have[v.cls] = id;
  for (uint32_t k = p->waits[v.cls]; k != TARN_NONE; k = p->next[k])
    if (!--p->missing[f->user[k]]) tarn_push(p->l->cx, &p->ready, f->user[k]);
}
const uint32_t *lab_put_graph(lab *l, tarn_egraph *g, const lab_file *f, uint32_t *n_roots) {
  tarn_ctx *cx = l->cx;
  putting p = {.l = l,
               .f = f,
               .g = g,
               .have = filled(cx, f->v.n_classes, 0xFF),
               .missing = filled(cx, f->v.n_nodes, 0),
               .waits = filled(cx, f->v.n_classes, 0xFF),
               .next = filled(cx, lab_file_kids(f), 0xFF)};
  queue(&p);
  for (uint32_t i = 0; i < p.ready.n; i++) put_node(&p, p.ready.p[i]);
  uint32_t *root = filled(cx, f->v.n_roots, 0);
  for (uint32_t i = 0; i < f->v.n_roots; i++)
    if ((root[i] = p.have[f->v.root[i]]) == TARN_NONE)
      tarn_raise(cx, TARN_BAD_INPUT, "%s: a root without a term", f->name);
  if (p.ready.n < f->v.n_nodes)
    tarn_warn(cx, "%s: %u e-nodes of no finite term are left out", f->name,
              f->v.n_nodes - p.ready.n);
  *n_roots = f->v.n_roots;
  return root;
}
