/* Tensor comprehensions: the one text of all definitions that differ in names, remarks and spaces.
 *
 * Parameters become p0, p1 …, sizes s0 …, what statements write t0 …, and the indices of each
 * statement i0 … . What is bound by name is bound by the new names, in their order. */
#include "model/tc.h"
#include <stdlib.h>
#include <string.h>

typedef struct renamed {
  const char *was, *is;
} renamed;
typedef struct printer {
  tarn_ctx *cx;
  tarn_buf b;
  TARN_VEC(renamed) name;
  uint32_t of[4]; /* names given of each kind */
} printer;
enum { PARAM, SIZE, TENSOR, INDEX };

static const char *known(const printer *p, const char *name) {
  for (uint32_t i = 0; i < p->name.n; i++)
    if (!strcmp(p->name.p[i].was, name)) return p->name.p[i].is;
  return NULL;
}

/* By hand: this is most of what is printed. */
static void digits(char *at, uint32_t v) {
  uint32_t n = 1;
  for (uint32_t rest = v; rest >= 10; rest /= 10) n++;
  for (at[n] = 0; n-- > 0; v /= 10) at[n] = (char)('0' + v % 10);
}

static const char *given(printer *p, const char *name, int kind) {
  const char *is = known(p, name);
  if (is) return is;
  char text[16] = {"psti"[kind]};
  digits(text + 1, p->of[kind]++);
  is = tarn_strdup(p->cx, text);
  tarn_push(p->cx, &p->name, ((renamed){name, is}));
  return is;
}

static void put(printer *p, const char *s) { tarn_buf_str(&p->b, s); }

static void print_integer(printer *p, int64_t v) {
  char text[16];
  if (v < 0 || v > UINT32_MAX) {
    tarn_buf_fmt(&p->b, "%lld", (long long)v);
    return;
  }
  digits(text, (uint32_t)v);
  put(p, text);
}

static void expression(printer *p, const tc_expr *e, int kind);

static void list(printer *p, const tc_expr *e, int kind) {
  for (uint32_t i = 0; i < e->n; i++) {
    put(p, i ? "," : "(");
    expression(p, e->kid[i], kind);
  }
  put(p, ")");
}

static void operation(printer *p, const tc_expr *e, int kind) {
  put(p, tc_op_text(e->op));
  list(p, e, kind);
}

/* kind: of a name that is not known yet. Functions keep theirs. */
static void expression(printer *p, const tc_expr *e, int kind) {
  switch (e->kind) {
  case TC_INT: print_integer(p, e->i); return;
  case TC_REAL:
    put(p, "r");
    tarn_buf_double(&p->b, e->r);
    return;
  case TC_NAME: put(p, given(p, e->name, kind)); return;
  case TC_EXTENT:
    put(p, given(p, e->name, TENSOR));
    put(p, ".");
    print_integer(p, e->i);
    return;
  case TC_APPLY:
    put(p, known(p, e->name) ? known(p, e->name) : e->name);
    list(p, e, kind);
    return;
  default: operation(p, e, kind);
  }
}

static void parameters(printer *p, const tc_def *d) {
  for (uint32_t i = 0; i < d->nparam; i++) given(p, d->param[i].of.name, PARAM);
  for (uint32_t i = 0; i < d->nparam; i++) {
    const tc_param *x = &d->param[i];
    put(p, tarn_dtype_name(x->type));
    for (uint32_t k = 0; k < x->n; k++) {
      put(p, k ? "," : "(");
      expression(p, x->extent[k], SIZE);
    }
    put(p, x->n ? ");" : ";");
  }
}

static void statement(printer *p, const tc_stmt *s) {
  uint32_t outer = p->name.n;
  p->of[INDEX] = 0;
  for (uint32_t i = 0; i < s->nindex; i++) given(p, s->index[i].name, INDEX);
  put(p, "[");
  print_integer(p, s->nindex);
  put(p, "]");
  print_integer(p, (int64_t)s->how);
  if (s->fresh) put(p, "!");
  expression(p, s->value, INDEX);
  for (uint32_t i = 0; i < s->nwhere; i++) {
    const tc_where *w = &s->where[i];
    put(p, w->name ? " in " : " exists ");
    if (w->name) put(p, given(p, w->name, INDEX)), put(p, ":");
    expression(p, w->lo, INDEX);
    if (w->hi) put(p, ":"), expression(p, w->hi, INDEX);
  }
  p->name.n = outer;
  put(p, "->");
  put(p, given(p, s->left.name, TENSOR));
  put(p, ";");
}

typedef TARN_VEC(const char *) lines;

static void bound(printer *p, lines *v, const char *name, const char *what, int64_t value) {
  const char *is = known(p, name);
  size_t from = p->b.n;
  put(p, is ? is : name);
  put(p, what);
  put(p, "=");
  print_integer(p, value);
  tarn_push(p->cx, v, tarn_strdup(p->cx, p->b.p + from));
  p->b.n = from; /* what is bound is printed in order */
}

/* The shape of a parameter is the numbers of the sizes that it is made of. */
static void bound_shape(printer *p, lines *v, const tc_def *d, const tarn_shape_binding *b) {
  const tc_param *x = NULL;
  for (uint32_t i = 0; i < d->nparam; i++)
    if (d->param[i].n && !strcmp(d->param[i].of.name, b->name)) x = &d->param[i];
  for (uint32_t i = 0; i < b->n; i++) {
    bool named = x && i < x->n && x->extent[i]->kind == TC_NAME;
    if (named) bound(p, v, x->extent[i]->name, "", b->dim[i]);
    else bound(p, v, b->name, b->n > 1 || x ? tarn_format(p->cx, ".%u", i) : "", b->dim[i]);
  }
}

/* What is bound, by the new names, in their order and each once. */
static void bindings(printer *p, const tc_def *d, const tarn_model_options *o) {
  lines v = {0};
  for (uint32_t i = 0; i < o->nshape; i++) bound_shape(p, &v, d, &o->shape[i]);
  for (uint32_t i = 0; i < o->nset; i++) {
    const char *is = known(p, o->set[i].name);
    tarn_push(p->cx, &v, tarn_format(p->cx, "%s:=%s", is ? is : o->set[i].name, o->set[i].text));
  }
  if (v.n) qsort(v.p, v.n, sizeof *v.p, tarn_by_text);
  for (uint32_t i = 0; i < v.n; i++)
    if (!i || strcmp(v.p[i - 1], v.p[i]) != 0) tarn_buf_fmt(&p->b, " %s", v.p[i]);
}

const char *tarn_comprehension_key(tarn_ctx *cx, const char *text, size_t n, const char *name,
                                   const tarn_model_options *o) {
  printer p = {.cx = cx, .b = {.cx = cx}};
  const tc_def *d = tc_chosen(tc_read(cx, text, n, name), o->def);
  parameters(&p, d);
  for (uint32_t i = 0; i < d->nstmt; i++) statement(&p, &d->stmt[i]);
  put(&p, "=>");
  for (uint32_t i = 0; i < d->nresult; i++)
    tarn_buf_fmt(&p.b, "%s%s", i ? "," : "", given(&p, d->result[i].name, TENSOR));
  bindings(&p, d, o);
  if (o->allow_copies) put(&p, " copies");
  return p.b.p;
}
