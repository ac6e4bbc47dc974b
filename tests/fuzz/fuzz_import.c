/* Whatever is imported gives a description that reads and prints as itself, or a message that names
 * the file says why not. */
#include <string.h>

#include "hw/hw.h"
#include "tests/fuzz/fuzz.h"

typedef const char *importer(tarn_ctx *cx, const char *text, size_t n, const char *file);

static void round_trip(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  importer *const *import = in->with;
  tarn_lang *L = tarn_lang_new(cx);
  const char *text = (*import)(cx, in->bytes, in->n, "input");
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  const tarn_hw *h = tarn_hw_parse(L, tarn_sx_read(cx, text, strlen(text), "input"));
  FUZZ_CHECK(h->kind == TARN_HW_DSA && h->nintrin > 0 && h->ntransfer > 0);
  tarn_hw_timeloop(L, h, &b);
  b.n = 0;
  tarn_hw_print(h, &a);
  tarn_hw_print(tarn_hw_parse(L, tarn_sx_read(cx, a.p, a.n, "again")), &b);
  FUZZ_CHECK(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static importer *const import[] = {tarn_hw_import_vta, tarn_hw_import_gemmini};
  for (int i = 0; i < 2; i++) fuzz_read(data, n, NULL, round_trip, &import[i], "input:");
  return 0;
}
