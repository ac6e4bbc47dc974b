/* Joining the atoms of a rule with several roots.
 *
 * After each atom the next one is chosen: the one that the fewest nodes fit, given the classes that
 * have been met, counted in this graph at this place and not on the average. So a class with many
 * uses is not gone through where another kid says more, which is what makes joins of cycles
 * worst-case optimal over binary relations. An atom that nothing fits ends the branch at once. What
 * is counted and listed is kept for the search (uses.c).
 *
 * Source: Ngo et al., Worst-case Optimal Join Algorithms (J. ACM 2018); Wang et al., Free Join
 * (SIGMOD 2023). */
#include "egraph/match.h"

#include <string.h>

/* How an atom's nodes are found: those with cls at slot. */
typedef struct way {
  uint32_t atom, cls, slot, n;
} way;
enum { UNCOUNTED = NONE, SELF = (uint32_t)SLOT_SELF };

void eg_join_begin(eg_searcher *s, uint32_t atom) {
  memset(s->done, 0, s->r->n_atoms * sizeof *s->done);
  for (uint32_t i = 0; i < s->r->n_met; i++) s->met[i].atom = NONE;
  s->done[atom] = true, s->left = s->r->n_atoms - 1;
}

/* ---- counting ---- */

static bool is_leaf(const eg_test *t) {
  return t->n == 0 && !t->segs && t->op_how == TARN_EG_EXACT && t->payload_how == TARN_EG_EXACT;
}

/* Of few, by going through them; of many, by their list. false: gave up. */
static bool count(eg_searcher *s, way *w) {
  enum { SHORT = 16 };
  const tarn_egraph *g = s->g;
  uint32_t test = s->r->atom[w->atom].test, n, looked = 0;
  w->n = 0;
  if (w->slot == SELF && !(g->mask[w->cls] & s->rs->test[test].ops)) return true;
  eg_walker at = eg_walk_from(g, w->cls, w->slot);
  while (looked++ < SHORT) {
    if (!eg_walk(g, &at, &n)) return true;
    w->n += n != NONE && head_ok(s, test, g->rec[n].head);
  }
  const eg_kind *k = eg_kind_of(s, test, w->cls, w->slot);
  if (k) w->n = k->n;
  return k != NULL;
}

/* ---- choosing ---- */

/* The ways to an atom: each place whose class is known. A leaf is always known. */
static bool each_way(eg_searcher *s, uint32_t atom, uint32_t not_slot,
                     bool (*fn)(eg_searcher *s, way w, way *best), way *best) {
  const eg_rule *r = s->r;
  for (uint32_t i = r->place_at[atom]; i < r->place_at[atom + 1]; i++) {
    eg_place p = r->place[i];
    if (s->met[p.var].atom == NONE || (uint32_t)p.slot == not_slot) continue;
    uint32_t cls = eg_src_class(s->g, r, s->met[p.var], s->tuple);
    if (!fn(s, (way){atom, cls, (uint32_t)p.slot, UNCOUNTED}, best)) return false;
  }
  return true;
}

/* The first way is not counted until there is a second. */
static bool better(eg_searcher *s, way w, way *best) {
  if (best->atom == NONE) {
    *best = w;
    return true;
  }
  if (best->n == UNCOUNTED && !count(s, best)) return false;
  if (best->n <= 1) return true;
  if (!count(s, &w)) return false;
  if (w.n < best->n) *best = w;
  return true;
}
static bool any(eg_searcher *s, way w, way *best) {
  (void)s;
  *best = w;
  return false;
}

/* No place of any atom is known: the atom that the fewest nodes fit. */
static bool smallest(eg_searcher *s, way *best) {
  for (uint32_t a = 0; a < s->r->n_atoms; a++) {
    if (s->done[a]) continue;
    const eg_kind *k = eg_kind_of(s, s->r->atom[a].test, NONE, NONE);
    if (!k) return false;
    if (best->atom == NONE || k->n < best->n) *best = (way){a, NONE, NONE, k->n};
  }
  return true;
}

static bool choose(eg_searcher *s, way *best) {
  *best = (way){NONE, NONE, NONE, UNCOUNTED};
  for (uint32_t a = 0; a < s->r->n_atoms && (best->n > 1 || best->n == UNCOUNTED); a++) {
    if (s->done[a]) continue;
    if (is_leaf(&s->rs->test[s->r->atom[a].test])) *best = (way){a, NONE, SELF, 1};
    else if (!each_way(s, a, NONE, better, best)) return false;
  }
  return best->atom != NONE || smallest(s, best);
}

/* ---- going through the nodes ---- */

static bool take(eg_searcher *s, uint32_t atom, uint32_t node) {
  return !eg_mode_allows(s, atom, node) || eg_run_from(s, atom, node);
}

static bool take_list(eg_searcher *s, uint32_t atom, const eg_kind *k) {
  uint32_t start = k->start, n = k->n; /* the list may move, and so may k */
  for (uint32_t i = 0; i < n; i++)
    if (!take(s, atom, s->kinds.list.p[start + i])) return false;
  return !eg_out_of_time(s, n);
}

/* Of many, those that are right are known the next time. */
static bool take_all(eg_searcher *s, const way *w) {
  enum { MANY = 32 };
  const tarn_egraph *g = s->g;
  uint32_t test = s->r->atom[w->atom].test, n, looked = 0;
  eg_walker at = eg_walk_from(g, w->cls, w->slot);
  for (; eg_walk(g, &at, &n); looked++)
    if (n != NONE && head_ok(s, test, g->rec[n].head) && !take(s, w->atom, n)) return false;
  if (looked > MANY && !eg_kind_note(s, test, w->cls, w->slot)) return false;
  return !eg_out_of_time(s, looked);
}

static bool go_through(eg_searcher *s, const way *w) {
  enum { WORTH_BOTH = 8 }; /* nodes */
  uint32_t test = s->r->atom[w->atom].test;
  if (is_leaf(&s->rs->test[test])) {
    uint32_t leaf = s->leaf[test];
    return leaf == NONE || take(s, w->atom, leaf);
  }
  const eg_kind *k = eg_kind_again(s, test, w->cls, w->slot);
  if (s->gave_up) return false;
  if (!k) return take_all(s, w);
  way other;
  if (w->slot != NONE && k->n > WORTH_BOTH && !each_way(s, w->atom, w->slot, any, &other)) {
    k = eg_kind_both(s, k, other.cls, other.slot);
    if (!k) return !s->gave_up;
  }
  return take_list(s, w->atom, k);
}

bool eg_join_next(eg_searcher *s) {
  const eg_instr *code = s->code;
  uint32_t len = s->len;
  way w;
  if (!choose(s, &w)) return false;
  if (!w.n) return !eg_out_of_time(s, 1);
  s->done[w.atom] = true, s->left--;
  s->code = s->r->plan[w.atom], s->len = s->r->plan_len[w.atom];
  bool go = go_through(s, &w);
  s->done[w.atom] = false, s->left++;
  s->code = code, s->len = len;
  return go;
}
