/* A line on the terminal for what takes longer than two seconds: stage, count, time left.
 *
 * Whatever takes long tells the context's watcher (base/progress.h). A thread draws what was told
 * last, a few times a second, since a pass of LLVM tells nothing for seconds. The line goes when
 * the stage ends. In a child process there is no such thread: nothing is drawn. */
#include "base/progress.h"
#include "cli/cli.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SILENT 2.0 /* seconds */
#define EACH   0.3

static struct {
  pthread_mutex_t lock;
  bool runs, drawn;
  tarn_told now;
  char note[64];
  double begin, since, end; /* tarn_now(): of the first stage, of this one, and of the last */
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

static double left(const tarn_told *s, double spent) {
  return s->of > s->done && s->done ? spent / (double)s->done * (double)(s->of - s->done) : 0;
}
static size_t add(char *out, size_t n, size_t room, const char *format, unsigned long long a,
                  unsigned long long b) {
  int k = n < room ? snprintf(out + n, room - n, format, a, b) : 0;
  return n + (k > 0 ? (size_t)k : 0);
}
/* As much of it as a terminal of `width` shows. */
static void text(char *out, size_t room, size_t width, double now) {
  const tarn_told *s = &line.now;
  double rest = left(s, now - line.since);
  size_t n = 0;
  *out = 0;
  n += (size_t)snprintf(out + n, room - n, "%s", s->name);
  if (s->of && s->unit) n = add(out, n, room, ", %llu of %llu ", s->done, s->of);
  else if (s->unit) n = add(out, n, room, ", %llu ", s->done, 0);
  if (n < room && s->unit) n += (size_t)snprintf(out + n, room - n, "%s", s->unit);
  if (n < room && *line.note) n += (size_t)snprintf(out + n, room - n, ", %s", line.note);
  n = add(out, n, room, ", %llu s", (unsigned long long)(now - line.begin), 0);
  if (rest >= 1) n = add(out, n, room, ", %llu s left", (unsigned long long)(rest + 0.5), 0);
  if (width < room) out[width] = 0;
}
static void draw(double now) {
  char out[200];
  struct winsize w;
  size_t width = !ioctl(STDERR_FILENO, TIOCGWINSZ, &w) && w.ws_col > 1 ? w.ws_col - 1u : 79;
  text(out, sizeof out, width, now);
  fprintf(stderr, "\r%s\033[K", out);
  fflush(stderr);
  line.drawn = true;
}
static void clear(void) {
  if (line.drawn) fputs("\r\033[K", stderr), fflush(stderr);
  line.drawn = false;
}
static void *drawer(void *none) {
  const struct timespec each = {0, (long)(1e9 * EACH)};
  for (;;) {
    nanosleep(&each, NULL);
    pthread_mutex_lock(&line.lock);
    double now = tarn_now();
    if (line.now.name && now - line.begin > SILENT) draw(now);
    pthread_mutex_unlock(&line.lock);
  }
  return none;
}
static void begin(void) {
  pthread_t thread;
  sigset_t all, was;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &was);
  line.runs = !pthread_create(&thread, NULL, drawer, NULL) && !pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &was, NULL);
}
void cli_progress(const tarn_told *s, const char *note) {
  if (pthread_mutex_trylock(&line.lock)) return; /* it is being drawn; the next is told soon */
  double now = tarn_now();
  bool same = s->name && line.now.name && !strcmp(s->name, line.now.name);
  if (!line.now.name && now - line.end > 1) line.begin = now;
  if (!same || s->done < line.now.done) line.since = now;
  line.now = *s;
  snprintf(line.note, sizeof line.note, "%s", note ? note : "");
  if (s->name && !line.runs) begin();
  pthread_mutex_unlock(&line.lock);
}
void cli_progress_end(void) {
  if (pthread_mutex_lock(&line.lock)) return;
  if (line.now.name) line.end = tarn_now();
  line.now = (tarn_told){0};
  clear();
  pthread_mutex_unlock(&line.lock);
}
static void see(void *user, const tarn_told *s) {
  (void)user;
  if (s->name) cli_progress(s, NULL);
  else cli_progress_end();
}
bool cli_progress_shown(void) {
  const char *term = getenv("TERM");
  return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}
void cli_progress_begin(tarn_ctx *cx) {
  if (cli_progress_shown()) tarn_watch(cx, (tarn_watcher){see, NULL});
}
