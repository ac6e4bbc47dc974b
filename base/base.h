/* tarn base: what every other module stands on.
 *
 * Context.  A tarn_ctx is one compile: an allocator, an arena, a stack of protected calls, an
 * error. There is no global state; two contexts may be used from two threads, one context from one
 * at a time.
 *
 * Errors.  Inside a protected call, a function that cannot go on calls tarn_raise(); control
 * returns to the innermost tarn_protect(), which runs the clean-ups registered since, and returns
 * the status.  Functions marked "raises" may only be called inside a protected call.  Entry points
 * for users of the library are not so marked: they protect themselves and return a status.  Nothing
 * in a library prints, exits or aborts.
 *
 * Ownership.  tarn_new() memory belongs to the context's arena and lives until the context is
 * freed, or until tarn_release() of a mark taken before it.  A child of a context has an arena of
 * its own.  Whatever is not arena memory (a file, an LLVM module, a malloc of a library) is
 * registered with tarn_defer() as soon as it exists.
 */
#ifndef TARN_BASE_H
#define TARN_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TARN_API          __attribute__((visibility("default")))
#define TARN_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TARN_API
#define TARN_PRINTF(f, a)
#endif

#ifdef __cplusplus
#define TARN_NORETURN [[noreturn]]
#else
#define TARN_NORETURN _Noreturn
#endif

/* The values are the exit codes of the tarn program, except that every code above 4 exits with 3.
 */
typedef enum tarn_status {
  TARN_OK = 0,
  TARN_NO = 1,        /* a check says no: outputs differ, a rule is wrong, a proof does not hold */
  TARN_USAGE = 2,     /* the caller's arguments are wrong */
  TARN_BAD_INPUT = 3, /* a file or description is wrong: the message says what and where */
  TARN_NO_RESULT = 4, /* no result within the limits */
  TARN_MEMORY = 5,    /* an allocation failed */
  TARN_IO = 6,        /* the system refused: the message holds the file and the reason */
  TARN_INTERNAL = 7   /* a broken invariant of ours */
} tarn_status;

/* ptr == NULL: allocate n; n == 0: free ptr (old bytes long); else resize from old to n. NULL =
 * failed, ptr intact. */
typedef struct tarn_allocator {
  void *(*realloc)(void *user, void *ptr, size_t old, size_t n);
  void *user;
} tarn_allocator;

/* The C library's realloc and free. */
TARN_API extern const tarn_allocator tarn_malloc_allocator;

typedef struct tarn_ctx tarn_ctx;

/* allocator NULL means tarn_malloc_allocator (it is copied). Returns NULL when out of memory. */
TARN_API tarn_ctx *tarn_ctx_new(const tarn_allocator *allocator);
/* Runs outstanding clean-ups, frees all memory. NULL is allowed. */
TARN_API void tarn_ctx_free(tarn_ctx *cx);
/* An arena of its own, freed by tarn_ctx_free() or with the context: for work of which a part
 * stays. All else is the context's: protected calls, messages, clean-ups, warnings. Raises. */
TARN_API tarn_ctx *tarn_ctx_child(tarn_ctx *cx);
TARN_API const tarn_allocator *tarn_ctx_allocator(const tarn_ctx *cx);
/* Bytes now held by the arena, with those of its children, and the most ever held by all. */
TARN_API size_t tarn_ctx_bytes(const tarn_ctx *cx);
TARN_API size_t tarn_ctx_peak(const tarn_ctx *cx);

typedef void tarn_fn(tarn_ctx *cx, void *arg);
/* Calls fn(cx, arg). TARN_OK, or the status raised inside; then tarn_message() is the reason. May
 * nest. Arena memory allocated inside stays valid either way. */
TARN_API tarn_status tarn_protect(tarn_ctx *cx, tarn_fn *fn, void *arg);
/* The same, for what may be left out: false when something was raised. But TARN_MEMORY is raised
 * again. */
TARN_API bool tarn_tried(tarn_ctx *cx, tarn_fn *fn, void *arg);
/* Message format: one line, no final newline: WHERE: WHAT. (What cannot be seen in it is spelled,
 * as TARN_AS_TEXT.) */
TARN_NORETURN TARN_API void tarn_raise(tarn_ctx *cx, tarn_status st, const char *fmt, ...)
    TARN_PRINTF(3, 4);
/* Raises again what an inner tarn_protect() just returned. */
TARN_NORETURN TARN_API void tarn_reraise(tarn_ctx *cx, tarn_status st);
/* The last message, "" when none; valid until the next raise or the context is freed. */
TARN_API const char *tarn_message(const tarn_ctx *cx);
TARN_API void tarn_set_message(tarn_ctx *cx, const char *fmt, ...) TARN_PRINTF(2, 3);

/* Registers a clean-up to run when the enclosing protected call ends, raised or not (last in, first
 * out). Raises (after running fn) when it cannot be registered. */
TARN_API void tarn_defer(tarn_ctx *cx, void (*fn)(void *), void *arg);
/* Clean-ups registered for arg do not run: from now on the caller sees to it. */
TARN_API void tarn_keep(tarn_ctx *cx, const void *arg);

/* Warnings: collected, never printed by the library (the program prints them to stderr). */
TARN_API void tarn_warn(tarn_ctx *cx, const char *fmt, ...) TARN_PRINTF(2, 3);
TARN_API size_t tarn_warning_count(const tarn_ctx *cx);
TARN_API const char *tarn_warning(const tarn_ctx *cx, size_t i);

/* ---- arena (all raise TARN_MEMORY) ---- */
TARN_API void *tarn_new(tarn_ctx *cx, size_t n); /* zeroed, aligned to 16 */
TARN_API void *tarn_new_array(tarn_ctx *cx, size_t count,
                              size_t each); /* zeroed, overflow checked */
TARN_API void *tarn_new_aligned(tarn_ctx *cx, size_t n, size_t align); /* not zeroed */
TARN_API void *tarn_copy(tarn_ctx *cx, const void *p, size_t n);
TARN_API char *tarn_strdup(tarn_ctx *cx, const char *s);
TARN_API char *tarn_strndup(tarn_ctx *cx, const char *s, size_t n);
TARN_API char *tarn_format(tarn_ctx *cx, const char *fmt, ...) TARN_PRINTF(2, 3);
TARN_API char *tarn_vformat(tarn_ctx *cx, const char *fmt, va_list ap) TARN_PRINTF(2, 0);
#define TARN_NEW(cx, T)      ((T *)tarn_new((cx), sizeof(T)))
#define TARN_ARRAY(cx, T, n) ((T *)tarn_new_array((cx), (size_t)(n), sizeof(T)))

typedef struct tarn_mark {
  void *block;
  size_t used;
} tarn_mark;
TARN_API tarn_mark tarn_arena_mark(tarn_ctx *cx);
/* Frees what was allocated since; only for scratch that nothing older points to. */
TARN_API void tarn_release(tarn_ctx *cx, tarn_mark m);
/* Frees the one large allocation that holds p, if it was made since: a big tensor among what stays.
 */
TARN_API void tarn_drop(tarn_ctx *cx, const void *p, tarn_mark since);

TARN_API bool tarn_arena_holds(const tarn_ctx *cx, const void *p); /* not of its children */

/* ---- vectors in the arena: TARN_VEC(int) v = {0}; tarn_push(cx, &v, 3); v.p[0], v.n ---- */
#define TARN_VEC(T)                                                                                \
  struct {                                                                                         \
    T *p;                                                                                          \
    uint32_t n, cap;                                                                               \
  }
TARN_API void *tarn_vec_grow(tarn_ctx *cx, void *p, uint32_t n, uint32_t *cap,
                             size_t each); /* raises */
#define tarn_push(cx, v, x)                                                                        \
  ((v)->n == (v)->cap                                                                              \
       ? (void)((v)->p = tarn_vec_grow((cx), (v)->p, (v)->n, &(v)->cap, sizeof *(v)->p))           \
       : (void)0,                                                                                  \
   (v)->p[(v)->n++] = (x))

/* ---- whole numbers (d > 0), the lesser and the greater, the clock ---- */
static inline int64_t tarn_floordiv(int64_t a, int64_t d) { return a / d - (a % d < 0); }
static inline int64_t tarn_floormod(int64_t a, int64_t d) { return a % d < 0 ? a % d + d : a % d; }
static inline int64_t tarn_ceildiv(int64_t a, int64_t d) { return a / d + (a % d > 0); }
static inline int64_t tarn_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tarn_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t tarn_clamp(int64_t a, int64_t lo, int64_t hi) {
  return a < lo ? lo : a > hi ? hi : a;
}
static inline int64_t tarn_round_up(int64_t n, int64_t by) { return tarn_ceildiv(n, by) * by; }
static inline double tarn_fmin(double a, double b) { return a < b ? a : b; } /* no NaN */
static inline double tarn_fmax(double a, double b) { return a > b ? a : b; }
TARN_API int64_t tarn_gcd(int64_t a, int64_t b); /* >= 0; 0 where both are */
TARN_API double tarn_now(void);                  /* seconds, monotonic */

/* Calls fn on a stack of that many bytes, which are used as far as they are needed: for recursion
 * whose depth is limited, but not by what a caller's stack may hold. fn raises nothing out of the
 * call. False: there was no such stack, and fn was not called. */
TARN_API bool tarn_deep(size_t bytes, void (*fn)(void *arg), void *arg);

/* ---- hashing ---- */
TARN_API uint64_t tarn_hash_bytes(const void *p, size_t n,
                                  uint64_t seed); /* stable across runs and platforms */
static inline uint64_t tarn_hash_mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 32);
}

/* ---- orders, for qsort() and bsearch() ---- */
static inline int tarn_by_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}
static inline int tarn_by_i64(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}
static inline int tarn_by_float(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}
static inline int tarn_by_double(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Strings, and what begins with a pointer to one. */
static inline int tarn_by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- random numbers ---- */
/* The next of the sequence that *state determines. Source: Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators" (splitmix64), OOPSLA 2014. */
static inline uint64_t tarn_random(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
/* Uniform in [-1, 1). */
static inline double tarn_random_unit(uint64_t *state) {
  return (double)(int64_t)(tarn_random(state) >> 11) * 0x1p-52 - 1;
}

/* Map from bytes to a dense id 0,1,2… (interning). Keys are copied into the arena. Iteration order
 * = id order. */
typedef struct tarn_intern tarn_intern;
TARN_API tarn_intern *tarn_intern_new(tarn_ctx *cx);
TARN_API uint32_t tarn_intern_add(tarn_intern *t, const void *key,
                                  size_t n); /* the id, new or known; raises */
#define TARN_NONE UINT32_MAX
TARN_API uint32_t tarn_intern_find(const tarn_intern *t, const void *key,
                                   size_t n); /* TARN_NONE when absent */
/* Another one with the first n of its entries, whose keys stay where they are. */
TARN_API tarn_intern *tarn_intern_fork(tarn_ctx *cx, const tarn_intern *t, uint32_t n);
TARN_API const void *tarn_intern_key(const tarn_intern *t, uint32_t id, size_t *n);
TARN_API uint32_t tarn_intern_count(const tarn_intern *t);

/* Map u64 -> u64 in the arena. */
typedef struct tarn_map tarn_map;
TARN_API tarn_map *tarn_map_new(tarn_ctx *cx);
TARN_API uint64_t *tarn_map_at(tarn_map *m, uint64_t key,
                               bool *fresh); /* inserts 0 when absent; raises */
TARN_API uint64_t *tarn_map_get(const tarn_map *m, uint64_t key); /* NULL when absent */
TARN_API tarn_map *tarn_map_fork(tarn_ctx *cx, const tarn_map *m,
                                 uint32_t n); /* another one with its first n entries */
TARN_API uint32_t tarn_map_count(const tarn_map *m);
/* The i-th entry in order of insertion, i < count; key may be NULL. Values move when an entry is
 * added. */
TARN_API uint64_t *tarn_map_item(const tarn_map *m, uint32_t i, uint64_t *key);

/* A data file embedded at build time (cmake/TarnEmbed.cmake): a table of these ends with a NULL
 * name.
 */
typedef struct tarn_embedded {
  const char *name;
  const char *text;
  size_t n;
} tarn_embedded;

/* ---- growing byte strings ---- */
typedef struct tarn_buf {
  tarn_ctx *cx;
  char *p;
  size_t n, cap;
} tarn_buf; /* p is always NUL-terminated once used */
TARN_API void tarn_buf_add(tarn_buf *b, const char *s, size_t n);
/* The bytes of a number, for keys of tables. */
static inline void tarn_buf_i64(tarn_buf *b, int64_t v) {
  tarn_buf_add(b, (const char *)&v, sizeof v);
}
TARN_API void tarn_buf_str(tarn_buf *b, const char *s);
TARN_API void tarn_buf_fmt(tarn_buf *b, const char *fmt, ...) TARN_PRINTF(2, 3);
/* Shortest decimal text that reads back to the same double; inf, -inf, nan for those. */
TARN_API void tarn_buf_double(tarn_buf *b, double x);

/* ---- text as data ----
 * Names in models, files and command lines can hold any bytes. A printer says where the text goes:
 *   TEXT               a line for people (a message, a terminal)
 *   SX, C, JSON, DOT   the inside of a string of that language; C: a comment too
 *   HTML               between tags or in a quoted attribute; line breaks stay
 * Invisible bytes are spelled \xHH (C: \OOO; JSON: \uHHHH by code point, \xHH if not UTF-8). */
typedef enum {
  TARN_AS_TEXT,
  TARN_AS_SX,
  TARN_AS_C,
  TARN_AS_JSON,
  TARN_AS_HTML,
  TARN_AS_DOT
} tarn_as;
#define TARN_ESCAPED 16
/* Spells what s, n > 0 bytes, begins with, NUL-terminated; returns how many bytes of s that was. */
TARN_API size_t tarn_escape(tarn_as as, const char *s, size_t n, char out[TARN_ESCAPED]);
TARN_API void tarn_buf_as(tarn_buf *b, tarn_as as, const char *s, size_t n);
TARN_API char *tarn_shown(tarn_ctx *cx, const char *s); /* as TEXT */
/* Is that the name, as it is or as it is shown? For names that people and files of ours give. */
TARN_API bool tarn_is_called(tarn_ctx *cx, const char *given, const char *name);
/* Bytes of the character that s begins with when it can be seen, else 0. */
TARN_API size_t tarn_visible(const char *s, size_t n);

/* ---- the one s-expression reader ----
 * Serves terms, rules, hardware descriptions, programs and proofs.
 *   atom      any run of characters but space ( ) ; "        foo  $0  ?x  -1.5e3  map:relu
 *   string    "..." with \" \\ \n \t \xHH
 *   list      ( ... )      comment   ; to end of line
 * Numbers are atoms that parse wholly as a decimal integer of at most 63 bits or a C double (inf,
 * -inf, nan too). */
typedef enum { TARN_SX_LIST, TARN_SX_ATOM, TARN_SX_STRING, TARN_SX_INT, TARN_SX_REAL } tarn_sx_kind;
typedef struct tarn_sx {
  tarn_sx_kind kind;
  uint32_t line, col; /* 1-based */
  const char *file;   /* as given to the reader */
  const char *text; /* atom, string or number as written (string: unescaped), NUL-terminated; "" for
                       a list */
  size_t len;
  int64_t i;            /* INT */
  double r;             /* INT and REAL */
  struct tarn_sx **kid; /* LIST */
  uint32_t n;
} tarn_sx;
/* All top-level forms as one LIST. Raises TARN_BAD_INPUT "FILE:LINE:COL: …" (unclosed list, depth
 * over 10,000…). */
TARN_API tarn_sx *tarn_sx_read(tarn_ctx *cx, const char *text, size_t n, const char *file);
TARN_API tarn_sx *tarn_sx_read_file(tarn_ctx *cx, const char *path); /* also raises TARN_IO */
/* Is it a list whose first element is the atom head? */
TARN_API bool tarn_sx_is(const tarn_sx *s, const char *head);
TARN_API bool tarn_sx_atom_is(const tarn_sx *s, const char *atom);
/* Raises TARN_BAD_INPUT "FILE:LINE:COL: …". */
TARN_NORETURN TARN_API void tarn_sx_error(tarn_ctx *cx, const tarn_sx *at, const char *fmt, ...)
    TARN_PRINTF(3, 4);
/* Kid i of a list, of that kind; a whole number from lo to hi. Both raise: what is expected. */
/* Raises where brackets nest deeper than that: what is read by recursion asks for it. */
TARN_API void tarn_sx_limit(tarn_ctx *cx, const tarn_sx *s, uint32_t depth);
TARN_API const tarn_sx *tarn_sx_kid(tarn_ctx *cx, const tarn_sx *s, uint32_t i, tarn_sx_kind kind,
                                    const char *what);
TARN_API int64_t tarn_sx_whole(tarn_ctx *cx, const tarn_sx *s, uint32_t i, int64_t lo, int64_t hi);
/* "…"; and an atom where that reads back as the same text (a number counts as one), else a string.
 */
TARN_API void tarn_sx_string(tarn_buf *b, const char *s, size_t n);
TARN_API void tarn_sx_name(tarn_buf *b, const char *s, size_t n);
TARN_API bool tarn_sx_is_atom(const char *s, size_t n);
/* width 0: one line; else breaks lines longer than width, indenting by 2. */
TARN_API void tarn_sx_print(tarn_buf *b, const tarn_sx *s, unsigned width);
/* Runs lld with these arguments (the first is its name, NULL ends them); *why: its first error. */
typedef enum { TARN_LLD_DONE, TARN_LLD_FAILED, TARN_LLD_MISSING } tarn_lld_result;
TARN_API tarn_lld_result tarn_lld(tarn_ctx *cx, const char *const *argv, const char **why);
/* The file's text, NUL-terminated beyond n; raises TARN_IO. */
TARN_API char *tarn_read_file(tarn_ctx *cx, const char *path, size_t *n);
/* Writes to a temporary file beside path and renames, so a full disk or a kill loses nothing;
 * raises TARN_IO. */
TARN_API void tarn_write_file(tarn_ctx *cx, const char *path, const void *p, size_t n);

#ifdef __cplusplus
}
#endif
#endif
