/* Moves of the tuner's search for a CPU. A stage's levels have three zones: loops outside of the
 * accumulators, reduce loops inside of them, and the register tile (UNROLL and VECTOR). Moves keep
 * the zones, and illegal moves are skipped. */
#include "tune/evolve.h"
#include <string.h>

#define MOST_COPIES 512 /* of a body in unrolled code */

/* ---- what is legal ---- */
/* Loops of one trip are legal, and not made. */
static bool steps_fall(const evolve_stage *t, const tarn_stage_sched *s) {
  for (uint32_t i = 1; i < s->nlevel; i++)
    for (uint32_t j = i; j-- > 0;) {
      if (s->level[j].dim != s->level[i].dim) continue;
      if (s->level[j].step == s->level[i].step) return false;
      break;
    }
  uint32_t at;
  return tarn_levels_check(s->level, s->nlevel, t->nshared, t->n, &at) == TARN_LEVELS_FINE;
}
static bool zones_hold(const evolve_stage *t, const tarn_stage_sched *s) {
  bool leading = true;
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    bool red = l->dim >= t->nacc, parallel = l->kind == TARN_PARALLEL;
    if (parallel && (!leading || red || i >= s->acc)) return false;
    leading = leading && parallel;
    if (!t->reduces) continue;
    if (i >= s->acc && !red && !evolve_is_tile(l)) return false;
    if (i < s->acc && (evolve_is_tile(l) || (red && !t->resumes))) return false;
  }
  return s->acc <= s->nlevel && (t->reduces || s->acc == s->nlevel);
}
static bool tile_bearable(const evolve_space *e, const evolve_stage *t, const tarn_stage_sched *s) {
  int64_t copies = 1, accs = 1, lanes = 1;
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    int64_t outer = evolve_outer_step(t, s, i), trips = tarn_ceildiv(outer, l->step);
    if (l->kind == TARN_VECTOR) lanes *= outer;
    if (l->kind == TARN_VECTOR && (l->step != 1 || lanes > e->lanes || (outer & (outer - 1))))
      return false;
    if (l->kind == TARN_VECTOR && lanes > outer && tarn_schedule_rows(s) == TARN_NONE) return false;
    if (l->kind != TARN_UNROLL) continue;
    copies *= trips;
    if (l->dim < t->nacc) accs *= trips;
    if (copies > MOST_COPIES || accs > MOST_COPIES) return false;
  }
  return !t->reduces || accs <= e->regs;
}
static bool stage_legal(const evolve_space *e, const evolve_stage *t, const tarn_stage_sched *s) {
  return s->nlevel <= TARN_MAX_LEVELS / 2 && steps_fall(t, s) && zones_hold(t, s) &&
         tile_bearable(e, t, s);
}
static bool legal(const evolve_space *e, const tarn_schedule *s, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++)
    if (!stage_legal(e, &e->stage[i], &s->stage[i])) return false;
  return true;
}

/* ---- moves of one stage ---- */
typedef struct mover {
  const evolve_space *e;
  const evolve_stage *t;
  tarn_stage_sched *s;
  uint64_t *random;
} mover;

/* The innermost loop of dim d, or nlevel. */
static uint32_t inner_loop(const tarn_stage_sched *s, uint32_t d) {
  for (uint32_t i = s->nlevel; i-- > 0;)
    if (s->level[i].dim == d && !evolve_is_tile(&s->level[i])) return i;
  return s->nlevel;
}
/* A multiple of `of` that is at most `most`: often one that cuts `most` evenly, more often a small
 * one than a large one. */
static int64_t some_multiple(mover *m, int64_t of, int64_t most) {
  int64_t ways = tarn_ceildiv(most, of), even[64];
  uint32_t n = 0;
  for (int64_t k = 1; k <= ways && n < 64; k++)
    if (ways % k == 0) even[n++] = k;
  if (evolve_below(m->random, 4)) return of * even[evolve_below(m->random, n)];
  int64_t top = evolve_below(m->random, 2) && ways > 8 ? 8 : ways > 256 ? 256 : ways;
  return of * (1 + evolve_below(m->random, (uint32_t)top));
}

/* Another size for the register tile along a dim: as many vectors, or elements, as drawn. Steps of
 * a reduction stand outside of rows and rows outside of vectors: the other way round, what the
 * inner ones read is held in registers for the next outer one, and a tile that filled them takes up
 * to four times as long. */
static bool move_tile(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t d = m->t->nshared + evolve_below(m->random, m->t->n - m->t->nshared),
           at = inner_loop(s, d);
  if (at == s->nlevel || (d >= m->t->nacc && !m->t->free)) return false;
  int64_t base = 1;
  uint32_t unroll = s->nlevel, first = s->nlevel;
  for (uint32_t i = s->nlevel; i-- > at + 1;) {
    bool inside = base > 1 || (d < m->t->nacc && s->level[i].dim >= m->t->nacc &&
                               s->level[i].kind == TARN_UNROLL);
    if (evolve_is_tile(&s->level[i]) && !inside) first = i;
    if (s->level[i].dim != d) continue;
    if (s->level[i].kind == TARN_VECTOR) base = evolve_outer_step(m->t, s, i), first = i;
    else unroll = i;
  }
  int64_t size = 1 + evolve_below(m->random, d >= m->t->nacc ? 8 : (uint32_t)m->e->regs - 2);
  if (size * base > tarn_ceildiv(m->t->dim[d], base) * base) return false;
  if (unroll < s->nlevel) evolve_drop(s, unroll), first -= first > unroll;
  if (size > 1)
    evolve_insert(s, first,
                  (tarn_level){(uint8_t)d, TARN_UNROLL, base}); /* inside of acc: zones stay */
  s->level[at].step = size * base;
  for (uint32_t i = at; i-- > 0;) /* loops outside must be made of whole tiles */
    if (s->level[i].dim == d && s->level[i].step % s->level[at].step) {
      if (s->level[i].step < s->level[at].step) evolve_drop(s, i), at--;
      else s->level[i].step = tarn_ceildiv(s->level[i].step, s->level[at].step) * s->level[at].step;
    }
  return true;
}
/* Another width of the lanes. */
static bool move_lanes(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t v = 0;
  while (v < s->nlevel && s->level[v].kind != TARN_VECTOR) v++;
  if (v == s->nlevel) return false;
  int64_t old = evolve_outer_step(m->t, s, v), lanes = m->e->lanes >> evolve_below(m->random, 3);
  if (lanes < 2 || lanes == old) return false;
  for (uint32_t i = 0; i < v; i++)
    if (s->level[i].dim == s->level[v].dim) s->level[i].step = s->level[i].step / old * lanes;
  return true;
}
/* Another step of a loop that has loops of its dim inside. */
static bool move_step(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t i = evolve_below(m->random, s->nlevel), d = s->level[i].dim, next = i + 1;
  while (next < s->nlevel && s->level[next].dim != d) next++;
  if (next == s->nlevel || evolve_is_tile(&s->level[next]) || evolve_is_tile(&s->level[i]))
    return false;
  s->level[i].step = some_multiple(m, s->level[next].step, evolve_outer_step(m->t, s, i));
  return true;
}
/* One more loop over a dim, outside of those it has. */
static bool move_split(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t d = m->t->nshared + evolve_below(m->random, m->t->n - m->t->nshared),
           at = inner_loop(s, d);
  bool red = d >= m->t->nacc;
  if (at == s->nlevel || (red && !m->t->free) || s->nlevel >= TARN_MAX_LEVELS / 2) return false;
  int64_t step = s->level[at].step, outer = evolve_outer_step(m->t, s, at);
  int64_t size = some_multiple(m, step, outer);
  if (size <= step || size >= outer) return false;
  uint32_t first = 0, to;
  for (uint32_t i = 0; i < at; i++)
    if (s->level[i].dim == d || (red && !m->t->resumes && i < s->acc)) first = i + 1;
  if (first < s->nlevel && s->level[first].kind == TARN_PARALLEL && red)
    while (first < at && s->level[first].kind == TARN_PARALLEL) first++;
  to = first + evolve_below(m->random, at - first + 1);
  bool outside = to < s->acc || (!red && to == s->acc);
  evolve_insert(s, to, (tarn_level){(uint8_t)d, TARN_SERIAL, size});
  s->acc += outside;
  for (uint32_t i = to + 1; i < s->nlevel && s->level[i].kind == TARN_PARALLEL; i++)
    s->level[to].kind = TARN_PARALLEL;
  return true;
}
/* Two loops of one dim become one. */
static bool move_join(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t i = evolve_below(m->random, s->nlevel), d = s->level[i].dim;
  if (evolve_is_tile(&s->level[i]) || inner_loop(s, d) == i) return false;
  evolve_drop(s, i);
  return true;
}
/* A loop changes its place among those of its zone. */
static bool move_order(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t i = evolve_below(m->random, s->nlevel), j = evolve_below(m->random, s->nlevel);
  if (i == j || evolve_is_tile(&s->level[i]) || evolve_is_tile(&s->level[j]) ||
      (i < s->acc) != (j < s->acc))
    return false;
  if (s->level[i].dim >= m->t->nacc && !m->t->free) return false;
  tarn_level l = s->level[i];
  uint8_t kind = s->level[j].kind;
  if (i < j) memmove(s->level + i, s->level + i + 1, (j - i) * sizeof l);
  else memmove(s->level + j + 1, s->level + j, (i - j) * sizeof l);
  s->level[j] = l;
  if (l.kind != kind) /* as many leading parallel loops as there were */
    for (uint32_t k = i < j ? i : j; k <= (i < j ? j : i); k++) s->level[k].kind = TARN_SERIAL;
  return true;
}
/* More or fewer loops run in parallel. */
static bool move_parallel(mover *m) {
  tarn_stage_sched *s = m->s;
  uint32_t loops = 0;
  while (loops < s->acc && !evolve_is_tile(&s->level[loops]) && s->level[loops].dim < m->t->nacc)
    loops++;
  if (m->e->threads < 2 || m->t->nshared || !loops) return false;
  uint32_t want = 1 + evolve_below(m->random, loops < 4 ? loops : 4);
  for (uint32_t i = 0; i < loops; i++) s->level[i].kind = i < want ? TARN_PARALLEL : TARN_SERIAL;
  return true;
}

typedef bool move_fn(mover *m);
static move_fn *const moves[] = {move_tile,  move_tile,  move_tile,    move_step,
                                 move_step,  move_split, move_join,    move_order,
                                 move_order, move_lanes, move_parallel};

static bool mutate(const evolve_space *e, tarn_schedule *s, uint64_t *random) {
  uint32_t i = evolve_below(random, s->nstage);
  tarn_stage_sched before = s->stage[i];
  mover m = {e, &e->stage[i], &s->stage[i], random};
  if (!m.s->nlevel || m.t->n == m.t->nshared) return false;
  bool moved = moves[evolve_below(random, sizeof moves / sizeof *moves)](&m);
  if (!m.t->reduces) m.s->acc = m.s->nlevel;
  if (moved && stage_legal(e, m.t, m.s)) return true;
  s->stage[i] = before;
  return false;
}

const evolve_kind evolve_cpu = {TARN_HW_CPU, mutate, legal};
