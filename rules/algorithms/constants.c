/* Builders of the constants family: they move what depends on constants alone out of the kernel. In
 * C because they do so for all parts of a nest of any number of stages at once.
 *
 * literals   a tensor whose elements are all one value becomes a number in the expression
 * hoist      a subexpression of constants becomes a tensor of its own, computed at compile time */
#include "rules/algorithms/build.h"
#include <string.h>

/* ---------------------------------------------------------------- literals */

static bool literal_read(rsite *s, const kern *k, const tarn_read *r, uint32_t *with) {
  if (r->stage) return false;
  uint32_t u = s->e->host->uniform(s->e->host->user, k->leaf[r->src]);
  const tarn_imap *m = tarn_imap_get(k->L, r->map);
  if (u == TARN_NONE || (m->nguard && m->fill != u)) return false;
  *with = u;
  return true;
}

uint32_t build_literals(rsite *s) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++) {
    kstage *st = &k.stage[i];
    uint32_t with[K_READS + 1];
    for (uint32_t r = 0; r < st->nb; r++) {
      with[r] = TARN_NONE;
      any |= literal_read(s, &k, &st->read[r], &with[r]);
    }
    st->body = tarn_fx_subst(k.L, st->body, with, st->nb);
    with[0] = TARN_NONE;
    for (uint32_t r = 0; r < st->ne; r++) {
      with[r + 1] = TARN_NONE;
      any |= literal_read(s, &k, &st->read[st->nb + r], &with[r + 1]);
    }
    if (st->epi != TARN_NONE) st->epi = tarn_fx_subst(k.L, st->epi, with, st->ne + 1);
  }
  return any ? kern_store(&k) : TARN_NONE;
}

/* ---------------------------------------------------------------- tensors of constants */

static uint32_t loops_of(uint32_t set, uint32_t *axis) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < TARN_MAX_DIMS; i++)
    if (set >> i & 1) axis[n++] = i;
  return n;
}

static int64_t extent_of(const int64_t *dim, const uint32_t *axis, uint32_t n) {
  int64_t p = 1;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_mul_overflow(p, dim[axis[i]], &p)) return INT64_MAX;
  return p;
}

/* ---------------------------------------------------------------- hoist */

typedef struct part { /* body or epilogue of a stage */
  kern *k;
  kstage *st;
  bool body;
  uint32_t ndim;
  int64_t dim[2 * TARN_MAX_DIMS];
  fxwalk w;
  bool constant[K_FX]; /* by walk number: of constants only, with a hole */
  bool free[K_FX];     /* of nothing: a literal */
  uint32_t loops[K_FX];
} part;

static const tarn_read *part_read(const part *p, uint32_t hole) {
  if (p->body) return &p->st->read[hole];
  return hole == 0 ? NULL : &p->st->read[p->st->nb + hole - 1];
}

static uint32_t walk_index(const fxwalk *w, uint32_t id) {
  uint32_t i = 0;
  while (w->id[i] != id) i++;
  return i;
}

static void classify(rsite *s, part *p) {
  for (uint32_t i = 0; i < p->w.n; i++) {
    const tarn_fx *x = tarn_fx_get(p->k->L, p->w.id[i]);
    bool hole = x->op == TARN_FX_HOLE, all = true, some = false;
    const tarn_read *r = hole ? part_read(p, x->hole) : NULL;
    p->loops[i] = r ? map_uses(p->k->L, r->map) : 0;
    for (uint32_t a = 0; a < tarn_fx_arity(x->op); a++) {
      uint32_t j = walk_index(&p->w, x->kid[a]);
      p->loops[i] |= p->loops[j];
      all &= p->constant[j] || p->free[j];
      some |= p->constant[j];
    }
    p->free[i] = !hole && all && !some;
    p->constant[i] = hole ? r && !r->stage && site_const(s, p->k->leaf[r->src]) : all && some;
  }
}

/* Is the body a product of widened bytes, or of bf16? What sums those reads them as they are
 * (integers.c, narrow.c). */
static bool of_narrow(const kern *k, const kstage *st) {
  const tarn_fx *x = tarn_fx_get(k->L, st->body);
  if (x->op != TARN_FX_MUL || st->reducer == TARN_NONE) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const tarn_fx *c = tarn_fx_get(k->L, x->kid[i]),
                  *h = c->op == TARN_FX_CAST ? tarn_fx_get(k->L, c->kid[0]) : c;
    if (c->op != TARN_FX_CAST || h->op != TARN_FX_HOLE || st->read[h->hole].stage) return false;
    tarn_dtype t = kern_leaf_type(k, st->read[h->hole].src)->dtype;
    bool bytes = c->dtype == TARN_I32 && (t == TARN_I8 || t == TARN_U8);
    if (!bytes && (c->dtype != TARN_F32 || t != TARN_BF16)) return false;
  }
  return true;
}
/* Worth a tensor of its own: it computes something, some user of it is not constant, and it is not
 * much larger than what it is made of. */
static bool worth(const part *p, uint32_t i) {
  const tarn_fx *x = tarn_fx_get(p->k->L, p->w.id[i]);
  if (p->body && of_narrow(p->k, p->st)) return false;
  uint32_t axis[TARN_MAX_DIMS], n = loops_of(p->loops[i], axis);
  if (!p->constant[i] || x->op == TARN_FX_HOLE) return false;
  bool top = i == p->w.n - 1;
  for (uint32_t j = i + 1; j < p->w.n; j++) {
    const tarn_fx *y = tarn_fx_get(p->k->L, p->w.id[j]);
    for (uint32_t a = 0; a < tarn_fx_arity(y->op); a++)
      top |= y->kid[a] == p->w.id[i] && !p->constant[j];
  }
  int64_t most = 1024, size;
  for (uint32_t r = 0; r < p->st->nb + p->st->ne; r++)
    if (!p->st->read[r].stage &&
        (size = tarn_type_count(kern_leaf_type(p->k, p->st->read[r].src)) * 4) > most)
      most = size;
  return top && extent_of(p->dim, axis, n) <= most;
}

/* The constant tensor of node i, and a read of it. */
static bool hoist_node(part *p, uint32_t i, uint32_t *hole) {
  kern *k = p->k;
  fxwalk w;
  tarn_read read[K_READS];
  uint32_t with[K_READS + 1], axis[TARN_MAX_DIMS], n = 0, naxis = loops_of(p->loops[i], axis);
  if (!fx_walk(k->L, p->w.id[i], &w)) return false;
  for (uint32_t j = 0; j < K_READS + 1; j++) with[j] = TARN_NONE;
  for (uint32_t j = 0; j < w.n; j++) {
    const tarn_fx *x = tarn_fx_get(k->L, w.id[j]);
    if (x->op != TARN_FX_HOLE) continue;
    with[x->hole] = tarn_fx_hole(k->L, n);
    read[n++] = *part_read(p, x->hole);
  }
  uint32_t f = tarn_fx_subst(k->L, p->w.id[i], with, K_READS + 1);
  uint32_t c = kern_part(k, p->dim, p->ndim, axis, naxis, f, read, n);
  uint32_t leaf = c == TARN_NONE ? c : kern_leaf(k, c);
  if (leaf == TARN_NONE) return false;
  tarn_read r = {false, leaf, map_project(k->L, p->dim, p->ndim, axis, naxis)};
  uint32_t at = kern_add_read(p->st, p->body, r);
  *hole = at == TARN_NONE ? at : tarn_fx_hole(k->L, at + !p->body);
  return at != TARN_NONE;
}

static bool hoist_part(rsite *s, kern *k, kstage *st, bool body, bool *any) {
  uint32_t *f = body ? &st->body : &st->epi, node[K_READS], with[K_READS], n = 0;
  part p = {.k = k, .st = st, .body = body};
  if (*f == TARN_NONE) return true;
  if (!fx_walk(k->L, *f, &p.w)) return false;
  p.ndim = kern_dims(k, st, body, p.dim);
  classify(s, &p);
  for (uint32_t i = 0; i < p.w.n && n < K_READS; i++) {
    if (!worth(&p, i)) continue;
    if (!hoist_node(&p, i, &with[n])) return false;
    node[n++] = p.w.id[i];
  }
  if (n == 0) return true;
  *any = true;
  *f = fx_replace(k->L, *f, node, with, n);
  return *f != TARN_NONE;
}

/* Maps whose children may still be inlined wait until they are. */
bool when_hoist(rsite *s) {
  if (s->root != TARN_NONE && site_const(s, s->root)) return false;
  bool all = true;
  for (uint32_t i = 0; i < s->n; i++) all &= site_const(s, s->kid[i].id);
  return !all;
}

uint32_t build_hoist(rsite *s) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++)
    if (!hoist_part(s, &k, &k.stage[i], true, &any) || !hoist_part(s, &k, &k.stage[i], false, &any))
      return TARN_NONE;
  return any ? kern_store(&k) : TARN_NONE;
}
