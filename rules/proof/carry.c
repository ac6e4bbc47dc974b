/* Which large constants have their values in a proof: those without which a step does not hold.
 * Most weights are moved about and never looked into; of them a fingerprint will do. */
#include "rules/proof/proof.h"

typedef TARN_VEC(tarn_term) terms;
typedef struct carrying {
  pf_judge *judge;
  pf_proof *p;
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_map *hidden; /* for pf_subst(): without any large constant */
  tarn_map *seen;   /* terms whose large constants are in it */
  tarn_map *had;    /* constants that the checker will have; NULL */
} carrying;

/* Large constants below the ends of a step, the nearest first. seen: terms not to be looked at. */
static terms large_below(const carrying *c, const pf_step *s, tarn_map *seen) {
  terms todo = {0}, found = {0};
  bool fresh;
  tarn_push(c->cx, &todo, s->before);
  tarn_push(c->cx, &todo, s->after);
  if (s->at != TARN_NONE) tarn_push(c->cx, &todo, s->at);
  for (uint32_t i = 0; i < s->nextra; i++) tarn_push(c->cx, &todo, s->extra[i]);
  for (uint32_t i = 0; i < todo.n; i++) {
    tarn_map_at(seen, todo.p[i], &fresh);
    if (!fresh) continue;
    if (pf_stand_in(c->L, todo.p[i]) != TARN_NONE) tarn_push(c->cx, &found, todo.p[i]);
    const tarn_node *x = tarn_term_get(c->L, todo.p[i]);
    for (uint32_t k = 0; k < x->n; k++) tarn_push(c->cx, &todo, x->kid[k]);
  }
  return found;
}

static void hide(const carrying *c, tarn_map *with, tarn_term t) {
  *tarn_map_at(with, t, NULL) = (uint64_t)pf_stand_in(c->L, t) + 1;
}

/* Does the step hold with other terms for some? *changed: are there any? */
static bool holds_with(const carrying *c, const pf_step *s, tarn_map *with, bool *changed) {
  const char *why;
  pf_step t = *s;
  tarn_term *extra = TARN_ARRAY(c->cx, tarn_term, s->nextra + 1u);
  t.before = pf_subst(c->L, s->before, with), t.after = pf_subst(c->L, s->after, with);
  *changed = t.before != s->before || t.after != s->after;
  if (s->at != TARN_NONE) t.at = pf_subst(c->L, s->at, with), *changed |= t.at != s->at;
  for (uint32_t i = 0; i < s->nextra; i++) {
    extra[i] = pf_subst(c->L, s->extra[i], with);
    *changed |= extra[i] != s->extra[i];
  }
  t.extra = extra, t.nbind = 0;
  return !*changed || pf_holds(c->judge, c->p, 0, &t, &why);
}

/* As many of the nearest as it takes, to a factor of two. */
static void carry_for(const carrying *c, const pf_step *s) {
  terms all = large_below(c, s, tarn_map_new(c->cx));
  uint32_t n = 0;
  for (bool holds = false, changed = true; !holds && changed;) {
    tarn_map *with = tarn_map_new(c->cx);
    n = n ? 2 * n : 1;
    for (uint32_t i = n; i < all.n; i++) hide(c, with, all.p[i]);
    holds = holds_with(c, s, with, &changed);
  }
  for (uint32_t i = 0; i < n && i < all.n; i++)
    if (!c->had || !tarn_map_get(c->had, all.p[i])) *tarn_map_at(c->p->carried, all.p[i], NULL) = 1;
}

/* The checker finds the constants of the program it is given. */
static tarn_map *constants_of(const carrying *c, const tarn_program *m) {
  tarn_map *had = tarn_map_new(c->cx), *known = pf_constants(m);
  for (uint32_t i = 0; i < tarn_map_count(known); i++) {
    uint64_t hash, at = *tarn_map_item(known, i, &hash);
    for (const pf_known *k = (const pf_known *)(uintptr_t)at; k; k = k->next)
      *tarn_map_at(had, k->constant, NULL) = 1;
  }
  return had;
}

void pf_carry(const tarn_ruleset *rs, pf_proof *p, const tarn_program *program) {
  carrying c = {.judge = pf_judge_new(rs), .p = p, .L = p->L, .cx = rs->cx};
  bool changed;
  c.hidden = tarn_map_new(c.cx), c.seen = tarn_map_new(c.cx);
  p->carried = tarn_map_new(c.cx);
  if (program) c.had = constants_of(&c, program);
  for (uint32_t i = 0; i < p->step.n; i++) {
    const pf_step *s = &p->step.p[i];
    if (s->kind != PF_RULE && s->kind != PF_NORM && s->kind != PF_VALUE) continue;
    terms more = large_below(&c, s, c.seen);
    for (uint32_t k = 0; k < more.n; k++) hide(&c, c.hidden, more.p[k]);
    if (!holds_with(&c, s, c.hidden, &changed)) carry_for(&c, s);
  }
}
