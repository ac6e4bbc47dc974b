/* Text of strangers as data of the language that it is printed in: one table of spellings a
 * language.
 *
 * A character that can be seen is printed as it is unless the language gives it a meaning. Every
 * other byte (control characters, those that change the direction of writing, what is no UTF-8) is
 * spelled by its number. So what is written is UTF-8 on one line whatever the name of a tensor was,
 * and a terminal takes no orders from it. */
#include "base/internal.h"

#include <stdio.h>
#include <string.h>

typedef struct spelling {
  char c;
  const char *as;
} spelling;
typedef struct language {
  spelling own[8];  /* ends with a NULL `as` */
  const char *byte; /* NULL: JSON, which has a spelling for characters, and none for bytes */
} language;

static const language languages[] = {
    [TARN_AS_TEXT] = {{{'\n', "\\n"}, {'\t', "\\t"}}, "\\x%02x"},
    [TARN_AS_SX] = {{{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\t', "\\t"}}, "\\x%02x"},
    /* of a string; no comment begins or ends in it, and no trigraph. Three octal digits, as
       hexadecimal ones never end. */
    [TARN_AS_C] = {{{'"', "\\\""},
                    {'\\', "\\\\"},
                    {'\n', "\\n"},
                    {'\t', "\\t"},
                    {'*', "\\052"},
                    {'?', "\\?"}},
                   "\\%03o"},
    [TARN_AS_JSON] = {{{'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\t', "\\t"}}, NULL},
    [TARN_AS_HTML] = {{{'<', "&lt;"},
                       {'>', "&gt;"},
                       {'&', "&amp;"},
                       {'"', "&quot;"},
                       {'\'', "&#39;"},
                       {'\n', "\n"},
                       {'\t', "\t"}},
                      "\\x%02x"},
    [TARN_AS_DOT] = {{{'"', "\\\""}, {'\\', "\\\\"}, {'&', "&amp;"}, {'\n', "\\n"}, {'\t', " "}},
                     "\\\\x%02x"},
};

/* The bytes of the UTF-8 character at s and its code; 0: there is none. */
static size_t utf8(const char *s, size_t n, uint32_t *code) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *p = (const unsigned char *)s;
  size_t len = p[0] < 0x80   ? 1
               : p[0] < 0xc0 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf8 ? 4
                             : 0;
  if (len == 0 || len > n) return 0;
  uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
  for (size_t i = 1; i < len; i++) {
    if ((p[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (p[i] & 0x3fu);
  }
  *code = c;
  return c >= least[len] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) ? len : 0;
}

/* Controls, marks of no width, lines, directions, what is no character. */
static bool is_hidden(uint32_t code) {
  static const uint32_t ranges[][2] = {
      {0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x202e},
      {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe0fff}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
  return false;
}

size_t tarn_visible(const char *s, size_t n) {
  uint32_t code = 0;
  size_t len = n ? utf8(s, n, &code) : 0;
  return len && !is_hidden(code) ? len : 0;
}

static size_t own_spelling(const language *l, char c, char *out) {
  for (const spelling *k = l->own; k < l->own + sizeof l->own / sizeof *l->own && k->as; k++)
    if (k->c == c) return strlen(strcpy(out, k->as));
  return 0;
}

/* A character of len bytes that cannot be seen, or one byte that is none (len 0). */
static size_t json_spelling(uint32_t code, size_t len, unsigned char byte, char *out) {
  if (len == 0) snprintf(out, TARN_ESCAPED, "\\\\x%02x", byte);
  else if (code < 0x10000) snprintf(out, TARN_ESCAPED, "\\u%04x", code);
  else
    snprintf(out, TARN_ESCAPED, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
  return len ? len : 1;
}

size_t tarn_escape(tarn_as as, const char *s, size_t n, char out[TARN_ESCAPED]) {
  const language *l = &languages[as];
  uint32_t code = 0;
  if (own_spelling(l, *s, out)) return 1;
  size_t len = utf8(s, n, &code);
  if (len && !is_hidden(code)) {
    memcpy(out, s, len);
    out[len] = 0;
    return len;
  }
  if (!l->byte) return json_spelling(code, len, (unsigned char)*s, out);
  snprintf(out, TARN_ESCAPED, l->byte, (unsigned)(unsigned char)*s);
  return 1;
}

void tarn_buf_as(tarn_buf *b, tarn_as as, const char *s, size_t n) {
  char out[TARN_ESCAPED];
  tarn_buf_add(b, "", 0);
  for (size_t i = 0; i < n;) {
    i += tarn_escape(as, s + i, n - i, out);
    tarn_buf_str(b, out);
  }
}

char *tarn_shown(tarn_ctx *cx, const char *s) {
  tarn_buf b = {.cx = cx};
  tarn_buf_as(&b, TARN_AS_TEXT, s, strlen(s));
  return b.p;
}

bool tarn_is_called(tarn_ctx *cx, const char *given, const char *name) {
  if (!strcmp(given, name)) return true;
  tarn_mark m = tarn_arena_mark(cx);
  bool same = !strcmp(tarn_shown(cx, given), tarn_shown(cx, name));
  tarn_release(cx, m);
  return same;
}

void tarn_sx_string(tarn_buf *b, const char *s, size_t n) {
  tarn_buf_add(b, "\"", 1);
  tarn_buf_as(b, TARN_AS_SX, s, n);
  tarn_buf_add(b, "\"", 1);
}

/* A number that the reader may find too large for a double. */
static bool may_overflow(const char *s, size_t n) {
  size_t sign = n && (*s == '-' || *s == '+');
  if (sign + 1 > n || !strchr("0123456789.", s[sign])) return false;
  bool exponent = false;
  for (size_t i = 0; i < n; i++) exponent |= s[i] && strchr("eEpP", s[i]);
  return exponent || n > 300;
}

bool tarn_sx_is_atom(const char *s, size_t n) {
  if (may_overflow(s, n)) return false;
  for (size_t i = 0, len; i < n; i += len) {
    len = tarn_visible(s + i, n - i);
    if (!len || s[i] == ' ' || strchr("();\"", s[i])) return false;
  }
  return n > 0;
}

void tarn_sx_name(tarn_buf *b, const char *s, size_t n) {
  if (tarn_sx_is_atom(s, n)) tarn_buf_add(b, s, n);
  else tarn_sx_string(b, s, n);
}

/* ---- messages ---- */

char *tarn_raw_shown(tarn_ctx *cx, const char *s, size_t n, size_t *cap) {
  char out[TARN_ESCAPED];
  size_t all = 0;
  for (size_t i = 0; i < n; all += strlen(out)) i += tarn_escape(TARN_AS_TEXT, s + i, n - i, out);
  *cap = all + 1;
  char *p = tarn_raw(cx, NULL, 0, *cap);
  if (!p) return NULL;
  char *to = p;
  for (size_t i = 0; i < n; to += strlen(out)) {
    i += tarn_escape(TARN_AS_TEXT, s + i, n - i, out);
    strcpy(to, out);
  }
  *to = 0;
  return p;
}
