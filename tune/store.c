/* The store of measurements. One table; the columns that name a measurement are its key. */
#include "tune/tune.h"
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>

struct tarn_store {
  tarn_ctx *cx;
  const char *path;
  sqlite3 *db;
};

#define STORE_KIND 0x7461726e /* application_id: "tarn" */
/* Of the features and of the kernel hashes: a store keeps measurements of several versions apart. */
#define STORE_VERSION (1000 + TARN_FEATURES)

static void close_store(void *p) {
  tarn_store *s = p;
  sqlite3_close(s->db);
  s->db = NULL;
}
static void fail(tarn_store *s) { tarn_raise(s->cx, TARN_IO, "%s: %s", s->path, sqlite3_errmsg(s->db)); }
static void run(tarn_store *s, const char *sql) {
  if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) fail(s);
}
static sqlite3_stmt *prepare(tarn_store *s, const char *sql) {
  sqlite3_stmt *q;
  if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK) fail(s);
  return q;
}
static int64_t one_number(tarn_store *s, const char *sql) {
  sqlite3_stmt *q = prepare(s, sql);
  int64_t v = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : -1;
  sqlite3_finalize(q);
  return v;
}

tarn_store *tarn_store_open(tarn_ctx *cx, const char *path) {
  tarn_store *s = TARN_NEW(cx, tarn_store);
  *s = (tarn_store){.cx = cx, .path = tarn_strdup(cx, path)};
  int st = sqlite3_open(path, &s->db);
  tarn_defer(cx, close_store, s);
  if (st != SQLITE_OK) fail(s);
  sqlite3_busy_timeout(s->db, 10000);
  int64_t kind = one_number(s, "PRAGMA application_id"), tables = one_number(s, "SELECT count(*) FROM sqlite_schema");
  if (kind != STORE_KIND && tables != 0) tarn_raise(cx, TARN_BAD_INPUT, "%s: not a store of measurements", path);
  run(s, "PRAGMA journal_mode = WAL");
  run(s, "PRAGMA application_id = 1952543342"
         ";CREATE TABLE IF NOT EXISTS sample(hw TEXT NOT NULL, version INTEGER NOT NULL, threads INTEGER NOT NULL,"
         " kernel INTEGER NOT NULL, schedule INTEGER NOT NULL, seconds REAL, analytic REAL NOT NULL, feature BLOB NOT NULL,"
         " PRIMARY KEY(hw, version, threads, kernel, schedule)) WITHOUT ROWID");
  return s;
}

const char *tarn_hw_key(const tarn_hw *hw, tarn_ctx *cx) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "%s %u bit, %.2f GHz", hw->cpu ? hw->cpu : hw->name, hw->vector_bits, hw->clock / 1e9);
  for (uint32_t i = 0; i < hw->nmem; i++)
    if (hw->mem[i].capacity) tarn_buf_fmt(&b, ", %" PRId64 " KiB", (int64_t)hw->mem[i].capacity / 1024);
  return b.p;
}

static void bind_key(sqlite3_stmt *q, const char *hw, uint32_t threads, uint64_t kernel, uint64_t schedule) {
  sqlite3_bind_text(q, 1, hw, -1, SQLITE_STATIC);
  sqlite3_bind_int(q, 2, STORE_VERSION);
  sqlite3_bind_int(q, 3, (int)threads);
  sqlite3_bind_int64(q, 4, (sqlite3_int64)kernel);
  sqlite3_bind_int64(q, 5, (sqlite3_int64)schedule);
}
/* Columns kernel, schedule, seconds, analytic, feature. */
static void read_row(sqlite3_stmt *q, tarn_sample *x) {
  x->kernel = (uint64_t)sqlite3_column_int64(q, 0), x->schedule = (uint64_t)sqlite3_column_int64(q, 1);
  x->seconds = sqlite3_column_type(q, 2) == SQLITE_NULL ? INFINITY : sqlite3_column_double(q, 2);
  x->analytic = sqlite3_column_double(q, 3);
  memset(x->feature, 0, sizeof x->feature);
  if ((size_t)sqlite3_column_bytes(q, 4) == sizeof x->feature) memcpy(x->feature, sqlite3_column_blob(q, 4), sizeof x->feature);
}

bool tarn_store_has(tarn_store *s, const char *hw, uint32_t threads, uint64_t kernel, uint64_t schedule, tarn_sample *out) {
  sqlite3_stmt *q = prepare(s, "SELECT kernel, schedule, seconds, analytic, feature FROM sample"
                               " WHERE hw=?1 AND version=?2 AND threads=?3 AND kernel=?4 AND schedule=?5");
  bind_key(q, hw, threads, kernel, schedule);
  int st = sqlite3_step(q);
  if (st == SQLITE_ROW && out) read_row(q, out);
  sqlite3_finalize(q);
  if (st != SQLITE_ROW && st != SQLITE_DONE) fail(s);
  return st == SQLITE_ROW;
}

void tarn_store_add(tarn_store *s, const char *hw, uint32_t threads, const tarn_sample *x, uint32_t n) {
  run(s, "BEGIN IMMEDIATE");
  sqlite3_stmt *q = prepare(s, "INSERT OR REPLACE INTO sample VALUES(?1,?2,?3,?4,?5,?6,?7,?8)");
  int st = SQLITE_DONE;
  for (uint32_t i = 0; i < n && st == SQLITE_DONE; i++) {
    sqlite3_reset(q);
    bind_key(q, hw, threads, x[i].kernel, x[i].schedule);
    if (x[i].seconds < INFINITY) sqlite3_bind_double(q, 6, x[i].seconds);
    else sqlite3_bind_null(q, 6);
    sqlite3_bind_double(q, 7, x[i].analytic);
    sqlite3_bind_blob(q, 8, x[i].feature, sizeof x[i].feature, SQLITE_STATIC);
    st = sqlite3_step(q);
  }
  sqlite3_finalize(q);
  if (st == SQLITE_DONE && sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK) return;
  const char *why = tarn_strdup(s->cx, sqlite3_errmsg(s->db));
  sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
  tarn_raise(s->cx, TARN_IO, "%s: %s", s->path, why);
}

uint32_t tarn_store_read(tarn_store *s, const char *hw, const tarn_sample **out) {
  TARN_VEC(tarn_sample) v = {0};
  sqlite3_stmt *q = prepare(s, "SELECT kernel, schedule, seconds, analytic, feature FROM sample"
                               " WHERE hw=?1 AND version=?2 AND seconds IS NOT NULL ORDER BY threads, kernel, schedule");
  sqlite3_bind_text(q, 1, hw, -1, SQLITE_STATIC);
  sqlite3_bind_int(q, 2, STORE_VERSION);
  int st;
  while ((st = sqlite3_step(q)) == SQLITE_ROW) {
    tarn_sample x;
    read_row(q, &x);
    tarn_push(s->cx, &v, x);
  }
  sqlite3_finalize(q);
  if (st != SQLITE_DONE) fail(s);
  *out = v.p;
  return v.n;
}
