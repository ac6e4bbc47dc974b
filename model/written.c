/* Kernels written by hand, called from this process: the file that has the function is linked by
 * itself into a shared object and loaded. */
#include "base/shared.h"
#include "model/model.h"
#include "runtime/ref.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the link ---- */
/* A shared object stays where it is, and what is linked names it; its names end with a 0 on either
 * side. */
static bool names(const char *code, size_t n, const char *symbol) {
  size_t m = strlen(symbol) + 1;
  for (size_t i = 1; i + m <= n; i++)
    if (!code[i - 1] && !memcmp(code + i, symbol, m)) return true;
  return false;
}
bool tarn_written_link(tarn_ctx *cx, const tarn_written *w, const char *so, const char **why) {
  const char *argv[] = {"ld.lld",
                        "-shared",
                        "-z",
                        "noexecstack",
                        tarn_format(cx, "--undefined=%s", w->symbol),
                        "-o",
                        so,
                        w->link,
                        tarn_format(cx, "--defsym=tarn_written=%s", w->symbol),
                        NULL};
  size_t n;
  *why = NULL;
  if (access(w->link, R_OK)) *why = tarn_format(cx, "%s: %s", w->link, strerror(errno));
  if (*why) return false;
  const char *code = tarn_read_file(cx, w->link, &n);
  if (tarn_is_shared_object(code, n)) {
    argv[7] = realpath(w->link, tarn_new(cx, PATH_MAX));
    argv[8] = tarn_format(cx, "-rpath=%.*s", (int)(strrchr(argv[7], '/') - argv[7]), argv[7]);
    if (!names(code, n, w->symbol)) {
      *why = tarn_format(cx, "%s has no function %s", w->link, w->symbol);
      return false;
    }
  }
  tarn_lld_result r = tarn_lld(cx, argv, why);
  if (r == TARN_LLD_FAILED && strstr(*why, "symbol not found"))
    *why = tarn_format(cx, "%s has no function %s", w->link, w->symbol);
  return r == TARN_LLD_DONE;
}
static void remove_folder(void *dir) {
  char *so = dir;
  unlink(so);
  *strrchr(so, '/') = 0;
  rmdir(so);
}
static char *workshop(tarn_ctx *cx) {
  char *dir = tarn_strdup(cx, "/tmp/tarn-XXXXXX");
  if (!mkdtemp(dir)) tarn_raise(cx, TARN_IO, "%s: %s", dir, strerror(errno));
  char *so = tarn_format(cx, "%s/kernel.so", dir);
  tarn_defer(cx, remove_folder, so);
  return so;
}

void tarn_written_verify(tarn_ctx *cx, tarn_written *w) {
  const char *why;
  size_t n;
  if (!w->link) return;
  if (!tarn_written_link(cx, w, workshop(cx), &why)) tarn_sx_error(cx, w->at, "%s", why);
  const char *code = tarn_read_file(cx, w->link, &n);
  w->code = tarn_hash_bytes(code, n, 0);
}

/* ---- the call ---- */
static void put(tarn_ref_tensor *t, const tarn_written_arg *a) {
  *t = (tarn_ref_tensor){(int32_t)a->dtype, (int32_t)a->n, a->dim, a->data, a->stride};
}
static void run(tarn_ctx *cx, const tarn_written *w, const tarn_written_arg *in,
                const tarn_written_arg *out) {
  tarn_ref_tensor t[TARN_MAX_OPERANDS], result;
  tarn_ref_kernel *f;
  memcpy(&f, &w->function, sizeof f);
  for (uint32_t i = 0; i < w->nin; i++) put(&t[i], &in[i]);
  put(&result, out);
  tarn_ref_call call = {.nin = w->nin, .nout = 1, .in = t, .out = &result};
  if (f(&call) != TARN_REF_OK) tarn_raise(cx, TARN_BAD_INPUT, "%s: %s", w->symbol, call.message);
}
static void unload(void *so) { dlclose(so); }
static const char *load(tarn_ctx *cx, tarn_written *w) {
  const char *why, *so = w->link ? workshop(cx) : NULL;
  if (!so) return tarn_format(cx, "the kernel %s has no (link FILE)", w->name);
  if (!tarn_written_link(cx, w, so, &why)) return why;
  void *lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return tarn_format(cx, "%s: %s", w->link, dlerror());
  tarn_defer(cx, unload, lib);
  w->function = dlsym(lib, w->symbol);
  w->run = run;
  return w->function ? NULL : tarn_format(cx, "%s has no function %s", w->link, w->symbol);
}
void tarn_written_load(tarn_ctx *cx, tarn_written *w) {
  if (w->run) return;
  w->absent = load(cx, w);
  if (w->absent) w->run = NULL;
}
