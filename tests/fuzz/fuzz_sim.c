/* Whatever bits come as instructions of the described accelerators, they are disassembled, a line
 * each, or a message that names the file says why not. */
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"
#include "tests/fuzz/fuzz.h"

typedef struct input {
  const uint8_t *bits;
  size_t n;
} input;

typedef struct reading {
  const input *in;
  const char *hw;
} reading;
static void disassemble(tarn_ctx *cx, void *arg) {
  const reading *r = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_sim_program p = {.hw = tarn_hw_load(L, r->hw), .dir = "input", .stream = r->in->bits};
  if (!p.hw->ninstruction) return;
  p.count = (uint32_t)(r->in->n * 8 / p.hw->format[p.hw->instruction[0].format].bits);
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  tarn_sim_disassemble(L, &p, &b);
  uint32_t lines = 0;
  for (const char *s = b.p; *s; s++) lines += *s == '\n';
  FUZZ_CHECK(lines == p.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  uint8_t *exact = malloc(n ? n : 1);
  FUZZ_CHECK(exact);
  if (n) memcpy(exact, data, n);
  tarn_ctx *cx = tarn_ctx_new(NULL);
  FUZZ_CHECK(cx);
  input in = {exact, n};
  const char *names[32];
  for (uint32_t i = tarn_hw_shipped(names, 32); i-- > 0;) {
    reading r = {&in, names[i]};
    tarn_status st = tarn_protect(cx, disassemble, &r);
    FUZZ_CHECK(st == TARN_OK ||
               (st == TARN_BAD_INPUT && strncmp(tarn_message(cx), "input/stream.bin:", 17) == 0));
  }
  tarn_ctx_free(cx);
  free(exact);
  return 0;
}
