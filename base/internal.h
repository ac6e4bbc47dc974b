/* Inside of a context; for base/ and its tests only.
 *
 * Invariants.  blocks and big are newest first, by serial.  A mark is the serial the next block
 * will get, and the fill of blocks at that time; so a release needs no pointer that could have gone
 * stale.  defers is a stack; a frame remembers its height at entry.  message points into slot[cur],
 * so that a new message may quote the old one. */
#ifndef TARN_BASE_INTERNAL_H
#define TARN_BASE_INTERNAL_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* locale_t; so this header comes first in every file of base/ */
#endif
#include <locale.h>
#include <setjmp.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/limit.h"
#include "base/progress.h"

#define TARN_ALIGN ((size_t)16)

typedef struct tarn_block {
  struct tarn_block *next;
  size_t size; /* whole allocation, head included */
  size_t used; /* from the start of the block, head included */
  uint64_t serial;
} tarn_block;

typedef struct tarn_frame {
  jmp_buf env;
  struct tarn_frame *outer;
  size_t defers;
} tarn_frame;

typedef struct tarn_deferred {
  void (*fn)(void *);
  void *arg;
} tarn_deferred;

typedef struct tarn_slot {
  char fixed[256];
  char *heap; /* for a message that does not fit fixed */
  size_t cap;
} tarn_slot;

struct tarn_ctx {
  struct tarn_ctx *top;             /* itself, or what it is a child of: has all but the arena */
  struct tarn_ctx *child, *sibling; /* of the top: its children */
  tarn_allocator a;
  tarn_block *blocks, *big;
  uint64_t serial;
  size_t next_size;   /* of the next ordinary block */
  size_t bytes, peak; /* the top's: with those of its children */
  tarn_frame *frame;
  tarn_status raised; /* what the last raise said */
  tarn_deferred *defers;
  size_t defer_count, defer_cap;
  tarn_slot slot[2];
  unsigned cur;
  const char *message;
  char **warnings;
  size_t warning_count, warning_cap;
  bool warning_lost;    /* one more warning than memory allowed */
  tarn_limit limit;     /* the top's */
  atomic_int late;      /* 0, or why the limit has struck */
  tarn_watcher watcher; /* the top's */
  locale_t
      c_locale; /* numbers are written and read the same whatever the host program's locale is */
};

/* Raw allocation, NULL on failure; for what must not live in the arena. */
void *tarn_raw(tarn_ctx *cx, void *p, size_t old, size_t n);
/* s as TARN_AS_TEXT in raw memory of *cap bytes, NULL on failure. */
char *tarn_raw_shown(tarn_ctx *cx, const char *s, size_t n, size_t *cap);
void tarn_arena_free_all(tarn_ctx *cx);
_Noreturn void tarn_raise_memory(tarn_ctx *cx);
/* vsnprintf in the C locale. */
int tarn_vprint(tarn_ctx *cx, char *out, size_t n, const char *fmt, va_list ap);
/* strtod in the C locale. */
double tarn_strtod(tarn_ctx *cx, const char *s, char **end);
/* Grows the arena allocation p from old to n bytes where it stands; false when that is not
 * possible. */
bool tarn_arena_extend(tarn_ctx *cx, void *p, size_t old, size_t n);

#endif
