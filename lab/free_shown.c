/* What the terms of a step show of its rule's conditions, without a graph.
 *
 * A condition that asks what a value is must be decided by the terms: the chain rewrites an operand
 * to its value first. What a condition takes for granted because nothing else is known (x is not 0,
 * two names are not the same) the terms cannot decide, nor what is said of other terms of a class;
 * then it is assumed, and said so with the terms in it. That two terms are equal is shown by a
 * lemma, a chain from the one to the other that stands before. */
#include "lab/free_terms.h"
#include <string.h>

/* ---- saying what is assumed ---- */
static void print_value(tarn_buf *b, free_state *f, const fval *v) {
  tarn_buf_str(b, " ");
  tarn_free_print(f->rs, b, free_value_symbol(f, v));
}
void free_print_pattern(tarn_buf *b, const fcheck *k, const rpat *p) {
  bool named = p->kind == RP_NODE && p->op != TARN_NONE;
  tarn_buf_str(b, " ");
  if (p->kind == RP_VAR && k->cls[p->var]) free_term_print(b, k->cls[p->var]);
  else if (!named) tarn_buf_str(b, "...");
  if (!named) return;
  if (p->n) tarn_buf_str(b, "(");
  tarn_free_print(k->f->rs, b, p->op);
  if (!p->n) return;
  for (uint32_t i = 0; i < p->n; i++) free_print_pattern(b, k, p->kid[i]);
  tarn_buf_str(b, ")");
}
/* The value of a lattice is what rules have said, which terms do not show. */
static bool reads_lattice(const fexpr *x) {
  bool reads = !strcmp(x->fun->sig, "c:v") && x->analysis != TARN_NONE;
  for (uint32_t i = 0; i < x->n && !reads; i++) reads = reads_lattice(x->kid[i]);
  return reads;
}
static void print_expression(tarn_buf *b, const fcheck *k, const fexpr *x) {
  if (!*x->fun->name && x->fun->sig[0] == ':') {
    print_value(b, k->f, &x->lit);
    return;
  }
  if (!*x->fun->name) {
    bool lattice = reads_lattice(x);
    if (lattice) tarn_buf_fmt(b, " (%s", k->f->analysis.p[x->analysis]->name);
    tarn_buf_str(b, " ");
    if (k->cls[x->var]) free_term_print(b, k->cls[x->var]);
    if (lattice) tarn_buf_str(b, ")");
    return;
  }
  tarn_buf_fmt(b, " (%s", x->fun->name);
  for (uint32_t i = 0; i < x->n; i++) {
    print_expression(b, k, x->kid[i]);
    if (!i && !strcmp(x->fun->name, "in"))
      tarn_buf_fmt(b, " %s", k->f->analysis.p[x->analysis]->name);
  }
  for (size_t i = 0; i < sizeof x->pat / sizeof *x->pat && x->pat[i]; i++)
    free_print_pattern(b, k, x->pat[i]);
  tarn_buf_str(b, ")");
}
bool free_texts_has(const free_texts *all, const char *text) {
  for (uint32_t i = 0; i < all->n; i++)
    if (!strcmp(all->p[i], text)) return true;
  return false;
}
void free_texts_add(tarn_ctx *cx, free_texts *all, const free_texts *more) {
  for (uint32_t i = 0; i < more->n; i++)
    if (!free_texts_has(all, more->p[i])) tarn_push(cx, all, more->p[i]);
}
void free_assume(fcheck *k, const char *what) {
  k->n_assumed++;
  if (k->assumes) tarn_push(k->f->cx, k->assumes, what);
}
static fshown assume(fcheck *k, const fexpr *x, bool want) {
  k->n_assumed++;
  if (!k->assumes) return FREE_ASSUMED;
  tarn_buf b = {.cx = k->f->cx};
  tarn_buf_str(&b, want ? "" : "(not");
  print_expression(&b, k, x);
  tarn_buf_str(&b, want ? "" : ")");
  tarn_push(k->f->cx, k->assumes, b.p + want); /* it begins with a blank */
  return FREE_ASSUMED;
}

/* ---- conditions ---- */
static bool has(const fmembers *s, const tarn_sx *t) {
  uint32_t lo = 0, hi = s->n, m = free_term_of(t)->number;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (s->p[mid] < m) lo = mid + 1;
    else hi = mid;
  }
  return lo < s->n && s->p[lo] == m;
}
static fshown decided(bool is, bool want) { return is == want ? FREE_SHOWN : FREE_REFUTED; }

static fshown compared(fcheck *k, const fexpr *x, bool want) {
  fval a, b;
  fval v = {0};
  if (reads_lattice(x)) return assume(k, x, want);
  if (!free_term_eval(k, x->kid[0], &a) || !free_term_eval(k, x->kid[1], &b))
    return want ? FREE_REFUTED : assume(k, x, want);
  return decided(free_term_eval(k, x, &v) && v.p, want);
}
static fshown is_constant(fcheck *k, const fexpr *x, bool want) {
  fval v;
  bool is = free_term_value(k->cls[x->kid[0]->var], &v);
  return is || want ? decided(is, want) : assume(k, x, want);
}
static fshown is_symbol(fcheck *k, const fexpr *x, bool want) {
  const tarn_sx *t = k->cls[x->kid[0]->var];
  fval v;
  if (!t || free_arity(t) || free_term_value(t, &v)) return assume(k, x, want);
  return decided(true, want);
}
static fshown is_same(fcheck *k, const fexpr *x, bool want) {
  const tarn_sx *a = k->cls[x->kid[0]->var], *b = k->cls[x->kid[1]->var];
  fval u, v;
  if (a && a == b) return decided(true, want);
  bool known = free_term_value(a, &u) && free_term_value(b, &v);
  if (known && free_compare(&u, &v)) return decided(false, want);
  return assume(k, x, want);
}
/* A class has what all its terms have, or (either) what one of them has; where the names in a set
 * are others, that they are not the same is assumed. */
static fshown is_in(fcheck *k, const fexpr *x, bool want) {
  const tarn_sx *w = k->cls[x->kid[0]->var], *of = k->cls[x->kid[1]->var];
  if (!w || !of) return assume(k, x, want);
  fmembers s = free_term_set(k->f->terms, x->analysis, of);
  bool in = has(&s, w), either = k->f->analysis.p[x->analysis]->either;
  if (!either && !s.n) return decided(false, want);
  if (either ? in : in && want) return decided(true, want);
  return assume(k, x, want);
}
/* The term that a pattern stands for; NULL: not all of it is known. */
static const tarn_sx *instance(const fcheck *k, const rpat *p) {
  if (p->kind == RP_VAR) return k->cls[p->var];
  if (p->kind != RP_NODE || p->op == TARN_NONE) return NULL;
  const tarn_sx **kid = TARN_ARRAY(k->f->cx, const tarn_sx *, p->n + 1);
  size_t len;
  const char *name = tarn_intern_key(k->f->symbol, p->op, &len);
  for (uint32_t i = 0; i < p->n; i++)
    if (!(kid[i] = instance(k, p->kid[i]))) return NULL;
  return free_term_make(k->f->terms, name, len, kid, p->n);
}
static bool is_fact(const fcheck *k, const tarn_sx *a, const tarn_sx *b) {
  bool is = a == b;
  for (uint32_t i = 0; k->facts && !is && i < k->facts->n; i += 2) {
    const tarn_sx *from = k->facts->p[i], *to = k->facts->p[i + 1];
    is = (a == from && b == to) || (a == to && b == from);
  }
  return is;
}
static fshown is_equal(fcheck *k, const fexpr *x, bool want) {
  const tarn_sx *a = instance(k, x->pat[0]), *b = instance(k, x->pat[1]);
  return a && b && is_fact(k, a, b) ? decided(true, want) : assume(k, x, want);
}
/* These terms may say no; a yes is about all terms of both classes. */
static fshown is_acyclic(fcheck *k, const fexpr *x, bool want) {
  const tarn_sx *on = k->cls[x->kid[0]->var], *t = k->cls[x->kid[1]->var];
  bool holds = on && t && free_term_holds(k->f->terms, t, on);
  return holds ? decided(false, want) : assume(k, x, want);
}
static fshown junction(fcheck *k, const fexpr *x, bool want, bool all) {
  uint32_t n = k->n_assumed, had = k->assumes ? k->assumes->n : 0;
  fshown a = free_term_shown(k, x->kid[0], want);
  if (all ? a == FREE_REFUTED : a == FREE_SHOWN) return a;
  uint32_t m = k->n_assumed, middle = k->assumes ? k->assumes->n : 0;
  fshown b = free_term_shown(k, x->kid[1], want);
  if (all) return a < b ? a : b;
  bool first = a >= b; /* what the other assumes is not needed */
  if (first) {
    k->n_assumed = m;
    if (k->assumes) k->assumes->n = middle;
    return a;
  }
  k->n_assumed -= m - n;
  if (k->assumes && middle > had) {
    memmove(k->assumes->p + had, k->assumes->p + middle,
            (k->assumes->n - middle) * sizeof *k->assumes->p);
    k->assumes->n -= middle - had;
  }
  return b;
}

fshown free_term_shown(fcheck *k, const fexpr *x, bool want) {
  static const struct {
    const char *name;
    fshown (*shown)(fcheck *k, const fexpr *x, bool want);
  } by[] = {{"contains", compared},    {"eq", compared},       {"lt", compared},  {"le", compared},
            {"constant", is_constant}, {"symbol", is_symbol},  {"same", is_same}, {"in", is_in},
            {"equal", is_equal},       {"acyclic", is_acyclic}};
  if (!strcmp(x->fun->name, "not")) return free_term_shown(k, x->kid[0], !want);
  if (!strcmp(x->fun->name, "and")) return junction(k, x, want, want);
  if (!strcmp(x->fun->name, "or")) return junction(k, x, want, !want);
  for (size_t i = 0; i < sizeof by / sizeof *by; i++)
    if (!strcmp(x->fun->name, by[i].name)) return by[i].shown(k, x, want);
  return assume(k, x, want); /* about the graph: present */
}

fshown free_term_conditions(fcheck *k) {
  fshown all = FREE_SHOWN;
  for (uint32_t i = 0; i < k->r->ncond && all; i++) {
    const fexpr *x = k->r->cond[i]->free;
    fshown one = FREE_ASSUMED;
    if (x) one = free_term_shown(k, x, true);
    else free_assume(k, "a condition");
    if (one < all) all = one;
  }
  return all;
}
