/* Whatever text comes as an architecture beside a GGUF file, it makes a model whose terms have a
 * normal form, or a message says why not: at a place of the text, or of which file. */
#include "model/model.h"
#include "tests/fuzz/file.h"

static void read_text(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  (void)tarn_sx_read(cx, in->bytes, in->n, "text");
}

/* The weights of a file, whose architecture the text is. */
static char *weights(tarn_ctx *cx, const char *file, size_t *n) {
  static const char of[] = "llama", now[] = "types";
  char *p = tarn_read_file(cx, tarn_format(cx, TARN_TOP "/tests/data/gguf/%s.gguf", file), n);
  for (size_t i = 0; i + sizeof of <= *n; i++)
    if (!memcmp(p + i, of, sizeof of - 1)) memcpy(p + i, now, sizeof now - 1);
  return p;
}

static void load(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  static const int64_t size[] = {1, 3, 2};
  tarn_shape_binding b[] = {{"batch_size", 1, size, NULL},
                            {"sequence_length", 1, size + 1, NULL},
                            {"past_sequence_length", 1, size + 2, NULL}};
  tarn_model_options o = {.nshape = 3, .shape = b};
  size_t n;
  char *bytes = weights(cx, in->with, &n);
  fuzz_file(cx, "types.arch", in);
  tarn_lang *L = tarn_lang_new(cx);
  tarn_program *p = tarn_model_load_bytes(L, bytes, n, "input", folder, &o, NULL);
  FUZZ_CHECK(p->nout > 0);
  for (uint32_t i = 0; i < p->nout; i++) (void)tarn_normalise(L, p->out[i].term);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (fuzz_read(data, n, NULL, read_text, NULL, "text:") != TARN_OK) return 0;
  fuzz_read(data, n, NULL, load, "types", "input:");
  fuzz_read(data, n, NULL, load, "llama", "input:");
  return 0;
}
