/* model/safetensors.c: external data of a graph in such a file, by name and by offset; heads that
 * are wrong. */
#include "model/model.h"
#include "tests/onnx_text.h"
#include "tests/context.h"
#include "tests/folder.h"
#include <stdio.h>
#include <string.h>

#define W "\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}"
static const struct {
  const char *head, *where, *message; /* message NULL: it loads */
  int64_t length;                     /* that the file says the head has; 0: as it is */
} files[] = {
    {.head = "{" W "}"},
    {.head = "{\"__metadata__\":{\"format\":\"pt\"},\"v\":{\"dtype\":\"U8\",\"shape\":[],"
             "\"data_offsets\":[0,1]}," W "}  "},
    {.head = "{" W "}", .where = "W 4"}, /* by its offset: at its head */
    {.head = "{}", .message = "w.safetensors has no tensor of that name"},
    {.head = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[4,12]}}",
     .message = "in w.safetensors it has another type or other dims"},
    {.head = "{\"w\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     .message = "in w.safetensors it has another type or other dims"},
    {.head = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12]}}",
     .message = "w.safetensors does not say where it lies"},
    {.head = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,4]}}",
     .message = "w.safetensors does not say where it lies"},
    {.head = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,9223372036854775807]}}",
     .message = "external data 'w.safetensors' has"},
    {.head = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,16]}}",
     .message = "its dims need 8 bytes of f32, the file gives 12"},
    {.head = "{\"w\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[4,12]}}",
     .message = "the head of w.safetensors is not one of safetensors: a negative number"},
    {.head = "{" W "," W "}", .message = "safetensors: a name occurs twice"},
    {.head = "{\"w\":", .message = "the head of w.safetensors is not one of safetensors: no JSON"},
    {.head = "[[[[",
     .message =
         "the head of w.safetensors is not one of safetensors: a list where an object belongs"},
    {.head = "[{\"w\":{\"dtype\":\"F32\"}}]", .message = "a list where an object belongs"},
    {.head = "{\"w\":[[\"F32\"]]}", .message = "a list where an object belongs"},
    {.head = "{}", .length = 1000, .message = "external data 'w.safetensors' has"},
    {.head = "{}", .length = INT64_MAX, .message = "has a head of more than 100000000 bytes"},
};

static void write_file(tarn_ctx *cx, const char *head, int64_t length) {
  static const float data[] = {9, 3, 5, 7};
  tarn_buf b = {.cx = cx};
  tarn_buf_i64(&b, length ? length : (int64_t)strlen(head));
  tarn_buf_str(&b, head);
  tarn_buf_add(&b, (const char *)data, sizeof data);
  tarn_write_file(cx, in_folder(cx, "w.safetensors"), b.p, b.n);
}

typedef struct load {
  const char *text;
  tarn_program *p;
} load;
static void run_load(tarn_ctx *cx, void *arg) {
  load *l = arg;
  size_t n;
  uint8_t *bytes = onnx_model(cx, l->text, &n);
  l->p = tarn_model_load_bytes(tarn_lang_new(cx), bytes, n, "input", folder, NULL, NULL);
}

static void check_value(tarn_ctx *cx, const tarn_program *p) {
  int64_t two = 2;
  tarn_binding in = {"x", tarn_tensor_new(cx, TARN_F32, 1, &two)};
  tarn_tensor *y;
  tarn_eval(p->L, &p->out[0].term, 1, &in, 1, TARN_STRICT, NULL, &y);
  ck_assert(tarn_tensor_number(y, 0) == 3 && tarn_tensor_number(y, 1) == 5);
}

static void check_file(tarn_ctx *cx, void *arg) {
  int i = *(const int *)arg;
  bool by_offset = files[i].where != NULL;
  size_t at = 8 + strlen(files[i].head) + 4;
  write_file(cx, files[i].head, files[i].length);
  const char *place = by_offset ? tarn_format(cx, "w.safetensors %zu 8", at) : "w.safetensors";
  load l = {.text =
                tarn_format(cx, "in x f32 2\ndata w f32 2 %s\nnode Add a x w -> y\nout y", place)};
  tarn_status st = tarn_protect(cx, run_load, &l);
  const char *m = tarn_message(cx), *message = files[i].message;
  ck_assert_msg((st == TARN_OK) == !message, "it says: %s", m);
  if (!message) check_value(cx, l.p);
  else ck_assert_msg(strstr(m, message) && strncmp(m, "input: initializer w: ", 22) == 0, "%s", m);
}
START_TEST(heads) { in_context_of(files[_i].head, check_file, &_i); }
END_TEST

int main(void) {
  TCase *t = tcase_create("safetensors");
  tcase_add_loop_test(t, heads, 0, sizeof files / sizeof *files);
  return run_in_folder("safetensors", t);
}
