/* A model compiled and run in this process: compile MODEL HARDWARE FOLDER, for example digits.onnx
 * x86-64-v3 out. Prints what the first output is for inputs of zeros. */
#include <compile/compile.h>
#include <stdio.h>

static tarn_tensor **tensors(tarn_ctx *cx, const tarn_loaded *m, bool outputs, const char **name) {
  const tarn_port *p;
  uint32_t n = tarn_loaded_ports(m, outputs, &p);
  tarn_tensor **t = TARN_ARRAY(cx, tarn_tensor *, n + 1);
  for (uint32_t i = 0; i < n; i++) t[i] = tarn_tensor_new(cx, p[i].dtype, p[i].n, p[i].dim);
  *name = p[0].name;
  return t;
}
static void work(tarn_ctx *cx, void *arg) {
  char **word = arg;
  const char *name;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  o.model = word[1];
  o.shapes = (tarn_texts){1, (const char *const[]){"n=1"}};
  o.hw = tarn_hw_load(L, word[2]);
  o.dir = word[3];
  const tarn_compiled *c = tarn_compile(L, &o);
  printf("%u kernels, predicted %.3g ms\n", c->choice.kernels, 1e3 * c->choice.price);
  for (uint32_t i = 0; i < c->nartefact; i++)
    printf("%s, %zu bytes\n", c->artefact[i].path, c->artefact[i].n);

  tarn_loaded *m = tarn_load(cx, o.dir);
  tarn_tensor **in = tensors(cx, m, false, &name);
  tarn_tensor **out = tensors(cx, m, true, &name);
  tarn_loaded_run(m, (const tarn_tensor *const *)in, out, 0);
  printf("%s:", name);
  for (int64_t i = 0; i < tarn_tensor_count(out[0]); i++)
    printf(" %.3f", tarn_tensor_get(out[0], i).d);
  printf("\n");
}
int main(int argc, char **argv) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  if (!cx || argc != 4) return TARN_USAGE;
  tarn_status st = tarn_protect(cx, work, argv);
  if (st != TARN_OK) fprintf(stderr, "%s\n", tarn_message(cx));
  tarn_ctx_free(cx);
  return st;
}
