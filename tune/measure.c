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
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n && values; i++) {
    seed = seed * 1664525u + 1013904223u; /* Numerical Recipes, 2nd edition, section 7.1 */
    tarn_value v = {0};
    if (p->dtype == TARN_F32) {
      ((float *)t->data)[i] = (float)(seed >> 8) * 0x1p-24f;
      continue;
    }
    if (tarn_dtype_is_float(p->dtype)) v.d = (double)(seed >> 8) * 0x1p-24;
    else v.i = seed >> 31;
    tarn_tensor_set(t, i, v);
  }
  return t;
}
#define LEAST_ROUNDS 4
#define ENOUGH 0.02 /* seconds of one trial after which it is not run again beyond its second round */
/* Rounds over all trials; in each a trial warms its buffers, as the price assumes them, and then runs up to three times. */
static void time_all(tarn_ctx *cx, tarn_loaded *m, uint32_t n, uint32_t threads, double *seconds) {
  const tarn_port *ip, *op;
  uint32_t nin = tarn_loaded_ports(m, false, &ip), nout = tarn_loaded_ports(m, true, &op);
  const tarn_tensor **in = TARN_ARRAY(cx, const tarn_tensor *, nin + 1);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, nout + 1);
  double *spent = TARN_ARRAY(cx, double, n);
  for (uint32_t i = 0; i < nin; i++) in[i] = filled(cx, &ip[i], true);
  for (uint32_t i = 0; i < nout; i++) out[i] = filled(cx, &op[i], false);
  for (uint32_t i = 0; i < n; i++) seconds[i] = INFINITY;
  double begin = now();
  for (uint32_t round = 0; round < 200 && (round < LEAST_ROUNDS || now() - begin < 0.006 * n); round++)
    for (uint32_t i = 0; i < n; i++) {
      if (round >= 2 && spent[i] > ENOUGH) continue;
      spent[i] += tarn_loaded_kernel(m, in, out, threads, i);
      for (int again = 0; again < 3 && (again == 0 || spent[i] < ENOUGH); again++) {
        double t = tarn_loaded_kernel(m, in, out, threads, i);
        spent[i] += t;
        if (t < seconds[i]) seconds[i] = t;
      }
    }
}

/* ---- the children ---- */
typedef struct task {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_trial *t;
  uint32_t n, threads;
  char dir[32];
  double *seconds;
  pid_t pid; /* of the child at work; 0: none */
  int from;  /* what it writes */
} task;
static void build_here(tarn_ctx *cx, void *arg) {
  (void)cx;
  task *k = arg;
  tarn_kprog *p = program_of(k->L, k->hw, k->t, k->n);
  tarn_lower_options lo = {.emit = TARN_EMIT_SO, .dir = k->dir, .name = "model", .contract = true, .opt = 3};
  tarn_lower_cpu(p, tarn_plan_make(p, 64), &lo);
  k->seconds[0] = 0;
}
static void time_here(tarn_ctx *cx, void *arg) {
  task *k = arg;
  time_all(cx, tarn_load(cx, k->dir), k->n, k->threads, k->seconds);
}
static void child(task *k, tarn_fn *work, uint32_t n, int to) {
  signal(SIGPIPE, SIG_IGN);
  tarn_status st = tarn_protect(tarn_lang_ctx(k->L), work, k);
  const char *at = (const char *)k->seconds;
  for (size_t left = st == TARN_OK ? n * sizeof(double) : 0; left;) {
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
/* Starts a child that writes n numbers when its work is done. */
static void begin(task *k, tarn_fn *work, uint32_t n) {
  int fd[2];
  if (pipe(fd)) tarn_raise(tarn_lang_ctx(k->L), TARN_IO, "measuring: %s", strerror(errno));
  k->pid = fork();
  if (k->pid < 0) {
    k->pid = 0;
    close(fd[0]), close(fd[1]);
    tarn_raise(tarn_lang_ctx(k->L), TARN_IO, "measuring: %s", strerror(errno));
  }
  if (k->pid == 0) close(fd[0]), child(k, work, n, fd[1]);
  close(fd[1]);
  k->from = fd[0];
}
/* Ends it; false, and no time known, when it has not done its work until then. */
static bool end(task *k, uint32_t n, double until) {
  bool ok = receive(k->from, (char *)k->seconds, n * sizeof(double), until);
  close(k->from);
  if (!ok) kill(k->pid, SIGKILL);
  while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR) continue;
  k->pid = 0;
  for (uint32_t i = 0; i < k->n && !ok; i++) k->seconds[i] = INFINITY;
  return ok;
}

/* ---- several batches: built side by side, timed one after the other ---- */
#define MOST_BUILDERS 64
typedef struct batches { uint32_t n; task k[MOST_BUILDERS]; } batches;
static void clean_up(void *arg) {
  batches *b = arg;
  for (uint32_t i = 0; i < b->n; i++) {
    if (b->k[i].pid) kill(b->k[i].pid, SIGKILL), end(&b->k[i], 1, -INFINITY);
    if (b->k[i].dir[0]) nftw(b->k[i].dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  }
}
static void measure_group(tarn_ctx *cx, void *arg) {
  batches *b = *(batches **)arg;
  double limit = *((double **)arg)[1];
  bool built[MOST_BUILDERS];
  tarn_defer(cx, clean_up, b);
  for (uint32_t i = 0; i < b->n; i++) {
    strcpy(b->k[i].dir, "/tmp/tarn-measure-XXXXXX");
    if (!mkdtemp(b->k[i].dir)) {
      b->k[i].dir[0] = 0;
      tarn_raise(cx, TARN_IO, "/tmp: %s", strerror(errno));
    }
    begin(&b->k[i], build_here, 1);
  }
  double until = now() + limit;
  for (uint32_t i = 0; i < b->n; i++) built[i] = end(&b->k[i], 1, until);
  for (uint32_t i = 0; i < b->n; i++)
    if (built[i]) begin(&b->k[i], time_here, b->k[i].n), end(&b->k[i], b->k[i].n, now() + limit);
}

#define BATCH 24 /* kernels in one program */
void tarn_measure(tarn_lang *L, const tarn_hw *hw, const tarn_trial *t, uint32_t n, uint32_t threads, double limit,
                  double *seconds) {
  uint32_t side = hw->units < 1 ? 1 : hw->units < MOST_BUILDERS ? hw->units : MOST_BUILDERS;
  for (uint32_t at = 0; at < n;) {
    batches b = {0};
    for (; b.n < side && at < n; b.n++) {
      uint32_t m = n - at < BATCH ? n - at : BATCH;
      b.k[b.n] = (task){.L = L, .hw = hw, .t = t + at, .n = m, .threads = threads, .seconds = seconds + at};
      at += m;
    }
    void *arg[] = {&b, &limit};
    tarn_status st = tarn_protect(tarn_lang_ctx(L), measure_group, arg);
    if (st != TARN_OK) tarn_reraise(tarn_lang_ctx(L), st);
  }
}
