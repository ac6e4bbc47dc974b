/* Conversions. Integers wrap unless .sat is said; floats to integers are clamped, NaN is 0. */
#include "access/access.h"
#include "sim/ptx_internal.h"
#include <math.h>
#include <string.h>

typedef struct value {
  bool real;
  uint64_t i; /* an integer, extended to 64 bits */
  double f;
} value;

static uint64_t extended(uint64_t bits, ptx_type t) {
  uint32_t free = 64 - 8 * ptx_type_bytes(t);
  bits <<= free;
  return ptx_type_signed(t) ? (uint64_t)((int64_t)bits >> free) : bits >> free;
}
static double real_of(uint64_t bits, ptx_type t) {
  uint32_t low = (uint32_t)bits;
  float f;
  double d;
  if (t == PTX_F16) return tarn_from_f16((uint16_t)bits);
  if (t == PTX_BF16) return tarn_from_bf16((uint16_t)bits);
  if (t == PTX_F64) {
    memcpy(&d, &bits, sizeof d);
    return d;
  }
  memcpy(&f, &low, sizeof f);
  return f;
}
static uint64_t bits_of(double v, ptx_type t) {
  float f = (float)v;
  uint32_t low;
  uint64_t bits;
  if (t == PTX_F16) return tarn_to_f16(f);
  if (t == PTX_BF16) return tarn_to_bf16(f);
  if (t == PTX_F64) {
    memcpy(&bits, &v, sizeof bits);
    return bits;
  }
  memcpy(&low, &f, sizeof low);
  /* ties away from 0, to 10 bits behind the point */
  return t == PTX_TF32 && isfinite(f) ? (low + 0x1000) & ~UINT32_C(0x1fff) : low;
}
static double rounded(double v, uint32_t how) {
  switch (how & 3) {
  case 0: return rint(v);
  case 1: return trunc(v);
  case 2: return floor(v);
  default: return ceil(v);
  }
}
static uint64_t clamped(double v, ptx_type t) {
  uint32_t bits = 8 * ptx_type_bytes(t);
  if (isnan(v)) return 0;
  if (ptx_type_signed(t)) {
    double most = ldexp(1, (int)bits - 1);
    if (v < -most) return UINT64_C(1) << (bits - 1);
    return v >= most ? (UINT64_C(1) << (bits - 1)) - 1 : (uint64_t)(int64_t)v;
  }
  if (v <= 0) return 0;
  return v >= ldexp(1, (int)bits) ? UINT64_MAX : (uint64_t)v;
}
static uint64_t saturated(const value *v, ptx_type from, ptx_type to) {
  int64_t i = (int64_t)v->i;
  uint32_t bits = 8 * ptx_type_bytes(to);
  bool below = ptx_type_signed(from) && i < 0;
  uint64_t most = (ptx_type_signed(to) ? UINT64_MAX >> 1 : UINT64_MAX) >> (64 - bits);
  if (!below) return v->i > most ? most : v->i;
  if (!ptx_type_signed(to)) return 0;
  int64_t least = -(int64_t)most - 1;
  return (uint64_t)(i < least ? least : i);
}
static uint64_t to_real(const ptx_op *x, const value *v) {
  ptx_type to = (ptx_type)x->type;
  double f = v->f;
  if (!v->real) { /* once, to nearest */
    bool sign = ptx_type_signed((ptx_type)x->from);
    if (to == PTX_F64) f = sign ? (double)(int64_t)v->i : (double)v->i;
    else f = sign ? (float)(int64_t)v->i : (float)v->i;
  } else if (x->round >= 4) f = rounded(f, x->round);
  if (x->flags & PTX_SAT) f = f > 0 ? fmin(f, 1) : 0;
  if ((x->flags & PTX_FTZ) && to == PTX_F32 && fabs(f) < 0x1p-126) f = copysign(0, f);
  return bits_of(f, to);
}
static uint64_t convert(const ptx_op *x, uint64_t bits) {
  ptx_type to = (ptx_type)x->type, from = (ptx_type)x->from;
  value v = {.real = ptx_type_float(from)};
  if (v.real) v.f = real_of(bits, from);
  else v.i = extended(bits, from);
  if (v.real && (x->flags & PTX_FTZ) && from == PTX_F32 && fabs(v.f) < 0x1p-126)
    v.f = copysign(0, v.f);
  if (ptx_type_float(to)) return to_real(x, &v);
  if (v.real) return extended(clamped(rounded(v.f, x->round), to), to);
  return extended(x->flags & PTX_SAT ? saturated(&v, from, to) : v.i, to);
}

/* The pairs that addresses are made of. */
static bool widened(const ptx_op *x, char *file, uint32_t mask) {
  if (mask != PTX_ALL || x->flags || x->wide_d + x->wide_a != 12) return false;
  if (x->wide_d == 4 && x->type != PTX_F32 && !ptx_type_float((ptx_type)x->from) &&
      ptx_type_bytes((ptx_type)x->type) == 4) {
    const uint64_t *a = ptx_u64(file, x->a);
    uint32_t *d = ptx_u32(file, x->d);
    for (uint32_t l = 0; l < PTX_LANES; l++) d[l] = (uint32_t)a[l];
    return true;
  }
  const uint32_t *a = ptx_u32(file, x->a);
  uint64_t *d = ptx_u64(file, x->d);
  if (x->wide_d != 8 || ptx_type_float((ptx_type)x->type) ||
      ptx_type_bytes((ptx_type)x->from) != 4 || ptx_type_float((ptx_type)x->from))
    return false;
  if (ptx_type_signed((ptx_type)x->from))
    for (uint32_t l = 0; l < PTX_LANES; l++) d[l] = (uint64_t)(int64_t)(int32_t)a[l];
  else
    for (uint32_t l = 0; l < PTX_LANES; l++) d[l] = a[l];
  return true;
}
void ptx_cvt(const ptx_op *x, char *file, uint32_t mask) {
  ptx_type to = (ptx_type)x->type;
  if (widened(x, file, mask)) return;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t l = (uint32_t)__builtin_ctz(m);
    uint64_t bits = ptx_get(file, x->a, x->wide_a, l);
    if (to == PTX_F16X2 || to == PTX_BF16X2) {
      ptx_type half = to == PTX_F16X2 ? PTX_F16 : PTX_BF16;
      uint64_t low = bits_of(real_of(ptx_get(file, x->b, 4, l), PTX_F32), half);
      bits = bits_of(real_of(bits, PTX_F32), half) << 16 | low;
    } else bits = convert(x, bits);
    ptx_put(file, x->d, x->wide_d, l, bits);
  }
}
