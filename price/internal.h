/* What the files of price/ share. */
#ifndef TARN_PRICE_INTERNAL_H
#define TARN_PRICE_INTERNAL_H
#include "plan/work.h"
#include "price/price.h"
#include <string.h>

/* ---- tile.c: cycles of register tiles that were asked for before ---- */
#define LOOP_TILES 128
/* What the prices of a stage's schedules share; begun anew for each stage. */
typedef struct loop_room {
  tarn_footprints prints;
  uint8_t has[LOOP_TILES];
  struct {
    tarn_tile_work tile;
    double cycles;
  } known[LOOP_TILES];
} loop_room;
static inline void loop_room_begin(loop_room *r) { memset(r->has, 0, sizeof r->has); }
/* Price of one stage on one unit with the loops outside it (shared levels) counted in `repeat`. */
void loop_stage_cost(const tarn_hw *hw, const tarn_stage_work *m, const tarn_level *shared,
                     uint32_t nshared, const tarn_stage_sched *s, uint32_t threads, tarn_cost *c);
/* The same, but false as soon as it is known to take `most` seconds or more, a barrier included:
 * then *c is a part of its cost. */
bool loop_stage_below(const tarn_hw *hw, const tarn_stage_work *m, const tarn_level *shared,
                      uint32_t nshared, const tarn_stage_sched *s, uint32_t threads, double most,
                      loop_room *room, tarn_cost *c);
/* Cycles of all its register tiles on one unit, in `repeat` trips of the shared loops (tile.c). */
double loop_cycles(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                   double repeat, loop_room *room);
/* Computing and transfers, which overlap, but not perfectly; *binds (may be NULL): the level whose
 * transfers take longest, left alone when computing does. */
double loop_overlapped(const tarn_hw *hw, const tarn_cost *c, uint32_t *binds);
/* tarn_cost_of(); cached: weights come from the last-level cache. */
void loop_cost(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
               uint32_t threads, bool cached, tarn_cost *out);
/* Threads that the outermost parallel levels keep busy: threads × (iterations / rounds × threads).
 */
double loop_parallel(const tarn_stage_work *m, const tarn_level *level, uint32_t n,
                     uint32_t threads);
#endif
