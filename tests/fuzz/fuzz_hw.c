/* Whatever text comes, it is a description that prints and reads back as itself, or a placed
 * message says why not. */
#include <string.h>

#include "hw/hw.h"
#include "tests/fuzz/fuzz.h"

static void round_trip(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  const tarn_hw *h = tarn_hw_parse(L, tarn_sx_read(cx, in->bytes, in->n, "input"));
  FUZZ_CHECK(h->nmem > 0 && h->clock > 0 && h->units > 0);
  FUZZ_CHECK(tarn_hw_lanes(h, TARN_F32) >= 1 && tarn_hw_peak(h, TARN_F32, 1) >= 0);
  tarn_hw_print(h, &a);
  tarn_hw_print(tarn_hw_parse(L, tarn_sx_read(cx, a.p, a.n, "again")), &b);
  FUZZ_CHECK(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, round_trip, NULL, "input:");
  return 0;
}
