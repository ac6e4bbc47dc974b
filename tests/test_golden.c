/* Golden programs: seven nets of tests/golden on four machines each. What is chosen for them, and
 * how each kernel is computed, stands in tests/golden/NET.MACHINE: kernels, copies, the program,
 * and of each loop program the number of statements of each kind and a fingerprint of its text.
 *
 *   test_golden             compares
 *   test_golden --update    writes them anew (make golden, which shows the difference) */
#include "tests/context.h"
#include "compile/compile.h"
#include "tests/pipeline.h"
#include "tests/rules_kit.h"
#include <string.h>
#include <unistd.h>

#define PLACE TARN_TOP "/tests/golden/"
static const char *const nets[] = {"residual",  "separable",  "fire", "encoder",
                                   "generator", "perceptron", "bytes"};
static const char *const machines[] = {"x86-64-v3", "aarch64", "cuda-sm80", "systolic-f32"};
static const char *const of_bytes[] = {"x86-64-vnni", "aarch64-dotprod", "vta-pynq",
                                       "gemmini-default"};
#define NETS     (sizeof nets / sizeof *nets)
#define MACHINES (sizeof machines / sizeof *machines)

static bool update;

/* "(loop" of a text of statements, and so on. */
static unsigned times(const char *text, const char *word) {
  unsigned n = 0;
  for (; (text = strstr(text, word)); n++) text += strlen(word);
  return n;
}
static void put_plan(const tarn_kernel *k, tarn_buf *b) {
  static const char *const kinds[] = {"loop", "copies", "lanes",   "tile",     "if",   "guard",
                                      "case", "thread", "map",     "step",     "dot",  "times",
                                      "copy", "unit",   "compute", "prefetch", "await"};
  tarn_buf text = {.cx = b->cx};
  if (k->plan->unit) tarn_unit_print(k->plan->unit, &text);
  else tarn_plan_print(k->plan->nest, &text);
  tarn_buf_fmt(b, "%s:", k->name);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    unsigned n = times(text.p, tarn_format(b->cx, "(%s", kinds[i]));
    if (n) tarn_buf_fmt(b, " %u %s", n, kinds[i]);
  }
  tarn_buf_fmt(b, " %016llx\n", (unsigned long long)tarn_hash_bytes(text.p, text.n, 1));
}
static void put_program(const tarn_compiled *c, tarn_buf *b) {
  const tarn_kprog *p = c->kernels;
  unsigned copies = 0;
  for (uint32_t i = 0; i < p->nker; i++) copies += p->ker[i].copy;
  tarn_buf_fmt(b, "; %u kernels, %u copies among them\n", p->nker, copies);
  tarn_kprog_print(p, b);
  tarn_buf_str(b, "\n");
  for (uint32_t i = 0; i < p->nker; i++)
    if (p->ker[i].kind == TARN_K_NEST) put_plan(&p->ker[i], b);
}
/* The line in which two texts part. */
static const char *line_at(tarn_ctx *cx, const char *text, size_t at) {
  size_t from = at;
  while (from && text[from - 1] != '\n') from--;
  return tarn_format(cx, "%.*s", (int)tarn_min(strcspn(text + from, "\n"), 160), text + from);
}
static void compare(tarn_ctx *cx, const char *file, const tarn_buf *is) {
  size_t n, at = 0;
  const char *was = tarn_read_file(cx, file, &n);
  while (at < n && at < is->n && was[at] == is->p[at]) at++;
  ck_assert_msg(at == n && n == is->n,
                "%s: make golden shows the difference, which begins with\n%s\n%s",
                file + strlen(PLACE), line_at(cx, was, at), line_at(cx, is->p, at));
}
/* A net's file: a term, or ONNX made of its text (onnx_text.h). */
static const char *model(tarn_ctx *cx, const char *net) {
  size_t n;
  const char *term = tarn_format(cx, PLACE "%s.term", net);
  if (!access(term, R_OK)) return term;
  const char *text = tarn_read_file(cx, tarn_format(cx, PLACE "%s.net", net), &n);
  const char *onnx = tarn_format(cx, "%s/%s.onnx", pipeline_folder(cx), net);
  const uint8_t *bytes = kit_model_bytes(cx, text, &n);
  tarn_write_file(cx, onnx, (const char *)bytes, n);
  return onnx;
}
typedef struct golden {
  const char *net, *machine;
} golden;
static void run_golden(tarn_ctx *cx, void *arg) {
  const golden *g = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  o.model = model(cx, g->net);
  o.hw = tarn_hw_load(L, g->machine);
  o.threads = 2;
  tarn_compiled *c = tarn_compile_load(L, &o);
  tarn_compile_optimise(c);
  tarn_kprog_plan(tarn_planner_new(L, true, NULL), c->kernels);
  tarn_buf is = {.cx = cx};
  put_program(c, &is);
  const char *file = tarn_format(cx, PLACE "%s.%s", g->net, g->machine);
  if (!update) compare(cx, file, &is);
  else tarn_write_file(cx, file, is.p, is.n);
}
static golden at(size_t i) {
  bool bytes = !strcmp(nets[i / MACHINES], "bytes");
  return (golden){nets[i / MACHINES], (bytes ? of_bytes : machines)[i % MACHINES]};
}
START_TEST(programs) {
  golden g = at((size_t)_i);
  in_context_of(g.net, run_golden, &g);
}
END_TEST

int main(int argc, char **argv) {
  update = argc > 1 && !strcmp(argv[1], "--update");
  TCase *t = tcase_create("golden");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, programs, 0, (int)(NETS * MACHINES));
  return run_checks("golden", t);
}
