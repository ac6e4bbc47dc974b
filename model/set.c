/* Inputs that are constants from now on: NAME=VALUE, where VALUE is a number, true or false,
 * several of them, or a file; read by the type of the input. */
#include "model/import.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

tarn_value_binding tarn_value_binding_parse(tarn_ctx *cx, const char *text) {
  const char *eq = strchr(text, '=');
  if (!eq || eq == text || !eq[1])
    tarn_raise(cx, TARN_USAGE, "--set %s: NAME=VALUE is expected, where VALUE is numbers or a file",
               text);
  return (tarn_value_binding){tarn_strndup(cx, text, (size_t)(eq - text)), tarn_strdup(cx, eq + 1)};
}

bool tarn_value_binding_file(const tarn_value_binding *b) {
  size_t n = strlen(b->text);
  return n > 4 && (!strcmp(b->text + n - 4, ".npy") || !strcmp(b->text + n - 3, ".pb"));
}

/* ---------------------------------------------------------------- numbers */

typedef struct reader {
  tarn_ctx *cx;
  const tarn_value_binding *b;
  tarn_dtype type;
} reader;

_Noreturn static void refuse(const reader *r, const char *why) {
  tarn_raise(r->cx, TARN_BAD_INPUT, "--set %s=%s: the input is %s: %s", r->b->name, r->b->text,
             tarn_dtype_name(r->type), why);
}

static bool parse_integer(const reader *r, const char *s, tarn_value *v) {
  char *end;
  errno = 0;
  bool big = r->type == TARN_U64 && *s != '-';
  v->i = big ? (int64_t)strtoull(s, &end, 10) : strtoll(s, &end, 10);
  if (errno || *end || end == s) return false;
  if (r->type == TARN_I64 || big) return true;
  uint32_t bits = 8 * (uint32_t)tarn_dtype_size(r->type);
  bool sign = r->type == TARN_I8 || r->type == TARN_I16 || r->type == TARN_I32;
  int64_t most = bits < 64 ? ((int64_t)1 << (bits - sign)) - 1 : INT64_MAX;
  return v->i >= (sign ? -most - 1 : 0) && v->i <= most;
}

static tarn_value read_scalar(const reader *r, const char *s) {
  tarn_value v = {0};
  char *end;
  if (r->type == TARN_BOOL) {
    v.i = !strcmp(s, "true") || !strcmp(s, "1");
    if (!v.i && strcmp(s, "false") != 0 && strcmp(s, "0") != 0)
      refuse(r, "true or false is expected");
  } else if (tarn_dtype_is_float(r->type)) {
    v.d = strtod(s, &end);
    if (*end || end == s) refuse(r, "a number is expected");
  } else if (!parse_integer(r, s, &v)) {
    refuse(r, "an integer that it can hold is expected");
  }
  return v;
}

/* ---------------------------------------------------------------- tensors */

static const char *shape_text(tarn_ctx *cx, uint32_t n, const int64_t *dim) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "(");
  for (uint32_t i = 0; i < n; i++) {
    if (i) tarn_buf_str(&b, ",");
    if (dim[i] < 0) tarn_buf_str(&b, "?");
    else tarn_buf_fmt(&b, "%lld", (long long)dim[i]);
  }
  tarn_buf_str(&b, ")");
  return b.p;
}

static bool same_shape(const tarn_tensor *t, uint32_t n, const int64_t *dim) {
  bool same = t->n == n;
  for (uint32_t i = 0; same && i < n; i++) same = dim[i] < 0 || dim[i] == t->dim[i];
  return same;
}

static const tarn_tensor *from_file(const reader *r, const uint32_t *n, const int64_t *dim) {
  const tarn_tensor *t = tarn_tensor_read_as(r->cx, r->b->text, r->type);
  if (t->dtype == r->type && (!n || same_shape(t, *n, dim))) return t;
  const char *has = shape_text(r->cx, t->n, t->dim), *want = n ? shape_text(r->cx, *n, dim) : "";
  tarn_raise(r->cx, TARN_BAD_INPUT, "--set %s=%s: the file holds %s %s, the input is %s %s",
             r->b->name, r->b->text, tarn_dtype_name(t->dtype), has, tarn_dtype_name(r->type),
             want);
}

static uint32_t words(const reader *r, const char **word) {
  uint32_t n = 0;
  for (const char *p = r->b->text;; p++) {
    size_t len = strcspn(p, ",");
    word[n++] = tarn_strndup(r->cx, p, len);
    p += len;
    if (!*p) return n;
  }
}

/* One number fills what shape there is; several are a vector. */
static tarn_tensor *from_text(const reader *r, const uint32_t *n, const int64_t *dim) {
  const char **word = TARN_ARRAY(r->cx, const char *, strlen(r->b->text) + 1);
  uint32_t count = words(r, word), rank = n ? *n : count > 1;
  int64_t shape[TARN_MAX_DIMS] = {count}, all = 1;
  for (uint32_t i = 0; n && i < rank; i++) {
    shape[i] = dim[i] >= 0 ? dim[i] : rank == 1 ? (int64_t)count : -1;
    if (shape[i] < 0)
      refuse(r, tarn_format(r->cx, "dim %u is not known: --shape binds it, a file has it", i));
    if (__builtin_mul_overflow(all, shape[i], &all) || all > IM_MAX_MADE)
      refuse(r, "its shape is too large");
  }
  if (count > 1 && (rank != 1 || shape[0] != count))
    refuse(r, tarn_format(r->cx, "%u numbers for the shape %s", count,
                          shape_text(r->cx, rank, shape)));
  tarn_tensor *t = tarn_tensor_new(r->cx, r->type, rank, shape);
  for (int64_t i = 0; i < tarn_tensor_count(t); i++)
    tarn_tensor_set(t, i, read_scalar(r, word[count > 1 ? i : 0]));
  if (count == 1) read_scalar(r, word[0]);
  return t;
}

const tarn_tensor *im_set_value(tarn_ctx *cx, const tarn_value_binding *b, tarn_dtype type,
                                const uint32_t *n, const int64_t *dim) {
  const reader r = {cx, b, type};
  return tarn_value_binding_file(b) ? from_file(&r, n, dim) : from_text(&r, n, dim);
}

/* ---------------------------------------------------------------- programs and terms */

void im_refuse_twice(tarn_ctx *cx, const char *file, const tarn_model_options *o) {
  for (uint32_t i = 0; i < o->nset; i++)
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(o->set[i].name, o->set[k].name) == 0)
        tarn_raise(cx, TARN_USAGE, "%s: --set %s is given twice", file, o->set[i].name);
}

/* The term with inputs replaced; to: term -> what stands for it + 1. */
static tarn_term replaced(tarn_lang *L, tarn_term root, tarn_map *to) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node x = *tarn_term_get(L, t);
    tarn_term *kid = TARN_ARRAY(cx, tarn_term, x.n + 1);
    uint32_t have = todo.n;
    for (uint32_t i = 0; i < x.n; i++) {
      uint64_t *k = tarn_map_get(to, x.kid[i]);
      if (k) kid[i] = (tarn_term)(*k - 1);
      else tarn_push(cx, &todo, x.kid[i]);
    }
    if (todo.n > have) continue;
    todo.n--;
    if (!tarn_map_get(to, t))
      *tarn_map_at(to, t, NULL) = (uint64_t)(x.n ? tarn_mk(L, x.op, x.payload, kid, x.n) : t) + 1;
  }
  return (tarn_term)(*tarn_map_get(to, root) - 1);
}

void im_set_inputs(tarn_program *p, const char *file, const tarn_model_options *o) {
  tarn_lang *L = p->L;
  tarn_map *to = tarn_map_new(tarn_lang_ctx(L));
  im_refuse_twice(tarn_lang_ctx(L), file, o);
  for (uint32_t s = 0; s < o->nset; s++) {
    uint32_t i = 0;
    while (i < p->nin && strcmp(p->in[i].name, o->set[s].name) != 0) i++;
    if (i == p->nin) im_no_input(tarn_lang_ctx(L), file, &o->set[s]);
    const tarn_type *t = tarn_type_get(L, p->in[i].type);
    const uint32_t n = t->n;
    const tarn_tensor *x = im_set_value(tarn_lang_ctx(L), &o->set[s], t->dtype, &n, t->dim);
    *tarn_map_at(to, p->in[i].term, NULL) = (uint64_t)tarn_constant(L, p->in[i].name, x, t->ns) + 1;
    memmove(&p->in[i], &p->in[i + 1], (--p->nin - i) * sizeof *p->in);
  }
  for (uint32_t i = 0; i < p->nout; i++) p->out[i].term = replaced(L, p->out[i].term, to);
}

_Noreturn void im_no_input(tarn_ctx *cx, const char *file, const tarn_value_binding *b) {
  tarn_raise(cx, TARN_BAD_INPUT, "%s: --set %s: the model has no such input", file, b->name);
}
