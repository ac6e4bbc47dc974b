/* See child.h. The child first writes a head, then its numbers. */
#include "tune/child.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct head {
  int status;
  char why[TARN_CHILD_WHY];
} head;

/* ---- what is taken away from it ---- */
static void put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t n = write(fd, text, strlen(text));
  (void)n;
  close(fd);
}
/* A network of its own, without any interface that is up. Who may not make one may in a name space
 * of users of its own, where he stays who he is. */
static bool leave_network(void) {
  char map[64];
  uid_t uid = getuid();
  gid_t gid = getgid();
  if (!unshare(CLONE_NEWNET)) return true;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) return false;
  put("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "%u %u 1", (unsigned)uid, (unsigned)uid);
  put("/proc/self/uid_map", map);
  snprintf(map, sizeof map, "%u %u 1", (unsigned)gid, (unsigned)gid);
  put("/proc/self/gid_map", map);
  return true;
}
static bool become(uid_t uid, gid_t gid) {
  if (geteuid() != 0) return false;
  return !setgroups(0, NULL) && !setgid(gid) && !setuid(uid);
}
static void bound(int what, uint64_t most) {
  struct rlimit r = {most, most};
  if (most) setrlimit(what, &r);
}
static void give_up(tarn_ctx *cx, void *arg) {
  const tarn_limits *l = arg;
  if (l->cores && sched_setaffinity(0, sizeof *l->cores, l->cores))
    tarn_raise(cx, TARN_IO, "the worker's cores: %s", strerror(errno));
  if (l->offline) leave_network();
  if (l->uid && geteuid() == 0 && !become(l->uid, l->gid))
    tarn_raise(cx, TARN_IO, "becoming user %u: %s", (unsigned)l->uid, strerror(errno));
  bound(RLIMIT_AS, l->memory), bound(RLIMIT_CORE, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* ---- the child ---- */
static bool send_all(int to, const void *p, size_t left) {
  const char *at = p;
  while (left) {
    ssize_t n = write(to, at, left);
    if (n <= 0) return false;
    at += n, left -= (size_t)n;
  }
  return true;
}
TARN_NORETURN static void be_child(tarn_child *c, int to, pid_t parent) {
  head h = {0};
  signal(SIGPIPE, SIG_IGN);
  if (c->limits) setpgid(0, 0);
  h.status = c->limits ? tarn_protect(c->cx, give_up, (void *)(uintptr_t)c->limits) : TARN_OK;
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* behind the change of user, which takes it away */
  if (getppid() != parent) _exit(1);
  if (!h.status) h.status = tarn_protect(c->cx, c->work, c->arg);
  if (h.status) snprintf(h.why, sizeof h.why, "%s", tarn_message(c->cx));
  if (send_all(to, &h, sizeof h) && !h.status) send_all(to, c->out, c->n * sizeof *c->out);
  _exit(h.status ? 1 : 0);
}

/* ---- its parent ---- */
void tarn_child_begin(tarn_child *c) {
  int fd[2];
  pid_t me = getpid();
  if (pipe2(fd, O_CLOEXEC)) tarn_raise(c->cx, TARN_IO, "measuring: %s", strerror(errno));
  c->pid = fork();
  if (c->pid < 0) {
    c->pid = 0;
    close(fd[0]), close(fd[1]);
    tarn_raise(c->cx, TARN_IO, "measuring: %s", strerror(errno));
  }
  if (c->pid == 0) close(fd[0]), be_child(c, fd[1], me);
  close(fd[1]);
  if (c->limits) setpgid(c->pid, c->pid); /* here too: it may be killed before it has done so */
  c->from = fd[0];
}
/* 1: something is to be read; 0: nothing until then. */
static int ready(int from, double until) {
  for (;;) {
    double left = fmax(0, until - tarn_now());
    fd_set set;
    FD_ZERO(&set);
    FD_SET(from, &set);
    struct timeval tv = {(time_t)left, (suseconds_t)(1e6 * (left - floor(left)))};
    int n = select(from + 1, &set, NULL, NULL, &tv);
    if (n >= 0 || errno != EINTR) return n > 0;
  }
}
/* Reads n bytes until a moment; false when they do not come. */
static bool receive(int from, void *to, size_t n, double until) {
  char *at = to;
  while (n) {
    if (tarn_now() >= until || !ready(from, until)) return false;
    ssize_t r = read(from, at, n);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) return false;
    at += r, n -= (size_t)r;
  }
  return true;
}
static bool take(tarn_child *c, double until) {
  head h;
  if (!receive(c->from, &h, sizeof h, until)) return false;
  memcpy(c->why, h.why, sizeof c->why);
  c->why[sizeof c->why - 1] = 0;
  return !h.status && receive(c->from, c->out, c->n * sizeof *c->out, until);
}
void tarn_child_end(tarn_child *c) {
  int status = 0;
  if (!c->pid) return;
  close(c->from);
  kill(c->limits ? -c->pid : c->pid, SIGKILL);
  while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
    snprintf(c->why, sizeof c->why, "it asked the system for more than memory, threads and time");
  c->pid = 0;
}
int tarn_child_look(tarn_child *c, double seconds) {
  if (!ready(c->from, tarn_now() + seconds)) return 0;
  return take(c, tarn_now() + 5) ? 1 : -1;
}
bool tarn_child_wait(tarn_child *c, double until) {
  bool ok = take(c, until);
  tarn_child_end(c);
  return ok;
}
