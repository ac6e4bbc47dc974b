/* Both ways to feed a product from windows: read in place (implicit im2col), or copied first
 * (materialised). */
#include "extract/kgraph.h"
#include <math.h>
#include <string.h>

/* A buffer as operands are read from it: what it is written out from, at the least price. */
typedef struct source {
  double price; /* INFINITY: nothing writes it out */
  uint32_t group;
} source;
struct kways {
  bool any;       /* is some buffer written out? */
  source *source; /* per AND/OR class */
  /* Candidates of each group that are no copies, by their numbers: the first one + 1, and per
   * candidate the next one + 1; 0: none. */
  uint32_t *first, *next;
};

/* Does the candidate copy a view that the graph asks for, not just another order of a buffer?
 */
static bool writes_out(const kgraph *k, const kcand *c) {
  return c->kind == KC_NEST && c->node != TARN_NONE && c->child[0] != TARN_NONE &&
         tarn_eg_node_at(k->g, c->node).op == TARN_OP_MATERIALISE;
}
static void note_source(const kgraph *k, struct kways *w, uint32_t ag, const kcand *c) {
  source *s = &w->source[ag];
  if (!writes_out(k, c) || c->price >= s->price) return;
  *s = (source){c->price, kg_group_of(k, c->child[0])};
  w->any = true;
}
static void list_by_group(const kgraph *k, struct kways *w) {
  w->first = TARN_ARRAY(k->cx, uint32_t, k->group.n);
  w->next = TARN_ARRAY(k->cx, uint32_t, k->cand.n);
  for (uint32_t i = k->cand.n; i-- > 0;) {
    const kcand *c = &k->cand.p[i];
    uint32_t g = kg_group_of(k, k->cand_class.p[i]);
    if (g == TARN_NONE || c->kind != KC_NEST || c->copy) continue;
    w->next[i] = w->first[g];
    w->first[g] = i + 1;
  }
}
static struct kways *new_ways(const kgraph *k) {
  struct kways *w = TARN_NEW(k->cx, struct kways);
  w->source = TARN_ARRAY(k->cx, source, k->nag);
  for (uint32_t i = 0; i < k->nag; i++) w->source[i] = (source){INFINITY, kg_group_of(k, i)};
  for (uint32_t i = 0; i < k->cand.n; i++) note_source(k, w, k->cand_class.p[i], &k->cand.p[i]);
  if (w->any) list_by_group(k, w);
  return w;
}

/* What the candidate reads in the end: the groups of its operands, those that are written out
 * replaced by what they are read from; a sum that does not depend on their order, and what writing
 * out costs. */
typedef struct reading {
  uint64_t from;
  double extra;
  bool out;
} reading;
static reading read_by(const struct kways *w, const kcand *c) {
  reading r = {0};
  for (uint32_t j = 0; j < c->nchild; j++) {
    if (c->child[j] == TARN_NONE) continue;
    const source *s = &w->source[c->child[j]];
    if (s->price < INFINITY) r.extra += s->price, r.out = true;
    r.from += tarn_hash_mix(s->group, 1);
  }
  return r;
}

void kg_ways(kgraph *k, uint32_t ag, const kcand *chosen, const char *name) {
  uint32_t g = kg_group_of(k, ag);
  if (!k->by_group) k->by_group = new_ways(k);
  const struct kways *w = k->by_group;
  if (g == TARN_NONE || !w->any) return;
  uint64_t from = read_by(w, chosen).from;
  double way[2] = {INFINITY, INFINITY};
  for (uint32_t i = w->first[g]; i; i = w->next[i - 1]) {
    const kcand *c = &k->cand.p[i - 1];
    if (c->machine != chosen->machine) continue;
    reading r = read_by(w, c);
    if (r.from == from) way[r.out] = fmin(way[r.out], c->price + r.extra);
  }
  if (fmax(way[0], way[1]) < INFINITY)
    tarn_push(k->cx, &k->ways, ((tarn_ways){name, way[0], way[1]}));
}
