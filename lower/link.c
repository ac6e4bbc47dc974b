/* Links: a shared object by lld, or a WebAssembly module. Each is made beside its place and moved
 * there. */
#include "base/progress.h"
#include "base/shared.h"
#include "lower/internal.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
/* The C library for WebAssembly, whose functions of libm a module takes in: it imports none. */
static const char *wasm_library(void) {
  static const char *const files[] = {"/usr/lib/wasm32-wasi/libc.a",
                                      "/opt/wasi-sdk/share/wasi-sysroot/lib/wasm32-wasi/libc.a"};
  for (uint32_t i = 0; i < sizeof files / sizeof *files; i++)
    if (!access(files[i], R_OK)) return files[i];
  return NULL;
}
/* Without lld there is a warning, and no file tmp. */
static void link_as(low_module *M, const char *const *argv, const char *tmp, const char *file) {
  const char *why;
  tarn_progress(M->cx, "linking", 0, 0, NULL);
  tarn_lld_result r = tarn_lld(M->cx, argv, &why);
  if (r == TARN_LLD_MISSING)
    tarn_warn(M->cx, "%s: model.o was written, %s was not", why, strrchr(file, '/') + 1);
  if (r != TARN_LLD_FAILED) return;
  unlink(tmp);
  bool wasm = M->o->emit & TARN_EMIT_WASM, theirs = M->o->nlink || wasm;
  if (wasm && !wasm_library())
    why =
        tarn_format(M->cx, "%s; wasi-libc, which has the functions of libm, is not installed", why);
  tarn_raise(M->cx, theirs ? TARN_BAD_INPUT : TARN_INTERNAL, "linking %s: %s", file, why);
}
/* False: there is no tmp. */
static bool rename_as(const low_module *M, const char *tmp, const char *file) {
  if (access(tmp, F_OK)) return false;
  if (rename(tmp, file)) tarn_raise(M->cx, TARN_IO, "%s: %s", file, strerror(errno));
  return true;
}
void low_link_shared(low_module *M) {
  const char *triple = LLVMGetTarget(M->m);
  const char *so = low_path(M, "so"), *libm = libm_path(triple);
  const char *tmp = tarn_format(M->cx, "%s.tmp", so);
  const char **argv = TARN_ARRAY(M->cx, const char *, 16 + 2 * M->o->nlink);
  uint32_t n = 0;
  static const char *const first[] = {"ld.lld",      "-shared",     "-z",
                                      "noexecstack", "--as-needed", "-o"};
  for (; n < sizeof first / sizeof *first; n++) argv[n] = first[n];
  argv[n++] = tmp, argv[n++] = low_path(M, "o");
  for (uint32_t i = 0; i < M->o->nlink; i++) n += add_file(M, M->o->link[i], argv + n);
  argv[n] = libm;
  link_as(M, argv, tmp, so);
  const char *lacks = access(tmp, F_OK) ? NULL : unresolved(M, triple, tmp);
  if (lacks) {
    unlink(tmp);
    tarn_raise(M->cx, TARN_BAD_INPUT, "linking %s: %s, which no (link FILE) brings", so, lacks);
  }
  rename_as(M, tmp, so);
}

/* ---------------------------------------------------------------- WebAssembly */
bool low_link_wasm(low_module *M) {
  const char *wasm = low_path(M, "wasm"), *tmp = tarn_format(M->cx, "%s.tmp", wasm);
  const char *const first[] = {
      "wasm-ld",
      "--no-entry",
      "--strip-all",
      "-O2",
      "--stack-first",
      "-z",
      "stack-size=1048576",
      "--export=__heap_base",
      tarn_format(M->cx, "--export=%s", low_symbol(M, "run")),
      tarn_format(M->cx, "--export=%s", low_symbol(M, "workspace")),
      tarn_format(M->cx, "--export-if-defined=%s", low_symbol(M, "constants")),
      "-o",
      tmp,
      low_path(M, "o")};
  enum { N = sizeof first / sizeof *first };
  const char **argv = TARN_ARRAY(M->cx, const char *, N + 2 * M->o->nlink + 2);
  memcpy(argv, first, sizeof first);
  uint32_t n = N;
  for (uint32_t i = 0; i < M->o->nlink; i++) n += add_file(M, M->o->link[i], argv + n);
  argv[n] = wasm_library();
  link_as(M, argv, tmp, wasm);
  return rename_as(M, tmp, wasm);
}
