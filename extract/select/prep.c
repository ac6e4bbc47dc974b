/* Preprocessing: the reductions over lists. See prep.h. */
#include "extract/select/prep.h"
#include <stdlib.h>
#include <string.h>

/* ---- small things ---- */
/* Node i of class c, for all live classes. */
#define EACH_NODE(p, c, i)                                                                         \
  for (uint32_t at_##c = 0, c = 0; at_##c < (p)->live.n && (c = (p)->live.p[at_##c], true);        \
       at_##c++)                                                                                   \
    for (uint32_t i = 0; i < (p)->cls[c].n; i++)

static uint64_t prep_signature(const uint32_t *kid, uint32_t n) {
  uint64_t s = 0;
  for (uint32_t i = 0; i < n; i++) s |= 1ull << ((kid[i] * 0x9E3779B1u) >> 26);
  return s;
}

static uint32_t prep_pair(prep *p, uint32_t a, uint32_t b) {
  SEL_PUSH(p->mem, &p->prov, ((prep_prov){a, b}));
  return p->prov.n - 1;
}

static void touch(prep *p) {
  p->changed = p->stale = true;
  p->counted = false;
}

/* Removes a node that is not missed: every class that has a finite term with it has one without. */
static void drop(prep *p, uint32_t v) {
  p->node.p[v].dead = p->littered = true;
  touch(p);
}

void prep_kill(prep *p, uint32_t v) {
  drop(p, v);
  p->unsure = true;
}

/* A chain of classes makes pairs that lean to either side, as deep as the chain is long. */
void prep_lift(const prep *p, uint32_t v, uint32_t *choice) {
  sel_u32s todo = {0};
  for (bool more = true; more;) {
    prep_prov q = p->prov.p[v];
    if (q.b != NONE) {
      SEL_PUSH(p->mem, &todo, q.b);
      v = q.a;
      continue;
    }
    choice[p->run->g.node_class[q.a]] = q.a;
    more = todo.n > 0;
    if (more) v = todo.p[--todo.n];
  }
  sel_free(p->mem, todo.p);
}

void prep_lift_fixed(const prep *p, uint32_t *choice) {
  for (uint32_t i = 0; i < p->fixed.n; i++) prep_lift(p, p->fixed.p[i], choice);
}

static uint32_t sort_set(uint32_t *v, uint32_t n) {
  uint32_t m = 0;
  if (n > 16) qsort(v, n, sizeof *v, tarn_by_u32);
  else
    for (uint32_t i = 1; i < n; i++)
      for (uint32_t j = i, x = v[i]; j && v[j - 1] > x; j--) v[j] = v[j - 1], v[j - 1] = x;
  for (uint32_t i = 0; i < n; i++)
    if (!m || v[m - 1] != v[i]) v[m++] = v[i];
  return m;
}

static bool has(const uint32_t *v, uint32_t n, uint32_t x) {
  uint32_t lo = 0, hi = n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (v[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo < n && v[lo] == x;
}

static bool subset(const uint32_t *a, uint32_t na, const uint32_t *b, uint32_t nb) {
  uint32_t j = 0;
  if (na > nb) return false;
  for (uint32_t i = 0; i < na; i++) {
    while (j < nb && b[j] < a[i]) j++;
    if (j == nb || b[j] != a[i]) return false;
    j++;
  }
  return true;
}

/* The lists begin in one block; one that outgrows its place there moves. */
static void list_node(prep *p, sel_u32s *l, uint32_t v) {
  if (l->n == l->cap) {
    uint32_t *more = sel_small(p->mem, 2 * ((size_t)l->cap + 4) * sizeof *more);
    if (l->n) memcpy(more, l->p, l->n * sizeof *more);
    l->p = more, l->cap = 2 * (l->cap + 4);
  }
  l->p[l->n++] = v;
}

static uint32_t add_node(prep *p, uint32_t cls, double cost, uint32_t *kid, uint32_t nk,
                         uint32_t prov) {
  prep_node n = {cost, prep_signature(kid, nk), kid, nk, prov, cls, false};
  SEL_PUSH(p->mem, &p->node, n);
  list_node(p, &p->cls[cls], p->node.n - 1);
  p->fresh[cls] = 1;
  return p->node.n - 1;
}

/* ---- opening ---- */
static void take_node(prep *p, uint32_t v, const uint32_t *choice) {
  const tarn_sel_view *g = &p->run->g;
  uint32_t nk = g->kid_first[v + 1] - g->kid_first[v], cls = g->node_class[v];
  if (!(p->run->cost[v] < INFINITY)) return;
  for (uint32_t i = 0; i < nk; i++)
    if (choice[g->kid[g->kid_first[v] + i]] == NONE) return;
  uint32_t *kid = sel_small(p->mem, nk * sizeof *kid + 1);
  if (nk) memcpy(kid, g->kid + g->kid_first[v], nk * sizeof *kid);
  nk = sort_set(kid, nk);
  if (!has(kid, nk, cls)) add_node(p, cls, p->run->cost[v], kid, nk, prep_pair(p, v, NONE));
}

static void push_root(prep *p, uint32_t c) {
  if (p->is_root[c]) return;
  p->is_root[c] = 1;
  SEL_PUSH(p->mem, &p->root, c);
}

static void open_lists(prep *p) {
  const tarn_sel_view *g = &p->run->g;
  p->cls = sel_resize(p->mem, NULL, p->nc, sizeof *p->cls);
  uint32_t *all = sel_resize(p->mem, NULL, g->n_nodes, sizeof *all);
  for (uint32_t c = 0; c < p->nc; c++)
    p->cls[c] = (sel_u32s){all + g->class_first[c], 0, g->class_first[c + 1] - g->class_first[c]};
  p->node.cap = p->prov.cap = g->n_nodes + 16;
  p->node.p = sel_resize(p->mem, NULL, p->node.cap, sizeof *p->node.p);
  p->prov.p = sel_resize(p->mem, NULL, p->prov.cap, sizeof *p->prov.p);
}

bool prep_open(prep *p, sel_pool *mem, sel_run *run) {
  const tarn_sel_view *g = &run->g;
  *p = (prep){.mem = mem, .run = run, .nc = g->n_classes};
  open_lists(p);
  p->is_root = SEL_NEW(mem, uint8_t, p->nc), p->fresh = SEL_NEW(mem, uint8_t, p->nc);
  uint32_t **scratch[] = {&p->mark, &p->scc, &p->n_par, &p->one_par};
  for (size_t i = 0; i < 4; i++) *scratch[i] = SEL_NEW(mem, uint32_t, p->nc);
  const uint32_t *choice = run->tree;
  bool ok = true;
  for (uint32_t i = 0; i < g->n_roots; i++)
    push_root(p, g->root[i]), ok = ok && choice[g->root[i]] != NONE;
  /* only what the roots can need */
  sel_u32s todo = {0};
  for (uint32_t i = 0; i < p->root.n; i++)
    p->mark[p->root.p[i]] = 1, SEL_PUSH(mem, &todo, p->root.p[i]);
  while (ok && todo.n) {
    uint32_t c = todo.p[--todo.n], before = p->node.n;
    for (uint32_t i = g->class_first[c]; i < g->class_first[c + 1]; i++)
      take_node(p, g->class_node[i], choice);
    for (uint32_t v = before; v < p->node.n; v++)
      for (uint32_t i = 0; i < p->node.p[v].nk; i++) {
        uint32_t k = p->node.p[v].kid[i];
        if (!p->mark[k]) p->mark[k] = 1, SEL_PUSH(mem, &todo, k);
      }
  }
  for (uint32_t c = 0; c < p->nc; c++)
    if (p->cls[c].n) SEL_PUSH(mem, &p->live, c);
  p->stamp = 1;
  sel_free(mem, todo.p);
  return ok;
}

/* ---- trim ---- */
static void sweep_dead(prep *p) {
  if (!p->littered) return;
  p->littered = false;
  uint32_t alive = 0;
  for (uint32_t k = 0; k < p->live.n; k++) {
    uint32_t m = 0, c = p->live.p[k];
    for (uint32_t i = 0; i < p->cls[c].n; i++)
      if (!p->node.p[p->cls[c].p[i]].dead) p->cls[c].p[m++] = p->cls[c].p[i];
    p->cls[c].n = m;
    if (m) p->live.p[alive++] = c;
  }
  p->live.n = alive;
}

/* Nodes over parents: par[first[c]..first[c+1]) are the live nodes with child c. */
static void find_parents(prep *p, uint32_t **first, uint32_t **par) {
  uint32_t *f = SEL_NEW(p->mem, uint32_t, (size_t)p->nc + 2), total = 0;
  EACH_NODE(p, c, i) {
    const prep_node *n = &p->node.p[p->cls[c].p[i]];
    total += n->nk;
    for (uint32_t j = 0; j < n->nk; j++) f[n->kid[j] + 2]++;
  }
  for (uint32_t c = 0; c < p->nc; c++) f[c + 1] += f[c];
  f[p->nc + 1] += f[p->nc];
  uint32_t *q = sel_resize(p->mem, NULL, total, sizeof *q);
  EACH_NODE(p, c, i) {
    const prep_node *n = &p->node.p[p->cls[c].p[i]];
    for (uint32_t j = 0; j < n->nk; j++) q[f[n->kid[j] + 1]++] = p->cls[c].p[i];
  }
  *first = f, *par = q;
}

/* Kills nodes that have no finite term: those not reached from the leaves. */
static void kill_unfounded(prep *p) {
  uint32_t *first, *par;
  find_parents(p, &first, &par);
  uint32_t *wait = sel_resize(p->mem, NULL, p->node.n, sizeof *wait);
  sel_u32s todo = {0};
  p->stamp++;
  EACH_NODE(p, c, i) {
    uint32_t v = p->cls[c].p[i];
    wait[v] = p->node.p[v].nk;
    if (!wait[v] && p->mark[c] != p->stamp) p->mark[c] = p->stamp, SEL_PUSH(p->mem, &todo, c);
  }
  while (todo.n) {
    uint32_t c = todo.p[--todo.n];
    for (uint32_t i = first[c]; i < first[c + 1]; i++) {
      uint32_t v = par[i], d = p->node.p[v].cls;
      if (!--wait[v] && p->mark[d] != p->stamp) p->mark[d] = p->stamp, SEL_PUSH(p->mem, &todo, d);
    }
  }
  EACH_NODE(p, c, i)
    if (wait[p->cls[c].p[i]]) prep_kill(p, p->cls[c].p[i]);
  void *scratch[] = {first, par, wait, todo.p};
  for (size_t i = 0; i < 4; i++) sel_free(p->mem, scratch[i]);
}

static void drop_unneeded(prep *p) {
  sel_u32s todo = {0};
  p->stamp++;
  for (uint32_t i = 0; i < p->root.n; i++) {
    p->mark[p->root.p[i]] = p->stamp;
    SEL_PUSH(p->mem, &todo, p->root.p[i]);
  }
  while (todo.n) {
    const sel_u32s *l = &p->cls[todo.p[--todo.n]];
    for (uint32_t i = 0; i < l->n; i++) {
      const prep_node *n = &p->node.p[l->p[i]];
      for (uint32_t j = 0; j < n->nk; j++) {
        if (p->mark[n->kid[j]] == p->stamp) continue;
        p->mark[n->kid[j]] = p->stamp;
        SEL_PUSH(p->mem, &todo, n->kid[j]);
      }
    }
  }
  uint32_t alive = 0;
  for (uint32_t i = 0; i < p->live.n; i++) {
    uint32_t c = p->live.p[i];
    if (p->mark[c] == p->stamp) p->live.p[alive++] = c;
    else if (p->cls[c].n) p->cls[c].n = 0, p->changed = true, p->counted = false;
  }
  p->live.n = alive;
  sel_free(p->mem, todo.p);
}

static void prep_trim(prep *p) {
  sweep_dead(p);
  if (p->unsure) kill_unfounded(p);
  sweep_dead(p);
  if (p->stale) drop_unneeded(p);
  p->unsure = p->stale = false;
}

/* ---- dominate ---- */
typedef struct cand {
  double cost;
  uint32_t nk, v;
} cand;
static int by_cost(const void *a, const void *b) {
  const cand *x = a, *y = b;
  if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
  if (x->nk != y->nk) return x->nk < y->nk ? -1 : 1;
  return (x->v > y->v) - (x->v < y->v);
}

static void sort_cands(cand *c, uint32_t n) {
  if (n > 16) qsort(c, n, sizeof *c, by_cost);
  else
    for (uint32_t i = 1; i < n; i++) {
      cand x = c[i];
      uint32_t j = i;
      for (; j && by_cost(&x, &c[j - 1]) < 0; j--) c[j] = c[j - 1];
      c[j] = x;
    }
}

/* Cheapest first; a node dies when one before it needs a subset of its children. */
static void dominate_class(prep *p, const sel_u32s *l, cand *c) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < l->n; i++)
    c[i] = (cand){p->node.p[l->p[i]].cost, p->node.p[l->p[i]].nk, l->p[i]};
  sort_cands(c, l->n);
  for (uint32_t i = 0; i < l->n; i++) {
    const prep_node *n = &p->node.p[c[i].v];
    bool dead = false;
    for (uint32_t j = 0; j < kept && !dead; j++) {
      const prep_node *m = &p->node.p[c[j].v];
      dead = !(m->sig & ~n->sig) && subset(m->kid, m->nk, n->kid, n->nk);
    }
    if (dead) drop(p, c[i].v);
    else c[kept++] = c[i];
  }
  sel_stop(p->run, (uint64_t)kept * l->n / 4 + l->n);
}

static void dominate(prep *p) {
  uint32_t most = 0;
  for (uint32_t k = 0; k < p->live.n; k++)
    if (p->cls[p->live.p[k]].n > most) most = p->cls[p->live.p[k]].n;
  cand *scratch = sel_resize(p->mem, NULL, most, sizeof *scratch);
  for (uint32_t k = 0; k < p->live.n && !p->run->stop; k++) {
    uint32_t c = p->live.p[k];
    if (p->cls[c].n > 1 && p->fresh[c]) dominate_class(p, &p->cls[c], scratch);
    p->fresh[c] = 0;
  }
  sel_free(p->mem, scratch);
  sweep_dead(p);
}

/* ---- inline ---- */
/* Counts parent nodes; one_par is one of them when they are all of one class, else NONE. */
static void count_parents(prep *p) {
  if (p->counted) return;
  p->counted = true;
  for (uint32_t k = 0; k < p->live.n; k++)
    p->n_par[p->live.p[k]] = 0; /* the others are asked for by nobody */
  EACH_NODE(p, c, i) {
    const prep_node *n = &p->node.p[p->cls[c].p[i]];
    for (uint32_t j = 0; j < n->nk; j++) {
      uint32_t k = n->kid[j], one = p->one_par[k];
      if (!p->n_par[k]++) p->one_par[k] = p->cls[c].p[i];
      else if (one != NONE && p->node.p[one].cls != c) p->one_par[k] = NONE;
    }
  }
}

/* Children of n with k replaced by those of m, as a new set. */
static uint32_t *replaced(prep *p, const prep_node *n, uint32_t k, const prep_node *m,
                          uint32_t *count) {
  uint32_t *kid = sel_small(p->mem, (n->nk + m->nk) * sizeof *kid + 1), at = 0;
  for (uint32_t i = 0; i < n->nk; i++)
    if (n->kid[i] != k) kid[at++] = n->kid[i];
  for (uint32_t i = 0; i < m->nk; i++) kid[at++] = m->kid[i];
  *count = sort_set(kid, at);
  return kid;
}

/* v now is a parent of m's children, as m was. */
static void adopt(prep *p, uint32_t v, uint32_t k, const prep_node *m) {
  for (uint32_t i = 0; i < m->nk; i++) {
    uint32_t j = m->kid[i];
    p->n_par[j]++;
    if (p->one_par[k] == NONE) p->one_par[j] = NONE;
    else if (p->one_par[j] != NONE) p->one_par[j] = v;
  }
}

/* One parent less for class k; with the last one, its only node m goes, which is then no parent
 * either: else a chain that is met from its top would be put together from each of its nodes. */
static void leave(prep *p, uint32_t k, uint32_t m) {
  if (p->is_root[k] || --p->n_par[k]) return;
  p->node.p[m].dead = p->littered = true;
  for (uint32_t i = 0; i < p->node.p[m].nk; i++) p->n_par[p->node.p[m].kid[i]]--;
}

/* Puts node m, the only one of class k, into node v. */
static void absorb(prep *p, uint32_t v, uint32_t k, uint32_t m) {
  uint32_t nk;
  uint32_t *kid = replaced(p, &p->node.p[v], k, &p->node.p[m], &nk);
  prep_node *n = &p->node.p[v];
  n->kid = kid, n->nk = nk, n->cost += p->node.p[m].cost;
  n->sig = prep_signature(kid, nk);
  n->prov = prep_pair(p, n->prov, p->node.p[m].prov);
  p->fresh[n->cls] = 1;
  touch(p);
  adopt(p, v, k, &p->node.p[m]);
  leave(p, k, m);
  if (has(kid, nk, n->cls)) drop(p, v); /* no finite term holds its own class */
}

static bool may_absorb(const prep *p, uint32_t k) {
  if (p->is_root[k] || p->cls[k].n != 1) return false;
  const prep_node *m = &p->node.p[p->cls[k].p[0]];
  if (p->one_par[k] != NONE) return m->nk <= 1 || (uint64_t)p->n_par[k] * m->nk <= 64;
  return m->cost <= 0 && (m->nk <= 1 || (uint64_t)(p->n_par[k] - 1) * (m->nk - 1) <= 4);
}

/* All single-node children of v that may be absorbed, and theirs in turn. */
static void absorb_into(prep *p, uint32_t v) {
  for (uint32_t i = 0; i < p->node.p[v].nk && !p->node.p[v].dead;) {
    uint32_t k = p->node.p[v].kid[i];
    if (!may_absorb(p, k)) {
      i++;
      continue;
    }
    absorb(p, v, k, p->cls[k].p[0]);
    sel_stop(p->run, p->node.p[v].nk);
    i = 0;
  }
}

static void inline_single(prep *p) {
  count_parents(p);
  for (uint32_t k = 0; k < p->live.n && !p->run->stop; k++) {
    const sel_u32s *l = &p->cls[p->live.p[k]];
    for (uint32_t i = 0; i < l->n; i++) absorb_into(p, l->p[i]);
  }
  sweep_dead(p);
}

/* Class k has v as its only parent node: v becomes one node for each of k's. */
static void multiply(prep *p, uint32_t v, uint32_t k) {
  uint32_t cls = p->node.p[v].cls;
  for (uint32_t i = 0; i < p->cls[k].n; i++) {
    uint32_t m = p->cls[k].p[i], nk;
    if (p->node.p[m].dead) continue; /* multiplied itself */
    uint32_t *kid = replaced(p, &p->node.p[v], k, &p->node.p[m], &nk);
    drop(p, m);
    if (has(kid, nk, cls)) continue;
    uint32_t prov = prep_pair(p, p->node.p[v].prov, p->node.p[m].prov);
    add_node(p, cls, p->node.p[v].cost + p->node.p[m].cost, kid, nk, prov);
  }
  drop(p, v);
  p->cls[k].n = 0;
}

static void multiply_all(prep *p) {
  prep_trim(p);
  count_parents(p);
  for (uint32_t i = 0; i < p->live.n; i++) {
    uint32_t k = p->live.p[i], v = p->one_par[k];
    if (!p->cls[k].n || p->is_root[k] || p->n_par[k] != 1 || p->node.p[v].dead) continue;
    if ((uint64_t)(p->node.p[v].nk - 1) * (p->cls[k].n - 1) <= 4) multiply(p, v, k);
  }
  sweep_dead(p);
}

/* ---- force ---- */
static void common_children(prep *p, uint32_t r, sel_u32s *found) {
  const sel_u32s *l = &p->cls[r];
  const prep_node *n0 = &p->node.p[l->p[0]];
  for (uint32_t j = 0; j < n0->nk; j++) {
    bool all = true;
    for (uint32_t i = 1; i < l->n && all; i++) {
      const prep_node *n = &p->node.p[l->p[i]];
      all = has(n->kid, n->nk, n0->kid[j]);
    }
    if (all) SEL_PUSH(p->mem, found, n0->kid[j]);
  }
}

static void drop_root_edges(prep *p, uint32_t c, uint32_t v) {
  prep_node *n = &p->node.p[v];
  uint32_t m = 0;
  for (uint32_t j = 0; j < n->nk; j++)
    if (!p->is_root[n->kid[j]] || p->scc[n->kid[j]] == p->scc[c]) n->kid[m++] = n->kid[j];
  if (m == n->nk) return;
  n->nk = m;
  n->sig = prep_signature(n->kid, m);
  p->fresh[c] = 1;
  touch(p);
}

/* Roots with one node and nothing below are paid and gone. */
static void settle_roots(prep *p) {
  uint32_t m = 0;
  for (uint32_t i = 0; i < p->root.n; i++) {
    uint32_t r = p->root.p[i];
    const prep_node *n = p->cls[r].n == 1 ? &p->node.p[p->cls[r].p[0]] : NULL;
    if (!n || n->nk) {
      p->root.p[m++] = r;
      continue;
    }
    p->base += n->cost;
    SEL_PUSH(p->mem, &p->fixed, n->prov);
    p->cls[r].n = 0;
    p->is_root[r] = 0;
    touch(p);
  }
  p->root.n = m;
}

static bool any_root_edge(const prep *p) {
  EACH_NODE(p, c, i) {
    const prep_node *n = &p->node.p[p->cls[c].p[i]];
    for (uint32_t j = 0; j < n->nk; j++)
      if (p->is_root[n->kid[j]]) return true;
  }
  return false;
}

static void force(prep *p) {
  sel_u32s found = {0};
  for (uint32_t i = 0; i < p->root.n; i++) {
    found.n = 0;
    if (p->cls[p->root.p[i]].n) common_children(p, p->root.p[i], &found);
    for (uint32_t j = 0; j < found.n; j++) push_root(p, found.p[j]);
  }
  sel_free(p->mem, found.p);
  bool edges = any_root_edge(p);
  if (edges) prep_scc(p);
  for (uint32_t k = 0; edges && k < p->live.n; k++) {
    uint32_t c = p->live.p[k];
    for (uint32_t i = 0; i < p->cls[c].n; i++) drop_root_edges(p, c, p->cls[c].p[i]);
  }
  settle_roots(p);
}

/* ---- all of it ---- */
bool prep_spent(const prep *p) {
  const sel_run *r = p->run;
  if (r->stop || (r->o.steps && r->steps > r->o.steps / 3)) return true;
  return isfinite(r->o.seconds) && sel_left(r) < r->o.seconds * (2.0 / 3);
}

void prep_reduce(prep *p) {
  bool again = true;
  while (again && !prep_spent(p)) {
    do {
      p->changed = false;
      prep_trim(p);
      dominate(p);
      inline_single(p);
      prep_trim(p);
      force(p);
      sel_stop(p->run, p->node.n);
    } while (p->changed && !prep_spent(p));
    multiply_all(p);
    again = p->changed || (!prep_spent(p) && prep_must(p));
  }
  prep_trim(p);
}

void prep_problem(prep *p, sel_prob *q, uint32_t **prov, uint32_t **cls_of) {
  uint32_t *id = SEL_NEW(p->mem, uint32_t, p->nc), nk = 0;
  *q = (sel_prob){.nr = p->root.n};
  for (uint32_t c = 0; c < p->nc; c++) {
    id[c] = q->nc;
    q->nc += p->cls[c].n > 0;
    q->nn += p->cls[c].n;
    for (uint32_t i = 0; i < p->cls[c].n; i++) nk += p->node.p[p->cls[c].p[i]].nk;
  }
  q->nk = nk;
  q->cfirst = SEL_NEW(p->mem, uint32_t, (size_t)q->nc + 1);
  q->ncls = SEL_NEW(p->mem, uint32_t, q->nn);
  q->cost = SEL_NEW(p->mem, double, q->nn);
  q->kfirst = SEL_NEW(p->mem, uint32_t, (size_t)q->nn + 1);
  q->kid = SEL_NEW(p->mem, uint32_t, nk);
  q->root = SEL_NEW(p->mem, uint32_t, q->nr);
  *prov = SEL_NEW(p->mem, uint32_t, q->nn);
  *cls_of = SEL_NEW(p->mem, uint32_t, q->nc);
  uint32_t v = 0, k = 0;
  for (uint32_t c = 0; c < p->nc; c++) {
    if (!p->cls[c].n) continue;
    q->cfirst[id[c]] = v;
    (*cls_of)[id[c]] = c;
    for (uint32_t i = 0; i < p->cls[c].n; i++, v++) {
      const prep_node *n = &p->node.p[p->cls[c].p[i]];
      q->ncls[v] = id[c], q->cost[v] = n->cost, (*prov)[v] = n->prov, q->kfirst[v] = k;
      for (uint32_t j = 0; j < n->nk; j++) q->kid[k++] = id[n->kid[j]];
    }
  }
  q->cfirst[q->nc] = v;
  q->kfirst[v] = k;
  for (uint32_t i = 0; i < q->nr; i++) q->root[i] = id[p->root.p[i]];
  sel_free(p->mem, id);
  sel_prob_parents(p->mem, q);
}

void sel_prob_parents(sel_pool *mem, sel_prob *q) {
  uint32_t *f = SEL_NEW(mem, uint32_t, (size_t)q->nc + 2);
  for (uint32_t i = 0; i < q->nk; i++) f[q->kid[i] + 2]++;
  for (uint32_t c = 0; c < q->nc; c++) f[c + 1] += f[c];
  q->pnode = sel_resize(mem, NULL, q->nk, sizeof *q->pnode);
  for (uint32_t v = 0; v < q->nn; v++)
    for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++) q->pnode[f[q->kid[i] + 1]++] = v;
  q->pfirst = f;
}
