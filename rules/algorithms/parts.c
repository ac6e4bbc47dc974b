/* Splits a reduction with fewer results than there are units into parts.
 *
 *   sum over N  =  sum over P of the sums over N / P
 *
 * and likewise for the maximum, the minimum and the product. The parts are results of a kernel of
 * their own, which has work for every unit. A second kernel combines them and contains the
 * epilogue. P is a power of two and divides the first reduced dim for which that is possible. Cf.
 * the partial results of OpenMP's reduction clause and "splitReduction" of MLIR's linalg. */
#include "rules/algorithms/build.h"
#include <string.h>

enum { MOST = 32 };

/* One stage that reduces by what is also how two results are put together. */
static bool reduction(const kern *k) {
  const kstage *st = &k->stage[0];
  if (!kern_single(k) || k->depth || st->reducer == TARN_NONE ||
      st->nown + st->nred >= TARN_MAX_DIMS)
    return false;
  tarn_red_kind kind = tarn_reducer_get(k->L, st->reducer)->kind;
  return kind == TARN_RED_SUM || kind == TARN_RED_MAX || kind == TARN_RED_MIN ||
         kind == TARN_RED_PROD;
}

/* As many parts as give every unit one, where computing them together saves more than joining the
 * units takes: each reads a vector a cycle at best. */
static bool wanted(const tarn_hw *hw, const kern *k, int64_t parts) {
  const kstage *st = &k->stage[0];
  int64_t points = 1, steps = 1;
  for (uint32_t d = 0; d < st->nown; d++) points *= st->own[d];
  for (uint32_t d = 0; d < st->nred; d++) steps *= st->red[d];
  if (!hw || points * parts / 2 >= hw->units || (points * parts < hw->units && parts < MOST))
    return false;
  return (double)points * (double)steps > 2 * hw->barrier * hw->clock * tarn_hw_lanes(hw, TARN_F32);
}

/* From (own, part, reduce loops within a part) to (own, reduce loops), of which d is cut. */
static uint32_t within(const kern *k, uint32_t d, int64_t parts) {
  const kstage *st = &k->stage[0];
  uint32_t n = st->nown + st->nred, own = st->nown;
  tarn_imap m = {
      .ns = (uint8_t)(own + 1), .n = (uint8_t)(n + 1), .nin = (uint8_t)n, .fill = TARN_NONE};
  kern_dims(k, st, true, m.in);
  for (uint32_t i = 0; i < n; i++) m.dim[i + (i >= own)] = m.in[i];
  m.dim[own] = parts, m.dim[own + 1 + d] /= parts;
  for (uint32_t i = 0; i < n; i++) m.e[i] = tarn_ix_var(k->L, i + (i >= own), m.dim);
  uint32_t first = tarn_ix_scale(k->L, tarn_ix_var(k->L, own, m.dim), m.dim[own + 1 + d], m.dim);
  m.e[own + d] = tarn_ix_add(k->L, first, m.e[own + d], m.dim);
  return tarn_map_intern(k->L, &m);
}

/* The parts' results as one kernel; TARN_NONE: a map cannot be composed. */
static uint32_t in_parts(const kern *k, uint32_t d, int64_t parts) {
  kern a = *k;
  kstage *st = &a.stage[0];
  uint32_t map = within(k, d, parts);
  st->epi = TARN_NONE, st->ne = 0;
  for (uint32_t r = 0; r < st->nb; r++)
    if ((st->read[r].map = tarn_map_compose(a.L, map, st->read[r].map)) == TARN_NONE)
      return TARN_NONE;
  st->red[d] /= parts;
  st->own[st->nown++] = parts;
  a.out_ns = st->nown;
  return kern_store(&a);
}

static uint32_t build_parts(rsite *s, int64_t parts) {
  kern k;
  uint32_t d = 0;
  if (!site_root(s, &k) || !reduction(&k)) return TARN_NONE;
  kstage *st = &k.stage[0];
  while (d < st->nred && (st->red[d] % parts || st->red[d] < 2 * parts)) d++;
  if (d == st->nred || (s->e->host->graph && !wanted(s->e->hw, &k, parts))) return TARN_NONE;
  uint32_t some = in_parts(&k, d, parts), axis[TARN_MAX_DIMS], leaf;
  if (some == TARN_NONE || (leaf = kern_leaf(&k, some)) == TARN_NONE) return TARN_NONE;
  int64_t dim[TARN_MAX_DIMS];
  memmove(st->read + 1, st->read + st->nb, st->ne * sizeof *st->read);
  st->nb = st->nred = 1;
  st->red[0] = parts;
  st->body = tarn_fx_hole(k.L, 0);
  uint32_t n = kern_dims(&k, st, true, dim);
  for (uint32_t i = 0; i < n; i++) axis[i] = i;
  st->read[0] =
      (tarn_read){false, leaf, map_with_split(k.L, map_project(k.L, dim, n, axis, n), n - 1)};
  return kern_store(&k);
}
uint32_t build_parts_2(rsite *s) { return build_parts(s, 2); }
uint32_t build_parts_4(rsite *s) { return build_parts(s, 4); }
uint32_t build_parts_8(rsite *s) { return build_parts(s, 8); }
uint32_t build_parts_16(rsite *s) { return build_parts(s, 16); }
uint32_t build_parts_32(rsite *s) { return build_parts(s, 32); }
