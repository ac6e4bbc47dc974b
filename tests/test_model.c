/* model/: every family of ONNX operators against the outputs of ONNX Runtime (tests/data/onnx):
 * interpreted, optimised and compiled; and that loading reports a failing allocation. */
#include "access/judge.h"
#include "model/model.h"
#include "tests/alloc.h"
#include "tests/pipeline.h"
#include "tests/suite.h"
#include <dirent.h>
#include <math.h>
#include <string.h>

#define DATA TARN_TOP "/tests/data/onnx"

/* Families whose operators are outside the term language, and how many such nodes each has. */
static const struct {
  const char *name;
  uint32_t nopaque;
} opaque[] = {{"index", 3}, {"unpool", 1}};

static uint32_t expected_opaque(const char *name) {
  for (size_t i = 0; i < sizeof opaque / sizeof *opaque; i++)
    if (strcmp(opaque[i].name, name) == 0) return opaque[i].nopaque;
  return 0;
}

static const tarn_tensor *value_of(const tarn_program *data, const char *name) {
  for (uint32_t i = 0; i < data->nout; i++)
    if (strcmp(data->out[i].name, name) == 0)
      return tarn_payload_get(data->L, tarn_term_get(data->L, data->out[i].term)->payload)->tensor;
  ck_abort_msg("no value %s", name);
}

typedef struct family {
  tarn_program *program;
  tarn_binding *in;
  tarn_tensor **want; /* of ONNX Runtime */
} family;

static family load_family(tarn_ctx *cx, const char *name) {
  tarn_model_report report;
  family f = {.program = tarn_model_load(tarn_lang_new(cx), tarn_format(cx, DATA "/%s.onnx", name),
                                         NULL, &report)};
  tarn_program *p = f.program;
  tarn_program *data =
      tarn_model_load(tarn_lang_new(cx), tarn_format(cx, DATA "/%s.data.onnx", name), NULL, NULL);
  ck_assert_msg(report.nopaque == expected_opaque(name), "%s: %u opaque nodes", name,
                report.nopaque);
  f.in = TARN_ARRAY(cx, tarn_binding, p->nin + 1);
  f.want = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  for (uint32_t i = 0; i < p->nin; i++)
    f.in[i] =
        (tarn_binding){p->in[i].name, value_of(data, tarn_format(cx, "in_%s", p->in[i].name))};
  for (uint32_t i = 0; i < p->nout; i++)
    f.want[i] = (tarn_tensor *)(uintptr_t)value_of(data, tarn_format(cx, "out_%u", i));
  return f;
}

/* ONNX Runtime rounds, within an operator, what the interpreter does not: taken for a millionth of
 * the largest result. */
static void add_unknown(const tarn_rounding *r) {
  double most = 0;
  for (int64_t i = 0; i < tarn_tensor_count(r->wide); i++)
    most = fmax(most, fabs(tarn_tensor_number(r->wide, i)));
  for (int64_t i = 0; i < tarn_tensor_count(r->error); i++)
    tarn_tensor_set(r->error, i, (tarn_value){.d = tarn_tensor_number(r->error, i) + 1e-6 * most});
}

/* The interpreter agrees with ONNX Runtime. */
static void check_model(tarn_ctx *cx, void *name) {
  family f = load_family(cx, name);
  pipeline_want want = pipeline_expect(f.program, f.in, TARN_RULE_REASSOC, 0);
  for (uint32_t i = 0; i < f.program->nout; i++) add_unknown(&want.out[i]);
  const char *wrong = pipeline_wrong(f.program, &want, f.want);
  ck_assert_msg(!wrong, "%s, in ONNX Runtime: %s", (const char *)name, wrong);
}

static void check_compiled(tarn_ctx *cx, void *name) {
  family f = load_family(cx, name);
  tarn_program *p = f.program;
  pipeline_try(pipeline_optimise(p, tarn_hw_host(p->L, false)), f.in, name);
}

/* The names of the families, from the folder. */
static uint32_t families(char names[][64], uint32_t most) {
  DIR *d = opendir(DATA);
  uint32_t n = 0;
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) {
    size_t len = strlen(e->d_name);
    const char *end = strstr(e->d_name, ".data.onnx");
    if (!end || (size_t)(end - e->d_name) + 10 != len) continue;
    ck_assert_uint_lt(n, most);
    snprintf(names[n++], 64, "%.*s", (int)(len - 10), e->d_name);
  }
  closedir(d);
  return n;
}

static uint32_t run_families(tarn_fn *run) {
  char names[100][64];
  uint32_t n = families(names, 100), bad = 0;
  for (uint32_t i = 0; i < n; i++) {
    tarn_ctx *cx = tarn_ctx_new(NULL);
    tarn_status st = tarn_protect(cx, run, names[i]);
    if (st != TARN_OK) printf("%s: %s\n", names[i], tarn_message(cx)), bad++;
    tarn_ctx_free(cx);
  }
  ck_assert_uint_ge(n, 35);
  return bad;
}

START_TEST(every_family) { ck_assert_uint_eq(run_families(check_model), 0); }
END_TEST

START_TEST(every_family_compiled) { ck_assert_uint_eq(run_families(check_compiled), 0); }
END_TEST

/* ---------------------------------------------------------------- allocations that fail */

static void load_only(tarn_ctx *cx, void *arg) {
  tarn_model_load(tarn_lang_new(cx), tarn_format(cx, DATA "/%s.onnx", (const char *)arg), NULL,
                  NULL);
}

/* The arena asks for few and large blocks: every one of them is tried. */
static uint64_t fail_each(const char *name) {
  uint64_t bad;
  uint64_t tried = tarn_test_fail_each(load_only, (void *)(uintptr_t)name, 1, &bad);
  ck_assert_msg(bad == 0, "%s: a wrong outcome when allocation %llu fails", name,
                (unsigned long long)bad);
  return tried;
}

START_TEST(allocations) {
  char names[100][64];
  uint32_t n = families(names, 100);
  uint64_t tried = 0;
  for (uint32_t i = 0; i < n; i++) tried += fail_each(names[i]);
  ck_assert_uint_gt(tried, 2 * n);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("model");
  tcase_set_timeout(t, 180);
  tcase_add_test(t, every_family);
  tcase_add_test(t, every_family_compiled);
  tcase_add_test(t, allocations);
  return run_checks("model", t);
}
