/* RNN, GRU and LSTM, one time step after the other. Source: ONNX's equations; gates in the order
 * iofc (LSTM), zrh (GRU); biases Wb then Rb. */
#include "runtime/ref/ref_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cell {
  tarn_ref_call *c;
  const tarn_ref_tensor *x, *w, *r, *b, *len, *h0, *c0, *p;
  int64_t seq, batch, in, hidden, dirs, gates;
  bool layout, linear_first, couple;
  double clip;
  char act[6][24];
  double alpha[6], beta[6];
  double *h, *s, *z, *zr; /* state, cell state, gate sums of input and (GRU) of the recurrence */
  double *u;              /* the input of this step */
} cell;

/* ---------------------------------------------------------------- activations */

static const struct {
  const char *name;
  double alpha, beta;
} activations[] = {{"Relu", 0, 0},         {"Tanh", 0, 0},
                   {"Sigmoid", 0, 0},      {"Affine", 1, 0},
                   {"LeakyRelu", 0.01, 0}, {"ThresholdedRelu", 1, 0},
                   {"ScaledTanh", 1, 1},   {"HardSigmoid", 0.2, 0.5},
                   {"Elu", 1, 0},          {"Softsign", 0, 0},
                   {"Softplus", 0, 0}};

static double activate(const cell *e, int which, double x) {
  const char *f = e->act[which];
  double a = e->alpha[which], b = e->beta[which];
  if (strcmp(f, "Tanh") == 0) return tanh(x);
  if (strcmp(f, "Sigmoid") == 0) return 1 / (1 + exp(-x));
  if (strcmp(f, "Relu") == 0) return x > 0 ? x : 0;
  if (strcmp(f, "Affine") == 0) return a * x + b;
  if (strcmp(f, "LeakyRelu") == 0) return x < 0 ? a * x : x;
  if (strcmp(f, "ThresholdedRelu") == 0) return x > a ? x : 0;
  if (strcmp(f, "ScaledTanh") == 0) return a * tanh(b * x);
  if (strcmp(f, "HardSigmoid") == 0) return fmin(fmax(a * x + b, 0), 1);
  if (strcmp(f, "Elu") == 0) return x < 0 ? a * (exp(x) - 1) : x;
  if (strcmp(f, "Softsign") == 0) return x / (1 + fabs(x));
  return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
}

static int kind_of(const char *name) {
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
    if (strcmp(activations[i].name, name) == 0) return (int)i;
  return -1;
}

/* The names joined by commas; without the attribute the operator's own, once per direction. */
static int read_activations(cell *e, const char *usual, int per) {
  const char *s = ref_str(e->c, "activations", usual);
  const tarn_ref_attr *alpha = ref_attr(e->c, "activation_alpha"),
                      *beta = ref_attr(e->c, "activation_beta");
  int total = per * (int)e->dirs;
  for (int k = 0; k < total; k++) {
    size_t n = strcspn(s, ",");
    if (n == 0 || n >= sizeof e->act[k])
      return ref_fail(e->c, "an activation is missing or unknown");
    memcpy(e->act[k], s, n);
    e->act[k][n] = 0;
    int kind = kind_of(e->act[k]);
    if (kind < 0) return ref_fail(e->c, "an activation is missing or unknown");
    e->alpha[k] =
        alpha && (uint32_t)k < alpha->n && alpha->rs ? alpha->rs[k] : activations[kind].alpha;
    e->beta[k] = beta && (uint32_t)k < beta->n && beta->rs ? beta->rs[k] : activations[kind].beta;
    s += n;
    if (*s == ',') s++;
    if (!*s && k + 1 < total) s = ref_attr(e->c, "activations") ? s : usual;
  }
  return 0;
}

/* ---------------------------------------------------------------- sums */

static double clipped(const cell *e, double v) {
  return e->clip > 0 ? fmin(fmax(v, -e->clip), e->clip) : v;
}

/* Row · vector; float in four sums side by side, which need not wait for each other. */
static double dot_f32(const float *w, const double *v, int64_t n) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    s0 += (double)w[k] * v[k], s1 += (double)w[k + 1] * v[k + 1];
    s2 += (double)w[k + 2] * v[k + 2], s3 += (double)w[k + 3] * v[k + 3];
  }
  for (; k < n; k++) s0 += (double)w[k] * v[k];
  return (s0 + s1) + (s2 + s3);
}

/* Weights × vector for row `row` of direction d. */
static double dot(const tarn_ref_tensor *w, int64_t d, int64_t row, int64_t n, const double *v) {
  double sum = 0;
  int64_t base = (d * w->dim[1] + row) * n;
  if (w->dtype == TARN_REF_F32) return dot_f32((const float *)w->data + base, v, n);
  for (int64_t k = 0; k < n; k++) sum += ref_get(w, base + k) * v[k];
  return sum;
}

static double bias(const cell *e, int64_t d, int64_t row) {
  return e->b ? ref_get(e->b, d * 2 * e->gates * e->hidden + row) : 0;
}

static int64_t input_at(const cell *e, int64_t t, int64_t b) {
  return (e->layout ? b * e->seq + t : t * e->batch + b) * e->in;
}

static void gate_sums(cell *e, int64_t d, int64_t t, int64_t b) {
  for (int64_t k = 0, at = input_at(e, t, b); k < e->in; k++) e->u[k] = ref_get(e->x, at + k);
  for (int64_t g = 0; g < e->gates * e->hidden; g++) {
    e->z[g] = dot(e->w, d, g, e->in, e->u) + bias(e, d, g);
    e->zr[g] = dot(e->r, d, g, e->hidden, e->h) + bias(e, d, e->gates * e->hidden + g);
  }
}

static double peephole(const cell *e, int64_t d, int64_t g, int64_t i, double state) {
  return e->p ? ref_get(e->p, (d * 3 + g) * e->hidden + i) * state : 0;
}

/* ---------------------------------------------------------------- one step: e->h (and e->s) become
 * the next */

static void step_rnn(cell *e, int64_t d) {
  for (int64_t i = 0; i < e->hidden; i++)
    e->h[i] = activate(e, (int)d, clipped(e, e->z[i] + e->zr[i]));
}

static void step_lstm(cell *e, int64_t d) {
  int64_t n = e->hidden;
  int f = (int)d * 3;
  for (int64_t i = 0; i < n; i++) {
    double s = e->s[i];
    double in = activate(e, f, clipped(e, e->z[i] + e->zr[i] + peephole(e, d, 0, i, s)));
    double forget =
        activate(e, f, clipped(e, e->z[2 * n + i] + e->zr[2 * n + i] + peephole(e, d, 2, i, s)));
    if (e->couple) forget = 1 - in;
    double next =
        forget * s + in * activate(e, f + 1, clipped(e, e->z[3 * n + i] + e->zr[3 * n + i]));
    double out =
        activate(e, f, clipped(e, e->z[n + i] + e->zr[n + i] + peephole(e, d, 1, i, next)));
    e->s[i] = next;
    e->h[i] = out * activate(e, f + 2, next);
  }
}

static void step_gru(cell *e, int64_t d) {
  int64_t n = e->hidden;
  int f = (int)d * 2;
  double *next = e->s; /* unused by GRU otherwise */
  for (int64_t i = 0; i < n; i++)
    e->zr[n + i] = activate(e, f, clipped(e, e->z[n + i] + e->zr[n + i])); /* reset */
  for (int64_t i = 0; i < n; i++) next[i] = e->zr[n + i] * e->h[i];
  for (int64_t i = 0; i < n; i++) {
    double r = e->zr[n + i], rb = bias(e, d, 3 * n + 2 * n + i);
    double update = activate(e, f, clipped(e, e->z[i] + e->zr[i]));
    double inner = e->linear_first ? r * e->zr[2 * n + i] : dot(e->r, d, 2 * n + i, n, next) + rb;
    e->zr[i] = update;
    e->z[i] = activate(e, f + 1, clipped(e, e->z[2 * n + i] + inner));
  }
  for (int64_t i = 0; i < n; i++) e->h[i] = (1 - e->zr[i]) * e->z[i] + e->zr[i] * e->h[i];
}

/* ---------------------------------------------------------------- the sequence */

static int64_t state_at(const cell *e, int64_t d, int64_t b) {
  return (e->layout ? b * e->dirs + d : d * e->batch + b) * e->hidden;
}

static void put(const cell *e, uint32_t k, int64_t at, const double *v) {
  if (k < e->c->nout && e->c->out[k].data)
    for (int64_t i = 0; i < e->hidden; i++) ref_set(&e->c->out[k], at + i, v ? v[i] : 0);
}

static int64_t output_at(const cell *e, int64_t t, int64_t d, int64_t b) {
  return e->layout ? ((b * e->seq + t) * e->dirs + d) * e->hidden
                   : ((t * e->dirs + d) * e->batch + b) * e->hidden;
}

static int run_one(cell *e, int64_t d, int64_t b, void (*step)(cell *, int64_t)) {
  int64_t len = e->len ? ref_get_int(e->len, b) : e->seq;
  bool backward = d == 1 || strcmp(ref_str(e->c, "direction", "forward"), "reverse") == 0;
  if (len < 0 || len > e->seq) return ref_outside(e->c, "a sequence length");
  for (int64_t i = 0; i < e->hidden; i++) {
    e->h[i] = e->h0 ? ref_get(e->h0, state_at(e, d, b) + i) : 0;
    e->s[i] = e->c0 ? ref_get(e->c0, state_at(e, d, b) + i) : 0;
  }
  for (int64_t k = 0; k < e->seq; k++) {
    int64_t t = backward && k < len ? len - 1 - k : k;
    if (k >= len) {
      put(e, 0, output_at(e, t, d, b), NULL);
      continue;
    }
    gate_sums(e, d, t, b);
    step(e, d);
    put(e, 0, output_at(e, t, d, b), e->h);
  }
  put(e, 1, state_at(e, d, b), e->h);
  put(e, 2, state_at(e, d, b), e->s);
  return 0;
}

static bool fits(const tarn_ref_tensor *t, int64_t count) { return !t || ref_count(t) == count; }

static int run(tarn_ref_call *c, int64_t gates, const char *usual, int per,
               void (*step)(cell *, int64_t)) {
  cell e = {.c = c,
            .x = &c->in[0],
            .w = &c->in[1],
            .r = &c->in[2],
            .b = ref_in(c, 3),
            .len = ref_in(c, 4),
            .h0 = ref_in(c, 5),
            .c0 = gates == 4 ? ref_in(c, 6) : NULL,
            .p = gates == 4 ? ref_in(c, 7) : NULL};
  e.gates = gates;
  e.layout = ref_int(c, "layout", 0);
  e.linear_first = ref_int(c, "linear_before_reset", 0);
  e.couple = ref_int(c, "input_forget", 0);
  e.clip = ref_real(c, "clip", 0);
  e.seq = e.x->dim[e.layout ? 1 : 0], e.batch = e.x->dim[e.layout ? 0 : 1], e.in = e.x->dim[2];
  e.dirs = e.w->dim[0], e.hidden = e.r->dim[2];
  int64_t states = e.dirs * e.batch * e.hidden;
  if (!fits(e.b, e.dirs * 2 * gates * e.hidden) || !fits(e.len, e.batch) || !fits(e.h0, states) ||
      !fits(e.c0, states) || !fits(e.p, e.dirs * 3 * e.hidden))
    return ref_fail(c, "an operand has the wrong shape");
  if (read_activations(&e, usual, per)) return 1;
  size_t n = (size_t)e.hidden + 1;
  e.h = malloc(((2 + 2 * (size_t)gates) * n + (size_t)e.in) * sizeof *e.h);
  if (!e.h) return ref_fail(c, "out of memory");
  e.s = e.h + n, e.z = e.s + n, e.zr = e.z + (size_t)gates * n, e.u = e.zr + (size_t)gates * n;
  int bad = 0;
  for (int64_t d = 0; d < e.dirs && !bad; d++)
    for (int64_t b = 0; b < e.batch && !bad; b++) bad = run_one(&e, d, b, step);
  free(e.h);
  return bad;
}

int ref_rnn(tarn_ref_call *c) { return run(c, 1, "Tanh", 1, step_rnn); }
int ref_gru(tarn_ref_call *c) { return run(c, 3, "Sigmoid,Tanh", 2, step_gru); }
int ref_lstm(tarn_ref_call *c) { return run(c, 4, "Sigmoid,Tanh,Tanh", 3, step_lstm); }
