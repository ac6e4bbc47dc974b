/* A program of kernels as text, and back: program.tarn. It does not contain the values of
 * constants. */
#include "plan/plan.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"input", "output", "const", "temp"};

/* ---- writing ---- */
static void print_ints(tarn_buf *b, const char *head, const int64_t *v, uint32_t n) {
  tarn_buf_fmt(b, " (%s", head);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, " %lld", (long long)v[i]);
  tarn_buf_str(b, ")");
}
static void print_layout(tarn_buf *b, const tarn_layout *l) {
  print_ints(b, "dims", l->dim, l->n);
  print_ints(b, "strides", l->stride, l->n);
  if (l->offset) tarn_buf_fmt(b, " (offset %lld)", (long long)l->offset);
  if (l->block) tarn_buf_fmt(b, " (block %u %lld)", l->baxis, (long long)l->block);
}
static void print_layouts(tarn_buf *b, const char *head, const tarn_layout *l, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    tarn_buf_fmt(b, "\n    (%s", head);
    print_layout(b, &l[i]);
    tarn_buf_str(b, ")");
  }
}
/* (HEAD NAME) of a machine, where there are several. */
static void print_machine(const tarn_kprog *p, tarn_buf *b, const char *head, uint32_t machine) {
  if (p->machines.n < 2) return;
  const char *name = p->machines.hw[machine]->name;
  tarn_buf_fmt(b, " (%s ", head);
  tarn_sx_name(b, name, strlen(name));
  tarn_buf_str(b, ")");
}
static void print_numbers(tarn_buf *b, const char *head, const uint32_t *v, uint32_t n) {
  tarn_buf_fmt(b, "(%s", head);
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, " b%u", v[i]);
  tarn_buf_str(b, ")");
}
static void print_body(const tarn_kprog *p, tarn_buf *b, const tarn_kernel *k) {
  tarn_buf_str(b, "\n    ");
  if (k->kind == TARN_K_NEST)
    tarn_payload_print(p->L, b, TARN_OP_NEST, tarn_payload_of(p->L, TARN_P_NEST, k->nest));
  else if (k->kind == TARN_K_MOVE) tarn_buf_str(b, "(move)");
  else {
    tarn_buf_str(b, "(term ");
    tarn_term_print(p->L, b, k->term);
    tarn_buf_str(b, ")");
  }
}
static void print_kernel(const tarn_kprog *p, tarn_buf *b, const tarn_kernel *k) {
  tarn_buf_str(b, "\n  (kernel ");
  tarn_sx_name(b, k->name, strlen(k->name));
  print_machine(p, b, "on", k->machine);
  tarn_buf_str(b, "\n    ");
  print_numbers(b, "in", k->in, k->nin);
  tarn_buf_str(b, " ");
  print_numbers(b, "out", k->out, k->nout);
  tarn_buf_str(b, " (price ");
  tarn_buf_double(b, k->price);
  tarn_buf_str(b, k->copy ? ") (copy)" : ")");
  print_body(p, b, k);
  print_layouts(b, "operand", k->in_layout, k->nin);
  print_layouts(b, "result", k->out_layout, k->nout);
  if (k->kind == TARN_K_NEST) {
    tarn_buf_str(b, "\n    ");
    tarn_schedule_print(b, k->sched);
  }
  tarn_buf_str(b, ")");
}
static void print_buffer(const tarn_kprog *p, tarn_buf *b, uint32_t i) {
  const tarn_buffer *x = &p->buf[i];
  tarn_buf_fmt(b, "\n  (buffer b%u %s %s", i, kinds[x->kind], tarn_dtype_name(x->dtype));
  if (x->name) {
    tarn_buf_str(b, " (name ");
    tarn_sx_string(b, x->name, strlen(x->name));
    tarn_buf_str(b, ")");
  }
  if (x->parent != TARN_NONE) tarn_buf_fmt(b, " (in b%u)", x->parent);
  if (x->room) tarn_buf_fmt(b, " (room %lld)", (long long)x->room);
  print_machine(p, b, "place", x->place);
  print_layout(b, &x->layout);
  tarn_buf_str(b, ")");
}
void tarn_kprog_print(const tarn_kprog *p, tarn_buf *b) {
  tarn_buf_str(b, "(kernels (hw ");
  tarn_sx_name(b, p->hw->name, strlen(p->hw->name));
  tarn_buf_str(b, ")\n  ");
  print_numbers(b, "inputs", p->in, p->nin);
  tarn_buf_str(b, " ");
  print_numbers(b, "outputs", p->out, p->nout);
  for (uint32_t i = 0; i < p->nbuf; i++) print_buffer(p, b, i);
  for (uint32_t i = 0; i < p->nker; i++) print_kernel(p, b, &p->ker[i]);
  tarn_buf_str(b, ")\n");
}

/* ---- reading ---- */
typedef struct reader {
  tarn_kprog *p;
  tarn_lang *L;
  tarn_ctx *cx;
} reader;

static const tarn_sx *item(reader *r, const tarn_sx *s, uint32_t i, const char *what) {
  if (i >= s->n) tarn_sx_error(r->cx, s, "%s is expected", what);
  return s->kid[i];
}
static int64_t int_between(reader *r, const tarn_sx *s, int64_t lo, int64_t hi) {
  if (s->kind != TARN_SX_INT || s->i < lo || s->i > hi)
    tarn_sx_error(r->cx, s, "an integer from %lld to %lld is expected", (long long)lo,
                  (long long)hi);
  return s->i;
}
static uint32_t read_ints(reader *r, const tarn_sx *s, int64_t *v, int64_t lo) {
  if (s->n - 1 > TARN_MAX_DIMS) tarn_sx_error(r->cx, s, "too many dims");
  for (uint32_t i = 1; i < s->n; i++) v[i - 1] = int_between(r, s->kid[i], lo, INT64_C(1) << 40);
  return s->n - 1;
}
/* Takes f if it is a part of a layout. */
static bool read_layout(reader *r, const tarn_sx *f, tarn_layout *l) {
  const int64_t most = INT64_C(1) << 40;
  if (tarn_sx_is(f, "dims")) l->n = (uint8_t)read_ints(r, f, l->dim, 0);
  else if (tarn_sx_is(f, "strides")) {
    if (read_ints(r, f, l->stride, -most) != l->n)
      tarn_sx_error(r->cx, f, "dims and strides differ in number");
  } else if (tarn_sx_is(f, "offset"))
    l->offset = int_between(r, item(r, f, 1, "an offset"), 0, most);
  else if (tarn_sx_is(f, "block")) {
    l->baxis = (uint8_t)int_between(r, item(r, f, 1, "a dim"), 0, l->n - 1);
    l->block = int_between(r, item(r, f, 2, "a size"), 1, most);
  } else return false;
  return true;
}
static uint32_t read_buffer_name(reader *r, const tarn_sx *s) {
  char *end = NULL;
  unsigned long v =
      s->kind == TARN_SX_ATOM && s->text[0] == 'b' ? strtoul(s->text + 1, &end, 10) : 0;
  if (!end || *end || end == s->text + 1 || v >= r->p->nbuf)
    tarn_sx_error(r->cx, s, "a buffer is expected, b0 to b%u", r->p->nbuf - 1);
  return (uint32_t)v;
}
static uint32_t *read_buffers(reader *r, const tarn_sx *s, uint32_t *n) {
  uint32_t *v = TARN_ARRAY(r->cx, uint32_t, s->n);
  for (*n = 0; *n + 1 < s->n; ++*n) v[*n] = read_buffer_name(r, s->kid[*n + 1]);
  return v;
}
static uint32_t read_machine(reader *r, const tarn_sx *s) {
  const tarn_sx *name = item(r, s, 1, "a machine");
  for (uint32_t i = 0; i < r->p->machines.n; i++)
    if (name->kind != TARN_SX_LIST && !strcmp(r->p->machines.hw[i]->name, name->text)) return i;
  tarn_sx_error(r->cx, name, "no machine of %s", r->p->hw->name);
}
static void read_buffer(reader *r, const tarn_sx *s, tarn_buffer *b) {
  const tarn_sx *kind = item(r, s, 2, "a kind"), *type = item(r, s, 3, "a type");
  uint32_t k = 0;
  *b = (tarn_buffer){.parent = TARN_NONE, .term = TARN_NONE};
  while (k < 4 && (kind->kind != TARN_SX_ATOM || strcmp(kinds[k], kind->text) != 0)) k++;
  if (k == 4) tarn_sx_error(r->cx, kind, "input, output, const or temp is expected");
  b->kind = (tarn_buf_kind)k;
  if (type->kind != TARN_SX_ATOM || !tarn_dtype_parse(type->text, &b->dtype))
    tarn_sx_error(r->cx, type, "a type is expected");
  for (uint32_t i = 4; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (read_layout(r, f, &b->layout)) continue;
    if (tarn_sx_is(f, "name")) b->name = tarn_strdup(r->cx, item(r, f, 1, "a name")->text);
    else if (tarn_sx_is(f, "in")) b->parent = read_buffer_name(r, item(r, f, 1, "a buffer"));
    else if (tarn_sx_is(f, "room"))
      b->room = int_between(r, item(r, f, 1, "a number"), 1, INT64_C(1) << 40);
    else if (tarn_sx_is(f, "place")) b->place = read_machine(r, f);
    else tarn_sx_error(r->cx, f, "buffer: unknown form");
  }
  if ((b->kind == TARN_BUF_INPUT || b->kind == TARN_BUF_OUTPUT) && !b->name)
    tarn_sx_error(r->cx, s, "an input or output needs its (name …)");
}
static uint32_t read_nest(reader *r, const tarn_sx *s) {
  tarn_sx list = *s;
  const tarn_sx *kid[2] = {s->kid[0], s};
  uint32_t used;
  list.kid = (tarn_sx **)(uintptr_t)kid, list.n = 2;
  return tarn_payload_get(r->L, tarn_payload_parse(r->L, TARN_OP_NEST, &list, &used))->id;
}
static const tarn_schedule *read_schedule(const reader *r, const tarn_sx *s, uint32_t nest) {
  const tarn_nest *n = tarn_nest_get(r->L, nest);
  const tarn_schedule *out = tarn_schedule_read(r->L, n, s);
  tarn_schedule_check(r->L, n, out);
  return out;
}
static void read_walked(reader *r, const tarn_sx *s, tarn_layout *l, uint32_t *n, uint32_t most) {
  if (*n >= most) tarn_sx_error(r->cx, s, "more layouts than buffers");
  for (uint32_t i = 1; i < s->n; i++)
    if (!read_layout(r, s->kid[i], &l[*n])) tarn_sx_error(r->cx, s->kid[i], "no layout");
  ++*n;
}
static void read_kernel(reader *r, const tarn_sx *s, tarn_kernel *k) {
  uint32_t in = 0, out = 0;
  tarn_layout *il = NULL, *ol = NULL;
  bool body = false;
  *k = (tarn_kernel){.term = TARN_NONE};
  k->name = tarn_strdup(r->cx, item(r, s, 1, "a name")->text);
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (tarn_sx_is(f, "on")) k->machine = read_machine(r, f);
    else if (tarn_sx_is(f, "in")) {
      k->in = read_buffers(r, f, &k->nin);
      k->in_layout = il = TARN_ARRAY(r->cx, tarn_layout, k->nin + 1);
    } else if (tarn_sx_is(f, "out")) {
      k->out = read_buffers(r, f, &k->nout);
      k->out_layout = ol = TARN_ARRAY(r->cx, tarn_layout, k->nout + 1);
    } else if (tarn_sx_is(f, "price")) k->price = item(r, f, 1, "seconds")->r;
    else if (tarn_sx_is(f, "copy")) k->copy = true;
    else if (tarn_sx_is(f, "stages")) k->kind = TARN_K_NEST, k->nest = read_nest(r, f), body = true;
    else if (tarn_sx_is(f, "move")) k->kind = TARN_K_MOVE, body = true;
    else if (tarn_sx_is(f, "term")) {
      k->kind = TARN_K_OPAQUE, body = true;
      k->term = tarn_term_parse(r->L, item(r, f, 1, "a term"));
      k->payload = tarn_term_get(r->L, k->term)->payload;
    } else if (tarn_sx_is(f, "operand")) read_walked(r, f, il, &in, k->nin);
    else if (tarn_sx_is(f, "result")) read_walked(r, f, ol, &out, k->nout);
    else if (tarn_sx_is(f, "schedule") && body && k->kind == TARN_K_NEST)
      k->sched = read_schedule(r, f, k->nest);
    else tarn_sx_error(r->cx, f, "kernel %s: unknown form", k->name);
  }
  if (!body || in != k->nin || out != k->nout || !out)
    tarn_sx_error(r->cx, s, "kernel %s: what it does, its buffers and their layouts are needed",
                  k->name);
  if (k->kind == TARN_K_NEST && tarn_nest_get(r->L, k->nest)->nchild != k->nin)
    tarn_sx_error(r->cx, s, "kernel %s: %u operands", k->name, k->nin);
  if (k->nout > TARN_MAX_RESULTS || (k->kind == TARN_K_MOVE && (k->nin != 1 || k->nout != 1)))
    tarn_sx_error(r->cx, s, "kernel %s: too many buffers", k->name);
  if (k->kind == TARN_K_NEST && !k->sched)
    tarn_sx_error(r->cx, s, "kernel %s: a schedule is needed", k->name);
}
/* A text may say what no program has: buffers inside one another, kernels that reach beyond them.
 */
static uint32_t home(const reader *r, const tarn_sx *s, uint32_t b) {
  uint32_t steps = 0;
  for (; r->p->buf[b].parent != TARN_NONE; b = r->p->buf[b].parent)
    if (++steps > r->p->nbuf) tarn_sx_error(r->cx, s, "b%u lies in itself", b);
  return b;
}
/* One past the last element. */
static int64_t end_of(const reader *r, const tarn_sx *s, const tarn_layout *l) {
  double reach = (double)l->offset + (double)l->block;
  for (uint32_t d = 0; d < l->n; d++) reach += fabs((double)l->dim[d] * (double)l->stride[d]);
  if (reach > 0x1p48) tarn_sx_error(r->cx, s, "a layout of too many elements");
  if (tarn_layout_before(l) > l->offset) tarn_sx_error(r->cx, s, "a layout that begins below 0");
  return tarn_layout_elems(l) + l->offset;
}
static void check_extents(const reader *r, const tarn_sx *s) {
  const tarn_kprog *p = r->p;
  int64_t *room = TARN_ARRAY(r->cx, int64_t, p->nbuf + 1);
  for (uint32_t b = 0; b < p->nbuf; b++) { /* a part may go on behind the whole */
    uint32_t h = home(r, s, b);
    room[h] = tarn_max(room[h], end_of(r, s, &p->buf[b].layout));
  }
  for (uint32_t i = 0; i < p->nker; i++) {
    const tarn_kernel *k = &p->ker[i];
    for (uint32_t j = 0; j < k->nin + k->nout; j++) {
      uint32_t b = j < k->nin ? k->in[j] : k->out[j - k->nin];
      const tarn_layout *l = j < k->nin ? &k->in_layout[j] : &k->out_layout[j - k->nin];
      if (end_of(r, s, l) > room[home(r, s, b)])
        tarn_sx_error(r->cx, s, "kernel %s goes beyond b%u", k->name, b);
    }
  }
}
tarn_kprog *tarn_kprog_parse(tarn_lang *L, const tarn_hw *hw, const tarn_sx *s) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_kprog *p = TARN_NEW(cx, tarn_kprog);
  reader r = {p, L, cx};
  if (!tarn_sx_is(s, "kernels")) tarn_sx_error(cx, s, "(kernels …) is expected");
  *p = (tarn_kprog){.L = L, .hw = hw, .machines = tarn_hw_machines(hw)};
  p->buf = TARN_ARRAY(cx, tarn_buffer, s->n), p->ker = TARN_ARRAY(cx, tarn_kernel, s->n);
  for (uint32_t i = 1; i < s->n; i++) p->nbuf += tarn_sx_is(s->kid[i], "buffer");
  for (uint32_t i = 1, b = 0; i < s->n; i++) {
    const tarn_sx *f = s->kid[i];
    if (tarn_sx_is(f, "buffer")) {
      if (read_buffer_name(&r, item(&r, f, 1, "a buffer")) != b)
        tarn_sx_error(cx, f, "b%u is expected", b);
      read_buffer(&r, f, &p->buf[b++]);
    } else if (tarn_sx_is(f, "kernel")) read_kernel(&r, f, &p->ker[p->nker++]);
    else if (tarn_sx_is(f, "inputs")) p->in = read_buffers(&r, f, &p->nin);
    else if (tarn_sx_is(f, "outputs")) p->out = read_buffers(&r, f, &p->nout);
    else if (!tarn_sx_is(f, "hw")) tarn_sx_error(cx, f, "a buffer or a kernel is expected");
    else if (strcmp(item(&r, f, 1, "a name")->text, hw->name) != 0)
      tarn_sx_error(cx, f, "a program for %s, not for %s", f->kid[1]->text, hw->name);
  }
  check_extents(&r, s);
  tarn_kprog_check(p);
  return p;
}
