/* What must be below a class and what must be above it, by bit sets; strongly connected components.
 * See prep.h. */
#include "extract/select/prep.h"
#include "extract/select/solve.h"
#include <string.h>

/* ---- components ---- */
static uint32_t next_kid(const void *of, uint32_t c, sel_place *at) {
  const prep *p = of;
  for (const sel_u32s *l = &p->cls[c]; at->node < l->n; at->node++, at->kid = 0) {
    const prep_node *n = &p->node.p[l->p[at->node]];
    if (at->kid < n->nk) return n->kid[at->kid++];
  }
  return NONE;
}
uint32_t prep_scc(prep *p) {
  bool cyclic;
  sel_digraph g = {p->nc, p->live.n, p->live.p, p, next_kid};
  return sel_strong(p->mem, &g, p->scc, &cyclic);
}

/* ---- bit sets over the live classes, renumbered children first ---- */
enum { MUST_MOST = 12000 }; /* classes; a set then has 1.5 kB and all of them 18 MB */

typedef struct bits {
  prep *p;
  uint32_t n, words;
  bool cyclic; /* some component has several classes; otherwise one sweep is all that a fixpoint
                  takes */
  uint32_t *id, *cls;   /* class of p -> number, and back */
  uint64_t *must, *dom; /* n sets each */
  uint64_t *acc, *one;  /* scratch sets */
} bits;

static uint64_t *set_of(const bits *b, uint64_t *sets, uint32_t i) {
  return sets + (size_t)i * b->words;
}
static bool holds(const uint64_t *s, uint32_t i) { return s[i >> 6] >> (i & 63) & 1; }

static bool open_bits(bits *b, prep *p) {
  *b = (bits){.p = p};
  uint32_t comps = prep_scc(p);
  b->id = SEL_NEW(p->mem, uint32_t, p->nc);
  uint32_t *count = SEL_NEW(p->mem, uint32_t, (size_t)comps + 1);
  for (uint32_t i = 0; i < p->live.n; i++)
    if (p->cls[p->live.p[i]].n) b->cyclic |= count[p->scc[p->live.p[i]] + 1]++ > 0, b->n++;
  b->cls = SEL_NEW(p->mem, uint32_t, b->n);
  for (uint32_t i = 0; i < comps; i++) count[i + 1] += count[i];
  for (uint32_t i = 0; i < p->live.n; i++) {
    uint32_t c = p->live.p[i];
    if (p->cls[c].n) b->id[c] = count[p->scc[c]]++, b->cls[b->id[c]] = c;
  }
  sel_free(p->mem, count);
  if (b->n < 2 || b->n > MUST_MOST) return false;
  b->words = (b->n + 63) / 64;
  b->must = sel_resize(p->mem, NULL, (size_t)b->n * b->words, 8);
  b->dom = sel_resize(p->mem, NULL, (size_t)b->n * b->words, 8);
  b->acc = SEL_NEW(p->mem, uint64_t, b->words);
  b->one = SEL_NEW(p->mem, uint64_t, b->words);
  memset(b->must, 0xff, (size_t)b->n * b->words * 8);
  memset(b->dom, 0xff, (size_t)b->n * b->words * 8);
  return true;
}

static void close_bits(bits *b) {
  void *all[] = {b->id, b->cls, b->must, b->dom, b->acc, b->one};
  for (size_t i = 0; i < 6; i++) sel_free(b->p->mem, all[i]);
}

/* Union of what the children of n must have. */
static void node_must(bits *b, const prep_node *n, uint64_t *out) {
  memset(out, 0, (size_t)b->words * 8);
  for (uint32_t j = 0; j < n->nk; j++) {
    const uint64_t *s = set_of(b, b->must, b->id[n->kid[j]]);
    for (uint32_t w = 0; w < b->words; w++) out[w] |= s[w];
  }
}

static bool refine(bits *b, uint64_t *set, uint64_t *acc, uint32_t self) {
  acc[self >> 6] |= 1ull << (self & 63);
  bool less = memcmp(set, acc, (size_t)b->words * 8) != 0;
  if (less) memcpy(set, acc, (size_t)b->words * 8);
  return less;
}

static bool must_of(bits *b, uint32_t i) {
  const sel_u32s *l = &b->p->cls[b->cls[i]];
  memset(b->acc, 0xff, (size_t)b->words * 8);
  for (uint32_t j = 0; j < l->n; j++) {
    node_must(b, &b->p->node.p[l->p[j]], b->one);
    if (holds(b->one, i)) continue; /* can only close a cycle */
    for (uint32_t w = 0; w < b->words; w++) b->acc[w] &= b->one[w];
  }
  sel_stop(b->p->run, (uint64_t)(l->n + 1) * b->words);
  return refine(b, set_of(b, b->must, i), b->acc, i);
}

/* Meets the dominators of class i into those children that the sweep comes to later, or (back) came
 * to earlier. */
static void push_down(bits *b, uint32_t i, uint64_t *next, bool back) {
  const sel_u32s *l = &b->p->cls[b->cls[i]];
  const uint64_t *d = set_of(b, b->dom, i);
  for (uint32_t j = 0; j < l->n; j++) {
    const prep_node *n = &b->p->node.p[l->p[j]];
    for (uint32_t k = 0; k < n->nk; k++) {
      uint32_t kid = b->id[n->kid[k]];
      if ((kid > i) != back) continue;
      uint64_t *s = set_of(b, next, kid);
      for (uint32_t w = 0; w < b->words; w++) s[w] &= d[w];
      sel_stop(b->p->run, b->words);
    }
  }
}

/* One sweep, parents first; true when a set became smaller. */
static bool dominators(bits *b) {
  bool more = false;
  uint64_t *next = sel_resize(b->p->mem, NULL, (size_t)b->n * b->words, 8);
  memset(next, 0xff, (size_t)b->n * b->words * 8);
  for (uint32_t i = 0; b->cyclic && i < b->n; i++) push_down(b, i, next, true);
  for (uint32_t i = b->n; i-- > 0;) {
    uint64_t *mine = set_of(b, next, i);
    if (b->p->is_root[b->cls[i]]) memset(mine, 0, (size_t)b->words * 8);
    more |= refine(b, set_of(b, b->dom, i), mine, i);
    push_down(b, i, next, false);
  }
  sel_free(b->p->mem, next);
  return more && b->cyclic;
}

/* ---- what follows ---- */
static bool meets(const bits *b, const uint64_t *x, const uint64_t *y) {
  for (uint32_t w = 0; w < b->words; w++)
    if (x[w] & y[w]) return true;
  return false;
}

static bool kill_cyclic(bits *b) {
  bool killed = false;
  for (uint32_t i = 0; i < b->n; i++) {
    const sel_u32s *l = &b->p->cls[b->cls[i]];
    for (uint32_t j = 0; j < l->n; j++) {
      node_must(b, &b->p->node.p[l->p[j]], b->one);
      if (!meets(b, b->one, set_of(b, b->dom, i))) continue;
      prep_kill(b->p, l->p[j]);
      killed = true;
    }
  }
  return killed;
}

static double add_kid_price(const bits *b, const double *tree, const prep_node *m,
                            const uint64_t *have, double most) {
  double sum = m->cost;
  for (uint32_t j = 0; j < m->nk && sum <= most; j++) {
    uint32_t k = m->kid[j];
    if (holds(have, b->id[k])) continue;
    if (b->p->scc[k] == b->p->scc[m->cls]) return INFINITY; /* might close a cycle */
    sum += tree[k];
  }
  return sum;
}

/* Does another node cost no more than n, its children that n would not need anyway bought at tree
 * cost? */
static bool beaten(bits *b, const sel_u32s *l, uint32_t at, const double *tree) {
  const prep_node *n = &b->p->node.p[l->p[at]];
  node_must(b, n, b->one);
  for (uint32_t j = 0; j < l->n; j++) {
    const prep_node *m = &b->p->node.p[l->p[j]];
    if (j == at || m->dead || m->cost > n->cost) continue;
    if (add_kid_price(b, tree, m, b->one, n->cost) <= n->cost) return true;
  }
  return false;
}

/* Tree costs of the classes numbered i..end, one component, those below being known. */
static void tree_costs(bits *b, uint32_t i, uint32_t end, double *t) {
  prep *p = b->p;
  bool more = true;
  for (uint32_t k = i; k < end; k++) t[b->cls[k]] = INFINITY;
  for (uint32_t round = 0; more && round < 50;
       round++) { /* enough or not, what is there is a term's cost */
    more = false;
    for (uint32_t k = i; k < end; k++) {
      const sel_u32s *l = &p->cls[b->cls[k]];
      for (uint32_t j = 0; j < l->n; j++) {
        const prep_node *n = &p->node.p[l->p[j]];
        double s = n->dead ? INFINITY : n->cost;
        for (uint32_t q = 0; q < n->nk; q++) s += t[n->kid[q]];
        if (s < t[b->cls[k]]) t[b->cls[k]] = s, more = end - i > 1;
      }
    }
  }
}

static bool kill_beaten_of(bits *b, uint32_t i, const double *tree) {
  const sel_u32s *l = &b->p->cls[b->cls[i]];
  bool killed = false;
  for (uint32_t j = 0; j < l->n && l->n > 1; j++) {
    sel_stop(b->p->run, (uint64_t)l->n + b->words);
    if (!beaten(b, l, j, tree)) continue;
    prep_kill(b->p, l->p[j]);
    killed = true;
  }
  return killed;
}

/* Components from below: tree costs are those of nodes that stay. */
static bool kill_beaten(bits *b) {
  prep *p = b->p;
  bool killed = false;
  double *tree = sel_resize(p->mem, NULL, p->nc, sizeof *tree);
  for (uint32_t i = 0, end; i < b->n && !p->run->stop; i = end) {
    for (end = i; end < b->n && p->scc[b->cls[end]] == p->scc[b->cls[i]]; end++)
      killed |= kill_beaten_of(b, end, tree);
    tree_costs(b, i, end, tree);
  }
  sel_free(p->mem, tree);
  return killed;
}

/* Classes that every selection has become roots. */
static bool force_must(bits *b) {
  prep *p = b->p;
  uint32_t had = p->root.n;
  for (uint32_t r = 0; r < had; r++) {
    const uint64_t *s = set_of(b, b->must, b->id[p->root.p[r]]);
    for (uint32_t i = 0; i < b->n; i++) {
      if (!holds(s, i) || p->is_root[b->cls[i]]) continue;
      p->is_root[b->cls[i]] = 1;
      SEL_PUSH(p->mem, &p->root, b->cls[i]);
    }
  }
  return p->root.n > had;
}

bool prep_must(prep *p) {
  bits b;
  bool did = false, more = true;
  if (!open_bits(&b, p)) {
    void *some[] = {b.id, b.cls};
    for (size_t i = 0; i < 2; i++) sel_free(p->mem, some[i]);
    return false;
  }
  while (more && !prep_spent(p)) {
    more = false;
    for (uint32_t i = 0; i < b.n; i++) more |= must_of(&b, i) && b.cyclic;
  }
  for (more = true; more && !prep_spent(p);) more = dominators(&b);
  if (!prep_spent(p)) {
    did = force_must(&b);
    did |= kill_cyclic(&b);
    if (!did) did = kill_beaten(&b);
  }
  close_bits(&b);
  return did;
}
