/* Terms over an interpretation, smallest first, with only smallest terms as operands: a term of
 * which a part has the same values as a smaller one is equal to one with that part replaced. A term
 * with the values of a smaller one is a candidate; one that differs only where a condition fails is
 * a candidate for a conditional rule. */
#include "lab/learn.h"
#include "base/limit.h"
#include <math.h>
#include <string.h>

enum { L_TERMS = 4000000, L_ALL = 64, L_CORNERS = 16, L_RANDOM = 24 };

bool learn_late(const learn *l) {
  return tarn_late(l->cx) || (l->deadline > 0 && tarn_now() > l->deadline);
}

/* ---------------------------------------------------------------- what is asked */

static const tarn_sx *option(const learn *l, const char *name) {
  const tarn_sx *s = free_of(l->rs)->learn;
  for (uint32_t i = 1; s && i + 1 < s->n; i += 2)
    if (tarn_sx_atom_is(s->kid[i], name)) return s->kid[i + 1];
  return NULL;
}
static uint32_t limit_of(const learn *l, const char *name, uint32_t given, uint32_t usual,
                         uint32_t most) {
  const tarn_sx *s = option(l, name);
  if (s && (s->kind != TARN_SX_INT || s->i < 1 || s->i > most))
    tarn_sx_error(l->cx, s, "expected a number of 1 to %u", most);
  uint32_t v = given ? given : s ? (uint32_t)s->i : usual;
  if (v > most) tarn_raise(l->cx, TARN_USAGE, "rules learn: at most %u, not %u", most, v);
  return v;
}
static void known_options(const learn *l) {
  static const char *const names[] = {":variables", ":size", ":constants", ":operators",
                                      ":conditions"};
  const tarn_sx *s = free_of(l->rs)->learn;
  for (uint32_t i = 1; s && i < s->n; i += 2) {
    bool ok = i + 1 < s->n;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
      if (ok && tarn_sx_atom_is(s->kid[i], names[k])) goto next;
    tarn_sx_error(l->cx, s->kid[i],
                  "expected :variables, :size, :constants, :operators or :conditions, and a value");
  next:;
  }
}
static bool in_words(const char *words, const char *name) {
  size_t n = strlen(name);
  for (const char *p = words; (p = strstr(p, name)); p += n)
    if ((p == words || p[-1] == ' ') && (!p[n] || p[n] == ' ')) return true;
  return false;
}
static bool in_list(const tarn_sx *s, const char *name) {
  for (uint32_t i = 0; i < s->n; i++)
    if (!strcmp(s->kid[i]->text, name)) return true;
  return false;
}

static void add_op(learn *l, lop o) {
  o.symbol = tarn_intern_add(free_of(l->rs)->symbol, o.name, strlen(o.name));
  tarn_push(l->cx, &l->op, o);
}
static void operators(learn *l) {
  uint32_t variable[R_CLASSES];
  const tarn_sx *consts = option(l, ":constants"), *ops = option(l, ":operators");
  lgraph_symbols(l->rs, variable);
  for (uint32_t i = 0; i < l->nvar; i++) {
    lop o = {.name = tarn_format(l->cx, "?%c", 'a' + (int)i), .symbol = variable[i], .var = i};
    tarn_push(l->cx, &l->op, o);
  }
  for (uint32_t i = 0; consts && i < consts->n; i++) {
    lop o = {.name = consts->kid[i]->text, .var = TARN_NONE};
    if (!meaning_number(l->m, o.name, &o.value))
      tarn_sx_error(l->cx, consts->kid[i], "is no value of the domain");
    add_op(l, o);
  }
  for (uint32_t i = 0; i < l->m->def.n; i++) {
    const mdef *d = &l->m->def.p[i];
    bool asked =
        l->o->operators ? in_words(l->o->operators, d->name) : !ops || in_list(ops, d->name);
    lop o = {.name = d->name, .arity = d->arity, .def = d, .var = TARN_NONE};
    if (!d->predicate && asked) add_op(l, o);
  }
  if (l->op.n == l->nvar) tarn_raise(l->cx, TARN_USAGE, "rules learn: no operators to learn about");
}
/* The condition over ?x, or over ?x and ?y. */
static const mexpr *predicate(learn *l, const tarn_sx *s, uint32_t *arity) {
  rule two = {.ncls = 2, .cls_name = {"?x", "?y"}};
  const char *why = NULL;
  for (*arity = 1; *arity <= 2; ++*arity) {
    const char *text = tarn_format(l->cx, *arity == 1 ? "(%s ?x)" : "(%s ?x ?y)", s->text);
    const tarn_sx *c = tarn_sx_read(l->cx, text, strlen(text), s->file)->kid[0];
    why = NULL;
    const mexpr *e = meaning_condition(l->rs, &two, c, &why);
    if (!why) return e;
  }
  tarn_sx_error(l->cx, s, "%s", why);
}
static void add_fact(learn *l, uint32_t cond, uint32_t v, uint32_t w) {
  lfact f = {cond, v, w};
  if (l->fact.n == 64)
    tarn_raise(l->cx, TARN_USAGE, "rules learn: more than 64 conditions on variables");
  tarn_push(l->cx, &l->fact, f);
}
static void predicates(learn *l) {
  const tarn_sx *s = option(l, ":conditions");
  uint64_t all = 0;
  tarn_push(l->cx, &l->usual_case, all);
  for (uint32_t i = 0; s && i < s->n; i++) {
    uint32_t arity, from = l->fact.n;
    if (i == L_CONDS) tarn_sx_error(l->cx, s, "at most %d conditions", L_CONDS);
    l->predicate[i] = predicate(l, s->kid[i], &arity);
    tarn_push(l->cx, &l->cond, s->kid[i]->text);
    for (uint32_t v = 0; v < l->nvar; v++)
      for (uint32_t w = 0; w < (arity == 1 ? 1 : l->nvar); w++)
        if (arity == 1 || v != w) add_fact(l, i, v, arity == 1 ? TARN_NONE : w);
    for (uint32_t k = from; k < l->fact.n; k++) {
      uint64_t alone = UINT64_C(1) << k;
      if (arity == 1) all |= alone;
      else tarn_push(l->cx, &l->usual_case, alone);
    }
  }
  l->usual_case.p[0] = all;
}
static bool holds(const learn *l, const lfact *f, const mval *var) {
  mval a[2] = {var[f->v], f->w == TARN_NONE ? var[f->v] : var[f->w]};
  return m_truth(meaning_eval(l->m, l->predicate[f->cond], a));
}
bool learn_assumed(const learn *l, uint64_t assume, const mval *var) {
  for (uint32_t i = 0; i < l->fact.n; i++)
    if (assume >> i & 1 && !holds(l, &l->fact.p[i], var)) return false;
  return true;
}

/* ---------------------------------------------------------------- samples */

static void samples(learn *l) {
  lsamples *s = &l->samples;
  uint64_t values = m_values(l->m), all = 1, seed = tarn_hash_mix(l->o->seed, 77);
  uint32_t corners = 0;
  mval v;
  for (uint32_t i = 0; i < l->nvar && all <= L_ALL; i++) all = values ? all * values : L_ALL + 1;
  while (m_corner(l->m, corners, &v)) corners++;
  s->nvar = l->nvar;
  s->n = all <= L_ALL ? (uint32_t)all : L_CORNERS + L_RANDOM;
  s->var = tarn_new_array(l->cx, s->n, sizeof *s->var);
  for (uint32_t i = 0; i < s->n; i++) {
    uint64_t k = i;
    for (uint32_t j = 0; j < l->nvar; j++, k /= values ? values : 1)
      if (all <= L_ALL) s->var[i][j] = (mval){(int64_t)(k % values), 1};
      else if (i < L_CORNERS && corners)
        m_corner(l->m, (uint32_t)(tarn_random(&seed) % (corners < 4 ? corners : 4)), &s->var[i][j]);
      else s->var[i][j] = m_random(l->m, &seed);
  }
}

/* ---------------------------------------------------------------- terms */

void learn_print(const learn *l, tarn_buf *b, uint32_t term, const uint8_t *name) {
  const lterm *t = &l->term.p[term];
  const lop *o = &l->op.p[t->op];
  if (o->var != TARN_NONE) tarn_buf_str(b, l->op.p[name[o->var]].name);
  else tarn_buf_fmt(b, "%s%s", o->arity ? "(" : "", o->name);
  for (uint32_t i = 0; i < o->arity; i++) tarn_buf_str(b, " "), learn_print(l, b, t->kid[i], name);
  if (o->arity) tarn_buf_str(b, ")");
}
/* New numbers of variables in the order in which they come, and the term as bytes. */
static void rename_in(const learn *l, uint32_t term, lpair *p, tarn_buf *key) {
  const lterm *t = &l->term.p[term];
  const lop *o = &l->op.p[t->op];
  uint8_t code = (uint8_t)t->op;
  if (o->var != TARN_NONE) {
    if (p->name[o->var] == UINT8_MAX) p->name[o->var] = (uint8_t)p->seen++;
    code = p->name[o->var];
  }
  tarn_buf_add(key, (const char *)&code, 1);
  for (uint32_t i = 0; i < o->arity; i++) rename_in(l, t->kid[i], p, key);
}
static bool is_leaf(const learn *l, uint32_t term) {
  return l->op.p[l->term.p[term].op].arity == 0;
}

/* Is it the first pair like this, and can one side be found from the other? */
static bool fresh_pair(learn *l, lpair *p) {
  tarn_buf key = {.cx = l->cx};
  memset(p->name, 0xff, sizeof p->name);
  p->seen = 0;
  uint32_t vl = l->term.p[p->l].vars, vr = l->term.p[p->r].vars;
  if ((vr & ~vl) && ((vl & ~vr) || is_leaf(l, p->r))) return false;
  tarn_mark mark = tarn_arena_mark(l->cx);
  rename_in(l, p->l, p, &key);
  rename_in(l, p->r, p, &key);
  tarn_buf_add(&key, (const char *)&p->assume, sizeof p->assume);
  bool known = tarn_intern_find(l->seen, key.p, key.n) != TARN_NONE;
  uint8_t bytes[128];
  size_t n = key.n < sizeof bytes ? key.n : sizeof bytes;
  memcpy(bytes, key.p, n);
  tarn_release(l->cx, mark);
  if (!known) tarn_intern_add(l->seen, bytes, n);
  p->vars = p->seen, p->size = l->term.p[p->l].size + l->term.p[p->r].size;
  return !known;
}

/* What values are told apart by. Reals are rounded to 24 bits, after what would be 0 but for
 * rounding is 0: equal ones differ by far less, so they hardly ever get two keys; ones that only
 * seem equal are found out when the rule is checked. */
static mval key_of(const learn *l, mval v) {
  int e;
  if (l->m->domain != M_REAL || !m_has(v)) return v;
  double x = m_double(v);
  if (fabs(x) < 1e-9) return m_real(0);
  frexp(x, &e);
  return m_real(ldexp(floor(ldexp(x, 24 - e) + 0.3819), e - 24));
}

/* Do the samples agree where these conditions hold, and do they hold often enough? */
static bool agrees(const learn *l, uint64_t assume, uint32_t a, uint32_t b) {
  const mval *x = l->term.p[a].value, *y = l->term.p[b].value;
  uint32_t vars = l->term.p[a].vars | l->term.p[b].vars, kept = 0;
  for (uint32_t i = 0; i < l->fact.n; i++) {
    const lfact *f = &l->fact.p[i];
    if (assume >> i & 1 && (!(vars >> f->v & 1) || (f->w != TARN_NONE && !(vars >> f->w & 1))))
      return false;
  }
  for (uint32_t s = 0; s < l->samples.n; s++) {
    if (!learn_assumed(l, assume, l->samples.var[s])) continue;
    mval kx = key_of(l, x[s]), ky = key_of(l, y[s]);
    if (kx.n != ky.n || kx.d != ky.d) return false;
    kept++;
  }
  return kept > l->samples.n / 4;
}
/* The fewest conditions on variables under which the samples agree, of many at most two; 0: there
 * are none. */
static uint64_t explain(const learn *l, uint32_t a, uint32_t b) {
  uint32_t bits = l->fact.n;
  uint64_t best = 0;
  for (uint64_t m = 1; bits < 13 && m < UINT64_C(1) << bits; m++)
    if ((!best || __builtin_popcountll(m) < __builtin_popcountll(best)) && agrees(l, m, a, b))
      best = m;
  for (uint32_t i = 0; i < bits && bits >= 13 && !best; i++)
    if (agrees(l, UINT64_C(1) << i, a, b)) best = UINT64_C(1) << i;
  for (uint32_t i = 0; i < bits && bits >= 13; i++)
    for (uint32_t k = 0; k < i && !best; k++) {
      uint64_t m = UINT64_C(1) << i | UINT64_C(1) << k;
      if (agrees(l, m, a, b)) best = m;
    }
  return best;
}
static uint64_t renamed(const learn *l, uint64_t assume, const uint8_t *name) {
  uint64_t r = 0;
  for (uint32_t i = 0; i < l->fact.n; i++) {
    const lfact *f = &l->fact.p[i];
    uint32_t v = name[f->v], w = f->w == TARN_NONE ? TARN_NONE : name[f->w];
    for (uint32_t k = 0; assume >> i & 1 && k < l->fact.n; k++) {
      const lfact *o = &l->fact.p[k];
      if (o->cond == f->cond && o->v == v && o->w == w) r |= UINT64_C(1) << k;
    }
  }
  return r;
}
/* A new smallest term that agrees with an earlier one where the conditions hold. */
static void conditional_in(learn *l, uint32_t t, const mval *v, uint32_t which) {
  mval usual[L_ALL + 1] = {{which, 1}};
  uint32_t n = 1;
  uint64_t all = l->usual_case.p[which];
  for (uint32_t s = 0; all && s < l->samples.n; s++)
    if (learn_assumed(l, all, l->samples.var[s])) usual[n++] = key_of(l, v[s]);
  if (n == 1) return;
  uint32_t id = tarn_intern_add(l->usual, usual, n * sizeof *usual);
  if (id == l->usual_rep.n) {
    tarn_push(l->cx, &l->usual_rep, t);
    return;
  }
  lpair p = {.l = t, .r = l->usual_rep.p[id], .assume = explain(l, t, l->usual_rep.p[id])};
  if (!p.assume || !fresh_pair(l, &p)) return;
  p.assume = renamed(l, p.assume, p.name);
  tarn_push(l->cx, &l->conditional, p);
}
static void conditional(learn *l, uint32_t t, const mval *v) {
  for (uint32_t i = 0; i < l->usual_case.n; i++) conditional_in(l, t, v, i);
}

static bool evaluate(learn *l, const lterm *t, mval *v) {
  const lop *o = &l->op.p[t->op];
  bool any = false;
  for (uint32_t s = 0; s < l->samples.n; s++) {
    mval a[3];
    for (uint32_t i = 0; i < o->arity; i++) a[i] = l->term.p[t->kid[i]].value[s];
    v[s] = o->var != TARN_NONE ? l->samples.var[s][o->var]
           : o->def            ? meaning_apply(l->m, o->def, a)
                               : o->value;
    if (v[s].d == M_UNKNOWN) return l->report.too_large++, false;
    any |= m_has(v[s]), l->partial |= !m_has(v[s]);
  }
  return any;
}
static void consider(learn *l, lterm t) {
  mval v[L_ALL], key[L_ALL];
  const lop *o = &l->op.p[t.op];
  t.size = 1, t.vars = o->var != TARN_NONE ? 1u << o->var : 0;
  for (uint32_t i = 0; i < o->arity; i++)
    t.size += l->term.p[t.kid[i]].size, t.vars |= l->term.p[t.kid[i]].vars;
  l->report.terms++;
  if (!evaluate(l, &t, v)) return;
  for (uint32_t s = 0; s < l->samples.n; s++) key[s] = key_of(l, v[s]);
  uint32_t id = tarn_intern_add(l->vec, key, l->samples.n * sizeof *key), number = l->term.n;
  if (id < l->rep.n) {
    lpair p = {.l = number, .r = l->rep.p[id]};
    tarn_push(l->cx, &l->term, t);
    if (fresh_pair(l, &p)) tarn_push(l->cx, &l->pair, p);
    else l->term.n--;
    return;
  }
  t.value = tarn_copy(l->cx, v, l->samples.n * sizeof *v);
  tarn_push(l->cx, &l->term, t);
  tarn_push(l->cx, &l->rep, number);
  tarn_push(l->cx, &l->by_size, number);
  if (l->cond.n) conditional(l, number, v);
}

/* Operands of the given sizes together, in all ways. */
static void operands(learn *l, lterm *t, uint32_t k, uint32_t arity, uint32_t left) {
  uint32_t least = k + 1 == arity ? left : 1, most = k + 1 == arity ? left : left - (arity - k - 1);
  for (uint32_t s = least; s <= most && !learn_late(l); s++)
    for (uint32_t i = l->first[s]; i < l->first[s + 1] && l->term.n < L_TERMS; i++) {
      t->kid[k] = l->by_size.p[i];
      if (k + 1 == arity) consider(l, *t);
      else operands(l, t, k + 1, arity, left - s);
    }
}
static void terms_of(learn *l, uint32_t size) {
  l->first[size] = l->by_size.n;
  l->pair.n = 0;
  for (uint32_t i = 0; i < l->op.n; i++) {
    lterm t = {.op = i};
    uint32_t arity = l->op.p[i].arity;
    if (arity == 0 && size == 1) consider(l, t);
    if (arity && size > arity) operands(l, &t, 0, arity, size - 1);
  }
  l->first[size + 1] = l->by_size.n;
}

/* ---------------------------------------------------------------- all of it */

static int by_assumption(uint64_t a, uint64_t b) {
  int na = __builtin_popcountll(a), nb = __builtin_popcountll(b);
  return na != nb ? na - nb : a < b ? -1 : a > b;
}
static void conditional_rules(learn *l) {
  uint64_t done = 0;
  for (bool any = true; any;) {
    uint64_t next = 0;
    for (uint32_t i = 0; i < l->conditional.n; i++) {
      uint64_t a = l->conditional.p[i].assume;
      if ((!done || by_assumption(a, done) > 0) && (!next || by_assumption(a, next) < 0)) next = a;
    }
    any = next && !learn_late(l);
    if (!any) return;
    l->pair.n = 0;
    for (uint32_t i = 0; i < l->conditional.n; i++)
      if (l->conditional.p[i].assume == next) tarn_push(l->cx, &l->pair, l->conditional.p[i]);
    learn_settle(l, l->pair.p, l->pair.n, next);
    done = next;
  }
}
tarn_learn_report tarn_rules_learn(tarn_ruleset *rs, const tarn_learn_options *o) {
  learn *l = TARN_NEW(rs->cx, learn);
  *l = (learn){.cx = rs->cx, .rs = rs, .o = o, .m = free_of(rs)->meaning};
  if (!free_of(rs)->meaning)
    tarn_raise(rs->cx, TARN_USAGE,
               "rules learn: no (interpretation …) says what the operators mean");
  if (rs->rule.n) tarn_raise(rs->cx, TARN_USAGE, "rules learn: the file holds rules already");
  l->deadline = o->seconds > 0 ? tarn_now() + o->seconds : 0;
  known_options(l);
  l->nvar = limit_of(l, ":variables", o->variables, 3, L_VARS);
  l->most = limit_of(l, ":size", o->size, 5, 15);
  operators(l);
  predicates(l);
  samples(l);
  l->vec = tarn_intern_new(l->cx), l->usual = tarn_intern_new(l->cx),
  l->seen = tarn_intern_new(l->cx);
  for (uint32_t size = 1; size <= l->most && !learn_late(l); size++) {
    terms_of(l, size);
    learn_settle(l, l->pair.p, l->pair.n, 0);
  }
  conditional_rules(l);
  learn_minimise(l);
  learn_complete(l);
  l->report.late = learn_late(l);
  l->report.values = l->by_size.n;
  return l->report;
}
