/* Whatever is imported gives a description that reads and prints as itself, or a message that names
 * the file says why not. */
#include <stdlib.h>
#include <string.h>

#include "hw/hw.h"
#include "tests/fuzz/fuzz.h"

typedef const char *importer(tarn_ctx *cx, const char *text, size_t n, const char *file);
typedef struct input {
  const char *text;
  size_t n;
  importer *import;
} input;

static void round_trip(tarn_ctx *cx, void *arg) {
  input *in = arg;
  tarn_lang *L = tarn_lang_new(cx);
  const char *text = in->import(cx, in->text, in->n, "input");
  tarn_buf a = {.cx = cx}, b = {.cx = cx};
  const tarn_hw *h = tarn_hw_parse(L, tarn_sx_read(cx, text, strlen(text), "input"));
  FUZZ_CHECK(h->kind == TARN_HW_DSA && h->nintrin > 0 && h->ntransfer > 0);
  tarn_hw_timeloop(L, h, &b);
  b.n = 0;
  tarn_hw_print(h, &a);
  tarn_hw_print(tarn_hw_parse(L, tarn_sx_read(cx, a.p, a.n, "again")), &b);
  FUZZ_CHECK(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
}

static void once(const uint8_t *data, size_t n, importer *import) {
  char *exact = malloc(n ? n : 1);
  FUZZ_CHECK(exact);
  if (n) memcpy(exact, data, n);
  tarn_ctx *cx = tarn_ctx_new(NULL);
  FUZZ_CHECK(cx);
  input in = {exact, n, import};
  tarn_status st = tarn_protect(cx, round_trip, &in);
  FUZZ_CHECK(st == TARN_OK ||
             (st == TARN_BAD_INPUT && strncmp(tarn_message(cx), "input:", 6) == 0));
  tarn_ctx_free(cx);
  free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  once(data, n, tarn_hw_import_vta);
  once(data, n, tarn_hw_import_gemmini);
  return 0;
}
