/* Runs a program of kernels in the interpreter. Every kernel is evaluated as a nest on flat
 * buffers, with the layouts and maps that the emitters use. Schedules are ignored: they may only
 * change the order of sums. */
#include "plan/internal.h"
#include <string.h>

typedef struct machine {
  const tarn_kprog *p;
  tarn_ctx *cx;
  tarn_mode mode;
  tarn_tensor **mem; /* per buffer without parent: flat */
} machine;

static tarn_tensor *flat(machine *m, uint32_t b) {
  uint32_t h = tarn_kprog_root(m->p, b);
  if (!m->mem[h]) {
    int64_t n = 0;
    for (uint32_t i = 0; i < m->p->nbuf; i++) { /* a part may go on behind the whole */
      const tarn_layout *l = &m->p->buf[i].layout;
      if (tarn_kprog_root(m->p, i) == h && tarn_layout_elems(l) + l->offset > n)
        n = tarn_layout_elems(l) + l->offset;
    }
    tarn_dtype t = m->p->buf[h].dtype;
    m->mem[h] = tarn_tensor_new(
        m->cx, m->mode == TARN_WIDE && tarn_dtype_is_float(t) ? TARN_F64 : t, 1, &n);
  }
  return m->mem[h];
}
/* Copies between a row-major tensor and its place in a buffer. */
static void place(machine *m, uint32_t b, const tarn_layout *l, tarn_tensor *t, bool store) {
  tarn_tensor *f = flat(m, b);
  int64_t idx[TARN_MAX_DIMS] = {0}, n = tarn_tensor_count(t);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = tarn_layout_at(l, idx);
    if (store) tarn_tensor_set(f, at, tarn_tensor_get(t, i));
    else tarn_tensor_set(t, i, tarn_tensor_get(f, at));
    for (uint32_t d = l->n; d-- > 0;) {
      if (++idx[d] < l->dim[d]) break;
      idx[d] = 0;
    }
  }
}
static tarn_tensor *view_of(machine *m, uint32_t b, const tarn_layout *l) {
  tarn_tensor *t = tarn_tensor_new(m->cx, flat(m, b)->dtype, l->n, l->dim);
  place(m, b, l, t, false);
  return t;
}

static void run_kernel(machine *m, const tarn_kernel *k, tarn_opaque_fn *opaque) {
  if (k->kind == TARN_K_MOVE) {
    place(m, k->out[0], &k->out_layout[0], view_of(m, k->in[0], &k->in_layout[0]), true);
    return;
  }
  tarn_lang *L = m->p->L;
  tarn_binding *in = TARN_ARRAY(m->cx, tarn_binding, k->nin + 1);
  tarn_term *kid = TARN_ARRAY(m->cx, tarn_term, k->nin + 1);
  for (uint32_t i = 0; i < k->nin; i++) {
    tarn_tensor *t = view_of(m, k->in[i], &k->in_layout[i]);
    in[i] = (tarn_binding){tarn_format(m->cx, "%s.%u", k->name, i), t};
    kid[i] = tarn_input(L, in[i].name, tarn_type_tensor(L, t->dtype, t->n, t->n, t->dim));
  }
  tarn_term root =
      k->kind == TARN_K_NEST
          ? tarn_mk(L, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, k->nest), kid, k->nin)
          : tarn_mk(L, tarn_term_get(L, k->term)->op, k->payload, kid, k->nin);
  tarn_term result[TARN_MAX_RESULTS];
  tarn_tensor *out[TARN_MAX_RESULTS];
  for (uint32_t i = 0; i < k->nout; i++) {
    int64_t nth = i;
    result[i] = tarn_term_type(L, root)->tuple
                    ? tarn_mk(L, TARN_OP_NTH, tarn_payload_ints(L, 1, &nth), &root, 1)
                    : root;
  }
  tarn_eval(L, result, k->nout, in, k->nin, m->mode, opaque, out);
  for (uint32_t i = 0; i < k->nout; i++) place(m, k->out[i], &k->out_layout[i], out[i], true);
}

void tarn_kprog_step(const tarn_kprog *p, uint32_t kernel, tarn_tensor **mem, tarn_mode mode,
                     tarn_opaque_fn *opaque) {
  machine m = {.p = p, .cx = tarn_lang_ctx(p->L), .mode = mode, .mem = mem};
  run_kernel(&m, &p->ker[kernel], opaque);
}
void tarn_kprog_eval(const tarn_kprog *p, const tarn_binding *in, uint32_t nin, tarn_mode mode,
                     tarn_opaque_fn *opaque, tarn_tensor **out) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  machine m = {.p = p, .cx = cx, .mode = mode, .mem = TARN_ARRAY(cx, tarn_tensor *, p->nbuf)};
  tarn_kprog_check(p);
  for (uint32_t i = 0; i < p->nbuf; i++) {
    const tarn_buffer *b = &p->buf[i];
    if (b->kind == TARN_BUF_CONST) {
      tarn_tensor *v = NULL;
      if (b->value) v = tarn_copy(cx, b->value, sizeof *v);
      else tarn_eval(p->L, &b->term, 1, NULL, 0, mode, opaque, &v);
      place(&m, i, &b->layout, v, true);
    }
    for (uint32_t j = 0; j < nin && b->kind == TARN_BUF_INPUT; j++)
      if (!strcmp(in[j].name, b->name)) {
        tarn_tensor t = *in[j].value;
        place(&m, i, &b->layout, &t, true);
      }
  }
  for (uint32_t i = 0; i < p->nker; i++) run_kernel(&m, &p->ker[i], opaque);
  for (uint32_t i = 0; i < p->nout; i++) out[i] = view_of(&m, p->out[i], &p->buf[p->out[i]].layout);
}
