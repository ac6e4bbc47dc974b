/* Makes small random networks for kernel-level rules: chains of typical blocks with branches that
 * join again. */
#include "rules/check/net.h"
#include "rules/check/blocks.h"
#include <math.h>
#include <string.h>

void net_add(net *x, tarn_term t) {
  if (x->n < 32 && tarn_type_count(type(x, t)) > 0 && tarn_type_count(type(x, t)) <= C_LEAF &&
      type(x, t)->n <= 4)
    x->pool[x->n++] = t;
}
tarn_term net_cast(net *x, tarn_dtype t, tarn_term a) {
  return tarn_compute(x->L, tarn_fn_map(x->L, tarn_fx_cast(x->L, t, tarn_fx_hole(x->L, 0)), 1), &a,
                      1);
}

/* ---------------------------------------------------------------- leaves */

static tarn_term weights(net *x, uint32_t ns, uint32_t n, const int64_t *dim) {
  tarn_tensor *t = tarn_tensor_new(x->g->cx, TARN_F32, n, dim);
  bool spread = x->g->spread && draw(x->g, 2),
       infinite = x->g->spread && x->g->special && chance(x->g, 6);
  for (int64_t i = 0, all = tarn_tensor_count(t); i < all; i++) {
    double v = infinite && chance(x->g, 8) ? INFINITY
               : spread                    ? some_magnitude(x->g)
                                           : ((double)draw(x->g, 256) - 127) / 64;
    tarn_tensor_set(t, i, (tarn_value){.d = v});
  }
  return tarn_constant(x->L, tarn_format(x->g->cx, "w%u", tarn_term_count(x->L)), t, ns);
}
static tarn_term input(net *x, uint32_t n, const int64_t *dim) {
  const char *name = tarn_format(x->g->cx, "x%u", x->nin++);
  return tarn_input(x->L, name, tarn_type_tensor(x->L, TARN_F32, n, n, dim));
}
/* Of the rank of t: weights along one axis, or a single number. */
static tarn_term row(net *x, tarn_term t) {
  const tarn_type *y = type(x, t);
  int64_t one[TARN_MAX_DIMS];
  uint32_t axis = y->n ? draw(x->g, y->n) : 0;
  for (uint32_t i = 0; i < y->n; i++) one[i] = i == axis && !chance(x->g, 4) ? y->dim[i] : 1;
  return weights(x, y->n, y->n, one);
}
/* That, or a map of it, over the dims of t. */
static tarn_term stretched(net *x, tarn_term t) {
  const tarn_type *y = type(x, t);
  tarn_term w = row(x, t);
  if (chance(x->g, 3)) w = tarn_compute(x->L, some_function(x->g, 1, 0, false, 0), &w, 1);
  return tarn_broadcast(x->L, y->n, y->n, y->dim, w);
}

/* ---------------------------------------------------------------- blocks */

static void map_one(net *x) {
  tarn_term t = last(x);
  net_add(x, tarn_compute(x->L, some_function(x->g, 1, 0, false, 0), &t, 1));
}

static uint32_t map_of(net *x, tarn_fxop op) {
  return tarn_fn_map(x->L, tarn_fx_op(x->L, op, tarn_fx_hole(x->L, 0), tarn_fx_hole(x->L, 1), 0),
                     2);
}

/* With another value of the same type, or with weights. */
static tarn_term joined(net *x, tarn_term t, uint32_t fn) {
  tarn_term other = stretched(x, t), kid[2] = {t, other};
  if (draw(x->g, 2))
    for (uint32_t i = 0; i < x->n; i++)
      if (tarn_term_get(x->L, x->pool[i])->type == tarn_term_get(x->L, t)->type && x->pool[i] != t)
        kid[1] = x->pool[i];
  if (chance(x->g, 3)) {
    tarn_term s = kid[0];
    kid[0] = kid[1], kid[1] = s;
  }
  return tarn_compute(x->L, fn, kid, 2);
}
/* No division: what is 0 by one order of a sum may be -0 by another. */
static void map_two(net *x) {
  static const tarn_fxop op[] = {TARN_FX_ADD, TARN_FX_MUL, TARN_FX_SUB, TARN_FX_MAX, TARN_FX_MIN};
  uint32_t a = tarn_fx_hole(x->L, 0), b = tarn_fx_hole(x->L, 1);
  if (draw(x->g, 2)) a = tarn_fx_op(x->L, chance(x->g, 2) ? TARN_FX_TANH : TARN_FX_ABS, a, 0, 0);
  net_add(x,
          joined(x, last(x), tarn_fn_map(x->L, tarn_fx_op(x->L, op[draw(x->g, 5)], a, b, 0), 2)));
}
/* A power or a quotient with a number; powers below 1 of what is well above 0. */
static void with_number(net *x) {
  static const double power[] = {1, 2, 3, 0.5, -0.5, -1}, divisor[] = {2, 0.25, -8, 3, 0.3, -5};
  uint32_t a = tarn_fx_hole(x->L, 0), i = draw(x->g, 6);
  bool pow = chance(x->g, 2), any = x->g->spread && draw(x->g, 2);
  if (pow && i > 2 && !any)
    a = tarn_fx_op(x->L, TARN_FX_MAX, a, tarn_fx_const(x->L, TARN_F32, 0.5), 0);
  double by = x->g->spread && draw(x->g, 2) ? some_magnitude(x->g) : divisor[i];
  tarn_term t = last(x), kid = tarn_scalar(x->L, TARN_F32, pow ? power[i] : by == 0 ? 3 : by);
  const tarn_type *y = type(x, t);
  int64_t one[TARN_MAX_DIMS];
  for (uint32_t d = 0; d < y->n; d++) one[d] = 1;
  kid = tarn_broadcast(x->L, y->n, y->n, y->dim, tarn_reshape_all(x->L, y->n, y->n, one, kid));
  uint32_t f = tarn_fx_op(x->L, pow ? TARN_FX_POW : TARN_FX_DIV, a, tarn_fx_hole(x->L, 1), 0);
  net_add(x, tarn_compute(x->L, tarn_fn_map(x->L, f, 2), (tarn_term[]){t, kid}, 2));
}
static void residual(net *x) { net_add(x, joined(x, last(x), map_of(x, TARN_FX_ADD))); }
static void scale_and_shift(net *x) {
  tarn_term t = last(x), kid[2] = {t, stretched(x, t)};
  t = tarn_compute(x->L, map_of(x, TARN_FX_MUL), kid, 2);
  kid[0] = t, kid[1] = stretched(x, t);
  net_add(x, tarn_compute(x->L, map_of(x, TARN_FX_ADD), kid, 2));
}

static tarn_term dot(net *x, tarn_term a, tarn_term b) {
  tarn_term c = tarn_cart(x->L, 0, a, b);
  return tarn_compute(x->L, tarn_fn_dot(x->L, TARN_F32), &c, 1);
}
static tarn_term product_of(net *x, tarn_term t) {
  const tarn_type *y = type(x, t);
  int64_t dim[2] = {some_extent(x->g, 3), y->dim[y->n - 1]};
  tarn_term w = chance(x->g, 4) ? tarn_access(x->L, 1, input(x, 2, dim)) : weights(x, 1, 2, dim);
  return dot(x, tarn_access(x->L, y->n - 1u, t), w);
}
static void product(net *x) {
  if (type(x, last(x))->n) net_add(x, product_of(x, last(x)));
}
/* Of even extents, no less than what the checker's machine asks for where halves of products are to
 * pay. */
static void even_product(net *x) {
  int64_t steps = 8 + 2 * draw(x->g, 2), rows[2] = {4 + 2 * draw(x->g, 2), steps},
          columns[2] = {8 + 2 * draw(x->g, 2), steps};
  tarn_term t = tarn_access(x->L, 1, input(x, 2, rows)), w = weights(x, 1, 2, columns);
  net_add(x, dot(x, t, w));
}
/* Several products of one value: for merging. */
static void products(net *x) {
  tarn_term t = last(x);
  if (type(x, t)->n == 0) return;
  for (int i = 0; i < 2; i++) net_add(x, product_of(x, t));
}

/* ((N,C,H,W)) with a kernel of up to 3 by 3: ((N,O,P,Q)). */
static void convolution(net *x) {
  tarn_term t = last(x);
  if (type(x, t)->n != 4) return;
  uint32_t zero = tarn_fx_const(x->L, TARN_F32, 0), pad = draw(x->g, 2);
  if (pad) t = tarn_pad(x->L, 2, zero, 1, 1, tarn_pad(x->L, 3, zero, 1, 1, t));
  const int64_t *d = type(x, t)->dim;
  int64_t k = 1 + (int64_t)draw(x->g, 3);
  if (k > d[2] || k > d[3]) k = 1;
  int64_t wd[4] = {some_extent(x->g, 4), d[1], k, k}, w[3] = {d[1], k, k}, s[3] = {1, 1, 1},
          one[3] = {1, 1, 1};
  s[1] = s[2] = chance(x->g, 3) ? 2 : 1;
  tarn_term win = tarn_squeeze(x->L, 1, tarn_windows(x->L, w, s, one, tarn_access(x->L, 1, t)));
  tarn_term y = dot(x, weights(x, 1, 4, wd), win);
  net_add(x, tarn_transpose(x->L, (uint32_t[]){1, 0, 2, 3}, y));
}

/* 3 by 3 without steps over enough rows and columns to be cut into tiles; the result is as often
 * used further as not. */
static void tiled_convolution(net *x) {
  tarn_lang *L = x->L;
  int64_t c = 2 + draw(x->g, 2), h = 3 + (int64_t)draw(x->g, 6), o = 1 + (int64_t)draw(x->g, 3);
  int64_t dim[4] = {1 + chance(x->g, 4), c, h, 3 + (int64_t)draw(x->g, 6)}, wd[4] = {o, c, 3, 3};
  uint32_t fill = tarn_fx_const(L, TARN_F32, chance(x->g, 4) ? 1 : 0), before = draw(x->g, 3),
           after = 1 + draw(x->g, 2);
  tarn_term t = tarn_pad(L, 2, fill, before, after, input(x, 4, dim));
  if (draw(x->g, 2)) t = tarn_pad(L, 3, fill, after, before, t);
  t = tarn_windows(L, (int64_t[]){c, 3, 3}, (int64_t[]){1, 1, 1}, (int64_t[]){1, 1, 1},
                   tarn_access(L, 1, t));
  t = dot(x, weights(x, 1, 4, wd), tarn_squeeze(L, 1, t));
  if (draw(x->g, 2)) t = tarn_transpose(L, (uint32_t[]){1, 0, 2, 3}, t);
  net_add(x, t);
  if (last(x) == t && draw(x->g, 2)) residual(x);
}

/* A reduction of the last axis, stretched back and joined with what was reduced: softmax and its
 * like. */
static void normalise(net *x) {
  tarn_term t = last(x);
  const tarn_type *y = type(x, t);
  if (y->n == 0) return;
  bool quotient = chance(x->g, 3); /* by what is well above 0 */
  uint32_t h = tarn_fx_hole(x->L, 0), half = tarn_fx_const(x->L, TARN_F32, 0.5);
  bool any = x->g->spread && draw(x->g, 2); /* then by anything */
  if (quotient && !any)
    h = tarn_fx_op(x->L, TARN_FX_ADD, tarn_fx_op(x->L, TARN_FX_ABS, h, 0, 0), half, 0);
  uint32_t fn = tarn_fn_reduce(
      x->L, h, 1, quotient ? tarn_reducer_of(x->L, TARN_RED_MAX, TARN_F32) : some_reducer(x->g));
  tarn_term a = tarn_access(x->L, y->n - 1u, t), r = tarn_compute(x->L, fn, &a, 1);
  if (chance(x->g, 3)) {
    net_add(x, r);
    return;
  }
  static const tarn_fxop op[] = {TARN_FX_SUB, TARN_FX_MUL, TARN_FX_ADD};
  tarn_term kid[2] = {
      t, tarn_broadcast(x->L, y->n, y->n, y->dim, tarn_insert_axis(x->L, y->n - 1u, r))};
  tarn_fxop how = op[draw(x->g, 3)];
  if (how == TARN_FX_SUB && y->dim[y->n - 1] == 1)
    how = TARN_FX_ADD; /* x - x leaves rounding alone */
  net_add(x, tarn_compute(x->L, map_of(x, quotient ? TARN_FX_DIV : how), kid, 2));
}

static tarn_term along_last(net *x, tarn_term t, tarn_red_kind red) {
  const tarn_type *y = type(x, t);
  tarn_term a = tarn_access(x->L, y->n - 1u, t);
  uint32_t fn =
      tarn_fn_reduce(x->L, tarn_fx_hole(x->L, 0), 1, tarn_reducer_of(x->L, red, TARN_F32));
  a = tarn_insert_axis(x->L, y->n - 1u, tarn_compute(x->L, fn, &a, 1));
  return tarn_broadcast(x->L, y->n, y->n, y->dim, a);
}
/* Softmax of a few rows over an axis that has halves, and sums weighted by it. */
static void weighted_sums(net *x) {
  tarn_lang *L = x->L;
  int64_t keys = (int64_t)4 << draw(x->g, 6), rows = 1 + (int64_t)draw(x->g, 2),
          own = 1 + (int64_t)draw(x->g, 2);
  tarn_term t = input(x, 2, (int64_t[]){rows, keys}), kid[2] = {t, t};
  if (draw(x->g, 2)) {
    kid[1] = input(x, 2, (int64_t[]){rows, keys});
    t = kid[0] = tarn_compute(L, map_of(x, TARN_FX_ADD), kid, 2);
  }
  kid[1] = along_last(x, t, TARN_RED_MAX);
  uint32_t f = tarn_fx_op(L, TARN_FX_SUB, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  kid[0] = tarn_compute(L, tarn_fn_map(L, tarn_fx_op(L, TARN_FX_EXP, f, 0, 0), 2), kid, 2);
  kid[1] = along_last(x, kid[0], TARN_RED_SUM);
  bool plain = x->g->spread && chance(x->g, 3); /* the sums as they are */
  t = plain ? kid[0] : tarn_compute(L, map_of(x, TARN_FX_DIV), kid, 2);
  t = dot(x, tarn_access(L, 1, t), tarn_access(L, 1, input(x, 2, (int64_t[]){own, keys})));
  net_add(x, t);
}

static void transposed(net *x) {
  const tarn_type *y = type(x, last(x));
  uint32_t p[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < y->n; i++) p[i] = i;
  for (uint32_t i = 0; i + 1 < y->n; i++) {
    uint32_t j = i + draw(x->g, y->n - i), s = p[i];
    p[i] = p[j], p[j] = s;
  }
  net_add(x, tarn_transpose(x->L, p, last(x)));
}
/* The same, as a map that only moves data. */
static void copied(net *x) {
  transposed(x);
  tarn_term t = last(x);
  net_add(x, tarn_compute(x->L, tarn_fn_map(x->L, tarn_fx_hole(x->L, 0), 1), &t, 1));
}
static void reshaped(net *x) {
  const tarn_type *y = type(x, last(x));
  int64_t dim[TARN_MAX_DIMS];
  if (y->n < 2) return;
  uint32_t at = draw(x->g, y->n - 1u), n = 0;
  for (uint32_t i = 0; i < y->n; i++)
    if (i == at + 1) dim[n - 1] *= y->dim[i];
    else dim[n++] = y->dim[i];
  net_add(x, tarn_reshape(x->L, n, n, dim, last(x)));
}
static void sliced(net *x) {
  const tarn_type *y = type(x, last(x));
  if (y->n == 0) return;
  uint32_t axis = draw(x->g, y->n);
  int64_t l = draw(x->g, (uint32_t)y->dim[axis]),
          h = l + 1 + draw(x->g, (uint32_t)(y->dim[axis] - l));
  net_add(x, tarn_slice(x->L, axis, l, h, 1, last(x)));
}
static void padded(net *x) {
  const tarn_type *y = type(x, last(x));
  if (y->n)
    net_add(x, tarn_pad(x->L, draw(x->g, y->n), tarn_fx_const(x->L, TARN_F32, 0), draw(x->g, 2),
                        1 + draw(x->g, 2), last(x)));
}
static void concatenated(net *x) {
  tarn_term t = last(x), kid[2] = {t, joined(x, t, map_of(x, TARN_FX_ADD))};
  if (type(x, t)->n) net_add(x, tarn_concat(x->L, draw(x->g, type(x, t)->n), kid, 2));
}

/* Two or three products of shifted slices, summed: a convolution by hand. */
static void sum_of_shifts(net *x) {
  tarn_term t = last(x);
  const tarn_type *y = type(x, t);
  uint32_t taps = 2 + draw(x->g, 2);
  if (y->n != 2 || y->dim[0] <= (int64_t)taps) return;
  int64_t len = y->dim[0] - (int64_t)taps + 1, dim[2] = {some_extent(x->g, 3), y->dim[1]};
  tarn_term sum = TARN_NONE;
  for (uint32_t i = 0; i < taps; i++) {
    tarn_term p = dot(x, tarn_access(x->L, 1, tarn_slice(x->L, 0, i, i + len, 1, t)),
                      weights(x, 1, 2, dim)),
              kid[2] = {sum, p};
    if (i && chance(x->g, 3)) { /* sums on both sides */
      tarn_term more[2] = {p, dot(x, tarn_access(x->L, 1, tarn_slice(x->L, 0, 0, len, 1, t)),
                                  weights(x, 1, 2, dim))};
      kid[1] = tarn_compute(x->L, map_of(x, TARN_FX_ADD), more, 2);
    }
    sum = i ? tarn_compute(x->L, map_of(x, TARN_FX_ADD), kid, 2) : p;
  }
  net_add(x, sum);
}

/* A row spread out with zeros between its elements, then a product over windows: a transposed
 * convolution. */
static void spread(net *x) {
  tarn_term t = last(x);
  const tarn_type *y = type(x, t);
  if (y->n != 2 || y->dim[1] < 2) return;
  uint32_t zero = tarn_fx_const(x->L, TARN_F32, 0);
  int64_t n = y->dim[0], len = y->dim[1], k = 2 + (int64_t)draw(x->g, 2), wide = 2 * len,
          wd[2] = {some_extent(x->g, 3), k};
  t = tarn_reshape(x->L, 2, 2, (int64_t[]){n, wide},
                   tarn_pad(x->L, 2, zero, 0, 1, tarn_insert_axis(x->L, 2, t)));
  t = tarn_windows(x->L, (int64_t[]){k}, (int64_t[]){1}, (int64_t[]){1},
                   tarn_access(x->L, 1, tarn_pad(x->L, 1, zero, k - 1, k - 1, t)));
  net_add(x, dot(x, weights(x, 1, 2, wd), t));
}

/* Sums, products and quotients with constants, one after the other, of what is there or of a
 * product of integers, whose quotients round. */
static void chained(net *x) {
  tarn_lang *L = x->L;
  bool real = draw(x->g, 2);
  tarn_term t = last(x);
  if (!real) {
    const int64_t k = 1 + (int64_t)draw(x->g, 4), dim[2] = {1 + (int64_t)draw(x->g, 3), k};
    tarn_tensor *w = tarn_tensor_new(x->g->cx, TARN_I32, 2, dim);
    for (int64_t i = 0; i < tarn_tensor_count(w); i++)
      tarn_tensor_set(w, i, (tarn_value){.i = (int64_t)draw(x->g, 19) - 9});
    t = tarn_input(L, tarn_format(x->g->cx, "x%u", x->nin++),
                   tarn_type_tensor(L, TARN_I32, 2, 2, (const int64_t[]){2, k}));
    t = tarn_cart(L, 0, tarn_access(L, 1, t),
                  tarn_constant(L, tarn_format(x->g->cx, "w%u", tarn_term_count(L)), w, 1));
    t = tarn_compute(L, tarn_fn_dot(L, TARN_I32), &t, 1);
  }
  static const tarn_fxop op[] = {TARN_FX_ADD, TARN_FX_SUB, TARN_FX_MUL, TARN_FX_DIV};
  bool spread = x->g->spread && draw(x->g, 2);
  for (uint32_t steps = 2 + draw(x->g, 3); steps-- > 0;) {
    const tarn_type *y = type(x, t);
    int64_t one[TARN_MAX_DIMS];
    uint32_t axis = y->n ? draw(x->g, y->n) : 0, a = tarn_fx_hole(L, 0), b = tarn_fx_hole(L, 1),
             how = draw(x->g, 4);
    for (uint32_t i = 0; i < y->n; i++) one[i] = i == axis ? y->dim[i] : 1;
    tarn_tensor *c = tarn_tensor_new(x->g->cx, real ? TARN_F32 : TARN_I32, y->n, one);
    for (int64_t i = 0; i < tarn_tensor_count(c); i++)
      if (real && spread)
        tarn_tensor_set(c, i,
                        (tarn_value){.d = chance(x->g, 24) ? -INFINITY : some_magnitude(x->g)});
      else if (real) tarn_tensor_set(c, i, (tarn_value){.d = (double)(8 + draw(x->g, 32)) / 16});
      else tarn_tensor_set(c, i, (tarn_value){.i = 1 + (int64_t)draw(x->g, 7)});
    tarn_term kid[2] = {
        t, tarn_constant(L, tarn_format(x->g->cx, "k%u", tarn_term_count(L)), c, y->n)};
    kid[1] = tarn_broadcast(L, y->n, y->n, y->dim, kid[1]);
    uint32_t f = how < 3 && chance(x->g, 3) ? tarn_fx_op(L, op[how], b, a, 0)
                                            : tarn_fx_op(L, op[how], a, b, 0);
    t = tarn_compute(L, tarn_fn_map(L, f, 2), kid, 2);
  }
  if (!real)
    t = tarn_compute(L, tarn_fn_map(L, tarn_fx_cast(L, TARN_F32, tarn_fx_hole(L, 0)), 1), &t, 1);
  net_add(x, t);
}

/* A map, a map of two, a sum or a product of 16-bit floats, which round what they give. Weights are
 * numbers of these. */
static void sixteen_bits(net *x) {
  tarn_lang *L = x->L;
  tarn_dtype h = draw(x->g, 2) ? TARN_F16 : TARN_BF16, was = x->g->dtype;
  tarn_term t = net_cast(x, h, last(x)), kid[2] = {t, net_cast(x, h, row(x, t))};
  const tarn_type *y = type(x, t);
  kid[1] = tarn_broadcast(L, y->n, y->n, y->dim, kid[1]);
  uint32_t how = draw(x->g, 4);
  int64_t dim[2] = {some_extent(x->g, 3), y->n ? y->dim[y->n - 1] : 1};
  x->g->dtype = h; /* of what is drawn */
  if (how > 1 && y->n) kid[0] = tarn_access(L, y->n - 1u, t);
  if (how == 3 && y->n) {
    kid[1] = tarn_access(
        L, 1, net_cast(x, h, chance(x->g, 2) ? input(x, 2, dim) : weights(x, 2, 2, dim)));
    kid[0] = tarn_cart(L, 0, kid[0], kid[1]);
    t = tarn_compute(L, tarn_fn_dot(L, h), kid, 1);
  } else
    t = tarn_compute(L, some_function(x->g, how == 1 ? 2 : 1, 0, how > 1 && y->n, 0), kid,
                     how == 1 ? 2 : 1);
  x->g->dtype = was;
  net_add(x, net_cast(x, TARN_F32, t));
}

/* What a mask adds: b + (1 - m) c, with c that leaves nothing else, or nothing to speak of; m as
 * integers now and then. */
static void masked(net *x) {
  tarn_lang *L = x->L;
  static const double least[] = {-1e4, -3.4028234663852886e38, -1e9, -INFINITY, 2, -0.5};
  tarn_term b = last(x);
  const tarn_type *y = type(x, b);
  bool whole = draw(x->g, 2);
  uint32_t m = tarn_fx_hole(L, 1), one = tarn_fx_const(L, TARN_F32, 1);
  double c = least[draw(x->g, x->g->spread ? 6 : 2) + (x->g->spread ? 0 : 4)];
  const char *name = tarn_format(x->g->cx, "m%u", x->nin++);
  tarn_term kid[2] = {
      b,
      tarn_input(L, name, tarn_type_tensor(L, whole ? TARN_I32 : TARN_F32, y->ns, y->n, y->dim))};
  if (whole) m = tarn_fx_cast(L, TARN_F32, m);
  m = tarn_fx_op(L, TARN_FX_SUB, one, m, 0);
  m = tarn_fx_op(L, TARN_FX_MUL, m, tarn_fx_const(L, TARN_F32, c), 0);
  m = tarn_fx_op(L, TARN_FX_ADD, tarn_fx_hole(L, 0), m, 0);
  net_add(x, tarn_compute(L, tarn_fn_map(L, m, 2), kid, 2));
}

/* Rows of a table that constant indices name, summed; its first result dims are those of the
 * indices but the last. */
static tarn_term rows_of(net *x, tarn_term table, const int64_t dim[2]) {
  tarn_lang *L = x->L;
  tarn_tensor *index = tarn_tensor_new(x->g->cx, TARN_I64, 2, dim);
  for (int64_t i = 0; i < tarn_tensor_count(index); i++)
    tarn_tensor_set(index, i, (tarn_value){.i = draw(x->g, (uint32_t)type(x, table)->dim[0])});
  tarn_term kid[2] = {table,
                      tarn_constant(L, tarn_format(x->g->cx, "i%u", tarn_term_count(L)), index, 2)};
  const tarn_type *y = type(x, table);
  uint32_t at[TARN_MAX_DIMS + 1] = {0}, n = y->n + 1u;
  tarn_term g = tarn_mk(L, TARN_OP_GATHER, tarn_payload_ints(L, 1, &(int64_t){0}), kid, 2);
  for (uint32_t i = 1; i < n; i++) at[i] = i + 1 < n ? i + 1 : 1;
  g = tarn_access(L, n - 1, tarn_transpose(L, at, tarn_access(L, n, g)));
  uint32_t sum = tarn_reducer_of(L, TARN_RED_SUM, y->dtype);
  return tarn_compute(L, tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, sum), &g, 1);
}
/* Of one table, or of two, with their sum. */
static void row_sums(net *x) {
  tarn_term t = last(x), kid[2];
  const tarn_type y = *type(x, t);
  int64_t dim[2] = {some_extent(x->g, 3), some_extent(x->g, 3)}, other[TARN_MAX_DIMS];
  if (!y.n || y.dim[0] < 1) return;
  kid[0] = rows_of(x, t, dim);
  net_add(x, kid[0]);
  if (draw(x->g, 2)) return;
  memcpy(other, y.dim, sizeof other);
  other[0] = some_extent(x->g, y.n);
  kid[1] = rows_of(x, chance(x->g, 2) ? input(x, y.n, other) : weights(x, y.n, y.n, other), dim);
  net_add(x, tarn_compute(x->L, map_of(x, TARN_FX_ADD), kid, 2));
}

typedef void block(net *x);
static block *const blocks[] = {map_one,       map_two,           scale_and_shift, product,
                                convolution,   normalise,         map_one,         residual,
                                transposed,    reshaped,          sliced,          padded,
                                concatenated,  sum_of_shifts,     products,        spread,
                                copied,        products,          sum_of_shifts,   product,
                                with_number,   tiled_convolution, net_quantised,   net_quantised,
                                weighted_sums, weighted_sums,     chained,         net_requantised,
                                sixteen_bits,  sixteen_bits,      masked};

tarn_program *check_network(gen *g) {
  net x = {.g = g, .L = g->L};
  int64_t dim[4];
  uint32_t n = 2 + 2 * draw(g, 2), many = 2 + draw(g, 4);
  for (uint32_t i = 0; i < n; i++) dim[i] = some_extent(g, n);
  net_add(&x, input(&x, n, dim));
  for (uint32_t i = 0; i < many; i++) blocks[draw(g, sizeof blocks / sizeof *blocks)](&x);
  if (chance(g, 12)) even_product(&x);
  tarn_program *p = TARN_NEW(g->cx, tarn_program);
  *p = (tarn_program){.L = g->L, .nout = x.n > 2 && chance(g, 3) ? 2 : 1};
  /* beside the others; not where sums may change their order, which is told where floor jumps */
  static block *const of_integers[] = {net_shifted, net_pooled, net_grouped};
  if (!g->spread && chance(g, 2)) of_integers[draw(g, 3)](&x), p->nout++;
  if (p->nout < 3 && chance(g, 4)) row_sums(&x), p->nout++;
  if (p->nout > x.n) p->nout = x.n;
  p->out = TARN_ARRAY(g->cx, tarn_io, 3);
  for (uint32_t i = 0; i < p->nout; i++) {
    tarn_term t = x.pool[x.n - 1 - i];
    p->out[i] = (tarn_io){tarn_format(g->cx, "y%u", i), t, tarn_term_get(g->L, t)->type};
  }
  return p;
}
