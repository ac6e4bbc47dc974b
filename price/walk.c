/* How the levels of a schedule walk what a kernel reads and writes, with constants packed
 * (tarn_packing_of), but without making that kernel: for features.c. lower/ says the same of the
 * kernel that it emits. */
#include "price/internal.h"
#include <stdlib.h>
#include <string.h>

/* The steps of all dims of an access once it is packed, and from one tile to the next. */
typedef struct steps {
  int64_t coef[TARN_MAX_DIMS], tiles;
} steps;
static tarn_packing packing_of(const stage_model *m, const acc_model *a, const tarn_blocks *b,
                               const tarn_stage_sched *s) {
  tarn_address at = {m->n, m->dim, a->coef, a->start, a->elems};
  if (!a->constant || a->irregular) return (tarn_packing){.dim = TARN_NONE};
  return tarn_packing_of(&at, b, s);
}
static steps steps_of(const stage_model *m, const acc_model *a, const tarn_packing *p) {
  steps t = {.tiles = 0};
  memcpy(t.coef, a->coef, sizeof t.coef);
  if (p->dim == TARN_NONE) return t;
  t.tiles = p->layout.stride[p->layout.baxis];
  for (uint32_t e = 0; e < m->n; e++)
    t.coef[e] =
        a->coef[e] % p->span ? a->coef[e] * p->tile : a->coef[e] / p->span * p->layout.stride[0];
  for (uint32_t i = 0; i < p->nby; i++) t.coef[p->by[i]] = p->layout.stride[i];
  return t;
}

static tarn_walk walk_of(const stage_model *m, const tarn_level *const *level, uint32_t n,
                         const acc_model *a, const tarn_blocks *b, const tarn_stage_sched *s) {
  tarn_packing p = packing_of(m, a, b, s);
  steps t = steps_of(m, a, &p);
  tarn_walk w = {.linear = !a->irregular,
                 .local = a->local,
                 .constant = a->constant,
                 .operand = a->src,
                 .size = (uint32_t)a->bytes};
  w.bytes = (p.dim == TARN_NONE ? a->elems : tarn_layout_elems(&p.layout)) * (int64_t)a->bytes;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = level[i]->dim;
    int64_t step = level[i]->step;
    if (!(a->touched >> d & 1)) continue;
    w.moved |= 1ull << i;
    if (a->irregular || (d == p.dim && step > p.tile && step % p.tile))
      w.uneven |= 1ull << i, w.linear = false;
    w.by[i] = d != p.dim ? t.coef[d] * step : step < p.tile ? step : step / p.tile * t.tiles;
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
    if (tarn_packs(km->nstage, m->nshared, m->n - m->nacc))
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
