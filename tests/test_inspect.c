/* model/inspect.c: a model is described, and every node that is not supported is named. */
#include "model/model.h"
#include "tests/context.h"
#include "tests/onnx_text.h"

static const tarn_inspection *inspect(tarn_ctx *cx, const char *text,
                                      const tarn_model_options *options) {
  size_t n;
  uint8_t *bytes = onnx_model(cx, text, &n);
  return tarn_source_inspect(tarn_source_onnx(cx, bytes, n, "input"), options);
}
/* The faults, a line each; then the names of the sizes. */
static const char *text_of(tarn_ctx *cx, const tarn_inspection *x) {
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < x->nunsupported; i++) {
    const tarn_unsupported *u = &x->unsupported[i];
    tarn_buf_fmt(&b, "%s %s: %s\n", u->node, u->op, u->why);
  }
  for (uint32_t i = 0; i < x->nsize; i++) {
    const tarn_open_size *s = &x->size[i];
    tarn_buf_fmt(&b, "%s/%s/%d=%d\n", s->name, s->input, (int)s->axis, (int)s->assumed);
  }
  tarn_buf_fmt(&b, "%u not judged", x->nunjudged);
  return b.p;
}

static const struct {
  const char *text, *says;
} models[] = {
    {"in x f32 2\nnode Relu r x -> y\nout y", "0 not judged"},
    /* faults side by side, one behind another, and one that only the walk finds */
    {"in x f32 4,3\nnode Wibble a x -> p\nnode Relu b p -> q\nnode Elu c x -> r : odd=1\n"
     "node Add d x -> s\nnode RandomNormalLike e q -> t\nnode Exp f x -> u\nout q\nout r\nout s\n"
     "out t\nout u",
     "a Wibble: unknown operator of domain ai.onnx, operator set 17\n"
     "c Elu: attribute odd is not supported\n"
     "d Add: 1 inputs, needs 2\n"
     "e RandomNormalLike: random operators are not supported: a program gives one result per "
     "input\n1 not judged"},
    /* inputs and weights */
    {"in x string 2\nin y f32 2\ndata w f32 2 w.bin\nnode Relu r x -> p\nnode Add s y w -> q\n"
     "node Neg t y -> u\nout p\nout q\nout u",
     "initializer w : external data is not allowed here\n"
     "input x : tensors of type string are not supported\n2 not judged"},
    /* sizes: one value for each name, wherever it stands; an axis without a name; no shape at all
     */
    {"in x f32 B,3\nin y f32 2*B,?\nnode Relu r x -> p\nnode Exp s y -> q\nout p\nout q",
     "B//0=1\n/y/1=1\n0 not judged"},
    {"in x f32 *\nin y f32 4\nnode Relu r x -> p\nnode Exp s y -> q\nout p\nout q",
     "/x/-1=0\n1 not judged"},
    /* 1 would not do: 8 is the first of those tried that does */
    {"in x f32 B,3\ninit s i64 2 : 8 3\nnode Reshape r x s -> y\nout y", "B//0=8\n0 not judged"},
    /* no size helps: the fault is said, with the least that is assumed */
    {"in x f32 B,3\nnode Wibble r x -> y\nout y",
     "r Wibble: unknown operator of domain ai.onnx, operator set 17\nB//0=1\n0 not judged"},
};
static void check_model(tarn_ctx *cx, void *arg) {
  int i = *(int *)arg;
  const char *got = text_of(cx, inspect(cx, models[i].text, NULL));
  ck_assert_msg(!strcmp(got, models[i].says), "%s\nsays\n%s\nnot\n%s", models[i].text, got,
                models[i].says);
}
START_TEST(says) { in_context(check_model, &_i); }
END_TEST

static void check_figures(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_shape_binding b = tarn_shape_binding_parse(cx, "x=5,3");
  const tarn_inspection *x = inspect(
      cx,
      "in x f32 B,3\ninit w f32 3,2 : 1 2 3 4 5 6\ninit i i64 1 : 3\nnode MatMul m x w -> p\n"
      "node Relu r p -> q\nnode Relu s q -> u\nnode Relu t x -> v\nout u\nout v",
      &(tarn_model_options){.nshape = 1, .shape = &b});
  ck_assert_uint_eq(x->nunsupported, 0);
  ck_assert_uint_eq(x->nsize, 0);
  ck_assert_uint_eq(x->nin, 1);
  ck_assert_str_eq(x->in[0].type, "f32[B,3]");
  ck_assert_uint_eq(x->nout, 2);
  ck_assert_uint_eq(x->nweight, 2);
  ck_assert_int_eq(x->weight_bytes, 3 * 2 * 4 + 8);
  ck_assert_uint_eq(x->nop, 2);
  ck_assert_str_eq(x->op[0].name, "Relu");
  ck_assert_uint_eq(x->op[0].n, 3);
  ck_assert_uint_eq(x->op[1].n, 1);
  ck_assert_int_eq(x->most_bytes, 5 * 3 * 4);
  ck_assert_str_eq(x->most, "t");
}
START_TEST(figures) { in_context(check_figures, NULL); }
END_TEST

static void check_ops(tarn_ctx *cx, void *arg) {
  (void)arg;
  const tarn_known_op *op;
  uint32_t n = tarn_known_ops(cx, &op), found = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (i)
      ck_assert(
          strcmp(op[i - 1].domain, op[i].domain) < 0 ||
          (!strcmp(op[i - 1].domain, op[i].domain) && strcmp(op[i - 1].name, op[i].name) < 0));
    if (!strcmp(op[i].name, "TopK")) found += op[i].support == TARN_OP_REFERENCE;
    if (!strcmp(op[i].name, "Bernoulli")) found += op[i].support == TARN_OP_REFUSED;
    if (!strcmp(op[i].name, "Unique")) found += op[i].support == TARN_OP_CONSTANT;
    if (!strcmp(op[i].name, "Conv")) found += op[i].support == TARN_OP_AS_TERMS;
  }
  ck_assert_uint_eq(found, 4);
}
START_TEST(ops) { in_context(check_ops, NULL); }
END_TEST

/* ---------------------------------------------------------------- other files */

#define BYTES(s) s, sizeof(s) - 1
static const struct {
  const char *bytes;
  size_t n;
  const char *says;
} files[] = {
    {BYTES(""), "the file is empty"},
    {BYTES("\x1c\0\0\0TFL3\0\0\0\0"), "TensorFlow Lite"},
    {BYTES("\x93NUMPY\1\0v\0{'descr'"), "one tensor of NumPy"},
    {BYTES("PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\5\0\0\0x.npy....."),
     "archive of NumPy"},
    {BYTES("PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\16\0\0\0model/data.pkl"),
     "PyTorch"},
    {BYTES("PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\377\377\0\0q"), "a zip file"},
    {BYTES("\x80\2\x8a\nl\xfc\x9c"), "pickle"},
    {BYTES("\x89HDF\r\n\x1a\n..."), "HDF5"},
    {BYTES("\x0f\0\0\0\0\0\0\0{\"w\": [1,2,3]} "), "safetensors"},
    {BYTES("\x08\1\x12\x9c\x10\x0a\x05serve.........."), "a SavedModel of TensorFlow"},
    {BYTES("\x0a\x1a\x0a\x05input\x12\x0bPlaceholder"), "a graph of TensorFlow"},
    {BYTES("// of a compiler\n\nmodule {\n}\n"), "MLIR as text"},
    {BYTES("ML\xefR\rMLIR"), "MLIR in its binary form"},
    {BYTES("\n<!DOCTYPE html><html>"), "a page for a browser"},
    {BYTES("version https://git-lfs.github.com/spec/v1\noid"), "Git LFS"},
    {BYTES("{\"nodes\": 3}"), "JSON"},
};
static void open_bytes(tarn_ctx *cx, void *arg) {
  int i = *(int *)arg;
  tarn_source_onnx(cx, files[i].bytes, files[i].n, "input");
}
START_TEST(formats) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_int_eq(tarn_protect(cx, open_bytes, &_i), TARN_BAD_INPUT);
  const char *m = tarn_message(cx);
  ck_assert_msg(strstr(m, files[_i].says) && !strchr(m, '\n'), "%s: %s", files[_i].says, m);
  tarn_ctx_free(cx);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("inspect");
  tcase_add_loop_test(t, says, 0, sizeof models / sizeof *models);
  tcase_add_test(t, figures);
  tcase_add_test(t, ops);
  tcase_add_loop_test(t, formats, 0, sizeof files / sizeof *files);
  return run_checks("inspect", t);
}
