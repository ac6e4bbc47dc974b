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
/* What a transfer and the fields of its instruction allow. */
typedef struct limits {
  int64_t rows, entries; /* of one transfer; of a row: at most */
  int64_t pad[4];
  tarn_hw_range stride, block; /* from row to row in main memory; from entry to entry of a row */
} limits;
typedef struct shape {
  const tarn_hw_transfer *x;
  limits most;
  uint32_t n, all; /* coordinates outside of rows; of the tile */
  piece at[TARN_UNIT_COORDS];
  bool bare;          /* what a tile has room for besides is not filled */
  int64_t zeros[2];   /* entries before and behind the rows that another transfer fills */
  int64_t from, left; /* zeros that have not been moved yet: where, how many */
  int64_t zero_row;   /* of them in a row of main memory */
  tarn_unit_move move;
  tarn_unit_move_fn *f;
  void *user;
  int64_t count;
} shape;

/* The transfer's instruction puts the entries of a row a number of them apart. */
static bool has_blocks(const tarn_hw *hw, uint32_t transfer) {
  const tarn_hw_instruction *x = tarn_hw_mover(hw, transfer, NULL);
  return x && x->block != TARN_NONE;
}
static int64_t least(int64_t a, int64_t limit) { return limit ? tarn_min(a, limit) : a; }
static limits limits_of(const tarn_hw *hw, uint32_t transfer, const int64_t *immediate) {
  const tarn_hw_transfer *t = &hw->transfer[transfer];
  const tarn_hw_instruction *x = tarn_hw_mover(hw, transfer, immediate);
  const tarn_hw_range any = {0, INT64_MAX};
  int64_t entry = tarn_hw_transfer_bytes(hw, t);
  limits l = {.rows = least(INT64_MAX, t->most_rows), .entries = INT64_MAX};
  l.block = any;
  l.stride = (tarn_hw_range){0, t->stride};
  if (t->row_bytes) l.entries = t->row_bytes / entry;
  for (uint32_t i = 0; i < 4; i++) l.pad[i] = t->pad;
  if (!x) return l;
  tarn_hw_range stride = tarn_hw_range_of(hw, x, x->stride, 0);
  int64_t each = x->stride_bytes ? entry : 1;
  l.rows = tarn_min(l.rows, tarn_hw_range_of(hw, x, x->rows, 1).hi);
  l.entries = tarn_min(l.entries, tarn_hw_range_of(hw, x, x->entries, 0).hi / x->units);
  l.stride.lo = tarn_ceildiv(tarn_max(stride.lo, 0), each);
  l.stride.hi = tarn_min(t->stride, stride.hi / each);
  if (x->block != TARN_NONE) l.block = tarn_hw_range_of(hw, x, x->block, 0);
  for (uint32_t i = 0; i < 4; i++)
    l.pad[i] = tarn_min(t->pad, tarn_hw_range_of(hw, x, x->pad[i], 0).hi);
  return l;
}
int64_t tarn_unit_longest_row(const tarn_hw *hw, uint32_t transfer) {
  return limits_of(hw, transfer, NULL).entries;
}
int64_t tarn_unit_widest_block(const tarn_hw *hw, uint32_t transfer) {
  const tarn_hw_transfer *x = &hw->transfer[transfer];
  return x->row_bytes && has_blocks(hw, transfer) ? tarn_unit_longest_row(hw, transfer) : 1;
}
/* Coordinate p outside of what is moved so far, which takes `size` entries: its zeros. False: they
 * take transfers of their own. */
static bool pads(shape *s, const piece *p, uint32_t before, int64_t size) {
  tarn_unit_move *m = &s->move;
  if (p->before * size <= s->most.pad[before] && p->behind * size <= s->most.pad[before + 1]) {
    m->pad[before] = p->before * size;
    m->pad[before + 1] = p->behind * size;
    return true;
  }
  s->zeros[0] = p->before * p->local;
  s->zeros[1] = p->behind * p->local;
  return false;
}
/* The innermost coordinates as a row; they end where zeros do. */
static void row_of(shape *s) {
  tarn_unit_move *m = &s->move;
  for (bool whole = true; s->n && whole; s->n--) {
    const piece *p = &s->at[s->n - 1];
    bool beside = p->local == m->entries && (p->n == 1 || p->step == m->entries);
    if (!beside || p->n * m->entries > s->most.entries) return;
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
  if (p->n > 1 && s->most.rows > 1 && !tarn_hw_has(s->most.stride, p->step)) return;
  s->n--;
  m->rows = p->n;
  m->stride = p->step;
  pads(s, p, TARN_HW_TOP, 1);
}
/* Rows that lie side by side, and what follows in main memory as their entries. */
static void block_of(shape *s) {
  tarn_unit_move *m = &s->move;
  rows_of(s);
  const piece *p = s->n && s->n < s->all ? &s->at[s->n - 1] : NULL;
  if (!p || s->zeros[0] || s->zeros[1] || p->before || p->behind) return;
  if (p->step != 1 || p->n > s->most.entries || !tarn_hw_has(s->most.block, p->local)) return;
  m->entries = p->n;
  m->block = p->local;
  s->n--;
}
/* False where nothing of the tile lies in main memory. */
static bool shape_of(const tarn_hw *hw, const tarn_unit_tensor *t, const tarn_unit_box *b,
                     shape *s) {
  tarn_unit_move *m = &s->move;
  int64_t size = t->each;
  s->bare = s->x->to == hw->nmem - 1 || t->what == TARN_UNIT_ONTO || t->what == TARN_UNIT_SUMS;
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
  bool blocks = has_blocks(hw, t->transfer);
  s->zero_row = blocks ? 1 : tarn_min(s->most.entries, TARN_UNIT_ZEROS);
  if (blocks) block_of(s);
  else {
    row_of(s);
    rows_of(s);
  }
  return true;
}

static void emit(shape *s, tarn_unit_move m) {
  int64_t rows = m.rows;
  int64_t most = s->most.rows;
  int64_t size = m.block ? 1 : m.entries + m.pad[TARN_HW_LEFT] + m.pad[TARN_HW_RIGHT];
  int64_t top = m.pad[TARN_HW_TOP];
  int64_t bottom = m.pad[TARN_HW_BOTTOM];
  for (int64_t at = 0; at < rows; at += m.rows) {
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
    tarn_unit_move m = {.local = s->from, .zeros = true, .entries = tarn_min(n, s->zero_row)};
    rows = s->x->rank > 1 && tarn_hw_has(s->most.stride, 0) ? n / m.entries : 1;
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
static const int64_t *immediate_of(const tarn_unit_plan *p, const tarn_unit_tensor *t) {
  return t->what == TARN_UNIT_RESULT ? &p->store_immediate : NULL;
}
/* Entries of a row, and rows, of the blocks that a packed tile comes in; 1: it comes in none. */
static int64_t blocks_of(const tarn_unit_plan *p, const tarn_unit_tensor *t, int64_t *rows) {
  limits l = limits_of(p->hw, t->transfer, immediate_of(p, t));
  int64_t wide = tarn_unit_widest_block(p->hw, t->transfer);
  *rows = p->hw->transfer[t->transfer].most_rows ? l.rows : 0;
  bool can = *rows && tarn_hw_has(l.block, *rows) && tarn_hw_has(l.stride, wide);
  return can ? tarn_max(wide, 1) : 1;
}
int64_t tarn_unit_packed_at(const tarn_unit_plan *p, const tarn_unit_tensor *t, int64_t n,
                            int64_t entry) {
  int64_t rows;
  int64_t wide = blocks_of(p, t, &rows);
  if (wide == 1 || entry >= n / (wide * rows) * (wide * rows)) return entry;
  int64_t of = entry % (wide * rows);
  return entry - of + of % rows * wide + of / rows;
}
/* Entries in a row as they are; or in rows of one, where the transfer puts those of a row apart or
 * has several rows at once. */
static void in_order(shape *s, const tarn_hw *hw, const tarn_unit_tensor *t, tarn_unit_move m,
                     int64_t n) {
  bool rows = s->x->rank > 1 && s->most.rows > 1 && tarn_hw_has(s->most.stride, 1);
  bool blocks = has_blocks(hw, t->transfer);
  m.rows = m.entries = 1;
  if (rows && (blocks || n > s->most.entries || s->x->most_rows)) {
    m.rows = n;
    emit(s, m);
    return;
  }
  for (int64_t at = 0; at < n; at += m.entries) {
    m.entries = blocks ? 1 : tarn_min(n - at, s->most.entries);
    emit(s, m);
    m.main += m.entries;
    m.local += m.entries;
  }
}
/* Entries from 0 on: whole blocks, then rows of what remains. */
static void packed(shape *s, const tarn_unit_plan *p, const tarn_unit_tensor *t, int64_t n) {
  int64_t rows;
  int64_t wide = blocks_of(p, t, &rows);
  tarn_unit_move m = {.rows = 1, .entries = n, .stride = 1};
  for (int64_t size = wide * rows; wide > 1 && n - m.local >= size; m.local += size) {
    tarn_unit_move b = {.main = m.local, .local = m.local, .rows = rows, .block = rows};
    b.entries = b.stride = wide;
    emit(s, b);
  }
  m.main = m.local;
  if (m.local < n) in_order(s, p->hw, t, m, n - m.local);
}
int64_t tarn_unit_moves(const tarn_unit_plan *p, const tarn_unit_tensor *t, const tarn_unit_box *b,
                        tarn_unit_move_fn *f, void *user) {
  shape s = {.f = f, .user = user, .x = &p->hw->transfer[t->transfer]};
  s.most = limits_of(p->hw, t->transfer, immediate_of(p, t));
  if (t->packed) packed(&s, p, t, tarn_unit_entries(t, b));
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
