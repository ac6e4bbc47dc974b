/* Prints sums multiplied by constant matrices, dim by dim in registers (plan/bilinear.c). */
#include "lower/nest.h"
#include <string.h>

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
static void product(low_module *M, const tarn_plan_factor *f, const LLVMValueRef *x,
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

void low_emit_take(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  N->value[s->value] = low_load(E, &N->now->read[s->read], low_depth(N));
}
void low_emit_times(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  (void)E;
  LLVMValueRef column[TARN_MOST_MATRIX];
  for (uint32_t i = 0; i < s->n; i++)
    column[i] = s->from[i] == TARN_NONE ? NULL : N->value[s->from[i]];
  product(N->M, &N->now->p->factor[s->factor], column, &N->value[s->value]);
}
