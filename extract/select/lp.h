/* A linear programme solver for the bounds: dual simplex over sparse rows, all variables at least
 * their lower bound.
 *
 *   minimise c x   subject to   A x >= b,  lo <= x <= up
 *
 * with c >= 0, up either 1 (not enforced: nothing here gains by exceeding it) or equal to lo
 * (fixed). So the slack basis is dual feasible at the start, and every basis met on the way gives a
 * bound. Rows may be added, bounds changed. Steepest-edge pricing (Forrest & Goldfarb 1992);
 * left-looking sparse LU (Gilbert & Peierls 1988) with product-form updates. Nothing relies on the
 * accuracy of the simplex: lp_bound() computes a bound from the multipliers alone.
 */
#ifndef TARN_SELECT_LP_H
#define TARN_SELECT_LP_H
#include "extract/select/internal.h"

typedef enum { LP_OPTIMAL, LP_INFEASIBLE, LP_CUTOFF, LP_LIMIT, LP_TROUBLE } lp_status;

typedef struct lp_factor lp_factor; /* lp_factor.c */

typedef struct lp_term {
  uint32_t at;
  double v;
} lp_term;

typedef struct sel_lp {
  sel_pool *mem;
  sel_run *run;
  uint32_t n, m; /* structurals; rows. Variable n + i is the slack of row i: a_i x - s_i = 0 */
  uint32_t cap_rows;
  double *cost, *lo, *up; /* by structural */
  double *rhs;            /* by row */
  struct {
    lp_term *p;
    uint32_t n, cap;
  } term;        /* rows one after another */
  uint32_t *row; /* m + 1 */
  lp_term *col;
  uint32_t *col_first;
  bool cols_stale,
      fresh;       /* fresh: factors, values and reduced costs are of this basis and these bounds */
  uint32_t *head;  /* basis: variable by slot (m) */
  uint32_t *place; /* by variable: slot, or NONE when not basic */
  double *x, *d;   /* by variable: value, reduced cost */
  double *weight;  /* by slot */
  double *rho, *alpha, *tau; /* by row; by slot; by slot */
  double *price;
  uint32_t *touched, n_touched; /* pivot row, by variable */
  double *pi;                   /* by row */
  lp_factor *f;
  double z; /* objective, counted along */
  uint64_t pivots;
} sel_lp;

sel_lp *lp_new(sel_pool *mem, sel_run *run, uint32_t n);
void lp_add_row(sel_lp *lp, const lp_term *t, uint32_t n, double rhs);
/* Removes rows whose slacks are in the basis. */
void lp_drop_rows(sel_lp *lp, const uint8_t *gone);
void lp_columns(sel_lp *lp); /* brings col, col_first up to date */
/* Changes bounds; the present value of a variable that is not basic follows. */
void lp_set(sel_lp *lp, uint32_t j, double lo, double up);
/* Runs until optimal, or the objective passes cutoff, or so many pivots. */
lp_status lp_solve(sel_lp *lp, double cutoff, uint64_t pivots);
/* A bound valid whatever the rounding; fills pi (by row) and d (by structural, exact for these pi).
 */
double lp_bound(sel_lp *lp);
/* The basis as one bit a variable; slots are lost. Restoring needs the bounds to be those of the
 * time of saving, or tighter. */
size_t lp_basis_words(const sel_lp *lp);
void lp_save(const sel_lp *lp, uint64_t *bits);
void lp_restore(sel_lp *lp, const uint64_t *bits, size_t words);

/* lp_factor.c: B = the columns head[0..m) */
lp_factor *lp_factor_new(sel_pool *mem);
bool lp_factorise(lp_factor *f,
                  sel_lp *lp); /* false: singular (then head was repaired: factorise again) */
void lp_ftran(lp_factor *f, double *v, double *out); /* v by row is destroyed; out by slot */
void lp_btran(lp_factor *f, double *v, double *out); /* v by slot is destroyed; out by row */
void lp_update(lp_factor *f, const double *alpha, uint32_t slot);
bool lp_factor_full(const lp_factor *f);
#endif
