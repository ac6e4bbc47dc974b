/* Orders the unrolled copies of a window by the operand that they read. Neighbours in a register
 * tile share most of it. Emitted row by row of the operand, each vector is loaded once, used by
 * every copy that needs it, and dead. In loop order it would live from one step of the reduction to
 * the next, and there are more vectors than registers. A complete accumulator is stored at once if
 * only these copies add to it, which frees its register.
 *
 * If the other operand (the filters' taps) has more vectors than fit beside the accumulators, that
 * order loads them repeatedly. The copies then follow the other operand's vectors, each used by the
 * whole tile at once, if that takes fewer loads.
 *
 * A tile without a window goes row by row and keeps a row's vectors while all rows use them. If
 * broadcast elements need registers too and there are too few, it follows the operand with fewer
 * vectors. Otherwise LLVM keeps a sum in memory, as for three rows of four vectors on 16 registers.
 */
#include "plan/walk.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_READS 8 /* operands of it */
#define MOST_REGS  64
#define LEAST_ROOM 4 /* registers beside the accumulators; with one, the other order is faster */

/* Steps of a window and places of it, so many elements apart each, meet at the same elements. */
static bool meet(int64_t by, int64_t steps, int64_t place) {
  return by && place % by == 0 && place / by >= 1 && place / by < steps;
}
/* Copies along an own dim and along a reduce dim do. */
static bool overlap(const tarn_plan_list *list, uint32_t first, uint32_t end, const int64_t *by) {
  for (uint32_t i = first; i < end; i++)
    for (uint32_t j = first; j < end; j++) {
      if (!list->level[i].red || list->level[j].red) continue;
      if (meet(by[i], list->level[i].trips, by[j])) return true;
    }
  return false;
}
bool plan_orders(uint32_t kind, uint32_t dim, uint32_t *dims) {
  if (kind != TARN_UNROLL || *dims >> dim & 1) return false;
  *dims |= 1u << dim;
  return true;
}
void tarn_plan_order_settle(const tarn_plan_nest *N, tarn_plan_stage *st,
                            const tarn_plan_list *list) {
  uint32_t end = list->n, dims = 0;
  st->order = TARN_MAX_LEVELS;
  if (!st->red || !N->contract) return; /* the order of additions may change */
  while (end && list->level[end - 1].kind == TARN_VECTOR) end--;
  uint32_t first = end;
  while (first > st->acc &&
         plan_orders(list->level[first - 1].kind, list->level[first - 1].dim, &dims))
    first--;
  for (uint32_t r = 0; r < st->f->nops; r++) {
    int64_t by[TARN_MAX_LEVELS];
    bool even = true;
    for (uint32_t i = first; i < end && even; i++)
      even = tarn_plan_moves_by(st->read[r].off, list->level[i].var, &by[i]);
    if (!even || !overlap(list, first, end, by)) continue;
    st->order = first, st->order_end = end, st->order_read = r;
    return;
  }
  if (N->hw->spreads && st->f->nops == 2 && first < end)
    st->order = first, st->order_end = end, st->order_read = TARN_NONE;
}

#define MOST_COPIES 512
typedef struct copy {
  int64_t at, with; /* where it reads the window, and another operand */
  uint32_t no;
} copy;
typedef struct order {
  uint32_t n;
  int64_t count[TARN_MAX_LEVELS]; /* copies of each level from st->order to st->order_end */
  bool grouped; /* each vector of the other operand is used by the whole tile at once */
  copy copy[MOST_COPIES];
  bool last[MOST_COPIES]; /* of its accumulator */
} order;

/* The copies of a body, by number: the accumulator of each, and the vectors that it reads. */
typedef struct copies {
  uint32_t n, nown, nread, nvector;
  int64_t count[TARN_MAX_LEVELS], by[MOST_READS][TARN_MAX_LEVELS]; /* by level */
  uint16_t own[MOST_COPIES], vector[MOST_READS][MOST_COPIES];
} copies;
static int64_t place(const tarn_plan_stage *st, const copies *c, const int64_t *by, uint32_t no) {
  int64_t at = 0;
  for (uint32_t i = st->order_end; i-- > st->order; no /= (uint32_t)c->count[i])
    at += no % c->count[i] * by[i];
  return at;
}
/* False: more than are ordered. */
static bool copies_of(const int64_t *len, const tarn_plan_list *ll, const tarn_plan_stage *st,
                      copies *c) {
  int64_t n = 1, own[TARN_MAX_LEVELS] = {0}, at[MOST_COPIES];
  c->nown = 1, c->nvector = 0, c->nread = st->f->nops;
  if (c->nread > MOST_READS) return false;
  for (uint32_t i = st->order_end; i-- > st->order;) {
    const tarn_plan_level *l = &ll->level[i];
    c->count[i] = (len[l->dim] + l->step - 1) / l->step;
    if ((n *= c->count[i]) > MOST_COPIES) return false;
    if (!l->red) own[i] = c->nown, c->nown *= (uint32_t)c->count[i];
  }
  c->n = (uint32_t)n;
  for (uint32_t k = 0; k < c->n; k++) c->own[k] = (uint16_t)place(st, c, own, k);
  for (uint32_t r = 0; r < c->nread; r++) {
    bool even = true;
    for (uint32_t i = st->order; i < st->order_end; i++)
      even &= tarn_plan_moves_by(st->read[r].off, ll->level[i].var, &c->by[r][i]);
    if (!even) memset(c->by[r], 0, sizeof c->by[r]);
    for (uint32_t k = 0; k < c->n; k++) {
      uint32_t same = 0;
      at[k] = even ? place(st, c, c->by[r], k) : k;
      while (at[same] != at[k]) same++;
      c->vector[r][k] = same < k ? c->vector[r][same] : (uint16_t)c->nvector++;
    }
  }
  return true;
}

static int by_place(const void *a, const void *b) {
  const copy *x = a, *y = b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  if (x->with != y->with) return x->with < y->with ? -1 : 1;
  return x->no < y->no ? -1 : 1;
}
/* By place; or place by place of what the other operand, too, is moved by, so that its vectors are
 * used by all copies of a tile's rows at once: they may be more than those of the window. */
static void in_order(const tarn_plan_stage *st, const copies *c, bool grouped, copy *o) {
  int64_t at[TARN_MAX_LEVELS] = {0}, with[TARN_MAX_LEVELS] = {0};
  for (uint32_t i = st->order; i < st->order_end; i++) {
    for (uint32_t r = 0; r < c->nread && grouped; r++)
      if (r != st->order_read && !with[i]) with[i] = c->by[r][i];
    at[i] = grouped && !with[i] ? 0 : c->by[st->order_read][i];
  }
  for (uint32_t k = 0; k < c->n; k++) o[k] = (copy){place(st, c, at, k), place(st, c, with, k), k};
  qsort(o, c->n, sizeof *o, by_place);
}

/* Loads that an order takes where so many registers hold vectors: the one that is wanted last goes
 * first (Belady, "A study of replacement algorithms for a virtual-storage computer", 1966). */
#define NEVER UINT16_MAX
static uint32_t loads_of(const copies *c, const copy *o, uint32_t regs) {
  uint16_t next[MOST_READS][MOST_COPIES], seen[MOST_READS * MOST_COPIES], held[MOST_REGS],
      until[MOST_REGS];
  uint32_t loads = 0, nheld = 0;
  memset(seen, 0xff, sizeof seen);
  for (uint32_t k = c->n; k-- > 0;)
    for (uint32_t r = 0; r < c->nread; r++) {
      uint16_t *at = &seen[c->vector[r][o[k].no]];
      next[r][k] = *at, *at = (uint16_t)k;
    }
  for (uint32_t k = 0; k < c->n; k++)
    for (uint32_t r = 0; r < c->nread; r++) {
      uint32_t i = 0, most = 0;
      while (i < nheld && held[i] != c->vector[r][o[k].no]) i++;
      if (i == nheld) held[nheld++] = c->vector[r][o[k].no], loads++;
      until[i] = next[r][k];
      for (i = 0; i < nheld; i++)
        if (until[i] > until[most]) most = i;
      if (until[most] == NEVER || nheld > regs)
        nheld--, held[most] = held[nheld], until[most] = until[nheld];
    }
  return loads;
}
/* Is the tile's way through its rows, one vector of the other operand after the other, clearly the
 * better one? Accumulators that leave their registers before the end speak for the other. */
static bool is_grouped(const tarn_hw *hw, bool complete, const copies *c,
                       const copy (*o)[MOST_COPIES]) {
  uint32_t regs = hw->vector_regs ? hw->vector_regs : 16;
  if (complete || c->nown + 1 + LEAST_ROOM > regs || regs > MOST_REGS) return false;
  return 4 * loads_of(c, o[1], regs - c->nown - 1) < 3 * loads_of(c, o[0], regs - c->nown - 1);
}

/* Step by step of the reduction, and within a step by place of one operand; NULL: as they are
 * listed is as good. */
static const copy *by_side(const tarn_plan_nest *N, const tarn_plan_stage *st,
                           const tarn_plan_list *ll, const copies *c, copy (*o)[MOST_COPIES]) {
  uint32_t regs = N->hw->vector_regs ? N->hw->vector_regs : 16;
  if (c->nown >= regs || regs > MOST_REGS) return NULL;
  for (uint32_t k = 0; k < c->n; k++) o[0][k] = (copy){k, 0, k};
  uint32_t least = loads_of(c, o[0], regs - c->nown), listed = least;
  for (uint32_t r = 0; r < c->nread; r++) {
    int64_t step[TARN_MAX_LEVELS] = {0}, by[TARN_MAX_LEVELS] = {0}, n = 1;
    for (uint32_t i = st->order_end; i-- > st->order;)
      if (ll->level[i].red) step[i] = n, n *= c->count[i];
      else by[i] = c->by[r][i];
    for (uint32_t k = 0; k < c->n; k++)
      o[1][k] = (copy){place(st, c, step, k), place(st, c, by, k), k};
    qsort(o[1], c->n, sizeof *o[1], by_place);
    uint32_t loads = loads_of(c, o[1], regs - c->nown);
    if (loads < least) least = loads, memcpy(o[0], o[1], c->n * sizeof *o[0]);
  }
  return least < listed ? o[0] : NULL;
}

/* The order for a tile whose dims have len elements left; complete: accumulators leave their
 * registers as they are complete. False: as the levels list them. */
static bool order_of(const tarn_plan_nest *N, uint32_t list, const int64_t *len, bool complete,
                     order *out) {
  const tarn_plan_list *ll = &N->list[list];
  const tarn_plan_stage *st = &N->stage[list - 1];
  copies c;
  copy o[2][MOST_COPIES];
  if (!copies_of(len, ll, st, &c)) return false;
  bool seen[MOST_COPIES] = {0};
  bool window = st->order_read != TARN_NONE;
  const copy *p = NULL;
  for (uint32_t g = 0; g < 2 && window; g++) in_order(st, &c, g, o[g]);
  out->grouped = window && is_grouped(N->hw, complete, &c, o);
  p = window ? o[out->grouped] : by_side(N, st, ll, &c, o);
  if (!p) return false;
  out->n = c.n;
  memcpy(out->count, c.count, sizeof c.count);
  memcpy(out->copy, p, c.n * sizeof *p);
  for (uint32_t k = c.n; k-- > 0; seen[c.own[p[k].no]] = true) out->last[k] = !seen[c.own[p[k].no]];
  return true;
}

bool plan_walk_in_order(plan_walk *w, uint32_t list) {
  const tarn_plan_list *ll = &w->N->list[list];
  const tarn_plan_stage *st = &w->N->stage[list - 1];
  bool early = w->end != TARN_PLAN_MAP;
  order o;
  if (w->copy[ll->level[st->order].var]) return false; /* already under way */
  if (!order_of(w->N, list, w->len, early, &o)) return false;
  for (uint32_t k = 0; k < o.n; k++) {
    /* Or LLVM loads the next ones early, and spills. */
    if (o.grouped && k && o.copy[k].at != o.copy[k - 1].at)
      plan_add(w, (tarn_plan_stmt){.op = TARN_PLAN_APART});
    for (uint32_t i = st->order_end, no = o.copy[k].no; i-- > st->order; no /= (uint32_t)o.count[i])
      w->copy[ll->level[i].var] = 1 + no % o.count[i];
    plan_prefetch_due(w, k + 1, o.n);
    plan_walk_in(w, list, st->order);
    if (!early || !o.last[k]) continue;
    tarn_plan_phase before;
    uint32_t at = plan_open_phase(w, w->end, &before);
    plan_walk_in(w, list, st->order);
    plan_close_phase(w, at, before);
  }
  w->ended = early;
  for (uint32_t i = st->order; i < st->order_end; i++) w->copy[ll->level[i].var] = 0;
  return true;
}

/* ---------------------------------------------------------------- of a tile, before */
bool tarn_touch_overlaps(const tarn_touch *a, uint32_t d, int64_t size, uint32_t e) {
  return !a->irregular && (a->touched >> d & a->touched >> e & 1) &&
         meet(a->coef[d], size, a->coef[e]);
}
int64_t tarn_tile_window(const tarn_stage_work *m, const tarn_tile_work *t) {
  int64_t steps = 1;
  uint32_t ordered = t->ordered & ~(t->vdim < m->n ? 1u << t->vdim : 0); /* whole vectors */
  bool any = false;
  for (uint32_t d = m->nacc; d < m->n; d++) {
    if (!(ordered >> d & 1) || t->size[d] < 2) continue;
    steps *= t->size[d];
    for (uint32_t r = 0; r < m->nread && !any; r++)
      for (uint32_t e = m->nshared; e < m->nacc && !any; e++)
        any = ordered >> e & 1 && t->size[e] > 1 &&
              tarn_touch_overlaps(&m->read[r], d, t->size[d], e);
  }
  return any ? steps : 0;
}
double tarn_tile_shared(const tarn_stage_work *m, const tarn_tile_work *t, const tarn_touch *a,
                        uint32_t d) {
  double size = (double)t->size[d];
  for (uint32_t e = m->nshared; e < m->nacc; e++) {
    if (e == t->vdim || t->size[e] <= 1 || !tarn_touch_overlaps(a, d, t->size[d], e)) continue;
    double step = (double)(a->coef[e] / a->coef[d]), n = (double)t->size[e];
    return ((n - 1) * step + size) / n;
  }
  return size;
}
double tarn_tile_own(const tarn_stage_work *m, const tarn_tile_work *t, const tarn_touch *a) {
  double own = 1;
  for (uint32_t d = 0; d < m->nacc; d++)
    if (a->touched >> d & 1) own *= tarn_tile_vectors(t, d, t->size[d]);
  return own;
}
double tarn_tile_held(const tarn_stage_work *m, const tarn_tile_work *t) {
  double held = INFINITY;
  for (uint32_t r = 0; r < m->nread; r++)
    if (!m->read[r].epi) held = tarn_fmin(held, tarn_tile_own(m, t, &m->read[r]));
  return held;
}
double tarn_tile_weights(const tarn_stage_work *m, const tarn_tile_work *t, int64_t steps) {
  double n = 0;
  for (uint32_t r = 0; r < m->nread; r++)
    if (m->read[r].constant && !m->read[r].epi)
      n += (double)steps * (t->vdim < m->n && m->read[r].touched >> t->vdim & 1
                                ? tarn_tile_vectors(t, t->vdim, t->size[t->vdim])
                                : 1);
  return n;
}
