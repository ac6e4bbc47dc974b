/* An e-graph of another program: egraph-serialize JSON as e-nodes, and what is in one class as
 * given equations. */
#include "lab/lab.h"
#include "cli/explore_lab.h"
#include <string.h>
#include <yajl/yajl_parse.h>

typedef struct node_row {
  uint32_t op, cls, first, n; /* kids from first on; cls NONE: only mentioned */
  bool subsumed;
} node_row;
struct lab_file {
  const char *name;
  TARN_VEC(node_row) node;             /* by id */
  TARN_VEC(uint32_t) kid, root, order; /* ids; classes; ids as they stand in the file */
  TARN_VEC(uint32_t) user;             /* by kid: the node */
  uint32_t n_classes;
};

/* ---- reading: events of the parser, by depth and the last keys ---- */
typedef enum { ELSEWHERE, NODES, ROOTS, DATA } section;
typedef enum { OTHER, OP, CHILDREN, CLASS, SUBSUMED } field;
typedef struct reading {
  lab *l;
  lab_file *f;
  tarn_intern *id, *cls;
  unsigned depth;
  section in;
  field at;
  uint32_t now;           /* the node; in DATA: the class */
  TARN_VEC(uint32_t) let; /* classes that a program has bound to a name */
} reading;

TARN_NORETURN static void wrong(const reading *r, const char *why, const char *what, size_t n) {
  tarn_raise(r->l->cx, TARN_BAD_INPUT, "%s: %s %.*s", r->f->name, why, (int)n, what);
}
static uint32_t id_of(reading *r, const char *s, size_t n) {
  static const node_row none = {TARN_NONE, TARN_NONE, 0, 0, false};
  uint32_t id = tarn_intern_add(r->id, s, n);
  while (r->f->node.n <= id) tarn_push(r->l->cx, &r->f->node, none);
  return id;
}
static bool is(const char *word, const char *s, size_t n) {
  return strlen(word) == n && !memcmp(word, s, n);
}

static int on_key(void *user, const unsigned char *text, size_t n) {
  reading *r = user;
  const char *s = (const char *)text;
  if (r->depth == 1)
    r->in = is("nodes", s, n)           ? NODES
            : is("root_eclasses", s, n) ? ROOTS
            : is("class_data", s, n)    ? DATA
                                        : ELSEWHERE;
  if (r->in == DATA && r->depth == 2) r->now = tarn_intern_add(r->cls, s, n);
  if (r->in == DATA && r->depth == 3 && is("let", s, n)) tarn_push(r->l->cx, &r->let, r->now);
  if (r->in == NODES && r->depth == 2) {
    r->now = id_of(r, s, n);
    tarn_push(r->l->cx, &r->f->order, r->now);
    if (r->f->node.p[r->now].first) wrong(r, "a node given twice:", s, n);
    r->f->node.p[r->now].first = r->f->kid.n;
  }
  if (r->in == NODES && r->depth == 3)
    r->at = is("op", s, n)         ? OP
            : is("children", s, n) ? CHILDREN
            : is("eclass", s, n)   ? CLASS
            : is("subsumed", s, n) ? SUBSUMED
                                   : OTHER;
  return 1;
}
static int on_string(void *user, const unsigned char *text, size_t n) {
  reading *r = user;
  const char *s = (const char *)text;
  if (r->in == ROOTS && r->depth == 2)
    tarn_push(r->l->cx, &r->f->root, tarn_intern_add(r->cls, s, n));
  if (r->in != NODES || r->depth < 3) return 1;
  if (r->at == CHILDREN && r->depth == 4) {
    uint32_t kid = id_of(r, s, n);
    tarn_push(r->l->cx, &r->f->kid, kid);
    tarn_push(r->l->cx, &r->f->user, r->now);
    r->f->node.p[r->now].n++;
  }
  if (r->depth != 3) return 1;
  if (r->at == OP) r->f->node.p[r->now].op = tarn_free_symbol(r->l->rs, s, n);
  if (r->at == CLASS) r->f->node.p[r->now].cls = tarn_intern_add(r->cls, s, n);
  return 1;
}
static int on_bool(void *user, int is_true) {
  reading *r = user;
  if (r->in == NODES && r->depth == 3 && r->at == SUBSUMED) r->f->node.p[r->now].subsumed = is_true;
  return 1;
}
static int on_open(void *user) { return ((reading *)user)->depth++, 1; }
static int on_close(void *user) { return ((reading *)user)->depth--, 1; }

static void free_parser(void *p) { yajl_free(p); }
static void parse(reading *r, const char *text, size_t n) {
  static const yajl_callbacks on = {.yajl_string = on_string,
                                    .yajl_boolean = on_bool,
                                    .yajl_start_map = on_open,
                                    .yajl_map_key = on_key,
                                    .yajl_end_map = on_close,
                                    .yajl_start_array = on_open,
                                    .yajl_end_array = on_close};
  yajl_handle h = yajl_alloc(&on, NULL, r);
  if (!h) tarn_raise(r->l->cx, TARN_MEMORY, "out of memory");
  tarn_defer(r->l->cx, free_parser, h);
  if (yajl_parse(h, (const unsigned char *)text, n) == yajl_status_ok &&
      yajl_complete_parse(h) == yajl_status_ok)
    return;
  size_t at = yajl_get_bytes_consumed(h);
  uint32_t line = 1;
  for (size_t i = 0; i < at && i < n; i++) line += text[i] == '\n';
  tarn_raise(r->l->cx, TARN_BAD_INPUT, "%s:%u: this is no JSON", r->f->name, line);
}
bool lab_is_graph(const char *text) { return text[strspn(text, " \t\r\n")] == '{'; }

lab_file *lab_read_graph(lab *l, const char *name, const char *text, size_t n) {
  lab_file *f = TARN_NEW(l->cx, lab_file);
  *f = (lab_file){.name = name};
  reading r = {.l = l, .f = f, .id = tarn_intern_new(l->cx), .cls = tarn_intern_new(l->cx)};
  tarn_push(l->cx, &f->kid, TARN_NONE); /* so that no node's first is 0 */
  tarn_push(l->cx, &f->user, TARN_NONE);
  parse(&r, text, n);
  for (uint32_t i = 0; !f->root.n && i < r.let.n; i++) tarn_push(l->cx, &f->root, r.let.p[i]);
  f->n_classes = tarn_intern_count(r.cls);
  for (uint32_t i = 0; i < f->node.n; i++) {
    const node_row *v = &f->node.p[i];
    const char *id = tarn_intern_key(r.id, i, &n);
    if (!v->first) wrong(&r, "there is no node", id, n);
    if (v->op == TARN_NONE || v->cls == TARN_NONE) wrong(&r, "no op, or no eclass, in node", id, n);
  }
  if (!f->node.n) wrong(&r, "no nodes", "", 0);
  return f;
}

uint32_t lab_file_nodes(const lab_file *f) { return f->node.n; }
uint32_t lab_file_classes(const lab_file *f) { return f->n_classes; }
uint32_t lab_file_kids(const lab_file *f) { return f->kid.n; }
lab_node lab_file_node(const lab_file *f, uint32_t i) {
  const node_row *v = &f->node.p[i];
  return (lab_node){v->op, v->cls, v->first, v->n};
}
uint32_t lab_file_kid_class(const lab_file *f, uint32_t kid) {
  return f->node.p[f->kid.p[kid]].cls;
}
lab_node lab_file_user(const lab_file *f, uint32_t kid) { return lab_file_node(f, f->user.p[kid]); }
bool lab_file_is_root(const lab_file *f, uint32_t cls) {
  for (uint32_t i = 0; i < f->root.n; i++)
    if (f->root.p[i] == cls) return true;
  return false;
}

/* ---- into a graph: a node is added when each of its kids' classes has one ---- */
typedef struct putting {
  lab *l;
  const lab_file *f;
  tarn_egraph *g;
  uint32_t *have;    /* per class: an id of the graph, or NONE */
  uint32_t *missing; /* per node: kids whose classes have none yet */
  uint32_t *waits, *next,
      *who; /* per class the first kid that waits for it; per kid the next one, its node */
  TARN_VEC(uint32_t) ready;
} putting;

static uint32_t *filled(tarn_ctx *cx, size_t n, int byte) {
  uint32_t *p = TARN_ARRAY(cx, uint32_t, n + 1);
  memset(p, byte, (n + 1) * sizeof *p);
  return p;
}
static uint32_t class_of(const lab_file *f, uint32_t kid) { return f->node.p[f->kid.p[kid]].cls; }

static void queue(putting *p) {
  const lab_file *f = p->f;
  for (uint32_t i = 0; i < f->order.n; i++) {
    uint32_t node = f->order.p[i];
    const node_row *v = &f->node.p[node];
    for (uint32_t k = v->first; k < v->first + v->n; k++) {
      uint32_t c = class_of(f, k);
      p->next[k] = p->waits[c], p->waits[c] = k, p->who[k] = node;
      p->missing[node]++;
    }
    if (!v->n) tarn_push(p->l->cx, &p->ready, node);
  }
}
static void put_node(putting *p, uint32_t node) {
  const lab_file *f = p->f;
  const node_row *v = &f->node.p[node];
  uint32_t *kids = TARN_ARRAY(p->l->cx, uint32_t, v->n + 1);
  for (uint32_t k = 0; k < v->n; k++) kids[k] = p->have[class_of(f, v->first + k)];
  uint32_t id = tarn_eg_add(p->g, v->op, 0, kids, v->n);
  bool first = p->have[v->cls] == TARN_NONE;
  if (id == TARN_NONE ||
      (!first && tarn_eg_union(p->g, id, p->have[v->cls], TARN_EG_RULE_GIVEN, 0) < 0))
    tarn_raise(p->l->cx, tarn_eg_status(p->g), "%s: %s", f->name, tarn_eg_message(p->g));
  if (v->subsumed) tarn_eg_subsume(p->g, id);
  if (!first) return;
  p->have[v->cls] = id;
  for (uint32_t k = p->waits[v->cls]; k != TARN_NONE; k = p->next[k])
    if (!--p->missing[p->who[k]]) tarn_push(p->l->cx, &p->ready, p->who[k]);
}
const uint32_t *lab_put_graph(lab *l, tarn_egraph *g, const lab_file *f, uint32_t *n_roots) {
  tarn_ctx *cx = l->cx;
  putting p = {.l = l,
               .f = f,
               .g = g,
               .have = filled(cx, f->n_classes, 0xFF),
               .missing = filled(cx, f->node.n, 0),
               .waits = filled(cx, f->n_classes, 0xFF),
               .next = filled(cx, f->kid.n, 0xFF),
               .who = filled(cx, f->kid.n, 0xFF)};
  queue(&p);
  for (uint32_t i = 0; i < p.ready.n; i++) put_node(&p, p.ready.p[i]);
  uint32_t *root = filled(cx, f->root.n, 0);
  for (uint32_t i = 0; i < f->root.n; i++)
    if ((root[i] = p.have[f->root.p[i]]) == TARN_NONE)
      tarn_raise(cx, TARN_BAD_INPUT, "%s: a root without a term", f->name);
  if (p.ready.n < f->node.n)
    tarn_warn(cx, "%s: %u e-nodes of no finite term are left out", f->name, f->node.n - p.ready.n);
  *n_roots = f->root.n;
  return root;
}
