/* From the module to files: LLVM's passes and code generation, the constants put into the object,
 * the link.
 *
 * The constants never pass through LLVM: its object holds a section of 64 bytes in their place, and
 * the object is written with that section's contents at the end of the file (ELF, little-endian:
 * the section header alone is changed).
 *
 * Code reaches what lies within 2 GiB (4 on AArch64). More constants than that between it and its
 * other data do not link: they go to a section of their own that linkers for x86-64 keep away from
 * the rest (SHF_X86_64_LARGE; LLD 19 does, LLD 14 does not), and code finds them by an address of
 * 64 bits beside its small data. */
#include "base/shared.h"
#include "lower/internal.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEAR ((int64_t)512 << 20) /* leaves room for what else is linked */
extern char **environ;

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
typedef struct arch {
  const char *prefix;
  bool large; /* has sections that may lie anywhere, ".l" before their names */
  void (*init[5])(void);
} arch;
static const arch archs[] = {
    {"x86_64",
     true,
     {LLVMInitializeX86TargetInfo, LLVMInitializeX86Target, LLVMInitializeX86TargetMC,
      LLVMInitializeX86AsmPrinter, LLVMInitializeX86AsmParser}},
    {"aarch64",
     false,
     {LLVMInitializeAArch64TargetInfo, LLVMInitializeAArch64Target, LLVMInitializeAArch64TargetMC,
      LLVMInitializeAArch64AsmPrinter, LLVMInitializeAArch64AsmParser}},
    {"riscv64",
     false,
     {LLVMInitializeRISCVTargetInfo, LLVMInitializeRISCVTarget, LLVMInitializeRISCVTargetMC,
      LLVMInitializeRISCVAsmPrinter, LLVMInitializeRISCVAsmParser}},
    {"arm",
     false,
     {LLVMInitializeARMTargetInfo, LLVMInitializeARMTarget, LLVMInitializeARMTargetMC,
      LLVMInitializeARMAsmPrinter, LLVMInitializeARMAsmParser}},
    {"nvptx64",
     false,
     {LLVMInitializeNVPTXTargetInfo, LLVMInitializeNVPTXTarget, LLVMInitializeNVPTXTargetMC,
      LLVMInitializeNVPTXAsmPrinter}},
};

static const arch *arch_of(const char *triple) {
  for (uint32_t i = 0; triple && i < sizeof archs / sizeof *archs; i++)
    if (!strncmp(triple, archs[i].prefix, strlen(archs[i].prefix))) return &archs[i];
  return NULL;
}
static bool in_large_section(const low_module *M) {
  const arch *a = arch_of(M->hw->triple);
  return M->far && a && a->large;
}
static const char *section_of(const low_module *M) {
  return in_large_section(M) ? ".lrodata.tarn_consts" : ".rodata.tarn_consts";
}
static void dispose_machine(void *tm) { LLVMDisposeTargetMachine(tm); }
static LLVMTargetMachineRef target_machine(low_module *M, const char *triple) {
  static const LLVMCodeGenOptLevel level[4] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
                                               LLVMCodeGenLevelDefault, LLVMCodeGenLevelAggressive};
  const arch *a = arch_of(triple);
  if (!a)
    tarn_raise(M->cx, TARN_BAD_INPUT, "%s: no code generator for the triple %s", M->hw->name,
               triple);
  for (int i = 0; i < 5 && a->init[i]; i++) a->init[i]();
  LLVMTargetRef t;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(triple, &t, &message)) llvm_error(M, triple, message);
  int o = M->o->opt < 0 ? 0 : M->o->opt > 3 ? 3 : M->o->opt;
  LLVMTargetMachineRef tm = LLVMCreateTargetMachine(t, triple, M->hw->cpu, M->hw->features,
                                                    level[o], LLVMRelocPIC, LLVMCodeModelDefault);
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

void low_optimise(low_module *M, LLVMTargetMachineRef tm) {
  char *message = NULL;
  low_open_end(M->m);
  if (LLVMVerifyModule(M->m, LLVMReturnStatusAction, &message))
    llvm_error(M, "the emitted module is wrong", message);
  LLVMDisposeMessage(message);
  LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
  LLVMErrorRef e = LLVMRunPasses(M->m, pipeline(M), tm, o);
  LLVMDisposePassBuilderOptions(o);
  if (!e) return;
  char *text = LLVMGetErrorMessage(e), *copy = tarn_strdup(M->cx, text);
  LLVMDisposeErrorMessage(text);
  tarn_raise(M->cx, TARN_INTERNAL, "lower: passes: %s", copy);
}

void low_write_text(low_module *M) {
  char *message = NULL;
  if (LLVMPrintModuleToFile(M->m, low_path(M, "ll"), &message))
    llvm_error(M, "writing model.ll", message);
  low_wrote(M, "ll");
}

/* ---------------------------------------------------------------- the object */
static void dispose_buffer(void *b) { LLVMDisposeMemoryBuffer(b); }

static void put(low_module *M, int fd, const char *path, const void *p, size_t n) {
  for (const char *s = p; n;) {
    ssize_t w = write(fd, s, n);
    if (w < 0 && errno != EINTR) tarn_raise(M->cx, TARN_IO, "%s: %s", path, strerror(errno));
    if (w > 0) s += w, n -= (size_t)w;
  }
}

/* The section that stands for the constants lies at `at` from now on, and has that size. */
#define PLACE_SECTION(bits, word)                                                                  \
  static bool place_section##bits(const low_module *M, char *elf, size_t at, size_t size) {        \
    const Elf##bits##_Ehdr *h = (const Elf##bits##_Ehdr *)elf;                                     \
    Elf##bits##_Shdr *s = (Elf##bits##_Shdr *)(elf + h->e_shoff);                                  \
    const char *names = elf + s[h->e_shstrndx].sh_offset;                                          \
    for (uint32_t i = 1; i < h->e_shnum; i++) {                                                    \
      if (strcmp(names + s[i].sh_name, section_of(M))) continue;                                   \
      s[i].sh_offset = (Elf##bits##_Off)at;                                                        \
      s[i].sh_size = (word)size;                                                                   \
      return true;                                                                                 \
    }                                                                                              \
    return false;                                                                                  \
  }
PLACE_SECTION(32, Elf32_Word)
PLACE_SECTION(64, Elf64_Xword)
#undef PLACE_SECTION
static void place_section(low_module *M, char *elf, size_t n, size_t at, size_t size) {
  bool is_elf = n >= sizeof(Elf64_Ehdr) && !memcmp(elf, ELFMAG, SELFMAG);
  if (!is_elf) tarn_raise(M->cx, TARN_INTERNAL, "lower: the object is no ELF");
  bool found = elf[EI_CLASS] == ELFCLASS64 ? place_section64(M, elf, at, size)
                                           : place_section32(M, elf, at, size);
  if (!found) tarn_raise(M->cx, TARN_INTERNAL, "lower: the object has no section for constants");
}

typedef struct open_file {
  int fd;
} open_file;
static void close_file(void *p) {
  open_file *f = p;
  if (f->fd >= 0) close(f->fd);
  f->fd = -1;
}

static open_file *create(low_module *M, const char *path) {
  open_file *f = TARN_NEW(M->cx, open_file);
  f->fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (f->fd < 0) tarn_raise(M->cx, TARN_IO, "%s: %s", path, strerror(errno));
  tarn_defer(M->cx, close_file, f);
  return f;
}
/* And closes the file. */
static void write_constants(low_module *M, const tarn_lower_sizes *s, open_file *f,
                            const char *path, off_t at) {
  low_sink *sink = low_sink_new(M->cx, f->fd, path);
  for (uint32_t i = 0; i < s->nprogram; i++)
    for (uint32_t b = 0; b < s->program[i].p->nbuf; b++) {
      const tarn_memory_plan *plan = s->program[i].plan;
      if (plan->const_offset[b] < 0 || plan->const_there[b]) continue;
      low_const_write(s->program[i].p, b, sink, at + plan->const_offset[b]);
    }
  low_sink_end(sink);
  int fd = f->fd;
  f->fd = -1;
  if (close(fd)) tarn_raise(M->cx, TARN_IO, "%s: %s", path, strerror(errno));
}
void low_weights(low_module *M, const tarn_kprog *p, const tarn_memory_plan *plan,
                 const char *path) {
  open_file *f = create(M, path);
  if (ftruncate(f->fd, (off_t)plan->const_bytes))
    tarn_raise(M->cx, TARN_IO, "%s: %s", path, strerror(errno));
  const tarn_lower_program one = {.p = p, .plan = plan};
  write_constants(M, &(tarn_lower_sizes){.nprogram = 1, .program = &one}, f, path, 0);
}
static void write_object(low_module *M, const tarn_lower_sizes *s, const char *from, size_t n) {
  const tarn_memory_plan *plan = s->program[0].plan; /* of one blob for all */
  const char *path = low_path(M, "o");
  char *elf = tarn_copy(M->cx, from, n);
  size_t at = (n + 63) / 64 * 64;
  size_t size = (size_t)(plan->const_bytes > 64 ? plan->const_bytes : 64);
  place_section(M, elf, n, at, size);
  open_file *f = create(M, path);
  low_wrote(M, "o");
  put(M, f->fd, path, elf, n);
  if (ftruncate(f->fd, (off_t)(at + size)))
    tarn_raise(M->cx, TARN_IO, "%s: %s", path, strerror(errno));
  write_constants(M, s, f, path, (off_t)at);
}

/* ---------------------------------------------------------------- the link */
/* libm, where the strict mode finds its functions; the program that loads the model may not have
 * it. */
static const char *libm_path(const char *triple) {
  static const char *const dirs[] = {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6",
                                     "/usr/lib64/libm.so.6", "/usr/lib/x86_64-linux-gnu/libm.so.6"};
  for (uint32_t i = 0; !strncmp(triple, "x86_64", 6) && i < sizeof dirs / sizeof *dirs; i++)
    if (!access(dirs[i], R_OK)) return dirs[i];
  return NULL;
}

/* A file that is linked: a shared object by its whole path, and where it is looked for. */
static uint32_t add_file(low_module *M, const char *file, const char **argv) {
  size_t n;
  const char *code = tarn_read_file(M->cx, file, &n);
  argv[0] = file;
  if (!tarn_is_shared_object(code, n)) return 1;
  const char *path = realpath(file, tarn_new(M->cx, PATH_MAX));
  argv[0] = path ? path : file;
  const char *end = strrchr(argv[0], '/');
  if (!end) return 1;
  argv[1] = tarn_format(M->cx, "-rpath=%.*s", (int)(end - argv[0]), argv[0]);
  return 2;
}
/* What was linked may need what nothing brings; on a machine like this one that is seen when it is
 * loaded. NULL: it is not seen. */
static const char *unresolved(low_module *M, const char *triple, const char *so) {
  char *here = LLVMGetDefaultTargetTriple();
  bool alike = !strncmp(here, triple, strcspn(triple, "-") + 1);
  LLVMDisposeMessage(here);
  if (!M->o->nlink || !alike) return NULL;
  void *lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
  if (lib) return (void)dlclose(lib), NULL;
  const char *what = dlerror();
  const char *symbol = strstr(what, "undefined symbol");
  return tarn_strdup(M->cx, symbol ? symbol : what);
}
static void link_shared(low_module *M, const char *triple) {
  const char *so = low_path(M, "so"), *libm = libm_path(triple), *why;
  const char *tmp = tarn_format(M->cx, "%s.tmp", so);
  const char **argv = TARN_ARRAY(M->cx, const char *, 16 + 2 * M->o->nlink);
  uint32_t n = 0;
  static const char *const first[] = {"ld.lld",      "-shared",     "-z",
                                      "noexecstack", "--as-needed", "-o"};
  for (; n < sizeof first / sizeof *first; n++) argv[n] = first[n];
  argv[n++] = tmp, argv[n++] = low_path(M, "o");
  for (uint32_t i = 0; i < M->o->nlink; i++) n += add_file(M, M->o->link[i], argv + n);
  argv[n] = libm;
  tarn_lld_result r = tarn_lld(M->cx, argv, &why);
  if (r == TARN_LLD_MISSING) tarn_warn(M->cx, "%s: model.o was written, model.so was not", why);
  if (r == TARN_LLD_FAILED) {
    unlink(tmp);
    tarn_raise(M->cx, M->o->nlink ? TARN_BAD_INPUT : TARN_INTERNAL, "linking %s: %s", so, why);
  }
  const char *lacks = r == TARN_LLD_DONE ? unresolved(M, triple, tmp) : NULL;
  if (lacks) {
    unlink(tmp);
    tarn_raise(M->cx, TARN_BAD_INPUT, "linking %s: %s, which no (link FILE) brings", so, lacks);
  }
  if (r == TARN_LLD_DONE && rename(tmp, so))
    tarn_raise(M->cx, TARN_IO, "%s: %s", so, strerror(errno));
}

/* ---------------------------------------------------------------- all of it */
static void name_consts(low_module *M) {
  const char *name = M->o->name;
  tarn_buf b = {.cx = M->cx};
  tarn_buf_fmt(&b, ".section %s,\"%s\",%%progbits\n.p2align 6\n", section_of(M),
               in_large_section(M) ? "al" : "a");
  tarn_buf_fmt(&b, ".hidden %s_consts\n.globl %s_consts\n%s_consts:\n.zero 64\n", name, name, name);
  if (M->far) {
    tarn_buf_str(&b, ".section .data.rel.ro.tarn_consts,\"aw\",%progbits\n.p2align 3\n");
    tarn_buf_fmt(&b, ".hidden %s_consts_at\n.globl %s_consts_at\n%s_consts_at:\n.quad %s_consts\n",
                 name, name, name, name);
  }
  tarn_buf_str(&b, ".text\n");
  LLVMSetModuleInlineAsm2(M->m, b.p, b.n);
}

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
  LLVMDisposeTargetData(layout);
  M->f16 = low_f16_type(M, tm);
  return tm;
}

void low_object(low_module *M, const tarn_lower_sizes *s) {
  LLVMTargetMachineRef tm = low_machine(M);
  M->far = s->program[0].plan->const_bytes > (M->o->near ? M->o->near : NEAR);
  name_consts(M);
  low_program(M, s);
  low_header(M, s);
  low_optimise(M, tm);
  if (M->o->emit & TARN_EMIT_LL) low_write_text(M);
  if (M->o->emit & TARN_EMIT_ASM) {
    LLVMMemoryBufferRef text = low_generate(M, tm, LLVMAssemblyFile);
    tarn_write_file(M->cx, low_path(M, "s"), LLVMGetBufferStart(text), LLVMGetBufferSize(text));
    low_wrote(M, "s");
  }
  if (!(M->o->emit & (TARN_EMIT_O | TARN_EMIT_SO))) return;
  LLVMMemoryBufferRef o = low_generate(M, tm, LLVMObjectFile);
  write_object(M, s, LLVMGetBufferStart(o), LLVMGetBufferSize(o));
  if (M->o->emit & TARN_EMIT_SO) link_shared(M, LLVMGetTarget(M->m));
}
