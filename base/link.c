/* Runs lld, which says in one line what is wrong. */
#include "base/base.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What it printed, as far as it fits; the rest is read and dropped. */
static void drain(int fd, char *text, size_t room) {
  char rest[4096];
  size_t n = 0;
  for (;;) {
    ssize_t k = n + 1 < room ? read(fd, text + n, room - 1 - n) : read(fd, rest, sizeof rest);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) break;
    if (n + 1 < room) n += (size_t)k;
  }
  text[n] = 0;
}
static const char *first_error(tarn_ctx *cx, char *text) {
  char *from = strstr(text, "error: ");
  from = from ? from + strlen("error: ") : text;
  from[strcspn(from, "\n")] = 0;
  return tarn_strdup(cx, *from ? from : "lld failed");
}
/* A wheel of Python brings its own, beside our library; "": there is none. */
static void beside(char *path, size_t room) {
  Dl_info here;
  int n = -1;
  const char *end =
      dladdr((void *)(uintptr_t)&tarn_lld, &here) ? strrchr(here.dli_fname, '/') : NULL;
  if (end) n = snprintf(path, room, "%.*s/ld.lld", (int)(end - here.dli_fname), here.dli_fname);
  if (n < 0 || (size_t)n >= room || access(path, X_OK)) *path = 0;
}
static int start(pid_t *pid, const char *const *argv, int to) {
  static const char *const names[] = {"ld.lld-19", "/usr/lib/llvm-19/bin/ld.lld", "ld.lld"};
  extern char **environ;
  posix_spawn_file_actions_t actions;
  char own[4096];
  int rc = -1;
  beside(own, sizeof own);
  if (posix_spawn_file_actions_init(&actions)) return -1;
  posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO);
  if (*own) rc = posix_spawn(pid, own, &actions, NULL, (char *const *)argv, environ);
  for (size_t i = 0; i < sizeof names / sizeof *names && rc; i++)
    rc = posix_spawnp(pid, names[i], &actions, NULL, (char *const *)argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  return rc;
}
tarn_lld_result tarn_lld(tarn_ctx *cx, const char *const *argv, const char **why) {
  char text[2048];
  int ends[2], status = 0;
  pid_t pid;
  if (pipe2(ends, O_CLOEXEC)) tarn_raise(cx, TARN_IO, "ld.lld: %s", strerror(errno));
  int rc = start(&pid, argv, ends[1]);
  close(ends[1]);
  if (!rc) drain(ends[0], text, sizeof text);
  close(ends[0]);
  *why = "lld-19 is not installed";
  if (rc) return TARN_LLD_MISSING;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return TARN_LLD_DONE;
  *why = first_error(cx, text);
  return TARN_LLD_FAILED;
}
