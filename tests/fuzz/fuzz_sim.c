/* Whatever bits come as instructions of the described accelerators, they are disassembled, a line
 * each, or a message that names the file says why not. */
#include <string.h>

#include "sim/sim.h"
#include "tests/fuzz/fuzz.h"

static void disassemble(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_sim_program p = {.hw = tarn_hw_load(L, in->with), .dir = "input", .stream = in->bytes};
  if (!p.hw->ninstruction) return;
  p.count = (uint32_t)(in->n * 8 / p.hw->format[p.hw->instruction[0].format].bits);
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "");
  tarn_sim_disassemble(L, &p, &b);
  uint32_t lines = 0;
  for (const char *s = b.p; *s; s++) lines += *s == '\n';
  FUZZ_CHECK(lines == p.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const char *names[32];
  for (uint32_t i = tarn_hw_shipped(names, 32); i-- > 0;)
    fuzz_read(data, n, NULL, disassemble, names[i], "input/stream.bin:");
  return 0;
}
