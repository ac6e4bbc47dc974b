/* Whatever bytes come, they are a price that predicts something finite and prints to the same bytes
 * as what is read from these, or a message that names the file says why not. */
#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tune/trees.h"

static void round_trip(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  const trees *t = trees_read(cx, "input", in->bytes, in->n);
  float *f = TARN_ARRAY(cx, float, t->nfeature + 1);
  for (uint32_t i = 0; i < t->nfeature; i++) f[i] = (float)i - 3;
  FUZZ_CHECK(t->ntree == 0 || !isnan(trees_predict(t, f)));
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  trees_print(&a, t);
  trees_print(&b, trees_read(cx, "again", a.p, a.n));
  FUZZ_CHECK(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, round_trip, NULL, "input:");
  return 0;
}
