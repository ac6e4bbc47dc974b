/* How the levels of a schedule walk what a kernel reads and writes, with constants packed
 * (tarn_packing_of), but without making that kernel: for features.c. */
#include "plan/plan.h"
#include "price/internal.h"
#include <stdlib.h>
#include <string.h>

/* The steps of all dims of an access once it is packed, and from one tile to the next. */
typedef struct steps {
  int64_t coef[TARN_MAX_DIMS], tiles;
} steps;
tarn_packing loop_packing(const stage_model *m, const acc_model *a, const tarn_blocks *b,
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
  tarn_packing p = loop_packing(m, a, b, s);
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

static void add_levels(const tarn_plan_list *list, const tarn_level *of, const tarn_level **level,
                       tarn_stage_walk *w) {
  for (uint32_t i = 0; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    level[w->nlevel] = &of[i];
    w->level[w->nlevel++] = (tarn_walk_level){l->kind, l->red, l->inside, l->trips};
  }
}
/* The levels of a stage with the kinds that plan/ gives them; what one instruction takes as a group
 * (TARN_DOT) counts as lanes. False: too many. */
static bool levels_of(tarn_ctx *cx, const tarn_schedule *s, uint32_t stage, const stage_model *m,
                      bool apart, const tarn_level **level, tarn_stage_walk *w) {
  const tarn_stage_sched *own = &s->stage[stage];
  tarn_plan_rules r = {.dim = m->dim, .nacc = m->nacc, .reduces = m->reduces, .splits = true};
  tarn_plan_list shared;
  tarn_plan_list mine;
  if (s->nshared + own->nlevel > TARN_WALK_LEVELS) return false;
  tarn_plan_list_shared(cx, s, m->dim, &shared);
  for (uint32_t i = 0; i < shared.n; i++) r.lanes_outside |= shared.level[i].kind == TARN_VECTOR;
  tarn_plan_list_own(cx, &r, s, stage, &mine);
  tarn_plan_list_parallel(&shared, true);
  tarn_plan_list_parallel(&mine, apart);
  for (uint32_t i = 0; i < mine.n; i++)
    if (mine.level[i].kind == TARN_DOT) mine.level[i].kind = TARN_VECTOR;
  tarn_plan_tile t = tarn_plan_tile_of(&mine);
  w->slots = t.slots;
  w->red_lanes = t.red_lanes;
  w->in_memory = t.in_memory;
  w->reduces = m->reduces;
  add_levels(&shared, s->shared, level, w);
  add_levels(&mine, own->level, level, w);
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
    if (!levels_of(cx, s, i, m, apart, level, st)) return NULL;
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
