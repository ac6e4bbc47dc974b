/* The order in which kernels run, by the memory that lives at once. Of two branches the one whose
 * result is small and whose way there is large comes first. A beam of partial orders, each kept
 * with the most bytes that lived so far and those that live now; the program's own order stays
 * unless another one needs less. Source of the question: Sethi and Ullman, "The generation of
 * optimal code for arithmetic expressions" (1970), there for registers and trees. */
#include "extract/kgraph.h"
#include <string.h>

enum { WIDTH = 48, KERNELS = 1024 };
#define WORK                                                                                       \
  (256 << 20) /* words of sets that are compared; a program that needs more keeps its order */
typedef struct place {       /* a buffer with all that lies in it */
  int64_t bytes;             /* 0: not of the workspace */
  TARN_VEC(uint32_t) kernel; /* that touch it */
} place;
typedef struct state {
  uint64_t *done;
  int64_t live, peak;
  uint32_t from, kernel; /* state of the step before; the kernel that ran last */
} state;
typedef struct sequence {
  tarn_kprog *p;
  tarn_ctx *cx;
  uint32_t words;
  place *place;      /* of each buffer that is a root */
  uint64_t **before; /* of each kernel: those that it waits for */
  uint32_t *root;    /* of each buffer */
  int64_t work;
} sequence;

static bool has(const uint64_t *set, uint32_t i) { return set[i / 64] >> (i % 64) & 1; }
static void put(uint64_t *set, uint32_t i) { set[i / 64] |= UINT64_C(1) << (i % 64); }
static uint32_t operands(const tarn_kernel *k) { return k->nin + k->nout; }
static uint32_t operand(const tarn_kernel *k, uint32_t i) {
  return i < k->nin ? k->in[i] : k->out[i - k->nin];
}
/* b waits for a: it reads of what a writes into, or writes what a touches, but for two that write
 * different parts of one buffer. */
static bool waits(const sequence *q, const tarn_kernel *b, const tarn_kernel *a) {
  for (uint32_t i = 0; i < a->nout; i++)
    for (uint32_t k = 0; k < operands(b); k++) {
      uint32_t x = a->out[i];
      uint32_t y = operand(b, k);
      if (q->root[x] == q->root[y] && (k < b->nin || x == y)) return true;
    }
  for (uint32_t i = 0; i < a->nin; i++)
    for (uint32_t k = 0; k < b->nout; k++)
      if (q->root[a->in[i]] == q->root[b->out[k]]) return true;
  return false;
}
static void note(sequence *q, uint32_t root, uint32_t kernel) {
  place *at = &q->place[root];
  if (!at->kernel.n || at->kernel.p[at->kernel.n - 1] != kernel)
    tarn_push(q->cx, &at->kernel, kernel);
}
static void prepare(sequence *q) {
  const tarn_kprog *p = q->p;
  q->root = TARN_ARRAY(q->cx, uint32_t, p->nbuf + 1);
  q->place = TARN_ARRAY(q->cx, place, p->nbuf + 1);
  for (uint32_t b = 0; b < p->nbuf; b++) {
    const tarn_buffer *x = &p->buf[b];
    q->root[b] = tarn_kprog_root(p, b);
    int64_t bytes =
        (tarn_layout_elems(&x->layout) + x->layout.offset) * (int64_t)tarn_dtype_size(x->dtype);
    place *at = &q->place[q->root[b]];
    if (p->buf[q->root[b]].kind == TARN_BUF_TEMP) at->bytes = tarn_max(at->bytes, bytes);
  }
  q->before = TARN_ARRAY(q->cx, uint64_t *, p->nker + 1);
  for (uint32_t k = 0; k < p->nker; k++) {
    q->before[k] = TARN_ARRAY(q->cx, uint64_t, q->words);
    for (uint32_t a = 0; a < k; a++)
      if (waits(q, &p->ker[k], &p->ker[a])) put(q->before[k], a);
    for (uint32_t i = 0; i < operands(&p->ker[k]); i++) note(q, q->root[operand(&p->ker[k], i)], k);
  }
}
/* Kernels of a set that touch a buffer. */
static uint32_t touched(const sequence *q, const uint64_t *done, uint32_t root) {
  const place *at = &q->place[root];
  uint32_t n = 0;
  for (uint32_t i = 0; i < at->kernel.n; i++) n += has(done, at->kernel.p[i]);
  return n;
}
static state after(const sequence *q, const state *s, uint32_t from, uint32_t kernel) {
  const tarn_kernel *k = &q->p->ker[kernel];
  int64_t ends = 0;
  state t = {.live = s->live, .from = from, .kernel = kernel};
  for (uint32_t i = 0; i < operands(k); i++) {
    uint32_t r = q->root[operand(k, i)];
    bool again = false;
    for (uint32_t j = 0; j < i; j++) again |= q->root[operand(k, j)] == r;
    if (again || !q->place[r].bytes) continue;
    uint32_t n = touched(q, s->done, r);
    if (!n) t.live += q->place[r].bytes;
    if (n + 1 == q->place[r].kernel.n) ends += q->place[r].bytes;
  }
  t.peak = tarn_max(s->peak, t.live);
  t.live -= ends;
  return t;
}
static bool ready(sequence *q, const state *s, uint32_t kernel) {
  q->work += 1;
  bool all = !has(s->done, kernel);
  for (uint32_t w = 0; w < q->words; w++) all = all && !(q->before[kernel][w] & ~s->done[w]);
  return all;
}
static bool is_less(const state *a, const state *b) {
  return a->peak != b->peak ? a->peak < b->peak : a->live < b->live;
}
/* Into a beam that is ordered; of two that have done the same the lesser one stays. */
static uint32_t enter(sequence *q, state *beam, uint32_t n, state t, const uint64_t *done) {
  uint64_t *set = TARN_ARRAY(q->cx, uint64_t, q->words);
  memcpy(set, done, q->words * sizeof *set);
  put(set, t.kernel);
  t.done = set;
  q->work += n * q->words;
  for (uint32_t i = 0; i < n; i++)
    if (!memcmp(beam[i].done, set, q->words * sizeof *set)) {
      if (!is_less(&t, &beam[i])) return n;
      memmove(&beam[i], &beam[i + 1], (n - i - 1) * sizeof *beam);
      n--;
    }
  uint32_t at = n;
  while (at > 0 && is_less(&t, &beam[at - 1])) at--;
  if (at == WIDTH) return n;
  if (n == WIDTH) n--;
  memmove(&beam[at + 1], &beam[at], (n - at) * sizeof *beam);
  beam[at] = t;
  return n + 1;
}
static int64_t peak_of(const sequence *q) {
  tarn_life *l = TARN_ARRAY(q->cx, tarn_life, q->p->nbuf + 1);
  int64_t *live = TARN_ARRAY(q->cx, int64_t, q->p->nker + 1);
  return tarn_lives_bytes(l, tarn_kprog_lives(q->p, 1, l), q->p->nker, live);
}
static void reorder(const sequence *q, state *const *step) {
  tarn_kprog *p = q->p;
  tarn_kernel *to = TARN_ARRAY(q->cx, tarn_kernel, p->nker);
  for (uint32_t i = p->nker, at = 0; i-- > 0; at = step[i + 1][at].from)
    to[i] = p->ker[step[i + 1][at].kernel];
  for (uint32_t i = 0; i < p->nker; i++) /* names begin with the kernel's number */
    to[i].name = tarn_format(q->cx, "k%u%s", i, strchr(to[i].name, '_'));
  p->ker = to;
}
void kg_sequence(kgraph *k, tarn_kprog *p) {
  sequence q = {.p = p, .cx = k->cx, .words = p->nker / 64 + 1};
  if (p->nker < 3 || p->nker > KERNELS) return;
  prepare(&q);
  state **step = TARN_ARRAY(k->cx, state *, p->nker + 1);
  uint32_t n = 1;
  step[0] = TARN_NEW(k->cx, state);
  step[0]->done = TARN_ARRAY(k->cx, uint64_t, q.words);
  for (uint32_t i = 0; i < p->nker; i++) {
    uint32_t more = 0;
    if (q.work > WORK) return;
    step[i + 1] = TARN_ARRAY(k->cx, state, WIDTH + 1);
    for (uint32_t s = 0; s < n; s++)
      for (uint32_t x = 0; x < p->nker; x++)
        if (ready(&q, &step[i][s], x))
          more = enter(&q, step[i + 1], more, after(&q, &step[i][s], s, x), step[i][s].done);
    n = more;
  }
  if (step[p->nker][0].peak < peak_of(&q)) reorder(&q, step);
}
