/* A sum of products over shifted views of the same tensors is one product with more reduce loops
 * (R71, and R30 from right to left): a convolution that was written as slices, matrix products and
 * additions becomes one.
 *
 * The shifts must form a grid: base + Σ a_g · step_g, 0 <= a_g < extent_g.  The grid's loops are
 * new reduce loops; a constant operand that is no such grid is stacked.  That the new map
 * restricted to each point of the grid is the map it came from is checked on normal forms, guards
 * included. In C because the terms are nests of their own, of any number, whose shifts have to be
 * found to form a grid. */
#include "rules/algorithms/build.h"
#include <string.h>

typedef struct taps {
  grid g;
  uint32_t n;
  kern k[1]; /* the first: all have one form, only reads differ */
  uint32_t hole[R_TAPS], nread;
  uint32_t map[K_TERM_OPERANDS][R_TAPS],
      leaf[K_TERM_OPERANDS][R_TAPS]; /* by operand and tap; leaf: ids */
} taps;

/* ---------------------------------------------------------------- the terms of a sum */

/* Takes the terms that are products of one form, read through one map; the others go to rest. */
static bool collect(rsite *s, const kern *k, const uint32_t *term, uint32_t n, taps *t,
                    uint32_t *rest, uint32_t *nrest) {
  const kstage *st = &k->stage[0];
  uint32_t map = TARN_NONE;
  *nrest = 0;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_fx *x = tarn_fx_get(k->L, term[i]);
    const tarn_read *r = x->op == TARN_FX_HOLE ? &st->read[x->hole] : NULL;
    kern p;
    bool fits = r && !r->stage && (map == TARN_NONE || map == r->map) &&
                !site_const(s, k->leaf[r->src]) && site_open(s, r->src, &p, is_sum_of_products) &&
                (t->n == 0 || same_form(&t->k[0], &p));
    for (uint32_t j = 0; fits && j < t->n; j++)
      if (t->hole[j] == term[i]) return false; /* twice the same product */
    if (!fits) {
      rest[(*nrest)++] = term[i];
      continue;
    }
    map = r->map;
    if (t->n == 0) t->k[0] = p;
    t->nread = p.stage[0].nb;
    for (uint32_t j = 0; j < p.stage[0].nb; j++) {
      t->map[j][t->n] = p.stage[0].read[j].map;
      t->leaf[j][t->n] = p.leaf[p.stage[0].read[j].src];
    }
    t->hole[t->n++] = term[i];
  }
  return t->n > 1;
}

/* ---------------------------------------------------------------- operands over the grid */

static bool one_leaf(const taps *t, uint32_t j) {
  for (uint32_t i = 1; i < t->n; i++)
    if (t->leaf[j][i] != t->leaf[j][0]) return false;
  return true;
}

/* The constants of the taps one after the other, over the loops that any of them uses. */
static uint32_t stack(rsite *s, const taps *t, uint32_t j, const uint32_t *tap,
                      const uint32_t *axis, uint32_t naxis, const int64_t *dim, uint32_t ndim) {
  tarn_lang *L = t->g.L;
  uint32_t part[R_TAPS];
  int64_t one[TARN_MAX_DIMS + 1] = {1};
  for (uint32_t a = 0; a < naxis; a++) one[a + 1] = dim[axis[a]];
  for (uint32_t i = 0; i < t->n; i++) {
    tarn_imap m =
        *tarn_imap_get(L, map_embed(L, dim, ndim, axis, naxis)); /* with a loop of 1 in front */
    memcpy(m.dim, one, (naxis + 1) * sizeof *one);
    m.n = m.ns = (uint8_t)(naxis + 1);
    for (uint32_t a = 0; a < naxis; a++) m.e[axis[a]] = tarn_ix_var(L, a + 1, m.dim);
    uint32_t map = tarn_map_compose(L, tarn_map_intern(L, &m), t->map[j][tap[i]]);
    if (map == TARN_NONE) return TARN_NONE;
    part[i] = seen_as(s, t->leaf[j][tap[i]], map);
    if (part[i] == TARN_NONE) return TARN_NONE;
  }
  return site_concat(s, 0, part, t->n);
}

static bool stacked_read(rsite *s, kern *d, const taps *t, uint32_t j, const uint32_t *tap,
                         tarn_read *out) {
  tarn_lang *L = t->g.L;
  const tarn_imap *m = tarn_imap_get(L, t->map[j][0]);
  uint32_t used = 0, axis[TARN_MAX_DIMS], naxis = 0;
  tarn_imap w;
  for (uint32_t i = 0; i < t->n; i++) {
    if (!site_const(s, t->leaf[j][i])) return false;
    used |= map_uses(L, t->map[j][i]);
  }
  for (uint32_t a = 0; a < m->n; a++)
    if (used >> a & 1) axis[naxis++] = a;
  if (!grid_wider(&t->g, m, &w) || naxis + 1 > TARN_MAX_DIMS) return false;
  uint32_t all = stack(s, t, j, tap, axis, naxis, m->dim, m->n);
  if (all == TARN_NONE || (out->src = kern_leaf(d, all)) == TARN_NONE) return false;
  w.nguard = 0, w.fill = TARN_NONE, w.nin = (uint8_t)(naxis + 1);
  w.in[0] = t->n;
  w.e[0] = tarn_ix_const(L, 0);
  for (uint32_t g = 0; g < t->g.ngrid; g++) {
    w.e[0] = tarn_ix_scale(L, w.e[0], t->g.extent[g], w.dim);
    w.e[0] = tarn_ix_add(L, w.e[0], tarn_ix_var(L, m->n + g, w.dim), w.dim);
  }
  for (uint32_t a = 0; a < naxis; a++)
    w.in[a + 1] = m->dim[axis[a]], w.e[a + 1] = tarn_ix_var(L, axis[a], w.dim);
  out->map = tarn_map_intern(L, &w);
  return true;
}

/* ---------------------------------------------------------------- the product */

static uint32_t merged(rsite *s, taps *t) {
  uint32_t tap[R_TAPS], primary = TARN_NONE;
  for (uint32_t j = 0; j < t->nread && primary == TARN_NONE; j++)
    if (!site_const(s, t->leaf[j][0]) && one_leaf(t, j) && grid_find(&t->g, t->map[j], t->n))
      primary = j;
  if (primary == TARN_NONE || !grid_order(&t->g, tap)) return TARN_NONE;
  kern d = t->k[0];
  kstage *st = &d.stage[0];
  d.nleaf = 0;
  for (uint32_t j = 0; j < t->nread; j++) {
    uint32_t map = one_leaf(t, j) ? grid_map(&t->g, t->map[j], tap[0]) : TARN_NONE;
    tarn_read r = {.map = map};
    if (map != TARN_NONE) r.src = kern_leaf(&d, t->leaf[j][0]);
    else if (!stacked_read(s, &d, t, j, tap, &r)) return TARN_NONE;
    if (r.src == TARN_NONE) return TARN_NONE;
    st->read[j] = r;
  }
  if (st->nown + st->nred + t->g.ngrid > TARN_MAX_DIMS) return TARN_NONE;
  for (uint32_t g = 0; g < t->g.ngrid; g++) st->red[st->nred++] = t->g.extent[g];
  return kern_store(&d);
}

bool when_sum(rsite *s) {
  uint32_t products = 0;
  for (uint32_t i = 0; i < s->n; i++)
    if (!site_const(s, s->kid[i].id)) products += (site_facts(s, s->kid[i].id) & R_HAS_RED) != 0;
  return products > 1;
}

/* The largest sums in the expression that hold at least two such products: the first one found. */
uint32_t build_sum(rsite *s) {
  kern k;
  fxwalk w;
  uint32_t term[R_TAPS], rest[R_TAPS], n, nrest;
  if (!site_root(s, &k) || !kern_is_map(&k) || !fx_walk(k.L, k.stage[0].body, &w)) return TARN_NONE;
  taps *t = TARN_NEW(tarn_lang_ctx(k.L), taps);
  kstage *st = &k.stage[0];
  for (uint32_t i = w.n; i-- > 0;) {
    if (tarn_fx_get(k.L, w.id[i])->op != TARN_FX_ADD) continue;
    n = 0, t->n = 0, t->g.L = k.L;
    if (!sum_terms(k.L, w.id[i], term, &n) || !collect(s, &k, term, n, t, rest, &nrest)) continue;
    uint32_t map = st->read[tarn_fx_get(k.L, t->hole[0])->hole].map, d = merged(s, t);
    uint32_t leaf = d == TARN_NONE ? d : kern_leaf(&k, d);
    if (leaf == TARN_NONE) continue;
    uint32_t at = kern_add_read(st, true, (tarn_read){.src = leaf, .map = map});
    if (at == TARN_NONE) return TARN_NONE;
    uint32_t now = tarn_fx_hole(k.L, at);
    for (uint32_t r = 0; r < nrest; r++) now = tarn_fx_op(k.L, TARN_FX_ADD, now, rest[r], 0);
    st->body = fx_replace(k.L, st->body, &w.id[i], &now, 1);
    return st->body == TARN_NONE ? TARN_NONE : kern_store(&k);
  }
  return TARN_NONE;
}
