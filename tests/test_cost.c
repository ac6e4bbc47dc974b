/* price/: prices of schedules. (Which ones are proposed: test_search.c.) */
#include "tests/loop_tests.h"

TEST(parallel_units) {
  UNUSED;
  tarn_stage_work m = {.n = 2, .nacc = 2, .dim = {10, 6}};
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
static tarn_cost cost_on_host(const tarn_hw *hw, const tarn_ksig *k, uint32_t threads) {
  tarn_cost c;
  tarn_solver *s = tarn_solver_new(L, hw, threads);
  tarn_solver_of_host(s);
  tarn_solve(s, k, &c);
  return c;
}
static tarn_ksig copy_of(long long n) {
  tarn_ksig k;
  const char *text = tarn_format(
      cx,
      "(kernel (nest (stages (children 1) (shared) (split 1) (stage (own %lld) (reduce) (map $0) "
      "(child 0 (index ((%lld) ()) (%lld) ((* 2 d0)))) out)))(in f32 (%lld) (1))(out f32 (%lld) "
      "(1)))",
      n, n, 2 * n, 2 * n, n);
  tarn_ksig_parse(L, text, strlen(text), &k);
  return k;
}
/* Where threads of a host wait longer for one another than one of them copies, one copies all. */
TEST(small_copies_have_one_thread) {
  UNUSED;
  static const int64_t sizes[] = {3, 40, 300, 1 << 18};
  const tarn_hw *hw = shipped("riscv64");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t n = sizes[i];
    tarn_ksig k = copy_of(n);
    tarn_cost four = cost_on_host(hw, &k, 4);
    tarn_cost one = cost_on_host(hw, &k, 1);
    ck_assert_msg(four.seconds <= 1.1 * one.seconds, "%lld: %g s on four threads, %g s on one",
                  (long long)n, four.seconds, one.seconds);
    ck_assert_msg((four.parallel > 1) == (n >= 1 << 18), "%lld: %g threads", (long long)n,
                  four.parallel);
  }
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

/* A price's memory is released: what reading intrinsics interned in the language is not in it. */
TEST(language_behind_a_price) {
  UNUSED;
  const tarn_hw *hw = shipped("x86-64-bf16");
  const tarn_level level[] = {{2, TARN_SERIAL, 1}, {0, TARN_UNROLL, 1}, {1, TARN_UNROLL, 1}};
  uint32_t a = tarn_fx_cast(L, TARN_F32, tarn_fx_hole(L, 0)),
           b = tarn_fx_cast(L, TARN_F32, tarn_fx_hole(L, 1));
  tarn_ksig k = sum_over(4, 16, 64, false, tarn_fx_op(L, TARN_FX_MUL, a, b, 0));
  k.in_type[0] = k.in_type[1] = TARN_BF16;
  double first = cost_with(hw, &k, 1, level, 3, 1).seconds;
  for (uint32_t i = 0; i < 64; i++) memset(tarn_new(cx, 1 << 16), 0xff, 1 << 16);
  ck_assert_double_eq(cost_with(hw, &k, 1, level, 3, 1).seconds, first);
}

int main(void) {
  TCase *t = tcase_create("cost");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, parallel_units);
  tcase_add_test(t, parts_of_threads);
  tcase_add_test(t, small_copies_have_one_thread);
  tcase_add_test(t, weights_from_afar);
  tcase_add_test(t, rows_from_main_memory);
  tcase_add_test(t, rows_of_a_block);
  tcase_add_test(t, pieces_of_sums);
  tcase_add_test(t, registers_of_what_is_spread);
  tcase_add_test(t, hidden_transfers);
  tcase_add_test(t, language_behind_a_price);
  tcase_add_loop_test(t, prices_of_products, 0, 3);
  tcase_add_loop_test(t, price_of_copying, 0, 3);
  return run_checks("cost", t);
}
