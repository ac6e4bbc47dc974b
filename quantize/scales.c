/* Powers of two for the machine form: the best for each value by itself, then raised until every
 * shift is one that the machine has and no sum of 32 bits overflows.
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
  int max_shift;
  qz_scales *c;
  uint32_t *next; /* by value: another of its class, in a ring */
  bool changed;
} choosing;

int qz_byte(double x, int e) { return (int)fmin(fmax(floor(ldexp(x, -e) + 0.5), -128), 127); }

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

static void make_classes(choosing *k) {
  for (uint32_t v = 0; v < k->g->nvalue; v++) k->next[v] = v;
  for (uint32_t i = 0; i < k->s->n; i++) {
    const qz_group *p = &k->s->group[i];
    if (p->kind != QZ_MOVE && p->kind != QZ_CLIP) continue;
    for (uint32_t j = 0; j < p->nin; j++) join(k, p->in[j], p->out);
  }
}

static void set_class(choosing *k, uint32_t v, int e) {
  uint32_t at = v;
  e = e < LEAST ? LEAST : e > MOST ? MOST : e;
  do {
    k->c->e[at] = e;
    at = k->next[at];
  } while (at != v);
}

static void raise_to(choosing *k, uint32_t v, int e) {
  if (k->c->e[v] >= e || k->c->e[v] == MOST) return;
  set_class(k, v, e);
  k->changed = true;
}

static void choose_values(choosing *k, const qz_calibration *c) {
  const qz_range **r = TARN_ARRAY(k->g->cx, const qz_range *, k->g->nvalue + 1);
  bool *done = TARN_ARRAY(k->g->cx, bool, k->g->nvalue + 1);
  for (uint32_t v = 0; v < k->g->nvalue; v++) {
    uint32_t n = 0, at = v;
    if (done[v]) continue;
    do {
      done[at] = true;
      if (c->range[at].n) r[n++] = &c->range[at];
      at = k->next[at];
    } while (at != v);
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

/* The largest sum that any bytes can give, for each channel, with the bias. */
static double largest_sum(const choosing *k, uint32_t group, int ew) {
  const qz_group *p = &k->s->group[group];
  tarn_ctx *cx = k->g->cx;
  int acc = k->c->e[p->in[0]] + ew;
  int64_t n = tarn_tensor_count(p->w), each = n / p->channels;
  double *sum = TARN_ARRAY(cx, double, p->channels + 1), most = 0;
  float *wq = TARN_ARRAY(cx, float, n);
  for (int64_t i = 0; i < n; i++) {
    int q = qz_byte((double)((const float *)p->w->data)[i], ew);
    sum[p->conv ? i / each : i % p->channels] += 128.0 * abs(q);
    wq[i] = ldexpf((float)q, ew);
  }
  double *bias = p->bias ? qz_bias(k->g, k->s, k->c->c, group, wq) : NULL;
  for (uint32_t i = 0; i < p->channels; i++)
    most = fmax(most, sum[i] + (bias ? fabs(ldexp(bias[i], -acc)) + 1 : 0));
  return most;
}

static bool fits(const choosing *k, uint32_t group, int ew, int shift) {
  tarn_mark scratch = tarn_arena_mark(k->g->cx);
  double most = largest_sum(k, group, ew);
  tarn_release(k->g->cx, scratch);
  return most + ldexp(1, shift) < 0x1p31;
}

/* Coarser weights until the sum fits and the shift to `to` is one that there is. */
static void settle_weights(choosing *k, uint32_t group, int to) {
  const qz_group *p = &k->s->group[group];
  int *ew = &k->c->ew[group], x = k->c->e[p->in[0]];
  for (; *ew < MOST; ++*ew, k->changed = true) {
    int shift = to - (x + *ew);
    if (shift <= k->max_shift && fits(k, group, *ew, shift < 0 ? 0 : shift)) return;
  }
}

/* ---------------------------------------------------------------- until all shifts are there */

static void settle_product(choosing *k, uint32_t i) {
  const qz_group *p = &k->s->group[i];
  settle_weights(k, i, k->c->e[p->out]);
  raise_to(k, p->out, k->c->e[p->in[0]] + k->c->ew[i]);
}

static bool is_wide(const choosing *k, const qz_group *p, uint32_t v) {
  return p->wide != TARN_NONE && k->s->group[p->wide].out == v;
}

/* The sum is made in the scale of its coarsest operand, and shifted to that of the result. */
static void settle_addition(choosing *k, uint32_t i) {
  const qz_group *p = &k->s->group[i];
  const int *e = k->c->e;
  int sum = e[p->out] - k->max_shift;
  for (uint32_t j = 0; j < 2; j++)
    if (!is_wide(k, p, p->in[j]) && e[p->in[j]] > sum) sum = e[p->in[j]];
  if (p->wide != TARN_NONE) {
    const qz_group *w = &k->s->group[p->wide];
    settle_weights(k, p->wide, sum);
    int acc = e[w->in[0]] + k->c->ew[p->wide];
    sum = acc > sum ? acc : sum;
  }
  for (uint32_t j = 0; j < 2; j++)
    if (!is_wide(k, p, p->in[j])) raise_to(k, p->in[j], sum - k->max_shift);
  raise_to(k, p->out, sum);
  k->c->sum[i] = sum;
}

static void settle(choosing *k) {
  k->changed = false;
  for (uint32_t i = 0; i < k->s->n; i++) {
    const qz_group *p = &k->s->group[i];
    if (p->kind == QZ_PRODUCT && !p->inside) settle_product(k, i);
    if (p->kind == QZ_ADD) settle_addition(k, i);
  }
}

qz_scales *qz_scales_choose(const qz_graph *g, qz_groups *s, const qz_calibration *c,
                            const qz_target *t) {
  qz_scales *r = TARN_NEW(g->cx, qz_scales);
  r->c = c;
  choosing k = {.g = g, .s = s, .max_shift = t->max_shift, .c = r};
  r->e = TARN_ARRAY(g->cx, int, g->nvalue + 1);
  r->ew = TARN_ARRAY(g->cx, int, s->n + 1);
  r->sum = TARN_ARRAY(g->cx, int, s->n + 1);
  k.next = TARN_ARRAY(g->cx, uint32_t, g->nvalue + 1);
  make_classes(&k);
  choose_values(&k, c);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->group[i].kind == QZ_PRODUCT) r->ew[i] = weight_exponent(g, &s->group[i]);
  do settle(&k);
  while (k.changed);
  return r;
}
