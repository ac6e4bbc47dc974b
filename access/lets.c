/* Which nodes of a DAG get a name when it is printed. */
#include "access/internal.h"
#include <stdlib.h>

enum { CHAIN = 64 };

static uint32_t place(const tarn_lets *l, uint32_t id) {
  const uint32_t *at = bsearch(&id, l->id, l->n, sizeof id, tarn_by_u32);
  return (uint32_t)(at - l->id);
}

uint32_t tarn_lets_label(const tarn_lets *l, uint32_t id) { return l->label[place(l, id)]; }

tarn_lets tarn_lets_choose(const tarn_lang *L, uint32_t n, const uint32_t *id, tarn_kids_fn *kids,
                           const uint32_t *root, uint32_t nroot) {
  tarn_lets l = {.n = n, .id = tarn_copy(L->cx, id, n * sizeof *id)};
  uint32_t *uses = TARN_ARRAY(L->cx, uint32_t, n), *height = TARN_ARRAY(L->cx, uint32_t, n);
  const uint32_t *kid;
  l.label = TARN_ARRAY(L->cx, uint32_t, n);
  for (uint32_t i = 0; i < nroot; i++) uses[place(&l, root[i])]++;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = kids(L, l.id[i], &kid); k-- > 0;) uses[place(&l, kid[k])]++;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t nkid = kids(L, l.id[i], &kid);
    for (uint32_t k = 0; k < nkid; k++) {
      uint32_t j = place(&l, kid[k]), h = l.label[j] == TARN_NONE ? height[j] + 1 : 1;
      if (h > height[i]) height[i] = h;
    }
    bool bind = nkid > 0 && (uses[i] > 1 || height[i] >= CHAIN);
    l.label[i] = bind ? l.nbound++ : TARN_NONE;
  }
  return l;
}
