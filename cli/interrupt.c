/* When a command ends early: Ctrl-C and --seconds.
 *
 * Both are the limit of the context (base/limit.h), which whatever takes long asks. Ctrl-C is held
 * back while something runs that can end early with what it has: the signal stays pending, and the
 * limit looks whether it is there. What asks too seldom, such as a pass of LLVM, is ended by a
 * timer, two seconds or a fifth of the time later and without a result, unless results are being
 * written. While others have the processor this time stands still. */
#include "base/limit.h"
#include "cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define GRACE 1.7    /* seconds behind a moment at which to end, */
#define SHARE 0.2    /* or this much of the time until then */
#define TICK  250000 /* microseconds between two looks */

typedef struct moment {
  double at, waited; /* tarn_now(), 0: none; for a processor until then, -1: it is not there yet */
} moment;
/* Of the one timer that a process has. */
static struct {
  double begin;
  moment limit, asked; /* --seconds; Ctrl-C */
  volatile sig_atomic_t writes;
} timer;

bool cli_interrupted(void *user) {
  sigset_t waiting;
  (void)user;
  return !sigpending(&waiting) && sigismember(&waiting, SIGINT) == 1;
}
void cli_forget_interrupt(void) {
  sigset_t one;
  struct timespec now = {0};
  sigemptyset(&one), sigaddset(&one, SIGINT);
  while (sigtimedwait(&one, NULL, &now) == SIGINT) continue;
}
bool cli_hold_interrupts(void) {
  sigset_t one, was;
  sigemptyset(&one), sigaddset(&one, SIGINT);
  return !sigprocmask(SIG_BLOCK, &one, &was) && !sigismember(&was, SIGINT);
}
void cli_release_interrupts(bool held) {
  sigset_t one;
  if (!held) return;
  cli_forget_interrupt();
  sigemptyset(&one), sigaddset(&one, SIGINT);
  sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* ---- the timer ---- */
static void end(const char *line) {
  if (write(STDERR_FILENO, line, strlen(line)) >= 0) {}
  cli_end_now(TARN_NO_RESULT);
}
/* Seconds that the main thread was ready to run and did not; 0 where the system does not say. For a
 * handler: no allocation, no locale. */
static double waited(void) {
  char text[96];
  int fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
  const char *p = text, *end = text + (n > 0 ? n : 0);
  double ns = 0;
  if (fd >= 0) close(fd);
  while (p < end && *p != ' ') p++;
  for (p++; p < end && *p >= '0' && *p <= '9'; p++) ns = 10 * ns + (*p - '0');
  return 1e-9 * ns;
}
static bool is_over(moment *m, double now) {
  if (m->at <= 0 || now < m->at) return false;
  double idle = waited();
  if (m->waited < 0) m->waited = idle;
  return now - m->at - (idle - m->waited) > fmax(GRACE, SHARE * (m->at - timer.begin));
}
static void tick(int sig) {
  double now = tarn_now();
  int had = errno;
  (void)sig;
  if (timer.writes) return;
  if (timer.asked.at <= 0 && cli_interrupted(NULL)) timer.asked = (moment){now, -1};
  if (is_over(&timer.limit, now)) end("tarn: no result within the limit of time\n");
  if (is_over(&timer.asked, now)) end("tarn: interrupted, without a result\n");
  errno = had;
}
static void watch(void) {
  if (timer.begin <= 0) timer.begin = tarn_now();
  struct sigaction on = {.sa_handler = tick, .sa_flags = SA_RESTART};
  struct itimerval each = {{0, TICK}, {0, TICK}};
  sigemptyset(&on.sa_mask);
  sigaction(SIGALRM, &on, NULL);
  setitimer(ITIMER_REAL, &each, NULL);
}
void cli_limit(tarn_ctx *cx, double seconds) {
  tarn_limit l = tarn_limit_get(cx);
  if (!(seconds > 0) || timer.limit.at > 0) return;
  l.until = tarn_now() + seconds;
  timer.limit = (moment){l.until, -1};
  tarn_limit_set(cx, l);
  watch();
}
static void release(void *held) {
  timer.writes = true;
  cli_release_interrupts(*(bool *)held);
}
void cli_ends_early(tarn_ctx *cx) {
  tarn_limit l = tarn_limit_get(cx);
  bool held = cli_hold_interrupts(), *keep = tarn_copy(cx, &held, sizeof held);
  tarn_defer(cx, release, keep);
  l.asked = cli_interrupted;
  tarn_limit_set(cx, l);
  watch();
}
void cli_writes(void) { timer.writes = true; }
