/* Random networks of a few operators, as text for rules_kit.h: what is drawn is appended when the
 * importer takes it, and the importer says which shapes come out. Values are read by several
 * consumers; several of them are outputs. */
#ifndef TARN_TESTS_RANDOM_NETS_H
#define TARN_TESTS_RANDOM_NETS_H
#include "tests/rules_kit.h"

#define NET_VALUES 64
#define NET_ITEMS  16
#define NET_MOST   2500 /* elements of a value */

typedef struct net_value {
  char name[16], type[8];
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS];
} net_value;
/* A drawn operator: its lines, constants of its own before it. */
typedef struct net_item {
  const char *text;
  uint32_t nin, nout, in[4], out[3];
} net_item;
typedef struct net {
  tarn_ctx *cx;
  uint64_t seed;
  bool typed;     /* values of any type: random_types.h */
  uint32_t opset; /* 0: what onnx_text.h has */
  uint32_t nv, nit, names;
  net_value v[NET_VALUES];
  bool given[NET_VALUES], asked[NET_VALUES]; /* inputs and outputs of the network */
  net_item it[NET_ITEMS];
  bool gone[NET_ITEMS];
} net;

/* One operator being written. */
typedef struct net_op {
  net *g;
  net_item it;
  tarn_buf b;
  const net_value *x; /* its first operand */
} net_op;

static inline uint32_t net_below(net *g, uint32_t n) {
  return (uint32_t)(kit_random(&g->seed) >> 20) % n;
}
static inline uint32_t net_draw(net_op *o, uint32_t n) { return net_below(o->g, n); }
static inline const char *net_dims(tarn_ctx *cx, uint32_t n, const int64_t *dim) {
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&b, "%s%lld", i ? "," : "", (long long)dim[i]);
  return n ? b.p : "-";
}
static inline const char *net_name(net_op *o, const char *what) {
  return tarn_format(o->g->cx, "%s%u", what, o->g->names++);
}

/* ---------------------------------------------------------------- text */

static inline void net_text(const net *g, tarn_buf *b) {
  if (g->opset) tarn_buf_fmt(b, "opset %u\n", g->opset);
  for (uint32_t i = 0; i < g->nv; i++)
    if (g->given[i])
      tarn_buf_fmt(b, "in %s %s %s\n", g->v[i].name, g->v[i].type,
                   net_dims(g->cx, g->v[i].n, g->v[i].dim));
  for (uint32_t i = 0; i < g->nit; i++)
    if (!g->gone[i]) tarn_buf_str(b, g->it[i].text);
  for (uint32_t i = 0; i < g->nv; i++)
    if (g->asked[i]) tarn_buf_fmt(b, "out %s\n", g->v[i].name);
}

/* ---------------------------------------------------------------- operands */

static inline const char *net_constant(net_op *o, const char *what, uint32_t n,
                                       const int64_t *dim) {
  const char *name = net_name(o, "k");
  if (n) tarn_buf_fmt(&o->b, "%s %s %s\n", what, name, net_dims(o->g->cx, n, dim));
  else tarn_buf_fmt(&o->b, "init %s f32 - : 0.75\n", name);
  return name;
}
static inline const char *net_ints(net_op *o, uint32_t n, const int64_t *x) {
  const char *name = net_name(o, "i");
  tarn_buf_fmt(&o->b, "init %s i64 %u :", name, n);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(&o->b, " %lld", (long long)x[i]);
  tarn_buf_str(&o->b, "\n");
  return name;
}
static inline const char *net_int(net_op *o, int64_t x) { return net_ints(o, 1, &x); }
static inline const char *net_list(net_op *o, const char *name, uint32_t n, const int64_t *x) {
  return tarn_format(o->g->cx, " %s=%s,", name, net_dims(o->g->cx, n, x));
}
static inline const char *net_read(net_op *o, uint32_t v) {
  o->it.in[o->it.nin++] = v;
  return o->g->v[v].name;
}
static inline bool net_fits(const net_value *a, const net_value *b) {
  if (strcmp(a->type, b->type) != 0) return false;
  for (uint32_t i = 1; i <= a->n && i <= b->n; i++)
    if (a->dim[a->n - i] != b->dim[b->n - i] && a->dim[a->n - i] != 1 && b->dim[b->n - i] != 1)
      return false;
  return true;
}
/* An operand that broadcasts with x: another value, or a constant with some extents 1 or left out.
 */
static inline const char *net_other(net_op *o, const char *what) {
  const net *g = o->g;
  for (uint32_t tries = 0; tries < 6 && what[0] != 'p'; tries++) {
    uint32_t v = net_draw(o, g->nv);
    if (net_fits(&g->v[v], o->x) && (o->x != &g->v[v] || net_draw(o, 3) == 0))
      return net_read(o, v);
  }
  uint32_t drop = net_draw(o, 3) ? 0 : net_draw(o, o->x->n + 1), n = o->x->n - drop;
  int64_t dim[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) {
    dim[i] = o->x->dim[drop + i];
    if (net_draw(o, 2)) dim[i] = 1;
    else if (dim[i] == 1 && net_draw(o, 4) == 0) dim[i] = 1 + net_draw(o, 4);
  }
  return net_constant(o, what, n, dim);
}

/* The last line of an operator: its results are new values. */
static inline void net_node(net_op *o, const char *op, const char *operands, const char *attributes,
                            uint32_t results) {
  tarn_buf_fmt(&o->b, "node %s %s %s ->", op, net_name(o, "n"), operands);
  for (uint32_t i = 0; i < results; i++) {
    net_value *v = &o->g->v[o->g->nv + i];
    snprintf(v->name, sizeof v->name, "v%u", o->g->names++);
    o->it.out[o->it.nout++] = o->g->nv + i;
    tarn_buf_fmt(&o->b, " %s", v->name);
  }
  tarn_buf_fmt(&o->b, "%s%s\n", *attributes ? " :" : "", attributes);
}
/* One more before it. */
static inline const char *net_step(net_op *o, const char *op, const char *operands,
                                   const char *attributes) {
  const char *to = net_name(o, "t");
  tarn_buf_fmt(&o->b, "node %s %s %s -> %s%s%s\n", op, net_name(o, "n"), operands, to,
               *attributes ? " :" : "", attributes);
  return to;
}
#define NET_FMT(o, ...) tarn_format((o)->g->cx, __VA_ARGS__)

/* ---------------------------------------------------------------- operators: false when x will not
 * do */

static inline const char *net_pads(net_op *o, uint32_t n, const int64_t *below) {
  int64_t pad[2 * TARN_MAX_DIMS];
  for (uint32_t i = 0; i < 2 * n; i++)
    pad[i] = net_draw(o, 2) ? 0 : net_draw(o, (uint32_t)below[i % n]);
  return net_list(o, "pads", 2 * n, pad);
}
static inline void net_small(net_op *o, uint32_t n, uint32_t most, int64_t *x) {
  bool ones = net_draw(o, 2);
  for (uint32_t i = 0; i < n; i++) x[i] = ones ? 1 : 1 + net_draw(o, most);
}
static inline int64_t net_divisor(net_op *o, int64_t n) {
  int64_t d = 1 + net_draw(o, (uint32_t)n);
  while (n % d) d--;
  return net_draw(o, 2) ? 1 : d;
}

static inline bool net_conv(net_op *o) {
  uint32_t n = o->x->n - 2;
  if (o->x->n < 3 || o->x->n > 5) return false;
  int64_t w[TARN_MAX_DIMS], stride[8], dilation[8], pads[8], group = net_divisor(o, o->x->dim[1]);
  w[0] = group * (1 + net_draw(o, group > 2 ? 2 : 5)), w[1] = o->x->dim[1] / group;
  for (uint32_t i = 0; i < n; i++)
    w[2 + i] = net_draw(o, 3) ? 1 + net_draw(o, 4) : 1, pads[i] = net_draw(o, 6) ? 3 : w[2 + i] + 2;
  net_small(o, n, 3, stride), net_small(o, n, 2, dilation);
  const char *k = net_constant(o, "rand", n + 2, w),
             *bias = net_draw(o, 2) ? net_constant(o, "rand", 1, w) : "";
  const char *pad = net_draw(o, 6)   ? net_pads(o, n, pads)
                    : net_draw(o, 2) ? " auto_pad=\"SAME_UPPER\""
                                     : " auto_pad=\"SAME_LOWER\"";
  net_node(o, "Conv", NET_FMT(o, "%s %s %s", o->x->name, k, bias),
           NET_FMT(o, " group=%d%s%s%s", (int)group, net_list(o, "strides", n, stride),
                   net_list(o, "dilations", n, dilation), pad),
           1);
  return true;
}

static inline bool net_conv_transpose(net_op *o) {
  uint32_t n = o->x->n - 2;
  if (o->x->n < 3 || o->x->n > 5) return false;
  int64_t w[TARN_MAX_DIMS], stride[8], dilation[8], more[8], two[8],
      group = net_divisor(o, o->x->dim[1]);
  w[0] = o->x->dim[1], w[1] = 1 + net_draw(o, 4);
  int64_t m = w[1] * group;
  net_small(o, n, 3, stride), net_small(o, n, 2, dilation);
  bool longer = net_draw(o, 3) == 0;
  for (uint32_t i = 0; i < n; i++)
    w[2 + i] = 1 + net_draw(o, 4), two[i] = 2,
          more[i] = longer ? net_draw(o, (uint32_t)stride[i]) : 0;
  const char *k = net_constant(o, "rand", n + 2, w),
             *bias = net_draw(o, 2) ? net_constant(o, "rand", 1, &m) : "";
  net_node(o, "ConvTranspose", NET_FMT(o, "%s %s %s", o->x->name, k, bias),
           NET_FMT(o, " group=%d%s%s%s%s", (int)group, net_list(o, "strides", n, stride),
                   net_list(o, "dilations", n, dilation), net_pads(o, n, two),
                   net_list(o, "output_padding", n, more)),
           1);
  return true;
}

static inline bool net_matmul(net_op *o) {
  if (o->x->n < 1) return false;
  const net *g = o->g;
  for (uint32_t tries = 0; tries < 8; tries++) { /* of two values */
    uint32_t v = net_draw(o, g->nv);
    const net_value *y = &g->v[v];
    if (strcmp(y->type, o->x->type) != 0) continue;
    if (y->n < 2 || y->dim[y->n - 2] != o->x->dim[o->x->n - 1] || net_draw(o, 2)) continue;
    net_node(o, "MatMul", NET_FMT(o, "%s %s", o->x->name, net_read(o, v)), "", 1);
    return true;
  }
  bool left = net_draw(o, 4) == 0 && o->x->n > 1;
  int64_t w[TARN_MAX_DIMS], k = o->x->dim[o->x->n - (left ? 2 : 1)];
  uint32_t n = 0;
  if (net_draw(o, 4) == 0 && o->x->n > 2) w[n++] = net_draw(o, 2) ? o->x->dim[o->x->n - 3] : 1;
  if (left) w[n++] = 1 + net_draw(o, 6), w[n++] = k;
  else w[n++] = k, w[n++] = 1 + net_draw(o, 6);
  const char *c = n == 2 && !left && net_draw(o, 6) == 0 ? net_constant(o, "rand", 1, w)
                                                         : net_constant(o, "rand", n, w);
  net_node(o, "MatMul",
           left ? NET_FMT(o, "%s %s", c, o->x->name) : NET_FMT(o, "%s %s", o->x->name, c), "", 1);
  return true;
}

static inline bool net_gemm(net_op *o) {
  if (o->x->n != 2) return false;
  bool ta = net_draw(o, 2), tb = net_draw(o, 2);
  int64_t k = o->x->dim[ta ? 0 : 1], m = o->x->dim[ta ? 1 : 0], n = 1 + net_draw(o, 6);
  int64_t w[2] = {tb ? n : k, tb ? k : n}, c[2] = {net_draw(o, 2) ? m : 1, net_draw(o, 2) ? n : 1};
  const char *b = net_constant(o, "rand", 2, w),
             *plus = net_draw(o, 2) ? net_constant(o, "rand", 2, c) : "";
  net_node(o, "Gemm", NET_FMT(o, "%s %s %s", o->x->name, b, plus),
           NET_FMT(o, " transA=%d transB=%d alpha=%s beta=%s", ta, tb,
                   net_draw(o, 2) ? "1.0" : "0.5", net_draw(o, 2) ? "1.0" : "-2.0"),
           1);
  return true;
}

static inline bool net_binary(net_op *o) {
  static const char *const op[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Add", "Mul"};
  const char *name = op[net_draw(o, 8)], *y = net_other(o, strcmp(name, "Div") ? "rand" : "pos");
  bool other = net_draw(o, 3) == 0 && strcmp(name, "Div") != 0;
  net_node(o, name, NET_FMT(o, "%s %s", other ? y : o->x->name, other ? o->x->name : y), "", 1);
  return true;
}

static inline bool net_unary(net_op *o) {
  static const char *const op[] = {"Relu",        "Sigmoid", "Tanh",    "Erf",      "HardSwish",
                                   "LeakyRelu",   "Neg",     "Abs",     "Softplus", "Elu",
                                   "HardSigmoid", "Relu",    "Identity"};
  const char *name = op[net_draw(o, sizeof op / sizeof *op)];
  net_node(o, name, o->x->name, strcmp(name, "LeakyRelu") ? "" : " alpha=0.3", 1);
  return true;
}

static inline bool net_clip(net_op *o) {
  const char *lo = net_name(o, "k"), *hi = net_name(o, "k");
  tarn_buf_fmt(&o->b, "init %s f32 - : -0.4\ninit %s f32 - : %s\n", lo, hi,
               net_draw(o, 2) ? "6" : "0.9");
  net_node(o, "Clip",
           NET_FMT(o, "%s %s %s", o->x->name, net_draw(o, 3) ? lo : "_", net_draw(o, 3) ? hi : ""),
           "", 1);
  return true;
}

static inline bool net_pool(net_op *o) {
  uint32_t n = o->x->n - 2, most = net_draw(o, 2);
  if (o->x->n < 3 || o->x->n > 5) return false;
  int64_t kernel[8], stride[8], dilation[8];
  for (uint32_t i = 0; i < n; i++) kernel[i] = 1 + net_draw(o, 3);
  net_small(o, n, 3, stride), net_small(o, n, 2, dilation);
  const char *more = most ? net_list(o, "dilations", n, dilation)
                          : NET_FMT(o, " count_include_pad=%u", net_draw(o, 2));
  net_node(o, most ? "MaxPool" : "AveragePool", o->x->name,
           NET_FMT(o, "%s%s%s%s ceil_mode=%u", net_list(o, "kernel_shape", n, kernel),
                   net_list(o, "strides", n, stride), net_pads(o, n, kernel), more, net_draw(o, 2)),
           1);
  return true;
}

static inline bool net_global_pool(net_op *o) {
  if (o->x->n < 3) return false;
  net_node(o, net_draw(o, 3) ? "GlobalAveragePool" : "GlobalMaxPool", o->x->name, "", 1);
  return true;
}

static inline bool net_norm(net_op *o) {
  if (o->x->n < 3) return false;
  const char *c[4];
  bool batch = net_draw(o, 3);
  for (uint32_t i = 0; i < 4; i++)
    c[i] = net_constant(o, i == 3 ? "pos" : "rand", 1, &o->x->dim[1]);
  if (batch)
    net_node(o, "BatchNormalization",
             NET_FMT(o, "%s %s %s %s %s", o->x->name, c[0], c[1], c[2], c[3]), "", 1);
  else
    net_node(o, "InstanceNormalization", NET_FMT(o, "%s %s %s", o->x->name, c[0], c[1]),
             " epsilon=0.1", 1);
  return true;
}

static inline bool net_layer_norm(net_op *o) {
  if (o->x->n < 1) return false;
  const char *axes = net_draw(o, 3) || o->x->n < 2 ? " axes=-1," : " axes=-2,-1", *x = o->x->name;
  const char *mean = net_step(o, "ReduceMean", x, axes),
             *d = net_step(o, "Sub", NET_FMT(o, "%s %s", x, mean), "");
  const char *square = net_step(o, "Mul", NET_FMT(o, "%s %s", d, d), ""),
             *var = net_step(o, "ReduceMean", square, axes);
  const char *e = net_name(o, "k"), *scale = net_constant(o, "rand", 1, &o->x->dim[o->x->n - 1]);
  tarn_buf_fmt(&o->b, "init %s f32 1 : 0.1\n", e);
  const char *root = net_step(o, "Sqrt", net_step(o, "Add", NET_FMT(o, "%s %s", var, e), ""), "");
  net_node(o, "Mul",
           NET_FMT(o, "%s %s", net_step(o, "Div", NET_FMT(o, "%s %s", d, root), ""), scale), "", 1);
  return true;
}

static inline bool net_softmax(net_op *o) {
  if (o->x->n < 1) return false;
  net_node(o, net_draw(o, 3) ? "Softmax" : "LogSoftmax", o->x->name,
           NET_FMT(o, " axis=%u", net_draw(o, o->x->n)), 1);
  return true;
}

static inline uint32_t net_some(net_op *o, int64_t *axis) { /* of x's axes, at least one */
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->x->n; i++)
    if (net_draw(o, 2)) axis[n++] = net_draw(o, 2) ? (int64_t)i : (int64_t)i - o->x->n;
  if (n == 0) axis[n++] = net_draw(o, o->x->n);
  return n;
}

static inline bool net_reduce(net_op *o) {
  static const char *const op[] = {"ReduceMean", "ReduceMax",       "ReduceMin", "ReduceL2",
                                   "ReduceL1",   "ReduceSumSquare", "ReduceSum"};
  if (o->x->n < 1) return false;
  int64_t axis[TARN_MAX_DIMS];
  uint32_t n = net_some(o, axis), k = net_draw(o, 8), keep = net_draw(o, 2);
  if (k < 6)
    net_node(o, op[k], o->x->name, NET_FMT(o, "%s keepdims=%u", net_list(o, "axes", n, axis), keep),
             1);
  else
    net_node(o, "ReduceSum", NET_FMT(o, "%s %s", o->x->name, net_ints(o, n, axis)),
             NET_FMT(o, " keepdims=%u", keep), 1);
  return true;
}

static inline int64_t net_size(const net_value *x) {
  int64_t n = 1;
  for (uint32_t i = 0; i < x->n; i++) n *= x->dim[i];
  return n;
}
/* Neighbours merged and split, or any factors at all. */
static inline bool net_reshape(net_op *o) {
  int64_t dim[TARN_MAX_DIMS], left = net_size(o->x);
  uint32_t n = 0;
  bool any = net_draw(o, 3) == 0;
  for (uint32_t i = 0; i < o->x->n && n + 2 < 6; i++) {
    int64_t d = o->x->dim[i], part = net_divisor(o, any ? left : d);
    if (any) dim[n++] = part, left /= part;
    else if (n && net_draw(o, 3) == 0) dim[n - 1] *= d, left /= d;
    else if (net_draw(o, 3) == 0) dim[n++] = part, dim[n++] = d / part, left /= d;
    else dim[n++] = d, left /= d;
  }
  if (left != 1 || n == 0) dim[n++] = left;
  if (net_draw(o, 3) == 0) dim[net_draw(o, n)] = -1;
  net_node(o, "Reshape", NET_FMT(o, "%s %s", o->x->name, net_ints(o, n, dim)), "", 1);
  return true;
}

static inline bool net_transpose(net_op *o) {
  if (o->x->n < 2) return false;
  int64_t perm[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < o->x->n; i++) perm[i] = i;
  for (uint32_t i = o->x->n; i > 1; i--) {
    uint32_t k = net_draw(o, i);
    int64_t t = perm[k];
    perm[k] = perm[i - 1], perm[i - 1] = t;
  }
  net_node(o, "Transpose", o->x->name, net_list(o, "perm", o->x->n, perm), 1);
  return true;
}

static inline bool net_slice(net_op *o) {
  if (o->x->n < 1) return false;
  int64_t axis[TARN_MAX_DIMS], from[TARN_MAX_DIMS], to[TARN_MAX_DIMS], step[TARN_MAX_DIMS];
  uint32_t n = net_some(o, axis);
  for (uint32_t i = 0; i < n; i++) {
    int64_t d = o->x->dim[axis[i] < 0 ? axis[i] + o->x->n : axis[i]], a = net_draw(o, (uint32_t)d),
            b = net_draw(o, (uint32_t)d);
    step[i] = 1 + (int64_t)(net_draw(o, 3) == 0) * net_draw(o, 3);
    from[i] = a < b ? a : b, to[i] = net_draw(o, 3) ? (a < b ? b : a) + 1 : 1000;
    if (net_draw(o, 3)) continue;
    step[i] = -step[i];
    int64_t t = from[i];
    from[i] = to[i] - 1, to[i] = t == 0 ? -1000 : t - 1;
  }
  const char *s = net_ints(o, n, from), *e = net_ints(o, n, to), *x = net_ints(o, n, axis),
             *by = net_ints(o, n, step);
  net_node(o, "Slice", NET_FMT(o, "%s %s %s %s %s", o->x->name, s, e, x, by), "", 1);
  return true;
}

static inline bool net_split(net_op *o) {
  if (o->x->n < 1) return false;
  uint32_t axis = net_draw(o, o->x->n);
  int64_t d = o->x->dim[axis], a = 1 + net_draw(o, (uint32_t)d), part[3] = {a, d - a, 0};
  if (d < 2 || a == d) return false;
  uint32_t n = 2;
  if (part[1] > 1 && net_draw(o, 2)) part[2] = 1, part[1]--, n = 3;
  net_node(o, "Split", NET_FMT(o, "%s %s", o->x->name, net_ints(o, n, part)),
           NET_FMT(o, " axis=%u", axis), n);
  return true;
}

static inline bool net_concat(net_op *o) {
  if (o->x->n < 1) return false;
  const net *g = o->g;
  uint32_t axis = net_draw(o, o->x->n), n = 1;
  tarn_buf parts = {.cx = g->cx};
  tarn_buf_str(&parts, o->x->name);
  for (uint32_t tries = 0; tries < 10 && n < 3; tries++) {
    uint32_t v = net_draw(o, g->nv);
    bool fits = g->v[v].n == o->x->n && strcmp(g->v[v].type, o->x->type) == 0;
    for (uint32_t i = 0; fits && i < o->x->n; i++)
      fits = i == axis || g->v[v].dim[i] == o->x->dim[i];
    if (!fits || (&g->v[v] == o->x && net_draw(o, 3))) continue;
    tarn_buf_fmt(&parts, " %s", net_read(o, v));
    n++;
  }
  int64_t dim[TARN_MAX_DIMS];
  memcpy(dim, o->x->dim, sizeof dim);
  dim[axis] = 1 + net_draw(o, 3);
  if (n == 1 || net_draw(o, 3) == 0)
    tarn_buf_fmt(&parts, " %s", net_constant(o, "rand", o->x->n, dim));
  net_node(o, "Concat", parts.p, NET_FMT(o, " axis=%u", axis), 1);
  return true;
}

static inline bool net_pad(net_op *o) {
  static const char *const mode[] = {"constant", "constant", "reflect", "edge"};
  if (o->x->n < 1) return false;
  int64_t pad[2 * TARN_MAX_DIMS];
  for (uint32_t i = 0; i < 2 * o->x->n; i++)
    pad[i] = net_draw(o, 2) ? 0 : (int64_t)net_draw(o, 4) - (net_draw(o, 4) == 0);
  const char *k = mode[net_draw(o, 4)], *p = net_ints(o, 2 * o->x->n, pad);
  const char *fill = k[0] == 'c' && net_draw(o, 2) ? net_constant(o, "init", 0, NULL) : "";
  net_node(o, "Pad", NET_FMT(o, "%s %s %s", o->x->name, p, fill), NET_FMT(o, " mode=\"%s\"", k), 1);
  return true;
}

static inline bool net_repeat(net_op *o) { /* Expand and Tile */
  int64_t by[TARN_MAX_DIMS];
  uint32_t n = o->x->n;
  bool tile = net_draw(o, 2);
  if (n < 1 || n > 5) return false;
  for (uint32_t i = 0; i < n; i++)
    by[i] = tile                ? 1 + (net_draw(o, 3) == 0) * net_draw(o, 3)
            : o->x->dim[i] == 1 ? 1 + net_draw(o, 4)
                                : o->x->dim[i];
  if (!tile && net_draw(o, 3) == 0)
    memmove(by + 1, by, n * sizeof *by), by[0] = 1 + net_draw(o, 3), n++;
  net_node(o, tile ? "Tile" : "Expand", NET_FMT(o, "%s %s", o->x->name, net_ints(o, n, by)), "", 1);
  return true;
}

static inline bool net_squeeze(net_op *o) {
  int64_t at = net_draw(o, o->x->n + 1);
  bool off = (uint32_t)at < o->x->n && o->x->dim[at] == 1;
  if (!off && o->x->n > 4) return false;
  net_node(o, off ? "Squeeze" : "Unsqueeze", NET_FMT(o, "%s %s", o->x->name, net_int(o, at)), "",
           1);
  return true;
}

static inline bool net_gather(net_op *o) {
  if (o->x->n < 1) return false;
  uint32_t axis = net_draw(o, o->x->n), n = 1 + net_draw(o, 4);
  int64_t at[8], d = o->x->dim[axis];
  for (uint32_t i = 0; i < n; i++)
    at[i] = (int64_t)net_draw(o, (uint32_t)d) - (net_draw(o, 4) ? 0 : d);
  const char *index = net_ints(o, n, at);
  if (n == 4 && o->x->n < 5 && net_draw(o, 2)) {
    int64_t square[2] = {2, 2};
    index = net_step(o, "Reshape", NET_FMT(o, "%s %s", index, net_ints(o, 2, square)), "");
  }
  net_node(o, "Gather", NET_FMT(o, "%s %s", o->x->name, index), NET_FMT(o, " axis=%u", axis), 1);
  return true;
}

static inline bool net_resize(net_op *o) {
  static const char *const mode[] = {"nearest", "linear"}, *const where[] = {"half_pixel",
                                                                             "asymmetric",
                                                                             "align_corners",
                                                                             "pytorch_half_pixel"};
  if (o->x->n < 3 || o->x->n > 5) return false;
  int64_t size[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < o->x->n; i++) {
    size[i] = o->x->dim[i];
    if (i > 1)
      size[i] =
          net_draw(o, 2) ? size[i] * (1 + net_draw(o, 3)) : 1 + net_draw(o, 2 * (uint32_t)size[i]);
  }
  net_node(o, "Resize", NET_FMT(o, "%s _ _ %s", o->x->name, net_ints(o, o->x->n, size)),
           NET_FMT(o, " mode=\"%s\" coordinate_transformation_mode=\"%s\"%s", mode[net_draw(o, 2)],
                   where[net_draw(o, 4)], net_draw(o, 2) ? " nearest_mode=\"floor\"" : ""),
           1);
  return true;
}

static inline bool net_depth(net_op *o) {
  if (o->x->n != 4) return false;
  uint32_t b = 2 + net_draw(o, 2);
  if (o->x->dim[1] % (b * b) == 0)
    net_node(o, "DepthToSpace", o->x->name,
             NET_FMT(o, " blocksize=%u mode=\"%s\"", b, net_draw(o, 2) ? "DCR" : "CRD"), 1);
  else net_node(o, "SpaceToDepth", o->x->name, NET_FMT(o, " blocksize=%u", b), 1);
  return true;
}

static inline bool net_where(net_op *o) {
  const char *mark = net_name(o, "k");
  tarn_buf_fmt(&o->b, "init %s f32 1 : 0.2137\n", mark);
  const char *y = net_other(o, "rand"),
             *c = net_step(o, net_draw(o, 2) ? "Less" : "Greater",
                           NET_FMT(o, "%s %s", net_draw(o, 2) ? o->x->name : y, mark), "");
  net_node(o, "Where", NET_FMT(o, "%s %s %s", c, o->x->name, y), "", 1);
  return true;
}

static inline bool net_cumulate(net_op *o) {
  if (o->x->n < 1) return false;
  net_node(o, "CumSum", NET_FMT(o, "%s %s", o->x->name, net_int(o, net_draw(o, o->x->n))),
           NET_FMT(o, " exclusive=%u reverse=%u", net_draw(o, 2), net_draw(o, 2)), 1);
  return true;
}

/* Through whole numbers or f64 and back. */
static inline bool net_cast(net_op *o) {
  static const char *const fn[] = {"Add", "Mul",       "Max",       "Sub",    "Div",      "Neg",
                                   "Abs", "ReduceSum", "ReduceMax", "CumSum", "Transpose"};
  static const uint32_t to[] = {6, 7, 11};
  if (o->x->n < 1) return false;
  const char *k = net_name(o, "k"), *lo = net_name(o, "k"), *hi = net_name(o, "k"),
             *three = net_int(o, 3);
  tarn_buf_fmt(&o->b, "init %s f32 1 : 7.2137\ninit %s f32 - : -90\ninit %s f32 - : 90\n", k, lo,
               hi);
  uint32_t type = to[net_draw(o, 3)], n = 1 + net_draw(o, 3);
  const char *t = net_step(o, "Mul", NET_FMT(o, "%s %s", o->x->name, k), "");
  t = net_step(o, "Clip", NET_FMT(o, "%s %s %s", t, lo, hi), "");
  t = net_step(o, "Cast", t, NET_FMT(o, " to=%u", type));
  three = net_step(o, "Cast", three, NET_FMT(o, " to=%u", type));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t f = net_draw(o, 11);
    const char *was = t;
    if (f < 5)
      t = net_step(o, fn[f], NET_FMT(o, "%s %s", t, f < 3 && net_draw(o, 2) ? t : three), "");
    else if (f < 7 || f == 10) t = net_step(o, fn[f], t, "");
    else if (f == 7 || f == 9) t = net_step(o, fn[f], NET_FMT(o, "%s %s", was, net_int(o, 0)), "");
    else t = net_step(o, fn[f], t, " axes=-1, keepdims=1");
  }
  net_node(o, "Cast", t, " to=1", 1);
  return true;
}

static inline bool net_logic(net_op *o) {
  static const char *const op[] = {"And", "Or", "Xor"};
  const char *k = net_name(o, "k"), *m = net_name(o, "k");
  tarn_buf_fmt(&o->b, "init %s f32 1 : 0.2137\ninit %s f32 1 : -0.1371\n", k, m);
  const char *a = net_step(o, "Greater", NET_FMT(o, "%s %s", o->x->name, m), ""),
             *y = net_other(o, "rand");
  const char *b =
      net_step(o, net_draw(o, 2) ? "Less" : "GreaterOrEqual", NET_FMT(o, "%s %s", y, k), "");
  const char *c = net_step(o, op[net_draw(o, 3)], NET_FMT(o, "%s %s", a, b), "");
  if (net_draw(o, 2)) c = net_step(o, "Not", c, "");
  if (net_draw(o, 2)) net_node(o, "Where", NET_FMT(o, "%s %s %s", c, o->x->name, y), "", 1);
  else net_node(o, "Cast", c, " to=1", 1);
  return true;
}

/* Kernels that are no nests, and what becomes several. */
static inline bool net_whole(net_op *o) {
  if (o->x->n < 1) return false;
  uint32_t axis = net_draw(o, o->x->n), what = net_draw(o, 8), d = (uint32_t)o->x->dim[axis];
  const char *x = o->x->name;
  if (what == 0)
    net_node(o, "TopK", NET_FMT(o, "%s %s", x, net_int(o, 1 + net_draw(o, d))),
             NET_FMT(o, " axis=%u", axis), 1);
  else if (what == 1) {
    const char *scale = net_constant(o, "rand", 1, &o->x->dim[o->x->n - 1]);
    net_node(o, "LayerNormalization", NET_FMT(o, "%s %s", x, scale), " axis=-1 epsilon=0.1", 1);
  } else if (what == 2)
    net_node(o, "MeanVarianceNormalization", x, NET_FMT(o, "%s", o->x->n < 4 ? " axes=0," : ""), 1);
  else if (what == 3) net_node(o, "Trilu", x, NET_FMT(o, " upper=%u", net_draw(o, 2)), 1);
  else if (what == 4)
    net_node(o, "LRN", x, NET_FMT(o, " size=%u alpha=0.5 beta=0.75 bias=1.0", 1 + net_draw(o, 4)),
             1);
  else if (what == 5)
    net_node(o, "LpNormalization", x, NET_FMT(o, " axis=%u p=%u", axis, 1 + net_draw(o, 2)), 1);
  else if (what == 6)
    net_node(o, "ReduceLogSumExp", x, NET_FMT(o, " axes=%u, keepdims=%u", axis, net_draw(o, 2)), 1);
  else
    net_node(o, "Einsum", NET_FMT(o, "%s %s", x, x),
             net_draw(o, 2) ? " equation=\"...i,...j->...ij\"" : " equation=\"...i,...i->...\"", 1);
  return true;
}

/* ---- idioms: what rules look for ---- */
/* A scale and a shift by constants, along one axis or all alike, as two operators in either order.
 */
static inline bool net_affine(net_op *o) {
  if (o->x->n < 2) return false;
  int64_t dim[TARN_MAX_DIMS];
  uint32_t axis = net_draw(o, 3) ? 1 : net_draw(o, o->x->n);
  for (uint32_t i = 0; i < o->x->n; i++) dim[i] = i == axis ? o->x->dim[i] : 1;
  const char *a = net_constant(o, "rand", o->x->n, dim), *b = net_constant(o, "pos", o->x->n, dim),
             *x = o->x->name;
  bool first = net_draw(o, 2), div = net_draw(o, 3) == 0;
  const char *t =
      net_step(o, first ? div ? "Div" : "Mul" : "Sub", NET_FMT(o, "%s %s", x, first ? b : a), "");
  net_node(o, first ? "Add" : div ? "Div" : "Mul", NET_FMT(o, "%s %s", t, first ? a : b), "", 1);
  return true;
}

/* Two products of one operand with constants, joined. */
static inline bool net_twins(net_op *o) {
  static const char *const join[] = {"Add", "Sub", "Mul", "Concat"};
  if (o->x->n < 2) return false;
  bool conv = o->x->n > 2 && o->x->n < 6 && net_draw(o, 2);
  int64_t w[TARN_MAX_DIMS] = {1 + net_draw(o, 4), o->x->dim[1], 1, 1, 1, 1};
  if (!conv) w[1] = w[0], w[0] = o->x->dim[o->x->n - 1];
  uint32_t how = net_draw(o, 4), n = conv ? o->x->n : 2;
  const char *t[2];
  for (uint32_t i = 0; i < 2; i++) {
    const char *k = net_constant(o, "rand", n, w);
    t[i] = net_step(o, conv ? "Conv" : "MatMul", NET_FMT(o, "%s %s", o->x->name, k), "");
    if (net_draw(o, 2)) t[i] = net_step(o, net_draw(o, 2) ? "Relu" : "Sigmoid", t[i], "");
  }
  net_node(o, join[how], NET_FMT(o, "%s %s", t[0], t[1]),
           how == 3 ? NET_FMT(o, " axis=%u", conv ? 1 : o->x->n - 1) : "", 1);
  return true;
}

static inline bool net_attention(net_op *o) {
  if (o->x->n < 2 || o->x->n > 4) return false;
  int64_t d = o->x->dim[o->x->n - 1], w[2] = {d, 1 + net_draw(o, 4)}, perm[TARN_MAX_DIMS];
  const char *t[3];
  for (uint32_t i = 0; i < 3; i++) {
    const char *k = net_constant(o, "rand", 2, w);
    t[i] = net_step(o, "MatMul", NET_FMT(o, "%s %s", o->x->name, k), "");
  }
  for (uint32_t i = 0; i < o->x->n; i++) perm[i] = i + 2 < o->x->n ? i : 2 * o->x->n - 3 - i;
  const char *kt = net_step(o, "Transpose", t[1], net_list(o, "perm", o->x->n, perm));
  const char *s = net_step(o, "MatMul", NET_FMT(o, "%s %s", t[0], kt), ""),
             *half = net_constant(o, "init", 0, NULL);
  if (net_draw(o, 2))
    s = net_step(o, net_draw(o, 2) ? "Mul" : "Div", NET_FMT(o, "%s %s", s, half), "");
  s = net_step(o, "Softmax", s, " axis=-1");
  net_node(o, "MatMul", NET_FMT(o, "%s %s", s, t[2]), "", 1);
  return true;
}

/* A window written as shifted slices, each times its weight, summed. */
static inline bool net_taps(net_op *o) {
  if (o->x->n < 2) return false;
  int64_t axis = net_draw(o, o->x->n), d = o->x->dim[axis],
          w[2] = {o->x->dim[o->x->n - 1], 1 + net_draw(o, 3)};
  uint32_t taps = 2 + net_draw(o, 2);
  if (d < 4 || axis == (int64_t)o->x->n - 1) return false;
  const char *sum = NULL, *at = net_int(o, axis);
  int64_t step = 1 + net_draw(o, 2);
  for (uint32_t i = 0; i < taps; i++) {
    const char *from = net_int(o, i), *to = net_int(o, d - taps + 1 + i), *by = net_int(o, step),
               *k = net_constant(o, "rand", 2, w);
    const char *t =
        net_step(o, "Slice", NET_FMT(o, "%s %s %s %s %s", o->x->name, from, to, at, by), "");
    t = net_step(o, "MatMul", NET_FMT(o, "%s %s", t, k), "");
    sum = sum ? net_step(o, "Add", NET_FMT(o, "%s %s", net_draw(o, 2) ? sum : t, sum), "") : t;
    if (i && net_draw(o, 3)) sum = net_step(o, "Add", NET_FMT(o, "%s %s", sum, t), "");
  }
  net_node(o, "Relu", sum, "", 1);
  return true;
}

typedef bool net_writer(net_op *o);
static net_writer *const net_ops[] = {
    net_conv,    net_conv,       net_conv,      net_conv_transpose, net_matmul,    net_matmul,
    net_gemm,    net_binary,     net_binary,    net_binary,         net_binary,    net_unary,
    net_unary,   net_unary,      net_clip,      net_pool,           net_pool,      net_norm,
    net_norm,    net_layer_norm, net_softmax,   net_reduce,         net_reduce,    net_reshape,
    net_reshape, net_transpose,  net_transpose, net_slice,          net_slice,     net_split,
    net_concat,  net_concat,     net_pad,       net_repeat,         net_squeeze,   net_gather,
    net_resize,  net_depth,      net_where,     net_global_pool,    net_cumulate,  net_affine,
    net_affine,  net_affine,     net_twins,     net_twins,          net_attention, net_taps,
    net_cast,    net_logic,      net_whole,     net_whole};

/* ---------------------------------------------------------------- drawing */

typedef struct net_import {
  net *g;
  const char *text;
  const net_item *it;
  bool ok;
} net_import;

static inline void net_shapes(tarn_ctx *cx, void *arg) {
  net_import *m = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = kit_model(L, m->text);
  for (uint32_t i = 0; i < m->it->nout; i++) {
    const tarn_type *t = tarn_type_get(L, p->out[i].type);
    net_value *v = &m->g->v[m->it->out[i]];
    if ((t->dtype != TARN_F32 && !m->g->typed) || t->n > 6) return;
    snprintf(v->type, sizeof v->type, "%s", tarn_dtype_name(t->dtype));
    v->n = t->n;
    memcpy(v->dim, t->dim, sizeof *t->dim * t->n);
    if (net_size(v) < 1 || net_size(v) > NET_MOST) return;
  }
  m->ok = true;
}

/* The item at the end of the network, if the importer takes it and what comes out is small. */
static inline bool net_append(net *g, net_op *o) {
  bool asked[NET_VALUES];
  uint32_t nv = g->nv;
  memcpy(asked, g->asked, sizeof asked);
  memset(g->asked, 0, sizeof g->asked);
  o->it.text = o->b.p;
  g->it[g->nit++] = o->it;
  for (uint32_t i = 0; i < o->it.nout; i++) g->asked[o->it.out[i]] = true;
  g->nv += o->it.nout;
  tarn_buf b = {.cx = g->cx};
  net_text(g, &b);
  net_import m = {.g = g, .text = b.p, .it = &o->it};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  bool ok = tarn_protect(cx, net_shapes, &m) == TARN_OK && m.ok;
  tarn_ctx_free(cx);
  memcpy(g->asked, asked, sizeof asked);
  if (!ok) g->nit--, g->nv = nv;
  return ok;
}

static inline void net_inputs(net *g) {
  uint32_t inputs = 1 + net_below(g, 3);
  for (uint32_t i = 0; i < inputs; i++) {
    net_value *v = &g->v[g->nv];
    if (i && net_below(g, 2)) memcpy(v->dim, g->v[0].dim, sizeof v->dim), v->n = g->v[0].n;
    else do {
        v->n = net_below(g, 4) ? 3 + net_below(g, 3) : 1 + net_below(g, 3);
        for (uint32_t d = 0; d < v->n; d++)
          v->dim[d] = net_below(g, 4) ? 1 + net_below(g, d == 0 ? 2 : net_below(g, 6) ? 9 : 34) : 1;
      } while (net_size(v) > 800);
    snprintf(v->name, sizeof v->name, "x%u", i);
    snprintf(v->type, sizeof v->type, "f32");
    g->given[g->nv++] = true;
  }
}

/* Values that nobody reads are outputs, and some that are read. */
static inline void net_outputs(net *g) {
  bool read[NET_VALUES] = {0};
  for (uint32_t i = 0; i < g->nit; i++)
    for (uint32_t k = 0; k < g->it[i].nin; k++) read[g->it[i].in[k]] = true;
  for (uint32_t i = 0; i < g->nv; i++)
    g->asked[i] = !g->given[i] && (!read[i] || net_below(g, 6) == 0);
}

/* So many operators of a list, each one on a value that is there. */
static inline void net_draw_all(net *g, uint32_t want, net_writer *const *list, uint32_t count) {
  for (uint32_t tries = 0; g->nit < want && tries < 200; tries++) {
    net_op o = {.g = g, .b = {.cx = g->cx}};
    uint32_t x =
        net_below(g, 3) ? g->nv - 1 - net_below(g, g->nv < 3 ? g->nv : 3) : net_below(g, g->nv);
    o.x = &g->v[x];
    o.it.in[o.it.nin++] = x;
    if (list[net_below(g, count)](&o)) net_append(g, &o);
  }
}

static inline net *net_random(tarn_ctx *cx, uint64_t seed) {
  net *g = TARN_NEW(cx, net);
  *g = (net){.cx = cx, .seed = kit_random(&seed)};
  net_inputs(g);
  net_draw_all(g, 3 + net_below(g, 10), net_ops, sizeof net_ops / sizeof *net_ops);
  net_outputs(g);
  return g;
}
#endif
