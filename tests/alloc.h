/* An allocator for tests: counts what is held and fails the k-th allocation and, if asked, all
 * after it.
 *
 *   for (uint64_t k = 1;; k++) {
 *     tarn_test_alloc t = {.fail_at = k};
 *     tarn_allocator a = tarn_test_allocator(&t);
 *     …make a context with &a, do the work: it succeeds, or reports TARN_MEMORY…
 *     ck_assert_uint_eq(t.held, 0);           nothing leaks on the way out
 *     if (t.count < k) break;                 the work makes fewer than k allocations: all were
 * tried
 *   }
 */
#ifndef TARN_TESTS_ALLOC_H
#define TARN_TESTS_ALLOC_H

#include <stdlib.h>

#include "base/base.h"

typedef struct tarn_test_alloc {
  uint64_t fail_at; /* 1 = the first; 0 = never */
  bool stay_down;   /* fail all later ones too, as when memory is really gone */
  uint64_t count;   /* allocations and growths asked for */
  uint64_t failed;
  size_t held;     /* bytes */
  bool wrong_size; /* some call gave an old size that was never allocated */
} tarn_test_alloc;

/* Each allocation carries its size in front, so that a wrong "old" is found. */
#define TARN_TEST_HEAD 16

static inline void *tarn_test_realloc(void *user, void *ptr, size_t old, size_t n) {
  tarn_test_alloc *t = user;
  char *base = ptr ? (char *)ptr - TARN_TEST_HEAD : NULL;
  if ((base ? *(size_t *)base : 0) != old) t->wrong_size = true;
  if (n == 0) {
    t->held -= old;
    free(base);
    return NULL;
  }
  t->count++;
  if (t->fail_at && (t->count == t->fail_at || (t->stay_down && t->count > t->fail_at))) {
    t->failed++;
    return NULL;
  }
  base = realloc(base, n + TARN_TEST_HEAD);
  if (!base) return NULL;
  *(size_t *)base = n;
  t->held += n - old;
  return base + TARN_TEST_HEAD;
}

static inline tarn_allocator tarn_test_allocator(tarn_test_alloc *t) {
  return (tarn_allocator){tarn_test_realloc, t};
}

/* Runs fn under every k = 1, 1+step, …, until it makes fewer than k allocations. fn must leave no
 * trace outside the context. Returns the number of k tried; *bad is the first k with a wrong
 * outcome, 0 when there is none. */
static inline uint64_t tarn_test_fail_each(tarn_fn *fn, void *arg, uint64_t step, uint64_t *bad) {
  *bad = 0;
  for (uint64_t k = 1, tried = 0;; k += step, tried++) {
    for (int down = 0; down < 2; down++) {
      tarn_test_alloc t = {.fail_at = k, .stay_down = down};
      tarn_allocator a = tarn_test_allocator(&t);
      tarn_ctx *cx = tarn_ctx_new(&a);
      tarn_status st = cx ? tarn_protect(cx, fn, arg) : TARN_MEMORY;
      tarn_ctx_free(cx);
      bool right = st == (t.failed ? TARN_MEMORY : TARN_OK) && t.held == 0 && !t.wrong_size;
      if (!right && !*bad) *bad = k;
      if (t.count < k || *bad) return tried;
    }
  }
}

#endif
