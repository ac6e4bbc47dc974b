/* Which nodes are computed in bytes, and which of them together. */
#include "quantize/internal.h"
#include <math.h>
#include <string.h>

typedef struct finding {
  qz_graph *g;
  bool wide;
  bool *bytes;   /* by value: it is made in bytes */
  bool *brought; /* by value: a product reads it, so it is brought to bytes anyway */
  uint32_t *by;  /* by value: the group that makes it */
  TARN_VEC(qz_group) group;
} finding;

/* ---------------------------------------------------------------- products */

static bool is_product(const qz_node *n) {
  return qz_is_op(n, "Conv") || qz_is_op(n, "Gemm") || qz_is_op(n, "MatMul");
}

static uint32_t *one_input(finding *f, uint32_t v) {
  uint32_t *in = TARN_NEW(f->g->cx, uint32_t);
  *in = v;
  return in;
}

static void settle(finding *f, qz_group *p) {
  f->bytes[p->out] = true;
  f->by[p->out] = f->group.n;
  tarn_push(f->g->cx, &f->group, *p);
}

static qz_group new_group(qz_kind kind, qz_node *n) {
  return (qz_group){.kind = kind,
                    .main = n,
                    .out = n->out[0],
                    .lo = -INFINITY,
                    .hi = INFINITY,
                    .wide = TARN_NONE};
}

static void try_product(finding *f, qz_node *n) {
  qz_group p = new_group(QZ_PRODUCT, n);
  n->why = qz_fold(f->g, &p, f->group.n);
  if (n->why) return;
  qz_fold_clip(f->g, &p, f->group.n);
  p.nin = 1;
  p.in = one_input(f, n->in[0]);
  f->brought[n->in[0]] = true;
  settle(f, &p);
}

/* ---------------------------------------------------------------- additions */

static bool same_shape(const qz_value *a, const qz_value *b) {
  return a->dtype == TARN_F32 && b->dtype == TARN_F32 && a->n == b->n &&
         !memcmp(a->dim, b->dim, a->n * sizeof *a->dim);
}

/* Is there a product that this addition alone reads, not clipped? */
static bool can_be_wide(const finding *f, uint32_t v) {
  uint32_t id = f->by[v];
  const qz_group *p = id == TARN_NONE ? NULL : &f->group.p[id];
  return f->wide && p && p->kind == QZ_PRODUCT && p->lo == -INFINITY && p->hi == INFINITY &&
         qz_reader(f->g, v);
}

/* The one with more weights: the addition becomes part of its kernel, bytes of the other are read
 * there. The later one where they have as many. */
static uint32_t wide_of(const finding *f, const qz_node *n) {
  uint32_t best = TARN_NONE;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t p = f->by[n->in[i]];
    if (!can_be_wide(f, n->in[i])) continue;
    int64_t more = tarn_tensor_count(f->group.p[p].w);
    if (best != TARN_NONE) more -= tarn_tensor_count(f->group.p[best].w);
    if (more > 0 || (!more && p > best)) best = p;
  }
  return best;
}

static bool adds_bytes(const finding *f, const qz_node *n) {
  const qz_value *v = f->g->value;
  if (!qz_is_op(n, "Add") || n->nin != 2 || n->in[0] == n->in[1]) return false;
  if (!same_shape(&v[n->in[0]], &v[n->in[1]])) return false;
  bool first = f->bytes[n->in[0]], second = f->bytes[n->in[1]];
  return (first && second) || (first && f->brought[n->in[1]]) || (second && f->brought[n->in[0]]);
}

static void take_addition(finding *f, qz_node *n) {
  qz_group p = new_group(QZ_ADD, n);
  p.nin = 2;
  p.in = tarn_copy(f->g->cx, n->in, 2 * sizeof *n->in);
  p.wide = wide_of(f, n);
  if (p.wide != TARN_NONE) {
    f->group.p[p.wide].inside = true;
    f->bytes[f->group.p[p.wide].out] = false;
  }
  n->group = f->group.n;
  qz_fold_clip(f->g, &p, f->group.n);
  settle(f, &p);
}

/* ---------------------------------------------------------------- what moves bytes */

static const char *const moves[] = {"MaxPool",   "Concat",  "Reshape",      "Flatten",
                                    "Transpose", "Squeeze", "Unsqueeze",    "Slice",
                                    "Identity",  "Expand",  "DepthToSpace", "SpaceToDepth"};

static bool is_move(const qz_node *n) {
  bool is = false;
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) is |= qz_is_op(n, moves[i]);
  return is;
}

static bool moves_bytes(const finding *f, const qz_node *n) {
  uint32_t data = qz_is_op(n, "Concat") ? n->nin : 1;
  bool all = n->nin >= data && is_move(n);
  for (uint32_t i = 0; all && i < data; i++) all = n->in[i] != TARN_NONE && f->bytes[n->in[i]];
  for (uint32_t i = 1; all && i < n->nout; i++) all = n->out[i] == TARN_NONE;
  return all;
}

static void take_move(finding *f, qz_node *n) {
  qz_group p = new_group(QZ_MOVE, n);
  p.nin = qz_is_op(n, "Concat") ? n->nin : 1;
  p.in = n->in;
  n->group = f->group.n;
  settle(f, &p);
}

static void take_clip(finding *f, qz_node *n) {
  qz_group p = new_group(QZ_CLIP, n);
  p.nin = 1;
  p.in = n->in;
  n->group = f->group.n;
  qz_bounds(f->g, n, &p.lo, &p.hi);
  settle(f, &p);
}

/* ---------------------------------------------------------------- all */

static bool makes_f32(const qz_graph *g, const qz_node *n) {
  return n->nout && n->out[0] != TARN_NONE && !g->value[n->out[0]].fixed &&
         g->value[n->out[0]].dtype == TARN_F32;
}

static void look_at(finding *f, qz_node *n) {
  double lo, hi;
  if (n->group != TARN_NONE || !makes_f32(f->g, n)) return;
  if (is_product(n)) try_product(f, n);
  else if (adds_bytes(f, n)) take_addition(f, n);
  else if (moves_bytes(f, n)) take_move(f, n);
  else if (n->nin && n->in[0] != TARN_NONE && f->bytes[n->in[0]] && qz_bounds(f->g, n, &lo, &hi))
    take_clip(f, n);
}

qz_groups *qz_groups_find(qz_graph *g, bool wide) {
  finding f = {.g = g, .wide = wide};
  f.bytes = TARN_ARRAY(g->cx, bool, g->nvalue + 1);
  f.brought = TARN_ARRAY(g->cx, bool, g->nvalue + 1);
  f.by = TARN_ARRAY(g->cx, uint32_t, g->nvalue + 1);
  for (uint32_t v = 0; v < g->nvalue; v++) f.by[v] = TARN_NONE;
  for (uint32_t i = 0; i < g->nnode; i++) look_at(&f, &g->node[i]);
  qz_groups *s = TARN_NEW(g->cx, qz_groups);
  *s = (qz_groups){f.group.n, f.group.p};
  return s;
}
