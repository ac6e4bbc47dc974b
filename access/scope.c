/* Scopes: a part of the language that can be given up.
 *
 * A scope begins with what the language held at its ground, under the same ids. What is added
 * within lies in a context of its own, and the language outside does not change meanwhile. What of
 * it is to stay is added outside once more, with what it is made of. Ids below the ground are the
 * same on both sides. */
#include "access/internal.h"
#include <string.h>

/* Ids of things of the scope, by id: 1 + that outside, 0 as long as they are not there. */
typedef TARN_VEC(uint32_t) outside;
struct tarn_scope {
  tarn_lang *L;
  tarn_lang other; /* what the language does not hold now: of the scope, or of what is around it */
  tarn_ctx *cx;    /* the scope's */
  bool within;
  tarn_ground ground;
  outside ix, map, nest, payload, term;
};

tarn_ground tarn_lang_ground(const tarn_lang *L) {
  return (tarn_ground){.ix = tarn_table_count(&L->ix),
                       .map = tarn_table_count(&L->map),
                       .nest = tarn_table_count(&L->nest),
                       .payload = tarn_table_count(&L->payload),
                       .term = tarn_table_count(&L->term),
                       .label = tarn_map_count(L->label),
                       .normal = tarn_map_count(L->normal)};
}

/* ---------------------------------------------------------------- entering and leaving */
static void take(tarn_lang *to, const tarn_lang *from) {
  to->cx = from->cx;
  to->ix = from->ix;
  to->map = from->map;
  to->nest = from->nest;
  to->payload = from->payload;
  to->term = from->term;
  to->label = from->label;
  to->normal = from->normal;
  to->composed = from->composed;
  to->inverted = from->inverted;
  to->identity = from->identity;
  to->walk = from->walk;
  to->scope = from->scope;
  memcpy(&to->key, &from->key, sizeof to->key);
  memcpy(&to->call, &from->call, sizeof to->call);
  memcpy(&to->written, &from->written, sizeof to->written);
}
static void exchange(tarn_scope *s) {
  tarn_lang here = *s->L;
  take(s->L, &s->other);
  take(&s->other, &here);
  s->within = !s->within;
}
uint64_t tarn_lang_scope(const tarn_lang *L) { return L->scope; }
void tarn_scope_enter(tarn_scope *s) {
  if (!s->within) exchange(s);
}
void tarn_scope_leave(tarn_scope *s) {
  if (s->within) exchange(s);
}

static tarn_table table_of(tarn_ctx *cx, const tarn_table *t, uint32_t n) {
  tarn_table f = {.cx = cx, .ids = tarn_intern_fork(cx, t->ids, n)};
  f.item.p = tarn_copy(cx, t->item.p, n * sizeof *f.item.p);
  f.item.n = f.item.cap = n;
  return f;
}
#define ROOM 64 /* of terms, at first */
static struct tarn_termwork *walk_of(tarn_ctx *cx, uint32_t terms) {
  struct tarn_termwork *w = TARN_NEW(cx, struct tarn_termwork);
  w->mark.n = w->mark.cap = w->order.cap = terms + ROOM;
  w->mark.p = TARN_ARRAY(cx, uint32_t, w->mark.cap);
  w->order.p = TARN_ARRAY(cx, uint32_t, w->order.cap);
  return w;
}
tarn_scope *tarn_scope_new(tarn_lang *L, const tarn_ground *g) {
  tarn_ctx *cx = tarn_ctx_child(L->cx);
  tarn_scope *s = TARN_NEW(cx, tarn_scope);
  *s = (tarn_scope){.L = L, .cx = cx, .ground = *g};
  s->other = (tarn_lang){.cx = cx,
                         .scope = ++L->scopes,
                         .ix = table_of(cx, &L->ix, g->ix),
                         .map = table_of(cx, &L->map, g->map),
                         .nest = table_of(cx, &L->nest, g->nest),
                         .payload = table_of(cx, &L->payload, g->payload),
                         .term = table_of(cx, &L->term, g->term),
                         .label = tarn_map_fork(cx, L->label, g->label),
                         .normal = tarn_map_fork(cx, L->normal, g->normal),
                         .walk = walk_of(cx, g->term)};
  memcpy(&s->other.call, &L->call, sizeof L->call);
  memcpy(&s->other.written, &L->written, sizeof L->written);
  s->other.call.cap = s->other.call.n; /* what is added is added to a copy */
  s->other.written.cap = s->other.written.n;
  return s;
}
void tarn_scope_free(tarn_scope *s) {
  tarn_scope_leave(s);
  tarn_ctx_free(s->cx);
}
tarn_ctx *tarn_scope_ctx(const tarn_scope *s) { return s->cx; }

/* ---------------------------------------------------------------- what stays */
/* Where the id outside is noted. */
static uint32_t *noted(tarn_scope *s, outside *o, uint32_t id) {
  while (o->n <= id) tarn_push(s->cx, o, 0);
  return &o->p[id];
}
static uint32_t keep_ix(tarn_scope *s, uint32_t id) {
  if (id < s->ground.ix || id == TARN_NONE) return id;
  if (*noted(s, &s->ix, id)) return *noted(s, &s->ix, id) - 1;
  tarn_ix x = *(const tarn_ix *)tarn_table_get(&s->other.ix, id);
  tarn_ixterm *t = tarn_copy(s->cx, x.t, x.n * sizeof *t);
  for (uint32_t i = 0; i < x.n; i++)
    if (t[i].kind != TARN_IX_VAR) t[i].arg = keep_ix(s, t[i].arg);
  x.t = t;
  uint32_t kept = tarn_ix_add_as_is(s->L, &x);
  *noted(s, &s->ix, id) = kept + 1;
  return kept;
}
static uint32_t keep_map(tarn_scope *s, uint32_t id) {
  if (id < s->ground.map || id == TARN_NONE) return id;
  if (*noted(s, &s->map, id)) return *noted(s, &s->map, id) - 1;
  tarn_imap m = *(const tarn_imap *)tarn_table_get(&s->other.map, id);
  for (uint32_t i = 0; i < m.nin; i++) m.e[i] = keep_ix(s, m.e[i]);
  for (uint32_t i = 0; i < m.nguard; i++) m.guard[i].e = keep_ix(s, m.guard[i].e);
  uint32_t kept = tarn_map_add_as_is(s->L, &m);
  *noted(s, &s->map, id) = kept + 1;
  return kept;
}
static const tarn_read *keep_reads(tarn_scope *s, const tarn_stage *st) {
  uint32_t n = tarn_stage_reads(s->L, st);
  tarn_read *r = tarn_copy(s->cx, st->read, n * sizeof *r);
  for (uint32_t i = 0; i < n; i++) r[i].map = keep_map(s, r[i].map);
  return r;
}
uint32_t tarn_scope_nest(tarn_scope *s, uint32_t id) {
  if (id < s->ground.nest || id == TARN_NONE) return id;
  if (*noted(s, &s->nest, id)) return *noted(s, &s->nest, id) - 1;
  tarn_nest n = *(const tarn_nest *)tarn_table_get(&s->other.nest, id);
  tarn_stage *st = tarn_copy(s->cx, n.stage, n.nstage * sizeof *st);
  for (uint32_t i = 0; i < n.nstage; i++) st[i].read = keep_reads(s, &st[i]);
  n.stage = st;
  uint32_t kept = tarn_nest_intern(s->L, &n);
  *noted(s, &s->nest, id) = kept + 1;
  return kept;
}

static const tarn_tensor *keep_tensor(tarn_scope *s, const tarn_tensor *t) {
  if (!tarn_arena_holds(s->cx, t->data)) return t;
  tarn_tensor *kept = tarn_tensor_new(s->L->cx, t->dtype, t->n, t->dim);
  memcpy(kept->data, t->data, tarn_tensor_bytes(t));
  return kept;
}
uint32_t tarn_scope_payload(tarn_scope *s, uint32_t id) {
  if (id < s->ground.payload || id == TARN_NONE) return id;
  if (*noted(s, &s->payload, id)) return *noted(s, &s->payload, id) - 1;
  tarn_payload p = *(const tarn_payload *)tarn_table_get(&s->other.payload, id);
  if (p.kind == TARN_P_MAP) p.id = keep_map(s, p.id);
  if (p.kind == TARN_P_NEST) p.id = tarn_scope_nest(s, p.id);
  if (p.kind == TARN_P_CONST) p.tensor = keep_tensor(s, p.tensor);
  uint32_t kept = tarn_payload_intern(s->L, &p);
  *noted(s, &s->payload, id) = kept + 1;
  return kept;
}
static uint32_t kept_term(tarn_scope *s, uint32_t id) {
  return id < s->ground.term ? id : *noted(s, &s->term, id) - 1;
}
static void keep_node(tarn_scope *s, uint32_t id) {
  const tarn_node *x = tarn_table_get(&s->other.term, id);
  tarn_term *kid = TARN_ARRAY(s->cx, tarn_term, x->n + 1);
  for (uint32_t i = 0; i < x->n; i++) kid[i] = kept_term(s, x->kid[i]);
  tarn_term kept = tarn_mk(s->L, x->op, tarn_scope_payload(s, x->payload), kid, x->n);
  *noted(s, &s->term, id) = kept + 1;
}
/* Kids have lesser ids: they are found downwards and added upwards. */
tarn_term tarn_scope_term(tarn_scope *s, tarn_term id) {
  if (id < s->ground.term || id == TARN_NONE) return id;
  if (*noted(s, &s->term, id)) return kept_term(s, id);
  uint32_t low = s->ground.term;
  uint8_t *used = TARN_ARRAY(s->cx, uint8_t, id - low + 1);
  used[id - low] = 1;
  for (uint32_t t = id + 1; t-- > low;) {
    const tarn_node *x = tarn_table_get(&s->other.term, t);
    for (uint32_t i = 0; i < x->n && used[t - low]; i++)
      if (x->kid[i] >= low) used[x->kid[i] - low] = 1;
  }
  for (uint32_t t = low; t <= id; t++)
    if (used[t - low] && !*noted(s, &s->term, t)) keep_node(s, t);
  return kept_term(s, id);
}
