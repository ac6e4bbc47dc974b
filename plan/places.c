/* Machines and places of a program of kernels. */
#include "plan/plan.h"
#include <math.h>

static const char *name_of(const tarn_kprog *p, uint32_t machine) {
  return machine < p->machines.n ? p->machines.hw[machine]->name : "?";
}
/* A buffer that a kernel of a machine touches has to lie where that machine works. */
static void check_touched(const tarn_kprog *p, const tarn_kernel *k, uint32_t buffer) {
  uint32_t place = p->buf[buffer].place;
  if (place != p->machines.place[k->machine])
    tarn_raise(tarn_lang_ctx(p->L), TARN_BAD_INPUT,
               "kernel %s runs on %s and touches b%u, which lies in the memory of %s", k->name,
               name_of(p, k->machine), buffer, name_of(p, place));
}
static void check_kernel(const tarn_kprog *p, const tarn_kernel *k) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  uint32_t n = p->machines.n;
  if (k->machine >= (n ? n : 1))
    tarn_raise(cx, TARN_BAD_INPUT, "kernel %s runs on no machine of the program", k->name);
  if (k->kind != TARN_K_MOVE) {
    for (uint32_t i = 0; i < k->nin && n; i++) check_touched(p, k, k->in[i]);
    for (uint32_t i = 0; i < k->nout && n; i++) check_touched(p, k, k->out[i]);
    return;
  }
  uint32_t from = p->buf[k->in[0]].place, to = p->buf[k->out[0]].place;
  if (from == to || tarn_hw_copy_seconds(&p->machines, from, to, 0) == INFINITY)
    tarn_raise(cx, TARN_BAD_INPUT, "kernel %s copies from the memory of %s to that of %s: no link",
               k->name, name_of(p, from), name_of(p, to));
}
/* An input lies in an output, or in memory of its own. */
static void check_input(const tarn_kprog *p, uint32_t in) {
  tarn_in_place x;
  if (p->buf[p->in[in]].parent != TARN_NONE && !tarn_kprog_in_place(p, false, in, &x))
    tarn_raise(tarn_lang_ctx(p->L), TARN_BAD_INPUT, "b%u is an input, and part of no output",
               p->in[in]);
}
void tarn_kprog_check(const tarn_kprog *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  uint32_t n = p->machines.n;
  for (uint32_t i = 0; i < p->nbuf; i++) {
    const tarn_buffer *b = &p->buf[i];
    bool port = b->kind == TARN_BUF_INPUT || b->kind == TARN_BUF_OUTPUT;
    if (b->place >= (n ? n : 1) || (n && p->machines.place[b->place] != b->place))
      tarn_raise(cx, TARN_BAD_INPUT, "b%u lies in no memory of the program", i);
    if (port && b->place)
      tarn_raise(cx, TARN_BAD_INPUT, "%s lies in the memory of %s, not in the host's", b->name,
                 name_of(p, b->place));
    if (b->parent != TARN_NONE && p->buf[b->parent].place != b->place)
      tarn_raise(cx, TARN_BAD_INPUT, "b%u is part of a buffer in another place", i);
  }
  for (uint32_t i = 0; i < p->nin; i++) check_input(p, i);
  for (uint32_t i = 0; i < p->nker; i++) check_kernel(p, &p->ker[i]);
}
