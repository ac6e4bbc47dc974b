/* Elementary functions of f32 as straight-line vector code.
 *
 * exp, log: range reduction in two steps of ln 2 (Cody and Waite, "Software Manual for the
 * Elementary Functions", 1980) and a polynomial: of our own for exp, of Moshier's Cephes library
 * (single precision) for log.  tanh: Cephes' polynomial near zero, else by exp.  erf: our own
 * polynomials, see there.  Errors against libm are in tests/test_lower_math.c: at most 2 ulp for
 * exp and log, 7 for erf, 4 for the others. */
#include "lower/internal.h"
#include <math.h>
#include <string.h>

typedef struct code {
  low_module *M;
  uint32_t n;
} code;

static LLVMValueRef f(const code *c, double v) {
  return low_splat(c->M, LLVMConstReal(c->M->f32, v), c->n);
}
static LLVMValueRef i(const code *c, int64_t v) {
  return low_splat(c->M, LLVMConstInt(c->M->i32, (unsigned long long)v, 1), c->n);
}
static LLVMValueRef contract(LLVMValueRef v) {
  if (LLVMIsAInstruction(v)) LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
  return v;
}
static LLVMValueRef mul(const code *c, LLVMValueRef a, LLVMValueRef b) {
  return contract(LLVMBuildFMul(c->M->b, a, b, ""));
}
static LLVMValueRef add(const code *c, LLVMValueRef a, LLVMValueRef b) {
  return contract(LLVMBuildFAdd(c->M->b, a, b, ""));
}
static LLVMValueRef sub(const code *c, LLVMValueRef a, LLVMValueRef b) {
  return contract(LLVMBuildFSub(c->M->b, a, b, ""));
}
static LLVMValueRef madd(const code *c, LLVMValueRef a, LLVMValueRef b, LLVMValueRef x) {
  return add(c, mul(c, a, b), x);
}
static LLVMValueRef cmp(const code *c, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFCmp(c->M->b, p, a, b, "");
}
static LLVMValueRef sel(const code *c, LLVMValueRef q, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(c->M->b, q, a, b, "");
}
static LLVMValueRef bits(const code *c, LLVMValueRef x) {
  return LLVMBuildBitCast(c->M->b, x, low_vec(c->M->i32, c->n), "");
}
static LLVMValueRef real(const code *c, LLVMValueRef x) {
  return LLVMBuildBitCast(c->M->b, x, low_vec(c->M->f32, c->n), "");
}
static LLVMValueRef sign_only(const code *c, LLVMValueRef x) {
  return LLVMBuildAnd(c->M->b, bits(c, x), i(c, (int32_t)0x80000000), "");
}
static LLVMValueRef magnitude(const code *c, LLVMValueRef x) {
  return real(c, LLVMBuildAnd(c->M->b, bits(c, x), i(c, 0x7fffffff), ""));
}
static LLVMValueRef with_sign(const code *c, LLVMValueRef sign, LLVMValueRef x) {
  return real(c, LLVMBuildOr(c->M->b, bits(c, x), sign, ""));
}

/* Horner, highest power first. */
static LLVMValueRef poly(const code *c, LLVMValueRef x, const double *k, uint32_t n) {
  LLVMValueRef r = f(c, k[0]);
  for (uint32_t j = 1; j < n; j++) r = madd(c, r, x, f(c, k[j]));
  return r;
}
#define POLY(c, x, ...)                                                                            \
  poly((c), (x), (const double[]){__VA_ARGS__},                                                    \
       sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static const double LN2_HI = 0.693359375, LN2_LO = -2.12194440e-4;

/* The integer n nearest to x·log2 e, as a float and in *e: adding 1.5·2^23 rounds. */
static LLVMValueRef exponent_of(const code *c, LLVMValueRef x, LLVMValueRef *e) {
  LLVMValueRef magic = f(c, 12582912.0), t = madd(c, x, f(c, 1.44269504088896341), magic);
  *e = LLVMBuildSub(c->M->b, bits(c, t), i(c, 0x4B400000), "");
  return LLVMBuildFSub(c->M->b, t, magic, "");
}
/* 2^e for -126 <= e <= 127. */
static LLVMValueRef power2(const code *c, LLVMValueRef e) {
  LLVMBuilderRef b = c->M->b;
  return real(c, LLVMBuildShl(b, LLVMBuildAdd(b, e, i(c, 127), ""), i(c, 23), ""));
}

/* p·2^n, n an integer as a float, in one instruction where there is one. */
static LLVMValueRef scaled(const code *c, LLVMValueRef p, LLVMValueRef n, LLVMValueRef e) {
  LLVMBuilderRef b = c->M->b;
  const low_isa_row *scale = low_isa_find(c->M, LOW_ISA_SCALE, c->n);
  if (scale) {
    LLVMTypeRef i16 = LLVMInt16TypeInContext(c->M->lc);
    LLVMValueRef arg[] = {p, n, p, LLVMConstAllOnes(i16),
                          LLVMConstInt(c->M->i32, 4, 0)}; /* all lanes; rounding as it is set */
    return low_intrinsic(c->M, scale->name, NULL, 0, arg, 5);
  }
  LLVMValueRef half = LLVMBuildAShr(b, e, i(c, 1), "");
  p = mul(c, p,
          power2(c, half)); /* in two steps: the result may be subnormal, or the power too large */
  return mul(c, p, power2(c, LLVMBuildSub(b, e, half, "")));
}

/* The polynomial of degree 6 that is 1 at 0 and has the least relative error, 2.6e-9, for |r| <= ln
 * 2 / 2. */
static LLVMValueRef exp_by_powers(const code *c, LLVMValueRef x) {
  LLVMValueRef e, n = exponent_of(c, x, &e);
  LLVMValueRef r = madd(c, n, f(c, -LN2_LO), madd(c, n, f(c, -LN2_HI), x));
  LLVMValueRef p = POLY(c, r, 1.4061422676e-3, 8.3790590357e-3, 4.1664773315e-2, 1.6666364809e-1,
                        5.0000004358e-1, 1.0000000498, 1);
  return scaled(c, p, n, e);
}
/* 2^(k/16) from a register, k mod 16 being the last bits of x·log2 e rounded to sixteenths (Tang,
 * "Table-driven implementation of the exponential function", ACM TOMS 1989): what is left is small
 * enough for three powers, 1.6e-9. */
static LLVMValueRef exp_by_table(const code *c, LLVMValueRef x) {
  low_module *M = c->M;
  LLVMValueRef entry[16], magic = f(c, 786432.0), t = madd(c, x, f(c, 1.44269504088896341), magic);
  for (int k = 0; k < 16; k++) entry[k] = LLVMConstReal(M->f32, exp2(k / 16.0));
  LLVMValueRef arg[] = {LLVMConstVector(entry, 16), bits(c, t)};
  LLVMValueRef power =
      low_intrinsic(M, low_isa_find(M, LOW_ISA_PERMUTE, 16)->name, NULL, 0, arg, 2);
  LLVMValueRef n = LLVMBuildFSub(M->b, t, magic, "");
  LLVMValueRef r = madd(c, n, f(c, -LN2_LO), madd(c, n, f(c, -LN2_HI), x));
  LLVMValueRef p = POLY(c, r, 1.6666074349e-1, 5.0001619853e-1, 1.000000003);
  return scaled(c, madd(c, p, mul(c, power, r), power), n, NULL); /* by 2 to the floor of n */
}
/* The table's entry that the last bits of t choose, of so many as there are lanes, less what those
 * bits add to the exponent. */
static LLVMValueRef entry_of(const code *c, const float *table, LLVMValueRef bits_of_t) {
  low_module *M = c->M;
  LLVMValueRef entry[16], arg[2] = {NULL, bits_of_t};
  for (uint32_t k = 0; k < c->n; k++) {
    uint32_t u;
    memcpy(&u, &table[k], sizeof u);
    entry[k] = LLVMConstInt(M->i32, u - (k << (c->n == 8 ? 20 : 19)), 0);
  }
  arg[0] = LLVMConstVector(entry, c->n);
  const low_isa_row *ints = low_isa_find(M, LOW_ISA_PERMUTE_INT, c->n);
  if (ints) return low_intrinsic(M, ints->name, NULL, 0, arg, 2);
  arg[0] = real(c, arg[0]);
  return bits(c, low_intrinsic(M, low_isa_find(M, LOW_ISA_PERMUTE, c->n)->name, NULL, 0, arg, 2));
}
/* e^x = a·b·e^r, a and b both near 2^(n/2), n = x·log2 e rounded to quarters: a power of half the
 * size neither overflows nor is subnormal, whatever x, so that nothing is scaled in steps. a =
 * 2^(k/8) in floats, k the last bits of t, and b makes up for its rounding: 1.9 ulp at most (of a²
 * it would be 2.3). Multiplications are nine, other operations six. */
static LLVMValueRef exp_by_halves(const code *c, LLVMValueRef x) {
  LLVMBuilderRef B = c->M->b;
  float a[8], b[8];
  for (int k = 0; k < 8; k++)
    a[k] = (float)exp2(k / 8.0), b[k] = (float)(exp2(k / 4.0) / (double)a[k]);
  LLVMValueRef magic = f(c, 3145728.0),
               t = madd(c, x, f(c, 1.44269504088896341), magic); /* 1.5·2^23 quarters */
  LLVMValueRef n = LLVMBuildFSub(B, t, magic, ""),
               power = LLVMBuildShl(B, bits(c, t), i(c, 20), "");
  LLVMValueRef ea = real(c, LLVMBuildAdd(B, entry_of(c, a, bits(c, t)), power, ""));
  LLVMValueRef eb = real(c, LLVMBuildAdd(B, entry_of(c, b, bits(c, t)), power, ""));
  LLVMValueRef r = madd(c, n, f(c, -LN2_LO), madd(c, n, f(c, -LN2_HI), x));
  LLVMValueRef p =
      POLY(c, r, 4.1658235101e-2, 1.6674427472e-1, 5.0000011155e-1, 9.9999985700e-1); /* 2.6e-9 */
  return mul(c, madd(c, ea, mul(c, r, p), ea), eb);
}

/* x at most 0: e^x = a·e^r, a = 2^n, n = x·log2 e rounded to eighths or sixteenths, which no power
 * overflows; where a would not be a normal float the result is 0, not subnormal. What is left is
 * small enough for three powers, 2.5e-8 and 1.6e-9: 1.43 ulp at most. Multiplications are seven,
 * other operations six; with 16 lanes one less, for the choice is the last one's mask. */
static LLVMValueRef exp_at_most_0(const code *c, LLVMValueRef x) {
  LLVMBuilderRef B = c->M->b;
  bool wide = c->n == 16;
  float a[16];
  for (uint32_t k = 0; k < c->n; k++) a[k] = (float)exp2(k / (double)c->n);
  LLVMValueRef magic = f(c, wide ? 786432.0 : 1572864.0); /* 1.5·2^23 sixteenths, eighths */
  LLVMValueRef t = madd(c, x, f(c, 1.44269504088896341), magic);
  LLVMValueRef n = LLVMBuildFSub(B, t, magic, ""),
               power = LLVMBuildShl(B, bits(c, t), i(c, wide ? 19 : 20), "");
  LLVMValueRef ea = real(c, LLVMBuildAdd(B, entry_of(c, a, bits(c, t)), power, ""));
  LLVMValueRef r = madd(c, n, f(c, -LN2_LO), madd(c, n, f(c, -LN2_HI), x));
  LLVMValueRef p = wide ? POLY(c, r, 1.6666074349e-1, 5.0001619853e-1, 1.000000003)
                        : POLY(c, r, 1.6664296044e-1, 5.0006484287e-1, 1.0000000487);
  p = madd(c, mul(c, ea, r), p, ea);
  return sel(c, cmp(c, LLVMRealOLT, x, f(c, -87.3365402)), f(c, 0), p); /* of a NaN p is one */
}

static LLVMValueRef vexp(const code *c, LLVMValueRef x) {
  bool permutes = low_isa_find(c->M, LOW_ISA_PERMUTE, c->n) != NULL;
  if (c->M->at_most_0 && permutes) return exp_at_most_0(c, x);
  /* e^100 is beyond all floats and their differences: the last product may be contracted with a sum
   */
  if (!c->M->at_most_0) x = sel(c, cmp(c, LLVMRealOGT, x, f(c, 100.0)), f(c, 100.0), x);
  x = sel(c, cmp(c, LLVMRealOLT, x, f(c, -104.5)), f(c, -104.5), x);
  return low_isa_find(c->M, LOW_ISA_SCALE, c->n) ? exp_by_table(c, x)
         : permutes                              ? exp_by_halves(c, x)
                                                 : exp_by_powers(c, x);
}

static LLVMValueRef vlog(const code *c, LLVMValueRef x) {
  LLVMBuilderRef b = c->M->b;
  LLVMValueRef tiny = cmp(c, LLVMRealOLT, x, f(c, 1.17549435e-38));
  LLVMValueRef u = bits(c, sel(c, tiny, mul(c, x, f(c, 8388608.0)), x));
  /* m in [sqrt(1/2), sqrt 2): move the exponent's border from 1 to sqrt(1/2) */
  LLVMValueRef shifted = LLVMBuildSub(b, u, i(c, 0x3F3504F3), "");
  LLVMValueRef e = LLVMBuildAShr(b, shifted, i(c, 23), "");
  LLVMValueRef m = real(c, LLVMBuildSub(b, u, LLVMBuildShl(b, e, i(c, 23), ""), ""));
  LLVMValueRef n = LLVMBuildSIToFP(b, e, low_vec(c->M->f32, c->n), "");
  n = sub(c, n, sel(c, tiny, f(c, 23), f(c, 0)));
  LLVMValueRef y = sub(c, m, f(c, 1)), z = mul(c, y, y);
  LLVMValueRef p =
      POLY(c, y, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
           1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1);
  p = mul(c, mul(c, p, y), z);
  p = madd(c, n, f(c, LN2_LO), p);
  p = madd(c, z, f(c, -0.5), p);
  LLVMValueRef r = madd(c, n, f(c, LN2_HI), add(c, y, p));
  r = sel(c, cmp(c, LLVMRealOEQ, x, f(c, INFINITY)), x, r);
  r = sel(c, cmp(c, LLVMRealOEQ, x, f(c, 0)), f(c, -INFINITY), r);
  return sel(c, cmp(c, LLVMRealOGE, x, f(c, 0)), r, f(c, NAN));
}

/* log(1+x) = log(u)·x/(u-1), u = 1+x rounded (Goldberg 1991, theorem 4). */
static LLVMValueRef vlog1p(const code *c, LLVMValueRef x) {
  LLVMBuilderRef b = c->M->b;
  LLVMValueRef u = LLVMBuildFAdd(b, x, f(c, 1), ""), l = vlog(c, u);
  LLVMValueRef r = mul(c, l, LLVMBuildFDiv(b, x, LLVMBuildFSub(b, u, f(c, 1), ""), ""));
  r = sel(c, cmp(c, LLVMRealOEQ, u, f(c, 1)), x, r);
  r = sel(c, cmp(c, LLVMRealOEQ, u, f(c, 0)), l, r);
  return sel(c, cmp(c, LLVMRealOEQ, x, f(c, INFINITY)), x, r);
}

static LLVMValueRef vtanh(const code *c, LLVMValueRef x) {
  LLVMBuilderRef b = c->M->b;
  LLVMValueRef a = magnitude(c, x), z = mul(c, x, x);
  LLVMValueRef p = POLY(c, z, -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                        1.33314422036e-1, -3.33332819422e-1);
  LLVMValueRef near = madd(c, mul(c, p, z), x, x);
  LLVMValueRef e = vexp(c, add(c, a, a));
  LLVMValueRef far = sub(c, f(c, 1), LLVMBuildFDiv(b, f(c, 2), add(c, e, f(c, 1)), ""));
  LLVMValueRef r = sel(c, cmp(c, LLVMRealOLT, a, f(c, 0.625)), near, far);
  return with_sign(c, sign_only(c, x), r); /* near -0 too, of which the sum is +0 */
}

/* x times a quotient of two polynomials of x², each of five powers: a fit of least largest error
 * (1.9e-8 of erf), all coefficients positive. Its thirteen operations and a division are less than
 * half of verf's, but for 512 bits, of which a division takes as long as those (by tables; not
 * measured). */
static LLVMValueRef erf_by_quotient(const code *c, LLVMValueRef x) {
  LLVMValueRef t =
      sel(c, cmp(c, LLVMRealOGT, x, f(c, 3.92)), f(c, 3.92), x); /* beyond erf rounds to 1 */
  t = sel(c, cmp(c, LLVMRealOLT, t, f(c, -3.92)), f(c, -3.92), t);
  LLVMValueRef z = mul(c, t, t);
  LLVMValueRef p = POLY(c, z, 2.05005168e-6, 2.84882028e-4, 3.76566747e-3, 5.27488684e-2,
                        1.90407896e-1, 1.12837915);
  LLVMValueRef q =
      POLY(c, z, 3.80913107e-5, 1.16254443e-3, 1.49693176e-2, 1.14109663e-1, 5.02077345e-1, 1);
  return LLVMBuildFDiv(c->M->b, mul(c, t, p), q, "");
}
/* Below 0.9 x times a polynomial of x²; above 1 - 2^g, g a polynomial of |x| for the logarithm of
 * the complement. No division. The coefficients are fits of least largest error: relative to erf,
 * to 1, and to 2^f on [-1/2, 1/2]. */
static LLVMValueRef verf(const code *c, LLVMValueRef x) {
  LLVMBuilderRef b = c->M->b;
  if (c->n <= 8) return erf_by_quotient(c, x);
  LLVMValueRef a = magnitude(c, x), z = mul(c, x, x), magic = f(c, 12582912.0 + 127);
  LLVMValueRef near = mul(c, x,
                          POLY(c, z, -6.090360112e-04, 5.011962727e-03, -2.677890845e-02,
                               1.128214076e-01, -3.761252463e-01, 1.128379107e+00));
  LLVMValueRef t =
      sel(c, cmp(c, LLVMRealOGT, a, f(c, 3.93)), f(c, 3.93), a); /* beyond erf rounds to 1 */
  LLVMValueRef g = POLY(c, t, 2.844730916e-04, -4.408309702e-03, 3.213904426e-02, -1.500941813e-01,
                        -9.190829396e-01, -1.626998663e+00, -2.560710127e-04);
  LLVMValueRef r =
      LLVMBuildFAdd(b, g, magic, ""); /* rounds, and has the biased exponent in its last bits */
  LLVMValueRef h = LLVMBuildFSub(b, g, LLVMBuildFSub(b, r, magic, ""), "");
  LLVMValueRef p = POLY(c, h, 1.327647129e-03, 9.675540961e-03, 5.550713092e-02, 2.402212024e-01,
                        6.931469440e-01, 1.000000119);
  LLVMValueRef far = sub(c, f(c, 1), mul(c, p, real(c, LLVMBuildShl(b, bits(c, r), i(c, 23), ""))));
  return sel(c, cmp(c, LLVMRealOLT, a, f(c, 0.9)), near, with_sign(c, sign_only(c, x), far));
}

LLVMValueRef low_math(low_module *M, tarn_fxop op, LLVMValueRef x) {
#define VECTOR_NONE(name) NULL
#define VECTOR_OWN(name)  NULL
#define VECTOR_BOTH(name) NULL
#define VECTOR_LIBM(name) NULL
#define VECTOR_VEC(name)  v##name
  static LLVMValueRef (*const emit[TARN_FX_COUNT])(const code *, LLVMValueRef) = {
#define FX(ID, name, arity, gives, floats, ints, bools, domain, error, rounds, range, code, ...)   \
  [TARN_FX_##ID] = VECTOR_##code(name),
#include "access/fx.def"
#undef FX
  };
  uint32_t n = low_lanes_of(x);
  LLVMTypeRef t = LLVMTypeOf(x);
  if ((n > 1 ? LLVMGetElementType(t) : t) != M->f32) return NULL;
  code c = {M, n};
  return emit[op] ? emit[op](&c, x) : NULL;
}
