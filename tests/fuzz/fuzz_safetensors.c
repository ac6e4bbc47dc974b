/* Whatever bytes come as a file of safetensors beside a model, the model's initialisers are read
 * from it, or a message says of which one it cannot be. The model has two by name, of types of
 * their own, and one by its place. */
#include "model/model.h"
#include "tests/fuzz/file.h"

static void load(tarn_ctx *cx, void *arg) {
  size_t n;
  fuzz_file(cx, "w.safetensors", arg);
  char *model = tarn_read_file(cx, TARN_TOP "/tests/data/safetensors.onnx", &n);
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = tarn_model_load_bytes(L, model, n, "input", folder, NULL, NULL);
  FUZZ_CHECK(p->nout == 1);
  (void)tarn_normalise(L, p->out[0].term);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  tarn_status st = fuzz_read(data, n, NULL, load, NULL, "input: initializer ");
  FUZZ_CHECK(st != TARN_IO);
  return 0;
}
