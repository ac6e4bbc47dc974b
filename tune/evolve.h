/* Random legal changes of schedules: the moves of the tuner's search, by kind of hardware. */
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
  const struct evolve_kind *kind; /* NULL: schedules of such hardware do not evolve */
  const tarn_nest *nest;
  uint32_t nstage;
  evolve_stage *stage;
  uint32_t threads;
  int64_t lanes, regs;
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_ksig *sig;
} evolve_space;
evolve_space *evolve_space_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              uint32_t threads);

/* One kind of hardware: evolve_cpu.c, evolve_gpu.c; the table of them is in evolve.c. */
typedef struct evolve_kind {
  tarn_hw_kind kind;
  bool (*mutate)(const evolve_space *e, tarn_schedule *s, uint64_t *random);
  /* Is s legal, if it was so before its stages [from, to) changed? */
  bool (*legal)(const evolve_space *e, const tarn_schedule *s, uint32_t from, uint32_t to);
} evolve_kind;
extern const evolve_kind evolve_cpu, evolve_gpu;

uint32_t evolve_below(uint64_t *state, uint32_t n); /* 0 for n < 2 */
static inline bool evolve_is_tile(const tarn_level *l) {
  return l->kind == TARN_UNROLL || l->kind == TARN_VECTOR;
}

/* The step of the next level outside of level i that walks its dim, or the extent. */
int64_t evolve_outer_step(const evolve_stage *t, const tarn_stage_sched *s, uint32_t i);
void evolve_insert(tarn_stage_sched *s, uint32_t at, tarn_level l); /* acc stays */
void evolve_drop(tarn_stage_sched *s, uint32_t at);

/* One random move; false, and the schedule as it was, when the one drawn is not possible. */
bool evolve_mutate(const evolve_space *e, tarn_schedule *s, uint64_t *random);
/* Into s, which has the loops of one parent: of every dim that has levels of the same kinds in
 * both, the steps of the other parent or its own, by chance. */
void evolve_cross(const evolve_space *e, tarn_schedule *s, const tarn_schedule *other,
                  uint64_t *random);
bool evolve_legal(const evolve_space *e, const tarn_schedule *s);
tarn_schedule *evolve_copy(tarn_ctx *cx, const tarn_schedule *s);
#endif
