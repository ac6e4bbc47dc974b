// Small kernels that nvcc made kernels.ptx of (nvcc -ptx -arch=sm_80 -O3); test_ptx_kernels.c has the same C.
#include <cuda_fp16.h>
extern "C" {
__global__ void saxpy(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.5f * x[i] + y[i];
}
__global__ void block_sum(const float *x, float *y, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  float v = 0;
  for (int i = t; i < n; i += 256) v += x[i];
  s[t] = v;
  __syncthreads();
  for (int d = 128; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) y[0] = s[0];
}
__global__ void warp_sum(const float *x, float *y, int n) {
  float v = x[threadIdx.x];
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  y[threadIdx.x] = v;
}
__global__ void tiles(const float *a, float *c, int n) {
  __shared__ float as[16][16], bs[16][17];
  int x = threadIdx.x % 16, y = threadIdx.x / 16, by = blockIdx.x / (n / 16), bx = blockIdx.x % (n / 16);
  float s = 0;
  for (int k = 0; k < n; k += 16) {
    as[y][x] = a[(by * 16 + y) * n + k + x];
    bs[y][x] = a[(k + y) * n + bx * 16 + x];
    __syncthreads();
    for (int i = 0; i < 16; i++) s += as[y][i] * bs[i][x];
    __syncthreads();
  }
  c[(by * 16 + y) * n + bx * 16 + x] = s;
}
__global__ void functions(const float *x, float *y, int n) {
  int i = threadIdx.x;
  y[i] = expf(x[i]);
  y[i + n] = sinf(100 * x[i]);
  y[i + 2 * n] = tanhf(x[i]);
  y[i + 3 * n] = logf(fabsf(x[i]));
  y[i + 4 * n] = erff(x[i]);
  y[i + 5 * n] = powf(fabsf(x[i]), 1.3f);
}
__global__ void integers(const int *x, int *y, int n) {
  int i = threadIdx.x, z = x[n - 1 - i] | 1;
  y[i] = x[i] / z;
  y[i + n] = x[i] % z;
  y[i + 2 * n] = (int)(x[i] * 12345678901ll / (z + 1000000000ll));
  y[i + 3 * n] = __popc(x[i]) + __clz(z);
  y[i + 4 * n] = (x[i] >> 3) ^ ((unsigned)z >> 5);
  y[i + 5 * n] = (x[i] / 7) * 3 + x[i] % 10;
}
__global__ void histogram(const int *x, int *y, int n) { atomicAdd(&y[x[threadIdx.x] & 7], 1); }
__global__ void halves(const __half *x, float *y, int n) {
  int i = threadIdx.x;
  y[i] = __half2float(__hfma(x[i], x[n - 1 - i], x[i]));
  y[i + n] = __half2float(__float2half(__half2float(x[i]) * 2.5f));
}
__global__ void bytes(const unsigned char *x, signed char *y, int n) {
  int v = x[threadIdx.x] - 100;
  y[threadIdx.x] = v > 50 ? 50 : v;
}
__global__ void collatz(const int *x, int *y, int n) {
  int v = (x[threadIdx.x] & 1023) + 1, c = 0;
  for (; v != 1; c++) v = v & 1 ? 3 * v + 1 : v / 2;
  y[threadIdx.x] = c;
}
__global__ void own_array(const int *x, int *y, int n) {
  int a[32], s = 0;
  for (int i = 0; i < 32; i++) a[i] = x[i] * i;
  for (int i = 0; i < 8; i++) s += a[(x[i] + threadIdx.x) & 31];
  y[threadIdx.x] = s;
}
__global__ void doubles(const double *x, double *y, int n) {
  int i = threadIdx.x;
  y[i] = x[i] * x[i] - 1 / x[i];
  y[i + n] = sqrt(fabs(x[i])) + (int)(100 * x[i]);
}
}
