/* Element types: names, sizes, rounding, wrapping, conversion. */
#include "access/internal.h"
#include <math.h>
#include <string.h>

typedef enum dtype_class { FLOATING, SIGNED, UNSIGNED, BOOLEAN } dtype_class;
#define DTYPES(X)                                                                                  \
  X(F32, "f32", 32, FLOATING)                                                                      \
  X(F64, "f64", 64, FLOATING)                                                                      \
  X(F16, "f16", 16, FLOATING)                                                                      \
  X(BF16, "bf16", 16, FLOATING)                                                                    \
  X(I8, "i8", 8, SIGNED)                                                                           \
  X(U8, "u8", 8, UNSIGNED)                                                                         \
  X(I16, "i16", 16, SIGNED)                                                                        \
  X(U16, "u16", 16, UNSIGNED)                                                                      \
  X(I32, "i32", 32, SIGNED)                                                                        \
  X(U32, "u32", 32, UNSIGNED)                                                                      \
  X(I64, "i64", 64, SIGNED)                                                                        \
  X(U64, "u64", 64, UNSIGNED)                                                                      \
  X(BOOL, "bool", 1, BOOLEAN)

static const struct dtype_info {
  const char *name;
  unsigned bits;
  dtype_class class;
} info[TARN_DTYPES] = {
#define ROW(ID, name, bits, class) [TARN_##ID] = {name, bits, class},
    DTYPES(ROW)
#undef ROW
};

const char *tarn_dtype_name(tarn_dtype t) { return info[t].name; }
size_t tarn_dtype_size(tarn_dtype t) { return (info[t].bits + 7) / 8; }
unsigned tarn_dtype_bits(tarn_dtype t) { return info[t].bits; }
bool tarn_dtype_is_float(tarn_dtype t) { return info[t].class == FLOATING; }
bool tarn_dtype_is_signed(tarn_dtype t) { return info[t].class == SIGNED; }
tarn_dtype tarn_dtype_accumulator(tarn_dtype t) {
  return t == TARN_F16 || t == TARN_BF16 ? TARN_F32 : t;
}

bool tarn_index_in(tarn_dtype t, int64_t i, int64_t extent, int64_t *at) {
  *at = i < 0 && tarn_dtype_is_signed(t) ? i + extent : i;
  return *at >= 0 && *at < extent;
}

char *tarn_dims_text(tarn_ctx *cx, tarn_dtype t, uint32_t n, const int64_t *dim) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "%s[", tarn_dtype_name(t));
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&b, i ? ",%lld" : "%lld", (long long)dim[i]);
  tarn_buf_str(&b, "]");
  return b.p;
}

bool tarn_dtype_parse(const char *s, tarn_dtype *t) {
  for (unsigned i = 0; i < TARN_DTYPES; i++)
    if (strcmp(info[i].name, s) == 0) return *t = (tarn_dtype)i, true;
  return false;
}

/* ---------------------------------------------------------------- rounding and wrapping */
double tarn_canonical_nan(void) {
  const uint64_t bits = 0x7FF8000000000000u;
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

uint64_t tarn_nan_bits(tarn_dtype t) {
  static const uint64_t bits[] = {[TARN_F32] = 0x7FC00000u,
                                  [TARN_F64] = 0x7FF8000000000000u,
                                  [TARN_F16] = 0x7E00u,
                                  [TARN_BF16] = 0x7FC0u};
  return bits[t];
}

/* v truncated to f32 with the last bit set when anything was cut off ("round to odd"): a later
 * rounding to a format at least two bits narrower then gives what one rounding of v would have
 * given (Boldo, Melquiond 2008). */
static float odd_float(double v) {
  float f = (float)v;
  uint32_t bits;
  if ((double)f == v) return f;
  memcpy(&bits, &f, sizeof bits);
  if (fabs((double)f) > fabs(v)) bits--;
  bits |= 1;
  memcpy(&f, &bits, sizeof f);
  return f;
}

double tarn_round_to(tarn_dtype t, double v) {
  if (isnan(v)) return tarn_canonical_nan();
  switch (t) {
  case TARN_F32: return (double)(float)v;
  case TARN_F16: return (double)tarn_from_f16(tarn_to_f16(odd_float(v)));
  case TARN_BF16: return (double)tarn_from_bf16(tarn_to_bf16(odd_float(v)));
  default: return v;
  }
}

double tarn_round_tf32(double v) {
  int e;
  if (!isfinite(v) || v == 0) return v;
  frexp(v, &e);
  double unit = ldexp(1, (e > -125 ? e : -125) - 11), r = round(v / unit) * unit;
  return fabs(r) < 0x1p128 ? r : copysign((double)INFINITY, r);
}

/* The number of the type next to v, above or below it. */
static double neighbour(tarn_dtype t, double v, bool up) {
  if (t == TARN_F32) return (double)nextafterf((float)v, up ? INFINITY : -INFINITY);
  if (t == TARN_F64) return nextafter(v, up ? (double)INFINITY : (double)-INFINITY);
  uint16_t bits = t == TARN_F16 ? tarn_to_f16((float)v) : tarn_to_bf16((float)v);
  if (v == 0) bits = up ? 1 : 0x8001;
  else bits = (uint16_t)(bits + ((v > 0) == up ? 1 : -1));
  return (double)(t == TARN_F16 ? tarn_from_f16(bits) : tarn_from_bf16(bits));
}

double tarn_round_toward(tarn_dtype t, double v, bool up) {
  double near = tarn_round_to(t, v);
  if (near == v || isnan(near) || isinf(near) || (near > v) == up) return near;
  double far = neighbour(t, near, up);
  return isinf(far) ? near : far;
}

double tarn_dtype_ulp(tarn_dtype t, double v) {
  double near = fabs(tarn_round_to(t, v));
  if (isinf(near)) near = neighbour(t, near, false);
  double above = neighbour(t, near, true);
  return isinf(above) ? near - neighbour(t, near, false) : above - near;
}

int64_t tarn_wrap_to(tarn_dtype t, int64_t v) {
  if (t == TARN_BOOL) return v != 0;
  unsigned spare = 64 - info[t].bits;
  uint64_t up = (uint64_t)v << spare;
  if (info[t].class == UNSIGNED) return (int64_t)(up >> spare);
  return spare ? (int64_t)up / ((int64_t)1 << spare) : v; /* exact: the low bits are zero */
}

/* ---------------------------------------------------------------- casts */
static int64_t saturate(tarn_dtype t, double v) {
  unsigned bits = info[t].bits;
  bool sign = info[t].class == SIGNED;
  double hi = ldexp(1.0, (int)bits - (sign ? 1 : 0)), lo = sign ? -hi : 0.0;
  if (isnan(v)) return 0;
  v = trunc(v);
  if (v >= hi) return sign ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1) : tarn_wrap_to(t, -1);
  if (v <= lo) return sign ? tarn_wrap_to(t, (int64_t)((uint64_t)1 << (bits - 1))) : 0;
  return sign ? (int64_t)v : (int64_t)(uint64_t)v;
}

/* An integer as a double, rounded to odd (see odd_float) unless it is to stay a double. */
static double from_integer(tarn_dtype from, tarn_dtype to, int64_t i) {
  bool negative = from != TARN_U64 && i < 0;
  uint64_t u = negative ? 0 - (uint64_t)i : (uint64_t)i;
  unsigned drop = 0;
  if (to != TARN_F64)
    while (u >> drop >> 53) drop++;
  uint64_t kept = u >> drop;
  if (kept << drop != u) kept |= 1;
  double d = ldexp((double)kept, (int)drop);
  return negative ? -d : d;
}

tarn_value tarn_cast_value(tarn_dtype from, tarn_dtype to, tarn_value v, tarn_mode mode) {
  bool float_in = tarn_dtype_is_float(from), float_out = tarn_dtype_is_float(to);
  tarn_value r = v;
  if (!float_in && !float_out) r.i = tarn_wrap_to(to, v.i);
  else if (float_in && to == TARN_BOOL) r.i = v.d != 0;
  else if (float_in && !float_out) r.i = saturate(to, v.d);
  else {
    r.d = float_in ? v.d : from_integer(from, mode == TARN_WIDE ? TARN_F64 : to, v.i);
    if (mode == TARN_STRICT) r.d = tarn_round_to(to, r.d);
  }
  return r;
}

/* ---------------------------------------------------------------- element counts */
bool tarn_mul64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }

bool tarn_count_dims(uint32_t n, const int64_t *dim, int64_t *out) {
  int64_t count = 1;
  bool empty = false;
  for (uint32_t i = 0; i < n; i++) {
    if (dim[i] == 0) empty = true;
    else if (!tarn_mul64(count, dim[i], &count)) return false;
  }
  *out = empty ? 0 : count;
  return true;
}
