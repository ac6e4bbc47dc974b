/* A sum of products over shifted views of the same tensors is one product with more reduce loops (R71, and R30 from
 * right to left): a convolution that was written as slices, matrix products and additions becomes one.
 *
 * The shifts must form a grid: base + Σ a_g · step_g, 0 <= a_g < extent_g.  The grid's loops are new reduce loops; a
 * constant operand that is no such grid is stacked.  That the new map restricted to each point of the grid is the map it
 * came from is checked on normal forms, guards included. */
#include "rules/build.h"
#include <string.h>

enum { TAPS = 64, GRID = 4 };

typedef struct taps {
  renv *e;
  tarn_lang *L;
  uint32_t n;
  kern k[1]; /* the first: all have one form, only reads differ */
  uint32_t hole[TAPS];
  uint32_t nread;
  tarn_read read[TAPS][4];
  uint32_t leaf[TAPS][4]; /* ids */
  int64_t at[TAPS][GRID]; /* coordinates in the grid */
  uint32_t ngrid;
  int64_t extent[GRID];
} taps;

static bool is_product(const kern *k) {
  const kstage *s = &k->stage[0];
  if (k->nstage != 1 || s->reducer == TARN_NONE || s->epi != TARN_NONE || s->nb > 4) return false;
  for (uint32_t r = 0; r < s->nb; r++)
    if (s->read[r].stage) return false;
  return tarn_reducer_get(k->L, s->reducer)->kind == TARN_RED_SUM;
}

static bool same_form(const kern *a, const kern *b) {
  const kstage *x = &a->stage[0], *y = &b->stage[0];
  return x->body == y->body && x->reducer == y->reducer && x->nb == y->nb && x->nown == y->nown && x->nred == y->nred &&
         memcmp(x->own, y->own, x->nown * sizeof *x->own) == 0 && memcmp(x->red, y->red, x->nred * sizeof *x->red) == 0;
}

/* ---------------------------------------------------------------- the terms of a sum */

static bool flatten(const tarn_lang *L, uint32_t f, uint32_t *term, uint32_t *n) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->op == TARN_FX_ADD) return flatten(L, x->kid[0], term, n) && flatten(L, x->kid[1], term, n);
  if (*n == TAPS) return false;
  term[(*n)++] = f;
  return true;
}

/* Takes the terms that are products of one form, read through one map; the others go to rest. */
static bool collect(rsite *s, const kern *k, const uint32_t *term, uint32_t n, taps *t, uint32_t *rest, uint32_t *nrest) {
  const kstage *st = &k->stage[0];
  uint32_t map = TARN_NONE;
  *nrest = 0;
  for (uint32_t i = 0; i < n; i++) {
    const tarn_fx *x = tarn_fx_get(k->L, term[i]);
    const tarn_read *r = x->op == TARN_FX_HOLE ? &st->read[x->hole] : NULL;
    kern p;
    bool fits = r && !r->stage && (map == TARN_NONE || map == r->map) && !site_const(s, k->leaf[r->src]) &&
                site_open(s, r->src, &p, is_product) && (t->n == 0 || same_form(&t->k[0], &p));
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
      t->read[t->n][j] = p.stage[0].read[j];
      t->leaf[t->n][j] = p.leaf[p.stage[0].read[j].src];
    }
    t->hole[t->n++] = term[i];
  }
  return t->n > 1;
}

/* ---------------------------------------------------------------- the grid */

/* Shift of tap i's read j against tap 0's, dim by dim; false when it is not constant. */
static bool shift_of(const taps *t, uint32_t i, uint32_t j, int64_t *d) {
  const tarn_imap *a = tarn_imap_get(t->L, t->read[0][j].map), *b = tarn_imap_get(t->L, t->read[i][j].map);
  if (t->leaf[0][j] != t->leaf[i][j]) return false;
  for (uint32_t x = 0; x < a->nin; x++) {
    uint32_t e = tarn_ix_add(t->L, b->e[x], tarn_ix_scale(t->L, a->e[x], -1, a->dim), a->dim);
    const tarn_ix *v = tarn_ix_get(t->L, e);
    if (v->n) return false;
    d[x] = v->c;
  }
  return true;
}

static bool sorted_insert(int64_t *v, uint32_t *n, int64_t x) {
  uint32_t i = 0;
  while (i < *n && v[i] < x) i++;
  if (i < *n && v[i] == x) return true;
  if (*n == TAPS) return false;
  memmove(v + i + 1, v + i, (*n - i) * sizeof *v);
  v[i] = x;
  (*n)++;
  return true;
}

/* One grid loop for each dim along which the shifts of read j differ; they must be evenly spaced and all there. */
static bool find_grid(taps *t, uint32_t j) {
  int64_t d[TAPS][TARN_MAX_DIMS], value[TAPS], total = 1;
  uint32_t nin = tarn_imap_get(t->L, t->read[0][j].map)->nin;
  for (uint32_t i = 0; i < t->n; i++)
    if (!shift_of(t, i, j, d[i])) return false;
  t->ngrid = 0;
  for (uint32_t x = 0; x < nin; x++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
      if (!sorted_insert(value, &n, d[i][x])) return false;
    if (n == 1) continue;
    int64_t step = value[1] - value[0];
    for (uint32_t v = 2; v < n; v++)
      if (value[v] - value[v - 1] != step) return false;
    if (t->ngrid == GRID) return false;
    for (uint32_t i = 0; i < t->n; i++) t->at[i][t->ngrid] = (d[i][x] - value[0]) / step;
    t->extent[t->ngrid++] = n;
    total *= n;
  }
  return total == t->n && t->ngrid > 0;
}

static int64_t flat_at(const taps *t, uint32_t i) {
  int64_t f = 0;
  for (uint32_t g = 0; g < t->ngrid; g++) f = f * t->extent[g] + t->at[i][g];
  return f;
}

/* taps in row-major order of the grid; false when two stand at one point. */
static bool order_taps(const taps *t, uint32_t *tap) {
  for (uint32_t i = 0; i < t->n; i++) tap[i] = TARN_NONE;
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t f = flat_at(t, i);
    if (f < 0 || f >= t->n || tap[f] != TARN_NONE) return false;
    tap[f] = i;
  }
  return true;
}

/* ---------------------------------------------------------------- reads over the grid */

/* The loops of the new product: those of a tap, then the grid's. */
static void wider(const taps *t, const tarn_imap *m, tarn_imap *out) {
  *out = *m;
  for (uint32_t g = 0; g < t->ngrid; g++) out->dim[m->n + g] = t->extent[g];
  out->n = (uint8_t)(m->n + t->ngrid);
}

/* The loops of a tap as those of the product, at the tap's point. */
static uint32_t at_tap(const taps *t, const tarn_imap *m, uint32_t tap) {
  tarn_imap in = {.ns = m->n, .n = m->n, .nin = (uint8_t)(m->n + t->ngrid), .fill = TARN_NONE};
  memcpy(in.dim, m->dim, sizeof in.dim);
  for (uint32_t i = 0; i < m->n; i++) in.in[i] = m->dim[i], in.e[i] = tarn_ix_var(t->L, i, m->dim);
  for (uint32_t g = 0; g < t->ngrid; g++) {
    in.in[m->n + g] = t->extent[g];
    in.e[m->n + g] = tarn_ix_const(t->L, t->at[tap][g]);
  }
  return tarn_map_intern(t->L, &in);
}

static bool agrees(const taps *t, uint32_t j, uint32_t map) {
  for (uint32_t i = 0; i < t->n; i++) {
    const tarn_imap *m = tarn_imap_get(t->L, t->read[i][j].map);
    uint32_t back = tarn_map_compose(t->L, at_tap(t, m, i), map);
    if (back == TARN_NONE || map_with_split(t->L, back, m->ns) != t->read[i][j].map) return false;
  }
  return true;
}

/* e of the tap at the grid's origin, plus step · coordinate. */
static bool shifted_read(const taps *t, uint32_t j, uint32_t origin, tarn_read *out) {
  const tarn_imap *m = tarn_imap_get(t->L, t->read[origin][j].map);
  int64_t base[TARN_MAX_DIMS], d[TARN_MAX_DIMS];
  bool guarded = false;
  tarn_imap w;
  wider(t, m, &w);
  if (w.n > TARN_MAX_DIMS || !shift_of(t, origin, j, base)) return false;
  for (uint32_t i = 0; i < t->n; i++) {
    const tarn_imap *x = tarn_imap_get(t->L, t->read[i][j].map);
    if (x->nguard && guarded && x->fill != w.fill) return false;
    if (x->nguard) guarded = true, w.fill = x->fill;
    uint32_t g = t->ngrid, axis = TARN_NONE; /* the taps one step from the origin give the steps */
    for (uint32_t a = 0, sum = 0; a < g; a++) {
      sum += (uint32_t)t->at[i][a];
      if (t->at[i][a] == 1) axis = a;
      if (sum > 1) axis = TARN_NONE;
    }
    int64_t all = 0;
    for (uint32_t a = 0; a < g; a++) all += t->at[i][a];
    if (all != 1 || axis == TARN_NONE) continue;
    if (!shift_of(t, i, j, d)) return false;
    for (uint32_t x2 = 0; x2 < m->nin; x2++) {
      uint32_t v = tarn_ix_scale(t->L, tarn_ix_var(t->L, m->n + axis, w.dim), d[x2] - base[x2], w.dim);
      w.e[x2] = tarn_ix_add(t->L, w.e[x2], v, w.dim);
    }
  }
  w.nguard = 0;
  for (uint32_t x = 0; guarded && x < m->nin; x++) w.guard[w.nguard++] = (tarn_guard){w.e[x], 0, w.in[x]};
  if (!guarded) w.fill = TARN_NONE;
  int64_t lo, hi;
  for (uint32_t x = 0; !guarded && x < m->nin; x++) {
    tarn_ix_range(t->L, w.e[x], w.dim, &lo, &hi);
    if (lo < 0 || hi >= w.in[x]) return false;
  }
  out->map = tarn_map_intern(t->L, &w);
  return agrees(t, j, out->map);
}

/* The constants of the taps one after the other, over the loops that any of them uses. */
static uint32_t stack(rsite *s, const taps *t, uint32_t j, const uint32_t *tap, const uint32_t *axis, uint32_t naxis,
                      const int64_t *dim, uint32_t ndim) {
  const rhost *h = s->e->host;
  uint32_t part[TAPS];
  int64_t one[TARN_MAX_DIMS + 1] = {1};
  for (uint32_t a = 0; a < naxis; a++) one[a + 1] = dim[axis[a]];
  for (uint32_t i = 0; i < t->n; i++) {
    tarn_imap m = *tarn_imap_get(t->L, map_embed(t->L, dim, ndim, axis, naxis)); /* with a loop of 1 in front */
    memcpy(m.dim, one, (naxis + 1) * sizeof *one);
    m.n = m.ns = (uint8_t)(naxis + 1);
    for (uint32_t a = 0; a < naxis; a++) m.e[axis[a]] = tarn_ix_var(t->L, a + 1, m.dim);
    uint32_t map = tarn_map_compose(t->L, tarn_map_intern(t->L, &m), t->read[tap[i]][j].map);
    if (map == TARN_NONE) return TARN_NONE;
    part[i] = h->mk(h->user, TARN_OP_VIEW, tarn_payload_of(t->L, TARN_P_MAP, map), &t->leaf[tap[i]][j], 1);
    if (part[i] == TARN_NONE) return TARN_NONE;
  }
  return h->mk(h->user, TARN_OP_CONCAT, tarn_payload_ints(t->L, 1, &(int64_t){0}), part, t->n);
}

static bool stacked_read(rsite *s, kern *d, const taps *t, uint32_t j, const uint32_t *tap, tarn_read *out) {
  const tarn_imap *m = tarn_imap_get(t->L, t->read[0][j].map);
  uint32_t used = 0, axis[TARN_MAX_DIMS], naxis = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    if (!site_const(s, t->leaf[i][j])) return false;
    used |= map_uses(t->L, t->read[i][j].map);
  }
  for (uint32_t a = 0; a < m->n; a++)
    if (used >> a & 1) axis[naxis++] = a;
  if (m->n + t->ngrid > TARN_MAX_DIMS || naxis + 1 > TARN_MAX_DIMS) return false;
  uint32_t all = stack(s, t, j, tap, axis, naxis, m->dim, m->n);
  if (all == TARN_NONE || (out->src = kern_leaf(d, all)) == TARN_NONE) return false;
  tarn_imap w;
  wider(t, m, &w);
  w.nguard = 0, w.fill = TARN_NONE, w.nin = (uint8_t)(naxis + 1);
  w.in[0] = t->n;
  w.e[0] = tarn_ix_const(t->L, 0);
  for (uint32_t g = 0; g < t->ngrid; g++) {
    w.e[0] = tarn_ix_scale(t->L, w.e[0], t->extent[g], w.dim);
    w.e[0] = tarn_ix_add(t->L, w.e[0], tarn_ix_var(t->L, m->n + g, w.dim), w.dim);
  }
  for (uint32_t a = 0; a < naxis; a++) w.in[a + 1] = m->dim[axis[a]], w.e[a + 1] = tarn_ix_var(t->L, axis[a], w.dim);
  out->map = tarn_map_intern(t->L, &w);
  return true;
}

/* ---------------------------------------------------------------- the product */

static uint32_t merged(rsite *s, taps *t) {
  uint32_t tap[TAPS], primary = TARN_NONE;
  for (uint32_t j = 0; j < t->nread && primary == TARN_NONE; j++)
    if (!site_const(s, t->leaf[0][j]) && find_grid(t, j)) primary = j;
  if (primary == TARN_NONE || !order_taps(t, tap)) return TARN_NONE;
  kern d = t->k[0];
  kstage *st = &d.stage[0];
  d.nleaf = 0;
  for (uint32_t j = 0; j < t->nread; j++) {
    tarn_read r = {false, 0, 0};
    if (shifted_read(t, j, tap[0], &r)) r.src = kern_leaf(&d, t->leaf[0][j]);
    else if (!stacked_read(s, &d, t, j, tap, &r)) return TARN_NONE;
    if (r.src == TARN_NONE) return TARN_NONE;
    st->read[j] = r;
  }
  if (st->nown + st->nred + t->ngrid > TARN_MAX_DIMS) return TARN_NONE;
  for (uint32_t g = 0; g < t->ngrid; g++) st->red[st->nred++] = t->extent[g];
  return kern_store(&d);
}

bool when_sum(rsite *s) {
  uint32_t products = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    unsigned has = site_facts(s, s->kid[i].id);
    if (site_const(s, s->kid[i].id)) continue;
    if ((has & R_HAS_MAP) && !(has & R_HAS_RED)) return false;
    products += (has & R_HAS_RED) != 0;
  }
  return products > 1;
}

/* The largest sums in the expression that hold at least two such products: the first one found. */
uint32_t build_sum(rsite *s) {
  kern k;
  fxwalk w;
  uint32_t term[TAPS], rest[TAPS], n, nrest;
  if (!site_root(s, &k) || !kern_is_map(&k) || !fx_walk(k.L, k.stage[0].body, &w)) return TARN_NONE;
  taps *t = TARN_NEW(tarn_lang_ctx(k.L), taps);
  kstage *st = &k.stage[0];
  for (uint32_t i = w.n; i-- > 0;) {
    if (tarn_fx_get(k.L, w.id[i])->op != TARN_FX_ADD) continue;
    n = 0, t->n = 0, t->e = s->e, t->L = k.L;
    if (!flatten(k.L, w.id[i], term, &n) || !collect(s, &k, term, n, t, rest, &nrest)) continue;
    uint32_t map = st->read[tarn_fx_get(k.L, t->hole[0])->hole].map, d = merged(s, t);
    uint32_t leaf = d == TARN_NONE ? d : kern_leaf(&k, d);
    if (leaf == TARN_NONE) continue;
    uint32_t at = kern_add_read(st, true, (tarn_read){false, leaf, map});
    if (at == TARN_NONE) return TARN_NONE;
    uint32_t now = tarn_fx_hole(k.L, at);
    for (uint32_t r = 0; r < nrest; r++) now = tarn_fx_op(k.L, TARN_FX_ADD, now, rest[r], 0);
    st->body = fx_replace(k.L, st->body, &w.id[i], &now, 1);
    return st->body == TARN_NONE ? TARN_NONE : kern_store(&k);
  }
  return TARN_NONE;
}
