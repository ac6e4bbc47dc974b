/* tarn bench DIR|MODEL: the whole program, then kernel by kernel beside what measured peaks allow.
 */
#include "cli/bench_gpu.h"
#include "cli/peaks.h"
#include "cli/ptx.h"
#include "cli/timing.h"
#include "tune/tune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

static void show_text(const cli_timing *t) {
  double rate = t->gflop / t->median;
  printf("%.4g ms median, %.4g ms min, %u threads: %.4g GFLOP, %.4g GFLOP/s, %.1f %% of %.4g; %.0f "
         "%% of the kernels' bounds\n",
         1e3 * t->median, 1e3 * t->least, t->peaks.host.threads, t->gflop, rate,
         100 * t->peak_fraction, t->peaks.host.flops / 1e9, 100 * share(t->bound, t->median));
  int wide = 0;
  for (uint32_t k = 0; k < t->n; k++)
    if ((int)strlen(t->kernel[k].name) > wide) wide = (int)strlen(t->kernel[k].name);
  for (uint32_t k = 0; k < t->n; k++) {
    const cli_timed *x = &t->kernel[k];
    double g = x->work.flop / 1e9 / x->seconds;
    printf("  %-*s %11.2f us %8.2f GFLOP/s %5.1f %%  %-4s %5.1f %%\n", wide, x->name,
           1e6 * x->seconds, g, 100 * x->peak_fraction, x->bound.binds,
           100 * share(x->bound.seconds, x->seconds));
  }
}
static void kernel_json(tarn_json *j, const cli_timed *x) {
  double g = x->work.flop / 1e9 / x->seconds;
  tarn_json_open(j, NULL, '{');
  tarn_json_put(j, "name", x->name, "seconds", x->seconds, "gflops", g, "peak_fraction",
                x->peak_fraction, "slots", x->work.slots, "products", x->work.products);
  tarn_json_put(j, "read_bytes", x->work.read, "write_bytes", x->work.write, "binds",
                x->bound.binds, "bound_seconds", x->bound.seconds, "bound_fraction",
                share(x->bound.seconds, x->seconds));
  tarn_json_close(j, '}');
}
static void show_json(tarn_ctx *cx, const cli_timing *t) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_object(j, "seconds", "median", t->median, "min", t->least);
  tarn_json_put(j, "threads", t->peaks.host.threads, "gflop", t->gflop, "gflops",
                t->gflop / t->median, "peak_gflops", t->peaks.host.flops / 1e9, "peak_fraction",
                t->peak_fraction, "bound_seconds", t->bound, "bound_fraction",
                share(t->bound, t->median));
  tarn_json_open(j, "peaks", '{');
  cli_peaks_json(j, &t->peaks);
  tarn_json_close(j, '}');
  tarn_json_open(j, "kernels", '[');
  for (uint32_t k = 0; k < t->n; k++) kernel_json(j, &t->kernel[k]);
  tarn_json_close(j, ']');
  cli_json_print(j);
}
/* The kernels one after another, in the form that browsers' trace viewers read; microseconds. */
static void write_trace(tarn_ctx *cx, const cli_timing *t, const char *path) {
  tarn_json *j = cli_json_new(cx);
  double at = 0;
  size_t n;
  tarn_json_str(j, "displayTimeUnit", "ms");
  tarn_json_open(j, "traceEvents", '[');
  for (uint32_t k = 0; k < t->n; k++) {
    const cli_timed *x = &t->kernel[k];
    tarn_json_object(j, NULL, "name", x->name, "cat", x->bound.binds, "ph", "X", "pid", 1, "tid", 1,
                     "ts", 1e6 * at, "dur", 1e6 * x->seconds);
    at += x->seconds;
  }
  tarn_json_close(j, ']');
  FILE *f = cli_open(cx, path);
  const char *text = tarn_json_text(j, &n);
  fwrite(text, 1, n, f);
  cli_close(cx, f, path);
}

static const tarn_rt_cuda_info *needed_gpu(tarn_ctx *cx, const char *dir) {
  const char *why;
  const tarn_rt_cuda_info *gpu = tarn_gpu_here(cx, &why);
  if (!gpu) tarn_raise(cx, TARN_BAD_INPUT, "%s: %s", dir, why);
  return gpu;
}
/* Seconds of each of the runs, after one that is not counted. */
static double *time_runs(tarn_ctx *cx, tarn_loaded *m, const tarn_tensor *const *in,
                         uint32_t threads, uint64_t repeat) {
  tarn_tensor **result = cli_outputs(cx, m);
  double *t = TARN_ARRAY(cx, double, repeat);
  tarn_loaded_run(m, in, result, threads);
  for (uint64_t r = 0; r < repeat; r++) {
    tarn_progress(cx, "measuring", r, 2 * repeat, "runs");
    t[r] = tarn_now();
    tarn_loaded_run(m, in, result, threads);
    t[r] = tarn_now() - t[r];
  }
  return t;
}
/* Medians of the whole program and of each kernel. */
static void time_program(tarn_ctx *cx, tarn_loaded *m, const tarn_tensor *const *in,
                         uint32_t threads, uint64_t repeat, cli_timing *out) {
  uint32_t nk = tarn_loaded_kernels(m);
  tarn_tensor **result = cli_outputs(cx, m);
  double *t = time_runs(cx, m, in, threads, repeat), *each = TARN_ARRAY(cx, double, nk + 1);
  double *sum = TARN_ARRAY(cx, double, (nk + 1) * repeat);
  for (uint64_t r = 0; r < repeat; r++) {
    tarn_progress(cx, "measuring", repeat + r, 2 * repeat, "runs");
    tarn_loaded_profile(m, in, result, threads, each);
    for (uint32_t k = 0; k < nk; k++) sum[k * repeat + r] = each[k];
  }
  tarn_progress_end(cx);
  out->median = cli_median(t, repeat), out->least = t[0], out->n = nk;
  out->kernel = TARN_ARRAY(cx, cli_timed, nk + 1);
  for (uint32_t k = 0; k < nk; k++)
    out->kernel[k] = (cli_timed){.name = tarn_loaded_kernel_name(m, k),
                                 .seconds = cli_median(sum + k * repeat, repeat)};
}
/* What a kernel reaches, the machine does: clocks may rise after its peaks were measured, and no
 * time is below its bound. */
static void raise_peaks(cli_timing *t) {
  double all = 0, most = t->peaks.host.flops;
  for (uint32_t k = 0; k < t->n; k++) {
    double ops = cli_f32_ops(&t->kernel[k].work);
    all += ops;
    most = fmax(most, ops / t->kernel[k].seconds);
  }
  t->peaks.host.flops = fmax(most, all / t->median);
}
/* What each kernel has to do, and the least time that takes at what the machine reaches now. */
static void bound_kernels(tarn_ctx *cx, const cli_compile *c, uint32_t threads, cli_timing *t) {
  size_t reach = 0;
  for (uint32_t k = 0; k < t->n; k++) {
    cli_work *w = &t->kernel[k].work;
    if (k < c->is.work.n) *w = c->is.work.p[k];
    t->gflop += w->flop / 1e9;
    if (w->read + w->write > (double)reach) reach = (size_t)(w->read + w->write);
  }
  cli_peaks_measure(cx, threads, reach, &t->peaks);
  raise_peaks(t);
  for (uint32_t k = 0; k < t->n; k++) {
    cli_timed *x = &t->kernel[k];
    double share = cli_f32_ops(&x->work) / t->peaks.host.flops;
    x->bound = cli_bound_of(&t->peaks, &x->work);
    if (x->seconds < x->bound.seconds) x->bound.seconds = x->seconds;
    x->peak_fraction = share / x->seconds;
    t->bound += x->bound.seconds;
    t->peak_fraction += share / t->median;
  }
  if (t->median < t->bound) t->bound = t->median;
}

static const tarn_tensor *const *inputs_of(tarn_ctx *cx, const cli_compile *c, tarn_loaded *m,
                                           const cli_list *given) {
  const tarn_port *ip;
  uint32_t nin = tarn_loaded_ports(m, false, &ip);
  return (const tarn_tensor *const *)cli_inputs(cx, c, nin, ip, given, c->seed);
}
cli_timing cli_time(tarn_ctx *cx, const cli_compile *c, tarn_loaded *m, const cli_list *given,
                    uint32_t threads, uint64_t repeat) {
  cli_timing t = {0};
  time_program(cx, m, inputs_of(cx, c, m, given), threads, repeat, &t);
  bound_kernels(cx, c, threads, &t);
  return t;
}

/* ---- a folder for several sizes: a row for each ---- */
typedef struct benching {
  tarn_ctx *cx;
  cli_compile *c;
  tarn_loaded *m;
  const cli_list *given;
  uint32_t threads;
  uint64_t repeat;
} benching;
static void time_size(const benching *b, tarn_json *j) {
  const tarn_tensor *const *in = inputs_of(b->cx, b->c, b->m, b->given);
  double *t = time_runs(b->cx, b->m, in, b->threads, b->repeat);
  double median = cli_median(t, b->repeat);
  tarn_json_open(j, NULL, '{');
  cli_size_json(j, b->m);
  tarn_json_object(j, "seconds", "median", median, "min", t[0]);
  tarn_json_close(j, '}');
  if (!b->c->json)
    printf("%-24s %11.2f us median %11.2f us min\n", cli_size_text(b->cx, b->m), 1e6 * median,
           1e6 * t[0]);
}
static int by_sizes(const void *a, const void *b, void *n) {
  const int64_t *x = *(const int64_t *const *)a, *y = *(const int64_t *const *)b;
  for (uint32_t i = 0; i < *(const uint32_t *)n; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}
#define TIMED_PROGRAMS 24 /* of a folder for more sizes */
static void bench_sizes(const benching *b) {
  const int64_t **size;
  uint32_t n = cli_some_sizes(b->cx, b->m, TIMED_PROGRAMS, 0, &size);
  uint32_t names = tarn_loaded_sizes(b->m);
  tarn_json *j = cli_json_new(b->cx);
  qsort_r(size, n, sizeof *size, by_sizes, &names);
  tarn_json_open(j, "sizes", '[');
  for (uint32_t i = 0; i < n; i++) {
    if (i && !by_sizes(&size[i - 1], &size[i], &names)) continue;
    cli_select(b->cx, b->m, b->c, size[i]);
    time_size(b, j);
  }
  tarn_json_close(j, ']');
  if (b->c->json) cli_json_print(j);
}

int tarn_cmd_bench(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {0};
  cli_list words = {0}, given = {0};
  uint64_t repeat = 20, threads = 0;
  const char *usage = "bench DIR|MODEL [--threads T] [--repeat R] [--html F] [--trace F]",
             *html = NULL, *trace = NULL;
  const cli_opt opts[] = {
      {"--hw", NULL, CLI_STR, &c.hw, "NAME|FILE", "hardware that MODEL is compiled for"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads (default: all)"},
      {"--repeat", NULL, CLI_U32, &repeat, "R", "timed runs (default 20)"},
      {"--html", NULL, CLI_STR, &html, "F",
       "write a page with the kernels' times and a roofline plot"},
      {"--trace", NULL, CLI_STR, &trace, "F", "write a trace for a browser's trace viewer"},
      {"--input", "-i", CLI_LIST, &given, "NAME=FILE", "input (random when absent)"},
      {"--seed", NULL, CLI_UINT, &c.seed, "K", "seed of random inputs"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS",
       "bind a dynamic shape of MODEL, or choose one of several sizes of DIR"},
      CLI_SET(c),
      CLI_OUTPUTS(c),
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1 || !repeat) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  tarn_loaded *m = cli_load(cx, words.p[0], &c);
  if (tarn_has_stream(cx, c.dir))
    tarn_raise(cx, TARN_BAD_INPUT, "%s is an accelerator's: tarn sim has its cycles", c.dir);
  const tarn_rt_cuda_info *gpu = cli_is_ptx(cx, c.dir) ? needed_gpu(cx, c.dir) : NULL;
  if (gpu && (html || trace)) tarn_raise(cx, TARN_USAGE, "--html, --trace: of a CPU's program");
  tarn_loaded_constants_huge(m);
  if (!cli_select_asked(cx, m, &c, &given) && c.programs.n) {
    if (html || trace)
      tarn_raise(cx, TARN_USAGE, "--html, --trace: of one size: --shape says which");
    bench_sizes(&(benching){cx, &c, m, &given, (uint32_t)threads, repeat});
    return 0;
  }
  if (gpu) {
    cli_bench_gpu(cx, m, gpu, inputs_of(cx, &c, m, &given), &c, (uint32_t)repeat);
    return 0;
  }
  cli_timing r = cli_time(cx, &c, m, &given, (uint32_t)threads, repeat);
  if (html) cli_timing_page(cx, &r, c.model, html);
  if (trace) write_trace(cx, &r, trace);
  if (c.json) show_json(cx, &r);
  else show_text(&r);
  return 0;
}
