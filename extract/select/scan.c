/* See scan.h. */
#include "extract/select/scan.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 17, DEEPEST = 1000 };

/* ---- the stream ---- */
/* Eight bytes at a time: a byte of `other` has its highest bit set unless it is a newline. */
static uint64_t newlines(const unsigned char *p, const unsigned char *end) {
  const uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
  uint64_t n = 0, x;
  for (; end - p >= 8; p += 8) {
    memcpy(&x, p, 8);
    x ^= 0x0A0A0A0A0A0A0A0Au;
    uint64_t other = (((x & low) + low) | x) & ~low;
    n += 8 - (uint64_t)__builtin_popcountll(other);
  }
  for (; p < end; p++) n += *p == '\n';
  return n;
}

void sel_scan_error(sel_scan *s, const char *why) {
  tarn_raise(s->cx, TARN_BAD_INPUT, "%s:%" PRIu64 ": %s", s->file,
             s->lines + newlines(s->start, s->p) + 1, why);
}

void sel_scan_file(sel_scan *s, FILE *f) {
  s->f = f;
  s->cap = CHUNK;
  s->buf = sel_resize(s->mem, NULL, s->cap, 1);
  s->start = s->p = s->end = s->buf;
}

void sel_scan_text(sel_scan *s, const char *text, size_t n) {
  s->start = s->p = (const unsigned char *)text;
  s->end = s->start + n;
}

/* More of the file behind what must stay; false at its end. */
static bool refill(sel_scan *s) {
  if (!s->f) return false;
  const unsigned char *from = s->keep ? s->keep : s->p;
  size_t left = (size_t)(s->end - from), at = (size_t)(s->p - from);
  s->lines += newlines(s->start, from);
  memmove(s->buf, from, left);
  if (left > s->cap / 2) s->cap *= 2, s->buf = sel_resize(s->mem, s->buf, s->cap, 1);
  size_t n = fread(s->buf + left, 1, s->cap - left, s->f);
  if (ferror(s->f)) tarn_raise(s->cx, TARN_IO, "%s: %s", s->file, strerror(errno));
  s->start = s->buf, s->p = s->buf + at, s->end = s->buf + left + n;
  if (s->keep) s->keep = s->buf;
  return n > 0;
}

static inline int next_byte(sel_scan *s) { return s->p < s->end || refill(s) ? *s->p++ : -1; }

/* Written with indentation, most of a document is blanks. */
static void skip_blanks(sel_scan *s) {
  uint64_t eight;
  while (s->end - s->p >= 8 && (memcpy(&eight, s->p, 8), eight == 0x2020202020202020u)) s->p += 8;
}

int sel_scan_past_blanks(sel_scan *s) {
  for (;;) {
    for (; s->p < s->end; s->p++) {
      int c = *s->p;
      if (c > ' ') return c;
      if (c == '\n') skip_blanks(s);
      else if (c != ' ' && c != '\t' && c != '\r') sel_scan_error(s, "a control character");
    }
    if (!refill(s)) return -1;
  }
}

/* ---- strings ---- */
static const uint8_t special[256] = {['"'] = 1, ['\\'] = 1, [0] = 1, 1, 1, 1,        1, 1, 1, 1, 1,
                                     1,         1,          1,       1, 1, [16] = 1, 1, 1, 1, 1, 1,
                                     1,         1,          1,       1, 1, 1,        1, 1, 1, 1};

static uint32_t hex4(sel_scan *s) {
  uint32_t x = 0;
  for (int i = 0; i < 4; i++) {
    int c = next_byte(s);
    int d = c >= '0' && c <= '9'                 ? c - '0'
            : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                 : -1;
    if (d < 0) sel_scan_error(s, "\\u without four hexadecimal digits");
    x = 16 * x + (uint32_t)d;
  }
  return x;
}

/* What stands for one character after a backslash, or 0. */
static char simple_escape(int c) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const char *at = c > 0 ? strchr(from, c) : NULL;
  return at ? to[at - from] : 0;
}

/* Past the closing quote of a string whose content is of no interest; the cursor is behind the
 * opening one. */
static void skip_string(sel_scan *s) {
  for (;;) {
    while (s->p < s->end && !special[*s->p]) s->p++;
    int c = next_byte(s);
    if (c == '"') return;
    if (c < 0) sel_scan_error(s, "a string without end");
    if (c < ' ') sel_scan_error(s, "a control character in a string");
    if (c == '\\' && !simple_escape(c = next_byte(s))) {
      if (c != 'u') sel_scan_error(s, "an unknown escape");
      hex4(s);
    }
  }
}

static size_t put_utf8(char *to, uint32_t x) {
  static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  size_t n = x < 0x80 ? 1 : x < 0x800 ? 2 : x < 0x10000 ? 3 : 4;
  if (n == 1) return *to = (char)x, 1;
  for (size_t i = n - 1; i; i--, x >>= 6) to[i] = (char)(0x80 | (x & 0x3F));
  to[0] = (char)(lead[n] | x);
  return n;
}

/* Behind "\u"; a half of a pair that stands alone becomes the replacement character. */
static size_t unicode(sel_scan *s, char *to) {
  uint32_t x = hex4(s);
  if (!x) sel_scan_error(s, "a zero byte in a string");
  while (x >= 0xD800 && x < 0xDC00) {
    if (next_byte(s) != '\\' || next_byte(s) != 'u') sel_scan_error(s, "half of a surrogate pair");
    uint32_t low = hex4(s);
    if (low < 0xDC00 || low >= 0xE000) sel_scan_error(s, "half of a surrogate pair");
    x = 0x10000 + ((x - 0xD800) << 10) + (low - 0xDC00);
  }
  if (x >= 0xDC00 && x < 0xE000) sel_scan_error(s, "half of a surrogate pair");
  return put_utf8(to, x);
}

/* The rest of a string in which a backslash has been met, at the cursor; n bytes of it are in text.
 */
static const char *escaped(sel_scan *s, size_t n, size_t *out) {
  for (;;) {
    if (n + 8 > s->cap_text)
      s->cap_text = 2 * s->cap_text + 256, s->text = sel_resize(s->mem, s->text, s->cap_text, 1);
    int c = next_byte(s);
    if (c < 0) sel_scan_error(s, "a string without end");
    if (c < ' ') sel_scan_error(s, "a control character in a string");
    if (c == '"') break;
    if (c != '\\') s->text[n++] = (char)c;
    else if ((c = next_byte(s)) == 'u') n += unicode(s, s->text + n);
    else if (!(s->text[n++] = simple_escape(c))) sel_scan_error(s, "an unknown escape");
  }
  *out = n;
  return s->text;
}

static const char *begin_escaped(sel_scan *s, size_t *out) {
  size_t n = (size_t)(s->p - s->keep);
  if (n + 8 > s->cap_text)
    s->cap_text = 2 * n + 256, s->text = sel_resize(s->mem, s->text, s->cap_text, 1);
  memcpy(s->text, s->keep, n);
  s->keep = NULL;
  return escaped(s, n, out);
}

const char *sel_scan_string(sel_scan *s, size_t *n) {
  s->keep = ++s->p;
  for (;;) {
    const unsigned char *p = s->p, *end = s->end;
    while (p < end && !special[*p]) p++;
    s->p = p;
    if (p < end) break;
    if (!refill(s)) sel_scan_error(s, "a string without end");
  }
  if (*s->p == '\\') return begin_escaped(s, n);
  if (*s->p != '"') sel_scan_error(s, "a control character in a string");
  const char *at = (const char *)s->keep;
  *n = (size_t)(s->p++ - s->keep);
  s->keep = NULL;
  return at;
}

/* ---- numbers ---- */
static bool digit(int c) { return c >= '0' && c <= '9'; }
static bool of_number(int c) {
  return digit(c) || c == '.' || c == '-' || c == '+' || (c | 32) == 'e';
}

/* Does p .. end spell a number? */
static bool well_formed(const unsigned char *p, const unsigned char *end) {
  if (p < end && *p == '-') p++;
  if (p == end || !digit(*p)) return false;
  if (*p == '0' && p + 1 < end && digit(p[1])) return false;
  while (p < end && digit(*p)) p++;
  if (p < end && *p == '.') {
    if (++p == end || !digit(*p)) return false;
    while (p < end && digit(*p)) p++;
  }
  if (p < end && (*p | 32) == 'e') {
    if (++p < end && (*p == '-' || *p == '+')) p++;
    if (p == end || !digit(*p)) return false;
    while (p < end && digit(*p)) p++;
  }
  return p == end;
}

/* Few digits and no exponent: both parts of the quotient are exact, so it is rounded once. */
static bool few_digits(const unsigned char *p, const unsigned char *end, double *out) {
  static const double power[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  uint64_t m = 0;
  int behind = 0;
  bool minus = *p == '-', point = false;
  if (end - p > 16) return false;
  for (p += minus; p < end; p++) {
    if ((*p | 32) == 'e') return false;
    if (*p == '.') point = true;
    else m = 10 * m + (uint64_t)(*p - '0'), behind += point;
  }
  double x = (double)m / power[behind];
  *out = minus ? -x : x;
  return true;
}

double sel_scan_number(sel_scan *s) {
  s->keep = s->p;
  for (;;) {
    while (s->p < s->end && of_number(*s->p)) s->p++;
    if (s->p < s->end || !refill(s)) break;
  }
  double x;
  const unsigned char *from = s->keep;
  s->keep = NULL;
  if (!well_formed(from, s->p)) sel_scan_error(s, "not a number");
  if (few_digits(from, s->p, &x)) return x;
  size_t n = (size_t)(s->p - from);
  char few[64], *copy = n < sizeof few ? few : sel_resize(s->mem, NULL, n + 1, 1);
  memcpy(copy, from, n);
  copy[n] = 0;
  x = strtod(copy, NULL);
  if (copy != few) sel_free(s->mem, copy);
  return x;
}

/* ---- structure ---- */
void sel_scan_colon(sel_scan *s) {
  if (sel_scan_peek(s) != ':') sel_scan_error(s, "a colon is missing");
  s->p++;
}

bool sel_scan_more(sel_scan *s, char close, bool *first) {
  int c = sel_scan_peek(s);
  if (c < 0) sel_scan_error(s, "the text ends too early");
  if (c == close) return s->p++, false;
  if (*first) return *first = false, true;
  if (c != ',') sel_scan_error(s, "a comma is missing");
  s->p++;
  if (sel_scan_peek(s) == close) sel_scan_error(s, "a comma before the end");
  return true;
}

static void skip_word(sel_scan *s) {
  static const char *const word[] = {"true", "false", "null"};
  for (size_t i = 0; i < 3; i++) {
    const char *w = word[i];
    if (*s->p != (unsigned char)*w) continue;
    for (; *w; w++)
      if (next_byte(s) != *w) sel_scan_error(s, "not a value");
    return;
  }
  sel_scan_error(s, "not a value");
}

static void skip(sel_scan *s, int depth) {
  int c = sel_scan_peek(s);
  bool first = true, object = c == '{';
  if (c < 0) sel_scan_error(s, "the text ends too early");
  if (c == '"') s->p++, skip_string(s);
  else if (c == '-' || digit(c)) sel_scan_number(s);
  else if (!object && c != '[') skip_word(s);
  else {
    if (depth == DEEPEST) sel_scan_error(s, "nested too deeply");
    s->p++;
    while (sel_scan_more(s, object ? '}' : ']', &first)) {
      if (object) {
        if (sel_scan_peek(s) != '"') sel_scan_error(s, "a key is missing");
        s->p++, skip_string(s);
        sel_scan_colon(s);
      }
      skip(s, depth + 1);
    }
  }
}

void sel_scan_skip(sel_scan *s) { skip(s, 0); }
