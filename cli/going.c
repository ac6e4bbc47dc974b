/* Folders that go when the command ends, however it ends: done, failed, interrupted.
 *
 * The files of a compile are made in such a folder and moved into their place when all of them are
 * there. A signal that ends the process empties these folders first. The handler may call little:
 * each folder is opened when it is made, so that it need only be read; it has files alone, and the
 * main thread alone makes them. */
#include "cli/cli.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4 };
typedef struct folder {
  char *path;
  DIR *dir;
} folder;
static folder going[MOST]; /* one inside of another: the last goes first */
static volatile sig_atomic_t ngoing;
static pthread_t owner;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM};

static void empty(const folder *f) {
  rewinddir(f->dir);
  for (const struct dirent *e; (e = readdir(f->dir));)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      unlinkat(dirfd(f->dir), e->d_name, 0);
  rmdir(f->path);
}

/* The linker, if it runs, writes into the folder: it is waited for. */
static bool end_folders(int sig) {
  if (ngoing && !pthread_equal(pthread_self(), owner)) {
    pthread_kill(owner, sig);
    return false;
  }
  while (ngoing && (waitpid(-1, NULL, 0) > 0 || errno == EINTR)) continue;
  while (ngoing > 0) empty(&going[--ngoing]);
  return true;
}
static void interrupted(int sig) {
  if (!end_folders(sig)) return;
  signal(sig, SIG_DFL);
  raise(sig);
}
void cli_end_now(int status) {
  if (end_folders(SIGALRM)) _exit(status);
}
static void attend(void) {
  struct sigaction now = {.sa_handler = interrupted}, was;
  sigfillset(&now.sa_mask);
  owner = pthread_self();
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (!sigaction(signals[i], NULL, &was) && was.sa_handler == SIG_DFL)
      sigaction(signals[i], &now, NULL);
}

static void undisturbed(void *user, tarn_ctx *cx, tarn_fn *fn, void *arg) {
  (void)user;
  sigset_t set, was;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaddset(&set, signals[i]);
  pthread_sigmask(SIG_BLOCK, &set, &was);
  tarn_status st = tarn_protect(cx, fn, arg);
  pthread_sigmask(SIG_SETMASK, &was, NULL);
  if (st) tarn_reraise(cx, st);
}

static void go(void *path) {
  if (!ngoing || going[ngoing - 1].path != path) return; /* it stays */
  folder f = going[--ngoing];
  empty(&f);
  closedir(f.dir);
}
static void make(tarn_ctx *cx, void *path) {
  if (ngoing == MOST) tarn_raise(cx, TARN_INTERNAL, "too many folders for now");
  if (!mkdtemp(path)) tarn_raise(cx, TARN_IO, "%s: %s", (char *)path, strerror(errno));
  folder f = {path, opendir(path)};
  if (!f.dir) {
    rmdir(path);
    tarn_raise(cx, TARN_IO, "%s: %s", f.path, strerror(errno));
  }
  going[ngoing] = f;
  ngoing++;
  attend();
}
/* A new folder of this pattern (…XXXXXX). */
static char *folder_for_now(tarn_ctx *cx, const char *pattern) {
  char *path = tarn_strdup(cx, pattern);
  undisturbed(NULL, cx, make, path);
  tarn_defer(cx, go, path);
  return path;
}
/* ---- their names, which say nothing to anybody ---- */
static struct {
  char path[64], of[256];
} named[MOST]; /* outlive what the protected call has made */
const char *cli_scratch_folder(tarn_ctx *cx, const char *of) {
  const char *path = folder_for_now(cx, "/tmp/tarn-XXXXXX");
  uint32_t i = 0;
  while (i < MOST && *named[i].path) i++;
  if (i == MOST) return path;
  snprintf(named[i].path, sizeof named[i].path, "%s", path);
  snprintf(named[i].of, sizeof named[i].of, "%s", of);
  return path;
}
static void speak(tarn_ctx *cx, void *text) {
  const char **message = text;
  for (uint32_t i = 0; i < MOST && *named[i].path; i++)
    for (const char *at; (at = strstr(*message, named[i].path));)
      *message = tarn_format(cx, "%.*s%s%s", (int)(at - *message), *message, named[i].of,
                             at + strlen(named[i].path));
}
const char *cli_spoken(tarn_ctx *cx, const char *message) {
  tarn_protect(cx, speak, &message);
  return message;
}

static char *make_folder(void *user, tarn_ctx *cx, const char *pattern) {
  (void)user;
  return folder_for_now(cx, pattern);
}
/* The innermost: nothing is made while files are put into their place. */
static void stays(void *user, tarn_ctx *cx, const char *path) {
  (void)user;
  (void)cx;
  (void)path;
  closedir(going[--ngoing].dir);
}
const tarn_folders cli_folders = {NULL, make_folder, stays, undisturbed};
