/* From the reasons that an e-graph kept to a proof that stands without it. */
#include "rules/proof.h"
#include <string.h>

typedef struct explaining {
  tarn_saturation *s;
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_eg_proof *eg;
  pf_proof *p;
  tarn_term *term;  /* of each term of eg */
  tarn_map *of_id;  /* id of the graph -> its term + 1 */
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
  pf_step s = {.forward = e.forward, .before = x->term[e.before], .after = x->term[e.after], .at = TARN_NONE,
               .slot = TARN_NONE};
  if (e.rule == TARN_EG_RULE_CONGRUENCE) {
    s.kind = PF_CONGRUENCE;
    s.nlemma = tarn_eg_proof_term(x->eg, e.before).n;
    s.lemma = tarn_copy(x->cx, e.lemmas, (s.nlemma ? s.nlemma : 1) * sizeof *e.lemmas);
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
    pf_lemma to = {x->term[l.from], x->term[l.to], x->p->step.n, l.n};
    for (uint32_t k = 0; k < l.n; k++) take_step(x, l.first + k);
    tarn_push(x->cx, &x->p->lemma, to);
  }
}

/* The chain so far begins at the kernel form of what was imported: one more lemma, from there on. */
static void begin_at(explaining *x, tarn_term imported) {
  pf_proof *p = x->p;
  pf_lemma last = p->lemma.p[p->lemma.n - 1];
  if (imported == last.from) return;
  p->lemma.n--;
  pf_step norm = {.kind = PF_NORM, .forward = true, .before = imported, .after = last.from, .at = TARN_NONE, .slot = TARN_NONE};
  tarn_push(x->cx, &p->step, norm);
  for (uint32_t i = p->step.n - 1; i > last.first; i--) p->step.p[i] = p->step.p[i - 1];
  p->step.p[last.first] = norm;
  last.from = imported;
  last.n++;
  tarn_push(x->cx, &p->lemma, last);
}

void tarn_sat_explain(tarn_saturation *s, uint32_t root, tarn_term chosen, tarn_buf *out) {
  if (!s->o.reasons) tarn_raise(s->cx, TARN_USAGE, "explain: no reasons were kept");
  if (root >= s->nroot) tarn_raise(s->cx, TARN_USAGE, "explain: there is no output %u", root);
  tarn_eg_set_limits(s->g, 0, 0);
  uint32_t id = tarn_sat_add(s, chosen);
  pf_proof *p = TARN_NEW(s->cx, pf_proof);
  explaining x = {.s = s, .L = s->L, .cx = s->cx, .p = p, .of_id = tarn_map_new(s->cx)};
  x.eg = tarn_eg_explain(s->g, s->exact[root], id);
  if (!x.eg) tarn_raise(s->cx, tarn_eg_status(s->g), "explain: %s", tarn_eg_message(s->g));
  tarn_defer(s->cx, free_proof, x.eg);
  *p = (pf_proof){.L = s->L, .from = s->program->out[root].term, .to = chosen, .output = s->program->out[root].name};
  take_terms(&x);
  take_lemmas(&x);
  begin_at(&x, p->from);
  pf_write(p, out);
}
