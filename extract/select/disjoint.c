/* A bound from parts that cannot share. Where the classes below two children of a node have nothing
 * in common, what is chosen below them is paid twice over; where they may share, at least the
 * dearer of the two is paid. So with
 *   L(c) = min over its nodes of  cost + sum over groups of children that may share, of the
 *                                 greatest L in the group
 * L of a root is at most its dag cost; on trees it is the tree cost. Applied to reduced costs it
 * adds to the bound that gave them. Computed by Knuth's algorithm, so cycles do no harm. Without
 * groups all children may share: then L is the dearest path, in linear time.
 */
#include "extract/select/solve.h"
#include <string.h>

struct sel_apart {
  const sel_prob *q;
  uint32_t *group;      /* by kid: number of its group in the node */
  uint32_t *root_group; /* by root */
  const double *extra;  /* by class, while a bound is computed; or NULL */
  const double *cost;   /* by node */
  double *most;         /* scratch by group */
  uint32_t *choice;
  double *value;
};

enum { MOST_CLASSES = 6000 };

/* ---- what lies below: bit sets, to a fixpoint ---- */
static bool join(uint64_t *into, const uint64_t *from, uint32_t words) {
  uint64_t more = 0;
  for (uint32_t w = 0; w < words; w++) {
    more |= from[w] & ~into[w];
    into[w] |= from[w];
  }
  return more != 0;
}

static uint64_t *below(sel_run *r, sel_pool *mem, const sel_prob *q, uint32_t words) {
  uint64_t *s = SEL_NEW(mem, uint64_t, (size_t)q->nc * words);
  for (uint32_t c = 0; c < q->nc; c++) s[(size_t)c * words + c / 64] |= 1ull << c % 64;
  uint32_t *scc = SEL_NEW(mem, uint32_t, q->nc), *order = SEL_NEW(mem, uint32_t, q->nc);
  uint32_t *count = SEL_NEW(mem, uint32_t, (size_t)q->nc + 1);
  sel_prob_scc(mem, q, scc); /* numbered children first */
  for (uint32_t c = 0; c < q->nc; c++) count[scc[c] + 1]++;
  for (uint32_t c = 0; c < q->nc; c++) count[c + 1] += count[c];
  for (uint32_t c = 0; c < q->nc; c++) order[count[scc[c]]++] = c;
  for (bool more = true; more && !r->stop;) {
    more = false;
    for (uint32_t i = 0; i < q->nc; i++) {
      uint32_t c = order[i], from = q->kfirst[q->cfirst[c]], end = q->kfirst[q->cfirst[c + 1]];
      for (uint32_t k = from; k < end; k++) {
        bool up = join(s + (size_t)c * words, s + (size_t)q->kid[k] * words, words);
        more |= up && scc[q->kid[k]] == scc[c];
      }
      sel_stop(r, (uint64_t)(end - from) * words / 4);
    }
  }
  void *all[] = {scc, order, count};
  for (size_t i = 0; i < 3; i++) sel_free(mem, all[i]);
  return s;
}

static bool meet(const uint64_t *a, const uint64_t *b, uint32_t words) {
  for (uint32_t w = 0; w < words; w++)
    if (a[w] & b[w]) return true;
  return false;
}

/* Groups n classes by what they may share, transitively; returns how many groups. */
static uint32_t find_groups(const uint64_t *s, uint32_t words, const uint32_t *cls, uint32_t n,
                            uint32_t *group) {
  uint32_t groups = 0;
  for (uint32_t i = 0; i < n; i++) {
    group[i] = NONE;
    for (uint32_t j = 0; j < i; j++) {
      uint32_t old = group[i];
      if (group[j] == old || !meet(s + (size_t)cls[i] * words, s + (size_t)cls[j] * words, words))
        continue;
      if (old == NONE) group[i] = group[j];
      else
        for (uint32_t k = 0; k <= i; k++)
          if (group[k] == old) group[k] = group[j];
    }
    if (group[i] == NONE) group[i] = groups++;
  }
  return groups;
}

static void separate(sel_apart *a, sel_run *r, sel_pool *mem) {
  const sel_prob *q = a->q;
  uint32_t words = (q->nc + 63) / 64;
  uint64_t *s = below(r, mem, q, words);
  for (uint32_t v = 0; v < q->nn; v++)
    find_groups(s, words, q->kid + q->kfirst[v], q->kfirst[v + 1] - q->kfirst[v],
                a->group + q->kfirst[v]);
  find_groups(s, words, q->root, q->nr, a->root_group);
  sel_free(mem, s);
}

sel_apart *sel_apart_new(sel_run *r, sel_pool *mem, const sel_prob *q, bool groups) {
  if (!q->nc) return NULL;
  uint32_t widest = q->nr;
  sel_apart *a = SEL_NEW(mem, sel_apart, 1);
  a->q = q;
  a->group = SEL_NEW(mem, uint32_t, q->nk);
  a->root_group = SEL_NEW(mem, uint32_t, q->nr);
  for (uint32_t v = 0; v < q->nn; v++)
    if (q->kfirst[v + 1] - q->kfirst[v] > widest) widest = q->kfirst[v + 1] - q->kfirst[v];
  a->most = SEL_NEW(mem, double, widest);
  a->choice = SEL_NEW(mem, uint32_t, q->nc);
  a->value = SEL_NEW(mem, double, q->nc);
  if (groups && q->nc <= MOST_CLASSES) separate(a, r, mem);
  return r->stop ? NULL : a;
}

static double together(sel_apart *a, const uint32_t *group, const double *value, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) a->most[i] = 0;
  for (uint32_t i = 0; i < n; i++)
    if (value[i] > a->most[group[i]]) a->most[group[i]] = value[i];
  for (uint32_t i = 0; i < n; i++) sum += a->most[i];
  return sum;
}

static double term(void *user, uint32_t v, const double *kid, uint32_t n) {
  sel_apart *a = user;
  double own = a->cost[v] + (a->extra ? a->extra[a->q->ncls[v]] : 0);
  return own + together(a, a->group + a->q->kfirst[v], kid, n);
}

double sel_apart_bound(sel_apart *a, sel_pool *mem, const tarn_sel_view *g, const double *cost,
                       const double *extra) {
  tarn_sel_cost own = {.term = term, .user = a};
  a->cost = cost, a->extra = extra;
  sel_tree(mem, g, cost, &own, a->choice, a->value, NULL);
  double *at_root = SEL_NEW(mem, double, a->q->nr);
  for (uint32_t i = 0; i < a->q->nr; i++) at_root[i] = a->value[a->q->root[i]];
  double sum = together(a, a->root_group, at_root, a->q->nr);
  sel_free(mem, at_root);
  return sum;
}
