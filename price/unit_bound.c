/* Cycles that no schedule of a kernel goes below.
 *
 * Each queue does what has to be done at any rate: products that are none with padding, clearing
 * and the steps of the vector unit once for each result, transfers of each entry once. Entries that
 * are no neighbours in main memory begin a row of a transfer, or those between them come too,
 * whichever takes less. The queue of the product waits for its operands, and the last result is
 * stored after it.
 *
 * While operands come, only the products of those that are there can be computed. In t cycles m
 * rows and w entries of columns come, c m + d w <= t: of no element of the sum has more than m rows
 * come, so that m w products can be made of them, and m w / K results of K products each. What
 * remains at t takes as long as that, and the longest of t and this is needed. */
#include "price/unit.h"
#include <string.h>

/* The least that a transfer takes besides its entries. */
static double begins(const tarn_hw *hw, const tarn_hw_transfer *t) {
  return t->startup + t->row + hw->mem[hw->nmem - 1].latency;
}
/* Cycles of bringing each entry of an operand that is read, or those of the result back, once. */
static double moves(const tarn_unit_plan *p, uint32_t tensor) {
  const tarn_unit_tensor *x = &p->tensor[tensor];
  const tarn_hw_transfer *t = &p->hw->transfer[x->transfer];
  double entries = (double)(tarn_unit_once(p, tensor) / p->hw->mem[x->memory].entry);
  double row = t->row + (t->row_latency ? p->hw->mem[p->hw->nmem - 1].latency : 0);
  double cycles = begins(p->hw, t) + entries * t->entry;
  const tarn_unit_box all = tarn_unit_all(p);
  int64_t run = x->each; /* from the first entry to the last, of the coordinates inside */
  double outside = entries / (double)x->each;
  for (uint32_t i = x->n; i-- > 0 && !x->packed && !x->vector;) {
    int64_t first;
    int64_t n;
    tarn_unit_span(&x->at[i], &all, &first, &n);
    if (x->at[i].clipped) n = tarn_min(n, x->at[i].hi - x->at[i].lo);
    if (!x->at[i].step || n < 1) continue;
    outside /= (double)n;
    double gap = (double)tarn_max(x->at[i].step - run, 0) * t->entry;
    if (tensor == p->result && gap > 0) gap = row;
    cycles += outside * (double)(n - 1) * tarn_fmin(gap, row);
    run += (n - 1) * x->at[i].step;
  }
  return cycles;
}
bool tarn_unit_clears(const tarn_unit_plan *p) {
  return p->way == TARN_UNIT_MULTIPLIES && !tarn_hw_runner(p->hw, p->product, TARN_HW_BEGINS, NULL);
}
/* Cycles by which the product's queue is behind its operands at some time, at least. */
static double behind(double c, double d, double m, double w, double each) {
  const double at[] = {2 * c * d / each, 2 * c * m, 2 * d * w, c * m + d * w};
  double most = 0;
  for (uint32_t i = 0; i < sizeof at / sizeof *at; i++) {
    if (at[i] > c * m + d * w) continue; /* all have come */
    double rows = tarn_fmin(at[i] / (2 * c), m);
    double columns = tarn_fmin((at[i] - c * rows) / d, w);
    if (columns == w) rows = tarn_fmin((at[i] - d * w) / c, m);
    most = tarn_fmax(most, at[i] - rows * columns * each);
  }
  return most;
}
/* The same, of operands that come by one queue. */
static double waits_for_operands(const tarn_unit_plan *p) {
  const tarn_unit_tensor *rows = &p->tensor[0], *columns = &p->tensor[1];
  const tarn_hw_transfer *t = &p->hw->transfer[rows->transfer];
  uint32_t queue = tarn_unit_queue_of_move(p->hw, rows->transfer);
  double positions = 1;
  double sums = 1;
  double width = 1;
  double apart = 1e300; /* entries of main memory between two rows, at least */
  bool other = queue == tarn_unit_queue_of_run(p->hw, p->product) ||
               queue != tarn_unit_queue_of_move(p->hw, columns->transfer);
  if (p->sums != 2 || p->form.m > 1 || rows->packed || other) return 0;
  for (uint32_t d = 0; d < p->n; d++) {
    bool along = tarn_unit_dims(rows) >> d & 1;
    *(d >= p->nacc ? &sums : along ? &positions : &width) *= (double)p->dim[d];
  }
  for (uint32_t i = 0; i < rows->n; i++)
    for (uint32_t k = 0; k < rows->at[i].n; k++)
      if (rows->at[i].dim[k] < p->nacc)
        apart = tarn_fmin(apart, (double)(rows->at[i].step * rows->at[i].by[k]));
  double row = t->row + (t->row_latency ? p->hw->mem[p->hw->nmem - 1].latency : 0);
  double each = 1 / p->hw->intrin[p->product].throughput;
  for (uint32_t i = 0; i < p->nstep; i++) {
    const tarn_hw_intrinsic *s = &p->hw->intrin[p->step[i].intrinsic];
    bool same = tarn_unit_queue_of_run(p->hw, p->step[i].intrinsic) ==
                tarn_unit_queue_of_run(p->hw, p->product);
    if (same) each += 1 / s->throughput / sums;
  }
  if (positions == 1) apart = 1;
  return behind(tarn_fmin(apart, 1 + row / t->entry) * t->entry,
                (double)columns->each * p->hw->transfer[columns->transfer].entry, positions,
                width * sums, each);
}
typedef struct work {
  double all[TARN_UNIT_QUEUES];   /* of each queue */
  double early[TARN_UNIT_QUEUES]; /* of that, what needs no operands of the product */
  double first[TARN_UNIT_QUEUES]; /* bringing an entry of each of these */
  double one, leave;              /* a product and its result's steps; storing that */
} work;
static void add_moves(const tarn_unit_plan *p, work *w) {
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    if (x->transfer == TARN_NONE) continue;
    const tarn_hw_transfer *by = &p->hw->transfer[x->transfer];
    uint32_t queue = tarn_unit_queue_of_move(p->hw, x->transfer);
    double one = begins(p->hw, by) + (double)x->each * by->entry;
    w->all[queue] += moves(p, t);
    if (t < p->sums) w->first[queue] += one;
    else if (t == p->result) w->leave = one;
    else w->early[queue] += moves(p, t);
  }
}
static void add_issues(const tarn_unit_plan *p, work *w) {
  const tarn_hw_intrinsic *x = &p->hw->intrin[p->product];
  uint32_t queue = tarn_unit_queue_of_run(p->hw, p->product);
  double cleared;
  double own = tarn_unit_results(p, &cleared);
  w->one = x->startup + 1 / x->throughput;
  w->all[queue] += x->startup + tarn_unit_products(p, NULL) / x->throughput;
  if (tarn_unit_clears(p)) {
    w->all[queue] += x->startup + cleared / x->throughput;
    w->early[queue] += x->startup + cleared / x->throughput;
  }
  for (uint32_t i = 0; i < p->nstep; i++) {
    const tarn_hw_intrinsic *s = &p->hw->intrin[p->step[i].intrinsic];
    uint32_t from = p->step[i].from;
    if (from != TARN_NONE && p->tensor[from].what == TARN_UNIT_ONTO) continue;
    w->all[tarn_unit_queue_of_run(p->hw, p->step[i].intrinsic)] += s->startup + own / s->throughput;
    w->one += s->startup + 1 / s->throughput;
  }
}
tarn_unit_cost tarn_unit_least(const tarn_unit_plan *plan) {
  tarn_unit_plan *p = tarn_copy(tarn_lang_ctx(plan->L), plan, sizeof *p);
  tarn_unit_cost c = {.early = true};
  work w = {.one = 0};
  if (p->way != TARN_UNIT_MULTIPLIES) return c;
  tarn_unit_unpad(p);
  add_issues(p, &w);
  c.least_work = w.all[tarn_unit_queue_of_run(p->hw, p->product)];
  for (uint32_t t = 0; t < p->ntensor; t++)
    if (p->tensor[t].transfer != TARN_NONE) c.least_moves += moves(p, t);
  return c;
}
double tarn_unit_bound(const tarn_unit_plan *plan) {
  tarn_unit_plan *p = tarn_copy(tarn_lang_ctx(plan->L), plan, sizeof *p);
  work w = {.one = 0};
  double most = 0;
  if (p->way != TARN_UNIT_MULTIPLIES) return 0;
  tarn_unit_unpad(p);
  add_moves(p, &w);
  add_issues(p, &w);
  uint32_t queue = tarn_unit_queue_of_run(p->hw, p->product);
  double waits = waits_for_operands(p);
  for (uint32_t q = 0; q < TARN_UNIT_QUEUES; q++)
    if (q != queue) waits = tarn_fmax(waits, w.first[q]);
  for (uint32_t q = 0; q < TARN_UNIT_QUEUES; q++) {
    double cycles = w.all[q];
    if (q == queue) cycles = tarn_fmax(cycles, waits + w.all[q] - w.early[q]) + w.leave;
    else if (w.first[q] > 0) cycles += w.one + w.leave;
    most = tarn_fmax(most, cycles);
  }
  return most;
}
