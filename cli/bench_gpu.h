/* tarn bench of a GPU's program. */
#ifndef TARN_CLI_BENCH_GPU_H
#define TARN_CLI_BENCH_GPU_H
#include "cli/cli.h"
#include "runtime/cuda.h"

/* Medians of so many rounds: of all launches, and kernel by kernel; prints them. */
void cli_bench_gpu(tarn_ctx *cx, tarn_loaded *m, const tarn_rt_cuda_info *gpu,
                   const tarn_tensor *const *in, const cli_compile *c, uint32_t rounds);
#endif
