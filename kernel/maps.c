/* Makes and changes index maps. */
#include "kernel/maps.h"
#include <string.h>

uint32_t ix_loop(const tarn_lang *L, uint32_t ix) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  bool one = x->n == 1 && x->c == 0 && x->t[0].kind == TARN_IX_VAR && x->t[0].coef == 1;
  return one ? x->t[0].arg : TARN_NONE;
}

uint32_t imap_dims(const tarn_lang *L, const tarn_imap *m) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < m->nin; i++) set |= tarn_ix_dims(L, m->e[i]);
  return set;
}

uint32_t read_dims(const tarn_lang *L, const tarn_stage *s, uint32_t r) {
  uint32_t first = tarn_stage_reads(L, s) - s->nlook, by = s->read[r].row.by;
  uint32_t dims = imap_dims(L, tarn_imap_get(L, s->read[r].map));
  return by ? dims | imap_dims(L, tarn_imap_get(L, s->read[first + by - 1].map)) : dims;
}
uint32_t imap_guarded(const tarn_lang *L, const tarn_imap *m) {
  uint32_t set = 0;
  for (uint32_t i = 0; i < m->nguard; i++) set |= tarn_ix_dims(L, m->guard[i].e);
  return set;
}

uint32_t map_uses(const tarn_lang *L, uint32_t map) {
  const tarn_imap *m = tarn_imap_get(L, map);
  return imap_dims(L, m) | imap_guarded(L, m);
}

void imap_subst(tarn_lang *L, tarn_imap *m, const uint32_t *sub, uint32_t n, const int64_t *dim) {
  for (uint32_t i = 0; i < m->nin; i++) m->e[i] = tarn_ix_subst(L, m->e[i], sub, dim);
  for (uint32_t i = 0; i < m->nguard; i++)
    m->guard[i].e = tarn_ix_subst(L, m->guard[i].e, sub, dim);
  m->n = m->ns = (uint8_t)n;
  memset(m->dim, 0, sizeof m->dim);
  memcpy(m->dim, dim, n * sizeof *dim);
}

void imap_steps(const tarn_lang *L, const tarn_imap *m, const tarn_layout *l, int64_t *step) {
  for (uint32_t d = 0; d < m->n; d++) {
    step[d] = 0;
    for (uint32_t a = 0; a < m->nin; a++) step[d] += l->stride[a] * tarn_ix_coef(L, m->e[a], d);
  }
}

uint32_t imap_address(tarn_lang *L, const tarn_imap *m, const tarn_layout *l) {
  uint32_t at = tarn_ix_const(L, tarn_layout_before(l));
  for (uint32_t a = 0; a < m->nin; a++) {
    bool blocked = l->block && a == l->baxis;
    uint32_t e = blocked ? tarn_ix_div(L, m->e[a], l->block, m->dim) : m->e[a];
    uint32_t t = tarn_ix_scale(L, e, l->stride[a], m->dim);
    if (blocked) t = tarn_ix_add(L, t, tarn_ix_mod(L, m->e[a], l->block, m->dim), m->dim);
    at = tarn_ix_add(L, at, t, m->dim);
  }
  return at;
}

bool imap_deepen(tarn_lang *L, tarn_imap *m, uint32_t d, uint32_t n) {
  if (m->nin + n > TARN_MAX_DIMS) return false;
  memmove(m->e + n, m->e, m->nin * sizeof *m->e);
  memmove(m->in + n, m->in, m->nin * sizeof *m->in);
  for (uint32_t i = 0; i < n; i++) {
    m->in[i] = m->dim[d + i];
    m->e[i] = tarn_ix_var(L, d + i, m->dim);
  }
  m->nin = (uint8_t)(m->nin + n);
  return true;
}

bool imap_lead(tarn_lang *L, tarn_imap *m, const tarn_imap *to) {
  int64_t dim[2 * TARN_MAX_DIMS] = {0};
  uint32_t sub[2 * TARN_MAX_DIMS], n = to->n, rest = m->n - to->nin;
  if (n + rest > TARN_MAX_DIMS) return false;
  memcpy(dim, to->dim, n * sizeof *dim);
  memcpy(dim + n, m->dim + to->nin, rest * sizeof *dim);
  memcpy(sub, to->e, to->nin * sizeof *sub);
  for (uint32_t i = 0; i < rest; i++) sub[to->nin + i] = tarn_ix_var(L, n + i, dim);
  imap_subst(L, m, sub, n + rest, dim);
  return true;
}

uint32_t map_with_fill(tarn_lang *L, uint32_t map, uint32_t fill) {
  tarn_imap m = *tarn_imap_get(L, map);
  if (m.nguard == 0 || m.fill == fill) return map;
  m.fill = fill;
  return tarn_map_intern(L, &m);
}

uint32_t map_with_split(tarn_lang *L, uint32_t map, uint32_t ns) {
  tarn_imap m = *tarn_imap_get(L, map);
  if (m.ns == ns) return map;
  m.ns = (uint8_t)ns;
  return tarn_map_intern(L, &m);
}

uint32_t map_project(tarn_lang *L, const int64_t *dim, uint32_t n, const uint32_t *axis,
                     uint32_t naxis) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = (uint8_t)naxis, .fill = TARN_NONE};
  if (n) memcpy(m.dim, dim, n * sizeof *dim);
  for (uint32_t i = 0; i < naxis; i++) {
    m.in[i] = dim[axis[i]];
    m.e[i] = tarn_ix_var(L, axis[i], m.dim);
  }
  return tarn_map_intern(L, &m);
}

uint32_t map_range(tarn_lang *L, const int64_t *dim, uint32_t n, uint32_t axis, int64_t from,
                   int64_t count) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = (uint8_t)n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < n; i++) m.in[i] = dim[i], m.dim[i] = i == axis ? count : dim[i];
  for (uint32_t i = 0; i < n; i++) {
    m.e[i] = tarn_ix_var(L, i, m.dim);
    if (i == axis) m.e[i] = tarn_ix_add(L, m.e[i], tarn_ix_const(L, from), m.dim);
  }
  return tarn_map_intern(L, &m);
}
uint32_t map_same(tarn_lang *L, const int64_t *dim, uint32_t n) {
  uint32_t axis[2 * TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) axis[i] = i;
  return map_project(L, dim, n, axis, n);
}

uint32_t map_embed(tarn_lang *L, const int64_t *dim, uint32_t n, const uint32_t *axis,
                   uint32_t naxis) {
  tarn_imap m = {.ns = (uint8_t)naxis, .n = (uint8_t)naxis, .nin = (uint8_t)n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < naxis; i++) m.dim[i] = dim[axis[i]];
  for (uint32_t i = 0; i < n; i++) m.in[i] = dim[i], m.e[i] = tarn_ix_const(L, 0);
  for (uint32_t i = 0; i < naxis; i++) m.e[axis[i]] = tarn_ix_var(L, i, m.dim);
  return tarn_map_intern(L, &m);
}
