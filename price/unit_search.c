/* The schedule with the fewest cycles: tiles, orders of the loops over them, slots of each operand.
 *
 * Of each dim the tile sizes of which the number of tiles differs are tried, with all orders of the
 * loops. Those that fit are ranked by an estimate: what is filled where a loop goes on, in two
 * slots, comes while the tile before it is computed; in one slot, after that. The best are visited
 * statement by statement, as they will be emitted, and the fewest cycles win; where these are more
 * than the bound, the winner is changed here and there (unit_refine.c).
 *
 * The product's rows are held in each way that there is: with their padding or without, with what
 * lies between them or without. */
#include "price/unit.h"
#include <math.h>
#include <string.h>

enum { SIZES = 10, KEPT = 24, SHORT = 16, LOOPS = 5 };
/* Among schedules that take nearly the same time, those that move less. */
static const double MOVES = 1.0 / 16;
/* Tensors that share their number of slots, as bits. */
enum { ROWS = 1, COLUMNS = 2, SUMS = 4, SOURCES = 8, ALL = 15 };
typedef struct choice {
  uint32_t nloop;
  tarn_unit_loop loop[LOOPS];
  uint32_t sums_at; /* loops outside of the accumulators */
  uint32_t twice;   /* what has two slots */
  uint32_t held;    /* how the product's rows are held: number of a way */
  bool parts;       /* of sums leave when they are complete, not all at the end */
  double cycles;    /* estimated */
} choice;
enum { WAYS = 3 };
typedef struct search {
  tarn_unit_plan *p;
  uint32_t nway, held;
  tarn_unit_tensor way[WAYS]; /* the product's rows, held so */
  int64_t tile[TARN_MAX_DIMS], trips[TARN_MAX_DIMS];
  uint32_t dims[TARN_UNIT_TENSORS];
  double per_fill[TARN_UNIT_TENSORS];
  bool computes[TARN_UNIT_TENSORS]; /* the queue of the product fills it */
  uint32_t once;                    /* tensors that come once, as bits */
  uint32_t group[TARN_UNIT_TENSORS];
  double product, finish; /* cycles of the whole kernel: issues, what is made of sums */
  double start;           /* of the instructions of that, for each tile of sums */
  double begin;           /* of those of a product */
  uint32_t nkept;
  choice kept[KEPT];
} search;

static uint32_t group_of(const tarn_unit_plan *p, uint32_t t) {
  if (t < p->sums) return t ? COLUMNS : ROWS;
  if (t == p->sums || t == p->result) return SUMS;
  return p->tensor[t].what == TARN_UNIT_ROWS ? SOURCES : 0;
}

/* ---------------------------------------------------------------- one choice */
/* A constant of the vector unit that takes little room, such as a bias: it comes once. */
static bool comes_once(const tarn_unit_plan *p, const tarn_unit_tensor *t) {
  const tarn_unit_box all = tarn_unit_all(p);
  if (t->what != TARN_UNIT_ADDEND || !t->packed || !t->small) return false;
  return tarn_unit_entries(t, &all) <= tarn_hw_depth(&p->hw->mem[t->memory]) / 16;
}
/* So many loops are outside of a tensor's tile. */
static uint32_t loops_around(const search *q, const choice *c, uint32_t t) {
  if (t < q->p->sums) return c->nloop;
  return q->once >> t & 1 ? 0 : c->sums_at;
}
static void apply(const search *q, const choice *c) {
  tarn_unit_plan *p = q->p;
  p->tensor[0] = q->way[c->held];
  p->nloop = c->nloop;
  memcpy(p->loop, c->loop, sizeof c->loop);
  for (uint32_t t = 0; t < p->ntensor; t++) {
    tarn_unit_tensor *x = &p->tensor[t];
    uint32_t around = loops_around(q, c, t);
    x->at_loop = t == p->result && c->parts ? c->nloop : around;
    bool refilled = false;
    for (uint32_t i = 0; i < around; i++) refilled |= q->dims[t] >> c->loop[i].dim & 1;
    x->slots = refilled && (c->twice & q->group[t]) ? 2 : 1;
  }
}
static void keep(search *q, const choice *c) {
  if (q->nkept == KEPT && q->kept[KEPT - 1].cycles <= c->cycles) return;
  uint32_t at = q->nkept < KEPT ? q->nkept++ : KEPT - 1;
  for (; at > 0 && q->kept[at - 1].cycles > c->cycles; at--) q->kept[at] = q->kept[at - 1];
  q->kept[at] = *c;
}
/* What is filled where loop i goes on and those inside of it begin again, as bits. */
typedef struct fills {
  uint32_t first;       /* at the beginning */
  uint32_t goes[LOOPS]; /* where loop i goes on */
  uint32_t kept[LOOPS]; /* of these, what two slots still have */
  uint32_t groups;      /* of what is filled more than once */
} fills;
static void fills_of_tensor(const search *q, const choice *c, uint32_t t, fills *f) {
  uint32_t at = loops_around(q, c, t);
  double inside = 1; /* tiles of it in the loops inside of loop i */
  for (uint32_t i = at; i-- > 0;) {
    bool along = q->dims[t] >> c->loop[i].dim & 1;
    if (along || inside > 1) f->goes[i] |= 1u << t;
    if (!along && inside == 2 && t < q->p->sums) f->kept[i] |= 1u << t;
    if (along) inside *= (double)q->trips[c->loop[i].dim];
  }
  if (inside > 1) f->groups |= q->group[t];
}
static fills fills_of(const search *q, const choice *c) {
  fills f = {0};
  for (uint32_t t = 0; t < q->p->ntensor; t++) {
    if (t == q->p->sums || t == q->p->result) fills_of_tensor(q, c, t, &f);
    if (t == q->p->result || q->p->tensor[t].transfer == TARN_NONE) continue;
    f.first |= 1u << t;
    if (t != q->p->sums) fills_of_tensor(q, c, t, &f);
  }
  for (uint32_t i = 0; i < c->nloop; i++) f.goes[i] &= f.first;
  return f;
}
/* Cycles of the fills of one step. */
typedef struct step {
  double hidden, shown, computed; /* in two slots, in one, by the product's queue */
} step;
static step step_of(const search *q, const choice *c, uint32_t filled) {
  step s = {0};
  for (uint32_t t = 0; filled; t++, filled >>= 1) {
    if (!(filled & 1)) continue;
    if (q->computes[t]) s.computed += q->per_fill[t];
    else if ((c->twice & q->group[t]) && s.shown == 0) s.hidden += q->per_fill[t];
    else s.shown += q->per_fill[t]; /* those behind it in its queue wait with it */
  }
  return s;
}
/* How often the loops trip: all of them, those around the accumulators, inside of these those that
 * sum and those that do not. */
typedef struct counts {
  double all, around, sums, parts;
} counts;
static counts counts_of(const search *q, const choice *c) {
  counts n = {1, 1, 1, 1};
  for (uint32_t i = 0; i < c->nloop; i++) {
    double t = (double)q->trips[c->loop[i].dim];
    n.all *= t;
    if (i < c->sums_at) n.around *= t;
    else if (c->loop[i].dim >= q->p->nacc) n.sums *= t;
    else n.parts *= t;
  }
  return n;
}
static double estimate(const search *q, const choice *c, const fills *f) {
  const tarn_unit_plan *p = q->p;
  counts n = counts_of(q, c);
  double product = q->product / n.all + q->begin;
  double pieces = c->parts ? n.parts : 1;
  double finish = q->finish / n.around / pieces + q->start;
  double leave = q->per_fill[p->result] * n.parts / pieces;
  step s = step_of(q, c, f->first);
  double moves = s.hidden + s.shown + s.computed + n.around * pieces * leave;
  double all = s.hidden + s.shown + s.computed + product + finish + leave;
  double before = 1;
  for (uint32_t i = 0; i < c->nloop; i++) {
    double trips = (double)q->trips[c->loop[i].dim];
    double steps = before * (trips - 1);
    uint32_t kept = (c->twice & ROWS ? 1u : 0) | (c->twice & COLUMNS ? ~1u : 0);
    s = step_of(q, c, f->goes[i] & ~(f->kept[i] & kept));
    moves += steps * (s.hidden + s.shown + s.computed);
    double loads = s.hidden + (s.shown > 0 ? product + s.shown : 0);
    double after = finish + s.computed;
    double ends = i < c->sums_at ? 1 : c->parts && c->loop[i].dim < p->nacc ? 1 / n.sums : 0;
    if (i < c->sums_at && !(c->twice & SUMS)) after += leave;
    all += steps * (ends * tarn_fmax(product + after, loads) +
                    (1 - ends) * tarn_fmax(product + s.computed, loads));
    before *= trips;
  }
  return tarn_fmax(all, n.around * pieces * leave + product) + moves * MOVES;
}
static void try_order(search *q, choice *c) {
  tarn_unit_plan *p = q->p;
  tarn_unit_place at;
  uint32_t fits[ALL + 1];
  uint32_t nfits = 0;
  fills f = fills_of(q, c);
  for (uint32_t twice = ALL + 1; twice-- > 0;) {
    bool less = (twice & ~f.groups) != 0;
    for (uint32_t i = 0; i < nfits; i++) less |= (twice & fits[i]) == twice;
    if (less) continue;
    c->twice = twice;
    c->cycles = estimate(q, c, &f);
    if (q->nkept == KEPT && c->cycles >= q->kept[KEPT - 1].cycles) {
      if (twice == f.groups) return; /* fewer slots take no fewer cycles */
      continue;
    }
    apply(q, c);
    if (c->parts && !tarn_unit_leaves_in_parts(p)) return;
    if (!tarn_unit_places(p, &at)) continue;
    fits[nfits++] = twice;
    keep(q, c);
  }
}
/* Parts of sums can leave where loops over the result lie inside of those that sum, but what comes
 * onto them comes onto all of them at once. */
static void try_parts(search *q, choice *c) {
  bool inside = false;
  bool onto = false;
  for (uint32_t t = 0; t < q->p->ntensor; t++) onto |= q->p->tensor[t].what == TARN_UNIT_ONTO;
  c->sums_at = c->nloop;
  for (uint32_t i = c->nloop; i-- > 0;)
    if (c->loop[i].dim >= q->p->nacc) c->sums_at = i;
  for (uint32_t i = c->sums_at; i < c->nloop; i++) inside |= c->loop[i].dim < q->p->nacc;
  c->parts = false;
  try_order(q, c);
  c->parts = true;
  if (inside && !onto) try_order(q, c);
}
static void try_orders(search *q, choice *c, uint32_t i) {
  if (i == c->nloop) {
    try_parts(q, c);
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
/* Cycles of the transfers of one tile; false: they cannot, or a memory is too small. */
static bool price_tile(search *q) {
  tarn_unit_plan *p = q->p;
  tarn_unit_box b = {.lo = {0}};
  for (uint32_t d = 0; d < p->n; d++) { /* a tile in the middle, if there is one */
    b.lo[d] = q->trips[d] > 2 ? q->tile[d] : 0;
    b.n[d] = tarn_min(q->tile[d], p->dim[d]);
  }
  for (uint32_t t = 0; t <= p->sums; t++)
    if (tarn_unit_entries(&p->tensor[t], &b) > tarn_hw_depth(&p->hw->mem[p->tensor[t].memory]))
      return false;
  for (uint32_t t = 0; t < p->ntensor; t++) {
    const tarn_unit_tensor *x = &p->tensor[t];
    q->per_fill[t] = 0;
    if (x->transfer == TARN_NONE) continue;
    tarn_unit_moved all;
    if (!tarn_unit_move_all(p, x, &b, &all)) return false;
    q->per_fill[t] = all.cycles;
  }
  return true;
}
/* No order of the loops takes fewer cycles: each tile comes once at least. */
static double least_of(const search *q) {
  const tarn_unit_plan *p = q->p;
  double moves = 0;
  for (uint32_t t = 0; t < p->ntensor; t++) {
    double times = 1;
    if (p->tensor[t].transfer == TARN_NONE) continue;
    for (uint32_t d = 0; d < p->n && !(q->once >> t & 1); d++)
      if (q->dims[t] >> d & 1) times *= (double)q->trips[d];
    moves += times * q->per_fill[t];
  }
  return q->product + q->finish + q->start + moves * MOVES;
}
static void try_tile(search *q) {
  choice c = {.held = q->held};
  for (uint32_t d = 0; d < q->p->n; d++) {
    q->trips[d] = tarn_ceildiv(q->p->dim[d], q->tile[d]);
    if (q->trips[d] == 1) continue;
    if (c.nloop == LOOPS) return;
    c.loop[c.nloop++] = (tarn_unit_loop){d, q->tile[d]};
  }
  if (!price_tile(q)) return;
  if (q->nkept == KEPT && least_of(q) >= q->kept[KEPT - 1].cycles) return;
  try_orders(q, &c, 0);
}
bool tarn_unit_is_tap(const tarn_unit_plan *p, uint32_t d) {
  const tarn_unit_tensor *t = &p->tensor[0];
  bool tap = false;
  if (d < p->nacc || p->dim[d] >= SHORT) return false;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->at[i].n; k++) tap |= t->at[i].n > 1 && t->at[i].dim[k] == d;
  return tap;
}
/* Sizes of which the number of tiles differs: all down to a tenth, then fewer and fewer. */
static uint32_t sizes_of(const tarn_unit_plan *p, uint32_t d, int64_t *size) {
  int64_t dim = p->dim[d];
  uint32_t n = 0;
  /* loops that stages share are not cut: a unit does all stages */
  bool whole = tarn_unit_is_tap(p, d) || d < tarn_nest_get(p->L, p->k->nest)->depth;
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
typedef struct products {
  const tarn_unit_plan *p;
  double n, parts;
} products;
static void add_part(void *user, const tarn_unit_box *b) {
  products *x = user;
  double n = 1;
  for (uint32_t d = 0; d < x->p->n; d++)
    n *= (double)(d == x->p->rows ? tarn_ceildiv(b->n[d], x->p->form.m) : b->n[d]);
  x->n += n;
  x->parts++;
}
double tarn_unit_results(const tarn_unit_plan *p, double *cleared) {
  double own = 1;
  *cleared = 1;
  for (uint32_t d = 0; d < p->nacc; d++) {
    own *= (double)p->dim[d];
    *cleared *= (double)(d == p->rows ? tarn_ceildiv(p->dim[d], p->form.m) : p->dim[d]);
  }
  return own;
}
double tarn_unit_products(const tarn_unit_plan *p, double *parts) {
  products x = {.p = p};
  const tarn_unit_box all = tarn_unit_all(p);
  tarn_unit_inside(p, &all, add_part, &x);
  if (parts) *parts = x.parts;
  return x.n;
}
/* Cycles of the whole kernel, whichever its tiles are. */
static void whole_kernel(search *q) {
  const tarn_unit_plan *p = q->p;
  const tarn_hw_intrinsic *x = &p->hw->intrin[p->product];
  double cleared;
  double parts;
  double own = tarn_unit_results(p, &cleared);
  double issues = tarn_unit_products(p, &parts);
  q->product = issues / x->throughput;
  q->finish = cleared / x->throughput;
  if (p->way == TARN_UNIT_FILLS) q->product = q->finish = 0;
  if (p->way == TARN_UNIT_WHOLE || p->way == TARN_UNIT_JOINS) q->finish = 0;
  if (p->way == TARN_UNIT_FOLDS) { /* each tap is cleared, loaded, and joined */
    q->product += issues / x->throughput + issues / p->hw->intrin[p->fold].throughput;
    q->finish = 0;
  }
  q->start = x->startup;
  q->begin = p->way == TARN_UNIT_FILLS ? 0 : parts * x->startup;
  for (uint32_t i = 0; i < p->nstep; i++) {
    q->finish += own / p->hw->intrin[p->step[i].intrinsic].throughput;
    q->start += p->hw->intrin[p->step[i].intrinsic].startup;
  }
  for (uint32_t t = 0; t < p->ntensor; t++) {
    q->dims[t] = tarn_unit_dims(&p->tensor[t]);
    q->group[t] = group_of(p, t);
    q->once |= (uint32_t)comes_once(p, &p->tensor[t]) << t;
    if (p->tensor[t].transfer != TARN_NONE)
      q->computes[t] = tarn_unit_queue_of_move(p->hw, p->tensor[t].transfer) ==
                       tarn_unit_queue_of_run(p->hw, p->product);
  }
}
/* As it is matched, and each other way. */
static void ways_of(search *q) {
  tarn_unit_tensor as_is = q->p->tensor[0];
  q->way[q->nway++] = as_is;
  if (!as_is.unpadded && tarn_unit_unpad(q->p)) q->way[q->nway++] = q->p->tensor[0];
  q->p->tensor[0] = as_is;
  if (tarn_unit_bridge(q->p)) q->way[q->nway++] = q->p->tensor[0];
  q->p->tensor[0] = as_is;
}
bool tarn_unit_search(tarn_unit_plan *p, tarn_unit_cost *out) {
  search *q = TARN_NEW(tarn_lang_ctx(p->L), search);
  choice *best = NULL;
  const tarn_unit_cost least = tarn_unit_least(p);
  *q = (search){.p = p};
  ways_of(q);
  for (q->held = 0; q->held < q->nway; q->held++) {
    p->tensor[0] = q->way[q->held];
    whole_kernel(q);
    try_tiles(q, 0);
  }
  for (uint32_t i = 0; i < q->nkept; i++) {
    tarn_unit_cost c;
    apply(q, &q->kept[i]);
    double limit = best ? out->cycles + out->moves * MOVES : INFINITY;
    if (!tarn_unit_cost_near(p, &least, (tarn_unit_limit){limit, MOVES}, &c)) continue;
    if (c.cycles + c.moves * MOVES >= limit) continue;
    best = &q->kept[i];
    *out = c;
  }
  if (!best) return false;
  apply(q, best);
  if (p->way == TARN_UNIT_MULTIPLIES) tarn_unit_refine(p, out, MOVES);
  return true;
}
