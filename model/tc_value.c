/* Tensor comprehensions: the right side of a statement as a scalar expression over views. */
#include "model/tc.h"
#include <string.h>

/* A number of the text takes the type of what it meets. */
typedef struct value {
  uint32_t fx;
  tarn_dtype type;
  bool literal, real;
  int64_t i;
  double r;
} value;
typedef struct maker {
  tc_run *r;
  tc_body *b;
} maker;

static value value_of(const maker *m, const tc_expr *e);

/* ---------------------------------------------------------------- types */

static value typed(uint32_t fx, tarn_dtype t) { return (value){.fx = fx, .type = t}; }
static value integer(int64_t i) {
  return (value){
      .type = i == (int32_t)i ? TARN_I32 : TARN_I64, .literal = true, .i = i, .r = (double)i};
}
static value real(double r) {
  return (value){.type = TARN_F32, .literal = true, .real = true, .r = r};
}

static value as(const maker *m, value v, tarn_dtype t) {
  tarn_lang *L = m->r->L;
  if (!v.literal) return v.type == t ? v : typed(tarn_fx_cast(L, t, v.fx), t);
  bool to_real = tarn_dtype_is_float(t);
  if (v.real && !to_real) return as(m, as(m, v, TARN_F32), t);
  return typed(to_real ? tarn_fx_const(L, t, v.r) : tarn_fx_iconst(L, t, v.i), t);
}
static value settled(const maker *m, value v) { return as(m, v, v.type); }

/* The later one of: whole numbers by their size, 16-bit floats, f32, f64. */
static int rank_of(tarn_dtype t) {
  static const tarn_dtype order[] = {TARN_BOOL, TARN_I8,  TARN_U8,  TARN_I16, TARN_U16,
                                     TARN_I32,  TARN_U32, TARN_I64, TARN_U64, TARN_F16,
                                     TARN_BF16, TARN_F32, TARN_F64};
  int i = 0;
  while (order[i] != t) i++;
  return i;
}
static tarn_dtype common(value a, value b) {
  if (a.literal && b.literal) return a.real ? a.type : b.type;
  if (b.literal) return common(b, a);
  if (a.literal && a.real) return tarn_dtype_is_float(b.type) ? b.type : TARN_F32;
  if (a.literal) return b.type == TARN_BOOL ? TARN_I32 : b.type;
  bool halves = a.type != b.type && rank_of(a.type) >= rank_of(TARN_F16) &&
                rank_of(b.type) >= rank_of(TARN_F16) && rank_of(a.type) < rank_of(TARN_F32) &&
                rank_of(b.type) < rank_of(TARN_F32);
  if (halves) return TARN_F32;
  return rank_of(a.type) > rank_of(b.type) ? a.type : b.type;
}
static tarn_dtype counted(tarn_dtype t) { return t == TARN_BOOL ? TARN_I32 : t; }

/* ---------------------------------------------------------------- operators */

static value literal_op(tc_op op, value a, value b) {
  bool r = a.real || b.real;
  switch (op) {
  case TC_ADD: return r ? real(a.r + b.r) : integer(a.i + b.i);
  case TC_SUB: return r ? real(a.r - b.r) : integer(a.i - b.i);
  default: return r ? real(a.r * b.r) : integer(a.i * b.i);
  }
}
static bool small(value v) { return v.i < (1LL << 30) && v.i > -(1LL << 30); }
static bool folds(tc_op op, value a, value b) {
  bool simple = op == TC_ADD || op == TC_SUB || op == TC_MUL;
  return simple && a.literal && b.literal && small(a) && small(b);
}

static value arithmetic(const maker *m, tc_op op, value a, value b) {
  static const tarn_fxop of[] = {[TC_ADD] = TARN_FX_ADD,
                                 [TC_SUB] = TARN_FX_SUB,
                                 [TC_MUL] = TARN_FX_MUL,
                                 [TC_DIV] = TARN_FX_DIV,
                                 [TC_MOD] = TARN_FX_FMOD};
  if (folds(op, a, b)) return literal_op(op, a, b);
  tarn_dtype t = counted(common(a, b));
  return typed(tarn_fx_op(m->r->L, of[op], as(m, a, t).fx, as(m, b, t).fx, TARN_NONE), t);
}

static value comparison(const maker *m, tc_op op, value a, value b) {
  tarn_dtype t = common(a, b);
  bool swap = op == TC_GT || op == TC_GE;
  uint32_t x = as(m, swap ? b : a, t).fx, y = as(m, swap ? a : b, t).fx;
  tarn_fxop of = op == TC_EQ || op == TC_NE   ? TARN_FX_EQ
                 : op == TC_LT || op == TC_GT ? TARN_FX_LT
                                              : TARN_FX_LE;
  uint32_t fx = tarn_fx_op(m->r->L, of, x, y, TARN_NONE);
  if (op == TC_NE) fx = tarn_fx_op(m->r->L, TARN_FX_NOT, fx, TARN_NONE, TARN_NONE);
  return typed(fx, TARN_BOOL);
}

static value chosen(const maker *m, const tc_expr *e) {
  value c = as(m, value_of(m, e->kid[0]), TARN_BOOL);
  value a = value_of(m, e->kid[1]), b = value_of(m, e->kid[2]);
  tarn_dtype t = common(a, b);
  return typed(tarn_fx_op(m->r->L, TARN_FX_SEL, c.fx, as(m, a, t).fx, as(m, b, t).fx), t);
}

static value negated(const maker *m, value v) {
  if (v.literal) return v.real ? real(-v.r) : integer(-v.i);
  tarn_dtype t = counted(v.type);
  return typed(tarn_fx_op(m->r->L, TARN_FX_NEG, as(m, v, t).fx, TARN_NONE, TARN_NONE), t);
}

static value logical(const maker *m, tc_op op, value a, value b) {
  uint32_t x = as(m, a, TARN_BOOL).fx, y = as(m, b, TARN_BOOL).fx;
  return typed(tarn_fx_op(m->r->L, op == TC_AND ? TARN_FX_AND : TARN_FX_OR, x, y, TARN_NONE),
               TARN_BOOL);
}

static value operation(const maker *m, const tc_expr *e) {
  if (e->op == TC_CHOOSE) return chosen(m, e);
  value a = value_of(m, e->kid[0]);
  if (e->op == TC_NEG) return negated(m, a);
  if (e->op == TC_NOT) {
    uint32_t fx = as(m, a, TARN_BOOL).fx;
    return typed(tarn_fx_op(m->r->L, TARN_FX_NOT, fx, TARN_NONE, TARN_NONE), TARN_BOOL);
  }
  value b = value_of(m, e->kid[1]);
  if (e->op <= TC_AND) return logical(m, e->op, a, b);
  return e->op <= TC_GT ? comparison(m, e->op, a, b) : arithmetic(m, e->op, a, b);
}

/* ---------------------------------------------------------------- functions */

static const struct {
  const char *name;
  uint32_t op, operands;
} functions[] = {{"max", TARN_FX_MAX, 2},  {"min", TARN_FX_MIN, 2},    {"fmax", TARN_FX_MAX, 2},
                 {"fmin", TARN_FX_MIN, 2}, {"pow", TARN_FX_POW, 2},    {"fmod", TARN_FX_FMOD, 2},
                 {"fabs", TARN_FX_ABS, 1}, {"log1p", TARN_FX_LOG1P, 1}};
#define FUNCTIONS (sizeof functions / sizeof *functions)

_Noreturn static void wrong_count(const maker *m, const tc_expr *e, uint32_t takes) {
  tc_bad(m->r->text, e->at, "%s takes %u value%s, %u are given", e->name, takes,
         takes == 1 ? "" : "s", e->n);
}

static value applied(const maker *m, const tc_expr *e, uint32_t fx, const value *v, tarn_dtype t,
                     tarn_dtype *out) {
  uint32_t with[2];
  tarn_dtype types[2] = {t, t};
  for (uint32_t i = 0; i < e->n; i++) with[i] = as(m, v[i], t).fx;
  if (!tarn_fx_type(m->r->L, fx, types, e->n, out)) return typed(TARN_NONE, t);
  return typed(tarn_fx_subst(m->r->L, fx, with, e->n), *out);
}

/* Whole numbers become floats where the function is of floats. */
static value call_fx(const maker *m, const tc_expr *e, uint32_t fx, const value *v, tarn_dtype t) {
  tarn_dtype out;
  value x = applied(m, e, fx, v, t, &out);
  if (x.fx == TARN_NONE) tc_bad(m->r->text, e->at, "%s: %s", e->name, tarn_message(m->r->cx));
  return x;
}

static tarn_dtype common_type(const maker *m, const tc_expr *e, value *v) {
  for (uint32_t i = 0; i < e->n; i++) v[i] = value_of(m, e->kid[i]);
  return e->n == 2 ? common(v[0], v[1]) : v[0].type;
}

static value own_function(const maker *m, const tc_expr *e, size_t i) {
  tarn_lang *L = m->r->L;
  value v[2];
  if (e->n != functions[i].operands) wrong_count(m, e, functions[i].operands);
  tarn_dtype t = counted(common_type(m, e, v));
  if (functions[i].op == TARN_FX_LOG1P && !tarn_dtype_is_float(t)) t = TARN_F32;
  uint32_t fx = tarn_fx_op(L, (tarn_fxop)functions[i].op, tarn_fx_hole(L, 0),
                           e->n == 2 ? tarn_fx_hole(L, 1) : TARN_NONE, TARN_NONE);
  return call_fx(m, e, fx, v, t);
}

static value onnx_function(const maker *m, const tc_expr *e) {
  tarn_lang *L = m->r->L;
  uint32_t inputs;
  bool wide;
  value v[2] = {{0}};
  uint32_t fx = im_elementary(L, e->name, TARN_F32, &inputs, &wide);
  if (e->n != inputs) wrong_count(m, e, inputs);
  tarn_dtype given = counted(common_type(m, e, v)), out;
  tarn_dtype t = wide ? tarn_dtype_accumulator(given) : given;
  fx = im_elementary(L, e->name, t, &inputs, &wide);
  value x = applied(m, e, fx, v, t, &out);
  if (x.fx == TARN_NONE && !tarn_dtype_is_float(t)) {
    t = given = TARN_F32;
    fx = im_elementary(L, e->name, t, &inputs, &wide);
  }
  if (x.fx == TARN_NONE) x = call_fx(m, e, fx, v, t);
  return x.type == t ? as(m, x, given) : x;
}

bool tc_is_function(const char *name) {
  tarn_dtype t;
  bool own = tc_type_named(name, &t);
  for (size_t i = 0; i < FUNCTIONS; i++) own |= !strcmp(functions[i].name, name);
  return own || im_is_elementary(name);
}

static value called(const maker *m, const tc_expr *e) {
  tarn_dtype t;
  if (tc_type_named(e->name, &t)) {
    if (e->n != 1) wrong_count(m, e, 1);
    return as(m, value_of(m, e->kid[0]), t);
  }
  for (size_t i = 0; i < FUNCTIONS; i++)
    if (!strcmp(functions[i].name, e->name)) return own_function(m, e, i);
  return onnx_function(m, e);
}

/* ---------------------------------------------------------------- reads */

uint32_t tc_operand(const tc_run *r, tc_body *b, tarn_term t) {
  uint32_t i = 0;
  if (!tarn_term_type(r->L, t)->n && b->n) {
    tarn_imap m = {.ns = (uint8_t)b->ns, .n = (uint8_t)b->n, .fill = TARN_NONE};
    memcpy(m.dim, b->dim, sizeof m.dim);
    t = tarn_view(r->L, tarn_map_intern(r->L, &m), t);
  }
  while (i < b->operand.n && b->operand.p[i] != t) i++;
  if (i == UINT8_MAX) tc_bad(r->text, r->stmt->left.at, "a statement may read 255 operands");
  if (i == b->operand.n) tarn_push(r->cx, &b->operand, t);
  return tarn_fx_hole(r->L, i);
}

static value operand(const maker *m, tarn_term t, tarn_dtype type) {
  return typed(tc_operand(m->r, m->b, t), type);
}

static uint32_t place_of(const tc_body *b, uint32_t index) {
  uint32_t d = 0;
  while (d < b->n && b->index[d] != index) d++;
  return d;
}

static uint32_t index_ix(const maker *m, uint32_t index) {
  const int64_t *dim = m->b->dim;
  uint32_t v = tarn_ix_var(m->r->L, place_of(m->b, index), dim);
  return tarn_ix_add(m->r->L, v, tarn_ix_const(m->r->L, m->r->index[index].lo), dim);
}

static uint32_t sum_ix(const maker *m, const tc_sum *s) {
  tarn_lang *L = m->r->L;
  const int64_t *dim = m->b->dim;
  uint32_t at = tarn_ix_const(L, s->c);
  for (uint32_t i = 0; i < s->n; i++) {
    const tc_atom *a = &s->atom[i];
    uint32_t x = a->op == TC_ADD ? index_ix(m, a->index) : sum_ix(m, a->of);
    if (a->op == TC_DIV) x = tarn_ix_div(L, x, a->by, dim);
    if (a->op == TC_MOD) x = tarn_ix_mod(L, x, a->by, dim);
    at = tarn_ix_add(L, at, tarn_ix_scale(L, x, a->coef, dim), dim);
  }
  return at;
}

static tarn_imap map_over(const tc_body *b) {
  tarn_imap m = {.ns = (uint8_t)b->ns, .n = (uint8_t)b->n, .fill = TARN_NONE};
  memcpy(m.dim, b->dim, sizeof m.dim);
  return m;
}

/* An index as a value: its numbers as a constant. */
static value index_value(const maker *m, uint32_t index) {
  const tc_index *x = &m->r->index[index];
  int64_t n = x->hi - x->lo;
  if (n > IM_MAX_MADE)
    tc_bad(m->r->text, x->at, "%s as a value has more than %lld elements", x->name,
           (long long)IM_MAX_MADE);
  tarn_tensor *t = tarn_tensor_new(m->r->cx, TARN_I32, 1, &n);
  for (int64_t i = 0; i < n; i++) tarn_tensor_set(t, i, (tarn_value){.i = x->lo + i});
  tarn_term c = tarn_constant(m->r->L, x->name, t, 1);
  tarn_imap map = map_over(m->b);
  map.nin = 1;
  map.in[0] = n;
  map.e[0] = tarn_ix_var(m->r->L, place_of(m->b, index), map.dim);
  return operand(m, tarn_view(m->r->L, tarn_map_intern(m->r->L, &map), c), TARN_I32);
}

static value scalar_value(const maker *m, const tc_expr *e, tarn_term t) {
  const tarn_type *type = tarn_term_type(m->r->L, t);
  if (type->n)
    tc_bad(m->r->text, e->at, "%s has %u dims, no subscripts are given", e->name, type->n);
  tarn_dtype dt = type->dtype;
  const tarn_node *x = tarn_term_get(m->r->L, t);
  if (x->op != TARN_OP_CONST) return operand(m, t, dt);
  tarn_value v = tarn_tensor_get(tarn_payload_get(m->r->L, x->payload)->tensor, 0);
  return typed(tarn_dtype_is_float(dt) ? tarn_fx_const(m->r->L, dt, v.d)
                                       : tarn_fx_iconst(m->r->L, dt, v.i),
               dt);
}

static value name_value(const maker *m, const tc_expr *e) {
  const tc_index *x = tc_index_of(m->r, e->name);
  if (x) return index_value(m, (uint32_t)(x - m->r->index));
  const tc_var *v = tc_find(m->r, e->name);
  return v->what == TC_SIZE ? integer(tc_number(m->r, e)) : scalar_value(m, e, v->t);
}

/* ---------------------------------------------------------------- subscripts of subscripts */

static void add_index(const maker *m, tc_body *b, uint32_t index) {
  if (place_of(b, index) < b->n) return;
  b->dim[b->n] = m->r->index[index].hi - m->r->index[index].lo;
  b->index[b->n++] = index;
  b->ns = b->n;
}

static void indices_of(const maker *m, const tc_expr *e, tc_body *b) {
  const tc_index *x = e->kind == TC_NAME ? tc_index_of(m->r, e->name) : NULL;
  if (x) add_index(m, b, (uint32_t)(x - m->r->index));
  for (uint32_t i = 0; i < e->n; i++) indices_of(m, e->kid[i], b);
}

static uint32_t fx2(const maker *m, tarn_fxop op, uint32_t a, uint32_t b) {
  return tarn_fx_op(m->r->L, op, a, b, TARN_NONE);
}

/* An index that counts from the end where it is negative, and whether it lies in the extent. */
static uint32_t wrapped(const maker *m, uint32_t x, int64_t extent, uint32_t *inside) {
  tarn_lang *L = m->r->L;
  uint32_t zero = tarn_fx_iconst(L, TARN_I64, 0), n = tarn_fx_iconst(L, TARN_I64, extent);
  uint32_t at =
      tarn_fx_op(L, TARN_FX_SEL, fx2(m, TARN_FX_LT, x, zero), fx2(m, TARN_FX_ADD, x, n), x);
  uint32_t in = fx2(m, TARN_FX_AND, fx2(m, TARN_FX_LE, zero, at), fx2(m, TARN_FX_LT, at, n));
  *inside = *inside == TARN_NONE ? in : fx2(m, TARN_FX_AND, *inside, in);
  return at;
}

/* The subscripts that depend on data, as one index into the dims they are of, taken together. */
static tarn_term gather_index(const maker *m, const tc_expr *e, const tc_sum *sum,
                              const int64_t *dim, tc_body *over) {
  tarn_lang *L = m->r->L;
  maker inner = {m->r, over};
  uint32_t at = TARN_NONE, inside = TARN_NONE, axes = 0;
  int64_t all = 1;
  for (uint32_t d = 0; d < e->n; d++) axes += sum[d].data;
  for (uint32_t d = 0; d < e->n; d++) {
    if (!sum[d].data) continue;
    value v = settled(m, value_of(&inner, e->kid[d]));
    if (tarn_dtype_is_float(v.type) || v.type == TARN_BOOL)
      tc_bad(m->r->text, e->kid[d]->at, "a subscript is a whole number, not %s",
             tarn_dtype_name(v.type));
    over->type = axes == 1 ? v.type : TARN_I64;
    uint32_t x = as(m, v, over->type).fx;
    if (axes > 1) x = wrapped(m, x, dim[d], &inside);
    uint32_t step = tarn_fx_iconst(L, over->type, dim[d]);
    at = at == TARN_NONE ? x : fx2(m, TARN_FX_ADD, fx2(m, TARN_FX_MUL, at, step), x);
    all *= dim[d];
  }
  over->fx =
      axes == 1 ? at : tarn_fx_op(L, TARN_FX_SEL, inside, at, tarn_fx_iconst(L, TARN_I64, all));
  if (!over->operand.n) tc_operand(m->r, over, tarn_scalar(L, TARN_I32, 0));
  return tarn_compute(L, tarn_fn_map(L, over->fx, over->operand.n), over->operand.p,
                      over->operand.n);
}

/* Dims that data index become one, where the first of them is. */
static tarn_term gathered_at(const maker *m, tarn_term t, const tc_sum *sum, uint32_t axis) {
  const tarn_type ty = *tarn_term_type(m->r->L, t);
  uint32_t p[TARN_MAX_DIMS], k = 0, n = 0;
  int64_t dim[TARN_MAX_DIMS], all = 1;
  for (uint32_t d = 0; d < axis; d++) dim[n++] = ty.dim[d], p[k++] = d;
  for (uint32_t d = axis; d < ty.n; d++)
    if (sum[d].data) all *= ty.dim[d], p[k++] = d;
  dim[n++] = all;
  for (uint32_t d = axis; d < ty.n; d++)
    if (!sum[d].data) dim[n++] = ty.dim[d], p[k++] = d;
  if (n == ty.n) return t;
  return tarn_reshape_all(m->r->L, n, n, dim, tarn_transpose(m->r->L, p, t));
}
static void kept_dims(const maker *m, const tc_sum *sum, uint32_t from, uint32_t to,
                      tarn_imap *map) {
  for (uint32_t d = from; d < to; d++)
    if (!sum[d].data) map->e[map->nin++] = sum_ix(m, &sum[d]);
}

/* The table is gathered over the indices of the subscripts that depend on data; what is read of the
 * result is a view like any other. */
static tarn_term gathered(const maker *m, const tc_expr *e, tarn_term t, const tc_sum *sum) {
  tarn_lang *L = m->r->L;
  const tarn_type ty = *tarn_term_type(L, t);
  tc_body over = {0};
  tarn_imap map = map_over(m->b);
  uint32_t axis = 0, ndata = 0;
  while (!sum[axis].data) axis++;
  for (uint32_t d = axis; d < ty.n; d++)
    if (sum[d].data) indices_of(m, e->kid[d], &over), ndata++;
  if (ty.n - ndata + over.n > TARN_MAX_DIMS)
    tc_bad(m->r->text, e->at, "this read has more than %d dims", TARN_MAX_DIMS);
  kept_dims(m, sum, 0, axis, &map);
  for (uint32_t d = 0; d < over.n; d++)
    map.e[map.nin++] = tarn_ix_var(L, place_of(m->b, over.index[d]), map.dim);
  kept_dims(m, sum, axis, ty.n, &map);
  const tarn_term kids[] = {gathered_at(m, t, sum, axis), gather_index(m, e, sum, ty.dim, &over)};
  uint32_t payload = tarn_payload_ints(L, 1, &(int64_t){axis});
  tarn_term g = tarn_mk(L, TARN_OP_GATHER, payload, kids, 2);
  memcpy(map.in, tarn_term_type(L, g)->dim, map.nin * sizeof *map.in);
  return tarn_view(L, tarn_map_intern(L, &map), g);
}

static tarn_term affine_view(const maker *m, tarn_term t, const tc_sum *sum) {
  const tarn_type *ty = tarn_term_type(m->r->L, t);
  tarn_imap map = map_over(m->b);
  map.nin = ty->n;
  memcpy(map.in, ty->dim, ty->n * sizeof *map.in);
  for (uint32_t d = 0; d < map.nin; d++) map.e[d] = sum_ix(m, &sum[d]);
  return tarn_view(m->r->L, tarn_map_intern(m->r->L, &map), t);
}

static value read_value(const maker *m, const tc_expr *e, tarn_term t) {
  tc_sum sum[TARN_MAX_DIMS];
  bool data = false;
  tarn_dtype type = tarn_term_type(m->r->L, t)->dtype;
  if (!e->n) return scalar_value(m, e, t);
  if (e->n != tarn_term_type(m->r->L, t)->n)
    tc_bad(m->r->text, e->at, "%s has no dims, %u subscripts are given", e->name, e->n);
  for (uint32_t d = 0; d < e->n; d++) {
    sum[d] = tc_subscript(m->r, e->kid[d]);
    data |= sum[d].data;
  }
  return operand(m, data ? gathered(m, e, t, sum) : affine_view(m, t, sum), type);
}

/* ---------------------------------------------------------------- the whole */

static value value_of(const maker *m, const tc_expr *e) {
  const tc_var *v = e->kind == TC_APPLY ? tc_find(m->r, e->name) : NULL;
  switch (e->kind) {
  case TC_INT: return integer(e->i);
  case TC_REAL: return real(e->r);
  case TC_NAME: return name_value(m, e);
  case TC_EXTENT: return integer(tc_number(m->r, e));
  case TC_OP: return operation(m, e);
  default: break;
  }
  if (v && v->what == TC_SIZE) tc_bad(m->r->text, e->at, "%s is a size, not a tensor", e->name);
  return v ? read_value(m, e, v->t) : called(m, e);
}

tc_body tc_value(tc_run *r, const tc_expr *e) {
  tc_body b = {0};
  for (uint32_t i = 0; i < r->nindex; i++) {
    b.index[b.n] = i;
    b.dim[b.n++] = r->index[i].hi - r->index[i].lo;
    b.ns += r->index[i].left;
  }
  maker m = {r, &b};
  value v = settled(&m, value_of(&m, e));
  b.fx = v.fx;
  b.type = v.type;
  return b;
}

void tc_cast(const tc_run *r, tc_body *b, tarn_dtype t) {
  if (b->type != t) b->fx = tarn_fx_cast(r->L, t, b->fx);
  b->type = t;
}
