/* Facts about the arguments of exp in a softmax, and about the numbers whose maximum is subtracted.
 *
 * A softmax applies exp to numbers minus their maximum, which an earlier stage of the kernel
 * computes. The argument is at most 0, or a NaN. So exp cannot overflow and need not test for it
 * (lower/math.c). And the maximum need not propagate a NaN, because the sum of the exponentials
 * does, and everything is divided by that sum. */
#include "plan/internal.h"

/* Is the index map of a read, over (shared, own) dims of its stage, the one by which `max`, a
 * reduction, goes over the same tensor, with what it reduces in the place of the own dims that do
 * not choose its result? */
static bool reduced_by(const tarn_plan_nest *N, const tarn_plan_stage *st, const tarn_imap *of,
                       const tarn_plan_stage *max, const tarn_imap *chosen, const tarn_imap *read) {
  tarn_lang *L = N->L;
  uint32_t depth = N->n->depth, nown = st->s->nown, used = 0, sub[TARN_MAX_DIMS * 2], n = depth,
           red = 0;
  if (chosen->nin != max->s->nown || of->nguard || read->nguard || chosen->nguard ||
      of->nin != read->nin)
    return false;
  for (uint32_t d = 0; d < depth; d++) sub[d] = tarn_ix_var(L, d, of->dim);
  for (uint32_t k = 0; k < chosen->nin; k++)
    sub[n++] = chosen->e[k], used |= tarn_ix_dims(L, chosen->e[k]);
  for (uint32_t d = depth; d < depth + nown; d++) {
    if (used >> d & 1) continue;
    if (red == max->s->nred || max->s->red[red] != st->s->own[d - depth]) return false;
    sub[n++] = tarn_ix_var(L, d, of->dim), red++;
  }
  if (red != max->s->nred || read->n != n) return false;
  for (uint32_t a = 0; a < of->nin; a++)
    if (tarn_ix_subst(L, read->e[a], sub, of->dim) != of->e[a]) return false;
  return true;
}
/* Is b, as the stage reads it, a stage's reduction (before its epilogue) of numbers one of which a
 * is? */
static bool reduction_of(const tarn_plan_nest *N, const tarn_plan_stage *st, tarn_red_kind kind,
                         const tarn_read *a, const tarn_read *b) {
  tarn_lang *L = N->L;
  if (!b->stage || st->s->nred) return false;
  const tarn_plan_stage *by = &N->stage[b->src];
  if (!by->red || by->red->kind != kind || by->f->nops != 1 || by->f->body != tarn_fx_hole(L, 0))
    return false;
  const tarn_read *r = by->s->read;
  if (r->stage != a->stage || r->src != a->src) return false;
  return reduced_by(N, st, tarn_imap_get(L, a->map), by, tarn_imap_get(L, b->map),
                    tarn_imap_get(L, r->map));
}
/* Is b, as the stage reads it, the largest of numbers one of which a is? */
static bool largest_of(const tarn_plan_nest *N, const tarn_plan_stage *st, const tarn_read *a,
                       const tarn_read *b) {
  return reduction_of(N, st, TARN_RED_MAX, a, b) && N->stage[b->src].f->epi == TARN_NONE;
}

static bool all_at_most_0(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t f,
                          uint32_t *looks, bool *any) {
  const tarn_lang *L = N->L;
  const tarn_fx *x = tarn_fx_get(L, f);
  if (!(*looks)--) return false;
  if (x->op == TARN_FX_HOLE || x->op == TARN_FX_CONST) return true;
  if (x->op == TARN_FX_EXP) {
    const tarn_fx *of = tarn_fx_get(L, x->kid[0]);
    if (of->op != TARN_FX_SUB) return false;
    const tarn_fx *a = tarn_fx_get(L, of->kid[0]), *b = tarn_fx_get(L, of->kid[1]);
    if (a->op != TARN_FX_HOLE || b->op != TARN_FX_HOLE) return false;
    if (!largest_of(N, st, &st->s->read[a->hole], &st->s->read[b->hole])) return false;
    return *any = true;
  }
  for (uint32_t i = 0; i < tarn_fx_arity(x->op); i++)
    if (!all_at_most_0(N, st, x->kid[i], looks, any)) return false;
  return true;
}
/* Is every exp of the stage's body of a number that is at most 0, or NaN? */
bool tarn_plan_exp_at_most_0(const tarn_plan_nest *N, const tarn_plan_stage *st) {
  uint32_t looks = 256;
  bool any = false;
  return all_at_most_0(N, st, st->f->body, &looks, &any) && any;
}

/* ---------------------------------------------------------------- the largest of numbers, but for
 * NaN */
/* Is f a NaN whenever hole h is? */
static bool keeps_nan(const tarn_lang *L, uint32_t f, uint32_t h) {
  const tarn_fx *x = tarn_fx_get(L, f);
  switch (x->op) {
  case TARN_FX_HOLE: return x->hole == h;
  case TARN_FX_ADD:
  case TARN_FX_SUB:
  case TARN_FX_MUL:
  case TARN_FX_DIV: return keeps_nan(L, x->kid[0], h) || keeps_nan(L, x->kid[1], h);
  case TARN_FX_NEG:
  case TARN_FX_EXP: return keeps_nan(L, x->kid[0], h);
  default: return false;
  }
}
/* exp of what is left of $a when $b is taken off. */
static bool is_left_over(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t *a,
                         uint32_t *b) {
  const tarn_lang *L = N->L;
  const tarn_fx *x = tarn_fx_get(L, st->f->body);
  if (x->op != TARN_FX_EXP || st->red || st->s->out || st->f->epi != TARN_NONE) return false;
  x = tarn_fx_get(L, x->kid[0]);
  if (x->op != TARN_FX_SUB) return false;
  const tarn_fx *p = tarn_fx_get(L, x->kid[0]), *q = tarn_fx_get(L, x->kid[1]);
  if (p->op != TARN_FX_HOLE || q->op != TARN_FX_HOLE) return false;
  *a = p->hole, *b = q->hole;
  return true;
}
static bool reads_stage(const tarn_plan_stage *st, uint32_t stage) {
  bool reads = false;
  for (uint32_t r = 0; r < st->nread; r++)
    reads |= st->s->read[r].stage && st->s->read[r].src == stage;
  return reads;
}
/* Does a stage read, at each of its own indices, the result of another one at the same? */
static bool same_place(const tarn_plan_nest *N, const tarn_plan_stage *st, const tarn_read *r,
                       const tarn_plan_stage *of) {
  const tarn_imap *m = tarn_imap_get(N->L, r->map);
  uint32_t depth = N->n->depth, nown = st->s->nown;
  if (m->nguard || m->nin != nown || of->s->nown != nown || m->n != depth + nown) return false;
  for (uint32_t k = 0; k < nown; k++)
    if (st->s->own[k] != of->s->own[k] || m->e[k] != tarn_ix_var(N->L, depth + k, m->dim))
      return false;
  return true;
}
/* A map of exponentials and of their sum over the row whose largest was taken off, chosen by `row`:
 * a NaN where the sum is. */
static bool divides(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t exps, uint32_t row,
                    uint32_t *sum) {
  const tarn_lang *L = N->L;
  if (st->red || st->f->epi != TARN_NONE) return false;
  for (uint32_t a = 0; a < st->f->nops; a++)
    for (uint32_t b = 0; b < st->f->nops; b++) {
      const tarn_read *e = &st->s->read[a], *s = &st->s->read[b];
      if (!e->stage || e->src != exps || s->map != row || !same_place(N, st, e, &N->stage[exps]))
        continue;
      if (!reduction_of(N, st, TARN_RED_SUM, e, s)) continue;
      const tarn_func *f = N->stage[s->src].f;
      *sum = s->src;
      if (keeps_nan(L, st->f->body, b) && (f->epi == TARN_NONE || keeps_nan(L, f->epi, 0)))
        return true;
    }
  return false;
}
/* Is nothing done with the exponentials but summing them and dividing them by the sum? Rows are
 * chosen by `row`. */
static bool are_divided(const tarn_plan_nest *N, uint32_t exps, uint32_t row) {
  uint32_t sum = TARN_NONE, other;
  for (uint32_t i = 0; i < N->n->nstage && sum == TARN_NONE; i++)
    if (!divides(N, &N->stage[i], exps, row, &sum)) sum = TARN_NONE;
  for (uint32_t i = 0; i < N->n->nstage; i++)
    if (i != sum && reads_stage(&N->stage[i], exps) && !divides(N, &N->stage[i], exps, row, &other))
      return false;
  return sum != TARN_NONE;
}
/* Does a NaN among the numbers whose largest the stage takes show in all that is made of it anyway?
 */
bool tarn_plan_nan_shows(const tarn_plan_nest *N, const tarn_plan_stage *st) {
  uint32_t me = (uint32_t)(st - N->stage), a, b, readers = 0;
  if (!st->red || st->red->kind != TARN_RED_MAX || st->s->out) return false;
  for (uint32_t i = 0; i < N->n->nstage; i++) {
    const tarn_plan_stage *e = &N->stage[i];
    if (!reads_stage(e, me)) continue;
    if (!is_left_over(N, e, &a, &b) || e->f->nops != 2 || a == b) return false;
    const tarn_read *max = &e->s->read[b];
    if (max->src != me || !largest_of(N, e, &e->s->read[a], max) || !are_divided(N, i, max->map))
      return false;
    readers++;
  }
  return readers > 0;
}
