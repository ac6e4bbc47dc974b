/* Moves of the tuner's search for a GPU. A schedule has many conditions there that its plan knows,
 * so a move is made, and the plan asked.
 *
 * A stage that holds its operands is one of blocks' tiles: sizes of blocks, of what a thread does
 * and of the sum's trips, groups of threads that share a trip, slots, paddings. Of any other, alone
 * or in a team, an item is a thread's or a warp's: its own results, steps of its sum at a time
 * (with a unit, whole instructions), and the order of the buffer that a team's stage leaves. Both:
 * which blocks or threads are neighbours. */
#include "compile/target.h"
#include "plan/plan.h"
#include "tune/evolve.h"
#include <math.h>
#include <string.h>

enum {
  MOST_COPIES = 512, /* of a body in unrolled code */
  MOST_SIDE = 8,     /* results along a dim, and steps of a sum, that one move gives a thread */
  MOST_PARTS = 32
};

/* ---- what is legal ---- */
typedef struct asked {
  const evolve_space *e;
  const tarn_schedule *s;
  double seconds;
} asked;
static void try_plan(tarn_ctx *cx, void *arg) {
  asked *a = arg;
  const evolve_space *e = a->e;
  const tarn_target *t = tarn_target_of(cx, e->hw);
  tarn_cost cost;
  t->check(e->L, e->hw, e->sig, a->s);
  t->price(e->L, e->hw, e->sig, a->s, e->threads, &cost);
  a->seconds = cost.seconds;
}
static bool copies_bearable(const evolve_stage *t, const tarn_stage_sched *s) {
  int64_t copies = 1;
  for (uint32_t i = 0; i < s->nlevel && copies <= MOST_COPIES; i++)
    if (s->level[i].kind == TARN_UNROLL)
      copies *= tarn_ceildiv(evolve_outer_step(t, s, i), s->level[i].step);
  return copies <= MOST_COPIES && s->nlevel <= TARN_MAX_LEVELS / 2;
}
static bool legal(const evolve_space *e, const tarn_schedule *s, uint32_t from, uint32_t to) {
  asked a = {.e = e, .s = s};
  for (uint32_t i = from; i < to; i++)
    if (!copies_bearable(&e->stage[i], &s->stage[i])) return false;
  return tarn_protect(tarn_lang_ctx(e->L), try_plan, &a) == TARN_OK && a.seconds < INFINITY;
}

/* ---- moves of one stage ---- */
typedef struct mover {
  const evolve_space *e;
  const evolve_stage *t;
  tarn_stage_sched *s;
  tarn_hold *hold; /* its holds, to be changed; room for one more */
  bool local;      /* a team's stage whose result stays in the block */
  uint64_t *random;
} mover;
static uint32_t below(const mover *m, uint32_t n) { return evolve_below(m->random, n); }
static bool holds(const tarn_stage_sched *s) {
  return s->nhold && s->hold[0].what == TARN_HOLD_OPERAND;
}
static bool in_tiles(const tarn_stage_sched *s) { return s->unit || holds(s); }
/* Levels that are walked: the last three of an instruction are not. */
static uint32_t walked(const tarn_stage_sched *s) {
  return s->unit && s->nlevel > 3 ? s->nlevel - 3 : s->nlevel;
}
/* The innermost level of dim d and this kind, or nlevel. */
static uint32_t inner(const tarn_stage_sched *s, uint32_t d, tarn_level_kind kind) {
  for (uint32_t i = walked(s); i-- > 0;)
    if (s->level[i].dim == d && s->level[i].kind == kind) return i;
  return s->nlevel;
}
/* Elements of dim d that one body takes. */
static int64_t grain(const tarn_stage_sched *s, uint32_t d) {
  for (uint32_t i = walked(s); i-- > 0 && s->unit;)
    if (s->level[i].dim == d) return s->level[i].step;
  return 1;
}
/* Level i steps by so much, those of its dim outside of it by multiples. */
static void set_step(tarn_stage_sched *s, uint32_t i, int64_t step) {
  for (uint32_t k = i + 1; k-- > 0;) {
    tarn_level *l = &s->level[k];
    if (l->dim != s->level[i].dim) continue;
    l->step = k == i ? step : tarn_ceildiv(l->step, step) * step;
    step = l->step;
  }
}

/* Twice or half as many trips of what is inside of a level: its step, and those outside of it. Of
 * the outermost level of a dim that are elements of a block, of one further in threads or lanes. */
static bool move_size(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t i = below(m, s->nlevel);
  bool twice = below(m, 2);
  for (uint32_t k = 0; k < s->nlevel; k++) /* a sum's steps that are the lanes of a warp stay so */
    if (s->level[k].dim == s->level[i].dim && s->level[k].kind == TARN_VECTOR) return false;
  for (uint32_t k = 0; k <= i; k++) {
    tarn_level *l = &s->level[k];
    if (l->dim != s->level[i].dim) continue;
    if (twice ? l->step >= m->t->dim[l->dim] : l->step % 2) return false;
    l->step = twice ? 2 * l->step : l->step / 2;
  }
  return true;
}
/* Two loops of one kind change places: which blocks, or threads, follow one another. */
static bool move_order(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t i = below(m, s->nlevel), j = below(m, s->nlevel);
  tarn_level l = s->level[i];
  bool apart = (i < s->acc) != (j < s->acc);
  if (i == j || apart || l.kind != s->level[j].kind || l.dim == s->level[j].dim) return false;
  s->level[i] = s->level[j];
  s->level[j] = l;
  return true;
}

/* ---- of tiles that a block holds ---- */
static bool move_slots(mover *m) {
  uint8_t slots = (uint8_t)(1 + below(m, 4));
  if (!in_tiles(m->s) || !m->s->nhold || m->hold->slots == slots) return false;
  for (uint32_t i = 0; i < m->s->nhold; i++) m->hold[i].slots = slots;
  return true;
}
/* Groups of threads share each trip of the innermost pipelined level; twice or half as many. */
static bool move_parts(mover *m) {
  tarn_stage_sched *s = m->s;
  if (!in_tiles(s) || !s->nhold || !m->t->free || s->hold[0].at < 0) return false;
  uint32_t trip = (uint32_t)s->hold[0].at, d = s->level[trip].dim, i = inner(s, d, TARN_TEAM);
  if (d < m->t->nacc) return false;
  int64_t all = s->level[trip].step, parts = i < s->nlevel ? all / s->level[i].step : 1;
  parts = below(m, 2) ? 2 * parts : parts / 2;
  if (!parts || parts > MOST_PARTS || all % parts) return false;
  if (parts == 1) evolve_drop(s, i);
  else if (i < s->nlevel) s->level[i].step = all / parts;
  else evolve_insert(s, trip + 1, (tarn_level){(uint8_t)d, TARN_TEAM, all / parts});
  for (i = trip + 2; i < s->nlevel; i++) { /* what a group does lies inside of its part */
    tarn_level *l = &s->level[i];
    if (l->dim == d && parts > 1) l->step = tarn_min(l->step, all / parts);
  }
  return true;
}

/* ---- of items that threads or warps do ---- */
/* A thread's, or a warp's, results along a dim. */
static bool move_tile(mover *m) {
  tarn_stage_sched *s = m->s;
  if (holds(s) || m->t->nacc == m->t->nshared) return false;
  uint32_t d = m->t->nshared + below(m, m->t->nacc - m->t->nshared);
  uint32_t at = inner(s, d, TARN_PARALLEL), i = inner(s, d, TARN_UNROLL);
  int64_t each = grain(s, d), size = each * (1 + below(m, MOST_SIDE));
  if (at == s->nlevel || s->level[at].step == size) return false;
  if (size > each && size > m->t->dim[d]) return false;
  set_step(s, at, size);
  if (i < s->nlevel) return true;
  i = walked(s);
  while (i > s->acc && s->level[i - 1].kind == TARN_VECTOR) i--;
  evolve_insert(s, i, (tarn_level){(uint8_t)d, TARN_UNROLL, each});
  return true;
}
static uint32_t some_summed(const mover *m) { return m->t->nacc + below(m, m->t->n - m->t->nacc); }
/* The steps of a sum that are loaded at once. */
static bool move_steps(mover *m) {
  tarn_stage_sched *s = m->s;
  if (holds(s) || !m->t->reduces || m->t->n == m->t->nacc) return false;
  uint32_t d = some_summed(m), at = inner(s, d, TARN_SERIAL), i = inner(s, d, TARN_UNROLL);
  int64_t each = grain(s, d), steps = each * (1 + below(m, MOST_SIDE));
  if (at == s->nlevel || inner(s, d, TARN_VECTOR) < s->nlevel) return false;
  if (s->level[at].step == steps || m->t->dim[d] % steps) return false;
  set_step(s, at, steps);
  if (i == s->nlevel) evolve_insert(s, at + 1, (tarn_level){(uint8_t)d, TARN_UNROLL, each});
  return true;
}
/* A sum is one thread's, or the threads of a warp share it. */
static bool move_warp(mover *m) {
  tarn_stage_sched *s = m->s;
  if (in_tiles(s) || !m->t->free || m->t->n == m->t->nacc) return false;
  uint32_t d = some_summed(m), at = inner(s, d, TARN_SERIAL);
  bool shared = s->level[s->nlevel - 1].kind == TARN_VECTOR;
  int64_t lanes = m->e->hw->warps.lanes;
  if (at == s->nlevel || at < s->acc) return false;
  if (shared && s->level[s->nlevel - 1].dim != d) return false;
  if (!shared && m->t->dim[d] < lanes) return false;
  for (uint32_t i = s->nlevel; i-- > s->acc;)
    if (s->level[i].dim >= m->t->nacc && s->level[i].kind != TARN_SERIAL) evolve_drop(s, i);
  for (uint32_t i = s->acc; i < s->nlevel; i++)
    if (s->level[i].dim >= m->t->nacc) s->level[i].step = 1;
  if (shared) return true;
  s->level[inner(s, d, TARN_SERIAL)].step = lanes;
  evolve_insert(s, s->nlevel, (tarn_level){(uint8_t)d, TARN_VECTOR, 1});
  return true;
}

/* ---- banks: of what is held, or of the buffer that a team's stage leaves ---- */
static bool move_banks(mover *m) {
  static const uint8_t pads[] = {0, 1, 2, 4, 8};
  tarn_stage_sched *s = m->s;
  if (!s->nhold && !m->local) return false;
  if (!s->nhold) {
    const char *memory = tarn_hw_mem(m->e->hw, TARN_HW_L1)->name;
    *m->hold = (tarn_hold){.what = TARN_HOLD_RESULT, .slots = 1, .at = -1, .memory = memory};
    s->nhold = 1;
  }
  tarn_hold *h = &m->hold[below(m, s->nhold)], was = *h;
  bool skews = h->what == TARN_HOLD_RESULT ? below(m, 2) : s->unit != NULL;
  h->skew = skews ? pads[below(m, sizeof pads)] : 0;
  h->pad = h->skew ? 0 : pads[below(m, sizeof pads)];
  bool moved = h->pad != was.pad || h->skew != was.skew;
  if (h->what == TARN_HOLD_RESULT && !h->pad && !h->skew) *h = m->hold[--s->nhold];
  return moved;
}

typedef bool move_fn(mover *m);
static move_fn *const moves[] = {move_size,  move_size,  move_size,  move_order,
                                 move_slots, move_banks, move_parts, move_tile,
                                 move_tile,  move_steps, move_warp};

static bool is_local(const evolve_space *e, uint32_t stage) {
  const tarn_nest *n = e->nest;
  return n->nstage > 1 && !n->stage[stage].out && n->stage[stage].nown;
}
static bool mutate(const evolve_space *e, tarn_schedule *s, uint64_t *random) {
  uint32_t i = evolve_below(random, s->nstage);
  tarn_stage_sched *st = &s->stage[i], before = *st;
  if (!st->nlevel) return false;
  tarn_hold *hold = TARN_ARRAY(tarn_lang_ctx(e->L), tarn_hold, st->nhold + 1);
  if (st->nhold) memcpy(hold, st->hold, st->nhold * sizeof *hold);
  st->hold = hold;
  mover m = {e, &e->stage[i], st, hold, is_local(e, i), random};
  bool moved = moves[evolve_below(random, sizeof moves / sizeof *moves)](&m);
  if (!m.t->reduces) st->acc = st->nlevel;
  if (moved && legal(e, s, i, i + 1)) return true;
  *st = before;
  return false;
}

const evolve_kind evolve_gpu = {TARN_HW_GPU, mutate, legal};
