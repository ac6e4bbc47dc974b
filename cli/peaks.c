/* What this machine reaches, and the least time that a kernel's demand takes at those rates. */
#include "cli/peaks.h"
#include "access/fx_internal.h"
#include "price/price.h"
#include "runtime/rt.h"
#include <math.h>

static void nothing(void *arg, uint32_t slot, int64_t begin, int64_t end) {
  (void)arg, (void)slot, (void)begin, (void)end;
}

/* Seconds of an empty parallel loop, median: what every kernel pays to start its threads and to
 * wait for them. */
static double start_seconds(tarn_ctx *cx, uint32_t threads) {
  enum { TIMES = 1001 };
  tarn_rt_pool *pool = tarn_rt_pool_new(threads);
  if (!pool) tarn_raise(cx, TARN_MEMORY, "measuring: no %u threads to be had", threads);
  double *t = TARN_ARRAY(cx, double, TIMES);
  for (int i = 0; i < TIMES; i++) {
    t[i] = tarn_now();
    pool->run(pool, nothing, NULL, threads);
    t[i] = tarn_now() - t[i];
  }
  tarn_rt_pool_free(pool);
  return cli_median(t, TIMES);
}

void cli_peaks_measure(tarn_ctx *cx, uint32_t threads, size_t reach, cli_peaks *out) {
  tarn_host_measure(cx, threads, reach, &out->host);
  out->start = start_seconds(cx, out->host.threads);
}

static void functions(tarn_json *j, const char *name, bool products) {
  tarn_json_open(j, name, '{');
  for (uint32_t op = 0; op < TARN_FX_COUNT; op++) {
    const tarn_fxinfo *f = tarn_fx_info(op);
    if (f->slots > 1) tarn_json_num(j, f->text, products ? f->products : f->slots);
  }
  tarn_json_close(j, '}');
}
void cli_peaks_json(tarn_json *j, const cli_peaks *p) {
  tarn_json_put(j, "threads", p->host.threads, "flops", p->host.flops, "slots", p->host.slots,
                "start", p->start);
  tarn_json_open(j, "levels", '[');
  for (uint32_t i = 0; i < p->host.nlevel; i++) {
    const tarn_host_level *l = &p->host.level[i];
    tarn_json_open(j, NULL, '{');
    tarn_json_str(j, "name", l->name);
    if (l->capacity == SIZE_MAX) tarn_json_num(j, "capacity", (double)INFINITY);
    else tarn_json_int(j, "capacity", (int64_t)l->capacity);
    tarn_json_put(j, "read", l->read, "write", l->write, "copy", l->copy);
    tarn_json_close(j, '}');
  }
  tarn_json_close(j, ']');
  tarn_json_open(j, "rates", '[');
  for (uint32_t i = 0; i < p->host.nrate; i++) {
    const tarn_host_rate *r = &p->host.rate[i];
    tarn_json_object(j, NULL, "bytes", r->bytes, "read", r->read, "write", r->write, "copy",
                     r->copy);
  }
  tarn_json_close(j, ']');
  functions(j, "functions", false); /* what each counts among the slots */
  functions(j, "products", true);   /* what of that multiplies */
}
void cli_peaks_text(const cli_peaks *p) {
  printf("%u threads: %.4g GFLOP/s in f32, %.4g G lanes/s of vector instructions; %.3g us to start "
         "and join\n",
         p->host.threads, p->host.flops / 1e9, p->host.slots / 1e9, 1e6 * p->start);
  for (uint32_t i = 0; i < p->host.nlevel; i++) {
    const tarn_host_level *l = &p->host.level[i];
    if (l->read)
      printf("  %-4s read %7.4g  write %7.4g  copy %7.4g GB/s\n", l->name, l->read / 1e9,
             l->write / 1e9, l->copy / 1e9);
  }
  printf("again and again over\n");
  for (uint32_t i = 0; i < p->host.nrate; i++) {
    const tarn_host_rate *r = &p->host.rate[i];
    printf("  %8.0f KiB read %7.4g  write %7.4g  copy %7.4g GB/s\n", r->bytes / 1024, r->read / 1e9,
           r->write / 1e9, r->copy / 1e9);
  }
}

/* What is balanced goes at the rate of a copy, the rest at its own. */
static double traffic(const tarn_host_rate *r, double read, double write) {
  double both = read < write ? read : write;
  return 2 * both / r->copy + (read - both) / r->read + (write - both) / r->write;
}
/* Seconds if all came from this level. */
static double from_level(const tarn_host_level *l, const cli_work *w) {
  return traffic(&(tarn_host_rate){.read = l->read, .write = l->write, .copy = l->copy}, w->read,
                 w->write);
}
double cli_f32_ops(const cli_work *w) { return fmin(w->flop, 2 * w->slots); }
cli_bound cli_bound_of(const cli_peaks *p, const cli_work *w) {
  const tarn_host_peaks *h = &p->host;
  double product = cli_f32_ops(w) / h->flops, other = w->slots / h->slots;
  double within = 2 * w->products / h->flops; /* those of functions too */
  cli_bound b = {fmax(fmax(product, within), other), "fma"};
  if (w->read + w->write > 0 && h->nrate) {
    tarn_host_rate r = tarn_host_rate_at(h, w->read + w->write);
    double t = traffic(&r, w->read, w->write);
    uint32_t i = 0; /* slower than if half of it came from the next one: then most of it does */
    while (i + 1 < h->nlevel && h->level[i + 1].read > 0 &&
           2 * t > from_level(&h->level[i], w) + from_level(&h->level[i + 1], w))
      i++;
    if (t > b.seconds) b = (cli_bound){t, h->level[i].name};
  }
  b.seconds += p->start;
  return b;
}
