/* The proof checker: recomputes each step from the step alone, over plain terms. */
#include "rules/proof/proof.h"
#include "kernel/edit.h"
#include <string.h>

const char *const pf_kind_name[] = {"rule", "norm", "value", "congruence", "lemma"};

pf_judge *pf_judge_new(const tarn_ruleset *rs) {
  pf_judge *j = TARN_NEW(rs->cx, pf_judge);
  *j = (pf_judge){.L = rs->L, .cx = rs->cx, .rs = rs};
  j->host = tarn_r_term_host(rs->L);
  j->env = (renv){.L = rs->L, .host = &j->host};
  j->former = (renv){.L = rs->L, .host = &j->host};
  j->form = tarn_map_new(rs->cx);
  return j;
}

/* Equal, or equal once the roots are put into kernel form (one order of reads, each child once). */
static bool same(pf_judge *j, tarn_term a, tarn_term b) {
  if (a == b || a == TARN_NONE || b == TARN_NONE) return a == b;
  const tarn_node *x = tarn_term_get(j->L, a), *y = tarn_term_get(j->L, b);
  if (x->type != y->type) return false;
  return kern_form(&j->host.nest, j->form, a) == kern_form(&j->host.nest, j->form, b);
}

/* ---------------------------------------------------------------- steps without a rule */

static bool holds_norm(pf_judge *j, const pf_step *s, const char **why) {
  if (same(j, s->before, s->after)) return true;
  *why = "the two terms have different normal forms";
  return false;
}

static bool holds_value(pf_judge *j, const pf_step *s, const char **why) {
  const tarn_node *x = tarn_term_get(j->L, s->before), *y = tarn_term_get(j->L, s->after);
  tarn_term computed = y->op == TARN_OP_CONST ? s->before : s->after,
            stated = y->op == TARN_OP_CONST ? s->after : s->before;
  const tarn_node *c = tarn_term_get(j->L, stated);
  *why = "it is not the value of the other term";
  if (c->op != TARN_OP_CONST || x->type != y->type) return false;
  const tarn_tensor *t = tarn_payload_get(j->L, c->payload)->tensor;
  tarn_tensor *out;
  tarn_eval(j->L, &computed, 1, NULL, 0, TARN_STRICT, NULL, &out);
  return memcmp(out->data, t->data, tarn_tensor_bytes(t)) == 0;
}

static bool holds_congruence(pf_judge *j, const pf_proof *p, uint32_t lemma, const pf_step *s,
                             const char **why) {
  tarn_node x = *tarn_term_get(j->L, s->before), y = *tarn_term_get(j->L, s->after);
  *why = "the two terms are not one operator over equal kids";
  if (x.op != y.op || x.payload != y.payload || x.n != y.n || s->nlemma != x.n) return false;
  for (uint32_t i = 0; i < x.n; i++) {
    uint32_t k = s->lemma[i];
    if (k == TARN_NONE && x.kid[i] != y.kid[i]) return false;
    if (k == TARN_NONE) continue;
    if (k / 2 >= lemma) return false;
    const pf_lemma *l = &p->lemma.p[k / 2];
    bool fits =
        k % 2 ? l->to == x.kid[i] && l->from == y.kid[i] : l->from == x.kid[i] && l->to == y.kid[i];
    if (fits && !l->nparam) continue;
    *why = tarn_format(j->cx, "lemma %u is not about kid %u", k / 2, i);
    return false;
  }
  return true;
}

/* Terms of the parameters' types put for them, constants for constants. */
static bool holds_lemma(pf_judge *j, const pf_proof *p, uint32_t lemma, const pf_step *s,
                        const char **why) {
  *why = "no earlier lemma";
  if (s->nlemma != 1 || s->lemma[0] / 2 >= lemma) return false;
  const pf_lemma *l = &p->lemma.p[s->lemma[0] / 2];
  tarn_map *with = tarn_map_new(j->cx);
  *why = "the terms given do not fit the lemma's parameters";
  if (s->nextra != l->nparam) return false;
  for (uint32_t i = 0; i < l->nparam; i++) {
    const rhost *h = &j->host;
    if (h->nest.type(h->nest.user, l->param[i]) != h->nest.type(h->nest.user, s->extra[i]))
      return false;
    if (h->is_const(h->user, l->param[i]) && !h->is_const(h->user, s->extra[i])) return false;
    *tarn_map_at(with, l->param[i], NULL) = (uint64_t)s->extra[i] + 1;
  }
  *why = "it is no instance of the lemma";
  tarn_term from = pf_subst(j->L, l->from, with), to = pf_subst(j->L, l->to, with);
  return from == (s->forward ? s->before : s->after) && to == (s->forward ? s->after : s->before);
}

/* ---------------------------------------------------------------- rules */

typedef struct instance {
  pf_judge *j;
  const pf_step *s;
  const rule *r;
  tarn_term left, right; /* of the step */
  uint32_t root;         /* that is being matched */
  uint32_t result;       /* right side whose equation is checked */
  bool holds;
  const char *why;
} instance;

static const rbuild *builder(const rule *r) {
  return r->rhs[0].pat->kind == RP_BUILD ? r->rhs[0].pat->build : NULL;
}

/* The kids that the step says are looked into. */
static bool open_kids(instance *x, rsite *site, uint32_t *leaf, uint32_t room) {
  for (uint32_t i = 0; i < x->s->nopen; i++) {
    if (x->s->open[i] >= site->n) return false;
    rkid *k = &site->kid[x->s->open[i]];
    if (k->payload != TARN_NONE) continue;
    const tarn_node *t = tarn_term_get(x->j->L, k->id);
    if (t->op != TARN_OP_NEST || t->n > room) return false;
    memcpy(leaf, t->kid, t->n * sizeof *leaf);
    *k = (rkid){.id = k->id, .op = t->op, .payload = t->payload, .n = t->n, .leaf = leaf};
    leaf += t->n, room -= t->n;
  }
  return true;
}

static bool as_built(instance *x, renv *e) {
  rkid kid[R_KIDS];
  uint32_t leaf[2 * R_KIDS];
  rsite site;
  pf_judge *j = x->j;
  if (!r_site(e, x->r, &site, kid, leaf)) return false;
  if (site.slot == TARN_NONE) site.slot = x->s->slot;
  if (site.slot != x->s->slot || (site.slot != TARN_NONE && site.slot >= site.n)) return false;
  uint32_t *room = TARN_ARRAY(j->cx, uint32_t, 8 * R_KIDS);
  if (!open_kids(x, &site, room, 8 * R_KIDS) ||
      x->s->nextra > sizeof site.extra / sizeof *site.extra)
    return false;
  site.nextra = x->s->nextra;
  if (site.nextra) memcpy(site.extra, x->s->extra, site.nextra * sizeof *site.extra);
  site.root = x->s->at == TARN_NONE ? x->left : x->s->at;
  uint32_t made = builder(x->r)->build(&site);
  if (made == TARN_NONE) return false;
  if (x->s->at == TARN_NONE) return same(j, made, x->right);
  return site.also[0] != TARN_NONE && same(j, site.also[0], x->left) &&
         same(j, site.also[1], x->right);
}

static bool as_written(instance *x, renv *e) {
  for (uint32_t i = 0; i < x->r->nrhs; i++) {
    const rroot *to = &x->r->rhs[i];
    tarn_term left = x->left, right = tarn_r_instantiate(e, x->r, to->pat);
    uint32_t l = 0;
    for (uint32_t k = 0; k < x->r->nlhs && to->var != TARN_NONE; k++)
      if (x->r->lhs[k].var == to->var) l = k;
    if (x->r->nlhs > 1 && x->s->extra[l] != left) continue;
    if (right != TARN_NONE && same(x->j, right, x->right)) return true;
  }
  return false;
}

/* One of the ways to choose what the rule leaves open. */
static bool try_choice(void *arg, renv *e) {
  instance *x = arg;
  if (!tarn_r_conditions(e, x->r, TARN_NONE)) {
    x->why = "a side condition does not hold";
    return true;
  }
  if (!pf_bindings_agree(e, x->r, x->s)) {
    x->why = "its variables stand for something else";
    return true;
  }
  pf_step *to = x->j->binding;
  if (to && !builder(x->r)) to->bind = pf_bindings(e, x->r, &to->nbind);
  x->why = "the rule gives another right side";
  uint32_t bound[R_CLASSES];
  memcpy(bound, e->cls, sizeof bound); /* what is repeated binds a variable for each */
  x->holds = builder(x->r) ? as_built(x, e) : as_written(x, e);
  memcpy(e->cls, bound, sizeof bound);
  return !x->holds;
}

static bool try_match(void *arg, renv *e) {
  instance *x = arg;
  if (x->root + 1 < x->r->nlhs) {
    x->root++;
    tarn_r_match_term(e, x->r, x->root, x->s->extra[x->root], try_match, x);
    x->root--;
    return !x->holds;
  }
  tarn_r_choices(e, x->r, try_choice, x);
  return !x->holds;
}

static bool holds_rule(pf_judge *j, const pf_step *s, const char **why) {
  uint32_t k = tarn_ruleset_find(j->rs, s->rule);
  if (k == TARN_NONE) {
    *why = tarn_format(j->cx, "no rule is called %s", s->rule);
    return false;
  }
  instance x = {.j = j,
                .s = s,
                .r = j->rs->rule.p[k],
                .left = s->forward ? s->before : s->after,
                .right = s->forward ? s->after : s->before,
                .why = "its left side does not fit"};
  bool several = x.r->nlhs > 1 && !builder(x.r);
  if (several && s->nextra != x.r->nlhs) {
    *why = "the roots of the rule are not given";
    return false;
  }
  tarn_term first = several ? s->extra[0] : s->at == TARN_NONE ? x.left : s->at;
  tarn_r_env_reset(&j->env, x.r);
  tarn_r_match_term(&j->env, x.r, 0, first, try_match, &x);
  if (!x.holds) *why = tarn_format(j->cx, "no instance of %s: %s", s->rule, x.why);
  return x.holds;
}

typedef struct judging {
  pf_judge *j;
  const pf_proof *p;
  uint32_t lemma;
  const pf_step *s;
  const char *why;
  bool holds;
} judging;

static void judge_step(tarn_ctx *cx, void *arg) {
  judging *a = arg;
  (void)cx;
  const tarn_node *x = tarn_term_get(a->j->L, a->s->before),
                  *y = tarn_term_get(a->j->L, a->s->after);
  a->why = "the two terms have different types";
  if (x->type != y->type) return;
  a->holds = a->s->kind == PF_NORM    ? holds_norm(a->j, a->s, &a->why)
             : a->s->kind == PF_VALUE ? holds_value(a->j, a->s, &a->why)
             : a->s->kind == PF_RULE  ? holds_rule(a->j, a->s, &a->why)
             : a->s->kind == PF_LEMMA ? holds_lemma(a->j, a->p, a->lemma, a->s, &a->why)
                                      : holds_congruence(a->j, a->p, a->lemma, a->s, &a->why);
}

bool pf_holds(pf_judge *j, const pf_proof *p, uint32_t lemma, const pf_step *s, const char **why) {
  judging a = {j, p, lemma, s, "", false};
  tarn_status st = tarn_protect(j->cx, judge_step, &a);
  if (st == TARN_MEMORY) tarn_reraise(j->cx, st);
  *why = st ? tarn_strdup(j->cx, tarn_message(j->cx)) : a.why;
  return !st && a.holds;
}

void pf_bind_step(pf_judge *j, pf_step *s) {
  const char *why;
  if (s->kind != PF_RULE) return;
  pf_step plain = *s; /* what it finds must not be judged by what it found before */
  j->binding = s;
  if (!pf_holds(j, NULL, 0, &plain, &why)) s->nbind = 0;
  j->binding = NULL;
}

/* ---------------------------------------------------------------- whole proofs */

typedef struct checking {
  pf_judge *j;
  const tarn_proof_options *o;
  tarn_proof_result r;
  pf_bounds worst; /* of all steps */
  bool *proved;    /* outputs of the program */
  TARN_VEC(tarn_proof_use) use;
  tarn_map *said; /* constants of which a range is assumed */
  TARN_VEC(const char *) assumed;
} checking;

static void count_use(checking *c, const pf_step *s) {
  const char *name = s->kind == PF_RULE ? s->rule : pf_kind_name[s->kind];
  uint32_t i = 0;
  while (i < c->use.n && strcmp(c->use.p[i].rule, name) != 0) i++;
  if (i == c->use.n) tarn_push(c->j->cx, &c->use, ((tarn_proof_use){name, 0}));
  c->use.p[i].count++;
}

static void refuse(checking *c, uint32_t step, const char *why) {
  c->r.ok = false;
  c->r.bad = step;
  c->r.why = why;
}

/* How nearly both sides of a step agree. */
static pf_bounds bounds_of(const checking *c, const pf_step *s) {
  uint32_t k = s->kind == PF_RULE ? tarn_ruleset_find(c->j->rs, s->rule) : TARN_NONE;
  if (k == TARN_NONE) return (pf_bounds){TARN_RULE_EXACT, 0};
  const rule *r = c->j->rs->rule.p[k];
  return (pf_bounds){r->numeric, r->bound};
}

/* Links between lemmas have nothing of their own to evaluate. */
static void replay(checking *c, const pf_proof *p, uint32_t i) {
  const pf_step *s = &p->step.p[i];
  const char *why;
  if (!c->o->replay || s->kind == PF_CONGRUENCE || s->kind == PF_LEMMA) return;
  pf_bounds b = bounds_of(c, s);
  pf_verdict v = pf_replay(p, s, b, c->o, &why);
  if (b.numeric > c->worst.numeric) c->worst.numeric = b.numeric;
  c->worst.bound += b.bound;
  c->r.replayed += v == PF_EQUAL;
  c->r.skipped += v == PF_SKIPPED;
  if (v == PF_SKIPPED) tarn_warn(c->j->cx, "step %u is not evaluated: %s", i + 1, why);
  if (v == PF_DIFFERENT) refuse(c, i + 1, why);
}

/* The theorem on its first and last terms, as they are. */
static void replay_theorem(checking *c, const pf_proof *p) {
  const char *why;
  pf_verdict v = pf_replay_whole(p, c->worst, c->o, &why);
  c->r.skipped += v == PF_SKIPPED;
  if (v == PF_SKIPPED)
    tarn_warn(c->j->cx, "%s: first and last term are not evaluated: %s", p->output, why);
  if (v == PF_DIFFERENT)
    refuse(c, TARN_NONE, tarn_format(c->j->cx, "%s: first and last term: %s", p->output, why));
}

/* Each once, with the first step that needs it. */
static void assume(checking *c, const pf_proof *p, uint32_t step) {
  const tarn_map *asked = r_term_asked(&c->j->host);
  for (uint32_t i = 0; i < tarn_map_count(asked); i++) {
    uint64_t t;
    bool fresh;
    tarn_map_item(asked, i, &t);
    tarn_map_at(c->said, t, &fresh);
    if (!fresh) continue;
    const double *v = (const double *)(uintptr_t)*tarn_map_get(p->range, t);
    const char *name =
        tarn_payload_get(c->j->L, tarn_term_get(c->j->L, (tarn_term)t)->payload)->name;
    const char *says =
        tarn_format(c->j->cx, "step %u: the constant %s lies between %.17g and %.17g", step,
                    tarn_shown(c->j->cx, name + strlen(PF_CONST)), v[0], v[1]);
    tarn_push(c->j->cx, &c->assumed, says);
  }
}
/* By what is known at once of constants, else by their values, else by what is stated of them. */
static bool holds_somehow(checking *c, const pf_proof *p, uint32_t lemma, uint32_t i,
                          const char **why) {
  const pf_step *s = &p->step.p[i];
  bool holds = false;
  for (r_effort e = R_AT_ONCE; e <= R_STATED && !holds; e++) {
    if (e > R_AT_ONCE && s->kind != PF_RULE) break;
    r_term_effort(&c->j->host, e);
    holds = pf_holds(c->j, p, lemma, s, why);
    if (holds && e == R_STATED) assume(c, p, i + 1);
  }
  r_term_effort(&c->j->host, R_AT_ONCE);
  return holds;
}

static void check_step(checking *c, const pf_proof *p, uint32_t lemma, uint32_t i, tarn_term at) {
  const pf_step *s = &p->step.p[i];
  const char *why = "";
  if (s->number != i + 1)
    refuse(c, i + 1, tarn_format(c->j->cx, "the step is numbered %u", s->number));
  else if (s->before != at) refuse(c, i + 1, "it does not begin where the one before it ends");
  else if (!holds_somehow(c, p, lemma, i, &why)) refuse(c, i + 1, why);
  else {
    count_use(c, s);
    replay(c, p, i);
  }
}

static void check_lemma(checking *c, const pf_proof *p, uint32_t k) {
  const pf_lemma *l = &p->lemma.p[k];
  tarn_term at = l->from;
  for (uint32_t i = 0; i < l->nparam; i++)
    if (tarn_map_get(p->range, l->param[i]))
      refuse(c, l->first + 1, "a range is stated of a parameter of its lemma");
  for (uint32_t i = l->first; i < l->first + l->n && c->r.ok; i++) {
    check_step(c, p, k, i, at);
    at = p->step.p[i].after;
  }
  if (c->r.ok && at != l->to)
    refuse(c, l->first + l->n + 1, "the lemma does not end where it says");
}

tarn_map *pf_constants(const tarn_program *m) {
  tarn_ctx *cx = tarn_lang_ctx(m->L);
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *seen = tarn_map_new(cx), *known = tarn_map_new(cx);
  bool fresh;
  for (uint32_t i = 0; i < m->nout; i++) tarn_push(cx, &todo, m->out[i].term);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    tarn_map_at(seen, t, &fresh);
    if (!fresh) continue;
    const tarn_node *x = tarn_term_get(m->L, t);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(cx, &todo, x->kid[i]);
    const tarn_tensor *v =
        x->op == TARN_OP_CONST ? tarn_payload_get(m->L, x->payload)->tensor : NULL;
    if (!v || tarn_tensor_bytes(v) <= PF_BYTES) continue;
    uint64_t *at = tarn_map_at(known, pf_fingerprint(v), &fresh);
    pf_known *k = TARN_NEW(cx, pf_known);
    *k = (pf_known){t, fresh ? NULL : (const pf_known *)(uintptr_t)*at};
    *at = (uint64_t)(uintptr_t)k;
  }
  return known;
}

/* Proofs call what stands for any term, and for a constant's values, by names of inputs. */
void pf_reserve_names(tarn_ctx *cx, const tarn_program *m) {
  for (uint32_t i = 0; i < m->nin; i++) {
    const char *s = m->in[i].name;
    bool ours = !strncmp(s, PF_CONST, strlen(PF_CONST)) ||
                (*s == '?' && s[1] && !s[1 + strspn(s + 1, "0123456789")]);
    if (ours)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "input %s: proofs use this name for themselves; give the input another", s);
  }
}

/* The proof begins at a program's output of its name: there may be several. */
static bool about_program(checking *c, const pf_proof *p) {
  const tarn_program *m = c->o->program;
  bool any = !m;
  for (uint32_t i = 0; m && i < m->nout; i++) {
    if (strcmp(m->out[i].name, p->output) != 0 || m->out[i].term != p->from) continue;
    c->proved[i] = true;
    any = true;
  }
  return any;
}

static void check_proof(checking *c, const pf_proof *p) {
  r_term_bounds(&c->j->host, p->range);
  if (p->wrong) refuse(c, TARN_NONE, tarn_format(c->j->cx, "%s: %s", p->output, p->wrong));
  else if (!about_program(c, p))
    refuse(c, TARN_NONE, tarn_format(c->j->cx, "%s: it is not about this program", p->output));
  for (uint32_t k = 0; k < p->lemma.n && c->r.ok; k++) check_lemma(c, p, k);
  c->r.steps += p->step.n;
  if (!c->r.ok) return;
  const pf_lemma *last = p->lemma.n ? &p->lemma.p[p->lemma.n - 1] : NULL;
  bool stated = last ? last->from == p->from && last->to == p->to : p->from == p->to;
  if (!stated || (last && last->nparam)) refuse(c, p->step.n, "the last lemma is not the theorem");
  else if (c->o->replay) replay_theorem(c, p);
}

tarn_proof_result tarn_proof_check(const tarn_ruleset *rs, const tarn_sx *proof,
                                   const tarn_proof_options *o) {
  checking c = {.j = pf_judge_new(rs), .o = o, .r = {.ok = true, .bad = TARN_NONE, .why = ""}};
  uint32_t nout = o->program ? o->program->nout : 0;
  if (proof->n == 0) tarn_sx_error(rs->cx, proof, "there is no proof in it");
  if (o->program) pf_reserve_names(rs->cx, o->program);
  c.said = tarn_map_new(rs->cx);
  c.proved = TARN_ARRAY(rs->cx, bool, nout + 1u);
  const tarn_map *known = o->program ? pf_constants(o->program) : NULL;
  for (uint32_t i = 0; i < proof->n && c.r.ok; i++)
    check_proof(&c, pf_read(rs->L, proof->kid[i], known));
  for (uint32_t i = 0; i < nout && c.r.ok; i++)
    if (!c.proved[i])
      refuse(&c, TARN_NONE,
             tarn_format(rs->cx, "nothing is proved of %s", o->program->out[i].name));
  c.r.nuse = c.use.n;
  c.r.use = c.use.p;
  c.r.nassumed = c.assumed.n, c.r.assumed = c.assumed.p;
  return c.r;
}
