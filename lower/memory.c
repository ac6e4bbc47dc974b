/* Memory plan: offsets in one workspace for the temporary buffers, offsets in one blob for the
 * constants.
 *
 * A buffer lives from the first kernel that writes it to the last that touches it, parts of it
 * included.  The largest buffers are placed first, each in the smallest gap left by the buffers
 * that live at the same time (best fit); the first gap wins among equals.  Source: Pisarchyk and
 * Lee, "Efficient memory management for deep neural net inference" (2020), greedy by size. If
 * that needs more than the bytes alive at once, the buffers that end highest are placed earlier,
 * repeatedly, while that helps (Joslin and Clements, "Squeaky wheel optimization",
 * 1999). */
#include "lower/internal.h"
#include <stdlib.h>
#include <string.h>

typedef tarn_life life;

static int by_size(const void *a, const void *b) {
  const life *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}
static int by_place(const void *a, const void *b) {
  const life *x = *(life *const *)a, *y = *(life *const *)b;
  if (x->at != y->at) return x->at < y->at ? -1 : 1;
  return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* The smallest gap between the placed buffers (sorted by place) that takes `bytes`; else behind
 * them all. */
static int64_t best_gap(life *const *placed, uint32_t n, int64_t bytes) {
  int64_t end = 0, best = -1, room = INT64_MAX;
  for (uint32_t i = 0; i < n; i++) {
    int64_t gap = placed[i]->at - end;
    if (gap >= bytes && gap < room) best = end, room = gap;
    if (placed[i]->at + placed[i]->bytes > end) end = placed[i]->at + placed[i]->bytes;
  }
  return best >= 0 ? best : end;
}

/* Places the buffers in the given order. */
static int64_t place(life *l, const uint32_t *order, uint32_t n, life **other) {
  int64_t total = 0;
  for (uint32_t i = 0; i < n; i++) {
    life *x = &l[order[i]];
    uint32_t m = 0;
    for (uint32_t k = 0; k < i; k++) {
      life *y = &l[order[k]];
      if (y->first <= x->last && x->first <= y->last) other[m++] = y;
    }
    qsort(other, m, sizeof *other, by_place);
    x->at = best_gap(other, m, x->bytes);
    if (x->at + x->bytes > total) total = x->at + x->bytes;
  }
  return total;
}

static uint32_t below(uint64_t *s, uint32_t n) { /* xorshift: the same plan every time */
  *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
  return (uint32_t)(*s % n);
}
static void earlier(uint32_t *order, uint32_t from, uint32_t to) {
  uint32_t x = order[from];
  memmove(order + to + 1, order + to, (from - to) * sizeof *order);
  order[to] = x;
}
/* Orders in which buffers that ended highest come sooner; the best of them is what is placed in the
 * end. */
#define TRIES 2000
#define WORK  (512 << 20) /* pairs of buffers looked at, for all tries together */
static int64_t squeeze(tarn_ctx *cx, life *l, uint32_t n, int64_t bound) {
  uint32_t *order = TARN_ARRAY(cx, uint32_t, n + 1), *best = TARN_ARRAY(cx, uint32_t, n + 1);
  life **other = TARN_ARRAY(cx, life *, n + 1);
  uint64_t random = 0x9e3779b97f4a7c15u;
  for (uint32_t i = 0; i < n; i++) order[i] = best[i] = i;
  int64_t least = place(l, best, n, other), total = least;
  uint32_t tries = n ? (uint32_t)tarn_min(TRIES, WORK / ((int64_t)n * n)) : 0;
  for (uint32_t t = 0; t < tries && least > bound; t++) {
    for (uint32_t i = 1; i < n; i++)
      if (l[order[i]].at + l[order[i]].bytes == total || below(&random, 2 * n) == 0)
        earlier(order, i, below(&random, i + 1));
    total = place(l, order, n, other);
    if (total <= least) {
      least = total;
      memcpy(best, order, n * sizeof *best);
    } else if (below(&random, 8) == 0) { /* from the best again */
      memcpy(order, best, n * sizeof *best);
      total = place(l, order, n, other);
    }
  }
  return place(l, best, n, other);
}

static bool on_host(const tarn_kprog *p, uint32_t k) {
  return p->machines.n < 2 || !p->ker[k].machine;
}
tarn_memory_plan *tarn_memory_plan_make(const tarn_kprog *p, int64_t align) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  tarn_memory_plan *plan = TARN_NEW(cx, tarn_memory_plan);
  plan->offset = TARN_ARRAY(cx, int64_t, p->nbuf);
  plan->const_offset = TARN_ARRAY(cx, int64_t, p->nbuf);
  plan->const_there = TARN_ARRAY(cx, bool, p->nbuf);
  life *l = TARN_ARRAY(cx, life, p->nbuf);
  uint32_t n = tarn_kprog_lives(p, align, l);
  qsort(l, n, sizeof *l, by_size);
  plan->live = TARN_ARRAY(cx, int64_t, p->nker + 1);
  plan->live_bound = tarn_lives_bytes(l, n, p->nker, plan->live);
  plan->bytes = squeeze(cx, l, n, plan->live_bound);
  bool *read = TARN_ARRAY(cx, bool, p->nbuf + 1);
  for (uint32_t k = 0; k < p->nker; k++) /* an accelerator's are packed with its code */
    for (uint32_t i = 0; i < p->ker[k].nin && on_host(p, k); i++)
      read[tarn_kprog_root(p, p->ker[k].in[i])] = true;
  for (uint32_t i = 0; i < p->nout; i++) read[tarn_kprog_root(p, p->out[i])] = true;
  for (uint32_t b = 0; b < p->nbuf; b++) {
    plan->offset[b] = plan->const_offset[b] = -1;
    if (p->buf[b].kind != TARN_BUF_CONST || p->buf[b].parent != TARN_NONE || !read[b]) continue;
    plan->const_offset[b] = plan->const_bytes;
    plan->const_bytes += tarn_round_up(tarn_buffer_bytes(&p->buf[b]), align);
  }
  for (uint32_t i = 0; i < n; i++) plan->offset[l[i].buffer] = l[i].at;
  return plan;
}
