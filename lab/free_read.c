/* Reading what a free rule set declares:
 *
 *   (analysis NAME constant [:numbers real|integer|rational] [:names (NAME…)] [:prune true]
 *     ((OP KID…) VALUE)…)
 *   (analysis NAME set [:join both|either] ((OP KID…) SET)…)
 *   (analysis NAME lattice :merge VALUE [:numbers …] [:leaves true] ((OP KID…) VALUE)…)
 *   (predicate (NAME ?x…) CONDITION)
 *
 * and the expressions in them and in rules. */
#include "lab/free.h"
#include <string.h>

typedef struct freader {
  tarn_ruleset *rs;
  tarn_ctx *cx;
  free_state *f;
  rule *r; /* whose variables are meant; NULL: those of a clause */
  const char *const *name;
  uint32_t n;
  uint32_t analysis; /* the set that a variable of a clause stands for */
  uint32_t depth;    /* of predicates in predicates */
  bool merges;       /* variables are values: ?old and ?new */
} freader;

static bool variable(const tarn_sx *s) {
  return s->kind == TARN_SX_ATOM && s->text[0] == '?' && s->text[1] != '*';
}

static uint32_t bound(const freader *rd, const tarn_sx *s) {
  const char *const *name = rd->r ? rd->r->cls_name : rd->name;
  uint32_t n = rd->r ? rd->r->ncls : rd->n;
  for (uint32_t i = 0; i < n; i++)
    if (name[i] && !strcmp(name[i], s->text)) return i;
  tarn_sx_error(rd->cx, s, "%s is not bound by the left side", s->text);
}

static uint32_t set_named(const freader *rd, const tarn_sx *s) {
  for (uint32_t i = 0; i < rd->f->analysis.n; i++)
    if (tarn_sx_atom_is(s, rd->f->analysis.p[i]->name) && rd->f->analysis.p[i]->set) return i;
  tarn_sx_error(rd->cx, s, "expected the name of an analysis of sets");
}

uint32_t free_lattice_named(const free_state *f, const char *name) {
  for (uint32_t i = 0; i < f->analysis.n; i++)
    if (f->analysis.p[i]->lattice && !strcmp(f->analysis.p[i]->name, name)) return i;
  return TARN_NONE;
}
static fexpr *leaf(const freader *rd, const char *sig) {
  fexpr *x = TARN_NEW(rd->cx, fexpr);
  x->fun = free_function("", sig, 0);
  x->analysis = TARN_NONE;
  return x;
}
static fexpr *literal(freader *rd, const tarn_sx *s) {
  fexpr *x = leaf(rd, ":v");
  x->lit = free_parse(rd->f, s->text, s->len);
  if (x->lit.kind == FV_NONE) x->lit = free_value_of(rd->f, free_symbol(rd->f, s->text, s->len));
  if (x->lit.kind == FV_NONE)
    tarn_sx_error(rd->cx, s, "%s is no number, text or multiset, nor among :names", s->text);
  return x;
}
static void need_constants(const freader *rd, const tarn_sx *s) {
  if (rd->f->constants == TARN_NONE)
    tarn_sx_error(rd->cx, s,
                  "asks for a constant, but there is no (analysis NAME constant …) before it");
}

/* ---- predicates are expanded where they are used ---- */
static tarn_sx *substitute(tarn_ctx *cx, const tarn_sx *body, const tarn_sx *head,
                           const tarn_sx *call) {
  tarn_sx *s = tarn_copy(cx, body, sizeof *body);
  for (uint32_t i = 1; i < head->n && variable(body); i++)
    if (!strcmp(body->text, head->kid[i]->text)) return call->kid[i];
  s->kid = TARN_ARRAY(cx, tarn_sx *, s->n ? s->n : 1);
  for (uint32_t i = 0; i < s->n; i++) s->kid[i] = substitute(cx, body->kid[i], head, call);
  if (s->kind == TARN_SX_LIST) s->file = call->file, s->line = call->line, s->col = call->col;
  return s;
}
const tarn_sx *free_expand(const tarn_ruleset *rs, const tarn_sx *s) {
  const free_state *f = free_of(rs);
  for (uint32_t i = 0; i < f->predicate.n; i++) {
    const fpredicate *p = &f->predicate.p[i];
    if (!tarn_sx_is(s, p->name)) continue;
    if (s->n == p->head->n) return substitute(rs->cx, p->body, p->head, s);
    tarn_sx_error(rs->cx, s, "%s has %u arguments, not %u", p->name, p->head->n - 1, s->n - 1);
  }
  return NULL;
}

/* ---- expressions ---- */
static const char *kind_name(char kind) {
  return kind == 'v'   ? "a value"
         : kind == 'b' ? "a condition"
         : kind == 's' ? "a set"
                       : "a variable";
}
static fexpr *expression(freader *rd, const tarn_sx *s, char kind);

static void argument(freader *rd, fexpr *x, const tarn_sx *s, char kind, uint32_t *pats) {
  if (kind == 'a') x->analysis = set_named(rd, s);
  else if (kind != 'p') x->kid[x->n++] = expression(rd, s, kind);
  else if (rd->r) x->pat[(*pats)++] = tarn_r_right_pattern(rd->rs, rd->r, s);
  else tarn_sx_error(rd->cx, s, "a pattern can only be asked for in a rule");
}
static void true_and_false(freader *rd, const tarn_sx *s) {
  if (free_value_of(rd->f, free_symbol(rd->f, "true", 4)).kind != FV_NAME ||
      free_value_of(rd->f, free_symbol(rd->f, "false", 5)).kind != FV_NAME)
    tarn_sx_error(rd->cx, s, "true and false must be among the analysis' :names");
}
/* and, or, concat: of any number; (bag V…): what is inserted into the empty one */
static const tarn_sx *nested(const freader *rd, const tarn_sx *s) {
  bool bag = tarn_sx_is(s, "bag") && s->n > 1;
  if (!bag &&
      (s->n < 4 || (!tarn_sx_is(s, "and") && !tarn_sx_is(s, "or") && !tarn_sx_is(s, "concat"))))
    return s;
  if (s->n > 256) tarn_sx_error(rd->cx, s, "more than 255 arguments");
  tarn_sx *rest = tarn_copy(rd->cx, s, sizeof *s), *top = tarn_copy(rd->cx, s, sizeof *s);
  rest->n = s->n - 1, rest->kid = tarn_copy(rd->cx, s->kid + 1, rest->n * sizeof *s->kid);
  rest->kid[0] = s->kid[0];
  top->n = 3, top->kid = TARN_ARRAY(rd->cx, tarn_sx *, 3);
  top->kid[0] = s->kid[0], top->kid[1] = s->kid[1], top->kid[2] = rest;
  if (!bag) return top;
  tarn_sx *head = tarn_copy(rd->cx, s->kid[0], sizeof *head);
  head->text = "insert", head->len = 6;
  top->kid[0] = head, top->kid[1] = rest, top->kid[2] = s->kid[1];
  return top;
}
static fexpr *call(freader *rd, const tarn_sx *s, char kind) {
  s = nested(rd, s);
  const char *name = s->n && s->kid[0]->kind == TARN_SX_ATOM ? s->kid[0]->text : "";
  const ffun *f = *name ? free_function(name, NULL, kind) : NULL;
  if (!f && *name) f = free_function(name, NULL, 0);
  if (!f) tarn_sx_error(rd->cx, s, "no function or predicate is called %s", *name ? name : "so");
  size_t arity = strcspn(f->sig, ":");
  if (s->n != arity + 1)
    tarn_sx_error(rd->cx, s, "%s has %zu arguments, not %u", name, arity, s->n - 1);
  if (f->sig[arity + 1] != kind)
    tarn_sx_error(rd->cx, s, "%s gives %s, %s is expected", name, kind_name(f->sig[arity + 1]),
                  kind_name(kind));
  fexpr *x = leaf(rd, ":v");
  uint32_t pats = 0;
  x->fun = f;
  for (uint32_t i = 0; i < arity; i++) argument(rd, x, s->kid[i + 1], f->sig[i], &pats);
  if (!strcmp(name, "constant") || !strcmp(name, "symbol")) need_constants(rd, s);
  if (!strcmp(name, "truth")) true_and_false(rd, s);
  return x;
}
static fexpr *expression(freader *rd, const tarn_sx *s, char kind) {
  uint32_t lattice = s->kind == TARN_SX_LIST && s->n == 2 && s->kid[0]->kind == TARN_SX_ATOM
                         ? free_lattice_named(rd->f, s->kid[0]->text)
                         : TARN_NONE;
  if (lattice != TARN_NONE && kind == 'v' && variable(s->kid[1])) {
    fexpr *x = leaf(rd, "c:v");
    x->var = bound(rd, s->kid[1]), x->analysis = lattice;
    return x;
  }
  if (variable(s) && kind != 'b') {
    fexpr *x = leaf(rd, rd->merges ? "n:v" : kind == 'v' ? "c:v" : kind == 's' ? "c:s" : "c:c");
    x->var = bound(rd, s);
    bool own = !rd->r && rd->analysis != TARN_NONE && rd->f->analysis.p[rd->analysis]->lattice;
    if (kind == 'v' && own) x->analysis = rd->analysis;
    else if (kind == 'v' && !rd->merges) need_constants(rd, s);
    if (kind == 's') x->analysis = rd->analysis;
    if (kind == 's' && rd->r) tarn_sx_error(rd->cx, s, "expected a set");
    return x;
  }
  if (s->kind != TARN_SX_LIST && kind == 'v') return literal(rd, s);
  if (s->kind != TARN_SX_LIST) tarn_sx_error(rd->cx, s, "expected %s", kind_name(kind));
  const tarn_sx *written = kind == 'b' ? free_expand(rd->rs, s) : NULL;
  return written ? expression(rd, written, kind) : call(rd, s, kind);
}

fexpr *free_condition(tarn_ruleset *rs, rule *r, const tarn_sx *s) {
  freader rd = {.rs = rs, .cx = rs->cx, .f = free_of(rs), .r = r, .analysis = TARN_NONE};
  return expression(&rd, s, 'b');
}
typedef struct trying {
  tarn_ruleset *rs;
  rule *r;
  const tarn_sx *s;
  fexpr *x;
} trying;
static void try_condition(tarn_ctx *cx, void *arg) {
  trying *t = arg;
  (void)cx;
  t->x = free_condition(t->rs, t->r, t->s);
}
fexpr *free_try_condition(tarn_ruleset *rs, rule *r, const tarn_sx *s) {
  trying t = {rs, r, s, NULL};
  tarn_status st = tarn_protect(rs->cx, try_condition, &t);
  if (st && st != TARN_BAD_INPUT) tarn_reraise(rs->cx, st);
  return st ? NULL : t.x;
}
fexpr *free_computed(tarn_ruleset *rs, rule *r, const tarn_sx *s) {
  freader rd = {.rs = rs, .cx = rs->cx, .f = free_of(rs), .r = r, .analysis = TARN_NONE};
  return expression(&rd, s, 'v');
}

/* A predicate may use those before it, so that none goes on without end. */
void free_read_predicate(tarn_ruleset *rs, const tarn_sx *s) {
  free_state *f = free_of(rs);
  if (s->n != 3 || s->kid[1]->kind != TARN_SX_LIST || !s->kid[1]->n ||
      s->kid[1]->kid[0]->kind != TARN_SX_ATOM)
    tarn_sx_error(rs->cx, s, "expected (predicate (NAME ?x…) CONDITION)");
  const tarn_sx *head = s->kid[1];
  const char *name[8];
  bool known = free_function(head->kid[0]->text, NULL, 0) != NULL;
  if (head->n > 9) tarn_sx_error(rs->cx, head, "more than 8 arguments");
  for (uint32_t i = 1; i < head->n; i++) {
    if (!variable(head->kid[i])) tarn_sx_error(rs->cx, head->kid[i], "expected a variable");
    name[i - 1] = head->kid[i]->text;
  }
  for (uint32_t i = 0; i < f->predicate.n; i++)
    known |= !strcmp(f->predicate.p[i].name, head->kid[0]->text);
  if (known) tarn_sx_error(rs->cx, head, "there is a condition %s already", head->kid[0]->text);
  rule dummy = {.ncls = head->n - 1};
  for (uint32_t i = 0; i + 1 < head->n; i++) dummy.cls_name[i] = name[i];
  free_try_condition(rs, &dummy, s->kid[2]);
  fpredicate p = {head->kid[0]->text, head, s->kid[2]};
  tarn_push(rs->cx, &f->predicate, p);
}

/* ---- analyses ---- */
static void set_numbers(freader *rd, fanalysis *a, const tarn_sx *v) {
  static const char *const names[] = {"real", "integer", "rational"};
  for (int i = 0; i < 3; i++)
    if (tarn_sx_atom_is(v, names[i]) && !a->set) {
      bool other = rd->f->counts && rd->f->numbers != (free_numbers)i;
      if (other) tarn_sx_error(rd->cx, v, "an analysis before it has other numbers");
      rd->f->numbers = (free_numbers)i;
      return;
    }
  tarn_sx_error(rd->cx, v, "expected real, integer or rational");
}
static void set_names(freader *rd, fanalysis *a, const tarn_sx *v) {
  if (v->kind != TARN_SX_LIST || a->set) tarn_sx_error(rd->cx, v, "expected (NAME…)");
  for (uint32_t i = 0; i < v->n; i++)
    tarn_push(rd->cx, &rd->f->named, free_symbol(rd->f, v->kid[i]->text, v->kid[i]->len));
}
static void set_prune(freader *rd, fanalysis *a, const tarn_sx *v) {
  a->prune = tarn_sx_atom_is(v, "true");
  if ((!a->prune && !tarn_sx_atom_is(v, "false")) || a->set)
    tarn_sx_error(rd->cx, v, "expected true or false");
}
static void set_join(freader *rd, fanalysis *a, const tarn_sx *v) {
  a->either = tarn_sx_atom_is(v, "either");
  if ((!a->either && !tarn_sx_atom_is(v, "both")) || !a->set)
    tarn_sx_error(rd->cx, v, "expected both or either, of sets");
}
static void set_merge(freader *rd, fanalysis *a, const tarn_sx *v) {
  static const char *const names[] = {"?old", "?new"};
  if (!a->lattice) tarn_sx_error(rd->cx, v, ":merge is for lattices");
  freader in = {.rs = rd->rs, .cx = rd->cx, .f = rd->f, .name = names, .n = 2, .merges = true};
  in.analysis = TARN_NONE;
  a->merge = expression(&in, v, 'v');
}
static void set_leaves(freader *rd, fanalysis *a, const tarn_sx *v) {
  a->leaves = tarn_sx_atom_is(v, "true");
  if (!a->lattice || (!a->leaves && !tarn_sx_atom_is(v, "false")))
    tarn_sx_error(rd->cx, v, "expected true or false, of a lattice");
}
static const struct option {
  const char *name;
  void (*set)(freader *rd, fanalysis *a, const tarn_sx *v);
} options[] = {{":numbers", set_numbers}, {":names", set_names}, {":prune", set_prune},
               {":join", set_join},       {":merge", set_merge}, {":leaves", set_leaves}};

static void clause(freader *rd, uint32_t number, const tarn_sx *s) {
  fanalysis *a = rd->f->analysis.p[number];
  if (s->kind != TARN_SX_LIST || s->n != 2 || s->kid[0]->kind != TARN_SX_LIST || !s->kid[0]->n)
    tarn_sx_error(rd->cx, s, "expected ((OPERATOR KID…) EXPRESSION)");
  const tarn_sx *left = s->kid[0];
  uint32_t n = left->n - 1;
  fclause c = {.op = free_symbol(rd->f, left->kid[0]->text, left->kid[0]->len),
               .n = n,
               .fixed = TARN_ARRAY(rd->cx, bool, n + 1),
               .want = TARN_ARRAY(rd->cx, fval, n + 1)};
  const char **name = TARN_ARRAY(rd->cx, const char *, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    if (variable(left->kid[i + 1])) name[i] = left->kid[i + 1]->text;
    else if (a->set) tarn_sx_error(rd->cx, left->kid[i + 1], "expected a variable");
    else c.fixed[i] = true, c.want[i] = literal(rd, left->kid[i + 1])->lit;
    for (uint32_t k = 0; k < i; k++)
      if (name[i] && name[k] && !strcmp(name[i], name[k]))
        tarn_sx_error(rd->cx, left, "%s stands twice", name[i]);
  }
  rd->name = name, rd->n = n, rd->analysis = number;
  c.x = expression(rd, s->kid[1], a->set ? 's' : 'v');
  tarn_push(rd->cx, &a->clause, c);
}

static void learn_values(free_state *f) {
  size_t len;
  for (uint32_t i = 0; i < f->value.n; i++) {
    const char *s = tarn_intern_key(free_of(f->rs)->symbol, i, &len);
    f->value.p[i] = free_parse(f, s, len);
    for (uint32_t k = 0; k < f->named.n; k++)
      if (f->named.p[k] == i) f->value.p[i] = (fval){.kind = FV_NAME, .symbol = i};
  }
}

void free_read_analysis(tarn_ruleset *rs, const tarn_sx *s) {
  freader rd = {.rs = rs, .cx = rs->cx, .f = free_of(rs)};
  free_state *f = rd.f;
  if (s->n < 3 || s->kid[1]->kind != TARN_SX_ATOM ||
      (!tarn_sx_atom_is(s->kid[2], "set") && !tarn_sx_atom_is(s->kid[2], "constant") &&
       !tarn_sx_atom_is(s->kid[2], "lattice")))
    tarn_sx_error(rs->cx, s, "expected (analysis NAME constant|set|lattice …)");
  fanalysis *a = TARN_NEW(rs->cx, fanalysis);
  *a = (fanalysis){.name = s->kid[1]->text,
                   .set = tarn_sx_atom_is(s->kid[2], "set"),
                   .lattice = tarn_sx_atom_is(s->kid[2], "lattice")};
  bool constant = !a->set && !a->lattice;
  for (uint32_t i = 0; i < f->analysis.n; i++)
    if (!strcmp(f->analysis.p[i]->name, a->name))
      tarn_sx_error(rs->cx, s, "there is an analysis %s already", a->name);
  if (constant && f->constants != TARN_NONE)
    tarn_sx_error(rs->cx, s, "there is an analysis of constants already");
  if (f->analysis.n == 32) tarn_sx_error(rs->cx, s, "more than 32 analyses");
  uint32_t number = f->analysis.n;
  tarn_push(rs->cx, &f->analysis, a);
  if (constant) f->constants = number;
  uint32_t i = 3;
  for (; i + 1 < s->n && s->kid[i]->kind == TARN_SX_ATOM; i += 2) {
    const struct option *o = NULL;
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
      if (tarn_sx_atom_is(s->kid[i], options[k].name)) o = &options[k];
    if (!o)
      tarn_sx_error(rs->cx, s->kid[i],
                    "expected :numbers, :names, :prune, :join, :merge, :leaves or a clause");
    o->set(&rd, a, s->kid[i + 1]);
  }
  if (a->lattice && !a->merge) tarn_sx_error(rs->cx, s, "a lattice needs :merge");
  if (!a->set) learn_values(f), f->counts = true;
  f->first[number] = tarn_map_new(rs->cx);
  for (; i < s->n; i++) {
    clause(&rd, number, s->kid[i]);
    uint64_t *at = tarn_map_at(f->first[number], a->clause.p[a->clause.n - 1].op, NULL);
    if (!*at) *at = a->clause.n;
  }
}
