/* A schedule is changed as long as that takes fewer cycles: a loop more, around smaller tiles of
 * which several lie in slots; more or fewer slots; other steps; loops in another order.
 *
 * The search has one loop for each dim, and operands come a whole tile at a time. Where it falls
 * short of the bound, the first tiles are waited for too long, or come again although there is room
 * for them. Smaller tiles in several slots come one after another, while those before them are
 * computed, and stay; of windows, those that lie one row apart are rows that roll. */
#include "price/unit.h"

enum { TRIES = 200 };
/* Not worth a change. */
static const double NEAR = 1.02;
static const double LESS = 1e-3;

typedef struct refine {
  tarn_unit_plan *p, *next;
  tarn_unit_cost *best;
  double moves; /* weight of these */
  uint32_t tried;
} refine;

static double worth(const refine *r, const tarn_unit_cost *c) {
  return c->cycles + c->moves * r->moves;
}
/* Loops over sums lie inside of the accumulators, steps of a dim divide one another. */
static bool is_sound(const tarn_unit_plan *p) {
  int64_t left[TARN_MAX_DIMS] = {0};
  uint32_t leaves = p->tensor[p->result].at_loop;
  if (leaves != p->tensor[p->sums].at_loop && leaves != p->nloop) return false;
  for (uint32_t i = 0; i < p->nloop; i++) {
    uint32_t d = p->loop[i].dim;
    int64_t step = p->loop[i].step;
    if (i < p->tensor[p->sums].at_loop && d >= p->nacc) return false;
    if (step < 1 || step >= (left[d] ? left[d] : p->dim[d])) return false;
    if (left[d] && left[d] % step) return false;
    if (d == p->rows && step % p->form.m) return false;
    left[d] = step;
  }
  return true;
}
/* Takes r->next where it is better. */
static bool takes(refine *r) {
  tarn_unit_cost c;
  if (!is_sound(r->next)) return false;
  double limit = worth(r, r->best) * (1 - LESS);
  r->tried++;
  if (!tarn_unit_cost_near(r->next, r->best, (tarn_unit_limit){limit, r->moves}, &c)) return false;
  if (worth(r, &c) >= limit) return false;
  *r->best = c;
  *r->p = *r->next;
  return true;
}

/* ---------------------------------------------------------------- changes */
/* A loop inside of all others over a dim, whose tile is so small. Operands come in as many slots
 * more. leaves: the sums' tile becomes that too. */
static bool split(refine *r, uint32_t d, int64_t step, bool leaves) {
  tarn_unit_plan *p = r->next;
  int64_t tile = r->p->dim[d];
  *p = *r->p;
  for (uint32_t i = 0; i < p->nloop; i++)
    if (p->loop[i].dim == d) tile = p->loop[i].step;
  if (p->nloop == TARN_MAX_LEVELS / 4 || step >= tile || tile % step) return false;
  uint32_t inside = p->nloop;
  p->loop[p->nloop++] = (tarn_unit_loop){d, step};
  if (leaves && (d >= p->nacc || p->tensor[p->sums].at_loop != inside)) return false;
  for (uint32_t t = 0; t < p->ntensor; t++) {
    tarn_unit_tensor *x = &p->tensor[t];
    bool factor = t < p->sums;
    bool parts = t == p->result && p->tensor[p->sums].at_loop < inside;
    if (factor || ((leaves || parts) && x->at_loop == inside)) x->at_loop = p->nloop;
    if (factor && (tarn_unit_dims(x) >> d & 1))
      x->slots = (uint32_t)tarn_min(x->slots * (tile / step), TARN_UNIT_SLOTS);
  }
  return takes(r);
}
static bool splits(refine *r) {
  bool any = false;
  for (uint32_t d = 0; d < r->p->n; d++)
    for (int64_t parts = 2; parts <= r->p->dim[d]; parts *= 2)
      for (uint32_t leaves = 0; leaves < 2; leaves++) {
        int64_t tile = r->p->dim[d];
        for (uint32_t i = 0; i < r->p->nloop; i++)
          if (r->p->loop[i].dim == d) tile = r->p->loop[i].step;
        any |= split(r, d, tarn_max(tile / parts, 1), leaves);
      }
  return any;
}
static bool slots(refine *r) {
  bool any = false;
  for (uint32_t t = 0; t <= r->p->sums; t++) {
    uint32_t n = r->p->tensor[t].slots;
    const uint32_t other[] = {n + 1, n + 2, 2 * n, n - 1};
    for (uint32_t i = 0; i < sizeof other / sizeof *other; i++) {
      if (other[i] < 1 || other[i] > TARN_UNIT_SLOTS) continue;
      *r->next = *r->p;
      r->next->tensor[t].slots = other[i];
      if (t == r->p->sums) r->next->tensor[r->p->result].slots = other[i];
      any |= takes(r);
    }
  }
  return any;
}
static bool steps(refine *r) {
  bool any = false;
  for (uint32_t i = 0; i < r->p->nloop; i++) {
    int64_t n = r->p->loop[i].step;
    const int64_t other[] = {n + 1, n - 1, 2 * n, n / 2};
    for (uint32_t k = 0; k < sizeof other / sizeof *other; k++) {
      *r->next = *r->p;
      r->next->loop[i].step = other[k];
      any |= takes(r);
    }
  }
  return any;
}
static bool orders(refine *r) {
  bool any = false;
  for (uint32_t i = 0; i + 1 < r->p->nloop; i++) {
    *r->next = *r->p;
    r->next->loop[i] = r->p->loop[i + 1];
    r->next->loop[i + 1] = r->p->loop[i];
    any |= takes(r);
  }
  return any;
}
/* The accumulators of all tiles are held at once: they are cleared early. */
static bool holds(refine *r) {
  tarn_unit_plan *p = r->next;
  bool any = false;
  for (uint32_t i = 0; i < r->p->tensor[r->p->sums].at_loop; i++) {
    *p = *r->p;
    for (uint32_t t = 0; t < p->ntensor; t++)
      if (t == p->sums || (t > p->sums && p->tensor[t].at_loop > i)) p->tensor[t].at_loop = i;
    p->tensor[p->sums].slots = i ? p->tensor[p->sums].slots : 1;
    p->tensor[p->result].slots = p->tensor[p->sums].slots;
    p->tensor[p->result].at_loop = p->nloop;
    any |= takes(r);
  }
  return any;
}
void tarn_unit_refine(tarn_unit_plan *p, tarn_unit_cost *cost, double moves) {
  tarn_unit_plan *next = tarn_copy(tarn_lang_ctx(p->L), p, sizeof *p);
  refine r = {.p = p, .next = next, .best = cost, .moves = moves};
  double bound = tarn_unit_bound(p) * NEAR;
  for (bool more = true; more && cost->cycles > bound && r.tried < TRIES;) {
    more = splits(&r);
    more |= slots(&r);
    more |= steps(&r);
    more |= orders(&r);
    more |= holds(&r);
  }
}
