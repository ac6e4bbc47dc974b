/* lower/: code for processors with 256-bit vectors and no mask registers (`spreads`). */
#include "tests/lower_setup.h"

/* Rows of 7: where registers hold masks one store under a mask each, else three of 4, 2 and 1
 * lanes. */
static void short_rows_job(tarn_ctx *c, void *arg) {
  (void)arg;
  const int64_t dim[] = {9, 7};
  tarn_imap a = {.ns = 2, .n = 2, .nin = 2, .fill = TARN_NONE, .dim = {9, 7}, .in = {9, 7}};
  for (uint32_t i = 0; i < 2; i++) a.e[i] = tarn_ix_var(L, i, dim);
  tarn_read read[1] = {{.map = tarn_map_intern(L, &a)}};
  tarn_stage st = {.nown = 2, .own = {9, 7}, .read = read, .out = true};
  st.fn = tarn_fn_map(L, tarn_fx_op(L, TARN_FX_NEG, tarn_fx_hole(L, 0), 0, 0), 1);
  tarn_nest n = {.out_ns = 2, .nstage = 1, .nchild = 1, .stage = &st};
  kit_case k = {.nest = tarn_nest_intern(L, &n),
                .nin = 1,
                .nout = 1,
                .in_type = {TARN_F32},
                .out_type = {TARN_F32}};
  k.in[0] = k.out[0] = tarn_layout_row_major(2, dim),
  k.value[0] = kit_tensor(cx, TARN_F32, 2, dim, 1);
  tarn_stage_sched ss = {.nlevel = 3,
                         .acc = 3,
                         .level = {{0, TARN_SERIAL, 1}, {1, TARN_SERIAL, 8}, {1, TARN_VECTOR, 1}}};
  tarn_schedule sched = {.nstage = 1, .stage = &ss};
  k.sched = &sched;
  for (uint32_t bits = 256; bits <= 512; bits *= 2) {
    tarn_hw on = *kit_host(cx);
    on.triple = "x86_64-pc-linux-gnu", on.cpu = bits == 512 ? "skylake-avx512" : "haswell",
    on.features = "", on.vector_bits = bits, on.spreads = bits == 256;
    uint32_t masked = kit_lines(L, &on, &k, "call void @llvm.masked.store"),
             plain = kit_lines(L, &on, &k, "store <7 x float>");
    if (masked != (bits == 512) || plain != (bits == 256))
      tarn_raise(c, TARN_NO, "%u bits: %u stores under a mask, %u others", bits, masked, plain);
  }
  kit_reference(L, &k, TARN_STRICT);
  kit_run(L, kit_host(cx), &k, 1, true, 1);
  if (kit_error(k.want[0], k.got[0]) != 0) tarn_raise(c, TARN_NO, "rows of 7 differ");
}

/* The greatest of each row of 64, in lanes of 8, with a NaN at each place of one: it is kept,
 * whichever came first. */
static void greatest_job(tarn_ctx *c, void *arg) {
  (void)arg;
  const int64_t dim[] = {65, 64};
  tarn_imap a = {.ns = 1, .n = 2, .nin = 2, .fill = TARN_NONE, .dim = {65, 64}, .in = {65, 64}};
  for (uint32_t i = 0; i < 2; i++) a.e[i] = tarn_ix_var(L, i, dim);
  tarn_read read[1] = {{.map = tarn_map_intern(L, &a)}};
  tarn_func fn = {.nops = 1,
                  .red = tarn_reducer_of(L, TARN_RED_MAX, TARN_F32),
                  .epi = TARN_NONE,
                  .body = tarn_fx_hole(L, 0)};
  tarn_stage st = {
      .nown = 1,
      .nred = 1,
      .own = {65},
      .red = {64},
      .read = read,
      .out = true,
  };
  st.fn = tarn_fn_intern(L, &fn);
  tarn_nest n = {.out_ns = 1, .nstage = 1, .nchild = 1, .stage = &st};
  kit_case k = {.nest = tarn_nest_intern(L, &n),
                .nin = 1,
                .nout = 1,
                .in_type = {TARN_F32},
                .out_type = {TARN_F32}};
  k.in[0] = tarn_layout_row_major(2, dim), k.out[0] = tarn_layout_row_major(1, dim);
  k.value[0] = kit_tensor(cx, TARN_F32, 2, dim, 1);
  for (int row = 0; row < 64; row++) ((float *)k.value[0]->data)[64 * row + row] = NAN;
  tarn_stage_sched ss = {
      .nlevel = 4,
      .acc = 1,
      .level = {
          {0, TARN_SERIAL, 1}, {1, TARN_SERIAL, 16}, {1, TARN_UNROLL, 8}, {1, TARN_VECTOR, 1}}};
  tarn_schedule sched = {.nstage = 1, .stage = &ss};
  k.sched = &sched;
  tarn_hw on = *kit_host(cx);
  if (on.vector_bits > 256)
    on.cpu = "haswell", on.features = "+avx2,+fma", on.vector_bits = 256, on.spreads = true;
  kit_reference(L, &k, TARN_STRICT);
  kit_run(L, &on, &k, 1, true, 1);
  if (kit_error(k.want[0], k.got[0]) != 0) tarn_raise(c, TARN_NO, "the greatest of a row differs");
}

/* Vectors that the code of a tile of so many rows by so many vectors puts into memory beside its
 * results. */
static uint32_t spills_of(kit_case *k, bool spreads) {
  tarn_hw on = *kit_host(cx);
  on.triple = "x86_64-pc-linux-gnu", on.cpu = "haswell", on.features = "", on.vector_bits = 256,
  on.vector_regs = 16;
  on.spreads = spreads;
  const char *dir = kit_compile(kit_program(L, &on, k, 1), true, TARN_EMIT_ASM);
  FILE *f = fopen(tarn_format(cx, "%s/model.s", dir), "r");
  char line[4096];
  uint32_t n = 0;
  while (f && fgets(line, sizeof line, f))
    n += strstr(line, "ymm") && (strstr(line, "(%rsp)") || strstr(line, "(%rbp)"));
  if (f) fclose(f);
  kit_remove(cx, dir);
  return n;
}
/* Twelve sums leave four registers: a tile goes by the side that has fewer vectors, whatever the
 * order of its loops. */
static void few_registers_job(tarn_ctx *c, void *arg) {
  (void)arg;
  static const int64_t tile[][2] = {{3, 4}, {2, 6}, {4, 3}, {6, 2}}; /* rows, vectors */
  uint32_t listed = 0;
  for (uint32_t i = 0; i < 4; i++) {
    const int64_t rows = tile[i][0], cols = 8 * tile[i][1],
                  dim[] = {5 * rows + 1, 2 * cols + 3, 37};
    tarn_imap a = {.ns = 2,
                   .n = 3,
                   .nin = 2,
                   .fill = TARN_NONE,
                   .dim = {dim[0], dim[1], dim[2]},
                   .in = {dim[0], dim[2]}},
              b = a;
    a.e[0] = tarn_ix_var(L, 0, dim), a.e[1] = tarn_ix_var(L, 2, dim);
    b.in[0] = dim[2], b.in[1] = dim[1], b.e[0] = tarn_ix_var(L, 2, dim),
    b.e[1] = tarn_ix_var(L, 1, dim);
    tarn_read read[2] = {{.map = tarn_map_intern(L, &a)},
                         {.src = 1, .map = tarn_map_intern(L, &b)}};
    tarn_func fn = {.nops = 2, .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32), .epi = TARN_NONE};
    fn.body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0);
    tarn_stage st = {
        .nown = 2, .nred = 1, .own = {dim[0], dim[1]}, .red = {dim[2]}, .read = read, .out = true};
    st.fn = tarn_fn_intern(L, &fn);
    tarn_nest n = {.out_ns = 2, .nstage = 1, .nchild = 2, .stage = &st};
    kit_case k = {.nest = tarn_nest_intern(L, &n),
                  .nin = 2,
                  .nout = 1,
                  .in_type = {TARN_F32, TARN_F32},
                  .out_type = {TARN_F32}};
    const int64_t left[] = {dim[0], dim[2]}, right[] = {dim[2], dim[1]};
    k.in[0] = tarn_layout_row_major(2, left), k.in[1] = tarn_layout_row_major(2, right),
    k.out[0] = tarn_layout_row_major(2, dim);
    k.value[0] = kit_tensor(cx, TARN_F32, 2, left, 1),
    k.value[1] = kit_tensor(cx, TARN_F32, 2, right, 1);
    tarn_stage_sched ss = {.nlevel = 6,
                           .acc = 2,
                           .level = {{1, TARN_SERIAL, cols},
                                     {0, TARN_SERIAL, rows},
                                     {2, TARN_SERIAL, 1},
                                     {0, TARN_UNROLL, 1},
                                     {1, TARN_UNROLL, 8},
                                     {1, TARN_VECTOR, 1}}};
    tarn_schedule sched = {.nstage = 1, .stage = &ss};
    k.sched = &sched;
    uint32_t spills = spills_of(&k, true);
    if (i < 2) listed += spills_of(&k, false);
    if (spills)
      tarn_raise(c, TARN_NO, "%d rows of %d vectors: %u through memory", (int)rows, (int)tile[i][1],
                 spills);
    tarn_hw on = *kit_host(cx);
    on.spreads = true, on.vector_regs = 16;
    kit_reference(L, &k, TARN_STRICT);
    kit_run(L, &on, &k, 1, true, 1);
    double off = kit_error(k.want[0], k.got[0]);
    if (!(off >= 0 && off < 1e-5)) tarn_raise(c, TARN_NO, "off by %g", off);
  }
  if (!listed)
    tarn_raise(c, TARN_NO, "in the order of the loops nothing goes through memory either");
}

/* Windows of 3 by 3 at a step of two over padded planes of 22 by 42: rows of 21 results are two
 * whole vectors and a part. */
#define WINDOWS                                                                                    \
  "(index ((3 11 21) (3 3)) (2772) ((+ (* 924 d0) (* 84 d1) (* 2 d2) (* 42 d3) d4 -43))"
#define BORDERS "((+ (* 2 d1) d3) 1 23) ((+ (* 2 d2) d4) 1 43)))"
static const char sums[] =
    "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own 3 11 21) (reduce 3 3) (red "
    "sum (mul $0 $1)) (child 1"
    " (index ((3 11 21) (3 3)) (27) ((+ (* 9 d0) (* 3 d3) d4)))) (child 0 " WINDOWS
    " (fill 0 " BORDERS
    ") out)))(in f32 (2772) (1))(const f32 (27) (1))(out f32 (3 11 21) (231 21 1)))";
static const char greatest_of[] =
    "(kernel (nest (stages (children 1) (shared) (split 3) (stage (own 3 11 21) (reduce 3 3) (red "
    "max $0) (child 0 " WINDOWS " (fill -inf " BORDERS
    ") out)))(in f32 (2772) (1))(out f32 (3 11 21) (231 21 1)))";
static const char *const walks[] = {
    "(schedule (stage (acc 3) (serial 0 1) (serial 1 4) (serial 2 8) (unroll 3 1) (unroll 1 1) "
    "(unroll 4 1) (vector 2 1)))",
    "(schedule (stage (acc 3) (serial 0 1) (serial 1 1) (serial 2 8) (serial 3 1) (unroll 4 1) "
    "(vector 2 1)))",
    /* each row of a window by itself: partial results lie in memory in their own order */
    "(schedule (stage (acc 4) (serial 3 1) (serial 0 1) (serial 1 2) (serial 2 8) (unroll 1 1) "
    "(unroll 4 1) (vector 2 1)))"};
static void every_second_job(tarn_ctx *c, void *arg) {
  (void)arg;
  for (uint32_t i = 0; i < 6; i++) {
    const char *text = i % 2 ? greatest_of : sums, *walk = walks[i / 2];
    kit_case e = kit_case_text(L, text, walk);
    tarn_hw on = *kit_host(cx);
    on.triple = "x86_64-pc-linux-gnu", on.cpu = "haswell", on.features = "", on.vector_bits = 256;
    uint32_t halves[2];
    for (uint32_t spreads = 0; spreads < 2; spreads++) {
      on.spreads = spreads;
      halves[spreads] =
          kit_lines(L, &on, &e, "<i32 0, i32 2, i32 8, i32 10, i32 4, i32 6, i32 12, i32 14>");
    }
    if (halves[0] || !halves[1])
      tarn_raise(c, TARN_NO, "case %u: %u and %u vectors by halves", i, halves[0], halves[1]);
    on = *kit_host(cx);
    if (on.vector_bits > 256) on.cpu = "haswell", on.features = "+avx2,+fma", on.vector_bits = 256;
    on.spreads = true;
    kit_reference(L, &e, TARN_STRICT);
    kit_run(L, &on, &e, 1, true, 1);
    double off = kit_error(e.want[0], e.got[0]);
    if (!(off >= 0 && off < 1e-6)) tarn_raise(c, TARN_NO, "case %u: off by %g", i, off);
  }
}

/* Products of pairs of bf16 that are computed first, in f32 and rounded. */
static bool sums_pairs(void) {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}
static void computed_job(tarn_ctx *c, void *arg) {
  static const char text[] = "(kernel (nest (stages (children 2) (shared) (split 1) (stage (own 7) "
                             "(reduce 6) (red sum (let "
                             "((%0 (cast f32 (min (mul $0 $0) $1)))) (mul %0 %0))) (child 0 (index "
                             "((7) (6)) (42) ((+ (* 6 "
                             "d0) d1)))) (child 1 (index ((7) (6)) (42) ((+ (* 6 d0) d1)))) "
                             "out)))(in bf16 (42) (1))(in bf16 "
                             "(42) (1))(out f32 (7) (1)))";
  static const char walk[] =
      "(schedule (stage (acc 1) (serial 0 8) (serial 1 2) (vector 0 1) (dot 1 1)))";
  const tarn_hw *on = tarn_hw_load(L, "x86-64-bf16");
  (void)arg;
  kit_case k = kit_case_text(L, text, walk);
  if (!kit_lines(L, on, &k, "@llvm.x86.avx512bf16.dpbf16ps."))
    tarn_raise(c, TARN_NO, "no instruction of pairs");
  if (!sums_pairs()) return;
  kit_reference(L, &k, TARN_STRICT);
  kit_run(L, on, &k, 1, true, 1);
  double off = kit_error(k.want[0], k.got[0]);
  if (!(off >= 0 && off < 1e-5)) tarn_raise(c, TARN_NO, "off by %g", off);
}

static void must(void (*job)(tarn_ctx *, void *)) {
  tarn_status st = tarn_protect(cx, job, NULL);
  ck_assert_msg(st == TARN_OK, "%d: %s", st, tarn_message(cx));
}
START_TEST(short_rows) { must(short_rows_job); }
END_TEST
START_TEST(few_registers) { must(few_registers_job); }
END_TEST
START_TEST(computed_pairs) { must(computed_job); }
END_TEST
START_TEST(every_second) { must(every_second_job); }
END_TEST
START_TEST(greatest) { must(greatest_job); }
END_TEST

int main(void) {
  TCase *t = tcase_create("narrow");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, short_rows);
  tcase_add_test(t, greatest);
  tcase_add_test(t, few_registers);
  tcase_add_test(t, every_second);
  tcase_add_test(t, computed_pairs);
  return run_checks("lower_narrow", t);
}
