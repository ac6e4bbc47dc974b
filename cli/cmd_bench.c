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

typedef struct timing {
  double median, least, gflop, peak;
  uint32_t threads, n;
  const char *const *name;
  const double *seconds, *kernel_gflop;
} timing;

static void show_text(const timing *t) {
  double rate = t->gflop / t->median;
  printf("%.4g ms median, %.4g ms min, %u threads: %.4g GFLOP, %.4g GFLOP/s, %.1f %% of %.4g\n", 1e3 * t->median,
         1e3 * t->least, t->threads, t->gflop, rate, 100 * rate / t->peak, t->peak);
  for (uint32_t k = 0; k < t->n; k++) {
    double g = t->kernel_gflop[k] / t->seconds[k];
    printf("  %-28s %9.4f ms %8.2f GFLOP/s %5.1f %%\n", t->name[k], 1e3 * t->seconds[k], g, 100 * g / t->peak);
  }
}
static void show_json(tarn_ctx *cx, const timing *t) {
  cli_json *j = cli_json_new(cx);
  cli_json_open(j, "seconds", '{');
  cli_json_num(j, "median", t->median);
  cli_json_num(j, "min", t->least);
  cli_json_close(j, '}');
  cli_json_int(j, "threads", t->threads);
  cli_json_num(j, "gflop", t->gflop);
  cli_json_num(j, "gflops", t->gflop / t->median);
  cli_json_num(j, "peak_gflops", t->peak);
  cli_json_num(j, "peak_fraction", t->gflop / t->median / t->peak);
  cli_json_open(j, "kernels", '[');
  for (uint32_t k = 0; k < t->n; k++) {
    double g = t->kernel_gflop[k] / t->seconds[k];
    cli_json_open(j, NULL, '{');
    cli_json_str(j, "name", t->name[k]);
    cli_json_num(j, "seconds", t->seconds[k]);
    cli_json_num(j, "gflops", g);
    cli_json_num(j, "peak_fraction", g / t->peak);
    cli_json_close(j, '}');
  }
  cli_json_close(j, ']');
  cli_json_print(j);
}
static void write_page(tarn_ctx *cx, const timing *t, const char *model, const char *path) {
  static const char *const column[] = {"kernel", "ms", "", "share", "GFLOP/s", "of the peak"};
  double all = 0;
  for (uint32_t k = 0; k < t->n; k++) all += t->seconds[k];
  FILE *f = cli_page_open(cx, path, model);
  fprintf(f, "<p>%.4g ms median, %.4g ms least, %u threads; %.4g GFLOP, %.4g GFLOP/s, %.1f %% of %.4g.</p>\n",
          1e3 * t->median, 1e3 * t->least, t->threads, t->gflop, t->gflop / t->median,
          100 * t->gflop / t->median / t->peak, t->peak);
  cli_page_head(f, column, 6);
  for (uint32_t k = 0; k < t->n; k++) {
    double g = t->kernel_gflop[k] / t->seconds[k];
    fputs("<tr><td>", f);
    cli_page_text(f, t->name[k]);
    fprintf(f, "</td><td>%.4f</td>", 1e3 * t->seconds[k]);
    cli_page_bar(f, t->seconds[k] / all);
    fprintf(f, "<td>%.1f %%</td><td>%.2f</td><td>%.1f %%</td></tr>\n", 100 * t->seconds[k] / all, g, 100 * g / t->peak);
  }
  fputs("</table>\n", f);
  cli_page_close(cx, f, path);
}
/* The kernels one after another, in the form that browsers' trace viewers read; microseconds. */
static void write_trace(tarn_ctx *cx, const timing *t, const char *path) {
  cli_json *j = cli_json_new(cx);
  double at = 0;
  size_t n;
  cli_json_str(j, "displayTimeUnit", "ms");
  cli_json_open(j, "traceEvents", '[');
  for (uint32_t k = 0; k < t->n; k++) {
    cli_json_open(j, NULL, '{');
    cli_json_str(j, "name", t->name[k]);
    cli_json_str(j, "ph", "X");
    cli_json_int(j, "pid", 1);
    cli_json_int(j, "tid", 1);
    cli_json_num(j, "ts", 1e6 * at);
    cli_json_num(j, "dur", 1e6 * t->seconds[k]);
    cli_json_close(j, '}');
    at += t->seconds[k];
  }
  cli_json_close(j, ']');
  FILE *f = cli_open(cx, path);
  const char *text = cli_json_text(j, &n);
  fwrite(text, 1, n, f);
  cli_close(cx, f, path);
}

int tarn_cmd_bench(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  uint64_t repeat = 20, threads = 0;
  const char *usage = "bench DIR|MODEL [--threads T] [--repeat R] [--html F] [--trace F]", *html = NULL, *trace = NULL;
  const cli_opt opts[] = {
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads (default: all)"},
      {"--repeat", NULL, CLI_U32, &repeat, "R", "timed runs (default 20)"},
      {"--html", NULL, CLI_STR, &html, "F", "write a page with the kernels' times"},
      {"--trace", NULL, CLI_STR, &trace, "F", "write a trace for a browser's trace viewer"},
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
  const tarn_hw *hw = tarn_hw_host(tarn_lang_new(cx), false);
  const char **name = TARN_ARRAY(cx, const char *, nk + 1);
  double *gflop = TARN_ARRAY(cx, double, nk + 1);
  timing r = {.median = median(t, repeat), .n = nk, .name = name, .seconds = each, .kernel_gflop = gflop};
  r.least = t[0], r.threads = threads && threads < hw->units ? (uint32_t)threads : hw->units;
  r.peak = tarn_host_fma_peak() * r.threads / 1e9;
  for (uint32_t k = 0; k < nk; k++) {
    name[k] = tarn_loaded_kernel_name(m, k);
    each[k] = median(sum + k * repeat, repeat);
    gflop[k] = flop(&c, k) / 1e9;
    r.gflop += gflop[k];
  }
  if (html) write_page(cx, &r, c.model, html);
  if (trace) write_trace(cx, &r, trace);
  if (c.json) show_json(cx, &r);
  else show_text(&r);
  return 0;
}
