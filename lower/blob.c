/* Where the constants of a program lie, which its code knows by a symbol alone.
 *
 * In the object they are a global of LLVM's, so that any format that LLVM writes holds them, and so
 * does text. The passes see a declaration: what is computed does not depend on the place. An ELF
 * object gets them when it is written: LLVM's holds a section of 64 bytes in their place, and the
 * contents follow at the end of the file, where the section header then points. LLVM would hold
 * them several times: 0.5 GB of weights take 1.1 GB of memory to compile with this, 2.1 GB through
 * LLVM as Mach-O and 2.7 GB as COFF or wasm, and 0.5 s more.
 *
 * Code reaches what lies within 2 GiB (4 on AArch64). More constants than that between it and its
 * other data do not link: they go to a section of their own that linkers for x86-64 keep away from
 * the rest (SHF_X86_64_LARGE; LLD 19 does, LLD 14 does not), and code finds them by an address
 * beside its small data.
 *
 * In a file of their own (model.weights) code finds them by an address that the program sets. */
#include "base/shared.h"
#include "lower/internal.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NEAR ((int64_t)512 << 20) /* leaves room for what else is linked */
enum { PLACEHOLDER = 64, ALIGN = 64 };

/* ---------------------------------------------------------------- files */
typedef struct open_file {
  const char *path; /* in messages */
  int fd;
  void *mapped;
  size_t n; /* mapped */
} open_file;
static void close_file(void *p) {
  open_file *f = p;
  if (f->mapped) munmap(f->mapped, f->n);
  if (f->fd >= 0) close(f->fd);
  f->mapped = NULL, f->fd = -1;
}
_Noreturn static void io_error(const low_module *M, const open_file *f) {
  tarn_raise(M->cx, TARN_IO, "%s: %s", f->path, strerror(errno));
}
/* path NULL: a file in memory. */
static open_file *create(low_module *M, const char *path) {
  open_file *f = TARN_NEW(M->cx, open_file);
  f->path = path ? path : "constants in memory";
  f->fd = path ? open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644)
               : memfd_create("tarn", MFD_CLOEXEC);
  if (f->fd < 0) io_error(M, f);
  tarn_defer(M->cx, close_file, f);
  return f;
}
static void end_file(low_module *M, open_file *f) {
  int fd = f->fd;
  f->fd = -1;
  if (close(fd)) io_error(M, f);
}
static void put(low_module *M, const open_file *f, const void *p, size_t n) {
  for (const char *s = p; n;) {
    ssize_t w = write(f->fd, s, n);
    if (w < 0 && errno != EINTR) io_error(M, f);
    if (w > 0) s += w, n -= (size_t)w;
  }
}
static int64_t bytes_of(const tarn_lower_sizes *s) {
  return s->program[0].plan->const_bytes; /* of one blob for all */
}
/* The constants, from `at` on; the file ends behind them. */
static void write_constants(low_module *M, const tarn_lower_sizes *s, const open_file *f, off_t at,
                            int64_t bytes) {
  if (ftruncate(f->fd, at + bytes)) io_error(M, f);
  low_sink *sink = low_sink_new(M->cx, f->fd, f->path);
  for (uint32_t i = 0; i < s->nprogram; i++)
    for (uint32_t b = 0; b < s->program[i].p->nbuf; b++) {
      const tarn_memory_plan *plan = s->program[i].plan;
      if (plan->const_offset[b] < 0 || plan->const_there[b]) continue;
      low_const_write(s->program[i].p, b, sink, at + plan->const_offset[b]);
    }
  low_sink_end(sink);
}
void low_weights(low_module *M, const tarn_lower_sizes *s, const char *path) {
  open_file *f = create(M, path);
  write_constants(M, s, f, 0, bytes_of(s));
  end_file(M, f);
}

/* ---------------------------------------------------------------- symbols */
void low_blob_place(low_module *M, const tarn_lower_sizes *s) {
  int64_t near = M->o->near ? M->o->near : NEAR;
  if (M->o->apart && bytes_of(s)) M->place = LOW_APART;
  else M->place = bytes_of(s) > near ? LOW_FAR : LOW_NEAR;
}
static LLVMValueRef declared(const low_module *M, LLVMTypeRef type, const char *what) {
  const char *name = low_symbol(M, what);
  LLVMValueRef v = LLVMGetNamedGlobal(M->m, name);
  if (v) return v;
  v = LLVMAddGlobal(M->m, type, name);
  if (M->place != LOW_APART) LLVMSetVisibility(v, LLVMHiddenVisibility);
  LLVMSetGlobalConstant(v, M->place != LOW_APART);
  return v;
}
LLVMValueRef low_blob(const low_module *M) {
  LLVMValueRef v = M->place == LOW_APART ? NULL : declared(M, M->i8, "consts");
  if (v) LLVMSetAlignment(v, ALIGN);
  return v;
}
LLVMValueRef low_blob_address(const low_module *M) {
  if (M->place == LOW_NEAR) return NULL;
  return declared(M, M->ptr, M->place == LOW_FAR ? "consts_at" : "constants");
}

/* ---------------------------------------------------------------- what they hold */
/* The value of a symbol that was declared, of which no pass looked at. */
static LLVMValueRef define(const low_module *M, LLVMValueRef declared, LLVMValueRef value,
                           const char *section) {
  size_t n;
  const char *name = tarn_strdup(M->cx, LLVMGetValueName2(declared, &n));
  LLVMValueRef v = LLVMAddGlobal(M->m, LLVMTypeOf(value), "");
  LLVMSetInitializer(v, value);
  LLVMSetVisibility(v, LLVMGetVisibility(declared));
  LLVMSetGlobalConstant(v, LLVMIsGlobalConstant(declared));
  LLVMSetAlignment(v, LLVMGetAlignment(declared));
  LLVMSetExternallyInitialized(v, true);
  if (section) LLVMSetSection(v, section);
  LLVMReplaceAllUsesWith(declared, v);
  LLVMDeleteGlobal(declared);
  LLVMSetValueName2(v, name, n);
  return v;
}
static LLVMValueRef bytes_value(low_module *M, const tarn_lower_sizes *s) {
  open_file *f = create(M, NULL);
  size_t n = (size_t)tarn_max(bytes_of(s), 1);
  write_constants(M, s, f, 0, (int64_t)n);
  void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, f->fd, 0);
  if (p == MAP_FAILED) io_error(M, f);
  f->mapped = p, f->n = n;
  LLVMValueRef v = LLVMConstStringInContext2(M->lc, p, n, true);
  close_file(f);
  return v;
}
static LLVMValueRef placeholder(const low_module *M) {
  return LLVMConstNull(LLVMArrayType2(M->i8, PLACEHOLDER));
}
static const char *section_of(const low_module *M) {
  bool large = M->place == LOW_FAR && !strncmp(LLVMGetTarget(M->m), "x86_64", 6);
  return large ? ".lrodata.tarn_consts" : ".rodata.tarn_consts";
}
/* Written behind the object, or through LLVM. */
static bool later(const low_module *M) {
  return M->elf && !(M->o->emit & (TARN_EMIT_LL | TARN_EMIT_ASM));
}
void low_blob_define(low_module *M, const tarn_lower_sizes *s) {
  LLVMValueRef at = low_blob_address(M), blob = low_blob(M);
  if (!blob) {
    low_weights(M, s, low_path(M, "weights"));
    low_wrote(M, "weights");
    define(M, at, LLVMConstNull(M->ptr), NULL);
    return;
  }
  LLVMValueRef value = later(M) ? placeholder(M) : bytes_value(M, s);
  blob = define(M, blob, value, M->elf ? section_of(M) : NULL);
  if (at) define(M, at, blob, M->elf ? ".data.rel.ro.tarn_consts" : NULL);
}

/* ---------------------------------------------------------------- the object */
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

void low_write_object(low_module *M, const tarn_lower_sizes *s, const char *from, size_t n) {
  open_file *f = create(M, low_path(M, "o"));
  low_wrote(M, "o");
  bool more = later(M) && M->place != LOW_APART;
  char *elf = more ? tarn_copy(M->cx, from, n) : NULL;
  size_t at = (n + ALIGN - 1) / ALIGN * ALIGN;
  int64_t bytes = tarn_max(bytes_of(s), 1);
  bool found = more && (elf[EI_CLASS] == ELFCLASS64 ? place_section64(M, elf, at, (size_t)bytes)
                                                    : place_section32(M, elf, at, (size_t)bytes));
  if (more && !found)
    tarn_raise(M->cx, TARN_INTERNAL, "lower: the object has no section for constants");
  put(M, f, more ? elf : from, n);
  if (more) write_constants(M, s, f, (off_t)at, bytes);
  end_file(M, f);
}
