/* Scalar types × operators × processors: programs of every scalar operator (access/fx.def) for
 * every combination of types that it takes, compiled with exact numerics and compared with the
 * interpreter bit for bit (a NaN is a NaN).  The table drives it: a new row is tried without a word
 * here.
 *
 *   test_types [--all]      --all: further processors, lengths and seeds */
#include "access/fx_internal.h"
#include "tests/types_kit.h"

/* ---------------------------------------------------------------- every operator */

typedef struct job {
  tarn_lang *L;
  tarn_dtype t; /* of the first operand */
  int64_t n;
  const ty_target *target;
  bool constants; /* the last operand is one number */
  uint64_t seed;
  ty_report *report;
} job;

/* Operand k of type t: numbered, so that all pairs of hostile values meet. */
static tarn_term operand(ty_program *q, uint32_t k, tarn_dtype t, int64_t n) {
  tarn_lang *L = q->p.L;
  return ty_input(q, tarn_format(tarn_lang_ctx(L), "%c_%s", (int)('a' + k), tarn_dtype_name(t)),
                  tarn_type_tensor(L, t, 1, 1, &n));
}
static void pairs(tarn_tensor *x, uint32_t input, uint32_t run, void *user, uint64_t *seed) {
  const ty_program *q = user;
  uint32_t k = (uint32_t)(q->in[input].name[0] - 'a'), n = ty_hostile(x->dtype);
  (void)seed;
  if (run) return;
  for (int64_t i = 0; i < tarn_tensor_count(x) && i < (int64_t)n * n && k < 2; i++)
    tarn_tensor_set(x, i, ty_value(x->dtype, (uint32_t)(k ? i / n : i % n)));
}

static void add(job *j, ty_program *q, uint32_t fx, const tarn_dtype *types, uint32_t arity) {
  tarn_term kid[3];
  uint32_t holes = tarn_fx_holes(j->L, fx);
  for (uint32_t k = 0; k < holes && k < arity; k++) kid[k] = operand(q, k, types[k], j->n);
  if (holes) ty_output(q, tarn_compute(j->L, tarn_fn_map(j->L, fx, holes), kid, holes));
}
/* op over operands of these types, where it is legal. */
static void instance(job *j, ty_program *q, uint32_t op, const tarn_dtype *types, uint32_t arity) {
  tarn_dtype out;
  uint32_t h[3];
  for (uint32_t k = 0; k < 3; k++) h[k] = tarn_fx_hole(j->L, k);
  if (j->constants && arity > 1) h[arity - 1] = ty_constant(j->L, types[arity - 1], &j->seed);
  uint32_t fx = tarn_fx_op(j->L, (tarn_fxop)op, h[0], h[1], h[2]);
  if (tarn_fx_type(j->L, fx, types, arity, &out)) add(j, q, fx, types, arity);
  if (!j->constants || arity != 2) return;
  fx = tarn_fx_op(j->L, (tarn_fxop)op, ty_constant(j->L, types[0], &j->seed), tarn_fx_hole(j->L, 0),
                  0);
  if (tarn_fx_type(j->L, fx, types + 1, 1, &out)) add(j, q, fx, types + 1, 1);
}
static void every_type(job *j, ty_program *q, uint32_t op, tarn_dtype *types, uint32_t at) {
  uint32_t arity = tarn_fx_info(op)->arity;
  if (at == arity) {
    instance(j, q, op, types, arity);
    return;
  }
  for (uint32_t t = 0; t < TARN_DTYPES; t++) {
    types[at] = (tarn_dtype)t;
    if (at > 0 || types[0] == j->t) every_type(j, q, op, types, at + 1);
  }
}
static void operators(tarn_ctx *cx, void *arg) {
  job *j = arg;
  j->L = tarn_lang_new(cx);
  ty_program *q = ty_program_new(j->L);
  tarn_dtype types[3];
  for (uint32_t op = 0; op < TARN_FX_COUNT; op++) {
    if (tarn_fx_info(op)->gives == TARN_FXG_LEAF) continue;
    if (op != TARN_FX_CAST) every_type(j, q, op, types, 0);
    for (uint32_t to = 0; op == TARN_FX_CAST && !j->constants && to < TARN_DTYPES; to++)
      add(j, q, tarn_fx_cast(j->L, (tarn_dtype)to, tarn_fx_hole(j->L, 0)), &j->t, 1);
  }
  ck_assert_uint_gt(q->p.nout, j->constants ? 4 : 15);
  ty_run run = {.runs = j->n < 64 ? 40 : 2,
                .threads = 1,
                .numerics = TARN_RULE_EXACT,
                .fill = pairs,
                .user = q};
  if (j->n < 64) run.fill = NULL;
  ty_try(q, j->target, &run, j->report, &j->seed);
}

/* ---------------------------------------------------------------- several operators together */

static void expressions(tarn_ctx *c, void *arg) {
  job *j = arg;
  (void)c;
  tarn_lang *L = j->L = tarn_lang_new(c);
  ty_program *q = ty_program_new(L);
  tarn_dtype holes[6], out;
  tarn_term kid[6];
  for (uint32_t k = 0; k < 6; k++)
    holes[k] = some_type(&j->seed), kid[k] = operand(q, k, holes[k], j->n);
  for (uint32_t i = 0; i < 24; i++) {
    uint32_t fx = some_fx(L, &j->seed, some_type(&j->seed), holes, 6, 4), n = tarn_fx_holes(L, fx);
    if (n && tarn_fx_type(L, fx, holes, 6, &out))
      ty_output(q, tarn_compute(L, tarn_fn_map(L, fx, n), kid, n));
  }
  ty_run run = {.runs = 6, .threads = 1, .numerics = TARN_RULE_EXACT};
  ty_try(q, j->target, &run, j->report, &j->seed);
}

static void run_job(tarn_fn *fn, job *j) {
  ty_report r = {0};
  j->report = &r;
  ty_judge(fn, j, &r, j->target, j->t);
}

static int targets = 2;
static int64_t long_length(tarn_dtype t) { return (int64_t)ty_hostile(t) * ty_hostile(t) + 29; }
START_TEST(test_long) {
  job j = {.t = (tarn_dtype)(_i % TARN_DTYPES),
           .target = &ty_targets[_i / TARN_DTYPES],
           .seed = (uint64_t)_i};
  j.n = long_length(j.t);
  run_job(operators, &j);
}
END_TEST
START_TEST(test_short) {
  job j = {.t = (tarn_dtype)(_i % TARN_DTYPES),
           .target = &ty_targets[_i / TARN_DTYPES],
           .n = 3,
           .seed = (uint64_t)_i};
  run_job(operators, &j);
}
END_TEST
START_TEST(test_constants) {
  job j = {.t = (tarn_dtype)(_i % TARN_DTYPES), .target = &ty_targets[_i / TARN_DTYPES % targets]};
  j.n = 61, j.constants = true, j.seed = (uint64_t)_i;
  run_job(operators, &j);
}
END_TEST

START_TEST(test_expressions) {
  job j = {
      .target = &ty_targets[_i % targets], .n = _i / targets % 2 ? 61 : 5, .seed = (uint64_t)_i};
  run_job(expressions, &j);
}
END_TEST

int main(int argc, char **argv) {
  bool all = argc > 1 && !strcmp(argv[1], "--all");
  if (all) targets = (int)TY_COUNT(ty_targets);
  TCase *t = tcase_create("types");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, test_long, 0, targets * TARN_DTYPES);
  tcase_add_loop_test(t, test_short, 0, (all ? targets : 1) * TARN_DTYPES);
  tcase_add_loop_test(t, test_constants, 0, (all ? 4 * targets : 1) * TARN_DTYPES);
  tcase_add_loop_test(t, test_expressions, 0, targets * (all ? 60 : 4));
  return run_checks("types", t);
}
