/* Finds the parts of terms that a step leaves unchanged: random tensors or the parameters of a
 * lemma may replace them. */
#include "rules/proof/proof.h"

static void reach(tarn_ctx *cx, tarn_lang *L, tarn_term t, tarn_map *count, uint32_t round) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *seen = tarn_map_new(cx);
  bool fresh;
  tarn_push(cx, &todo, t);
  while (todo.n) {
    tarn_term u = todo.p[--todo.n];
    tarn_map_at(seen, u, &fresh);
    if (!fresh) continue;
    uint64_t *c = tarn_map_at(count, u, NULL);
    if (*c == round) (*c)++; /* so far in all of them */
    const tarn_node *x = tarn_term_get(L, u);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(cx, &todo, x->kid[i]);
  }
}

/* Leaves of one term; cut counts for each in how many terms it was one. */
static void cut_one(pf_frontier *f, tarn_ctx *cx, tarn_term t, const tarn_map *count, uint32_t n,
                    tarn_map *cut) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *seen = tarn_map_new(cx);
  bool fresh;
  tarn_push(cx, &todo, t);
  while (todo.n) {
    tarn_term u = todo.p[--todo.n];
    tarn_map_at(seen, u, &fresh);
    if (!fresh) continue;
    const tarn_node *x = tarn_term_get(f->L, u);
    pf_cut how = tarn_type_get(f->L, x->type)->tuple ? PF_NEVER : f->cut(f->user, u);
    const uint64_t *c = tarn_map_get(count, u);
    tarn_map_at(f->met, u, NULL);
    if (how == PF_ALWAYS || (how == PF_COMMON && c && *c == n && !tarn_map_get(f->opened, u))) {
      ++*tarn_map_at(cut, u, NULL);
      continue;
    }
    x = tarn_term_get(f->L, u);
    for (uint32_t i = x->n; i-- > 0;) tarn_push(cx, &todo, x->kid[i]);
  }
}

void pf_cut_off(pf_frontier *f, const tarn_term *t, uint32_t n) {
  tarn_ctx *cx = tarn_lang_ctx(f->L);
  tarn_map *count = tarn_map_new(cx);
  for (uint32_t i = 0; i < n; i++) reach(cx, f->L, t[i], count, i);
  for (bool again = true; again;) {
    again = false;
    f->leaf = tarn_map_new(cx), f->met = tarn_map_new(cx);
    for (uint32_t i = 0; i < n; i++) cut_one(f, cx, t[i], count, n, f->leaf);
    for (uint32_t i = 0; i < tarn_map_count(f->leaf); i++) {
      uint64_t u, times = *tarn_map_item(f->leaf, i, &u);
      if (times == n || f->cut(f->user, (tarn_term)u) == PF_ALWAYS) continue;
      tarn_map_at(f->opened, u, NULL); /* some term has it only below other leaves */
      again = true;
    }
  }
}

/* Is something that t is made of, but t itself and constants, in the set? */
static bool made_of(const tarn_lang *L, tarn_term t, const tarn_map *set) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  TARN_VEC(tarn_term) todo = {0};
  tarn_map *seen = tarn_map_new(cx);
  bool fresh;
  tarn_push(cx, &todo, t);
  while (todo.n) {
    tarn_term u = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(L, u);
    tarn_map_at(seen, u, &fresh);
    if (!fresh) continue;
    if (u != t && x->op != TARN_OP_CONST && tarn_map_get(set, u)) return true;
    for (uint32_t i = 0; i < x->n; i++) tarn_push(cx, &todo, x->kid[i]);
  }
  return false;
}

bool pf_open_more(pf_frontier *f) {
  bool any = false;
  for (uint32_t i = 0; i < tarn_map_count(f->leaf); i++) {
    uint64_t t;
    tarn_map_item(f->leaf, i, &t);
    if (f->cut(f->user, (tarn_term)t) != PF_COMMON || !made_of(f->L, (tarn_term)t, f->met))
      continue;
    tarn_map_at(f->opened, t, NULL);
    any = true;
  }
  return any;
}
