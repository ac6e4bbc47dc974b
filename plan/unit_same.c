/* Do two nests compute the same? Stage by stage: the same loops, the same reductions, and scalar
 * functions of the same elements, where the factors of a product and the terms of a sum stand in
 * whichever order. Their operands may be numbered in another order too.
 *
 * Or does one compute part after part of what the other does? Its free loops are those that stages
 * share, of a nest of one stage those of the result: no trip of them reads what another one has
 * made. The other nest may have several times as many trips of them, and more of them: outside, or
 * anywhere in a nest of one stage, whose loops may stand in whichever order. */
#include "access/fx_internal.h"
#include "plan/unit_internal.h"
#include <string.h>

typedef struct pair {
  tarn_lang *L;
  unit_parts *parts;
  uint32_t more;              /* loops of b that are none of a's */
  uint32_t to[TARN_MAX_DIMS]; /* loop d of a is loop to[d] of b */
  const uint32_t *as;         /* operand i of a is operand as[i] of b */
  const tarn_stage *a, *b;
  uint32_t first; /* the read that a hole 0 stands for; an epilogue's begin one earlier */
  bool epilogue;
  bool anywhere; /* reads of one operand are alike, wherever they read */
} pair;

/* The free loops of b, along which an operand goes as in its other reads. */
static bool goes_on(const pair *p, const tarn_read *y, const tarn_imap *map) {
  unit_parts *q = p->parts;
  bool same = true;
  for (uint32_t d = 0; d < q->n && same; d++) {
    int64_t by = tarn_ix_coef(p->L, map->e[0], d);
    int64_t is = q->map[y->src] == TARN_NONE
                     ? by
                     : tarn_ix_coef(p->L, tarn_imap_get(p->L, q->map[y->src])->e[0], d);
    same = by == is;
  }
  q->map[y->src] = y->map;
  return same;
}
/* The same but for the number of trips of free loops. */
static bool same_map(const pair *p, const tarn_read *x, const tarn_read *y) {
  const tarn_imap *a = tarn_imap_get(p->L, x->map);
  const tarn_imap *b = tarn_imap_get(p->L, y->map);
  bool same = a->nin == b->nin && a->nin <= 1 && !a->nguard && !b->nguard && a->n + p->more == b->n;
  if (!same || !a->nin) return same;
  same = tarn_ix_affine(p->L, a->e[0]) && tarn_ix_affine(p->L, b->e[0]) &&
         tarn_ix_get(p->L, a->e[0])->c == tarn_ix_get(p->L, b->e[0])->c;
  for (uint32_t d = 0; d < a->n && same; d++)
    same = tarn_ix_coef(p->L, a->e[0], d) == tarn_ix_coef(p->L, b->e[0], p->to[d]);
  for (uint32_t d = 0; d < p->more && same && x->stage; d++) same = !tarn_ix_coef(p->L, b->e[0], d);
  if (x->stage) return same && a->in[0] == b->in[0];
  return same && goes_on(p, y, b);
}
static bool same_read(const pair *p, const tarn_read *x, const tarn_read *y) {
  uint32_t src = x->stage ? x->src : p->as[x->src];
  bool same = x->stage == y->stage && src == y->src;
  if (p->anywhere) return same;
  return same && (p->parts ? same_map(p, x, y) : x->map == y->map);
}
/* Hole 0 of an epilogue is the result, hole 1 its first read. */
static bool same_hole(void *user, uint32_t hole, uint32_t g) {
  const pair *p = user;
  const tarn_fx *y = tarn_fx_get(p->L, g);
  if (y->op != TARN_FX_HOLE) return false;
  if (p->epilogue && (!hole || !y->hole)) return hole == y->hole;
  uint32_t from = p->first - p->epilogue;
  return same_read(p, &p->a->read[from + hole], &p->b->read[from + y->hole]);
}
static bool same_fx(pair *p, uint32_t f, uint32_t g) {
  return tarn_fx_match(p->L, f, g, true, same_hole, p);
}
static bool same_function(pair *p) {
  const tarn_func *f = tarn_fn_get(p->L, p->a->fn);
  const tarn_func *g = tarn_fn_get(p->L, p->b->fn);
  if (f->ntuple != g->ntuple || f->nops != g->nops || f->nepi != g->nepi || f->red != g->red ||
      (f->epi == TARN_NONE) != (g->epi == TARN_NONE))
    return false;
  p->first = 0;
  p->epilogue = false;
  if (!same_fx(p, f->body, g->body)) return false;
  p->first = f->nops;
  p->epilogue = true;
  return f->epi == TARN_NONE || same_fx(p, f->epi, g->epi);
}
static bool same_loops(const tarn_stage *a, const tarn_stage *b) {
  return a->nown == b->nown && !memcmp(a->own, b->own, a->nown * sizeof *a->own) &&
         a->nred == b->nred && !memcmp(a->red, b->red, a->nred * sizeof *a->red);
}
static bool is_single(const tarn_nest *n) { return n->nstage == 1 && !n->depth; }
/* Its free loops. */
static uint32_t free_loops(const tarn_nest *n, const int64_t **trips) {
  *trips = is_single(n) ? n->stage[0].own : n->shared;
  return is_single(n) ? n->stage[0].nown : n->depth;
}
/* How far a step of loop d goes in an operand, in its first read. */
static int64_t step_of(const tarn_lang *L, const tarn_stage *s, uint32_t operand, uint32_t d) {
  const tarn_func *f = tarn_fn_get(L, s->fn);
  for (uint32_t r = 0; r < (uint32_t)f->nops + f->nepi; r++) {
    const tarn_imap *m = tarn_imap_get(L, s->read[r].map);
    if (!s->read[r].stage && s->read[r].src == operand)
      return m->nin == 1 ? tarn_ix_coef(L, m->e[0], d) : 0;
  }
  return 0;
}
/* Loop d of a goes along operands and result as loop e of b, which has as many trips, or, of the
 * result, several times as many. */
static bool goes_along(const pair *p, const tarn_ksig *a, uint32_t d, const tarn_ksig *b,
                       uint32_t e) {
  bool own = d < p->a->nown;
  if (own != (e < p->b->nown)) return false;
  bool same = own ? p->b->own[e] % p->a->own[d] == 0 && a->out[0].stride[d] == b->out[0].stride[e]
                  : p->a->red[d - p->a->nown] == p->b->red[e - p->b->nown];
  for (uint32_t i = 0; i < a->nin && same; i++)
    same = step_of(p->L, p->a, i, d) == step_of(p->L, p->b, p->as[i], e);
  return same;
}
/* The loops of nests of one stage, in whichever order; parts have one trip of those that a lacks.
 */
static bool in_any_order(pair *p, const tarn_ksig *a, const tarn_ksig *b) {
  uint32_t used = 0;
  uint32_t n = p->b->nown + p->b->nred;
  if (a->out[0].n != p->a->nown || b->out[0].n != p->b->nown || p->a->nred != p->b->nred)
    return false;
  for (uint32_t e = 0; e < p->b->nown; e++) p->parts->part[e] = 1;
  for (uint32_t d = 0; d < p->a->nown + p->a->nred; d++) {
    uint32_t e = 0;
    while (e < n && ((used >> e & 1) || !goes_along(p, a, d, b, e))) e++;
    if (e == n) return false;
    used |= 1u << e;
    p->to[d] = e;
    if (d < p->a->nown) p->parts->part[e] = p->a->own[d];
  }
  return true;
}
/* Whole parts of b's free loops are those of a. */
static bool in_parts(pair *p, const tarn_ksig *a, const tarn_ksig *b) {
  const tarn_nest *nest[] = {tarn_nest_get(p->L, a->nest), tarn_nest_get(p->L, b->nest)};
  unit_parts *q = p->parts;
  const int64_t *x;
  const int64_t *y;
  uint32_t n = free_loops(nest[0], &x);
  q->n = free_loops(nest[1], &y);
  for (uint32_t i = 0; i < b->nin; i++) q->map[i] = TARN_NONE;
  if (q->n < n) return false;
  p->more = q->n - n;
  if (is_single(nest[0])) return in_any_order(p, a, b);
  bool whole = true;
  for (uint32_t d = 0; d < TARN_MAX_DIMS; d++) p->to[d] = d + p->more;
  for (uint32_t d = 0; d < q->n && whole; d++) {
    q->part[d] = d < p->more ? 1 : x[d - p->more];
    whole = y[d] % q->part[d] == 0;
  }
  return whole;
}
static bool same_nest(tarn_lang *L, const tarn_ksig *a, const tarn_ksig *b, const uint32_t *as,
                      pair *p) {
  const tarn_nest *x = tarn_nest_get(L, a->nest);
  const tarn_nest *y = tarn_nest_get(L, b->nest);
  bool free = p->parts && is_single(x);
  p->as = as;
  p->a = x->stage;
  p->b = y->stage;
  if (x->nstage != y->nstage || !x->depth != !y->depth) return false;
  if (free) {
    p->anywhere = true;
    p->parts->alike |= same_function(p);
    p->anywhere = false;
  }
  bool same = p->parts ? in_parts(p, a, b)
                       : x->depth == y->depth &&
                             !memcmp(x->shared, y->shared, x->depth * sizeof *x->shared);
  for (uint32_t i = 0; i < x->nstage && same; i++) {
    p->a = &x->stage[i];
    p->b = &y->stage[i];
    same = p->a->out == p->b->out && (free || same_loops(p->a, p->b)) && same_function(p);
  }
  return same;
}
/* What the last part reads of an operand ends within it. */
static bool ends_inside(const tarn_lang *L, const tarn_ksig *a, uint32_t i, const tarn_ksig *b,
                        uint32_t k, const unit_parts *q) {
  const int64_t *trips;
  int64_t end = tarn_layout_elems(&a->in[i]);
  if (q->map[k] == TARN_NONE || a->in[i].n != 1 || b->in[k].n != 1 || b->in[k].stride[0] != 1)
    return tarn_layout_equal(&a->in[i], &b->in[k]);
  free_loops(tarn_nest_get(L, b->nest), &trips);
  for (uint32_t d = 0; d < q->n; d++)
    end += (trips[d] - q->part[d]) * tarn_ix_coef(L, tarn_imap_get(L, q->map[k])->e[0], d);
  return end <= tarn_layout_elems(&b->in[k]);
}
/* Results lie as those of a do, each part in one piece. */
static bool same_results(const tarn_layout *x, const tarn_layout *y, const pair *p) {
  bool same = x->n + p->more == y->n && !x->block && !y->block;
  for (uint32_t d = 0; d < x->n && same; d++) same = x->stride[d] == y->stride[p->to[d]];
  return same;
}
static bool same_operands(const tarn_lang *L, const tarn_ksig *a, const tarn_ksig *b,
                          const uint32_t *as, const unit_parts *q) {
  bool same = true;
  for (uint32_t i = 0; i < a->nin && same; i++)
    same = a->in_type[i] == b->in_type[as[i]] &&
           (q ? ends_inside(L, a, i, b, as[i], q) : tarn_layout_equal(&a->in[i], &b->in[as[i]]));
  return same;
}
/* Each operand of b is one of a. */
static bool in_some_order(tarn_lang *L, const tarn_ksig *a, const tarn_ksig *b, uint32_t i,
                          uint32_t *as, unit_parts *q) {
  pair p = {.L = L, .parts = q};
  if (i == a->nin)
    return same_nest(L, a, b, as, &p) && same_operands(L, a, b, as, q) &&
           (q ? same_results(&a->out[0], &b->out[0], &p)
              : tarn_layout_equal(&a->out[0], &b->out[0]));
  for (uint32_t k = 0; k < b->nin; k++) {
    bool taken = false;
    for (uint32_t j = 0; j < i && a->nin == b->nin; j++) taken |= as[j] == k;
    as[i] = k;
    if (!taken && in_some_order(L, a, b, i + 1, as, q)) return true;
  }
  return false;
}
bool unit_same_kernel(tarn_lang *L, const tarn_ksig *a, const tarn_ksig *b, uint32_t *as,
                      unit_parts *parts) {
  if (a->nin < b->nin || a->nout != 1 || b->nout != 1 || a->out_type[0] != b->out_type[0])
    return false;
  return in_some_order(L, a, b, 0, as, NULL) ||
         (b->out[0].n >= a->out[0].n && in_some_order(L, a, b, 0, as, parts));
}
