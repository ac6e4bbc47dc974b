/* lower/: prefetches of loops, loads that copies of a window share, register transposes: counted in
 * the code, and run. */
#include "tests/lower_cases.h"

/* ---- reading ahead: a product of 4 rows with k x 16 weights, by lanes ---- */
static void product_schedule(kit_case *c) {
  tarn_stage_sched *s = TARN_NEW(cx, tarn_stage_sched);
  const tarn_level level[] = {{0, TARN_SERIAL, 4},
                              {1, TARN_SERIAL, 16},
                              {2, TARN_SERIAL, 1},
                              {0, TARN_UNROLL, 1},
                              {1, TARN_VECTOR, 1}};
  s->nlevel = 5, s->acc = 2;
  memcpy(s->level, level, sizeof level);
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = s};
}
/* The sum of products of two operands, read by these maps over (rows, 16 columns, k). */
static void product_of(kit_case *c, const tarn_imap *a, const tarn_imap *b) {
  tarn_read read[2] = {{.map = tarn_map_intern(L, a)}, {.src = 1, .map = tarn_map_intern(L, b)}};
  tarn_func fn = {.nops = 2, .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32), .epi = TARN_NONE};
  fn.body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_stage st = {
      .nown = 2,
      .nred = 1,
      .own = {a->dim[0], 16},
      .red = {a->dim[2]},
      .read = read,
      .out = true,
  };
  st.fn = tarn_fn_intern(L, &fn);
  tarn_nest n = {.out_ns = 2, .nstage = 1, .nchild = 2, .stage = &st};
  *c = (kit_case){.nin = 2, .nout = 1, .in_type = {TARN_F32, TARN_F32}, .out_type = {TARN_F32}};
  c->nest = tarn_nest_intern(L, &n);
  c->in[0] = tarn_layout_row_major(2, a->in), c->value[0] = kit_tensor(cx, TARN_F32, 2, a->in, 1);
  c->in[1] = tarn_layout_row_major(2, b->in), c->value[1] = kit_tensor(cx, TARN_F32, 2, b->in, 1);
  c->out[0] = tarn_layout_row_major(2, st.own);
}
static void product_case(kit_case *c, int64_t k) {
  space s = {.n = 3, .nacc = 2, .dim = {4, 16, k}};
  tarn_imap a = {.ns = 2, .n = 3, .nin = 2, .fill = TARN_NONE, .dim = {4, 16, k}, .in = {4, k}},
            b = a;
  a.e[0] = ix(&s, 0), a.e[1] = ix(&s, 2), b.in[0] = k, b.in[1] = 16, b.e[0] = ix(&s, 2),
  b.e[1] = ix(&s, 1);
  product_of(c, &a, &b);
  product_schedule(c);
}
/* The greatest of n numbers, so many lanes of them at once and two vectors of each. */
static void greatest_case(kit_case *c, tarn_red_kind kind, int64_t n, int64_t lanes) {
  tarn_read *read = TARN_ARRAY(cx, tarn_read, 1);
  tarn_imap m = {.ns = 0, .n = 1, .nin = 1, .fill = TARN_NONE, .dim = {n}, .in = {n}};
  m.e[0] = tarn_ix_var(L, 0, m.dim);
  read[0] = (tarn_read){.map = tarn_map_intern(L, &m)};
  uint32_t fn = tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, tarn_reducer_of(L, kind, TARN_F32));
  tarn_stage st = {.nred = 1, .red = {n}, .read = read, .out = true, .fn = fn};
  tarn_nest nest = {.nstage = 1, .nchild = 1, .stage = &st};
  *c = (kit_case){.nest = tarn_nest_intern(L, &nest),
                  .nin = 1,
                  .nout = 1,
                  .in_type = {TARN_F32},
                  .out_type = {TARN_F32}};
  c->in[0] = tarn_layout_row_major(1, &n), c->value[0] = kit_tensor(cx, TARN_F32, 1, &n, 1);
  c->out[0] = tarn_layout_row_major(0, &n);
  tarn_stage_sched *s = TARN_NEW(cx, tarn_stage_sched);
  *s = (tarn_stage_sched){
      .nlevel = 3,
      .level = {{0, TARN_SERIAL, 2 * lanes}, {0, TARN_UNROLL, lanes}, {0, TARN_VECTOR, 1}}};
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = s};
}
/* A NaN stays wherever it comes in, and infinities are numbers. */
static void greatest_job(tarn_ctx *c, void *arg) {
  (void)arg;
  enum { N = 101 };
  kit_case *k = TARN_ARRAY(cx, kit_case, 3 * 2 * (N + 1));
  uint32_t n = 0;
  for (int64_t lanes = 4; lanes <= 16; lanes *= 2)
    for (int kind = 0; kind < 2; kind++)
      for (int64_t nan = 0; nan <= N; nan += 1 + nan % 7) {
        greatest_case(&k[n], kind ? TARN_RED_MAX : TARN_RED_MIN, N, lanes);
        float *x = k[n++].value[0]->data;
        x[nan / 2] = nan % 3 ? INFINITY : -INFINITY;
        if (nan < N) x[nan] = NAN;
      }
  kit_run(L, hw, k, n, true, 1);
  for (uint32_t i = 0; i < n; i++) {
    kit_reference(L, &k[i], TARN_STRICT);
    float got = *(float *)k[i].got[0]->data, want = *(float *)k[i].want[0]->data;
    if (!(isnan(want) ? isnan(got) : got == want))
      tarn_raise(c, TARN_NO, "case %u: %g for %g", i, (double)got, (double)want);
  }
}
/* Places of the module that ask for something ahead. */
static uint32_t prefetched(const tarn_hw *on, kit_case *c) {
  return kit_lines(L, on, c, "call void @llvm.prefetch");
}
static void ahead_job(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw_memory mem[] = {
      {.name = "l1", .capacity = 16384, .line = 64, .read = 128, .latency = 5},
      {.name = "dram", .line = 64, .read = 6, .latency = 300}};
  tarn_hw on = *hw;
  kit_case big, small, row;
  product_case(&big, 1000), product_case(&small, 100);
  if (prefetched(&on, &big)) tarn_raise(c, TARN_NO, "memories that are not described");
  on.nmem = 2, on.mem = mem;
  if (!prefetched(&on, &big)) tarn_raise(c, TARN_NO, "weights larger than L1 are not prefetched");
  if (prefetched(&on, &small)) tarn_raise(c, TARN_NO, "operands that fit L1 are prefetched");
  greatest_case(&row, TARN_RED_MAX, 100000, 16);
  if (prefetched(&on, &row))
    tarn_raise(c, TARN_NO,
               "lanes along a row that is read once ask for what the processor foresees");
  const tarn_hw_memory three[] = {
      mem[0], {.name = "l2", .capacity = 65536, .instances = 2, .line = 64, .read = 32}, mem[1]};
  on.nmem = 3, on.mem = three;
  if (!kit_lines(L, &on, &row, ", i32 0, i32 2, i32 1)"))
    tarn_raise(c, TARN_NO, "a row beyond the second caches is not asked for");
  kit_reference(L, &row, TARN_STRICT), kit_run(L, &on, &row, 1, true, 1);
  if (kit_error(row.want[0], row.got[0]) != 0)
    tarn_raise(c, TARN_NO, "the greatest of a row that is asked for");
  on.nmem = 2, on.mem = mem;
  kit_run(L, &on, &big, 1, true, 1);
  const float *a = big.value[0]->data, *b = big.value[1]->data, *y = big.got[0]->data;
  for (int64_t i = 0; i < 64; i++) {
    double sum = 0;
    for (int64_t k = 0; k < 1000; k++)
      sum += (double)a[i / 16 * 1000 + k] * (double)b[k * 16 + i % 16];
    if (!(fabs(sum - (double)y[i]) < 1e-3))
      tarn_raise(c, TARN_NO, "element %d: %g for %g", (int)i, (double)y[i], sum);
  }
}
/* Columns 0 to 15 of a matrix of k rows, each of so many elements, times k x 16: the tile wants 16
 * of each row. */
static void columns_case(kit_case *c, int64_t k, int64_t wide) {
  space s = {.n = 3, .nacc = 2, .dim = {16, 16, k}};
  tarn_imap a = {.ns = 2, .n = 3, .nin = 2, .fill = TARN_NONE, .dim = {16, 16, k}, .in = {k, wide}},
            b = a;
  a.e[0] = ix(&s, 2), a.e[1] = ix(&s, 0), b.in[1] = 16, b.e[0] = ix(&s, 2), b.e[1] = ix(&s, 1);
  product_of(c, &a, &b);
  const tarn_level level[] = {
      {2, TARN_SERIAL, 2}, {2, TARN_UNROLL, 1}, {0, TARN_UNROLL, 1}, {1, TARN_VECTOR, 1}};
  tarn_stage_sched *ss = TARN_NEW(cx, tarn_stage_sched);
  ss->nlevel = 4;
  memcpy(ss->level, level, sizeof level);
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = ss};
}
/* Both rows of a trip, where each lies on a page of its own; wherever they begin, they may cross a
 * line. */
static void rows_job(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw_memory mem[] = {
      {.name = "l1", .capacity = 16384, .line = 64, .read = 128, .latency = 5},
      {.name = "dram", .line = 64, .read = 6, .latency = 60}};
  tarn_hw on = *hw;
  kit_case far, near, few;
  columns_case(&far, 200, 1024), columns_case(&near, 200, 512), columns_case(&few, 16, 1024);
  on.nmem = 2, on.mem = mem;
  if (prefetched(&on, &far) != 4)
    tarn_raise(c, TARN_NO, "two lines of two rows in each trip: %u", prefetched(&on, &far));
  if (prefetched(&on, &near))
    tarn_raise(c, TARN_NO, "rows that the processor foresees are asked for");
  if (prefetched(&on, &few)) tarn_raise(c, TARN_NO, "fewer rows than lie ahead are asked for");
  kit_run(L, &on, &far, 1, true, 1);
  const float *a = far.value[0]->data, *b = far.value[1]->data, *y = far.got[0]->data;
  for (int64_t i = 0; i < 256; i++) {
    double sum = 0;
    for (int64_t k = 0; k < 200; k++)
      sum += (double)a[k * 1024 + i / 16] * (double)b[k * 16 + i % 16];
    if (!(fabs(sum - (double)y[i]) < 1e-3))
      tarn_raise(c, TARN_NO, "element %d: %g for %g", (int)i, (double)y[i], sum);
  }
}
/* rows × panels of 16 lanes: for every panel of the weights, all rows by fours. */
static void panel_case(kit_case *c, int64_t rows, int64_t panels, int64_t k) {
  space s = {.n = 4, .nacc = 3, .dim = {rows, panels, 16, k}};
  tarn_imap a = {.ns = 3,
                 .n = 4,
                 .nin = 2,
                 .fill = TARN_NONE,
                 .dim = {rows, panels, 16, k},
                 .in = {rows, k}},
            b = a;
  a.e[0] = ix(&s, 0), a.e[1] = ix(&s, 3);
  b.nin = 3, b.in[0] = panels, b.in[1] = k, b.in[2] = 16, b.e[0] = ix(&s, 1), b.e[1] = ix(&s, 3),
  b.e[2] = ix(&s, 2);
  tarn_read read[2] = {{.map = tarn_map_intern(L, &a)}, {.src = 1, .map = tarn_map_intern(L, &b)}};
  tarn_func fn = {.nops = 2, .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32), .epi = TARN_NONE};
  fn.body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_stage st = {
      .nown = 3,
      .nred = 1,
      .own = {rows, panels, 16},
      .red = {k},
      .read = read,
      .out = true,
  };
  st.fn = tarn_fn_intern(L, &fn);
  tarn_nest n = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &st};
  *c = (kit_case){.nin = 2, .nout = 1, .in_type = {TARN_F32, TARN_F32}, .out_type = {TARN_F32}};
  c->nest = tarn_nest_intern(L, &n);
  c->in[0] = tarn_layout_row_major(2, a.in), c->value[0] = kit_tensor(cx, TARN_F32, 2, a.in, 1);
  c->in[1] = tarn_layout_row_major(3, b.in), c->value[1] = kit_tensor(cx, TARN_F32, 3, b.in, 1);
  c->out[0] = tarn_layout_row_major(3, st.own);
  const tarn_level level[] = {{1, TARN_SERIAL, 1},
                              {0, TARN_SERIAL, 4},
                              {3, TARN_SERIAL, 1},
                              {0, TARN_UNROLL, 1},
                              {2, TARN_VECTOR, 1}};
  tarn_stage_sched *ss = TARN_NEW(cx, tarn_stage_sched);
  ss->nlevel = 5, ss->acc = 2;
  memcpy(ss->level, level, sizeof level);
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = ss};
}
/* A panel used for many tiles of rows: the next one is asked for meanwhile; not where it is used
 * but once, nor what the second cache has room for many times. */
static void blocks_job(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw_memory mem[] = {
      {.name = "l1", .capacity = 16384, .line = 64, .read = 128, .latency = 5},
      {.name = "l2", .capacity = 65536, .line = 64, .read = 32, .latency = 15},
      {.name = "dram", .line = 64, .read = 6, .latency = 300}};
  tarn_hw on = *hw;
  kit_case big, once, small;
  panel_case(&big, 32, 8, 250), panel_case(&once, 4, 8, 250), panel_case(&small, 32, 8, 20);
  on.nmem = 3, on.mem = mem;
  if (prefetched(&on, &big) != 1)
    tarn_raise(c, TARN_NO, "one line of the next panel in each trip: %u", prefetched(&on, &big));
  if (prefetched(&on, &small))
    tarn_raise(c, TARN_NO, "panels of what the second cache holds are asked for");
  for (uint32_t i = 0; i < 2; i++) {
    kit_case *k = i ? &once : &big;
    int64_t rows = i ? 4 : 32;
    kit_run(L, &on, k, 1, true, 1);
    const float *a = k->value[0]->data, *b = k->value[1]->data, *y = k->got[0]->data;
    for (int64_t e = 0; e < rows * 128; e++) {
      double sum = 0;
      for (int64_t j = 0; j < 250; j++)
        sum += (double)a[e / 128 * 250 + j] * (double)b[(e / 16 % 8 * 250 + j) * 16 + e % 16];
      if (!(fabs(sum - (double)y[e]) < 1e-3))
        tarn_raise(c, TARN_NO, "element %d: %g for %g", (int)e, (double)y[e], sum);
    }
  }
}
/* ---- windows along the lanes: y[j] = sum of x[step·j + k - pad], 16 lanes ---- */
static uint32_t window_lines(int64_t step, int64_t places, int64_t pad, const char *what) {
  kit_case c = {.nin = 1, .nout = 1, .in_type = {TARN_F32}, .out_type = {TARN_F32}};
  space s = {.n = 2, .nacc = 1, .dim = {64, places}};
  tarn_imap a = {.ns = 1,
                 .n = 2,
                 .nin = 1,
                 .fill = TARN_NONE,
                 .dim = {64, places},
                 .in = {step * 64 + places}};
  a.e[0] = tarn_ix_add(L, tarn_ix_scale(L, ix(&s, 0), step, s.dim), ix(&s, 1), s.dim);
  if (pad) {
    a.e[0] = tarn_ix_add(L, a.e[0], tarn_ix_const(L, -pad), s.dim);
    a.nguard = 1, a.guard[0] = (tarn_guard){a.e[0], 0, a.in[0]}, a.fill = number(TARN_F32, 0);
  }
  tarn_read read[1] = {{.map = tarn_map_intern(L, &a)}};
  tarn_func fn = {.nops = 1,
                  .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32),
                  .epi = TARN_NONE,
                  .body = tarn_fx_hole(L, 0)};
  tarn_stage st = {
      .nown = 1,
      .nred = 1,
      .own = {64},
      .red = {places},
      .read = read,
      .out = true,
  };
  st.fn = tarn_fn_intern(L, &fn);
  tarn_nest n = {.out_ns = 1, .nstage = 1, .nchild = 1, .stage = &st};
  c.nest = tarn_nest_intern(L, &n);
  c.in[0] = tarn_layout_row_major(1, a.in), c.out[0] = tarn_layout_row_major(1, st.own);
  tarn_stage_sched ss = {.nlevel = 3,
                         .acc = 1,
                         .level = {{0, TARN_SERIAL, 16}, {1, TARN_UNROLL, 1}, {0, TARN_VECTOR, 1}}};
  tarn_schedule sched = {.nstage = 1, .stage = &ss};
  c.sched = &sched;
  return kit_lines(L, hw, &c, what);
}
/* Of what neighbours along the lanes read, each register is loaded once. */
static void shared_job(tarn_ctx *c, void *arg) {
  (void)arg;
  uint32_t gathers = window_lines(3, 7, 0, "= call <16 x float> @llvm.masked.gather"),
           pairs = window_lines(2, 5, 0, "= load <16 x float>");
  uint32_t singles = window_lines(2, 5, 0, "= load float");
  if (gathers != 3) tarn_raise(c, TARN_NO, "%u of 7 places at a step of 3 are gathered", gathers);
  if (pairs != 2 || singles != 3)
    tarn_raise(c, TARN_NO, "5 places at a step of 2 are %u registers and %u elements", pairs,
               singles);
  pairs = window_lines(2, 3, 1,
                       "= load <16 x float>"); /* of the tile at the border and of the others */
  uint32_t masked = window_lines(2, 3, 1, "llvm.masked.load"),
           border = window_lines(2, 3, 1, "= load float");
  if (pairs != 4 || masked || border != 1)
    tarn_raise(c, TARN_NO, "padded: %u registers, %u masks, %u elements", pairs, masked, border);
}
/* A window whose rows are a shared loop, and what weighs its channels: z[r][c][l] = sum of x[r + i
 * - 1][c + j - 1][l]·w[i][j], y[r][c][f] = sum of z[r][c][l]·v[l][f]. All of a row of z is one
 * tile. */
static void shared_rows_case(kit_case *k) {
  const int64_t rows = 9, cols = 6, lanes = 16;
  space s = {.n = 5, .nacc = 3, .dim = {rows, cols, lanes, 3, 3}},
        t = {.n = 4, .nacc = 3, .dim = {rows, cols, 32, lanes}};
  *k = (kit_case){
      .nin = 3, .nout = 1, .in_type = {TARN_F32, TARN_F32, TARN_F32}, .out_type = {TARN_F32}};
  tarn_imap x = {.ns = 3,
                 .n = 5,
                 .nin = 3,
                 .fill = number(TARN_F32, 0),
                 .nguard = 2,
                 .in = {rows, cols, lanes}};
  tarn_imap w = {.ns = 3, .n = 5, .nin = 2, .fill = TARN_NONE, .in = {3, 3}};
  tarn_imap z = {.ns = 3, .n = 4, .nin = 2, .fill = TARN_NONE, .in = {cols, lanes}}, v = z;
  memcpy(x.dim, s.dim, sizeof x.dim), memcpy(w.dim, s.dim, sizeof w.dim),
      memcpy(z.dim, t.dim, sizeof z.dim);
  memcpy(v.dim, t.dim, sizeof v.dim), v.in[0] = lanes, v.in[1] = 32, v.e[0] = ix(&t, 3),
                                      v.e[1] = ix(&t, 2);
  for (uint32_t i = 0; i < 2; i++) {
    x.e[i] = tarn_ix_add(L, tarn_ix_add(L, ix(&s, i), ix(&s, 3 + i), s.dim), tarn_ix_const(L, -1),
                         s.dim);
    x.guard[i] = (tarn_guard){x.e[i], 0, x.in[i]}, w.e[i] = ix(&s, 3 + i);
  }
  x.e[2] = ix(&s, 2), z.e[0] = ix(&t, 1), z.e[1] = ix(&t, 3);
  tarn_read read[4] = {{.map = tarn_map_intern(L, &x)},
                       {.src = 1, .map = tarn_map_intern(L, &w)},
                       {.stage = true, .map = tarn_map_intern(L, &z)},
                       {.src = 2, .map = tarn_map_intern(L, &v)}};
  tarn_func fn = {.nops = 2, .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32), .epi = TARN_NONE};
  fn.body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_stage st[2] = {{.nown = 2, .nred = 2, .own = {cols, lanes}, .red = {3, 3}, .read = read},
                      {
                          .nown = 2,
                          .nred = 1,
                          .own = {cols, 32},
                          .red = {lanes},
                          .read = read + 2,
                          .out = true,
                      }};
  st[0].fn = st[1].fn = tarn_fn_intern(L, &fn);
  tarn_nest n = {.depth = 1, .shared = {rows}, .out_ns = 1, .nstage = 2, .nchild = 3, .stage = st};
  k->nest = tarn_nest_intern(L, &n);
  const tarn_imap *m[3] = {&x, &w, &v};
  for (uint32_t i = 0; i < 3; i++)
    k->in[i] = tarn_layout_row_major(m[i]->nin, m[i]->in),
    k->value[i] = kit_tensor(cx, TARN_F32, m[i]->nin, m[i]->in, 1);
  k->out[0] = tarn_layout_row_major(3, t.dim);
  const tarn_level window[] = {
      {3, TARN_UNROLL, 1}, {1, TARN_UNROLL, 1}, {4, TARN_UNROLL, 1}, {2, TARN_VECTOR, 1}};
  const tarn_level product[] = {{1, TARN_SERIAL, 3},
                                {2, TARN_SERIAL, 16},
                                {3, TARN_SERIAL, 1},
                                {1, TARN_UNROLL, 1},
                                {2, TARN_VECTOR, 1}};
  k->sched = TARN_NEW(cx, tarn_schedule);
  *k->sched = (tarn_schedule){.nshared = 1, .shared = {{0, TARN_SERIAL, 1}}, .nstage = 2};
  k->sched->stage = TARN_ARRAY(cx, tarn_stage_sched, 2);
  k->sched->stage[0] = (tarn_stage_sched){.nlevel = 4},
  k->sched->stage[1] = (tarn_stage_sched){.nlevel = 5, .acc = 2};
  memcpy(k->sched->stage[0].level, window, sizeof window),
      memcpy(k->sched->stage[1].level, product, sizeof product);
}
/* Padding is decided at the first and at the last row: of what branches, there are the loops alone.
 * And the product, which computes most, asks for the window's next row: the window, which has no
 * loop, could not. */
static void shared_rows_job(tarn_ctx *c, void *arg) {
  (void)arg;
  const tarn_hw_memory mem[] = {
      {.name = "l1", .capacity = 2048, .line = 64, .read = 128, .latency = 5},
      {.name = "l2", .capacity = 4096, .line = 64, .read = 32, .latency = 15},
      {.name = "dram", .line = 64, .read = 6, .latency = 60}};
  tarn_hw on = *hw;
  kit_case k;
  shared_rows_case(&k);
  uint32_t branches = kit_lines(L, hw, &k, "br i1"), loops = 1 + 3 * 3;
  if (branches > loops) tarn_raise(c, TARN_NO, "%u branches in %u loops", branches, loops);
  on.nmem = 3, on.mem = mem;
  if (!kit_lines(L, &on, &k, ", i32 0, i32 2, i32 1)"))
    tarn_raise(c, TARN_NO, "the next row of a window is not asked for");
  kit_reference(L, &k, TARN_STRICT);
  kit_run(L, &on, &k, 1, true, 1);
  double e = kit_error(k.want[0], k.got[0]);
  if (!(e >= 0 && e < 1e-5)) tarn_raise(c, TARN_NO, "a window by shared rows: %g", e);
}
/* ---- results across the lanes: y[i][j] with lanes along i and copies along j; k == 0: only
 * x[j][i] copied ---- */
typedef struct turned {
  int64_t rows, cols, k, lanes, vectors, copies;
  tarn_dtype t;
} turned;
static void turned_case(kit_case *c, const turned *t) {
  uint32_t n = t->k ? 3 : 2;
  space s = {.n = n, .nacc = 2, .dim = {t->rows, t->cols, t->k}};
  tarn_imap a = {.ns = 2,
                 .n = (uint8_t)n,
                 .nin = 2,
                 .fill = TARN_NONE,
                 .dim = {t->rows, t->cols, t->k}},
            b = a;
  a.in[0] = t->k ? t->k : t->cols, a.in[1] = t->rows, a.e[0] = ix(&s, t->k ? 2 : 1),
  a.e[1] = ix(&s, 0);
  b.in[0] = t->cols, b.in[1] = t->k, b.e[0] = ix(&s, 1), b.e[1] = t->k ? ix(&s, 2) : a.e[1];
  tarn_read read[2] = {{.map = tarn_map_intern(L, &a)}};
  tarn_func fn = {.nops = 1, .red = TARN_NONE, .epi = TARN_NONE, .body = tarn_fx_hole(L, 0)};
  if (t->k) {
    read[1] = (tarn_read){.src = 1, .map = tarn_map_intern(L, &b)};
    fn.nops = 2, fn.red = tarn_reducer_of(L, TARN_RED_SUM, t->t);
    fn.body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  }
  tarn_stage st = {.nown = 2,
                   .nred = t->k ? 1 : 0,
                   .own = {t->rows, t->cols},
                   .red = {t->k},
                   .read = read,
                   .out = true};
  st.fn = tarn_fn_intern(L, &fn);
  tarn_nest nest = {.out_ns = 2, .nstage = 1, .nchild = fn.nops, .stage = &st};
  *c = (kit_case){.nin = fn.nops, .nout = 1, .in_type = {t->t, t->t}, .out_type = {t->t}};
  c->nest = tarn_nest_intern(L, &nest);
  c->in[0] = tarn_layout_row_major(2, a.in), c->value[0] = kit_tensor(cx, t->t, 2, a.in, 1);
  if (t->k)
    c->in[1] = tarn_layout_row_major(2, b.in), c->value[1] = kit_tensor(cx, t->t, 2, b.in, 1);
  c->out[0] = tarn_layout_row_major(2, st.own);
  tarn_stage_sched *ss = TARN_NEW(cx, tarn_stage_sched);
  tarn_level level[] = {{0, TARN_SERIAL, t->lanes * t->vectors},
                        {1, TARN_SERIAL, t->copies},
                        {2, TARN_SERIAL, 1},
                        {1, TARN_UNROLL, 1},
                        {0, TARN_UNROLL, t->lanes},
                        {0, TARN_VECTOR, 1}};
  for (uint32_t i = 0; i < 6; i++)
    if (t->k || i != 2) ss->level[ss->nlevel++] = level[i];
  ss->acc = t->k ? 2 : ss->nlevel;
  c->sched = TARN_NEW(cx, tarn_schedule);
  *c->sched = (tarn_schedule){.nstage = 1, .stage = ss};
}
static void turned_job(tarn_ctx *c, void *arg) {
  const int *seed = arg;
  enum { CASES = 24 };
  kit_seed = 2100u + (unsigned)*seed;
  kit_case *k = TARN_ARRAY(cx, kit_case, CASES), whole;
  for (int i = 0; i < CASES; i++) {
    turned t = {.lanes = 2 << (i % 4),
                .vectors = 1 + i / 4 % 3,
                .copies = 2 + (i * 7 + *seed * 5) % 19,
                .k = i % 2 ? 9 : 0};
    t.rows = t.lanes * t.vectors * 2 + i % 5, t.cols = t.copies * 2 + i % 3;
    t.t = i % 3 == 2 ? TARN_F64 : TARN_F32;
    turned_case(&k[i], &t);
  }
  run_cases(k, CASES, *seed % 2 == 0, 1);
  turned_case(&whole,
              &(turned){32, 32, 9, 16, 2, 8, TARN_F32}); /* no element is stored for itself */
  const char *dir = kit_compile(kit_program(L, hw, &whole, 1), true, TARN_EMIT_LL);
  FILE *f = fopen(tarn_format(cx, "%s/model.ll", dir), "r");
  char line[4096];
  uint32_t rows = 0, single = 0;
  while (f && fgets(line, sizeof line, f))
    rows += strstr(line, "store <8 x float>") != NULL,
        single += strstr(line, "store float") != NULL;
  if (f) fclose(f);
  kit_remove(cx, dir);
  if (rows != 32 || single)
    tarn_raise(c, TARN_NO, "%u rows and %u single elements are stored in a tile of 32 rows", rows,
               single);
}
/* 32 rows in trips of 22: two threads both compute rows 10 to 21. Where the result holds partial
 * sums meanwhile (its sum lies outside of the accumulators), one would add to those of the other.
 */
static void overlap_job(tarn_ctx *c, void *arg) {
  static const char text[] =
      "(kernel (nest (stages (children 1) (shared 32) (split 2) (stage (own 8) (reduce) (map (neg "
      "$0)) "
      "(child 0 (index ((32 8) ()) (32 8) (d0 d1)))) (stage (own 8) (reduce 6) (red sum $0) "
      "(stage 0 (index ((32 8) (6)) (8) (d1))) out)))(in f32 (32 8) (8 1))(out f32 (32 8) (8 1)))";
  static const char walk[] =
      "(schedule (shared (open 0) (parallel 0 22) (serial 0 1)) (stage (acc 2) (serial 1 8) "
      "(vector 1 1)) (stage (acc 1) (%s) (vector 1 1)))";
  const bool *apart = arg;
  const char *sum = *apart ? "serial 2 1) (serial 1 8" : "serial 1 8) (serial 2 1";
  kit_case k = kit_case_text(L, text, tarn_format(cx, walk, sum));
  const tarn_plan_nest *N = kit_plan(L, hw, &k);
  tarn_plan_check(N);
  if (tarn_plan_resumes(N, 1) != *apart || tarn_plan_parallel(N, 0)->parallel != !*apart)
    tarn_raise(c, TARN_NO, "sum apart %d: %u parallel levels", *apart,
               tarn_plan_parallel(N, 0)->parallel);
  run_cases(&k, 1, true, 2);
}
START_TEST(threads_overlap) { must(overlap_job, &(bool){_i == 1}); }
END_TEST
START_TEST(across_the_lanes) { must(turned_job, &_i); }
END_TEST
START_TEST(windows_along_the_lanes) { must(shared_job, NULL); }
END_TEST
START_TEST(asks_for_rows) { must(rows_job, NULL); }
END_TEST
START_TEST(asks_for_blocks) { must(blocks_job, NULL); }
END_TEST
START_TEST(greatest) { must(greatest_job, NULL); }
END_TEST
START_TEST(asks_ahead) { must(ahead_job, NULL); }
END_TEST
START_TEST(windows_by_shared_rows) { must(shared_rows_job, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("shared");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, across_the_lanes, 0, 3);
  tcase_add_test(t, windows_along_the_lanes);
  tcase_add_loop_test(t, threads_overlap, 0, 2);
  tcase_add_test(t, windows_by_shared_rows);
  tcase_add_test(t, greatest);
  tcase_add_test(t, asks_ahead);
  tcase_add_test(t, asks_for_blocks);
  tcase_add_test(t, asks_for_rows);
  return run_checks("lower shared", t);
}
