/* PTX that others made (data/ptx) runs in the executor; what its kernels give is what the same C
 * gives on the host. */
#ifndef TARN_TESTS_PTX_TEXT_H
#define TARN_TESTS_PTX_TEXT_H
#include "access/access.h"
#include "base/base.h"
#include "sim/ptx.h"
#include "tests/context.h"
#include <math.h>
#include <string.h>

static const char *folder = TARN_TOP "/tests/data/ptx";

#define N    64
#define MOST 8192
typedef union memory {
  float f[MOST];
  int i[MOST];
  uint32_t u[MOST];
  double d[MOST / 2];
  int64_t w[MOST / 2];
  uint16_t h[2 * MOST];
  int8_t b[4 * MOST];
  uint8_t c[4 * MOST];
} memory;
static memory in, out, want;
static const float *const x = in.f;

static inline void fill(char type) {
  uint64_t seed = 11;
  memset(&out, 0, sizeof out), memset(&want, 0, sizeof want);
  for (int i = 0; i < MOST; i++) {
    double v = tarn_random_unit(&seed);
    if (type == 'f') in.f[i] = (float)v;
    else if (type == 'd' && i < MOST / 2) in.d[i] = v;
    else if (type == 'w' && i < MOST / 2) in.w[i] = (int64_t)(v * 9e18) >> i % 40;
    else if (type == 'h') in.h[2 * i] = tarn_to_f16((float)v), in.h[2 * i + 1] = in.h[2 * i] ^ 9;
    else if (type == 'b') memset(&in.b[4 * i], (int)(127 * v), 4), in.b[4 * i + 1] ^= 3;
    else if (type == 'B')
      in.h[2 * i] = tarn_to_bf16((float)v), in.h[2 * i + 1] = tarn_to_bf16((float)v / 3);
    else if (type == 'i') in.i[i] = (int)(v * 1e6);
  }
}
typedef struct text {
  tarn_ptx *p;
  tarn_ptx_device *d;
  tarn_ptx_counts counts;
} text;
static inline text open_text(tarn_ctx *cx, const char *name) {
  size_t n;
  const char *path = tarn_format(cx, "%s/%s", folder, name), *s = tarn_read_file(cx, path, &n);
  text t = {.p = tarn_ptx_read(cx, s, n, path)};
  t.d = tarn_ptx_device_new(cx, t.p);
  return t;
}

typedef struct ptx_kernel {
  const char *name;
  void (*host)(int n); /* makes `want` */
  char type;           /* of what comes in */
  char result;
  int n;
  uint32_t grid[2], block[2];
} ptx_kernel;
typedef struct ptx_job {
  const char *file;
  const ptx_kernel *k;
} ptx_job;
static inline void ptx_run_job(tarn_ctx *cx, void *arg) {
  const ptx_job *j = arg;
  const ptx_kernel *k = j->k;
  text t = open_text(cx, j->file);
  struct {
    uint64_t in, out;
    int32_t n;
  } param = {.n = k->n};
  param.in = tarn_ptx_map(t.d, "in", &in, sizeof in, TARN_PTX_CONSTANT);
  param.out = tarn_ptx_map(t.d, "out", &out, sizeof out, TARN_PTX_WRITTEN);
  tarn_ptx_launch l = {.entry = tarn_ptx_find(t.p, k->name), .param = &param};
  memcpy(l.grid, (uint32_t[3]){k->grid[0], k->grid[1], 1}, sizeof l.grid);
  memcpy(l.block, (uint32_t[3]){k->block[0], k->block[1], 1}, sizeof l.block);
  ck_assert_uint_ne(l.entry, TARN_NONE);
  ck_assert_uint_eq(tarn_ptx_entry_at(t.p, l.entry)->param_bytes, 20);
  tarn_ptx_run(t.d, &l, &t.counts);
}
static inline void ptx_same(const char *file, const ptx_kernel *k) {
  fill(k->type);
  in_context_of(k->name, ptx_run_job, &(ptx_job){file, k});
  k->host(k->n);
  for (int i = 0; i < MOST; i++)
    if (k->result == 'i')
      ck_assert_msg(out.i[i] == want.i[i], "%s: element %d is %d, not %d", k->name, i, out.i[i],
                    want.i[i]);
    else if (k->result == 'f')
      ck_assert_msg(fabsf(out.f[i] - want.f[i]) <= 2e-6f * (1 + fabsf(want.f[i])),
                    "%s: element %d: %g, not %g", k->name, i, out.f[i], want.f[i]);
    else if (i < MOST / 2) ck_assert_double_eq_tol(out.d[i], want.d[i], 1e-12);
}
#endif
