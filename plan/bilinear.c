/* Tensors multiplied by small constant matrices, one for each of several dims (Winograd
 * transforms): y[p q …] = Σ A[p i] B[q j] … x[i j …], whole in the register tile. The product A·B
 * is never formed: the sums over i come first, for every j, then those over j of these ("sum
 * factorization", Orszag, "Spectral methods for problems in complex geometries", 1980), all in
 * registers.
 *
 * Each sum is a small matrix times a vector. A term that several rows share, x[a] + k·x[b], is
 * computed once: first the pair that most rows contain, until no pair is in two rows (Hartley,
 * "Subexpression sharing in filters using canonic signed digit multipliers", IEEE TCAS II, 1996;
 * Paar's greedy search). */
#include "plan/walk.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- what rows share */
/* Rows in which value b has k times the weight of value a. */
static uint32_t sharing(const tarn_plan_factor *f, uint32_t a, uint32_t b, double k) {
  uint32_t n = 0;
  for (uint32_t r = 0; r < f->rows; r++)
    n += f->weight[r][a] != 0 && f->weight[r][b] == k * f->weight[r][a];
  return n;
}
/* So many of them would multiply the pair by 1 or -1. */
static uint32_t plain(const tarn_plan_factor *f, uint32_t a, uint32_t b, double k) {
  uint32_t n = 0;
  for (uint32_t r = 0; r < f->rows; r++)
    n += fabs(f->weight[r][a]) == 1 && f->weight[r][b] == k * f->weight[r][a];
  return n;
}
static uint32_t best_pair(const tarn_plan_factor *f, tarn_plan_pair *best) {
  uint32_t most = 0, ones = 0, n = f->cols + f->npair;
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < n; b++)
      for (uint32_t r = 0; r < f->rows && a != b; r++) {
        if (f->weight[r][a] == 0 || f->weight[r][b] == 0) continue;
        double k = f->weight[r][b] / f->weight[r][a];
        uint32_t s = sharing(f, a, b, k), p = plain(f, a, b, k);
        if (s < most || (s == most && p <= ones && most)) continue;
        most = s, ones = p, *best = (tarn_plan_pair){a, b, k};
      }
  return most;
}
static void share(tarn_plan_factor *f) {
  tarn_plan_pair p;
  while (f->cols + f->npair < PLAN_MOST_TERMS && best_pair(f, &p) >= 2) {
    uint32_t at = f->cols + f->npair;
    for (uint32_t r = 0; r < f->rows; r++) {
      if (f->weight[r][p.a] == 0 || f->weight[r][p.b] != p.k * f->weight[r][p.a]) continue;
      f->weight[r][at] = f->weight[r][p.a], f->weight[r][p.a] = f->weight[r][p.b] = 0;
    }
    f->pair[f->npair++] = p;
  }
}

/* ---------------------------------------------------------------- does the stage have the form? */
/* Is it a product of operands that have not been seen? */
static bool multiplies(const tarn_lang *L, uint32_t body, uint32_t *seen) {
  const tarn_fx *x = tarn_fx_get(L, body);
  if (x->op == TARN_FX_MUL) return multiplies(L, x->kid[0], seen) && multiplies(L, x->kid[1], seen);
  if (x->op != TARN_FX_HOLE || x->hole >= 32 || *seen >> x->hole & 1) return false;
  *seen |= 1u << x->hole;
  return true;
}
bool plan_is_product(const tarn_lang *L, const tarn_func *f) {
  uint32_t seen = 0;
  return f->nops < 32 && multiplies(L, f->body, &seen) && seen == (1u << f->nops) - 1;
}
bool plan_matrices_of(const plan_matrix_read *r, uint32_t n, uint64_t reduced, plan_matrices *out) {
  *out = (plan_matrices){.data = TARN_NONE};
  for (uint32_t i = 0; i < n; i++) {
    uint64_t own = r[i].moved & ~reduced, red = r[i].moved & reduced;
    bool matrix = r[i].small && __builtin_popcountll(own) == 1 && __builtin_popcountll(red) == 1;
    if (matrix && out->n < TARN_MOST_MATRICES) {
      if ((out->own & own) || (out->red & red)) return false;
      out->read[out->n++] = i;
      out->own |= own;
      out->red |= red;
    } else if (out->data == TARN_NONE) out->data = i;
    else return false;
  }
  return out->n >= TARN_LEAST_MATRICES && out->data != TARN_NONE && out->red == reduced &&
         !((r[out->data].moved | r[out->data].guarded) & out->own);
}
static bool is_matrix_sum(const tarn_plan_nest *N, const tarn_plan_stage *st) {
  if (!N->contract || !st->red || st->red->kind != TARN_RED_SUM || st->red->ns != 1 ||
      st->red->dtype != TARN_F32)
    return false;
  for (uint32_t r = 0; r < st->f->nops; r++)
    if (st->read[r].dtype != TARN_F32) return false;
  return plan_is_product(N->L, st->f);
}
/* The levels of the tile are all unrolled, one for each dim; reduce dims lie within it. */
static bool is_unrolled(const tarn_plan_stage *st, const tarn_plan_list *list) {
  uint32_t dims = 0;
  if (st->in_memory || st->rows || st->red_lanes > 1 || st->ndot) return false;
  for (uint32_t i = 0; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    if (l->trips < 2 || l->kind == TARN_VECTOR) continue;
    if (!l->inside && l->red) return false;
    if (!l->inside) continue;
    if (l->kind != TARN_UNROLL || dims >> l->dim & 1) return false;
    dims |= 1u << l->dim;
  }
  return true;
}
/* Bits of the levels of several trips that move it. */
static uint64_t moved_by(const tarn_plan_list *list, const tarn_plan_lin *off) {
  uint64_t m = 0;
  for (uint32_t i = 0; i < list->n; i++)
    m |= (uint64_t)(list->level[i].trips > 1 && tarn_plan_lin_deps(off) >> list->level[i].var & 1)
         << i;
  return m;
}
/* Do these levels walk all of their dims, no more of each than a matrix has? */
static bool are_whole(const tarn_plan_stage *st, const tarn_plan_list *list, uint64_t levels) {
  bool whole = true;
  for (; levels && whole; levels &= levels - 1) {
    const tarn_plan_level *l = &list->level[__builtin_ctzll(levels)];
    whole = l->inside && l->kind == TARN_UNROLL && l->step == 1 && l->trips == st->dim[l->dim] &&
            l->trips <= TARN_MOST_MATRIX;
  }
  return whole;
}
static plan_matrix_read read_of(const tarn_plan_stage *st, const tarn_plan_list *list, uint32_t r) {
  const tarn_plan_access *a = &st->read[r];
  plan_matrix_read x = {.moved = moved_by(list, a->off)};
  for (uint32_t g = 0; g < a->nguard; g++) x.guarded |= moved_by(list, a->guard[g].e);
  x.small = a->few && !a->nguard && !st->s->read[r].row.by && are_whole(st, list, x.moved);
  return x;
}
/* The numbers of the matrix that operand r is; false: it is walked otherwise. */
static bool read_factor(const tarn_plan_stage *st, const tarn_plan_list *list, uint32_t r,
                        uint64_t moved, tarn_plan_factor *f) {
  const tarn_plan_access *a = &st->read[r];
  uint32_t one = (uint32_t)__builtin_ctzll(moved), two = 63 - (uint32_t)__builtin_clzll(moved);
  bool first = list->level[one].red;
  int64_t down, right;
  *f = (tarn_plan_factor){.read = r, .own = first ? two : one, .red = first ? one : two};
  const tarn_plan_level *own = &list->level[f->own], *red = &list->level[f->red];
  if (tarn_plan_lin_deps(a->off) & ~(1ull << own->var | 1ull << red->var)) return false;
  if (!tarn_plan_moves_by(a->off, own->var, &down) || !tarn_plan_moves_by(a->off, red->var, &right))
    return false;
  f->rows = (uint32_t)own->trips, f->cols = (uint32_t)red->trips;
  for (uint32_t i = 0; i < f->rows; i++)
    for (uint32_t j = 0; j < f->cols; j++) {
      int64_t at = a->off->c + down * i + right * j;
      if (at < 0 || at >= a->nfew) return false;
      f->weight[i][j] = a->few[at];
    }
  return true;
}
void tarn_plan_bilinear_settle(const tarn_plan_nest *N, tarn_plan_stage *st,
                               const tarn_plan_list *list) {
  plan_matrix_read read[TARN_MAX_OPERANDS];
  tarn_plan_factor f[TARN_MOST_MATRICES];
  plan_matrices m;
  uint64_t reduced = 0;
  if (!is_matrix_sum(N, st) || !is_unrolled(st, list)) return;
  for (uint32_t i = 0; i < list->n; i++)
    reduced |= (uint64_t)(list->level[i].red && list->level[i].trips > 1) << i;
  for (uint32_t r = 0; r < st->f->nops; r++) read[r] = read_of(st, list, r);
  if (!plan_matrices_of(read, st->f->nops, reduced, &m)) return;
  for (uint32_t i = 0; i < m.n; i++)
    if (!read_factor(st, list, m.read[i], read[m.read[i]].moved, &f[i])) return;
  for (uint32_t i = 0; i < m.n; i++) share(&f[i]);
  st->factor = tarn_copy(N->cx, f, m.n * sizeof *f);
  st->nfactor = m.n, st->data = m.data;
}

/* ---------------------------------------------------------------- statements */
#define MOST_PARTS (TARN_MOST_MATRIX * TARN_MOST_MATRIX) /* rows of all but one */
typedef struct product {
  plan_walk *w;
  uint32_t list, l;
  const tarn_plan_stage *st;
} product;
static void set(const product *p, uint32_t level, uint32_t copy) {
  p->w->copy[p->w->N->list[p->list].level[level].var] = 1 + copy;
}
static void walk_as(const product *p, tarn_plan_phase phase) {
  tarn_plan_phase before;
  uint32_t at = plan_open_phase(p->w, phase, &before);
  plan_walk_in(p->w, p->list, p->l);
  plan_close_phase(p->w, at, before);
}
/* The value of one element of the data; TARN_NONE: it lies in padding. */
static uint32_t datum(const product *p) {
  p->w->takes = true;
  p->w->value = TARN_NONE;
  walk_as(p, TARN_PLAN_STEP);
  p->w->takes = false;
  return p->w->value;
}
/* Values of all rows of factor k times a column. */
static void times(const product *p, uint32_t k, const uint32_t *column, uint32_t *row) {
  const tarn_plan_factor *f = &p->st->factor[k];
  plan_walk *w = p->w;
  tarn_plan_stmt s = {.op = TARN_PLAN_TIMES, .factor = k, .n = f->cols, .value = w->values};
  s.from = tarn_copy(w->N->cx, column, f->cols * sizeof *column);
  plan_add(w, s);
  for (uint32_t r = 0; r < f->rows; r++) row[r] = w->values++;
}
/* Results of all rows of the last factor. */
static void finish(const product *p, uint32_t outer, const uint32_t *row) {
  const tarn_plan_factor *f = p->st->factor;
  uint32_t last = p->st->nfactor - 1;
  for (uint32_t k = last; k-- > 0; outer /= f[k].rows) set(p, f[k].own, outer % f[k].rows);
  for (uint32_t r = 0; r < f[last].rows; r++) {
    set(p, f[last].own, r);
    p->w->value = row[r];
    walk_as(p, TARN_PLAN_FINISH);
  }
}
/* Sums over the columns of the first n factors, for all of their rows, the last's innermost; the
 * columns of the others are set. y: where they are put; NULL: each is finished at once. */
static void sums(const product *p, uint32_t n, uint32_t *y) {
  uint32_t part[TARN_MOST_MATRIX * MOST_PARTS];
  uint32_t column[TARN_MOST_MATRIX];
  uint32_t row[TARN_MOST_MATRIX];
  uint32_t outer = 1;
  if (n == 0) {
    y[0] = datum(p);
    return;
  }
  const tarn_plan_factor *f = &p->st->factor[n - 1];
  for (uint32_t i = 0; i + 1 < n; i++) outer *= p->st->factor[i].rows;
  for (uint32_t j = 0; j < f->cols; j++) {
    set(p, f->red, j);
    sums(p, n - 1, part + j * outer);
  }
  for (uint32_t i = 0; i < outer; i++) {
    for (uint32_t j = 0; j < f->cols; j++) column[j] = part[j * outer + i];
    times(p, n - 1, column, y ? y + i * f->rows : row);
    if (!y) finish(p, i, row);
  }
}
/* Every copy of the tile's other levels, from number i on. */
static void copies(const product *p, uint32_t i) {
  const tarn_plan_list *list = &p->w->N->list[p->list];
  const tarn_plan_factor *f = p->st->factor;
  for (; i < list->n; i++) {
    bool other = list->level[i].kind == TARN_UNROLL && list->level[i].trips > 1;
    for (uint32_t k = 0; k < p->st->nfactor; k++) other &= i != f[k].own && i != f[k].red;
    if (other) break;
  }
  if (i == list->n) {
    for (uint32_t k = 0; k < p->st->nfactor; k++) set(p, f[k].own, 0);
    sums(p, p->st->nfactor, NULL);
    return;
  }
  const tarn_plan_level *l = &list->level[i];
  int64_t n = (p->w->len[l->dim] + l->step - 1) / l->step;
  for (int64_t c = 0; c < n; c++) {
    set(p, i, (uint32_t)c);
    copies(p, i + 1);
  }
}
void plan_walk_bilinear(plan_walk *w, uint32_t list, uint32_t l) {
  copies(&(product){w, list, l, &w->N->stage[list - 1]}, l);
  for (uint32_t i = 0; i < w->N->list[list].n; i++) w->copy[w->N->list[list].level[i].var] = 0;
}
