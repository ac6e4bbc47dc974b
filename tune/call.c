/* Measures kernels written by hand. See tarn_measure_call() in tune.h. */
#include "model/model.h"
#include "tune/child.h"
#include "tune/tune.h"
#include <math.h>
#include <string.h>

#define LIMIT 30.0  /* seconds that a function may take in all */
#define ROUND 0.005 /* of one round of calls, */
enum { ROUNDS = 9 };

tarn_record tarn_record_of_call(tarn_ctx *cx, const tarn_written *w, const int64_t *size) {
  tarn_record r = {.threads = 1,
                   .seconds = INFINITY,
                   .kernel_text = tarn_written_text(cx, w, size),
                   .schedule_text = "(schedule call)"};
  r.kernel = tarn_hash_bytes(r.kernel_text, strlen(r.kernel_text), 0);
  r.schedule = tarn_hash_bytes(r.schedule_text, strlen(r.schedule_text), 0);
  return r;
}

/* An operand without gaps, in the declared order. */
static tarn_written_arg operand(tarn_ctx *cx, const tarn_written_port *p, const int64_t *size) {
  int64_t dim[TARN_MAX_DIMS], *stride = TARN_ARRAY(cx, int64_t, p->n + 1), dense = 1;
  for (uint32_t d = 0; d < p->n; d++) dim[d] = p->dim[d] < 0 ? size[-1 - p->dim[d]] : p->dim[d];
  for (uint32_t i = p->n; i-- > 0; dense *= dim[p->order[i]]) stride[p->order[i]] = dense;
  tarn_tensor *t = tarn_tensor_new(cx, p->dtype, p->n, dim);
  for (int64_t i = 0, n = tarn_tensor_count(t); i < n; i++) {
    double v = (double)(i % 7) - 3;
    bool real = tarn_dtype_is_float(p->dtype);
    tarn_tensor_set(t, i, real ? (tarn_value){.d = v / 4} : (tarn_value){.i = i % 2});
  }
  return (tarn_written_arg){p->dtype, p->n, t->dim, stride, t->data};
}

typedef struct calling {
  tarn_written *w;
  const int64_t *size;
  tarn_child *child;
} calling;
static double round_of(tarn_ctx *cx, const calling *c, const tarn_written_arg *arg, uint64_t n) {
  double begin = tarn_now();
  for (uint64_t i = 0; i < n; i++) c->w->run(cx, c->w, arg, &arg[c->w->nin]);
  return (tarn_now() - begin) / (double)n;
}
/* In the child: as many calls a round as take a while. */
static void work(tarn_ctx *cx, void *user) {
  const calling *c = user;
  tarn_written_arg arg[TARN_MAX_OPERANDS + 1];
  uint64_t n = 1;
  for (uint32_t i = 0; i < c->w->nin; i++) arg[i] = operand(cx, &c->w->in[i], c->size);
  arg[c->w->nin] = operand(cx, &c->w->out, c->size);
  double least = round_of(cx, c, arg, n);
  while ((double)n * least < ROUND && n < UINT64_C(1) << 40)
    n *= 2, least = round_of(cx, c, arg, n);
  for (int i = 0; i < ROUNDS; i++) least = fmin(least, round_of(cx, c, arg, n));
  c->child->out[0] = least;
}
double tarn_measure_call(tarn_ctx *cx, tarn_written *w, const int64_t *size, const char **why) {
  double seconds = INFINITY;
  calling c = {w, size, NULL};
  tarn_child child = {.cx = cx, .work = work, .arg = &c, .out = &seconds, .n = 1};
  c.child = &child;
  tarn_written_load(cx, w);
  *why = w->absent;
  if (w->absent) return INFINITY;
  tarn_child_begin(&child);
  bool came = tarn_child_wait(&child, tarn_now() + LIMIT);
  tarn_child_end(&child);
  if (!came || *child.why) {
    *why = *child.why ? tarn_strdup(cx, child.why) : "it crashed, or took too long";
    return INFINITY;
  }
  return seconds > 0 ? seconds : INFINITY;
}
