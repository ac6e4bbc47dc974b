/* Turns the reasons that an e-graph kept into a proof that is independent of it. */
#include "kernel/edit.h"
#include "rules/proof/proof.h"
#include "rules/run/run.h"
#include <string.h>

enum { SHORTEN_WORK = 20000000 };

typedef struct explaining {
  tarn_saturation *s;
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_eg_proof *eg;
  pf_proof *p;
  tarn_term *term; /* of each term of eg */
  tarn_map *of_id; /* id of the graph -> its term + 1 */
  uint32_t shift;  /* lemmas before those of eg */
  /* of what was imported */
  renv *former;
  tarn_map *form;  /* for kern_form() */
  tarn_map *lemma; /* term -> the lemma that leads to its kernel form, + 1 */
} explaining;

static void free_proof(void *arg) { tarn_eg_proof_free(arg); }

static void take_terms(explaining *x) {
  uint32_t n = tarn_eg_proof_terms(x->eg);
  x->term = TARN_ARRAY(x->cx, tarn_term, n ? n : 1);
  for (uint32_t i = 0; i < n; i++) {
    tarn_eg_node t = tarn_eg_proof_term(x->eg, i);
    tarn_term *kid = TARN_ARRAY(x->cx, tarn_term, t.n ? t.n : 1);
    for (uint32_t k = 0; k < t.n; k++) kid[k] = x->term[t.kids[k]];
    x->term[i] = tarn_mk(x->L, t.op, t.payload, kid, t.n);
  }
}

/* The term that an id stands for; no recursion: networks are deep. */
static tarn_term term_of_id(explaining *x, uint32_t id) {
  TARN_VEC(uint32_t) todo = {0};
  tarn_push(x->cx, &todo, id);
  while (todo.n) {
    uint32_t i = todo.p[todo.n - 1], have = todo.n;
    tarn_eg_node t = tarn_eg_term_at(x->s->g, i);
    tarn_term *kid = TARN_ARRAY(x->cx, tarn_term, t.n ? t.n : 1);
    for (uint32_t k = 0; k < t.n; k++) {
      const uint64_t *known = tarn_map_get(x->of_id, t.kids[k]);
      if (known) kid[k] = (tarn_term)(*known - 1);
      else tarn_push(x->cx, &todo, t.kids[k]);
    }
    if (todo.n > have) continue;
    todo.n--;
    *tarn_map_at(x->of_id, i, NULL) = (uint64_t)tarn_mk(x->L, t.op, t.payload, kid, t.n) + 1;
  }
  return (tarn_term)(*tarn_map_get(x->of_id, id) - 1);
}

/* ---------------------------------------------------------------- steps */

static void take_note(explaining *x, const tarn_eg_step *e, pf_step *s) {
  const uint32_t *note = x->s->note.p + e->note;
  s->at = s->slot = TARN_NONE;
  if (e->note == 0) return;
  if (note[0] != TARN_NONE) s->at = term_of_id(x, note[0]);
  s->slot = note[1];
  s->nopen = note[2];
  s->open = tarn_copy(x->cx, note + 3, (s->nopen ? s->nopen : 1) * sizeof *note);
  note += 3 + s->nopen;
  tarn_term *extra = TARN_ARRAY(x->cx, tarn_term, note[0] ? note[0] : 1);
  for (uint32_t i = 0; i < note[0]; i++) extra[i] = term_of_id(x, note[1 + i]);
  s->nextra = note[0];
  s->extra = extra;
  if (s->at == (s->forward ? s->before : s->after)) s->at = TARN_NONE;
}

static void take_step(explaining *x, uint32_t i) {
  tarn_eg_step e = tarn_eg_proof_step(x->eg, i);
  pf_step s = {.forward = e.forward,
               .before = x->term[e.before],
               .after = x->term[e.after],
               .at = TARN_NONE,
               .slot = TARN_NONE};
  if (e.rule == TARN_EG_RULE_CONGRUENCE) {
    s.kind = PF_CONGRUENCE;
    s.nlemma = tarn_eg_proof_term(x->eg, e.before).n;
    uint32_t *l = tarn_copy(x->cx, e.lemmas, (s.nlemma ? s.nlemma : 1) * sizeof *e.lemmas);
    for (uint32_t k = 0; k < s.nlemma; k++)
      if (l[k] != TARN_NONE) l[k] += x->shift;
    s.lemma = l;
  } else if (e.rule == TARN_EG_RULE_ANALYSIS) {
    s.kind = PF_VALUE;
  } else if (e.rule == R_RULE_NORM || e.rule == TARN_EG_RULE_GIVEN) {
    s.kind = PF_NORM;
  } else {
    s.kind = PF_RULE;
    s.rule = x->s->rs->rule.p[e.rule]->name;
    take_note(x, &e, &s);
  }
  tarn_push(x->cx, &x->p->step, s);
}

static void take_lemmas(explaining *x) {
  for (uint32_t i = 0; i < tarn_eg_proof_lemmas(x->eg); i++) {
    tarn_eg_lemma l = tarn_eg_proof_lemma(x->eg, i);
    pf_lemma to = {.from = x->term[l.from], .to = x->term[l.to], .first = x->p->step.n, .n = l.n};
    for (uint32_t k = 0; k < l.n; k++) take_step(x, l.first + k);
    tarn_push(x->cx, &x->p->lemma, to);
  }
}

/* ---------------------------------------------------------------- from what was imported to kernel
 * form
 *
 * One lemma for each imported term that becomes a kernel: first, the kernel over what the term is
 * made of; then the kernel forms of that. What lies between two kernels, views and the like,
 * belongs to the upper one. */

static tarn_term form_of(explaining *x, tarn_term t) {
  return kern_form(&x->former->host->nest, x->form, t);
}

static bool is_kernel(explaining *x, tarn_term t) {
  static const uint32_t others[] = {TARN_OP_VIEW, TARN_OP_CONCAT, TARN_OP_NTH, TARN_OP_INPUT,
                                    TARN_OP_CONST};
  const tarn_node *f = tarn_term_get(x->L, form_of(x, t));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (f->op == others[i]) return false;
  return !tarn_type_get(x->L, f->type)->tuple;
}

static pf_step plain_step(pf_kind kind, tarn_term before, tarn_term after) {
  return (pf_step){.kind = kind,
                   .forward = true,
                   .before = before,
                   .after = after,
                   .at = TARN_NONE,
                   .slot = TARN_NONE};
}

static uint32_t end_lemma(explaining *x, tarn_term from, tarn_term to, uint32_t n) {
  pf_lemma l = {.from = from, .to = to, .first = x->p->step.n - n, .n = n};
  tarn_push(x->cx, &x->p->lemma, l);
  return x->p->lemma.n - 1;
}

/* Inputs put for the kernels below t: in[v] = input + 1, out[input] = v + 1, formed[input] = kernel
 * form of v + 1. */
typedef struct cutting {
  tarn_map *in, *out, *formed;
} cutting;

static void cut_below(explaining *x, tarn_term t, const cutting *c) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(x->cx, &todo, t);
  while (todo.n) {
    tarn_term u = todo.p[--todo.n];
    const tarn_node *n = tarn_term_get(x->L, u);
    if (tarn_map_get(c->in, u)) continue;
    if (u == t || !is_kernel(x, u)) {
      for (uint32_t i = n->n; i-- > 0;) tarn_push(x->cx, &todo, n->kid[i]);
      continue;
    }
    n = tarn_term_get(x->L, u);
    if (n->n == 0) continue;
    tarn_term p = tarn_input(x->L, tarn_format(x->cx, "?%u", tarn_map_count(c->in)), n->type);
    *tarn_map_at(c->in, u, NULL) = (uint64_t)p + 1;
    *tarn_map_at(c->out, p, NULL) = (uint64_t)u + 1;
    *tarn_map_at(c->formed, p, NULL) = (uint64_t)form_of(x, u) + 1;
  }
}

/* A lemma from a to b, which differ in nothing but imported terms that have one; TARN_NONE: none is
 * needed. */
static uint32_t descend(explaining *x, tarn_term a, tarn_term b) {
  const uint64_t *known = tarn_map_get(x->lemma, a);
  if (a == b) return TARN_NONE;
  if (known && x->p->lemma.p[*known - 1].to == b) return (uint32_t)*known - 1;
  tarn_node n = *tarn_term_get(x->L, a), m = *tarn_term_get(x->L, b);
  uint32_t *l = TARN_ARRAY(x->cx, uint32_t, n.n ? n.n : 1);
  if (n.n != m.n) tarn_raise(x->cx, TARN_INTERNAL, "explain: two terms have different shapes");
  for (uint32_t i = 0; i < n.n; i++) l[i] = descend(x, n.kid[i], m.kid[i]);
  pf_step s = plain_step(PF_CONGRUENCE, a, b);
  s.nlemma = n.n;
  s.lemma = l;
  tarn_push(x->cx, &x->p->step, s);
  return end_lemma(x, a, b, 1);
}

static void import_kernel(explaining *x, tarn_term t) {
  cutting c = {tarn_map_new(x->cx), tarn_map_new(x->cx), tarn_map_new(x->cx)};
  cut_below(x, t, &c);
  tarn_term local = form_of(x, pf_subst(x->L, t, c.in)), to = form_of(x, t);
  tarn_term over = pf_subst(x->L, local, c.out), done = pf_subst(x->L, local, c.formed);
  uint32_t below = descend(x, over, done), n = 0;
  if (t == to) return;
  if (t != over) tarn_push(x->cx, &x->p->step, plain_step(PF_NORM, t, over)), n++;
  if (below != TARN_NONE) {
    pf_lemma l = x->p->lemma.p[below];
    for (uint32_t i = 0; i < l.n; i++)
      tarn_push(x->cx, &x->p->step, x->p->step.p[l.first + i]), n++;
  }
  if (done != to) tarn_push(x->cx, &x->p->step, plain_step(PF_NORM, done, to)), n++;
  *tarn_map_at(x->lemma, t, NULL) = (uint64_t)end_lemma(x, t, to, n) + 1;
}

/* All that root is made of, each term after its kids. */
static void import_all(explaining *x, tarn_term root) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *done = tarn_map_new(x->cx);
  tarn_push(x->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *n = tarn_term_get(x->L, t);
    uint32_t have = todo.n;
    for (uint32_t i = 0; i < n->n; i++)
      if (!tarn_map_get(done, n->kid[i])) tarn_push(x->cx, &todo, n->kid[i]);
    if (todo.n > have) continue;
    todo.n--;
    if (tarn_map_get(done, t)) continue;
    tarn_map_at(done, t, NULL);
    if (t == root || is_kernel(x, t)) import_kernel(x, t);
  }
}

/* The chain of the graph begins at the kernel form of what was imported: the last lemma gets what
 * comes before. */
static void begin_at(explaining *x, tarn_term imported) {
  pf_proof *p = x->p;
  pf_lemma last = p->lemma.p[p->lemma.n - 1];
  const uint64_t *k = tarn_map_get(x->lemma, imported);
  if (imported == last.from) return;
  uint32_t first = p->step.n, n = last.n;
  pf_step via = plain_step(PF_LEMMA, imported, last.from);
  via.nlemma = 1;
  via.lemma = tarn_copy(x->cx, &(uint32_t){(uint32_t)(*k - 1)}, sizeof(uint32_t));
  tarn_push(x->cx, &p->step, via);
  for (uint32_t i = 0; i < n; i++) tarn_push(x->cx, &p->step, p->step.p[last.first + i]);
  p->lemma.p[p->lemma.n - 1] =
      (pf_lemma){.from = imported, .to = last.to, .first = first, .n = n + 1};
}

static pf_proof *prove(tarn_saturation *s, uint32_t root, tarn_term chosen) {
  if (!s->o.reasons) tarn_raise(s->cx, TARN_USAGE, "explain: no reasons were kept");
  if (root >= s->nroot) tarn_raise(s->cx, TARN_USAGE, "explain: there is no output %u", root);
  pf_reserve_names(s->cx, s->program);
  tarn_eg_set_limits(s->g, 0, 0);
  uint32_t id = tarn_sat_add(s, chosen);
  pf_proof *p = TARN_NEW(s->cx, pf_proof);
  explaining x = {.s = s,
                  .L = s->L,
                  .cx = s->cx,
                  .p = p,
                  .of_id = tarn_map_new(s->cx),
                  .form = tarn_map_new(s->cx),
                  .lemma = tarn_map_new(s->cx),
                  .former = TARN_NEW(s->cx, renv)};
  rhost host = tarn_r_term_host(s->L);
  *x.former = (renv){.L = s->L, .host = &host};
  x.eg = tarn_eg_explain(s->g, s->exact[root], id);
  if (!x.eg) tarn_raise(s->cx, tarn_eg_status(s->g), "explain: %s", tarn_eg_message(s->g));
  tarn_defer(s->cx, free_proof, x.eg);
  tarn_eg_proof_shorten(x.eg, SHORTEN_WORK);
  if (tarn_eg_proof_status(x.eg)) tarn_raise(s->cx, TARN_MEMORY, "explain: out of memory");
  *p = (pf_proof){.L = s->L,
                  .from = s->program->out[root].term,
                  .to = chosen,
                  .output = s->program->out[root].name};
  take_terms(&x);
  if (!s->o.surface && !s->both) import_all(&x, p->from);
  x.shift = p->lemma.n;
  take_lemmas(&x);
  begin_at(&x, p->from);
  return p;
}

void tarn_sat_explain(tarn_saturation *s, uint32_t root, tarn_term chosen, tarn_buf *out) {
  pf_proof *p = pf_tidy(s->rs, prove(s, root, chosen));
  pf_carry(s->rs, p, s->o.proof_of_program ? s->program : NULL);
  pf_write(p, s->rs, out);
}

/* A step of a rule that was asked for, on random values. */
static void replay(tarn_saturation *s, const pf_proof *p, const pf_step *step,
                   const tarn_proof_options *o, tarn_sat_use *use) {
  const rule *r = s->rs->rule.p[tarn_ruleset_find(s->rs, step->rule)];
  const char *why;
  pf_verdict v = pf_replay(p, step, (pf_bounds){r->numeric, r->bound}, o, &why);
  use->replayed += v == PF_EQUAL, use->skipped += v == PF_SKIPPED;
  if (v == PF_DIFFERENT)
    tarn_raise(s->cx, TARN_NO, "%s:%u: rule %s is wrong in this program: %s", r->at->file,
               r->at->line, r->name, why);
}
void tarn_sat_uses(tarn_saturation *s, uint32_t root, tarn_term chosen, const tarn_proof_options *o,
                   tarn_sat_use *uses) {
  enum { MOST = 32 }; /* steps of one rule that are evaluated */
  const pf_proof *p = prove(s, root, chosen);
  tarn_map *seen = tarn_map_new(s->cx);
  for (uint32_t i = 0; i < p->step.n; i++) {
    const pf_step *step = &p->step.p[i];
    if (step->kind != PF_RULE) continue;
    uint32_t number = tarn_ruleset_find(s->rs, step->rule);
    tarn_sat_use *use = &uses[number];
    bool fresh;
    use->steps++;
    if (!o || !s->rs->rule.p[number]->asked) continue;
    tarn_map_at(seen, tarn_hash_mix(step->before, step->after), &fresh);
    if (!fresh) continue;
    if (use->replayed + use->skipped == MOST) use->left++;
    else replay(s, p, step, o, use);
  }
}
