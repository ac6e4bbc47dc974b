/* Sizes of instances: extents, pads, windows, steps. Most are 1 to 7. One size of a *far* instance
 * is larger: one near a number of the rule, or near a sum, product, quotient or multiple of such
 * (what a rule may compare sizes with), or any up to 4,097. Its other sizes stay small, and its
 * leaves have values that stand out at one place along that dim, so that an element too many or too
 * few is seen even in a maximum or in a sum of thousands. */
#include "rules/check/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { S_LEAST = 8, S_MOST = 20000, S_NUMBERS = 24, S_NEAR = 160, S_FIRST = 12 };

/* ---------------------------------------------------------------- the numbers of a rule */

static bool is_said(const tarn_sx *key) { /* of what says nothing of sizes */
  static const char *const names[] = {":table", ":doc", ":class", ":bound", ":demand"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tarn_sx_atom_is(key, names[i])) return true;
  return false;
}
static bool known(const int64_t *v, uint32_t n, int64_t x) {
  for (uint32_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}
static void numbers_of(const tarn_sx *s, int64_t *v, uint32_t *n) {
  int64_t x = s->kind == TARN_SX_INT ? s->i : 0;
  if (x < 0 && x > -S_MOST) x = -x;
  if (x > 1 && x <= S_MOST && *n < S_NUMBERS && !known(v, *n, x)) v[(*n)++] = x;
  for (uint32_t i = 0; i < s->n; i++)
    if (i == 0 || !is_said(s->kid[i - 1])) numbers_of(s->kid[i], v, n);
}

static void near(sizes *s, int64_t x) {
  for (int64_t d = 0; d < 3; d++) {
    int64_t y = x + (d == 2 ? -1 : d);
    if (y >= S_LEAST && y <= S_MOST && s->nnear < S_NEAR && !known(s->near, s->nnear, y))
      s->near[s->nnear++] = y;
  }
}
/* What comes first is what a condition compares with most often. */
static void combine(sizes *s) {
  const int64_t *v = s->number;
  for (uint32_t i = 0; i < s->n; i++) near(s, v[i]);
  for (uint32_t i = 0; i < s->n; i++) near(s, 2 * v[i]);
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t j = 0; j < s->n; j++)
      if (i != j) near(s, v[i] / v[j]), near(s, v[i] + v[j]);
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t j = i + 1; j < s->n; j++) near(s, v[i] * v[j]), near(s, llabs(v[i] - v[j]));
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t j = 0; j < s->n; j++)
      if (i != j) near(s, 2 * v[i] + v[j]), near(s, 3 * v[i] + v[j]);
  for (uint32_t i = 0; i < s->n; i++) near(s, 3 * v[i]), near(s, 4 * v[i]);
}

static const int64_t large[] = {72,   80,   96,   100,  127,  128,  129,  160,  192,  200,  255,
                                256,  257,  300,  384,  500,  511,  512,  513,  640,  768,  1000,
                                1023, 1024, 1025, 1500, 2047, 2048, 2049, 3000, 4095, 4096, 4097};
enum { S_LARGE = sizeof large / sizeof *large, S_MIDDLE = 57 };

sizes *sizes_of(tarn_ctx *cx, const rule *r) {
  sizes *s = TARN_NEW(cx, sizes);
  s->number = TARN_ARRAY(cx, int64_t, S_NUMBERS);
  s->near = TARN_ARRAY(cx, int64_t, S_NEAR);
  s->all = TARN_ARRAY(cx, int64_t, S_NEAR + S_LARGE + S_MIDDLE);
  if (r->at) numbers_of(r->at, s->number, &s->n);
  combine(s);
  memcpy(s->all, s->near, s->nnear * sizeof *s->all);
  s->nall = s->nnear;
  for (int64_t x = S_LEAST; x < S_LEAST + S_MIDDLE; x++)
    if (!known(s->all, s->nall, x)) s->all[s->nall++] = x;
  for (uint32_t i = 0; i < S_LARGE; i++)
    if (!known(s->all, s->nall, large[i])) s->all[s->nall++] = large[i];
  qsort(s->all, s->nall, sizeof *s->all, tarn_by_i64);
  return s;
}
/* The k-th far instance. Of a rule with numbers three in four are near those, one in four near the
 * first of them; of others one in four is large. */
uint32_t sizes_turn(const sizes *s, uint32_t k, uint64_t seed) {
  uint64_t h = tarn_hash_mix(seed, k);
  int64_t x = S_LEAST + (int64_t)(h / 4 % S_MIDDLE);
  if (h % 4 == 0) x = large[h / 4 % S_LARGE];
  uint32_t among = k % 4 == 1 && s->nnear > S_FIRST ? S_FIRST : s->nnear;
  if (s->nnear && k % 4 == 1) x = s->near[k / 4 % among];
  if (s->nnear && k % 2 == 0) x = s->near[k / 2 % among];
  for (uint32_t i = 0; i < s->nall; i++)
    if (s->all[i] == x) return i + 1;
  return 0;
}
uint32_t sizes_wanted(const sizes *s, uint32_t samples) {
  uint32_t most = 6 * samples, near = 32 * s->nnear;
  return samples / 2 + (near > most ? most : near);
}

/* ---------------------------------------------------------------- choices */

/* Which choice of a size is the large one: mostly one of the first. */
void far_begin(gen *g) {
  static const uint8_t order[] = {0, 1, 0, 2, 1, 3, 4, 5};
  const sizes *s = g->sizes;
  uint32_t k = s && s->nall ? draw_as(g, s->nall + 1, g->turn) : 0;
  g->far = k ? s->all[k - 1] : 0;
  g->far_in = k ? order[draw(g, sizeof order)] : 0;
}
/* Is it this one? */
static bool takes(gen *g) {
  if (g->far <= 0 || g->far_in == UINT32_MAX) return false;
  return g->far_in-- == 0;
}
int64_t most_elements(const gen *g) { return C_LEAF + 6 * g->far; }
int64_t most_work(const gen *g) { return C_WORK + 40 * g->far; }

/* An extent that a kernel written by hand asks for, or twice that; 0: none does. */
static int64_t extent_of_port(const tarn_written_port *p, uint32_t *skip) {
  for (uint32_t d = 0; d < p->n; d++)
    if (p->dim[d] > 1 && !(*skip)--) return p->dim[d];
  return 0;
}
static int64_t extent_asked(gen *g) {
  uint32_t skip = draw(g, 4), times = 1 + draw(g, 2);
  int64_t n = 0;
  for (uint32_t tries = 0; tries < 8 && !n; tries++)
    for (uint32_t i = 0; i < g->r->nwritten && !n; i++) {
      const tarn_written *w = g->r->written[i];
      for (uint32_t j = 0; j < w->nin && !n; j++) n = extent_of_port(&w->in[j], &skip);
      if (!n) n = extent_of_port(&w->out, &skip);
    }
  return n * times;
}
int64_t some_extent(gen *g, uint32_t rank) {
  int64_t asked = g->r && g->r->nwritten && draw(g, 4) ? extent_asked(g) : 0;
  if (asked) return asked;
  if (takes(g)) return g->far;
  int64_t most = g->far ? 3 : rank > 4 ? 3 : rank > 2 ? 5 : 7;
  if (most > g->max_extent) most = g->max_extent;
  if (chance(g, 12)) return 1;
  return most < 2 ? 1 : 2 + draw(g, (uint32_t)most - 1);
}
int64_t some_size(gen *g, int64_t least, uint32_t few) {
  if (takes(g)) return g->far;
  return least + draw(g, few);
}
int64_t some_listed(gen *g, const int64_t *few, uint32_t n) {
  if (takes(g)) return g->far;
  return few[draw(g, n)];
}
int64_t some_place(gen *g, int64_t n) {
  const sizes *s = g->sizes;
  if (n <= S_LEAST || !g->far || !draw(g, 2)) return draw(g, (uint32_t)n);
  if (!s->nnear || !draw(g, 3)) return n - 1 - draw(g, 2);
  return s->near[draw(g, s->nnear)] % n;
}

/* ---------------------------------------------------------------- values that stand out */

typedef enum { P_FLAT, P_STEEP, P_TENT, P_ONES, P_SIGNS } peak_kind;
typedef struct peak {
  peak_kind kind;
  int64_t at, n, stride; /* along a dim of n */
  double floor, sign;
} peak;

/* Mostly where a dim ends, which is what a rule forgets. */
static int64_t place_of_peak(gen *g, int64_t n) {
  uint32_t how = draw(g, 8);
  return how < 3 ? n - 1 : how < 4 ? 0 : some_place(g, n);
}
static peak some_peak(gen *g, const tarn_type *t, values how) {
  peak p = {.stride = 1};
  uint32_t d = 0;
  for (uint32_t i = 1; i < t->n; i++)
    if (t->dim[i] > t->dim[d]) d = i;
  if (!g->far || t->n == 0 || t->dim[d] < S_LEAST) return p;
  for (uint32_t i = d + 1; i < t->n; i++) p.stride *= t->dim[i];
  p.kind = (peak_kind)draw(g, 4);
  if (how == V_TAME && p.kind) p.kind = P_SIGNS;
  p.n = t->dim[d], p.at = place_of_peak(g, p.n);
  p.floor = t->dtype == TARN_F16 || !tarn_dtype_is_float(t->dtype) ? 1e-4 : 1e-30;
  p.sign = draw(g, 2) ? -1 : 1;
  return p;
}
/* Of P_STEEP a term is more than all that are farther away together. P_SIGNS: near each other in
 * magnitude, as an approximation may ask for. */
static double peaked(gen *g, const peak *p, int64_t i) {
  int64_t off = llabs(i / p->stride % p->n - p->at);
  double x = (1 + draw(g, 8) / 16.0) * p->sign;
  if (p->kind == P_SIGNS) return (off ? 1 : 2) * (draw(g, 2) ? -p->sign : p->sign);
  if (p->kind == P_ONES) return off ? p->sign : 2 * p->sign;
  if (p->kind == P_TENT) return (double)(p->n - off) / 8 * p->sign;
  return x * fmax(p->floor, pow(10, -0.6 * (double)off));
}
static int64_t peaked_integer(gen *g, const peak *p, int64_t i) {
  int64_t off = llabs(i / p->stride % p->n - p->at);
  if (p->kind == P_ONES || p->kind == P_SIGNS) return off ? 1 : 2;
  if (p->kind == P_TENT) return (int64_t)p->sign * (off < 100 ? 100 - off : 0);
  return off ? draw(g, 3) : 100;
}
bool some_peaked(gen *g, tarn_tensor *x, const tarn_type *t, const leaf *f, values how) {
  peak p = f->kind == F_UNIFORM || f->kind == F_INDEX ? (peak){0} : some_peak(g, t, how);
  int64_t n = tarn_tensor_count(x);
  bool real = tarn_dtype_is_float(t->dtype);
  for (int64_t i = 0; i < n && p.kind != P_FLAT; i++) {
    tarn_value v;
    if (real) v.d = peaked(g, &p, i);
    else v.i = peaked_integer(g, &p, i);
    if (real && f->kind == F_NONNEG) v.d = fabs(v.d);
    tarn_tensor_set(x, i, v);
  }
  return p.kind != P_FLAT;
}
