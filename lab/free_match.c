/* Matching the sides of a rule over terms. Where rows of operands may be split in several ways, or
 * facts give several terms for another root of the left side, one way is tried after the other:
 * what is still to be matched is a list of goals, and a choice goes back to what was bound before
 * it. */
#include "lab/free_terms.h"
#include <string.h>

typedef enum {
  GOAL_TERM,  /* p is t */
  GOAL_KIDS,  /* operands i… of p are those from `at` on of t */
  GOAL_ITEM,  /* the item of (each …) is t */
  GOAL_ROOTS, /* the roots in the set `roots` hold */
} goal_kind;
typedef struct goal {
  goal_kind kind;
  const rpat *p;
  const tarn_sx *t;
  uint32_t i, at;
  uint64_t roots;
  const struct goal *next;
} goal;
typedef struct matching {
  fcheck *k;
  tarn_ctx *cx;
  uint64_t *work;
  free_then *then;
  void *user;
} matching;

static const goal *put(matching *x, goal g, const goal *next) {
  goal *to = TARN_NEW(x->cx, goal);
  *to = g;
  to->next = next;
  return to;
}

/* ---- leaves ---- */
typedef struct args {
  const tarn_sx *const *t;
} args;
static bool bound_value(const fenv *e, uint32_t var, fval *out) {
  return free_term_value(((const args *)e->terms)->t[var], out);
}
bool free_term_eval(const fcheck *k, const fexpr *x, fval *out) {
  args a = {k->cls};
  fenv e = {.f = k->f, .terms = &a, .term_value = bound_value};
  return x->fun->fn(&e, x, out);
}
static bool is_value(const fcheck *k, const rpat *p, const tarn_sx *t) {
  fval want, have;
  return free_term_eval(k, p->value, &want) && free_term_value(t, &have) && !free_arity(t) &&
         !free_compare(&want, &have);
}
/* Does the text of an operator say so? Names have no zeros. */
static bool same_text(const tarn_sx *a, const tarn_sx *b) {
  return a->len == b->len && !memcmp(a->text, b->text, a->len);
}
/* A name as (:fresh PREFIX) makes them, which no rule mentions: PREFIX and a number. */
static bool is_fresh(fcheck *k, const rpat *p, const tarn_sx *t) {
  size_t n = strlen(p->name);
  uint32_t op = tarn_intern_find(k->f->symbol, t->text, t->len);
  if (free_arity(t) || t->len <= n || memcmp(t->text, p->name, n)) return false;
  if (strspn(t->text + n, "0123456789") != t->len - n) return false;
  if (op != TARN_NONE && op < k->f->in_rules.n && k->f->in_rules.p[op]) return false;
  if (k->fresh && k->fresh != t) return false;
  return k->fresh = t, true;
}
static bool operator_fits(fcheck *k, const rpat *p, const tarn_sx *t) {
  const tarn_sx *op = free_head(t);
  size_t n;
  if (p->op != TARN_NONE) {
    const char *name = tarn_intern_key(k->f->symbol, p->op, &n);
    return op->len == n && !memcmp(op->text, name, n);
  }
  if (k->op[p->opvar]) return same_text(k->op[p->opvar], op);
  return k->op[p->opvar] = op, true;
}

/* ---- operands ---- */
static bool solve(matching *x, const goal *g);

static bool row_fits(const fcheck *k, uint32_t seg, const goal *g) {
  uint32_t n = k->seg[seg].n;
  if (n > free_arity(g->t) - g->at) return false;
  for (uint32_t j = 0; j < n; j++)
    if (k->seg[seg].p[j] != g->t->kid[1 + g->at + j]) return false;
  return true;
}
static const goal *after(matching *x, const goal *g, uint32_t n) {
  return put(x, (goal){.kind = GOAL_KIDS, .p = g->p, .t = g->t, .i = g->i + 1, .at = g->at + n},
             g->next);
}
/* The row takes as many operands as the other patterns leave. */
static bool split(matching *x, const goal *g, uint32_t seg) {
  uint32_t fixed = 0, others = 0, left = free_arity(g->t) - g->at;
  for (uint32_t i = g->i + 1; i < g->p->n; i++) {
    bool row = g->p->kid[i]->kind == RP_SEG || g->p->kid[i]->kind == RP_EACH;
    *(row ? &others : &fixed) += 1;
  }
  if (fixed > left) return false;
  fcheck was = *x->k;
  for (uint32_t n = others ? 0 : left - fixed; n <= left - fixed; n++) {
    x->k->seg[seg].p = n ? g->t->kid + 1 + g->at : NULL;
    x->k->seg[seg].n = n, x->k->seg[seg].is = true;
    if (solve(x, after(x, g, n))) return true;
    *x->k = was;
  }
  return false;
}
/* (each ?*xs ?x PATTERN): one operand for each of the row. */
static const goal *items(matching *x, const goal *g, const rpat *q) {
  uint32_t n = x->k->seg[q->var].n;
  const goal *to = after(x, g, n);
  for (uint32_t j = n; j-- > 0;) {
    to = put(x, (goal){.kind = GOAL_TERM, .p = q->kid[0], .t = g->t->kid[1 + g->at + j]}, to);
    to = put(x, (goal){.kind = GOAL_ITEM, .i = q->item, .t = x->k->seg[q->var].p[j]}, to);
  }
  return to;
}

/* ---- the other roots ---- */
static bool all_bound(const fcheck *k, const rpat *p) {
  if (p->kind == RP_VAR) return k->cls[p->var] != NULL;
  if (p->kind == RP_SEG) return k->seg[p->var].is;
  if (p->op == TARN_NONE && !k->op[p->opvar]) return false;
  for (uint32_t i = 0; i < p->n; i++)
    if (!all_bound(k, p->kid[i])) return false;
  return true;
}
/* A root whose class is known comes first, then one that says a term that is known. */
static uint32_t next_root(const fcheck *k, uint64_t roots) {
  uint32_t best = TARN_NONE, best_is = 0;
  for (uint32_t i = 0; i < k->r->nlhs && i < 64; i++) {
    if (!(roots >> i & 1)) continue;
    bool cls = k->r->lhs[i].var != TARN_NONE && k->cls[k->r->lhs[i].var];
    uint32_t is = 1 + (uint32_t)all_bound(k, k->r->lhs[i].pat) + 2 * (uint32_t)cls;
    if (is > best_is) best = i, best_is = is;
  }
  return best;
}
static bool try_root(matching *x, const goal *g, const rroot *root, const tarn_sx *t) {
  return solve(x, put(x, (goal){.kind = GOAL_TERM, .p = root->pat, .t = t}, g));
}
static void assume_root(fcheck *k, const rroot *root, const tarn_sx *is) {
  tarn_buf b = {.cx = k->f->cx};
  tarn_buf_str(&b, is ? "(= " : "(present");
  if (is) free_term_print(&b, is);
  free_print_pattern(&b, k, root->pat);
  tarn_buf_str(&b, ")");
  free_assume(k, b.p);
}
/* The class of the root is known to be X: X itself fits, or what a lemma shows it to be. */
static bool known_root(matching *x, const goal *g, const rroot *root, const tarn_sx *is) {
  fcheck was = *x->k;
  if (try_root(x, g, root, is)) return true;
  *x->k = was;
  for (uint32_t i = 0; was.facts && i < was.facts->n; i++) {
    if (was.facts->p[i] != is) continue;
    if (try_root(x, g, root, was.facts->p[i ^ 1u])) return true;
    *x->k = was;
  }
  return false;
}
static bool mentions(const rpat *p, uint32_t var) {
  if (p->kind == RP_VAR) return p->var == var;
  for (uint32_t i = 0; i < p->n; i++)
    if (mentions(p->kid[i], var)) return true;
  return false;
}
/* Is the class of root i spoken of elsewhere? Else the rule asks whether its term is there. */
static bool joined(const rule *r, uint32_t i) {
  uint32_t v = r->lhs[i].var;
  bool is = false;
  if (v == TARN_NONE) return false;
  for (uint32_t k = 0; k < r->nlhs; k++)
    is |= (k != i && r->lhs[k].var == v) || mentions(r->lhs[k].pat, v);
  for (uint32_t k = 0; k < r->nrhs; k++) is |= r->rhs[k].var == v || mentions(r->rhs[k].pat, v);
  return is;
}
/* Any term that lemmas speak of may be it. */
static bool any_root(matching *x, const goal *g, const rroot *root) {
  fcheck was = *x->k;
  for (uint32_t i = 0; was.facts && i < was.facts->n; i++) {
    if (root->var != TARN_NONE) x->k->cls[root->var] = was.facts->p[i];
    if (try_root(x, g, root, was.facts->p[i])) return true;
    *x->k = was;
  }
  return false;
}
static bool prove_roots(matching *x, const goal *g) {
  fcheck was = *x->k;
  uint32_t i = next_root(x->k, g->roots);
  if (i == TARN_NONE) return solve(x, g->next);
  const rroot *root = &x->k->r->lhs[i];
  const goal *rest =
      put(x, (goal){.kind = GOAL_ROOTS, .roots = g->roots & ~(UINT64_C(1) << i)}, g->next);
  const tarn_sx *is = root->var != TARN_NONE ? x->k->cls[root->var] : NULL;
  if (is ? known_root(x, rest, root, is) : joined(x->k->r, i) && any_root(x, rest, root))
    return true;
  *x->k = was;
  assume_root(x->k, root, is);
  return solve(x, rest);
}

/* ---- goals ---- */
static bool unbound_row(const fcheck *k, const goal *g) {
  if (g->kind != GOAL_KIDS || g->i == g->p->n) return false;
  const rpat *q = g->p->kid[g->i];
  return q->kind == RP_SEG && !k->seg[q->var].is;
}
static bool leaf_fits(fcheck *k, const rpat *p, const tarn_sx *t) {
  if (p->kind == RP_VALUE) return is_value(k, p, t);
  if (p->kind == RP_FRESH) return is_fresh(k, p, t);
  if (p->kind != RP_VAR || (k->cls[p->var] && k->cls[p->var] != t)) return false;
  return k->cls[p->var] = t, true;
}
static bool take_kid(matching *x, const goal **g) {
  const goal *at = *g;
  const rpat *q = at->p->kid[at->i];
  uint32_t left = free_arity(at->t) - at->at;
  if (q->kind == RP_SEG || q->kind == RP_EACH) {
    if (!x->k->seg[q->var].is || x->k->seg[q->var].n > left) return false;
    if (q->kind == RP_SEG && !row_fits(x->k, q->var, at)) return false;
    *g = q->kind == RP_EACH ? items(x, at, q) : after(x, at, x->k->seg[q->var].n);
    return true;
  }
  if (!left) return false;
  *g = put(x, (goal){.kind = GOAL_TERM, .p = q, .t = at->t->kid[1 + at->at]}, after(x, at, 1));
  return true;
}
/* Does what leaves no choice; false: it does not fit. */
static bool take_goal(matching *x, const goal **g) {
  const goal *at = *g;
  *g = at->next;
  if (at->kind == GOAL_ITEM) return x->k->cls[at->i] = at->t, true;
  if (at->kind == GOAL_KIDS && at->i == at->p->n) return at->at == free_arity(at->t);
  if (at->kind == GOAL_KIDS) return *g = at, take_kid(x, g);
  if (at->p->kind != RP_NODE) return leaf_fits(x->k, at->p, at->t);
  *g = put(x, (goal){.kind = GOAL_KIDS, .p = at->p, .t = at->t}, at->next);
  return operator_fits(x->k, at->p, at->t);
}
static bool solve(matching *x, const goal *g) {
  while (g) {
    if (!*x->work) return true;
    --*x->work;
    if (g->kind == GOAL_ROOTS) return prove_roots(x, g);
    if (unbound_row(x->k, g)) return split(x, g, g->p->kid[g->i]->var);
    if (!take_goal(x, &g)) return false;
  }
  return x->then(x->k, x->user);
}

/* Is its right side known only when all of the left is? */
static bool waits(const rpat *p) {
  bool any = p->kind == RP_VALUE || p->kind == RP_EACH || p->kind == RP_SEG;
  for (uint32_t i = 0; i < p->n; i++) any |= waits(p->kid[i]);
  return any;
}
bool free_match_step(fcheck *k, uint32_t i, uint32_t j, const tarn_sx *left, const tarn_sx *right,
                     uint64_t *work, free_then *then, void *user) {
  matching x = {k, k->f->cx, work, then, user};
  const rule *r = k->r;
  const rpat *p = r->rhs[j].pat;
  uint64_t roots = r->nlhs >= 64 ? UINT64_MAX : (UINT64_C(1) << r->nlhs) - 1;
  if (i != TARN_NONE) roots &= ~(UINT64_C(1) << i);
  const goal *others = r->nlhs > 1 || i == TARN_NONE
                           ? put(&x, (goal){.kind = GOAL_ROOTS, .roots = roots}, NULL)
                           : NULL;
  const goal *it = put(&x, (goal){.kind = GOAL_TERM, .p = p, .t = right}, waits(p) ? NULL : others);
  if (waits(p) && others) it = put(&x, *others, it);
  if (i != TARN_NONE && r->lhs[i].var != TARN_NONE) k->cls[r->lhs[i].var] = left;
  if (r->rhs[j].var != TARN_NONE) k->cls[r->rhs[j].var] = left;
  if (i != TARN_NONE) it = put(&x, (goal){.kind = GOAL_TERM, .p = r->lhs[i].pat, .t = left}, it);
  solve(&x, it);
  return *work > 0;
}

static bool first_way(fcheck *k, void *user) { return *(fcheck *)user = *k, true; }
bool free_term_match(fcheck *k, const rpat *p, const tarn_sx *t) {
  enum { WORK = 100000 };
  uint64_t work = WORK;
  fcheck found = {0};
  matching x = {k, k->f->cx, &work, first_way, &found};
  bool is = solve(&x, put(&x, (goal){.kind = GOAL_TERM, .p = p, .t = t}, NULL)) && work;
  if (is) *k = found;
  return is;
}
