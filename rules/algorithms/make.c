/* Makes new nests: see make.h. */
#include "rules/algorithms/make.h"
#include <string.h>

uint32_t space_loop(space *s, int64_t extent) {
  s->dim[s->n] = extent;
  return s->n++;
}
uint32_t space_var(const space *s, uint32_t i) { return tarn_ix_var(s->L, i, s->dim); }
uint32_t space_scaled(const space *s, int64_t k, uint32_t i, uint32_t j) {
  return tarn_ix_add(s->L, tarn_ix_scale(s->L, space_var(s, i), k, s->dim), space_var(s, j),
                     s->dim);
}

uint32_t space_map(const space *s, uint32_t n, const int64_t *in, const uint32_t *e) {
  tarn_imap m = {.n = (uint8_t)s->n, .ns = (uint8_t)s->n, .nin = (uint8_t)n, .fill = TARN_NONE};
  memcpy(m.dim, s->dim, s->n * sizeof *s->dim);
  memcpy(m.in, in, n * sizeof *in);
  memcpy(m.e, e, n * sizeof *e);
  return tarn_map_intern(s->L, &m);
}

uint32_t space_move(const space *s, const moved *v, uint32_t map, tarn_dtype t) {
  tarn_imap m = *tarn_imap_get(s->L, map);
  uint32_t uses = map_uses(s->L, map);
  imap_subst(s->L, &m, v->sub, s->n, s->dim);
  for (uint32_t i = 0; i < v->nend; i++) {
    if (!(uses >> v->which[i] & 1)) continue;
    if (m.nguard == TARN_MAX_DIMS) return TARN_NONE;
    if (m.nguard == 0) m.fill = tarn_fx_const(s->L, t, 0);
    m.guard[m.nguard++] = (tarn_guard){v->sub[v->which[i]], 0, v->end[i]};
  }
  return tarn_map_intern_derived(s->L, &m);
}

kern *make_kern(renv *e, const space *shared) {
  kern *k = TARN_NEW(tarn_lang_ctx(e->L), kern);
  k->host = &e->host->nest, k->L = e->L, k->depth = shared->n;
  memcpy(k->shared, shared->dim, shared->n * sizeof *shared->dim);
  return k;
}
kstage *make_stage(kern *k, const space *s, uint32_t n, uint32_t nred) {
  kstage *st = &k->stage[k->nstage++];
  st->nown = s->n - k->depth - nred, st->nred = nred;
  memcpy(st->own, s->dim + k->depth, st->nown * sizeof *st->own);
  memcpy(st->red, s->dim + s->n - nred, nred * sizeof *st->red);
  st->body = tarn_fx_hole(k->L, 0);
  for (uint32_t i = 1; i < n; i++)
    st->body = tarn_fx_op(k->L, TARN_FX_MUL, st->body, tarn_fx_hole(k->L, i), 0);
  st->reducer = tarn_reducer_of(k->L, TARN_RED_SUM, TARN_F32);
  st->epi = st->space = TARN_NONE;
  return st;
}
bool make_read(kern *k, kstage *st, uint32_t id, uint32_t map) {
  uint32_t leaf = id == TARN_NONE || map == TARN_NONE ? TARN_NONE : kern_leaf(k, id);
  return leaf != TARN_NONE && kern_add_read(st, true, (tarn_read){false, leaf, map}) != TARN_NONE;
}
bool make_read_stage(kstage *st, uint32_t stage, uint32_t map) {
  return kern_add_read(st, true, (tarn_read){true, stage, map}) != TARN_NONE;
}

bool make_epilogue(kern *k, kstage *st, const kern *was, const space *s, const moved *v) {
  const kstage *of = &was->stage[0];
  st->epi = of->epi;
  for (uint32_t i = 0; i < of->ne; i++) {
    const tarn_read *x = &of->read[of->nb + i];
    uint32_t leaf = kern_leaf(k, was->leaf[x->src]);
    uint32_t map = v ? space_move(s, v, x->map, kern_leaf_type(was, x->src)->dtype) : x->map;
    if (leaf == TARN_NONE || map == TARN_NONE ||
        kern_add_read(st, false, (tarn_read){false, leaf, map}) == TARN_NONE)
      return false;
  }
  return true;
}
uint32_t make_result(kern *k) {
  kstage *st = kern_last(k);
  st->out = true, k->out_ns = k->depth + st->nown;
  return kern_store(k);
}

uint32_t make_tensor(rsite *s, const char *name, const double *v, uint32_t n, const int64_t *dim) {
  const rhost *h = s->e->host;
  tarn_lang *L = s->e->L;
  tarn_tensor *t = tarn_tensor_new(tarn_lang_ctx(L), TARN_F32, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(t); i++) tarn_tensor_set(t, i, (tarn_value){.d = v[i]});
  tarn_payload p = {.kind = TARN_P_CONST,
                    .name = name,
                    .type = tarn_type_tensor(L, TARN_F32, n, n, dim),
                    .tensor = t};
  return h->nest.mk(h->nest.user, TARN_OP_CONST, tarn_payload_intern(L, &p), NULL, 0);
}
bool make_numbers(rsite *s, kern *k, kstage *st, const char *name, const double *v, uint32_t n,
                  const int64_t *dim, const space *over, const uint32_t *at) {
  uint32_t e[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) e[i] = space_var(over, at[i]);
  return make_read(k, st, make_tensor(s, name, v, n, dim), space_map(over, n, dim, e));
}

bool site_weights(const rsite *s, const kern *k, uint32_t *data, uint32_t *weight) {
  const kstage *st = &k->stage[0];
  if (st->reducer == TARN_NONE || st->nb != 2) return false;
  const tarn_reducer *r = tarn_reducer_get(k->L, st->reducer);
  const tarn_fx *x = tarn_fx_get(k->L, st->body);
  if (r->kind != TARN_RED_SUM || r->dtype != TARN_F32 || x->op != TARN_FX_MUL) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (tarn_fx_get(k->L, x->kid[i])->op != TARN_FX_HOLE || st->read[i].stage ||
        kern_leaf_type(k, st->read[i].src)->dtype != TARN_F32)
      return false;
  if (x->kid[0] == x->kid[1]) return false;
  *weight = site_const(s, k->leaf[st->read[0].src]) ? 0 : 1;
  *data = 1 - *weight;
  return site_const(s, k->leaf[st->read[*weight].src]) &&
         !site_const(s, k->leaf[st->read[*data].src]);
}
