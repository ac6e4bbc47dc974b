/* Entry points: files by their ending, bytes, shape bindings. */
#define _DEFAULT_SOURCE
#include "model/gguf/gguf.h"
#include "model/import.h"
#include "model/onnx.h"
#include "model/tc.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

bool tarn_shape_is_expression(const char *text) {
  const char *eq = strrchr(text, '=');
  for (const char *p = eq ? eq + 1 : ""; *p; p++)
    if (isalpha((unsigned char)*p) || *p == '_') return true;
  return false;
}
tarn_shape_binding tarn_shape_binding_parse(tarn_ctx *cx, const char *text) {
  const char *eq = strrchr(text, '=');
  if (!eq || eq == text)
    tarn_raise(cx, TARN_USAGE, "--shape %s: NAME=1,3,640,640 is expected", text);
  tarn_shape_binding b = {.name = tarn_strndup(cx, text, (size_t)(eq - text))};
  if (tarn_shape_is_expression(text)) {
    const char *from = eq + 1 + strspn(eq + 1, " ");
    b.is = tarn_strdup(cx, from);
    return b;
  }
  int64_t *dim = TARN_ARRAY(cx, int64_t, TARN_MAX_DIMS);
  for (const char *p = eq + 1; *p;) {
    char *end;
    errno = 0;
    long long v = strtoll(p, &end, 10);
    bool more = *end == ',';
    if (end == p || errno || v < 0 || (*end && !more) || (more && !end[1]))
      tarn_raise(cx, TARN_USAGE, "--shape %s: '%s' is not a list of extents", text, eq + 1);
    if (b.n == TARN_MAX_DIMS)
      tarn_raise(cx, TARN_USAGE, "--shape %s: at most %d dims", text, TARN_MAX_DIMS);
    dim[b.n++] = v;
    p = more ? end + 1 : end;
  }
  b.dim = dim;
  return b;
}

/* A model of either format, and which it is. dir: as gguf_model() takes it. */
static const Onnx__ModelProto *unpacked(tarn_ctx *cx, const void *bytes, size_t n, const char *name,
                                        const char *dir, const char **format) {
  *format = gguf_is(bytes, n) ? "gguf" : "onnx";
  if (gguf_is(bytes, n)) return gguf_model(cx, bytes, n, name, dir);
  im_refuse_format(cx, bytes, n, name);
  const ProtobufCMessage *m = im_unpack(cx, &onnx__model_proto__descriptor, bytes, n, name);
  return (const Onnx__ModelProto *)m;
}

static tarn_program *run_model(tarn_lang *L, const Onnx__ModelProto *m, const char *format,
                               const char *name, const char *dir, const tarn_model_options *options,
                               tarn_model_report *report) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  im i = {.cx = cx, .L = L, .file = tarn_shown(cx, name), .options = options, .model = m};
  i.dir = dir, i.format = format;
  return im_run(&i, report);
}

tarn_program *tarn_model_load_bytes(tarn_lang *L, const void *bytes, size_t n, const char *name,
                                    const char *dir, const tarn_model_options *options,
                                    tarn_model_report *report) {
  const char *format;
  const Onnx__ModelProto *m = unpacked(tarn_lang_ctx(L), bytes, n, name, dir, &format);
  tarn_program *p = run_model(L, m, format, name, dir, options, report);
  if (options) im_last_rows(p, name, options);
  return p;
}

/* A whole file outside the arena, gone when the enclosing protected call ends. */
typedef struct whole_file {
  tarn_ctx *cx;
  const char *path;
  FILE *f;
  char *p;
  size_t n;
  const Onnx__ModelProto *model;
  const char *format;
} whole_file;

static void free_file(void *arg) {
  whole_file *w = arg;
  if (w->f) fclose(w->f);
  if (w->p) munmap(w->p, w->n);
}

/* Some models are folders. */
_Noreturn static void refuse_folder(tarn_ctx *cx, const char *path) {
  struct stat st;
  bool saved = stat(tarn_format(cx, "%s/saved_model.pb", path), &st) == 0;
  tarn_raise(cx, saved ? TARN_BAD_INPUT : TARN_IO, "%s: %s", path,
             saved ? "not ONNX or GGUF but a SavedModel of TensorFlow: convert it to ONNX (tf2onnx "
                     "--saved-model)"
                   : "a folder, not a file");
}
/* The weights of a GGUF file lie in it: it is mapped, not read. */
static void unpack_file(tarn_ctx *cx, void *arg) {
  whole_file *w = arg;
  struct stat st;
  tarn_defer(cx, free_file, w);
  w->f = fopen(w->path, "rb");
  if (!w->f || fstat(fileno(w->f), &st) != 0)
    tarn_raise(cx, TARN_IO, "%s: %s", w->path, strerror(errno));
  if (S_ISDIR(st.st_mode)) refuse_folder(cx, w->path);
  if (!S_ISREG(st.st_mode)) tarn_raise(cx, TARN_IO, "%s: not a regular file", w->path);
  w->n = (size_t)st.st_size;
  void *p = w->n ? mmap(NULL, w->n, PROT_READ, MAP_PRIVATE, fileno(w->f), 0) : NULL;
  if (p == MAP_FAILED) tarn_raise(cx, TARN_IO, "%s: %s", w->path, strerror(errno));
  w->p = p;
  w->model = unpacked(cx, p ? p : "", w->n, w->path, tarn_onnx_folder(cx, w->path), &w->format);
}

const char *tarn_onnx_folder(tarn_ctx *cx, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return ".";
  return slash == path ? "/" : tarn_strndup(cx, path, (size_t)(slash - path));
}

static bool ends(const char *s, const char *with) {
  size_t n = strlen(s), k = strlen(with);
  return n >= k && strcmp(s + n - k, with) == 0;
}

/* The INPUT terms below a term, by name. */
static void find_inputs(tarn_lang *L, tarn_term root, tarn_program *p) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  TARN_VEC(tarn_term) todo = {0};
  TARN_VEC(tarn_io) in = {0};
  tarn_map *seen = tarn_map_new(cx);
  tarn_push(cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    bool fresh;
    tarn_map_at(seen, t, &fresh);
    if (!fresh) continue;
    const tarn_node *node = tarn_term_get(L, t);
    for (uint32_t i = 0; i < node->n; i++) tarn_push(cx, &todo, node->kid[i]);
    if (node->op == TARN_OP_INPUT)
      tarn_push(cx, &in, ((tarn_io){tarn_payload_get(L, node->payload)->name, t, node->type}));
  }
  if (in.n) qsort(in.p, in.n, sizeof *in.p, tarn_by_text);
  for (uint32_t i = 1; i < in.n; i++)
    if (strcmp(in.p[i - 1].name, in.p[i].name) == 0)
      tarn_raise(cx, TARN_BAD_INPUT, "input %s occurs with two types", in.p[i].name);
  p->nin = in.n;
  p->in = in.p;
}

static tarn_program *load_term(tarn_lang *L, const char *path) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_sx *s = tarn_sx_read_file(cx, path);
  if (s->n != 1) tarn_raise(cx, TARN_BAD_INPUT, "%s: %u terms where one is expected", path, s->n);
  tarn_program *p = TARN_NEW(cx, tarn_program);
  p->L = L;
  p->nout = 1;
  p->out = TARN_NEW(cx, tarn_io);
  p->out->name = "out";
  p->out->term = tarn_term_parse(L, s->kid[0]);
  p->out->type = tarn_term_get(L, p->out->term)->type;
  find_inputs(L, p->out->term, p);
  return p;
}

static tarn_program *load_program(tarn_lang *L, const char *path) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_sx *s = tarn_sx_read_file(cx, path);
  if (s->n != 1)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %u forms where one program is expected", path, s->n);
  return tarn_program_parse(L, s->kid[0], tarn_onnx_folder(cx, path));
}

/* The bytes are needed only while unpacking, which copies what stays. */
static whole_file read_model(tarn_ctx *cx, const char *path) {
  whole_file w = {.cx = cx, .path = path};
  tarn_status st = tarn_protect(cx, unpack_file, &w);
  if (st != TARN_OK) tarn_reraise(cx, st);
  return w;
}
Onnx__ModelProto *tarn_onnx_read(tarn_ctx *cx, const char *path) {
  bool other = ends(path, ".tc") || ends(path, ".term") || ends(path, ".tarn");
  whole_file w = {.format = "other"};
  if (!other) w = read_model(cx, path);
  if (strcmp(w.format, "onnx") != 0)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: only a model of ONNX will do here: what is written is one",
               path);
  return (Onnx__ModelProto *)(uintptr_t)w.model;
}

tarn_program *tarn_onnx_program(tarn_lang *L, const Onnx__ModelProto *m, const char *path,
                                const tarn_model_options *options, tarn_model_report *report) {
  const char *dir = tarn_onnx_folder(tarn_lang_ctx(L), path);
  return run_model(L, m, "onnx", path, dir, options, report);
}

/* What only a comprehension has. */
static void refuse_def(tarn_ctx *cx, const char *path, const tarn_model_options *o) {
  if (o && (o->def || o->allow_copies))
    tarn_raise(cx, TARN_USAGE, "%s: %s is for tensor comprehensions, NAME.tc", path,
               o->def ? "--def" : "--allow-copies");
}

/* ---- sources ---- */
tarn_source *tarn_source_open(tarn_ctx *cx, const char *path, const char *text, size_t n) {
  tarn_source *s = TARN_NEW(cx, tarn_source);
  *s = (tarn_source){.cx = cx, .path = path, .text = text, .n = n};
  if (text) return s;
  if (ends(path, ".tc")) s->text = tarn_read_file(cx, path, &s->n);
  else if (!ends(path, ".tarn") && !ends(path, ".term")) {
    whole_file w = read_model(cx, path);
    s->onnx = w.model, s->format = w.format;
  }
  s->dir = tarn_onnx_folder(cx, path);
  return s;
}
tarn_source *tarn_source_onnx(tarn_ctx *cx, const void *bytes, size_t n, const char *name) {
  tarn_source *s = TARN_NEW(cx, tarn_source);
  *s = (tarn_source){.cx = cx, .path = name};
  s->onnx = unpacked(cx, bytes, n, name, NULL, &s->format);
  return s;
}
/* Programs and terms: all is fixed. */
static tarn_program *load_fixed(tarn_lang *L, const char *path, const tarn_model_options *options,
                                tarn_model_report *report) {
  bool program = ends(path, ".tarn");
  if (options && options->nshape)
    tarn_raise(tarn_lang_ctx(L), TARN_BAD_INPUT, "%s: --shape %s: the shapes of a term are fixed",
               path, options->shape[0].name);
  if (report) *report = (tarn_model_report){.format = program ? "tarn" : "term", .producer = ""};
  tarn_program *p = program ? load_program(L, path) : load_term(L, path);
  if (options && options->nset) im_set_inputs(p, path, options);
  return p;
}
static tarn_program *load_source(tarn_lang *L, const tarn_source *s,
                                 const tarn_model_options *options, tarn_model_report *report) {
  if (s->text) return tarn_comprehension(L, s->text, s->n, s->path, options, report);
  refuse_def(tarn_lang_ctx(L), s->path, options);
  if (s->onnx) return run_model(L, s->onnx, s->format, s->path, s->dir, options, report);
  return load_fixed(L, s->path, options, report);
}
tarn_program *tarn_source_load(tarn_lang *L, const tarn_source *s,
                               const tarn_model_options *options, tarn_model_report *report) {
  tarn_program *p = load_source(L, s, options, report);
  if (options) im_last_rows(p, s->path, options);
  return p;
}
static bool is_parameter(const tarn_source *s, const char *def, const char *name) {
  const tc_def *d = tc_chosen(tc_read(s->cx, s->text, s->n, s->path), def);
  for (uint32_t i = 0; i < d->nparam; i++)
    if (d->param[i].n && tarn_is_called(s->cx, name, d->param[i].of.name)) return true;
  return false;
}
bool tarn_source_has_input(const tarn_source *s, const tarn_model_options *options,
                           const char *name) {
  const Onnx__GraphProto *g = s->onnx ? s->onnx->graph : NULL;
  if (s->text) return is_parameter(s, options ? options->def : NULL, name);
  for (size_t i = 0; g && i < g->n_input; i++)
    if (tarn_is_called(s->cx, name, g->input[i]->name ? g->input[i]->name : "")) return true;
  return false;
}
tarn_program *tarn_model_load(tarn_lang *L, const char *path, const tarn_model_options *options,
                              tarn_model_report *report) {
  return tarn_source_load(L, tarn_source_open(tarn_lang_ctx(L), path, NULL, 0), options, report);
}
