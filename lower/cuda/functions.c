/* exp, log and pow in double for a GPU, whose libm is not used. Their calls are inlined.
 *
 * exp: two steps of ln 2 (Cody and Waite) and its series; log: as in fdlibm (Sun Microsystems,
 * e_log.c); both within 2 ulp. pow: exp(y · log x), which is good to 1e-13, and so rounds right in
 * float but for ties. */
#include "lower/cuda/cuda.h"
#include <math.h>
#include <string.h>

typedef struct code {
  low_module *M;
  LLVMBuilderRef b;
} code;

static LLVMValueRef num(const code *c, double v) { return LLVMConstReal(c->M->f64, v); }
static LLVMValueRef add(const code *c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFAdd(c->b, a, b, "");
}
static LLVMValueRef sub(const code *c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFSub(c->b, a, b, "");
}
static LLVMValueRef mul(const code *c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFMul(c->b, a, b, "");
}
static LLVMValueRef intrinsic(const code *c, const char *name, LLVMValueRef *v, unsigned n) {
  return low_intrinsic(c->M, name, &c->M->f64, 1, v, n);
}
static LLVMValueRef fma_of(const code *c, LLVMValueRef a, LLVMValueRef b, LLVMValueRef x) {
  LLVMValueRef v[3] = {a, b, x};
  return intrinsic(c, "llvm.fma", v, 3);
}
static LLVMValueRef cmp(const code *c, LLVMRealPredicate p, LLVMValueRef a, double b) {
  return LLVMBuildFCmp(c->b, p, a, num(c, b), "");
}
static LLVMValueRef sel(const code *c, LLVMValueRef q, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(c->b, q, a, b, "");
}
static LLVMValueRef both(const code *c, LLVMValueRef p, LLVMValueRef q) {
  return LLVMBuildAnd(c->b, p, q, "");
}
static LLVMValueRef bits(const code *c, LLVMValueRef x) {
  return LLVMBuildBitCast(c->b, x, c->M->i64, "");
}
static LLVMValueRef real(const code *c, LLVMValueRef x) {
  return LLVMBuildBitCast(c->b, x, c->M->f64, "");
}
static LLVMValueRef series(const code *c, LLVMValueRef z, const double *k, uint32_t n) {
  LLVMValueRef r = num(c, k[0]);
  for (uint32_t i = 1; i < n; i++) r = fma_of(c, r, z, num(c, k[i]));
  return r;
}
/* 2 to an exponent that is normal. */
static LLVMValueRef power_of_2(const code *c, LLVMValueRef e) {
  e = LLVMBuildAdd(c->b, e, low_i64(c->M, 1023), "");
  return real(c, LLVMBuildShl(c->b, e, low_i64(c->M, 52), ""));
}

static LLVMValueRef exp_of(const code *c, LLVMValueRef x) {
  double k[14]; /* 1 / 13! … 1 / 1!, 1 */
  k[13] = 1;
  for (int i = 12; i >= 0; i--) k[i] = k[i + 1] / (13 - i);
  LLVMValueRef high = cmp(c, LLVMRealOGT, x, 710), low = cmp(c, LLVMRealOLT, x, -746);
  x = sel(c, high, num(c, 710), sel(c, low, num(c, -746), x));
  LLVMValueRef n = mul(c, x, num(c, 1.4426950408889634));
  n = intrinsic(c, "llvm.rint", &n, 1);
  LLVMValueRef minus = sub(c, num(c, 0), n);
  LLVMValueRef r = fma_of(c, minus, num(c, 6.93147180369123816490e-01), x);
  r = fma_of(c, minus, num(c, 1.90821492927058770002e-10), r);
  LLVMTypeRef over[2] = {c->M->i64, c->M->f64};
  LLVMValueRef e = low_intrinsic(c->M, "llvm.fptosi.sat", over, 2, &n, 1);
  LLVMValueRef half = LLVMBuildAShr(c->b, e, low_i64(c->M, 1), "");
  LLVMValueRef rest = LLVMBuildSub(c->b, e, half, "");
  LLVMValueRef p = mul(c, series(c, r, k, 14), power_of_2(c, half));
  return mul(c, p, power_of_2(c, rest));
}
static LLVMValueRef log_of(const code *c, LLVMValueRef given) {
  static const double k[] = {1.479819860511658591e-01, 1.531383769920937332e-01,
                             1.818357216161805012e-01, 2.222219843214978396e-01,
                             2.857142874366239149e-01, 3.999999999940941908e-01,
                             6.666666666666735130e-01};
  LLVMValueRef tiny = cmp(c, LLVMRealOLT, given, 0x1p-1022);
  LLVMValueRef x = sel(c, tiny, mul(c, given, num(c, 0x1p54)), given);
  LLVMValueRef u = bits(c, x), e = LLVMBuildLShr(c->b, u, low_i64(c->M, 52), "");
  e = LLVMBuildSub(c->b, LLVMBuildAnd(c->b, e, low_i64(c->M, 0x7ff), ""), low_i64(c->M, 1023), "");
  u = LLVMBuildAnd(c->b, u, low_i64(c->M, 0xfffffffffffff), "");
  LLVMValueRef m = real(c, LLVMBuildOr(c->b, u, low_i64(c->M, INT64_C(0x3ff) << 52), ""));
  LLVMValueRef large = cmp(c, LLVMRealOGT, m, 1.4142135623730951);
  m = sel(c, large, mul(c, m, num(c, 0.5)), m);
  LLVMValueRef n = LLVMBuildSIToFP(c->b, e, c->M->f64, "");
  n = add(c, n, sel(c, large, num(c, 1), num(c, 0)));
  n = sub(c, n, sel(c, tiny, num(c, 54), num(c, 0)));
  LLVMValueRef f = sub(c, m, num(c, 1));
  LLVMValueRef s = LLVMBuildFDiv(c->b, f, add(c, num(c, 2), f), ""), z = mul(c, s, s);
  LLVMValueRef half = mul(c, mul(c, num(c, 0.5), f), f);
  LLVMValueRef r = mul(c, z, series(c, z, k, sizeof k / sizeof *k));
  r = mul(c, s, add(c, half, r));
  r = add(c, r, mul(c, n, num(c, 1.90821492927058770002e-10)));
  r = sub(c, sub(c, half, r), f);
  r = sub(c, mul(c, n, num(c, 6.93147180369123816490e-01)), r);
  r = sel(c, cmp(c, LLVMRealOEQ, given, 0), num(c, -INFINITY), r);
  r = sel(c, cmp(c, LLVMRealULT, given, 0), num(c, NAN), r); /* NaN too */
  return sel(c, cmp(c, LLVMRealOEQ, given, INFINITY), num(c, INFINITY), r);
}
static LLVMValueRef floor_of(const code *c, LLVMValueRef x) {
  return intrinsic(c, "llvm.floor", &x, 1);
}
static LLVMValueRef pow_of(const code *c, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef size = intrinsic(c, "llvm.fabs", &x, 1), rate = intrinsic(c, "llvm.fabs", &y, 1);
  LLVMValueRef r = exp_of(c, mul(c, y, log_of(c, size)));
  LLVMValueRef half = mul(c, y, num(c, 0.5));
  LLVMValueRef whole = LLVMBuildFCmp(c->b, LLVMRealOEQ, y, floor_of(c, y), "");
  LLVMValueRef odd = LLVMBuildFCmp(c->b, LLVMRealONE, half, floor_of(c, half), "");
  LLVMValueRef sign = LLVMBuildICmp(c->b, LLVMIntSLT, bits(c, x), low_i64(c->M, 0), "");
  r = sel(c, both(c, sign, both(c, whole, odd)), LLVMBuildFNeg(c->b, r, ""), r);
  LLVMValueRef below = both(c, cmp(c, LLVMRealOLT, x, 0), cmp(c, LLVMRealOGT, x, -INFINITY));
  r = sel(c, both(c, below, LLVMBuildNot(c->b, whole, "")), num(c, NAN), r);
  LLVMValueRef unit = both(c, cmp(c, LLVMRealOEQ, size, 1), cmp(c, LLVMRealOEQ, rate, INFINITY));
  LLVMValueRef one = LLVMBuildOr(c->b, cmp(c, LLVMRealOEQ, y, 0), cmp(c, LLVMRealOEQ, x, 1), "");
  return sel(c, LLVMBuildOr(c->b, one, unit, ""), num(c, 1), r);
}

static void define(low_module *M, const char *name, unsigned args, LLVMTypeRef t) {
  LLVMValueRef f = LLVMGetNamedFunction(M->m, name), x[2];
  if (!f || !LLVMIsDeclaration(f)) return;
  unsigned id = LLVMGetEnumAttributeKindForName("alwaysinline", strlen("alwaysinline"));
  LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(M->lc, id, 0));
  LLVMSetLinkage(f, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  code c = {M, M->b};
  for (unsigned i = 0; i < args; i++) {
    x[i] = LLVMGetParam(f, i);
    if (t == M->f32) x[i] = LLVMBuildFPExt(M->b, x[i], M->f64, "");
  }
  LLVMValueRef r = args == 2      ? pow_of(&c, x[0], x[1])
                   : *name == 'e' ? exp_of(&c, x[0])
                                  : log_of(&c, x[0]);
  LLVMBuildRet(M->b, t == M->f32 ? LLVMBuildFPTrunc(M->b, r, M->f32, "") : r);
}
void cuda_functions(low_module *M) {
  if (!M->contract) return; /* exact: libm's, or none */
  define(M, "pow", 2, M->f64), define(M, "powf", 2, M->f32);
  define(M, "exp", 1, M->f64), define(M, "log", 1, M->f64);
}
