/* What a GPU's program copies between the host's memory and its own, where kernels run on both.
 *
 * A buffer is valid in the host's memory, in the device's, or in both. Who touches it where it is
 * not valid has it copied: to the device before a segment (kernels of the device that no other
 * stands between), to the host behind the last one. Constants are in both from the beginning. */
#include "plan/plan.h"

enum { ON_HOST = 1, ON_DEVICE = 2 };
typedef struct walk {
  const tarn_kprog *p;
  tarn_host_copies *out;
  uint8_t *valid; /* of each buffer that owns its storage */
  uint32_t kernel;
} walk;

uint32_t tarn_kprog_root(const tarn_kprog *p, uint32_t b) {
  uint32_t steps = 0;
  while (p->buf[b].parent != TARN_NONE) {
    b = p->buf[b].parent;
    if (b >= p->nbuf || ++steps > p->nbuf)
      tarn_raise(tarn_lang_ctx(p->L), TARN_INTERNAL, "plan: bad parent of a buffer");
  }
  return b;
}
int64_t tarn_buffer_bytes(const tarn_buffer *b) {
  int64_t reach = tarn_layout_elems(&b->layout) + b->layout.offset;
  return tarn_max(reach, b->room) * (int64_t)tarn_dtype_size(b->dtype);
}
/* A part may go on behind the whole. */
static int64_t bytes_of(const tarn_kprog *p, uint32_t root) {
  int64_t bytes = 0;
  for (uint32_t b = 0; b < p->nbuf; b++)
    if (tarn_kprog_root(p, b) == root) bytes = tarn_max(bytes, tarn_buffer_bytes(&p->buf[b]));
  return bytes;
}
static void touch(walk *w, uint32_t buf, uint8_t where, bool writes) {
  const tarn_kprog *p = w->p;
  uint32_t root = tarn_kprog_root(p, buf);
  tarn_buf_kind kind = p->buf[root].kind;
  if (kind == TARN_BUF_CONST) return;
  if (where == ON_HOST && kind == TARN_BUF_TEMP) w->out->works = true;
  if (w->valid[root] && !(w->valid[root] & where)) {
    bool send = where == ON_DEVICE, last = w->kernel == p->nker;
    tarn_host_copy c = {.kernel = w->kernel,
                        .segment = w->out->nsegment - 1,
                        .buffer = root,
                        .bytes = bytes_of(p, root),
                        .send = send,
                        .port = send ? kind == TARN_BUF_INPUT : last};
    tarn_push(tarn_lang_ctx(p->L), &w->out->copy, c);
    w->valid[root] |= where;
  }
  if (writes) w->valid[root] = where;
}
const tarn_host_copies *tarn_kprog_copies(const tarn_kprog *p) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_host_copies *out = TARN_NEW(cx, tarn_host_copies);
  walk w = {.p = p, .out = out, .valid = TARN_ARRAY(cx, uint8_t, p->nbuf + 1)};
  for (uint32_t i = 0; i < p->nin; i++) w.valid[tarn_kprog_root(p, p->in[i])] = ON_HOST;
  for (; w.kernel < p->nker; w.kernel++) {
    const tarn_kernel *k = &p->ker[w.kernel];
    uint8_t where = k->kind == TARN_K_NEST ? ON_DEVICE : ON_HOST;
    out->nsegment += where == ON_DEVICE && (!w.kernel || k[-1].kind != TARN_K_NEST);
    for (uint32_t i = 0; i < k->nin; i++) touch(&w, k->in[i], where, false);
    for (uint32_t i = 0; i < k->nout; i++) touch(&w, k->out[i], where, true);
  }
  for (uint32_t i = 0; i < p->nout; i++) touch(&w, p->out[i], ON_HOST, false);
  return out;
}
double tarn_kprog_copy_seconds(const tarn_kprog *p, const tarn_host_copies *c) {
  double seconds = 0;
  for (uint32_t i = 0; i < c->copy.n; i++) {
    const tarn_host_copy *x = &c->copy.p[i];
    if (!x->port) seconds += tarn_hw_link_seconds(&p->hw->link, x->send, (double)x->bytes);
  }
  return seconds;
}
