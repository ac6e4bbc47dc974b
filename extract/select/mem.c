/* Pools: memory of one run, freed at once when the run ends, however it ends. */
#include "extract/select/internal.h"
#include <string.h>

typedef struct sel_block {
  struct sel_block *prev, *next;
  size_t bytes; /* with this head */
  size_t pad;
} sel_block;

void sel_pool_close(void *arg) {
  sel_pool *p = arg;
  const tarn_allocator *a = tarn_ctx_allocator(p->cx);
  for (sel_block *b = p->head, *next; b; b = next) {
    next = b->next;
    a->realloc(a->user, b, b->bytes, 0);
  }
  *p = (sel_pool){.cx = p->cx};
}

void sel_pool_open(sel_pool *p, tarn_ctx *cx) {
  *p = (sel_pool){.cx = cx};
  tarn_defer(cx, sel_pool_close, p);
}

static void link_in(sel_pool *p, sel_block *b) {
  b->prev = NULL;
  b->next = p->head;
  if (p->head) p->head->prev = b;
  p->head = b;
}

static void link_out(sel_pool *p, sel_block *b) {
  if (b->prev) b->prev->next = b->next;
  else p->head = b->next;
  if (b->next) b->next->prev = b->prev;
}

static size_t block_bytes(sel_pool *p, size_t count, size_t each) {
  if (each && count > (SIZE_MAX / 2 - sizeof(sel_block)) / each)
    tarn_raise(p->cx, TARN_MEMORY, "selection: too large");
  return sizeof(sel_block) + count * each;
}

void *sel_resize(sel_pool *p, void *old, size_t count, size_t each) {
  const tarn_allocator *a = tarn_ctx_allocator(p->cx);
  size_t bytes = block_bytes(p, count, each);
  sel_block *was = old ? (sel_block *)old - 1 : NULL;
  size_t had = was ? was->bytes : 0;
  if (was) link_out(p, was);
  sel_block *b = a->realloc(a->user, was, had, bytes);
  if (!b) {
    if (was) link_in(p, was);
    tarn_raise(p->cx, TARN_MEMORY, "selection: out of memory (%zu bytes)", bytes);
  }
  b->bytes = bytes;
  link_in(p, b);
  return b + 1;
}

void *sel_alloc(sel_pool *p, size_t count, size_t each) {
  void *b = sel_resize(p, NULL, count, each);
  return memset(b, 0, count * each);
}

void sel_free(sel_pool *p, void *block) {
  if (!block) return;
  const tarn_allocator *a = tarn_ctx_allocator(p->cx);
  sel_block *b = (sel_block *)block - 1;
  link_out(p, b);
  a->realloc(a->user, b, b->bytes, 0);
}

void *sel_small(sel_pool *p, size_t n) {
  n = (n + 7) & ~(size_t)7;
  if (n > 8192) return sel_resize(p, NULL, n, 1);
  if (n > p->bump_left) {
    p->bump = sel_resize(p, NULL, 65536, 1);
    p->bump_left = 65536;
  }
  void *at = p->bump;
  p->bump += n;
  p->bump_left -= n;
  return at;
}
