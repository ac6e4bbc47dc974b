/* Operators that only rearrange, and constants: views, or values computed here. */
#include "model/import.h"
#include <string.h>

/* ---------------------------------------------------------------- constants */

static void constant_list(im_node *n, const Onnx__AttributeProto *a, bool real, bool list) {
  int64_t count = !list ? 1 : (int64_t)(real ? a->n_floats : a->n_ints);
  tarn_tensor *t = im_new(n, real ? TARN_F32 : TARN_I64, list ? 1 : 0, &count);
  for (int64_t i = 0; i < count; i++) {
    tarn_value v = {.d = 0};
    if (real) v.d = (double)(list ? a->floats[i] : a->f);
    else v.i = list ? a->ints[i] : a->i;
    tarn_tensor_set(t, i, v);
  }
  im_set_tensor(n, 0, t);
}

void im_do_constant(im_node *n) {
  static const struct {
    const char *name;
    bool real, list;
  } kinds[] = {{"value_float", true, false},
               {"value_floats", true, true},
               {"value_int", false, false},
               {"value_ints", false, true}};
  const Onnx__AttributeProto *a = im_attr(n, "value");
  if (a) {
    if (!a->t) im_bad(n, "attribute value is not a tensor");
    im_set_tensor(n, 0, im_tensor(n->cx, a->t, n->m->dir, "attribute value"));
    n->out[0].stored = im_stored_name(a->t->data_type) ? a->t->data_type : 0;
    return;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if ((a = im_attr(n, kinds[i].name))) {
      constant_list(n, a, kinds[i].real, kinds[i].list);
      return;
    }
  if ((a = im_attr(n, "sparse_value"))) {
    int32_t stored;
    if (!a->sparse_tensor) im_bad(n, "attribute sparse_value is not a sparse tensor");
    im_set_tensor(n, 0,
                  im_sparse(n->cx, a->sparse_tensor, n->m->dir, "attribute sparse_value", &stored));
    n->out[0].stored = stored;
    return;
  }
  if (im_attr(n, "value_string") || im_attr(n, "value_strings"))
    im_bad(n, "its value is a string: strings are not supported");
  im_bad(n, "no attribute gives its value");
}

static void check_dims(im_node *n, const int64_t *dim, uint32_t k) {
  int64_t count = 1;
  if (k > TARN_MAX_DIMS) im_bad(n, "%u dims, at most %d are supported", k, TARN_MAX_DIMS);
  for (uint32_t i = 0; i < k; i++) {
    if (dim[i] < 0) im_bad(n, "extent %lld", (long long)dim[i]);
    if (dim[i] && __builtin_mul_overflow(count, dim[i], &count))
      im_bad(n, "the product of the extents overflows");
  }
}

void im_do_constant_of_shape(im_node *n) {
  uint32_t k;
  const int64_t *dim = im_ints(n, 0, "the shape", &k);
  const Onnx__AttributeProto *a = im_attr(n, "value");
  check_dims(n, dim, k);
  tarn_term value = im_scalar(n, TARN_F32, 0, 0);
  if (a) {
    if (!a->t) im_bad(n, "attribute value is not a tensor");
    tarn_tensor *t = im_tensor(n->cx, a->t, n->m->dir, "attribute value");
    if (tarn_tensor_count(t) != 1) im_bad(n, "attribute value does not have one element");
    tarn_value v = tarn_tensor_get(t, 0);
    value = im_scalar(n, t->dtype, v.d, v.i);
  }
  im_set(n, 0, im_fill(n, value, k, dim));
  if (a) n->out[0].stored = im_stored_name(a->t->data_type) ? a->t->data_type : 0;
}

/* Steps from start until limit is reached, limit excluded: their exact number. */
static uint64_t steps(tarn_dtype t, int64_t start, int64_t limit, int64_t delta) {
  bool whole = t == TARN_U64, up = whole || delta > 0;
  int64_t lo = up ? start : limit, hi = up ? limit : start;
  uint64_t by = up ? (uint64_t)delta : 0 - (uint64_t)delta;
  if (whole ? (uint64_t)lo >= (uint64_t)hi : lo >= hi) return 0;
  return ((uint64_t)hi - (uint64_t)lo - 1) / by + 1;
}

static void range_of_integers(im_node *n, im_number start, int64_t limit, int64_t delta) {
  if (delta == 0) im_bad(n, "delta is zero");
  uint64_t count = steps(start.t, start.v.i, limit, delta);
  if (count > (uint64_t)IM_MAX_MADE) im_bad(n, "more than %lld elements", (long long)IM_MAX_MADE);
  tarn_tensor *r = im_new(n, start.t, 1, &(int64_t){(int64_t)count});
  for (uint64_t i = 0; i < count; i++)
    tarn_tensor_set(r, (int64_t)i,
                    (tarn_value){.i = (int64_t)((uint64_t)start.v.i + i * (uint64_t)delta)});
  im_set_tensor(n, 0, r);
}

static void range_of_reals(im_node *n, tarn_dtype t, double start, double limit, double delta) {
  if (delta == 0) im_bad(n, "delta is zero");
  double exact = (limit - start) / delta;
  if (!(exact < (double)IM_MAX_MADE)) im_bad(n, "more than %lld elements", (long long)IM_MAX_MADE);
  int64_t count = exact > 0 ? (int64_t)exact : 0;
  if (exact > (double)count) count++;
  tarn_tensor *r = im_new(n, t, 1, &count);
  for (int64_t i = 0; i < count; i++)
    tarn_tensor_set(r, i, (tarn_value){.d = start + (double)i * delta});
  im_set_tensor(n, 0, r);
}

void im_do_range(im_node *n) {
  im_number start = im_one(n, 0, "start"), limit = im_one(n, 1, "limit"),
            delta = im_one(n, 2, "delta");
  if (limit.t != start.t || delta.t != start.t) im_bad(n, "start, limit and delta differ in type");
  if (tarn_dtype_is_float(start.t)) range_of_reals(n, start.t, start.v.d, limit.v.d, delta.v.d);
  else range_of_integers(n, start, limit.v.i, delta.v.i);
}

void im_do_shape(im_node *n) {
  im_dims d = im_shape(n, im_arg(n, 0));
  int64_t rank = d.n, lo = im_attr_int(n, "start", 0), hi = im_attr_int(n, "end", rank);
  if (lo < 0) lo = lo + rank < 0 ? 0 : lo + rank;
  if (hi < 0) hi += rank;
  if (hi > rank) hi = rank;
  int64_t count = hi > lo ? hi - lo : 0;
  tarn_tensor *t = im_new(n, TARN_I64, 1, &count);
  for (int64_t i = 0; i < count; i++) tarn_tensor_set(t, i, (tarn_value){.i = d.d[lo + i]});
  n->m->nfolded++;
  im_set_tensor(n, 0, t);
}

void im_do_size(im_node *n) {
  im_dims d = im_shape(n, im_arg(n, 0));
  tarn_tensor *t = im_new(n, TARN_I64, 0, NULL);
  tarn_tensor_set(t, 0, (tarn_value){.i = im_count(&d)});
  n->m->nfolded++;
  im_set_tensor(n, 0, t);
}

/* ---------------------------------------------------------------- matrices with a diagonal */

/* The view of a matrix that keeps lo <= column - row < hi and is zero elsewhere. */
static tarn_term band(im_node *n, tarn_term t, int64_t lo, int64_t hi) {
  const tarn_type *ty = tarn_term_type(n->L, t);
  tarn_imap m = {.n = ty->n, .ns = ty->n, .nin = ty->n, .nguard = 1};
  tarn_dtype dt = ty->dtype;
  memcpy(m.dim, ty->dim, sizeof m.dim);
  memcpy(m.in, ty->dim, sizeof m.in);
  for (uint32_t i = 0; i < m.n; i++) m.e[i] = tarn_ix_var(n->L, i, m.dim);
  uint32_t row = tarn_ix_scale(n->L, m.e[m.n - 2], -1, m.dim);
  m.guard[0] = (tarn_guard){tarn_ix_add(n->L, m.e[m.n - 1], row, m.dim), lo, hi};
  m.fill = im_fxc(n, dt, 0);
  return tarn_view(n->L, tarn_map_intern(n->L, &m), t);
}

/* The same for a bound that the run has. */
static tarn_term band_of_run(im_node *n, tarn_term x, tarn_term k, bool upper) {
  im_dims d = im_shape(n, x), dk = im_shape(n, k);
  if (im_count(&dk) != 1 || im_type(n, k) != TARN_I64) im_bad(n, "k is not one i64");
  tarn_term row = im_steps(n, d.n - 2, d.n, d.d[d.n - 2]),
            column = im_steps(n, d.n - 1, d.n, d.d[d.n - 1]);
  return im_el(n, upper ? "(select (le $3 (sub $2 $1)) $0 0)" : "(select (le (sub $2 $1) $3) $0 0)",
               4, x, row, column, im_reshape(n, k, 0, dk.d));
}

void im_do_eye_like(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  tarn_dtype t = im_type(n, x);
  int64_t code = im_attr_int(n, "dtype", im_onnx_dtype(t)), k = im_attr_int(n, "k", 0);
  if (d.n != 2) im_bad(n, "%u dims, 2 are needed", d.n);
  if (code < 0 || code > 100 || !im_dtype((int32_t)code, &t))
    im_bad(n, "type %lld is not supported", (long long)code);
  tarn_term ones = im_fill(n, im_scalar(n, t, 1, 1), 2, d.d);
  k = tarn_clamp(k, -IM_MAX_EXTENT, IM_MAX_EXTENT);
  im_set(n, 0, im_count(&d) ? band(n, ones, k, k + 1) : ones);
}

void im_do_trilu(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  bool upper = im_attr_int(n, "upper", 1);
  if (d.n < 2) im_bad(n, "%u dims, at least 2 are needed", d.n);
  if (im_opt(n, 1) != TARN_NONE && !im_is_known(n, 1)) {
    im_set(n, 0, band_of_run(n, x, im_arg(n, 1), upper));
    return;
  }
  int64_t k = im_opt(n, 1) == TARN_NONE ? 0 : im_int(n, 1, "k");
  k = tarn_clamp(k, -IM_MAX_EXTENT, IM_MAX_EXTENT);
  if (im_count(&d) == 0) im_set(n, 0, x);
  else im_set(n, 0, upper ? band(n, x, k, d.d[d.n - 1]) : band(n, x, 1 - d.d[d.n - 2], k + 1));
}

/* ---------------------------------------------------------------- reshapes */

void im_do_identity(im_node *n) {
  im_set(n, 0, im_arg(n, 0));
  if (n->nout) n->out[0].known = n->in[0]->known;
}

void im_do_reshape(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  uint32_t k, hole = TARN_NONE;
  const int64_t *want = im_ints(n, 1, "the shape", &k);
  bool allow_zero = im_attr_int(n, "allowzero", 0);
  int64_t dim[TARN_MAX_DIMS], rest = 1, count = im_count(&d);
  if (k > TARN_MAX_DIMS) im_bad(n, "%u dims, at most %d are supported", k, TARN_MAX_DIMS);
  for (uint32_t i = 0; i < k; i++) {
    dim[i] = want[i];
    if (dim[i] == 0 && !allow_zero) {
      if (i >= d.n) im_bad(n, "dim %u is 0: the input has no such dim to copy", i);
      dim[i] = d.d[i];
    }
    if (dim[i] == -1 && hole == TARN_NONE) hole = i, dim[i] = 1;
    if (dim[i] < 0) im_bad(n, "extent %lld", (long long)dim[i]);
    if (__builtin_mul_overflow(rest, dim[i], &rest))
      im_bad(n, "the product of the extents overflows");
  }
  if (hole != TARN_NONE) {
    if (rest == 0 || count % rest)
      im_bad(n, "%lld elements do not divide by %lld", (long long)count, (long long)rest);
    dim[hole] = count / rest;
    rest = count;
  }
  if (rest != count)
    im_bad(n, "%lld elements do not fit a shape of %lld", (long long)count, (long long)rest);
  im_set(n, 0, im_reshape(n, x, k, dim));
}

void im_do_flatten(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  int64_t axis = im_attr_int(n, "axis", 1), dim[] = {1, 1};
  if (axis < 0) axis += d.n;
  if (axis < 0 || axis > d.n)
    im_bad(n, "axis %lld does not exist in %u dims", (long long)axis, d.n);
  for (uint32_t i = 0; i < d.n; i++) dim[i >= axis] *= d.d[i];
  im_set(n, 0, im_reshape(n, x, 2, dim));
}

/* The axes: an attribute, as of operator set 13 an input. */
static const int64_t *axes_of(im_node *n, uint32_t *k) {
  return im_opt(n, 1) != TARN_NONE ? im_ints(n, 1, "axes", k) : im_attr_ints(n, "axes", k);
}

void im_do_squeeze(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x), r = {0};
  uint32_t k, drop = 0;
  const int64_t *axes = axes_of(n, &k);
  for (uint32_t i = 0; i < k; i++) drop |= 1u << im_axis(n, axes[i], d.n);
  for (uint32_t i = 0; i < d.n; i++) {
    bool gone = axes ? drop >> i & 1 : d.d[i] == 1;
    if (gone && d.d[i] != 1) im_bad(n, "axis %u has extent %lld", i, (long long)d.d[i]);
    if (!gone) r.d[r.n++] = d.d[i];
  }
  im_set(n, 0, im_reshape(n, x, r.n, r.d));
}

void im_do_unsqueeze(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x), r = {0};
  uint32_t k, fresh = 0, from = 0;
  const int64_t *axes = axes_of(n, &k);
  if (k > TARN_MAX_DIMS || d.n + k > TARN_MAX_DIMS) im_bad(n, "%u dims are too many", d.n + k);
  r.n = d.n + k;
  for (uint32_t i = 0; i < k; i++) {
    uint32_t a = 1u << im_axis(n, axes[i], r.n);
    if (fresh & a) im_bad(n, "an axis occurs twice");
    fresh |= a;
  }
  for (uint32_t i = 0; i < r.n; i++) r.d[i] = fresh >> i & 1 ? 1 : d.d[from++];
  im_set(n, 0, im_reshape(n, x, r.n, r.d));
}

void im_do_transpose(im_node *n) {
  tarn_term x = im_arg(n, 0);
  uint32_t rank = im_shape(n, x).n, k, p[TARN_MAX_DIMS], seen = 0;
  const int64_t *perm = im_attr_ints(n, "perm", &k);
  if (perm && k != rank) im_bad(n, "perm has %u entries for %u dims", k, rank);
  for (uint32_t i = 0; i < rank; i++) {
    p[i] = perm ? im_axis(n, perm[i], rank) : rank - 1 - i;
    if (seen >> p[i] & 1) im_bad(n, "perm is not a permutation");
    seen |= 1u << p[i];
  }
  im_set(n, 0, im_permute(n, x, p));
}

void im_do_expand(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x), to = {0};
  const int64_t *want = im_ints(n, 1, "the shape", &to.n);
  check_dims(n, want, to.n);
  memcpy(to.d, want, to.n * sizeof *want);
  if (d.n > to.n) { /* numpy's rule both ways: what is missing counts as 1 */
    memmove(to.d + (d.n - to.n), to.d, to.n * sizeof *want);
    for (uint32_t i = 0; i < d.n - to.n; i++) to.d[i] = 1;
    to.n = d.n;
  }
  for (uint32_t i = 0; i < d.n; i++) {
    int64_t *t = &to.d[to.n - d.n + i];
    if (*t == 1) *t = d.d[i];
  }
  im_set(n, 0, im_broadcast(n, x, &to));
}

/* (…,D,…) -> (…,1,D,…) -> broadcast (…,r,D,…) -> (…,r·D,…), one axis after the other. */
void im_do_tile(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  uint32_t k;
  const int64_t *times = im_ints(n, 1, "repeats", &k);
  if (k != d.n) im_bad(n, "%u repeats for %u dims", k, d.n);
  check_dims(n, times, k);
  for (uint32_t i = 0; i < k; i++) {
    if (times[i] == 1) continue;
    tarn_term t = tarn_insert_axis(n->L, i, x);
    im_dims wide = im_shape(n, t);
    wide.d[i] = times[i];
    if (__builtin_mul_overflow(d.d[i], times[i], &d.d[i]))
      im_bad(n, "the product of the extents overflows");
    x = im_reshape(n, tarn_broadcast(n->L, wide.n, wide.n, wide.d, t), d.n, d.d);
  }
  im_set(n, 0, x);
}

void im_do_concat(im_node *n) {
  tarn_term *t = TARN_ARRAY(n->cx, tarn_term, n->nin);
  uint32_t k = 0;
  int64_t axis = im_attr_int(n, "axis", 0);
  uint32_t a = im_axis(n, axis, im_shape(n, im_arg(n, 0)).n);
  for (uint32_t i = 0; i < n->nin; i++) {
    im_dims d = im_shape(n, t[k] = im_arg(n, i));
    im_alike(n, 0, i);
    if (a >= d.n || d.d[a] != 0 || (k == 0 && i + 1 == n->nin)) k++; /* empty parts add nothing */
  }
  im_set(n, 0, k == 1 ? t[0] : tarn_concat(n->L, a, t, k));
}

static void blocks_of(im_node *n, im_dims *d, int64_t *b) {
  *d = im_shape(n, im_arg(n, 0));
  *b = im_attr_int(n, "blocksize", 0);
  if (d->n != 4) im_bad(n, "%u dims, 4 are needed", d->n);
  if (*b < 1 || *b > 1 << 20) im_bad(n, "blocksize %lld is out of range", (long long)*b);
}

void im_do_depth_to_space(im_node *n) {
  im_dims d;
  int64_t b;
  blocks_of(n, &d, &b);
  bool crd = im_attr_is(n, "mode", "CRD", "DCR");
  if (d.d[1] % (b * b)) im_bad(n, "%lld channels do not divide by the block", (long long)d.d[1]);
  int64_t c = d.d[1] / (b * b), in[] = {d.d[0], crd ? c : b, b, crd ? b : c, d.d[2], d.d[3]};
  int64_t out[] = {d.d[0], c, d.d[2] * b, d.d[3] * b};
  static const uint32_t by_crd[] = {0, 1, 4, 2, 5, 3}, by_dcr[] = {0, 3, 4, 1, 5, 2};
  check_dims(n, out, 4);
  im_set(n, 0,
         im_reshape(n, im_permute(n, im_reshape(n, im_arg(n, 0), 6, in), crd ? by_crd : by_dcr), 4,
                    out));
}

void im_do_space_to_depth(im_node *n) {
  im_dims d;
  int64_t b;
  blocks_of(n, &d, &b);
  if (d.d[2] % b || d.d[3] % b)
    im_bad(n, "%lld by %lld does not divide by the block", (long long)d.d[2], (long long)d.d[3]);
  int64_t in[] = {d.d[0], d.d[1], d.d[2] / b, b, d.d[3] / b, b},
          out[] = {d.d[0], d.d[1] * b * b, d.d[2] / b, d.d[3] / b};
  static const uint32_t by_dcr[] = {0, 3, 5, 1, 2, 4}, by_crd[] = {0, 1, 3, 5, 2, 4};
  const uint32_t *p = im_attr_is(n, "mode", "CRD", "DCR") ? by_crd : by_dcr;
  check_dims(n, out, 4);
  im_set(n, 0, im_reshape(n, im_permute(n, im_reshape(n, im_arg(n, 0), 6, in), p), 4, out));
}

/* ---------------------------------------------------------------- dropout: nothing, in inference
 */

static void pass_through(im_node *n) {
  im_dims d = im_shape(n, im_arg(n, 0));
  im_set(n, 0, im_arg(n, 0));
  if (n->nout > 1) im_set(n, 1, im_fill(n, im_scalar(n, TARN_BOOL, 0, 1), d.n, d.d));
}

void im_do_dropout_by_attributes(im_node *n) {
  im_attr_ignore(n, "ratio");
  pass_through(n);
  /* the mask had the type of the data before operator set 10 */
  if (n->nout > 1 && n->version < 10)
    n->out[1].t = im_cast(n, n->out[1].t, im_type(n, im_arg(n, 0)));
}

void im_do_dropout(im_node *n) {
  im_attr_ignore(n, "seed");
  bool training = im_opt(n, 2) != TARN_NONE && im_real(n, 2, "training_mode") != 0;
  if (training && (im_opt(n, 1) == TARN_NONE || im_real(n, 1, "ratio") != 0))
    im_bad(n, "dropout in training mode is random");
  pass_through(n);
}
