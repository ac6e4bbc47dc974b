/* Contexts, protected calls, messages, clean-ups, warnings. */
#include "base/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char out_of_memory[] = "out of memory";

/* What is large (weights) in huge pages: hundreds of thousands of faults less for a large model
 * (bench/notes/avx2.md). */
#define HUGE_PAGE ((size_t)2 << 20)
static void *large(size_t n) {
  void *p = NULL;
  if (posix_memalign(&p, HUGE_PAGE, n)) return NULL;
  (void)madvise(p, n & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
  return p;
}
static void *malloc_realloc(void *user, void *p, size_t old, size_t n) {
  (void)user, (void)old;
  if (n == 0) {
    free(p);
    return NULL;
  }
  return !p && n >= 2 * HUGE_PAGE ? large(n) : realloc(p, n);
}

const tarn_allocator tarn_malloc_allocator = {malloc_realloc, NULL};

void *tarn_raw(tarn_ctx *cx, void *p, size_t old, size_t n) {
  return cx->a.realloc(cx->a.user, p, old, n);
}

static void raw_free(tarn_ctx *cx, void *p, size_t n) {
  if (p) cx->a.realloc(cx->a.user, p, n, 0);
}

tarn_ctx *tarn_ctx_new(const tarn_allocator *allocator) {
  tarn_allocator a = allocator ? *allocator : tarn_malloc_allocator;
  tarn_ctx *cx = a.realloc(a.user, NULL, 0, sizeof *cx);
  if (!cx) return NULL;
  memset(cx, 0, sizeof *cx);
  cx->top = cx;
  cx->a = a;
  cx->message = "";
  cx->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!cx->c_locale) {
    raw_free(cx, cx, sizeof *cx);
    return NULL;
  }
  return cx;
}

tarn_ctx *tarn_ctx_child(tarn_ctx *cx) {
  tarn_ctx *top = cx->top, *c = tarn_raw(top, NULL, 0, sizeof *c);
  if (!c) tarn_raise_memory(top);
  *c = (tarn_ctx){.top = top, .sibling = top->child, .a = top->a, .c_locale = top->c_locale};
  top->child = c;
  return c;
}

static void free_child(tarn_ctx *c) {
  tarn_ctx **at = &c->top->child;
  while (*at != c) at = &(*at)->sibling;
  *at = c->sibling;
  tarn_arena_free_all(c);
  raw_free(c->top, c, sizeof *c);
}

static void run_deferred(tarn_ctx *cx, size_t down_to) {
  while (cx->defer_count > down_to) {
    tarn_deferred d = cx->defers[--cx->defer_count];
    if (d.fn) d.fn(d.arg);
  }
}

void tarn_ctx_free(tarn_ctx *cx) {
  if (!cx) return;
  if (cx != cx->top) {
    free_child(cx);
    return;
  }
  run_deferred(cx, 0);
  while (cx->child) free_child(cx->child);
  raw_free(cx, cx->defers, cx->defer_cap * sizeof *cx->defers);
  for (int i = 0; i < 2; i++) raw_free(cx, cx->slot[i].heap, cx->slot[i].cap);
  for (size_t i = 0; i < cx->warning_count; i++)
    raw_free(cx, cx->warnings[i], strlen(cx->warnings[i]) + 1);
  raw_free(cx, cx->warnings, cx->warning_cap * sizeof *cx->warnings);
  tarn_arena_free_all(cx);
  freelocale(cx->c_locale);
  raw_free(cx, cx, sizeof *cx);
}

const tarn_allocator *tarn_ctx_allocator(const tarn_ctx *cx) { return &cx->a; }
size_t tarn_ctx_bytes(const tarn_ctx *cx) { return cx->bytes; }
size_t tarn_ctx_peak(const tarn_ctx *cx) { return cx->top->peak; }

/* ---- text in the C locale ---- */

int tarn_vprint(tarn_ctx *cx, char *out, size_t n, const char *fmt, va_list ap) {
  locale_t old = uselocale(cx->c_locale);
  int len = vsnprintf(out, n, fmt, ap);
  uselocale(old);
  return len;
}

double tarn_strtod(tarn_ctx *cx, const char *s, char **end) {
  locale_t old = uselocale(cx->c_locale);
  double x = strtod(s, end);
  uselocale(old);
  return x;
}

/* ---- messages ---- */

static bool slot_reserve(tarn_ctx *cx, tarn_slot *s, size_t n) {
  if (n <= s->cap) return true;
  char *p = tarn_raw(cx, s->heap, s->cap, n);
  if (!p) return false;
  s->heap = p;
  s->cap = n;
  return true;
}

/* The text of a message, of len bytes, so that all of it can be seen. NULL: out of memory. */
static const char *shown(tarn_ctx *cx, tarn_slot *s, const char *text, size_t len) {
  size_t seen = 0, step = 1, cap;
  while (seen < len && (step = tarn_visible(text + seen, len - seen))) seen += step;
  if (seen == len) return text;
  char *p = tarn_raw_shown(cx, text, len, &cap);
  if (!p) return NULL;
  raw_free(cx, s->heap, s->cap);
  s->heap = p;
  s->cap = cap;
  return p;
}

/* Writes into the slot not now shown: the arguments may point into the current message. */
static bool set_message(tarn_ctx *cx, const char *fmt, va_list ap) {
  tarn_slot *s = &cx->slot[cx->cur ^ 1u];
  va_list again;
  va_copy(again, ap);
  int len = tarn_vprint(cx, s->fixed, sizeof s->fixed, fmt, ap);
  const char *text = s->fixed;
  bool ok = len >= 0;
  if (ok && (size_t)len >= sizeof s->fixed) {
    size_t need = (size_t)len + 1;
    ok = slot_reserve(cx, s, need) && tarn_vprint(cx, s->heap, need, fmt, again) == len;
    text = s->heap;
  }
  va_end(again);
  text = ok ? shown(cx, s, text, (size_t)len) : NULL;
  ok = text != NULL;
  cx->message = ok ? text : out_of_memory;
  if (ok) cx->cur ^= 1u;
  return ok;
}

const char *tarn_message(const tarn_ctx *cx) { return cx->top->message; }

void tarn_set_message(tarn_ctx *cx, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  bool ok = set_message(cx->top, fmt, ap);
  va_end(ap);
  if (!ok && cx->top->frame) tarn_raise_memory(cx);
}

/* ---- protected calls ---- */

tarn_status tarn_protect(tarn_ctx *cx, tarn_fn *fn, void *arg) {
  tarn_ctx *top = cx->top;
  tarn_frame f;
  f.outer = top->frame;
  f.defers = top->defer_count;
  top->frame = &f;
  bool raised = setjmp(f.env) != 0;
  if (!raised) fn(cx, arg);
  tarn_status st = raised ? top->raised : TARN_OK;
  top->frame = f.outer;
  run_deferred(top, f.defers);
  return st;
}

/* Outside a protected call there is nowhere to return to: that is the caller's breach of contract,
 * and the one place where the library gives up. */
_Noreturn void tarn_reraise(tarn_ctx *cx, tarn_status st) {
  tarn_ctx *top = cx->top;
  if (!top->frame) __builtin_trap();
  top->raised = st == TARN_OK ? TARN_INTERNAL : st;
  longjmp(top->frame->env, 1);
}

bool tarn_tried(tarn_ctx *cx, tarn_fn *fn, void *arg) {
  tarn_status st = tarn_protect(cx, fn, arg);
  if (st == TARN_MEMORY) tarn_reraise(cx, st);
  return st == TARN_OK;
}

_Noreturn void tarn_raise_memory(tarn_ctx *cx) {
  cx->top->message = out_of_memory;
  tarn_reraise(cx, TARN_MEMORY);
}

_Noreturn void tarn_raise(tarn_ctx *cx, tarn_status st, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  bool ok = set_message(cx->top, fmt, ap);
  va_end(ap);
  tarn_reraise(cx, ok ? st : TARN_MEMORY);
}

/* Room for one more element in a raw array; false when out of memory. */
static bool raw_room(tarn_ctx *cx, void **p, size_t n, size_t *cap, size_t each) {
  if (n < *cap) return true;
  size_t wider = *cap ? 2 * *cap : 8;
  void *q = tarn_raw(cx, *p, *cap * each, wider * each);
  if (!q) return false;
  *p = q;
  *cap = wider;
  return true;
}

void tarn_defer(tarn_ctx *cx, void (*fn)(void *), void *arg) {
  cx = cx->top;
  void *p = cx->defers;
  bool ok = raw_room(cx, &p, cx->defer_count, &cx->defer_cap, sizeof *cx->defers);
  cx->defers = p;
  if (!ok) {
    fn(arg);
    tarn_raise_memory(cx);
  }
  cx->defers[cx->defer_count++] = (tarn_deferred){fn, arg};
}

void tarn_keep(tarn_ctx *cx, const void *arg) {
  cx = cx->top;
  size_t mine = cx->frame ? cx->frame->defers : 0;
  for (size_t i = 0; i < cx->defer_count; i++)
    if (cx->defers[i].arg == arg) cx->defers[i].fn = NULL;
  while (cx->defer_count > mine && !cx->defers[cx->defer_count - 1].fn) cx->defer_count--;
}

/* ---- warnings ---- */

static char *raw_format(tarn_ctx *cx, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int len = tarn_vprint(cx, NULL, 0, fmt, ap);
  char *s = len < 0 ? NULL : tarn_raw(cx, NULL, 0, (size_t)len + 1), *seen = NULL;
  size_t cap;
  if (s) {
    tarn_vprint(cx, s, (size_t)len + 1, fmt, again);
    seen = tarn_raw_shown(cx, s, (size_t)len, &cap);
    raw_free(cx, s, (size_t)len + 1);
  }
  va_end(again);
  return seen;
}

void tarn_warn(tarn_ctx *cx, const char *fmt, ...) {
  cx = cx->top;
  void *p = cx->warnings;
  bool ok = raw_room(cx, &p, cx->warning_count, &cx->warning_cap, sizeof *cx->warnings);
  cx->warnings = p;
  va_list ap;
  va_start(ap, fmt);
  char *s = ok ? raw_format(cx, fmt, ap) : NULL;
  va_end(ap);
  if (s) {
    cx->warnings[cx->warning_count++] = s;
    return;
  }
  if (cx->frame) tarn_raise_memory(cx);
  cx->warning_lost = true;
}

size_t tarn_warning_count(const tarn_ctx *cx) {
  return cx->top->warning_count + cx->top->warning_lost;
}

const char *tarn_warning(const tarn_ctx *cx, size_t i) {
  cx = cx->top;
  if (i < cx->warning_count) return cx->warnings[i];
  return i == cx->warning_count && cx->warning_lost ? "out of memory: a warning is lost" : "";
}
