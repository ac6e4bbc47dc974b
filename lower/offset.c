/* Offsets of elements from index expressions: a number, what counters add, and what differs from
 * lane to lane, apart from one another as long as they can be. */
#include "lower/access.h"

static LLVMValueRef number(LLVMTypeRef t, int64_t v) {
  return LLVMConstInt(t, (unsigned long long)v, true);
}
static LLVMValueRef plus(low_fn *E, LLVMValueRef a, LLVMValueRef b) {
  return a && b ? LLVMBuildNSWAdd(E->M->b, a, b, "") : a ? a : b;
}
static LLVMValueRef times(low_fn *E, LLVMValueRef a, int64_t k) {
  return k == 1 ? a : LLVMBuildNSWMul(E->M->b, a, number(LLVMTypeOf(a), k), "");
}
LLVMValueRef low_widened(const low_module *M, LLVMValueRef index) {
  return LLVMBuildSExtOrBitCast(M->b, index, low_vec(M->i64, low_lanes_of(index)), "");
}
static LLVMTypeRef type_of(const low_fn *E, const low_off *o) {
  if (o->v) return LLVMTypeOf(o->v);
  return o->vec ? LLVMGetElementType(LLVMTypeOf(o->vec)) : E->M->index;
}
static LLVMValueRef lanes_of(LLVMTypeRef t, int64_t start, int64_t step, uint32_t n) {
  LLVMValueRef v[256];
  for (uint32_t i = 0; i < n; i++) v[i] = number(t, start + (int64_t)i * step);
  return LLVMConstVector(v, n);
}

LLVMValueRef low_off_scalar(low_fn *E, const low_off *o) {
  LLVMValueRef c = number(type_of(E, o), o->c);
  return !o->v ? c : o->c ? LLVMBuildNSWAdd(E->M->b, o->v, c, "") : o->v;
}
static LLVMValueRef rows_of(low_fn *E, LLVMTypeRef t, const low_off *o) {
  LLVMValueRef v[256];
  for (uint32_t i = 0; i < E->lanes; i++)
    v[i] = number(t, o->c + (int64_t)(i % E->row) * o->stride + (int64_t)(i / E->row) * o->rows);
  return LLVMConstVector(v, E->lanes);
}
/* Lanes of rows that do not follow one another have an offset each. */
low_off low_even(low_fn *E, low_off o) {
  if (!E->row || o.rows == o.stride * (int64_t)E->row) return o;
  LLVMValueRef v = rows_of(E, type_of(E, &o), &(low_off){.stride = o.stride, .rows = o.rows});
  o.vec = o.vec ? LLVMBuildNSWAdd(E->M->b, o.vec, v, "") : v;
  o.stride = o.rows = 0;
  return o;
}
LLVMValueRef low_off_vector(low_fn *E, const low_off *o) {
  low_module *M = E->M;
  LLVMTypeRef t = type_of(E, o);
  LLVMValueRef r = E->row ? rows_of(E, t, o) : lanes_of(t, o->c, o->stride, E->lanes);
  if (o->v) r = LLVMBuildNSWAdd(M->b, low_splat(M, o->v, E->lanes), r, "");
  return o->vec ? LLVMBuildNSWAdd(M->b, r, o->vec, "") : r;
}
void low_off_add(low_fn *E, low_off *to, int64_t k, const low_off *x) {
  to->c += k * x->c, to->stride += k * x->stride, to->rows += k * x->rows;
  if (x->v) to->v = plus(E, to->v, times(E, x->v, k));
  if (!x->vec) return;
  LLVMValueRef by = lanes_of(LLVMGetElementType(LLVMTypeOf(x->vec)), k, 0, E->lanes);
  to->vec = plus(E, to->vec, k == 1 ? x->vec : LLVMBuildNSWMul(E->M->b, x->vec, by, ""));
}
void low_off_add_wide(low_fn *E, low_off *to, int64_t k, low_off x) {
  if (x.v) x.v = low_widened(E->M, x.v);
  if (x.vec) x.vec = low_widened(E->M, x.vec);
  low_off_add(E, to, k, &x);
}

void low_range(const low_fn *E, const tarn_plan_lin *a, int64_t *lo, int64_t *hi) {
  tarn_plan_range(E->space, E->env, a, lo, hi);
}

/* floor(x / d) or x mod d, x a number or lanes of them that are at least lo. Unsigned division
 * after a shift by a multiple. */
static LLVMValueRef divide(low_fn *E, tarn_atom_kind kind, LLVMValueRef x, int64_t lo, int64_t d) {
  LLVMBuilderRef b = E->M->b;
  uint32_t n = low_lanes_of(x);
  int64_t shift = lo < 0 ? -tarn_floordiv(lo, d) : 0;
  LLVMValueRef by = low_splat(E->M, low_index(E->M, d), n);
  if (shift) x = LLVMBuildNSWAdd(b, x, low_splat(E->M, low_index(E->M, shift * d), n), "");
  if (kind == TARN_IX_MOD) return LLVMBuildURem(b, x, by, "");
  x = LLVMBuildUDiv(b, x, by, "");
  return shift ? LLVMBuildNSWSub(b, x, low_splat(E->M, low_index(E->M, shift), n), "") : x;
}

low_off low_atom(low_fn *E, const tarn_plan_term *t) {
  low_off r = {0};
  if (t->kind == TARN_IX_VAR) {
    const tarn_plan_at *e = &E->env[t->var];
    if (e->kind == TARN_PLAN_UNSET)
      tarn_raise(E->M->cx, TARN_INTERNAL, "lower: a level is read outside of its loop");
    if (e->kind == TARN_PLAN_NUMBER) r.c = e->c;
    else if (e->kind == TARN_PLAN_COUNTER) r.v = E->counter[t->var];
    else if (e->lo > 1) r.rows = 1;
    else r.stride = 1;
    return r;
  }
  low_off a = low_eval(E, t->arg);
  int64_t lo, hi;
  low_range(E, t->arg, &lo, &hi);
  if (tarn_floordiv(lo, t->by) == tarn_floordiv(hi, t->by)) {
    int64_t q = tarn_floordiv(lo, t->by);
    if (t->kind == TARN_IX_DIV) return (low_off){.c = q};
    a.c -= q * t->by;
    return a;
  }
  if (a.vec || a.stride || a.rows) r.vec = divide(E, t->kind, low_off_vector(E, &a), lo, t->by);
  else r.v = divide(E, t->kind, low_off_scalar(E, &a), lo, t->by);
  return r;
}

low_off low_eval(low_fn *E, const tarn_plan_lin *a) {
  low_off r = {.c = a->c};
  for (uint32_t i = 0; i < a->n; i++) {
    low_off x = low_atom(E, &a->t[i]);
    low_off_add(E, &r, a->t[i].coef, &x);
  }
  return low_even(E, r);
}
low_off low_offset(low_fn *E, const tarn_plan_lin *a) {
  low_off r = {.c = a->c};
  for (uint32_t i = 0; i < a->n; i++) {
    low_off x = low_atom(E, &a->t[i]);
    low_off_add_wide(E, &r, a->t[i].coef, x);
  }
  return low_even(E, r);
}
