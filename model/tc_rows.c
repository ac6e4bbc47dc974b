/* Tensor comprehensions: sums of table rows that indices name, T(I(b,l),d) summed over l, as
 * gatherSum, which never holds the gathered rows. */
#include "model/tc.h"
#include <string.h>

static bool are_names(const tc_expr *e, uint32_t from) {
  bool are = true;
  for (uint32_t i = from; i < e->n; i++) are = are && e->kid[i]->kind == TC_NAME;
  return are;
}

/* As it is written: NAME(…) +=! TABLE(INDEX(names), names), of tensors that have a value now. */
bool tc_looks_like_rows(const tc_run *r, const tc_stmt *s) {
  const tc_expr *e = s->value;
  const tc_var *left = tc_find(r, s->left.name);
  if (s->how != TC_SUM || !s->fresh || (left && left->t != TARN_NONE)) return false;
  if (e->kind != TC_APPLY || !e->n || !tc_tensor(r, e->name) || !are_names(e, 1)) return false;
  const tc_expr *index = e->kid[0];
  return index->kind == TC_APPLY && index->n && tc_tensor(r, index->name) && are_names(index, 0);
}

static bool indexes(tarn_dtype t) { return !tarn_dtype_is_float(t) && t != TARN_BOOL; }

/* The number of the index in the statement, once only; TARN_NONE: it was met before, or is none. */
static uint32_t met(const tc_run *r, const tc_expr *e, uint32_t *seen) {
  const tc_index *x = tc_index_of(r, e->name);
  uint32_t i = x ? (uint32_t)(x - r->index) : TARN_NONE;
  if (!x || *seen >> i & 1) return TARN_NONE;
  *seen |= 1u << i;
  return i;
}

typedef struct order { /* indices of the statement: kept, then summed; those of a row */
  uint32_t kept, n, row;
  uint32_t index[TARN_MAX_DIMS], of_row[TARN_MAX_DIMS];
} order;

/* Each index stands once: in the subscripts of the index, or, one of the left side, of the row. */
static bool ordered(const tc_run *r, const tc_expr *e, order *o) {
  uint32_t seen = 0, in_index;
  for (uint32_t i = 0; i < e->kid[0]->n; i++)
    if (met(r, e->kid[0]->kid[i], &seen) == TARN_NONE) return false;
  in_index = seen;
  for (uint32_t i = 1; i < e->n; i++) {
    uint32_t x = met(r, e->kid[i], &seen);
    if (x == TARN_NONE || !r->index[x].left) return false;
    o->of_row[o->row++] = x;
  }
  for (uint32_t i = 0; i < r->nindex; i++) {
    if (!(seen >> i & 1)) return false;
    if (in_index >> i & 1) o->index[o->n++] = i;
    if (in_index >> i & 1 && r->index[i].left) o->kept = o->n;
  }
  return o->n > o->kept;
}

/* The index over its kept and summed dims, within their ranges. */
static tarn_term index_view(const tc_run *r, const tc_expr *e, const order *o) {
  tarn_term t = tc_find(r, e->name)->t;
  const tarn_type *ty = tarn_term_type(r->L, t);
  tarn_imap m = {.ns = (uint8_t)o->n, .n = (uint8_t)o->n, .nin = ty->n, .fill = TARN_NONE};
  memcpy(m.in, ty->dim, ty->n * sizeof *m.in);
  for (uint32_t i = 0; i < o->n; i++)
    m.dim[i] = r->index[o->index[i]].hi - r->index[o->index[i]].lo;
  for (uint32_t d = 0; d < ty->n; d++) {
    const tc_index *x = tc_index_of(r, e->kid[d]->name);
    uint32_t i = 0;
    while (o->index[i] != (uint32_t)(x - r->index)) i++;
    m.e[d] = tarn_ix_add(r->L, tarn_ix_var(r->L, i, m.dim), tarn_ix_const(r->L, x->lo), m.dim);
  }
  return tarn_view(r->L, tarn_map_intern(r->L, &m), t);
}

static tarn_term table_part(const tc_run *r, tarn_term t, const order *o) {
  for (uint32_t i = 0; i < o->row; i++) {
    const tc_index *x = &r->index[o->of_row[i]];
    bool whole = x->lo == 0 && x->hi == tarn_term_type(r->L, t)->dim[i + 1];
    if (!whole) t = tarn_slice(r->L, i + 1, x->lo, x->hi, 1, t);
  }
  return t;
}

bool tc_rows_of(const tc_run *r, tc_rows *out) {
  const tc_expr *e = r->stmt->value;
  order o = {0};
  tarn_term table = tc_find(r, e->name)->t;
  const tarn_type *t = tarn_term_type(r->L, table);
  const tarn_type *it = tarn_term_type(r->L, tc_find(r, e->kid[0]->name)->t);
  if (t->dtype == TARN_BOOL || !indexes(it->dtype) || !ordered(r, e, &o)) return false;
  out->table = table_part(r, table, &o);
  out->index = index_view(r, e->kid[0], &o);
  out->summed = o.n - o.kept;
  out->in_order = true;
  for (uint32_t i = 0; i < r->stmt->nindex; i++) {
    uint32_t at = 0;
    while (at < o.kept && o.index[at] != i) at++;
    for (uint32_t d = 0; at == o.kept && d < o.row; d++)
      if (o.of_row[d] == i) out->at[i] = o.kept + d;
    if (at < o.kept) out->at[i] = at;
    out->in_order &= out->at[i] == i;
  }
  return true;
}
