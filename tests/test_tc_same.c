/* The same function as a comprehension, as ONNX and as a term ends in the same kernels with the
 * same schedules: nothing behind the importers knows where it came from. */
#include "tests/onnx_text.h"
#include "tests/pipeline.h"
#include "tests/context.h"

typedef struct same {
  const char *name, *tc, *onnx, *term;
} same;
static const same cases[] = {
    {"product", "def f(float(24,32) x, float(32,16) w) -> (y) { y(i,j) +=! x(i,k) * w(k,j) }",
     "opset 13\nin x f32 24,32\nin w f32 32,16\nnode MatMul m x w -> y\nout y\n",
     "(compute dotProd (cartProd (access 1 (input x ((24 32) ()) f32)) (access 1 (transpose (1 0) "
     "(input w ((32 16) ()) f32)))))"},
    {"layer",
     "def f(float(24,32) x, float(32,16) w, float(16) b) -> (y) {\n"
     "  y(i,j) +=! x(i,k) * w(k,j)\n  y(i,j) = relu(y(i,j) + b(j)) }",
     "opset 13\nin x f32 24,32\nin w f32 32,16\nin b f32 16\nnode MatMul m x w -> p\n"
     "node Add a p b -> q\nnode Relu r q -> y\nout y\n",
     "(compute (map (max $0 0)) (compute (map (add $0 $1)) (access 2 (compute dotProd (cartProd "
     "(access 1 (input x ((24 32) ()) f32)) (access 1 (transpose (1 0) (input w ((32 16) ()) "
     "f32)))))) (broadcast ((24 16) ()) (insertAxis 0 (access 1 (input b ((16) ()) f32))))))"},
    {"convolution",
     "def f(float(1,8,14,14) x, float(16,8,3,3) w) -> (y) {\n"
     "  y(n,o,h,v) +=! w(o,c,kh,kw) * x(n,c,h + kh,v + kw) }",
     "opset 13\nin x f32 1,8,14,14\nin w f32 16,8,3,3\nnode Conv c x w -> y\nout y\n", NULL},
    {"softmax",
     "def f(float(32,48) x) -> (y) {\n  m(i) max=! x(i,j)\n  e(i,j) = exp(x(i,j) - m(i))\n"
     "  s(i) +=! e(i,j)\n  y(i,j) = e(i,j) / s(i) }",
     "opset 13\nin x f32 32,48\nnode Softmax s x -> y : axis=1\nout y\n", NULL},
    {"pooling",
     "def f(float(1,4,8,8) x) -> (y) {\n"
     "  y(n,c,h,w) max=! x(n,c,2 * h + i,2 * w + j) where i in 0:2, j in 0:2 }",
     "opset 13\nin x f32 1,4,8,8\nnode MaxPool p x -> y : kernel_shape=2,2 strides=2,2\nout y\n",
     NULL},
    {"batched product",
     "def f(float(6,24,32) x, float(6,32,16) w) -> (y) { y(b,i,j) +=! x(b,i,k) * w(b,k,j) }",
     "opset 13\nin x f32 6,24,32\nin w f32 6,32,16\nnode MatMul m x w -> y\nout y\n", NULL},
    {"sum of rows", "def f(float(30,8) x, long(4,5) i) -> (y) { y(b,d) +=! x(i(b,l),d) }",
     "opset 13\nin x f32 30,8\nin i i64 4,5\ninit a i64 1 : 1\nnode Gather g x i -> r : axis=0\n"
     "node ReduceSum s r a -> y : keepdims=0\nout y\n",
     "(compute reduceSum (access 2 (transpose (0 2 1) (access 3 (gather 0 (input x ((30 8) ()) "
     "f32) "
     "(input i ((4 5) ()) i64))))))"},
    {"two sums of rows",
     "def f(float(30,8) x, long(4,5) i, float(20,8) w, long(4,5) k) -> (y, z) {\n"
     "  y(b,d) +=! x(i(b,l),d)\n  z(b,d) +=! w(k(b,l),d) }",
     "opset 13\nin x f32 30,8\nin i i64 4,5\nin w f32 20,8\nin k i64 4,5\ninit a i64 1 : 1\n"
     "node Gather g x i -> r : axis=0\nnode ReduceSum s r a -> y : keepdims=0\n"
     "node Gather h w k -> q : axis=0\nnode ReduceSum t q a -> z : keepdims=0\nout y\nout z\n",
     NULL}};

static tarn_program *of_term(tarn_lang *L, const char *text) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_program *p = TARN_NEW(cx, tarn_program);
  tarn_io *out = TARN_NEW(cx, tarn_io);
  out->name = "out";
  out->term = tarn_term_parse(L, tarn_sx_read(cx, text, strlen(text), "term")->kid[0]);
  out->type = tarn_term_get(L, out->term)->type;
  *p = (tarn_program){.L = L, .nout = 1, .out = out};
  return p;
}

/* The kernels with their schedules; names and buffers are left out. */
static const char *kernels(tarn_ctx *cx, tarn_program *p, const tarn_hw *hw) {
  tarn_buf b = {.cx = cx};
  const tarn_kprog *k = pipeline_optimise(p, hw)->kprog;
  for (uint32_t i = 0; i < k->nker; i++) {
    bool nest = k->ker[i].kind == TARN_K_NEST;
    tarn_buf_fmt(&b, "kind %d, %s %u, %u to %u: ", (int)k->ker[i].kind, nest ? "nest" : "payload",
                 nest ? k->ker[i].nest : k->ker[i].payload, k->ker[i].nin, k->ker[i].nout);
    if (k->ker[i].sched) tarn_schedule_print(&b, k->ker[i].sched);
    tarn_buf_str(&b, "\n");
  }
  return b.p;
}

static void compare(tarn_ctx *cx, void *arg) {
  const same *s = arg;
  size_t n;
  tarn_lang *L = tarn_lang_new(cx);
  const tarn_hw *hw = tarn_hw_load(L, "x86-64-v3");
  const void *onnx = onnx_model(cx, s->onnx, &n);
  const char *a = kernels(cx, tarn_comprehension(L, s->tc, strlen(s->tc), "f.tc", NULL, NULL), hw);
  const char *b = kernels(cx, tarn_model_load_bytes(L, onnx, n, "f.onnx", NULL, NULL, NULL), hw);
  ck_assert_str_eq(a, b);
  if (s->term) ck_assert_str_eq(a, kernels(cx, of_term(L, s->term), hw));
}

START_TEST(same_kernels) { in_context_of(cases[_i].name, compare, &cases[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("tc_same");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, same_kernels, 0, (int)(sizeof cases / sizeof *cases));
  return run_checks("tc_same", t);
}
