/* Programs that fit into so much memory. "At no kernel do more than `room` bytes live" is put into
 * the price: the buffer of a class has a rent, which is raised for what lives where too much does,
 * and the kernels are selected again. Source: Held, Wolfe and Crowder, "Validation of subgradient
 * optimization" (1974). When a program fits, all rents are lowered by halves as long as one does.
 */
#include "extract/kgraph.h"
#include <string.h>

enum { RAISES = 16, HALVES = 5 };
#define FIRST_RATE 0.02 /* of the price for all bytes alive at once */
#define GROWTH     1.6
typedef struct room {
  tarn_extraction *x;
  int64_t bytes, align; /* bytes: that there are */
  const uint32_t *best;
  double price; /* of the best, without rents */
  tarn_room found;
} room;

static bool fits(const room *r) { return r->found.bytes <= r->bytes; }
static double price_of(const tarn_kprog *p) {
  double sum = 0;
  for (uint32_t i = 0; i < p->nker; i++) sum += p->ker[i].price;
  return sum;
}
/* What fits is better than what does not; then the price counts, or the bytes. */
static bool is_better(const room *r, int64_t alive, double price) {
  bool now = alive <= r->bytes;
  if (!r->best || now != fits(r)) return !r->best || now;
  if (now || alive == r->found.bytes) return price < r->price;
  return alive < r->found.bytes;
}
/* As if nothing had been made of the extraction yet. */
static void begin(room *r, const uint32_t *choice) {
  kgraph *k = &r->x->k;
  k->pick = tarn_map_new(k->cx);
  k->ways.n = k->unmeasured.n = 0;
  *k->r = r->x->of_first;
  kg_names(k, choice);
}
/* A selection that is looked at. */
typedef struct seen {
  tarn_kprog *p;
  tarn_life *life;
  uint32_t n;
  int64_t *live, most; /* bytes alive: at each kernel, and at once */
} seen;
static uint32_t fullest(const seen *s) {
  uint32_t k = 0;
  while (k + 1 < s->p->nker && s->live[k] < s->most) k++;
  return k;
}
/* It is kept if it is better than the best one. */
static seen look_at(room *r, const uint32_t *choice) {
  kgraph *k = &r->x->k;
  begin(r, choice);
  seen s = {.p = kg_program(k, choice)};
  s.life = TARN_ARRAY(k->cx, tarn_life, s.p->nbuf + 1);
  s.live = TARN_ARRAY(k->cx, int64_t, s.p->nker + 1);
  s.n = tarn_kprog_lives(s.p, r->align, s.life);
  s.most = tarn_lives_bytes(s.life, s.n, s.p->nker, s.live);
  double price = price_of(s.p);
  if (!is_better(r, s.most, price)) return s;
  r->best = choice;
  r->price = price;
  r->found = (tarn_room){.bytes = s.most, .kernel = s.p->nker ? s.p->ker[fullest(&s)].name : ""};
  return s;
}
/* Does it live where too much does? */
static bool is_crowded(const room *r, const seen *s, const tarn_life *l) {
  uint32_t k = l->first;
  while (k <= l->last && s->live[k] <= r->bytes) k++;
  return k <= l->last;
}
static void raise_rents(const room *r, const seen *s, double rate) {
  kgraph *k = &r->x->k;
  double *rent = TARN_ARRAY(k->cx, double, s->p->nbuf + 1); /* of what lies there as a whole */
  for (uint32_t i = 0; i < s->n; i++)
    if (is_crowded(r, s, &s->life[i])) rent[s->life[i].buffer] = rate;
  for (uint32_t ag = 0; ag < k->nag; ag++) {
    uint32_t b = k->buffer[ag];
    if (b == TARN_NONE) continue;
    k->rent[ag] += rent[tarn_kprog_root(s->p, b)] * (double)tarn_buffer_bytes(&s->p->buf[b]);
  }
}
static void lower_rents(room *r) {
  kgraph *k = &r->x->k;
  const double *full = tarn_copy(k->cx, k->rent, k->nag * sizeof *k->rent);
  double lo = 0;
  double hi = 1;
  for (uint32_t i = 0; i < HALVES && !tarn_late(k->cx); i++) {
    double at = (lo + hi) / 2;
    for (uint32_t c = 0; c < k->nag; c++) k->rent[c] = at * full[c];
    if (look_at(r, kg_choose(k)).most <= r->bytes) hi = at;
    else lo = at;
  }
}
bool tarn_extract_within(tarn_extraction *x, int64_t bytes, int64_t align, tarn_room *found) {
  kgraph *k = &x->k;
  room r = {.x = x, .bytes = bytes, .align = align};
  k->rent = TARN_ARRAY(k->cx, double, k->nag);
  seen s = look_at(&r, x->first);
  double rate = FIRST_RATE * r.price / (double)tarn_max(s.most, 1);
  bool at_once = fits(&r);
  for (uint32_t i = 0; i < RAISES && !fits(&r) && !tarn_late(k->cx); i++, rate *= GROWTH) {
    raise_rents(&r, &s, rate);
    s = look_at(&r, kg_choose(k));
  }
  if (fits(&r) && !at_once) lower_rents(&r);
  x->choice = r.best;
  begin(&r, r.best);
  k->r->price = r.price;
  *found = r.found;
  return fits(&r);
}
