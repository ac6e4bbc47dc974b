/* Reductions, arg-extremes and cumulative sums. */
#include "model/import.h"
#include <math.h>
#include <string.h>

/* What is reduced, how, and what is done to the result ($0; $1 for the count). */
static const struct row {
  const char *op, *before;
  tarn_red_kind kind;
  const char *after;
} rows[] = {
    {"ReduceL1", "(abs $0)", TARN_RED_SUM, NULL},
    {"ReduceL2", "(mul $0 $0)", TARN_RED_SUM, "(sqrt $0)"},
    {"ReduceLogSum", "$0", TARN_RED_SUM, "(log $0)"},
    {"ReduceMax", "$0", TARN_RED_MAX, NULL},
    {"ReduceMin", "$0", TARN_RED_MIN, NULL},
    {"ReduceProd", "$0", TARN_RED_PROD, NULL},
    {"ReduceSum", "$0", TARN_RED_SUM, NULL},
    {"ReduceSumSquare", "(mul $0 $0)", TARN_RED_SUM, NULL},
};

/* The axes: an attribute, or (as of 13 for ReduceSum, 18 for the others) an input. False: nothing
 * is reduced. */
static bool read_axes(im_node *n, uint32_t rank, uint32_t *mask) {
  uint32_t k;
  const int64_t *axes = im_attr_ints(n, "axes", &k);
  if (im_opt(n, 1) != TARN_NONE) axes = im_ints(n, 1, "axes", &k);
  bool nothing = im_attr_int(n, "noop_with_empty_axes", 0);
  *mask = 0;
  for (uint32_t i = 0; i < k; i++) *mask |= 1u << im_axis(n, axes[i], rank);
  if (k == 0) *mask = (1u << rank) - 1;
  return k != 0 || !nothing;
}

/* log(sum(exp(x))), with the maximum taken out so that exp does not overflow. An infinite maximum
 * is the result: the differences to it would be NaN. */
static tarn_term log_sum_exp(im_node *n, tarn_term x, uint32_t mask, bool keep) {
  tarn_term most = im_reduce(n, x, mask, TARN_NONE, TARN_RED_MAX, true);
  tarn_term e = im_el(n, "(exp (sub $0 $1))", 2, x, most);
  tarn_term sum = im_reduce(n, e, mask, TARN_NONE, TARN_RED_SUM, true);
  tarn_term r = im_el(n, "(select (isinf $1) $1 (add $1 (log $0)))", 2, sum, most);
  if (keep) return r;
  im_dims d = im_shape(n, r);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < d.n; i++)
    if (!(mask >> i & 1)) d.d[kept++] = d.d[i];
  return im_reshape(n, r, kept, d.d);
}

static const struct row *row_of(const im_node *n) {
  const struct row *r = rows;
  while (strcmp(r->op, n->op) != 0) r++;
  return r;
}

static bool is_mean(const im_node *n) { return strcmp(n->op, "ReduceMean") == 0; }
static bool is_log_sum_exp(const im_node *n) { return strcmp(n->op, "ReduceLogSumExp") == 0; }

/* Over no axes: what is done to each element before and after remains. */
static tarn_term by_element(im_node *n, tarn_term x) {
  if (is_mean(n) || is_log_sum_exp(n)) return x;
  const struct row *r = row_of(n);
  if (strcmp(r->before, "$0") != 0) x = im_el(n, r->before, 1, x);
  return r->after ? im_el(n, r->after, 1, x) : x;
}

static tarn_term by_row(im_node *n, tarn_term x, uint32_t mask, bool keep) {
  if (is_mean(n)) return im_mean(n, x, mask, keep);
  if (is_log_sum_exp(n)) return log_sum_exp(n, x, mask, keep);
  const struct row *r = row_of(n);
  x = im_reduce(n, x, mask, im_formula(n, r->before, im_type(n, x), NULL, 0), r->kind, keep);
  return r->after ? im_el(n, r->after, 1, x) : x;
}

/* Roots and logarithms of integers are taken in f64, and cut off. */
static bool in_reals(im_node *n, tarn_dtype t) {
  if (tarn_dtype_is_float(t)) return false;
  return is_log_sum_exp(n) || (!is_mean(n) && row_of(n)->after);
}

void im_do_reduce(im_node *n) {
  tarn_term x = im_arg(n, 0);
  uint32_t mask, rank = im_shape(n, x).n;
  bool keep = im_attr_int(n, "keepdims", 1), some = read_axes(n, rank, &mask);
  tarn_dtype t = im_type(n, x);
  if (in_reals(n, t)) x = im_cast(n, x, TARN_F64);
  x = some ? by_row(n, x, mask, keep) : by_element(n, x);
  im_set(n, 0, im_cast(n, x, t));
}

/* ---------------------------------------------------------------- argmax, argmin */

/* Is element $2 better than the best so far, $0? The later of equals is only when asked. As in
 * numpy a NaN is better than any number, and all NaNs are equals. */
static const char *better_of(tarn_dtype t, bool max, bool last) {
  bool real = tarn_dtype_is_float(t);
  if (last && real) return max ? "(or (ge $2 $0) (isnan $2))" : "(or (le $2 $0) (isnan $2))";
  if (last) return max ? "(ge $2 $0)" : "(le $2 $0)";
  if (real) return max ? "(and (not (le $2 $0)) (eq $0 $0))" : "(and (not (ge $2 $0)) (eq $0 $0))";
  return max ? "(gt $2 $0)" : "(lt $2 $0)";
}
/* Is the second of two states better? They may be of any two parts of the axis. */
static const char *better_state(im_node *n, tarn_dtype t, bool max, bool last) {
  const char *equal = "(eq $2 $0)", *before = last ? "gt" : "lt";
  if (tarn_dtype_is_float(t)) equal = "(or (eq $2 $0) (and (isnan $2) (isnan $0)))";
  return tarn_format(n->cx, "(and (ge $3 0) (or (lt $1 0) (or %s (and %s (%s $3 $1)))))",
                     better_of(t, max, false), equal, before);
}

/* State: best element, its index (-1: none yet). */
static uint32_t extreme_reducer(im_node *n, tarn_dtype t, bool max, bool last) {
  tarn_reducer r = {.kind = TARN_RED_CUSTOM, .dtype = t, .ns = 2, .commutative = true};
  uint32_t id = tarn_reducer_of(n->L, max ? TARN_RED_MAX : TARN_RED_MIN, t);
  r.init[0] = tarn_reducer_identity(n->L, id);
  r.init[1] = tarn_fx_iconst(n->L, TARN_I64, -1);
  const char *step = tarn_format(n->cx, "(or %s (lt $1 0))", better_of(t, max, last));
  uint32_t take[2] = {im_formula(n, step, TARN_I64, NULL, 0),
                      im_formula(n, better_state(n, t, max, last), TARN_I64, NULL, 0)};
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t new = tarn_fx_hole(n->L, i + 2), old = tarn_fx_hole(n->L, i);
    r.step[i] = tarn_fx_op(n->L, TARN_FX_SEL, take[0], new, old);
    r.merge[i] = tarn_fx_op(n->L, TARN_FX_SEL, take[1], new, old);
  }
  r.result = tarn_fx_hole(n->L, 1);
  return tarn_reducer_intern(n->L, &r);
}

tarn_term im_arg_extreme(im_node *n, tarn_term x, uint32_t mask, bool max, bool last, bool keep) {
  uint32_t red = extreme_reducer(n, im_type(n, x), max, last);
  return im_reduce_with(n, x, mask, tarn_fn_reduce(n->L, tarn_fx_hole(n->L, 0), 1, red), keep);
}

void im_do_arg_extreme(im_node *n) {
  tarn_term x = im_arg(n, 0);
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", 0), im_shape(n, x).n);
  bool keep = im_attr_int(n, "keepdims", 1), last = im_attr_int(n, "select_last_index", 0);
  if (im_shape(n, x).d[axis] == 0) im_bad(n, "the axis is empty");
  im_set(n, 0, im_arg_extreme(n, x, 1u << axis, strcmp(n->op, "ArgMax") == 0, last, keep));
}

/* ---------------------------------------------------------------- cumulative sum and product */

/* Each element is the sum of the window that ends there, over the input with zeros before it; or
 * the product, with ones. */
static tarn_term cumulated(im_node *n, uint32_t axis) {
  bool product = strcmp(n->op, "CumProd") == 0;
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  uint32_t last[TARN_MAX_DIMS], back[TARN_MAX_DIMS], m = 0;
  int64_t len = d.d[axis], one = 1;
  bool exclusive = im_attr_int(n, "exclusive", 0), reverse = im_attr_int(n, "reverse", 0);
  if (len == 0) return x;
  for (uint32_t i = 0; i < d.n; i++)
    if (i != axis) last[m++] = i;
  last[m] = axis;
  for (uint32_t i = 0; i < d.n; i++) back[last[i]] = i;
  if (reverse) x = im_cut(n, x, axis, len - 1, -1, -1);
  x = im_pad(n, x, axis, product, exclusive ? len : len - 1, exclusive ? -1 : 0);
  tarn_term w =
      tarn_windows(n->L, &len, &one, &one, tarn_access(n->L, d.n - 1, im_permute(n, x, last)));
  uint32_t red = tarn_reducer_of(n->L, product ? TARN_RED_PROD : TARN_RED_SUM, im_type(n, x));
  w = tarn_compute(n->L, tarn_fn_reduce(n->L, tarn_fx_hole(n->L, 0), 1, red), &w, 1);
  w = im_permute(n, w, back);
  return reverse ? im_cut(n, w, axis, len - 1, -1, -1) : w;
}

void im_do_cumulate(im_node *n) {
  uint32_t rank = im_shape(n, im_arg(n, 0)).n;
  tarn_term axis = im_arg(n, 1);
  im_set(n, 0,
         im_is_known(n, 1) ? cumulated(n, im_axis(n, im_int(n, 1, "axis"), rank))
                           : im_by_axis(n, axis, rank, cumulated));
}
