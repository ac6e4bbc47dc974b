/* Dual simplex. See lp.h. */
#include "extract/select/lp.h"
#include <string.h>

enum { PASSES = 20 }; /* how often we factorise anew for the sake of the numbers before giving up */
static const double feasible = 1e-9, pivot_least = 1e-7;

sel_lp *lp_new(sel_pool *mem, sel_run *run, uint32_t n) {
  sel_lp *lp = SEL_NEW(mem, sel_lp, 1);
  lp->mem = mem, lp->run = run, lp->n = n;
  lp->cost = SEL_NEW(mem, double, n);
  lp->lo = SEL_NEW(mem, double, n);
  lp->up = SEL_NEW(mem, double, n);
  for (uint32_t j = 0; j < n; j++) lp->up[j] = 1;
  lp->col_first = SEL_NEW(mem, uint32_t, (size_t)n + 2);
  lp->row = SEL_NEW(mem, uint32_t, 1);
  lp->x = SEL_NEW(mem, double, n);
  lp->d = SEL_NEW(mem, double, n);
  lp->place = sel_resize(mem, NULL, n, sizeof(uint32_t));
  memset(lp->place, 0xff, n * sizeof(uint32_t));
  lp->f = lp_factor_new(mem);
  lp->cols_stale = true;
  return lp;
}

/* ---- rows ---- */
static void grow_rows(sel_lp *lp) {
  uint32_t cap = lp->cap_rows = lp->cap_rows ? 2 * lp->cap_rows : 256;
  sel_pool *p = lp->mem;
  size_t all = (size_t)lp->n + cap;
  lp->rhs = sel_resize(p, lp->rhs, cap, 8);
  lp->row = sel_resize(p, lp->row, (size_t)cap + 1, 4);
  lp->head = sel_resize(p, lp->head, cap, 4);
  double **by_row[] = {&lp->weight, &lp->rho, &lp->alpha, &lp->tau, &lp->pi};
  for (size_t i = 0; i < 5; i++) *by_row[i] = sel_resize(p, *by_row[i], cap, 8);
  lp->place = sel_resize(p, lp->place, all, 4);
  lp->x = sel_resize(p, lp->x, all, 8);
  lp->d = sel_resize(p, lp->d, all, 8);
  lp->price = sel_resize(p, lp->price, all, 8);
  memset(lp->price, 0, all * 8);
  lp->touched = sel_resize(p, lp->touched, all, 4);
}

void lp_add_row(sel_lp *lp, const lp_term *t, uint32_t n, double rhs) {
  if (lp->m == lp->cap_rows) grow_rows(lp);
  for (uint32_t i = 0; i < n; i++) SEL_PUSH(lp->mem, &lp->term, t[i]);
  uint32_t r = lp->m++, var = lp->n + r;
  lp->row[r + 1] = lp->term.n;
  lp->rhs[r] = rhs;
  lp->head[r] = var;
  lp->place[var] = r;
  lp->d[var] = 0;
  lp->weight[r] = 1;
  lp->pi[r] = 0;
  lp->cols_stale = true, lp->fresh = false;
}

/* Slots are numbered anew: the basis keeps its other variables. */
void lp_drop_rows(sel_lp *lp, const uint8_t *gone) {
  uint32_t m = 0, slots = 0, terms = 0, n = lp->n;
  uint32_t *to = SEL_NEW(lp->mem, uint32_t, lp->m);
  for (uint32_t r = 0; r < lp->m; r++) {
    uint32_t from = lp->row[r], end = lp->row[r + 1];
    to[r] = m;
    if (gone[r]) continue;
    lp->row[m] = terms;
    for (uint32_t i = from; i < end; i++) lp->term.p[terms++] = lp->term.p[i];
    lp->rhs[m] = lp->rhs[r];
    lp->place[n + m] = lp->place[n + r];
    lp->x[n + m] = lp->x[n + r];
    lp->d[n + m] = lp->d[n + r];
    m++;
  }
  lp->row[m] = lp->term.n = terms;
  for (uint32_t s = 0; s < lp->m; s++) {
    uint32_t v = lp->head[s];
    if (v >= n && gone[v - n]) continue;
    lp->head[slots] = v < n ? v : n + to[v - n];
    lp->weight[slots] = lp->weight[s];
    lp->place[lp->head[slots]] = slots;
    slots++;
  }
  lp->m = m;
  lp->cols_stale = true, lp->fresh = false;
  sel_free(lp->mem, to);
}

void lp_columns(sel_lp *lp) {
  uint32_t *f = lp->col_first;
  sel_free(lp->mem, lp->col);
  lp->col = sel_resize(lp->mem, NULL, lp->term.n, sizeof *lp->col);
  memset(f, 0, ((size_t)lp->n + 2) * sizeof *f);
  for (uint32_t i = 0; i < lp->term.n; i++) f[lp->term.p[i].at + 2]++;
  for (uint32_t j = 0; j <= lp->n; j++) f[j + 1] += f[j];
  for (uint32_t r = 0; r < lp->m; r++)
    for (uint32_t i = lp->row[r]; i < lp->row[r + 1]; i++)
      lp->col[f[lp->term.p[i].at + 1]++] = (lp_term){r, lp->term.p[i].v};
  lp->cols_stale = false;
}

static double low(const sel_lp *lp, uint32_t v) {
  return v < lp->n ? lp->lo[v] : lp->rhs[v - lp->n];
}
static bool is_fixed(const sel_lp *lp, uint32_t v) { return v < lp->n && lp->up[v] <= lp->lo[v]; }

/* ---- from the basis: values, reduced costs ---- */
static void compute_values(sel_lp *lp) {
  double *b = lp->rho;
  memset(b, 0, lp->m * sizeof *b);
  for (uint32_t v = 0; v < lp->n + lp->m; v++) {
    if (lp->place[v] != NONE) continue;
    double x = lp->x[v] = low(lp, v);
    if (x == 0) continue;
    if (v >= lp->n) b[v - lp->n] += x;
    else
      for (uint32_t i = lp->col_first[v]; i < lp->col_first[v + 1]; i++)
        b[lp->col[i].at] -= lp->col[i].v * x;
  }
  lp_ftran(lp->f, b, lp->alpha);
  for (uint32_t s = 0; s < lp->m; s++) lp->x[lp->head[s]] = lp->alpha[s];
}

static void compute_multipliers(sel_lp *lp) {
  for (uint32_t s = 0; s < lp->m; s++)
    lp->alpha[s] = lp->head[s] < lp->n ? lp->cost[lp->head[s]] : 0;
  lp_btran(lp->f, lp->alpha, lp->pi);
}

static void reduce_costs(sel_lp *lp, double *d) {
  for (uint32_t j = 0; j < lp->n; j++) {
    double s = lp->cost[j];
    for (uint32_t i = lp->col_first[j]; i < lp->col_first[j + 1]; i++)
      s -= lp->pi[lp->col[i].at] * lp->col[i].v;
    d[j] = s;
  }
}

static void compute_duals(sel_lp *lp) {
  compute_multipliers(lp);
  reduce_costs(lp, lp->d);
  for (uint32_t r = 0; r < lp->m; r++) lp->d[lp->n + r] = lp->pi[r];
  for (uint32_t s = 0; s < lp->m; s++) lp->d[lp->head[s]] = 0;
}

static void refactor(sel_lp *lp) {
  if (lp->fresh) return;
  if (lp->cols_stale) lp_columns(lp);
  while (!lp_factorise(lp->f, lp))
    for (uint32_t s = 0; s < lp->m; s++) lp->weight[s] = 1;
  compute_values(lp);
  compute_duals(lp);
  lp->fresh = true;
}

void lp_set(sel_lp *lp, uint32_t j, double lo, double up) {
  lp->lo[j] = lo, lp->up[j] = up, lp->fresh = false;
}

size_t lp_basis_words(const sel_lp *lp) { return ((size_t)lp->n + lp->m + 63) / 64; }

void lp_save(const sel_lp *lp, uint64_t *bits) {
  memset(bits, 0, lp_basis_words(lp) * 8);
  for (uint32_t s = 0; s < lp->m; s++) bits[lp->head[s] >> 6] |= 1ull << (lp->head[s] & 63);
}

/* Rows added since the saving have their slacks in the basis. */
void lp_restore(sel_lp *lp, const uint64_t *bits, size_t words) {
  uint32_t all = lp->n + lp->m, s = 0;
  memset(lp->place, 0xff, all * sizeof *lp->place);
  for (uint32_t v = 0; v < all; v++) {
    bool in = v >> 6 < words ? bits[v >> 6] >> (v & 63) & 1 : true;
    if (!in || s == lp->m) continue;
    lp->head[s] = v;
    lp->place[v] = s++;
  }
  for (uint32_t r = 0; s < lp->m; r++) {
    if (lp->place[lp->n + r] != NONE) continue;
    lp->head[s] = lp->n + r;
    lp->place[lp->n + r] = s++;
  }
  for (uint32_t i = 0; i < lp->m; i++) lp->weight[i] = 1;
  lp->fresh = false;
}

/* ---- one pivot ---- */
static uint32_t choose_leaving(const sel_lp *lp) {
  double most = 0;
  uint32_t best = NONE;
  for (uint32_t s = 0; s < lp->m; s++) {
    uint32_t v = lp->head[s];
    double gap = low(lp, v) - lp->x[v];
    if (gap < 0 && is_fixed(lp, v)) gap = -gap;
    if (gap <= feasible) continue;
    if (gap * gap > most * lp->weight[s]) most = gap * gap / lp->weight[s], best = s;
  }
  return best;
}

static void add_price(sel_lp *lp, uint32_t v, double x) {
  if (lp->price[v] == 0) lp->touched[lp->n_touched++] = v;
  lp->price[v] += x;
  if (lp->price[v] == 0) lp->price[v] = 1e-300;
}

/* Row r of the inverse times the columns outside the basis, negated for a variable that must grow.
 */
static void price_row(sel_lp *lp, double sign) {
  lp->n_touched = 0;
  for (uint32_t i = 0; i < lp->m; i++) {
    double y = lp->rho[i] * sign;
    if (fabs(y) < 1e-13) continue;
    if (lp->place[lp->n + i] == NONE) add_price(lp, lp->n + i, -y);
    for (uint32_t k = lp->row[i]; k < lp->row[i + 1]; k++)
      if (lp->place[lp->term.p[k].at] == NONE) add_price(lp, lp->term.p[k].at, y * lp->term.p[k].v);
  }
}

static void clear_price(sel_lp *lp) {
  for (uint32_t i = 0; i < lp->n_touched; i++) lp->price[lp->touched[i]] = 0;
  lp->n_touched = 0;
}

/* Harris: the least ratio with a little slack, then the largest pivot within it. */
static uint32_t choose_entering(const sel_lp *lp) {
  double most = INFINITY, size = 0;
  uint32_t best = NONE;
  for (uint32_t i = 0; i < lp->n_touched; i++) {
    uint32_t v = lp->touched[i];
    double a = lp->price[v], d = lp->d[v] > 0 ? lp->d[v] : 0;
    if (a > pivot_least && !is_fixed(lp, v) && (d + 1e-9) / a < most) most = (d + 1e-9) / a;
  }
  for (uint32_t i = 0; i < lp->n_touched; i++) {
    uint32_t v = lp->touched[i];
    double a = lp->price[v], d = lp->d[v] > 0 ? lp->d[v] : 0;
    if (a <= pivot_least || is_fixed(lp, v) || d / a > most) continue;
    if (a > size || (a == size && v < best)) size = a, best = v;
  }
  return best;
}

static void update_weights(sel_lp *lp, uint32_t slot) {
  double w = lp->weight[slot], p = lp->alpha[slot];
  for (uint32_t s = 0; s < lp->m; s++) {
    double a = lp->alpha[s];
    if (s == slot || a == 0) continue;
    double q = a / p, v = lp->weight[s] - 2 * q * lp->tau[s] + q * q * w, least = 1e-4 + q * q;
    lp->weight[s] = v > least ? v : least;
  }
  lp->weight[slot] = fmax(w / (p * p), 1e-4);
}

static void exchange(sel_lp *lp, uint32_t slot, uint32_t in, double sign) {
  uint32_t out = lp->head[slot];
  double target = low(lp, out), step = (lp->x[out] - target) / lp->alpha[slot];
  double theta = (lp->d[in] > 0 ? lp->d[in] : 0) / lp->price[in];
  lp->z += theta * fabs(lp->x[out] - target);
  for (uint32_t i = 0; i < lp->n_touched; i++) {
    uint32_t v = lp->touched[i];
    lp->d[v] -= theta * lp->price[v];
  }
  for (uint32_t s = 0; s < lp->m; s++)
    if (lp->alpha[s] != 0) lp->x[lp->head[s]] -= step * lp->alpha[s];
  lp->x[in] = low(lp, in) + step;
  lp->x[out] = target;
  lp->d[in] = 0;
  lp->d[out] = sign < 0 ? theta : -theta;
  lp->head[slot] = in;
  lp->place[in] = slot;
  lp->place[out] = NONE;
}

static void column_of(const sel_lp *lp, uint32_t v, double *out) {
  memset(out, 0, lp->m * sizeof *out);
  if (v >= lp->n) out[v - lp->n] = -1;
  else
    for (uint32_t i = lp->col_first[v]; i < lp->col_first[v + 1]; i++)
      out[lp->col[i].at] += lp->col[i].v;
}

/* rho := row `slot` of the inverse. */
static void unit_btran(sel_lp *lp, uint32_t slot) {
  memset(lp->alpha, 0, lp->m * sizeof *lp->alpha);
  lp->alpha[slot] = 1;
  lp_btran(lp->f, lp->alpha, lp->rho);
}

typedef enum { PIVOTED, DONE, NO_ENTERING, UNSTABLE } outcome;

static outcome pivot(sel_lp *lp) {
  uint32_t slot = choose_leaving(lp);
  if (slot == NONE) return DONE;
  uint32_t out = lp->head[slot];
  double sign = lp->x[out] < low(lp, out) ? -1 : 1;
  unit_btran(lp, slot);
  double norm = 0;
  for (uint32_t i = 0; i < lp->m; i++) norm += lp->rho[i] * lp->rho[i];
  lp->weight[slot] = norm; /* exact for free */
  price_row(lp, sign);
  uint32_t in = choose_entering(lp);
  if (in == NONE) return clear_price(lp), NO_ENTERING;
  double expect = lp->price[in] * sign;
  double *scratch = lp->tau;
  column_of(lp, in, scratch);
  lp_ftran(lp->f, scratch, lp->alpha);
  if (fabs(lp->alpha[slot] - expect) > 1e-6 * (1 + fabs(expect))) return clear_price(lp), UNSTABLE;
  /* tau = inverse times rho; rho is not needed afterwards */
  lp_ftran(lp->f, lp->rho, lp->tau);
  update_weights(lp, slot);
  lp_update(lp->f, lp->alpha, slot);
  exchange(lp, slot, in, sign);
  clear_price(lp);
  lp->pivots++;
  lp->fresh = false;
  return PIVOTED;
}

static double objective(const sel_lp *lp) {
  double z = 0;
  for (uint32_t j = 0; j < lp->n; j++) z += lp->cost[j] * lp->x[j];
  return z;
}

/* Is the objective, counted along, really past the cutoff? */
static bool past(sel_lp *lp, double cutoff) {
  if (lp->z <= cutoff) return false;
  refactor(lp);
  return (lp->z = objective(lp)) > cutoff;
}

static bool dual_feasible(const sel_lp *lp) {
  for (uint32_t v = 0; v < lp->n + lp->m; v++)
    if (lp->place[v] == NONE && lp->d[v] < -1e-6 && !is_fixed(lp, v)) return false;
  return true;
}

/* All slacks: always dual feasible. */
static void start_over(sel_lp *lp) {
  memset(lp->place, 0xff, ((size_t)lp->n + lp->m) * sizeof *lp->place);
  for (uint32_t r = 0; r < lp->m; r++)
    lp->head[r] = lp->n + r, lp->place[lp->n + r] = r, lp->weight[r] = 1;
  lp->fresh = false;
  refactor(lp);
}

static lp_status simplex(sel_lp *lp, double cutoff, uint64_t pivots) {
  uint32_t trouble = 0;
  outcome last = PIVOTED;
  lp->z = objective(lp);
  for (uint64_t k = 0; k < pivots; k++) {
    if (lp_factor_full(lp->f)) refactor(lp), lp->z = objective(lp);
    if (past(lp, cutoff)) return LP_CUTOFF;
    outcome o = pivot(lp);
    if (sel_stop(lp->run, 8 * (uint64_t)lp->m + 50)) return LP_LIMIT;
    if (o == PIVOTED) {
      last = o;
      continue;
    }
    /* an end counts when fresh numbers say the same */
    if (o != UNSTABLE && o == last) return o == DONE ? LP_OPTIMAL : LP_INFEASIBLE;
    refactor(lp);
    last = o;
    if (++trouble > PASSES) return LP_TROUBLE;
  }
  return LP_LIMIT;
}

/* A basis that a repair or rounding has made dual infeasible proves nothing: then once more from
 * the start. */
lp_status lp_solve(sel_lp *lp, double cutoff, uint64_t pivots) {
  refactor(lp);
  if (!dual_feasible(lp)) start_over(lp);
  lp_status st = simplex(lp, cutoff, pivots);
  if (st == LP_LIMIT) return st;
  refactor(lp);
  if (dual_feasible(lp)) return st;
  start_over(lp);
  st = simplex(lp, cutoff, pivots);
  return st == LP_LIMIT || dual_feasible(lp) ? st : LP_TROUBLE;
}

double lp_bound(sel_lp *lp) {
  if (lp->cols_stale) return -INFINITY;
  compute_multipliers(lp);
  double z = 0;
  lp->fresh = false;
  for (uint32_t r = 0; r < lp->m; r++) {
    if (lp->pi[r] < 0) lp->pi[r] = 0;
    z += lp->pi[r] * lp->rhs[r];
  }
  reduce_costs(lp, lp->d);
  for (uint32_t j = 0; j < lp->n; j++)
    z += lp->d[j] > 0 ? lp->d[j] * lp->lo[j] : lp->d[j] * lp->up[j];
  return z;
}
