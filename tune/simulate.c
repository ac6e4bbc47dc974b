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
static void remove_folder(void *dir) { tarn_folder_remove(dir); }
/* Constants are zeros: cycles do not depend on values. */
static void make_constants(const one *x, tarn_kprog *p) {
  tarn_ctx *cx = tarn_lang_ctx(x->L);
  p->nin = 0;
  for (uint32_t j = 0; j < x->t->sig->nin; j++) {
    uint32_t at = p->ker[0].in[j];
    tarn_buffer *b = &p->buf[at];
    int64_t elems = tarn_layout_elems(&b->layout);
    if (b->kind == TARN_BUF_CONST) continue; /* of the code */
    if (x->t->sig->in_const[j]) {
      b->kind = TARN_BUF_CONST;
      b->value = tarn_tensor_new(cx, b->dtype, 1, &elems);
    } else p->in[p->nin++] = at;
  }
}
/* The kernel on the accelerator, with its operands and results in that place. */
static tarn_kprog *program_of(const one *x) {
  tarn_kprog *p = tarn_plan_program(x->L, x->hw, x->t, 1);
  p->machines = tarn_hw_machines(x->hw);
  uint32_t device = p->machines.n - 1;
  tarn_kernel *k = &p->ker[0];
  k->machine = device, k->sig = x->t->sig, k->sched = k->chosen = x->t->sched;
  k->nest = k->sig->nest, k->in_layout = k->sig->in, k->out_layout = k->sig->out; /* as it is */
  make_constants(x, p);
  for (uint32_t i = 0; i < p->nbuf; i++) p->buf[i].place = device;
  tarn_kprog_plan(tarn_planner_new(x->L, !x->t->sig->strict, NULL), p);
  return p;
}
/* The stream of one kernel, run for its cycles. */
static void run_stream(tarn_ctx *cx, void *arg) {
  one *x = arg;
  char *dir = tarn_new(cx, TARN_FOLDER);
  tarn_folder_make(cx, "simulate", dir);
  tarn_defer(cx, remove_folder, dir);
  const tarn_target *t = tarn_target_of(cx, x->hw);
  tarn_kprog *k = program_of(x);
  tarn_lower_options o = {.emit = t->program->emit, .dir = dir, .name = "kernel", .opt = 3};
  t->emit(k, t->memory(k, t->align), &o);
  tarn_sim_program *p = tarn_sim_load(x->L, dir, NULL);
  p->timed = true;
  x->seconds = tarn_sim_run(x->L, p, -1).cycles / x->hw->clock;
}
static void measure(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n,
                    uint32_t threads, double *seconds, bool *unsure) {
  (void)user;
  bool analytic = tarn_target_of(tarn_lang_ctx(L), hw)->load;
  for (uint32_t i = 0; i < n; i++) {
    one x = {L, hw, &t[i], threads, INFINITY};
    bool done = tarn_tried(tarn_lang_ctx(L), analytic ? price : run_stream, &x);
    seconds[i] = done ? x.seconds : INFINITY;
    unsure[i] = false;
  }
}
const tarn_measurer *tarn_simulating(tarn_ctx *cx, const tarn_hw *hw) {
  tarn_measurer *m = TARN_NEW(cx, tarn_measurer);
  (void)tarn_target_of(cx, hw); /* raises where there is none */
  m->measure = measure;
  return m;
}
