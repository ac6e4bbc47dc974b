/* Terms: hash-consing and builders. */
#include "access/internal.h"
#include <stdlib.h>
#include <string.h>

/* So that walks need not allocate and may happen between a mark and a release. */
static void make_room(tarn_lang *L) {
  struct tarn_termwork *w = L->walk;
  if (tarn_table_count(&L->term) < w->order.cap) return;
  w->mark.p = tarn_vec_grow(L->cx, w->mark.p, w->mark.cap, &w->mark.cap, sizeof *w->mark.p);
  for (uint32_t i = w->mark.n; i < w->mark.cap; i++) w->mark.p[i] = 0;
  w->mark.n = w->mark.cap;
  w->order.p = tarn_vec_grow(L->cx, w->order.p, w->order.cap, &w->order.cap, sizeof *w->order.p);
}

tarn_term tarn_mk(tarn_lang *L, uint32_t op, uint32_t payload, const tarn_term *kids, uint32_t n) {
  uint32_t few[8], *types = n <= 8 ? few : TARN_ARRAY(L->cx, uint32_t, n);
  tarn_key_begin(L);
  tarn_key(L, (uint64_t)op << 32 | payload);
  for (uint32_t i = 0; i < n; i++) tarn_key(L, kids[i]);
  uint32_t id = tarn_table_find(L, &L->term);
  if (id != TARN_NONE) return id;
  for (uint32_t i = 0; i < n; i++) {
    if (kids[i] >= tarn_table_count(&L->term))
      tarn_raise(L->cx, TARN_INTERNAL, "no term has the number %u", kids[i]);
    types[i] = tarn_term_get(L, kids[i])->type;
  }
  uint32_t type = tarn_type_of(L, op, payload, types, n);
  if (type == TARN_NONE) tarn_reraise(L->cx, TARN_BAD_INPUT);
  make_room(L);
  tarn_node *x = TARN_NEW(L->cx, tarn_node);
  *x = (tarn_node){op, payload, n, tarn_copy(L->cx, kids, n * sizeof *kids), type};
  tarn_key_begin(L); /* typing may have interned types */
  tarn_key(L, (uint64_t)op << 32 | payload);
  for (uint32_t i = 0; i < n; i++) tarn_key(L, kids[i]);
  return tarn_table_add(L, &L->term, x);
}

const tarn_node *tarn_term_get(const tarn_lang *L, tarn_term t) {
  return tarn_table_get(&L->term, t);
}
uint32_t tarn_term_count(const tarn_lang *L) { return tarn_table_count(&L->term); }

const tarn_type *tarn_term_type(const tarn_lang *L, tarn_term t) {
  return tarn_type_get(L, tarn_term_get(L, t)->type);
}

/* ---------------------------------------------------------------- walks */

static void reach(const tarn_lang *L, tarn_term t) {
  struct tarn_termwork *w = L->walk;
  if (w->mark.p[t] == w->epoch) return;
  w->mark.p[t] = w->epoch;
  w->order.p[w->order.n++] = t;
}

uint32_t tarn_term_reachable(const tarn_lang *L, const tarn_term *root, uint32_t nroot,
                             const tarn_term **terms) {
  struct tarn_termwork *w = L->walk;
  w->epoch++;
  w->order.n = 0;
  for (uint32_t i = 0; i < nroot; i++) reach(L, root[i]);
  for (uint32_t i = 0; i < w->order.n; i++) {
    const tarn_node *x = tarn_term_get(L, w->order.p[i]);
    for (uint32_t k = 0; k < x->n; k++) reach(L, x->kid[k]);
  }
  if (w->order.n > 1) qsort(w->order.p, w->order.n, sizeof *w->order.p, tarn_by_u32);
  *terms = w->order.p;
  return w->order.n;
}

/* ---------------------------------------------------------------- builders */
static tarn_term with_ints(tarn_lang *L, uint32_t op, uint32_t n, const int64_t *v,
                           const tarn_term *a, uint32_t na) {
  return tarn_mk(L, op, tarn_payload_ints(L, n, v), a, na);
}

tarn_term tarn_input(tarn_lang *L, const char *name, uint32_t type) {
  tarn_payload p = {.kind = TARN_P_NAME, .name = name, .type = type};
  return tarn_mk(L, TARN_OP_INPUT, tarn_payload_intern(L, &p), NULL, 0);
}

tarn_term tarn_constant(tarn_lang *L, const char *name, const tarn_tensor *t, uint32_t ns) {
  tarn_payload p = {.kind = TARN_P_CONST, .name = name, .tensor = t};
  p.type = tarn_type_tensor(L, t->dtype, ns, t->n, t->dim);
  return tarn_mk(L, TARN_OP_CONST, tarn_payload_intern(L, &p), NULL, 0);
}

tarn_term tarn_scalar(tarn_lang *L, tarn_dtype dt, double v) {
  tarn_tensor *t = tarn_tensor_new(L->cx, dt, 0, NULL);
  tarn_tensor_set(t, 0, tarn_fx_value(L, tarn_fx_const(L, dt, v)));
  return tarn_constant(L, "scalar", t, 0);
}

tarn_term tarn_access(tarn_lang *L, uint32_t d, tarn_term a) {
  return with_ints(L, TARN_OP_ACCESS, 1, &(int64_t){d}, &a, 1);
}

tarn_term tarn_transpose(tarn_lang *L, const uint32_t *p, tarn_term a) {
  uint32_t n = tarn_term_type(L, a)->n;
  int64_t v[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) v[i] = p[i];
  return with_ints(L, TARN_OP_TRANSPOSE, n, v, &a, 1);
}

tarn_term tarn_windows(tarn_lang *L, const int64_t *w, const int64_t *s, const int64_t *d,
                       tarn_term a) {
  const tarn_type *t = tarn_term_type(L, a);
  uint32_t m = t->n - t->ns;
  int64_t v[3 * TARN_MAX_DIMS];
  for (uint32_t i = 0; i < m; i++) v[i] = w[i], v[m + i] = s[i], v[2 * m + i] = d ? d[i] : 1;
  return with_ints(L, TARN_OP_WINDOWS, 3 * m, v, &a, 1);
}

tarn_term tarn_slice(tarn_lang *L, uint32_t axis, int64_t lo, int64_t hi, int64_t step,
                     tarn_term a) {
  return with_ints(L, TARN_OP_SLICE, 4, (int64_t[]){axis, lo, hi, step}, &a, 1);
}

tarn_term tarn_pad(tarn_lang *L, uint32_t axis, uint32_t fx_value, int64_t before, int64_t after,
                   tarn_term a) {
  const int64_t v[] = {axis, before, after};
  tarn_payload p = {.kind = TARN_P_PADV, .n = 3, .ints = v, .value = fx_value};
  return tarn_mk(L, TARN_OP_PAD, tarn_payload_intern(L, &p), &a, 1);
}

static tarn_term with_shape(tarn_lang *L, uint32_t op, uint32_t ns, uint32_t n, const int64_t *dim,
                            tarn_term a) {
  uint32_t type = tarn_type_tensor(L, TARN_F32, ns, n, dim);
  return tarn_mk(L, op, tarn_payload_of(L, TARN_P_SHAPE, type), &a, 1);
}

tarn_term tarn_reshape(tarn_lang *L, uint32_t ns, uint32_t n, const int64_t *dim, tarn_term a) {
  return with_shape(L, TARN_OP_RESHAPE, ns, n, dim, a);
}

tarn_term tarn_reshape_all(tarn_lang *L, uint32_t ns, uint32_t n, const int64_t *dim, tarn_term a) {
  tarn_term flat = tarn_access(L, tarn_term_type(L, a)->n, a);
  return tarn_access(L, ns, tarn_reshape(L, n, n, dim, flat));
}

tarn_term tarn_broadcast(tarn_lang *L, uint32_t ns, uint32_t n, const int64_t *dim, tarn_term a) {
  return with_shape(L, TARN_OP_BROADCAST, ns, n, dim, a);
}

tarn_term tarn_insert_axis(tarn_lang *L, uint32_t i, tarn_term a) {
  return with_ints(L, TARN_OP_INSERT_AXIS, 1, &(int64_t){i}, &a, 1);
}

tarn_term tarn_squeeze(tarn_lang *L, uint32_t i, tarn_term a) {
  return with_ints(L, TARN_OP_SQUEEZE, 1, &(int64_t){i}, &a, 1);
}

tarn_term tarn_concat(tarn_lang *L, uint32_t axis, const tarn_term *a, uint32_t n) {
  return with_ints(L, TARN_OP_CONCAT, 1, &(int64_t){axis}, a, n);
}

tarn_term tarn_cart(tarn_lang *L, uint32_t shared, tarn_term a, tarn_term b) {
  return with_ints(L, TARN_OP_CART_PROD, 1, &(int64_t){shared}, (tarn_term[]){a, b}, 2);
}

tarn_term tarn_compute(tarn_lang *L, uint32_t fn, const tarn_term *a, uint32_t n) {
  return tarn_mk(L, TARN_OP_COMPUTE, tarn_payload_of(L, TARN_P_FN, fn), a, n);
}

tarn_term tarn_view(tarn_lang *L, uint32_t map, tarn_term a) {
  if (tarn_map_is_identity(L, map) && tarn_imap_get(L, map)->ns == tarn_term_type(L, a)->ns)
    return a;
  return tarn_mk(L, TARN_OP_VIEW, tarn_payload_of(L, TARN_P_MAP, map), &a, 1);
}
