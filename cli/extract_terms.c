/* tarn extract: chosen terms as text, the best terms, costs by operator, several objectives. */
#include "cli/extract.h"
#include <stdlib.h>
#include <string.h>

enum { NAME = 1024, MOST_PRINTED = 1000000 };

static void must(tarn_ctx *cx, tarn_status st) {
  if (st) tarn_reraise(cx, st);
}
static void put_op(tarn_buf *b, const tarn_sel_graph *g, uint32_t node) {
  char buf[NAME];
  const char *op = tarn_sel_node_op(g, node, buf, sizeof buf);
  tarn_sx_name(b, op, strlen(op));
}

/* ---- the chosen term: what is used more than once has a name ---- */
typedef struct printing {
  tarn_ctx *cx;
  const tarn_sel_graph *g;
  tarn_sel_view v;
  const uint32_t *choice;
  uint32_t *uses, *name; /* by class; name 0: none */
  uint32_t n_names;
  tarn_buf *b;
} printing;
typedef struct piece { /* a class of which child i is next */
  uint32_t cls, i;
} piece;

static uint32_t kids_of(const printing *p, uint32_t cls, const uint32_t **kid) {
  uint32_t node = p->choice[cls];
  *kid = p->v.kid + p->v.kid_first[node];
  return p->v.kid_first[node + 1] - p->v.kid_first[node];
}
/* The classes below the roots, children first, and how often each is used. */
static uint32_t *in_order(printing *p, uint32_t *n) {
  TARN_VEC(piece) open = {0};
  TARN_VEC(uint32_t) done = {0};
  const uint32_t *kid;
  for (uint32_t r = 0; r < p->v.n_roots; r++) {
    piece root = {tarn_sel_past_links(p->g, p->choice, p->v.root[r]), 0};
    if (p->uses[root.cls]++) continue;
    for (tarn_push(p->cx, &open, root); open.n;) {
      piece *top = &open.p[open.n - 1];
      if (top->i == kids_of(p, top->cls, &kid)) {
        tarn_push(p->cx, &done, top->cls);
        open.n--;
        continue;
      }
      piece next = {tarn_sel_past_links(p->g, p->choice, kid[top->i++]), 0};
      if (!p->uses[next.cls]++) tarn_push(p->cx, &open, next);
    }
  }
  *n = done.n;
  return done.p;
}
static void put_class(printing *p, uint32_t cls) {
  TARN_VEC(piece) open = {0};
  const uint32_t *kid;
  piece top = {cls, 0};
  for (tarn_push(p->cx, &open, top); open.n;) {
    piece *t = &open.p[open.n - 1];
    uint32_t n = kids_of(p, t->cls, &kid);
    bool named = p->name[t->cls] && open.n > 1;
    if (named) tarn_buf_fmt(p->b, "x%u", p->name[t->cls]);
    if (!named && !t->i) {
      if (n) tarn_buf_str(p->b, "(");
      put_op(p->b, p->g, p->choice[t->cls]);
    }
    if (named || t->i == n) {
      if (!named && n) tarn_buf_str(p->b, ")");
      open.n--;
      continue;
    }
    tarn_buf_str(p->b, " ");
    piece next = {tarn_sel_past_links(p->g, p->choice, kid[t->i++]), 0};
    tarn_push(p->cx, &open, next);
  }
}
void extract_print_chosen(tarn_ctx *cx, tarn_sel_graph *g, const tarn_sel_result *r,
                          const char *path) {
  tarn_buf b = {.cx = cx};
  printing p = {.cx = cx, .g = g, .choice = r->choice, .b = &b};
  uint32_t n;
  const uint32_t *kid;
  must(cx, tarn_sel_graph_view(g, &p.v));
  p.uses = TARN_ARRAY(cx, uint32_t, p.v.n_classes + 1);
  p.name = TARN_ARRAY(cx, uint32_t, p.v.n_classes + 1);
  const uint32_t *order = in_order(&p, &n);
  for (uint32_t i = 0; i < n; i++) {
    if (p.uses[order[i]] < 2 || !kids_of(&p, order[i], &kid)) continue;
    tarn_buf_fmt(&b, "(let x%u ", p.n_names + 1);
    put_class(&p, order[i]);
    tarn_buf_str(&b, ")\n");
    p.name[order[i]] = ++p.n_names;
  }
  for (uint32_t i = 0; i < p.v.n_roots; i++) {
    uint32_t c = tarn_sel_past_links(p.g, p.choice, p.v.root[i]);
    if (p.name[c]) tarn_buf_fmt(&b, "x%u", p.name[c]);
    else put_class(&p, c);
    tarn_buf_str(&b, "\n");
  }
  bool out = !strcmp(path, "-");
  FILE *f = out ? stdout : cli_open(cx, path);
  fwrite(b.p, 1, b.n, f);
  if (!out) cli_close(cx, f, path);
}

/* ---- the best terms ---- */
static const char *term_text(tarn_ctx *cx, const tarn_sel_graph *g, const tarn_sel_terms *t,
                             uint32_t term) {
  TARN_VEC(piece) open = {0};
  tarn_buf b = {.cx = cx};
  uint32_t left = MOST_PRINTED;
  piece first = {term, 0};
  for (tarn_push(cx, &open, first); open.n;) {
    piece *p = &open.p[open.n - 1];
    if (tarn_sel_is_link(g, t->node[p->cls])) {
      p->cls = t->kid[t->kid_first[p->cls]];
      continue;
    }
    uint32_t n = t->kid_first[p->cls + 1] - t->kid_first[p->cls];
    if (!p->i) {
      if (!left--) tarn_raise(cx, TARN_NO_RESULT, "a term of more than %d nodes", MOST_PRINTED);
      if (n) tarn_buf_str(&b, "(");
      put_op(&b, g, t->node[p->cls]);
    }
    if (p->i == n) {
      if (n) tarn_buf_str(&b, ")");
      open.n--;
      continue;
    }
    tarn_buf_str(&b, " ");
    piece kid = {t->kid[t->kid_first[p->cls] + p->i++], 0};
    tarn_push(cx, &open, kid);
  }
  return b.p;
}
int extract_terms(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g) {
  tarn_sel_terms t;
  tarn_json *j = k->json ? cli_json_new(cx) : NULL;
  char buf[NAME];
  must(cx, tarn_sel_best_terms(g, (uint32_t)k->terms, &t));
  if (j) tarn_json_open(j, "terms", '[');
  for (uint32_t i = 0; i < t.n; i++) {
    const char *text = term_text(cx, g, &t, t.term[i]);
    const char *root = tarn_sel_class_name(g, t.root[i], buf, sizeof buf);
    if (!j) printf("%10.15g  %s\n", t.cost[i], text);
    if (!j) continue;
    tarn_json_object(j, NULL, "root", root, "cost", t.cost[i], "term", text);
  }
  if (j) tarn_json_close(j, ']');
  if (j) cli_json_print(j);
  return 0;
}

/* ---- costs by operator ---- */
static bool has_op(const tarn_sel_graph *g, uint32_t node, const char *op) {
  char buf[NAME];
  return !strcmp(tarn_sel_node_op(g, node, buf, sizeof buf), op);
}
/* Of all nodes of an operator; how many there are. */
static uint32_t set_costs(tarn_ctx *cx, tarn_sel_graph *g, uint32_t n, const char *op,
                          const double *cost) {
  uint32_t hits = 0;
  for (uint32_t v = 0; v < n; v++) {
    if (!has_op(g, v, op)) continue;
    if (cost) must(cx, tarn_sel_set_cost(g, v, *cost));
    hits++;
  }
  return hits;
}
/* OPERATOR=COST, or OPERATOR@PARENT=COST. An operator that is called so is meant first. */
static tarn_sel_parent_cost read_cost(tarn_ctx *cx, tarn_sel_graph *g, uint32_t n,
                                      const char *given) {
  char *text = tarn_strdup(cx, given), *end, *eq = strrchr(text, '=');
  double cost = eq ? strtod(eq + 1, &end) : NAN;
  if (!eq || eq == text || !eq[1] || *end || !(cost > -INFINITY))
    tarn_raise(cx, TARN_USAGE, "--cost %s: OPERATOR=COST or OPERATOR@PARENT=COST is expected",
               text);
  *eq = 0;
  char *at = set_costs(cx, g, n, text, NULL) ? NULL : strchr(text + 1, '@');
  if (at) *at = 0;
  if (!set_costs(cx, g, n, text, NULL)) tarn_warn(cx, "--cost %s: no node has this operator", text);
  if (at && !set_costs(cx, g, n, at + 1, NULL))
    tarn_warn(cx, "--cost %s: no node has this operator", at + 1);
  return (tarn_sel_parent_cost){text, at ? at + 1 : NULL, cost};
}
tarn_sel_graph *extract_costs(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g) {
  tarn_sel_view v;
  TARN_VEC(tarn_sel_parent_cost) below = {0};
  must(cx, tarn_sel_graph_view(g, &v));
  for (uint32_t i = 0; i < k->costs.n; i++) {
    tarn_sel_parent_cost c = read_cost(cx, g, v.n_nodes, k->costs.p[i]);
    if (c.parent) tarn_push(cx, &below, c);
    else set_costs(cx, g, v.n_nodes, c.op, &c.cost);
  }
  if (below.n && k->objectives.n)
    tarn_raise(cx, TARN_USAGE, "extract: costs below a parent do not go with --objective");
  if (below.n) must(cx, tarn_sel_by_parent(g, below.p, below.n, &g));
  return g;
}

/* ---- several objectives ---- */
typedef struct objectives {
  const tarn_sel_graph *g;
  tarn_sel_cost cost;
} objectives;
static void values(void *user, uint32_t node, double *out) {
  const objectives *o = user;
  for (uint32_t i = 0; i < o->cost.k; i++) out[i] = tarn_sel_node_value(o->g, node, i);
}
/* NAME, summed, or max:NAME. */
const char *extract_objective(const char *text, tarn_sel_aggregate *how) {
  bool max = !strncmp(text, "max:", 4);
  *how = max ? TARN_SEL_MAX : TARN_SEL_SUM;
  return text + (max ? 4 : 0);
}
static void print_front(const extract_job *k, const tarn_sel_front *f) {
  for (uint32_t i = 0; i < k->objectives.n; i++) printf("%14s", k->objectives.p[i]);
  printf("\n");
  for (uint32_t i = 0; i < f->n; i++) {
    for (uint32_t j = 0; j < f->k; j++) printf("%14.10g", f->value[i * f->k + j]);
    printf("\n");
  }
  printf("%u point%s%s\n", f->n, f->n == 1 ? "" : "s",
         f->complete ? ", all there are" : "; there may be more");
}
static void front_json(tarn_ctx *cx, const extract_job *k, const tarn_sel_front *f) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "front", '[');
  for (uint32_t i = 0; i < f->n; i++) {
    tarn_json_open(j, NULL, '{');
    for (uint32_t n = 0; n < f->k; n++)
      tarn_json_num(j, k->objectives.p[n], f->value[i * f->k + n]);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  tarn_json_put(j, "complete", f->complete, "seconds", f->seconds);
  cli_json_print(j);
}
static void free_front(void *f) { tarn_sel_front_free(f); }
int extract_front(tarn_ctx *cx, const extract_job *k, tarn_sel_graph *g, tarn_sel_options o) {
  objectives *x = TARN_NEW(cx, objectives);
  tarn_sel_front *f = TARN_NEW(cx, tarn_sel_front);
  *x = (objectives){g, {.k = k->objectives.n, .values = values, .user = x}};
  for (uint32_t i = 0; i < k->objectives.n; i++)
    extract_objective(k->objectives.p[i], &x->cost.how[i]);
  o.cost = &x->cost;
  if (x->cost.k == 1) {
    tarn_sel_result *r = TARN_NEW(cx, tarn_sel_result);
    must(cx, tarn_sel_run(g, TARN_SEL_EXACT, &o, r));
    printf("%s %.15g, lower bound %.15g%s (%s, %.3f s)\n", k->objectives.p[0], r->cost,
           r->lower_bound, r->optimal ? ", optimal" : "", r->stop, r->seconds);
    tarn_sel_result_free(r);
    return 0;
  }
  must(cx, tarn_sel_pareto(g, &o, f));
  tarn_defer(cx, free_front, f);
  if (k->json) front_json(cx, k, f);
  else print_front(k, f);
  return 0;
}
