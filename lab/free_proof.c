/* Chains of free terms, checked without an e-graph: (proof TERM (step RULE forward|backward
 * TERM)…), and before it any number of (lemma TERM (step …)…) that show what conditions and the
 * other roots of rules ask to be equal. Each step must rewrite one subterm by its rule. In a long
 * chain (step RULE forward|backward SUBTERM UP KID…) says what is new, and where: so many levels up
 * from the step before, then down by these operands; and (node NAME TERM) gives a term a name, for
 * what stands behind. Values are computed from the terms by the
 * analyses' clauses.
 *
 * A name that (:fresh …) made is one: it stands in none of the terms that its rule was applied to,
 * for one application only, not at both ends of the proof, and in nothing that is given. */
#include "lab/free_terms.h"
#include <string.h>

enum { STEP_WORK = 1000000, FILE_WORK = 500000000 };

/* ---- fresh names ---- */
typedef struct naming { /* what a name was made for */
  const tarn_sx *name;
  const rule *r;
  const tarn_sx *cls[R_CLASSES];
} naming;
typedef struct checking {
  free_state *f;
  fterms *terms;
  tarn_proof_result r;
  tarn_intern *assumed; /* each once */
  free_facts facts;
  TARN_VEC(naming) fresh;
  tarn_map *fresh_at;              /* number of the name -> 1 + place in fresh */
  TARN_VEC(const tarn_sx *) given; /* by twos */
  uint64_t work;
} checking;

static bool same_naming(const naming *a, const naming *b) {
  return a->r == b->r && !memcmp(a->cls, b->cls, sizeof a->cls);
}
static naming naming_of(const fcheck *k) {
  naming n = {.name = k->fresh, .r = k->r};
  memcpy(n.cls, k->cls, sizeof n.cls);
  return n;
}
/* Was this name made for something else already? c NULL: nobody has kept them. */
static bool other_naming(const checking *c, const naming *n) {
  const uint64_t *at = c ? tarn_map_get(c->fresh_at, free_term_of(n->name)->number) : NULL;
  return at && !same_naming(&c->fresh.p[*at - 1], n);
}
static void keep_naming(checking *c, const naming *n) {
  uint64_t *at = tarn_map_at(c->fresh_at, free_term_of(n->name)->number, NULL);
  if (*at) return;
  tarn_push(c->f->cx, &c->fresh, *n);
  *at = c->fresh.n;
}
static bool is_new(const fcheck *k, const tarn_sx *left) {
  fterms *x = k->f->terms;
  bool is = !free_term_holds(x, left, k->fresh);
  for (uint32_t i = 0; is && i < R_CLASSES; i++)
    is = !k->cls[i] || !free_term_holds(x, k->cls[i], k->fresh);
  for (uint32_t i = 0; is && i < R_SEGS; i++)
    for (uint32_t j = 0; is && j < k->seg[i].n; j++)
      is = !free_term_holds(x, k->seg[i].p[j], k->fresh);
  return is;
}

/* ---- one step by one rule ---- */
typedef enum { STEP_WRONG, STEP_ASSUMED, STEP_RIGHT } step_is;
typedef struct stepping {
  free_state *f;
  const char *name;
  bool forward;
  const free_facts *facts;
  checking *c; /* NULL: one step alone */
  step_is best;
  free_texts assumes; /* of the best way to read the step so far */
  naming fresh;       /* the name that it makes; name NULL: none */
  bool spent;         /* there were too many ways to read it */
} stepping;
typedef struct reading {
  stepping *st;
  const tarn_sx *left;
} reading;

/* One way to read it: what is bound, with what is assumed so far. */
static bool judge(fcheck *k, void *user) {
  reading *rd = user;
  stepping *st = rd->st;
  free_texts texts = {0};
  for (uint32_t i = 0; k->assumes && i < k->n_assumed && i < k->assumes->n; i++)
    tarn_push(st->f->cx, &texts, k->assumes->p[i]);
  fcheck at = *k;
  at.assumes = &texts;
  naming fresh = naming_of(k);
  if (k->fresh && (!is_new(k, rd->left) || other_naming(st->c, &fresh))) return false;
  if (free_term_conditions(&at) == FREE_REFUTED) return false;
  step_is now = at.n_assumed ? STEP_ASSUMED : STEP_RIGHT;
  bool better = now > st->best || (now == st->best && texts.n < st->assumes.n);
  if (better) st->best = now, st->assumes = texts, st->fresh = fresh;
  return now == STEP_RIGHT;
}
/* May root i of the left side be what root j of the right makes equal? */
static bool are_one(const rule *r, uint32_t i, uint32_t j) {
  uint32_t to = r->rhs[j].var;
  return to == TARN_NONE ? i == 0 || (r->lhs[i].var != TARN_NONE && r->lhs[i].var == r->lhs[0].var)
                         : r->lhs[i].var == to;
}
/* The step by root i of the left side (NONE: by the class variable of the right root alone) and j
 * of the right. */
static void by_roots(stepping *st, const rule *r, uint32_t i, uint32_t j, const tarn_sx *left,
                     const tarn_sx *right) {
  free_texts texts = {0};
  fcheck k = {.f = st->f, .r = r, .assumes = &texts, .facts = st->facts};
  reading rd = {st, left};
  uint64_t work = STEP_WORK;
  if (r->rhs[j].pat->kind == RP_ADD) return;
  if (r->nguard) free_assume(&k, "that a guard held");
  if (st->c && st->c->work < STEP_WORK) work = st->c->work;
  uint64_t had = work;
  st->spent |= !free_match_step(&k, i, j, left, right, &work, judge, &rd);
  if (st->c) st->c->work -= had - work;
}
static void by_rule(stepping *st, const rule *r, const tarn_sx *left, const tarn_sx *right) {
  for (uint32_t j = 0; j < r->nrhs && st->best != STEP_RIGHT; j++) {
    bool alone = true;
    for (uint32_t i = 0; i < r->nlhs && st->best != STEP_RIGHT; i++) {
      if (!are_one(r, i, j)) continue;
      by_roots(st, r, i, j, left, right);
      alone = false;
    }
    if (alone) by_roots(st, r, TARN_NONE, j, left, right);
  }
}
void free_step_assumes(free_state *f, const rule *r, const tarn_sx *left, const tarn_sx *right,
                       free_texts *all) {
  stepping st = {.f = f};
  by_rule(&st, r, left, right);
  if (st.best == STEP_ASSUMED) free_texts_add(f->cx, all, &st.assumes);
}

/* ---- one step ---- */
/* Folding: one side is the value of the other. */
static bool by_analysis(const tarn_sx *left, const tarn_sx *right) {
  fval a, b;
  return !free_arity(right) && free_term_value(left, &a) && free_term_value(right, &b) &&
         !free_compare(&a, &b);
}
static void by_name(stepping *st, const tarn_sx *left, const tarn_sx *right) {
  if (!strcmp(st->name, "analysis") && by_analysis(left, right)) st->best = STEP_RIGHT;
  for (uint32_t i = 0; i < st->f->rs->rule.n && st->best != STEP_RIGHT; i++)
    if (!strcmp(st->f->rs->rule.p[i]->name, st->name))
      by_rule(st, st->f->rs->rule.p[i], left, right);
}
/* The only operand in which two terms of one operator differ. NONE: there is none, or several. */
static uint32_t differs_in(const tarn_sx *a, const tarn_sx *b) {
  uint32_t at = TARN_NONE;
  const tarn_sx *x = free_head(a), *y = free_head(b);
  if (free_arity(a) != free_arity(b) || x->len != y->len || memcmp(x->text, y->text, x->len))
    return TARN_NONE;
  for (uint32_t i = 1; i <= free_arity(a); i++) {
    if (a->kid[i] == b->kid[i]) continue;
    if (at != TARN_NONE) return TARN_NONE;
    at = i;
  }
  return at;
}
/* At the top, or in the one operand that differs. */
static void one_step(stepping *st, const tarn_sx *before, const tarn_sx *after) {
  for (;;) {
    by_name(st, st->forward ? before : after, st->forward ? after : before);
    uint32_t i = st->best == STEP_RIGHT ? TARN_NONE : differs_in(before, after);
    if (i == TARN_NONE) return;
    before = before->kid[i], after = after->kid[i];
  }
}
/* What is given is what differs. */
static void one_given(checking *c, stepping *st, const tarn_sx *before, const tarn_sx *after) {
  for (uint32_t i; (i = differs_in(before, after)) != TARN_NONE;)
    before = before->kid[i], after = after->kid[i];
  tarn_buf b = {.cx = c->f->cx};
  tarn_buf_str(&b, "(given ");
  free_term_print(&b, st->forward ? before : after);
  tarn_buf_str(&b, " ");
  free_term_print(&b, st->forward ? after : before);
  tarn_buf_str(&b, ")");
  tarn_push(c->f->cx, &c->given, before);
  tarn_push(c->f->cx, &c->given, after);
  tarn_push(c->f->cx, &st->assumes, b.p);
  st->best = STEP_ASSUMED;
}

/* ---- the chains ---- */
static void fail(checking *c, const char *why) {
  c->r.ok = false, c->r.bad = c->r.steps, c->r.why = why;
}
/* A place in the term that a chain has come to: the terms above it, as they were when it was gone
 * down, and the operands on the way. */
typedef struct level {
  const tarn_sx *above;
  uint32_t kid;
} level;
typedef struct focus {
  checking *c;
  const tarn_sx *at;
  TARN_VEC(level) up;
  TARN_VEC(const tarn_sx *) kids;
} focus;
static void go_up(focus *f) {
  level l = f->up.p[--f->up.n];
  const tarn_sx *h = free_head(l.above);
  f->kids.n = 0;
  for (uint32_t i = 1; i <= free_arity(l.above); i++)
    tarn_push(f->c->f->cx, &f->kids, i == l.kid ? f->at : l.above->kid[i]);
  f->at = free_term_make(f->c->terms, h->text, h->len, f->kids.p, f->kids.n);
}
static void go(focus *f, const tarn_sx *t) {
  tarn_ctx *cx = f->c->f->cx;
  int64_t up = t->n > 4 ? tarn_sx_whole(cx, t, 4, 0, f->up.n) : f->up.n;
  while (up-- > 0) go_up(f);
  for (uint32_t i = 5; i < t->n; i++) {
    level l = {f->at, (uint32_t)tarn_sx_whole(cx, t, i, 1, free_arity(f->at))};
    tarn_push(cx, &f->up, l);
    f->at = f->at->kid[l.kid];
  }
}
static const tarn_sx *check_step(checking *c, const tarn_sx *before, const tarn_sx *t) {
  tarn_ctx *cx = c->f->cx;
  bool forward = tarn_sx_atom_is(t->kid[2], "forward"), given = tarn_sx_atom_is(t->kid[1], "given");
  if (!forward && !tarn_sx_atom_is(t->kid[2], "backward"))
    tarn_sx_error(cx, t->kid[2], "expected forward or backward");
  const tarn_sx *after = free_term(c->terms, t->kid[3]);
  tarn_mark mark = tarn_arena_mark(cx);
  uint64_t had = c->terms->changes;
  stepping st = {
      .f = c->f, .name = t->kid[1]->text, .forward = forward, .facts = &c->facts, .c = c};
  if (given) one_given(c, &st, before, after);
  else one_step(&st, before, after);
  for (uint32_t i = 0; st.best == STEP_ASSUMED && i < st.assumes.n; i++)
    tarn_intern_add(c->assumed, st.assumes.p[i], strlen(st.assumes.p[i]) + 1);
  if (st.fresh.name) keep_naming(c, &st.fresh);
  else if (st.best == STEP_RIGHT && c->terms->changes == had) tarn_release(cx, mark);
  c->r.steps++;
  c->r.skipped += st.best == STEP_ASSUMED;
  if (st.best == STEP_WRONG)
    fail(c, tarn_format(cx,
                        st.spent ? "line %u: too many ways to read it as an instance of %s"
                                 : "line %u: not an instance of %s",
                        t->line, t->kid[1]->text));
  return after;
}
/* (proof TERM STEP…) or (lemma TERM STEP…); its two ends are facts for what follows. */
static void check_chain(checking *c, const tarn_sx *s) {
  const tarn_sx *first = free_term(c->terms, s->kid[1]);
  focus f = {.c = c, .at = first};
  for (uint32_t i = 2; c->r.ok && i < s->n; i++) {
    if (!tarn_sx_is(s->kid[i], "step") || s->kid[i]->n < 4)
      tarn_sx_error(c->f->cx, s->kid[i], "expected (step RULE forward|backward TERM)");
    go(&f, s->kid[i]);
    f.at = check_step(c, f.at, s->kid[i]);
  }
  while (f.up.n) go_up(&f);
  if (!c->r.ok) return;
  tarn_push(c->f->cx, &c->facts, first);
  tarn_push(c->f->cx, &c->facts, f.at);
}
/* Names that were made are new for what was given, and not at both ends. */
static void check_names(checking *c) {
  for (uint32_t i = 0; c->r.ok && i < c->fresh.n; i++) {
    const tarn_sx *name = c->fresh.p[i].name, *const *end = &c->facts.p[c->facts.n - 2];
    bool taken = free_term_holds(c->terms, end[0], name) && free_term_holds(c->terms, end[1], name);
    for (uint32_t j = 0; !taken && j < c->given.n; j++)
      taken = free_term_holds(c->terms, c->given.p[j], name);
    if (taken) fail(c, tarn_format(c->f->cx, "%s is not a fresh name", name->text));
  }
}
static void tell_assumed(checking *c) {
  size_t n;
  c->r.nassumed = tarn_intern_count(c->assumed);
  const char **p = TARN_ARRAY(c->f->cx, const char *, c->r.nassumed + 1);
  for (uint32_t i = 0; i < c->r.nassumed; i++) p[i] = tarn_intern_key(c->assumed, i, &n);
  c->r.assumed = p;
}
tarn_proof_result tarn_free_proof_check(const tarn_ruleset *rs, const tarn_sx *all) {
  free_state *f = free_of(rs);
  checking c = {.f = f,
                .terms = free_terms_new(f),
                .r = {.ok = true, .bad = TARN_NONE, .why = ""},
                .assumed = tarn_intern_new(rs->cx),
                .fresh_at = tarn_map_new(rs->cx),
                .work = FILE_WORK};
  bool alone = tarn_sx_is(all, "proof"); /* the form itself, not what a file holds */
  uint32_t n = alone ? 1 : all->n;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_sx *s = alone ? all : all->kid[i];
    bool node = i + 1 < n && tarn_sx_is(s, "node");
    if (!node && (s->n < 2 || !tarn_sx_is(s, i + 1 < n ? "lemma" : "proof")))
      tarn_sx_error(
          rs->cx, s,
          "expected (lemma TERM STEP…)…, then (proof TERM (step RULE forward|backward TERM)…)");
    if (node) free_term_name(c.terms, s);
    else if (c.r.ok) check_chain(&c, s);
  }
  if (!n) tarn_sx_error(rs->cx, all, "expected (proof TERM (step RULE forward|backward TERM)…)");
  check_names(&c);
  tell_assumed(&c);
  return c.r;
}
