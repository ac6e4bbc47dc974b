/* Scales of the machine forms. Powers of two: the best for each value by itself, then raised until
 * every shift is one that the machine has and no sum of 32 bits overflows. Real numbers: the best
 * for each value.
 *
 * Values between which bytes only move have one scale (a class).  Scales only grow, so this ends.
 */
#include "quantize/internal.h"
#include <math.h>
#include <stdlib.h>

enum { LEAST = -60, MOST = 60 };

typedef struct choosing {
  const qz_graph *g;
  qz_groups *s;
  const qz_calibration *calibration;
  int max_shift;
  int *e;         /* by value: its bytes times 2^e */
  int *ew;        /* by group: of a product's weights */
  int *sum;       /* by group: of an addition, before its last shift */
  uint32_t *next; /* by value: another of its class, in a ring */
  bool changed;
} choosing;

int qz_byte(double x, double scale) { return (int)fmin(fmax(floor(x / scale + 0.5), -128), 127); }

/* What groups make and read: not what only moves, unless a product reads it. */
bool *qz_wanted(const qz_graph *g, const qz_groups *s) {
  bool *wanted = TARN_ARRAY(g->cx, bool, g->nvalue + 1),
       *made = TARN_ARRAY(g->cx, bool, g->nvalue + 1);
  for (uint32_t i = 0; i < s->n; i++) {
    const qz_group *p = &s->group[i];
    made[p->out] |= !p->inside;
    wanted[p->out] = !p->inside && !(p->kind == QZ_MOVE && p->nin == 1);
  }
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t k = 0; k < s->group[i].nin; k++) {
      uint32_t v = s->group[i].in[k];
      bool wide = s->group[i].wide != TARN_NONE && s->group[s->group[i].wide].out == v;
      wanted[v] |= s->group[i].kind == QZ_PRODUCT || (!made[v] && !wide);
    }
  return wanted;
}

/* ---------------------------------------------------------------- classes */

static void join(choosing *k, uint32_t a, uint32_t b) {
  for (uint32_t v = k->next[a]; v != a; v = k->next[v])
    if (v == b) return;
  if (a == b) return;
  uint32_t t = k->next[a];
  k->next[a] = k->next[b];
  k->next[b] = t;
}

/* alike: an addition's operands have one scale. */
static void make_classes(choosing *k, bool alike) {
  for (uint32_t v = 0; v < k->g->nvalue; v++) k->next[v] = v;
  for (uint32_t i = 0; i < k->s->n; i++) {
    const qz_group *p = &k->s->group[i];
    if (p->kind == QZ_ADD && alike) join(k, p->in[0], p->in[1]);
    if (p->kind != QZ_MOVE && p->kind != QZ_CLIP) continue;
    for (uint32_t j = 0; j < p->nin; j++) join(k, p->in[j], p->out);
  }
}

/* The ranges of the class of v, which has not been looked at. */
static uint32_t ranges_of(const choosing *k, uint32_t v, bool *done, const qz_range **r) {
  uint32_t n = 0;
  uint32_t at = v;
  if (done[v]) return 0;
  do {
    done[at] = true;
    if (k->calibration->range[at].n) r[n++] = &k->calibration->range[at];
    at = k->next[at];
  } while (at != v);
  return n;
}

static void set_class(choosing *k, uint32_t v, int e) {
  uint32_t at = v;
  e = e < LEAST ? LEAST : e > MOST ? MOST : e;
  do {
    k->e[at] = e;
    at = k->next[at];
  } while (at != v);
}

static void raise_to(choosing *k, uint32_t v, int e) {
  if (k->e[v] >= e || k->e[v] == MOST) return;
  set_class(k, v, e);
  k->changed = true;
}

static void choose_values(choosing *k) {
  const qz_range **r = TARN_ARRAY(k->g->cx, const qz_range *, k->g->nvalue + 1);
  bool *done = TARN_ARRAY(k->g->cx, bool, k->g->nvalue + 1);
  for (uint32_t v = 0; v < k->g->nvalue; v++) {
    uint32_t n = ranges_of(k, v, done, r);
    if (n) set_class(k, v, qz_exponent(r, n));
  }
}

/* ---------------------------------------------------------------- weights */

static int weight_exponent(const qz_graph *g, const qz_group *p) {
  qz_range r = {0};
  const qz_range *one = &r;
  qz_range_add(g->cx, &r, p->w);
  int e = qz_exponent(&one, 1);
  return e < LEAST ? LEAST : e > MOST ? MOST : e;
}

/* The largest sum that any bytes can give, for each channel, with the bias; scales of what it reads
 * and of its weights. */
static double largest_sum(const choosing *k, uint32_t group, double scale, double weight) {
  const qz_group *p = &k->s->group[group];
  tarn_ctx *cx = k->g->cx;
  int64_t n = tarn_tensor_count(p->w), each = n / p->channels;
  double *sum = TARN_ARRAY(cx, double, p->channels + 1), most = 0;
  float *wq = TARN_ARRAY(cx, float, n);
  for (int64_t i = 0; i < n; i++) {
    int q = qz_byte((double)((const float *)p->w->data)[i], weight);
    sum[p->conv ? i / each : i % p->channels] += 128.0 * abs(q);
    wq[i] = (float)(q * weight);
  }
  double *bias = p->bias ? qz_bias(k->g, k->s, k->calibration, group, wq) : NULL;
  for (uint32_t i = 0; i < p->channels; i++)
    most = fmax(most, sum[i] + (bias ? fabs(bias[i] / (scale * weight)) + 1 : 0));
  return most;
}

static bool fits(const choosing *k, uint32_t group, double scale, double weight, int shift) {
  tarn_mark scratch = tarn_arena_mark(k->g->cx);
  double most = largest_sum(k, group, scale, weight);
  tarn_release(k->g->cx, scratch);
  return most + ldexp(1, shift) < 0x1p31;
}

/* Coarser weights until the sum fits and the shift to `to` is one that there is. */
static void settle_weights(choosing *k, uint32_t group, int to) {
  const qz_group *p = &k->s->group[group];
  int *ew = &k->ew[group], x = k->e[p->in[0]];
  for (; *ew < MOST; ++*ew, k->changed = true) {
    int shift = to - (x + *ew);
    bool has = shift <= k->max_shift;
    if (has && fits(k, group, ldexp(1, x), ldexp(1, *ew), shift < 0 ? 0 : shift)) return;
  }
}

/* ---------------------------------------------------------------- until all shifts are there */

static void settle_product(choosing *k, uint32_t i) {
  const qz_group *p = &k->s->group[i];
  settle_weights(k, i, k->e[p->out]);
  raise_to(k, p->out, k->e[p->in[0]] + k->ew[i]);
}

static bool is_wide(const choosing *k, const qz_group *p, uint32_t v) {
  return p->wide != TARN_NONE && k->s->group[p->wide].out == v;
}

/* The sum is made in the scale of its coarsest operand, and shifted to that of the result. */
static void settle_addition(choosing *k, uint32_t i) {
  const qz_group *p = &k->s->group[i];
  const int *e = k->e;
  int sum = e[p->out] - k->max_shift;
  for (uint32_t j = 0; j < 2; j++)
    if (!is_wide(k, p, p->in[j]) && e[p->in[j]] > sum) sum = e[p->in[j]];
  if (p->wide != TARN_NONE) {
    const qz_group *w = &k->s->group[p->wide];
    settle_weights(k, p->wide, sum);
    int acc = e[w->in[0]] + k->ew[p->wide];
    sum = acc > sum ? acc : sum;
  }
  for (uint32_t j = 0; j < 2; j++)
    if (!is_wide(k, p, p->in[j])) raise_to(k, p->in[j], sum - k->max_shift);
  raise_to(k, p->out, sum);
  k->sum[i] = sum;
}

static void settle(choosing *k) {
  k->changed = false;
  for (uint32_t i = 0; i < k->s->n; i++) {
    const qz_group *p = &k->s->group[i];
    if (p->kind == QZ_PRODUCT && !p->inside) settle_product(k, i);
    if (p->kind == QZ_ADD) settle_addition(k, i);
  }
}

static double *powers(const choosing *k, const int *e, uint32_t n) {
  double *scale = TARN_ARRAY(k->g->cx, double, n + 1);
  for (uint32_t i = 0; i < n; i++) scale[i] = ldexp(1, e[i]);
  return scale;
}
static void choose_powers(choosing *k, qz_scales *r) {
  k->e = TARN_ARRAY(k->g->cx, int, k->g->nvalue + 1);
  k->ew = TARN_ARRAY(k->g->cx, int, k->s->n + 1);
  k->sum = TARN_ARRAY(k->g->cx, int, k->s->n + 1);
  make_classes(k, false);
  choose_values(k);
  for (uint32_t i = 0; i < k->s->n; i++)
    if (k->s->group[i].kind == QZ_PRODUCT) k->ew[i] = weight_exponent(k->g, &k->s->group[i]);
  do settle(k);
  while (k->changed);
  r->of = powers(k, k->e, k->g->nvalue);
  r->weight = powers(k, k->ew, k->s->n);
  r->sum = powers(k, k->sum, k->s->n);
}

/* ---------------------------------------------------------------- real numbers */

/* The largest number of a class. */
static double largest_of(const choosing *k, uint32_t v) {
  double most = 0;
  uint32_t at = v;
  do most = fmax(most, k->calibration->range[at].hi);
  while ((at = k->next[at]) != v);
  return most;
}
/* The largest byte means no more than an upper bound of the result, so that saturation keeps it,
 * but where others of the class have larger numbers. */
static void keep_bounds(const choosing *k, qz_scales *r) {
  for (uint32_t i = 0; i < k->s->n; i++) {
    const qz_group *p = &k->s->group[i];
    uint32_t at = p->out;
    if (!(p->hi > 0) || isinf(p->hi) || r->of[at] <= p->hi / 127) continue;
    if (largest_of(k, at) > p->hi) continue;
    do r->of[at] = p->hi / 127;
    while ((at = k->next[at]) != p->out);
  }
}
static void choose_real(choosing *k, qz_scales *r) {
  const qz_range **of = TARN_ARRAY(k->g->cx, const qz_range *, k->g->nvalue + 1);
  bool *done = TARN_ARRAY(k->g->cx, bool, k->g->nvalue + 1);
  r->of = TARN_ARRAY(k->g->cx, double, k->g->nvalue + 1);
  r->weight = TARN_ARRAY(k->g->cx, double, k->s->n + 1);
  make_classes(k, true);
  for (uint32_t v = 0; v < k->g->nvalue; v++) {
    uint32_t at = v;
    uint32_t n = ranges_of(k, v, done, of);
    double scale = n ? (double)qz_scale_i8(of, n).scale : 1;
    if (n) do
        r->of[at] = scale;
      while ((at = k->next[at]) != v);
    else if (!(r->of[v] > 0)) r->of[v] = 1;
  }
  keep_bounds(k, r);
  for (uint32_t i = 0; i < k->s->n; i++) {
    const qz_group *p = &k->s->group[i];
    qz_range w = {0};
    const qz_range *one = &w;
    if (p->kind != QZ_PRODUCT) continue;
    qz_range_add(k->g->cx, &w, p->w);
    r->weight[i] = (double)qz_scale_i8(&one, 1).scale;
    while (!fits(k, i, r->of[p->in[0]], r->weight[i], 0)) r->weight[i] *= 2;
  }
}

qz_scales *qz_scales_choose(const qz_graph *g, qz_groups *s, const qz_calibration *c,
                            const qz_target *t) {
  qz_scales *r = TARN_NEW(g->cx, qz_scales);
  choosing k = {.g = g, .s = s, .calibration = c, .max_shift = t->max_shift};
  r->c = c;
  r->real = t->scales;
  k.next = TARN_ARRAY(g->cx, uint32_t, g->nvalue + 1);
  if (t->scales) choose_real(&k, r);
  else choose_powers(&k, r);
  return r;
}
