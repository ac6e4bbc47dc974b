/* Operators × scalar types × processors: small random programs of every operator that computes,
 * reduces or views (access/ops.def), for every type of elements, compiled with exact numerics and
 * compared with the interpreter bit for bit. Payloads are drawn by their kind and kept when the
 * operator takes them, so that a new row is tried without a word here: one for which no program is
 * found fails the test.
 *
 *   test_types_ops [--all]      --all: further processors, sizes and seeds; integers with
 * reassociation too */
#include "access/fx_internal.h"
#include "tests/types_kit.h"

#define POOL     64
#define TRIES    100000
#define ELEMENTS 4000
#define DIMS     6

typedef struct job {
  tarn_lang *L;
  ty_program *q;
  tarn_dtype t; /* of the elements */
  bool large;   /* rows longer than a register */
  bool deep;    /* results are operands of further operators */
  const ty_target *target;
  tarn_rule_class numerics;
  uint32_t threads, each; /* programs an operator */
  uint64_t seed;
  ty_report *report;
  tarn_term pool[POOL];
  uint32_t npool, nindex;
} job;

/* Leaves have tests of their own, opaque operators run the same code in both ways, a call needs a
 * description. */
static bool tried(uint32_t op) {
  return op != TARN_OP_INPUT && op != TARN_OP_CONST && op != TARN_OP_OPAQUE && op != TARN_OP_CALL;
}

static uint32_t draw(job *j, uint32_t n) { return below(&j->seed, n); }
static const tarn_type *type_of(const job *j, tarn_term t) { return tarn_term_type(j->L, t); }

/* ---------------------------------------------------------------- operands */

static void into_pool(job *j, tarn_term t) {
  if (j->npool < POOL) j->pool[j->npool++] = t;
}
static void tensors(job *j) {
  int64_t c = j->large ? 36 : 4, d = j->large ? 21 : 5;
  const struct {
    uint32_t ns, n;
    int64_t dim[4];
  } shape[] = {{2, 3, {2, 3, c}}, {1, 2, {2, c}},       {0, 2, {c, d}},   {2, 2, {2, d}},
               {1, 2, {3, c}},    {2, 3, {2, 1, c}},    {1, 1, {c}},      {0, 1, {d}},
               {1, 2, {300, 2}},  {2, 4, {2, 3, 2, c}}, {1, 3, {2, 5, c}}};
  for (uint32_t i = 0; i < TY_COUNT(shape); i++)
    for (uint32_t k = 0; k < (i < 3 ? 2 : 1); k++) {
      uint32_t type = tarn_type_tensor(j->L, j->t, shape[i].ns, shape[i].n, shape[i].dim);
      into_pool(j, ty_input(j->q, tarn_format(tarn_lang_ctx(j->L), "x%u_%u", i, k), type));
    }
  tarn_tensor *v = tarn_tensor_new(tarn_lang_ctx(j->L), j->t, 2, (int64_t[]){2, c});
  for (int64_t i = 0; i < tarn_tensor_count(v); i++) ty_put(v, i, &j->seed);
  into_pool(j, tarn_constant(j->L, "k", v, 1));
}
/* An index for one gather alone: what it may hold follows from that one's axis. */
static tarn_term index_of(job *j) {
  tarn_dtype t;
  do t = (tarn_dtype)draw(j, TARN_DTYPES);
  while (tarn_dtype_is_float(t) || t == TARN_BOOL);
  int64_t dim[2] = {1 + draw(j, 3), 1 + draw(j, 4)};
  uint32_t n = draw(j, 3);
  return ty_input(j->q, tarn_format(tarn_lang_ctx(j->L), "i%u", j->nindex++),
                  tarn_type_tensor(j->L, t, draw(j, n + 1), n, dim));
}

/* ---------------------------------------------------------------- functions */

/* An expression of one or two operators over n operands of the type. */
static uint32_t some_body(job *j, uint32_t n, tarn_dtype *out) {
  tarn_dtype in[3] = {j->t, j->t, j->t};
  for (uint32_t tries = 0; tries < 400; tries++) {
    uint32_t op = draw(j, TARN_FX_COUNT), kid[3], arity = tarn_fx_info(op)->arity;
    if (op <= TARN_FX_CAST) continue;
    for (uint32_t k = 0; k < 3; k++)
      kid[k] = draw(j, 8) ? tarn_fx_hole(j->L, draw(j, n)) : ty_constant(j->L, j->t, &j->seed);
    if (op == TARN_FX_SEL) kid[0] = tarn_fx_op(j->L, TARN_FX_LT, kid[1], kid[2], 0);
    uint32_t f = tarn_fx_op(j->L, (tarn_fxop)op, kid[0], kid[1], kid[2]);
    if (arity && tarn_fx_holes(j->L, f) && tarn_fx_type(j->L, f, in, n, out)) return f;
  }
  *out = j->t;
  return tarn_fx_hole(j->L, 0);
}
/* The place of the greatest element: two values of state. */
static uint32_t argmax(job *j) {
  uint32_t h[4];
  for (uint32_t i = 0; i < 4; i++) h[i] = tarn_fx_hole(j->L, i);
  uint32_t more = tarn_fx_op(j->L, TARN_FX_LT, h[0], h[2], 0);
  tarn_reducer r = {.kind = TARN_RED_CUSTOM,
                    .dtype = j->t,
                    .ns = 2,
                    .merge = {TARN_NONE, TARN_NONE},
                    .result = h[1]};
  r.init[0] = tarn_reducer_get(j->L, tarn_reducer_of(j->L, TARN_RED_MAX, j->t))->init[0];
  r.init[1] = tarn_fx_iconst(j->L, TARN_I64, -1);
  r.step[0] = tarn_fx_op(j->L, TARN_FX_SEL, more, h[2], h[0]),
  r.step[1] = tarn_fx_op(j->L, TARN_FX_SEL, more, h[3], h[1]);
  return tarn_reducer_intern(j->L, &r);
}
/* Legal ones alone: a sum of bools is none. */
static uint32_t some_reducer(job *j, tarn_dtype t) {
  if (t == j->t && !draw(j, 6)) return argmax(j);
  if (t == TARN_BOOL) return tarn_reducer_of(j->L, draw(j, 2) ? TARN_RED_MAX : TARN_RED_MIN, t);
  return tarn_reducer_of(j->L, (tarn_red_kind)(TARN_RED_SUM + draw(j, 4)), t);
}
/* A sum of products in a type that holds more, as dot-product instructions take them. */
static uint32_t wide_dot(job *j) {
  static const tarn_dtype wide[] = {TARN_F32, TARN_F64, TARN_I32, TARN_I64, TARN_U32, TARN_U64};
  tarn_dtype t = draw(j, 2) ? TARN_I32 : wide[draw(j, 6)];
  uint32_t a = tarn_fx_cast(j->L, t, tarn_fx_hole(j->L, 0)),
           b = tarn_fx_cast(j->L, t, tarn_fx_hole(j->L, 1));
  if (t == j->t) a = tarn_fx_hole(j->L, 0), b = tarn_fx_hole(j->L, 1);
  return tarn_fn_reduce(j->L, tarn_fx_op(j->L, TARN_FX_MUL, a, b, 0), 2,
                        tarn_reducer_of(j->L, TARN_RED_SUM, t));
}
static uint32_t some_fn(job *j) {
  tarn_dtype out;
  uint32_t n = 1 + draw(j, 2), how = draw(j, 6), body = some_body(j, n, &out);
  if (how == 0) return tarn_fn_map(j->L, body, n);
  if (how == 1) return wide_dot(j);
  if (how == 2) return j->t == TARN_BOOL ? tarn_fn_map(j->L, body, n) : tarn_fn_dot(j->L, j->t);
  tarn_func f = {.nops = (uint8_t)n, .body = body, .red = some_reducer(j, out), .epi = TARN_NONE};
  if (how == 3) f.body = tarn_fx_hole(j->L, 0), f.nops = 1, f.red = some_reducer(j, j->t);
  if (how == 4) f.epi = some_body(j, 2, &out), f.nepi = 1;
  if (how == 5) f.ntuple = 2, f.nops = 1;
  return tarn_fn_intern(j->L, &f);
}

/* ---------------------------------------------------------------- payloads */

/* Axes and the like, or extents of an operand that follow one another. */
static uint32_t some_ints(job *j, uint32_t op, const tarn_term *kid, uint32_t nkid) {
  const tarn_type *t = type_of(j, kid[0]), *of = type_of(j, kid[draw(j, nkid)]);
  const tarn_opinfo *f = tarn_op_info(op);
  uint32_t nc = (uint32_t)(t->n - t->ns), n = f->kept_ints  ? f->kept_ints
                                              : f->max_ints ? f->min_ints
                                              : draw(j, 2)  ? 3 * nc
                                                            : t->n;
  uint32_t extents = of->n ? draw(j, 3) : 0, first = draw(j, 2);
  int64_t v[3 * TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) {
    bool extent = extents == 2 || (extents == 1 && draw(j, 2));
    v[i] = extent ? of->dim[(first + i) % of->n] : (int64_t)draw(j, 6) - 1;
  }
  return tarn_payload_ints(j->L, n, v);
}
/* The elements grouped anew, or dims of 1 stretched. */
static uint32_t some_factors(job *j, uint32_t n, const int64_t *from, int64_t *to) {
  int64_t c = 1;
  for (uint32_t i = 0; i < n; i++) c *= from[i];
  uint32_t k = 0;
  while (k < 2 && c > 1) {
    int64_t f = 1 + (int64_t)draw(j, (uint32_t)c);
    while (c % f) f--;
    to[k++] = f, c /= f;
  }
  if (c > 1 || n > k) to[k++] = c;
  return k;
}
static uint32_t some_shape(job *j, const tarn_type *t) {
  int64_t dim[2 * TARN_MAX_DIMS];
  uint32_t ns = t->ns, n = t->n;
  for (uint32_t i = 0; i < n; i++) dim[i] = t->dim[i] == 1 ? 1 + draw(j, 5) : t->dim[i];
  if (draw(j, 2)) {
    ns = some_factors(j, t->ns, t->dim, dim);
    n = ns + some_factors(j, (uint32_t)(t->n - t->ns), t->dim + t->ns, dim + ns);
  }
  return tarn_payload_of(j->L, TARN_P_SHAPE, tarn_type_tensor(j->L, TARN_F32, ns, n, dim));
}

static uint32_t some_payload(job *j, uint32_t op, const tarn_term *kid, uint32_t n);
static bool types_fit(job *j, uint32_t op, uint32_t payload, const tarn_term *kid, uint32_t n,
                      uint32_t *type) {
  uint32_t types[4];
  for (uint32_t i = 0; i < n; i++) types[i] = tarn_term_get(j->L, kid[i])->type;
  *type = tarn_type_of(j->L, op, payload, types, n);
  return *type != TARN_NONE;
}
/* What another operator does, as a map or as a nest. */
static uint32_t as_map(job *j, const tarn_term *kid) {
  uint32_t op = TARN_OP_ACCESS + draw(j, TARN_OP_VIEW - TARN_OP_ACCESS),
           p = some_payload(j, op, kid, 1), type;
  if (!types_fit(j, op, p, kid, 1, &type)) return 0;
  return tarn_payload_of(j->L, TARN_P_MAP,
                         tarn_map_of(j->L, op, p, tarn_term_get(j->L, kid[0])->type));
}
static uint32_t as_nest(job *j, const tarn_term *kid, uint32_t n) {
  uint32_t p = tarn_payload_of(j->L, TARN_P_FN, some_fn(j)), type, types[4];
  if (!types_fit(j, TARN_OP_COMPUTE, p, kid, n, &type)) return 0;
  for (uint32_t i = 0; i < n; i++) types[i] = tarn_term_get(j->L, kid[i])->type;
  return tarn_payload_of(j->L, TARN_P_NEST, tarn_nest_of(j->L, TARN_OP_COMPUTE, p, types, n));
}
static uint32_t some_payload(job *j, uint32_t op, const tarn_term *kid, uint32_t n) {
  const tarn_type *t = type_of(j, kid[0]);
  tarn_payload p = {.kind = tarn_op_info(op)->payload};
  int64_t v[3] = {draw(j, 4), draw(j, 3), draw(j, 3)};
  switch (p.kind) {
  case TARN_P_INTS: return some_ints(j, op, kid, n);
  case TARN_P_SHAPE: return some_shape(j, t);
  case TARN_P_MAP: return as_map(j, kid);
  case TARN_P_FN: return tarn_payload_of(j->L, TARN_P_FN, some_fn(j));
  case TARN_P_NEST: return as_nest(j, kid, n);
  case TARN_P_PADV: p.n = 3, p.value = ty_constant(j->L, j->t, &j->seed); break;
  case TARN_P_FOLD: p.n = 1, p.value = some_reducer(j, j->t); break;
  case TARN_P_PLACE: p.name = "l1"; break;
  default: return 0;
  }
  p.ints = v;
  return tarn_payload_intern(j->L, &p);
}

/* ---------------------------------------------------------------- programs */

static bool small_enough(const job *j, uint32_t type) {
  const tarn_type *t = tarn_type_get(j->L, type);
  if (t->tuple) return true;
  int64_t n = tarn_type_count(t);
  return t->n <= DIMS && n > 0 && n <= ELEMENTS;
}
static uint32_t kids_of(job *j, uint32_t op, tarn_term *kid) {
  const tarn_opinfo *o = tarn_op_info(op);
  uint32_t least = (uint32_t)o->min_kids, most = o->max_kids < 0 ? 3 : (uint32_t)o->max_kids;
  uint32_t n = least + draw(j, most - least + 1);
  for (uint32_t i = 0; i < n; i++) kid[i] = j->pool[draw(j, j->npool)];
  if (n > 1 && !draw(j, 3)) kid[1] = kid[0];
  return n;
}
/* The last operand is looked for among all. */
static tarn_term matched(job *j, uint32_t op, uint32_t payload, tarn_term *kid, uint32_t n) {
  uint32_t type, first = draw(j, j->npool), among = n < 2 || op == TARN_OP_GATHER ? 1 : j->npool;
  for (uint32_t i = 0; i < among; i++) {
    if (among > 1) kid[n - 1] = j->pool[(first + i) % among];
    if (types_fit(j, op, payload, kid, n, &type) && small_enough(j, type))
      return tarn_mk(j->L, op, payload, kid, n);
  }
  return TARN_NONE;
}
/* A program of the operator, or TARN_NONE. */
static tarn_term some_term(job *j, uint32_t op) {
  for (uint32_t tries = 0; tries < (j->t == TARN_BOOL ? TRIES / 50 : TRIES); tries++) {
    tarn_term kid[4], t;
    uint32_t n = kids_of(j, op, kid), had = j->q->p.nin;
    if (op == TARN_OP_GATHER) kid[1] = index_of(j);
    uint32_t payload = some_payload(j, op, kid, n);
    if ((t = matched(j, op, payload, kid, n)) != TARN_NONE) return t;
    j->q->p.nin = had;
  }
  return TARN_NONE;
}
/* As it is, and with something computed of it. */
static void choose_prefetch(job *j, tarn_term t) {
  const tarn_type *ty = type_of(j, t);
  int64_t first = 0;
  for (; ty->tuple; ty = type_of(j, t))
    t = tarn_mk(j->L, TARN_OP_NTH, tarn_payload_ints(j->L, 1, &first), &t, 1);
  ty_output(j->q, t);
  tarn_dtype out;
  uint32_t body = some_body(j, 1, &out);
  if (ty->dtype == j->t && draw(j, 2))
    ty_output(j->q, tarn_compute(j->L, tarn_fn_map(j->L, body, 1), &t, 1));
}
/* Indices that the gather takes, from both ends of its axis. */
static void indices(tarn_tensor *x, uint32_t input, uint32_t run, void *user, uint64_t *seed) {
  const ty_program *q = user;
  (void)run;
  for (uint32_t t = 0; t < tarn_term_count(q->p.L); t++) {
    const tarn_node *n = tarn_term_get(q->p.L, t);
    if (n->op != TARN_OP_GATHER || n->kid[1] != q->in[input].term) continue;
    int64_t axis = tarn_payload_get(q->p.L, n->payload)->ints[0];
    int64_t extent = tarn_term_type(q->p.L, n->kid[0])->dim[axis], at;
    for (int64_t i = 0; i < tarn_tensor_count(x); i++) do {
        tarn_tensor_set(
            x, i,
            (tarn_value){.i = (int64_t)(tarn_random(seed) % (2 * (uint64_t)extent)) - extent});
      } while (!tarn_index_in(x->dtype, tarn_tensor_get(x, i).i, extent, &at));
  }
}
static void operators(tarn_ctx *cx, void *arg) {
  job *j = arg;
  j->L = tarn_lang_new(cx);
  j->q = ty_program_new(j->L);
  tensors(j);
  for (uint32_t op = 0; op < TARN_OP_COUNT; op++)
    for (uint32_t k = 0; tried(op) && k < j->each; k++) {
      tarn_term t = some_term(j, op);
      if (t == TARN_NONE && j->t == TARN_BOOL) continue; /* has no sums */
      if (t == TARN_NONE)
        tarn_raise(cx, TARN_NO, "no program is found for the operator %s", tarn_op_info(op)->text);
      if (type_of(j, t)->tuple || (j->deep && type_of(j, t)->dtype == j->t)) into_pool(j, t);
      choose_prefetch(j, t);
    }
  ty_run run = {
      .runs = 4, .threads = j->threads, .numerics = j->numerics, .fill = indices, .user = j->q};
  ty_try(j->q, j->target, &run, j->report, &j->seed);
}

static void run_job(tarn_fn *fn, job *j) {
  ty_report r = {0};
  j->report = &r;
  ty_judge(fn, j, &r, j->target, j->t);
}

/* ---------------------------------------------------------------- indices out of range */

typedef struct refusal {
  job *j;
  tarn_loaded *m; /* NULL: interpreted */
  tarn_binding in[2];
  tarn_tensor *out;
} refusal;
static void run_one(tarn_ctx *cx, void *arg) {
  refusal *r = arg;
  (void)cx;
  const tarn_tensor *given[2] = {r->in[0].value, r->in[1].value};
  if (r->m) tarn_loaded_run(r->m, given, &r->out, r->j->threads);
  else tarn_eval(r->j->L, &r->j->q->out[0].term, 1, r->in, 2, TARN_STRICT, NULL, &r->out);
}
/* What is out of range both refuse, in words that say so; what is not they agree on, also after a
 * refusal. */
static void one_index(refusal *r, tarn_tensor *index, int64_t extent, int64_t value) {
  tarn_ctx *cx = tarn_lang_ctx(r->j->L);
  int64_t n = tarn_tensor_count(index), at;
  const tarn_type *t = tarn_type_get(r->j->L, r->j->q->out[0].type);
  tarn_tensor *got = tarn_tensor_new(cx, t->dtype, t->n, t->dim);
  tarn_tensor_set(index, n / 2, (tarn_value){.i = value});
  bool in = tarn_index_in(index->dtype, tarn_tensor_get(index, n / 2).i, extent, &at);
  for (int compiled = 1; compiled >= 0; compiled--) {
    refusal run = *r;
    run.m = compiled ? r->m : NULL, run.out = compiled ? got : NULL;
    tarn_status st = tarn_protect(cx, run_one, &run);
    ck_assert_msg(st == (in ? TARN_OK : TARN_BAD_INPUT), "%s %lld of %lld, %s: %d",
                  tarn_dtype_name(index->dtype), (long long)value, (long long)extent,
                  compiled ? "compiled" : "interpreted", (int)st);
    ck_assert_msg(in || strstr(tarn_message(cx), "the axis has"), "\"%s\"", tarn_message(cx));
    for (int64_t i = 0; in && !compiled && i < tarn_tensor_count(got); i++)
      ck_assert(ty_same(got, run.out, i));
  }
  tarn_tensor_set(index, n / 2, (tarn_value){.i = 0});
}
static void outside(tarn_ctx *cx, void *arg) {
  job *j = arg;
  int64_t extent = j->large ? 300 : 3, axis = 1, dim[] = {2, extent, j->large ? 7 : 1}, many = 11;
  j->L = tarn_lang_new(cx);
  const tarn_hw *hw = ty_hw(j->L, j->target);
  if (!hw) return;
  j->q = ty_program_new(j->L);
  tarn_term kid[2] = {ty_input(j->q, "x", tarn_type_tensor(j->L, TARN_F32, 2, 3, dim)),
                      ty_input(j->q, "i", tarn_type_tensor(j->L, j->t, 1, 1, &many))};
  tarn_term t = tarn_mk(j->L, TARN_OP_GATHER, tarn_payload_ints(j->L, 1, &axis), kid, 2);
  uint32_t body = tarn_fx_op(j->L, TARN_FX_NEG, tarn_fx_hole(j->L, 0), 0, 0);
  ty_output(j->q, tarn_compute(j->L, tarn_fn_map(j->L, body, 1), &t, 1));
  tarn_tensor *x = tarn_tensor_new(cx, TARN_F32, 3, dim),
              *index = tarn_tensor_new(cx, j->t, 1, &many);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) ty_put(x, i, &j->seed);
  refusal r = {.j = j, .in = {{"x", x}, {"i", index}}};
  r.m = tarn_load(cx, ty_emit(j->q, hw, TARN_RULE_EXACT, j->threads, TARN_EMIT_SO));
  const int64_t near[] = {0,       extent - 1,  extent, extent + 1, -1,
                          -extent, -extent - 1, 200,    255,        128};
  for (uint32_t i = 0; i < TY_COUNT(near); i++) one_index(&r, index, extent, near[i]);
  for (uint32_t i = 0; i < ty_hostile(j->t); i++) one_index(&r, index, extent, ty_value(j->t, i).i);
  tarn_unload(r.m);
}

static int targets = 2;
START_TEST(test_operators) {
  job j = {.t = (tarn_dtype)(_i % TARN_DTYPES), .each = 2, .threads = 1, .seed = (uint64_t)_i + 1};
  j.target = &ty_targets[_i / TARN_DTYPES % targets];
  j.large = _i / TARN_DTYPES / targets % 2, j.deep = _i % 2;
  if (targets == 2) j.large = (j.target->bits < 0) == _i % 2;
  run_job(operators, &j);
}
END_TEST
START_TEST(test_outside) {
  job j = {.t = (tarn_dtype)(_i / 2 % TARN_DTYPES),
           .large = _i % 2,
           .threads = 1 + (uint32_t)_i % 2,
           .seed = 3};
  j.target = &ty_targets[_i / 2 / TARN_DTYPES % targets];
  if (!tarn_dtype_is_float(j.t) && j.t != TARN_BOOL) run_job(outside, &j);
}
END_TEST
START_TEST(test_reassociated) {
  job j = {.t = (tarn_dtype)(_i % TARN_DTYPES),
           .each = 2,
           .threads = 2,
           .seed = (uint64_t)_i,
           .numerics = TARN_RULE_REASSOC};
  j.target = &ty_targets[_i / TARN_DTYPES % targets];
  j.large = _i / TARN_DTYPES / targets % 2, j.deep = true;
  if (!tarn_dtype_is_float(j.t)) run_job(operators, &j);
}
END_TEST

int main(int argc, char **argv) {
  bool all = argc > 1 && !strcmp(argv[1], "--all");
  if (all) targets = (int)TY_COUNT(ty_targets);
  TCase *t = tcase_create("types");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_operators, 0, targets * TARN_DTYPES * (all ? 5 : 1));
  tcase_add_loop_test(t, test_outside, 0, (all ? targets : 1) * 2 * TARN_DTYPES);
  if (all) tcase_add_loop_test(t, test_reassociated, 0, targets * TARN_DTYPES * 5);
  return run_checks("types of operators", t);
}
