/* For tests of the simulator: instructions put together from a description's tables alone. */
#ifndef TARN_TESTS_SIM_KIT_H
#define TARN_TESTS_SIM_KIT_H
#include "tests/terms.h"

#include "base/base.h"
#include "hw/hw.h"
#include "sim/sim.h"
#include <stdio.h>

typedef struct assembler {
  const tarn_hw *hw;
  uint8_t *stream, *dram;
  uint32_t n, bytes;
} assembler;

static inline uint32_t field_of(const tarn_hw_format *f, const char *name) {
  uint32_t i = 0;
  while (strcmp(f->field[i].name, name)) i++;
  return i;
}
static inline void put(const tarn_hw_format *f, uint8_t *bits, uint32_t field, int64_t v) {
  const tarn_hw_field *w = &f->field[field];
  for (uint32_t i = 0; i < w->width; i++) {
    uint8_t bit = (uint8_t)(1u << ((w->at + i) % 8));
    uint8_t *at = &bits[(w->at + i) / 8];
    *at = (uint8_t)((*at & ~bit) | ((v >> i & 1) ? bit : 0));
  }
}
typedef struct set {
  const char *field;
  int64_t v;
} set;
#define SETS(...) ((const set[]){__VA_ARGS__, {0}})
static inline void emit(assembler *a, const char *name, const set *s) {
  uint32_t k = 0;
  while (strcmp(a->hw->instruction[k].name, name)) k++;
  const tarn_hw_instruction *x = &a->hw->instruction[k];
  const tarn_hw_format *f = &a->hw->format[x->format];
  uint8_t *bits = a->stream + a->n++ * a->bytes;
  for (uint32_t i = 0; i < x->nis; i++)
    if (!tarn_hw_is_register(x->is[i].field)) put(f, bits, x->is[i].field, x->is[i].value);
  for (; s->field; s++) put(f, bits, field_of(f, s->field), s->v);
}
#endif
