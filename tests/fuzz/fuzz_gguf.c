/* Whatever bytes come as a GGUF file, they load as a program whose terms have a normal form, or a
 * message says why not. */
#include "model/model.h"
#include "tests/fuzz/fuzz.h"

static void load(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  static const int64_t size[] = {1, 3, 2};
  tarn_shape_binding b[] = {{"batch_size", 1, size, NULL},
                            {"sequence_length", 1, size + 1, NULL},
                            {"past_sequence_length", 1, size + 2, NULL}};
  tarn_model_options o = {.nshape = 3, .shape = b};
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = tarn_model_load_bytes(L, in->bytes, in->n, "input", NULL, &o, NULL);
  FUZZ_CHECK(p->nout > 0);
  for (uint32_t i = 0; i < p->nout; i++) (void)tarn_normalise(L, p->out[i].term);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, load, NULL, "input:");
  return 0;
}
