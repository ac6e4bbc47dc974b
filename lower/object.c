/* From the module to files: LLVM's passes and code generation. The constants are in blob.c, links
 * in link.c. */
#include "base/progress.h"
#include "base/shared.h"
#include "lower/internal.h"
#include <elf.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *low_path(const low_module *M, const char *ext) {
  return tarn_format(M->cx, "%s/model.%s", M->o->dir, ext);
}

/* Raises with LLVM's text, which it frees. */
_Noreturn static void llvm_error(const low_module *M, const char *what, char *message) {
  char *copy = tarn_strdup(M->cx, message ? message : "");
  LLVMDisposeMessage(message);
  for (char *p = copy; *p; p++)
    if (*p == '\n') *p = ' ';
  tarn_raise(M->cx, TARN_INTERNAL, "lower: %s: %.2000s", what, copy);
}

/* ---------------------------------------------------------------- the target */
/* Names of the code generators that LLVM has, in order. */
static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}
static const char *generators(tarn_ctx *cx) {
  TARN_VEC(const char *) name = {0};
  tarn_buf b = {.cx = cx};
  for (LLVMTargetRef t = LLVMGetFirstTarget(); t; t = LLVMGetNextTarget(t))
    if (LLVMTargetHasTargetMachine(t) && LLVMTargetHasAsmBackend(t))
      tarn_push(cx, &name, LLVMGetTargetName(t));
  qsort(name.p, name.n, sizeof *name.p, by_name);
  for (uint32_t i = 0; i < name.n; i++) tarn_buf_fmt(&b, "%s%s", i ? ", " : "", name.p[i]);
  return b.p;
}
static LLVMTargetRef target_of(const low_module *M, const char *triple) {
  LLVMTargetRef t;
  char *message = NULL;
  LLVMInitializeAllTargetInfos();
  LLVMInitializeAllTargets();
  LLVMInitializeAllTargetMCs();
  LLVMInitializeAllAsmPrinters();
  LLVMInitializeAllAsmParsers();
  if (!LLVMGetTargetFromTriple(triple, &t, &message)) return t;
  LLVMDisposeMessage(message);
  tarn_raise(M->cx, TARN_BAD_INPUT, "%s: LLVM has no code generator for the triple %s; it has %s",
             M->hw->name, triple, generators(M->cx));
}
static void dispose_machine(void *tm) { LLVMDisposeTargetMachine(tm); }
static LLVMTargetMachineRef target_machine(low_module *M, const char *triple) {
  static const LLVMCodeGenOptLevel level[4] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
                                               LLVMCodeGenLevelDefault, LLVMCodeGenLevelAggressive};
  LLVMTargetRef t = target_of(M, triple);
  LLVMRelocMode reloc = tarn_hw_loads_shared(M->hw) ? LLVMRelocPIC : LLVMRelocDefault;
  int o = M->o->opt < 0 ? 0 : M->o->opt > 3 ? 3 : M->o->opt;
  LLVMTargetMachineRef tm = LLVMCreateTargetMachine(t, triple, M->hw->cpu, M->hw->features,
                                                    level[o], reloc, LLVMCodeModelDefault);
  if (!tm)
    tarn_raise(M->cx, TARN_BAD_INPUT, "%s: LLVM has no machine %s %s", M->hw->name, triple,
               M->hw->cpu);
  tarn_defer(M->cx, dispose_machine, tm);
  return tm;
}

/* ---------------------------------------------------------------- passes */
#define PASSES                                                                                     \
  "always-inline,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,"                 \
  "simplifycfg,loop-mssa(loop-rotate,licm),early-cse<memssa>,loop-simplify,gvn,loop-mssa(licm),"   \
  "instcombine<no-verify-fixpoint>,simplifycfg),globaldce"
static const char *pipeline(const low_module *M) {
  if (M->o->opt <= 0) return "default<O0>";
  return M->merges ? "mergefunc," PASSES : PASSES;
}

/* No function raises: no table says how to leave one. */
static void raises_nothing(low_module *M) {
  for (LLVMValueRef f = LLVMGetFirstFunction(M->m); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f))
      low_attribute(M, f, (unsigned)LLVMAttributeFunctionIndex, "nounwind");
}
void low_optimise(low_module *M, LLVMTargetMachineRef tm) {
  char *message = NULL;
  tarn_progress(M->cx, "optimising code", 0, 0, NULL);
  raises_nothing(M);
  low_open_end(M->m);
  if (LLVMVerifyModule(M->m, LLVMReturnStatusAction, &message))
    llvm_error(M, "the emitted module is wrong", message);
  LLVMDisposeMessage(message);
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  LLVMErrorRef e = LLVMRunPasses(M->m, pipeline(M), tm, o);
  LLVMDisposePassBuilderOptions(o);
  low_f16_compares(M);
  if (!e) return;
  char *text = LLVMGetErrorMessage(e), *copy = tarn_strdup(M->cx, text);
  LLVMDisposeErrorMessage(text);
  tarn_raise(M->cx, TARN_INTERNAL, "lower: passes: %s", copy);
}

/* Text says which processor its functions are for, as who reads it has no description. */
static void name_machine(low_module *M) {
  const struct {
    const char *key, *value;
  } said[] = {{"target-cpu", M->hw->cpu}, {"target-features", M->hw->features}};
  for (LLVMValueRef f = LLVMGetFirstFunction(M->m); f; f = LLVMGetNextFunction(f))
    for (int i = 0; i < 2 && !LLVMIsDeclaration(f); i++) {
      unsigned nkey = (unsigned)strlen(said[i].key), n = (unsigned)strlen(said[i].value);
      LLVMAddAttributeAtIndex(
          f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
          LLVMCreateStringAttribute(M->lc, said[i].key, nkey, said[i].value, n));
    }
}
void low_write_text(low_module *M) {
  name_machine(M);
  char *message = NULL;
  if (LLVMPrintModuleToFile(M->m, low_path(M, "ll"), &message))
    llvm_error(M, "writing model.ll", message);
  low_wrote(M, "ll");
}

/* ---------------------------------------------------------------- the object */
static void dispose_buffer(void *b) { LLVMDisposeMemoryBuffer(b); }

/* ---------------------------------------------------------------- all of it */
LLVMMemoryBufferRef low_generate(low_module *M, LLVMTargetMachineRef tm, LLVMCodeGenFileType type) {
  LLVMMemoryBufferRef out;
  char *message = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(tm, M->m, type, &message, &out))
    llvm_error(M, "code generation", message);
  tarn_defer(M->cx, dispose_buffer, out);
  return out;
}

LLVMTargetMachineRef low_machine(low_module *M) {
  char *guess = LLVMGetDefaultTargetTriple();
  const char *triple = M->hw->triple && *M->hw->triple ? M->hw->triple : tarn_strdup(M->cx, guess);
  LLVMDisposeMessage(guess);
  LLVMTargetMachineRef tm = target_machine(M, triple);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(tm);
  LLVMSetTarget(M->m, triple);
  LLVMSetModuleDataLayout(M->m, layout);
  bool little = LLVMByteOrder(layout) == LLVMLittleEndian;
  M->size = LLVMIntPtrTypeInContext(M->lc, layout);
  LLVMDisposeTargetData(layout);
  if (!little)
    tarn_raise(M->cx, TARN_BAD_INPUT, "%s: %s stores the high byte first, which is not supported",
               M->hw->name, triple);
  M->f16 = low_f16_type(M, tm);
  return tm;
}

/* Does LLVM write ELF for this machine? A module without anything tells. */
static bool writes_elf(const low_module *M, LLVMTargetMachineRef tm) {
  LLVMModuleRef m = LLVMModuleCreateWithNameInContext("", M->lc);
  LLVMMemoryBufferRef out;
  char *message = NULL;
  LLVMSetTarget(m, LLVMGetTarget(M->m));
  LLVMSetDataLayout(m, LLVMGetDataLayoutStr(M->m));
  bool ok = !LLVMTargetMachineEmitToMemoryBuffer(tm, m, LLVMObjectFile, &message, &out);
  LLVMDisposeModule(m);
  if (!ok) llvm_error(M, "code generation", message);
  const char *p = LLVMGetBufferStart(out);
  bool elf = LLVMGetBufferSize(out) > SELFMAG && !memcmp(p, ELFMAG, SELFMAG);
  LLVMDisposeMemoryBuffer(out);
  return elf;
}

void low_object(low_module *M, const tarn_lower_sizes *s) {
  LLVMTargetMachineRef tm = low_machine(M);
  M->elf = writes_elf(M, tm);
  low_blob_place(M, s);
  low_program(M, s);
  low_header(M, s);
  low_optimise(M, tm);
  low_blob_define(M, s);
  if (M->o->emit & TARN_EMIT_LL) low_write_text(M);
  if (M->o->emit & TARN_EMIT_ASM) {
    LLVMMemoryBufferRef text = low_generate(M, tm, LLVMAssemblyFile);
    tarn_write_file(M->cx, low_path(M, "s"), LLVMGetBufferStart(text), LLVMGetBufferSize(text));
    low_wrote(M, "s");
  }
  if (!(M->o->emit & (TARN_EMIT_O | TARN_EMIT_SO))) return;
  LLVMMemoryBufferRef o = low_generate(M, tm, LLVMObjectFile);
  low_write_object(M, s, LLVMGetBufferStart(o), LLVMGetBufferSize(o));
  if (M->o->emit & TARN_EMIT_SO) low_link_shared(M);
  if (M->o->emit & TARN_EMIT_WASM) low_web(M, s);
}
