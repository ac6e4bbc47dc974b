/* Loaded programs of several sizes: which program runs, and the shapes of its inputs and outputs.
 */
#include "lower/loaded.h"
#include <stdlib.h>
#include <string.h>

uint32_t tarn_loaded_sizes(const tarn_loaded *m) { return m->sizes ? m->sizes->nsize : 0; }
const char *tarn_loaded_size_name(const tarn_loaded *m, uint32_t i) { return m->sizes->name[i]; }
uint32_t tarn_loaded_programs(const tarn_loaded *m) { return m->sizes ? m->sizes->nprogram : 1; }
const int64_t *tarn_loaded_program_size(const tarn_loaded *m, uint32_t program) {
  return m->sizes->program[program].size;
}
const int64_t *tarn_loaded_size(const tarn_loaded *m) { return m->size; }
uint32_t tarn_loaded_program(const tarn_loaded *m) { return m->program; }
static tarn_size_range range_of(const tarn_rt_sized *p, uint32_t k) {
  if (!p->family) return (tarn_size_range){p->size[k], p->size[k], 1};
  return (tarn_size_range){p->family->lo[k], p->family->hi[k], p->family->step[k]};
}
tarn_size_range tarn_loaded_range(const tarn_loaded *m, uint32_t program, uint32_t k) {
  return range_of(&m->sizes->program[program], k);
}
static bool serves(const tarn_rt_sizes *s, const tarn_rt_sized *p, const int64_t *size) {
  for (uint32_t k = 0; k < s->nsize; k++) {
    tarn_size_range r = range_of(p, k);
    if (size[k] < r.lo || size[k] > r.hi || (size[k] - r.lo) % r.step) return false;
  }
  return true;
}

/* ---- dims ---- */
/* The polynomial of a dim at these sizes; words: its TARN_RT_POLY numbers. */
static int64_t dim_at(const int64_t *words, const int64_t *size, uint32_t nsize) {
  int64_t sum = 0;
  for (uint32_t i = 1; i + 1 < TARN_RT_POLY; i += 2) {
    int64_t v = words[i];
    for (uint32_t k = 0; k < nsize; k++)
      for (int64_t n = words[i + 1] >> (8 * k) & 255; n > 0; n--) v *= size[k];
    sum += v;
  }
  return sum / words[0];
}
/* The ports of the selected program, which are described for its largest sizes. */
static void give_dims(tarn_loaded *m) {
  const int64_t *words = m->family->dims;
  for (int o = 0; o < 2; o++)
    for (uint32_t i = 0; i < (o ? m->m->nout : m->m->nin); i++) {
      tarn_port *p = &m->port[o][i];
      int64_t *dim = tarn_copy(m->cx, p->dim, (p->n + 1) * sizeof *dim);
      for (uint32_t d = 0; d < p->n; d++, words += TARN_RT_POLY)
        dim[d] = dim_at(words, m->size, m->sizes->nsize);
      p->dim = dim;
    }
}
bool tarn_loaded_select(tarn_loaded *m, const int64_t *size) {
  const tarn_rt_sizes *s = m->sizes;
  uint32_t i = 0;
  while (i < s->nprogram && !serves(s, &s->program[i], size)) i++;
  if (i == s->nprogram) return false;
  low_loaded_drop(m);
  m->program = i;
  m->m = s->program[i].model;
  m->family = s->program[i].family;
  m->size = tarn_copy(m->cx, size, s->nsize * sizeof *size);
  low_loaded_describe(m);
  if (m->family) give_dims(m);
  return true;
}

/* ---- sizes from tensors ---- */
/* The only size that a dim depends on, of which it is a multiple and a constant; false: there is no
 * such one. */
static bool only_size(const int64_t *words, uint32_t nsize, uint32_t *k, int64_t *by,
                      int64_t *plus) {
  *by = 0;
  *plus = 0;
  for (uint32_t i = 1; i + 1 < TARN_RT_POLY; i += 2) {
    int64_t power = words[i + 1];
    if (!power) *plus += words[i];
    else {
      if (*by || power & (power - 1) || !(power & INT64_C(0x0101010101010101))) return false;
      *k = (uint32_t)__builtin_ctzll((uint64_t)power) / 8;
      *by = words[i];
    }
  }
  return *by && *k < nsize;
}
/* Sets the sizes that dims name; false: a dim is none of the program's. */
static bool read_sizes(const tarn_rt_sizes *s, const tarn_rt_sized *p, const tarn_tensor *const *in,
                       int64_t *size) {
  const int64_t *words = p->family->dims;
  for (uint32_t i = 0; i < p->model->nin; i++) {
    uint32_t n = (uint32_t)p->model->in[i].n;
    for (uint32_t d = 0; in[i] && d < n && d < in[i]->n; d++) {
      const int64_t *w = words + (size_t)d * TARN_RT_POLY;
      uint32_t k = 0;
      int64_t by;
      int64_t plus;
      if (!only_size(w, s->nsize, &k, &by, &plus)) continue;
      int64_t v = in[i]->dim[d] * w[0] - plus;
      if (v % by) return false;
      size[k] = v / by;
    }
    words += (size_t)n * TARN_RT_POLY;
  }
  return true;
}
static bool same_port(const tarn_rt_port *p, const int64_t *words, uint32_t nsize,
                      const int64_t *size, const tarn_tensor *t) {
  if ((int32_t)t->n != p->n || (int32_t)t->dtype != p->dtype) return false;
  for (uint32_t d = 0; d < t->n; d++) {
    int64_t dim = words ? dim_at(words + (size_t)d * TARN_RT_POLY, size, nsize) : p->dim[d];
    if (t->dim[d] != dim) return false;
  }
  return true;
}
static bool select_program(tarn_loaded *m, const tarn_rt_sized *p, const tarn_tensor *const *in) {
  const tarn_rt_sizes *s = m->sizes;
  int64_t *size = tarn_copy(m->cx, p->size, s->nsize * sizeof *size);
  const int64_t *words = p->family ? p->family->dims : NULL;
  if (words && !read_sizes(s, p, in, size)) return false;
  if (!serves(s, p, size)) return false;
  for (uint32_t i = 0; i < p->model->nin; i++) {
    const tarn_rt_port *x = &p->model->in[i];
    if (in[i] && !same_port(x, words, s->nsize, size, in[i])) return false;
    if (words) words += (size_t)x->n * TARN_RT_POLY;
  }
  return tarn_loaded_select(m, size);
}
bool tarn_loaded_select_for(tarn_loaded *m, const tarn_tensor *const *in) {
  for (uint32_t i = 0; i < m->sizes->nprogram; i++)
    if (select_program(m, &m->sizes->program[i], in)) return true;
  return false;
}
void low_loaded_first(tarn_loaded *m) { (void)tarn_loaded_select(m, m->sizes->program[0].size); }
