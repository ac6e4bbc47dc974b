/* A tensor core computes the innermost part of a stage: an instruction of a whole warp whose
 * operands lie in registers of all its lanes, as the fragments of the description say.
 *
 * The last three levels of the stage are the instruction's rows, columns and sum. No loop walks
 * them: an own dim's index within them is what the result's fragment says of (lane, register), an
 * operand's what its own fragment says of (lane, register, place). So accumulators, results and
 * operands are accesses over such variables, as all others are. */
#include "kernel/maps.h"
#include "plan/hold.h"
#include "plan/internal.h"
#include <string.h>

TARN_NORETURN static void refuse(const tarn_plan_nest *N, const tarn_unit *u, const char *what) {
  tarn_raise(N->cx, TARN_BAD_INPUT, "schedule: unit %s: %s", u->name, what);
}
static uint32_t dims_of(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t read) {
  return imap_dims(N->L, tarn_imap_get(N->L, st->s->read[read].map));
}

/* ---------------------------------------------------------------- what it computes */
bool tarn_plan_unit_serves(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic, uint32_t body,
                           uint32_t red, const tarn_dtype *type, tarn_hw_form *f) {
  const tarn_hw_intrinsic *n = &hw->intrin[intrinsic];
  for (uint32_t i = 0; i < n->nop; i++)
    if (n->op[i].fragment == TARN_NONE) return false;
  if (n->nop != 3 || n->op[0].dtype != type[0] || n->op[1].dtype != type[1]) return false;
  return tarn_hw_sums_products(L, hw, intrinsic, f) && f->red == red && f->operand[0] == 0 &&
         f->operand[1] == 1 && tarn_hw_same_product(L, f->body, body, false);
}
/* What the product takes in place of its operand: $0 rounded; TARN_NONE: the operand, of a wider
 * type or not. */
static uint32_t rounding_of(tarn_lang *L, uint32_t body, uint32_t operand) {
  const tarn_fx *x = tarn_fx_get(L, body);
  for (uint32_t k = 0; k < 2; k++) {
    const tarn_fx *y = tarn_fx_get(L, x->kid[k]);
    if (y->op == TARN_FX_TF32 && tarn_fx_get(L, y->kid[0])->hole == operand)
      return tarn_fx_op(L, TARN_FX_TF32, tarn_fx_hole(L, 0), 0, 0);
  }
  return TARN_NONE;
}
static void match(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_unit *u,
                  const tarn_plan_operand *in) {
  uint32_t i = 0;
  if (u->rows == TARN_NONE || u->columns == TARN_NONE || u->sum == TARN_NONE || st->f->nops != 2)
    refuse(N, u, "rows, columns and sum of a product are expected");
  st->unit_read[0] = dims_of(N, st, 0) >> u->rows & 1 ? 0 : 1;
  st->unit_read[1] = 1 - st->unit_read[0];
  bool split = !(dims_of(N, st, st->unit_read[1]) >> u->rows & 1) &&
               !(dims_of(N, st, st->unit_read[0]) >> u->columns & 1) && u->sum >= st->nacc &&
               u->rows < st->nacc && u->columns < st->nacc;
  if (!split) refuse(N, u, "one operand depends on its rows, the other on its columns");
  tarn_dtype type[2];
  for (uint32_t k = 0; k < 2; k++) {
    const tarn_read *r = &st->s->read[st->unit_read[k]];
    type[k] = r->stage ? N->stage[r->src].out_type : in[r->src].dtype;
  }
  while (i < N->hw->nintrin && strcmp(N->hw->intrin[i].name, u->name)) i++;
  if (i == N->hw->nintrin ||
      !tarn_plan_unit_serves(N->L, N->hw, i, st->f->body, st->f->red, type, &st->form))
    refuse(N, u, "it does not compute this stage's product");
  st->unit = &N->hw->intrin[i];
  st->pairs = u->pairs;
  for (uint32_t o = 0; o < 2; o++) st->unit_round[o] = rounding_of(N->L, st->form.body, o);
  if (u->pairs && !N->team) refuse(N, u, "pairs are of stages of a block of several");
}
/* The last three levels, of steps of one: the loops around them have the instruction's. */
void tarn_plan_fragment_levels(tarn_plan_nest *N, tarn_plan_stage *st, tarn_plan_list *list,
                               const tarn_stage_sched *s, const tarn_plan_operand *in) {
  const tarn_unit *u = s->unit;
  match(N, st, u, in);
  if (list->n < 3) refuse(N, u, "its levels are the last three");
  st->unit_at = list->n - 3;
  for (uint32_t i = st->unit_at; i < list->n; i++) {
    tarn_plan_level *l = &list->level[i];
    int64_t tile = l->dim == u->rows      ? st->form.m
                   : l->dim == u->columns ? st->form.n
                   : l->dim == u->sum     ? st->form.k
                                          : 0;
    if (l->step != 1 || l->trips != tile || !l->inside)
      refuse(N, u, "its levels are the last three, with trips as its operands have rows");
    l->kind = TARN_DOT;
    if (l->dim == u->rows) st->unit_rows = i - st->unit_at;
  }
}

/* ---------------------------------------------------------------- fragments */
static void set_extent(tarn_plan_stage *st, uint32_t var, int64_t n) { st->space.hi[var] = n - 1; }
/* Variables: lane, the result's register; then register and place of each operand. */
void tarn_plan_fragment_vars(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list) {
  uint32_t v = list->level[st->unit_at].var;
  if (v + TARN_PLAN_UNIT_VARS > PLAN_MAX_VARS)
    tarn_raise(N->cx, TARN_BAD_INPUT, "schedule: too many levels");
  st->lane = v++;
  for (uint32_t o = 3; o-- > 0;) {
    const tarn_imap *m = tarn_imap_get(N->L, st->unit->op[o].fragment);
    set_extent(st, st->lane, m->dim[0]);
    st->nreg[o] = m->dim[1];
    st->each[o] = m->dim[2];
    st->reg[o] = v++;
    set_extent(st, st->reg[o], st->nreg[o]);
    if (o == 2) continue;
    st->place[o] = v++;
    set_extent(st, st->place[o], st->each[o]);
  }
  bool halves = st->each[0] == st->each[1] && st->form.k % (2 * st->each[0]) == 0;
  if (st->pairs && !halves)
    tarn_raise(N->cx, TARN_BAD_INPUT, "schedule: unit %s has no pairs", st->unit->name);
}
/* Steps of the sum in another order, the same for both operands: what a lane has of its second half
 * lies behind what it has of the first. */
static const tarn_plan_lin *paired(const tarn_plan_stage *st, uint32_t o, const tarn_plan_lin *k) {
  const tarn_plan_space *s = &st->space;
  int64_t each = st->each[o], half = st->form.k / 2;
  const tarn_plan_lin *x = tarn_plan_lin_mod(s, k, half);
  const tarn_plan_lin *at = tarn_plan_lin_mod(s, x, each);
  at = tarn_plan_lin_add(s, at, 2 * each, tarn_plan_lin_div(s, x, each));
  return tarn_plan_lin_add(s, at, each, tarn_plan_lin_div(s, k, half));
}
const tarn_plan_lin *tarn_plan_fragment(const tarn_plan_nest *N, const tarn_plan_stage *st,
                                        uint32_t o, tarn_hw_role role) {
  const tarn_plan_space *s = &st->space;
  const tarn_imap *m = tarn_imap_get(N->L, st->unit->op[o].fragment);
  const tarn_plan_lin *sub[3] = {tarn_plan_lin_var(s, 1, st->lane),
                                 tarn_plan_lin_var(s, 1, st->reg[o]),
                                 tarn_plan_lin_const(s->cx, 0)};
  if (o < 2) sub[2] = tarn_plan_lin_var(s, 1, st->place[o]);
  for (uint32_t k = 0; k < 2; k++)
    if (st->form.role[o][k] == role) {
      const tarn_plan_lin *x = tarn_plan_lin_ix(s, N->L, m->e[k], sub);
      return st->pairs && role == TARN_HW_K ? paired(st, o, x) : x;
    }
  return tarn_plan_lin_const(s->cx, 0);
}
/* Multiples of `each`, but for steps of one along variable `place`? */
static bool by_registers(const tarn_plan_lin *a, int64_t each, uint32_t place) {
  bool fits = a->c % each == 0;
  for (uint32_t i = 0; i < a->n && fits; i++)
    fits = a->t[i].deps >> place & 1 || a->t[i].coef % each == 0;
  return fits;
}
/* Does what a register of an operand holds lie side by side, aligned to it, inside or outside? */
static bool side_by_side(const tarn_plan_stage *st, uint32_t o) {
  const tarn_plan_access *a = &st->read[st->unit_read[o]];
  int64_t by = 0, each = st->each[o];
  if (each == 1) return true;
  bool fits = tarn_plan_moves_by(a->off, st->place[o], &by) && by == 1;
  fits = fits && by_registers(a->off, each, st->place[o]);
  for (uint32_t g = 0; g < a->nguard && fits; g++)
    fits = !(tarn_plan_lin_deps(a->guard[g].e) >> st->place[o] & 1) ||
           (by_registers(a->guard[g].e, each, st->place[o]) && a->guard[g].lo % each == 0 &&
            a->guard[g].hi % each == 0);
  return fits;
}
void tarn_plan_fragment_check(const tarn_plan_nest *N, const tarn_plan_stage *st) {
  for (uint32_t o = 0; o < 2; o++)
    if (!st->read[st->unit_read[o]].held || !side_by_side(st, o))
      tarn_raise(N->cx, TARN_BAD_INPUT,
                 "schedule: unit %s: operand %u is not held with its sum side by side",
                 st->unit->name, st->unit_read[o]);
}

/* ---------------------------------------------------------------- in a block of several stages */
/* A warp does an item: the levels are parallel ones, then those of what it does. Tiles need not
 * divide the extents. */
void tarn_plan_fragment_own(const tarn_plan_nest *N, tarn_plan_stage *st,
                            const tarn_stage_sched *s) {
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    bool sum = l->dim >= st->nacc, last = i + 3 >= s->nlevel;
    bool fits = i < s->acc ? !sum && l->kind == TARN_PARALLEL
                           : l->kind == TARN_UNROLL || ((sum || last) && l->kind == TARN_SERIAL);
    if (!fits)
      refuse(N, s->unit, "parallel levels, serial ones of the sum and unrolled ones are expected");
  }
  tarn_plan_whole_tiles(st, s);
}
/* What terms of an expression that registers of operand o alone change add up to in one of them;
 * false where they are mixed with others, or others leave what it counts at no multiple of `by`. */
static bool of_register(const tarn_plan_stage *st, uint32_t o, const tarn_plan_lin *a, int64_t by,
                        int64_t reg, int64_t *sum) {
  int64_t at[PLAN_MAX_VARS] = {0};
  uint64_t own = UINT64_C(1) << st->reg[o];
  at[st->reg[o]] = reg;
  *sum = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    const tarn_plan_lin one = {.n = 1, .t = &a->t[i]};
    if (a->t[i].deps == own) *sum += tarn_plan_lin_at(&one, at);
    else if (a->t[i].deps & own) return false;
    else if (a->t[i].coef % by && a->t[i].deps != UINT64_C(1) << st->place[o]) return false;
  }
  return a->c % by == 0;
}
/* Does register `reg` begin at a whole pair, the second `apart` further on, both inside or outside?
 */
static bool begins_pair(const tarn_plan_stage *st, uint32_t o, int64_t reg, int64_t apart) {
  const tarn_plan_access *a = &st->read[st->unit_read[o]];
  int64_t each = st->each[o], first, next;
  bool fits = of_register(st, o, a->off, 2 * each, reg, &first) && first % (2 * each) == 0 &&
              of_register(st, o, a->off, 2 * each, reg + apart, &next) && next == first + each;
  for (uint32_t g = 0; g < a->nguard && fits; g++) {
    const tarn_plan_guard *x = &a->guard[g];
    bool ends = of_register(st, o, x->e, 2 * each, reg, &first) && first % (2 * each) == 0 &&
                x->lo % (2 * each) == 0 && x->hi % (2 * each) == 0;
    bool apart_from_it = !((tarn_plan_lin_deps(x->e) >> st->place[o]) & 1) &&
                         of_register(st, o, x->e, 1, reg, &first) &&
                         of_register(st, o, x->e, 1, reg + apart, &next) && next == first;
    fits = ends || apart_from_it;
  }
  return fits;
}
/* Registers of the first half of the sum are followed by those of the second. */
static void settle_pairs(tarn_plan_stage *st, uint32_t o) {
  int64_t n = st->nreg[o], apart = n / 2;
  st->pair[o] = 0;
  if (!st->pairs || st->scattered[o] || n % 2) return;
  for (int64_t r = 0; r < apart; r++)
    if (!begins_pair(st, o, r, apart)) return;
  st->pair[o] = apart;
}
/* The index of each dim in what operand o reads. */
void tarn_plan_fragment_index(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t o,
                              const tarn_plan_lin **index) {
  const tarn_plan_list *own = &N->list[1 + (st - N->stage)];
  const tarn_plan_space *s = &st->space;
  for (uint32_t d = 0; d < st->n; d++) index[d] = tarn_plan_lin_const(N->cx, 0);
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < (k ? st->unit_at : N->list[0].n); i++) {
      const tarn_plan_level *l = k ? &own->level[i] : &N->list[0].level[i];
      index[l->dim] = tarn_plan_lin_add(s, index[l->dim], l->step, tarn_plan_lin_var(s, 1, l->var));
    }
  for (uint32_t i = st->unit_at; i < own->n; i++) {
    uint32_t d = own->level[i].dim;
    bool rows = i == st->unit_at + st->unit_rows;
    tarn_hw_role role = d >= st->nacc ? TARN_HW_K : rows ? TARN_HW_M : TARN_HW_N;
    index[d] = tarn_plan_lin_add(s, index[d], 1, tarn_plan_fragment(N, st, o, role));
  }
}
static void guard(const tarn_plan_nest *N, const tarn_plan_stage *st, tarn_plan_access *a,
                  const tarn_plan_lin *e, int64_t end) {
  if (a->nguard == TARN_MAX_DIMS)
    tarn_raise(N->cx, TARN_BAD_INPUT, "schedule: unit %s: too many guards", st->unit->name);
  a->guard[a->nguard++] = (tarn_plan_guard){e, 0, end};
}
/* What operand o has beyond the end of a dim counts as zero. */
static void end_operand(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_unit *u, uint32_t o) {
  const tarn_plan_lin *index[TARN_MAX_DIMS];
  tarn_plan_access *a = &st->read[st->unit_read[o]];
  uint32_t dims = dims_of(N, st, st->unit_read[o]);
  bool padded = a->nguard > 0;
  tarn_plan_fragment_index(N, st, o, index);
  for (uint32_t d = 0; d < st->n; d++) {
    if (st->over[d] == st->dim[d]) continue;
    bool sum = d >= st->nacc, reads = dims >> d & 1;
    if (sum && (!reads || (padded && !tarn_plan_is_zero(N, a->fill, a->dtype))))
      refuse(N, u, "tiles of a sum that are not whole, of what is not zero beyond its end");
    if (reads) guard(N, st, a, index[d], st->dim[d]);
  }
  if (!padded) a->fill = tarn_plan_zero(N, a->dtype);
}
void tarn_plan_fragment_settle(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_unit *u,
                               const tarn_plan_operand *in) {
  for (uint32_t o = 0; o < 2; o++) {
    const tarn_read *r = &st->s->read[st->unit_read[o]];
    end_operand(N, st, u, o);
    st->scattered[o] = !side_by_side(st, o);
    int64_t begins = r->stage ? 0 : in[r->src].layout.offset;
    st->scattered[o] |= begins % st->each[o] != 0;
    if (begins % (2 * st->each[o]) == 0) settle_pairs(st, o);
  }
  for (uint32_t d = 0; d < st->nacc; d++)
    if (st->over[d] != st->dim[d]) guard(N, st, &st->result, st->index[d], st->dim[d]);
}

/* ---------------------------------------------------------------- matrices */
enum { MOST_POINTS = 512 };
/* Where register `reg` of a lane lies, from what the other variables are. */
static int64_t at_lane(const tarn_plan_stage *st, uint32_t o, int64_t *at, int64_t lane,
                       int64_t reg) {
  at[st->lane] = lane;
  at[st->reg[o]] = reg;
  return tarn_plan_lin_at(st->read[st->unit_read[o]].off, at);
}
/* Do four lanes each have a row of 16 bytes, side by side and aligned, in all registers? */
static bool are_rows(const tarn_plan_stage *st, uint32_t o, int64_t *at, int64_t lanes) {
  int64_t each = st->each[o];
  for (int64_t r = 0; r < st->nreg[o]; r++)
    for (int64_t l = 0; l < lanes; l += 4) {
      int64_t first = at_lane(st, o, at, l, r);
      if (first % (4 * each)) return false;
      for (int64_t k = 1; k < 4; k++)
        if (at_lane(st, o, at, l + k, r) != first + k * each) return false;
    }
  return true;
}
/* Variables of terms that lanes or registers turn up in; false where another term leaves a row
 * unaligned. */
static bool mixed_with(const tarn_plan_stage *st, uint32_t o, uint64_t *vars) {
  const tarn_plan_lin *off = st->read[st->unit_read[o]].off;
  uint64_t own = UINT64_C(1) << st->lane | UINT64_C(1) << st->reg[o];
  for (uint32_t i = 0; i < off->n; i++)
    if (off->t[i].deps & own) *vars |= off->t[i].deps;
    else if (off->t[i].coef % (4 * st->each[o]) && off->t[i].deps != UINT64_C(1) << st->place[o])
      return false;
  *vars &= ~(own | UINT64_C(1) << st->place[o]);
  return true;
}
static bool is_loaded_whole(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t o) {
  const tarn_plan_access *a = &st->read[st->unit_read[o]];
  int64_t at[PLAN_MAX_VARS] = {0}, points = 1;
  uint64_t vars = 0;
  const tarn_read *from = &st->s->read[st->unit_read[o]];
  bool shared = a->held || (from->stage && N->stage[from->src].shared_at >= 0);
  if (st->each[o] * (int64_t)tarn_dtype_size(a->dtype) * 4 != N->hw->warps.matrix) return false;
  if (!shared || a->nguard || st->scattered[o]) return false;
  if (!mixed_with(st, o, &vars)) return false;
  for (uint64_t v = vars; v; v &= v - 1) points *= st->space.hi[__builtin_ctzll(v)] + 1;
  if (points > MOST_POINTS) return false;
  for (int64_t p = 0; p < points; p++) {
    int64_t left = p;
    for (uint64_t v = vars; v; v &= v - 1) {
      int64_t n = st->space.hi[__builtin_ctzll(v)] + 1;
      at[__builtin_ctzll(v)] = left % n;
      left /= n;
    }
    if (!are_rows(st, o, at, N->hw->warps.lanes)) return false;
  }
  return true;
}
/* Registers by fours, by twos or one by one: as many as an operand has. */
void tarn_plan_fragment_matrices(const tarn_plan_nest *N, tarn_plan_stage *st) {
  for (uint32_t o = 0; o < 2; o++) {
    int64_t n = st->nreg[o];
    st->matrices[o] = 0;
    if (N->hw->warps.matrix && is_loaded_whole(N, st, o))
      st->matrices[o] = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
  }
}
