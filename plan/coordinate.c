/* Coordinates of an operand, dim by dim in the order of rising steps. */
#include "plan/coordinate.h"

int64_t tarn_coordinate_length(const tarn_coordinate *c, const int64_t *span) {
  int64_t length = 1;
  for (uint32_t i = 0; i < c->n; i++) length += c->by[i] * (span[c->dim[i]] - 1);
  return length;
}
/* Does the guard bound this sum and nothing else? */
static bool bounds(const tarn_lang *L, const tarn_guard *g, const tarn_coordinate *c) {
  bool same = tarn_ix_get(L, g->e)->n == c->n;
  for (uint32_t i = 0; i < c->n; i++) same &= tarn_ix_coef(L, g->e, c->dim[i]) == c->by[i];
  return same;
}
static void clip(const tarn_lang *L, tarn_coordinate *c, const tarn_imap *m) {
  c->clipped = false;
  c->c = c->lo = c->hi = 0;
  for (uint32_t i = 0; i < m->nguard && !c->clipped; i++) {
    const tarn_guard *g = &m->guard[i];
    if (!bounds(L, g, c)) continue;
    c->clipped = true;
    c->c = tarn_ix_get(L, g->e)->c;
    c->lo = g->lo;
    c->hi = g->hi;
  }
}
bool plan_coordinate_add(const tarn_lang *L, tarn_coordinate *at, uint32_t *n, uint32_t room,
                         uint32_t dim, int64_t step, const int64_t *extent, const tarn_imap *m) {
  for (uint32_t i = 0; i < *n && m; i++) {
    tarn_coordinate *c = &at[i];
    int64_t by = step / c->step;
    int64_t reached = c->clipped ? c->hi - c->lo : tarn_coordinate_length(c, extent);
    if (step % c->step || by >= reached || c->n == TARN_COORDINATE_TERMS) continue;
    c->dim[c->n] = dim;
    c->by[c->n++] = by;
    clip(L, c, m);
    return true;
  }
  if (*n == room) return false;
  tarn_coordinate *c = &at[(*n)++];
  *c = (tarn_coordinate){.step = step, .n = 1, .dim = {dim}, .by = {1}};
  if (m) clip(L, c, m);
  return true;
}
