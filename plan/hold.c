/* Holds: the contents of a memory that the program manages, their size, and how often they are
 * filled.
 *
 * Footprints and traffic are products over coordinates. Partial tiles at the end of a dim and at
 * the border of padding count only the elements they have. */
#include "plan/hold.h"
#include <string.h>

/* ---------------------------------------------------------------- coordinates */
typedef tarn_coordinate coordinate;
struct tarn_reach {
  uint32_t n;
  coordinate at[TARN_MAX_DIMS];
};
typedef struct tarn_reach reach;

static void reach_of_read(const tarn_lang *L, const tarn_read *r, const int64_t *extent,
                          uint32_t ndim, reach *out) {
  const tarn_imap *m = tarn_imap_get(L, r->map);
  for (uint32_t k = 0; k < m->nin; k++) {
    reach one = {0};
    uint32_t used = 0;
    if (!tarn_ix_affine(L, m->e[k]))
      tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT,
                 "schedule: a hold of an operand that is read by a division");
    for (;;) { /* by ascending steps */
      uint32_t next = ndim;
      int64_t step = INT64_MAX;
      for (uint32_t d = 0; d < ndim; d++) {
        int64_t coef = tarn_ix_coef(L, m->e[k], d);
        if (coef < 0) coef = -coef;
        if (coef && !(used >> d & 1) && coef < step) {
          step = coef;
          next = d;
        }
      }
      if (next == ndim) break;
      used |= 1u << next;
      plan_coordinate_add(L, one.at, &one.n, TARN_MAX_DIMS, next, step, extent, m);
    }
    for (uint32_t i = 0; i < one.n; i++) {
      if (out->n == TARN_MAX_DIMS)
        tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT, "schedule: a hold of too many dims");
      one.at[i].of = k;
      out->at[out->n++] = one.at[i];
    }
  }
}
static void reach_of(const tarn_lang *L, const tarn_stage_dims *d, const tarn_hold *h, reach *r) {
  *r = (reach){0};
  if (h->what == TARN_HOLD_OPERAND) {
    reach_of_read(L, &d->stage->read[h->operand], d->dim, d->n, r);
    return;
  }
  for (uint32_t i = 0; i < d->nacc; i++)
    if (d->dim[i] > 1) plan_coordinate_add(L, r->at, &r->n, TARN_MAX_DIMS, i, 1, d->dim, NULL);
}

/* ---------------------------------------------------------------- counting */
/* Distinct values, clipped, where each dim runs from `start` for `span` elements. */
static int64_t gaps(tarn_ctx *cx, const coordinate *c, int64_t first, int64_t lo, int64_t hi,
                    const int64_t *span) {
  int64_t n = tarn_coordinate_length(c, span);
  int64_t count = 0;
  int64_t at[TARN_COORDINATE_TERMS] = {0};
  tarn_mark mark = tarn_arena_mark(cx);
  bool *seen = TARN_ARRAY(cx, bool, n);
  for (bool more = true; more;) {
    int64_t x = 0;
    for (uint32_t i = 0; i < c->n; i++) x += c->by[i] * at[i];
    if (first + x >= lo && first + x < hi && !seen[x]) count++;
    seen[x] = true;
    more = false;
    for (uint32_t i = 0; i < c->n && !more; i++) {
      more = ++at[i] < span[c->dim[i]];
      if (!more) at[i] = 0;
    }
  }
  tarn_release(cx, mark);
  return count;
}
static int64_t count_of(tarn_ctx *cx, const coordinate *c, const int64_t *start,
                        const int64_t *span) {
  int64_t first = c->c;
  int64_t whole = 1;
  bool dense = true;
  for (uint32_t i = 0; i < c->n; i++) {
    first += c->by[i] * start[c->dim[i]];
    dense &= c->by[i] <= whole || span[c->dim[i]] == 1;
    whole += c->by[i] * (span[c->dim[i]] - 1);
  }
  int64_t lo = c->clipped ? c->lo : first;
  int64_t hi = c->clipped ? c->hi : first + whole;
  if (!dense) return gaps(cx, c, first, lo, hi, span);
  return tarn_max(0, tarn_min(hi, first + whole) - tarn_max(lo, first));
}
/* The sum over all tiles of the coordinate's dims, which have these sizes. */
static int64_t count_tiles(tarn_ctx *cx, const coordinate *c, const int64_t *dim,
                           const int64_t *tile) {
  int64_t start[TARN_MAX_DIMS] = {0};
  int64_t span[TARN_MAX_DIMS];
  int64_t sum = 0;
  if (c->n == 1) return count_of(cx, c, start, dim); /* tiles of one dim do not overlap */
  for (bool more = true; more;) {
    for (uint32_t i = 0; i < c->n; i++) {
      uint32_t d = c->dim[i];
      span[d] = tarn_min(tile[d], dim[d] - start[d]);
    }
    sum += count_of(cx, c, start, span);
    more = false;
    for (uint32_t i = 0; i < c->n && !more; i++) {
      uint32_t d = c->dim[i];
      start[d] += tile[d];
      more = start[d] < dim[d];
      if (!more) start[d] = 0;
    }
  }
  return sum;
}

uint32_t tarn_reach_coordinates(const tarn_reach *r, const tarn_coordinate **out) {
  *out = r->at;
  return r->n;
}
tarn_reach *tarn_reach_of(const tarn_lang *L, const tarn_stage_dims *d, const tarn_hold *h) {
  tarn_reach *r = TARN_NEW(tarn_lang_ctx(L), tarn_reach);
  reach_of(L, d, h, r);
  return r;
}
/* Elements of one tile of these sizes, at most, and those of one walk over all tiles. */
static void count_reach(tarn_ctx *cx, const reach *r, const int64_t *dim, const int64_t *tile,
                        bool slides, int64_t *footprint, int64_t *elements) {
  const int64_t zero[TARN_MAX_DIMS] = {0};
  *footprint = *elements = 1;
  for (uint32_t i = 0; i < r->n; i++) {
    coordinate whole = r->at[i];
    whole.clipped = false;
    int64_t most = count_of(cx, &whole, zero, tile);
    if (r->at[i].clipped) most = tarn_min(most, r->at[i].hi - r->at[i].lo);
    *footprint *= most;
    *elements *=
        slides ? count_of(cx, &r->at[i], zero, dim) : count_tiles(cx, &r->at[i], dim, tile);
  }
}

/* ---------------------------------------------------------------- holds */
tarn_stage_dims tarn_stage_dims_of(const tarn_nest *n, uint32_t stage) {
  const tarn_stage *s = &n->stage[stage];
  tarn_stage_dims d = {.stage = s};
  d.n = tarn_nest_dims(n, s, d.dim);
  d.nacc = d.n - s->nred;
  return d;
}
/* What one trip of level `at` leaves of each dim. */
static void tile_at(const tarn_stage_dims *d, const tarn_stage_sched *s, int32_t at,
                    int64_t *tile) {
  memcpy(tile, d->dim, sizeof d->dim);
  for (int32_t i = 0; i <= at; i++)
    tile[s->level[i].dim] = tarn_min(tile[s->level[i].dim], s->level[i].step);
}
/* The innermost level, up to the hold's, that changes what is held; -1: none. */
static int32_t changes_at(const tarn_stage_dims *d, const tarn_stage_sched *s, const tarn_hold *h,
                          uint32_t moved) {
  int64_t left[TARN_MAX_DIMS];
  int32_t last = -1;
  memcpy(left, d->dim, sizeof left);
  for (int32_t i = 0; i <= h->at; i++) {
    const tarn_level *l = &s->level[i];
    bool more = left[l->dim] > l->step;
    if (more && (h->fresh || moved >> l->dim & 1)) last = i;
    left[l->dim] = tarn_min(left[l->dim], l->step);
  }
  return last;
}
tarn_traffic tarn_hold_traffic(const tarn_lang *L, const tarn_stage_dims *d,
                               const tarn_stage_sched *s, const tarn_hold *h) {
  tarn_traffic t = {.fills = 1};
  int64_t tile[TARN_MAX_DIMS];
  int64_t outside[TARN_MAX_DIMS];
  int64_t repeats = 1;
  reach r;
  reach_of(L, d, h, &r);
  uint32_t moved = plan_coordinate_dims(r.at, r.n);
  tile_at(d, s, h->at, tile);
  tile_at(d, s, changes_at(d, s, h, moved), outside);
  for (uint32_t i = 0; i < d->n; i++) {
    if (moved >> i & 1) t.fills *= tarn_ceildiv(d->dim[i], tile[i]);
    else repeats *= tarn_ceildiv(d->dim[i], outside[i]);
  }
  t.fills *= repeats;
  count_reach(tarn_lang_ctx(L), &r, d->dim, tile, h->slides, &t.footprint, &t.first);
  t.elements = t.first * repeats;
  return t;
}

/* ---------------------------------------------------------------- the check */
static tarn_dtype type_of(const tarn_lang *L, const tarn_ksig *k, uint32_t stage,
                          const tarn_hold *h) {
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  const tarn_stage *s = &n->stage[stage];
  const tarn_read *r = h->what == TARN_HOLD_OPERAND ? &s->read[h->operand] : NULL;
  uint32_t out = 0;
  if (r && !r->stage) return k->in_type[r->src];
  if (r) return type_of(L, k, r->src, &(tarn_hold){.what = TARN_HOLD_RESULT});
  uint32_t red = tarn_fn_get(L, s->fn)->red;
  if (red != TARN_NONE && (h->what == TARN_HOLD_ACCUMULATORS || !s->out))
    return tarn_reducer_get(L, red)->dtype;
  for (uint32_t i = 0; i < stage; i++) out += n->stage[i].out;
  return k->out_type[s->out ? out : 0];
}
tarn_dtype tarn_read_type(const tarn_lang *L, const tarn_ksig *k, uint32_t stage, uint32_t read) {
  tarn_hold h = {.what = TARN_HOLD_OPERAND, .operand = (uint8_t)read};
  return type_of(L, k, stage, &h);
}
static const tarn_hw_memory *memory_of(const tarn_lang *L, const tarn_hw *hw, const tarn_hold *h) {
  const tarn_hw_memory *m = tarn_hw_memory_find(hw, h->memory);
  if (!m)
    tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT, "schedule: %s has no memory %s", hw->name,
               h->memory);
  bool shared =
      tarn_hw_traits_of(hw).blocks && m == tarn_hw_mem(hw, TARN_HW_L1); /* beside what it caches */
  if (!m->managed && !shared)
    tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT,
               "schedule: %s of %s is no memory that a program manages", h->memory, hw->name);
  return m;
}
/* An instruction whose operands lie in memories that hold them; what computes in registers is the
 * plan's choice. */
static void check_unit(tarn_ctx *cx, const tarn_hw *hw, const tarn_unit *u) {
  const tarn_hw_intrinsic *is = NULL;
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (!strcmp(hw->intrin[i].name, u->name)) is = &hw->intrin[i];
  if (!is) tarn_raise(cx, TARN_BAD_INPUT, "schedule: %s has no unit %s", hw->name, u->name);
  if (u->pairs && !tarn_hw_traits_of(hw).blocks)
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: %s of %s has no pairs", u->name, hw->name);
  for (uint32_t i = 0; i < is->nop; i++) {
    const char *name = is->op[i].memory;
    if (is->op[i].fragment != TARN_NONE) continue;
    const tarn_hw_memory *m = name ? tarn_hw_memory_find(hw, name) : NULL;
    if (!m || !m->managed)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: %s of %s computes in registers, which a plan chooses", u->name,
                 hw->name);
  }
}
void tarn_holds_check(const tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, uint32_t stage,
                      const tarn_stage_sched *s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_stage_dims d = tarn_stage_dims_of(tarn_nest_get(L, k->nest), stage);
  double *used = TARN_ARRAY(cx, double, hw->nmem);
  if (s->unit) check_unit(cx, hw, s->unit);
  for (uint32_t i = 0; i < s->nhold; i++) {
    const tarn_hold *h = &s->hold[i];
    const tarn_hw_memory *m = memory_of(L, hw, h);
    double *bytes = &used[m - hw->mem];
    double size = (double)tarn_dtype_size(type_of(L, k, stage, h));
    *bytes += (double)tarn_hold_traffic(L, &d, s, h).footprint * h->slots * size;
    if (m->capacity && *bytes > (double)m->capacity)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "schedule: stage %u: what is held in %s takes %.0f bytes, it has %lld", stage,
                 m->name, *bytes, (long long)m->capacity);
  }
}

uint32_t tarn_schedule_machine(const tarn_machines *m, const tarn_schedule *s) {
  for (uint32_t i = 0; i < s->nstage; i++)
    if (s->stage[i].nhold || s->stage[i].unit) return m->n - 1;
  return 0;
}
