/* The small parts of the text form: names, numbers, lists of integers, shapes, types. */
#include "access/internal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- names */
/* An element type is no name: (const f32 …) begins with one. */
void tarn_name_print(tarn_buf *b, const char *name) {
  tarn_dtype t;
  if (tarn_dtype_parse(name, &t)) tarn_sx_string(b, name, strlen(name));
  else tarn_sx_name(b, name, strlen(name));
}

const char *tarn_name_parse(tarn_lang *L, const tarn_sx *s) {
  if (s->kind == TARN_SX_LIST) tarn_sx_error(L->cx, s, "a name is expected");
  if (strlen(s->text) != s->len) tarn_sx_error(L->cx, s, "a name cannot hold a zero byte");
  return s->text;
}

const tarn_sx *tarn_sx_at(tarn_lang *L, const tarn_sx *s, uint32_t i, const char *what) {
  if (s->kind != TARN_SX_LIST) tarn_sx_error(L->cx, s, "a list is expected that holds %s", what);
  if (i >= s->n) tarn_sx_error(L->cx, s, "%s is missing", what);
  return s->kid[i];
}

/* ---------------------------------------------------------------- numbers */
/* The double of fewest digits that rounds to v: what it prints as is v's text. */
static double short_form(tarn_dtype t, double v) {
  char s[40];
  for (int digits = 0; digits < 16; digits++) {
    snprintf(s, sizeof s, "%.*e", digits, v);
    double d = strtod(s, NULL); /* in whatever locale snprintf just wrote */
    if (isfinite(d) && tarn_round_to(t, d) == v) return d;
  }
  return v;
}

void tarn_number_print(tarn_buf *b, tarn_dtype t, tarn_value v) {
  if (t == TARN_U64) tarn_buf_fmt(b, "%" PRIu64, (uint64_t)v.i);
  else if (!tarn_dtype_is_float(t)) tarn_buf_fmt(b, "%" PRId64, v.i);
  else if (t == TARN_F64 || !isfinite(v.d) || v.d == 0) tarn_buf_double(b, v.d);
  else tarn_buf_double(b, short_form(t, v.d));
}

/* A decimal number from 2^63 on that fits 64 bits; the reader has it as a double. */
static bool large_u64(const tarn_sx *s, tarn_dtype t, int64_t *bits) {
  uint64_t m = 0;
  if (t != TARN_U64 || s->kind != TARN_SX_REAL || !*s->text) return false;
  for (const char *c = s->text + (*s->text == '+'); *c; c++)
    if (*c < '0' || *c > '9' || __builtin_mul_overflow(m, 10u, &m) ||
        __builtin_add_overflow(m, (uint64_t)(*c - '0'), &m))
      return false;
  *bits = (int64_t)m;
  return true;
}

tarn_value tarn_number_parse(tarn_lang *L, const tarn_sx *s, tarn_dtype t) {
  tarn_value v;
  bool yes = tarn_sx_atom_is(s, "true");
  if (t == TARN_BOOL && (yes || tarn_sx_atom_is(s, "false"))) {
    v.i = yes;
    return v;
  }
  if (s->kind != TARN_SX_INT && s->kind != TARN_SX_REAL)
    tarn_sx_error(L->cx, s, "a number is expected");
  if (tarn_dtype_is_float(t)) {
    v.d = tarn_round_to(t, s->r);
    return v;
  }
  if (large_u64(s, t, &v.i)) return v;
  if (s->kind != TARN_SX_INT) tarn_sx_error(L->cx, s, "%s is not an integer", s->text);
  v.i = tarn_wrap_to(t, s->i);
  if (v.i != s->i) tarn_sx_error(L->cx, s, "%s is no %s", s->text, tarn_dtype_name(t));
  return v;
}

int64_t tarn_int_parse(tarn_lang *L, const tarn_sx *s) {
  if (s->kind != TARN_SX_INT) tarn_sx_error(L->cx, s, "an integer is expected");
  return s->i;
}

uint32_t tarn_ints_parse(tarn_lang *L, const tarn_sx *list, uint32_t max, int64_t *out) {
  if (list->kind != TARN_SX_LIST) tarn_sx_error(L->cx, list, "a list of integers is expected");
  if (list->n > max) tarn_sx_error(L->cx, list, "more than %u integers", max);
  for (uint32_t i = 0; i < list->n; i++) out[i] = tarn_int_parse(L, list->kid[i]);
  return list->n;
}

void tarn_ints_print(tarn_buf *b, uint32_t n, const int64_t *v) {
  tarn_buf_str(b, "(");
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, "%s%" PRId64, i ? " " : "", v[i]);
  tarn_buf_str(b, ")");
}

/* ---------------------------------------------------------------- types */
tarn_dtype tarn_dtype_read(tarn_lang *L, const tarn_sx *s) {
  tarn_dtype t;
  if (s->kind != TARN_SX_ATOM || !tarn_dtype_parse(s->text, &t))
    tarn_sx_error(L->cx, s, "an element type (f32, i64, …) is expected");
  return t;
}

void tarn_shape_print(tarn_buf *b, const tarn_type *t) {
  tarn_buf_str(b, "(");
  tarn_ints_print(b, t->ns, t->dim);
  tarn_buf_str(b, " ");
  tarn_ints_print(b, t->n - t->ns, t->dim + t->ns);
  tarn_buf_str(b, ")");
}

void tarn_type_print(const tarn_lang *L, tarn_buf *b, uint32_t type) {
  const tarn_type *t = tarn_type_get(L, type);
  if (!t->tuple) {
    tarn_buf_fmt(b, "%s ", tarn_dtype_name(t->dtype));
    tarn_shape_print(b, t);
    return;
  }
  tarn_buf_str(b, "tuple");
  for (uint32_t i = 0; i < t->nelem; i++) {
    tarn_buf_str(b, " (");
    tarn_type_print(L, b, t->elem[i]);
    tarn_buf_str(b, ")");
  }
}

uint32_t tarn_type_parse(tarn_lang *L, const tarn_sx *shape, tarn_dtype dt) {
  int64_t dim[2 * TARN_MAX_DIMS];
  if (shape->kind != TARN_SX_LIST || shape->n != 2)
    tarn_sx_error(L->cx, shape, "a shape ((S…) (C…)) is expected");
  uint32_t ns = tarn_ints_parse(L, shape->kid[0], TARN_MAX_DIMS, dim);
  uint32_t n = ns + tarn_ints_parse(L, shape->kid[1], TARN_MAX_DIMS, dim + ns);
  int64_t count;
  if (n > TARN_MAX_DIMS) tarn_sx_error(L->cx, shape, "more than %d dims", TARN_MAX_DIMS);
  for (uint32_t i = 0; i < n; i++)
    if (dim[i] < 0) tarn_sx_error(L->cx, shape, "negative extent");
  if (!tarn_count_dims(n, dim, &count)) tarn_sx_error(L->cx, shape, "the element count overflows");
  return tarn_type_tensor(L, dt, ns, n, dim);
}
