/* Rules that obviously never end: the right side holds the left side again, where a variable has
 * become something larger with itself in it, made of operators that no other rule and no analysis
 * knows, so that nothing can make it small again.
 *
 * (f ?x) => (g (f (h ?x))) alone is one. With (h (h ?x)) => ?x besides it is not; nor is (f ?x) =>
 * (f (h (f ?x))): what grows there is the class that the rule was applied to. */
#include "lab/free.h"

typedef struct growth {
  const rpat *left;
  const rpat *is[R_CLASSES]; /* what the left side's variables are in the right side */
  bool to[R_CLASSES][R_CLASSES], strict[R_CLASSES][R_CLASSES];
} growth;

static bool same(const rpat *a, const rpat *b) {
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind != RP_NODE) return a->var == b->var;
  if (a->op != b->op || a->opvar != b->opvar) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!same(a->kid[i], b->kid[i])) return false;
  return true;
}
static bool instance(growth *w, const rpat *left, const rpat *t) {
  if (left->kind == RP_VAR) {
    if (w->is[left->var]) return same(w->is[left->var], t);
    w->is[left->var] = t;
    return t->kind == RP_VAR || t->kind == RP_NODE;
  }
  if (left->kind != RP_NODE || t->kind != RP_NODE || left->op != t->op || left->op == TARN_NONE ||
      left->n != t->n)
    return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!instance(w, left->kid[i], t->kid[i])) return false;
  return true;
}
/* The left side itself is no growth: it is the class that the rule was applied to. */
static void reaches(growth *w, uint32_t from, const rpat *t, bool strict) {
  if (same(t, w->left)) return;
  if (t->kind == RP_VAR && t->var < R_CLASSES)
    w->to[from][t->var] = true, w->strict[from][t->var] |= strict;
  for (uint32_t i = 0; i < t->n; i++) reaches(w, from, t->kid[i], true);
}
/* A variable that becomes something larger with itself in it, perhaps after some rounds. */
static uint32_t grows(growth *w) {
  for (uint32_t v = 0; v < R_CLASSES; v++)
    if (w->is[v]) reaches(w, v, w->is[v], false);
  for (uint32_t k = 0; k < R_CLASSES; k++)
    for (uint32_t i = 0; i < R_CLASSES; i++)
      for (uint32_t j = 0; j < R_CLASSES; j++)
        if (w->to[i][k] && w->to[k][j])
          w->to[i][j] = true, w->strict[i][j] |= w->strict[i][k] || w->strict[k][j];
  for (uint32_t v = 0; v < R_CLASSES; v++)
    if (w->is[v] && w->strict[v][v]) return v;
  return TARN_NONE;
}

static bool mentions(const rpat *p, uint32_t op) {
  if (p->kind == RP_NODE && (p->op == op || p->op == TARN_NONE)) return true;
  for (uint32_t i = 0; i < p->n; i++)
    if (mentions(p->kid[i], op)) return true;
  return false;
}
static bool mentioned(const rroot *r, uint32_t n, uint32_t op) {
  for (uint32_t i = 0; i < n; i++)
    if (mentions(r[i].pat, op)) return true;
  return false;
}
static bool known(const tarn_ruleset *rs, const rule *r, uint32_t op) {
  const free_state *f = free_of(rs);
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *q = rs->rule.p[i];
    if (mentioned(q->lhs, q->nlhs, op) || (q != r && mentioned(q->rhs, q->nrhs, op))) return true;
  }
  for (uint32_t a = 0; a < f->analysis.n; a++)
    if (tarn_map_get(f->first[a], op)) return true;
  return false;
}
static bool all_unknown(const tarn_ruleset *rs, const rule *r, const rpat *t) {
  if (t->kind == RP_NODE && (t->op == TARN_NONE || known(rs, r, t->op))) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!all_unknown(rs, r, t->kid[i])) return false;
  return true;
}

static void look(const tarn_ruleset *rs, const rule *r, const rpat *t) {
  growth w = {.left = r->lhs[0].pat};
  uint32_t v = instance(&w, w.left, t) ? grows(&w) : TARN_NONE;
  bool sure = v != TARN_NONE;
  for (uint32_t i = 0; i < R_CLASSES && sure; i++) sure = !w.is[i] || all_unknown(rs, r, w.is[i]);
  if (sure) {
    tarn_buf b = {.cx = rs->cx};
    tarn_sx_print(&b, w.is[v]->at, 0);
    tarn_sx_error(rs->cx, r->at,
                  "never ends: its right side holds its left side again, where %s is %s; say "
                  ":grows true if so it shall be",
                  r->cls_name[v], b.p);
  }
  for (uint32_t i = 0; i < t->n; i++) look(rs, r, t->kid[i]);
}
void free_check_growth(const tarn_ruleset *rs, const rule *r) {
  if (r->grows || r->ncond || r->nguard || r->nlhs > 1 || r->lhs[0].pat->kind != RP_NODE) return;
  for (uint32_t i = 0; i < r->nrhs; i++) look(rs, r, r->rhs[i].pat);
}
