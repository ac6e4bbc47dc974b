/* Rows of a tile that one transfer moves.
 *
 * A tile's entries lie in its memory in the order of its coordinates. A transfer moves rows of
 * neighbours: the innermost coordinates that are neighbours in main memory too become one row, the
 * next coordinate its repetition. Zeros are put around what one transfer moves where it can, and
 * come from an entry of zeros in main memory where it cannot. */
#include "plan/unit_internal.h"
#include <string.h>

void tarn_unit_span(const tarn_coordinate *c, const tarn_unit_box *b, int64_t *first, int64_t *n) {
  *first = 0;
  *n = c->many ? c->many : 1;
  for (uint32_t i = 0; i < c->n; i++) {
    *first += c->by[i] * b->lo[c->dim[i]];
    *n += c->by[i] * (b->n[c->dim[i]] - 1);
  }
  if (!c->unpadded) return;
  int64_t end = tarn_min(*first + *n, c->hi - c->c);
  *first = tarn_max(*first, c->lo - c->c);
  *n = tarn_max(end - *first, 0);
}
int64_t tarn_unit_room(const tarn_coordinate *c, const tarn_unit_box *b) {
  int64_t first;
  int64_t n;
  tarn_unit_span(c, b, &first, &n);
  if (!c->whole) return n;
  int64_t rows = c->rows == TARN_NONE ? 1 : b->n[c->rows];
  return n + tarn_ceildiv(rows, c->whole) * c->whole - rows;
}
int64_t tarn_unit_entries(const tarn_unit_tensor *t, const tarn_unit_box *b) {
  int64_t all = t->each;
  for (uint32_t i = 0; i < t->n; i++) all *= tarn_unit_room(&t->at[i], b);
  return all;
}
int64_t tarn_unit_most_entries(const tarn_unit_tensor *t, const tarn_unit_box *b) {
  int64_t all = t->each;
  for (uint32_t i = 0; i < t->n; i++) {
    tarn_coordinate c = t->at[i];
    c.unpadded = false;
    int64_t room = tarn_unit_room(&c, b);
    all *= t->at[i].unpadded ? tarn_min(room, c.hi - c.lo) : room;
  }
  return all;
}

/* A coordinate of a tile: what of it lies in main memory, zeros before and behind, how far its
 * values lie apart in main memory and in the tile. */
typedef struct piece {
  int64_t first, n, before, behind, step, local;
} piece;
static piece piece_of(const tarn_coordinate *c, const tarn_unit_box *b) {
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
  const tarn_hw_transfer *x;
  uint32_t n, all; /* coordinates outside of rows; of the tile */
  piece at[TARN_UNIT_COORDS];
  bool bare;          /* what a tile has room for besides is not filled */
  int64_t zeros[2];   /* entries before and behind the rows that another transfer fills */
  int64_t from, left; /* zeros that have not been moved yet: where, how many */
  int64_t most;       /* of them in a row of main memory */
  tarn_unit_move move;
  tarn_unit_move_fn *f;
  void *user;
  int64_t count;
} shape;

bool unit_has_blocks(const tarn_hw *hw, uint32_t transfer) {
  for (uint32_t i = 0; i < hw->ninstruction; i++)
    if (hw->instruction[i].does == TARN_HW_MOVES && hw->instruction[i].transfer == transfer)
      return hw->instruction[i].block != TARN_NONE;
  return false;
}
/* Coordinate p outside of what is moved so far, which takes `size` entries: its zeros. False: they
 * take transfers of their own. */
static bool pads(shape *s, const piece *p, uint32_t before, int64_t size) {
  tarn_unit_move *m = &s->move;
  if (p->before * size <= s->x->pad && p->behind * size <= s->x->pad) {
    m->pad[before] = p->before * size;
    m->pad[before + 1] = p->behind * size;
    return true;
  }
  s->zeros[0] = p->before * p->local;
  s->zeros[1] = p->behind * p->local;
  return false;
}
/* The innermost coordinates as a row; they end where zeros do. */
static void row_of(shape *s, int64_t most) {
  tarn_unit_move *m = &s->move;
  for (bool whole = true; s->n && whole; s->n--) {
    const piece *p = &s->at[s->n - 1];
    bool beside = p->local == m->entries && (p->n == 1 || p->step == m->entries);
    if (!beside || p->n * m->entries > most) return;
    whole = !p->before && !p->behind;
    pads(s, p, TARN_HW_LEFT, m->entries);
    m->entries *= p->n;
  }
}
/* The next coordinate as rows. */
static void rows_of(shape *s) {
  tarn_unit_move *m = &s->move;
  int64_t size = m->entries + m->pad[TARN_HW_LEFT] + m->pad[TARN_HW_RIGHT];
  const piece *p = s->n ? &s->at[s->n - 1] : NULL;
  if (!p || s->x->rank < 2 || p->local != size || s->zeros[0] || s->zeros[1]) return;
  if (p->n > 1 && p->step > s->x->stride) return;
  s->n--;
  m->rows = p->n;
  m->stride = p->step;
  pads(s, p, TARN_HW_TOP, 1);
}
/* Rows that lie side by side, and what follows in main memory as their entries. */
static void block_of(shape *s, int64_t most) {
  tarn_unit_move *m = &s->move;
  rows_of(s);
  const piece *p = s->n && s->n < s->all ? &s->at[s->n - 1] : NULL;
  if (!p || s->zeros[0] || s->zeros[1] || p->before || p->behind) return;
  if (p->step != 1 || p->n > most) return;
  m->entries = p->n;
  m->block = p->local;
  s->n--;
}
/* False where nothing of the tile lies in main memory. */
static bool shape_of(const tarn_hw *hw, const tarn_unit_tensor *t, const tarn_unit_box *b,
                     shape *s) {
  tarn_unit_move *m = &s->move;
  int64_t size = t->each;
  s->x = &hw->transfer[t->transfer];
  s->bare = s->x->to == hw->nmem - 1 || t->what == TARN_UNIT_ONTO || t->what == TARN_UNIT_SUMS;
  int64_t entry = tarn_hw_transfer_bytes(hw, s->x);
  int64_t most = s->x->row_bytes ? s->x->row_bytes / entry : INT64_MAX;
  *m = (tarn_unit_move){.main = t->base, .rows = 1, .entries = 1, .stride = 1};
  s->n = s->all = t->n;
  for (uint32_t i = t->n; i-- > 0;) {
    piece *p = &s->at[i];
    int64_t room = tarn_unit_room(&t->at[i], b);
    *p = piece_of(&t->at[i], b);
    if (p->n <= 0) return false;
    p->local = size;
    if (!s->bare) p->behind = room - p->n - p->before;
    m->main += p->first * p->step;
    size *= room;
  }
  bool blocks = unit_has_blocks(hw, t->transfer);
  s->most = blocks ? 1 : tarn_min(most, TARN_UNIT_ZEROS);
  if (blocks) block_of(s, most);
  else {
    row_of(s, most);
    rows_of(s);
  }
  return true;
}

static void emit(shape *s, tarn_unit_move m) {
  int64_t rows = m.rows;
  int64_t most = s->x->most_rows ? s->x->most_rows : rows;
  int64_t size = m.block ? 1 : m.entries + m.pad[TARN_HW_LEFT] + m.pad[TARN_HW_RIGHT];
  int64_t top = m.pad[TARN_HW_TOP];
  int64_t bottom = m.pad[TARN_HW_BOTTOM];
  for (int64_t at = 0; at < rows; at += most) {
    m.rows = tarn_min(most, rows - at);
    m.pad[TARN_HW_TOP] = at ? 0 : top;
    m.pad[TARN_HW_BOTTOM] = at + m.rows < rows ? 0 : bottom;
    s->count++;
    if (s->f) s->f(s->user, &m);
    m.main += m.rows * m.stride;
    m.local += (m.rows + m.pad[TARN_HW_TOP]) * size;
  }
}
static void flush(shape *s) {
  for (int64_t n = s->left, rows; n > 0; n = s->left) {
    tarn_unit_move m = {.local = s->from, .zeros = true, .entries = tarn_min(n, s->most)};
    rows = s->x->rank > 1 ? n / m.entries : 1;
    m.rows = rows;
    s->from += rows * m.entries;
    s->left -= rows * m.entries;
    emit(s, m);
  }
}
/* Those behind a row and those before the next one are moved together. */
static void zeros(shape *s, int64_t local, int64_t n) {
  if (s->from + s->left != local) flush(s);
  if (!s->left) s->from = local;
  s->left += n;
}
/* Coordinate i and those inside of it. */
static void walk(shape *s, uint32_t i, int64_t main, int64_t local) {
  if (i == s->n) {
    tarn_unit_move m = s->move;
    m.main = main;
    m.local = local + s->zeros[0];
    int64_t behind = m.local + (s->n < s->all ? s->at[s->n].n * s->at[s->n].local : 1);
    if (s->zeros[0]) zeros(s, local, s->zeros[0]);
    emit(s, m);
    if (s->zeros[1]) zeros(s, behind, s->zeros[1]);
    return;
  }
  const piece *p = &s->at[i];
  if (p->before) zeros(s, local, p->before * p->local);
  local += p->before * p->local;
  for (int64_t k = 0; k < p->n; k++) walk(s, i + 1, main + k * p->step, local + k * p->local);
  if (p->behind) zeros(s, local + p->n * p->local, p->behind * p->local);
}
/* Entries of a row, and rows, of the blocks that a packed tile comes in; 1: it comes in none. */
static int64_t blocks_of(const tarn_hw *hw, const tarn_unit_tensor *t, int64_t *rows) {
  const tarn_hw_transfer *x = &hw->transfer[t->transfer];
  *rows = x->most_rows;
  if (!*rows || !x->row_bytes || !unit_has_blocks(hw, t->transfer)) return 1;
  return tarn_max(x->row_bytes / tarn_hw_transfer_bytes(hw, x), 1);
}
int64_t tarn_unit_packed_at(const tarn_unit_plan *p, const tarn_unit_tensor *t, int64_t n,
                            int64_t entry) {
  int64_t rows;
  int64_t wide = blocks_of(p->hw, t, &rows);
  if (wide == 1 || entry >= n / (wide * rows) * (wide * rows)) return entry;
  int64_t of = entry % (wide * rows);
  return entry - of + of % rows * wide + of / rows;
}
/* Entries from 0 on: whole blocks, then rows of what remains. */
static void packed(shape *s, const tarn_hw *hw, const tarn_unit_tensor *t, int64_t n) {
  int64_t most = s->x->row_bytes ? s->x->row_bytes / tarn_hw_transfer_bytes(hw, s->x) : n;
  int64_t rows;
  int64_t wide = blocks_of(hw, t, &rows);
  tarn_unit_move m = {.rows = 1, .entries = n, .stride = 1};
  for (int64_t size = wide * rows; wide > 1 && n - m.local >= size; m.local += size) {
    tarn_unit_move b = {.main = m.local, .local = m.local, .rows = rows, .block = rows};
    b.entries = b.stride = wide;
    emit(s, b);
  }
  m.main = m.local;
  n -= m.local;
  if (!n) return;
  m.entries = n;
  if (n > most || s->x->most_rows) {
    m.rows = n;
    m.entries = 1;
  }
  emit(s, m);
}
int64_t tarn_unit_moves(const tarn_unit_plan *p, const tarn_unit_tensor *t, const tarn_unit_box *b,
                        tarn_unit_move_fn *f, void *user) {
  shape s = {.f = f, .user = user, .x = &p->hw->transfer[t->transfer]};
  if (t->packed) packed(&s, p->hw, t, tarn_unit_entries(t, b));
  else if (!shape_of(p->hw, t, b, &s)) return -1;
  else {
    walk(&s, 0, s.move.main, 0);
    flush(&s);
  }
  return s.count;
}
double tarn_unit_move_cycles(const tarn_hw *hw, const tarn_hw_transfer *t,
                             const tarn_unit_move *m) {
  double waits = t->row_latency ? (double)m->rows : 1;
  return t->startup + (double)m->rows * t->row + (double)(m->rows * m->entries) * t->entry +
         waits * hw->mem[hw->nmem - 1].latency;
}
