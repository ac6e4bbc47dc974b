/* Whatever bytes come as .npy or as TensorProto, they are a tensor that writes and reads back as
 * itself, or a message says why not. */
#include <string.h>

#include "model/model.h"
#include "tests/fuzz/fuzz.h"

static void check_same(const tarn_tensor *a, const tarn_tensor *b) {
  FUZZ_CHECK(a->dtype == b->dtype && a->n == b->n &&
             memcmp(a->dim, b->dim, a->n * sizeof *a->dim) == 0);
  size_t bytes = tarn_tensor_bytes(a);
  FUZZ_CHECK(bytes == 0 || memcmp(a->data, b->data, bytes) == 0);
}

static void read_npy(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_buf b = {.cx = cx};
  tarn_tensor *t = tarn_npy_read_bytes(cx, in->bytes, in->n, "input");
  tarn_npy_write_bytes(&b, t);
  check_same(t, tarn_npy_read_bytes(cx, b.p, b.n, "again"));
}

static void read_proto(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_buf b = {.cx = cx};
  tarn_tensor *t = tarn_tensorproto_read_bytes(cx, in->bytes, in->n, "input");
  tarn_tensorproto_write_bytes(&b, t, "x");
  check_same(t, tarn_tensorproto_read_bytes(cx, b.p, b.n, "again"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, read_npy, NULL, "input:");
  fuzz_read(data, n, NULL, read_proto, NULL, "input:");
  return 0;
}
