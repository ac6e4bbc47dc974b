/* tune/jobs: each job answered once, what a search that begins again sees; tune/child: limits. */
#include "tests/folder.h"
#include "tests/terms.h"

#include "fleet/bench.h"
#include "hw/host/host.h"
#include "tune/child.h"
#include "tune/jobs.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char hw[] = "a board";

/* ---- jobs ---- */
static tarn_job job_of(uint32_t i, uint32_t turn) {
  tarn_record r = {.kernel = 1 + i / 10,
                   .schedule = i,
                   .threads = 1,
                   .kernel_text = tarn_format(cx, "(kernel %u)", i / 10),
                   .schedule_text = tarn_format(cx, "(schedule %u)", i)};
  return tarn_job_of(hw, &r, turn);
}
static tarn_answer answer_of(const tarn_job *j, double seconds) {
  tarn_answer x = {.seconds = seconds, .worker = "w"};
  memcpy(x.name, j->name, sizeof x.name);
  return x;
}
static void settled(tarn_store *s, const tarn_answer *x, uint32_t n, uint32_t fresh, uint32_t again,
                    uint32_t unknown) {
  tarn_settled r = tarn_jobs_settle(s, x, n);
  ck_assert(r.fresh == fresh && r.again == again && r.unknown == unknown);
}
static double known(tarn_store *s, uint32_t i) {
  double seconds = -1;
  tarn_job j = job_of(i, 0);
  tarn_store_has(s, hw, 1, j.of.kernel, j.of.schedule, &seconds);
  return seconds;
}

static void names(tarn_ctx *c, void *arg) {
  (void)c, (void)arg;
  tarn_intern *seen = tarn_intern_new(cx);
  for (uint32_t i = 0; i < 3000; i++) {
    tarn_job j = job_of(i / 3, i % 3);
    tarn_intern_add(seen, j.name, sizeof j.name);
    ck_assert(strlen(j.name) == 32 && !strcmp(j.name, job_of(i / 3, i % 3).name));
  }
  ck_assert_uint_eq(tarn_intern_count(seen), 3000);
}
START_TEST(job_names) { must(names, NULL); }
END_TEST

/* Answers come twice, in another order, from nowhere, and before they are asked for. */
static void once(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_store *s = tarn_store_open(c, in_folder(cx, "once.db"));
  tarn_job j[4];
  tarn_answer x[4], got;
  for (uint32_t i = 0; i < 4; i++) j[i] = job_of(i, 0), x[i] = answer_of(&j[i], 1e-5 * (i + 1));
  settled(s, x, 4, 0, 0, 4);
  tarn_jobs_ask(s, hw, j, 3);
  tarn_jobs_ask(s, hw, j, 3);
  settled(s, x + 1, 3, 2, 0, 1);
  x[1].seconds = 1; /* another measured it again: the first counts */
  settled(s, x, 3, 1, 2, 0);
  ck_assert_double_eq(known(s, 1), 2e-5);
  ck_assert(tarn_jobs_answer(s, j[1].name, &got) && got.seconds == 2e-5);
  ck_assert(!tarn_jobs_answer(s, j[3].name, &got));
  tarn_jobs_sum n = tarn_jobs_count(s);
  ck_assert(n.asked == 3 && n.answered == 3 && n.failed == 0 && n.aside == 0);
  const char *name = tarn_store_name(s);
  ck_assert(strlen(name) == 16 && !strcmp(name, tarn_store_name(s)));
  ck_assert_str_ne(name, tarn_store_name(tarn_store_open(c, in_folder(cx, "other.db"))));
}
START_TEST(answered_once) { must(once, NULL); }
END_TEST

/* A trial's seconds are the mean of its jobs and of what was known; drifted ones do not count. */
static void means(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_store *s = tarn_store_open(c, in_folder(cx, "means.db"));
  tarn_job j[6] = {job_of(0, 0), job_of(0, 1), job_of(0, 2),
                   job_of(1, 0), job_of(2, 0), job_of(3, 0)};
  tarn_record before = j[0].of;
  before.seconds = 1e-4;
  tarn_store_add(s, hw, &before, 1);
  tarn_jobs_ask(s, hw, j, 6);
  tarn_answer x = answer_of(&j[0], 1e-6);
  settled(s, &x, 1, 1, 0, 0);
  ck_assert_double_eq_tol(known(s, 0), 1e-5, 1e-12);
  x = answer_of(&j[1], 1e-2), x.drifted = true;
  settled(s, &x, 1, 1, 0, 0);
  ck_assert_double_eq_tol(known(s, 0), 1e-5, 1e-12);
  x = answer_of(&j[2], 1e-5);
  settled(s, &x, 1, 1, 0, 0);
  ck_assert_double_eq_tol(known(s, 0), 1e-5, 1e-12);
  x = answer_of(&j[3], INFINITY), x.reason = "no such kernel";
  settled(s, &x, 1, 1, 0, 0);
  ck_assert(isinf(known(s, 1)));
  x = answer_of(&j[4], 1e-5), x.drifted = true;
  settled(s, &x, 1, 1, 0, 0);
  ck_assert_double_eq(known(s, 2), -1); /* not learned from */
  x = answer_of(&j[5], INFINITY), x.aside = true;
  settled(s, &x, 1, 1, 0, 0);
  tarn_jobs_sum n = tarn_jobs_count(s);
  ck_assert(n.answered == 6 && n.failed == 2 && n.drifted == 2 && n.aside == 1);
  const tarn_jobs_bin *b;
  uint32_t bins = tarn_jobs_history(s, 1000000, &b), all = 0;
  for (uint32_t i = 0; i < bins; i++) all += b[i].done;
  ck_assert_uint_eq(all, 6);
}
START_TEST(mean_of_jobs) { must(means, NULL); }
END_TEST

/* ---- searches ---- */
static uint32_t seen_by(tarn_ctx *c, tarn_store *s, const char *run, const char *path) {
  const tarn_record *r;
  unlink(in_folder(cx, path));
  tarn_jobs_begin(s, run, hw, in_folder(cx, path));
  return tarn_store_read(tarn_store_open(c, in_folder(cx, path)), hw, &r);
}
static void runs(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_store *s = tarn_store_open(c, in_folder(cx, "runs.db"));
  tarn_job j[6];
  for (uint32_t i = 0; i < 6; i++) j[i] = job_of(i, 0);
  tarn_record local = job_of(20, 0).of;
  local.seconds = 3e-5;
  tarn_store_add(s, hw, &local, 1);
  ck_assert_uint_eq(seen_by(c, s, "first", "1"), 1);
  tarn_jobs_ask(s, hw, j, 6);
  for (uint32_t i = 0; i < 3; i++) {
    tarn_answer x = answer_of(&j[i], 1e-5);
    settled(s, &x, 1, 1, 0, 0);
  }
  ck_assert_uint_eq(seen_by(c, s, "first", "2"), 1); /* begins as it began */
  ck_assert_uint_eq(seen_by(c, s, "second", "3"), 4);
  tarn_job again = job_of(0, 1);
  tarn_jobs_ask(s, hw, &again, 1);
  tarn_answer x = answer_of(&again, 4e-5);
  settled(s, &x, 1, 1, 0, 0);
  ck_assert_double_eq_tol(known(s, 0), 2e-5, 1e-12);
  ck_assert_uint_eq(seen_by(c, s, "second", "4"), 4);
  ck_assert_double_eq_tol(known(tarn_store_open(c, in_folder(cx, "4")), 0), 1e-5, 1e-12);
  ck_assert_uint_eq(seen_by(c, s, "third", "5"), 4);
  ck_assert_double_eq_tol(known(tarn_store_open(c, in_folder(cx, "5")), 0), 2e-5, 1e-12);
}
START_TEST(runs_begin_again) { must(runs, NULL); }
END_TEST

/* A process that settles answers one by one until it is killed: what it told of is there once. */
static void settle_until_killed(tarn_ctx *c, void *arg) {
  const int *to = arg;
  tarn_store *s = tarn_store_open(c, in_folder(cx, "killed.db"));
  for (uint32_t i = 0;; i++) {
    tarn_job j = job_of(i, 0);
    tarn_answer x = answer_of(&j, 1e-5);
    tarn_jobs_ask(s, hw, &j, 1);
    tarn_jobs_settle(s, &x, 1);
    if (write(*to, &i, sizeof i) != sizeof i) _exit(1);
  }
}
static void count_killed(tarn_ctx *c, void *arg) {
  const uint32_t *told = arg;
  tarn_store *s = tarn_store_open(c, in_folder(cx, "killed.db"));
  tarn_jobs_sum n = tarn_jobs_count(s);
  const tarn_record *r;
  ck_assert(n.answered >= *told && n.answered <= *told + 1 && n.asked <= n.answered + 1);
  ck_assert_uint_eq(tarn_store_read(s, hw, &r), n.answered);
}
START_TEST(killed_while_settling) {
  int fd[2];
  uint32_t told = 0, i;
  ck_assert(!pipe(fd));
  pid_t pid = fork();
  if (!pid) _exit((int)tarn_protect(cx, settle_until_killed, &fd[1]));
  close(fd[1]);
  while (told < 20 && read(fd[0], &i, sizeof i) == sizeof i) told++;
  kill(pid, SIGKILL);
  while (read(fd[0], &i, sizeof i) == sizeof i) told++;
  ck_assert(waitpid(pid, NULL, 0) == pid && told >= 20);
  must(count_killed, &told);
}
END_TEST

/* ---- children ---- */
#if !defined(__SANITIZE_ADDRESS__)
static void too_much(tarn_ctx *c, void *arg) {
  (void)arg;
  void *p = mmap(NULL, (size_t)4 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) tarn_raise(c, TARN_MEMORY, "no memory");
}
#endif
static void who(tarn_ctx *c, void *arg) {
  (void)c;
  double *out = arg;
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  out[0] = geteuid(), out[1] = CPU_COUNT(&set);
}
/* Is there an interface that is up, other than loopback's? */
static void call_out(tarn_ctx *c, void *arg) {
  double *out = arg;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
  (void)c;
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  out[0] = connect(s, (struct sockaddr *)&to, sizeof to) ? errno : 0;
}
static void hang(tarn_ctx *c, void *arg) {
  (void)c;
  const int *to = arg;
  pid_t pid = fork(); /* and one that outlives it, if it can */
  if (pid && write(*to, &pid, sizeof pid) != sizeof pid) _exit(1);
  for (;;) pause();
}
static bool run_child(tarn_child *c, tarn_fn *work, void *arg, double *out, uint32_t n,
                      const tarn_limits *l) {
  *c = (tarn_child){.cx = cx, .work = work, .arg = arg, .out = out, .n = n, .limits = l};
  tarn_child_begin(c);
  return tarn_child_wait(c, tarn_now() + 20);
}
static void limits(tarn_ctx *cx_, void *arg) {
  (void)cx_, (void)arg;
  double out[2] = {0};
  tarn_child c;
  cpu_set_t one, all;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
    if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
  tarn_limits l = {.cores = &one, .uid = 65534, .gid = 65534};
  ck_assert(run_child(&c, who, out, out, 2, &l));
  ck_assert(out[0] == (geteuid() ? geteuid() : 65534) && out[1] == 1);
#if !defined(__SANITIZE_ADDRESS__)
  l = (tarn_limits){.memory = 2ull << 30};
  ck_assert(!run_child(&c, too_much, NULL, out, 0, &l));
  ck_assert_str_eq(c.why, "no memory");
#endif
  l = (tarn_limits){.offline = true};
  ck_assert(run_child(&c, call_out, out, out, 1, &l));
  if (!geteuid()) ck_assert(out[0] == ENETUNREACH); /* not even loopback is up */
}
START_TEST(child_limits) { must(limits, NULL); }
END_TEST
/* What a kernel must not do, and what it may. */
static void open_file(tarn_ctx *c, void *arg) {
  tarn_child_close(c);
  *(double *)arg = open("/etc/passwd", O_RDONLY);
}
static void open_socket(tarn_ctx *c, void *arg) {
  tarn_child_close(c);
  *(double *)arg = socket(AF_INET, SOCK_STREAM, 0);
}
static void *open_there(void *arg) {
  *(double *)arg = open("/etc/passwd", O_RDONLY);
  return NULL;
}
static void open_in_thread(tarn_ctx *c, void *arg) {
  pthread_t t;
  tarn_child_close(c);
  if (!pthread_create(&t, NULL, open_there, arg)) pthread_join(t, NULL);
}
static void run_program(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_child_close(c);
  execl("/bin/true", "true", NULL);
}
static void *add_up(void *arg) {
  *(double *)arg += 1;
  return NULL;
}
static void compute(tarn_ctx *c, void *arg) {
  pthread_t t;
  tarn_child_close(c);
  double *much = tarn_new(c, (size_t)64 << 20);
  much[1 << 20] = tarn_now();
  if (!pthread_create(&t, NULL, add_up, arg)) pthread_join(t, NULL);
}
static void closed(tarn_ctx *c_, void *arg) {
  static tarn_fn *const bad[] = {open_file, open_socket, open_in_thread, run_program};
  double out[2] = {0};
  tarn_child c;
  tarn_limits l = {0};
  (void)c_, (void)arg;
  for (uint32_t i = 0; i < 4; i++) {
    ck_assert(!run_child(&c, bad[i], out, out, 1, i % 2 ? &l : NULL));
    ck_assert_str_eq(c.why, "it asked the system for more than memory, threads and time");
  }
  ck_assert(run_child(&c, compute, out, out, 1, NULL) && out[0] == 1);
}
START_TEST(child_opens_nothing) { must(closed, NULL); }
END_TEST
static void ends(tarn_ctx *c_, void *arg) {
  int fd[2];
  pid_t other = 0;
  tarn_limits l = {0};
  (void)c_, (void)arg;
  ck_assert(!pipe(fd));
  tarn_child c = {.cx = cx, .work = hang, .arg = &fd[1], .limits = &l};
  tarn_child_begin(&c);
  ck_assert_int_eq(tarn_child_look(&c, 0.01), 0);
  ck_assert(read(fd[0], &other, sizeof other) == sizeof other);
  tarn_child_end(&c);
  for (int i = 0; i < 500 && !kill(other, 0); i++) usleep(10000); /* until init has collected it */
  ck_assert(kill(other, 0) && errno == ESRCH);
}
START_TEST(child_ends_all) { must(ends, NULL); }
END_TEST

/* ---- the bench of a worker ---- */
static const char product[] =
    "(kernel (nest (stages (children 2) (shared) (split 2) (stage (own 24 24) (reduce 24) (red sum "
    "(mul $0 $1)) (child 0 (index ((24 24) (24)) (576) ((+ (* 24 d0) d2)))) (child 1 (index ((24 "
    "24) (24)) (576) ((+ d1 (* 24 d2))))) out)))(in f32 (576) (1))(in f32 (576) (1))(out f32 (24 "
    "24) (24 1)))";
static const char plain[] = "(schedule (stage (acc 3) (serial 0 1) (serial 1 1) (serial 2 1)))";
static void one_thing_after_another(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_lang *of = tarn_lang_new(c);
  tarn_worker_options o = {.limit = 30};
  fleet_bench *b = TARN_NEW(c, fleet_bench);
  tarn_answer x = {0};
  *b = (fleet_bench){.L = of, .hw = tarn_hw_host(of, false), .o = &o};
  fleet_bench_open(b);
  ck_assert(b->at_first[b->hw->units] > 0);
  fleet_job j = {.store = "s", .kernel = product, .schedule = plain, .threads = 1, .seed = 1};
  ck_assert(fleet_bench_measure(b, &j, &x) && !x.reason);
  ck_assert(x.seconds > 0 && x.seconds < 1 && x.calibration > 0 && x.calibration < 1);
  ck_assert(b->at_first[1] > 0 && !x.drifted); /* the first on so many threads */
  b->at_first[1] *= 8;                         /* as if the machine had got faster; and slower */
  ck_assert(fleet_bench_measure(b, &j, &x) && x.drifted && x.seconds < 1);
  b->at_first[1] /= 64;
  ck_assert(fleet_bench_measure(b, &j, &x) && x.drifted);
  j.schedule = "(schedule (stage (acc 99)))";
  ck_assert(fleet_bench_measure(b, &j, &x) && isinf(x.seconds) && strlen(x.reason) > 5);
  j.kernel = "(kernel";
  ck_assert(fleet_bench_measure(b, &j, &x) && isinf(x.seconds) && strlen(x.reason) > 5);
}
START_TEST(bench) { must(one_thing_after_another, NULL); }
END_TEST
static bool never(void *user) {
  (void)user;
  return false;
}
static void slow(tarn_ctx *c, void *arg) {
  (void)arg;
  tarn_lang *of = tarn_lang_new(c);
  tarn_worker_options o = {.simulate = true, .pace = 60, .limit = 0.1};
  fleet_bench *b = TARN_NEW(c, fleet_bench);
  tarn_answer x = {0};
  *b = (fleet_bench){.L = of, .hw = tarn_hw_host(of, false), .o = &o};
  fleet_bench_open(b);
  fleet_job j = {.store = "s", .kernel = product, .schedule = plain, .threads = 1, .seed = 1};
  ck_assert(fleet_bench_measure(b, &j, &x) && isinf(x.seconds));
  ck_assert_ptr_nonnull(strstr(x.reason, "not done within"));
  b->tick = never;
  ck_assert(!fleet_bench_measure(b, &j, &x)); /* given up: no answer */
}
START_TEST(bench_limits) { must(slow, NULL); }
END_TEST

/* ---- words ---- */
static void cores_of(tarn_ctx *c, void *arg) {
  cpu_set_t set;
  fleet_cores(c, arg, &set);
  ck_assert(CPU_COUNT(&set) == 5 && CPU_ISSET(0, &set) && CPU_ISSET(3, &set) && CPU_ISSET(8, &set));
}
START_TEST(core_lists) {
  static char good[] = "0-3,8";
  static char bad[][8] = {"", "a", "3-1", "0,", "1-", "0 1", "99999", "-1"};
  must(cores_of, good);
  for (size_t i = 0; i < COUNT(bad); i++)
    ck_assert_int_eq(tarn_protect(cx, cores_of, bad[i]), TARN_USAGE);
}
END_TEST

int main(void) {
  if (!folder_make()) return 1;
  const looped tests[] = {{job_names, 1},
                          {answered_once, 1},
                          {mean_of_jobs, 1},
                          {runs_begin_again, 1},
                          {killed_while_settling, 1},
                          {child_limits, 1},
                          {child_opens_nothing, 1},
                          {child_ends_all, 1},
                          {core_lists, 1},
                          {bench, 1},
                          {bench_limits, 1}};
  int failed = run_suite("jobs", tests, COUNT(tests));
  folder_drop();
  return failed;
}
