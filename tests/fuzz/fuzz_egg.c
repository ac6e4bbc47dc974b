/* Whatever bytes come as a program in egglog's language, it runs within its limits or a message
 * says where and why not. */
#include <string.h>

#include "lab/lab.h"
#include "tests/fuzz/fuzz.h"

typedef struct input {
  const char *text;
  size_t n;
} input;

static void run(tarn_ctx *cx, void *arg) {
  const input *in = arg;
  tarn_egg_options o = {.max_nodes = 2000, .max_bytes = 1 << 26, .max_seconds = 0.5};
  tarn_egg_run(tarn_egg_new(cx, &o), in->text, in->n, "input");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  char *exact = malloc(n ? n : 1);
  FUZZ_CHECK(exact);
  if (n) memcpy(exact, data, n);
  tarn_ctx *cx = tarn_ctx_new(NULL);
  FUZZ_CHECK(cx);
  input in = {exact, n};
  tarn_status st = tarn_protect(cx, run, &in);
  FUZZ_CHECK(st == TARN_OK || (st != TARN_INTERNAL && *tarn_message(cx)));
  tarn_ctx_free(cx);
  free(exact);
  return 0;
}
