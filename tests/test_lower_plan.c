/* lower/plan: buffers that are alive at once lie apart, and little is lost. Instances are made by
 * cutting a rectangle (kernels by bytes) to pieces, so that a plan without any loss is known to
 * exist. */
#include "tests/lower_setup.h"

#include "base/base.h"
#include "lower/lower.h"

#define LINE 64

typedef struct piece {
  uint32_t first, last;
  int64_t lines;
} piece;
typedef struct instance {
  uint32_t n, kernels;
  int64_t lines;
  piece piece[1600];
} instance;

static void cut(instance *x, uint32_t first, uint32_t last, int64_t lines, int depth) {
  bool in_time = kit_below(2) && last > first;
  if (depth == 0 || (!in_time && lines < 2) || kit_below(12) == 0) {
    x->piece[x->n++] = (piece){first, last, lines};
  } else if (in_time) {
    uint32_t at = first + kit_below(last - first);
    cut(x, first, at, lines, depth - 1), cut(x, at + 1, last, lines, depth - 1);
  } else {
    int64_t at = 1 + kit_below((uint32_t)lines - 1);
    cut(x, first, last, at, depth - 1), cut(x, first, last, lines - at, depth - 1);
  }
}

static tarn_kprog *program(const instance *x) {
  tarn_kprog *p = TARN_NEW(cx, tarn_kprog);
  *p = (tarn_kprog){.L = L, .nbuf = x->n, .nker = x->kernels};
  p->buf = TARN_ARRAY(cx, tarn_buffer, x->n), p->ker = TARN_ARRAY(cx, tarn_kernel, x->kernels);
  uint32_t **touched = TARN_ARRAY(cx, uint32_t *, x->kernels);
  for (uint32_t k = 0; k < x->kernels; k++)
    p->ker[k].in = touched[k] = TARN_ARRAY(cx, uint32_t, x->n);
  for (uint32_t i = 0; i < x->n; i++) {
    const piece *b = &x->piece[i];
    p->buf[i] = (tarn_buffer){.kind = TARN_BUF_TEMP, .dtype = TARN_F32, .parent = TARN_NONE};
    p->buf[i].layout = (tarn_layout){.n = 1, .dim = {b->lines * LINE / 4}, .stride = {1}};
    tarn_kernel *from = &p->ker[b->first], *to = &p->ker[b->last];
    touched[b->first][from->nin++] = i;
    if (to != from) touched[b->last][to->nin++] = i;
  }
  return p;
}

/* Bytes of the plan over those of the best one. */
static double judged(const instance *x) {
  const tarn_memory_plan *plan = tarn_memory_plan_make(program(x), LINE);
  ck_assert_int_eq(plan->live_bound, x->lines * LINE);
  ck_assert_int_ge(plan->bytes, plan->live_bound);
  for (uint32_t i = 0; i < x->n; i++) {
    const piece *a = &x->piece[i];
    int64_t at = plan->offset[i], end = at + a->lines * LINE;
    ck_assert(at >= 0 && at % LINE == 0 && end <= plan->bytes);
    for (uint32_t k = 0; k < i; k++) {
      const piece *b = &x->piece[k];
      bool together = a->first <= b->last && b->first <= a->last;
      ck_assert(!together || end <= plan->offset[k] || plan->offset[k] + b->lines * LINE <= at);
    }
  }
  return (double)plan->bytes / (double)plan->live_bound;
}

static void rectangles(tarn_ctx *c, void *user) {
  (void)c, (void)user;
  double sum = 0;
  enum { CASES = 100 };
  kit_seed = 7;
  for (int i = 0; i < CASES; i++) {
    instance *x = TARN_NEW(cx, instance);
    x->kernels = 10 + kit_below(40), x->lines = 50 + kit_below(200);
    cut(x, 0, x->kernels - 1, x->lines, 5);
    double over = judged(x);
    ck_assert_msg(over <= 1.1, "case %d: %g", i, over); /* by size alone up to 1.45 */
    sum += over;
  }
  ck_assert_msg(sum / CASES < 1.01, "%g", sum / CASES); /* by size alone 1.06 */
}

/* As in a long network: each buffer is read within the next dozen kernels. No plan is known to be
 * perfect; TARN_TEST_SHOW tells the time that is taken (bench/notes/growth.md). */
static void chains(tarn_ctx *c, void *user) {
  (void)c, (void)user;
  kit_seed = 11;
  for (uint32_t n = 100; n <= 1600; n *= 2) {
    instance *x = TARN_NEW(cx, instance);
    int64_t *alive = TARN_ARRAY(cx, int64_t, n);
    x->n = x->kernels = n;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t last = i + 1 + kit_below(12);
      x->piece[i] = (piece){i, last < n ? last : n - 1, 1 + kit_below(1000)};
      for (uint32_t k = i; k <= x->piece[i].last; k++) alive[k] += x->piece[i].lines;
    }
    for (uint32_t k = 0; k < n; k++) x->lines = alive[k] > x->lines ? alive[k] : x->lines;
    double over = judged(x);
    ck_assert_msg(over <= 1.01, "%u buffers: %g", n, over); /* by size alone up to 1.11 */
  }
}

static void nothing(tarn_ctx *c, void *user) {
  (void)c, (void)user;
  const tarn_kprog empty = {.L = L};
  ck_assert_int_eq(tarn_memory_plan_make(&empty, LINE)->bytes, 0);
}

START_TEST(little_is_lost) {
  ck_assert_msg(tarn_protect(cx, rectangles, NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST
START_TEST(long_networks) {
  ck_assert_msg(tarn_protect(cx, chains, NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST
START_TEST(no_buffers) {
  ck_assert_msg(tarn_protect(cx, nothing, NULL) == TARN_OK, "%s", tarn_message(cx));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("plan");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, little_is_lost);
  tcase_add_test(t, long_networks);
  tcase_add_test(t, no_buffers);
  return run_checks("lower_plan", t);
}
