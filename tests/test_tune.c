/* tune/: learning from measurements, measuring. */
#include "tests/lower_kit.h" /* before the names that terms.h gives to all */
#include "tests/products.h"
#include "tests/folder.h"
#include "tests/terms.h"

#include "hw/hw.h"
#include "plan/plan.h"
#include "tune/evolve.h"
#include "tune/search.h"
#include "tune/trees.h"
#include "tune/tune.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A world in which the analytic price is wrong in a way that two features tell. */
static void make_samples(tarn_sample *x, uint32_t kernels, uint32_t each) {
  uint64_t s = 11;
  for (uint32_t i = 0; i < kernels * each; i++) {
    x[i] = (tarn_sample){.kernel = i / each * 7919 + 1,
                         .schedule = i % each,
                         .analytic = 1e-6 * (1 + below(&s, 100))};
    for (uint32_t f = 0; f < TARN_FEATURES; f++) x[i].feature[f] = (float)below(&s, 8);
    x[i].seconds = x[i].analytic * exp2(x[i].feature[3] > 4 ? 2 : x[i].feature[7] * 0.2);
  }
}

/* ---- learning ---- */
typedef struct lesson {
  uint32_t n, threads;
  const char *hw; /* NULL: "this" */
  tarn_trust trust;
  const char *path;
  const tarn_judged *of;
  tarn_fit fit;
} lesson;
static void learn(tarn_ctx *c, void *arg) {
  lesson *l = arg;
  tarn_sample *x = TARN_ARRAY(c, tarn_sample, 60 * 40);
  make_samples(x, 60, 40);
  for (uint32_t i = 0; i < l->n && l->threads; i++) x[i].threads = l->threads;
  tarn_learn(c, l->hw ? l->hw : "this", x, l->n, 5, l->trust, l->path, l->of, &l->fit);
}
static void use(tarn_ctx *c, void *arg) {
  lesson *l = arg;
  size_t n;
  const char *text = tarn_read_file(c, l->path, &n);
  const trees *t = trees_read(c, l->path, text, n);
  tarn_sample *x = TARN_ARRAY(c, tarn_sample, 400);
  make_samples(x, 10, 40);
  ck_assert_str_eq(t->hw, "this");
  ck_assert_str_eq(t->features, trees_features(c));
  double off = 0;
  for (uint32_t i = 0; i < 400; i++)
    off += fabs(trees_predict(t, x[i].feature) - log2(x[i].seconds / x[i].analytic)) / 400;
  ck_assert_double_lt(off, 0.1);
}
START_TEST(learns) {
  lesson a = {.n = 60 * 40, .path = in_folder(cx, "a.price")},
         b = {.n = 60 * 40, .path = in_folder(cx, "b.price")};
  must(learn, &a);
  ck_assert_double_gt(a.fit.learned.pairwise, 0.95);
  ck_assert_double_gt(a.fit.learned.r2, 0.95);
  ck_assert_double_gt(a.fit.learned.recall30, 0.9);
  ck_assert(a.fit.kernels == 60 && a.fit.rows == 60 * 40);
  must(use, &a);
  must(learn, &b); /* the same again, to the byte */
  size_t na, nb;
  const char *ta = tarn_read_file(cx, a.path, &na), *tb = tarn_read_file(cx, b.path, &nb);
  ck_assert(na == nb && !memcmp(ta, tb, na));
}
END_TEST
START_TEST(judges_some) { /* of two kernels there is enough; of a third nothing is known */
  const uint64_t some[] = {1, 7919 + 1, 5};
  tarn_judged of = {some, 3, 0, 40}, more = {some, 3, 0, 41}, elsewhere = {some, 3, 2, 40};
  lesson a = {.n = 12 * 40, .of = &of}, b = {.n = 12 * 40, .of = &more},
         c = {.n = 12 * 40, .of = &elsewhere};
  must(learn, &a), must(learn, &b), must(learn, &c);
  ck_assert(a.fit.kernels == 2 && a.fit.rows == 80 && a.fit.learned.pairwise > 0.9);
  ck_assert(b.fit.kernels == 0 && b.fit.rows == 0 && isnan(b.fit.learned.r2));
  ck_assert(c.fit.kernels == 0);
}
END_TEST
START_TEST(too_few) {
  lesson a = {.n = 49, .path = in_folder(cx, "few.price")};
  ck_assert_int_eq(attempt(learn, &a), TARN_NO_RESULT);
  ck_assert_int_ne(access(a.path, F_OK), 0);
}
END_TEST

/* ---- hardware ---- */
static void foreign(tarn_ctx *c, void *arg) {
  const char *why = NULL, *path = arg;
  ck_assert_ptr_null(tarn_learned(c, tarn_hw_load(L, "riscv64"), path, &why));
  ck_assert_ptr_nonnull(why);
}
START_TEST(other_hardware) {
  lesson a = {.n = 60 * 40, .path = in_folder(cx, "o.price")};
  must(learn, &a);
  must(foreign, (void *)(uintptr_t)a.path);
  must(foreign, NULL);
}
END_TEST

/* ---- kernels ---- */
static void price_of_product(tarn_ctx *c, void *arg) {
  (void)c, (void)arg;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k = product(33, 64, 50);
  tarn_solver *s = tarn_solver_new(L, hw, 1);
  tarn_cost cost;
  float f[TARN_FEATURES];
  const tarn_schedule *sched = tarn_solve(s, &k, &cost);
  tarn_features(L, hw, &k, sched, 1, &cost, f);
  for (uint32_t i = 0; i < TARN_FEATURES; i++)
    ck_assert_msg(isfinite(f[i]), "%s", tarn_feature_name(i));
  ck_assert_ptr_null(tarn_feature_name(TARN_FEATURES));
}
START_TEST(features) { must(price_of_product, NULL); }
END_TEST

typedef struct counting {
  uint32_t n;
  double least, best;
} counting;
static void count_one(void *user, const tarn_schedule *s, double seconds) {
  counting *k = user;
  ck_assert_uint_eq(s->nstage, 1);
  k->n++;
  if (seconds < k->least) k->least = seconds;
}
static double longest(void *user, tarn_lang *l, const tarn_hw *hw, const tarn_ksig *k,
                      const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)l, (void)hw, (void)k, (void)s, (void)threads;
  ++*(uint32_t *)user;
  return -analytic->seconds;
}
static double inverse(void *user, tarn_lang *l, const tarn_hw *hw, const tarn_ksig *k,
                      const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)user, (void)l, (void)hw, (void)k, (void)s, (void)threads;
  return 1 / analytic->seconds;
}
static void list_and_rank(tarn_ctx *c, void *arg) {
  (void)c, (void)arg;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k = product(33, 64, 50);
  counting n = {.least = INFINITY};
  uint32_t asked = 0;
  tarn_cost first, last;
  ck_assert(tarn_schedules(tarn_solver_new(L, hw, 1), &k, count_one, &n));
  ck_assert_uint_gt(n.n, 50);
  tarn_solve(tarn_solver_new(L, hw, 1), &k, &first);
  ck_assert_double_le(fabs(first.seconds - first.overhead_seconds - n.least), 1e-12);
  tarn_solver *s = tarn_solver_new(L, hw, 1);
  const tarn_price p = {.name = "longest", .user = &asked, .seconds = longest};
  tarn_solver_rank(s, &p, 8);
  tarn_solve(s, &k, &last);
  ck_assert_uint_eq(asked, 8);
  ck_assert_double_gt(last.seconds, first.seconds); /* the worst of the eight */
  ck_assert_double_eq(first.least, first.seconds);
  ck_assert_double_eq(last.least,
                      first.seconds); /* what a price that only ranks leaves to the selection */
  const double within[] = {0, 0.4, 0.6,
                           1}; /* a price that contradicts the analytic one wins from a half on */
  for (uint32_t i = 0; i < 4; i++) {
    const tarn_price against = {.name = "inverse", .seconds = inverse, .within = within[i]};
    s = tarn_solver_new(L, hw, 1);
    tarn_solver_rank(s, &against, 8);
    tarn_solve(s, &k, &last);
    ck_assert_msg((last.seconds > first.seconds) == (within[i] > 0.5), "%g: %g and %g", within[i],
                  last.seconds, first.seconds);
  }
}
START_TEST(schedules) { must(list_and_rank, NULL); }
END_TEST
/* The file says which numbers of threads it was learned on; kernels of others keep their analytic
 * price. */
static void by_threads(tarn_ctx *c, void *path) {
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  const char *why = NULL;
  const tarn_price *p = tarn_learned(c, hw, path, &why);
  ck_assert_msg(p != NULL, "%s", why);
  ck_assert_ptr_nonnull(p->kernel);
  tarn_ksig k = product(33, 64, 50);
  for (uint32_t threads = 1; threads <= 3; threads++) {
    tarn_cost cost;
    const tarn_schedule *s = tarn_solve(tarn_solver_new(L, hw, threads), &k, &cost);
    double t = p->seconds(p->user, L, hw, &k, s, threads, &cost);
    ck_assert_int_eq(t != cost.seconds, threads == 2);
  }
}
START_TEST(threads_seen) {
  lesson a = {.n = 60 * 40, .path = in_folder(cx, "threads.price"), .threads = 2};
  a.hw = tarn_hw_key(tarn_hw_load(L, "x86-64-v3"), cx);
  must(learn, &a);
  must(by_threads, (void *)(uintptr_t)a.path);
}
END_TEST
/* A price that ships must be of the features and of the analytic price as they are now, or nobody
 * would get it. When they change they are learned again (docs/tuning.md). */
static void fits_now(tarn_ctx *c, void *arg) {
  (void)arg;
  static const char *const ships[] = {"sapphirerapids", "znver5", "znver4-avx2"};
  for (size_t i = 0; i < sizeof ships / sizeof *ships; i++) {
    const char *path = tarn_format(c, "%s/tune/prices/%s.price", TARN_TOP, ships[i]);
    size_t n;
    const char *text = tarn_read_file(c, path, &n);
    const trees *t = trees_read(c, path, text, n);
    ck_assert_str_eq(t->features, trees_features(c));
    ck_assert_uint_eq(t->threads, 3);
  }
  tarn_hw hw = *tarn_hw_load(L, "x86-64-bf16"); /* of 512 bits */
  const char *why, *const same[] = {"sapphirerapids", "emeraldrapids", "graniterapids", "znver4",
                                    "znver5"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    hw.cpu = same[i];
    const tarn_price *p = tarn_learned(c, &hw, NULL, &why);
    ck_assert_msg(p != NULL, "%s: %s", same[i], why);
    ck_assert(!!strstr(p->name, "znver5") == !strcmp(same[i], "znver5"));
  }
  hw.vector_bits = 256;
  ck_assert_ptr_null(tarn_learned(c, &hw, NULL, &why));
  hw.cpu = "znver4";
  const tarn_price *narrow = tarn_learned(c, &hw, NULL, &why);
  ck_assert_msg(narrow && strstr(narrow->name, "avx2"), "znver4 of 256 bits: %s", why);
  hw.vector_bits = 512, hw.cpu = "skylake-avx512";
  ck_assert_ptr_null(tarn_learned(c, &hw, NULL, &why));
}
START_TEST(shipped) { must(fits_now, NULL); }
END_TEST

/* ---- text ---- */
static void there_and_back(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k = product(33, 64, 50), back;
  const tarn_schedule *s = tarn_solve(tarn_solver_new(L, hw, 2), &k, NULL);
  const char *text = tarn_ksig_text(L, c, &k), *ts = tarn_schedule_text(c, s);
  tarn_ksig_parse(L, text, strlen(text), &back);
  ck_assert(tarn_ksig_equal(&k, &back));
  ck_assert_str_eq(tarn_ksig_text(L, c, &back), text);
  const tarn_schedule *q = tarn_schedule_parse(L, tarn_nest_get(L, k.nest), ts, strlen(ts));
  ck_assert_str_eq(tarn_schedule_text(c, q), ts);
}
START_TEST(texts) { must(there_and_back, NULL); }
END_TEST
static const char *const bad_texts[] = {"",
                                        "kernel",
                                        "(kernel)",
                                        "(kernel (nest))",
                                        "(schedule)",
                                        "(schedule (stage))",
                                        "(schedule (stage (acc 99) (serial 0 1)))",
                                        "(schedule (stage (acc 0) (spiral 0 1)))",
                                        "(schedule (stage (acc 0) (serial 77 1)))",
                                        "(schedule (stage (acc 0) (serial 0 2)))"};
static void read_bad(tarn_ctx *c, void *text) {
  (void)c;
  tarn_ksig k = product(3, 4, 5), out;
  if (strncmp(text, "(s", 2)) tarn_ksig_parse(L, text, strlen(text), &out);
  else tarn_schedule_parse(L, tarn_nest_get(L, k.nest), text, strlen(text));
}
START_TEST(texts_refused) {
  tarn_status st = attempt(read_bad, (void *)(uintptr_t)bad_texts[_i]);
  ck_assert(st == TARN_BAD_INPUT);
}
END_TEST

/* ---- evolution ---- */
/* Chains of moves from what the solver chose: all legal, of many forms, and what they compute is
 * the product. */
enum { MUTANTS = 40 };
static void mutate(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw *hw = kit_host(c);
  tarn_ksig k = product(13, 40, 24);
  tarn_solver *solver = tarn_solver_new(L, tarn_hw_load(L, "x86-64-v3"), 2);
  const tarn_schedule *first = tarn_solve(solver, &k, NULL);
  const tarn_nest *nest = tarn_nest_get(L, k.nest);
  evolve_space *e = evolve_space_of(L, hw, &k, 2);
  kit_case base = {.nest = k.nest, .nin = 2, .nout = 1}, x[MUTANTS];
  for (uint32_t i = 0; i < 2; i++) {
    base.in[i] = k.in[i], base.in_type[i] = TARN_F32;
    base.value[i] = kit_tensor(c, TARN_F32, k.in[i].n, k.in[i].dim, 1);
  }
  base.out[0] = k.out[0], base.out_type[0] = TARN_F32;
  uint64_t random = 5;
  uint32_t moved = 0, outside = 0;
  tarn_schedule *s = evolve_copy(c, first), *other = s;
  for (uint32_t i = 0; i < MUTANTS; i++) {
    for (int step = 0; step < 40; step++) {
      moved += evolve_mutate(e, s, &random);
      ck_assert(evolve_legal(e, s));
      tarn_schedule_check(L, nest, s);
    }
    x[i] = base, x[i].sched = evolve_copy(c, s);
    for (uint32_t l = 0; l < s->stage[0].acc; l++) outside += s->stage[0].level[l].dim == 2;
    if (i % 4 == 3)
      evolve_cross(e, s, other, &random), tarn_schedule_check(L, nest, s),
          other = evolve_copy(c, s);
  }
  ck_assert_uint_gt(moved, MUTANTS * 8);
  ck_assert_uint_gt(outside, 0); /* a reduction in pieces was among them */
  kit_reference(L, &base, TARN_WIDE);
  kit_run(L, hw, x, MUTANTS, true, 2);
  for (uint32_t i = 0; i < MUTANTS; i++) {
    double off = kit_error(base.want[0], x[i].got[0]);
    ck_assert_msg(off >= 0 && off < 1e-5, "%s", tarn_schedule_text(c, x[i].sched));
  }
}
START_TEST(mutants) { must(mutate, NULL); }
END_TEST
/* ---- the whole ---- */
#if defined(__x86_64__)
typedef struct shown {
  uint32_t calls, done;
} shown;
static void show(void *user, uint32_t done, uint32_t of, uint32_t fresh, double seconds) {
  shown *w = user;
  ck_assert(done >= w->done && done <= of && fresh <= of && seconds >= 0);
  w->calls++, w->done = done;
}
static uint32_t of_kernel(const tarn_record *r, uint32_t n, uint64_t kernel) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) k += r[i].kernel == kernel;
  return k;
}
/* In each scope of the language kernels have other numbers, and schedules lie in it. */
static void known_in_scopes(const tarn_price *p, const tarn_ground *g) {
  for (int i = 0; i < 2; i++) {
    tarn_scope *s = tarn_scope_new(L, g);
    tarn_scope_enter(s);
    tarn_ksig unknown = i ? product(64, 7, 60) : product(7, 9, 11), k = product(64, 48, 60);
    const tarn_schedule *best = p->schedule(p->user, L, &k);
    ck_assert(best && tarn_arena_holds(tarn_lang_ctx(L), best));
    tarn_schedule_fits(L, tarn_hw_load(L, "x86-64-v3"), &k, best);
    ck_assert_ptr_null(p->schedule(p->user, L, &unknown));
    tarn_scope_free(s);
  }
}
static void tune_twice(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_ground ground = tarn_lang_ground(L);
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k[2] = {product(64, 64, 64), product(64, 48, 60)};
  const tarn_ksig *sig[] = {&k[0], &k[1]};
  shown w = {0};
  tarn_tune_options o = {.trials = 60, .threads = 1, .progress = show, .user = &w};
  tarn_store *s = tarn_store_open(c, in_folder(cx, "whole.db"));
  tarn_tune_report r = tarn_tune(L, hw, sig, (uint32_t[]){1, 40}, 2, s, &o);
  ck_assert(r.trials == 60 && r.fresh == 60 && !r.failed && r.kernels == 2 && r.compared == 2);
  ck_assert(r.untuned >= 1 && w.calls && w.done == 60);
  const tarn_record *all;
  uint32_t n = tarn_store_read(s, tarn_hw_key(hw, c), &all);
  ck_assert_uint_eq(n, 60);
  uint32_t rare = of_kernel(
      all, n,
      tarn_record_of(L, &k[0], tarn_solve(tarn_solver_new(L, hw, 1), &k[0], NULL), 1).kernel);
  ck_assert(rare >= 12 && rare < 30); /* trials go where the time is */
  tarn_tune_report again = tarn_tune(L, hw, sig, (uint32_t[]){1, 40}, 2, s, &o);
  ck_assert(again.trials == 60 && again.fresh == 0 && again.best == r.best);
  /* and what was measured is used */
  const tarn_price *p = tarn_measured(L, hw, in_folder(cx, "whole.db"), 1, NULL, false);
  const tarn_schedule *best = p->schedule(p->user, L, &k[1]);
  ck_assert_ptr_nonnull(best);
  double least = INFINITY;
  for (uint32_t i = 0; i < n; i++)
    if (all[i].kernel != all[0].kernel || rare != of_kernel(all, n, all[0].kernel))
      least = fmin(least, all[i].seconds);
  tarn_cost cost;
  tarn_cost_of(L, hw, &k[1], best, 1, &cost);
  ck_assert_double_ge(p->seconds(p->user, L, hw, &k[1], best, 1, &cost), least);
  tarn_solver *solver = tarn_solver_new(L, hw, 1);
  tarn_solver_rank(solver, p, TARN_RANKED);
  ck_assert_ptr_eq(tarn_solve(solver, &k[1], NULL), best);
  tarn_ksig unknown = product(7, 9, 11);
  ck_assert_ptr_null(p->schedule(p->user, L, &unknown));
  ck_assert_ptr_nonnull(tarn_solve(solver, &unknown, NULL));
  const tarn_price *two =
      tarn_measured(L, hw, in_folder(cx, "whole.db"), 2, NULL, false); /* threads are kept apart */
  ck_assert_ptr_null(two->schedule(two->user, L, &k[1]));
  known_in_scopes(p, &ground);
}
START_TEST(whole) { must(tune_twice, NULL); }
END_TEST
/* A kernel that was not measured costs as many times what is said of it as one that was measured
 * would take untuned: with the schedule that looks best, not with the fastest that was found; and a
 * twentieth more, for it is a guess. */
typedef struct two_schedules {
  const tarn_ksig *k;
  const tarn_hw *hw;
  double least;
  tarn_record other;
} two_schedules;
static void take_dear(void *user, const tarn_schedule *s, double seconds) {
  two_schedules *t = user;
  tarn_cost c;
  (void)seconds;
  if (t->other.kernel_text) return;
  tarn_cost_of(L, t->hw, t->k, s, 1, &c);
  if (c.seconds > 2 * t->least) t->other = tarn_record_of(L, t->k, s, 1);
}
static void unmeasured(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k = product(64, 64, 64), unknown = product(7, 9, 11);
  tarn_cost cost, of_unknown;
  tarn_solver *solver = tarn_solver_new(L, hw, 1);
  const tarn_schedule *first = tarn_solve(solver, &k, &cost),
                      *s = tarn_solve(solver, &unknown, &of_unknown);
  two_schedules t = {.k = &k, .hw = hw, .least = cost.seconds};
  tarn_schedules(solver, &k, take_dear, &t);
  ck_assert_ptr_nonnull(t.other.kernel_text);
  tarn_record r[] = {tarn_record_of(L, &k, first, 1), t.other};
  r[0].seconds = 3 * cost.seconds, r[1].seconds = cost.seconds; /* the dear one is the fastest */
  tarn_store_add(tarn_store_open(c, in_folder(cx, "scale.db")), tarn_hw_key(hw, c), r, 2);
  const tarn_price *p = NULL;
  const double dearer[] = {1.35, 1.05};
  for (int explores = 0; explores < 2; explores++) {
    p = tarn_measured(L, hw, in_folder(cx, "scale.db"), 1, NULL, explores);
    ck_assert_double_eq_tol(p->kernel(p->user, L, hw, &unknown, s, 1, &of_unknown),
                            3 * dearer[explores] * of_unknown.seconds, 1e-9 * of_unknown.seconds);
  }
  ck_assert_double_eq_tol(p->seconds(p->user, L, hw, &unknown, s, 1, &of_unknown),
                          of_unknown.seconds, 1e-9 * of_unknown.seconds);
  ck_assert_double_eq(p->kernel(p->user, L, hw, &k, p->schedule(p->user, L, &k), 1, &cost),
                      cost.seconds);
}
START_TEST(others) { must(unmeasured, NULL); }
END_TEST
static void tune_spread(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k[2] = {product(64, 64, 64), product(64, 48, 60)};
  const tarn_ksig *sig[] = {&k[0], &k[1]};
  tarn_tune_options o = {.trials = 1000,
                         .spread = true,
                         .per_kernel = 30,
                         .threads = 1,
                         .model = in_folder(cx, "spread.price")};
  tarn_tune_report r =
      tarn_tune(L, hw, sig, NULL, 2, tarn_store_open(c, in_folder(cx, "spread.db")), &o);
  ck_assert(r.trials == 60 && r.fresh == 60 && r.trained);
  const char *why = NULL;
  ck_assert_msg(tarn_learned(c, hw, in_folder(cx, "spread.price"), &why) != NULL, "%s", why);
}
START_TEST(spreads) { must(tune_spread, NULL); }
END_TEST
/* What was measured elsewhere, on however many threads: what this hardware can, and what can be
 * read. */
static void elsewhere(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k[2] = {product(64, 64, 64), product(64, 48, 60)};
  tarn_record r[6];
  for (uint32_t i = 0; i < 6; i++) {
    r[i] = tarn_record_of(
        L, &k[i & 1], tarn_solve(tarn_solver_new(L, hw, 1 + i / 2), &k[i & 1], NULL), 1 + i / 2);
    r[i].seconds = 1;
  }
  r[4].threads = hw->units + 1;
  r[5].kernel_text = "(kernel of another time)", r[5].kernel = 1, r[5].threads = 1;
  tarn_store *of = tarn_store_open(c, in_folder(cx, "of.db")),
             *to = tarn_store_open(c, in_folder(cx, "to.db"));
  tarn_store_add(of, "one", r, 6),
      tarn_store_add(of, "two", r, 2); /* the same of two machines: measured once */
  shown w = {0};
  tarn_tune_options o = {.progress = show, .user = &w};
  tarn_tune_report a = tarn_measure_again(L, hw, of, to, &o);
  const tarn_record *all;
  uint32_t n = tarn_store_read(to, tarn_hw_key(hw, c), &all), could = hw->units > 1 ? 4 : 2;
  ck_assert_uint_eq(n, could);
  ck_assert(a.fresh == could && a.failed == 1 && w.calls && w.done == could + 1);
  for (uint32_t i = 0; i < n; i++) ck_assert(all[i].seconds > 0 && all[i].seconds < 1);
  w = (shown){0};
  ck_assert_uint_eq(tarn_measure_again(L, hw, of, to, &o).fresh, 0);
}
START_TEST(again) { must(elsewhere, NULL); }
END_TEST
#endif

static void measure(tarn_ctx *c, void *arg) {
  (void)arg, (void)c;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k[2] = {product(64, 64, 64), product(8, 16, 4)};
  tarn_solver *s = tarn_solver_new(L, hw, 1);
  tarn_trial t[2];
  double seconds[2];
  for (int i = 0; i < 2; i++) t[i] = (tarn_trial){&k[i], tarn_solve(s, &k[i], NULL)};
  tarn_measure(L, hw, t, 2, 1, 60, TARN_MEASURE_SEED, seconds);
  for (int i = 0; i < 2; i++) ck_assert(seconds[i] > 0 && seconds[i] < 1);
  tarn_measure(L, hw, t, 2, 1, 0, TARN_MEASURE_SEED, seconds); /* no time at all */
  for (int i = 0; i < 2; i++) ck_assert(isinf(seconds[i]));
}

/* Kernels of both kinds of numerics in one call, with two seeds. */
static void measure_strict(tarn_ctx *c, void *arg) {
  (void)arg, (void)c;
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  tarn_ksig k[2] = {product(64, 64, 64), product(64, 64, 64)};
  k[1].strict = true;
  tarn_solver *s = tarn_solver_new(L, hw, 1);
  tarn_trial t[4];
  double seconds[4];
  for (int i = 0; i < 4; i++) t[i] = (tarn_trial){&k[i / 2], tarn_solve(s, &k[i / 2], NULL)};
  for (uint32_t seed = 1; seed < 3; seed++) {
    tarn_measure(L, hw, t, 4, 1, 60, seed, seconds);
    for (int i = 0; i < 4; i++) ck_assert(seconds[i] > 0 && seconds[i] < 1);
  }
}

START_TEST(measures) {
#if defined(__x86_64__)
  must(measure, NULL);
  must(measure_strict, NULL);
#endif
}
END_TEST

int main(void) {
  TCase *t = tcase_create("tune");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, learns);
  tcase_add_test(t, judges_some);
  tcase_add_test(t, too_few);
  tcase_add_test(t, other_hardware);
  tcase_add_test(t, threads_seen);
  tcase_add_test(t, shipped);
  tcase_add_test(t, features);
  tcase_add_test(t, schedules);
  tcase_add_test(t, measures);
  tcase_add_test(t, texts);
  tcase_add_loop_test(t, texts_refused, 0, sizeof bad_texts / sizeof *bad_texts);
#if defined(__x86_64__)
  tcase_add_test(t, mutants);
  tcase_add_test(t, whole);
  tcase_add_test(t, others);
  tcase_add_test(t, spreads);
  tcase_add_test(t, again);
#endif
  return run_in_folder("tune", t);
}
