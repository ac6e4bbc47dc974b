/* Chains of free terms, checked without an e-graph: (proof TERM (step RULE forward|backward
 * TERM)…), and before it any number of (lemma TERM (step …)…) that show what conditions ask to be
 * equal. Each step must rewrite one subterm by its rule. Terms are what the s-expression reader
 * gives; values are computed from them by the analyses' clauses. */
#include "lab/free_terms.h"
#include <string.h>

enum { MOST_SEGMENT = 64 };
static const char *head(const tarn_sx *t) {
  return t->kind == TARN_SX_LIST ? t->n ? t->kid[0]->text : "" : t->text;
}
static uint32_t arity(const tarn_sx *t) { return t->kind == TARN_SX_LIST && t->n ? t->n - 1 : 0; }
bool free_term_equal(const tarn_sx *a, const tarn_sx *b) {
  if (a == b) return true;
  if (arity(a) != arity(b) || strcmp(head(a), head(b))) return false;
  for (uint32_t i = 0; i < arity(a); i++)
    if (!free_term_equal(a->kid[i + 1], b->kid[i + 1])) return false;
  return true;
}

/* ---- values of terms ---- */
typedef struct args {
  const tarn_sx *const *t;
} args;
static bool term_value(const fenv *e, uint32_t var, fval *out) {
  return free_term_value(e->f, ((const args *)e->terms)->t[var], out);
}
bool free_term_value(free_state *f, const tarn_sx *t, fval *out) {
  uint32_t op = tarn_intern_find(free_of(f->rs)->symbol, head(t), strlen(head(t)));
  if (f->constants == TARN_NONE) return false;
  if (arity(t) == 0) {
    *out = free_parse(f, head(t), strlen(head(t)));
    if (out->kind == FV_NONE && op != TARN_NONE) *out = free_value_of(f, op);
    return out->kind != FV_NONE;
  }
  const fanalysis *a = f->analysis.p[f->constants];
  args k = {(const tarn_sx *const *)(t->kid + 1)};
  fenv e = {.f = f, .terms = &k, .term_value = term_value};
  for (uint32_t i = 0; i < a->clause.n && op != TARN_NONE; i++) {
    const fclause *c = &a->clause.p[i];
    bool fits = c->op == op && c->n == arity(t);
    fval have;
    for (uint32_t j = 0; fits && j < c->n; j++)
      fits = !c->fixed[j] ||
             (free_term_value(f, t->kid[j + 1], &have) && !free_compare(&have, &c->want[j]));
    if (fits && c->x->fun->fn(&e, c->x, out)) return true;
  }
  return false;
}
/* ---- patterns; on the right every variable is bound already, so that the same function compares
 * ---- */
static bool match_kids(fcheck *k, const rpat *p, uint32_t i, const tarn_sx *t, uint32_t at) {
  if (i == p->n) return at == arity(t);
  const rpat *q = p->kid[i];
  if (q->kind == RP_EACH) {
    if (!k->seg[q->var].is || at + k->seg[q->var].n > arity(t)) return false;
    for (uint32_t j = 0; j < k->seg[q->var].n; j++) {
      k->cls[q->item] = k->seg[q->var].p[j];
      if (!free_term_match(k, q->kid[0], t->kid[1 + at + j])) return false;
    }
    return match_kids(k, p, i + 1, t, at + k->seg[q->var].n);
  }
  if (q->kind != RP_SEG)
    return at < arity(t) && free_term_match(k, q, t->kid[1 + at]) &&
           match_kids(k, p, i + 1, t, at + 1);
  fcheck was = *k;
  for (uint32_t n = k->seg[q->var].is ? k->seg[q->var].n : 0;
       at + n <= arity(t) && n <= MOST_SEGMENT; n++) {
    bool same = true;
    for (uint32_t j = 0; was.seg[q->var].is && j < n; j++)
      same &= free_term_equal(was.seg[q->var].p[j], t->kid[1 + at + j]);
    k->seg[q->var].p = n ? t->kid + 1 + at : NULL, k->seg[q->var].n = n, k->seg[q->var].is = true;
    if (same && match_kids(k, p, i + 1, t, at + n)) return true;
    *k = was;
    if (was.seg[q->var].is) return false;
  }
  return false;
}
static bool match_value(fcheck *k, const rpat *p, const tarn_sx *t) {
  args a = {k->cls};
  fenv e = {.f = k->f, .terms = &a, .term_value = term_value};
  fval want, have;
  return p->value->fun->fn(&e, p->value, &want) && free_term_value(k->f, t, &have) &&
         arity(t) == 0 && !free_compare(&want, &have);
}
bool free_term_match(fcheck *k, const rpat *p, const tarn_sx *t) {
  size_t n;
  switch (p->kind) {
  case RP_VAR:
    if (k->cls[p->var]) return free_term_equal(k->cls[p->var], t);
    return k->cls[p->var] = t, true;
  case RP_VALUE: return match_value(k, p, t);
  case RP_FRESH:
    if (arity(t) || strncmp(head(t), p->name, strlen(p->name)) ||
        (k->fresh && strcmp(k->fresh, head(t))))
      return false;
    return k->fresh = head(t), true;
  case RP_NODE: break;
  default: return false;
  }
  if (p->op == TARN_NONE) {
    const tarn_sx *op = t->kind == TARN_SX_LIST ? t->kid[0] : t;
    if (k->op[p->opvar] && strcmp(k->op[p->opvar]->text, op->text)) return false;
    k->op[p->opvar] = op;
  } else {
    const char *name = tarn_intern_key(free_of(k->f->rs)->symbol, p->op, &n);
    if (strlen(head(t)) != n || memcmp(head(t), name, n)) return false;
  }
  return match_kids(k, p, 0, t, 0);
}

/* ---- one step ---- */
typedef enum { STEP_WRONG, STEP_ASSUMED, STEP_RIGHT } step_is;
typedef struct stepping {
  free_state *f;
  const char *name;
  bool forward;
  const free_facts *facts;
  free_texts assumes; /* of the best way to read the step so far */
} stepping;

/* The step by root i of the left side and j of the right. */
static step_is by_roots(stepping *st, const rule *r, uint32_t i, uint32_t j, const tarn_sx *left,
                        const tarn_sx *right, free_texts *texts) {
  fcheck k = {.f = st->f, .r = r, .assumes = texts, .facts = st->facts};
  if (r->rhs[j].var != TARN_NONE && r->nlhs > 1 && r->lhs[i].var != r->rhs[j].var)
    return STEP_WRONG;
  if (r->nlhs > 1) free_assume(&k, "the other roots of a rule");
  if (r->nguard) free_assume(&k, "that a guard held");
  if (r->rhs[j].var != TARN_NONE) k.cls[r->rhs[j].var] = left;
  if (r->rhs[j].var != TARN_NONE && r->lhs[i].var == TARN_NONE)
    free_assume(&k, "that it was asked for"); /* ?x on demand */
  else if (!free_term_match(&k, r->lhs[i].pat, left)) return STEP_WRONG;
  if (!free_term_match(&k, r->rhs[j].pat, right) || free_term_conditions(&k) == FREE_REFUTED)
    return STEP_WRONG;
  return k.n_assumed ? STEP_ASSUMED : STEP_RIGHT;
}
static step_is by_rule(stepping *st, const rule *r, const tarn_sx *left, const tarn_sx *right) {
  step_is best = STEP_WRONG;
  for (uint32_t i = 0; i < r->nlhs; i++)
    for (uint32_t j = 0; j < r->nrhs; j++) {
      free_texts texts = {0};
      step_is now = by_roots(st, r, i, j, left, right, &texts);
      if (now > best) best = now, st->assumes = texts;
    }
  return best;
}
void free_step_assumes(free_state *f, const rule *r, const tarn_sx *left, const tarn_sx *right,
                       free_texts *all) {
  stepping st = {.f = f};
  if (by_rule(&st, r, left, right) == STEP_ASSUMED) free_texts_add(f->cx, all, &st.assumes);
}
/* Folding: one side is the value of the other. */
static step_is by_analysis(free_state *f, const tarn_sx *left, const tarn_sx *right) {
  fval a, b;
  return arity(right) == 0 && free_term_value(f, left, &a) && free_term_value(f, right, &b) &&
                 !free_compare(&a, &b)
             ? STEP_RIGHT
             : STEP_WRONG;
}
/* At the top, or in the one operand that differs. */
static step_is one_step(stepping *st, const tarn_sx *before, const tarn_sx *after) {
  const tarn_sx *left = st->forward ? before : after, *right = st->forward ? after : before;
  free_state *f = st->f;
  step_is best = STEP_WRONG;
  if (!strcmp(st->name, "analysis")) best = by_analysis(f, left, right);
  for (uint32_t i = 0; i < f->rs->rule.n && best != STEP_RIGHT; i++) {
    const rule *r = f->rs->rule.p[i];
    free_texts was = st->assumes;
    step_is now = strcmp(r->name, st->name) ? STEP_WRONG : by_rule(st, r, left, right);
    if (now > best) best = now;
    else st->assumes = was;
  }
  if (best == STEP_RIGHT || arity(left) != arity(right) || strcmp(head(left), head(right)))
    return best;
  uint32_t other = TARN_NONE;
  for (uint32_t i = 1; i <= arity(left); i++) {
    if (free_term_equal(before->kid[i], after->kid[i])) continue;
    if (other != TARN_NONE) return best;
    other = i;
  }
  if (other == TARN_NONE) return best;
  free_texts was = st->assumes;
  step_is below = one_step(st, before->kid[other], after->kid[other]);
  if (below > best) return below;
  st->assumes = was;
  return best;
}
/* ---- the chains ---- */
typedef struct checking {
  free_state *f;
  tarn_proof_result r;
  free_texts assumed;
  free_facts facts;
} checking;
/* The term that a form leads to, (proof TERM …) or (lemma TERM …). */
static const tarn_sx *last_of(const tarn_sx *s) {
  return s->n > 2 ? s->kid[s->n - 1]->kid[3] : s->kid[1];
}

static void check_step(checking *c, const tarn_sx *before, const tarn_sx *t) {
  tarn_ctx *cx = c->f->cx;
  tarn_proof_result *r = &c->r;
  if (!tarn_sx_is(t, "step") || t->n != 4)
    tarn_sx_error(cx, t, "expected (step RULE forward|backward TERM)");
  bool forward = tarn_sx_atom_is(t->kid[2], "forward"), given = tarn_sx_atom_is(t->kid[1], "given");
  if (!forward && !tarn_sx_atom_is(t->kid[2], "backward"))
    tarn_sx_error(cx, t->kid[2], "expected forward or backward");
  stepping st = {.f = c->f, .name = t->kid[1]->text, .forward = forward, .facts = &c->facts};
  if (given) tarn_push(cx, &st.assumes, "given equations");
  step_is is = given ? STEP_ASSUMED : one_step(&st, before, t->kid[3]);
  if (is == STEP_ASSUMED) free_texts_add(cx, &c->assumed, &st.assumes);
  r->steps++;
  r->skipped += is == STEP_ASSUMED;
  if (is != STEP_WRONG) return;
  r->ok = false, r->bad = r->steps;
  r->why = tarn_format(cx, "line %u: not an instance of %s", t->line, t->kid[1]->text);
}
static void check_chain(checking *c, const tarn_sx *s) {
  for (uint32_t i = 2; c->r.ok && i < s->n; i++)
    check_step(c, i == 2 ? s->kid[1] : s->kid[i - 1]->kid[3], s->kid[i]);
  if (!c->r.ok) return;
  tarn_push(c->f->cx, &c->facts, s->kid[1]);
  tarn_push(c->f->cx, &c->facts, last_of(s));
}
tarn_proof_result tarn_free_proof_check(const tarn_ruleset *rs, const tarn_sx *all) {
  checking c = {.f = free_of(rs), .r = {.ok = true, .bad = TARN_NONE, .why = ""}};
  bool alone = tarn_sx_is(all, "proof"); /* the form itself, not what a file holds */
  uint32_t n = alone ? 1 : all->n;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_sx *s = alone ? all : all->kid[i];
    if (s->n < 2 || !tarn_sx_is(s, i + 1 < n ? "lemma" : "proof"))
      tarn_sx_error(
          rs->cx, s,
          "expected (lemma TERM STEP…)…, then (proof TERM (step RULE forward|backward TERM)…)");
    if (c.r.ok) check_chain(&c, s);
  }
  if (!n) tarn_sx_error(rs->cx, all, "expected (proof TERM (step RULE forward|backward TERM)…)");
  c.r.assumed = c.assumed.p, c.r.nassumed = c.assumed.n;
  return c.r;
}
