/* A random network being drawn: its values and operators, their text, and what an operator writes.
 */
#ifndef TARN_TESTS_RANDOM_NET_H
#define TARN_TESTS_RANDOM_NET_H
#include "tests/rules_kit.h"

#define NET_VALUES 128
#define NET_ITEMS  32
#define NET_MOST   2500 /* elements of a value */
#define NET_OPEN   53   /* the least of the extent that is open, in a network for several sizes */

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
  int64_t hi;     /* the greatest of the open extent; 0: none is open */
  int64_t at;     /* its text is that of one size; 0: of all */
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

/* An input's dims, the open one as it is asked for. */
static inline const char *net_given(const net *g, const net_value *v) {
  tarn_buf b = {.cx = g->cx};
  for (uint32_t i = 0; i < v->n; i++) {
    bool open = g->hi && v->dim[i] == NET_OPEN;
    if (i) tarn_buf_str(&b, ",");
    if (open && !g->at) tarn_buf_str(&b, "N");
    else tarn_buf_fmt(&b, "%lld", (long long)(open ? g->at : v->dim[i]));
  }
  return v->n ? b.p : "-";
}
static inline void net_text(const net *g, tarn_buf *b) {
  if (g->hi && !g->at) tarn_buf_fmt(b, "sizes N=%d..%lld\n", NET_OPEN, (long long)g->hi);
  if (g->opset) tarn_buf_fmt(b, "opset %u\n", g->opset);
  for (uint32_t i = 0; i < g->nv; i++)
    if (g->given[i])
      tarn_buf_fmt(b, "in %s %s %s\n", g->v[i].name, g->v[i].type, net_given(g, &g->v[i]));
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
#endif
