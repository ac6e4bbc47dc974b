/* Makes a program of single kernels, each with its own buffers, all of them inputs and outputs. */
#include "plan/plan.h"

static uint32_t add_buffer(tarn_kprog *p, tarn_buf_kind kind, tarn_dtype type, int64_t elems) {
  tarn_buffer *b = &p->buf[p->nbuf];
  *b = (tarn_buffer){.kind = kind, .dtype = type, .parent = TARN_NONE, .term = TARN_NONE};
  b->layout = tarn_layout_row_major(1, &elems);
  b->name = tarn_format(tarn_lang_ctx(p->L), "b%u", p->nbuf);
  return p->nbuf++;
}
static uint32_t add_input(tarn_kprog *p, tarn_dtype type, const tarn_layout *l) {
  p->in[p->nin++] = add_buffer(p, TARN_BUF_INPUT, type, tarn_layout_elems(l) + l->offset);
  return p->in[p->nin - 1];
}
static uint32_t add_output(tarn_kprog *p, tarn_dtype type, const tarn_layout *l) {
  p->out[p->nout++] = add_buffer(p, TARN_BUF_OUTPUT, type, tarn_layout_elems(l) + l->offset);
  return p->out[p->nout - 1];
}
/* Small matrices are part of the code: the kernel reads these instead of the input that stands for
 * its operand. */
static uint32_t add_numbers(tarn_kprog *p, const tarn_layout *l, const float *numbers) {
  int64_t elems = tarn_layout_elems(l);
  tarn_tensor *t = TARN_NEW(tarn_lang_ctx(p->L), tarn_tensor);
  *t = (tarn_tensor){.dtype = TARN_F32, .n = 1, .dim = {elems}, .data = (void *)(uintptr_t)numbers};
  uint32_t b = add_buffer(p, TARN_BUF_CONST, TARN_F32, elems);
  p->buf[b].value = t;
  return b;
}
static void add_kernel(tarn_kprog *p, uint32_t i, const tarn_plan_choice *c) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_ksig *k = tarn_copy(cx, c->sig, sizeof *k);
  const tarn_schedule *s = c->sched;
  tarn_ksig_block(p->L, k, &s, NULL);
  uint32_t *in = TARN_ARRAY(cx, uint32_t, k->nin + 1);
  uint32_t *out = TARN_ARRAY(cx, uint32_t, k->nout);
  for (uint32_t j = 0; j < k->nin; j++) in[j] = add_input(p, k->in_type[j], &k->in[j]);
  for (uint32_t j = 0; j < k->nin; j++)
    if (k->in_numbers[j]) in[j] = add_numbers(p, &k->in[j], k->in_numbers[j]);
  for (uint32_t j = 0; j < k->nout; j++) out[j] = add_output(p, k->out_type[j], &k->out[j]);
  p->ker[i] = (tarn_kernel){.name = tarn_format(cx, "k%u", i),
                            .kind = TARN_K_NEST,
                            .nest = k->nest,
                            .nin = k->nin,
                            .nout = k->nout,
                            .in = in,
                            .out = out,
                            .in_layout = k->in,
                            .out_layout = k->out,
                            .sched = s,
                            .term = TARN_NONE};
}
tarn_kprog *tarn_plan_program(tarn_lang *L, const tarn_hw *hw, const tarn_plan_choice *c,
                              uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_kprog *p = TARN_NEW(cx, tarn_kprog);
  uint32_t most = n * (2 * TARN_MAX_OPERANDS + TARN_MAX_RESULTS);
  *p = (tarn_kprog){.L = L, .hw = hw, .nker = n, .ker = TARN_ARRAY(cx, tarn_kernel, n)};
  p->buf = TARN_ARRAY(cx, tarn_buffer, most);
  p->in = TARN_ARRAY(cx, uint32_t, most);
  p->out = TARN_ARRAY(cx, uint32_t, most);
  for (uint32_t i = 0; i < n; i++) add_kernel(p, i, &c[i]);
  return p;
}
