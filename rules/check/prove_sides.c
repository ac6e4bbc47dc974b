/* The two sides of a rule over loops as values; see prove_loops.c. */
#include "rules/check/prove_loops.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- integers of the rule */
static poly integer(lprover *p, const rx *x);
enum { SOME = 12 }; /* of each, as an example; it divides itself */
static poly points(lprover *p, const rx *x) {
  uint32_t at;
  if (x->kind != RX_VAR || !loop_number(p, x->var, &at)) poly_stuck(&p->s, "loops that are chosen");
  return p->loop[at].extent;
}
/* How far apart the values of a loop are that a guard leaves, or how many: some size. */
static poly asked_size(lprover *p, const rx *x) {
  for (uint32_t i = 0; i < p->nasked; i++)
    if (p->asked[i].of == x) return poly_var(&p->s, p->asked[i].var);
  if (p->nasked == sizeof p->asked / sizeof *p->asked) poly_stuck(&p->s, "too many sizes");
  uint32_t var = poly_size(&p->s, SOME, 1);
  p->asked[p->nasked].of = x, p->asked[p->nasked++].var = var;
  return poly_var(&p->s, var);
}
static poly integer_call(lprover *p, const rx *x) {
  const char *f = x->fun->name;
  if (!strcmp(f, "stride") || !strcmp(f, "trips")) return asked_size(p, x);
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
static poly integer_named(lprover *p, uint32_t var) {
  const rule *r = p->r;
  for (uint32_t i = 0; i < r->nwhere && !p->sized[var]; i++)
    if (r->where_var[i] == var && !r->where_each[i]) return integer(p, r->where[i]);
  if (!p->sized[var]) p->size[var] = poly_var(&p->s, poly_size(&p->s, SOME, 1));
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
static void add_fact(lprover *p, uint32_t kind, uint32_t a, uint32_t b, uint32_t type) {
  if (p->nfact < L_FACTS) p->fact[p->nfact++] = (lfact){kind, a, b, type};
}
/* As op_value() numbers them. */
static uint32_t type_number(const rx *x) {
  tarn_dtype t;
  if (x->kind == RX_VAR) return 1000 + x->var;
  return x->kind == RX_LIT && x->lit.name && tarn_dtype_parse(x->lit.name, &t) ? t : TARN_NONE;
}
/* What a condition says of the values of expressions. */
static void said_of_values(lprover *p, const rx *c) {
  static const struct {
    const char *name;
    uint32_t kind, n;
  } says[] = {{"survives", LF_SURVIVES, 2},  {"widens", LF_WIDENS, 2},
              {"is-zero", LF_ZERO, 1},       {"is-type", LF_TYPED, 2},
              {"sum-fits", LF_SUM, 2},       {"difference-fits", LF_DIFFERENCE, 2},
              {"is-power-of-two", LF_TWO, 1}};
  for (uint32_t i = 0; i < sizeof says / sizeof *says; i++) {
    if (strcmp(c->fun->name, says[i].name)) continue;
    bool two = says[i].kind == LF_SUM || says[i].kind == LF_DIFFERENCE;
    bool type = says[i].n == 2 && !two;
    add_fact(p, says[i].kind, c->kid[0]->var, two ? c->kid[1]->var : TARN_NONE,
             type ? type_number(c->kid[1]) : TARN_NONE);
  }
}
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
  /* what a guard says is known only where typing says so, too: without it no right side is made,
   * because of its type, or of a table's number of rows */
  bool typing = !strcmp(f, "is-type") || (!strcmp(f, "divides") && p->r->loops->ntable);
  if (!needed && !typing) return;
  if (one) said_of_values(p, c);
  if (one && !strcmp(f, "merges")) p->merges = c->kid[0]->var;
  if (!strcmp(f, "divides")) divides(p, c);
  if (one && !strcmp(f, "sparse") && loop_number(p, c->kid[1]->var, &at))
    add_fact(p, LF_SPARSE, c->kid[0]->var, at, TARN_NONE);
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
/* Has it an operator of floats alone? */
static bool takes_floats(const lx *x) {
  static const bool alone[] = {
#define FX(ID, name, n, gives, floats, ints, ...) [TARN_FX_##ID] = FLOATS_##floats##ints,
#define FLOATS_YN                                 true
#define FLOATS_YY                                 false
#define FLOATS_NN                                 false
#define FLOATS_NY                                 false
#include "access/fx.def"
#undef FX
  };
  bool any = x->kind == LX_OP && alone[x->op];
  for (uint32_t i = 0; !any && i < x->n; i++) any = takes_floats(x->kid[i]);
  return any;
}
static void conditions(lprover *p) {
  const rule *r = p->r;
  for (uint32_t i = 0; i < r->ncond; i++)
    if (i != p->g->skip) one_condition(p, r->cond[i], true);
  for (uint32_t i = 0; i < r->nguard; i++)
    if (r->ncond + i != p->g->skip) one_condition(p, r->guard[i], false);
}

/* ---------------------------------------------------------------- loops */
static uint32_t new_loop(lprover *p, uint32_t var, const poly *extent) {
  if (p->nloop == L_MOST) poly_stuck(&p->s, "too many loops");
  p->loop[p->nloop].var = var, p->loop[p->nloop].extent = *extent;
  return p->nloop++;
}
static poly any_size(lprover *p) { return poly_var(&p->s, poly_size(&p->s, 2, 1)); }
/* An index of this extent, the same one each time that this is looked at. */
static uint32_t index_of(lprover *p, const void *of, uint32_t k, const poly *extent) {
  for (uint32_t i = 0; i < p->nindex; i++)
    if (p->index[i].of == of && p->index[i].k == k &&
        poly_equal(&p->s, &p->s.var[p->index[i].var].a, extent))
      return p->index[i].var;
  if (p->nindex == L_STANDARD) poly_stuck(&p->s, "too many indices");
  p->index[p->nindex].of = of, p->index[p->nindex].k = k;
  return p->index[p->nindex++].var = poly_index(&p->s, extent);
}
typedef struct entry { /* a loop of a list, and its extent there */
  uint32_t at;
  poly extent;
} entry;
typedef struct entries {
  uint32_t n;
  entry e[L_LIST];
} entries;
static void add_entry(lprover *p, entries *to, uint32_t at, const poly *extent) {
  if (to->n == L_LIST) poly_stuck(&p->s, "a reduction over many loops");
  to->e[to->n].at = at, to->e[to->n++].extent = *extent;
}
/* Loops of the left side; a row is one loop of all its points, of those that `of` does not name. */
static void left_loops(lprover *p, const lloop *x, uint32_t n, entries *to) {
  for (uint32_t i = 0; i < n; i++, x++) {
    uint32_t at;
    if (x->kind == LL_OF) left_loops(p, x->kid, x->n, to);
    if (!loop_number(p, x->var, &at)) {
      poly extent = x->kind == LL_LOOP && x->extent ? integer(p, x->extent) : any_size(p);
      at = new_loop(p, x->var, &extent);
      p->nleft = p->nloop;
    }
    add_entry(p, to, at, &p->loop[at].extent);
  }
}
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
/* Those of the right side that have an extent there; others are there anyway. */
static void right_loops(lprover *p, const lloop *x, uint32_t n, bool all, entries *to) {
  for (uint32_t i = 0; i < n; i++, x++) {
    poly extent;
    if (x->kind == LL_WITH) right_loops(p, x->kid, x->n, all, to);
    else if (all || (x->kind != LL_ON && x->kind != LL_OFF)) {
      uint32_t at = right_loop(p, x, &extent);
      add_entry(p, to, at, &extent);
    }
  }
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
  if (x->kind == LIX_FIRST) poly_stuck(&p->s, "an index that guards find");
  poly a = index_at(p, x->kid[0], e);
  if (x->kind == LIX_WITHIN ||
      x->kind == LIX_BEYOND) { /* an expression goes on beyond its loops, whatever it is there */
    if (!poly_natural(&p->s, &a)) poly_stuck(&p->s, "an index that may be below 0");
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
typedef struct writing { /* a reduction whose loops may be written out */
  const lx *x;
  entries loops;
  lfold f;
  bool left, out;
} writing;
/* How often the extent holds a part: itself, if it is small, or a factor of it. */
static int64_t steps_of(const writing *w, const poly *extent) {
  int64_t c = extent->n == 1 ? extent->m[0].c : 0;
  return w->out && c > 1 && c <= L_SPREAD ? c : 1;
}
/* Does a guard leave few values of the loop, and is the rest not added? How many. */
static bool trips_of(lprover *p, const lx *body, uint32_t at, poly *n) {
  const rule *r = p->r;
  if (body->kind != LX_ANY || !has_fact(p, LF_SPARSE, body->var, at, TARN_NONE)) return false;
  for (uint32_t i = 0; i < r->nwhere; i++) {
    const rx *is = r->where[i];
    if (is->kind != RX_CALL || strcmp(is->fun->name, "trips") || is->kid[0]->var != body->var ||
        is->kid[1]->var != p->loop[at].var)
      continue;
    *n = asked_size(p, is);
    return true;
  }
  return false;
}
static lval reduced(lprover *p, writing *w, uint32_t i, const lenv *e) {
  if (i == w->loops.n) {
    lfold f = w->f;
    f.body = side(p, w->x->kid[0], e, w->left);
    return f.n ? fold_value(p, f) : f.body;
  }
  lenv in = *e;
  const entry *l = &w->loops.e[i];
  poly extent = poly_now(&p->s, &l->extent);
  in.counts &= ~(1u << l->at);
  if (w->left && trips_of(p, w->x->kid[0], l->at, &extent)) in.counts |= 1u << l->at;
  int64_t steps = steps_of(w, &extent);
  lval sum = {0};
  bool index = steps == 1 || extent.m[0].n;
  extent.m[0].c /= steps;
  uint32_t var = index ? index_of(p, w->x, i, &extent) : 0, n = w->f.n;
  if (index) w->f.loop[w->f.n++] = var;
  for (int64_t k = 0; k < steps; k++) {
    poly at = index ? poly_var(&p->s, var) : poly_int(0);
    in.at[l->at] = index ? poly_add(&p->s, &at, &extent, k) : poly_int(k);
    in.has[l->at] = true;
    lval v = reduced(p, w, i + 1, &in);
    if (steps == 1) sum = v;
    else sum = val_add(p, &sum, &v, 1);
  }
  w->f.n = n;
  return sum;
}
static lval reduction(lprover *p, const lx *x, const lenv *e, bool left) {
  writing w = {.x = x, .left = left};
  w.f = (lfold){.var = x->var, .op = x->var == TARN_NONE ? x->op : 0};
  w.out = p->real && p->r->loops->ntable && x->var == TARN_NONE && x->op == TARN_RED_SUM;
  if (left) left_loops(p, x->loop, x->nloop, &w.loops);
  else right_loops(p, x->loop, x->nloop, true, &w.loops);
  return reduced(p, &w, 0, e);
}
/* What a kernel computes, read where it stands. */
static lval kernel(lprover *p, const lx *x, const lenv *e) {
  entries here = {0};
  for (uint32_t i = 0; i < x->nloop; i++, here.n = 0) {
    right_loops(p, &x->loop[i], 1, false, &here);
    for (uint32_t k = 0; k < here.n; k++) {
      const entry *l = &here.e[k];
      if (!e->has[l->at]) poly_stuck(&p->s, "a kernel is read at no value of a loop");
      must_lie(p, &e->at[l->at], &l->extent);
    }
  }
  return side(p, x->kid[0], e, false);
}
/* The fraction of the least denominator that is rounded to that. */
static int64_t denominator(lprover *p, double v) {
  for (int64_t d = 1; d < 1000; d++)
    if (rint(v * (double)d) / (double)d == v) return d;
  poly_stuck(&p->s, "a number of a table that is no simple fraction");
}
static lval table_entry(lprover *p, const lx *x, const lenv *e) {
  const ltable *t = &p->r->loops->table[x->op];
  int64_t at = 0, i;
  for (uint32_t d = 0; d < t->n; d++) {
    poly ix = index_at(p, x->ix[d], e);
    ix = poly_now(&p->s, &ix);
    if (!poly_constant(&ix, &i) || i < 0 || i >= t->dim[d])
      poly_stuck(&p->s, "an index of a table that is no number");
    at = at * t->dim[d] + i;
  }
  return number_value(p, t->v[at]);
}
/* (within (+ (* INDEX s) (first ?e i)) N), s being its stride: the INDEX-th value of loop i that
 * the guard in ?e leaves. */
static const lix *value_counted(lprover *p, const lix *x, uint32_t at) {
  const lix *sum = x->kind == LIX_WITHIN ? x->kid[0] : x, *times = sum->kid[0],
            *first = sum->kid[1];
  uint32_t of;
  if (sum->kind != LIX_ADD || times->kind != LIX_MUL || first->kind != LIX_FIRST) return NULL;
  if (!loop_number(p, first->var, &of) || of != at) return NULL;
  if (!has_fact(p, LF_SPARSE, first->of, at, TARN_NONE)) return NULL;
  const rx *s = times->kid[1]->number;
  for (uint32_t i = 0; s->kind == RX_VAR && i < p->r->nwhere; i++) {
    const rx *is = p->r->where[i];
    if (p->r->where_var[i] == s->var && is->kind == RX_CALL && !strcmp(is->fun->name, "stride") &&
        is->kid[0]->var == first->of && is->kid[1]->var == first->var)
      return times->kid[0];
  }
  return NULL;
}
static lval elsewhere(lprover *p, const lx *x, const lenv *e) {
  lenv in = *e;
  for (uint32_t i = 0; i < x->nloop; i++) {
    const lloop *l = &x->loop[i];
    uint32_t at;
    if (l->kind != LL_ROW && l->kind != LL_LOOP) poly_stuck(&p->s, "a row of chosen loops");
    const lix *counted = loop_number(p, l->var, &at) ? value_counted(p, l->ix, at) : NULL;
    poly is = index_at(p, counted ? counted : l->ix, e);
    if (!loop_number(p, l->var, &at)) at = new_loop(p, l->var, &is);
    in.at[at] = is, in.has[at] = true;
    in.counts = counted ? in.counts | 1u << at : in.counts & ~(1u << at);
  }
  return side(p, x->kid[0], &in, false);
}
/* The one value of all elements of an expression, which is that expression. */
static bool valued(lprover *p, const rx *x, lval *v, const lenv *e) {
  const rule *r = p->r;
  for (uint32_t i = 0; x && x->kind == RX_VAR && i < r->nwhere; i++) {
    const rx *is = r->where[i];
    if (r->where_var[i] != x->var || is->kind != RX_CALL || strcmp(is->fun->name, "value-of"))
      continue;
    *v = read_value(p, LA_READ, is->kid[0]->var, e, NULL);
    return true;
  }
  return false;
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
    if (p->real && has_fact(p, LF_ZERO, x->var, TARN_NONE, TARN_NONE)) return number_value(p, 0);
    return read_value(p, LA_READ, x->var, e, NULL);
  case LX_PADDED: return read_value(p, LA_READ, x->var, e, NULL);
  case LX_NUMBER:
    if (valued(p, x->counted, &kid, e)) return kid;
    if (!x->counted) return number_value(p, x->value);
    poly n = integer(p, x->counted);
    return poly_value_of(p, &n);
  case LX_OP: return operator(p, x, e, left);
  case LX_FOLD: return reduction(p, x, e, left);
  case LX_THEN: kid = side(p, x->kid[0], e, left); return read_value(p, LA_THEN, x->var, e, &kid);
  case LX_AT: return elsewhere(p, x, e);
  case LX_FOR:
    if (left) { /* a kernel that the nest reads: what it computes, at what the nest reads of it */
      kid = side(p, x->kid[0], e, true);
      if (x->name != TARN_NONE) p->named[x->name] = true, p->name[x->name] = kid;
      return kid;
    } /* fall through */
  case LX_STAGE:
  case LX_SHARED: return kernel(p, x, e);
  case LX_KEPT: return side(p, x->kid[0], e, left);
  case LX_TABLE: return table_entry(p, x, e);
  default: poly_stuck(&p->s, "what lies beside a tensor, or another tensor");
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
/* The least common denominator of products with one entry of each table that is read. */
static void denominators(lprover *p, const lx *x) {
  if (x->kind == LX_TABLE) {
    const ltable *t = &p->r->loops->table[x->op];
    int64_t n = 1, all = 1;
    for (uint32_t d = 0; d < t->n; d++) n *= t->dim[d];
    for (int64_t i = 0; i < n; i++) {
      int64_t d = denominator(p, t->v[i]), a = all, b = d;
      while (b) {
        int64_t rest = a % b;
        a = b, b = rest;
      }
      all = all / a * d;
    }
    if (__builtin_mul_overflow(p->den, all, &p->den) || p->den > 1 << 20)
      poly_stuck(&p->s, "numbers of tables that are no simple fractions");
  }
  for (uint32_t i = 0; i < x->n; i++) denominators(p, x->kid[i]);
}
/* A loop of the result that the right side divides: its residue classes, or parts. */
static void one_part(lprover *p, const lix *x) {
  uint32_t at;
  bool divides = x->kind == LIX_DIV || x->kind == LIX_MOD;
  if (!divides || x->kid[0]->kind != LIX_LOOP || !loop_number(p, x->kid[0]->var, &at)) return;
  if (at >= p->nown || p->ncase == sizeof p->part / sizeof *p->part) return;
  for (uint32_t i = 0; i < p->ncase; i++)
    if (p->part[i].at == at) return;
  lcase c = {.at = at, .by = integer(p, x->kid[1]->number)};
  c.by = poly_now(&p->s, &c.by);
  c.every = poly_constant(&c.by, &c.n);
  c.any = !p->r->loops->ntable;
  poly n = poly_div(&p->s, &p->loop[at].extent, &c.by), all = poly_mul(&p->s, &n, &c.by);
  if (c.any) c.every = false, c.n = 1;
  else if (!c.every && (!poly_constant(&n, &c.n) || !poly_equal(&p->s, &all, &p->loop[at].extent)))
    return;
  if (c.n <= L_SPREAD) p->part[p->ncase++] = c;
}
static void parts_of_index(lprover *p, const lix *x) {
  if (!x) return;
  one_part(p, x);
  for (uint32_t i = 0; i < 2; i++) parts_of_index(p, x->kid[i]);
}
static void find_parts(lprover *p, const lx *x) {
  for (uint32_t i = 0; i < x->nix; i++) parts_of_index(p, x->ix[i]);
  for (uint32_t i = 0; i < x->nloop; i++) parts_of_index(p, x->loop[i].ix);
  for (uint32_t i = 0; i < x->n; i++) find_parts(p, x->kid[i]);
}
typedef struct sides {
  const lx *left, *right;
} sides;
static void same_sides(lprover *p, const sides *s, const lenv *e) {
  side(p, s->right, e, false), side(p, s->left, e, true); /* for what does not depend on loops */
  lval b = side(p, s->right, e, false), a = side(p, s->left, e, true);
  if (!same_value(&a, &b)) poly_stuck(&p->s, "the sides are not shown to be equal");
}
static void in_parts(lprover *p, const sides *s, uint32_t i, const lenv *e);
/* At a quotient and a remainder. */
static void by_remainder(lprover *p, const sides *s, uint32_t i, const lenv *e) {
  const lcase *c = &p->part[i];
  lenv in = *e;
  uint32_t facts = p->s.nfact;
  poly one = poly_int(1), q = poly_var(&p->s, poly_size(&p->s, 0, 0)),
       r = poly_var(&p->s, poly_size(&p->s, 0, 0)), at = poly_mul(&p->s, &q, &c->by);
  in.at[c->at] = at = poly_add(&p->s, &at, &r, 1);
  const poly *bound[] = {&c->by, &p->loop[c->at].extent}, *below[] = {&r, &at};
  for (uint32_t k = 0; k < 2; k++) {
    poly room = poly_add(&p->s, bound[k], below[k], -1);
    room = poly_add(&p->s, &room, &one, -1);
    poly_assume_natural(&p->s, &room);
  }
  in_parts(p, s, i + 1, &in);
  p->s.nfact = facts;
}
/* At each part of the loops that are divided. */
static void in_parts(lprover *p, const sides *s, uint32_t i, const lenv *e) {
  if (i == p->ncase) {
    same_sides(p, s, e);
    return;
  }
  const lcase *c = &p->part[i];
  if (c->any) {
    by_remainder(p, s, i, e);
    return;
  }
  poly one = poly_int(1), extent = p->loop[c->at].extent;
  for (int64_t k = 0; k < c->n; k++) {
    lenv in = *e;
    uint32_t facts = p->s.nfact,
             var = c->every ? poly_size(&p->s, 0, 0) : index_of(p, c, 0, &c->by);
    poly x = poly_var(&p->s, var), most = poly_int(k), *at = &in.at[c->at];
    poly many = poly_mul(&p->s, c->every ? &x : &most, &c->by);
    *at = poly_add(&p->s, &many, c->every ? &most : &x, 1);
    if (c->every) {
      most = poly_add(&p->s, &extent, at, -1);
      most = poly_add(&p->s, &most, &one, -1);
      poly_assume_natural(&p->s, &most);
    }
    in_parts(p, s, i + 1, &in);
    p->s.nfact = facts;
  }
}
void prove_loops(tarn_ctx *cx, gen *g) {
  lprover *p = TARN_NEW(cx, lprover);
  *p = (lprover){.g = g, .r = g->r, .cx = cx, .merges = TARN_NONE};
  const loops *l = g->r->loops;
  lenv e = {0};
  entries own = {0};
  p->s.cx = cx, p->real = g->r->numeric != TARN_RULE_EXACT;
  p->ids = tarn_intern_new(cx), p->ranks = tarn_intern_new(cx), p->folds = tarn_intern_new(cx);
  sides s = {l->left, l->right};
  for (uint32_t i = 0; i < g->r->ncond; i++) p->floats |= i != g->skip && of_floats(g->r->cond[i]);
  p->floats |= takes_floats(s.left) || takes_floats(s.right);
  if (s.left->kind == LX_FOR) {
    left_loops(p, s.left->loop, s.left->nloop, &own);
    for (uint32_t i = 0; i < own.n; i++) {
      poly *at = &e.at[own.e[i].at];
      *at = poly_var(&p->s, index_of(p, s.left, i, &own.e[i].extent)), e.has[own.e[i].at] = true;
    }
    p->nown = p->nloop, s.left = s.left->kid[0];
  }
  side(p, s.left, &e, true); /* for its loops, */
  conditions(p);
  must_follow(p, s.right);
  if (l->ntable) p->den = 1, denominators(p, s.right);
  bool sparse = false;
  for (uint32_t i = 0; i < p->nfact; i++) sparse |= p->fact[i].kind == LF_SPARSE;
  if (l->ntable || sparse) find_parts(p, s.right);
  in_parts(p, &s, 0, &e);
}
