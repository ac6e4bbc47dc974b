/* For readers of files that lie beside a model: what comes is the file NAME of a folder, which goes
 * with the process. */
#ifndef TARN_TESTS_FUZZ_FILE_H
#define TARN_TESTS_FUZZ_FILE_H
#include "tests/folder.h"
#include "tests/fuzz/fuzz.h"

static inline void fuzz_file(tarn_ctx *cx, const char *name, const fuzz_input *in) {
  static bool made;
  if (!made) {
    FUZZ_CHECK(folder_make() && atexit(folder_drop) == 0);
    made = true;
  }
  tarn_write_file(cx, in_folder(cx, name), in->bytes, in->n);
}

#endif
