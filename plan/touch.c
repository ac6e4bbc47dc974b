/* Footprints: bytes of memory, in whole lines, that an access touches while dims walk spans of
 * their own. While one schedule is priced, those of all its levels are kept: every memory asks for
 * them. */
#include "plan/work.h"
#include <stdlib.h>
#include <string.h>

void tarn_touch_sort(tarn_touch *a, uint32_t n) {
  a->nby = 0;
  for (uint32_t d = 0; d < n; d++) {
    if (!(a->touched >> d & 1)) continue;
    uint32_t at = a->nby++;
    for (; at > 0 && llabs(a->coef[a->by[at - 1]]) > llabs(a->coef[d]); at--)
      a->by[at] = a->by[at - 1];
    a->by[at] = (uint8_t)d;
  }
}

/* Packed constants lie as the loops walk them: what is touched lies together. */
static double packed(const tarn_touch *a, const int64_t *span) {
  double elems = 1;
  for (uint32_t i = 0; i < a->nby; i++) elems *= (double)span[a->by[i]];
  return elems;
}
/* dims by rising step: a step inside what is already covered widens it, one beyond it repeats it */
static tarn_footprint print_of(const tarn_touch *a, bool dense, const int64_t *span, double line) {
  double run = 1, repeats = 1,
         reach = 1; /* elements in one piece, pieces, elements from the first to the last */
  if (dense) {
    double bytes = tarn_fmax(packed(a, span) * a->bytes, line);
    return (tarn_footprint){bytes, bytes};
  }
  for (uint32_t i = 0; i < a->nby; i++) {
    if (span[a->by[i]] <= 1) continue;
    double c = (double)llabs(a->coef[a->by[i]]), s = (double)span[a->by[i]];
    if (c < 1) c = 1; /* irregular: no better guess */
    reach += c * (s - 1);
    if (c <= run || c <= line / a->bytes) run += c * (s - 1); /* no line is left out */
    else repeats *= s;
  }
  double piece = tarn_fmax(run * a->bytes, line);
  return (tarn_footprint){tarn_fmin(repeats * piece, tarn_fmax(reach * a->bytes, line)), piece};
}
tarn_footprint tarn_footprint_of(const tarn_touch *a, const int64_t *span, double line) {
  return print_of(a, false, span, line);
}
double tarn_touch_bytes(const tarn_touch *a, const int64_t *span, double line) {
  return print_of(a, a->constant && !a->irregular, span, line).bytes;
}
double tarn_stage_bytes(const tarn_stage_work *m, const int64_t *span, double line) {
  double sum = tarn_touch_bytes(&m->result, span, line);
  for (uint32_t r = 0; r < m->nread; r++) sum += tarn_touch_bytes(&m->read[r], span, line);
  return sum;
}
double tarn_stage_whole(const tarn_stage_work *m) { return tarn_stage_bytes(m, m->dim, 1); }

/* ---- of the levels of a schedule ---- */
void tarn_footprints_begin(tarn_footprints *p, const tarn_stage_work *m, const tarn_stage_sched *s,
                           uint64_t dense) {
  p->m = m, p->s = s, p->dense = dense, p->line = 0;
  p->nspan = 1;
  for (uint32_t d = 0; d < m->n; d++) p->span[0][d] = d < m->nshared ? 1 : m->dim[d];
}
void tarn_footprints_in(tarn_footprints *p, double line) {
  uint32_t n = p->m->nread < TARN_FOOTPRINTS ? p->m->nread + 1 : TARN_FOOTPRINTS;
  if (line == p->line) return;
  p->line = line;
  p->nsum = 0;
  memset(p->known, 0, n * sizeof *p->known);
}
const int64_t *tarn_footprints_span(tarn_footprints *p, uint32_t from) {
  for (; p->nspan <= from; p->nspan++) {
    const tarn_level *l = &p->s->level[p->nspan - 1];
    int64_t *span = p->span[p->nspan];
    memcpy(span, p->span[p->nspan - 1], p->m->n * sizeof *span);
    span[l->dim] = tarn_min(span[l->dim], l->step);
  }
  return p->span[from];
}
/* Does what lies inside level `from - 1` touch less of it than that level? */
static bool narrows(tarn_footprints *p, const tarn_touch *a, uint32_t from) {
  uint32_t d = p->s->level[from - 1].dim;
  return (a->touched >> d & 1) && tarn_footprints_span(p, from)[d] != p->span[from - 1][d];
}
bool tarn_footprint_packed(const tarn_footprints *p, uint32_t access) {
  return access && access < TARN_FOOTPRINTS && (p->dense >> (access - 1) & 1);
}
static const tarn_touch *access_of(const tarn_footprints *p, uint32_t access) {
  return access ? &p->m->read[access - 1] : &p->m->result;
}
tarn_footprint tarn_footprint_whole(const tarn_footprints *p, uint32_t access) {
  return print_of(access_of(p, access), tarn_footprint_packed(p, access), p->m->dim, p->line);
}
tarn_footprint tarn_footprint_at(tarn_footprints *p, uint32_t access, uint32_t from) {
  const tarn_touch *a = access_of(p, access);
  bool dense = tarn_footprint_packed(p, access);
  if (access >= TARN_FOOTPRINTS) return print_of(a, dense, tarn_footprints_span(p, from), p->line);
  tarn_footprint *at = p->at[access];
  for (uint32_t i = p->known[access]; i <= from; i++)
    at[i] = i && !narrows(p, a, i) ? at[i - 1]
                                   : print_of(a, dense, tarn_footprints_span(p, i), p->line);
  if (p->known[access] <= from) p->known[access] = (uint8_t)(from + 1);
  return at[from];
}
double tarn_footprints_sum(tarn_footprints *p, uint32_t from) {
  for (; p->nsum <= from; p->nsum++) {
    double sum = 0;
    for (uint32_t i = 0; i <= p->m->nread; i++) sum += tarn_footprint_at(p, i, p->nsum).bytes;
    p->sum[p->nsum] = sum;
  }
  return p->sum[from];
}
double tarn_work_points(const tarn_stage_work *m, uint32_t dims) {
  double n = 1;
  for (uint32_t d = 0; d < m->n; d++)
    if (dims >> d & 1) n *= (double)m->dim[d];
  return n;
}
