/* Rows of tables read where they lie: what a kernel reads of a gather's result it reads of the
 * gather's operands. */
#include "kernel/loops.h"
#include <string.h>

/* The elements of what is gathered that a read names, as a read of the table, in its first row, and
 * as one of the indices. */
static tarn_imap table_part(tarn_lang *L, const tarn_imap *m, const knest_rows *r) {
  tarn_imap t = *m;
  uint32_t more = r->index.n;
  t.nin = r->table.n;
  memcpy(t.in, r->table.dim, sizeof t.in);
  for (uint32_t i = r->axis + 1; i < t.nin; i++) t.e[i] = m->e[i + more - 1];
  t.e[r->axis] = tarn_ix_const(L, 0);
  return t;
}
static tarn_imap index_part(const tarn_imap *m, const knest_rows *r) {
  tarn_imap t = *m;
  t.nin = r->index.n;
  memcpy(t.in, r->index.dim, sizeof t.in);
  memcpy(t.e, m->e + r->axis, t.nin * sizeof *t.e);
  return t;
}
/* m through a view, without guards; false: it is not so. */
static bool through(tarn_lang *L, tarn_imap *m, uint32_t view) {
  uint32_t id = tarn_map_compose(L, tarn_map_intern_derived(L, m), view);
  if (id == TARN_NONE) return false;
  *m = *tarn_imap_get(L, id);
  return !m->nguard;
}
/* Elements from a row of the table to the next; false: they are not that far apart everywhere. */
static bool pitch_of(tarn_lang *L, const tarn_layout *l, const knest_rows *r, int64_t *pitch) {
  const tarn_imap view = *tarn_imap_get(L, r->table_view);
  if (l->block || view.nguard) return false;
  uint32_t at = imap_address(L, &view, l);
  *pitch = tarn_ix_coef(L, at, r->axis);
  return tarn_ix_affine(L, at);
}

/* by: the lookup's map, over the dims of what it serves: all loops of the stage in it. */
static uint32_t lookup(knest *w, knest_stage *s, uint32_t child, tarn_imap by) {
  int64_t dim[TARN_MAX_DIMS + 2];
  by.n = (uint8_t)knest_dims(w, s, dim);
  memcpy(by.dim, dim, by.n * sizeof *dim);
  uint32_t map = tarn_map_intern_derived(w->L, &by), first = s->nread - s->s.nlook;
  for (uint32_t i = first; i < s->nread; i++)
    if (s->read[i].src == child && tarn_map_intern_derived(w->L, &s->read[i].m) == map)
      return i - first + 1;
  knest_add_read(w, s, &(knest_read){.src = child, .m = *tarn_imap_get(w->L, map)});
  return ++s->s.nlook;
}
static bool look_up(knest *w, knest_stage *s, uint32_t at, uint32_t index, const knest_rows *r) {
  tarn_imap m = s->read[at].m;
  if (s->read[at].row.by || !through(w->L, &m, r->view)) return false;
  tarn_imap table = table_part(w->L, &m, r), by = index_part(&m, r);
  if (!through(w->L, &table, r->table_view) || !through(w->L, &by, r->index_view)) return false;
  uint32_t number = lookup(w, s, index, by); /* which may move the reads */
  s->read[at].m = table;
  s->read[at].row.by = number;
  return true;
}
bool knest_look_up(knest *w, uint32_t child, uint32_t index, const knest_rows *r) {
  int64_t pitch, extent = r->table.dim[r->axis];
  if (extent < 1 || !pitch_of(w->L, &w->in[child], r, &pitch)) return false;
  if (pitch == 0) return false; /* no address depends on the index, which is to be checked */
  for (uint32_t i = 0; i < w->nstage; i++) {
    knest_stage *s = &w->stage[i];
    for (uint32_t k = 0, n = s->nread - s->s.nlook; k < n; k++)
      if (!s->read[k].stage && s->read[k].src == child && !look_up(w, s, k, index, r)) return false;
  }
  knest_flatten(w, child);
  for (uint32_t i = 0; i < w->nstage; i++)
    for (uint32_t k = 0; k < w->stage[i].nread; k++) {
      knest_read *x = &w->stage[i].read[k];
      if (x->stage || x->src != child) continue;
      x->row.pitch = pitch, x->row.extent = extent;
      if (!tarn_rows_inside(w->L, &x->m, &x->row, false)) return false;
    }
  return true;
}
