/* Elementary functions in double for a GPU, whose libm is not used. Their calls are inlined.
 *
 * exp: two steps of ln 2 (Cody and Waite) and its series; log: as in fdlibm (Sun Microsystems,
 * e_log.c); both within 2 ulp. pow: exp(y · log x), which is good to 1e-13 and so rounds right in
 * float but for ties; in double log x and the product have a second double for what rounding loses
 * (Dekker, 1971), so that whole powers of whole numbers are exact. sin, cos and atan have fdlibm's
 * polynomials; arguments beyond 2^20 are reduced by as many bits of 2/π as they need (Payne and
 * Hanek, 1983). erf: its series with positive terms alone, e^(-x²) · 2x/√π · Σ (2x²)^n /
 * (1·3·…·(2n+1)); beyond 3.5 a polynomial of 1/x². The others follow from these by identities that
 * cancel nothing. */
#include "lower/cuda/cuda.h"
#include <math.h>
#include <string.h>

typedef struct code {
  low_module *M;
  LLVMBuilderRef b;
  bool wide; /* the call is of double, not of float */
} code;
typedef struct pair { /* their sum, the second no more than a rounding of the first */
  LLVMValueRef high, low;
} pair;

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

#define LN2_HIGH 6.93147180369123816490e-01 /* its product with an exponent is exact */
#define LN2_LOW  1.90821492927058770002e-10
static LLVMValueRef sum(const code *c, const LLVMValueRef *x, uint32_t n) {
  LLVMValueRef s = x[0];
  for (uint32_t i = 1; i < n; i++) s = add(c, s, x[i]);
  return s;
}
/* exp(x + low): of 1 + r + r² (1/2 + r/6 + …) the 1 is added last. */
static LLVMValueRef exp_pair(const code *c, LLVMValueRef x, LLVMValueRef low) {
  double k[12]; /* 1 / 13! … 1 / 2! */
  k[11] = 0.5;
  for (int i = 10; i >= 0; i--) k[i] = k[i + 1] / (13 - i);
  LLVMValueRef above = cmp(c, LLVMRealOGT, x, 710), below = cmp(c, LLVMRealOLT, x, -746);
  x = sel(c, above, num(c, 710), sel(c, below, num(c, -746), x));
  LLVMValueRef n = mul(c, x, num(c, 1.4426950408889634));
  n = intrinsic(c, "llvm.rint", &n, 1);
  LLVMValueRef first = fma_of(c, n, num(c, -LN2_HIGH), x), second = mul(c, n, num(c, LN2_LOW));
  LLVMValueRef r = sub(c, first, second), lost = sub(c, sub(c, first, r), second);
  LLVMValueRef tail = mul(c, mul(c, r, r), series(c, r, k, 12));
  if (low) lost = add(c, lost, low);
  LLVMValueRef whole = add(c, num(c, 1), add(c, r, tail));
  LLVMValueRef p = add(c, num(c, 1), add(c, r, fma_of(c, lost, whole, tail)));
  LLVMTypeRef over[2] = {c->M->i64, c->M->f64};
  LLVMValueRef e = low_intrinsic(c->M, "llvm.fptosi.sat", over, 2, &n, 1);
  LLVMValueRef half = LLVMBuildAShr(c->b, e, low_i64(c->M, 1), "");
  LLVMValueRef rest = LLVMBuildSub(c->b, e, half, "");
  return mul(c, mul(c, p, power_of_2(c, half)), power_of_2(c, rest));
}
static LLVMValueRef exp_of(const code *c, LLVMValueRef x) { return exp_pair(c, x, NULL); }

/* A positive number as m · 2^n, m from √½ to √2. */
typedef struct parted {
  LLVMValueRef m, n;
} parted;
static parted part(const code *c, LLVMValueRef given) {
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
  return (parted){m, sub(c, n, sel(c, tiny, num(c, 54), num(c, 0)))};
}
/* r, the logarithm of x where x is positive and finite; elsewhere what log is there. */
static LLVMValueRef log_edges(const code *c, LLVMValueRef x, LLVMValueRef r) {
  r = sel(c, cmp(c, LLVMRealOEQ, x, 0), num(c, -INFINITY), r);
  r = sel(c, cmp(c, LLVMRealULT, x, 0), num(c, NAN), r); /* NaN too */
  return sel(c, cmp(c, LLVMRealOEQ, x, INFINITY), num(c, INFINITY), r);
}
static LLVMValueRef log_of(const code *c, LLVMValueRef given) {
  static const double k[] = {1.479819860511658591e-01, 1.531383769920937332e-01,
                             1.818357216161805012e-01, 2.222219843214978396e-01,
                             2.857142874366239149e-01, 3.999999999940941908e-01,
                             6.666666666666735130e-01};
  parted x = part(c, given);
  LLVMValueRef f = sub(c, x.m, num(c, 1));
  LLVMValueRef s = LLVMBuildFDiv(c->b, f, add(c, num(c, 2), f), ""), z = mul(c, s, s);
  LLVMValueRef half = mul(c, mul(c, num(c, 0.5), f), f);
  LLVMValueRef r = mul(c, z, series(c, z, k, sizeof k / sizeof *k));
  r = mul(c, s, add(c, half, r));
  r = add(c, r, mul(c, x.n, num(c, LN2_LOW)));
  r = sub(c, sub(c, half, r), f);
  r = sub(c, mul(c, x.n, num(c, LN2_HIGH)), r);
  return log_edges(c, given, r);
}
static pair two_sum(const code *c, LLVMValueRef a, LLVMValueRef b) { /* Knuth */
  LLVMValueRef s = add(c, a, b), v = sub(c, s, a);
  return (pair){s, add(c, sub(c, a, sub(c, s, v)), sub(c, b, v))};
}
static pair two_product(const code *c, pair a, pair b) {
  LLVMValueRef p = mul(c, a.high, b.high), minus = LLVMBuildFNeg(c->b, p, "");
  LLVMValueRef lost = fma_of(c, a.high, b.high, minus);
  lost = fma_of(c, a.high, b.low, fma_of(c, a.low, b.high, lost));
  return (pair){p, lost};
}
/* The logarithm as a pair: 2 atanh s of s = (m - 1) / (m + 1), the first two terms as pairs too. */
static pair log_pair(const code *c, LLVMValueRef given) {
  double k[11]; /* 2 / 25 … 2 / 5 */
  for (int i = 0; i < 11; i++) k[i] = 2.0 / (25 - 2 * i);
  parted x = part(c, given);
  LLVMValueRef f = sub(c, x.m, num(c, 1)), g = add(c, x.m, num(c, 1));
  LLVMValueRef lost = sub(c, x.m, sub(c, g, num(c, 1)));
  LLVMValueRef q = LLVMBuildFDiv(c->b, f, g, ""), minus = LLVMBuildFNeg(c->b, q, "");
  LLVMValueRef off = fma_of(c, minus, lost, fma_of(c, minus, g, f));
  pair s = {q, LLVMBuildFDiv(c->b, off, g, "")}, z = two_product(c, s, s);
  pair third = {num(c, 2.0 / 3), num(c, 3.7007434154171886e-17)};
  pair cube = two_product(c, two_product(c, s, z), third);
  LLVMValueRef fifth = mul(c, mul(c, q, z.high), mul(c, z.high, series(c, z.high, k, 11)));
  pair a = two_sum(c, mul(c, x.n, num(c, LN2_HIGH)), mul(c, q, num(c, 2)));
  pair b = two_sum(c, a.high, cube.high);
  LLVMValueRef low[] = {
      fifth, mul(c, x.n, num(c, LN2_LOW)), cube.low, mul(c, s.low, num(c, 2)), b.low, a.low};
  pair r = two_sum(c, b.high, sum(c, low, sizeof low / sizeof *low));
  return (pair){log_edges(c, given, r.high), r.low};
}
/* |x|^y by its logarithm. */
static LLVMValueRef power_pair(const code *c, LLVMValueRef size, LLVMValueRef y) {
  pair p = two_product(c, (pair){y, num(c, 0)}, log_pair(c, size));
  LLVMValueRef far = intrinsic(c, "llvm.fabs", &p.high, 1); /* beyond, low is no number */
  return exp_pair(c, p.high, sel(c, cmp(c, LLVMRealOLT, far, 1000), p.low, num(c, 0)));
}
static LLVMValueRef floor_of(const code *c, LLVMValueRef x) {
  return intrinsic(c, "llvm.floor", &x, 1);
}
static LLVMValueRef pow_of(const code *c, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef size = intrinsic(c, "llvm.fabs", &x, 1), rate = intrinsic(c, "llvm.fabs", &y, 1);
  LLVMValueRef r = c->wide ? power_pair(c, size, y) : exp_of(c, mul(c, y, log_of(c, size)));
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

/* ---------------------------------------------------------------- sin, cos, tan */
/* Quarter turns of x, modulo 4, and what is left of it, in turns of π / 2 from -1/2 to 1/2. */
typedef struct quarter {
  LLVMValueRef n, r; /* i64; radians */
} quarter;
static LLVMValueRef whole(const code *c, LLVMValueRef x) {
  LLVMTypeRef over[2] = {c->M->i64, c->M->f64};
  return low_intrinsic(c->M, "llvm.fptosi.sat", over, 2, &x, 1);
}
static quarter near_quarter(const code *c, LLVMValueRef x) {
  LLVMValueRef n = mul(c, x, num(c, 6.36619772367581382433e-01));
  n = intrinsic(c, "llvm.rint", &n, 1);
  LLVMValueRef minus = LLVMBuildFNeg(c->b, n, "");
  LLVMValueRef r = fma_of(c, minus, num(c, 0x1.921fb54442d18p+0), x);
  r = fma_of(c, minus, num(c, 0x1.1a62633145c07p-54), r);
  r = fma_of(c, minus, num(c, -0x1.f1976b7ed8fbcp-110), r);
  return (quarter){whole(c, n), r};
}
static LLVMValueRef shifted(const code *c, LLVMValueRef high, LLVMValueRef low, LLVMValueRef by) {
  LLVMValueRef v[3] = {high, low, by};
  return low_intrinsic(c->M, "llvm.fshl", &c->M->i64, 1, v, 3);
}
/* 192 bits of 2/π from those on that make less than four turns. */
static void window(const code *c, LLVMValueRef e, LLVMValueRef w[3]) {
  static const uint64_t bits_of[] = {0,
                                     UINT64_C(0xa2f9836e4e441529),
                                     UINT64_C(0xfc2757d1f534ddc0),
                                     UINT64_C(0xdb6295993c439041),
                                     UINT64_C(0xfe5163abdebbc561),
                                     UINT64_C(0xb7246e3a424dd2e0),
                                     UINT64_C(0x06492eea09d1921c),
                                     UINT64_C(0xfe1deb1cb129a73e),
                                     UINT64_C(0xe88235f52ebb4484),
                                     UINT64_C(0xe99c7026b45f7e41),
                                     UINT64_C(0x3991d639835339f4),
                                     UINT64_C(0x9c845f8bbdf9283b),
                                     UINT64_C(0x1ff897ffde05980f),
                                     UINT64_C(0xef2f118b5a0a6d1f),
                                     UINT64_C(0x6d367ecf27cb09b7),
                                     UINT64_C(0x4f463f669e5fea2d),
                                     UINT64_C(0x7527bac7ebe5f17b),
                                     UINT64_C(0x3d0739f78a5292ea),
                                     UINT64_C(0x6bfb5fb11f8d5d08),
                                     UINT64_C(0x56033046fc7b6bab)};
  uint32_t n = sizeof bits_of / sizeof *bits_of;
  LLVMTypeRef t = LLVMArrayType2(c->M->i64, n);
  LLVMValueRef table = low_i64_table(c->M, (const int64_t *)bits_of, n), word[4];
  LLVMValueRef at = LLVMBuildAdd(c->b, e, low_i64(c->M, 62), "");
  LLVMValueRef by = LLVMBuildAnd(c->b, at, low_i64(c->M, 63), "");
  at = LLVMBuildLShr(c->b, at, low_i64(c->M, 6), "");
  LLVMValueRef last = low_i64(c->M, n - 4), fits = LLVMBuildICmp(c->b, LLVMIntULT, at, last, "");
  at = LLVMBuildSelect(c->b, fits, at, last, "");
  for (uint32_t i = 0; i < 4; i++) {
    LLVMValueRef k[2] = {low_i64(c->M, 0), LLVMBuildAdd(c->b, at, low_i64(c->M, i), "")};
    word[i] = LLVMBuildLoad2(c->b, c->M->i64, LLVMBuildInBoundsGEP2(c->b, t, table, k, 2, ""), "");
  }
  for (uint32_t i = 0; i < 3; i++) w[i] = shifted(c, word[i], word[i + 1], by);
}
/* The upper and the lower word of a · b + x. */
static void multiply(const code *c, LLVMValueRef a, LLVMValueRef b, LLVMValueRef x,
                     LLVMValueRef word[2]) {
  LLVMTypeRef t = LLVMIntTypeInContext(c->M->lc, 128);
  LLVMValueRef wide[2] = {LLVMBuildZExt(c->b, a, t, ""), LLVMBuildZExt(c->b, b, t, "")};
  LLVMValueRef p = LLVMBuildMul(c->b, wide[0], wide[1], "");
  LLVMValueRef high = LLVMBuildLShr(c->b, p, LLVMConstInt(t, 64, 0), "");
  word[1] = LLVMBuildAdd(c->b, LLVMBuildMul(c->b, a, b, ""), x, "");
  LLVMValueRef carry = LLVMBuildICmp(c->b, LLVMIntULT, word[1], x, "");
  high = LLVMBuildTrunc(c->b, high, c->M->i64, "");
  word[0] = LLVMBuildAdd(c->b, high, LLVMBuildZExt(c->b, carry, c->M->i64, ""), "");
}
static quarter far_quarter(const code *c, LLVMValueRef x) {
  LLVMValueRef u = bits(c, x), w[3], low[2], mid[2], two = low_i64(c->M, 2);
  LLVMValueRef e =
      LLVMBuildAnd(c->b, LLVMBuildLShr(c->b, u, low_i64(c->M, 52), ""), low_i64(c->M, 0x7ff), "");
  e = LLVMBuildSub(c->b, e, low_i64(c->M, 1075), "");
  LLVMValueRef m = LLVMBuildAnd(c->b, u, low_i64(c->M, 0xfffffffffffff), "");
  m = LLVMBuildOr(c->b, m, low_i64(c->M, INT64_C(1) << 52), "");
  window(c, e, w);
  multiply(c, w[2], m, low_i64(c->M, 0), low);
  multiply(c, w[1], m, low[0], mid);
  LLVMValueRef top = LLVMBuildAdd(c->b, LLVMBuildMul(c->b, w[0], m, ""), mid[0], "");
  LLVMValueRef part = shifted(c, top, mid[1], two), rest = shifted(c, mid[1], low[1], two);
  LLVMValueRef up = LLVMBuildLShr(c->b, part, low_i64(c->M, 63), "");
  LLVMValueRef n = LLVMBuildAdd(c->b, LLVMBuildLShr(c->b, top, low_i64(c->M, 62), ""), up, "");
  LLVMValueRef r = mul(c, LLVMBuildSIToFP(c->b, part, c->M->f64, ""), num(c, 0x1p-64));
  r = fma_of(c, LLVMBuildUIToFP(c->b, rest, c->M->f64, ""), num(c, 0x1p-128), r);
  r = mul(c, r, num(c, 1.57079632679489661923));
  LLVMValueRef minus = LLVMBuildICmp(c->b, LLVMIntSLT, u, low_i64(c->M, 0), "");
  n = LLVMBuildSelect(c->b, minus, LLVMBuildNeg(c->b, n, ""), n, "");
  return (quarter){n, sel(c, minus, LLVMBuildFNeg(c->b, r, ""), r)};
}
static LLVMBasicBlockRef block(const code *c) {
  LLVMValueRef f = LLVMGetBasicBlockParent(LLVMGetInsertBlock(c->b));
  return LLVMAppendBasicBlockInContext(c->M->lc, f, "");
}
static LLVMValueRef either(const code *c, const LLVMValueRef v[2], LLVMBasicBlockRef from[2]) {
  LLVMValueRef p = LLVMBuildPhi(c->b, LLVMTypeOf(v[0]), "");
  LLVMAddIncoming(p, (LLVMValueRef *)(uintptr_t)v, from, 2);
  return p;
}
static quarter quarter_of(const code *c, LLVMValueRef x) {
  LLVMValueRef size = intrinsic(c, "llvm.fabs", &x, 1), n[2], r[2];
  LLVMBasicBlockRef way[2] = {block(c), block(c)}, end = block(c);
  LLVMBuildCondBr(c->b, cmp(c, LLVMRealOGE, size, 0x1p20), way[1], way[0]);
  for (int far = 0; far < 2; far++) {
    LLVMPositionBuilderAtEnd(c->b, way[far]);
    quarter q = far ? far_quarter(c, x) : near_quarter(c, x);
    n[far] = q.n, r[far] = q.r;
    LLVMBuildBr(c->b, end);
  }
  LLVMPositionBuilderAtEnd(c->b, end);
  quarter q = {either(c, n, way), either(c, r, way)};
  q.r = sel(c, cmp(c, LLVMRealULT, size, INFINITY), q.r, num(c, NAN));
  return q;
}
static LLVMValueRef sine(const code *c, LLVMValueRef x) {
  static const double k[] = {1.58969099521155010221e-10, -2.50507602534068634195e-08,
                             2.75573137070700676789e-06, -1.98412698298579493134e-04,
                             8.33333333332248946124e-03, -1.66666666666666324348e-01};
  LLVMValueRef z = mul(c, x, x);
  return fma_of(c, mul(c, z, x), series(c, z, k, 6), x);
}
static LLVMValueRef cosine(const code *c, LLVMValueRef x) {
  static const double k[] = {-1.13596475577881948265e-11, 2.08757232129817482790e-09,
                             -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                             -1.38888888888741095749e-03, 4.16666666666666019037e-02};
  LLVMValueRef z = mul(c, x, x), half = mul(c, z, num(c, 0.5)), w = sub(c, num(c, 1), half);
  LLVMValueRef rest = sub(c, sub(c, num(c, 1), w), half);
  return add(c, w, fma_of(c, mul(c, z, z), series(c, z, k, 6), rest));
}
static LLVMValueRef wave(const code *c, quarter q) {
  LLVMValueRef odd = LLVMBuildTrunc(c->b, q.n, c->M->i1, "");
  LLVMValueRef two = LLVMBuildAnd(c->b, q.n, low_i64(c->M, 2), "");
  LLVMValueRef r = sel(c, odd, cosine(c, q.r), sine(c, q.r));
  return sel(c, LLVMBuildIsNull(c->b, two, ""), r, LLVMBuildFNeg(c->b, r, ""));
}
static LLVMValueRef sin_of(const code *c, LLVMValueRef x) {
  LLVMValueRef zero = cmp(c, LLVMRealOEQ, x, 0);
  return sel(c, zero, x, wave(c, quarter_of(c, x)));
}
static LLVMValueRef cos_of(const code *c, LLVMValueRef x) {
  quarter q = quarter_of(c, x);
  q.n = LLVMBuildAdd(c->b, q.n, low_i64(c->M, 1), "");
  return wave(c, q);
}
static LLVMValueRef tan_of(const code *c, LLVMValueRef x) {
  quarter q = quarter_of(c, x);
  LLVMValueRef odd = LLVMBuildTrunc(c->b, q.n, c->M->i1, "");
  LLVMValueRef s = sine(c, q.r), o = cosine(c, q.r);
  LLVMValueRef r =
      LLVMBuildFDiv(c->b, sel(c, odd, LLVMBuildFNeg(c->b, o, ""), s), sel(c, odd, s, o), "");
  return sel(c, cmp(c, LLVMRealOEQ, x, 0), x, r);
}

/* ---------------------------------------------------------------- their inverses */
static LLVMValueRef size_of(const code *c, LLVMValueRef x) {
  return intrinsic(c, "llvm.fabs", &x, 1);
}
static LLVMValueRef root(const code *c, LLVMValueRef x) { return intrinsic(c, "llvm.sqrt", &x, 1); }
static LLVMValueRef over(const code *c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFDiv(c->b, a, b, "");
}
static LLVMValueRef with_sign(const code *c, LLVMValueRef r, LLVMValueRef sign) {
  LLVMValueRef v[2] = {r, sign};
  return intrinsic(c, "llvm.copysign", v, 2);
}
static LLVMValueRef atan_of(const code *c, LLVMValueRef x) {
  static const double k[] = {
      1.62858201153657823623e-02,  -3.65315727442169155270e-02, 4.97687799461593236017e-02,
      -5.83357013379057348645e-02, 6.66107313738753120669e-02,  -7.69187620504482999495e-02,
      9.09088713343650656196e-02,  -1.11111104054623557880e-01, 1.42857142725034663711e-01,
      -1.99999999998764832476e-01, 3.33333333333329318027e-01};
  LLVMValueRef a = size_of(c, x), large = cmp(c, LLVMRealOGT, a, 1);
  LLVMValueRef t = sel(c, large, over(c, num(c, 1), a), a);
  LLVMValueRef mid = cmp(c, LLVMRealOGT, t, 0.4142135623730951);
  t = sel(c, mid, over(c, sub(c, t, num(c, 1)), add(c, t, num(c, 1))), t);
  LLVMValueRef z = mul(c, t, t), r = sub(c, t, mul(c, mul(c, t, z), series(c, z, k, 11)));
  r = sel(c, mid, add(c, num(c, 0.78539816339744830962), r), r);
  r = sel(c, large, sub(c, num(c, 1.57079632679489661923), r), r);
  return with_sign(c, r, x);
}
static LLVMValueRef asin_of(const code *c, LLVMValueRef x) {
  LLVMValueRef one = num(c, 1), q = mul(c, sub(c, one, x), add(c, one, x));
  return sel(c, cmp(c, LLVMRealOEQ, x, 0), x, atan_of(c, over(c, x, root(c, q))));
}
static LLVMValueRef acos_of(const code *c, LLVMValueRef x) {
  LLVMValueRef one = num(c, 1), q = over(c, sub(c, one, x), add(c, one, x));
  return mul(c, num(c, 2), atan_of(c, root(c, q)));
}

/* ---------------------------------------------------------------- sinh and its kind */
/* log(1 + x): what 1 + x has lost is put right (Kahan). */
static LLVMValueRef log1p_of(const code *c, LLVMValueRef x) {
  LLVMValueRef u = add(c, num(c, 1), x), d = sub(c, u, num(c, 1));
  LLVMValueRef r = mul(c, log_of(c, u), over(c, x, d));
  r = sel(c, cmp(c, LLVMRealOEQ, d, 0), x, r);
  return sel(c, cmp(c, LLVMRealOEQ, x, INFINITY), x, r);
}
/* sinh of up to 0.4: its series. */
static LLVMValueRef small_sinh(const code *c, LLVMValueRef x) {
  static const double k[] = {1 / 6227020800., 1 / 39916800., 1 / 362880.,
                             1 / 5040.,       1 / 120.,      1 / 6.};
  LLVMValueRef z = mul(c, x, x);
  return fma_of(c, mul(c, z, x), series(c, z, k, 6), x);
}
/* (e^a ± e^-a) / 2 of a ≥ 0; e^(a/2) does not overflow before the result does. */
static LLVMValueRef half_sum(const code *c, LLVMValueRef a, bool minus) {
  LLVMValueRef e = exp_of(c, mul(c, a, num(c, 0.5))), half = mul(c, e, num(c, 0.5));
  LLVMValueRef last = over(c, num(c, 0.5), mul(c, e, e));
  return minus ? sub(c, mul(c, half, e), last) : add(c, mul(c, half, e), last);
}
static LLVMValueRef sinh_of(const code *c, LLVMValueRef x) {
  LLVMValueRef a = size_of(c, x), small = cmp(c, LLVMRealOLT, a, 0.4);
  return sel(c, small, small_sinh(c, x), with_sign(c, half_sum(c, a, true), x));
}
static LLVMValueRef cosh_of(const code *c, LLVMValueRef x) {
  return half_sum(c, size_of(c, x), false);
}
static LLVMValueRef tanh_of(const code *c, LLVMValueRef x) {
  LLVMValueRef a = size_of(c, x), small = cmp(c, LLVMRealOLT, a, 0.4);
  LLVMValueRef e = exp_of(c, mul(c, a, num(c, 2)));
  LLVMValueRef far = sub(c, num(c, 1), over(c, num(c, 2), add(c, e, num(c, 1))));
  LLVMValueRef near = over(c, small_sinh(c, x), half_sum(c, a, false));
  return sel(c, small, near, with_sign(c, far, x));
}
static LLVMValueRef log_of_twice(const code *c, LLVMValueRef a) {
  return add(c, log_of(c, a), num(c, 6.93147180559945309417e-01));
}
static LLVMValueRef asinh_of(const code *c, LLVMValueRef x) {
  LLVMValueRef a = size_of(c, x), z = mul(c, a, a), one = num(c, 1);
  LLVMValueRef d = add(c, one, root(c, add(c, z, one)));
  LLVMValueRef r = log1p_of(c, add(c, a, over(c, z, d)));
  return with_sign(c, sel(c, cmp(c, LLVMRealOGT, a, 0x1p60), log_of_twice(c, a), r), x);
}
static LLVMValueRef acosh_of(const code *c, LLVMValueRef x) {
  LLVMValueRef t = sub(c, x, num(c, 1));
  LLVMValueRef r = log1p_of(c, add(c, t, root(c, mul(c, t, add(c, t, num(c, 2))))));
  r = sel(c, cmp(c, LLVMRealOGT, x, 0x1p60), log_of_twice(c, x), r);
  return sel(c, cmp(c, LLVMRealOGE, x, 1), r, num(c, NAN));
}
static LLVMValueRef atanh_of(const code *c, LLVMValueRef x) {
  LLVMValueRef a = size_of(c, x), d = sub(c, num(c, 1), a);
  LLVMValueRef r = mul(c, num(c, 0.5), log1p_of(c, over(c, add(c, a, a), d)));
  return with_sign(c, r, x);
}

/* ---------------------------------------------------------------- erf */
#define TERMS 64 /* enough for 2 · 3.5² */
static LLVMValueRef erf_of(const code *c, LLVMValueRef x) {
  static const double tail[] = {-29709.6212533647434, 23269.1449380935124,  -8872.027624193496,
                                2264.55918212423334,  -458.64146084429862,  84.9213582655949257,
                                -16.4092617341434637, 3.69545966570619677,  -1.05771466858143082,
                                0.42314028396185114,  -0.28209477623648957, 0.564189583490044006};
  double k[TERMS];
  k[TERMS - 1] = 1;
  for (int i = 1; i < TERMS; i++) k[TERMS - 1 - i] = k[TERMS - i] * 2 / (2 * i + 1);
  LLVMValueRef a = size_of(c, x), far = cmp(c, LLVMRealOGT, a, 3.5), z = mul(c, a, a);
  LLVMValueRef e = exp_of(c, LLVMBuildFNeg(c->b, z, ""));
  LLVMValueRef near = mul(c, mul(c, a, num(c, 1.12837916709551257390)), e);
  near = mul(c, near, series(c, sel(c, far, num(c, 0), z), k, TERMS));
  LLVMValueRef rest =
      mul(c, over(c, e, a), series(c, over(c, num(c, 1), z), tail, sizeof tail / sizeof *tail));
  LLVMValueRef r = sel(c, far, sub(c, num(c, 1), rest), near);
  return with_sign(c, sel(c, cmp(c, LLVMRealOGT, a, 6), num(c, 1), r), x);
}

/* ---------------------------------------------------------------- fmod */
/* The exponent of a positive double that is normal, -1023 of one that is not. */
static LLVMValueRef exponent(const code *c, LLVMValueRef x) {
  return LLVMBuildSub(c->b, LLVMBuildLShr(c->b, bits(c, x), low_i64(c->M, 52), ""),
                      low_i64(c->M, 1023), "");
}
static LLVMValueRef true_exponent(const code *c, LLVMValueRef x) {
  LLVMValueRef tiny = cmp(c, LLVMRealOLT, x, 0x1p-1022);
  LLVMValueRef e = exponent(c, sel(c, tiny, mul(c, x, num(c, 0x1p54)), x));
  return LLVMBuildSub(c->b, e, sel(c, tiny, low_i64(c->M, 54), low_i64(c->M, 0)), "");
}
/* y · 2^k, 0 ≤ k < 2046, in two steps: the power may be beyond what double holds. */
static LLVMValueRef raised(const code *c, LLVMValueRef y, LLVMValueRef k) {
  LLVMValueRef half = LLVMBuildLShr(c->b, k, low_i64(c->M, 1), "");
  LLVMValueRef rest = LLVMBuildSub(c->b, k, half, "");
  return mul(c, mul(c, y, power_of_2(c, half)), power_of_2(c, rest));
}
/* r modulo t for 0 ≤ r < 2^52 · t: the rounded quotient is off by one at most, and what is left by
 * it, a multiple of their last place and no larger than t, is exact. */
static LLVMValueRef left_by(const code *c, LLVMValueRef r, LLVMValueRef t) {
  LLVMValueRef q = over(c, r, t), minus;
  minus = LLVMBuildFNeg(c->b, intrinsic(c, "llvm.trunc", &q, 1), "");
  r = fma_of(c, minus, t, r);
  return sel(c, cmp(c, LLVMRealOLT, r, 0), add(c, r, t), r);
}
/* y times a power of two, of which r has less than 2^52; y itself when it has no more of that. */
static LLVMValueRef multiple(const code *c, LLVMValueRef r, LLVMValueRef y, LLVMValueRef below) {
  LLVMValueRef k = LLVMBuildSub(c->b, exponent(c, r), below, "");
  LLVMValueRef none = LLVMBuildICmp(c->b, LLVMIntSLT, k, low_i64(c->M, 0), "");
  return raised(c, y, sel(c, none, low_i64(c->M, 0), k));
}
/* |x| modulo multiples of |y| that become smaller, until |y| itself: 41 rounds at most. Exact. */
static LLVMValueRef fmod_of(const code *c, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef a = size_of(c, x), d = size_of(c, y), v[2];
  LLVMValueRef fits = both(c, cmp(c, LLVMRealOLT, a, INFINITY), cmp(c, LLVMRealOGT, d, 0));
  a = sel(c, fits, a, num(c, 0)), d = sel(c, fits, d, num(c, 1)), v[0] = a;
  LLVMValueRef below = LLVMBuildAdd(c->b, true_exponent(c, d), low_i64(c->M, 51), "");
  LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(c->b), block(c)}, test = block(c), end = block(c);
  LLVMBuildBr(c->b, test);
  LLVMPositionBuilderAtEnd(c->b, test);
  LLVMValueRef r = LLVMBuildPhi(c->b, c->M->f64, "");
  LLVMBuildCondBr(c->b, LLVMBuildFCmp(c->b, LLVMRealOGE, r, d, ""), from[1], end);
  LLVMPositionBuilderAtEnd(c->b, from[1]);
  v[1] = left_by(c, r, multiple(c, r, d, below));
  LLVMBuildBr(c->b, test);
  LLVMAddIncoming(r, v, from, 2);
  LLVMPositionBuilderAtEnd(c->b, end);
  return sel(c, fits, with_sign(c, r, x), num(c, NAN));
}

/* ---------------------------------------------------------------- by name */
typedef LLVMValueRef one_fn(const code *, LLVMValueRef);
typedef LLVMValueRef two_fn(const code *, LLVMValueRef, LLVMValueRef);
static const struct function {
  const char *name;
  one_fn *one;
  two_fn *two;
  bool exact; /* and so defined with --numerics exact too */
} functions[] = {
#define ONE                            .one
#define TWO                            .two
#define FUNCTION(f, of, is_exact, ...) {.name = #f, of = f##_of, .exact = is_exact},
#include "lower/cuda/functions.def"
#undef FUNCTION
};
static void define(low_module *M, const char *name, const struct function *def, LLVMTypeRef t) {
  LLVMValueRef f = LLVMGetNamedFunction(M->m, name), x[2];
  if (!f || !LLVMIsDeclaration(f)) return;
  unsigned id = LLVMGetEnumAttributeKindForName("alwaysinline", strlen("alwaysinline"));
  LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(M->lc, id, 0));
  LLVMSetLinkage(f, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
  code c = {M, M->b, t == M->f64};
  for (unsigned i = 0; i < (def->two ? 2 : 1); i++) {
    x[i] = LLVMGetParam(f, i);
    if (t == M->f32) x[i] = LLVMBuildFPExt(M->b, x[i], M->f64, "");
  }
  LLVMValueRef r = def->two ? def->two(&c, x[0], x[1]) : def->one(&c, x[0]);
  LLVMBuildRet(M->b, t == M->f32 ? LLVMBuildFPTrunc(M->b, r, M->f32, "") : r);
}
void cuda_functions(low_module *M) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (!M->contract && !functions[i].exact) continue;
    define(M, functions[i].name, &functions[i], M->f64);
    define(M, tarn_format(M->cx, "%sf", functions[i].name), &functions[i], M->f32);
  }
}
