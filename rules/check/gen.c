/* A random instance of a left side.  Types go down the pattern as far as they are known and come
 * back complete; payloads are chosen to fit them.  A condition is tried as soon as all that it
 * mentions is bound, and what was bound last is then chosen again; an equation for a variable is
 * solved instead. */
#include "rules/check/check.h"
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- wanted types */

const want want_any = {.ns = -1, .nc = -1};

const tarn_type *type_at(const gen *g, uint32_t term) { return tarn_term_type(g->L, term); }

want want_of(const tarn_type *t) {
  want w = {.ns = t->ns, .nc = t->n - t->ns};
  memcpy(w.s, t->dim, (size_t)w.ns * sizeof *w.s);
  memcpy(w.c, t->dim + t->ns, (size_t)w.nc * sizeof *w.c);
  return w;
}

static bool want_fits(const want *w, const tarn_type *t) {
  if (t->tuple || (w->ns >= 0 && w->ns != t->ns) || (w->nc >= 0 && w->nc != t->n - t->ns))
    return false;
  if (w->index && tarn_dtype_is_float(t->dtype)) return false;
  for (int i = 0; i < w->ns; i++)
    if (w->s[i] >= 0 && w->s[i] != t->dim[i]) return false;
  for (int i = 0; i < w->nc; i++)
    if (w->c[i] >= 0 && w->c[i] != t->dim[t->ns + i]) return false;
  return true;
}

void want_pin(gen *g, want *w, int least_s, int least_c) {
  static const int many[] = {1, 2, 0, 3};
  if (w->ns < 0) {
    w->ns = many[draw(g, 4)];
    if (w->ns < least_s) w->ns = least_s + (int)draw(g, 2);
    for (int i = 0; i < w->ns; i++) w->s[i] = -1;
  }
  if (w->nc < 0) {
    w->nc = many[draw(g, 4)];
    if (w->nc < least_c) w->nc = least_c + (int)draw(g, 2);
    for (int i = 0; i < w->nc; i++) w->c[i] = -1;
  }
}

uint32_t want_rank(const want *w) { return (uint32_t)(w->ns + w->nc); }
int64_t *want_dim(want *w, uint32_t i) { return (int)i < w->ns ? &w->s[i] : &w->c[(int)i - w->ns]; }

void want_fill(gen *g, want *w) {
  want_pin(g, w, 0, 0);
  for (uint32_t i = 0; i < want_rank(w); i++)
    if (*want_dim(w, i) < 0) *want_dim(w, i) = some_extent(g, want_rank(w));
}

/* ---------------------------------------------------------------- what is bound */

bool gen_bound(const gen *g, const rx *x) {
  if (x->kind == RX_VAR) return g->e.attr[x->var].kind != 0;
  if (x->kind == RX_CLASS) return g->e.cls[x->var] != TARN_NONE;
  if (x->kind == RX_SEG) return g->e.seg[x->var].n != UINT32_MAX;
  for (uint32_t i = 0; i < x->n; i++)
    if (!gen_bound(g, x->kid[i])) return false;
  return true;
}

bool gen_ready(const gen *g, const rpat *p) {
  return p->kind == RP_VAR && g->e.cls[p->var] != TARN_NONE;
}

/* A where-clause gives its variable a value, :each one of several. */
static bool settle_where(gen *g, uint32_t i) {
  const rule *r = g->r;
  rv v;
  if (g->e.attr[r->where_var[i]].kind || !gen_bound(g, r->where[i])) return true;
  if (!rx_eval(&g->e, r->where[i], &v)) return false;
  if (r->where_each[i]) {
    if (v.n == 0) return false;
    v = (rv){.kind = 'i', .i = v.p[draw(g, v.n)]};
  }
  g->e.attr[r->where_var[i]] = v;
  return true;
}

bool gen_settle(gen *g) {
  const rule *r = g->r;
  rv v;
  for (uint32_t i = 0; i < r->nwhere; i++)
    if (!settle_where(g, i)) return false;
  for (uint32_t i = 0; i < r->ncond + r->nguard; i++) {
    if (!gen_bound(g, rule_cond(r, i)) || (i >= r->ncond && g->lax)) continue;
    bool holds = rx_eval(&g->e, rule_cond(r, i), &v) && v.i;
    if (holds == (i == g->skip)) return false;
  }
  return true;
}

/* (= ?v EXPRESSION) with ?v unbound and the rest bound gives ?v. */
static bool solve(gen *g, uint32_t var, rv *out) {
  const rule *r = g->r;
  for (uint32_t i = 0; i < r->ncond + r->nguard; i++) {
    const rx *c = rule_cond(r, i);
    if (i == g->skip || c->kind != RX_CALL || strcmp(c->fun->name, "=") != 0) continue;
    for (uint32_t k = 0; k < 2; k++)
      if (c->kid[k]->kind == RX_VAR && c->kid[k]->var == var && gen_bound(g, c->kid[1 - k]))
        return rx_eval(&g->e, c->kid[1 - k], out);
  }
  return false;
}

bool pay_get(gen *g, const rpat *p, uint32_t i, rv *out) {
  if (i >= p->npay) return false;
  const rx *x = p->pay[i];
  if (x->kind == RX_VAR && !g->e.attr[x->var].kind) return solve(g, x->var, out);
  return gen_bound(g, x) && rx_eval(&g->e, x, out);
}

bool pay_set(gen *g, const rpat *p, uint32_t i, const rv *v) {
  if (i >= p->npay) return true;
  const rx *x = p->pay[i];
  rv had;
  if (x->kind == RX_VAR && !g->e.attr[x->var].kind) return g->e.attr[x->var] = *v, true;
  if (!gen_bound(g, x)) return true; /* an expression: looked at when everything is bound */
  return rx_eval(&g->e, x, &had) && rv_equal(&had, v);
}

/* ---------------------------------------------------------------- leaves */

static const char *var_name(const gen *g, uint32_t var) {
  return var < g->r->ncls ? g->r->cls_name[var] + 1 : tarn_format(g->cx, "x%u", var);
}

/* A term of type t that depends on another one: what a cycle is made of. */
static uint32_t derived(gen *g, uint32_t from, uint32_t type) {
  tarn_lang *L = g->L;
  const tarn_type *t = tarn_type_get(L, type);
  uint32_t sum =
      tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, tarn_reducer_of(L, TARN_RED_SUM, g->dtype));
  tarn_term a = tarn_access(L, 0, from);
  a = tarn_compute(L, sum, &a, 1);
  for (uint32_t i = 0; i < t->n; i++) a = tarn_insert_axis(L, 0, a);
  a = tarn_access(L, t->ns, a);
  return tarn_broadcast(L, t->ns, t->n, t->dim, a);
}

static uint32_t constant(gen *g, uint32_t type, leaf *f) {
  const tarn_type *t = tarn_type_get(g->L, type);
  f->value = some_values(g, t, f, const_values(g));
  const char *name = tarn_format(g->cx, "%s_%u", var_name(g, f->var),
                                 tarn_term_count(g->L)); /* looking for a free name takes long */
  return tarn_constant(g->L, name, f->value, t->ns);
}

/* (within ?var LO HI): a number in the range or next to it; TARN_NONE: nothing asks for one. */
static uint32_t within_told(gen *g, uint32_t var, tarn_dtype t) {
  const rule *r = g->r;
  for (uint32_t i = 0; i < r->ncond + r->nguard; i++) {
    const rx *c = rule_cond(r, i);
    if (c->kind != RX_CALL || strcmp(c->fun->name, "within") != 0 || c->kid[0]->var != var)
      continue;
    int64_t lo = c->kid[1]->lit.i, hi = c->kid[2]->lit.i, few = draw(g, 9);
    int64_t v = few < 2              ? lo - 1 + few
                : few < 4            ? hi + 1 - (few - 2)
                : lo <= 0 && hi > 15 ? (int64_t)draw(g, 16)
                                     : lo + (int64_t)draw(g, (uint32_t)(hi - lo + 1));
    if (tarn_dtype_is_float(t)) return tarn_fx_const(g->L, t, (double)v / (1 + draw(g, 4)));
    return tarn_fx_iconst(g->L, t, v);
  }
  return TARN_NONE;
}

/* Whole numbers: what is computed of them may be exact. */
static uint32_t integers_of(gen *g, uint32_t var, uint32_t type) {
  const tarn_type *t = tarn_type_get(g->L, type);
  uint32_t bytes = tarn_type_tensor(g->L, TARN_I8, t->ns, t->n, t->dim);
  leaf f = {.var = var, .kind = F_WILD, .term = tarn_input(g->L, var_name(g, var), bytes)};
  uint32_t cast = tarn_fx_cast(g->L, t->dtype, tarn_fx_hole(g->L, 0));
  g->leaf[g->nleaf++] = f;
  return tarn_compute(g->L, tarn_fn_map(g->L, cast, 1), &f.term, 1);
}
static bool wants_whole(gen *g, uint32_t type, const want *w) {
  bool real = tarn_dtype_is_float(tarn_type_get(g->L, type)->dtype) && !w->index;
  return g->whole && real && g->nleaf < R_CLASSES && draw(g, 4);
}

/* What the variable stands for: mostly an input. */
static uint32_t make_leaf(gen *g, uint32_t var, uint32_t type, const want *w) {
  leaf f = {.var = var, .kind = F_WILD};
  tarn_dtype t = tarn_type_get(g->L, type)->dtype;
  uint32_t within = within_told(g, var, t), k = draw(g, 8);
  if (within == TARN_NONE && wants_whole(g, type, w)) return integers_of(g, var, type);
  if (w->index) f.kind = F_INDEX, f.below = w->below;
  else if (within != TARN_NONE && k) f.kind = F_UNIFORM, f.uniform = within;
  else if (k < 4 || !tarn_dtype_is_float(tarn_type_get(g->L, type)->dtype)) f.kind = F_WILD;
  else if (k == 4) f.kind = F_FINITE;
  else if (k == 5) f.kind = F_NONNEG;
  else if (k == 6)
    f.kind = F_UNIFORM, f.uniform = some_constant(g, g->r->numeric != TARN_RULE_EXACT);
  else if (!g->far) f.kind = F_CONST; /* long products of constants leave the range in some order */
  if (f.kind == F_CONST) f.term = constant(g, type, &f);
  else if (g->nroot && g->r->nlhs > 1 && f.kind == F_WILD && chance(g, 6)) {
    f.kind = F_DERIVED;
    f.term = derived(g, g->last, type);
  } else f.term = tarn_input(g->L, var_name(g, var), type);
  if (g->nleaf == R_CLASSES) return TARN_NONE;
  for (uint32_t i = 0; i < g->nleaf; i++)
    if (g->leaf[i].term == f.term) return f.term; /* an equal constant */
  g->leaf[g->nleaf++] = f;
  return f.term;
}

uint32_t gen_leaf(gen *g, uint32_t type, bool is_const) {
  leaf f = {.var = TARN_NONE, .kind = F_CONST};
  uint32_t before = g->nleaf;
  if (before == R_CLASSES) return TARN_NONE;
  if (!is_const) {
    uint32_t id = make_leaf(g, g->r->ncls + before, type, &want_any);
    if (g->nleaf > before) g->leaf[before].var = TARN_NONE;
    return id;
  }
  f.var = g->r->ncls + before;
  f.term = constant(g, type, &f);
  f.var = TARN_NONE;
  return (g->leaf[g->nleaf++] = f).term;
}

static uint32_t type_wanted(gen *g, want w, tarn_dtype t) {
  int64_t dim[TARN_MAX_DIMS];
  want_fill(g, &w);
  if (want_rank(&w) > C_RANK + 2) return TARN_NONE;
  int64_t count = 1;
  for (uint32_t i = 0; i < want_rank(&w); i++) dim[i] = *want_dim(&w, i), count *= dim[i];
  if (count > most_elements(g)) return TARN_NONE;
  return tarn_type_tensor(g->L, w.index ? TARN_I64 : t, (uint32_t)w.ns, want_rank(&w), dim);
}

/* (= (FUNCTION ?var) EXPRESSION): the value of the expression. */
static bool told(gen *g, const rx *c, const char *function, uint32_t var, rv *out) {
  if (strcmp(c->fun->name, "=") != 0 || c->kid[0]->kind != RX_CALL ||
      strcmp(c->kid[0]->fun->name, function) != 0)
    return false;
  const rx *of = c->kid[0]->kid[0];
  return of->kind == RX_CLASS && of->var == var && gen_bound(g, c->kid[1]) &&
         rx_eval(&g->e, c->kid[1], out);
}
static void want_dims(gen *g, want *w, const rv *dims) {
  int n = (int)dims->n;
  if (w->ns < 0) w->ns = w->nc < 0 ? (int)draw(g, dims->n + 1) : n - w->nc;
  w->nc = n - w->ns;
  for (int i = 0; i < n && w->ns >= 0 && w->nc >= 0; i++) *want_dim(w, (uint32_t)i) = dims->p[i];
}

/* The type of a variable: one that fits, and is what conditions say of it (the same as another's,
 * element, dims). */
static uint32_t type_told(gen *g, uint32_t var, const want *given) {
  const rule *r = g->r;
  want w = *given;
  tarn_dtype t = g->dtype;
  rv v;
  for (uint32_t i = 0; i < r->ncond + r->nguard; i++) {
    const rx *c = rule_cond(r, i);
    if (i == g->skip || c->kind != RX_CALL) continue;
    for (uint32_t k = 0; k < 2 && strcmp(c->fun->name, "same-type") == 0; k++)
      if (c->kid[k]->var == var && gen_bound(g, c->kid[1 - k]))
        return tarn_term_get(g->L, g->e.cls[c->kid[1 - k]->var])->type;
    if (strcmp(c->fun->name, "element") == 0 && c->kid[0]->var == var)
      tarn_dtype_parse(c->kid[1]->lit.name, &t);
    if (told(g, c, "ns", var, &v) && w.ns < 0) w.ns = (int)v.i, memset(w.s, 0xff, sizeof w.s);
    if (told(g, c, "dims", var, &v)) want_dims(g, &w, &v);
  }
  return w.ns < -1 || w.nc < -1 ? TARN_NONE : type_wanted(g, w, t);
}

static bool gen_var(gen *g, uint32_t var, const want *w, uint32_t *term) {
  renv *e = &g->e;
  if (e->cls[var] != TARN_NONE) {
    *term = e->cls[var];
    return want_fits(w, type_at(g, *term));
  }
  rv saved[R_ATTRS];
  uint32_t far_in = g->far_in;
  memcpy(saved, e->attr, sizeof saved);
  for (int tries = 0; tries < 12; tries++) {
    g->far_in = far_in;
    uint32_t type = type_told(g, var, w), nleaf = g->nleaf;
    if (type != TARN_NONE && !want_fits(w, tarn_type_get(g->L, type))) return false;
    if (type != TARN_NONE && (*term = e->cls[var] = make_leaf(g, var, type, w)) != TARN_NONE &&
        gen_settle(g))
      return true;
    e->cls[var] = TARN_NONE;
    g->nleaf = nleaf;
    memcpy(e->attr, saved, sizeof saved);
  }
  return false;
}

/* ---------------------------------------------------------------- nodes */

static bool gen_node(gen *g, const rpat *p, const want *w, uint32_t *term) {
  made *m = TARN_NEW(g->cx, made);
  if (!op_make(g, p, w, m)) return false;
  *term = g->host.nest.mk(g->host.nest.user, p->op, m->payload, m->kid, m->n);
  if (*term == TARN_NONE || type_at(g, *term)->n > C_RANK + 4) return false;
  if (p->op != TARN_OP_TUPLE && !want_fits(w, type_at(g, *term))) return false;
  g->e.payload[p->var] = m->payload;
  g->e.node[p->var] = *term;
  return gen_settle(g);
}

bool gen_pattern(gen *g, const rpat *p, const want *w, uint32_t *term) {
  if (p->kind == RP_VAR) return gen_var(g, p->var, w, term);
  return p->kind == RP_NODE && gen_node(g, p, w, term);
}

/* ---------------------------------------------------------------- rules */

bool gen_left(gen *g) {
  const rule *r = g->r;
  tarn_r_env_reset(&g->e, r);
  far_begin(g);
  static const tarn_dtype other[] = {TARN_I32, TARN_F16, TARN_BF16};
  uint32_t first = draw(g, 9 * 8), kind = first % 9;
  g->nleaf = g->nroot = 0;
  g->dtype = kind < 6 || g->only_f32 ? TARN_F32 : other[kind - 6];
  some_span(g);
  bool reverse = r->nlhs > 1 && draw(g, 2);
  g->whole = r->numeric == TARN_RULE_REASSOC && first / 9 == 7;
  g->lax = g->skip < r->ncond &&
           draw(g, 2); /* a condition must be needed where the rule is not wanted, too */
  if (r->loops) return gen_loops(g);
  for (uint32_t k = 0; k < r->nlhs; k++) {
    uint32_t i = reverse ? r->nlhs - 1 - k : k;
    if (!gen_pattern(g, r->lhs[i].pat, &want_any, &g->left[i])) return false;
    g->last = g->left[i];
    if (r->lhs[i].var != TARN_NONE) {
      if (g->e.cls[r->lhs[i].var] != TARN_NONE && g->e.cls[r->lhs[i].var] != g->left[i])
        return false;
      g->e.cls[r->lhs[i].var] = g->left[i];
    }
    g->nroot++;
    if (!gen_settle(g)) return false;
  }
  return tarn_r_conditions(&g->e, r, g->skip);
}

bool gen_right(gen *g) {
  const rule *r = g->r;
  if (r->loops) return true; /* made with the left side */
  for (uint32_t i = 0; i < r->nrhs; i++)
    if ((g->right[i] = tarn_r_instantiate(&g->e, r, r->rhs[i].pat)) == TARN_NONE) return false;
  return true;
}
