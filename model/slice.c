/* Taking parts: Slice, Split, Gather, Pad, Compress, OneHot. */
#include "model/import.h"
#include <string.h>

/* ---------------------------------------------------------------- Slice */

/* ONNX's (numpy's) rule for one axis; see tarn_slice for what lo, hi, step mean then. */
static tarn_term slice_axis(im_node *n, tarn_term t, uint32_t axis, int64_t start, int64_t end,
                            int64_t step) {
  int64_t len = im_shape(n, t).d[axis];
  if (step == 0) im_bad(n, "a step is zero");
  step = tarn_clamp(step, -IM_MAX_EXTENT, IM_MAX_EXTENT);
  if (start < 0) start += len;
  if (end < 0) end += len;
  start = tarn_clamp(start, 0, step > 0 ? len : len - 1); /* unlike numpy's, also for step < 0 */
  end = step > 0 ? tarn_clamp(end, 0, len) : tarn_clamp(end, -1, len - 1);
  if (len == 0 || (step > 0 ? end <= start : end >= start)) return im_cut(n, t, axis, 0, 0, 1);
  return im_cut(n, t, axis, start, end, step);
}

static tarn_term slice_all(im_node *n, const int64_t *start, const int64_t *end,
                           const int64_t *axes, const int64_t *step, uint32_t k) {
  tarn_term t = im_arg(n, 0);
  uint32_t rank = im_shape(n, t).n;
  if (k > rank) im_bad(n, "%u axes of %u", k, rank);
  for (uint32_t i = 0; i < k; i++)
    t = slice_axis(n, t, axes ? im_axis(n, axes[i], rank) : i, start[i], end[i],
                   step ? step[i] : 1);
  return t;
}

void im_do_slice_by_attributes(im_node *n) {
  uint32_t ks, ke, ka;
  const int64_t *starts = im_attr_ints(n, "starts", &ks), *ends = im_attr_ints(n, "ends", &ke);
  const int64_t *axes = im_attr_ints(n, "axes", &ka);
  if (!starts || !ends || ks != ke || (axes && ka != ks))
    im_bad(n, "starts, ends and axes differ in length");
  im_set(n, 0, slice_all(n, starts, ends, axes, NULL, ks));
}

void im_do_slice(im_node *n) {
  uint32_t ks, ke, ka = 0, kp = 0;
  const int64_t *starts = im_ints(n, 1, "starts", &ks), *ends = im_ints(n, 2, "ends", &ke);
  const int64_t *axes = im_opt(n, 3) != TARN_NONE ? im_ints(n, 3, "axes", &ka) : NULL;
  const int64_t *steps = im_opt(n, 4) != TARN_NONE ? im_ints(n, 4, "steps", &kp) : NULL;
  if (ks != ke || (axes && ka != ks) || (steps && kp != ks))
    im_bad(n, "starts, ends, axes and steps differ in length");
  im_set(n, 0, slice_all(n, starts, ends, axes, steps, ks));
}

/* ---------------------------------------------------------------- Split */

/* Lengths: an input (as of 13), an attribute, or equal parts, of which the last may be shorter (as
 * of 18). */
static const int64_t *lengths(im_node *n, int64_t len) {
  uint32_t k;
  const int64_t *given =
      im_opt(n, 1) != TARN_NONE ? im_ints(n, 1, "split", &k) : im_attr_ints(n, "split", &k);
  int64_t parts = im_attr_int(n, "num_outputs", n->nout);
  if (given && k == n->nout) return given;
  if (given || parts != n->nout || parts < 1) im_bad(n, "%u outputs, %u lengths", n->nout, k);
  int64_t *even = TARN_ARRAY(n->cx, int64_t, n->nout), each = (len + parts - 1) / parts;
  if (len % parts && n->version < 18)
    im_bad(n, "%lld elements do not divide by %lld", (long long)len, (long long)parts);
  for (int64_t i = 0; i < parts; i++) even[i] = tarn_clamp(len - i * each, 0, each);
  return even;
}

void im_do_split(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", 0), d.n);
  const int64_t *len = lengths(n, d.d[axis]);
  int64_t at = 0;
  for (uint32_t i = 0; i < n->nout; i++) {
    if (len[i] < 0 || len[i] > d.d[axis] - at)
      im_bad(n, "the lengths do not add up to %lld", (long long)d.d[axis]);
    im_set(n, i, im_cut(n, x, axis, at, at + len[i], 1));
    at += len[i];
  }
  if (at != d.d[axis]) im_bad(n, "the lengths do not add up to %lld", (long long)d.d[axis]);
}

/* ---------------------------------------------------------------- Gather */

/* A constant whose elements all lie within the axis. */
static bool lies_within(im_node *n, tarn_term index, int64_t extent) {
  const tarn_node *x = tarn_term_get(n->L, index);
  bool within = x->op == TARN_OP_CONST;
  const tarn_tensor *v = within ? tarn_payload_get(n->L, x->payload)->tensor : NULL;
  int64_t at;
  for (int64_t i = 0; within && i < tarn_tensor_count(v); i++)
    within = tarn_index_in(v->dtype, tarn_tensor_get(v, i).i, extent, &at);
  return within;
}

static tarn_term zero_unless(im_node *n, tarn_term index, tarn_term when) {
  return im_el(n, "(select $1 $0 0)", 2, index, when);
}

tarn_term im_index_that_counts(im_node *n, tarn_term index) {
  tarn_term when = n->scope->when;
  return when == TARN_NONE || im_all_known(n) ? index : zero_unless(n, index, when);
}

static tarn_term gather(im_node *n, tarn_term t, uint32_t axis, tarn_term index) {
  tarn_term kids[] = {t, index};
  int64_t a = axis;
  return tarn_mk(n->L, TARN_OP_GATHER, tarn_payload_ints(n->L, 1, &a), kids, 2);
}

tarn_term im_gather(im_node *n, tarn_term t, uint32_t axis, tarn_term index) {
  bool within = n->scope->when != TARN_NONE && lies_within(n, index, im_shape(n, t).d[axis]);
  return gather(n, t, axis, within ? index : im_index_that_counts(n, index));
}

/* index[i] = floor((a·i + b) / d) for all i: the map of a view. Tries the slope over the whole
 * range. */
static bool floor_rule(const int64_t *index, int64_t count, int64_t a, int64_t d, int64_t *b) {
  int64_t lo = INT64_MIN, hi = INT64_MAX; /* lo <= b < hi */
  for (int64_t i = 0; i < count; i++) {
    int64_t low = index[i] * d - a * i, high = low + d;
    lo = low > lo ? low : lo;
    hi = high < hi ? high : hi;
  }
  *b = lo;
  return lo < hi;
}

static tarn_term floor_view(im_node *n, tarn_term t, uint32_t axis, int64_t count, int64_t a,
                            int64_t b, int64_t d) {
  const tarn_type *ty = tarn_term_type(n->L, t);
  tarn_imap m = {.n = ty->n, .ns = ty->n, .nin = ty->n, .fill = TARN_NONE};
  memcpy(m.dim, ty->dim, sizeof m.dim);
  memcpy(m.in, ty->dim, sizeof m.in);
  m.dim[axis] = count;
  for (uint32_t i = 0; i < m.n; i++) m.e[i] = tarn_ix_var(n->L, i, m.dim);
  uint32_t e =
      tarn_ix_add(n->L, tarn_ix_scale(n->L, m.e[axis], a, m.dim), tarn_ix_const(n->L, b), m.dim);
  m.e[axis] = tarn_ix_div(n->L, e, d, m.dim);
  return tarn_view(n->L, tarn_map_intern(n->L, &m), t);
}

tarn_term im_repeat(im_node *n, tarn_term t, uint32_t axis, int64_t each, int64_t count) {
  return each == 1 ? im_cut(n, t, axis, 0, count, 1) : floor_view(n, t, axis, count, 1, 0, each);
}

tarn_term im_take(im_node *n, tarn_term t, uint32_t axis, const int64_t *index, int64_t count) {
  int64_t len = im_shape(n, t).d[axis], b;
  for (int64_t i = 0; i < count; i++)
    if (index[i] < 0 || index[i] >= len)
      im_bad(n, "index %lld is outside an axis of %lld", (long long)index[i], (long long)len);
  if (count == 0) return im_cut(n, t, axis, 0, 0, 1);
  if (count == 1) return im_cut(n, t, axis, index[0], index[0] + 1, 1);
  int64_t step = index[1] - index[0], i = 1;
  while (i < count && index[i] - index[i - 1] == step) i++;
  if (i == count && step != 0)
    return im_cut(n, t, axis, index[0], index[count - 1] + (step > 0 ? 1 : -1), step);
  bool small = len < INT32_MAX && count < IM_MAX_MADE; /* the products below stay in range */
  const int64_t slope[][2] = {
      {0, 1}, {1, count / (len ? len : 1)}, {len, count}, {index[count - 1] - index[0], count - 1}};
  for (int k = 0; small && k < 4; k++)
    if (slope[k][1] > 0 && floor_rule(index, count, slope[k][0], slope[k][1], &b))
      return floor_view(n, t, axis, count, slope[k][0], b, slope[k][1]);
  tarn_tensor *list = im_new(n, TARN_I64, 1, &count);
  memcpy(list->data, index, (size_t)count * sizeof *index);
  return im_gather(n, t, axis, im_const(n, list));
}

#define MAX_KNOWN_INDICES 65536

void im_do_gather(im_node *n) {
  tarn_term x = im_arg(n, 0), index = im_arg(n, 1);
  im_dims d = im_shape(n, x), di = im_shape(n, index);
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", 0), d.n);
  int64_t count = im_count(&di);
  if (tarn_dtype_is_float(im_type(n, index))) im_bad(n, "the indices are not integers");
  if (d.d[axis] == 0 && count) im_bad(n, "indices into an axis of 0");
  if (!n->in[1]->fixed || count > MAX_KNOWN_INDICES) {
    im_set(n, 0, im_gather(n, x, axis, index));
    return;
  }
  const tarn_tensor *known = im_known(n, n->in[1], "the indices");
  int64_t *at = TARN_ARRAY(n->cx, int64_t, count + 1), out[2 * TARN_MAX_DIMS];
  for (int64_t i = 0; i < count; i++) {
    int64_t v = tarn_tensor_get(known, i).i;
    if (tarn_index_in(known->dtype, v, d.d[axis], &at[i])) continue;
    if (n->scope->when == TARN_NONE)
      im_bad(n, "index %lld is outside an axis of %lld", (long long)v, (long long)d.d[axis]);
    n->inner = true; /* an error of the run, if it counts */
    im_set(n, 0, gather(n, x, axis, zero_unless(n, index, n->scope->when)));
    return;
  }
  if (d.n - 1 + di.n > TARN_MAX_DIMS) im_bad(n, "%u dims are too many", d.n - 1 + di.n);
  memcpy(out, d.d, axis * sizeof *out);
  memcpy(out + axis, di.d, di.n * sizeof *out);
  memcpy(out + axis + di.n, d.d + axis + 1, (d.n - axis - 1) * sizeof *out);
  im_set(n, 0, im_reshape(n, im_take(n, x, axis, at, count), d.n - 1 + di.n, out));
}

void im_do_compress(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  bool flat = !im_attr(n, "axis");
  int64_t whole = im_count(&d);
  if (flat) x = im_reshape(n, x, 1, &whole);
  uint32_t axis = flat ? 0 : im_axis(n, im_attr_int(n, "axis", 0), d.n), k = 0;
  const tarn_tensor *keep = im_known(n, n->in[1], "the condition");
  if (keep->dtype != TARN_BOOL || keep->n != 1) im_bad(n, "the condition is not a list of bools");
  int64_t len = im_shape(n, x).d[axis], given = tarn_tensor_count(keep);
  int64_t *at = TARN_ARRAY(n->cx, int64_t, given + 1);
  for (int64_t i = 0; i < given && i < len; i++)
    if (tarn_tensor_get(keep, i).i) at[k++] = i;
  im_set(n, 0, im_take(n, x, axis, at, k));
}

/* Indices that hold depth and every index in range: reals are truncated, NaN is out of range. */
static tarn_term whole_index(im_node *n, int64_t depth) {
  tarn_term index = im_arg(n, 0);
  tarn_dtype t = im_type(n, index);
  im_param none = {"none", 0, depth};
  if (t == TARN_U64) return index;
  if (!tarn_dtype_is_float(t)) return im_cast(n, index, TARN_I64);
  uint32_t f = im_formula(n, "(select (isnan $0) none (cast i64 $0))", TARN_I64, &none, 1);
  return im_map(n, f, &index, 1);
}

/* off where no index matches: an index outside [-depth, depth) matches nowhere. */
void im_do_one_hot(im_node *n) {
  tarn_term values = im_arg(n, 2), index = im_arg(n, 0);
  im_dims d = im_shape(n, index), dv = im_shape(n, values);
  int64_t depth = (int64_t)im_real(n, 1, "depth"), axis = im_attr_int(n, "axis", -1);
  if (dv.n != 1 || dv.d[0] != 2) im_bad(n, "values are not two");
  if (depth < 1 || depth > IM_MAX_MADE) im_bad(n, "depth %lld is out of range", (long long)depth);
  if (d.n == TARN_MAX_DIMS) im_bad(n, "%u dims are too many", d.n + 1);
  uint32_t at = im_axis(n, axis, d.n + 1);
  int64_t dim[TARN_MAX_DIMS];
  for (uint32_t i = 0; i <= d.n; i++) dim[i] = i == at ? depth : 1;
  index = whole_index(n, depth);
  tarn_dtype t = im_type(n, index);
  tarn_term iota = im_reshape(n, im_iota(n, t, depth), d.n + 1, dim);
  memcpy(dim, d.d, at * sizeof *dim);
  dim[at] = 1;
  memcpy(dim + at + 1, d.d + at, (d.n - at) * sizeof *dim);
  im_param p = {"depth", (double)depth, depth};
  const char *same = t == TARN_U64 ? "(eq $0 $1)" : "(or (eq $0 $1) (eq (add $0 depth) $1))";
  tarn_term hit = im_elp(n, same, &p, 1, 2, im_reshape(n, index, d.n + 1, dim), iota);
  tarn_term off = im_reshape(n, im_cut(n, values, 0, 0, 1, 1), 0, dim),
            on = im_reshape(n, im_cut(n, values, 0, 1, 2, 1), 0, dim);
  im_set(n, 0, im_el(n, "(select $0 $1 $2)", 3, hit, on, off));
}

/* ---------------------------------------------------------------- Pad */

/* Continues an axis by its mirror image, its edge, or (wrap) its other end, as often as needed. */
static tarn_term extend(im_node *n, tarn_term t, uint32_t axis, int64_t before, int64_t after,
                        const char *mode) {
  int64_t len = im_shape(n, t).d[axis], total;
  bool reflect = strcmp(mode, "reflect") == 0, edge = strcmp(mode, "edge") == 0;
  if (before < 0 || after < 0) {
    int64_t lo = before < 0 ? -before : 0, hi = after < 0 ? len + after : len;
    if (lo > hi) im_bad(n, "negative padding removes more than there is");
    t = im_cut(n, t, axis, lo, hi, 1);
    before = before < 0 ? 0 : before;
    after = after < 0 ? 0 : after;
    len = hi - lo;
  }
  if (before == 0 && after == 0) return t;
  if (len == 0) im_bad(n, "an empty axis cannot be extended");
  if (before > IM_MAX_MADE || after > IM_MAX_MADE || (total = before + len + after) > IM_MAX_MADE)
    im_bad(n, "padding is too large");
  if (reflect && len == 1) edge = true;
  tarn_term part[3];
  uint32_t k = 0;
  if (reflect && !edge && before < len && after < len) { /* two mirrored slices */
    if (before) part[k++] = im_cut(n, t, axis, before, 0, -1);
    part[k++] = t;
    if (after) part[k++] = im_cut(n, t, axis, len - 2, len - 2 - after, -1);
    return k == 1 ? t : tarn_concat(n->L, axis, part, k);
  }
  int64_t *index = TARN_ARRAY(n->cx, int64_t, total), period = 2 * (len - 1);
  for (int64_t i = 0; i < total; i++) {
    int64_t at = i - before;
    if (edge) index[i] = tarn_clamp(at, 0, len - 1);
    else if (reflect)
      at = ((at % period) + period) % period, index[i] = at < len ? at : period - at;
    else index[i] = ((at % len) + len) % len;
  }
  if (before) part[k++] = im_take(n, t, axis, index, before);
  part[k++] = t;
  if (after) part[k++] = im_take(n, t, axis, index + before + len, after);
  return tarn_concat(n->L, axis, part, k);
}

static tarn_term pad_all(im_node *n, tarn_term t, const int64_t *pads, const int64_t *axes,
                         uint32_t k, im_number value) {
  uint32_t rank = im_shape(n, t).n, seen = 0;
  const char *mode = im_attr_str(n, "mode", "constant");
  bool constant = strcmp(mode, "constant") == 0;
  if (!constant && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 &&
      strcmp(mode, "wrap") != 0)
    im_bad(n, "mode %s is unknown", mode);
  uint32_t fill = tarn_fx_cast(n->L, im_type(n, t), im_number_fx(n, value));
  for (uint32_t i = 0; i < k; i++) {
    uint32_t axis = axes ? im_axis(n, axes[i], rank) : i;
    if (seen >> axis & 1) im_bad(n, "an axis occurs twice");
    seen |= 1u << axis;
    if (pads[i] < -IM_MAX_EXTENT || pads[k + i] < -IM_MAX_EXTENT)
      im_bad(n, "negative padding removes more than there is");
    t = constant ? im_pad_fx(n, t, axis, fill, pads[i], pads[k + i])
                 : extend(n, t, axis, pads[i], pads[k + i], mode);
  }
  return t;
}

void im_do_pad_by_attributes(im_node *n) {
  uint32_t k, rank = im_shape(n, im_arg(n, 0)).n;
  const int64_t *pads = im_attr_ints(n, "pads", &k);
  if (k != 2 * rank) im_bad(n, "%u pads for %u dims", k, rank);
  im_number value = {TARN_F64, {.d = im_attr_real(n, "value", 0)}};
  im_set(n, 0, pad_all(n, im_arg(n, 0), pads, NULL, rank, value));
}

static const im_number zero = {TARN_F64, {.d = 0}};

/* A value that the run has, where a mask that is padded in the same way is false. */
static tarn_term pad_of_run(im_node *n, const int64_t *pads, const int64_t *axes, uint32_t k) {
  tarn_term x = im_arg(n, 0), value = im_arg(n, 2);
  im_dims d = im_shape(n, x), dv = im_shape(n, value);
  if (im_count(&dv) != 1) im_bad(n, "the value is not a single number");
  im_alike(n, 0, 2);
  tarn_term inside = im_fill(n, im_scalar(n, TARN_BOOL, 0, 1), d.n, d.d);
  return im_el(n, "(select $0 $1 $2)", 3, pad_all(n, inside, pads, axes, k, zero),
               pad_all(n, x, pads, axes, k, zero), im_reshape(n, value, 0, dv.d));
}

void im_do_pad(im_node *n) {
  uint32_t k, ka = im_shape(n, im_arg(n, 0)).n;
  const int64_t *pads = im_ints(n, 1, "pads", &k);
  const int64_t *axes = im_opt(n, 3) != TARN_NONE ? im_ints(n, 3, "axes", &ka) : NULL;
  if (k != 2 * (uint64_t)ka) im_bad(n, "%u pads for %u axes", k, ka);
  bool given = im_opt(n, 2) != TARN_NONE && im_attr_is(n, "mode", "constant", "constant");
  if (given && !im_is_known(n, 2)) im_set(n, 0, pad_of_run(n, pads, axes, ka));
  else
    im_set(n, 0,
           pad_all(n, im_arg(n, 0), pads, axes, ka, given ? im_one(n, 2, "the value") : zero));
}
