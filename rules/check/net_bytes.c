/* Blocks of random networks over bytes and other integers: products as quantised networks have
 * them, what is rounded and cut off, windows. */
#include "rules/check/blocks.h"
#include <math.h>
#include <string.h>

/* Bytes less a zero point, which may differ from row to row, and for real ones times a scale. */
static tarn_term dequantised(net *x, tarn_term t, bool real) {
  tarn_lang *L = x->L;
  const tarn_type *y = type(x, t);
  uint32_t e = tarn_fx_cast(L, TARN_I32, tarn_fx_hole(L, 0)), how = draw(x->g, 3);
  uint32_t zero = tarn_fx_iconst(L, TARN_I32, (int64_t)draw(x->g, 128));
  tarn_term kid[2] = {t, t};
  if (how == 2) {
    tarn_tensor *z = tarn_tensor_new(x->g->cx, y->dtype, 2, (int64_t[]){y->dim[0], 1});
    for (int64_t i = 0; i < y->dim[0]; i++)
      tarn_tensor_set(z, i, (tarn_value){.i = (int64_t)draw(x->g, 128)});
    tarn_term c = tarn_constant(L, tarn_format(x->g->cx, "z%u", tarn_term_count(L)), z, 2);
    kid[1] = tarn_broadcast(L, 2, 2, y->dim, c);
    zero = tarn_fx_cast(L, TARN_I32, tarn_fx_hole(L, 1));
  }
  if (how) e = tarn_fx_op(L, TARN_FX_SUB, e, zero, 0);
  if (real) e = tarn_fx_cast(L, TARN_F32, e);
  if (real && draw(x->g, 2))
    e = tarn_fx_op(L, TARN_FX_MUL, e, tarn_fx_const(L, TARN_F32, 0.125), 0);
  return tarn_compute(L, tarn_fn_map(L, e, how == 2 ? 2 : 1), kid, how == 2 ? 2 : 1);
}
/* A product of bytes, as integers or dequantised. */
void net_quantised(net *x) {
  tarn_lang *L = x->L;
  bool real = draw(x->g, 2);
  int64_t k = 4 + (int64_t)draw(x->g, 3);
  tarn_term side[2];
  for (uint32_t i = 0; i < 2; i++) {
    tarn_dtype t = draw(x->g, 2) ? TARN_I8 : TARN_U8;
    const int64_t dim[2] = {1 + (int64_t)draw(x->g, 3), k};
    tarn_tensor *w = tarn_tensor_new(x->g->cx, t, 2, dim);
    for (int64_t j = 0; j < tarn_tensor_count(w); j++)
      tarn_tensor_set(w, j, (tarn_value){.i = (int64_t)draw(x->g, 256) - (t == TARN_I8 ? 128 : 0)});
    const char *name = tarn_format(x->g->cx, "b%u", tarn_term_count(L));
    side[i] = i && !chance(x->g, 4) ? tarn_constant(L, name, w, 2)
                                    : tarn_input(L, name, tarn_type_tensor(L, t, 2, 2, dim));
    side[i] = dequantised(x, side[i], real);
    uint32_t fill = real ? tarn_fx_const(L, TARN_F32, 0) : tarn_fx_iconst(L, TARN_I32, 0);
    if (i == 0 && chance(x->g, 3)) side[i] = tarn_pad(L, 1, fill, 1, 0, side[i]), k++;
    side[i] = tarn_access(L, 1, side[i]);
  }
  tarn_term c = tarn_cart(L, 0, side[0], side[1]);
  c = tarn_compute(L, tarn_fn_dot(L, real ? TARN_F32 : TARN_I32), &c, 1);
  if (!real)
    c = tarn_compute(L, tarn_fn_map(L, tarn_fx_cast(L, TARN_F32, tarn_fx_hole(L, 0)), 1), &c, 1);
  net_add(x, c);
}

/* Rounded to bytes, cut off at their bounds, within or beyond them or on one side alone, and made
 * real again. */
void net_requantised(net *x) {
  tarn_lang *L = x->L;
  tarn_dtype byte = draw(x->g, 2) ? TARN_I8 : TARN_U8;
  const int64_t dim[2] = {1 + (int64_t)draw(x->g, 3), 1 + (int64_t)draw(x->g, 4)};
  uint32_t how = draw(x->g, 4), zero = draw(x->g, 100), h0 = tarn_fx_hole(L, 0);
  double lo = byte == TARN_I8 ? -128 : 0, hi = lo + 255, over = how == 1 ? -3 : how == 2 ? 3 : 0;
  tarn_term t = tarn_input(L, tarn_format(x->g->cx, "q%u", x->nin++),
                           tarn_type_tensor(L, TARN_I32, 2, 2, dim));
  uint32_t e = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_cast(L, TARN_F32, h0),
                          tarn_fx_const(L, TARN_F32, 0.25), 0);
  if (draw(x->g, 4)) e = tarn_fx_op(L, TARN_FX_ROUND, e, 0, 0);
  if (draw(x->g, 2)) e = tarn_fx_op(L, TARN_FX_ADD, e, tarn_fx_const(L, TARN_F32, zero), 0);
  e = tarn_fx_op(L, TARN_FX_MAX, e, tarn_fx_const(L, TARN_F32, lo - over), 0);
  if (how != 3) e = tarn_fx_op(L, TARN_FX_MIN, e, tarn_fx_const(L, TARN_F32, hi + over), 0);
  t = tarn_compute(L, tarn_fn_map(L, tarn_fx_cast(L, byte, e), 1), &t, 1);
  e = tarn_fx_cast(L, TARN_I32, h0);
  if (draw(x->g, 3)) e = tarn_fx_op(L, TARN_FX_SUB, e, tarn_fx_iconst(L, TARN_I32, zero), 0);
  e = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_cast(L, TARN_F32, e), tarn_fx_const(L, TARN_F32, 0.5), 0);
  net_add(x, tarn_compute(L, tarn_fn_map(L, e, 1), &t, 1));
}

/* A row of i32 to be added, as integers, or dequantised by its own scale. */
static tarn_term some_bias(net *x, tarn_dtype real, const double *scale, const int64_t *dim) {
  tarn_lang *L = x->L;
  tarn_tensor *bias = tarn_tensor_new(x->g->cx, TARN_I32, 2, (int64_t[]){1, dim[1]});
  for (int64_t i = 0; i < dim[1]; i++)
    tarn_tensor_set(bias, i, (tarn_value){.i = (int64_t)draw(x->g, 2000) - 1000});
  tarn_term t = tarn_constant(L, tarn_format(x->g->cx, "k%u", tarn_term_count(L)), bias, 2);
  if (scale) {
    double own = draw(x->g, 2) ? *scale : ldexp(1, -(int)draw(x->g, 9));
    uint32_t f = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_cast(L, real, tarn_fx_hole(L, 0)),
                            tarn_fx_const(L, real, own), 0);
    t = tarn_compute(L, tarn_fn_map(L, f, 1), &t, 1);
  }
  return tarn_broadcast(L, 2, 2, dim, t);
}
/* Rounded and bounded, an integer again. */
static uint32_t some_rounding(net *x, uint32_t e, tarn_dtype real, tarn_dtype to) {
  tarn_lang *L = x->L;
  double lo = to == TARN_I8 ? -128 : 0, hi = lo + 255;
  uint32_t how = draw(x->g, 4);
  double half = how == 3 ? 0.25 : 0.5;
  if (how) e = tarn_fx_op(L, TARN_FX_ADD, e, tarn_fx_const(L, real, half), 0);
  e = tarn_fx_op(L, how ? TARN_FX_FLOOR : TARN_FX_ROUND, e, 0, 0);
  if (draw(x->g, 4)) e = tarn_fx_op(L, TARN_FX_MIN, e, tarn_fx_const(L, real, hi), 0);
  if (draw(x->g, 2)) e = tarn_fx_op(L, TARN_FX_MAX, e, tarn_fx_const(L, real, lo), 0);
  e = tarn_fx_cast(L, to, e);
  return draw(x->g, 3) ? e : tarn_fx_op(L, TARN_FX_MAX, e, tarn_fx_iconst(L, to, 7), 0);
}
/* Integers times a power of two, rounded and bounded as floats, and integers again; perhaps the
 * extremes of these, or their sum as floats. */
void net_shifted(net *x) {
  static const tarn_dtype from[] = {TARN_I8, TARN_U8, TARN_I16, TARN_I32};
  tarn_lang *L = x->L;
  tarn_dtype t = from[draw(x->g, 4)], real = draw(x->g, 2) ? TARN_F64 : TARN_F32,
             to = draw(x->g, 2) ? TARN_I8 : TARN_U8;
  const int64_t dim[2] = {1 + (int64_t)draw(x->g, 3), 1 + (int64_t)draw(x->g, 4)};
  const char *name = tarn_format(x->g->cx, "i%u", x->nin++);
  double scale = ldexp(1, -(int)draw(x->g, 24));
  uint32_t bias = draw(x->g, 4), h1 = tarn_fx_hole(L, 1), e = tarn_fx_hole(L, 0), n = 1;
  tarn_term kid[2] = {tarn_input(L, name, tarn_type_tensor(L, t, 2, 2, dim))};
  if (bias > 1) kid[n++] = some_bias(x, real, bias == 3 ? &scale : NULL, dim);
  if (t != TARN_I32) e = tarn_fx_cast(L, TARN_I32, e);
  if (bias == 2) e = tarn_fx_op(L, TARN_FX_ADD, e, h1, 0);
  e = tarn_fx_cast(L, real, e);
  if (draw(x->g, 2)) e = tarn_fx_op(L, TARN_FX_MAX, e, tarn_fx_const(L, real, 0), 0);
  e = tarn_fx_op(L, TARN_FX_MUL, e, tarn_fx_const(L, real, scale), 0);
  if (bias == 3) e = tarn_fx_op(L, TARN_FX_ADD, e, h1, 0);
  kid[0] = tarn_compute(L, tarn_fn_map(L, some_rounding(x, e, real, to), n), kid, n);
  if (draw(x->g, 2)) {
    uint32_t red = tarn_reducer_of(L, draw(x->g, 2) ? TARN_RED_MAX : TARN_RED_MIN, to);
    kid[0] = tarn_access(L, 1, kid[0]);
    kid[0] = tarn_compute(L, tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, red), kid, 1);
  }
  e = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_cast(L, TARN_F32, tarn_fx_hole(L, 0)),
                 tarn_fx_const(L, TARN_F32, 0.5), 0);
  kid[0] = tarn_compute(L, tarn_fn_map(L, e, 1), kid, 1);
  if (draw(x->g, 2)) {
    uint32_t sum = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32);
    kid[0] = tarn_access(L, type(x, kid[0])->n - 1u, kid[0]);
    kid[0] = tarn_compute(L, tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, sum), kid, 1);
  }
  net_add(x, kid[0]);
}

/* The largest bytes of padded windows, as often as not of what is not below 0. */
void net_pooled(net *x) {
  tarn_lang *L = x->L;
  const int64_t dim[2] = {1 + (int64_t)draw(x->g, 2), 3 + (int64_t)draw(x->g, 4)},
                wide = 2 + (int64_t)draw(x->g, 2), step = 1 + (int64_t)draw(x->g, 2), one = 1;
  const char *name = tarn_format(x->g->cx, "p%u", x->nin++);
  tarn_term t = tarn_input(L, name, tarn_type_tensor(L, TARN_I8, 2, 2, dim));
  uint32_t h = tarn_fx_hole(L, 0), red = tarn_reducer_of(L, TARN_RED_MAX, TARN_I8);
  uint32_t relu = tarn_fx_op(L, TARN_FX_MAX, h, tarn_fx_iconst(L, TARN_I8, 0), 0);
  if (draw(x->g, 2)) t = tarn_compute(L, tarn_fn_map(L, relu, 1), &t, 1);
  t = tarn_pad(L, 1, tarn_fx_iconst(L, TARN_I8, -128), draw(x->g, 3), draw(x->g, 3), t);
  t = tarn_windows(L, &wide, &step, &one, tarn_access(L, 1, t));
  t = tarn_compute(L, tarn_fn_reduce(L, h, 1, red), &t, 1);
  net_add(x, net_cast(x, TARN_F32, t));
}
/* A product of bytes in groups. */
void net_grouped(net *x) {
  tarn_lang *L = x->L;
  const int64_t n = 2 + (int64_t)draw(x->g, 5), in = 1 + (int64_t)draw(x->g, 2),
                out = 1 + (int64_t)draw(x->g, 2), points = 1 + (int64_t)draw(x->g, 3),
                wd[2] = {n * out, in}, xd[2] = {n * in, points};
  tarn_tensor *w = tarn_tensor_new(x->g->cx, TARN_I8, 2, wd);
  for (int64_t i = 0; i < tarn_tensor_count(w); i++)
    tarn_tensor_set(w, i, (tarn_value){.i = (int64_t)draw(x->g, 256) - 128});
  tarn_term side[2] = {tarn_constant(L, tarn_format(x->g->cx, "w%u", tarn_term_count(L)), w, 2),
                       tarn_input(L, tarn_format(x->g->cx, "g%u", x->nin++),
                                  tarn_type_tensor(L, TARN_I8, 2, 2, xd))};
  for (uint32_t i = 0; i < 2; i++) side[i] = net_cast(x, TARN_I32, side[i]);
  side[0] = tarn_reshape(L, 3, 3, (int64_t[]){n, out, in}, side[0]);
  side[1] = tarn_reshape(L, 3, 3, (int64_t[]){n, in, points}, side[1]);
  side[1] = tarn_transpose(L, (uint32_t[]){0, 2, 1}, side[1]);
  tarn_term t = tarn_cart(L, 1, tarn_access(L, 2, side[0]), tarn_access(L, 2, side[1]));
  t = tarn_compute(L, tarn_fn_dot(L, TARN_I32), &t, 1);
  if (draw(x->g, 2)) t = tarn_reshape(L, 2, 2, (int64_t[]){n * out, points}, t);
  net_add(x, net_cast(x, TARN_F32, t));
}
