/* Why a node is in the graph: what was given, then the applications of rules of which each made a
 * node that the next one matched, up to the node that is asked about.
 *
 * Nodes are numbered in order of time, and what a rule makes is younger than what it matched. So a
 * node was made by the first record that has it and matched only older ones, if any; of what that
 * matched, the youngest is what had to be made before. */
#include "egraph/explain.h"

static uint32_t youngest(const use *u) {
  uint32_t n = u->r->bare ? 1 : u->r->n_atoms, most = 0;
  for (uint32_t a = 0; a < n; a++)
    if (u->tuple[a] > most) most = u->tuple[a];
  return most;
}

/* Of each id, 1 + the record that made it; 0: none did. */
static bool find_makers(explainer *x, eg_vec *maker) {
  if (!ex_filled(x, maker, (size_t)x->g->n_ids + 1, 0)) return false;
  for (uint32_t e = 0; e < x->n_e; e++) {
    if ((x->g->log.p[x->e[e].at] & 3) != LOG_RULE) continue;
    use u = ex_read_use(x, e);
    uint32_t after = youngest(&u);
    for (uint32_t i = 0; i < u.n_made; i++)
      if (u.made[i] < x->g->n_ids && u.made[i] > after && !maker->p[u.made[i]])
        maker->p[u.made[i]] = e + 1;
  }
  return true;
}

/* One application as a lemma of one step, from the instance of its left side to that of its right.
 */
static bool add_making(explainer *x, uint32_t e) {
  use u = ex_read_use(x, e);
  const eg_part *part = u.part == PART_FUNCTION ? NULL : &u.r->part[u.part];
  uint32_t from, to, left = NONE, right = NONE, lemma;
  chain there = {0}, step = {0};
  ex_rule_ends(x, &u, &from, &to);
  uint32_t atom = u.r->bare ? NONE : part && part->atom != NONE ? part->atom : 0;
  bool ok =
      atom != NONE ? ex_to_left(x, &there, &u, atom, &left) : (left = ex_term_of(x, from)) != NONE;
  if (ok && part && part->result.kind == REF_NODE)
    ok = ex_to_right(x, &there, &u, part->result.i, &right);
  else if (ok) ok = (right = ex_term_of(x, to)) != NONE;
  ok = ok && ex_add_step(x, &step, (pf_step){u.r->id, 0, left, right, 0, true}) &&
       ex_finish(x, &step, &lemma);
  ex_drop(x, &there), ex_drop(x, &step);
  return ok;
}

static bool add_end(explainer *x, uint32_t id) {
  tarn_eg_proof *p = x->p;
  uint32_t t = ex_term_of(x, id);
  if (t == NONE ||
      !eg_grow(x->m, (void **)&p->lemma, &p->lemma_cap, p->n_lemmas + 1u, sizeof *p->lemma))
    return false;
  p->lemma[p->n_lemmas++] = (tarn_eg_lemma){t, t, p->n_steps, 0};
  return true;
}

bool ex_existence(explainer *x, uint32_t id, uint32_t given) {
  eg_vec maker = {0}, way = {0};
  uint32_t at = id;
  bool ok = find_makers(x, &maker);
  while (ok && at >= given && maker.p[at]) {
    use u = ex_read_use(x, maker.p[at] - 1);
    ok = eg_push(x->m, &way, maker.p[at] - 1);
    at = youngest(&u);
  }
  ok = ok && add_end(x, at);
  for (size_t i = way.n; ok && i-- > 0;) ok = add_making(x, way.p[i]);
  ok = ok && add_end(x, id);
  eg_vec_free(x->m, &maker), eg_vec_free(x->m, &way);
  return ok;
}
