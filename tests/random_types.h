/* Random networks over all element types and the operators that random_nets.h leaves out. */
#ifndef TARN_TESTS_RANDOM_TYPES_H
#define TARN_TESTS_RANDOM_TYPES_H
#include "tests/random_nets.h"

/* ONNX's numbers of the types. */
static const struct {
  const char *name;
  int code;
  char kind; /* float, signed, unsigned, bool */
} net_types[] = {{"f32", 1, 'f'},   {"u8", 2, 'u'},   {"i8", 3, 's'},   {"u16", 4, 'u'},
                 {"i16", 5, 's'},   {"i32", 6, 's'},  {"i64", 7, 's'},  {"bool", 9, 'b'},
                 {"f16", 10, 'f'},  {"f64", 11, 'f'}, {"u32", 12, 'u'}, {"u64", 13, 'u'},
                 {"bf16", 16, 'f'}, {"f32", 1, 'f'},  {"f16", 10, 'f'}};
#define NET_TYPES (sizeof net_types / sizeof *net_types)

static inline uint32_t net_type(const char *name) {
  uint32_t i = 0;
  while (strcmp(net_types[i].name, name) != 0) i++;
  return i;
}
static inline char net_kind(const net_op *o) { return net_types[net_type(o->x->type)].kind; }
static inline bool net_is(const net_op *o, const char *type) { return !strcmp(o->x->type, type); }
#define NET_PICK(o, list) (list)[net_draw(o, sizeof(list) / sizeof *(list))]

/* A constant of x's type: numbers up to seven or so; of unsigned types none below 0. */
static inline const char *net_typed(net_op *o, uint32_t n, const int64_t *dim) {
  const char *k = net_constant(o, net_kind(o) == 'u' ? "pos" : "rand", n, dim);
  if (net_is(o, "f32")) return k;
  const char *by = net_name(o, "k");
  tarn_buf_fmt(&o->b, "init %s f32 - : %s\n", by, net_kind(o) == 'f' ? "1.37" : "6.8");
  k = net_step(o, "Mul", NET_FMT(o, "%s %s", k, by), "");
  return net_step(o, "Cast", k, NET_FMT(o, " to=%d", net_types[net_type(o->x->type)].code));
}
/* A second operand: a value of the type that broadcasts, or a constant. */
static inline const char *net_second(net_op *o) {
  for (uint32_t tries = 0; tries < 6; tries++) {
    uint32_t v = net_draw(o, o->g->nv);
    if (net_fits(&o->g->v[v], o->x)) return net_read(o, v);
  }
  uint32_t drop = net_draw(o, o->x->n + 1);
  return net_typed(o, o->x->n - drop, o->x->dim + drop);
}
/* Indices below d, some counted from the end, in the shape of dims. */
static inline const char *net_indices(net_op *o, uint32_t n, const int64_t *dim, int64_t d) {
  const char *name = net_name(o, "i");
  int64_t count = 1;
  for (uint32_t i = 0; i < n; i++) count *= dim[i];
  tarn_buf_fmt(&o->b, "init %s i64 %s :", name, net_dims(o->g->cx, n, dim));
  for (int64_t i = 0; i < count; i++)
    tarn_buf_fmt(&o->b, " %lld",
                 (long long)((int64_t)net_draw(o, (uint32_t)d) - (net_draw(o, 5) ? 0 : d)));
  tarn_buf_str(&o->b, "\n");
  return name;
}

/* ---------------------------------------------------------------- elementwise */

static inline bool net_to_type(net_op *o) {
  uint32_t t = net_draw(o, NET_TYPES);
  const char *x = o->x->name;
  if (net_kind(o) == 'f' && net_types[t].kind != 'f' && net_types[t].kind != 'b') {
    const char *by = net_name(o, "k"), *lo = net_name(o, "k"), *hi = net_name(o, "k");
    tarn_buf_fmt(&o->b, "init %s f32 - : 5.2137\ninit %s f32 - : %s\ninit %s f32 - : 90\n", by, lo,
                 net_types[t].kind == 'u' ? "0" : "-90", hi);
    if (!net_is(o, "f32")) x = net_step(o, "Cast", x, " to=1");
    x = net_step(o, "Mul", NET_FMT(o, "%s %s", x, by), "");
    x = net_step(o, "Clip", NET_FMT(o, "%s %s %s", x, lo, hi), "");
  }
  net_node(o, "Cast", x, NET_FMT(o, " to=%d", net_types[t].code), 1);
  return true;
}

static inline bool net_arithmetic(net_op *o) {
  static const char *const any[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Mod"};
  static const char *const bits[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor"};
  static const char *const logic[] = {"And", "Or", "Xor", "Equal"};
  char kind = net_kind(o);
  const char *op = kind == 'b' ? NET_PICK(o, logic) : NET_PICK(o, any), *y = net_second(o);
  if ((kind == 's' || kind == 'u') && o->g->opset >= 18 && net_draw(o, 4) == 0)
    op = NET_PICK(o, bits);
  bool fmod = strcmp(op, "Mod") == 0 && (kind == 'f' || net_draw(o, 2));
  net_node(o, op, NET_FMT(o, "%s %s", o->x->name, y), fmod ? " fmod=1" : "", 1);
  return true;
}

static inline bool net_compared(net_op *o) {
  static const char *const op[] = {"Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"};
  const char *y = net_second(o);
  if (net_kind(o) == 'b') return false;
  const char *c = NET_FMT(o, "%s %s", o->x->name, y);
  if (net_draw(o, 2)) net_node(o, NET_PICK(o, op), c, "", 1);
  else
    net_node(o, "Where", NET_FMT(o, "%s %s %s", net_step(o, NET_PICK(o, op), c, ""), o->x->name, y),
             "", 1);
  return true;
}

static inline bool net_single(net_op *o) {
  static const char *const real[] = {
      "Abs",      "Acos",  "Acosh", "Asin",      "Asinh",   "Atan",       "Atanh",
      "Ceil",     "Celu",  "Cos",   "Cosh",      "Elu",     "Erf",        "Exp",
      "Floor",    "Gelu",  "IsInf", "IsNaN",     "Log",     "Mish",       "Neg",
      "Relu",     "Round", "Selu",  "Sigmoid",   "Sign",    "Sin",        "Sinh",
      "Softplus", "Sqrt",  "Swish", "Softsign",  "Tan",     "Tanh",       "ThresholdedRelu",
      "Shrink",   "Clip",  "Mish",  "HardSwish", "Hardmax", "Reciprocal", "LogSoftmax"};
  static const char *const whole[] = {"Abs", "Sign", "Neg", "BitwiseNot", "Relu", "Identity"};
  char kind = net_kind(o);
  net_node(o,
           kind == 'f'   ? NET_PICK(o, real)
           : kind == 'b' ? "Not"
                         : NET_PICK(o, whole),
           o->x->name, "", 1);
  return true;
}

static inline bool net_shift(net_op *o) {
  if (net_kind(o) != 'u') return false;
  net_node(o, "BitShift", NET_FMT(o, "%s %s", o->x->name, net_second(o)),
           net_draw(o, 2) ? " direction=\"LEFT\"" : " direction=\"RIGHT\"", 1);
  return true;
}

/* ---------------------------------------------------------------- reductions */

static inline bool net_reduced(net_op *o) {
  static const char *const op[] = {
      "ReduceSum", "ReduceMax",    "ReduceMin",       "ReduceProd", "ReduceMean",      "ReduceL1",
      "ReduceL2",  "ReduceLogSum", "ReduceSumSquare", "ArgMax",     "ReduceLogSumExp", "ArgMin"};
  if (o->x->n < 1) return false;
  int64_t axis[TARN_MAX_DIMS];
  const char *name = NET_PICK(o, op);
  uint32_t n = net_some(o, axis), keep = net_draw(o, 2);
  bool by_input = o->g->opset >= 18 || strcmp(name, "ReduceSum") == 0;
  if (name[0] == 'A')
    net_node(
        o, name, o->x->name,
        NET_FMT(o, " axis=%d keepdims=%u select_last_index=%u", (int)axis[0], keep, net_draw(o, 2)),
        1);
  else if (by_input)
    net_node(o, name, NET_FMT(o, "%s %s", o->x->name, net_ints(o, n, axis)),
             NET_FMT(o, " keepdims=%u", keep), 1);
  else
    net_node(o, name, o->x->name, NET_FMT(o, "%s keepdims=%u", net_list(o, "axes", n, axis), keep),
             1);
  return true;
}

static inline bool net_ordered(net_op *o) {
  if (o->x->n < 1) return false;
  uint32_t axis = net_draw(o, o->x->n), d = (uint32_t)o->x->dim[axis];
  const char *x = o->x->name;
  if (net_draw(o, 2))
    net_node(o, "TopK", NET_FMT(o, "%s %s", x, net_int(o, 1 + net_draw(o, d))),
             NET_FMT(o, " axis=%u largest=%u", axis, net_draw(o, 2)), 2);
  else
    net_node(o, "CumSum", NET_FMT(o, "%s %s", x, net_int(o, axis)),
             NET_FMT(o, " exclusive=%u reverse=%u", net_draw(o, 2), net_draw(o, 2)), 1);
  return true;
}

/* ---------------------------------------------------------------- gathers and scatters */

static inline bool net_gathers(net_op *o) {
  if (o->x->n < 1 || o->x->n > 4) return false;
  uint32_t axis = net_draw(o, o->x->n), what = net_draw(o, 4);
  int64_t dim[TARN_MAX_DIMS], d = o->x->dim[axis];
  memcpy(dim, o->x->dim, sizeof dim);
  for (uint32_t i = 0; i < o->x->n; i++)
    if (net_draw(o, 2)) dim[i] = 1 + net_draw(o, (uint32_t)dim[i]);
  const char *x = o->x->name;
  if (what == 0) {
    int64_t pairs[2] = {1 + net_draw(o, 4), 1};
    net_node(o, "GatherND", NET_FMT(o, "%s %s", x, net_indices(o, 2, pairs, o->x->dim[0])), "", 1);
  } else if (what == 1) {
    const char *at = net_indices(o, o->x->n, dim, d);
    net_node(o, "ScatterElements", NET_FMT(o, "%s %s %s", x, at, net_typed(o, o->x->n, dim)),
             NET_FMT(o, " axis=%u", axis), 1);
  } else if (what == 2) {
    int64_t rows[2] = {1 + net_draw(o, 4), 1};
    memcpy(dim + 1, o->x->dim + 1, sizeof dim - sizeof *dim);
    dim[0] = rows[0];
    const char *at = net_indices(o, 2, rows, o->x->dim[0]);
    net_node(o, "ScatterND", NET_FMT(o, "%s %s %s", x, at, net_typed(o, o->x->n, dim)),
             net_draw(o, 2) ? " reduction=\"add\"" : "", 1);
  } else
    net_node(o, "GatherElements", NET_FMT(o, "%s %s", x, net_indices(o, o->x->n, dim, d)),
             NET_FMT(o, " axis=%u", axis), 1);
  return true;
}

static inline bool net_moved(net_op *o) {
  if (o->x->n < 2) return false;
  uint32_t what = net_draw(o, 5);
  const char *x = o->x->name;
  if (what == 0) net_node(o, "Trilu", x, NET_FMT(o, " upper=%u", net_draw(o, 2)), 1);
  else if (what == 1) {
    const char *length = net_name(o, "k");
    tarn_buf_fmt(&o->b, "init %s i64 %lld :", length, (long long)o->x->dim[1]);
    for (int64_t i = 0; i < o->x->dim[1]; i++)
      tarn_buf_fmt(&o->b, " %u", 1 + net_draw(o, (uint32_t)o->x->dim[0]));
    tarn_buf_str(&o->b, "\n");
    net_node(o, "ReverseSequence", NET_FMT(o, "%s %s", x, length), " time_axis=0 batch_axis=1", 1);
  } else if (what == 2) {
    int64_t to[2] = {1 + net_draw(o, 6), 1 + net_draw(o, 6)}, axes[2] = {0, -1};
    net_node(o, "CenterCropPad", NET_FMT(o, "%s %s", x, net_ints(o, 2, to)),
             net_list(o, "axes", 2, axes), 1);
  } else if (what == 3) net_node(o, "Flatten", x, NET_FMT(o, " axis=%u", net_draw(o, 3)), 1);
  else net_node(o, "EyeLike", x, "", 1);
  return true;
}

/* ---------------------------------------------------------------- quantised */

static inline bool net_quantised(net_op *o) {
  if (!net_is(o, "f32")) return false;
  const char *s = net_name(o, "k"), *z = net_name(o, "k"), *x = o->x->name;
  bool u = net_draw(o, 2);
  tarn_buf_fmt(&o->b, "init %s f32 - : 0.0137\ninit %s %s - : %s\n", s, z, u ? "u8" : "i8",
               u ? "117" : "-5");
  const char *q = net_step(o, "QuantizeLinear", NET_FMT(o, "%s %s %s", x, s, z), "");
  if (net_draw(o, 3) == 0 && o->x->n >= 2) {
    int64_t w[2] = {o->x->dim[o->x->n - 1], 1 + net_draw(o, 6)};
    const char *b = net_constant(o, "rand", 2, w);
    b = net_step(o, "QuantizeLinear", NET_FMT(o, "%s %s %s", b, s, z), "");
    net_node(o, "MatMulInteger", NET_FMT(o, "%s %s %s %s", q, b, z, z), "", 1);
  } else if (net_draw(o, 2)) net_node(o, "Identity", q, "", 1);
  else net_node(o, "DequantizeLinear", NET_FMT(o, "%s %s %s", q, s, z), "", 1);
  return true;
}

/* ---------------------------------------------------------------- sequences and images */

static inline bool net_recurrent(net_op *o) {
  static const char *const op[] = {"RNN", "GRU", "LSTM"};
  static const int gates[] = {1, 3, 4};
  if (!net_is(o, "f32") || o->x->n != 3 || o->x->dim[0] > 6) return false;
  uint32_t k = net_draw(o, 3), dirs = 1 + net_draw(o, 2), h = 1 + net_draw(o, 4);
  int64_t w[3] = {dirs, gates[k] * h, o->x->dim[2]}, r[3] = {dirs, gates[k] * h, h},
          b[2] = {dirs, 2 * gates[k] * h};
  const char *cw = net_constant(o, "rand", 3, w), *cr = net_constant(o, "rand", 3, r);
  const char *cb = net_draw(o, 2) ? net_constant(o, "rand", 2, b) : "";
  net_node(o, op[k], NET_FMT(o, "%s %s %s %s", o->x->name, cw, cr, cb),
           NET_FMT(o, " hidden_size=%u direction=\"%s\"", h,
                   dirs == 2        ? "bidirectional"
                   : net_draw(o, 2) ? "reverse"
                                    : "forward"),
           2);
  return true;
}

static inline bool net_heads(net_op *o) {
  if (net_kind(o) != 'f' || o->x->n != 4) return false;
  const char *x = o->x->name, *v = net_typed(o, 4, o->x->dim);
  if (net_draw(o, 3) == 0 && o->x->dim[3] % 2 == 0) {
    int64_t cache[3] = {o->x->dim[0], o->x->dim[2], o->x->dim[3] / 2};
    const char *c = net_typed(o, 3, cache), *s = net_typed(o, 3, cache);
    net_node(o, "RotaryEmbedding", NET_FMT(o, "%s %s %s", x, c, s),
             NET_FMT(o, " interleaved=%u", net_draw(o, 2)), 1);
  } else
    net_node(o, "Attention", NET_FMT(o, "%s %s %s", x, x, v),
             NET_FMT(o, " is_causal=%u%s", net_draw(o, 2), net_draw(o, 2) ? " softcap=1.5" : ""),
             1);
  return true;
}

static inline bool net_sampled(net_op *o) {
  static const char *const mode[] = {"bilinear", "nearest", "bicubic"}, *const pad[] = {
                                                                            "zeros", "border",
                                                                            "reflection"};
  if (!net_is(o, "f32") || o->x->n != 4) return false;
  int64_t at[4] = {o->x->dim[0], 1 + net_draw(o, 4), 1 + net_draw(o, 4), 2};
  net_node(o, "GridSample", NET_FMT(o, "%s %s", o->x->name, net_constant(o, "rand", 4, at)),
           NET_FMT(o, " mode=\"%s\" padding_mode=\"%s\" align_corners=%u", NET_PICK(o, mode),
                   NET_PICK(o, pad), net_draw(o, 2)),
           1);
  return true;
}

static inline bool net_patches(net_op *o) {
  if (net_kind(o) == 'b' || o->x->n != 3 || o->x->dim[1] % 2) return false;
  int64_t image[2] = {o->x->dim[2], 2}, block[2] = {1, 2};
  net_node(o, "Col2Im",
           NET_FMT(o, "%s %s %s", o->x->name, net_ints(o, 2, image), net_ints(o, 2, block)), "", 1);
  return true;
}

static inline bool net_scaled_norm(net_op *o) {
  if (net_kind(o) != 'f' || o->x->n < 1) return false;
  const char *scale = net_typed(o, 1, &o->x->dim[o->x->n - 1]);
  bool rms = o->g->opset >= 23 && net_draw(o, 2);
  net_node(o, rms ? "RMSNormalization" : "LayerNormalization",
           NET_FMT(o, "%s %s", o->x->name, scale), " axis=-1 epsilon=0.1", 1);
  return true;
}

/* The typed ones, and those of random_nets.h that move values of any type or want f32. */
static net_writer *const net_typed_ops[] = {
    net_to_type,   net_to_type,  net_to_type, net_arithmetic, net_arithmetic, net_arithmetic,
    net_compared,  net_single,   net_single,  net_single,     net_shift,      net_reduced,
    net_reduced,   net_ordered,  net_gathers, net_gathers,    net_moved,      net_quantised,
    net_recurrent, net_heads,    net_heads,   net_sampled,    net_patches,    net_scaled_norm,
    net_reshape,   net_reshape,  net_slice,   net_transpose,  net_split,      net_concat,
    net_repeat,    net_squeeze,  net_gather,  net_pad,        net_conv,       net_matmul,
    net_gemm,      net_pool,     net_norm,    net_softmax,    net_resize,     net_depth,
    net_whole,     net_attention};

/* All inputs of one type, or each of its own; type: which, or NULL. */
static inline void net_input_types(net *g, const char *type) {
  const char *all = net_below(g, 4) ? NULL : net_types[net_below(g, NET_TYPES)].name;
  for (uint32_t i = 0; i < g->nv; i++) {
    const char *own = net_types[net_below(g, 2) ? net_below(g, NET_TYPES) : 0].name;
    snprintf(g->v[i].type, sizeof g->v[i].type, "%s", type ? type : all ? all : own);
  }
}
/* large: of 17 to 30 operators; else of 2 to 16, mostly few. */
static inline net *net_random_typed(tarn_ctx *cx, uint64_t seed, const char *type, bool large) {
  net *g = TARN_NEW(cx, net);
  *g = (net){.cx = cx, .seed = kit_random(&seed), .typed = true};
  g->opset = net_below(g, 2) ? 17 : 23;
  net_inputs(g);
  net_input_types(g, type);
  uint32_t most = net_below(g, 4) ? 6 : 16, want = 2 + net_below(g, most - 1);
  net_draw_all(g, large ? 17 + net_below(g, 14) : want, net_typed_ops,
               sizeof net_typed_ops / sizeof *net_typed_ops);
  net_outputs(g);
  return g;
}

/* One dim of the first input is open, and those of other inputs that were drawn alike. */
static inline void net_open_inputs(net *g) {
  net_inputs(g);
  uint32_t d = net_below(g, g->v[0].n);
  for (uint32_t v = g->nv; v-- > 0;) {
    bool alike = g->v[v].n == g->v[0].n && !memcmp(g->v[v].dim, g->v[0].dim, sizeof g->v[v].dim);
    for (uint32_t i = 0; i < g->v[v].n && alike; i++)
      g->v[v].dim[i] = i == d ? NET_OPEN : tarn_min(g->v[v].dim[i], 12 / g->v[v].n);
  }
}
/* For a range of sizes, of 256 at most: as many programs there may be where there are no families.
 */
static inline net *net_random_open(tarn_ctx *cx, uint64_t seed) {
  net *g = TARN_NEW(cx, net);
  *g = (net){.cx = cx, .seed = kit_random(&seed), .typed = seed % 4 == 0};
  g->hi = NET_OPEN + 70 + net_below(g, 186);
  net_open_inputs(g);
  if (g->typed) net_input_types(g, NULL);
  net_draw_all(g, 2 + net_below(g, 7), g->typed ? net_typed_ops : net_ops,
               g->typed ? sizeof net_typed_ops / sizeof *net_typed_ops
                        : sizeof net_ops / sizeof *net_ops);
  net_outputs(g);
  return g;
}
#endif
