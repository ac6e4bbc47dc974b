/* price/: the schedules that the search for a CPU proposes. */
#include "tests/loop_tests.h"

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

/* ---- what is dismissed before it is priced to the end ---- */
typedef struct pricing {
  const tarn_hw *hw;
  const tarn_stage_work *m;
  loop_room room;
  uint32_t threads;
  uint32_t dismissed; /* of those that take twice as long as is asked for */
  double least;
  const char *best; /* the first of so many seconds, as text */
} pricing;
static double seconds_below(pricing *p, const tarn_stage_sched *s, double most) {
  tarn_cost c = {0};
  if (!loop_stage_below(p->hw, p->m, NULL, 0, s, p->threads, most, &p->room, &c)) return INFINITY;
  return loop_overlapped(p->hw, &c, NULL) + (c.parallel > 1 ? p->hw->barrier : 0);
}
static void price_below(void *user, const tarn_schedule *s, double seconds) {
  static const double by[] = {0.5, 0.9, 0.999, 1.001, 2};
  pricing *p = user;
  for (uint32_t i = 0; i < sizeof by / sizeof *by; i++) {
    double t = seconds_below(p, s->stage, seconds * by[i]);
    MUST(t == seconds || (by[i] < 1 && t == INFINITY));
    p->dismissed += i == 0 && t == INFINITY;
  }
  if (seconds < p->least) p->least = seconds, p->best = tarn_schedule_text(cx, s);
}
/* With one thread in the place of several. */
static const char *serial(const char *schedule) {
  tarn_buf b = {.cx = cx};
  for (const char *p = schedule, *q; *p; p = q) {
    q = strstr(p, "(parallel ");
    if (!q) q = p + strlen(p);
    tarn_buf_add(&b, p, (size_t)(q - p));
    if (*q) tarn_buf_str(&b, "(serial "), q += strlen("(parallel ");
  }
  tarn_buf_add(&b, "", 1);
  return b.p;
}
/* Each is dismissed rightly, and with all that are dismissed the search finds what it finds
 * without; or the same on one thread, where that is faster. */
static uint32_t dismiss(const tarn_hw *hw, const tarn_ksig *k, uint32_t threads) {
  static pricing p;
  const tarn_kernel_work *km = tarn_work_of(L, hw, k);
  p.hw = hw, p.threads = threads, p.m = km->stage, p.least = INFINITY, p.dismissed = 0;
  if (km->nstage > 1) return 0;
  loop_room_begin(&p.room);
  ck_assert(tarn_schedules(tarn_solver_new(L, hw, threads), k, price_below, &p));
  const tarn_schedule *s = tarn_solve(tarn_solver_new(L, hw, threads), k, NULL);
  const char *found = tarn_schedule_text(cx, s);
  bool one = !strstr(found, "(parallel ");
  ck_assert_str_eq(found, one ? serial(p.best) : p.best);
  return p.dismissed;
}
TEST(dismissed_early) {
  UNUSED;
  const tarn_hw *hw = shipped(machines[number % 3]);
  uint32_t threads = number < 3 ? 1 : 4;
  tarn_ksig k[] = {product_of(64, 64, 64, false),
                   product_of(5, 1000, 300, true),
                   product_of(196, 256, 1024, false),
                   windows_of(1),
                   windows_of(2),
                   images_of(3, 24, 160, 64, false),
                   sums_of(16, 4 << 20)};
  for (uint32_t i = 0; i < sizeof k / sizeof *k; i++) {
    uint32_t dismissed = dismiss(hw, &k[i], threads);
    ck_assert_uint_gt(dismissed, 0);
  }
  for (int i = 0; i < 60; i++) {
    loop_case s;
    random_single(&s, below(2), below(5) == 0);
    s.sig.strict = below(3) == 0;
    tarn_ksig_canonical(L, &s.sig);
    dismiss(hw, &s.sig, threads);
  }
}

int main(void) {
  TCase *t = tcase_create("search");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, windows_are_written_out, 0, 1);
  tcase_add_test(t, taps_are_written_out);
  tcase_add_test(t, lanes_of_rows);
  tcase_add_test(t, short_reductions_are_written_out);
  tcase_add_test(t, orders_of_images);
  tcase_add_test(t, blocks_of_products);
  tcase_add_test(t, sums_of_rows);
  tcase_add_loop_test(t, dismissed_early, 0, 6);
  return run_checks("search", t);
}
