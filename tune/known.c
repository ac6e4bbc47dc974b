/* A price that uses measured times. See tarn_measured() in tune.h. */
#include "compile/target.h"
#include "tune/tune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct known_kernel {
  uint32_t first, n, best; /* n records of it lie side by side */
  const tarn_schedule *sched;
  bool parsed;
} known_kernel;
typedef struct known {
  tarn_ctx *cx;
  tarn_store *store;
  const char *key;      /* of the hardware */
  const tarn_record *r; /* of this number of threads, by kernel */
  TARN_VEC(known_kernel) kernel;
  tarn_map *by_text; /* hash of a kernel's text -> 1 + number in kernel */
  uint64_t scope;    /* of the language: what follows, and the kernels' schedules, are of it */
  tarn_map *by_sig;  /* hash of a kernel within this program -> 1 + … or 0: nothing known */
  tarn_map *seconds; /* hashes of kernel and schedule -> record */
  const tarn_price *otherwise;
  double scale; /* of what it says of a kernel: so that what was measured does not look dear, nor
                   cheap, beside what was not */
} known;

static uint64_t hash_of(const char *text) { return tarn_hash_bytes(text, strlen(text), 0); }

/* In another scope kernels have other numbers. */
static void follow_scope(known *q, tarn_lang *L) {
  if (q->by_sig && q->scope == tarn_lang_scope(L)) return;
  q->scope = tarn_lang_scope(L);
  q->by_sig = tarn_map_new(tarn_lang_ctx(L));
  for (uint32_t i = 0; i < q->kernel.n; i++) q->kernel.p[i].parsed = false;
}
/* What is known of a kernel, or NULL. Texts are made once a kernel. */
static known_kernel *find(known *q, tarn_lang *L, const tarn_ksig *k) {
  bool fresh;
  follow_scope(q, L);
  uint64_t *at = tarn_map_at(q->by_sig, tarn_ksig_hash(k), &fresh);
  if (fresh) {
    const uint64_t *here =
        tarn_map_get(q->by_text, hash_of(tarn_ksig_text(L, tarn_lang_ctx(L), k)));
    *at = here ? *here : 0;
  }
  return *at ? &q->kernel.p[*at - 1] : NULL;
}
static double expected(const tarn_price *p, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                       const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  return p ? p->seconds(p->user, L, hw, k, s, threads, analytic) : analytic->seconds;
}
/* Or 0. */
static double found(known *q, tarn_lang *L, const tarn_ksig *k, const tarn_schedule *s) {
  const known_kernel *e = find(q, L, k);
  if (!e) return 0;
  tarn_mark m = tarn_arena_mark(q->cx);
  uint64_t h = hash_of(tarn_schedule_text(q->cx, s));
  const uint64_t *at = tarn_map_get(q->seconds, tarn_hash_mix(q->r[e->first].kernel, h));
  tarn_release(q->cx, m);
  return at ? q->r[*at].seconds : 0;
}
static double measured_seconds(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                               const tarn_schedule *s, uint32_t threads,
                               const tarn_cost *analytic) {
  known *q = user;
  double t = found(q, L, k, s);
  return t > 0 ? t : expected(q->otherwise, L, hw, k, s, threads, analytic);
}
static double measured_kernel(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              const tarn_schedule *s, uint32_t threads, const tarn_cost *cost) {
  known *q = user;
  double t = found(q, L, k, s);
  if (t > 0) return t;
  const tarn_price *p = q->otherwise;
  return q->scale *
         (p && p->kernel ? p->kernel(p->user, L, hw, k, s, threads, cost) : cost->seconds);
}

static double measured_call(void *user, const tarn_written *w, const int64_t *size) {
  const known *q = user;
  double seconds = 0;
  tarn_record r = tarn_record_of_call(q->cx, w, size);
  tarn_store_has(q->store, q->key, r.threads, r.kernel, r.schedule, &seconds);
  return seconds;
}

typedef struct reading {
  tarn_lang *L;
  const tarn_ksig *k;
  const char *text;
  const tarn_schedule *out;
} reading;
static void read_schedule(tarn_ctx *cx, void *arg) {
  (void)cx;
  reading *r = arg;
  r->out = tarn_schedule_parse(r->L, tarn_nest_get(r->L, r->k->nest), r->text, strlen(r->text));
}
static const tarn_schedule *measured_schedule(void *user, tarn_lang *L, const tarn_ksig *k) {
  known *q = user;
  known_kernel *e = find(q, L, k);
  if (!e) return NULL;
  if (!e->parsed) {
    reading r = {L, k, q->r[e->best].schedule_text, NULL};
    e->parsed = true;
    e->sched = NULL;
    if (tarn_tried(q->cx, read_schedule, &r)) e->sched = r.out;
  }
  return e->sched;
}

/* ---- measured to expected ---- */
#define COMPARED 64 /* kernels, and schedules of each */
/* So much dearer is a kernel that was not measured: of many guesses the lowest one is too low. Of
 * 39 operators' programs that were chosen at 1.05 for such a kernel's sake half took 1.27 times as
 * long as they were priced, and more: so they were slower than what had been measured. */
#define GUESSED 1.35
#define TRIED   1.05 /* where it is to be measured next */
typedef struct compared {
  known *q;
  tarn_lang *L;
  const tarn_hw *hw;
  const known_kernel *e;
  double ratio;
} compared;
/* A kernel that was not measured runs with the schedule that looks best and was priced by the
 * analytic price of its best one. So what this would have been, with the kernels that were
 * measured, is compared; their fastest are the result of a search. */
static void compare(tarn_ctx *cx, void *arg) {
  compared *x = arg;
  const tarn_record *r = &x->q->r[x->e->first];
  tarn_ksig *k = TARN_NEW(cx, tarn_ksig);
  tarn_ksig_parse(x->L, r->kernel_text, strlen(r->kernel_text), k);
  double looks = INFINITY, least = INFINITY, took = 0;
  for (uint32_t i = 0, step = x->e->n / COMPARED + 1; i < x->e->n; i += step) {
    tarn_cost c;
    const tarn_schedule *s = tarn_schedule_parse(x->L, tarn_nest_get(x->L, k->nest),
                                                 r[i].schedule_text, strlen(r[i].schedule_text));
    tarn_target_price(x->L, x->hw, k, s, r->threads, &c);
    double t = expected(x->q->otherwise, x->L, x->hw, k, s, r->threads, &c);
    if (t < looks) looks = t, took = r[i].seconds;
    least = fmin(least, c.seconds);
  }
  x->ratio = took / least;
}
static double scale_of(known *q, tarn_lang *L, const tarn_hw *hw, double guessed) {
  double ratio[COMPARED];
  uint32_t n = 0, step = q->kernel.n / COMPARED + 1;
  for (uint32_t i = 0; i < q->kernel.n; i += step) {
    compared x = {q, L, hw, &q->kernel.p[i], 0};
    if (tarn_tried(q->cx, compare, &x) && x.ratio > 0 && x.ratio < INFINITY) ratio[n++] = x.ratio;
  }
  qsort(ratio, n, sizeof *ratio, tarn_by_double);
  return n ? guessed * ratio[n / 2] : 1;
}
static void index_records(known *q, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    bool fresh;
    uint64_t *at = tarn_map_at(q->by_text, q->r[i].kernel, &fresh);
    if (fresh) {
      *at = q->kernel.n + 1;
      tarn_push(q->cx, &q->kernel, ((known_kernel){.first = i, .best = i}));
    }
    known_kernel *e = &q->kernel.p[*at - 1];
    e->n++;
    if (q->r[i].seconds < q->r[e->best].seconds) e->best = i;
    *tarn_map_at(q->seconds, tarn_hash_mix(q->r[i].kernel, q->r[i].schedule), &fresh) = i;
  }
}
const tarn_price *tarn_measured(tarn_lang *L, const tarn_hw *hw, const char *path, uint32_t threads,
                                const tarn_price *otherwise, bool explores) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_record *all;
  tarn_store *store = tarn_store_open(cx, path);
  const char *key = tarn_hw_key(hw, cx);
  uint32_t n = tarn_store_read(store, key, &all), kept = 0;
  tarn_record *mine = TARN_ARRAY(cx, tarn_record, n + 1);
  for (uint32_t i = 0; i < n; i++)
    if (all[i].threads == threads && strncmp(all[i].kernel_text, "(call ", 6))
      mine[kept++] = all[i];
  known *q = TARN_NEW(cx, known);
  *q = (known){.cx = cx,
               .store = store,
               .key = key,
               .r = mine,
               .by_text = tarn_map_new(cx),
               .by_sig = tarn_map_new(cx),
               .seconds = tarn_map_new(cx),
               .otherwise = otherwise};
  index_records(q, kept);
  q->scale = scale_of(q, L, hw, explores ? TRIED : GUESSED);
  tarn_price *p = TARN_NEW(cx, tarn_price);
  *p = (tarn_price){.user = q,
                    .seconds = measured_seconds,
                    .kernel = measured_kernel,
                    .call = measured_call,
                    .schedule = measured_schedule};
  p->within = otherwise ? otherwise->within : 0;
  p->name = tarn_format(cx, "measured: %u schedules of %u kernels; else %s", kept, q->kernel.n,
                        otherwise ? otherwise->name : "analytic");
  return p;
}
