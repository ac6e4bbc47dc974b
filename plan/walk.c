/* Walks the levels of a nest and appends its loop program: loops, copies, lanes, tails,
 * accumulators.
 *
 * The levels inside the accumulators are walked three times: accumulators begin, are added to, and
 * end. A reduce level outside of the accumulators continues from the partial result that the last
 * trip left in the result. */
#include "plan/walk.h"
#include <string.h>

/* ---------------------------------------------------------------- statements */
/* its place; the caller closes it */
static uint32_t open(plan_walk *w, tarn_plan_stmt s) {
  uint32_t at = w->code.n;
  tarn_push(w->N->cx, &w->code, s);
  return at;
}
static void close(plan_walk *w, uint32_t at) { w->code.p[at].size = w->code.n - at; }
void plan_add(plan_walk *w, tarn_plan_stmt s) { close(w, open(w, s)); }

uint32_t plan_open_phase(plan_walk *w, tarn_plan_phase phase, tarn_plan_phase *before) {
  *before = w->phase;
  w->phase = phase;
  return open(w, (tarn_plan_stmt){.op = TARN_PLAN_PHASE, .phase = (uint8_t)phase});
}
void plan_close_phase(plan_walk *w, uint32_t at, tarn_plan_phase before) {
  w->phase = before;
  close(w, at);
}

static bool same_lists(const tarn_plan_stmt *a, const tarn_plan_stmt *b) {
  if (a->op == TARN_PLAN_EITHER) return !memcmp(a->test, b->test, a->n * sizeof *a->test);
  return a->op != TARN_PLAN_TIMES || !memcmp(a->from, b->from, a->n * sizeof *a->from);
}
static bool same_stmt(const tarn_plan_stmt *a, const tarn_plan_stmt *b) {
  return a->op == b->op && a->phase == b->phase && a->early == b->early && a->size == b->size &&
         a->var == b->var && a->lo == b->lo && a->hi == b->hi && a->by == b->by &&
         a->open == b->open && a->below == b->below && a->last == b->last && a->read == b->read &&
         a->guard == b->guard && a->factor == b->factor && a->value == b->value && a->n == b->n &&
         same_lists(a, b);
}
/* The copies at `first` and, behind them, at `second` become one statement where they hold the
 * same. Returns the place of what stands last. */
static uint32_t joined(plan_walk *w, uint32_t first, uint32_t second) {
  tarn_plan_stmt *a = &w->code.p[first];
  const tarn_plan_stmt *b = &w->code.p[second];
  if (a->op != b->op || a->var != b->var || a->hi + 1 != b->lo || a->last != b->last ||
      a->size != b->size || first + a->size != second)
    return second;
  for (uint32_t i = 1; i < a->size; i++)
    if (!same_stmt(a + i, b + i)) return second;
  a->hi = b->hi;
  w->code.n = second;
  return first;
}

/* ---------------------------------------------------------------- counters */
void tarn_plan_range(const tarn_plan_space *s, const tarn_plan_at *at, const tarn_plan_lin *a,
                     int64_t *rlo, int64_t *rhi) {
  int64_t lo[PLAN_MAX_VARS];
  int64_t hi[PLAN_MAX_VARS];
  tarn_plan_bounds(s, at, lo, hi);
  tarn_plan_lin_range(a, lo, hi, rlo, rhi);
}
void tarn_plan_bounds(const tarn_plan_space *s, const tarn_plan_at *at, int64_t *lo, int64_t *hi) {
  for (uint32_t v = 0; v < PLAN_MAX_VARS; v++) {
    const tarn_plan_at *e = &at[v];
    lo[v] = e->kind == TARN_PLAN_NUMBER ? e->c : e->kind == TARN_PLAN_COUNTER ? e->lo : 0;
    hi[v] = e->kind == TARN_PLAN_UNSET ? s->hi[v] : e->c;
  }
}
void plan_walk_range(const plan_walk *w, const tarn_plan_lin *a, int64_t *lo, int64_t *hi) {
  tarn_plan_range(w->space, w->env, a, lo, hi);
}

static const tarn_plan_list *list_of(const plan_walk *w, uint32_t list) {
  return &w->N->list[list];
}
static const tarn_plan_level *level_of(const plan_walk *w, uint32_t list, uint32_t l) {
  return &w->N->list[list].level[l];
}
static tarn_plan_stage *stage_of(const plan_walk *w, uint32_t list) {
  return &w->N->stage[list - 1];
}
static tarn_plan_at at_number(int64_t c) {
  return (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = c};
}
static tarn_plan_at lanes_of(const plan_walk *w, uint32_t list, uint32_t l, int64_t len) {
  const tarn_plan_list *ll = list_of(w, list);
  bool rows = l + 1 < ll->n && ll->level[l + 1].kind == TARN_VECTOR;
  int64_t next = rows ? w->len[ll->level[l + 1].dim] : 1;
  return (tarn_plan_at){.kind = TARN_PLAN_VECTOR, .c = len - 1, .lo = next > 1 ? next : 1};
}
static uint8_t op_of(const tarn_plan_at *at) {
  if (at->kind == TARN_PLAN_VECTOR) return TARN_PLAN_LANES;
  return at->kind == TARN_PLAN_NUMBER ? TARN_PLAN_COPIES : TARN_PLAN_LOOP;
}

/* ---------------------------------------------------------------- prefetches */
static uint32_t lines_of(const tarn_prefetch *k) {
  return (uint32_t)(k->rows * tarn_ceildiv(k->step, k->line));
}
/* Is what lies inside of loop l a tile of copies in an order of their own? Then lines are
 * prefetched one by one between them. */
static bool tile_inside(const plan_walk *w, uint32_t list, uint32_t l) {
  const tarn_plan_list *ll = list_of(w, list);
  if (stage_of(w, list)->order >= ll->n) return false;
  for (uint32_t i = l + 1; i < ll->n; i++)
    if (ll->level[i].kind == TARN_SERIAL && ll->level[i].trips > 1) return false;
  return true;
}
static uint32_t taken_of_due(plan_walk *w, uint32_t part, uint32_t parts) {
  uint32_t n = 0;
  for (; (uint64_t)w->asked * parts < (uint64_t)w->due * part; w->asked++) n++;
  if (w->asked == w->due) w->asked = w->due = 0;
  return n;
}
void plan_prefetch_due(plan_walk *w, uint32_t part, uint32_t parts) {
  uint32_t n = taken_of_due(w, part, parts);
  if (n) plan_add(w, (tarn_plan_stmt){.op = TARN_PLAN_PREFETCH, .n = n});
}
/* In a trip of loop l. */
static void prefetch_in(plan_walk *w, uint32_t list, uint32_t l) {
  if (list == 0) return;
  const tarn_plan_stage *st = stage_of(w, list);
  uint32_t before = w->due;
  uint32_t var = level_of(w, list, l)->var;
  for (uint32_t i = 0; i < st->prefetch.n; i++)
    if (st->prefetch.p[i].k.at == var) w->due += lines_of(&st->prefetch.p[i].k);
  bool any = w->due > before;
  uint32_t n = tile_inside(w, list, l) ? 0 : taken_of_due(w, 1, 1);
  if (any || n) plan_add(w, (tarn_plan_stmt){.op = TARN_PLAN_ADDRESS, .var = var, .n = n});
}

/* ---------------------------------------------------------------- levels */
/* A statement that holds nothing, because padding leaves it out, is taken back. */
static uint32_t close_if_any(plan_walk *w, uint32_t at) {
  if (w->code.n == at + 1) {
    w->code.n = at;
    return TARN_NONE;
  }
  close(w, at);
  return at;
}
/* What is inside of a reduction's level, if the guards that its trip decides hold. */
static void walk_if(plan_walk *w, uint32_t list, uint32_t l) {
  const tarn_plan_level *lev = level_of(w, list, l);
  uint32_t read;
  uint32_t guard;
  if (!lev->red || stage_of(w, list)->nfactor ||
      !plan_decisive(w, list - 1, lev->var, &read, &guard)) {
    plan_walk_in(w, list, l + 1);
    return;
  }
  uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_GUARD, .read = read, .guard = guard});
  w->held[read] |= 1u << guard;
  walk_if(w, list, l);
  w->held[read] &= ~(1u << guard);
  close_if_any(w, at);
}

/* Sets level l and walks what is inside of it, `len` elements of its dim. trip: a loop's, which
 * prefetches. Returns the statement, or TARN_NONE. */
static uint32_t enter(plan_walk *w, uint32_t list, uint32_t l, tarn_plan_at env, int64_t len,
                      bool trip) {
  const tarn_plan_level *lev = level_of(w, list, l);
  int64_t outside = w->len[lev->dim];
  w->last[lev->var] = (outside + lev->step - 1) / lev->step - 1;
  w->len[lev->dim] = len;
  if (env.kind == TARN_PLAN_VECTOR) env = lanes_of(w, list, l, len);
  w->env[lev->var] = env;
  tarn_plan_stmt s = {.op = op_of(&env), .var = lev->var, .lo = env.lo, .hi = env.c};
  if (lev->kind == TARN_TEAM) s.op = TARN_PLAN_MEMBER;
  if (s.op == TARN_PLAN_COPIES) s.lo = env.c;
  s.last = w->last[lev->var];
  uint32_t at = open(w, s);
  if (trip && (w->phase == TARN_PLAN_STEP || w->phase == TARN_PLAN_MAP)) prefetch_in(w, list, l);
  if (w->phase == TARN_PLAN_STEP && list > 0) walk_if(w, list, l);
  else plan_walk_in(w, list, l + 1);
  if (trip) plan_prefetch_due(w, 1, 1);
  w->env[lev->var] = (tarn_plan_at){0};
  w->len[lev->dim] = outside;
  return close_if_any(w, at);
}
/* Turns copies of the same statements back into a loop if, written out, they need more than all
 * registers: LLVM would keep in memory what one trip loads and the next loads again. */
static void rolled(plan_walk *w, uint32_t list, uint32_t l, uint32_t at) {
  if (at == TARN_NONE || w->phase != TARN_PLAN_STEP || !plan_fills(w, list, l)) return;
  tarn_plan_stmt *s = &w->code.p[at];
  if (s->lo < s->hi) s->op = TARN_PLAN_LOOP;
}
/* Trips from … to - 1, each with its number; those that follow one another and hold the same stand
 * there once. trip: a loop's, as for enter. */
static void copies(plan_walk *w, uint32_t list, uint32_t l, int64_t from, int64_t to, int64_t len,
                   bool trip) {
  uint32_t before = TARN_NONE;
  for (int64_t i = from; i < to; i++) {
    uint32_t at = enter(w, list, l, at_number(i), len, trip);
    uint32_t now = at == TARN_NONE || before == TARN_NONE ? at : joined(w, before, at);
    if (trip && now != before) rolled(w, list, l, before);
    before = now;
  }
  if (trip) rolled(w, list, l, before);
}
static void apart(plan_walk *w) { plan_add(w, (tarn_plan_stmt){.op = TARN_PLAN_APART}); }

/* The full trips of a loop, those at the border of a padded operand apart: each is more than
 * registers hold, as one block with the next. */
static void loops(plan_walk *w, uint32_t list, uint32_t l, int64_t full) {
  int64_t first = 0;
  int64_t last = 0;
  int64_t before = w->copies;
  int64_t step = level_of(w, list, l)->step;
  if (w->phase == TARN_PLAN_MAP && plan_peel(w, list, l, full, &first, &last) &&
      !plan_peel_begin(w, first + last + (first + last < full)))
    first = last = 0;
  for (int64_t i = 0; i < first; i++) {
    enter(w, list, l, at_number(i), step, true);
    apart(w);
  }
  tarn_plan_at at = {.kind = TARN_PLAN_COUNTER, .lo = first, .c = full - last - 1};
  if (at.lo <= at.c) enter(w, list, l, at.lo == at.c ? at_number(at.c) : at, step, true);
  for (int64_t i = full - last; i < full; i++) {
    apart(w);
    enter(w, list, l, at_number(i), step, true);
  }
  w->copies = before;
}

static int64_t loop_by(plan_walk *w, uint32_t list, uint32_t l, int64_t from, int64_t by,
                       uint32_t open) {
  int64_t last = level_of(w, list, l)->extent - by;
  tarn_plan_at any = {.kind = TARN_PLAN_COUNTER, .c = tarn_max(last, 0)};
  uint32_t at = enter(w, list, l, any, by, true);
  if (at == TARN_NONE) return from;
  tarn_plan_stmt *s = &w->code.p[at];
  s->lo = from;
  s->hi = last;
  s->by = by;
  s->open = (uint8_t)open;
  int64_t trips = tarn_plan_trips(s);
  return trips && open & TARN_PLAN_OVER ? last + by : from + trips * by;
}
/* A level of an open dim, tier by tier. */
static void open_loops(plan_walk *w, uint32_t list, uint32_t l) {
  const tarn_plan_level *lev = level_of(w, list, l);
  int64_t from = 0;
  for (uint32_t i = 0; i < lev->ntier; i++)
    from = loop_by(w, list, l, from, lev->tier[i],
                   (i ? TARN_PLAN_ON : 0) | (lev->red ? 0 : TARN_PLAN_OVER));
}

static void dot_leaf(plan_walk *w, uint32_t list) {
  if (!plan_left_out(w, list - 1))
    plan_add(w, (tarn_plan_stmt){.op = TARN_PLAN_DOT, .phase = TARN_PLAN_STEP});
}
static void walk_level(plan_walk *w, uint32_t list, uint32_t l) {
  const tarn_plan_level *lev = level_of(w, list, l);
  int64_t len = w->len[lev->dim];
  int64_t full = len / lev->step;
  int64_t tail = len % lev->step;
  bool step = w->phase == TARN_PLAN_STEP;
  if (len == 0) return;
  if (lev->open) {
    open_loops(w, list, l);
    return;
  }
  if (lev->kind == TARN_VECTOR && len > 1) {
    enter(w, list, l, (tarn_plan_at){.kind = TARN_PLAN_VECTOR}, len, false);
    return;
  }
  if (lev->kind == TARN_TEAM) {
    enter(w, list, l, (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .c = full - 1}, lev->step, false);
    return;
  }
  if (lev->kind == TARN_DOT && step && len == stage_of(w, list)->dot[0].k) {
    dot_leaf(w, list);
    return;
  }
  if (w->copy[lev->var]) {
    int64_t only = w->copy[lev->var] - 1;
    enter(w, list, l, at_number(only), only < full ? lev->step : tail, false);
    return;
  }
  if (lev->kind == TARN_UNROLL || lev->kind == TARN_DOT)
    copies(w, list, l, 0, full, lev->step, false);
  else if (step && plan_unrolls(w, list, l, full)) copies(w, list, l, 0, full, lev->step, true);
  else if (full) {
    loops(w, list, l, full);
    if (tail && w->phase == TARN_PLAN_MAP) apart(w);
  }
  if (tail) enter(w, list, l, at_number(full), tail, true);
}

/* ---------------------------------------------------------------- reductions */
/* Are all reduce levels outside of the accumulators at their first (last) trip? The tests that
 * tell; none: it is known, in *known. */
static uint32_t at_border(const plan_walk *w, uint32_t list, bool last, tarn_plan_test *test,
                          bool *known) {
  uint32_t n = 0;
  *known = true;
  for (uint32_t i = 0; i < stage_of(w, list)->acc; i++) {
    const tarn_plan_level *l = level_of(w, list, i);
    const tarn_plan_at *e = &w->env[l->var];
    int64_t at = last ? w->last[l->var] : 0;
    if (!l->red || (e->kind == TARN_PLAN_NUMBER && e->c == at)) continue;
    if (e->kind == TARN_PLAN_NUMBER || at > e->c || at < e->lo) {
      *known = false;
      return 0;
    }
    test[n++] = (tarn_plan_test){l->var, at};
  }
  return n;
}
static void walk_phase(plan_walk *w, uint32_t list, uint32_t l, tarn_plan_phase phase) {
  tarn_plan_phase before;
  uint32_t at = plan_open_phase(w, phase, &before);
  plan_walk_in(w, list, l);
  plan_close_phase(w, at, before);
}
/* Walks in one phase or the other, as the border says. */
static void walk_either(plan_walk *w, uint32_t list, uint32_t l, bool last, tarn_plan_phase yes,
                        tarn_plan_phase no) {
  tarn_plan_test test[TARN_MAX_LEVELS];
  bool known;
  uint32_t n = at_border(w, list, last, test, &known);
  if (!n) {
    walk_phase(w, list, l, known ? yes : no);
    return;
  }
  tarn_plan_stmt s = {.op = TARN_PLAN_EITHER, .n = n};
  s.test = tarn_copy(w->N->cx, test, n * sizeof *test);
  uint32_t at = open(w, s);
  walk_phase(w, list, l, yes);
  walk_phase(w, list, l, no);
  close(w, at);
}

/* How a copy's accumulator ends as soon as it is complete: where the copies in an order of their
 * own are all of the reduction. MAP: all end together. */
static tarn_plan_phase ending(const plan_walk *w, uint32_t list, uint32_t l) {
  const tarn_plan_stage *st = stage_of(w, list);
  tarn_plan_test test[TARN_MAX_LEVELS];
  bool known;
  if (st->order != l || st->order_read == TARN_NONE || st->in_memory || st->chains > 1 ||
      st->red_lanes > 1 || st->rows)
    return TARN_PLAN_MAP;
  for (uint32_t i = st->order_end; i < list_of(w, list)->n; i++)
    if (level_of(w, list, i)->red) return TARN_PLAN_MAP;
  if (at_border(w, list, true, test, &known)) return TARN_PLAN_MAP;
  return known ? TARN_PLAN_FINISH : TARN_PLAN_LEAVE;
}
static void walk_tile(plan_walk *w, uint32_t list, uint32_t l) {
  w->end = stage_of(w, list)->nfactor ? TARN_PLAN_MAP : ending(w, list, l);
  w->ended = false;
  tarn_plan_stmt s = {.op = TARN_PLAN_TILE, .early = w->end != TARN_PLAN_MAP};
  uint32_t at = open(w, s);
  if (stage_of(w, list)->nfactor) plan_walk_bilinear(w, list, l);
  else {
    walk_either(w, list, l, false, TARN_PLAN_BEGIN, TARN_PLAN_RESUME);
    walk_phase(w, list, l, TARN_PLAN_STEP);
    const tarn_plan_stage *st = stage_of(w, list);
    tarn_plan_stmt merge = {.op = TARN_PLAN_MERGE, .var = st->part, .hi = st->parts - 1};
    uint32_t merged = st->parts > 1 ? open(w, merge) : TARN_NONE;
    if (!w->ended) walk_either(w, list, l, true, TARN_PLAN_FINISH, TARN_PLAN_LEAVE);
    if (merged != TARN_NONE) close(w, merged);
  }
  close(w, at);
}

/* ---------------------------------------------------------------- what a block holds */
static void simple(plan_walk *w, tarn_plan_op op, uint32_t n) {
  plan_add(w, (tarn_plan_stmt){.op = (uint8_t)op, .n = n});
}
static void of_held(plan_walk *w, const tarn_plan_stage *st, tarn_plan_op op) {
  for (uint32_t i = 0; i < st->nheld; i++)
    if (op == TARN_PLAN_COPY || st->held[i].border)
      plan_add(w, (tarn_plan_stmt){.op = (uint8_t)op, .read = st->held[i].read});
}
static void fetch(plan_walk *w, const tarn_plan_stage *st) {
  uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_FETCH});
  of_held(w, st, TARN_PLAN_COPY);
  close(w, at);
}
/* What is held is copied slots - 1 trips ahead. With several slots one barrier serves for both: a
 * trip's copies are there, and the slot that the next ones go to is no longer read. */
static void pipeline(plan_walk *w, uint32_t list) {
  const tarn_plan_stage *st = stage_of(w, list);
  bool one = st->nslot == 1;
  bool border = false;
  for (uint32_t i = 0; i < st->nheld; i++) border |= st->held[i].border;
  of_held(w, st, TARN_PLAN_FILL);
  if (border) simple(w, TARN_PLAN_BARRIER, 0);
  uint32_t at =
      open(w, (tarn_plan_stmt){
                  .op = TARN_PLAN_PIPELINE, .var = st->slot, .hi = st->trips - 1, .n = st->nslot});
  for (uint32_t i = st->acc; i < st->until; i++) {
    const tarn_plan_level *l = level_of(w, list, i);
    w->len[l->dim] = l->step;
  }
  if (one) fetch(w, st);
  simple(w, TARN_PLAN_AWAIT, one ? 0 : st->nslot - 2);
  simple(w, TARN_PLAN_BARRIER, 0);
  if (!one) fetch(w, st);
  plan_walk_in(w, list, st->until);
  if (one && st->trips > 1) simple(w, TARN_PLAN_BARRIER, 0);
  for (uint32_t d = st->nacc; d < st->n; d++) w->len[d] = st->over[d];
  close(w, at);
}

/* A result that lies beyond the end of a dim, in a tile that is not whole, is not stored. */
static void guarded(plan_walk *w, uint32_t list, uint32_t guard, tarn_plan_stmt leaf) {
  const tarn_plan_stage *st = stage_of(w, list);
  int64_t lo;
  int64_t hi;
  if (guard == st->result.nguard) {
    plan_add(w, leaf);
    return;
  }
  const tarn_plan_guard *g = &st->result.guard[guard];
  plan_walk_range(w, g->e, &lo, &hi);
  if (lo >= g->lo && hi < g->hi) {
    guarded(w, list, guard + 1, leaf);
    return;
  }
  uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_GUARD, .read = st->nread, .guard = guard});
  guarded(w, list, guard + 1, leaf);
  close(w, at);
}

static void leaf(plan_walk *w, uint32_t list) {
  tarn_plan_stmt s = {.op = TARN_PLAN_COMPUTE, .phase = (uint8_t)w->phase, .value = TARN_NONE};
  bool ends = w->phase == TARN_PLAN_FINISH || w->phase == TARN_PLAN_LEAVE;
  if (w->phase == TARN_PLAN_STEP && plan_left_out(w, list - 1)) return;
  if (w->takes) {
    w->value = w->values++;
    s = (tarn_plan_stmt){.op = TARN_PLAN_TAKE, .read = stage_of(w, list)->data, .value = w->value};
  } else if (ends) {
    s.value = w->value;
    s.early = w->end != TARN_PLAN_MAP;
    guarded(w, list, 0, s);
    return;
  }
  plan_add(w, s);
}

/* All of an instruction of a warp; accumulators register by register of each lane. */
static void unit(plan_walk *w, uint32_t list) {
  const tarn_plan_stage *st = stage_of(w, list);
  uint32_t lane = st->lane;
  uint32_t reg = st->reg[2];
  uint32_t before = TARN_NONE;
  if (w->phase == TARN_PLAN_STEP) {
    simple(w, TARN_PLAN_UNIT, 0);
    return;
  }
  w->env[lane] = (tarn_plan_at){.kind = TARN_PLAN_COUNTER, .c = st->space.hi[lane]};
  uint32_t at =
      open(w, (tarn_plan_stmt){.op = TARN_PLAN_MEMBER, .var = lane, .hi = st->space.hi[lane]});
  for (int64_t i = 0; i < st->nreg[2]; i++) {
    w->env[reg] = at_number(i);
    uint32_t copy = open(w, (tarn_plan_stmt){.op = TARN_PLAN_COPIES, .var = reg, .lo = i, .hi = i});
    leaf(w, list);
    close(w, copy);
    before = before == TARN_NONE ? copy : joined(w, before, copy);
  }
  w->env[reg] = w->env[lane] = (tarn_plan_at){0};
  close(w, at);
}

/* ---------------------------------------------------------------- the whole */
static void walk_stage(plan_walk *w, uint32_t i, void (*inside)(plan_walk *w, uint32_t list)) {
  const tarn_plan_stage *st = &w->N->stage[i];
  const tarn_plan_space *space = w->space;
  uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_STAGE, .var = i});
  for (uint32_t d = w->N->n->depth; d < st->n; d++) w->len[d] = st->over[d];
  w->space = &st->space;
  w->value = TARN_NONE;
  inside(w, 1 + i);
  w->space = space;
  close(w, at);
}
static void parallel(plan_walk *w, uint32_t list, uint32_t l);
static void from_first(plan_walk *w, uint32_t list) {
  if (!w->N->team) {
    plan_walk_in(w, list, 0);
    return;
  }
  int64_t items = tarn_plan_team_items(w->N, list - 1);
  uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_TEAM, .hi = items - 1});
  if (list_of(w, list)->parallel) parallel(w, list, 0);
  else plan_walk_in(w, list, 0);
  close(w, at);
  if (tarn_plan_waits(w->N, list - 1)) simple(w, TARN_PLAN_BARRIER, 0);
}

void plan_walk_in(plan_walk *w, uint32_t list, uint32_t l) {
  const tarn_plan_list *ll = list_of(w, list);
  const tarn_plan_stage *st = list ? stage_of(w, list) : NULL;
  bool map = w->phase == TARN_PLAN_MAP;
  bool step = w->phase == TARN_PLAN_STEP;
  if (st && st->unit && !map && l == st->unit_at) {
    unit(w, list);
    return;
  }
  if (st && st->red && map && l == st->acc) walk_tile(w, list, l);
  else if (st && st->tiled && step && l == st->acc && !w->fetching) {
    w->fetching = true;
    pipeline(w, list);
    w->fetching = false;
  } else if (st && step && l == st->order && plan_walk_in_order(w, list)) return;
  else if (l < ll->n && !map && !step && ll->level[l].red) plan_walk_in(w, list, l + 1);
  else if (l < ll->n) walk_level(w, list, l);
  else if (list) leaf(w, list);
  else
    for (uint32_t i = 0; i < w->N->nstage; i++) walk_stage(w, i, from_first);
}

/* ---------------------------------------------------------------- parallel levels */
static void parallel_case(plan_walk *w, uint32_t list, uint32_t l, tarn_plan_at env, int64_t below,
                          int64_t len) {
  const tarn_plan_level *lev = level_of(w, list, l);
  int64_t outside = w->len[lev->dim];
  w->last[lev->var] = lev->trips - 1;
  w->len[lev->dim] = len;
  w->env[lev->var] = env;
  tarn_plan_stmt s = {.op = TARN_PLAN_CASE, .var = lev->var, .hi = env.c, .below = below};
  s.lo = env.kind == TARN_PLAN_NUMBER ? env.c : env.lo;
  s.last = lev->trips - 1;
  s.by = lev->open ? len : 0;
  if (s.by) s.hi = lev->extent - len;
  s.open = TARN_PLAN_OVER;
  uint32_t at = open(w, s);
  parallel(w, list, l + 1);
  close(w, at);
  w->env[lev->var] = (tarn_plan_at){0};
  w->len[lev->dim] = outside;
}
/* The items count the trips of full lengths: in the tail of an outer level some have nothing to do;
 * a tail of this level is a case of its own. */
static void parallel(plan_walk *w, uint32_t list, uint32_t l) {
  if (l == list_of(w, list)->parallel) {
    plan_walk_in(w, list, l);
    return;
  }
  const tarn_plan_level *lev = level_of(w, list, l);
  int64_t full = w->len[lev->dim] / lev->step;
  int64_t tail = w->len[lev->dim] % lev->step;
  int64_t first = 0;
  int64_t last = 0;
  int64_t before = w->copies;
  uint32_t at = open(w, (tarn_plan_stmt){.op = TARN_PLAN_PARALLEL, .var = lev->var});
  if (lev->open) {
    for (uint32_t i = 0; i < lev->ntier; i++) {
      int64_t end = lev->extent - lev->tier[i];
      tarn_plan_at any = {.kind = TARN_PLAN_COUNTER, .c = tarn_max(end, 0)};
      parallel_case(w, list, l, any, 0, lev->tier[i]);
    }
    close(w, at);
    return;
  }
  if (plan_peel(w, list, l, full, &first, &last) &&
      !plan_peel_begin(w, first + last + (first + last < full)))
    first = last = 0;
  for (int64_t i = 0; i < first + last; i++) {
    int64_t trip = i < first ? i : full - 1 - (i - first);
    parallel_case(w, list, l, at_number(trip), 0, lev->step);
  }
  tarn_plan_at env = {.kind = TARN_PLAN_COUNTER, .lo = first, .c = full - last - 1};
  if (env.lo == env.c) env = at_number(env.lo);
  if (first + last < full) parallel_case(w, list, l, env, full, lev->step);
  w->copies = before;
  if (tail) parallel_case(w, list, l, at_number(full), 0, tail);
  close(w, at);
}
static void from_parallel(plan_walk *w, uint32_t list) {
  if (list_of(w, list)->parallel) parallel(w, list, 0);
  else plan_walk_in(w, list, 0);
}

tarn_plan_code *tarn_plan_walk_of(tarn_plan_nest *N, uint32_t region) {
  tarn_plan_code *c = TARN_NEW(N->cx, tarn_plan_code);
  plan_walk *w = TARN_NEW(N->cx, plan_walk);
  const tarn_plan_stage *st = &N->stage[N->split ? region : 0];
  *w = (plan_walk){.N = N, .space = &st->space, .copies = 1, .phase = TARN_PLAN_MAP};
  w->value = TARN_NONE;
  memcpy(w->len, st->dim, sizeof w->len);
  if (tarn_plan_items(N, region) == 0) return c;
  if (N->split) walk_stage(w, region, from_parallel);
  else from_parallel(w, 0);
  *c = (tarn_plan_code){.n = w->code.n, .p = w->code.p, .values = w->values};
  return c;
}
