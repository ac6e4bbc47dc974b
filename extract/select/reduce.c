/* See reduce.h. */
#include "extract/select/reduce.h"
#include <string.h>

bool sel_parts_open(sel_parts *s, sel_run *r) {
  *s = (sel_parts){.r = r, .mem = r->mem};
  if (!r->tree) sel_run_tree(r);
  if (!(r->best_cost < INFINITY)) return false;
  if (!prep_open(&s->p, s->mem, r)) return false;
  prep_reduce(&s->p);
  return true;
}

/* ---- splitting: classes joined by an edge are of one part (union-find) ---- */
static uint32_t find(uint32_t *up, uint32_t c) {
  while (up[c] != c) c = up[c] = up[up[c]];
  return c;
}

static uint32_t label(sel_pool *mem, const sel_prob *q, uint32_t *part) {
  uint32_t *up = SEL_NEW(mem, uint32_t, q->nc), n = 0;
  for (uint32_t c = 0; c < q->nc; c++) up[c] = c, part[c] = NONE;
  for (uint32_t v = 0; v < q->nn; v++)
    for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++)
      up[find(up, q->kid[i])] = find(up, q->ncls[v]);
  for (uint32_t c = 0; c < q->nc; c++) {
    uint32_t top = find(up, c);
    if (part[top] == NONE) part[top] = n++;
    part[c] = part[top];
  }
  sel_free(mem, up);
  return n;
}

typedef struct split {
  sel_parts *s;
  const sel_prob *whole;
  uint32_t *part, *id;   /* by class of the whole: its part and its number there */
  uint32_t *first, *cls; /* by part: its classes */
} split;

static void sort_by_part(split *x, uint32_t n) {
  x->first = SEL_NEW(x->s->mem, uint32_t, (size_t)n + 2);
  x->cls = SEL_NEW(x->s->mem, uint32_t, x->whole->nc);
  uint32_t *f = x->first;
  for (uint32_t c = 0; c < x->whole->nc; c++) f[x->part[c] + 2]++;
  for (uint32_t i = 0; i < n; i++) f[i + 1] += f[i];
  for (uint32_t c = 0; c < x->whole->nc; c++) x->cls[f[x->part[c] + 1]++] = c;
}

static void count_part(const split *x, uint32_t at, sel_prob *q) {
  *q = (sel_prob){0};
  for (uint32_t i = x->first[at]; i < x->first[at + 1]; i++) {
    uint32_t c = x->cls[i], a = x->whole->cfirst[c], b = x->whole->cfirst[c + 1];
    x->id[c] = q->nc++;
    q->nn += b - a;
    q->nk += x->whole->kfirst[b] - x->whole->kfirst[a];
    q->nr += x->s->p.is_root[x->s->cls_of[c]];
  }
}

static void fill_part(const split *x, uint32_t at, sel_part *t) {
  const sel_prob *w = x->whole;
  sel_prob *q = &t->q;
  uint32_t v = 0, k = 0, r = 0;
  for (uint32_t j = x->first[at]; j < x->first[at + 1]; j++) {
    uint32_t c = x->cls[j];
    q->cfirst[x->id[c]] = v;
    for (uint32_t u = w->cfirst[c]; u < w->cfirst[c + 1]; u++, v++) {
      q->ncls[v] = x->id[c], q->cost[v] = w->cost[u], q->kfirst[v] = k, t->node_of[v] = u;
      for (uint32_t i = w->kfirst[u]; i < w->kfirst[u + 1]; i++) q->kid[k++] = x->id[w->kid[i]];
    }
    if (x->s->p.is_root[x->s->cls_of[c]]) q->root[r++] = x->id[c];
  }
  q->cfirst[q->nc] = v;
  q->kfirst[v] = k;
}

static void make_part(const split *x, uint32_t at, sel_part *t) {
  sel_pool *mem = x->s->mem;
  *t = (sel_part){.cost = INFINITY, .limit = INFINITY};
  sel_prob *q = &t->q;
  count_part(x, at, q);
  q->cfirst = SEL_NEW(mem, uint32_t, (size_t)q->nc + 1);
  q->ncls = SEL_NEW(mem, uint32_t, q->nn);
  q->cost = SEL_NEW(mem, double, q->nn);
  q->kfirst = SEL_NEW(mem, uint32_t, (size_t)q->nn + 1);
  q->kid = SEL_NEW(mem, uint32_t, q->nk);
  q->root = SEL_NEW(mem, uint32_t, q->nr);
  t->node_of = SEL_NEW(mem, uint32_t, q->nn);
  t->choice = SEL_NEW(mem, uint32_t, q->nc);
  fill_part(x, at, t);
  sel_prob_parents(mem, q);
  t->view = sel_prob_view(mem, q);
  t->unit = sel_part_unit(q);
  t->scc = SEL_NEW(mem, uint32_t, q->nc);
  sel_prob_scc(mem, q, t->scc);
  uint32_t *choice = SEL_NEW(mem, uint32_t, q->nc);
  sel_tree(mem, &t->view, q->cost, NULL, choice, NULL, NULL);
  sel_part_offer(mem, t, choice);
  sel_free(mem, choice);
}

void sel_parts_split(sel_parts *s) {
  sel_prob whole;
  s->n = 0;
  if (s->r->stop) return;
  prep_problem(&s->p, &whole, &s->prov, &s->cls_of);
  if (s->r->reduced == NONE) s->r->reduced = whole.nn;
  for (uint32_t i = 0; i < s->p.root.n; i++) s->impossible |= !s->p.cls[s->p.root.p[i]].n;
  if (s->impossible) return;
  split x = {.s = s, .whole = &whole};
  x.part = SEL_NEW(s->mem, uint32_t, whole.nc);
  x.id = SEL_NEW(s->mem, uint32_t, whole.nc);
  uint32_t n = label(s->mem, &whole, x.part);
  sort_by_part(&x, n);
  s->part = SEL_NEW(s->mem, sel_part, n);
  for (uint32_t i = 0; i < n; i++) make_part(&x, i, &s->part[i]);
  s->n = n;
}

void sel_parts_bound(sel_parts *s) {
  sel_pool *own = s->r->brief;
  for (uint32_t i = 0; i < s->n && !s->r->stop; i++) {
    sel_part *t = &s->part[i];
    sel_apart *a = sel_apart_new(s->r, own, &t->q, false);
    double z = a ? sel_apart_bound(a, own, &t->view, t->q.cost, NULL) : 0;
    s->r->steps += 5 * t->q.nn;
    if (z > t->bound) t->bound = z < sel_part_cap(t) ? z : sel_part_cap(t);
    sel_pool_close(own);
  }
}

/* Over what a part needs: the provenance of each chosen node. */
static void lift_part(const sel_parts *s, const sel_part *t, uint32_t *choice) {
  uint32_t *order = SEL_NEW(s->mem, uint32_t, t->q.nc), n = 0;
  sel_price(s->mem, &t->view, t->q.cost, t->choice, NULL, NULL, order, &n);
  for (uint32_t i = 0; i < n; i++)
    prep_lift(&s->p, s->prov[t->node_of[t->choice[order[i]]]], choice);
  sel_free(s->mem, order);
}

void sel_parts_offer(sel_parts *s) {
  sel_run *r = s->r;
  double bound = s->p.base;
  bool all = !s->impossible;
  if (s->impossible) sel_raise_bound(r, r->best_cost);
  for (uint32_t i = 0; i < s->n; i++)
    all = all && s->part[i].cost < INFINITY, bound += s->part[i].bound;
  if (all) {
    uint32_t *choice = SEL_NEW(r->mem, uint32_t, r->g.n_classes);
    memset(choice, 0xff, r->g.n_classes * sizeof *choice);
    prep_lift_fixed(&s->p, choice);
    for (uint32_t i = 0; i < s->n; i++) lift_part(s, &s->part[i], choice);
    sel_offer(r, choice);
    sel_free(r->mem, choice);
  }
  if (!s->impossible) sel_raise_bound(r, bound);
}

bool sel_parts_again(sel_parts *s) {
  uint32_t dead = 0, all = 0;
  for (uint32_t i = 0; i < s->n; i++) dead += s->part[i].n_dead, all += s->part[i].q.nn;
  if (dead * 20 < all || !dead) return false;
  /* node_of is the number in the whole reduced problem, whose order is that of the classes and
   * their lists */
  uint32_t *id = SEL_NEW(s->mem, uint32_t, all), n = 0;
  for (uint32_t c = 0; c < s->p.nc; c++)
    for (uint32_t i = 0; i < s->p.cls[c].n; i++) id[n++] = s->p.cls[c].p[i];
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t v = 0; v < s->part[i].q.nn; v++)
      if (s->part[i].dead && s->part[i].dead[v]) prep_kill(&s->p, id[s->part[i].node_of[v]]);
  sel_free(s->mem, id);
  prep_reduce(&s->p);
  return true;
}
