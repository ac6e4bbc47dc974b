/* access: the index map of each transform operator. Typing has been done by tarn_type_of; a map
 * made here is sound by construction. */
#include "access/ix.h"

typedef struct op_ctx {
  tarn_lang *L;
  const tarn_payload *p;
  const tarn_type *in, *out;
  tarn_imap *m;
  tarn_guard guard;
  bool guarded;
} op_ctx;

static uint32_t var(op_ctx *c, uint32_t i) { return tarn_ix_var(c->L, i, c->out->dim); }

static void map_ACCESS(op_ctx *c) {
  for (uint32_t i = 0; i < c->in->n; i++) c->m->e[i] = var(c, i);
}

static void map_TRANSPOSE(op_ctx *c) {
  for (uint32_t i = 0; i < c->in->n; i++) c->m->e[c->p->ints[i]] = var(c, i);
}

/* a + k·x for the index x of an out dim. */
static uint32_t plus(op_ctx *c, uint32_t a, int64_t k, uint32_t dim) {
  const int64_t *ext = c->out->dim;
  return tarn_ix_add(c->L, a, tarn_ix_scale(c->L, var(c, dim), k, ext), ext);
}

/* ints: window extents, strides, and dilations when there are three of each. */
static void map_WINDOWS(op_ctx *c) {
  uint32_t ns = c->in->ns, nc = c->in->n - ns;
  const int64_t *s = c->p->ints + nc, *d = c->p->n == 3 * nc ? s + nc : NULL;
  for (uint32_t i = 0; i < ns; i++) c->m->e[i] = var(c, i);
  for (uint32_t j = 0; j < nc; j++) {
    uint32_t e = plus(c, tarn_ix_const(c->L, 0), s[j], ns + j);
    c->m->e[ns + j] = plus(c, e, d ? d[j] : 1, ns + nc + j);
  }
}

static void map_SLICE(op_ctx *c) {
  uint32_t axis = (uint32_t)c->p->ints[0];
  map_ACCESS(c);
  c->m->e[axis] =
      plus(c, tarn_ix_const(c->L, c->p->ints[1]), c->p->n > 3 ? c->p->ints[3] : 1, axis);
}

static void map_PAD(op_ctx *c) {
  uint32_t axis = (uint32_t)c->p->ints[0];
  int64_t before = c->p->ints[1];
  map_ACCESS(c);
  c->m->e[axis] = plus(c, tarn_ix_const(c->L, -before), 1, axis);
  c->guard = (tarn_guard){var(c, axis), before, before + c->in->dim[axis]};
  c->guarded = true;
  c->m->fill = c->p->value;
}

static void map_SQUEEZE(op_ctx *c) {
  uint32_t axis = (uint32_t)c->p->ints[0];
  for (uint32_t i = 0; i < c->in->n; i++)
    c->m->e[i] = i == axis ? tarn_ix_const(c->L, 0) : var(c, i - (i > axis));
}

static void map_INSERT_AXIS(op_ctx *c) {
  uint32_t axis = (uint32_t)c->p->ints[0];
  for (uint32_t i = 0; i < c->in->n; i++) c->m->e[i] = var(c, i + (i >= axis));
}

static void map_BROADCAST(op_ctx *c) {
  for (uint32_t i = 0; i < c->in->n; i++)
    c->m->e[i] = c->in->dim[i] == 1 ? tarn_ix_const(c->L, 0) : var(c, i);
}

/* In dims [i0, i1) are the mixed-radix digits of the number that out dims [o0, o1) write. */
static void regroup(op_ctx *c, uint32_t i0, uint32_t i1, uint32_t o0, uint32_t o1) {
  uint32_t flat = tarn_ix_const(c->L, 0);
  int64_t stride = 1;
  for (uint32_t i = o1; i-- > o0; stride *= c->out->dim[i]) flat = plus(c, flat, stride, i);
  stride = 1;
  for (uint32_t i = i1; i-- > i0; stride *= c->in->dim[i]) {
    uint32_t q = tarn_ix_div(c->L, flat, stride, c->out->dim);
    c->m->e[i] = tarn_ix_mod(c->L, q, c->in->dim[i], c->out->dim);
  }
}

static void map_RESHAPE(op_ctx *c) {
  regroup(c, 0, c->in->ns, 0, c->out->ns);
  regroup(c, c->in->ns, c->in->n, c->out->ns, c->out->n);
}

#define map_FLATTEN map_RESHAPE
#define map_VIEW    NULL /* its payload */
static void (*const map_rule[TARN_OP_COUNT])(op_ctx *) = {
#define OP(ID, ...)
#define OPV(ID, ...) [TARN_OP_##ID] = map_##ID,
#include "access/ops.def"
#undef OP
};

static bool empty(const tarn_type *t) {
  for (uint32_t i = 0; i < t->n; i++)
    if (!t->dim[i]) return true;
  return false;
}

uint32_t tarn_map_of(tarn_lang *L, uint32_t op, uint32_t payload, uint32_t child_type) {
  if (!tarn_op_is_view(op))
    tarn_raise(L->cx, TARN_INTERNAL, "index map: operator %u is no view", op);
  uint32_t type = tarn_type_of(L, op, payload, &child_type, 1);
  if (type == TARN_NONE)
    tarn_raise(L->cx, TARN_BAD_INPUT, "%s", tarn_strdup(L->cx, tarn_message(L->cx)));
  const tarn_payload *p = tarn_payload_get(L, payload);
  if (op == TARN_OP_VIEW) return p->id;
  const tarn_type *in = tarn_type_get(L, child_type), *out = tarn_type_get(L, type);
  tarn_imap m = {.ns = out->ns, .n = out->n, .nin = in->n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < out->n; i++) m.dim[i] = out->dim[i];
  for (uint32_t i = 0; i < in->n; i++) m.in[i] = in->dim[i];
  op_ctx c = {.L = L, .p = p, .in = in, .out = out, .m = &m};
  if (!empty(out)) map_rule[op](&c);
  return tarn_map_make(L, &m, c.guarded, &c.guard);
}
