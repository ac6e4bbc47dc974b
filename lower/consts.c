/* Constants as the kernels read them: computed when need be, laid out, padded with zeros. One at a time, straight to the
 * file, so that a large model's weights are never held twice. */
#include "lower/internal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_all(tarn_ctx *cx, int fd, const char *path, const char *p, size_t n) {
  while (n) {
    ssize_t w = write(fd, p, n < 1u << 30 ? n : 1u << 30);
    if (w < 0 && errno == EINTR) continue;
    if (w < 0) tarn_raise(cx, TARN_IO, "%s: %s", path, strerror(errno));
    p += w, n -= (size_t)w;
  }
}

static bool row_major(const tarn_layout *l) {
  tarn_layout r = tarn_layout_row_major(l->n, l->dim);
  return tarn_layout_equal(&r, l);
}

/* Every element of t to its place. */
static void scatter(const tarn_layout *l, const tarn_tensor *t, char *to) {
  size_t size = tarn_dtype_size(t->dtype);
  int64_t idx[TARN_MAX_DIMS] = {0}, n = tarn_tensor_count(t);
  for (int64_t i = 0; i < n; i++) {
    memcpy(to + (size_t)tarn_layout_at(l, idx) * size, (const char *)t->data + (size_t)i * size, size);
    for (uint32_t d = l->n; d-- > 0 && ++idx[d] == l->dim[d];) idx[d] = 0;
  }
}

static const tarn_tensor *value_of(const tarn_kprog *p, const tarn_buffer *b) {
  if (b->value) return b->value;
  const tarn_node *n = tarn_term_get(p->L, b->term);
  if (n->op == TARN_OP_CONST) return tarn_payload_get(p->L, n->payload)->tensor;
  tarn_tensor *t;
  tarn_eval(p->L, &b->term, 1, NULL, 0, TARN_STRICT, NULL, &t);
  return t;
}

const double *low_const_few(const tarn_kprog *p, uint32_t i, uint32_t *n) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_buffer *b = &p->buf[i];
  int64_t elems = low_bytes(b) / (int64_t)sizeof(float);
  if (b->kind != TARN_BUF_CONST || b->parent != TARN_NONE || b->dtype != TARN_F32 || elems < 1 || elems > LOW_FEW) return NULL;
  float memory[LOW_FEW] = {0};
  scatter(&b->layout, value_of(p, b), (char *)memory);
  double *few = TARN_ARRAY(cx, double, elems);
  for (int64_t k = 0; k < elems; k++) few[k] = memory[k];
  *n = (uint32_t)elems;
  return few;
}

typedef struct laid_out {
  int fd;
  const char *path, *data;
  size_t n;
} laid_out;
static void write_laid_out(tarn_ctx *cx, void *arg) {
  const laid_out *l = arg;
  write_all(cx, l->fd, l->path, l->data, l->n);
}

void low_const_write(const tarn_kprog *p, uint32_t i, int fd, const char *path) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_buffer *b = &p->buf[i];
  tarn_mark before = tarn_arena_mark(cx);
  const tarn_tensor *t = value_of(p, b);
  size_t bytes = (size_t)low_bytes(b);
  int64_t count = 1;
  for (uint32_t d = 0; d < b->layout.n; d++) count *= b->layout.dim[d];
  if (t->dtype != b->dtype || tarn_tensor_count(t) != count)
    tarn_raise(cx, TARN_INTERNAL, "lower: constant %u is of another type", i);
  if (row_major(&b->layout)) {
    write_all(cx, fd, path, t->data, bytes);
    tarn_drop(cx, t->data, before);
    return;
  }
  char *laid = calloc(bytes ? bytes : 1, 1);
  if (!laid) tarn_raise(cx, TARN_MEMORY, "lower: no memory for a constant of %zu bytes", bytes);
  scatter(&b->layout, t, laid);
  laid_out l = {fd, path, laid, bytes};
  tarn_status st = tarn_protect(cx, write_laid_out, &l);
  free(laid);
  tarn_drop(cx, t->data, before);
  if (st != TARN_OK) tarn_reraise(cx, st);
}
