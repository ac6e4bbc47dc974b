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
