/* What requests take of a GPU's memories, from the addresses that the lanes of a warp ask for:
 * wavefronts of shared memory by the banks of its words, sectors of all others. */
#include "price/gpu_tiles.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

double gpu_banks(const tarn_hw *hw, const int64_t *byte, uint32_t n, int64_t bytes) {
  uint32_t banks = tarn_hw_mem(hw, TARN_HW_L1)->banks;
  uint32_t words = bytes < 4 ? 1 : (uint32_t)bytes / 4, lanes = 32 / words;
  double all = 0;
  for (uint32_t from = 0; from < n; from += lanes) {
    int64_t word[64];
    uint32_t k = 0, used[256] = {0}, most = 0;
    for (uint32_t i = from; i < n && i < from + lanes; i++)
      for (uint32_t w = 0; w < words; w++) {
        uint32_t same = 0;
        int64_t x = byte[i] / 4 + w;
        while (same < k && word[same] != x) same++;
        if (same < k) continue;
        word[k++] = x;
        uint32_t *u = &used[x % banks];
        if (++*u > most) most = *u;
      }
    all += most;
  }
  return all;
}
double gpu_sectors(const int64_t *byte, uint32_t n, int64_t bytes) {
  int64_t seen[64];
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++)
    for (int64_t s = byte[i] / GPU_SECTOR; s <= (byte[i] + bytes - 1) / GPU_SECTOR; s++) {
      uint32_t same = k;
      while (same > 0 && seen[same - 1] != s) same--;
      if (!same && k < 64) seen[k++] = s;
    }
  return k;
}

/* ---------------------------------------------------------------- what the lanes of a warp do */
/* The dim whose steps the lanes of a warp share; m->n: each has items of its own. */
static uint32_t shared_dim(const stage_model *m, const tarn_stage_sched *s) {
  const tarn_level *last = s->nlevel > 1 ? &s->level[s->nlevel - 1] : NULL;
  return last && last->kind == TARN_VECTOR && last->dim >= m->nacc ? last->dim : m->n;
}
/* The first element of a tile, by its number. False: it lies beyond the end of a dim. */
static bool place_item(const stage_model *m, const tarn_stage_sched *s, int64_t item, int64_t *at) {
  int64_t trips[TARN_MAX_LEVELS], left[TARN_MAX_DIMS];
  memcpy(left, m->dim, sizeof left);
  memset(at, 0, m->n * sizeof *at);
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    trips[i] = l->kind == TARN_PARALLEL ? tarn_ceildiv(left[l->dim], l->step) : 1;
    if (l->kind == TARN_PARALLEL) left[l->dim] = tarn_min(left[l->dim], l->step);
  }
  for (uint32_t i = s->nlevel; i-- > 0; item /= trips[i])
    if (trips[i] > 1) at[s->level[i].dim] += item % trips[i] * s->level[i].step;
  for (uint32_t d = 0; d < m->n; d++)
    if (at[d] >= m->dim[d]) return false;
  return item == 0;
}
void gpu_warp_of(const tarn_hw *hw, const stage_model *m, const tarn_stage_sched *s, gpu_warp *w) {
  uint32_t shared = shared_dim(m, s), lanes = hw->warps.lanes;
  w->n = 0;
  for (uint32_t i = 0; i < lanes && i < GPU_LANES; i++) {
    int64_t *at = w->at[w->n];
    bool is = place_item(m, s, shared < m->n ? 0 : i, at);
    if (shared < m->n) at[shared] = i;
    w->n += is && (shared == m->n || i < m->dim[shared]);
  }
}
static int64_t placed(const gpu_order *o, int64_t element) {
  int64_t y = tarn_floordiv(element, o->row), x = tarn_floormod(element, o->row);
  if (o->skew) x = (x + y / o->skew) % o->row;
  return y * (o->row + o->pad) + x;
}
void gpu_warp_bytes(const stage_model *m, const acc_model *a, const gpu_order *o, const gpu_warp *w,
                    int64_t *byte) {
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
/* The touched dim of the smallest step that is not yet done; m->n: none. */
static uint32_t next_dim(const stage_model *m, const acc_model *a, const bool *done) {
  uint32_t d = m->n;
  for (uint32_t k = 0; k < m->n; k++) {
    bool less = d == m->n || llabs(a->coef[k]) < llabs(a->coef[d]);
    if (!done[k] && (a->touched >> k & 1) && less) d = k;
  }
  return d;
}
/* Rows of elements that follow one another, gaps of less than a sector included. Neighbouring
 * windows overlap. */
double gpu_box_sectors(const stage_model *m, const acc_model *a, const int64_t *span) {
  double rows = 1, row = 1, reach = 1, near = GPU_SECTOR / a->bytes;
  bool done[TARN_MAX_DIMS] = {false}, one = !a->irregular;
  bool aligned = fmod((double)a->start, near) == 0;
  for (uint32_t d; (d = next_dim(m, a, done)) < m->n; done[d] = true) {
    double step = fabs((double)a->coef[d]), more = (double)span[d] - 1;
    one &= step <= tarn_fmax(reach, near);
    aligned &=
        fmod(one ? step * (double)span[d] : step, near) == 0 || (one && span[d] == m->dim[d]);
    if (!one) rows += more * (a->irregular || step > reach ? rows : rows * step / reach);
    reach += more * step;
    if (one) row = reach;
  }
  double each = aligned ? ceil(row / near) : (row - 1) / near + 1;
  return tarn_fmin(rows * each, ceil((double)a->elems / near) + 1);
}
