/* A folder of the test program's own, which goes with it. */
#ifndef TARN_TESTS_FOLDER_H
#define TARN_TESTS_FOLDER_H
#include "base/base.h"
#include "tests/suite.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/tarn-test-XXXXXX";

static inline const char *in_folder(tarn_ctx *c, const char *name) {
  return tarn_format(c, "%s/%s", folder, name);
}
static inline int folder_drop_one(const char *path, const struct stat *st, int kind,
                                  struct FTW *at) {
  (void)st, (void)kind, (void)at;
  return remove(path);
}
static inline void folder_drop(void) { nftw(folder, folder_drop_one, 8, FTW_DEPTH | FTW_PHYS); }
static inline bool folder_make(void) { return mkdtemp(folder) != NULL; }
/* Between the two. */
static inline int run_in_folder(const char *name, TCase *t) {
  if (!folder_make()) return 1;
  int failed = run_checks(name, t);
  folder_drop();
  return failed;
}
#endif
