/* Which units of a machine compute a kernel, and how its operands lie in entries of its memories.
 *
 * A product's operands are found by what the unit means: the body, the reducer and the types of the
 * kernel's only stage are those of the meaning. One dim of the kernel goes along the unit's columns
 * and one along its sum; all others are loops. An operand that lies in main memory is moved as
 * entries, so its addresses are whole entries and the dim that goes along an entry has step 1. A
 * constant is laid out by the emitter, entry by entry, and may lie anyhow. */
#include "plan/unit_internal.h"
#include <stdarg.h>
#include <string.h>

bool unit_because(unit_match *m, tarn_unit_reason reason, const char *fmt, ...) {
  va_list ap;
  if (m->why && m->reason >= reason) return false;
  va_start(ap, fmt);
  m->why = tarn_vformat(m->cx, fmt, ap);
  m->reason = reason;
  va_end(ap);
  return false;
}

/* ---------------------------------------------------------------- memories */
uint32_t unit_memory(const tarn_hw *hw, const char *name) {
  for (uint32_t i = 0; name && i < hw->nmem; i++)
    if (!strcmp(hw->mem[i].name, name)) return i;
  return TARN_NONE;
}
/* Plain, from main memory. */
static uint32_t unit_transfer_to(const tarn_hw *hw, uint32_t memory) {
  for (uint32_t i = 0; i < hw->ntransfer; i++)
    if (hw->transfer[i].to == memory && hw->transfer[i].intrinsic == TARN_NONE) return i;
  return TARN_NONE;
}
static uint32_t entry_of(const unit_match *m, uint32_t memory) {
  return m->p->hw->mem[memory].entry;
}

/* ---------------------------------------------------------------- coordinates */
/* Every guard is some coordinate's. */
static bool guards_kept(unit_match *m, const tarn_unit_tensor *t, const tarn_imap *map) {
  uint32_t clipped = 0;
  for (uint32_t i = 0; i < t->n; i++) clipped += t->at[i].clipped;
  if (clipped != map->nguard) return unit_no(m, "padding that is not along a dim of an operand");
  if (!map->nguard) return true;
  const tarn_fx *fill = tarn_fx_get(m->L, map->fill);
  bool zero = fill->op == TARN_FX_CONST && fill->ivalue == 0 && fill->value == 0;
  if (m->p->way == TARN_UNIT_JOINS) /* it is left out */
    return map->fill == tarn_reducer_identity(m->L, tarn_fn_get(m->L, m->p->stage->fn)->red) ||
           unit_no(m, "padding with something else than what its reduction begins with");
  if (!zero) return unit_no(m, "padding with something else than 0");
  return true;
}
static void outermost_first(tarn_unit_tensor *t) {
  for (uint32_t i = 1; i < t->n; i++)
    for (uint32_t k = i; k > 0 && t->at[k - 1].step < t->at[k].step; k--) {
      tarn_coordinate c = t->at[k];
      t->at[k] = t->at[k - 1];
      t->at[k - 1] = c;
    }
}
/* A unit of several rows takes them as neighbours: the coordinate of its rows lies innermost in a
 * tile, which has room for whole units. */
bool unit_rows(unit_match *m, tarn_unit_tensor *t) {
  const tarn_unit_plan *p = m->p;
  tarn_coordinate c = {.step = 1, .rows = TARN_NONE};
  if (p->form.m == 1) return true;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->at[i].n; k++) {
      if (t->at[i].dim[k] != p->rows) continue;
      if (t->at[i].by[k] != 1) return unit_lies(m, "rows of a unit that are no neighbours");
      c = t->at[i];
      c.rows = p->rows;
      t->n--;
      memmove(&t->at[i], &t->at[i + 1], (t->n - i) * sizeof c);
      i = TARN_UNIT_COORDS;
      break;
    }
  if (t->n == TARN_UNIT_COORDS) return unit_no(m, "an operand has too many dims");
  c.whole = p->form.m;
  t->at[t->n++] = c;
  return true;
}
bool unit_affine(const unit_match *m, const tarn_unit_tensor *t, uint32_t e, int64_t *block) {
  const tarn_ix *x = tarn_ix_get(m->L, e);
  uint32_t lane = t->along[1] == TARN_NONE ? e : tarn_ix_var(m->L, t->along[1], m->p->extent);
  *block = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->t[i].kind == TARN_IX_VAR) continue;
    if (x->t[i].kind != TARN_IX_DIV || x->t[i].arg != lane || x->t[i].by != t->lanes[1])
      return false;
    *block = x->t[i].coef;
  }
  return true;
}
/* What lies behind the last element of a block is multiplied by 0: of floats it may be no number.
 */
static bool padded_safely(const unit_match *m, const tarn_unit_tensor *t) {
  uint32_t d = t->along[1];
  bool ragged = d != TARN_NONE && d >= m->p->nacc && m->p->extent[d] % m->p->unit[d];
  return !ragged || !tarn_dtype_is_float(m->p->k->in_type[m->p->stage->read[t->read].src]);
}
bool unit_ends_inside(const unit_match *m, const tarn_unit_tensor *t) {
  int64_t last = t->base;
  for (uint32_t i = 0; i < t->n; i++) {
    const tarn_coordinate *c = &t->at[i];
    int64_t most = 0;
    for (uint32_t k = 0; k < c->n; k++) most += c->by[k] * (m->p->dim[c->dim[k]] - 1);
    if (c->clipped) most = tarn_min(most, c->hi - 1 - c->c);
    last += most * c->step;
  }
  const tarn_layout *l = &m->p->k->in[m->p->stage->read[t->read].src];
  return (last + 1) * t->lanes[1] <= tarn_layout_elems(l);
}
int64_t unit_step(const unit_match *m, const tarn_unit_tensor *t, int64_t coef, uint32_t d,
                  int64_t block) {
  if (m->p->dim[d] == 1 && d != t->along[1]) return coef % t->lanes[1] ? -1 : coef / t->lanes[1];
  if (d == t->along[1] && (coef != 1 || block % t->lanes[1])) return -1;
  if (d == t->along[1]) return (m->p->unit[d] + block) / t->lanes[1];
  int64_t step = coef * m->p->unit[d];
  return step % t->lanes[1] || step < 0 ? -1 : step / t->lanes[1];
}
/* Coordinates of what is read at a flat address. */
bool unit_coords(unit_match *m, tarn_unit_tensor *t, const tarn_imap *map) {
  const tarn_unit_plan *p = m->p;
  uint32_t done = 0;
  int64_t block = 0;
  if (map->nin != 1 || !unit_affine(m, t, map->e[0], &block))
    return unit_lies(m, "an operand is read by a division");
  const tarn_ix *e = tarn_ix_get(m->L, map->e[0]);
  for (uint32_t g = 0; g < map->nguard; g++)
    if (tarn_ix_dims(m->L, map->guard[g].e) >> t->along[1] & 1)
      return unit_lies(m, "padding along the elements of an entry");
  if (e->c % t->lanes[1])
    return unit_lies(m, "an operand that begins within an entry of %lld elements",
                     (long long)t->lanes[1]);
  t->base = e->c / t->lanes[1];
  for (uint32_t round = 0; round < p->n; round++) { /* by ascending steps */
    uint32_t next = TARN_NONE;
    int64_t least = INT64_MAX;
    for (uint32_t d = 0; d < p->n; d++) {
      int64_t coef = tarn_ix_coef(m->L, map->e[0], d);
      if (!coef || done >> d & 1) continue;
      int64_t step = unit_step(m, t, coef, d, block);
      if (step < 0)
        return unit_lies(m, "a step of %lld elements along d%u, no entries of %lld",
                         (long long)coef, d, (long long)t->lanes[1]);
      if (step < least) {
        least = step;
        next = d;
      }
    }
    if (next == TARN_NONE) break;
    done |= 1u << next;
    if (p->dim[next] > 1 &&
        !plan_coordinate_add(m->L, t->at, &t->n, TARN_UNIT_COORDS, next, least, p->dim, map))
      return unit_no(m, "an operand has too many dims");
  }
  outermost_first(t);
  if (!guards_kept(m, t, map)) return false;
  if (!padded_safely(m, t)) return unit_no(m, "a sum of floats that is no whole number of units");
  return unit_ends_inside(m, t) ||
         unit_lies(m, "the last entry of an operand is not all in its memory");
}
/* Coordinates of an operand along the unit's columns that is no constant. An entry is a whole
 * operand of the unit, or a row of one: then as many neighbours along the other dim follow in its
 * memory. */
static bool column_coords(unit_match *m, tarn_unit_tensor *t, const tarn_imap *map) {
  const tarn_unit_plan *p = m->p;
  const tarn_hw_operand *o = &p->hw->intrin[p->product].op[p->form.operand[1]];
  bool sums = p->form.role[1][o->n - 1] == TARN_HW_K; /* side by side */
  uint32_t fast = sums ? p->sum : p->columns, slow = sums ? p->columns : p->sum;
  int64_t elements = t->lanes[0] * t->lanes[1], side = p->unit[fast], block = 0;
  tarn_unit_tensor like = {.lanes = {1, side}, .along = {TARN_NONE, fast}};
  if (map->nin != 1 || map->nguard || !unit_affine(m, &like, map->e[0], &block))
    return unit_lies(m, "a second factor that is read by a division or with padding");
  const tarn_ix *e = tarn_ix_get(m->L, map->e[0]);
  int64_t next = tarn_ix_coef(m->L, map->e[0], slow);
  if (p->extent[fast] % side || p->extent[slow] % p->unit[slow])
    return unit_no(m, "a second factor, no constant, that is no whole number of units");
  if (tarn_ix_coef(m->L, map->e[0], fast) != 1 || (t->each == 1 && next != side) ||
      next % (elements / t->lanes[sums ? 0 : 1]) ||
      (p->dim[fast] > 1 && (side + block) % elements) || e->c % elements)
    return unit_lies(m, "a second factor that does not lie in entries of %lld elements",
                     (long long)elements);
  t->base = e->c / elements;
  for (uint32_t d = 0; d < p->n; d++) {
    int64_t coef = tarn_ix_coef(m->L, map->e[0], d);
    int64_t step = d == fast ? side + block : coef * p->unit[d];
    if (!coef || p->dim[d] == 1 || (d == slow && t->each > 1)) continue;
    if (step < 0 || step % elements || t->n == TARN_UNIT_COORDS - 1)
      return unit_lies(m, "a step of %lld elements along d%u, no entries of %lld", (long long)coef,
                       d, (long long)elements);
    t->at[t->n++] = (tarn_coordinate){.step = step / elements, .n = 1, .dim = {d}, .by = {1}};
  }
  outermost_first(t);
  if (t->each > 1) {
    t->at[t->n++] = (tarn_coordinate){.step = next / elements,
                                      .n = 1,
                                      .dim = {slow},
                                      .by = {t->each},
                                      .many = t->each,
                                      .rows = TARN_NONE};
    t->each = 1;
  }
  return true;
}
/* A constant's coordinates: each dim that it depends on. */
void unit_packed(unit_match *m, tarn_unit_tensor *t, const tarn_imap *map) {
  uint32_t dims = 0;
  for (uint32_t a = 0; a < map->nin; a++) dims |= tarn_ix_dims(m->L, map->e[a]);
  for (uint32_t g = 0; g < map->nguard; g++) dims |= tarn_ix_dims(m->L, map->guard[g].e);
  t->packed = true;
  t->n = 0;
  for (uint32_t d = 0; d < m->p->n; d++)
    if ((dims >> d & 1) && m->p->dim[d] > 1 && t->n < TARN_UNIT_COORDS)
      t->at[t->n++] = (tarn_coordinate){.n = 1, .dim = {d}, .by = {1}, .step = 1};
}

/* ---------------------------------------------------------------- the product */
const tarn_imap *unit_map(const unit_match *m, uint32_t read) {
  return tarn_imap_get(m->L, m->p->stage->read[read].map);
}
static bool depends(const unit_match *m, uint32_t read, uint32_t d) {
  const tarn_imap *map = unit_map(m, read);
  for (uint32_t a = 0; a < map->nin; a++)
    if (tarn_ix_dims(m->L, map->e[a]) >> d & 1) return true;
  return false;
}
/* Does intrinsic i multiply like the stage, its rows being read number `rows`? */
static bool multiplies(unit_match *m, uint32_t i, uint32_t rows) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_intrinsic *x = &p->hw->intrin[i];
  const tarn_func *f = tarn_fn_get(m->L, p->stage->fn);
  if (!x->nop || !tarn_dtype_size(x->op[0].dtype)) return false;
  if (!tarn_hw_sums_products(m->L, p->hw, i, &p->form) || p->form.red != f->red) return false;
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t read = k ? 1 - rows : rows;
    if (x->op[p->form.operand[k]].dtype != p->k->in_type[p->stage->read[read].src]) return false;
    if (p->stage->read[read].stage) return false;
  }
  return tarn_hw_same_product(m->L, p->form.body, f->body, rows == 1);
}
/* The element type of what the unit sums. */
static bool result_lane(const unit_match *m, uint32_t d, int64_t lanes) {
  const tarn_layout *o = &m->p->k->out[0];
  if (o->block) return o->baxis == d && o->block == lanes;
  return o->stride[d] == 1 && m->p->extent[d] % lanes == 0;
}
/* What the unit takes at once of each dim. */
static void in_units(tarn_unit_plan *p) {
  for (uint32_t d = 0; d < p->n; d++) {
    p->unit[d] = d == p->sum ? p->form.k : d == p->columns ? p->form.n : 1;
    p->dim[d] = tarn_ceildiv(p->extent[d], p->unit[d]);
  }
}
/* The dims along the unit's columns and sum. */
static bool choose_dims(unit_match *m, uint32_t rows) {
  tarn_unit_plan *p = m->p;
  bool alone = false, shared = false;
  p->rows = p->columns = p->sum = TARN_NONE;
  for (uint32_t d = 0; d < p->nacc; d++) {
    bool r = depends(m, rows, d), c = depends(m, 1 - rows, d);
    alone |= c && !r;
    shared |= c && r;
    if (((c && !r) || p->extent[d] == 1) && result_lane(m, d, p->form.n)) p->columns = d;
    if (r && !c && (p->rows == TARN_NONE || p->extent[d] > p->extent[p->rows])) p->rows = d;
  }
  for (uint32_t d = p->nacc; d < p->n; d++)
    if (depends(m, rows, d) && depends(m, 1 - rows, d) &&
        tarn_ix_coef(m->L, unit_map(m, rows)->e[0], d) == 1)
      p->sum = d;
  if (p->columns == TARN_NONE && shared && !alone)
    return unit_no(m, "no dim of the result is the weights' alone, so rows share no columns");
  if (p->columns == TARN_NONE)
    return unit_because(m, TARN_UNIT_RESULT_LIES,
                        "no dim of the result lies in entries of %lld elements",
                        (long long)p->form.n);
  if (p->sum == TARN_NONE)
    return unit_lies(m, "no dim of the sum lies in entries of %lld elements", (long long)p->form.k);
  in_units(p);
  return true;
}
tarn_unit_tensor *unit_tensor(unit_match *m, tarn_unit_what what, uint32_t read, uint32_t memory) {
  tarn_unit_plan *p = m->p;
  tarn_unit_tensor *t = &p->tensor[p->ntensor];
  if (p->ntensor == TARN_UNIT_TENSORS) return NULL;
  p->ntensor++;
  *t = (tarn_unit_tensor){.what = what,
                          .read = read,
                          .memory = memory,
                          .transfer = unit_transfer_to(p->hw, memory),
                          .source = TARN_NONE,
                          .slots = 1,
                          .each = 1,
                          .lanes = {1, 1},
                          .along = {TARN_NONE, TARN_NONE}};
  return t;
}
tarn_unit_tensor *unit_like_sums(unit_match *m, tarn_unit_what what) {
  const tarn_unit_tensor *sums = &m->p->tensor[m->p->sums];
  tarn_unit_tensor *t = unit_tensor(m, what, TARN_NONE, sums->memory);
  if (!t) return NULL;
  *t = *sums;
  t->what = what;
  t->read = t->transfer = TARN_NONE;
  return t;
}
static bool is_constant(const unit_match *m, uint32_t read) {
  return m->p->k->in_const[m->p->stage->read[read].src];
}
/* Dim d becomes that of the rows where it fills the unit better than the one that is, or as well
 * and its neighbours lie nearer to one another in main memory: they come in one row. */
static void offer_rows(tarn_unit_plan *p, uint32_t d, int64_t step, int64_t *nearest) {
  int64_t n = p->extent[d];
  int64_t units = tarn_ceildiv(n, p->form.m);
  if (p->rows != TARN_NONE) {
    int64_t is = p->extent[p->rows];
    int64_t has = tarn_ceildiv(is, p->form.m);
    if (n * has < is * units || (n * has == is * units && step >= *nearest)) return;
  }
  p->rows = d;
  *nearest = step;
}
void unit_fullest_rows(unit_match *m) {
  tarn_unit_plan *p = m->p;
  int64_t nearest = 0;
  p->rows = TARN_NONE;
  for (uint32_t d = 0; d < p->nacc && p->form.m > 1; d++)
    if (d != p->columns && p->extent[d] > 1) offer_rows(p, d, p->k->out[0].stride[d], &nearest);
}
/* Of a unit of several rows: a dim whose neighbours are those of the operand. */
static void choose_rows(unit_match *m, const tarn_unit_tensor *t, uint32_t columns) {
  tarn_unit_plan *p = m->p;
  int64_t nearest = 0;
  p->rows = TARN_NONE;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->at[i].n; k++) {
      uint32_t d = t->at[i].dim[k];
      if (d >= p->nacc || t->at[i].by[k] != 1 || depends(m, columns, d)) continue;
      offer_rows(p, d, t->at[i].step, &nearest);
    }
}
static bool factor(unit_match *m, tarn_unit_what what, uint32_t read, uint32_t which) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_operand *o = &p->hw->intrin[p->product].op[p->form.operand[which]];
  uint32_t memory = unit_memory(p->hw, o->memory);
  if (memory == TARN_NONE) return unit_no(m, "operand %s is in no memory", o->name);
  tarn_unit_tensor *t = unit_tensor(m, what, read, memory);
  int64_t elements = entry_of(m, memory) / (int64_t)tarn_dtype_size(o->dtype);
  if (t->transfer == TARN_NONE) return unit_no(m, "no transfer fills %s", p->hw->mem[memory].name);
  t->lanes[1] = what == TARN_UNIT_ROWS ? p->form.k : elements / p->form.n;
  t->lanes[0] = elements / t->lanes[1];
  t->along[1] = p->sum;
  if (what == TARN_UNIT_COLUMNS) t->each = tarn_hw_operand_bytes(o) / (int64_t)entry_of(m, memory);
  t->along[0] = what == TARN_UNIT_COLUMNS ? p->columns : TARN_NONE;
  if (what == TARN_UNIT_ROWS && t->lanes[0] != 1)
    return unit_no(m, "entries of %s are no rows", p->hw->mem[memory].name);
  if (is_constant(m, read) && (what == TARN_UNIT_COLUMNS || p->form.m == 1)) {
    unit_packed(m, t, unit_map(m, read));
    return true;
  }
  if (what == TARN_UNIT_COLUMNS) return column_coords(m, t, unit_map(m, read));
  if (!unit_coords(m, t, unit_map(m, read))) return false;
  if (p->form.m > 1) choose_rows(m, t, 1 - read);
  return unit_rows(m, t);
}

/* ---------------------------------------------------------------- sums and result */
static void own_coords(const unit_match *m, tarn_unit_tensor *t) {
  const tarn_unit_plan *p = m->p;
  const tarn_layout *o = &p->k->out[0];
  t->n = 0;
  for (uint32_t d = 0; d < p->nacc && t->n < TARN_UNIT_COORDS; d++) {
    if (p->dim[d] == 1) continue;
    int64_t step = o->stride[d];
    if (d != p->columns) step /= t->lanes[1];
    else if (o->block) step /= t->lanes[1];
    if (d == p->columns && p->wide) step *= p->wide;
    t->at[t->n++] = (tarn_coordinate){.n = 1, .dim = {d}, .by = {1}, .step = step};
  }
  if (p->wide) t->at[t->n++] = (tarn_coordinate){.step = 1, .many = p->wide, .rows = TARN_NONE};
  outermost_first(t);
}
static bool result_lies_well(unit_match *m, int64_t lanes) {
  const tarn_layout *o = &m->p->k->out[0];
  for (uint32_t d = 0; d < m->p->nacc; d++)
    if ((d != m->p->columns || o->block) && m->p->extent[d] > 1 && o->stride[d] % lanes)
      return unit_because(m, TARN_UNIT_RESULT_LIES,
                          "the result's d%u has a step of %lld elements, no entries of %lld", d,
                          (long long)o->stride[d], (long long)lanes);
  return true;
}
bool unit_sums(unit_match *m) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_operand *o = &p->hw->intrin[p->product].op[2];
  uint32_t memory = unit_memory(p->hw, o->memory);
  if (memory == TARN_NONE) return unit_no(m, "operand %s is in no memory", o->name);
  tarn_unit_tensor *t = unit_tensor(m, TARN_UNIT_SUMS, TARN_NONE, memory);
  t->transfer = TARN_NONE;
  t->lanes[1] = p->form.n;
  t->along[1] = p->columns;
  p->sums = p->ntensor - 1;
  own_coords(m, t);
  return unit_rows(m, t);
}
bool unit_result(unit_match *m, uint32_t memory, uint32_t transfer) {
  tarn_unit_plan *p = m->p;
  tarn_unit_tensor *t = unit_tensor(m, TARN_UNIT_RESULT, TARN_NONE, memory);
  if (!t) return unit_no(m, "too many operands");
  t->transfer = transfer;
  t->lanes[1] = tarn_hw_transfer_bytes(p->hw, &p->hw->transfer[transfer]) /
                (int64_t)tarn_dtype_size(p->k->out_type[0]);
  t->along[1] = p->columns;
  p->result = p->ntensor - 1;
  if (t->lanes[1] != p->form.n) return unit_no(m, "entries of the result are no columns");
  own_coords(m, t);
  return result_lies_well(m, t->lanes[1]) && unit_rows(m, t);
}

/* ---------------------------------------------------------------- loads by the identity */
bool unit_loads(unit_match *m, uint32_t i, uint32_t read) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_intrinsic *x = &p->hw->intrin[i];
  if (!tarn_hw_sums_products(m->L, p->hw, i, &p->form)) return false;
  if (p->form.m != 1 || p->form.n != p->form.k) return false;
  tarn_dtype type = x->op[2].dtype;
  uint32_t a = tarn_fx_cast(m->L, type, tarn_fx_hole(m->L, 0));
  uint32_t b = tarn_fx_cast(m->L, type, tarn_fx_hole(m->L, 1));
  return tarn_hw_same_product(m->L, p->form.body, tarn_fx_op(m->L, TARN_FX_MUL, a, b, 0), false) &&
         !tarn_dtype_is_float(type) && /* a sum of zeros and a number may be another number */
         p->form.red == tarn_reducer_of(m->L, TARN_RED_SUM, type) &&
         x->op[p->form.operand[0]].dtype == p->k->in_type[p->stage->read[read].src];
}
bool unit_lane(unit_match *m, uint32_t read) {
  tarn_unit_plan *p = m->p;
  const tarn_imap *map = unit_map(m, read);
  p->rows = p->columns = p->sum = TARN_NONE;
  for (uint32_t d = 0; d < p->nacc && map->nin == 1; d++)
    if (tarn_ix_coef(m->L, map->e[0], d) == 1 && result_lane(m, d, p->form.n)) p->columns = d;
  if (p->columns == TARN_NONE)
    return unit_because(m, TARN_UNIT_RESULT_LIES, "no dim lies in entries of %lld elements",
                        (long long)p->form.n);
  in_units(p);
  return true;
}
bool unit_loaded(unit_match *m, uint32_t i, uint32_t read) {
  tarn_unit_plan *p = m->p;
  const tarn_hw_intrinsic *x = &p->hw->intrin[i];
  const tarn_hw_operand *rows = &x->op[p->form.operand[0]];
  const tarn_hw_operand *columns = &x->op[p->form.operand[1]];
  uint32_t in = unit_memory(p->hw, rows->memory);
  uint32_t by = unit_memory(p->hw, columns->memory);
  p->ntensor = p->nstep = 0;
  p->product = i;
  if (in == TARN_NONE || by == TARN_NONE) return unit_no(m, "a unit's operand is in no memory");
  if (!unit_lane(m, read)) return false;
  tarn_unit_tensor *t = unit_tensor(m, TARN_UNIT_ROWS, read, in);
  t->lanes[1] = p->form.k;
  t->along[1] = p->columns;
  if (!unit_coords(m, t, unit_map(m, read))) return false;
  t = unit_tensor(m, TARN_UNIT_ONE, TARN_NONE, by);
  t->packed = true;
  t->each = tarn_hw_operand_bytes(columns) / (int64_t)entry_of(m, by);
  return unit_sums(m);
}
/* ---------------------------------------------------------------- the kernel */
/* The operand along the unit's columns is a constant where one is. */
static bool weights(unit_match *m, uint32_t rows) {
  return is_constant(m, 1 - rows) || !is_constant(m, rows);
}
static bool by_product(unit_match *m, uint32_t i, uint32_t rows) {
  tarn_unit_plan *p = m->p;
  p->ntensor = p->nstep = 0;
  p->way = TARN_UNIT_MULTIPLIES;
  p->product = i;
  return choose_dims(m, rows) && factor(m, TARN_UNIT_ROWS, rows, 0) &&
         factor(m, TARN_UNIT_COLUMNS, 1 - rows, 1) && unit_sums(m) && unit_epilogue(m);
}
static bool find(unit_match *m) {
  tarn_unit_plan *p = m->p;
  const tarn_nest *n = tarn_nest_get(m->L, p->k->nest);
  if (p->k->nout == 1 && unit_whole(m)) return true;
  if (n->nstage != 1 || n->depth || p->k->nout != 1)
    return unit_no(m, "a kernel of several stages or results");
  const tarn_func *f = tarn_fn_get(m->L, p->stage->fn);
  if (p->k->out[0].n != p->nacc) return unit_no(m, "the result has other dims than the loops");
  m->epi = f->epi;
  m->first = f->nops;
  if (f->red == TARN_NONE) return unit_map_kernel(m);
  if (p->n == p->nacc && tarn_fx_get(m->L, f->body)->op == TARN_FX_MUL)
    return unit_no(m, "a product of which nothing is summed");
  if (f->nops != 2) return unit_reduction(m);
  for (uint32_t i = 0; i < p->hw->nintrin; i++)
    for (uint32_t rows = 0; rows < 2; rows++)
      if (multiplies(m, i, rows) && weights(m, rows) && by_product(m, i, rows)) return true;
  return unit_else(m, "no unit multiplies these types");
}
bool tarn_unit_match(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, tarn_unit_plan *p,
                     const char **why) {
  unit_match m = {.L = L, .cx = tarn_lang_ctx(L), .p = p};
  const tarn_nest *n = tarn_nest_get(L, k->nest);
  tarn_stage_dims d = tarn_stage_dims_of(n, n->nstage - 1);
  *p = (tarn_unit_plan){.L = L, .hw = hw, .k = k, .stage = d.stage, .n = d.n, .nacc = d.nacc};
  p->product = p->store = p->fold = TARN_NONE;
  memcpy(p->extent, d.dim, sizeof d.dim);
  bool ok = find(&m);
  if (why) *why = ok ? NULL : m.why;
  p->reason = m.reason;
  return ok;
}
