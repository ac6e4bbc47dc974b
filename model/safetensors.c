/* safetensors: weights that lie beside a graph of ONNX.  External data of such a file may name
 * where its bytes are, as of any other; without an offset, the tensor of the initializer's name is
 * meant. The head of the file, JSON behind its length in 8 bytes, says where that begins and ends.
 *
 * Source: https://github.com/huggingface/safetensors, "Format"; its limit of the head. */
#define _GNU_SOURCE
#include "model/import.h"
#include "model/onnx.h"
#include <string.h>
#include <yajl/yajl_parse.h>

enum { LARGEST_HEAD = 100000000 };
/* Types by their names there. */
static const struct {
  const char *name;
  int32_t onnx;
} dtypes[] = {{"F64", 11}, {"F32", 1}, {"F16", 10}, {"BF16", 16},    {"I64", 7},
              {"I32", 6},  {"I16", 5}, {"I8", 3},   {"U64", 13},     {"U32", 12},
              {"U16", 4},  {"U8", 2},  {"BOOL", 9}, {"F8_E4M3", 17}, {"F8_E5M2", 19}};

typedef struct entry {
  const char *dtype;
  uint32_t n, nend;
  int64_t dim[TARN_MAX_DIMS], end[2]; /* where its bytes begin and end, behind the head */
} entry;
typedef enum field { OTHER, DTYPE, SHAPE, OFFSETS } field;
struct im_safetensors {
  tarn_ctx *cx;
  const char *location, *what;
  int64_t data; /* what the offsets are counted from */
  tarn_intern *names;
  TARN_VEC(entry) tensor;
  uint32_t depth;
  field field;
  const char *wrong;
  struct im_safetensors *next;
};

/* ---------------------------------------------------------------- the head */

static entry *last(im_safetensors *f) { return &f->tensor.p[f->tensor.n - 1]; }

static int refuse(im_safetensors *f, const char *why) {
  if (!f->wrong) f->wrong = why;
  return 0;
}

static int begin(void *user) {
  im_safetensors *f = user;
  f->depth++;
  return 1;
}
/* The head is an object of objects. */
static int begin_list(void *user) {
  im_safetensors *f = user;
  return f->depth < 2 ? refuse(f, "a list where an object belongs") : begin(user);
}
static int finish(void *user) {
  im_safetensors *f = user;
  f->depth--;
  return 1;
}

static int key(void *user, const unsigned char *text, size_t n) {
  static const char *const names[] = {
      [DTYPE] = "dtype", [SHAPE] = "shape", [OFFSETS] = "data_offsets"};
  im_safetensors *f = user;
  f->field = OTHER;
  if (f->depth == 1) {
    if (tarn_intern_add(f->names, text, n) != f->tensor.n) return refuse(f, "a name occurs twice");
    tarn_push(f->cx, &f->tensor, (entry){0});
  }
  for (uint32_t i = DTYPE; f->depth == 2 && i <= OFFSETS; i++)
    if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0) f->field = (field)i;
  return 1;
}

static int string(void *user, const unsigned char *text, size_t n) {
  im_safetensors *f = user;
  if (f->depth == 2 && f->field == DTYPE)
    last(f)->dtype = tarn_strndup(f->cx, (const char *)text, n);
  return 1;
}

static int integer(void *user, long long v) {
  im_safetensors *f = user;
  entry *e = f->tensor.n ? last(f) : NULL;
  if (!e || f->depth != 3) return 1;
  if (v < 0) return refuse(f, "a negative number");
  if (f->field == SHAPE && e->n == TARN_MAX_DIMS) return refuse(f, "a tensor of too many dims");
  if (f->field == OFFSETS && e->nend == 2) return refuse(f, "more than two offsets");
  if (f->field == SHAPE) e->dim[e->n++] = v;
  if (f->field == OFFSETS) e->end[e->nend++] = v;
  return 1;
}

static void drop(void *handle) { yajl_free(handle); }

typedef struct head {
  im_safetensors *f;
  const char *dir;
} head;

static void read_head(tarn_ctx *cx, void *arg) {
  static const yajl_callbacks calls = {.yajl_integer = integer,
                                       .yajl_string = string,
                                       .yajl_start_map = begin,
                                       .yajl_map_key = key,
                                       .yajl_end_map = finish,
                                       .yajl_start_array = begin_list,
                                       .yajl_end_array = finish};
  const head *h = arg;
  im_safetensors *f = h->f;
  size_t n;
  uint64_t length = 0;
  const uint8_t *p = im_external(cx, h->dir, f->location, 0, 8, &n, f->what);
  for (unsigned i = 0; i < 8; i++) length |= (uint64_t)p[i] << (8 * i);
  if (length > LARGEST_HEAD)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %s has a head of more than %d bytes", f->what, f->location,
               LARGEST_HEAD);
  p = im_external(cx, h->dir, f->location, 8, (int64_t)length, &n, f->what);
  f->data = 8 + (int64_t)length;
  yajl_handle json = yajl_alloc(&calls, NULL, f);
  if (!json) tarn_raise(cx, TARN_MEMORY, "%s: out of memory", f->what);
  tarn_defer(cx, drop, json);
  bool fine = yajl_parse(json, p, n) == yajl_status_ok &&
              yajl_complete_parse(json) == yajl_status_ok && !f->wrong;
  if (!fine)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: the head of %s is not one of safetensors: %s", f->what,
               f->location, f->wrong ? f->wrong : "no JSON of that kind");
}

static im_safetensors *file_at(im *m, const char *location, const char *what) {
  im_safetensors *f = m->safetensors;
  while (f && strcmp(f->location, location) != 0) f = f->next;
  if (f) return f;
  f = TARN_NEW(m->cx, im_safetensors);
  *f = (im_safetensors){.cx = m->cx, .location = location, .what = what, .next = m->safetensors};
  f->names = tarn_intern_new(m->cx);
  head h = {f, m->dir};
  tarn_status st = tarn_protect(m->cx, read_head, &h);
  if (st != TARN_OK) tarn_reraise(m->cx, st);
  return m->safetensors = f;
}

/* ---------------------------------------------------------------- initializers */

static const char *value_of(const Onnx__TensorProto *t, const char *name) {
  for (size_t i = 0; i < t->n_external_data; i++)
    if (strcmp(tarn_onnx_text(t->external_data[i]->key), name) == 0)
      return tarn_onnx_text(t->external_data[i]->value);
  return NULL;
}

static void set_value(tarn_ctx *cx, Onnx__TensorProto *t, const char *name, int64_t v) {
  Onnx__StringStringEntryProto *e = TARN_NEW(cx, Onnx__StringStringEntryProto);
  Onnx__StringStringEntryProto **all =
      TARN_ARRAY(cx, Onnx__StringStringEntryProto *, t->n_external_data + 1);
  onnx__string_string_entry_proto__init(e);
  e->key = tarn_strdup(cx, name);
  e->value = tarn_format(cx, "%lld", (long long)v);
  for (size_t i = 0; i < t->n_external_data; i++) all[i] = t->external_data[i];
  all[t->n_external_data++] = e;
  t->external_data = all;
}

static bool same_type(const entry *e, const Onnx__TensorProto *t) {
  int32_t onnx = 0;
  for (size_t i = 0; e->dtype && i < sizeof dtypes / sizeof *dtypes; i++)
    if (strcmp(dtypes[i].name, e->dtype) == 0) onnx = dtypes[i].onnx;
  bool same = onnx == t->data_type && e->n == t->n_dims;
  for (uint32_t i = 0; same && i < e->n; i++) same = e->dim[i] == t->dims[i];
  return same;
}

void im_find_safetensors(im *m, Onnx__TensorProto *t, const char *what) {
  const char *location = value_of(t, "location"), *name = tarn_onnx_text(t->name);
  const char *ending = location ? strrchr(location, '.') : NULL;
  bool external =
      t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  if (!external || !ending || strcmp(ending, ".safetensors") != 0 || value_of(t, "offset")) return;
  im_safetensors *f = file_at(m, location, what);
  uint32_t i = tarn_intern_find(f->names, name, strlen(name));
  if (i == TARN_NONE)
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: %s has no tensor of that name", what, location);
  const entry *e = &f->tensor.p[i];
  if (!same_type(e, t))
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: in %s it has another type or other dims", what,
               location);
  int64_t at;
  if (e->nend != 2 || e->end[0] > e->end[1] || __builtin_add_overflow(f->data, e->end[0], &at))
    tarn_raise(m->cx, TARN_BAD_INPUT, "%s: %s does not say where it lies", what, location);
  set_value(m->cx, t, "offset", at);
  set_value(m->cx, t, "length", e->end[1] - e->end[0]);
}
