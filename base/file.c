/* Whole files in and out. */
#include "base/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_job {
  const char *path;
  const char *temp; /* the name to remove when writing fails; NULL when there is none */
  char *text;       /* reading */
  const void *data; /* writing */
  size_t n;
  int fd;
} file_job;

/* A file and a reason; the reason in the C locale, so that messages do not depend on the host
 * program. */
_Noreturn static void refuse(tarn_ctx *cx, const char *path) {
  tarn_raise(cx, TARN_IO, "%s: %s", path, strerror_l(errno, cx->c_locale));
}

static void close_job(void *arg) {
  file_job *job = arg;
  if (job->fd >= 0) close(job->fd);
  if (job->temp) unlink(job->temp);
}

/* ---- reading ---- */

static size_t size_hint(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size : 4096;
}

/* Reads to the end whatever fstat said: pipes and /proc files state no size. */
static void read_all(tarn_ctx *cx, void *arg) {
  file_job *job = arg;
  job->fd = open(job->path, O_RDONLY | O_CLOEXEC);
  if (job->fd < 0) refuse(cx, job->path);
  tarn_defer(cx, close_job, job);
  size_t cap = size_hint(job->fd) + 1;
  job->text = tarn_new_aligned(cx, cap, 1);
  for (;;) {
    ssize_t got = read(job->fd, job->text + job->n, cap - job->n);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(cx, job->path);
    if (got == 0) break;
    job->n += (size_t)got;
    if (job->n < cap) continue;
    char *wider = tarn_new_aligned(cx, 2 * cap, 1);
    memcpy(wider, job->text, job->n);
    job->text = wider;
    cap *= 2;
  }
  job->text[job->n] = 0;
}

char *tarn_read_file(tarn_ctx *cx, const char *path, size_t *n) {
  file_job job = {.path = path, .fd = -1};
  tarn_status st = tarn_protect(cx, read_all, &job);
  if (st != TARN_OK) tarn_reraise(cx, st);
  if (n) *n = job.n;
  return job.text;
}

/* ---- writing ---- */

static void put_all(tarn_ctx *cx, file_job *job) {
  const char *p = job->data;
  for (size_t left = job->n; left;) {
    ssize_t put = write(job->fd, p, left);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse(cx, job->path);
    p += put;
    left -= (size_t)put;
  }
  int fd = job->fd;
  job->fd = -1;
  if (close(fd) != 0) refuse(cx, job->path);
}

static int open_temp(tarn_ctx *cx, file_job *job) {
  for (unsigned k = 0; k < 1000; k++) {
    const char *temp = tarn_format(cx, "%s.%ld.%u.tmp", job->path, (long)getpid(), k);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) job->temp = temp;
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/* A device or a pipe cannot be replaced by a renamed file: those are written in place. */
static void write_all(tarn_ctx *cx, void *arg) {
  file_job *job = arg;
  struct stat st;
  bool special = stat(job->path, &st) == 0 && !S_ISREG(st.st_mode);
  job->fd = special ? open(job->path, O_WRONLY | O_CLOEXEC) : open_temp(cx, job);
  if (job->fd < 0) refuse(cx, job->path);
  tarn_defer(cx, close_job, job);
  put_all(cx, job);
  if (special) return;
  if (rename(job->temp, job->path) != 0) refuse(cx, job->path);
  job->temp = NULL;
}

void tarn_write_file(tarn_ctx *cx, const char *path, const void *p, size_t n) {
  file_job job = {.path = path, .data = p, .n = n, .fd = -1};
  tarn_status st = tarn_protect(cx, write_all, &job);
  if (st != TARN_OK) tarn_reraise(cx, st);
}
