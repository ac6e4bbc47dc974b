/* Reading egglog's language: declarations' names, expressions and their sorts, actions. */
#include "lab/egg.h"
#include <string.h>

/* ---- names ---- */
uint32_t egg_sort_named(const tarn_egg *E, const tarn_sx *s) {
  for (uint32_t i = E->sort.n; s->kind == TARN_SX_ATOM && i-- > 0;)
    if (!strcmp(E->sort.p[i].name, s->text)) return i;
  tarn_sx_error(E->cx, s, "no sort is called %s", s->kind == TARN_SX_LIST ? "so" : s->text);
}
egg_decl *egg_decl_named(const tarn_egg *E, const char *name) {
  uint32_t id = tarn_intern_find(E->names, name, strlen(name));
  uint32_t i = id == TARN_NONE ? TARN_NONE : E->decl_of.p[id];
  if (i >= E->decl.n || strcmp(E->decl.p[i]->name, name)) return NULL; /* popped since */
  return E->decl.p[i];
}
static void note_name(tarn_egg *E, const char *name) {
  uint32_t id = tarn_intern_add(E->names, name, strlen(name));
  if (id == E->decl_of.n) tarn_push(E->cx, &E->decl_of, 0);
  E->decl_of.p[id] = E->decl.n;
}
egg_decl *egg_declare(tarn_egg *E, const tarn_sx *at, egg_kind kind, const char *name, uint32_t n,
                      const uint32_t *arg, uint32_t out) {
  if (egg_decl_named(E, name) || egg_is_primitive(name))
    tarn_sx_error(E->cx, at, "%s is declared already", name);
  egg_decl *d = TARN_NEW(E->cx, egg_decl);
  *d = (egg_decl){.name = name,
                  .kind = kind,
                  .op = OP_DECL + E->decl.n,
                  .n = n,
                  .out = out,
                  .arg = tarn_copy(E->cx, arg, n * sizeof *arg),
                  .cost = 1};
  if (kind == EGG_CONSTRUCTOR && !egg_is_term(E, out))
    tarn_sx_error(E->cx, at, "%s: a constructor makes terms, and %s is a primitive sort", name,
                  E->sort.p[out].name);
  d->moves = kind == EGG_FUNCTION && egg_is_term(E, out);
  for (uint32_t i = 0; i < n; i++) d->moves |= egg_is_term(E, arg[i]);
  note_name(E, name);
  tarn_push(E->cx, &E->decl, d);
  return d;
}
uint32_t egg_var(tarn_egg *E, egg_vars *v, const char *name, const tarn_sx *at) {
  tarn_push(E->cx, &v->name, name);
  tarn_push(E->cx, &v->sort, TARN_NONE);
  tarn_push(E->cx, &v->at, at);
  return v->name.n - 1;
}
static uint32_t var_named(const egg_vars *v, const char *name) {
  for (uint32_t i = v->name.n; i-- > 0;)
    if (!strcmp(v->name.p[i], name)) return i;
  return TARN_NONE;
}

/* ---- expressions ---- */
static egg_expr *node(tarn_egg *E, egg_expr_kind kind, const tarn_sx *at, uint32_t n) {
  egg_expr *x = TARN_NEW(E->cx, egg_expr);
  *x = (egg_expr){.kind = kind,
                  .value = TARN_NONE,
                  .var = TARN_NONE,
                  .sort = TARN_NONE,
                  .n = n,
                  .kid = TARN_ARRAY(E->cx, egg_expr *, n + 1),
                  .at = at};
  return x;
}
static egg_expr *leaf(tarn_egg *E, egg_vars *v, const tarn_sx *s) {
  egg_value lit;
  if (egg_literal(E, s, &lit)) {
    egg_expr *x = node(E, EX_LITERAL, s, 0);
    x->value = egg_number(E, &lit), x->sort = lit.sort;
    return x;
  }
  uint32_t var = var_named(v, s->text);
  egg_decl *d = var == TARN_NONE ? egg_decl_named(E, s->text) : NULL;
  if (d && d->global) {
    egg_expr *x = node(E, EX_CALL, s, 0);
    x->decl = d, x->sort = d->out;
    return x;
  }
  bool any = !strcmp(s->text, "_");
  if (var == TARN_NONE && !v->open) tarn_sx_error(E->cx, s, "%s is not bound", s->text);
  egg_expr *x = node(E, EX_VAR, s, 0);
  x->var = var == TARN_NONE || any ? egg_var(E, v, any ? "" : s->text, s) : var;
  return x;
}
static egg_expr *call(tarn_egg *E, egg_vars *v, const tarn_sx *s) {
  const tarn_sx *head = s->kid[0];
  if (head->kind != TARN_SX_ATOM) tarn_sx_error(E->cx, s, "expected the name of a function");
  egg_decl *d = egg_decl_named(E, head->text);
  bool differs = !strcmp(head->text, "!=");
  if (!d && !differs && !egg_is_primitive(head->text))
    tarn_sx_error(E->cx, s, "no function is called %s", head->text);
  egg_expr *x = node(E, d ? EX_CALL : differs ? EX_DIFFERS : EX_PRIM, s, s->n - 1);
  uint32_t want = d ? d->n : differs ? 2 : x->n;
  if (x->n != want)
    tarn_sx_error(E->cx, s, "%s takes %u arguments, not %u", head->text, want, x->n);
  x->decl = d, x->name = head->text;
  if (d) x->sort = d->kind == EGG_RELATION ? SORT_UNIT : d->out;
  if (differs) x->sort = SORT_UNIT;
  for (uint32_t i = 0; i < x->n; i++) x->kid[i] = egg_read(E, v, s->kid[i + 1]);
  return x;
}
egg_expr *egg_read(tarn_egg *E, egg_vars *v, const tarn_sx *s) {
  return s->kind == TARN_SX_LIST && s->n ? call(E, v, s) : leaf(E, v, s);
}

/* ---- sorts ---- */
TARN_NORETURN static void mismatch(const tarn_egg *E, const tarn_sx *at, uint32_t is,
                                   uint32_t wanted) {
  tarn_sx_error(E->cx, at, "this is of sort %s, and %s is expected", E->sort.p[is].name,
                E->sort.p[wanted].name);
}
static bool infer_primitive(tarn_egg *E, egg_vars *v, egg_expr *x, uint32_t wanted) {
  uint32_t *sort = TARN_ARRAY(E->cx, uint32_t, x->n + 1);
  bool learnt = false;
  for (uint32_t i = 0; i < x->n; i++) {
    learnt |= egg_infer(E, v, x->kid[i], TARN_NONE);
    sort[i] = x->kid[i]->sort;
  }
  if (x->prim) return learnt;
  x->prim = egg_primitive(E, x->name, sort, x->n, wanted, &x->sort);
  return learnt || x->prim;
}
static bool infer_differs(tarn_egg *E, egg_vars *v, egg_expr *x) {
  bool learnt = egg_infer(E, v, x->kid[0], x->kid[1]->sort);
  return egg_infer(E, v, x->kid[1], x->kid[0]->sort) || learnt;
}
bool egg_infer(tarn_egg *E, egg_vars *v, egg_expr *x, uint32_t wanted) {
  bool learnt = false;
  if (x->kind == EX_VAR) {
    uint32_t *sort = &v->sort.p[x->var];
    if (*sort == TARN_NONE && wanted != TARN_NONE) *sort = wanted, learnt = true;
    x->sort = *sort;
  }
  if (x->kind == EX_CALL)
    for (uint32_t i = 0; i < x->n; i++) learnt |= egg_infer(E, v, x->kid[i], x->decl->arg[i]);
  if (x->kind == EX_PRIM) learnt |= infer_primitive(E, v, x, wanted);
  if (x->kind == EX_DIFFERS) learnt |= infer_differs(E, v, x);
  if (wanted != TARN_NONE && x->sort != TARN_NONE && x->sort != wanted)
    mismatch(E, x->at, x->sort, wanted);
  return learnt;
}
static void sorts_of(const tarn_egg *E, const egg_expr *x, tarn_buf *b) {
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t s = x->kid[i]->sort;
    tarn_buf_fmt(b, " %s", s == TARN_NONE ? "?" : E->sort.p[s].name);
  }
}
void egg_check_typed(tarn_egg *E, const egg_vars *v, const egg_expr *x) {
  for (uint32_t i = 0; i < x->n; i++) egg_check_typed(E, v, x->kid[i]);
  if (x->kind == EX_PRIM && !x->prim) {
    tarn_buf b = {.cx = E->cx};
    sorts_of(E, x, &b);
    tarn_sx_error(E->cx, x->at, "no primitive (%s%s)", x->name, b.p ? b.p : "");
  }
  if (x->sort == TARN_NONE) tarn_sx_error(E->cx, x->at, "the sort of %s is not known", x->at->text);
}
egg_expr *egg_read_typed(tarn_egg *E, egg_vars *v, const tarn_sx *s, uint32_t wanted) {
  egg_expr *x = egg_read(E, v, s);
  while (egg_infer(E, v, x, wanted)) {}
  egg_check_typed(E, v, x);
  return x;
}

/* ---- actions ---- */
static egg_decl *head_of(tarn_egg *E, const tarn_sx *s, egg_kind kind, const char *what) {
  egg_decl *d = s->kind == TARN_SX_LIST && s->n && s->kid[0]->kind == TARN_SX_ATOM
                    ? egg_decl_named(E, s->kid[0]->text)
                    : NULL;
  if (!d) tarn_sx_error(E->cx, s, "expected a row of a table");
  if (kind == EGG_FUNCTION && d->kind != kind) tarn_sx_error(E->cx, s, "%s", what);
  if (kind == EGG_CONSTRUCTOR && d->kind == EGG_FUNCTION) tarn_sx_error(E->cx, s, "%s", what);
  return d;
}
static void need(tarn_egg *E, const tarn_sx *s, uint32_t n, const char *form) {
  if (s->n != n) tarn_sx_error(E->cx, s, "expected %s", form);
}
static void read_let(tarn_egg *E, egg_vars *v, const tarn_sx *s, egg_action *a) {
  need(E, s, 3, "(let NAME VALUE)");
  const char *name = tarn_sx_kid(E->cx, s, 1, TARN_SX_ATOM, "a name")->text;
  if (var_named(v, name) != TARN_NONE) tarn_sx_error(E->cx, s, "%s is bound already", name);
  a->a = egg_read_typed(E, v, s->kid[2], TARN_NONE);
  a->var = egg_var(E, v, name, s);
  v->sort.p[a->var] = a->a->sort;
}
static void read_set(tarn_egg *E, egg_vars *v, const tarn_sx *s, egg_action *a) {
  need(E, s, 3, "(set (FUNCTION ARG…) VALUE)");
  egg_decl *d = head_of(E, s->kid[1], EGG_FUNCTION, "only a function's rows can be set");
  a->a = egg_read_typed(E, v, s->kid[1], TARN_NONE);
  a->b = egg_read_typed(E, v, s->kid[2], d->out);
}
static void read_union(tarn_egg *E, egg_vars *v, const tarn_sx *s, egg_action *a) {
  need(E, s, 3, "(union A B)");
  a->a = egg_read_typed(E, v, s->kid[1], TARN_NONE);
  a->b = egg_read_typed(E, v, s->kid[2], a->a->sort);
  if (!egg_is_term(E, a->a->sort))
    tarn_sx_error(E->cx, s, "only terms can be united, not values of %s",
                  E->sort.p[a->a->sort].name);
}
static void read_delete(tarn_egg *E, egg_vars *v, const tarn_sx *s, egg_action *a) {
  need(E, s, 2, "one row of a table");
  head_of(E, s->kid[1], a->act == ACT_SUBSUME ? EGG_CONSTRUCTOR : EGG_RELATION,
          "a row of a function cannot be subsumed");
  a->a = egg_read_typed(E, v, s->kid[1], TARN_NONE);
}
static void read_panic(tarn_egg *E, egg_vars *v, const tarn_sx *s, egg_action *a) {
  (void)v;
  need(E, s, 2, "(panic TEXT)");
  a->text = tarn_sx_kid(E->cx, s, 1, TARN_SX_STRING, "a text")->text;
}
static const struct {
  const char *name;
  egg_act act;
  void (*read)(tarn_egg *E, egg_vars *v, const tarn_sx *s, egg_action *a);
} actions[] = {{"let", ACT_LET, read_let},
               {"set", ACT_SET, read_set},
               {"union", ACT_UNION, read_union},
               {"delete", ACT_DELETE, read_delete},
               {"subsume", ACT_SUBSUME, read_delete},
               {"panic", ACT_PANIC, read_panic}};

void egg_read_actions(tarn_egg *E, egg_vars *v, const tarn_sx *list, uint32_t from, egg_rule *r) {
  for (uint32_t k = from; k < list->n; k++) {
    const tarn_sx *s = list->kid[k];
    egg_action a = {.act = ACT_EXPR, .at = s};
    bool known = false;
    for (size_t i = 0; i < sizeof actions / sizeof *actions && !known; i++)
      if ((known = tarn_sx_is(s, actions[i].name))) {
        a.act = actions[i].act;
        actions[i].read(E, v, s, &a);
      }
    if (!known) a.a = egg_read_typed(E, v, s, TARN_NONE);
    tarn_push(E->cx, &r->action, a);
  }
}
