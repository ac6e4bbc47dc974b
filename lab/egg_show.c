/* What egglog's commands print: least terms, sizes and rows of tables. */
#include "lab/egg.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRINT_NODES = 1000000 }; /* of a term, each as often as it is used */

static void say(tarn_egg *E, const tarn_buf *b) {
  if (E->o.say) E->o.say(E->o.user, b->p);
}

/* ---- names and costs ---- */
double tarn_egg_cost(const tarn_egg *E, uint32_t op) {
  if (op < OP_DECL) return 1;
  const egg_decl *d = op - OP_DECL < E->decl.n ? E->decl.p[op - OP_DECL] : NULL;
  return d && d->kind == EGG_CONSTRUCTOR && !d->hidden ? d->cost : INFINITY;
}
void tarn_egg_name(const tarn_egg *E, uint32_t op, uint32_t payload, char *buf, size_t n) {
  tarn_buf b = {.cx = E->cx};
  if (op == OP_PRIM) egg_print_value((tarn_egg *)(uintptr_t)E, &b, payload - 1);
  const char *name = op == OP_PRIM                    ? b.p
                     : op - OP_DECL < E->decl.n && op ? E->decl.p[op - OP_DECL]->name
                                                      : "()";
  snprintf(buf, n, "%s", name);
}
static double cost(void *user, const tarn_egraph *g, const tarn_eg_node *v, const double *kid) {
  double c = tarn_egg_cost(user, v->op);
  (void)g;
  for (uint32_t i = 0; i < v->n; i++) c += kid[i];
  return c;
}

/* ---- terms ---- */
typedef struct printing {
  tarn_egg *E;
  const tarn_eg_best *best;
  tarn_buf *b;
  uint32_t left;
} printing;
typedef struct piece { /* a node of which kid i is next */
  uint32_t node, i;
} piece;
/* Without recursion: terms can be deep. */
static void print_node(printing *p, uint32_t node) {
  tarn_egg *E = p->E;
  TARN_VEC(piece) open = {0};
  piece first = {node, 0};
  for (tarn_push(E->cx, &open, first); open.n;) {
    piece *top = &open.p[open.n - 1];
    tarn_eg_node v = tarn_eg_node_at(E->g, top->node);
    bool leaf = v.op == OP_PRIM;
    if (!top->i && !p->left--)
      tarn_raise(E->cx, TARN_NO_RESULT, "a term of more than %d nodes is not printed", PRINT_NODES);
    if (!top->i && leaf) egg_print_value(E, p->b, v.payload - 1);
    else if (!top->i) tarn_buf_fmt(p->b, "(%s", E->decl.p[v.op - OP_DECL]->name);
    if (top->i == v.n) {
      if (!leaf) tarn_buf_str(p->b, ")");
      open.n--;
      continue;
    }
    uint32_t cls = tarn_eg_find(E->g, v.kids[top->i++]);
    tarn_buf_str(p->b, " ");
    piece kid = {tarn_eg_best_node(p->best, cls), 0};
    tarn_push(E->cx, &open, kid);
  }
}
static void free_best(void *arg) { tarn_eg_best_free(arg); }
static tarn_eg_best *least(tarn_egg *E) {
  tarn_eg_best *best = tarn_eg_best_new(E->g, cost, E);
  if (!best) egg_graph_failed(E);
  tarn_defer(E->cx, free_best, best);
  return best;
}
static void done(tarn_egg *E, tarn_eg_best *best) {
  tarn_keep(E->cx, best);
  tarn_eg_best_free(best);
}
/* What a class is as text: a value, or its least term; false: it has none. */
static bool print_class(printing *p, uint32_t sort, uint32_t cls) {
  uint32_t c = tarn_eg_find(p->E->g, cls);
  p->left = PRINT_NODES;
  if (!egg_is_term(p->E, sort)) egg_print_value(p->E, p->b, egg_value_at(p->E, c));
  else if (!isfinite(tarn_eg_best_cost(p->best, c))) return false;
  else print_node(p, tarn_eg_best_node(p->best, c));
  return true;
}

/* ---- (extract TERM [N]) ---- */
typedef struct variant {
  double cost;
  uint32_t node;
} variant;
static int by_cost(const void *a, const void *b) {
  const variant *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}
static void print_variants(printing *p, uint32_t cls, int64_t most) {
  tarn_egg *E = p->E;
  TARN_VEC(variant) all = {0};
  TARN_EG_NODES(E->g, cls, n) {
    tarn_eg_node v = tarn_eg_node_at(E->g, n);
    variant row = {tarn_egg_cost(E, v.op), n};
    for (uint32_t i = 0; i < v.n; i++)
      row.cost += tarn_eg_best_cost(p->best, tarn_eg_find(E->g, v.kids[i]));
    if (isfinite(row.cost)) tarn_push(E->cx, &all, row);
  }
  if (all.n) qsort(all.p, all.n, sizeof *all.p, by_cost);
  tarn_buf_str(p->b, "(\n");
  for (uint32_t i = 0; i < all.n && i < most; i++) {
    tarn_buf_str(p->b, "   ");
    print_node(p, all.p[i].node);
    tarn_buf_str(p->b, "\n");
  }
  tarn_buf_str(p->b, ")\n");
}
void egg_extract(tarn_egg *E, const tarn_sx *s) {
  egg_vars none = {0};
  int changes = 0;
  tarn_buf b = {.cx = E->cx};
  if (s->n != 2 && s->n != 3) tarn_sx_error(E->cx, s, "expected (extract TERM [N])");
  int64_t n = s->n == 3 ? tarn_sx_whole(E->cx, s, 2, 0, INT64_MAX) : 0;
  const egg_expr *x = egg_read_typed(E, &none, s->kid[1], TARN_NONE);
  uint32_t cls = egg_class(E, x->sort, egg_eval(E, x, NULL, &changes));
  egg_settle(E);
  tarn_eg_best *best = least(E);
  printing p = {E, best, &b, PRINT_NODES};
  E->root.n = 0;
  cls = tarn_eg_find(E->g, cls);
  tarn_push(E->cx, &E->root, cls);
  if (n && egg_is_term(E, x->sort)) print_variants(&p, cls, n);
  else if (print_class(&p, x->sort, cls)) tarn_buf_str(&b, "\n");
  else tarn_sx_error(E->cx, s, "no term of it may be extracted");
  done(E, best);
  say(E, &b);
}

/* ---- tables ---- */
static uint32_t *rows_of(tarn_egg *E) { /* by declaration */
  uint32_t *n = TARN_ARRAY(E->cx, uint32_t, E->decl.n + 1);
  TARN_EG_CLASSES(E->g, c)
    TARN_EG_NODES(E->g, c, v) {
      uint32_t op = tarn_eg_node_at(E->g, v).op;
      if (op >= OP_DECL && op - OP_DECL < E->decl.n) n[op - OP_DECL]++;
    }
  for (uint32_t v = 0; v < tarn_eg_id_count(E->g); v++) { /* those that are subsumed too */
    if (!tarn_eg_is_subsumed(E->g, v)) continue;
    uint32_t op = tarn_eg_node_at(E->g, v).op;
    if (op >= OP_DECL && op - OP_DECL < E->decl.n) n[op - OP_DECL]++;
  }
  return n;
}
static const egg_decl *table_named(tarn_egg *E, const tarn_sx *s, uint32_t i) {
  const char *name = tarn_sx_kid(E->cx, s, i, TARN_SX_ATOM, "the name of a table")->text;
  const egg_decl *d = egg_decl_named(E, name);
  if (!d) tarn_sx_error(E->cx, s, "no table is called %s", name);
  return d;
}
static int by_name(const void *a, const void *b) {
  return strcmp((*(egg_decl *const *)a)->name, (*(egg_decl *const *)b)->name);
}
void egg_print_size(tarn_egg *E, const tarn_sx *s) {
  const uint32_t *rows = rows_of(E);
  tarn_buf b = {.cx = E->cx};
  if (s->n == 2) tarn_buf_fmt(&b, "%u\n", rows[table_named(E, s, 1)->op - OP_DECL]);
  else {
    egg_decl **d = tarn_copy(E->cx, E->decl.p, E->decl.n * sizeof *d);
    if (E->decl.n) qsort(d, E->decl.n, sizeof *d, by_name);
    for (uint32_t i = 0; i < E->decl.n; i++)
      if (!d[i]->global)
        tarn_buf_fmt(&b, "%s(%s %u)", b.n ? "\n " : "(", d[i]->name, rows[d[i]->op - OP_DECL]);
    tarn_buf_str(&b, b.n ? ")\n" : "()\n");
  }
  say(E, &b);
}
static void print_row(printing *p, const egg_decl *d, uint32_t node) {
  tarn_eg_node v = tarn_eg_node_at(p->E->g, node);
  tarn_buf row = {.cx = p->E->cx}, *out = p->b;
  bool all = true;
  p->b = &row;
  tarn_buf_fmt(&row, "   (%s", d->name);
  for (uint32_t i = 0; i < d->n && all; i++) {
    tarn_buf_str(&row, " ");
    all = print_class(p, d->arg[i], v.kids[i]);
  }
  tarn_buf_str(&row, ")");
  const char *itself = tarn_strdup(p->E->cx, row.p + 3);
  tarn_buf_fmt(&row, " -> %s", d->kind == EGG_RELATION ? itself : "");
  if (d->kind == EGG_FUNCTION) all = all && print_class(p, d->out, v.kids[d->n]);
  if (d->kind == EGG_CONSTRUCTOR) all = all && print_class(p, d->out, node);
  p->b = out;
  if (all) tarn_buf_fmt(out, "%s\n", row.p);
}
void egg_print_function(tarn_egg *E, const tarn_sx *s) {
  const egg_decl *d = table_named(E, s, 1);
  int64_t left = s->n > 2 ? tarn_sx_whole(E->cx, s, 2, 0, INT64_MAX) : INT64_MAX;
  tarn_buf b = {.cx = E->cx};
  if (s->n > 3) tarn_sx_error(E->cx, s, "expected (print-function NAME [N])");
  egg_settle(E);
  tarn_eg_best *best = least(E);
  printing p = {E, best, &b, PRINT_NODES};
  tarn_buf_str(&b, "(\n");
  for (uint32_t c = tarn_eg_next_class(E->g, TARN_NONE); c != TARN_NONE && left;
       c = tarn_eg_next_class(E->g, c))
    for (uint32_t v = tarn_eg_next_node(E->g, c, TARN_NONE); v != TARN_NONE && left;
         v = tarn_eg_next_node(E->g, c, v))
      if (tarn_eg_node_at(E->g, v).op == d->op) print_row(&p, d, v), left--;
  tarn_buf_str(&b, ")\n");
  done(E, best);
  say(E, &b);
}
