/* Rules of egglog's language for the engine. A rule that only makes a term equal to another, both
 * of constructors, is one of the engine's own; another one is applied by a function. */
#include "lab/egg.h"
#include <string.h>

/* ---- by a function ---- */
typedef struct applying {
  egg_rule *r;
  const tarn_eg_match *m;
  int changes;
} applying;
static void apply_raises(tarn_ctx *cx, void *arg) {
  applying *k = arg;
  egg_rule *r = k->r;
  (void)cx;
  if (!egg_query_slots(&r->q, k->m, r->q.slot)) return;
  for (uint32_t i = 0; i < r->action.n; i++)
    egg_act_on(r->q.E, &r->action.p[i], r->q.slot, r->number, &k->changes);
}
static int apply(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result) {
  applying k = {user, m, 0};
  tarn_egg *E = k.r->q.E;
  (void)g, (void)result;
  tarn_status st = tarn_protect(E->cx, apply_raises, &k);
  if (st) E->failed = st;
  return st ? -1 : k.changes;
}
typedef struct holding {
  const egg_query *q;
  const tarn_eg_match *m;
  bool holds;
} holding;
static void hold_raises(tarn_ctx *cx, void *arg) {
  holding *k = arg;
  (void)cx;
  k->holds = egg_query_slots(k->q, k->m, k->q->slot);
}
static bool holds(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  holding k = {&((const egg_rule *)user)->q, m, false};
  (void)g;
  tarn_status st = tarn_protect(k.q->E->cx, hold_raises, &k);
  if (st) k.q->E->failed = st;
  return !st && k.holds;
}

/* ---- by the engine ---- */
static bool is_plain(const egg_query *q, const egg_expr *x) {
  if (x->kind == EX_LITERAL) return true;
  if (x->kind == EX_VAR) {
    egg_ref r = egg_ref_of(q, x->var);
    return r.var == TARN_NONE || q->engine.p[r.var] < q->n_engine;
  }
  bool plain = x->kind == EX_CALL && x->decl->kind == EGG_CONSTRUCTOR;
  for (uint32_t i = 0; plain && i < x->n; i++) plain = is_plain(q, x->kid[i]);
  return plain;
}
static const tarn_eg_pat *pattern(const egg_query *q, const egg_expr *x) {
  if (x->kind == EX_LITERAL) return egg_pattern_ref(q, (egg_ref){TARN_NONE, x->value});
  if (x->kind == EX_VAR) return egg_pattern_ref(q, (egg_ref){x->var, TARN_NONE});
  const tarn_eg_pat **kid = TARN_ARRAY(q->E->cx, const tarn_eg_pat *, x->n + 1);
  for (uint32_t i = 0; i < x->n; i++) kid[i] = pattern(q, x->kid[i]);
  tarn_eg_pat *p = TARN_NEW(q->E->cx, tarn_eg_pat);
  *p = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE,
                     .var = TARN_NONE,
                     .op_how = TARN_EG_EXACT,
                     .op = x->decl->op,
                     .payload_how = TARN_EG_EXACT,
                     .kids = kid,
                     .n = x->n};
  return p;
}
/* (union VAR TERM), alone: the right side; else NULL. */
static tarn_eg_root *plain_right(const egg_rule *r) {
  if (r->action.n != 1 || r->action.p[0].act != ACT_UNION) return NULL;
  const egg_action *a = &r->action.p[0];
  if (a->a->kind != EX_VAR || !is_plain(&r->q, a->a) || !is_plain(&r->q, a->b)) return NULL;
  tarn_eg_root *root = TARN_NEW(r->q.E->cx, tarn_eg_root);
  root->var = r->q.engine.p[egg_ref_of(&r->q, a->a->var).var];
  root->pat = pattern(&r->q, a->b);
  return root;
}
void egg_rule_add(tarn_egg *E, egg_rule *r) {
  tarn_eg_condition when = {.holds = holds, .user = r};
  tarn_eg_root *right = plain_right(r);
  tarn_eg_rule e = {.name = r->name, .id = E->rule.n};
  e.lhs = egg_query_roots(&r->q, &e.n_lhs);
  if (r->action.n && r->q.slot) /* variables of (let …) in actions */
    r->q.slot = TARN_ARRAY(E->cx, uint32_t, r->q.vars.name.n + 1);
  if (right) {
    e.rhs = right, e.n_rhs = 1;
    if (r->q.step.n) e.conditions = &when, e.n_conditions = 1;
  } else {
    e.apply = apply, e.user = r;
  }
  r->number = tarn_eg_rules_add(E->rules, &e);
  if (r->number == TARN_NONE) egg_rules_failed(E, E->rules, r->at);
  tarn_push(E->cx, &E->rule, r);
}
