/* Measurements as text: to be kept beside the price that was learned from them, or taken to another
 * store.
 *
 *   tarn-measurements 6           the kind of file, and the version of the store (STORE_VERSION)
 *   hw KEY                        of what follows (tarn_hw_key)
 *   kernel TEXT                   tarn_ksig_text() or tarn_written_text(), once; the lines behind
 * it are of this kernel: THREADS SECONDS SCHEDULE      tarn_schedule_text()
 *
 * sorted by hardware, kernel, threads and schedule, so that the same measurements make the same
 * text and what is alike lies together, for who compresses it. Seconds are decimal and give back
 * the same double. Failures are left out. */
#include "tune/tune.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KIND "tarn-measurements "

/* ---- out ---- */
static int by_text(const void *a, const void *b) {
  const tarn_record *x = a, *y = b;
  int c = strcmp(x->kernel_text, y->kernel_text);
  if (!c) c = (x->threads > y->threads) - (x->threads < y->threads);
  return c ? c : strcmp(x->schedule_text, y->schedule_text);
}
static void add_records(tarn_buf *b, const tarn_record *x, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (!i || strcmp(x[i].kernel_text, x[i - 1].kernel_text))
      tarn_buf_fmt(b, "kernel %s\n", x[i].kernel_text);
    tarn_buf_fmt(b, "%u ", x[i].threads);
    tarn_buf_double(b, x[i].seconds);
    tarn_buf_fmt(b, " %s\n", x[i].schedule_text);
  }
}
uint32_t tarn_store_export(tarn_ctx *cx, tarn_store *s, const char *path) {
  tarn_buf b = {.cx = cx};
  const char *const *key;
  uint32_t hardware = tarn_store_keys(s, &key), all = 0;
  tarn_buf_fmt(&b, KIND "%d\n", TARN_STORE_VERSION);
  for (uint32_t i = 0; i < hardware; i++) {
    const tarn_record *x;
    uint32_t n = tarn_store_read(s, key[i], &x);
    tarn_record *sorted = tarn_copy(cx, x, n * sizeof *x);
    qsort(sorted, n, sizeof *sorted, by_text);
    tarn_buf_fmt(&b, "hw %s\n", key[i]);
    add_records(&b, sorted, n);
    all += n;
  }
  tarn_write_file(cx, path, b.p, b.n);
  return all;
}

/* ---- in ---- */
typedef struct section { /* of one hardware */
  const char *hw;
  uint32_t first; /* of the records */
} section;
typedef struct reading {
  tarn_ctx *cx;
  const char *name, *kernel; /* NULL: none yet of this hardware */
  uint32_t line;
  TARN_VEC(tarn_record) record;
  TARN_VEC(section) section;
} reading;
TARN_NORETURN static void wrong(const reading *r, const char *what) {
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s:%u: %s", r->name, r->line, what);
}
static void read_record(reading *r, const char *s) {
  char *end;
  tarn_record x = {.kernel_text = r->kernel};
  unsigned long threads = strtoul(s, &end, 10);
  if (end == s || *end != ' ' || threads < 1 || threads > 1024)
    wrong(r, "a number of threads is expected");
  s = end + 1;
  x.seconds = strtod(s, &end), x.threads = (uint32_t)threads;
  if (end == s || *end != ' ' || !(x.seconds > 0 && x.seconds < INFINITY))
    wrong(r, "seconds are expected after the threads");
  x.schedule_text = end + 1;
  if (strncmp(x.schedule_text, "(schedule ", 10))
    wrong(r, "a schedule is expected after the seconds");
  if (!r->kernel) wrong(r, "a measurement before its hardware and kernel");
  x.kernel = tarn_hash_bytes(x.kernel_text, strlen(x.kernel_text), 0);
  x.schedule = tarn_hash_bytes(x.schedule_text, strlen(x.schedule_text), 0);
  tarn_push(r->cx, &r->record, x);
}
static void read_line(reading *r, const char *s) {
  if (!strncmp(s, "hw ", 3)) {
    tarn_push(r->cx, &r->section, ((section){s + 3, r->record.n}));
    r->kernel = NULL;
  } else if (!strncmp(s, "kernel ", 7)) {
    if (!r->section.n) wrong(r, "a kernel before its hardware");
    r->kernel = s + 7;
    if (strncmp(r->kernel, "(kernel ", 8) && strncmp(r->kernel, "(call ", 6))
      wrong(r, "a kernel is expected");
  } else read_record(r, s);
}
static void read_lines(reading *r, char *at, const char *end) {
  while (at < end) {
    char *stop = memchr(at, '\n', (size_t)(end - at));
    r->line++;
    if (!stop || memchr(at, 0, (size_t)(stop - at))) wrong(r, "a line without an end");
    *stop = 0;
    read_line(r, at);
    at = stop + 1;
  }
}
uint32_t tarn_store_import(tarn_ctx *cx, tarn_store *s, const char *name, const char *text,
                           size_t n) {
  reading r = {.cx = cx, .name = name, .line = 1};
  char *at = tarn_strndup(cx, text, n);
  const char *first = tarn_format(cx, KIND "%d\n", TARN_STORE_VERSION);
  size_t skip = strlen(first);
  if (n < skip || memcmp(at, first, skip))
    wrong(&r, tarn_format(cx, "\"%.*s\" is expected", (int)skip - 1, first));
  read_lines(&r, at + skip, at + n);
  for (uint32_t i = 0; i < r.section.n;
       i++) { /* all was read: nothing is added of a text that is wrong */
    uint32_t from = r.section.p[i].first,
             to = i + 1 < r.section.n ? r.section.p[i + 1].first : r.record.n;
    tarn_store_add(s, r.section.p[i].hw, r.record.p + from, to - from);
  }
  return r.record.n;
}
