/* The two sides of a rule over loops as values; see prove_loops.c. */
#include "rules/check/prove_loops.h"
#include <string.h>

/* ---------------------------------------------------------------- integers of the rule */
static poly integer(lprover *p, const rx *x);
static poly points(lprover *p, const rx *x) {
  uint32_t at;
  if (x->kind != RX_VAR || !loop_number(p, x->var, &at)) poly_stuck(&p->s, "loops that are chosen");
  return p->loop[at].extent;
}
static poly integer_call(lprover *p, const rx *x) {
  const char *f = x->fun->name;
  if (!strcmp(f, "points")) return points(p, x->kid[0]);
  if (x->n != 2) poly_stuck(&p->s, tarn_format(p->cx, "the function %s has no symbolic form", f));
  poly a = integer(p, x->kid[0]), b = integer(p, x->kid[1]);
  if (!strcmp(f, "+")) return poly_add(&p->s, &a, &b, 1);
  if (!strcmp(f, "-")) return poly_add(&p->s, &a, &b, -1);
  if (!strcmp(f, "*")) return poly_mul(&p->s, &a, &b);
  if (!strcmp(f, "/")) return poly_div(&p->s, &a, &b);
  poly_stuck(&p->s, tarn_format(p->cx, "the function %s has no symbolic form", f));
}
/* A name: of a :where what that says, else a size of its own. */
enum { SOME = 12 }; /* what the instance does not tell; it divides itself */
static poly integer_named(lprover *p, uint32_t var) {
  const rule *r = p->r;
  const rv *v = &p->g->e.attr[var];
  for (uint32_t i = 0; i < r->nwhere && !p->sized[var]; i++)
    if (r->where_var[i] == var && !r->where_each[i]) return integer(p, r->where[i]);
  int64_t is = v->kind == 'i' && v->i > 0 ? v->i : SOME;
  if (!p->sized[var]) p->size[var] = poly_var(&p->s, poly_size(&p->s, is, 1));
  p->sized[var] = true;
  return p->size[var];
}
static poly integer(lprover *p, const rx *x) {
  if (x->kind == RX_LIT && x->lit.kind == 'i') return poly_int(x->lit.i);
  if (x->kind == RX_VAR) return integer_named(p, x->var);
  if (x->kind == RX_CALL) return integer_call(p, x);
  poly_stuck(&p->s, "an integer of another kind");
}

/* ---------------------------------------------------------------- conditions */
static void divides(lprover *p, const rx *c) {
  poly d = integer(p, c->kid[0]), n = integer(p, c->kid[1]);
  int64_t by = poly_value(&p->s, &d), of = poly_value(&p->s, &n);
  if (by < 1 || of % by) poly_stuck(&p->s, "a condition that the instance does not meet");
  poly q = poly_var(&p->s, poly_size(&p->s, of / by, 1)), is = poly_mul(&p->s, &d, &q);
  poly_assume_equal(&p->s, &n, &is);
}
static void one_condition(lprover *p, const rx *c, bool needed) {
  const char *f = c->kind == RX_CALL ? c->fun->name : "";
  uint32_t at, a, b;
  for (uint32_t i = 0; !strcmp(f, "and") && i < c->n; i++) one_condition(p, c->kid[i], needed);
  bool one = c->kind == RX_CALL && c->n && c->kid[0]->kind == RX_VAR;
  if (one && !strcmp(f, "free") && c->kid[1]->kind == RX_VAR && loop_number(p, c->kid[1]->var, &at))
    p->gone[c->kid[0]->var] |= 1u << at;
  if (!needed) return; /* what a guard says is known only where typing says so, too */
  if (one && !strcmp(f, "merges")) p->merges = c->kid[0]->var;
  if (!strcmp(f, "divides")) divides(p, c);
  if (one && !strcmp(f, "slides") && p->nslide < 8 && loop_number(p, c->kid[1]->var, &a) &&
      loop_number(p, c->kid[2]->var, &b))
    p->slide[p->nslide++] = (lslide){c->kid[0]->var, a, b};
}
/* Says a condition that what is divided is of floats? */
static bool of_floats(const rx *c) {
  const char *f = c->kind == RX_CALL ? c->fun->name : "";
  bool any = !strcmp(f, "is-type") && c->kid[1]->lit.name && c->kid[1]->lit.name[0] == 'f';
  for (uint32_t i = 0; !strcmp(f, "and") && i < c->n; i++) any |= of_floats(c->kid[i]);
  return any;
}
static void conditions(lprover *p) {
  const rule *r = p->r;
  for (uint32_t i = 0; i < r->ncond; i++)
    if (i != p->g->skip) one_condition(p, r->cond[i], true);
  for (uint32_t i = 0; i < r->nguard; i++) one_condition(p, r->guard[i], false);
}

/* ---------------------------------------------------------------- loops */
static uint32_t new_loop(lprover *p, uint32_t var, const poly *extent) {
  if (p->nloop == L_MOST) poly_stuck(&p->s, "too many loops");
  p->loop[p->nloop].var = var, p->loop[p->nloop].extent = *extent;
  return p->nloop++;
}
static poly any_size(lprover *p) { return poly_var(&p->s, poly_size(&p->s, 2, 1)); }
/* A loop of the left side, or a row as one loop of all its points. */
static uint32_t left_loop(lprover *p, const lloop *x, lenv *e) {
  uint32_t at;
  if (x->kind != LL_ROW && x->kind != LL_LOOP) poly_stuck(&p->s, "a row of chosen loops");
  if (!loop_number(p, x->var, &at)) {
    poly extent = x->kind == LL_LOOP && x->extent ? integer(p, x->extent) : any_size(p);
    at = new_loop(p, x->var, &extent);
    p->nleft = p->nloop;
  }
  e->at[at] = poly_var(&p->s, poly_index(&p->s, &p->loop[at].extent)), e->has[at] = true;
  return at;
}
/* Where a loop of the right side lies among all loops. */
static uint32_t right_loop(lprover *p, const lloop *x, poly *extent) {
  uint32_t at;
  if (x->kind != LL_ROW && x->kind != LL_LOOP) poly_stuck(&p->s, "a row of chosen loops");
  bool known = loop_number(p, x->var, &at);
  if (x->kind == LL_LOOP && x->extent) *extent = integer(p, x->extent);
  else if (known) *extent = p->loop[at].extent;
  else poly_stuck(&p->s, "a loop without an extent");
  if (!known) at = new_loop(p, x->var, extent);
  return at;
}
static void must_lie(lprover *p, const poly *at, const poly *extent) {
  poly one = poly_int(1), room = poly_add(&p->s, extent, at, -1);
  room = poly_add(&p->s, &room, &one, -1);
  if (!poly_natural(&p->s, at) || !poly_natural(&p->s, &room))
    poly_stuck(&p->s, "an index is not shown to lie in its loop");
}
static poly index_at(lprover *p, const lix *x, const lenv *e) {
  uint32_t at;
  if (x->kind == LIX_NUMBER) return integer(p, x->number);
  if (x->kind == LIX_LOOP) {
    if (!loop_number(p, x->var, &at) || !e->has[at]) poly_stuck(&p->s, "a loop that is not there");
    return e->at[at];
  }
  if (x->kind == LIX_FIRST || x->kind == LIX_BEYOND)
    poly_stuck(&p->s, "an index beyond its loop, or found by guards");
  poly a = index_at(p, x->kid[0], e);
  if (x->kind == LIX_WITHIN) {
    poly n = index_at(p, x->kid[1], e);
    must_lie(p, &a, &n);
    return a;
  }
  poly b = index_at(p, x->kid[1], e);
  switch (x->kind) {
  case LIX_ADD: return poly_add(&p->s, &a, &b, 1);
  case LIX_SUB: return poly_add(&p->s, &a, &b, -1);
  case LIX_MUL: return poly_mul(&p->s, &a, &b);
  case LIX_DIV: return poly_div(&p->s, &a, &b);
  default: return poly_mod(&p->s, &a, &b);
  }
}

/* ---------------------------------------------------------------- expressions */
static lval side(lprover *p, const lx *x, const lenv *e, bool left);
static lval reduction(lprover *p, const lx *x, const lenv *e, bool left) {
  lenv in = *e;
  lfold f = {.var = x->var, .op = x->var == TARN_NONE ? x->op : 0};
  for (uint32_t i = 0; i < x->nloop; i++) {
    poly extent;
    uint32_t at;
    if (left) at = left_loop(p, &x->loop[i], &in);
    else {
      at = right_loop(p, &x->loop[i], &extent);
      in.at[at] = poly_var(&p->s, poly_index(&p->s, &extent)), in.has[at] = true;
    }
    if (f.n == L_LIST) poly_stuck(&p->s, "a reduction over many loops");
    f.loop[f.n++] = in.at[at].m[0].v[0];
  }
  f.body = side(p, x->kid[0], &in, left);
  return fold_value(p, f);
}
/* What a kernel computes, read where it stands. */
static lval kernel(lprover *p, const lx *x, const lenv *e) {
  for (uint32_t i = 0; i < x->nloop; i++) {
    const lloop *l = &x->loop[i];
    poly extent;
    if (l->kind == LL_ON || l->kind == LL_OFF) continue; /* loops that are there anyway */
    uint32_t at = right_loop(p, l, &extent);
    if (!e->has[at]) poly_stuck(&p->s, "a kernel is read at no value of a loop");
    must_lie(p, &e->at[at], &extent);
  }
  return side(p, x->kid[0], e, false);
}
static lval elsewhere(lprover *p, const lx *x, const lenv *e) {
  lenv in = *e;
  for (uint32_t i = 0; i < x->nloop; i++) {
    const lloop *l = &x->loop[i];
    uint32_t at;
    if (l->kind != LL_ROW && l->kind != LL_LOOP) poly_stuck(&p->s, "a row of chosen loops");
    poly is = index_at(p, l->ix, e);
    if (!loop_number(p, l->var, &at)) at = new_loop(p, l->var, &is);
    in.at[at] = is, in.has[at] = true;
  }
  return side(p, x->kid[0], &in, false);
}
static lval operator(lprover *p, const lx *x, const lenv *e, bool left) {
  lval kid[3];
  for (uint32_t i = 0; i < x->n; i++) kid[i] = side(p, x->kid[i], e, left);
  lval v = op_value(p, x, kid);
  if (left && x->name != TARN_NONE) p->named[x->name] = true, p->name[x->name] = v;
  return v;
}
static lval side(lprover *p, const lx *x, const lenv *e, bool left) {
  lval kid;
  switch (x->kind) {
  case LX_ANY:
    if (p->named[x->var]) return p->name[x->var];
    return read_value(p, LA_READ, x->var, e, NULL);
  case LX_NUMBER:
    if (!x->counted) return number_value(x->value);
    poly n = integer(p, x->counted);
    return poly_value_of(p, &n);
  case LX_OP: return operator(p, x, e, left);
  case LX_FOLD: return reduction(p, x, e, left);
  case LX_THEN: kid = side(p, x->kid[0], e, left); return read_value(p, LA_THEN, x->var, e, &kid);
  case LX_AT: return elsewhere(p, x, e);
  case LX_FOR:
  case LX_STAGE:
  case LX_SHARED: return kernel(p, x, e);
  case LX_KEPT: return side(p, x->kid[0], e, left);
  default: poly_stuck(&p->s, "elements of tables, or beside a tensor");
  }
}

/* ---------------------------------------------------------------- the rule */
/* The loops of the outermost kernel, some left out, come in the left side's order. */
static void must_follow(lprover *p, const lx *x) {
  uint32_t from = 0, at;
  while (x->kind == LX_AT) x = x->kid[0];
  for (uint32_t i = 0; x->kind == LX_FOR && i < x->nloop; i++) {
    if (!loop_number(p, x->loop[i].var, &at) || at >= p->nown) continue;
    if (at < from) poly_stuck(&p->s, "the result's loops in another order");
    from = at + 1;
  }
}
void prove_loops(tarn_ctx *cx, gen *g) {
  lprover *p = TARN_NEW(cx, lprover);
  *p = (lprover){.g = g, .r = g->r, .cx = cx, .merges = TARN_NONE};
  const loops *l = g->r->loops;
  lenv e = {0};
  p->s.cx = cx, p->real = g->r->numeric != TARN_RULE_EXACT;
  p->ids = tarn_intern_new(cx), p->ranks = tarn_intern_new(cx);
  const lx *left = l->left, *right = l->right;
  for (uint32_t i = 0; i < g->r->ncond; i++) p->floats |= i != g->skip && of_floats(g->r->cond[i]);
  if (left->kind == LX_FOR) {
    for (uint32_t i = 0; i < left->nloop; i++) left_loop(p, &left->loop[i], &e);
    p->nown = p->nloop, left = left->kid[0];
  }
  side(p, left, &e, true); /* for its loops, */
  conditions(p);
  must_follow(p, right);
  side(p, right, &e, false), side(p, left, &e, true); /* and for what does not depend on them */
  lval b = side(p, right, &e, false), a = side(p, left, &e, true);
  if (!same_value(&a, &b)) poly_stuck(&p->s, "the sides are not shown to be equal");
}
