/* How the levels of a schedule walk what a kernel reads and writes, with constants packed as
 * tarn_ksig_block() packs them, but without making that kernel: for features.c. lower/ says the
 * same of the kernel that it emits. */
#include "price/internal.h"
#include <stdlib.h>
#include <string.h>

/* How a constant is packed: in tiles of dim d, 0: it lies as it is; the steps of all dims then, and
 * from one tile to the next.
 */
typedef struct pack {
  uint32_t d;
  int64_t tile, coef[TARN_MAX_DIMS], tiles;
} pack;
static pack pack_of(const stage_model *m, const acc_model *a, const tarn_blocks *b,
                    const tarn_stage_sched *s) {
  pack p = {.d = TARN_NONE};
  int64_t reach = 0;
  memcpy(p.coef, a->coef, sizeof p.coef);
  if (!a->constant || a->irregular || b->lane == TARN_NONE) return p;
  bool lane = a->touched >> b->lane & 1;
  int64_t tile = lane ? b->lane_tile : b->row_tile;
  if (!tile || (!lane && b->row == TARN_NONE)) return p;
  uint32_t d = lane ? b->lane : b->row;
  int64_t step = a->coef[d], span = step * m->dim[d];
  if (step < 1 || a->elems % span || a->start % span) return p;
  for (uint32_t e = 0; e < m->n; e++)
    if (e != d && a->coef[e] && a->coef[e] % span)
      reach += a->coef[e] > 0 ? a->coef[e] * (m->dim[e] - 1) : step;
  if (reach >= step) return p;
  uint8_t by[TARN_MAX_DIMS];
  uint32_t n = a->start ? 0 : tarn_coarse_dims(m->n, m->dim, a->coef, d, span, a->elems, by);
  uint32_t outside = tarn_schedule_outside(s, d);
  p.d = d, p.tile = tile, p.tiles = a->elems / m->dim[d] * tile;
  for (uint32_t e = 0; e < m->n; e++)
    if (e != d) p.coef[e] = a->coef[e] % span ? a->coef[e] * tile : a->coef[e] / span * step * tile;
  if (!n) return p;
  p.tiles = step * tile;
  for (uint32_t i = 0; i < n;
       i++) /* those inside of the tiles' loops, then the tiles, then those outside */
    if (!(outside >> by[i] & 1)) p.coef[by[i]] = p.tiles, p.tiles *= m->dim[by[i]];
  int64_t next = p.tiles * tarn_ceildiv(m->dim[d], tile);
  for (uint32_t i = 0; i < n; i++)
    if (outside >> by[i] & 1) p.coef[by[i]] = next, next *= m->dim[by[i]];
  return p;
}

static tarn_walk walk_of(const stage_model *m, const tarn_level *const *level, uint32_t n,
                         const acc_model *a, const tarn_blocks *b, const tarn_stage_sched *s) {
  pack p = pack_of(m, a, b, s);
  tarn_walk w = {.linear = !a->irregular,
                 .local = a->local,
                 .constant = a->constant,
                 .operand = a->src,
                 .size = (uint32_t)a->bytes};
  w.bytes = a->elems * (int64_t)a->bytes;
  if (p.tile)
    w.bytes = w.bytes / m->dim[p.d] * tarn_ceildiv(m->dim[p.d], p.tile) *
              p.tile; /* the last tile is filled up */
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = level[i]->dim;
    int64_t step = level[i]->step;
    if (!(a->touched >> d & 1)) continue;
    w.moved |= 1ull << i;
    if (a->irregular || (d == p.d && step > p.tile && step % p.tile))
      w.uneven |= 1ull << i, w.linear = false;
    w.by[i] = d != p.d ? p.coef[d] * step : step < p.tile ? step : step / p.tile * p.tiles;
  }
  return w;
}

/* Levels as lower/prepare.c settles them, but for those that one instruction takes as a group
 * (TARN_DOT); false: too many. */
static bool settle(const tarn_schedule *s, uint32_t stage, const stage_model *m, bool apart,
                   const tarn_level **level, tarn_stage_walk *w) {
  const tarn_stage_sched *own = &s->stage[stage];
  uint32_t acc = m->reduces && own->acc < own->nlevel ? own->acc : own->nlevel;
  bool leading[2] = {true, apart};
  int64_t left[TARN_MAX_DIMS];
  memcpy(left, m->dim, sizeof left);
  if (s->nshared + own->nlevel > TARN_WALK_LEVELS) return false;
  w->slots = 1, w->red_lanes = 1, w->reduces = m->reduces;
  for (uint32_t i = 0; i < s->nshared + own->nlevel; i++) {
    bool mine = i >= s->nshared;
    const tarn_level *l = level[i] = mine ? &own->level[i - s->nshared] : &s->shared[i];
    tarn_walk_level *t = &w->level[w->nlevel++];
    *t = (tarn_walk_level){.kind = l->kind,
                           .trips = tarn_ceildiv(left[l->dim], l->step),
                           .red = mine && l->dim >= m->nacc};
    t->inside = mine && m->reduces && i - s->nshared >= acc;
    left[l->dim] = l->step;
    if (l->kind == TARN_BLOCK || l->kind == TARN_THREAD) t->kind = TARN_PARALLEL;
    if (l->kind == TARN_DOT) t->kind = TARN_VECTOR;
    if (t->kind != TARN_PARALLEL || t->red || t->inside) leading[mine] = false;
    if (t->kind == TARN_PARALLEL && !leading[mine]) t->kind = TARN_SERIAL;
    if (t->kind == TARN_VECTOR && t->red) w->red_lanes = (uint32_t)t->trips;
    if (!t->inside || t->red || t->kind == TARN_VECTOR) continue;
    w->slots *= t->trips;
    w->in_memory |= t->kind == TARN_SERIAL && t->trips > 1;
  }
  return true;
}

tarn_walks *loop_walks(tarn_ctx *cx, const tarn_hw *hw, const kernel_model *km,
                       const tarn_schedule *s) {
  tarn_walks *w = TARN_NEW(cx, tarn_walks);
  *w = (tarn_walks){.cx = cx, .hw = hw, .nshared = s->nshared, .nstage = km->nstage};
  w->stage = TARN_ARRAY(cx, tarn_stage_walk, km->nstage);
  bool apart = s->nshared == 0; /* each stage has its own parallel loops */
  for (uint32_t i = 0; i < km->nstage; i++)
    apart = apart && (km->nstage == 1 || !km->stage[i].result.local);
  for (uint32_t i = 0; i < km->nstage; i++) {
    const stage_model *m = &km->stage[i];
    const tarn_level *level[TARN_WALK_LEVELS];
    tarn_stage_walk *st = &w->stage[i];
    tarn_blocks b = {.lane = TARN_NONE};
    if (!settle(s, i, m, apart, level, st)) return NULL;
    if (km->nstage == 1 ? !m->nshared : m->nshared && m->n > m->nacc)
      b = tarn_schedule_blocks(&s->stage[i], m->nacc, m->dim);
    st->work = st->body = 1 + m->body_cycles, st->points = 1;
    for (uint32_t d = m->nshared; d < m->n; d++) {
      st->work *= (double)m->dim[d];
      if (d < m->nacc) st->points *= (double)m->dim[d];
    }
    st->walk = TARN_ARRAY(cx, tarn_walk, m->nread + 1);
    for (uint32_t r = 0; r < m->nread; r++)
      if (!m->read[r].epi)
        st->walk[st->nwalk++] = walk_of(m, level, st->nlevel, &m->read[r], &b, &s->stage[i]);
    st->walk[st->nwalk] = walk_of(m, level, st->nlevel, &m->result, &b, &s->stage[i]);
    st->walk[st->nwalk++].result = true;
  }
  return w;
}
