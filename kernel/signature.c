/* Kernels and schedules as text, and back. A store keeps them, so a measurement means the same in
 * every program and its features can be recomputed. */
#include "kernel/kernel.h"
#include <string.h>

#define MOST_NUMBERS 256 /* elements of a constant whose numbers are part of the kernel */

/* ---- writing ---- */
static void put_ints(tarn_buf *b, const int64_t *v, uint32_t n) {
  tarn_buf_str(b, " (");
  for (uint32_t i = 0; i < n; i++) tarn_buf_fmt(b, i ? " %lld" : "%lld", (long long)v[i]);
  tarn_buf_str(b, ")");
}
static void put_operand(tarn_buf *b, const char *head, tarn_dtype t, const tarn_layout *l,
                        const float *numbers) {
  tarn_buf_fmt(b, "(%s %s", head, tarn_dtype_name(t));
  put_ints(b, l->dim, l->n), put_ints(b, l->stride, l->n);
  if (l->block) tarn_buf_fmt(b, " %u %lld", l->baxis, (long long)l->block);
  for (int64_t i = 0, n = tarn_layout_elems(l); numbers && i < n; i++)
    tarn_buf_fmt(b, i ? " %.9g%s" : " (numbers %.9g%s", (double)numbers[i], i + 1 < n ? "" : ")");
  tarn_buf_str(b, ")");
}
const char *tarn_ksig_text(const tarn_lang *L, tarn_ctx *cx, const tarn_ksig *k) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, k->strict ? "(strict (nest" : "(kernel (nest");
  tarn_payload_print(L, &b, TARN_OP_NEST,
                     tarn_payload_of((tarn_lang *)(uintptr_t)L, TARN_P_NEST, k->nest));
  tarn_buf_str(&b, ")");
  for (uint32_t i = 0; i < k->nin; i++)
    put_operand(&b, k->in_const[i] ? "const" : "in", k->in_type[i], &k->in[i], k->in_numbers[i]);
  for (uint32_t i = 0; i < k->nout; i++) put_operand(&b, "out", k->out_type[i], &k->out[i], NULL);
  tarn_buf_str(&b, ")");
  return b.p;
}
/* ---- reading ---- */
typedef struct reader {
  tarn_lang *L;
  tarn_ctx *cx;
} reader;

static uint32_t get_ints(reader *r, const tarn_sx *s, int64_t *v, int64_t lo) {
  if (s->n > TARN_MAX_DIMS) tarn_sx_error(r->cx, s, "too many dims");
  for (uint32_t i = 0; i < s->n; i++) v[i] = tarn_sx_whole(r->cx, s, i, lo, INT64_C(1) << 40);
  return s->n;
}
static const float *get_numbers(reader *r, const tarn_sx *s, int64_t n) {
  float *v = TARN_ARRAY(r->cx, float, s->n);
  if (n != (int64_t)s->n - 1 || n > MOST_NUMBERS)
    tarn_sx_error(r->cx, s, "%lld numbers are expected", (long long)n);
  for (uint32_t i = 1; i < s->n; i++) {
    const tarn_sx *x = s->kid[i];
    if (x->kind != TARN_SX_INT && x->kind != TARN_SX_REAL)
      tarn_sx_error(r->cx, x, "a number is expected");
    v[i - 1] = x->kind == TARN_SX_INT ? (float)x->i : (float)x->r;
  }
  return v;
}
static const float *get_operand(reader *r, const tarn_sx *s, tarn_dtype *t, tarn_layout *l) {
  *l = (tarn_layout){0};
  if (!tarn_dtype_parse(tarn_sx_kid(r->cx, s, 1, TARN_SX_ATOM, "a type")->text, t))
    tarn_sx_error(r->cx, s->kid[1], "no type");
  l->n = (uint8_t)get_ints(r, tarn_sx_kid(r->cx, s, 2, TARN_SX_LIST, "the dims"), l->dim, 0);
  if (get_ints(r, tarn_sx_kid(r->cx, s, 3, TARN_SX_LIST, "the strides"), l->stride,
               -(INT64_C(1) << 40)) != l->n)
    tarn_sx_error(r->cx, s, "dims and strides differ in number");
  bool numbers = s->n > 4 && tarn_sx_is(s->kid[s->n - 1], "numbers");
  if (s->n > 4u + numbers) {
    if (!l->n) tarn_sx_error(r->cx, s, "nothing to block");
    l->baxis = (uint8_t)tarn_sx_whole(r->cx, s, 4, 0, l->n - 1),
    l->block = tarn_sx_whole(r->cx, s, 5, 1, INT64_C(1) << 30);
  }
  l->offset = tarn_layout_before(l);
  return numbers ? get_numbers(r, s->kid[s->n - 1], tarn_layout_elems(l)) : NULL;
}
static void get_kernel(reader *r, const tarn_sx *s, tarn_ksig *k) {
  *k = (tarn_ksig){.strict = tarn_sx_is(s, "strict")};
  if (!k->strict && !tarn_sx_is(s, "kernel")) tarn_sx_error(r->cx, s, "no kernel");
  const tarn_sx *n = tarn_sx_kid(r->cx, s, 1, TARN_SX_LIST, "a nest");
  uint32_t used;
  k->nest = tarn_payload_get(r->L, tarn_payload_parse(r->L, TARN_OP_NEST, n, &used))->id;
  const tarn_nest *nest = tarn_nest_get(r->L, k->nest);
  for (uint32_t i = 2; i < s->n; i++) {
    const tarn_sx *o = tarn_sx_kid(r->cx, s, i, TARN_SX_LIST, "an operand");
    bool out = tarn_sx_is(o, "out");
    if (out ? k->nout >= TARN_MAX_RESULTS : k->nin >= TARN_MAX_OPERANDS || k->nout)
      tarn_sx_error(r->cx, o, "one too many");
    if (out) get_operand(r, o, &k->out_type[k->nout], &k->out[k->nout]), k->nout++;
    else {
      k->in_const[k->nin] = tarn_sx_is(o, "const");
      k->in_numbers[k->nin] = get_operand(r, o, &k->in_type[k->nin], &k->in[k->nin]);
      if (k->in_numbers[k->nin] && (!k->in_const[k->nin] || k->in_type[k->nin] != TARN_F32))
        tarn_sx_error(r->cx, o, "numbers of what is no constant of f32");
      k->nin++;
    }
  }
  if (k->nin != nest->nchild)
    tarn_sx_error(r->cx, s, "a nest of %u operands with %u", nest->nchild, k->nin);
  const char *wrong = tarn_ksig_wrong(r->L, k);
  if (wrong) tarn_sx_error(r->cx, s, "%s", wrong);
}
void tarn_ksig_read(tarn_lang *L, const tarn_sx *s, tarn_ksig *k) {
  reader r = {L, tarn_lang_ctx(L)};
  get_kernel(&r, s, k);
}
void tarn_ksig_parse(tarn_lang *L, const char *text, size_t n, tarn_ksig *k) {
  reader r = {L, tarn_lang_ctx(L)};
  const tarn_sx *all = tarn_sx_read(r.cx, text, n, "kernel");
  get_kernel(&r, tarn_sx_kid(r.cx, all, 0, TARN_SX_LIST, "a kernel"), k);
}
