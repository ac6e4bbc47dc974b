/* model/: tensors as .npy and TensorProto, there and back, and from the forms other programs write.
 */
#include "model/model.h"
#include "tests/context.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tarn_tensor *sample(tarn_ctx *cx, tarn_dtype t, uint32_t n, const int64_t *dim) {
  tarn_tensor *x = tarn_tensor_new(cx, t, n, dim);
  for (int64_t i = 0, count = tarn_tensor_count(x); i < count; i++)
    tarn_tensor_set(x, i,
                    tarn_dtype_is_float(t) ? (tarn_value){.d = (double)i * 0.75 - 2}
                                           : (tarn_value){.i = i * 37 - 50});
  return x;
}

static void check_same(const tarn_tensor *a, const tarn_tensor *b) {
  ck_assert_int_eq(a->dtype, b->dtype);
  ck_assert_uint_eq(a->n, b->n);
  for (uint32_t i = 0; i < a->n; i++) ck_assert_int_eq(a->dim[i], b->dim[i]);
  ck_assert_mem_eq(a->data, b->data, tarn_tensor_bytes(a));
  ck_assert_uint_eq((uintptr_t)b->data % 64, 0);
}

static const struct {
  uint32_t n;
  int64_t dim[3];
} shapes[] = {{0, {0}}, {1, {5}}, {2, {3, 4}}, {3, {2, 0, 3}}, {3, {7, 1, 9}}};

static void round_trip(tarn_ctx *cx, void *arg) {
  const char *dir = arg;
  for (int t = 0; t < TARN_DTYPES; t++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      const tarn_tensor *x = sample(cx, (tarn_dtype)t, shapes[s].n, shapes[s].dim);
      tarn_buf b = {.cx = cx}, p = {.cx = cx};
      tarn_npy_write_bytes(&b, x);
      if (t != TARN_BF16)
        check_same(x, tarn_npy_read_bytes(cx, b.p, b.n, "npy")); /* NumPy has no bfloat16 */
      else ck_assert_int_eq(tarn_npy_read_bytes(cx, b.p, b.n, "npy")->dtype, TARN_F32);
      ck_assert_uint_eq((b.n - (size_t)tarn_tensor_count(x) *
                                   (t == TARN_BF16 ? 4 : tarn_dtype_size((tarn_dtype)t))) %
                            64,
                        0);
      tarn_tensorproto_write_bytes(&p, x, "x");
      check_same(x, tarn_tensorproto_read_bytes(cx, p.p, p.n, "proto"));
      for (int k = 0; k < 2; k++) {
        const char *path = tarn_format(cx, "%s/x.%s", dir, k ? "pb" : "npy");
        tarn_tensor_write(cx, path, x);
        check_same(x, tarn_tensor_read_as(cx, path, (tarn_dtype)t)); /* f32 to bfloat16, too */
        unlink(path);
      }
    }
}

START_TEST(there_and_back) {
  char dir[] = "/tmp/tarn-tensor-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(dir));
  in_context(round_trip, dir);
  ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* ---------------------------------------------------------------- headers, good and bad */

typedef struct file {
  uint8_t p[512];
  size_t n;
} file;

/* A .npy file of version `major` with this dict and `data` bytes 0, 1, 2 … */
static file npy(int major, const char *dict, size_t data) {
  file f = {.n = 0};
  size_t len = strlen(dict), head = major == 1 ? 10 : 12;
  memcpy(f.p, "\x93NUMPY", 6);
  f.p[6] = (uint8_t)major;
  f.p[8] = (uint8_t)len;
  memcpy(f.p + head, dict, len);
  for (size_t i = 0; i < data; i++) f.p[head + len + i] = (uint8_t)i;
  f.n = head + len + data;
  return f;
}

typedef struct reading {
  file f;
  tarn_tensor *t;
} reading;

static void read_npy(tarn_ctx *cx, void *arg) {
  reading *r = arg;
  r->t = tarn_npy_read_bytes(cx, r->f.p, r->f.n, "file");
}

#define DICT(descr, order, shape)                                                                  \
  "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

static const struct {
  int major;
  const char *dict;
  size_t data;
  const char *message;
} headers[] = {
    {1, DICT("<f4", "False", "(2,)"), 8, NULL},
    {2, DICT("<f4", "False", "(2, 1)"), 8, NULL},
    {3, "{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"|u1\"}", 2, NULL},
    {1, DICT("<f4", "False", "()"), 4, NULL},
    {1, DICT("<V2", "False", "(3,)"), 6, NULL},
    {1, DICT("|V4", "False", "(3,)"), 12, "arrays of type '|V4' are not supported"},
    {1, DICT("<f4", "False", "(0, 9223372036854775807)"), 0, "the product of its dims overflows"},
    {1, DICT("<f4", "False", "(2L, 1L)"), 8, NULL},
    {4, DICT("<f4", "False", "(2,)"), 8, "unknown version"},
    {1, DICT("<f4", "False", "(2,)"), 7, "its dims need 8 bytes of f32, the file gives 7"},
    {1, DICT("<f4", "False", "(2,)"), 9, "its dims need 8 bytes of f32, the file gives 9"},
    {1, DICT("<c8", "False", "(1,)"), 8, "arrays of type '<c8' are not supported"},
    {1, DICT("|O", "False", "(1,)"), 8, "arrays of type '|O' are not supported"},
    {1, DICT("", "False", "(1,)"), 8, "arrays of type '' are not supported"},
    {1, DICT("<f4", "Maybe", "(2,)"), 8, "fortran_order is neither True nor False"},
    {1, DICT("<f4", "False", "(-2,)"), 8, "a dim is not a number"},
    {1, DICT("<f4", "False", "(99999999999999999999,)"), 8, "a dim is too large"},
    {1, DICT("<f4", "False", "(4611686018427387904, 4)"), 8, "the product of its dims overflows"},
    {1, DICT("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), 4, "too many dims"},
    {1, DICT("<f4", "False", "[2]"), 8, "shape is not a tuple"},
    {1, "{'descr': '<f4', 'shape': (2,)}", 8, "the header lacks a key"},
    {1, "{'descr': '<f4', 'descr': '<f4'}", 8, "the header has an unexpected key"},
    {1, "{'descr: '<f4'", 8, "the header is not a dict"},
    {1, "{'descr", 0, "an open quote in the header"},
    {1, "", 0, "the header is not a dict"},
};

START_TEST(npy_headers) {
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    reading r = {.f = npy(headers[i].major, headers[i].dict, headers[i].data)};
    tarn_status st = tarn_protect(cx, read_npy, &r);
    ck_assert_msg(st == (headers[i].message ? TARN_BAD_INPUT : TARN_OK), "%s: %s", headers[i].dict,
                  tarn_message(cx));
    if (headers[i].message)
      ck_assert_msg(strstr(tarn_message(cx), headers[i].message), "%s: %s", headers[i].dict,
                    tarn_message(cx));
    tarn_ctx_free(cx);
  }
}
END_TEST

/* Column-major and big-endian data come out row-major and native. */
START_TEST(npy_orders) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  reading r = {.f = npy(1, DICT("|u1", "True", "(2, 3)"), 6)};
  static const uint8_t rows[] = {0, 2, 4, 1, 3, 5};
  ck_assert_int_eq(tarn_protect(cx, read_npy, &r), TARN_OK);
  ck_assert_mem_eq(r.t->data, rows, 6);
  r.f = npy(1, DICT(">i2", "True", "(2, 2)"), 8);
  ck_assert_int_eq(tarn_protect(cx, read_npy, &r), TARN_OK);
  static const int16_t words[] = {0x0001, 0x0405, 0x0203, 0x0607};
  ck_assert_mem_eq(r.t->data, words, 8);
  r.f = npy(1, DICT("|b1", "False", "(3,)"), 3);
  ck_assert_int_eq(tarn_protect(cx, read_npy, &r), TARN_OK);
  ck_assert_int_eq(((uint8_t *)r.t->data)[2], 1); /* a bool is 0 or 1, whatever byte stood there */
  tarn_ctx_free(cx);
}
END_TEST

/* Every prefix of a good file is refused. */
START_TEST(cut_short) {
  file whole = npy(1, DICT("<f4", "False", "(2, 3)"), 24);
  for (size_t n = 0; n < whole.n; n++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    reading r = {.f = whole};
    r.f.n = n;
    ck_assert_int_eq(tarn_protect(cx, read_npy, &r), TARN_BAD_INPUT);
    tarn_ctx_free(cx);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("tensors");
  tcase_add_test(t, there_and_back);
  tcase_add_test(t, npy_headers);
  tcase_add_test(t, npy_orders);
  tcase_add_test(t, cut_short);
  return run_checks("model: tensors", t);
}
