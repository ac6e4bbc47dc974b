/* Measuring scheduled kernels: a program that is nothing but them, compiled and run in a child process. */
#include "lower/lower.h"
#include "tune/tune.h"
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the program ---- */
static uint32_t add_buffer(tarn_ctx *cx, tarn_kprog *p, tarn_buf_kind kind, tarn_dtype type, const tarn_layout *l) {
  int64_t elems = tarn_layout_elems(l) + l->offset;
  tarn_buffer *b = &p->buf[p->nbuf];
  *b = (tarn_buffer){.kind = kind, .dtype = type, .parent = TARN_NONE, .term = TARN_NONE,
                     .layout = tarn_layout_row_major(1, &elems), .name = tarn_format(cx, "b%u", p->nbuf)};
  if (kind == TARN_BUF_INPUT) p->in[p->nin++] = p->nbuf;
  else p->out[p->nout++] = p->nbuf;
  return p->nbuf++;
}
static tarn_kprog *program_of(tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  tarn_kprog *p = TARN_NEW(cx, tarn_kprog);
  uint32_t most = n * (TARN_MAX_DIMS * 4 + TARN_MAX_RESULTS);
  *p = (tarn_kprog){.L = L, .hw = hw, .nker = n, .ker = TARN_ARRAY(cx, tarn_kernel, n)};
  p->buf = TARN_ARRAY(cx, tarn_buffer, most), p->in = TARN_ARRAY(cx, uint32_t, most), p->out = TARN_ARRAY(cx, uint32_t, most);
  for (uint32_t i = 0; i < n; i++) {
    tarn_ksig *k = tarn_copy(cx, t[i].sig, sizeof *k);
    const tarn_schedule *s = t[i].sched;
    tarn_ksig_block(L, k, &s);
    uint32_t *in = TARN_ARRAY(cx, uint32_t, k->nin + 1), *out = TARN_ARRAY(cx, uint32_t, k->nout);
    for (uint32_t j = 0; j < k->nin; j++) in[j] = add_buffer(cx, p, TARN_BUF_INPUT, k->in_type[j], &k->in[j]);
    for (uint32_t j = 0; j < k->nout; j++) out[j] = add_buffer(cx, p, TARN_BUF_OUTPUT, k->out_type[j], &k->out[j]);
    p->ker[i] = (tarn_kernel){.name = tarn_format(cx, "k%u", i), .kind = TARN_K_NEST, .nest = k->nest, .nin = k->nin,
                              .nout = k->nout, .in = in, .out = out, .in_layout = k->in, .out_layout = k->out, .sched = s,
                              .term = TARN_NONE};
  }
  return p;
}
static tarn_tensor *filled(tarn_ctx *cx, const tarn_port *p, bool values) {
  tarn_tensor *t = tarn_tensor_new(cx, p->dtype, p->n, p->dim);
  uint32_t seed = 1;
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++) {
    seed = seed * 1664525u + 1013904223u; /* Numerical Recipes, 2nd edition, section 7.1 */
    tarn_value v = {0};
    if (tarn_dtype_is_float(p->dtype)) v.d = values ? (double)(seed >> 8) * 0x1p-24 : 0;
    else v.i = values ? seed >> 31 : 0;
    tarn_tensor_set(t, i, v);
  }
  return t;
}
/* Rounds over all trials; in each a trial warms its buffers, as the price assumes them, and then runs three times. */
static void time_all(tarn_ctx *cx, tarn_loaded *m, uint32_t n, uint32_t threads, double *seconds) {
  const tarn_port *ip, *op;
  uint32_t nin = tarn_loaded_ports(m, false, &ip), nout = tarn_loaded_ports(m, true, &op);
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, nin + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, nout + 1);
  for (uint32_t i = 0; i < nin; i++) in[i] = filled(cx, &ip[i], true);
  for (uint32_t i = 0; i < nout; i++) out[i] = filled(cx, &op[i], false);
  for (uint32_t i = 0; i < n; i++) seconds[i] = INFINITY;
  double begin = now();
  for (uint32_t round = 0; round < 200 && (round < 4 || now() - begin < 0.006 * n); round++)
    for (uint32_t i = 0; i < n; i++) {
      tarn_loaded_kernel(m, in, out, threads, i);
      for (int again = 0; again < 3; again++) {
        double t = tarn_loaded_kernel(m, in, out, threads, i);
        if (t < seconds[i]) seconds[i] = t;
      }
    }
}

/* ---- the child ---- */
typedef struct task {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_trial *t;
  uint32_t n, threads;
  const char *dir;
  double *seconds;
} task;
static void measure_here(tarn_ctx *cx, void *arg) {
  task *k = arg;
  tarn_kprog *p = program_of(k->L, k->hw, k->t, k->n);
  tarn_lower_options lo = {.emit = TARN_EMIT_SO, .dir = k->dir, .name = "model", .contract = true, .opt = 3};
  tarn_lower_cpu(p, tarn_plan_make(p, 64), &lo);
  time_all(cx, tarn_load(cx, k->dir), k->n, k->threads, k->seconds);
}
static void child(task *k, int to) {
  signal(SIGPIPE, SIG_IGN);
  tarn_status st = tarn_protect(tarn_lang_ctx(k->L), measure_here, k);
  const char *at = (const char *)k->seconds;
  for (size_t left = st == TARN_OK ? k->n * sizeof(double) : 0; left;) {
    ssize_t w = write(to, at, left);
    if (w <= 0) break;
    at += w, left -= (size_t)w;
  }
  _exit(st == TARN_OK ? 0 : 1);
}
static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f) {
  (void)st, (void)flag, (void)f;
  return remove(path);
}
/* Reads n bytes until a moment; false when they do not come. */
static bool receive(int from, char *to, size_t n, double until) {
  while (n) {
    double left = until - now();
    if (left <= 0) return false;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(from, &set);
    struct timeval tv = {(time_t)left, (suseconds_t)(1e6 * (left - floor(left)))};
    int ready = select(from + 1, &set, NULL, NULL, &tv);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    ssize_t r = read(from, to, n);
    if (r <= 0) return false;
    to += r, n -= (size_t)r;
  }
  return true;
}
static void measure_apart(task *k, double limit) {
  tarn_ctx *cx = tarn_lang_ctx(k->L);
  int fd[2];
  if (pipe(fd)) tarn_raise(cx, TARN_IO, "measuring: %s", strerror(errno));
  pid_t pid = fork();
  if (pid < 0) {
    close(fd[0]), close(fd[1]);
    tarn_raise(cx, TARN_IO, "measuring: %s", strerror(errno));
  }
  if (pid == 0) close(fd[0]), child(k, fd[1]);
  close(fd[1]);
  bool ok = receive(fd[0], (char *)k->seconds, k->n * sizeof(double), now() + limit);
  close(fd[0]);
  if (!ok) kill(pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
  for (uint32_t i = 0; i < k->n && !ok; i++) k->seconds[i] = INFINITY;
}

void tarn_measure(tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n, uint32_t threads, double limit,
                  double *seconds) {
  char dir[] = "/tmp/tarn-measure-XXXXXX";
  if (!n) return;
  if (!mkdtemp(dir)) tarn_raise(tarn_lang_ctx(L), TARN_IO, "%s: %s", dir, strerror(errno));
  task k = {L, hw, t, n, threads, dir, seconds};
  measure_apart(&k, limit);
  nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
