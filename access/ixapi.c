/* access: the public functions on index expressions, over the linear forms of ix.c. */
#include "access/ix.h"

void tarn_ix_mark_term(const tarn_lang *L, const tarn_ixterm *t, bool *used) {
  if (t->kind == TARN_IX_VAR) used[t->arg] = true;
  else tarn_ix_mark(L, t->arg, used);
}
void tarn_ix_mark(const tarn_lang *L, uint32_t a, bool *used) {
  const tarn_ix *x = tarn_ix_get(L, a);
  for (uint32_t i = 0; i < x->n; i++) tarn_ix_mark_term(L, &x->t[i], used);
}

/* extent is read only for the dims that the expressions use. */
static void box_for(const tarn_lang *L, tarn_box *b, uint32_t e1, uint32_t e2,
                    const int64_t *extent) {
  bool used[TARN_MAX_DIMS] = {0};
  *b = (tarn_box){0};
  tarn_ix_mark(L, e1, used);
  if (e2 != TARN_NONE) tarn_ix_mark(L, e2, used);
  for (uint32_t i = 0; i < TARN_MAX_DIMS; i++)
    if (used[i]) b->hi[i] = extent[i] > 1 ? extent[i] - 1 : 0;
}

uint32_t tarn_ix_const(tarn_lang *L, int64_t c) {
  return tarn_lin_intern(L, &(tarn_lin){.c = c}, &(tarn_box){0});
}

uint32_t tarn_ix_var(tarn_lang *L, uint32_t i, const int64_t *extent) {
  tarn_lin a = {0};
  tarn_box box = {0};
  if (i >= TARN_MAX_DIMS) tarn_raise(L->cx, TARN_BAD_INPUT, "index map: dim %u is too high", i);
  box.hi[i] = extent[i] > 1 ? extent[i] - 1 : 0;
  tarn_lin_var(L, &a, 1, i, &box);
  return tarn_lin_intern(L, &a, &box);
}

uint32_t tarn_ix_add(tarn_lang *L, uint32_t a, uint32_t b, const int64_t *extent) {
  tarn_lin r = {0};
  tarn_box box;
  box_for(L, &box, a, b, extent);
  tarn_lin_ix(L, &r, 1, a, NULL, &box);
  tarn_lin_ix(L, &r, 1, b, NULL, &box);
  return tarn_lin_intern(L, &r, &box);
}

uint32_t tarn_ix_scale(tarn_lang *L, uint32_t a, int64_t k, const int64_t *extent) {
  tarn_lin r = {0};
  tarn_box box;
  box_for(L, &box, a, TARN_NONE, extent);
  tarn_lin_ix(L, &r, k, a, NULL, &box);
  return tarn_lin_intern(L, &r, &box);
}

static uint32_t divmod(tarn_lang *L, uint32_t a, int64_t d, const int64_t *extent, bool mod) {
  tarn_lin r = {0}, num = {0};
  tarn_box box;
  if (d <= 0) tarn_raise(L->cx, TARN_BAD_INPUT, "index map: division by %lld", (long long)d);
  box_for(L, &box, a, TARN_NONE, extent);
  tarn_lin_ix(L, &num, 1, a, NULL, &box);
  (mod ? tarn_lin_mod : tarn_lin_div)(L, &r, 1, &num, d, &box);
  return tarn_lin_intern(L, &r, &box);
}

uint32_t tarn_ix_div(tarn_lang *L, uint32_t a, int64_t d, const int64_t *extent) {
  return divmod(L, a, d, extent, false);
}

uint32_t tarn_ix_mod(tarn_lang *L, uint32_t a, int64_t d, const int64_t *extent) {
  return divmod(L, a, d, extent, true);
}

void tarn_ix_range(const tarn_lang *L, uint32_t a, const int64_t *extent, int64_t *lo,
                   int64_t *hi) {
  tarn_box box;
  box_for(L, &box, a, TARN_NONE, extent);
  tarn_ix_range_in(L, a, &box, 0, lo, hi);
}

int64_t tarn_ix_eval_term(const tarn_lang *L, const tarn_ixterm *t, const int64_t *dims) {
  int64_t u = t->kind == TARN_IX_VAR ? dims[t->arg] : tarn_ix_eval(L, t->arg, dims);
  if (t->kind == TARN_IX_DIV) u = tarn_floordiv(u, t->by);
  if (t->kind == TARN_IX_MOD) u = tarn_floormod(u, t->by);
  return t->coef * u;
}
int64_t tarn_ix_eval(const tarn_lang *L, uint32_t a, const int64_t *dims) {
  const tarn_ix *x = tarn_ix_get(L, a);
  int64_t v = x->c;
  for (uint32_t i = 0; i < x->n; i++) v += tarn_ix_eval_term(L, &x->t[i], dims);
  return v;
}

uint32_t tarn_ix_subst(tarn_lang *L, uint32_t a, const uint32_t *sub, const int64_t *new_extent) {
  tarn_lin with[TARN_MAX_DIMS], r = {0};
  bool used[TARN_MAX_DIMS] = {0}, inner[TARN_MAX_DIMS] = {0};
  tarn_box box = {0};
  tarn_ix_mark(L, a, used);
  for (uint32_t i = 0; i < TARN_MAX_DIMS; i++)
    if (used[i]) tarn_ix_mark(L, sub[i], inner);
  for (uint32_t i = 0; i < TARN_MAX_DIMS; i++)
    if (inner[i]) box.hi[i] = new_extent[i] > 1 ? new_extent[i] - 1 : 0;
  for (uint32_t i = 0; i < TARN_MAX_DIMS; i++) {
    with[i].c = 0, with[i].n = 0;
    if (used[i]) tarn_lin_ix(L, &with[i], 1, sub[i], NULL, &box);
  }
  tarn_lin_ix(L, &r, 1, a, with, &box);
  return tarn_lin_intern(L, &r, &box);
}

bool tarn_ix_affine(const tarn_lang *L, uint32_t a) {
  const tarn_ix *x = tarn_ix_get(L, a);
  for (uint32_t i = 0; i < x->n; i++)
    if (x->t[i].kind != TARN_IX_VAR) return false;
  return true;
}

uint32_t tarn_ix_dims(const tarn_lang *L, uint32_t a) {
  const tarn_ix *x = tarn_ix_get(L, a);
  uint32_t set = 0;
  for (uint32_t i = 0; i < x->n; i++)
    set |= x->t[i].kind == TARN_IX_VAR ? 1u << x->t[i].arg : tarn_ix_dims(L, x->t[i].arg);
  return set;
}
int64_t tarn_ix_coef(const tarn_lang *L, uint32_t a, uint32_t dim) {
  const tarn_ix *x = tarn_ix_get(L, a);
  for (uint32_t i = 0; i < x->n; i++)
    if (x->t[i].kind == TARN_IX_VAR && x->t[i].arg == dim) return x->t[i].coef;
  return 0;
}
