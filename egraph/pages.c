/* Large blocks of the C library's memory, in huge pages where the system has them.
 *
 * A graph of a million nodes is read at random: with pages of 4 KiB most reads also miss the
 * processor's list of pages, and each page of a new array costs a fault.  So blocks from 4 MiB on
 * are mapped here, on boundaries of huge pages, and grow by moving pages instead of copying.  (From
 * 2 MiB on it is no faster, and the pages that are begun and not filled cost six bytes for each of
 * a million nodes.) */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "egraph/internal.h"

#if defined(__linux__)
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 1 << 21, FROM = 1 << 22 };

static size_t in_pages(size_t n) { return (n + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1); }

/* n bytes of address space on a boundary. */
static void *map(size_t n, int protection) {
  char *p =
      mmap(NULL, n + HUGE_PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  size_t before = in_pages((uintptr_t)p) - (uintptr_t)p, after = HUGE_PAGE - before;
  if (before) munmap(p, before);
  if (after) munmap(p + before + n, after);
  return p + before;
}

static void *grown(void *p, size_t had, size_t n) {
  if (had == n || mremap(p, had, n, 0) != MAP_FAILED) return p;
  void *to = map(n, PROT_NONE);
  if (!to) return NULL;
  if (mremap(p, had, n, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return to;
  munmap(to, n);
  return NULL;
}

void *eg_pages(const tarn_allocator *a, void *p, size_t old, size_t n) {
  bool was = old >= FROM, is = n >= FROM;
  if (!was && !is) return a->realloc(a->user, p, old, n);
  if (was && is) return grown(p, in_pages(old), in_pages(n));
  void *q = NULL;
  if (n) {
    q = is ? map(in_pages(n), PROT_READ | PROT_WRITE) : a->realloc(a->user, NULL, 0, n);
    if (!q) return NULL;
    if (is) madvise(q, in_pages(n), MADV_HUGEPAGE);
    if (old) memcpy(q, p, old < n ? old : n);
  }
  if (was) munmap(p, in_pages(old));
  else if (p) a->realloc(a->user, p, old, 0);
  return q;
}
#else
void *eg_pages(const tarn_allocator *a, void *p, size_t old, size_t n) {
  return a->realloc(a->user, p, old, n);
}
#endif
