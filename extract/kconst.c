/* Constants as kernels read them: a term for each, the order in which a kernel reads it, and the
 * values of small ones. */
#include "extract/kgraph.h"
#include "kernel/loops.h"
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>

/* ---- a term for a class ---- */
/* The number of a class that only a constant needs. */
static uint32_t constant_class(kgraph *k, uint32_t eclass) {
  uint32_t c = kg_class(k, eclass);
  bool fresh;
  if (c != TARN_NONE) return c;
  *tarn_map_at(k->by_class, tarn_eg_find(k->g, eclass), &fresh) = k->cls.n + 1;
  kclass nc = {.cls = tarn_eg_find(k->g, eclass), .constant = true, .group = TARN_NONE};
  nc.type = k->in->type_of(k->in->user, nc.cls);
  c = k->cls.n;
  tarn_push(k->cx, &k->cls, nc);
  tarn_push(k->cx, &k->const_term, TARN_NONE);
  return c;
}
/* The term that e-node n is; TARN_NONE when some kid has none. */
static tarn_term constant_node(kgraph *k, uint32_t n) {
  tarn_eg_node e = tarn_eg_node_at(k->g, n);
  tarn_term *kid = TARN_ARRAY(k->cx, tarn_term, e.n + 1);
  uint32_t *kids = tarn_copy(k->cx, e.kids, e.n * sizeof *e.kids);
  for (uint32_t j = 0; j < e.n; j++) {
    kid[j] = kg_constant(k, constant_class(k, kids[j]));
    if (kid[j] >= TARN_NONE - 1) return TARN_NONE;
  }
  return tarn_mk(k->L, e.op, e.payload, kid, e.n);
}
/* The smallest term of the class; a class is left open while it is being built, so that cycles are
 * avoided. */
tarn_term kg_constant(kgraph *k, uint32_t c) {
  if (k->const_term.p[c] != TARN_NONE) return k->const_term.p[c];
  k->const_term.p[c] = TARN_NONE - 1;
  tarn_term best = TARN_NONE;
  uint32_t cls = k->cls.p[c].cls;
  for (int leaf = 1; leaf >= 0 && best == TARN_NONE; leaf--)
    for (uint32_t n = kg_next_node(k, cls, TARN_NONE); n != TARN_NONE && best == TARN_NONE;
         n = kg_next_node(k, cls, n)) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      bool fresh;
      if ((e.n == 0) != (bool)leaf || e.op == TARN_OP_PLACE) continue;
      best = constant_node(k, n);
      if (best != TARN_NONE) *tarn_map_at(k->pick, tarn_eg_find(k->g, cls), &fresh) = n + 1;
    }
  k->const_term.p[c] = best;
  return best;
}

/* Not, where an input stands for a constant of several layers. */
static bool has_values(const kgraph *k, tarn_term t, tarn_map *seen) {
  const tarn_node *x = tarn_term_get(k->L, t);
  bool has = x->op != TARN_OP_INPUT, fresh;
  tarn_map_at(seen, t, &fresh);
  for (uint32_t i = 0; fresh && has && i < x->n; i++) has = has_values(k, x->kid[i], seen);
  return has;
}
const float *kg_numbers(kgraph *k, tarn_term t, const tarn_layout *l) {
  bool fresh;
  if (!has_values(k, t, tarn_map_new(k->cx))) return NULL;
  uint64_t key =
      tarn_hash_mix(tarn_hash_bytes(l->stride, l->n * sizeof *l->stride, t), (uint64_t)l->block);
  uint64_t *at = tarn_map_at(k->numbers, key, &fresh);
  if (!fresh) return (const float *)(uintptr_t)*at;
  tarn_tensor *v;
  tarn_eval(k->L, &t, 1, NULL, 0, TARN_STRICT, NULL, &v);
  float *out = TARN_ARRAY(k->cx, float, tarn_layout_elems(l));
  tarn_plan_const_lay_out(l, v, (char *)out);
  *at = (uint64_t)(uintptr_t)out;
  return out;
}
/* ---- in the order in which loops walk them ---- */
/* Own dims along which the result is written contiguously, the innermost first: more than one where
 * every other operand goes on alike, so that they become one loop once the constants do too. */
typedef struct inner_dims {
  uint32_t mask, n, dim[TARN_MAX_DIMS];
} inner_dims;
static void own_steps(const knest *w, const knest_stage *s, int64_t *stride, int64_t *dim) {
  if (s->s.out) {
    memcpy(stride, s->out.stride, sizeof s->out.stride);
    memcpy(dim, s->out.dim, sizeof s->out.dim);
    return;
  }
  int64_t step = 1; /* a local buffer lies in row-major order */
  for (uint32_t d = s->s.nown; d-- > 0; step *= s->s.own[d])
    stride[w->depth + d] = step, dim[w->depth + d] = s->s.own[d];
}
static bool is_const(const kcand *c, const knest_read *r) {
  return !r->stage && !r->row.by && c->child[r->src] == TARN_NONE;
}
static bool goes_on(const knest *w, const kcand *c, const knest_stage *s, uint32_t inner,
                    uint32_t d, int64_t extent) {
  for (uint32_t j = 0; j < s->nread; j++) {
    const knest_read *r = &s->read[j];
    int64_t step[TARN_MAX_DIMS] = {0};
    if (is_const(c, r)) continue;
    if (r->stage || imap_guarded(w->L, &r->m) & (1u << inner | 1u << d)) return false;
    imap_steps(w->L, &r->m, &w->in[r->src], step);
    if (step[d] != step[inner] * extent) return false;
  }
  return true;
}
static inner_dims written_last(const knest *w, const kcand *c, const knest_stage *s) {
  inner_dims l = {0};
  int64_t stride[TARN_MAX_DIMS] = {0}, dim[TARN_MAX_DIMS] = {0}, step = 1;
  own_steps(w, s, stride, dim);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t d = 0; d < knest_acc(w, s) && !more; d++)
      if (dim[d] > 1 && stride[d] == step && !(l.mask >> d & 1) &&
          (!l.n || goes_on(w, c, s, l.dim[l.n - 1], d, dim[l.dim[l.n - 1]])))
        l.dim[l.n++] = d, l.mask |= 1u << d, step *= dim[d], more = true;
  }
  return l;
}
/* The dims that a constant is to lie along, the outermost first: own dims, then reduce dims by
 * falling step of the other operands, then the own dims along which the result is written
 * contiguously. Their number. */
static uint32_t packed_order(const tarn_imap *m, uint32_t mask, uint32_t nacc, const int64_t *key,
                             const inner_dims *last, uint32_t *by) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < nacc && d < m->n; d++)
    if ((mask & ~last->mask) >> d & 1) by[n++] = d;
  uint32_t first = n;
  for (uint32_t d = nacc; d < m->n; d++) {
    if (!(mask >> d & 1)) continue;
    uint32_t at = n++;
    for (; at > first && key[by[at - 1]] < key[d]; at--) by[at] = by[at - 1];
    by[at] = d;
  }
  for (uint32_t i = last->n; i-- > 0;)
    if (mask >> last->dim[i] & 1) by[n++] = last->dim[i];
  return n;
}
/* Would a constant with one dim for each of these take much more room? */
static bool much_larger(const tarn_imap *m, uint32_t mask) {
  double have = 1, want = 1;
  for (uint32_t a = 0; a < m->nin; a++) have *= (double)m->in[a];
  for (uint32_t d = 0; d < m->n; d++)
    if (mask >> d & 1) want *= (double)m->dim[d];
  return want > 4 * have;
}
/* Constants are copied at compile time into the order in which the loops will walk them: one dim
 * for each dim of the iteration space that the read depends on. */
static void pack_read(kgraph *k, knest *w, kcand *c, const knest_stage *s, knest_read *r,
                      const int64_t *key, const inner_dims *last) {
  uint32_t mask = imap_dims(k->L, &r->m) | imap_guarded(k->L, &r->m), by[TARN_MAX_DIMS];
  if (much_larger(&r->m, mask) || w->nin == KG_MAX_KIDS) return;
  uint32_t n = packed_order(&r->m, mask, knest_acc(w, s), key, last, by), sub[TARN_MAX_DIMS];
  tarn_imap pack = r->m, pick = {.ns = r->m.ns, .n = r->m.n, .fill = TARN_NONE};
  int64_t dim[TARN_MAX_DIMS] = {0};
  for (uint32_t i = 0; i < n; i++) dim[i] = r->m.dim[by[i]];
  for (uint32_t d = 0; d < r->m.n; d++) sub[d] = tarn_ix_const(k->L, 0);
  for (uint32_t i = 0; i < n; i++) sub[by[i]] = tarn_ix_var(k->L, i, dim);
  imap_subst(k->L, &pack, sub, n, dim);
  memcpy(pick.dim, r->m.dim, sizeof pick.dim);
  memcpy(pick.in, dim, sizeof pick.in);
  pick.nin = (uint8_t)n;
  for (uint32_t i = 0; i < n; i++) pick.e[i] = tarn_ix_var(k->L, by[i], pick.dim);
  tarn_dtype type = tarn_term_type(k->L, c->cterm[r->src])->dtype;
  tarn_layout row = kg_family_layout(k, type, n, dim);
  uint32_t j = knest_add_child(w, &row);
  c->cterm[j] = tarn_view(k->L, tarn_map_intern_derived(k->L, &pack), c->cterm[r->src]);
  c->child[j] = TARN_NONE;
  r->src = j, r->m = pick;
}
/* The largest own dim that the constants of a product go along; UINT32_MAX where they go along what
 * is written last. */
static uint32_t constants_along(const knest *w, const kcand *c, const knest_stage *s,
                                const inner_dims *last) {
  uint32_t mask = 0, best = UINT32_MAX;
  int64_t dim[TARN_MAX_DIMS + 2];
  knest_dims(w, s, dim);
  if (!s->s.nred) return best;
  for (uint32_t j = 0; j < s->nread; j++)
    if (is_const(c, &s->read[j]) && !s->read[j].epi) mask |= imap_dims(w->L, &s->read[j].m);
  for (uint32_t d = w->depth; d < knest_acc(w, s) && !(mask & last->mask); d++)
    if ((mask >> d & 1) && dim[d] > 1 && (best == UINT32_MAX || dim[d] > dim[best])) best = d;
  return best;
}
/* How far the variable operands of the body go along each dim, guarded ones before all. */
static void order_keys(const knest *w, const kcand *c, const knest_stage *s, int64_t *key) {
  uint32_t guarded = 0;
  int64_t step[TARN_MAX_DIMS];
  for (uint32_t j = 0; j < s->nread; j++) {
    const knest_read *r = &s->read[j];
    if (r->stage || r->epi || is_const(c, r)) continue;
    imap_steps(w->L, &r->m, &w->in[r->src], step);
    guarded |= imap_guarded(w->L, &r->m);
    for (uint32_t d = 0; d < r->m.n; d++) key[d] = tarn_max(key[d], llabs(step[d]));
  }
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++)
    if (guarded >> d & 1) key[d] += KNEST_GUARDED;
}
static bool pack_stage(kgraph *k, knest *w, kcand *c, knest_stage *s, kg_order how) {
  int64_t key[TARN_MAX_DIMS] = {0};
  inner_dims last = written_last(w, c, s);
  if (how == KG_SUMMED) last = (inner_dims){0};
  if (how == KG_ACROSS) {
    uint32_t own = constants_along(w, c, s, &last);
    if (own == UINT32_MAX) return false;
    last = (inner_dims){.mask = 1u << own, .n = 1, .dim = {own}};
  }
  order_keys(w, c, s, key);
  for (uint32_t j = 0; j < s->nread; j++)
    if (is_const(c, &s->read[j])) pack_read(k, w, c, s, &s->read[j], key, &last);
  return true;
}
bool kg_pack_constants(kgraph *k, knest *w, kcand *c, kg_order how) {
  uint32_t to[TARN_MAX_OPERANDS];
  if (how && w->nstage > 1) return false;
  for (uint32_t i = 0; i < w->nstage; i++)
    if (!pack_stage(k, w, c, &w->stage[i], how)) return false;
  uint32_t n = w->nin;
  knest_drop_children(w, to);
  for (uint32_t j = 0; j < n; j++)
    if (to[j] != TARN_NONE) c->child[to[j]] = c->child[j], c->cterm[to[j]] = c->cterm[j];
  return true;
}
