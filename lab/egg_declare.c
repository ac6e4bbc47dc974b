/* Commands of egglog's language that declare: sorts, tables, rules, rulesets. */
#include "lab/egg.h"
#include <string.h>

/* ---- forms made of others ---- */
static tarn_sx *atom(tarn_egg *E, const tarn_sx *at, const char *text) {
  tarn_sx *s = tarn_copy(E->cx, at, sizeof *at);
  s->kind = TARN_SX_ATOM, s->text = text, s->len = strlen(text), s->n = 0, s->kid = NULL;
  return s;
}
static tarn_sx *list(tarn_egg *E, const tarn_sx *at, tarn_sx *const *kid, uint32_t n) {
  tarn_sx *s = tarn_copy(E->cx, at, sizeof *at);
  s->kind = TARN_SX_LIST, s->text = "", s->len = 0, s->n = n;
  s->kid = tarn_copy(E->cx, kid, n * sizeof *kid);
  return s;
}
static tarn_sx *three(tarn_egg *E, const char *head, tarn_sx *a, tarn_sx *b) {
  return list(E, a, (tarn_sx *[]){atom(E, a, head), a, b}, b ? 3 : 2);
}
static const char *name_at(tarn_egg *E, const tarn_sx *s, uint32_t i) {
  return tarn_sx_kid(E->cx, s, i, TARN_SX_ATOM, "a name")->text;
}

/* ---- sorts ---- */
static uint32_t add_sort(tarn_egg *E, const tarn_sx *at, egg_sort sort) {
  for (uint32_t i = 0; i < E->sort.n; i++)
    if (!strcmp(E->sort.p[i].name, sort.name))
      tarn_sx_error(E->cx, at, "there is a sort %s already", sort.name);
  tarn_push(E->cx, &E->sort, sort);
  return E->sort.n - 1;
}
static uint32_t element(tarn_egg *E, const tarn_sx *s) {
  uint32_t sort = egg_sort_named(E, s);
  if (E->sort.p[sort].base == EGG_EQ)
    tarn_sx_error(E->cx, s, "a container of terms (%s) is outside the subset that is read",
                  E->sort.p[sort].name);
  return sort;
}
void egg_declare_sort(tarn_egg *E, const tarn_sx *s) {
  static const struct {
    const char *name;
    egg_base base;
  } kinds[] = {{"Set", EGG_SET}, {"Vec", EGG_VEC}, {"MultiSet", EGG_MULTISET}, {"Map", EGG_MAP}};
  egg_sort sort = {name_at(E, s, 1), EGG_EQ, TARN_NONE, TARN_NONE};
  if (s->n > 3) tarn_sx_error(E->cx, s, "expected (sort NAME) or (sort NAME (Set|Vec|… SORT))");
  if (s->n == 3) {
    const tarn_sx *of = s->kid[2];
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
      if (tarn_sx_is(of, kinds[i].name) && of->n == (kinds[i].base == EGG_MAP ? 3 : 2))
        sort.base = kinds[i].base;
    if (sort.base == EGG_EQ)
      tarn_sx_error(E->cx, of, "this kind of sort is outside the subset that is read");
    sort.elem = element(E, of->kid[1]);
    if (sort.base == EGG_MAP) sort.to = element(E, of->kid[2]);
  }
  add_sort(E, s, sort);
}

/* ---- tables ---- */
/* The options of a constructor from kid i on. */
static void options(tarn_egg *E, egg_decl *d, const tarn_sx *s, uint32_t i) {
  for (; i < s->n; i++) {
    if (tarn_sx_atom_is(s->kid[i], ":unextractable")) {
      d->hidden = true;
    } else if (tarn_sx_atom_is(s->kid[i], ":cost") && i + 1 < s->n) {
      d->cost = (double)tarn_sx_whole(E->cx, s, i + 1, 0, INT64_MAX);
      i++;
    } else {
      tarn_sx_error(E->cx, s->kid[i], "expected :cost N or :unextractable");
    }
  }
}
/* (NAME SORT… [:cost N]) of a datatype. */
static void variant(tarn_egg *E, const tarn_sx *s, uint32_t out) {
  uint32_t *arg = TARN_ARRAY(E->cx, uint32_t, s->n + 1), n = 0;
  const char *name = name_at(E, s, 0);
  for (; n + 1 < s->n; n++) {
    if (s->kid[n + 1]->kind == TARN_SX_ATOM && s->kid[n + 1]->text[0] == ':') break;
    arg[n] = egg_sort_named(E, s->kid[n + 1]);
  }
  options(E, egg_declare(E, s, EGG_CONSTRUCTOR, name, n, arg, out), s, n + 1);
}
void egg_declare_datatype(tarn_egg *E, const tarn_sx *s) {
  uint32_t out = add_sort(E, s, (egg_sort){name_at(E, s, 1), EGG_EQ, TARN_NONE, TARN_NONE});
  for (uint32_t i = 2; i < s->n; i++)
    variant(E, tarn_sx_kid(E->cx, s, i, TARN_SX_LIST, "(CONSTRUCTOR SORT…)"), out);
}
/* (datatype* (NAME VARIANT…)… (sort …)…): the sorts first, as they use one another. */
void egg_declare_datatypes(tarn_egg *E, const tarn_sx *s) {
  uint32_t *out = TARN_ARRAY(E->cx, uint32_t, s->n + 1);
  for (uint32_t i = 1; i < s->n; i++) {
    const tarn_sx *d = tarn_sx_kid(E->cx, s, i, TARN_SX_LIST, "(NAME VARIANT…)");
    if (tarn_sx_is(d, "sort")) continue;
    out[i] = add_sort(E, d, (egg_sort){name_at(E, d, 0), EGG_EQ, TARN_NONE, TARN_NONE});
  }
  for (uint32_t i = 1; i < s->n; i++)
    if (tarn_sx_is(s->kid[i], "sort")) egg_declare_sort(E, s->kid[i]);
  for (uint32_t i = 1; i < s->n; i++)
    for (uint32_t k = 1; !tarn_sx_is(s->kid[i], "sort") && k < s->kid[i]->n; k++)
      variant(E, tarn_sx_kid(E->cx, s->kid[i], k, TARN_SX_LIST, "(CONSTRUCTOR SORT…)"), out[i]);
}
static egg_decl *table(tarn_egg *E, const tarn_sx *s, egg_kind kind) {
  const tarn_sx *args = tarn_sx_kid(E->cx, s, 2, TARN_SX_LIST, "a list of sorts");
  uint32_t *arg = TARN_ARRAY(E->cx, uint32_t, args->n + 1), out = SORT_UNIT;
  for (uint32_t i = 0; i < args->n; i++) arg[i] = egg_sort_named(E, args->kid[i]);
  if (kind != EGG_RELATION)
    out = egg_sort_named(E, tarn_sx_kid(E->cx, s, 3, TARN_SX_ATOM, "a sort"));
  return egg_declare(E, s, kind, name_at(E, s, 1), args->n, arg, out);
}
void egg_declare_constructor(tarn_egg *E, const tarn_sx *s) {
  options(E, table(E, s, EGG_CONSTRUCTOR), s, 4);
}
void egg_declare_relation(tarn_egg *E, const tarn_sx *s) {
  if (s->n != 3) tarn_sx_error(E->cx, s, "expected (relation NAME (SORT…))");
  table(E, s, EGG_RELATION);
}
void egg_declare_function(tarn_egg *E, const tarn_sx *s) {
  egg_decl *d = table(E, s, EGG_FUNCTION);
  if (s->n == 5 && tarn_sx_atom_is(s->kid[4], ":no-merge")) return;
  if (s->n != 6 || !tarn_sx_atom_is(s->kid[4], ":merge"))
    tarn_sx_error(E->cx, s, "expected :no-merge, or :merge and what old and new become");
  egg_vars v = {0};
  for (int i = 0; i < 2; i++) {
    egg_var(E, &v, i ? "new" : "old", s);
    v.sort.p[i] = d->out;
  }
  d->merge = egg_read_typed(E, &v, s->kid[5], d->out);
}

/* ---- rules ---- */
static void check_ruleset(const tarn_egg *E, const tarn_sx *s) {
  for (uint32_t i = 0; i < E->ruleset.n; i++)
    if (tarn_sx_atom_is(s, E->ruleset.p[i].name)) return;
  tarn_sx_error(E->cx, s, "no ruleset is called %s", s->text);
}
void egg_declare_ruleset(tarn_egg *E, const tarn_sx *s) {
  egg_ruleset r = {.name = name_at(E, s, 1)};
  for (uint32_t i = 0; i < E->ruleset.n; i++)
    if (!strcmp(E->ruleset.p[i].name, r.name))
      tarn_sx_error(E->cx, s, "there is a ruleset %s already", r.name);
  if (tarn_sx_is(s, "ruleset") && s->n != 2) tarn_sx_error(E->cx, s, "expected (ruleset NAME)");
  for (uint32_t i = 2; i < s->n; i++) {
    check_ruleset(E, s->kid[i]);
    tarn_push(E->cx, &r.part, s->kid[i]->text);
  }
  tarn_push(E->cx, &E->ruleset, r);
}
static egg_rule *new_rule(tarn_egg *E, const tarn_sx *s) {
  egg_rule *r = TARN_NEW(E->cx, egg_rule);
  *r = (egg_rule){.q.E = E, .q.vars.open = true, .ruleset = "", .at = s};
  r->name = tarn_format(E->cx, "%s:%u", s->file, s->line);
  return r;
}
/* The rule of these facts and actions, whose ruleset and name are set. */
static void finish(tarn_egg *E, egg_rule *r, const tarn_sx *facts, const tarn_sx *actions) {
  if (actions->kind != TARN_SX_LIST) tarn_sx_error(E->cx, actions, "expected a list of actions");
  egg_query_read(E, &r->q, facts);
  egg_query_close(&r->q);
  r->q.vars.open = false;
  egg_read_actions(E, &r->q.vars, actions, 0, r);
  egg_rule_add(E, r);
}
void egg_declare_rule(tarn_egg *E, const tarn_sx *s) {
  egg_rule *r = new_rule(E, s);
  if (s->n < 3) tarn_sx_error(E->cx, s, "expected (rule (FACT…) (ACTION…))");
  for (uint32_t i = 3; i < s->n; i += 2) {
    bool value = i + 1 < s->n;
    if (value && tarn_sx_atom_is(s->kid[i], ":ruleset")) {
      check_ruleset(E, s->kid[i + 1]);
      r->ruleset = s->kid[i + 1]->text;
    } else if (value && tarn_sx_atom_is(s->kid[i], ":name")) {
      r->name = s->kid[i + 1]->text;
    } else {
      tarn_sx_error(E->cx, s->kid[i], "expected :ruleset NAME or :name TEXT");
    }
  }
  finish(E, r, s->kid[1], s->kid[2]);
}

/* What a rewrite's options say. */
typedef struct rewriting {
  const tarn_sx *when;
  const char *ruleset, *name;
  bool subsume;
} rewriting;
static rewriting rewrite_options(tarn_egg *E, const tarn_sx *s) {
  rewriting w = {.ruleset = ""};
  for (uint32_t i = 3; i < s->n; i++) {
    const tarn_sx *key = s->kid[i], *value = i + 1 < s->n ? s->kid[i + 1] : NULL;
    if (tarn_sx_atom_is(key, ":subsume")) {
      w.subsume = true;
      continue;
    }
    if (value && tarn_sx_atom_is(key, ":when")) w.when = value;
    else if (value && tarn_sx_atom_is(key, ":ruleset"))
      check_ruleset(E, value), w.ruleset = value->text;
    else if (value && tarn_sx_atom_is(key, ":name")) w.name = value->text;
    else tarn_sx_error(E->cx, key, "expected :when (FACT…), :ruleset NAME, :name TEXT or :subsume");
    i++;
  }
  return w;
}
/* (rewrite L R) is (rule ((= root L) FACT…) ((union root R))). */
static void rewrite(tarn_egg *E, const tarn_sx *s, tarn_sx *left, tarn_sx *right,
                    const rewriting *w) {
  egg_rule *r = new_rule(E, s);
  tarn_sx *root = atom(E, left, "(root)");
  uint32_t n = w->when ? w->when->n : 0;
  tarn_sx **fact = TARN_ARRAY(E->cx, tarn_sx *, n + 1);
  fact[0] = three(E, "=", root, left);
  for (uint32_t i = 0; i < n; i++) fact[i + 1] = w->when->kid[i];
  tarn_sx *action[2] = {three(E, "union", root, right), three(E, "subsume", left, NULL)};
  r->ruleset = w->ruleset;
  if (w->name) r->name = w->name;
  finish(E, r, list(E, s, fact, n + 1), list(E, s, action, w->subsume ? 2 : 1));
}
void egg_declare_rewrite(tarn_egg *E, const tarn_sx *s) {
  if (s->n < 3) tarn_sx_error(E->cx, s, "expected (%s LEFT RIGHT)", s->kid[0]->text);
  rewriting w = rewrite_options(E, s);
  rewrite(E, s, s->kid[1], s->kid[2], &w);
  if (tarn_sx_is(s, "birewrite")) rewrite(E, s, s->kid[2], s->kid[1], &w);
}
