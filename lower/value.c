/* Scalar expressions as vector code.
 *
 * A value of n lanes is a vector of n (n = 1: a scalar) of the compute type of its dtype: f16 and
 * bf16 are computed in f32.  Strict: every operator rounds to its type, transcendental ones are
 * libm's in double rounded once, as in the interpreter.  With contraction: FMA, our own
 * approximations (math.c), and f16 and bf16 rounded only when stored; but sums, products and
 * quotients from which a step is computed, as a rounding to whole numbers, are rounded as written.
 */
#include "access/fx_internal.h"
#include "lower/internal.h"
#include <llvm-c/Target.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- types */
static bool is_half(tarn_dtype t) { return t == TARN_F16 || t == TARN_BF16; }

LLVMTypeRef low_memory_type(const low_module *M, tarn_dtype t) {
  if (t == TARN_F32) return M->f32;
  if (t == TARN_F64) return M->f64;
  if (t == TARN_F16) return M->f16;
  return LLVMIntTypeInContext(M->lc, (unsigned)tarn_dtype_size(t) * 8);
}
LLVMTypeRef low_compute_type(const low_module *M, tarn_dtype t) {
  if (is_half(t)) return M->f32;
  return t == TARN_BOOL ? M->i1 : low_memory_type(M, t);
}

static LLVMValueRef num(low_module *M, LLVMTypeRef t, double v, uint32_t n) {
  bool integer = LLVMGetTypeKind(t) == LLVMIntegerTypeKind;
  return low_splat(
      M, integer ? LLVMConstInt(t, (unsigned long long)(int64_t)v, true) : LLVMConstReal(t, v), n);
}
static LLVMValueRef like(low_module *M, LLVMValueRef x, double v) {
  LLVMTypeRef t = LLVMTypeOf(x);
  if (LLVMGetTypeKind(t) == LLVMVectorTypeKind) t = LLVMGetElementType(t);
  return num(M, t, v, low_lanes_of(x));
}
static LLVMTypeRef with_lanes(LLVMTypeRef t, LLVMValueRef x) { return low_vec(t, low_lanes_of(x)); }

LLVMValueRef low_from_memory(low_module *M, tarn_dtype t, LLVMValueRef v) {
  if (t == TARN_F16) return low_f16_number(M, v);
  if (t == TARN_BOOL) return LLVMBuildICmp(M->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
  return t == TARN_BF16 ? low_bf16_number(M, v) : v;
}
LLVMValueRef low_to_memory(low_module *M, tarn_dtype t, LLVMValueRef v) {
  if (t == TARN_F16) return low_f16_bits(M, v);
  if (t == TARN_BOOL) return LLVMBuildZExt(M->b, v, with_lanes(M->i8, v), "");
  return t == TARN_BF16 ? low_bf16_bits(M, v) : v;
}
/* A freshly computed value of dtype t. */
static LLVMValueRef rounded(low_module *M, tarn_dtype t, bool exact, LLVMValueRef v) {
  return is_half(t) && (exact || !M->contract) ? low_from_memory(M, t, low_to_memory(M, t, v)) : v;
}

LLVMValueRef low_fx_const(low_module *M, uint32_t f, uint32_t n) {
  const tarn_fx *x = tarn_fx_get(M->L, f);
  LLVMTypeRef t = low_compute_type(M, x->dtype);
  if (tarn_dtype_is_float(x->dtype)) return low_splat(M, LLVMConstReal(t, x->value), n);
  return low_splat(M, LLVMConstInt(t, (unsigned long long)x->ivalue, true), n);
}

/* ---------------------------------------------------------------- casts */
/* To 8 or 16 bits by way of 32, which have instructions: NaN to 0, the range's ends by two
 * comparisons. */
static LLVMValueRef saturated_narrow(low_module *M, tarn_dtype to, LLVMValueRef v) {
  LLVMBuilderRef b = M->b;
  int bits = (int)tarn_dtype_size(to) * 8;
  LLVMValueRef lo = like(M, v, tarn_dtype_is_signed(to) ? -(1 << (bits - 1)) : 0);
  LLVMValueRef hi = like(M, v, tarn_dtype_is_signed(to) ? (1 << (bits - 1)) - 1 : (1 << bits) - 1);
  LLVMValueRef nan = LLVMBuildFCmp(b, LLVMRealUNO, v, v, "");
  v = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOLT, v, hi, ""), v, hi, "");
  v = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealOGT, v, lo, ""), v, lo, "");
  v = LLVMBuildFPToSI(b, v, with_lanes(M->i32, v), "");
  v = LLVMBuildSelect(b, nan, LLVMConstNull(LLVMTypeOf(v)), v, "");
  return LLVMBuildTrunc(b, v, with_lanes(low_compute_type(M, to), v), "");
}
static LLVMValueRef saturated(low_module *M, tarn_dtype to, LLVMValueRef v) {
  if (tarn_dtype_size(to) <= 2) return saturated_narrow(M, to, v);
  LLVMTypeRef over[2] = {with_lanes(low_compute_type(M, to), v), LLVMTypeOf(v)};
  return low_intrinsic(M, tarn_dtype_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", over, 2,
                       &v, 1);
}

/* A double as a float, rounded to odd: rounded further to 16 bits that is what one rounding gives
 * (access/dtype.c). */
static LLVMValueRef odd_float(low_module *M, LLVMValueRef v) {
  LLVMBuilderRef b = M->b;
  LLVMTypeRef f64 = LLVMTypeOf(v), f32 = with_lanes(M->f32, v);
  LLVMValueRef f = LLVMBuildFPTrunc(b, v, f32, ""), back = LLVMBuildFPExt(b, f, f64, "");
  LLVMValueRef bits = LLVMBuildBitCast(b, f, with_lanes(M->i32, v), "");
  LLVMValueRef size[2] = {low_intrinsic(M, "llvm.fabs", &f64, 1, &back, 1),
                          low_intrinsic(M, "llvm.fabs", &f64, 1, &v, 1)};
  LLVMValueRef away = LLVMBuildFCmp(b, LLVMRealOGT, size[0], size[1], "");
  LLVMValueRef odd = LLVMBuildSub(b, bits, LLVMBuildZExt(b, away, LLVMTypeOf(bits), ""), "");
  odd = LLVMBuildOr(b, odd, like(M, bits, 1), "");
  bits = LLVMBuildSelect(b, LLVMBuildFCmp(b, LLVMRealONE, back, v, ""), odd, bits, "");
  return LLVMBuildBitCast(b, bits, f32, "");
}
/* An integer of 64 bits as a double, rounded to odd: of one that needs more than 53 bits the last
 * 12 become one bit. */
static LLVMValueRef odd_double(low_module *M, LLVMValueRef v, bool sign) {
  LLVMBuilderRef b = M->b;
  LLVMValueRef none = LLVMConstNull(LLVMTypeOf(v)), mask = like(M, v, 0xfff), by = like(M, v, 53);
  LLVMValueRef top = sign ? LLVMBuildAShr(b, v, by, "") : LLVMBuildLShr(b, v, by, "");
  LLVMValueRef large = LLVMBuildICmp(b, LLVMIntNE, top, none, "");
  if (sign)
    large = LLVMBuildAnd(b, large, LLVMBuildICmp(b, LLVMIntNE, top, like(M, v, -1), ""), "");
  LLVMValueRef cut = LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, v, mask, ""), none, "");
  LLVMValueRef odd = LLVMBuildAnd(b, v, LLVMBuildNot(b, mask, ""), "");
  odd = LLVMBuildOr(b, odd, like(M, v, 0x800), "");
  v = LLVMBuildSelect(b, LLVMBuildAnd(b, large, cut, ""), odd, v, "");
  LLVMTypeRef t = with_lanes(M->f64, v);
  return sign ? LLVMBuildSIToFP(b, v, t, "") : LLVMBuildUIToFP(b, v, t, "");
}
/* To the compute type of `to`, from which that is one rounding away. All integers that are not
 * exact in f32 are too large for f16. */
static LLVMValueRef from_integer(low_module *M, tarn_dtype from, tarn_dtype to, LLVMValueRef v) {
  bool sign = tarn_dtype_is_signed(from), twice = to == TARN_BF16 && tarn_dtype_size(from) >= 4;
  LLVMTypeRef t = with_lanes(twice ? M->f64 : low_compute_type(M, to), v);
  if (twice && tarn_dtype_size(from) == 8) return odd_float(M, odd_double(M, v, sign));
  v = sign ? LLVMBuildSIToFP(M->b, v, t, "") : LLVMBuildUIToFP(M->b, v, t, "");
  return twice ? odd_float(M, v) : v;
}

static LLVMValueRef low_cast(low_module *M, tarn_dtype from, tarn_dtype to, LLVMValueRef v) {
  LLVMBuilderRef b = M->b;
  LLVMTypeRef t = with_lanes(low_compute_type(M, to), v);
  bool ff = tarn_dtype_is_float(from), tf = tarn_dtype_is_float(to);
  if (from == to) return v;
  if (to == TARN_BOOL) {
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(v));
    return ff ? LLVMBuildFCmp(b, LLVMRealUNE, v, zero, "")
              : LLVMBuildICmp(b, LLVMIntNE, v, zero, "");
  }
  if (ff && !tf) return saturated(M, to, v);
  if (!ff && tf) v = from_integer(M, from, to, v);
  if (!ff && !tf) return LLVMBuildIntCast2(b, v, t, tarn_dtype_is_signed(from), "");
  if (ff && to == TARN_F64) v = LLVMBuildFPExt(b, v, t, "");
  if (from == TARN_F64) v = is_half(to) ? odd_float(M, v) : LLVMBuildFPTrunc(b, v, t, "");
  return is_half(to) ? low_from_memory(M, to, low_to_memory(M, to, v)) : v;
}

/* ---------------------------------------------------------------- operators */
typedef struct args {
  low_module *M;
  bool exact;   /* rounded as written: a step is computed from it */
  tarn_dtype t; /* of the operands (SEL: of the values) */
  LLVMValueRef v[3];
} args;
typedef LLVMValueRef emitter(const args *a);

static LLVMValueRef flagged(const args *a, LLVMValueRef v) {
  if (a->M->contract && !a->exact && LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
    LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
  return v;
}
static LLVMValueRef pick(const args *a, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildSelect(a->M->b, c, x, y, "");
}
static LLVMValueRef unary(const args *a, const char *name) {
  LLVMTypeRef t = LLVMTypeOf(a->v[0]);
  LLVMValueRef v = a->v[0];
  return low_intrinsic(a->M, name, &t, 1, &v, 1);
}
static LLVMValueRef binary(const args *a, const char *name) {
  LLVMTypeRef t = LLVMTypeOf(a->v[0]);
  LLVMValueRef v[2] = {a->v[0], a->v[1]};
  return low_intrinsic(a->M, name, &t, 1, v, 2);
}
#define B           a->M->b
#define X           a->v[0]
#define Y           a->v[1]
#define IS_NULL(v)  LLVMBuildICmp(B, LLVMIntEQ, v, LLVMConstNull(LLVMTypeOf(v)), "")
#define NEGATIVE(v) LLVMBuildICmp(B, LLVMIntSLT, v, LLVMConstNull(LLVMTypeOf(v)), "")

/* With contraction 0 is no term. It is a factor: of infinity it makes NaN. */
static bool is_nothing(const args *a, LLVMValueRef v) {
  return a->M->contract && LLVMIsConstant(v) && LLVMIsNull(v);
}
static LLVMValueRef f_add(const args *a) {
  if (is_nothing(a, X)) return Y;
  return is_nothing(a, Y) ? X : flagged(a, LLVMBuildFAdd(B, X, Y, ""));
}
static LLVMValueRef f_sub(const args *a) { return flagged(a, LLVMBuildFSub(B, X, Y, "")); }
static LLVMValueRef f_mul(const args *a) { return flagged(a, LLVMBuildFMul(B, X, Y, "")); }
static LLVMValueRef f_neg(const args *a) { return LLVMBuildFNeg(B, X, ""); }
static LLVMValueRef libm(low_module *M, tarn_dtype t, const char *name, LLVMValueRef *v,
                         unsigned nargs);
/* LLVM makes a call of it for a CPU, and x - y · trunc(x / y), which is wrong, for a GPU. */
static LLVMValueRef f_fmod(const args *a) {
  LLVMValueRef v[2] = {X, Y};
  return a->M->regs.warp ? libm(a->M, a->t, "fmod", v, 2) : LLVMBuildFRem(B, X, Y, "");
}
static LLVMValueRef f_abs(const args *a) { return unary(a, "llvm.fabs"); }
static LLVMValueRef f_sqrt(const args *a) { return unary(a, "llvm.sqrt"); }
static LLVMValueRef f_floor(const args *a) { return unary(a, "llvm.floor"); }
static LLVMValueRef f_ceil(const args *a) { return unary(a, "llvm.ceil"); }
static LLVMValueRef f_round(const args *a) { return unary(a, "llvm.rint"); }
/* A GPU has an instruction. f16 and bf16 have no more bits. */
static LLVMValueRef f_tf32(const args *a) {
  if (is_half(a->t)) return X;
  LLVMValueRef x = a->t == TARN_F64 ? odd_float(a->M, X) : X;
  LLVMTypeRef t = LLVMTypeOf(x);
  if (a->M->regs.warp && low_lanes_of(x) == 1) {
    x = LLVMBuildBitCast(B, low_intrinsic(a->M, "llvm.nvvm.f2tf32.rna", NULL, 0, &x, 1), t, "");
  } else {
    LLVMValueRef u = LLVMBuildBitCast(B, x, with_lanes(a->M->i32, x), "");
    LLVMValueRef r = LLVMBuildAdd(B, u, like(a->M, u, 0x1000), "");
    r = LLVMBuildAnd(B, r, like(a->M, u, ~0x1fff), "");
    x = pick(a, LLVMBuildFCmp(B, LLVMRealUNO, x, x, ""), x, LLVMBuildBitCast(B, r, t, ""));
  }
  return a->t == TARN_F64 ? LLVMBuildFPExt(B, x, LLVMTypeOf(X), "") : x;
}
static LLVMValueRef f_eq(const args *a) { return LLVMBuildFCmp(B, LLVMRealOEQ, X, Y, ""); }
static LLVMValueRef f_lt(const args *a) { return LLVMBuildFCmp(B, LLVMRealOLT, X, Y, ""); }
static LLVMValueRef f_le(const args *a) { return LLVMBuildFCmp(B, LLVMRealOLE, X, Y, ""); }
static LLVMValueRef f_isnan(const args *a) { return LLVMBuildFCmp(B, LLVMRealUNO, X, X, ""); }
static LLVMValueRef f_isinf(const args *a) {
  return LLVMBuildFCmp(B, LLVMRealOEQ, f_abs(a), like(a->M, X, INFINITY), "");
}
static LLVMValueRef f_sign(const args *a) {
  LLVMValueRef zero = like(a->M, X, 0), nan = f_isnan(a);
  LLVMValueRef low =
      pick(a, LLVMBuildFCmp(B, LLVMRealOLT, X, zero, ""), like(a->M, X, -1), pick(a, nan, X, zero));
  return pick(a, LLVMBuildFCmp(B, LLVMRealOGT, X, zero, ""), like(a->M, X, 1), low);
}
static LLVMValueRef f_mod(const args *a) {
  LLVMValueRef zero = like(a->M, X, 0), r = f_fmod(a), sign[2] = {zero, Y};
  LLVMTypeRef t = LLVMTypeOf(X);
  LLVMValueRef rn = LLVMBuildFCmp(B, LLVMRealOLT, r, zero, ""),
               yn = LLVMBuildFCmp(B, LLVMRealOLT, Y, zero, "");
  LLVMValueRef moved = pick(a, LLVMBuildXor(B, rn, yn, ""), LLVMBuildFAdd(B, r, Y, ""), r);
  LLVMValueRef nothing = low_intrinsic(a->M, "llvm.copysign", &t, 1, sign, 2);
  return pick(a, LLVMBuildFCmp(B, LLVMRealOEQ, r, zero, ""), nothing, moved);
}

/* One number in all lanes. */
static bool plain_number(LLVMValueRef v) {
  if (!LLVMIsConstant(v)) return false;
  uint32_t n = low_lanes_of(v);
  LLVMValueRef s = n > 1 ? LLVMGetAggregateElement(v, 0) : v;
  LLVMBool lost;
  for (uint32_t i = 1; i < n; i++)
    if (LLVMGetAggregateElement(v, i) != s) return false;
  return s && LLVMIsAConstantFP(s) && !isnan(LLVMConstRealGetDouble(s, &lost));
}
/* By a number whose reciprocal is a number of usual size: times that, unless results are to be
 * rounded as written. */
static LLVMValueRef f_div(const args *a) {
  if (!a->M->contract || a->exact || a->t == TARN_F64 || !plain_number(Y))
    return LLVMBuildFDiv(B, X, Y, "");
  LLVMBool lost;
  LLVMValueRef s = low_lanes_of(Y) > 1 ? LLVMGetAggregateElement(Y, 0) : Y;
  double by = LLVMConstRealGetDouble(s, &lost);
  if (!(fabs(by) > 1e-30 && fabs(by) < 1e30)) return LLVMBuildFDiv(B, X, Y, "");
  return flagged(a, LLVMBuildFMul(B, X, like(a->M, X, 1 / by), ""));
}

/* x if it is greater (less), else y, also where one is NaN, in one instruction, which LLVM is not
 * left to take apart. NULL: the machine has none. */
static LLVMValueRef chosen(const args *a, LLVMValueRef x, LLVMValueRef y,
                           LLVMRealPredicate better) {
  uint32_t n = low_lanes_of(x);
  low_isa what = better == LLVMRealOGT ? LOW_ISA_MAX : LOW_ISA_MIN;
  const low_isa_row *row = a->t == TARN_F32 ? low_isa_find(a->M, what, n) : NULL;
  LLVMValueRef v[3] = {x, y, LLVMConstInt(a->M->i32, 4, 0)}; /* rounding as it is set */
  return row ? low_intrinsic(a->M, row->name, NULL, 0, v, row->rounds ? 3 : 2) : NULL;
}
/* All ones, a NaN, where q holds: without masks in registers of their own that is one operation
 * less than choosing. */
static LLVMValueRef with_ones(const args *a, LLVMValueRef q, LLVMValueRef x) {
  LLVMTypeRef t = low_vec(a->M->i32, low_lanes_of(x));
  LLVMValueRef ones = LLVMBuildSExt(B, q, t, "");
  return LLVMBuildBitCast(B, LLVMBuildOr(B, LLVMBuildBitCast(B, x, t, ""), ones, ""), LLVMTypeOf(x),
                          "");
}
/* llvm.maximum and llvm.minimum where LLVM 19 gets them wrong: of 16-bit floats it makes
 * instructions of 16 bits, and where the processor has none loses a NaN; on 32-bit Arm it takes
 * subnormal f32 for 0, and of f64 ends the process. Equal ones have the same bits, or are zeros. */
static bool has_extreme(const args *a) {
  return !is_half(a->t) && LLVMPointerSize(LLVMGetModuleDataLayout(a->M->m)) == 8;
}
static LLVMValueRef extreme_by_bits(const args *a, LLVMRealPredicate better) {
  LLVMTypeRef t = low_vec(a->t == TARN_F64 ? a->M->i64 : a->M->i32, low_lanes_of(X));
  LLVMValueRef x = LLVMBuildBitCast(B, X, t, ""), y = LLVMBuildBitCast(B, Y, t, "");
  LLVMValueRef zero = better == LLVMRealOGT ? LLVMBuildAnd(B, x, y, "") : LLVMBuildOr(B, x, y, "");
  LLVMValueRef r = pick(a, LLVMBuildFCmp(B, better, X, Y, ""), X, Y);
  r = pick(a, LLVMBuildFCmp(B, LLVMRealOEQ, X, Y, ""), LLVMBuildBitCast(B, zero, LLVMTypeOf(X), ""),
           r);
  return pick(a, LLVMBuildFCmp(B, LLVMRealUNO, X, Y, ""), like(a->M, X, NAN), r);
}
/* NaN if either is; the sign of a zero is kept in strict mode only. One instruction when one side
 * is a number, two when there is one that keeps a NaN of x and masks: y's is put in, which does not
 * wait for x, an accumulator. */
static LLVMValueRef extreme(const args *a, LLVMRealPredicate better, const char *strict) {
  LLVMValueRef x = X, y = Y;
  if (!a->M->contract) return has_extreme(a) ? binary(a, strict) : extreme_by_bits(a, better);
  if (plain_number(y)) x = Y, y = X;
  if (a->M->nan_shows) return pick(a, LLVMBuildFCmp(B, better, x, y, ""), x, y);
  LLVMValueRef r = plain_number(x) ? NULL : chosen(a, y, x, better);
  if (r && low_lanes_of(r) == 8 && a->M->regs.slow_masks)
    return with_ones(a, LLVMBuildFCmp(B, LLVMRealUNO, y, y, ""), r);
  if (r) return pick(a, LLVMBuildFCmp(B, LLVMRealORD, y, y, ""), r, y);
  r = pick(a, LLVMBuildFCmp(B, better, x, y, ""), x, y);
  return plain_number(x) ? r : pick(a, LLVMBuildFCmp(B, LLVMRealUNO, x, x, ""), x, r);
}
static LLVMValueRef f_max(const args *a) { return extreme(a, LLVMRealOGT, "llvm.maximum"); }
static LLVMValueRef f_min(const args *a) { return extreme(a, LLVMRealOLT, "llvm.minimum"); }

static LLVMValueRef i_add(const args *a) { return LLVMBuildAdd(B, X, Y, ""); }
static LLVMValueRef i_sub(const args *a) { return LLVMBuildSub(B, X, Y, ""); }
static LLVMValueRef i_mul(const args *a) { return LLVMBuildMul(B, X, Y, ""); }
static LLVMValueRef i_neg(const args *a) { return LLVMBuildNeg(B, X, ""); }
static LLVMValueRef i_and(const args *a) { return LLVMBuildAnd(B, X, Y, ""); }
static LLVMValueRef i_or(const args *a) { return LLVMBuildOr(B, X, Y, ""); }
static LLVMValueRef i_xor(const args *a) { return LLVMBuildXor(B, X, Y, ""); }
static LLVMValueRef i_not(const args *a) { return LLVMBuildNot(B, X, ""); }
static LLVMValueRef i_eq(const args *a) { return LLVMBuildICmp(B, LLVMIntEQ, X, Y, ""); }
static LLVMValueRef i_lt(const args *a) {
  return LLVMBuildICmp(B, tarn_dtype_is_signed(a->t) ? LLVMIntSLT : LLVMIntULT, X, Y, "");
}
static LLVMValueRef i_le(const args *a) {
  return LLVMBuildICmp(B, tarn_dtype_is_signed(a->t) ? LLVMIntSLE : LLVMIntULE, X, Y, "");
}
static LLVMValueRef i_min(const args *a) { return pick(a, i_lt(a), X, Y); }
static LLVMValueRef i_max(const args *a) { return pick(a, i_lt(a), Y, X); }
static LLVMValueRef i_abs(const args *a) {
  return tarn_dtype_is_signed(a->t) ? pick(a, NEGATIVE(X), i_neg(a), X) : X;
}
static LLVMValueRef i_sign(const args *a) {
  LLVMValueRef r = pick(a, IS_NULL(X), LLVMConstNull(LLVMTypeOf(X)), like(a->M, X, 1));
  return tarn_dtype_is_signed(a->t) ? pick(a, NEGATIVE(X), like(a->M, X, -1), r) : r;
}
/* A divisor that never traps; *special: lanes where it was replaced (0, and -1 of a signed type).
 */
static LLVMValueRef divisor(const args *a, LLVMValueRef *zero, LLVMValueRef *minus) {
  *zero = IS_NULL(Y);
  *minus = tarn_dtype_is_signed(a->t) ? LLVMBuildICmp(B, LLVMIntEQ, Y, like(a->M, Y, -1), "")
                                      : LLVMConstNull(LLVMTypeOf(*zero));
  return pick(a, LLVMBuildOr(B, *zero, *minus, ""), like(a->M, Y, 1), Y);
}
static LLVMValueRef i_div(const args *a) {
  LLVMValueRef zero, minus, d = divisor(a, &zero, &minus);
  LLVMValueRef q =
      tarn_dtype_is_signed(a->t) ? LLVMBuildSDiv(B, X, d, "") : LLVMBuildUDiv(B, X, d, "");
  return pick(a, zero, LLVMConstNull(LLVMTypeOf(X)), pick(a, minus, i_neg(a), q));
}
static LLVMValueRef i_fmod(const args *a) {
  LLVMValueRef zero, minus, d = divisor(a, &zero, &minus);
  LLVMValueRef r =
      tarn_dtype_is_signed(a->t) ? LLVMBuildSRem(B, X, d, "") : LLVMBuildURem(B, X, d, "");
  return pick(a, LLVMBuildOr(B, zero, minus, ""), LLVMConstNull(LLVMTypeOf(X)), r);
}
static LLVMValueRef i_mod(const args *a) {
  LLVMValueRef r = i_fmod(a);
  if (!tarn_dtype_is_signed(a->t)) return r;
  LLVMValueRef other = LLVMBuildXor(B, NEGATIVE(r), NEGATIVE(Y), "");
  other = LLVMBuildAnd(B, other, LLVMBuildNot(B, IS_NULL(r), ""), "");
  return pick(a, other, LLVMBuildAdd(B, r, Y, ""), r);
}
static LLVMValueRef i_shift(const args *a, bool left) {
  unsigned bits = (unsigned)tarn_dtype_size(a->t) * 8;
  LLVMValueRef out = LLVMBuildICmp(B, LLVMIntUGE, Y, like(a->M, Y, bits), ""),
               rest = LLVMConstNull(LLVMTypeOf(X));
  LLVMValueRef n = pick(a, out, rest, Y), r;
  if (left) r = LLVMBuildShl(B, X, n, "");
  else r = tarn_dtype_is_signed(a->t) ? LLVMBuildAShr(B, X, n, "") : LLVMBuildLShr(B, X, n, "");
  if (!left && tarn_dtype_is_signed(a->t)) rest = pick(a, NEGATIVE(X), like(a->M, X, -1), rest);
  return pick(a, out, rest, r);
}
static LLVMValueRef i_shl(const args *a) { return i_shift(a, true); }
static LLVMValueRef i_shr(const args *a) { return i_shift(a, false); }
/* Square and multiply over all bits of the exponent; negative ones give 1 / x^|y| truncated. */
static LLVMValueRef i_pow(const args *a) {
  LLVMValueRef one = like(a->M, X, 1), r = one, p = X, e = Y;
  for (unsigned i = 0; i < tarn_dtype_size(a->t) * 8; i++) {
    LLVMValueRef odd = LLVMBuildAnd(B, e, one, "");
    r = LLVMBuildMul(B, r, pick(a, IS_NULL(odd), one, p), "");
    p = LLVMBuildMul(B, p, p, ""), e = LLVMBuildLShr(B, e, one, "");
  }
  if (!tarn_dtype_is_signed(a->t)) return r;
  LLVMValueRef minus = like(a->M, X, -1), odd = LLVMBuildAnd(B, Y, one, "");
  LLVMValueRef inv = pick(a, LLVMBuildICmp(B, LLVMIntEQ, X, minus, ""),
                          pick(a, IS_NULL(odd), one, minus), LLVMConstNull(LLVMTypeOf(X)));
  inv = pick(a, LLVMBuildICmp(B, LLVMIntEQ, X, one, ""), one, inv);
  return pick(a, NEGATIVE(Y), inv, r);
}
static LLVMValueRef f_select(const args *a) { return pick(a, X, a->v[1], a->v[2]); }
static LLVMValueRef i_select(const args *a) { return f_select(a); }

/* Lane by lane through libm: in strict mode in double, as the interpreter does. */
static LLVMValueRef libm_lanes(low_module *M, tarn_dtype t, const char *name, const LLVMValueRef *v,
                               unsigned nargs) {
  uint32_t n = low_lanes_of(v[0]);
  bool wide = t == TARN_F64 || !M->contract;
  char full[16];
  strcpy(full, name);
  if (!wide) strcat(full, "f");
  LLVMTypeRef st = low_compute_type(M, t), ct = wide ? M->f64 : M->f32;
  LLVMValueRef r = LLVMGetPoison(low_vec(st, n));
  for (uint32_t i = 0; i < n; i++) {
    LLVMValueRef at = LLVMConstInt(M->i32, i, 0), x[2];
    for (unsigned k = 0; k < nargs; k++) {
      x[k] = n == 1 ? v[k] : LLVMBuildExtractElement(M->b, v[k], at, "");
      if (st != ct) x[k] = LLVMBuildFPExt(M->b, x[k], ct, "");
    }
    LLVMValueRef y = low_call(M, full, ct, x, nargs);
    if (st != ct) y = is_half(t) ? odd_float(M, y) : LLVMBuildFPTrunc(M->b, y, st, "");
    r = n == 1 ? y : LLVMBuildInsertElement(M->b, r, y, at, "");
  }
  return r;
}
/* All lanes of a vector by a function of the module's: LLVM takes a time that grows as the square
 * of the calls in one block. */
static LLVMValueRef libm(low_module *M, tarn_dtype t, const char *name, LLVMValueRef *v,
                         unsigned nargs) {
  uint32_t n = low_lanes_of(v[0]);
  if (n == 1) return libm_lanes(M, t, name, v, nargs);
  LLVMTypeRef of = LLVMTypeOf(v[0]), arg[2] = {of, of};
  LLVMTypeRef type = LLVMFunctionType(of, arg, nargs, 0);
  const char *full =
      tarn_format(M->cx, "%s.%s.%s.%u", M->o->name, name, tarn_dtype_name(t), (unsigned)n);
  LLVMValueRef f = LLVMGetNamedFunction(M->m, full), lanes[2];
  if (!f) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(M->b);
    f = low_function(M, full, type);
    low_attribute(M, f, (unsigned)LLVMAttributeFunctionIndex, "noinline");
    LLVMPositionBuilderAtEnd(M->b, LLVMAppendBasicBlockInContext(M->lc, f, ""));
    for (unsigned k = 0; k < nargs; k++) lanes[k] = LLVMGetParam(f, k);
    LLVMBuildRet(M->b, libm_lanes(M, t, name, lanes, nargs));
    LLVMPositionBuilderAtEnd(M->b, here);
  }
  return LLVMBuildCall2(M->b, type, f, v, nargs, "");
}

/* musl's takes numbers below 1 for others. */
static LLVMValueRef f_acosh(const args *a) {
  LLVMValueRef x = X, v = libm(a->M, a->t, "acosh", &x, 1);
  return pick(a, LLVMBuildFCmp(B, LLVMRealOGE, X, like(a->M, X, 1), ""), v, like(a->M, X, NAN));
}

/* x to a power that is a small number, by products. */
static LLVMValueRef f_pow(const args *a) {
  if (!a->M->contract || !plain_number(Y)) return NULL;
  LLVMValueRef s = low_lanes_of(Y) > 1 ? LLVMGetAggregateElement(Y, 0) : Y;
  LLVMBool lost;
  double e = LLVMConstRealGetDouble(s, &lost);
  if (e == 1) return X;
  LLVMValueRef xx = LLVMBuildFMul(B, X, X, "");
  if (e == 2) return xx;
  if (e == 3) return LLVMBuildFMul(B, xx, X, "");
  if (e == 4) return LLVMBuildFMul(B, xx, xx, "");
  if (e == -1) return LLVMBuildFDiv(B, like(a->M, X, 1), X, "");
  return NULL;
}

#define CODE_NONE(name) NULL, NULL
#define CODE_OWN(name)  f_##name, NULL
#define CODE_BOTH(name) f_##name, #name
#define CODE_LIBM(name) NULL, #name
#define CODE_VEC(name)  NULL, #name
static const struct row {
  emitter *f;
  const char *libm; /* floats: the function of the C library */
  emitter *i;       /* integers and bool */
} rows[TARN_FX_COUNT] = {
#define FX(ID, name, arity, gives, floats, ints, bools, domain, error, rounds, range, code, ...)   \
  [TARN_FX_##ID] = {CODE_##code(name), TARN_IF_##ints(i_##name)},
#include "access/fx.def"
#undef FX
};

static LLVMValueRef apply(low_module *M, uint32_t op, args *a, tarn_dtype *type) {
  const struct row *r = &rows[op];
  bool flt = tarn_dtype_is_float(a->t);
  *type = tarn_fx_gives_bool(op) ? TARN_BOOL : a->t;
  LLVMValueRef v = NULL;
  if (flt && r->libm && M->contract) v = low_math(M, (tarn_fxop)op, a->v[0]);
  if (!v && (flt ? r->f : r->i)) v = (flt ? r->f : r->i)(a);
  if (!v && flt && r->libm) v = libm(M, a->t, r->libm, a->v, tarn_fx_arity(op));
  if (!v)
    tarn_raise(M->cx, TARN_INTERNAL, "lower: a scalar operator is not defined for %s",
               tarn_dtype_name(a->t));
  return *type == TARN_BOOL ? v : rounded(M, a->t, a->exact, v);
}

/* ---------------------------------------------------------------- expressions */
typedef struct done {
  uint32_t f;
  tarn_dtype t;
  LLVMValueRef v;
} done;
typedef struct walk {
  low_module *M;
  const LLVMValueRef *hole;
  const tarn_dtype *htype;
  uint32_t nhole, n;
  tarn_fxsteps steps;
  TARN_VEC(done) seen;
} walk;

static done emit(walk *w, uint32_t f) {
  low_module *M = w->M;
  const tarn_fx *x = tarn_fx_get(M->L, f);
  done r = {f, x->dtype, NULL};
  if (x->op == TARN_FX_HOLE) {
    if (x->hole >= w->nhole)
      tarn_raise(M->cx, TARN_INTERNAL, "lower: an expression has a hole too many");
    return (done){f, w->htype[x->hole], w->hole[x->hole]};
  }
  if (x->op == TARN_FX_CONST) return r.v = low_fx_const(M, f, w->n), r;
  for (uint32_t i = 0; i < w->seen.n; i++)
    if (w->seen.p[i].f == f) return w->seen.p[i];
  args a = {.M = M, .exact = tarn_fx_before_step(&w->steps, f)};
  for (uint32_t k = 0; k < tarn_fx_arity(x->op); k++) {
    done d = emit(w, x->kid[k]);
    a.v[k] = d.v;
    if (k == 0 || x->op == TARN_FX_SEL) a.t = d.t;
  }
  if (x->op == TARN_FX_CAST) r.v = low_cast(M, a.t, x->dtype, a.v[0]);
  else r.v = apply(M, x->op, &a, &r.t);
  tarn_push(M->cx, &w->seen, r);
  return r;
}

LLVMValueRef low_fx(low_module *M, uint32_t f, const LLVMValueRef *hole, const tarn_dtype *htype,
                    uint32_t nhole, uint32_t n, tarn_dtype *type) {
  tarn_mark mark = tarn_arena_mark(M->cx);
  walk w = {.M = M, .hole = hole, .htype = htype, .nhole = nhole, .n = n};
  if (M->contract) w.steps = tarn_fx_steps(M->cx, M->L, f);
  done d = emit(&w, f);
  tarn_release(M->cx, mark);
  if (type) *type = d.t;
  return d.v;
}
