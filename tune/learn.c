/* Trains, judges and uses the learned price. See tune.h. */
#include "base/limit.h"
#include "tune/trees.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- how good it is ---- */
typedef struct tally {
  double pairs, right, sum, sum2, residual, recall;
  uint32_t points, wide;
} tally;

static double nth(tarn_ctx *cx, const double *v, uint32_t n, uint32_t k) {
  double *s = tarn_copy(cx, v, n * sizeof *v);
  qsort(s, n, sizeof *s, tarn_by_double);
  return s[k];
}
/* One kernel's schedules: x[0 … n-1], predicted seconds p. */
static void judge(tarn_ctx *cx, const tarn_sample *x, const double *p, uint32_t n, tally *t) {
  double *real = TARN_ARRAY(cx, double, n), least = INFINITY, least_p = INFINITY;
  for (uint32_t i = 0; i < n; i++) {
    real[i] = x[i].seconds;
    if (real[i] < least) least = real[i];
    if (p[i] < least_p) least_p = p[i];
  }
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < i; j++)
      if (real[i] != real[j]) t->pairs++, t->right += (real[i] < real[j]) == (p[i] < p[j]);
    double y = least / real[i], z = least_p / p[i];
    t->sum += y, t->sum2 += y * y, t->residual += (y - z) * (y - z), t->points++;
  }
  if (n <= 30) return;
  double cut = nth(cx, real, n, 29), cut_p = nth(cx, p, n, 29);
  uint32_t hit = 0;
  for (uint32_t i = 0; i < n; i++) hit += real[i] <= cut && p[i] <= cut_p;
  t->recall += (hit < 30 ? hit : 30) / 30.0, t->wide++;
}
typedef struct tallies {
  tally learned, analytic;
} tallies;
typedef struct job {
  const char *hw, *path;
  const tarn_sample *x;
  uint32_t n;
  uint64_t seed;
  tarn_trust trust;
  const tarn_judged *of; /* NULL: all are judged */
  tarn_fit *fit;
} job;
/* x: one kernel's n measurements. */
static bool is_judged(const tarn_judged *of, const tarn_sample *x, uint32_t n) {
  if (!of) return true;
  bool found = false;
  for (uint32_t i = 0; i < of->n; i++) found |= of->kernel[i] == x->kernel;
  return found && x->threads == of->threads && n >= of->least;
}
static void judge_all(tarn_ctx *cx, const tarn_sample *x, uint32_t n, const trees *t, tallies *c,
                      const job *whole) {
  for (uint32_t i = 0, j; i < n; i = j) {
    for (j = i; j < n && trees_group(&x[j]) == trees_group(&x[i]);) j++;
    if (!is_judged(whole->of, &x[i], j - i)) continue;
    whole->fit->kernels++, whole->fit->rows += j - i;
    if (j - i < 2) continue;
    double *p = TARN_ARRAY(cx, double, j - i);
    for (uint32_t k = i; k < j; k++)
      p[k - i] = x[k].analytic * exp2(trees_predict(t, x[k].feature));
    judge(cx, x + i, p, j - i, &c->learned);
    for (uint32_t k = i; k < j; k++) p[k - i] = x[k].analytic;
    judge(cx, x + i, p, j - i, &c->analytic);
  }
}
static tarn_agreement sum_up(const tally *c) {
  double spread = c->points ? c->sum2 - c->sum * c->sum / c->points : 0;
  return (tarn_agreement){.pairwise = c->pairs > 0 ? c->right / c->pairs : NAN,
                          .r2 = spread > 0 ? 1 - c->residual / spread : NAN,
                          .recall30 = c->wide ? c->recall / c->wide : NAN};
}

/* ---- training ---- */
/* Numbers of threads that a twentieth of the measurements or more had. */
static uint64_t seen_threads(const tarn_sample *x, uint32_t n) {
  uint32_t count[64] = {0};
  uint64_t seen = 0;
  for (uint32_t i = 0; i < n; i++)
    if (x[i].threads - 1 < 64 && ++count[x[i].threads - 1] * 20 >= n)
      seen |= 1ull << (x[i].threads - 1);
  return seen;
}
/* A fifth of the kernels, by their hash, is held out of a training: new measurements do not move a
 * kernel to another fifth. */
#define FOLDS 5
typedef struct fold {
  const job *j;
  uint32_t number;
  tallies *sum;
} fold;
static void hold_out(tarn_ctx *cx, void *arg) {
  const fold *f = arg;
  const job *j = f->j;
  tarn_sample *seen = TARN_ARRAY(cx, tarn_sample, j->n + 1),
              *held = TARN_ARRAY(cx, tarn_sample, j->n + 1);
  uint32_t ns = 0, nh = 0;
  for (uint32_t i = 0; i < j->n; i++)
    if (tarn_hash_mix(5, j->x[i].kernel) % FOLDS == f->number) held[nh++] = j->x[i];
    else seen[ns++] = j->x[i];
  if (ns < 20 || nh < 2) return;
  judge_all(cx, held, nh, trees_train(cx, seen, ns, j->seed, TREES_ROUNDS), f->sum, j);
}
/* Every kernel judged by trees that have not seen it; as many as the time allows. */
static tarn_status judge_folds(tarn_ctx *cx, const job *j) {
  tallies sum = {0};
  tarn_status st = TARN_OK;
  *j->fit = (tarn_fit){0};
  for (uint32_t i = 0; i < FOLDS && st == TARN_OK && !tarn_late(cx); i++) {
    fold f = {j, i, &sum};
    tarn_mark mark = tarn_arena_mark(cx);
    st = tarn_protect(cx, hold_out, &f);
    if (st == TARN_OK) tarn_release(cx, mark);
  }
  j->fit->learned = sum_up(&sum.learned), j->fit->analytic = sum_up(&sum.analytic);
  return st;
}
static void learn_all(tarn_ctx *cx, const job *j) {
  trees *t = trees_train(cx, j->x, j->n, j->seed, TREES_ROUNDS);
  t->hw = j->hw, t->features = trees_features(cx), t->threads = seen_threads(j->x, j->n),
  t->trust = j->trust;
  tarn_buf b = {.cx = cx};
  trees_print(&b, t);
  tarn_write_file(cx, j->path, b.p, b.n);
}
static int by_key(const void *a, const void *b) {
  const tarn_sample *x = a, *y = b;
  if (x->threads != y->threads) return x->threads < y->threads ? -1 : 1;
  if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
  return (x->schedule > y->schedule) - (x->schedule < y->schedule);
}
void tarn_learn(tarn_ctx *cx, const char *hw, const tarn_sample *x, uint32_t n, uint64_t seed,
                tarn_trust trust, const char *path, const tarn_judged *of, tarn_fit *fit) {
  if (n < 50)
    tarn_raise(cx, TARN_NO_RESULT,
               "%u measurements are too few to learn a price from: 50 are wanted", n);
  tarn_sample *sorted = tarn_copy(cx, x, n * sizeof *x); /* however they came in, the same file */
  qsort(sorted, n, sizeof *sorted, by_key);
  job j = {hw, path, sorted, n, seed, trust, of, fit};
  if (path) learn_all(cx, &j); /* before it is judged, which the time may not allow */
  tarn_status st = fit ? judge_folds(cx, &j) : TARN_OK;
  if (st != TARN_OK) tarn_reraise(cx, st);
}

/* ---- the price ---- */
extern const tarn_embedded tarn_price_embedded[];
static double learned_seconds(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  float f[TARN_FEATURES];
  int64_t dot = 0;
  const trees *t = user;
  if (threads - 1 < 64 && !(t->threads >> (threads - 1) & 1)) return analytic->seconds;
  for (uint32_t i = 0; i < s->nstage; i++) /* nothing has been learned of these */
    if (tarn_schedule_dot(&s->stage[i], &dot) != TARN_NONE) return analytic->seconds;
  tarn_features(L, hw, k, s, threads, analytic, f);
  return analytic->seconds * exp2(trees_predict(t, f));
}
static double learned_kernel(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                             const tarn_schedule *s, uint32_t threads, const tarn_cost *cost) {
  const trees *t = user;
  if (!(t->trust.between > 0)) return cost->least;
  return cost->least *
         pow(learned_seconds(user, L, hw, k, s, threads, cost) / cost->seconds, t->trust.between);
}
const tarn_price *trees_price(tarn_ctx *cx, const trees *t, const char *name) {
  tarn_price *p = TARN_NEW(cx, tarn_price);
  *p = (tarn_price){.name = name,
                    .user = (void *)(uintptr_t)t,
                    .seconds = learned_seconds,
                    .kernel = learned_kernel};
  p->within = t->trust.within;
  return p;
}
/* Server processors whose core is the same, or nearly (Golden Cove, Raptor Cove, Redwood Cove). */
static const char *family(tarn_ctx *cx, const char *key) {
  static const char *const alike[] = {"sapphirerapids", "emeraldrapids", "graniterapids",
                                      "graniterapids-d"};
  const char *name = tarn_strndup(cx, key, strcspn(key, " "));
  for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
    if (!strcmp(name, alike[i])) return alike[0];
  return name;
}
/* Processors of another make on which a family's price was measured to choose better than the
 * analytic one (bench/notes/zen4.md). */
static bool serves(const char *family, const char *processor) {
  return !strcmp(family, "sapphirerapids") && !strcmp(processor, "znver4");
}
/* Does what was learned on a serve b? By a key's processor, and the vectors that stand between it
 * and the first comma. Clocks and caches are in the features. */
static bool fits(tarn_ctx *cx, const char *a, const char *b) {
  const char *va = a + strcspn(a, " "), *vb = b + strcspn(b, " ");
  size_t n = strcspn(va, ",");
  if (n != strcspn(vb, ",") || strncmp(va, vb, n)) return false;
  return !strcmp(family(cx, a), family(cx, b)) || serves(family(cx, a), family(cx, b));
}
static const trees *fitting(tarn_ctx *cx, const tarn_hw *hw, const char *name, const char *text,
                            size_t n, const char **why) {
  const trees *t = trees_read(cx, name, text, n);
  bool same = t->nfeature == TARN_FEATURES && !strcmp(t->features, trees_features(cx));
  if (!same) *why = tarn_format(cx, "%s: trained on other features (%s)", name, t->features);
  else if (!fits(cx, t->hw, tarn_hw_key(hw, cx)))
    *why = tarn_format(cx, "%s: trained on %s", name, t->hw);
  else return t;
  return NULL;
}
const tarn_price *tarn_learned(tarn_ctx *cx, const tarn_hw *hw, const char *path,
                               const char **why) {
  const trees *t = NULL;
  const char *name = path;
  *why = "no learned price is shipped for this hardware";
  if (path) {
    size_t n;
    const char *text = tarn_read_file(cx, path, &n);
    t = fitting(cx, hw, path, text, n, why);
  }
  for (const tarn_embedded *e = tarn_price_embedded; !path && !t && e->name; e++) {
    const char *other;
    t = fitting(cx, hw, e->name, e->text, e->n, &other);
    name = e->name;
  }
  if (!t) return NULL;
  return trees_price(cx, t, tarn_format(cx, "learned: %s", name));
}

static int by_share(const void *a, const void *b) {
  double x = ((const tarn_importance *)a)->share, y = ((const tarn_importance *)b)->share;
  return (x < y) - (x > y);
}
uint32_t tarn_learned_importance(tarn_ctx *cx, const char *path, const tarn_importance **out) {
  size_t size;
  const void *bytes = tarn_read_file(cx, path, &size);
  const trees *t = trees_read(cx, path, bytes, size);
  tarn_importance *v = TARN_ARRAY(cx, tarn_importance, TARN_FEATURES);
  uint32_t n = 0;
  for (uint32_t f = 0; f < TARN_FEATURES && f < t->nfeature; f++)
    if (t->share[f] > 0) v[n++] = (tarn_importance){tarn_feature_name(f), (double)t->share[f]};
  qsort(v, n, sizeof *v, by_share);
  *out = v;
  return n;
}
