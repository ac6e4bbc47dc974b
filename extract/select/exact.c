/* The exact method: reduce, split, bound and fix at the root until that stops paying, then branch
 * on each part. */
#include "extract/select/reduce.h"
#include <stdlib.h>
#include <string.h>

/* What a part may cost at most for the whole to become better. */
static void set_limit(const sel_parts *s, sel_part *t) {
  double others = s->p.base;
  for (uint32_t i = 0; i < s->n; i++)
    if (&s->part[i] != t) others += s->part[i].bound;
  t->limit = s->r->best_cost - others;
}

static int by_size(const void *a, const void *b) {
  const sel_part *x = a, *y = b;
  if (x->q.nn != y->q.nn) return x->q.nn < y->q.nn ? -1 : 1;
  return (x->node_of[0] > y->node_of[0]) - (x->node_of[0] < y->node_of[0]);
}

/* So much of the run, in steps. */
static uint64_t share(const sel_run *r, double of) {
  double steps =
      r->o.steps ? (double)r->o.steps : 1e8 * (isfinite(r->o.seconds) ? r->o.seconds : 100);
  return (uint64_t)(steps / of) + 1;
}

static void first_selections(sel_parts *s, uint64_t *seed) {
  for (uint32_t i = 0; i < s->n && !s->r->stop; i++) sel_search_part(s, &s->part[i], 0.1, seed);
  sel_parts_offer(s);
}

/* What greedy does, so that exact is not behind it: where relaxations may take all of the run. */
static void search_large(sel_parts *s, uint64_t *seed) {
  enum { LARGE = 2000 }; /* nodes */
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n; i++) n += sel_part_closed(&s->part[i]) ? 0 : s->part[i].q.nn;
  if (n > LARGE) sel_search_on(s, seed, share(s->r, 4));
}

/* A part that closes at its limit shows that the best known selection of the whole is the best. */
static bool settled(sel_parts *s, const sel_part *t) {
  if (t->cost <= t->limit || t->bound < t->limit) return false;
  s->impossible = true;
  return true;
}

/* Partial selections that may be tried: before a part's first relaxation as many as cost what that
 * may be expected to, but not most of the run unless the relaxation would take longer than that;
 * never more than half of the steps left. */
static uint64_t tables_for(const sel_run *r, const sel_part *t, bool first, uint64_t most) {
  uint64_t n = first ? 30000 + 2 * (uint64_t)t->q.nn * t->q.nn : most;
  uint64_t left = r->o.steps > r->steps ? (r->o.steps - r->steps) / (2 * WIDTH_STEPS) : 0;
  if (isfinite(r->o.seconds) && first) {
    double a_second = n > 16000000 * r->o.seconds ? 12000000 : 4000000;
    if (n > a_second * r->o.seconds) n = (uint64_t)(a_second * fmax(r->o.seconds, 0.1));
  }
  if (n > most) n = most;
  return r->o.steps && n > left ? left : n;
}

/* What a pass does with parts whose tables of partial selections are too large: nothing, bounds at
 * the root, the same with cuts from sums of rows, branching. */
typedef enum { TABLES, ROOT, SUMS, BRANCH } depth;

/* One pass over the parts; true when all are closed. partial: what may be spent on tables of
 * partial selections. */
static bool pass(sel_parts *s, depth how, uint64_t steps, uint64_t partial) {
  bool all = true;
  for (uint32_t i = 0; i < s->n && !s->r->stop && !s->impossible; i++) {
    sel_part *t = &s->part[i];
    set_limit(s, t);
    t->sums = how >= SUMS;
    if (!sel_part_closed(t) && (how != SUMS || t->q.nn >= SEL_SMALL) &&
        !sel_part_width(s->r, t, tables_for(s->r, t, how != BRANCH, partial)) && how != TABLES)
      sel_part_solve(s->r, s->mem, t, how < BRANCH, steps);
    sel_parts_offer(s);
    if (sel_good_enough(s->r)) {
      if (!s->r->stop && !sel_closed(s->r->best_cost, s->r->bound)) s->r->stop = "gap";
      return true;
    }
    all = all && sel_part_closed(t);
    settled(s, t);
  }
  sel_parts_offer(s);
  return s->impossible || (all && !s->r->stop);
}

/* Search and proofs by turns, of which the proofs get larger. Where the gap is wide no proof is to
 * be hoped for, and a better selection is; the more so when the last proofs closed next to nothing
 * of it. */
static void by_turns(sel_parts *s, uint64_t *seed) {
  sel_run *r = s->r;
  uint64_t steps = 20000000, partial = 20000000;
  double part = r->best_cost - r->bound > 0.03 * r->best_cost ? 0.75 : 0.3;
  for (bool closed = false; !closed && !r->stop; steps *= 6, partial *= 5) {
    sel_pause_after(r, part);
    sel_search_on(s, seed, isfinite(r->o.seconds) || r->o.steps ? 0 : share(r, 10));
    sel_resume(r);
    double gap = r->best_cost - r->bound;
    sel_pause_after(r, 0.6);
    closed = pass(s, BRANCH, steps, partial);
    if (sel_resume(r)) closed = false;
    if (gap > 0.03 * r->best_cost && r->best_cost - r->bound > 0.98 * gap) part = 0.95;
  }
}

/* Reduces, bounds and fixes until that stops paying; true when all is closed. */
static bool at_the_root(sel_parts *s, uint64_t *seed) {
  sel_run *r = s->r;
  for (int round = 0; round < 20; round++) {
    sel_parts_split(s);
    sel_parts_bound(s);
    first_selections(s, seed);
    if (s->n) qsort(s->part, s->n, sizeof *s->part, by_size);
    depth how = TABLES;
    for (bool closed = false, paused = false; how <= ROOT; how++) {
      if (how == ROOT) search_large(s, seed);
      sel_pause_after(r, how == TABLES ? 0.55 : 0.3);
      closed = pass(s, how, 0, 120000000), paused = sel_resume(r);
      if (how == ROOT && paused) return false;
      if ((closed && !paused) || r->stop) return true;
    }
    if (sel_parts_again(s)) continue;
    sel_pause_after(r, 0.3);
    bool closed = pass(s, SUMS, 0, 0), paused = sel_resume(r);
    if ((closed && !paused) || r->stop) return true;
    if (paused || !sel_parts_again(s)) return false;
  }
  return false;
}

void sel_run_exact(sel_run *r) {
  enum { LARGE = 200000 }; /* nodes */
  sel_parts s;
  uint64_t seed = r->o.seed;
  if (sel_search_only(r, &seed)) return;
  sel_pause_after(r, 0.2);
  sel_search_large(r, LARGE, 80, &seed);
  sel_resume(r);
  if (!sel_parts_open(&s, r)) return;
  if (at_the_root(&s, &seed)) return;
  sel_pause_after(r, 0.2);
  sel_known(r);
  sel_resume(r);
  by_turns(&s, &seed);
}
