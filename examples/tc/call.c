/* A comprehension called from C: call DB. The first call compiles, later ones find the function. */
#include <hw/host/host.h>
#include <stdio.h>
#include <string.h>
#include <tune/cache.h>

static const char text[] = "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }";

static void work(tarn_ctx *cx, void *arg) {
  static const char *const found[] = {"called before", "in the file", "compiled"};
  const float A[2][3] = {{1, 2, 3}, {4, 5, 6}}, x[3] = {1, 10, 100};
  float C[2];
  tarn_lang *L = tarn_lang_new(cx);
  tarn_cache *cache = tarn_cache_open(cx, arg);
  tarn_compile_options o = tarn_compile_defaults();
  o.text = text;
  o.text_n = strlen(text);
  o.model = "call.c";
  o.shapes = (tarn_texts){1, (const char *const[]){"A=2,3"}};
  o.hw = tarn_hw_host(L, false);
  for (int i = 0; i < 2; i++) {
    const tarn_call *f = tarn_cache_call(cache, L, &o);
    tarn_call_run(cx, f, (tarn_strided[]){{(void *)A, NULL}, {(void *)x, NULL}},
                  (tarn_strided[]){{C, NULL}}, NULL);
    printf("%g %g, %s\n", C[0], C[1], found[f->found]);
  }
}
int main(int argc, char **argv) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  if (!cx || argc != 2) return TARN_USAGE;
  tarn_status st = tarn_protect(cx, work, argv[1]);
  if (st != TARN_OK) fprintf(stderr, "%s\n", tarn_message(cx));
  tarn_ctx_free(cx);
  return (int)st;
}
