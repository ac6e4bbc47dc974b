/* For each operator: kids and payload of a node whose type is wanted. With a kid that is given, or
 * nothing wanted, the payload is chosen for the kid; else the kid's type is chosen for the payload.
 * op_views.c has the operators of one operand that move elements, op.c the others. */
#ifndef TARN_CHECK_OP_H
#define TARN_CHECK_OP_H
#include "rules/check/check.h"
#include <string.h>

typedef struct node {
  gen *g;
  const rpat *p;
  const want *w;
  made *m;
  rv v[4];     /* payload elements */
  bool has[4]; /* known beforehand */
} node;

static inline bool is_any(const want *w) { return w->ns < 0 && w->nc < 0; }
static inline int64_t int_of(const node *x, uint32_t i) { return x->v[i].i; }
static inline void set_int(node *x, uint32_t i, int64_t v) {
  if (!x->has[i]) x->v[i] = (rv){.kind = 'i', .i = v};
}
static inline void set_id(node *x, uint32_t i, char kind, uint32_t id) {
  if (!x->has[i]) x->v[i] = (rv){.kind = kind, .id = id};
}
/* What of the payload follows from the kids, now that they are there. */
static inline bool again(node *x) {
  for (uint32_t k = 0; k < x->p->npay; k++)
    if (!x->has[k]) x->has[k] = pay_get(x->g, x->p, k, &x->v[k]);
  return true;
}
static inline bool kid(node *x, uint32_t i, const want *w) {
  x->m->n = i + 1;
  return gen_pattern(x->g, x->p->kid[i], w, &x->m->kid[i]) && (w->ns >= 0 || again(x));
}
static inline const tarn_type *kid_type(const node *x, uint32_t i) {
  return type_at(x->g, x->m->kid[i]);
}
/* Is the only kid's type settled without regard to the node's? */
static inline bool forward(node *x) { return is_any(x->w) || gen_ready(x->g, x->p->kid[0]); }
static inline want pinned(node *x, int least_s, int least_c) {
  want w = *x->w;
  want_pin(x->g, &w, least_s, least_c);
  return w;
}
/* The axis: given, else any of n. */
static inline bool axis(node *x, uint32_t i, uint32_t n) {
  if (n == 0) return false;
  if (!x->has[i]) set_int(x, i, draw(x->g, n));
  return int_of(x, i) >= 0 && int_of(x, i) < (int64_t)n;
}
static inline void insert(want *w, uint32_t i, bool access, int64_t dim) {
  int64_t *at = access ? &w->s[i] : &w->c[(int)i - w->ns];
  int *n = access ? &w->ns : &w->nc;
  uint32_t after = access ? (uint32_t)w->ns - i : (uint32_t)w->nc - (i - (uint32_t)w->ns);
  memmove(at + 1, at, after * sizeof *at);
  *at = dim;
  ++*n;
}
static inline void drop(want *w, uint32_t i) {
  bool access = (int)i < w->ns;
  int64_t *at = want_dim(w, i);
  uint32_t after = (access ? (uint32_t)w->ns : want_rank(w)) - i - 1;
  memmove(at, at + 1, after * sizeof *at);
  --*(access ? &w->ns : &w->nc);
}
static inline uint32_t shape_of(gen *g, const want *w) {
  int64_t dim[TARN_MAX_DIMS];
  want k = *w;
  for (uint32_t i = 0; i < want_rank(w); i++) dim[i] = *want_dim(&k, i);
  return tarn_type_tensor(g->L, TARN_F32, (uint32_t)w->ns, want_rank(w), dim);
}

typedef bool make_fn(node *x);
#define OP(ID, ...) make_fn make_##ID;
#include "access/ops.def"
#undef OP
#endif
