/* Whatever bytes come, the reader returns a tree or a placed message; and a tree printed at any
 * width reads back as the tree that it was. */
#include <string.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"

static const char *flat(tarn_ctx *cx, const tarn_sx *s) {
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < s->n; i++) {
    tarn_sx_print(&b, s->kid[i], 0);
    tarn_buf_str(&b, "\n");
  }
  return b.p ? b.p : "";
}

static void round_trip(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  const tarn_sx *s = tarn_sx_read(cx, in->bytes, in->n, "input");
  const char *once = flat(cx, s);
  for (unsigned width = 0; width <= 60; width += 20) {
    tarn_buf b = {.cx = cx};
    for (uint32_t i = 0; i < s->n; i++) {
      tarn_sx_print(&b, s->kid[i], width);
      tarn_buf_str(&b, "\n");
    }
    const tarn_sx *again = tarn_sx_read(cx, b.p ? b.p : "", b.n, "again");
    FUZZ_CHECK(strcmp(flat(cx, again), once) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, round_trip, NULL, "input:");
  return 0;
}
