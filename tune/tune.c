/* Tuning: decides which kernel gets the next trials, measures and stores them, and learns from
 * them. */
#include "tune/pace.h"
#include "tune/search.h"
#include "tune/trees.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EACH  12  /* trials that a kernel gets at a time */
#define LIGHT 50  /* part of the network's time below which a kernel begins with a third of them */
#define SIDE  8   /* kernels that get them before the price is learned anew */
#define FLAT  8   /* times less steep than the steepest: not worth a turn beside it */
#define AGAIN 2   /* of each kernel's fastest are measured again with every batch */
#define POOL  64  /* schedules of a kernel that evolution begins with, twice */
#define FEW   200 /* measurements below which the trees are not asked */
#define GROUP                                                                                      \
  480 /* trials of a sample that are measured together: so many as make the time they share long   \
       */
#define LEAST_BATCH  1 /* seconds that a batch gets, however little time is left */
#define GROUP_TIME   4 /* seconds that one run of each takes, at most: what is kept at once */
#define QUICK_ROUNDS 60
#define SLOWEST                                                                                    \
  0.1 /* seconds: kernels beyond are left as they are when a sample of all is drawn                \
       */

typedef struct tuner {
  tarn_ctx *cx;
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_tune_options *o;
  tarn_store *store;
  const char *key;
  uint32_t threads, ntask, trials;
  search_task **task;
  tarn_map *by_kernel;          /* hash of a kernel's text -> 1 + task */
  TARN_VEC(tarn_sample) sample; /* all that is known of this hardware */
  uint32_t learned;             /* samples that the price has seen */
  tarn_ctx *apart;              /* where the price lives */
  const tarn_price *price;      /* NULL: the analytic one */
  double begin, each;           /* seconds: when it began; of one trial, as the last batch took */
  uint64_t random;
  tarn_tune_report r;
} tuner;

/* ---- what the store knows ---- */
typedef struct old_trial {
  tuner *t;
  search_task *k;
  const tarn_record *r;
} old_trial;
static void recall(tarn_ctx *cx, void *arg) {
  (void)cx;
  old_trial *o = arg;
  const tarn_nest *n = tarn_nest_get(o->t->L, o->k->sig->nest);
  search_note(o->k,
              tarn_schedule_parse(o->t->L, n, o->r->schedule_text, strlen(o->r->schedule_text)),
              o->r->seconds);
}
static void recall_all(tuner *t) {
  const tarn_record *r;
  const tarn_sample *x;
  uint32_t n = tarn_store_read(t->store, t->key, &r), m = tarn_samples(t->L, t->hw, r, n, &x);
  for (uint32_t i = 0; i < m; i++) tarn_push(t->cx, &t->sample, x[i]);
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t *at = tarn_map_get(t->by_kernel, r[i].kernel);
    if (!at || r[i].threads != t->threads) continue;
    old_trial o = {t, t->task[*at - 1], &r[i]};
    t->r.trials += tarn_tried(t->cx, recall, &o);
  }
}

/* ---- the price, learned anew, where there was none to begin with ---- */
typedef struct lesson {
  tuner *t;
  const tarn_price *out;
} lesson;
static void learn(tarn_ctx *cx, void *arg) {
  lesson *l = arg;
  const trees *tr = trees_train(cx, l->t->sample.p, l->t->sample.n, l->t->o->seed, QUICK_ROUNDS);
  l->out = trees_price(cx, tr, "learned while tuning");
}
static void drop_apart(void *arg) {
  tuner *t = arg;
  if (t->apart) tarn_ctx_free(t->apart);
  t->apart = NULL;
}
static void learn_anew(tuner *t) {
  if (t->o->price || t->sample.n < FEW || t->sample.n < t->learned + t->learned / 16 + 1) return;
  lesson l = {t, NULL};
  drop_apart(t);
  t->apart = tarn_ctx_new(tarn_ctx_allocator(t->cx));
  if (!t->apart) tarn_raise(t->cx, TARN_MEMORY, "out of memory");
  tarn_status st = tarn_protect(t->apart, learn, &l);
  if (st != TARN_OK) tarn_raise(t->cx, st, "%s", tarn_message(t->apart));
  t->price = l.out, t->learned = t->sample.n;
}

/* ---- which kernels next ---- */
static double throughput(const search_task *k) {
  return k->least > 0 && k->least < INFINITY ? k->flops / k->least : 0;
}
/* Two kernels are alike when both or neither reduce, over as many dims. */
static bool alike(const search_task *a, const search_task *b) {
  const evolve_stage *x = &a->space->stage[a->space->nstage - 1],
                     *y = &b->space->stage[b->space->nstage - 1];
  return x->reduces == y->reduces && x->n - x->nacc == y->n - y->nacc;
}
/* How fast the network's time falls with a trial of this kernel: the gradient of Ansor's task
 * scheduler (OSDI 2020, section 6.2) with its alpha 0.2 and beta 2; never above 0. */
static double gradient(const tuner *t, const search_task *k) {
  double best = 0, trials = k->done.n > 0 ? k->done.n : 1;
  if (!(k->least < INFINITY)) return 0; /* nothing of it could be measured: the others first */
  for (uint32_t i = 0; i < t->ntask; i++)
    if (alike(k, t->task[i])) best = fmax(best, throughput(t->task[i]));
  double back = k->before < INFINITY ? (k->least - k->before) / EACH : 0;
  double ahead = -k->least / trials;
  if (best > 0) ahead = fmin(ahead, 2 * k->flops / best - k->least);
  return k->weight * (0.2 * back + 0.8 * fmin(ahead, 0));
}
/* What a kernel takes of the network's time, as far as is known. */
static double takes(const tuner *t, const search_task *k) {
  return k->weight * (k->least < INFINITY ? k->least : search_price(k, t->price, k->own));
}
static bool light(const tuner *t, const search_task *k) {
  double all = 0;
  for (uint32_t i = 0; i < t->ntask; i++) all += takes(t, t->task[i]);
  return takes(t, k) * LIGHT < all;
}
static bool open_to(const search_task *k) { return !k->dry && k->weight > 0; }
static double steepness(const tuner *t, const search_task *k) {
  return k->batches ? gradient(t, k) : -INFINITY; /* each has its first turn, in order */
}
/* The steepest that still has something to try and is not taken yet; one of twenty at random. */
static search_task *steepest(tuner *t, const bool *taken) {
  search_task *best = NULL;
  double least = 1;
  uint32_t left = 0;
  for (uint32_t i = 0; i < t->ntask; i++) left += !taken[i] && open_to(t->task[i]);
  uint32_t any = evolve_below(&t->random, 20) ? left : evolve_below(&t->random, left);
  for (uint32_t i = 0, at = 0; i < t->ntask; i++) {
    search_task *k = t->task[i];
    if (taken[i] || !open_to(k)) continue;
    if (at++ == any) return k;
    double g = steepness(t, k);
    if (!best || g < least) best = k, least = g;
  }
  return best;
}

/* ---- measuring ----
 * From one minute to the next a machine runs up to a tenth faster or slower, with all trials of a
 * batch. So the fastest known schedules of each kernel are measured again beside its new ones, and
 * its seconds are put to the pace at which these were measured before; their own become the mean of
 * all their times. What is compared was measured side by side, and no schedule is chosen for the
 * minute that it met. */
typedef struct batch {
  uint32_t n, again; /* trials: n new ones, then those that are measured again */
  tarn_trial trial[GROUP + AGAIN * SIDE];
  search_task *of[GROUP + AGAIN * SIDE];
  tarn_record record[GROUP + AGAIN * SIDE], sure[GROUP + AGAIN * SIDE];
  double seconds[GROUP + AGAIN * SIDE];
  bool unsure[GROUP + AGAIN * SIDE];
} batch;
static void note(tuner *t, const batch *b, uint32_t i, double seconds) {
  search_note(b->of[i], b->trial[i].sched, seconds);
  t->r.trials++;
  t->r.failed += !b->unsure[i] && !(seconds < INFINITY);
}
static void enter(tuner *t, batch *b, search_task *k, const tarn_schedule *s) {
  tarn_record r = tarn_record_of(t->L, k->sig, s, t->threads);
  b->trial[b->n] = (tarn_trial){k->sig, s}, b->of[b->n] = k, b->record[b->n] = r;
  b->unsure[b->n] = false;
  if (tarn_store_has(t->store, t->key, t->threads, r.kernel, r.schedule, &r.seconds))
    note(t, b, b->n, r.seconds);
  else b->n++;
}
static void enter_again(tuner *t, batch *b, search_task *k) {
  const search_trial *best[AGAIN];
  for (uint32_t i = 0, n = search_fastest(k, AGAIN, best); i < n; i++) {
    uint32_t at = b->n + b->again++;
    b->trial[at] = (tarn_trial){k->sig, best[i]->sched}, b->of[at] = k;
    b->record[at] = tarn_record_of(t->L, k->sig, best[i]->sched, t->threads),
    b->record[at].seconds = best[i]->seconds;
  }
}
/* Those of the kernels in a batch; of another, when all of these are new. */
static void enter_known(tuner *t, batch *b) {
  for (uint32_t i = 0; i < t->ntask && b->n; i++) {
    bool here = false;
    for (uint32_t j = 0; j < b->n; j++) here |= b->of[j] == t->task[i];
    if (here) enter_again(t, b, t->task[i]);
  }
  for (uint32_t i = 0; i < t->ntask && b->n && !b->again; i++) enter_again(t, b, t->task[i]);
}
static void put_to_pace(batch *b) {
  uint32_t kernel[GROUP + AGAIN * SIDE];
  double before[GROUP + AGAIN * SIDE];
  for (uint32_t i = 0; i < b->n + b->again; i++) {
    before[i] = i < b->n ? INFINITY : b->record[i].seconds;
    for (kernel[i] = 0; b->of[kernel[i]] != b->of[i];) kernel[i]++;
  }
  pace_align(kernel, before, b->n + b->again, b->seconds);
}
static double time_left(const tuner *t) {
  return t->o->seconds > 0 ? t->begin + t->o->seconds - tarn_now() : INFINITY;
}
static bool time_up(const tuner *t) { return time_left(t) < 0; }
/* On this machine, all trials side by side. What the search's own limit ends has not failed. */
static void measure_here(tuner *t, batch *b) {
  double most = fmin(60, fmax(LEAST_BATCH, time_left(t)));
  tarn_measure(t->L, t->hw, b->trial, b->n + b->again, t->threads, most, TARN_MEASURE_SEED,
               b->seconds);
  for (uint32_t i = 0; i < b->n; i++) /* the batch broke: one by one, to find which */
    if (b->seconds[i] < INFINITY) continue;
    else if (time_up(t)) b->unsure[i] = true;
    else if (b->n > 1)
      tarn_measure(t->L, t->hw, &b->trial[i], 1, t->threads, 20, TARN_MEASURE_SEED, &b->seconds[i]);
  put_to_pace(b);
}
/* All trials but those whose times are not to be learned from: they are known in this search. */
static uint32_t keep_sure(const batch *b, bool finite, tarn_record *out) {
  uint32_t n = 0, all = finite ? b->n : b->n + b->again;
  for (uint32_t i = 0; i < all; i++)
    if (!b->unsure[i] && (!finite || b->seconds[i] < INFINITY)) out[n++] = b->record[i];
  return n;
}
static void measure(tuner *t, batch *b) {
  const tarn_sample *x;
  const tarn_measurer *by = t->o->by;
  uint32_t all = b->n + b->again;
  if (!b->n) return;
  memset(b->unsure, 0, sizeof b->unsure);
  if (by) by->measure(by->user, t->L, t->hw, b->trial, all, t->threads, b->seconds, b->unsure);
  else measure_here(t, b);
  for (uint32_t i = 0; i < b->n; i++)
    b->record[i].seconds = b->seconds[i], note(t, b, i, b->seconds[i]);
  for (uint32_t i = b->n; i < all; i++)
    b->record[i].seconds = search_note(b->of[i], b->trial[i].sched, b->seconds[i]);
  tarn_record *sure = b->sure;
  tarn_store_add(t->store, t->key, sure, keep_sure(b, false, sure));
  uint32_t n = tarn_samples(t->L, t->hw, sure, keep_sure(b, true, sure), &x);
  for (uint32_t i = 0; i < n; i++) tarn_push(t->cx, &t->sample, x[i]);
  for (uint32_t i = 0; i < b->n; i++) t->r.fresh += !b->unsure[i] || b->seconds[i] < INFINITY;
}
/* How many trials fit into the time that is left; of a first batch, as many as one kernel gets. */
static uint32_t most_trials(const tuner *t) {
  uint32_t left = t->trials - t->r.trials;
  if (!(t->o->seconds > 0)) return left;
  double fit = t->each > 0 ? time_left(t) / t->each : EACH;
  return fit < 1 ? 1 : fit < left ? (uint32_t)fit : left;
}
static void measure_timed(tuner *t, batch *b) {
  uint32_t n = b->n + b->again;
  double begin = tarn_now();
  measure(t, b);
  if (n) t->each = (tarn_now() - begin) / n;
}
static double network(const tuner *t) {
  double sum = 0;
  for (uint32_t i = 0; i < t->ntask; i++)
    if (t->task[i]->least < INFINITY) sum += t->task[i]->weight * t->task[i]->least;
  return sum;
}
static void show(const tuner *t, uint32_t done) {
  if (t->o->progress)
    t->o->progress(t->o->user, done < t->trials ? done : t->trials, t->trials, t->r.fresh,
                   network(t));
}

static uint32_t turn(tuner *t, batch *b, search_task *k, uint32_t most) {
  const tarn_schedule *next[EACH];
  uint32_t want = k->batches || !light(t, k) ? EACH : EACH / 3,
           n = search_next(k, t->price, most < want ? most : want, next);
  k->before = k->least;
  for (uint32_t i = 0; i < n; i++) enter(t, b, k, next[i]);
  return n;
}
static void tune(tuner *t) {
  bool *taken = TARN_ARRAY(t->cx, bool, t->ntask + 1);
  batch *b = TARN_NEW(t->cx, batch);
  while (t->r.trials < t->trials && !time_up(t)) {
    memset(taken, 0, t->ntask * sizeof *taken);
    learn_anew(t);
    uint32_t asked = 0, most = most_trials(t);
    double first = 0;
    b->n = b->again = 0;
    for (uint32_t i = 0; i < SIDE && b->n < most && t->r.trials + b->n < t->trials; i++) {
      search_task *k = steepest(t, taken);
      if (!k || (i && steepness(t, k) > first / FLAT)) break;
      if (!i) first = steepness(t, k);
      for (uint32_t j = 0; j < t->ntask; j++) taken[j] = taken[j] || t->task[j] == k;
      uint32_t left = t->trials - t->r.trials;
      asked += turn(t, b, k, (most < left ? most : left) - b->n);
    }
    if (!asked && !b->n) {
      uint32_t left = 0;
      for (uint32_t i = 0; i < t->ntask; i++) left += open_to(t->task[i]);
      if (!left) break; /* nothing is left to try */
    }
    enter_known(t, b);
    measure_timed(t, b);
    show(t, t->r.trials);
  }
}

/* A sample of every kernel, in an order by chance: stopped at any moment, all have had their share.
 */
static void spread(tuner *t) {
  typedef struct planned {
    search_task *k;
    const tarn_schedule *s;
  } planned;
  TARN_VEC(planned) all = {0};
  uint32_t each = t->o->per_kernel ? t->o->per_kernel : 40, had = t->r.trials;
  const tarn_schedule **one = TARN_ARRAY(t->cx, const tarn_schedule *, each + 1);
  for (uint32_t i = 0; i < t->ntask && had + all.n < t->trials; i++) {
    search_task *k = t->task[i];
    if (search_price(k, NULL, k->own) > SLOWEST) continue;
    uint32_t have = k->done.n < each ? k->done.n : each, n = search_spread(k, each - have, one);
    for (uint32_t j = 0; j < n && had + all.n < t->trials; j++)
      tarn_push(t->cx, &all, ((planned){k, one[j]}));
  }
  for (uint32_t i = all.n; i > 1; i--) {
    uint32_t j = evolve_below(&t->random, i);
    planned x = all.p[i - 1];
    all.p[i - 1] = all.p[j], all.p[j] = x;
  }
  batch *b = TARN_NEW(t->cx, batch);
  t->trials = had + all.n;
  for (uint32_t i = 0; i < all.n && !time_up(t);) {
    double took = 0;
    b->n = b->again = 0;
    for (; i < all.n && b->n < GROUP && took < GROUP_TIME; i++) {
      uint32_t before = b->n;
      enter(t, b, all.p[i].k, all.p[i].s);
      if (b->n > before) took += search_price(all.p[i].k, t->price, all.p[i].s);
    }
    measure(t, b);
    show(t, t->r.trials);
  }
}

/* As in a store, tarn_record.kernel. */
static uint64_t kernel_of(const tuner *t, const tarn_ksig *k) {
  const char *text = tarn_ksig_text(t->L, t->cx, k);
  return tarn_hash_bytes(text, strlen(text), 0);
}
static void make_tasks(tuner *t, const tarn_ksig *const *sig, const uint32_t *uses, uint32_t nsig) {
  tarn_solver *solver = tarn_target_solver(t->L, t->hw, t->threads);
  if (t->o->price) tarn_solver_rank(solver, t->o->price, TARN_RANKED);
  uint32_t *order = TARN_ARRAY(t->cx, uint32_t, nsig + 1);
  for (uint32_t i = 0; i < nsig; i++) {
    uint32_t j = evolve_below(&t->random, i + 1);
    order[i] = order[j], order[j] = i;
  }
  t->task = TARN_ARRAY(t->cx, search_task *, nsig + 1);
  for (uint32_t i = 0; i < nsig; i++) {
    const tarn_ksig *k = sig[t->o->spread ? order[i] : i];
    if (!tarn_solve(solver, k, NULL)) continue; /* the host's part of an accelerator's program */
    uint64_t hash = kernel_of(t, k);
    bool fresh;
    uint64_t *at = tarn_map_at(t->by_kernel, hash, &fresh);
    if (fresh) {
      *at = t->ntask + 1;
      t->task[t->ntask] =
          search_new(t->L, t->hw, solver, k, t->threads, tarn_hash_mix(t->o->seed, hash), POOL);
      t->task[t->ntask++]->weight = 0;
    }
    t->task[*at - 1]->weight += uses ? uses[t->o->spread ? order[i] : i] : 1;
  }
}
static void sum_up(tuner *t) {
  t->r.best = network(t);
  for (uint32_t i = 0; i < t->ntask; i++) {
    const search_task *k = t->task[i];
    const uint64_t *at = tarn_map_get(k->seen, search_hash(k->own));
    if (!(k->weight > 0)) continue;
    double own = at ? k->done.p[*at - 1].seconds : INFINITY;
    t->r.kernels += k->least < INFINITY;
    if (!(own < INFINITY) || !(k->least < INFINITY)) continue;
    t->r.compared++, t->r.untuned += log(own / k->least);
  }
  t->r.untuned = t->r.compared ? exp(t->r.untuned / t->r.compared) : NAN;
}

static tarn_judged judged(const tuner *t, const tarn_ksig *const *sig, uint32_t nsig) {
  uint64_t *kernel = TARN_ARRAY(t->cx, uint64_t, nsig + 1);
  for (uint32_t i = 0; i < nsig; i++) kernel[i] = kernel_of(t, sig[i]);
  return (tarn_judged){kernel, nsig, t->threads, t->o->per_kernel};
}

tarn_tune_report tarn_tune(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *const *sig,
                           const uint32_t *uses, uint32_t nsig, tarn_store *s,
                           const tarn_tune_options *o) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tuner *t = TARN_NEW(cx, tuner);
  *t = (tuner){.cx = cx,
               .L = L,
               .hw = hw,
               .o = o,
               .store = s,
               .key = tarn_hw_key(hw, cx),
               .by_kernel = tarn_map_new(cx),
               .trials = o->trials ? o->trials : 1000,
               .begin = tarn_now(),
               .random = o->seed + 3,
               .price = o->price};
  t->threads = o->threads ? o->threads : hw->units;
  tarn_defer(cx, drop_apart, t);
  if (!o->train_only) make_tasks(t, sig, uses, nsig);
  recall_all(t);
  if (o->train_only) t->r.trials = t->sample.n;
  else if (o->spread) spread(t);
  else tune(t);
  sum_up(t);
  if (o->model && (t->sample.n >= 50 || o->train_only)) {
    tarn_judged of = judged(t, sig, nsig);
    tarn_learn(cx, t->key, t->sample.p, t->sample.n, o->seed, o->trust, o->model,
               o->train_only && nsig ? &of : NULL, &t->r.fit);
    t->r.trained = true;
  }
  return t->r;
}
