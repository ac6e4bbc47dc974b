/* How the levels of a plan walk what a kernel reads and writes; the prefetches and non-temporal
 * stores that ahead.c chooses for these walks, put into the levels. The same walks of a kernel
 * whose plan has not been made, with constants packed (tarn_packing_of). */
#include "plan/internal.h"
#include <string.h>
/* o: NULL for a local buffer. */
static tarn_walk walk_of(const tarn_plan_access *a, uint32_t nlevel, uint32_t operand,
                         const tarn_plan_operand *o) {
  const tarn_layout *l = o ? &o->layout : NULL;
  tarn_walk w = {.linear = true,
                 .constant = o && o->constant,
                 .result = a->store,
                 .operand = operand,
                 .size = (uint32_t)tarn_dtype_size(a->dtype)};
  w.moved = tarn_plan_lin_deps(a->off), w.local = !l,
  w.bytes = l ? tarn_layout_elems(l) * (int64_t)w.size : 0;
  for (uint32_t i = 0; i < a->off->n; i++) w.linear &= a->off->t[i].kind == TARN_IX_VAR;
  for (uint32_t v = 0; v < nlevel; v++) /* a level's variable is its number */
    if (!tarn_plan_moves_by(a->off, v, &w.by[v])) w.uneven |= 1ull << v;
  return w;
}

static void add_levels(tarn_stage_walk *w, const tarn_plan_list *list) {
  for (uint32_t i = 0; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    w->level[w->nlevel++] = (tarn_walk_level){l->kind, l->red, l->inside, l->trips};
  }
}
/* Of one trip of all shared loops. */
static void add_work(tarn_stage_walk *w, double cycles, const int64_t *dim, uint32_t first,
                     uint32_t nacc, uint32_t n) {
  w->work = w->body = 1 + cycles, w->points = 1;
  for (uint32_t d = first; d < n; d++) {
    w->work *= (double)dim[d];
    if (d < nacc) w->points *= (double)dim[d];
  }
}
/* of: the access of each walk. */
static tarn_stage_walk stage_walk(const tarn_plan_nest *N, uint32_t stage,
                                  const tarn_plan_operand *in, const tarn_plan_operand *out,
                                  tarn_plan_access **of) {
  tarn_plan_stage *st = &N->stage[stage];
  tarn_stage_walk w = {.slots = st->slots,
                       .red_lanes = st->red_lanes,
                       .in_memory = st->in_memory,
                       .reduces = st->red};
  add_levels(&w, &N->list[0]);
  add_levels(&w, &N->list[1 + stage]);
  w.walk = TARN_ARRAY(N->cx, tarn_walk, st->f->nops + 1u);
  add_work(&w, tarn_fx_cycles(N->L, N->hw, st->f->body), st->dim, N->n->depth, st->nacc, st->n);
  for (uint32_t r = 0; r < st->f->nops; r++) {
    const tarn_read *read = &st->s->read[r];
    of[w.nwalk] = &st->read[r];
    w.walk[w.nwalk++] =
        walk_of(&st->read[r], w.nlevel, read->src, read->stage ? NULL : &in[read->src]);
  }
  of[w.nwalk] = &st->result;
  w.walk[w.nwalk++] =
      walk_of(&st->result, w.nlevel, st->out_no, st->s->out ? &out[st->out_no] : NULL);
  return w;
}
/* What was chosen before. */
static void take(tarn_walks *w, const tarn_ahead *a) {
  const tarn_walk *from = a->access;
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t k = 0; k < w->stage[i].nwalk; k++, from++) {
      tarn_walk *to = &w->stage[i].walk[k];
      to->prefetch_by = from->prefetch_by;
      to->into_l2 = from->into_l2;
      to->streaming = from->streaming;
    }
  for (uint32_t i = 0; i < a->n; i++) tarn_push(w->cx, &w->prefetch, a->prefetch[i]);
}
/* Lines ahead are counted in trips, which a loop over an open dim does not count. */
static bool is_open(const tarn_plan_nest *N) {
  for (uint32_t i = 0; i <= N->nstage; i++)
    for (uint32_t l = 0; l < N->list[i].n; l++)
      if (N->list[i].level[l].open && N->list[i].level[l].step > 1) return true;
  return false;
}
void tarn_plan_prefetch_settle(tarn_plan_nest *N, const tarn_ahead *given,
                               const tarn_plan_operand *in, const tarn_plan_operand *out) {
  tarn_ctx *cx = N->cx;
  tarn_walks w = {.cx = cx, .hw = N->hw, .nshared = N->list[0].n, .nstage = N->nstage};
  tarn_plan_access ***of = TARN_ARRAY(cx, tarn_plan_access **, N->nstage);
  w.stage = TARN_ARRAY(cx, tarn_stage_walk, N->nstage);
  for (uint32_t i = 0; i < N->nstage; i++) {
    of[i] = TARN_ARRAY(cx, tarn_plan_access *, N->stage[i].f->nops + 1u);
    w.stage[i] = stage_walk(N, i, in, out, of[i]);
  }
  if (is_open(N)) return;
  if (given) take(&w, given);
  else tarn_choose_prefetches(&w);
  for (uint32_t i = 0; i < N->nstage; i++)
    for (uint32_t k = 0; k < w.stage[i].nwalk; k++) {
      const tarn_walk *walk = &w.stage[i].walk[k];
      tarn_plan_access *a = of[i][k];
      a->prefetch_by = walk->prefetch_by, a->into_l2 = walk->into_l2;
      a->streaming = walk->streaming && a->off->c * walk->size % TARN_WHOLE_LINE == 0;
    }
  for (uint32_t i = 0; i < w.prefetch.n; i++) {
    const tarn_prefetch *k = &w.prefetch.p[i];
    tarn_push(cx, &N->stage[k->by].prefetch, (tarn_plan_prefetch){*k});
  }
}

/* ---------------------------------------------------------------- before there is a plan */
/* The steps of all dims of an access once it is packed, and from one tile to the next. */
typedef struct steps {
  int64_t coef[TARN_MAX_DIMS], tiles;
} steps;
tarn_packing tarn_touch_packing(const tarn_stage_work *m, const tarn_touch *a, const tarn_blocks *b,
                                const tarn_stage_sched *s) {
  tarn_address at = {m->n, m->dim, a->coef, a->start, a->elems};
  if (!a->constant || a->irregular) return (tarn_packing){.dim = TARN_NONE};
  return tarn_packing_of(&at, b, s);
}
static steps steps_of(const tarn_stage_work *m, const tarn_touch *a, const tarn_packing *p) {
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

static tarn_walk packed_walk(const tarn_stage_work *m, const tarn_level *const *level, uint32_t n,
                             const tarn_touch *a, const tarn_blocks *b, const tarn_stage_sched *s) {
  tarn_packing p = tarn_touch_packing(m, a, b, s);
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

/* The levels of a stage with the kinds that plan/ gives them; what one instruction takes as a group
 * (TARN_DOT) counts as lanes. False: too many. */
static bool levels_of(tarn_ctx *cx, const tarn_schedule *s, uint32_t stage,
                      const tarn_stage_work *m, bool apart, const tarn_level **level,
                      tarn_stage_walk *w) {
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
  for (uint32_t i = 0; i < shared.n; i++) level[i] = &s->shared[i];
  for (uint32_t i = 0; i < mine.n; i++) level[shared.n + i] = &own->level[i];
  add_levels(w, &shared);
  add_levels(w, &mine);
  return true;
}

tarn_walks *tarn_work_walks(tarn_ctx *cx, const tarn_hw *hw, const tarn_kernel_work *km,
                            const tarn_schedule *s) {
  tarn_walks *w = TARN_NEW(cx, tarn_walks);
  *w = (tarn_walks){.cx = cx, .hw = hw, .nshared = s->nshared, .nstage = km->nstage};
  w->stage = TARN_ARRAY(cx, tarn_stage_walk, km->nstage);
  bool apart = s->nshared == 0; /* each stage has its own parallel loops */
  for (uint32_t i = 0; i < km->nstage; i++)
    apart = apart && (km->nstage == 1 || !km->stage[i].result.local);
  for (uint32_t i = 0; i < km->nstage; i++) {
    const tarn_stage_work *m = &km->stage[i];
    const tarn_level *level[TARN_WALK_LEVELS];
    tarn_stage_walk *st = &w->stage[i];
    tarn_blocks b = {.lane = TARN_NONE};
    if (!levels_of(cx, s, i, m, apart, level, st)) return NULL;
    if (tarn_packs(km->nstage, m->nshared, m->n - m->nacc))
      b = tarn_schedule_blocks(&s->stage[i], m->nacc, m->dim);
    add_work(st, m->body_cycles, m->dim, m->nshared, m->nacc, m->n);
    st->walk = TARN_ARRAY(cx, tarn_walk, m->nread + 1);
    for (uint32_t r = 0; r < m->nread; r++)
      if (!m->read[r].epi)
        st->walk[st->nwalk++] = packed_walk(m, level, st->nlevel, &m->read[r], &b, &s->stage[i]);
    st->walk[st->nwalk] = packed_walk(m, level, st->nlevel, &m->result, &b, &s->stage[i]);
    st->walk[st->nwalk++].result = true;
  }
  return w;
}
