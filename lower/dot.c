/* Prints dot-product instructions, which take several steps of a reduction. */
#include "lower/nest.h"
#include <string.h>

/* The instruction of fewest lanes that has room for n, or the one of most. */
static const tarn_hw_dot *of_lanes(const low_stage *st, uint32_t n) {
  uint32_t at = 0;
  while (at + 1 < st->p->ndot && st->p->dot[at + 1].lanes >= (int64_t)n) at++;
  return &st->p->dot[at];
}

/* `count` elements of v (a vector) from `from` on, then anything up to n. */
static LLVMValueRef piece(low_module *M, LLVMValueRef v, uint32_t from, uint32_t count,
                          uint32_t n) {
  int index[256];
  if (from == 0 && count == n && low_lanes_of(v) == n) return v;
  for (uint32_t i = 0; i < n; i++) index[i] = i < count ? (int)(from + i) : -1;
  return low_shuffle(M, v, LLVMGetPoison(LLVMTypeOf(v)), index, n);
}

/* LLVM's function for the encoding: overloaded ones by the types of accumulator and operands. */
static LLVMValueRef call(low_module *M, const tarn_hw_dot *d, LLVMValueRef acc,
                         const LLVMValueRef *x) {
  const char *name = d->intrinsic->encoding;
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  if (!id)
    tarn_raise(M->cx, TARN_BAD_INPUT, "%s: intrinsic %s: LLVM knows no %s", M->hw->name,
               d->intrinsic->name, name);
  bool over = LLVMIntrinsicIsOverloaded(id);
  LLVMTypeRef types[2] = {LLVMTypeOf(acc), LLVMTypeOf(x[0])}, param[3];
  LLVMTypeRef type = LLVMIntrinsicGetType(M->lc, id, types, over ? 2 : 0);
  if (LLVMCountParamTypes(type) != 3)
    tarn_raise(M->cx, TARN_BAD_INPUT,
               "%s: intrinsic %s: %s does not take an accumulator and two operands", M->hw->name,
               d->intrinsic->name, name);
  LLVMGetParamTypes(type, param);
  LLVMValueRef arg[3] = {LLVMBuildBitCast(M->b, acc, param[0], ""),
                         LLVMBuildBitCast(M->b, x[0], param[1], ""),
                         LLVMBuildBitCast(M->b, x[1], param[2], "")};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(M->m, id, types, over ? 2 : 0);
  return LLVMBuildBitCast(M->b, LLVMBuildCall2(M->b, type, f, arg, 3, ""), LLVMTypeOf(acc), "");
}

void low_emit_dot(low_nest *N, low_fn *E, const tarn_plan_stmt *s) {
  (void)s;
  low_module *M = N->M;
  low_stage *st = N->now;
  uint32_t n = E->lanes, k = (uint32_t)st->p->dot[0].k,
           level = low_list(N)->level[low_list(N)->n - 1].var;
  LLVMValueRef x[2], old = low_acc_load(N, E), now = NULL;
  for (uint32_t r = 0; r < 2; r++) x[r] = low_load_group(E, &st->read[r], level, k);
  LLVMTypeRef one = low_compute_type(M, st->p->state[0]);
  if (n == 1)
    old = LLVMBuildInsertElement(M->b, LLVMGetPoison(LLVMVectorType(one, 1)), old,
                                 LLVMConstInt(M->i32, 0, 0), "");
  for (uint32_t from = 0; from < n;) {
    const tarn_hw_dot *d = of_lanes(st, n - from);
    uint32_t wide = (uint32_t)d->lanes, count = n - from < wide ? n - from : wide;
    LLVMValueRef part[2];
    for (uint32_t r = 0; r < 2; r++)
      part[d->operand[r]] = piece(M, x[r], from * k, count * k, wide * k);
    LLVMValueRef y = call(M, d, piece(M, old, from, count, wide), part);
    int index[256];
    for (uint32_t i = 0; i < n; i++)
      index[i] = i >= from && i < from + count ? (int)(n + i - from) : (int)i;
    if (count == n) now = piece(M, y, 0, n, n);
    else now = low_shuffle(M, now ? now : old, piece(M, y, 0, count, n), index, n);
    from += count;
  }
  if (n == 1) now = LLVMBuildExtractElement(M->b, now, LLVMConstInt(M->i32, 0, 0), "");
  low_acc_store(N, E, now);
}
