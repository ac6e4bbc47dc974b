/* Whatever bytes come as a program in egglog's language, it runs within its limits or a message
 * says where and why not. */

#include "lab/lab.h"
#include "tests/fuzz/fuzz.h"

static void run(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_egg_options o = {.max_nodes = 2000, .max_bytes = 1 << 26, .max_seconds = 0.5};
  tarn_egg_run(tarn_egg_new(cx, &o), in->bytes, in->n, "input");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, run, NULL, "");
  return 0;
}
