/* Times without the machine: see tarn_simulating() in tune.h. */
#include "compile/compile.h"
#include "sim/sim.h"
#include "tune/child.h"
#include "tune/tune.h"
#include <math.h>

typedef struct one {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_trial *t;
  uint32_t threads;
  double seconds;
} one;
static void price(tarn_ctx *cx, void *arg) {
  (void)cx;
  one *x = arg;
  tarn_cost c;
  tarn_target_price(x->L, x->hw, x->t->sig, x->t->sched, x->threads, &c);
  x->seconds = c.seconds > 0 ? c.seconds : INFINITY;
}
static void analytic(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n,
                     uint32_t threads, double *seconds, bool *unsure) {
  (void)user;
  for (uint32_t i = 0; i < n; i++) {
    one x = {L, hw, &t[i], threads, INFINITY};
    seconds[i] = tarn_tried(tarn_lang_ctx(L), price, &x) ? x.seconds : INFINITY;
    unsure[i] = false;
  }
}

static void remove_folder(void *dir) { tarn_folder_remove(dir); }
/* The stream of one kernel, run for its cycles. */
static void run_stream(tarn_ctx *cx, void *arg) {
  one *x = arg;
  char *dir = tarn_new(cx, TARN_FOLDER);
  tarn_folder_make(cx, "simulate", dir);
  tarn_defer(cx, remove_folder, dir);
  tarn_compile_kernels(x->L, x->hw, NULL, x->t, 1, x->t->sig->strict, TARN_EMIT_STREAM, dir);
  tarn_sim_program *p = tarn_sim_load(x->L, dir, NULL);
  p->timed = true;
  x->seconds = tarn_sim_run(x->L, p, -1).cycles / x->hw->clock;
}
static void simulated(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n,
                      uint32_t threads, double *seconds, bool *unsure) {
  (void)user;
  for (uint32_t i = 0; i < n; i++) {
    one x = {L, hw, &t[i], threads, INFINITY};
    seconds[i] = tarn_tried(tarn_lang_ctx(L), run_stream, &x) ? x.seconds : INFINITY;
    unsure[i] = false;
  }
}
const tarn_measurer *tarn_simulating(tarn_ctx *cx, const tarn_hw *hw) {
  tarn_measurer *m = TARN_NEW(cx, tarn_measurer);
  m->measure = tarn_target_of(cx, hw)->load ? analytic : simulated;
  return m;
}
