/* Rules of a free set with a meaning: patterns and conditions over values. */
#include "lab/free.h"
#include "access/fx_internal.h"
#include "lab/meaning.h"
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- patterns */

static const char *symbol_name(const tarn_ruleset *rs, uint32_t op) {
  size_t n;
  const char *s = tarn_intern_key(free_of(rs)->symbol, op, &n);
  return tarn_strndup(rs->cx, s, n);
}
static bool apply_term(tarn_ruleset *rs, const rpat *p, mterm *t, const char **why) {
  const char *name = symbol_name(rs, p->op);
  t->kind = MT_CONST;
  if (p->n == 0 && meaning_number(free_of(rs)->meaning, name, &t->value)) return true;
  t->kind = MT_APPLY, t->def = meaning_find(free_of(rs)->meaning, name), t->n = p->n;
  t->kid = TARN_ARRAY(rs->cx, mterm *, p->n + 1);
  *why = NULL;
  if (!t->def || t->def->predicate) *why = tarn_format(rs->cx, "%s has no meaning", name);
  else if (t->def->arity != p->n)
    *why = tarn_format(rs->cx, "%s has a meaning for %u operands", name, t->def->arity);
  for (uint32_t i = 0; i < p->n && !*why; i++) t->kid[i] = mterm_make(rs, p->kid[i], why);
  return !*why;
}
mterm *mterm_make(tarn_ruleset *rs, const rpat *p, const char **why) {
  mterm *t = TARN_NEW(rs->cx, mterm);
  if (p->kind == RP_VAR) t->kind = MT_VAR, t->var = p->var;
  else if (p->kind != RP_NODE)
    *why = p->kind == RP_SEG ? "rows of operands have no meaning"
                             : "computed operands have no meaning";
  else if (p->op == TARN_NONE) *why = "a variable operator has no meaning";
  else if (apply_term(rs, p, t, why)) return t;
  return p->kind == RP_VAR ? t : NULL;
}
mval mterm_eval(const meaning *m, const mterm *t, const mval *var) {
  mval a[3];
  if (t->kind == MT_VAR) return var[t->var];
  if (t->kind == MT_CONST) return m->prime ? m_to_prime(t->value) : t->value;
  for (uint32_t i = 0; i < t->n; i++) a[i] = mterm_eval(m, t->kid[i], var);
  return meaning_apply(m, t->def, a);
}

/* ---------------------------------------------------------------- rules */

static mroot *roots(tarn_ruleset *rs, const rroot *r, uint32_t n, const char **why) {
  mroot *q = TARN_ARRAY(rs->cx, mroot, n + 1);
  for (uint32_t i = 0; i < n && !*why; i++) q[i] = (mroot){r[i].var, mterm_make(rs, r[i].pat, why)};
  return q;
}
mrule *mrule_make(tarn_ruleset *rs, const rule *r, const char **why) {
  mrule *m = TARN_NEW(rs->cx, mrule);
  *why = NULL;
  *m = (mrule){.r = r, .nlhs = r->nlhs, .nrhs = r->nrhs, .ncond = r->ncond + r->nguard};
  m->lhs = roots(rs, r->lhs, r->nlhs, why);
  m->rhs = *why ? NULL : roots(rs, r->rhs, r->nrhs, why);
  m->cond = TARN_ARRAY(rs->cx, const mexpr *, m->ncond + 1);
  for (uint32_t i = 0; i < m->ncond && !*why; i++)
    m->cond[i] =
        meaning_condition(rs, r, (i < r->ncond ? r->cond[i] : r->guard[i - r->ncond])->at, why);
  if (r->nwhere && !*why) *why = "computed operands have no meaning";
  return *why ? NULL : m;
}

/* ---------------------------------------------------------------- conditions */

typedef struct conditions {
  tarn_ruleset *rs;
  const rule *r;
  const char *why;
} conditions;
static const mexpr *condition(conditions *c, const tarn_sx *s);

static const mexpr *leaf(conditions *c, const tarn_sx *s) {
  mexpr *e = TARN_NEW(c->rs->cx, mexpr);
  for (uint32_t i = 0; i < c->r->ncls; i++)
    if (!strcmp(c->r->cls_name[i], s->text)) return e->kind = ME_HOLE, e->hole = i, e;
  e->kind = ME_CONST;
  if (meaning_number(free_of(c->rs)->meaning, s->text, &e->value)) return e;
  c->why = tarn_format(c->rs->cx, "%s has no meaning", s->text);
  return e;
}
/* and, or: of any number of conditions. */
static const mexpr *joined(conditions *c, const tarn_sx *s, uint32_t op, uint32_t from) {
  mexpr *e = TARN_NEW(c->rs->cx, mexpr);
  const mexpr *first = condition(c, s->kid[from]);
  if (from + 1 == s->n || c->why) return first;
  *e = (mexpr){.kind = ME_OP, .op = op, .truth = true};
  e->kid[0] = (mexpr *)(uintptr_t)first;
  e->kid[1] = (mexpr *)(uintptr_t)joined(c, s, op, from + 1);
  return e;
}
static const mexpr *condition(conditions *c, const tarn_sx *s) {
  if (c->why || s->kind != TARN_SX_LIST) return leaf(c, s);
  const tarn_sx *written = free_expand(c->rs, s);
  if (written) return condition(c, written);
  const char *name = s->n ? s->kid[0]->text : "";
  uint32_t op = tarn_fx_find(name), arity = op == TARN_NONE ? 0 : tarn_fx_arity(op);
  if ((op == TARN_FX_AND || op == TARN_FX_OR) && s->n > 1) return joined(c, s, op, 1);
  mexpr *e = TARN_NEW(c->rs->cx, mexpr);
  e->truth = true, e->def = meaning_find(free_of(c->rs)->meaning, name);
  if (!strcmp(name, "constant")) return e->kind = ME_CONST, e->value = (mval){1, 1}, e;
  e->kind = e->def ? ME_CALL : ME_OP, e->op = op;
  if (s->n != 1 + (e->def ? e->def->arity : arity) || (!e->def && op == TARN_NONE))
    return c->why = tarn_format(c->rs->cx, "%s has no meaning", name), e;
  for (uint32_t i = 1; i < s->n; i++) e->kid[i - 1] = (mexpr *)(uintptr_t)condition(c, s->kid[i]);
  e->truth = e->def || tarn_fx_gives_bool(op) || (e->kid[0] && e->kid[0]->truth);
  return e;
}
const mexpr *meaning_condition(tarn_ruleset *rs, const rule *r, const tarn_sx *s,
                               const char **why) {
  conditions c = {rs, r, NULL};
  const mexpr *e = condition(&c, s);
  if (c.why) *why = c.why;
  return e;
}
