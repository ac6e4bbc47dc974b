/* tarn fleet status: workers, queues and jobs that were given up; or the jobs of a store, with a
 * page of the throughput. */
#include "cli/fleet.h"
#include "tune/jobs.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GONE 60 /* seconds without a word: it has died, or the network has */

/* ---- text ---- */
static void show_worker(const tarn_fleet_worker *w) {
  printf("  %s%s  %s%s  %u jobs, %u failed, %u drifted", w->name,
         w->heard > GONE ? " (silent)" : "", w->hw, w->simulates ? " (simulated)" : "", w->done,
         w->failed, w->drifted);
  if (w->drift > 0)
    printf("  calibration %.4g us, %.2f of the first", 1e6 * w->calibration, w->drift);
  printf("  heard %.0f s ago", w->heard > 0 ? w->heard : 0);
  if (*w->job) printf("  at %s", w->job);
  printf("\n");
}
static void show(const tarn_fleet_state *s) {
  printf("%u workers, %u queues, %u jobs set aside, %llu answers that wait for a tuner\n",
         s->nworker, s->nqueue, s->naside, (unsigned long long)s->answers);
  for (uint32_t i = 0; i < s->nworker; i++) show_worker(&s->worker[i]);
  for (uint32_t i = 0; i < s->nqueue; i++) {
    const tarn_fleet_queue *q = &s->queue[i];
    printf("queue %s %s: %llu jobs wait, %llu are measured; %llu handed out, %llu of them again\n",
           q->hw, q->name, (unsigned long long)q->queued, (unsigned long long)q->busy,
           (unsigned long long)q->handed_out, (unsigned long long)q->again);
  }
  for (uint32_t i = 0; i < s->naside; i++)
    printf("set aside %s: %s\n", s->aside[i].job, s->aside[i].reason);
}

/* ---- JSON ---- */
static void worker_json(tarn_json *j, const tarn_fleet_worker *w) {
  tarn_json_open(j, NULL, '{');
  tarn_json_put(j, "name", w->name, "hw", w->hw, "simulates", w->simulates, "tarn", w->program,
                "version", w->version, "done", w->done);
  tarn_json_put(j, "failed", w->failed, "drifted", w->drifted, "dropped", w->dropped, "calibration",
                w->calibration, "drift", w->drift, "heard", w->heard);
  tarn_json_str(j, "job", *w->job ? w->job : NULL);
  tarn_json_close(j, '}');
}
static void queue_json(tarn_json *j, const tarn_fleet_queue *q) {
  tarn_json_object(j, NULL, "hw", q->hw, "name", q->name, "queued", (int64_t)q->queued, "busy",
                   (int64_t)q->busy, "handed_out", (int64_t)q->handed_out, "again",
                   (int64_t)q->again);
}
static void show_json(tarn_ctx *cx, const tarn_fleet_state *s) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "workers", '[');
  for (uint32_t i = 0; i < s->nworker; i++) worker_json(j, &s->worker[i]);
  tarn_json_close(j, ']');
  tarn_json_open(j, "queues", '[');
  for (uint32_t i = 0; i < s->nqueue; i++) queue_json(j, &s->queue[i]);
  tarn_json_close(j, ']');
  tarn_json_open(j, "aside", '[');
  for (uint32_t i = 0; i < s->naside; i++)
    tarn_json_object(j, NULL, "job", s->aside[i].job, "reason", s->aside[i].reason);
  tarn_json_close(j, ']');
  tarn_json_int(j, "answers", (int64_t)s->answers);
  cli_json_print(j);
}

/* ---- the page ---- */
#define BARS 60 /* about so many, of at least a second */
static int64_t bin_of(tarn_store *s) {
  const tarn_jobs_bin *b;
  uint32_t n = tarn_jobs_history(s, 1, &b);
  int64_t span = n ? b[n - 1].at - b[0].at + 1 : 1;
  return (span + BARS - 1) / BARS;
}
static void write_page(tarn_ctx *cx, tarn_store *s, const char *title, const char *path) {
  static const char *const column[] = {"time", "jobs", "", "jobs/s", "failed", "drifted"};
  const tarn_jobs_bin *b;
  int64_t bin = bin_of(s);
  uint32_t n = tarn_jobs_history(s, bin, &b), most = 1;
  for (uint32_t i = 0; i < n; i++) most = b[i].done > most ? b[i].done : most;
  FILE *f = cli_page_open(cx, path, title);
  fprintf(f, "<p>A row is %lld s.</p>\n", (long long)bin);
  cli_page_head(f, column, sizeof column / sizeof *column);
  for (uint32_t i = 0; i < n; i++) {
    time_t at = (time_t)b[i].at;
    char text[64] = "";
    struct tm tm;
    if (gmtime_r(&at, &tm)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    fprintf(f, "<tr><td>%s</td><td>%u</td>", text, b[i].done);
    cli_page_bar(f, (double)b[i].done / most);
    fprintf(f, "<td>%.2f</td><td>%u</td><td>%u</td></tr>\n", (double)b[i].done / (double)bin,
            b[i].failed, b[i].drifted);
  }
  fputs("</table>\n", f);
  cli_page_close(cx, f, path);
}

/* ---- a store ---- */
static void sum_json(tarn_ctx *cx, const tarn_jobs_sum *n) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "asked", (int64_t)n->asked, "answered", (int64_t)n->answered, "failed",
                (int64_t)n->failed, "drifted", (int64_t)n->drifted, "aside", (int64_t)n->aside);
  cli_json_print(j);
}
static void of_store(tarn_ctx *cx, const char *db, const char *html, bool json) {
  if (access(db, R_OK)) tarn_raise(cx, TARN_IO, "%s: no such file", db); /* it would be made */
  tarn_store *s = tarn_store_open(cx, db);
  tarn_jobs_sum n = tarn_jobs_count(s);
  if (html) write_page(cx, s, tarn_format(cx, "Jobs of %s", db), html);
  if (json) sum_json(cx, &n);
  else
    printf("%s: %llu jobs, %llu of them answered: %llu failed, %llu drifted, %llu set aside\n", db,
           (unsigned long long)n.asked, (unsigned long long)n.answered,
           (unsigned long long)n.failed, (unsigned long long)n.drifted,
           (unsigned long long)n.aside);
}

int tarn_cmd_fleet(tarn_ctx *cx, int argc, char **argv) {
  cli_fleet f = {.patience = 5};
  cli_list words = {0};
  const char *html = NULL, *db = NULL;
  bool json = false;
  const char *usage = "fleet status URL [--json] | fleet status --db F [--html F] [--json]";
  const cli_opt opts[] = {
      CLI_FLEET(f),
      {"--db", NULL, CLI_STR, &db, "F", "the jobs of a store of measurements, instead"},
      {"--html", NULL, CLI_STR, &html, "F", "write a page of the throughput over time of --db"},
      {"--json", NULL, CLI_FLAG, &json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  bool fits = words.n == (db ? 1 : 2) && !strcmp(words.p[0], "status");
  if (!fits || (html && !db)) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  if (db) {
    of_store(cx, db, html, json);
    return 0;
  }
  f.url = words.p[1];
  const tarn_fleet_state *s = tarn_fleet_look(cli_fleet_open(cx, &f));
  if (json) show_json(cx, s);
  else show(s);
  return 0;
}
