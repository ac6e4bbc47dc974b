/* The schedule with the fewest cycles: tiles, orders of the loops over them, slots.
 *
 * Of each dim the tile sizes of which the number of tiles differs are tried, with all orders of the
 * loops. Those that fit are ranked by an estimate: queues that overlap (two slots) or follow one
 * another (one), a tile's transfers times how often it is filled. The best are visited statement by
 * statement, as they will be emitted, and the fewest cycles win. */
#include "price/unit.h"
#include <math.h>
#include <string.h>

enum { SIZES = 10, KEPT = 12, SHORT = 16, LOOPS = 5 };
typedef struct choice {
  uint32_t nloop;
  tarn_unit_loop loop[LOOPS];
  uint32_t sums_at; /* loops outside of the accumulators */
  bool twice;       /* operands in two slots, and sums */
  double cycles;    /* estimated */
} choice;
typedef struct search {
  tarn_unit_plan *p;
  int64_t tile[TARN_MAX_DIMS], trips[TARN_MAX_DIMS];
  double per_fill[TARN_UNIT_TENSORS], compute;
  uint32_t nkept;
  choice kept[KEPT];
} search;

static uint32_t dims_of(const tarn_unit_tensor *t) {
  uint32_t m = 0;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->at[i].n; k++) m |= 1u << t->at[i].dim[k];
  return m;
}

/* ---------------------------------------------------------------- one choice */
static void apply(tarn_unit_plan *p, const choice *c) {
  p->nloop = c->nloop;
  memcpy(p->loop, c->loop, sizeof c->loop);
  for (uint32_t t = 0; t < p->ntensor; t++) {
    tarn_unit_tensor *x = &p->tensor[t];
    bool operand = t < 2;
    x->at_loop = operand ? c->nloop : c->sums_at;
    x->slots = 1;
    uint32_t dims = dims_of(x);
    bool refilled = false;
    for (uint32_t i = 0; i < x->at_loop; i++) refilled |= dims >> c->loop[i].dim & 1;
    bool queued = operand || t == p->sums || t == p->result || x->what == TARN_UNIT_ROWS;
    if (c->twice && queued && refilled) x->slots = 2;
  }
}
static void keep(search *q, const choice *c) {
  if (q->nkept == KEPT && q->kept[KEPT - 1].cycles <= c->cycles) return;
  uint32_t at = q->nkept < KEPT ? q->nkept++ : KEPT - 1;
  for (; at > 0 && q->kept[at - 1].cycles > c->cycles; at--) q->kept[at] = q->kept[at - 1];
  q->kept[at] = *c;
}
/* How often a tensor is filled: once for each trip of the loops around it, up to the innermost that
 * changes it. */
static double fills(const choice *c, const int64_t *trips, uint32_t at, uint32_t dims) {
  double all = 1;
  double n = 1;
  for (uint32_t i = 0; i < at; i++) {
    all *= (double)trips[c->loop[i].dim];
    if (dims >> c->loop[i].dim & 1) n = all;
  }
  return n;
}
static void try_order(search *q, choice *c) {
  tarn_unit_plan *p = q->p;
  int64_t entries[TARN_UNIT_TENSORS];
  int64_t first[TARN_UNIT_TENSORS];
  uint32_t memory;
  int64_t needs;
  c->sums_at = c->nloop;
  for (uint32_t i = c->nloop; i-- > 0;)
    if (c->loop[i].dim >= p->nacc) c->sums_at = i;
  for (uint32_t twice = 0; twice < 2; twice++) {
    double in = 0;
    double out = 0;
    double tiles = 1;
    double boxes = 1;
    c->twice = twice == 1;
    apply(p, c);
    if (!tarn_unit_places(p, entries, first, &memory, &needs)) continue;
    for (uint32_t t = 0; t < p->ntensor; t++) {
      const tarn_unit_tensor *x = &p->tensor[t];
      double n = fills(c, q->trips, x->at_loop, dims_of(x));
      if (x->transfer == TARN_NONE) continue;
      if (t == p->result) out += n * q->per_fill[t];
      else in += n * q->per_fill[t];
    }
    for (uint32_t i = 0; i < c->nloop; i++) {
      tiles *= (double)q->trips[c->loop[i].dim];
      if (i < c->sums_at) boxes = tiles;
    }
    double start = p->hw->intrin[p->product].startup * tiles;
    for (uint32_t i = 0; i < p->nstep + 1; i++) /* clearing, and steps, of each tile of sums */
      start += boxes * p->hw->intrin[i ? p->step[i - 1].intrinsic : p->product].startup;
    c->cycles = twice ? tarn_fmax(tarn_fmax(in, out), q->compute + start) +
                            (in + out + q->compute) / (tiles + 1)
                      : in + out + q->compute + start;
    keep(q, c);
  }
}
static void try_orders(search *q, choice *c, uint32_t i) {
  if (i == c->nloop) {
    try_order(q, c);
    return;
  }
  for (uint32_t k = i; k < c->nloop; k++) {
    tarn_unit_loop l = c->loop[k];
    c->loop[k] = c->loop[i];
    c->loop[i] = l;
    try_orders(q, c, i + 1);
    c->loop[i] = c->loop[k];
    c->loop[k] = l;
  }
}

/* ---------------------------------------------------------------- tiles */
typedef struct cost {
  const tarn_hw *hw;
  const tarn_hw_transfer *t;
  double cycles;
} cost;
static void add(void *user, const tarn_unit_move *m) {
  cost *c = user;
  c->cycles += tarn_unit_move_cycles(c->hw, c->t, m);
}
/* Cycles of the transfers of one tile; false: they cannot. */
static bool price_tile(search *q) {
  tarn_unit_plan *p = q->p;
  tarn_unit_box b = {.lo = {0}};
  for (uint32_t d = 0; d < p->n; d++) { /* a tile in the middle, if there is one */
    b.lo[d] = q->trips[d] > 2 ? q->tile[d] : 0;
    b.n[d] = tarn_min(q->tile[d], p->dim[d]);
  }
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    if (x->transfer == TARN_NONE) continue;
    cost c = {.hw = p->hw, .t = &p->hw->transfer[x->transfer]};
    if (tarn_unit_moves(p, x, &b, add, &c) < 0) return false;
    q->per_fill[t] = c.cycles;
  }
  return true;
}
static void try_tile(search *q) {
  choice c = {0};
  for (uint32_t d = 0; d < q->p->n; d++) {
    q->trips[d] = tarn_ceildiv(q->p->dim[d], q->tile[d]);
    if (q->trips[d] == 1) continue;
    if (c.nloop == LOOPS) return;
    c.loop[c.nloop++] = (tarn_unit_loop){d, q->tile[d]};
  }
  if (price_tile(q)) try_orders(q, &c, 0);
}
/* Sizes of which the number of tiles differs: all down to a tenth, then fewer and fewer. */
static uint32_t sizes_of(const tarn_unit_plan *p, uint32_t d, int64_t *size) {
  int64_t dim = p->dim[d];
  uint32_t n = 0;
  bool whole = d >= p->nacc && d != p->sum && dim < SHORT; /* taps of a window */
  int64_t unit = d == p->rows ? p->form.m : 1;
  for (int64_t tiles = 1; tiles <= dim && n < SIZES; tiles += 1 + (n > 4) * tiles / 2) {
    int64_t s = tarn_min(tarn_ceildiv(tarn_ceildiv(dim, tiles), unit) * unit, dim);
    if (!n || s != size[n - 1]) size[n++] = s;
    if (whole) break;
  }
  if (!whole && size[n - 1] > unit) size[n < SIZES ? n++ : n - 1] = unit;
  return n;
}
static void try_tiles(search *q, uint32_t d) {
  int64_t size[SIZES];
  if (d == q->p->n) {
    try_tile(q);
    return;
  }
  uint32_t n = sizes_of(q->p, d, size);
  for (uint32_t i = 0; i < n; i++) {
    q->tile[d] = size[i];
    try_tiles(q, d + 1);
  }
}
/* Issues of the whole kernel. */
static double compute_of(const tarn_unit_plan *p) {
  double issues = 1;
  double own = 1;
  double cleared = 1;
  for (uint32_t d = 0; d < p->n; d++) {
    int64_t n = d == p->rows ? tarn_ceildiv(p->dim[d], p->form.m) : p->dim[d];
    issues *= (double)n;
    if (d < p->nacc) cleared *= (double)n;
    if (d < p->nacc) own *= (double)p->dim[d];
  }
  double cycles = issues / p->hw->intrin[p->product].throughput;
  cycles += cleared / p->hw->intrin[p->product].throughput;
  for (uint32_t i = 0; i < p->nstep; i++)
    cycles += own / p->hw->intrin[p->step[i].intrinsic].throughput;
  return cycles;
}
bool tarn_unit_search(tarn_unit_plan *p, tarn_unit_cost *out) {
  search *q = TARN_NEW(tarn_lang_ctx(p->L), search);
  choice *best = NULL;
  *q = (search){.p = p, .compute = compute_of(p)};
  try_tiles(q, 0);
  for (uint32_t i = 0; i < q->nkept; i++) {
    tarn_unit_cost c;
    apply(p, &q->kept[i]);
    if (!tarn_unit_cost_of(p, &c) || (best && c.cycles >= out->cycles)) continue;
    best = &q->kept[i];
    *out = c;
  }
  if (best) apply(p, best);
  return best != NULL;
}
