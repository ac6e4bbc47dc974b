/* See tiles.h. A tile's footprint and traffic are products over the coordinates of each operand
 * (hold.c); the order tells what repeats: an operand is loaded again in each trip of a loop
 * that does not change it and lies outside of one that does. */
#include "plan/tiles.h"
#include <math.h>
#include <string.h>

#define RESULT                                                                                     \
  TARN_MAX_OPERANDS /* its number among operands: accumulators, and what leaves them               \
                     */
typedef struct operand {
  uint32_t moved; /* bit d: dim d changes what it reads */
  const tarn_reach *reach;
  const tarn_tile_place *place;
  int64_t footprint, elements; /* of the tile that is being tried */
} operand;
typedef struct search {
  const tarn_lang *L;
  tarn_ctx *cx;
  const tarn_tile_space *s;
  tarn_stage_dims d;
  uint32_t nops;
  operand op[TARN_MAX_OPERANDS + 1];
  uint32_t nloop, loop[TARN_MAX_DIMS]; /* dims of more than one tile */
  int64_t tile[TARN_MAX_DIMS], trips[TARN_MAX_DIMS];
  tarn_tiles *out;
  uint32_t best_n, best_order[TARN_MAX_DIMS];
  int64_t best_tile[TARN_MAX_DIMS];
} search;

/* ---------------------------------------------------------------- an order */
static bool is_sum(const search *q, uint32_t d) { return d >= q->d.nacc; }

/* Accumulators lie there while the loops inside of the first one over the sum go round: of own dims
 * that are looped over there, all tiles at once. */
static int64_t accumulators(const search *q, const uint32_t *order) {
  const operand *acc = &q->op[RESULT];
  int64_t tile[TARN_MAX_DIMS];
  int64_t footprint;
  int64_t elements;
  bool inside = false;
  bool spread = false;
  memcpy(tile, q->tile, sizeof tile);
  for (uint32_t i = 0; i < q->nloop; i++) {
    uint32_t d = order[i];
    inside |= is_sum(q, d);
    if (inside && !is_sum(q, d)) {
      tile[d] = q->d.dim[d];
      spread = true;
    }
  }
  if (!spread) return acc->footprint;
  tarn_reach_tiles(q->cx, acc->reach, q->d.dim, tile, false, &footprint, &elements);
  return footprint;
}
/* How often all of it is moved. */
static int64_t repeats(const search *q, const operand *o, const uint32_t *order) {
  int64_t n = 1;
  int64_t all = 1;
  for (uint32_t i = 0; i < q->nloop; i++) {
    uint32_t d = order[i];
    if (o->moved >> d & 1) n = all;
    else all *= q->trips[d];
  }
  return n;
}
static int64_t tiles_of(const search *q, const operand *o) {
  int64_t n = 1;
  for (uint32_t i = 0; i < q->nloop; i++)
    if (o->moved >> q->loop[i] & 1) n *= q->trips[q->loop[i]];
  return n;
}
static int64_t slots_of(const search *q, const operand *o, const uint32_t *order) {
  bool once = tiles_of(q, o) * repeats(q, o, order) == 1;
  return o->place->once && once ? 1 : o->place->slots;
}
static bool fits(const search *q, const uint32_t *order, int64_t *fill) {
  memset(fill, 0, TARN_TILE_MEMORIES * sizeof *fill);
  for (uint32_t i = 0; i < q->nops; i++) {
    const operand *o = &q->op[i];
    fill[o->place->in] += o->footprint * o->place->bytes * slots_of(q, o, order);
  }
  const operand *acc = &q->op[RESULT];
  fill[acc->place->in] += accumulators(q, order) * acc->place->bytes * slots_of(q, acc, order);
  for (uint32_t m = 0; m < q->s->nmem; m++)
    if (fill[m] > q->s->capacity[m]) return false;
  return true;
}
static void try_order(search *q, const uint32_t *order) {
  int64_t fill[TARN_TILE_MEMORIES];
  int64_t bytes = q->op[RESULT].elements * q->op[RESULT].place->moved;
  q->out->tried++;
  for (uint32_t i = 0; i < q->nops && bytes < q->out->bytes; i++) {
    const operand *o = &q->op[i];
    bytes += o->elements * o->place->moved * repeats(q, o, order);
  }
  if (bytes >= q->out->bytes || !fits(q, order, fill)) return;
  q->out->bytes = bytes;
  memcpy(q->out->fill, fill, sizeof fill);
  memcpy(q->best_tile, q->tile, sizeof q->tile);
  memcpy(q->best_order, order, q->nloop * sizeof *order);
  q->best_n = q->nloop;
}
/* All orders of the loops from number i on. */
static void try_orders(search *q, uint32_t *order, uint32_t i) {
  if (i == q->nloop) {
    try_order(q, order);
    return;
  }
  for (uint32_t k = i; k < q->nloop; k++) {
    uint32_t d = order[k];
    order[k] = order[i];
    order[i] = d;
    try_orders(q, order, i + 1);
    order[i] = order[k];
    order[k] = d;
  }
}

/* ---------------------------------------------------------------- tiles */
/* What fits in no order: one slot of each, as small as it gets. */
static bool may_fit(const search *q) {
  int64_t fill[TARN_TILE_MEMORIES] = {0};
  for (uint32_t i = 0; i <= q->nops; i++) {
    const operand *o = &q->op[i < q->nops ? i : RESULT];
    int64_t slots = o->place->once ? 1 : o->place->slots;
    fill[o->place->in] += o->footprint * o->place->bytes * slots;
  }
  for (uint32_t m = 0; m < q->s->nmem; m++)
    if (fill[m] > q->s->capacity[m]) return false;
  return true;
}
static void try_tile(search *q) {
  uint32_t order[TARN_MAX_DIMS];
  q->nloop = 0;
  for (uint32_t d = 0; d < q->d.n; d++) {
    q->trips[d] = tarn_ceildiv(q->d.dim[d], q->tile[d]);
    if (q->trips[d] > 1) q->loop[q->nloop++] = d;
  }
  for (uint32_t i = 0; i <= q->nops; i++) {
    operand *o = &q->op[i < q->nops ? i : RESULT];
    tarn_reach_tiles(q->cx, o->reach, q->d.dim, q->tile, false, &o->footprint, &o->elements);
  }
  if (!may_fit(q)) return;
  memcpy(order, q->loop, sizeof order);
  try_orders(q, order, 0);
}
/* Of each dim from number d on, the sizes of which the number of tiles differs. */
static void try_tiles(search *q, uint32_t d) {
  if (d == q->d.n) {
    try_tile(q);
    return;
  }
  int64_t unit = tarn_min(q->s->unit[d] ? q->s->unit[d] : q->d.dim[d], q->d.dim[d]);
  int64_t units = tarn_ceildiv(q->d.dim[d], unit);
  for (int64_t n = 1, last = 0; n <= units; n++) {
    int64_t size = tarn_ceildiv(units, n);
    if (size == last) continue;
    last = size;
    q->tile[d] = tarn_min(size * unit, q->d.dim[d]);
    try_tiles(q, d + 1);
  }
}

/* ---------------------------------------------------------------- the schedule */
static tarn_stage_sched *schedule_of(search *q) {
  tarn_stage_sched *s = TARN_NEW(q->cx, tarn_stage_sched);
  tarn_hold *hold = TARN_ARRAY(q->cx, tarn_hold, q->nops + 1);
  memcpy(q->tile, q->best_tile, sizeof q->tile);
  memcpy(q->loop, q->best_order, sizeof q->loop);
  q->nloop = q->best_n;
  uint32_t first_sum = q->nloop;
  for (uint32_t i = 0; i < q->nloop; i++) {
    tarn_level_add(s, q->loop[i], TARN_SERIAL, q->tile[q->loop[i]]);
    if (is_sum(q, q->loop[i]) && i < first_sum) first_sum = i;
  }
  s->acc = first_sum;
  for (uint32_t d = 0; d < q->d.n; d++) tarn_level_add(s, d, TARN_SERIAL, 1);
  for (uint32_t i = 0; i <= q->nops; i++) {
    const operand *o = &q->op[i < q->nops ? i : RESULT];
    tarn_hold h = {.what = i < q->nops ? TARN_HOLD_OPERAND : TARN_HOLD_ACCUMULATORS};
    h.operand = (uint8_t)(i < q->nops ? i : 0);
    h.at = (int32_t)(i < q->nops ? q->nloop : first_sum) - 1;
    h.memory = o->place->memory;
    h.slots = (uint8_t)slots_of(q, o, q->loop);
    hold[s->nhold++] = h;
  }
  s->hold = hold;
  return s;
}

bool tarn_tiles_search(const tarn_lang *L, const tarn_tile_space *s, tarn_tiles *out) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_nest *n = tarn_nest_get(L, s->kernel->nest);
  search *q = TARN_NEW(cx, search);
  *out = (tarn_tiles){.bytes = INT64_MAX};
  *q = (search){.L = L, .cx = cx, .s = s, .d = tarn_stage_dims_of(n, s->stage), .out = out};
  q->nops = tarn_fn_get(L, q->d.stage->fn)->nops;
  for (uint32_t i = 0; i <= q->nops; i++) {
    operand *o = &q->op[i < q->nops ? i : RESULT];
    tarn_hold h = {.what = i < q->nops ? TARN_HOLD_OPERAND : TARN_HOLD_ACCUMULATORS};
    h.operand = (uint8_t)(i < q->nops ? i : 0);
    o->place = i < q->nops ? &s->operand[i] : &s->accumulators;
    o->reach = tarn_reach_of(L, &q->d, &h);
    o->moved = tarn_reach_dims(o->reach);
    out->compulsory += tarn_hold_compulsory(L, &q->d, &h) * o->place->moved;
  }
  try_tiles(q, 0);
  if (out->bytes < INT64_MAX) out->schedule = schedule_of(q);
  return out->schedule != NULL;
}

double tarn_tiles_bound(double compulsory, double multiply_adds, double elements, double reuse,
                        double results) {
  return tarn_fmax(compulsory, 2 * multiply_adds / sqrt(reuse * elements) + results);
}
