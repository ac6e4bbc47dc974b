/* Values of primitive sorts in egglog's language: each once, with a number; their leaves; text. */
#include "lab/egg.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */
static void key_big(tarn_buf *b, const big *x) {
  tarn_buf_add(b, (const char *)&x->n, sizeof x->n);
  tarn_buf_add(b, (const char *)x->p, (size_t)abs(x->n) * sizeof *x->p);
}
static void key_of(const tarn_egg *E, tarn_buf *b, const egg_value *v) {
  tarn_buf_add(b, (const char *)&v->sort, sizeof v->sort);
  switch (E->sort.p[v->sort].base) {
  case EGG_F64: tarn_buf_add(b, (const char *)&v->f, sizeof v->f); break;
  case EGG_STRING: tarn_buf_add(b, v->s, v->n); break;
  case EGG_BIGRAT: key_big(b, &v->q.den); /* fall through */
  case EGG_BIGINT: key_big(b, &v->q.num); break;
  case EGG_I64:
  case EGG_BOOL: tarn_buf_add(b, (const char *)&v->i, sizeof v->i); break;
  case EGG_UNIT: break;
  default: tarn_buf_add(b, (const char *)v->elem, v->n * sizeof *v->elem);
  }
}
static void own(tarn_ctx *cx, big *x) {
  x->p = tarn_copy(cx, x->p, (size_t)abs(x->n) * sizeof *x->p);
}
uint32_t egg_number(tarn_egg *E, const egg_value *v) {
  E->key.n = 0;
  key_of(E, &E->key, v);
  uint32_t n = tarn_intern_add(E->known, E->key.p, E->key.n);
  if (n < E->value.n) return n;
  egg_value copy = *v;
  if (v->s) copy.s = tarn_strndup(E->cx, v->s, v->n);
  if (v->elem) copy.elem = tarn_copy(E->cx, v->elem, v->n * sizeof *v->elem);
  own(E->cx, &copy.q.num), own(E->cx, &copy.q.den);
  tarn_push(E->cx, &E->value, copy);
  return n;
}
/* Its class in the graph. */
static uint32_t egg_leaf(tarn_egg *E, uint32_t value) {
  uint32_t id = tarn_eg_add(E->g, OP_PRIM, 1 + value, NULL, 0);
  if (id == TARN_NONE) egg_graph_failed(E);
  return id;
}
uint32_t egg_value_at(const tarn_egg *E, uint32_t cls) {
  uint32_t c = tarn_eg_find(E->g, cls);
  return tarn_eg_node_at(E->g, tarn_eg_next_node(E->g, c, TARN_NONE)).payload - 1;
}
uint32_t egg_class(tarn_egg *E, uint32_t sort, uint32_t id) {
  return egg_is_term(E, sort) ? tarn_eg_find(E->g, id) : egg_leaf(E, id);
}
uint32_t egg_id(const tarn_egg *E, uint32_t sort, uint32_t cls) {
  return egg_is_term(E, sort) ? tarn_eg_find(E->g, cls) : egg_value_at(E, cls);
}

/* ---- literals ---- */
bool egg_literal(tarn_egg *E, const tarn_sx *s, egg_value *out) {
  *out = (egg_value){.sort = SORT_I64};
  if (s->kind == TARN_SX_INT) {
    out->i = s->i;
  } else if (s->kind == TARN_SX_STRING) {
    *out = (egg_value){.sort = SORT_STRING, .s = s->text, .n = (uint32_t)s->len};
  } else if (s->kind == TARN_SX_REAL) {
    if (!strpbrk(s->text, ".eEnN")) tarn_sx_error(E->cx, s, "%s does not fit in an i64", s->text);
    *out = (egg_value){.sort = SORT_F64, .f = s->r};
  } else if (s->kind == TARN_SX_LIST && !s->n) {
    *out = (egg_value){.sort = SORT_UNIT};
  } else if (tarn_sx_atom_is(s, "true") || tarn_sx_atom_is(s, "false")) {
    *out = (egg_value){.sort = SORT_BOOL, .i = tarn_sx_atom_is(s, "true")};
  } else {
    return false;
  }
  return true;
}

/* ---- text ---- */
static void print_real(tarn_buf *b, double x) {
  size_t at = b->n;
  if (isnan(x)) tarn_buf_str(b, "NaN");
  else tarn_buf_double(b, x);
  if (isfinite(x) && !strpbrk(b->p + at, ".e")) tarn_buf_str(b, ".0");
}
static void print_big(tarn_buf *b, const big *x) {
  tarn_buf_str(b, "(from-string \"");
  big_print(b, x);
  tarn_buf_str(b, "\")");
}
static void print_elements(tarn_egg *E, tarn_buf *b, const char *head, const egg_value *v) {
  tarn_buf_fmt(b, "(%s", head);
  for (uint32_t i = 0; i < v->n; i++) {
    tarn_buf_str(b, " ");
    egg_print_value(E, b, v->elem[i]);
  }
  tarn_buf_str(b, ")");
}
static void print_map(tarn_egg *E, tarn_buf *b, const egg_value *v) {
  for (uint32_t i = 0; i < v->n; i += 2) tarn_buf_str(b, "(map-insert ");
  tarn_buf_str(b, "(map-empty)");
  for (uint32_t i = 0; i < v->n; i += 2) {
    tarn_buf_str(b, " ");
    egg_print_value(E, b, v->elem[i]);
    tarn_buf_str(b, " ");
    egg_print_value(E, b, v->elem[i + 1]);
    tarn_buf_str(b, ")");
  }
}
void egg_print_value(tarn_egg *E, tarn_buf *b, uint32_t value) {
  egg_value v = E->value.p[value];
  switch (E->sort.p[v.sort].base) {
  case EGG_I64: tarn_buf_fmt(b, "%lld", (long long)v.i); break;
  case EGG_F64: print_real(b, v.f); break;
  case EGG_BOOL: tarn_buf_str(b, v.i ? "true" : "false"); break;
  case EGG_STRING: tarn_sx_string(b, v.s, v.n); break;
  case EGG_UNIT: tarn_buf_str(b, "()"); break;
  case EGG_BIGINT: print_big(b, &v.q.num); break;
  case EGG_BIGRAT:
    tarn_buf_str(b, "(bigrat ");
    print_big(b, &v.q.num);
    tarn_buf_str(b, " ");
    print_big(b, &v.q.den);
    tarn_buf_str(b, ")");
    break;
  case EGG_SET: print_elements(E, b, "set-of", &v); break;
  case EGG_VEC: print_elements(E, b, v.n ? "vec-of" : "vec-empty", &v); break;
  case EGG_MULTISET: print_elements(E, b, "multiset-of", &v); break;
  case EGG_MAP: print_map(E, b, &v); break;
  default: tarn_buf_str(b, "?");
  }
}
