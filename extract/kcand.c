/* Candidate kernels: what each e-node gives (a nest, a concatenation, a kernel of its own, one of
 * several results) in each storage order of its result; copies, and the program's outputs. */
#include "base/progress.h"
#include "extract/kgraph.h"
#include <string.h>

/* Few lists differ: those of a class's buffers, over and over. Nobody writes into them. */
static tarn_layout *shared_layouts(kgraph *k, const tarn_layout *l, uint32_t n) {
  size_t size = n * sizeof *l;
  if (!n) return NULL;
  return (tarn_layout *)tarn_intern_key(k->layouts, tarn_intern_add(k->layouts, l, size), &size);
}
void kg_add_cand(kgraph *k, uint32_t ag, kcand c) {
  if (!kg_shared_allows(k, ag, &c)) return;
  c.child = tarn_copy(k->cx, c.child, c.nchild * sizeof *c.child);
  c.cterm = tarn_copy(k->cx, c.cterm, c.nchild * sizeof *c.cterm);
  c.in = shared_layouts(k, c.in, c.nchild);
  c.out = shared_layouts(k, c.out, c.nout);
  tarn_push(k->cx, &k->cand, c);
  tarn_push(k->cx, &k->cand_class, ag);
  k->r->candidates++;
}

kcand kg_new_cand(kgraph *k, kcand_kind kind, uint32_t node, uint32_t kcls, uint32_t n) {
  kcand c = {.kind = kind, .node = node, .kcls = kcls, .nchild = n, .nout = 1};
  c.machine = k->machine, c.place = k->place;
  c.child = TARN_ARRAY(k->cx, uint32_t, n + 1), c.cterm = TARN_ARRAY(k->cx, uint32_t, n + 1);
  c.in = TARN_ARRAY(k->cx, tarn_layout, n + KG_MAX_OUT), c.out = c.in + n;
  for (uint32_t j = 0; j < n; j++) c.child[j] = c.cterm[j] = TARN_NONE;
  return c;
}
/* AND/OR class `ag` is what class `of` holds, as it lies. */
static void add_alias(kgraph *k, uint32_t ag, uint32_t kcls, uint32_t of, const tarn_layout *l) {
  kcand c = kg_new_cand(k, KC_ALIAS, TARN_NONE, kcls, 1);
  c.child[0] = of, c.in[0] = c.out[0] = *l;
  kg_add_cand(k, ag, c);
}

/* ---- operands and results ---- */
/* A nest for each storage order of its result. */
static void each_order(kgraph *k, uint32_t kc, uint32_t node, uint32_t nest, uint32_t nk,
                       const koperand *op, const klooks *look, bool copy) {
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  for (uint32_t lo = 0; lo < g->nlayout; lo++) {
    ktarget to = {.ag = kg_ag(k, g, lo), .kcls = kc, .nout = 1};
    bool direct = kg_layout_over(k, &g->layout[lo], k->cls.p[kc].to_rep, &to.out[0]);
    kg_combos(k, &to, node, nest, nk, op, look, direct ? NULL : &g->layout[lo], copy);
  }
}
/* The operands, with tables and indices in the place of what gathers give. */
static const klooks *with_rows(kgraph *k, uint32_t nk, const koperand *op, koperand *rows,
                               uint32_t *more) {
  memcpy(rows, op, nk * sizeof *op);
  return kg_looks(k, nk, rows, more);
}
static void all_orders(kgraph *k, uint32_t kc, uint32_t node, uint32_t nest, uint32_t nk,
                       const koperand *op, bool copy) {
  koperand rows[KG_MAX_KIDS];
  uint32_t more;
  each_order(k, kc, node, nest, nk, op, NULL, copy);
  const klooks *look = with_rows(k, nk, op, rows, &more);
  if (look) each_order(k, kc, node, nest, nk + more, rows, look, copy);
}
/* The same of a nest of several results, in one storage order of each. */
static void one_order(kgraph *k, const ktarget *to, uint32_t node, uint32_t nest, uint32_t nk,
                      const koperand *op) {
  koperand rows[KG_MAX_KIDS];
  uint32_t more;
  kg_combos(k, to, node, nest, nk, op, NULL, NULL, false);
  const klooks *look = with_rows(k, nk, op, rows, &more);
  if (look) kg_combos(k, to, node, nest, nk + more, rows, look, NULL, false);
}
static bool read_constant(kgraph *k, koperand *op) {
  op->term = kg_constant(k, op->kcls);
  if (op->term >= TARN_NONE - 1) return false;
  op->nv = 1, op->v[0] = (kview){TARN_NONE, tarn_map_identity(k->L, k->cls.p[op->kcls].type)};
  for (;;) {
    tarn_node n = *tarn_term_get(k->L, op->term);
    if (n.op != TARN_OP_VIEW) return true;
    uint32_t m = tarn_map_compose(k->L, op->v[0].map, tarn_payload_get(k->L, n.payload)->id);
    if (m == TARN_NONE) return true;
    op->v[0].map = m, op->term = n.kid[0];
  }
}
bool kg_operand(kgraph *k, uint32_t kcls, uint32_t but, koperand *op) {
  *op = (koperand){.kcls = kcls, .constant = k->cls.p[kcls].constant};
  if (op->constant) return read_constant(k, op);
  uint32_t n = kg_views(k, kcls, but, op->v);
  for (uint32_t i = 0; i < n; i++) /* only buffers that have a storage order */
    if (k->group.p[op->v[i].group].nlayout) op->v[op->nv++] = op->v[i];
  return true;
}
/* What lies elsewhere is copied to where the class lies; what is computed there needs no copy. */
static void materialised(kgraph *k, uint32_t kc, uint32_t node, uint32_t kid) {
  koperand op;
  if (kg_operand(k, kid, k->cls.p[kc].group, &op) && op.nv)
    all_orders(k, kc, node, kg_identity_nest(k, k->cls.p[kid].type), 1, &op, true);
}
static bool read_operands(kgraph *k, const tarn_eg_node *e, koperand *op) {
  for (uint32_t j = 0; j < e->n; j++)
    if (!kg_operand(k, kg_class(k, e->kids[j]), TARN_NONE, &op[j]) || !op[j].nv) return false;
  return true;
}
uint32_t kg_identity_nest(kgraph *k, uint32_t type) {
  uint32_t fn = tarn_fn_map(k->L, tarn_fx_hole(k->L, 0), 1);
  return tarn_nest_of(k->L, TARN_OP_COMPUTE, tarn_payload_of(k->L, TARN_P_FN, fn), &type, 1);
}
static tarn_layout row_major(kgraph *k, uint32_t kcls) {
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[kcls].type);
  return tarn_layout_row_major(t->n, t->dim);
}
/* Is storage order l of the group, seen through map, this layout? */
static bool lies_so(kgraph *k, const kgroup *g, uint32_t l, uint32_t map, const tarn_layout *want) {
  tarn_layout over;
  return kg_layout_over(k, &g->layout[l], map, &over) && tarn_layout_equal(&over, want);
}
/* A buffer that holds the operand as a plain row-major tensor, or a constant; false when there is
 * none. */
static bool plain_operand(kgraph *k, const koperand *op, kcand *c, uint32_t j) {
  c->in[j] = row_major(k, op->kcls);
  if (op->constant) {
    c->cterm[j] = kg_constant(k, op->kcls);
    return true;
  }
  for (uint32_t i = 0; i < op->nv; i++) {
    kgroup *from = &k->group.p[op->v[i].group];
    for (uint32_t l = 0; l < from->nlayout; l++) {
      if (!lies_so(k, from, l, op->v[i].map, &c->in[j])) continue;
      c->child[j] = kg_ag(k, from, l);
      return true;
    }
  }
  return false;
}
static uint32_t copied(kgraph *k, const koperand *op, const tarn_layout *l);
/* A kernel that is no nest: reads and writes plain row-major tensors; operands lying otherwise are
 * copied first. */
static void other_cand(kgraph *k, const ktarget *to, uint32_t node, const tarn_eg_node *e,
                       const koperand *op) {
  kcand c = kg_new_cand(k, KC_OTHER, node, to->kcls, e->n);
  c.op = e->op, c.payload = e->payload, c.nout = to->nout;
  memcpy(c.out, to->out, to->nout * sizeof *c.out);
  double elements = 0;
  for (uint32_t j = 0; j < to->nout; j++) elements += (double)tarn_layout_elems(&to->out[j]);
  for (uint32_t j = 0; j < e->n; j++) {
    if (!plain_operand(k, &op[j], &c, j)) c.child[j] = copied(k, &op[j], &c.in[j]);
    bool table = e->op == TARN_OP_GATHER && j == 0;
    if (!table) elements += (double)tarn_layout_elems(&c.in[j]);
  }
  c.price = elements * 1e-9 + k->now.hw->launch; /* about an element a nanosecond */
  kg_add_cand(k, to->ag, c);
}
static void other_node(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e,
                       const koperand *op) {
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  tarn_layout row = row_major(k, kc);
  for (uint32_t l = 0; l < g->nlayout; l++) {
    ktarget to = {.ag = kg_ag(k, g, l), .kcls = kc, .nout = 1, .out = {row}};
    if (lies_so(k, g, l, k->cls.p[kc].to_rep, &row)) other_cand(k, &to, node, e, op);
  }
}

/* ---- concatenations, copies, roots ---- */
static uint32_t new_class(kgraph *k) { return k->nag++; }
/* Copies of an operand into layout l (over its dims), from whatever group it can be read from but
 * one. */
static void copy_into(kgraph *k, uint32_t ag, const koperand *op, const tarn_layout *l,
                      uint32_t but) {
  uint32_t nest = kg_identity_nest(k, k->cls.p[op->kcls].type);
  for (uint32_t i = 0; i < op->nv; i++) {
    const kview *v = &op->v[i];
    if (!op->constant && v->group == but) continue;
    for (uint32_t s = 0; s < (op->constant ? 1 : k->group.p[v->group].nlayout); s++) {
      ktarget to = {.ag = ag, .kcls = op->kcls, .nout = 1, .out = {*l}};
      kg_copy_cand(k, &to, nest, &(kreading){1, op, &v, &s, NULL});
    }
  }
}
/* An AND/OR class for an operand copied to a place of its own. */
static uint32_t copied(kgraph *k, const koperand *op, const tarn_layout *l) {
  uint32_t ag = new_class(k);
  copy_into(k, ag, op, l, TARN_NONE);
  return ag;
}
/* A part that is computed in its place together with what lies around it. */
static void within_larger(kgraph *k, uint32_t ag, const koperand *op, const tarn_layout *whole,
                          uint32_t part_of, uint32_t axis, int64_t at, const tarn_layout *part) {
  tarn_layout over;
  for (uint32_t i = 0; i < op->nv && !op->constant; i++) {
    const kgroup *g = &k->group.p[op->v[i].group];
    if (!kg_part_with_more(k, op->kcls, &op->v[i], whole, axis, at, &over)) continue;
    for (uint32_t l = 0; l < g->nlayout; l++) {
      if (g->part_of[l] != part_of || !tarn_layout_equal(&over, &g->layout[l])) continue;
      add_alias(k, ag, op->kcls, kg_ag(k, g, l), part);
    }
  }
}
/* The AND/OR class of an operand copied to its place in a whole, made once. */
static uint32_t copied_part(kgraph *k, const koperand *op, const tarn_layout *part,
                            uint32_t part_of) {
  uint64_t key = tarn_hash_mix(tarn_hash_mix(op->kcls, 1), (uint64_t)part->offset);
  key = tarn_hash_bytes(part->stride, part->n * sizeof *part->stride, key);
  uint32_t whole = kg_ag(k, &k->group.p[part_of / KG_MAX_LAYOUTS], part_of % KG_MAX_LAYOUTS);
  bool fresh;
  uint64_t *at = tarn_map_at(k->part_copies, tarn_hash_mix(key, whole), &fresh);
  if (!fresh) return (uint32_t)*at;
  uint32_t ag = new_class(k);
  *at = ag;
  kg_lies_in(k, ag, whole);
  copy_into(k, ag, op, part, TARN_NONE);
  return ag;
}
/* The AND/OR class of a part that lies so within a whole. */
static uint32_t concat_part(kgraph *k, const koperand *op, const tarn_layout *part,
                            uint32_t part_of) {
  const kclass *kid = &k->cls.p[op->kcls];
  const kgroup *in = &k->group.p[kid->group];
  uint32_t back = kg_from_rep(k, op->kcls), at = TARN_NONE;
  tarn_layout over;
  if (back != TARN_NONE && !kid->constant && kg_layout_over(k, part, back, &over))
    for (uint32_t l = 0; l < in->nlayout; l++)
      if (in->part_of[l] == part_of && tarn_layout_equal(&over, &in->layout[l]))
        at = kg_ag(k, in, l);
  if (at == TARN_NONE) return copied_part(k, op, part, part_of);
  bool fresh;
  tarn_map_at(k->part_copies, tarn_hash_mix(tarn_hash_mix(at, 2), op->kcls), &fresh);
  if (fresh) copy_into(k, at, op, part, kid->group); /* a view of something larger */
  return at;
}
static void concat_cand(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e,
                        const koperand *op) {
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  uint32_t axis = (uint32_t)tarn_payload_get(k->L, e->payload)->ints[0];
  for (uint32_t lo = 0; lo < g->nlayout; lo++) {
    tarn_layout whole;
    bool outermost = g->part_of[lo] == TARN_NONE;
    uint32_t part_of = outermost ? k->cls.p[kc].group * KG_MAX_LAYOUTS + lo : g->part_of[lo];
    if (!kg_layout_over(k, &g->layout[lo], k->cls.p[kc].to_rep, &whole)) continue;
    kcand c = kg_new_cand(k, KC_CONCAT, node, kc, e->n);
    c.out[0] = whole;
    int64_t at = 0;
    for (uint32_t j = 0; j < e->n; j++) {
      const tarn_type *t = tarn_type_get(k->L, k->cls.p[op[j].kcls].type);
      c.in[j] = kg_part(&whole, t, axis, at);
      c.child[j] = concat_part(k, &op[j], &c.in[j], part_of);
      if (outermost) within_larger(k, c.child[j], &op[j], &whole, part_of, axis, at, &c.in[j]);
      at += t->dim[axis];
    }
    kg_add_cand(k, kg_ag(k, g, lo), c);
  }
}
static void copies(kgraph *k) {
  for (uint32_t gi = 0; gi < k->group.n; gi++) {
    kgroup *g = &k->group.p[gi];
    if (g->nlayout < 2) continue;
    uint32_t nest = kg_identity_nest(k, g->type);
    for (uint32_t a = 0; a < g->nlayout; a++)
      for (uint32_t b = 0; b < g->nlayout; b++) {
        if (a == b) continue;
        kview self = {gi, tarn_map_identity(k->L, g->type)};
        const kview *v = &self;
        koperand op = {.kcls = g->rep};
        ktarget to = {.ag = kg_ag(k, g, b), .kcls = g->rep, .nout = 1, .out = {g->layout[b]}};
        kg_nest_cand(k, &to, TARN_NONE, nest, &(kreading){1, &op, &v, &a, NULL}, NULL, true);
      }
  }
}
/* The root that is an output with an input in it: the buffer itself. */
static uint32_t shared_root(kgraph *k, uint32_t kc, const tarn_layout *order) {
  uint32_t ag = new_class(k);
  add_alias(k, ag, kc, kg_ag(k, &k->group.p[k->cls.p[kc].group], 0), order);
  return ag;
}
/* Root i: a copy in the caller's order, or the buffer itself where it lies so and is no other root.
 */
static uint32_t root(kgraph *k, uint32_t i, tarn_map *taken) {
  uint32_t kc = kg_class(k, k->in->root[i]);
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[kc].type);
  const tarn_in_place *x = kg_shared_port(k, true, i);
  tarn_layout row = x ? tarn_in_place_layout(x, t->n, t->dim) : row_major(k, kc);
  koperand op;
  if (x && x->filled) return shared_root(k, kc, &row);
  bool fresh;
  if (!kg_operand(k, kc, TARN_NONE, &op))
    tarn_raise(k->cx, TARN_INTERNAL, "output %u: a constant without a term", i);
  uint32_t ag = copied(k, &op, &row);
  tarn_map_at(taken, k->cls.p[kc].group, &fresh);
  for (uint32_t l = 0; l < g->nlayout && fresh && !g->input && !g->fixed && !op.constant; l++)
    if (g->part_of[l] == TARN_NONE && lies_so(k, g, l, k->cls.p[kc].to_rep, &row))
      add_alias(k, ag, kc, kg_ag(k, g, l), &row);
  return ag;
}
static void roots(kgraph *k) {
  tarn_map *taken = tarn_map_new(k->cx);
  k->root_class = TARN_ARRAY(k->cx, uint32_t, k->in->nroot);
  for (uint32_t i = 0; i < k->in->nroot; i++) k->root_class[i] = root(k, i, taken);
}

/* ---- kernels with several results ---- */
/* The class that is result i of tuple class t, and its e-node; TARN_NONE when nothing asks for it.
 */
static uint32_t nth_class(kgraph *k, uint32_t t, uint32_t i, uint32_t *node) {
  tarn_eg_use u = tarn_eg_uses(k->g, k->cls.p[t].cls);
  while (tarn_eg_next_use(k->g, &u)) {
    tarn_eg_node e = tarn_eg_node_at(k->g, u.node);
    if (e.op != TARN_OP_NTH || tarn_payload_get(k->L, e.payload)->ints[0] != (int64_t)i) continue;
    uint32_t c = kg_class(k, u.node);
    *node = u.node;
    if (c != TARN_NONE && !k->cls.p[c].constant) return c;
  }
  return TARN_NONE;
}
static uint32_t plain_layouts(const kgroup *g) {
  uint32_t n = 0;
  while (n < g->nlayout && g->part_of[n] == TARN_NONE) n++;
  return n;
}
/* How many storage orders result i of a tuple can have: one that nothing asks for lies in row-major
 * order. */
static uint32_t result_orders(const kgraph *k, uint32_t cls) {
  return cls == TARN_NONE ? 1 : plain_layouts(&k->group.p[k->cls.p[cls].group]);
}
static bool result_layout(kgraph *k, uint32_t cls, uint32_t type, uint32_t li, bool row_major,
                          tarn_layout *out) {
  const tarn_type *t = tarn_type_get(k->L, type);
  tarn_layout row = tarn_layout_row_major(t->n, t->dim);
  *out = row;
  if (cls == TARN_NONE) return true;
  const kgroup *g = &k->group.p[k->cls.p[cls].group];
  return kg_layout_over(k, &g->layout[li], k->cls.p[cls].to_rep, out) &&
         (!row_major || tarn_layout_equal(&row, out));
}
/* A tuple class's results: the classes that take them, their e-nodes, a storage order of each. */
typedef struct results {
  uint32_t n, cls[KG_MAX_OUT], nth[KG_MAX_OUT], li[KG_MAX_OUT];
} results;
/* The next choice of storage orders; false: there is none. */
static bool next_orders(const kgraph *k, results *r) {
  for (uint32_t i = 0; i < r->n; r->li[i++] = 0)
    if (++r->li[i] < result_orders(k, r->cls[i])) return true;
  return false;
}
/* The results are taken for nothing from the AND/OR class that computes them all. */
static void take_results(kgraph *k, const results *r, const ktarget *from) {
  for (uint32_t i = 0; i < r->n; i++) {
    if (r->cls[i] == TARN_NONE) continue;
    kcand n = kg_new_cand(k, KC_NTH, r->nth[i], r->cls[i], 1);
    n.nth = i, n.child[0] = from->ag, n.in[0] = n.out[0] = from->out[i];
    kg_add_cand(k, kg_ag(k, &k->group.p[k->cls.p[r->cls[i]].group], r->li[i]), n);
  }
}
/* Each choice of a storage order per result is an AND/OR class of its own. */
static void tuple_node(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e,
                       const koperand *op) {
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[kc].type);
  results r = {.n = t->nelem};
  bool more = true;
  if (t->nelem > KG_MAX_OUT) return;
  for (uint32_t i = 0; i < r.n; i++)
    if (!result_orders(k, r.cls[i] = nth_class(k, kc, i, &r.nth[i]))) return;
  uint32_t nest = e->op == TARN_OP_NEST ? kg_nest_of(k, e) : TARN_NONE;
  for (uint32_t tries = 0; tries < 8 && more; tries++, more = next_orders(k, &r)) {
    ktarget to = {.ag = k->nag, .kcls = kc, .nout = r.n};
    bool ok = true;
    for (uint32_t i = 0; i < r.n && ok; i++)
      ok = result_layout(k, r.cls[i], t->elem[i], r.li[i], nest == TARN_NONE, &to.out[i]);
    if (!ok) continue;
    k->nag++;
    if (nest != TARN_NONE) one_order(k, &to, node, nest, e->n, op);
    else other_cand(k, &to, node, e, op);
    take_results(k, &r, &to);
  }
}

/* A gather as a nest that copies rows. */
static void gather_rows(kgraph *k, uint32_t kc, uint32_t node) {
  koperand op[2];
  uint32_t more, nest = kg_identity_nest(k, k->cls.p[kc].type);
  if (!kg_operand(k, kc, TARN_NONE, &op[0]) || !op[0].nv) return;
  const klooks *look = kg_looks(k, 1, op, &more);
  if (look) each_order(k, kc, node, nest, 1 + more, op, look, false);
}

/* A nest, or a compute, with as many operands as a kernel may have. Lookups are written in the
 * program: no rule makes any. */
static bool emittable(kgraph *k, const tarn_eg_node *e) {
  if (e->n > KG_MAX_KIDS) return false;
  uint32_t nest = kg_nest_of(k, e);
  bool able =
      tarn_hw_traits_of(k->now.hw).lookups || !tarn_nest_looks_up(tarn_nest_get(k->L, nest));
  if (!able && k->machines.n < 2)
    tarn_raise(k->cx, TARN_BAD_INPUT, "a nest has lookups, which kernels of %s have not",
               k->now.hw->name);
  return able && tarn_nest_emittable(k->L, nest);
}

static void of_node(kgraph *k, uint32_t kc, uint32_t node) {
  tarn_go_on(k->cx);
  tarn_eg_node e = tarn_eg_node_at(k->g, node);
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  if (e.op == TARN_OP_INPUT) {
    if (g->nlayout && !k->machine)
      kg_add_cand(
          k, kg_ag(k, g, 0),
          (kcand){
              .kind = KC_INPUT, .node = node, .kcls = kc, .payload = e.payload, .place = k->place});
    return;
  }
  bool nest = e.op == TARN_OP_COMPUTE || e.op == TARN_OP_NEST;
  bool other = tarn_op_info(e.op)->kernel == TARN_OPK_OWN;
  if (!kg_produces(e.op) || e.op == TARN_OP_NTH || (nest && !emittable(k, &e))) return;
  if (other && !tarn_hw_traits_of(k->now.hw).calls) return; /* of the runtime */
  koperand *op = TARN_ARRAY(k->cx, koperand, e.n + 1);
  if (!read_operands(k, &e, op)) return;
  if (tarn_type_get(k->L, k->cls.p[kc].type)->tuple) {
    if (e.op == TARN_OP_NEST || other) tuple_node(k, kc, node, &e, op);
  } else if (e.op == TARN_OP_CONCAT) {
    concat_cand(k, kc, node, &e, op);
  } else if (e.op == TARN_OP_CALL) {
    if (kg_written(k, &e)) kg_call(k, kc, node, &e, op);
  } else if (other) {
    other_node(k, kc, node, &e, op);
    if (e.op == TARN_OP_GATHER) gather_rows(k, kc, node);
  } else if (nest) {
    all_orders(k, kc, node, kg_nest_of(k, &e), e.n, op, false);
  } else if (e.op == TARN_OP_MATERIALISE) {
    materialised(k, kc, node, op[0].kcls);
  }
}

/* n: kg_constant may add classes, which have no candidates. */
static void of_machine(kgraph *k, uint32_t n) {
  for (uint32_t c = 0; c < n; c++) {
    const tarn_type *t = tarn_type_get(k->L, k->cls.p[c].type);
    if (k->cls.p[c].constant || (!t->tuple && !k->group.p[k->cls.p[c].group].nlayout)) continue;
    tarn_progress(k->cx, "finding kernels", c, n, "terms");
    EACH_NODE(k, k->cls.p[c].cls, node) of_node(k, c, node);
  }
  copies(k);
}
void kg_candidates(kgraph *k) {
  uint32_t n = k->cls.n;
  for (uint32_t m = 0; m < k->machines.n; m++) {
    kg_machine(k, m);
    of_machine(k, n);
  }
  kg_moves(k);
  kg_machine(k, 0); /* outputs lie where inputs do */
  roots(k);
}
