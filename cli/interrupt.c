/* When a command ends early: Ctrl-C and --seconds.
 *
 * Both are the limit of the context (base/limit.h), which whatever takes long asks. Ctrl-C is held
 * back while something runs that can end early with what it has: the signal stays pending, and the
 * limit looks whether it is there. What asks too seldom, such as a pass of LLVM, is ended by a
 * timer, some time later and without a result, unless results are being written. */
#include "base/limit.h"
#include "cli/cli.h"
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define GRACE 1.5    /* seconds behind a limit */
#define TICK  250000 /* microseconds between two looks */

/* Of the one timer that a process has. */
static struct {
  double begin, end, asked; /* tarn_now(); 0: no limit; not asked to end yet */
  bool keeps;               /* there is something to lose: as long again for what was found */
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
static bool is_over(double at, double now) {
  return at > 0 && now > at + GRACE + (timer.keeps ? at - timer.begin : 0);
}
static void tick(int sig) {
  double now = tarn_now();
  (void)sig;
  if (timer.writes) return;
  if (cli_interrupted(NULL) && timer.asked <= 0) timer.asked = now;
  if (is_over(timer.end, now)) end("tarn: no result within the limit of time\n");
  if (is_over(timer.asked, now)) end("tarn: interrupted, without a result\n");
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
  if (!(seconds > 0) || timer.end > 0) return;
  l.until = timer.end = tarn_now() + seconds;
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
  l.asked = cli_interrupted, timer.keeps = true;
  tarn_limit_set(cx, l);
  watch();
}
void cli_writes(void) { timer.writes = true; }
