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
static const char *const cpu_files[] = {"model.o", "model.so", "model.ll", "model.h", NULL};

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

static const tarn_target rows[] = {
    {.kind = TARN_HW_CPU,
     .name = "CPU",
     .solver = tarn_solver_new,
     .schedules = tarn_schedules,
     .check = tarn_schedule_fits,
     .price = tarn_cost_of,
     .memory = tarn_memory_plan_make,
     .align = 64,
     .emit = tarn_lower_cpu,
     .emit_sizes = tarn_lower_cpu_sizes,
     .in_place = true,
     .program = cpu_program,
     .listing = cpu_listing,
     .file = cpu_files,
     .load = tarn_load,
     .time = tarn_loaded_kernel},
    {.kind = TARN_HW_GPU,
     .triple = "nvptx",
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

/* Its row, or the first of its kind: schedules and prices do not depend on who emits. */
static const tarn_target *row_of_kind(const tarn_hw *hw) {
  const tarn_target *t = tarn_target_find(hw);
  for (uint32_t i = 0; i < ROWS && !t; i++)
    if (rows[i].kind == hw->kind) t = &rows[i];
  return t;
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
  for (uint32_t i = 0; i < ROWS; i++) {
    const char *triple = rows[i].triple ? rows[i].triple : "";
    if (rows[i].kind == hw->kind && !strncmp(hw->triple, triple, strlen(triple))) return &rows[i];
  }
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
  tarn_buf b = {.cx = cx};
  for (uint32_t i = 0; i < ROWS; i++) one_of(&b, i, ROWS, rows[i].name);
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
