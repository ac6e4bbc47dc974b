/* Tuning: draws schedules of kernels, measures them in batches, keeps everything, learns. */
#include "tune/tune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH 24
#define SLOWEST 0.004 /* seconds that a schedule may be expected to take */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static uint64_t random_next(uint64_t *s) { /* splitmix64 (Steele, Lea and Flood 2014) */
  uint64_t z = (*s += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
static uint64_t schedule_hash(const tarn_schedule *s) {
  uint64_t h = s->nstage;
  for (uint32_t i = 0; i < s->nshared; i++)
    h = tarn_hash_mix(tarn_hash_mix(h, s->shared[i].dim * 8u + s->shared[i].kind), (uint64_t)s->shared[i].step);
  for (uint32_t i = 0; i < s->nstage; i++) {
    const tarn_stage_sched *t = &s->stage[i];
    h = tarn_hash_mix(h, t->nlevel * 64u + t->acc);
    for (uint32_t j = 0; j < t->nlevel; j++)
      h = tarn_hash_mix(tarn_hash_mix(h, t->level[j].dim * 8u + t->level[j].kind), (uint64_t)t->level[j].step);
  }
  return h;
}

/* ---- drawing schedules of one kernel ---- */
typedef struct drawn { double seconds; uint64_t at; tarn_stage_sched sched; } drawn; /* at: order of drawing */
typedef struct draw {
  uint64_t seed, count;
  double limit;
  uint32_t nbest, nany, best_want, any_want;
  drawn *best, *any; /* the best by the analytic price; a uniform sample of the rest (reservoir) */
} draw;
static void visit(void *user, const tarn_schedule *s, double seconds) {
  draw *d = user;
  if (!(seconds < d->limit)) return;
  drawn x = {seconds, d->count++, s->stage[0]};
  if (d->nbest < d->best_want || seconds < d->best[d->nbest - 1].seconds) {
    drawn out = d->best[d->nbest ? d->nbest - 1 : 0];
    bool full = d->nbest == d->best_want;
    uint32_t at = full ? d->nbest - 1 : d->nbest++;
    for (; at > 0 && seconds < d->best[at - 1].seconds; at--) d->best[at] = d->best[at - 1];
    d->best[at] = x;
    if (!full) return;
    x = out;
  }
  if (d->nany < d->any_want) d->any[d->nany++] = x;
  else if (d->any_want) {
    uint64_t r = random_next(&d->seed) % d->count;
    if (r < d->any_want) d->any[r] = x;
  }
}

typedef struct pending { tarn_trial trial; tarn_sample sample; } pending;
typedef struct tuner {
  tarn_ctx *cx;
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_tune_options *o;
  tarn_store *store;
  const char *key;
  uint32_t threads;
  tarn_solver *solver;
  TARN_VEC(pending) todo;
  tarn_map *fastest; /* kernel -> 1 + index into least */
  TARN_VEC(double) least;
  tarn_tune_report r;
} tuner;

static void note(tuner *t, const tarn_sample *x) {
  t->r.trials++;
  if (!(x->seconds < INFINITY)) {
    t->r.failed++;
    return;
  }
  bool fresh;
  uint64_t *at = tarn_map_at(t->fastest, x->kernel, &fresh);
  if (fresh) {
    *at = t->least.n + 1;
    tarn_push(t->cx, &t->least, x->seconds);
  } else if (x->seconds < t->least.p[*at - 1]) t->least.p[*at - 1] = x->seconds;
}
static void consider(tuner *t, const tarn_ksig *k, const tarn_schedule *s) {
  pending p = {.trial = {k, s}};
  p.sample.kernel = tarn_ksig_hash(t->L, k), p.sample.schedule = schedule_hash(s);
  if (tarn_store_has(t->store, t->key, t->threads, p.sample.kernel, p.sample.schedule, &p.sample)) {
    note(t, &p.sample);
    return;
  }
  tarn_cost c;
  tarn_cost_of(t->L, t->hw, k, s, t->threads, &c);
  tarn_features(t->L, t->hw, k, s, t->threads, &c, p.sample.feature);
  p.sample.analytic = c.seconds;
  tarn_push(t->cx, &t->todo, p);
}
static void draw_kernel(tuner *t, const tarn_ksig *k, uint32_t want) {
  tarn_cost c;
  const tarn_schedule *first = tarn_solve(t->solver, k, &c);
  if (c.seconds > SLOWEST) return;
  draw d = {.seed = tarn_hash_mix(t->o->seed, tarn_ksig_hash(t->L, k)), .limit = fmin(SLOWEST, 64 * c.seconds)};
  d.best_want = want / 2, d.any_want = want - want / 2;
  d.best = TARN_ARRAY(t->cx, drawn, d.best_want + 1), d.any = TARN_ARRAY(t->cx, drawn, d.any_want + 1);
  if (want < 2 || !tarn_schedules(t->solver, k, visit, &d)) {
    consider(t, k, first);
    return;
  }
  for (uint32_t i = 0; i < d.nbest + d.nany; i++) {
    tarn_schedule *s = TARN_NEW(t->cx, tarn_schedule);
    s->nstage = 1, s->stage = tarn_copy(t->cx, i < d.nbest ? &d.best[i].sched : &d.any[i - d.nbest].sched, sizeof *s->stage);
    consider(t, k, s);
  }
}

/* ---- measuring ---- */
static void measure_batch(tuner *t, uint32_t from, uint32_t n) {
  tarn_trial trial[BATCH] = {0};
  double seconds[BATCH];
  tarn_sample done[BATCH];
  for (uint32_t i = 0; i < n; i++) trial[i] = t->todo.p[from + i].trial;
  tarn_measure(t->L, t->hw, trial, n, t->threads, 60, seconds);
  bool lost = n > 1 && !(seconds[0] < INFINITY); /* the batch broke: one by one, to find which */
  for (uint32_t i = 0; i < n && lost; i++) tarn_measure(t->L, t->hw, &trial[i], 1, t->threads, 20, &seconds[i]);
  for (uint32_t i = 0; i < n; i++) {
    done[i] = t->todo.p[from + i].sample;
    done[i].seconds = seconds[i];
    note(t, &done[i]);
  }
  tarn_store_add(t->store, t->key, t->threads, done, n);
  t->r.fresh += n;
}
static void measure_all(tuner *t) {
  double end = t->o->seconds > 0 ? now() + t->o->seconds : INFINITY;
  uint64_t seed = t->o->seed + 17;
  for (uint32_t i = t->todo.n; i > 1; i--) { /* stopped at any moment, every kernel has had its share */
    uint32_t j = (uint32_t)(random_next(&seed) % i);
    pending x = t->todo.p[i - 1];
    t->todo.p[i - 1] = t->todo.p[j], t->todo.p[j] = x;
  }
  for (uint32_t i = 0; i < t->todo.n && now() < end; i += BATCH) {
    measure_batch(t, i, t->todo.n - i < BATCH ? t->todo.n - i : BATCH);
    if (t->o->progress) t->o->progress(t->o->user, i + BATCH < t->todo.n ? i + BATCH : t->todo.n, t->todo.n);
  }
}

tarn_tune_report tarn_tune(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *const *sig, uint32_t nsig, tarn_store *s,
                           const tarn_tune_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tuner t = {.cx = cx, .L = L, .hw = hw, .o = o, .store = s, .key = tarn_hw_key(hw, cx), .fastest = tarn_map_new(cx)};
  t.threads = o->threads ? o->threads : hw->units;
  t.solver = tarn_solver_new(L, hw, t.threads);
  uint32_t trials = o->trials ? o->trials : 1000, each = o->per_kernel ? o->per_kernel : 40;
  uint64_t seed = o->seed + 3;
  uint32_t *order = TARN_ARRAY(cx, uint32_t, nsig + 1);
  for (uint32_t i = 0; i < nsig; i++) {
    uint32_t j = (uint32_t)(random_next(&seed) % (i + 1));
    order[i] = order[j], order[j] = i;
  }
  for (uint32_t i = 0; i < nsig && !o->train_only && t.todo.n + t.r.trials < trials; i++) {
    uint32_t left = trials - t.todo.n - t.r.trials;
    draw_kernel(&t, sig[order[i]], left < each ? left : each);
  }
  measure_all(&t);
  for (uint32_t i = 0; i < t.least.n; i++) t.r.best += t.least.p[i];
  const tarn_sample *all;
  uint32_t n = tarn_store_read(s, t.key, &all);
  if (o->train_only) t.r.trials = n;
  if (o->model && (n >= 50 || o->train_only)) {
    tarn_learn(cx, t.key, all, n, o->seed, o->model, &t.r.fit);
    t.r.trained = true;
  }
  return t.r;
}
