/* Pooling: reductions over windows. Padding is the reduction's identity; an average divides by how
 * many elements of the window lie in the input (or in the padded input, count_include_pad). */
#include "model/import.h"
#include <string.h>

/* ((N,C,P…),(K…)); overhang of ceil_mode is padded too. */
static tarn_term windows_of(im_node *n, tarn_term x, const im_window *w, double value) {
  im_dims d = im_shape(n, x);
  for (uint32_t i = 0; i < w->r; i++) {
    int64_t need = (w->out[i] - 1) * w->s[i] + im_reach(w, i),
            over = need - (d.d[2 + i] + w->b[i] + w->a[i]);
    x = im_pad(n, x, 2 + i, value, w->b[i], w->a[i] + (over > 0 ? over : 0));
  }
  return tarn_windows(n->L, w->k, w->s, w->d, tarn_access(n->L, 2, x));
}

static tarn_term pooled(im_node *n, tarn_term x, const im_window *w, tarn_red_kind kind,
                        uint32_t body, double value) {
  tarn_term t = windows_of(n, x, w, value);
  uint32_t fn = tarn_fn_reduce(n->L, body, 1, tarn_reducer_of(n->L, kind, im_type(n, x)));
  return tarn_compute(n->L, fn, &t, 1);
}

/* Elements that the windows along one axis count, at least 1: a window may lie between them. A
 * vector, as constant along that axis. */
static tarn_term counts(im_node *n, const im_window *w, uint32_t i, int64_t len, bool with_pad,
                        tarn_dtype t) {
  tarn_tensor *c = im_new(n, t, 1, &w->out[i]);
  int64_t lo = with_pad ? -w->b[i] : 0, hi = with_pad ? len + w->a[i] : len;
  bool all = true;
  for (int64_t o = 0; o < w->out[i]; o++) {
    int64_t start = o * w->s[i] - w->b[i];
    int64_t first = start >= lo ? 0 : (lo - start + w->d[i] - 1) / w->d[i];
    int64_t end = hi - start <= 0 ? 0 : (hi - start + w->d[i] - 1) / w->d[i]; /* taps before hi */
    int64_t k = (end < w->k[i] ? end : w->k[i]) - first;
    tarn_tensor_set(c, o, (tarn_value){.d = (double)(k > 0 ? k : 1)});
    all &= k == w->k[i];
  }
  if (all) return im_scalar(n, t, (double)w->k[i], 0);
  int64_t dim[TARN_MAX_DIMS] = {w->out[i]};
  for (uint32_t j = i + 1; j < w->r; j++) dim[j - i] = 1;
  return im_reshape(n, im_const(n, c), w->r - i, dim);
}

void im_do_average_pool(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  im_window w;
  bool with_pad = im_attr_int(n, "count_include_pad", 0);
  im_window_read(n, &w, &d, NULL, im_attr_int(n, "ceil_mode", 0));
  tarn_term sum = pooled(n, x, &w, TARN_RED_SUM, tarn_fx_hole(n->L, 0), 0), divisor = TARN_NONE;
  int64_t whole = 1;
  for (uint32_t i = 0; i < w.r; i++) {
    tarn_term c = counts(n, &w, i, d.d[2 + i], with_pad, im_type(n, x));
    if (im_shape(n, c).n == 0) whole *= w.k[i];
    else divisor = divisor == TARN_NONE ? c : im_el(n, "(mul $0 $1)", 2, divisor, c);
  }
  im_param p = {"k", (double)whole, whole};
  if (divisor == TARN_NONE) sum = im_elp(n, "(div $0 k)", &p, 1, 1, sum);
  else sum = im_elp(n, "(div $0 (mul $1 k))", &p, 1, 2, sum, divisor);
  im_set(n, 0, sum);
}

/* Position in the whole input of each window's maximum: the pair (value, position) reduced together
 * would need a second operand, so positions are found by equality: the first whose element equals
 * the maximum, or is the NaN that made it one. Padding is nowhere, whatever the maximum. */
#define NOWHERE ((int64_t)1 << 62)

/* The position within its plane, counted by columns. */
static tarn_term by_columns(im_node *n, tarn_term at, const im_dims *d) {
  int64_t plane = 1, scale = 1;
  for (uint32_t k = 2; k < d->n; k++) plane *= d->d[k];
  im_param whole[] = {{"plane", 0, plane}, {"none", 0, NOWHERE}};
  if (plane == 0) return at;
  tarn_term y = im_elp(n, "(sub $0 (mod $0 plane))", whole, 2, 1, at);
  for (uint32_t k = 2; k < d->n; k++) {
    int64_t step = 1;
    for (uint32_t j = k + 1; j < d->n; j++) step *= d->d[j];
    im_param p[] = {{"step", 0, step}, {"extent", 0, d->d[k]}, {"scale", 0, scale}};
    y = im_elp(n, "(add $0 (mul scale (mod (div $1 step) extent)))", p, 3, 2, y, at);
    scale *= d->d[k];
  }
  return im_elp(n, "(select (eq $0 none) $0 $1)", whole, 2, 2, at, y);
}
static tarn_term positions(im_node *n, tarn_term x, const im_window *w, tarn_term most,
                           bool column_major) {
  im_dims d = im_shape(n, x), at = d;
  int64_t count = im_count(&d);
  tarn_tensor *iota = im_new(n, TARN_I64, d.n, d.d);
  for (int64_t i = 0; i < count; i++) tarn_tensor_set(iota, i, (tarn_value){.i = i});
  tarn_term where = windows_of(n, im_const(n, iota), w, (double)NOWHERE),
            values = windows_of(n, x, w, im_lowest(im_type(n, x)));
  const tarn_type *ty = tarn_term_type(n->L, values);
  uint32_t rank = ty->n, ns = ty->ns;
  int64_t dim[TARN_MAX_DIMS];
  memcpy(dim, ty->dim, sizeof dim);
  memcpy(at.d, dim, ns * sizeof *dim);
  for (uint32_t i = ns; i < rank; i++) at.d[i] = 1;
  tarn_term top =
      tarn_broadcast(n->L, ns, rank, dim, tarn_access(n->L, ns, im_reshape(n, most, rank, at.d)));
  im_param none = {"none", 0, NOWHERE};
  bool real = tarn_dtype_is_float(im_type(n, x));
  const char *here = real ? "(or (eq $0 $1) (isnan $0))" : "(eq $0 $1)";
  const char *text = tarn_format(n->cx, "(select %s $2 none)", here);
  uint32_t body = im_formula(n, text, TARN_I64, &none, 1);
  uint32_t fn = tarn_fn_reduce(n->L, body, 3, tarn_reducer_of(n->L, TARN_RED_MIN, TARN_I64));
  tarn_term operand[] = {values, top, where};
  tarn_term first = tarn_compute(n->L, fn, operand, 3);
  return column_major ? by_columns(n, first, &d) : first;
}

void im_do_max_pool(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  im_window w;
  bool column_major = im_attr_int(n, "storage_order", 0);
  im_window_read(n, &w, &d, NULL, im_attr_int(n, "ceil_mode", 0));
  tarn_term most = pooled(n, x, &w, TARN_RED_MAX, tarn_fx_hole(n->L, 0), im_lowest(im_type(n, x)));
  im_set(n, 0, most);
  if (n->nout > 1) im_set(n, 1, positions(n, x, &w, most, column_major));
}

/* |x|^p, its sum over windows, and the p-th root. */
static const char power[] = "(pow (abs $0) p)", root[] = "(pow $0 q)";

static im_param norm_of(im_node *n) {
  int64_t p = im_attr_int(n, "p", 2);
  if (p < 1) im_bad(n, "p = %lld is not positive", (long long)p);
  return (im_param){"p", (double)p, p};
}

static tarn_term rooted(im_node *n, tarn_term t, im_param p) {
  im_param q = {"q", 1 / p.r, 0};
  if (p.i == 1) return t;
  return p.i == 2 ? im_el(n, "(sqrt $0)", 1, t) : im_elp(n, root, &q, 1, 1, t);
}

static uint32_t power_of(im_node *n, tarn_dtype t, im_param p) {
  const char *text = p.i == 1 ? "(abs $0)" : p.i == 2 ? "(mul $0 $0)" : power;
  return im_formula(n, text, t, &p, 1);
}

void im_do_lp_pool(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  im_window w;
  im_param p = norm_of(n);
  im_window_read(n, &w, &d, NULL, im_attr_int(n, "ceil_mode", 0));
  im_set(n, 0, rooted(n, pooled(n, x, &w, TARN_RED_SUM, power_of(n, im_type(n, x), p), 0), p));
}

void im_do_global_pool(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  if (d.n < 3) im_bad(n, "the input has %u dims, at least 3 are needed", d.n);
  uint32_t mask = ((1u << d.n) - 1) & ~3u;
  if (strcmp(n->op, "GlobalAveragePool") == 0) im_set(n, 0, im_mean(n, x, mask, true));
  else if (strcmp(n->op, "GlobalMaxPool") == 0)
    im_set(n, 0, im_reduce(n, x, mask, TARN_NONE, TARN_RED_MAX, true));
  else {
    im_param p = norm_of(n);
    im_set(n, 0,
           rooted(n, im_reduce(n, x, mask, power_of(n, im_type(n, x), p), TARN_RED_SUM, true), p));
  }
}
