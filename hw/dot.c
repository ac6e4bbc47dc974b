/* Dot-product instructions and other units for products: found by what they mean. */
#include "access/fx_internal.h"
#include "hw/internal.h"
#include <string.h>

/* Lanes of groups of adjacent elements: each lane of the result sums the products of its group, and
 * goes on from what the accumulator holds. */
static bool is_dot(tarn_lang *L, const tarn_hw *hw, uint32_t i, tarn_hw_form *f) {
  const tarn_hw_intrinsic *n = &hw->intrin[i];
  if (!n->encoding || !tarn_hw_sums_products(L, hw, i, f) || f->m != 1 || f->k < 2) return false;
  for (uint32_t k = 0; k < 2; k++) {
    const tarn_hw_operand *o = &n->op[f->operand[k]];
    if (o->n != 2 || o->dim[0] != f->n || o->dim[1] != f->k || f->role[k][1] != TARN_HW_K)
      return false;
  }
  return n->op[2].n == 1 && n->op[2].dim[0] == f->n;
}

typedef struct factors {
  const tarn_lang *L;
  bool exchanged;
} factors;
static bool is_factor(void *user, uint32_t hole, uint32_t g) {
  const factors *f = user;
  const tarn_fx *y = tarn_fx_get(f->L, g);
  return hole < 2 && y->op == TARN_FX_HOLE && y->hole == (f->exchanged ? 1 - hole : hole);
}
bool tarn_hw_same_product(const tarn_lang *L, uint32_t a, uint32_t b, bool exchanged) {
  return tarn_fx_match(L, a, b, true, is_factor, &(factors){L, exchanged});
}

/* Does an element of this type have the same value in the type that an instruction takes? */
static bool widens(tarn_dtype from, tarn_dtype to) {
  bool bytes = from == TARN_I8 || from == TARN_U8;
  return from == to || (bytes && to == TARN_I16);
}
static bool serves(tarn_lang *L, const tarn_hw_intrinsic *n, const tarn_hw_form *f, uint32_t body,
                   const tarn_dtype *type, bool exchanged, bool wider) {
  for (uint32_t k = 0; k < 2; k++) {
    tarn_dtype from = type[exchanged ? 1 - k : k], to = n->op[f->operand[k]].dtype;
    if (wider ? !widens(from, to) : from != to) return false;
  }
  return tarn_hw_same_product(L, f->body, body, exchanged);
}

typedef struct wanted {
  uint32_t body, red;
  const tarn_dtype *type;
} wanted;
/* Intrinsic i as an instruction that sums such products; false: it is none. */
static bool find_dot(tarn_lang *L, const tarn_hw *hw, uint32_t i, const wanted *w,
                     tarn_hw_dot *out) {
  const tarn_hw_intrinsic *n = &hw->intrin[i];
  tarn_hw_form f;
  if (n->op[0].dtype == TARN_F32 || !is_dot(L, hw, i, &f) || f.red != w->red) return false;
  bool exchanged = !serves(L, n, &f, w->body, w->type, false, true);
  if (exchanged && !serves(L, n, &f, w->body, w->type, true, true)) return false;
  *out = (tarn_hw_dot){.intrinsic = n, .lanes = f.n, .k = f.k};
  out->operand[0] = f.operand[exchanged], out->operand[1] = f.operand[!exchanged];
  const char *last = strrchr(n->encoding, ' ');
  out->apart = last && !strcmp(last, " add");
  for (uint32_t k = 0; k < 2; k++) out->widens[k] = n->op[out->operand[k]].dtype != w->type[k];
  return true;
}
/* Multiply-adds a cycle; of two with as many, the one that takes the elements as they are. */
static double peak(const tarn_hw_dot *d) {
  return d->intrinsic->ops * d->intrinsic->throughput - 1e-6 * (d->widens[0] + d->widens[1]);
}

uint32_t tarn_hw_dots(tarn_lang *L, const tarn_hw *hw, uint32_t body, uint32_t red,
                      const tarn_dtype type[2], tarn_hw_dot *out, uint32_t max) {
  enum { FOUND = 16 };
  const wanted w = {body, red, type};
  tarn_hw_dot d[FOUND];
  uint32_t n = 0, count = 0, best = 0;
  if (tarn_fx_get(L, body)->op != TARN_FX_MUL || type[0] == TARN_F32)
    return 0; /* what is not asked for needs no reading */
  for (uint32_t i = 0; i < hw->nintrin && n < FOUND; i++) {
    if (!find_dot(L, hw, i, &w, &d[n])) continue;
    if (peak(&d[n]) > peak(&d[best])) best = n;
    n++;
  }
  for (uint32_t i = 0; i < n && count < max; i++) {
    if (d[i].k != d[best].k) continue;
    uint32_t at = count++;
    for (; at > 0 && out[at - 1].lanes < d[i].lanes; at--) out[at] = out[at - 1];
    out[at] = d[i];
  }
  return count;
}

/* Are these, in either order, the types of the first two operands? */
static bool takes_types(const tarn_hw_intrinsic *n, const tarn_dtype *type) {
  if (n->nop < 3) return false;
  tarn_dtype a = n->op[0].dtype, b = n->op[1].dtype;
  return (a == type[0] && b == type[1]) || (a == type[1] && b == type[0]);
}

int64_t tarn_hw_multiplies(tarn_lang *L, const tarn_hw *hw, uint32_t body, uint32_t red,
                           const tarn_dtype type[2]) {
  tarn_hw_dot d[TARN_HW_DOTS];
  int64_t steps = 0;
  if (hw->kind == TARN_HW_CPU)
    return tarn_hw_dots(L, hw, body, red, type, d, TARN_HW_DOTS) ? d[0].k : 0;
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    const tarn_hw_intrinsic *n = &hw->intrin[i];
    tarn_hw_form f;
    if (!takes_types(n, type)) continue;
    tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, i);
    if (!tarn_hw_form_of(L, &m, &f) || !f.product || f.red != red || f.k < steps) continue;
    if (serves(L, n, &f, body, type, false, false) || serves(L, n, &f, body, type, true, false))
      steps = f.k;
  }
  return steps;
}

/* ---------------------------------------------------------------- instructions */
/* Of a transfer: numbers of it that are fixed. */
static uint32_t fixed_of(const tarn_hw *hw, const tarn_hw_instruction *x) {
  const uint32_t place[] = {x->rows,   x->entries, x->stride, x->block,
                            x->pad[0], x->pad[1],  x->pad[2], x->pad[3]};
  uint32_t n = 0;
  for (uint32_t i = 0; i < sizeof place / sizeof *place; i++) {
    tarn_hw_range r = tarn_hw_range_of(hw, x, place[i], 0);
    n += r.lo == r.hi;
  }
  return n;
}
const tarn_hw_instruction *tarn_hw_mover(const tarn_hw *hw, uint32_t transfer,
                                         const int64_t *immediate) {
  const tarn_hw_instruction *best = NULL;
  for (uint32_t i = 0; i < hw->ninstruction; i++) {
    const tarn_hw_instruction *x = &hw->instruction[i];
    if (x->does != TARN_HW_MOVES || x->transfer != transfer) continue;
    if (immediate && !tarn_hw_has(tarn_hw_range_of(hw, x, x->immediate, *immediate), *immediate))
      continue;
    if (!best || fixed_of(hw, x) < fixed_of(hw, best)) best = x; /* mostly there is one */
  }
  return best;
}
static bool starts(const tarn_hw *hw, const tarn_hw_instruction *x, tarn_hw_start start) {
  tarn_hw_range clear = tarn_hw_range_of(hw, x, x->clear, 0);
  tarn_hw_range goes_on = tarn_hw_range_of(hw, x, x->accumulate, 1);
  if (start == TARN_HW_CLEARS) return tarn_hw_has(clear, 1);
  return tarn_hw_has(clear, 0) && tarn_hw_has(goes_on, start == TARN_HW_GOES_ON);
}
const tarn_hw_instruction *tarn_hw_runner(const tarn_hw *hw, uint32_t intrinsic,
                                          tarn_hw_start start, const tarn_hw_instruction *behind) {
  const tarn_hw_instruction *x = behind ? behind + 1 : hw->instruction;
  for (; x && x < hw->instruction + hw->ninstruction; x++)
    if (x->does == TARN_HW_RUNS && x->intrinsic == intrinsic && starts(hw, x, start)) return x;
  return NULL;
}
int64_t tarn_hw_entry_elements(const tarn_hw *hw, tarn_dtype type) {
  int64_t n = 0;
  for (uint32_t i = 0; i < hw->nintrin && hw->kind == TARN_HW_DSA; i++)
    for (uint32_t o = 0; o < hw->intrin[i].nop; o++) {
      const tarn_hw_operand *x = &hw->intrin[i].op[o];
      if (x->immediate || x->dtype != type || !x->n) continue;
      if (n && n != x->dim[x->n - 1]) return 0;
      n = x->dim[x->n - 1];
    }
  return n;
}
