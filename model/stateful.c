/* Operators that carry a state from call to call: a cache that is written in place of some rows, a
 * causal convolution, linear attention.  Source: the operator specifications of ONNX 1.23. */
#include "model/import.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- TensorScatter */

/* (batch, position): which row of the update lies there, as it is counted from where it starts. */
static tarn_term row_of_update(im_node *n, int64_t batch, int64_t extent, int64_t rows) {
  tarn_term at = im_steps(n, 1, 2, extent), start = im_opt(n, 2);
  bool circular = im_attr_is(n, "mode", "circular", "linear");
  im_param p[] = {{"extent", 0, extent}};
  if (start == TARN_NONE) return at;
  im_dims d = im_shape(n, start);
  if (d.n != 1 || d.d[0] != batch) im_bad(n, "write_indices is not one index for each sample");
  if (!circular) start = im_within(n, start, 0, extent - rows);
  start = im_reshape(n, im_cast(n, start, TARN_I64), 2, (int64_t[]){batch, 1});
  return im_elp(n, circular ? "(mod (sub $0 $1) extent)" : "(sub $0 $1)", p, 1, 2, at, start);
}

/* Two axes change places. */
static tarn_term swapped(im_node *n, tarn_term x, uint32_t a, uint32_t b) {
  uint32_t p[TARN_MAX_DIMS], rank = im_shape(n, x).n;
  for (uint32_t i = 0; i < rank; i++) p[i] = i;
  p[a] = b, p[b] = a;
  return im_permute(n, x, p);
}

static void check_update(const im_node *n, const im_dims *x, const im_dims *u, uint32_t axis) {
  bool fits = x->n == u->n && axis > 0 && u->d[axis] <= x->d[axis];
  for (uint32_t i = 0; fits && i < x->n; i++) fits = i == axis || x->d[i] == u->d[i];
  if (!fits) im_bad(n, "the update does not fit into the cache along axis %u", axis);
}

/* The cache with the axis behind the batch: each position reads the update's row, or keeps its own.
 */
void im_do_tensor_scatter(im_node *n) {
  tarn_term past = im_arg(n, 0), update = im_arg(n, 1);
  im_dims d = im_shape(n, past), du = im_shape(n, update);
  uint32_t axis = d.n < 2 ? 0 : im_axis(n, im_attr_int(n, "axis", -2), d.n);
  check_update(n, &d, &du, axis);
  tarn_term row = row_of_update(n, d.d[0], d.d[axis], du.d[axis]);
  if (im_count(&du) == 0) {
    im_set(n, 0, past);
    return;
  }
  past = swapped(n, past, 1, axis), update = swapped(n, update, 1, axis);
  im_param p[] = {{"rows", 0, du.d[axis]}, {"last", 0, du.d[axis] - 1}};
  tarn_term inside = im_elp(n, "(and (le 0 $0) (lt $0 rows))", p, 2, 1, row);
  row = im_elp(n, "(add (max 0 (min last $0)) (mul rows $1))", p, 2, 2, row,
               im_steps(n, 0, 2, d.d[0]));
  im_dims f = im_shape(n, update), mask = {.n = d.n};
  memmove(f.d + 1, f.d + 2, (f.n - 2u) * sizeof *f.d);
  f.d[0] = du.d[0] * du.d[axis];
  tarn_term taken = im_gather(n, im_reshape(n, update, d.n - 1, f.d), 0, row);
  for (uint32_t i = 0; i < d.n; i++) mask.d[i] = 1;
  mask.d[0] = im_shape(n, inside).d[0], mask.d[1] = d.d[axis];
  inside = im_reshape(n, inside, d.n, mask.d);
  im_set(n, 0, swapped(n, im_el(n, "(select $0 $1 $2)", 3, inside, taken, past), 1, axis));
}

/* ---------------------------------------------------------------- CausalConvWithState */

static tarn_term activated(im_node *n, tarn_term y) {
  const char *name = im_attr_str(n, "activation", "none");
  if (strcmp(name, "none") == 0) return y;
  if (strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
    im_bad(n, "activation %s is unknown", name);
  return im_el(n, "(div $0 (add 1 (exp (neg $0))))", 1, y);
}

/* (batch, channels, length) behind the last k - 1 positions of what came before, or zeros. */
void im_do_causal_conv(im_node *n) {
  tarn_term x = im_arg(n, 0), w = im_arg(n, 1), bias = im_opt(n, 2), past = im_opt(n, 3);
  im_dims d = im_shape(n, x), dw = im_shape(n, w);
  if (d.n != 3 || dw.n != 3 || dw.d[0] != d.d[1] || dw.d[1] != 1 || dw.d[2] < 1)
    im_bad(n, "the input is not (batch, channels, length), or the weights not (channels, 1, k)");
  int64_t k = dw.d[2];
  tarn_term all[] = {past, x};
  if (past == TARN_NONE) x = im_pad(n, x, 2, 0, k - 1, 0);
  else x = im_concat(n, 2, all, 2);
  im_dims da = im_shape(n, x);
  if (da.d[2] != d.d[2] + k - 1)
    im_bad(n, "past_state does not have k - 1 = %lld", (long long)k - 1);
  if (n->nout > 1) im_set(n, 1, im_cut(n, x, 2, d.d[2], d.d[2] + k - 1, 1));
  if (d.d[2] == 0) {
    im_set(n, 0, im_arg(n, 0));
    return;
  }
  im_window win;
  im_window_read(n, &win, &da, &k, false);
  tarn_term y = im_conv(n, x, w, d.d[1], &win);
  if (bias != TARN_NONE) y = im_el(n, "(add $0 $1)", 2, y, im_channel(n, bias, 3));
  im_set(n, 0, activated(n, y));
}

/* ---------------------------------------------------------------- LinearAttention */

typedef struct linear {
  im_node *n;
  int64_t batch, time, heads, kv; /* heads of the queries, of keys and values */
  int64_t dk, dv;
  bool gated, delta;
  tarn_term q, k, v, decay, beta; /* (batch, time, heads of its own, width) */
} linear;

static tarn_term by_head(const linear *a, tarn_term x, int64_t heads, const char *what) {
  im_dims d = im_shape(a->n, x);
  if (d.n != 3 || d.d[0] != a->batch || d.d[1] != a->time || heads < 1 || d.d[2] % heads)
    im_bad(a->n, "%s is not (batch, time, heads x width)", what);
  int64_t dim[] = {a->batch, a->time, heads, d.d[2] / heads};
  return im_reshape(a->n, x, 4, dim);
}

/* One of each head, one of each element of a key, or one for all heads. */
static tarn_term of_rule(const linear *a, uint32_t input, bool needed, const char *what) {
  tarn_term x = im_opt(a->n, input);
  if (!needed) return TARN_NONE;
  if (x == TARN_NONE) im_bad(a->n, "the rule needs %s", what);
  im_dims d = im_shape(a->n, x);
  return by_head(a, x, d.n == 3 && d.d[2] == 1 ? 1 : a->kv, what);
}

static linear linear_of(im_node *n) {
  const char *rule = im_attr_str(n, "update_rule", "gated_delta");
  im_dims d = im_shape(n, im_arg(n, 0));
  linear a = {.n = n, .heads = im_attr_int(n, "q_num_heads", 0)};
  a.kv = im_attr_int(n, "kv_num_heads", 0);
  if (d.n != 3) im_bad(n, "the query has %u dims, 3 are needed", d.n);
  a.batch = d.d[0], a.time = d.d[1];
  a.gated = strncmp(rule, "gated", 5) == 0, a.delta = strstr(rule, "delta") != NULL;
  if (!a.gated && !a.delta && strcmp(rule, "linear") != 0) im_bad(n, "rule %s is unknown", rule);
  if (a.kv < 1 || a.heads % a.kv) im_bad(n, "q_num_heads is no multiple of kv_num_heads");
  im_attr_ignore(n, "chunk_size");
  a.q = by_head(&a, im_arg(n, 0), a.heads, "query");
  a.k = by_head(&a, im_arg(n, 1), a.kv, "key");
  a.v = by_head(&a, im_arg(n, 2), a.kv, "value");
  a.dk = im_shape(n, a.k).d[3], a.dv = im_shape(n, a.v).d[3];
  a.decay = of_rule(&a, 4, a.gated, "decay");
  a.beta = of_rule(&a, 5, a.delta, "beta");
  return a;
}

/* Step t of (batch, time, heads, width) as (batch, heads, width, 1) or (batch, heads, 1, width). */
static tarn_term step(const linear *a, tarn_term x, int64_t t, bool row) {
  x = im_pick(a->n, x, 1, t);
  im_dims d = im_shape(a->n, x);
  int64_t dim[] = {d.d[0], d.d[1], row ? 1 : d.d[2], row ? d.d[2] : 1};
  return im_reshape(a->n, x, 4, dim);
}

/* Sum over the state's rows: (batch, heads, dk, dv), (batch, heads, dk) -> (batch, heads, dv). */
static tarn_term read_state(const linear *a, tarn_term s, tarn_term key) {
  static const uint8_t ls[] = {0, 1, 2, 3}, lk[] = {0, 1, 2}, lo[] = {0, 1, 3};
  return im_contract(a->n, s, ls, key, lk, lo, 3);
}

static tarn_term next_state(const linear *a, tarn_term s, int64_t t) {
  im_node *n = a->n;
  tarn_term k = step(a, a->k, t, false), v = step(a, a->v, t, true);
  if (a->gated) s = im_el(n, "(mul $0 (exp $1))", 2, s, step(a, a->decay, t, false));
  if (a->delta) {
    int64_t row[] = {a->batch, a->kv, 1, a->dv};
    tarn_term was = im_reshape(n, read_state(a, s, im_pick(n, a->k, 1, t)), 4, row);
    v = im_el(n, "(mul $2 (sub $0 $1))", 3, v, was, step(a, a->beta, t, true));
  }
  return im_el(n, "(add $0 (mul $1 $2))", 3, s, k, v);
}

/* Queries of one step, a group for each head of the keys: (batch, heads · dv). */
static tarn_term answer(const linear *a, tarn_term s, int64_t t, double scale) {
  im_node *n = a->n;
  int64_t group[] = {a->batch, a->kv, a->heads / a->kv, a->dk},
          flat[] = {a->batch, a->heads * a->dv};
  static const uint8_t ls[] = {0, 1, 2, 3}, lq[] = {0, 1, 4, 2}, lo[] = {0, 1, 4, 3};
  im_param p[] = {{"scale", scale, 0}};
  tarn_term q = im_reshape(n, im_pick(n, a->q, 1, t), 4, group);
  tarn_term y = im_contract(n, q, lq, s, ls, lo, 4);
  return im_reshape(n, im_elp(n, "(mul $0 scale)", p, 1, 1, y), 2, flat);
}

static tarn_term first_state(const linear *a) {
  int64_t dim[] = {a->batch, a->kv, a->dk, a->dv};
  tarn_term s = im_opt(a->n, 3);
  if (s == TARN_NONE) return im_fill(a->n, im_scalar(a->n, im_type(a->n, a->q), 0, 0), 4, dim);
  im_dims d = im_shape(a->n, s);
  if (d.n != 4 || memcmp(d.d, dim, sizeof dim) != 0)
    im_bad(a->n, "past_state is not (batch, heads, width of keys, width of values)");
  return s;
}

void im_do_linear_attention(im_node *n) {
  linear a = linear_of(n);
  double scale = im_attr_real(n, "scale", 0);
  if (im_shape(n, a.q).d[3] != a.dk) im_bad(n, "queries and keys differ in width");
  if (a.time < 1 || a.time > 4096) im_bad(n, "%lld steps are out of range", (long long)a.time);
  if (scale == 0) scale = 1 / sqrt((double)a.dk);
  tarn_term s = first_state(&a), *y = TARN_ARRAY(n->cx, tarn_term, a.time);
  for (int64_t t = 0; t < a.time; t++) {
    s = next_state(&a, s, t);
    y[t] = answer(&a, s, t, scale);
  }
  im_set(n, 0, im_stack(n, 1, y, (uint32_t)a.time));
  if (n->nout > 1) im_set(n, 1, s);
}
