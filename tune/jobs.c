/* Jobs of a store: see jobs.h. */
#include "tune/jobs.h"
#include "tune/store.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- the tables ---- */
#define SAME "hw=?1 AND version=?2 AND threads=?3 AND kernel=?4 AND schedule=?5"
enum { ASKED, DONE, ASIDE }; /* state */

/* The geometric mean of what is not NULL; NULL of nothing. */
typedef struct mean {
  double sum, last; /* of logarithms; of one alone, it is that */
  int64_t n;
} mean;
static void mean_step(sqlite3_context *q, int n, sqlite3_value **v) {
  mean *m = sqlite3_aggregate_context(q, sizeof *m);
  (void)n;
  if (!m || sqlite3_value_type(v[0]) == SQLITE_NULL) return;
  m->last = sqlite3_value_double(v[0]);
  m->sum += log(m->last);
  m->n++;
}
static void mean_end(sqlite3_context *q) {
  const mean *m = sqlite3_aggregate_context(q, 0);
  if (m && m->n) sqlite3_result_double(q, m->n > 1 ? exp(m->sum / (double)m->n) : m->last);
}
static void tables(tarn_store *s) {
  if (sqlite3_create_function(s->db, "tarn_mean", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, NULL,
                              mean_step, mean_end) != SQLITE_OK)
    store_fail(s);
  store_run(
      s, "CREATE TABLE IF NOT EXISTS fleet(name TEXT NOT NULL)"
         ";CREATE TABLE IF NOT EXISTS run(name TEXT PRIMARY KEY, began INTEGER NOT NULL)"
         ";CREATE TABLE IF NOT EXISTS job(name TEXT PRIMARY KEY, hw TEXT NOT NULL, version INTEGER "
         "NOT NULL, threads INTEGER NOT NULL, kernel INTEGER NOT NULL, schedule INTEGER NOT NULL,"
         " turn INTEGER NOT NULL, text TEXT NOT NULL, state INTEGER NOT NULL, stored INTEGER,"
         " seconds REAL, calibration REAL, drifted INTEGER, before REAL, worker TEXT, reason TEXT,"
         " done INTEGER) WITHOUT ROWID"
         ";CREATE INDEX IF NOT EXISTS job_of ON job(hw, version, threads, kernel, schedule)"
         ";CREATE UNIQUE INDEX IF NOT EXISTS job_order ON job(stored)");
}
static void step(tarn_store *s, sqlite3_stmt *q) {
  if (sqlite3_step(q) != SQLITE_DONE) store_fail(s);
  sqlite3_reset(q);
}

/* ---- names ---- */
tarn_job tarn_job_of(const char *hw, const tarn_record *r, uint32_t turn) {
  tarn_job j = {.turn = turn, .of = *r};
  uint64_t a = tarn_hash_bytes(hw, strlen(hw), TARN_STORE_VERSION), b = ~a;
  const uint64_t part[] = {r->threads, r->kernel, r->schedule, turn};
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    a = tarn_hash_mix(a, part[i]), b = tarn_hash_mix(b, tarn_hash_mix(part[i], a));
  snprintf(j.name, sizeof j.name, "%016" PRIx64 "%016" PRIx64, a, b);
  return j;
}
typedef struct naming {
  tarn_store *s;
  const char *name;
} naming;
static const char *read_name(tarn_store *s) {
  sqlite3_stmt *q = store_prepare(s, "SELECT name FROM fleet");
  const char *name = sqlite3_step(q) == SQLITE_ROW ? store_column(s, q, 0) : NULL;
  sqlite3_finalize(q);
  return name;
}
static void give_name(tarn_ctx *cx, void *arg) {
  (void)cx;
  naming *n = arg;
  tables(n->s);
  store_run(n->s, "INSERT INTO fleet SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 "
                  "FROM fleet)");
  n->name = read_name(n->s);
}
const char *tarn_store_name(tarn_store *s) {
  naming n = {s, NULL};
  store_together(s, give_name, &n);
  return n.name;
}

/* ---- asking ---- */
typedef struct asking {
  tarn_store *s;
  const char *hw;
  const tarn_job *j;
  uint32_t n;
} asking;
static void bind_trial(sqlite3_stmt *q, const char *hw, const tarn_record *r) {
  sqlite3_bind_text(q, 1, hw, -1, SQLITE_STATIC);
  sqlite3_bind_int(q, 2, TARN_STORE_VERSION);
  sqlite3_bind_int(q, 3, (int)r->threads);
  sqlite3_bind_int64(q, 4, (sqlite3_int64)r->kernel);
  sqlite3_bind_int64(q, 5, (sqlite3_int64)r->schedule);
}
static void ask_all(tarn_ctx *cx, void *arg) {
  (void)cx;
  const asking *a = arg;
  tables(a->s);
  sqlite3_stmt *kernel = store_prepare(a->s, "INSERT OR IGNORE INTO kernel VALUES(?1,?2)");
  sqlite3_stmt *job = store_prepare(
      a->s, "INSERT OR IGNORE INTO job(hw, version, threads, kernel, schedule, name, turn, text, "
            "state) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,0)");
  for (uint32_t i = 0; i < a->n; i++) {
    const tarn_job *j = &a->j[i];
    sqlite3_bind_int64(kernel, 1, (sqlite3_int64)j->of.kernel);
    sqlite3_bind_text(kernel, 2, j->of.kernel_text, -1, SQLITE_STATIC);
    bind_trial(job, a->hw, &j->of);
    sqlite3_bind_text(job, 6, j->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(job, 7, j->turn);
    sqlite3_bind_text(job, 8, j->of.schedule_text, -1, SQLITE_STATIC);
    step(a->s, kernel), step(a->s, job);
  }
  sqlite3_finalize(kernel), sqlite3_finalize(job);
}
void tarn_jobs_ask(tarn_store *s, const char *hw, const tarn_job *j, uint32_t n) {
  asking a = {s, hw, j, n};
  store_together(s, ask_all, &a);
}

/* ---- answers ---- */
typedef struct settling {
  tarn_store *s;
  const tarn_answer *x;
  uint32_t n;
  tarn_settled r;
  sqlite3_stmt *state, *other, *before, *answer, *trial;
} settling;
/* Of the trial of job ?1, by the key of `job`. */
#define OF_JOB                                                                                     \
  "(t.hw, t.version, t.threads, t.kernel, t.schedule) = (SELECT hw, version, threads, kernel, "    \
  "schedule FROM job WHERE name=?1)"
static void open_settling(settling *a) {
  tarn_store *s = a->s;
  tables(s);
  a->state = store_prepare(s, "SELECT state FROM job WHERE name=?1");
  a->other = store_prepare(s, "SELECT 1 FROM job t WHERE " OF_JOB " AND t.stored IS NOT NULL");
  a->before = store_prepare(s, "UPDATE job SET before = (SELECT seconds FROM trial t WHERE " OF_JOB
                               ") WHERE name=?1");
  a->answer = store_prepare(
      s, "UPDATE job SET state=?2, stored=(SELECT coalesce(max(stored), 0) + 1 FROM job), "
         "seconds=?3, calibration=?4, drifted=?5, worker=?6, reason=?7, done=?8 WHERE name=?1");
  a->trial = store_prepare(
      s, "INSERT INTO trial SELECT j.hw, j.version, j.threads, j.kernel, j.schedule, "
         "(SELECT tarn_mean(v) FROM (SELECT before AS v FROM job t WHERE " OF_JOB
         " UNION ALL SELECT seconds FROM job t WHERE " OF_JOB " AND t.stored IS NOT NULL AND NOT "
         "t.drifted)), j.text FROM job j WHERE j.name=?1"
         " ON CONFLICT DO UPDATE SET seconds = coalesce(excluded.seconds, seconds)");
}
static void close_settling(settling *a) {
  sqlite3_stmt *all[] = {a->state, a->other, a->before, a->answer, a->trial};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sqlite3_finalize(all[i]);
}
/* One row, or -1. */
static int one_value(tarn_store *s, sqlite3_stmt *q, const char *name) {
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  int st = sqlite3_step(q), v = st == SQLITE_ROW ? sqlite3_column_int(q, 0) : -1;
  if (st != SQLITE_ROW && st != SQLITE_DONE) store_fail(s);
  sqlite3_reset(q);
  return v;
}
static void bind_answer(sqlite3_stmt *q, const tarn_answer *x) {
  sqlite3_bind_text(q, 1, x->name, -1, SQLITE_STATIC);
  sqlite3_bind_int(q, 2, x->aside ? ASIDE : DONE);
  if (x->seconds < INFINITY) sqlite3_bind_double(q, 3, x->seconds);
  else sqlite3_bind_null(q, 3);
  sqlite3_bind_double(q, 4, x->calibration);
  sqlite3_bind_int(q, 5, x->drifted);
  sqlite3_bind_text(q, 6, x->worker, -1, SQLITE_STATIC);
  sqlite3_bind_text(q, 7, x->reason, -1, SQLITE_STATIC);
  sqlite3_bind_int64(q, 8, (sqlite3_int64)time(NULL));
}
static void settle_one(settling *a, const tarn_answer *x) {
  int state = one_value(a->s, a->state, x->name);
  a->r.unknown += state<0, a->r.again += state> 0;
  if (state != ASKED) return;
  if (one_value(a->s, a->other, x->name) < 0) {
    sqlite3_bind_text(a->before, 1, x->name, -1, SQLITE_STATIC);
    step(a->s, a->before);
  }
  bind_answer(a->answer, x);
  step(a->s, a->answer);
  a->r.fresh++;
  if (x->drifted) return;
  sqlite3_bind_text(a->trial, 1, x->name, -1, SQLITE_STATIC);
  step(a->s, a->trial);
}
static void settle_all(tarn_ctx *cx, void *arg) {
  (void)cx;
  settling *a = arg;
  open_settling(a);
  for (uint32_t i = 0; i < a->n; i++) settle_one(a, &a->x[i]);
  close_settling(a);
}
tarn_settled tarn_jobs_settle(tarn_store *s, const tarn_answer *x, uint32_t n) {
  settling a = {.s = s, .x = x, .n = n};
  if (n) store_together(s, settle_all, &a);
  return a.r;
}
bool tarn_jobs_answer(tarn_store *s, const char *name, tarn_answer *out) {
  sqlite3_stmt *q = store_prepare(
      s, "SELECT state, seconds, calibration, drifted FROM job WHERE name=?1 AND state > 0");
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  int st = sqlite3_step(q);
  if (st == SQLITE_ROW) {
    *out = (tarn_answer){.aside = sqlite3_column_int(q, 0) == ASIDE,
                         .seconds = sqlite3_column_type(q, 1) == SQLITE_NULL
                                        ? INFINITY
                                        : sqlite3_column_double(q, 1),
                         .calibration = sqlite3_column_double(q, 2),
                         .drifted = sqlite3_column_int(q, 3)};
    snprintf(out->name, sizeof out->name, "%s", name);
  }
  sqlite3_finalize(q);
  if (st != SQLITE_ROW && st != SQLITE_DONE) store_fail(s);
  return st == SQLITE_ROW;
}

/* ---- runs ---- */
typedef struct beginning {
  tarn_store *s;
  const char *run, *hw;
} beginning;
static void note_run(tarn_ctx *cx, void *arg) {
  (void)cx;
  const beginning *b = arg;
  tables(b->s);
  sqlite3_stmt *q =
      store_prepare(b->s, "INSERT OR IGNORE INTO run SELECT ?1, coalesce(max(stored), 0) FROM job");
  sqlite3_bind_text(q, 1, b->run, -1, SQLITE_STATIC);
  step(b->s, q);
  sqlite3_finalize(q);
}
/* What has no answered job is as it is; the rest is put together again from what was known before
 * its first job and what was answered before the run. */
static void copy_then(tarn_ctx *cx, void *arg) {
  (void)cx;
  const beginning *b = arg;
  sqlite3_stmt *q = store_prepare(
      b->s,
      "INSERT INTO then_.trial SELECT hw, version, threads, kernel, schedule, tarn_mean(v), text "
      "FROM (SELECT t.hw, t.version, t.threads, t.kernel, t.schedule, t.seconds AS v, t.text"
      " FROM trial t WHERE t.hw=?1 AND t.version=?2 AND NOT EXISTS (SELECT 1 FROM job j WHERE"
      " (j.hw, j.version, j.threads, j.kernel, j.schedule) ="
      " (t.hw, t.version, t.threads, t.kernel, t.schedule) AND j.stored IS NOT NULL)"
      " UNION ALL SELECT hw, version, threads, kernel, schedule, before, text FROM job"
      " WHERE hw=?1 AND version=?2 AND before IS NOT NULL"
      " UNION ALL SELECT hw, version, threads, kernel, schedule, seconds, text FROM job"
      " WHERE hw=?1 AND version=?2 AND NOT drifted"
      " AND stored <= (SELECT began FROM run WHERE name=?3))"
      " GROUP BY hw, version, threads, kernel, schedule");
  sqlite3_bind_text(q, 1, b->hw, -1, SQLITE_STATIC);
  sqlite3_bind_int(q, 2, TARN_STORE_VERSION);
  sqlite3_bind_text(q, 3, b->run, -1, SQLITE_STATIC);
  step(b->s, q);
  sqlite3_finalize(q);
  store_run(b->s, "INSERT INTO then_.kernel SELECT * FROM kernel WHERE id IN (SELECT kernel FROM "
                  "then_.trial)");
}
void tarn_jobs_begin(tarn_store *s, const char *run, const char *hw, const char *path) {
  beginning b = {s, run, hw};
  tarn_store_open(s->cx, path);
  store_together(s, note_run, &b);
  sqlite3_stmt *q = store_prepare(s, "ATTACH ?1 AS then_");
  sqlite3_bind_text(q, 1, path, -1, SQLITE_STATIC);
  step(s, q);
  sqlite3_finalize(q);
  store_together(s, copy_then, &b);
  store_run(s, "DETACH then_");
}
tarn_jobs_sum tarn_jobs_count(tarn_store *s) {
  tarn_store_name(s); /* one that no fleet has measured for has no jobs yet */
  sqlite3_stmt *q = store_prepare(
      s, "SELECT count(*), count(stored), count(stored) - count(seconds), total(drifted), "
         "total(state = 2) FROM job");
  if (sqlite3_step(q) != SQLITE_ROW) store_fail(s);
  tarn_jobs_sum r = {.asked = (uint64_t)sqlite3_column_int64(q, 0),
                     .answered = (uint64_t)sqlite3_column_int64(q, 1),
                     .failed = (uint64_t)sqlite3_column_int64(q, 2),
                     .drifted = (uint64_t)sqlite3_column_int64(q, 3),
                     .aside = (uint64_t)sqlite3_column_int64(q, 4)};
  sqlite3_finalize(q);
  return r;
}
uint32_t tarn_jobs_history(tarn_store *s, int64_t bin, const tarn_jobs_bin **out) {
  TARN_VEC(tarn_jobs_bin) v = {0};
  int st;
  sqlite3_stmt *q = store_prepare(
      s, "SELECT done / ?1 * ?1, count(*), sum(seconds IS NULL), sum(drifted) FROM job WHERE "
         "state > 0 GROUP BY done / ?1 ORDER BY 1");
  sqlite3_bind_int64(q, 1, bin);
  while ((st = sqlite3_step(q)) == SQLITE_ROW)
    tarn_push(
        s->cx, &v,
        ((tarn_jobs_bin){sqlite3_column_int64(q, 0), (uint32_t)sqlite3_column_int(q, 1),
                         (uint32_t)sqlite3_column_int(q, 2), (uint32_t)sqlite3_column_int(q, 3)}));
  sqlite3_finalize(q);
  if (st != SQLITE_DONE) store_fail(s);
  *out = v.p;
  return v.n;
}
