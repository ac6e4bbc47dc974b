/* Kernels that move elements by index: GatherElements, GatherND, ScatterElements, ScatterND,
 * ReverseSequence, TopK. */
#include "runtime/ref/ref_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void copy(const tarn_ref_tensor *to, int64_t at, const tarn_ref_tensor *from,
                 int64_t from_at, int64_t count) {
  size_t size = ref_size(to->dtype);
  if (count > 0)
    memcpy((char *)to->data + (size_t)at * size, (const char *)from->data + (size_t)from_at * size,
           (size_t)count * size);
}

/* Where in `data` element `flat` of `index` (same rank, no larger but along axis) stands, with its
 * own coordinate along the axis replaced by v. */
static int64_t replaced(const tarn_ref_tensor *data, const tarn_ref_tensor *index, int64_t flat,
                        int32_t axis, int64_t v) {
  int64_t at = 0, stride = 1;
  for (int32_t i = data->n - 1; i >= 0; i--) {
    int64_t c = flat % index->dim[i];
    flat /= index->dim[i];
    at += (i == axis ? v : c) * stride;
    stride *= data->dim[i];
  }
  return at;
}

int ref_gather_elements(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *index = &c->in[1];
  int32_t axis = ref_axis(c, 0, x->n);
  if (axis < 0) return ref_fail(c, "axis out of range");
  for (int64_t i = 0, count = ref_count(index); i < count; i++) {
    int64_t v;
    if (!ref_index(index, i, x->dim[axis], &v)) return ref_outside(c, "an index");
    copy(&c->out[0], i, x, replaced(x, index, i, axis, v), 1);
  }
  return 0;
}

/* How an update joins what is there. */
typedef enum way { NONE, ADD, MUL, MAX, MIN, UNKNOWN } way;
static way way_of(tarn_ref_call *c) {
  static const char *const name[] = {"none", "add", "mul", "max", "min"};
  const char *how = ref_str(c, "reduction", "none");
  int i = NONE;
  while (i < UNKNOWN && strcmp(name[i], how) != 0) i++;
  return (way)i;
}

static double joined(way how, double old, double add) {
  switch (how) {
  case ADD: return old + add;
  case MUL: return old * add;
  case MAX: return old > add ? old : add;
  case MIN: return old < add ? old : add;
  default: return add;
  }
}

/* A key that orders integers of a type as int64_t does: a u64 is held by its bits. */
static int64_t ordered(int32_t dtype, int64_t v) {
  return dtype == TARN_REF_U64 ? v ^ INT64_MIN : v;
}

static int64_t joined_int(int32_t dtype, way how, int64_t old, int64_t add) {
  if (how == ADD) return (int64_t)((uint64_t)old + (uint64_t)add);
  if (how == MUL) return (int64_t)((uint64_t)old * (uint64_t)add);
  bool more = ordered(dtype, old) > ordered(dtype, add);
  return more == (how == MAX) ? old : add;
}

static void add_floats(float *y, const float *u, int64_t count) {
  typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
  int64_t k = 0;
  for (; k + 4 <= count; k += 4) *(four *)(y + k) += *(const four *)(u + k);
  for (; k < count; k++) y[k] += u[k];
}

/* A double's sum or product of two floats, rounded, is theirs. */
static void join_floats(float *y, const float *u, int64_t count, way how) {
  switch (how) {
  case ADD: add_floats(y, u, count); break;
  case MUL:
    for (int64_t k = 0; k < count; k++) y[k] *= u[k];
    break;
  default:
    for (int64_t k = 0; k < count; k++) y[k] = (float)joined(how, (double)y[k], (double)u[k]);
  }
}

static void join(const tarn_ref_tensor *y, int64_t at, const tarn_ref_tensor *u, int64_t from,
                 int64_t count, way how) {
  if (how == NONE) copy(y, at, u, from, count);
  else if (y->dtype == TARN_REF_F32)
    join_floats((float *)y->data + at, (const float *)u->data + from, count, how);
  else if (y->dtype <= TARN_REF_BF16)
    for (int64_t k = 0; k < count; k++)
      ref_set(y, at + k, joined(how, ref_get(y, at + k), ref_get(u, from + k)));
  else
    for (int64_t k = 0; k < count; k++)
      ref_set_int(y, at + k,
                  joined_int(y->dtype, how, ref_get_int(y, at + k), ref_get_int(u, from + k)));
}

int ref_scatter_elements(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *index = &c->in[1], *u = &c->in[2];
  int32_t axis = ref_axis(c, 0, x->n);
  way how = way_of(c);
  if (axis < 0) return ref_fail(c, "axis out of range");
  if (how == UNKNOWN) return ref_fail(c, "an unknown reduction");
  copy(&c->out[0], 0, x, 0, ref_count(x));
  for (int64_t i = 0, count = ref_count(index); i < count; i++) {
    int64_t v;
    if (!ref_index(index, i, x->dim[axis], &v)) return ref_outside(c, "an index");
    join(&c->out[0], replaced(x, index, i, axis, v), u, i, 1, how);
  }
  return 0;
}

/* The offset of the block that tuple `row` of index names in x, after `batch` leading dims. -1: out
 * of range. */
static int64_t block_of(const tarn_ref_tensor *x, const tarn_ref_tensor *index, int64_t row,
                        int32_t batch) {
  int64_t width = index->dim[index->n - 1], at = 0;
  for (int64_t k = 0; k < width; k++) {
    int64_t v, extent = x->dim[batch + k];
    if (!ref_index(index, row * width + k, extent, &v)) return -1;
    at = at * extent + v;
  }
  return at * ref_span(x, batch + (int32_t)width, x->n);
}

int ref_gather_nd(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *index = &c->in[1];
  int32_t batch = (int32_t)ref_int(c, "batch_dims", 0);
  int64_t block = ref_span(x, batch + (int32_t)index->dim[index->n - 1], x->n),
          per = ref_span(x, batch, x->n);
  int64_t rows = ref_span(index, 0, index->n - 1), in_batch = ref_span(index, batch, index->n - 1);
  for (int64_t r = 0; r < rows; r++) {
    int64_t at = block_of(x, index, r, batch);
    if (at < 0) return ref_outside(c, "an index");
    copy(&c->out[0], r * block, x, r / in_batch * per + at, block);
  }
  return 0;
}

int ref_scatter_nd(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *index = &c->in[1], *u = &c->in[2];
  int64_t block = ref_span(x, (int32_t)index->dim[index->n - 1], x->n),
          rows = ref_span(index, 0, index->n - 1);
  way how = way_of(c);
  if (how == UNKNOWN) return ref_fail(c, "an unknown reduction");
  copy(&c->out[0], 0, x, 0, ref_count(x));
  for (int64_t r = 0; r < rows; r++) {
    int64_t at = block_of(x, index, r, 0);
    if (at < 0) return ref_outside(c, "an index");
    join(&c->out[0], at, u, r * block, block, how);
  }
  return 0;
}

int ref_reverse_sequence(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *len = &c->in[1];
  int64_t b = ref_int(c, "batch_axis", 1), t = ref_int(c, "time_axis", 0);
  if (x->n < 2 || b < 0 || t < 0 || b > 1 || t > 1 || b == t || len->n != 1 ||
      len->dim[0] != x->dim[b])
    return ref_fail(c, "axes or lengths do not fit");
  int64_t block = ref_span(x, 2, x->n), stride[2] = {x->dim[1] * block, block};
  for (int64_t i = 0; i < x->dim[b]; i++) {
    int64_t n = ref_get_int(len, i);
    if (n < 0 || n > x->dim[t]) return ref_outside(c, "a length");
    for (int64_t k = 0; k < x->dim[t]; k++) {
      int64_t from = k < n ? n - 1 - k : k;
      copy(&c->out[0], i * stride[b] + k * stride[t], x, i * stride[b] + from * stride[t], block);
    }
  }
  return 0;
}

/* ---------------------------------------------------------------- TopK */

typedef struct item {
  double real;
  int64_t whole, at;
} item;

/* Larger first (values negated for the smallest); equal values by position. */
static int larger(const void *pa, const void *pb) {
  const item *a = pa, *b = pb;
  if (a->real != b->real) return a->real > b->real ? -1 : 1;
  if (a->whole != b->whole) return a->whole > b->whole ? -1 : 1;
  return a->at < b->at ? -1 : a->at > b->at;
}

/* NaN is larger than infinity. */
static item item_of(const tarn_ref_tensor *x, int64_t from, int64_t at, bool most) {
  bool real = x->dtype <= TARN_REF_BF16;
  double r = real ? ref_get(x, from) : 0;
  int64_t w = real ? isnan(r) : ordered(x->dtype, ref_get_int(x, from));
  if (isnan(r)) r = INFINITY;
  return (item){most ? r : -r, most ? w : ~w, at};
}

static bool is_better(const item *a, const item *b) { return larger(a, b) < 0; }
/* Lets item i of a heap, whose first item is the worst, sink to where it belongs. */
static void sink(item *heap, int64_t n, int64_t i) {
  item x = heap[i];
  for (int64_t kid; (kid = 2 * i + 1) < n; i = kid) {
    if (kid + 1 < n && is_better(&heap[kid], &heap[kid + 1])) kid++;
    if (!is_better(&x, &heap[kid])) break;
    heap[i] = heap[kid];
  }
  heap[i] = x;
}
/* From i on, the next float that may be better than the worst of the best: most are not, and cost a
 * comparison. */
static int64_t next_of(const float *v, int64_t by, int64_t i, int64_t len, const item *worst,
                       bool most) {
  float bound = v[worst->at * by]; /* a NaN skips none */
  if (most)
    while (i < len && v[i * by] <= bound) i++;
  else
    while (i < len && v[i * by] >= bound) i++;
  return i;
}
/* The best k of len items, sorted: len comparisons and few more where k is much less. */
static void best_of(item *best, int64_t k, const tarn_ref_tensor *x, int64_t base, int64_t by,
                    int64_t len, bool most) {
  for (int64_t i = 0; i < k; i++) best[i] = item_of(x, base + i * by, i, most);
  for (int64_t i = k / 2; i-- > 0 && k < len;) sink(best, k, i);
  const float *f = x->dtype == TARN_REF_F32 ? (const float *)x->data + base : NULL;
  for (int64_t i = k; i < len && k > 0; i++) {
    if (f && (i = next_of(f, by, i, len, &best[0], most)) == len) break;
    item v = item_of(x, base + i * by, i, most);
    if (!is_better(&v, &best[0])) continue;
    best[0] = v;
    sink(best, k, 0);
  }
  qsort(best, (size_t)k, sizeof *best, larger);
}

int ref_top_k(tarn_ref_call *c) {
  const tarn_ref_tensor *x = &c->in[0], *y = &c->out[0], *index = c->nout > 1 ? &c->out[1] : NULL;
  int32_t axis = ref_axis(c, -1, x->n);
  if (axis < 0) return ref_fail(c, "axis out of range");
  int64_t len = x->dim[axis], k = y->dim[axis], inner = ref_span(x, axis + 1, x->n),
          outer = ref_span(x, 0, axis);
  bool most = ref_int(c, "largest", 1);
  item *list = malloc((size_t)(k ? k : 1) * sizeof *list);
  if (!list) return ref_fail(c, "out of memory");
  for (int64_t o = 0; o < outer * inner; o++) {
    int64_t base = o / inner * len * inner + o % inner, to = o / inner * k * inner + o % inner;
    best_of(list, k, x, base, inner, len, most);
    for (int64_t i = 0; i < k; i++) {
      copy(y, to + i * inner, x, base + list[i].at * inner, 1);
      if (index && index->data) ref_set_int(index, to + i * inner, list[i].at);
    }
  }
  free(list);
  return 0;
}
