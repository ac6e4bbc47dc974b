/* Comprehensions as functions of a process: calls [LIST [THREADS]], from the top of the tree. Of
 * each row of LIST (bench/tc/kernels.txt) prints, separated by tabs: the row; seconds of a compile
 * with an empty cache; microseconds until the function is there when another process has compiled
 * it, when this one has called it, and when it has with other names and spaces; microseconds of
 * 1,000 runs (fewest, median, nine tenths), the call of the cache included. Inputs are random. */
#include "access/judge.h"
#include "hw/host/host.h"
#include "runtime/rt.h"
#include "tune/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS  1000
#define CALLS 2000
#define MOST  2.0 /* seconds of the runs of one row */

typedef struct row {
  char line[256];
  const char *word[20];
  uint32_t n;
} row;
typedef struct bench {
  const char *list, *db;
  uint32_t threads;
  row r;
} bench;

static double micros(double since) { return 1e6 * (tarn_now() - since); }
static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static tarn_compile_options options(tarn_ctx *cx, tarn_lang *L, bench *b) {
  tarn_compile_options o = tarn_compile_defaults();
  o.model = tarn_format(cx, "examples/tc/%s.tc", b->r.word[0]);
  o.text = tarn_read_file(cx, o.model, &o.text_n);
  o.def = b->r.word[1];
  o.shapes = (tarn_texts){b->r.n - 2, b->r.word + 2};
  o.hw = tarn_hw_host(L, false);
  o.threads = b->threads;
  return o;
}

/* With a remark in front: another text of the same meaning. The median of some. */
static double of_renamed(tarn_ctx *cx, tarn_cache *c, tarn_lang *L, tarn_compile_options o) {
  enum { TEXTS = 50 };
  double took[TEXTS];
  const char *text = o.text;
  for (int i = 0; i < TEXTS; i++) {
    o.text = tarn_format(cx, "# %d\n%s", i, text);
    o.text_n = strlen(o.text);
    double begin = tarn_now();
    tarn_cache_call(c, L, &o);
    took[i] = micros(begin);
  }
  qsort(took, TEXTS, sizeof *took, by_value);
  return took[TEXTS / 2];
}

static void *tensor(tarn_ctx *cx, const tarn_port *p, bool random, uint64_t *state) {
  tarn_domain small = {0, 1000};
  if (random) return tarn_random_tensor(cx, p->dtype, p->n, p->dim, small, state)->data;
  return tarn_tensor_new(cx, p->dtype, p->n, p->dim)->data;
}

static void runs(tarn_ctx *cx, tarn_cache *c, tarn_lang *L, const tarn_compile_options *o) {
  const tarn_call *f = tarn_cache_call(c, L, o);
  const void **in = TARN_ARRAY(cx, const void *, f->nin);
  void **out = TARN_ARRAY(cx, void *, f->nout);
  uint64_t state = 1;
  for (uint32_t i = 0; i < f->nin; i++) in[i] = tensor(cx, &f->in[i], true, &state);
  for (uint32_t i = 0; i < f->nout; i++) out[i] = tensor(cx, &f->out[i], false, &state);
  void *workspace = tarn_rt_workspace_new(f->workspace + 1);
  tarn_defer(cx, free, workspace);
  tarn_rt_pool *pool = tarn_rt_pool_new(o->threads);
  tarn_defer(cx, (void (*)(void *))tarn_rt_pool_free, pool);
  static double took[RUNS];
  uint32_t n = 0;
  for (int warm = 0; warm < 3; warm++) f->run(in, out, workspace, pool);
  double begin = tarn_now();
  for (; n < RUNS && tarn_now() - begin < MOST; n++) {
    double t = tarn_now();
    tarn_cache_call(c, L, o)->run(in, out, workspace, pool);
    took[n] = micros(t);
  }
  qsort(took, n, sizeof *took, by_value);
  printf("\t%.1f\t%.1f\t%.1f", took[0], took[n / 2], took[n * 9 / 10]);
}

static void one(tarn_ctx *cx, void *arg) {
  bench *b = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(cx, L, b);
  unlink(b->db);
  double t = tarn_now();
  tarn_cache_call(tarn_cache_open(cx, b->db), L, &o);
  printf("\t%.3f", tarn_now() - t);
  tarn_cache *c = tarn_cache_open(cx, b->db);
  t = tarn_now();
  const tarn_call *f = tarn_cache_call(c, L, &o);
  printf("\t%.0f%s", micros(t), f->found == TARN_FOUND_STORED ? "" : "?");
  t = tarn_now();
  for (int i = 0; i < CALLS; i++) tarn_cache_call(c, L, &o);
  printf("\t%.2f", micros(t) / CALLS);
  printf("\t%.1f", of_renamed(cx, c, L, o));
  runs(cx, c, L, &o);
}

static void split(row *r) {
  r->n = 0;
  for (char *w = strtok(r->line, " \n"); w && r->n < 20; w = strtok(NULL, " \n"))
    r->word[r->n++] = w;
}

static bool run_row(bench *b) {
  split(&b->r);
  if (b->r.n < 2) return true;
  for (uint32_t i = 1; i < b->r.n; i++) printf("%s%s", i > 1 ? " " : "", b->r.word[i]);
  fflush(stdout);
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, one, b);
  printf(st == TARN_OK ? "\n" : "\t%s\n", tarn_message(cx));
  tarn_ctx_free(cx);
  return st == TARN_OK;
}

int main(int argc, char **argv) {
  bench b = {.list = argc > 1 ? argv[1] : "bench/tc/kernels.txt", .db = "/tmp/tarn-calls.db"};
  b.threads = argc > 2 ? (uint32_t)atoi(argv[2]) : 1;
  FILE *f = fopen(b.list, "r");
  if (!f) {
    perror(b.list);
    return 1;
  }
  printf("kernel\tcold s\tstored us\tcalled us\trenamed us\tp0 us\tp50 us\tp90 us\n");
  bool ok = true;
  while (fgets(b.r.line, sizeof b.r.line, f))
    if (*b.r.line != '#') ok &= run_row(&b);
  fclose(f);
  unlink(b.db);
  return !ok;
}
