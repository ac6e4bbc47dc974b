/* See evolve.h. */
#include "plan/work.h"
#include "tune/evolve.h"
#include <string.h>

uint32_t evolve_below(uint64_t *s, uint32_t n) {
  return n < 2 ? 0 : (uint32_t)(tarn_random(s) % n);
}

/* ---- by kind of hardware ---- */
static const evolve_kind *const kinds[] = {&evolve_cpu, &evolve_gpu};
static const evolve_kind *kind_of(tarn_hw_kind kind) {
  for (uint32_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (kinds[i]->kind == kind) return kinds[i];
  return NULL;
}
bool evolve_legal(const evolve_space *e, const tarn_schedule *s) {
  return s->nstage == e->nstage && e->kind->legal(e, s, 0, s->nstage);
}
bool evolve_mutate(const evolve_space *e, tarn_schedule *s, uint64_t *random) {
  return e->kind->mutate(e, s, random);
}

/* ---- the space ---- */
evolve_space *evolve_space_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              uint32_t threads) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  evolve_space *e = TARN_NEW(cx, evolve_space);
  *e = (evolve_space){.nest = n,
                      .nstage = n->nstage,
                      .threads = threads,
                      .lanes = tarn_hw_lanes(hw, TARN_F32),
                      .regs = hw->vector_regs ? hw->vector_regs : 16,
                      .kind = kind_of(hw->kind),
                      .L = L,
                      .hw = hw,
                      .sig = k};
  e->stage = TARN_ARRAY(cx, evolve_stage, n->nstage + 1);
  for (uint32_t i = 0, out = 0; i < n->nstage; out += n->stage[i++].out) {
    const tarn_stage *s = &n->stage[i];
    evolve_stage *t = &e->stage[i];
    uint32_t red = tarn_fn_get(L, s->fn)->red;
    t->n = tarn_nest_dims(n, s, t->dim);
    t->nshared = n->depth, t->nacc = t->n - s->nred;
    t->reduces = red != TARN_NONE;
    t->free = t->reduces && !k->strict && tarn_reducer_get(L, red)->kind != TARN_RED_CUSTOM;
    t->resumes = tarn_stage_resumes(L, k, s, out);
  }
  return e;
}
tarn_schedule *evolve_copy(tarn_ctx *cx, const tarn_schedule *s) {
  tarn_schedule *c = tarn_copy(cx, s, sizeof *s);
  c->stage = tarn_copy(cx, s->stage, s->nstage * sizeof *s->stage);
  for (uint32_t i = 0; i < s->nstage; i++)
    if (s->stage[i].nhold)
      c->stage[i].hold =
          tarn_copy(cx, s->stage[i].hold, s->stage[i].nhold * sizeof *s->stage[i].hold);
  return c;
}

/* ---- levels ---- */
int64_t evolve_outer_step(const evolve_stage *t, const tarn_stage_sched *s, uint32_t i) {
  for (uint32_t j = i; j-- > 0;)
    if (s->level[j].dim == s->level[i].dim) return s->level[j].step;
  return t->dim[s->level[i].dim];
}
void evolve_insert(tarn_stage_sched *s, uint32_t at, tarn_level l) {
  memmove(s->level + at + 1, s->level + at, (s->nlevel - at) * sizeof *s->level);
  s->level[at] = l, s->nlevel++;
}
void evolve_drop(tarn_stage_sched *s, uint32_t at) {
  memmove(s->level + at, s->level + at + 1, (s->nlevel - at - 1) * sizeof *s->level);
  s->nlevel--;
  if (at < s->acc) s->acc--;
}

/* ---- crossover ---- */
static bool same_kinds(const tarn_stage_sched *a, const tarn_stage_sched *b, uint32_t d) {
  uint32_t j = 0;
  for (uint32_t i = 0; i < a->nlevel; i++) {
    if (a->level[i].dim != d) continue;
    while (j < b->nlevel && b->level[j].dim != d) j++;
    if (j == b->nlevel || evolve_is_tile(&a->level[i]) != evolve_is_tile(&b->level[j]))
      return false;
    j++;
  }
  while (j < b->nlevel && b->level[j].dim != d) j++;
  return j == b->nlevel;
}
void evolve_cross(const evolve_space *e, tarn_schedule *s, const tarn_schedule *other,
                  uint64_t *random) {
  for (uint32_t k = 0; k < s->nstage; k++) {
    tarn_stage_sched *a = &s->stage[k], before = *a;
    const tarn_stage_sched *b = &other->stage[k];
    for (uint32_t d = e->stage[k].nshared; d < e->stage[k].n; d++) {
      if (evolve_below(random, 2) || !same_kinds(a, b, d)) continue;
      for (uint32_t i = 0, j = 0; i < a->nlevel; i++) {
        if (a->level[i].dim != d) continue;
        while (b->level[j].dim != d) j++;
        a->level[i].step = b->level[j++].step;
      }
    }
    if (!e->kind->legal(e, s, k, k + 1)) *a = before;
  }
}
