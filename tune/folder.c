/* Folders of processes that may be killed: see child.h. */
#include "tune/child.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f) {
  (void)st, (void)flag, (void)f;
  return remove(path);
}
void tarn_folder_remove(const char *path) { nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS); }
/* The process whose folder has this name, tarn-KIND-PID-XXXXXX; 0: it is no such folder. */
static long owner(const char *name) {
  const char *kind = strncmp(name, "tarn-", 5) == 0 ? strchr(name + 5, '-') : NULL;
  char *end;
  long pid = kind ? strtol(kind + 1, &end, 10) : 0;
  return pid > 0 && *end == '-' ? pid : 0;
}
/* The folders of one process, or (0) of all that are no more. */
static void sweep(pid_t of) {
  DIR *tmp = opendir("/tmp");
  for (const struct dirent *e; tmp && (e = readdir(tmp));) {
    long pid = owner(e->d_name);
    char path[sizeof e->d_name + 8];
    snprintf(path, sizeof path, "/tmp/%s", e->d_name);
    bool gone = of ? pid == of : pid && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    if (gone) tarn_folder_remove(path);
  }
  if (tmp) closedir(tmp);
}
void tarn_folder_make(tarn_ctx *cx, const char *kind, char path[TARN_FOLDER]) {
  sweep(0);
  snprintf(path, TARN_FOLDER, "/tmp/tarn-%s-%ld-XXXXXX", kind, (long)getpid());
  if (mkdtemp(path)) return;
  path[0] = 0;
  tarn_raise(cx, TARN_IO, "/tmp: %s", strerror(errno));
}

/* Of a session of its own, which no Ctrl-C reaches, with nothing open but the pipe that ends when
 * the process does. */
TARN_NORETURN static void watch(int from, pid_t of) {
  char c;
  setsid();
  dup2(from, 0);
  for (int fd = 1; fd < 1024; fd++) close(fd);
  while (read(0, &c, 1) < 0 && errno == EINTR) continue;
  sweep(of);
  _exit(0);
}
static void close_it(void *fd) { close(*(int *)fd); }
void tarn_folder_watch(tarn_ctx *cx) {
  int fd[2], *end = TARN_NEW(cx, int);
  pid_t me = getpid();
  if (pipe2(fd, O_CLOEXEC)) return;
  pid_t child = fork();
  if (child == 0) { /* its own child is nobody's to wait for */
    if (fork() == 0) close(fd[1]), watch(fd[0], me);
    _exit(0);
  }
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
  close(fd[0]);
  *end = fd[1];
  tarn_defer(cx, close_it, end);
}
