/* The best schedule of a kernel by the analytic price, solved once per signature; stages one by one
 * (candidates.c). */
#include "base/limit.h"
#include "price/candidates.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct solved {
  const tarn_schedule *sched;
  tarn_cost cost;
  const tarn_ksig *kept; /* NULL: not asked for yet */
} solved;
struct tarn_solver {
  tarn_lang *L;
  tarn_ctx *cx;
  const tarn_hw *hw;
  uint32_t threads;
  tarn_intern *signature; /* by number: of all */
  tarn_buf key;
  tarn_kernel_work room;        /* of the kernel that is solved: its arrays serve the next one */
  tarn_stage_sched *stage_room; /* likewise, of so many stages */
  loop_room *price_room;        /* likewise */
  stage_best *best_room;        /* likewise */
  uint32_t stages;
  TARN_VEC(solved) all;
  tarn_solver_stats stats;
  tarn_intern *stage;    /* stages of kernels with several, by what their loops and accesses are */
  tarn_intern *schedule; /* what was chosen: kernels of one choice share it */
  TARN_VEC(const tarn_schedule *) chosen;
  TARN_VEC(tarn_stage_sched) of_stage;
  const tarn_price *price; /* ranks the `top` best of the analytic price; NULL: that price alone */
  uint32_t top;
  bool weights_cached;               /* in the last-level cache */
  tarn_solver_search_fn *search;     /* another kind of hardware's; NULL: what follows */
  tarn_solver_price_fn *price_given; /* the same */
  bool as_is;                        /* kernels are not cut, constants not packed before */
  bool host;                         /* of a machine that others hang on */
};

tarn_solver *tarn_solver_new(tarn_lang *L, const tarn_hw *hw, uint32_t threads) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_solver *s = TARN_NEW(cx, tarn_solver);
  *s = (tarn_solver){.L = L,
                     .cx = cx,
                     .hw = hw,
                     .threads = threads ? threads : hw->units,
                     .signature = tarn_intern_new(cx),
                     .key = {.cx = cx}};
  s->stage = tarn_intern_new(cx);
  s->schedule = tarn_intern_new(cx);
  s->price_room = TARN_NEW(cx, loop_room);
  s->best_room = TARN_ARRAY(cx, stage_best, TARN_RANKED);
  return s;
}
tarn_solver_stats tarn_solver_count(const tarn_solver *s) { return s->stats; }
void tarn_solver_rank(tarn_solver *s, const tarn_price *p, uint32_t top) {
  s->price = p, s->top = p ? top : 0;
}
void tarn_solver_cache_weights(tarn_solver *s) { s->weights_cached = true; }
void tarn_solver_search(tarn_solver *s, tarn_solver_search_fn *f, tarn_solver_price_fn *price) {
  s->search = f;
  s->price_given = price;
}
void tarn_solver_take_as_is(tarn_solver *s) { s->as_is = true; }
void tarn_solver_of_host(tarn_solver *s) { s->host = true; }
bool tarn_solver_takes_as_is(const tarn_solver *s) { return s->as_is; }
tarn_lang *tarn_solver_lang(const tarn_solver *s) { return s->L; }
const tarn_hw *tarn_solver_hw(const tarn_solver *s) { return s->hw; }

/* In the room of the solver, until kept() takes it. */
static tarn_schedule new_schedule(tarn_solver *s, const tarn_kernel_work *km) {
  if (km->nstage > s->stages) {
    s->stages = km->nstage;
    s->stage_room = TARN_ARRAY(s->cx, tarn_stage_sched, s->stages);
  }
  tarn_schedule sc = {.nstage = km->nstage, .stage = s->stage_room};
  const tarn_stage_work *last = &km->stage[km->nstage - 1];
  for (uint32_t d = 0; d < last->nshared; d++)
    sc.shared[sc.nshared++] = (tarn_level){(uint8_t)d, TARN_SERIAL, 1};
  stage_mark_parallel(last->dim, sc.shared, sc.nshared, sc.nshared, s->threads);
  return sc;
}
static void key_add(tarn_buf *b, const void *p, size_t n) { tarn_buf_add(b, p, n); }
static void key_levels(tarn_buf *b, const tarn_level *l, uint32_t n) {
  key_add(b, &n, sizeof n);
  for (uint32_t i = 0; i < n; i++) {
    const int64_t x[] = {l[i].dim, l[i].kind, l[i].step};
    key_add(b, x, sizeof x);
  }
}
/* The one that stays, of schedules that hold nothing and have no units. */
static const tarn_schedule *kept(tarn_solver *s, const tarn_schedule *sc) {
  tarn_buf *b = &s->key;
  b->n = 0;
  const uint32_t open[] = {sc->open, sc->brief};
  key_add(b, open, sizeof open);
  key_levels(b, sc->shared, sc->nshared);
  for (uint32_t i = 0; i < sc->nstage; i++) {
    const uint32_t bits[] = {sc->stage[i].acc, sc->stage[i].open, sc->stage[i].brief};
    key_add(b, bits, sizeof bits);
    key_levels(b, sc->stage[i].level, sc->stage[i].nlevel);
  }
  uint32_t at = tarn_intern_add(s->schedule, b->p, b->n);
  if (at < s->chosen.n) return s->chosen.p[at];
  tarn_schedule *kept = tarn_copy(s->cx, sc, sizeof *sc);
  kept->stage = tarn_copy(s->cx, sc->stage, sc->nstage * sizeof *sc->stage);
  tarn_push(s->cx, &s->chosen, kept);
  return kept;
}
/* Of the best by the analytic price, the best by the solver's own, which may say much of schedules
 * that are unlike all it was learned from: what it adds to the analytic price (the logarithm of
 * their ratio) counts in part (bench/notes/tuning.md). *seconds: analytic ones of the first. */
#define DOUBT 2 /* analytic parts beside one of that, where the price does not say */
static const tarn_stage_sched *ranked(tarn_solver *s, const tarn_ksig *k, const stage_search *q,
                                      double *seconds) {
  uint32_t first = 0;
  double least = INFINITY, within = s->price ? s->price->within : 0,
         doubt = within > 0 ? (1 - within) / within : DOUBT;
  tarn_schedule one = {.nstage = 1};
  for (uint32_t i = 0; i < q->n && q->n > 1; i++) {
    tarn_stage_sched st = q->b[i].sched;
    tarn_cost c;
    one.stage = &st;
    tarn_cost_of(s->L, s->hw, k, &one, s->threads, &c);
    double t = s->price->seconds(s->price->user, s->L, s->hw, k, &one, s->threads, &c);
    t *= pow(q->b[i].seconds / q->b[0].seconds, doubt);
    if (t < least) least = t, first = i;
    if (s->weights_cached) loop_cost(s->L, s->hw, k, &one, s->threads, true, &c);
    if (i == 0 || c.seconds < *seconds) *seconds = c.seconds;
  }
  return &q->b[first].sched;
}
/* A stage among several: the same loops and accesses come in many kernels, solved once. */
static void key_access(tarn_buf *b, const tarn_touch *a, uint32_t n) {
  const uint32_t bits[] = {a->touched, a->guarded,  a->irregular, a->local,
                           a->epi,     a->constant, a->few,       a->again};
  key_add(b, a->coef, n * sizeof *a->coef), key_add(b, &a->start, sizeof a->start);
  key_add(b, bits, sizeof bits), key_add(b, &a->bytes, sizeof a->bytes);
}
static uint32_t stage_number(tarn_solver *s, const stage_search *q, bool strict) {
  const tarn_stage_work *m = q->m;
  tarn_buf *b = &s->key;
  const uint32_t bits[] = {m->n,     m->nshared, m->nacc,   m->nread,   m->reduces,
                           m->fma,   m->custom,  m->splits, m->resumes, m->block,
                           m->in_l1, strict,     q->nshared};
  bool again = false;
  b->n = 0;
  for (uint32_t r = 0; r < m->nread; r++) again |= m->read[r].again;
  const double ops[] = {m->body_ops, m->epi_ops, m->flops_each, m->flops_result,
                        again ? m->held : 0};
  key_add(b, bits, sizeof bits), key_add(b, ops, sizeof ops),
      key_add(b, m->dim, m->n * sizeof *m->dim);
  for (uint32_t r = 0; r < m->nread; r++) key_access(b, &m->read[r], m->n);
  key_access(b, &m->result, m->n);
  for (uint32_t i = 0; i < q->nshared; i++) {
    const int64_t l[] = {q->shared[i].dim, q->shared[i].kind, q->shared[i].step};
    key_add(b, l, sizeof l);
  }
  if (q->open) key_add(b, q->open, m->n * sizeof *q->open);
  return tarn_intern_add(s->stage, b->p, b->n);
}
static void search_stage(tarn_solver *s, stage_search *q, bool strict) {
  q->room = s->price_room;
  q->b = s->best_room;
  stage_solve(q, strict);
  s->stats.evaluations += q->priced;
}
static tarn_stage_sched one_of_several(tarn_solver *s, stage_search *q, bool strict) {
  uint32_t at = stage_number(s, q, strict);
  if (at < s->of_stage.n) return s->of_stage.p[at];
  search_stage(s, q, strict);
  tarn_push(s->cx, &s->of_stage, q->b[0].sched);
  return q->b[0].sched;
}
static void cost_of_given(const tarn_solver *s, const tarn_ksig *k, solved *e) {
  if (s->price_given) s->price_given(s->L, s->hw, k, e->sched, s->threads, &e->cost);
  else loop_cost(s->L, s->hw, k, e->sched, s->threads, s->weights_cached, &e->cost);
}
/* The schedule that the price says it shall have. */
static bool given_by_price(const tarn_solver *s, const tarn_ksig *k, solved *e) {
  e->sched = s->price && s->price->schedule ? s->price->schedule(s->price->user, s->L, k) : NULL;
  if (!e->sched) return false;
  cost_of_given(s, k, e);
  e->cost.least = e->cost.seconds;
  return true;
}
static void make_serial(tarn_level *level, uint32_t n) {
  for (uint32_t l = 0; l < n; l++)
    if (level[l].kind == TARN_PARALLEL) level[l].kind = TARN_SERIAL;
}
/* least: of a single stage, the seconds of the best by the analytic price. */
static void schedule_stage(tarn_solver *s, const tarn_ksig *k, uint32_t i, const int64_t *open,
                           tarn_schedule *sc, double *least) {
  stage_search q = {.hw = s->hw,
                    .threads = s->threads,
                    .m = &s->room.stage[i],
                    .shared = sc->shared,
                    .nshared = sc->nshared,
                    .open = open ? open + (size_t)i * TARN_MAX_DIMS : NULL,
                    .want = 1};
  if (sc->nstage > 1) {
    sc->stage[i] = one_of_several(s, &q, k->strict);
    if (!sc->nshared) /* stages of an unshared nest follow one another on one unit */
      make_serial(sc->stage[i].level, sc->stage[i].nlevel);
    return;
  }
  if (s->top > 1) q.want = s->top < TARN_RANKED ? s->top : TARN_RANKED;
  search_stage(s, &q, k->strict);
  sc->stage[i] = *ranked(s, k, &q, least);
}
/* Only moves data, between the orders that a host and its machine want: often little of it. */
static bool only_moves(const tarn_solver *s, const tarn_ksig *k) {
  const tarn_nest *n = tarn_nest_get(s->L, k->nest);
  if (n->nstage != 1 || tarn_nest_looks_up(n)) return false;
  const tarn_func *f = tarn_fn_get(s->L, n->stage->fn);
  return f->red == TARN_NONE && tarn_fx_get(s->L, f->body)->op == TARN_FX_HOLE;
}
/* Work that several threads share takes at most as many times as long on one: where it is less than
 * to wait for them, one does it. */
static void on_one_thread(tarn_solver *s, const tarn_ksig *k, tarn_schedule *sc, solved *e) {
  tarn_cost one;
  bool parallel = e->cost.parallel > 1 && e->cost.seconds < e->cost.overhead_seconds * 2;
  if (!parallel || !s->host || !only_moves(s, k)) return;
  make_serial(sc->shared, sc->nshared);
  for (uint32_t i = 0; i < sc->nstage; i++) make_serial(sc->stage[i].level, sc->stage[i].nlevel);
  loop_cost(s->L, s->hw, k, sc, s->threads, s->weights_cached, &one);
  if (!(one.seconds < e->cost.seconds)) return;
  e->sched = kept(s, sc);
  e->cost = one;
}
/* The first level of each open dim: is its step perhaps more than all? */
static uint32_t brief_of(const tarn_level *level, uint32_t n, const int64_t *open) {
  uint32_t brief = 0;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t dim = 1u << level[i].dim;
    if (!(seen & dim) && open[level[i].dim] && level[i].step > open[level[i].dim] - 1) brief |= dim;
    seen |= dim;
  }
  return brief;
}
static void mark_open(const tarn_kernel_work *km, const int64_t *open, tarn_schedule *sc) {
  sc->brief = brief_of(sc->shared, sc->nshared, open);
  for (uint32_t d = 0; d < km->stage->nshared; d++)
    if (open[d]) sc->open |= 1u << d;
  for (uint32_t i = 0; i < sc->nstage; i++, open += TARN_MAX_DIMS) {
    tarn_stage_sched *st = &sc->stage[i];
    const tarn_stage_work *m = &km->stage[i];
    uint32_t shared = tarn_first_dims(m->nshared);
    st->open = 0;
    for (uint32_t d = m->nshared; d < m->n; d++)
      if (open[d]) st->open |= 1u << d;
    st->brief = brief_of(st->level, st->nlevel, open) & ~shared;
  }
}
static void solve(tarn_solver *s, const tarn_ksig *k, const int64_t *open, solved *e) {
  double least = 0;
  tarn_work_into(s->L, s->hw, k, &s->room);
  tarn_schedule sc = new_schedule(s, &s->room);
  for (uint32_t i = 0; i < sc.nstage; i++) schedule_stage(s, k, i, open, &sc, &least);
  if (open) mark_open(&s->room, open, &sc);
  e->sched = kept(s, &sc);
  loop_cost(s->L, s->hw, k, e->sched, s->threads, s->weights_cached, &e->cost);
  on_one_thread(s, k, &sc, e);
  e->cost.least = tarn_fmin(e->cost.seconds, least > 0 ? least : INFINITY);
}

/* ---- every schedule ---- */
typedef struct listing {
  tarn_schedule_visit *visit;
  void *user;
} listing;
static void list_one(void *user, const tarn_stage_sched *st, double seconds) {
  const listing *l = user;
  tarn_stage_sched one = *st;
  tarn_schedule sc = {.nstage = 1, .stage = &one};
  l->visit(l->user, &sc, seconds);
}
bool tarn_schedules(tarn_solver *s, const tarn_ksig *k, tarn_schedule_visit *visit, void *user) {
  const tarn_kernel_work *km = tarn_work_of(s->L, s->hw, k);
  if (km->nstage != 1) return false;
  listing l = {visit, user};
  stage_search q = {
      .hw = s->hw, .threads = s->threads, .m = km->stage, .want = 1, .visit = list_one, .user = &l};
  search_stage(s, &q, k->strict);
  return true;
}

static void set_key(tarn_solver *s, const tarn_ksig *k) {
  s->key.n = 0;
  tarn_ksig_key(k, &s->key);
}
static solved *entry_of(tarn_solver *s, const tarn_ksig *k) {
  solved e = {0};
  set_key(s, k);
  uint32_t at = tarn_intern_find(s->signature, s->key.p, s->key.n);
  if (at != TARN_NONE) return &s->all.p[at];
  tarn_go_on(s->cx);
  bool given = given_by_price(s, k, &e);
  if (!given && s->search) e.sched = s->search(s->L, s->hw, k, &e.cost);
  else if (!given) solve(s, k, NULL, &e);
  set_key(s, k);
  at = tarn_intern_add(s->signature, s->key.p, s->key.n);
  tarn_push(s->cx, &s->all, e);
  s->stats.signatures++;
  return &s->all.p[at];
}
const tarn_schedule *tarn_solve(tarn_solver *s, const tarn_ksig *k, tarn_cost *cost) {
  s->stats.uses++;
  const solved *e = entry_of(s, k);
  if (cost) *cost = e->cost;
  return e->sched;
}
const tarn_ksig *tarn_solver_kept(tarn_solver *s, const tarn_ksig *k) {
  solved *e = entry_of(s, k);
  bool same = e->kept && !memcmp(e->kept, k, sizeof *k); /* equal ones differ in where they begin */
  if (!same) e->kept = tarn_copy(s->cx, k, sizeof *k);
  return e->kept;
}
const tarn_schedule *tarn_solve_open(tarn_solver *s, const tarn_ksig *k, const int64_t *open) {
  solved e = {0};
  solve(s, k, open, &e);
  return e.sched;
}
void tarn_solver_cost(const tarn_solver *s, const tarn_ksig *k, const tarn_schedule *sched,
                      tarn_cost *cost) {
  solved e = {.sched = sched};
  cost_of_given(s, k, &e);
  *cost = e.cost;
  cost->least = cost->seconds;
}
/* The cost of the best is kept: a learned price wants it beside that of another. */
void tarn_solver_give(tarn_solver *s, const tarn_ksig *k, const tarn_schedule *sched) {
  solved *e = entry_of(s, k);
  double least = e->cost.least;
  e->sched = sched;
  cost_of_given(s, k, e);
  e->cost.least = least;
}
