/* The store of measurements: kernels as text, and one row for every schedule of one that was
 * measured. A hash of the text is its name, so that models share what they have in common; features
 * are computed on demand. */
#include "tune/store.h"
#include "compile/target.h"
#include "plan/work.h"
#include "tune/tune.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define STORE_KIND 0x7461726e /* application_id: "tarn" */
#define PATIENCE   10000      /* milliseconds that another process may hold the store */
#define MOMENT     10         /* milliseconds between two tries */

/* Statements that something raised left open. */
static void finish(tarn_store *s) {
  for (sqlite3_stmt *q; s->db && (q = sqlite3_next_stmt(s->db, NULL));) sqlite3_finalize(q);
}
static void close_store(void *p) {
  tarn_store *s = p;
  finish(s);
  sqlite3_close(s->db);
  s->db = NULL;
}
void store_fail(tarn_store *s) {
  tarn_status st =
      sqlite3_errcode(s->db) == SQLITE_NOMEM ? TARN_MEMORY : TARN_IO; /* of no database too */
  tarn_raise(s->cx, st, "%s: %s", s->path, sqlite3_errmsg(s->db));
}
void store_run(tarn_store *s, const char *sql) {
  if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK) store_fail(s);
}
sqlite3_stmt *store_prepare(tarn_store *s, const char *sql) {
  sqlite3_stmt *q;
  if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK) store_fail(s);
  return q;
}
static int64_t one_number(tarn_store *s, const char *sql) {
  sqlite3_stmt *q = store_prepare(s, sql);
  int64_t v = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : -1;
  sqlite3_finalize(q);
  return v;
}

/* SQLite does not wait for other processes here. */
static void write_ahead(tarn_store *s) {
  const char *sql = "PRAGMA journal_mode = WAL";
  for (int waited = 0; waited < PATIENCE; waited += MOMENT) {
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_BUSY) break;
    sqlite3_sleep(MOMENT);
  }
  store_run(s, sql);
}

tarn_store *tarn_store_open(tarn_ctx *cx, const char *path) {
  tarn_store *s = TARN_NEW(cx, tarn_store);
  *s = (tarn_store){.cx = cx, .path = tarn_strdup(cx, path)};
  int st = sqlite3_open(path, &s->db);
  tarn_defer(cx, close_store, s);
  if (st != SQLITE_OK) store_fail(s);
  sqlite3_busy_timeout(s->db, PATIENCE);
  store_run(s, "BEGIN"); /* both from one moment: another process may just be making the store */
  int64_t tables = one_number(s, "SELECT count(*) FROM sqlite_schema"),
          kind = one_number(s, "PRAGMA application_id");
  store_run(s, "COMMIT");
  if (kind != STORE_KIND && tables != 0)
    tarn_raise(cx, TARN_BAD_INPUT, "%s: not a store of measurements", path);
  write_ahead(s);
  if (tables != 0) return s; /* and the file stays as it is until something is added */
  store_run(s,
            "BEGIN IMMEDIATE; PRAGMA application_id = 1952543342" /* all or nothing, if it is killed
                                                               here */
            ";CREATE TABLE IF NOT EXISTS kernel(id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
            ";CREATE TABLE IF NOT EXISTS trial(hw TEXT NOT NULL, version INTEGER NOT NULL, threads "
            "INTEGER NOT NULL,"
            " kernel INTEGER NOT NULL, schedule INTEGER NOT NULL, seconds REAL, text TEXT NOT NULL,"
            " PRIMARY KEY(hw, version, threads, kernel, schedule)) WITHOUT ROWID; COMMIT");
  return s;
}

const char *tarn_hw_key(const tarn_hw *hw, tarn_ctx *cx) {
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "%s %u bit, %.2f GHz", hw->cpu && *hw->cpu ? hw->cpu : hw->name, hw->vector_bits,
               hw->clock / 1e9);
  for (uint32_t i = 0; i < hw->nmem; i++)
    if (hw->mem[i].capacity)
      tarn_buf_fmt(&b, ", %" PRId64 " KiB", (int64_t)hw->mem[i].capacity / 1024);
  return b.p;
}

static void bind_hw(sqlite3_stmt *q, const char *hw) {
  sqlite3_bind_text(q, 1, hw, -1, SQLITE_STATIC);
  sqlite3_bind_int(q, 2, TARN_STORE_VERSION);
}
bool tarn_store_has(tarn_store *s, const char *hw, uint32_t threads, uint64_t kernel,
                    uint64_t schedule, double *seconds) {
  sqlite3_stmt *q = store_prepare(s, "SELECT seconds FROM trial WHERE hw=?1 AND version=?2 AND "
                                     "threads=?3 AND kernel=?4 AND schedule=?5");
  bind_hw(q, hw);
  sqlite3_bind_int(q, 3, (int)threads);
  sqlite3_bind_int64(q, 4, (sqlite3_int64)kernel),
      sqlite3_bind_int64(q, 5, (sqlite3_int64)schedule);
  int st = sqlite3_step(q);
  double took = st == SQLITE_ROW ? sqlite3_column_double(q, 0) : 0;
  if (st == SQLITE_ROW && seconds) *seconds = took > 0 ? took : INFINITY;
  sqlite3_finalize(q);
  if (st != SQLITE_ROW && st != SQLITE_DONE) store_fail(s);
  return st == SQLITE_ROW;
}

/* One row; measured again, a schedule takes what is now known, but a failure does not take away
 * what was. */
static int add_row(sqlite3_stmt *kernel, sqlite3_stmt *trial, const tarn_record *x) {
  sqlite3_reset(kernel), sqlite3_reset(trial);
  sqlite3_bind_int64(kernel, 1, (sqlite3_int64)x->kernel);
  sqlite3_bind_text(kernel, 2, x->kernel_text, -1, SQLITE_STATIC);
  sqlite3_bind_int(trial, 3, (int)x->threads);
  sqlite3_bind_int64(trial, 4, (sqlite3_int64)x->kernel),
      sqlite3_bind_int64(trial, 5, (sqlite3_int64)x->schedule);
  if (x->seconds < INFINITY) sqlite3_bind_double(trial, 6, x->seconds);
  else sqlite3_bind_null(trial, 6);
  sqlite3_bind_text(trial, 7, x->schedule_text, -1, SQLITE_STATIC);
  int st = sqlite3_step(kernel);
  return st == SQLITE_DONE ? sqlite3_step(trial) : st;
}
typedef struct addition {
  tarn_store *s;
  const char *hw;
  const tarn_record *x;
  uint32_t n;
} addition;
static void add_rows(tarn_ctx *cx, void *arg) {
  (void)cx;
  addition *a = arg;
  sqlite3_stmt *kernel = store_prepare(a->s, "INSERT OR IGNORE INTO kernel VALUES(?1,?2)");
  sqlite3_stmt *trial = store_prepare(
      a->s, "INSERT INTO trial VALUES(?1,?2,?3,?4,?5,?6,?7) ON CONFLICT DO UPDATE SET seconds ="
            " coalesce(excluded.seconds, seconds)");
  bind_hw(trial, a->hw);
  for (uint32_t i = 0; i < a->n; i++)
    if (add_row(kernel, trial, &a->x[i]) != SQLITE_DONE) store_fail(a->s);
  sqlite3_finalize(kernel), sqlite3_finalize(trial);
}
typedef struct together {
  tarn_store *s;
  tarn_fn *fn;
  void *arg;
} together;
static void do_and_commit(tarn_ctx *cx, void *arg) {
  const together *t = arg;
  t->fn(cx, t->arg);
  store_run(t->s, "COMMIT");
}
void store_together(tarn_store *s, tarn_fn *fn, void *arg) {
  together t = {s, fn, arg};
  store_run(s, "BEGIN IMMEDIATE");
  tarn_status st = tarn_protect(s->cx, do_and_commit, &t);
  if (st == TARN_OK) return;
  finish(s);
  sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
  tarn_reraise(s->cx, st);
}
void tarn_store_add(tarn_store *s, const char *hw, const tarn_record *x, uint32_t n) {
  addition a = {s, hw, x, n};
  store_together(s, add_rows, &a);
}

const char *store_column(tarn_store *s, sqlite3_stmt *q, int i) {
  const unsigned char *t = sqlite3_column_text(q, i);
  return t ? tarn_strndup(s->cx, (const char *)t, (size_t)sqlite3_column_bytes(q, i)) : "";
}
uint32_t tarn_store_read(tarn_store *s, const char *hw, const tarn_record **out) {
  TARN_VEC(tarn_record) v = {0};
  sqlite3_stmt *q = store_prepare(
      s,
      "SELECT t.threads, t.kernel, t.schedule, t.seconds, t.text, k.text FROM trial t JOIN kernel k"
      " ON k.id = t.kernel WHERE coalesce(?1, t.hw) = t.hw AND t.version=?2 AND t.seconds > 0"
      " ORDER BY t.threads, t.kernel, t.schedule");
  bind_hw(q, hw);
  int st;
  while ((st = sqlite3_step(q)) == SQLITE_ROW) {
    tarn_record x = {.threads = (uint32_t)sqlite3_column_int(q, 0),
                     .kernel = (uint64_t)sqlite3_column_int64(q, 1),
                     .schedule = (uint64_t)sqlite3_column_int64(q, 2),
                     .seconds = sqlite3_column_double(q, 3)};
    const tarn_record *last = v.n ? &v.p[v.n - 1] : &x;
    if (v.n && last->threads == x.threads && last->kernel == x.kernel &&
        last->schedule == x.schedule)
      continue;
    x.schedule_text = store_column(s, q, 4);
    x.kernel_text = v.n && last->kernel == x.kernel ? last->kernel_text : store_column(s, q, 5);
    tarn_push(s->cx, &v, x);
  }
  sqlite3_finalize(q);
  if (st != SQLITE_DONE) store_fail(s);
  *out = v.p;
  return v.n;
}
uint32_t tarn_store_keys(tarn_store *s, const char *const **out) {
  TARN_VEC(const char *) v = {0};
  sqlite3_stmt *q = store_prepare(s, "SELECT DISTINCT hw FROM trial WHERE version=?1 ORDER BY hw");
  sqlite3_bind_int(q, 1, TARN_STORE_VERSION);
  int st;
  while ((st = sqlite3_step(q)) == SQLITE_ROW) tarn_push(s->cx, &v, store_column(s, q, 0));
  sqlite3_finalize(q);
  if (st != SQLITE_DONE) store_fail(s);
  *out = v.p;
  return v.n;
}

/* ---- from text to numbers ---- */
tarn_record tarn_record_of(tarn_lang *L, const tarn_ksig *k, const tarn_schedule *s,
                           uint32_t threads) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_record r = {
      .threads = threads, .seconds = INFINITY, .kernel_text = tarn_ksig_text(L, cx, k)};
  r.schedule_text = tarn_schedule_text(cx, s);
  r.kernel = tarn_hash_bytes(r.kernel_text, strlen(r.kernel_text), 0);
  r.schedule = tarn_hash_bytes(r.schedule_text, strlen(r.schedule_text), 0);
  return r;
}
typedef struct reading {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_record *r;
  tarn_ksig *k;
  tarn_sample *out;
} reading;
static void read_kernel(tarn_ctx *cx, void *arg) {
  reading *q = arg;
  tarn_ksig_parse(q->L, q->r->kernel_text, strlen(q->r->kernel_text), q->k);
  if (!tarn_ksig_complete(q->L, q->k))
    tarn_raise(cx, TARN_BAD_INPUT, "a sum multiplied by unknown constant matrices");
}
static void read_sample(tarn_ctx *cx, void *arg) {
  (void)cx;
  reading *q = arg;
  const char *text = q->r->schedule_text;
  const tarn_schedule *s =
      tarn_schedule_parse(q->L, tarn_nest_get(q->L, q->k->nest), text, strlen(text));
  tarn_cost c;
  tarn_target_price(q->L, q->hw, q->k, s, q->r->threads, &c);
  tarn_features(q->L, q->hw, q->k, s, q->r->threads, &c, q->out->feature);
  q->out->analytic = c.seconds;
}
uint32_t tarn_samples(tarn_lang *L, const tarn_hw *hw, const tarn_record *r, uint32_t n,
                      const tarn_sample **out) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_sample *x = TARN_ARRAY(cx, tarn_sample, n + 1);
  tarn_ksig k;
  uint32_t kept = 0;
  bool known = false;
  for (uint32_t i = 0; i < n; i++) {
    reading q = {L, hw, &r[i], &k, &x[kept]};
    x[kept] = (tarn_sample){.kernel = r[i].kernel,
                            .schedule = r[i].schedule,
                            .threads = r[i].threads,
                            .seconds = r[i].seconds};
    if (!i || r[i].kernel != r[i - 1].kernel) known = tarn_tried(cx, read_kernel, &q);
    kept += known && tarn_tried(cx, read_sample,
                                &q); /* a form that this program does not know is left out */
  }
  *out = x;
  return kept;
}
