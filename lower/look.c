/* Lookups: which row of a table an access is in, read from memory where the loops that it depends
 * on are entered. One out of range is read as row 0 and noted in a flag, which the kernel's caller
 * looks at. */
#include "lower/access.h"

static LLVMValueRef any_of(low_module *M, LLVMValueRef x) {
  uint32_t n = low_lanes_of(x);
  if (n == 1) return x;
  LLVMTypeRef bits = LLVMIntTypeInContext(M->lc, n);
  return LLVMBuildICmp(M->b, LLVMIntNE, LLVMBuildBitCast(M->b, x, bits, ""), LLVMConstNull(bits),
                       "");
}
LLVMValueRef low_index_inside(low_module *M, LLVMValueRef i, tarn_dtype type, int64_t extent,
                              LLVMValueRef outside) {
  LLVMTypeRef wide = low_vec(M->i64, low_lanes_of(i));
  LLVMValueRef n = low_splat(M, low_i64(M, extent), low_lanes_of(i)), zero = LLVMConstNull(wide);
  bool sign = tarn_dtype_is_signed(type);
  i = LLVMBuildIntCast2(M->b, i, wide, sign, "");
  if (sign)
    i = LLVMBuildSelect(M->b, LLVMBuildICmp(M->b, LLVMIntSLT, i, zero, ""),
                        LLVMBuildAdd(M->b, i, n, ""), i, "");
  LLVMValueRef out = LLVMBuildICmp(M->b, LLVMIntUGE, i, n, "");
  LLVMValueRef seen = LLVMBuildLoad2(M->b, M->i1, outside, "");
  LLVMBuildStore(M->b, LLVMBuildOr(M->b, seen, any_of(M, out), ""), outside);
  return LLVMBuildSelect(M->b, out, zero, i, "");
}

int64_t low_lookup_rows(const tarn_lang *L, const tarn_kernel *k) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  int64_t extent = 0;
  for (uint32_t j = 0; j < k->nin; j++) {
    int64_t rows = tarn_nest_rows(L, n, j);
    if (rows && extent && rows != extent) return LOW_SEVERAL;
    if (rows) extent = rows;
  }
  return extent;
}

void low_lookups_begin(low_fn *E) {
  low_module *M = E->M;
  E->outside = low_alloca(E, M->i1, 1);
  LLVMBuildStore(M->b, LLVMConstInt(M->i1, 0, 0), E->outside);
}
/* Threads set it and never clear it. */
void low_lookups_end(low_fn *E, LLVMValueRef to) {
  low_module *M = E->M;
  LLVMBasicBlockRef yes = low_block(E, "outside"), no = low_block(E, "inside");
  LLVMBuildCondBr(M->b, LLVMBuildLoad2(M->b, M->i1, E->outside, ""), yes, no);
  low_begin(E, yes);
  if (E->thread)
    LLVMBuildAtomicRMW(M->b, LLVMAtomicRMWBinOpOr, to, LLVMConstInt(M->i32, 1, 0),
                       LLVMAtomicOrderingMonotonic, 0);
  else LLVMBuildStore(M->b, LLVMConstInt(M->i8, 1, 0), to);
  LLVMBuildBr(M->b, no);
  low_begin(E, no);
}

/* Lanes in their own order, or one number where all read the same. */
low_off low_row(low_fn *E, low_access *look, const tarn_plan_term *t) {
  const low_off none = {0};
  uint32_t lanes = E->lanes;
  bool halves = E->halves;
  low_off at = low_offset(E, look->p->off), r = {0};
  bool one = lanes == 1 || !(at.vec || at.stride || at.rows);
  E->halves = false;
  if (one) E->lanes = 1;
  LLVMValueRef i = low_load_guarded(E, look, &at, &none, NULL);
  E->lanes = lanes, E->halves = halves;
  i = low_index_inside(E->M, i, look->p->dtype, t->by, E->outside);
  if (one) r.v = i;
  else r.vec = i;
  return r;
}
