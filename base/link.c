/* Runs other programs; lld, which says in one line what is wrong. */
#include "base/child.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
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
static int start(pid_t *pid, const char *const *name, uint32_t n, const char *const *argv, int to) {
  extern char **environ;
  posix_spawn_file_actions_t actions;
  int rc = -1;
  if (posix_spawn_file_actions_init(&actions)) return -1;
  posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO);
  for (uint32_t i = 0; i < n && rc; i++)
    rc = posix_spawnp(pid, name[i], &actions, NULL, (char *const *)argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  return rc;
}
bool tarn_child_run(tarn_ctx *cx, const char *const *name, uint32_t n, const char *const *argv,
                    tarn_child *child) {
  enum { ROOM = 2048 };
  int ends[2], status = 0;
  pid_t pid;
  child->text = tarn_new(cx, ROOM);
  if (pipe2(ends, O_CLOEXEC)) tarn_raise(cx, TARN_IO, "%s: %s", name[0], strerror(errno));
  int rc = start(&pid, name, n, argv, ends[1]);
  close(ends[1]);
  if (!rc) drain(ends[0], child->text, ROOM);
  close(ends[0]);
  if (rc) return false;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  child->ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return true;
}

static const char *first_error(tarn_ctx *cx, char *text) {
  char *from = strstr(text, "error: ");
  from = from ? from + strlen("error: ") : text;
  from[strcspn(from, "\n")] = 0;
  return tarn_strdup(cx, *from ? from : "lld failed");
}
/* A wheel of Python brings its own, beside our library; that file is there or not. */
static const char *beside(tarn_ctx *cx, const char *name) {
  Dl_info here;
  const char *end =
      dladdr((void *)(uintptr_t)&tarn_lld, &here) ? strrchr(here.dli_fname, '/') : NULL;
  return end ? tarn_format(cx, "%.*s/%s", (int)(end - here.dli_fname), here.dli_fname, name) : name;
}
/* It is called by the name of what it links: ld.lld, wasm-ld. */
tarn_lld_result tarn_lld(tarn_ctx *cx, const char *const *argv, const char **why) {
  const char *const names[] = {beside(cx, argv[0]), tarn_format(cx, "%s-19", argv[0]),
                               tarn_format(cx, "/usr/lib/llvm-19/bin/%s", argv[0]), argv[0]};
  tarn_child child;
  *why = "lld-19 is not installed";
  if (!tarn_child_run(cx, names, 4, argv, &child)) return TARN_LLD_MISSING;
  if (child.ok) return TARN_LLD_DONE;
  *why = first_error(cx, child.text);
  return TARN_LLD_FAILED;
}
