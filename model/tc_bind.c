/* Tensor comprehensions: the numbers of symbolic extents and of scalars, and the inputs. */
#include "model/tc.h"
#include <string.h>

tc_var *tc_find(const tc_run *r, const char *name) {
  for (uint32_t i = 0; i < r->var.n; i++)
    if (!strcmp(r->var.p[i].name, name)) return &r->var.p[i];
  return NULL;
}

static const tc_param *param_of(const tc_run *r, const char *name) {
  for (uint32_t i = 0; i < r->def->nparam; i++)
    if (!strcmp(r->def->param[i].of.name, name)) return &r->def->param[i];
  return NULL;
}

static void add(tc_run *r, tc_var v, tc_at at) {
  if (tc_find(r, v.name)) tc_bad(r->text, at, "%s has two meanings", v.name);
  tarn_push(r->cx, &r->var, v);
}

/* ---------------------------------------------------------------- names */

static void declare_sizes(tc_run *r, const tc_expr *e) {
  if (e->kind == TC_NAME && !tc_find(r, e->name) && !param_of(r, e->name))
    add(r, (tc_var){.what = TC_SIZE, .name = e->name, .t = TARN_NONE}, e->at);
  for (uint32_t i = 0; i < e->n; i++) declare_sizes(r, e->kid[i]);
}

static void declare(tc_run *r) {
  for (uint32_t i = 0; i < r->def->nparam; i++) {
    const tc_param *p = &r->def->param[i];
    add(r, (tc_var){.what = p->n ? TC_TENSOR : TC_SCALAR, .name = p->of.name, .t = TARN_NONE},
        p->of.at);
  }
  for (uint32_t i = 0; i < r->def->nparam; i++)
    for (uint32_t d = 0; d < r->def->param[i].n; d++) declare_sizes(r, r->def->param[i].extent[d]);
}

/* ---------------------------------------------------------------- options */

static void set_size(tc_run *r, tc_var *v, int64_t value, const char *said) {
  if (v->known && v->value != value)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: --shape %s: %s is %lld already", r->text->file, said,
               v->name, (long long)v->value);
  v->known = true;
  v->value = value;
}

/* --shape A=2,3: extents that are a single name. */
static void bind_shape(tc_run *r, const tc_param *p, const tarn_shape_binding *b) {
  if (b->n != p->n)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: --shape %s: %u extents, the parameter has %u dims",
               r->text->file, b->name, b->n, p->n);
  for (uint32_t d = 0; d < p->n; d++) {
    tc_var *v = p->extent[d]->kind == TC_NAME ? tc_find(r, p->extent[d]->name) : NULL;
    if (v && v->what == TC_SIZE) set_size(r, v, b->dim[d], b->name);
  }
}

static void bind_option(tc_run *r, const tarn_shape_binding *b) {
  const tc_param *p = param_of(r, b->name);
  tc_var *v = tc_find(r, b->name);
  if (p && p->n) {
    bind_shape(r, p, b);
    return;
  }
  if (!v)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: --shape %s: %s has no such size or parameter",
               r->text->file, b->name, r->def->of.name);
  if (b->n != 1)
    tarn_raise(r->cx, TARN_BAD_INPUT, "%s: --shape %s: one number is expected", r->text->file,
               b->name);
  set_size(r, v, b->dim[0], b->name);
}

/* --set s=2 of a scalar: its number may stand in subscripts. */
static void set_scalars(tc_run *r) {
  for (uint32_t i = 0; i < r->options->nset; i++) {
    const tarn_value_binding *b = &r->options->set[i];
    tc_var *v = tc_find(r, b->name);
    if (!v || v->what != TC_SCALAR) continue;
    const uint32_t none = 0;
    tarn_dtype t = param_of(r, b->name)->type;
    const tarn_tensor *x = im_set_value(r->cx, b, t, &none, NULL);
    if (!tarn_dtype_is_float(t)) set_size(r, v, tarn_tensor_get(x, 0).i, b->name);
  }
}

/* ---------------------------------------------------------------- inputs */

static int64_t extent(tc_run *r, const tc_param *p, uint32_t d) {
  int64_t n = tc_number(r, p->extent[d]);
  if (n < 0)
    tc_bad(r->text, p->extent[d]->at, "dim %u of %s would have %lld elements", d, p->of.name,
           (long long)n);
  return n;
}

static bool is_set(const tc_run *r, const char *name) {
  bool set = false;
  for (uint32_t i = 0; i < r->options->nset; i++) set |= !strcmp(r->options->set[i].name, name);
  return set;
}

/* A scalar that --shape has bound is a constant. */
static void make_input(tc_run *r, const tc_param *p) {
  int64_t dim[TARN_MAX_DIMS];
  tc_var *v = tc_find(r, p->of.name);
  for (uint32_t d = 0; d < p->n; d++) dim[d] = extent(r, p, d);
  uint32_t type = tarn_type_tensor(r->L, p->type, p->n, p->n, dim);
  bool number = v->what == TC_SCALAR && v->known && !is_set(r, v->name);
  v->t = number ? tarn_scalar(r->L, p->type, (double)v->value) : tarn_input(r->L, p->of.name, type);
  if (!number) tarn_push(r->cx, &r->in, ((tarn_io){p->of.name, v->t, type}));
}

/* The shape that was given for a parameter is the one that its extents have. */
static void check_shape(tc_run *r, const tc_param *p, const tarn_shape_binding *b) {
  for (uint32_t d = 0; d < p->n; d++) {
    int64_t n = extent(r, p, d);
    if (n != b->dim[d])
      tarn_raise(r->cx, TARN_BAD_INPUT, "%s: --shape %s: dim %u is %lld in the definition",
                 r->text->file, b->name, d, (long long)n);
  }
}

void tc_bind(tc_run *r) {
  const tarn_model_options *o = r->options;
  declare(r);
  set_scalars(r);
  for (uint32_t i = 0; i < o->nshape; i++) bind_option(r, &o->shape[i]);
  for (uint32_t i = 0; i < r->def->nparam; i++) make_input(r, &r->def->param[i]);
  for (uint32_t i = 0; i < o->nshape; i++) {
    const tc_param *p = param_of(r, o->shape[i].name);
    if (p && p->n) check_shape(r, p, &o->shape[i]);
  }
}
