/* The tarn_lang: its interning tables and the operator table. */
#include "access/fx_internal.h"
#include <string.h>

static void table_init(tarn_ctx *cx, tarn_table *t) {
  t->cx = cx;
  t->ids = tarn_intern_new(cx);
}

tarn_lang *tarn_lang_new(tarn_ctx *cx) {
  tarn_lang *L = TARN_NEW(cx, tarn_lang);
  tarn_table *all[] = {&L->type, &L->fx,   &L->ix,      &L->map,  &L->reducer,
                       &L->fn,   &L->nest, &L->payload, &L->term, &L->name};
  L->cx = cx;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) table_init(cx, all[i]);
  L->normal = tarn_map_new(cx);
  L->label = tarn_map_new(cx);
  tarn_fx_start(L);
  L->walk = TARN_NEW(cx, struct tarn_termwork);
  tarn_payload_intern(L, &(tarn_payload){.kind = TARN_P_NONE});
  return L;
}

tarn_ctx *tarn_lang_ctx(const tarn_lang *L) { return L->cx; }

/* ---------------------------------------------------------------- tables */
void tarn_key_begin(tarn_lang *L) { L->key.n = 0; }
void tarn_key(tarn_lang *L, uint64_t word) { tarn_push(L->cx, &L->key, word); }

void tarn_key_bytes(tarn_lang *L, const void *p, size_t n) {
  const char *c = p;
  tarn_key(L, n);
  for (size_t i = 0; i < n; i += 8) {
    uint64_t w = 0;
    memcpy(&w, c + i, n - i < 8 ? n - i : 8);
    tarn_key(L, w);
  }
}

uint32_t tarn_table_find(const tarn_lang *L, const tarn_table *t) {
  return tarn_intern_find(t->ids, L->key.p, L->key.n * sizeof *L->key.p);
}

/* The slot comes first: if adding the key fails, the slot is taken back and nothing has changed. */
uint32_t tarn_table_add(tarn_lang *L, tarn_table *t, const void *item) {
  tarn_push(t->cx, &t->item, item);
  t->item.n--;
  uint32_t id = tarn_intern_add(t->ids, L->key.p, L->key.n * sizeof *L->key.p);
  if (id == t->item.n) t->item.n++;
  return id;
}

/* ---------------------------------------------------------------- names */
uint32_t tarn_name_intern(tarn_lang *L, const char *s) {
  tarn_key_begin(L);
  tarn_key_bytes(L, s, strlen(s));
  uint32_t id = tarn_table_find(L, &L->name);
  return id != TARN_NONE ? id : tarn_table_add(L, &L->name, tarn_strdup(L->name.cx, s));
}

uint32_t tarn_name_find(const tarn_lang *L, const char *s) {
  tarn_lang *scratch = (tarn_lang *)(uintptr_t)L; /* only the key buffer is written */
  tarn_key_begin(scratch);
  tarn_key_bytes(scratch, s, strlen(s));
  return tarn_table_find(L, &L->name);
}

const char *tarn_name_get(const tarn_lang *L, uint32_t id) { return tarn_table_get(&L->name, id); }

/* ---------------------------------------------------------------- operators */
static const tarn_opinfo ops[] = {
#define OP(ID, text, lo, hi, payload, least, most, kept, attrs, min, kernel, values)               \
  [TARN_OP_##ID] = {text,                                                                          \
                    lo,                                                                            \
                    hi,                                                                            \
                    TARN_P_##payload,                                                              \
                    least,                                                                         \
                    most,                                                                          \
                    kept,                                                                          \
                    attrs,                                                                         \
                    min,                                                                           \
                    TARN_OPK_##kernel,                                                             \
                    TARN_OPV_##values},
#include "access/ops.def"
#undef OP
};

const tarn_opinfo *tarn_op_info(uint32_t op) { return op < TARN_OP_COUNT ? &ops[op] : NULL; }

uint32_t tarn_op_find(const char *text) {
  for (uint32_t i = 0; i < TARN_OP_COUNT; i++)
    if (strcmp(ops[i].text, text) == 0) return i;
  return TARN_NONE;
}

bool tarn_op_is_view(uint32_t op) { return op < TARN_OP_COUNT && ops[op].kernel == TARN_OPK_VIEW; }
