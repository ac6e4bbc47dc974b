/* Every CPU description that is shipped: a program of all operators for each element type, casts
 * to all others among them, needs nothing but libm and what every libgcc has. Where Debian's cross
 * compiler for the machine is installed it links statically, and where this machine or qemu's
 * emulator of a process runs it, it equals the interpreter bit for bit. A WebAssembly module runs
 * in node. Of machines without an operating system the object is looked at.
 *
 *   test_cross [--all|NAME]      --all: further machines, and reassoc, which has to link; NAME: one
 */
#include "tests/types_fx.h"
#include <unistd.h>

/* ---------------------------------------------------------------- machines */
typedef struct machine {
  const char *name, *needs, *cc; /* a feature of the processor, where it runs here; cc NULL: what
                                    links it is not the system's */
  const char *run;               /* "": as it is; NULL: nothing runs it */
} machine;
static const machine machines[] = {
    {"aarch64", NULL, "aarch64-linux-gnu-gcc", "qemu-aarch64 -cpu cortex-a57"},
    {"cortex-a9", NULL, "arm-linux-gnueabihf-gcc", "qemu-arm -cpu cortex-a9"},
    {"riscv64", NULL, "riscv64-linux-gnu-gcc", "qemu-riscv64 -cpu rv64,v=false"},
    {"riscv64-v", NULL, "riscv64-linux-gnu-gcc",
     "qemu-riscv64 -cpu rv64,v=true,vext_spec=v1.0,vlen=128"},
    {"aarch64-dotprod", NULL, "aarch64-linux-gnu-gcc", "qemu-aarch64 -cpu max"},
    {"wasm32", NULL, NULL, "node"},
    {"cortex-m4", NULL, NULL, NULL},
    {"rv32imac", NULL, NULL, NULL},
    {"cortex-m0", NULL, NULL, NULL},
    {"cortex-m7", NULL, NULL, NULL},
    {"x86-64-v2", "+sse4.2", "x86_64-linux-gnu-gcc", ""},
    {"x86-64-v3", "+avx2", "x86_64-linux-gnu-gcc", ""},
    {"x86-64-vnni", "+avx512vnni", "x86_64-linux-gnu-gcc", ""},
    {"x86-64-bf16", "+avx512bf16", "x86_64-linux-gnu-gcc", ""}};
enum { FIRST = 7 }; /* without --all */
#define MACHINES (int)(sizeof machines / sizeof *machines)

static bool is_there(tarn_ctx *cx, const char *command) { /* its first word */
  const char *word = tarn_format(cx, "%.*s", (int)strcspn(command, " "), command);
  return !system(tarn_format(cx, "command -v %s >/dev/null 2>&1", word));
}
static bool runs(tarn_lang *L, const machine *m) {
  if (!m->run) return false;
  if (*m->run) return is_there(tarn_lang_ctx(L), m->run);
  return strstr(tarn_hw_host(L, false)->features, m->needs) != NULL;
}

/* ---------------------------------------------------------------- what it calls */
/* And of libgcc, or of what takes its place, functions of numbers that a machine has not: by the
 * names that Arm's run-time ABI prescribes (__aeabi_ldivmod), or that tell their types
 * (__muldi3, __addsf3). A WebAssembly object names what the linker makes. */
static const char *const others[] = {"memcpy",
                                     "memmove",
                                     "memset",
                                     "rint",
                                     "rintf",
                                     "roundeven",
                                     "roundevenf",
                                     "floor",
                                     "floorf",
                                     "ceil",
                                     "ceilf",
                                     "trunc",
                                     "truncf",
                                     "fmod",
                                     "fmodf",
                                     "__stack_pointer",
                                     "__indirect_function_table"};
static bool of_libgcc(const char *name) {
  static const char *const types[] = {"sf", "df", "hf", "si", "di"};
  if (!strncmp(name, "__aeabi_", 8)) return true;
  for (uint32_t i = 0; i < TY_COUNT(types); i++)
    if (!strncmp(name, "__", 2) && strstr(name + 2, types[i])) return true;
  return false;
}
static bool allowed(const char *name) {
  if (of_libgcc(name)) return true;
  for (uint32_t i = 0; i < TY_COUNT(others); i++)
    if (!strcmp(name, others[i])) return true;
  size_t n = strlen(name);
  for (uint32_t op = 0; op < TARN_FX_COUNT; op++) {
    const char *f = tarn_fx_info(op)->text;
    size_t k = strlen(f);
    if (!strncmp(name, f, k) && (n == k || (n == k + 1 && name[k] == 'f'))) return true;
  }
  return false;
}
static void check_symbols(tarn_ctx *cx, const char *dir) {
  char line[256], name[200];
  FILE *f = popen(tarn_format(cx, "/usr/lib/llvm-19/bin/llvm-nm -u %s/model.o", dir), "r");
  uint32_t n = 0;
  ck_assert_ptr_nonnull(f);
  tarn_buf bad = {.cx = cx};
  while (fgets(line, sizeof line, f)) {
    n++;
    if (sscanf(line, " U %199s", name) != 1 || !allowed(name)) tarn_buf_fmt(&bad, " %s", name);
  }
  ck_assert_int_eq(pclose(f), 0);
  if (bad.n) tarn_raise(cx, TARN_NO, "calls%s", bad.p);
}

/* ---------------------------------------------------------------- the program that calls it */
static void sizes(tarn_buf *b, const char *name, const tarn_lang *L, const tarn_io *io,
                  uint32_t n) {
  tarn_buf_fmt(b, "static const size_t %s[] = {", name);
  for (uint32_t i = 0; i < n; i++) {
    const tarn_type *t = tarn_type_get(L, io[i].type);
    tarn_buf_fmt(b, "%lld,", (long long)(t->dim[0] * (int64_t)tarn_dtype_size(t->dtype)));
  }
  tarn_buf_str(b, "};\n");
}
/* From standard input, run by run, to standard output. */
static const char body[] =
    "static char *room(size_t n) { return aligned_alloc(64, (n + 64) / 64 * 64); }\n"
    "int main(void) {\n"
    "  void *x[MODEL_INPUTS], *y[MODEL_OUTPUTS], *work = room(model_workspace(1));\n"
    "  for (int i = 0; i < MODEL_INPUTS; i++) x[i] = room(in[i]);\n"
    "  for (int i = 0; i < MODEL_OUTPUTS; i++) y[i] = room(out[i]);\n"
    "  for (;;) {\n"
    "    for (int i = 0; i < MODEL_INPUTS; i++)\n"
    "      if (fread(x[i], 1, in[i], stdin) != in[i]) return i != 0;\n"
    "    if (model_run((const void *const *)x, y, work, 0)) return 2;\n"
    "    for (int i = 0; i < MODEL_OUTPUTS; i++) fwrite(y[i], 1, out[i], stdout);\n"
    "  }\n"
    "}\n";
static void link_program(tarn_ctx *cx, const ty_program *q, const machine *m, const char *dir) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "#include \"model.h\"\n#include <stdio.h>\n#include <stdlib.h>\n");
  sizes(&b, "in", q->p.L, q->in, q->p.nin), sizes(&b, "out", q->p.L, q->out, q->p.nout);
  tarn_buf_str(&b, body);
  tarn_write_file(cx, tarn_format(cx, "%s/main.c", dir), b.p, b.n);
  const char *log = tarn_format(cx, "%s/log", dir);
  size_t n;
  if (system(tarn_format(cx, "%s -static -o %s/program %s/main.c %s/model.o -lm >%s 2>&1", m->cc,
                         dir, dir, dir, log)))
    tarn_raise(cx, TARN_NO, "does not link: %.600s", tarn_read_file(cx, log, &n));
}

/* ---------------------------------------------------------------- one machine, one type */
typedef struct job {
  ty_table of;
  const machine *m;
  tarn_rule_class numerics;
  ty_report *report;
} job;
static size_t bytes_of(const tarn_tensor *t) {
  return (size_t)tarn_tensor_count(t) * tarn_dtype_size(t->dtype);
}
/* Which functions of libm another library may round otherwise: those of one without a fused
 * multiply-add. */
static bool by_libm(const tarn_program *p, uint32_t o) {
  tarn_buf b = {.cx = tarn_lang_ctx(p->L)};
  tarn_term_print(p->L, &b, p->out[o].term);
  for (uint32_t op = 0; op < TARN_FX_COUNT; op++)
    if (tarn_fx_info(op)->rounds == TARN_FXR_LIB &&
        strstr(b.p, tarn_format(b.cx, "(map (%s ", tarn_fx_info(op)->text)))
      return true;
  return false;
}
/* Takes what is one place off in f64 for what is meant. */
static void forgive(tarn_tensor *got, const tarn_tensor *want) {
  for (int64_t i = 0; i < tarn_tensor_count(got) && got->dtype == TARN_F64; i++) {
    tarn_value x = tarn_tensor_get(got, i), y = tarn_tensor_get(want, i);
    if (nextafter(x.d, y.d) == y.d) tarn_tensor_set(got, i, y);
  }
}
/* The words of cli/node.js. */
static const char *in_node(tarn_ctx *cx, const ty_program *q, const char *dir) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "node -e \"$(cat cli/node.js)\" %s %s/given %s/got '[[", dir, dir, dir);
  for (uint32_t i = 0; i < q->p.nin + q->p.nout; i++) {
    const tarn_io *io = i < q->p.nin ? &q->in[i] : &q->out[i - q->p.nin];
    const char *before = i == q->p.nin ? "],[" : i ? "," : "";
    const tarn_type *t = tarn_type_get(q->p.L, io->type);
    tarn_buf_fmt(&b, "%s[%lld]", before, (long long)t->dim[0]);
  }
  tarn_buf_fmt(&b, "]]' 2>%s/log", dir);
  return b.p;
}
static const char *command(tarn_ctx *cx, const job *j, const ty_program *q, const char *dir) {
  if (!j->m->cc) return in_node(cx, q, dir);
  return tarn_format(cx, "timeout 200 %s %s/program <%s/given >%s/got 2>%s/log", j->m->run, dir,
                     dir, dir, dir);
}
static void run_program(job *j, ty_program *q, const char *dir) {
  tarn_ctx *cx = tarn_lang_ctx(q->p.L);
  tarn_binding in[TY_MOST];
  tarn_term root[TY_MOST];
  tarn_tensor *want[TY_MOST];
  tarn_buf given = {.cx = cx};
  for (uint32_t i = 0; i < q->p.nin; i++) {
    const tarn_type *ty = tarn_type_get(q->p.L, q->in[i].type);
    tarn_tensor *x = tarn_tensor_new(cx, ty->dtype, ty->n, ty->dim);
    for (int64_t e = 0; e < tarn_tensor_count(x); e++) ty_put(x, e, &j->of.seed);
    ty_pairs(x, i, 0, q, &j->of.seed);
    in[i] = (tarn_binding){q->in[i].name, x};
    tarn_buf_add(&given, x->data, bytes_of(x));
  }
  for (uint32_t o = 0; o < q->p.nout; o++) root[o] = q->out[o].term;
  tarn_eval(q->p.L, root, q->p.nout, in, q->p.nin, TARN_STRICT, tarn_opaque_eval, want);
  tarn_write_file(cx, tarn_format(cx, "%s/given", dir), given.p, given.n);
  int rc = system(command(cx, j, q, dir));
  size_t n, at = 0;
  const char *log = tarn_read_file(cx, tarn_format(cx, "%s/log", dir), &n);
  /* qemu 7.2 does not know vfncvt.rtz behind another rounding mode */
  if (strstr(log, "decode_save_opc: Assertion")) return;
  if (rc) tarn_raise(cx, TARN_NO, "ends with %d: %.600s", rc, log);
  const char *got = tarn_read_file(cx, tarn_format(cx, "%s/got", dir), &n);
  for (uint32_t o = 0; o < q->p.nout; o++) {
    tarn_tensor *x = tarn_tensor_new(cx, want[o]->dtype, want[o]->n, want[o]->dim);
    ck_assert_uint_le(at + bytes_of(x), n);
    memcpy(x->data, got + at, bytes_of(x));
    at += bytes_of(x);
    if (by_libm(&q->p, o)) forgive(x, want[o]);
    ty_compare(j->report, q, in, o, x, want[o], j->m->name);
  }
}
static void cross(tarn_ctx *cx, void *arg) {
  job *j = arg;
  tarn_lang *L = j->of.L = tarn_lang_new(cx);
  ty_program *q = ty_operators(&j->of);
  bool wasm = j->m->run && !j->m->cc;
  const char *dir = ty_emit(q, tarn_hw_load(L, j->m->name), j->numerics, 1,
                            TARN_EMIT_O | (wasm ? TARN_EMIT_WASM : 0u));
  j->report->text.cx = cx;
  check_symbols(cx, dir);
  if (j->m->cc && !is_there(cx, j->m->cc)) return;
  if (j->m->cc) link_program(cx, q, j->m, dir);
  if (j->numerics == TARN_RULE_EXACT && runs(L, j->m)) run_program(j, q, dir);
}
START_TEST(test_cross) {
  const machine *m = &machines[_i / TARN_DTYPES % MACHINES]; /* then reassoc */
  const ty_target shown = {.name = m->name};
  ty_report r = {0};
  job j = {.of = {.t = (tarn_dtype)(_i % TARN_DTYPES), .seed = (uint64_t)_i}, .m = m, .report = &r};
  j.of.n = (int64_t)ty_hostile(j.of.t) * ty_hostile(j.of.t) + 29;
  j.numerics = _i < MACHINES * TARN_DTYPES ? TARN_RULE_EXACT : TARN_RULE_REASSOC;
  ty_judge(cross, &j, &r, &shown, j.of.t);
}
END_TEST

/* Every shipped CPU has a row. */
static void all_have_rows(tarn_ctx *cx, void *arg) {
  (void)arg;
  tarn_lang *L = tarn_lang_new(cx);
  FILE *f = popen("ls hw/*.hw", "r");
  char path[256];
  ck_assert_ptr_nonnull(f);
  while (fscanf(f, "%255s", path) == 1) {
    const tarn_hw *hw = tarn_hw_load(L, path);
    bool found = hw->kind != TARN_HW_CPU;
    for (int i = 0; i < MACHINES; i++) found |= !strcmp(machines[i].name, hw->name);
    ck_assert_msg(found, "no row for %s", hw->name);
  }
  pclose(f);
}
START_TEST(test_rows) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  ck_assert_msg(tarn_protect(cx, all_have_rows, NULL) == TARN_OK, "%s", tarn_message(cx));
  tarn_ctx_free(cx);
}
END_TEST

int main(int argc, char **argv) {
  bool all = argc > 1 && !strcmp(argv[1], "--all");
  int from = 0, to = all ? 2 * MACHINES : FIRST;
  for (int i = 0; i < MACHINES && argc > 1; i++)
    if (!strcmp(argv[1], machines[i].name)) from = i, to = i + 1;
  TCase *t = tcase_create("cross");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, test_rows);
  tcase_add_loop_test(t, test_cross, from * TARN_DTYPES, to * TARN_DTYPES);
  return run_checks("cross", t);
}
