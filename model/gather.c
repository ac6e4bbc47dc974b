/* Gathers by several indices: flat ones are computed, and one gather reads rows.  An index out of
 * range makes a flat one that is, so that the run is refused as with Gather.  Other operators'
 * indices and lengths are refused in the same way. */
#include "model/import.h"
#include <string.h>

/* A flat index while it is put together. */
typedef struct flat {
  im_node *n;
  tarn_term at, wrong; /* TARN_NONE: 0, false */
} flat;

static tarn_term both(im_node *n, const char *text, tarn_term a, tarn_term b) {
  return a == TARN_NONE ? b : im_el(n, text, 2, a, b);
}

/* at := at · extent + i */
static void add_index(flat *f, tarn_term i, int64_t extent) {
  im_param p[] = {{"extent", 0, extent}};
  f->at = f->at == TARN_NONE ? i : im_elp(f->n, "(add (mul $0 extent) $1)", p, 1, 2, f->at, i);
}

/* An index as i64, in which a u64 that is too large is negative. */
static tarn_term as_index(im_node *n, tarn_term i) {
  tarn_dtype t = im_type(n, i);
  if (tarn_dtype_is_float(t) || t == TARN_BOOL) im_bad(n, "the indices are not integers");
  return im_cast(n, i, TARN_I64);
}

/* An index that is given, from 0 on. */
static void add_counted(flat *f, tarn_term i, int64_t extent) {
  im_param p[] = {{"extent", 0, extent}};
  tarn_term wrong = im_elp(f->n, "(or (lt $0 0) (le extent $0))", p, 1, 1, i);
  f->wrong = both(f->n, "(or $0 $1)", f->wrong, wrong);
  add_index(f, i, extent);
}

/* A negative one of a signed type counts from the end. */
static void add_given(flat *f, tarn_term i, int64_t extent) {
  im_param p[] = {{"extent", 0, extent}};
  bool can_count_back = tarn_dtype_is_signed(im_type(f->n, i));
  i = as_index(f->n, i);
  if (can_count_back) i = im_elp(f->n, "(select (lt $0 0) (add $0 extent) $0)", p, 1, 1, i);
  add_counted(f, i, extent);
}

static tarn_term finished(const flat *f) {
  im_param p[] = {{"nowhere", 0, INT64_MAX}};
  if (f->wrong == TARN_NONE) return f->at;
  return im_elp(f->n, "(select $1 nowhere $0)", p, 1, 2, f->at, f->wrong);
}

static int64_t product(const im_dims *d, uint32_t from, uint32_t to) {
  int64_t count = 1;
  for (uint32_t i = from; i < to; i++) count *= d->d[i];
  return count;
}

/* The first k dims as one. */
static tarn_term rows(im_node *n, tarn_term x, uint32_t k) {
  im_dims d = im_shape(n, x), r = {.n = d.n - k + 1};
  r.d[0] = product(&d, 0, k);
  memcpy(r.d + 1, d.d + k, (d.n - k) * sizeof *r.d);
  return im_reshape(n, x, r.n, r.d);
}

tarn_term im_rows(im_node *n, tarn_term x, tarn_term index) {
  flat f = {n, TARN_NONE, TARN_NONE};
  add_counted(&f, as_index(n, index), im_shape(n, x).d[0]);
  return im_gather(n, x, 0, finished(&f));
}

tarn_term im_along(im_node *n, tarn_term x, uint32_t axis, tarn_term index) {
  im_dims d = im_shape(n, x);
  flat f = {n, TARN_NONE, TARN_NONE};
  for (uint32_t i = 0, at = 0; i < d.n; i++)
    if (i == axis) add_counted(&f, as_index(n, index), d.d[i]);
    else add_index(&f, im_steps(n, at++, d.n - 1, d.d[i]), d.d[i]);
  return im_gather(n, rows(n, x, d.n), 0, finished(&f));
}

tarn_term im_by_axis(im_node *n, tarn_term number, uint32_t count,
                     tarn_term (*make)(im_node *n, uint32_t axis)) {
  tarn_term each[TARN_MAX_DIMS];
  im_dims d = im_shape(n, number);
  if (im_count(&d) != 1 || count == 0 || tarn_dtype_is_float(im_type(n, number)))
    im_bad(n, "the axis is not one integer of %u", count);
  for (uint32_t i = 0; i < count; i++) {
    each[i] = make(n, i);
    im_val a = {.t = each[0]}, b = {.t = each[i]};
    if (!im_same_kind(n, &a, &b))
      im_bad(n, "the axis depends on the inputs of the model, and the shape on the axis: bind what "
                "decides it with --set");
  }
  return im_gather(n, im_stack(n, 0, each, count), 0, im_reshape(n, number, 0, d.d));
}

/* Adds an element that is 0; one behind the last is read for an index that is out of range. */
tarn_term im_within(im_node *n, tarn_term index, int64_t least, int64_t most) {
  im_param p[] = {{"least", 0, least}, {"most", 0, most}};
  tarn_term i = as_index(n, index), table = im_iota(n, TARN_I64, 2);
  tarn_term at = im_elp(n, "(select (or (lt $0 least) (lt most $0)) 2 0)", p, 2, 1, i);
  return im_el(n, "(add $0 $1)", 2, i, im_gather(n, table, 0, at));
}

void im_do_gather_elements(im_node *n) {
  tarn_term x = im_arg(n, 0), index = im_arg(n, 1);
  im_dims d = im_shape(n, index), dx = im_shape(n, x);
  if (d.n != dx.n || d.n == 0) im_bad(n, "the indices have %u dims, the data %u", d.n, dx.n);
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", 0), d.n);
  flat f = {n, TARN_NONE, TARN_NONE};
  for (uint32_t i = 0; i < d.n; i++) {
    if (i != axis && d.d[i] > dx.d[i])
      im_bad(n, "the indices are larger than the data along axis %u", i);
    if (i == axis) add_given(&f, index, dx.d[i]);
    else add_index(&f, im_steps(n, i, d.n, d.d[i]), dx.d[i]);
  }
  im_set(n, 0, im_gather(n, rows(n, x, d.n), 0, im_broadcast(n, finished(&f), &d)));
}

void im_do_gather_nd(im_node *n) {
  tarn_term x = im_arg(n, 0), index = im_arg(n, 1);
  im_dims dx = im_shape(n, x), d = im_shape(n, index);
  int64_t batch = im_attr_int(n, "batch_dims", 0), width = d.n ? d.d[d.n - 1] : 0;
  if (d.n < 1 || batch < 0 || batch >= d.n || batch >= dx.n || width < 1 || width > dx.n - batch)
    im_bad(n, "data of %u dims, indices of %u, batch_dims %lld", dx.n, d.n, (long long)batch);
  flat f = {n, TARN_NONE, TARN_NONE};
  uint32_t rank = d.n - 1;
  for (uint32_t i = 0; i < batch; i++) {
    if (dx.d[i] != d.d[i]) im_bad(n, "batch extents differ");
    add_index(&f, im_steps(n, i, rank, d.d[i]), dx.d[i]);
  }
  for (uint32_t k = 0; k < width; k++) add_given(&f, im_pick(n, index, rank, k), dx.d[batch + k]);
  uint32_t used = (uint32_t)(batch + width);
  if (rank + dx.n - used > TARN_MAX_DIMS) im_bad(n, "more than %d dims", TARN_MAX_DIMS);
  im_set(n, 0, im_gather(n, rows(n, x, used), 0, finished(&f)));
}

/* The first `length` elements along one of the first two axes backwards, a length for each index of
 * the other. */
tarn_term im_reversed(im_node *n, tarn_term x, tarn_term length, uint32_t time) {
  im_dims d = im_shape(n, x);
  uint32_t batch = 1 - time;
  if (d.n < 2) im_bad(n, "%u dims, at least 2 are needed", d.n);
  int64_t t = d.d[time], by[] = {1, 1};
  im_dims dl = im_shape(n, length);
  if (dl.n != 1 || dl.d[0] != d.d[batch])
    im_bad(n, "there is not one length for each of %lld", (long long)d.d[batch]);
  by[batch] = dl.d[0];
  length = im_reshape(n, im_cast(n, length, TARN_I64), 2, by);
  im_param p[] = {{"most", 0, t}};
  flat f = {n, TARN_NONE, im_elp(n, "(or (lt $0 0) (lt most $0))", p, 1, 1, length)};
  tarn_term at =
      im_el(n, "(select (lt $0 $1) (sub (sub $1 1) $0) $0)", 2, im_steps(n, time, 2, t), length);
  for (uint32_t i = 0; i < 2; i++)
    add_index(&f, i == time ? at : im_steps(n, i, 2, d.d[i]), d.d[i]);
  return im_gather(n, rows(n, x, 2), 0, finished(&f));
}

void im_do_reverse_sequence(im_node *n) {
  int64_t time = im_attr_int(n, "time_axis", 0), batch = im_attr_int(n, "batch_axis", 1);
  if (time < 0 || time > 1 || batch != 1 - time)
    im_bad(n, "time_axis %lld with batch_axis %lld", (long long)time, (long long)batch);
  im_set(n, 0, im_reversed(n, im_arg(n, 0), im_arg(n, 1), (uint32_t)time));
}
