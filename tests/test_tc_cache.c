/* Comprehensions called in this process: the cache, what finds an entry again, injected kernels. */
#include "tests/context.h"
#include "tests/folder.h"
#include "hw/host/host.h"
#include "tests/alloc.h"
#include "tune/cache.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MV    "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }"
#define SAME  "# renamed\ndef f(float(R,S) m,\n  float(S) v) -> (out) {\n out(r) +=! m(r,s)*v(s)\n}"
#define TWICE "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! 2 * A(i,k) * x(k) }"

typedef struct fixture {
  tarn_ctx *cx;
  tarn_lang *L;
  tarn_cache *c;
  tarn_compile_options o;
} fixture;

static fixture opened(tarn_ctx *cx, const char *db) {
  static const char *const shapes[] = {"A=5,7"};
  fixture f = {.cx = cx, .L = tarn_lang_new(cx), .c = tarn_cache_open(cx, in_folder(cx, db))};
  f.o = tarn_compile_defaults();
  f.o.hw = tarn_hw_host(f.L, false);
  f.o.threads = 1;
  f.o.model = "test.tc";
  f.o.shapes = (tarn_texts){1, shapes};
  return f;
}
static const tarn_call *call(fixture *f, const char *text) {
  f->o.text = text;
  f->o.text_n = strlen(text);
  return tarn_cache_call(f->c, f->L, &f->o);
}
/* A matrix of ones times 0 … 6. */
static float first(tarn_ctx *cx, const tarn_call *f) {
  float A[35], x[7], C[5] = {0};
  for (int i = 0; i < 35; i++) A[i] = 1;
  for (int i = 0; i < 7; i++) x[i] = (float)i;
  tarn_call_run(cx, f, (tarn_strided[]){{A, NULL}, {x, NULL}}, (tarn_strided[]){{C, NULL}}, NULL);
  return C[4];
}

static void finds(tarn_ctx *cx, void *arg) {
  (void)arg;
  static const char *const renamed[] = {"m=5,7"}, *const sizes[] = {"K=7", "M=5"};
  fixture f = opened(cx, "finds.db");
  const tarn_call *a = call(&f, MV);
  ck_assert(a->found == TARN_FOUND_NOT && a->nin == 2 && a->nout == 1 && a->in[0].n == 2);
  ck_assert(first(cx, a) == 21);
  ck_assert(call(&f, MV) == a && a->found == TARN_FOUND_HERE);
  f.o.shapes = (tarn_texts){1, renamed};
  ck_assert(call(&f, SAME) == a && a->found == TARN_FOUND_HERE);
  f.o.shapes = (tarn_texts){2, sizes}; /* the same shapes, said otherwise */
  ck_assert(call(&f, MV) == a && a->found == TARN_FOUND_HERE);
  f.o.numerics = TARN_RULE_EXACT;
  ck_assert(call(&f, MV)->found == TARN_FOUND_NOT);
  fixture other = opened(cx, "finds.db"); /* as another process has it */
  const tarn_call *b = call(&other, MV);
  ck_assert(b->found == TARN_FOUND_STORED && b != a && first(cx, b) == 21);
  ck_assert(tarn_cache_check(other.c, other.L, &other.o, 7).ok);
  tarn_cache_renew(other.c, other.L, &other.o);
}

/* Without a cache. */
static void loaded(tarn_ctx *cx, void *arg) {
  (void)arg;
  fixture f = opened(cx, "none.db");
  f.o.text = MV;
  f.o.text_n = strlen(MV);
  tarn_loaded *m = tarn_compile_loaded(f.L, &f.o);
  float A[35] = {[14] = 3, [34] = 5}, x[7] = {2, 0, 0, 0, 0, 0, 4}, C[5];
  char *workspace = tarn_new_aligned(cx, tarn_loaded_workspace(m, 1) + 1, 64);
  int code =
      tarn_loaded_function(m)((const void *const[]){A, x}, (void *const[]){C}, workspace, NULL);
  ck_assert(code == 0 && C[2] == 6 && C[4] == 20 && C[0] == 0);
}

static void strides(tarn_ctx *cx, void *arg) {
  (void)arg;
  fixture f = opened(cx, "strides.db");
  const tarn_call *a = call(&f, MV);
  float A[7][5], x[14], C[10];
  for (int k = 0; k < 7; k++)
    for (int i = 0; i < 5; i++) A[k][i] = (float)(i * k);
  for (int k = 0; k < 14; k++) x[k] = k % 2 ? 100 : 1;
  const int64_t turned[] = {1, 5}, second[] = {2};
  tarn_call_run(cx, a, (tarn_strided[]){{A, turned}, {x, second}}, (tarn_strided[]){{C, second}},
                NULL);
  for (int i = 0; i < 5; i++) ck_assert(C[2 * i] == (float)(21 * i));
}

static void injected(tarn_ctx *cx, void *arg) {
  const char *so = arg;
  size_t n;
  fixture f = opened(cx, "injected.db");
  f.o.text = MV;
  f.o.text_n = strlen(MV);
  const void *bytes = tarn_read_file(cx, so, &n);
  tarn_cache_inject(f.c, f.L, &f.o, bytes, n, true);
  const tarn_call *a = call(&f, MV);
  ck_assert(a->injected && first(cx, a) == 21);
  tarn_cache_renew(f.c, f.L, &f.o); /* does not replace it */
  fixture other = opened(cx, "injected.db");
  a = call(&other, MV);
  ck_assert(a->injected && a->found == TARN_FOUND_STORED && first(cx, a) == 21);
}

static void refused(tarn_ctx *cx, void *arg) {
  (void)arg;
  fixture f = opened(cx, "refused.db");
  f.o.text = TWICE;
  f.o.text_n = strlen(TWICE);
  tarn_compile_options in_memory = f.o;
  in_memory.emit = "so";
  const tarn_compiled *c = tarn_compile(f.L, &in_memory);
  const tarn_artefact *so = c->artefact;
  while (strcmp(so->name, "model.so") != 0) so++;
  f.o.text = MV;
  f.o.text_n = strlen(MV);
  tarn_cache_inject(f.c, f.L, &f.o, so->data, so->n, true);
}

static void broken(tarn_ctx *cx, void *arg) {
  fixture f = opened(cx, "broken.db");
  call(&f, arg);
}

static void fails(tarn_fn *fn, void *arg, tarn_status want, const char *words) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, fn, arg);
  ck_assert_msg(st == want && strstr(tarn_message(cx), words), "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}

START_TEST(entries) { in_context(finds, NULL); }
END_TEST
START_TEST(memory_of_the_caller) {
  in_context(strides, NULL);
  in_context(loaded, NULL);
}
END_TEST

/* A function written by hand: a shared object of a C file. */
START_TEST(by_hand) {
  static const char text[] =
      "int tarn_run(const void *const *in, void *const *out, void *w, void *pool) {\n"
      "  const float *A = in[0], *x = in[1];\n  float *C = out[0];\n  (void)w, (void)pool;\n"
      "  for (int i = 0; i < 5; i++) {\n    C[i] = 0;\n"
      "    for (int k = 0; k < 7; k++) C[i] += A[7 * i + k] * x[k];\n  }\n  return 0;\n}\n";
  char c[64], so[64], command[256];
  snprintf(c, sizeof c, "%s/hand.c", folder);
  snprintf(so, sizeof so, "%s/hand.so", folder);
  FILE *f = fopen(c, "w");
  fputs(text, f);
  fclose(f);
  snprintf(command, sizeof command, "cc -O1 -shared -fPIC -o %s %s", so, c);
  ck_assert_int_eq(system(command), 0);
  in_context(injected, so);
}
END_TEST
START_TEST(wrong_ones) {
  fails(refused, NULL, TARN_NO, "what is injected is wrong");
  fails(broken, "def f(float(N) x) -> (y) { y(i) = x(k) }", TARN_BAD_INPUT, "test.tc:");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("tc_cache");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, entries);
  tcase_add_test(t, memory_of_the_caller);
  tcase_add_test(t, by_hand);
  tcase_add_test(t, wrong_ones);
  return run_in_folder("tc_cache", t);
}
