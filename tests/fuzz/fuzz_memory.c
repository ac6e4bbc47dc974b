/* Whatever text comes as memory.json, it describes a program within its files, or a message that
 * names a file says why not. */

#include "sim/sim.h"
#include "tests/fuzz/fuzz.h"

enum { STREAM = 512, IMAGE = 4096 };

static void check(const tarn_sim_program *p) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < p->nbuffer; i++) {
    const tarn_sim_buffer *b = &p->buffer[i];
    FUZZ_CHECK(b->base >= 0 && b->bytes >= 0 && b->base + b->bytes <= p->size);
    FUZZ_CHECK(tarn_tensor_count(&b->array) * (int64_t)tarn_dtype_size(b->array.dtype) == b->bytes);
  }
  FUZZ_CHECK(p->count >= 1 && p->count * 16 <= STREAM);
  for (uint32_t i = 0; i < p->nsegment; i++) {
    FUZZ_CHECK(p->segment[i].first == next && p->segment[i].count > 0);
    next += p->segment[i].count;
  }
  FUZZ_CHECK(!p->nsegment || next == p->count);
  for (uint32_t i = 0; i < p->nkernel; i++)
    for (uint32_t k = 0; k < p->kernel[i].count; k++)
      FUZZ_CHECK(tarn_sim_kernel_of(p, p->kernel[i].first + k) == i);
}
static void read_program(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  static const char stream[STREAM], image[IMAGE];
  tarn_lang *L = tarn_lang_new(cx);
  tarn_sim_files f = {"input", in->bytes, stream, image, in->n, STREAM, IMAGE};
  check(tarn_sim_read(L, &f, "vta-pynq"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, read_program, NULL, "input/");
  return 0;
}
