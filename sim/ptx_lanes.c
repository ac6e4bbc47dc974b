/* What ops compute in each lane: a table of rows with a name, types and an expression, for the ops
 * whose result depends on their operands alone, and comparisons.
 *
 * Signed and untyped forms that give the same bits have one row (ptx_decode.c names it). */
#include "access/access.h"
#include "sim/ptx_internal.h"
#include <fenv.h>
#include <math.h>
#include <string.h>

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && __GNUC__ >= 12 &&      \
    !defined(__SANITIZE_ADDRESS__)
#define FAST __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define FAST
#endif
#if defined(__clang__)
#define EACH_LANE _Pragma("clang loop vectorize(enable)") for (u32 l = 0; l < PTX_LANES; l++)
#else
#define EACH_LANE _Pragma("GCC ivdep") for (u32 l = 0; l < PTX_LANES; l++)
#endif

/* ---------------------------------------------------------------- functions of one lane */
static f32 half(u32 x) { return tarn_from_f16((u16)x); }
static u16 to_half(f32 x) { return tarn_to_f16(x); }
static f32 brain(u32 x) { return tarn_from_bf16((u16)x); }
static u16 to_brain(f32 x) { return tarn_to_bf16(x); }
/* Rounds once: the sum of products of halves is exact in f64, but for sums that reach too far. */
static f32 fma_of(f32 a, f32 b, f32 c) { return (f32)((f64)a * b + c); }
static f32 least(f32 a, f32 b) {
  if (a == b) return signbit(a) ? a : b;
  return fminf(a, b);
}
static f32 greatest(f32 a, f32 b) {
  if (a == b) return signbit(a) ? b : a;
  return fmaxf(a, b);
}
static f32 least_nan(f32 a, f32 b) { return isnan(a) || isnan(b) ? NAN : least(a, b); }
static f32 greatest_nan(f32 a, f32 b) { return isnan(a) || isnan(b) ? NAN : greatest(a, b); }
static u32 reversed(u32 x) {
  u32 y = 0;
  for (u32 i = 0; i < 32; i++) y |= (x >> i & 1) << (31 - i);
  return y;
}
/* The upper 32 bits alone, what is subnormal as 0. */
static f64 upper(f64 v) {
  u64 bits;
  if (fabs(v) < 0x1p-1022) return copysign(0, v);
  memcpy(&bits, &v, sizeof bits);
  bits &= UINT64_C(0xffffffff00000000);
  memcpy(&v, &bits, sizeof v);
  return v;
}
static u32 permuted(u32 a, u32 b, u32 c) {
  u64 all = (u64)b << 32 | a;
  u32 d = 0;
  for (u32 i = 0; i < 4; i++) {
    u32 pick = c >> (4 * i) & 15, byte = (u32)(all >> (8 * (pick & 7))) & 255;
    if (pick & 8) byte = byte & 128 ? 255 : 0;
    d |= byte << (8 * i);
  }
  return d;
}
static u32 dot4(u32 a, u32 b, u32 c, bool sa, bool sb) {
  for (u32 i = 0; i < 4; i++) {
    u32 x = a >> (8 * i) & 255, y = b >> (8 * i) & 255;
    i32 p = sa ? (i32)(int8_t)x : (i32)x;
    i32 q = sb ? (i32)(int8_t)y : (i32)y;
    c += (u32)(p * q);
  }
  return c;
}
/* Bits pos … pos + len - 1 of the low `all` ones, extended. */
static u64 extracted_of(u64 a, u32 pos, u32 len, bool sign, u32 all) {
  pos &= 255, len &= 255;
  u32 top = pos + len > all ? all - 1 : pos + len - 1;
  u64 d = 0;
  bool fill = sign && len && (a >> (top & (all - 1)) & 1);
  for (u32 i = 0; i < all; i++) {
    bool bit = i < len && pos + i < all ? a >> (pos + i) & 1 : fill;
    d |= (u64)bit << i;
  }
  return d;
}
static u32 extracted(u32 a, u32 pos, u32 len, bool sign) {
  return (u32)extracted_of(a, pos, len, sign, 32);
}
static u64 extracted64(u64 a, u32 pos, u32 len, bool sign) {
  return extracted_of(a, pos, len, sign, 64);
}
static u64 inserted(u64 a, u64 b, u32 pos, u32 len, u32 all) {
  pos &= 255, len &= 255;
  for (u32 i = 0; i < len && pos + i < all; i++)
    b = (b & ~(UINT64_C(1) << (pos + i))) | (a >> i & 1) << (pos + i);
  return b;
}
static u64 high64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
static u64 high64s(i64 a, i64 b) { return (u64)(i64)((__int128)a * b >> 64); }
#define QUOTIENT(T, a, b) ((b) == 0 ? (T)-1 : (a) == MIN_##T && (b) == (T)-1 ? (a) : (T)((a) / (b)))
#define REST(T, a, b)     ((b) == 0 ? (a) : (a) == MIN_##T && (b) == (T)-1 ? (T)0 : (T)((a) % (b)))
#define MIN_i16           INT16_MIN
#define MIN_i32           INT32_MIN
#define MIN_i64           INT64_MIN
#define LOW(x)            ((x)&0xffffu)
#define HIGH(x)           ((x) >> 16)
#define TWO(lo, hi)       ((u32)(lo) | (u32)(hi) << 16)

/* ---------------------------------------------------------------- the table */
/* X1 … X4(ROW, name, type of d, types of a, b, c, e, expression) */
#define ROWS(X1, X2, X3, X4)                                                                       \
  X2(ADD16, "add.u16", u16, u16, u16, (u16)(a + b))                                                \
  X2(ADD32, "add.u32", u32, u32, u32, a + b)                                                       \
  X2(ADD64, "add.u64", u64, u64, u64, a + b)                                                       \
  X2(ADDF, "add.f32", f32, f32, f32, a + b)                                                        \
  X2(ADDD, "add.f64", f64, f64, f64, a + b)                                                        \
  X2(ADDH, "add.f16", u16, u16, u16, to_half(half(a) + half(b)))                                   \
  X2(ADDBF, "add.bf16", u16, u16, u16, to_brain(brain(a) + brain(b)))                              \
  X2(ADDH2, "add.f16x2", u32, u32, u32,                                                            \
     TWO(to_half(half(LOW(a)) + half(LOW(b))), to_half(half(HIGH(a)) + half(HIGH(b)))))            \
  X2(SUB16, "sub.u16", u16, u16, u16, (u16)(a - b))                                                \
  X2(SUB32, "sub.u32", u32, u32, u32, a - b)                                                       \
  X2(SUB64, "sub.u64", u64, u64, u64, a - b)                                                       \
  X2(SUBF, "sub.f32", f32, f32, f32, a - b)                                                        \
  X2(SUBD, "sub.f64", f64, f64, f64, a - b)                                                        \
  X2(SUBH, "sub.f16", u16, u16, u16, to_half(half(a) - half(b)))                                   \
  X2(SUBH2, "sub.f16x2", u32, u32, u32,                                                            \
     TWO(to_half(half(LOW(a)) - half(LOW(b))), to_half(half(HIGH(a)) - half(HIGH(b)))))            \
  X2(MUL16, "mul.lo.u16", u16, u16, u16, (u16)((u32)a * b))                                        \
  X2(MUL32, "mul.lo.u32", u32, u32, u32, a *b)                                                     \
  X2(MUL64, "mul.lo.u64", u64, u64, u64, a *b)                                                     \
  X2(MULHU16, "mul.hi.u16", u16, u16, u16, (u16)((u32)a * b >> 16))                                \
  X2(MULHS16, "mul.hi.s16", u16, i16, i16, (u16)((i32)a * b >> 16))                                \
  X2(MULHU32, "mul.hi.u32", u32, u32, u32, (u32)((u64)a * b >> 32))                                \
  X2(MULHS32, "mul.hi.s32", u32, i32, i32, (u32)((i64)a * b >> 32))                                \
  X2(MULHU64, "mul.hi.u64", u64, u64, u64, high64(a, b))                                           \
  X2(MULHS64, "mul.hi.s64", u64, i64, i64, high64s(a, b))                                          \
  X2(MULWU16, "mul.wide.u16", u32, u16, u16, (u32)a *b)                                            \
  X2(MULWS16, "mul.wide.s16", u32, i16, i16, (u32)((i32)a * b))                                    \
  X2(MULWU32, "mul.wide.u32", u64, u32, u32, (u64)a *b)                                            \
  X2(MULWS32, "mul.wide.s32", u64, i32, i32, (u64)((i64)a * b))                                    \
  X2(MULF, "mul.f32", f32, f32, f32, a *b)                                                         \
  X2(MULD, "mul.f64", f64, f64, f64, a *b)                                                         \
  X2(MULH, "mul.f16", u16, u16, u16, to_half(half(a) * half(b)))                                   \
  X2(MULH2, "mul.f16x2", u32, u32, u32,                                                            \
     TWO(to_half(half(LOW(a)) * half(LOW(b))), to_half(half(HIGH(a)) * half(HIGH(b)))))            \
  X3(MAD16, "mad.lo.u16", u16, u16, u16, u16, (u16)((u32)a * b + c))                               \
  X3(MAD32, "mad.lo.u32", u32, u32, u32, u32, a *b + c)                                            \
  X3(MAD64, "mad.lo.u64", u64, u64, u64, u64, a *b + c)                                            \
  X3(MADHU32, "mad.hi.u32", u32, u32, u32, u32, (u32)((u64)a * b >> 32) + c)                       \
  X3(MADHS32, "mad.hi.s32", u32, i32, i32, u32, (u32)((i64)a * b >> 32) + c)                       \
  X3(MADWU16, "mad.wide.u16", u32, u16, u16, u32, (u32)a *b + c)                                   \
  X3(MADWS16, "mad.wide.s16", u32, i16, i16, u32, (u32)((i32)a * b) + c)                           \
  X3(MADWU32, "mad.wide.u32", u64, u32, u32, u64, (u64)a *b + c)                                   \
  X3(MADWS32, "mad.wide.s32", u64, i32, i32, u64, (u64)((i64)a * b) + c)                           \
  X3(FMAF, "fma.f32", f32, f32, f32, f32, __builtin_fmaf(a, b, c))                                 \
  X3(FMAD, "fma.f64", f64, f64, f64, f64, __builtin_fma(a, b, c))                                  \
  X3(FMAH, "fma.f16", u16, u16, u16, u16, to_half(fma_of(half(a), half(b), half(c))))              \
  X3(FMABF, "fma.bf16", u16, u16, u16, u16, to_brain(fma_of(brain(a), brain(b), brain(c))))        \
  X3(FMAH2, "fma.f16x2", u32, u32, u32, u32,                                                       \
     TWO(to_half(fma_of(half(LOW(a)), half(LOW(b)), half(LOW(c)))),                                \
         to_half(fma_of(half(HIGH(a)), half(HIGH(b)), half(HIGH(c))))))                            \
  X3(FMABF2, "fma.bf16x2", u32, u32, u32, u32,                                                     \
     TWO(to_brain(fma_of(brain(LOW(a)), brain(LOW(b)), brain(LOW(c)))),                            \
         to_brain(fma_of(brain(HIGH(a)), brain(HIGH(b)), brain(HIGH(c))))))                        \
  X2(DIVU16, "div.u16", u16, u16, u16, b ? (u16)(a / b) : UINT16_MAX)                              \
  X2(DIVU32, "div.u32", u32, u32, u32, b ? a / b : UINT32_MAX)                                     \
  X2(DIVU64, "div.u64", u64, u64, u64, b ? a / b : UINT64_MAX)                                     \
  X2(DIVS16, "div.s16", i16, i16, i16, QUOTIENT(i16, a, b))                                        \
  X2(DIVS32, "div.s32", i32, i32, i32, QUOTIENT(i32, a, b))                                        \
  X2(DIVS64, "div.s64", i64, i64, i64, QUOTIENT(i64, a, b))                                        \
  X2(DIVF, "div.f32", f32, f32, f32, a / b)                                                        \
  X2(DIVD, "div.f64", f64, f64, f64, a / b)                                                        \
  X2(REMU16, "rem.u16", u16, u16, u16, b ? (u16)(a % b) : a)                                       \
  X2(REMU32, "rem.u32", u32, u32, u32, b ? a % b : a)                                              \
  X2(REMU64, "rem.u64", u64, u64, u64, b ? a % b : a)                                              \
  X2(REMS16, "rem.s16", i16, i16, i16, REST(i16, a, b))                                            \
  X2(REMS32, "rem.s32", i32, i32, i32, REST(i32, a, b))                                            \
  X2(REMS64, "rem.s64", i64, i64, i64, REST(i64, a, b))                                            \
  X2(MINU16, "min.u16", u16, u16, u16, a < b ? a : b)                                              \
  X2(MINU32, "min.u32", u32, u32, u32, a < b ? a : b)                                              \
  X2(MINU64, "min.u64", u64, u64, u64, a < b ? a : b)                                              \
  X2(MINS16, "min.s16", i16, i16, i16, a < b ? a : b)                                              \
  X2(MINS32, "min.s32", i32, i32, i32, a < b ? a : b)                                              \
  X2(MINS64, "min.s64", i64, i64, i64, a < b ? a : b)                                              \
  X2(MINF, "min.f32", f32, f32, f32, least(a, b))                                                  \
  X2(MINFN, "min.NaN.f32", f32, f32, f32, least_nan(a, b))                                         \
  X2(MIND, "min.f64", f64, f64, f64, fmin(a, b))                                                   \
  X2(MINH, "min.f16", u16, u16, u16, to_half(least(half(a), half(b))))                             \
  X2(MAXU16, "max.u16", u16, u16, u16, a > b ? a : b)                                              \
  X2(MAXU32, "max.u32", u32, u32, u32, a > b ? a : b)                                              \
  X2(MAXU64, "max.u64", u64, u64, u64, a > b ? a : b)                                              \
  X2(MAXS16, "max.s16", i16, i16, i16, a > b ? a : b)                                              \
  X2(MAXS32, "max.s32", i32, i32, i32, a > b ? a : b)                                              \
  X2(MAXS64, "max.s64", i64, i64, i64, a > b ? a : b)                                              \
  X2(MAXF, "max.f32", f32, f32, f32, greatest(a, b))                                               \
  X2(MAXFN, "max.NaN.f32", f32, f32, f32, greatest_nan(a, b))                                      \
  X2(MAXD, "max.f64", f64, f64, f64, fmax(a, b))                                                   \
  X2(MAXH, "max.f16", u16, u16, u16, to_half(greatest(half(a), half(b))))                          \
  X1(ABS16, "abs.s16", u16, i16, (u16)(a < 0 ? -a : a))                                            \
  X1(ABS32, "abs.s32", u32, i32, a < 0 ? 0u - (u32)a : (u32)a)                                     \
  X1(ABS64, "abs.s64", u64, i64, a < 0 ? 0u - (u64)a : (u64)a)                                     \
  X1(ABSF, "abs.f32", u32, u32, a & 0x7fffffffu)                                                   \
  X1(ABSD, "abs.f64", u64, u64, a &(UINT64_MAX >> 1))                                              \
  X1(ABSH, "abs.f16", u16, u16, a & 0x7fff)                                                        \
  X1(ABSBF, "abs.bf16", u16, u16, a & 0x7fff)                                                      \
  X1(NEG16, "neg.s16", u16, u16, (u16)(0 - a))                                                     \
  X1(NEG32, "neg.s32", u32, u32, 0 - a)                                                            \
  X1(NEG64, "neg.s64", u64, u64, 0 - a)                                                            \
  X1(NEGF, "neg.f32", u32, u32, a ^ 0x80000000u)                                                   \
  X1(NEGD, "neg.f64", u64, u64, a ^ (UINT64_C(1) << 63))                                           \
  X1(NEGH, "neg.f16", u16, u16, a ^ 0x8000)                                                        \
  X1(NEGBF, "neg.bf16", u16, u16, a ^ 0x8000)                                                      \
  X1(NEGH2, "neg.f16x2", u32, u32, a ^ 0x80008000u)                                                \
  X2(AND16, "and.b16", u16, u16, u16, a &b)                                                        \
  X2(AND32, "and.b32", u32, u32, u32, a &b)                                                        \
  X2(AND64, "and.b64", u64, u64, u64, a &b)                                                        \
  X2(OR16, "or.b16", u16, u16, u16, a | b)                                                         \
  X2(OR32, "or.b32", u32, u32, u32, a | b)                                                         \
  X2(OR64, "or.b64", u64, u64, u64, a | b)                                                         \
  X2(XOR16, "xor.b16", u16, u16, u16, a ^ b)                                                       \
  X2(XOR32, "xor.b32", u32, u32, u32, a ^ b)                                                       \
  X2(XOR64, "xor.b64", u64, u64, u64, a ^ b)                                                       \
  X1(NOT16, "not.b16", u16, u16, (u16)~a)                                                          \
  X1(NOT32, "not.b32", u32, u32, ~a)                                                               \
  X1(NOT64, "not.b64", u64, u64, ~a)                                                               \
  X1(CNOT32, "cnot.b32", u32, u32, a == 0)                                                         \
  X2(SHL16, "shl.b16", u16, u16, u32, b > 15 ? 0 : (u16)((u32)a << b))                             \
  X2(SHL32, "shl.b32", u32, u32, u32, b > 31 ? 0 : a << b)                                         \
  X2(SHL64, "shl.b64", u64, u64, u32, b > 63 ? 0 : a << b)                                         \
  X2(SHRU16, "shr.u16", u16, u16, u32, b > 15 ? 0 : (u16)(a >> b))                                 \
  X2(SHRU32, "shr.u32", u32, u32, u32, b > 31 ? 0 : a >> b)                                        \
  X2(SHRU64, "shr.u64", u64, u64, u32, b > 63 ? 0 : a >> b)                                        \
  X2(SHRS16, "shr.s16", i16, i16, u32, (i16)(a >> (b > 15 ? 15 : b)))                              \
  X2(SHRS32, "shr.s32", i32, i32, u32, a >> (b > 31 ? 31 : b))                                     \
  X2(SHRS64, "shr.s64", i64, i64, u32, a >> (b > 63 ? 63 : b))                                     \
  X3(SHFLW, "shf.l.wrap.b32", u32, u32, u32, u32, (u32)(((u64)b << 32 | a) << (c & 31) >> 32))     \
  X3(SHFLC, "shf.l.clamp.b32", u32, u32, u32, u32,                                                 \
     c > 31 ? a : (u32)(((u64)b << 32 | a) << c >> 32))                                            \
  X3(SHFRW, "shf.r.wrap.b32", u32, u32, u32, u32, (u32)(((u64)b << 32 | a) >> (c & 31)))           \
  X3(SHFRC, "shf.r.clamp.b32", u32, u32, u32, u32, (u32)(((u64)b << 32 | a) >> (c > 32 ? 32 : c))) \
  X3(BFEU, "bfe.u32", u32, u32, u32, u32, extracted(a, b, c, false))                               \
  X3(BFES, "bfe.s32", u32, u32, u32, u32, extracted(a, b, c, true))                                \
  X3(BFEU64, "bfe.u64", u64, u64, u32, u32, extracted64(a, b, c, false))                           \
  X3(BFES64, "bfe.s64", u64, u64, u32, u32, extracted64(a, b, c, true))                            \
  X4(BFI32, "bfi.b32", u32, u32, u32, u32, u32, (u32)inserted(a, b, c, e, 32))                     \
  X4(BFI64, "bfi.b64", u64, u64, u64, u32, u32, inserted(a, b, c, e, 64))                          \
  X1(POPC32, "popc.b32", u32, u32, (u32)__builtin_popcount(a))                                     \
  X1(POPC64, "popc.b64", u32, u64, (u32)__builtin_popcountll(a))                                   \
  X1(CLZ32, "clz.b32", u32, u32, a ? (u32)__builtin_clz(a) : 32)                                   \
  X1(CLZ64, "clz.b64", u32, u64, a ? (u32)__builtin_clzll(a) : 64)                                 \
  X1(BREV32, "brev.b32", u32, u32, reversed(a))                                                    \
  X3(SADU32, "sad.u32", u32, u32, u32, u32, (a > b ? a - b : b - a) + c)                           \
  X3(SADS32, "sad.s32", u32, i32, i32, u32, (a > b ? (u32)a - (u32)b : (u32)b - (u32)a) + c)       \
  X3(SADU64, "sad.u64", u64, u64, u64, u64, (a > b ? a - b : b - a) + c)                           \
  X3(SADS64, "sad.s64", u64, i64, i64, u64, (a > b ? (u64)a - (u64)b : (u64)b - (u64)a) + c)       \
  X3(PRMT, "prmt.b32", u32, u32, u32, u32, permuted(a, b, c))                                      \
  X3(DP4AUU, "dp4a.u32.u32", u32, u32, u32, u32, dot4(a, b, c, false, false))                      \
  X3(DP4AUS, "dp4a.u32.s32", u32, u32, u32, u32, dot4(a, b, c, false, true))                       \
  X3(DP4ASU, "dp4a.s32.u32", u32, u32, u32, u32, dot4(a, b, c, true, false))                       \
  X3(DP4ASS, "dp4a.s32.s32", u32, u32, u32, u32, dot4(a, b, c, true, true))                        \
  X2(COPYSIGNF, "copysign.f32", u32, u32, u32, (b & 0x7fffffffu) | (a & 0x80000000u))              \
  X2(COPYSIGND, "copysign.f64", u64, u64, u64,                                                     \
     (b & (UINT64_MAX >> 1)) | (a & (UINT64_C(1) << 63)))                                          \
  X1(SQRTF, "sqrt.f32", f32, f32, sqrtf(a))                                                        \
  X1(SQRTD, "sqrt.f64", f64, f64, sqrt(a))                                                         \
  X1(RSQRTF, "rsqrt.f32", f32, f32, (f32)(1 / sqrt((f64)a)))                                       \
  X1(RSQRTD, "rsqrt.f64", f64, f64, 1 / sqrt(a))                                                   \
  X1(RSQRTG, "rsqrt.approx.f64", f64, f64, upper(1 / sqrt(upper(a))))                              \
  X1(RCPG, "rcp.approx.f64", f64, f64, upper(1 / upper(a)))                                        \
  X1(RCPF, "rcp.f32", f32, f32, 1 / a)                                                             \
  X1(RCPD, "rcp.f64", f64, f64, 1 / a)                                                             \
  X1(SINF, "sin.f32", f32, f32, (f32)sin((f64)a))                                                  \
  X1(COSF, "cos.f32", f32, f32, (f32)cos((f64)a))                                                  \
  X1(EX2F, "ex2.f32", f32, f32, (f32)exp2((f64)a))                                                 \
  X1(LG2F, "lg2.f32", f32, f32, (f32)log2((f64)a))                                                 \
  X1(TANHF, "tanh.f32", f32, f32, (f32)tanh((f64)a))                                               \
  X1(MOV16, "mov.b16", u16, u16, a)                                                                \
  X1(MOV32, "mov.b32", u32, u32, a)                                                                \
  X1(MOV64, "mov.b64", u64, u64, a)

#define NAME1(ROW, name, D, A, e)          ROW_##ROW,
#define NAME2(ROW, name, D, A, B, e)       ROW_##ROW,
#define NAME3(ROW, name, D, A, B, C, e)    ROW_##ROW,
#define NAME4(ROW, name, D, A, B, C, E, x) ROW_##ROW,
enum { ROWS(NAME1, NAME2, NAME3, NAME4) ROW_N };

typedef struct row {
  const char *name;
  uint8_t bytes[5];
} row;
#define TABLE1(ROW, name, D, A, e)       {name, {sizeof(D), sizeof(A)}},
#define TABLE2(ROW, name, D, A, B, e)    {name, {sizeof(D), sizeof(A), sizeof(B)}},
#define TABLE3(ROW, name, D, A, B, C, e) {name, {sizeof(D), sizeof(A), sizeof(B), sizeof(C)}},
#define TABLE4(ROW, name, D, A, B, C, E, x)                                                        \
  {name, {sizeof(D), sizeof(A), sizeof(B), sizeof(C), sizeof(E)}},
static const row rows[] = {ROWS(TABLE1, TABLE2, TABLE3, TABLE4)};

uint32_t ptx_alu_find(const char *name) {
  for (uint32_t i = 0; i < ROW_N; i++)
    if (!strcmp(rows[i].name, name)) return i;
  return TARN_NONE;
}
const uint8_t *ptx_alu_bytes(uint32_t r) { return rows[r].bytes; }

#define LANES(T, at) ((T *)(void *)(file + (at)))
#define LOOP(D, e)                                                                                 \
  do {                                                                                             \
    D *restrict to = mask == PTX_ALL ? LANES(D, x->d) : (D *)(void *)spare;                        \
    EACH_LANE to[l] = (e);                                                                         \
    if (mask != PTX_ALL) blend(LANES(D, x->d), to, sizeof(D), mask);                               \
  } while (0);                                                                                     \
  break;
#define CASE1(ROW, name, D, A, e)                                                                  \
  case ROW_##ROW: {                                                                                \
    const A *va = LANES(A, x->a);                                                                  \
    LOOP(D, ROW##_of(va[l]))                                                                       \
  }
#define CASE2(ROW, name, D, A, B, e)                                                               \
  case ROW_##ROW: {                                                                                \
    const A *va = LANES(A, x->a);                                                                  \
    const B *vb = LANES(B, x->b);                                                                  \
    LOOP(D, ROW##_of(va[l], vb[l]))                                                                \
  }
#define CASE3(ROW, name, D, A, B, C, e)                                                            \
  case ROW_##ROW: {                                                                                \
    const A *va = LANES(A, x->a);                                                                  \
    const B *vb = LANES(B, x->b);                                                                  \
    const C *vc = LANES(C, x->c);                                                                  \
    LOOP(D, ROW##_of(va[l], vb[l], vc[l]))                                                         \
  }
#define CASE4(ROW, name, D, A, B, C, E, e)                                                         \
  case ROW_##ROW: {                                                                                \
    const A *va = LANES(A, x->a);                                                                  \
    const B *vb = LANES(B, x->b);                                                                  \
    const C *vc = LANES(C, x->c);                                                                  \
    const E *ve = LANES(E, x->d2);                                                                 \
    LOOP(D, ROW##_of(va[l], vb[l], vc[l], ve[l]))                                                  \
  }
#define ONE static inline __attribute__((always_inline))
#define OF1(ROW, name, D, A, e)                                                                    \
  ONE D ROW##_of(A a) { return (D)(e); }
#define OF2(ROW, name, D, A, B, e)                                                                 \
  ONE D ROW##_of(A a, B b) { return (D)(e); }
#define OF3(ROW, name, D, A, B, C, e)                                                              \
  ONE D ROW##_of(A a, B b, C c) { return (D)(e); }
#define OF4(ROW, name, D, A, B, C, E, x)                                                           \
  ONE D ROW##_of(A a, B b, C c, E e) { return (D)(x); }
ROWS(OF1, OF2, OF3, OF4)

static void blend(void *d, const void *from, size_t each, uint32_t mask) {
  for (uint32_t m = mask; m; m &= m - 1) {
    size_t l = (size_t)__builtin_ctz(m);
    memcpy((char *)d + l * each, (const char *)from + l * each, each);
  }
}
FAST static void lanes(const ptx_op *x, char *file, uint32_t mask) {
  uint64_t spare[PTX_LANES];
  switch (x->code) { ROWS(CASE1, CASE2, CASE3, CASE4) }
}

/* ---------------------------------------------------------------- .ftz and .sat */
static f32 flushed(f32 v) { return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }
static uint32_t flush(char *file, uint32_t at, uint32_t to) {
  for (uint32_t l = 0; l < PTX_LANES; l++) LANES(f32, to)[l] = flushed(LANES(f32, at)[l]);
  return to;
}
/* Of f32 alone: into three spare registers, and from a fourth. */
static void with_flags(const ptx_op *x, char *file, uint32_t mask) {
  char spare[5 * PTX_LANES * 8];
  ptx_op y = *x;
  uint32_t each = PTX_LANES * 8;
  const uint32_t from[3] = {x->a, x->b, x->c};
  for (uint32_t i = 0; i < 3; i++) memcpy(spare + i * each, file + from[i], PTX_LANES * 4);
  y.a = 0, y.b = each, y.c = 2 * each, y.d = 3 * each;
  if (x->flags & PTX_FTZ)
    for (uint32_t i = 0; i < 3; i++) flush(spare, i * each, i * each);
  lanes(&y, spare, PTX_ALL);
  f32 *d = (f32 *)(void *)(spare + y.d);
  for (uint32_t l = 0; l < PTX_LANES; l++) {
    if (x->flags & PTX_FTZ) d[l] = flushed(d[l]);
    if (x->flags & PTX_SAT) d[l] = d[l] > 0 ? fminf(d[l], 1) : 0;
  }
  blend(file + x->d, d, sizeof *d, mask);
}
void ptx_alu(const ptx_op *x, char *file, uint32_t mask) {
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  if (!x->round && !x->flags) {
    lanes(x, file, mask);
    return;
  }
  int before = fegetround();
  fesetround(modes[x->round & 3]);
  if (x->flags) with_flags(x, file, mask);
  else lanes(x, file, mask);
  fesetround(before);
}

/* ---------------------------------------------------------------- comparisons */
enum { EQ, NE, LT, LE, GT, GE, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NOTNUM };
static const struct {
  const char *name;
  uint8_t code;
} compares[] = {{"eq", EQ},   {"ne", NE},   {"lt", LT},     {"le", LE},   {"gt", GT},
                {"ge", GE},   {"lo", LT},   {"ls", LE},     {"hi", GT},   {"hs", GE},
                {"equ", EQU}, {"neu", NEU}, {"ltu", LTU},   {"leu", LEU}, {"gtu", GTU},
                {"geu", GEU}, {"num", NUM}, {"nan", NOTNUM}};
bool ptx_compare_named(const char *s, uint16_t *code) {
  for (uint32_t i = 0; i < sizeof compares / sizeof *compares; i++)
    if (!strcmp(s, compares[i].name)) {
      *code = compares[i].code;
      return true;
    }
  return false;
}
#define WHERE(e)                                                                                   \
  EACH_LANE m |= (u32)(e) << l;                                                                    \
  return m
#define COMPARE(T, NAME)                                                                           \
  FAST static u32 NAME(u32 code, const T *a, const T *b) {                                         \
    u32 m = 0;                                                                                     \
    switch (code) {                                                                                \
    case EQ: WHERE(a[l] == b[l]);                                                                  \
    case NE: WHERE(a[l] == a[l] && b[l] == b[l] && a[l] != b[l]);                                  \
    case LT: WHERE(a[l] < b[l]);                                                                   \
    case LE: WHERE(a[l] <= b[l]);                                                                  \
    case GT: WHERE(a[l] > b[l]);                                                                   \
    case GE: WHERE(a[l] >= b[l]);                                                                  \
    case EQU: WHERE(!(a[l] < b[l] || a[l] > b[l]));                                                \
    case NEU: WHERE(!(a[l] == b[l]));                                                              \
    case LTU: WHERE(!(a[l] >= b[l]));                                                              \
    case LEU: WHERE(!(a[l] > b[l]));                                                               \
    case GTU: WHERE(!(a[l] <= b[l]));                                                              \
    case GEU: WHERE(!(a[l] < b[l]));                                                               \
    case NUM: WHERE(a[l] == a[l] && b[l] == b[l]);                                                 \
    default: WHERE(a[l] != a[l] || b[l] != b[l]);                                                  \
    }                                                                                              \
  }
COMPARE(u16, compare_u16)
COMPARE(u32, compare_u32)
COMPARE(u64, compare_u64)
COMPARE(i16, compare_i16)
COMPARE(i32, compare_i32)
COMPARE(i64, compare_i64)
COMPARE(f32, compare_f32)
COMPARE(f64, compare_f64)

static u32 compare_halves(const ptx_op *x, const char *file) {
  f32 a[PTX_LANES], b[PTX_LANES];
  for (u32 l = 0; l < PTX_LANES; l++) {
    u16 p = LANES(const u16, x->a)[l], q = LANES(const u16, x->b)[l];
    a[l] = x->type == PTX_F16 ? half(p) : brain(p);
    b[l] = x->type == PTX_F16 ? half(q) : brain(q);
  }
  return compare_f32(x->code, a, b);
}
/* testp; a zero is normal. */
static const char *const tests[] = {"finite",     "infinite", "number",
                                    "notanumber", "normal",   "subnormal"};
bool ptx_test_named(const char *s, uint8_t *no) {
  for (uint8_t i = 0; i < sizeof tests / sizeof *tests; i++)
    if (!strcmp(s, tests[i])) {
      *no = i + 1;
      return true;
    }
  return false;
}
static bool passes(uint8_t no, f64 v, f64 least) {
  switch (no) {
  case 1: return isfinite(v);
  case 2: return isinf(v);
  case 3: return !isnan(v);
  case 4: return isnan(v);
  case 5: return isfinite(v) && (v == 0 || fabs(v) >= least);
  default: return v != 0 && fabs(v) < least;
  }
}
static u32 tested(const ptx_op *x, const char *file) {
  u32 m = 0;
  bool wide = x->type == PTX_F64;
  EACH_LANE {
    f64 v = wide ? LANES(const f64, x->a)[l] : (f64)LANES(const f32, x->a)[l];
    m |= (u32)passes(x->n, v, wide ? 0x1p-1022 : 0x1p-126) << l;
  }
  return m;
}
uint32_t ptx_setp(const ptx_op *x, const char *file) {
  if (x->n) return tested(x, file);
#define TWO_OF(T) LANES(const T, x->a), LANES(const T, x->b)
  switch (x->type) {
  case PTX_B16:
  case PTX_U16: return compare_u16(x->code, TWO_OF(u16));
  case PTX_B32:
  case PTX_U32: return compare_u32(x->code, TWO_OF(u32));
  case PTX_B64:
  case PTX_U64: return compare_u64(x->code, TWO_OF(u64));
  case PTX_S16: return compare_i16(x->code, TWO_OF(i16));
  case PTX_S32: return compare_i32(x->code, TWO_OF(i32));
  case PTX_S64: return compare_i64(x->code, TWO_OF(i64));
  case PTX_F32: return compare_f32(x->code, TWO_OF(f32));
  case PTX_F64: return compare_f64(x->code, TWO_OF(f64));
  default: return compare_halves(x, file);
  }
}
