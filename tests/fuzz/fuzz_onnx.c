/* Whatever bytes come as a model, they load as a program whose terms have a normal form, or a
 * message says why not; and loading stays within a fixed amount of memory. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tests/fuzz/fuzz.h"

#define MOST_BYTES ((size_t)768 << 20)

/* Refuses what would exceed MOST_BYTES in all. */
static void *limited(void *user, void *ptr, size_t old, size_t n) {
  size_t *held = user;
  if (n > MOST_BYTES || *held - old + n > MOST_BYTES) return NULL;
  void *p = tarn_malloc_allocator.realloc(tarn_malloc_allocator.user, ptr, old, n);
  if (p || n == 0) *held = *held - old + n;
  return p;
}

static void load(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_model_report report;
  tarn_program *p = tarn_model_load_bytes(L, in->bytes, in->n, "input", NULL, NULL, &report);
  FUZZ_CHECK(p->nout > 0);
  for (uint32_t i = 0; i < p->nout; i++) {
    FUZZ_CHECK(tarn_term_get(L, p->out[i].term)->type == p->out[i].type);
    tarn_term t = tarn_normalise(L, p->out[i].term);
    const tarn_type *a = tarn_term_type(L, t), *b = tarn_type_get(L, p->out[i].type);
    FUZZ_CHECK(a->n == b->n && a->dtype == b->dtype &&
               memcmp(a->dim, b->dim, a->n * sizeof *a->dim) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  size_t held = 0;
  tarn_allocator a = {limited, &held};
  fuzz_read(data, n, &a, load, NULL, "input:");
  FUZZ_CHECK(held == 0);
  return 0;
}
