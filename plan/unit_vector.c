/* The epilogue of a kernel as steps of the vector unit.
 *
 * Steps replace one operand in place: the one whose entry an instruction names by the same field as
 * the result's, or any where the result has a field of its own. The expression is covered from its
 * root by meanings of intrinsics (maximal munch), immediates before operands in memory. A value in
 * memory is used once, since a step replaces it.
 */
#include "access/fx_internal.h"
#include "plan/unit_internal.h"
#include <string.h>

enum { HOLES = 8 };

/* ---------------------------------------------------------------- meanings */
/* Holes of the pattern that stand for parts of an expression. */
static bool bind_hole(void *user, uint32_t hole, uint32_t e) {
  uint32_t *bind = user;
  if (hole >= HOLES || (bind[hole] != TARN_NONE && bind[hole] != e)) return false;
  bind[hole] = e;
  return true;
}
static bool unify(const tarn_lang *L, uint32_t pattern, uint32_t e, uint32_t *bind) {
  return tarn_fx_match(L, pattern, e, false, bind_hole, bind);
}
uint32_t unit_meaning(const unit_match *m, uint32_t intrinsic, bool acc) {
  tarn_hw_form f;
  tarn_hw_meaning meaning = tarn_hw_meaning_of(m->L, m->p->hw, intrinsic);
  return tarn_hw_form_of(m->L, &meaning, &f) && !f.product && meaning.acc == acc ? f.body
                                                                                 : TARN_NONE;
}
/* The operand that the result replaces, or may. */
uint32_t unit_replaced(const tarn_hw *hw, uint32_t intrinsic) {
  const tarn_hw_intrinsic *x = &hw->intrin[intrinsic];
  const tarn_hw_instruction *is = tarn_hw_runner(hw, intrinsic, TARN_HW_GOES_ON, NULL);
  uint32_t field = TARN_NONE, first = TARN_NONE;
  for (uint32_t i = 0; is && i < is->nindex; i++)
    if (is->index[i].operand == x->nop - 1u) field = is->index[i].field;
  for (uint32_t i = 0; is && i < is->nindex && field != TARN_NONE; i++)
    if (is->index[i].operand < x->nop - 1u && is->index[i].field == field)
      return is->index[i].operand;
  for (uint32_t k = x->nop - 1u; k-- > 0;)
    if (!x->op[k].immediate) first = k;
  return is && field == TARN_NONE ? TARN_NONE : first; /* the result may go anywhere */
}

/* ---------------------------------------------------------------- values */
/* But for those in `once`, which is computed one time. */
static uint32_t uses_of(const tarn_lang *L, uint32_t e, uint32_t hole, uint32_t once) {
  const tarn_fx *x = tarn_fx_get(L, e);
  uint32_t n = 0;
  if (e == once) return 0;
  if (x->op == TARN_FX_HOLE) return x->hole == hole;
  for (uint32_t i = 0; i < tarn_fx_arity(x->op); i++) n += uses_of(L, x->kid[i], hole, once);
  return n;
}
static bool contains(const tarn_lang *L, uint32_t e, uint32_t part) {
  const tarn_fx *x = tarn_fx_get(L, e);
  bool does = e == part;
  for (uint32_t i = 0; i < tarn_fx_arity(x->op) && !does; i++) does = contains(L, x->kid[i], part);
  return does;
}
/* What is added to something that was made of it; TARN_NONE: nothing is. */
static uint32_t added_again(const tarn_lang *L, uint32_t e) {
  const tarn_fx *x = tarn_fx_get(L, e);
  uint32_t again = TARN_NONE;
  for (uint32_t i = 0; i < 2 && x->op == TARN_FX_ADD; i++)
    if (tarn_fx_get(L, x->kid[i])->op != TARN_FX_CONST && contains(L, x->kid[1 - i], x->kid[i]))
      return x->kid[i];
  for (uint32_t i = 0; i < tarn_fx_arity(x->op) && again == TARN_NONE; i++)
    again = added_again(L, x->kid[i]);
  return again;
}
static uint32_t sums_memory(const unit_match *m) { return m->p->tensor[m->p->sums].memory; }
static tarn_dtype sums_type(const unit_match *m) {
  return m->p->hw->intrin[m->p->product].op[2].dtype;
}

static bool is_small(const unit_match *m, const tarn_unit_tensor *t) {
  uint32_t dims = tarn_unit_dims(t);
  for (uint32_t d = 0; d < m->p->nacc; d++)
    if (m->p->dim[d] > 1 && !(dims >> d & 1)) return true;
  return false;
}
static uint32_t number_of(const unit_match *m, const tarn_unit_tensor *t) {
  return (uint32_t)(t - m->p->tensor);
}
static tarn_unit_tensor *addend(unit_match *m, uint32_t read) {
  tarn_unit_tensor *t = unit_tensor(m, TARN_UNIT_ADDEND, read, sums_memory(m));
  if (!t) {
    unit_no(m, "too many operands");
    return NULL;
  }
  t->lanes[1] = m->p->form.n;
  t->along[1] = m->p->columns;
  return t;
}
static uint32_t constant(unit_match *m, const tarn_fx *value) {
  tarn_unit_tensor *t = addend(m, TARN_NONE);
  if (!t) return TARN_NONE;
  t->packed = t->small = true;
  t->constant = value->ivalue;
  t->real = value->value;
  return number_of(m, t);
}
/* An addend of the product's own type comes by the product with the identity. */
static bool through_product(unit_match *m, tarn_unit_tensor *t, tarn_dtype type) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_intrinsic *x = &p->hw->intrin[p->product];
  const tarn_unit_tensor *rows = &p->tensor[0];
  if (p->way == TARN_UNIT_FILLS || p->way == TARN_UNIT_JOINS)
    return unit_no(m, "the other operand comes by a transfer");
  if (type != x->op[p->form.operand[0]].dtype || p->form.k != p->form.n)
    return unit_no(m, "an operand of type %s, which no transfer brings to the sums",
                   tarn_dtype_name(type));
  tarn_unit_tensor *from = unit_tensor(m, TARN_UNIT_ROWS, t->read, rows->memory);
  if (!from) return unit_no(m, "too many operands");
  from->lanes[1] = p->form.k;
  from->along[1] = p->columns;
  if (!unit_coords(m, from, unit_map(m, t->read)) || !unit_rows(m, from)) return false;
  uint32_t one = 0;
  while (one < p->ntensor && p->tensor[one].what != TARN_UNIT_ONE) one++;
  if (one == p->ntensor) {
    tarn_unit_tensor *i = unit_tensor(m, TARN_UNIT_ONE, TARN_NONE, p->tensor[1].memory);
    if (!i) return unit_no(m, "too many operands");
    memcpy(i->lanes, p->tensor[1].lanes, sizeof i->lanes);
    i->each = p->tensor[1].each;
    i->packed = true;
  }
  t->transfer = TARN_NONE;
  t->source = number_of(m, from);
  memcpy(t->at, p->tensor[p->sums].at, sizeof t->at);
  t->n = p->tensor[p->sums].n;
  return true;
}
/* Hole h of the epilogue, h > 0. */
static uint32_t operand(unit_match *m, uint32_t h) {
  tarn_unit_plan *p = m->p;
  uint32_t read = m->first + h - 1u;
  const tarn_read *r = &p->stage->read[read];
  tarn_unit_tensor *t = r->stage ? NULL : addend(m, read);
  if (!t) return TARN_NONE;
  bool ok = true;
  if (p->k->in_const[r->src]) unit_packed(m, t, unit_map(m, read));
  else if (p->k->in_type[r->src] == sums_type(m)) ok = unit_coords(m, t, unit_map(m, read));
  else ok = through_product(m, t, p->k->in_type[r->src]);
  if (ok && t->source == TARN_NONE && t->transfer == TARN_NONE)
    ok = unit_no(m, "no transfer fills %s", p->hw->mem[t->memory].name);
  t->small = is_small(m, t);
  return ok ? number_of(m, t) : TARN_NONE;
}

/* ---------------------------------------------------------------- covering */
static uint32_t value(unit_match *m, uint32_t e);

static bool add_step(unit_match *m, uint32_t intrinsic, uint32_t to, uint32_t from, int64_t imm) {
  tarn_unit_plan *p = m->p;
  if (p->nstep == TARN_UNIT_STEPS) return unit_no(m, "too many steps of the vector unit");
  p->step[p->nstep++] = (tarn_unit_step){intrinsic, to, from, imm};
  return true;
}
/* e by one intrinsic over parts of it; TARN_NONE: it does not mean that. */
static uint32_t by_intrinsic(unit_match *m, uint32_t e, uint32_t i, bool immediate) {
  const tarn_hw_intrinsic *x = &m->p->hw->intrin[i];
  uint32_t bind[HOLES], body, inplace = unit_replaced(m->p->hw, i), other = TARN_NONE;
  int64_t imm = 0;
  bool has = false;
  memset(bind, 0xff, sizeof bind);
  if (x->nop < 2 || x->nop > 3 || x->op[x->nop - 1].immediate || inplace == TARN_NONE)
    return TARN_NONE;
  for (uint32_t k = 0; k < x->nop; k++) {
    has |= x->op[k].immediate;
    if (!x->op[k].immediate && unit_memory(m->p->hw, x->op[k].memory) != sums_memory(m))
      return TARN_NONE;
  }
  if (has != immediate || (body = unit_meaning(m, i, false)) == TARN_NONE ||
      !unify(m->L, body, e, bind))
    return TARN_NONE;
  for (uint32_t k = 0; k + 1 < x->nop; k++) {
    const tarn_fx *v = bind[k] == TARN_NONE ? NULL : tarn_fx_get(m->L, bind[k]);
    if (!v) return TARN_NONE;
    if (!x->op[k].immediate) {
      if (k != inplace) other = k;
      continue;
    }
    imm = v->ivalue;
    if (v->op != TARN_FX_CONST || imm < x->op[k].lo || imm > x->op[k].hi) return TARN_NONE;
    if (!unit_takes(m->p->hw, i, imm)) return TARN_NONE;
  }
  if (other != TARN_NONE && m->twice != TARN_NONE && bind[inplace] == m->twice &&
      bind[other] != m->twice &&
      tarn_fx_get(m->L, body)->op == TARN_FX_ADD) { /* what is made of it takes its place */
    bind[inplace] = bind[other];
    bind[other] = m->twice;
  }
  uint32_t to = value(m, bind[inplace]);
  if (to == TARN_NONE) return TARN_NONE;
  uint32_t from = other == TARN_NONE ? TARN_NONE : value(m, bind[other]);
  if (other != TARN_NONE && from == TARN_NONE) return TARN_NONE;
  bool replaces_sums = from == m->p->sums; /* they are to hold the result */
  if (other != TARN_NONE && (m->p->tensor[to].small || replaces_sums)) {
    const tarn_fx *b = tarn_fx_get(m->L, body);
    bool swaps = b->op == TARN_FX_ADD || b->op == TARN_FX_MAX || b->op == TARN_FX_MIN;
    uint32_t t = to;
    if (!swaps) return TARN_NONE;
    to = from;
    from = t;
  }
  if (m->p->tensor[to].small) {
    unit_no(m, "the vector unit would replace an operand that is the same along a dim");
    return TARN_NONE;
  }
  return add_step(m, i, to, from, imm) ? to : TARN_NONE;
}
/* ---------------------------------------------------------------- transfers that compute */
bool unit_beside_sums(unit_match *m, tarn_unit_tensor *t) {
  const tarn_unit_plan *p = m->p;
  const tarn_imap *map = unit_map(m, t->read);
  bool fixed = p->k->in_const[p->stage->read[t->read].src];
  int64_t block = 0;
  if (map->nin != 1 || map->nguard || !unit_affine(m, t, map->e[0], &block))
    return unit_lies(m, "an operand is read by a division");
  t->vector = fixed;
  for (uint32_t i = 0; i < t->n; i++) {
    if (!t->at[i].n) continue;
    uint32_t d = t->at[i].dim[0];
    int64_t coef = tarn_ix_coef(m->L, map->e[0], d);
    int64_t step = fixed ? coef != 0 : unit_step(m, t, coef, d, block);
    if (step < 0 || (fixed && coef && d != p->columns))
      return unit_lies(m, "an operand that does not lie in entries of %lld elements",
                       (long long)t->lanes[1]);
    t->at[i].step = step;
  }
  if (fixed) return true;
  int64_t c = tarn_ix_get(m->L, map->e[0])->c;
  if (c % t->lanes[1] || tarn_ix_coef(m->L, map->e[0], p->columns) != 1)
    return unit_lies(m, "an operand that begins within an entry");
  t->base = c / t->lanes[1];
  return unit_ends_inside(m, t) ||
         unit_lies(m, "the last entry of an operand is not all in its memory");
}
static void same_everywhere(tarn_unit_tensor *t, const tarn_fx *number) {
  t->vector = true;
  t->constant = number->ivalue;
  t->real = number->value;
  for (uint32_t i = 0; i < t->n; i++) t->at[i].step = 0;
}
/* e as what transfer i makes of sums that are there and of what it brings. */
static uint32_t by_transfer(unit_match *m, uint32_t e, uint32_t i) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_transfer *t = &p->hw->transfer[i];
  uint32_t bind[HOLES], body;
  memset(bind, 0xff, sizeof bind);
  if (t->intrinsic == TARN_NONE || t->to != sums_memory(m)) return TARN_NONE;
  const tarn_hw_intrinsic *x = &p->hw->intrin[t->intrinsic];
  if (x->nop != 2 || (body = unit_meaning(m, t->intrinsic, true)) == TARN_NONE) return TARN_NONE;
  if (!unify(m->L, body, e, bind) || bind[0] == TARN_NONE || bind[1] == TARN_NONE) return TARN_NONE;
  const tarn_fx *from = tarn_fx_get(m->L, bind[0]);
  bool number = from->op == TARN_FX_CONST && from->dtype == x->op[0].dtype;
  if (!number && (from->op != TARN_FX_HOLE || !from->hole)) return TARN_NONE;
  uint32_t read = number ? TARN_NONE : m->first + from->hole - 1u;
  if (!number &&
      (p->stage->read[read].stage || p->k->in_type[p->stage->read[read].src] != x->op[0].dtype))
    return TARN_NONE;
  if (value(m, bind[1]) != p->sums) return TARN_NONE;
  tarn_unit_tensor *onto = unit_tensor(m, TARN_UNIT_ONTO, read, sums_memory(m));
  if (!onto) return TARN_NONE;
  onto->transfer = i;
  onto->lanes[1] = tarn_hw_transfer_bytes(p->hw, t) / (int64_t)tarn_dtype_size(x->op[0].dtype);
  onto->along[1] = p->columns;
  onto->n = p->tensor[p->sums].n;
  memcpy(onto->at, p->tensor[p->sums].at, sizeof onto->at);
  if (number) same_everywhere(onto, from);
  if (onto->lanes[1] != p->form.n || (!number && !unit_beside_sums(m, onto))) return TARN_NONE;
  return add_step(m, t->intrinsic, p->sums, number_of(m, onto), 0) ? p->sums : TARN_NONE;
}
/* Its operands either way round. */
static uint32_t by_transfers(unit_match *m, uint32_t e) {
  const tarn_fx x = *tarn_fx_get(m->L, e);
  for (uint32_t i = 0; i < m->p->hw->ntransfer; i++)
    for (uint32_t swap = 0; swap < (x.op == TARN_FX_ADD ? 2 : 1); swap++) {
      const tarn_unit_plan before = *m->p;
      const uint32_t copy = m->copy;
      uint32_t way = swap ? tarn_fx_op(m->L, TARN_FX_ADD, x.kid[1], x.kid[0], 0) : e;
      uint32_t at = by_transfer(m, way, i);
      if (at != TARN_NONE) return at;
      *m->p = before;
      m->copy = copy;
    }
  return TARN_NONE;
}
/* The largest shift by so much at most that one instruction can do; 0: none. */
static int64_t shift_of(const unit_match *m, uint32_t intrinsic, int64_t most) {
  while (most > 0 && !unit_takes(m->p->hw, intrinsic, most)) most--;
  return most;
}
/* A shift by more than the immediate allows is several shifts. */
static uint32_t by_two_shifts(unit_match *m, uint32_t e) {
  const tarn_fx x = *tarn_fx_get(m->L, e);
  const tarn_fx *by = tarn_fx_get(m->L, x.kid[1]);
  if (x.op != TARN_FX_SHR || by->op != TARN_FX_CONST || by->ivalue > 62) return TARN_NONE;
  for (uint32_t i = 0; i < m->p->hw->nintrin; i++) {
    const tarn_hw_intrinsic *n = &m->p->hw->intrin[i];
    uint32_t body = n->nop == 3 && n->op[1].immediate ? unit_meaning(m, i, false) : TARN_NONE;
    if (body == TARN_NONE || tarn_fx_get(m->L, body)->op != TARN_FX_SHR || n->op[1].hi < 1)
      continue;
    const tarn_unit_plan before = *m->p;
    const uint32_t copy = m->copy;
    uint32_t to = value(m, x.kid[0]);
    for (int64_t left = by->ivalue, one; left > 0 && to != TARN_NONE; left -= one) {
      one = shift_of(m, i, tarn_min(left, n->op[1].hi));
      if (!one || !add_step(m, i, to, TARN_NONE, one)) to = TARN_NONE;
    }
    if (to != TARN_NONE) return to;
    *m->p = before;
    m->copy = copy;
  }
  return TARN_NONE;
}
/* to = 0 + from. */
static uint32_t copied(unit_match *m, uint32_t from) {
  tarn_unit_plan *p = m->p;
  uint32_t add = tarn_fx_op(m->L, TARN_FX_ADD, tarn_fx_hole(m->L, 0), tarn_fx_hole(m->L, 1), 0);
  bool clears = p->way != TARN_UNIT_JOINS && !unit_begins(p->hw, p->product);
  if (from != p->sums || !clears) {
    unit_no(m, "nothing keeps a value that is used twice");
    return TARN_NONE;
  }
  for (uint32_t i = 0; i < p->hw->nintrin; i++) {
    const tarn_hw_intrinsic *x = &p->hw->intrin[i];
    if (x->nop != 3 || x->op[0].immediate || x->op[1].immediate ||
        unit_meaning(m, i, false) != add || unit_memory(p->hw, x->op[0].memory) != sums_memory(m))
      continue;
    tarn_unit_tensor *t = unit_like_sums(m, TARN_UNIT_COPY);
    if (!t) break;
    m->copy = number_of(m, t);
    return add_step(m, i, m->copy, from, 0) ? from : TARN_NONE;
  }
  unit_no(m, "nothing keeps a value that is used twice");
  return TARN_NONE;
}
/* The tensor that holds e once the steps so far are done. */
static uint32_t value(unit_match *m, uint32_t e) {
  const tarn_fx *x = tarn_fx_get(m->L, e);
  if (e == m->twice) {
    if (m->copy != TARN_NONE) return m->copy;
    m->twice = TARN_NONE;
    uint32_t at = value(m, e);
    m->twice = e;
    return at == TARN_NONE ? at : copied(m, at);
  }
  if (x->op == TARN_FX_HOLE) return x->hole ? operand(m, x->hole) : m->p->sums;
  if (x->op == TARN_FX_CONST && x->dtype == sums_type(m)) return constant(m, x);
  if (x->op == TARN_FX_CAST && x->dtype == sums_type(m)) {
    const tarn_fx *y = tarn_fx_get(m->L, x->kid[0]);
    if (y->op == TARN_FX_HOLE) return y->hole ? operand(m, y->hole) : m->p->sums;
    if (y->dtype == x->dtype) return value(m, x->kid[0]);
  }
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < m->p->hw->nintrin; i++) {
      const tarn_unit_plan before = *m->p;
      const uint32_t copy = m->copy;
      uint32_t at = by_intrinsic(m, e, i, pass == 0);
      if (at != TARN_NONE) return at;
      *m->p = before;
      m->copy = copy;
    }
  uint32_t at = by_two_shifts(m, e);
  if (at == TARN_NONE) at = by_transfers(m, e);
  if (at == TARN_NONE) unit_no(m, "the vector unit has no %s", tarn_fx_info(x->op)->text);
  return at;
}

/* ---------------------------------------------------------------- the epilogue */
static int64_t bits_of(double v) {
  union {
    float f;
    uint32_t u;
  } x = {.f = (float)v};
  return x.u;
}
/* The immediate of the intrinsic that stores, $1 of its meaning. */
static bool immediate_of(unit_match *m, uint32_t transfer, const uint32_t *bind) {
  const tarn_hw *hw = m->p->hw;
  const tarn_hw_intrinsic *x = &hw->intrin[hw->transfer[transfer].intrinsic];
  m->p->store_immediate = 0;
  if (x->nop == 2) return true;
  if (x->nop != 3 || !x->op[1].immediate || bind[1] == TARN_NONE) return false;
  const tarn_fx *v = tarn_fx_get(m->L, bind[1]);
  bool real = x->op[1].dtype == TARN_F32;
  double at = real ? v->value : (double)v->ivalue;
  if (v->op != TARN_FX_CONST || v->dtype != x->op[1].dtype) return false;
  if (!(at >= (double)x->op[1].lo && at <= (double)x->op[1].hi)) return false;
  m->p->store_immediate = real ? bits_of(at) : v->ivalue;
  return !hw->ninstruction || tarn_hw_mover(hw, transfer, &m->p->store_immediate);
}
static bool leaves(unit_match *m, uint32_t transfer, uint32_t epi) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_transfer *t = &p->hw->transfer[transfer];
  const char *shadows = p->hw->mem[t->from].shadow_of;
  uint32_t from = shadows ? unit_memory(p->hw, shadows) : t->from;
  uint32_t bind[HOLES];
  memset(bind, 0xff, sizeof bind);
  if (t->to != p->hw->nmem - 1 || from != sums_memory(m)) return false;
  if (t->intrinsic == TARN_NONE) {
    if (p->k->out_type[0] != sums_type(m))
      return unit_else(m, "sums cannot leave as %s", tarn_dtype_name(p->k->out_type[0]));
    bind[0] = epi;
  } else {
    uint32_t body = unit_meaning(m, t->intrinsic, false);
    if (body == TARN_NONE || !unify(m->L, body, epi, bind) || bind[0] == TARN_NONE ||
        !immediate_of(m, transfer, bind))
      return unit_else(m, "results of type %s do not leave as they are",
                       tarn_dtype_name(p->k->out_type[0]));
  }
  p->store = t->intrinsic;
  uint32_t at = value(m, bind[0]);
  if (at == TARN_NONE) return false;
  if (at != p->sums) return unit_no(m, "the result would lie in an operand");
  return unit_result(m, t->from, transfer);
}
bool unit_epilogue(unit_match *m) {
  const tarn_func *f = tarn_fn_get(m->L, m->p->stage->fn);
  uint32_t epi = m->epi == TARN_NONE ? tarn_fx_hole(m->L, 0) : m->epi;
  uint32_t twice = added_again(m->L, epi);
  for (uint32_t h = 0; h <= f->nops + f->nepi; h++)
    if (uses_of(m->L, epi, h, twice) +
            (twice == TARN_NONE ? 0 : uses_of(m->L, twice, h, TARN_NONE)) >
        1)
      return unit_no(m, "the epilogue uses a value twice, the vector unit replaces it");
  for (uint32_t i = 0; i < m->p->hw->ntransfer; i++) {
    const tarn_unit_plan before = *m->p;
    m->twice = twice;
    m->copy = TARN_NONE;
    if (leaves(m, i, epi)) return true;
    *m->p = before;
  }
  return unit_else(m, "nothing brings results of the vector unit to main memory");
}
