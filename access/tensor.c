/* Tensors, and the two 16-bit floats. */
#include "access/internal.h"
#include <string.h>

tarn_tensor *tarn_tensor_new(tarn_ctx *cx, tarn_dtype t, uint32_t n, const int64_t *dim) {
  int64_t count, bytes;
  if (n > TARN_MAX_DIMS) tarn_raise(cx, TARN_BAD_INPUT, "tensor: %u dims", n);
  if (!tarn_count_dims(n, dim, &count) || !tarn_mul64(count, (int64_t)tarn_dtype_size(t), &bytes) ||
      bytes < 0)
    tarn_raise(cx, TARN_BAD_INPUT, "tensor: the element count overflows");
  tarn_tensor *r = TARN_NEW(cx, tarn_tensor);
  r->dtype = t;
  r->n = n;
  if (n) memcpy(r->dim, dim, n * sizeof *dim);
  r->data = tarn_new_aligned(cx, bytes ? (size_t)bytes : 1, 64);
  memset(r->data, 0, (size_t)bytes);
  return r;
}

int64_t tarn_tensor_count(const tarn_tensor *t) {
  int64_t n = 1;
  for (uint32_t i = 0; i < t->n; i++) n *= t->dim[i];
  return n;
}
size_t tarn_tensor_bytes(const tarn_tensor *t) {
  return (size_t)tarn_tensor_count(t) * tarn_dtype_size(t->dtype);
}

/* ---------------------------------------------------------------- elements */
#define NATIVE(X)                                                                                  \
  X(F32, float, d)                                                                                 \
  X(F64, double, d)                                                                                \
  X(I8, int8_t, i)                                                                                 \
  X(U8, uint8_t, i)                                                                                \
  X(I16, int16_t, i)                                                                               \
  X(U16, uint16_t, i)                                                                              \
  X(I32, int32_t, i)                                                                               \
  X(U32, uint32_t, i)                                                                              \
  X(I64, int64_t, i)                                                                               \
  X(BOOL, uint8_t, i)

tarn_value tarn_data_get(const void *data, tarn_dtype type, int64_t i) {
  tarn_value v = {0};
  switch (type) {
#define GET(ID, type, field)                                                                       \
  case TARN_##ID: v.field = ((const type *)data)[i]; break;
    NATIVE(GET)
#undef GET
  case TARN_U64: v.i = (int64_t)((const uint64_t *)data)[i]; break;
  case TARN_F16: v.d = (double)tarn_from_f16(((const uint16_t *)data)[i]); break;
  case TARN_BF16: v.d = (double)tarn_from_bf16(((const uint16_t *)data)[i]); break;
  case TARN_DTYPES: break;
  }
  return v;
}
tarn_value tarn_tensor_get(const tarn_tensor *t, int64_t flat) {
  return tarn_data_get(t->data, t->dtype, flat);
}

double tarn_tensor_number(const tarn_tensor *t, int64_t flat) {
  tarn_value v = tarn_tensor_get(t, flat);
  if (tarn_dtype_is_float(t->dtype)) return v.d;
  return t->dtype == TARN_U64 ? (double)(uint64_t)v.i : (double)v.i;
}

void tarn_tensor_index(const tarn_tensor *t, int64_t flat, int64_t *index) {
  for (uint32_t d = t->n; d-- > 0; flat /= t->dim[d]) index[d] = flat % t->dim[d];
}

void tarn_data_set(void *data, tarn_dtype type, int64_t i, tarn_value v) {
  if (tarn_dtype_is_float(type)) v.d = tarn_round_to(type, v.d);
  else v.i = tarn_wrap_to(type, v.i);
  switch (type) {
#define SET(ID, type, field)                                                                       \
  case TARN_##ID: ((type *)data)[i] = (type)v.field; break;
    NATIVE(SET)
#undef SET
  case TARN_U64: ((uint64_t *)data)[i] = (uint64_t)v.i; break;
  case TARN_F16: ((uint16_t *)data)[i] = tarn_to_f16((float)v.d); break;
  case TARN_BF16: ((uint16_t *)data)[i] = tarn_to_bf16((float)v.d); break;
  case TARN_DTYPES: break;
  }
}
void tarn_tensor_set(tarn_tensor *t, int64_t flat, tarn_value v) {
  tarn_data_set(t->data, t->dtype, flat, v);
}

/* ---------------------------------------------------------------- 16-bit floats */
static uint32_t bits_of(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

static float of_bits(uint32_t b) {
  float x;
  memcpy(&x, &b, sizeof x);
  return x;
}

/* x >> shift, rounded to nearest, ties to even. 0 < shift < 32. */
static uint32_t shift_even(uint32_t x, unsigned shift) {
  uint32_t half = (uint32_t)1 << (shift - 1), rest = x & (2 * half - 1), r = x >> shift;
  return r + (rest > half || (rest == half && (r & 1)));
}

/* f16: 1 sign, 5 exponent (bias 15), 10 fraction bits.  A carry out of the fraction goes into the
 * exponent, which is right: it makes the next binade, or infinity. */
uint16_t tarn_to_f16(float x) {
  uint32_t b = bits_of(x), sign = b >> 16 & 0x8000, mag = b & 0x7FFFFFFF;
  if (mag > 0x7F800000) return (uint16_t)(sign | 0x7E00);
  if (mag >= 0x47800000) return (uint16_t)(sign | 0x7C00); /* 2^16 and above */
  if (mag >= 0x38800000) return (uint16_t)(sign | shift_even(mag - (112u << 23), 13));
  unsigned shift = 126 - (mag >> 23); /* below 2^-14: subnormal, in units of 2^-24 */
  if (shift > 24) return (uint16_t)sign;
  return (uint16_t)(sign | shift_even((mag & 0x7FFFFF) | 0x800000, shift));
}

float tarn_from_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exp = h >> 10 & 31, frac = h & 0x3FF;
  if (exp == 31) return of_bits(sign | 0x7F800000 | frac << 13);
  if (exp) return of_bits(sign | (exp + 112) << 23 | frac << 13);
  float r = (float)frac * 0x1p-24f;
  return of_bits(bits_of(r) | sign);
}

uint16_t tarn_to_bf16(float x) {
  uint32_t b = bits_of(x);
  if ((b & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)((b >> 16) | 0x40);
  return (uint16_t)shift_even(b, 16);
}

float tarn_from_bf16(uint16_t h) { return of_bits((uint32_t)h << 16); }
