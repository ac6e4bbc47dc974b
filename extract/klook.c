/* Operands that a gather gives: a kernel can read them where the gather's operands lie, so that
 * what is gathered is never written. */
#include "extract/kgraph.h"
#include "kernel/loops.h"
#include <string.h>

static uint32_t joined(kgraph *k, uint32_t a, uint32_t b) {
  return b == TARN_NONE ? TARN_NONE : tarn_map_compose(k->L, a, b);
}
/* A view of the operand whose buffer a gather makes; false: there is none. */
static bool gathered(kgraph *k, const koperand *op, klook *l) {
  for (uint32_t i = 0; i < op->nv && !op->constant; i++) {
    const kgroup *g = &k->group.p[op->v[i].group];
    if (g->gather == TARN_NONE) continue;
    tarn_eg_node e = tarn_eg_node_at(k->g, g->gather);
    l->node = g->gather, l->kcls = g->gathered;
    l->axis = (uint32_t)tarn_payload_get(k->L, e.payload)->ints[0];
    l->view = joined(k, op->v[i].map, kg_from_rep(k, g->gathered));
    if (l->view != TARN_NONE) return true;
  }
  return false;
}
static bool looks_up(const kgraph *k) { return tarn_hw_traits_of(k->now.hw).lookups; }

const klooks *kg_looks(kgraph *k, uint32_t nk, koperand *op, uint32_t *more) {
  klooks all = {0};
  for (uint32_t j = 0; j < nk && looks_up(k) && nk + all.n < KG_MAX_KIDS; j++) {
    klook l = {.child = j, .index = nk + all.n};
    koperand table, *index = &op[l.index];
    if (!gathered(k, &op[j], &l)) continue;
    tarn_eg_node e = tarn_eg_node_at(k->g, l.node);
    uint32_t of = kg_class(k, e.kids[0]), by = kg_class(k, e.kids[1]);
    if (!kg_operand(k, of, TARN_NONE, &table) || !kg_operand(k, by, TARN_NONE, index) ||
        !table.nv || !index->nv)
      continue;
    l.table = k->cls.p[of].type, l.indices = k->cls.p[by].type;
    op[j] = table;
    all.at[all.n++] = l;
  }
  *more = all.n;
  return all.n ? tarn_copy(k->cx, &all, sizeof all) : NULL;
}

bool kg_look_up(kgraph *k, knest *w, const klook *l, const kview *const *v) {
  const knest_rows r = {.axis = l->axis,
                        .table = *tarn_type_get(k->L, l->table),
                        .index = *tarn_type_get(k->L, l->indices),
                        .view = l->view,
                        .table_view = v[l->child]->map,
                        .index_view = v[l->index]->map};
  return knest_look_up(w, l->child, l->index, &r);
}
