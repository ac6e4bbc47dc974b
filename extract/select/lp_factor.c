/* B = L U by columns, slack columns first (they need no elimination), then product-form updates.
 * See lp.h. */
#include "extract/select/lp.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
  lp_term *p;
  uint32_t n, cap;
} terms;

struct lp_factor {
  sel_pool *mem;
  uint32_t m, cap, first; /* steps before `first` are slacks: no L, diagonal -1 */
  uint32_t *slot;         /* by step: slot of the basis */
  uint32_t *row;          /* by step: pivot row */
  uint32_t *step;         /* by row: its step, NONE = not yet */
  double *diag;           /* by step */
  terms l, u;             /* l: rows; u: steps */
  uint32_t *lfirst, *ufirst;
  terms eta; /* by slot; each update is one run */
  struct {
    uint32_t *p;
    uint32_t n, cap;
  } eta_first, eta_slot;
  struct {
    double *p;
    uint32_t n, cap;
  } eta_pivot;
  double *work; /* by row, zero between uses */
  uint32_t *dfs, *at, *topo, *seen, stamp, *count;
};

lp_factor *lp_factor_new(sel_pool *mem) {
  lp_factor *f = SEL_NEW(mem, lp_factor, 1);
  f->mem = mem;
  return f;
}

static void size_factor(lp_factor *f, uint32_t m) {
  f->m = m;
  f->l.n = f->u.n = f->eta.n = f->eta_slot.n = f->eta_first.n = f->eta_pivot.n = 0;
  if (m <= f->cap) return;
  f->cap = m + m / 4 + 64;
  uint32_t **arrays[] = {&f->slot, &f->row, &f->step, &f->lfirst, &f->ufirst,
                         &f->dfs,  &f->at,  &f->topo, &f->seen,   &f->count};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
    sel_free(f->mem, *arrays[i]);
    *arrays[i] = SEL_NEW(f->mem, uint32_t, (size_t)f->cap + 1);
  }
  sel_free(f->mem, f->diag);
  sel_free(f->mem, f->work);
  f->diag = SEL_NEW(f->mem, double, f->cap);
  f->work = SEL_NEW(f->mem, double, f->cap);
  f->stamp = 0;
}

/* ---- order of the columns ---- */
/* Slacks, then structurals, peeling columns with one row left (their pivot is forced), then the
 * rest by count. */
typedef struct order {
  uint32_t *slot, n;
} order;

static uint32_t col_terms(const sel_lp *lp, uint32_t var, const lp_term **t) {
  *t = lp->col + lp->col_first[var];
  return lp->col_first[var + 1] - lp->col_first[var];
}

/* Columns of the basis over rows, for the peeling: chain[row] lists slots. */
typedef struct peel {
  uint32_t *left;          /* by slot: rows not yet taken */
  uint32_t *first, *slots; /* by row */
  uint8_t *gone;           /* by slot */
} peel;

static void peel_open(lp_factor *f, sel_lp *lp, peel *p) {
  uint32_t m = lp->m;
  p->left = SEL_NEW(f->mem, uint32_t, m);
  p->first = SEL_NEW(f->mem, uint32_t, (size_t)m + 2);
  p->gone = SEL_NEW(f->mem, uint8_t, m);
  const lp_term *t;
  for (uint32_t s = 0; s < m; s++) {
    if (lp->head[s] >= lp->n) continue;
    uint32_t n = col_terms(lp, lp->head[s], &t);
    for (uint32_t i = 0; i < n; i++) p->first[t[i].at + 2]++;
  }
  for (uint32_t i = 0; i < m; i++) p->first[i + 1] += p->first[i];
  p->first[m + 1] += p->first[m];
  p->slots = SEL_NEW(f->mem, uint32_t, p->first[m + 1]);
  for (uint32_t s = 0; s < m; s++) {
    if (lp->head[s] >= lp->n) continue;
    uint32_t n = col_terms(lp, lp->head[s], &t);
    for (uint32_t i = 0; i < n; i++) p->slots[p->first[t[i].at + 1]++] = s;
  }
}

static void take_row(peel *p, uint32_t row, sel_u32s *ones, sel_pool *mem) {
  for (uint32_t i = p->first[row]; i < p->first[row + 1]; i++) {
    uint32_t s = p->slots[i];
    if (!p->gone[s] && --p->left[s] == 1) SEL_PUSH(mem, ones, s);
  }
}

static int by_left(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void rest_by_count(lp_factor *f, peel *p, order *o, const sel_lp *lp) {
  struct {
    uint64_t *p;
    uint32_t n, cap;
  } rest = {0};
  for (uint32_t s = 0; s < lp->m; s++)
    if (!p->gone[s]) SEL_PUSH(f->mem, &rest, (uint64_t)p->left[s] << 32 | s);

  if (rest.n) qsort(rest.p, rest.n, sizeof *rest.p, by_left);
  for (uint32_t i = 0; i < rest.n; i++) o->slot[o->n++] = (uint32_t)rest.p[i];
  sel_free(f->mem, rest.p);
}

static void order_columns(lp_factor *f, sel_lp *lp, order *o) {
  peel p;
  sel_u32s ones = {0};
  peel_open(f, lp, &p);
  uint8_t *taken = SEL_NEW(f->mem, uint8_t, lp->m);
  const lp_term *t;
  o->n = 0;
  for (uint32_t s = 0; s < lp->m; s++)
    if (lp->head[s] >= lp->n) o->slot[o->n++] = s, p.gone[s] = 1, taken[lp->head[s] - lp->n] = 1;
  for (uint32_t s = 0; s < lp->m; s++) {
    if (p.gone[s]) continue;
    uint32_t n = col_terms(lp, lp->head[s], &t);
    for (uint32_t i = 0; i < n; i++) p.left[s] += !taken[t[i].at];
    if (p.left[s] == 1) SEL_PUSH(f->mem, &ones, s);
  }
  while (ones.n) {
    uint32_t s = ones.p[--ones.n];
    if (p.gone[s] || p.left[s] != 1) continue;
    uint32_t n = col_terms(lp, lp->head[s], &t), row = NONE;
    for (uint32_t i = 0; i < n; i++)
      if (!taken[t[i].at]) row = t[i].at;
    if (row == NONE) continue;
    p.gone[s] = 1;
    o->slot[o->n++] = s;
    taken[row] = 1;
    take_row(&p, row, &ones, f->mem);
  }
  rest_by_count(f, &p, o, lp);
  void *scratch[] = {p.left, p.first, p.slots, p.gone, taken, ones.p};
  for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++) sel_free(f->mem, scratch[i]);
}

/* ---- one column: solve L x = a over its pattern, found by depth-first search ---- */
static void reach(lp_factor *f, uint32_t row, uint32_t *n_topo) {
  uint32_t depth = 0;
  if (f->seen[row] == f->stamp) return;
  f->seen[row] = f->stamp;
  f->dfs[depth] = row;
  f->at[depth++] = 0;
  while (depth) {
    uint32_t r = f->dfs[depth - 1], k = f->step[r];
    uint32_t first = k == NONE ? 0 : f->lfirst[k], n = k == NONE ? 0 : f->lfirst[k + 1] - first;
    bool down = false;
    while (f->at[depth - 1] < n && !down) {
      uint32_t next = f->l.p[first + f->at[depth - 1]++].at;
      if (f->seen[next] == f->stamp) continue;
      f->seen[next] = f->stamp;
      f->dfs[depth] = next;
      f->at[depth++] = 0;
      down = true;
    }
    if (down) continue;
    f->topo[(*n_topo)++] = r;
    depth--;
  }
}

static uint32_t solve_column(lp_factor *f, const lp_term *t, uint32_t n) {
  uint32_t n_topo = 0;
  f->stamp++;
  for (uint32_t i = 0; i < n; i++) reach(f, t[i].at, &n_topo);
  for (uint32_t i = 0; i < n; i++) f->work[t[i].at] += t[i].v;
  for (uint32_t i = n_topo; i-- > 0;) {
    uint32_t r = f->topo[i], k = f->step[r];
    double v = f->work[r];
    if (k == NONE || v == 0) continue;
    for (uint32_t j = f->lfirst[k]; j < f->lfirst[k + 1]; j++)
      f->work[f->l.p[j].at] -= v * f->l.p[j].v;
  }
  return n_topo;
}

/* Of the rows without a step: large enough, then with few entries. */
static uint32_t choose_pivot(const lp_factor *f, uint32_t n_topo) {
  double most = 0;
  uint32_t best = NONE;
  for (uint32_t i = 0; i < n_topo; i++) {
    uint32_t r = f->topo[i];
    if (f->step[r] == NONE && fabs(f->work[r]) > most) most = fabs(f->work[r]);
  }
  if (most < 1e-9) return NONE;
  for (uint32_t i = 0; i < n_topo; i++) {
    uint32_t r = f->topo[i];
    if (f->step[r] != NONE || fabs(f->work[r]) < 0.1 * most) continue;
    if (best == NONE || f->count[r] < f->count[best] || (f->count[r] == f->count[best] && r < best))
      best = r;
  }
  return best;
}

static void store_column(lp_factor *f, uint32_t k, uint32_t pivot, uint32_t n_topo) {
  double p = f->work[pivot];
  for (uint32_t i = 0; i < n_topo; i++) {
    uint32_t r = f->topo[i], s = f->step[r];
    double v = f->work[r];
    f->work[r] = 0;
    if (r == pivot || fabs(v) < 1e-14) continue;
    if (s != NONE) SEL_PUSH(f->mem, &f->u, ((lp_term){s, v}));
    else SEL_PUSH(f->mem, &f->l, ((lp_term){r, v / p}));
  }
  f->diag[k] = p;
  f->row[k] = pivot;
  f->step[pivot] = k;
  f->lfirst[k + 1] = f->l.n;
  f->ufirst[k + 1] = f->u.n;
}

/* Structural columns without pivot leave the basis for the slacks of rows without one. */
static void repair(lp_factor *f, sel_lp *lp, const sel_u32s *bad) {
  uint32_t row = 0;
  for (uint32_t i = 0; i < bad->n; i++) {
    while (f->step[row] != NONE) row++;
    lp->place[lp->head[bad->p[i]]] = NONE;
    lp->head[bad->p[i]] = lp->n + row;
    lp->place[lp->n + row] = bad->p[i];
    row++;
  }
}

static void count_rows(lp_factor *f, const sel_lp *lp) {
  memset(f->count, 0, lp->m * sizeof *f->count);
  const lp_term *t;
  for (uint32_t s = 0; s < lp->m; s++) {
    if (lp->head[s] >= lp->n) continue;
    uint32_t n = col_terms(lp, lp->head[s], &t);
    for (uint32_t i = 0; i < n; i++) f->count[t[i].at]++;
  }
}

bool lp_factorise(lp_factor *f, sel_lp *lp) {
  size_factor(f, lp->m);
  order o = {.slot = f->slot};
  order_columns(f, lp, &o);
  count_rows(f, lp);
  memset(f->step, 0xff, lp->m * sizeof *f->step);
  f->lfirst[0] = f->ufirst[0] = 0;
  sel_u32s bad = {0};
  uint32_t k = 0;
  for (uint32_t i = 0; i < lp->m; i++) {
    uint32_t s = o.slot[i], var = lp->head[s];
    const lp_term *t, unit = {var - lp->n, -1};
    uint32_t n = 1;
    if (var >= lp->n) t = &unit, f->first = k + 1;
    else n = col_terms(lp, var, &t);
    uint32_t n_topo = solve_column(f, t, n), pivot = choose_pivot(f, n_topo);
    if (pivot == NONE) {
      for (uint32_t j = 0; j < n_topo; j++) f->work[f->topo[j]] = 0;
      SEL_PUSH(f->mem, &bad, s);
      continue;
    }
    store_column(f, k, pivot, n_topo);
    f->slot[k++] = s;
  }
  if (!lp->m || lp->head[f->slot[0]] < lp->n) f->first = 0;
  if (bad.n) repair(f, lp, &bad);
  uint32_t n_bad = bad.n;
  sel_free(f->mem, bad.p);
  return !n_bad;
}

/* ---- solves ---- */
void lp_ftran(lp_factor *f, double *v, double *out) {
  for (uint32_t k = f->first; k < f->m; k++) {
    double x = v[f->row[k]];
    if (x == 0) continue;
    for (uint32_t j = f->lfirst[k]; j < f->lfirst[k + 1]; j++) v[f->l.p[j].at] -= x * f->l.p[j].v;
  }
  for (uint32_t k = f->m; k-- > f->first;) {
    double x = v[f->row[k]];
    if (x == 0) {
      out[f->slot[k]] = 0;
      continue;
    }
    out[f->slot[k]] = x /= f->diag[k];
    for (uint32_t j = f->ufirst[k]; j < f->ufirst[k + 1]; j++)
      v[f->row[f->u.p[j].at]] -= x * f->u.p[j].v;
  }
  for (uint32_t k = 0; k < f->first; k++) out[f->slot[k]] = -v[f->row[k]];
  for (uint32_t e = 0; e < f->eta_slot.n; e++) {
    uint32_t s = f->eta_slot.p[e], end = e + 1 < f->eta_slot.n ? f->eta_first.p[e + 1] : f->eta.n;
    if (out[s] == 0) continue;
    double x = out[s] /= f->eta_pivot.p[e];
    for (uint32_t j = f->eta_first.p[e]; j < end; j++) out[f->eta.p[j].at] -= x * f->eta.p[j].v;
  }
}

void lp_btran(lp_factor *f, double *v, double *out) {
  for (uint32_t e = f->eta_slot.n; e-- > 0;) {
    uint32_t s = f->eta_slot.p[e], end = e + 1 < f->eta_slot.n ? f->eta_first.p[e + 1] : f->eta.n;
    double x = v[s];
    for (uint32_t j = f->eta_first.p[e]; j < end; j++) x -= f->eta.p[j].v * v[f->eta.p[j].at];
    v[s] = x / f->eta_pivot.p[e];
  }
  for (uint32_t k = 0; k < f->first; k++) out[f->row[k]] = -v[f->slot[k]];
  for (uint32_t k = f->first; k < f->m; k++) {
    double x = v[f->slot[k]];
    for (uint32_t j = f->ufirst[k]; j < f->ufirst[k + 1]; j++)
      x -= f->u.p[j].v * out[f->row[f->u.p[j].at]];
    out[f->row[k]] = x / f->diag[k];
  }
  for (uint32_t k = f->m; k-- > f->first;) {
    double x = out[f->row[k]];
    for (uint32_t j = f->lfirst[k]; j < f->lfirst[k + 1]; j++) x -= f->l.p[j].v * out[f->l.p[j].at];
    out[f->row[k]] = x;
  }
}

void lp_update(lp_factor *f, const double *alpha, uint32_t slot) {
  SEL_PUSH(f->mem, &f->eta_slot, slot);
  SEL_PUSH(f->mem, &f->eta_first, f->eta.n);
  SEL_PUSH(f->mem, &f->eta_pivot, alpha[slot]);
  for (uint32_t s = 0; s < f->m; s++)
    if (s != slot && fabs(alpha[s]) > 1e-13) SEL_PUSH(f->mem, &f->eta, ((lp_term){s, alpha[s]}));
}

bool lp_factor_full(const lp_factor *f) {
  return f->eta_slot.n >= 100 || f->eta.n > 3 * (f->l.n + f->u.n) + 4 * f->m + 2000;
}
