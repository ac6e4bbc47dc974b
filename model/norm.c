/* Normalisations and softmax, as elementwise maps and reductions: fusing
 * and folding them is the rules' work. */
#include "model/import.h"
#include <string.h>

static const char normalised[] = "(add (mul (div (sub $0 $1) (sqrt (add $2 eps))) $3) $4)";

static uint32_t axes_from(uint32_t first, uint32_t rank) {
  return ((1u << rank) - 1) & ~((1u << first) - 1);
}

/* Mean and (biased) variance over the axes of mask, with extents 1 kept. */
static void moments(im_node *n, tarn_term x, uint32_t mask, tarn_term *mean, tarn_term *variance) {
  *mean = im_mean(n, x, mask, true);
  tarn_term d = im_el(n, "(sub $0 $1)", 2, x, *mean);
  *variance = im_mean(n, im_el(n, "(mul $0 $0)", 1, d), mask, true);
}

static tarn_term flat(im_node *n, tarn_term t) {
  im_dims d = im_shape(n, t);
  int64_t count = im_count(&d);
  return im_reshape(n, t, 1, &count);
}

static void training_outputs(im_node *n, tarn_term mean, tarn_term var) {
  im_param p[] = {{"m", im_attr_real(n, "momentum", 0.9f), 0}};
  static const char blend[] = "(add (mul $0 m) (mul $1 (sub 1 m)))";
  im_set_as(n, 1, im_elp(n, blend, p, 1, 2, im_arg(n, 3), flat(n, mean)), n->given[3]);
  im_set_as(n, 2, im_elp(n, blend, p, 1, 2, im_arg(n, 4), flat(n, var)), n->given[4]);
}

/* A list counts as one channel: (N,1). */
void im_do_batch_norm(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x), given = d;
  if (d.n == 1) {
    d.d[d.n++] = 1;
    x = im_reshape(n, x, d.n, d.d);
  }
  im_param eps = {"eps", im_attr_real(n, "epsilon", 1e-5f), 0};
  bool training = im_attr_int(n, "training_mode", 0);
  im_attr_ignore(n, "momentum");
  if (n->version < 9 && im_attr_int(n, "spatial", 1) != 1)
    im_bad(n, "spatial = 0 is not supported");
  if (d.n < 2) im_bad(n, "the input is a scalar");
  tarn_term scale = im_channel(n, im_arg(n, 1), d.n), bias = im_channel(n, im_arg(n, 2), d.n);
  tarn_term mean = im_channel(n, im_arg(n, 3), d.n), var = im_channel(n, im_arg(n, 4), d.n);
  if (training) {
    moments(n, x, axes_from(0, d.n) & ~2u, &mean, &var);
    training_outputs(n, mean, var);
  }
  tarn_term y = im_elp(n, normalised, &eps, 1, 5, x, mean, var, scale, bias);
  if (im_shape(n, y).d[1] != d.d[1]) im_bad(n, "the parameters do not have one entry per channel");
  im_set(n, 0, im_reshape(n, y, given.n, given.d));
}

/* x (N,G,…) normalised over all but the first two axes, scale and bias of shape `per`, then back.
 */
static tarn_term by_group(im_node *n, tarn_term x, int64_t group, double epsilon) {
  im_dims d = im_shape(n, x);
  if (d.n < 2 || group < 1 || d.d[1] % group)
    im_bad(n, "%u dims, group %lld", d.n, (long long)group);
  int64_t rest = d.d[0] && group ? im_count(&d) / (d.d[0] * group) : 0;
  int64_t split[] = {d.d[0], group, rest};
  tarn_term g = im_reshape(n, x, 3, split), mean, var;
  moments(n, g, 4, &mean, &var);
  im_param eps = {"eps", epsilon, 0};
  g = im_elp(n, "(div (sub $0 $1) (sqrt (add $2 eps)))", &eps, 1, 3, g, mean, var);
  return im_reshape(n, g, d.n, d.d);
}

void im_do_instance_norm(im_node *n) {
  tarn_term x = im_arg(n, 0), mean, var;
  im_dims d = im_shape(n, x);
  im_param eps = {"eps", im_attr_real(n, "epsilon", 1e-5f), 0};
  if (d.n < 2) im_bad(n, "the input has %u dims, at least 2 are needed", d.n);
  moments(n, x, axes_from(2, d.n), &mean, &var);
  tarn_term scale = im_channel(n, im_arg(n, 1), d.n), bias = im_channel(n, im_arg(n, 2), d.n);
  im_set(n, 0, im_elp(n, normalised, &eps, 1, 5, x, mean, var, scale, bias));
}

/* Before operator set 21 scale and bias have one entry per group, since then one per channel. */
static tarn_term per_channel(im_node *n, uint32_t i, const im_dims *x, int64_t group) {
  tarn_term t = im_arg(n, i);
  im_dims d = im_shape(n, t);
  if (d.n == 1 && d.d[0] == group && n->version < 21) {
    im_dims wide = {2, {group, x->d[1] / group}};
    int64_t column[] = {group, 1};
    t = flat(n, im_broadcast(n, im_reshape(n, t, 2, column), &wide));
  }
  return im_channel(n, t, x->n);
}

/* ONNX's stash_type: what mean, variance and the normalised values are computed in. f64 stays f64.
 */
static tarn_dtype stash_type(im_node *n) {
  tarn_dtype t;
  int64_t code = im_attr_int(n, "stash_type", 1);
  if (code < 0 || code > 100 || !im_dtype((int32_t)code, &t) || !tarn_dtype_is_float(t))
    im_bad(n, "stash_type %lld is not a float type that is supported", (long long)code);
  return t;
}
static tarn_term stashed(im_node *n, tarn_term x) {
  tarn_dtype t = stash_type(n);
  return im_type(n, x) == TARN_F64 ? x : im_cast(n, x, t);
}

/* A formula in type `from` whose value is wanted in another one. */
static const char *in_type(im_node *n, const char *text, tarn_dtype from, tarn_dtype to) {
  return from == to ? text : tarn_format(n->cx, "(cast %s %s)", tarn_dtype_name(to), text);
}

void im_do_group_norm(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  int64_t group = im_attr_int(n, "num_groups", 0);
  tarn_term y = by_group(n, stashed(n, x), group, im_attr_real(n, "epsilon", 1e-5f));
  y = im_cast(n, y, im_type(n, x));
  im_set(n, 0,
         im_el(n, "(add (mul $0 $1) $2)", 3, y, per_channel(n, 1, &d, group),
               per_channel(n, 2, &d, group)));
}

/* What norms over the last axes have in common. */
typedef struct last_axes {
  tarn_dtype type; /* of the input */
  uint32_t mask;
  im_param eps;
  tarn_term mean, inverse; /* what it found */
} last_axes;

static last_axes over_last(im_node *n, tarn_term x, double epsilon) {
  uint32_t rank = im_shape(n, x).n;
  uint32_t mask = axes_from(im_axis(n, im_attr_int(n, "axis", -1), rank), rank);
  im_param eps = {"eps", im_attr_real(n, "epsilon", epsilon), 0};
  return (last_axes){im_type(n, x), mask, eps, TARN_NONE, TARN_NONE};
}

static tarn_term layer_norm(im_node *n, last_axes *a, tarn_term x, tarn_term scale,
                            tarn_term bias) {
  tarn_term var;
  x = stashed(n, x);
  moments(n, x, a->mask, &a->mean, &var);
  a->inverse = im_elp(n, "(div 1 (sqrt (add $0 eps)))", &a->eps, 1, 1, var);
  const char *first = in_type(n, "(mul (sub $0 $1) $2)", im_type(n, x), a->type);
  tarn_term y =
      im_el(n, tarn_format(n->cx, "(mul %s $3)", first), 4, x, a->mean, a->inverse, scale);
  return bias == TARN_NONE ? y : im_el(n, "(add $0 $1)", 2, y, bias);
}

static tarn_term rms_norm(im_node *n, last_axes *a, tarn_term x, tarn_term scale) {
  x = stashed(n, x);
  tarn_term square = im_mean(n, im_el(n, "(mul $0 $0)", 1, x), a->mask, true);
  a->inverse = im_elp(n, "(div 1 (sqrt (add $0 eps)))", &a->eps, 1, 1, square);
  const char *first = in_type(n, "(mul $0 $1)", im_type(n, x), a->type);
  return im_el(n, tarn_format(n->cx, "(mul %s $2)", first), 3, x, a->inverse, scale);
}

tarn_term im_rms_norm(im_node *n, tarn_term x, uint32_t axes, double epsilon, tarn_term scale) {
  last_axes a = {.type = im_type(n, x), .mask = axes, .eps = {"eps", epsilon, 0}};
  return rms_norm(n, &a, x, scale);
}

void im_do_layer_norm(im_node *n) {
  tarn_term x = im_arg(n, 0);
  last_axes a = over_last(n, x, 1e-5f);
  im_set(n, 0, layer_norm(n, &a, x, im_arg(n, 1), im_opt(n, 2)));
  im_set_as(n, 1, a.mean, stash_type(n));
  im_set_as(n, 2, a.inverse, stash_type(n));
}

void im_do_rms_norm(im_node *n) {
  tarn_term x = im_arg(n, 0);
  last_axes a = over_last(n, x, 1e-5f);
  im_set(n, 0, rms_norm(n, &a, x, im_arg(n, 1)));
  im_set_as(n, 1, a.inverse, stash_type(n));
}

/* The input, what skipped a layer, and a bias, added. */
static tarn_term skipped(im_node *n, uint32_t bias) {
  tarn_term x = im_el(n, "(add $0 $1)", 2, im_arg(n, 0), im_arg(n, 1));
  if (im_opt(n, bias) != TARN_NONE) x = im_el(n, "(add $0 $1)", 2, x, im_arg(n, bias));
  im_set(n, 3, x);
  return x;
}

void im_do_skip_layer_norm(im_node *n) {
  tarn_term x = skipped(n, 4);
  last_axes a = over_last(n, x, 1e-12f);
  im_set(n, 0, layer_norm(n, &a, x, im_arg(n, 2), im_opt(n, 3)));
  im_set_as(n, 1, a.mean, stash_type(n));
  im_set_as(n, 2, a.inverse, stash_type(n));
}

/* Rows of three tables, added; the second output counts a mask's ones. */
void im_do_embed_layer_norm(im_node *n) {
  tarn_term id = im_arg(n, 0), segment = im_opt(n, 1), mask = im_opt(n, 7), at = im_opt(n, 8);
  im_dims d = im_shape(n, id);
  if (d.n != 2) im_bad(n, "the indices have %u dims, 2 are needed", d.n);
  tarn_term place = at != TARN_NONE ? im_rows(n, im_arg(n, 3), at)
                                    : im_gather(n, im_arg(n, 3), 0, im_iota(n, TARN_I64, d.d[1]));
  tarn_term x = im_el(n, "(add $0 $1)", 2, im_rows(n, im_arg(n, 2), id), place);
  if (segment != TARN_NONE) x = im_el(n, "(add $0 $1)", 2, x, im_rows(n, im_arg(n, 4), segment));
  last_axes a = over_last(n, x, 1e-12f);
  im_set(n, 0, layer_norm(n, &a, x, im_arg(n, 5), im_arg(n, 6)));
  im_attr_ignore(n, "mask_index_type");
  im_set(n, 1,
         mask == TARN_NONE ? im_fill(n, im_scalar(n, TARN_I32, 0, 0), 1, d.d)
                           : im_reduce(n, mask, 2, TARN_NONE, TARN_RED_SUM, false));
  im_set(n, 2, x);
}

void im_do_skip_rms_norm(im_node *n) {
  tarn_term x = skipped(n, 3);
  last_axes a = over_last(n, x, 1e-12f);
  im_set(n, 0, rms_norm(n, &a, x, im_arg(n, 2)));
  im_set_as(n, 1, im_el(n, "(mul 0 $0)", 1, a.inverse), stash_type(n)); /* no mean is taken away */
  im_set_as(n, 2, a.inverse, stash_type(n));
}

void im_do_lp_norm(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  uint32_t mask = 1u << im_axis(n, im_attr_int(n, "axis", -1), d.n);
  int64_t p = im_attr_int(n, "p", 2);
  if (p != 1 && p != 2) im_bad(n, "p = %lld is neither 1 nor 2", (long long)p);
  uint32_t body = im_formula(n, p == 1 ? "(abs $0)" : "(mul $0 $0)", im_type(n, x), NULL, 0);
  tarn_term s = im_reduce(n, x, mask, body, TARN_RED_SUM, true);
  if (p == 2) s = im_el(n, "(sqrt $0)", 1, s);
  im_set(
      n, 0,
      im_el(n, "(select (eq $1 0) 0 (div $0 $1))", 2, x, s)); /* nothing but zeros stays as it is */
}

/* Sum of squares over a window of channels. Source: Krizhevsky et al., NIPS 2012, section 3.3, with
 * ONNX's alpha/size. */
void im_do_lrn(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  int64_t size = im_attr_int(n, "size", 0), one = 1;
  if (d.n < 2 || size < 1 || size > INT32_MAX)
    im_bad(n, "%u dims, size %lld", d.n, (long long)size);
  im_param p[] = {{"alpha", im_attr_real(n, "alpha", 1e-4f) / (double)size, 0},
                  {"beta", im_attr_real(n, "beta", 0.75), 0},
                  {"bias", im_attr_real(n, "bias", 1), 0}};
  uint32_t last[TARN_MAX_DIMS] = {0}, back[TARN_MAX_DIMS] = {0}, k = 1;
  for (uint32_t i = 2; i < d.n; i++) last[k++] = i;
  last[k] = 1; /* channels last, as the compute dim */
  for (uint32_t i = 0; i < d.n; i++) back[last[i]] = i;
  if (d.d[1] == 0) {
    im_set(n, 0, x);
    return;
  }
  tarn_term t = im_pad(n, x, 1, 0, (size - 1) / 2, size - 1 - (size - 1) / 2);
  t = tarn_windows(n->L, &size, &one, &one, tarn_access(n->L, d.n - 1, im_permute(n, t, last)));
  uint32_t square = im_formula(n, "(mul $0 $0)", im_type(n, x), NULL, 0);
  t = tarn_compute(
      n->L, tarn_fn_reduce(n->L, square, 1, tarn_reducer_of(n->L, TARN_RED_SUM, im_type(n, x))), &t,
      1);
  im_set(n, 0,
         im_elp(n, "(div $0 (pow (add bias (mul alpha $1)) beta))", p, 3, 2, x,
                im_permute(n, t, back)));
}

void im_do_mean_variance(im_node *n) {
  tarn_term x = im_arg(n, 0), mean, var;
  im_dims d = im_shape(n, x);
  static const int64_t usual[] = {0, 2, 3};
  uint32_t k, mask = 0;
  const int64_t *axes = im_attr_ints(n, "axes", &k);
  if (!axes) axes = usual, k = 3;
  for (uint32_t i = 0; i < k; i++) mask |= 1u << im_axis(n, axes[i], d.n);
  moments(n, x, mask, &mean, &var);
  im_set(n, 0, im_el(n, "(div (sub $0 $1) (add (sqrt $2) 1e-9))", 3, x, mean, var));
}

/* ---------------------------------------------------------------- softmax */

tarn_term im_softmax(im_node *n, tarn_term x, uint32_t mask) {
  tarn_term most = im_reduce(n, x, mask, TARN_NONE, TARN_RED_MAX, true);
  tarn_term e = im_el(n, "(exp (sub $0 $1))", 2, x, most);
  return im_el(n, "(div $0 $1)", 2, e, im_reduce(n, e, mask, TARN_NONE, TARN_RED_SUM, true));
}

static tarn_term softmax(im_node *n, tarn_term x, uint32_t mask) {
  if (strcmp(n->op, "LogSoftmax") != 0) return im_softmax(n, x, mask);
  tarn_term most = im_reduce(n, x, mask, TARN_NONE, TARN_RED_MAX, true);
  tarn_term s = im_el(n, "(sub $0 $1)", 2, x, most);
  tarn_term sum = im_reduce(n, im_el(n, "(exp $0)", 1, s), mask, TARN_NONE, TARN_RED_SUM, true);
  return im_el(n, "(sub $0 (log $1))", 2, s, sum);
}

void im_do_softmax(im_node *n) {
  tarn_term x = im_arg(n, 0);
  uint32_t rank = im_shape(n, x).n;
  im_set(n, 0, softmax(n, x, 1u << im_axis(n, im_attr_int(n, "axis", -1), rank)));
}

/* Before operator set 13: over the axis and all that follow it. */
static uint32_t flat_axes(im_node *n) {
  uint32_t rank = im_shape(n, im_arg(n, 0)).n;
  return axes_from(im_axis(n, im_attr_int(n, "axis", 1), rank), rank);
}

void im_do_softmax_flat(im_node *n) { im_set(n, 0, softmax(n, im_arg(n, 0), flat_axes(n))); }

/* One where the first maximum is, or the NaN that makes it one. The position comes out of one
 * reduction: elements that are computed once for the maximum and once to be compared with it may
 * be rounded differently. */
static tarn_term hardmax(im_node *n, tarn_term x, uint32_t mask) {
  im_dims d = im_shape(n, x), at = d;
  int64_t count = 1;
  for (uint32_t i = 0; i < d.n; i++)
    if (mask >> i & 1) count *= d.d[i];
    else at.d[i] = 1;
  tarn_term index = im_reshape(n, im_iota(n, TARN_I64, count), d.n, at.d);
  tarn_term first = im_arg_extreme(n, x, mask, true, false, true);
  return im_cast(n, im_el(n, "(eq $0 $1)", 2, index, first), im_type(n, x));
}

void im_do_hardmax(im_node *n) {
  uint32_t rank = im_shape(n, im_arg(n, 0)).n;
  im_set(n, 0, hardmax(n, im_arg(n, 0), 1u << im_axis(n, im_attr_int(n, "axis", -1), rank)));
}

void im_do_hardmax_flat(im_node *n) { im_set(n, 0, hardmax(n, im_arg(n, 0), flat_axes(n))); }
