/* Inputs that lie in outputs: read off the buffers of a program. */
#include "plan/plan.h"

bool tarn_in_place_axis(uint32_t n, const int64_t *in, const int64_t *out, uint32_t *axis) {
  uint32_t differ = 0;
  for (uint32_t d = 0; d < n; d++) {
    if (in[d] == out[d]) continue;
    *axis = d;
    differ++;
  }
  return differ == 1 && in[*axis] < out[*axis];
}
static int64_t rows_of(const tarn_buffer *b, uint32_t axis) {
  int64_t row = 1;
  for (uint32_t d = 0; d < b->layout.n; d++)
    if (d != axis) row *= b->layout.dim[d];
  return row && b->room ? b->room / row : b->layout.dim[axis];
}
static bool lies_in(const tarn_kprog *p, uint32_t in, tarn_in_place *x) {
  const tarn_buffer *b = &p->buf[p->in[in]];
  uint32_t out = 0;
  *x = (tarn_in_place){.in = in};
  while (out < p->nout && (b->parent == TARN_NONE || p->out[out] != b->parent)) out++;
  if (out == p->nout) return false;
  const tarn_buffer *whole = &p->buf[b->parent];
  if (b->layout.n != whole->layout.n ||
      !tarn_in_place_axis(b->layout.n, b->layout.dim, whole->layout.dim, &x->axis))
    return false;
  x->out = out;
  x->rows = rows_of(whole, x->axis);
  x->filled = b->layout.dim[x->axis];
  x->added = whole->layout.dim[x->axis] - x->filled;
  return true;
}
bool tarn_kprog_in_place(const tarn_kprog *p, bool output, uint32_t port, tarn_in_place *x) {
  for (uint32_t i = 0; output && i < p->nin; i++)
    if (lies_in(p, i, x) && x->out == port) return true;
  return !output && lies_in(p, port, x);
}
tarn_layout tarn_in_place_layout(const tarn_in_place *x, uint32_t n, const int64_t *dim) {
  tarn_layout l = tarn_layout_row_major(n, dim);
  int64_t step = 1;
  for (uint32_t d = n; d-- > 0;) {
    l.stride[d] = step;
    step *= d == x->axis ? x->rows : dim[d];
  }
  return l;
}
