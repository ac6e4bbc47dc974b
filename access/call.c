/* Calls of intrinsics: their definitions, and what a call stands for.
 *
 * The meaning is a term over whole operands; a call repeats it over access dims S. In the normal
 * form that is a change of every node by itself: S goes in front of a view's dims, of an axis
 * number, of the shared loops of a nest. */
#include "access/internal.h"
#include <string.h>

/* ---------------------------------------------------------------- definitions */
const tarn_call_def *tarn_call_find(const tarn_lang *L, const char *name) {
  for (uint32_t i = 0; i < L->call.n; i++)
    if (strcmp(L->call.p[i]->name, name) == 0) return L->call.p[i];
  return NULL;
}

static bool same_def(const tarn_call_def *a, const tarn_call_def *b) {
  return a->nin == b->nin && a->meaning == b->meaning && a->acc == b->acc && a->start == b->start &&
         memcmp(a->in, b->in, a->nin * sizeof *a->in) == 0;
}

static bool repeats(uint32_t op) {
  static const uint32_t ops[] = {
      TARN_OP_INPUT, TARN_OP_CONST,    TARN_OP_VIEW,         TARN_OP_CONCAT, TARN_OP_COMPUTE,
      TARN_OP_FOLD,  TARN_OP_SYSTOLIC, TARN_OP_SYSTOLIC_ACC, TARN_OP_NEST,   TARN_OP_MATERIALISE};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (ops[i] == op) return true;
  return false;
}

void tarn_call_define(tarn_lang *L, const tarn_call_def *d) {
  tarn_call_def *c = TARN_NEW(L->cx, tarn_call_def);
  *c = *d;
  c->name = tarn_strdup(L->cx, d->name);
  c->in = tarn_copy(L->cx, d->in, d->nin * sizeof *d->in);
  c->meaning = tarn_normalise(L, tarn_call_expand(L, d->meaning));
  const tarn_call_def *old = tarn_call_find(L, d->name);
  if (old && same_def(old, c)) return;
  if (old) tarn_raise(L->cx, TARN_BAD_INPUT, "call %s: it means something else already", d->name);
  const tarn_term *t;
  uint32_t n = tarn_term_reachable(L, &c->meaning, 1, &t);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_node *x = tarn_term_get(L, t[i]);
    if (!repeats(x->op) || tarn_type_get(L, x->type)->tuple)
      tarn_raise(L->cx, TARN_BAD_INPUT, "call %s: its meaning has an operator %s", d->name,
                 tarn_op_info(x->op)->text);
  }
  tarn_push(L->cx, &L->call, c);
}

/* ---------------------------------------------------------------- types */
static bool no(tarn_lang *L, const char *what, uint32_t i) {
  tarn_set_message(L->cx, "operand %u %s", i, what);
  return false;
}

/* ((S),(the type's dims))? S is the first ns dims of `out`, and `more` further ones of `steps`. */
static bool operand_fits(const tarn_type *k, const tarn_type *want, const tarn_type *out,
                         const tarn_type *steps, uint32_t more) {
  uint32_t ns = out->ns + more;
  if (k->tuple || k->dtype != want->dtype || k->ns != ns || k->n != ns + want->n) return false;
  return memcmp(k->dim, out->dim, out->ns * sizeof *k->dim) == 0 &&
         memcmp(k->dim + out->ns, steps->dim + out->ns, more * sizeof *k->dim) == 0 &&
         memcmp(k->dim + ns, want->dim, want->n * sizeof *k->dim) == 0;
}

static bool written_types(tarn_lang *L, const tarn_written *w, const tarn_payload *p,
                          const uint32_t *kid_types, uint32_t n) {
  uint32_t type = tarn_written_type(L, w, kid_types, n);
  if (type != TARN_NONE && (type != p->type || p->n))
    tarn_set_message(L->cx, "the call is not of the type that the kernel %s gives", w->name);
  return type == p->type && !p->n;
}

bool tarn_call_types(tarn_lang *L, const tarn_payload *p, const uint32_t *kid_types, uint32_t n) {
  const tarn_written *w = tarn_written_find(L, p->name);
  if (w) return written_types(L, w, p, kid_types, n);
  const tarn_call_def *d = tarn_call_find(L, p->name);
  if (!d) return true;
  const tarn_type *out = tarn_type_get(L, p->type), *first = tarn_type_get(L, kid_types[0]);
  int64_t r = p->n ? p->ints[0] : 0;
  tarn_set_message(L->cx, "the call does not fit the meaning of %s", p->name);
  if (p->n > 1 || r < 0 || out->tuple || first->tuple || first->ns != out->ns + r || (r && !d->acc))
    return false;
  if (n != d->nin && (n + 1 != d->nin || !d->acc || d->start == TARN_NONE)) return false;
  for (uint32_t i = 0; i < n; i++) {
    bool acc = d->acc && i + 1 == d->nin;
    const tarn_type *want = tarn_term_type(L, d->in[i]);
    if (!operand_fits(tarn_type_get(L, kid_types[i]), want, out, first, acc ? 0 : (uint32_t)r))
      return no(L, "does not have the intrinsic's shape and type", i);
  }
  return operand_fits(out, tarn_term_type(L, d->meaning), out, first, 0);
}

/* ---------------------------------------------------------------- repeating a meaning */
typedef struct lift {
  tarn_lang *L;
  uint32_t p; /* rank of S */
  int64_t s[TARN_MAX_DIMS];
  const tarn_call_def *d;
  const tarn_term *operand; /* ((S),(dims)) for each input */
  tarn_map *done;           /* term -> lifted + 1 */
} lift;

static void in_front(const lift *l, uint32_t n, const int64_t *dim, int64_t *out) {
  if (l->p + n > TARN_MAX_DIMS)
    tarn_raise(l->L->cx, TARN_BAD_INPUT, "call %s: more than %d dims", l->d->name, TARN_MAX_DIMS);
  memcpy(out, l->s, l->p * sizeof *out);
  memcpy(out + l->p, dim, n * sizeof *out);
}

/* A map between dims, both sides of which get S in front (inner: only the first side). */
static uint32_t lift_map(const lift *l, uint32_t id, bool inner) {
  tarn_lang *L = l->L;
  tarn_imap m = *tarn_imap_get(L, id), q = m;
  uint32_t sub[TARN_MAX_DIMS], p = inner ? 0 : l->p;
  in_front(l, m.n, m.dim, q.dim);
  q.ns = (uint8_t)(m.ns + l->p), q.n = (uint8_t)(m.n + l->p), q.nin = (uint8_t)(m.nin + p);
  for (uint32_t i = 0; i < m.n; i++) sub[i] = tarn_ix_var(L, i + l->p, q.dim);
  if (!inner) in_front(l, m.nin, m.in, q.in);
  for (uint32_t i = 0; i < p; i++) q.e[i] = tarn_ix_var(L, i, q.dim);
  for (uint32_t i = 0; i < m.nin; i++) q.e[p + i] = tarn_ix_subst(L, m.e[i], sub, q.dim);
  for (uint32_t i = 0; i < m.nguard; i++) q.guard[i].e = tarn_ix_subst(L, m.guard[i].e, sub, q.dim);
  return tarn_map_intern(L, &q);
}

/* A constant at every point of S. */
static tarn_term lift_const(const lift *l, tarn_term t) {
  tarn_lang *L = l->L;
  const tarn_type *x = tarn_term_type(L, t);
  tarn_imap m = {
      .ns = (uint8_t)(x->ns + l->p), .n = (uint8_t)(x->n + l->p), .nin = x->n, .fill = TARN_NONE};
  in_front(l, x->n, x->dim, m.dim);
  memcpy(m.in, x->dim, x->n * sizeof *m.in);
  for (uint32_t i = 0; i < x->n; i++) m.e[i] = tarn_ix_var(L, i + l->p, m.dim);
  return tarn_view(L, tarn_map_intern(L, &m), t);
}

static tarn_term lift_input(const lift *l, tarn_term t) {
  for (uint32_t i = 0; i < l->d->nin; i++)
    if (l->d->in[i] == t)
      return tarn_access(l->L, l->p + tarn_term_type(l->L, t)->ns, l->operand[i]);
  tarn_raise(l->L->cx, TARN_BAD_INPUT, "call %s: its meaning reads something that is no operand",
             l->d->name);
}

static tarn_term lift_nest(const lift *l, const tarn_node *x, const tarn_term *kid) {
  tarn_lang *L = l->L;
  uint32_t *types = TARN_ARRAY(L->cx, uint32_t, x->n);
  for (uint32_t i = 0; i < x->n; i++) types[i] = tarn_term_get(L, x->kid[i])->type;
  const tarn_nest *old = tarn_nest_get(L, tarn_nest_of(L, x->op, x->payload, types, x->n));
  tarn_nest n = *old;
  tarn_stage *stage = tarn_copy(L->cx, n.stage, n.nstage * sizeof *stage);
  in_front(l, old->depth, old->shared, n.shared);
  n.depth = (uint8_t)(old->depth + l->p), n.out_ns = (uint8_t)(old->out_ns + l->p), n.stage = stage;
  for (uint32_t i = 0; i < n.nstage; i++) {
    uint32_t reads = tarn_stage_reads(L, &stage[i]);
    tarn_read *r = tarn_copy(L->cx, stage[i].read, reads * sizeof *r);
    for (uint32_t k = 0; k < reads; k++) r[k].map = lift_map(l, r[k].map, r[k].stage);
    stage[i].read = r;
  }
  return tarn_mk(L, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, tarn_nest_intern(L, &n)), kid,
                 x->n);
}

static tarn_term lift_node(const lift *l, tarn_term t, const tarn_term *kid) {
  tarn_lang *L = l->L;
  const tarn_node *x = tarn_term_get(L, t);
  const tarn_payload *p = tarn_payload_get(L, x->payload);
  int64_t axis;
  switch (x->op) {
  case TARN_OP_INPUT: return lift_input(l, t);
  case TARN_OP_CONST: return lift_const(l, t);
  case TARN_OP_VIEW: return tarn_view(L, lift_map(l, p->id, false), kid[0]);
  case TARN_OP_MATERIALISE: return kid[0];
  case TARN_OP_COMPUTE: return tarn_mk(L, x->op, x->payload, kid, x->n);
  case TARN_OP_CONCAT: return tarn_concat(L, (uint32_t)p->ints[0] + l->p, kid, x->n);
  case TARN_OP_FOLD:
    axis = p->ints[0] + l->p;
    return tarn_mk(
        L, x->op,
        tarn_payload_intern(
            L, &(tarn_payload){.kind = TARN_P_FOLD, .n = 1, .ints = &axis, .value = p->value}),
        kid, 1);
  default: return lift_nest(l, x, kid);
  }
}

/* The meaning over operands ((S),(dims)), as ((S),(R)). */
static tarn_term lifted(tarn_lang *L, const tarn_call_def *d, uint32_t p, const int64_t *s,
                        const tarn_term *operand) {
  lift l = {.L = L, .p = p, .d = d, .operand = operand, .done = tarn_map_new(L->cx)};
  memcpy(l.s, s, p * sizeof *s);
  const tarn_term *walk;
  uint32_t n = tarn_term_reachable(L, &d->meaning, 1, &walk);
  tarn_term *t = tarn_copy(L->cx, walk, n * sizeof *t), last = 0;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_node *x = tarn_term_get(L, t[i]);
    tarn_term *kid = TARN_ARRAY(L->cx, tarn_term, x->n ? x->n : 1);
    for (uint32_t k = 0; k < x->n; k++) kid[k] = (tarn_term)(*tarn_map_get(l.done, x->kid[k]) - 1);
    last = lift_node(&l, t[i], kid);
    *tarn_map_at(l.done, t[i], NULL) = (uint64_t)last + 1;
  }
  return tarn_access(L, p, last);
}

/* ---------------------------------------------------------------- calls */
/* Step number `step` of an operand ((S,K),(dims)): ((S),(dims)). */
static tarn_term step_of(tarn_lang *L, tarn_term a, uint32_t p, uint32_t r, int64_t step) {
  const tarn_type *t = tarn_term_type(L, a);
  tarn_imap m = {.ns = (uint8_t)p, .n = (uint8_t)(t->n - r), .nin = t->n, .fill = TARN_NONE};
  memcpy(m.in, t->dim, t->n * sizeof *m.in);
  for (uint32_t i = 0; i < m.n; i++) m.dim[i] = t->dim[i < p ? i : i + r];
  for (uint32_t i = 0; i < m.n; i++) m.e[i < p ? i : i + r] = tarn_ix_var(L, i, m.dim);
  for (uint32_t i = p + r; i-- > p; step /= t->dim[i]) m.e[i] = tarn_ix_const(L, step % t->dim[i]);
  return tarn_view(L, tarn_map_intern(L, &m), a);
}

/* The accumulator's first value where none is given. */
static tarn_term begin(tarn_lang *L, const tarn_call_def *d, const tarn_type *out) {
  tarn_tensor *one = tarn_tensor_new(L->cx, out->dtype, 0, NULL);
  tarn_tensor_set(one, 0, tarn_fx_value(L, d->start));
  tarn_imap m = {.ns = out->ns, .n = out->n, .fill = TARN_NONE};
  memcpy(m.dim, out->dim, out->n * sizeof *m.dim);
  return tarn_view(L, tarn_map_intern(L, &m), tarn_constant(L, "start", one, 0));
}

static tarn_term expand(tarn_lang *L, const tarn_call_def *d, const tarn_node *x,
                        const tarn_term *kid) {
  const tarn_payload *p = tarn_payload_get(L, x->payload);
  const tarn_type *out = tarn_type_get(L, p->type),
                  *first = tarn_type_get(L, tarn_term_get(L, x->kid[0])->type);
  uint32_t r = p->n ? (uint32_t)p->ints[0] : 0;
  tarn_term *now = TARN_ARRAY(L->cx, tarn_term, d->nin), acc = TARN_NONE;
  if (d->acc) acc = x->n == d->nin ? kid[d->nin - 1] : begin(L, d, out);
  int64_t steps = 1;
  for (uint32_t i = 0; i < r; i++) steps *= first->dim[out->ns + i];
  for (int64_t i = 0; i < steps; i++) {
    for (uint32_t k = 0; k < d->nin - d->acc; k++)
      now[k] = r ? step_of(L, kid[k], out->ns, r, i) : kid[k];
    if (d->acc) now[d->nin - 1] = acc;
    acc = lifted(L, d, out->ns, out->dim, now);
  }
  return acc;
}

tarn_term tarn_call_expand(tarn_lang *L, tarn_term t) {
  const tarn_term *walk;
  uint32_t n = L->call.n ? tarn_term_reachable(L, &t, 1, &walk) : 0;
  bool any = false;
  for (uint32_t i = 0; i < n; i++) any |= tarn_term_get(L, walk[i])->op == TARN_OP_CALL;
  if (!any) return t;
  tarn_term *all = tarn_copy(L->cx, walk, n * sizeof *all);
  tarn_map *done = tarn_map_new(L->cx);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_node *x = tarn_term_get(L, all[i]);
    tarn_term *kid = TARN_ARRAY(L->cx, tarn_term, x->n ? x->n : 1);
    for (uint32_t k = 0; k < x->n; k++) kid[k] = (tarn_term)(*tarn_map_get(done, x->kid[k]) - 1);
    const tarn_call_def *d =
        x->op == TARN_OP_CALL ? tarn_call_find(L, tarn_payload_get(L, x->payload)->name) : NULL;
    tarn_term to = d ? expand(L, d, x, kid) : tarn_mk(L, x->op, x->payload, kid, x->n);
    *tarn_map_at(done, all[i], NULL) = (uint64_t)to + 1;
  }
  return (tarn_term)(*tarn_map_get(done, t) - 1);
}
