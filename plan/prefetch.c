/* Puts the prefetches and non-temporal stores that ahead.c chooses into the levels of a plan. */
#include "plan/internal.h"
/* l: NULL for a local buffer. */
static tarn_walk walk_of(const tarn_plan_access *a, uint32_t nlevel, uint32_t operand,
                         const tarn_layout *l) {
  tarn_walk w = {.linear = true,
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

/* of: the access of each walk. */
static tarn_stage_walk stage_walk(const tarn_plan_nest *N, uint32_t stage,
                                  const tarn_plan_operand *in, const tarn_plan_operand *out,
                                  tarn_plan_access **of) {
  tarn_plan_stage *st = &N->stage[stage];
  const tarn_plan_level *l[2 * TARN_MAX_LEVELS];
  tarn_stage_walk w = {.slots = st->slots,
                       .red_lanes = st->red_lanes,
                       .in_memory = st->in_memory,
                       .reduces = st->red};
  w.nlevel = tarn_plan_levels(N, 1 + stage, l);
  w.walk = TARN_ARRAY(N->cx, tarn_walk, st->f->nops + 1u);
  w.work = w.body = 1 + tarn_fx_cycles(N->L, N->hw, st->f->body), w.points = 1;
  for (uint32_t d = N->n->depth; d < st->n; d++) {
    w.work *= (double)st->dim[d];
    if (d < st->nacc) w.points *= (double)st->dim[d];
  }
  for (uint32_t i = 0; i < w.nlevel; i++)
    w.level[i] = (tarn_walk_level){
        .kind = l[i]->kind, .red = l[i]->red, .inside = l[i]->inside, .trips = l[i]->trips};
  for (uint32_t r = 0; r < st->f->nops; r++) {
    const tarn_read *read = &st->s->read[r];
    of[w.nwalk] = &st->read[r];
    w.walk[w.nwalk++] =
        walk_of(&st->read[r], w.nlevel, read->src, read->stage ? NULL : &in[read->src].layout);
  }
  of[w.nwalk] = &st->result;
  w.walk[w.nwalk++] =
      walk_of(&st->result, w.nlevel, st->out_no, st->s->out ? &out[st->out_no].layout : NULL);
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
