/* The s-expression reader: one pass, no recursion, so depth costs heap and not stack.
 *
 * Open lists are a stack; the kids read so far of all open lists lie one after another in one
 * vector, each open list remembering where its own begin. Closing a list copies its kids into an
 * array of its own. */
#include "base/internal.h"

#include <math.h>
#include <string.h>

#define MAX_DEPTH 10000

typedef struct open_list {
  tarn_sx *list;
  uint32_t first; /* its first kid in reader.kids */
} open_list;

typedef struct reader {
  tarn_ctx *cx;
  const char *at, *end, *line_start;
  const char *file;
  uint32_t line;
  TARN_VEC(open_list) open;
  TARN_VEC(tarn_sx *) kids;
} reader;

typedef struct where {
  uint32_t line, col;
} where;

static where here(const reader *r) {
  return (where){r->line, (uint32_t)(r->at - r->line_start) + 1};
}

_Noreturn static void bad(const reader *r, where w, const char *what) {
  tarn_raise(r->cx, TARN_BAD_INPUT, "%s:%u:%u: %s", r->file, w.line, w.col, what);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_control(char c) { return ((unsigned char)c < 0x20 && !is_space(c)) || c == 0x7f; }
static bool ends_atom(char c) {
  return is_space(c) || c == '(' || c == ')' || c == ';' || c == '"';
}

static void newline(reader *r) {
  r->line++;
  r->line_start = r->at + 1;
}

static void skip_blank(reader *r) {
  for (; r->at < r->end; r->at++) {
    if (*r->at == ';') {
      const char *nl = memchr(r->at, '\n', (size_t)(r->end - r->at));
      r->at = nl ? nl : r->end;
      if (!nl) return;
    }
    if (!is_space(*r->at)) return;
    if (*r->at == '\n') newline(r);
  }
}

static tarn_sx *node(reader *r, tarn_sx_kind kind, where w) {
  tarn_sx *s = TARN_NEW(r->cx, tarn_sx);
  s->kind = kind;
  s->line = w.line;
  s->col = w.col;
  s->file = r->file;
  s->text = "";
  return s;
}

/* ---- atoms and numbers ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Could this be a number? strtod alone would also take "infinity" and "nan(x)". */
static bool looks_numeric(const char *s) {
  if (*s == '+' || *s == '-') s++;
  return is_digit(*s) || (*s == '.' && is_digit(s[1]));
}

static const struct {
  const char *text;
  double value;
} named_real[] = {{"inf", (double)INFINITY}, {"-inf", -(double)INFINITY}, {"nan", (double)NAN}};

static void set_real(tarn_sx *s, double x) {
  s->kind = TARN_SX_REAL;
  s->r = x;
}

/* A decimal integer that fits 64 bits with its sign. */
static bool read_int(const char *text, tarn_sx *s) {
  bool minus = *text == '-';
  uint64_t m = 0;
  for (text += *text == '-' || *text == '+'; is_digit(*text); text++)
    if (__builtin_mul_overflow(m, 10u, &m) ||
        __builtin_add_overflow(m, (uint64_t)(*text - '0'), &m))
      return false;
  if (*text || m > (uint64_t)INT64_MAX + minus) return false;
  s->kind = TARN_SX_INT;
  s->i = (int64_t)(minus ? 0 - m : m);
  s->r = minus ? -(double)m : (double)m;
  return true;
}

static void read_number(reader *r, tarn_sx *s, where w) {
  for (size_t i = 0; i < sizeof named_real / sizeof *named_real; i++)
    if (strcmp(s->text, named_real[i].text) == 0) set_real(s, named_real[i].value);
  if (!looks_numeric(s->text) || read_int(s->text, s)) return;
  char *end;
  double x = tarn_strtod(r->cx, s->text, &end);
  if (*end) return;
  if (isinf(x)) bad(r, w, "number out of range");
  set_real(s, x);
}

static tarn_sx *read_atom(reader *r, where w) {
  const char *start = r->at;
  while (r->at < r->end && !ends_atom(*r->at)) {
    if (is_control(*r->at)) bad(r, here(r), "control character");
    r->at++;
  }
  tarn_sx *s = node(r, TARN_SX_ATOM, w);
  s->len = (size_t)(r->at - start);
  s->text = tarn_strndup(r->cx, start, s->len);
  read_number(r, s, w);
  return s;
}

/* ---- strings ---- */

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* At the character after a backslash; leaves r->at at the last character of the escape. */
static char read_escape(reader *r) {
  static const char from[] = "\"\\nt", to[] = "\"\\\n\t";
  where w = here(r);
  char c = r->at < r->end ? *r->at : 0;
  const char *known = c ? strchr(from, c) : NULL;
  if (known) return to[known - from];
  if (c == 'x' && r->end - r->at > 2) {
    int hi = hex_digit(r->at[1]), lo = hex_digit(r->at[2]);
    r->at += 2;
    if (hi >= 0 && lo >= 0) return (char)(unsigned char)(hi * 16 + lo);
  }
  bad(r, w, "unknown escape in string");
}

static tarn_sx *read_string(reader *r, where w) {
  tarn_buf b = {.cx = r->cx};
  tarn_buf_str(&b, "");
  for (r->at++; r->at < r->end && *r->at != '"'; r->at++) {
    char c = *r->at;
    if (c == '\n') newline(r);
    if (c == '\\') {
      r->at++;
      c = read_escape(r);
    }
    tarn_buf_add(&b, &c, 1);
  }
  if (r->at >= r->end) bad(r, w, "string without end");
  r->at++;
  tarn_sx *s = node(r, TARN_SX_STRING, w);
  s->text = b.p;
  s->len = b.n;
  return s;
}

/* ---- lists ---- */

static void open_one(reader *r, where w) {
  if (r->open.n > MAX_DEPTH) bad(r, w, "lists nested more than 10000 deep");
  open_list o = {node(r, TARN_SX_LIST, w), r->kids.n};
  tarn_push(r->cx, &r->open, o);
}

static tarn_sx *close_one(reader *r) {
  open_list o = r->open.p[--r->open.n];
  o.list->n = r->kids.n - o.first;
  o.list->kid = TARN_ARRAY(r->cx, tarn_sx *, o.list->n);
  for (uint32_t i = 0; i < o.list->n; i++) o.list->kid[i] = r->kids.p[o.first + i];
  r->kids.n = o.first;
  return o.list;
}

static void read_one(reader *r) {
  where w = here(r);
  tarn_sx *s = NULL;
  switch (*r->at) {
  case '(':
    r->at++;
    open_one(r, w);
    return;
  case ')':
    if (r->open.n == 1) bad(r, w, "unexpected )");
    r->at++;
    s = close_one(r);
    break;
  case '"': s = read_string(r, w); break;
  default: s = read_atom(r, w);
  }
  tarn_push(r->cx, &r->kids, s);
}

tarn_sx *tarn_sx_read(tarn_ctx *cx, const char *text, size_t n, const char *file) {
  reader r = {.cx = cx, .at = text, .end = text + n, .line_start = text, .line = 1};
  r.file = tarn_strdup(cx, file ? file : "?");
  open_one(&r, (where){1, 1});
  for (skip_blank(&r); r.at < r.end; skip_blank(&r)) read_one(&r);
  if (r.open.n > 1) {
    const tarn_sx *list = r.open.p[r.open.n - 1].list;
    bad(&r, (where){list->line, list->col}, "list without end");
  }
  return close_one(&r);
}

tarn_sx *tarn_sx_read_file(tarn_ctx *cx, const char *path) {
  size_t n;
  const char *text = tarn_read_file(cx, path, &n);
  return tarn_sx_read(cx, text, n, path);
}

/* ---- asking and complaining ---- */

bool tarn_sx_atom_is(const tarn_sx *s, const char *atom) {
  return s && s->kind == TARN_SX_ATOM && strcmp(s->text, atom) == 0;
}

bool tarn_sx_is(const tarn_sx *s, const char *head) {
  return s && s->kind == TARN_SX_LIST && s->n > 0 && tarn_sx_atom_is(s->kid[0], head);
}

_Noreturn void tarn_sx_error(tarn_ctx *cx, const tarn_sx *at, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *what = tarn_vformat(cx, fmt, ap);
  va_end(ap);
  if (!at) tarn_raise(cx, TARN_BAD_INPUT, "%s", what);
  const char *file = at->file ? at->file : "?";
  tarn_raise(cx, TARN_BAD_INPUT, "%s:%u:%u: %s", file, at->line, at->col, what);
}

void tarn_sx_limit(tarn_ctx *cx, const tarn_sx *s, uint32_t depth) {
  tarn_mark mark = tarn_arena_mark(cx);
  TARN_VEC(open_list) open = {0};
  open_list top = {(tarn_sx *)(uintptr_t)s, 0};
  for (tarn_push(cx, &open, top); open.n;) {
    open_list *o = &open.p[open.n - 1];
    if (o->list->kind != TARN_SX_LIST || o->first == o->list->n) {
      open.n--;
      continue;
    }
    open_list kid = {o->list->kid[o->first++], 0};
    if (open.n > depth) tarn_sx_error(cx, kid.list, "nested more than %u deep", depth);
    tarn_push(cx, &open, kid);
  }
  tarn_release(cx, mark);
}

const tarn_sx *tarn_sx_kid(tarn_ctx *cx, const tarn_sx *s, uint32_t i, tarn_sx_kind kind,
                           const char *what) {
  if (i >= s->n || s->kid[i]->kind != kind)
    tarn_sx_error(cx, i < s->n ? s->kid[i] : s, "%s is expected", what);
  return s->kid[i];
}

int64_t tarn_sx_whole(tarn_ctx *cx, const tarn_sx *s, uint32_t i, int64_t lo, int64_t hi) {
  int64_t v = tarn_sx_kid(cx, s, i, TARN_SX_INT, "a number")->i;
  if (v < lo || v > hi) tarn_sx_error(cx, s->kid[i], "%lld is out of range", (long long)v);
  return v;
}
