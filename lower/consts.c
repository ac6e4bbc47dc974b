/* Writes constants as the kernels read them: computed on demand, laid out, padded with zeros. They
 * go straight to the file, one after the other, so a large model's weights are never held twice. */
#include "lower/internal.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool row_major(const tarn_layout *l) {
  tarn_layout r = tarn_layout_row_major(l->n, l->dim);
  return tarn_layout_equal(&r, l);
}

/* ---- to the file ----
 * A thread of its own writes what was laid out, while the next constant is computed. One is laid
 * out, one written at a time. */
struct low_sink {
  tarn_ctx *cx;
  int fd;
  const char *path;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t turn;
  char *data; /* malloc()'s; NULL: nothing to write */
  size_t n;
  off_t at;
  int error; /* errno of the first write that failed */
  bool end, joined;
};
static int write_at(int fd, const char *p, size_t n, off_t at) {
  while (n) {
    ssize_t w = pwrite(fd, p, n < 1u << 30 ? n : 1u << 30, at);
    if (w < 0 && errno == EINTR) continue;
    if (w < 0) return errno;
    p += w, n -= (size_t)w, at += w;
  }
  return 0;
}
static void *writer(void *arg) {
  low_sink *s = arg;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->data && !s->end) pthread_cond_wait(&s->turn, &s->lock);
    if (!s->data) break;
    bool ok = !s->error;
    pthread_mutex_unlock(&s->lock);
    int e = ok ? write_at(s->fd, s->data, s->n, s->at) : 0;
    pthread_mutex_lock(&s->lock);
    free(s->data);
    s->data = NULL, s->error = s->error ? s->error : e;
    pthread_cond_broadcast(&s->turn);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}
static void join(void *arg) {
  low_sink *s = arg;
  if (s->joined) return;
  pthread_mutex_lock(&s->lock);
  s->end = true;
  pthread_cond_broadcast(&s->turn);
  pthread_mutex_unlock(&s->lock);
  pthread_join(s->thread, NULL);
  pthread_mutex_destroy(&s->lock), pthread_cond_destroy(&s->turn);
  s->joined = true;
}
low_sink *low_sink_new(tarn_ctx *cx, int fd, const char *path) {
  low_sink *s = TARN_NEW(cx, low_sink);
  *s = (low_sink){.cx = cx, .fd = fd, .path = path};
  pthread_mutex_init(&s->lock, NULL), pthread_cond_init(&s->turn, NULL);
  if (pthread_create(&s->thread, NULL, writer, s))
    tarn_raise(cx, TARN_MEMORY, "no thread to write %s", path);
  tarn_defer(cx, join, s);
  return s;
}
static void check(const low_sink *s, int error) {
  if (error) tarn_raise(s->cx, TARN_IO, "%s: %s", s->path, strerror(error));
}
void low_sink_end(low_sink *s) {
  join(s);
  check(s, s->error);
}
/* `data` is the sink's from here on. */
static void hand_over(low_sink *s, char *data, size_t n, off_t at) {
  pthread_mutex_lock(&s->lock);
  while (s->data) pthread_cond_wait(&s->turn, &s->lock);
  s->data = data, s->n = n, s->at = at;
  int error = s->error;
  pthread_cond_broadcast(&s->turn);
  pthread_mutex_unlock(&s->lock);
  check(s, error);
}

void low_const_write(const tarn_kprog *p, uint32_t i, low_sink *s, off_t at) {
  tarn_ctx *cx = tarn_lang_ctx(p->L);
  const tarn_buffer *b = &p->buf[i];
  tarn_mark before = tarn_arena_mark(cx);
  const tarn_tensor *t = tarn_plan_const_value(p, b);
  size_t bytes = (size_t)tarn_buffer_bytes(b);
  int64_t count = 1;
  for (uint32_t d = 0; d < b->layout.n; d++) count *= b->layout.dim[d];
  if (t->dtype != b->dtype || tarn_tensor_count(t) != count)
    tarn_raise(cx, TARN_INTERNAL, "lower: constant %u is of another type", i);
  if (row_major(&b->layout)) check(s, write_at(s->fd, t->data, bytes, at));
  else if (bytes) {
    char *laid = calloc(bytes, 1);
    if (!laid) tarn_raise(cx, TARN_MEMORY, "lower: no memory for a constant of %zu bytes", bytes);
    tarn_plan_const_lay_out(&b->layout, t, laid);
    hand_over(s, laid, bytes, at);
  }
  tarn_drop(cx, t->data, before);
}
