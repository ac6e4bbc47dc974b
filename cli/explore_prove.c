/* Proofs of free terms: from the lab's graph into what is shown. */
#include "lab/lab.h"
#include "cli/explore_lab.h"

void lab_keep_proof(lab *l, tarn_egraph *g, tarn_eg_proof *p) {
  l->x->proof = tarn_free_proof_of(l->rs, g, p);
  if (!l->x->proof.chain.whole)
    tarn_warn(l->cx, "the proof has more than %u steps; the first of them are shown",
              l->x->proof.chain.n);
}
void lab_prove(lab *l, tarn_egraph *g, uint32_t from, uint32_t to) {
  tarn_eg_proof *p = tarn_eg_explain(g, from, to);
  if (!p) tarn_raise(l->cx, tarn_eg_status(g), "explore: %s", tarn_eg_message(g));
  lab_keep_proof(l, g, p);
}

/* ---- why a term is there ---- */
static tarn_eg_node proof_at(const void *from, uint32_t id) { return tarn_eg_proof_term(from, id); }
static const char *proof_text(lab *l, const tarn_eg_proof *p, uint32_t term) {
  enum { MOST = 1 << 16 }; /* bytes */
  tarn_buf b = {.cx = l->cx};
  tarn_free_print_term(l->rs, &b, proof_at, p, term, MOST);
  return b.p;
}
static void free_proof(void *p) { tarn_eg_proof_free(p); }
/* The oldest node that matches. */
static bool oldest(void *user, const tarn_eg_match *m) {
  uint32_t *id = user;
  if (m->nodes[0] < *id) *id = m->nodes[0];
  return true;
}
void lab_exists(lab *l) {
  cli_explore *x = l->x;
  uint32_t id = TARN_NONE;
  x->making.n = 0;
  tarn_eg_rules *what = tarn_free_pattern(l->rs, lab_read(l->cx, x->existence, "--existence"));
  if (tarn_eg_search(l->g, what, 0, oldest, &id) == UINT64_MAX)
    tarn_raise(l->cx, tarn_eg_status(l->g), "explore: %s", tarn_eg_message(l->g));
  if (id == TARN_NONE) return;
  tarn_eg_proof *p = tarn_eg_explain_existence(l->g, id, l->given);
  if (!p) tarn_raise(l->cx, tarn_eg_status(l->g), "explore: %s", tarn_eg_message(l->g));
  tarn_defer(l->cx, free_proof, p);
  for (uint32_t i = 0; i < tarn_eg_proof_lemmas(p); i++) {
    tarn_eg_lemma m = tarn_eg_proof_lemma(p, i);
    explore_making row = {.left = proof_text(l, p, m.from), .right = proof_text(l, p, m.to)};
    if (m.n) row.rule = tarn_free_rule_name(l->rs, tarn_eg_proof_step(p, m.first).rule);
    tarn_push(l->cx, &x->making, row);
  }
}
