/* See record.h. A record is (KIND VERSION (FIELD VALUE)…), its fields in their order:
 *
 *   (job 7 (name 0f…) (store 9a…) (threads 2) (seed 1) (marks second) (kernel "…") (schedule "…"))
 *   (answer 7 (name 0f…) (seconds 1.5e-5) (calibration 2e-5) (marks drifted) (worker board1)
 *    (reason "…"))
 *   (worker 7 (name board1) …)
 *
 * seconds are inf where a job failed; marks of an answer: drifted, aside, both or none. */
#include "fleet/record.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define KIND_DEEP 4 /* brackets within brackets */

/* ---- printing ---- */
static void field(tarn_buf *b, const char *name, const char *text) {
  tarn_buf_fmt(b, " (%s ", name);
  tarn_sx_string(b, text, strlen(text));
  tarn_buf_str(b, ")");
}
static void field_number(tarn_buf *b, const char *name, double x) {
  tarn_buf_fmt(b, " (%s ", name);
  if (x < INFINITY) tarn_buf_double(b, x);
  else tarn_buf_str(b, "inf");
  tarn_buf_str(b, ")");
}
void fleet_job_print(tarn_buf *b, const fleet_job *j) {
  tarn_buf_fmt(b, "(job %d", FLEET_VERSION);
  field(b, "name", j->name), field(b, "store", j->store);
  tarn_buf_fmt(b, " (threads %u) (seed %u) (marks%s)", j->threads, j->seed,
               j->second ? " second" : "");
  field(b, "kernel", j->kernel), field(b, "schedule", j->schedule);
  tarn_buf_str(b, ")");
}
void fleet_answer_print(tarn_buf *b, const tarn_answer *x) {
  tarn_buf_fmt(b, "(answer %d", FLEET_VERSION);
  field(b, "name", x->name);
  field_number(b, "seconds", x->seconds), field_number(b, "calibration", x->calibration);
  tarn_buf_fmt(b, " (marks%s%s)", x->drifted ? " drifted" : "", x->aside ? " aside" : "");
  field(b, "worker", x->worker ? x->worker : ""), field(b, "reason", x->reason ? x->reason : "");
  tarn_buf_str(b, ")");
}
void fleet_worker_print(tarn_buf *b, const fleet_worker *w) {
  tarn_buf_fmt(b, "(worker %u", w->version);
  field(b, "name", w->name), field(b, "hw", w->hw), field(b, "program", w->program);
  tarn_buf_fmt(b, " (marks%s) (done %u) (failed %u) (drifted %u) (dropped %u)",
               w->simulates ? " simulates" : "", w->done, w->failed, w->drifted, w->dropped);
  field_number(b, "calibration", w->calibration), field_number(b, "at-first", w->at_first);
  field(b, "job", w->job), tarn_buf_str(b, ")");
}

/* ---- reading ---- */
typedef struct reader {
  tarn_ctx *cx;
  const tarn_sx *of;
  uint32_t at; /* field */
} reader;
static reader open_record(tarn_ctx *cx, const char *text, size_t n, size_t most, const char *kind) {
  if (n > most) tarn_raise(cx, TARN_BAD_INPUT, "%s: %zu bytes, more than %zu", kind, n, most);
  const tarn_sx *all = tarn_sx_read(cx, text, n, kind);
  tarn_sx_limit(cx, all, KIND_DEEP);
  if (all->n != 1 || !tarn_sx_is(all->kid[0], kind))
    tarn_sx_error(cx, all, "one (%s …) is expected", kind);
  return (reader){cx, all->kid[0], 1};
}
static uint32_t version(reader *r) {
  return (uint32_t)tarn_sx_whole(r->cx, r->of, r->at++, 1, 1000000);
}
static void same_version(reader *r) {
  uint32_t v = version(r);
  if (v != FLEET_VERSION) tarn_sx_error(r->cx, r->of, "of version %u, not %d", v, FLEET_VERSION);
}
/* The next field, which has this name and n values. */
static const tarn_sx *next(reader *r, const char *name, uint32_t n) {
  const tarn_sx *f = r->at < r->of->n ? r->of->kid[r->at++] : r->of;
  if (f == r->of || !tarn_sx_is(f, name) || f->n != n + 1)
    tarn_sx_error(r->cx, f, "(%s …) is expected", name);
  return f;
}
static const char *text_of(reader *r, const char *name, size_t most) {
  const tarn_sx *v = tarn_sx_kid(r->cx, next(r, name, 1), 1, TARN_SX_STRING, "a string");
  if (v->len > most || strlen(v->text) != v->len)
    tarn_sx_error(r->cx, v, "%s: at most %zu characters, no NUL", name, most);
  return v->text;
}
static const char *name_of(reader *r, const char *name) {
  const char *s = text_of(r, name, FLEET_NAME);
  if (!fleet_is_name(s)) tarn_sx_error(r->cx, r->of, "%s: a name is expected", name);
  return s;
}
static double seconds_of(reader *r, const char *name, bool infinite) {
  const tarn_sx *v = next(r, name, 1)->kid[1];
  bool number = v->kind == TARN_SX_INT || v->kind == TARN_SX_REAL;
  if (!number || !(v->r >= 0) || (!infinite && !(v->r < INFINITY)))
    tarn_sx_error(r->cx, v, "%s: seconds are expected", name);
  return v->r;
}
static uint32_t count_of(reader *r, const char *name, int64_t least) {
  return (uint32_t)tarn_sx_whole(r->cx, next(r, name, 1), 1, least, INT32_MAX);
}
/* Which of the words, in this order, a field has, as bits. */
static unsigned marks_of(reader *r, const char *const *word, uint32_t n) {
  const tarn_sx *f = r->at < r->of->n ? r->of->kid[r->at++] : r->of;
  unsigned set = 0;
  uint32_t at = 1;
  if (f == r->of || !tarn_sx_is(f, "marks")) tarn_sx_error(r->cx, f, "(marks …) is expected");
  for (uint32_t i = 0; i < n; i++)
    if (at < f->n && tarn_sx_atom_is(f->kid[at], word[i])) set |= 1u << i, at++;
  if (at < f->n) tarn_sx_error(r->cx, f->kid[at], "an unknown mark");
  return set;
}
static void close_record(reader *r) {
  if (r->at != r->of->n) tarn_sx_error(r->cx, r->of->kid[r->at], "nothing more is expected");
}
static void job_name(reader *r, char *out) {
  const char *s = text_of(r, "name", TARN_JOB_NAME - 1);
  if (strlen(s) != TARN_JOB_NAME - 1 || s[strspn(s, "0123456789abcdef")])
    tarn_sx_error(r->cx, r->of, "name: %d hexadecimal digits are expected", TARN_JOB_NAME - 1);
  memcpy(out, s, TARN_JOB_NAME);
}
bool fleet_is_name(const char *s) {
  size_t n = strlen(s);
  return n > 0 && n <= FLEET_NAME &&
         strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == n;
}

void fleet_job_read(tarn_ctx *cx, const char *text, size_t n, fleet_job *j) {
  static const char *const marks[] = {"second"};
  reader r = open_record(cx, text, n, FLEET_JOB, "job");
  same_version(&r);
  job_name(&r, j->name), j->store = name_of(&r, "store");
  j->threads = count_of(&r, "threads", 1);
  if (j->threads > 1024) tarn_sx_error(cx, r.of, "threads: at most 1024");
  j->seed = count_of(&r, "seed", 1);
  j->second = marks_of(&r, marks, 1);
  j->kernel = text_of(&r, "kernel", FLEET_JOB), j->schedule = text_of(&r, "schedule", FLEET_JOB);
  close_record(&r);
}
void fleet_answer_read(tarn_ctx *cx, const char *text, size_t n, tarn_answer *x) {
  static const char *const marks[] = {"drifted", "aside"};
  reader r = open_record(cx, text, n, FLEET_ANSWER, "answer");
  same_version(&r);
  job_name(&r, x->name);
  x->seconds = seconds_of(&r, "seconds", true);
  if (!(x->seconds > 0)) tarn_sx_error(cx, r.of, "seconds: above 0");
  x->calibration = seconds_of(&r, "calibration", false);
  unsigned set = marks_of(&r, marks, 2);
  x->drifted = set & 1, x->aside = set >> 1 & 1;
  x->worker = name_of(&r, "worker"), x->reason = text_of(&r, "reason", FLEET_ANSWER);
  if (!*x->reason) x->reason = NULL;
  if (x->aside && x->seconds < INFINITY) tarn_sx_error(cx, r.of, "aside, with seconds");
  close_record(&r);
}
void fleet_worker_read(tarn_ctx *cx, const char *text, size_t n, fleet_worker *w) {
  static const char *const marks[] = {"simulates"};
  reader r = open_record(cx, text, n, FLEET_ANSWER, "worker");
  w->version = version(&r);
  w->name = name_of(&r, "name"), w->hw = text_of(&r, "hw", FLEET_ANSWER);
  w->program = text_of(&r, "program", FLEET_NAME);
  w->simulates = marks_of(&r, marks, 1);
  w->done = count_of(&r, "done", 0), w->failed = count_of(&r, "failed", 0);
  w->drifted = count_of(&r, "drifted", 0), w->dropped = count_of(&r, "dropped", 0);
  w->calibration = seconds_of(&r, "calibration", false);
  w->at_first = seconds_of(&r, "at-first", false);
  w->job = text_of(&r, "job", TARN_JOB_NAME);
  close_record(&r);
}
