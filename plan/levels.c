/* The levels of a schedule with their kinds in code, and the register tile that they make. Excess
 * lanes become copies or loops, and excess copies become loops. Only leading levels are parallel,
 * and none of a reduction. */
#include "plan/plan.h"
#include <string.h>

#define MAX_LANES  128
#define MAX_UNROLL 1536 /* copies of a body */

static void read_levels(tarn_ctx *cx, tarn_plan_list *list, const tarn_level *level, uint32_t n,
                        const int64_t *dim, uint32_t open, uint32_t first_var) {
  int64_t left[TARN_MAX_DIMS];
  memcpy(left, dim, sizeof left);
  list->n = n;
  list->parallel = 0;
  if (n > TARN_MAX_LEVELS || first_var + n > PLAN_MAX_VARS)
    tarn_raise(cx, TARN_INTERNAL, "plan: a schedule of more than %d levels", PLAN_MAX_VARS);
  for (uint32_t i = 0; i < n; i++) {
    tarn_plan_level *l = &list->level[i];
    *l = (tarn_plan_level){.dim = level[i].dim, .kind = level[i].kind, .step = level[i].step};
    l->var = first_var + i;
    l->trips = tarn_ceildiv(left[l->dim], l->step);
    l->open = open >> l->dim & 1;
    l->extent = left[l->dim];
    open &= ~(1u << l->dim);
    left[l->dim] = l->step;
  }
}

/* Once the levels have their kinds. */
static void settle_tiers(tarn_plan_list *list, uint32_t brief) {
  for (uint32_t i = 0; i < list->n; i++) {
    tarn_plan_level *l = &list->level[i];
    int64_t lanes = 1;
    if (!l->open) continue;
    for (uint32_t k = i + 1; k < list->n; k++)
      if (list->level[k].dim == l->dim && list->level[k].kind == TARN_VECTOR)
        lanes = list->level[k].trips;
    l->tier[l->ntier++] = l->step;
    if (!l->red && !(brief >> l->dim & 1)) continue;
    if (lanes > 1 && lanes < l->step) l->tier[l->ntier++] = lanes;
    if (l->step > 1) l->tier[l->ntier++] = 1;
    if (!l->red) l->trips = tarn_ceildiv(l->extent, tarn_plan_step(l));
  }
}

bool tarn_plan_lanes_are_rows(const tarn_plan_list *list) {
  const tarn_plan_level *l = list->n < 2 ? NULL : &list->level[list->n - 2];
  return l && l[0].kind == TARN_VECTOR && l[1].kind == TARN_VECTOR && l[0].dim != l[1].dim &&
         !l[0].red && !l[1].red && l[0].step == 1 && l[1].step == 1 &&
         l[0].trips * l[1].trips <= MAX_LANES;
}
/* taken: levels outside are lanes. */
static void settle_vector(tarn_plan_list *list, bool splits, bool own, bool taken) {
  bool rows = own && !taken && tarn_plan_lanes_are_rows(list);
  for (uint32_t i = 0; i < list->n; i++) {
    tarn_plan_level *l = &list->level[i];
    if (l->kind != TARN_VECTOR) continue;
    bool fits = l->trips <= MAX_LANES && l->step == 1;
    if (l->red && !(l->inside && splits)) fits = false;
    if (fits && (rows ? i + 2 >= list->n : !taken)) taken = true;
    else l->kind = l->trips <= 16 ? TARN_UNROLL : TARN_SERIAL;
  }
}
/* Code may not grow without bound: what is unrolled too often becomes a loop. */
static void settle_unroll(tarn_plan_list *list) {
  int64_t copies = 1;
  for (uint32_t i = list->n; i-- > 0;) {
    tarn_plan_level *l = &list->level[i];
    if (l->kind != TARN_UNROLL) continue;
    if (l->trips > MAX_UNROLL || copies * l->trips > MAX_UNROLL) l->kind = TARN_SERIAL;
    else copies *= l->trips;
  }
}

void tarn_plan_list_shared(tarn_ctx *cx, const tarn_schedule *s, const int64_t *dim,
                           tarn_plan_list *out) {
  read_levels(cx, out, s->shared, s->nshared, dim, s->open, 0);
  settle_vector(out, false, false, false);
  settle_unroll(out);
  settle_tiers(out, s->brief);
}
void tarn_plan_list_own(tarn_ctx *cx, const tarn_plan_rules *r, const tarn_schedule *s,
                        uint32_t stage, tarn_plan_list *out) {
  const tarn_stage_sched *own = &s->stage[stage];
  uint32_t acc = tarn_plan_acc(own, r->reduces);
  read_levels(cx, out, own->level, own->nlevel, r->dim, own->open, s->nshared);
  for (uint32_t i = 0; i < out->n; i++) {
    tarn_plan_level *l = &out->level[i];
    l->red = l->dim >= r->nacc;
    l->inside = r->reduces && i >= acc;
    if (l->kind == TARN_PARALLEL && (l->red || l->inside)) l->kind = TARN_SERIAL;
    if (l->kind == TARN_TEAM && !(r->team && l->inside && (!l->red || r->splits)))
      l->kind = TARN_SERIAL;
  }
  settle_vector(out, r->splits, true, r->lanes_outside);
  settle_unroll(out);
  settle_tiers(out, own->brief);
}
uint32_t tarn_plan_acc(const tarn_stage_sched *s, bool reduces) {
  return reduces && s->acc < s->nlevel ? s->acc : s->nlevel;
}
void tarn_plan_list_parallel(tarn_plan_list *list, bool allowed) {
  while (allowed && list->parallel < list->n && list->level[list->parallel].kind == TARN_PARALLEL)
    list->parallel++;
  for (uint32_t i = list->parallel; i < list->n; i++)
    if (list->level[i].kind == TARN_PARALLEL) list->level[i].kind = TARN_SERIAL;
}

tarn_plan_tile tarn_plan_tile_of(const tarn_plan_list *list) {
  tarn_plan_tile t = {.slots = 1, .chains = 1, .lanes = 1, .red_lanes = 1};
  for (uint32_t i = 0; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    if (l->kind == TARN_VECTOR) t.lanes *= (uint32_t)l->trips;
    if (l->kind == TARN_VECTOR && l->red) t.red_lanes = (uint32_t)l->trips;
    if (!l->inside || l->kind == TARN_VECTOR || l->kind == TARN_TEAM) continue;
    if (l->kind == TARN_DOT && !l->red) continue; /* an instruction's rows and columns */
    if (l->red) t.chains *= l->kind == TARN_UNROLL ? l->trips : 1;
    else if (__builtin_mul_overflow(t.slots, l->trips, &t.slots)) t.slots = INT64_MAX;
    t.in_memory |= !l->red && l->kind == TARN_SERIAL && l->trips > 1;
  }
  return t;
}
