/* Variants of a nest as a candidate: how its operands are read, how its shared loops are cut, how
 * its constants lie. Each is priced with its best schedule; of those that read and write the same
 * buffers the cheapest stands for the node. */
#include "extract/kgraph.h"
#include "kernel/loops.h"
#include "plan/unit.h"
#include "plan/work.h"
#include <string.h>

/* ---- pricing ---- */
static tarn_dtype child_type(kgraph *k, const kcand *c, uint32_t j) {
  if (c->child[j] == TARN_NONE) return tarn_term_type(k->L, c->cterm[j])->dtype;
  uint32_t g = kg_group_of(k, c->child[j]);
  if (g != TARN_NONE) return tarn_type_get(k->L, k->group.p[g].type)->dtype;
  return c->copy ? tarn_type_get(k->L, k->cls.p[c->kcls].type)->dtype : TARN_F32;
}
void kg_signature(kgraph *k, const kcand *c, tarn_ksig *sig) {
  memset(sig, 0, sizeof *sig);
  sig->nest = c->nest, sig->strict = k->o->strict, sig->nin = c->nchild, sig->nout = c->nout;
  for (uint32_t j = 0; j < c->nchild; j++) {
    sig->in[j] = c->in[j];
    sig->in_const[j] = c->child[j] == TARN_NONE && !tarn_layout_gaps(&c->in[j]);
    sig->in_type[j] = child_type(k, c, j);
  }
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[c->kcls].type);
  for (uint32_t j = 0; j < c->nout; j++) {
    sig->out[j] = c->out[j];
    sig->out_type[j] = t->tuple ? tarn_type_get(k->L, t->elem[j])->dtype : t->dtype;
  }
  tarn_ksig_canonical(k->L, sig);
  int64_t step = kg_offset_step(k);
  if (tarn_hw_traits_of(k->now.hw).any_nest)
    tarn_ksig_rebase(k->L, sig, step); /* units: by entries */
  for (uint64_t m = tarn_ksig_matrices(k->L, sig); m; m &= m - 1) {
    uint32_t j = (uint32_t)__builtin_ctzll(m);
    if (tarn_layout_elems(&sig->in[j]) == tarn_layout_elems(&c->in[j]) && !c->in[j].offset)
      sig->in_numbers[j] = kg_numbers(k, c->cterm[j], &c->in[j]);
  }
}
double kg_price(const kgraph *k, const tarn_ksig *sig, const tarn_schedule *s,
                const tarn_cost *cost) {
  const kmachine *m = &k->now;
  const tarn_price *p = m->price;
  return (p->kernel ? p->kernel : p->seconds)(p->user, k->L, m->hw, sig, s, m->threads, cost);
}
/* How little is missing: room, or something that another order of the buffers may mend, or not. */
static uint32_t nearness(kgraph *k, const tarn_ksig *sig) {
  tarn_unit_plan p;
  if (tarn_unit_match(k->L, k->now.hw, sig, &p, NULL)) return TARN_UNIT_CANNOT + 1;
  return p.reason;
}
uint64_t kg_work_of(const kgraph *k, const kcand *c) {
  uint64_t from = 0;
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] != TARN_NONE) from += tarn_hash_mix(kg_group_of(k, c->child[j]), 1);
  return tarn_hash_mix(from, c->kcls);
}
static void note_tried(kgraph *k, const kcand *c, const tarn_ksig *sig, double seconds) {
  bool fresh;
  if (tarn_hw_traits_of(k->now.hw).any_nest) return;
  uint64_t *at = tarn_map_at(k->tried, kg_work_of(k, c), &fresh);
  if (fresh) *at = (uint64_t)(uintptr_t)TARN_NEW(k->cx, ktried);
  ktried *t = (ktried *)(uintptr_t)*at;
  if (fresh) t->seconds = INFINITY;
  t->seconds = tarn_fmin(t->seconds, seconds);
  if (t->seconds < INFINITY || t->near >= TARN_UNIT_CANNOT) return;
  uint32_t near = nearness(k, sig);
  if (t->sig && near <= t->near) return;
  t->sig = tarn_copy(k->cx, sig, sizeof *sig);
  t->near = near;
}
bool kg_price_cand(kgraph *k, kcand *c) {
  tarn_ksig sig;
  tarn_cost cost;
  kg_signature(k, c, &sig);
  if (kg_replays(k)) return kg_family_price(k, &sig, c);
  const tarn_schedule *s = tarn_solve(k->now.solver, &sig, &cost);
  if (s) c->price = kg_price(k, &sig, s, &cost);
  note_tried(k, c, &sig, s ? c->price : INFINITY);
  return s != NULL;
}

/* ---- one nest over buffers ---- */
/* The AND/OR class that operand j is read from. */
static uint32_t from_group(kgraph *k, const kreading *r, uint32_t j) {
  return kg_ag(k, &k->group.p[r->v[j]->group], r->pick[j]);
}
/* A candidate that may not be kept: room for its children; its nest and layouts, as they are
 * changed. */
typedef struct offered {
  uint32_t child[KG_MAX_KIDS], cterm[KG_MAX_KIDS];
  tarn_ksig sig;
} offered;
static void set_child(kgraph *k, offered *o, const kreading *r, uint32_t j) {
  o->child[j] = o->cterm[j] = TARN_NONE;
  o->sig.in_const[j] = r->op[j].constant;
  if (r->op[j].constant) {
    const tarn_type *t = tarn_term_type(k->L, r->op[j].term);
    o->cterm[j] = r->op[j].term;
    o->sig.in[j] = tarn_layout_row_major(t->n, t->dim);
    return;
  }
  o->child[j] = from_group(k, r, j);
  o->sig.in[j] = k->group.p[r->v[j]->group].layout[r->pick[j]];
}
/* The nest over buffers: its operands read as r says; where `over` is a layout to write over the
 * representative's dims, over these. False: it cannot be. */
static bool over_buffers(kgraph *k, offered *o, const ktarget *to, uint32_t nest, const kreading *r,
                         const tarn_layout *over) {
  knest w;
  o->sig = (tarn_ksig){.nest = nest, .nin = r->n, .nout = to->nout};
  memcpy(o->sig.out, to->out, sizeof o->sig.out);
  for (uint32_t j = 0; j < r->n; j++) set_child(k, o, r, j);
  knest_open(&w, k->L, &o->sig);
  if (over) {
    uint32_t inv = kg_from_rep(k, to->kcls);
    if (w.nstage != 1 || w.depth || inv == TARN_NONE) return false;
    if (!knest_own_as(&w, tarn_imap_get(k->L, inv))) return false;
    w.stage->out = *over;
  }
  uint32_t looks = r->look ? r->look->n : 0;
  for (uint32_t i = 0; i < looks; i++)
    if (!kg_look_up(k, &w, &r->look->at[i], r->v)) return false;
  for (uint32_t j = 0; j < r->n - looks; j++)
    if (!kg_looked_up(r->look, j) && !knest_through(&w, j, r->v[j]->map)) return false;
  knest_close(&w, &o->sig);
  return true;
}
static bool cut_loops(tarn_lang *L, tarn_ksig *sig, const kcut *cut) {
  if (cut->pack) tarn_ksig_merge(L, sig); /* as kg_packs() was shown it */
  if (cut->pack ? !tarn_ksig_pack(L, sig, cut->read, cut->dim, cut->block[0], cut->block[1])
                : !tarn_ksig_cut(L, sig, cut->block, cut->behind))
    return false;
  if (cut->hold) return tarn_ksig_hold(L, sig, cut->hold);
  return !cut->gather || tarn_ksig_gather(L, sig);
}
/* A candidate among others that are compared with it: its lists lie here until it is kept. */
typedef struct leader {
  kcand c;
  kway way;
  uint32_t child[KG_MAX_KIDS], cterm[KG_MAX_KIDS];
  tarn_layout in[KG_MAX_KIDS], out[KG_MAX_OUT];
} leader;
static void lead(leader *best, const kcand *c) {
  best->c = *c;
  best->c.child = memcpy(best->child, c->child, c->nchild * sizeof *c->child);
  best->c.cterm = memcpy(best->cterm, c->cterm, c->nchild * sizeof *c->cterm);
  best->c.in = memcpy(best->in, c->in, c->nchild * sizeof *c->in);
  best->c.out = memcpy(best->out, c->out, c->nout * sizeof *c->out);
}
static void keep_leader(kgraph *k, uint32_t ag, const leader *best) {
  kcand c = best->c;
  if (c.nest == TARN_NONE) return;
  if (k->o->family) c.way = tarn_copy(k->cx, &best->way, sizeof best->way);
  kg_add_cand(k, ag, c);
}
static kway way_of(kgraph *k, uint32_t nest, const kcut *cut, kg_order how) {
  const tarn_nest *n = tarn_nest_get(k->L, nest);
  kway w = {.cut = cut, .how = how};
  if (!cut) return w;
  w.c = *cut;
  for (uint32_t d = 0; d < n->depth && !cut->pack; d++)
    if (n->shared[d] == cut->block[d]) w.c.block[d] = KG_WHOLE;
  return w;
}
/* cand with its shared loops cut (NULL: as they are) and its constants packed, into best if nothing
 * is cheaper. Loops are split where reads divide by a part of them: a constant then depends on the
 * part that it needs. */
static bool offer(kgraph *k, kcand cand, const offered *from, const kcut *cut, kg_order how,
                  leader *best) {
  offered o = *from;
  knest w;
  if (cut && !cut_loops(k->L, &o.sig, cut)) return false;
  knest_open(&w, k->L, &o.sig);
  knest_split_divided(&w);
  cand.child = o.child, cand.cterm = o.cterm;
  if (!kg_pack_constants(k, &w, &cand, how)) return false;
  knest_close(&w, &o.sig);
  cand.nest = o.sig.nest, cand.nchild = o.sig.nin, cand.in = o.sig.in;
  cand.out = o.sig.out;
  if (!kg_price_cand(k, &cand)) return false;
  if (best->c.nest != TARN_NONE && cand.price >= best->c.price) return true;
  lead(best, &cand);
  best->way = way_of(k, from->sig.nest, cut, how);
  return true;
}
/* In the ways in which the family's kernels came from their nodes: each is a candidate. */
static void replay(kgraph *k, uint32_t ag, kcand cand, const offered *from) {
  const tarn_nest *n = tarn_nest_get(k->L, from->sig.nest);
  const kway *const *way;
  uint32_t ways = kg_family_ways(k, &way);
  for (uint32_t i = 0; i < ways; i++) {
    kcut c = way[i]->c;
    bool may = c.pack ? n->nstage == 1 && !n->depth && c.dim < n->stage->nown &&
                            c.read < tarn_fn_get(k->L, n->stage->fn)->nops
                      : n->nstage > 1 && n->depth;
    for (uint32_t d = 0; d < n->depth && !c.pack; d++) {
      if (c.block[d] == KG_WHOLE) c.block[d] = n->shared[d];
      may &= c.block[d] > 0 && n->shared[d] % c.block[d] == 0;
    }
    leader best;
    best.c.nest = TARN_NONE;
    if (!way[i]->cut || may) offer(k, cand, from, way[i]->cut ? &c : NULL, way[i]->how, &best);
    keep_leader(k, ag, &best);
  }
}
/* Without lists, nest and price. */
static kcand new_nest(const kgraph *k, uint32_t node, const ktarget *to) {
  return (kcand){.kind = KC_NEST,
                 .node = node,
                 .kcls = to->kcls,
                 .nout = to->nout,
                 .machine = k->machine,
                 .place = k->place};
}
void kg_nest_cand(kgraph *k, const ktarget *to, uint32_t node, uint32_t nest, const kreading *r,
                  const tarn_layout *over, bool copy) {
  kcand cand = new_nest(k, node, to);
  leader best;
  offered o;
  best.c.nest = TARN_NONE;
  cand.copy = copy, cand.look = r->look;
  for (uint32_t j = 0; j < r->n; j++)
    if (!r->op[j].constant && from_group(k, r, j) == to->ag) return; /* reads what it writes */
  if (!over_buffers(k, &o, to, nest, r, over)) return;
  if (kg_replays(k)) {
    replay(k, to->ag, cand, &o);
    return;
  }
  if (tarn_solver_takes_as_is(k->now.solver)) {
    offer(k, cand, &o, NULL, KG_WRITTEN, &best);
    keep_leader(k, to->ag, &best);
    return;
  }
  kcut cut[KG_MAX_CUTS];
  bool any = false;
  /* stages that would go over single rows go over blocks instead, where they can; the cheapest
   * stands for the node */
  for (uint32_t i = kg_cuts(k, o.sig.nest, cut); i-- > 0;)
    any |= offer(k, cand, &o, &cut[i], KG_WRITTEN, &best) && !cut[i].more;
  if (!any && offer(k, cand, &o, NULL, KG_WRITTEN, &best)) {
    offer(k, cand, &o, NULL, KG_ACROSS, &best);
    if (tarn_layout_elems(&o.sig.out[0]) <= tarn_hw_shares_sums(k->now.hw))
      offer(k, cand, &o, NULL, KG_SUMMED, &best);
  }
  if (tarn_nest_get(k->L, o.sig.nest)->nstage == 1) {
    tarn_ksig merged = o.sig;
    tarn_ksig_merge(k->L, &merged);
    for (uint32_t i = kg_packs(k, &merged, cut); i-- > 0;)
      offer(k, cand, &o, &cut[i], KG_WRITTEN, &best);
  }
  keep_leader(k, to->ag, &best);
}
void kg_copy_cand(kgraph *k, const ktarget *to, uint32_t nest, const kreading *r) {
  kcand c = new_nest(k, TARN_NONE, to);
  offered o;
  if (!over_buffers(k, &o, to, nest, r, NULL)) return;
  o.sig.out[0] = to->out[0];
  c.copy = true, c.nest = o.sig.nest, c.nchild = 1;
  c.child = o.child, c.cterm = o.cterm, c.in = o.sig.in, c.out = o.sig.out;
  if (kg_price_cand(k, &c)) kg_add_cand(k, to->ag, c);
}

/* ---- ways to read the operands ---- */
/* The next combination of views and layouts of the operands; false: there is none. */
static bool next_combo(const kgraph *k, const koperand *op, uint32_t nk, uint32_t *vi,
                       uint32_t *li) {
  for (uint32_t j = 0; j < nk; j++) {
    if (op[j].constant) continue;
    if (++li[j] < k->group.p[op[j].v[vi[j]].group].nlayout) return true;
    li[j] = 0;
    if (++vi[j] < op[j].nv) return true;
    vi[j] = 0;
  }
  return false;
}
/* Layouts of a view. */
static uint32_t orders(const kgraph *k, const koperand *op, uint32_t view) {
  return op->constant ? 1 : k->group.p[op->v[view].group].nlayout;
}
/* Ways to read the operand. */
static uint32_t choices(const kgraph *k, const koperand *op) {
  uint32_t n = 0;
  for (uint32_t v = 0; v < op->nv; v++) n += orders(k, op, v);
  return op->constant ? 1 : n;
}
/* Each in its layout number `at`, or its last one; false: none has so many. */
static bool alike(const kgraph *k, const koperand *op, uint32_t nk, uint32_t *li, uint32_t at) {
  bool any = at == 0;
  for (uint32_t j = 0; j < nk; j++) {
    uint32_t n = orders(k, &op[j], 0);
    li[j] = at < n ? at : n - 1;
    any |= at < n;
  }
  return any;
}
/* Many operands: all alike, then all in their first way but one. */
static bool nearly_alike(const kgraph *k, const koperand *op, uint32_t nk, uint32_t *vi,
                         uint32_t *li, uint32_t at) {
  uint32_t most = 1;
  memset(vi, 0, nk * sizeof *vi);
  for (uint32_t j = 0; j < nk; j++)
    if (orders(k, &op[j], 0) > most) most = orders(k, &op[j], 0);
  if (at < most) return alike(k, op, nk, li, at);
  at -= most;
  memset(li, 0, nk * sizeof *li);
  for (uint32_t j = 0; j < nk; j++) {
    uint32_t others = choices(k, &op[j]) - 1;
    if (at >= others) {
      at -= others;
      continue;
    }
    for (li[j] = at + 1; li[j] >= orders(k, &op[j], vi[j]); vi[j]++)
      li[j] -= orders(k, &op[j], vi[j]);
    return true;
  }
  return false;
}
void kg_combos(kgraph *k, const ktarget *to, uint32_t node, uint32_t nest, uint32_t nk,
               const koperand *op, const klooks *look, const tarn_layout *over, bool copy) {
  enum { COMBOS = 32, MANY = 4 };
  uint32_t vi[KG_MAX_KIDS] = {0}, li[KG_MAX_KIDS] = {0}, several = 0;
  bool more = true;
  for (uint32_t j = 0; j < nk; j++) several += choices(k, &op[j]) > 1;
  for (uint32_t tries = 0; tries < COMBOS && more; tries++) {
    const kview *v[KG_MAX_KIDS] = {0};
    for (uint32_t j = 0; j < nk; j++) v[j] = &op[j].v[vi[j]];
    kg_nest_cand(k, to, node, nest, &(kreading){nk, op, v, li, look}, over, copy);
    more = several >= MANY ? nearly_alike(k, op, nk, vi, li, tries + 1)
                           : next_combo(k, op, nk, vi, li);
  }
}
