/* tarn tune MODEL: measures schedules of the model's kernels and learns a price from all that the
 * store holds. */
#include "base/limit.h"
#include "cli/fleet.h"
#include "tune/cache.h"
#include "tune/child.h"
#include "tune/tune.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEASURING 0.7 /* of --seconds; the rest is for learning */

/* Kernels of a compile, as its candidates are priced. */
typedef struct seen {
  tarn_ctx *cx;
  tarn_map *by_hash;
  TARN_VEC(const tarn_ksig *) sig;
} seen;
static double note_kernel(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                          const tarn_schedule *s, uint32_t threads, const tarn_cost *analytic) {
  (void)L, (void)hw, (void)s, (void)threads;
  seen *v = user;
  bool fresh;
  tarn_map_at(v->by_hash, tarn_ksig_hash(k), &fresh);
  if (fresh) tarn_push(v->cx, &v->sig, tarn_copy(v->cx, k, sizeof *k));
  return analytic->seconds;
}

/* What tarn_tune() asks for: kernels and how often each is used. */
typedef struct wanted {
  TARN_VEC(const tarn_ksig *) sig;
  TARN_VEC(uint32_t) uses;
} wanted;
static void of_program(tarn_ctx *cx, const tarn_kprog *p, wanted *w) {
  for (uint32_t i = 0; i < p->nker; i++)
    if (p->ker[i].sig) tarn_push(cx, &w->sig, p->ker[i].sig), tarn_push(cx, &w->uses, 1u);
}

typedef struct watch {
  uint32_t done, shown, all; /* trials: before this batch; with it; that are wanted */
} watch;
/* A fleet answers out of order, and a search may know some of it: the count does not go back. */
static void show(watch *w, uint32_t done, const char *note) {
  if (done > w->shown) w->shown = done;
  cli_progress(&(tarn_told){.name = "measuring", .done = w->shown, .of = w->all, .unit = "trials"},
               note);
}
static void show_progress(void *user, uint32_t done, uint32_t of, uint32_t fresh, double seconds) {
  watch *w = user;
  char note[64];
  (void)fresh;
  w->done = done, w->all = of;
  snprintf(note, sizeof note, "kernels %.4g ms", 1e3 * seconds);
  show(w, done, note);
  if (done == of) cli_progress_end();
}

static void show_fleet(void *user, const tarn_fleet_view *v) {
  watch *w = user;
  char note[64];
  uint32_t done = w->done + v->answered < w->all ? w->done + v->answered : w->all;
  snprintf(note, sizeof note, "%u workers at work, %llu jobs wait", v->busy,
           (unsigned long long)v->queued);
  show(w, done, note);
}
/* What makes a search the same one, so that it goes on where it was. */
static const char *search_name(tarn_ctx *cx, const cli_compile *c, const tarn_tune_options *o,
                               bool every, const char *again) {
  tarn_buf b = {.cx = cx};
  size_t n;
  const char *from = c->model ? c->model : again ? again : NULL;
  uint64_t bytes = 0;
  if (from) {
    const char *p = tarn_read_file(cx, from, &n);
    bytes = tarn_hash_bytes(p, n, 0);
  }
  tarn_buf_fmt(&b, TARN_VERSION " %016llx %u %u %llu %d %d %u %g", (unsigned long long)bytes,
               o->trials, o->threads, (unsigned long long)o->seed, o->spread, every, o->per_kernel,
               o->seconds);
  const char *const word[] = {c->hw, c->numerics, c->def, c->price_file};
  for (size_t i = 0; i < sizeof word / sizeof *word; i++)
    tarn_buf_fmt(&b, " %s", word[i] ? word[i] : "-");
  for (uint32_t i = 0; i < c->shapes.n; i++) tarn_buf_fmt(&b, " %s", c->shapes.p[i]);
  for (uint32_t i = 0; i < c->sets.n; i++) tarn_buf_fmt(&b, " %s", c->sets.p[i]);
  for (uint32_t i = 0; i < c->last.n; i++) tarn_buf_fmt(&b, " %s", c->last.p[i]);
  return tarn_format(cx, "%016llx", (unsigned long long)tarn_hash_bytes(b.p, b.n, 0));
}

static void fit_json(tarn_json *j, const tarn_tune_report *r) {
  tarn_json_object(j, "model", "pairwise", r->fit.learned.pairwise, "recall30",
                   r->fit.learned.recall30, "r2", r->fit.learned.r2, "analytic_pairwise",
                   r->fit.analytic.pairwise, "analytic_recall30", r->fit.analytic.recall30,
                   "analytic_r2", r->fit.analytic.r2, "held_out", r->fit.rows, "held_out_kernels",
                   r->fit.kernels);
}
static void report(tarn_ctx *cx, const cli_compile *c, const tarn_tune_report *r,
                   const char *model) {
  const tarn_importance *imp = NULL;
  uint32_t n = r->trained ? tarn_learned_importance(cx, model, &imp) : 0;
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "trials", r->trials, "measured", r->fresh, "failed", r->failed, "best", r->best,
                "kernels", r->kernels, "untuned", r->untuned);
  fit_json(j, r);
  tarn_json_open(j, "importance", '{');
  for (uint32_t i = 0; i < n; i++) tarn_json_num(j, imp[i].feature, imp[i].share);
  tarn_json_close(j, '}');
  if (c->json) {
    cli_json_print(j);
    return;
  }
  printf("%u trials, %u of them new, %u failed; the fastest schedules of %u kernels together %.4g "
         "ms\n",
         r->trials, r->fresh, r->failed, r->kernels, 1e3 * r->best);
  if (r->compared)
    printf("schedules chosen without tuning take %.3f times as long (geometric mean)\n",
           r->untuned);
  if (!r->trained) return;
  const tarn_fit *f = &r->fit;
  if (f->rows) {
    printf("%s: on %u held-out measurements of %u kernels: pairwise %.3f, R2 %.3f, recall of the "
           "top 30 %.3f\n",
           model, f->rows, f->kernels, f->learned.pairwise, f->learned.r2, f->learned.recall30);
    printf("the analytic price alone: pairwise %.3f, R2 %.3f, recall of the top 30 %.3f\n",
           f->analytic.pairwise, f->analytic.r2, f->analytic.recall30);
  } else printf("%s: too little is kept to judge it by kernels that it has not seen\n", model);
  for (uint32_t i = 0; i < n && i < 10; i++)
    printf("  %5.1f %%  %s\n", 100 * imp[i].share, imp[i].feature);
}

/* A model as far as its kernels. */
static const tarn_compiled *optimised(tarn_ctx *cx, cli_compile *c) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compiled *r = tarn_compile_load(L, cli_options(L, c));
  tarn_compile_optimise(r);
  return r;
}
/* Kernels of former compiles, as text. */
typedef struct texts {
  TARN_VEC(const char *) of;
} texts;
/* They are used by nothing now: but their trials count, and what they took tells the machine's
 * pace. */
static void no_longer(tarn_ctx *cx, const texts *was, tarn_lang *L, wanted *out) {
  for (uint32_t i = 0; i < was->of.n; i++) {
    tarn_ksig *k = TARN_NEW(cx, tarn_ksig);
    tarn_ksig_parse(L, was->of.p[i], strlen(was->of.p[i]), k);
    tarn_push(cx, &out->sig, k), tarn_push(cx, &out->uses, 0u);
  }
}
/* Kernels written by hand that the program may call, measured: the store's figure is their price.
 */
static bool measure_calls(tarn_ctx *cx, const tarn_compiled *p, const char *db) {
  const tarn_kgraph_report *g = &p->choice;
  tarn_store *s = g->nunmeasured ? tarn_store_open(cx, db) : NULL;
  for (uint32_t i = 0; i < g->nunmeasured; i++) {
    const tarn_unmeasured *x = &g->unmeasured[i];
    const char *why;
    tarn_record r = tarn_record_of_call(cx, x->w, x->size);
    r.seconds = tarn_measure_call(cx, tarn_written_find(p->L, x->w->name), x->size, &why);
    if (!(r.seconds < INFINITY))
      tarn_warn(cx, "%s:%u: the kernel %s is not measured: %s", x->w->at->file, x->w->at->line,
                x->w->name, why);
    tarn_store_add(s, tarn_hw_key(p->o->hw, cx), &r, 1);
  }
  return g->nunmeasured > 0;
}
static tarn_tune_report only_learn(tarn_ctx *cx, const cli_compile *c, const char *db,
                                   const tarn_tune_options *o) {
  tarn_lang *L = tarn_lang_new(cx);
  return tarn_tune(L, cli_hardware(L, c->hw), NULL, NULL, 0, tarn_store_open(cx, db), o);
}
typedef struct candidate {
  cli_compile *c;
  const char *db;
  const tarn_compiled *p;
} candidate;
static void optimise(tarn_ctx *cx, void *arg) {
  candidate *k = arg;
  k->p = optimised(cx, k->c);
  if (measure_calls(cx, k->p, k->db)) k->c->db = k->db, k->p = optimised(cx, k->c);
}
/* Searches for the fastest schedules of the program's kernels with two thirds of the trials; and
 * twice of those that it has then, with half of the rest each: what was measured may favour other
 * kernels, which may turn out slower than they were expected to be. */
#define PASSES 3
/* The time was over before the last of them. */
static void learn_late(tarn_ctx *cx, const cli_compile *c, const char *db, tarn_tune_options *o,
                       const char *model, tarn_tune_report *r) {
  o->model = model, o->price = c->learned;
  tarn_tune_report t = only_learn(cx, c, db, o);
  r->fit = t.fit, r->trained = t.trained;
}
static tarn_tune_report tune_program(tarn_ctx *cx, cli_compile *c, const char *db,
                                     tarn_tune_options *o) {
  uint32_t trials = o->trials ? o->trials : 1000, fresh = 0, failed = 0;
  const uint32_t until[PASSES] = {trials - trials / 3, trials - trials / 6, trials};
  const double part[PASSES] = {0.67, 0.5, 1}; /* of the seconds left */
  const char *model = o->model;
  double end = o->seconds > 0 ? tarn_now() + o->seconds : 0;
  tarn_tune_report r = {0};
  texts before = {0};
  c->explores = true;
  for (int pass = 0; pass < PASSES; pass++) {
    candidate now = {c, db, NULL};
    tarn_status st = pass && tarn_late(cx) ? TARN_NO_RESULT : tarn_protect(cx, optimise, &now);
    if (st && (!pass || !tarn_late(cx))) tarn_reraise(cx, st);
    if (st) {
      learn_late(cx, c, db, o, model, &r);
      break;
    }
    const tarn_compiled *p = now.p;
    wanted w = {0};
    of_program(cx, p->kernels, &w);
    uint32_t own = w.sig.n;
    no_longer(cx, &before, p->L, &w);
    o->trials = until[pass], o->model = pass + 1 < PASSES ? NULL : model, o->price = c->learned;
    if (end > 0) o->seconds = fmax(pass ? 0.001 : 0, end - tarn_now()) * part[pass];
    /* the store is opened when the model is read: nothing is left behind when it cannot be */
    r = tarn_tune(p->L, p->o->hw, w.sig.p, w.uses.p, w.sig.n, tarn_store_open(cx, db), o);
    fresh += r.fresh, failed += r.failed;
    for (uint32_t i = 0; i < own; i++)
      tarn_push(cx, &before.of, tarn_ksig_text(p->L, cx, w.sig.p[i]));
    c->db = db;
  }
  r.fresh = fresh, r.failed = failed;
  return r;
}
/* What was measured, as a function for programs that call the comprehension by the store. */
static void fill_cache(tarn_ctx *cx, cli_compile *c, const char *db) {
  size_t n = strlen(c->model);
  if (n < 3 || strcmp(c->model + n - 3, ".tc")) return;
  c->explores = false;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = *cli_options(L, c);
  const tarn_target *t = tarn_target_of(cx, o.hw);
  if (t->away || !t->load) return; /* this process cannot call it */
  o.text = tarn_read_file(cx, c->model, &o.text_n);
  tarn_cache_renew(tarn_cache_open(cx, db), L, &o);
}
/* A sample of the kernels of a model's program, or of every kernel that its kernel graph prices;
 * with --train-only a price that is judged on what is kept of them. */
static tarn_tune_report tune_spread(tarn_ctx *cx, cli_compile *c, const char *db, bool every,
                                    const tarn_tune_options *o) {
  seen v = {.cx = cx, .by_hash = tarn_map_new(cx)};
  tarn_price recorder = {.name = "recording", .user = &v, .seconds = note_kernel};
  wanted w = {0};
  if (every) c->price = &recorder;
  const tarn_compiled *r = optimised(cx, c);
  const tarn_hw *hw = r->o->hw;
  of_program(cx, r->kernels, &w);
  if (every) return tarn_tune(r->L, hw, v.sig.p, NULL, v.sig.n, tarn_store_open(cx, db), o);
  return tarn_tune(r->L, hw, w.sig.p, NULL, w.sig.n, tarn_store_open(cx, db), o);
}
/* What another store holds, measured here, and a price from all that is then known of this
 * hardware. */
static tarn_tune_report tune_again(tarn_ctx *cx, const cli_compile *c, const char *of,
                                   const char *db, tarn_tune_options *o) {
  if (access(of, R_OK)) tarn_raise(cx, TARN_IO, "%s: no such file", of); /* it would be made */
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = cli_hardware(L, c->hw);
  tarn_store *from = tarn_store_open(cx, of),
             *to = tarn_store_open(cx, db); /* in this order: nothing is left behind */
  tarn_tune_report r = tarn_measure_again(L, hw, from, to, o);
  o->train_only = true;
  tarn_tune_report t = tarn_tune(L, hw, NULL, NULL, 0, to, o);
  t.fresh = r.fresh, t.failed = r.failed, t.kernels = r.kernels;
  return t;
}

/* Measurements as text, into the store or out of it. */
static uint32_t bring_in(tarn_ctx *cx, const char *path, const char *db) {
  size_t n;
  const char *text = tarn_read_file(
      cx, path, &n); /* before the store: nothing is left behind when it cannot be read */
  return tarn_store_import(cx, tarn_store_open(cx, db), path, text, n);
}
static uint32_t take_out(tarn_ctx *cx, const char *db, const char *path) {
  if (access(db, R_OK)) tarn_raise(cx, TARN_IO, "%s: no such file", db); /* it would be made */
  return tarn_store_export(cx, tarn_store_open(cx, db), path);
}
static void report_moved(tarn_ctx *cx, const cli_compile *c, uint32_t n) {
  if (!c->json) {
    printf("%u measurements\n", n);
    return;
  }
  tarn_json *j = cli_json_new(cx);
  tarn_json_int(j, "measurements", n);
  cli_json_print(j);
}

int tarn_cmd_tune(tarn_ctx *cx, int argc, char **argv) {
  cli_compile c = {.rtol = TARN_RTOL};
  cli_fleet fleet = {0};
  cli_list words = {0};
  tarn_tune_options o = {.trust.within = -1}; /* not given */
  const char *db = "tarn.db", *model = "tarn.price", *again = NULL, *import = NULL, *export = NULL;
  uint64_t trials = 0, threads = 0, each = 0;
  bool every = false;
  const char *usage = "tune MODEL [--trials N] [--db F] | tune [MODEL] --train-only | tune "
                      "--(again|import|export) F";
  const cli_opt opts[] = {
      {"--trials", NULL, CLI_U32, &trials, "N",
       "number of measurements, including those in the store (default 1000)"},
      {"--seconds", NULL, CLI_REAL, &o.seconds, "S",
       "limit of time; measuring has 0.7 of it, learning the rest"},
      {"--db", NULL, CLI_STR, &db, "F", "the store (default tarn.db)"},
      {"--output", "-o", CLI_STR, &model, "F", "the learned price (default tarn.price)"},
      {"--train-only", NULL, CLI_FLAG, &o.train_only, NULL,
       "only learn from the store; with MODEL: judge by its kernels"},
      {"--spread", NULL, CLI_FLAG, &o.spread, NULL,
       "measure a sample of schedules of each kernel, to learn from, instead of tuning"},
      {"--again", NULL, CLI_STR, &again, "STORE",
       "without MODEL: measure another machine's schedules here"},
      {"--import", NULL, CLI_STR, &import, "FILE",
       "first add to the store the measurements that --export wrote to FILE"},
      {"--export", NULL, CLI_STR, &export, "FILE",
       "write the measurements of the store to FILE as text and exit"},
      {"--every", NULL, CLI_FLAG, &every, NULL,
       "with these two: every priced kernel, not only those of the program"},
      {"--per-kernel", NULL, CLI_U32, &each, "N",
       "--spread: schedules of a kernel (default 40); --train-only: at least"},
      {"--between", NULL, CLI_REAL, &o.trust.between, "X",
       "weight of the learned price between kernels, 0 (default) to 1"},
      {"--within", NULL, CLI_REAL, &o.trust.within, "X",
       "its weight between schedules of one kernel (default 0.33)"},
      {"--price", NULL, CLI_STR, &c.price_file, "FILE",
       "the initial price, or analytic (default: the shipped one, if it fits)"},
      {"--fleet", NULL, CLI_STR, &fleet.url, "URL",
       "measure on the workers of a fleet: nats://HOST or tls://HOST"},
      CLI_FLEET(fleet),
      {"--hw", NULL, CLI_STR, &c.hw, "NAME|FILE", "hardware: host (default)"},
      {"--numerics", NULL, CLI_STR, &c.numerics, "exact|reassoc|approx", "default: reassoc"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads of a kernel (default: all)"},
      {"--rules", NULL, CLI_LIST, &c.rules, "F",
       "add a rule file; kernels written by hand whose price is (measured) are measured too"},
      {"--seed", NULL, CLI_UINT, &o.seed, "K", "seed of all random choices"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape"},
      CLI_SET(c),
      CLI_OUTPUTS(c),
      {"--json", NULL, CLI_FLAG, &c.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  bool works = words.n || o.train_only || again; /* beside moving measurements */
  if (words.n > 1 || (!works && !import && !export) || (words.n && again) || (works && export))
    tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (!(o.trust.between >= 0 && o.trust.between <= 1))
    tarn_raise(cx, TARN_USAGE, "--between: 0 to 1 is expected");
  if (o.trust.within < 0) o.trust.within = 0;
  else if (!(o.trust.within > 0 && o.trust.within <= 1))
    tarn_raise(cx, TARN_USAGE, "--within: above 0 to 1 is expected");
  if (import) {
    uint32_t n = bring_in(cx, import, db);
    if (!works && !export) report_moved(cx, &c, n);
  }
  if (export) report_moved(cx, &c, take_out(cx, db, export));
  if (!works) return 0;
  if (fleet.url && o.train_only) tarn_raise(cx, TARN_USAGE, "--fleet: not with --train-only");
  tarn_folder_watch(cx);
  if (!o.train_only && !fleet.url) tarn_measures(cx, cli_hardware(tarn_lang_new(cx), c.hw));
  c.threads = threads, o.threads = (uint32_t)threads, o.trials = (uint32_t)trials,
  o.per_kernel = (uint32_t)each, o.model = model;
  c.model = words.n ? words.p[0] : NULL;
  cli_limit(cx, o.seconds);
  o.seconds *= MEASURING;
  watch w = {.all = trials ? (uint32_t)trials : 1000};
  if (cli_progress_shown()) o.progress = show_progress, o.user = &w;
  const char *store = db;
  if (fleet.url) {
    const tarn_hw *hw = cli_hardware(tarn_lang_new(cx), c.hw);
    cli_fleet_run f = cli_fleet_begin(cx, &fleet, hw, db, search_name(cx, &c, &o, every, again),
                                      o.progress ? show_fleet : NULL, &w);
    o.by = f.by, db = f.db;
  }
  tarn_tune_report r = again                      ? tune_again(cx, &c, again, db, &o)
                       : o.train_only && !words.n ? only_learn(cx, &c, db, &o)
                       : o.train_only || o.spread ? tune_spread(cx, &c, db, every, &o)
                                                  : tune_program(cx, &c, db, &o);
  cli_writes();
  tarn_limit_set(cx, (tarn_limit){0}); /* one operator's program takes a moment */
  if (words.n && !o.train_only && !o.spread) fill_cache(cx, &c, store);
  cli_progress_end();
  report(cx, &c, &r, model);
  return 0;
}
