/* See bench.h. */
#include "fleet/bench.h"
#include "compile/target.h"
#include "plan/work.h"
#include <errno.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIFT   1.15 /* times slower or faster than at first: not the machine that it was */
#define MEMORY  (16ull << 30)
#define SECONDS 60
#define WARMING 3 /* measurements of the calibration kernel; the last one counts */
#define TICK    0.1

/* A product of 96 by 96 by 96: it takes microseconds on a core, and the caches hold it. */
static const char calibration[] =
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 96 96) (reduce 96) (red sum "
    "(mul $0 $1)) (child 0 (index ((96 96) (96)) (9216) ((+ (* 96 d0) d2)))) (child 1 (index ((96 "
    "96) (96)) (9216) ((+ d1 (* 96 d2))))) out)))(in f32 (9216) (1))(in f32 (9216) (1))(out f32 "
    "(96 96) (96 1)))";

/* ---- in the child ---- */
typedef struct work {
  const fleet_bench *b;
  const fleet_job *j; /* NULL: the calibration kernel alone */
  uint32_t threads;
  double out[2]; /* of the job; of the calibration kernel */
} work;
static const tarn_ksig *read_kernel(tarn_lang *L, const char *text) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_ksig *k = TARN_NEW(cx, tarn_ksig);
  tarn_ksig_parse(L, text, strlen(text), k);
  if (!tarn_ksig_complete(L, k))
    tarn_raise(cx, TARN_BAD_INPUT, "a sum multiplied by unknown constant matrices");
  return k;
}
static tarn_trial read_trial(const fleet_bench *b, const fleet_job *j) {
  tarn_lang *L = b->L;
  const tarn_ksig *k = read_kernel(L, j->kernel);
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  const tarn_schedule *s = tarn_schedule_parse(L, n, j->schedule, strlen(j->schedule));
  tarn_target_of(tarn_lang_ctx(L), b->hw)->check(L, b->hw, k, s);
  return (tarn_trial){k, s};
}
static tarn_trial calibrating(const fleet_bench *b, uint32_t threads) {
  const tarn_ksig *k = read_kernel(b->L, calibration);
  return (tarn_trial){k, tarn_solve(tarn_target_solver(b->L, b->hw, threads), k, NULL)};
}
static void simulate(tarn_ctx *cx, work *w) {
  bool unsure;
  tarn_trial t = read_trial(w->b, w->j);
  const tarn_measurer *m = tarn_simulating(cx, w->b->hw);
  m->measure(m->user, w->b->L, w->b->hw, &t, 1, w->threads, &w->out[0], &unsure);
  if (w->b->o->pace > 0) usleep((useconds_t)(1e6 * w->b->o->pace));
}
static void measure_here(tarn_ctx *cx, void *arg) {
  work *w = arg;
  const fleet_bench *b = w->b;
  tarn_trial t[2];
  double seconds[2] = {INFINITY, INFINITY};
  uint32_t n = 0;
  w->out[0] = INFINITY, w->out[1] = 0;
  if (b->o->simulate) {
    if (w->j) simulate(cx, w);
    return;
  }
  if (w->j) t[n++] = read_trial(b, w->j);
  t[n++] = calibrating(b, w->threads);
  tarn_measure(b->L, b->hw, t, n, w->threads, b->o->limit > 0 ? b->o->limit : SECONDS,
               w->j ? w->j->seed : TARN_MEASURE_SEED, seconds);
  w->out[0] = seconds[0], w->out[1] = seconds[n - 1];
}

/* ---- the parent ---- */
/* False: it was given up. */
static bool run(fleet_bench *b, work *w, const char **why) {
  tarn_ctx *cx = tarn_lang_ctx(b->L);
  double limit = b->o->limit > 0 ? b->o->limit : SECONDS, until = tarn_now() + 2 * limit;
  tarn_child *c = TARN_NEW(cx, tarn_child);
  *c = (tarn_child){.cx = cx, .work = measure_here, .arg = w, .out = w->out, .n = 2};
  c->limits = &b->limits;
  tarn_child_begin(c);
  int got = 0;
  bool goes_on = true;
  while (!got && tarn_now() < until && (goes_on = !b->tick || b->tick(b->user)))
    got = tarn_child_look(c, TICK);
  tarn_child_end(c);
  if (got > 0) return true;
  w->out[0] = INFINITY, w->out[1] = 0;
  *why = got == 0  ? tarn_format(cx, "not done within %g s", 2 * limit)
         : *c->why ? tarn_shown(cx, tarn_strdup(cx, c->why))
                   : "its process ended";
  return goes_on;
}
static bool drifted(fleet_bench *b, uint32_t threads, double now) {
  double *first = &b->at_first[threads];
  if (!(now > 0) || !(now < INFINITY)) return false;
  if (!(*first > 0)) *first = now;
  return fabs(log(now / *first)) > log(DRIFT);
}
bool fleet_bench_measure(fleet_bench *b, const fleet_job *j, tarn_answer *x) {
  work w = {.b = b, .j = j, .threads = j->threads};
  const char *why = NULL;
  bool done = run(b, &w, &why);
  x->seconds = w.out[0] > 0 ? w.out[0] : INFINITY;
  x->calibration = w.out[1] < INFINITY ? w.out[1] : 0;
  x->drifted = drifted(b, j->threads, x->calibration);
  x->reason = why ? why : x->seconds < INFINITY ? NULL : "it could not be run";
  return done;
}

/* ---- options ---- */
void fleet_cores(tarn_ctx *cx, const char *list, cpu_set_t *set) {
  const char *p = list;
  CPU_ZERO(set);
  do {
    char *end;
    unsigned long a = strtoul(p, &end, 10), z = a;
    bool bad = end == p;
    if (*end == '-') z = strtoul(p = end + 1, &end, 10), bad |= end == p;
    if (bad || a > z || z >= CPU_SETSIZE || (*end && *end != ','))
      tarn_raise(cx, TARN_USAGE, "--cores %s: numbers as 0-3,8 are expected", list);
    for (unsigned long i = a; i <= z; i++) CPU_SET(i, set);
    p = *end ? end + 1 : NULL;
  } while (p);
}
static void become_whom(tarn_ctx *cx, const char *name, tarn_limits *l) {
  const struct passwd *p = getpwnam(name ? name : "nobody");
  if (geteuid() != 0 && name) tarn_raise(cx, TARN_USAGE, "--user %s: only root becomes one", name);
  if (geteuid() != 0) return;
  if (!p) tarn_raise(cx, TARN_USAGE, "--user %s: no such user", name ? name : "nobody");
  l->uid = p->pw_uid, l->gid = p->pw_gid;
}
static void warm_up(fleet_bench *b) {
  tarn_ctx *cx = tarn_lang_ctx(b->L);
  for (int i = 0; i < WARMING; i++) {
    const char *why = NULL;
    work w = {.b = b, .threads = b->hw->units};
    if (!run(b, &w, &why)) return;
    if (why) tarn_raise(cx, TARN_BAD_INPUT, "measuring does not work here: %s", why);
    if (!(w.out[1] < INFINITY))
      tarn_raise(cx, TARN_BAD_INPUT, "%s: its kernels cannot be run here", b->hw->name);
    b->at_first[b->hw->units] = w.out[1];
  }
}
void fleet_bench_open(fleet_bench *b) {
  tarn_ctx *cx = tarn_lang_ctx(b->L);
  bool away = tarn_target_of(cx, b->hw)->away; /* a device's driver reserves more addresses */
  b->limits = (tarn_limits){.offline = true};
  b->limits.memory = b->o->memory || away ? b->o->memory : MEMORY;
#if defined(__SANITIZE_ADDRESS__)
  b->limits.memory = 0; /* it reserves more addresses than any limit */
#endif
  if (b->o->cores) {
    fleet_cores(cx, b->o->cores, &b->cores);
    b->limits.cores = &b->cores;
  }
  become_whom(cx, b->o->user, &b->limits);
  if (b->o->simulate) return;
  tarn_measures(cx, b->hw);
  warm_up(b);
}
