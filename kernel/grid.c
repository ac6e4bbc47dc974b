/* Maps that differ by constant shifts, as one map with more dims.
 *
 * The shifts of maps m_0 … m_(n-1) must form a grid: base + Σ a_g · step_g, 0 <= a_g < extent_g.
 * The grid's loops come after the maps' own dims; that the wide map restricted to each point of the
 * grid is the map it came from is checked on normal forms, guards included. */
#include "kernel/edit.h"
#include <string.h>

/* Shift of map i against map 0, dim by dim; false when it is not constant. */
static bool shift_of(tarn_lang *L, const uint32_t *map, uint32_t i, int64_t *d) {
  const tarn_imap *a = tarn_imap_get(L, map[0]), *b = tarn_imap_get(L, map[i]);
  if (a->n != b->n || a->nin != b->nin || memcmp(a->dim, b->dim, a->n * sizeof *a->dim))
    return false;
  for (uint32_t x = 0; x < a->nin; x++) {
    uint32_t e = tarn_ix_add(L, b->e[x], tarn_ix_scale(L, a->e[x], -1, a->dim), a->dim);
    const tarn_ix *v = tarn_ix_get(L, e);
    if (v->n) return false;
    d[x] = v->c;
  }
  return true;
}

static bool sorted_insert(int64_t *v, uint32_t *n, int64_t x) {
  uint32_t i = 0;
  while (i < *n && v[i] < x) i++;
  if (i < *n && v[i] == x) return true;
  if (*n == R_TAPS) return false;
  memmove(v + i + 1, v + i, (*n - i) * sizeof *v);
  v[i] = x;
  (*n)++;
  return true;
}

/* One grid loop for each dim along which the shifts differ; they must be evenly spaced and all
 * there. */
bool grid_find(grid *g, const uint32_t *map, uint32_t n) {
  int64_t d[R_TAPS][TARN_MAX_DIMS], value[R_TAPS], total = 1;
  uint32_t nin = tarn_imap_get(g->L, map[0])->nin;
  if (n > R_TAPS) return false;
  g->n = n, g->ngrid = 0;
  for (uint32_t i = 0; i < n; i++)
    if (!shift_of(g->L, map, i, d[i])) return false;
  for (uint32_t x = 0; x < nin; x++) {
    uint32_t nv = 0;
    for (uint32_t i = 0; i < n; i++)
      if (!sorted_insert(value, &nv, d[i][x])) return false;
    if (nv == 1) continue;
    int64_t step = value[1] - value[0];
    for (uint32_t v = 2; v < nv; v++)
      if (value[v] - value[v - 1] != step) return false;
    if (g->ngrid == R_GRID) return false;
    for (uint32_t i = 0; i < n; i++) g->at[i][g->ngrid] = (d[i][x] - value[0]) / step;
    g->extent[g->ngrid++] = nv;
    total *= nv;
  }
  return total == n && g->ngrid > 0;
}

bool grid_order(const grid *g, uint32_t *tap) {
  for (uint32_t i = 0; i < g->n; i++) tap[i] = TARN_NONE;
  for (uint32_t i = 0; i < g->n; i++) {
    int64_t f = 0;
    for (uint32_t a = 0; a < g->ngrid; a++) f = f * g->extent[a] + g->at[i][a];
    if (f < 0 || f >= g->n || tap[f] != TARN_NONE) return false;
    tap[f] = i;
  }
  return true;
}

bool grid_wider(const grid *g, const tarn_imap *m, tarn_imap *out) {
  *out = *m;
  if (m->n + g->ngrid > TARN_MAX_DIMS) return false;
  for (uint32_t a = 0; a < g->ngrid; a++) out->dim[m->n + a] = g->extent[a];
  out->n = (uint8_t)(m->n + g->ngrid);
  return true;
}

/* The dims of a map as those of the wide one, at the tap's point. */
static uint32_t at_tap(const grid *g, const tarn_imap *m, uint32_t tap) {
  tarn_imap in = {.ns = m->n, .n = m->n, .nin = (uint8_t)(m->n + g->ngrid), .fill = TARN_NONE};
  memcpy(in.dim, m->dim, sizeof in.dim);
  for (uint32_t i = 0; i < m->n; i++) in.in[i] = m->dim[i], in.e[i] = tarn_ix_var(g->L, i, m->dim);
  for (uint32_t a = 0; a < g->ngrid; a++) {
    in.in[m->n + a] = g->extent[a];
    in.e[m->n + a] = tarn_ix_const(g->L, g->at[tap][a]);
  }
  return tarn_map_intern(g->L, &in);
}

static bool agrees(const grid *g, const uint32_t *map, uint32_t wide) {
  for (uint32_t i = 0; i < g->n; i++) {
    const tarn_imap *m = tarn_imap_get(g->L, map[i]);
    uint32_t back = tarn_map_compose(g->L, at_tap(g, m, i), wide);
    if (back == TARN_NONE || map_with_split(g->L, back, m->ns) != map[i]) return false;
  }
  return true;
}

/* The grid loop along which the tap is one step from the origin, or TARN_NONE. */
static uint32_t step_axis(const grid *g, uint32_t tap) {
  uint32_t axis = TARN_NONE;
  int64_t all = 0;
  for (uint32_t a = 0; a < g->ngrid; a++) {
    all += g->at[tap][a];
    if (g->at[tap][a] == 1) axis = a;
  }
  return all == 1 ? axis : TARN_NONE;
}

/* The index of each dim at the origin, plus step · coordinate: the taps one step from the origin
 * give the steps. */
static bool add_steps(const grid *g, const uint32_t *map, uint32_t origin, tarn_imap *w) {
  int64_t base[TARN_MAX_DIMS], d[TARN_MAX_DIMS];
  uint32_t n = tarn_imap_get(g->L, map[0])->n;
  if (!shift_of(g->L, map, origin, base)) return false;
  for (uint32_t i = 0; i < g->n; i++) {
    uint32_t axis = step_axis(g, i);
    if (axis == TARN_NONE) continue;
    if (!shift_of(g->L, map, i, d)) return false;
    for (uint32_t x = 0; x < w->nin; x++) {
      uint32_t v = tarn_ix_scale(g->L, tarn_ix_var(g->L, n + axis, w->dim), d[x] - base[x], w->dim);
      w->e[x] = tarn_ix_add(g->L, w->e[x], v, w->dim);
    }
  }
  return true;
}

uint32_t grid_map(const grid *g, const uint32_t *map, uint32_t origin) {
  tarn_imap w;
  int64_t lo, hi;
  if (!grid_wider(g, tarn_imap_get(g->L, map[origin]), &w) || !add_steps(g, map, origin, &w))
    return TARN_NONE;
  bool guarded = false;
  for (uint32_t i = 0; i < g->n; i++) {
    const tarn_imap *x = tarn_imap_get(g->L, map[i]);
    if (x->nguard && guarded && x->fill != w.fill) return TARN_NONE;
    if (x->nguard) guarded = true, w.fill = x->fill;
  }
  w.nguard = 0;
  if (!guarded) w.fill = TARN_NONE;
  for (uint32_t x = 0; x < w.nin; x++) {
    tarn_ix_range(g->L, w.e[x], w.dim, &lo, &hi);
    if (lo >= 0 && hi < w.in[x]) continue;
    if (!guarded) return TARN_NONE;
    w.guard[w.nguard++] = (tarn_guard){w.e[x], 0, w.in[x]};
  }
  uint32_t wide = tarn_map_intern(g->L, &w);
  return agrees(g, map, wide) ? wide : TARN_NONE;
}
