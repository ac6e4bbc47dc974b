/* plan/: what the search alone finds for known cases: tiles of ResNet-18's
 * layers in the memories of a VTA, when an addition is computed where a
 * convolution reads it, rows that roll. */
#include "tests/lower_cases.h"

#include "plan/tiles.h"

static tarn_ksig kernel(const char *text) {
  tarn_ksig k;
  tarn_ksig_parse(L, text, strlen(text), &k);
  return k;
}

/* ---- layers, in entries of 16 channels ---- */
/* Bytes of the best tiles by brute force, with one slot for each operand and
 * with two. */
static const struct layer {
  const char *name;
  int in, out, size, window, stride; /* in, out: blocks of 16 channels */
  int64_t once, one_slot, two_slots;
} layers[] = {
    {"C2", 4, 4, 56, 3, 1, 438272, 467712, 483328},
    {"C3", 4, 8, 56, 3, 2, 374784, 382016, 389312},
    {"C4", 4, 8, 56, 1, 2, 158720, 158720, 158720},
    {"C5", 8, 8, 28, 3, 1, 348160, 363008, 478208},
    {"C6", 8, 16, 28, 3, 2, 445440, 545792, 656896},
    {"C7", 8, 16, 28, 1, 2, 108032, 108032, 108032},
    {"C8", 16, 16, 14, 3, 1, 690176, 740352, 840704},
    {"C9", 16, 32, 14, 3, 2, 1254912, 1254912, 1305088},
    {"C10", 16, 32, 14, 1, 2, 168704, 168704, 168704},
    {"C11", 32, 32, 7, 3, 1, 2409472, 2409472, 2434560},
};
static tarn_ksig layer_kernel(const struct layer *l) {
  int o = l->size / l->stride, k = l->window, s = l->size, pad = k / 2;
  const char *text =
      tarn_format(cx,
                  "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own %d %d "
                  "%d) (reduce %d %d "
                  "%d) (red sum (mul $0 $1)) (child 0 (index ((%d %d %d) (%d %d %d)) (%d) "
                  "((+ (* %d d1) (* %d "
                  "d2) (* %d d3) (* %d d4) d5 %d))%s)) (child 1 (index ((%d %d %d) (%d %d "
                  "%d)) (%d) ((+ (* %d "
                  "d0) (* %d d3) (* %d d4) d5)))) out)))(in f32 (%d) (1))(in f32 (%d) "
                  "(1))(out f32 (%d %d %d) "
                  "(%d %d 1)))",
                  l->out, o, o, l->in, k, k, l->out, o, o, l->in, k, k, l->in * s * s,
                  l->stride * s, l->stride, s * s, s, -pad * (s + 1),
                  pad ? tarn_format(cx, " (fill 0 ((+ (* %d d1) d4) 1 %d) ((+ (* %d d2) d5) 1 %d))",
                                    l->stride, s + 1, l->stride, s + 1)
                      : "",
                  l->out, o, o, l->in, k, k, l->out * l->in * k * k, l->in * k * k, k * k, k,
                  l->in * s * s, l->out * l->in * k * k, l->out, o, o, o * o, o);
  return kernel(text);
}
START_TEST(layers_move_little) {
  const struct layer *l = &layers[_i / 2];
  bool twice = _i % 2;
  tarn_ksig k = layer_kernel(l);
  tarn_tile_space s = {.kernel = &k, .nmem = 3, .capacity = {32768, 262144, 131072}};
  tarn_tiles t;
  s.operand[0] = (tarn_tile_place){"inp", 0, 16, 16, twice ? 2 : 1, true};
  s.operand[1] = (tarn_tile_place){"wgt", 1, 256, 256, twice ? 2 : 1, true};
  s.accumulators = (tarn_tile_place){"acc", 2, 64, 16, twice ? 2 : 1, true};
  for (uint32_t d = 0; d < 6; d++) s.unit[d] = 1;
  ck_assert(tarn_tiles_search(L, &s, &t));
  ck_assert_int_eq(t.compulsory, l->once);
  int64_t known = twice ? l->two_slots : l->one_slot;
  ck_assert_msg((double)t.bytes <= 1.06 * (double)known, "%s, %d slots: %lld bytes, known %lld",
                l->name, 1 + twice, (long long)t.bytes, (long long)known);
}
END_TEST

/* ---- an addition before a 1 x 1 convolution: 2048 channels to 512, 56 x 56
 * ---- */
#define WEIGHTS  "(child 0 (index ((512 3136) (2048)) (1048576) ((+ (* 2048 d0) d2))))"
#define IMAGE(n) "(child " #n " (index ((512 3136) (2048)) (6422528) ((+ d1 (* 3136 d2)))))"
#define ENDS     "(out f32 (512 3136) (3136 1)))"
#define IN       "(in f32 (6422528) (1))"
static const char plain[] =
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 512 "
    "3136) (reduce 2048) (red "
    "sum (mul $0 $1)) " WEIGHTS IMAGE(1) " out)))(in f32 (1048576) (1))" IN ENDS;
static const char added[] = "(kernel (nest (stages (children 3) (shared) (split 2) (stage (own 512 "
                            "3136) (reduce 2048) (red "
                            "sum (mul $0 (add $1 $2))) " WEIGHTS IMAGE(1)
                                IMAGE(2) " out)))(in f32 (1048576) (1))" IN IN ENDS;
enum { IMAGE_ELEMENTS = 6422528 };
/* Elements that the holds of a schedule move: filters in so many passes over
 * the image. */
static int64_t moved(const char *text, int64_t passes, uint32_t images) {
  tarn_ksig k = kernel(text);
  const tarn_nest *n = tarn_nest_get(L, k.nest);
  tarn_stage_dims d = tarn_stage_dims_of(n, 0);
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b,
               "(schedule (stage (acc 2) (serial 0 %lld) (serial 1 112) "
               "(serial 0 1) (serial 1 1) "
               "(serial 2 1) (hold 0 sram (at 0))",
               (long long)tarn_ceildiv(512, passes));
  for (uint32_t i = 1; i <= images; i++) tarn_buf_fmt(&b, " (hold %u sram (at 1))", i);
  tarn_buf_str(&b, " (hold result sram (at 1))))");
  const tarn_schedule *s = tarn_schedule_parse(L, n, b.p, strlen(b.p));
  int64_t sum = 0;
  for (uint32_t i = 0; i < s->stage->nhold; i++)
    sum += tarn_hold_traffic(L, &d, s->stage, &s->stage->hold[i]).elements;
  return sum;
}
/* Computed where it is read, the addition is worth it only where the image is
 * read fewer than three times: apart, it reads two images and writes one. */
static const struct fusion {
  int64_t reads, apart, together;
} fusions[] = {{1, 28344320, 15499264},
               {2, 34766848, 28344320},
               {3, 41189376, 41189376},
               {22, 163217408, 285245440},
               {64, 432963584, 824737792}};
START_TEST(additions_are_fused) {
  const struct fusion *f = &fusions[_i];
  int64_t apart = 3 * (int64_t)IMAGE_ELEMENTS + moved(plain, f->reads, 1);
  int64_t together = moved(added, f->reads, 2);
  ck_assert_int_eq(apart, f->apart);
  ck_assert_int_eq(together, f->together);
  ck_assert((together < apart) == (f->reads < 3));
}
END_TEST
/* Each with the best tiles of its own: a large memory holds all weights, a
 * small one does not. */
static int64_t searched(const char *text, int64_t elements, uint32_t operands) {
  tarn_ksig k = kernel(text);
  tarn_tile_space s = {.kernel = &k, .nmem = 1, .capacity = {elements}};
  tarn_tiles t;
  for (uint32_t i = 0; i < operands; i++)
    s.operand[i] = (tarn_tile_place){"sram", 0, 1, 1, 1, false};
  s.accumulators = s.operand[0];
  s.unit[0] = s.unit[1] = s.unit[2] = 1;
  ck_assert(tarn_tiles_search(L, &s, &t));
  return t.bytes;
}
START_TEST(tiles_decide_fusion) {
  static const struct {
    int64_t kib;
    bool fused;
  } sizes[] = {{16, false}, {32, true}, {1536, true}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t elements = sizes[i].kib * 1024;
    int64_t apart = 3 * (int64_t)IMAGE_ELEMENTS + searched(plain, elements, 2);
    ck_assert_msg((searched(added, elements, 3) < apart) == sizes[i].fused, "%lld KiB",
                  (long long)sizes[i].kib);
  }
}
END_TEST

/* ---- two 3 x 3 convolutions, 64 channels, 56 x 56: rows that roll ---- */
#define ROLLING                                                                                    \
  "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own 64 56 "                       \
  "56) (reduce 64 3 3) "                                                                           \
  "(red sum (mul $0 $1)) (child 0 (index ((64 56 56) (64 3 3)) (200704) ((+ "                      \
  "(* 56 d1) d2 (* 3136 "                                                                          \
  "d3) (* 56 d4) d5 -57)) (fill 0 ((+ d1 d4) 1 57) ((+ d2 d5) 1 57)))) "                           \
  "(child 1 (index ((64 56 "                                                                       \
  "56) (64 3 3)) (36864) ((+ (* 576 d0) (* 9 d3) (* 3 d4) d5)))) out)))(in "                       \
  "f32 (200704) (1))(in "                                                                          \
  "f32 (36864) (1))(out f32 (64 56 56) (3136 56 1)))"
/* Of a hold of the image, row after row of the result. */
static tarn_traffic rows(const char *how, int64_t at_once) {
  tarn_ksig k = kernel(ROLLING);
  const tarn_nest *n = tarn_nest_get(L, k.nest);
  tarn_stage_dims d = tarn_stage_dims_of(n, 0);
  const char *text =
      tarn_format(cx,
                  "(schedule (stage (acc 3) (serial 1 %lld) (serial 0 1) (serial 1 1) "
                  "(serial 2 1) "
                  "(serial 3 1) (serial 4 1) (serial 5 1) (hold 0 sram (at 0)%s)))",
                  (long long)at_once, how);
  const tarn_schedule *s = tarn_schedule_parse(L, n, text, strlen(text));
  return tarn_hold_traffic(L, &d, s->stage, &s->stage->hold[0]);
}
START_TEST(rows_roll) {
  enum { A = 200704, ROW = 3584, WEIGHTS_OF_ONE = 36864 };
  tarn_traffic r = rows(" (slides)", 1);
  ck_assert_int_eq(r.elements, A);
  ck_assert_int_eq(r.footprint, 3 * ROW);
  /* three rows of the input, three in the middle, one of the result */
  ck_assert_int_eq(2 * r.footprint + ROW, 25088);
  double apart = 4.0 * A + 2 * WEIGHTS_OF_ONE;
  double together = (double)r.elements + A + 2 * WEIGHTS_OF_ONE;
  ck_assert_double_eq_tol(together / apart, 0.542, 5e-4);
  /* without sliding each row is filled again for each row of the result that
   * its window touches */
  ck_assert_int_eq(rows("", 1).elements, 3 * A - 2 * ROW);
  ck_assert_int_eq(rows("", 28).elements, A + 2 * ROW);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("traffic");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, layers_move_little, 0, 2 * (int)(sizeof layers / sizeof *layers));
  tcase_add_loop_test(t, additions_are_fused, 0, (int)(sizeof fusions / sizeof *fusions));
  tcase_add_test(t, tiles_decide_fusion);
  tcase_add_test(t, rows_roll);
  return run_checks("traffic", t);
}
