/* lower/: nests with random maps, layouts, types and schedules, compiled and run, against a naive
 * evaluator. */
#include "tests/lower_cases.h"

/* ---------------------------------------------------------------- random nests */

/* A random coordinate over the dims [0, n). */
static uint32_t coordinate(const space *s, uint32_t n) {
  if (n == 0 || kit_below(12) == 0) return tarn_ix_const(L, kit_below(3));
  uint32_t a = ix(s, kit_below(n)), b = ix(s, kit_below(n));
  switch (kit_below(9)) {
  case 0:
    return tarn_ix_add(L, tarn_ix_scale(L, a, 1 + kit_below(2), s->dim),
                       tarn_ix_scale(L, b, 1 + kit_below(2), s->dim), s->dim);
  case 1:
    return tarn_ix_add(L, tarn_ix_add(L, a, b, s->dim), tarn_ix_const(L, -1 - (int)kit_below(2)),
                       s->dim);
  case 2: return tarn_ix_div(L, a, 2 + kit_below(4), s->dim);
  case 3: return tarn_ix_mod(L, a, 2 + kit_below(4), s->dim);
  case 4: return tarn_ix_add(L, tarn_ix_const(L, 9), tarn_ix_scale(L, a, -1, s->dim), s->dim);
  case 5:
    return tarn_ix_div(L, tarn_ix_add(L, tarn_ix_scale(L, a, 7, s->dim), b, s->dim),
                       3 + kit_below(4), s->dim);
  case 6: return tarn_ix_scale(L, a, 2 + kit_below(3), s->dim);
  default: return a;
  }
}

/* A map over the first n dims to `rank` random coordinates; extents are chosen so that most of them
 * are in range. */
static uint32_t random_map(const space *s, uint32_t n, tarn_dtype t, int64_t *in, uint32_t rank) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = (uint8_t)rank, .fill = TARN_NONE};
  memcpy(m.dim, s->dim, n * sizeof *m.dim);
  for (uint32_t k = 0; k < rank; k++) {
    int64_t lo, hi;
    m.e[k] = coordinate(s, n);
    tarn_ix_range(L, m.e[k], s->dim, &lo, &hi);
    int64_t cut = kit_below(3) == 0 ? 2 : 0;
    m.in[k] = in[k] = hi - cut + 1 > 0 ? hi - cut + 1 : 1;
    if (lo >= 0 && hi < in[k]) continue;
    m.guard[m.nguard++] = (tarn_guard){m.e[k], 0, in[k]};
    m.fill = number(t, kit_below(2) ? 0 : tarn_dtype_is_float(t) && kit_below(2) ? -1.5 : 1);
  }
  return tarn_map_intern(L, &m);
}

static tarn_layout random_layout(uint32_t n, const int64_t *dim) {
  uint8_t order[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) order[i] = (uint8_t)i;
  for (uint32_t i = n; i > 1 && kit_below(2); i--) {
    uint32_t k = kit_below(i);
    uint8_t t = order[i - 1];
    order[i - 1] = order[k], order[k] = t;
  }
  bool block = n > 0 && kit_below(3) == 0;
  tarn_layout l = tarn_layout_ordered(n, dim, order, (uint8_t)(n ? kit_below(n) : 0),
                                      block ? 2 + kit_below(7) : 0);
  l.offset = kit_below(4) ? 0 : kit_below(10);
  return l;
}

/* An expression over holes of one type. */
static uint32_t random_body(tarn_dtype t, uint32_t holes) {
  static const tarn_fxop flt[] = {TARN_FX_ADD, TARN_FX_SUB, TARN_FX_MUL, TARN_FX_MUL,
                                  TARN_FX_MIN, TARN_FX_MAX, TARN_FX_DIV};
  static const tarn_fxop num[] = {TARN_FX_ADD, TARN_FX_SUB, TARN_FX_MUL, TARN_FX_MUL,  TARN_FX_MIN,
                                  TARN_FX_MAX, TARN_FX_DIV, TARN_FX_MOD, TARN_FX_FMOD, TARN_FX_AND,
                                  TARN_FX_OR,  TARN_FX_SHL, TARN_FX_SHR, TARN_FX_POW};
  static const tarn_fxop log[] = {TARN_FX_AND, TARN_FX_OR,  TARN_FX_XOR, TARN_FX_EQ,
                                  TARN_FX_LT,  TARN_FX_MAX, TARN_FX_LE};
  static const tarn_fxop one[] = {TARN_FX_NEG, TARN_FX_ABS, TARN_FX_SIGN};
  uint32_t f = tarn_fx_hole(L, 0);
  for (uint32_t i = 1; i < holes; i++) {
    uint32_t g = tarn_fx_hole(L, i);
    tarn_fxop op = t == TARN_BOOL           ? log[kit_below(7)]
                   : tarn_dtype_is_float(t) ? flt[kit_below(6)]
                                            : num[kit_below(14)];
    f = tarn_fx_op(L, op, f, g, 0);
  }
  if (t == TARN_BOOL) return kit_below(3) ? f : tarn_fx_op(L, TARN_FX_NOT, f, 0, 0);
  if (kit_below(4) == 0) f = tarn_fx_op(L, one[kit_below(3)], f, 0, 0);
  if (kit_below(4) == 0) {
    uint32_t c = tarn_fx_op(L, TARN_FX_LT, f, number(t, 0), 0);
    f = tarn_fx_op(L, TARN_FX_SEL, c, tarn_fx_op(L, TARN_FX_MUL, f, number(t, 2), 0), f);
  }
  return f;
}

/* The place of the first largest element: a state of two, of which parts may be merged in any order
 * where of equals the lesser place counts. */
static uint32_t argmax(tarn_dtype t, bool any_order) {
  uint32_t m = tarn_fx_hole(L, 0), at = tarn_fx_hole(L, 1), x = tarn_fx_hole(L, 2),
           i = tarn_fx_hole(L, 3);
  uint32_t more = tarn_fx_op(L, TARN_FX_LT, m, x, 0);
  tarn_reducer r = {
      .kind = TARN_RED_CUSTOM, .dtype = t, .ns = 2, .commutative = any_order, .result = at};
  r.init[0] = tarn_fx_const(L, t, -INFINITY), r.init[1] = tarn_fx_iconst(L, TARN_I64, 0);
  r.step[0] = tarn_fx_op(L, TARN_FX_SEL, more, x, m),
  r.step[1] = tarn_fx_op(L, TARN_FX_SEL, more, i, at);
  uint32_t m2 = tarn_fx_hole(L, 2), at2 = tarn_fx_hole(L, 3),
           more2 = tarn_fx_op(L, TARN_FX_LT, m, m2, 0);
  uint32_t equal = tarn_fx_op(L, TARN_FX_EQ, m, m2, 0),
           before = tarn_fx_op(L, TARN_FX_LT, at2, at, 0),
           first = tarn_fx_op(L, TARN_FX_AND, equal, before, 0);
  if (any_order) more2 = tarn_fx_op(L, TARN_FX_OR, more2, first, 0);
  r.merge[0] = tarn_fx_op(L, TARN_FX_SEL, more2, m2, m),
  r.merge[1] = tarn_fx_op(L, TARN_FX_SEL, more2, at2, at);
  return tarn_reducer_intern(L, &r);
}
/* Sum and sum of squares, and from them sum - squares: a state of two whose lanes may be merged. */
static uint32_t moments(tarn_dtype t) {
  uint32_t a = tarn_fx_hole(L, 0), b = tarn_fx_hole(L, 1), x = tarn_fx_hole(L, 2),
           c = tarn_fx_hole(L, 2), d = tarn_fx_hole(L, 3);
  tarn_reducer r = {.kind = TARN_RED_CUSTOM, .dtype = t, .ns = 2, .commutative = true};
  r.init[0] = r.init[1] = number(t, 0);
  r.step[0] = tarn_fx_op(L, TARN_FX_ADD, a, x, 0);
  r.step[1] = tarn_fx_op(L, TARN_FX_ADD, b, tarn_fx_op(L, TARN_FX_MUL, x, x, 0), 0);
  r.merge[0] = tarn_fx_op(L, TARN_FX_ADD, a, c, 0),
  r.merge[1] = tarn_fx_op(L, TARN_FX_ADD, b, d, 0);
  r.result = tarn_fx_op(L, TARN_FX_SUB, a, b, 0);
  return tarn_reducer_intern(L, &r);
}

static uint32_t random_reducer(tarn_dtype t) {
  static const tarn_red_kind kind[] = {TARN_RED_SUM, TARN_RED_SUM, TARN_RED_MAX, TARN_RED_MIN,
                                       TARN_RED_PROD};
  uint32_t k = kit_below(t == TARN_F32 ? 7 : t == TARN_BOOL ? 4 : 5);
  if (t == TARN_BOOL && k < 2) k = 2;
  return k == 5 ? argmax(t, kit_below(2)) : k == 6 ? moments(t) : tarn_reducer_of(L, kind[k], t);
}

/* ---------------------------------------------------------------- random schedules */
typedef struct chain {
  uint32_t n;
  int64_t step[4];
} chain;

/* What level `at` covers: the step of the one outside of it of its dim. */
static int64_t step_outside(const space *s, const tarn_level *l, uint32_t at) {
  uint32_t i = at;
  while (i-- > 0)
    if (l[i].dim == l[at].dim) return l[i].step;
  return s->dim[l[at].dim];
}
/* Levels over dims [first, last) into a stage; ordered: reduce dims outermost first and unsplit
 * lanes, as strict needs. */
static uint32_t random_levels(const space *s, uint32_t first, uint32_t last, bool ordered,
                              tarn_level *out) {
  chain c[TARN_MAX_DIMS] = {0};
  uint32_t left = 0, n = 0, vector = last;
  for (uint32_t d = first; d < last; d++) {
    int64_t step = s->dim[d] > 1 ? 1 + kit_below((uint32_t)s->dim[d] + 4) : 1;
    if (kit_below(2) && step > 1) {
      c[d].step[c[d].n++] = step;
      if (step % 2 == 0 && step > 2 && kit_below(2)) c[d].step[c[d].n++] = step / 2;
    }
    c[d].step[c[d].n++] = 1;
    left += c[d].n;
  }
  if (kit_below(4) && last > first) vector = first + kit_below(last - first);
  uint32_t at[TARN_MAX_DIMS] = {0};
  while (left) {
    uint32_t d = first + kit_below(last - first);
    if (at[d] == c[d].n) continue;
    bool waits = false; /* an earlier reduce dim is not done */
    for (uint32_t e = s->nacc > first ? s->nacc : first; ordered && d >= s->nacc && e < d; e++)
      waits = waits || at[e] < c[e].n;
    if (waits) continue;
    bool innermost = at[d] + 1 == c[d].n;
    int64_t step = c[d].step[at[d]++], outer = at[d] > 1 ? c[d].step[at[d] - 2] : s->dim[d];
    uint8_t kind = outer / step < 7 && kit_below(3) == 0 ? TARN_UNROLL : TARN_SERIAL;
    if (innermost && d == vector && outer <= 40 && !(ordered && d >= s->nacc)) kind = TARN_VECTOR;
    out[n++] = (tarn_level){(uint8_t)d, kind, step};
    left--;
  }
  tarn_level *l = n < 2 ? NULL : &out[n - 2]; /* lanes that are rows */
  if (l && l[0].dim != l[1].dim && l[0].dim < s->nacc && l[1].dim < s->nacc && l[0].step == 1 &&
      l[1].step == 1 && (n + l[0].dim) % 3 &&
      step_outside(s, out, n - 2) * step_outside(s, out, n - 1) <= 40)
    l[0].kind = l[1].kind = TARN_VECTOR;
  return n;
}

static void random_parallel(const space *s, tarn_level *l, uint32_t n) {
  for (uint32_t i = 0; i < n && l[i].dim < s->nacc && l[i].kind == TARN_SERIAL && kit_below(2); i++)
    l[i].kind = TARN_PARALLEL;
}

/* Of the dims whose first level may be a loop over an open one. */
static uint32_t random_open(const space *s, const tarn_level *l, uint32_t n, uint32_t acc) {
  uint32_t open = 0;
  uint32_t seen = 0;
  bool resumes = false;
  for (uint32_t i = 0; i < acc; i++) resumes |= l[i].dim >= s->nacc;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t dim = 1u << l[i].dim;
    bool own = l[i].dim < s->nacc;
    bool loop = l[i].kind == TARN_SERIAL || (own && l[i].kind == TARN_PARALLEL);
    bool twice = l[i].step > 1 && resumes;
    bool may = own ? i < acc && !twice : i >= acc;
    if (!(seen & dim) && loop && may && kit_below(2)) open |= dim;
    seen |= dim;
  }
  return open;
}
/* Dims that are as long as the step of their first level. */
static uint32_t fitting(const space *s, const tarn_level *l, uint32_t n) {
  uint32_t dims = 0;
  for (uint32_t i = n; i-- > 0;) {
    uint32_t dim = 1u << l[i].dim;
    dims = l[i].step <= s->dim[l[i].dim] ? dims | dim : dims & ~dim;
  }
  return dims;
}
static void random_acc(const space *s, bool simple_state, tarn_stage_sched *out) {
  uint32_t limit = 0; /* the first reduce level: the accumulators must lie outside of it, unless the
                         state fits the result */
  while (limit < out->nlevel && out->level[limit].dim < s->nacc) limit++;
  if (simple_state && kit_below(3) == 0) limit = out->nlevel;
  out->acc = kit_below(limit + 1);
}
static void random_stage_schedule(const space *s, uint32_t first, bool reduces, bool simple_state,
                                  bool ordered, tarn_stage_sched *out) {
  out->nlevel = random_levels(s, first, s->n, ordered, out->level);
  random_parallel(s, out->level, out->nlevel);
  out->acc = out->nlevel;
  if (reduces) random_acc(s, simple_state, out);
  uint32_t acc = reduces && out->acc < out->nlevel ? out->acc : out->nlevel;
  out->open = kit_below(2) ? random_open(s, out->level, out->nlevel, acc) : 0;
  out->brief = out->open & ~(kit_below(2) ? fitting(s, out->level, out->nlevel) : 0);
}

/* ---------------------------------------------------------------- cases */
static space random_space(uint32_t own, uint32_t red) {
  space s = {.n = own + red, .nacc = own};
  for (uint32_t d = 0; d < s.n; d++)
    s.dim[d] = kit_below(8) == 0 ? 1 : 2 + kit_below(d + 1 == own ? 40 : 9);
  return s;
}

static uint32_t random_operand(kit_case *c, const space *s, uint32_t n, tarn_dtype t) {
  int64_t in[4];
  uint32_t rank = kit_below(4), i = c->nin++;
  uint32_t map = random_map(s, n, t, in, rank);
  c->in_type[i] = t, c->in[i] = random_layout(rank, in), c->constant[i] = kit_below(4) == 0;
  c->value[i] = kit_tensor(cx, t, rank, in, 2);
  return map;
}

/* A map of the first n dims into the own dims of an earlier stage. */
static uint32_t stage_map(const space *s, uint32_t n, const tarn_stage *from) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = from->nown, .fill = TARN_NONE};
  memcpy(m.dim, s->dim, n * sizeof *m.dim), memcpy(m.in, from->own, sizeof m.in);
  for (uint32_t k = 0; k < from->nown; k++)
    m.e[k] = tarn_ix_mod(L, coordinate(s, n), from->own[k], s->dim);
  return tarn_map_intern(L, &m);
}

typedef struct nest_maker {
  kit_case *c;
  tarn_dtype t;
  bool exact;
  uint32_t depth, nstage;
  int64_t shared[2];
  tarn_stage stage[3];
  tarn_dtype type[3];
} nest_maker;

static tarn_read random_read(nest_maker *q, const space *s, uint32_t n) {
  if (q->nstage && kit_below(2)) {
    uint32_t from = kit_below(q->nstage);
    if (q->stage[from].out == false || q->depth == 0 || kit_below(2))
      return (tarn_read){.stage = true, .src = from, .map = stage_map(s, n, &q->stage[from])};
  }
  return (tarn_read){.src = q->c->nin, .map = random_operand(q->c, s, n, q->t)};
}

/* One more stage: a map or a reduction, with or without epilogue; its result has type t unless it
 * is the last. */
static void random_stage(nest_maker *q, bool last, tarn_stage_sched *sched) {
  uint32_t own = kit_below(4 - q->depth), red = kit_below(3),
           nops = 1 + kit_below(q->nstage ? 2 : 3), no = q->nstage;
  space s = random_space(q->depth + own, red);
  memcpy(s.dim, q->shared, q->depth * sizeof *s.dim);
  tarn_read *read = TARN_ARRAY(cx, tarn_read, 8);
  tarn_func f = {
      .nops = (uint8_t)nops, .body = random_body(q->t, nops), .red = TARN_NONE, .epi = TARN_NONE};
  tarn_stage *st = &q->stage[no];
  *st = (tarn_stage){
      .nown = (uint8_t)own,
      .nred = (uint8_t)red,
      .read = read,
      .out = last || kit_below(4) == 0,
  };
  memcpy(st->own, s.dim + q->depth, own * sizeof *st->own),
      memcpy(st->red, s.dim + s.nacc, red * sizeof *st->red);
  for (uint32_t i = 0; i < nops; i++) read[i] = random_read(q, &s, s.n);
  tarn_dtype holes[4] = {q->t, q->t, q->t, q->t}, type;
  ck_assert(tarn_fx_type(L, f.body, holes, nops, &type));
  bool simple = true, plain = type == q->t, ordered = q->exact;
  if (!plain && !last) f.body = tarn_fx_cast(L, q->t, f.body), type = q->t;
  if (red) {
    do f.red = random_reducer(type);
    while (!last && tarn_reducer_get(L, f.red)->kind == TARN_RED_CUSTOM);
    const tarn_reducer *r = tarn_reducer_get(L, f.red);
    simple = r->kind != TARN_RED_CUSTOM;
    if (r->result == tarn_fx_hole(L, 1)) type = TARN_I64, ordered |= !r->commutative || red > 1;
  }
  if (simple && kit_below(3) == 0 && type == q->t && q->t != TARN_BOOL) {
    f.nepi = 1, f.epi = random_body(q->t, 2);
    read[nops] = random_read(q, &s, s.nacc);
    ck_assert(tarn_fx_type(L, f.epi, holes, 2, &type));
    simple = type == q->t;
  }
  st->fn = tarn_fn_intern(L, &f);
  simple =
      simple && tarn_fn_widened(L, st->fn) == st->fn; /* the result holds what is accumulated */
  q->nstage++;
  q->type[no] = type;
  random_stage_schedule(&s, q->depth, red > 0, simple, ordered, sched);
}

/* A stage that nobody reads is an output. */
static void add_output(nest_maker *q, uint32_t i) {
  for (uint32_t k = i + 1; k < q->nstage; k++) {
    const tarn_func *f = tarn_fn_get(L, q->stage[k].fn);
    for (uint32_t r = 0; r < (uint32_t)f->nops + f->nepi; r++)
      if (q->stage[k].read[r].stage && q->stage[k].read[r].src == i) return;
  }
  q->stage[i].out = true;
}
/* Output operands in the order of the stages. */
static void outputs(nest_maker *q) {
  for (uint32_t i = 0; i < q->nstage; i++) {
    if (!q->stage[i].out) continue;
    space s = {.n = q->depth + q->stage[i].nown};
    memcpy(s.dim, q->shared, q->depth * sizeof *s.dim),
        memcpy(s.dim + q->depth, q->stage[i].own, q->stage[i].nown * sizeof *s.dim);
    q->c->out_type[q->c->nout] = q->type[i], q->c->out[q->c->nout++] = random_layout(s.n, s.dim);
  }
}

static void random_case(kit_case *c, tarn_dtype t, bool exact, uint32_t nstage) {
  nest_maker q = {.c = c, .t = t, .exact = exact, .depth = nstage > 1 ? kit_below(3) : 0};
  memset(c, 0, sizeof *c);
  c->sched = TARN_NEW(cx, tarn_schedule);
  c->sched->nstage = nstage, c->sched->stage = TARN_ARRAY(cx, tarn_stage_sched, nstage);
  space p = random_space(q.depth, 0);
  memcpy(q.shared, p.dim, sizeof q.shared);
  for (uint32_t i = 0; i < nstage; i++) random_stage(&q, i + 1 == nstage, &c->sched->stage[i]);
  c->sched->nshared = random_levels(&p, 0, q.depth, false, c->sched->shared);
  random_parallel(&p, c->sched->shared, c->sched->nshared);
  if (kit_below(2))
    c->sched->open = random_open(&p, c->sched->shared, c->sched->nshared, c->sched->nshared);
  c->sched->brief = c->sched->open & ~fitting(&p, c->sched->shared, c->sched->nshared);
  for (uint32_t i = 0; i + 1 < nstage; i++) add_output(&q, i);
  outputs(&q);
  tarn_nest n = {.depth = (uint8_t)q.depth, .nstage = nstage, .nchild = c->nin, .stage = q.stage};
  n.out_ns = (uint8_t)q.depth;
  memcpy(n.shared, q.shared, sizeof q.shared);
  c->nest = tarn_nest_intern(L, &n);
  c->exact = exact;
}

/* A padded window walked over two dims: padding is decided at the borders of tiles, in loops of the
 * reduction, or not at all.
 */
static tarn_read window_read(kit_case *c, const space *s, uint32_t fill) {
  tarn_imap m = {.ns = (uint8_t)s->n, .n = (uint8_t)s->n, .nin = 3, .fill = fill};
  memcpy(m.dim, s->dim, s->n * sizeof *m.dim);
  for (uint32_t k = 0; k < 2; k++) {
    int64_t stride = 1 + kit_below(k ? 4 : 2), apart = 1 + kit_below(2), pad = kit_below(4), lo, hi;
    uint32_t e = tarn_ix_add(L, tarn_ix_scale(L, ix(s, k), stride, s->dim),
                             tarn_ix_scale(L, ix(s, s->nacc + k), apart, s->dim), s->dim);
    m.e[k] = tarn_ix_add(L, e, tarn_ix_const(L, -pad), s->dim);
    tarn_ix_range(L, m.e[k], s->dim, &lo, &hi);
    m.in[k] = hi + 1 - kit_below(4);
    if (m.in[k] < 1) m.in[k] = 1;
    if (lo < 0 || hi >= m.in[k]) m.guard[m.nguard++] = (tarn_guard){m.e[k], 0, m.in[k]};
  }
  m.in[2] = s->dim[s->n - 1], m.e[2] = ix(s, s->n - 1);
  if (!m.nguard) m.fill = TARN_NONE;
  c->in_type[0] = TARN_F32, c->in[0] = random_layout(3, m.in),
  c->value[0] = kit_tensor(cx, TARN_F32, 3, m.in, 2);
  return (tarn_read){.src = c->nin++, .map = tarn_map_intern(L, &m)};
}
/* Rows of lanes and the whole window written out. */
static void write_rows(tarn_stage_sched *ss, int64_t lanes) {
  const tarn_level level[] = {{2, TARN_SERIAL, 1},     {0, TARN_SERIAL, 1 + kit_below(6)},
                              {1, TARN_SERIAL, lanes}, {3, TARN_UNROLL, 1},
                              {5, TARN_UNROLL, 1},     {0, TARN_UNROLL, 1},
                              {4, TARN_UNROLL, 1},     {1, TARN_VECTOR, 1}};
  ss->nlevel = sizeof level / sizeof *level, ss->acc = 3;
  memcpy(ss->level, level, sizeof level);
}
/* Rows, columns and the whole window written out, beside the channels or within a loop over them.
 */
static void write_out(tarn_stage_sched *ss, bool taps) {
  const tarn_level within[] = {{0, TARN_SERIAL, 1 + kit_below(4)},
                               {1, TARN_SERIAL, 1 + kit_below(4)},
                               {2, TARN_SERIAL, 8},
                               {5, TARN_SERIAL, 1},
                               {3, TARN_UNROLL, 1},
                               {4, TARN_UNROLL, 1},
                               {0, TARN_UNROLL, 1},
                               {1, TARN_UNROLL, 1},
                               {2, TARN_VECTOR, 1}};
  const tarn_level level[] = {{0, TARN_SERIAL, 1 + kit_below(4)},
                              {1, TARN_SERIAL, 1 + kit_below(4)},
                              {2, TARN_SERIAL, 8},
                              {3, TARN_UNROLL, 1},
                              {0, TARN_UNROLL, 1},
                              {1, TARN_UNROLL, 1},
                              {4, TARN_UNROLL, 1},
                              {5, TARN_UNROLL, 1},
                              {2, TARN_VECTOR, 1}};
  ss->nlevel = sizeof level / sizeof *level, ss->acc = 3;
  memcpy(ss->level, taps ? within : level, sizeof level);
}
/* The rows become a shared loop, single ones or blocks, and a second stage weighs the channels of
 * what the window gives. */
static void share_rows(nest_maker *q, const space *s) {
  kit_case *c = q->c;
  int64_t wide = 1 + kit_below(40);
  space p = {.n = 4, .nacc = 3, .dim = {s->dim[0], s->dim[1], wide, s->dim[2]}};
  tarn_stage *first = &q->stage[0], *st = &q->stage[1];
  first->out = false, first->nown = 2, memcpy(first->own, s->dim + 1, 2 * sizeof *s->dim);
  tarn_imap m = {.ns = 4, .n = 4, .nin = 2, .fill = TARN_NONE, .in = {s->dim[1], s->dim[2]}};
  memcpy(m.dim, p.dim, p.n * sizeof *m.dim), m.e[0] = ix(&p, 1), m.e[1] = ix(&p, 3);
  tarn_read *read = TARN_ARRAY(cx, tarn_read, 2);
  read[0] = (tarn_read){.stage = true, .map = tarn_map_intern(L, &m)};
  read[1] = (tarn_read){.src = c->nin, .map = random_operand(c, &p, p.n, TARN_F32)};
  tarn_func f = {.nops = 2, .epi = TARN_NONE, .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32)};
  f.body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  *st = (tarn_stage){.nown = 2,
                     .nred = 1,
                     .read = read,
                     .out = true,

                     .fn = tarn_fn_intern(L, &f)};
  st->own[0] = s->dim[1], st->own[1] = wide, st->red[0] = s->dim[2];
  q->depth = 1, q->shared[0] = s->dim[0], q->nstage = 2, q->type[1] = TARN_F32;
  c->sched->nshared = 1,
  c->sched->shared[0] = (tarn_level){0, kit_below(2) ? TARN_PARALLEL : TARN_SERIAL, 1};
  const tarn_level window[] = {{1, TARN_SERIAL, 1 + kit_below(5)},
                               {2, TARN_SERIAL, 8},
                               {3, TARN_UNROLL, 1},
                               {1, TARN_UNROLL, 1},
                               {4, TARN_UNROLL, 1},
                               {5, TARN_UNROLL, 1},
                               {2, TARN_VECTOR, 1}};
  c->sched->nstage = 2, c->sched->stage[0].nlevel = sizeof window / sizeof *window,
  c->sched->stage[0].acc = 2;
  memcpy(c->sched->stage[0].level, window, sizeof window);
  random_stage_schedule(&p, 1, true, true, false, &c->sched->stage[1]);
}
/* A number for each channel is added to a sum: the sum may begin with it. */
static tarn_read channel_read(kit_case *c, const space *s) {
  tarn_imap m = {.ns = (uint8_t)s->nacc,
                 .n = (uint8_t)s->nacc,
                 .nin = 1,
                 .fill = TARN_NONE,
                 .in = {s->dim[2]}};
  memcpy(m.dim, s->dim, s->nacc * sizeof *m.dim), m.e[0] = ix(s, 2);
  c->in_type[c->nin] = TARN_F32, c->in[c->nin] = random_layout(1, m.in),
  c->value[c->nin] = kit_tensor(cx, TARN_F32, 1, m.in, 2);
  return (tarn_read){.src = c->nin++, .map = tarn_map_intern(L, &m)};
}
static uint32_t with_bias(void) {
  uint32_t a = tarn_fx_hole(L, kit_below(2)), b = tarn_fx_hole(L, 1 - tarn_fx_get(L, a)->hole);
  uint32_t sum = tarn_fx_op(L, TARN_FX_ADD, a, b, 0),
           low = tarn_fx_op(L, TARN_FX_MAX, sum, number(TARN_F32, -1), 0);
  if (kit_below(3) == 0)
    return tarn_fx_op(L, TARN_FX_MUL, low, tarn_fx_hole(L, kit_below(2)), 0); /* wanted twice */
  return kit_below(2) ? low : tarn_fx_op(L, TARN_FX_MUL, sum, low, 0);
}
enum { ANY_WINDOW, WHOLE_WINDOW, TAPS, SHARED }; /* beyond: rows of so many lanes */
static void window_case(kit_case *c, bool product, uint32_t form) {
  nest_maker q = {.c = c, .t = TARN_F32, .nstage = 1, .type = {TARN_F32}};
  memset(c, 0, sizeof *c);
  space s = {.n = 6, .nacc = 3};
  for (uint32_t d = 0; d < s.n; d++) s.dim[d] = 1 + kit_below(d < 2 ? 24 : d == 2 ? 20 : 4);
  tarn_read *read = TARN_ARRAY(cx, tarn_read, 3);
  read[0] =
      window_read(c, &s, product ? number(TARN_F32, 0) : tarn_fx_const(L, TARN_F32, -INFINITY));
  if (product) read[1] = (tarn_read){.src = c->nin, .map = random_operand(c, &s, s.n, TARN_F32)};
  tarn_func f = {.nops = product ? 2 : 1, .epi = TARN_NONE};
  f.body = product ? tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0)
                   : tarn_fx_hole(L, 0);
  f.red = tarn_reducer_of(L, product ? TARN_RED_SUM : TARN_RED_MAX, TARN_F32);
  if (product && kit_below(2)) read[2] = channel_read(c, &s), f.nepi = 1, f.epi = with_bias();
  tarn_stage *st = &q.stage[0];
  *st = (tarn_stage){.nown = 3,
                     .nred = 3,
                     .read = read,
                     .out = true,

                     .fn = tarn_fn_intern(L, &f)};
  memcpy(st->own, s.dim, 3 * sizeof *st->own), memcpy(st->red, s.dim + 3, 3 * sizeof *st->red);
  c->sched = TARN_NEW(cx, tarn_schedule);
  c->sched->nstage = 1, c->sched->stage = TARN_ARRAY(cx, tarn_stage_sched, 2);
  random_stage_schedule(&s, 0, true, true, false, &c->sched->stage[0]);
  if (form == WHOLE_WINDOW || form == TAPS) write_out(&c->sched->stage[0], form == TAPS);
  if (form == SHARED) share_rows(&q, &s);
  if (form > SHARED) write_rows(&c->sched->stage[0], form);
  tarn_stage_sched *first = &c->sched->stage[0];
  uint32_t acc = first->acc < first->nlevel ? first->acc : first->nlevel;
  uint32_t open = random_open(&s, first->level, first->nlevel, acc);
  first->open = form == SHARED || kit_below(2) ? 0 : open;
  first->brief = first->open;
  outputs(&q);
  tarn_nest n = {.depth = (uint8_t)q.depth,
                 .out_ns = (uint8_t)q.depth,
                 .nstage = q.nstage,
                 .nchild = c->nin,
                 .stage = q.stage};
  memcpy(n.shared, q.shared, sizeof q.shared);
  c->nest = tarn_nest_intern(L, &n);
}

typedef struct job {
  tarn_dtype t;
  bool exact;
  uint32_t n, seed, nstage;
} job;
static void random_job(tarn_ctx *c, void *arg) {
  (void)c;
  job *j = arg;
  kit_seed = j->seed;
  kit_case *k = TARN_ARRAY(cx, kit_case, j->n);
  for (uint32_t i = 0; i < j->n; i++) random_case(&k[i], j->t, j->exact, j->nstage);
  run_cases(k, j->n, !j->exact, 2);
}
static void window_job(tarn_ctx *c, void *arg) {
  (void)c;
  const int *seed = arg;
  kit_seed = 2000u + (unsigned)*seed;
  enum { CASES = 50 };
  kit_case *k = TARN_ARRAY(cx, kit_case, CASES);
  for (uint32_t i = 0; i < CASES; i++) {
    const uint32_t form[] = {ANY_WINDOW, WHOLE_WINDOW, 4u << i % 3, i % 8 == 3 ? TAPS : ANY_WINDOW,
                             SHARED};
    window_case(&k[i], i % 3 > 0 || form[i % 5] == SHARED, form[i % 5]);
  }
  run_cases(k, CASES, *seed % 2 == 0, 2);
}

START_TEST(random_f32) { must(random_job, &(job){TARN_F32, false, 60, 100u + (unsigned)_i, 1}); }
END_TEST
START_TEST(random_f32_exact) {
  must(random_job, &(job){TARN_F32, true, 60, 500u + (unsigned)_i, 1});
}
END_TEST
START_TEST(random_types) {
  tarn_dtype t = (tarn_dtype)_i;
  must(random_job, &(job){t, !tarn_dtype_is_float(t) || t == TARN_F64, 25, 900u + (unsigned)_i, 1});
}
END_TEST

START_TEST(random_stages) {
  must(random_job, &(job){TARN_F32, _i % 2 == 0, 30, 1300u + (unsigned)_i, 2u + (unsigned)_i % 2});
}
END_TEST
START_TEST(random_stages_types) {
  must(random_job, &(job){TARN_I32, true, 30, 1400u + (unsigned)_i, 2u + (unsigned)_i % 2});
}
END_TEST

START_TEST(windows) { must(window_job, &_i); }
END_TEST

int main(void) {
  TCase *t = tcase_create("random");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, random_f32, 0, 4);
  tcase_add_loop_test(t, random_f32_exact, 0, 2);
  tcase_add_loop_test(t, windows, 0, 3);
  tcase_add_loop_test(t, random_types, 0, TARN_DTYPES);
  tcase_add_loop_test(t, random_stages, 0, 4);
  tcase_add_loop_test(t, random_stages_types, 0, 2);
  return run_checks("lower", t);
}
