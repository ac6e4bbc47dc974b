/* The layers of ResNet-18 and schedules that are handed in, compiled for accelerators and run in
 * the simulator: values are the interpreter's, cycles those that were predicted, and on the machine
 * with costs of synthesised hardware at most 1/7 more than their bound. */
#include "price/unit.h"
#include "tests/accelerator.h"
#include "tests/context.h"

/* ---------------------------------------------------------------- models */
typedef struct conv {
  int64_t in, out, size, kernel, stride, pad;
  int64_t shift, low;
} conv;
static int64_t result_size(const conv *c) {
  return (c->size + 2 * c->pad - c->kernel) / c->stride + 1;
}
/* clip((convolution + bias) >> shift). */
static const char *term_of(tarn_ctx *cx, const conv *c, uint64_t seed) {
  tarn_buf b = {.cx = cx};
  long long o = (long long)result_size(c), ci = (long long)c->in, co = (long long)c->out,
            s = (long long)c->size, k = (long long)c->kernel, p = (long long)c->pad;
  tarn_buf_fmt(&b, "(compute (map (cast i8 (min (max ");
  tarn_buf_fmt(&b, "(shr (add $0 $1) (i32 %lld))", (long long)c->shift);
  tarn_buf_fmt(&b, " (i32 %lld)) (i32 127))))", (long long)c->low);
  tarn_buf_str(&b, " (transpose (1 0 2 3) (compute (dotProd i32) (cartProd (access 1 ");
  tarn_buf_fmt(&b, "(compute (map (cast i32 $0)) (const i8 ((%lld %lld %lld %lld) ())", co, ci, k,
               k);
  numbers(&b, c->out * c->in * c->kernel * c->kernel, -16, 15, &seed);
  tarn_buf_fmt(&b, "))) (squeeze 1 (windows (%lld %lld %lld) (1 %lld %lld) (access 1 ", ci, k, k,
               (long long)c->stride, (long long)c->stride);
  if (p) tarn_buf_fmt(&b, "(pad 3 (i32 0) %lld %lld (pad 2 (i32 0) %lld %lld ", p, p, p, p);
  tarn_buf_fmt(&b, "(compute (map (cast i32 $0)) (input x ((1 %lld %lld %lld) ()) i8))", ci, s, s);
  if (p) tarn_buf_str(&b, "))");
  tarn_buf_fmt(&b, ")))))) (broadcast ((1 %lld %lld %lld) ()) (const i32 ((1 %lld 1 1) ())", co, o,
               o, co);
  numbers(&b, c->out, -3000, 3000, &seed);
  tarn_buf_str(&b, "))");
  tarn_buf_str(&b, ")\n");
  return b.p;
}

/* ---------------------------------------------------------------- one model on one machine */

static const tarn_compiled *compiled_for(tarn_ctx *cx, const char *text, const char *hw,
                                         const char *schedules) {
  tarn_lang *L = tarn_lang_new(cx);
  return compiled(L, text, tarn_hw_load(L, hw), schedules);
}
static const char *const machines[] = {"vta-pynq", "vta-hls-timing"};

/* ---------------------------------------------------------------- layers of ResNet-18 */
/* Their published names, C2 to C11. */
typedef struct layer {
  const char *name;
  conv c;
} layer;
static const layer layers[] = {
    {"C7", {128, 256, 28, 1, 2, 0, 9, 0}},  {"C10", {256, 512, 14, 1, 2, 0, 9, 0}},
    {"C2", {64, 64, 56, 3, 1, 1, 9, 0}},    {"C3", {64, 128, 56, 3, 2, 1, 9, 0}},
    {"C4", {64, 128, 56, 1, 2, 0, 9, 0}},   {"C5", {128, 128, 28, 3, 1, 1, 9, 0}},
    {"C6", {128, 256, 28, 3, 2, 1, 9, 0}},  {"C8", {256, 256, 14, 3, 1, 1, 10, 0}},
    {"C9", {256, 512, 14, 3, 2, 1, 10, 0}}, {"C11", {512, 512, 7, 3, 1, 1, 10, 0}},
};
#define LAYERS (sizeof layers / sizeof *layers)
/* Cycles in which entries are multiplied, those of padding too. */
static double multiplied(const conv *c) {
  int64_t o = result_size(c);
  return (double)(o * o * c->kernel * c->kernel * c->in / 16 * c->out / 16);
}
/* Cycles that no schedule goes below, as they are reported. */
static double bound(const tarn_compiled *c) {
  double cycles = 0;
  for (uint32_t i = 0; i < c->kernels->nker; i++) {
    tarn_unit_plan p;
    const tarn_kernel *k = &c->kernels->ker[i];
    if (!k->machine || !tarn_unit_match(c->L, c->o->hw, k->sig, &p, NULL)) continue;
    cycles += tarn_unit_bound(&p);
  }
  return cycles;
}
/* No less than what a queue multiplies, without padding, clears and makes four steps of, or another
 * one loads of weights, on vta-hls-timing. */
static void no_less(double cycles, const conv *v) {
  int64_t o = result_size(v);
  double edge = v->pad ? (double)(o - 1) * (double)(o - 1) / (double)(o * o) : 1;
  double loads = (double)(v->kernel * v->kernel * v->in / 16 * v->out / 16) * 64;
  ck_assert(cycles >= multiplied(v) * edge + (double)(o * o * v->out / 16) * 9);
  ck_assert(cycles >= loads);
}
static tarn_sim_result simulated(tarn_ctx *cx, const tarn_compiled *c, double latency) {
  tarn_lang *L = tarn_lang_new(cx);
  return tarn_sim_run(L, tarn_sim_load(L, c->o->dir, NULL), latency);
}
typedef struct work {
  const char *hw;
  const layer *layer;
} work;
static void run_layer(tarn_ctx *cx, void *arg) {
  const work *w = arg;
  const layer *l = w->layer;
  const tarn_compiled *c = compiled_for(cx, term_of(cx, &l->c, 3), w->hw, NULL);
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
  same_cycles(cx, c);
  if (strcmp(w->hw, "vta-hls-timing") != 0) return;
  no_less(bound(c), &l->c);
  double part = bound(c) / simulated(cx, c, -1).cycles;
  ck_assert_msg(part > 0.88 && part <= 1, "%s: %.3f of the time is needed", l->name, part);
}
START_TEST(layers_are_right) {
  work w = {.hw = machines[_i % 2], .layer = &layers[_i / 2]};
  in_context_of(layers[_i / 2].name, run_layer, &w);
}
END_TEST
/* With 8 bytes a cycle and nothing for rows, waits and starts. */
START_TEST(layers_keep_the_unit_busy) {
  double busy = 0;
  double cycles = 0;
  for (size_t i = 0; i < LAYERS; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    const char *text = term_of(cx, &layers[i].c, 3);
    const tarn_compiled *c = compiled_for(cx, text, "tests/data/hw/vta-plain-costs.hw", NULL);
    tarn_sim_result r = simulated(cx, c, -1);
    busy += r.compute_cycles;
    cycles += r.cycles;
    tarn_ctx_free(cx);
  }
  ck_assert_msg(busy / cycles > 0.9, "%.3f", busy / cycles);
}
END_TEST

/* ---------------------------------------------------------------- the tables of bench/notes */
/* The schedules of a program, each operand in one slot. */
static const char *one_slot(tarn_ctx *cx, const tarn_compiled *c) {
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < c->kernels->nker; i++) {
    const tarn_kernel *k = &c->kernels->ker[i];
    if (!k->machine) continue;
    tarn_buf_str(&b, tarn_ksig_text(c->L, cx, k->sig));
    const char *s = tarn_schedule_text(cx, k->sched);
    for (const char *slots; (slots = strstr(s, " (slots ")) != NULL;) {
      tarn_buf_fmt(&b, "%.*s", (int)(slots - s), s);
      s = strchr(slots, ')') + 1;
    }
    tarn_buf_fmt(&b, "%s\n", s);
  }
  return b.p;
}
static void put_row(tarn_ctx *cx, const char *hw, const layer *l, double *sum) {
  const char *text = term_of(cx, &l->c, 3);
  const tarn_compiled *c = compiled_for(cx, text, hw, NULL);
  tarn_sim_result r = simulated(cx, c, -1);
  double busy = r.compute_cycles;
  double least = bound(c);
  double one = simulated(cx, compiled_for(cx, text, hw, one_slot(cx, c)), -1).cycles;
  printf("| %s | %.0f | %.0f | %.0f | %.0f | %.1f | %.1f | %.0f | %.1f | %.0f |\n", l->name,
         multiplied(&l->c), busy, least, r.cycles, 100 * least / r.cycles, 100 * busy / r.cycles,
         one, 100 * busy / one, (double)(r.read + r.written));
  sum[0] += busy;
  sum[1] += r.cycles;
  sum[2] += one;
}
static void put_table(tarn_ctx *cx, void *hw) {
  double sum[3] = {0};
  printf("## %s\n| layer | MAC cycles | without padding | bound | cycles | bound / cycles %% | "
         "utilisation %% | one "
         "slot | utilisation %% | bytes |\n|---|---|---|---|---|---|---|---|---|---|\n",
         (const char *)hw);
  for (size_t i = 0; i < LAYERS; i++) put_row(cx, hw, &layers[i], sum);
  printf("| sum | | %.0f | | %.0f | | %.1f | %.0f | %.1f | |\n\n", sum[0], sum[1],
         100 * sum[0] / sum[1], sum[2], 100 * sum[0] / sum[2]);
}
START_TEST(tables) {
  char plain[] = "tests/data/hw/vta-plain-costs.hw";
  char timed[] = "vta-hls-timing";
  in_context(put_table, _i ? timed : plain);
}
END_TEST

/* ---------------------------------------------------------------- the bound, by all schedules */
/* Small layers, of which all tiles, orders, places of the sums and slots are tried. */
static const conv small[] = {
    {32, 16, 2, 3, 1, 1, 9, 0}, {32, 48, 8, 1, 2, 0, 9, 0}, {64, 32, 4, 1, 1, 0, 9, 0}};
#define SMALL (sizeof small / sizeof *small)
typedef struct every {
  tarn_unit_plan p;
  double least;
} every;
static void try_slots(every *e) {
  tarn_unit_plan *p = &e->p;
  for (uint32_t twice = 0; twice < 8; twice++) {
    tarn_unit_cost c;
    p->tensor[0].slots = 1 + (twice & 1);
    p->tensor[1].slots = 1 + (twice >> 1 & 1);
    p->tensor[p->sums].slots = p->tensor[p->result].slots = 1 + (twice >> 2);
    if (tarn_unit_cost_of(p, &c)) e->least = fmin(e->least, c.cycles);
  }
}
static void try_places(every *e) {
  tarn_unit_plan *p = &e->p;
  for (uint32_t at = 0; at <= p->nloop && (!at || p->loop[at - 1].dim < p->nacc); at++)
    for (uint32_t parts = 0; parts < 2; parts++) {
      for (uint32_t t = 0; t < p->ntensor; t++)
        p->tensor[t].at_loop = t < p->sums ? p->nloop : t > p->result ? 0 : at;
      if (parts) p->tensor[p->result].at_loop = p->nloop;
      if (!parts || (at < p->nloop && tarn_unit_leaves_in_parts(p))) try_slots(e);
    }
}
static void try_orders(every *e, uint32_t i) {
  tarn_unit_plan *p = &e->p;
  if (i == p->nloop) try_places(e);
  for (uint32_t k = i; k < p->nloop; k++) {
    tarn_unit_loop l = p->loop[k];
    p->loop[k] = p->loop[i];
    p->loop[i] = l;
    try_orders(e, i + 1);
    p->loop[i] = p->loop[k];
    p->loop[k] = l;
  }
}
static void try_tiles(every *e, uint32_t d) {
  tarn_unit_plan *p = &e->p;
  if (d == p->n) {
    try_orders(e, 0);
    return;
  }
  try_tiles(e, d + 1); /* as a whole */
  uint32_t inside = p->nloop;
  for (int64_t tile = (p->dim[d] + 1) / 2; tile < p->dim[d] && tile > 0; tile /= 2) {
    p->loop[p->nloop++] = (tarn_unit_loop){d, tile};
    try_tiles(e, d + 1);
    p->nloop = inside;
  }
}
static void run_every(tarn_ctx *cx, void *arg) {
  const int which = *(int *)arg;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = on_slow_host(L, machines[which % 2]);
  const tarn_compiled *c = compiled(L, term_of(cx, &small[which / 2], 3), hw, NULL);
  uint32_t k = 0;
  while (k < c->kernels->nker && !c->kernels->ker[k].machine) k++;
  ck_assert_uint_lt(k, c->kernels->nker);
  every e = {.least = INFINITY};
  tarn_unit_plan found;
  tarn_unit_cost cost;
  ck_assert(tarn_unit_match(c->L, c->o->hw, c->kernels->ker[k].sig, &e.p, NULL));
  found = e.p;
  double least = tarn_unit_bound(&e.p);
  for (uint32_t way = 0; way < 3; way++) {
    tarn_unit_plan as_is = e.p;
    if (way == 0 || (way == 1 ? tarn_unit_unpad(&e.p) : tarn_unit_bridge(&e.p))) try_tiles(&e, 0);
    e.p = as_is;
  }
  ck_assert(tarn_unit_search(&found, &cost));
  ck_assert_msg(least <= e.least, "%.0f cycles, the bound is %.0f", e.least, least);
  ck_assert_msg(least <= cost.cycles && cost.cycles <= 1.03 * e.least,
                "%.0f cycles are found, %.0f are "
                "known",
                cost.cycles, e.least);
}
START_TEST(no_schedule_is_below) { in_context(run_every, &_i); }
END_TEST

/* ---------------------------------------------------------------- schedules handed in */
/* 196 x 1024 by 1024 x 64 in four blocks of 16 summed at a time, in one slot and in two, beside an
 * RTL simulation of such a program at a latency of 0; and the schedule that the search finds. */
static const struct given {
  const char *slots;
  double cycles;
} given[] = {{"", 101562}, {" (slots 2)", 61276}, {NULL, 0}};
static const char *product_text(tarn_ctx *cx) {
  tarn_buf b = {.cx = cx};
  uint64_t seed = 1;
  tarn_buf_str(&b, "(compute (map (cast i8 (min (max (shr (add $0 (i32 -3)) (i32 8)) (i32 -128)) "
                   "(i32 127)))) (transpose (1 0) (compute (dotProd i32) (cartProd (access 1 "
                   "(compute (map (cast i32 $0)) (const i8 ((64 1024) ())");
  numbers(&b, 64 * 1024, -16, 15, &seed);
  tarn_buf_str(&b, "))) (access 1 (reshape ((196 1024) ()) (transpose (1 0 2) (compute (map (cast "
                   "i32 $0)) (input x ((64 196 16) ()) i8)))))))))\n");
  return b.p;
}
static void run_given(tarn_ctx *cx, void *arg) {
  const struct given *g = arg;
  const char *text = product_text(cx);
  const tarn_compiled *c = compiled_for(cx, text, "vta-hls-timing", NULL);
  ck_assert_uint_eq(c->kernels->nker, 1);
  if (g->slots) {
    const char *schedule = tarn_format(
        cx,
        "%s (schedule (stage (acc 0) (serial 2 4) (serial 0 1) (serial 1 16) (serial 1 1) (serial "
        "2 1) (serial 3 16) (serial 3 1) (hold 1 inp (at 0)%s) (hold 0 wgt (at 0)%s) (hold "
        "accumulators acc (at all)) (hold result out (at all)) (unit gemm (rows d0) (columns d1) "
        "(sum d3))))",
        tarn_ksig_text(c->L, cx, c->kernels->ker[0].sig), g->slots, g->slots);
    c = compiled_for(cx, text, "vta-hls-timing", schedule);
  }
  same_values(cx, c, tarn_load_simulated(cx, c->o->dir));
  same_cycles(cx, c);
  tarn_sim_result r = simulated(cx, c, 0);
  if (g->slots) ck_assert_msg(fabs(r.cycles / g->cycles - 1) < 0.1, "%.0f cycles", r.cycles);
  else ck_assert_msg(r.utilisation >= 0.83, "%.3f", r.utilisation);
}
START_TEST(schedules_are_followed) {
  struct given g = given[_i];
  in_context(run_given, &g);
}
END_TEST

int main(int argc, char **argv) {
  bool all = argc > 1 && !strcmp(argv[1], "--all");
  bool table = argc > 1 && !strcmp(argv[1], "--table");
  TCase *t = tcase_create("dsa_layers");
  tcase_set_timeout(t, all || table ? 600 : 120);
  if (table) tcase_add_loop_test(t, tables, 0, 2);
  else tcase_add_loop_test(t, layers_are_right, 0, all ? (int)(2 * LAYERS) : 4);
  if (!all && !table) tcase_add_loop_test(t, schedules_are_followed, 0, 3);
  if (!all && !table) tcase_add_loop_test(t, no_schedule_is_below, 0, 2 * (int)SMALL);
  if (all) tcase_add_test(t, layers_keep_the_unit_busy);
  return run_checks("dsa_layers", t);
}
