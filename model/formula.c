/* Formulas: scalar expressions as text with parameters, for the tables of elementwise operators. */
#include "access/fx_internal.h"
#include "model/import.h"
#include <string.h>

typedef struct formula {
  const im_node *n;
  tarn_dtype t;
  const im_param *param;
  uint32_t nparam;
} formula;

/* Derived comparisons: op of fx.def, operands swapped, result negated. */
static const struct {
  const char *name;
  tarn_fxop op;
  bool swap, negate;
} derived[] = {{"gt", TARN_FX_LT, true, false},
               {"ge", TARN_FX_LE, true, false},
               {"ne", TARN_FX_EQ, false, true}};

static uint32_t build(const formula *f, const tarn_sx *s);

_Noreturn static void wrong(const formula *f, const tarn_sx *s) {
  tarn_raise(f->n->cx, TARN_INTERNAL, "formula: '%s' is not understood", s->text);
}

static uint32_t literal(const formula *f, double r, int64_t i) {
  return tarn_dtype_is_float(f->t) ? tarn_fx_const(f->n->L, f->t, r)
                                   : tarn_fx_iconst(f->n->L, f->t, i);
}

static uint32_t atom(const formula *f, const tarn_sx *s) {
  if (s->text[0] == '$' && s->text[1] >= '0' && s->text[1] <= '9' && !s->text[2])
    return tarn_fx_hole(f->n->L, (uint32_t)(s->text[1] - '0'));
  if (strcmp(s->text, "false") == 0 || strcmp(s->text, "true") == 0)
    return tarn_fx_iconst(f->n->L, TARN_BOOL, s->text[0] == 't');
  for (uint32_t i = 0; i < f->nparam; i++)
    if (strcmp(f->param[i].name, s->text) == 0) return literal(f, f->param[i].r, f->param[i].i);
  wrong(f, s);
}

static uint32_t cast(const formula *f, const tarn_sx *s) {
  tarn_dtype to = f->t;
  if (!tarn_sx_atom_is(s->kid[1], "T") && !tarn_dtype_parse(s->kid[1]->text, &to))
    wrong(f, s->kid[1]);
  return tarn_fx_cast(f->n->L, to, build(f, s->kid[2]));
}

static uint32_t list(const formula *f, const tarn_sx *s) {
  if (s->n == 3 && tarn_sx_is(s, "cast")) return cast(f, s);
  uint32_t kid[3] = {TARN_NONE, TARN_NONE, TARN_NONE};
  if (s->n < 2 || s->n > 4) wrong(f, s);
  for (uint32_t i = 1; i < s->n; i++) kid[i - 1] = build(f, s->kid[i]);
  for (size_t i = 0; i < sizeof derived / sizeof *derived && s->n == 3; i++)
    if (tarn_sx_is(s, derived[i].name)) {
      uint32_t r = tarn_fx_op(f->n->L, derived[i].op, kid[derived[i].swap], kid[!derived[i].swap],
                              TARN_NONE);
      return derived[i].negate ? tarn_fx_op(f->n->L, TARN_FX_NOT, r, TARN_NONE, TARN_NONE) : r;
    }
  uint32_t op = tarn_fx_find(s->kid[0]->text);
  if (op != TARN_NONE && tarn_fx_arity(op) == s->n - 1)
    return tarn_fx_op(f->n->L, (tarn_fxop)op, kid[0], kid[1], kid[2]);
  wrong(f, s->kid[0]);
}

static uint32_t build(const formula *f, const tarn_sx *s) {
  switch (s->kind) {
  case TARN_SX_LIST: return list(f, s);
  case TARN_SX_INT: return literal(f, s->r, s->i);
  case TARN_SX_REAL: return literal(f, s->r, (int64_t)s->r);
  default: return atom(f, s);
  }
}

uint32_t im_formula(const im_node *n, const char *text, tarn_dtype t, const im_param *param,
                    uint32_t nparam) {
  const tarn_sx *s = tarn_sx_read(n->cx, text, strlen(text), "formula");
  formula f = {n, t, param, nparam};
  return build(&f, s->kid[0]);
}
