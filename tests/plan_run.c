/* Interprets the loop program of a plan, statement by statement, on the memory of its operands.
 * Lanes run one after the other, and an accumulator is a number for each point of the own dims.
 * This tests which points a program reaches, in which order accumulators begin, are added to and
 * end, and what its guards let through. An accumulator that begins twice, ends before it begins, or
 * is added to outside that range raises. */
#include "plan/internal.h"
#include "tests/plan_run.h"
#include <string.h>

typedef struct machine {
  const tarn_plan_nest *N;
  tarn_ctx *cx;
  const plan_memory *in, *out;
  plan_memory *local;         /* by stage */
  int64_t at[PLAN_MAX_VARS];  /* counters */
  int64_t end[PLAN_MAX_VARS]; /* where a loop over an open dim ended */
  const tarn_plan_stage *st;
  tarn_value *acc; /* point by point, ns each; of the stage's current trip of the shared loops */
  bool *open;
  double *value;                      /* of TAKE and TIMES */
  tarn_value *held[PLAN_MOST_COORDS]; /* what the stage's block holds of an operand */
  bool *there[PLAN_MOST_COORDS];      /* has it been written? */
  int64_t trip;                       /* of the pipeline */
  int64_t item;
} machine;

static bool guard_holds(const machine *m, const tarn_plan_guard *g) {
  int64_t e = tarn_plan_lin_at(g->e, m->at);
  return e >= g->lo && e < g->hi;
}

/* ---------------------------------------------------------------- memory */
static plan_memory memory_of(const machine *m, uint32_t stage) {
  const tarn_plan_stage *st = &m->N->stage[stage];
  return st->s->out ? m->out[st->out_no] : m->local[stage];
}
static void within(const machine *m, int64_t at, int64_t n, const char *what) {
  if (at < 0 || at >= n)
    tarn_raise(m->cx, TARN_INTERNAL, "plan: element %lld of %s, which has %lld", (long long)at,
               what, (long long)n);
}
/* What the offset's lookups add. */
static int64_t rows_of(const machine *m, const tarn_plan_lin *off) {
  const tarn_plan_stage *st = m->st;
  int64_t sum = 0;
  for (uint32_t i = 0; i < off->n; i++) {
    const tarn_plan_term *t = &off->t[i];
    if (t->kind != TARN_PLAN_ROW) continue;
    plan_memory from = m->in[st->s->read[st->nread + t->var].src];
    int64_t at = from.offset + tarn_plan_lin_at(t->arg, m->at), row;
    within(m, at, tarn_tensor_count(from.elements), "a lookup");
    int64_t i64 = tarn_tensor_get(from.elements, at).i;
    if (!tarn_index_in(from.elements->dtype, i64, t->by, &row))
      tarn_raise(m->cx, TARN_BAD_INPUT, "plan: index %lld for %lld rows", (long long)i64,
                 (long long)t->by);
    sum += t->coef * row;
  }
  return sum;
}
static tarn_value element(const machine *m, plan_memory from, const tarn_plan_access *a) {
  int64_t at = from.offset + tarn_plan_lin_at(a->off, m->at) + rows_of(m, a->off);
  within(m, at, tarn_tensor_count(from.elements), "an operand");
  return tarn_tensor_get(from.elements, at);
}
static int64_t held_elems(const machine *m, uint32_t i) {
  return m->st->held[i].elems * m->st->nslot;
}
static tarn_value held_at(const machine *m, uint32_t i, int64_t at) {
  within(m, at, held_elems(m, i), "what is held");
  if (!m->there[i][at])
    tarn_raise(m->cx, TARN_INTERNAL, "plan: element %lld of what is held has not been copied",
               (long long)at);
  return m->held[i][at];
}
static tarn_value load(const machine *m, uint32_t read) {
  const tarn_plan_access *a = &m->st->read[read];
  const tarn_read *r = &m->st->s->read[read];
  for (uint32_t g = 0; g < a->nguard; g++)
    if (!guard_holds(m, &a->guard[g]))
      return tarn_fx_eval(m->N->L, a->fill, NULL, NULL, TARN_STRICT);
  if (a->held) return held_at(m, a->held - 1, tarn_plan_lin_at(a->off, m->at));
  return element(m, r->stage ? memory_of(m, r->src) : m->in[r->src], a);
}
static void store(const machine *m, tarn_value v) {
  plan_memory to = memory_of(m, (uint32_t)(m->st - m->N->stage));
  int64_t at = to.offset + tarn_plan_lin_at(m->st->result.off, m->at);
  within(m, at, tarn_tensor_count(to.elements), "the result");
  tarn_tensor_set(to.elements, at, v);
}
static tarn_value stored(const machine *m) {
  plan_memory to = memory_of(m, (uint32_t)(m->st - m->N->stage));
  return tarn_tensor_get(to.elements, to.offset + tarn_plan_lin_at(m->st->result.off, m->at));
}

/* ---------------------------------------------------------------- leaves */
static int64_t own_points(const machine *m) {
  int64_t n = 1;
  for (uint32_t d = m->N->n->depth; d < m->st->nacc; d++) n *= m->st->over[d];
  return n;
}
static int64_t point(const machine *m) {
  int64_t n = 0;
  for (uint32_t d = m->N->n->depth; d < m->st->nacc; d++) {
    int64_t at = tarn_plan_lin_at(m->st->index[d], m->at);
    if (at < 0 || at >= m->st->over[d])
      tarn_raise(m->cx, TARN_INTERNAL, "plan: index %lld of dim %u of %lld", (long long)at, d,
                 (long long)m->st->over[d]);
    n = n * m->st->over[d] + at;
  }
  return n;
}
static void open_is(const machine *m, int64_t at, bool is) {
  if (m->open[at] != is)
    tarn_raise(m->cx, TARN_INTERNAL, "plan: accumulator %lld %s", (long long)at,
               is ? "has not begun" : "begins twice");
}
static tarn_value epilogue(const machine *m, tarn_value x, tarn_dtype type) {
  const tarn_func *f = m->st->f;
  tarn_value v[TARN_MAX_OPERANDS + 1] = {x};
  tarn_dtype t[TARN_MAX_OPERANDS + 1] = {type};
  if (f->epi == TARN_NONE) return x;
  for (uint32_t r = 0; r < f->nepi; r++) {
    v[1 + r] = load(m, f->nops + r);
    t[1 + r] = m->st->read[f->nops + r].dtype;
  }
  return tarn_fx_eval(m->N->L, f->epi, v, t, TARN_STRICT);
}
static void map(const machine *m) {
  const tarn_func *f = m->st->f;
  tarn_value v[TARN_MAX_OPERANDS];
  tarn_dtype t[TARN_MAX_OPERANDS];
  for (uint32_t r = 0; r < f->nops; r++) {
    v[r] = load(m, r);
    t[r] = m->st->read[r].dtype;
  }
  tarn_value x = tarn_fx_eval(m->N->L, f->body, v, t, TARN_STRICT);
  store(m, epilogue(m, x, m->st->body_type));
}
static void begin(const machine *m, bool resume) {
  const tarn_reducer *red = m->st->red;
  int64_t at = point(m);
  open_is(m, at, false);
  m->open[at] = true;
  for (uint32_t k = 0; k < red->ns; k++)
    m->acc[at * red->ns + k] = tarn_fx_eval(m->N->L, red->init[k], NULL, NULL, TARN_STRICT);
  if (resume) m->acc[at * red->ns] = stored(m);
}
static void step(const machine *m) {
  const tarn_reducer *red = m->st->red;
  uint32_t nops = m->st->f->nops;
  tarn_value v[TARN_MAX_STATE + 1 + TARN_MAX_OPERANDS];
  tarn_dtype t[TARN_MAX_STATE + 1 + TARN_MAX_OPERANDS];
  int64_t at = point(m);
  open_is(m, at, true);
  for (uint32_t k = 0; k < red->ns; k++) {
    v[k] = m->acc[at * red->ns + k];
    t[k] = m->st->state[k];
  }
  v[red->ns].i = m->st->step_index ? tarn_plan_lin_at(m->st->flat, m->at) : 0;
  t[red->ns] = TARN_I64;
  for (uint32_t r = 0; r < nops; r++) {
    v[red->ns + 1 + r] = load(m, r);
    t[red->ns + 1 + r] = m->st->read[r].dtype;
  }
  for (uint32_t k = 0; k < red->ns; k++)
    m->acc[at * red->ns + k] = tarn_fx_eval(m->N->L, m->st->step[k], v, t, TARN_STRICT);
}
static void finish(const machine *m, const tarn_plan_stmt *s) {
  const tarn_reducer *red = m->st->red;
  int64_t at = point(m);
  tarn_value *acc = &m->acc[at * red->ns];
  tarn_value given = {0};
  if (m->st->nfactor) {
    given.d = s->value == TARN_NONE ? 0 : m->value[s->value];
    acc = &given;
  } else open_is(m, at, true);
  m->open[at] = false;
  if (s->phase == TARN_PLAN_LEAVE) {
    store(m, acc[0]);
    return;
  }
  tarn_dtype type = m->st->state[0];
  tarn_value x = tarn_fx_eval(m->N->L, red->result, acc, m->st->state, TARN_STRICT);
  if (!tarn_fx_type(m->N->L, red->result, m->st->state, red->ns, &type))
    tarn_raise(m->cx, TARN_INTERNAL, "plan: a result of no type");
  store(m, epilogue(m, x, type));
}
/* An accumulator beyond the end of a dim ends without a result. */
static void drop(const machine *m) { m->open[point(m)] = false; }
static void run_compute(machine *m, const tarn_plan_stmt *s) {
  switch ((tarn_plan_phase)s->phase) {
  case TARN_PLAN_MAP: map(m); break;
  case TARN_PLAN_BEGIN: begin(m, false); break;
  case TARN_PLAN_RESUME: begin(m, true); break;
  case TARN_PLAN_STEP: step(m); break;
  case TARN_PLAN_LEAVE:
  case TARN_PLAN_FINISH: finish(m, s); break;
  case TARN_PLAN_PHASES: break;
  }
}
static void run_dot(machine *m, const tarn_plan_stmt *s) {
  (void)s;
  const tarn_plan_list *list = &m->N->list[1 + (m->st - m->N->stage)];
  int64_t *at = &m->at[list->level[list->n - 1].var];
  for (*at = 0; *at < m->st->dot[0].k; ++*at) step(m);
}
static void run_take(machine *m, const tarn_plan_stmt *s) {
  m->value[s->value] = load(m, s->read).d;
}
static void run_times(machine *m, const tarn_plan_stmt *s) {
  const tarn_plan_factor *f = &m->st->factor[s->factor];
  double v[PLAN_MOST_TERMS];
  for (uint32_t i = 0; i < f->cols; i++) v[i] = s->from[i] == TARN_NONE ? 0 : m->value[s->from[i]];
  for (uint32_t i = 0; i < f->npair; i++)
    v[f->cols + i] = v[f->pair[i].a] + f->pair[i].k * v[f->pair[i].b];
  for (uint32_t r = 0; r < f->rows; r++) {
    double sum = 0;
    for (uint32_t i = 0; i < f->cols + f->npair; i++) sum += f->weight[r][i] * v[i];
    m->value[s->value + r] = sum;
  }
}

/* ---------------------------------------------------------------- statements */
static void run(machine *m, const tarn_plan_stmt *s);
static void run_inside(machine *m, const tarn_plan_stmt *s) {
  for (const tarn_plan_stmt *in = s + 1; in < s + s->size; in += in->size) run(m, in);
}
static void run_counted(machine *m, const tarn_plan_stmt *s) {
  int64_t from = s->op == TARN_PLAN_LANES ? 0 : s->lo;
  for (int64_t i = from; i <= s->hi; i++) {
    m->at[s->var] = i;
    run_inside(m, s);
  }
  m->at[s->var] = 0;
}
static void run_stage(machine *m, const tarn_plan_stmt *s) {
  m->st = &m->N->stage[s->var];
  int64_t n = own_points(m);
  tarn_mark mark = tarn_arena_mark(m->cx);
  m->acc = m->st->red ? TARN_ARRAY(m->cx, tarn_value, n * m->st->red->ns) : NULL;
  m->open = TARN_ARRAY(m->cx, bool, n);
  for (uint32_t i = 0; i < m->st->nheld; i++) {
    m->held[i] = TARN_ARRAY(m->cx, tarn_value, held_elems(m, i));
    m->there[i] = TARN_ARRAY(m->cx, bool, held_elems(m, i));
  }
  run_inside(m, s);
  for (int64_t i = 0; i < n; i++) open_is(m, i, false);
  tarn_release(m->cx, mark);
}
/* The counters of the parallel levels of one item. */
static void decode(machine *m, const tarn_plan_list *list, int64_t item) {
  for (uint32_t i = list->parallel; i-- > 0;) {
    const tarn_plan_level *l = &list->level[i];
    int64_t trip = item % l->trips;
    int64_t step = l->open ? tarn_plan_step(l) : 1;
    m->at[l->var] = l->open ? tarn_min(trip * step, l->extent - step) : trip;
    item /= l->trips;
  }
}
static void run_team(machine *m, const tarn_plan_stmt *s) {
  const tarn_plan_list *list = &m->N->list[1 + (m->st - m->N->stage)];
  for (int64_t i = 0; i <= s->hi; i++) {
    decode(m, list, i);
    run_inside(m, s);
  }
}
static void run_parallel(machine *m, const tarn_plan_stmt *s) {
  for (const tarn_plan_stmt *c = s + 1; c < s + s->size; c += c->size) {
    int64_t at = m->at[s->var];
    bool last = c + c->size == s + s->size;
    if (c->by ? c->hi < 0 && !last : c->below ? at >= c->below : at != c->lo) continue;
    if (at < c->lo || at > c->hi)
      tarn_raise(m->cx, TARN_INTERNAL, "plan: l%u is %lld, not in %lld … %lld", s->var,
                 (long long)at, (long long)c->lo, (long long)c->hi);
    run_inside(m, c);
    return;
  }
}
static void run_either(machine *m, const tarn_plan_stmt *s) {
  bool all = true;
  for (uint32_t i = 0; i < s->n; i++) all &= m->at[s->test[i].var] == s->test[i].is;
  const tarn_plan_stmt *yes = s + 1;
  run(m, all ? yes : yes + yes->size);
}
static void run_guard(machine *m, const tarn_plan_stmt *s) {
  const tarn_plan_stage *st = m->st;
  const tarn_plan_access *a = s->read < st->nread ? &st->read[s->read] : &st->result;
  if (guard_holds(m, &a->guard[s->guard])) run_inside(m, s);
  else if (s->read == st->nread) drop(m);
}
static void run_open(machine *m, const tarn_plan_stmt *s) {
  int64_t *at = &m->at[s->var];
  int64_t from = s->open & TARN_PLAN_ON ? m->end[s->var] : s->lo;
  bool over = s->open & TARN_PLAN_OVER;
  int64_t end = over && from <= s->hi ? s->hi + s->by : s->hi + 1;
  for (; from < end; from += s->by) {
    *at = tarn_min(from, s->hi);
    run_inside(m, s);
  }
  m->end[s->var] = over ? tarn_min(from, s->hi + s->by) : from;
  *at = 0;
}
static void run_loop(machine *m, const tarn_plan_stmt *s) {
  if (s->by) run_open(m, s);
  else run_counted(m, s);
}
static void run_copies(machine *m, const tarn_plan_stmt *s) { run_counted(m, s); }
static void run_lanes(machine *m, const tarn_plan_stmt *s) { run_counted(m, s); }
static void run_case(machine *m, const tarn_plan_stmt *s) { run_inside(m, s); }
static void run_tile(machine *m, const tarn_plan_stmt *s) { run_inside(m, s); }
static void run_phase(machine *m, const tarn_plan_stmt *s) { run_inside(m, s); }
/* What changes no value. */
static void run_address(machine *m, const tarn_plan_stmt *s) { (void)m, (void)s; }
static void run_prefetch(machine *m, const tarn_plan_stmt *s) { (void)m, (void)s; }
static void run_apart(machine *m, const tarn_plan_stmt *s) { (void)m, (void)s; }

static void run_member(machine *m, const tarn_plan_stmt *s) { run_counted(m, s); }

/* ---------------------------------------------------------------- what a block holds */
static void held_set(const machine *m, uint32_t i, int64_t at, tarn_value v) {
  within(m, at, held_elems(m, i), "what is held");
  m->held[i][at] = v;
  m->there[i][at] = true;
}
static bool inside(const machine *m, const tarn_plan_access *a) {
  for (uint32_t g = 0; g < a->nguard; g++)
    if (!guard_holds(m, &a->guard[g])) return false;
  return true;
}
/* So many elements side by side, or as many times the fill. */
static void copy_here(const machine *m, uint32_t i) {
  const tarn_plan_held *h = &m->st->held[i];
  plan_memory from = m->in[m->st->s->read[h->read].src];
  bool is = inside(m, &h->from);
  tarn_value v = tarn_fx_eval(m->N->L, h->from.fill, NULL, NULL, TARN_STRICT);
  for (uint32_t k = 0; k < h->wide; k++) {
    plan_memory next = {from.elements, from.offset + k};
    if (is) v = element(m, next, &h->from);
    held_set(m, i, tarn_plan_lin_at(h->to, m->at) + k, v);
  }
}
static uint32_t held_of(const machine *m, const tarn_plan_stmt *s) {
  return m->st->read[s->read].held - 1;
}
static void run_copy(machine *m, const tarn_plan_stmt *s) {
  const tarn_plan_held *h = &m->st->held[held_of(m, s)];
  bool more = true;
  while (more) {
    copy_here(m, held_of(m, s));
    more = false;
    for (uint32_t k = h->n; k-- > 0 && !more;) {
      more = ++m->at[h->var[k]] < h->count[k];
      if (!more) m->at[h->var[k]] = 0;
    }
  }
}
static void run_fill(machine *m, const tarn_plan_stmt *s) {
  uint32_t i = held_of(m, s);
  tarn_value v = tarn_fx_eval(m->N->L, m->st->held[i].from.fill, NULL, NULL, TARN_STRICT);
  for (int64_t k = 0; k < held_elems(m, i); k++) held_set(m, i, k, v);
}
static void set_trip(machine *m, int64_t trip) {
  const tarn_plan_list *list = &m->N->list[1 + (m->st - m->N->stage)];
  m->trip = trip;
  m->at[m->st->slot] = trip % m->st->nslot;
  for (uint32_t i = m->st->until; i-- > m->st->acc;) {
    m->at[list->level[i].var] = trip % list->level[i].trips;
    trip /= list->level[i].trips;
  }
}
static void run_fetch(machine *m, const tarn_plan_stmt *s) {
  int64_t trip = m->trip;
  if (trip + m->st->nslot - 1 >= m->st->trips) return;
  set_trip(m, trip + m->st->nslot - 1);
  run_inside(m, s);
  set_trip(m, trip);
}
static void run_pipeline(machine *m, const tarn_plan_stmt *s) {
  const tarn_plan_stmt *fetch = s + 1;
  while (fetch->op != TARN_PLAN_FETCH) fetch += fetch->size;
  for (int64_t t = 1; t < s->n; t++) {
    m->trip = t - s->n;
    run_fetch(m, fetch);
  }
  for (int64_t t = 0; t <= s->hi; t++) {
    set_trip(m, t);
    run_inside(m, s);
  }
  set_trip(m, 0);
}
/* ---------------------------------------------------------------- tensor cores */
typedef struct operands {
  tarn_value v[2][32 * 32]; /* element by element: row or column, then step of the sum */
} operands;
static int64_t fragment(const machine *m, uint32_t o, tarn_hw_role role) {
  const tarn_plan_lin *x = tarn_plan_fragment(m->N, m->st, o, role);
  return tarn_plan_lin_at(x, m->at);
}
static void take_operand(machine *m, uint32_t o, operands *x) {
  const tarn_plan_stage *st = m->st;
  for (m->at[st->lane] = 0; m->at[st->lane] <= st->space.hi[st->lane]; m->at[st->lane]++)
    for (m->at[st->reg[o]] = 0; m->at[st->reg[o]] < st->nreg[o]; m->at[st->reg[o]]++)
      for (m->at[st->place[o]] = 0; m->at[st->place[o]] < st->each[o]; m->at[st->place[o]]++) {
        int64_t row = fragment(m, o, o ? TARN_HW_N : TARN_HW_M);
        x->v[o][row * st->form.k + fragment(m, o, TARN_HW_K)] = load(m, st->unit_read[o]);
      }
  m->at[st->lane] = m->at[st->reg[o]] = m->at[st->place[o]] = 0;
}
static void add_products(const machine *m, const operands *x) {
  const tarn_plan_stage *st = m->st;
  int64_t at = point(m);
  int64_t row = fragment(m, 2, TARN_HW_M) * st->form.k;
  int64_t column = fragment(m, 2, TARN_HW_N) * st->form.k;
  tarn_value v[4];
  tarn_dtype t[4] = {st->state[0], TARN_I64};
  open_is(m, at, true);
  for (int64_t k = 0; k < st->form.k; k++) {
    v[0] = m->acc[at];
    v[1].i = 0;
    for (uint32_t o = 0; o < 2; o++) {
      v[2 + st->unit_read[o]] = x->v[o][(o ? column : row) + k];
      t[2 + o] = st->read[o].dtype;
    }
    m->acc[at] = tarn_fx_eval(m->N->L, st->step[0], v, t, TARN_STRICT);
  }
}
static void run_unit(machine *m, const tarn_plan_stmt *s) {
  const tarn_plan_stage *st = m->st;
  tarn_mark mark = tarn_arena_mark(m->cx);
  operands *x = TARN_NEW(m->cx, operands);
  (void)s;
  for (uint32_t o = 0; o < 2; o++) take_operand(m, o, x);
  for (m->at[st->lane] = 0; m->at[st->lane] <= st->space.hi[st->lane]; m->at[st->lane]++)
    for (m->at[st->reg[2]] = 0; m->at[st->reg[2]] < st->nreg[2]; m->at[st->reg[2]]++)
      add_products(m, x);
  m->at[st->lane] = m->at[st->reg[2]] = 0;
  tarn_release(m->cx, mark);
}
static void run_merge(machine *m, const tarn_plan_stmt *s) { run_inside(m, s); }
static void run_await(machine *m, const tarn_plan_stmt *s) { (void)m, (void)s; }
static void run_barrier(machine *m, const tarn_plan_stmt *s) { (void)m, (void)s; }

typedef void run_fn(machine *m, const tarn_plan_stmt *s);
#define RUN(OP, name, text) [TARN_PLAN_##OP] = run_##name,
static run_fn *const runs[TARN_PLAN_OPS] = {TARN_PLAN_OP_TABLE(RUN)};
static void run(machine *m, const tarn_plan_stmt *s) { runs[s->op](m, s); }

static void locals(machine *m) {
  m->local = TARN_ARRAY(m->cx, plan_memory, m->N->nstage);
  for (uint32_t i = 0; i < m->N->nstage; i++) {
    const tarn_plan_stage *st = &m->N->stage[i];
    int64_t n = st->local_bytes / (int64_t)tarn_dtype_size(st->out_type);
    if (!st->s->out) m->local[i].elements = tarn_tensor_new(m->cx, st->out_type, 1, &n);
  }
}
void plan_run(const tarn_plan_nest *N, const plan_memory *in, const plan_memory *out) {
  machine *m = TARN_NEW(N->cx, machine);
  *m = (machine){.N = N, .cx = N->cx, .in = in, .out = out};
  locals(m);
  for (uint32_t r = 0; r < tarn_plan_regions(N); r++) {
    const tarn_plan_code *c = N->code[r];
    m->value = TARN_ARRAY(m->cx, double, c->values + 1);
    for (int64_t i = 0; i < tarn_plan_items(N, r); i++) {
      decode(m, &N->list[N->split ? 1 + r : 0], i);
      for (const tarn_plan_stmt *s = c->p; s < c->p + c->n; s += s->size) run(m, s);
    }
  }
}
