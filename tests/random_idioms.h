/* Operators and idioms that the other lists of random networks leave out: sums of scaled values
 * near a type's limits, roundings by a constant, bounds that are no numbers, values through bytes,
 * and rows of a table. What the importer refuses is not drawn. */
#ifndef TARN_TESTS_RANDOM_IDIOMS_H
#define TARN_TESTS_RANDOM_IDIOMS_H
#include "tests/random_types.h"

static inline const char *net_scalar(net_op *o, const char *v) {
  const char *k = net_name(o, "k");
  tarn_buf_fmt(&o->b, "init %s f32 - : %s\n", k, v);
  return k;
}

/* Near the largest number, times a factor, then summed: the sum fits, without the factor it need
 * not. Positive, so that nothing cancels. */
static inline bool net_scaled_sum(net_op *o) {
  static const char *const factor[] = {"0.25", "-0.25", "0.03", "4", "-1"};
  if (o->x->n < 1 || !net_is(o, "f32")) return false;
  uint32_t how = net_draw(o, 5), last = o->x->n - 1;
  int64_t w[2] = {o->x->dim[last], 1 + net_draw(o, 3)};
  const char *x = o->x->name, *lo = net_scalar(o, "0.3"), *hi = net_scalar(o, "0.9");
  x = net_step(o, "Clip", NET_FMT(o, "%s %s %s", x, lo, hi), "");
  x = net_step(o, "Mul", NET_FMT(o, "%s %s", x, net_scalar(o, "1.1e38")), "");
  const char *by = net_draw(o, 3) ? net_scalar(o, NET_PICK(o, factor))
                                  : net_constant(o, "pos", 1, &o->x->dim[last]);
  bool div = net_draw(o, 3) == 0;
  x = net_step(o, div ? "Div" : "Mul", NET_FMT(o, "%s %s", x, by), "");
  if (how == 0) x = net_step(o, "ReduceSum", NET_FMT(o, "%s %s", x, net_int(o, -1)), "");
  else if (how == 1) x = net_step(o, "ReduceMean", x, o->g->opset >= 18 ? "" : " axes=-1,");
  else if (how == 2) x = net_step(o, "CumSum", NET_FMT(o, "%s %s", x, net_int(o, last)), "");
  else if (how == 3)
    x = net_step(o, "MatMul", NET_FMT(o, "%s %s", x, net_constant(o, "pos", 2, w)), "");
  else x = net_step(o, "GlobalAveragePool", x, "");
  net_node(o, "Mul", NET_FMT(o, "%s %s", x, net_scalar(o, "1e-38")), "", 1);
  return true;
}

/* x + c - c, and its kin, with a c that leaves whole numbers or halves. */
static inline bool net_rounded(net_op *o) {
  static const char *const by[] = {"12582912", "8388608", "6291456", "-12582912"};
  static const char *const op[2][2] = {{"Add", "Sub"}, {"Sub", "Add"}};
  if (!net_is(o, "f32")) return false;
  uint32_t way = net_draw(o, 2);
  const char *k = net_scalar(o, NET_PICK(o, by));
  const char *t = net_step(o, op[way][0], NET_FMT(o, "%s %s", o->x->name, k), "");
  net_node(o, op[way][1], NET_FMT(o, "%s %s", t, k), "", 1);
  return true;
}

static inline bool net_odd_bounds(net_op *o) {
  static const char *const at[] = {"nan", "inf", "-inf", "-0.4", "0.9", "0", "-0"};
  if (net_kind(o) != 'f') return false;
  const char *k[2];
  for (uint32_t i = 0; i < 2; i++) {
    k[i] = net_scalar(o, NET_PICK(o, at));
    if (!net_is(o, "f32"))
      k[i] = net_step(o, "Cast", k[i], NET_FMT(o, " to=%d", net_types[net_type(o->x->type)].code));
  }
  net_node(
      o, "Clip",
      NET_FMT(o, "%s %s %s", o->x->name, net_draw(o, 4) ? k[0] : "_", net_draw(o, 4) ? k[1] : ""),
      "", 1);
  return true;
}

/* Two values through bytes, joined, and through bytes again; scales that make ties. */
static inline bool net_through_bytes(net_op *o) {
  static const char *const join[] = {"Add", "Mul", "Sub", "Max"};
  static const char *const scale[] = {"0.5", "0.25", "0.0137"};
  if (!net_is(o, "f32")) return false;
  const char *z = net_name(o, "k"), *t[2] = {o->x->name, net_second(o)};
  bool u = net_draw(o, 2);
  tarn_buf_fmt(&o->b, "init %s %s - : %s\n", z, u ? "u8" : "i8", u ? "117" : "-5");
  for (uint32_t i = 0; i < 3; i++) {
    const char *s = net_scalar(o, NET_PICK(o, scale)), *from = i < 2 ? t[i] : t[0];
    const char *q = net_step(o, "QuantizeLinear", NET_FMT(o, "%s %s %s", from, s, z), "");
    const char *d = NET_FMT(o, "%s %s %s", q, s, z);
    if (i == 2) net_node(o, "DequantizeLinear", d, "", 1);
    else t[i] = net_step(o, "DequantizeLinear", d, "");
    if (i == 1) t[0] = net_step(o, NET_PICK(o, join), NET_FMT(o, "%s %s", t[0], t[1]), "");
  }
  return true;
}

/* Operands: x, y a value that broadcasts, c a constant of x's channels, l of its last extent, p of
 * its shape and above 0, a an axis. */
static const struct net_row {
  const char *op, *operands, *attributes;
  uint32_t results;
} net_rows[] = {{"Pow", "xp", "", 1},
                {"Pow", "py", "", 1},
                {"PRelu", "xl", "", 1},
                {"Mean", "xyl", "", 1},
                {"Sum", "xyy", "", 1},
                {"CastLike", "xy", "", 1},
                {"CumProd", "xa", "", 1},
                {"GroupNormalization", "xcc", " num_groups=1 epsilon=0.1", 1},
                {"LpPool", "x", " kernel_shape=2,2 p=2", 1},
                {"LpPool", "x", " kernel_shape=2, p=1", 1},
                {"GlobalLpPool", "x", " p=1", 1},
                {"DynamicQuantizeLinear", "x", "", 3},
                {"AveragePool", "x", " kernel_shape=3,3 pads=1,1,1,1 strides=2,2 ceil_mode=1", 1},
                {"MaxPool", "x", " kernel_shape=2,2 strides=2,2 dilations=2,2", 2},
                {"Det", "x", "", 1},
                {"Mod", "xp", " fmod=1", 1},
                {"CumSum", "xa", " reverse=1", 1}};
static inline const char *net_operand(net_op *o, char what) {
  switch (what) {
  case 'x': return o->x->name;
  case 'y': return net_second(o);
  case 'c': return net_typed(o, 1, &o->x->dim[1]);
  case 'l': return net_typed(o, 1, &o->x->dim[o->x->n - 1]);
  case 'p': return net_constant(o, "pos", o->x->n, o->x->dim);
  default: return net_int(o, net_draw(o, o->x->n));
  }
}
static inline bool net_row(net_op *o) {
  const struct net_row *r = &NET_PICK(o, net_rows);
  tarn_buf in = {.cx = o->g->cx};
  if (o->x->n < 2) return false;
  for (const char *p = r->operands; *p; p++)
    tarn_buf_fmt(&in, "%s%s", in.n ? " " : "", net_operand(o, *p));
  net_node(o, r->op, in.p, r->attributes, r->results);
  return true;
}

static net_writer *const net_idioms[] = {
    net_scaled_sum,    net_scaled_sum, net_rounded, net_odd_bounds, net_through_bytes,
    net_through_bytes, net_row,        net_row,     net_row,        net_row,
    net_binary,        net_unary,      net_reshape, net_transpose,  net_slice,
    net_concat,        net_reduce,     net_affine,  net_conv,       net_matmul};

/* Of f32 first, and of what its operators make of that. */
static inline net *net_random_idioms(tarn_ctx *cx, uint64_t seed) {
  net *g = TARN_NEW(cx, net);
  *g = (net){.cx = cx, .seed = kit_random(&seed), .typed = true};
  g->opset = net_below(g, 2) ? 17 : 26;
  net_inputs(g);
  net_draw_all(g, 2 + net_below(g, 6), net_idioms, sizeof net_idioms / sizeof *net_idioms);
  net_outputs(g);
  return g;
}
#endif
