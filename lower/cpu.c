/* tarn_lower_cpu: creates LLVM's objects and frees them when the call ends, raised or not. */
#include "lower/internal.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void dispose_context(void *c) { LLVMContextDispose(c); }
static void dispose_module(void *m) { LLVMDisposeModule(m); }
static void dispose_builder(void *b) { LLVMDisposeBuilder(b); }

static void ignore(LLVMDiagnosticInfoRef d, void *arg) { (void)d, (void)arg; }

static void types(low_module *M) {
  M->i1 = LLVMInt1TypeInContext(M->lc), M->i8 = LLVMInt8TypeInContext(M->lc);
  M->i32 = LLVMInt32TypeInContext(M->lc), M->i64 = LLVMInt64TypeInContext(M->lc);
  M->index = M->size = M->i64;
  M->f32 = LLVMFloatTypeInContext(M->lc), M->f64 = LLVMDoubleTypeInContext(M->lc);
  M->ptr = LLVMPointerTypeInContext(M->lc, 0), M->vt = LLVMVoidTypeInContext(M->lc);
}

typedef struct job {
  const tarn_lower_sizes *s;
  const tarn_lower_options *o;
  const low_device_part *device;
  unsigned wrote; /* of these */
} job;
static const char *const files[] = {"h", "ll", "s", "o", "ptx", "weights", "wasm", "mjs", "d.mts"};
#define FILES (sizeof files / sizeof *files)
void low_wrote(low_module *M, const char *ext) {
  for (unsigned i = 0; i < FILES; i++)
    if (!strcmp(files[i], ext)) *M->wrote |= 1u << i;
}
/* What an attempt that failed has left. */
static void remove_files(const job *j) {
  char path[4096];
  for (unsigned i = 0; i < FILES; i++)
    if ((j->wrote >> i & 1) &&
        snprintf(path, sizeof path, "%s/model.%s", j->o->dir, files[i]) < (int)sizeof path)
      unlink(path);
}

low_module *low_module_new(const tarn_kprog *p, const tarn_lower_options *o, unsigned *wrote) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  low_module *M = TARN_NEW(cx, low_module);
  *M = (low_module){
      .cx = cx, .L = p->L, .hw = p->hw, .o = o, .contract = o->contract, .wrote = wrote};
  M->lc = LLVMContextCreate();
  tarn_defer(cx, dispose_context, M->lc);
  LLVMContextSetDiagnosticHandler(M->lc, ignore, NULL);
  M->m = LLVMModuleCreateWithNameInContext(o->name, M->lc);
  tarn_defer(cx, dispose_module, M->m);
  M->b = LLVMCreateBuilderInContext(M->lc);
  tarn_defer(cx, dispose_builder, M->b);
  types(M);
  M->regs = low_regs_of(M->hw);
  M->fill = tarn_intern_new(cx), M->kernels = tarn_map_new(cx);
  return M;
}
static void lower(tarn_ctx *cx, void *arg) {
  (void)cx;
  job *j = arg;
  low_module *M = low_module_new(j->s->program[0].p, j->o, &j->wrote);
  M->device = j->device;
  low_object(M, j->s);
}
static void check_program(const tarn_kprog *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  if (p->hw->kind != TARN_HW_CPU) tarn_raise(cx, TARN_USAGE, "%s is not a CPU", p->hw->name);
  for (uint32_t i = 0; i < p->nker; i++)
    if (p->machines.n > 1 && p->ker[i].machine && p->ker[i].kind != TARN_K_DEVICE)
      tarn_raise(cx, TARN_BAD_INPUT, "%s: kernel %s is of another machine", p->hw->name,
                 p->ker[i].name);
}
static void lower_all(const tarn_lower_sizes *s, const tarn_lower_options *o,
                      const low_device_part *device) {
  tarn_ctx *cx = tarn_lang_ctx(s->program[0].p->L);
  job j = {s, o, device, 0};
  for (uint32_t i = 0; i < s->nprogram; i++) check_program(s->program[i].p);
  if (!tarn_lower_name_ok(o->name))
    tarn_raise(cx, TARN_USAGE, "%s: no prefix of names in C", o->name);
  tarn_status st = tarn_protect(cx, lower, &j);
  if (st == TARN_OK) return;
  remove_files(&j);
  tarn_reraise(cx, st);
}

void tarn_lower_cpu(const tarn_kprog *p, const tarn_memory_plan *plan,
                    const tarn_lower_options *o) {
  low_cpu(p, plan, o, NULL);
}
void low_cpu(const tarn_kprog *p, const tarn_memory_plan *plan, const tarn_lower_options *o,
             const low_device_part *device) {
  const tarn_lower_program one = {.p = p, .plan = plan};
  lower_all(&(tarn_lower_sizes){.nprogram = 1, .program = &one}, o, device);
}
void tarn_lower_cpu_sizes(const tarn_lower_sizes *s, const tarn_lower_options *o) {
  lower_all(s, o, NULL);
}
