/* Measures the schedules of another machine's store on this one. See tarn_measure_again() in
 * tune.h. */
#include "plan/work.h"
#include "tune/tune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 480 /* trials that share a time; a kernel's are not parted */

typedef struct group { /* the records of one kernel on so many threads */
  const tarn_record *r;
  uint32_t n, threads;
  double least; /* of their seconds, there */
} group;
typedef struct again {
  tarn_ctx *cx;
  tarn_lang *L;
  const tarn_hw *hw;
  tarn_store *to;
  const char *key;
  uint32_t n; /* in the batch: */
  tarn_trial *trial;
  tarn_record *record;
  double *seconds;
  bool *unsure;
  const tarn_measurer *by; /* NULL: this machine */
  tarn_tune_report r;
} again;

/* Kernels that take about as long share a batch, whose rounds are then worth about the same to
 * each. */
static int by_length(const void *a, const void *b) {
  const group *x = a, *y = b;
  if (x->threads != y->threads) return x->threads < y->threads ? -1 : 1;
  return x->least != y->least ? (x->least < y->least ? -1 : 1) : (x->r < y->r ? -1 : 1);
}
static uint32_t groups(tarn_ctx *cx, const tarn_record *r, uint32_t n, uint32_t units,
                       group **out) {
  group *g = TARN_ARRAY(cx, group, n + 1);
  uint32_t m = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (r[i].threads > units) continue;
    bool same = m && g[m - 1].r->kernel == r[i].kernel && g[m - 1].threads == r[i].threads;
    if (!same) g[m++] = (group){.r = &r[i], .threads = r[i].threads, .least = INFINITY};
    g[m - 1].n++, g[m - 1].least = fmin(g[m - 1].least, r[i].seconds);
  }
  qsort(g, m, sizeof *g, by_length);
  *out = g;
  return m;
}

typedef struct entering {
  again *a;
  const group *g;
} entering;
static void enter(tarn_ctx *cx, void *arg) {
  entering *e = arg;
  again *a = e->a;
  tarn_ksig *k = TARN_NEW(cx, tarn_ksig);
  tarn_ksig_parse(a->L, e->g->r->kernel_text, strlen(e->g->r->kernel_text), k);
  if (!tarn_ksig_complete(a->L, k))
    tarn_raise(cx, TARN_BAD_INPUT, "a sum multiplied by unknown constant matrices");
  uint32_t from = a->n;
  for (uint32_t i = 0; i < e->g->n; i++) {
    const tarn_record *r = &e->g->r[i];
    if (tarn_store_has(a->to, a->key, r->threads, r->kernel, r->schedule, NULL)) continue;
    const tarn_nest *nest = tarn_nest_get(a->L, k->nest);
    a->trial[from] = (tarn_trial){
        k, tarn_schedule_parse(a->L, nest, r->schedule_text, strlen(r->schedule_text))};
    a->record[from++] = *r;
  }
  a->n = from;
}
static void measure_here(again *a, uint32_t threads) {
  tarn_measure(a->L, a->hw, a->trial, a->n, threads, 120, TARN_MEASURE_SEED, a->seconds);
  for (uint32_t i = 0; i < a->n && a->n > 1; i++)
    if (!(a->seconds[i] < INFINITY))
      tarn_measure(a->L, a->hw, &a->trial[i], 1, threads, 20, TARN_MEASURE_SEED, &a->seconds[i]);
}
static void measure(again *a, uint32_t threads) {
  uint32_t n = a->n, sure = 0;
  if (!n) return;
  memset(a->unsure, 0, n * sizeof *a->unsure);
  if (a->by) a->by->measure(a->by->user, a->L, a->hw, a->trial, n, threads, a->seconds, a->unsure);
  else measure_here(a, threads);
  for (uint32_t i = 0; i < n; i++) {
    a->record[i].seconds = a->seconds[i];
    a->r.failed += !(a->seconds[i] < INFINITY);
    if (!a->unsure[i]) a->record[sure++] = a->record[i];
  }
  tarn_store_add(a->to, a->key, a->record, sure);
  a->r.fresh += n;
  a->n = 0;
}

tarn_tune_report tarn_measure_again(tarn_lang *L, const tarn_hw *hw, tarn_store *of, tarn_store *to,
                                    const tarn_tune_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_record *r;
  group *g;
  double begin = tarn_now();
  uint32_t n = tarn_store_read(of, NULL, &r), m = groups(cx, r, n, hw->units, &g), done = 0,
           all = 0;
  again a = {.cx = cx, .L = L, .hw = hw, .to = to, .key = tarn_hw_key(hw, cx), .by = o->by};
  for (uint32_t i = 0; i < m; i++) all += g[i].n;
  a.trial = TARN_ARRAY(cx, tarn_trial, all + 1);
  a.record = TARN_ARRAY(cx, tarn_record, all + 1);
  a.seconds = TARN_ARRAY(cx, double, all + 1);
  a.unsure = TARN_ARRAY(cx, bool, all + 1);
  for (uint32_t i = 0; i < m && !(o->seconds > 0 && tarn_now() > begin + o->seconds); i++) {
    if (a.n && (a.n + g[i].n > TOGETHER || g[i].threads != g[i - 1].threads))
      measure(&a, g[i - 1].threads);
    entering e = {&a, &g[i]};
    a.r.failed +=
        !tarn_tried(cx, enter, &e) ? g[i].n : 0; /* of a form that this program does not know */
    done += g[i].n, a.r.kernels++;
    if (i + 1 == m) measure(&a, g[i].threads);
    if (o->progress && !a.n) o->progress(o->user, done, all, a.r.fresh, 0);
  }
  a.r.trials = done;
  return a.r;
}
