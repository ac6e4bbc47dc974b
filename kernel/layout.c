/* Layouts: the address of the element with given indices. */
#include "kernel/kernel.h"
#include <string.h>

tarn_layout tarn_layout_row_major(uint32_t n, const int64_t *dim) {
  uint8_t order[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) order[i] = (uint8_t)i;
  return tarn_layout_ordered(n, dim, order, 0, 0);
}

static int64_t blocks(int64_t dim, int64_t block) { return (dim + block - 1) / block; }

tarn_layout tarn_layout_ordered(uint32_t n, const int64_t *dim, const uint8_t *order, uint8_t baxis,
                                int64_t block) {
  tarn_layout l = {.n = (uint8_t)n, .baxis = block ? baxis : 0, .block = block};
  int64_t stride = block ? block : 1;
  for (uint32_t i = 0; i < n; i++) l.dim[i] = dim[i];
  for (uint32_t k = n; k-- > 0;) {
    uint8_t a = order[k];
    l.stride[a] = stride;
    stride *= block && a == baxis ? blocks(dim[a], block) : dim[a];
  }
  return l;
}

int64_t tarn_layout_elems(const tarn_layout *l) {
  int64_t last = 0;
  for (uint32_t a = 0; a < l->n; a++) {
    bool b = l->block && a == l->baxis;
    if (l->dim[a] == 0) return 0;
    if (l->stride[a] > 0)
      last += ((b ? blocks(l->dim[a], l->block) : l->dim[a]) - 1) * l->stride[a];
  }
  return last + (l->block ? l->block : 1);
}

int64_t tarn_layout_before(const tarn_layout *l) {
  int64_t before = 0;
  for (uint32_t a = 0; a < l->n; a++)
    if (l->stride[a] < 0 && l->dim[a] > 0) before -= (l->dim[a] - 1) * l->stride[a];
  return before;
}

int64_t tarn_layout_at(const tarn_layout *l, const int64_t *idx) {
  int64_t at = l->offset;
  for (uint32_t a = 0; a < l->n; a++)
    at += l->block && a == l->baxis ? idx[a] / l->block * l->stride[a] + idx[a] % l->block
                                    : idx[a] * l->stride[a];
  return at;
}

bool tarn_layout_gaps(const tarn_layout *l) {
  int64_t n = 1;
  for (uint32_t a = 0; a < l->n; a++) n *= l->dim[a];
  return n && !l->block && tarn_layout_elems(l) + tarn_layout_before(l) > n;
}

bool tarn_layout_equal(const tarn_layout *a, const tarn_layout *b) {
  if (a->n != b->n || a->offset != b->offset || a->block != b->block ||
      (a->block && a->baxis != b->baxis))
    return false;
  for (uint32_t d = 0; d < a->n; d++) /* the step of an extent of 1 is never taken */
    if (a->dim[d] != b->dim[d] || (a->dim[d] != 1 && a->stride[d] != b->stride[d])) return false;
  return true;
}
