/* Common to the fuzz targets. Each tests/fuzz/fuzz_NAME.c defines LLVMFuzzerTestOneInput and has
 * its seeds and all that ever broke it in tests/corpus/NAME/. `make fuzz` explores with libFuzzer;
 * `make check` replays the corpus. */
#ifndef TARN_TESTS_FUZZ_H
#define TARN_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define FUZZ_CHECK(c)                                                                              \
  do {                                                                                             \
    if (!(c)) {                                                                                    \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c);                                      \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#endif
