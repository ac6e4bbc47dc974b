/* Terms for handlers: shapes, broadcasting, elementwise maps, reductions. All results have type
 * ((dims),()). */
#include "model/import.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---------------------------------------------------------------- inputs and outputs */

tarn_term im_opt(im_node *n, uint32_t i) {
  return i < n->nin && n->in[i] ? n->in[i]->t : TARN_NONE;
}

tarn_term im_arg(im_node *n, uint32_t i) {
  tarn_term t = im_opt(n, i);
  if (t == TARN_NONE) im_bad(n, "input %u is missing", i);
  return t;
}

void im_alike(im_node *n, uint32_t i, uint32_t j) {
  if (im_opt(n, i) == TARN_NONE || im_opt(n, j) == TARN_NONE) return;
  if (im_type(n, im_arg(n, i)) != im_type(n, im_arg(n, j)))
    im_bad(n, "inputs %u and %u are %s and %s: they must be of one type", i, j,
           tarn_dtype_name(n->given[i]), tarn_dtype_name(n->given[j]));
}

void im_set(im_node *n, uint32_t k, tarn_term t) {
  if (k < n->nout) n->out[k].t = t;
}

void im_set_as(im_node *n, uint32_t k, tarn_term t, tarn_dtype type) {
  if (k >= n->nout) return;
  im_set(n, k, im_cast(n, t, type));
  n->own |= (uint64_t)1 << k;
}

void im_set_tensor(im_node *n, uint32_t k, const tarn_tensor *t) {
  if (k >= n->nout) return;
  n->out[k] = (im_val){im_const(n, t), t, true, 0, NULL};
}

/* ---------------------------------------------------------------- shapes */

im_dims im_shape(const im_node *n, tarn_term t) {
  const tarn_type *ty = tarn_term_type(n->L, t);
  if (ty->tuple) im_bad(n, "an operand is a tuple");
  im_dims d = {.n = ty->n};
  memcpy(d.d, ty->dim, sizeof d.d);
  return d;
}

tarn_dtype im_type(const im_node *n, tarn_term t) { return tarn_term_type(n->L, t)->dtype; }

int64_t im_count(const im_dims *d) {
  int64_t count = 1;
  for (uint32_t i = 0; i < d->n; i++) count *= d->d[i];
  return count;
}

uint32_t im_axis(const im_node *n, int64_t axis, uint32_t rank) {
  int64_t a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= (int64_t)rank)
    im_bad(n, "axis %lld does not exist in %u dims", (long long)axis, rank);
  return (uint32_t)a;
}

/* ---------------------------------------------------------------- constants */

tarn_tensor *im_new(const im_node *n, tarn_dtype t, uint32_t rank, const int64_t *dim) {
  int64_t count = 1;
  for (uint32_t i = 0; i < rank; i++)
    if (dim[i] < 0 || __builtin_mul_overflow(count, dim[i], &count) || count > IM_MAX_MADE)
      im_bad(n, "would need a constant of more than %lld elements", (long long)IM_MAX_MADE);
  return tarn_tensor_new(n->cx, t, rank, dim);
}

tarn_term im_const(im_node *n, const tarn_tensor *t) {
  return tarn_constant(n->L, n->name, t, t->n);
}

tarn_term im_iota(im_node *n, tarn_dtype t, int64_t count) {
  tarn_tensor *r = im_new(n, t, 1, &count);
  for (int64_t i = 0; i < count; i++)
    tarn_tensor_set(r, i,
                    tarn_dtype_is_float(t) ? (tarn_value){.d = (double)i} : (tarn_value){.i = i});
  return im_const(n, r);
}
tarn_term im_steps(im_node *n, uint32_t axis, uint32_t rank, int64_t extent) {
  int64_t dim[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < rank; i++) dim[i] = i == axis ? extent : 1;
  return im_reshape(n, im_iota(n, TARN_I64, extent), rank, dim);
}

uint32_t im_fxc(const im_node *n, tarn_dtype t, double v) {
  return tarn_dtype_is_float(t) ? tarn_fx_const(n->L, t, v) : tarn_fx_iconst(n->L, t, (int64_t)v);
}

tarn_term im_scalar(im_node *n, tarn_dtype t, double r, int64_t i) {
  tarn_tensor *x = tarn_tensor_new(n->cx, t, 0, NULL);
  tarn_tensor_set(x, 0, tarn_dtype_is_float(t) ? (tarn_value){.d = r} : (tarn_value){.i = i});
  return im_const(n, x);
}

double im_lowest(tarn_dtype t) {
  switch (t) {
  case TARN_I8: return -128;
  case TARN_I16: return -32768;
  case TARN_I32: return -2147483648.0;
  case TARN_I64: return -9223372036854775808.0;
  default: return tarn_dtype_is_float(t) ? (double)-INFINITY : 0;
  }
}

/* ---------------------------------------------------------------- views */

static bool same(const im_dims *a, uint32_t n, const int64_t *d) {
  return a->n == n && memcmp(a->d, d, n * sizeof *d) == 0;
}

tarn_term im_reshape(im_node *n, tarn_term t, uint32_t rank, const int64_t *dim) {
  im_dims from = im_shape(n, t);
  if (rank > TARN_MAX_DIMS) im_bad(n, "more than %d dims", TARN_MAX_DIMS);
  return same(&from, rank, dim) ? t : tarn_reshape_all(n->L, rank, rank, dim, t);
}

tarn_term im_permute(im_node *n, tarn_term t, const uint32_t *p) {
  uint32_t rank = im_shape(n, t).n, i = 0;
  while (i < rank && p[i] == i) i++;
  return i == rank ? t : tarn_transpose(n->L, p, t);
}

tarn_term im_broadcast(im_node *n, tarn_term t, const im_dims *to) {
  im_dims from = im_shape(n, t);
  if (same(&from, to->n, to->d)) return t;
  bool fits = from.n <= to->n;
  for (uint32_t i = 0; fits && i < from.n; i++)
    fits = from.d[i] == 1 || from.d[i] == to->d[to->n - from.n + i];
  if (!fits) im_bad(n, "shapes do not broadcast");
  for (uint32_t i = from.n; i < to->n; i++) t = tarn_insert_axis(n->L, 0, t);
  im_dims now = im_shape(n, t);
  return same(&now, to->n, to->d) ? t : tarn_broadcast(n->L, to->n, to->n, to->d, t);
}

tarn_term im_fill(im_node *n, tarn_term scalar, uint32_t rank, const int64_t *dim) {
  im_dims to = {.n = rank};
  memcpy(to.d, dim, rank * sizeof *dim);
  return im_broadcast(n, im_reshape(n, scalar, 0, dim), &to);
}

static void join(im_node *n, im_dims *c, const im_dims *d) {
  im_dims wide = d->n > c->n ? *d : *c, slim = d->n > c->n ? *c : *d;
  uint32_t shift = wide.n - slim.n;
  for (uint32_t i = 0; i < slim.n; i++) {
    int64_t *w = &wide.d[shift + i], s = slim.d[i];
    if (*w != 1 && s != 1 && s != *w)
      im_bad(n, "extents %lld and %lld do not broadcast", (long long)*w, (long long)s);
    if (*w == 1) *w = s;
  }
  *c = wide;
}

/* numpy's rule, all ways. */
static im_dims im_common(im_node *n, const tarn_term *t, uint32_t k) {
  im_dims c = im_shape(n, t[0]);
  for (uint32_t i = 1; i < k; i++) {
    im_dims d = im_shape(n, t[i]);
    join(n, &c, &d);
  }
  return c;
}

tarn_term im_cut(im_node *n, tarn_term t, uint32_t axis, int64_t lo, int64_t hi, int64_t step) {
  im_dims d = im_shape(n, t);
  if (lo == 0 && hi == d.d[axis] && step == 1) return t;
  return tarn_slice(n->L, axis, lo, hi, step, t);
}

tarn_term im_pad(im_node *n, tarn_term t, uint32_t axis, double value, int64_t before,
                 int64_t after) {
  return im_pad_fx(n, t, axis, im_fxc(n, im_type(n, t), value), before, after);
}

tarn_term im_pad_fx(im_node *n, tarn_term t, uint32_t axis, uint32_t value, int64_t before,
                    int64_t after) {
  int64_t len = im_shape(n, t).d[axis];
  int64_t lo = before < 0 ? -before : 0, hi = after < 0 ? len + after : len;
  if (lo > hi) im_bad(n, "negative padding removes more than there is");
  t = im_cut(n, t, axis, lo, hi, 1);
  before = before > 0 ? before : 0;
  after = after > 0 ? after : 0;
  if (before == 0 && after == 0) return t;
  if (before > IM_MAX_EXTENT || after > IM_MAX_EXTENT) im_bad(n, "padding is too large");
  return tarn_pad(n->L, axis, value, before, after, t);
}

tarn_term im_drop(im_node *n, tarn_term t, uint32_t axis) {
  im_dims d = im_shape(n, t);
  memmove(d.d + axis, d.d + axis + 1, (d.n - axis - 1) * sizeof *d.d);
  return im_reshape(n, t, d.n - 1, d.d);
}

tarn_term im_pick(im_node *n, tarn_term t, uint32_t axis, int64_t i) {
  return im_drop(n, im_cut(n, t, axis, i, i + 1, 1), axis);
}

tarn_term im_concat(im_node *n, uint32_t axis, const tarn_term *t, uint32_t k) {
  return k == 1 ? t[0] : tarn_concat(n->L, axis, t, k);
}

tarn_term im_stack(im_node *n, uint32_t axis, const tarn_term *t, uint32_t k) {
  tarn_term *part = TARN_ARRAY(n->cx, tarn_term, k + 1);
  for (uint32_t i = 0; i < k; i++) {
    im_dims d = im_shape(n, t[i]);
    if (d.n == TARN_MAX_DIMS) im_bad(n, "more than %d dims", TARN_MAX_DIMS);
    memmove(d.d + axis + 1, d.d + axis, (d.n - axis) * sizeof *d.d);
    d.d[axis] = 1;
    part[i] = im_reshape(n, t[i], d.n + 1, d.d);
  }
  return im_concat(n, axis, part, k);
}

/* ---------------------------------------------------------------- elementwise */

/* A constant of one element as an expression, else TARN_NONE. */
static uint32_t scalar_fx(im_node *n, tarn_term t) {
  const tarn_node *node = tarn_term_get(n->L, t);
  if (node->op != TARN_OP_CONST) return TARN_NONE;
  const tarn_tensor *x = tarn_payload_get(n->L, node->payload)->tensor;
  if (tarn_tensor_count(x) != 1) return TARN_NONE;
  tarn_value v = tarn_tensor_get(x, 0);
  return im_number_fx(n, (im_number){x->dtype, v});
}

tarn_term im_map(im_node *n, uint32_t fx, const tarn_term *t, uint32_t k) {
  if (k > TARN_MAX_OPERANDS) im_bad(n, "more than %d operands", TARN_MAX_OPERANDS);
  im_dims to = im_common(n, t, k);
  tarn_term arg[TARN_MAX_OPERANDS];
  uint32_t with[TARN_MAX_OPERANDS], left = 0;
  for (uint32_t i = 0; i < k; i++) {
    uint32_t c = i + 1 == k && left == 0 ? TARN_NONE : scalar_fx(n, t[i]);
    with[i] = c != TARN_NONE ? c : tarn_fx_hole(n->L, left);
    if (c == TARN_NONE) arg[left++] = im_broadcast(n, t[i], &to);
  }
  return tarn_compute(n->L, tarn_fn_map(n->L, tarn_fx_subst(n->L, fx, with, k), left), arg, left);
}

tarn_term im_settled(im_node *n, tarn_term t) {
  return tarn_mk(n->L, TARN_OP_MATERIALISE, 0, &t, 1);
}

tarn_term im_cast(im_node *n, tarn_term t, tarn_dtype to) {
  if (im_type(n, t) == to) return t;
  uint32_t c = scalar_fx(n, t);
  if (c == TARN_NONE) return im_map(n, tarn_fx_cast(n->L, to, tarn_fx_hole(n->L, 0)), &t, 1);
  const tarn_fx *x = tarn_fx_get(n->L, tarn_fx_cast(n->L, to, c));
  im_dims d = im_shape(n, t);
  return im_reshape(n, im_scalar(n, to, x->value, x->ivalue), d.n, d.d);
}

static tarn_term elv(im_node *n, const char *text, const im_param *param, uint32_t nparam,
                     uint32_t k, va_list ap) {
  tarn_term t[8];
  if (k > 8) im_bad(n, "more than 8 operands");
  for (uint32_t i = 0; i < k; i++) t[i] = va_arg(ap, tarn_term);
  return im_map(n, im_formula(n, text, im_type(n, t[0]), param, nparam), t, k);
}

tarn_term im_el(im_node *n, const char *text, uint32_t k, ...) {
  va_list ap;
  va_start(ap, k);
  tarn_term r = elv(n, text, NULL, 0, k, ap);
  va_end(ap);
  return r;
}

tarn_term im_elp(im_node *n, const char *text, const im_param *param, uint32_t nparam, uint32_t k,
                 ...) {
  va_list ap;
  va_start(ap, k);
  tarn_term r = elv(n, text, param, nparam, k, ap);
  va_end(ap);
  return r;
}

/* ---------------------------------------------------------------- reductions */

/* Moves the axes of mask to the end and makes them compute dims. */
static tarn_term reduced_last(im_node *n, tarn_term t, uint32_t mask, uint32_t *kept) {
  uint32_t rank = im_shape(n, t).n, p[TARN_MAX_DIMS], k = 0;
  for (uint32_t i = 0; i < rank; i++)
    if (!(mask >> i & 1)) p[k++] = i;
  *kept = k;
  for (uint32_t i = 0; i < rank; i++)
    if (mask >> i & 1) p[k++] = i;
  return tarn_access(n->L, *kept, im_permute(n, t, p));
}

tarn_term im_reduce_with(im_node *n, tarn_term t, uint32_t mask, uint32_t fn, bool keep) {
  im_dims d = im_shape(n, t);
  uint32_t kept;
  tarn_term a = reduced_last(n, t, mask, &kept), r = tarn_compute(n->L, fn, &a, 1);
  if (!keep) return r;
  for (uint32_t i = 0; i < d.n; i++)
    if (mask >> i & 1) d.d[i] = 1;
  return im_reshape(n, r, d.n, d.d);
}

tarn_term im_reduce(im_node *n, tarn_term t, uint32_t mask, uint32_t body, tarn_red_kind kind,
                    bool keep) {
  if (body == TARN_NONE) body = tarn_fx_hole(n->L, 0);
  tarn_dtype in = im_type(n, t), dt;
  if (!tarn_fx_type(n->L, body, &in, 1, &dt)) im_bad(n, "%s", tarn_message(n->cx));
  uint32_t fn = tarn_fn_reduce(n->L, body, 1, tarn_reducer_of(n->L, kind, dt));
  return im_reduce_with(n, t, mask, fn, keep);
}

static double extent_product(im_node *n, tarn_term t, uint32_t mask) {
  im_dims d = im_shape(n, t);
  double count = 1;
  for (uint32_t i = 0; i < d.n; i++)
    if (mask >> i & 1) count *= (double)d.d[i];
  return count;
}

tarn_term im_mean(im_node *n, tarn_term t, uint32_t mask, bool keep) {
  im_param count = {"n", extent_product(n, t, mask), 0};
  tarn_dtype type = im_type(n, t); /* the count need not be a number of a 16-bit one */
  count.i = (int64_t)count.r;
  t = im_reduce(n, im_cast(n, t, tarn_dtype_accumulator(type)), mask, TARN_NONE, TARN_RED_SUM,
                keep);
  return im_cast(n, im_elp(n, "(div $0 n)", &count, 1, 1, t), type);
}

/* ---------------------------------------------------------------- sums of products */

typedef struct operand {
  tarn_term t;
  uint32_t n;
  const uint8_t *label;
} operand;

static bool holds(const uint8_t *l, uint32_t n, uint8_t label, uint32_t *at) {
  for (uint32_t i = 0; i < n; i++)
    if (l[i] == label) {
      *at = i;
      return true;
    }
  return false;
}

/* Dims in the order: shared, own, summed; split before the summed ones. */
static tarn_term arrange(im_node *n, const operand *a, const uint8_t *shared, uint32_t ns,
                         const uint8_t *summed, uint32_t nc, uint8_t *own, uint32_t *nown) {
  uint32_t p[TARN_MAX_DIMS], k = 0, at;
  *nown = 0;
  for (uint32_t i = 0; i < ns; i++)
    if (holds(a->label, a->n, shared[i], &at)) p[k++] = at;
  for (uint32_t i = 0; i < a->n; i++)
    if (!holds(shared, ns, a->label[i], &at) && !holds(summed, nc, a->label[i], &at)) {
      own[(*nown)++] = a->label[i];
      p[k++] = i;
    }
  uint32_t split = k;
  for (uint32_t i = 0; i < nc; i++)
    if (holds(a->label, a->n, summed[i], &at)) p[k++] = at;
  return tarn_access(n->L, split, im_permute(n, a->t, p));
}

tarn_term im_contract(im_node *n, tarn_term ta, const uint8_t *la, tarn_term tb, const uint8_t *lb,
                      const uint8_t *lo, uint32_t nlo) {
  operand a = {ta, im_shape(n, ta).n, la}, b = {tb, im_shape(n, tb).n, lb};
  uint8_t shared[TARN_MAX_DIMS], summed[TARN_MAX_DIMS], all[3 * TARN_MAX_DIMS], own[TARN_MAX_DIMS];
  uint32_t ns = 0, nc = 0, k = 0, nown, at;
  for (uint32_t i = 0; i < nlo; i++)
    if (holds(la, a.n, lo[i], &at) && holds(lb, b.n, lo[i], &at)) all[k++] = shared[ns++] = lo[i];
  for (uint32_t i = 0; i < a.n; i++)
    if (holds(lb, b.n, la[i], &at) && !holds(lo, nlo, la[i], &at)) summed[nc++] = la[i];
  tarn_term x = arrange(n, &a, shared, ns, summed, nc, own, &nown);
  memcpy(all + k, own, nown);
  k += nown;
  tarn_term y = arrange(n, &b, shared, ns, summed, nc, own, &nown);
  memcpy(all + k, own, nown);
  k += nown;
  if (k > TARN_MAX_DIMS || k != nlo) im_bad(n, "the product has %u dims, %u are asked for", k, nlo);
  tarn_term c = tarn_cart(n->L, ns, x, y);
  tarn_term r = tarn_compute(n->L, tarn_fn_dot(n->L, im_type(n, ta)), &c, 1);
  uint32_t p[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < nlo; i++) p[i] = holds(all, k, lo[i], &at) ? at : 0;
  return im_permute(n, r, p);
}
