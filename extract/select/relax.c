/* The linear relaxation of a problem; see bb.c for what it says, solve.h for how rows are kept. */
#include "extract/select/solve.h"
#include <string.h>

/* ---- the rows of a problem ---- */
typedef struct maker {
  sel_rows *w;
  const sel_prob *q;
  struct {
    lp_term *p;
    uint32_t n, cap;
  } t;
  uint32_t *count; /* by class: nodes of the present class that have it as a child */
  uint32_t *at;    /* by class: the end of these in having */
  sel_u32s kids, having;
} maker;

static void put(maker *m, uint32_t col, double v) {
  SEL_PUSH(m->w->mem, &m->t, ((lp_term){col, v}));
}

static uint32_t keep(sel_rows *w, const lp_term *t, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) SEL_PUSH(w->mem, &w->term, t[i]);
  SEL_PUSH(w->mem, &w->first, w->term.n);
  SEL_PUSH(w->mem, &w->in_lp, 0);
  return w->in_lp.n - 1;
}

static void enter_lp(sel_rows *w, uint32_t row) {
  uint32_t from = w->first.p[row];
  lp_add_row(w->lp, w->term.p + from, w->first.p[row + 1] - from, 0);
  SEL_PUSH(w->mem, &w->id, row);
  w->in_lp.p[row] = 1;
}

void sel_rows_add(sel_rows *w, const lp_term *t, uint32_t n) { enter_lp(w, keep(w, t, n)); }

static void class_row(maker *m, uint32_t c) {
  m->t.n = 0;
  for (uint32_t v = m->q->cfirst[c]; v < m->q->cfirst[c + 1]; v++) put(m, v, 1);
  put(m, m->q->nn + c, -1);
  sel_rows_add(m->w, m->t.p, m->t.n);
}

/* The children of class c's nodes into kids, how many nodes have each into count, and those nodes
 * one after another. */
static void gather(maker *m, uint32_t c) {
  const sel_prob *q = m->q;
  uint32_t from = q->cfirst[c], end = q->cfirst[c + 1], n = 0;
  m->kids.n = 0;
  for (uint32_t i = q->kfirst[from]; i < q->kfirst[end]; i++)
    if (!m->count[q->kid[i]]++) SEL_PUSH(m->w->mem, &m->kids, q->kid[i]);
  for (uint32_t j = 0; j < m->kids.n; j++) m->at[m->kids.p[j]] = n, n += m->count[m->kids.p[j]];
  m->having.n = 0;
  for (uint32_t i = 0; i < n; i++) SEL_PUSH(m->w->mem, &m->having, 0);
  for (uint32_t v = from; v < end; v++)
    for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++) m->having.p[m->at[q->kid[i]]++] = v;
}

/* One row for each child of class c; when all its nodes have the child, y_c stands for their sum.
 */
static void pair_rows(maker *m, uint32_t c) {
  const sel_prob *q = m->q;
  uint32_t all = q->cfirst[c + 1] - q->cfirst[c];
  gather(m, c);
  for (uint32_t j = 0; j < m->kids.n; j++) {
    uint32_t k = m->kids.p[j];
    m->t.n = 0;
    put(m, q->nn + k, 1);
    if (m->count[k] == all) put(m, q->nn + c, -1);
    else
      for (uint32_t i = m->at[k] - m->count[k]; i < m->at[k]; i++) put(m, m->having.p[i], -1);
    m->count[k] = 0;
    keep(m->w, m->t.p, m->t.n);
  }
}

void sel_relaxation(sel_rows *w, sel_pool *mem, sel_run *r, const sel_prob *q) {
  *w = (sel_rows){.mem = mem, .lp = lp_new(mem, r, q->nn + q->nc)};
  maker m = {
      .w = w, .q = q, .count = SEL_NEW(mem, uint32_t, q->nc), .at = SEL_NEW(mem, uint32_t, q->nc)};
  SEL_PUSH(mem, &w->first, 0);
  memcpy(w->lp->cost, q->cost, q->nn * sizeof(double));
  for (uint32_t c = 0; c < q->nc; c++) class_row(&m, c);
  for (uint32_t c = 0; c < q->nc; c++) pair_rows(&m, c);
  void *scratch[] = {m.t.p, m.kids.p, m.having.p, m.count, m.at};
  for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++) sel_free(mem, scratch[i]);
}

/* ---- rows in and out of the programme ---- */
uint32_t sel_rows_violated(sel_rows *w, double by) {
  uint32_t found = 0;
  for (uint32_t row = 0; row < w->in_lp.n; row++) {
    if (w->in_lp.p[row]) continue;
    const double *x = w->lp->x; /* moves when a row enters */
    double sum = 0;
    for (uint32_t i = w->first.p[row]; i < w->first.p[row + 1]; i++)
      sum += w->term.p[i].v * x[w->term.p[i].at];
    if (sum < -by) enter_lp(w, row), found++;
  }
  return found;
}

void sel_rows_purge(sel_rows *w) {
  sel_lp *lp = w->lp;
  uint32_t idle = 0, m = 0;
  uint8_t *gone = SEL_NEW(w->mem, uint8_t, lp->m);
  for (uint32_t i = 0; i < lp->m; i++) {
    gone[i] = lp->place[lp->n + i] != NONE && lp->x[lp->n + i] > 1e-6;
    idle += gone[i];
  }
  if (idle > 200 && idle * 2 > lp->m) {
    for (uint32_t i = 0; i < lp->m; i++) {
      w->in_lp.p[w->id.p[i]] = !gone[i];
      if (!gone[i]) w->id.p[m++] = w->id.p[i];
    }
    w->id.n = m;
    lp_drop_rows(lp, gone);
  }
  sel_free(w->mem, gone);
}
