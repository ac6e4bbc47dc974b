/* Cuts from levels of distance under reduced costs.
 *
 * Let d be the reduced costs of a relaxation, and L(c) the cost of the cheapest way from class c
 * down to a leaf when at every node the dearest child is followed (Knuth's algorithm with a maximum
 * in place of the sum). For a level z take W = the classes with L >= z: every node that leaves W
 * jumps over z, and pays for the jump with its reduced cost. So the rows of cut.c for all levels up
 * to L(t), of a class t that is needed for sure, can take multipliers that together add L(t) to the
 * bound: a dual ascent as Wong's (1984) for Steiner trees, done by the simplex method. The cost of
 * passing through a class (of its y) is treated alike and gives the set D.
 */
#include "extract/select/solve.h"
#include <stdlib.h>
#include <string.h>

typedef struct levels {
  sel_run *r;
  sel_pool *mem;
  const sel_prob *q;
  sel_rows *w;
  const sel_lp *lp;
  double *in, *out; /* by class: L with and without the class's own cost */
  uint8_t *side;
  uint32_t *choice;
  struct {
    double *p;
    uint32_t n, cap;
  } level;
} levels;
enum { IN_W = 1, IN_D = 2 };

/* What a column can still pay; one that is fixed at 1 has paid. */
static double purse(const sel_lp *lp, uint32_t j) {
  return lp->d[j] > 0 && lp->lo[j] <= 0 ? lp->d[j] : 0;
}

static double way_down(void *user, uint32_t v, const double *kid, uint32_t n) {
  const levels *s = user;
  double most = 0;
  for (uint32_t i = 0; i < n; i++)
    if (kid[i] > most) most = kid[i];
  return most + purse(s->lp, v) + purse(s->lp, s->q->nn + s->q->ncls[v]);
}

/* The distinct values up to `most`, thinned to what a round can use. */
static void find_levels(levels *s, double most) {
  enum { USED = 40 };
  uint32_t m = 0;
  s->level.n = 0;
  for (uint32_t c = 0; c < s->q->nc; c++) {
    if (s->out[c] > 0 && s->out[c] <= most) SEL_PUSH(s->mem, &s->level, s->out[c]);
    if (s->in[c] > 0 && s->in[c] <= most) SEL_PUSH(s->mem, &s->level, s->in[c]);
  }
  if (!s->level.n) return;
  qsort(s->level.p, s->level.n, sizeof(double), tarn_by_double);
  for (uint32_t i = 0; i < s->level.n; i++)
    if (!m || s->level.p[i] > s->level.p[m - 1] + 1e-7 * most) s->level.p[m++] = s->level.p[i];
  for (uint32_t i = 0; m > USED && i < USED; i++)
    s->level.p[i] = s->level.p[(uint64_t)(i + 1) * m / USED - 1];
  s->level.n = m < USED ? m : USED;
}

static bool inside(const levels *s, uint32_t v) {
  for (uint32_t i = s->q->kfirst[v]; i < s->q->kfirst[v + 1]; i++)
    if (s->side[s->q->kid[i]]) return true;
  return false;
}

static void add_level(levels *s, double z, uint32_t target) {
  struct {
    lp_term *p;
    uint32_t n, cap;
  } row = {0};
  const sel_prob *q = s->q;
  double least = z * (1 - 1e-12);
  for (uint32_t c = 0; c < q->nc; c++)
    s->side[c] = s->out[c] >= least ? IN_W : s->in[c] >= least ? IN_D : 0;
  for (uint32_t c = 0; c < q->nc; c++) {
    if (s->side[c] == IN_D) SEL_PUSH(s->mem, &row, ((lp_term){q->nn + c, 1}));
    for (uint32_t v = q->cfirst[c]; s->side[c] == IN_W && v < q->cfirst[c + 1]; v++)
      if (!inside(s, v)) SEL_PUSH(s->mem, &row, ((lp_term){v, 1}));
  }
  SEL_PUSH(s->mem, &row, ((lp_term){q->nn + target, -1}));
  sel_rows_add(s->w, row.p, row.n);
  sel_free(s->mem, row.p);
  sel_stop(s->r, q->nn);
}

uint32_t sel_level_cuts(sel_run *r, sel_pool *mem, const sel_prob *q, const tarn_sel_view *g,
                        const double *node_cost, const uint8_t *needed, sel_rows *w,
                        double enough) {
  const sel_lp *lp = w->lp;
  levels s = {.r = r, .mem = mem, .q = q, .w = w, .lp = lp};
  tarn_sel_cost own = {.term = way_down, .user = &s};
  uint32_t added = 0;
  s.in = SEL_NEW(mem, double, q->nc);
  s.out = SEL_NEW(mem, double, q->nc);
  s.side = SEL_NEW(mem, uint8_t, q->nc);
  s.choice = SEL_NEW(mem, uint32_t, q->nc);
  sel_tree(mem, g, node_cost, &own, s.choice, s.in, NULL);
  sel_stop(r, 10 * (uint64_t)q->nn);
  for (uint32_t c = 0; c < q->nc; c++) s.out[c] = s.in[c] - purse(lp, q->nn + c);
  for (uint32_t t = 0; t < q->nc && added < 400; t++) {
    if (!needed[t] || !(s.out[t] > enough) || s.choice[t] == NONE) continue;
    find_levels(&s, s.out[t]);
    for (uint32_t i = 0; i < s.level.n; i++, added++) add_level(&s, s.level.p[i], t);
  }
  void *all[] = {s.in, s.out, s.side, s.choice, s.level.p};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) sel_free(mem, all[i]);
  return added;
}
