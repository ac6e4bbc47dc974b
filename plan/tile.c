/* The register tile that a schedule's levels make, before there is a plan: its sizes, and which
 * accesses it has for one trip of the loops around it. */
#include "plan/internal.h"
#include <stdlib.h>
#include <string.h>

#define FOUND_AGAIN 32 /* fewer rows stay cached until the next tap */

/* How often partial results are stored, the first time included. */
static double passes_of(const tarn_stage_work *m, const tarn_stage_sched *s) {
  double passes = 1;
  for (uint32_t i = 0; i < s->acc && i < s->nlevel && m->reduces; i++)
    if (s->level[i].dim >= m->nacc)
      passes *= (double)tarn_ceildiv(m->dim[s->level[i].dim], s->level[i].step);
  return passes;
}

/* The register tile of a stage: what its vector, unrolled and dot levels cover. */
tarn_tile_work tarn_tile_of(const tarn_stage_work *m, const tarn_stage_sched *s) {
  tarn_tile_work t = {.vdim = UINT32_MAX,
                      .dot = UINT32_MAX,
                      .inner = UINT32_MAX,
                      .rdim = tarn_schedule_rows(s),
                      .lanes = 1,
                      .rows = 1,
                      .passes = passes_of(m, s)};
  int64_t left[TARN_MAX_DIMS];
  for (uint32_t d = 0; d < m->n; d++) t.size[d] = 1;
  memcpy(left, m->dim, sizeof left);
  for (uint32_t i = 0; i < s->nlevel; i++) {
    const tarn_level *l = &s->level[i];
    if (l->kind == TARN_VECTOR) t.vdim = l->dim, t.lanes = left[l->dim];
    if (l->kind == TARN_VECTOR && l->dim == t.rdim) t.rows = left[l->dim];
    if (l->kind == TARN_SERIAL && l->dim >= m->nacc && left[l->dim] > l->step)
      t.inner = left[l->dim] >= FOUND_AGAIN ? l->dim : UINT32_MAX;
    if (l->kind == TARN_DOT && left[l->dim] == m->dot.k) t.dot = l->dim;
    if (l->kind == TARN_VECTOR || l->kind == TARN_UNROLL || l->kind == TARN_DOT) {
      if (t.size[l->dim] == 1) t.size[l->dim] = left[l->dim];
    }
    left[l->dim] = tarn_min(left[l->dim], l->step);
  }
  uint32_t end = s->nlevel, acc = tarn_plan_acc(s, m->reduces);
  while (end && s->level[end - 1].kind == TARN_VECTOR) end--;
  while (end > acc && plan_orders(s->level[end - 1].kind, s->level[end - 1].dim, &t.ordered)) end--;
  return t;
}
double tarn_tile_vectors(const tarn_tile_work *t, uint32_t d, int64_t size) {
  if (d == t->dot) return 1;
  if (d == t->rdim) return (double)tarn_ceildiv(size, t->rows);
  return d == t->vdim ? (double)tarn_ceildiv(size, t->lanes) : (double)size;
}
/* Its elements are numbers in the code: all loops over it are unrolled. */
static bool is_known(const tarn_stage_work *m, const tarn_tile_work *t, const tarn_touch *a) {
  bool known = a->few;
  for (uint32_t d = 0; d < m->n; d++) known &= !(a->touched >> d & 1) || t->size[d] == m->dim[d];
  return known;
}
tarn_tile_access tarn_tile_access_of(const tarn_stage_work *m, const tarn_tile_work *t,
                                     const tarn_touch *a) {
  tarn_tile_access x = {.count = 1};
  bool halves = false;
  x.lanes = t->vdim < m->n && (a->touched >> t->vdim & 1);
  if (is_known(m, t, a)) return (tarn_tile_access){.count = 0};
  for (uint32_t d = 0; d < m->n; d++) {
    if (t->size[d] <= 1 || !(a->touched >> d & 1)) continue;
    bool even = !a->irregular && llabs(a->coef[d]) == 1;
    if (d == t->dot) x.grouped = a->constant ? m->dim[d] % t->size[d] != 0 : !even;
    else if (d != t->vdim && d >= m->nacc) x.count *= tarn_tile_shared(m, t, a, d);
    else if (d != t->vdim || even) x.count *= tarn_tile_vectors(t, d, t->size[d]);
    else if (!a->irregular && llabs(a->coef[d]) == 2)
      halves = true, x.count *= 2 * tarn_tile_vectors(t, d, t->size[d]);
    else x.gathered = true, x.count *= (double)t->size[d];
  }
  x.shuffles = halves ? x.count / 2 : 0;
  return x;
}
