/* Programs of several sizes have most constants in common: those with the same bytes lie in one
 * place of the blob.
 *
 * One that is the same term in the same layout is known without being computed. Others are computed
 * when another one has as many bytes: equal hashes first, then the bytes themselves. A constant
 * with gaps between its rows may be a part of a larger one, whose elements lie in the gaps. */
#include "lower/internal.h"
#include <stdlib.h>
#include <string.h>

typedef struct kept {
  uint32_t program, buf;
  int64_t bytes, at;
  bool hashed;
  uint64_t hash;
} kept;
typedef struct sharing {
  tarn_ctx *cx;
  const tarn_kprog *const *p;
  TARN_VEC(kept) kept;
} sharing;

static const tarn_buffer *buffer(const sharing *h, const kept *k) {
  return &h->p[k->program]->buf[k->buf];
}
static void free_bytes(void *p) { free(p); }

/* t as constant k lies in memory; the caller frees it. */
static char *laid_out(const sharing *h, const kept *k, const tarn_tensor *t) {
  char *p = calloc(k->bytes ? (size_t)k->bytes : 1, 1);
  if (!p) tarn_raise(h->cx, TARN_MEMORY, "lower: no memory for %lld bytes", (long long)k->bytes);
  tarn_plan_const_lay_out(&buffer(h, k)->layout, t, p);
  return p;
}
static char *bytes_of(const sharing *h, const kept *k) {
  tarn_mark before = tarn_arena_mark(h->cx);
  const tarn_tensor *t = tarn_plan_const_value(h->p[k->program], buffer(h, k));
  char *p = laid_out(h, k, t);
  tarn_drop(h->cx, t->data, before);
  return p;
}
/* Which of its bytes are those of elements: ones, where others are gaps. */
static char *taken_by(const sharing *h, const kept *k) {
  const tarn_buffer *b = buffer(h, k);
  tarn_mark before = tarn_arena_mark(h->cx);
  tarn_tensor *t = tarn_tensor_new(h->cx, b->dtype, b->layout.n, b->layout.dim);
  memset(t->data, 0xff, (size_t)tarn_tensor_count(t) * tarn_dtype_size(b->dtype));
  char *p = laid_out(h, k, t);
  tarn_drop(h->cx, t->data, before);
  return p;
}
static uint64_t hash_of(const sharing *h, kept *k) {
  if (k->hashed) return k->hash;
  char *p = bytes_of(h, k);
  k->hash = tarn_hash_bytes(p, (size_t)k->bytes, 0);
  k->hashed = true;
  free(p);
  return k->hash;
}
/* As many bytes as a has. */
static bool equal_bytes(const sharing *h, const kept *a, const kept *b) {
  char *p = bytes_of(h, a);
  tarn_defer(h->cx, free_bytes, p);
  char *q = bytes_of(h, b);
  bool same = !memcmp(p, q, (size_t)a->bytes);
  free(q);
  tarn_keep(h->cx, p);
  free(p);
  return same;
}
/* Are the elements of a those that lie at their places in b? */
static bool lies_in(const sharing *h, const kept *a, const kept *b) {
  char *taken = taken_by(h, a);
  tarn_defer(h->cx, free_bytes, taken);
  char *p = bytes_of(h, a);
  tarn_defer(h->cx, free_bytes, p);
  char *q = bytes_of(h, b);
  bool same = a->bytes <= b->bytes;
  for (int64_t i = 0; same && i < a->bytes; i++) same = !((p[i] ^ q[i]) & taken[i]);
  free(q);
  tarn_keep(h->cx, p);
  tarn_keep(h->cx, taken);
  free(p);
  free(taken);
  return same;
}
static bool has_gaps(const sharing *h, const kept *k) {
  return tarn_layout_gaps(&buffer(h, k)->layout);
}
/* May a be a box of b? */
static bool may_lie_in(const sharing *h, const kept *a, const kept *b) {
  const tarn_buffer *x = buffer(h, a), *y = buffer(h, b);
  return has_gaps(h, a) && has_gaps(h, b) && a->bytes <= b->bytes && x->dtype == y->dtype &&
         x->layout.n == y->layout.n &&
         !memcmp(x->layout.stride, y->layout.stride, x->layout.n * sizeof *x->layout.stride);
}
static bool same_term(const tarn_buffer *a, const tarn_buffer *b) {
  return !a->value && !b->value && a->term != TARN_NONE && a->term == b->term &&
         a->dtype == b->dtype && tarn_layout_equal(&a->layout, &b->layout);
}
bool low_same_constant(const tarn_kprog *p, const tarn_kprog *q, uint32_t b) {
  const tarn_kprog *both[2] = {p, q};
  sharing h = {.cx = tarn_lang_ctx(p->L), .p = both};
  kept x = {.buf = b, .bytes = tarn_buffer_bytes(&p->buf[b])}, y = {.program = 1, .buf = b};
  y.bytes = tarn_buffer_bytes(&q->buf[b]);
  if (x.bytes == y.bytes && same_term(&p->buf[b], &q->buf[b])) return true;
  if (may_lie_in(&h, &x, &y)) return lies_in(&h, &x, &y);
  return x.bytes <= y.bytes && equal_bytes(&h, &x, &y);
}
/* The one that lies there already with the bytes of k; NULL: none. */
static const kept *find(sharing *h, kept *k) {
  for (uint32_t i = 0; i < h->kept.n; i++)
    if (same_term(buffer(h, &h->kept.p[i]), buffer(h, k))) return &h->kept.p[i];
  for (uint32_t i = 0; i < h->kept.n; i++) {
    kept *x = &h->kept.p[i];
    if (may_lie_in(h, k, x) && lies_in(h, k, x)) return x;
    if (x->bytes != k->bytes || hash_of(h, x) != hash_of(h, k)) continue;
    if (equal_bytes(h, x, k)) return x;
  }
  return NULL;
}

/* Where constant b of program i lies. */
static void place(sharing *h, uint32_t i, uint32_t b, tarn_memory_plan *plan, int64_t align,
                  int64_t *end) {
  kept k = {.program = i, .buf = b, .bytes = tarn_buffer_bytes(&h->p[i]->buf[b]), .at = *end};
  const kept *there = find(h, &k);
  plan->const_there[b] = there != NULL;
  plan->const_offset[b] = there ? there->at : k.at;
  if (there) return;
  tarn_push(h->cx, &h->kept, k);
  *end += (k.bytes + align - 1) / align * align;
}
/* Those of program i with gaps, or without. end: of the blob so far. */
static void place_all(sharing *h, uint32_t i, bool gaps, tarn_memory_plan *plan, int64_t align,
                      int64_t *end) {
  for (uint32_t b = 0; b < h->p[i]->nbuf; b++)
    if (plan->const_offset[b] >= 0 && tarn_layout_gaps(&h->p[i]->buf[b].layout) == gaps)
      place(h, i, b, plan, align, end);
}
/* The later programs are of larger sizes: a box comes behind what it is a part of. */
void tarn_lower_share(const tarn_kprog *const *p, tarn_memory_plan *const *plan, uint32_t n,
                      int64_t align) {
  sharing h = {.cx = tarn_lang_ctx(p[0]->L), .p = p};
  int64_t end = 0;
  for (uint32_t i = 0; i < n; i++) place_all(&h, i, false, plan[i], align, &end);
  for (uint32_t i = n; i-- > 0;) place_all(&h, i, true, plan[i], align, &end);
  for (uint32_t i = 0; i < n; i++) plan[i]->const_bytes = end;
}
