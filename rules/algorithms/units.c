/* Products as units of a description take them.
 *
 * split        a product's epilogue ends where the vector unit ends: what remains, as a
 *              requantisation by a scale that is no power of two, is a map of its own; i32 that are
 *              bytes are stored as such
 * pad          an operand that is padded with something else than zeros is padded by a copy
 * zero-pad     a maximum of what is never below 0 may be padded with 0 instead of the least number
 * merge-groups groups of a grouped convolution as one, its weights filled with zeros (R58)
 * fill-channels channels up to a multiple of what the unit multiplies at once: the data padded by a
 *              copy, the weights filled with zeros (R15)
 *
 * Each asks for a unit that reduces the product and whose operands are padded. */
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <string.h>

/* Steps of the reduction that a unit does at once; 0: no unit takes the product. */
static int64_t unit_steps(const rsite *s, const kern *k) {
  const kstage *st = &k->stage[0];
  int64_t most = 0;
  if (!s->e->hw || !kern_single(k) || k->depth || st->reducer == TARN_NONE || st->nb != 2) return 0;
  if (st->read[0].stage || st->read[1].stage) return 0;
  const tarn_dtype type[2] = {kern_leaf_type(k, st->read[0].src)->dtype,
                              kern_leaf_type(k, st->read[1].src)->dtype};
  const tarn_machines m = tarn_hw_machines(s->e->hw);
  for (uint32_t i = 0; i < m.n; i++) {
    if (!tarn_hw_traits_of(m.hw[i]).pads) continue;
    int64_t steps = tarn_hw_multiplies(k->L, m.hw[i], st->body, st->reducer, type);
    if (steps > most) most = steps;
  }
  return most;
}
static bool by_unit(rsite *s) {
  kern k;
  return s->e->hw && site_root(s, &k) && unit_steps(s, &k) > 0;
}
static bool integers(const kern *k) {
  const kstage *st = &k->stage[0];
  return st->reducer != TARN_NONE &&
         !tarn_dtype_is_float(tarn_reducer_get(k->L, st->reducer)->dtype);
}

/* ---------------------------------------------------------------- split */

typedef struct cut {
  const kern *k;
  fxwalk w;
  vrange is[K_FX];
  bool unit[K_FX]; /* sums, bounds and shifts of i32 */
} cut;

static bool unit_kids(const cut *c, const tarn_fx *x, uint32_t n) {
  for (uint32_t a = 0; a < n; a++) {
    uint32_t i = 0;
    while (c->w.id[i] != x->kid[a]) i++;
    if (!c->unit[i]) return false;
  }
  return true;
}
static bool of_unit(const cut *c, uint32_t i) {
  const tarn_fx *x = tarn_fx_get(c->k->L, c->w.id[i]);
  if (!c->is[i].typed || c->is[i].type != TARN_I32) return false;
  switch (x->op) {
  case TARN_FX_HOLE:
  case TARN_FX_CONST: return true;
  case TARN_FX_CAST: {
    const tarn_fx *h = tarn_fx_get(c->k->L, x->kid[0]);
    return h->op == TARN_FX_HOLE;
  }
  case TARN_FX_ADD:
  case TARN_FX_MIN:
  case TARN_FX_MAX: return unit_kids(c, x, 2);
  case TARN_FX_SHR:
    return tarn_fx_get(c->k->L, x->kid[1])->op == TARN_FX_CONST && unit_kids(c, x, 1);
  default: return false;
  }
}

/* i8 where the numbers are such: a store unit keeps the low byte. */
static bool as_byte(tarn_lang *L, tarn_range r, uint32_t *part, uint32_t *rest, uint32_t hole) {
  uint32_t h = tarn_fx_hole(L, hole), wide = tarn_fx_cast(L, TARN_I32, h);
  if (r.lo < -128 || r.hi > 127) return true;
  *part = tarn_fx_cast(L, TARN_I8, *part);
  return (*rest = fx_replace(L, *rest, &h, &wide, 1)) != TARN_NONE;
}

/* The longest part of the epilogue that a unit does, through which alone the sum is read, and the
 * rest with hole `hole` in its place; false: there is nothing to cut. */
static bool find_cut(rsite *s, cut *c, uint32_t hole, uint32_t *part, uint32_t *rest) {
  const kstage *st = &c->k->stage[0];
  tarn_lang *L = c->k->L;
  vrange holes[K_READS + 1];
  uint32_t marker = tarn_fx_hole(L, hole);
  if (st->epi == TARN_NONE || !fx_walk(L, st->epi, &c->w)) return false;
  vrange_walk(L, &c->w, holes, vrange_holes(s->e->host, c->k, st, false, holes), c->is);
  for (uint32_t i = 0; i < c->w.n; i++) c->unit[i] = of_unit(c, i);
  const tarn_fx *top = tarn_fx_get(L, st->epi);
  uint32_t last = c->w.n - 1;
  if (c->unit[last]) {
    *part = st->epi, *rest = marker;
    return as_byte(L, c->is[last].r, part, rest, hole) && *part != st->epi;
  }
  if (top->op == TARN_FX_CAST && !tarn_dtype_is_float(top->dtype) && unit_kids(c, top, 1)) {
    if (top->dtype != TARN_U8) return false;
    *part = tarn_fx_cast(L, TARN_I8, top->kid[0]), *rest = tarn_fx_cast(L, TARN_U8, marker);
    return true; /* the same low byte */
  }
  for (uint32_t i = c->w.n; i-- > 0;) {
    if (!c->unit[i] || !tarn_fx_uses(L, c->w.id[i], 0)) continue;
    *rest = fx_replace(L, st->epi, &c->w.id[i], &marker, 1);
    if (*rest == TARN_NONE || tarn_fx_uses(L, *rest, 0)) continue;
    *part = c->w.id[i];
    return as_byte(L, c->is[i].r, part, rest, hole);
  }
  return false;
}

/* The rest as a map of what the unit computes. */
static uint32_t remainder_of(const kern *k, uint32_t rest, uint32_t id) {
  const kstage *st = &k->stage[0];
  kern *c = TARN_NEW(tarn_lang_ctx(k->L), kern);
  kstage *to = &c->stage[0];
  uint32_t axis[TARN_MAX_DIMS], with[K_READS + 2];
  c->host = k->host, c->L = k->L, c->nstage = 1, c->out_ns = k->out_ns;
  *to = (kstage){.nown = st->nown, .reducer = TARN_NONE, .epi = TARN_NONE, .out = true};
  memcpy(to->own, st->own, st->nown * sizeof *st->own);
  for (uint32_t i = 0; i < st->nown; i++) axis[i] = i;
  for (uint32_t i = 0; i < st->ne; i++) {
    tarn_read r = st->read[st->nb + i];
    if (r.stage || (r.src = kern_leaf(c, k->leaf[r.src])) == TARN_NONE) return TARN_NONE;
    if (kern_add_read(to, true, r) == TARN_NONE) return TARN_NONE;
    with[i + 1] = tarn_fx_hole(k->L, i);
  }
  uint32_t leaf = kern_leaf(c, id), map = map_project(k->L, st->own, st->nown, axis, st->nown);
  if (leaf == TARN_NONE || kern_add_read(to, true, (tarn_read){false, leaf, map}) == TARN_NONE)
    return TARN_NONE;
  with[0] = TARN_NONE, with[st->ne + 1] = tarn_fx_hole(k->L, st->ne);
  to->body = tarn_fx_subst(k->L, rest, with, st->ne + 2);
  return kern_store(c);
}

bool when_split(rsite *s) { return by_unit(s); }
uint32_t build_split(rsite *s) {
  kern k;
  uint32_t part, rest;
  if (!site_root(s, &k) || !kern_single(&k) || k.depth || !integers(&k)) return TARN_NONE;
  kstage *st = &k.stage[0];
  cut *c = TARN_NEW(tarn_lang_ctx(k.L), cut);
  c->k = &k;
  if (!find_cut(s, c, st->ne + 1, &part, &rest)) return TARN_NONE;
  kern *unit = tarn_copy(tarn_lang_ctx(k.L), &k, sizeof k);
  unit->stage[0].epi = part == tarn_fx_hole(k.L, 0) ? TARN_NONE : part;
  uint32_t id = kern_store(unit);
  return id == TARN_NONE ? id : remainder_of(&k, rest, id);
}

/* Into the reduction that reads it: what computes something, no padding of what units read. */
bool when_inline_rest(rsite *s) {
  kern p;
  return site_kid(s, s->slot, &p) && kern_is_map(&p) &&
         tarn_fx_get(p.L, p.stage[0].body)->op != TARN_FX_HOLE && when_inline_reduction(s);
}

/* ---------------------------------------------------------------- padding */

/* The tensor that a read with guards views, padded, as a map of that to the tensor; *view: the read
 * of it. False: it pads in another way. */
static bool padded_tensor(tarn_lang *L, uint32_t map, uint32_t *pads, uint32_t *view) {
  tarn_imap in = *tarn_imap_get(L, map), out = in, p = {.fill = in.fill};
  if (in.nguard == 0 || in.nin == 0) return false;
  p.n = p.ns = p.nin = out.nin = in.nin, out.nguard = 0, out.fill = TARN_NONE;
  for (uint32_t a = 0; a < in.nin; a++) {
    int64_t lo, hi;
    tarn_ix_range(L, in.e[a], in.dim, &lo, &hi);
    if (lo > 0) lo = 0;
    if (hi < in.in[a] - 1) hi = in.in[a] - 1;
    p.in[a] = in.in[a], p.dim[a] = out.in[a] = hi - lo + 1;
    out.e[a] = tarn_ix_add(L, in.e[a], tarn_ix_const(L, -lo), in.dim);
  }
  for (uint32_t a = 0; a < in.nin; a++) {
    int64_t before = 0, hi;
    tarn_ix_range(L, in.e[a], in.dim, &before, &hi);
    if (before > 0) before = 0;
    p.e[a] = tarn_ix_add(L, tarn_ix_var(L, a, p.dim), tarn_ix_const(L, before), p.dim);
    if (p.dim[a] != p.in[a]) p.guard[p.nguard++] = (tarn_guard){p.e[a], 0, p.in[a]};
  }
  if (p.nguard == 0) return false;
  *pads = tarn_map_intern(L, &p), *view = tarn_map_intern(L, &out);
  return tarn_map_compose(L, *view, *pads) == map;
}
static bool pads_with(const tarn_lang *L, const tarn_read *r, int64_t v) {
  const tarn_imap *m = tarn_imap_get(L, r->map);
  return m->nguard == 0 || tarn_fx_get(L, m->fill)->ivalue == v;
}

bool when_pad(rsite *s) { return by_unit(s); }
uint32_t build_pad(rsite *s) {
  kern k;
  uint32_t pads, view;
  if (!site_root(s, &k) || !kern_single(&k) || k.depth || !integers(&k)) return TARN_NONE;
  kstage *st = &k.stage[0];
  bool any = false;
  for (uint32_t i = 0; i < st->nb; i++) {
    tarn_read *r = &st->read[i];
    if (r->stage || pads_with(k.L, r, 0)) continue;
    if (!padded_tensor(k.L, r->map, &pads, &view)) return TARN_NONE;
    kern *c = TARN_NEW(tarn_lang_ctx(k.L), kern);
    kstage *to = &c->stage[0];
    const tarn_imap *m = tarn_imap_get(k.L, pads);
    c->host = k.host, c->L = k.L, c->nstage = 1, c->out_ns = m->n;
    *to = (kstage){.nown = m->n, .reducer = TARN_NONE, .epi = TARN_NONE, .nb = 1, .out = true};
    memcpy(to->own, m->dim, m->n * sizeof *to->own);
    to->body = tarn_fx_hole(k.L, 0);
    to->read[0] = (tarn_read){false, kern_leaf(c, k.leaf[r->src]), pads};
    uint32_t id = kern_store(c), leaf = id == TARN_NONE ? id : kern_leaf(&k, id);
    if (leaf == TARN_NONE) return TARN_NONE;
    *r = (tarn_read){false, leaf, view}, any = true;
  }
  return any ? kern_store(&k) : TARN_NONE;
}

/* Is, for each index of the result, one of the window's elements within the guard? */
static bool meets(tarn_lang *L, const tarn_imap *m, const tarn_guard *g, uint32_t nown) {
  int64_t at[2 * TARN_MAX_DIMS] = {0};
  uint32_t dims = tarn_ix_dims(L, g->e), own = TARN_NONE, red = TARN_NONE;
  for (uint32_t d = 0; d < m->n; d++) {
    if (!(dims >> d & 1)) continue;
    uint32_t *of = d < nown ? &own : &red;
    if (*of != TARN_NONE) return false;
    *of = d;
  }
  for (int64_t i = 0, n = own == TARN_NONE ? 1 : m->dim[own]; i < n; i++) {
    bool any = false;
    if (own != TARN_NONE) at[own] = i;
    for (int64_t j = 0, w = red == TARN_NONE ? 1 : m->dim[red]; j < w && !any; j++) {
      if (red != TARN_NONE) at[red] = j;
      int64_t e = tarn_ix_eval(L, g->e, at);
      any = e >= g->lo && e < g->hi;
    }
    if (!any) return false;
  }
  return true;
}
/* Guards on loops of their own, so that each may be met by itself. */
static bool always_meets(tarn_lang *L, const tarn_imap *m, uint32_t nown) {
  uint32_t seen = 0, reduced = ~((1u << nown) - 1);
  for (uint32_t i = 0; i < m->nguard; i++) {
    uint32_t dims = tarn_ix_dims(L, m->guard[i].e) & reduced;
    if ((seen & dims) || !meets(L, m, &m->guard[i], nown)) return false;
    seen |= dims;
  }
  return true;
}

uint32_t build_zero_pad(rsite *s) {
  kern k;
  if (!site_root(s, &k) || !kern_single(&k) || k.depth || !integers(&k)) return TARN_NONE;
  kstage *st = &k.stage[0];
  tarn_read *r = &st->read[0];
  const tarn_fx *x = tarn_fx_get(k.L, st->body);
  uint32_t hole = x->op == TARN_FX_CAST ? x->kid[0] : st->body;
  if (tarn_reducer_get(k.L, st->reducer)->kind != TARN_RED_MAX || st->nb != 1 || r->stage ||
      hole != tarn_fx_hole(k.L, 0))
    return TARN_NONE;
  const tarn_imap *m = tarn_imap_get(k.L, r->map);
  const tarn_dtype t = kern_leaf_type(&k, r->src)->dtype;
  const tarn_range range = s->e->host->range(s->e->host->user, k.leaf[r->src]);
  if (m->nguard == 0 || tarn_fx_get(k.L, m->fill)->ivalue >= 0 || range.lo < 0) return TARN_NONE;
  if (tarn_dtype_is_float(t) || !always_meets(k.L, m, st->nown)) return TARN_NONE;
  r->map = map_with_fill(k.L, r->map, tarn_fx_iconst(k.L, t, 0));
  return kern_store(&k);
}

/* ---------------------------------------------------------------- groups */

typedef struct groups { /* channel = in·(o div out) + c */
  uint32_t axis, o, c;  /* of the data: its channels; loops: results, c TARN_NONE when in is 1 */
  int64_t in, out, n;   /* channels and results of a group; groups */
} groups;

/* The loop of which this is a quotient; TARN_NONE. */
static uint32_t quotient_of(const tarn_lang *L, const tarn_ixterm *t, int64_t *by) {
  *by = t->kind == TARN_IX_DIV ? t->by : 1;
  return t->kind == TARN_IX_VAR ? t->arg : t->kind == TARN_IX_DIV ? ix_loop(L, t->arg) : TARN_NONE;
}
static bool grouped_axis(const kern *k, const tarn_imap *m, uint32_t a, groups *g) {
  const kstage *st = &k->stage[0];
  const tarn_ix *x = tarn_ix_get(k->L, m->e[a]);
  *g = (groups){.axis = a, .o = TARN_NONE, .c = TARN_NONE, .in = 1, .out = 1};
  if (x->c != 0 || x->n == 0 || x->n > 2) return false;
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    int64_t by;
    uint32_t loop = quotient_of(k->L, t, &by);
    if (loop == TARN_NONE) return false;
    if (loop >= st->nown && by == 1 && t->coef == 1 && g->c == TARN_NONE) g->c = loop;
    else if (loop < st->nown && g->o == TARN_NONE) g->o = loop, g->in = t->coef, g->out = by;
    else return false;
  }
  if (g->o == TARN_NONE || g->in < 1 || st->own[g->o] % g->out) return false;
  g->n = st->own[g->o] / g->out;
  int64_t walked = g->c == TARN_NONE ? 1 : st->red[g->c - st->nown];
  return g->n > 1 && walked == g->in && m->in[a] == g->n * g->in;
}
/* Do the loops stand nowhere else in the map? */
static bool alone(const tarn_lang *L, const tarn_imap *m, const groups *g) {
  uint32_t set = 1u << g->o | (g->c == TARN_NONE ? 0 : 1u << g->c), others = imap_guarded(L, m);
  for (uint32_t a = 0; a < m->nin; a++)
    if (a != g->axis) others |= tarn_ix_dims(L, m->e[a]);
  return !(others & set);
}
/* The read of the data, and how its groups lie. TARN_NONE: they do not. */
static uint32_t find_groups(rsite *s, const kern *k, groups *g) {
  const kstage *st = &k->stage[0];
  for (uint32_t r = 0; r < 2; r++) {
    const tarn_imap *m = tarn_imap_get(k->L, st->read[r].map);
    if (st->read[r].stage || site_const(s, k->leaf[st->read[r].src])) continue;
    if (st->read[1 - r].stage || !site_const(s, k->leaf[st->read[1 - r].src])) return TARN_NONE;
    uint32_t weights = map_uses(k->L, st->read[1 - r].map); /* of rows they are the same */
    for (uint32_t a = 0; a < m->nin; a++)
      if (grouped_axis(k, m, a, g) && alone(k->L, m, g) && (weights >> g->o & 1)) return r;
    return TARN_NONE;
  }
  return TARN_NONE;
}

/* Groups to merge into one: the fewest, prime by prime, that have as many channels; 1: none. */
static int64_t merged(const groups *g, int64_t channels) {
  int64_t p = 1, left = g->n;
  for (int64_t f = 2; left > 1 && g->in * p < channels; f++)
    while (left % f == 0 && g->in * p < channels) p *= f, left /= f;
  return p;
}

/* A loop for the channels of a group: one of extent 1 that is there, or a new one. */
static bool channel_loop(kstage *st, groups *g) {
  for (uint32_t i = 0; i < st->nred && g->c == TARN_NONE; i++)
    if (st->red[i] == 1) g->c = st->nown + i;
  if (g->c != TARN_NONE) return true;
  if (st->nred == TARN_MAX_DIMS || st->nown + st->nred == TARN_MAX_DIMS) return false;
  st->red[st->nred++] = 1, g->c = st->nown + st->nred - 1;
  return true;
}

/* The weights that read r is of, over its map `m` into them, and 0 where the guard does not hold;
 * *view: the read of them. */
static uint32_t filled(const kern *k, uint32_t r, tarn_imap m, tarn_guard own, const int64_t *dim,
                       uint32_t n, uint32_t *view) {
  tarn_lang *L = k->L;
  const tarn_read *w = &k->stage[0].read[r];
  uint32_t axis[2 * TARN_MAX_DIMS], naxis = 0;
  if (m.nguard) return TARN_NONE;
  m.guard[m.nguard++] = own, m.fill = tarn_fx_iconst(L, kern_leaf_type(k, w->src)->dtype, 0);
  uint32_t full = tarn_map_intern(L, &m), used = map_uses(L, full);
  for (uint32_t i = 0; i < n; i++)
    if (used >> i & 1) axis[naxis++] = i;
  if (naxis > TARN_MAX_DIMS) return TARN_NONE;
  kern *c = TARN_NEW(tarn_lang_ctx(L), kern);
  kstage *to = &c->stage[0];
  c->host = k->host, c->L = L, c->nstage = 1, c->out_ns = naxis;
  *to = (kstage){.nown = naxis, .reducer = TARN_NONE, .epi = TARN_NONE, .nb = 1, .out = true};
  for (uint32_t i = 0; i < naxis; i++) to->own[i] = dim[axis[i]];
  to->body = tarn_fx_hole(L, 0);
  uint32_t map = tarn_map_compose(L, map_embed(L, dim, n, axis, naxis), full);
  if (map == TARN_NONE) return TARN_NONE;
  to->read[0] = (tarn_read){false, kern_leaf(c, k->leaf[w->src]), map};
  *view = map_project(L, dim, n, axis, naxis);
  return kern_store(c);
}

/* The weights of p groups as one group's: 0 where a result's own group is another one. */
static uint32_t weights_of(const kern *k, uint32_t r, const groups *g, int64_t p,
                           const int64_t *dim, uint32_t n, uint32_t *view) {
  tarn_lang *L = k->L;
  tarn_imap m = *tarn_imap_get(L, k->stage[0].read[r].map);
  uint32_t sub[2 * TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) sub[i] = tarn_ix_var(L, i, dim);
  uint32_t of = tarn_ix_mod(L, tarn_ix_div(L, sub[g->o], g->out, dim), p, dim);
  sub[g->c] = tarn_ix_add(L, sub[g->c], tarn_ix_scale(L, of, -g->in, dim), dim);
  imap_subst(L, &m, sub, n, dim);
  return filled(k, r, m, (tarn_guard){sub[g->c], 0, g->in}, dim, n, view);
}

bool when_merge_groups(rsite *s) {
  kern k;
  groups g;
  if (!s->e->hw || !site_root(s, &k)) return false;
  int64_t steps = unit_steps(s, &k);
  return steps > 1 && find_groups(s, &k, &g) != TARN_NONE && merged(&g, steps) > 1;
}
/* p groups at a time; *weights: theirs. */
static uint32_t with_groups(const kern *was, groups g, uint32_t data, int64_t p,
                            uint32_t *weights) {
  kern *k = tarn_copy(tarn_lang_ctx(was->L), was, sizeof *was);
  kstage *st = &k->stage[0];
  int64_t dim[3 * TARN_MAX_DIMS];
  uint32_t view;
  if (!channel_loop(st, &g)) return TARN_NONE;
  st->red[g.c - st->nown] = g.in * p;
  uint32_t n = kern_dims(k, st, true, dim);
  *weights = weights_of(k, 1 - data, &g, p, dim, n, &view);
  uint32_t leaf = *weights == TARN_NONE ? TARN_NONE : kern_leaf(k, *weights);
  if (leaf == TARN_NONE) return TARN_NONE;
  tarn_imap m = *tarn_imap_get(k->L, st->read[data].map);
  m.n = (uint8_t)n;
  memcpy(m.dim, dim, n * sizeof *dim);
  uint32_t group = tarn_ix_div(k->L, tarn_ix_var(k->L, g.o, dim), g.out * p, dim);
  m.e[g.axis] = tarn_ix_add(k->L, tarn_ix_scale(k->L, group, g.in * p, dim),
                            tarn_ix_var(k->L, g.c, dim), dim);
  st->read[data].map = tarn_map_intern(k->L, &m);
  st->read[1 - data] = (tarn_read){false, leaf, view};
  return kern_store(k);
}

/* How many is found by the unit, and in a proof by the weights that were made. */
uint32_t build_merge_groups(rsite *s) {
  kern k;
  groups g;
  uint32_t weights, id;
  if (!site_root(s, &k) || !kern_single(&k) || k.depth || !integers(&k) || k.stage[0].nb != 2)
    return TARN_NONE;
  uint32_t data = find_groups(s, &k, &g);
  if (data == TARN_NONE) return TARN_NONE;
  if (s->nextra) {
    for (int64_t p = 1, c = g.in; (p = merged(&g, c + 1)) > 1; c = g.in * p) {
      id = with_groups(&k, g, data, p, &weights);
      if (id == TARN_NONE || weights == s->extra[0] || p == g.n) return id;
    }
    return TARN_NONE;
  }
  int64_t p = merged(&g, unit_steps(s, &k));
  id = p > 1 ? with_groups(&k, g, data, p, &weights) : TARN_NONE;
  if (id != TARN_NONE) s->extra[s->nextra++] = weights;
  return id;
}

/* ---------------------------------------------------------------- channels */

typedef struct channels { /* of the data, read number `data`: axis, and the loop that alone is it */
  uint32_t data, axis, loop;
  int64_t n;
} channels;

static bool channels_at(const kern *k, const tarn_imap *m, uint32_t a, channels *c) {
  const kstage *st = &k->stage[0];
  c->axis = a, c->loop = ix_loop(k->L, m->e[a]), c->n = m->in[a];
  if (c->loop == TARN_NONE || c->loop < st->nown || st->red[c->loop - st->nown] != c->n)
    return false;
  uint32_t others = imap_guarded(k->L, m);
  for (uint32_t i = 0; i < m->nin; i++)
    if (i != a) others |= tarn_ix_dims(k->L, m->e[i]);
  return !(others >> c->loop & 1);
}
/* The longest such axis, where the other operand is constant and follows that loop. */
static bool find_channels(rsite *s, const kern *k, channels *c) {
  const kstage *st = &k->stage[0];
  channels x;
  c->n = 0;
  for (uint32_t r = 0; r < 2 && st->nb == 2; r++) {
    const tarn_read *data = &st->read[r], *other = &st->read[1 - r];
    if (data->stage || other->stage || site_const(s, k->leaf[data->src]) ||
        !site_const(s, k->leaf[other->src]))
      continue;
    const tarn_imap *m = tarn_imap_get(k->L, data->map);
    for (uint32_t a = 0; a < m->nin; a++)
      if (channels_at(k, m, a, &x) && x.n > c->n && (map_uses(k->L, other->map) >> x.loop & 1))
        *c = x, c->data = r;
  }
  return c->n > 0;
}

/* The data with so many channels, those beyond its own 0. */
static uint32_t padded_data(const kern *k, const channels *c, int64_t n) {
  const tarn_read *r = &k->stage[0].read[c->data];
  const tarn_type *t = kern_leaf_type(k, r->src);
  tarn_imap m = {.n = t->n, .ns = t->n, .nin = t->n, .nguard = 1};
  kern *x = TARN_NEW(tarn_lang_ctx(k->L), kern);
  kstage *to = &x->stage[0];
  for (uint32_t a = 0; a < t->n; a++) m.in[a] = t->dim[a], m.dim[a] = a == c->axis ? n : t->dim[a];
  for (uint32_t a = 0; a < t->n; a++) m.e[a] = tarn_ix_var(k->L, a, m.dim);
  m.guard[0] = (tarn_guard){m.e[c->axis], 0, c->n};
  m.fill = tarn_fx_iconst(k->L, t->dtype, 0);
  x->host = k->host, x->L = k->L, x->nstage = 1, x->out_ns = t->ns;
  *to = (kstage){.nown = t->n, .reducer = TARN_NONE, .epi = TARN_NONE, .nb = 1, .out = true};
  memcpy(to->own, m.dim, t->n * sizeof *to->own);
  to->body = tarn_fx_hole(k->L, 0);
  to->read[0] = (tarn_read){false, kern_leaf(x, k->leaf[r->src]), tarn_map_intern(k->L, &m)};
  return kern_store(x);
}

bool when_fill_channels(rsite *s) {
  kern k;
  channels c;
  if (!s->e->hw || !site_root(s, &k)) return false;
  int64_t steps = unit_steps(s, &k);
  return steps > 1 && find_channels(s, &k, &c) && c.n % steps;
}
/* How many is found by the unit, and in a proof by the data that were made. */
uint32_t build_fill_channels(rsite *s) {
  const rhost *h = s->e->host;
  kern k;
  channels c;
  int64_t dim[3 * TARN_MAX_DIMS], n;
  uint32_t view;
  if (!site_root(s, &k) || !kern_single(&k) || k.depth || !integers(&k)) return TARN_NONE;
  kstage *st = &k.stage[0];
  if (!find_channels(s, &k, &c)) return TARN_NONE;
  int64_t steps = s->nextra ? 0 : unit_steps(s, &k);
  if (s->nextra) {
    const tarn_type *t = tarn_type_get(k.L, h->nest.type(h->nest.user, s->extra[0]));
    if (t->tuple || t->n <= c.axis || (n = t->dim[c.axis]) <= c.n) return TARN_NONE;
  } else if (steps < 2) return TARN_NONE;
  else n = tarn_ceildiv(c.n, steps) * steps;
  tarn_imap w = *tarn_imap_get(k.L, st->read[1 - c.data].map),
            m = *tarn_imap_get(k.L, st->read[c.data].map);
  if (m.nguard && tarn_fx_get(k.L, m.fill)->ivalue != 0) return TARN_NONE;
  uint32_t data = padded_data(&k, &c, n);
  st->red[c.loop - st->nown] = n;
  uint32_t all = kern_dims(&k, st, true, dim);
  memcpy(w.dim, dim, all * sizeof *dim), memcpy(m.dim, dim, all * sizeof *dim);
  const tarn_guard own = {tarn_ix_var(k.L, c.loop, dim), 0, c.n};
  uint32_t weights = filled(&k, 1 - c.data, w, own, dim, all, &view);
  uint32_t leaf[2] = {data == TARN_NONE ? data : kern_leaf(&k, data),
                      weights == TARN_NONE ? weights : kern_leaf(&k, weights)};
  if (leaf[0] == TARN_NONE || leaf[1] == TARN_NONE) return TARN_NONE;
  m.in[c.axis] = n, m.e[c.axis] = tarn_ix_var(k.L, c.loop, dim);
  st->read[c.data] = (tarn_read){false, leaf[0], tarn_map_intern(k.L, &m)};
  st->read[1 - c.data] = (tarn_read){false, leaf[1], view};
  if (!s->nextra) s->extra[s->nextra++] = data;
  return kern_store(&k);
}
