/* Is a kernel that was read possible?
 *
 * The nest over operands of these shapes and types has results of a shape and type of its own,
 * which are those of the signature; every index of a read lies in its operand (index maps and rows
 * of tables say so when they are read); no two elements of a result have one place; and no buffer
 * is larger than anything that could be there. Then a program of it touches nothing else. */
#include "kernel/kernel.h"
#include <string.h>

#define MOST ((int64_t)1 << 40) /* elements of a buffer */

typedef struct axis {
  int64_t n, step;
} axis;
/* The axes of a layout along which an address changes, by steps ascending. */
static uint32_t axes_of(const tarn_layout *l, axis *a) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < l->n; d++) {
    bool blocked = l->block && d == l->baxis;
    int64_t extent = blocked ? tarn_ceildiv(l->dim[d], l->block) : l->dim[d];
    int64_t step = l->stride[d] < 0 ? -l->stride[d] : l->stride[d];
    if (extent > 1) a[n++] = (axis){extent, step};
    if (blocked && l->block > 1) a[n++] = (axis){l->block, 1};
  }
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = i; k > 0 && a[k].step < a[k - 1].step; k--) {
      axis t = a[k];
      a[k] = a[k - 1];
      a[k - 1] = t;
    }
  return n;
}
/* From the first element to the last; MOST or more: too far. alone: each element has a place of its
 * own, which is seen where each axis steps over all of those before it. */
static int64_t length_of(const tarn_layout *l, bool *alone) {
  axis a[TARN_MAX_DIMS + 1];
  uint32_t n = axes_of(l, a);
  int64_t last = 0;
  int64_t by;
  *alone = true;
  for (uint32_t i = 0; i < n; i++) {
    if (a[i].step <= last) *alone = false;
    if (__builtin_mul_overflow(a[i].n - 1, a[i].step, &by) || by >= MOST - last) return MOST;
    last += by;
  }
  return last + 1;
}
static const char *wrong_layout(tarn_ctx *cx, const tarn_layout *l, bool out, uint32_t at) {
  const char *what = out ? "out" : "in";
  bool alone;
  for (uint32_t d = 0; d < l->n; d++)
    if (!l->dim[d]) return NULL;
  if (length_of(l, &alone) >= MOST) return tarn_format(cx, "%s %u is too large", what, at);
  if (out && !alone) return tarn_format(cx, "out %u: elements share a place", at);
  return NULL;
}
static const char *wrong_result(tarn_lang *L, const tarn_ksig *k, uint32_t at, uint32_t type) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  const tarn_type *t = tarn_type_get(L, type);
  const tarn_layout *l = &k->out[at];
  if (t->dtype == k->out_type[at] && t->n == l->n && !memcmp(t->dim, l->dim, l->n * sizeof *l->dim))
    return NULL;
  return tarn_format(cx, "out %u is %s, the nest computes %s", at,
                     tarn_dims_text(cx, k->out_type[at], l->n, l->dim),
                     tarn_dims_text(cx, t->dtype, t->n, t->dim));
}
const char *tarn_ksig_wrong(tarn_lang *L, const tarn_ksig *k) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  uint32_t kid[TARN_MAX_OPERANDS];
  const char *why = NULL;
  if (!tarn_nest_emittable(L, k->nest)) return "more operands than a kernel may have";
  for (uint32_t i = 0; i < k->nin && !why; i++) {
    why = wrong_layout(cx, &k->in[i], false, i);
    kid[i] = tarn_type_tensor(L, k->in_type[i], 0, k->in[i].n, k->in[i].dim);
  }
  for (uint32_t i = 0; i < k->nout && !why; i++) why = wrong_layout(cx, &k->out[i], true, i);
  if (why) return why;
  uint32_t nest = tarn_payload_of(L, TARN_P_NEST, k->nest);
  uint32_t type = tarn_type_of(L, TARN_OP_NEST, nest, kid, k->nin);
  if (type == TARN_NONE) return tarn_strdup(cx, tarn_message(cx));
  const tarn_type *t = tarn_type_get(L, type);
  uint32_t n = t->tuple ? t->nelem : 1;
  if (n != k->nout) return tarn_format(cx, "a nest of %u results with %u", n, k->nout);
  for (uint32_t i = 0; i < n && !why; i++)
    why = wrong_result(L, k, i, t->tuple ? t->elem[i] : type);
  return why;
}
