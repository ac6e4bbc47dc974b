/* price/: prices of schedules, and the schedules that the search proposes. */
#include "tests/loop_tests.h"

/* ---------------------------------------------------------------- prices */
TEST(parallel_units) {
  UNUSED;
  stage_model m = {.n = 2, .nacc = 2, .dim = {10, 6}};
  const tarn_level one[] = {{0, TARN_PARALLEL, 1}, {1, TARN_SERIAL, 1}};
  const tarn_level tiles[] = {{0, TARN_PARALLEL, 4}, {0, TARN_SERIAL, 1}, {1, TARN_SERIAL, 1}};
  const tarn_level both[] = {{0, TARN_PARALLEL, 1}, {1, TARN_PARALLEL, 1}};
  ck_assert_double_eq_tol(loop_parallel(&m, one, 2, 1), 1, 1e-12);
  ck_assert_double_eq_tol(loop_parallel(&m, one, 2, 4), 10 / 3.0, 1e-12); /* three rounds of four */
  ck_assert_double_eq_tol(loop_parallel(&m, tiles, 3, 4), 2.5, 1e-12);    /* the third is a half */
  ck_assert_double_eq_tol(loop_parallel(&m, tiles, 3, 2), 2,
                          1e-12); /* no more than there are, in pieces of 4, 4 and 2 */
  ck_assert_double_eq_tol(loop_parallel(&m, both, 2, 4), 4, 1e-12);
  ck_assert_double_eq_tol(loop_parallel(&m, one + 1, 1, 4), 1, 1e-12);
}
static tarn_cost cost_with(const tarn_hw *hw, const tarn_ksig *k, uint32_t acc,
                           const tarn_level *level, uint32_t n, uint32_t threads) {
  tarn_stage_sched st = {.nlevel = n, .acc = acc};
  tarn_schedule s = {.nstage = 1, .stage = &st};
  tarn_cost c;
  memcpy(st.level, level, n * sizeof *level);
  tarn_schedule_check(L, tarn_nest_get(L, k->nest), &s);
  tarn_cost_of(L, hw, k, &s, threads, &c);
  return c;
}
/* Threads that write rows of their own leave them in their own caches; columns lie in the rows of
 * both. */
TEST(parts_of_threads) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  tarn_ksig k = product_of(64, 64, 64, false);
  const tarn_level rows[] = {{0, TARN_PARALLEL, 4},
                             {1, TARN_SERIAL, 8},
                             {2, TARN_SERIAL, 1},
                             {0, TARN_UNROLL, 1},
                             {1, TARN_VECTOR, 1}};
  const tarn_level cols[] = {{1, TARN_PARALLEL, 8},
                             {0, TARN_SERIAL, 4},
                             {2, TARN_SERIAL, 1},
                             {0, TARN_UNROLL, 1},
                             {1, TARN_VECTOR, 1}};
  tarn_cost r = cost_with(hw, &k, 2, rows, 5, 2), c = cost_with(hw, &k, 2, cols, 5, 2);
  ck_assert_double_eq(r.parallel, c.parallel);
  ck_assert_msg(r.seconds < c.seconds, "%g by rows, %g by columns", r.seconds, c.seconds);
  r = cost_with(hw, &k, 2, rows, 5, 1), c = cost_with(hw, &k, 2, cols, 5, 1);
  ck_assert_double_eq(r.seconds, c.seconds); /* one thread owns all */
}
static tarn_cost best_cost(const tarn_hw *hw, const tarn_ksig *k, uint32_t threads) {
  tarn_cost c;
  tarn_solve(tarn_solver_new(L, hw, threads), k, &c);
  return c;
}
/* Weights that L1 does not hold come from main memory or, if cached, from the cache
 * before it: by each unit what it needs, and not again what the caches do not hold anyway. */
static tarn_cost cost_near(const tarn_hw *hw, const tarn_ksig *k, uint32_t parallel, bool near) {
  const tarn_level level[] = {{(uint8_t)parallel, TARN_PARALLEL, parallel ? 256 : 4},
                              {(uint8_t)(1 - parallel), TARN_SERIAL, parallel ? 1 : 8},
                              {(uint8_t)parallel, TARN_SERIAL, parallel ? 8 : 1},
                              {2, TARN_SERIAL, 1},
                              {0, TARN_UNROLL, 1},
                              {1, TARN_VECTOR, 1}};
  tarn_stage_sched st = {.nlevel = 6, .acc = 3};
  tarn_schedule s = {.nstage = 1, .stage = &st};
  tarn_cost c;
  memcpy(st.level, level, sizeof level);
  tarn_schedule_check(L, tarn_nest_get(L, k->nest), &s);
  loop_cost(L, hw, k, &s, 2, near, &c);
  return c;
}
TEST(weights_from_afar) {
  UNUSED;
  tarn_hw two = *shipped(machines[0]), *hw = &two;
  uint32_t last = hw->nmem - 2;
  tarn_hw_memory *mem = tarn_copy(cx, hw->mem, hw->nmem * sizeof *hw->mem);
  mem[last].serves = 2, two.mem = mem;
  double bytes = 4.0 * 512 * 64;
  tarn_ksig k = product_of(8, 512, 64, false), few = product_of(8, 512, 8, false);
  k.in_const[1] = few.in_const[1] = true;
  tarn_cost far = cost_near(hw, &k, 0, false), near = cost_near(hw, &k, 0, true),
            apart = cost_near(hw, &k, 1, true);
  ck_assert(hw->nmem > 2 && bytes > (double)hw->mem[0].capacity);
  ck_assert_double_eq(far.bytes[last], bytes);
  ck_assert(near.bytes[last] == 0 && near.bytes[last - 1] == bytes &&
            apart.bytes[last - 1] == bytes);
  ck_assert_double_lt(near.seconds, far.seconds);
  double both = near.memory_seconds[last - 1] - far.memory_seconds[last - 1];
  double each =
      apart.memory_seconds[last - 1] - cost_near(hw, &k, 1, false).memory_seconds[last - 1];
  ck_assert_double_eq_tol(both / each, 2, 1e-9);
  ck_assert_double_eq(cost_near(hw, &few, 0, false).seconds, cost_near(hw, &few, 0, true).seconds);
  tarn_solver *s = tarn_solver_new(L, hw, 2);
  tarn_solver_cache_weights(s);
  tarn_solve(s, &k, &near);
  ck_assert_double_lt(near.least, best_cost(hw, &k, 2).least);
}
/* Pieces of rows that come from main memory, more of them side by side than a processor foresees,
 * are waited for one by one: the narrower they are the longer. */
static double waits_for_rows(const tarn_hw *hw, int64_t rows, uint32_t wide) {
  tarn_ksig k = product_of(8, rows, 1500, false);
  const tarn_level level[] = {{2, TARN_SERIAL, wide}, {0, TARN_SERIAL, 4}, {1, TARN_SERIAL, 8},
                              {2, TARN_SERIAL, 1},    {0, TARN_UNROLL, 1}, {1, TARN_VECTOR, 1}};
  return cost_with(hw, &k, 3, level, 6, 1).memory_seconds[hw->nmem - 2];
}
TEST(rows_from_main_memory) {
  UNUSED;
  tarn_hw small = *shipped(machines[0]), *hw = &small;
  tarn_hw_memory *mem = tarn_copy(cx, hw->mem, hw->nmem * sizeof *hw->mem);
  small.mem = mem;
  ck_assert_double_eq(waits_for_rows(hw, 64, 32), 0);
  mem[hw->nmem - 2].capacity = 1 << 16; /* a row has 6 KB */
  double narrow = waits_for_rows(hw, 64, 32), broad = waits_for_rows(hw, 64, 128);
  ck_assert_msg(narrow > 1.5 * broad, "%g and %g", narrow, broad);
  ck_assert_double_eq(waits_for_rows(hw, 24, 32), waits_for_rows(hw, 24, 128));
}
/* So are they in a stage that copies a block for the others, wherever beyond the second cache they
 * lie: those that it goes along are not. */
TEST(rows_of_a_block) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  const char *text =
      "(kernel (nest (stages (children 2) (shared 16) (split 4) (stage (own 112 64 16) (reduce) "
      "(map $0) (child 0"
      " (index ((16 112 64 16) ()) (1835008) ((+ (* 1792 d0) (* 16 d1) (* 28672 d2) d3))))) (stage "
      "(own 64 112"
      " 16) (reduce 64) (red sum (mul $0 $1)) (child 1 (index ((16 64 112 16) (64)) (4096) ((+ (* "
      "64 d1) d4))))"
      " (stage 0 (index ((16 64 112 16) (64)) (112 64 16) (d2 d4 d3))) out)))(in f32 (1835008) (1))"
      "(const f32 (4096) (1))(out f32 (16 64 112 16) (1792 28672 16 1)))";
  tarn_ksig k;
  tarn_ksig_parse(L, text, strlen(text), &k);
  tarn_cost c[2];
  for (uint8_t first = 1; first <= 2; first++) {
    const tarn_level copy[] = {{first, TARN_SERIAL, 1},
                               {(uint8_t)(3 - first), TARN_SERIAL, 1},
                               {3, TARN_SERIAL, 8},
                               {3, TARN_VECTOR, 1}},
                     dot[] = {{1, TARN_SERIAL, 4}, {2, TARN_SERIAL, 1}, {3, TARN_SERIAL, 8},
                              {4, TARN_SERIAL, 1}, {1, TARN_UNROLL, 1}, {3, TARN_VECTOR, 1}};
    tarn_stage_sched st[2] = {{.nlevel = 4, .acc = 4}, {.nlevel = 6, .acc = 3}};
    memcpy(st[0].level, copy, sizeof copy), memcpy(st[1].level, dot, sizeof dot);
    tarn_schedule s = {.nshared = 1, .shared = {{0, TARN_SERIAL, 1}}, .nstage = 2, .stage = st};
    tarn_schedule_check(L, tarn_nest_get(L, k.nest), &s);
    tarn_cost_of(L, hw, &k, &s, 1, &c[first - 1]);
  }
  uint32_t l3 = hw->nmem - 3;
  double more = c[0].memory_seconds[l3] -
                c[1].memory_seconds[l3]; /* panels first: 64 rows of 64 bytes side by side */
  ck_assert_msg(more > 0.5 * c[1].memory_seconds[l3], "%g and %g", c[0].memory_seconds[l3],
                c[1].memory_seconds[l3]);
}
/* A sum in pieces is stored and taken up again; element by element where the lanes go across the
 * result's rows. */
TEST(pieces_of_sums) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  tarn_ksig k = product_of(64, 64, 64, false);
  double more[2];
  for (uint8_t lanes = 0; lanes < 2; lanes++) {
    uint8_t rows = 1 - lanes;
    const tarn_level cut[] = {{2, TARN_SERIAL, 16},    {rows, TARN_SERIAL, 4},
                              {lanes, TARN_SERIAL, 8}, {2, TARN_SERIAL, 1},
                              {rows, TARN_UNROLL, 1},  {lanes, TARN_VECTOR, 1}};
    more[lanes] = cost_with(hw, &k, 3, cut, 6, 1).compute_seconds -
                  cost_with(hw, &k, 2, cut + 1, 5, 1).compute_seconds;
  }
  ck_assert_msg(more[1] > 0 && more[0] > 2 * more[1], "%g across rows, %g along them", more[0],
                more[1]);
}
/* Where what all lanes share takes a register of its own, fourteen rows leave none for steps that
 * are written out; six rows of two vectors do. What a trip costs beside its work is the
 * description's. */
TEST(registers_of_what_is_spread) {
  UNUSED;
  tarn_hw hw = *shipped(machines[0]);
  tarn_ksig k = product_of(84, 96, 64, false);
  double each[2][2];
  for (int narrow = 0; narrow < 2; narrow++) {
    hw.spreads = narrow, hw.vector_regs = 16, hw.vector_bits = 256;
    for (int written = 0; written < 2; written++) {
      const tarn_level tall[] = {{0, TARN_SERIAL, 14}, {1, TARN_SERIAL, 8}, {2, TARN_SERIAL, 4},
                                 {2, TARN_UNROLL, 1},  {0, TARN_UNROLL, 1}, {1, TARN_VECTOR, 1}};
      const tarn_level wide[] = {{0, TARN_SERIAL, 6}, {1, TARN_SERIAL, 16}, {2, TARN_SERIAL, 4},
                                 {2, TARN_UNROLL, 1}, {0, TARN_UNROLL, 1},  {1, TARN_UNROLL, 8},
                                 {1, TARN_VECTOR, 1}};
      each[narrow][written] = written ? cost_with(&hw, &k, 2, wide, 7, 1).compute_seconds
                                      : cost_with(&hw, &k, 2, tall, 6, 1).compute_seconds;
    }
  }
  double more = (each[1][0] - each[0][0]) * hw.clock, products = 84 * 96 * 64 / 8 / 2;
  ck_assert_msg(more > 0.4 * products && more < products, "%g cycles more beside %g", more,
                products);
  ck_assert_double_eq(each[1][1], each[0][1]);
  static const int64_t tile[][2] = {
      {4, 3}, {3, 4}, {7, 2}}; /* rows, vectors: of the side with fewer, three and two are kept */
  for (uint32_t i = 0; i < 3; i++) {
    const tarn_level cut[] = {{0, TARN_SERIAL, tile[i][0]}, {1, TARN_SERIAL, 8 * tile[i][1]},
                              {2, TARN_SERIAL, 1},          {0, TARN_UNROLL, 1},
                              {1, TARN_UNROLL, 8},          {1, TARN_VECTOR, 1}};
    tarn_ksig p = product_of(12 * tile[i][0], 8 * 12 * tile[i][1], 64, false);
    double with[2];
    for (uint32_t r = 0; r < 2; r++)
      hw.vector_regs = 16 + 16 * r, with[r] = cost_with(&hw, &p, 2, cut, 6, 1).compute_seconds;
    double longer =
        (with[0] - with[1]) * hw.clock / (double)(144 * tile[i][0] * tile[i][1] * 64 / 2);
    ck_assert_msg(i < 2 ? longer == 0 : longer > 0.5 && longer < 1.5, "%u: %g", i, longer);
  }
  hw.vector_regs = 16;
  const tarn_level level[] = {{0, TARN_SERIAL, 4},
                              {1, TARN_SERIAL, 8},
                              {2, TARN_SERIAL, 1},
                              {0, TARN_UNROLL, 1},
                              {1, TARN_VECTOR, 1}};
  hw.trip = 0;
  double free = cost_with(&hw, &k, 2, level, 5, 1).compute_seconds;
  hw.trip = 2;
  double trips = (cost_with(&hw, &k, 2, level, 5, 1).compute_seconds - free) * hw.clock;
  ck_assert_double_eq_tol(trips, 2 * 21 * 12 * 64.0, 1e-3);
}
/* What of a level's transfers goes by beside computing is the description's. */
TEST(hidden_transfers) {
  UNUSED;
  tarn_hw hw = *shipped(machines[0]);
  tarn_hw_memory *mem = tarn_copy(cx, hw.mem, hw.nmem * sizeof *hw.mem);
  const tarn_level level[] = {{1, TARN_SERIAL, 16},
                              {0, TARN_SERIAL, 8},
                              {2, TARN_SERIAL, 1},
                              {0, TARN_UNROLL, 1},
                              {1, TARN_VECTOR, 1}};
  tarn_ksig k = product_of(64, 64, 2048, false);
  hw.mem = mem, mem[1].latency = 0, mem[1].read = 2048;
  double seconds[2];
  tarn_cost c;
  for (int i = 0; i < 2; i++)
    mem[1].hidden = i, c = cost_with(&hw, &k, 2, level, 5, 1), seconds[i] = c.seconds;
  ck_assert_msg(c.memory_seconds[0] > 0 && c.memory_seconds[0] < c.compute_seconds, "%g of %g",
                c.memory_seconds[0], c.compute_seconds);
  ck_assert_double_eq_tol((seconds[0] - seconds[1]) / c.memory_seconds[0], 1, 1e-9);
}
/* A depthwise convolution of 3 by 3 windows, channels innermost; step: of the windows. */
static tarn_ksig windows_of(int64_t step) {
  const int64_t dim[] = {14, 28, 32, 3, 3}, in[] = {14 * step + 2, 28 * step + 2, 32};
  uint32_t v[5];
  for (uint32_t i = 0; i < 5; i++) v[i] = tarn_ix_var(L, i, dim);
  tarn_imap m = {.ns = 3,
                 .n = 5,
                 .dim = {14, 28, 32, 3, 3},
                 .nin = 3,
                 .in = {in[0], in[1], in[2]},
                 .fill = TARN_NONE};
  m.e[0] = tarn_ix_add(L, tarn_ix_scale(L, v[0], step, dim), v[3], dim);
  m.e[1] = tarn_ix_add(L, tarn_ix_scale(L, v[1], step, dim), v[4], dim), m.e[2] = v[2];
  tarn_imap w = {.ns = 3,
                 .n = 5,
                 .dim = {14, 28, 32, 3, 3},
                 .nin = 3,
                 .in = {3, 3, 32},
                 .e = {v[3], v[4], v[2]},
                 .fill = TARN_NONE};
  tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &m)},
                      {.src = 1, .map = tarn_map_intern(L, &w)}};
  uint32_t body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  tarn_stage s = {
      .nown = 3,
      .nred = 2,
      .own = {14, 28, 32},
      .red = {3, 3},
      .read = read,
      .out = true,
  };
  s.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .nin = 2, .nout = 1};
  sig.in_type[0] = sig.in_type[1] = sig.out_type[0] = TARN_F32, sig.in_const[1] = true;
  sig.in[0] = tarn_layout_row_major(3, in), sig.in[1] = tarn_layout_row_major(3, w.in),
  sig.out[0] = tarn_layout_row_major(3, dim);
  tarn_ksig_canonical(L, &sig);
  return sig;
}
/* A small window is written out where there are registers for it, its last dim inside of a tile
 * along which windows overlap, so that each element is loaded once; a reduction without windows is
 * not. */
TEST(windows_are_written_out) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  for (int64_t step = 1; step <= 2; step++) {
    tarn_ksig k = windows_of(step);
    const tarn_stage_sched *s = tarn_solve(tarn_solver_new(L, hw, 1), &k, NULL)->stage;
    uint32_t nacc = tarn_nest_get(L, k.nest)->stage->nown,
             n = nacc + tarn_nest_get(L, k.nest)->stage->nred, tile = 0, last = 0;
    for (uint32_t i = s->acc; i < s->nlevel; i++) {
      ck_assert(s->level[i].kind == TARN_UNROLL || s->level[i].kind == TARN_VECTOR);
      if (s->level[i].dim < 2 && !tile) tile = i; /* rows or columns */
      if (s->level[i].dim == n - 1) last = i;
    }
    ck_assert_msg(tile && last > tile, "step %d: tile at level %u, window at %u", (int)step, tile,
                  last);
    tarn_schedule_check(L, tarn_nest_get(L, k.nest),
                        tarn_solve(tarn_solver_new(L, hw, 1), &k, NULL));
  }
  tarn_ksig p = product_of(64, 64, 11, false);
  const tarn_stage_sched *s = tarn_solve(tarn_solver_new(L, hw, 1), &p, NULL)->stage;
  for (uint32_t i = s->acc; i < s->nlevel; i++)
    ck_assert(s->level[i].dim != 2 || s->level[i].kind == TARN_SERIAL);
}
/* Lanes of short rows are several rows of a plane, where these follow one another in all that lies
 * along them. */
static void with_rows(void *user, const tarn_schedule *s, double seconds) {
  double *least = user;
  bool rows = tarn_schedule_rows(s->stage) != TARN_NONE;
  least[rows] = fmin(least[rows], seconds);
}
static tarn_ksig planes_of(int64_t width, int64_t border) {
  int64_t row = width + border;
  const char *text = tarn_format(cx,
                                 "(kernel (nest (stages (children 2) (shared) (split 3) (stage "
                                 "(own 64 6 %d) (reduce 3 3) (red sum (mul $0 $1)) (child 0"
                                 " (index ((64 6 %d) (3 3)) (%d) ((+ (* %d d0) (* %d d1) d2 (* %d "
                                 "d3) d4 %d)) (fill 0 ((+ d1 d3) 1 7) ((+ d2 d4) 1 %d))))"
                                 " (child 1 (index ((64 6 %d) (3 3)) (576) ((+ (* 9 d0) (* 3 d3) "
                                 "d4)))) out)))(in f32 (%d) (1))(const f32 (576) (1))"
                                 "(out f32 (64 6 %d) (%d %d 1)))",
                                 (int)width, (int)width, (int)(64 * 6 * row), (int)(6 * row),
                                 (int)row, (int)row, (int)-row - 1, (int)width + 1, (int)width,
                                 (int)(64 * 6 * row), (int)width, (int)(6 * width), (int)width);
  tarn_ksig k;
  tarn_ksig_parse(L, text, strlen(text), &k);
  return k;
}
TEST(lanes_of_rows) {
  UNUSED;
  const tarn_hw *hw = shipped("x86-64-v3"); /* eight lanes */
  const struct {
    int64_t width, border;
    bool rows;
  } planes[] = {{4, 0, true},  {3, 0, true},  {2, 0, true},
                {5, 0, false}, {8, 0, false}, {4, 2, false}};
  for (uint32_t i = 0; i < sizeof planes / sizeof *planes; i++) {
    double least[2] = {INFINITY, INFINITY};
    tarn_ksig k = planes_of(planes[i].width, planes[i].border);
    ck_assert(tarn_schedules(tarn_solver_new(L, hw, 1), &k, with_rows, least));
    ck_assert_msg(isfinite(least[1]) == planes[i].rows, "rows of %d, %d between them",
                  (int)planes[i].width, (int)planes[i].border);
    if (planes[i].rows) ck_assert_msg(least[1] < least[0], "%g by rows, %g", least[1], least[0]);
    tarn_schedule_check(L, tarn_nest_get(L, k.nest),
                        tarn_solve(tarn_solver_new(L, hw, 1), &k, NULL));
  }
}
/* All steps of a short innermost reduction may be written out; so many of a long one as divide it.
 */
static void most_written(void *user, const tarn_schedule *s, double seconds) {
  int64_t *all = user, left = INT64_MAX, most = 0;
  (void)seconds;
  for (uint32_t i = 0; i < s->stage->nlevel; i++) {
    const tarn_level *l = &s->stage->level[i];
    if (l->dim != 2) continue;
    if (i + 1 == s->stage->nlevel) return;                  /* the lanes walk it */
    int64_t steps = left < INT64_MAX ? left / l->step : 64; /* the whole reduction counts as many */
    if (l->kind == TARN_UNROLL) most = steps;
    left = l->step;
  }
  if (most > *all) *all = most;
}
TEST(short_reductions_are_written_out) {
  UNUSED;
  const int64_t steps[] = {3, 5, 11, 44}, want[] = {64, 64, 0, 4};
  for (uint32_t i = 0; i < 4; i++) {
    tarn_ksig k = product_of(64, 64, steps[i], false);
    int64_t most = 0;
    tarn_schedules(tarn_solver_new(L, shipped(machines[1]), 1), &k, most_written, &most);
    ck_assert_msg(most == want[i], "of %d steps %d", (int)steps[i], (int)most);
  }
}
typedef struct tap_count {
  const tarn_ksig *k;
  uint32_t n;
} tap_count;
static void count_taps(void *user, const tarn_schedule *s, double seconds) {
  tap_count *c = user;
  const tarn_stage *st = tarn_nest_get(L, c->k->nest)->stage;
  uint32_t taps = TARN_MAX_LEVELS, channels = TARN_MAX_LEVELS;
  for (uint32_t i = 0; i < s->stage->nlevel; i++) {
    const tarn_level *l = &s->stage->level[i];
    if (l->dim < st->nown) continue;
    if (st->red[l->dim - st->nown] == 2 && l->kind == TARN_UNROLL) taps = i;
    if (st->red[l->dim - st->nown] == 64 && l->kind == TARN_SERIAL) channels = i;
  }
  check_promises(c->k, s);
  ck_assert(seconds > 0);
  c->n += taps < TARN_MAX_LEVELS && channels < taps;
}
/* y[o][r][i]: 2 taps along the rows, 64 channels. The taps are written out within the loop over the
 * channels, so that rows of a tile share vectors. */
TEST(taps_are_written_out) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[1]);
  const int64_t dim[] = {3, 8, 64, 2, 64}, in[] = {64, 9, 65}, w[] = {3, 2, 64};
  for (int strict = 0; strict < 2; strict++) {
    uint32_t v[5];
    for (uint32_t i = 0; i < 5; i++) v[i] = tarn_ix_var(L, i, dim);
    tarn_imap a = {.ns = 3,
                   .n = 5,
                   .dim = {3, 8, 64, 2, 64},
                   .nin = 3,
                   .in = {64, 9, 65},
                   .fill = TARN_NONE},
              b = a;
    a.e[0] = v[4], a.e[1] = tarn_ix_add(L, v[1], v[3], dim), a.e[2] = v[2];
    memcpy(b.in, w, sizeof w), b.e[0] = v[0], b.e[1] = v[3], b.e[2] = v[4];
    tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &a)},
                        {.src = 1, .map = tarn_map_intern(L, &b)}};
    tarn_stage st = {
        .nown = 3,
        .nred = 2,
        .own = {3, 8, 64},
        .red = {2, 64},
        .read = read,
        .out = true,
    };
    uint32_t body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
    st.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
    tarn_nest nest = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &st};
    tarn_ksig k = {.nest = tarn_nest_intern(L, &nest), .strict = strict, .nin = 2, .nout = 1};
    k.in_type[0] = k.in_type[1] = k.out_type[0] = TARN_F32, k.in_const[1] = true;
    k.in[0] = tarn_layout_row_major(3, in), k.in[1] = tarn_layout_row_major(3, w),
    k.out[0] = tarn_layout_row_major(3, dim);
    tarn_ksig_canonical(L, &k);
    tap_count c = {&k, 0};
    ck_assert(tarn_schedules(tarn_solver_new(L, hw, 1), &k, count_taps, &c));
    ck_assert(strict || c.n > 0);
  }
}
/* Images of rows and columns, of so many channels: y[b][o][p]; each with weights of its own:
 * products. */
static tarn_ksig images_of(int64_t n, int64_t outs, int64_t places, int64_t channels,
                           bool products) {
  const int64_t dim[] = {n, outs, places, channels}, in[] = {n, channels, places},
                w[] = {n, outs, channels};
  uint32_t v[4];
  for (uint32_t i = 0; i < 4; i++) v[i] = tarn_ix_var(L, i, dim);
  tarn_imap a = {.ns = 3,
                 .n = 4,
                 .nin = 3,
                 .in = {n, channels, places},
                 .e = {v[0], v[3], v[2]},
                 .fill = TARN_NONE};
  tarn_imap b = {
      .ns = 3, .n = 4, .nin = 2, .in = {outs, channels}, .e = {v[1], v[3]}, .fill = TARN_NONE};
  tarn_imap each = {.ns = 3,
                    .n = 4,
                    .nin = 3,
                    .in = {n, outs, channels},
                    .e = {v[0], v[1], v[3]},
                    .fill = TARN_NONE};
  memcpy(a.dim, dim, sizeof dim), memcpy(b.dim, dim, sizeof dim), memcpy(each.dim, dim, sizeof dim);
  tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &a)},
                      {.src = 1, .map = tarn_map_intern(L, products ? &each : &b)}};
  tarn_stage s = {
      .nown = 3,
      .nred = 1,
      .own = {n, outs, places},
      .red = {channels},
      .read = read,
      .out = true,
  };
  uint32_t body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
  s.fn = tarn_fn_reduce(L, body, 2, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 3, .nstage = 1, .nchild = 2, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .nin = 2, .nout = 1};
  sig.in_type[0] = sig.in_type[1] = sig.out_type[0] = TARN_F32, sig.in_const[1] = !products;
  sig.in[0] = tarn_layout_row_major(3, in), sig.out[0] = tarn_layout_row_major(3, dim);
  sig.in[1] = products ? tarn_layout_row_major(3, w) : tarn_layout_row_major(2, w + 1);
  tarn_ksig_canonical(L, &sig);
  return sig;
}
static void count_orders(void *user, const tarn_schedule *s, double seconds) {
  tap_count *c = user;
  const tarn_level *l = s->stage->level;
  check_promises(c->k, s);
  ck_assert(seconds > 0);
  c->n += l[0].dim == 0 && l[1].dim == 2 && l[2].dim == 1;
}
/* Image by image, in each by places, at each all filters. */
TEST(orders_of_images) {
  UNUSED;
  tarn_ksig k = images_of(3, 24, 160, 64, false);
  tap_count c = {&k, 0};
  ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[1]), 1), &k, count_orders, &c));
  ck_assert(c.n > 0);
}
static void count_blocks(void *user, const tarn_schedule *s, double seconds) {
  tap_count *c = user;
  const tarn_level *l = s->stage->level;
  check_promises(c->k, s);
  ck_assert(seconds > 0);
  c->n += l[0].dim == 0 && l[1].dim == 3 && l[1].step >= 128;
}
/* Product by product, each by blocks of its reduction where it is large itself. */
TEST(blocks_of_products) {
  UNUSED;
  for (uint32_t threads = 1; threads <= 2; threads++) {
    tarn_ksig large = images_of(4, 1024, 1024, 1024, true),
              small = images_of(16, 128, 128, 512, true);
    tap_count a = {&large, 0}, b = {&small, 0};
    ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[1]), threads), &large,
                             count_blocks, &a));
    ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[1]), threads), &small,
                             count_blocks, &b));
    ck_assert_msg(a.n > 0 && b.n == 0, "%u and %u", a.n, b.n);
  }
}
/* Sums of rows: beyond the second caches few at a time. */
static tarn_ksig sums_of(int64_t rows, int64_t n) {
  const int64_t dim[] = {rows, n};
  tarn_imap m = {.ns = 1, .n = 2, .dim = {rows, n}, .nin = 2, .in = {rows, n}, .fill = TARN_NONE};
  for (uint32_t i = 0; i < 2; i++) m.e[i] = tarn_ix_var(L, i, dim);
  tarn_read read = {.src = 0, .map = tarn_map_intern(L, &m)};
  tarn_stage s = {
      .nown = 1,
      .nred = 1,
      .own = {rows},
      .red = {n},
      .read = &read,
      .out = true,
  };
  s.fn = tarn_fn_reduce(L, tarn_fx_hole(L, 0), 1, tarn_reducer_of(L, TARN_RED_SUM, TARN_F32));
  tarn_nest nest = {.out_ns = 1, .nstage = 1, .nchild = 1, .stage = &s};
  tarn_ksig sig = {.nest = tarn_nest_intern(L, &nest), .nin = 1, .nout = 1};
  sig.in_type[0] = sig.out_type[0] = TARN_F32;
  sig.in[0] = tarn_layout_row_major(2, dim), sig.out[0] = tarn_layout_row_major(1, dim);
  tarn_ksig_canonical(L, &sig);
  return sig;
}
static void most_along(void *user, const tarn_schedule *s, double seconds) {
  tap_count *c = user;
  int64_t rows = 1;
  bool along = false;
  check_promises(c->k, s);
  ck_assert(seconds > 0);
  for (uint32_t i = 0; i < s->stage->nlevel; i++) {
    const tarn_level *l = &s->stage->level[i];
    if (l->dim == 0 && l->kind == TARN_SERIAL) rows = l->step;
    along |= l->dim == 1 && l->kind == TARN_VECTOR;
  }
  if (along && rows > c->n) c->n = (uint32_t)rows;
}
TEST(sums_of_rows) {
  UNUSED;
  tarn_ksig near = sums_of(16, 1024), far = sums_of(16, 4 << 20);
  tap_count a = {&near, 0}, b = {&far, 0};
  ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[0]), 1), &near, most_along, &a));
  ck_assert(tarn_schedules(tarn_solver_new(L, shipped(machines[0]), 1), &far, most_along, &b));
  ck_assert_msg(a.n > 4 && b.n > 1 && b.n <= 4, "%u and %u rows at once", a.n, b.n);
}
TEST(prices_of_products) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[number]);
  double last = 0;
  for (int64_t n = 16; n <= 1024; n *= 2) {
    tarn_ksig k = product_of(n, n, n, false);
    tarn_cost one = best_cost(hw, &k, 1), two = best_cost(hw, &k, 2), four = best_cost(hw, &k, 4);
    double flops = 2.0 * (double)(n * n * n);
    ck_assert_double_eq(one.flops, flops);
    ck_assert_msg(one.seconds >= flops / 2 / tarn_hw_peak(hw, TARN_F32, 1),
                  "%d: faster than the machine", (int)n);
    ck_assert_msg(two.seconds >= flops / 2 / tarn_hw_peak(hw, TARN_F32, 2), "%d: faster than two",
                  (int)n);
    ck_assert_msg(one.seconds > last, "%d: %g after %g", (int)n, one.seconds, last);
    ck_assert(two.seconds <= one.seconds * 1.0001 + hw->barrier &&
              four.seconds <= two.seconds * 1.0001 + hw->barrier);
    if (n >= 256)
      ck_assert_msg(two.seconds < 0.75 * one.seconds, "%d: %g on one, %g on two", (int)n,
                    one.seconds, two.seconds);
    tarn_ksig s = product_of(n, n, n, true);
    ck_assert_double_ge(best_cost(hw, &s, 1).seconds,
                        0.98 * one.seconds); /* each the best of what is tried for it */
    last = one.seconds;
  }
}
/* Copying far more than the caches hold is bound by main memory: what is read and written passes
 * there once. */
TEST(price_of_copying) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[number]);
  tarn_ksig k = canonical_of("(compute (map (neg $0)) (input x ((67108864) ()) f32))");
  tarn_cost c = best_cost(hw, &k, 1);
  double bytes = 2 * 4.0 * 67108864;
  uint32_t last = hw->nmem - 2;
  ck_assert_msg(fabs(c.bytes[last] / bytes - 1) < 0.01, "%g bytes", c.bytes[last]);
  ck_assert_str_eq(c.binds, "dram");
  ck_assert(c.seconds >= bytes / (hw->mem[hw->nmem - 1].read * hw->clock));
  /* and a small one by its start, with nothing passing */
  tarn_ksig small = canonical_of("(compute (map (neg $0)) (input x ((16) ()) f32))");
  tarn_cost d = best_cost(hw, &small, 1);
  ck_assert(d.bytes[0] == 0 && d.bytes[last] == 0);
  ck_assert_str_eq(d.binds, "launch");
}

int main(void) {
  Suite *suite = suite_create("cost");
  TCase *t = tcase_create("cost");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, parallel_units);
  tcase_add_test(t, parts_of_threads);
  tcase_add_test(t, weights_from_afar);
  tcase_add_test(t, rows_from_main_memory);
  tcase_add_test(t, rows_of_a_block);
  tcase_add_test(t, pieces_of_sums);
  tcase_add_loop_test(t, windows_are_written_out, 0, 1);
  tcase_add_test(t, taps_are_written_out);
  tcase_add_test(t, lanes_of_rows);
  tcase_add_test(t, short_reductions_are_written_out);
  tcase_add_test(t, registers_of_what_is_spread);
  tcase_add_test(t, hidden_transfers);
  tcase_add_test(t, orders_of_images);
  tcase_add_test(t, blocks_of_products);
  tcase_add_test(t, sums_of_rows);
  tcase_add_loop_test(t, prices_of_products, 0, 3);
  tcase_add_loop_test(t, price_of_copying, 0, 3);
  suite_add_tcase(suite, t);
  SRunner *r = srunner_create(suite);
  srunner_run_all(r, CK_NORMAL);
  int bad = srunner_ntests_failed(r);
  srunner_free(r);
  return bad ? 1 : 0;
}
