/* Moves of the tuner's search for a GPU: sizes of blocks, of what a thread does and of the sum's
 * trips, which threads are neighbours, slots, paddings. A schedule has many conditions there that
 * its plan knows, so a move is made, and the plan asked. */
#include "compile/target.h"
#include "tune/evolve.h"
#include <math.h>

typedef struct asked {
  const evolve_space *e;
  const tarn_schedule *s;
  double seconds;
} asked;
static void try_plan(tarn_ctx *cx, void *arg) {
  asked *a = arg;
  const evolve_space *e = a->e;
  tarn_cost cost;
  const tarn_target *t = tarn_target_of(cx, e->hw);
  t->check(e->L, e->hw, e->sig, a->s);
  t->price(e->L, e->hw, e->sig, a->s, e->threads, &cost);
  a->seconds = cost.seconds;
}
static bool legal(const evolve_space *e, const tarn_schedule *s, uint32_t from, uint32_t to) {
  (void)from, (void)to;
  asked a = {.e = e, .s = s};
  return tarn_protect(tarn_lang_ctx(e->L), try_plan, &a) == TARN_OK && a.seconds < INFINITY;
}

/* Twice or half as many trips of what is inside of a level: its step, and those outside of it. Of
 * the outermost level of a dim that are elements of a block, of one further in threads or lanes. */
static bool move_size(tarn_stage_sched *s, tarn_hold *hold, uint64_t *random) {
  (void)hold;
  uint32_t i = evolve_below(random, s->nlevel);
  bool twice = evolve_below(random, 2);
  for (uint32_t k = 0; k < s->nlevel; k++) /* a sum's steps that are the lanes of a warp stay so */
    if (s->level[k].dim == s->level[i].dim && s->level[k].kind == TARN_VECTOR) return false;
  for (uint32_t k = 0; k <= i; k++) {
    tarn_level *l = &s->level[k];
    if (l->dim != s->level[i].dim) continue;
    if (!twice && l->step % 2) return false;
    l->step = twice ? 2 * l->step : l->step / 2;
  }
  return true;
}
/* Two loops of one kind change places: which blocks, or threads, follow one another. */
static bool move_order(tarn_stage_sched *s, tarn_hold *hold, uint64_t *random) {
  (void)hold;
  uint32_t i = evolve_below(random, s->nlevel), j = evolve_below(random, s->nlevel);
  tarn_level l = s->level[i];
  bool apart = (i < s->acc) != (j < s->acc);
  if (i == j || apart || l.kind != s->level[j].kind || l.dim == s->level[j].dim) return false;
  s->level[i] = s->level[j];
  s->level[j] = l;
  return true;
}
static bool move_slots(tarn_stage_sched *s, tarn_hold *hold, uint64_t *random) {
  uint8_t slots = (uint8_t)(1 + evolve_below(random, 4));
  if (!s->nhold || hold->slots == slots) return false;
  for (uint32_t i = 0; i < s->nhold; i++) hold[i].slots = slots;
  return true;
}
static bool move_banks(tarn_stage_sched *s, tarn_hold *hold, uint64_t *random) {
  static const uint8_t pads[] = {0, 1, 2, 4, 8};
  if (!s->nhold) return false;
  tarn_hold *h = &hold[evolve_below(random, s->nhold)], was = *h;
  h->skew = s->unit ? evolve_below(random, 5) : 0;
  h->pad = h->skew ? 0 : pads[evolve_below(random, sizeof pads)];
  return h->pad != was.pad || h->skew != was.skew;
}

typedef bool move_fn(tarn_stage_sched *s, tarn_hold *hold, uint64_t *random);
static move_fn *const moves[] = {move_size,  move_size,  move_size,
                                 move_order, move_slots, move_banks};

static bool mutate(const evolve_space *e, tarn_schedule *s, uint64_t *random) {
  tarn_ctx *cx = tarn_lang_ctx(e->L);
  tarn_stage_sched *st = &s->stage[evolve_below(random, s->nstage)], before = *st;
  if (!st->nlevel || s->nstage > 1) return false; /* of several stages: as they were solved */
  tarn_hold *hold = st->nhold ? tarn_copy(cx, st->hold, st->nhold * sizeof *hold) : NULL;
  st->hold = hold;
  bool moved = moves[evolve_below(random, sizeof moves / sizeof *moves)](st, hold, random);
  if (moved && legal(e, s, 0, s->nstage)) return true;
  *st = before;
  return false;
}

const evolve_kind evolve_gpu = {TARN_HW_GPU, mutate, legal};
