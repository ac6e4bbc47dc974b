/* The table of targets. */
#include "compile/target.h"
#include "compile/compile.h"
#include "price/gpu.h"
#include "price/unit.h"
#include <string.h>

static const tarn_emission cpu_program[] = {{"so", TARN_EMIT_SO | TARN_EMIT_O, "model.so"},
                                            {"o", TARN_EMIT_O, "model.o"},
                                            {"ll", TARN_EMIT_LL, "model.ll"},
                                            {NULL, 0, NULL}};
static const tarn_emission cpu_listing[] = {
    {"ll", TARN_EMIT_LL, "model.ll"}, {"asm", TARN_EMIT_ASM, "model.s"}, {NULL, 0, NULL}};
static const char *const cpu_files[] = {"model.o", "model.so",      "model.ll",
                                        "model.h", "model.weights", NULL};

static const tarn_emission gpu_program[] = {{"so", TARN_EMIT_PTX | TARN_EMIT_SO, "model.so"},
                                            {"ptx", TARN_EMIT_PTX, "model.ptx"},
                                            {"ll", TARN_EMIT_LL, "model.ll"},
                                            {NULL, 0, NULL}};
static const tarn_emission gpu_listing[] = {
    {"ptx", TARN_EMIT_PTX, "model.ptx"}, {"ll", TARN_EMIT_LL, "model.ll"}, {NULL, 0, NULL}};
static const char *const gpu_files[] = {"model.ptx", "weights.bin", "launch.json", "model.ll",
                                        "model.o",   "model.so",    "model.h",     NULL};
static const tarn_emission dsa_program[] = {{"stream", TARN_EMIT_STREAM, "stream.bin"},
                                            {NULL, 0, NULL}};
static const char *const dsa_files[] = {"stream.bin", "stream.txt",      "dram.bin", "memory.json",
                                        "machine.hw", "host-machine.hw", "here.so",  NULL};

static const tarn_emission object_program[] = {
    {"o", TARN_EMIT_O, "model.o"}, {"ll", TARN_EMIT_LL, "model.ll"}, {NULL, 0, NULL}};
static const tarn_emission wasm_program[] = {{"wasm", TARN_EMIT_WASM | TARN_EMIT_O, "model.wasm"},
                                             {"o", TARN_EMIT_O, "model.o"},
                                             {"ll", TARN_EMIT_LL, "model.ll"},
                                             {NULL, 0, NULL}};
static const char *const wasm_files[] = {"model.o",    "model.ll",  "model.h",     "model.weights",
                                         "model.wasm", "model.mjs", "model.d.mts", NULL};

static bool is_nvptx(const tarn_hw *hw) { return !strncmp(hw->triple, "nvptx", 5); }
static bool is_wasm(const tarn_hw *hw) { return !strncmp(hw->triple, "wasm", 4); }
static bool is_shared(const tarn_hw *hw) { return tarn_hw_loads_shared(hw); }

/* What CPUs have in common, whatever files they get. */
#define CPU                                                                                        \
  .kind = TARN_HW_CPU, .solver = tarn_solver_new, .schedules = tarn_schedules,                     \
  .check = tarn_schedule_fits, .price = tarn_cost_of, .memory = tarn_memory_plan_make,             \
  .align = 64, .emit = tarn_lower_cpu, .in_place = true, .budget = true, .apart = true,            \
  .listing = cpu_listing

static const tarn_target rows[] = {
    {CPU, .is = is_shared, .name = "CPU", .emit_sizes = tarn_lower_cpu_sizes,
     .program = cpu_program, .file = cpu_files, .load = tarn_load, .time = tarn_loaded_kernel},
    {CPU, .is = is_wasm, .name = "WebAssembly module", .program = wasm_program, .file = wasm_files},
    {CPU, .name = "CPU without shared objects", .emit_sizes = tarn_lower_cpu_sizes,
     .program = object_program, .file = cpu_files},
    {.kind = TARN_HW_GPU,
     .is = is_nvptx,
     .name = "GPU",
     .solver = tarn_gpu_solver,
     .schedules = tarn_gpu_schedules,
     .check = tarn_schedule_fits,
     .price = tarn_gpu_price,
     .memory = tarn_memory_plan_make,
     .align = 256,
     .emit = tarn_lower_cuda,
     .program = gpu_program,
     .listing = gpu_listing,
     .file = gpu_files,
     .away = true,
     .load = tarn_load,
     .time = tarn_loaded_kernel},
    {.kind = TARN_HW_DSA,
     .name = "accelerator",
     .hosted = true,
     .lacks = tarn_unit_lacks,
     .refuses = tarn_unit_refuses,
     .solver = tarn_unit_solver,
     .schedules = tarn_unit_schedules,
     .check = tarn_unit_check,
     .price = tarn_unit_price,
     .plan = tarn_unit_text,
     .memory = tarn_memory_plan_make,
     .align = 64,
     .emit = tarn_lower_dsa,
     .program = dsa_program,
     .listing = dsa_program,
     .file = dsa_files},
};
#define ROWS (sizeof rows / sizeof *rows)

static const tarn_target *first_of_kind(tarn_hw_kind kind) {
  for (uint32_t i = 0; i < ROWS; i++)
    if (rows[i].kind == kind) return &rows[i];
  return NULL;
}
/* Its row, or the first of its kind: schedules and prices do not depend on who emits. */
static const tarn_target *row_of_kind(const tarn_hw *hw) {
  const tarn_target *t = tarn_target_find(hw);
  return t ? t : first_of_kind(hw->kind);
}
tarn_solver *tarn_target_solver(tarn_lang *L, const tarn_hw *hw, uint32_t threads) {
  const tarn_target *t = row_of_kind(hw);
  return (t ? t->solver : tarn_solver_new)(L, hw, threads);
}
void tarn_target_price(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
                       uint32_t threads, tarn_cost *out) {
  const tarn_target *t = row_of_kind(hw);
  (t ? t->price : tarn_cost_of)(L, hw, k, s, threads, out);
}
const tarn_target *tarn_target_at(uint32_t i) { return i < ROWS ? &rows[i] : NULL; }
const tarn_target *tarn_target_find(const tarn_hw *hw) {
  for (uint32_t i = 0; i < ROWS; i++)
    if (rows[i].kind == hw->kind && (!rows[i].is || rows[i].is(hw))) return &rows[i];
  return NULL;
}

/* "so, o or ll" */
static void one_of(tarn_buf *b, uint32_t i, uint32_t n, const char *word) {
  tarn_buf_fmt(b, "%s%s", i == 0 ? "" : i + 1 < n ? ", " : " or ", word);
}
static const char *with_article(tarn_ctx *cx, const char *name) {
  return tarn_format(cx, "%s %s", strchr("aeiou", *name) ? "an" : "a", name);
}
const tarn_target *tarn_target_of(tarn_ctx *cx, const tarn_hw *hw) {
  static const char *const kind[] = {
      [TARN_HW_CPU] = "a CPU", [TARN_HW_GPU] = "a GPU", [TARN_HW_DSA] = "an accelerator"};
  const tarn_target *t = tarn_target_find(hw);
  const char *lacks = t && t->lacks ? t->lacks(hw) : NULL;
  if (lacks)
    tarn_raise(cx, TARN_BAD_INPUT, "%s is %s whose description %s", hw->name, kind[hw->kind],
               lacks);
  if (t) return t;
  const char *name[ROWS];
  uint32_t n = 0;
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < ROWS; i++)
    if (first_of_kind(rows[i].kind) == &rows[i]) name[n++] = rows[i].name;
  for (uint32_t i = 0; i < n; i++) one_of(&b, i, n, name[i]);
  const char *triple = row_of_kind(hw) ? tarn_format(cx, " of triple \"%s\"", hw->triple) : "";
  tarn_raise(cx, TARN_BAD_INPUT, "%s is %s%s: code can be emitted for a %s only", hw->name,
             kind[hw->kind], triple, b.p);
}

const tarn_target *tarn_target_of_program(tarn_ctx *cx, const tarn_hw *hw) {
  const tarn_target *t = tarn_target_of(cx, hw);
  if (hw->host && !t->hosted)
    tarn_raise(cx, TARN_BAD_INPUT,
               "%s hangs on the host %s: programs of several machines are not emitted for %s",
               hw->name, hw->host->name, with_article(cx, t->name));
  return t;
}

const tarn_emission *tarn_target_emission(tarn_ctx *cx, const tarn_target *t,
                                          const tarn_emission *list, const char *word) {
  uint32_t n = 0;
  for (; list[n].name; n++)
    if (!word || !strcmp(word, list[n].name)) return &list[n];
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < n; i++) one_of(&b, i, n, list[i].name);
  tarn_raise(cx, TARN_USAGE, "--emit %s: %s is expected for %s", word, b.p,
             with_article(cx, t->name));
}
