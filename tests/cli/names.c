/* Models whose names are what a stranger may have written, and what to ask of files that hold such
 * names.
 *
 *   names write DIR           DIR/K.onnx for each name: of an input, its dim, a node, an
 *                             initializer, an output; DIR/K.name
 *   names holds FILE NAME…    the s-expressions in FILE have a name that ends with the text of each
 *                             of these files
 *   names clean FILE…         UTF-8 without control characters but the ends of lines
 *   names lacks FILE NAME     the text is not in the file */
#include "base/base.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LONG = 10000, ROWS = 16 };
static char long_name[LONG + 1];
static const char *const names[] = {
    "y */ int injected(void) { return 1; } /* ?\?/ %s%n%d",
    "<script>alert('1')</script>&amp; \"quoted\" back\\slash\\",
    "a\nb\x01\x1b[31m\x7f\t\r",
    "bad \xff\xc3 utf \xed\xa0\x80, right \xe2\x80\xae to left \xc2\x9b",
    ")(;\" ../../etc/passwd {$`rm -rf`} a=b \xe6\xa8\xa1\xe5\x9e\x8b",
    "1e999",
    "f32",
    long_name,
};
#define NAMES (sizeof names / sizeof *names)

/* ---- protobuf ---- */
static void varint(tarn_buf *b, uint64_t v) {
  for (; v > 127; v >>= 7) tarn_buf_add(b, (char[]){(char)(v | 128)}, 1);
  tarn_buf_add(b, (char[]){(char)v}, 1);
}
static void number(tarn_buf *b, uint32_t field, uint64_t v) {
  varint(b, field << 3);
  varint(b, v);
}
static void bytes(tarn_buf *b, uint32_t field, const void *p, size_t n) {
  varint(b, field << 3 | 2);
  varint(b, n);
  tarn_buf_add(b, p, n);
}
static void text(tarn_buf *b, uint32_t field, const char *s) { bytes(b, field, s, strlen(s)); }
static void message(tarn_buf *b, uint32_t field, const tarn_buf *m) { bytes(b, field, m->p, m->n); }

static void node(tarn_buf *graph, const char *op, const char *name, const char *in0,
                 const char *in1, const char *out) {
  tarn_buf n = {.cx = graph->cx};
  text(&n, 1, in0);
  if (in1) text(&n, 1, in1);
  text(&n, 2, out);
  text(&n, 3, name);
  text(&n, 4, op);
  message(graph, 1, &n);
}
static void weights(tarn_buf *graph, const char *name) {
  tarn_buf t = {.cx = graph->cx};
  float w[ROWS * ROWS];
  for (int i = 0; i < ROWS * ROWS; i++) w[i] = (float)(i % 7) - 3;
  number(&t, 1, ROWS);
  number(&t, 1, ROWS);
  number(&t, 2, 1);
  text(&t, 8, name);
  bytes(&t, 9, w, sizeof w);
  message(graph, 5, &t);
}
static void value(tarn_buf *graph, uint32_t field, const char *name, const char *dim) { /* d… */
  tarn_buf v = {.cx = graph->cx}, type = v, tensor = v, shape = v, d = v, last = v;
  text(&d, 2, tarn_format(graph->cx, "d%s", dim));
  number(&last, 1, ROWS);
  message(&shape, 1, &d);
  message(&shape, 1, &last);
  number(&tensor, 1, 1);
  message(&tensor, 2, &shape);
  message(&type, 1, &tensor);
  text(&v, 1, name);
  message(&v, 2, &type);
  message(graph, field, &v);
}
static tarn_buf model(tarn_ctx *cx, const char *name) {
  tarn_buf m = {.cx = cx}, graph = m, opset = m;
  const char *w = tarn_format(cx, "w%s", name), *y = tarn_format(cx, "y%s", name),
             *h = tarn_format(cx, "h%s", name);
  node(&graph, "MatMul", name, name, w, h);
  node(&graph, "Tanh", "", h, NULL, y);
  text(&graph, 2, name);
  weights(&graph, w);
  value(&graph, 11, name, name);
  value(&graph, 12, y, name);
  number(&opset, 2, 17);
  number(&m, 1, 8);
  text(&m, 2, name);
  message(&m, 7, &graph);
  message(&m, 8, &opset);
  return m;
}

/* ---- files ---- */
static int write_all(tarn_ctx *cx, const char *dir) {
  memset(long_name, 'n', LONG);
  for (size_t i = 0; i < NAMES; i++) {
    tarn_buf m = model(cx, names[i]);
    tarn_write_file(cx, tarn_format(cx, "%s/%zu.onnx", dir, i), m.p, m.n);
    tarn_write_file(cx, tarn_format(cx, "%s/%zu.name", dir, i), names[i], strlen(names[i]));
  }
  return 0;
}
static bool has(const tarn_sx *s, const char *name, size_t n) {
  if (s->kind != TARN_SX_LIST) return s->len >= n && !memcmp(s->text + s->len - n, name, n);
  for (uint32_t i = 0; i < s->n; i++)
    if (has(s->kid[i], name, n)) return true;
  return false;
}
static int holds(tarn_ctx *cx, const char *file, const char *name) {
  size_t n;
  const char *s = tarn_read_file(cx, name, &n);
  if (has(tarn_sx_read_file(cx, file), s, n)) return 0;
  return fprintf(stderr, "%s does not hold the name in %s\n", file, name), 1;
}
static int clean(tarn_ctx *cx, const char *file) {
  size_t n;
  const char *s = tarn_read_file(cx, file, &n);
  for (size_t i = 0, len; i < n; i += len) {
    len = s[i] == '\n' || s[i] == '\t' ? 1 : tarn_visible(s + i, n - i);
    if (!len)
      return fprintf(stderr, "%s: byte %zu is %02x\n", file, i, (unsigned)(unsigned char)s[i]), 1;
  }
  return 0;
}
static int lacks(tarn_ctx *cx, const char *file, const char *name) {
  size_t n, k;
  const char *s = tarn_read_file(cx, file, &n), *t = tarn_read_file(cx, name, &k);
  for (size_t i = 0; i + k <= n; i++)
    if (!memcmp(s + i, t, k)) return fprintf(stderr, "%s: the name stands in it\n", file), 1;
  return 0;
}

typedef struct call {
  int argc, bad;
  char **argv;
} call;
static void run(tarn_ctx *cx, void *arg) {
  call *c = arg;
  const char *what = c->argv[1];
  if (!strcmp(what, "write")) c->bad |= write_all(cx, c->argv[2]);
  else if (!strcmp(what, "clean"))
    for (int i = 2; i < c->argc; i++) c->bad |= clean(cx, c->argv[i]);
  else
    for (int i = 3; i < c->argc; i++)
      c->bad |= !strcmp(what, "holds") ? holds(cx, c->argv[2], c->argv[i])
                                       : lacks(cx, c->argv[2], c->argv[i]);
}
int main(int argc, char **argv) {
  call c = {argc, argc < 3, argv};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  if (c.bad || !cx) return 2;
  if (tarn_protect(cx, run, &c)) c.bad = fprintf(stderr, "names: %s\n", tarn_message(cx));
  tarn_ctx_free(cx);
  return c.bad != 0;
}
