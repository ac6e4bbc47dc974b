/* Bits to instructions, by the tables of the description. */
#include "sim/internal.h"
#include <string.h>

/* width: 62 at most */
static int64_t bits_at(const uint8_t *bits, uint32_t at, uint32_t width) {
  uint64_t v = bits[at / 8] >> at % 8;
  for (uint32_t have = 8 - at % 8; have < width; have += 8)
    v |= (uint64_t)bits[(at + have) / 8] << have;
  return (int64_t)(v & (((uint64_t)1 << width) - 1));
}
int64_t sim_field(const tarn_hw_format *f, const uint8_t *bits, uint32_t field) {
  const tarn_hw_field *w = &f->field[field];
  int64_t v = bits_at(bits, w->at, w->width);
  return w->is_signed && v >> (w->width - 1) ? v - ((int64_t)1 << w->width) : v;
}
int64_t sim_value(const sim_instruction *x, uint32_t place) {
  if (tarn_hw_is_register(place)) return x->reg[place & ~TARN_HW_REGISTER].value;
  return place == TARN_NONE ? 0 : sim_field(x->format, x->bits, place);
}

/* ---------------------------------------------------------------- which one it is */
static bool matches(const tarn_hw *hw, const tarn_hw_instruction *x, const uint8_t *bits,
                    const sim_set *reg) {
  sim_instruction as = {x, &hw->format[x->format], bits, reg};
  for (uint32_t i = 0; i < x->nis; i++)
    if (sim_value(&as, x->is[i].field) != x->is[i].value) return false;
  return true;
}
enum { PLACES = 128 };
/* Fields and registers whose numbers an instruction uses. */
static uint32_t places_of(const tarn_hw_instruction *x, uint32_t *out) {
  const uint32_t one[] = {x->local, x->main,   x->rows,   x->entries,    x->stride,
                          x->block, x->pad[0], x->pad[1], x->pad[2],     x->pad[3],
                          x->begin, x->end,    x->clear,  x->accumulate, x->immediate};
  uint32_t n = 0;
  for (uint32_t i = 0; i < sizeof one / sizeof *one; i++) out[n++] = one[i];
  for (uint32_t i = 0; i < x->nloop; i++) out[n++] = x->loop[i];
  for (uint32_t i = 0; i < x->nindex && n + 1 + x->nloop < PLACES; i++) {
    if (x->step == TARN_NONE) out[n++] = x->index[i].field;
    for (uint32_t k = 0; k < x->nloop; k++) out[n++] = x->index[i].factor[k];
  }
  return n;
}
static bool uses(const tarn_hw_instruction *x, uint32_t field) {
  uint32_t place[PLACES], n = places_of(x, place);
  bool used = sim_is_flag(x, field);
  for (uint32_t i = 0; i < n; i++) used |= field == place[i];
  for (uint32_t i = 0; i < x->nset; i++) used |= field == x->set[i].field;
  return used;
}
static void check_registers(tarn_ctx *cx, const tarn_sim_program *p, uint32_t i,
                            const sim_instruction *x) {
  uint32_t place[PLACES], n = places_of(x->is, place);
  for (uint32_t k = 0; k < n; k++) {
    uint32_t reg = place[k] & ~TARN_HW_REGISTER;
    if (tarn_hw_is_register(place[k]) && x->reg[reg].by == TARN_NONE)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "%s/stream.bin: instruction %u (%s): it uses register %s, which none before it "
                 "has set",
                 p->dir, i, x->is->name, p->hw->reg[reg].name);
  }
}
/* What an instruction does not use is 0: another encoder would have meant something by it. */
static void check_unused(tarn_ctx *cx, const tarn_sim_program *p, uint32_t i,
                         const sim_instruction *x) {
  const tarn_hw_format *f = x->format;
  for (uint32_t k = 0; k < f->nfield; k++)
    if (!uses(x->is, k) && sim_field(f, x->bits, k))
      tarn_raise(cx, TARN_BAD_INPUT,
                 "%s/stream.bin: instruction %u (%s): field %s is %lld, it does not use it", p->dir,
                 i, x->is->name, f->field[k].name, (long long)sim_field(f, x->bits, k));
  for (uint32_t bit = 0; bit < f->bits; bit++) {
    bool known = false;
    for (uint32_t k = 0; k < f->nfield && !known; k++)
      known = bit >= f->field[k].at && bit < f->field[k].at + f->field[k].width;
    if (!known && bits_at(x->bits, bit, 1))
      tarn_raise(cx, TARN_BAD_INPUT,
                 "%s/stream.bin: instruction %u (%s): bit %u is 1, it belongs to no field", p->dir,
                 i, x->is->name, bit);
  }
}
static const sim_set *no_registers(tarn_ctx *cx, const tarn_hw *hw) {
  sim_set *reg = hw->nregister ? TARN_ARRAY(cx, sim_set, hw->nregister) : NULL;
  for (uint32_t i = 0; i < hw->nregister; i++) reg[i] = (sim_set){-1, TARN_NONE};
  return reg;
}
/* The registers behind instruction number i, x. */
static const sim_set *set(tarn_ctx *cx, const tarn_hw *hw, uint32_t i, const sim_instruction *x) {
  if (!x->is->nset) return x->reg;
  sim_set *reg = tarn_copy(cx, x->reg, hw->nregister * sizeof *reg);
  for (uint32_t k = 0; k < x->is->nset; k++)
    reg[x->is->set[k].reg] = (sim_set){sim_value(x, x->is->set[k].field), i};
  return reg;
}
sim_instruction *sim_decode(tarn_ctx *cx, const tarn_sim_program *p, uint32_t first,
                            uint32_t count) {
  const tarn_hw *hw = p->hw;
  uint32_t bytes = hw->format[hw->instruction[0].format].bits / 8;
  sim_instruction *x = TARN_ARRAY(cx, sim_instruction, count);
  const sim_set *reg = no_registers(cx, hw);
  for (uint32_t i = 0; i < count; i++) {
    x[i].bits = p->stream + (size_t)(first + i) * bytes, x[i].reg = reg;
    for (uint32_t k = 0; k < hw->ninstruction && !x[i].is; k++)
      if (matches(hw, &hw->instruction[k], x[i].bits, reg)) x[i].is = &hw->instruction[k];
    if (!x[i].is)
      tarn_raise(cx, TARN_BAD_INPUT,
                 "%s/stream.bin: instruction %u: these bits are no instruction of %s", p->dir,
                 first + i, hw->name);
    x[i].format = &hw->format[x[i].is->format];
    check_unused(cx, p, first + i, &x[i]), check_registers(cx, p, first + i, &x[i]);
    reg = set(cx, hw, i, &x[i]);
  }
  return x;
}

/* ---------------------------------------------------------------- as text */
bool sim_is_flag(const tarn_hw_instruction *x, uint32_t field) {
  bool flag = false;
  for (uint32_t i = 0; i < x->nis; i++) flag |= field == x->is[i].field;
  for (uint32_t i = 0; i < x->npop; i++) flag |= field == x->pop[i].field;
  for (uint32_t i = 0; i < x->npush; i++) flag |= field == x->push[i].field;
  return flag;
}
void tarn_sim_disassemble(tarn_lang *L, const tarn_sim_program *p, tarn_buf *b) {
  const sim_instruction *all = sim_decode(tarn_lang_ctx(L), p, 0, p->count);
  for (uint32_t i = 0; i < p->count; i++) {
    const sim_instruction *x = &all[i];
    tarn_buf_fmt(b, "%u %s %s", i, p->hw->queue[x->is->queue].name, x->is->name);
    for (uint32_t k = 0; k < x->is->npop; k++)
      if (sim_value(x, x->is->pop[k].field))
        tarn_buf_fmt(b, " pop:%s", p->hw->token[x->is->pop[k].token].name);
    for (uint32_t k = 0; k < x->is->npush; k++)
      if (sim_value(x, x->is->push[k].field))
        tarn_buf_fmt(b, " push:%s", p->hw->token[x->is->push[k].token].name);
    for (uint32_t k = 0; k < x->format->nfield; k++)
      if (!sim_is_flag(x->is, k) && sim_value(x, k))
        tarn_buf_fmt(b, " %s=%lld", x->format->field[k].name, (long long)sim_value(x, k));
    tarn_buf_str(b, "\n");
  }
}
