/* Zero-half cuts (Caprara & Fischetti 1996): half the sum of rows, rounded up.
 *
 * All rows of the relaxation have whole coefficients and say a x >= 0; every column is 0 or 1 in a
 * selection. Add some rows. Where the sum is odd in a column add x >= 0, or 1 - x >= 0 if the
 * present point is nearer to that; then half of it has whole coefficients, and when an odd number
 * of columns was taken from 1 its right side may be rounded up by a half. The point violates the
 * result when the slacks of the rows and what was added come to less than 1. This is what
 * three classes lack of which each two share a child: the relaxation takes half of every child.
 *
 * Which rows: elimination modulo 2 (Koster, Zymolka & Kutschka 2009). Columns at 0 or 1 cost
 * nothing and are left out; the others go in order of their distance from that, each with the
 * shortest tight row that has it. Sums that become long are left as they are. The arithmetic of the
 * cut itself is in whole numbers, so nothing is rounded but by intention.
 */
#include "extract/select/solve.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_COLS = 32, MOST_ROWS = 32, MOST_COEF = 8 };

typedef struct sum {
  uint32_t col[MOST_COLS], row[MOST_ROWS]; /* where it is odd; of which rows. Both rise */
  uint32_t n_col, n_row;
  uint64_t seen; /* a bit for each column, modulo 64 */
  double slack;
  bool odd;
} sum;

typedef struct halves {
  sel_run *r;
  sel_pool *mem;
  const sel_prob *q;
  const sel_lp *lp;
  sum *s;
  uint32_t n;
  uint8_t *used;  /* by sum: it has eliminated a column */
  double *weight; /* by column: distance from 0 or 1 */
  int32_t *coef;  /* by column, while a cut is made */
  uint8_t *met;
  uint32_t *touched, n_touched;
} halves;

typedef struct ranked {
  double merit;
  uint32_t at;
} ranked;

static const double tight = 1e-6, least_left = 0.06;

static bool odd(double v) { return lrint(v) & 1; }

/* Reads a row; false where it has too much to be of use. */
static bool open_sum(halves *h, uint32_t row, sum *s) {
  const sel_lp *lp = h->lp;
  *s = (sum){.n_row = 1, .slack = fmax(lp->x[lp->n + row], 0)};
  s->row[0] = row;
  if (s->slack > 0.9) return false;
  for (uint32_t i = lp->row[row]; i < lp->row[row + 1]; i++) {
    lp_term t = lp->term.p[i];
    if (!odd(t.v)) continue;
    if (lp->x[t.at] > 0.5) s->odd = !s->odd;
    if (h->weight[t.at] <= tight) continue;
    if (s->n_col == MOST_COLS) return false;
    uint32_t at = s->n_col++;
    for (; at && s->col[at - 1] > t.at; at--) s->col[at] = s->col[at - 1];
    s->col[at] = t.at;
    s->seen |= 1ull << t.at % 64;
  }
  return true;
}

/* What is in one of two rising lists; how many, or most + 1 when they are more. */
static uint32_t differ(const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t m, uint32_t *out,
                       uint32_t most) {
  uint32_t i = 0, j = 0, k = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[i] == b[j]) {
      i++, j++;
      continue;
    }
    if (k == most) return most + 1;
    out[k++] = j == m || (i < n && a[i] < b[j]) ? a[i++] : b[j++];
  }
  return k;
}

static void add_sum(sum *s, const sum *with) {
  sum t = {.odd = s->odd != with->odd, .slack = s->slack + with->slack};
  if (t.slack > 1) return;
  t.n_col = differ(s->col, s->n_col, with->col, with->n_col, t.col, MOST_COLS);
  t.n_row = differ(s->row, s->n_row, with->row, with->n_row, t.row, MOST_ROWS);
  if (t.n_col > MOST_COLS || t.n_row > MOST_ROWS) return;
  for (uint32_t i = 0; i < t.n_col; i++) t.seen |= 1ull << t.col[i] % 64;
  *s = t;
}

static bool has(const sum *s, uint32_t col) {
  if (!(s->seen >> col % 64 & 1)) return false;
  for (uint32_t i = 0; i < s->n_col && s->col[i] <= col; i++)
    if (s->col[i] == col) return true;
  return false;
}

static void eliminate(halves *h, uint32_t col) {
  uint32_t best = NONE;
  for (uint32_t i = 0; i < h->n; i++)
    if (!h->used[i] && h->s[i].slack <= tight && has(&h->s[i], col) &&
        (best == NONE || h->s[i].n_col + h->s[i].n_row < h->s[best].n_col + h->s[best].n_row))
      best = i;
  if (best == NONE) return;
  h->used[best] = 1;
  for (uint32_t i = 0; i < h->n; i++)
    if (i != best && has(&h->s[i], col)) add_sum(&h->s[i], &h->s[best]);
}

static int by_merit(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->merit != y->merit) return x->merit > y->merit ? -1 : 1;
  return (x->at > y->at) - (x->at < y->at);
}

/* The columns between 0 and 1, the ones that cost most to leave in first. */
static void eliminate_all(halves *h) {
  uint32_t all = h->lp->n, n = 0;
  ranked *c = SEL_NEW(h->mem, ranked, all);
  for (uint32_t j = 0; j < all; j++)
    if (h->weight[j] > tight) c[n++] = (ranked){h->weight[j], j};
  qsort(c, n, sizeof *c, by_merit);
  for (uint32_t i = 0; i < n && !sel_stop(h->r, h->n); i++) eliminate(h, c[i].at);
  sel_free(h->mem, c);
}

/* ---- rows ---- */
static void count(halves *h, uint32_t col, int32_t by) {
  if (!h->met[col]) h->touched[h->n_touched++] = col;
  h->met[col] = 1;
  h->coef[col] += by;
}

/* The sum of the rows by column, made even; returns how many columns were taken from 1. */
static int32_t add_up(halves *h, const sum *s) {
  const sel_lp *lp = h->lp;
  int32_t from_one = 0;
  h->n_touched = 0;
  for (uint32_t k = 0; k < s->n_row; k++)
    for (uint32_t i = lp->row[s->row[k]]; i < lp->row[s->row[k] + 1]; i++)
      count(h, lp->term.p[i].at, (int32_t)lrint(lp->term.p[i].v));
  for (uint32_t i = 0; i < h->n_touched; i++) {
    uint32_t j = h->touched[i];
    if (!(h->coef[j] & 1)) continue;
    bool top = lp->x[j] > 0.5;
    h->coef[j] += top ? -1 : 1;
    from_one += top;
  }
  return from_one;
}

/* Half of it with its right side rounded up, which goes to a root's column: that is 1. */
static bool add_half(halves *h, const sum *s, sel_rows *w) {
  struct {
    lp_term *p;
    uint32_t n, cap;
  } row = {0};
  int32_t from_one = add_up(h, s);
  bool good = from_one & 1;
  double left = 0;
  count(h, h->q->nn + h->q->root[0], from_one - 1);
  for (uint32_t i = 0; i < h->n_touched; i++) {
    uint32_t j = h->touched[i];
    int32_t a = h->coef[j] / 2;
    h->coef[j] = h->met[j] = 0;
    if (!a) continue;
    good = good && abs(a) <= MOST_COEF;
    left += a * h->lp->x[j];
    SEL_PUSH(h->mem, &row, ((lp_term){j, a}));
  }
  good = good && left < -least_left / 2;
  if (good) sel_rows_add(w, row.p, row.n);
  sel_free(h->mem, row.p);
  return good;
}

static double violation(const halves *h, const sum *s) {
  double room = 1 - s->slack;
  if (!s->odd) return 0;
  for (uint32_t i = 0; i < s->n_col; i++) room -= h->weight[s->col[i]];
  return room;
}

static uint32_t add_best(halves *h, sel_rows *w, uint32_t most) {
  uint32_t n = 0, added = 0;
  ranked *c = SEL_NEW(h->mem, ranked, h->n);
  for (uint32_t i = 0; i < h->n; i++) {
    double room = violation(h, &h->s[i]);
    if (room > least_left) c[n++] = (ranked){room / sqrt(1. + h->s[i].n_row), i};
  }
  qsort(c, n, sizeof *c, by_merit);
  for (uint32_t i = 0; i < n && added < most; i++) added += add_half(h, &h->s[c[i].at], w);
  sel_free(h->mem, c);
  return added;
}

uint32_t sel_half_cuts(sel_run *r, sel_pool *mem, const sel_prob *q, sel_rows *w, uint32_t most) {
  const sel_lp *lp = w->lp;
  halves h = {.r = r, .mem = mem, .q = q, .lp = lp};
  h.s = SEL_NEW(mem, sum, lp->m);
  h.used = SEL_NEW(mem, uint8_t, lp->m);
  h.weight = SEL_NEW(mem, double, lp->n);
  h.coef = SEL_NEW(mem, int32_t, lp->n);
  h.touched = SEL_NEW(mem, uint32_t, lp->n);
  h.met = SEL_NEW(mem, uint8_t, lp->n);
  for (uint32_t j = 0; j < lp->n; j++) h.weight[j] = fmax(fmin(lp->x[j], 1 - lp->x[j]), 0);
  for (uint32_t i = 0; i < lp->m; i++) h.n += open_sum(&h, i, &h.s[h.n]);
  eliminate_all(&h);
  uint32_t added = r->stop ? 0 : add_best(&h, w, most);
  void *all[] = {h.s, h.used, h.weight, h.coef, h.met, h.touched};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sel_free(mem, all[i]);
  return added;
}
