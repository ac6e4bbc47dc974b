/* Random networks of a few operators, as text for rules_kit.h: what is drawn is appended when the
 * importer takes it, and the importer says which shapes come out. Values are read by several
 * consumers; several of them are outputs. */
#ifndef TARN_TESTS_RANDOM_NETS_H
#define TARN_TESTS_RANDOM_NETS_H
#include "tests/random_net_ops.h"

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

static inline bool net_small_enough(const net *g, const net_value *v) {
  int64_t n = net_size(v);
  return n > 0 && n <= (g->hi ? 8 : 1) * NET_MOST;
}

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
    if (!net_small_enough(m->g, v)) return;
  }
  m->ok = true;
}
/* The importer takes it, at one size of those that are open. */
static inline bool net_imports(net *g, const net_item *it, int64_t at) {
  net now = *g;
  tarn_buf b = {.cx = g->cx};
  now.at = at;
  net_text(&now, &b);
  net_import m = {.g = &now, .text = b.p, .it = it};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  bool ok = tarn_protect(cx, net_shapes, &m) == TARN_OK && m.ok;
  tarn_ctx_free(cx);
  if (at == NET_OPEN || !g->hi) memcpy(g->v, now.v, sizeof g->v);
  return ok;
}

/* At the least size, ten behind it and the greatest: what wants multiples of a number, as a reshape
 * does, takes some of these alone. */
static inline bool net_takes(net *g, const net_item *it) {
  bool ok = net_imports(g, it, NET_OPEN);
  if (!g->hi) return ok;
  for (int64_t at = NET_OPEN + 1; ok && at <= NET_OPEN + 10; at++) ok = net_imports(g, it, at);
  return ok && net_imports(g, it, g->hi);
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
  bool ok = net_takes(g, &o->it);
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
