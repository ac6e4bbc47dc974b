/* Prints the kernel graph: buffers with their storage orders, and every candidate kernel with its
 * reads and its price. */
#include "extract/kgraph.h"
#include <string.h>

static const char *const kinds[] = {
    [KC_INPUT] = "input", [KC_NEST] = "nest",  [KC_CONCAT] = "concat", [KC_OTHER] = "call",
    [KC_ALIAS] = "alias", [KC_NTH] = "result", [KC_MOVE] = "move"};

static void print_layout(tarn_buf *b, const tarn_layout *l) {
  tarn_buf_str(b, " (order");
  for (uint32_t d = 0; d < l->n; d++)
    tarn_buf_fmt(b, " %lld:%lld", (long long)l->dim[d], (long long)l->stride[d]);
  tarn_buf_str(b, ")");
}
static void print_orders(const kgraph *k, tarn_buf *b, const kgroup *g, uint32_t place) {
  for (uint32_t l = 0; l < g->nlayout; l++) {
    tarn_buf_fmt(b, "\n    (slot %u)", g->first + place * g->nlayout + l);
    if (k->machines.n > 1) {
      tarn_buf_str(b, " (place ");
      tarn_sx_name(b, k->machines.hw[place]->name, strlen(k->machines.hw[place]->name));
      tarn_buf_str(b, ")");
    }
    print_layout(b, &g->layout[l]);
    if (g->part_of[l] == TARN_NONE) continue;
    const kgroup *whole = &k->group.p[g->part_of[l] / KG_MAX_LAYOUTS];
    tarn_buf_fmt(b, " (part of slot %u)",
                 whole->first + place * whole->nlayout + g->part_of[l] % KG_MAX_LAYOUTS);
  }
}
static void print_group(const kgraph *k, tarn_buf *b, uint32_t i) {
  const kgroup *g = &k->group.p[i];
  if (!g->nlayout) return;
  tarn_buf_fmt(b, "\n  (buffer %u (class %u) ", i, k->cls.p[g->rep].cls);
  tarn_type_print(k->L, b, g->type);
  if (g->input) tarn_buf_str(b, " (input)");
  for (uint32_t m = 0; m < k->machines.n; m++)
    if (k->machines.place[m] == m) print_orders(k, b, g, m);
  tarn_buf_str(b, ")");
}
static void print_cand(const kgraph *k, tarn_buf *b, uint32_t i, bool chosen) {
  const kcand *c = &k->cand.p[i];
  tarn_buf_fmt(b, "\n  (%s %u (slot %u)", c->copy && c->kind != KC_MOVE ? "copy" : kinds[c->kind],
               i, k->cand_class.p[i]);
  if (c->node != TARN_NONE) tarn_buf_fmt(b, " (node %u)", c->node);
  if (c->nchild) tarn_buf_str(b, " (reads");
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] == TARN_NONE) tarn_buf_str(b, " const");
    else tarn_buf_fmt(b, " %u", c->child[j]);
  if (c->nchild) tarn_buf_str(b, ")");
  tarn_buf_fmt(b, " (us %.4g)%s)", 1e6 * c->price, chosen ? " chosen" : "");
}
void kg_print(const kgraph *k, const uint32_t *choice, tarn_buf *b) {
  tarn_buf_str(b, "(kernel-graph");
  for (uint32_t i = 0; i < k->group.n; i++) print_group(k, b, i);
  for (uint32_t i = 0; i < k->cand.n; i++) print_cand(k, b, i, choice[k->cand_class.p[i]] == i);
  tarn_buf_str(b, ")\n");
}
