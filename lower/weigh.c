/* Sums that small matrices of numbers weigh, one for each of several dims: y[p q …] = Σ A[p i] B[q j] … x[i j …], whole in the
 * register tile.  Nothing of A·B is multiplied out: the sums over i come first, for every j, then those over j of these ("sum
 * factorization", Orszag, "Spectral methods for problems in complex geometries", 1980), all in registers.
 *
 * Each is a small matrix times a vector.  What several of its rows have in common, x[a] + k·x[b], is computed once: the pair
 * that most rows contain first, until none is in two (Hartley, "Subexpression sharing in filters using canonic signed digit
 * multipliers", IEEE TCAS II, 1996; Paar's greedy search). */
#include "lower/nest.h"
#include <math.h>
#include <string.h>

#define MOST_TERMS 32 /* of a matrix: columns and pairs */
#define LEAST      2  /* matrices */
#define MOST       3
#define MOST_PARTS (TARN_MOST_WEIGHED * TARN_MOST_WEIGHED) /* rows of all but one */

/* A further value: value a plus k times value b. */
typedef struct pair {
  uint32_t a, b;
  double k;
} pair;
typedef struct low_factor {
  uint32_t read, own, red; /* levels */
  uint32_t rows, cols, npair;
  pair pair[MOST_TERMS];                        /* values after the columns */
  double weight[TARN_MOST_WEIGHED][MOST_TERMS]; /* of each value in each row */
} low_factor;

/* ---------------------------------------------------------------- what rows share */
/* Rows in which value b has k times the weight of value a. */
static uint32_t sharing(const low_factor *f, uint32_t a, uint32_t b, double k) {
  uint32_t n = 0;
  for (uint32_t r = 0; r < f->rows; r++) n += f->weight[r][a] != 0 && f->weight[r][b] == k * f->weight[r][a];
  return n;
}
/* So many of them would weigh the pair by 1 or -1. */
static uint32_t plain(const low_factor *f, uint32_t a, uint32_t b, double k) {
  uint32_t n = 0;
  for (uint32_t r = 0; r < f->rows; r++) n += fabs(f->weight[r][a]) == 1 && f->weight[r][b] == k * f->weight[r][a];
  return n;
}
static uint32_t best_pair(const low_factor *f, pair *best) {
  uint32_t most = 0, ones = 0, n = f->cols + f->npair;
  for (uint32_t a = 0; a < n; a++)
    for (uint32_t b = 0; b < n; b++)
      for (uint32_t r = 0; r < f->rows && a != b; r++) {
        if (f->weight[r][a] == 0 || f->weight[r][b] == 0) continue;
        double k = f->weight[r][b] / f->weight[r][a];
        uint32_t s = sharing(f, a, b, k), p = plain(f, a, b, k);
        if (s < most || (s == most && p <= ones && most)) continue;
        most = s, ones = p, *best = (pair){a, b, k};
      }
  return most;
}
static void share(low_factor *f) {
  pair p;
  while (f->cols + f->npair < MOST_TERMS && best_pair(f, &p) >= 2) {
    uint32_t at = f->cols + f->npair;
    for (uint32_t r = 0; r < f->rows; r++) {
      if (f->weight[r][p.a] == 0 || f->weight[r][p.b] != p.k * f->weight[r][p.a]) continue;
      f->weight[r][at] = f->weight[r][p.a], f->weight[r][p.a] = f->weight[r][p.b] = 0;
    }
    f->pair[f->npair++] = p;
  }
}

/* ---------------------------------------------------------------- does the stage have the form? */
/* Exactly the operands' product, each once? */
static bool is_product(const tarn_lang *L, uint32_t body, uint32_t *seen) {
  const tarn_fx *x = tarn_fx_get(L, body);
  if (x->op == TARN_FX_MUL) return is_product(L, x->kid[0], seen) && is_product(L, x->kid[1], seen);
  if (x->op != TARN_FX_HOLE || x->hole >= 32 || *seen >> x->hole & 1) return false;
  *seen |= 1u << x->hole;
  return true;
}
static bool is_weighed_sum(const low_nest *N, const low_stage *st) {
  uint32_t seen = 0;
  if (!N->M->contract || !st->red || st->red->kind != TARN_RED_SUM || st->red->ns != 1 || st->red->dtype != TARN_F32)
    return false;
  for (uint32_t r = 0; r < st->f->nops; r++)
    if (st->read[r].dtype != TARN_F32) return false;
  return st->f->nops < 32 && is_product(N->M->L, st->f->body, &seen) && seen == (1u << st->f->nops) - 1;
}
/* Levels of the tile are all written out, each dim by one of them; reduce dims lie within it. */
static bool is_written_out(const low_stage *st, const low_list *list) {
  uint32_t dims = 0;
  if (st->in_memory || st->rows || st->red_lanes > 1 || st->ndot) return false;
  for (uint32_t i = 0; i < list->n; i++) {
    const low_level *l = &list->level[i];
    if (l->trips < 2 || l->kind == TARN_VECTOR) continue;
    if (!l->inside && l->red) return false;
    if (!l->inside) continue;
    if (l->kind != TARN_UNROLL || dims >> l->dim & 1) return false;
    dims |= 1u << l->dim;
  }
  return true;
}
/* The only level of the tile of its kind that moves the operand, and it is all of its dim. */
static uint32_t moved_by(const low_stage *st, const low_list *list, const low_lin *off, bool red) {
  uint32_t found = TARN_NONE;
  for (uint32_t i = 0; i < list->n; i++) {
    const low_level *l = &list->level[i];
    if (l->trips < 2 || l->red != red || !(low_lin_deps(off) >> l->var & 1)) continue;
    bool whole = l->inside && l->kind == TARN_UNROLL && l->step == 1 && l->trips == st->dim[l->dim];
    if (found != TARN_NONE || !whole || l->trips > TARN_MOST_WEIGHED) return TARN_NONE;
    found = i;
  }
  return found;
}
/* The matrix that operand r is, if it is one. */
static bool read_factor(const low_stage *st, const low_list *list, uint32_t r, low_factor *f) {
  const low_access *a = &st->read[r];
  int64_t down, right;
  *f = (low_factor){.read = r};
  if (!a->few || a->nguard) return false;
  f->own = moved_by(st, list, a->off, false), f->red = moved_by(st, list, a->off, true);
  if (f->own == TARN_NONE || f->red == TARN_NONE) return false;
  const low_level *own = &list->level[f->own], *red = &list->level[f->red];
  if (low_lin_deps(a->off) & ~(1ull << own->var | 1ull << red->var)) return false;
  if (!low_moves_by(a->off, own->var, &down) || !low_moves_by(a->off, red->var, &right)) return false;
  f->rows = (uint32_t)own->trips, f->cols = (uint32_t)red->trips;
  for (uint32_t i = 0; i < f->rows; i++)
    for (uint32_t j = 0; j < f->cols; j++) {
      int64_t at = a->off->c + down * i + right * j;
      if (at < 0 || at >= a->nfew) return false;
      f->weight[i][j] = a->few[at];
    }
  return true;
}
void low_weigh_settle(const low_nest *N, low_stage *st, const low_list *list) {
  low_factor f[MOST];
  uint32_t n = 0, data = TARN_NONE;
  uint64_t own = 0, red = 0, all = 0;
  if (!is_weighed_sum(N, st) || !is_written_out(st, list)) return;
  for (uint32_t r = 0; r < st->f->nops; r++) {
    if (n < MOST && read_factor(st, list, r, &f[n])) {
      uint64_t o = 1ull << list->level[f[n].own].var, e = 1ull << list->level[f[n].red].var;
      if ((own & o) || (red & e)) return;
      own |= o, red |= e, n++;
    } else if (data == TARN_NONE) data = r;
    else return;
  }
  for (uint32_t i = 0; i < list->n; i++)
    if (list->level[i].red && list->level[i].trips > 1) all |= 1ull << list->level[i].var;
  if (n < LEAST || data == TARN_NONE || red != all || (low_lin_deps(st->read[data].off) & own)) return;
  for (uint32_t g = 0; g < st->read[data].nguard; g++)
    if (low_lin_deps(st->read[data].guard[g].e) & own) return;
  for (uint32_t i = 0; i < n; i++) share(&f[i]);
  st->factor = tarn_copy(N->M->cx, f, n * sizeof *f);
  st->nfactor = n, st->data = data;
}

/* ---------------------------------------------------------------- emission */
/* x + k·y; NULL is zero. */
static LLVMValueRef plus(low_module *M, LLVMValueRef x, double k, LLVMValueRef y) {
  if (!y || k == 0) return x;
  LLVMTypeRef t = LLVMTypeOf(y);
  if (k == 1 || k == -1) {
    if (x) return k > 0 ? LLVMBuildFAdd(M->b, x, y, "") : LLVMBuildFSub(M->b, x, y, "");
    return k > 0 ? y : LLVMBuildFNeg(M->b, y, "");
  }
  LLVMValueRef c = low_splat(M, LLVMConstReal(M->f32, k), low_lanes_of(y));
  if (!x) return LLVMBuildFMul(M->b, c, y, "");
  return low_intrinsic(M, "llvm.fmuladd", &t, 1, (LLVMValueRef[]){c, y, x}, 3);
}
/* The matrix times x; y: its rows. */
static void times(low_module *M, const low_factor *f, const LLVMValueRef *x, LLVMValueRef *y) {
  LLVMValueRef v[MOST_TERMS];
  uint32_t n = f->cols;
  memcpy(v, x, n * sizeof *v);
  for (uint32_t i = 0; i < f->npair; i++, n++) v[n] = plus(M, v[f->pair[i].a], f->pair[i].k, v[f->pair[i].b]);
  for (uint32_t r = 0; r < f->rows; r++) {
    y[r] = NULL; /* begun with what is taken as it is */
    uint32_t first = n;
    for (uint32_t i = 0; i < n; i++)
      if (v[i] && f->weight[r][i] != 0 && (first == n || (f->weight[r][first] != 1 && f->weight[r][i] == 1))) first = i;
    if (first < n) y[r] = plus(M, NULL, f->weight[r][first], v[first]);
    for (uint32_t i = 0; i < n; i++)
      if (i != first) y[r] = plus(M, y[r], f->weight[r][i], v[i]);
  }
}

typedef struct weighing {
  low_nest *N;
  low_fn *E;
  uint32_t list, l;
  low_stage *st;
} weighing;
static void set(const weighing *w, uint32_t level, uint32_t copy) {
  w->N->copy[w->N->list[w->list].level[level].var] = 1 + copy;
}

static LLVMValueRef datum(const weighing *w) {
  LLVMValueRef v = NULL;
  w->st->taken = &v;
  low_walk(w->N, w->E, w->list, w->l, LOW_BODY);
  w->st->taken = NULL;
  return v;
}
/* Sums over the columns of the first n factors, for all of their rows, the last's innermost; the columns of the others are set.
 * `each`: what is done with them at once, row of the last by row; else they are put in y. */
static void sums(const weighing *w, uint32_t n, LLVMValueRef *y,
                 void (*each)(const weighing *w, uint32_t outer, const LLVMValueRef *y)) {
  LLVMValueRef part[TARN_MOST_WEIGHED * MOST_PARTS], column[TARN_MOST_WEIGHED], row[TARN_MOST_WEIGHED];
  if (n == 0) {
    y[0] = datum(w);
    return;
  }
  const low_factor *f = &w->st->factor[n - 1];
  uint32_t outer = 1;
  for (uint32_t i = 0; i + 1 < n; i++) outer *= w->st->factor[i].rows;
  for (uint32_t j = 0; j < f->cols; j++) set(w, f->red, j), sums(w, n - 1, part + j * outer, NULL);
  for (uint32_t i = 0; i < outer; i++) {
    for (uint32_t j = 0; j < f->cols; j++) column[j] = part[j * outer + i];
    times(w->N->M, f, column, each ? row : y + i * f->rows);
    if (each) each(w, i, row);
  }
}
/* Results of all rows of the last factor. */
static void finish(const weighing *w, uint32_t outer, const LLVMValueRef *y) {
  const low_factor *f = w->st->factor;
  uint32_t last = w->st->nfactor - 1;
  for (uint32_t k = last; k-- > 0; outer /= f[k].rows) set(w, f[k].own, outer % f[k].rows);
  for (uint32_t r = 0; r < f[last].rows; r++) {
    set(w, f[last].own, r), w->st->given = y[r];
    low_walk(w->N, w->E, w->list, w->l, LOW_FINAL);
  }
}
/* Every copy of the tile's other levels, from number i on. */
static void copies(const weighing *w, uint32_t i) {
  const low_list *list = &w->N->list[w->list];
  const low_factor *f = w->st->factor;
  for (; i < list->n; i++) {
    bool other = list->level[i].kind == TARN_UNROLL && list->level[i].trips > 1;
    for (uint32_t k = 0; k < w->st->nfactor; k++) other &= i != f[k].own && i != f[k].red;
    if (other) break;
  }
  if (i == list->n) {
    for (uint32_t k = 0; k < w->st->nfactor; k++) set(w, f[k].own, 0);
    sums(w, w->st->nfactor, NULL, finish);
    return;
  }
  const low_level *l = &list->level[i];
  int64_t n = (w->N->len[l->dim] + l->step - 1) / l->step;
  for (int64_t c = 0; c < n; c++) set(w, i, (uint32_t)c), copies(w, i + 1);
}
void low_weighed_sum(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  copies(&(weighing){N, E, list, l, &N->stage[list - 1]}, l);
  for (uint32_t i = 0; i < N->list[list].n; i++) N->copy[N->list[list].level[i].var] = 0;
}
