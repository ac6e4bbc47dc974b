/* .npz: NumPy's archives, zip files of .npy entries that are stored or deflated.
 *
 * The directory at the end says where everything is; nothing that it says is trusted. Source:
 * PKWARE, APPNOTE.TXT 6.3.10: 4.3.7 local header, 4.3.12 directory, 4.3.16 its end, 4.5.3 sizes of
 * 64 bits (NumPy writes such headers for small entries too). */
#include "model/model.h"
#include <string.h>
#include <zlib.h>

enum { END = 22, ENTRY = 46, LOCAL = 30, MOST_COMMENT = 65535, STORED = 0, DEFLATED = 8 };
enum { MOST_RATIO = 1040 }; /* of what deflate makes of anything: 1,032, and its last block */

typedef struct archive {
  tarn_ctx *cx;
  const char *path;
  const uint8_t *p;
  size_t n;
} archive;
typedef struct member {
  const char *name; /* without .npy */
  uint64_t packed, size, at;
  uint32_t method;
} member;

_Noreturn static void broken(const archive *a, const char *why) {
  tarn_raise(a->cx, TARN_BAD_INPUT, "%s: not an archive of NumPy: %s", a->path, why);
}
static uint64_t little(const uint8_t *p, uint32_t bytes) {
  uint64_t v = 0;
  while (bytes--) v = v << 8 | p[bytes];
  return v;
}

/* ---------------------------------------------------------------- the directory */

static const uint8_t *end_of(const archive *a) {
  size_t first = a->n > END + MOST_COMMENT ? a->n - END - MOST_COMMENT : 0;
  for (size_t at = a->n >= END ? a->n - END + 1 : 0; at-- > first;)
    if (memcmp(a->p + at, "PK\5\6", 4) == 0) return a->p + at;
  broken(a, "no directory at its end");
}
/* Sizes that do not fit in 32 bits stand in an extra field, in this order. */
static void widen(const archive *a, const uint8_t *extra, size_t n, member *m) {
  uint64_t *const field[] = {&m->size, &m->packed, &m->at};
  for (size_t at = 0; at + 4 <= n;) {
    size_t len = little(extra + at + 2, 2);
    if (len > n - at - 4) broken(a, "an extra field is cut");
    if (little(extra + at, 2) != 1) {
      at += 4 + len;
      continue;
    }
    size_t k = at + 4;
    for (int i = 0; i < 3; i++) {
      if (*field[i] != UINT32_MAX) continue;
      if (k + 8 > at + 4 + len) broken(a, "an extra field is cut");
      *field[i] = little(extra + k, 8);
      k += 8;
    }
    return;
  }
}
static size_t read_member(const archive *a, size_t at, member *m) {
  if (at > a->n || a->n - at < ENTRY || memcmp(a->p + at, "PK\1\2", 4) != 0)
    broken(a, "its directory is cut");
  const uint8_t *e = a->p + at;
  size_t name = little(e + 28, 2), extra = little(e + 30, 2), comment = little(e + 32, 2);
  if (name + extra + comment > a->n - at - ENTRY) broken(a, "its directory is cut");
  *m = (member){.method = (uint32_t)little(e + 10, 2),
                .packed = little(e + 20, 4),
                .size = little(e + 24, 4),
                .at = little(e + 42, 4)};
  widen(a, e + ENTRY + name, extra, m);
  size_t shown = name > 4 && !memcmp(e + ENTRY + name - 4, ".npy", 4) ? name - 4 : name;
  m->name = tarn_strndup(a->cx, (const char *)e + ENTRY, shown);
  return at + ENTRY + name + extra + comment;
}
typedef TARN_VEC(member) members;
static members members_of(const archive *a) {
  const uint8_t *end = end_of(a);
  size_t at = little(end + 16, 4), count = little(end + 10, 2);
  members all = {0};
  for (size_t i = 0; i < count; i++) {
    member m;
    at = read_member(a, at, &m);
    tarn_push(a->cx, &all, m);
  }
  return all;
}

/* ---------------------------------------------------------------- one tensor */

static void end_inflate(void *z) { inflateEnd(z); }
static const uint8_t *inflated(const archive *a, const uint8_t *from, const member *m) {
  z_stream *z = TARN_NEW(a->cx, z_stream);
  uint8_t *to = tarn_new_aligned(a->cx, m->size + 1, 64);
  if (m->packed > UINT32_MAX || m->size > UINT32_MAX) broken(a, "an entry is larger than 4 GiB");
  if (inflateInit2(z, -MAX_WBITS) != Z_OK) tarn_raise(a->cx, TARN_MEMORY, "out of memory");
  tarn_defer(a->cx, end_inflate, z);
  z->next_in = (uint8_t *)(uintptr_t)from, z->avail_in = (uInt)m->packed;
  z->next_out = to, z->avail_out = (uInt)m->size;
  if (inflate(z, Z_FINISH) != Z_STREAM_END || z->avail_out) broken(a, "an entry is damaged");
  return to;
}
static tarn_tensor *tensor_of(const archive *a, const member *m) {
  if (m->at > a->n || a->n - m->at < LOCAL || memcmp(a->p + m->at, "PK\3\4", 4) != 0)
    broken(a, "an entry is not where the directory says");
  size_t from = m->at + LOCAL + little(a->p + m->at + 26, 2) + little(a->p + m->at + 28, 2);
  if (from > a->n || m->packed > a->n - from) broken(a, "an entry is cut");
  bool stored = m->method == STORED && m->size == m->packed;
  if (!stored && m->method != DEFLATED) broken(a, "an entry is neither stored nor deflated");
  if (!stored && m->size / MOST_RATIO > m->packed) broken(a, "the size of an entry is impossible");
  const uint8_t *p = stored ? a->p + from : inflated(a, a->p + from, m);
  return tarn_npy_read_bytes(a->cx, p, m->size, tarn_format(a->cx, "%s: %s", a->path, m->name));
}
bool tarn_npz_is(const char *path) {
  size_t n = strlen(path);
  return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}
uint32_t tarn_npz_names(tarn_ctx *cx, const char *path, const char ***name) {
  archive a = {.cx = cx, .path = path};
  a.p = (const uint8_t *)tarn_read_file(cx, path, &a.n);
  members all = members_of(&a);
  *name = TARN_ARRAY(cx, const char *, all.n + 1);
  for (uint32_t i = 0; i < all.n; i++) (*name)[i] = all.p[i].name;
  return all.n;
}
tarn_tensor *tarn_npz_read_bytes(tarn_ctx *cx, const char *path, const void *bytes, size_t n,
                                 const char *name) {
  archive a = {cx, path, bytes, n};
  members all = members_of(&a);
  for (uint32_t i = 0; i < all.n; i++)
    if (tarn_is_called(cx, name, all.p[i].name)) return tensor_of(&a, &all.p[i]);
  if (all.n == 1) return tensor_of(&a, &all.p[0]);
  tarn_raise(cx, TARN_BAD_INPUT, "%s: no tensor %s among the %u in it", path, name, all.n);
}
tarn_tensor *tarn_npz_read(tarn_ctx *cx, const char *path, const char *name) {
  size_t n;
  const char *bytes = tarn_read_file(cx, path, &n);
  return tarn_npz_read_bytes(cx, path, bytes, n, name);
}
