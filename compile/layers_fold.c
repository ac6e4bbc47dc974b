/* The model with the first blocks of each chain and the last one.
 *
 * The last block reads what the one before it would: the block before it among those that are kept.
 * A constant that differs from block to block is an input in each of these, with a name that no
 * model has; the inputs of the model stay what they are. */
#include "compile/layers.h"
#include <string.h>

typedef struct folding {
  comp_layers *l;
  uint32_t chain, block, col; /* of the node at hand; the next of its columns */
} folding;

/* ---------------------------------------------------------------- constants */
tarn_term lay_stand_in(const comp_layers *l, uint32_t chain, uint32_t kept, uint32_t stand,
                       uint32_t type) {
  return tarn_input(l->L, tarn_format(l->cx, "?layer %u.%u.%u", chain, kept, stand), type);
}
static tarn_term stand_in(const folding *f, tarn_term leaf) {
  comp_layers *l = f->l;
  const lay_chain *c = &l->chain.p[f->chain];
  uint32_t stand = c->stand[f->col], kept = lay_kept(c, f->block);
  bool fresh;
  if (stand == TARN_NONE) return leaf;
  tarn_term t = lay_stand_in(l, f->chain, kept, stand, tarn_term_get(l->L, leaf)->type);
  uint64_t *at = tarn_map_at(l->leaf_of, t, &fresh);
  if (!fresh) return t;
  *at = l->leaf.n + 1;
  tarn_push(l->cx, &l->leaf, ((lay_leaf){t, f->chain, kept, stand}));
  return t;
}
/* In the order in which columns are numbered. */
static tarn_term constant(folding *f, tarn_term t, tarn_map *seen) {
  tarn_node x = *tarn_term_get(f->l->L, t);
  bool fresh;
  uint64_t *at = tarn_map_at(seen, t, &fresh);
  if (!fresh) return (tarn_term)*at;
  tarn_term made = t;
  if (lay_is_leaf(f->l->L, &x)) {
    made = stand_in(f, t);
    f->col++;
  }
  tarn_term *kid = TARN_ARRAY(f->l->cx, tarn_term, x.n + 1);
  bool same = true;
  for (uint32_t i = 0; i < x.n; i++) {
    kid[i] = constant(f, x.kid[i], seen);
    same &= kid[i] == x.kid[i];
  }
  if (!same) made = tarn_mk(f->l->L, x.op, x.payload, kid, x.n);
  *tarn_map_at(seen, t, NULL) = made;
  return made;
}

/* ---------------------------------------------------------------- nodes */
/* What operand number `kid` is to a node of this chain and block. */
static tarn_term operand(const folding *f, uint32_t kid) {
  const comp_layers *l = f->l;
  const lay_node *x = &l->node.p[kid];
  if (f->chain == TARN_NONE || x->chain != f->chain) return x->folded;
  const lay_chain *c = &l->chain.p[f->chain];
  bool last = f->block + 1 == c->n, before = x->block + 2 == c->n && x->ref < c->size;
  return last && before ? l->node.p[lay_at(c, LAY_KEPT - 2, x->ref)].folded : x->folded;
}
static void fold_node(comp_layers *l, uint32_t number) {
  lay_node *to = &l->node.p[number];
  tarn_node x = *tarn_term_get(l->L, to->term);
  folding f = {.l = l, .chain = to->chain, .block = to->block};
  const lay_chain *c = to->chain == TARN_NONE ? NULL : &l->chain.p[to->chain];
  bool stretch = c && to->ref < c->size;
  if (c && lay_kept(c, to->block) == TARN_NONE) return;
  if (stretch) f.col = c->col[to->ref];
  tarn_term *kid = TARN_ARRAY(l->cx, tarn_term, x.n + 1);
  for (uint32_t i = 0; i < x.n; i++) {
    uint32_t number_of = lay_number(l, x.kid[i]);
    if (number_of != TARN_NONE) kid[i] = operand(&f, number_of);
    else kid[i] = stretch ? constant(&f, x.kid[i], tarn_map_new(l->cx)) : x.kid[i];
    if (kid[i] == TARN_NONE) return;
  }
  to->folded = tarn_mk(l->L, x.op, x.payload, kid, x.n);
}

/* ---------------------------------------------------------------- the program */
static tarn_term folded(const comp_layers *l, tarn_term t) {
  uint32_t number = lay_number(l, t);
  return number == TARN_NONE ? t : l->node.p[number].folded;
}
static bool left_out(const comp_layers *l, tarn_term t) {
  const lay_node *x = &l->node.p[lay_number(l, t)];
  return x->chain != TARN_NONE && lay_kept(&l->chain.p[x->chain], x->block) == TARN_NONE;
}
static bool fold_outputs(comp_layers *l) {
  const tarn_program *p = l->whole;
  tarn_program *to = l->folded;
  to->out = TARN_ARRAY(l->cx, tarn_io, p->nout + 1);
  l->out = TARN_ARRAY(l->cx, uint32_t, p->nout + 1);
  for (uint32_t i = 0; i < p->nout; i++) {
    tarn_term t = folded(l, p->out[i].term);
    if (t == TARN_NONE && !left_out(l, p->out[i].term)) return false;
    if (t == TARN_NONE) continue;
    l->out[to->nout] = i;
    to->out[to->nout] = p->out[i];
    to->out[to->nout++].term = t;
  }
  return true;
}
static void fold_inputs(comp_layers *l) {
  const tarn_program *p = l->whole;
  tarn_program *to = l->folded;
  to->in = TARN_ARRAY(l->cx, tarn_io, p->nin + 1);
  for (uint32_t i = 0; i < p->nin; i++)
    if (lay_number(l, p->in[i].term) != TARN_NONE && folded(l, p->in[i].term) != TARN_NONE)
      to->in[to->nin++] = p->in[i];
}
static void fold_origins(comp_layers *l) {
  const tarn_program *p = l->whole;
  tarn_origin *to = TARN_ARRAY(l->cx, tarn_origin, p->norigin + 1);
  l->origin = TARN_ARRAY(l->cx, uint32_t, p->norigin + 1);
  for (uint32_t i = 0; i < p->norigin; i++) {
    tarn_term t = folded(l, p->origin[i].term);
    if (t == TARN_NONE) continue;
    l->origin[l->folded->norigin] = i;
    to[l->folded->norigin] = p->origin[i];
    to[l->folded->norigin++].term = t;
  }
  l->folded->origin = to;
}
/* The values that a stand-in stands for. */
static const tarn_tensor **values_of(const comp_layers *l, const lay_chain *c, uint32_t stand) {
  const tarn_tensor **v = TARN_ARRAY(l->cx, const tarn_tensor *, c->n);
  for (uint32_t b = 0; b < c->n; b++) {
    tarn_term leaf = c->leaf[(size_t)b * c->ncol + c->first[stand]];
    v[b] = tarn_payload_get(l->L, tarn_term_get(l->L, leaf)->payload)->tensor;
  }
  return v;
}
static void name_values(comp_layers *l) {
  tarn_map *known = tarn_map_new(l->cx);
  l->stand = TARN_ARRAY(l->cx, tarn_stand_in, l->leaf.n + 1);
  for (uint32_t i = 0; i < l->leaf.n; i++) {
    const lay_leaf *x = &l->leaf.p[i];
    const lay_chain *c = &l->chain.p[x->chain];
    uint64_t *had = tarn_map_at(known, (uint64_t)x->chain << 32 | x->stand, NULL);
    if (!*had) *had = (uint64_t)(uintptr_t)values_of(l, c, x->stand);
    l->stand[i] = (tarn_stand_in){x->term, c->n, (const tarn_tensor *const *)(uintptr_t)*had};
  }
}
bool lay_fold(comp_layers *l) {
  l->leaf_of = tarn_map_new(l->cx);
  l->folded = TARN_NEW(l->cx, tarn_program);
  l->folded->L = l->L;
  for (uint32_t i = 0; i < l->node.n; i++) fold_node(l, i);
  if (!fold_outputs(l)) return false;
  fold_inputs(l);
  fold_origins(l);
  name_values(l);
  return true;
}
