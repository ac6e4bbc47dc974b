/* Padding decided outside of the loops that pay for it.
 *
 * Most trips of a loop over a padded tensor never leave it.  Where a register tile lies across the
 * border, every one of its elements would need a test of its own in the innermost loop; so the few
 * first and last trips whose tiles do are emitted apart, each with its own number, and there the
 * tests are decided at compile time once the small loops of the reduction are written out as well.
 * (Index set splitting; cf. Pugh and Wonnacott, "Going beyond integer programming", 1992.) An
 * element that adds nothing (0 times a weight) is then left out, and a whole trip is skipped when
 * one of its tests fails. */
#include "lower/nest.h"

#define MOST_PEELED  2    /* first trips, and last ones, of one loop */
#define MOST_COPIES  9    /* of all that is inside of the peeled loops of a stage */
#define MOST_LEAVES  1024 /* copies of the body in a loop of a reduction that is written out */
#define MOST_SCANNED 4096

/* Levels of own dims whose copies or lanes make up the register tile, and steps of a reduction that
 * are written out within a loop of it, where a test of theirs would stand, or in the order of what
 * they read, where each copy would have its own. */
static uint64_t tile_vars(const low_nest *N, uint32_t list) {
  const low_stage *st = &N->stage[list - 1];
  uint64_t m = 0;
  bool within = false;
  for (uint32_t i = 0; i < N->p->list[list].n; i++) {
    const tarn_plan_level *l = &N->p->list[list].level[i];
    bool copies = l->trips > 1 && (l->kind == TARN_UNROLL || l->kind == TARN_VECTOR);
    bool ordered = st->p->order_read != TARN_NONE && i >= st->p->order && i < st->p->order_end;
    if (copies && (!l->red || ordered || (within && l->kind == TARN_UNROLL))) m |= 1ull << l->var;
    within |= l->red && l->trips > 1 && l->kind == TARN_SERIAL;
  }
  return m;
}

static bool holds(const low_fn *E, const tarn_plan_guard *g) {
  int64_t lo, hi;
  low_range(E, g->e, &lo, &hi);
  return lo >= g->lo && hi < g->hi;
}

typedef struct question {
  const low_nest *N;
  low_fn *E;
  uint32_t list; /* 0: of all stages */
  uint32_t var;  /* guards concern this level, and the tile */
} question;

/* Is there a guard such as asked for in a stage? *hold stays true while all of them hold, as far as
 * is known. */
static bool asks_stage(const question *q, uint32_t list, bool *hold) {
  const low_stage *st = &q->N->stage[list - 1];
  uint64_t with = tile_vars(q->N, list);
  bool any = false;
  for (uint32_t r = 0; r < st->p->f->nops; r++) {
    const low_access *a = &st->read[r];
    for (uint32_t i = 0; i < a->p->nguard; i++) {
      uint64_t deps = tarn_plan_lin_deps(a->p->guard[i].e);
      if (!(deps >> q->var & 1) || !(deps & with)) continue;
      any = true;
      if (!holds(q->E, &a->p->guard[i])) *hold = false;
    }
  }
  return any;
}
static bool asks(const question *q, bool *hold) {
  const tarn_plan_space *space = q->E->space;
  bool any = false;
  *hold = true;
  if (q->list) return asks_stage(q, q->list, hold);
  for (uint32_t i = 0; i < q->N->p->nstage; i++) {
    q->E->space = &q->N->stage[i].p->space;
    any |= asks_stage(q, 1 + i, hold);
  }
  q->E->space = space;
  return any;
}
static bool hold_at(const question *q, int64_t trip) {
  bool all;
  low_env before = q->E->env[q->var];
  q->E->env[q->var] = (low_env){.kind = LOW_CONST, .c = trip};
  asks(q, &all);
  q->E->env[q->var] = before;
  return all;
}

bool low_peel(low_nest *N, low_fn *E, uint32_t list, uint32_t l, int64_t full, int64_t *first,
              int64_t *last) {
  const tarn_plan_level *lev = &N->p->list[list].level[l];
  *first = *last = 0;
  if (lev->red || lev->kind == TARN_UNROLL || lev->kind == TARN_VECTOR || full < 2 ||
      full > MOST_SCANNED)
    return false;
  question q = {N, E, list, lev->var};
  bool all;
  if (!asks(&q, &all) || all) return false;
  int64_t a = 0, b = full;
  while (a < b && !hold_at(&q, a)) a++;
  while (b > a && !hold_at(&q, b - 1)) b--;
  for (int64_t i = a; i < b; i++)
    if (!hold_at(&q, i)) return false;
  if (a == b) a = b = full; /* none is clean: all apart, if they are few */
  if (a > MOST_PEELED || full - b > MOST_PEELED) return false;
  *first = a, *last = full - b;
  return a + (full - b) > 0;
}

bool low_peel_begin(low_nest *N, int64_t pieces) {
  if (N->copies * pieces > MOST_COPIES) return false;
  N->copies *= pieces;
  return true;
}

bool low_written_out(const low_nest *N, low_fn *E, uint32_t list, uint32_t l, int64_t full) {
  const tarn_plan_list *ll = &N->p->list[list];
  const tarn_plan_level *lev = &ll->level[l];
  if (list == 0 || !lev->red || full < 2 || full > TARN_MOST_WRITTEN) return false;
  int64_t copies = full;
  for (uint32_t i = l + 1; i < ll->n; i++)
    if (ll->level[i].kind == TARN_UNROLL ||
        (ll->level[i].red && ll->level[i].trips <= TARN_MOST_WRITTEN))
      copies *= ll->level[i].trips;
  if (copies > MOST_LEAVES) return false;
  question q = {N, E, list, lev->var};
  bool all;
  return asks(&q, &all) && !all;
}

/* ---------------------------------------------------------------- what adds nothing */
static bool is_factor(const tarn_lang *L, uint32_t body, uint32_t hole) {
  const tarn_fx *x = tarn_fx_get(L, body);
  if (x->op == TARN_FX_HOLE) return x->hole == hole;
  return x->op == TARN_FX_MUL && (is_factor(L, x->kid[0], hole) || is_factor(L, x->kid[1], hole));
}
/* Does an element of the reduction change nothing when operand r is its fill? For a product that
 * holds for finite other factors, so that a strict program computes it. */
bool low_adds_nothing(const low_nest *N, const low_stage *st, uint32_t r) {
  const tarn_lang *L = N->M->L;
  if (!st->p->red || st->p->red->ns != 1 || st->p->red->kind == TARN_RED_CUSTOM ||
      st->p->step_index)
    return false;
  uint32_t fill = st->read[r].p->fill;
  if (fill == TARN_NONE || fill != st->p->red->init[0]) return false;
  const tarn_fx *body = tarn_fx_get(L, st->p->f->body);
  if (body->op == TARN_FX_HOLE) return body->hole == r;
  return st->p->red->kind == TARN_RED_SUM && N->M->contract && is_factor(L, st->p->f->body, r);
}

bool low_left_out(const low_nest *N, const low_fn *E, const low_stage *st) {
  for (uint32_t r = 0; r < st->p->f->nops; r++) {
    const low_access *a = &st->read[r];
    for (uint32_t i = 0; i < a->p->nguard; i++) {
      int64_t lo, hi;
      low_range(E, a->p->guard[i].e, &lo, &hi);
      if ((hi < a->p->guard[i].lo || lo >= a->p->guard[i].hi) && low_adds_nothing(N, st, r))
        return true;
    }
  }
  return false;
}

/* Levels whose counters are known now, to the compiler or to the program. */
static bool all_set(const low_fn *E, uint64_t deps) {
  for (; deps; deps &= deps - 1) {
    low_kind k = E->env[__builtin_ctzll(deps)].kind;
    if (k != LOW_CONST && k != LOW_SSA) return false;
  }
  return true;
}
bool low_decisive(const low_nest *N, const low_fn *E, const low_stage *st, uint32_t var,
                  uint32_t *read, uint32_t *guard) {
  for (*read = 0; *read < st->p->f->nops; ++*read) {
    const low_access *a = &st->read[*read];
    for (*guard = 0; *guard < a->p->nguard; ++*guard) {
      const tarn_plan_guard *g = &a->p->guard[*guard];
      uint64_t deps = tarn_plan_lin_deps(g->e);
      int64_t lo, hi;
      if (!(deps >> var & 1) || !all_set(E, deps) || a->held >> *guard & 1) continue;
      low_range(E, g->e, &lo, &hi);
      if (lo > hi || (lo >= g->lo && hi < g->hi) || hi < g->lo || lo >= g->hi) continue;
      if (low_adds_nothing(N, st, *read)) return true;
    }
  }
  return false;
}
