/* From a schedule to loops over tiles and places of what is held, and from these to a schedule. */
#include "plan/unit_internal.h"
#include <string.h>

/* ---------------------------------------------------------------- places */
bool tarn_unit_places(const tarn_unit_plan *p, tarn_unit_place *out) {
  int64_t used[TARN_UNIT_MEMORIES] = {0};
  int64_t at[TARN_MAX_LEVELS] = {0};
  const char *shadows = p->hw->mem[p->tensor[p->result].memory].shadow_of;
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    tarn_unit_box b;
    unit_box_at(p, x->at_loop, at, &b);
    out->entries[t] = tarn_unit_most_entries(x, &b);
    bool shared = t == p->result && (shadows || x->memory == p->tensor[p->sums].memory);
    shared |= x->what == TARN_UNIT_ONTO;
    out->first[t] = shared ? out->first[p->sums] : used[x->memory];
    if (shared) out->entries[t] = out->entries[p->sums];
    else used[x->memory] += out->entries[t] * x->slots;
  }
  for (uint32_t i = 0; i < p->hw->nmem; i++) {
    out->memory = i;
    out->needs = used[i];
    if (used[i] > tarn_hw_depth(&p->hw->mem[i]) && p->hw->mem[i].managed) return false;
  }
  return true;
}

/* ---------------------------------------------------------------- schedules */
static const tarn_hold *hold_of(const tarn_unit_plan *p, const tarn_stage_sched *s, uint32_t t) {
  const tarn_unit_tensor *x = &p->tensor[t];
  for (uint32_t i = 0; i < s->nhold; i++) {
    const tarn_hold *h = &s->hold[i];
    bool same = h->what == TARN_HOLD_OPERAND ? x->read == h->operand && x->source == TARN_NONE
                : h->what == TARN_HOLD_ACCUMULATORS ? t == p->sums
                                                    : t == p->result;
    if (same && !strcmp(h->memory, p->hw->mem[x->memory].name)) return h;
  }
  return NULL;
}
/* Levels up to the innermost one that something is held at are loops over tiles. */
static uint32_t tile_levels(const tarn_stage_sched *s) {
  int32_t last = -1;
  for (uint32_t i = 0; i < s->nhold; i++) last = s->hold[i].at > last ? s->hold[i].at : last;
  return (uint32_t)(last + 1);
}
static void held_so(tarn_unit_plan *p, uint32_t t, const tarn_hold *h) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  if (!h) return;
  p->tensor[t].fresh = h->fresh;
  if (h->fresh && t >= p->sums)
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: no factor is held in %s: it is never fresh",
               h->memory);
  if (h->slides || h->npart || h->pad || h->skew)
    tarn_raise(cx, TARN_BAD_INPUT,
               "schedule: %s is a memory of %s, where nothing slides, has an order, pad or skew",
               h->memory, p->hw->name);
  if (h->gaps && (t || !tarn_unit_bridge(p)))
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: what is held in %s cannot come with gaps", h->memory);
  if (h->unpadded && (t || !tarn_unit_unpad(p)))
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: what is held in %s cannot be unpadded", h->memory);
}
void tarn_unit_schedule(tarn_unit_plan *p, const tarn_schedule *sched) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_stage_sched *s = &sched->stage[sched->nstage - 1];
  uint32_t of_level[TARN_MAX_LEVELS + 1]; /* loops outside of, and at, each level */
  int64_t left[TARN_MAX_DIMS];
  tarn_unit_place at;
  p->nloop = 0;
  memcpy(left, p->dim, sizeof left);
  for (uint32_t i = 0; i < tile_levels(s); i++) {
    const tarn_level *l = &s->level[i];
    int64_t step = tarn_ceildiv(l->step, p->unit[l->dim]);
    if (l->step % p->unit[l->dim] && l->step < p->extent[l->dim])
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: level %u steps %lld elements of d%u, a unit takes %lld at once", i,
                 (long long)l->step, l->dim, (long long)p->unit[l->dim]);
    if (step < left[l->dim]) p->loop[p->nloop++] = (tarn_unit_loop){l->dim, step};
    left[l->dim] = tarn_min(left[l->dim], step);
    of_level[i] = p->nloop;
  }
  for (uint32_t t = 0; t < p->ntensor; t++) {
    tarn_unit_tensor *x = &p->tensor[t];
    const tarn_hold *h = hold_of(p, s, t);
    bool operand = x->what == TARN_UNIT_ROWS || x->what == TARN_UNIT_COLUMNS;
    x->at_loop = h && h->at >= 0 ? of_level[h->at] : h ? 0 : operand ? p->nloop : TARN_NONE;
    x->slots = h ? h->slots : 1;
    held_so(p, t, h);
    if (x->slots > TARN_UNIT_SLOTS)
      tarn_raise(cx, TARN_BAD_INPUT, "schedule: %u slots in %s, %d are the most", x->slots,
                 p->hw->mem[x->memory].name, TARN_UNIT_SLOTS);
  }
  tarn_unit_tensor *sums = &p->tensor[p->sums];
  for (uint32_t t = 0; t < p->ntensor; t++)
    if (p->tensor[t].at_loop == TARN_NONE || t == p->result) { /* or each part when it ends */
      uint32_t outside = sums->at_loop == TARN_NONE ? 0 : sums->at_loop;
      bool parts = t == p->result && p->tensor[t].at_loop == p->nloop && p->nloop > outside;
      p->tensor[t].at_loop = parts ? p->nloop : outside;
      if (t == p->result) p->tensor[t].slots = sums->slots;
    }
  for (uint32_t t = 0; t < p->ntensor; t++) /* what an addend is made of comes with it */
    if (p->tensor[t].source != TARN_NONE)
      p->tensor[p->tensor[t].source].at_loop = p->tensor[t].at_loop;
  for (uint32_t i = 0; i < sums->at_loop; i++)
    if (p->loop[i].dim >= p->nacc)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: the accumulators are held inside of a loop over d%u, which is summed",
                 p->loop[i].dim);
  if (!tarn_unit_places(p, &at))
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: what is held in %s takes %lld bytes, it has %lld",
               p->hw->mem[at.memory].name, (long long)at.needs * p->hw->mem[at.memory].entry,
               (long long)p->hw->mem[at.memory].capacity);
}

const char *tarn_unit_make(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                           const tarn_schedule *s, tarn_unit_plan *p) {
  const char *why;
  if (!tarn_unit_match(L, hw, k, p, &why)) return why;
  tarn_unit_schedule(p, s);
  unit_keep_program(p);
  return NULL;
}

static tarn_hold hold_for(const tarn_unit_plan *p, uint32_t t) {
  const tarn_unit_tensor *x = &p->tensor[t];
  tarn_hold h = {.memory = p->hw->mem[x->memory].name, .slots = (uint8_t)x->slots};
  h.what = t == p->sums     ? TARN_HOLD_ACCUMULATORS
           : t == p->result ? TARN_HOLD_RESULT
                            : TARN_HOLD_OPERAND;
  h.operand = (uint8_t)(x->read == TARN_NONE ? 0 : x->read);
  h.at = (int32_t)x->at_loop - 1;
  h.fresh = x->fresh;
  h.unpadded = x->unpadded;
  h.gaps = x->gaps;
  return h;
}
/* A stage that the unit computes along with the last one: its loops as they are. */
static void whole_stage(const tarn_nest *n, uint32_t stage, tarn_stage_sched *g) {
  const tarn_stage_dims d = tarn_stage_dims_of(n, stage);
  for (uint32_t i = n->depth; i < d.n; i++) tarn_level_add(g, i, TARN_SERIAL, 1);
}
const tarn_schedule *tarn_unit_scheduled(const tarn_unit_plan *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_schedule *s = TARN_NEW(cx, tarn_schedule);
  const tarn_nest *nest = tarn_nest_get(p->L, p->k->nest);
  uint32_t last = nest->nstage - 1;
  tarn_stage_sched *stage = TARN_ARRAY(cx, tarn_stage_sched, nest->nstage);
  tarn_stage_sched *g = &stage[last];
  tarn_hold *hold = TARN_ARRAY(cx, tarn_hold, p->ntensor);
  tarn_unit *u = TARN_NEW(cx, tarn_unit);
  for (uint32_t i = 0; i < p->nloop; i++)
    tarn_level_add(g, p->loop[i].dim, TARN_SERIAL, p->loop[i].step * p->unit[p->loop[i].dim]);
  g->acc = p->tensor[p->sums].at_loop;
  for (uint32_t i = 0; i < last; i++) whole_stage(nest, i, &stage[i]);
  for (uint32_t d = 0; d < nest->depth; d++)
    s->shared[s->nshared++] = (tarn_level){(uint8_t)d, TARN_SERIAL, 1};
  for (uint32_t d = nest->depth; d < p->n; d++) {
    if (p->unit[d] > 1) tarn_level_add(g, d, TARN_SERIAL, p->unit[d]);
    tarn_level_add(g, d, TARN_SERIAL, 1);
  }
  for (uint32_t t = 0; t < p->ntensor; t++)
    if (p->tensor[t].what == TARN_UNIT_SUMS || p->tensor[t].what == TARN_UNIT_RESULT ||
        (p->tensor[t].read != TARN_NONE && p->tensor[t].source == TARN_NONE &&
         p->tensor[t].what != TARN_UNIT_ONTO))
      hold[g->nhold++] = hold_for(p, t);
  *u = (tarn_unit){.name = p->hw->intrin[p->product].name,
                   .rows = p->rows,
                   .columns = p->columns,
                   .sum = p->sum};
  g->hold = hold;
  g->unit = u;
  s->nstage = nest->nstage;
  s->stage = stage;
  return s;
}
