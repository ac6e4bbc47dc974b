/* Quantised operators in elementary terms: round, shift and clamp as elementwise maps, products on
 * the integers. */
#include "model/import.h"
#include <string.h>

im_handler im_do_conv_integer, im_do_dequantize, im_do_dynamic_quantize, im_do_matmul_integer,
    im_do_qlinear_conv, im_do_qlinear_matmul, im_do_quantize;

/* A per-axis operand (scale or zero point) as a column for broadcasting; scalars stay. */
static tarn_term along(im_node *n, tarn_term v, uint32_t axis, uint32_t rank) {
  im_dims d = im_shape(n, v);
  int64_t dim[TARN_MAX_DIMS];
  if (im_count(&d) == 1) return im_reshape(n, v, 0, dim);
  if (d.n != 1) im_bad(n, "scales and zero points have one dim");
  for (uint32_t i = axis; i < rank; i++) dim[i - axis] = i == axis ? d.d[0] : 1;
  return im_reshape(n, v, rank - axis, dim);
}

static bool is_quantised(tarn_dtype t) { return t == TARN_I8 || t == TARN_U8; }

/* saturate(round(x / scale) + zero), in the type of zero (u8 when it is absent). */
static tarn_term quantised(im_node *n, tarn_term x, tarn_term scale, tarn_term zero) {
  tarn_dtype t = zero == TARN_NONE ? TARN_U8 : im_type(n, zero);
  if (!is_quantised(t)) im_bad(n, "quantised type %s is not supported", tarn_dtype_name(t));
  im_param p[] = {{"lo", t == TARN_U8 ? 0 : -128, 0}, {"hi", t == TARN_U8 ? 255 : 127, 0}};
  tarn_term z =
      zero == TARN_NONE ? im_scalar(n, im_type(n, x), 0, 0) : im_cast(n, zero, im_type(n, x));
  return im_cast(
      n, im_elp(n, "(min (max (add (round (div $0 $1)) $2) lo) hi)", p, 2, 3, x, scale, z), t);
}

static uint32_t quantised_axis(im_node *n, const im_dims *d, uint32_t scale) {
  int64_t axis = im_attr_int(n, "axis", 1);
  im_dims s = im_shape(n, im_arg(n, scale));
  return im_count(&s) == 1 ? 0 : im_axis(n, axis, d->n);
}

void im_do_quantize(im_node *n) {
  tarn_term x = im_arg(n, 0), zero = im_opt(n, 2);
  im_dims d = im_shape(n, x);
  uint32_t axis = quantised_axis(n, &d, 1);
  im_attr_ignore(n, "saturate");
  if (zero != TARN_NONE) zero = along(n, zero, axis, d.n);
  tarn_dtype t = im_type(n, im_arg(n, 1));
  im_set(n, 0, quantised(n, im_cast(n, x, t), along(n, im_arg(n, 1), axis, d.n), zero));
}

void im_do_dequantize(im_node *n) {
  tarn_term x = im_arg(n, 0), zero = im_opt(n, 2), scale = im_arg(n, 1);
  im_dims d = im_shape(n, x);
  uint32_t axis = quantised_axis(n, &d, 1);
  const char *type = tarn_dtype_name(im_type(n, scale));
  scale = along(n, scale, axis, d.n);
  if (zero == TARN_NONE)
    im_set(n, 0,
           im_el(n, tarn_format(tarn_lang_ctx(n->L), "(mul (cast %s (cast i32 $0)) $1)", type), 2,
                 x, scale));
  else
    im_set(n, 0,
           im_el(n,
                 tarn_format(tarn_lang_ctx(n->L),
                             "(mul (cast %s (sub (cast i32 $0) (cast i32 $1))) $2)", type),
                 3, x, along(n, zero, axis, d.n), scale));
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

static uint32_t rows_of(im_node *n, uint32_t i) {
  uint32_t rank = im_shape(n, im_arg(n, i)).n;
  return rank >= 2 ? rank - 2 : 0;
}

void im_do_matmul_integer(im_node *n) {
  tarn_term a = centred(n, im_arg(n, 0), im_opt(n, 2), rows_of(n, 0));
  im_set(n, 0, product(n, a, centred(n, im_arg(n, 1), im_opt(n, 3), rows_of(n, 1) + 1)));
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
  uint32_t ra = im_shape(n, im_arg(n, 0)).n, rb = im_shape(n, im_arg(n, 3)).n;
  tarn_term a = centred(n, im_arg(n, 0), im_arg(n, 2), rows_of(n, 0));
  tarn_term sum = product(n, a, centred(n, im_arg(n, 3), im_arg(n, 5), rows_of(n, 3) + 1));
  tarn_term scale = im_el(n, "(mul $0 $1)", 2, along(n, im_arg(n, 1), rows_of(n, 0), ra),
                          along(n, im_arg(n, 4), rows_of(n, 3) + 1, rb));
  im_set(n, 0,
         requantised(n, sum, scale, along(n, im_arg(n, 6), 0, 1), along(n, im_arg(n, 7), 0, 1)));
}
