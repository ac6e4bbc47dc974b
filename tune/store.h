/* What the files of the store share. */
#ifndef TARN_TUNE_STORE_H
#define TARN_TUNE_STORE_H
#include "tune/tune.h"
#include <sqlite3.h>

struct tarn_store {
  tarn_ctx *cx;
  const char *path;
  sqlite3 *db;
};
TARN_NORETURN void store_fail(tarn_store *s);
void store_run(tarn_store *s, const char *sql);
sqlite3_stmt *store_prepare(tarn_store *s, const char *sql);
/* fn(cx, arg) in one transaction: all of it becomes durable, or nothing. */
void store_together(tarn_store *s, tarn_fn *fn, void *arg);
const char *store_column(tarn_store *s, sqlite3_stmt *q, int i);
#endif
