/* Loop peeling for padding.
 *
 * Most trips of a loop over a padded tensor stay inside it. If a register tile crosses the border,
 * each of its elements needs a test in the innermost loop. So the few first and last trips whose
 * tiles cross are peeled, each with a constant index, and their tests are decided at compile time
 * once the small reduce loops are fully unrolled too. (Index set splitting; cf. Pugh and Wonnacott,
 * "Going beyond integer programming", 1992.) An element that adds nothing (0 times a weight) is
 * left out, and a trip is skipped if one of its tests fails. */
#include "plan/walk.h"

#define MOST_PEELED  2    /* first trips, and last ones, of one loop */
#define MOST_COPIES  9    /* of all that is inside of the peeled loops of a stage */
#define MOST_LEAVES  1024 /* copies of the body in a loop of a reduction that is fully unrolled */
#define MOST_SCANNED 4096

/* Levels of own dims whose copies or lanes make up the register tile, and steps of a reduction that
 * are fully unrolled within a loop of it, where a test of theirs would stand, or in the order of
 * what they read, where each copy would have its own. */
static uint64_t tile_vars(const plan_walk *w, uint32_t list) {
  const tarn_plan_stage *st = &w->N->stage[list - 1];
  uint64_t m = 0;
  bool within = false;
  for (uint32_t i = 0; i < w->N->list[list].n; i++) {
    const tarn_plan_level *l = &w->N->list[list].level[i];
    bool copies = l->trips > 1 && (l->kind == TARN_UNROLL || l->kind == TARN_VECTOR);
    bool ordered = st->order_read != TARN_NONE && i >= st->order && i < st->order_end;
    if (copies && (!l->red || ordered || (within && l->kind == TARN_UNROLL))) m |= 1ull << l->var;
    within |= l->red && l->trips > 1 && l->kind == TARN_SERIAL;
  }
  return m;
}

typedef enum { HOLDS, FAILS, DEPENDS } answer;
static answer holds(const plan_walk *w, const tarn_plan_guard *g) {
  int64_t lo;
  int64_t hi;
  plan_walk_range(w, g->e, &lo, &hi);
  if (lo >= g->lo && hi < g->hi) return HOLDS;
  return hi < g->lo || lo >= g->hi ? FAILS : DEPENDS;
}

typedef struct question {
  plan_walk *w;
  uint32_t list; /* 0: of all stages */
  uint32_t var;  /* guards concern this level, and the tile */
} question;

/* Is there a guard such as asked for in a stage? *hold stays true while all of them hold, as far as
 * is known. */
static bool asks_stage(const question *q, uint32_t list, bool *hold) {
  const tarn_plan_stage *st = &q->w->N->stage[list - 1];
  uint64_t with = tile_vars(q->w, list);
  bool any = false;
  for (uint32_t r = 0; r < st->f->nops; r++) {
    const tarn_plan_access *a = &st->read[r];
    for (uint32_t i = 0; i < a->nguard; i++) {
      uint64_t deps = tarn_plan_lin_deps(a->guard[i].e);
      if (!(deps >> q->var & 1) || !(deps & with)) continue;
      any = true;
      if (holds(q->w, &a->guard[i]) != HOLDS) *hold = false;
    }
  }
  return any;
}
static bool asks(const question *q, bool *hold) {
  const tarn_plan_space *space = q->w->space;
  bool any = false;
  *hold = true;
  if (q->list) return asks_stage(q, q->list, hold);
  for (uint32_t i = 0; i < q->w->N->nstage; i++) {
    q->w->space = &q->w->N->stage[i].space;
    any |= asks_stage(q, 1 + i, hold);
  }
  q->w->space = space;
  return any;
}
static bool hold_at(const question *q, int64_t trip) {
  bool all;
  tarn_plan_at before = q->w->env[q->var];
  q->w->env[q->var] = (tarn_plan_at){.kind = TARN_PLAN_NUMBER, .c = trip};
  asks(q, &all);
  q->w->env[q->var] = before;
  return all;
}

bool plan_peel(plan_walk *w, uint32_t list, uint32_t l, int64_t full, int64_t *first,
               int64_t *last) {
  const tarn_plan_level *lev = &w->N->list[list].level[l];
  *first = *last = 0;
  if (lev->red || lev->kind == TARN_UNROLL || lev->kind == TARN_VECTOR) return false;
  if (full < 2 || full > MOST_SCANNED) return false;
  if (list && w->N->stage[list - 1].unit) return false; /* its lanes lie on both sides */
  question q = {w, list, lev->var};
  bool all;
  if (!asks(&q, &all) || all) return false;
  int64_t a = 0;
  int64_t b = full;
  while (a < b && !hold_at(&q, a)) a++;
  while (b > a && !hold_at(&q, b - 1)) b--;
  for (int64_t i = a; i < b; i++)
    if (!hold_at(&q, i)) return false;
  if (a == b) a = b = full; /* none is clean: all apart, if they are few */
  if (a > MOST_PEELED || full - b > MOST_PEELED) return false;
  *first = a;
  *last = full - b;
  return a + (full - b) > 0;
}

bool plan_peel_begin(plan_walk *w, int64_t pieces) {
  if (w->copies * pieces > MOST_COPIES) return false;
  w->copies *= pieces;
  return true;
}

bool plan_unrolls(plan_walk *w, uint32_t list, uint32_t l, int64_t full) {
  const tarn_plan_list *ll = &w->N->list[list];
  const tarn_plan_level *lev = &ll->level[l];
  if (list == 0 || !lev->red || full < 2 || full > TARN_MOST_UNROLLED) return false;
  int64_t copies = full;
  for (uint32_t i = l + 1; i < ll->n; i++)
    if (ll->level[i].kind == TARN_UNROLL ||
        (ll->level[i].red && ll->level[i].trips <= TARN_MOST_UNROLLED))
      copies *= ll->level[i].trips;
  if (copies > MOST_LEAVES) return false;
  question q = {w, list, lev->var};
  bool all;
  return asks(&q, &all) && !all;
}

bool plan_fills(const plan_walk *w, uint32_t list, uint32_t l) {
  const tarn_plan_list *ll = &w->N->list[list];
  const tarn_plan_stage *st = &w->N->stage[list - 1];
  uint32_t registers = w->N->hw->vector_regs;
  int64_t vectors = st->slots;
  for (uint32_t r = 0; r < st->f->nops; r++) {
    int64_t n = 1;
    for (uint32_t i = l + 1; i < ll->n; i++)
      if (ll->level[i].kind != TARN_VECTOR &&
          (tarn_plan_lin_deps(st->read[r].off) >> ll->level[i].var & 1))
        n *= ll->level[i].trips;
    vectors += n;
  }
  return registers && vectors > registers;
}

/* ---------------------------------------------------------------- what adds nothing */
static bool is_factor(const tarn_lang *L, uint32_t body, uint32_t hole) {
  const tarn_fx *x = tarn_fx_get(L, body);
  if (x->op == TARN_FX_HOLE) return x->hole == hole;
  return x->op == TARN_FX_MUL && (is_factor(L, x->kid[0], hole) || is_factor(L, x->kid[1], hole));
}
bool plan_adds_nothing(const tarn_lang *L, const tarn_func *f, uint32_t r, uint32_t fill,
                       bool contract) {
  if (f->red == TARN_NONE || fill == TARN_NONE) return false;
  const tarn_reducer *red = tarn_reducer_get(L, f->red);
  if (red->ns != 1 || red->kind == TARN_RED_CUSTOM || fill != red->init[0]) return false;
  const tarn_fx *body = tarn_fx_get(L, f->body);
  if (body->op == TARN_FX_HOLE) return body->hole == r;
  return red->kind == TARN_RED_SUM && contract && is_factor(L, f->body, r);
}
static bool adds_nothing(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t r) {
  return !st->step_index && plan_adds_nothing(N->L, st->f, r, st->read[r].fill, N->contract);
}

bool plan_left_out(const plan_walk *w, uint32_t stage) {
  const tarn_plan_stage *st = &w->N->stage[stage];
  for (uint32_t r = 0; r < st->f->nops; r++)
    for (uint32_t i = 0; i < st->read[r].nguard; i++)
      if (holds(w, &st->read[r].guard[i]) == FAILS && adds_nothing(w->N, st, r)) return true;
  return false;
}

/* Levels whose counters are known now, to the compiler or to the program. */
static bool all_set(const plan_walk *w, uint64_t deps) {
  for (; deps; deps &= deps - 1) {
    tarn_plan_kind k = w->env[__builtin_ctzll(deps)].kind;
    if (k != TARN_PLAN_NUMBER && k != TARN_PLAN_COUNTER) return false;
  }
  return true;
}
/* Does it depend on the counters that are set, among them `var`, whether the guard holds? */
static bool decides(const plan_walk *w, const tarn_plan_guard *g, uint32_t var) {
  uint64_t deps = tarn_plan_lin_deps(g->e);
  int64_t lo;
  int64_t hi;
  if (!(deps >> var & 1) || !all_set(w, deps)) return false;
  plan_walk_range(w, g->e, &lo, &hi);
  return lo <= hi && holds(w, g) == DEPENDS;
}
bool plan_decisive(const plan_walk *w, uint32_t stage, uint32_t var, uint32_t *read,
                   uint32_t *guard) {
  const tarn_plan_stage *st = &w->N->stage[stage];
  for (*read = 0; *read < st->f->nops; ++*read)
    for (*guard = 0; *guard < st->read[*read].nguard; ++*guard)
      if (!(w->held[*read] >> *guard & 1) && decides(w, &st->read[*read].guard[*guard], var) &&
          adds_nothing(w->N, st, *read))
        return true;
  return false;
}

/* ---------------------------------------------------------------- of a tile, before */
/* Lanes are computed whole. If several places of the result are in the tile, each has its own trips
 * only if those of a short reduction are fully unrolled. */
bool tarn_tile_leaves_out(const tarn_stage_work *m, const tarn_tile_work *t,
                          const tarn_padding *p) {
  bool apart = t->vdim >= m->n ||
               !(p->dims >> t->vdim & 1 || (t->rdim < m->n && p->dims >> t->rdim & 1)),
       several = false, full = true;
  for (uint32_t d = 0; d < m->n; d++) {
    if (!(p->dims >> d & 1)) continue;
    if (d < m->nacc) several |= t->size[d] > 1;
    else full &= m->dim[d] <= TARN_MOST_UNROLLED;
  }
  return t->dot >= m->n && apart && (full || !several);
}
