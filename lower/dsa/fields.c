/* The numbers of an instruction: in its fields, and in registers that others set before it.
 *
 * A number that the description fixes, (is PLACE VALUE), is set first. A second number in the same
 * place raises: the plan (plan/unit_issue.c, plan/unit_rows.c) takes only numbers that fit. */
#include "lower/dsa/dsa.h"
#include <string.h>

enum { REGISTERS = ~TARN_HW_REGISTER };

static const char *name_of(const dsa_emitter *e, uint32_t place) {
  if (!tarn_hw_is_register(place)) return e->hw->format[e->is->format].field[place].name;
  return e->hw->reg[place & (uint32_t)REGISTERS].name;
}
void dsa_set(dsa_emitter *e, uint32_t place, int64_t v) {
  if (place == TARN_NONE) return;
  bool reg = tarn_hw_is_register(place);
  uint32_t i = reg ? place & (uint32_t)REGISTERS : place;
  bool *given = reg ? &e->needs[i] : &e->given[i];
  int64_t *at = reg ? &e->need[i] : &e->field[i];
  if (*given && *at != v)
    tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s: instruction %s: %s %s has %lld, and should have %lld",
               e->hw->name, e->is->name, reg ? "register" : "field", name_of(e, place),
               (long long)*at, (long long)v);
  *given = true;
  *at = v;
}
void dsa_instruct(dsa_emitter *e, const tarn_hw_instruction *is) {
  uint32_t n = e->hw->format[is->format].nfield + 1;
  e->is = is;
  e->field = TARN_ARRAY(e->s->cx, int64_t, n);
  e->given = TARN_ARRAY(e->s->cx, bool, n);
  memset(e->needs, 0, e->hw->nregister * sizeof *e->needs);
  for (uint32_t i = 0; i < is->nis; i++) dsa_set(e, is->is[i].field, is->is[i].value);
}
int64_t dsa_held(const dsa_emitter *e, uint32_t place, int64_t v) {
  tarn_hw_range r = tarn_hw_range_of(e->hw, e->is, place, v);
  if (tarn_hw_is_register(place) && tarn_hw_has(r, e->reg[place & (uint32_t)REGISTERS].value))
    return e->reg[place & (uint32_t)REGISTERS].value;
  return tarn_hw_has(r, v) ? v : r.lo;
}

/* ---------------------------------------------------------------- registers */
static bool lacks(const dsa_emitter *e, uint32_t reg) {
  return e->needs[reg] && (!e->reg[reg].known || e->reg[reg].value != e->need[reg]);
}
/* What instruction x, which sets registers, has in the field of one of them. */
static int64_t value_for(const dsa_emitter *e, const tarn_hw_instruction *x, const tarn_hw_set *s) {
  tarn_hw_range r = tarn_hw_range_of(e->hw, x, s->field, 0);
  int64_t v = e->needs[s->reg] ? e->need[s->reg] : e->reg[s->reg].value;
  return tarn_hw_has(r, v) ? v : tarn_hw_has(r, 0) ? 0 : r.lo;
}
/* It sets a register that is lacking, and none to another number than is needed. */
static bool helps(const dsa_emitter *e, const tarn_hw_instruction *x) {
  bool some = false;
  for (uint32_t k = 0; k < x->nset; k++) {
    uint32_t reg = x->set[k].reg;
    some |= lacks(e, reg);
    if (e->needs[reg] && value_for(e, x, &x->set[k]) != e->need[reg]) return false;
  }
  return some && x->does == TARN_HW_SETS;
}
/* The registers that the last instruction sets. */
static void note_registers(dsa_emitter *e, const tarn_hw_instruction *x, const int64_t *field) {
  for (uint32_t k = 0; k < x->nset; k++)
    e->reg[x->set[k].reg] =
        (dsa_register){field[x->set[k].field], true, (uint32_t)e->s->x.n - 1, x->set[k].field};
}
static void set_registers(dsa_emitter *e, const tarn_hw_instruction *x) {
  int64_t *f = TARN_ARRAY(e->s->cx, int64_t, e->hw->format[x->format].nfield + 1);
  for (uint32_t k = 0; k < x->nset; k++) f[x->set[k].field] = value_for(e, x, &x->set[k]);
  dsa_append(e->s, x, f, NULL, 0);
  note_registers(e, x, f);
}
static const tarn_hw_instruction *helping(const dsa_emitter *e) {
  for (uint32_t i = 0; i < e->hw->ninstruction; i++)
    if (helps(e, &e->hw->instruction[i])) return &e->hw->instruction[i];
  return NULL;
}
void dsa_emit(dsa_emitter *e, const dsa_access *a, uint32_t n) {
  for (const tarn_hw_instruction *x; (x = helping(e));) set_registers(e, x);
  for (uint32_t r = 0; r < e->hw->nregister; r++)
    if (lacks(e, r))
      tarn_raise(e->s->cx, TARN_BAD_INPUT, "%s: instruction %s: nothing sets register %s to %lld",
                 e->hw->name, e->is->name, e->hw->reg[r].name, (long long)e->need[r]);
  memset(e->needs, 0, e->hw->nregister * sizeof *e->needs);
  for (uint32_t k = 0; k < e->is->nset; k++)
    if (!e->given[e->is->set[k].field])
      e->field[e->is->set[k].field] = value_for(e, e->is, &e->is->set[k]);
  dsa_append(e->s, e->is, e->field, a, n);
  note_registers(e, e->is, e->field);
}

/* ---------------------------------------------------------------- places that are not known yet */
void dsa_part_begins(dsa_emitter *e, uint32_t place) {
  if (tarn_hw_is_register(place)) e->reg[place & (uint32_t)REGISTERS].known = false;
}
void dsa_part_of(dsa_emitter *e, dsa_part part, uint32_t place, int64_t entry) {
  dsa_fixup f = {.instruction = e->s->x.n - 1, .field = place, .part = part, .entry = entry};
  if (tarn_hw_is_register(place)) {
    dsa_register *r = &e->reg[place & (uint32_t)REGISTERS];
    f.instruction = r->by;
    f.field = r->field;
    r->known = false;
  }
  tarn_push(e->s->cx, &e->image->fixup, f);
}
