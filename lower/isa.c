/* What emitted code takes from a description: its registers, and instructions that LLVM does not
 * find by itself, a row for each with the feature of the processor that brings it. The rest of the
 * printing asks here and knows no instruction set. */
#include "lower/internal.h"
#include <string.h>

static const low_isa_row row[] = {
    {LOW_ISA_SCALE, 16, true, "+avx512f", "llvm.x86.avx512.mask.scalef.ps.512"},
    {LOW_ISA_PERMUTE, 8, false, "+avx2", "llvm.x86.avx2.permps"},
    {LOW_ISA_PERMUTE, 16, false, "+avx512f", "llvm.x86.avx512.permvar.sf.512"},
    {LOW_ISA_PERMUTE_INT, 16, false, "+avx512f", "llvm.x86.avx512.permvar.si.512"},
    {LOW_ISA_MAX, 4, false, "+avx", "llvm.x86.sse.max.ps"},
    {LOW_ISA_MAX, 8, false, "+avx", "llvm.x86.avx.max.ps.256"},
    {LOW_ISA_MAX, 16, true, "+avx512vl", "llvm.x86.avx512.max.ps.512"},
    {LOW_ISA_MIN, 4, false, "+avx", "llvm.x86.sse.min.ps"},
    {LOW_ISA_MIN, 8, false, "+avx", "llvm.x86.avx.min.ps.256"},
    {LOW_ISA_MIN, 16, true, "+avx512vl", "llvm.x86.avx512.min.ps.512"},
};

const low_isa_row *low_isa_find(const low_module *M, low_isa what, uint32_t lanes) {
  const char *features = M->hw->features;
  for (size_t i = 0; features && i < sizeof row / sizeof *row; i++)
    if (row[i].what == what && row[i].lanes == lanes && strstr(features, row[i].feature))
      return &row[i];
  return NULL;
}

low_regs low_regs_of(const tarn_hw *hw) {
  const tarn_hw_memory *l1 = hw->nmem ? tarn_hw_mem(hw, TARN_HW_L1) : NULL;
  return (low_regs){.bits = hw->vector_bits,
                    .count = hw->vector_regs ? hw->vector_regs : 16,
                    .warp = hw->warps.lanes,
                    .line = l1 ? (int64_t)l1->line : 0,
                    .masks = hw->vector_bits >= 256 && tarn_hw_mixes_lanes(hw),
                    .slow_masks = hw->spreads};
}
