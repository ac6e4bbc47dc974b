/* Both ways to feed a product from windows: read in place (implicit im2col), or copied first
 * (materialised). */
#include "extract/kgraph.h"
#include <math.h>
#include <string.h>

static uint32_t group_of(const kgraph *k, uint32_t ag) {
  for (uint32_t g = 0; g < k->group.n; g++)
    if (kg_of_group(k, &k->group.p[g], ag)) return g;
  return TARN_NONE;
}
/* Does the candidate copy a view that the graph asks for, not just another order of a buffer?
 */
static bool writes_out(const kgraph *k, const kcand *c) {
  return c->kind == KC_NEST && c->node != TARN_NONE &&
         tarn_eg_node_at(k->g, c->node).op == TARN_OP_MATERIALISE;
}
/* The cheapest way to write the buffer out, and the group that it is read from. */
static double written(const kgraph *k, uint32_t ag, uint32_t *from) {
  double best = INFINITY;
  for (uint32_t i = 0; i < k->cand.n; i++) {
    const kcand *c = &k->cand.p[i];
    if (k->cand_class.p[i] != ag || !writes_out(k, c) || c->child[0] == TARN_NONE ||
        c->price >= best)
      continue;
    best = c->price, *from = group_of(k, c->child[0]);
  }
  return best;
}

/* What the candidate reads in the end: the groups of its operands, those that are written out
 * replaced by what they are read from; a sum that does not depend on their order, and what writing
 * out costs. */
typedef struct reading {
  uint64_t from;
  double extra;
  bool out;
} reading;
static reading read_by(const kgraph *k, const kcand *c) {
  reading r = {0};
  for (uint32_t j = 0; j < c->nchild; j++) {
    if (c->child[j] == TARN_NONE) continue;
    uint32_t from = group_of(k, c->child[j]);
    double price = written(k, c->child[j], &from);
    if (price < INFINITY) r.extra += price, r.out = true;
    r.from += tarn_hash_mix(from, 1);
  }
  return r;
}

void kg_ways(kgraph *k, uint32_t ag, const kcand *chosen, const char *name) {
  uint32_t g = group_of(k, ag);
  if (g == TARN_NONE) return;
  const kgroup *gr = &k->group.p[g];
  uint64_t from = read_by(k, chosen).from;
  double way[2] = {INFINITY, INFINITY};
  for (uint32_t i = 0; i < k->cand.n; i++) {
    const kcand *c = &k->cand.p[i];
    if (!kg_of_group(k, gr, k->cand_class.p[i]) || c->machine != chosen->machine ||
        c->kind != KC_NEST || c->copy)
      continue;
    reading r = read_by(k, c);
    if (r.from == from) way[r.out] = fmin(way[r.out], c->price + r.extra);
  }
  if (fmax(way[0], way[1]) < INFINITY)
    tarn_push(k->cx, &k->ways, ((tarn_ways){name, way[0], way[1]}));
}
