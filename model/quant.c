/* Quantised operators in elementary terms: round, shift and clamp as elementwise maps, products on
 * the integers. */
#include "model/import.h"
#include <math.h>
#include <string.h>

/* A per-axis operand (scale or zero point) as a column for broadcasting; scalars stay. */
static tarn_term along(im_node *n, tarn_term v, uint32_t axis, uint32_t rank) {
  im_dims d = im_shape(n, v);
  int64_t dim[TARN_MAX_DIMS];
  if (im_count(&d) == 1) return im_reshape(n, v, 0, dim);
  if (d.n != 1) im_bad(n, "scales and zero points have one dim");
  for (uint32_t i = axis; i < rank; i++) dim[i - axis] = i == axis ? d.d[0] : 1;
  return im_reshape(n, v, rank - axis, dim);
}

/* A formula with the name of a type put in once. */
static const char *of_type(im_node *n, const char *text, const char *type) {
  const char *at = strstr(text, "%s");
  return tarn_format(n->cx, "%.*s%s%s", (int)(at - text), text, type, at + 2);
}

static bool is_quantised(tarn_dtype t) { return t == TARN_I8 || t == TARN_U8; }

/* The range of a quantised type, stored or not. */
static void range_of(im_node *n, tarn_dtype t, int32_t stored, im_param *lo, im_param *hi) {
  double bits = (double)tarn_dtype_size(t) * 8;
  bool is_signed = tarn_dtype_is_signed(t);
  if (tarn_dtype_is_float(t) || t == TARN_BOOL || bits > 16)
    im_bad(n, "quantised type %s is not supported", tarn_dtype_name(t));
  *lo = (im_param){"lo", is_signed ? -ldexp(1, (int)bits - 1) : 0, 0};
  *hi = (im_param){"hi", ldexp(1, (int)bits - is_signed) - 1, 0};
  if (stored) im_stored_range(stored, &lo->r, &hi->r);
}

static tarn_term rounded(im_node *n, tarn_term x, tarn_term scale, tarn_term zero, tarn_dtype t,
                         int32_t stored) {
  im_param p[2];
  range_of(n, t, stored, &p[0], &p[1]);
  tarn_term z =
      zero == TARN_NONE ? im_scalar(n, im_type(n, x), 0, 0) : im_cast(n, zero, im_type(n, x));
  return im_cast(
      n, im_elp(n, "(min (max (add (round (div $0 $1)) $2) lo) hi)", p, 2, 3, x, scale, z), t);
}

static tarn_term quantised(im_node *n, tarn_term x, tarn_term scale, tarn_term zero) {
  return im_quantised(n, x, scale, zero, TARN_U8);
}

tarn_term im_quantised(im_node *n, tarn_term x, tarn_term scale, tarn_term zero, tarn_dtype t) {
  return rounded(n, x, scale, zero, zero == TARN_NONE ? t : im_type(n, zero), 0);
}

tarn_term im_dequantised(im_node *n, tarn_term x, tarn_term scale, tarn_term zero) {
  const char *type = tarn_dtype_name(im_type(n, scale));
  if (zero == TARN_NONE)
    return im_el(n, of_type(n, "(mul (cast %s (cast i32 $0)) $1)", type), 2, x, scale);
  const char *text = of_type(n, "(mul (cast %s (sub (cast i32 $0) (cast i32 $1))) $2)", type);
  return im_el(n, text, 3, x, zero, scale);
}

static uint32_t quantised_axis(im_node *n, const im_dims *d, uint32_t scale) {
  int64_t axis = im_attr_int(n, "axis", 1);
  im_dims s = im_shape(n, im_arg(n, scale));
  return im_count(&s) == 1 ? 0 : im_axis(n, axis, d->n);
}

/* A scale or zero point as what broadcasts to x (shape d): one number, one for each index along the
 * axis, or (block_size) one for each block of elements along it. */
static tarn_term per_element(im_node *n, tarn_term v, const im_dims *d) {
  int64_t block = im_attr_int(n, "block_size", 0);
  if (block == 0) return along(n, v, quantised_axis(n, d, 1), d->n);
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", 1), d->n);
  im_dims s = im_shape(n, v);
  bool fits = block > 0 && s.n == d->n;
  for (uint32_t i = 0; fits && i < d->n; i++)
    fits = i == axis ? (d->d[i] + block - 1) / block == s.d[i] : s.d[i] == d->d[i];
  if (!fits) im_bad(n, "the scales or zero points do not fit blocks of %lld", (long long)block);
  return im_repeat(n, v, axis, block, d->d[axis]);
}

/* What QuantizeLinear makes: the type of the zero point, else output_dtype, else u8. */
static int32_t quantised_type(im_node *n, tarn_dtype *t) {
  int32_t stored = 0;
  int64_t code = im_attr_int(n, "output_dtype", 0);
  *t = TARN_U8;
  if (im_opt(n, 2) != TARN_NONE) {
    *t = im_type(n, im_arg(n, 2));
    return n->in[2]->stored;
  }
  if (code && (code < 0 || code > 100 || !im_carrier((int32_t)code, t, &stored)))
    im_bad(n, "output_dtype %lld is not supported", (long long)code);
  return stored;
}

void im_do_quantize(im_node *n) {
  tarn_term x = im_arg(n, 0), zero = im_opt(n, 2), scale = im_arg(n, 1);
  im_dims d = im_shape(n, x);
  tarn_dtype type, t = im_type(n, scale);
  int32_t stored = quantised_type(n, &type);
  bool saturate = im_attr_int(n, "saturate", 1) != 0;
  im_attr_ignore(n, "precision"); /* f32 or wider */
  scale = per_element(n, scale, &d);
  x = im_cast(n, x, t);
  n->out[0].stored = stored;
  if (stored && !im_stored_is_integer(stored)) { /* their zero point is 0 */
    im_set(n, 0,
           im_stored_write(n, im_el(n, "(add (div $0 $1) 0)", 2, x, scale), stored, saturate));
    return;
  }
  if (zero != TARN_NONE) zero = per_element(n, zero, &d);
  im_set(n, 0, rounded(n, x, scale, zero, type, stored));
}

void im_do_dequantize(im_node *n) {
  tarn_term x = im_arg(n, 0), zero = im_opt(n, 2), scale = im_arg(n, 1);
  im_dims d = im_shape(n, x);
  int32_t stored = n->in[0]->stored, code = (int32_t)im_attr_int(n, "output_dtype", 0);
  tarn_dtype to;
  scale = per_element(n, scale, &d);
  if (stored && !im_stored_is_integer(stored)) { /* the zero point is 0 */
    x = im_cast(n, im_stored_read(n, x, stored), im_type(n, scale));
    x = im_el(n, "(mul $0 $1)", 2, x, scale);
  } else x = im_dequantised(n, x, scale, zero == TARN_NONE ? zero : per_element(n, zero, &d));
  if (code && !im_dtype(code, &to))
    im_bad(n, "output_dtype %s is not supported", im_onnx_dtype_name(code));
  if (code) im_set_as(n, 0, x, to);
  else im_set(n, 0, x);
}

/* scale = (max(x,0) - min(x,0)) / 255, zero = round(-min / scale); ONNX DynamicQuantizeLinear.
 * Of zeros alone, or numbers so small that it is 0, the scale is 1. */
void im_do_dynamic_quantize(im_node *n) {
  tarn_term x = im_arg(n, 0);
  uint32_t all = (1u << im_shape(n, x).n) - 1;
  tarn_term most = im_el(n, "(max $0 0)", 1, im_reduce(n, x, all, TARN_NONE, TARN_RED_MAX, false));
  tarn_term least = im_el(n, "(min $0 0)", 1, im_reduce(n, x, all, TARN_NONE, TARN_RED_MIN, false));
  tarn_term scale = im_el(n, "(div (sub $0 $1) 255)", 2, most, least);
  scale = im_el(n, "(select (eq $0 0) 1 $0)", 1, scale);
  tarn_term zero = im_cast(
      n, im_el(n, "(round (min (max (div (sub 0 $0) $1) 0) 255))", 2, least, scale), TARN_U8);
  im_set(n, 0, quantised(n, x, scale, zero));
  im_set(n, 1, scale);
  im_set(n, 2, zero);
}

/* An operand as i32 minus its zero point. */
static tarn_term centred(im_node *n, tarn_term x, tarn_term zero, uint32_t axis) {
  uint32_t rank = im_shape(n, x).n;
  if (!is_quantised(im_type(n, x)))
    im_bad(n, "operands of type %s are not supported", tarn_dtype_name(im_type(n, x)));
  if (zero == TARN_NONE) return im_cast(n, x, TARN_I32);
  return im_el(n, "(sub (cast i32 $0) (cast i32 $1))", 2, x, along(n, zero, axis, rank));
}

static tarn_term conv(im_node *n, tarn_term x, tarn_term w) {
  im_dims xd = im_shape(n, x), wd = im_shape(n, w);
  int64_t group = im_attr_int(n, "group", 1), channels;
  if (xd.n != wd.n || xd.n < 3 || group < 1 || __builtin_mul_overflow(wd.d[1], group, &channels) ||
      channels != xd.d[1] || wd.d[0] % group)
    im_bad(n, "input and weights do not fit");
  im_window win;
  im_window_read(n, &win, &xd, wd.d + 2, false);
  return im_conv(n, x, w, group, &win);
}

void im_do_conv_integer(im_node *n) {
  im_set(n, 0,
         conv(n, centred(n, im_arg(n, 0), im_opt(n, 2), 1),
              centred(n, im_arg(n, 1), im_opt(n, 3), 0)));
}

/* The product of matrices: rows × summed, summed × columns, batch dims alike or absent. */
static tarn_term product(im_node *n, tarn_term a, tarn_term b) {
  uint32_t na = im_shape(n, a).n, nb = im_shape(n, b).n, k = 0;
  if (na < 2 || nb < 2) im_bad(n, "operands of fewer than 2 dims");
  uint8_t la[TARN_MAX_DIMS], lb[TARN_MAX_DIMS], lo[TARN_MAX_DIMS];
  for (uint32_t i = 0; i + 2 < na; i++) la[i] = (uint8_t)(na - 2 - i);
  for (uint32_t i = 0; i + 2 < nb; i++) lb[i] = (uint8_t)(nb - 2 - i);
  la[na - 2] = 100;
  la[na - 1] = lb[nb - 2] = 101;
  lb[nb - 1] = 102;
  for (uint32_t i = (na > nb ? na : nb) - 2; i > 0; i--) lo[k++] = (uint8_t)i;
  lo[k++] = 100;
  lo[k++] = 102;
  return im_contract(n, a, la, b, lb, lo, k);
}

/* The axis of an operand's rows. */
static uint32_t rows_of(im_node *n, tarn_term t) {
  uint32_t rank = im_shape(n, t).n;
  return rank >= 2 ? rank - 2 : 0;
}

tarn_term im_byte_product(im_node *n, tarn_term a, tarn_term za, tarn_term b, tarn_term zb) {
  return product(n, centred(n, a, za, rows_of(n, a)), centred(n, b, zb, rows_of(n, b) + 1));
}

void im_do_matmul_integer(im_node *n) {
  im_set(n, 0, im_byte_product(n, im_arg(n, 0), im_opt(n, 2), im_arg(n, 1), im_opt(n, 3)));
}

/* Products of scales, then back to the quantised type. */
static tarn_term requantised(im_node *n, tarn_term sum, tarn_term scale, tarn_term out_scale,
                             tarn_term zero) {
  tarn_term real = im_el(n, "(mul $0 $1)", 2, im_cast(n, sum, im_type(n, scale)), scale);
  return quantised(n, real, out_scale, zero);
}

void im_do_qlinear_conv(im_node *n) {
  tarn_term w = im_arg(n, 3);
  uint32_t rank = im_shape(n, w).n;
  tarn_term sum =
      conv(n, centred(n, im_arg(n, 0), im_arg(n, 2), 1), centred(n, w, im_arg(n, 5), 0));
  if (im_opt(n, 8) != TARN_NONE)
    sum = im_el(n, "(add $0 $1)", 2, sum, im_channel(n, im_arg(n, 8), rank));
  tarn_term scale =
      im_el(n, "(mul $0 $1)", 2, along(n, im_arg(n, 1), 0, 1), along(n, im_arg(n, 4), 1, rank));
  im_set(n, 0,
         requantised(n, sum, scale, along(n, im_arg(n, 6), 0, 1), along(n, im_arg(n, 7), 0, 1)));
}

void im_do_qlinear_matmul(im_node *n) {
  tarn_term a = im_arg(n, 0), b = im_arg(n, 3);
  uint32_t ra = im_shape(n, a).n, rb = im_shape(n, b).n;
  tarn_term sum = im_byte_product(n, a, im_arg(n, 2), b, im_arg(n, 5));
  tarn_term scale = im_el(n, "(mul $0 $1)", 2, along(n, im_arg(n, 1), rows_of(n, a), ra),
                          along(n, im_arg(n, 4), rows_of(n, b) + 1, rb));
  im_set(n, 0,
         requantised(n, sum, scale, along(n, im_arg(n, 6), 0, 1), along(n, im_arg(n, 7), 0, 1)));
}
