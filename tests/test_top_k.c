/* TopK against one largest element after the other: ties, infinities, NaN, all k, both ends, axes
 * with a stride. */
#include "runtime/ref.h"
#include "base/base.h"
#include "tests/suite.h"
#include <math.h>
#include <string.h>

enum { LONG = 70, ROWS = 3 };
static float x[ROWS * LONG], y[ROWS * LONG];
static int64_t at[ROWS * LONG];

static uint64_t state = 1;
static uint32_t below(uint32_t n) { return (uint32_t)(tarn_random(&state) % n); }
static float draw(void) {
  static const float odd[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1, -1};
  uint32_t i = below(12);
  return i < 7 ? odd[i] : (float)below(100000) - 50000;
}
/* Is a to come before b? NaN counts as more than infinity. */
static bool before(float a, float b, bool most) {
  if (isnan(a) || isnan(b)) return most ? !isnan(b) : !isnan(a);
  return most ? a > b : a < b;
}
/* Row r, of `rows` that lie beside each other where `apart`, else one after the other. */
static int64_t place(int64_t r, int64_t i, int64_t len, int64_t rows, bool apart) {
  return apart ? i * rows + r : r * len + i;
}
static void one_row(int64_t r, int64_t len, int64_t k, int64_t rows, bool apart, bool most) {
  bool taken[LONG] = {false};
  for (int64_t j = 0; j < k; j++) {
    int64_t best = -1;
    for (int64_t i = 0; i < len; i++) {
      if (taken[i]) continue;
      if (best < 0 ||
          before(x[place(r, i, len, rows, apart)], x[place(r, best, len, rows, apart)], most))
        best = i;
    }
    taken[best] = true;
    int64_t to = place(r, j, k, rows, apart);
    ck_assert_int_eq(at[to], best);
    ck_assert(memcmp(&y[to], &x[place(r, best, len, rows, apart)], sizeof *y) == 0);
  }
}
static void one(int64_t len, int64_t k, bool apart, bool most) {
  int64_t rows = 1 + below(ROWS), in[2] = {apart ? len : rows, apart ? rows : len},
          out[2] = {apart ? k : rows, apart ? rows : k};
  tarn_ref_tensor v = {TARN_REF_F32, 2, in, x, NULL},
                  to[2] = {{TARN_REF_F32, 2, out, y, NULL}, {TARN_REF_I64, 2, out, at, NULL}};
  tarn_ref_attr attr[2] = {{.name = "axis", .i = !apart}, {.name = "largest", .i = most}};
  char message[TARN_REF_MESSAGE] = "";
  for (int64_t i = 0; i < rows * len; i++) x[i] = draw();
  ck_assert_int_eq(tarn_ref_run("TopK", attr, 2, &v, 1, to, 2, message), TARN_REF_OK);
  for (int64_t r = 0; r < rows; r++) one_row(r, len, k, rows, apart, most);
}
START_TEST(test_all) {
  for (int64_t len = 1; len <= LONG; len++)
    for (int64_t k = 0; k <= len; k += 1 + below(4)) one(len, k, below(2), below(2));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("top k");
  tcase_add_test(t, test_all);
  return run_checks("top k", t);
}
