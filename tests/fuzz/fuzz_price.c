/* Whatever bytes come, they are a price that predicts something finite and prints to the same bytes
 * as what is read from these, or a message that names the file says why not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tune/trees.h"

typedef struct input {
  const void *bytes;
  size_t n;
} input;

static void round_trip(tarn_ctx *cx, void *arg) {
  const input *in = arg;
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
  void *exact = malloc(n ? n : 1);
  FUZZ_CHECK(exact);
  if (n) memcpy(exact, data, n);
  tarn_ctx *cx = tarn_ctx_new(NULL);
  FUZZ_CHECK(cx);
  input in = {exact, n};
  tarn_status st = tarn_protect(cx, round_trip, &in);
  FUZZ_CHECK(st == TARN_OK ||
             (st == TARN_BAD_INPUT && strncmp(tarn_message(cx), "input:", 6) == 0));
  tarn_ctx_free(cx);
  free(exact);
  return 0;
}
