/* A clock that jumps, as an administrator or NTP may set it: every second the time of day goes
 * an hour ahead, two hours back or forty days ahead; the monotonic clock goes on. Waiting for a
 * moment of the day meets that as it does in the kernel. Found by LD_PRELOAD. */
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EVERY 1        /* seconds between two jumps */
#define SLICE 20000000 /* nanoseconds until a jump is noticed by who waits */

static struct timespec real(clockid_t of) {
  struct timespec t = {0};
  syscall(SYS_clock_gettime, of, &t);
  return t;
}
static time_t ahead(void) {
  static const time_t by[] = {0, 3600, -7200, 40 * 86400, -3600};
  return by[real(CLOCK_MONOTONIC).tv_sec / EVERY % (time_t)(sizeof by / sizeof *by)];
}
static int day(clockid_t c) { return c == CLOCK_REALTIME || c == CLOCK_REALTIME_COARSE; }

int clock_gettime(clockid_t c, struct timespec *t) {
  long r = syscall(SYS_clock_gettime, c, t);
  if (!r && day(c)) t->tv_sec += ahead();
  return (int)r;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  struct timespec x = real(CLOCK_REALTIME);
  (void)zone;
  t->tv_sec = x.tv_sec + ahead(), t->tv_usec = x.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *t) {
  time_t now = real(CLOCK_REALTIME).tv_sec + ahead();
  if (t) *t = now;
  return now;
}

static int past(const struct timespec *t) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec > t->tv_sec || (now.tv_sec == t->tv_sec && now.tv_nsec >= t->tv_nsec);
}
int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                           const struct timespec *restrict until) {
  for (;;) {
    if (past(until)) return ETIMEDOUT;
    struct timespec t = real(CLOCK_MONOTONIC);
    t.tv_nsec += SLICE;
    if (t.tv_nsec >= 1000000000) t.tv_nsec -= 1000000000, t.tv_sec++;
    int r = pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &t);
    if (r != ETIMEDOUT) return r;
  }
}
