/* Is the model one program at all sizes of a box?
 *
 * The code of a box is made of few samples. What the model is at other sizes is asked of the model:
 * it is imported at these too, where it has to be the same operators, with numbers on the
 * polynomials of the rest (kernel/poly.c). A dim that is cut at some length, a floor, a special
 * case of a size, is seen so, and the box is cut there. */
#include "compile/sizes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELEMENTS   64        /* of a constant that is a number of the model: read one by one */
#define MOST_COUNT (1 << 22) /* the reciprocals of two such differ in f32 */

typedef struct constant {
  tarn_term term;
  uint32_t payload;
} constant;
typedef struct mark { /* where a term begins in the form, and in the numbers */
  tarn_term term;
  size_t form, number;
} mark;
typedef struct reading { /* of the model at one choice of sizes */
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_program *p;
  tarn_buf form;
  tarn_numbers number;
  tarn_map *known; /* term -> 1 + its number */
  tarn_buf text;
  TARN_VEC(constant) constant;
  TARN_VEC(mark) mark;
} reading;
typedef struct asking {
  comp_sizes *z;
  const tarn_points *points;
  reading *r;
  const char *why; /* NULL: it is one */
} asking;

/* ---- reading ---- */
static void put_number(reading *r, int64_t x) { tarn_push(r->cx, &r->number, x); }
static void literal(reading *r, const char *text, size_t n, double x) {
  double over = x == 0 ? 0 : rint(1 / x);
  if (x == rint(x) && fabs(x) < 0x1p53) {
    tarn_buf_str(&r->form, "#");
    put_number(r, (int64_t)x);
  } else if (over != 0 && fabs(over) <= MOST_COUNT && (1 / over == x || (float)(1 / over) == x)) {
    tarn_buf_str(&r->form, "/");
    put_number(r, (int64_t)over);
  } else tarn_buf_add(&r->form, text, n);
}
static bool in_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.' || c == '%';
}
static bool starts_number(const char *p) {
  p += *p == '-';
  return *p >= '0' && *p <= '9';
}
/* Numbers in it that stand by themselves are numbers of the model. */
static void take_text(reading *r, const char *text) {
  for (const char *p = text; *p;) {
    char *end = NULL;
    bool is = starts_number(p) && (p == text || !in_word(p[-1]));
    double x = is ? strtod(p, &end) : 0;
    if (is && !in_word(*end)) {
      literal(r, p, (size_t)(end - p), x);
      p = end;
    } else tarn_buf_add(&r->form, p++, 1);
  }
}
static void take_type(reading *r, uint32_t type) {
  const tarn_type *t = tarn_type_get(r->L, type);
  tarn_buf_i64(&r->form, t->dtype);
  tarn_buf_i64(&r->form, t->n);
  tarn_buf_i64(&r->form, t->tuple);
  for (uint32_t d = 0; d < t->n; d++) put_number(r, t->dim[d]);
}
static void take_node(reading *r, tarn_term t) {
  tarn_node x = *tarn_term_get(r->L, t);
  tarn_push(r->cx, &r->mark, ((mark){t, r->form.n, r->number.n}));
  tarn_buf_i64(&r->form, x.op);
  for (uint32_t i = 0; i < x.n; i++)
    tarn_buf_i64(&r->form, (int64_t)*tarn_map_get(r->known, x.kid[i]));
  take_type(r, x.type);
  if (x.op == TARN_OP_CONST) {
    tarn_push(r->cx, &r->constant, ((constant){t, x.payload}));
    return;
  }
  r->text.n = 0;
  tarn_payload_print(r->L, &r->text, x.op, x.payload);
  tarn_buf_str(&r->text, "");
  take_text(r, r->text.p);
}
/* What it is made of first; a path of terms may be long. */
static void read_term(reading *r, tarn_term root) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(r->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(r->L, t);
    bool ready = true;
    for (uint32_t i = x->n; i-- > 0 && !tarn_map_get(r->known, t);)
      if (!tarn_map_get(r->known, x->kid[i])) {
        tarn_push(r->cx, &todo, x->kid[i]);
        ready = false;
      }
    if (!ready) continue;
    todo.n--;
    if (tarn_map_get(r->known, t)) continue;
    take_node(r, t);
    *tarn_map_at(r->known, t, NULL) = r->mark.n;
  }
}
static void read_model(reading *r, const asking *a, const int64_t *size) {
  r->L = a->z->base->L;
  r->cx = tarn_lang_ctx(r->L);
  r->p = comp_size_import(a->z, size);
  r->form.cx = r->text.cx = r->cx;
  r->known = tarn_map_new(r->cx);
  for (uint32_t i = 0; i < r->p->nin; i++) read_term(r, r->p->in[i].term);
  for (uint32_t i = 0; i < r->p->nout; i++) {
    read_term(r, r->p->out[i].term);
    tarn_buf_i64(&r->form, (int64_t)*tarn_map_get(r->known, r->p->out[i].term));
  }
}

/* ---- the same at all of them? ---- */
/* The node of the model that term t is made for. */
static const char *node_of(const reading *r, tarn_term t) {
  for (uint32_t i = 0; i < r->p->norigin; i++)
    if (r->p->origin[i].term == t)
      return tarn_format(r->cx, "node %s (%s): ", r->p->origin[i].node, r->p->origin[i].op);
  return "";
}
static tarn_term term_at(const reading *r, size_t form, size_t number) {
  uint32_t i = r->mark.n;
  while (i > 1 && (r->mark.p[i - 1].form > form || r->mark.p[i - 1].number > number)) i--;
  return r->mark.n ? r->mark.p[i - 1].term : TARN_NONE;
}
static void differ(asking *a, uint32_t point, tarn_term term, const char *what) {
  const reading *r = &a->r[point];
  a->why = tarn_format(a->z->cx, "%s%s (%s)", node_of(r, term), what,
                       comp_size_label(a->z, a->points->at[point]));
}
static void same_forms(asking *a) {
  const reading *r = a->r;
  for (uint32_t i = 1; i < a->points->n && !a->why; i++) {
    const reading *s = &a->r[i];
    size_t at = 0;
    while (at < r->form.n && at < s->form.n && r->form.p[at] == s->form.p[at]) at++;
    if (at == r->form.n && at == s->form.n && r->number.n == s->number.n) continue;
    differ(a, i, term_at(s, at, SIZE_MAX), "it is another there than at other sizes");
  }
}
static void same_numbers(asking *a) {
  uint32_t n = a->points->n;
  int64_t *v = TARN_ARRAY(a->r->cx, int64_t, n);
  tarn_intern *tried = tarn_intern_new(a->r->cx);
  for (uint32_t k = 0; k < a->r->number.n && !a->why; k++) {
    tarn_poly p;
    for (uint32_t i = 0; i < n; i++) v[i] = a->r[i].number.p[k];
    if (tarn_intern_find(tried, (const char *)v, n * sizeof *v) != TARN_NONE) continue;
    tarn_intern_add(tried, (const char *)v, n * sizeof *v);
    if (!tarn_poly_through(a->points, v, &p))
      differ(a, n - 1, term_at(&a->r[n - 1], SIZE_MAX, k),
             tarn_format(a->z->cx, "a number is no polynomial of the sizes: %lld, %lld … %lld",
                         (long long)v[0], (long long)v[1], (long long)v[n - 1]));
  }
}

/* ---- constants ---- */
static const tarn_tensor *value_of(const reading *r, uint32_t k) {
  return tarn_payload_get(r->L, r->constant.p[k].payload)->tensor;
}
/* Is each element of s that of b at the same place? */
static bool is_box_of(const tarn_tensor *s, const tarn_tensor *b) {
  size_t bytes = tarn_dtype_size(s->dtype);
  int64_t at[TARN_MAX_DIMS] = {0};
  for (int64_t i = 0; i < tarn_tensor_count(s); i++) {
    int64_t j = 0;
    for (uint32_t d = 0; d < s->n; d++) {
      if (at[d] >= b->dim[d]) return false;
      j = j * b->dim[d] + at[d];
    }
    if (memcmp((const char *)s->data + (size_t)i * bytes, (const char *)b->data + (size_t)j * bytes,
               bytes))
      return false;
    for (uint32_t d = s->n; d-- > 0 && ++at[d] == s->dim[d];) at[d] = 0;
  }
  return true;
}
static bool same_dims(const tarn_tensor *a, const tarn_tensor *b) {
  return a->n == b->n && !memcmp(a->dim, b->dim, a->n * sizeof *a->dim);
}
/* Few elements, each of them a number. */
static void take_elements(asking *a, uint32_t k) {
  for (uint32_t i = 0; i < a->points->n; i++) {
    const tarn_tensor *t = value_of(&a->r[i], k);
    for (int64_t e = 0; e < tarn_tensor_count(t); e++) {
      char text[64];
      int n = tarn_dtype_is_float(t->dtype)
                  ? snprintf(text, sizeof text, "%.17g", tarn_tensor_number(t, e))
                  : snprintf(text, sizeof text, "%lld", (long long)tarn_tensor_get(t, e).i);
      literal(&a->r[i], text, (size_t)n, tarn_tensor_number(t, e));
    }
  }
}
static void same_constant(asking *a, uint32_t k) {
  uint32_t last = a->points->n - 1;
  const tarn_tensor *most = value_of(&a->r[last], k);
  bool same = true;
  bool dims = true;
  for (uint32_t i = 0; i < last; i++) {
    same &= a->r[i].constant.p[k].payload == a->r[last].constant.p[k].payload;
    dims &= same_dims(value_of(&a->r[i], k), most);
  }
  if (same) return;
  if (dims && tarn_tensor_count(most) <= ELEMENTS) {
    take_elements(a, k);
    return;
  }
  for (uint32_t i = 0; i < last && !a->why; i++)
    if (dims || !is_box_of(value_of(&a->r[i], k), most))
      differ(a, i, a->r[i].constant.p[k].term, "the elements of a constant depend on the sizes");
}

static void ask(tarn_ctx *cx, void *arg) {
  asking *a = arg;
  uint32_t i = 0;
  (void)cx;
  for (; i < a->points->n; i++) read_model(&a->r[i], a, a->points->at[i]);
  same_forms(a);
  for (uint32_t k = 0; k < a->r->constant.n && !a->why; k++) same_constant(a, k);
  if (!a->why) same_forms(a);
  if (!a->why) same_numbers(a);
}
const char *comp_model_differs(comp_sizes *z, const tarn_points *points) {
  asking a = {.z = z, .points = points, .r = TARN_ARRAY(z->cx, reading, points->n)};
  comp_scope_enter(z, true);
  tarn_status st = tarn_protect(z->cx, ask, &a);
  tarn_scope_leave(z->scope);
  if (st == TARN_MEMORY || st == TARN_INTERNAL)
    tarn_raise(z->cx, st, "%s", tarn_strdup(z->cx, tarn_message(z->cx)));
  return st == TARN_OK ? a.why : tarn_strdup(z->cx, tarn_message(z->cx));
}
