/* The arena: ordinary blocks filled from the front, and a block of its own for each large request.
 */
#include "base/internal.h"

#include <string.h>

/* Under AddressSanitizer the unused part of a block is poisoned and allocations stand apart, so
 * that an overrun or a use after tarn_release() is found as it would be with malloc. */
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#define RED_ZONE       TARN_ALIGN
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define RED_ZONE       ((size_t)0)
#endif

#define FIRST_BLOCK ((size_t)8 << 10)
#define LAST_BLOCK  ((size_t)1 << 20)
#define HEAD        ((sizeof(tarn_block) + TARN_ALIGN - 1) & ~(TARN_ALIGN - 1))

static size_t round_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

static void account(tarn_ctx *cx, size_t more, size_t less) {
  tarn_ctx *top = cx->top;
  top->bytes += more - less;
  if (top->bytes > top->peak) top->peak = top->bytes;
  if (cx != top) cx->bytes += more - less;
}

static tarn_block *block_new(tarn_ctx *cx, tarn_block **list, size_t size) {
  tarn_block *b = tarn_raw(cx, NULL, 0, size);
  if (!b) tarn_raise_memory(cx);
  *b = (tarn_block){*list, size, HEAD, cx->serial++};
  *list = b;
  POISON((char *)b + HEAD, size - HEAD);
  account(cx, size, 0);
  return b;
}

static void block_pop(tarn_ctx *cx, tarn_block **list) {
  tarn_block *b = *list;
  *list = b->next;
  account(cx, 0, b->size);
  UNPOISON((char *)b + HEAD, b->size - HEAD);
  tarn_raw(cx, b, b->size, 0);
}

void tarn_arena_free_all(tarn_ctx *cx) {
  while (cx->blocks) block_pop(cx, &cx->blocks);
  while (cx->big) block_pop(cx, &cx->big);
}

/* Takes n bytes of b, or NULL when they do not fit. */
static void *block_take(tarn_block *b, size_t n, size_t align) {
  uintptr_t start = (uintptr_t)b, at = round_up(start + b->used, align);
  size_t end = (size_t)(at - start) + round_up(n, TARN_ALIGN) + RED_ZONE;
  if (end > b->size) return NULL;
  b->used = end;
  void *p = (char *)b + (at - start);
  UNPOISON(p, n);
  return p;
}

static void *take(tarn_ctx *cx, size_t n, size_t align) {
  if (n == 0) n = 1;
  if (align < TARN_ALIGN) align = TARN_ALIGN;
  if (n > SIZE_MAX / 2 || align > SIZE_MAX / 4) tarn_raise_memory(cx);
  void *p = cx->blocks ? block_take(cx->blocks, n, align) : NULL;
  if (p) return p;
  size_t need = HEAD + round_up(n, TARN_ALIGN) + align + RED_ZONE;
  if (cx->next_size == 0) cx->next_size = FIRST_BLOCK;
  if (need > cx->next_size / 4) return block_take(block_new(cx, &cx->big, need), n, align);
  tarn_block *b = block_new(cx, &cx->blocks, cx->next_size);
  if (cx->next_size < LAST_BLOCK) cx->next_size *= 2;
  return block_take(b, n, align);
}

static bool within(const tarn_block *b, const void *p) {
  for (; b; b = b->next)
    if ((uintptr_t)p - (uintptr_t)b < b->size) return true;
  return false;
}

bool tarn_arena_holds(const tarn_ctx *cx, const void *p) {
  return within(cx->big, p) || within(cx->blocks, p);
}

void *tarn_new(tarn_ctx *cx, size_t n) {
  void *p = take(cx, n, TARN_ALIGN);
  return memset(p, 0, n ? n : 1);
}

void *tarn_new_array(tarn_ctx *cx, size_t count, size_t each) {
  if (each && count > SIZE_MAX / each) tarn_raise_memory(cx);
  return tarn_new(cx, count * each);
}

void *tarn_new_aligned(tarn_ctx *cx, size_t n, size_t align) { return take(cx, n, align); }

void *tarn_copy(tarn_ctx *cx, const void *p, size_t n) {
  void *q = take(cx, n, TARN_ALIGN);
  if (n) memcpy(q, p, n);
  return q;
}

char *tarn_strndup(tarn_ctx *cx, const char *s, size_t n) {
  char *q = take(cx, n + 1, TARN_ALIGN);
  if (n) memcpy(q, s, n);
  q[n] = 0;
  return q;
}

char *tarn_strdup(tarn_ctx *cx, const char *s) { return tarn_strndup(cx, s, strlen(s)); }

char *tarn_vformat(tarn_ctx *cx, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int len = tarn_vprint(cx, NULL, 0, fmt, again);
  va_end(again);
  if (len < 0) tarn_raise_memory(cx);
  char *s = take(cx, (size_t)len + 1, TARN_ALIGN);
  tarn_vprint(cx, s, (size_t)len + 1, fmt, ap);
  return s;
}

char *tarn_format(tarn_ctx *cx, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *s = tarn_vformat(cx, fmt, ap);
  va_end(ap);
  return s;
}

/* The newest allocation of the newest ordinary block can grow where it stands. */
bool tarn_arena_extend(tarn_ctx *cx, void *p, size_t old, size_t n) {
  tarn_block *b = cx->blocks;
  if (!b || !p || n > LAST_BLOCK) return false;
  size_t at = (size_t)((uintptr_t)p - (uintptr_t)b);
  if (at >= b->size || at + round_up(old, TARN_ALIGN) + RED_ZONE != b->used) return false;
  size_t end = at + round_up(n, TARN_ALIGN) + RED_ZONE;
  if (end > b->size) return false;
  b->used = end;
  UNPOISON(p, n);
  return true;
}

tarn_mark tarn_arena_mark(tarn_ctx *cx) {
  return (tarn_mark){(void *)(uintptr_t)cx->serial, cx->blocks ? cx->blocks->used : 0};
}

void tarn_release(tarn_ctx *cx, tarn_mark m) {
  uint64_t serial = (uint64_t)(uintptr_t)m.block;
  while (cx->big && cx->big->serial >= serial) block_pop(cx, &cx->big);
  while (cx->blocks && cx->blocks->serial >= serial) block_pop(cx, &cx->blocks);
  tarn_block *b = cx->blocks;
  if (!b || m.used < HEAD) return;
  b->used = m.used;
  POISON((char *)b + b->used, b->size - b->used);
}

void tarn_drop(tarn_ctx *cx, const void *p, tarn_mark since) {
  uint64_t serial = (uint64_t)(uintptr_t)since.block;
  for (tarn_block **b = &cx->big; *b && (*b)->serial >= serial; b = &(*b)->next) {
    uintptr_t start = (uintptr_t)*b;
    if ((uintptr_t)p < start || (uintptr_t)p >= start + (*b)->size) continue;
    block_pop(cx, b);
    return;
  }
}

/* The old storage stays as it was: the arena frees nothing before a release. */
void *tarn_vec_grow(tarn_ctx *cx, void *p, uint32_t n, uint32_t *cap, size_t each) {
  uint32_t wider = *cap ? (*cap > UINT32_MAX / 2 ? UINT32_MAX : 2 * *cap) : 8;
  if (wider <= n || (each && wider > SIZE_MAX / each)) tarn_raise_memory(cx);
  if (!tarn_arena_extend(cx, p, *cap * each, wider * each)) {
    void *q = take(cx, wider * each, TARN_ALIGN);
    if (n) memcpy(q, p, n * each);
    p = q;
  }
  *cap = wider;
  return p;
}
