/* Operators of random networks: each writes itself over a value x, or says that x will not do. */
#ifndef TARN_TESTS_RANDOM_NET_OPS_H
#define TARN_TESTS_RANDOM_NET_OPS_H
#include "tests/random_net.h"

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
#endif
