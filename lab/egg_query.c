/* Queries of egglog's language: facts flattened into atoms, which the engine joins, and steps over
 * primitive values, which are computed for each match. */
#include "lab/egg.h"
#include <string.h>

static const egg_ref none = {TARN_NONE, TARN_NONE};

/* ---- what variables are found to be ---- */
static egg_ref ref_of(const egg_query *q, egg_ref r) {
  while (r.var != TARN_NONE && q->same.p[r.var].var != r.var) r = q->same.p[r.var];
  return r;
}
egg_ref egg_ref_of(const egg_query *q, uint32_t var) {
  return ref_of(q, (egg_ref){var, TARN_NONE});
}
static egg_ref fresh(egg_query *q, uint32_t sort, const tarn_sx *at) {
  uint32_t var = egg_var(q->E, &q->vars, "", at);
  q->vars.sort.p[var] = sort;
  return (egg_ref){var, TARN_NONE};
}
static void cover(egg_query *q) {
  while (q->same.n < q->vars.name.n) {
    egg_ref self = {q->same.n, TARN_NONE};
    tarn_push(q->E->cx, &q->same, self);
  }
}
/* Two values that differ: nothing matches, which a step says. */
static void equate(egg_query *q, egg_ref a, egg_ref b, uint32_t sort, const tarn_sx *at) {
  cover(q);
  a = ref_of(q, a), b = ref_of(q, b);
  if (a.var == b.var && a.value == b.value) return;
  if (a.var == TARN_NONE && b.var == TARN_NONE) {
    egg_step never = {.arg = tarn_copy(q->E->cx, (egg_ref[]){a, a}, 2 * sizeof a),
                      .n = 2,
                      .out = none,
                      .sort = sort,
                      .at = at};
    tarn_push(q->E->cx, &q->step, never);
  } else if (a.var != TARN_NONE) {
    q->same.p[a.var] = b;
  } else {
    q->same.p[b.var] = a;
  }
}

/* ---- flattening ---- */
static egg_ref flatten(egg_query *q, const egg_expr *x);
static egg_ref *flatten_all(egg_query *q, const egg_expr *x) {
  egg_ref *r = TARN_ARRAY(q->E->cx, egg_ref, x->n + 1);
  for (uint32_t i = 0; i < x->n; i++) r[i] = flatten(q, x->kid[i]);
  return r;
}
static egg_ref flatten_call(egg_query *q, const egg_expr *x) {
  egg_ref *arg = flatten_all(q, x);
  egg_ref out = x->decl->kind == EGG_RELATION ? none : fresh(q, x->sort, x->at);
  egg_atom a = {x->decl, arg, out};
  tarn_push(q->E->cx, &q->atom, a);
  return out;
}
static egg_ref flatten_step(egg_query *q, const egg_expr *x) {
  egg_ref *arg = flatten_all(q, x);
  egg_ref out = x->kind == EX_DIFFERS || x->sort == SORT_UNIT ? none : fresh(q, x->sort, x->at);
  egg_step s = {x->prim, arg, x->n, out, false, x->sort, x->at};
  tarn_push(q->E->cx, &q->step, s);
  return out;
}
static egg_ref flatten(egg_query *q, const egg_expr *x) {
  if (x->kind == EX_LITERAL) return (egg_ref){TARN_NONE, x->value};
  if (x->kind == EX_VAR) return (egg_ref){x->var, TARN_NONE};
  return x->kind == EX_CALL ? flatten_call(q, x) : flatten_step(q, x);
}
/* b: NULL, or equal to a. */
static void egg_query_add(egg_query *q, egg_expr *a, egg_expr *b) {
  egg_ref l = flatten(q, a);
  if (!b) return;
  egg_ref r = flatten(q, b);
  if (a->sort != SORT_UNIT) equate(q, l, r, a->sort, a->at);
}

/* ---- reading ---- */
typedef struct fact {
  egg_expr *a, *b;
} fact;
typedef TARN_VEC(fact) facts;
static void read_fact(egg_query *q, const tarn_sx *s, facts *all) {
  tarn_egg *E = q->E;
  if (!tarn_sx_is(s, "=")) {
    fact f = {egg_read(E, &q->vars, s), NULL};
    tarn_push(E->cx, all, f);
    return;
  }
  if (s->n < 3) tarn_sx_error(E->cx, s, "expected (= A B…)");
  egg_expr *first = egg_read(E, &q->vars, s->kid[1]);
  for (uint32_t i = 2; i < s->n; i++) {
    fact f = {first, egg_read(E, &q->vars, s->kid[i])};
    tarn_push(E->cx, all, f);
  }
}
static bool infer(egg_query *q, const facts *all) {
  bool learnt = false;
  for (uint32_t i = 0; i < all->n; i++) {
    egg_expr *a = all->p[i].a, *b = all->p[i].b;
    learnt |= egg_infer(q->E, &q->vars, a, b ? b->sort : TARN_NONE);
    if (b) learnt |= egg_infer(q->E, &q->vars, b, a->sort);
  }
  return learnt;
}
void egg_query_read(tarn_egg *E, egg_query *q, const tarn_sx *list) {
  facts all = {0};
  if (list->kind != TARN_SX_LIST) tarn_sx_error(E->cx, list, "expected a list of facts");
  for (uint32_t i = 0; i < list->n; i++) read_fact(q, list->kid[i], &all);
  while (infer(q, &all)) {}
  for (uint32_t i = 0; i < all.n; i++) {
    egg_check_typed(E, &q->vars, all.p[i].a);
    if (all.p[i].b) egg_check_typed(E, &q->vars, all.p[i].b);
  }
  for (uint32_t i = 0; i < all.n; i++) {
    /* The first of (= A B C) is flattened once for each of the others, which is one atom twice. */
    egg_query_add(q, all.p[i].a, all.p[i].b);
  }
}

/* ---- the order of steps ---- */
static void bind(egg_query *q, egg_ref r, bool engine) {
  r = ref_of(q, r);
  if (r.var == TARN_NONE || q->engine.p[r.var] != TARN_NONE) return;
  q->engine.p[r.var] = engine ? q->n_engine++ : TARN_NONE - 1;
}
static bool bound(const egg_query *q, egg_ref r) {
  r = ref_of(q, r);
  return r.var == TARN_NONE || q->engine.p[r.var] != TARN_NONE;
}
static bool ready(const egg_query *q, const egg_step *s) {
  for (uint32_t i = 0; i < s->n; i++)
    if (!bound(q, s->arg[i])) return false;
  return true;
}
static void order_steps(egg_query *q) {
  for (uint32_t done = 0; done < q->step.n; done++) {
    uint32_t i = done;
    while (i < q->step.n && !ready(q, &q->step.p[i])) i++;
    if (i == q->step.n)
      tarn_sx_error(q->E->cx, q->step.p[done].at, "what it is about is not bound");
    egg_step s = q->step.p[i];
    memmove(&q->step.p[done + 1], &q->step.p[done], (i - done) * sizeof s);
    bool has_out = s.out.var != TARN_NONE || s.out.value != TARN_NONE;
    s.binds = has_out && !bound(q, s.out);
    if (has_out) bind(q, s.out, false);
    q->step.p[done] = s;
  }
}
void egg_query_close(egg_query *q) {
  cover(q);
  q->slot = TARN_ARRAY(q->E->cx, uint32_t, q->vars.name.n + 1);
  while (q->engine.n < q->vars.name.n) tarn_push(q->E->cx, &q->engine, TARN_NONE);
  for (uint32_t i = 0; i < q->atom.n; i++) {
    const egg_atom *a = &q->atom.p[i];
    bind(q, a->out, true);
    for (uint32_t k = 0; k < a->decl->n; k++) bind(q, a->arg[k], true);
  }
  order_steps(q);
  for (uint32_t i = 0; i < q->vars.name.n; i++)
    if (!bound(q, (egg_ref){i, TARN_NONE}))
      tarn_sx_error(q->E->cx, q->vars.at.p[i], "%s is not bound by a row of a table",
                    q->vars.name.p[i]);
}

/* ---- for the engine ---- */
static const tarn_eg_pat *literal(const egg_query *q, uint32_t value) {
  tarn_eg_pat *p = TARN_NEW(q->E->cx, tarn_eg_pat);
  *p = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE,
                     .var = TARN_NONE,
                     .op_how = TARN_EG_EXACT,
                     .op = OP_PRIM,
                     .payload_how = TARN_EG_EXACT,
                     .payload = 1 + value};
  return p;
}
const tarn_eg_pat *egg_pattern_ref(const egg_query *q, egg_ref r) {
  r = ref_of(q, r);
  if (r.var == TARN_NONE) return literal(q, r.value);
  tarn_eg_pat *p = TARN_NEW(q->E->cx, tarn_eg_pat);
  *p = (tarn_eg_pat){.kind = TARN_EG_PAT_VAR, .var = q->engine.p[r.var]};
  return p;
}
/* A term that one other atom has as an argument, and nobody else, stands there in the pattern. */
static uint32_t parent_of(const egg_query *q, uint32_t atom) {
  const egg_atom *a = &q->atom.p[atom];
  uint32_t parent = TARN_NONE, uses = 0;
  if (a->decl->kind != EGG_CONSTRUCTOR) return TARN_NONE;
  uint32_t var = ref_of(q, a->out).var;
  for (uint32_t i = 0; i < q->atom.n; i++) {
    const egg_atom *b = &q->atom.p[i];
    uses += i != atom && b->decl->kind != EGG_RELATION && ref_of(q, b->out).var == var;
    for (uint32_t k = 0; k < b->decl->n; k++)
      if (ref_of(q, b->arg[k]).var == var) parent = i, uses++;
  }
  return uses == 1 ? parent : TARN_NONE;
}
static bool is_nested(const egg_query *q, uint32_t atom) {
  uint32_t up = parent_of(q, atom);
  if (up == TARN_NONE || up == atom) return false;
  for (uint32_t i = 0; i < q->atom.n; i++) {
    up = parent_of(q, up);
    if (up == TARN_NONE) return true;
  }
  return false; /* round and round */
}
static tarn_eg_pat *row(const egg_query *q, const egg_atom *a, const bool *nested) {
  const egg_decl *d = a->decl;
  uint32_t n = d->n + (d->kind == EGG_FUNCTION);
  const tarn_eg_pat **kid = TARN_ARRAY(q->E->cx, const tarn_eg_pat *, n + 1);
  for (uint32_t i = 0; i < d->n; i++) {
    uint32_t var = ref_of(q, a->arg[i]).var;
    kid[i] = egg_pattern_ref(q, a->arg[i]);
    for (uint32_t k = 0; k < q->atom.n && var != TARN_NONE; k++) {
      if (!nested[k] || ref_of(q, q->atom.p[k].out).var != var) continue;
      tarn_eg_pat *inner = row(q, &q->atom.p[k], nested);
      inner->var = q->engine.p[var];
      kid[i] = inner;
    }
  }
  if (d->kind == EGG_FUNCTION) kid[d->n] = egg_pattern_ref(q, a->out);
  tarn_eg_pat *p = TARN_NEW(q->E->cx, tarn_eg_pat);
  *p = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE,
                     .var = TARN_NONE,
                     .op_how = TARN_EG_EXACT,
                     .op = d->op,
                     .payload_how = TARN_EG_EXACT,
                     .kids = kid,
                     .n = n};
  return p;
}
/* A query without atoms is one about the unit, which is always there. */
static tarn_eg_root unit_root(const egg_query *q) {
  tarn_eg_pat *unit = TARN_NEW(q->E->cx, tarn_eg_pat);
  *unit = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE, .var = TARN_NONE, .op = OP_UNIT};
  return (tarn_eg_root){TARN_NONE, unit};
}
tarn_eg_root *egg_query_roots(const egg_query *q, uint32_t *n) {
  tarn_eg_root *root = TARN_ARRAY(q->E->cx, tarn_eg_root, q->atom.n + 1);
  bool *nested = TARN_ARRAY(q->E->cx, bool, q->atom.n + 1);
  *n = 0;
  for (uint32_t i = 0; i < q->atom.n; i++) nested[i] = is_nested(q, i);
  for (uint32_t i = 0; i < q->atom.n; i++) {
    const egg_atom *a = &q->atom.p[i];
    if (nested[i]) continue;
    root[*n] = (tarn_eg_root){TARN_NONE, row(q, a, nested)};
    if (a->decl->kind == EGG_CONSTRUCTOR) root[*n].var = q->engine.p[ref_of(q, a->out).var];
    ++*n;
  }
  if (!*n) root[(*n)++] = unit_root(q);
  return root;
}

/* ---- of a match ---- */
static uint32_t slot_of(const egg_query *q, const uint32_t *slot, egg_ref r) {
  r = ref_of(q, r);
  return r.var == TARN_NONE ? r.value : slot[r.var];
}
static bool differ(const egg_query *q, const egg_step *s, const uint32_t *slot) {
  uint32_t a = slot_of(q, slot, s->arg[0]), b = slot_of(q, slot, s->arg[1]);
  return a != b;
}
static bool compute(const egg_query *q, const egg_step *s, uint32_t *slot) {
  tarn_egg *E = q->E;
  uint32_t number[EGG_FEW];
  uint32_t *arg = egg_room(E, number, s->n);
  egg_value out = {.sort = s->sort};
  for (uint32_t i = 0; i < s->n; i++) arg[i] = slot_of(q, slot, s->arg[i]);
  if (!egg_apply_primitive(E, s->prim, arg, s->n, &out)) return false;
  if (s->out.var == TARN_NONE && s->out.value == TARN_NONE) return true;
  uint32_t value = egg_number(E, &out);
  if (!s->binds) return slot_of(q, slot, s->out) == value;
  slot[ref_of(q, s->out).var] = value;
  return true;
}
bool egg_query_slots(const egg_query *q, const tarn_eg_match *m, uint32_t *slot) {
  for (uint32_t i = 0; i < q->vars.name.n; i++) {
    uint32_t e = i < q->engine.n ? q->engine.p[i] : TARN_NONE;
    slot[i] = e < q->n_engine ? egg_id(q->E, q->vars.sort.p[i], m->vars[e]) : TARN_NONE;
  }
  for (uint32_t i = 0; i < q->step.n; i++) {
    const egg_step *s = &q->step.p[i];
    if (!(s->prim ? compute(q, s, slot) : differ(q, s, slot))) return false;
  }
  for (uint32_t i = 0; i < q->same.n; i++) slot[i] = slot_of(q, slot, (egg_ref){i, TARN_NONE});
  return true;
}

/* ---- is there one? ---- */
typedef struct looking {
  tarn_egg *E;
  const egg_query *q;
  const tarn_eg_match *m;
  bool found;
} looking;
static void look(tarn_ctx *cx, void *arg) {
  looking *k = arg;
  (void)cx;
  k->found = egg_query_slots(k->q, k->m, k->q->slot);
}
static bool at_match(void *user, const tarn_eg_match *m) {
  looking *k = user;
  k->m = m;
  tarn_status st = tarn_protect(k->E->cx, look, k);
  if (st) k->E->failed = st;
  return !st && !k->found;
}
static int nothing(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result) {
  (void)user, (void)g, (void)m, (void)result;
  return 0;
}
void egg_rules_failed(tarn_egg *E, const tarn_eg_rules *rs, const tarn_sx *at) {
  tarn_status st = tarn_eg_rules_status(rs);
  if (st == TARN_MEMORY || !at)
    tarn_raise(E->cx, st ? st : TARN_BAD_INPUT, "%s", tarn_eg_rules_message(rs));
  tarn_sx_error(E->cx, at, "%s", tarn_eg_rules_message(rs));
}
static void free_rules(void *arg) { tarn_eg_rules_free(arg); }
bool egg_query_holds(tarn_egg *E, const egg_query *q) {
  tarn_eg_rules *rs = tarn_eg_rules_new(tarn_ctx_allocator(E->cx));
  if (!rs) tarn_raise(E->cx, TARN_MEMORY, "out of memory");
  tarn_defer(E->cx, free_rules, rs);
  tarn_eg_rule e = {.name = "query", .apply = nothing};
  e.lhs = egg_query_roots(q, &e.n_lhs);
  if (tarn_eg_rules_add(rs, &e) == TARN_NONE) egg_rules_failed(E, rs, NULL);
  looking k = {.E = E, .q = q};
  uint64_t n = tarn_eg_search(E->g, rs, 0, at_match, &k);
  tarn_keep(E->cx, rs);
  tarn_eg_rules_free(rs);
  if (E->failed) tarn_reraise(E->cx, E->failed);
  if (n == UINT64_MAX) tarn_raise(E->cx, TARN_MEMORY, "out of memory");
  return k.found;
}
