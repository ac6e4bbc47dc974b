/* The reference interpreter: one nest.  See eval.h for how runs of results are computed. */
#include "access/eval.h"
#include "access/fx_internal.h"
#include <math.h>
#include <string.h>

/* Local buffers of the points of the shared loops that are computed together. */
#define LOCAL_BYTES ((int64_t)32 << 20)

/* ---------------------------------------------------------------- scalar code over runs
 * The operators that models spend their time in have a loop of their own, which must do what
 * tarn_fx_step does; the others go through it one value at a time. */
static double rounded_f32(double x) { return x == x ? (double)(float)x : tarn_canonical_nan(); }
static double as_f64(double x) { return x == x ? x : tarn_canonical_nan(); }
static double greater(double a, double b) {
  return a != a || b != b ? NAN : a > b || (a == b && !signbit(a)) ? a : b;
}
static double lesser(double a, double b) {
  return a != a || b != b ? NAN : a < b || (a == b && signbit(a)) ? a : b;
}

#define LANES(name, round, value)                                                                  \
  static void name##_##round(tarn_value *o, const tarn_value *a, const tarn_value *b,              \
                             uint32_t n) {                                                         \
    (void)b;                                                                                       \
    for (uint32_t i = 0; i < n; i++) {                                                             \
      double x = a[i].d, y = b[i].d;                                                               \
      (void)y;                                                                                     \
      o[i].d = round(value);                                                                       \
    }                                                                                              \
  }
#define BOTH(name, value)                                                                          \
  LANES(name, rounded_f32, value)                                                                  \
  LANES(name, as_f64, value)
BOTH(add, x + y)
BOTH(sub, x - y)
BOTH(mul, x *y)
BOTH(div, x / y)
BOTH(neg, -x)
BOTH(abs, fabs(x))
BOTH(sqrt, sqrt(x))
BOTH(max, greater(x, y))
BOTH(min, lesser(x, y))

static tarn_lane_fn *const lane_rule[TARN_FX_COUNT][2] = {
    [TARN_FX_ADD] = {add_rounded_f32, add_as_f64},    [TARN_FX_SUB] = {sub_rounded_f32, sub_as_f64},
    [TARN_FX_MUL] = {mul_rounded_f32, mul_as_f64},    [TARN_FX_DIV] = {div_rounded_f32, div_as_f64},
    [TARN_FX_NEG] = {neg_rounded_f32, neg_as_f64},    [TARN_FX_ABS] = {abs_rounded_f32, abs_as_f64},
    [TARN_FX_SQRT] = {sqrt_rounded_f32, sqrt_as_f64}, [TARN_FX_MAX] = {max_rounded_f32, max_as_f64},
    [TARN_FX_MIN] = {min_rounded_f32, min_as_f64},
};

static tarn_lane_fn *rule_of(const tarn_fxstep *s, tarn_mode mode) {
  if (!tarn_dtype_is_float((tarn_dtype)s->dtype)) return NULL;
  if (mode == TARN_WIDE || s->dtype == TARN_F64) return lane_rule[s->op][1];
  return s->dtype == TARN_F32 ? lane_rule[s->op][0] : NULL;
}

static void code_init(tarn_ev *e, tarn_evcode *c, const uint32_t *root, uint32_t nroot,
                      const tarn_dtype *types, uint32_t nhole) {
  c->code = tarn_fx_compile(e->L, root, nroot, types, nhole);
  c->nhole = nhole;
  c->hole = TARN_ARRAY(e->cx, const tarn_value *, nhole);
  c->slot = TARN_ARRAY(e->cx, const tarn_value *, c->code->n);
  c->own = tarn_ev_alloc(e, (c->code->n + 1) * TARN_EV_LANES * sizeof(tarn_value));
  for (uint32_t i = 0; i < c->code->n; i++) {
    tarn_value *mine = c->own + (size_t)i * TARN_EV_LANES;
    c->slot[i] = mine;
    for (uint32_t v = 0; c->code->step[i].op == TARN_FX_CONST && v < TARN_EV_LANES; v++)
      mine[v] = c->code->step[i].value;
  }
}

static void step_one(const tarn_fxstep *s, const tarn_value *const *kid, tarn_mode mode, uint32_t n,
                     tarn_value *out) {
  for (uint32_t v = 0; v < n; v++) {
    const tarn_value in[3] = {kid[0][v], kid[1][v], kid[2][v]};
    out[v] = tarn_fx_step(s->op, (tarn_dtype)s->dtype, (tarn_dtype)s->out, in, mode);
  }
}

static void code_run(tarn_ev *e, const tarn_evcode *c, uint32_t n) {
  for (uint32_t i = 0; i < c->code->n; i++) {
    const tarn_fxstep *s = &c->code->step[i];
    tarn_value *mine = c->own + (size_t)i * TARN_EV_LANES;
    if (s->op == TARN_FX_HOLE) c->slot[i] = c->hole[s->hole];
    if (s->op == TARN_FX_HOLE || s->op == TARN_FX_CONST) continue;
    const tarn_value *kid[3] = {c->slot[s->kid[0]], c->slot[s->kid[1]], c->slot[s->kid[2]]};
    tarn_lane_fn *fast = rule_of(s, e->mode);
    if (e->noisy && tarn_ev_noise(e, s, fast, kid, c->products, n, mine)) continue;
    if (fast) fast(mine, kid[0], kid[1], n);
    else step_one(s, kid, e->mode, n, mine);
  }
}

static const tarn_value *code_root(const tarn_evcode *c, uint32_t i) {
  return c->slot[c->code->root[i]];
}

/* ---------------------------------------------------------------- preparing a stage */
static uint32_t shifted(tarn_lang *L, uint32_t f, uint32_t by) {
  uint32_t with[UINT8_MAX + 1], n = tarn_fx_holes(L, f);
  for (uint32_t i = 0; i < n; i++) with[i] = tarn_fx_hole(L, i + by);
  return tarn_fx_subst(L, f, with, n);
}

/* The reducer's steps over (state, operands of the body, index). */
static void compile_step(tarn_ev *e, tarn_evstage *s, const tarn_func *f, const tarn_reducer *r,
                         const tarn_dtype *types) {
  tarn_lang *L = e->L;
  tarn_dtype holes[TARN_MAX_STATE + UINT8_MAX + 2], result;
  uint32_t root[TARN_MAX_STATE], with[TARN_MAX_STATE + 2];
  if (!tarn_reducer_type(L, f->red, holes, &result)) tarn_reraise(e->cx, TARN_BAD_INPUT);
  for (uint32_t i = 0; i < r->ns; i++) with[i] = tarn_fx_hole(L, i);
  with[r->ns] = shifted(L, f->body, r->ns);
  with[r->ns + 1] = tarn_fx_hole(L, r->ns + f->nops);
  for (uint32_t i = 0; i < r->ns; i++) root[i] = tarn_fx_subst(L, r->step[i], with, r->ns + 2u);
  memcpy(holes + r->ns, types, f->nops * sizeof *types);
  holes[r->ns + f->nops] = TARN_I64;
  code_init(e, &s->step, root, r->ns, holes, r->ns + f->nops + 1u);
  for (uint32_t i = 0; i < f->nops; i++)
    s->step.hole[r->ns + i] = s->loaded + (size_t)i * TARN_EV_LANES;
  s->step.hole[r->ns + f->nops] = s->index;
  if (tarn_fn_is_dot(L, s->s->fn)) s->step.products = e->noise.products;
}

/* The epilogue of the result over (state, epilogue operands). */
static void compile_last(tarn_ev *e, tarn_evstage *s, const tarn_func *f, const tarn_reducer *r,
                         const tarn_dtype *types) {
  tarn_lang *L = e->L;
  tarn_dtype holes[TARN_MAX_STATE + UINT8_MAX + 1], result;
  uint32_t with[UINT8_MAX + 1], root = r->result;
  if (!tarn_reducer_type(L, f->red, holes, &result)) tarn_reraise(e->cx, TARN_BAD_INPUT);
  with[0] = r->result;
  for (uint32_t i = 0; i < f->nepi; i++) with[i + 1] = tarn_fx_hole(L, r->ns + i);
  if (f->epi != TARN_NONE) root = tarn_fx_subst(L, f->epi, with, f->nepi + 1u);
  memcpy(holes + r->ns, types + f->nops, f->nepi * sizeof *types);
  code_init(e, &s->last, &root, 1, holes, r->ns + (uint32_t)f->nepi);
  for (uint32_t i = 0; i < f->nepi; i++)
    s->last.hole[r->ns + i] = s->loaded + (size_t)(f->nops + i) * TARN_EV_LANES;
}

static void compile_map(tarn_ev *e, tarn_evstage *s, const tarn_func *f, const tarn_dtype *types) {
  code_init(e, &s->last, &f->body, 1, types, f->nops);
  for (uint32_t i = 0; i < f->nops; i++) s->last.hole[i] = s->loaded + (size_t)i * TARN_EV_LANES;
}

/* A sum of products that can be taken in plain f32 or f64 arithmetic with the same roundings, or
 * in integers of 32 bits. */
static bool dot_kind(tarn_ev *e, const tarn_stage *s, const tarn_dtype *types, tarn_dtype *t) {
  if (!tarn_fn_is_dot(e->L, s->fn) || s->nlook) return false;
  tarn_dtype sum = tarn_reducer_get(e->L, tarn_fn_get(e->L, s->fn)->red)->dtype;
  *t = sum;
  if (sum == TARN_I32 && types[0] == sum && types[1] == sum) return true;
  if (!tarn_dtype_is_float(types[0]) || !tarn_dtype_is_float(types[1])) return false;
  *t = e->mode == TARN_WIDE ? TARN_F64 : sum;
  if (!tarn_dtype_is_float(sum) || (e->mode == TARN_STRICT && (types[0] != sum || types[1] != sum)))
    return false;
  return *t == TARN_F32 || *t == TARN_F64;
}

static int64_t product(uint32_t n, const int64_t *dim) {
  int64_t c = 1;
  for (uint32_t i = 0; i < n; i++) c *= dim[i];
  return c;
}

static void stage_init(tarn_evstage *s, const tarn_nest *n, const tarn_stage *st) {
  *s = (tarn_evstage){.s = st};
  s->loops.nlane = n->depth + (uint32_t)st->nown;
  s->loops.nall = s->loops.nlane + st->nred;
  memcpy(s->loops.ext, n->shared, n->depth * sizeof(int64_t));
  memcpy(s->loops.ext + n->depth, st->own, st->nown * sizeof(int64_t));
  memcpy(s->loops.ext + s->loops.nlane, st->red, st->nred * sizeof(int64_t));
  s->outer = s->loops;
  s->outer.nall = s->outer.nlane;
  s->nown = product(st->nown, st->own);
  s->nred = product(st->nred, st->red);
}

/* Code and scratch; types: of the reads. */
static void stage_compile(tarn_ev *e, tarn_evstage *s, const tarn_dtype *types) {
  const tarn_func *f = tarn_fn_get(e->L, s->s->fn);
  s->nops = f->nops;
  s->nread = (uint32_t)f->nops + f->nepi;
  s->nlook = s->s->nlook;
  s->loaded = tarn_ev_alloc(e, s->nread * TARN_EV_LANES * sizeof(tarn_value));
  if (f->red == TARN_NONE) {
    compile_map(e, s, f, types);
    return;
  }
  const tarn_reducer *r = tarn_reducer_get(e->L, f->red);
  s->nstate = r->ns;
  s->index = tarn_ev_alloc(e, TARN_EV_LANES * sizeof(tarn_value));
  for (int i = 0; i < 2; i++)
    s->state[i] = tarn_ev_alloc(e, r->ns * TARN_EV_LANES * sizeof(tarn_value));
  for (uint32_t i = 0; i < r->ns; i++) s->init[i] = tarn_fx_value(e->L, r->init[i]);
  compile_step(e, s, f, r, types);
  compile_last(e, s, f, r, types);
  s->dot = dot_kind(e, s->s, types, &s->dot_type);
}

static void stage_free(tarn_ev *e, tarn_evstage *s) {
  void *const mine[] = {s->loaded, s->index, s->state[0], s->state[1], s->step.own, s->last.own};
  for (uint32_t i = 0; i < s->nread + s->nlook; i++) tarn_evread_free(e, &s->read[i]);
  for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) tarn_ev_free(e, mine[i]);
}

/* ---------------------------------------------------------------- running a stage */
static tarn_value *loaded(const tarn_evstage *s, uint32_t i) {
  return s->loaded + (size_t)i * TARN_EV_LANES;
}

static void run_lookups(tarn_evstage *s, int64_t start, uint32_t n) {
  for (uint32_t i = s->nread; i < s->nread + s->nlook; i++) tarn_evread_run(&s->read[i], start, n);
}
static void reduce_lookups(tarn_evstage *s, int64_t start, uint32_t n) {
  for (uint32_t i = s->nread; i < s->nread + s->nlook; i++)
    tarn_evread_reduce(&s->read[i], start, n);
}

void tarn_ev_finish(tarn_ev *e, tarn_evstage *s, int64_t start, uint32_t n) {
  run_lookups(s, start, n);
  reduce_lookups(s, 0, 1);
  for (uint32_t i = 0; i < s->nstate; i++)
    s->last.hole[i] = s->state[0] + (size_t)i * TARN_EV_LANES;
  for (uint32_t i = s->nstate ? s->nops : 0; i < s->nread; i++) {
    tarn_evread_run(&s->read[i], start, n);
    tarn_evread_reduce(&s->read[i], 0, 1);
    tarn_evread_load(&s->read[i], 0, n, loaded(s, i));
  }
  code_run(e, &s->last, n);
  tarn_ev_put(s->out, s->store, start - s->origin, n, code_root(&s->last, 0));
}

static void reduce_step(tarn_ev *e, tarn_evstage *s, int64_t number, uint32_t step, uint32_t n) {
  for (uint32_t i = 0; i < s->nops; i++) tarn_evread_load(&s->read[i], step, n, loaded(s, i));
  for (uint32_t v = 0; v < n; v++) s->index[v].i = number;
  for (uint32_t i = 0; i < s->nstate; i++)
    s->step.hole[i] = s->state[0] + (size_t)i * TARN_EV_LANES;
  code_run(e, &s->step, n);
  for (uint32_t i = 0; i < s->nstate; i++)
    memcpy(s->state[1] + (size_t)i * TARN_EV_LANES, code_root(&s->step, i), n * sizeof(tarn_value));
  tarn_value *t = s->state[0];
  s->state[0] = s->state[1];
  s->state[1] = t;
}

static void reduce_run(tarn_ev *e, tarn_evstage *s, int64_t start, uint32_t n) {
  for (uint32_t i = 0; i < s->nstate; i++)
    for (uint32_t v = 0; v < n; v++) s->state[0][(size_t)i * TARN_EV_LANES + v] = s->init[i];
  for (uint32_t i = 0; i < s->nops; i++) tarn_evread_run(&s->read[i], start, n);
  run_lookups(s, start, n);
  for (int64_t r = 0; r < s->nred; r += TARN_EV_RED) {
    uint32_t count = s->nred - r < TARN_EV_RED ? (uint32_t)(s->nred - r) : TARN_EV_RED;
    for (uint32_t i = 0; i < s->nops; i++) tarn_evread_reduce(&s->read[i], r, count);
    reduce_lookups(s, r, count);
    for (uint32_t k = 0; k < count; k++) reduce_step(e, s, r + k, k, n);
  }
}

/* Results first … end-1. */
static void stage_run(tarn_ev *e, tarn_evstage *s, int64_t first, int64_t end, uint32_t dmin) {
  if (s->dot && tarn_ev_dot(e, s, first, end, dmin)) return;
  for (int64_t at = first; at < end; at += TARN_EV_LANES) {
    uint32_t n = end - at < TARN_EV_LANES ? (uint32_t)(end - at) : TARN_EV_LANES;
    if (s->nstate) reduce_run(e, s, at, n);
    tarn_ev_finish(e, s, at, n);
  }
}

/* ---------------------------------------------------------------- nests */
typedef struct nest_run {
  tarn_ev *e;
  const tarn_nest *n;
  tarn_evstage *stage;
  tarn_dtype *type; /* of the stages */
  int64_t points, block;
} nest_run;

/* A read of a stage: its number of the shared point, times its size, plus its own index. */
static uint32_t stage_map(nest_run *x, const tarn_read *r) {
  tarn_lang *L = x->e->L;
  const tarn_imap *m = tarn_imap_get(L, r->map);
  const tarn_stage *from = &x->n->stage[r->src];
  tarn_imap w = *m;
  w.nin = 0;
  for (uint32_t i = 0; i < x->n->depth; i++) {
    w.in[w.nin] = x->n->shared[i];
    w.e[w.nin++] = tarn_ix_var(L, i, m->dim);
  }
  for (uint32_t i = 0; i < from->nown; i++) {
    w.in[w.nin] = from->own[i];
    w.e[w.nin++] = m->e[i];
  }
  return tarn_map_intern(L, &w);
}

static void stage_reads(nest_run *x, uint32_t at, const tarn_evarg *arg) {
  tarn_evstage *s = &x->stage[at];
  const tarn_func *f = tarn_fn_get(x->e->L, s->s->fn);
  uint32_t n = tarn_stage_reads(x->e->L, s->s), look = (uint32_t)f->nops + f->nepi;
  tarn_dtype types[2 * (UINT8_MAX + 1)];
  for (uint32_t k = 0; k < n; k++) {
    const tarn_read *r = &s->s->read[k];
    types[k] = r->stage ? x->type[r->src] : arg[r->src].type;
  }
  stage_compile(x->e, s, types);
  s->read = TARN_ARRAY(x->e->cx, tarn_evread, n);
  for (uint32_t k = 0; k < n; k++) {
    const tarn_read *r = &s->s->read[k];
    const tarn_evloops *over = k < s->nops || k >= look ? &s->loops : &s->outer;
    if (r->stage) {
      tarn_evstage *from = &x->stage[r->src];
      tarn_evread_init(x->e, &s->read[k], over, stage_map(x, r), from->out, from->store);
      continue;
    }
    const tarn_evarg *a = &arg[r->src];
    uint32_t map = a->map == TARN_NONE ? r->map : tarn_map_compose(x->e->L, r->map, a->map);
    if (map == TARN_NONE)
      tarn_raise(x->e->cx, TARN_INTERNAL, "eval: a view with two fills reached a kernel");
    tarn_evread_init(x->e, &s->read[k], over, map, a->data, a->store);
    s->read[k].row = r->row;
    s->read[k].by = r->row.by ? &s->read[look + r->row.by - 1] : NULL;
  }
}

/* Buffers of the local stages hold a block of shared points. */
static void choose_block(nest_run *x) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < x->n->nstage; i++)
    if (!x->n->stage[i].out)
      bytes += x->stage[i].nown * (int64_t)tarn_dtype_size(x->stage[i].store);
  x->block = x->points;
  if (bytes > 0 && x->points > LOCAL_BYTES / bytes)
    x->block = LOCAL_BYTES / bytes > 0 ? LOCAL_BYTES / bytes : 1;
}

static void run_block(nest_run *x, int64_t p0, int64_t p1) {
  for (uint32_t i = 0; i < x->n->nstage; i++) {
    tarn_evstage *s = &x->stage[i];
    if (!s->s->out) s->origin = p0 * s->nown;
    for (uint32_t k = 0; k < s->nread; k++) {
      const tarn_read *r = &s->s->read[k];
      if (r->stage) s->read[k].origin = x->stage[r->src].origin;
    }
    stage_run(x->e, s, p0 * s->nown, p1 * s->nown, x->block == x->points ? 0 : x->n->depth);
  }
}

static void nest_types(nest_run *x, const tarn_evarg *arg) {
  tarn_dtype holes[2 * (UINT8_MAX + 1)];
  for (uint32_t i = 0; i < x->n->nstage; i++) {
    const tarn_stage *s = &x->n->stage[i];
    const tarn_func *f = tarn_fn_get(x->e->L, s->fn);
    uint32_t n = (uint32_t)f->nops + f->nepi;
    for (uint32_t k = 0; k < n; k++)
      holes[k] = s->read[k].stage ? x->type[s->read[k].src] : arg[s->read[k].src].type;
    if (!tarn_fn_type(x->e->L, s->fn, holes, n, &x->type[i]))
      tarn_reraise(x->e->cx, TARN_BAD_INPUT);
  }
}

void tarn_ev_nest(tarn_ev *e, uint32_t nest, const tarn_evarg *arg, void *const *out) {
  nest_run x = {.e = e, .n = tarn_nest_get(e->L, nest)};
  uint32_t nout = 0;
  x.stage = TARN_ARRAY(e->cx, tarn_evstage, x.n->nstage);
  x.type = TARN_ARRAY(e->cx, tarn_dtype, x.n->nstage);
  x.points = product(x.n->depth, x.n->shared);
  nest_types(&x, arg);
  for (uint32_t i = 0; i < x.n->nstage; i++) {
    stage_init(&x.stage[i], x.n, &x.n->stage[i]);
    x.stage[i].store = tarn_ev_store(e, x.type[i]);
  }
  choose_block(&x);
  for (uint32_t i = 0; i < x.n->nstage; i++) {
    tarn_evstage *s = &x.stage[i];
    size_t bytes = (size_t)(x.block * s->nown) * tarn_dtype_size(s->store);
    s->out = s->s->out ? out[nout++] : tarn_ev_alloc(e, bytes);
    stage_reads(&x, i, arg);
  }
  for (int64_t p = 0; p < x.points; p += x.block)
    run_block(&x, p, p + x.block < x.points ? p + x.block : x.points);
  for (uint32_t i = 0; i < x.n->nstage; i++) {
    stage_free(e, &x.stage[i]);
    if (!x.stage[i].s->out) tarn_ev_free(e, x.stage[i].out);
  }
}
