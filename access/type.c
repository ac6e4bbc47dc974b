/* Types of terms: interning. */
#include "access/internal.h"
#include <string.h>

static const char *type_fault(const tarn_type *t) {
  int64_t count;
  if (t->dtype >= TARN_DTYPES) return "unknown element type";
  if (t->n > TARN_MAX_DIMS) return "too many dims";
  if (t->ns > t->n) return "more access dims than dims";
  for (uint32_t i = 0; i < t->n; i++)
    if (t->dim[i] < 0) return "negative extent";
  return tarn_count_dims(t->n, t->dim, &count) ? NULL : "the element count overflows";
}

static void type_key(tarn_lang *L, const tarn_type *t) {
  tarn_key_begin(L);
  tarn_key(L, t->tuple);
  if (t->tuple) {
    for (uint32_t i = 0; i < t->nelem; i++) tarn_key(L, t->elem[i]);
    return;
  }
  tarn_key(L, (uint64_t)t->dtype << 16 | (uint64_t)t->ns << 8 | t->n);
  for (uint32_t i = 0; i < t->n; i++) tarn_key(L, (uint64_t)t->dim[i]);
}

/* A copy in which everything that does not count is zero. */
static const tarn_type *type_copy(tarn_lang *L, const tarn_type *t) {
  tarn_type *c = TARN_NEW(L->type.cx, tarn_type);
  c->tuple = t->tuple;
  if (t->tuple) {
    c->nelem = t->nelem;
    c->elem = tarn_copy(L->type.cx, t->elem, t->nelem * sizeof *t->elem);
    return c;
  }
  c->dtype = t->dtype;
  c->ns = t->ns;
  c->n = t->n;
  memcpy(c->dim, t->dim, t->n * sizeof *t->dim);
  return c;
}

uint32_t tarn_type_intern(tarn_lang *L, const tarn_type *t) {
  const char *fault = t->tuple ? NULL : type_fault(t);
  if (fault) tarn_raise(L->cx, TARN_BAD_INPUT, "type: %s", fault);
  for (uint32_t i = 0; t->tuple && i < t->nelem; i++)
    if (t->elem[i] >= tarn_table_count(&L->type))
      tarn_raise(L->cx, TARN_INTERNAL, "type: no type has the number %u", t->elem[i]);
  type_key(L, t);
  uint32_t id = tarn_table_find(L, &L->type);
  return id != TARN_NONE ? id : tarn_table_add(L, &L->type, type_copy(L, t));
}

uint32_t tarn_type_tensor(tarn_lang *L, tarn_dtype dt, uint32_t ns, uint32_t n,
                          const int64_t *dim) {
  tarn_type t = {.dtype = dt};
  if (n > TARN_MAX_DIMS || ns > n)
    tarn_raise(L->cx, TARN_BAD_INPUT, "type: %u dims split at %u (at most %d dims)", n, ns,
               TARN_MAX_DIMS);
  t.ns = (uint8_t)ns;
  t.n = (uint8_t)n;
  if (n) memcpy(t.dim, dim, n * sizeof *dim);
  return tarn_type_intern(L, &t);
}

uint32_t tarn_type_tuple(tarn_lang *L, uint32_t n, const uint32_t *elem) {
  return tarn_type_intern(L, &(tarn_type){.tuple = true, .nelem = n, .elem = elem});
}

const tarn_type *tarn_type_get(const tarn_lang *L, uint32_t id) {
  return tarn_table_get(&L->type, id);
}

int64_t tarn_type_count(const tarn_type *t) {
  int64_t count = 0;
  return !t->tuple && tarn_count_dims(t->n, t->dim, &count) ? count : 0;
}

bool tarn_type_same_dims(const tarn_type *a, const tarn_type *b) {
  return !a->tuple && !b->tuple && a->n == b->n &&
         memcmp(a->dim, b->dim, a->n * sizeof *a->dim) == 0;
}
