/* Footprints: bytes of memory, in whole lines, that an access touches while dims walk spans of
 * their own. While one schedule is priced, those of all its levels are kept: every memory asks for
 * them. */
#include "price/internal.h"
#include <stdlib.h>
#include <string.h>

void loop_by_step(acc_model *a, uint32_t n) {
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
static double packed(const acc_model *a, const int64_t *span) {
  double elems = 1;
  for (uint32_t i = 0; i < a->nby; i++) elems *= (double)span[a->by[i]];
  return elems;
}
/* dims by rising step: a step inside what is already covered widens it, one beyond it repeats it */
static loop_print print_of(const acc_model *a, bool dense, const int64_t *span, double line) {
  double run = 1, repeats = 1,
         reach = 1; /* elements in one piece, pieces, elements from the first to the last */
  if (dense) {
    double bytes = tarn_fmax(packed(a, span) * a->bytes, line);
    return (loop_print){bytes, bytes};
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
  return (loop_print){tarn_fmin(repeats * piece, tarn_fmax(reach * a->bytes, line)), piece};
}
loop_print loop_print_of(const acc_model *a, const int64_t *span, double line) {
  return print_of(a, false, span, line);
}
double loop_footprint(const acc_model *a, const int64_t *span, double line) {
  return print_of(a, a->constant && !a->irregular, span, line).bytes;
}
double loop_footprints(const stage_model *m, const int64_t *span, double line) {
  double sum = loop_footprint(&m->result, span, line);
  for (uint32_t r = 0; r < m->nread; r++) sum += loop_footprint(&m->read[r], span, line);
  return sum;
}
double loop_whole(const stage_model *m) { return loop_footprints(m, m->dim, 1); }

/* ---- of the levels of a schedule ---- */
void loop_prints_of(loop_prints *p, const stage_model *m, const tarn_stage_sched *s,
                    uint64_t dense) {
  p->m = m, p->s = s, p->dense = dense, p->line = 0;
  p->nspan = 1;
  for (uint32_t d = 0; d < m->n; d++) p->span[0][d] = d < m->nshared ? 1 : m->dim[d];
}
void loop_prints_in(loop_prints *p, double line) {
  uint32_t n = p->m->nread < LOOP_PRINTS ? p->m->nread + 1 : LOOP_PRINTS;
  if (line == p->line) return;
  p->line = line;
  p->nsum = 0;
  memset(p->known, 0, n * sizeof *p->known);
}
const int64_t *loop_spans(loop_prints *p, uint32_t from) {
  for (; p->nspan <= from; p->nspan++) {
    const tarn_level *l = &p->s->level[p->nspan - 1];
    int64_t *span = p->span[p->nspan];
    memcpy(span, p->span[p->nspan - 1], p->m->n * sizeof *span);
    span[l->dim] = tarn_min(span[l->dim], l->step);
  }
  return p->span[from];
}
/* Does what lies inside level `from - 1` touch less of it than that level? */
static bool narrows(loop_prints *p, const acc_model *a, uint32_t from) {
  uint32_t d = p->s->level[from - 1].dim;
  return (a->touched >> d & 1) && loop_spans(p, from)[d] != p->span[from - 1][d];
}
bool loop_is_packed(const loop_prints *p, uint32_t access) {
  return access && access < LOOP_PRINTS && (p->dense >> (access - 1) & 1);
}
static const acc_model *access_of(const loop_prints *p, uint32_t access) {
  return access ? &p->m->read[access - 1] : &p->m->result;
}
loop_print loop_print_whole(const loop_prints *p, uint32_t access) {
  return print_of(access_of(p, access), loop_is_packed(p, access), p->m->dim, p->line);
}
loop_print loop_print_at(loop_prints *p, uint32_t access, uint32_t from) {
  const acc_model *a = access_of(p, access);
  bool dense = loop_is_packed(p, access);
  if (access >= LOOP_PRINTS) return print_of(a, dense, loop_spans(p, from), p->line);
  loop_print *at = p->at[access];
  for (uint32_t i = p->known[access]; i <= from; i++)
    at[i] = i && !narrows(p, a, i) ? at[i - 1] : print_of(a, dense, loop_spans(p, i), p->line);
  if (p->known[access] <= from) p->known[access] = (uint8_t)(from + 1);
  return at[from];
}
double loop_prints_sum(loop_prints *p, uint32_t from) {
  for (; p->nsum <= from; p->nsum++) {
    double sum = 0;
    for (uint32_t i = 0; i <= p->m->nread; i++) sum += loop_print_at(p, i, p->nsum).bytes;
    p->sum[p->nsum] = sum;
  }
  return p->sum[from];
}
