/* What requests take of a GPU's memories, from the addresses that the lanes of a warp ask for:
 * wavefronts of shared memory by the banks of its words, sectors of all others. */
#include "price/gpu_tiles.h"
#include <stdlib.h>
#include <string.h>

double gpu_banks(const tarn_hw *hw, const int64_t *byte, uint32_t n, int64_t bytes) {
  uint32_t banks = tarn_hw_mem(hw, TARN_HW_L1)->banks;
  uint32_t words = bytes < 4 ? 1 : (uint32_t)bytes / 4, lanes = 32 / words;
  double all = 0;
  for (uint32_t from = 0; from < n; from += lanes) {
    int64_t word[64];
    uint32_t k = 0, most = 0;
    for (uint32_t i = from; i < n && i < from + lanes; i++)
      for (uint32_t w = 0; w < words; w++) {
        int64_t x = byte[i] / 4 + w;
        uint32_t met = 1, known = 0;
        for (uint32_t o = 0; o < k; o++) known |= word[o] == x, met += word[o] % banks == x % banks;
        if (known) continue;
        word[k++] = x;
        if (met > most) most = met;
      }
    all += most;
  }
  return all;
}
double gpu_sectors(const tarn_hw *hw, const int64_t *byte, uint32_t n, int64_t bytes) {
  int64_t sector = hw->warps.sector;
  int64_t seen[64];
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    for (int64_t s = byte[i] / sector; s <= (byte[i] + bytes - 1) / sector; s++) {
      uint32_t same = k;
      while (same > 0 && seen[same - 1] != s) same--;
      if (!same && k < 64) seen[k++] = s;
    }
  return k;
}

/* ---------------------------------------------------------------- what the lanes of a warp do */
/* The dim whose steps the lanes of a warp share; m->n: each has items of its own. */
static uint32_t shared_dim(const tarn_stage_work *m, const tarn_stage_sched *s) {
  const tarn_level *last = s->nlevel > 1 ? &s->level[s->nlevel - 1] : NULL;
  return last && last->kind == TARN_VECTOR && last->dim >= m->nacc ? last->dim : m->n;
}
/* The parallel levels of more than one trip, and their trips. */
static uint32_t walked(const tarn_stage_work *m, const tarn_stage_sched *s,
                       const tarn_level **level, int64_t *trips) {
  int64_t left[TARN_MAX_DIMS];
  uint32_t n = 0;
  memcpy(left, m->dim, sizeof left);
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    if (l->kind != TARN_PARALLEL || left[l->dim] <= l->step) continue;
    level[n] = l;
    trips[n++] = tarn_ceildiv(left[l->dim], l->step);
    left[l->dim] = l->step;
  }
  return n;
}
/* From one item to the next; false: there is none. */
static bool next_item(const tarn_level *const *level, const int64_t *trips, uint32_t n,
                      int64_t *count, int64_t *at) {
  for (uint32_t i = n; i-- > 0;) {
    at[level[i]->dim] += level[i]->step;
    if (++count[i] < trips[i]) return true;
    at[level[i]->dim] -= trips[i] * level[i]->step;
    count[i] = 0;
  }
  return false;
}
static bool is_within(const tarn_stage_work *m, const int64_t *at) {
  for (uint32_t d = m->nshared; d < m->n; d++)
    if (at[d] >= m->dim[d]) return false;
  return true;
}
void gpu_warp_of(const tarn_hw *hw, const tarn_stage_work *m, const tarn_stage_sched *s,
                 gpu_warp *w) {
  const tarn_level *level[TARN_MAX_LEVELS];
  int64_t trips[TARN_MAX_LEVELS], count[TARN_MAX_LEVELS] = {0}, at[TARN_MAX_DIMS] = {0};
  uint32_t shared = shared_dim(m, s), n = shared < m->n ? 0 : walked(m, s, level, trips);
  bool more = true;
  w->n = 0;
  for (uint32_t i = 0; i < hw->warps.lanes && i < GPU_LANES && more; i++) {
    if (is_within(m, at)) memcpy(w->at[w->n++], at, sizeof at);
    if (shared < m->n) at[shared]++;
    else more = next_item(level, trips, n, count, at);
  }
}
static int64_t placed(const gpu_order *o, int64_t element) {
  int64_t y = tarn_floordiv(element, o->row), x = tarn_floormod(element, o->row);
  if (o->skew) x = (x + y / o->skew) % o->row;
  return y * (o->row + o->pad) + x;
}
void gpu_warp_bytes(const tarn_stage_work *m, const tarn_touch *a, const gpu_order *o,
                    const gpu_warp *w, int64_t *byte) {
  for (uint32_t i = 0; i < w->n; i++) {
    int64_t e = 0;
    for (uint32_t d = m->nshared; d < m->n; d++) e += a->coef[d] * w->at[i][d];
    byte[i] = (int64_t)a->bytes * (o ? placed(o, e) : e);
  }
  int64_t least = 0;
  for (uint32_t i = 0; i < w->n; i++) least = tarn_min(least, byte[i]);
  for (uint32_t i = 0; i < w->n; i++) byte[i] -= least;
}

/* ---------------------------------------------------------------- boxes */
/* The touched dims by rising step; their number. */
static uint32_t by_step(const tarn_stage_work *m, const tarn_touch *a, uint32_t *dim) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < m->n; d++) {
    uint32_t at = n;
    if (!(a->touched >> d & 1)) continue;
    for (; at > 0 && llabs(a->coef[dim[at - 1]]) > llabs(a->coef[d]); at--) dim[at] = dim[at - 1];
    dim[at] = d;
    n++;
  }
  return n;
}
/* Rows of elements that follow one another, gaps of less than a sector included. Neighbouring
 * windows overlap. */
double gpu_box_sectors(const tarn_hw *hw, const tarn_stage_work *m, const tarn_touch *a,
                       const int64_t *span) {
  uint32_t dim[TARN_MAX_DIMS], n = by_step(m, a, dim);
  int64_t near = tarn_max(1, (int64_t)(hw->warps.sector / a->bytes)), reach = 1, row = 1;
  bool one = !a->irregular, aligned = a->start % near == 0;
  double rows = 1;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t d = dim[i];
    int64_t step = llabs(a->coef[d]), more = span[d] - 1;
    one &= step <= tarn_max(reach, near);
    bool whole = one && span[d] == m->dim[d];
    aligned &= whole || (one ? step * span[d] : step) % near == 0;
    if (!one)
      rows +=
          (double)more * rows * (a->irregular || step > reach ? 1 : (double)step / (double)reach);
    reach += more * step;
    if (one) row = reach;
  }
  double each = aligned ? (double)tarn_ceildiv(row, near) : (double)(row - 1) / (double)near + 1;
  return tarn_fmin(rows * each, (double)(a->elems / near + 2));
}
