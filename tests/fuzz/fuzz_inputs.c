/* Whatever bytes come as an archive of NumPy or as a picture, they are a tensor of the asked shape,
 * or a message says why not. */
#include "model/model.h"
#include "tests/fuzz/fuzz.h"

static void read_npz(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  tarn_tensor *t = tarn_npz_read_bytes(cx, "input", in->bytes, in->n, "a");
  FUZZ_CHECK(t->n <= TARN_MAX_DIMS);
}
static void read_picture(tarn_ctx *cx, void *arg) {
  const fuzz_input *in = arg;
  static const int64_t planes[] = {1, 3, 8, 6}, pixels[] = {8, 6, 1};
  if (!tarn_picture_is(in->bytes, in->n)) return;
  tarn_tensor *t = in->n % 2
                       ? tarn_picture_read(cx, "input", in->bytes, in->n, "x", TARN_F32, 4, planes)
                       : tarn_picture_read(cx, "input", in->bytes, in->n, "x", TARN_U8, 3, pixels);
  FUZZ_CHECK(tarn_tensor_count(t) == (in->n % 2 ? 144 : 48));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  fuzz_read(data, n, NULL, read_npz, NULL, "input:");
  fuzz_read(data, n, NULL, read_picture, NULL, "input:");
  return 0;
}
