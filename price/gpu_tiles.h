/* price: kernels on a GPU whose blocks hold their operands in shared memory. */
#ifndef TARN_PRICE_GPU_TILES_H
#define TARN_PRICE_GPU_TILES_H
#include "plan/plan.h"
#include "price/internal.h"

/* ---- gpu_requests.c ---- */
enum { GPU_LANES = 32 };
/* The lanes of a warp that have something to do: the point of a stage's dims at which each begins.
 */
typedef struct gpu_warp {
  uint32_t n;
  int64_t at[GPU_LANES][TARN_MAX_DIMS];
} gpu_warp;
/* How a buffer between stages lies in shared memory: rows of its last dim, padded or skewed. */
typedef struct gpu_order {
  int64_t row;
  uint32_t pad, skew;
} gpu_order;
/* Wavefronts of shared memory, and sectors of another, of one request for so many bytes a lane. */
double gpu_banks(const tarn_hw *hw, const int64_t *byte, uint32_t n, int64_t bytes);
double gpu_sectors(const tarn_hw *hw, const int64_t *byte, uint32_t n, int64_t bytes);
/* The first warp of a stage's threads; where it reads or writes, order NULL: as it lies. */
void gpu_warp_of(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                 gpu_warp *w);
void gpu_warp_bytes(const tarn_stage_work *m, const tarn_touch *a, const gpu_order *o,
                    const gpu_warp *w, int64_t *byte);
/* Sectors that an operand touches where its dims have these extents. */
double gpu_box_sectors(const tarn_hw *hw, const tarn_stage_work *m, const tarn_touch *a,
                       const int64_t *span);

/* ---- gpu_unit.c ---- */
/* An instruction of a warp as a stage of several has it: which reads are its operands; its rows,
 * columns and sum: dims, extents; registers of operands and result, elements in each; the points of
 * the lanes' first ones. */
typedef struct gpu_unit {
  const tarn_hw_intrinsic *is;
  uint32_t read[2], dim[3];
  int64_t size[3], reg[3], each[3]; /* reg: loads, of so many elements each */
  bool rounds;                      /* each element that is loaded */
  bool pairs, twos;                 /* twos: some operand has pairs */
  gpu_warp lanes[3];
} gpu_unit;
/* False where it does not compute the stage. */
bool gpu_unit_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, uint32_t stage,
                 const tarn_stage_work *m, const tarn_unit *is, gpu_unit *u);
/* All that do; how many, at most so many. */
uint32_t gpu_units(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, uint32_t stage,
                   const tarn_stage_work *m, gpu_unit *out, uint32_t most);
/* A warp's tile: instructions along rows and columns; steps of the sum that are unrolled. */
void gpu_unit_levels(tarn_ctx *cx, const tarn_stage_work *m, const gpu_unit *u, const int64_t *tile,
                     tarn_stage_sched *s);

/* ---- gpu_count.c ---- */
enum { GPU_UNROLLED = 8, GPU_STORE_ISSUE = 3 };
/* Registers of a thread, fitted to what ptxas gives (bench/gpu/registers.py): those of no tile; of
 * a copy's addresses; steps of a sum, not of an instruction, whose loads are in flight. */
enum { GPU_OTHER_REGISTERS = 28, GPU_COPY_REGISTERS = 5, GPU_STEPS = 2 };
/* Of one block and one trip, or of its end. */
typedef struct gpu_counts {
  double blocks, threads, warps, trips;
  double steps, tile;  /* of a thread in a trip: steps of the sum; accumulators */
  double loads;        /* of a thread in a step */
  double wavefronts;   /* of the block in a trip */
  double copies, wide; /* of a thread in a trip; of them, instructions beside the copies */
  double sectors;      /* of the block in a trip */
  double end_sectors, end_issue;
  double shared, registers, ahead;
  double parts;        /* groups of threads that have each a part of the sums */
  double bodies, rate; /* multiply-adds of a warp in a step, or matrix products; begun in a cycle */
} gpu_counts;
double gpu_registers(const gpu_counts *c, double loads, bool unit);
/* What all of it takes; cost may be NULL. */
double gpu_seconds(const tarn_hw *hw, const tarn_stage_work *m, const gpu_counts *c,
                   tarn_cost *cost);
/* The plan of a kernel, but for its loop program; raises where the schedule does not fit. */
tarn_plan_nest *gpu_plan(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                         const tarn_schedule *s);
/* Counts it request by request. cycles: of what is held of each operand, as far as its order and
 * padding change them. */
void gpu_count(const tarn_plan_nest *N, const tarn_stage_work *m, gpu_counts *c, double *cycles);
/* Multiply-adds of warps that a unit begins in a cycle. */
double gpu_fma_rate(const tarn_hw *hw);
/* The best such schedule of a kernel of one stage: false where there is none. visit may be NULL. */
bool gpu_tiles(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_stage_work *m,
               tarn_schedule_visit *visit, void *user, tarn_stage_sched *out, double *seconds);
/* Seconds of one, launch excluded; adds to c. Raises where the schedule does not fit. */
double gpu_tiles_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                       const tarn_stage_work *m, const tarn_stage_sched *s, tarn_cost *c);
#endif
