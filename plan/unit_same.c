/* Do two nests compute the same? Stage by stage: the same loops, the same reductions, and scalar
 * functions of the same elements, where the factors of a product and the terms of a sum stand in
 * whichever order. Their operands may be numbered in another order too. */
#include "plan/unit_internal.h"
#include <string.h>

typedef struct pair {
  const tarn_lang *L;
  const uint32_t *as; /* operand i of a is operand as[i] of b */
  const tarn_stage *a, *b;
  uint32_t first; /* the read that a hole 0 stands for; an epilogue's begin one earlier */
  bool epilogue;
} pair;

static bool same_read(const pair *p, const tarn_read *x, const tarn_read *y) {
  uint32_t src = x->stage ? x->src : p->as[x->src];
  return x->stage == y->stage && src == y->src && x->map == y->map;
}
/* Hole 0 of an epilogue is the result, hole 1 its first read. */
static bool same_hole(const pair *p, uint32_t g, uint32_t h) {
  if (p->epilogue && (!g || !h)) return g == h;
  uint32_t from = p->first - p->epilogue;
  return same_read(p, &p->a->read[from + g], &p->b->read[from + h]);
}
static bool same_fx(const pair *p, uint32_t f, uint32_t g) {
  const tarn_fx *x = tarn_fx_get(p->L, f);
  const tarn_fx *y = tarn_fx_get(p->L, g);
  uint32_t n = tarn_fx_arity(x->op);
  bool turns = x->op == TARN_FX_ADD || x->op == TARN_FX_MUL;
  if (x->op != y->op) return false;
  if (x->op == TARN_FX_HOLE) return same_hole(p, x->hole, y->hole);
  if (!n) return f == g;
  if (x->op == TARN_FX_CAST && x->dtype != y->dtype) return false;
  bool same = true;
  for (uint32_t i = 0; i < n && same; i++) same = same_fx(p, x->kid[i], y->kid[i]);
  return same || (turns && same_fx(p, x->kid[0], y->kid[1]) && same_fx(p, x->kid[1], y->kid[0]));
}
static bool same_loops(const tarn_stage *a, const tarn_stage *b) {
  return a->nown == b->nown && a->nred == b->nred && a->out == b->out &&
         !memcmp(a->own, b->own, a->nown * sizeof *a->own) &&
         !memcmp(a->red, b->red, a->nred * sizeof *a->red);
}
static bool same_stage(pair *p) {
  const tarn_func *f = tarn_fn_get(p->L, p->a->fn);
  const tarn_func *g = tarn_fn_get(p->L, p->b->fn);
  if (f->ntuple != g->ntuple || f->nops != g->nops || f->nepi != g->nepi || f->red != g->red ||
      (f->epi == TARN_NONE) != (g->epi == TARN_NONE) || !same_loops(p->a, p->b))
    return false;
  p->first = 0;
  p->epilogue = false;
  if (!same_fx(p, f->body, g->body)) return false;
  p->first = f->nops;
  p->epilogue = true;
  return f->epi == TARN_NONE || same_fx(p, f->epi, g->epi);
}
static bool same_nest(const tarn_lang *L, const tarn_nest *a, const tarn_nest *b,
                      const uint32_t *as) {
  bool same = a->nstage == b->nstage && a->nchild == b->nchild && a->depth == b->depth &&
              !memcmp(a->shared, b->shared, a->depth * sizeof *a->shared);
  for (uint32_t i = 0; i < a->nstage && same; i++) {
    pair p = {.L = L, .as = as, .a = &a->stage[i], .b = &b->stage[i]};
    same = same_stage(&p);
  }
  return same;
}
static bool same_operands(const tarn_ksig *a, const tarn_ksig *b, const uint32_t *as) {
  bool same = true;
  for (uint32_t i = 0; i < a->nin && same; i++)
    same = a->in_type[i] == b->in_type[as[i]] && tarn_layout_equal(&a->in[i], &b->in[as[i]]);
  return same;
}
static bool in_some_order(const tarn_lang *L, const tarn_ksig *a, const tarn_ksig *b, uint32_t i,
                          uint32_t *as) {
  if (i == a->nin)
    return same_operands(a, b, as) &&
           same_nest(L, tarn_nest_get(L, a->nest), tarn_nest_get(L, b->nest), as);
  for (uint32_t k = 0; k < a->nin; k++) {
    bool taken = false;
    for (uint32_t j = 0; j < i; j++) taken |= as[j] == k;
    as[i] = k;
    if (!taken && in_some_order(L, a, b, i + 1, as)) return true;
  }
  return false;
}
bool unit_same_kernel(const tarn_lang *L, const tarn_ksig *a, const tarn_ksig *b, uint32_t *as) {
  if (a->nin != b->nin || a->nout != 1 || b->nout != 1 || a->out_type[0] != b->out_type[0])
    return false;
  return tarn_layout_equal(&a->out[0], &b->out[0]) && in_some_order(L, a, b, 0, as);
}
