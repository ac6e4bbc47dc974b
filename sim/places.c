/* Where a kernel keeps its tiles, if memory.json says so: its instructions touch nothing else, no
 * two tiles share an entry, what is read was written by the kernel itself.
 *
 * So a tile that another one overwrites while it is needed is seen even where all bytes happen to
 * be right, and so is a value that lives longer than its kernel. Memories of micro-ops have no
 * places: their lists stay for kernels that follow. */
#include "sim/internal.h"
#include <string.h>

static bool holds_steps(const tarn_hw *hw, uint32_t memory) {
  for (uint32_t i = 0; i < hw->ninstruction; i++)
    if (hw->instruction[i].does == TARN_HW_RUNS && hw->instruction[i].steps == memory) return true;
  return false;
}
const char *sim_places_fault(tarn_ctx *cx, const tarn_hw *hw, const tarn_sim_kernel *k) {
  for (uint32_t i = 0; i < k->nplace; i++) {
    const tarn_sim_place *a = &k->place[i];
    int64_t depth = tarn_hw_depth(&hw->mem[a->memory]);
    if (a->entries < 1 || a->slots < 1 || a->first > depth ||
        a->slots > (depth - a->first) / a->entries)
      return tarn_format(cx,
                         "place %s: %lld slots of %lld entries from entry %lld of %s, which has "
                         "%lld",
                         tarn_shown(cx, a->name), (long long)a->slots, (long long)a->entries,
                         (long long)a->first, hw->mem[a->memory].name, (long long)depth);
    for (uint32_t j = 0; j < i; j++) {
      const tarn_sim_place *b = &k->place[j];
      bool apart = a->memory != b->memory || a->first >= b->first + b->entries * b->slots ||
                   b->first >= a->first + a->entries * a->slots;
      if (!apart)
        return tarn_format(cx, "places %s and %s share entries of %s", tarn_shown(cx, b->name),
                           tarn_shown(cx, a->name), hw->mem[a->memory].name);
    }
  }
  return NULL;
}

/* The kernel of the instruction at work; NULL: it has no places. */
static const tarn_sim_kernel *kernel_now(sim_run *r) {
  uint32_t at = r->first + r->now;
  const tarn_sim_kernel *k = r->kernel;
  if (!k || at < k->first || at >= k->first + k->count) {
    uint32_t n = tarn_sim_kernel_of(r->p, at);
    r->kernel = k = n == TARN_NONE ? NULL : &r->p->kernel[n];
  }
  return k && k->nplace ? k : NULL;
}
void sim_in_place(sim_run *r, uint32_t memory, int64_t at, int64_t n, const char *does) {
  const tarn_sim_kernel *k = kernel_now(r);
  if (!k || r->mem[memory].is_main || n < 1 || holds_steps(r->hw, memory)) return;
  for (uint32_t i = 0; i < k->nplace; i++) {
    const tarn_sim_place *x = &k->place[i];
    int64_t from = at - x->first;
    if (x->memory != memory || from < 0 || from >= x->entries * x->slots) continue;
    if (from / x->entries == (from + n - 1) / x->entries) return;
    sim_refuse(r, "%s entries %lld to %lld of %s, beyond a tile of %s of kernel %s", does,
               (long long)at, (long long)(at + n - 1), r->mem[memory].name, x->name, k->name);
  }
  sim_refuse(r, "%s entry %lld of %s, which is no tile of kernel %s", does, (long long)at,
             r->mem[memory].name, k->name);
}
void sim_own_value(sim_run *r, uint32_t memory, int64_t at, const sim_touch *t) {
  const tarn_sim_kernel *k = kernel_now(r);
  if (!k || !t->writer || r->mem[memory].is_main || holds_steps(r->hw, memory)) return;
  uint32_t by = r->first + r->item[t->queue][t->writer - 1];
  if (by < k->first)
    sim_refuse(r, "reads entry %lld of %s, which instruction %u wrote before kernel %s began",
               (long long)at, r->mem[memory].name, by, k->name);
}
