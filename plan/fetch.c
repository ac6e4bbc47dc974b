/* What a GPU's block holds of its operands in shared memory: a box of coordinates (hold.h) for each
 * trip of the pipelined reduce levels, and how the block's threads copy it there.
 *
 * A copy goes along the operand as it lies, so that neighbouring threads read neighbours. A
 * coordinate that is the same in all trips and blocks counts only what lies inside of the operand;
 * its borders are filled once. Of others a guard says what lies outside. Where nothing but whole
 * vectors is inside, aligned on both sides, a thread copies up to 16 bytes at once. */
#include "kernel/maps.h"
#include "plan/hold.h"
#include "plan/internal.h"
#include <string.h>

enum { WIDEST = 16, ALIGNED = 16, MOST_HELD = 4, MOST_COPIES = 64 };

TARN_NORETURN static void refuse(const tarn_plan_nest *N, const char *what) {
  tarn_raise(N->cx, TARN_BAD_INPUT, "schedule: operands held in shared memory: %s", what);
}

/* ---------------------------------------------------------------- levels */
/* The levels are blocks, then pipelined loops over the sum, then what each thread does. */
static void check_levels(const tarn_plan_nest *N, const tarn_plan_stage *st,
                         const tarn_stage_sched *s) {
  uint32_t until = (uint32_t)(s->hold[0].at + 1);
  for (uint32_t i = 0; i < s->nhold; i++) {
    const tarn_hold *h = &s->hold[i];
    if (h->what != TARN_HOLD_OPERAND || h->operand >= st->f->nops)
      refuse(N, "operands of the body alone");
    if (h->at != s->hold[0].at || h->slots != s->hold[0].slots)
      refuse(N, "all at one level and in as many slots");
    if (st->s->read[h->operand].stage) refuse(N, "none of another stage");
    if (st->s->read[h->operand].row.by) refuse(N, "none of which a lookup names the rows");
  }
  if (s->nhold < st->f->nops) refuse(N, "each operand of the body");
  if (!st->red || s->nhold > MOST_HELD || until < s->acc) refuse(N, "not of this stage");
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    bool sum = l->dim >= st->nacc;
    bool units = s->unit && i + 3 >= s->nlevel && l->kind == TARN_SERIAL;
    bool fits = i < s->acc  ? !sum && l->kind == TARN_PARALLEL
                : i < until ? sum && l->kind == TARN_SERIAL
                : sum       ? l->kind != TARN_PARALLEL && l->kind != TARN_VECTOR
                            : l->kind == TARN_TEAM || l->kind == TARN_UNROLL;
    if (!fits && !units)
      refuse(N, "parallel levels, serial ones over the sum, then team, unroll and serial ones");
  }
}
void tarn_plan_whole_tiles(tarn_plan_stage *st, const tarn_stage_sched *s) {
  for (uint32_t i = s->nlevel; i-- > 0;) {
    uint32_t d = s->level[i].dim;
    st->over[d] = tarn_ceildiv(st->dim[d], s->level[i].step) * s->level[i].step;
  }
}
void tarn_plan_fetch_levels(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_stage_sched *s) {
  check_levels(N, st, s);
  tarn_plan_whole_tiles(st, s);
}
/* A level of the sum whose trips the threads share. */
static void share_sum(const tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list,
                      uint32_t i) {
  const tarn_plan_level *l = &list->level[i];
  int64_t outside = st->over[l->dim];
  for (uint32_t k = 0; k < i; k++)
    if (list->level[k].dim == l->dim) outside = list->level[k].step;
  if (st->parts > 1 || st->red->ns != 1 || outside != l->trips * l->step)
    refuse(N, "threads share one level of a sum, whose trips are whole");
  st->parts = l->trips;
  st->part = l->var;
}
/* The slot's number is a variable between those of the pipelined levels and the others. */
void tarn_plan_fetch_vars(tarn_plan_nest *N, tarn_plan_stage *st, tarn_plan_list *list,
                          const tarn_stage_sched *s, const tarn_plan_operand *in) {
  st->until = (uint32_t)(s->hold[0].at + 1);
  st->nslot = s->hold[0].slots;
  st->slot = st->until;
  st->trips = 1;
  st->parts = 1;
  st->threads = s->unit ? N->hw->warps.lanes : 1;
  if (s->unit) tarn_plan_fragment_levels(N, st, list, s, in);
  if (list->n + 1 >= PLAN_MAX_VARS) refuse(N, "too many levels");
  for (uint32_t i = 0; i < list->n; i++) {
    tarn_plan_level *l = &list->level[i];
    if (i >= st->until) l->var++;
    if (i >= s->acc && i < st->until) st->trips *= l->trips;
    if (l->kind == TARN_TEAM) st->threads *= l->trips;
    if (l->kind == TARN_TEAM && l->red && l->trips > 1) share_sum(N, st, list, i);
    if (l->inside && !l->red && l->kind == TARN_SERIAL) refuse(N, "too many copies of the body");
  }
  if (st->unit) tarn_plan_fragment_vars(N, st, list);
  if (st->threads > N->hw->warps.block)
    tarn_raise(N->cx, TARN_BAD_INPUT, "schedule: a block of %lld threads, %s has at most %u",
               (long long)st->threads, N->hw->name, N->hw->warps.block);
  st->space.hi[st->slot] = st->nslot - 1;
}

/* ---------------------------------------------------------------- one operand */
typedef struct box {
  tarn_plan_nest *N;
  tarn_plan_stage *st;
  const tarn_plan_list *list;
  const tarn_hold *hold;
  const tarn_plan_operand *in;
  const tarn_imap *map;
  const tarn_coordinate *c;
  uint32_t n;
  int64_t size;                                 /* bytes of an element */
  const tarn_plan_lin *outer[PLAN_MOST_COORDS]; /* where it begins, over outer levels */
  int64_t length[PLAN_MOST_COORDS];
  int64_t first[PLAN_MOST_COORDS], end[PLAN_MOST_COORDS]; /* of it, what is copied */
  int64_t lo[PLAN_MOST_COORDS], hi[PLAN_MOST_COORDS];     /* values inside of the operand */
  bool guarded[PLAN_MOST_COORDS];
  int64_t far[PLAN_MOST_COORDS];                            /* apart in the operand */
  uint32_t order[PLAN_MOST_COORDS], walk[PLAN_MOST_COORDS]; /* there; and as it is copied */
  int64_t stride[PLAN_MOST_COORDS], shift;
  int64_t elems;
} box;

/* The part of a dim's index that levels before `until` set, or the others. */
static const tarn_plan_lin *part_of(const box *b, uint32_t dim, bool outer) {
  const tarn_plan_stage *st = b->st;
  const tarn_plan_space *s = &st->space;
  const tarn_plan_lin *x = tarn_plan_lin_const(s->cx, 0);
  for (uint32_t i = 0; i < b->list->n; i++) {
    const tarn_plan_level *l = &b->list->level[i];
    if (st->unit && i >= st->unit_at) {
      uint32_t o = st->unit_read[0] == b->hold->operand ? 0 : 1;
      tarn_hw_role role = l->dim >= st->nacc ? TARN_HW_K : o ? TARN_HW_N : TARN_HW_M;
      if (l->dim == dim && !outer)
        x = tarn_plan_lin_add(s, x, 1, tarn_plan_fragment(b->N, st, o, role));
      continue;
    }
    if (l->dim == dim && (i < b->st->until) == outer)
      x = tarn_plan_lin_add(s, x, 1, tarn_plan_lin_var(s, tarn_plan_level_by(l), l->var));
  }
  return x;
}
static const tarn_plan_lin *sum_of(const box *b, const tarn_coordinate *c, bool outer) {
  const tarn_plan_space *s = &b->st->space;
  const tarn_plan_lin *x = tarn_plan_lin_const(s->cx, 0);
  for (uint32_t i = 0; i < c->n; i++)
    x = tarn_plan_lin_add(s, x, c->by[i], part_of(b, c->dim[i], outer));
  return x;
}
/* Are all of the map's guards the clips of coordinates, and all of its steps forward? */
static void check_map(const box *b) {
  const tarn_lang *L = b->N->L;
  for (uint32_t g = 0; g < b->map->nguard; g++) {
    const tarn_ix *e = tarn_ix_get(L, b->map->guard[g].e);
    bool found = false;
    for (uint32_t i = 0; i < b->n && !found; i++) {
      found = b->c[i].clipped && b->c[i].n == e->n && b->c[i].c == e->c &&
              b->c[i].lo == b->map->guard[g].lo && b->c[i].hi == b->map->guard[g].hi;
      for (uint32_t k = 0; k < b->c[i].n && found; k++)
        found = tarn_ix_coef(L, b->map->guard[g].e, b->c[i].dim[k]) == b->c[i].by[k];
    }
    if (!found) refuse(b->N, "a guard that is of no coordinate");
  }
  for (uint32_t k = 0; k < b->map->nin; k++)
    for (uint32_t d = 0; d < b->st->n; d++)
      if (tarn_ix_coef(L, b->map->e[k], d) < 0) refuse(b->N, "one that is read backwards");
}
static void begin_box(box *b) {
  int64_t tile[TARN_MAX_DIMS];
  memcpy(tile, b->st->over, sizeof tile);
  for (uint32_t i = 0; i < b->st->until; i++) tile[b->list->level[i].dim] = b->list->level[i].step;
  for (uint32_t i = 0; i < b->n; i++) {
    const tarn_coordinate *c = &b->c[i];
    int64_t lo;
    int64_t hi;
    b->outer[i] = sum_of(b, c, true);
    b->length[i] = tarn_coordinate_length(c, tile);
    b->lo[i] = c->clipped ? tarn_max(0, c->lo - c->c) : 0;
    b->hi[i] = tarn_coordinate_length(c, b->st->dim);
    if (c->clipped) b->hi[i] = tarn_min(b->hi[i], c->hi - c->c);
    bool still = b->outer[i]->n == 0;
    b->first[i] = still ? tarn_max(0, b->lo[i]) : 0;
    b->end[i] = still ? tarn_max(b->first[i] + 1, tarn_min(b->length[i], b->hi[i])) : b->length[i];
    tarn_plan_range(&b->st->space, (tarn_plan_at[PLAN_MAX_VARS]){{0}}, b->outer[i], &lo, &hi);
    b->guarded[i] = lo + b->first[i] < b->lo[i] || hi + b->end[i] > b->hi[i];
  }
}

/* ---------------------------------------------------------------- where it goes */
/* As the schedule says, outermost first; else as the operand lies. */
static void order_box(box *b) {
  for (uint32_t i = 0; i < b->n; i++) {
    uint32_t at = i;
    for (; at > 0 && b->far[b->walk[at - 1]] < b->far[i]; at--) b->walk[at] = b->walk[at - 1];
    b->walk[at] = i;
  }
  memcpy(b->order, b->walk, sizeof b->order);
  if (!b->hold->npart) return;
  if (b->hold->npart != b->n) refuse(b->N, "an order that does not name each coordinate once");
  for (uint32_t p = 0, seen = 0; p < b->n; p++) {
    uint32_t at = 0;
    for (; at < b->n; at++) {
      bool is = false;
      for (uint32_t k = 0; k < b->c[at].n; k++) is |= b->c[at].dim[k] == b->hold->part[p].dim;
      if (is && !(seen >> at & 1)) break;
    }
    if (at == b->n) refuse(b->N, "an order that does not name each coordinate once");
    seen |= 1u << at;
    b->order[p] = at;
  }
}
/* Strides for copies of w elements: rows of the innermost coordinate begin at multiples of w. */
static void lay_out(box *b, int64_t w) {
  uint32_t last = b->n ? b->order[b->n - 1] : 0;
  int64_t at = 1;
  b->shift = 0;
  if (w > 1) b->shift = (w - b->first[last] % w) % w;
  for (uint32_t p = b->n; p-- > 0;) {
    uint32_t i = b->order[p];
    b->stride[i] = at;
    at *= i == last ? tarn_ceildiv(b->length[i] + b->shift, w) * w + b->hold->pad : b->length[i];
  }
  int64_t whole = tarn_max(1, ALIGNED / b->size);
  if (b->hold->skew && (b->n < 2 || b->shift || b->hold->pad || b->length[last] % whole))
    refuse(b->N, "rows to be skewed are whole vectors of 16 bytes, and not padded");
  b->elems = tarn_ceildiv(at, whole) * whole;
}

/* ---------------------------------------------------------------- the copy */
/* The value of coordinate i where a copy counts: its variable is of steps of `wide`, if the last
 * one. */
static const tarn_plan_lin *value_of(const box *b, const tarn_plan_held *h, uint32_t k) {
  const tarn_plan_space *s = &b->st->space;
  uint32_t i = b->walk[k];
  int64_t by = k + 1 == b->n ? h->wide : 1;
  return tarn_plan_lin_add(s, tarn_plan_lin_const(s->cx, b->first[i]), 1,
                           tarn_plan_lin_var(s, by, h->var[k]));
}
/* Where a row that is skewed has element x, of row y. */
static const tarn_plan_lin *skewed(const box *b, const tarn_plan_lin *x, const tarn_plan_lin *y) {
  const tarn_plan_space *s = &b->st->space;
  int64_t each = tarn_max(1, ALIGNED / b->size);
  int64_t vectors = b->length[b->order[b->n - 1]] / each;
  const tarn_plan_lin *v = tarn_plan_lin_div(s, x, each);
  v = tarn_plan_lin_add(s, v, 1, tarn_plan_lin_div(s, y, b->hold->skew));
  return tarn_plan_lin_add(s, tarn_plan_lin_mod(s, x, each), each,
                           tarn_plan_lin_mod(s, v, vectors));
}
static const tarn_plan_lin *place(const box *b, const tarn_plan_lin *const *x) {
  const tarn_plan_space *s = &b->st->space;
  const tarn_plan_lin *at = tarn_plan_lin_var(s, b->elems, b->st->slot);
  uint32_t last = b->n ? b->order[b->n - 1] : 0;
  for (uint32_t i = 0; i < b->n; i++) {
    bool turned = i == last && b->hold->skew;
    const tarn_plan_lin *v = turned ? skewed(b, x[i], x[b->order[b->n - 2]]) : x[i];
    at = tarn_plan_lin_add(s, at, b->stride[i], v);
  }
  if (b->n) at = tarn_plan_lin_add(s, at, 1, tarn_plan_lin_const(s->cx, b->shift));
  return at;
}
/* Where the operand has what the coordinates' values say. */
static const tarn_plan_lin *source(const box *b, const tarn_plan_lin *const *x) {
  const tarn_plan_space *s = &b->st->space;
  const tarn_plan_lin *e[TARN_MAX_DIMS];
  for (uint32_t k = 0; k < b->map->nin; k++)
    e[k] = tarn_plan_lin_const(s->cx, tarn_ix_get(b->N->L, b->map->e[k])->c);
  for (uint32_t i = 0; i < b->n; i++) {
    const tarn_plan_lin **to = &e[b->c[i].of];
    *to = tarn_plan_lin_add(s, *to, b->c[i].step, tarn_plan_lin_add(s, b->outer[i], 1, x[i]));
  }
  return tarn_plan_lin_layout(s, &b->in->layout, e);
}
static void make_copy(const box *b, tarn_plan_held *h) {
  const tarn_plan_space *s = &b->st->space;
  const tarn_plan_lin *x[PLAN_MOST_COORDS];
  h->from.nguard = 0;
  for (uint32_t k = 0; k < b->n; k++) {
    uint32_t i = b->walk[k];
    h->count[k] = (b->end[i] - b->first[i]) / (k + 1 == b->n ? h->wide : 1);
    b->st->space.hi[h->var[k]] = h->count[k] - 1;
    x[i] = value_of(b, h, k);
    if (!b->guarded[i]) continue;
    const tarn_plan_lin *e = tarn_plan_lin_add(s, b->outer[i], 1, x[i]);
    h->from.guard[h->from.nguard++] = (tarn_plan_guard){e, b->lo[i], b->hi[i]};
  }
  h->from.off = source(b, x);
  h->to = place(b, x);
}
/* May it go by w elements? */
static bool goes_by(box *b, tarn_plan_held *h, int64_t w) {
  if (!b->n || w == 1) return w == 1;
  uint32_t last = b->walk[b->n - 1];
  if (b->order[b->n - 1] != last || b->far[last] != 1) return false;
  if ((b->end[last] - b->first[last]) % w || b->in->layout.offset % w) return false;
  if (b->guarded[last] && (b->lo[last] % w || b->hi[last] % w)) return false;
  h->wide = (uint32_t)w;
  lay_out(b, w);
  make_copy(b, h);
  bool fits = tarn_plan_multiple(h->from.off, w) && tarn_plan_multiple(h->to, w);
  for (uint32_t g = 0; g < h->from.nguard; g++)
    if (tarn_plan_lin_deps(h->from.guard[g].e) >> h->var[b->n - 1] & 1)
      fits &= tarn_plan_multiple(h->from.guard[g].e, w);
  return fits;
}
uint32_t tarn_plan_zero(const tarn_plan_nest *N, tarn_dtype t) {
  return tarn_dtype_is_float(t) ? tarn_fx_const(N->L, t, 0) : tarn_fx_iconst(N->L, t, 0);
}
bool tarn_plan_is_zero(const tarn_plan_nest *N, uint32_t fill, tarn_dtype t) {
  return fill == tarn_plan_zero(N, t);
}
static uint32_t fill_of(const box *b) {
  return b->map->nguard ? b->map->fill : tarn_plan_zero(b->N, b->in->dtype);
}
static void hold_one(box *b, tarn_plan_held *h, uint32_t *vars) {
  tarn_plan_stage *st = b->st;
  int64_t w = tarn_max(1, WIDEST / b->size);
  *h = (tarn_plan_held){.read = b->hold->operand, .n = b->n, .wide = 1};
  h->from = (tarn_plan_access){.dtype = b->in->dtype, .fill = fill_of(b)};
  for (uint32_t k = 0; k < b->n; k++) h->var[k] = (*vars)++;
  if (*vars > PLAN_MAX_VARS) refuse(b->N, "too many levels");
  const tarn_plan_lin *x[PLAN_MOST_COORDS];
  for (uint32_t i = 0; i < b->n; i++) {
    st->space.hi[h->var[i]] = 1;
    x[i] = tarn_plan_lin_var(&st->space, 1, h->var[i]);
  }
  const tarn_plan_lin *off = source(b, x);
  for (uint32_t i = 0; i < b->n; i++)
    if (!tarn_plan_moves_by(off, h->var[i], &b->far[i])) b->far[i] = b->c[i].step * WIDEST;
  order_box(b);
  while (w > 1 && !goes_by(b, h, w)) w /= 2;
  if (w == 1) {
    h->wide = 1;
    lay_out(b, 1);
    make_copy(b, h);
  }
  h->elems = b->elems;
  for (uint32_t i = 0; i < b->n; i++) h->border |= b->first[i] > 0 || b->end[i] < b->length[i];
  int64_t bytes = h->wide * b->size;
  bool zeros = !h->from.nguard || tarn_plan_is_zero(b->N, h->from.fill, b->in->dtype);
  h->async = bytes >= 4 && bytes <= b->N->hw->warps.async && zeros;
}
/* The body's access goes to what is held. */
static void redirect(const box *b, uint32_t no) {
  const tarn_plan_lin *x[PLAN_MOST_COORDS];
  tarn_plan_access *a = &b->st->read[b->hold->operand];
  for (uint32_t i = 0; i < b->n; i++) x[i] = sum_of(b, &b->c[i], false);
  a->off = place(b, x);
  a->nguard = 0;
  a->elems = 0;
  a->few = NULL;
  a->held = no + 1;
}

/* ---------------------------------------------------------------- the stage */
/* Results beyond the end of a dim are not stored. A sum beyond its end has to add nothing. */
static void guard_ends(const tarn_plan_nest *N, tarn_plan_stage *st) {
  uint32_t over = 0;
  for (uint32_t d = 0; d < st->n; d++) {
    if (st->over[d] == st->dim[d]) continue;
    over |= 1u << d;
    if (d < st->nacc)
      st->result.guard[st->result.nguard++] = (tarn_plan_guard){st->index[d], 0, st->dim[d]};
  }
  bool sum = over >> st->nacc != 0;
  uint32_t zero[TARN_MAX_OPERANDS];
  for (uint32_t r = 0; r < st->f->nops && over; r++) {
    const tarn_imap *m = tarn_imap_get(N->L, st->s->read[r].map);
    if ((imap_dims(N->L, m) & over) && !st->read[r].held)
      refuse(N, "all that tiles which are not whole read");
    zero[r] = st->read[r].held ? st->held[st->read[r].held - 1].from.fill : TARN_NONE;
    if (sum && (zero[r] == TARN_NONE || !tarn_plan_is_zero(N, zero[r], st->read[r].dtype)))
      refuse(N, "tiles of the sum that are not whole, of operands that are not filled with 0");
  }
  if (sum && tarn_fx_subst(N->L, st->f->body, zero, st->f->nops) !=
                 tarn_reducer_identity(N->L, st->f->red))
    refuse(N, "tiles of the sum that are not whole, and zeros that add something");
}
void tarn_plan_fetch_settle(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list,
                            const tarn_stage_sched *s, const tarn_plan_operand *in) {
  tarn_stage_dims d = tarn_stage_dims_of(N->n, (uint32_t)(st - N->stage));
  uint32_t vars = list->n + 1 + (st->unit ? TARN_PLAN_UNIT_VARS : 0);
  st->held = TARN_ARRAY(N->cx, tarn_plan_held, s->nhold);
  for (uint32_t i = 0; i < s->nhold; i++) {
    box b = {.N = N, .st = st, .list = list, .hold = &s->hold[i]};
    const tarn_read *r = &st->s->read[b.hold->operand];
    b.in = &in[r->src];
    b.map = tarn_imap_get(N->L, r->map);
    b.n = tarn_reach_coordinates(tarn_reach_of(N->L, &d, b.hold), &b.c);
    b.size = (int64_t)tarn_dtype_size(b.in->dtype);
    if (b.n > PLAN_MOST_COORDS) refuse(N, "too many dims");
    check_map(&b);
    begin_box(&b);
    hold_one(&b, &st->held[i], &vars);
    int64_t copies = 1;
    for (uint32_t k = 0; k < st->held[i].n; k++) copies *= st->held[i].count[k];
    if (copies > MOST_COPIES * st->threads) refuse(N, "more than 64 copies for a thread in a trip");
    redirect(&b, st->nheld++);
    st->held[i].at = st->shared;
    st->shared += st->nslot * b.elems * b.size;
  }
  int64_t others = st->threads - st->threads / st->parts, sums = tarn_plan_tile_of(list).slots;
  if (st->unit) sums *= st->nreg[2];
  st->shared = tarn_max(st->shared, others * sums * (int64_t)tarn_dtype_size(st->state[0]));
  int64_t most = tarn_hw_block_memory(N->hw);
  if (st->shared > most)
    tarn_raise(N->cx, TARN_BAD_INPUT,
               "schedule: a block holds %lld bytes in shared memory, %s has room for %lld",
               (long long)st->shared, N->hw->name, (long long)most);
  guard_ends(N, st);
  if (!st->unit) return;
  tarn_plan_fragment_check(N, st);
  tarn_plan_fragment_matrices(N, st);
}
