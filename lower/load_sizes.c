/* Loaded programs of several sizes: which program runs, and the shapes of its inputs and outputs.
 */
#include "lower/loaded.h"
#include <stdlib.h>

uint32_t tarn_loaded_sizes(const tarn_loaded *m) { return m->sizes ? m->sizes->nsize : 0; }
const char *tarn_loaded_size_name(const tarn_loaded *m, uint32_t i) { return m->sizes->name[i]; }
uint32_t tarn_loaded_programs(const tarn_loaded *m) { return m->sizes ? m->sizes->nprogram : 1; }
const int64_t *tarn_loaded_program_size(const tarn_loaded *m, uint32_t program) {
  return m->sizes->program[program].size;
}
const int64_t *tarn_loaded_size(const tarn_loaded *m) { return m->size; }
uint32_t tarn_loaded_program(const tarn_loaded *m) { return m->program; }
bool tarn_loaded_rows(const tarn_loaded *m, uint32_t *rows, int64_t *lo, int64_t *hi) {
  if (!m->sizes || m->sizes->rows == m->sizes->nsize) return false;
  *rows = m->sizes->rows;
  *lo = m->sizes->lo;
  *hi = m->sizes->hi;
  return true;
}
bool tarn_loaded_family(const tarn_loaded *m, uint32_t program, uint32_t *open, int64_t *step,
                        uint32_t *count) {
  const tarn_rt_family *f = m->sizes ? m->sizes->program[program].family : NULL;
  if (!f) return false;
  *open = f->open;
  *step = f->step;
  *count = f->count;
  return true;
}
static bool in_family(const tarn_rt_family *f, int64_t first, int64_t size) {
  int64_t more = size - first;
  return more >= 0 && more % f->step == 0 && more / f->step < f->count;
}
/* Does a program serve these sizes, with other numbers of rows perhaps? */
static bool serves(const tarn_rt_sizes *s, const tarn_rt_sized *p, const int64_t *size) {
  for (uint32_t i = 0; i < s->nsize; i++) {
    bool is = size[i] == p->size[i];
    if (i == s->rows) is = size[i] >= s->lo && size[i] <= s->hi;
    else if (p->family && i == p->family->open) is = in_family(p->family, p->size[i], size[i]);
    if (!is) return false;
  }
  return true;
}
/* A dim of a family's description after k steps; grows: its two numbers. */
static int64_t grown(int64_t dim, const int64_t *grows, int64_t k) {
  return dim + grows[0] * k + grows[1] * (k * (k - 1) / 2);
}
/* The ports of the selected program are those of the first of its family. */
static void grow(tarn_loaded *m, int64_t k) {
  const int64_t *grows = m->family->grows;
  for (int o = 0; o < 2; o++)
    for (uint32_t i = 0; i < (o ? m->m->nout : m->m->nin); i++) {
      tarn_port *p = &m->port[o][i];
      int64_t *dim = tarn_copy(m->cx, p->dim, (p->n + 1) * sizeof *dim);
      for (uint32_t d = 0; d < p->n; d++, grows += 2) dim[d] = grown(dim[d], grows, k);
      p->dim = dim;
    }
}
/* A port with rows has as many as were asked for. */
static void give_rows(tarn_loaded *m, bool outputs, const uint8_t *has, int64_t of, int64_t n) {
  for (uint32_t i = 0; i < (outputs ? m->m->nout : m->m->nin); i++) {
    tarn_port *p = &m->port[outputs][i];
    if (!has[i]) continue;
    int64_t *dim = tarn_copy(m->cx, p->dim, p->n * sizeof *dim);
    dim[has[i] - 1] = dim[has[i] - 1] / of * n;
    p->dim = dim;
  }
}
bool tarn_loaded_select(tarn_loaded *m, const int64_t *size) {
  const tarn_rt_sizes *s = m->sizes;
  const tarn_rt_sized *found = NULL;
  bool rows = s->rows < s->nsize;
  for (uint32_t i = 0; i < s->nprogram; i++) { /* of several for rows: the largest that fits */
    const tarn_rt_sized *p = &s->program[i];
    if (!serves(s, p, size)) continue;
    if (!found || (rows && p->size[s->rows] <= size[s->rows])) found = p;
  }
  if (!found) return false;
  low_loaded_drop(m);
  m->program = (uint32_t)(found - s->program);
  m->m = found->model;
  m->family = found->family;
  m->size = tarn_copy(m->cx, size, s->nsize * sizeof *size);
  low_loaded_describe(m);
  const tarn_rt_family *f = m->family;
  if (f) grow(m, (size[f->open] - found->size[f->open]) / f->step);
  if (!rows) return true;
  give_rows(m, false, s->in_rows, found->size[s->rows], size[s->rows]);
  give_rows(m, true, s->out_rows, found->size[s->rows], size[s->rows]);
  return true;
}
/* ---- sizes from tensors ---- */
/* Does the tensor fit the port after k steps? *rows: of a port with rows how many, if that is not
 * known yet. grows: NULL, or of each dim. */
static bool fits(const tarn_rt_port *p, uint8_t has, const tarn_tensor *t, int64_t *rows,
                 const int64_t *grows, int64_t k) {
  bool same = (int32_t)t->n == p->n && (int32_t)t->dtype == p->dtype;
  for (uint32_t d = 0; same && d < t->n; d++)
    same = d + 1 == has || t->dim[d] == (grows ? grown(p->dim[d], grows + 2 * d, k) : p->dim[d]);
  if (!same || !has) return same;
  if (*rows < 0) *rows = t->dim[has - 1];
  return *rows == t->dim[has - 1];
}
/* The tensors are those of the program after k steps. */
static bool select_step(tarn_loaded *m, const tarn_rt_sized *p, const tarn_tensor *const *in,
                        uint32_t k) {
  const tarn_rt_sizes *s = m->sizes;
  const int64_t *grows = p->family ? p->family->grows : NULL;
  int64_t rows = -1;
  for (uint32_t i = 0; i < p->model->nin; i++) {
    const tarn_rt_port *x = &p->model->in[i];
    if (in[i] && !fits(x, s->rows < s->nsize ? s->in_rows[i] : 0, in[i], &rows, grows, k))
      return false;
    if (grows) grows += 2 * x->n;
  }
  int64_t *size = tarn_copy(m->cx, p->size, s->nsize * sizeof *size);
  if (p->family) size[p->family->open] += p->family->step * k;
  if (rows >= 0) size[s->rows] = rows;
  return tarn_loaded_select(m, size);
}
bool tarn_loaded_select_for(tarn_loaded *m, const tarn_tensor *const *in) {
  const tarn_rt_sizes *s = m->sizes;
  for (uint32_t i = 0; i < s->nprogram; i++) {
    const tarn_rt_sized *p = &s->program[i];
    for (uint32_t k = 0; k < (p->family ? p->family->count : 1); k++)
      if (select_step(m, p, in, k)) return true;
  }
  return false;
}

/* There are no rows: nothing runs. */
bool low_loaded_empty(const tarn_loaded *m) {
  const tarn_rt_sizes *s = m->sizes;
  return s && s->rows < s->nsize && !m->size[s->rows];
}
/* Of a range the smallest number of rows in it. */
void low_loaded_first(tarn_loaded *m) {
  const tarn_rt_sizes *s = m->sizes;
  int64_t *size = tarn_copy(m->cx, s->program[0].size, s->nsize * sizeof *size);
  if (s->rows < s->nsize) size[s->rows] = s->lo;
  (void)tarn_loaded_select(m, size);
}
