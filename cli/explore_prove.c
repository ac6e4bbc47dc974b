/* Proofs of free terms: the chain from one term to another, and lemmas for what conditions of its
 * rules ask to be equal. */
#include "lab/lab.h"
#include "cli/explore_lab.h"
#include <string.h>

enum { PROOF_STEPS = 100000, MOST_LEMMAS = 200 };

static void free_proof(void *arg) { tarn_eg_proof_free(arg); }
static tarn_eg_node proof_at(const void *from, uint32_t id) { return tarn_eg_proof_term(from, id); }

/* ---- one chain ---- */
typedef struct keeping {
  lab *l;
  const tarn_eg_proof *p;
  const tarn_eg_flat *step;
  explore_chain chain;
} keeping;
static void keep(tarn_ctx *cx, void *arg) {
  keeping *k = arg;
  tarn_buf b = {.cx = cx};
  lab_print(k->l, &b, proof_at, k->p, k->step->whole);
  explore_step s = {lab_rule_name(k->l, k->step->rule), k->step->forward, b.p};
  tarn_push(cx, &k->chain.step, s);
}
/* Called from inside the engine, which must not be jumped out of. */
static bool keep_step(void *user, const tarn_eg_proof *p, const tarn_eg_flat *step) {
  keeping *k = user;
  k->p = p, k->step = step;
  k->l->failed = tarn_protect(k->l->cx, keep, k);
  return !k->l->failed;
}
static explore_chain chain_of(lab *l, tarn_eg_proof *p) {
  keeping k = {.l = l};
  tarn_defer(l->cx, free_proof, p);
  tarn_free_shorten(l->rs, p);
  tarn_buf b = {.cx = l->cx};
  lab_print(l, &b, proof_at, p, tarn_eg_proof_lemma(p, tarn_eg_proof_lemmas(p) - 1).from);
  k.chain.from = b.p;
  k.chain.whole = tarn_eg_proof_flatten(p, PROOF_STEPS, keep_step, &k) != UINT64_MAX;
  if (l->failed) tarn_reraise(l->cx, l->failed);
  return k.chain;
}

/* ---- what it asks for ---- */
typedef struct showing {
  lab *l;
  tarn_egraph *g;
  TARN_VEC(const char *) asked; /* (equal A B), each once */
} showing;
static void show_needs(showing *s, const explore_chain *c);

static void show_equal(showing *s, const char *text) {
  lab *l = s->l;
  const tarn_sx *t = tarn_sx_read(l->cx, text, strlen(text), "condition")->kid[0];
  if (t->n != 3) return;
  uint32_t a = tarn_free_add(l->rs, s->g, t->kid[1]), b = tarn_free_add(l->rs, s->g, t->kid[2]);
  if (tarn_eg_rebuild(s->g) || tarn_eg_find(s->g, a) != tarn_eg_find(s->g, b)) return;
  tarn_eg_proof *p = tarn_eg_explain(s->g, a, b);
  if (!p) return;
  explore_chain c = chain_of(l, p);
  if (!c.whole) return;
  show_needs(s, &c);
  tarn_push(l->cx, &l->x->lemma, c);
}
/* The checker says what is not shown; a lemma comes after those that it needs itself. What is in
 * need of itself stays assumed.
 */
static void show_needs(showing *s, const explore_chain *c) {
  tarn_ctx *cx = s->l->cx;
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < s->l->x->lemma.n; i++)
    explore_print_chain(&b, "lemma", &s->l->x->lemma.p[i]);
  explore_print_chain(&b, "proof", c);
  tarn_proof_result r = tarn_free_proof_check(s->l->rs, tarn_sx_read(cx, b.p, b.n, "proof"));
  for (uint32_t i = 0; i < r.nassumed && s->asked.n < MOST_LEMMAS; i++) {
    bool asked = strncmp(r.assumed[i], "(equal ", 7) || strstr(r.assumed[i], "...");
    for (uint32_t j = 0; j < s->asked.n; j++) asked |= !strcmp(s->asked.p[j], r.assumed[i]);
    if (asked) continue;
    tarn_push(cx, &s->asked, r.assumed[i]);
    show_equal(s, r.assumed[i]);
  }
}

void lab_keep_proof(lab *l, tarn_egraph *g, tarn_eg_proof *p) {
  showing s = {.l = l, .g = g};
  l->x->lemma.n = 0;
  l->x->chain = chain_of(l, p);
  if (l->x->chain.whole) show_needs(&s, &l->x->chain);
  else
    tarn_warn(l->cx, "the proof has more than %d steps; the first of them are shown", PROOF_STEPS);
}
void lab_prove(lab *l, tarn_egraph *g, uint32_t from, uint32_t to) {
  tarn_eg_proof *p = tarn_eg_explain(g, from, to);
  if (!p) tarn_raise(l->cx, tarn_eg_status(g), "explore: %s", tarn_eg_message(g));
  lab_keep_proof(l, g, p);
}
