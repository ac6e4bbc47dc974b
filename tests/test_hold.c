/* plan/: footprints and traffic of holds, against numbers computed by hand and by brute force; when
 * an addition is computed where a convolution reads it; rows that roll. */
#include "tests/lower_cases.h"

#include "plan/hold.h"

static const tarn_schedule *schedule_of(const tarn_ksig *k, const char *text) {
  return tarn_schedule_parse(L, tarn_nest_get(L, k->nest), text, strlen(text));
}
static tarn_ksig kernel(const char *text) {
  tarn_ksig k;
  tarn_ksig_parse(L, text, strlen(text), &k);
  return k;
}
/* Elements that all holds of the only stage move; the result once. */
static int64_t moved(const tarn_ksig *k, const char *text, int64_t *each) {
  const tarn_stage_sched *s = schedule_of(k, text)->stage;
  tarn_stage_dims d = tarn_stage_dims_of(tarn_nest_get(L, k->nest), 0);
  int64_t sum = 0;
  for (uint32_t i = 0; i < s->nhold; i++) {
    each[i] = tarn_hold_traffic(L, &d, s, &s->hold[i]).elements;
    sum += each[i];
  }
  return sum;
}

/* A 1 x 1 convolution, 2048 channels to 512, 56 x 56: d0 filters, d1 pixels, d2 channels. */
#define POINTWISE                                                                                  \
  "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 512 3136) (reduce 2048) "     \
  "(red "                                                                                          \
  "sum (mul $0 $1)) (child 0 (index ((512 3136) (2048)) (1048576) ((+ (* 2048 d0) d2)))) (child "  \
  "1 "                                                                                             \
  "(index ((512 3136) (2048)) (6422528) ((+ d1 (* 3136 d2))))) out)))(in f32 (1048576) (1))(in "   \
  "f32 (6422528) (1))(out f32 (512 3136) (3136 1)))"
static const struct {
  const char *schedule;
  int64_t weights, image, result, total;
} worked[] = {
    /* every tile loads both anew */
    {"(schedule (stage (acc 2) (serial 0 24) (serial 1 112) (serial 0 1) (serial 1 1) (serial 2 1)"
     " (hold 0 sram (at 1) (fresh)) (hold 1 sram (at 1)) (hold result sram (at 1))))",
     29360128, 141295616, 1605632, 172261376},
    /* the weights stay while pixels are swept */
    {"(schedule (stage (acc 2) (serial 0 24) (serial 1 112) (serial 0 1) (serial 1 1) (serial 2 1)"
     " (hold 0 sram (at 1)) (hold 1 sram (at 1)) (hold result sram (at 1))))",
     1048576, 141295616, 1605632, 143949824},
    /* the image stays while filters are swept */
    {"(schedule (stage (acc 2) (serial 1 112) (serial 0 24) (serial 0 1) (serial 1 1) (serial 2 1)"
     " (hold 0 sram (at 1)) (hold 1 sram (at 1)) (hold result sram (at 1))))",
     29360128, 6422528, 1605632, 37388288},
    /* eight whole planes are summed over chunks of 16 channels */
    {"(schedule (stage (acc 1) (serial 0 8) (serial 2 16) (serial 0 1) (serial 1 1) (serial 2 1)"
     " (hold 0 sram (at 1)) (hold 1 sram (at 1)) (hold result sram (at 0))))",
     1048576, 411041792, 1605632, 413696000},
    /* all weights stay */
    {"(schedule (stage (acc 1) (serial 1 204) (serial 0 1) (serial 1 1) (serial 2 1)"
     " (hold 0 sram (at all)) (hold 1 sram (at 0)) (hold result sram (at 0))))",
     1048576, 6422528, 1605632, 9076736},
};
START_TEST(worked_numbers) {
  tarn_ksig k = kernel(POINTWISE);
  int64_t each[3];
  ck_assert_int_eq(moved(&k, worked[_i].schedule, each), worked[_i].total);
  ck_assert_int_eq(each[0], worked[_i].weights);
  ck_assert_int_eq(each[1], worked[_i].image);
  ck_assert_int_eq(each[2], worked[_i].result);
}
END_TEST

/* ---- against counting ---- */
#define WINDOW                                                                                     \
  "(kernel (nest (stages (children 2) (shared) (split 3) (stage (own 4 9 30) (reduce 3 3) (red "   \
  "sum "                                                                                           \
  "(mul $0 $1)) (child 0 (index ((4 9 30) (3 3)) (1080) ((+ (* 270 d0) (* 30 d1) d2 (* 30 d3) d4 " \
  "-31)) (fill 0 ((+ d1 d3) 1 10) ((+ d2 d4) 1 31)))) (child 1 (index ((4 9 30) (3 3)) (36) ((+ "  \
  "(* "                                                                                            \
  "9 d0) (* 3 d3) d4)))) out)))(in f32 (1080) (1))(in f32 (36) (1))(out f32 (4 9 30) (270 30 1)))"
#define STRIDED                                                                                    \
  "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 8 8) (reduce 2 2) (red sum "  \
  "(mul $0 $1)) (child 0 (index ((8 8) (2 2)) (1024) ((+ (* 96 d0) (* 4 d1) (* 64 d2) (* 3 "       \
  "d3))))) "                                                                                       \
  "(child 1 (index ((8 8) (2 2)) (4) ((+ (* 2 d2) d3)))) out)))(in f32 (1024) (1))(in f32 (4) "    \
  "(1))(out f32 (8 8) (8 1)))"
static const char *const counted[][2] = {
    {WINDOW,
     "(schedule (stage (acc 3) (serial 0 1) (serial 1 4) (serial 2 8) (serial 3 1) (serial 1"
     " 1) (serial 2 1) (serial 4 1) (hold 0 sram (at 2)) (hold 1 sram (at 2))))"},
    {WINDOW,
     "(schedule (stage (acc 3) (serial 2 8) (serial 0 3) (serial 1 2) (serial 0 1) (serial 3"
     " 1) (serial 1 1) (serial 2 1) (serial 4 1) (hold 0 sram (at 2)) (hold 1 sram (at 1))))"},
    {WINDOW,
     "(schedule (stage (acc 0) (serial 3 1) (serial 1 2) (serial 0 1) (serial 4 1) (serial 1"
     " 1) (serial 2 1) (hold 0 sram (at 3)) (hold 1 sram (at 3))))"},
    {STRIDED,
     "(schedule (stage (acc 2) (serial 0 3) (serial 1 4) (serial 2 1) (serial 0 1) (serial "
     "1 1) (serial 3 1) (hold 0 sram (at 1)) (hold 1 sram (at 2))))"},
};
typedef struct walk {
  const tarn_stage_dims *d;
  const tarn_stage_sched *s;
  const tarn_hold *h;
  int64_t at[TARN_MAX_DIMS], len[TARN_MAX_DIMS]; /* of the tile */
  bool *now, *last;                              /* elements of the operand */
  int64_t n, fills, elements, most;
} walk;
static void touch(walk *w, uint32_t dim, int64_t *idx) {
  if (dim == w->d->n) {
    int64_t to[TARN_MAX_DIMS];
    if (tarn_map_apply(L, w->d->stage->read[w->h->operand].map, idx, to)) w->now[to[0]] = true;
    return;
  }
  for (int64_t i = 0; i < w->len[dim]; i++) {
    idx[dim] = w->at[dim] + i;
    touch(w, dim + 1, idx);
  }
}
/* Every tile of the hold's level in turn: filled where it wants other elements than the last. */
static void fill(walk *w, int32_t level) {
  if (level > w->h->at) {
    int64_t idx[TARN_MAX_DIMS], count = 0;
    memset(w->now, 0, (size_t)w->n);
    touch(w, 0, idx);
    for (int64_t i = 0; i < w->n; i++) count += w->now[i];
    if (count > w->most) w->most = count;
    if (memcmp(w->now, w->last, (size_t)w->n)) w->elements += count;
    memcpy(w->last, w->now, (size_t)w->n);
    return;
  }
  const tarn_level *l = &w->s->level[level];
  int64_t len = w->len[l->dim], at = w->at[l->dim];
  for (int64_t i = 0; i < len; i += l->step) {
    w->at[l->dim] = at + i;
    w->len[l->dim] = tarn_min(l->step, len - i);
    fill(w, level + 1);
  }
  w->at[l->dim] = at;
  w->len[l->dim] = len;
}
START_TEST(as_counted) {
  tarn_ksig k = kernel(counted[_i][0]);
  const tarn_nest *n = tarn_nest_get(L, k.nest);
  const tarn_stage_sched *s = schedule_of(&k, counted[_i][1])->stage;
  tarn_stage_dims d = tarn_stage_dims_of(n, 0);
  for (uint32_t i = 0; i < s->nhold; i++) {
    tarn_traffic t = tarn_hold_traffic(L, &d, s, &s->hold[i]);
    walk w = {.d = &d, .s = s, .h = &s->hold[i]};
    memcpy(w.len, d.dim, sizeof w.len);
    w.n = k.in[n->stage[0].read[w.h->operand].src].dim[0];
    w.now = TARN_ARRAY(cx, bool, w.n);
    w.last = TARN_ARRAY(cx, bool, w.n);
    fill(&w, 0);
    ck_assert_msg(t.elements == w.elements && t.footprint == w.most,
                  "case %d hold %u: %lld elements, %lld at once; counted %lld, %lld", _i, i,
                  (long long)t.elements, (long long)t.footprint, (long long)w.elements,
                  (long long)w.most);
  }
}
END_TEST

/* ---- an addition before a 1 x 1 convolution: 2048 channels to 512, 56 x 56 ---- */
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
static int64_t passes_move(const char *text, int64_t passes, uint32_t images) {
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
  int64_t apart = 3 * (int64_t)IMAGE_ELEMENTS + passes_move(plain, f->reads, 1);
  int64_t together = passes_move(added, f->reads, 2);
  ck_assert_int_eq(apart, f->apart);
  ck_assert_int_eq(together, f->together);
  ck_assert((together < apart) == (f->reads < 3));
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

/* ---- text, and what is refused ---- */
#define HELD                                                                                       \
  "(schedule (stage (acc 2) (serial 0 4) (serial 1 8) (serial 0 1) (serial 1 1) (serial 2 1) "     \
  "(hold "                                                                                         \
  "0 inp (at 1) (slots 2) (order d0 d2/16 d2%16)) (hold 1 wgt (at all) (slides)) (hold "           \
  "accumulators acc (at 1) (fresh)) (unit gemm (rows d0) (columns d1) (sum d2))))"
#define SMALL                                                                                      \
  "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 13 40) (reduce 24) (red sum " \
  "(mul $0 $1)) (child 0 (index ((13 40) (24)) (312) ((+ (* 24 d0) d2)))) (child 1 (index ((13 "   \
  "40) (24)) (960) ((+ d1 (* 40 d2))))) out)))(in f32 (312) (1))(in f32 (960) (1))(out f32 (13 "   \
  "40) (40 1)))"
START_TEST(text_reads_back) {
  tarn_ksig k = kernel(SMALL);
  const tarn_schedule *s = schedule_of(&k, HELD);
  ck_assert_str_eq(tarn_schedule_text(cx, s), HELD);
}
END_TEST

#define LEVELS "(schedule (stage (acc 1) (serial 0 4) (serial 0 1) (serial 1 1) (serial 2 1) "
static const struct {
  const char *schedule, *says;
} refused[] = {
    {LEVELS "(hold 2 l1 (at 0))))", "a hold of operand 2 of 2"},
    {LEVELS "(hold 0 l1 (at 9))))", "a hold at level 9 of 4"},
    {LEVELS "(hold 0 nowhere (at 0))))", "vta-pynq has no memory nowhere"},
    {LEVELS "(hold 0 inp (at 0) (slots 64)) (hold 1 inp (at 0) (slots 9))))",
     "what is held in inp takes 59136 bytes, it has 32768"},
    {LEVELS "(hold 0 l1 (for 0))))",
     "at, slots, fresh, slides, unpadded, gaps, order, pad or skew is expected"},
    {LEVELS "(hold sums l1)))", "an operand, accumulators or result is expected"},
    {LEVELS "(hold 0 l1 (order e0))))", "dN, dN/K or dN%K is expected"},
    {LEVELS "(hold 0 dram (at 0))))", "dram of vta-pynq is no memory that a program manages"},
    {LEVELS "(unit fma (rows d0))))", "vta-pynq has no unit fma"},
    {LEVELS "(unit fma (sides d0))))", "rows, columns or sum of a dim is expected"},
};
static void read_refused(tarn_ctx *c, void *arg) {
  (void)c;
  tarn_ksig k = kernel(SMALL);
  const tarn_schedule *s = schedule_of(&k, refused[*(int *)arg].schedule);
  tarn_holds_check(L, tarn_hw_load(L, "vta-pynq"), &k, 0, s->stage);
}
START_TEST(says_what_is_wrong) {
  tarn_status st = tarn_protect(cx, read_refused, &_i);
  ck_assert_int_eq(st, TARN_BAD_INPUT);
  ck_assert_msg(strstr(tarn_message(cx), refused[_i].says) != NULL, "%s", tarn_message(cx));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("holds");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, worked_numbers, 0, sizeof worked / sizeof *worked);
  tcase_add_loop_test(t, as_counted, 0, sizeof counted / sizeof *counted);
  tcase_add_loop_test(t, additions_are_fused, 0, sizeof fusions / sizeof *fusions);
  tcase_add_test(t, rows_roll);
  tcase_add_test(t, text_reads_back);
  tcase_add_loop_test(t, says_what_is_wrong, 0, sizeof refused / sizeof *refused);
  return run_checks("hold", t);
}
