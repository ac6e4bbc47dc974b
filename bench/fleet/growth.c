/* What a job of a fleet costs its controller: growth URL DB JOBS WORKERS [SERVER'S PID]. Asks for
 * JOBS jobs of one kernel in batches, as tarn tune --spread does; WORKERS threads, each with a
 * connection of its own, in another process, answer them at once. Prints a line at 1,000, 2,000,
 * 5,000 … jobs: what the last of them took. */
#include "fleet/link.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BATCH 480 /* of a sample: tune/tune.c */
static const char key[] = "bench machine";
static const char *url;

/* ---- workers ---- */
static void answer_one(tarn_fleet *f, natsSubscription *sub, const char *name) {
  natsMsgList list;
  jsErrCode e = 0;
  fleet_job j;
  tarn_buf b = {.cx = f->cx};
  if (natsSubscription_Fetch(&list, sub, 1, 1000, &e) != NATS_OK) return;
  fleet_job_read(f->cx, natsMsg_GetData(list.Msgs[0]), (size_t)natsMsg_GetDataLength(list.Msgs[0]),
                 &j);
  tarn_answer x = {.seconds = 1e-5, .calibration = 2e-5, .worker = name};
  memcpy(x.name, j.name, sizeof x.name);
  fleet_answer_print(&b, &x);
  fleet_put(f, fleet_answer_subject(f->cx, j.store, j.name), &b);
  natsMsg_AckSync(list.Msgs[0], NULL, &e);
  natsMsgList_Destroy(&list);
}
static void work(tarn_ctx *cx, void *arg) {
  tarn_fleet *f = tarn_fleet_open(cx, &(tarn_fleet_options){.url = url});
  const char *name = tarn_format(cx, "w%ld", (long)(intptr_t)arg), *hw = fleet_hw(cx, key);
  fleet_make(f, hw, NULL);
  natsSubscription *sub = fleet_pull(f, fleet_jobs(cx, hw), FLEET_CONSUMER);
  for (;;) {
    tarn_mark m = tarn_arena_mark(cx);
    answer_one(f, sub, name);
    tarn_release(cx, m);
  }
}
static void *thread(void *arg) {
  tarn_ctx *cx = tarn_ctx_new(NULL);
  if (tarn_protect(cx, work, arg)) fprintf(stderr, "worker: %s\n", tarn_message(cx));
  return NULL;
}
static void start_workers(long n) {
  if (fork()) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (long i = 0; i < n; i++) {
    pthread_t t;
    if (pthread_create(&t, NULL, thread, (void *)(intptr_t)i)) exit(1);
  }
  for (;;) pause();
}

/* ---- what it took ---- */
typedef struct now {
  double wall, own, server;
  uint64_t bytes;
} now;
static double cpu_of(const char *pid) { /* seconds of another process */
  char path[64], text[1024] = "";
  unsigned long user = 0, sys = 0;
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  FILE *f = fopen(path, "r");
  if (!f) return 0;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  const char *p = n ? strrchr(text, ')') : NULL;
  if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
    return 0;
  return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}
static now look(tarn_fleet *f, const char *server) {
  struct rusage u;
  natsStatistics *s = NULL;
  uint64_t in = 0, out = 0;
  getrusage(RUSAGE_SELF, &u);
  if (natsStatistics_Create(&s) == NATS_OK && natsConnection_GetStats(f->nc, s) == NATS_OK)
    natsStatistics_GetCounts(s, NULL, &in, NULL, &out, NULL);
  natsStatistics_Destroy(s);
  double own = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
  return (now){tarn_now(), own, server ? cpu_of(server) : 0, in + out};
}
static void line(uint64_t jobs, uint64_t since, const now *a, const now *b, const char *db) {
  struct rusage u;
  struct stat st = {0};
  double n = (double)(jobs - since);
  getrusage(RUSAGE_SELF, &u);
  stat(db, &st);
  printf("%9llu jobs %8.0f jobs/s  controller %6.1f us/job  server %6.1f us/job  %6.0f bytes/job  "
         "memory %5.1f MiB  "
         "store %7.1f MiB\n",
         (unsigned long long)jobs, n / (b->wall - a->wall), 1e6 * (b->own - a->own) / n,
         1e6 * (b->server - a->server) / n, (double)(b->bytes - a->bytes) / n,
         (double)u.ru_maxrss / 1024, (double)st.st_size / (1 << 20));
  fflush(stdout);
}

/* ---- the controller ---- */
typedef struct arguments {
  const char *db, *server;
  uint64_t jobs;
} arguments;
static const char kernel[] =
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 96 96) (reduce 96) (red sum "
    "(mul $0 $1)) (child 0 "
    "(index ((96 96) (96)) (9216) ((+ (* 96 d0) d2)))) (child 1 (index ((96 96) (96)) (9216) ((+ "
    "d1 (* 96 d2))))) "
    "out)))(in f32 (9216) (1))(in f32 (9216) (1))(out f32 (96 96) (96 1)))";
static void batch(tarn_ctx *cx, const tarn_measurer *m, uint64_t from, uint32_t n) {
  static tarn_record r[BATCH];
  static double seconds[BATCH];
  static bool unsure[BATCH];
  for (uint32_t i = 0; i < n; i++) {
    r[i] =
        (tarn_record){.threads = 1, .kernel = 1, .schedule = from + i + 1, .kernel_text = kernel};
    r[i].schedule_text = tarn_format(cx,
                                     "(schedule (stage (acc 2) (parallel 0 14) (parallel 1 32) "
                                     "(serial 2 4) (unroll 2 1) (vector 1 %llu)))",
                                     (unsigned long long)(from + i));
  }
  fleet_measure(m, r, n, seconds, unsure);
}
static uint64_t next_line(uint64_t at) {
  uint64_t ten = 1000;
  while (10 * ten <= at) ten *= 10;
  return at < ten ? ten : at < 2 * ten ? 2 * ten : at < 5 * ten ? 5 * ten : 10 * ten;
}
static void control(tarn_ctx *cx, void *arg) {
  const arguments *a = arg;
  tarn_fleet *f = tarn_fleet_open(cx, &(tarn_fleet_options){.url = url});
  tarn_store *s = tarn_store_open(cx, a->db);
  const tarn_measurer *m = fleet_measurer_of(f, s, key, NULL, NULL);
  uint64_t since = 0, next = next_line(0);
  now was = look(f, a->server);
  for (uint64_t at = 0; at < a->jobs;) {
    uint64_t n = a->jobs - at < BATCH ? a->jobs - at : BATCH;
    batch(cx, m, at, (uint32_t)n);
    at += n;
    if (at < next && at < a->jobs) continue;
    now is = look(f, a->server);
    line(at, since, &was, &is, a->db);
    since = at, was = is, next = next_line(at);
  }
}
int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: growth URL DB JOBS WORKERS [SERVER'S PID]\n");
    return 2;
  }
  url = argv[1];
  start_workers(atol(argv[4]));
  arguments a = {argv[2], argc > 5 ? argv[5] : NULL, strtoull(argv[3], NULL, 10)};
  tarn_ctx *cx = tarn_ctx_new(NULL);
  tarn_status st = tarn_protect(cx, control, &a);
  if (st) fprintf(stderr, "growth: %s\n", tarn_message(cx));
  tarn_ctx_free(cx);
  return st != TARN_OK;
}
