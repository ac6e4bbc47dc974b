/* Prepares a nest and its schedule for the walk: accesses over levels, composed functions. */
#include "plan/walk.h"
#include <string.h>

/* ---------------------------------------------------------------- levels */
bool tarn_plan_splits(const tarn_lang *L, const tarn_reducer *r, uint32_t nred, bool contract) {
  bool rounds = false, index = false;
  if (!r || r->merge[0] == TARN_NONE || !r->commutative) return false;
  if (r->kind != TARN_RED_CUSTOM)
    return contract || r->kind == TARN_RED_MAX || r->kind == TARN_RED_MIN ||
           !tarn_dtype_is_float(r->dtype);
  for (uint32_t i = 0; i < r->ns; i++) {
    rounds |= tarn_fx_rounds(L, r->step[i]) || tarn_fx_rounds(L, r->merge[i]);
    index |= tarn_fx_uses(L, r->step[i], r->ns + 1u);
  }
  return (contract || !rounds) && (nred == 1 || !index);
}

static uint64_t serial_vars(const tarn_plan_list *list) {
  uint64_t m = 0;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->level[i].kind == TARN_SERIAL || list->level[i].kind == TARN_PARALLEL)
      m |= 1ull << list->level[i].var;
  return m;
}

/* ---------------------------------------------------------------- stages */
static void stage_dims(tarn_plan_nest *N, tarn_plan_stage *st) {
  st->n = tarn_nest_dims(N->n, st->s, st->dim);
  st->nacc = st->n - st->s->nred;
  memcpy(st->over, st->dim, sizeof st->over);
}

static void index_of_dims(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *own) {
  const tarn_plan_list *lists[2] = {&N->list[0], own};
  uint32_t end = st->unit ? st->unit_at : own->n;
  st->space.cx = N->cx;
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < (k ? end : lists[k]->n); i++) {
      const tarn_plan_level *l = &lists[k]->level[i];
      int64_t last = l->open ? l->extent - l->tier[l->ntier - 1] : l->trips - 1;
      st->space.hi[l->var] = tarn_max(last, 0);
    }
  for (uint32_t d = 0; d < st->n; d++) st->index[d] = tarn_plan_lin_const(N->cx, 0);
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < (k ? end : lists[k]->n); i++) {
      const tarn_plan_level *l = &lists[k]->level[i];
      const tarn_plan_lin **x = &st->index[l->dim];
      *x = tarn_plan_lin_add(&st->space, *x, 1,
                             tarn_plan_lin_var(&st->space, tarn_plan_level_by(l), l->var));
    }
  for (uint32_t i = end; i < own->n; i++) { /* of the result's rows and columns */
    uint32_t d = own->level[i].dim;
    bool rows = d < st->nacc && i == st->unit_at + st->unit_rows;
    if (d >= st->nacc) continue;
    st->index[d] = tarn_plan_lin_add(&st->space, st->index[d], 1,
                                     tarn_plan_fragment(N, st, 2, rows ? TARN_HW_M : TARN_HW_N));
  }
}

/* Lanes of shared levels: every instance of a local buffer holds so many values side by side. */
static const tarn_plan_level *shared_lanes(const tarn_plan_nest *N) {
  for (uint32_t i = 0; i < N->list[0].n; i++)
    if (N->list[0].level[i].kind == TARN_VECTOR) return &N->list[0].level[i];
  return NULL;
}

/* The buffer of a stage that is no output: rows of its last own dim, a team's padded or skewed. */
static void order_local(const tarn_plan_nest *N, tarn_plan_stage *st, const tarn_stage_sched *s) {
  for (uint32_t i = 0; i < s->nhold; i++) {
    const tarn_hold *h = &s->hold[i];
    if (st->tiled || !N->team) continue;
    if (h->what != TARN_HOLD_RESULT || st->s->out || !st->s->nown || (h->pad && h->skew))
      tarn_raise(N->cx, TARN_BAD_INPUT,
                 "schedule: in a block of several stages results between them alone are held, "
                 "padded or skewed");
    st->pad = h->pad, st->skew = h->skew;
  }
}
/* Where a stage that is no output keeps the element with these own indices. */
static const tarn_plan_lin *local_offset(const tarn_plan_nest *N, const tarn_plan_stage *of,
                                         const tarn_plan_space *s,
                                         const tarn_plan_lin *const *own) {
  const tarn_plan_level *lanes = shared_lanes(N);
  uint32_t n = of->s->nown;
  int64_t row = n ? tarn_max(1, of->s->own[n - 1]) : 1;
  tarn_layout l = tarn_layout_row_major(n, of->s->own);
  for (uint32_t d = 0; d + 1 < n; d++) l.stride[d] = l.stride[d] / row * (row + of->pad);
  if (of->skew) l.stride[n - 1] = 0;
  const tarn_plan_lin *at = tarn_plan_lin_layout(s, &l, own);
  if (of->skew) {
    const tarn_plan_lin *y = tarn_plan_lin_const(s->cx, 0);
    for (uint32_t d = 0; d + 1 < n; d++) y = tarn_plan_lin_add(s, y, l.stride[d] / row, own[d]);
    y = tarn_plan_lin_add(s, own[n - 1], 1, tarn_plan_lin_div(s, y, of->skew));
    at = tarn_plan_lin_add(s, at, 1, tarn_plan_lin_mod(s, y, row));
  }
  if (!lanes) return at;
  return tarn_plan_lin_add(s, tarn_plan_lin_var(s, 1, lanes->var), lanes->trips, at);
}
static int64_t local_elems(const tarn_plan_nest *N, const tarn_plan_stage *of) {
  int64_t n = shared_lanes(N) ? shared_lanes(N)->trips : 1;
  for (uint32_t i = 0; i < of->s->nown; i++)
    n *= of->s->own[i] + (i + 1 == of->s->nown ? of->pad : 0);
  return n;
}

/* Which row a read is in adds to its offset. */
static void prepare_row(const tarn_plan_stage *st, const tarn_row *row, tarn_plan_access *a) {
  if (!row->by) return;
  const tarn_plan_lin *at =
      tarn_plan_lin_row(&st->space, row->by - 1, st->look[row->by - 1].off, row->extent);
  a->off = tarn_plan_lin_add(&st->space, a->off, row->pitch, at);
}

static void prepare_read(tarn_plan_nest *N, tarn_plan_stage *st, uint32_t i,
                         const tarn_plan_operand *in, const tarn_plan_operand *out) {
  const tarn_read *r = &st->s->read[i];
  const tarn_imap *m = tarn_imap_get(N->L, r->map);
  tarn_plan_access *a = i < st->nread ? &st->read[i] : &st->look[i - st->nread];
  const tarn_plan_lin *at[TARN_MAX_DIMS * 2], *index[TARN_MAX_DIMS];
  uint32_t n = 0;
  memcpy(index, st->index, sizeof index);
  if (st->unit && i < st->f->nops) tarn_plan_fragment_index(N, st, i == st->unit_read[1], index);
  const tarn_plan_stage *from = r->stage ? &N->stage[r->src] : NULL;
  if (from && from->s->out)
    for (; n < N->n->depth; n++) at[n] = index[n];
  for (uint32_t k = 0; k < m->nin; k++)
    at[n++] = tarn_plan_lin_ix(&st->space, N->L, m->e[k], index);
  if (!from) {
    a->off = tarn_plan_lin_layout(&st->space, &in[r->src].layout, at), a->dtype = in[r->src].dtype;
    a->few = in[r->src].few, a->nfew = in[r->src].nfew;
    a->elems = tarn_layout_elems(&in[r->src].layout);
  } else if (from->s->out)
    a->off = tarn_plan_lin_layout(&st->space, &out[from->out_no].layout, at),
    a->dtype = from->out_type;
  else a->off = local_offset(N, from, &st->space, at), a->dtype = from->out_type;
  prepare_row(st, &r->row, a);
  a->fill = m->fill, a->nguard = m->nguard;
  for (uint32_t g = 0; g < m->nguard; g++)
    a->guard[g] = (tarn_plan_guard){tarn_plan_lin_ix(&st->space, N->L, m->guard[g].e, index),
                                    m->guard[g].lo, m->guard[g].hi};
}

static void type_or_raise(tarn_plan_nest *N, uint32_t f, const tarn_dtype *holes, uint32_t n,
                          tarn_dtype *out) {
  if (!tarn_fx_type(N->L, f, holes, n, out))
    tarn_raise(N->cx, TARN_INTERNAL, "plan: %s", tarn_message(N->cx));
}

/* step with the body in the place of the element: holes state…, index, operands… */
static void compose_steps(tarn_plan_nest *N, tarn_plan_stage *st) {
  tarn_lang *L = N->L;
  uint32_t ns = st->red->ns, shift[TARN_MAX_OPERANDS], with[TARN_MAX_STATE + 2];
  for (uint32_t i = 0; i < st->f->nops; i++) shift[i] = tarn_fx_hole(L, ns + 1 + i);
  for (uint32_t i = 0; i < ns; i++) with[i] = TARN_NONE;
  with[ns] = tarn_fx_subst(L, st->f->body, shift, st->f->nops);
  with[ns + 1] = tarn_fx_hole(L, ns);
  for (uint32_t i = 0; i < ns; i++) {
    st->step[i] = tarn_fx_subst(L, st->red->step[i], with, ns + 2);
    if (tarn_fx_uses(L, st->red->step[i], ns + 1)) st->step_index = true;
    type_or_raise(N, st->red->init[i], NULL, 0, &st->state[i]);
  }
  tarn_layout flat = tarn_layout_row_major(st->s->nred, st->s->red);
  st->flat = tarn_plan_lin_layout(&st->space, &flat, st->index + st->nacc);
}

static void prepare_types(tarn_plan_nest *N, tarn_plan_stage *st) {
  tarn_dtype t[TARN_MAX_OPERANDS + 1], *epi = t + st->f->nops;
  for (uint32_t i = 0; i < st->f->nops; i++) t[i] = st->read[i].dtype;
  type_or_raise(N, st->f->body, t, st->f->nops, &st->body_type);
  st->out_type = st->body_type;
  if (st->red) {
    compose_steps(N, st);
    type_or_raise(N, st->red->result, st->state, st->red->ns, &st->out_type);
  }
  if (st->f->epi == TARN_NONE) return;
  epi[0] = st->out_type;
  for (uint32_t i = 0; i < st->f->nepi; i++) epi[1 + i] = st->read[st->f->nops + i].dtype;
  type_or_raise(N, st->f->epi, epi, 1u + st->f->nepi, &st->out_type);
}

/* Accumulators: how many, of how many lanes, and whether loops walk them. */
#define MOST_SUMS (INT64_C(1) << 24) /* of a tile */
static void prepare_tile(const tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list) {
  tarn_plan_tile t = tarn_plan_tile_of(list);
  if (t.slots > MOST_SUMS)
    tarn_raise(N->cx, TARN_BAD_INPUT, "schedule: a tile of %lld elements, more than %lld",
               (long long)t.slots, (long long)MOST_SUMS);
  st->slots = t.slots * (st->unit ? st->nreg[2] : 1);
  st->red_lanes = t.red_lanes;
  st->in_memory = t.in_memory;
  st->max_lanes = t.lanes * (shared_lanes(N) ? (uint32_t)shared_lanes(N)->trips : 1);
  bool own = st->red && st->red_lanes > 1 && !st->in_memory &&
             tarn_plan_keeps_chains((double)(st->slots * t.chains * st->red->ns));
  st->chains = own ? t.chains : 1;
}

/* Is there one operator in f that takes this hole? `looks`: so many nodes are looked at, shared
 * ones again. */
static bool only_taker(const tarn_lang *L, uint32_t f, uint32_t hole, uint32_t *looks,
                       uint32_t *taker) {
  const tarn_fx *x = tarn_fx_get(L, f);
  if (x->op == TARN_FX_HOLE || x->op == TARN_FX_CONST) return true;
  for (uint32_t i = 0; i < tarn_fx_arity(x->op); i++) {
    const tarn_fx *kid = tarn_fx_get(L, x->kid[i]);
    if (!(*looks)--) return false;
    if (kid->op == TARN_FX_HOLE && kid->hole == hole && *taker != TARN_NONE && *taker != f)
      return false;
    if (kid->op == TARN_FX_HOLE && kid->hole == hole) *taker = f;
    else if (!only_taker(L, x->kid[i], hole, looks, taker)) return false;
  }
  return true;
}
/* Do copies of the tile read the same element? Where each reads its own it would only be waited for
 * earlier. */
static bool shared_by_copies(const tarn_plan_list *list, const tarn_plan_access *a) {
  for (uint32_t i = 0; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    if (l->trips > 1 && l->kind == TARN_UNROLL && !l->red &&
        !(tarn_plan_lin_deps(a->off) >> l->var & 1))
      return true;
  }
  return false;
}
/* sum + b, b an operand: the sum begins with b. One addition less, which counts where sums are
 * short. */
static void settle_start(const tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list) {
  const tarn_lang *L = N->L;
  uint32_t looks = 256, sum = TARN_NONE, other = TARN_NONE, epi = st->f->epi;
  st->start = TARN_NONE;
  if (!st->red || st->red->kind != TARN_RED_SUM || epi == TARN_NONE || !N->contract) return;
  if (st->nfactor || st->red_lanes > 1 || st->parts > 1 || st->result.nguard ||
      !only_taker(L, epi, 0, &looks, &sum) || sum == TARN_NONE)
    return;
  const tarn_fx *x = tarn_fx_get(L, sum);
  if (x->op != TARN_FX_ADD || x->kid[0] == x->kid[1]) return;
  const tarn_fx *b = tarn_fx_get(L, x->kid[0]);
  if (b->op == TARN_FX_HOLE && b->hole == 0) b = tarn_fx_get(L, x->kid[1]);
  if (b->op != TARN_FX_HOLE || !only_taker(L, epi, b->hole, &looks, &other)) return;
  const tarn_plan_access *a = &st->read[st->f->nops + b->hole - 1];
  bool plain = a->dtype == st->state[0] && (a->dtype == TARN_F32 || a->dtype == TARN_F64);
  if (plain && shared_by_copies(list, a)) st->start = b->hole - 1u;
}

static void prepare_levels(tarn_plan_nest *N, uint32_t i, const tarn_schedule *s,
                           const tarn_plan_operand *in) {
  tarn_plan_stage *st = &N->stage[i];
  tarn_plan_rules r = {.dim = st->over, .nacc = st->nacc, .reduces = st->red, .team = st->tiled};
  r.splits = tarn_plan_splits(N->L, st->red, st->s->nred, N->contract);
  r.lanes_outside = shared_lanes(N) != NULL;
  st->acc = tarn_plan_acc(&s->stage[i], st->red);
  bool by_warps = N->team && s->stage[i].unit;
  if (st->tiled) tarn_plan_fetch_levels(N, st, &s->stage[i]);
  if (by_warps) tarn_plan_fragment_own(N, st, &s->stage[i]);
  tarn_plan_list_own(N->cx, &r, s, i, &N->list[1 + i]);
  if (st->tiled) tarn_plan_fetch_vars(N, st, &N->list[1 + i], &s->stage[i], in);
  if (!by_warps) return;
  tarn_plan_fragment_levels(N, st, &N->list[1 + i], &s->stage[i], in);
  tarn_plan_fragment_vars(N, st, &N->list[1 + i]);
}

/* Of a window's sums: the copies of each tap go along the lanes. Where other copies use what is
 * loaded again (a tile of several channels), they need the registers more than the loads the time.
 */
static void settle_along(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list) {
  const tarn_hw *hw = N->hw;
  uint64_t taps = 0, copies = 0;
  bool whole = hw->nmem && hw->vector_bits == 8 * tarn_hw_mem(hw, TARN_HW_L1)->line &&
               tarn_hw_mixes_lanes(hw);
  if ((!tarn_plan_lanes_are_rows(list) && !(hw->moves && whole)) || !st->red || st->red_lanes > 1 ||
      st->nfactor)
    return;
  for (uint32_t i = 0; i < list->n; i++) {
    const tarn_plan_level *l = &list->level[i];
    if (l->kind != TARN_UNROLL || l->trips < 2) continue;
    if (l->red) taps |= 1ull << l->var;
    else copies |= 1ull << l->var;
  }
  for (uint32_t r = 0; r < st->f->nops; r++) {
    tarn_plan_access *a = &st->read[r];
    if (a->dtype == TARN_F32 && (tarn_plan_lin_deps(a->off) & copies) == copies)
      a->along = taps & tarn_plan_lin_deps(a->off);
  }
}

/* A reduce loop outside of the accumulators leaves partial sums in the result. */
static void check_outer_reduction(const tarn_plan_nest *N, uint32_t stage,
                                  const tarn_plan_list *list) {
  const tarn_plan_stage *st = &N->stage[stage];
  for (uint32_t i = 0; i < st->acc && st->red; i++)
    if (list->level[i].red && list->level[i].trips > 1 &&
        (st->red->ns != 1 || st->state[0] != st->out_type))
      tarn_raise(
          N->cx, TARN_BAD_INPUT,
          "schedule: stage %u: a reduce loop outside of accumulators that the result cannot hold",
          stage);
}

static void prepare_stage(tarn_plan_nest *N, uint32_t i, const tarn_schedule *s,
                          const tarn_plan_operand *in, const tarn_plan_operand *out,
                          uint32_t *out_no) {
  tarn_plan_stage *st = &N->stage[i];
  const tarn_plan_list *list = &N->list[1 + i];
  st->s = &N->n->stage[i];
  st->f = tarn_fn_get(N->L, st->s->fn);
  if (st->f->ntuple) tarn_raise(N->cx, TARN_INTERNAL, "plan: a stage in tuple form");
  st->red = st->f->red == TARN_NONE ? NULL : tarn_reducer_get(N->L, st->f->red);
  stage_dims(N, st);
  st->tiled = tarn_hw_traits_of(N->hw).blocks && N->split && s->stage[i].nhold;
  order_local(N, st, &s->stage[i]);
  prepare_levels(N, i, s, in);
  index_of_dims(N, st, list);
  st->nread = (uint32_t)st->f->nops + st->f->nepi;
  st->read = TARN_ARRAY(N->cx, tarn_plan_access, st->nread);
  st->look = TARN_ARRAY(N->cx, tarn_plan_access, st->s->nlook);
  for (uint32_t r = 0; r < st->s->nlook; r++) prepare_read(N, st, st->nread + r, in, out);
  for (uint32_t r = 0; r < st->nread; r++) prepare_read(N, st, r, in, out);
  prepare_types(N, st);
  st->result.dtype = st->out_type, st->result.store = true;
  if (st->s->out) {
    st->out_no = (*out_no)++;
    st->result.off = tarn_plan_lin_layout(&st->space, &out[st->out_no].layout, st->index);
    if (out[st->out_no].dtype != st->out_type)
      tarn_raise(N->cx, TARN_INTERNAL, "plan: the kernel computes %s for a buffer of %s",
                 tarn_dtype_name(st->out_type), tarn_dtype_name(out[st->out_no].dtype));
  } else {
    st->result.off = local_offset(N, st, &st->space, st->index + N->n->depth);
    st->local_bytes = local_elems(N, st) * (int64_t)tarn_dtype_size(st->out_type);
  }
  if (st->tiled) tarn_plan_fetch_settle(N, st, list, &s->stage[i], in);
  else if (st->unit) tarn_plan_fragment_settle(N, st, s->stage[i].unit, in);
  check_outer_reduction(N, i, list);
  if (!st->unit) tarn_plan_dot_settle(N, st, &N->list[1 + i]);
  prepare_tile(N, st, list);
  tarn_plan_transpose_settle(st, list);
  bool plain = !st->tiled && !st->unit;
  if (plain) tarn_plan_bilinear_settle(N, st, list);
  if (st->nfactor || !plain) st->order = TARN_MAX_LEVELS;
  else tarn_plan_order_settle(N, st, list);
  settle_start(N, st, list);
  tarn_plan_lanes_settle(N, st, list);
  settle_along(N, st, list);
  st->at_most_0 = tarn_plan_exp_at_most_0(N, st);
}

/* What the walk over the levels asks of each access: computed when all levels have their kinds. */
static void settle_access(tarn_plan_access *a, uint64_t serial) {
  uint64_t g = 0;
  for (uint32_t i = 0; i < a->nguard; i++) g |= tarn_plan_lin_deps(a->guard[i].e);
  a->deps = g | tarn_plan_lin_deps(a->off);
  g &= serial;
  a->inner = a->nguard == 0 ? 0 : g ? serial & ~((2ull << (63 - __builtin_clzll(g))) - 1) : serial;
}
static void settle_accesses(tarn_plan_nest *N, tarn_plan_stage *st, uint64_t serial) {
  st->serial = serial;
  for (uint32_t r = 0; r < st->nread; r++) settle_access(&st->read[r], serial);
  for (uint32_t r = 0; r < st->s->nlook; r++) settle_access(&st->look[r], serial);
  settle_access(&st->result, serial);
  st->result.inner = 0; /* stores have no fill to choose */
  st->nan_shows = N->contract && tarn_plan_nan_shows(N, st);
}

/* Open dims are served where a loop runs on one thread, and computes by no unit. */
static void check_open(tarn_ctx *cx, const tarn_hw *hw, const tarn_schedule *s) {
  bool open = s->open;
  bool unit = false;
  for (uint32_t i = 0; i < s->nstage; i++) {
    open |= s->stage[i].open;
    unit |= s->stage[i].unit != NULL;
  }
  if (open && (unit || tarn_hw_traits_of(hw).blocks))
    tarn_raise(cx, TARN_BAD_INPUT, "schedule: open dims are not served by %s",
               unit ? "units" : hw->name);
}
bool tarn_plan_resumes(const tarn_plan_nest *N, uint32_t stage) {
  const tarn_plan_list *list = &N->list[1 + stage];
  for (uint32_t i = 0; i < N->stage[stage].acc && i < list->n; i++)
    if (list->level[i].red && list->level[i].trips > 1) return true;
  return false;
}
/* Threads may both compute what two trips of an open dim share, but not both add to it. */
static void settle_shared_threads(tarn_plan_nest *N) {
  bool adds = false;
  for (uint32_t i = 0; i < N->nstage; i++) adds |= N->n->stage[i].out && tarn_plan_resumes(N, i);
  for (uint32_t i = 0; adds && i < N->list[0].n; i++) {
    tarn_plan_level *l = &N->list[0].level[i];
    if (l->open && l->step > 1 && l->kind == TARN_PARALLEL) l->kind = TARN_SERIAL;
  }
}
tarn_plan_nest *tarn_plan_prepare(tarn_lang *L, const tarn_hw *hw, bool contract,
                                  const tarn_nest *n, const tarn_schedule *s,
                                  const tarn_plan_operand *in, const tarn_plan_operand *out) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_plan_nest *N = TARN_NEW(cx, tarn_plan_nest);
  *N = (tarn_plan_nest){.cx = cx, .L = L, .hw = hw, .contract = contract, .n = n};
  N->nshared = s->nshared;
  N->nstage = n->nstage;
  if (s->nstage != n->nstage)
    tarn_raise(cx, TARN_INTERNAL, "plan: the schedule is of another nest");
  check_open(cx, hw, s);
  N->list = TARN_ARRAY(cx, tarn_plan_list, 1 + n->nstage);
  N->stage = TARN_ARRAY(cx, tarn_plan_stage, n->nstage);
  tarn_plan_list_shared(cx, s, n->shared, &N->list[0]);
  uint32_t out_no = 0;
  N->split = s->nshared == 0;
  for (uint32_t i = 0; i < n->nstage; i++)
    N->split = N->split && (n->stage[i].out || n->nstage == 1);
  bool blocks = tarn_hw_traits_of(hw).blocks;
  N->team = blocks && !N->split;
  for (uint32_t i = 0; i < n->nstage; i++) prepare_stage(N, i, s, in, out, &out_no);
  settle_shared_threads(N);
  for (uint32_t i = 0; i <= n->nstage; i++)
    tarn_plan_list_parallel(&N->list[i], i == 0 || N->split || N->team);
  if (blocks) tarn_plan_share(N);
  for (uint32_t i = 0; i < n->nstage && N->team; i++)
    if (N->stage[i].unit) tarn_plan_fragment_matrices(N, &N->stage[i]);
  if (blocks) tarn_plan_wide_settle(N, in);
  tarn_plan_prefetch_settle(N, s->ahead, in, out);
  for (uint32_t i = 0; i < n->nstage; i++)
    settle_accesses(N, &N->stage[i], serial_vars(&N->list[0]) | serial_vars(&N->list[1 + i]));
  return N;
}
tarn_plan_nest *tarn_plan_make(tarn_lang *L, const tarn_hw *hw, bool contract, const tarn_nest *n,
                               const tarn_schedule *s, const tarn_plan_operand *in,
                               const tarn_plan_operand *out) {
  tarn_plan_nest *N = tarn_plan_prepare(L, hw, contract, n, s, in, out);
  N->code = TARN_ARRAY(N->cx, const tarn_plan_code *, tarn_plan_regions(N));
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++) N->code[r] = tarn_plan_walk_of(N, r);
  tarn_plan_check(N);
  return N;
}

uint32_t tarn_plan_regions(const tarn_plan_nest *N) { return N->split ? N->nstage : 1; }

static int64_t items_of(const tarn_plan_list *list) {
  int64_t items = 1;
  for (uint32_t i = 0; i < list->parallel; i++) items *= list->level[i].trips;
  return items;
}
const tarn_plan_list *tarn_plan_parallel(const tarn_plan_nest *N, uint32_t region) {
  return &N->list[N->split ? 1 + region : 0];
}
int64_t tarn_plan_items(const tarn_plan_nest *N, uint32_t region) {
  return items_of(tarn_plan_parallel(N, region));
}
int64_t tarn_plan_team_items(const tarn_plan_nest *N, uint32_t stage) {
  return items_of(&N->list[1 + stage]);
}

bool tarn_plan_streams_out(const tarn_plan_nest *N, uint32_t region, bool *out) {
  bool any = false;
  for (uint32_t i = 0; i < N->nstage; i++) {
    const tarn_plan_stage *st = &N->stage[i];
    if (!st->s->out) continue;
    out[st->out_no] = st->result.streaming && (!N->split || i == region);
    any |= out[st->out_no];
  }
  return any;
}
uint32_t tarn_plan_levels(const tarn_plan_nest *N, uint32_t list, const tarn_plan_level **out) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < N->list[k ? list : 0].n; i++)
      out[n++] = &N->list[k ? list : 0].level[i];
  return n;
}
