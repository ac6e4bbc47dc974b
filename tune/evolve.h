/* Random legal changes of schedules: the moves of the tuner's search.
 *
 * A stage's levels have three zones: loops outside of the accumulators, reduce loops inside of
 * them, and the register tile (UNROLL and VECTOR). Moves keep the zones, and illegal moves are
 * skipped. */
#ifndef TARN_TUNE_EVOLVE_H
#define TARN_TUNE_EVOLVE_H
#include "tune/tune.h"

typedef struct evolve_stage {
  uint32_t nshared, nacc, n;
  int64_t dim[TARN_MAX_DIMS];
  bool reduces;
  bool free;    /* the reduction may be reordered */
  bool resumes; /* … and go on from a partial result in memory */
} evolve_stage;
typedef struct evolve_space {
  const tarn_nest *nest;
  uint32_t nstage;
  evolve_stage *stage;
  uint32_t threads;
  int64_t lanes, regs;
  /* Of a GPU: other moves (evolve_gpu.c), and what is legal its plan says. */
  const struct tarn_target *gpu; /* NULL: it is none */
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_ksig *sig;
} evolve_space;
evolve_space *evolve_space_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              uint32_t threads);

uint32_t evolve_below(uint64_t *state, uint32_t n); /* 0 for n < 2 */

/* One random move; false, and the schedule as it was, when the one drawn is not possible. */
bool evolve_mutate(const evolve_space *e, tarn_schedule *s, uint64_t *random);
/* Into s, which has the loops of one parent: of every dim that has levels of the same kinds in
 * both, the steps of the other parent or its own, by chance. */
void evolve_cross(const evolve_space *e, tarn_schedule *s, const tarn_schedule *other,
                  uint64_t *random);
/* Steps divide, zones hold, the tile is of a size that registers and code can bear. */
bool evolve_legal(const evolve_space *e, const tarn_schedule *s);
tarn_schedule *evolve_copy(tarn_ctx *cx, const tarn_schedule *s);
/* evolve_gpu.c: the same for a GPU. */
bool evolve_gpu_mutate(const evolve_space *e, tarn_schedule *s, uint64_t *random);
bool evolve_gpu_legal(const evolve_space *e, const tarn_schedule *s);
#endif
