/* tarn kernel SIGNATURE: one kernel by itself: its schedules with prices, its plan, its code. */
#include "cli/cli.h"
#include "plan/plan.h"
#include "tune/tune.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct ranked {
  const tarn_schedule *s;
  double seconds;
} ranked;
typedef struct listing {
  tarn_ctx *cx;
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_target *target;
  const tarn_ksig *k;
  const tarn_price *price;
  uint32_t threads;
  TARN_VEC(ranked) all;
} listing;

/* ---- schedules ---- */
static tarn_schedule *copy_of(tarn_ctx *cx, const tarn_schedule *s) {
  tarn_schedule *r = tarn_copy(cx, s, sizeof *s);
  r->stage = tarn_copy(cx, s->stage, s->nstage * sizeof *s->stage);
  return r;
}
static double price_of(const listing *l, const tarn_schedule *s) {
  tarn_cost c;
  l->target->price(l->L, l->hw, l->k, s, l->threads, &c);
  if (!l->price) return c.seconds;
  return l->price->seconds(l->price->user, l->L, l->hw, l->k, s, l->threads, &c);
}
static void add(void *user, const tarn_schedule *s, double seconds) {
  listing *l = user;
  (void)seconds;
  tarn_push(l->cx, &l->all, ((ranked){copy_of(l->cx, s), price_of(l, s)}));
}
static int by_seconds(const void *a, const void *b) {
  const ranked *x = a;
  const ranked *y = b;
  return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}
/* The solver's own choice first, then all that it tries of a kernel of one stage, the cheapest
 * first. */
static const tarn_schedule *list_schedules(listing *l, uint32_t top) {
  tarn_solver *solver = l->target->solver(l->L, l->hw, l->threads);
  if (l->price) tarn_solver_rank(solver, l->price, TARN_RANKED);
  const tarn_schedule *best = tarn_solve(solver, l->k, NULL);
  if (!best)
    tarn_raise(l->cx, TARN_BAD_INPUT, "%s cannot run this kernel: %s", l->hw->name,
               l->target->refuses(l->L, l->hw, l->k));
  l->target->schedules(solver, l->k, add, l);
  if (l->all.n) qsort(l->all.p, l->all.n, sizeof *l->all.p, by_seconds);
  printf("; %u schedules, prices by %s\n", l->all.n ? l->all.n : 1,
         l->price ? l->price->name : "the analytic price");
  printf("; chosen: %.4g us\n%s\n", 1e6 * price_of(l, best), tarn_schedule_text(l->cx, best));
  for (uint32_t i = 0; i < l->all.n && i < top; i++)
    printf("; %.4g us\n%s\n", 1e6 * l->all.p[i].seconds, tarn_schedule_text(l->cx, l->all.p[i].s));
  return best;
}

/* ---- plan and code ---- */
static void show_code(const listing *l, const tarn_plan_choice *c, const tarn_emission *as) {
  const char *dir = cli_scratch_folder(l->cx, "the kernel");
  tarn_compile_kernels(l->L, l->hw, NULL, c, 1, l->k->strict, as->emit, dir);
  size_t n;
  const char *text = tarn_read_file(l->cx, tarn_format(l->cx, "%s/%s", dir, as->file), &n);
  fwrite(text, 1, n, stdout);
}
static void show_plan(const listing *l, const tarn_plan_choice *c, tarn_buf *b) {
  tarn_kprog *p = tarn_plan_program(l->L, l->hw, c, 1);
  tarn_kprog_plan(tarn_planner_new(l->L, !l->k->strict, NULL), p);
  tarn_plan_print(p->ker[0].plan->nest, b);
}
/* SIGNATURE is the text itself, or a file that holds it. */
static const char *text_of(tarn_ctx *cx, const char *what, size_t *n) {
  struct stat st;
  *n = strlen(what);
  return *what == '(' || stat(what, &st) ? what : tarn_read_file(cx, what, n);
}
int tarn_cmd_kernel(tarn_ctx *cx, int argc, char **argv) {
  cli_list words = {0};
  const char *hw = NULL;
  const char *schedule = NULL;
  const char *emit = NULL;
  const char *price = NULL;
  uint64_t threads = 1;
  uint64_t top = 4;
  const char *usage = "kernel SIGNATURE|FILE [--hw NAME|FILE] [--schedule FILE] [--emit ll|asm]";
  const cli_opt opts[] = {
      {"--hw", NULL, CLI_STR, &hw, "NAME|FILE",
       "hardware: host (default), a shipped description, a file"},
      {"--schedule", NULL, CLI_STR, &schedule, "FILE",
       "use this schedule instead of the chosen one"},
      {"--emit", NULL, CLI_STR, &emit, "ll|asm", "print the code too"},
      {"--price", NULL, CLI_STR, &price, "FILE",
       "a learned price, or analytic (default: the shipped one, if it fits)"},
      {"--threads", NULL, CLI_THREADS, &threads, "T", "threads of the kernel (default 1)"},
      {"--top", NULL, CLI_U32, &top, "N", "list the N cheapest schedules (default 4)"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 1) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  listing l = {.cx = cx, .L = tarn_lang_new(cx), .threads = (uint32_t)threads};
  tarn_ksig k;
  size_t n;
  const char *why;
  const char *text = text_of(cx, words.p[0], &n);
  tarn_ksig_parse(l.L, text, n, &k);
  tarn_compile_options o = tarn_compile_defaults();
  o.hw = cli_hardware(l.L, hw);
  l.hw = tarn_compile_units(l.L, &o);
  l.target = tarn_target_of(cx, l.hw);
  const tarn_emission *as = tarn_target_emission(cx, l.target, l.target->listing, emit);
  if (!price || strcmp(price, "analytic") != 0) l.price = tarn_learned(cx, l.hw, price, &why);
  if (price && strcmp(price, "analytic") != 0 && !l.price)
    tarn_raise(cx, TARN_BAD_INPUT, "--price %s: %s", price, why);
  l.k = &k;
  tarn_plan_choice c = {&k, list_schedules(&l, (uint32_t)top)};
  if (schedule) {
    text = tarn_read_file(cx, schedule, &n);
    c.sched = tarn_schedule_parse(l.L, tarn_nest_get(l.L, k.nest), text, n);
    l.target->check(l.L, l.hw, &k, c.sched);
    printf("; handed in: %.4g us\n", 1e6 * price_of(&l, c.sched));
  }
  tarn_buf b = {.cx = cx};
  if (l.target->plan) l.target->plan(l.L, l.hw, &k, c.sched, &b);
  else show_plan(&l, &c, &b);
  fwrite(b.p, 1, b.n, stdout);
  if (emit) show_code(&l, &c, as);
  return 0;
}
