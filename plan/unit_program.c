/* The loop program of a kernel on a machine whose memories the program manages: its loops over
 * tiles, what comes into which memory inside of which loop, what is computed, what leaves.
 *
 * A tensor comes (COPY) inside of the innermost loop outside of its tile, unless one of its slots
 * has it. The accumulators begin (PHASE BEGIN) in the first trip (EITHER) of the loops inside of
 * theirs, before the first instruction; behind these loops their sums are complete, and the vector
 * unit's steps follow (COMPUTE), then what leaves. Where results leave in parts, a part does in the
 * last trip of the loops over what is summed (EITHER). */
#include "plan/unit_internal.h"

static const char *const what_name[] = {
    [TARN_UNIT_ROWS] = "rows",     [TARN_UNIT_COLUMNS] = "columns", [TARN_UNIT_SUMS] = "sums",
    [TARN_UNIT_RESULT] = "result", [TARN_UNIT_ADDEND] = "addend",   [TARN_UNIT_ONE] = "identity",
    [TARN_UNIT_ONTO] = "onto",     [TARN_UNIT_TAP] = "tap",         [TARN_UNIT_COPY] = "copy"};
void tarn_unit_name(const tarn_unit_plan *p, uint32_t tensor, tarn_buf *b) {
  const tarn_unit_tensor *x = &p->tensor[tensor];
  if (x->read != TARN_NONE) tarn_buf_fmt(b, "%s %u", what_name[x->what], x->read);
  else tarn_buf_str(b, what_name[x->what]);
}

typedef struct writer {
  const tarn_unit_plan *p;
  tarn_plan_stmt *code;
  uint32_t n;
  tarn_plan_test *test; /* room for UNIT_TESTS */
  uint32_t ntest;
} writer;

static uint32_t open(writer *w, tarn_plan_stmt s) {
  w->code[w->n] = s;
  return w->n++;
}
static void close(writer *w, uint32_t at) { w->code[at].size = w->n - at; }
static void add(writer *w, tarn_plan_stmt s) { close(w, open(w, s)); }
static void copy(writer *w, uint32_t tensor) {
  add(w, (tarn_plan_stmt){.op = TARN_PLAN_COPY, .read = tensor});
}
static bool is_loaded(const tarn_unit_plan *p, uint32_t tensor) {
  return p->tensor[tensor].source != TARN_NONE;
}

/* What comes once to the vector unit comes first, while the product waits for its operands. */
static void early(writer *w) {
  const tarn_unit_plan *p = w->p;
  for (uint32_t t = p->sums; t < p->ntensor; t++)
    if (p->tensor[t].what == TARN_UNIT_ADDEND && !is_loaded(p, t) && !p->tensor[t].at_loop)
      copy(w, t);
}
/* One instruction, or the first tap of a window, begins with what it computes. */
static bool begins_by_itself(const tarn_unit_plan *p) {
  return p->way == TARN_UNIT_WHOLE || p->way == TARN_UNIT_JOINS || unit_begins(p->hw, p->product);
}
/* What comes where so many loops are open. */
static void enter(writer *w, uint32_t loops) {
  for (uint32_t t = 0; t < w->p->sums; t++)
    if (w->p->tensor[t].at_loop == loops) copy(w, t);
}
/* In a certain trip of the loops inside of the accumulators' tile, all of them or those over sums.
 */
static uint32_t in_trip(writer *w, int64_t trip, bool all) {
  const tarn_unit_plan *p = w->p;
  tarn_plan_stmt s = {.op = TARN_PLAN_EITHER, .test = w->test + w->ntest};
  for (uint32_t i = p->tensor[p->sums].at_loop; i < p->nloop; i++)
    if (all || p->loop[i].dim >= p->nacc) w->test[w->ntest++] = (tarn_plan_test){i, trip};
  s.n = (uint32_t)(w->test + w->ntest - s.test);
  return open(w, s);
}
static void start(writer *w) {
  const tarn_unit_plan *p = w->p;
  if (p->way == TARN_UNIT_FILLS) copy(w, p->sums);
  else
    add(w, (tarn_plan_stmt){.op = TARN_PLAN_PHASE,
                            .phase = TARN_PLAN_BEGIN,
                            .read = p->sums,
                            .n = !begins_by_itself(p)});
}
/* Behind what the first instruction waits for: the accumulators may have to wait for what left them
 * before, and what comes meanwhile need not. */
static void begin(writer *w) {
  if (w->p->tensor[w->p->sums].at_loop == w->p->nloop) {
    start(w);
    return;
  }
  uint32_t at = in_trip(w, 0, true);
  start(w);
  close(w, at);
}
static void finish(writer *w) {
  const tarn_unit_plan *p = w->p;
  uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_PHASE, .phase = TARN_PLAN_FINISH});
  for (uint32_t t = 0; t < p->ntensor; t++) {
    if (p->tensor[t].what != TARN_UNIT_ADDEND) continue;
    if (is_loaded(p, t)) add(w, (tarn_plan_stmt){.op = TARN_PLAN_UNIT, .read = t});
    else if (p->tensor[t].at_loop) copy(w, t);
  }
  for (uint32_t i = 0; i < p->nstep; i++) {
    uint32_t from = p->step[i].from;
    if (from != TARN_NONE && p->tensor[from].what == TARN_UNIT_ONTO) copy(w, from);
    else add(w, (tarn_plan_stmt){.op = TARN_PLAN_COMPUTE, .value = i});
  }
  copy(w, p->result);
  close(w, at);
}
/* Each part where the last of its products is added. */
static void finish_part(writer *w) {
  uint32_t at = in_trip(w, TARN_PLAN_LAST, false);
  finish(w);
  close(w, at);
}
static void inside(writer *w, uint32_t loops) {
  const tarn_unit_plan *p = w->p;
  uint32_t sums = p->tensor[p->sums].at_loop;
  bool parts = p->tensor[p->result].at_loop > sums;
  enter(w, loops);
  if (loops < p->nloop) {
    uint32_t dim = p->loop[loops].dim;
    int64_t trips = tarn_ceildiv(p->dim[dim], p->loop[loops].step);
    uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_LOOP, .var = loops, .hi = trips - 1});
    inside(w, loops + 1);
    close(w, at);
  } else {
    begin(w);
    if (p->way != TARN_UNIT_FILLS) add(w, (tarn_plan_stmt){.op = TARN_PLAN_UNIT, .read = p->sums});
  }
  if (loops == sums && !parts) finish(w);
  if (loops == p->nloop && parts) finish_part(w);
}
void unit_keep_program(tarn_unit_plan *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_plan_stmt *code = TARN_ARRAY(cx, tarn_plan_stmt, UNIT_STATEMENTS);
  p->code = (tarn_plan_code){.p = code};
  p->code.n = unit_program(p, code, TARN_ARRAY(cx, tarn_plan_test, UNIT_TESTS));
}
uint32_t unit_program(const tarn_unit_plan *p, tarn_plan_stmt *code, tarn_plan_test *test) {
  writer w = {.p = p, .code = code, .test = test};
  early(&w);
  inside(&w, 0);
  return w.n;
}
