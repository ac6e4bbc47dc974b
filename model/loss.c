/* Losses: the log-probability of the target class, which a gather reads. */
#include "model/import.h"
#include <string.h>

typedef struct loss {
  im_node *n;
  tarn_term x, target, weight; /* (N,C,D…), (N,D…), of each target (N,D…) or absent */
  tarn_term ignored;           /* (N,D…), or absent */
} loss;

/* 0 in place of the targets that are ignored, which need be no class. */
static void ignore(loss *l) {
  im_node *n = l->n;
  im_param p[] = {{"ignore", 0, im_attr_int(n, "ignore_index", 0)}};
  if (!im_attr(n, "ignore_index")) return;
  l->ignored = im_elp(n, "(eq $0 ignore)", p, 1, 1, l->target);
  l->target = im_el(n, "(select $1 0 $0)", 2, l->target, l->ignored);
}

static loss read_loss(im_node *n) {
  loss l = {n, im_arg(n, 0), im_arg(n, 1), im_opt(n, 2), TARN_NONE};
  im_dims d = im_shape(n, l.x), t = im_shape(n, l.target);
  if (d.n < 2 || t.n != d.n - 1 || t.d[0] != d.d[0] ||
      memcmp(t.d + 1, d.d + 2, (d.n - 2) * sizeof *d.d) != 0)
    im_bad(n, "scores and targets do not fit");
  if (tarn_dtype_is_float(im_type(n, l.target))) im_bad(n, "targets are not integers");
  if (d.d[1] < 1) im_bad(n, "there are no classes");
  l.target = im_cast(n, l.target, TARN_I64);
  ignore(&l);
  im_dims w = l.weight == TARN_NONE ? (im_dims){1, {d.d[1]}} : im_shape(n, l.weight);
  if (w.n != 1 || w.d[0] != d.d[1]) im_bad(n, "there is not one weight for each class");
  if (l.weight != TARN_NONE) l.weight = im_rows(n, l.weight, l.target);
  return l;
}

/* The scores of the targets. */
static tarn_term scores(const loss *l) {
  im_dims d = im_shape(l->n, l->target);
  if (im_count(&d)) return im_along(l->n, l->x, 1, l->target);
  return im_fill(l->n, im_scalar(l->n, im_type(l->n, l->x), 0, 0), d.n, d.d);
}

static tarn_term unless_ignored(const loss *l, tarn_term t) {
  return l->ignored == TARN_NONE ? t : im_el(l->n, "(select $1 0 $0)", 2, t, l->ignored);
}

static tarn_term weights(const loss *l) {
  im_dims d = im_shape(l->n, l->target);
  tarn_term one = im_scalar(l->n, im_type(l->n, l->x), 1, 0);
  return l->weight != TARN_NONE ? l->weight : im_fill(l->n, one, d.n, d.d);
}

/* log_probability: of the targets. */
static tarn_term nll(const loss *l, tarn_term log_probability) {
  im_node *n = l->n;
  tarn_term w = weights(l);
  tarn_term each = unless_ignored(l, im_el(n, "(mul (neg $0) $1)", 2, log_probability, w));
  uint32_t all = (1u << im_shape(n, each).n) - 1;
  const char *reduction = im_attr_str(n, "reduction", "mean");
  if (strcmp(reduction, "none") == 0) return each;
  tarn_term sum = im_reduce(n, each, all, TARN_NONE, TARN_RED_SUM, false);
  if (strcmp(reduction, "sum") == 0) return sum;
  if (strcmp(reduction, "mean") != 0) im_bad(n, "reduction %s is unknown", reduction);
  tarn_term mass = im_reduce(n, unless_ignored(l, w), all, TARN_NONE, TARN_RED_SUM, false);
  return im_el(n, "(div $0 $1)", 2, sum, mass);
}

void im_do_nll_loss(im_node *n) {
  loss l = read_loss(n);
  im_set(n, 0, nll(&l, scores(&l)));
}

/* The target's score is read before the logarithms of all probabilities are computed. */
void im_do_cross_entropy(im_node *n) {
  loss l = read_loss(n);
  tarn_term most = im_reduce(n, l.x, 2, TARN_NONE, TARN_RED_MAX, true);
  tarn_term s = im_el(n, "(sub $0 $1)", 2, l.x, most);
  tarn_term sum = im_reduce(n, im_el(n, "(exp $0)", 1, s), 2, TARN_NONE, TARN_RED_SUM, true);
  tarn_term of_target = im_el(n, "(sub (sub $0 $1) (log $2))", 3, scores(&l), im_drop(n, most, 1),
                              im_drop(n, sum, 1));
  im_set(n, 0, nll(&l, of_target));
  im_set(n, 1, im_el(n, "(sub $0 (log $1))", 2, s, sum));
}
