/* Common to the fuzz targets. Each tests/fuzz/fuzz_NAME.c defines LLVMFuzzerTestOneInput and has
 * its seeds and all that ever broke it in tests/corpus/NAME/. `make fuzz` explores with libFuzzer;
 * `make check` replays the corpus. */
#ifndef TARN_TESTS_FUZZ_H
#define TARN_TESTS_FUZZ_H

#include "base/base.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_CHECK(c)                                                                              \
  do {                                                                                             \
    if (!(c)) {                                                                                    \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c);                                      \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

typedef struct fuzz_input {
  const void *bytes; /* of its exact size, so that reading past the end is seen */
  size_t n;
  const void *with; /* what else the reader is given */
} fuzz_input;

/* read(cx, fuzz_input *) in a context over `a` (NULL: malloc): it succeeds, or says in one
 * line why not; what is wrong with the input, in a line that begins with `name`. */
static inline tarn_status fuzz_read(const uint8_t *data, size_t n, const tarn_allocator *a,
                                    tarn_fn *read, const void *with, const char *name) {
  void *exact = malloc(n ? n : 1);
  FUZZ_CHECK(exact);
  if (n) memcpy(exact, data, n);
  tarn_ctx *cx = tarn_ctx_new(a);
  FUZZ_CHECK(cx);
  fuzz_input in = {exact, n, with};
  tarn_status st = tarn_protect(cx, read, &in);
  const char *message = tarn_message(cx);
  FUZZ_CHECK(st != TARN_USAGE && st != TARN_INTERNAL);
  FUZZ_CHECK(st == TARN_OK || (*message && !strchr(message, '\n')));
  FUZZ_CHECK(st != TARN_BAD_INPUT || strncmp(message, name, strlen(name)) == 0);
  tarn_ctx_free(cx);
  free(exact);
  return st;
}

#endif
