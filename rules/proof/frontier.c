/* Finds the parts of terms that a step leaves unchanged: random tensors or the parameters of a
 * lemma may replace them. */
#include "rules/proof/proof.h"

/* The mark of a term, 0 at first. Marks are kept from call to call: terms are many. */
static uint64_t *mark_of(tarn_ctx *cx, pf_marks *m, tarn_term t) {
  while (m->n <= t) tarn_push(cx, m, 0);
  return &m->p[t];
}
static void begin(tarn_ctx *cx, pf_walks *w, tarn_term t) {
  w->walk++;
  w->todo.n = 0;
  tarn_push(cx, &w->todo, t);
}
/* Is it met for the first time in this walk? */
static bool first_time(tarn_ctx *cx, pf_walks *w, tarn_term t) {
  uint64_t *seen = mark_of(cx, &w->seen, t);
  bool first = *seen != w->walk;
  *seen = w->walk;
  return first;
}

/* Walks over what t is made of. in_all is set to this walk where each walk since `first` was. */
static void reach(pf_frontier *f, tarn_ctx *cx, tarn_term t, uint64_t first) {
  pf_walks *w = f->walks;
  begin(cx, w, t);
  while (w->todo.n) {
    tarn_term u = w->todo.p[--w->todo.n];
    if (!first_time(cx, w, u)) continue;
    uint64_t *in = mark_of(cx, &w->in_all, u);
    if (*in == w->walk - 1 || w->walk == first) *in = w->walk; /* so far in all of them */
    const tarn_node *x = tarn_term_get(f->L, u);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(cx, &w->todo, x->kid[i]);
  }
}

/* Adds the leaves of one term, and counts for each leaf the terms that have it. in_all: the mark of
 * what all terms have. */
static void cut_one(pf_frontier *f, tarn_ctx *cx, tarn_term t, uint64_t in_all) {
  pf_walks *w = f->walks;
  begin(cx, w, t);
  while (w->todo.n) {
    tarn_term u = w->todo.p[--w->todo.n];
    if (!first_time(cx, w, u)) continue;
    const tarn_node *x = tarn_term_get(f->L, u);
    pf_cut how = tarn_type_get(f->L, x->type)->tuple ? PF_NEVER : f->cut(f->user, u);
    tarn_map_at(f->met, u, NULL);
    if (how == PF_ALWAYS || (how == PF_COMMON && *mark_of(cx, &w->in_all, u) == in_all &&
                             !tarn_map_get(f->opened, u))) {
      ++*tarn_map_at(f->leaf, u, NULL);
      continue;
    }
    x = tarn_term_get(f->L, u);
    for (uint32_t i = x->n; i-- > 0;) tarn_push(cx, &w->todo, x->kid[i]);
  }
}

void pf_cut_off(pf_frontier *f, const tarn_term *t, uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(f->L);
  uint64_t first = f->walks->walk + 1;
  for (uint32_t i = 0; i < n; i++) reach(f, cx, t[i], first);
  uint64_t in_all = f->walks->walk;
  for (bool again = true; again;) {
    again = false;
    f->leaf = tarn_map_new(cx), f->met = tarn_map_new(cx);
    for (uint32_t i = 0; i < n; i++) cut_one(f, cx, t[i], in_all);
    for (uint32_t i = 0; i < tarn_map_count(f->leaf); i++) {
      uint64_t u, times = *tarn_map_item(f->leaf, i, &u);
      if (times == n || f->cut(f->user, (tarn_term)u) == PF_ALWAYS) continue;
      tarn_map_at(f->opened, u, NULL); /* some term has it only below other leaves */
      again = true;
    }
  }
}

/* Is something that t is made of, but t itself and constants, in the set? */
static bool made_of(const pf_frontier *f, tarn_term t, const tarn_map *set) {
  tarn_ctx *cx = tarn_lang_ctx(f->L);
  pf_walks *w = f->walks;
  begin(cx, w, t);
  while (w->todo.n) {
    tarn_term u = w->todo.p[--w->todo.n];
    const tarn_node *x = tarn_term_get(f->L, u);
    if (!first_time(cx, w, u)) continue;
    if (u != t && x->op != TARN_OP_CONST && tarn_map_get(set, u)) return true;
    for (uint32_t i = 0; i < x->n; i++) tarn_push(cx, &w->todo, x->kid[i]);
  }
  return false;
}

bool pf_open_more(pf_frontier *f) {
  bool any = false;
  for (uint32_t i = 0; i < tarn_map_count(f->leaf); i++) {
    uint64_t t;
    tarn_map_item(f->leaf, i, &t);
    if (f->cut(f->user, (tarn_term)t) != PF_COMMON || !made_of(f, (tarn_term)t, f->met)) continue;
    tarn_map_at(f->opened, t, NULL);
    any = true;
  }
  return any;
}
