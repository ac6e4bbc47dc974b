/* tarn bench DIR|MODEL: the whole program, then kernel by kernel. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double median(double *v, size_t n) {
  qsort(v, n, sizeof *v, by_value);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double flop(const cli_compile *c, uint32_t k) { return k < c->flops.n ? c->flops.p[k] : 0; }

int tarn_cmd_bench(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  uint64_t repeat = 20, threads = 0;
  const char *usage = "bench DIR|MODEL [--threads T] [--repeat R]";
  const cli_opt opts[] = {
      {"--threads", NULL, CLI_UINT, &threads, "T", "threads (default: all)"},
      {"--repeat", NULL, CLI_UINT, &repeat, "R", "timed runs (default 20)"},
      {"--input", "-i", CLI_LIST, &given, "NAME=FILE", "input (random when absent)"},
      {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape of MODEL"},
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || !repeat) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  tarn_loaded *m = cli_load(cx, words.p[0], &c);
  const tarn_port *ip;
  uint32_t nin = tarn_loaded_ports(m, false, &ip), nk = tarn_loaded_kernels(m);
  const tarn_tensor *const *in = (const tarn_tensor *const *)cli_inputs(cx, nin, ip, &given, c.seed);
  tarn_tensor **out = cli_outputs(cx, m);
  double *t = TARN_ARRAY(cx, double, repeat), *each = TARN_ARRAY(cx, double, nk + 1);
  double *sum = TARN_ARRAY(cx, double, (nk + 1) * repeat);
  tarn_loaded_run(m, in, out, (uint32_t)threads);
  for (uint64_t r = 0; r < repeat; r++) {
    t[r] = cli_now();
    tarn_loaded_run(m, in, out, (uint32_t)threads);
    t[r] = cli_now() - t[r];
  }
  for (uint64_t r = 0; r < repeat; r++) {
    tarn_loaded_profile(m, in, out, (uint32_t)threads, each);
    for (uint32_t k = 0; k < nk; k++) sum[k * repeat + r] = each[k];
  }
  double med = median(t, repeat), gflop = 0;
  const tarn_hw *hw = tarn_hw_host(tarn_lang_new(cx), false);
  uint32_t used = threads && threads < hw->units ? (uint32_t)threads : hw->units;
  double peak = tarn_host_fma_peak() * used / 1e9;
  for (uint32_t k = 0; k < nk; k++) gflop += flop(&c, k) / 1e9;
  cli_json *j = cli_json_new(cx);
  cli_json_open(j, "seconds", '{');
  cli_json_num(j, "median", med);
  cli_json_num(j, "min", t[0]);
  cli_json_close(j, '}');
  cli_json_int(j, "threads", used);
  cli_json_num(j, "gflop", gflop);
  cli_json_num(j, "gflops", gflop / med);
  cli_json_num(j, "peak_gflops", peak);
  cli_json_num(j, "peak_fraction", gflop / med / peak);
  cli_json_open(j, "kernels", '[');
  if (!c.json)
    printf("%.4g ms median, %.4g ms min, %u threads: %.4g GFLOP, %.4g GFLOP/s, %.1f %% of %.4g\n", 1e3 * med, 1e3 * t[0],
           used, gflop, gflop / med, 100 * gflop / med / peak, peak);
  for (uint32_t k = 0; k < nk; k++) {
    double s = median(sum + k * repeat, repeat), g = flop(&c, k) / 1e9;
    cli_json_open(j, NULL, '{');
    cli_json_str(j, "name", tarn_loaded_kernel_name(m, k));
    cli_json_num(j, "seconds", s);
    cli_json_num(j, "gflops", g / s);
    cli_json_num(j, "peak_fraction", g / s / peak);
    cli_json_close(j, '}');
    if (!c.json)
      printf("  %-28s %9.4f ms %8.2f GFLOP/s %5.1f %%\n", tarn_loaded_kernel_name(m, k), 1e3 * s, g / s, 100 * g / s / peak);
  }
  cli_json_close(j, ']');
  if (c.json) cli_json_print(j);
  return 0;
}
