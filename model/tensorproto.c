/* ONNX TensorProto and tarn_tensor, both ways; external data. */
#define _GNU_SOURCE
#include "model/import.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ONNX's numbers of the types; source: onnx.proto, TensorProto.DataType. */
static const struct {
  const char *name;
  int tarn;
} dtypes[] = {
    {"undefined", -1},       {"float", TARN_F32},  {"uint8", TARN_U8},    {"int8", TARN_I8},
    {"uint16", TARN_U16},    {"int16", TARN_I16},  {"int32", TARN_I32},   {"int64", TARN_I64},
    {"string", -1},          {"bool", TARN_BOOL},  {"float16", TARN_F16}, {"double", TARN_F64},
    {"uint32", TARN_U32},    {"uint64", TARN_U64}, {"complex64", -1},     {"complex128", -1},
    {"bfloat16", TARN_BF16},
};
#define NDTYPES ((int32_t)(sizeof dtypes / sizeof *dtypes))

bool im_dtype(int32_t onnx, tarn_dtype *t) {
  if (onnx < 0 || onnx >= NDTYPES || dtypes[onnx].tarn < 0) return false;
  *t = (tarn_dtype)dtypes[onnx].tarn;
  return true;
}

bool im_carrier(int32_t onnx, tarn_dtype *t, int32_t *stored) {
  *stored = im_stored_dtype(onnx, t) ? onnx : 0;
  return *stored || im_dtype(onnx, t);
}

int32_t im_onnx_dtype(tarn_dtype t) {
  for (int32_t i = 0; i < NDTYPES; i++)
    if (dtypes[i].tarn == (int)t) return i;
  return 0;
}

const char *im_onnx_dtype_name(int32_t onnx) {
  const char *stored = im_stored_name(onnx);
  if (stored) return stored;
  return onnx < 0 || onnx >= NDTYPES ? "unknown" : dtypes[onnx].name;
}

/* ---------------------------------------------------------------- external data */

static void close_fd(void *fd) { close(*(int *)fd); }
static void free_string(void *s) { free(s); }

/* A relative path without `..`; where it leads through links is checked by the caller. */
static bool plain_path(const char *s) {
  if (!*s || *s == '/' || strchr(s, '\\')) return false;
  for (const char *p = s; p; p = strchr(p, '/')) {
    p += *p == '/';
    if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || !p[2])) return false;
  }
  return true;
}

static char *real(tarn_ctx *cx, const char *path, const char *what) {
  char *r = realpath(path, NULL);
  if (!r) tarn_raise(cx, TARN_BAD_INPUT, "%s: external data %s: %s", what, path, strerror(errno));
  tarn_defer(cx, free_string, r);
  return r;
}

static int open_inside(tarn_ctx *cx, const char *dir, const char *location, const char *what) {
  if (!plain_path(location))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: external data '%s' is not a path inside the model's folder",
               what, location);
  const char *root = real(cx, *dir ? dir : ".", what);
  const char *path = real(cx, tarn_format(cx, "%s/%s", root, location), what);
  size_t n = strlen(root);
  if (strncmp(root, path, n) != 0 || (path[n] != '/' && n != 1))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: external data '%s' leads out of the model's folder", what,
               location);
  int *fd = TARN_NEW(cx, int);
  *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (*fd < 0) tarn_raise(cx, TARN_IO, "%s: external data %s: %s", what, path, strerror(errno));
  tarn_defer(cx, close_fd, fd);
  return *fd;
}

static void read_at(tarn_ctx *cx, int fd, char *to, size_t n, int64_t offset, const char *what) {
  for (size_t done = 0; done < n;) {
    ssize_t k = pread(fd, to + done, n - done, (off_t)(offset + (int64_t)done));
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) tarn_raise(cx, TARN_IO, "%s: external data: %s", what, strerror(errno));
    if (k == 0) tarn_raise(cx, TARN_IO, "%s: external data: the file became shorter", what);
    done += (size_t)k;
  }
}

typedef struct region {
  const char *dir, *location, *what;
  int64_t offset, length;
  char *data;
} region;

static void read_region(tarn_ctx *cx, void *arg) {
  region *r = arg;
  int fd = open_inside(cx, r->dir, r->location, r->what);
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: external data '%s' is not a regular file", r->what,
               r->location);
  int64_t size = (int64_t)st.st_size;
  if (r->length < 0) r->length = size - r->offset;
  if (r->offset < 0 || r->offset > size || r->length < 0 || r->length > size - r->offset)
    tarn_raise(cx, TARN_BAD_INPUT,
               "%s: external data '%s' has %lld bytes, %lld from %lld are asked for", r->what,
               r->location, (long long)size, (long long)r->length, (long long)r->offset);
  r->data = tarn_new_aligned(cx, (size_t)r->length + 1, 64);
  read_at(cx, fd, r->data, (size_t)r->length, r->offset, r->what);
}

/* Protected by itself, so that the file is closed at once. */
void *im_external(tarn_ctx *cx, const char *dir, const char *location, int64_t offset,
                  int64_t length, size_t *n, const char *what) {
  if (!dir) tarn_raise(cx, TARN_BAD_INPUT, "%s: external data is not allowed here", what);
  region r = {dir, location, what, offset, length, NULL};
  tarn_status st = tarn_protect(cx, read_region, &r);
  if (st != TARN_OK) tarn_reraise(cx, st);
  *n = (size_t)r.length;
  return r.data;
}

static int64_t parse_number(tarn_ctx *cx, const char *text, const char *what) {
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (errno || end == text || *end || v < 0)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: external data: '%s' is not a byte count", what, text);
  return v;
}

static void *external_of(tarn_ctx *cx, const Onnx__TensorProto *t, const char *dir, size_t *n,
                         const char *what) {
  const char *location = NULL;
  int64_t offset = 0, length = -1;
  for (size_t i = 0; i < t->n_external_data; i++) {
    const char *key = t->external_data[i]->key, *value = t->external_data[i]->value;
    if (!key || !value) continue;
    if (strcmp(key, "location") == 0) location = value;
    if (strcmp(key, "offset") == 0) offset = parse_number(cx, value, what);
    if (strcmp(key, "length") == 0) length = parse_number(cx, value, what);
  }
  if (!location) tarn_raise(cx, TARN_BAD_INPUT, "%s: external data without a location", what);
  return im_external(cx, dir, location, offset, length, n, what);
}

/* ---------------------------------------------------------------- reading */

/* Where the typed field of a dtype keeps its numbers, and how wide they are there. */
typedef struct field {
  const void *p;
  size_t n, each;
} field;

static field field_of(const Onnx__TensorProto *t, tarn_dtype dt) {
  switch (dt) {
  case TARN_F32: return (field){t->float_data, t->n_float_data, 4};
  case TARN_F64: return (field){t->double_data, t->n_double_data, 8};
  case TARN_I64: return (field){t->int64_data, t->n_int64_data, 8};
  case TARN_U64:
  case TARN_U32: return (field){t->uint64_data, t->n_uint64_data, 8};
  default: return (field){t->int32_data, t->n_int32_data, 4};
  }
}

static void *narrow(tarn_ctx *cx, field f, size_t size) {
  uint8_t *out = tarn_new_aligned(cx, f.n * size + 1, 64);
  for (size_t i = 0; i < f.n; i++) {
    uint64_t v = 0;
    memcpy(&v, (const char *)f.p + i * f.each, f.each);
    memcpy(out + i * size, &v, size); /* little-endian: the low bytes */
  }
  return out;
}

static void *align(tarn_ctx *cx, const void *p, size_t n) {
  if (n && (uintptr_t)p % 64 == 0) return (void *)(uintptr_t)p;
  void *q = tarn_new_aligned(cx, n + 1, 64);
  if (n) memcpy(q, p, n);
  return q;
}

static void *bytes_of(tarn_ctx *cx, const Onnx__TensorProto *t, tarn_dtype dt, const char *dir,
                      size_t *n, const char *what) {
  size_t size = tarn_dtype_size(dt);
  if (t->has_data_location && t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return external_of(cx, t, dir, n, what);
  if (t->has_raw_data) {
    *n = t->raw_data.len;
    return align(cx, t->raw_data.data, *n);
  }
  field f = field_of(t, dt);
  *n = f.n * size;
  return f.each == size ? align(cx, f.p, *n) : narrow(cx, f, size);
}

/* A bool is one byte that is 0 or 1; files may hold others. */
static void tidy_bool(uint8_t *p, size_t n) {
  for (size_t i = 0; i < n; i++) p[i] = p[i] != 0;
}

static size_t dims_of(tarn_ctx *cx, tarn_tensor *r, const Onnx__TensorProto *t, const char *what) {
  if (t->n_dims > TARN_MAX_DIMS)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: %zu dims, at most %d are supported", what, t->n_dims,
               TARN_MAX_DIMS);
  size_t count = 1;
  bool overflow = false, zero = false;
  r->n = (uint32_t)t->n_dims;
  for (uint32_t i = 0; i < r->n; i++) {
    r->dim[i] = t->dims[i];
    if (t->dims[i] < 0)
      tarn_raise(cx, TARN_BAD_INPUT, "%s: dim %u is %lld", what, i, (long long)t->dims[i]);
    zero |= t->dims[i] == 0;
    overflow |= __builtin_mul_overflow(count, (size_t)(t->dims[i] ? t->dims[i] : 1), &count);
  }
  if (overflow || count > SIZE_MAX / 16)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: the product of its dims overflows", what);
  return zero ? 0 : count;
}

tarn_tensor *im_tensor(tarn_ctx *cx, const Onnx__TensorProto *t, const char *dir,
                       const char *what) {
  tarn_tensor *r = TARN_NEW(cx, tarn_tensor);
  int32_t stored;
  if (!im_carrier(t->data_type, &r->dtype, &stored))
    tarn_raise(cx, TARN_BAD_INPUT, "%s: tensors of type %s are not supported", what,
               im_onnx_dtype_name(t->data_type));
  if (t->segment) tarn_raise(cx, TARN_BAD_INPUT, "%s: segmented tensors are not supported", what);
  size_t count = dims_of(cx, r, t, what), n = 0;
  size_t want = stored ? im_stored_bytes(stored, count) : count * tarn_dtype_size(r->dtype);
  void *data = bytes_of(cx, t, r->dtype, dir, &n, what);
  if (n != want)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: its dims need %zu bytes of %s, the file gives %zu", what,
               want, stored ? im_stored_name(stored) : tarn_dtype_name(r->dtype), n);
  if (stored) data = im_stored_unpack(cx, stored, data, count);
  if (r->dtype == TARN_BOOL) tidy_bool(data, n);
  r->data = data;
  return r;
}

tarn_tensor *tarn_tensorproto_read_bytes(tarn_ctx *cx, const void *bytes, size_t n,
                                         const char *name) {
  ProtobufCMessage *m = im_unpack(cx, &onnx__tensor_proto__descriptor, bytes, n, name);
  return im_tensor(cx, (const Onnx__TensorProto *)m, NULL, name);
}

/* ---------------------------------------------------------------- writing */

typedef struct buffer_base {
  ProtobufCBuffer base;
  tarn_buf *b;
} buffer_base;

static void append(ProtobufCBuffer *buffer, size_t n, const uint8_t *p) {
  tarn_buf_add(((buffer_base *)buffer)->b, (const char *)p, n);
}

void im_pack(tarn_buf *b, const ProtobufCMessage *m) {
  buffer_base out = {{append}, b};
  protobuf_c_message_pack_to_buffer(m, &out.base);
}

Onnx__TensorProto *im_tensor_proto(tarn_ctx *cx, const tarn_tensor *t, const char *name) {
  Onnx__TensorProto *m = TARN_NEW(cx, Onnx__TensorProto);
  onnx__tensor_proto__init(m);
  m->n_dims = t->n;
  m->dims = tarn_copy(cx, t->dim, t->n * sizeof *t->dim);
  m->has_data_type = 1;
  m->data_type = im_onnx_dtype(t->dtype);
  m->name = tarn_strdup(cx, name);
  m->has_raw_data = 1;
  m->raw_data.len = tarn_tensor_bytes(t);
  m->raw_data.data = t->data;
  return m;
}

void tarn_tensorproto_write_bytes(tarn_buf *b, const tarn_tensor *t, const char *tensor_name) {
  im_pack(b, &im_tensor_proto(b->cx, t, tensor_name ? tensor_name : "")->base);
}

/* ---------------------------------------------------------------- files, by their ending */
static bool is_npy(const char *path) {
  size_t n = strlen(path);
  return n >= 4 && strcmp(path + n - 4, ".npy") == 0;
}

tarn_tensor *tarn_tensor_read(tarn_ctx *cx, const char *path) {
  size_t n;
  char *p = tarn_read_file(cx, path, &n);
  return is_npy(path) ? tarn_npy_read_bytes(cx, p, n, path)
                      : tarn_tensorproto_read_bytes(cx, p, n, path);
}

tarn_tensor *tarn_tensor_read_as(tarn_ctx *cx, const char *path, tarn_dtype want) {
  return tarn_tensor_as(cx, tarn_tensor_read(cx, path), want);
}

void tarn_tensor_write(tarn_ctx *cx, const char *path, const tarn_tensor *t) {
  tarn_buf b = {.cx = cx};
  if (is_npy(path)) tarn_npy_write_bytes(&b, t);
  else tarn_tensorproto_write_bytes(&b, t, "");
  tarn_write_file(cx, path, b.p, b.n);
}
