/* Expressions and actions of egglog's language, carried out on the graph. */
#include "lab/egg.h"
#include <string.h>

/* ---- expressions ---- */
TARN_NORETURN static void no_value(tarn_egg *E, const tarn_sx *at) {
  tarn_buf b = {.cx = E->cx};
  tarn_sx_print(&b, at, 0);
  tarn_raise(E->cx, TARN_NO, "%s:%u: %s has no value", at->file, at->line, b.p);
}
static uint32_t *classes(tarn_egg *E, const egg_expr *x, const uint32_t *slot, int *changes,
                         uint32_t *few) {
  uint32_t *kid = egg_room(E, few, x->n);
  for (uint32_t i = 0; i < x->n; i++)
    kid[i] = egg_class(E, x->kid[i]->sort, egg_eval(E, x->kid[i], slot, changes));
  return kid;
}
static uint32_t call(tarn_egg *E, const egg_expr *x, const uint32_t *slot, int *changes) {
  uint32_t few[EGG_FEW], *kid = classes(E, x, slot, changes, few), id;
  if (x->decl->kind == EGG_FUNCTION) {
    id = egg_look_up(E, x->decl, kid);
    if (id == TARN_NONE) no_value(E, x->at);
    return egg_id(E, x->decl->out, id);
  }
  uint32_t before = tarn_eg_id_count(E->g);
  id = tarn_eg_add(E->g, x->decl->op, 0, kid, x->n);
  if (id == TARN_NONE) egg_graph_failed(E);
  *changes += tarn_eg_id_count(E->g) != before;
  if (x->decl->kind == EGG_CONSTRUCTOR) return tarn_eg_find(E->g, id);
  return egg_number(E, &(egg_value){.sort = SORT_UNIT});
}
static uint32_t primitive(tarn_egg *E, const egg_expr *x, const uint32_t *slot, int *changes) {
  uint32_t few[EGG_FEW], *arg = egg_room(E, few, x->n);
  egg_value out = {.sort = x->sort};
  for (uint32_t i = 0; i < x->n; i++) arg[i] = egg_eval(E, x->kid[i], slot, changes);
  if (!egg_apply_primitive(E, x->prim, arg, x->n, &out)) no_value(E, x->at);
  return egg_number(E, &out);
}
uint32_t egg_eval(tarn_egg *E, const egg_expr *x, const uint32_t *slot, int *changes) {
  switch (x->kind) {
  case EX_LITERAL: return x->value;
  case EX_VAR: return slot[x->var];
  case EX_CALL: return call(E, x, slot, changes);
  case EX_PRIM: return primitive(E, x, slot, changes);
  default: tarn_sx_error(E->cx, x->at, "!= stands in queries only");
  }
}

/* ---- actions ---- */
static void egg_unite(tarn_egg *E, uint32_t a, uint32_t b, uint32_t rule, int *changes) {
  int u = tarn_eg_union(E->g, a, b, rule, 0);
  if (u < 0) egg_graph_failed(E);
  E->dirty |= u > 0;
  *changes += u;
}
static void subsume(tarn_egg *E, const egg_action *a, const uint32_t *kid) {
  uint32_t node = tarn_eg_lookup(E->g, a->a->decl->op, 0, kid, a->a->n);
  if (node == TARN_NONE) node = tarn_eg_add(E->g, a->a->decl->op, 0, kid, a->a->n);
  if (node == TARN_NONE) egg_graph_failed(E);
  tarn_eg_subsume(E->g, node);
}
static void on_row(tarn_egg *E, const egg_action *a, const uint32_t *slot, int *changes) {
  egg_decl *d = a->a->decl;
  uint32_t few[EGG_FEW], *kid = classes(E, a->a, slot, changes, few);
  if (a->act == ACT_SET)
    egg_set(E, d, kid, egg_class(E, d->out, egg_eval(E, a->b, slot, changes)), changes);
  else if (a->act == ACT_DELETE) egg_remove_row(E, d, kid, changes);
  else subsume(E, a, kid);
}
void egg_act_on(tarn_egg *E, const egg_action *a, uint32_t *slot, uint32_t rule, int *changes) {
  switch (a->act) {
  case ACT_EXPR: egg_eval(E, a->a, slot, changes); break;
  case ACT_LET: slot[a->var] = egg_eval(E, a->a, slot, changes); break;
  case ACT_UNION: {
    uint32_t l = egg_eval(E, a->a, slot, changes);
    egg_unite(E, l, egg_eval(E, a->b, slot, changes), rule, changes);
    break;
  }
  case ACT_PANIC: tarn_raise(E->cx, TARN_NO, "%s:%u: %s", a->at->file, a->at->line, a->text);
  default: on_row(E, a, slot, changes);
  }
}
