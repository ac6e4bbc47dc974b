/* Extractors in shared objects. */
#include "extract/select/internal.h"
#include <dlfcn.h>
#include <string.h>

typedef struct load_args {
  tarn_sel_graph *g;
  const char *path;
  const tarn_sel_options *o;
  tarn_sel_result out;
} load_args;

static void close_library(void *h) { dlclose(h); }

static void run_loaded(tarn_ctx *cx, void *arg) {
  load_args *a = arg;
  tarn_sel_plugin_fn *fn;
  /* dlopen() searches the system's folders for a name without a slash: a file here is meant */
  const char *path = strchr(a->path, '/') ? a->path : tarn_format(cx, "./%s", a->path);
  void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!h) tarn_raise(cx, TARN_IO, "%s: not a plugin: %s", a->path, dlerror());
  tarn_defer(cx, close_library, h);
  void *at = dlsym(h, "tarn_sel_plugin");
  if (!at) tarn_raise(cx, TARN_IO, "%s: not a plugin: it has no tarn_sel_plugin", a->path);
  memcpy(&fn, &at, sizeof fn); /* ISO C has no cast between the two kinds of pointer */
  tarn_status st = tarn_sel_run_function(a->g, fn, a->o, &a->out);
  if (st) tarn_reraise(cx, st);
}

tarn_status tarn_sel_run_plugin(tarn_sel_graph *g, const char *path, const tarn_sel_options *o,
                                tarn_sel_result *out) {
  load_args a = {.g = g, .path = path, .o = o};
  tarn_status st = tarn_protect(g->cx, run_loaded, &a);
  if (!st) *out = a.out;
  return st;
}
