/* Classes, buffers modulo bijective views, and their storage orders. */
#include "extract/kgraph.h"
#include "kernel/maps.h"
#include <stdlib.h>
#include <string.h>

uint32_t kg_class(const kgraph *k, uint32_t eclass) {
  const uint64_t *at = tarn_map_get(k->by_class, tarn_eg_find(k->g, eclass));
  return at ? (uint32_t)*at - 1 : TARN_NONE;
}
uint32_t kg_group_of(const kgraph *k, uint32_t ag) {
  uint32_t lo = 0, hi = k->group.n;
  while (lo < hi) { /* the first group that ends behind it */
    uint32_t mid = lo + (hi - lo) / 2;
    const kgroup *g = &k->group.p[mid];
    if (ag < g->first + g->nlayout * k->machines.n) hi = mid;
    else lo = mid + 1;
  }
  return lo < k->group.n ? lo : TARN_NONE;
}
bool kg_produces(uint32_t op) {
  tarn_opkernel by = tarn_op_info(op)->kernel;
  return by != TARN_OPK_NONE && by != TARN_OPK_VIEW;
}

uint32_t kg_next_node(const kgraph *k, uint32_t c, uint32_t node) {
  do node = tarn_eg_next_node(k->g, c, node);
  while (node != TARN_NONE && k->in->left_out && k->in->left_out(k->in->user, node));
  return node;
}

/* ---- reachable classes ---- */
static void reach(kgraph *k, uint32_t eclass) {
  bool fresh;
  eclass = tarn_eg_find(k->g, eclass);
  uint64_t *at = tarn_map_at(k->by_class, eclass, &fresh);
  if (!fresh) return;
  *at = k->cls.n + 1;
  kclass c = {.cls = eclass, .group = TARN_NONE, .to_rep = TARN_NONE};
  c.type = k->in->type_of(k->in->user, eclass);
  c.constant = k->in->is_constant(k->in->user, k->g, eclass);
  tarn_push(k->cx, &k->cls, c);
}
static void reach_all(kgraph *k) {
  for (uint32_t i = 0; i < k->in->nroot; i++) reach(k, k->in->root[i]);
  for (uint32_t i = 0; i < k->cls.n; i++) { /* grows while walked */
    if (k->cls.p[i].constant) continue;
    EACH_NODE(k, k->cls.p[i].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      for (uint32_t j = 0; j < e.n; j++) reach(k, e.kids[j]);
    }
  }
}

/* ---- groups ---- */
typedef struct edge {
  uint32_t to, map;
} edge; /* map: from's dims -> to's dims */
typedef TARN_VEC(edge) edges;

static uint32_t long_dims(const tarn_type *t) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n; i++) n += t->dim[i] != 1;
  return n;
}
/* Bijective views; and what is materialised, which lies where it is computed. */
static void find_edges(kgraph *k, edges *e) {
  for (uint32_t i = 0; i < k->cls.n; i++) {
    if (k->cls.p[i].constant || tarn_type_get(k->L, k->cls.p[i].type)->tuple) continue;
    EACH_NODE(k, k->cls.p[i].cls, n) {
      tarn_eg_node v = tarn_eg_node_at(k->g, n);
      if (v.op != TARN_OP_VIEW && v.op != TARN_OP_MATERIALISE) continue;
      uint32_t to = kg_class(k, v.kids[0]);
      uint32_t map = v.op == TARN_OP_VIEW ? tarn_payload_get(k->L, v.payload)->id
                                          : tarn_map_identity(k->L, k->cls.p[i].type);
      if (to == i || k->cls.p[to].constant) continue;
      uint32_t back = tarn_map_invert(k->L, map, tarn_type_get(k->L, k->cls.p[to].type)->ns);
      if (back == TARN_NONE) continue;
      tarn_push(k->cx, &e[i], ((edge){to, map}));
      tarn_push(k->cx, &e[to], ((edge){i, back}));
    }
  }
}
typedef TARN_VEC(uint32_t) members;
/* Can a class with this map be computed where the representative lies: in strides, or in its dims?
 */
static bool can_write(kgraph *k, uint32_t rep, uint32_t to_rep) {
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[rep].type);
  tarn_layout row = tarn_layout_row_major(t->n, t->dim), over;
  return kg_layout_over(k, &row, to_rep, &over) || tarn_map_invert(k->L, to_rep, 0) != TARN_NONE;
}
/* Spreads a group from its representative; the queue is `member`, ascending in the end. */
static members spread(kgraph *k, const edges *e, uint32_t rep, uint32_t group) {
  members member = {0};
  k->cls.p[rep].group = group;
  k->cls.p[rep].to_rep = tarn_map_identity(k->L, k->cls.p[rep].type);
  tarn_push(k->cx, &member, rep);
  for (uint32_t i = 0; i < member.n; i++) {
    uint32_t at = member.p[i];
    for (uint32_t j = 0; j < e[at].n; j++) {
      edge x = e[at].p[j];
      if (k->cls.p[x.to].group != TARN_NONE) continue;
      uint32_t back = tarn_map_invert(k->L, x.map, tarn_type_get(k->L, k->cls.p[x.to].type)->ns);
      if (back == TARN_NONE) continue;
      uint32_t m = tarn_map_compose(k->L, back, k->cls.p[at].to_rep);
      if (m == TARN_NONE || !can_write(k, rep, m)) continue;
      /* tarn_map_invert gives at -> to reversed: to's dims -> at's dims, then on to the
       * representative */
      k->cls.p[x.to].group = group, k->cls.p[x.to].to_rep = m;
      tarn_push(k->cx, &member, x.to);
    }
  }
  qsort(member.p, member.n, sizeof *member.p, tarn_by_u32);
  return member;
}
/* Of what can be reached and has no group yet, the member with the most dims: maps between members
 * are then sums more often than divisions. */
static uint32_t finest(kgraph *k, const edges *e, uint32_t from, uint32_t *seen) {
  TARN_VEC(uint32_t) q = {0};
  uint32_t best = from, now = k->group.n + 1;
  tarn_push(k->cx, &q, from);
  seen[from] = now;
  for (uint32_t i = 0; i < q.n; i++) {
    uint32_t a = long_dims(tarn_type_get(k->L, k->cls.p[q.p[i]].type));
    if (a > long_dims(tarn_type_get(k->L, k->cls.p[best].type))) best = q.p[i];
    for (uint32_t j = 0; j < e[q.p[i]].n; j++) {
      uint32_t to = e[q.p[i]].p[j].to;
      if (seen[to] == now || k->cls.p[to].group != TARN_NONE) continue;
      seen[to] = now;
      tarn_push(k->cx, &q, to);
    }
  }
  return best;
}

/* Its result lies in row-major order over its own dims, and nothing can be done about it. */
static bool fixed_order(uint32_t op) {
  tarn_opkernel by = tarn_op_info(op)->kernel;
  return by == TARN_OPK_INPUT || by == TARN_OPK_OWN || by == TARN_OPK_PART;
}
static bool holds_fixed(const kgraph *k, uint32_t c) {
  EACH_NODE(k, k->cls.p[c].cls, n) {
    tarn_eg_node e = tarn_eg_node_at(k->g, n);
    if (fixed_order(e.op) && !kg_written(k, &e)) return true;
  }
  return false;
}
/* Its parts lie side by side in strides. */
static bool holds_concat(const kgraph *k, uint32_t c) {
  EACH_NODE(k, k->cls.p[c].cls, n)
    if (tarn_eg_node_at(k->g, n).op == TARN_OP_CONCAT) return true;
  return false;
}
static bool own_order(kgraph *k, uint32_t c, tarn_layout *over_rep);
/* A representative finer than a class that holds one of these may cut a dim in a way that no
 * strides can follow: then that class is a better one. Of concatenations one that can be followed
 * is enough. TARN_NONE: the group can stay as it is. */
static uint32_t better_rep(kgraph *k, const members *of) {
  uint32_t concat = TARN_NONE;
  bool followed = false;
  tarn_layout l;
  for (uint32_t m = 0; m < of->n; m++) {
    uint32_t i = of->p[m];
    if (k->cls.p[i].constant) continue;
    if (holds_fixed(k, i)) return own_order(k, i, &l) ? TARN_NONE : i;
    if (!holds_concat(k, i)) continue;
    followed |= own_order(k, i, &l);
    if (concat == TARN_NONE) concat = i;
  }
  return followed ? TARN_NONE : concat;
}

/* A group with this representative; what its maps do not lead to is left for another one. */
static void make_group(kgraph *k, const edges *e, uint32_t rep) {
  uint32_t number = k->group.n;
  kgroup g = {.rep = rep, .type = k->cls.p[rep].type, .constant = k->cls.p[rep].constant};
  g.gather = g.gathered = TARN_NONE;
  members all = spread(k, e, rep, number);
  tarn_push(k->cx, &k->group, g);
  uint32_t better = tarn_type_get(k->L, g.type)->tuple ? TARN_NONE : better_rep(k, &all);
  tarn_go_on(k->cx);
  if (better == TARN_NONE || better == rep) return;
  for (uint32_t i = 0; i < all.n; i++) k->cls.p[all.p[i]].group = TARN_NONE;
  spread(k, e, better, number);
  k->group.p[number].rep = better;
  k->group.p[number].type = k->cls.p[better].type;
}
void kg_groups(kgraph *k) {
  reach_all(k);
  edges *e = TARN_ARRAY(k->cx, edges, k->cls.n);
  uint32_t *seen = TARN_ARRAY(k->cx, uint32_t, k->cls.n);
  find_edges(k, e);
  for (uint32_t i = 0; i < k->cls.n; i++)
    while (k->cls.p[i].group == TARN_NONE) make_group(k, e, finest(k, e, i, seen));
  for (uint32_t i = 0; i < k->cls.n; i++) {
    kgroup *g = &k->group.p[k->cls.p[i].group];
    EACH_NODE(k, k->cls.p[i].cls, n) {
      uint32_t op = tarn_eg_node_at(k->g, n).op;
      g->produced |= kg_produces(op);
      g->input |= op == TARN_OP_INPUT;
    }
  }
}

/* ---- where an operand can be read ---- */
static void views_from(kgraph *k, uint32_t c, uint32_t map, uint32_t but, kview *out, uint32_t *n,
                       uint32_t max, uint32_t depth) {
  const kclass *kc = &k->cls.p[c];
  const kgroup *g = &k->group.p[kc->group];
  bool here = g->produced && kc->group != but;
  if (here && !kc->constant) {
    uint32_t m = tarn_map_compose(k->L, map, kc->to_rep);
    bool known = m == TARN_NONE;
    for (uint32_t i = 0; i < *n && !known; i++)
      known = out[i].group == kc->group && out[i].map == m;
    if (!known && *n == max) k->r->cut_views++;
    if (!known && *n < max) out[(*n)++] = (kview){kc->group, m};
  }
  if (depth == 0) return;
  EACH_NODE(k, kc->cls, e) {
    tarn_eg_node v = tarn_eg_node_at(k->g, e);
    if (v.op != TARN_OP_VIEW) continue;
    uint32_t to = kg_class(k, v.kids[0]);
    /* inside the group a produced buffer is found already; leave it only where the group has no
     * producer */
    if (k->cls.p[to].group == kc->group && here) continue;
    uint32_t m = tarn_map_compose(k->L, map, tarn_payload_get(k->L, v.payload)->id);
    if (m != TARN_NONE) views_from(k, to, m, but, out, n, max, depth - 1);
  }
}
uint32_t kg_views(kgraph *k, uint32_t c, uint32_t but, kview out[KG_MAX_VIEWS]) {
  uint32_t n = 0,
           max = k->o->max_views && k->o->max_views < KG_MAX_VIEWS ? k->o->max_views : KG_MAX_VIEWS;
  if (k->cls.p[c].constant) return 0;
  views_from(k, c, tarn_map_identity(k->L, k->cls.p[c].type), but, out, &n, max, 6);
  return n;
}

/* ---- layouts ---- */
uint32_t kg_from_rep(kgraph *k, uint32_t c) { return tarn_map_invert(k->L, k->cls.p[c].to_rep, 0); }
bool kg_layout_over(kgraph *k, const tarn_layout *l, uint32_t to_rep, tarn_layout *out) {
  const tarn_imap m = *tarn_imap_get(k->L, to_rep);
  if (l->block || m.nguard) return false;
  uint32_t at = imap_address(k->L, &m, l);
  if (!tarn_ix_affine(k->L, at)) return false;
  int64_t first = tarn_ix_get(k->L, at)->c - tarn_layout_before(l);
  *out = (tarn_layout){.n = m.n, .offset = l->offset + first};
  for (uint32_t d = 0; d < m.n; d++)
    out->dim[d] = m.dim[d], out->stride[d] = tarn_ix_coef(k->L, at, d);
  return true;
}
static bool has_layout(const kgroup *g, const tarn_layout *l, uint32_t part_of) {
  for (uint32_t i = 0; i < g->nlayout; i++)
    if (g->part_of[i] == part_of && tarn_layout_equal(&g->layout[i], l)) return true;
  return false;
}
bool kg_add_order(kgraph *k, kgroup *g, const tarn_layout *l, uint32_t part_of, uint32_t max) {
  if (has_layout(g, l, part_of)) return true;
  if (g->fixed) return false;
  if (g->nlayout >= max) {
    k->r->cut_orders++;
    return false;
  }
  g->part_of[g->nlayout] = part_of;
  g->layout[g->nlayout++] = *l;
  return true;
}
static bool add_layout(kgraph *k, kgroup *g, const tarn_layout *l) {
  uint32_t max = k->o->max_orders ? k->o->max_orders : 3;
  return kg_add_order(k, g, l, TARN_NONE, max > KG_MAX_LAYOUTS ? KG_MAX_LAYOUTS : max);
}
/* Row-major over a member class, said over the representative's dims. */
static bool own_order(kgraph *k, uint32_t c, tarn_layout *over_rep) {
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[c].type);
  tarn_layout own = tarn_layout_row_major(t->n, t->dim);
  uint32_t back = kg_from_rep(k, c);
  return back != TARN_NONE && kg_layout_over(k, &own, back, over_rep);
}
static bool demand(kgraph *k, uint32_t c) {
  kgroup *g = &k->group.p[k->cls.p[c].group];
  tarn_layout l;
  if (g->fixed || !own_order(k, c, &l)) return false;
  g->demand = 1;
  return add_layout(k, g, &l);
}
static void like_inner(kgroup *g, uint32_t mask) {
  if (!mask) return;
  for (uint32_t i = 0; i < g->ninner; i++)
    if (g->inner[i] == mask) return;
  if (g->ninner < 4) g->inner[g->ninner++] = mask;
}

/* Dims of what map views that depend on the given dims of the view. */
static uint32_t image(kgraph *k, uint32_t map, uint32_t dims) {
  const tarn_imap *m = tarn_imap_get(k->L, map);
  uint32_t out = 0;
  for (uint32_t a = 0; a < m->nin; a++) {
    if ((tarn_ix_dims(k->L, m->e[a]) & dims) && m->in[a] > 1) out |= 1u << a;
  }
  return out;
}
/* Dims of the view on which any of the given viewed dims depends. */
static uint32_t preimage(kgraph *k, uint32_t map, uint32_t in_dims) {
  const tarn_imap *m = tarn_imap_get(k->L, map);
  uint32_t v = 0;
  for (uint32_t a = 0; a < m->nin; a++)
    if (in_dims >> a & 1) v |= tarn_ix_dims(k->L, m->e[a]);
  return v;
}

/* What one compute likes. A product with constant weights: the result along the dim that the
 * weights' rows are indexed by, the other operand along the dim it is summed over. A product of two
 * variables: the operand that the result's last dim walks along that dim, the other along the sum,
 * or, where the last dim is shorter than a vector, along a dim that it alone has.
 * Anything else: that its operands and its result agree. */
static uint32_t largest(uint32_t mask, const int64_t *dim) {
  uint32_t best = TARN_NONE;
  for (uint32_t d = 0; d < 32; d++)
    if ((mask >> d & 1) && dim[d] > 1 && (best == TARN_NONE || dim[d] >= dim[best])) best = d;
  return best == TARN_NONE ? 0 : 1u << best;
}
uint32_t kg_nest_of(kgraph *k, const tarn_eg_node *e) {
  uint32_t type[KG_MAX_KIDS];
  for (uint32_t j = 0; j < e->n; j++) type[j] = k->cls.p[kg_class(k, e->kids[j])].type;
  return tarn_nest_of(k->L, e->op, e->payload, type, e->n);
}
/* Elements of an entry of that type; 0: no machine takes entries, or several lengths. */
static int64_t entry_elements(const kgraph *k, tarn_dtype type) {
  int64_t n = 0;
  for (uint32_t m = 0; m < k->machines.n; m++) {
    int64_t one = tarn_hw_entry_elements(k->machines.hw[m], type);
    if (one && n && n != one) return 0;
    if (one) n = one;
  }
  return n;
}
/* Where entries are taken, windows are reduced entry by entry: the dims that no window goes along.
 */
static uint32_t beside_windows(const kgraph *k, const tarn_stage *s, uint32_t map, uint32_t own,
                               tarn_dtype type) {
  const tarn_imap *m = tarn_imap_get(k->L, map);
  uint32_t beside = 0;
  for (uint32_t a = 0; a < m->nin && s->nred && entry_elements(k, type); a++) {
    uint32_t dims = tarn_ix_dims(k->L, m->e[a]);
    if (!(dims & ~own)) beside |= dims;
  }
  return beside;
}
/* Own dims of the last stage that operand i of a product walks and the others do not. */
static uint32_t alone(kgraph *k, const tarn_stage *s, const tarn_func *f, uint32_t i,
                      uint32_t own) {
  uint32_t dims = imap_dims(k->L, tarn_imap_get(k->L, s->read[i].map)) & own;
  for (uint32_t j = 0; j < f->nops; j++)
    if (j != i) dims &= ~imap_dims(k->L, tarn_imap_get(k->L, s->read[j].map));
  return dims;
}
/* Is the last dim of a result too short to fill a vector? */
static bool short_lanes(const kgraph *k, uint32_t last, const int64_t *dim, tarn_dtype type) {
  int64_t lanes = k->o->hw->vector_bits / (8 * (int64_t)tarn_dtype_size(type));
  return last && dim[__builtin_ctz(last)] < lanes;
}
/* A factor of a product without constants, where entries are taken: they lie along what is summed,
 * or along the dims of the result that are its own. */
static void like_entries(kgraph *k, kgroup *in, uint32_t map, uint32_t sum, uint32_t own,
                         const int64_t *dim) {
  if (!entry_elements(k, tarn_type_get(k->L, in->type)->dtype)) return;
  uint32_t summed = image(k, map, largest(sum, dim));
  like_inner(in, summed);
  in->summed |= summed;
  like_inner(in, image(k, map, largest(own, dim)));
}
static void prefer(kgraph *k, uint32_t c, const tarn_eg_node *e, bool seed) {
  if (e->n > KG_MAX_KIDS) return; /* none that is emitted */
  const tarn_nest *n = tarn_nest_get(k->L, kg_nest_of(k, e));
  const tarn_stage *s = &n->stage[n->nstage - 1];
  const tarn_func *f = tarn_fn_get(k->L, s->fn);
  uint32_t nacc = (uint32_t)n->depth + s->nown, own = nacc < 32 ? (1u << nacc) - 1 : UINT32_MAX;
  uint32_t weights = 0;
  int64_t dim[TARN_MAX_DIMS * 2] = {0};
  for (uint32_t i = 0; i < f->nops; i++) {
    const tarn_imap *m = tarn_imap_get(k->L, s->read[i].map);
    memcpy(dim, m->dim, m->n * sizeof *dim);
    if (!s->read[i].stage && k->cls.p[kg_class(k, e->kids[s->read[i].src])].constant && s->nred)
      weights |= imap_dims(k->L, m);
  }
  bool product = s->nred && n->nstage == 1 && tarn_fx_get(k->L, f->body)->op == TARN_FX_MUL;
  uint32_t last_own = 0, sum = 0;
  for (uint32_t d = 0; d < nacc + s->nred && d < 32; d++)
    if (d >= nacc) sum |= 1u << d;
    else if (dim[d] > 1) last_own = 1u << d;
  kgroup *out = &k->group.p[k->cls.p[c].group];
  uint32_t to_rep = k->cls.p[c].to_rep;
  if (seed && weights) like_inner(out, image(k, to_rep, largest(weights & own, dim)));
  out->single |= seed && weights && product && !largest(weights & own, dim);
  for (uint32_t i = 0; i < (uint32_t)f->nops + f->nepi; i++) {
    if (s->read[i].stage) continue;
    kview v[KG_MAX_VIEWS];
    uint32_t nv = kg_views(k, kg_class(k, e->kids[s->read[i].src]), TARN_NONE, v);
    for (uint32_t j = 0; j < nv; j++) {
      uint32_t m = tarn_map_compose(k->L, s->read[i].map, v[j].map);
      if (m == TARN_NONE) continue;
      kgroup *in = &k->group.p[v[j].group];
      if (seed && !weights && f->nops == 1 && !i) {
        uint32_t beside = largest(
            beside_windows(k, s, s->read[i].map, own, tarn_type_get(k->L, in->type)->dtype), dim);
        like_inner(out, image(k, to_rep, beside));
        like_inner(in, image(k, m, beside));
      }
      if (seed && weights) {
        uint32_t summed = image(k, m, largest(weights & ~own, dim));
        like_inner(in, summed);
        in->summed |= summed;
      }
      if (seed && !weights && product && i < f->nops) in->walked = true;
      if (seed && !weights && product && i < f->nops)
        like_entries(k, in, m, sum, alone(k, s, f, i, own), dim);
      if (seed && !weights && product && in->input &&
          i < f->nops) { /* others are written as their readers like */
        uint32_t lanes = image(k, m, last_own);
        if (!lanes && short_lanes(k, last_own, dim, tarn_type_get(k->L, in->type)->dtype))
          like_inner(in, image(k, m, largest(alone(k, s, f, i, own), dim)));
        like_inner(in, lanes ? lanes : image(k, m, largest(sum, dim)));
      }
      if (seed || (weights && i < f->nops)) continue;
      for (uint32_t x = 0; x < in->ninner; x++)
        like_inner(out, image(k, to_rep, preimage(k, m, in->inner[x]) & own));
      uint32_t back = kg_from_rep(k, c);
      for (uint32_t x = 0; x < out->ninner && back != TARN_NONE; x++)
        like_inner(in, image(k, m, image(k, back, out->inner[x])));
    }
  }
}
/* A kernel written by hand says which of its dims lies innermost. */
static void prefer_written(kgraph *k, uint32_t c, const tarn_eg_node *e, const tarn_written *w) {
  uint32_t ns = tarn_type_get(k->L, k->cls.p[c].type)->ns;
  kgroup *out = &k->group.p[k->cls.p[c].group];
  if (w->out.n)
    like_inner(out, image(k, k->cls.p[c].to_rep, 1u << (ns + w->out.order[w->out.n - 1])));
  for (uint32_t j = 0; j < e->n; j++) {
    const tarn_written_port *p = &w->in[j];
    kview v[KG_MAX_VIEWS];
    uint32_t n = p->n ? kg_views(k, kg_class(k, e->kids[j]), TARN_NONE, v) : 0;
    for (uint32_t i = 0; i < n; i++)
      like_inner(&k->group.p[v[i].group], image(k, v[i].map, 1u << (ns + p->order[p->n - 1])));
  }
}
static void preferences(kgraph *k, bool seed) {
  for (uint32_t i = 0; i < k->cls.n; i++) {
    if (k->cls.p[i].constant || tarn_type_get(k->L, k->cls.p[i].type)->tuple) continue;
    tarn_go_on(k->cx);
    EACH_NODE(k, k->cls.p[i].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      if (e.op == TARN_OP_COMPUTE || e.op == TARN_OP_NEST || e.op == TARN_OP_MATERIALISE)
        prefer(k, i, &e, seed);
      const tarn_written *w = seed ? kg_written(k, &e) : NULL;
      if (w) prefer_written(k, i, &e, w);
    }
  }
}

/* The dims of `first`, then the others; within them `last` in blocks of one entry, innermost. */
static void add_order_of(kgraph *k, kgroup *g, uint32_t first, uint32_t last, int64_t block) {
  const tarn_type *t = tarn_type_get(k->L, g->type);
  uint8_t order[TARN_MAX_DIMS];
  uint32_t n = 0;
  for (uint32_t d = 0; d < t->n; d++)
    if (first >> d & 1) order[n++] = (uint8_t)d;
  for (uint32_t d = 0; d < t->n; d++)
    if (!(first >> d & 1)) order[n++] = (uint8_t)d;
  tarn_layout l = tarn_layout_ordered(t->n, t->dim, order, (uint8_t)last, block);
  kg_add_order(k, g, &l, TARN_NONE, KG_MAX_LAYOUTS);
}
/* A dim in blocks of one entry each, innermost, all else in the order it had; and, where products
 * sum along it and it is innermost already, behind all else, so that neighbours of the others are
 * neighbours entry by entry. Of several dims that are walked as one the last has the blocks. */
static void add_blocked(kgraph *k, kgroup *g, uint32_t inner) {
  const tarn_type *t = tarn_type_get(k->L, g->type);
  int64_t block = entry_elements(k, t->dtype);
  uint32_t last = 31 - (uint32_t)__builtin_clz(inner);
  bool innermost = !(inner & ~g->summed), several = __builtin_popcount(inner) != 1;
  for (uint32_t d = last + 1; d < t->n; d++) innermost &= t->dim[d] == 1;
  if (block < 2) return;
  if (!several) add_order_of(k, g, 0, last, block);
  if (innermost && !(several && t->dim[last] % block)) add_order_of(k, g, inner, last, block);
}

/* The only column of a product in an entry of its own: some dim of one element is blocked. */
static void add_single(kgraph *k, kgroup *g) {
  const tarn_type *t = tarn_type_get(k->L, g->type);
  int64_t block = entry_elements(k, t->dtype);
  for (uint32_t d = t->n; d-- > 0 && block > 1;)
    if (t->dim[d] == 1) {
      add_order_of(k, g, 0, d, block);
      return;
    }
}
/* What nobody likes in an order of its own, and is no whole number of entries one after another,
 * may have the last dim in blocks. */
static void like_whole_entries(kgraph *k, kgroup *g) {
  const tarn_type *t = tarn_type_get(k->L, g->type);
  int64_t block = entry_elements(k, t->dtype);
  if (g->ninner || block < 2 || tarn_type_count(t) % block == 0) return;
  for (uint32_t d = t->n; d-- > 0 && !g->ninner;)
    if (t->dim[d] > 1) like_inner(g, 1u << d);
}

/* The parts of a concatenation like what the whole likes, and the other way round. */
static void concat_preferences(kgraph *k) {
  for (uint32_t i = 0; i < k->cls.n; i++) {
    if (k->cls.p[i].constant) continue;
    EACH_NODE(k, k->cls.p[i].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      if (e.op != TARN_OP_CONCAT) continue;
      kgroup *out = &k->group.p[k->cls.p[i].group];
      uint32_t back = kg_from_rep(k, i);
      for (uint32_t j = 0; j < e.n && back != TARN_NONE; j++) {
        kview v[KG_MAX_VIEWS];
        uint32_t nv = kg_views(k, kg_class(k, e.kids[j]), TARN_NONE, v);
        for (uint32_t y = 0; y < nv; y++) {
          kgroup *in = &k->group.p[v[y].group];
          for (uint32_t x = 0; x < out->ninner; x++)
            like_inner(in, image(k, v[y].map, image(k, back, out->inner[x])));
          for (uint32_t x = 0; x < in->ninner; x++)
            like_inner(out, image(k, k->cls.p[i].to_rep, preimage(k, v[y].map, in->inner[x])));
        }
      }
    }
  }
}

/* Rows whose step is a multiple of one way's size compete for the same few sets of L1, and a
 * product of two variables walks many such rows at a time. They are padded by a line. Not in the
 * order in which a tensor lies by default, because others may want it. */
static void keep_apart(const kgraph *k, const tarn_type *t, const uint8_t *order, tarn_layout *l) {
  const tarn_hw_memory *l1 = tarn_hw_mem(k->o->hw, TARN_HW_L1);
  int64_t way, step = 1, bytes = (int64_t)tarn_dtype_size(t->dtype);
  bool moved = false, rows = false;
  for (uint32_t i = 0; i < t->n; i++) moved |= order[i] != i;
  if (!l1 || l1->managed) return;
  way = tarn_hw_way(l1);
  for (uint32_t i = t->n; moved && i-- > 0;) {
    int64_t extent = l->dim[order[i]];
    bool next = !rows && step > 1 && extent > 1;
    if (next && step * bytes % way == 0 && l1->line % bytes == 0) step += l1->line / bytes;
    l->stride[order[i]] = step;
    step *= extent;
    rows |= next;
  }
}

/* In the place, each part lies in the storage of its whole. */
static void parts_lie_in(kgraph *k, uint32_t place) {
  for (uint32_t i = 0; i < k->group.n; i++) {
    const kgroup *g = &k->group.p[i];
    for (uint32_t l = 0; l < g->nlayout; l++) {
      if (g->part_of[l] == TARN_NONE) continue;
      const kgroup *whole = &k->group.p[g->part_of[l] / KG_MAX_LAYOUTS];
      kg_lies_in(k, g->first + place * g->nlayout + l,
                 whole->first + place * whole->nlayout + g->part_of[l] % KG_MAX_LAYOUTS);
    }
  }
}
static void find_gathers(kgraph *k) {
  for (uint32_t c = 0; c < k->cls.n; c++) {
    if (k->cls.p[c].constant) continue;
    EACH_NODE(k, k->cls.p[c].cls, n) {
      kgroup *g = &k->group.p[k->cls.p[c].group];
      if (tarn_eg_node_at(k->g, n).op == TARN_OP_GATHER) g->gather = n, g->gathered = c;
    }
  }
}
void kg_layouts(kgraph *k) {
  kg_share(k);
  for (uint32_t i = 0; i < k->cls.n; i++)
    if (!k->cls.p[i].constant && holds_fixed(k, i) && !tarn_type_get(k->L, k->cls.p[i].type)->tuple)
      demand(k, i);
  for (uint32_t i = 0; i < k->in->nroot; i++) {
    uint32_t c = kg_class(k, k->in->root[i]);
    k->group.p[k->cls.p[c].group].root = true;
    demand(k, c);
  }
  preferences(k, true);
  for (int pass = 0; pass < 4; pass++) preferences(k, false), concat_preferences(k);
  for (uint32_t i = 0; i < k->group.n; i++) {
    kgroup *g = &k->group.p[i];
    const tarn_type *t = tarn_type_get(k->L, g->type);
    if (!g->produced || g->constant || g->fixed || t->tuple) continue;
    like_whole_entries(k, g);
    for (uint32_t x = 0; x < g->ninner; x++) {
      uint8_t order[TARN_MAX_DIMS];
      uint32_t at = 0;
      for (uint32_t d = 0; d < t->n; d++)
        if (!(g->inner[x] >> d & 1)) order[at++] = (uint8_t)d;
      for (uint32_t d = 0; d < t->n; d++)
        if (g->inner[x] >> d & 1) order[at++] = (uint8_t)d;
      tarn_layout l = tarn_layout_ordered(t->n, t->dim, order, 0, 0);
      if (g->walked) keep_apart(k, t, order, &l);
      add_layout(k, g, &l);
    }
    tarn_layout row = tarn_layout_row_major(t->n, t->dim);
    if (!g->nlayout || !g->input) add_layout(k, g, &row);
    for (uint32_t x = 0; x < g->ninner; x++) add_blocked(k, g, g->inner[x]);
    if (g->single) add_single(k, g);
  }
  kg_concat_room(k);
  kg_concat_parts(k);
  find_gathers(k);
  for (uint32_t i = 0; i < k->group.n; i++) {
    k->group.p[i].first = k->nag;
    k->nag += k->group.p[i].nlayout * k->machines.n;
    k->r->orders += k->group.p[i].nlayout;
    k->r->buffers += k->group.p[i].nlayout > 0;
  }
  for (uint32_t p = 0; p < k->machines.n; p++) parts_lie_in(k, p);
}
