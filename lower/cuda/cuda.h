/* lower/cuda: what its files share. */
#ifndef TARN_LOWER_CUDA_H
#define TARN_LOWER_CUDA_H
#include "lower/internal.h"

/* Defines what the module calls of libm, as far as there are definitions: functions.c. */
void cuda_functions(low_module *M);
#endif
