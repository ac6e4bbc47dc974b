/* A description as the architecture that Timeloop reads: YAML, version 0.4, outermost first. */
#include "hw/hw.h"
#include <string.h>

static uint32_t product(tarn_lang *L, const tarn_hw *hw, tarn_hw_form *f) {
  for (uint32_t i = 0; i < hw->nintrin; i++) {
    tarn_hw_meaning m = tarn_hw_meaning_of(L, hw, i);
    if (tarn_hw_form_of(L, &m, f) && f->product) return i;
  }
  tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT,
             "%s: no intrinsic of it is a product, which Timeloop's compute would be", hw->name);
}

/* Bits of what a memory holds: of the operands that live there, else a byte. */
static uint32_t datawidth(const tarn_hw *hw, const char *memory) {
  for (uint32_t i = 0; i < hw->nintrin; i++)
    for (uint32_t k = 0; k < hw->intrin[i].nop; k++)
      if (!strcmp(hw->intrin[i].op[k].memory, memory))
        return (uint32_t)tarn_dtype_size(hw->intrin[i].op[k].dtype) * 8;
  return 8;
}
static void put_spaces(tarn_buf *b, const char *key, const tarn_hw_intrinsic *n,
                       const tarn_hw_form *f, const char *memory, bool here) {
  static const char *const space[] = {"Inputs", "Weights", "Outputs"};
  const uint32_t op[] = {f->operand[0], f->operand[1], n->nop - 1};
  bool any = false;
  tarn_buf_fmt(b, "%s: [", key);
  for (uint32_t i = 0; i < 3; i++) {
    if (!strcmp(n->op[op[i]].memory, memory) != here) continue;
    tarn_buf_fmt(b, "%s%s", any ? ", " : "", space[i]);
    any = true;
  }
  tarn_buf_str(b, "]");
}
static void put_memory(const tarn_hw *hw, const tarn_hw_memory *m, tarn_buf *b) {
  uint32_t bits = datawidth(hw, m->name);
  tarn_buf_fmt(b, "  - !Component\n    name: %s\n    class: %s\n    attributes:\n", m->name,
               m->capacity ? "SRAM" : "DRAM");
  if (m->capacity)
    tarn_buf_fmt(b, "      depth: %lld\n      n_banks: %u\n", (long long)tarn_hw_depth(m),
                 m->banks);
  tarn_buf_fmt(b, "      width: %u\n      datawidth: %u\n",
               m->entry > 1 ? m->entry * 8 : (uint32_t)(m->read * 8), bits);
  tarn_buf_fmt(b, "      read_bandwidth: %g\n      write_bandwidth: %g\n", m->read * 8 / bits,
               m->write * 8 / bits);
}

void tarn_hw_timeloop(tarn_lang *L, const tarn_hw *hw, tarn_buf *b) {
  tarn_hw_form f;
  const tarn_hw_intrinsic *n = &hw->intrin[product(L, hw, &f)];
  tarn_buf_fmt(b, "# %s. Bandwidths are words a cycle.\narchitecture:\n  version: 0.4\n  nodes:\n",
               hw->name);
  tarn_buf_str(b, "  - !Container\n    name: system\n");
  for (uint32_t i = hw->nmem; i-- > 0;) {
    const tarn_hw_memory *m = &hw->mem[i];
    if (m->shadow_of) continue;
    bool holds = i + 1 == hw->nmem;
    for (uint32_t k = 0; k < n->nop; k++) holds |= !strcmp(n->op[k].memory, m->name);
    if (!holds) continue; /* of micro-ops, say */
    put_memory(hw, m, b);
    if (i + 1 == hw->nmem) continue;
    tarn_buf_str(b, "    constraints:\n      dataspace: {");
    put_spaces(b, "keep", n, &f, m->name, true), tarn_buf_str(b, ", ");
    put_spaces(b, "bypass", n, &f, m->name, false), tarn_buf_str(b, "}\n");
  }
  uint32_t bits = (uint32_t)tarn_dtype_size(n->op[f.operand[0]].dtype) * 8;
  tarn_buf_fmt(b,
               "  - !Component\n    name: %s\n    class: %s\n    spatial: {meshX: %lld}\n"
               "    attributes:\n      datawidth: %u\n",
               n->name, tarn_dtype_is_float(n->op[0].dtype) ? "fpmac" : "intmac",
               (long long)(n->ops * n->throughput), bits);
}
