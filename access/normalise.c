/* The normal form of terms: chains of transforms as one view, products over pairs as computes of
 * several operands, and no extent of 0 but in constants and operands that no term can see into.
 *
 * A pair or a cartesian product that no compute in tuple form takes apart is a concatenation of two
 * views along the tuple dim. */
#include "access/ix.h"
#include <string.h>

static tarn_term known(const tarn_lang *L, tarn_term t) {
  const uint64_t *p = tarn_map_get(L->normal, t);
  return p ? (tarn_term)(*p - 1) : TARN_NONE;
}

/* The view of a term in normal form, in normal form. */
static tarn_term through(tarn_lang *L, uint32_t map, tarn_term base) {
  const tarn_node *x = tarn_term_get(L, base);
  if (x->op == TARN_OP_VIEW) {
    uint32_t both = tarn_map_compose(L, map, tarn_payload_get(L, x->payload)->id);
    if (both != TARN_NONE) return tarn_view(L, both, x->kid[0]);
  }
  return tarn_view(L, map, base);
}

/* ---------------------------------------------------------------- products */
/* One side of a product: its dims are the first k of the result, then `from` on, then the compute
 * dims. */
static tarn_term product_side(tarn_lang *L, const tarn_type *out, tarn_term side, uint32_t k,
                              uint32_t from) {
  const tarn_type *t = tarn_term_type(L, side);
  tarn_imap m = {.ns = out->ns, .n = out->n, .nin = t->n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < out->n; i++) m.dim[i] = i == out->ns ? 1 : out->dim[i];
  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t loop = i < k ? i : i < t->ns ? from + i - k : out->ns + 1u + i - t->ns;
    m.in[i] = t->dim[i];
    m.e[i] = tarn_ix_var(L, loop, m.dim);
  }
  return through(L, tarn_map_make(L, &m, 0, NULL), side);
}

static tarn_term normal_product(tarn_lang *L, const tarn_node *x, const tarn_term *kid) {
  const tarn_type *out = tarn_type_get(L, x->type), *a = tarn_term_type(L, kid[0]);
  bool cart = x->op == TARN_OP_CART_PROD;
  uint32_t k = cart ? (uint32_t)tarn_payload_get(L, x->payload)->ints[0] : a->ns;
  const tarn_term part[2] = {product_side(L, out, kid[0], k, k),
                             product_side(L, out, kid[1], k, a->ns)};
  return tarn_concat(L, out->ns, part, 2);
}

/* ---------------------------------------------------------------- tuples taken apart */
/* The part of a concatenation that all of a map's indices lie in; TARN_NONE when it is not one.
 * *lo: its start. */
static uint32_t one_part(tarn_lang *L, const tarn_node *x, const tarn_imap *m, uint32_t axis,
                         int64_t *start) {
  tarn_box b;
  tarn_lin a = {0};
  int64_t lo, hi;
  tarn_box_of(&b, m->n, m->dim);
  for (uint32_t i = 0; i < m->nguard; i++)
    if (!tarn_box_assume(L, &b, &m->guard[i])) return TARN_NONE;
  tarn_lin_ix(L, &a, 1, m->e[axis], NULL, &b);
  tarn_lin_range(L, &a, &b, &lo, &hi);
  *start = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t end = *start + tarn_term_type(L, x->kid[i])->dim[axis];
    if (*start <= lo && hi < end) return i;
    *start = end;
  }
  return TARN_NONE;
}

/* A view of a term in normal form, looking through concatenations as long as one part is enough.
 * The first one is the tuple's: TARN_NONE when that cannot be taken apart. */
static tarn_term resolve(tarn_lang *L, uint32_t map, tarn_term base) {
  for (bool inside = false;; inside = true) {
    const tarn_node *x = tarn_term_get(L, base);
    while (x->op == TARN_OP_VIEW) {
      uint32_t both = tarn_map_compose(L, map, tarn_payload_get(L, x->payload)->id);
      if (both == TARN_NONE) return inside ? tarn_view(L, map, base) : TARN_NONE;
      map = both, base = x->kid[0];
      x = tarn_term_get(L, base);
    }
    if (x->op != TARN_OP_CONCAT) return tarn_view(L, map, base);
    int64_t start;
    uint32_t axis = (uint32_t)tarn_payload_get(L, x->payload)->ints[0];
    tarn_imap m = *tarn_imap_get(L, map);
    uint32_t part = one_part(L, x, &m, axis, &start);
    if (part == TARN_NONE) return inside ? tarn_view(L, map, base) : TARN_NONE;
    base = x->kid[part];
    m.in[axis] = tarn_term_type(L, base)->dim[axis];
    m.e[axis] = tarn_ix_add(L, m.e[axis], tarn_ix_const(L, -start), m.dim);
    map = tarn_map_make(L, &m, m.nguard, m.guard);
  }
}

/* Member k of a tuple operand ((S),(t,C)), as ((S),(C)). */
static tarn_term member(tarn_lang *L, tarn_term tuple, uint32_t k) {
  const tarn_type *t = tarn_term_type(L, tuple);
  tarn_imap m = {.ns = t->ns, .n = (uint8_t)(t->n - 1), .nin = t->n, .fill = TARN_NONE};
  for (uint32_t i = 0; i + 1 < t->n; i++) m.dim[i] = t->dim[i + (i >= t->ns)];
  for (uint32_t i = 0; i < t->n; i++) {
    m.in[i] = t->dim[i];
    m.e[i] = i == t->ns ? tarn_ix_const(L, k) : tarn_ix_var(L, i - (i > t->ns), m.dim);
  }
  return resolve(L, tarn_map_make(L, &m, 0, NULL), tuple);
}

/* kid: room for nkid + 255 terms. */
static tarn_term normal_compute(tarn_lang *L, const tarn_node *x, const tarn_term *kid) {
  tarn_func f = *tarn_fn_get(L, tarn_payload_get(L, x->payload)->id);
  tarn_term arg[2 * (UINT8_MAX + 1)];
  if (!f.ntuple) return tarn_mk(L, x->op, x->payload, kid, x->n);
  for (uint32_t k = 0; k < f.ntuple; k++) {
    arg[k] = member(L, kid[0], k);
    if (arg[k] == TARN_NONE) return tarn_mk(L, x->op, x->payload, kid, x->n);
  }
  for (uint32_t i = 1; i < x->n; i++) arg[f.ntuple + i - 1] = kid[i];
  uint32_t n = f.ntuple + x->n - 1;
  f.nops = f.ntuple;
  f.ntuple = 0;
  return tarn_compute(L, tarn_fn_intern(L, &f), arg, n);
}

/* ---------------------------------------------------------------- nothing */
static bool is_empty(const tarn_lang *L, tarn_term t) {
  const tarn_type *ty = tarn_term_type(L, t);
  for (uint32_t i = 0; !ty->tuple && i < ty->n; i++)
    if (ty->dim[i] == 0) return true;
  return false;
}

static tarn_term empty_constant(tarn_lang *L, tarn_term t) {
  tarn_type ty = *tarn_term_type(L, t);
  return tarn_constant(L, "empty", tarn_tensor_new(L->cx, ty.dtype, ty.n, ty.dim), ty.ns);
}

/* A term of t's type that is the constant fx throughout. */
static tarn_term filled(tarn_lang *L, tarn_term t, uint32_t fx) {
  const tarn_fx *f = tarn_fx_get(L, fx);
  const tarn_type *ty = tarn_term_type(L, t);
  tarn_imap m = {.ns = ty->ns, .n = ty->n, .fill = TARN_NONE};
  tarn_tensor *x = tarn_tensor_new(L->cx, f->dtype, 0, NULL);
  memcpy(m.dim, ty->dim, sizeof m.dim);
  tarn_tensor_set(x, 0, tarn_fx_value(L, fx));
  return tarn_view(L, tarn_map_make(L, &m, 0, NULL), tarn_constant(L, "nothing", x, 0));
}

/* What a reduction of nothing gives. */
static uint32_t start_of(tarn_lang *L, uint32_t reducer) {
  const tarn_reducer *r = tarn_reducer_get(L, reducer);
  return tarn_fx_subst(L, r->result, r->init, r->ns);
}

/* t reduces nothing: what its epilogue makes of that. */
static tarn_term epilogue_alone(tarn_lang *L, tarn_term t) {
  const tarn_node *x = tarn_term_get(L, t);
  tarn_func f = *tarn_fn_get(L, tarn_payload_get(L, x->payload)->id);
  uint32_t with[UINT8_MAX + 1] = {start_of(L, f.red)};
  if (f.epi == TARN_NONE) return filled(L, t, with[0]);
  for (uint32_t i = 0; i < f.nepi; i++) with[i + 1] = tarn_fx_hole(L, i);
  uint32_t body = tarn_fx_subst(L, f.epi, with, f.nepi + 1u);
  if (f.nepi == 0) return filled(L, t, body);
  return tarn_compute(L, tarn_fn_map(L, body, f.nepi), x->kid + f.nops, f.nepi);
}

/* The parts that have elements; some have none. */
static tarn_term full_parts(tarn_lang *L, tarn_term t) {
  const tarn_node *x = tarn_term_get(L, t);
  tarn_term *part = TARN_ARRAY(L->cx, tarn_term, x->n);
  uint32_t n = 0, axis = (uint32_t)tarn_payload_get(L, x->payload)->ints[0];
  for (uint32_t i = 0; i < x->n; i++)
    if (!is_empty(L, x->kid[i])) part[n++] = x->kid[i];
  return n == 1 ? part[0] : tarn_concat(L, axis, part, n);
}

/* t, whose kids are settled, without operands that have no elements. */
static tarn_term settled(tarn_lang *L, tarn_term t) {
  const tarn_node *x = tarn_term_get(L, t);
  const tarn_payload *p = tarn_payload_get(L, x->payload);
  bool any = false;
  if (is_empty(L, t)) return x->op == TARN_OP_CONST ? t : empty_constant(L, t);
  for (uint32_t i = 0; i < x->n; i++) any |= is_empty(L, x->kid[i]);
  if (!any) return t;
  switch (x->op) {
  case TARN_OP_CONCAT: return full_parts(L, t);
  case TARN_OP_COMPUTE: return epilogue_alone(L, t);
  case TARN_OP_FOLD: return filled(L, t, start_of(L, p->value));
  case TARN_OP_VIEW: return filled(L, t, tarn_imap_get(L, p->id)->fill);
  default: return t;
  }
}

/* ---------------------------------------------------------------- one node */
static tarn_term normal_nth(tarn_lang *L, const tarn_node *x, tarn_term kid) {
  const tarn_node *k = tarn_term_get(L, kid);
  if (k->op == TARN_OP_TUPLE) return k->kid[tarn_payload_get(L, x->payload)->ints[0]];
  return tarn_mk(L, x->op, x->payload, &kid, 1);
}

/* kid: the node's kids in normal form; their types are those of the kids. */
static tarn_term normal_node(tarn_lang *L, const tarn_node *x, const tarn_term *kid) {
  if (tarn_op_is_view(x->op))
    return through(L, tarn_map_of(L, x->op, x->payload, tarn_term_get(L, x->kid[0])->type), kid[0]);
  switch (x->op) {
  case TARN_OP_PAIR:
  case TARN_OP_CART_PROD: return normal_product(L, x, kid);
  case TARN_OP_COMPUTE: return normal_compute(L, x, kid);
  case TARN_OP_NTH: return normal_nth(L, x, kid[0]);
  default: return tarn_mk(L, x->op, x->payload, kid, x->n);
  }
}

typedef struct todo {
  TARN_VEC(tarn_term) stack;
  TARN_VEC(tarn_term) kid;
} todo;

/* Kids first: false when some were pushed instead. */
static bool finish(tarn_lang *L, todo *w, tarn_term t) {
  const tarn_node *x = tarn_term_get(L, t);
  bool ready = true, fresh;
  w->kid.n = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    tarn_term k = known(L, x->kid[i]);
    tarn_push(L->cx, &w->kid, k);
    if (k != TARN_NONE) continue;
    tarn_push(L->cx, &w->stack, x->kid[i]);
    ready = false;
  }
  if (!ready) return false;
  tarn_term r = settled(L, normal_node(L, x, w->kid.p));
  *tarn_map_at(L->normal, t, &fresh) = (uint64_t)r + 1;
  *tarn_map_at(L->normal, r, &fresh) = (uint64_t)r + 1;
  return true;
}

tarn_term tarn_normalise(tarn_lang *L, tarn_term t) {
  todo w = {0};
  tarn_term r = known(L, t);
  if (r != TARN_NONE) return r;
  tarn_push(L->cx, &w.stack, t);
  while (w.stack.n) {
    tarn_term top = w.stack.p[w.stack.n - 1];
    if (known(L, top) != TARN_NONE || finish(L, &w, top)) w.stack.n--;
  }
  return known(L, t);
}
