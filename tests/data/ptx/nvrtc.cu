// Twenty kernels that NVRTC made nvrtc.ptx of (bench/gpu/texts.py); test_ptx_texts.c has the same C for the host.
// Each takes a vector, a vector of results and a number.
extern "C" {
__global__ void grid2(const float *x, float *y, int n) { // blocks and threads of two dimensions
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && j < n) y[j * n + i] = x[i * n + j] + 0.5f * i;
}
__global__ void transpose(const float *x, float *y, int n) { // a tile in shared memory, skewed
  __shared__ float s[16][17];
  int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  s[threadIdx.y][threadIdx.x] = x[i * n + j];
  __syncthreads();
  y[(blockIdx.x * 16 + threadIdx.y) * n + blockIdx.y * 16 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
}
__global__ void scan(const int *x, int *y, int n) { // inclusive, by shuffles
  __shared__ int total[8];
  int t = threadIdx.x, v = t < n ? x[t] : 0;
  for (int d = 1; d < 32; d <<= 1) {
    int up = __shfl_up_sync(~0u, v, d);
    if (t % 32 >= d) v += up;
  }
  if (t % 32 == 31) total[t / 32] = v;
  __syncthreads();
  for (int w = 0; w < t / 32; w++) v += total[w];
  if (t < n) y[t] = v;
}
__global__ void votes(const int *x, int *y, int n) {
  int t = threadIdx.x, odd = x[t] & 1;
  unsigned mask = __ballot_sync(~0u, odd);
  y[t] = __popc(mask & ((1u << t % 32) - 1));
  y[t + n] = __any_sync(~0u, x[t] > 900000) + 2 * __all_sync(~0u, x[t] >= -1000000);
  y[t + 2 * n] = __shfl_sync(~0u, x[t], (t * 7 + 3) & 31);
  y[t + 3 * n] = __shfl_down_sync(~0u, x[t], 4, 8);
}
__global__ void atomics(const int *x, int *y, int n) {
  __shared__ int most, least;
  int t = threadIdx.x;
  if (t == 0) most = -2147483647, least = 2147483647;
  __syncthreads();
  atomicMax(&most, x[t]);
  atomicMin(&least, x[t]);
  atomicAdd(&y[2], x[t] & 15);
  atomicOr(&y[3], x[t] & 0xff00);
  atomicXor(&y[4], x[t]);
  atomicAdd((float *)&y[5], 1.0f);
  __syncthreads();
  if (t == 0) y[0] = most, y[1] = least;
}
__global__ void swaps(const int *x, int *y, int n) { // a chain of products by compare and swap
  int old = atomicAdd(&y[0], 0), seen;
  do {
    seen = old;
    old = atomicCAS(&y[0], seen, seen * 3 + x[0] % 7);
  } while (old != seen);
}
__global__ void wide(const long long *x, long long *y, int n) { // integers of 64 bits
  int i = threadIdx.x;
  long long a = x[i], b = x[n - 1 - i] | 1;
  y[i] = a / b;
  y[i + n] = a % b;
  y[i + 2 * n] = __mul64hi(a, b);
  y[i + 3 * n] = (a >> 7) ^ (long long)((unsigned long long)b >> 9);
  y[i + 4 * n] = (long long)((unsigned long long)a / 10u) + __popcll(a) + __clzll(b) + __ffsll(b);
  y[i + 5 * n] = a > b ? a - b : a * b;
}
__global__ void bits(const unsigned *x, unsigned *y, int n) {
  int i = threadIdx.x;
  unsigned a = x[i], b = x[n - 1 - i];
  y[i] = __brev(a);
  y[i + n] = __byte_perm(a, b, 0x3614);
  y[i + 2 * n] = __funnelshift_l(a, b, i & 31);
  y[i + 3 * n] = __umulhi(a, b);
  y[i + 4 * n] = __sad((int)(a & 0xffff), (int)(b & 0xffff), 5u);
  y[i + 5 * n] = (a & b) | (~a & (b ^ 0x55555555u));
  y[i + 6 * n] = min(a, b) + max(a >> 1, b >> 1);
}
__global__ void dots(const int *x, int *y, int n) { // four bytes at once
  int i = threadIdx.x;
  y[i] = __dp4a(x[i], x[n - 1 - i], i);
  y[i + n] = (int)__dp4a((unsigned)x[i], (unsigned)x[n - 1 - i], (unsigned)i);
}
__global__ void roundings(const float *x, int *y, int n) {
  int i = threadIdx.x;
  float v = 100 * x[i];
  y[i] = __float2int_rn(v);
  y[i + n] = __float2int_rz(v);
  y[i + 2 * n] = __float2int_ru(v);
  y[i + 3 * n] = __float2int_rd(v);
  y[i + 4 * n] = __float_as_int(floorf(v) + 2 * ceilf(v) + 4 * truncf(v) + 8 * rintf(v));
  y[i + 5 * n] = (int)(unsigned char)(signed char)v;
  y[i + 6 * n] = __float_as_int((float)(i * 16777217)); // rounded to f32
}
__global__ void f32_functions(const float *x, float *y, int n) {
  int i = threadIdx.x;
  float a = fabsf(x[i]) + 0.01f;
  y[i] = sqrtf(a);
  y[i + n] = rsqrtf(a);
  y[i + 2 * n] = 1 / a;
  y[i + 3 * n] = exp2f(x[i]);
  y[i + 4 * n] = log2f(a);
  y[i + 5 * n] = cosf(3 * x[i]);
  y[i + 6 * n] = atan2f(x[i], a);
  y[i + 7 * n] = fminf(x[i], 0.25f) + fmaxf(x[i], -0.25f) + copysignf(a, x[i]);
}
__global__ void f64_functions(const double *x, double *y, int n) {
  int i = threadIdx.x;
  double a = fabs(x[i]) + 0.01;
  y[i] = exp(x[i]);
  y[i + n] = log(a);
  y[i + 2 * n] = expm1(x[i]);
  y[i + 3 * n] = log1p(a);
  y[i + 4 * n] = tanh(x[i]);
  y[i + 5 * n] = erf(x[i]);
  y[i + 6 * n] = 1 / a;
  y[i + 7 * n] = sqrt(a) + cbrt(x[i]) + floor(5 * x[i]);
}
__global__ void vectors(const float4 *x, float4 *y, int n) { // 16 bytes at once
  int i = threadIdx.x;
  float4 v = x[i];
  y[n - 1 - i] = make_float4(v.w, v.z + v.x, v.y * 2, v.x);
}
__constant__ float taps[5] = {0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f};
__global__ void stencil(const float *x, float *y, int n) { // constant memory, edges
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
  for (int k = -2; k <= 2; k++)
    if (i + k >= 0 && i + k < n) s += taps[k + 2] * x[i + k];
  if (i < n) y[i] = s;
}
__global__ void choices(const int *x, int *y, int n) { // branches that lanes take apart
  int i = threadIdx.x, v = x[i], s = 0;
  switch (v & 7) {
  case 0: s = v * 3; break;
  case 1: s = v - 5;
  case 2: s += 2; break;
  case 3: for (int k = 0; k < (v & 63); k++) s += k * k; break;
  case 5: s = v / 3; break;
  case 6: return;
  default: s = ~v;
  }
  y[i] = s;
}
__global__ void primes(const int *x, int *y, int n) { // loops that end at different times
  int i = threadIdx.x + 2, count = 0;
  for (int p = 2; p < i; p++) {
    bool prime = true;
    for (int d = 2; d * d <= p; d++)
      if (p % d == 0) {
        prime = false;
        break;
      }
    count += prime;
  }
  y[threadIdx.x] = count + 0 * x[0];
}
__global__ void strided(const float *x, float *y, int n) { // a loop over the grid
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = x[i] * x[i] - y[i];
}
__global__ void softmax(const float *x, float *y, int n) { // a row a block
  __shared__ float part[4];
  const float *row = x + blockIdx.x * n;
  int t = threadIdx.x;
  float most = -1e30f, sum = 0;
  for (int i = t; i < n; i += 128) most = fmaxf(most, row[i]);
  for (int d = 16; d; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
  if (t % 32 == 0) part[t / 32] = most;
  __syncthreads();
  most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
  for (int i = t; i < n; i += 128) sum += expf(row[i] - most);
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  __syncthreads();
  if (t % 32 == 0) part[t / 32] = sum;
  __syncthreads();
  sum = part[0] + part[1] + part[2] + part[3];
  for (int i = t; i < n; i += 128) y[blockIdx.x * n + i] = expf(row[i] - most) / sum;
}
__global__ void heap(const int *x, int *y, int n) { // sorts in local memory
  int v[16], t = threadIdx.x;
  for (int i = 0; i < 16; i++) v[i] = x[(t * 16 + i) % n];
#pragma unroll 1
  for (int i = 1; i < 16; i++)
#pragma unroll 1
    for (int k = i; k && v[k - 1] > v[k]; k--) {
      int u = v[k];
      v[k] = v[k - 1];
      v[k - 1] = u;
    }
  for (int i = 0; i < 16; i++) y[t * 16 + i] = v[i];
}
__global__ void matrices(const float *x, float *y, int n) { // a tensor core's product, tf32
  int t = threadIdx.x, g = t / 4, q = t % 4;
  unsigned a[4], b[2];
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; i++) {
    float v = x[(g + 8 * (i & 1)) * 8 + q + 4 * (i >> 1)];
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(a[i]) : "f"(v));
  }
  for (int i = 0; i < 2; i++) {
    float v = x[128 + (q + 4 * i) * 8 + g];
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(b[i]) : "f"(v));
  }
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  for (int i = 0; i < 4; i++) y[(g + 8 * (i >> 1)) * 8 + 2 * q + (i & 1)] = d[i];
}
}
