/* A product of 8 x K and 8 x K, both with the 8 innermost: the usual micro-kernel of a matrix
 * product. tarn calls it for each tile of 8 x 8 (docs/kernels.md). */
#include "runtime/ref.h"
#include <string.h>

typedef float row __attribute__((vector_size(32), aligned(4)));

int tile8(tarn_ref_call *call);
int tile8(tarn_ref_call *call) {
  const tarn_ref_tensor *a = &call->in[0], *b = &call->in[1], *c = &call->out[0];
  const float *x = a->data, *y = b->data;
  float *out = c->data;
  row sum[8] = {{0}};
  for (int64_t k = 0; k < a->dim[1]; k++) {
    row right;
    memcpy(&right, y + k * b->stride[1], sizeof right);
    for (int i = 0; i < 8; i++) sum[i] += x[k * a->stride[1] + i] * right;
  }
  for (int i = 0; i < 8; i++) memcpy(out + i * c->stride[0], &sum[i], sizeof sum[i]);
  return TARN_REF_OK;
}
