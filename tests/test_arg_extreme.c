/* ArgMax and ArgMin of rows of few different values, NaN among them, whose lanes meet equals in any
 * order: as the interpreter, which goes from the first to the last, in class exact too. */
#include "tests/context.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"

static const char *const nets[] = {
    "in x f32 5,203\nnode ArgMax a x -> y : axis=1\nout y\n",
    "in x f32 5,203\nnode ArgMax a x -> y : axis=1 select_last_index=1\nout y\n",
    "in x f32 1,511\nnode ArgMin a x -> y : axis=1 keepdims=0\nout y\n",
    "in x f32 2,130\nnode ArgMin a x -> y : axis=1 select_last_index=1\nout y\n",
    "in x i32 3,96\nnode ArgMax a x -> y : axis=1\nout y\n",
    "in x i32 3,96\nnode ArgMin a x -> y : axis=1 select_last_index=1\nout y\n",
    "in x f32 70,16\nnode ArgMax a x -> y : axis=0\nout y\n",
};
static const tarn_tensor *few(tarn_ctx *cx, tarn_lang *L, uint32_t type, uint64_t *seed) {
  tarn_tensor *x = kit_values(cx, tarn_type_get(L, type), seed);
  static const double value[] = {1, 1, 1, 0.5, -2, -INFINITY, NAN};
  bool real = tarn_dtype_is_float(x->dtype);
  uint32_t some = 1 + (uint32_t)(tarn_random(seed) % 7);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) {
    uint32_t k = (uint32_t)(tarn_random(seed) % some);
    tarn_tensor_set(x, i, real ? (tarn_value){.d = value[k]} : (tarn_value){.i = k % 3});
  }
  return x;
}
static void right(tarn_ctx *cx, void *arg) {
  const char *text = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_buf host = pipeline_host(cx);
  tarn_program *p = kit_model(L, text);
  const tarn_hw *hw = tarn_hw_parse(L, tarn_sx_read(cx, host.p, host.n, "host"));
  pipeline *r = pipeline_extract(p, hw, (tarn_kgraph_options){.method = TARN_SEL_GREEDY});
  uint64_t seed = 7;
  for (uint32_t i = 0; i < 3; i++) {
    tarn_binding in = {p->in[0].name, few(cx, L, p->in[0].type, &seed)};
    pipeline_try(r, &in, text);
  }
}
START_TEST(places) { in_context(right, (void *)(uintptr_t)nets[_i]); }
END_TEST

int main(void) {
  TCase *t = tcase_create("places of extremes");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, places, 0, sizeof nets / sizeof *nets);
  return run_checks("places of extremes", t);
}
