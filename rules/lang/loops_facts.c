/* Types, ranges and constancy of every node of an expression of a nest. A rule over scalar
 * expressions asks for them at each place where it may fit, so they are worked out once for all
 * places. */
#include "rules/lang/loops.h"

void loops_forget(lmatch *m) {
  for (uint32_t i = 0; i < 2; i++) m->facts[i].root = TARN_NONE;
}

static lfacts *of_part(renv *e, uint32_t part) {
  lmatch *m = e->loops;
  if (part / 2 >= m->k.nstage) return NULL; /* the inner kernel's */
  const kstage *st = &m->k.stage[part / 2];
  uint32_t root = part % 2 ? st->epi : st->body, nread = st->nb + st->ne;
  lfacts *x = &m->facts[part % 2];
  if (root == TARN_NONE) return NULL;
  if (x->root == root && x->part == part && x->nread == nread) return x;
  x->root = TARN_NONE;
  if (!fx_walk(e->L, root, &x->w)) return NULL;
  x->part = part, x->root = root, x->nread = nread;
  x->typed = x->ranged = x->split = false;
  return x;
}
const lfacts *loops_walk_part(renv *e, uint32_t part) { return of_part(e, part); }

static void type_nodes(renv *e, lfacts *x) {
  const lmatch *m = e->loops;
  const kstage *st = &m->k.stage[x->part / 2];
  tarn_dtype hole[K_READS + 1];
  uint32_t n = x->part % 2 ? st->ne + 1 : st->nb;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_read *r = loops_read_of(m, x->part, i);
    hole[i] = r ? r->stage ? TARN_F32 : kern_leaf_type(&m->k, r->src)->dtype
                : tarn_reducer_get(e->L, st->reducer)->dtype;
  }
  tarn_fx_types(e->L, x->w.id, x->w.kid, x->w.n, hole, n, x->type);
  x->typed = true;
}
const lfacts *loops_types(renv *e, uint32_t part) {
  lfacts *x = of_part(e, part);
  if (x && !x->typed) type_nodes(e, x);
  return x;
}
const lfacts *loops_ranges(renv *e, uint32_t part) {
  lfacts *x = of_part(e, part);
  if (!x || x->ranged) return x;
  const kern *k = &e->loops->k;
  x->nhole = vrange_holes(e->host, k, &k->stage[part / 2], part % 2 == 0, x->hole);
  vrange_walk(e->L, &x->w, x->hole, x->nhole, x->is);
  x->ranged = true;
  return x;
}

static bool node_varies(const renv *e, const lfacts *x, uint32_t i) {
  const tarn_fx *f = tarn_fx_get(e->L, x->w.id[i]);
  bool varies = false;
  if (f->op == TARN_FX_HOLE) {
    const tarn_read *r = loops_read_of(e->loops, x->part, f->hole);
    return !r || r->stage || !e->host->is_const(e->host->user, e->loops->k.leaf[r->src]);
  }
  for (uint32_t k = 0; k < tarn_fx_arity(f->op); k++) varies |= x->varies[x->w.kid[i].at[k]];
  return varies;
}
const lfacts *loops_varying(renv *e, uint32_t part) {
  lfacts *x = of_part(e, part);
  if (!x || x->split) return x;
  for (uint32_t i = 0; i < x->w.n; i++) x->varies[i] = node_varies(e, x, i);
  x->split = true;
  return x;
}
uint32_t loops_node(const lfacts *x, uint32_t f) {
  for (uint32_t i = x->w.n; i-- > 0;)
    if (x->w.id[i] == f) return i;
  return TARN_NONE;
}
