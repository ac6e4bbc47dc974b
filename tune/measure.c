/* Measures scheduled kernels: compiles a program of them and runs it in a child process. */
#include "compile/compile.h"
#include "hw/host/host.h"
#include "tune/child.h"
#include "tune/pace.h"
#include "tune/tune.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- timing ----
 * Each trial runs once a round, in another order each round, so that what comes comes to all alike:
 * see pace.h. */
#define LEAST_ROUNDS  24
#define MOST_ROUNDS   160
#define LEAST_SECONDS 2.0
#define SLOW                                                                                       \
  0.003           /* seconds: such a trial is run in every fourth round only, once it has had six */
#define LONG 0.25 /* seconds in all: enough for one trial, once it has had three */

/* Memory that all trials share, by the number of the operand. A run finds it as in a network: an
 * input has just been written, so it is read through before; constants are not touched between two
 * runs of the network but by one kernel, and the others have driven them out of the caches of a
 * core, so every run has them at another place of a large memory. */
#define AROUND                                                                                     \
  (64ll << 20) /* bytes beside the largest constant: the weights of a medium-sized network */
typedef struct region {
  tarn_tensor *all;
  int64_t most, next; /* elements: the largest operand; where the next constant lies */
  bool constants;     /* some operand here is one */
} region;
typedef struct shared {
  tarn_ctx *cx;
  uint32_t seed;
  TARN_VEC(region) at;
} shared;
static void fill(tarn_tensor *t, uint32_t seed) {
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++) {
    seed = seed * 1664525u + 1013904223u; /* Numerical Recipes, 2nd edition, section 7.1 */
    ((float *)t->data)[i] = (float)(seed >> 8) * 0x1p-24f;
  }
}
/* Any rows of so many; of none all zeros. */
static tarn_tensor *integers(shared *s, const tarn_port *p, int64_t rows) {
  tarn_tensor *t = tarn_tensor_new(s->cx, p->dtype, p->n, p->dim);
  uint64_t random = s->seed;
  for (int64_t i = 0, n = rows ? tarn_tensor_count(t) : 0; i < n; i++)
    tarn_tensor_set(t, i, (tarn_value){.i = (int64_t)(tarn_random(&random) % (uint64_t)rows)});
  return t;
}
/* f32 is placed before a run. rows: that it names as a lookup, 0: it is none. */
static tarn_tensor *operand(shared *s, const tarn_port *p, uint32_t i, bool constant,
                            int64_t rows) {
  if (p->dtype != TARN_F32) return integers(s, p, rows);
  tarn_tensor *t = TARN_NEW(s->cx, tarn_tensor);
  *t = (tarn_tensor){.dtype = TARN_F32, .n = (uint8_t)p->n};
  memcpy(t->dim, p->dim, p->n * sizeof *p->dim);
  while (s->at.n <= i) tarn_push(s->cx, &s->at, (region){0});
  region *r = &s->at.p[i];
  if (tarn_tensor_count(t) > r->most) r->most = tarn_tensor_count(t);
  r->constants |= constant;
  return t;
}
/* In huge pages where they are to be had, as programs have their constants and their workspace. */
static tarn_tensor *spread_out(shared *s, int64_t n) {
  size_t page = (size_t)2 << 20, bytes = ((size_t)n * sizeof(float) + page) / page * page;
  tarn_tensor *t = TARN_NEW(s->cx, tarn_tensor);
  *t = (tarn_tensor){.dtype = TARN_F32, .n = 1, .dim = {n}, .data = aligned_alloc(page, bytes)};
  if (!t->data) tarn_raise(s->cx, TARN_MEMORY, "out of memory");
  (void)madvise(t->data, bytes, MADV_HUGEPAGE);
  fill(t, s->seed);
  return t;
}
static void place(shared *s, tarn_tensor *t, uint32_t i, bool constant) {
  if (t->dtype != TARN_F32) return;
  region *r = &s->at.p[i];
  int64_t n = tarn_tensor_count(t), total = r->most, line = 16;
  if (r->constants) total += AROUND / (int64_t)sizeof(float);
  if (!r->all) r->all = spread_out(s, total);
  if (r->next + n > total) r->next = 0;
  t->data = (float *)r->all->data + (constant ? r->next : 0);
  if (constant) r->next += (n + line - 1) / line * line;
}

/* Into the caches, as far as they go. */
static void read_through(const tarn_tensor *t) {
  size_t n = tarn_tensor_bytes(t);
  const volatile char *p = t->data;
  for (size_t i = 0; i < n; i += 64) (void)p[i];
}

typedef struct task {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_trial *t;
  uint32_t n, threads;
  char dir[TARN_FOLDER];
  double *seconds;
} task;
#define RESULT TARN_MAX_OPERANDS /* region of the first result */
typedef struct program {
  const tarn_target *target;
  tarn_loaded *m;
  tarn_tensor **in, **out;
  const tarn_trial *t;
  uint32_t *first_in, *first_out; /* of each kernel */
} program;
static program open_program(shared *s, const task *of) {
  const tarn_target *target = tarn_target_of(s->cx, of->hw);
  program p = {.target = target, .m = target->load(s->cx, of->dir), .t = of->t};
  const tarn_trial *t = of->t;
  uint32_t n = of->n;
  const tarn_port *ip, *op;
  uint32_t nin = tarn_loaded_ports(p.m, false, &ip), nout = tarn_loaded_ports(p.m, true, &op),
           i = 0, o = 0;
  p.in = TARN_ARRAY(s->cx, tarn_tensor *, nin + 1),
  p.out = TARN_ARRAY(s->cx, tarn_tensor *, nout + 1);
  p.first_in = TARN_ARRAY(s->cx, uint32_t, n), p.first_out = TARN_ARRAY(s->cx, uint32_t, n);
  for (uint32_t k = 0; k < n; k++) {
    p.first_in[k] = i, p.first_out[k] = o;
    const tarn_nest *nest = tarn_nest_get(of->L, t[k].sig->nest);
    for (uint32_t j = 0; j < t[k].sig->nin; j++, i++)
      p.in[i] = operand(s, &ip[i], j, t[k].sig->in_const[j], tarn_nest_rows(of->L, nest, j));
    for (uint32_t j = 0; j < t[k].sig->nout; j++, o++)
      p.out[o] = operand(s, &op[o], RESULT + j, false, 0);
  }
  return p;
}

static double run_once(shared *s, const program *p, uint32_t k, uint32_t threads) {
  const tarn_ksig *sig = p->t[k].sig;
  for (uint32_t j = 0; j < sig->nin; j++) place(s, p->in[p->first_in[k] + j], j, sig->in_const[j]);
  for (uint32_t j = 0; j < sig->nout; j++) place(s, p->out[p->first_out[k] + j], RESULT + j, false);
  for (uint32_t j = 0; j < sig->nin; j++)
    if (!sig->in_const[j]) read_through(p->in[p->first_in[k] + j]);
  return p->target->time(p->m, (const tarn_tensor *const *)p->in, p->out, threads, k);
}
/* ---- the children ---- */
static void build_here(tarn_ctx *cx, void *arg) {
  task *k = arg;
  const tarn_target *t = tarn_target_of(cx, k->hw);
  tarn_compile_kernels(k->L, k->hw, tarn_hw_host(k->L, false), k->t, k->n, k->t[0].sig->strict,
                       t->program->emit, k->dir);
  k->seconds[0] = 0;
}
typedef struct one_run {
  uint32_t program, kernel, trial;
} one_run;
/* Fisher and Yates: a run shall not always find what the same other one left. */
static void shuffle(one_run *o, uint32_t n, uint32_t *seed) {
  for (uint32_t i = n; i > 1; i--) {
    *seed = *seed * 1664525u + 1013904223u;
    uint32_t k = (uint32_t)((uint64_t)*seed * i >> 32);
    one_run t = o[i - 1];
    o[i - 1] = o[k], o[k] = t;
  }
}
/* Times the programs of n tasks in turns; seconds of the first task's first trial, and so on, lie
 * one after the other. */
typedef struct timing {
  task *k;
  uint32_t n, seed;
  double *seconds;
} timing;
static void time_here(tarn_ctx *cx, void *arg) {
  timing *g = arg;
  shared s = {.cx = cx, .seed = g->seed};
  double begin = tarn_now();
  uint32_t n = 0, nrun = 0, seed = g->seed;
  program *p = TARN_ARRAY(cx, program, g->n);
  for (uint32_t i = 0; i < g->n; n += g->k[i++].n) p[i] = open_program(&s, &g->k[i]);
  if (!p->target->away) tarn_child_close(cx); /* a device's driver asks for files */
  one_run *order = TARN_ARRAY(cx, one_run, n + 1);
  double *last = TARN_ARRAY(cx, double, n + 1), *spent = TARN_ARRAY(cx, double, n + 1);
  pace_run *run = TARN_ARRAY(cx, pace_run, (size_t)n * MOST_ROUNDS + 1);
  for (uint32_t i = 0, at = 0; i < g->n; i++)
    for (uint32_t k = 0; k < g->k[i].n; k++, at++) order[at] = (one_run){i, k, at};
  for (uint32_t round = 0;
       round < MOST_ROUNDS && (round < LEAST_ROUNDS || tarn_now() - begin < LEAST_SECONDS);
       round++) {
    shuffle(order, n, &seed);
    for (uint32_t o = 0; o < n; o++) {
      uint32_t i = order[o].program, trial = order[o].trial;
      if (round >= 6 && round % 4 && last[trial] > SLOW) continue;
      if (round >= 3 && spent[trial] > LONG) continue;
      spent[trial] += last[trial] = run_once(&s, &p[i], order[o].kernel, g->k[i].threads);
      run[nrun++] = (pace_run){trial, (float)log2(last[trial]), 0};
    }
  }
  pace_settle(cx, run, nrun, n, g->seconds);
}
/* ---- many trials: programs of a few are built side by side, then timed in turns ---- */
#define BATCH         24 /* kernels in one program */
#define MOST_BUILDERS 64
typedef struct job {
  uint32_t n, side, seed;
  double limit;
  task *k;
  bool *built;
  tarn_child w[MOST_BUILDERS];
} job;
static void clean_up(void *arg) {
  job *j = arg;
  for (uint32_t i = 0; i < MOST_BUILDERS; i++)
    if (j->w[i].pid) tarn_child_end(&j->w[i]);
  for (uint32_t i = 0; i < j->n; i++)
    if (j->k[i].dir[0]) tarn_folder_remove(j->k[i].dir);
}
static void build_some(tarn_ctx *cx, job *j, uint32_t from, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    task *k = &j->k[from + i];
    tarn_folder_make(cx, "measure", k->dir);
    j->w[i] = (tarn_child){.cx = cx, .work = build_here, .arg = k, .out = &k->seconds[0], .n = 1};
    tarn_child_begin(&j->w[i]);
  }
  double until = tarn_now() + j->limit;
  for (uint32_t i = 0; i < n; i++) j->built[from + i] = tarn_child_wait(&j->w[i], until);
}
/* The seconds of some tasks side by side in the memory of all; nothing is known when the child
 * fails. */
static bool time_some(tarn_ctx *cx, job *j, task *k, uint32_t n) {
  uint32_t trials = 0;
  for (uint32_t i = 0; i < n; i++) trials += k[i].n;
  double *all = TARN_ARRAY(cx, double, trials + 1);
  timing g = {k, n, j->seed, all};
  j->w[0] = (tarn_child){.cx = cx, .work = time_here, .arg = &g, .out = all, .n = trials};
  tarn_child_begin(&j->w[0]);
  bool ok = tarn_child_wait(&j->w[0], tarn_now() + j->limit + 2 * LONG * trials);
  if (!ok && j->n == 1 && *j->w[0].why) tarn_raise(cx, TARN_BAD_INPUT, "%s", j->w[0].why);
  for (uint32_t i = 0; i < n && ok; all += k[i++].n)
    memcpy(k[i].seconds, all, k[i].n * sizeof(double));
  return ok;
}
static void measure_job(tarn_ctx *cx, void *arg) {
  job *j = arg;
  task *good = TARN_ARRAY(cx, task, j->n + 1);
  uint32_t n = 0;
  tarn_defer(cx, clean_up, j);
  for (uint32_t i = 0; i < j->n; i += j->side)
    build_some(cx, j, i, j->n - i < j->side ? j->n - i : j->side);
  for (uint32_t i = 0; i < j->n; i++) {
    if (j->built[i]) good[n++] = j->k[i];
    for (uint32_t k = 0; k < j->k[i].n; k++) j->k[i].seconds[k] = INFINITY;
  }
  if (n && !time_some(cx, j, good, n) && n > 1)
    for (uint32_t i = 0; i < n; i++) time_some(cx, j, &good[i], 1);
}
void tarn_measures(tarn_ctx *cx, const tarn_hw *hw) {
  const tarn_target *target = tarn_target_of(cx, hw);
  const char *why;
  if (!target->load)
    tarn_raise(cx, TARN_BAD_INPUT, "%s is %s %s: nothing measures its kernels yet", hw->name,
               strchr("aeiou", *target->name) ? "an" : "a", target->name);
  if (target->away && !tarn_gpu_here(cx, &why))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: nothing measures its kernels here: %s", hw->name, why);
}
/* How many of them one program can hold: it is compiled for one kind of numerics. */
static uint32_t together(const tarn_trial *t, uint32_t n) {
  uint32_t m = 1;
  while (m < n && m < BATCH && t[m].sig->strict == t->sig->strict) m++;
  return m;
}
void tarn_measure(tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n,
                  uint32_t threads, double limit, uint32_t seed, double *seconds) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_measures(cx, hw);
  job j = {.side = hw->units < 1               ? 1
                   : hw->units < MOST_BUILDERS ? hw->units
                                               : MOST_BUILDERS,
           .seed = seed,
           .limit = limit};
  j.k = TARN_ARRAY(cx, task, n + 1), j.built = TARN_ARRAY(cx, bool, n + 1);
  for (uint32_t at = 0, m; at < n; at += m) {
    m = together(t + at, n - at);
    j.k[j.n++] =
        (task){.L = L, .hw = hw, .t = t + at, .n = m, .threads = threads, .seconds = seconds + at};
  }
  tarn_status st = j.n ? tarn_protect(cx, measure_job, &j) : TARN_OK;
  if (st != TARN_OK) tarn_reraise(cx, st);
}
