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
  int64_t bytes; /* that there are */
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
/* Looks at a selection, and keeps it if it is better than the best one. */
static kg_alive look_at(room *r, const uint32_t *choice, tarn_kprog **p) {
  begin(r, choice);
  *p = kg_program(&r->x->k, choice);
  kg_alive a = kg_alive_at(&r->x->k, *p, r->bytes);
  double price = price_of(*p);
  if (!is_better(r, a.bytes, price)) return a;
  r->best = choice;
  r->price = price;
  r->found = (tarn_room){.bytes = a.bytes, .kernel = (*p)->ker[a.kernel].name};
  return a;
}
static void raise_rents(const room *r, const tarn_kprog *p, const kg_alive *a, double rate) {
  kgraph *k = &r->x->k;
  for (uint32_t ag = 0; ag < k->nag; ag++) {
    uint32_t b = k->buffer[ag];
    if (b == TARN_NONE || !a->crowd[b]) continue;
    k->rent[ag] += rate * (double)tarn_buffer_bytes(&p->buf[b]);
  }
}
static void lower_rents(room *r) {
  kgraph *k = &r->x->k;
  double *full = tarn_copy(k->cx, k->rent, k->nag * sizeof *k->rent);
  double lo = 0;
  double hi = 1;
  for (uint32_t i = 0; i < HALVES && !tarn_late(k->cx); i++) {
    double at = (lo + hi) / 2;
    tarn_kprog *p;
    for (uint32_t c = 0; c < k->nag; c++) k->rent[c] = at * full[c];
    *(look_at(r, kg_choose(k), &p).bytes <= r->bytes ? &hi : &lo) = at;
  }
}
bool tarn_extract_within(tarn_extraction *x, int64_t bytes, tarn_room *found) {
  kgraph *k = &x->k;
  room r = {.x = x, .bytes = bytes};
  tarn_kprog *p;
  k->rent = TARN_ARRAY(k->cx, double, k->nag);
  kg_alive a = look_at(&r, x->first, &p);
  double rate = FIRST_RATE * r.price / (double)(a.bytes ? a.bytes : 1);
  bool at_once = fits(&r);
  for (uint32_t i = 0; i < RAISES && !fits(&r) && !tarn_late(k->cx); i++, rate *= GROWTH) {
    raise_rents(&r, p, &a, rate);
    a = look_at(&r, kg_choose(k), &p);
  }
  if (fits(&r) && !at_once) lower_rents(&r);
  x->choice = r.best;
  begin(&r, r.best);
  k->r->price = r.price;
  *found = r.found;
  return fits(&r);
}
