/* Inputs that lie in outputs (tarn_in_place): a cache to which a run adds rows.
 *
 * The output is a concatenation, and the input is its first part. The input has one storage order:
 * that of its place in the output. The output has the order of the caller's buffer alone, and its
 * only candidates are concatenations with the input in that place. So no kernel writes the old
 * rows, and every read of them, early or late, gets what the caller left there. A pair that does
 * not meet this condition gets two buffers. Without old rows, any candidate may write the output in
 * that order. */
#include "extract/kgraph.h"
#include <string.h>

static uint32_t class_of_input(const kgraph *k, const char *name) {
  for (uint32_t c = 0; c < k->cls.n; c++) {
    if (k->cls.p[c].constant || !k->group.p[k->cls.p[c].group].input) continue;
    EACH_NODE(k, k->cls.p[c].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      if (e.op == TARN_OP_INPUT && !strcmp(tarn_payload_get(k->L, e.payload)->name, name)) return c;
    }
  }
  return TARN_NONE;
}
/* The order of the caller's buffer, over the dims of the class's group. */
static bool order_of(kgraph *k, const tarn_in_place *x, uint32_t c, tarn_layout *over) {
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[c].type);
  tarn_layout own = tarn_in_place_layout(x, t->n, t->dim);
  uint32_t back = kg_from_rep(k, c);
  return back != TARN_NONE && kg_layout_over(k, &own, back, over);
}
/* Does this concatenation, when its class lies so, have the input's group first and in its place?
 */
static bool begins_with(kgraph *k, const kshared *s, uint32_t kc, const tarn_eg_node *e) {
  tarn_layout whole, over;
  uint32_t kid = kg_class(k, e->kids[0]), back = kg_from_rep(k, kid);
  uint32_t axis = (uint32_t)tarn_payload_get(k->L, e->payload)->ints[0];
  if (k->cls.p[kid].constant || k->cls.p[kid].group != s->in_group || back == TARN_NONE ||
      !kg_layout_over(k, &s->out_order, k->cls.p[kc].to_rep, &whole))
    return false;
  tarn_layout part = kg_part(&whole, tarn_type_get(k->L, k->cls.p[kid].type), axis, 0);
  return kg_layout_over(k, &part, back, &over) && tarn_layout_equal(&over, &s->in_order);
}
static bool adds_rows(kgraph *k, const kshared *s) {
  for (uint32_t c = 0; c < k->cls.n; c++) {
    if (k->cls.p[c].group != s->out_group || k->cls.p[c].constant) continue;
    EACH_NODE(k, k->cls.p[c].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      if (e.op == TARN_OP_CONCAT && e.n > 1 && begins_with(k, s, c, &e)) return true;
    }
  }
  return false;
}
static bool is_free(const kgraph *k, uint32_t group) {
  const kgroup *g = &k->group.p[group];
  return !g->fixed && !g->constant && !tarn_type_get(k->L, g->type)->tuple;
}
static bool old_rows_stay(kgraph *k, kshared *s) {
  uint32_t in = class_of_input(k, k->in->program->in[s->x.in].name);
  if (in == TARN_NONE) return false;
  s->in_group = k->cls.p[in].group;
  return s->in_group != s->out_group && is_free(k, s->in_group) &&
         order_of(k, &s->x, in, &s->in_order) && adds_rows(k, s);
}
static bool can_share(kgraph *k, const tarn_in_place *x, kshared *s) {
  uint32_t out = kg_class(k, k->in->root[x->out]);
  *s = (kshared){.x = *x, .in_group = TARN_NONE, .out_group = k->cls.p[out].group};
  if (k->machines.n > 1) return false;
  return !x->filled || (is_free(k, s->out_group) && !k->group.p[s->out_group].input &&
                        order_of(k, x, out, &s->out_order) && old_rows_stay(k, s));
}
static void fix(kgroup *g, const tarn_layout *order, uint32_t part_of) {
  g->layout[0] = *order;
  g->part_of[0] = part_of;
  g->nlayout = g->demand = 1;
  g->fixed = true;
}
void kg_share(kgraph *k) {
  for (uint32_t i = 0; i < k->in->nplace; i++) {
    kshared s;
    if (!can_share(k, &k->in->place[i], &s)) continue;
    if (s.x.filled) fix(&k->group.p[s.out_group], &s.out_order, TARN_NONE);
    if (s.x.filled) fix(&k->group.p[s.in_group], &s.in_order, s.out_group * KG_MAX_LAYOUTS);
    tarn_push(k->cx, &k->shared, s);
  }
}

const tarn_in_place *kg_shared_port(const kgraph *k, bool output, uint32_t port) {
  for (uint32_t i = 0; i < k->shared.n; i++) {
    const tarn_in_place *x = &k->shared.p[i].x;
    if ((output ? x->out : x->in) == port) return x;
  }
  return NULL;
}
bool kg_shared_allows(const kgraph *k, uint32_t ag, const kcand *c) {
  for (uint32_t i = 0; i < k->shared.n; i++) {
    const kshared *s = &k->shared.p[i];
    if (!s->x.filled || ag != k->group.p[s->out_group].first) continue;
    return c->kind == KC_CONCAT && c->child[0] == k->group.p[s->in_group].first;
  }
  return true;
}
