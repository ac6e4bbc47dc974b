/* Whatever text comes as PTX, it is read, or a message that names the file and the line says why
 * not; a small run of what is read ends, too. */
#include <string.h>

#include "sim/ptx.h"
#include "tests/fuzz/fuzz.h"

static void read_and_run(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  static uint8_t memory[4096], param[1 << 15];
  tarn_ptx *p = tarn_ptx_read(cx, in->bytes, in->n, "input");
  tarn_ptx_device *d = tarn_ptx_device_new(cx, p);
  uint64_t at = tarn_ptx_map(d, "memory", memory, sizeof memory, TARN_PTX_WRITTEN);
  for (size_t i = 0; i < sizeof param; i += 8) memcpy(param + i, &at, 8);
  for (uint32_t i = 0; i < tarn_ptx_entries(p); i++) {
    const tarn_ptx_entry *e = tarn_ptx_entry_at(p, i);
    tarn_ptx_launch l = {.entry = i, .grid = {1, 1, 1}, .block = {40, 1, 1}, .param = param};
    tarn_ptx_counts counts = {0};
    for (uint32_t k = 0; k < 3 && e->need[0]; k++) l.block[k] = e->need[k];
    l.limit = 10000;
    tarn_ptx_run(d, &l, &counts);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, read_and_run, NULL, "input:");
  return 0;
}
