/* Rows of a tile that one transfer moves.
 *
 * A tile's entries lie in its memory in the order of its coordinates, without gaps. A transfer
 * moves rows of neighbours: the innermost coordinates that are neighbours in main memory too become
 * one row, the next coordinate its repetition. Zeros are only put around what one transfer moves.
 */
#include "plan/unit_internal.h"
#include <string.h>

void tarn_unit_span(const tarn_unit_coord *c, const tarn_unit_box *b, int64_t *first, int64_t *n) {
  *first = 0;
  *n = 1;
  for (uint32_t i = 0; i < c->n; i++) {
    *first += c->by[i] * b->lo[c->dim[i]];
    *n += c->by[i] * (b->n[c->dim[i]] - 1);
  }
}
int64_t tarn_unit_entries(const tarn_unit_tensor *t, const tarn_unit_box *b) {
  int64_t all = t->each;
  for (uint32_t i = 0; i < t->n; i++) {
    int64_t first;
    int64_t n;
    tarn_unit_span(&t->at[i], b, &first, &n);
    all *= n;
  }
  return all;
}

/* A coordinate of a tile: what of it lies in main memory, zeros before and behind. */
typedef struct piece {
  int64_t first, n, before, behind, step;
} piece;
static piece piece_of(const tarn_unit_coord *c, const tarn_unit_box *b) {
  piece p = {.step = c->step};
  tarn_unit_span(c, b, &p.first, &p.n);
  if (!c->clipped) return p;
  int64_t lo = c->c + p.first;
  int64_t hi = lo + p.n;
  p.before = tarn_min(tarn_max(c->lo - lo, 0), p.n);
  p.behind = tarn_min(tarn_max(hi - c->hi, 0), p.n - p.before);
  p.first += p.before;
  p.n -= p.before + p.behind;
  return p;
}
typedef struct shape {
  uint32_t n; /* coordinates outside of rows */
  piece at[TARN_UNIT_COORDS];
  tarn_unit_move move;
} shape;

static bool too_far(const tarn_hw_transfer *t, const tarn_unit_move *m) {
  bool far = m->rows > 1 && m->stride > t->stride;
  for (uint32_t i = 0; i < 4; i++) far |= m->pad[i] > t->pad;
  return far;
}
/* The innermost coordinates as a row, the next one as rows. */
static bool shape_of(const tarn_hw *hw, const tarn_unit_tensor *t, const tarn_unit_box *b,
                     shape *s) {
  const tarn_hw_transfer *x = &hw->transfer[t->transfer];
  tarn_unit_move *m = &s->move;
  int64_t most = x->row_bytes ? x->row_bytes / hw->mem[t->memory].entry : INT64_MAX;
  *m = (tarn_unit_move){.main = t->base, .rows = 1, .entries = 1, .stride = 1};
  s->n = t->n;
  for (uint32_t i = 0; i < t->n; i++) {
    s->at[i] = piece_of(&t->at[i], b);
    if (s->at[i].n <= 0) return false;
    m->main += s->at[i].first * s->at[i].step;
  }
  while (s->n) {
    const piece *p = &s->at[s->n - 1];
    bool whole = !m->pad[TARN_HW_LEFT] && !m->pad[TARN_HW_RIGHT];
    if ((p->n > 1 && p->step != m->entries) || !whole || p->n * m->entries > most) break;
    m->pad[TARN_HW_LEFT] = p->before * m->entries;
    m->pad[TARN_HW_RIGHT] = p->behind * m->entries;
    m->entries *= p->n;
    s->n--;
  }
  if (s->n && x->rank > 1) {
    const piece *p = &s->at[--s->n];
    m->rows = p->n;
    m->stride = p->step;
    m->pad[TARN_HW_TOP] = p->before;
    m->pad[TARN_HW_BOTTOM] = p->behind;
  }
  for (uint32_t i = 0; i < s->n; i++)
    if (s->at[i].before || s->at[i].behind) return false;
  return !too_far(x, m);
}
static int64_t moved(const tarn_unit_move *m) {
  return (m->rows + m->pad[0] + m->pad[1]) * (m->entries + m->pad[2] + m->pad[3]);
}
int64_t tarn_unit_moves(const tarn_unit_plan *p, const tarn_unit_tensor *t, const tarn_unit_box *b,
                        tarn_unit_move_fn *f, void *user) {
  shape s;
  int64_t count = 1;
  int64_t at[TARN_UNIT_COORDS] = {0};
  if (t->packed) {
    s.move = (tarn_unit_move){.rows = 1, .entries = tarn_unit_entries(t, b), .stride = 1};
    if (f) f(user, &s.move);
    return 1;
  }
  if (!shape_of(p->hw, t, b, &s)) return -1;
  for (uint32_t i = 0; i < s.n; i++) count *= s.at[i].n;
  for (int64_t k = 0; f && k < count; k++) {
    tarn_unit_move m = s.move;
    for (uint32_t i = 0; i < s.n; i++) m.main += at[i] * s.at[i].step;
    m.local = k * moved(&m);
    f(user, &m);
    for (uint32_t i = s.n; i-- > 0;) {
      if (++at[i] < s.at[i].n) break;
      at[i] = 0;
    }
  }
  return count;
}
double tarn_unit_move_cycles(const tarn_hw *hw, const tarn_hw_transfer *t,
                             const tarn_unit_move *m) {
  double waits = t->row_latency ? (double)m->rows : 1;
  return t->startup + (double)m->rows * t->row + (double)(m->rows * m->entries) * t->entry +
         waits * hw->mem[hw->nmem - 1].latency;
}
