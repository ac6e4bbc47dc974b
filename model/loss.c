/* Losses: the log-probability of the target class, picked by a reduction over the classes. */
#include "model/import.h"
#include <string.h>

im_handler im_do_nll_loss, im_do_cross_entropy;

typedef struct loss {
  im_node *n;
  tarn_term x, target, weight; /* (N,C,D…), (N,D…), (C) or absent */
  int64_t ignore;
  bool ignores;
} loss;

/* Σ_c where(target = c, value, 0) with values over (N,C,D…): the classes as the compute dim. */
static tarn_term pick(const loss *l, const char *text, uint32_t nvalue, tarn_term value) {
  im_node *n = l->n;
  im_dims d = im_shape(n, l->x), target = im_shape(n, l->target);
  int64_t column[TARN_MAX_DIMS] = {d.d[1]}, split[TARN_MAX_DIMS] = {d.d[0], 1};
  for (uint32_t i = 2; i < d.n; i++) column[i - 1] = 1, split[i] = target.d[i - 1];
  im_param p = {"ignore", 0, l->ignore};
  tarn_term cls = im_reshape(n, im_iota(n, im_type(n, l->target), d.d[1]), d.n - 1, column);
  tarn_term at = im_reshape(n, l->target, d.n, split);
  tarn_term hit =
      im_elp(n, l->ignores ? "(and (eq $0 $1) (ne $0 ignore))" : "(eq $0 $1)", &p, 1, 2, at, cls);
  tarn_term operand[] = {hit, value};
  tarn_term chosen = im_map(n, im_formula(n, text, im_type(n, l->x), NULL, 0), operand, nvalue);
  im_dims whole = d;
  return im_reduce(n, im_broadcast(n, chosen, &whole), 2, TARN_NONE, TARN_RED_SUM, false);
}

static tarn_term weights(const loss *l) {
  uint32_t rank = im_shape(l->n, l->x).n;
  return l->weight != TARN_NONE ? im_channel(l->n, l->weight, rank)
                                : im_scalar(l->n, im_type(l->n, l->x), 1, 0);
}

static tarn_term nll(const loss *l, tarn_term log_probability) {
  im_node *n = l->n;
  tarn_term w = weights(l), minus = im_el(n, "(mul (neg $0) $1)", 2, log_probability, w);
  tarn_term each = pick(l, "(select $0 $1 0)", 2, minus);
  uint32_t all = (1u << im_shape(n, each).n) - 1;
  const char *reduction = im_attr_str(n, "reduction", "mean");
  if (strcmp(reduction, "none") == 0) return each;
  tarn_term sum = im_reduce(n, each, all, TARN_NONE, TARN_RED_SUM, false);
  if (strcmp(reduction, "sum") == 0) return sum;
  if (strcmp(reduction, "mean") != 0) im_bad(n, "reduction %s is unknown", reduction);
  tarn_term mass =
      im_reduce(n, pick(l, "(select $0 $1 0)", 2, w), all, TARN_NONE, TARN_RED_SUM, false);
  return im_el(n, "(div $0 $1)", 2, sum, mass);
}

static loss read_loss(im_node *n) {
  loss l = {.n = n, .x = im_arg(n, 0), .target = im_arg(n, 1), .weight = im_opt(n, 2)};
  im_dims d = im_shape(n, l.x), t = im_shape(n, l.target);
  l.ignores = im_attr(n, "ignore_index") != NULL;
  l.ignore = im_attr_int(n, "ignore_index", 0);
  if (d.n < 2 || t.n != d.n - 1 || t.d[0] != d.d[0] ||
      memcmp(t.d + 1, d.d + 2, (d.n - 2) * sizeof *d.d) != 0)
    im_bad(n, "scores and targets do not fit");
  if (tarn_dtype_is_float(im_type(n, l.target))) im_bad(n, "targets are not integers");
  return l;
}

void im_do_nll_loss(im_node *n) {
  loss l = read_loss(n);
  im_set(n, 0, nll(&l, l.x));
}

void im_do_cross_entropy(im_node *n) {
  loss l = read_loss(n);
  tarn_term s =
      im_el(n, "(sub $0 $1)", 2, l.x, im_reduce(n, l.x, 2, TARN_NONE, TARN_RED_MAX, true));
  tarn_term sum = im_reduce(n, im_el(n, "(exp $0)", 1, s), 2, TARN_NONE, TARN_RED_SUM, true);
  tarn_term log_probability = im_el(n, "(sub $0 (log $1))", 2, s, sum);
  im_set(n, 0, nll(&l, log_probability));
  im_set(n, 1, log_probability);
}
