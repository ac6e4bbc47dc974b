/* Types that are only stored: integers of 2 and 4 bits, floats of 4 and 8.  A value of such a type
 * is a tensor of bytes, one for each element: the number itself (i8, u8) of an integer, the bits of
 * a float.  What computes with them goes through f32 or wider, and casts are exact: they round
 * once, to nearest, ties to even.
 *
 * Source: onnx.proto (TensorProto.DataType); the operator specification of Cast-24. */
#include "model/import.h"
#include <math.h>
#include <string.h>

enum { E4M3FN = 17, E4M3FNUZ, E5M2, E5M2FNUZ, UINT4, INT4, E2M1, E8M0, UINT2, INT2 };

/* bits of an element, of its mantissa (0: an integer), the exponent's bias, the code of the largest
 * finite number, of a NaN, and of infinity (-1: there is none). */
typedef struct stored {
  int32_t onnx;
  const char *name;
  tarn_dtype carrier;
  int bits, mantissa, bias;
  int64_t most, nan, inf;
} stored;
static const stored types[] = {
    {E4M3FN, "float8e4m3fn", TARN_U8, 8, 3, 7, 0x7e, 0x7f, -1},
    {E4M3FNUZ, "float8e4m3fnuz", TARN_U8, 8, 3, 8, 0x7f, 0x80, -1},
    {E5M2, "float8e5m2", TARN_U8, 8, 2, 15, 0x7b, 0x7e, 0x7c},
    {E5M2FNUZ, "float8e5m2fnuz", TARN_U8, 8, 2, 16, 0x7f, 0x80, -1},
    {UINT4, "uint4", TARN_U8, 4, 0, 0, 15, 0, 0},
    {INT4, "int4", TARN_I8, 4, 0, 0, 7, 0, 0},
    {E2M1, "float4e2m1", TARN_U8, 4, 1, 1, 7, -1, -1},
    {E8M0, "float8e8m0", TARN_U8, 8, 0, 127, 0xfe, 0xff, -1},
    {UINT2, "uint2", TARN_U8, 2, 0, 0, 3, 0, 0},
    {INT2, "int2", TARN_I8, 2, 0, 0, 1, 0, 0},
};

static const stored *find(int32_t onnx) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].onnx == onnx) return &types[i];
  return NULL;
}

const char *im_stored_name(int32_t onnx) {
  const stored *s = find(onnx);
  return s ? s->name : NULL;
}

bool im_stored_dtype(int32_t onnx, tarn_dtype *t) {
  const stored *s = find(onnx);
  if (s) *t = s->carrier;
  return s != NULL;
}

bool im_stored_is_integer(int32_t onnx) {
  const stored *s = find(onnx);
  return s && !s->mantissa && s->onnx != E8M0;
}

void im_stored_range(int32_t onnx, double *lo, double *hi) {
  const stored *s = find(onnx);
  *hi = (double)s->most;
  *lo = s->carrier == TARN_I8 ? -*hi - 1 : 0;
}

/* ---------------------------------------------------------------- files */

size_t im_stored_bytes(int32_t onnx, size_t count) {
  size_t per = 8 / (size_t)find(onnx)->bits;
  return count / per + (count % per != 0);
}

/* Elements of less than a byte lie in it from its low bits on. */
void *im_stored_unpack(tarn_ctx *cx, int32_t onnx, const void *packed, size_t count) {
  const stored *s = find(onnx);
  const uint8_t *from = packed;
  uint8_t *to = tarn_new_aligned(cx, count + 1, 64);
  unsigned bits = (unsigned)s->bits, per = 8 / bits, mask = (1u << bits) - 1;
  for (size_t i = 0; i < count; i++) {
    unsigned v = from[i / per] >> bits * (i % per) & mask;
    bool negative = s->carrier == TARN_I8 && v >> (bits - 1);
    to[i] = (uint8_t)(negative ? v | ~mask : v);
  }
  return to;
}

/* ---------------------------------------------------------------- numbers of what is stored */

static tarn_term of_bits(im_node *n, const char *text, const stored *s, tarn_term t) {
  int64_t m = ((int64_t)1 << s->mantissa) - 1, e = ((int64_t)1 << (s->bits - 1 - s->mantissa)) - 1;
  im_param p[] = {{"m", 0, m}, {"e", 0, e}, {"w", 0, s->mantissa}, {"sign", 0, 1 << (s->bits - 1)}};
  return im_map(n, im_formula(n, text, TARN_I64, p, 4), &t, 1);
}

/* A power of two for each code. */
static tarn_term read_scale(im_node *n, tarn_term t) {
  im_param p[] = {{"nan", NAN, 0}};
  t = im_cast(n, t, TARN_F32);
  return im_elp(n, "(select (eq $0 255) nan (pow 2 (sub $0 127)))", p, 1, 1, t);
}

static tarn_term read_float(im_node *n, const stored *s, tarn_term t) {
  t = im_cast(n, t, TARN_I64);
  tarn_term e = of_bits(n, "(and (shr $0 w) e)", s, t), m = of_bits(n, "(and $0 m)", s, t);
  static const char shifted[] = "(shl (select (eq $0 0) $1 (add (add $1 m) 1)) (sub (max $0 1) 1))";
  im_param by[] = {{"m", 0, ((int64_t)1 << s->mantissa) - 1}};
  tarn_term v = im_cast(n, im_elp(n, shifted, by, 1, 2, e, m), TARN_F32);
  im_param unit[] = {
      {"unit", ldexp(1, 1 - s->bias - s->mantissa), 0}, {"nan", NAN, 0}, {"inf", INFINITY, 0}};
  v = im_elp(n, "(mul $0 unit)", unit, 1, 1, v);
  if (s->inf >= 0)
    v = im_elp(n, "(select $1 inf $0)", unit, 3, 2, v, of_bits(n, "(eq (and $0 127) 124)", s, t));
  v = im_el(n, "(select $1 (neg $0) $0)", 2, v, of_bits(n, "(not (eq (and $0 sign) 0))", s, t));
  const char *nan = s->nan == 0x80   ? "(eq $0 128)"
                    : s->nan == 0x7f ? "(eq (and $0 127) 127)"
                    : s->nan == 0x7e ? "(lt 124 (and $0 127))"
                                     : NULL;
  return nan ? im_elp(n, "(select $1 nan $0)", unit, 3, 2, v, of_bits(n, nan, s, t)) : v;
}

tarn_term im_stored_read(im_node *n, tarn_term t, int32_t onnx) {
  const stored *s = find(onnx);
  if (im_stored_is_integer(onnx)) return t;
  return s->onnx == E8M0 ? read_scale(n, t) : read_float(n, s, t);
}

/* ---------------------------------------------------------------- storing */

/* Its low bits, as two's complement has them. */
static tarn_term store_integer(im_node *n, const stored *s, tarn_term t) {
  im_param p[] = {{"by", 0, 64 - s->bits}, {"mask", 0, ((int64_t)1 << s->bits) - 1}};
  t = im_cast(n, t, TARN_I64);
  t = s->carrier == TARN_I8 ? im_elp(n, "(shr (shl $0 by) by)", p, 2, 1, t)
                            : im_elp(n, "(and $0 mask)", p, 2, 1, t);
  return im_cast(n, t, s->carrier);
}

/* y = 2^e · f with f below 2 (and 1 or more unless e is 0), in five steps. */
static tarn_term exponent(im_node *n, tarn_term *y) {
  tarn_term e = TARN_NONE;
  for (int step = 16; step; step /= 2) {
    im_param p[] = {{"large", ldexp(1, step), 0}, {"small", ldexp(1, -step), 0}, {"step", step, 0}};
    tarn_term more = im_elp(n, "(select (le large $0) step 0)", p, 3, 1, *y);
    *y = im_elp(n, "(select (le large $0) (mul $0 small) $0)", p, 3, 1, *y);
    e = e == TARN_NONE ? more : im_el(n, "(add $0 $1)", 2, e, more);
  }
  return e;
}

static tarn_term store_float(im_node *n, const stored *s, tarn_term x, bool saturate) {
  im_param p[] = {{"unit", ldexp(1, s->bias - 1), 0},
                  {"width", ldexp(1, s->mantissa), 0},
                  {"most", (double)s->most, 0},
                  {"over",
                   (double)(saturate || s->nan < 0 ? s->most
                            : s->inf >= 0          ? s->inf
                                                   : s->nan),
                   0}};
  tarn_term y = im_elp(n, "(mul (abs $0) unit)", p, 1, 1, x);
  tarn_term e = exponent(n, &y);
  tarn_term code = im_elp(n, "(add (mul $0 width) (round (mul $1 width)))", p, 2, 2, e, y);
  code = im_elp(n, "(select (le $0 most) $0 over)", p, 4, 1, code);
  im_param q[] = {{"sign", ldexp(1, s->bits - 1), 0}, {"none", (double)s->nan, 0}};
  tarn_term negative = im_el(n, "(or (lt $0 0) (and (eq $0 0) (lt (div 1 $0) 0)))", 1, x);
  /* where the code of -0 is the NaN, zeros and NaN have no sign */
  const char *text =
      s->nan == 0x80 ? "(select (or (eq $0 0) (eq $0 sign)) $0 (add $0 sign))" : "(add $0 sign)";
  tarn_term minus = im_elp(n, text, q, 2, 1, code);
  code = im_el(n, "(select $2 $1 $0)", 3, code, minus, negative);
  if (s->nan >= 0) code = im_elp(n, "(select (isnan $1) none $0)", q, 2, 2, code, x);
  else code = im_elp(n, "(select (isnan $1) sign $0)", q, 2, 2, code, x);
  return im_cast(n, code, s->carrier);
}

tarn_term im_stored_write(im_node *n, tarn_term t, int32_t onnx, bool saturate) {
  const stored *s = find(onnx);
  if (im_stored_is_integer(onnx)) return store_integer(n, s, t);
  if (s->onnx == E8M0) im_bad(n, "casts to float8e8m0 are not supported");
  tarn_dtype type = im_type(n, t);
  if (!tarn_dtype_is_float(type)) t = im_cast(n, t, TARN_F64);
  else if (type != TARN_F64) t = im_cast(n, t, TARN_F32);
  return store_float(n, s, t, saturate);
}

/* ---------------------------------------------------------------- who may see them */

void im_stored_check(im_node *n, const im_op *op) {
  if (op->floats & (IM_MOVES | IM_STORED)) return;
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i] && n->in[i]->stored)
      im_bad(n,
             "its input %u is of type %s, which this operator does not take here: only Cast, "
             "DequantizeLinear and what moves elements do",
             i, im_stored_name(n->in[i]->stored));
}

void im_stored_hand_on(im_node *n, const im_op *op) {
  int32_t first = n->nin && n->in[0] ? n->in[0]->stored : 0;
  if (!(op->floats & IM_MOVES)) return;
  for (uint32_t i = 0; first && i < n->nin; i++)
    if (strcmp(n->op, "Concat") == 0 && n->in[i]->stored != first)
      im_bad(n, "operands of different types");
  for (uint32_t k = 0; k < n->nout; k++) n->out[k].stored = first;
}
