/* What is known of the sign of exp's arguments.
 *
 * A softmax takes exp of what is left of numbers when the largest of them is taken off, which an earlier stage of the kernel
 * has found: at most 0, or a NaN that stays one. So it cannot overflow, and exp need not look for that (lower/math.c). */
#include "lower/nest.h"

/* Is the index map of a read, over (shared, own) dims of its stage, the one by which `max` goes over the same tensor, with what
 * it reduces in the place of the own dims that do not choose its result? */
static bool reduced_by(const low_nest *N, const low_stage *st, const tarn_imap *of, const low_stage *max,
                       const tarn_imap *chosen, const tarn_imap *read) {
  tarn_lang *L = N->M->L;
  uint32_t depth = N->n->depth, nown = st->s->nown, used = 0, sub[TARN_MAX_DIMS * 2], n = depth, red = 0;
  if (chosen->nin != max->s->nown || of->nguard || read->nguard || chosen->nguard || of->nin != read->nin) return false;
  for (uint32_t d = 0; d < depth; d++) sub[d] = tarn_ix_var(L, d, of->dim);
  for (uint32_t k = 0; k < chosen->nin; k++) sub[n++] = chosen->e[k], used |= tarn_ix_dims(L, chosen->e[k]);
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
/* Is b, as the stage reads it, the largest of numbers one of which a is? */
static bool largest_of(const low_nest *N, const low_stage *st, const tarn_read *a, const tarn_read *b) {
  tarn_lang *L = N->M->L;
  if (!b->stage || st->s->nred) return false;
  const low_stage *max = &N->stage[b->src];
  if (!max->red || max->red->kind != TARN_RED_MAX || max->f->nops != 1 || max->f->epi != TARN_NONE) return false;
  const tarn_read *r = max->s->read;
  if (max->f->body != tarn_fx_hole(L, 0) || r->stage != a->stage || r->src != a->src) return false;
  return reduced_by(N, st, tarn_imap_get(L, a->map), max, tarn_imap_get(L, b->map), tarn_imap_get(L, r->map));
}

static bool all_at_most_0(const low_nest *N, const low_stage *st, uint32_t f, uint32_t *looks, bool *any) {
  const tarn_lang *L = N->M->L;
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
  for (uint32_t i = 0; i < low_fx_arity(x->op); i++)
    if (!all_at_most_0(N, st, x->kid[i], looks, any)) return false;
  return true;
}
/* Is every exp of the stage's body of a number that is at most 0, or NaN? */
bool low_exp_at_most_0(const low_nest *N, const low_stage *st) {
  uint32_t looks = 256;
  bool any = false;
  return all_at_most_0(N, st, st->f->body, &looks, &any) && any;
}
