/* The linear relaxation of a problem; see bb.c for what it says. Columns: nodes, then classes. */
#include "extract/select/solve.h"
#include <string.h>

typedef struct rows {
  sel_pool *mem;
  const sel_prob *q;
  sel_lp *lp;
  struct { lp_term *p; uint32_t n, cap; } t;
  uint32_t *count;  /* by class: nodes of the present class that have it as a child */
  sel_u32s kids;    /* those classes */
} rows;

static void put(rows *w, uint32_t col, double v) { SEL_PUSH(w->mem, &w->t, ((lp_term){col, v})); }

static void end_row(rows *w) {
  lp_add_row(w->lp, w->t.p, w->t.n, 0);
  w->t.n = 0;
}

static void class_row(rows *w, uint32_t c) {
  for (uint32_t v = w->q->cfirst[c]; v < w->q->cfirst[c + 1]; v++) put(w, v, 1);
  put(w, w->q->nn + c, -1);
  end_row(w);
}

static bool has_kid(const sel_prob *q, uint32_t v, uint32_t k) {
  for (uint32_t i = q->kfirst[v]; i < q->kfirst[v + 1]; i++)
    if (q->kid[i] == k) return true;
  return false;
}

/* One row for each child of class c; when all its nodes have the child, y_c stands for their sum. */
static void pair_rows(rows *w, uint32_t c) {
  const sel_prob *q = w->q;
  uint32_t from = q->cfirst[c], end = q->cfirst[c + 1];
  w->kids.n = 0;
  for (uint32_t i = q->kfirst[from]; i < q->kfirst[end]; i++)
    if (!w->count[q->kid[i]]++) SEL_PUSH(w->mem, &w->kids, q->kid[i]);
  for (uint32_t j = 0; j < w->kids.n; j++) {
    uint32_t k = w->kids.p[j];
    put(w, q->nn + k, 1);
    if (w->count[k] == end - from) put(w, q->nn + c, -1);
    for (uint32_t v = from; v < end && w->count[k] < end - from; v++)
      if (has_kid(q, v, k)) put(w, v, -1);
    w->count[k] = 0;
    end_row(w);
  }
}

sel_lp *sel_relaxation(sel_pool *mem, sel_run *r, const sel_prob *q) {
  rows w = {.mem = mem, .q = q, .lp = lp_new(mem, r, q->nn + q->nc), .count = SEL_NEW(mem, uint32_t, q->nc)};
  memcpy(w.lp->cost, q->cost, q->nn * sizeof(double));
  for (uint32_t c = 0; c < q->nc; c++) class_row(&w, c);
  for (uint32_t c = 0; c < q->nc; c++) pair_rows(&w, c);
  sel_free(mem, w.t.p);
  sel_free(mem, w.kids.p);
  sel_free(mem, w.count);
  return w.lp;
}
