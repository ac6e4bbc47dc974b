/* tarn bench of a GPU's program: the driver's events, with the L2 cache overwritten before each
 * round (runtime/cuda.h). */
#include "cli/bench_gpu.h"
#include <string.h>

typedef struct timed {
  const char *name;
  double seconds; /* median; 0: it runs on the host */
  cli_work work;
} timed;
typedef struct timing {
  double whole, least, wall; /* launches; with copies and the host's kernels */
  uint32_t n;
  timed *kernel;
} timing;

static double bytes(const timed *x) { return x->work.read + x->work.write; }
static double rate(double work, double seconds) { return seconds > 0 ? work / seconds / 1e9 : 0; }
static void show_text(const tarn_rt_cuda_info *gpu, const timing *t) {
  printf("%s: %.4g ms median, %.4g ms min; %.4g ms with copies\n", gpu->name, 1e3 * t->whole,
         1e3 * t->least, 1e3 * t->wall);
  int wide = 0;
  for (uint32_t k = 0; k < t->n; k++) wide = (int)tarn_max(wide, (int)strlen(t->kernel[k].name));
  for (uint32_t k = 0; k < t->n; k++) {
    const timed *x = &t->kernel[k];
    if (x->seconds > 0)
      printf("  %-*s %11.2f us %9.1f GFLOP/s %8.1f GB/s\n", wide, x->name, 1e6 * x->seconds,
             rate(x->work.flop, x->seconds), rate(bytes(x), x->seconds));
    else printf("  %-*s on the host\n", wide, x->name);
  }
}
static void show_json(tarn_ctx *cx, const tarn_rt_cuda_info *gpu, const timing *t) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "gpu", gpu->name, "architecture", gpu->architecture, "driver", gpu->driver);
  tarn_json_object(j, "seconds", "median", t->whole, "min", t->least, "wall", t->wall);
  tarn_json_open(j, "kernels", '[');
  for (uint32_t k = 0; k < t->n; k++) {
    const timed *x = &t->kernel[k];
    tarn_json_object(j, NULL, "name", x->name, "seconds", x->seconds, "host",
                     (bool)!(x->seconds > 0), "gflops", rate(x->work.flop, x->seconds), "gbytes",
                     rate(bytes(x), x->seconds));
  }
  tarn_json_close(j, ']');
  cli_json_print(j);
}
void cli_bench_gpu(tarn_ctx *cx, tarn_loaded *m, const tarn_rt_cuda_info *gpu,
                   const tarn_tensor *const *in, const cli_compile *c, uint32_t rounds) {
  tarn_tensor **out = cli_outputs(cx, m);
  double *each = TARN_ARRAY(cx, double, rounds + 1);
  timing t = {.n = tarn_loaded_kernels(m)};
  t.kernel = TARN_ARRAY(cx, timed, t.n + 1);
  for (uint32_t r = 0; r <= rounds; r++) { /* the first is not counted */
    double begin = tarn_now();
    tarn_loaded_run(m, in, out, 1);
    each[r ? r - 1 : 0] = tarn_now() - begin;
  }
  t.wall = cli_median(each, rounds);
  if (tarn_loaded_time(m, in, out, TARN_RT_WHOLE, rounds, each))
    t.whole = cli_median(each, rounds), t.least = each[0];
  for (uint32_t k = 0; k < t.n; k++) {
    t.kernel[k].name = tarn_loaded_kernel_name(m, k);
    if (k < c->is.work.n) t.kernel[k].work = c->is.work.p[k];
    if (tarn_loaded_time(m, in, out, k, rounds, each))
      t.kernel[k].seconds = cli_median(each, rounds);
  }
  if (c->json) show_json(cx, gpu, &t);
  else show_text(gpu, &t);
}
