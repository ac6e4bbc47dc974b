/* Small models with their right values: each folder of tests/cases holds model.onnx or a .term,
 * in_NAME.npy for each input and expected_K.npy for the K-th output, or error.txt with words that
 * the refusal must contain: of the importer, or of the interpreter and of every compiled program.
 * tolerance.txt: a number, what elements may differ by in place of what is usual for their type.
 *
 *   test_cases [--all]      exact and reassoc; --all: approx too
 *   test_cases NAME         one case in all classes, its first difference printed
 *
 * A case is run as imported in the interpreter, then optimised and compiled in each numerics class,
 * in a process of its own, and judged element by element. */
#include "model/model.h"
#include "tests/pipeline.h"
#include "tests/suite.h"
#include <dirent.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define FOLDER TARN_TOP "/tests/cases"
#define MOST   400

enum { INTERPRETED = 1, OPTIMISED = 2, COMPILED = 4, ALL_WAYS = 7 };
typedef struct test_case {
  const char *name;
  int first, last; /* numerics classes */
  unsigned ways;
} test_case;
static char names[MOST][256];
static int count;
static const char *only;
static bool all_classes;

static bool exists(const char *path) { return !access(path, R_OK); }
static const char *file(tarn_ctx *cx, const char *name, const char *what) {
  return tarn_format(cx, "%s/%s/%s", FOLDER, name, what);
}

/* What one rounding of the type, and a sum of a few dozen, may differ by. */
static double tolerance(tarn_ctx *cx, const char *name, tarn_dtype t) {
  const char *own = file(cx, name, "tolerance.txt");
  size_t n;
  if (exists(own)) return strtod(tarn_read_file(cx, own, &n), NULL);
  if (t == TARN_F64) return 1e-9;
  if (t == TARN_F32) return 2e-5;
  return t == TARN_F16 ? 2e-3 : 1.6e-2;
}
static bool like(double a, double b, double rtol) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  bool finite = isfinite(a) && isfinite(b); /* or an infinity would allow anything */
  return a == b || (finite && fabs(a - b) <= rtol * fmax(fabs(b), 1e-3));
}

static void compare(tarn_ctx *cx, const char *way, const char *name, const tarn_tensor *got,
                    const tarn_tensor *want, double rtol) {
  bool same = got->n == want->n;
  for (uint32_t d = 0; same && d < got->n; d++) same = got->dim[d] == want->dim[d];
  if (!same) tarn_raise(cx, TARN_NO, "%s: %s has another shape", way, name);
  bool real = tarn_dtype_is_float(got->dtype);
  if (real != tarn_dtype_is_float(want->dtype))
    tarn_raise(cx, TARN_NO, "%s: %s has another type", way, name);
  for (int64_t i = 0, n = tarn_tensor_count(got); i < n; i++) {
    tarn_value a = tarn_tensor_get(got, i);
    tarn_value b = tarn_tensor_get(want, i);
    if (real && !like(a.d, b.d, rtol))
      tarn_raise(cx, TARN_NO, "%s: %s[%lld] is %.9g, %.9g is right", way, name, (long long)i, a.d,
                 b.d);
    if (!real && a.i != b.i)
      tarn_raise(cx, TARN_NO, "%s: %s[%lld] is %lld, %lld is right", way, name, (long long)i,
                 (long long)a.i, (long long)b.i);
  }
}

static tarn_tensor *read_input(tarn_ctx *cx, const char *name, const tarn_program *p, uint32_t i) {
  const char *path = file(cx, name, tarn_format(cx, "in_%s.npy", p->in[i].name));
  return tarn_tensor_read_as(cx, path, tarn_type_get(p->L, p->in[i].type)->dtype);
}
static void judge(tarn_ctx *cx, const char *name, const char *way, const tarn_program *p,
                  tarn_tensor **out) {
  for (uint32_t i = 0; i < p->nout; i++) {
    const char *path = file(cx, name, tarn_format(cx, "expected_%u.npy", i));
    double rtol = tolerance(cx, name, out[i]->dtype);
    if (exists(path)) compare(cx, way, p->out[i].name, out[i], tarn_tensor_read(cx, path), rtol);
  }
}

/* Against what the interpreter gives: bit for bit (one NaN is as good as another), or as rounding
 * allows. */
static void equal(const char *way, const tarn_program *p, bool exact, const pipeline_want *meant,
                  tarn_tensor **got) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const char *wrong = pipeline_wrong(p, meant, got);
  if (wrong) tarn_raise(cx, TARN_NO, "%s: %s", way, wrong);
  for (uint32_t k = 0; exact && k < p->nout; k++)
    for (int64_t i = 0, n = tarn_tensor_count(got[k]); i < n; i++) {
      tarn_value a = tarn_tensor_get(got[k], i);
      tarn_value b = tarn_tensor_get(meant->out[k].strict, i);
      bool real = tarn_dtype_is_float(got[k]->dtype);
      if (a.i != b.i && !(real && isnan(a.d) && isnan(b.d)))
        tarn_raise(cx, TARN_NO, "%s: %s[%lld] is not what the interpreter gives", way,
                   p->out[k].name, (long long)i);
    }
}

static void run_class(tarn_program *p, const test_case *t, const tarn_binding *in,
                      tarn_rule_class numerics) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  bool exact = numerics == TARN_RULE_EXACT;
  const char *class = tarn_rule_class_name(numerics);
  tarn_kgraph_options ko = {.method = TARN_SEL_GREEDY, .strict = exact};
  pipeline *r = pipeline_extract_as(p, tarn_hw_host(p->L, false), ko, numerics);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  pipeline_want meant;
  if (t->ways & INTERPRETED)
    meant = pipeline_expect(p, in, numerics, tarn_sat_result(r->sat)->bound);
  if (t->ways & OPTIMISED) {
    tarn_kprog_eval(r->kprog, in, p->nin, TARN_STRICT, tarn_opaque_eval, out);
    judge(cx, t->name, tarn_format(cx, "optimised, %s", class), p, out);
    if (t->ways & INTERPRETED) equal("optimised", p, exact, &meant, out);
  }
  if (t->ways & COMPILED) {
    pipeline_run(pipeline_compile_as(r, pipeline_folder(cx), !exact), p, in, out);
    judge(cx, t->name, tarn_format(cx, "compiled, %s", class), p, out);
    if (t->ways & INTERPRETED) equal("compiled", p, exact, &meant, out);
  }
}

static const char *model_of(tarn_ctx *cx, const char *name) {
  const char *term = file(cx, name, "g.term");
  return exists(term) ? term : file(cx, name, "model.onnx");
}

static void run_case(tarn_ctx *cx, void *arg) {
  const test_case *t = arg;
  tarn_model_options o = {0};
  tarn_model_report report;
  tarn_program *p = tarn_model_load(tarn_lang_new(cx), model_of(cx, t->name), &o, &report);
  tarn_binding *in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout + 1);
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout + 1);
  for (uint32_t i = 0; i < p->nin; i++)
    in[i] = (tarn_binding){p->in[i].name, read_input(cx, t->name, p, i)};
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  if (t->ways & INTERPRETED) {
    tarn_eval(p->L, root, p->nout, in, p->nin, TARN_STRICT, tarn_opaque_eval, out);
    judge(cx, t->name, "interpreted", p, out);
  }
  for (int c = t->first; c <= t->last; c++) run_class(p, t, in, (tarn_rule_class)c);
}

/* In every class and way. */
static void refused(tarn_ctx *cx, const char *name, const char *words, int last) {
  for (int c = TARN_RULE_EXACT; c <= last; c++)
    for (unsigned way = INTERPRETED; way <= COMPILED; way *= 2) {
      test_case t = {name, c, c, way};
      ck_assert_msg(tarn_protect(cx, run_case, &t) != TARN_OK,
                    "%s: is taken, but must be refused (%d, %u)", name, c, way);
      ck_assert_msg(strstr(tarn_message(cx), words), "%s: \"%s\" does not say \"%s\"", name,
                    tarn_message(cx), words);
    }
}

/* Networks that take seconds to extract: beyond exact ones with --all alone, but for deform_conv.
 */
static const char *const longer[] = {
    "deform_conv_3d",  "deform_conv_depthwise",          "deform_conv_f16",
    "deform_conv_f64", "deform_conv_offset_group_wider", "dynamic_quantize_lstm_lengths",
    "lstm_long",
};
static tarn_rule_class last_of(const char *name) {
  if (all_classes) return TARN_RULE_APPROX;
  for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
    if (!strcmp(longer[i], name)) return TARN_RULE_EXACT;
  return TARN_RULE_REASSOC;
}
START_TEST(test_one) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  test_case t = {names[_i], TARN_RULE_EXACT, last_of(names[_i]), ALL_WAYS};
  const char *error = tarn_format(cx, "%s/%s/error.txt", FOLDER, t.name);
  if (exists(error)) {
    size_t n;
    char *words = tarn_read_file(cx, error, &n);
    words[strcspn(words, "\n")] = 0;
    refused(cx, t.name, words, t.last);
  } else
    ck_assert_msg(tarn_protect(cx, run_case, &t) == TARN_OK, "%s: %s", t.name, tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

static int by_name(const void *a, const void *b) { return strcmp(a, b); }
static void list_cases(void) {
  DIR *d = opendir(FOLDER);
  for (struct dirent *e; d && count < MOST && (e = readdir(d));)
    if (e->d_name[0] != '.' && (!only || !strcmp(only, e->d_name)))
      snprintf(names[count++], sizeof *names, "%s", e->d_name);
  if (d) closedir(d);
  qsort(names, (size_t)count, sizeof *names, by_name);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--all") != 0) only = argv[1];
  all_classes = argc > 1;
  list_cases();
  TCase *tc = tcase_create("values");
  tcase_set_timeout(tc, 300); /* of a busy machine */
  tcase_add_loop_test(tc, test_one, 0, count);
  int failed = run_checks("cases", tc);
  return failed || !count;
}
