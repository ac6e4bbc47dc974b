/* How the rows of a product are held: without their padding, with their gaps.
 *
 * Padding in a tile takes room, and rows of their own where a transfer adds it; products with it
 * are 0. A tile without it has what lies in main memory alone, and what a window reads outside of
 * that is left out, one part of the windows at a time. Where only some entries of a row are read,
 * as by a stride, each of them is a row of a transfer; with those between them they are one. */
#include "plan/unit_internal.h"

/* Which of the two dims of a coordinate is the result's, and which the window's. */
static bool own_and_tap(const tarn_unit_plan *p, const tarn_coordinate *c, uint32_t *own,
                        uint32_t *tap) {
  if (c->n != 2) return false;
  *own = c->dim[0] < p->nacc ? 0 : 1;
  *tap = 1 - *own;
  return c->dim[*own] < p->nacc && c->dim[*tap] >= p->nacc;
}
static uint32_t coords_of(const tarn_unit_tensor *t, uint32_t dim) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->at[i].n; k++) n += t->at[i].dim[k] == dim;
  return n;
}
static bool rows_in_main(const tarn_unit_plan *p) {
  const tarn_unit_tensor *t = &p->tensor[0];
  bool read = p->way == TARN_UNIT_MULTIPLIES || p->way == TARN_UNIT_JOINS;
  return read && t->what == TARN_UNIT_ROWS && !t->packed;
}
bool tarn_unit_unpad(tarn_unit_plan *p) {
  tarn_unit_tensor *t = &p->tensor[0];
  bool any = false;
  if (!rows_in_main(p) || p->form.m > 1 || unit_begins(p->hw, p->product)) return false;
  bool real = tarn_dtype_is_float(p->k->in_type[p->stage->read[t->read].src]);
  if (real && p->way == TARN_UNIT_MULTIPLIES) return false; /* products with it may be no 0 */
  for (uint32_t i = 0; i < t->n; i++) {
    uint32_t own;
    uint32_t tap;
    if (!t->at[i].clipped) continue;
    if (!own_and_tap(p, &t->at[i], &own, &tap)) return false;
    if (coords_of(t, t->at[i].dim[tap]) > 1 || coords_of(t, t->at[i].dim[own]) > 1) return false;
    any = true;
  }
  for (uint32_t i = 0; i < t->n; i++) t->at[i].unpadded = t->at[i].clipped;
  t->unpadded = any;
  return any;
}
bool tarn_unit_bridge(tarn_unit_plan *p) {
  tarn_unit_tensor *t = &p->tensor[0];
  int64_t inside = t->each;
  if (!rows_in_main(p) || p->form.m > 1) return false;
  for (uint32_t i = t->n; i-- > 0;) {
    tarn_coordinate *c = &t->at[i];
    if (c->clipped || c->step % inside) return false;
    if (c->step == inside) {
      for (uint32_t k = 0; k < c->n; k++) inside += c->step * c->by[k] * (p->dim[c->dim[k]] - 1);
      continue;
    }
    for (uint32_t k = 0; k < c->n; k++) c->by[k] *= c->step / inside;
    c->step = inside;
    t->gaps = true;
    return true;
  }
  return false;
}

/* ---------------------------------------------------------------- products without padding */
typedef struct inside {
  const tarn_unit_plan *p;
  tarn_unit_inside_fn *f;
  void *user;
} inside;
/* Of the result's dim, what element k of the windows reads inside of the operand. */
static void range_of(const tarn_coordinate *c, uint32_t own, uint32_t tap, int64_t k,
                     const tarn_unit_box *b, int64_t *lo, int64_t *n) {
  uint32_t d = c->dim[own];
  int64_t by = c->by[own];
  int64_t first = c->lo - c->c - k * c->by[tap];
  int64_t end = c->hi - c->c - k * c->by[tap];
  int64_t last = tarn_min(b->lo[d] + b->n[d], end > 0 ? tarn_ceildiv(end, by) : 0);
  *lo = tarn_max(b->lo[d], first > 0 ? tarn_ceildiv(first, by) : 0);
  *n = tarn_max(last - *lo, 0);
}
static void from(const inside *w, uint32_t i, const tarn_unit_box *b) {
  const tarn_unit_tensor *t = &w->p->tensor[0];
  uint32_t own;
  uint32_t tap;
  while (i < t->n && !t->at[i].unpadded) i++;
  if (i == t->n || !own_and_tap(w->p, &t->at[i], &own, &tap)) {
    w->f(w->user, b);
    return;
  }
  const tarn_coordinate *c = &t->at[i];
  uint32_t d = c->dim[tap];
  for (int64_t k = b->lo[d], next; k < b->lo[d] + b->n[d]; k = next) {
    tarn_unit_box part = *b;
    int64_t lo;
    int64_t n;
    range_of(c, own, tap, k, b, &lo, &n);
    for (next = k + 1; next < b->lo[d] + b->n[d]; next++) {
      int64_t then;
      int64_t so_many;
      range_of(c, own, tap, next, b, &then, &so_many);
      if (then != lo || so_many != n) break;
    }
    part.lo[c->dim[own]] = lo;
    part.n[c->dim[own]] = n;
    part.lo[d] = k;
    part.n[d] = next - k;
    if (n) from(w, i + 1, &part);
  }
}
void tarn_unit_inside(const tarn_unit_plan *p, const tarn_unit_box *b, tarn_unit_inside_fn *f,
                      void *user) {
  const inside w = {p, f, user};
  from(&w, 0, b);
}
