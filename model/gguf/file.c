/* The container: numbers and texts by key, and where tensors lie.  Nothing in it is trusted: every
 * count is compared with the bytes that are left before anything is made of it. */
#include "model/gguf/gguf.h"
#include <string.h>

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64, KINDS };
static const uint8_t sizes[KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { LEAST_KEY = 8 + 4 + 1, LEAST_TENSOR = 8 + 4 + 8 + 4 + 8, LONGEST_NAME = 65535 };

typedef struct reader {
  gguf_file *f;
  const uint8_t *p;
  const char *what; /* is being read */
} reader;

_Noreturn static void broken(const reader *r, const char *why) {
  tarn_raise(r->f->cx, TARN_BAD_INPUT, "%s: not a GGUF file that can be read: %s: %s", r->f->name,
             r->what, why);
}

static uint64_t left(const reader *r) { return (uint64_t)(r->f->end - r->p); }

static const uint8_t *take(reader *r, uint64_t n) {
  if (n > left(r)) broken(r, "the file ends before it does");
  const uint8_t *at = r->p;
  r->p += n;
  return at;
}

/* Little-endian, as the file is. */
static uint64_t load(const uint8_t *p, unsigned bytes) {
  uint64_t v = 0;
  for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}
static uint32_t u32(reader *r) { return (uint32_t)load(take(r, 4), 4); }
static uint64_t u64(reader *r) { return load(take(r, 8), 8); }

static const char *name(reader *r) {
  uint64_t n = u64(r);
  const uint8_t *p = take(r, n);
  if (n > LONGEST_NAME) broken(r, "a name of more than 65,535 bytes");
  if (memchr(p, 0, (size_t)n)) broken(r, "a name with a byte 0");
  return tarn_strndup(r->f->cx, (const char *)p, (size_t)n);
}

/* ---------------------------------------------------------------- keys */

static void skip_items(reader *r, uint32_t type, uint64_t count) {
  if (type == STRING) {
    if (count > left(r) / 8) broken(r, "more texts than the file has bytes for");
    for (uint64_t i = 0; i < count; i++) (void)take(r, u64(r));
    return;
  }
  if (type >= KINDS || type == ARRAY) broken(r, "a value of unknown type");
  if (count > left(r) / sizes[type]) broken(r, "more items than the file has bytes for");
  (void)take(r, count * sizes[type]);
}

static void read_key(reader *r, gguf_key *k) {
  r->what = "a key";
  k->name = name(r);
  r->what = tarn_shown(r->f->cx, k->name);
  k->type = u32(r);
  k->array = k->type == ARRAY;
  k->count = 1;
  if (k->array) {
    k->type = u32(r);
    k->count = u64(r);
  }
  k->at = r->p;
  skip_items(r, k->type, k->count);
}

/* Makes the number of a name, which must be new. */
static void add_name(reader *r, tarn_intern *t, const char *text, uint32_t i) {
  if (tarn_intern_add(t, text, strlen(text)) != i) broken(r, "the name occurs twice");
}

static void read_keys(reader *r, uint64_t count) {
  gguf_file *f = r->f;
  r->what = "its keys";
  if (count > left(r) / LEAST_KEY) broken(r, "more than the file has bytes for");
  f->key = TARN_ARRAY(f->cx, gguf_key, count + 1);
  f->keys = tarn_intern_new(f->cx);
  for (; f->nkey < count; f->nkey++) {
    read_key(r, &f->key[f->nkey]);
    add_name(r, f->keys, f->key[f->nkey].name, f->nkey);
  }
}

const gguf_key *gguf_key_find(const gguf_file *f, const char *text) {
  uint32_t i = tarn_intern_find(f->keys, text, strlen(text));
  return i == TARN_NONE ? NULL : &f->key[i];
}

bool gguf_is_text(const gguf_key *k) { return k->type == STRING; }
bool gguf_is_real(const gguf_key *k) { return k->type == F32 || k->type == F64; }

bool gguf_whole(const gguf_key *k, uint64_t i, int64_t *v) {
  unsigned size = k->type < KINDS ? sizes[k->type] : 0;
  bool is_signed = k->type == I8 || k->type == I16 || k->type == I32;
  if (!size || gguf_is_real(k)) return false;
  uint64_t u = load(k->at + i * size, size);
  if (is_signed && u >> (8 * size - 1)) u |= ~(uint64_t)0 << (8 * size - 1);
  if (k->type == U64 && u > INT64_MAX) return false;
  *v = (int64_t)u;
  return true;
}

double gguf_real(const gguf_key *k, uint64_t i) {
  int64_t whole = 0;
  float f;
  double d;
  if (k->type == F32) {
    memcpy(&f, k->at + 4 * i, sizeof f);
    return (double)f;
  }
  if (k->type == F64) {
    memcpy(&d, k->at + 8 * i, sizeof d);
    return d;
  }
  return gguf_whole(k, i, &whole) ? (double)whole : 0;
}

const char *gguf_text(const gguf_file *f, const gguf_key *k) {
  if (!gguf_is_text(k) || k->array) return "";
  return tarn_strndup(f->cx, (const char *)k->at + 8, (size_t)load(k->at, 8));
}

/* ---------------------------------------------------------------- tensors */

static void read_dims(reader *r, gguf_tensor *t) {
  int64_t count = 1;
  t->n = u32(r);
  if (t->n < 1 || t->n > GGUF_MAX_DIMS) broken(r, "it does not have 1 to 4 dims");
  for (uint32_t i = t->n; i-- > 0;) {
    uint64_t d = u64(r);
    if (d < 1 || d > INT64_MAX || __builtin_mul_overflow(count, (int64_t)d, &count))
      broken(r, "the product of its dims is no size");
    t->dim[i] = (int64_t)d;
  }
}

static void read_type(reader *r, gguf_tensor *t) {
  uint32_t code = u32(r);
  const gguf_type *type = gguf_type_find(code);
  if (!type || !type->elements)
    broken(r, tarn_format(r->f->cx, "elements of type %s%u are not supported",
                          type ? tarn_format(r->f->cx, "%s, ", type->name) : "", code));
  if (t->dim[t->n - 1] % type->elements)
    broken(r, tarn_format(r->f->cx, "rows of %lld elements are not in blocks of %u, as %s is",
                          (long long)t->dim[t->n - 1], type->elements, type->name));
  t->type = type;
}

/* Where its bytes begin is known only when all are read. */
static uint64_t read_tensor(reader *r, gguf_tensor *t) {
  r->what = "a tensor";
  t->name = name(r);
  r->what = tarn_format(r->f->cx, "tensor %s", tarn_shown(r->f->cx, t->name));
  read_dims(r, t);
  read_type(r, t);
  return u64(r);
}

uint64_t gguf_blocks(const gguf_tensor *t) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < t->n; i++) count *= (uint64_t)t->dim[i];
  return count / t->type->elements;
}

static void place(reader *r, gguf_tensor *t, uint64_t offset, uint64_t alignment) {
  r->what = tarn_format(r->f->cx, "tensor %s", tarn_shown(r->f->cx, t->name));
  if (offset % alignment) broken(r, "its offset is not aligned");
  if (offset > left(r)) broken(r, "its offset lies beyond the end of the file");
  if (gguf_blocks(t) > (left(r) - offset) / t->type->bytes)
    broken(r, "the file ends before it does");
  t->data = r->p + offset;
}

/* What the offsets are counted from. */
static uint64_t start_of_data(reader *r) {
  const gguf_key *k = gguf_key_find(r->f, "general.alignment");
  int64_t alignment = 32;
  r->what = "general.alignment";
  if (k && (k->array || !gguf_whole(k, 0, &alignment))) broken(r, "it is no number");
  if (alignment < 1 || alignment > 1 << 20 || (alignment & (alignment - 1)))
    broken(r, "it is no power of two up to 2^20");
  uint64_t at = (uint64_t)(r->p - r->f->bytes), by = (uint64_t)alignment;
  uint64_t more = (by - at % by) % by;
  r->p = more > left(r) ? r->f->end : r->p + more;
  return by;
}

static void read_tensors(reader *r, uint64_t count) {
  gguf_file *f = r->f;
  r->what = "its tensors";
  if (count > left(r) / LEAST_TENSOR) broken(r, "more than the file has bytes for");
  f->tensor = TARN_ARRAY(f->cx, gguf_tensor, count + 1);
  f->tensors = tarn_intern_new(f->cx);
  uint64_t *offset = TARN_ARRAY(f->cx, uint64_t, count + 1);
  for (; f->ntensor < count; f->ntensor++) {
    offset[f->ntensor] = read_tensor(r, &f->tensor[f->ntensor]);
    add_name(r, f->tensors, f->tensor[f->ntensor].name, f->ntensor);
  }
  uint64_t alignment = start_of_data(r);
  for (uint32_t i = 0; i < f->ntensor; i++) place(r, &f->tensor[i], offset[i], alignment);
}

const gguf_tensor *gguf_tensor_find(const gguf_file *f, const char *text) {
  uint32_t i = tarn_intern_find(f->tensors, text, strlen(text));
  return i == TARN_NONE ? NULL : &f->tensor[i];
}

/* ---------------------------------------------------------------- the whole file */

bool gguf_is(const void *bytes, size_t n) { return n >= 4 && memcmp(bytes, "GGUF", 4) == 0; }

static void check_version(reader *r) {
  uint32_t version = u32(r);
  if (version == 0 || version & 0xffff0000) broken(r, "its numbers are big-endian");
  if (version < 2 || version > 3)
    broken(r, tarn_format(r->f->cx, "version %u; 2 and 3 are known", version));
}

gguf_file *gguf_read(tarn_ctx *cx, const void *bytes, size_t n, const char *text) {
  gguf_file *f = TARN_NEW(cx, gguf_file);
  *f = (gguf_file){.cx = cx, .name = tarn_shown(cx, text), .bytes = bytes};
  f->end = f->bytes + n;
  reader r = {f, f->bytes, "its head"};
  if (!gguf_is(bytes, n)) broken(&r, "it does not begin with GGUF");
  (void)take(&r, 4);
  check_version(&r);
  uint64_t tensors = u64(&r), keys = u64(&r);
  read_keys(&r, keys);
  read_tensors(&r, tensors);
  return f;
}
