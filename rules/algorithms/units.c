/* Products as units of a description take them.
 *
 * split        a product's epilogue ends where the vector unit ends: what remains, as a
 *              requantisation by a scale that is no power of two, is a map of its own; i32 that are
 *              bytes are stored as such
 * zero-pad     a maximum of what is never below 0 may be padded with 0 instead of the least number
 *
 * In C because where an epilogue is cut follows from what each of its operators is, and whether
 * every window has an element from counting. */
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <string.h>

static bool by_unit(rsite *s) {
  kern k;
  return s->e->hw && site_root(s, &k) && loops_unit_steps(s->e, &k) > 0;
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
