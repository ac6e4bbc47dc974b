/* Candidates of kernels written by hand. A function is called at every point of the access dims; it
 * takes any strides that its declaration allows. An operand that does not lie so is packed: a copy
 * of what the operand depends on, in the order that the function wants. */
#include "extract/kgraph.h"
#include "kernel/loops.h"
#include <math.h>
#include <string.h>

enum { WAYS = 4, COMBOS = 16 };

/* Where an operand, or the result, lies: an AND/OR class, or a constant, and strides over its dims.
 */
typedef struct way {
  uint32_t child;
  tarn_term term; /* of a constant */
  tarn_layout in, stored;
} way;
typedef struct calling {
  kgraph *k;
  uint32_t kc, node;
  const tarn_eg_node *e;
  const tarn_written *w;
  uint32_t ns;
  double price;
  uint32_t nway[KG_MAX_KIDS];
  way way[KG_MAX_KIDS][WAYS];
} calling;

const tarn_written *kg_written(const kgraph *k, const tarn_eg_node *e) {
  return e->op == TARN_OP_CALL ? tarn_written_find(k->L, tarn_payload_get(k->L, e->payload)->name)
                               : NULL;
}

static bool lies(const calling *c, const tarn_written_port *p, const tarn_layout *l) {
  return tarn_written_lies(p, l->dim + c->ns, l->stride + c->ns);
}
/* A kernel that copies into class ag: what lies as `in`, walked through a map over the copy's dims.
 */
static void copy_cand(kgraph *k, uint32_t ag, uint32_t kcls, uint32_t type, const tarn_layout *out,
                      uint32_t child, const tarn_layout *in, uint32_t map) {
  kcand c = kg_new_cand(k, KC_NEST, TARN_NONE, kcls, 1);
  tarn_ksig sig = {.nest = kg_identity_nest(k, type), .nin = 1, .nout = 1, .in = {*in}};
  knest w;
  sig.out[0] = *out;
  knest_open(&w, k->L, &sig);
  if (!knest_through(&w, 0, map)) return;
  knest_close(&w, &sig);
  c.copy = true, c.nest = sig.nest, c.child[0] = child, c.in[0] = sig.in[0], c.out[0] = *out;
  if (kg_price_cand(k, &c)) kg_add_cand(k, ag, c);
}

/* ---- operands ---- */
/* The operand's dims in the order in which they are packed: access dims that it depends on, then
 * the function's own. */
static uint32_t packed_dims(const calling *c, const koperand *op, const tarn_written_port *p,
                            uint32_t *axis) {
  uint32_t uses = map_uses(c->k->L, op->v[0].map), n = 0;
  for (uint32_t d = 0; d < c->ns; d++)
    if (uses >> d & 1) axis[n++] = d;
  for (uint32_t d = 0; d < p->n; d++) axis[n++] = c->ns + p->order[d];
  return n;
}
/* The packed copy: its own layout, and as the operand's dims see it. */
static void packed_way(calling *c, const koperand *op, uint32_t j) {
  kgraph *k = c->k;
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[op->kcls].type);
  uint32_t axis[TARN_MAX_DIMS], n = packed_dims(c, op, &c->w->in[j], axis);
  int64_t dim[TARN_MAX_DIMS];
  way *x = &c->way[j][c->nway[j]++];
  for (uint32_t i = 0; i < n; i++) dim[i] = t->dim[axis[i]];
  *x = (way){.child = TARN_NONE, .term = TARN_NONE, .stored = tarn_layout_row_major(n, dim)};
  x->in = (tarn_layout){.n = t->n};
  memcpy(x->in.dim, t->dim, t->n * sizeof *t->dim);
  for (uint32_t i = 0; i < n; i++) x->in.stride[axis[i]] = x->stored.stride[i];
  uint32_t embed = map_embed(k->L, t->dim, t->n, axis, n);
  if (op->constant) {
    uint32_t map = tarn_map_compose(k->L, embed, op->v[0].map);
    if (map == TARN_NONE) c->nway[j]--;
    else x->term = tarn_view(k->L, map, op->term);
    return;
  }
  uint32_t type = tarn_type_tensor(k->L, t->dtype, n, n, dim);
  x->child = k->nag++;
  for (uint32_t i = 0; i < op->nv; i++) {
    const kgroup *g = &k->group.p[op->v[i].group];
    uint32_t map = tarn_map_compose(k->L, embed, op->v[i].map);
    for (uint32_t l = 0; l < g->nlayout && map != TARN_NONE; l++)
      copy_cand(k, x->child, op->kcls, type, &x->stored, kg_ag(k, g, l), &g->layout[l], map);
  }
}
/* Where the operand lies as the function wants it; if nowhere, a copy. */
static void operand_ways(calling *c, const koperand *op, uint32_t j) {
  kgraph *k = c->k;
  for (uint32_t i = 0; i < op->nv && !op->constant; i++) {
    const kgroup *g = &k->group.p[op->v[i].group];
    for (uint32_t l = 0; l < g->nlayout && c->nway[j] < WAYS; l++) {
      way x = {.child = kg_ag(k, g, l), .term = TARN_NONE};
      if (!kg_layout_over(k, &g->layout[l], op->v[i].map, &x.in)) continue;
      if (lies(c, &c->w->in[j], &x.in)) c->way[j][c->nway[j]++] = x;
    }
  }
  if (!c->nway[j]) packed_way(c, op, j);
}

/* ---- the price ---- */
static void note_unmeasured(kgraph *k, const tarn_written *w, const int64_t *size) {
  tarn_unmeasured x = {.w = w};
  memcpy(x.size, size, sizeof x.size);
  for (uint32_t i = 0; i < k->unmeasured.n; i++)
    if (k->unmeasured.p[i].w == w && !memcmp(k->unmeasured.p[i].size, size, sizeof x.size)) return;
  tarn_push(k->cx, &k->unmeasured, x);
}
/* Seconds of one call; NAN: nobody measured it. */
static double one_call(kgraph *k, const tarn_written *w, const int64_t *size) {
  const tarn_price *p = k->now.price;
  double t = !w->price && p->call ? p->call(p->user, w, size) : 0;
  if (w->price) {
    t = tarn_written_price(w, size);
    if (!(t >= 0))
      tarn_sx_error(k->cx, w->price, "the kernel %s costs %g at these sizes: less than nothing",
                    w->name, t);
    return w->cycles ? t / k->now.hw->clock : t;
  }
  if (t > 0) return t < INFINITY ? t : NAN;
  note_unmeasured(k, w, size);
  return NAN;
}
static double price_of(const calling *c) {
  kgraph *k = c->k;
  uint32_t types[KG_MAX_KIDS];
  int64_t size[TARN_WRITTEN_SIZES];
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[c->kc].type);
  double points = 1;
  for (uint32_t j = 0; j < c->e->n; j++) types[j] = k->cls.p[kg_class(k, c->e->kids[j])].type;
  if (!tarn_written_sizes(k->L, c->w, types, c->e->n, size)) return NAN;
  for (uint32_t d = 0; d < c->ns; d++) points *= (double)t->dim[d];
  double one = one_call(k, c->w, size);
  double waves = ceil(points / (double)k->now.threads);
  bool joined = k->now.threads > 1 && points > 1;
  return one * waves + k->now.hw->launch + (joined ? k->now.hw->barrier : 0);
}

/* ---- candidates ---- */
static void one_cand(calling *c, uint32_t ag, const tarn_layout *out, const uint32_t *pick) {
  kcand x = kg_new_cand(c->k, KC_OTHER, c->node, c->kc, c->e->n);
  x.op = c->e->op, x.payload = c->e->payload, x.out[0] = *out, x.price = c->price;
  x.stored = TARN_ARRAY(c->k->cx, tarn_layout, c->e->n + 1);
  for (uint32_t j = 0; j < c->e->n; j++) {
    const way *y = &c->way[j][pick[j]];
    if (y->child == ag) return; /* reads what it writes */
    x.child[j] = y->child, x.cterm[j] = y->term, x.in[j] = y->in, x.stored[j] = y->stored;
  }
  kg_add_cand(c->k, ag, x);
}
static void all_ways(calling *c, uint32_t ag, const tarn_layout *out) {
  uint32_t pick[KG_MAX_KIDS] = {0}, j = 0;
  for (uint32_t tries = 0; tries < COMBOS && j < c->e->n; tries++) {
    one_cand(c, ag, out, pick);
    for (j = 0; j < c->e->n && ++pick[j] == c->nway[j]; j++) pick[j] = 0;
  }
}
/* The result in the function's own order, and copies of it to the buffer's. */
static void packed_result(calling *c) {
  kgraph *k = c->k;
  const kgroup *g = &k->group.p[k->cls.p[c->kc].group];
  uint32_t type = k->cls.p[c->kc].type, ag = k->nag++;
  const tarn_type *t = tarn_type_get(k->L, type);
  uint8_t order[TARN_MAX_DIMS];
  tarn_layout over;
  for (uint32_t d = 0; d < t->n; d++)
    order[d] = (uint8_t)(d < c->ns ? d : c->ns + c->w->out.order[d - c->ns]);
  tarn_layout own = tarn_layout_ordered(t->n, t->dim, order, 0, 0);
  all_ways(c, ag, &own);
  for (uint32_t l = 0; l < g->nlayout; l++)
    if (kg_layout_over(k, &g->layout[l], k->cls.p[c->kc].to_rep, &over))
      copy_cand(k, kg_ag(k, g, l), c->kc, type, &over, ag, &own, tarn_map_identity(k->L, type));
}
void kg_call(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e, const koperand *op) {
  calling *c = TARN_NEW(k->cx, calling);
  *c = (calling){.k = k, .kc = kc, .node = node, .e = e, .w = kg_written(k, e)};
  const kgroup *g = &k->group.p[k->cls.p[kc].group];
  bool direct = false;
  c->ns = tarn_type_get(k->L, k->cls.p[kc].type)->ns;
  c->price = price_of(c);
  if (!tarn_hw_traits_of(k->now.hw).links || isnan(c->price) || e->n > KG_MAX_KIDS) return;
  for (uint32_t j = 0; j < e->n; j++) {
    operand_ways(c, &op[j], j);
    if (!c->nway[j]) return;
  }
  for (uint32_t l = 0; l < g->nlayout; l++) {
    tarn_layout over;
    if (!kg_layout_over(k, &g->layout[l], k->cls.p[kc].to_rep, &over)) continue;
    if (!lies(c, &c->w->out, &over)) continue;
    all_ways(c, kg_ag(k, g, l), &over);
    direct = true;
  }
  if (!direct) packed_result(c);
}

/* ---- what a call does ---- */
/* For each buffer, 1 + the candidate from the e-node that was there first: the program's own. */
static uint32_t *first_cands(const kgraph *k) {
  uint32_t *first = TARN_ARRAY(k->cx, uint32_t, k->group.n + 1);
  for (uint32_t i = 0; i < k->cand.n; i++) {
    const kcand *c = &k->cand.p[i];
    if (c->kind != KC_NEST || c->node == TARN_NONE) continue;
    uint32_t *at = &first[k->cls.p[c->kcls].group];
    if (!*at || c->node < k->cand.p[*at - 1].node) *at = i + 1;
  }
  return first;
}
typedef struct counting {
  kgraph *k;
  const uint32_t *first;
  bool *seen; /* by group */
  kwork work;
} counting;
static void count_cand(counting *n, const kcand *c) {
  tarn_ksig sig;
  kg_signature(n->k, c, &sig);
  n->work.flops += tarn_ksig_flops(n->k->L, n->k->now.hw, &sig);
  n->work.slots += tarn_ksig_slots(n->k->L, n->k->now.hw, &sig);
  n->work.products += tarn_ksig_products(n->k->L, n->k->now.hw, &sig);
}
/* What computes the operands of an e-node, each buffer once. */
static void count_below(counting *n, uint32_t node, bool counts) {
  kgraph *k = n->k;
  tarn_eg_node e = tarn_eg_node_at(k->g, node);
  for (uint32_t j = 0; j < e.n; j++) {
    kview v[KG_MAX_VIEWS];
    uint32_t nv = kg_views(k, kg_class(k, e.kids[j]), TARN_NONE, v);
    if (!nv || n->seen[v[0].group]) continue;
    n->seen[v[0].group] = true;
    uint32_t at = n->first[v[0].group];
    if (!at) continue;
    if (counts) count_cand(n, &k->cand.p[at - 1]);
    count_below(n, k->cand.p[at - 1].node, counts);
  }
}
/* What the program itself would do between the call's operands and its result. */
kwork kg_call_work(kgraph *k, uint32_t kc, uint32_t node) {
  counting n = {.k = k, .first = first_cands(k), .seen = TARN_ARRAY(k->cx, bool, k->group.n + 1)};
  count_below(&n, node, false);
  uint32_t group = k->cls.p[kc].group, at = n.first[group];
  if (!at || n.seen[group]) return n.work;
  n.seen[group] = true;
  count_cand(&n, &k->cand.p[at - 1]);
  count_below(&n, k->cand.p[at - 1].node, true);
  return n.work;
}
