/* The reference interpreter: sums of products.
 *
 * Where one factor (the scalar one) does not depend on the innermost lane dims, and the other (the
 * vector one) not on the dim before them, a group of rows is computed at once: per reduction step
 * the vector factor is fetched once for a run and added, times each row's scalar, to that row's
 * sums.  Each sum still takes its products one after the other, each product and each sum rounded:
 * the same operations as the general path.  A noisy run draws a direction of rounding for every row
 * and step. */
#include "access/eval.h"

#if defined(__GNUC__) /* so that no arithmetic moves past a change of the rounding direction */
#define APART __attribute__((noinline))
#else
#define APART
#endif

#define GROUP    8  /* rows at once */
#define SHORTEST 16 /* a shorter run is better served by the general path */

typedef struct dot {
  tarn_ev *e;
  tarn_evstage *s;
  tarn_evread *x, *w; /* vector and scalar factor */
  uint32_t tail;      /* the first of the innermost dims */
  int64_t length;     /* their size */
  int64_t
      rows; /* rows that share the vector factor come in aligned groups of so many; 1: none do */
  int64_t base[GROUP]; /* per row: number of the scalar factor's first element */
} dot;

static bool suits(dot *d, tarn_evread *x, tarn_evread *w, uint32_t dmin) {
  const tarn_evloops *l = &d->s->loops;
  uint32_t used = tarn_evread_dims(w), t = l->nlane;
  int64_t length = 1;
  if (x->deep || w->mixed || w->nguard) return false;
  while (t > dmin && !(used >> (t - 1) & 1)) length *= l->ext[--t];
  if (length < SHORTEST || length <= d->length) return false;
  *d = (dot){.e = d->e, .s = d->s, .x = x, .w = w, .tail = t, .length = length, .rows = 1};
  while (t > dmin && l->ext[t - 1] == 1) t--;
  if (t > dmin && !(tarn_evread_dims(x) >> (t - 1) & 1)) d->rows = l->ext[t - 1];
  return true;
}

/* The vector factor at a reduction step: in place, or gathered into buf. */
#define FETCH(NAME, T, FILL)                                                                       \
  static const T *NAME(const tarn_evread *r, uint32_t step, uint32_t n, T *buf) {                  \
    const T *p = r->data, fill = (T)r->fill.FILL;                                                  \
    const int64_t *lane = r->lane;                                                                 \
    int64_t k = r->red[step];                                                                      \
    if (r->mixed) {                                                                                \
      int64_t at[TARN_EV_LANES];                                                                   \
      bool ok[TARN_EV_LANES];                                                                      \
      tarn_evread_where(r, step, n, at, ok);                                                       \
      for (uint32_t v = 0; v < n; v++) buf[v] = ok[v] ? p[at[v]] : fill;                           \
      return buf;                                                                                  \
    }                                                                                              \
    switch (tarn_evread_inside(r, step)) {                                                         \
    case TARN_EV_NONE:                                                                             \
      for (uint32_t v = 0; v < n; v++) buf[v] = fill;                                              \
      break;                                                                                       \
    case TARN_EV_SOME:                                                                             \
      for (uint32_t v = 0; v < n; v++)                                                             \
        buf[v] = tarn_evread_ok(r, step, v) ? p[lane[v] + k] : fill;                               \
      break;                                                                                       \
    case TARN_EV_ALL:                                                                              \
      if (r->dense) return p + (lane[0] + k);                                                      \
      for (uint32_t v = 0; v < n; v++) buf[v] = p[lane[v] + k];                                    \
    }                                                                                              \
    return buf;                                                                                    \
  }
FETCH(fetch_f32, float, d)
FETCH(fetch_i32, int32_t, i)

/* ---------------------------------------------------------------- f32 */
static APART void add_f32(float *restrict sum, const float *restrict x, float w, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) sum[i] += w * x[i];
}

static void steps_f32(dot *d, float *sum, uint32_t count, uint32_t group, uint32_t n) {
  const float *w = d->w->data;
  float buf[TARN_EV_LANES];
  for (uint32_t k = 0; k < count; k++) {
    const float *x = fetch_f32(d->x, k, n, buf);
    for (uint32_t g = 0; g < group; g++) {
      float by = w[d->base[g] + d->w->red[k]] * (float)tarn_ev_factor(d->e);
      tarn_ev_direct(d->e);
      add_f32(sum + (size_t)g * TARN_EV_LANES, x, by, n);
    }
  }
}

/* ---------------------------------------------------------------- f64 */
static APART void add_f64(double *restrict sum, const tarn_value *restrict x, double w,
                          uint32_t n) {
  for (uint32_t i = 0; i < n; i++) sum[i] += w * x[i].d;
}

static void steps_f64(dot *d, double *sum, uint32_t count, uint32_t group, uint32_t n) {
  tarn_value x[TARN_EV_LANES];
  for (uint32_t k = 0; k < count; k++) {
    tarn_evread_load(d->x, k, n, x);
    for (uint32_t g = 0; g < group; g++) {
      double w = tarn_data_get(d->w->data, d->w->store, d->base[g] + d->w->red[k]).d *
                 tarn_ev_factor(d->e);
      tarn_ev_direct(d->e);
      add_f64(sum + (size_t)g * TARN_EV_LANES, x, w, n);
    }
  }
}

/* ---------------------------------------------------------------- i32 */
/* Modulo 2^32. */
static void steps_i32(dot *d, uint32_t *sum, uint32_t count, uint32_t group, uint32_t n) {
  const int32_t *w = d->w->data;
  int32_t buf[TARN_EV_LANES];
  for (uint32_t k = 0; k < count; k++) {
    const int32_t *x = fetch_i32(d->x, k, n, buf);
    for (uint32_t g = 0; g < group; g++) {
      uint32_t *to = sum + (size_t)g * TARN_EV_LANES, by = (uint32_t)w[d->base[g] + d->w->red[k]];
      for (uint32_t i = 0; i < n; i++) to[i] += by * (uint32_t)x[i];
    }
  }
}

/* ---------------------------------------------------------------- runs */
typedef union sums {
  float f[GROUP * TARN_EV_LANES];
  double d[GROUP * TARN_EV_LANES];
  uint32_t i[GROUP * TARN_EV_LANES];
} sums;

static tarn_value result(tarn_dtype t, const sums *sum, uint32_t i) {
  if (t == TARN_I32) return (tarn_value){.i = (int32_t)sum->i[i]};
  double x = t == TARN_F32 ? (double)sum->f[i] : sum->d[i];
  return (tarn_value){.d = x == x ? x : tarn_canonical_nan()};
}

static uint32_t load_steps(dot *d, int64_t at) {
  int64_t left = d->s->nred - at;
  uint32_t n = left < TARN_EV_RED ? (uint32_t)left : TARN_EV_RED;
  tarn_evread_reduce(d->x, at, n);
  tarn_evread_reduce(d->w, at, n);
  return n;
}

/* Results `at` … at+n-1 of the run's first row, and the same places of the group's other rows. */
static void run(dot *d, int64_t at, uint32_t group, uint32_t n) {
  sums sum;
  tarn_dtype t = d->s->dot_type;
  for (uint32_t i = 0; i < GROUP * TARN_EV_LANES; i++) /* +0: a sum's start */
    if (t == TARN_F64) sum.d[i] = 0;
    else if (t == TARN_F32) sum.f[i] = 0;
    else sum.i[i] = 0;
  tarn_evread_run(d->x, at, n);
  for (int64_t r = 0; r < d->s->nred; r += TARN_EV_RED) {
    uint32_t count = load_steps(d, r);
    if (t == TARN_F64) steps_f64(d, sum.d, count, group, n);
    else if (t == TARN_F32) steps_f32(d, sum.f, count, group, n);
    else steps_i32(d, sum.i, count, group, n);
    tarn_ev_nearest(d->e);
  }
  for (uint32_t g = 0; g < group; g++) {
    for (uint32_t v = 0; v < n; v++) d->s->state[0][v] = result(t, &sum, g * TARN_EV_LANES + v);
    tarn_ev_finish(d->e, d->s, at + g * d->length, n);
  }
}

bool tarn_ev_dot(tarn_ev *e, tarn_evstage *s, int64_t first, int64_t end, uint32_t dmin) {
  dot d = {.e = e, .s = s};
  tarn_evread *a = &s->read[0], *b = &s->read[1];
  bool ok = suits(&d, a, b, dmin);
  ok |= suits(&d, b, a, dmin);
  bool stored = a->store == s->dot_type && b->store == s->dot_type;
  if (!ok || (s->dot_type != TARN_F64 && !stored)) return false;
  for (int64_t row = first / d.length, last = end / d.length; row < last;) {
    int64_t group = d.rows - row % d.rows;
    if (group > last - row) group = last - row;
    if (group > GROUP) group = GROUP;
    for (int64_t g = 0; g < group; g++) {
      tarn_evread_run(d.w, (row + g) * d.length, 1);
      d.base[g] = d.w->lane[0];
    }
    for (int64_t at = 0; at < d.length; at += TARN_EV_LANES) {
      int64_t n = d.length - at < TARN_EV_LANES ? d.length - at : TARN_EV_LANES;
      run(&d, row * d.length + at, (uint32_t)group, (uint32_t)n);
    }
    row += group;
  }
  return true;
}
