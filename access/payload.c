/* Payloads of operators: one interning over all kinds.
 *
 * A constant is interned by a hash of its bytes and, where that meets, by comparing them; its bytes
 * are not copied. Its label is made unique in the tarn_lang, so that text may refer to it. */
#include "access/internal.h"
#include <stdlib.h>
#include <string.h>

enum { ID = 1, INTS = 2, VALUE = 4, NAMED = 8, TYPED = 16, TENSOR = 32, ATTRS = 64 };

/* What of a tarn_payload counts. */
static const uint8_t uses[] = {[TARN_P_NONE] = 0,
                               [TARN_P_INTS] = INTS,
                               [TARN_P_SHAPE] = ID,
                               [TARN_P_MAP] = ID,
                               [TARN_P_FN] = ID,
                               [TARN_P_NEST] = ID,
                               [TARN_P_NAME] = NAMED | TYPED,
                               [TARN_P_CONST] = TYPED | TENSOR,
                               [TARN_P_PADV] = INTS | VALUE,
                               [TARN_P_FOLD] = INTS | VALUE,
                               [TARN_P_OPAQUE] = NAMED | TYPED | ATTRS,
                               [TARN_P_PLACE] = NAMED,
                               [TARN_P_CALL] = NAMED | INTS | TYPED};

const tarn_payload *tarn_payload_get(const tarn_lang *L, uint32_t id) {
  return tarn_table_get(&L->payload, id);
}

/* ---------------------------------------------------------------- keys */
static void attr_key(tarn_lang *L, const tarn_attr *a) {
  tarn_key_bytes(L, a->name, strlen(a->name));
  tarn_key(L, a->kind);
  switch (a->kind) {
  case TARN_A_INT: tarn_key(L, (uint64_t)a->i); break;
  case TARN_A_REAL: tarn_key_bytes(L, &a->r, sizeof a->r); break;
  case TARN_A_STR: tarn_key_bytes(L, a->s, strlen(a->s)); break;
  case TARN_A_INTS: tarn_key_bytes(L, a->is, a->n * sizeof *a->is); break;
  case TARN_A_REALS: tarn_key_bytes(L, a->rs, a->n * sizeof *a->rs); break;
  }
}

static void payload_key(tarn_lang *L, const tarn_payload *p, const tarn_attr *attr) {
  unsigned u = uses[p->kind];
  tarn_key_begin(L);
  tarn_key(L, p->kind);
  if (u & ID) tarn_key(L, p->id);
  if (u & INTS) tarn_key_bytes(L, p->ints, p->n * sizeof *p->ints);
  if (u & VALUE) tarn_key(L, p->value);
  if (u & NAMED) tarn_key_bytes(L, p->name, strlen(p->name));
  if (u & TYPED) tarn_key(L, p->type);
  for (uint32_t i = 0; (u & ATTRS) && i < p->nattr; i++) attr_key(L, &attr[i]);
}

static tarn_attr *copy_attrs(tarn_lang *L, const tarn_payload *p) {
  tarn_attr *a = tarn_copy(L->cx, p->attr, p->nattr * sizeof *a);
  qsort(a, p->nattr, sizeof *a, tarn_by_text);
  for (uint32_t i = 0; i < p->nattr; i++) {
    if (i && strcmp(a[i].name, a[i - 1].name) == 0)
      tarn_raise(L->cx, TARN_BAD_INPUT, "opaque %s: the attribute %s is given twice", p->name,
                 a[i].name);
    a[i].name = tarn_strdup(L->cx, a[i].name);
    if (a[i].kind == TARN_A_STR) a[i].s = tarn_strdup(L->cx, a[i].s);
    if (a[i].kind == TARN_A_INTS) a[i].is = tarn_copy(L->cx, a[i].is, a[i].n * sizeof *a[i].is);
    if (a[i].kind == TARN_A_REALS) a[i].rs = tarn_copy(L->cx, a[i].rs, a[i].n * sizeof *a[i].rs);
  }
  return a;
}

/* ---------------------------------------------------------------- interning */
static uint32_t add(tarn_lang *L, const tarn_payload *p, const tarn_attr *attr) {
  unsigned u = uses[p->kind];
  payload_key(L, p, attr);
  uint32_t id = tarn_table_find(L, &L->payload);
  if (id != TARN_NONE) return id;
  tarn_payload *c = TARN_NEW(L->cx, tarn_payload);
  c->kind = p->kind;
  if (u & ID) c->id = p->id;
  if (u & INTS) c->n = p->n, c->ints = tarn_copy(L->cx, p->ints, p->n * sizeof *p->ints);
  if (u & VALUE) c->value = p->value;
  if (u & NAMED) c->name = tarn_strdup(L->cx, p->name);
  if (u & TYPED) c->type = p->type;
  if (u & ATTRS) c->nattr = p->nattr, c->attr = attr;
  return tarn_table_add(L, &L->payload, c);
}

/* A label nobody has: the given one, or with .1 .2 … behind it. */
static const char *free_label(tarn_lang *L, const char *want) {
  const char *name = want && *want ? want : "c";
  for (uint32_t i = 1; tarn_map_get(L->label, tarn_name_intern(L, name)); i++)
    name = tarn_format(L->cx, "%s.%u", want && *want ? want : "c", i);
  return tarn_name_get(L, tarn_name_intern(L, name));
}

uint32_t tarn_const_find(const tarn_lang *L, const char *label) {
  uint32_t name = tarn_name_find(L, label);
  const uint64_t *at = name == TARN_NONE ? NULL : tarn_map_get(L->label, name);
  return at && *at ? (uint32_t)*at : TARN_NONE;
}

static void check_const(tarn_lang *L, const tarn_payload *p) {
  const tarn_type *t = tarn_type_get(L, p->type);
  if (!p->tensor || t->tuple || t->dtype != p->tensor->dtype || t->n != p->tensor->n ||
      memcmp(t->dim, p->tensor->dim, t->n * sizeof *t->dim) != 0)
    tarn_raise(L->cx, TARN_BAD_INPUT, "constant %s: the value is not of its type",
               p->name ? p->name : "");
}

static uint32_t intern_const(tarn_lang *L, const tarn_payload *p) {
  check_const(L, p);
  size_t n = tarn_tensor_bytes(p->tensor);
  uint64_t hash = tarn_hash_bytes(p->tensor->data, n, 0);
  uint32_t id;
  for (uint64_t meets = 0;; meets++) {
    tarn_key_begin(L);
    tarn_key(L, TARN_P_CONST);
    tarn_key(L, p->type);
    tarn_key(L, hash);
    tarn_key(L, meets);
    id = tarn_table_find(L, &L->payload);
    if (id == TARN_NONE) break;
    const tarn_tensor *known = tarn_payload_get(L, id)->tensor;
    if (n == 0 || memcmp(known->data, p->tensor->data, n) == 0) return id;
  }
  TARN_VEC(uint64_t) key = {0}; /* finding a label interns names, which uses the key */
  for (uint32_t i = 0; i < L->key.n; i++) tarn_push(L->cx, &key, L->key.p[i]);
  tarn_payload *c = TARN_NEW(L->cx, tarn_payload);
  *c = (tarn_payload){.kind = TARN_P_CONST, .type = p->type, .name = free_label(L, p->name)};
  c->tensor = tarn_copy(L->cx, p->tensor, sizeof *p->tensor);
  uint32_t name = tarn_name_intern(L, c->name);
  uint64_t *at = tarn_map_at(L->label, name, NULL);
  tarn_key_begin(L);
  for (uint32_t i = 0; i < key.n; i++) tarn_key(L, key.p[i]);
  id = tarn_table_add(L, &L->payload, c);
  *at = id;
  return id;
}

uint32_t tarn_payload_intern(tarn_lang *L, const tarn_payload *p) {
  const tarn_attr *attr = NULL;
  if (p->kind == TARN_P_CONST) return intern_const(L, p);
  if (p->kind > TARN_P_CALL) tarn_raise(L->cx, TARN_INTERNAL, "payload: kind %d", (int)p->kind);
  if ((uses[p->kind] & NAMED) && !p->name)
    tarn_raise(L->cx, TARN_BAD_INPUT, "payload: a name is missing");
  if ((uses[p->kind] & ATTRS) && p->nattr) attr = copy_attrs(L, p);
  return add(L, p, attr);
}

uint32_t tarn_payload_ints(tarn_lang *L, uint32_t n, const int64_t *v) {
  return tarn_payload_intern(L, &(tarn_payload){.kind = TARN_P_INTS, .n = n, .ints = v});
}

/* A shape is kept as the f32 type of that shape. */
uint32_t tarn_payload_of(tarn_lang *L, tarn_payload_kind k, uint32_t id) {
  if (k == TARN_P_SHAPE) {
    tarn_type t = *tarn_type_get(L, id);
    if (t.tuple) tarn_raise(L->cx, TARN_BAD_INPUT, "shape: a tuple has none");
    id = tarn_type_tensor(L, TARN_F32, t.ns, t.n, t.dim);
  }
  return tarn_payload_intern(L, &(tarn_payload){.kind = k, .id = id});
}
