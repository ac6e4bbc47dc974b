/* A kernel in two parts: its form, and the numbers in it that may depend on the sizes of its
 * tensors. Forms are bytes that are equal where nothing but such numbers differs. */
#include "kernel/kernel.h"
#include <math.h>
#include <string.h>

#define MOST_SCALARS 64 /* of a function; the numbers in a larger one are part of its form */

typedef struct walk {
  const tarn_lang *L;
  tarn_buf *form;
  tarn_ctx *cx;
  tarn_numbers *number;
} walk;

static void form(walk *w, int64_t x) { tarn_buf_i64(w->form, x); }
static void put_number(walk *w, int64_t x) { tarn_push(w->cx, w->number, x); }
static void numbers(walk *w, const int64_t *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) put_number(w, x[i]);
}
/* Something that is 0, 1 or -1 at one size is so at all: whether vectors are read depends on it. */
static void step(walk *w, int64_t x) {
  form(w, x >= -1 && x <= 1 ? x : 2);
  put_number(w, x);
}
static void index_of(walk *w, uint32_t ix) {
  const tarn_ix *e = tarn_ix_get(w->L, ix);
  form(w, e->n);
  put_number(w, e->c);
  for (uint32_t i = 0; i < e->n; i++) {
    const tarn_ixterm *t = &e->t[i];
    form(w, t->kind);
    step(w, t->coef);
    if (t->kind == TARN_IX_VAR) {
      form(w, t->arg);
      continue;
    }
    put_number(w, t->by);
    index_of(w, t->arg);
  }
}
static void map_of(walk *w, uint32_t map) {
  const tarn_imap *m = tarn_imap_get(w->L, map);
  form(w, m->n);
  form(w, m->nin);
  form(w, m->nguard);
  form(w, m->nguard ? m->fill : TARN_NONE);
  numbers(w, m->in, m->nin);
  for (uint32_t a = 0; a < m->nin; a++) index_of(w, m->e[a]);
  for (uint32_t g = 0; g < m->nguard; g++) {
    index_of(w, m->guard[g].e);
    put_number(w, m->guard[g].lo);
    put_number(w, m->guard[g].hi);
  }
}
/* ---- literals ---- */
/* A mean divides by how many elements there are, or multiplies by one over that. */
typedef enum literal {
  LITERAL, /* of another kind */
  COUNT,
  RECIPROCAL
} literal;
#define LEAST_COUNT 4
#define MOST_COUNT  (1 << 22) /* the reciprocals of two such differ in f32 */
static bool is_count(double x) {
  return x == rint(x) && fabs(x) >= LEAST_COUNT && fabs(x) <= MOST_COUNT;
}
static literal literal_of(const tarn_fx *x, int64_t *n) {
  double v = x->value, over = rint(1 / v);
  if (x->dtype != TARN_F32 && x->dtype != TARN_F64) return LITERAL;
  *n = (int64_t)(is_count(v) ? v : is_count(over) ? over : 0);
  if (is_count(v)) return COUNT;
  double back = *n ? 1 / over : 0;
  return *n && (x->dtype == TARN_F32 ? (float)back : back) == v ? RECIPROCAL : LITERAL;
}
/* An integer is an index, or a bound of one, unless it says how numbers are packed. */
static bool is_wide(tarn_dtype t) { return t == TARN_I32 || t == TARN_I64; }
static void literal_in(walk *w, const tarn_fx *x) {
  int64_t n = 0;
  if (is_wide(x->dtype)) {
    step(w, x->ivalue);
    return;
  }
  literal what = tarn_dtype_is_float(x->dtype) ? literal_of(x, &n) : LITERAL;
  form(w, what);
  if (what != LITERAL) {
    put_number(w, n);
    return;
  }
  form(w, x->ivalue);
  tarn_buf_add(w->form, (const char *)&x->value, sizeof x->value);
}
typedef struct scalars { /* in the order in which they are met */
  uint32_t n, id[MOST_SCALARS];
} scalars;
static bool scalar_of(walk *w, scalars *all, uint32_t id) {
  for (uint32_t i = 0; i < all->n; i++)
    if (all->id[i] == id) return form(w, i), true;
  if (all->n == MOST_SCALARS) return false;
  form(w, all->n);
  all->id[all->n++] = id;
  const tarn_fx *x = tarn_fx_get(w->L, id);
  form(w, x->op);
  form(w, x->dtype);
  form(w, x->hole);
  if (x->op == TARN_FX_CONST) literal_in(w, x);
  for (uint32_t k = 0; k < tarn_fx_arity(x->op); k++)
    if (!scalar_of(w, all, x->kid[k])) return false;
  return true;
}
static void function_of(walk *w, uint32_t fn) {
  const tarn_func *f = tarn_fn_get(w->L, fn);
  scalars all = {0};
  bool read = scalar_of(w, &all, f->body);
  form(w, f->ntuple);
  form(w, f->nops);
  form(w, f->nepi);
  form(w, f->red);
  form(w, f->epi == TARN_NONE);
  if (f->epi != TARN_NONE) read = read && scalar_of(w, &all, f->epi);
  if (!read) form(w, fn);
}

static void stage_of(walk *w, const tarn_stage *s) {
  form(w, s->nown);
  form(w, s->nred);
  function_of(w, s->fn);
  form(w, s->out);
  form(w, s->unit);
  form(w, s->nlook);
  for (uint32_t r = 0; r < tarn_stage_reads(w->L, s); r++) {
    const tarn_row *row = &s->read[r].row;
    form(w, s->read[r].stage);
    form(w, s->read[r].src);
    map_of(w, s->read[r].map);
    form(w, row->by);
    put_number(w, row->pitch);
    put_number(w, row->extent);
  }
}
static void layout_of(walk *w, const tarn_layout *l) {
  form(w, l->n);
  form(w, l->block ? l->baxis : TARN_NONE);
  put_number(w, l->block);
  put_number(w, l->offset);
  for (uint32_t d = 0; d < l->n; d++) {
    put_number(w, l->dim[d]);
    step(w, l->stride[d]);
  }
}
void tarn_ksig_form(const tarn_lang *L, const tarn_ksig *k, tarn_buf *out, tarn_numbers *n) {
  walk w = {L, out, out->cx, n};
  const tarn_nest *nest = tarn_nest_get(L, k->nest);
  form(&w, k->strict);
  form(&w, k->nin);
  form(&w, k->nout);
  form(&w, nest->depth);
  form(&w, nest->nstage);
  numbers(&w, nest->shared, nest->depth);
  for (uint32_t i = 0; i < nest->nstage; i++) {
    numbers(&w, nest->stage[i].own, nest->stage[i].nown);
    numbers(&w, nest->stage[i].red, nest->stage[i].nred);
  }
  for (uint32_t i = 0; i < nest->nstage; i++) stage_of(&w, &nest->stage[i]);
  for (uint32_t i = 0; i < k->nin; i++) {
    form(&w, k->in_type[i] * 2 + k->in_const[i]);
    layout_of(&w, &k->in[i]);
  }
  for (uint32_t i = 0; i < k->nout; i++) {
    form(&w, k->out_type[i]);
    layout_of(&w, &k->out[i]);
  }
}
