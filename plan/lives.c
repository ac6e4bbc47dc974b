/* When the buffers of a program's workspace live. */
#include "plan/plan.h"
#include <string.h>

static void touch(const tarn_kprog *p, tarn_life *l, uint32_t b, uint32_t kernel) {
  tarn_life *x = &l[tarn_kprog_root(p, b)];
  if (x->first == TARN_NONE) x->first = kernel;
  x->last = kernel;
}
uint32_t tarn_kprog_lives(const tarn_kprog *p, int64_t align, tarn_life *l) {
  for (uint32_t b = 0; b < p->nbuf; b++) l[b] = (tarn_life){b, TARN_NONE, 0, 0, -1};
  for (uint32_t b = 0; b < p->nbuf; b++) { /* a part may go on behind the whole */
    tarn_life *x = &l[tarn_kprog_root(p, b)];
    x->bytes = tarn_max(x->bytes, tarn_round_up(tarn_buffer_bytes(&p->buf[b]), align));
  }
  for (uint32_t k = 0; k < p->nker; k++) {
    for (uint32_t i = 0; i < p->ker[k].nout; i++) touch(p, l, p->ker[k].out[i], k);
    for (uint32_t i = 0; i < p->ker[k].nin; i++) touch(p, l, p->ker[k].in[i], k);
  }
  uint32_t n = 0;
  for (uint32_t b = 0; b < p->nbuf; b++)
    if (p->buf[b].kind == TARN_BUF_TEMP && p->buf[b].parent == TARN_NONE && l[b].first != TARN_NONE)
      l[n++] = l[b];
  return n;
}
int64_t tarn_lives_bytes(const tarn_life *l, uint32_t n, uint32_t nker, int64_t *live) {
  int64_t most = 0;
  memset(live, 0, nker * sizeof *live);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = l[i].first; k <= l[i].last; k++) live[k] += l[i].bytes;
  for (uint32_t k = 0; k < nker; k++) most = tarn_max(most, live[k]);
  return most;
}
