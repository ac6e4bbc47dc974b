/* lower/bilinear.c: sums multiplied by constant matrices against a naive evaluator, and the terms
 * that are computed once. */
#include "tests/lower_setup.h"

/* y[u, y, v, x, c] = sum over i, j (, k) of A[u, i] B[v, j] (C[c', k]) d[s y + i - pad, t x + j -
 * pad, (k,) c]; with three matrices, w is between v and x. */
enum { U, Y, V, W, X, C, I, J, K, DIMS };
typedef struct matrix_case {
  int64_t dim[DIMS], step, pad, lanes, vectors,
      columns;          /* of vectors, and of tiles, in a register tile */
  const double *matrix; /* of U and I, and of V and J; NULL: random */
} matrix_case;

static tarn_tensor *matrix(const matrix_case *w, int64_t rows, int64_t columns) {
  int64_t dim[2] = {rows, columns};
  const double some[] = {0, 0, 1, 1, -1, 2, -2, 4, -5, 0.5};
  tarn_tensor *t = tarn_tensor_new(cx, TARN_F32, 2, dim);
  for (int64_t i = 0; i < rows * columns; i++) {
    bool above = i >= columns && kit_below(2); /* rows are alike */
    double v =
        above ? (kit_below(2) ? 1 : -1) * tarn_tensor_get(t, i - columns).d : some[kit_below(10)];
    tarn_tensor_set(t, i, (tarn_value){.d = w->matrix && rows > 1 ? w->matrix[i] : v});
  }
  return t;
}
static uint32_t var(const matrix_case *w, uint32_t d) { return tarn_ix_var(L, d, w->dim); }
static uint32_t place(const matrix_case *w, uint32_t d, uint32_t r) {
  uint32_t e = tarn_ix_add(L, tarn_ix_scale(L, var(w, d), w->step, w->dim), var(w, r), w->dim);
  return tarn_ix_add(L, e, tarn_ix_const(L, -w->pad), w->dim);
}
static tarn_imap map_of(const matrix_case *w, uint32_t nin) {
  tarn_imap m = {.n = DIMS, .ns = DIMS, .nin = (uint8_t)nin, .fill = TARN_NONE};
  memcpy(m.dim, w->dim, sizeof w->dim);
  return m;
}
static tarn_read matrix_read(kit_case *c, const matrix_case *w, uint32_t own, uint32_t red) {
  tarn_imap m = map_of(w, 2);
  uint32_t at = c->nin++;
  m.in[0] = w->dim[own], m.in[1] = w->dim[red], m.e[0] = var(w, own), m.e[1] = var(w, red);
  c->in_type[at] = TARN_F32, c->constant[at] = true, c->value[at] = matrix(w, m.in[0], m.in[1]);
  c->in[at] = tarn_layout_row_major(2, m.in);
  return (tarn_read){.src = at, .map = tarn_map_intern(L, &m)};
}
static tarn_read data_read(kit_case *c, const matrix_case *w) {
  tarn_imap m = map_of(w, 4);
  uint32_t at = c->nin++, by[2][2] = {{Y, I}, {X, J}};
  for (uint32_t k = 0; k < 2; k++) {
    m.e[k] = place(w, by[k][0], by[k][1]);
    m.in[k] = w->step * (w->dim[by[k][0]] - 1) + w->dim[by[k][1]] - 2 * w->pad;
    if (w->pad)
      m.guard[m.nguard++] = (tarn_guard){m.e[k], 0, m.in[k]},
      m.fill = tarn_fx_const(L, TARN_F32, 0);
  }
  m.e[2] = var(w, K), m.in[2] = w->dim[K], m.e[3] = var(w, C), m.in[3] = w->dim[C];
  c->in_type[at] = TARN_F32, c->in[at] = tarn_layout_row_major(4, m.in),
  c->value[at] = kit_tensor(cx, TARN_F32, 4, m.in, 1);
  return (tarn_read){.src = at, .map = tarn_map_intern(L, &m)};
}
static void make(kit_case *c, const matrix_case *w) {
  bool three = w->dim[K] > 1;
  *c = (kit_case){.nout = 1, .out_type = {TARN_F32}};
  tarn_read read[5];
  uint32_t n = 0, body = tarn_fx_hole(L, 0);
  read[n++] = matrix_read(c, w, U, I), read[n++] = data_read(c, w),
  read[n++] = matrix_read(c, w, V, J);
  if (three) read[n++] = matrix_read(c, w, W, K);
  for (uint32_t i = 1; i < n; i++) body = tarn_fx_op(L, TARN_FX_MUL, body, tarn_fx_hole(L, i), 0);
  tarn_imap bias = map_of(w, 1);
  bias.n = bias.ns = I, bias.in[0] = w->dim[C], bias.e[0] = tarn_ix_var(L, C, w->dim);
  memset(bias.dim + I, 0, sizeof bias.dim - I * sizeof *bias.dim);
  read[n] = (tarn_read){.src = c->nin, .map = tarn_map_intern(L, &bias)};
  c->in_type[c->nin] = TARN_F32, c->in[c->nin] = tarn_layout_row_major(1, bias.in);
  c->value[c->nin++] = kit_tensor(cx, TARN_F32, 1, bias.in, 1);
  tarn_func f = {.nops = (uint8_t)n,
                 .nepi = 1,
                 .body = body,
                 .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32)};
  f.epi = tarn_fx_op(L, TARN_FX_ADD, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_stage st = {.nown = I,
                   .nred = DIMS - I,
                   .read = read,
                   .out = true,

                   .fn = tarn_fn_intern(L, &f)};
  memcpy(st.own, w->dim, I * sizeof *st.own),
      memcpy(st.red, w->dim + I, (DIMS - I) * sizeof *st.red);
  tarn_nest nest = {.out_ns = I, .nstage = 1, .nchild = c->nin, .stage = &st};
  c->nest = tarn_nest_intern(L, &nest);
  c->out[0] = tarn_layout_row_major(I, st.own);
  tarn_stage_sched *ss = TARN_NEW(cx, tarn_stage_sched);
  const tarn_level level[] = {
      {Y, TARN_PARALLEL, 1}, {X, TARN_SERIAL, w->columns}, {C, TARN_SERIAL, w->lanes * w->vectors},
      {K, TARN_UNROLL, 1},   {J, TARN_UNROLL, 1},          {I, TARN_UNROLL, 1},
      {W, TARN_UNROLL, 1},   {V, TARN_UNROLL, 1},          {U, TARN_UNROLL, 1},
      {X, TARN_UNROLL, 1},   {C, TARN_UNROLL, w->lanes},   {C, TARN_VECTOR, 1}};
  ss->nlevel = sizeof level / sizeof *level, ss->acc = 3;
  memcpy(ss->level, level, sizeof level);
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = ss};
}

static void equal_job(tarn_ctx *c, void *arg) {
  const int *seed = arg;
  enum { CASES = 12 };
  kit_seed = 3000u + (unsigned)*seed;
  kit_case *k = TARN_ARRAY(cx, kit_case, CASES);
  for (uint32_t i = 0; i < CASES; i++) {
    bool three = i % 4 == 3;
    matrix_case w = {.step = 1 + kit_below(4),
                     .pad = kit_below(3),
                     .lanes = 4 << kit_below(3),
                     .vectors = 1 + kit_below(2)};
    const int64_t most[DIMS] = {6, 7, 6, 1, 7, 40, 6, 6, 1};
    for (uint32_t d = 0; d < DIMS; d++)
      w.dim[d] = most[d] > 1 ? 2 + kit_below((uint32_t)most[d] - 1) : 1;
    if (three)
      for (uint32_t d = 0; d < DIMS; d++)
        w.dim[d] = d == Y || d == X || d == C ? w.dim[d] : 2 + kit_below(2);
    if (w.pad && w.dim[I] + w.step * (w.dim[Y] - 1) <= 2 * w.pad) w.pad = 0;
    if (w.pad && w.dim[J] + w.step * (w.dim[X] - 1) <= 2 * w.pad) w.pad = 0;
    w.columns = 1 + kit_below(2);
    make(&k[i], &w), kit_reference(L, &k[i], TARN_STRICT);
  }
  kit_run(L, hw, k, CASES, *seed % 3 != 0,
          2); /* without contraction as sums of products, in order */
  for (uint32_t i = 0; i < CASES; i++) {
    double e = kit_error(k[i].want[0], k[i].got[0]);
    if (!(e >= 0 && e <= 1e-4)) tarn_raise(c, TARN_NO, "case %u: error %g", i, e);
  }
}

/* The tile of F(4x4, 3x3): twelve operations for each of six columns and six rows. */
static void count_job(tarn_ctx *c, void *arg) {
  (void)arg;
  static const double bt[] = {4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                              0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1};
  matrix_case w = {.dim = {6, 3, 6, 1, 3, 16, 6, 6, 1},
                   .step = 4,
                   .lanes = 16,
                   .vectors = 1,
                   .columns = 1,
                   .matrix = bt};
  kit_case k;
  make(&k, &w);
  const char *dir = kit_compile(kit_program(L, hw, &k, 1), true, TARN_EMIT_LL);
  FILE *f = fopen(tarn_format(cx, "%s/model.ll", dir), "r");
  char line[4096];
  uint32_t ops = 0;
  while (f && fgets(line, sizeof line, f))
    ops += strstr(line, "<16 x float>") &&
           (strstr(line, "= fadd") || strstr(line, "= fsub") || strstr(line, "= fmul") ||
            strstr(line, "@llvm.fmuladd") || strstr(line, "@llvm.fma"));
  if (f) fclose(f);
  kit_remove(cx, dir);
  if (ops < 144 || ops > 144 + 36 + 1)
    tarn_raise(c, TARN_NO, "%u operations", ops); /* 36 of the epilogue, a declaration */
}

static void must(tarn_fn *f, void *arg) {
  tarn_status st = tarn_protect(cx, f, arg);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
START_TEST(equal) { must(equal_job, &_i); }
END_TEST
START_TEST(shares_what_rows_have_in_common) { must(count_job, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("weigh");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, equal, 0, 6);
  tcase_add_test(t, shares_what_rows_have_in_common);
  return run_checks("lower_weigh", t);
}
