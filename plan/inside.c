/* What of windows lies inside a tensor: taps in padding add nothing to a sum and are no work. They
 * are counted by the guards of the reads: the dims that guards tie together are walked but for one,
 * along which the places where all guards hold are a range. */
#include "plan/work.h"
#include <stdlib.h>
#include <string.h>

#define MOST_WALKED (INT64_C(1) << 24) /* combinations of tied dims; of more all are counted */

/* ---------------------------------------------------------------- which reads matter */
/* What a choice between two values is where the condition is known, as that of a mask is in
 * padding.
 */
static uint32_t chosen(tarn_lang *L, uint32_t f) {
  const tarn_fx *x = tarn_fx_get(L, f);
  const tarn_fx *c = x->op == TARN_FX_SEL ? tarn_fx_get(L, x->kid[0]) : x;
  if (c == x || c->op != TARN_FX_CONST) return f;
  return chosen(L, x->kid[c->ivalue ? 1 : 2]);
}
/* Is it 0 because a factor of it is? What the other factors are, infinite or not, is not asked. */
static bool is_zero(tarn_lang *L, uint32_t f) {
  const tarn_fx *x = tarn_fx_get(L, chosen(L, f));
  switch (x->op) {
  case TARN_FX_CONST: return tarn_dtype_is_float(x->dtype) ? x->value == 0 : x->ivalue == 0;
  case TARN_FX_MUL: return is_zero(L, x->kid[0]) || is_zero(L, x->kid[1]);
  case TARN_FX_CAST: return is_zero(L, x->kid[0]);
  default: return false;
  }
}
/* Does the reduction stay as it is where operand r is what it is padded with? */
static bool pads(tarn_lang *L, const tarn_func *f, const tarn_stage *s, uint32_t r) {
  const tarn_imap *m = tarn_imap_get(L, s->read[r].map);
  uint32_t with[UINT8_MAX];
  if (!m->nguard) return false;
  for (uint32_t i = 0; i < f->nops; i++) with[i] = i == r ? m->fill : TARN_NONE;
  uint32_t body = tarn_fx_subst(L, f->body, with, f->nops);
  bool sum = tarn_reducer_get(L, f->red)->kind == TARN_RED_SUM;
  return chosen(L, body) == tarn_reducer_identity(L, f->red) || (sum && is_zero(L, body));
}

typedef struct guards {
  tarn_lang *L;
  const tarn_stage_work *m;
  TARN_VEC(tarn_guard) g;
  int64_t at[TARN_MAX_DIMS];
} guards;
static bool is_known(const guards *w, const tarn_guard *g) {
  for (uint32_t i = 0; i < w->g.n; i++)
    if (w->g.p[i].e == g->e && w->g.p[i].lo == g->lo && w->g.p[i].hi == g->hi) return true;
  return false;
}
static void find_guards(guards *w, const tarn_func *f, const tarn_stage *s) {
  for (uint32_t r = 0; r < f->nops; r++) {
    if (!pads(w->L, f, s, r)) continue;
    const tarn_imap *m = tarn_imap_get(w->L, s->read[r].map);
    for (uint32_t g = 0; g < m->nguard; g++)
      if (!is_known(w, &m->guard[g])) tarn_push(tarn_lang_ctx(w->L), &w->g, m->guard[g]);
  }
}

/* ---------------------------------------------------------------- counting */
/* Dims that guards tie to these, directly or by others. */
static uint32_t tied(const guards *w, uint32_t dims) {
  for (uint32_t before = 0; before != dims;) {
    before = dims;
    for (uint32_t g = 0; g < w->g.n; g++) {
      uint32_t of = tarn_ix_dims(w->L, w->g.p[g].e);
      if (of & dims) dims |= of;
    }
  }
  return dims;
}
static bool divides(const guards *w, uint32_t d) {
  for (uint32_t g = 0; g < w->g.n; g++) {
    const tarn_ix *x = tarn_ix_get(w->L, w->g.p[g].e);
    for (uint32_t i = 0; i < x->n; i++)
      if (x->t[i].kind != TARN_IX_VAR && tarn_ix_dims(w->L, x->t[i].arg) >> d & 1) return true;
  }
  return false;
}
/* The longest dim that no guard divides; TARN_NONE. */
static uint32_t range_dim(const guards *w, uint32_t dims) {
  uint32_t best = TARN_NONE;
  for (uint32_t d = 0; d < w->m->n; d++)
    if ((dims >> d & 1) && !divides(w, d) && (best == TARN_NONE || w->m->dim[d] > w->m->dim[best]))
      best = d;
  return best;
}
/* Places along dim d, with the others at w->at, where all guards on these dims hold. */
static int64_t along(guards *w, uint32_t dims, uint32_t d) {
  int64_t first = 0, last = d == TARN_NONE ? 0 : w->m->dim[d] - 1;
  if (d != TARN_NONE) w->at[d] = 0;
  for (uint32_t g = 0; g < w->g.n && first <= last; g++) {
    const tarn_guard *q = &w->g.p[g];
    if (!(tarn_ix_dims(w->L, q->e) & dims)) continue;
    int64_t at = tarn_ix_eval(w->L, q->e, w->at), lo = q->lo - at, hi = q->hi - 1 - at;
    int64_t by = d == TARN_NONE ? 0 : tarn_ix_coef(w->L, q->e, d); /* lo <= by * i <= hi */
    if (by < 0) {
      int64_t swap = -lo;
      lo = -hi, hi = swap, by = -by;
    }
    if (by == 0 && (lo > 0 || hi < 0)) return 0;
    if (by == 0) continue;
    first = tarn_max(first, tarn_ceildiv(lo, by));
    last = tarn_min(last, tarn_floordiv(hi, by));
  }
  return last >= first ? last - first + 1 : 0;
}
/* How many points of dims that are tied together lie inside. */
static double count(guards *w, uint32_t dims) {
  uint32_t range = range_dim(w, dims), d = 0;
  int64_t trips = 1, inside = 0;
  for (d = 0; d < w->m->n; d++) {
    bool walked = (dims >> d & 1) && d != range;
    if (walked && __builtin_mul_overflow(trips, w->m->dim[d], &trips)) trips = INT64_MAX;
  }
  if (trips > MOST_WALKED) return tarn_work_points(w->m, dims);
  memset(w->at, 0, sizeof w->at);
  do {
    inside += along(w, dims, range);
    for (d = 0; d < w->m->n; d++) {
      if (!(dims >> d & 1) || d == range) continue;
      if (++w->at[d] < w->m->dim[d]) break;
      w->at[d] = 0;
    }
  } while (d < w->m->n);
  return (double)inside;
}
double tarn_work_part_inside(tarn_lang *L, const tarn_guard *g, const tarn_stage_work *m) {
  uint32_t dims = tarn_ix_dims(L, g->e);
  guards w = {.L = L, .m = m};
  if (!dims || __builtin_popcount(dims) > 2) return 1;
  tarn_push(tarn_lang_ctx(L), &w.g, *g);
  return count(&w, dims) / tarn_work_points(m, dims);
}
double tarn_work_inside(tarn_lang *L, const tarn_stage *s, const tarn_stage_work *m) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  guards w = {.L = L, .m = m};
  uint32_t guarded = 0, left = tarn_first_dims(m->n), dims;
  double points = 1;
  if (f->red != TARN_NONE && !f->ntuple) find_guards(&w, f, s);
  for (uint32_t g = 0; g < w.g.n; g++) guarded |= tarn_ix_dims(L, w.g.p[g].e);
  for (; guarded; guarded &= ~dims, left &= ~dims) {
    dims = tied(&w, guarded & -guarded);
    points *= count(&w, dims);
  }
  return points * tarn_work_points(m, left);
}
