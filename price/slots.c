/* The vector instructions that a kernel has to issue whatever its schedule. */
#include "access/fx_internal.h"
#include "price/internal.h"

double tarn_fx_slots(tarn_fxop op) { return tarn_fx_info(op)->slots; }
double tarn_fx_products(tarn_fxop op) { return tarn_fx_info(op)->products; }

typedef struct value {
  uint32_t f, dims, uses; /* dims: those it depends on */
  tarn_dtype type;
  double slots;
} value;
typedef struct count {
  tarn_lang *L;
  const tarn_stage_work *m;
  uint32_t nhole;
  const uint32_t *dims; /* that holes depend on */
  const tarn_dtype *type;
  bool products; /* those alone are counted */
  TARN_VEC(value) seen;
} count;

/* Lanes of 32 bits of one instruction for each element: masks of truth values have registers of
 * their own. */
static double width(tarn_dtype t) { return t == TARN_BOOL ? 0 : (double)tarn_dtype_size(t) / 4; }
static value *find(count *c, uint32_t f) {
  for (uint32_t i = 0; i < c->seen.n; i++)
    if (c->seen.p[i].f == f) return &c->seen.p[i];
  return NULL;
}
static value visit(count *c, uint32_t f) {
  value *known = find(c, f), v = {.f = f, .uses = 1};
  if (known) return known->uses++, *known;
  const tarn_fx x = *tarn_fx_get(c->L, f);
  v.type = x.dtype;
  if (x.op == TARN_FX_HOLE) {
    bool given = x.hole < c->nhole;
    v.dims = given ? c->dims[x.hole] : tarn_first_dims(c->m->n),
    v.type = given ? c->type[x.hole] : TARN_F32;
  } else if (x.op != TARN_FX_CONST) {
    double wide = 0;
    for (uint32_t i = 0; i < tarn_fx_arity(x.op); i++) {
      value k = visit(c, x.kid[i]);
      v.dims |= k.dims;
      if (i == 0 || x.op == TARN_FX_SEL) wide = width(k.type);
      if (x.op != TARN_FX_CAST && (i == 0 || x.op == TARN_FX_SEL)) v.type = k.type;
    }
    double each = !c->products                   ? tarn_fx_slots(x.op)
                  : tarn_dtype_is_float(x.dtype) ? tarn_fx_products(x.op)
                                                 : 0;
    v.slots = each * wide * tarn_work_points(c->m, v.dims);
    if (tarn_fx_gives_bool(x.op)) v.type = TARN_BOOL;
  }
  tarn_push(tarn_lang_ctx(c->L), &c->seen, v);
  return v;
}
/* What is saved when a value that is computed for all of `dims` takes f in: a product that nothing
 * else wants. */
static double folded(count *c, uint32_t f, uint32_t dims) {
  const value *v = find(c, f);
  return tarn_fx_get(c->L, f)->op == TARN_FX_MUL && v->uses == 1 && v->dims == dims ? v->slots : 0;
}
static double sum_of(count *c) {
  double sum = 0;
  for (uint32_t i = 0; i < c->seen.n; i++) {
    const value *v = &c->seen.p[i];
    const tarn_fx x = *tarn_fx_get(c->L, v->f);
    sum += v->slots;
    if (c->products || (x.op != TARN_FX_ADD && x.op != TARN_FX_SUB)) continue;
    double a = folded(c, x.kid[0], v->dims), b = folded(c, x.kid[1], v->dims);
    sum -= a > b ? a : b;
  }
  return sum;
}

/* What is added to a sum can be what it begins with: no instruction of its own, when hole 0 is
 * wanted nowhere else. */
static double begins(count *c) {
  for (uint32_t i = 0; i < c->seen.n; i++) {
    const tarn_fx *x = tarn_fx_get(c->L, c->seen.p[i].f);
    if (x->op != TARN_FX_ADD) continue;
    const value *a = find(c, x->kid[0]), *b = find(c, x->kid[1]);
    const tarn_fx *fa = tarn_fx_get(c->L, a->f), *fb = tarn_fx_get(c->L, b->f);
    bool holes = fa->op == TARN_FX_HOLE && fb->op == TARN_FX_HOLE && a->uses == 1 && b->uses == 1;
    if (holes && (fa->hole == 0 || fb->hole == 0)) return c->seen.p[i].slots;
  }
  return 0;
}

static tarn_dtype type_of(const tarn_ksig *k, const tarn_read *r) {
  return r->stage ? TARN_F32 : k->in_type[r->src];
}
/* What an access yields depends on what moves or guards it, and, of a local buffer, on the shared
 * loops. */
static uint32_t dims_of(const tarn_stage_work *m, const tarn_touch *a) {
  return a->touched | a->guarded | (a->local ? tarn_first_dims(m->nshared) : 0);
}
static double body_slots(tarn_lang *L, const tarn_ksig *k, const tarn_stage *s,
                         const tarn_stage_work *m, bool products) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  uint32_t all = tarn_first_dims(m->n), dims[TARN_MAX_OPERANDS];
  tarn_dtype type[TARN_MAX_OPERANDS];
  count c = {.L = L, .m = m, .nhole = f->nops, .dims = dims, .type = type, .products = products};
  if (m->dot.k) return products ? 0 : tarn_work_points(m, all) / (double)m->dot.k;
  for (uint32_t r = 0; r < f->nops; r++)
    dims[r] = dims_of(m, &m->read[r]), type[r] = type_of(k, &s->read[r]);
  value v = visit(&c, f->body);
  double sum = sum_of(&c);
  if (f->red == TARN_NONE) return sum;
  const tarn_reducer *r = tarn_reducer_get(L, f->red);
  if (r->kind != TARN_RED_CUSTOM && products) return sum;
  if (r->kind != TARN_RED_CUSTOM)
    return sum + width(v.type) * tarn_work_points(m, all) -
           (r->kind == TARN_RED_SUM ? folded(&c, f->body, all) : 0);
  c.nhole = 0, c.seen.n = 0;
  for (uint32_t i = 0; i < r->ns; i++) visit(&c, r->step[i]);
  return sum + sum_of(&c);
}
static double epilogue_slots(tarn_lang *L, const tarn_ksig *k, const tarn_stage *s,
                             const tarn_stage_work *m, bool products) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  uint32_t dims[TARN_MAX_OPERANDS] = {tarn_first_dims(m->nacc)};
  tarn_dtype type[TARN_MAX_OPERANDS] = {f->red == TARN_NONE ? TARN_F32
                                                            : tarn_reducer_get(L, f->red)->dtype};
  count c = {
      .L = L, .m = m, .nhole = 1u + f->nepi, .dims = dims, .type = type, .products = products};
  if (f->epi == TARN_NONE) return 0;
  for (uint32_t r = 0; r < f->nepi; r++)
    dims[r + 1] = dims_of(m, &m->read[f->nops + r]),
             type[r + 1] = type_of(k, &s->read[f->nops + r]);
  visit(&c, f->epi);
  bool sum = !k->strict && f->red != TARN_NONE && tarn_reducer_get(L, f->red)->kind == TARN_RED_SUM;
  return sum_of(&c) - (sum && !products ? begins(&c) : 0);
}

static double slots_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, bool products) {
  const tarn_nest *nest = tarn_nest_get(L, k->nest);
  const tarn_kernel_work *m = tarn_work_of(L, hw, k);
  double sum = 0;
  for (uint32_t i = 0; i < m->nstage; i++) {
    const tarn_stage_work *sm = &m->stage[i];
    double inside =
        tarn_work_inside(L, &nest->stage[i], sm) / tarn_work_points(sm, tarn_first_dims(sm->n));
    sum += body_slots(L, k, &nest->stage[i], sm, products) * inside +
           epilogue_slots(L, k, &nest->stage[i], sm, products);
  }
  return sum;
}
double tarn_ksig_slots(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k) {
  return slots_of(L, hw, k, false);
}
double tarn_ksig_products(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k) {
  return slots_of(L, hw, k, true);
}
