/* price: one stage of a kernel on a GPU, by its levels. */
#ifndef TARN_PRICE_GPU_STAGE_H
#define TARN_PRICE_GPU_STAGE_H
#include "price/gpu_tiles.h"

/* Steps of a sum that are loaded at once where nothing else is said. */
enum { GPU_LOADED = 4 };
/* Of a stage with its levels: tiles, and neighbours. */
typedef struct gpu_shape {
  int64_t tile[TARN_MAX_DIMS], left[TARN_MAX_DIMS];
  uint32_t lane;   /* of the last parallel level, or none */
  bool packed;     /* constants along it are */
  bool by_warp;    /* a warp shares the reduction */
  uint32_t sum;    /* a reduce dim of which so many steps are unrolled; 0: none */
  int64_t at_once; /* of them */
  double items, steps;
  double unrolled;      /* steps that are loaded at once */
  gpu_warp warp;        /* the first one */
  const gpu_unit *unit; /* what an item's warp computes with: sizes count instructions; or NULL */
} gpu_shape;
gpu_shape gpu_shape_of(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                       const gpu_unit *u);
/* Which operand of the instruction it is; 2: none. */
uint32_t gpu_unit_operand(const tarn_stage_work *m, const tarn_touch *a, const gpu_shape *x);
/* The block that a kernel's stages run in. */
typedef struct gpu_block {
  const tarn_hw *hw;
  bool team;              /* its threads do all stages of one trip of the shared loops */
  const gpu_order *order; /* of each stage's local buffer; NULL: all keep banks apart */
  double shared;          /* bytes */
} gpu_block;
/* Loads of one step of the reduction (or of a result), and wavefronts of each. */
double gpu_loads(const tarn_stage_work *m, const tarn_touch *a, const gpu_shape *x);
int64_t gpu_wide(const gpu_block *b, const tarn_stage_work *m, const tarn_touch *a,
                 const gpu_shape *x); /* elements of a buffer that are one load, see plan/wide.c */
double gpu_wavefronts(const gpu_block *b, const tarn_stage_work *m, const tarn_touch *a,
                      const gpu_shape *x);
/* Seconds; adds to c. u: what it computes with; or NULL. */
double gpu_stage_cost(const gpu_block *b, const tarn_stage_work *m, const tarn_stage_sched *s,
                      const gpu_unit *u, tarn_cost *c);
#endif
