/* The folder of samples: *.npy of a model with one input, else a folder K with NAME.npy for each
 * input. */
#include "quantize/internal.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void close_dir(void *d) { closedir(d); }

static bool ends(const char *s, const char *with) {
  size_t n = strlen(s), k = strlen(with);
  return n > k && strcmp(s + n - k, with) == 0;
}

static bool is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

typedef TARN_VEC(const char *) names;
typedef struct listing {
  const char *dir;
  bool folders;
  names found;
} listing;
static void list(tarn_ctx *cx, void *arg) {
  listing *l = arg;
  DIR *d = opendir(l->dir);
  if (!d) tarn_raise(cx, TARN_IO, "%s: %s", tarn_shown(cx, l->dir), strerror(errno));
  tarn_defer(cx, close_dir, d);
  for (struct dirent *e; (e = readdir(d));) {
    const char *path = tarn_format(cx, "%s/%s", l->dir, e->d_name);
    if (e->d_name[0] != '.' && (l->folders ? is_folder(path) : ends(path, ".npy")))
      tarn_push(cx, &l->found, path);
  }
}

/* NAME.npy; a / in a name stands as _. */
static const char *file_of(tarn_ctx *cx, const char *dir, const char *name) {
  char *stem = tarn_strdup(cx, name);
  for (char *p = stem; *p; p++)
    if (*p == '/') *p = '_';
  return tarn_format(cx, "%s/%s.npy", dir, stem);
}

static const tarn_tensor *read_input(const qz_graph *g, const tarn_io *in, const char *path) {
  tarn_ctx *cx = g->cx;
  const tarn_type *want = tarn_type_get(g->L, in->type);
  const tarn_tensor *t = tarn_tensor_read_as(cx, path, want->dtype);
  bool same = t->dtype == want->dtype && t->n == want->n &&
              !memcmp(t->dim, want->dim, t->n * sizeof *t->dim);
  if (!same)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: input %s expects shape and type %s, given %s",
               tarn_shown(cx, path), tarn_shown(cx, in->name),
               tarn_dims_text(cx, want->dtype, want->n, want->dim),
               tarn_dims_text(cx, t->dtype, t->n, t->dim));
  return t;
}

static const tarn_binding *read_sample(const qz_graph *g, const char *path) {
  const tarn_program *p = g->program;
  tarn_binding *b = TARN_ARRAY(g->cx, tarn_binding, p->nin + 1);
  for (uint32_t i = 0; i < p->nin; i++) {
    const char *file = p->nin == 1 ? path : file_of(g->cx, path, p->in[i].name);
    b[i] = (tarn_binding){p->in[i].name, read_input(g, &p->in[i], file)};
  }
  return b;
}

qz_samples *qz_samples_read(const qz_graph *g, const char *dir) {
  tarn_ctx *cx = g->cx;
  const tarn_program *p = g->program;
  listing l = {.dir = dir, .folders = p->nin != 1};
  if (!p->nin) tarn_raise(cx, TARN_BAD_INPUT, "%s: the model has no inputs", g->file);
  tarn_status st = tarn_protect(cx, list, &l);
  if (st != TARN_OK) tarn_reraise(cx, st);
  if (!l.found.n)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: no samples: %s expected", tarn_shown(cx, dir),
               p->nin == 1 ? "files *.npy are"
                           : tarn_format(cx, "folders with %s for each of %u inputs are",
                                         file_of(cx, "K", p->in[0].name), p->nin));
  qsort(l.found.p, l.found.n, sizeof *l.found.p, tarn_by_text);
  qz_samples *s = TARN_NEW(cx, qz_samples);
  *s = (qz_samples){.n = l.found.n, .path = l.found.p};
  s->input = TARN_ARRAY(cx, const tarn_binding *, s->n);
  for (uint32_t i = 0; i < s->n; i++) s->input[i] = read_sample(g, s->path[i]);
  return s;
}
