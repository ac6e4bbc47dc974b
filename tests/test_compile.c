/* tarn_compile() as a library: files and bytes, steps, dumps, what is refused, what is left. */
#include "tests/context.h"
#include "compile/compile.h"
#include "hw/host/host.h"
#include "tests/pipeline.h"
#include <dirent.h>
#include <string.h>

static const char digits[] = TARN_TOP "/examples/digits/digits.onnx";
static const tarn_texts one = {1, (const char *const[]){"n=1"}};

static tarn_compile_options options(tarn_lang *L) {
  tarn_compile_options o = tarn_compile_defaults();
  o.model = digits;
  o.shapes = one;
  o.hw = tarn_hw_host(L, false);
  return o;
}
static uint32_t entries(const char *dir) {
  uint32_t n = 0;
  DIR *d = opendir(dir);
  ck_assert_ptr_nonnull(d);
  for (const struct dirent *e; (e = readdir(d));)
    n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  closedir(d);
  return n;
}
static const tarn_artefact *artefact(const tarn_compiled *c, const char *name) {
  for (uint32_t i = 0; i < c->nartefact; i++)
    if (!strcmp(c->artefact[i].name, name)) return &c->artefact[i];
  return NULL;
}

/* ---- files, and the same bytes without a folder ---- */
static void compile_both(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L);
  const char *place = pipeline_folder(cx);
  o.dir = tarn_format(cx, "%s/new", place);
  o.name = "first";
  const tarn_compiled *files = tarn_compile(L, &o);
  ck_assert_uint_eq(entries(place), 1);
  ck_assert_uint_eq(entries(o.dir), files->nartefact);
  tarn_compile_options q = options(L);
  q.name = "first";
  const tarn_compiled *bytes = tarn_compile(L, &q);
  ck_assert_uint_eq(files->nartefact, bytes->nartefact);
  static const char *const names[] = {"model.o", "model.so", "model.h", "program.tarn"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const tarn_artefact *f = artefact(files, names[i]);
    const tarn_artefact *b = artefact(bytes, names[i]);
    ck_assert(f && b && f->path && !f->data && b->data && !b->path);
    size_t n;
    const char *text = tarn_read_file(cx, f->path, &n);
    ck_assert_uint_eq(n, f->n);
    ck_assert(n == b->n && !memcmp(text, b->data, n));
  }
  const tarn_artefact *report = artefact(bytes, "report.json");
  ck_assert(report && report->n == bytes->report_n);
  ck_assert(!memcmp(report->data, bytes->report, report->n));
  ck_assert_ptr_nonnull(strstr(bytes->report, "\"schema\": 1"));
  const tarn_port *out;
  ck_assert_uint_eq(tarn_loaded_ports(tarn_load(cx, o.dir), true, &out), 1);
  ck_assert_str_eq(out->name, "probability");
}

/* ---- steps, dumps, reasons ---- */
typedef struct seen {
  tarn_buf names;
  size_t bytes;
} seen;
static void note(void *user, const char *name, const char *text, size_t n) {
  seen *s = user;
  ck_assert_uint_eq(strlen(text), n);
  tarn_buf_fmt(&s->names, "%s ", name);
  s->bytes += n;
}
static void compile_by_steps(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = options(L);
  seen s = {.names = {.cx = cx}};
  o.dump = tarn_dump_parse(cx, "plan,terms,phases,schedules");
  ck_assert_uint_eq(o.dump,
                    TARN_DUMP_TERMS | TARN_DUMP_PHASES | TARN_DUMP_SCHEDULES | TARN_DUMP_PLAN);
  o.sink = note;
  o.user = &s;
  o.reasons = true;
  tarn_compiled *c = tarn_compile_load(L, &o);
  ck_assert_str_eq(s.names.p, "terms ");
  ck_assert_uint_eq(c->program->nout, 1);
  tarn_compile_optimise(c);
  ck_assert_str_eq(s.names.p, "terms phases schedules plan ");
  ck_assert_uint_gt(s.bytes, 1000);
  ck_assert_uint_eq(c->kernels->nker, c->choice.kernels + c->choice.copies);

  tarn_buf chain = {.cx = cx};
  tarn_ruleset *rs = tarn_ruleset_new(L);
  tarn_ruleset_ship(rs, NULL, TARN_RULE_KERNEL);
  tarn_compile_explain(c, &chain);
  tarn_proof_result r =
      tarn_proof_check(rs, tarn_sx_read(cx, chain.p, chain.n, "chain"), &(tarn_proof_options){0});
  ck_assert_msg(r.ok, "step %u: %s", r.bad, r.why);

  tarn_compile_emit(c);
  ck_assert_ptr_nonnull(artefact(c, "model.so"));
  ck_assert(c->seconds.import > 0 && c->seconds.lower > 0);
}

/* ---- refusals ---- */
typedef struct refusal {
  const char *model, *hw, *emit, *name, *rules;
  tarn_status status;
  const char *words;
} refusal;
static const refusal refusals[] = {
    {digits, TARN_TOP "/tests/data/hw/plain.hw", NULL, NULL, NULL, TARN_BAD_INPUT,
     "plain is an accelerator"},
    {digits, TARN_TOP "/tests/data/hw/other-gpu.hw", NULL, NULL, NULL, TARN_BAD_INPUT,
     "other-gpu is a GPU of triple \"amdgcn-amd-amdhsa\""},
    {"none.onnx", "x86-64-v3", NULL, NULL, NULL, TARN_IO, "none.onnx"},
    {digits, "x86-64-v3", "ptx", NULL, NULL, TARN_USAGE, "ptx: so, o or ll is expected for a CPU"},
    {digits, "x86-64-v3", NULL, "a-b", NULL, TARN_USAGE, "a-b: a letter"},
    {digits, "x86-64-v3", NULL, NULL, "nonsense", TARN_USAGE, "nonsense"},
    {NULL, "x86-64-v3", NULL, NULL, NULL, TARN_USAGE, "no model"},
    {digits, NULL, NULL, NULL, NULL, TARN_USAGE, "no description"},
};
typedef struct refused {
  const refusal *r;
  const char *place;
} refused;
static void compile_wrong(tarn_ctx *cx, void *arg) {
  const refused *w = arg;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_compile_options o = tarn_compile_defaults();
  o.model = w->r->model;
  o.shapes = one;
  o.hw = w->r->hw ? tarn_hw_load(L, w->r->hw) : NULL;
  o.emit = w->r->emit;
  o.name = w->r->name;
  if (w->r->rules) o.no_rules = (tarn_texts){1, &w->r->rules};
  o.dir = tarn_format(cx, "%s/new", w->place);
  tarn_compile(L, &o);
}
static void refuse(tarn_ctx *cx, void *arg) {
  refused w = {arg, pipeline_folder(cx)};
  ck_assert_int_eq(tarn_protect(cx, compile_wrong, &w), w.r->status);
  ck_assert_msg(strstr(tarn_message(cx), w.r->words), "%s", tarn_message(cx));
  ck_assert_uint_eq(entries(w.place), 0);
}

/* ---- the table by kind ---- */
static bool is_found(const tarn_target *t) {
  static const char *const triple[] = {"x86_64-unknown-linux-gnu", "nvptx64-nvidia-cuda",
                                       "wasm32-unknown-unknown", "thumbv7em-none-eabi"};
  bool found = false;
  for (uint32_t i = 0; i < sizeof triple / sizeof *triple; i++)
    found |= tarn_target_find(&(tarn_hw){.kind = t->kind, .triple = triple[i]}) == t;
  return found;
}
static void look_at_rows(tarn_ctx *cx, void *arg) {
  (void)cx, (void)arg;
  const tarn_target *t;
  for (uint32_t i = 0; (t = tarn_target_at(i)); i++) {
    ck_assert_msg(is_found(t), "%s: no triple finds it", t->name);
    ck_assert(t->solver && t->schedules && t->check && t->price && t->memory && t->emit);
    ck_assert(!t->load == !t->time && t->program->name && t->listing->name);
    for (const tarn_emission *e = t->program; e->name; e++) {
      const char *const *f = t->file;
      while (*f && strcmp(*f, e->file) != 0) f++;
      ck_assert_msg(*f, "%s: %s is none of the files it may leave", t->name, e->file);
    }
  }
}

START_TEST(files_and_bytes_are_the_same) { in_context(compile_both, NULL); }
END_TEST
START_TEST(steps_give_dumps_and_a_proof) { in_context(compile_by_steps, NULL); }
END_TEST
START_TEST(what_is_wrong_leaves_nothing) { in_context(refuse, &refusals[_i]); }
END_TEST
START_TEST(rows_are_whole) { in_context(look_at_rows, NULL); }
END_TEST

int main(void) {
  TCase *t = tcase_create("compile");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, files_and_bytes_are_the_same);
  tcase_add_test(t, steps_give_dumps_and_a_proof);
  tcase_add_loop_test(t, what_is_wrong_leaves_nothing, 0, sizeof refusals / sizeof *refusals);
  tcase_add_test(t, rows_are_whole);
  return run_checks("compile", t);
}
