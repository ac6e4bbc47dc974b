/* price: kernels on a GPU whose blocks hold their operands in shared memory. */
#ifndef TARN_PRICE_GPU_TILES_H
#define TARN_PRICE_GPU_TILES_H
#include "price/internal.h"

/* Multiply-adds of warps that a unit begins in a cycle. */
double gpu_fma_rate(const tarn_hw *hw);
/* The best such schedule of a kernel of one stage: false where there is none. visit may be NULL. */
bool gpu_tiles(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const stage_model *m,
               tarn_schedule_visit *visit, void *user, tarn_stage_sched *out, double *seconds);
/* Seconds of one, launch excluded; adds to c. Raises where the schedule does not fit. */
double gpu_tiles_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const stage_model *m,
                       const tarn_stage_sched *s, tarn_cost *c);
#endif
