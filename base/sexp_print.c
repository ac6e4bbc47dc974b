/* The s-expression printer. Like the reader it keeps its own stack.
 *
 * With a width, a list that fits in what is left of the line is printed flat. One that does not
 * keeps its leading atoms on the line as long as they fit; each list, and all that does not fit,
 * starts a line indented by 2. */
#include "base/internal.h"

#include <string.h>

#define MAX_WIDTH 1000 /* bounds the recursion of flat_width */

typedef struct level {
  const tarn_sx *list;
  uint32_t next; /* the kid to print next */
  size_t indent;
  bool flat;
} level;

typedef struct printer {
  tarn_buf *out;
  size_t width, line_start;
  TARN_VEC(level) stack;
} printer;

static void print_leaf(tarn_buf *b, const tarn_sx *s) {
  if (s->kind == TARN_SX_STRING) {
    tarn_sx_string(b, s->text, s->len);
  } else if (s->text && *s->text) {
    tarn_buf_str(b, s->text);
  } else if (s->kind == TARN_SX_INT) {
    tarn_buf_fmt(b, "%lld", (long long)s->i);
  } else if (s->kind == TARN_SX_REAL) {
    tarn_buf_double(b, s->r);
  }
}

/* Columns of s printed flat, or any number above limit as soon as that is certain. Every level of a
 * list takes at least its two parentheses, so the recursion is at most limit / 2 deep. */
static size_t flat_width(tarn_ctx *cx, const tarn_sx *s, size_t limit) {
  if (s->kind != TARN_SX_LIST && s->kind != TARN_SX_STRING && s->text && *s->text)
    return strlen(s->text);
  if (s->kind != TARN_SX_LIST) {
    tarn_mark m = tarn_arena_mark(cx);
    tarn_buf b = {.cx = cx};
    print_leaf(&b, s);
    tarn_release(cx, m);
    return b.n;
  }
  size_t w = 2;
  for (uint32_t i = 0; i < s->n && w <= limit; i++)
    w += (i > 0) + flat_width(cx, s->kid[i], limit - w);
  return w;
}

static size_t column(const printer *p) { return p->out->n - p->line_start; }

static bool fits(const printer *p, const tarn_sx *s, size_t closing) {
  if (p->width == 0) return true;
  size_t used = column(p) + closing;
  return used < p->width && flat_width(p->out->cx, s, p->width - used) <= p->width - used;
}

static void start_line(printer *p, size_t indent) {
  tarn_buf_add(p->out, "\n", 1);
  p->line_start = p->out->n;
  if (indent > p->width / 2) indent = p->width / 2; /* so that depth costs no more than length */
  for (size_t i = 0; i < indent; i++) tarn_buf_add(p->out, " ", 1);
}

static void open_level(printer *p, const tarn_sx *s) {
  bool flat = (p->stack.n && p->stack.p[p->stack.n - 1].flat) || fits(p, s, p->stack.n);
  level l = {s, 0, column(p), flat};
  tarn_buf_add(p->out, "(", 1);
  tarn_push(p->out->cx, &p->stack, l);
}

static void separate(printer *p, const level *l, const tarn_sx *kid) {
  if (l->next == 0) return;
  bool on_line =
      l->flat || (kid->kind != TARN_SX_LIST && l->list->kid[l->next - 1]->kind != TARN_SX_LIST &&
                  fits(p, kid, p->stack.n + 1));
  if (on_line) tarn_buf_add(p->out, " ", 1);
  else start_line(p, l->indent + 2);
}

static void print_kid(printer *p) {
  level *l = &p->stack.p[p->stack.n - 1];
  if (l->next == l->list->n) {
    tarn_buf_add(p->out, ")", 1);
    p->stack.n--;
    return;
  }
  const tarn_sx *kid = l->list->kid[l->next];
  separate(p, l, kid);
  l->next++;
  if (kid->kind == TARN_SX_LIST) open_level(p, kid);
  else print_leaf(p->out, kid);
}

void tarn_sx_print(tarn_buf *b, const tarn_sx *s, unsigned width) {
  printer p = {.out = b, .width = width < MAX_WIDTH ? width : MAX_WIDTH, .line_start = b->n};
  if (s->kind != TARN_SX_LIST) {
    print_leaf(b, s);
    return;
  }
  for (open_level(&p, s); p.stack.n;) print_kid(&p);
}
