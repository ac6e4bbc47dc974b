/* NumPy's .npy files. Source: numpy/lib/format.py, "Format Version 1.0" to 3.0:
 * "\x93NUMPY", major, minor, header length (2 bytes, from 2.0 on 4), a Python dict as text, then
 * the data. */
#include "access/access.h"
#include <string.h>

static const struct {
  const char *code;
  tarn_dtype t;
} codes[] = {
    {"f4", TARN_F32}, {"f8", TARN_F64},  {"f2", TARN_F16},  {"i1", TARN_I8},  {"u1", TARN_U8},
    {"i2", TARN_I16}, {"u2", TARN_U16},  {"i4", TARN_I32},  {"u4", TARN_U32}, {"i8", TARN_I64},
    {"u8", TARN_U64}, {"b1", TARN_BOOL}, {"V2", TARN_BF16}, /* as ml_dtypes saves it */
};

typedef struct npy {
  tarn_ctx *cx;
  const char *name;
  const char *p, *end; /* the header's text */
  tarn_dtype dtype;
  bool swap, fortran;
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS];
} npy;

_Noreturn static void broken(const npy *f, const char *why) {
  tarn_raise(f->cx, TARN_BAD_INPUT, "%s: not a .npy file: %s", f->name, why);
}

static void blank(npy *f) {
  while (f->p < f->end && (*f->p == ' ' || *f->p == '\n' || *f->p == '\t')) f->p++;
}

static bool accept(npy *f, char c) {
  blank(f);
  if (f->p == f->end || *f->p != c) return false;
  f->p++;
  return true;
}

static void expect(npy *f, char c, const char *why) {
  if (!accept(f, c)) broken(f, why);
}

static size_t quoted(npy *f, const char **text) {
  blank(f);
  if (f->p == f->end || (*f->p != '\'' && *f->p != '"'))
    broken(f, "a quoted word is missing in the header");
  char mark = *f->p++;
  *text = f->p;
  while (f->p < f->end && *f->p != mark) f->p++;
  if (f->p == f->end) broken(f, "an open quote in the header");
  return (size_t)(f->p++ - *text);
}

static bool word_is(const char *s, size_t n, const char *word) {
  return n == strlen(word) && memcmp(s, word, n) == 0;
}

static void read_dtype(npy *f) {
  const char *s;
  size_t n = quoted(f, &s);
  bool order = n && strchr("<>|=", s[0]);
  f->swap = n && s[0] == '>';
  for (size_t i = 0; order && i < sizeof codes / sizeof *codes; i++)
    if (word_is(s + 1, n - 1, codes[i].code)) {
      f->dtype = codes[i].t;
      return;
    }
  tarn_raise(f->cx, TARN_BAD_INPUT, "%s: arrays of type '%.*s' are not supported", f->name,
             n < 20 ? (int)n : 20, s);
}

static void read_order(npy *f) {
  blank(f);
  size_t left = (size_t)(f->end - f->p);
  f->fortran = left >= 4 && memcmp(f->p, "True", 4) == 0;
  if (!f->fortran && (left < 5 || memcmp(f->p, "False", 5) != 0))
    broken(f, "fortran_order is neither True nor False");
  f->p += f->fortran ? 4 : 5;
}

static int64_t read_extent(npy *f) {
  blank(f);
  if (f->p == f->end || *f->p < '0' || *f->p > '9') broken(f, "a dim is not a number");
  int64_t v = 0;
  for (; f->p < f->end && *f->p >= '0' && *f->p <= '9'; f->p++)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *f->p - '0', &v))
      broken(f, "a dim is too large");
  if (f->p < f->end && *f->p == 'L') f->p++; /* Python 2 wrote these */
  return v;
}

static void read_dims(npy *f) {
  expect(f, '(', "shape is not a tuple");
  while (!accept(f, ')')) {
    if (f->n == TARN_MAX_DIMS) broken(f, "too many dims");
    f->dim[f->n++] = read_extent(f);
    if (!accept(f, ',')) {
      expect(f, ')', "shape is not a tuple");
      return;
    }
  }
}

static void read_dict(npy *f) {
  static const struct {
    const char *key;
    void (*read)(npy *);
  } keys[] = {{"descr", read_dtype}, {"fortran_order", read_order}, {"shape", read_dims}};
  unsigned seen = 0;
  expect(f, '{', "the header is not a dict");
  while (!accept(f, '}')) {
    const char *s;
    size_t n = quoted(f, &s);
    expect(f, ':', "the header is not a dict");
    unsigned k = 0;
    while (k < 3 && !word_is(s, n, keys[k].key)) k++;
    if (k == 3 || (seen & (1u << k))) broken(f, "the header has an unexpected key");
    seen |= 1u << k;
    keys[k].read(f);
    if (!accept(f, ',')) {
      expect(f, '}', "the header is not a dict");
      break;
    }
  }
  if (seen != 7) broken(f, "the header lacks a key");
}

/* Bytes before the data, after reading the header. */
static size_t read_header(npy *f, const uint8_t *p, size_t n) {
  static const char magic[] = "\x93NUMPY";
  if (n < 10 || memcmp(p, magic, 6) != 0) broken(f, "wrong magic number");
  if (p[6] < 1 || p[6] > 3) broken(f, "unknown version");
  size_t at = p[6] == 1 ? 10 : 12;
  if (n < at) broken(f, "truncated");
  size_t len = (size_t)p[8] | (size_t)p[9] << 8;
  if (at == 12) len |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
  if (len > n - at) broken(f, "truncated");
  f->p = (const char *)p + at;
  f->end = f->p + len;
  read_dict(f);
  return at + len;
}

static size_t count_of(const npy *f) {
  size_t count = tarn_dtype_size(f->dtype);
  bool overflow = false, zero = false;
  for (uint32_t i = 0; i < f->n; i++) {
    zero |= f->dim[i] == 0;
    overflow |= __builtin_mul_overflow(count, (size_t)(f->dim[i] ? f->dim[i] : 1), &count);
  }
  if (overflow || count > SIZE_MAX / 16) broken(f, "the product of its dims overflows");
  return zero ? 0 : count / tarn_dtype_size(f->dtype);
}

static void put(const npy *f, uint8_t *to, const uint8_t *from) {
  size_t size = tarn_dtype_size(f->dtype);
  for (size_t i = 0; i < size; i++) to[i] = from[f->swap ? size - 1 - i : i];
  if (f->dtype == TARN_BOOL) to[0] = to[0] != 0;
}

/* Column-major to row-major: walks the target in order and keeps the source's index per dim. */
static void transpose(const npy *f, uint8_t *to, const uint8_t *from, size_t count) {
  size_t size = tarn_dtype_size(f->dtype), stride[TARN_MAX_DIMS], at = 0;
  int64_t index[TARN_MAX_DIMS] = {0};
  for (uint32_t i = 0; i < f->n; i++) stride[i] = i ? stride[i - 1] * (size_t)f->dim[i - 1] : 1;
  for (size_t k = 0; k < count; k++) {
    put(f, to + k * size, from + at * size);
    for (uint32_t i = f->n; i-- > 0;) {
      at += stride[i];
      if (++index[i] < f->dim[i]) break;
      at -= stride[i] * (size_t)f->dim[i];
      index[i] = 0;
    }
  }
}

tarn_tensor *tarn_npy_read_bytes(tarn_ctx *cx, const void *bytes, size_t n, const char *name) {
  npy f = {.cx = cx, .name = name};
  size_t at = read_header(&f, bytes, n), count = count_of(&f), size = tarn_dtype_size(f.dtype);
  if (count * size != n - at)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: its dims need %zu bytes of %s, the file gives %zu", name,
               count * size, tarn_dtype_name(f.dtype), n - at);
  tarn_tensor *t = tarn_tensor_new(cx, f.dtype, f.n, f.dim);
  const uint8_t *from = (const uint8_t *)bytes + at;
  if (f.fortran && f.n > 1) transpose(&f, t->data, from, count);
  else if (f.swap || f.dtype == TARN_BOOL)
    for (size_t k = 0; k < count; k++) put(&f, (uint8_t *)t->data + k * size, from + k * size);
  else if (count) memcpy(t->data, from, count * size);
  return t;
}

/* bfloat16 has none: NumPy alone would read two opaque bytes. */
static const char *code_of(tarn_dtype t) {
  if (t == TARN_BF16) return NULL;
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].t == t) return codes[i].code;
  return NULL;
}

static void write_header(tarn_buf *b, const char *code, const tarn_tensor *t) {
  tarn_buf h = {.cx = b->cx};
  tarn_buf_fmt(&h, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
               code[1] == '1' ? '|' : '<', code);
  for (uint32_t i = 0; i < t->n; i++)
    tarn_buf_fmt(&h, i ? " %lld," : "%lld,", (long long)t->dim[i]);
  if (t->n > 1) h.n--; /* one comma is needed for a tuple of one only */
  tarn_buf_str(&h, "), }");
  while ((10 + h.n + 1) % 64) tarn_buf_add(&h, " ", 1);
  tarn_buf_add(&h, "\n", 1);
  char head[10] = {(char)0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(h.n & 0xff), (char)(h.n >> 8)};
  tarn_buf_add(b, head, sizeof head);
  tarn_buf_add(b, h.p, h.n);
}

void tarn_npy_write_bytes(tarn_buf *b, const tarn_tensor *t) {
  const char *code = code_of(t->dtype);
  int64_t count = tarn_tensor_count(t);
  write_header(b, code ? code : "f4", t);
  if (code) {
    tarn_buf_add(b, t->data, (size_t)count * tarn_dtype_size(t->dtype));
    return;
  }
  for (int64_t i = 0; i < count; i++) { /* widens exactly */
    float x = (float)tarn_tensor_get(t, i).d;
    tarn_buf_add(b, (const char *)&x, sizeof x);
  }
}

tarn_tensor *tarn_tensor_as(tarn_ctx *cx, tarn_tensor *t, tarn_dtype want) {
  if (want != TARN_BF16 || t->dtype != TARN_F32) return t;
  tarn_tensor *r = tarn_tensor_new(cx, want, t->n, t->dim);
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++)
    tarn_tensor_set(r, i, tarn_tensor_get(t, i));
  return r;
}
