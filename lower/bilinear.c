/* Sums multiplied by constant matrices, dim by dim in registers: plan/bilinear.c says how. */
#include "lower/nest.h"
#include <string.h>

#define MOST_PARTS (TARN_MOST_WEIGHED * TARN_MOST_WEIGHED) /* rows of all but one */

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
static void times(low_module *M, const tarn_plan_factor *f, const LLVMValueRef *x,
                  LLVMValueRef *y) {
  LLVMValueRef v[PLAN_MOST_TERMS];
  uint32_t n = f->cols;
  memcpy(v, x, n * sizeof *v);
  for (uint32_t i = 0; i < f->npair; i++, n++)
    v[n] = plus(M, v[f->pair[i].a], f->pair[i].k, v[f->pair[i].b]);
  for (uint32_t r = 0; r < f->rows; r++) {
    y[r] = NULL; /* begun with what is taken as it is */
    uint32_t first = n;
    for (uint32_t i = 0; i < n; i++)
      if (v[i] && f->weight[r][i] != 0 &&
          (first == n || (f->weight[r][first] != 1 && f->weight[r][i] == 1)))
        first = i;
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
  w->N->copy[w->N->p->list[w->list].level[level].var] = 1 + copy;
}

static LLVMValueRef datum(const weighing *w) {
  LLVMValueRef v = NULL;
  w->st->taken = &v;
  low_walk(w->N, w->E, w->list, w->l, LOW_BODY);
  w->st->taken = NULL;
  return v;
}
/* Sums over the columns of the first n factors, for all of their rows, the last's innermost; the
 * columns of the others are set. `each`: what is done with them at once, row of the last by row;
 * else they are put in y. */
static void sums(const weighing *w, uint32_t n, LLVMValueRef *y,
                 void (*each)(const weighing *w, uint32_t outer, const LLVMValueRef *y)) {
  LLVMValueRef part[TARN_MOST_WEIGHED * MOST_PARTS], column[TARN_MOST_WEIGHED],
      row[TARN_MOST_WEIGHED];
  if (n == 0) {
    y[0] = datum(w);
    return;
  }
  const tarn_plan_factor *f = &w->st->p->factor[n - 1];
  uint32_t outer = 1;
  for (uint32_t i = 0; i + 1 < n; i++) outer *= w->st->p->factor[i].rows;
  for (uint32_t j = 0; j < f->cols; j++) set(w, f->red, j), sums(w, n - 1, part + j * outer, NULL);
  for (uint32_t i = 0; i < outer; i++) {
    for (uint32_t j = 0; j < f->cols; j++) column[j] = part[j * outer + i];
    times(w->N->M, f, column, each ? row : y + i * f->rows);
    if (each) each(w, i, row);
  }
}
/* Results of all rows of the last factor. */
static void finish(const weighing *w, uint32_t outer, const LLVMValueRef *y) {
  const tarn_plan_factor *f = w->st->p->factor;
  uint32_t last = w->st->p->nfactor - 1;
  for (uint32_t k = last; k-- > 0; outer /= f[k].rows) set(w, f[k].own, outer % f[k].rows);
  for (uint32_t r = 0; r < f[last].rows; r++) {
    set(w, f[last].own, r), w->st->given = y[r];
    low_walk(w->N, w->E, w->list, w->l, LOW_FINAL);
  }
}
/* Every copy of the tile's other levels, from number i on. */
static void copies(const weighing *w, uint32_t i) {
  const tarn_plan_list *list = &w->N->p->list[w->list];
  const tarn_plan_factor *f = w->st->p->factor;
  for (; i < list->n; i++) {
    bool other = list->level[i].kind == TARN_UNROLL && list->level[i].trips > 1;
    for (uint32_t k = 0; k < w->st->p->nfactor; k++) other &= i != f[k].own && i != f[k].red;
    if (other) break;
  }
  if (i == list->n) {
    for (uint32_t k = 0; k < w->st->p->nfactor; k++) set(w, f[k].own, 0);
    sums(w, w->st->p->nfactor, NULL, finish);
    return;
  }
  const tarn_plan_level *l = &list->level[i];
  int64_t n = (w->N->len[l->dim] + l->step - 1) / l->step;
  for (int64_t c = 0; c < n; c++) set(w, i, (uint32_t)c), copies(w, i + 1);
}
void low_bilinear_sum(low_nest *N, low_fn *E, uint32_t list, uint32_t l) {
  copies(&(weighing){N, E, list, l, &N->stage[list - 1]}, l);
  for (uint32_t i = 0; i < N->p->list[list].n; i++) N->copy[N->p->list[list].level[i].var] = 0;
}
