/* See search.h. After Ansor's evolutionary search (Zheng et al., OSDI 2020, section 5.1). */
#include "tune/search.h"
#include "plan/unit.h"
#include "tune/near.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POPULATION  160
#define GENERATIONS 4
#define ELITE       32
#define CROSSED     3   /* of ten children */
#define SLOWEST     10  /* times the solver's choice by the analytic price: not worth a run */
#define NEAR        200 /* measurements, the last ones, from which the price's error is learned */

/* ---- drawing from what the solver enumerates ---- */
typedef struct drawn {
  double seconds;
  uint64_t at;
  tarn_stage_sched sched;
} drawn; /* at: order of drawing */
typedef struct draw {
  uint64_t random, count;
  double limit;
  uint32_t nbest, nany, want;
  drawn *best, *any; /* a uniform sample of the rest (reservoir) */
} draw;
static void visit(void *user, const tarn_schedule *s, double seconds) {
  draw *d = user;
  if (!(seconds < d->limit)) return;
  drawn x = {seconds, d->count++, s->stage[0]};
  if (d->nbest < d->want || seconds < d->best[d->nbest - 1].seconds) {
    bool full = d->nbest == d->want;
    uint32_t at = full ? d->nbest - 1 : d->nbest++;
    drawn out = d->best[at];
    for (; at > 0 && seconds < d->best[at - 1].seconds; at--) d->best[at] = d->best[at - 1];
    d->best[at] = x;
    if (!full) return;
    x = out;
  }
  if (d->nany < d->want) d->any[d->nany++] = x;
  else {
    uint64_t r = tarn_random(&d->random) % d->count;
    if (r < d->want) d->any[r] = x;
  }
}
static void to_pool(search_task *t, const drawn *x, uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(t->L);
  for (uint32_t i = 0; i < n; i++) {
    tarn_schedule *s = TARN_NEW(cx, tarn_schedule);
    s->nstage = 1, s->stage = tarn_copy(cx, &x[i].sched, sizeof *s->stage);
    tarn_push(cx, &t->pool, s);
  }
}
search_task *search_new(tarn_lang *L, const tarn_hw *hw, tarn_solver *solver, const tarn_ksig *k,
                        uint32_t threads, uint64_t seed, uint32_t pool) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  search_task *t = TARN_NEW(cx, search_task);
  tarn_cost c;
  *t = (search_task){.L = L,
                     .hw = hw,
                     .target = tarn_target_of(cx, hw),
                     .sig = k,
                     .threads = threads,
                     .weight = 1,
                     .seen = tarn_map_new(cx),
                     .random = seed,
                     .least = INFINITY,
                     .before = INFINITY,
                     .space = evolve_space_of(L, hw, k, threads)};
  t->own = tarn_solve(solver, k, &c), t->flops = c.flops;
  draw d = {.random = seed, .limit = SLOWEST * c.seconds, .want = pool ? pool : 1};
  d.best = TARN_ARRAY(cx, drawn, d.want + 1), d.any = TARN_ARRAY(cx, drawn, d.want + 1);
  if (t->target->schedules(solver, k, visit, &d)) {
    to_pool(t, d.best, d.nbest);
    t->nbest = t->pool.n;
    to_pool(t, d.any, d.nany);
  }
  if (!t->pool.n) tarn_push(cx, &t->pool, t->own), t->nbest = 1;
  return t;
}

/* ---- what is known ---- */
static uint64_t hash_hold(uint64_t h, const tarn_hold *x) {
  h = tarn_hash_mix(h, x->operand * 64u + x->slots);
  h = tarn_hash_mix(h, x->pad * 4096ull + x->skew);
  for (uint32_t i = 0; i < x->npart; i++) h = tarn_hash_mix(h, x->part[i].dim + 1u);
  return h;
}
uint64_t search_hash(const tarn_schedule *s) {
  uint64_t h = s->nstage;
  for (uint32_t i = 0; i < s->nshared; i++)
    h = tarn_hash_mix(tarn_hash_mix(h, s->shared[i].dim * 8u + s->shared[i].kind),
                      (uint64_t)s->shared[i].step);
  for (uint32_t i = 0; i < s->nstage; i++) {
    const tarn_stage_sched *t = &s->stage[i];
    h = tarn_hash_mix(h, t->nlevel * 64u + t->acc);
    for (uint32_t j = 0; j < t->nlevel; j++)
      h = tarn_hash_mix(tarn_hash_mix(h, t->level[j].dim * 8u + t->level[j].kind),
                        (uint64_t)t->level[j].step);
    for (uint32_t j = 0; j < t->nhold; j++) h = hash_hold(h, &t->hold[j]);
    if (t->unit) h = tarn_hash_bytes(t->unit->name, strlen(t->unit->name), h);
  }
  return h;
}
double search_note(search_task *t, const tarn_schedule *s, double seconds) {
  tarn_ctx *cx = tarn_lang_ctx(t->L);
  search_trial x = {search_hash(s), s, seconds, 1};
  bool fresh;
  uint64_t *at = tarn_map_at(t->seen, x.hash, &fresh);
  if (fresh) {
    *at = t->done.n + 1;
    tarn_push(cx, &t->done, x);
    t->least = fmin(t->least, seconds);
    return seconds;
  }
  search_trial *old = &t->done.p[*at - 1];
  if (!(old->seconds < INFINITY)) old->seconds = seconds;
  else if (seconds < INFINITY) old->seconds *= pow(seconds / old->seconds, 1.0 / ++old->times);
  t->least = INFINITY;
  for (uint32_t i = 0; i < t->done.n; i++) t->least = fmin(t->least, t->done.p[i].seconds);
  return old->seconds;
}
uint32_t search_fastest(const search_task *t, uint32_t most, const search_trial **e) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->done.n && most; i++) {
    const search_trial *x = &t->done.p[i];
    if (!(x->seconds < INFINITY) || (n == most && x->seconds >= e[most - 1]->seconds)) continue;
    uint32_t at = n < most ? n++ : most - 1;
    for (; at > 0 && x->seconds < e[at - 1]->seconds; at--) e[at] = e[at - 1];
    e[at] = x;
  }
  return n;
}
/* feature: filled in unless it is NULL. */
static double priced(const search_task *t, const tarn_price *price, const tarn_schedule *s,
                     float *feature) {
  tarn_cost c;
  tarn_target_price(t->L, t->hw, t->sig, s, t->threads, &c);
  if (feature) tarn_features(t->L, t->hw, t->sig, s, t->threads, &c, feature);
  return price ? price->seconds(price->user, t->L, t->hw, t->sig, s, t->threads, &c) : c.seconds;
}
double search_price(const search_task *t, const tarn_price *price, const tarn_schedule *s) {
  return priced(t, price, s, NULL);
}

/* ---- the price, put right by what was measured of this kernel ---- */
static const near_field *learn_near(const search_task *t, const tarn_price *price) {
  tarn_ctx *cx = tarn_lang_ctx(t->L);
  uint32_t n = 0, m = t->done.n < NEAR ? t->done.n : NEAR;
  near_point *x = TARN_ARRAY(cx, near_point, m + t->pool.n);
  for (uint32_t i = t->done.n - m; i < t->done.n; i++) {
    const search_trial *y = &t->done.p[i];
    if (y->seconds > 0 && y->seconds < INFINITY)
      x[n].off = log2(y->seconds / priced(t, price, y->sched, x[n].feature)), n++;
  }
  for (uint32_t i = 0; i < t->pool.n; i++) priced(t, price, t->pool.p[i], x[n + i].feature);
  return near_learn(cx, x, n, t->pool.n);
}
/* What it may well take: one standard deviation less than expected, lest only what is known is ever
 * tried. */
static double may_take(const search_task *t, const tarn_price *price, const near_field *near,
                       const tarn_schedule *s) {
  float feature[TARN_FEATURES];
  double seconds = priced(t, price, s, feature), unsure = 0,
         off = near ? near_off(near, feature, &unsure) : 0;
  seconds *= exp2(off - unsure);
  return seconds > 0 ? seconds : INFINITY; /* and what is no number */
}

/* ---- evolution ---- */
typedef struct individual {
  double seconds;
  uint64_t hash;
  tarn_schedule *s;
} individual;
typedef struct population {
  search_task *t;
  const tarn_price *price;
  const near_field *near;
  tarn_map *known; /* hashes of all there ever were */
  uint32_t n;
  individual *of; /* by rising price */
} population;

static int by_price(const void *a, const void *b) {
  const individual *x = a, *y = b;
  if (x->seconds != y->seconds) return x->seconds < y->seconds ? -1 : 1;
  return (x->hash > y->hash) - (x->hash < y->hash);
}
static void add(population *p, tarn_schedule *s) {
  individual x = {0, search_hash(s), s};
  bool fresh;
  tarn_map_at(p->known, x.hash, &fresh);
  if (!fresh) return;
  x.seconds = may_take(p->t, p->price, p->near, s);
  p->of[p->n++] = x;
}
static void cut(population *p) {
  qsort(p->of, p->n, sizeof *p->of, by_price);
  if (p->n > POPULATION) p->n = POPULATION;
}
/* A parent: the better of two drawn. */
static const individual *parent(const population *p, uint32_t n) {
  uint32_t a = evolve_below(&p->t->random, n), b = evolve_below(&p->t->random, n);
  return &p->of[a < b ? a : b];
}
static void breed(population *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->t->L);
  if (!p->t->space->kind) return;
  uint32_t parents = p->n;
  for (uint32_t i = 0; i < POPULATION; i++) {
    tarn_schedule *s = evolve_copy(cx, parent(p, parents)->s);
    if (evolve_below(&p->t->random, 10) < CROSSED)
      evolve_cross(p->t->space, s, parent(p, parents)->s, &p->t->random);
    else
      for (uint32_t k = 1 + evolve_below(&p->t->random, 3); k > 0; k--)
        evolve_mutate(p->t->space, s, &p->t->random);
    add(p, s);
  }
  cut(p);
}
static population *evolve(search_task *t, const tarn_price *price) {
  tarn_ctx *cx = tarn_lang_ctx(t->L);
  population *p = TARN_NEW(cx, population);
  const search_trial *elite[ELITE];
  uint32_t elites = search_fastest(t, ELITE, elite);
  *p =
      (population){.t = t, .price = price, .near = learn_near(t, price), .known = tarn_map_new(cx)};
  p->of = TARN_ARRAY(cx, individual, t->pool.n + ELITE + 2 * POPULATION + 1);
  for (uint32_t i = 0; i < elites; i++) add(p, evolve_copy(cx, elite[i]->sched));
  for (uint32_t i = 0; i < t->pool.n; i++) add(p, evolve_copy(cx, t->pool.p[i]));
  cut(p);
  for (int g = 0; g < GENERATIONS; g++) breed(p);
  return p;
}

/* ---- what to measure ---- */
typedef struct picks {
  search_task *t;
  uint32_t n, most;
  const tarn_schedule **out;
  tarn_map *taken;
} picks;
static bool take(picks *k, const tarn_schedule *s) {
  bool fresh;
  uint64_t h = search_hash(s);
  if (k->n == k->most || tarn_map_get(k->t->seen, h)) return false;
  tarn_map_at(k->taken, h, &fresh);
  if (fresh) k->out[k->n++] = s;
  return fresh;
}
static void take_random(picks *k, uint32_t want) {
  search_task *t = k->t;
  uint32_t from = t->nbest < t->pool.n ? t->nbest : 0;
  for (uint32_t tries = 0; want && tries < 64; tries++)
    want -= take(k, t->pool.p[from + evolve_below(&t->random, t->pool.n - from)]);
}
static void take_mutants(picks *k, uint32_t want) {
  search_task *t = k->t;
  for (uint32_t tries = 0; t->space->kind && want && tries < 64 * 4; tries++) {
    tarn_schedule *s =
        evolve_copy(tarn_lang_ctx(t->L), t->pool.p[evolve_below(&t->random, t->pool.n)]);
    for (uint32_t i = 1 + evolve_below(&t->random, 4); i > 0; i--)
      evolve_mutate(t->space, s, &t->random);
    want -= evolve_legal(t->space, s) && take(k, s);
  }
}
/* Of stages and what they hold: on accelerators each tensor. */
enum { MOST_HELD = TARN_UNIT_TENSORS };
static size_t size_of_one(const search_task *t) {
  size_t stage = sizeof(tarn_stage_sched) + MOST_HELD * sizeof(tarn_hold);
  return sizeof(tarn_schedule) + t->space->nstage * stage;
}
/* What was picked outlives the scratch that it was picked from. room: taken before it, for all that
 * is asked for. */
static void keep(picks *k, char *room, tarn_mark scratch) {
  size_t each = size_of_one(k->t), stages = k->t->space->nstage;
  for (uint32_t i = 0; i < k->n; i++) {
    tarn_schedule *s = memcpy(room + i * each, k->out[i], sizeof *s);
    s->stage = memcpy(room + i * each + sizeof *s, k->out[i]->stage, stages * sizeof *s->stage);
    tarn_hold *hold = (tarn_hold *)(s->stage + stages);
    for (uint32_t j = 0; j < stages; j++, hold += MOST_HELD)
      if (s->stage[j].nhold)
        s->stage[j].hold = memcpy(hold, s->stage[j].hold, s->stage[j].nhold * sizeof *hold);
    k->out[i] = s;
  }
  tarn_release(tarn_lang_ctx(k->t->L), scratch);
}
uint32_t search_next(search_task *t, const tarn_price *price, uint32_t n,
                     const tarn_schedule **out) {
  tarn_ctx *cx = tarn_lang_ctx(t->L);
  char *room = tarn_new(cx, n * size_of_one(t) + 1);
  tarn_mark scratch = tarn_arena_mark(cx);
  picks k = {t, 0, n, out, tarn_map_new(cx)};
  if (!t->batches++) take(&k, t->own); /* what a compile without tuning gets */
  population *p = evolve(t, price);
  uint32_t any = t->done.n ? (n + 7) / 8 : n / 3;
  for (uint32_t i = 0; i < p->n && k.n + any < n; i++) take(&k, p->of[i].s);
  take_random(&k, any / 2), take_mutants(&k, n - k.n);
  keep(&k, room, scratch);
  t->dry = k.n == 0;
  return k.n;
}
uint32_t search_spread(search_task *t, uint32_t n, const tarn_schedule **out) {
  tarn_ctx *cx = tarn_lang_ctx(t->L);
  char *room = tarn_new(cx, n * size_of_one(t) + 1);
  tarn_mark scratch = tarn_arena_mark(cx);
  picks k = {t, 0, n, out, tarn_map_new(cx)};
  take(&k, t->own);
  for (uint32_t i = 0; i < t->nbest && k.n < (n + 2) / 3; i++) take(&k, t->pool.p[i]);
  take_random(&k, n / 3), take_mutants(&k, n - k.n);
  keep(&k, room, scratch);
  return k.n;
}
