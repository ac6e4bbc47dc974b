/* price: kernels on a GPU. The rows of a table by kind of hardware (compile/target.h). */
#ifndef TARN_PRICE_GPU_H
#define TARN_PRICE_GPU_H
#include "price/price.h"

TARN_API tarn_solver *tarn_gpu_solver(tarn_lang *L, const tarn_hw *hw, uint32_t threads);
TARN_API bool tarn_gpu_schedules(tarn_solver *s, const tarn_ksig *k, tarn_schedule_visit *visit,
                                 void *user);
TARN_API void tarn_gpu_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                             const tarn_schedule *s, uint32_t threads, tarn_cost *out);
#endif
