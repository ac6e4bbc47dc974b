/* What explanations are made of: the terms of ids, chains of steps, and steps that lead to an
 * instance of a rule's left or right side, with the premises that its other roots are. */
#include "egraph/explain.h"

#include <string.h>

/* ---- terms ---- */

/* The term of an id: its original kids' terms are older. */
uint32_t ex_term_of(explainer *x, uint32_t id) {
  x->todo.n = 0;
  if (x->term.p[id] == NONE && !eg_push(x->m, &x->todo, id)) return NONE;
  while (x->todo.n) {
    uint32_t top = x->todo.p[x->todo.n - 1], n = eg_arity(x->g, top);
    const uint32_t *k = ex_origin(x, top);
    size_t before = x->todo.n;
    for (uint32_t i = 0; i < n; i++)
      if (x->term.p[k[i]] == NONE && !eg_push(x->m, &x->todo, k[i])) return NONE;
    if (x->todo.n > before) continue;
    if (!eg_vec_reserve(x->m, &x->todo, n)) return NONE;
    uint32_t *kids = x->todo.p + x->todo.n;
    for (uint32_t i = 0; i < n; i++) kids[i] = x->term.p[k[i]];
    const eg_head *h = &x->g->heads[eg_head_of(x->g, top)];
    uint32_t t = pf_intern(x->p, h->op, h->payload, kids, n);
    if (t == NONE) return NONE;
    x->term.p[top] = t;
    x->todo.n--;
  }
  return x->term.p[id];
}

/* ---- chains ---- */

bool ex_add_step(explainer *x, chain *c, pf_step s) {
  if (!eg_grow(x->m, (void **)&c->p, &c->cap, c->n + 1u, sizeof *c->p)) return false;
  c->p[c->n++] = s;
  return true;
}

void ex_drop(explainer *x, chain *c) {
  eg_release(x->m, c->p, c->cap * sizeof *c->p);
  *c = (chain){0};
}

bool ex_add_reversed(explainer *x, chain *c, const chain *from) {
  for (uint32_t i = from->n; i-- > 0;) {
    pf_step s = from->p[i];
    uint32_t t = s.before;
    s.before = s.after, s.after = t, s.forward = !s.forward;
    if (!ex_add_step(x, c, s)) return false;
  }
  return true;
}

/* Makes a chain a lemma; NONE in *lemma when it is empty. */
bool ex_finish(explainer *x, chain *c, uint32_t *lemma) {
  tarn_eg_proof *p = x->p;
  *lemma = NONE;
  if (!c->n) return true;
  if (p->n_steps + (uint64_t)c->n > MAX_STEPS) {
    eg_fail(x->m, TARN_NO_RESULT, "egraph: the explanation has more than %d steps", MAX_STEPS);
    return false;
  }
  if (!eg_grow(x->m, (void **)&p->step, &p->step_cap, p->n_steps + (size_t)c->n, sizeof *p->step) ||
      !eg_grow(x->m, (void **)&p->lemma, &p->lemma_cap, p->n_lemmas + 1u, sizeof *p->lemma))
    return false;
  memcpy(p->step + p->n_steps, c->p, c->n * sizeof *c->p);
  p->lemma[p->n_lemmas] = (tarn_eg_lemma){c->p[0].before, c->p[c->n - 1].after, p->n_steps, c->n};
  p->n_steps += c->n;
  *lemma = p->n_lemmas++;
  return true;
}

bool ex_kid_done(explainer *x, kid_work *w, uint32_t term, chain *sub) {
  uint32_t lemma;
  bool ok = term != NONE && ex_finish(x, sub, &lemma) && eg_push(x->m, &w->term, term) &&
            eg_push(x->m, &w->lemma, lemma);
  ex_drop(x, sub);
  return ok;
}

/* Ends the kids' work: the step from before to op(kids), if any kid changed; forward false: the
 * lemmas lead from op(kids) to before, and so does the step. The term op(kids) in *made. */
bool ex_kids_done(explainer *x, chain *c, kid_work *w, uint32_t head, uint32_t other, bool forward,
                  uint32_t *made) {
  const eg_head *h = &x->g->heads[head];
  bool changed = false, ok = true;
  for (size_t i = 0; i < w->lemma.n; i++) changed |= w->lemma.p[i] != NONE;
  *made = pf_intern(x->p, h->op, h->payload, w->term.p, h->n);
  ok = *made != NONE;
  if (ok && changed) {
    uint32_t at = (uint32_t)x->p->kid_lemmas.n;
    for (size_t i = 0; ok && i < w->lemma.n; i++)
      ok = eg_push(x->m, &x->p->kid_lemmas, w->lemma.p[i]);
    pf_step s = {TARN_EG_RULE_CONGRUENCE, 0,  forward ? other : *made,
                 forward ? *made : other, at, true};
    ok = ok && ex_add_step(x, c, s);
  }
  eg_vec_free(x->m, &w->term), eg_vec_free(x->m, &w->lemma);
  return ok;
}

/* ---- instances of a rule's sides ---- */

static bool mentions(const eg_rule *r, uint32_t atom, uint32_t v) {
  for (uint32_t i = 0; i < r->atom[atom].n_elem; i++) {
    const eg_elem *e = &r->elem[r->atom[atom].elem + i];
    if (e->kind == TARN_EG_PAT_VAR && e->ref == v) return true;
    if (e->kind == TARN_EG_PAT_NODE && mentions(r, e->ref, v)) return true;
  }
  return false;
}

/* The atom whose instance a variable stands for, when it names a node of the pattern; else NONE. */
static uint32_t var_atom(const use *u, uint32_t v) {
  const eg_rule *r = u->r;
  eg_src s = r->var[v];
  if (r->bare) return NONE;
  if (s.slot == SLOT_SELF) return mentions(r, s.atom, v) ? NONE : s.atom;
  for (uint32_t a = 0; a < r->n_atoms; a++)
    if (r->atom[a].parent == s.atom && r->atom[a].slot == s.slot && !mentions(r, a, v)) return a;
  return NONE;
}

bool ex_to_left(explainer *x, chain *c, const use *u, uint32_t atom, uint32_t *made);

/* A leaf of the class whose value is the class's, in all of these analyses; NONE: there is none. */
uint32_t ex_telling_leaf(const tarn_egraph *g, uint32_t id, uint64_t analyses) {
  uint32_t cls = eg_find(g, id);
  TARN_EG_NODES(g, cls, n) {
    tarn_eg_node leaf = tarn_eg_node_at(g, n);
    bool tells = leaf.n == 0;
    for (uint32_t a = 0; tells && a < g->n_analyses; a++) {
      uint64_t v;
      if (!(analyses >> a & 1)) continue;
      tells =
          g->analyses[a].make(g->analyses[a].user, g, &leaf, &v) && v == tarn_eg_data(g, a, cls);
    }
    if (tells) return n;
  }
  return NONE;
}

/* As ex_var_id(), or the leaf that shows the value that a condition read. */
static uint32_t shown_id(explainer *x, const use *u, uint32_t v) {
  uint32_t id = ex_var_id(x, u, v);
  if (!u->leaves || eg_arity(x->g, id) == 0) return id;
  uint32_t leaf = ex_telling_leaf(x->g, id, u->leaves);
  return leaf != NONE && ex_look_for(x, id, leaf, u->limit) && x->meet != NONE ? leaf : id;
}

/* From the term of id to that of variable v. */
bool ex_to_var(explainer *x, chain *c, const use *u, uint32_t id, uint32_t v, uint32_t *made) {
  uint32_t atom = var_atom(u, v);
  if (atom != NONE)
    return ex_explain(x, c, id, u->tuple[atom], u->limit) && ex_to_left(x, c, u, atom, made);
  uint32_t as = shown_id(x, u, v);
  *made = ex_term_of(x, as);
  return *made != NONE && ex_explain(x, c, id, as, u->limit);
}

static bool seg_kids(const explainer *x, const use *u, uint32_t seg, const uint32_t **kids,
                     uint32_t *n) {
  uint32_t atom = u->r->seg[seg].atom, node = u->tuple[atom], arity = eg_arity(x->g, node);
  const eg_elem *e = &u->r->elem[u->r->atom[atom].elem + (uint32_t)u->r->seg[seg].slot];
  *n = eg_seg_len(u->r, atom, e, u->tuple, arity);
  *kids = ex_origin(x, node) + eg_elem_pos(u->r, atom, e, u->tuple, arity);
  return true;
}

static bool left_kid(explainer *x, kid_work *w, const use *u, const eg_elem *e, uint32_t kid) {
  chain sub = {0};
  uint32_t made = NONE;
  bool ok;
  if (e->kind == TARN_EG_PAT_NODE)
    ok = ex_explain(x, &sub, kid, u->tuple[e->ref], u->limit) &&
         ex_to_left(x, &sub, u, e->ref, &made);
  else ok = ex_to_var(x, &sub, u, kid, e->ref, &made);
  return ex_kid_done(x, w, ok ? made : NONE, &sub);
}

static bool left_seg(explainer *x, kid_work *w, const use *u, uint32_t seg, const uint32_t *kids) {
  const uint32_t *want;
  uint32_t n;
  seg_kids(x, u, seg, &want, &n);
  for (uint32_t i = 0; i < n; i++) {
    chain sub = {0};
    bool ok = ex_explain(x, &sub, kids[i], want[i], u->limit);
    if (!ex_kid_done(x, w, ok ? ex_term_of(x, want[i]) : NONE, &sub)) return false;
  }
  return true;
}

/* From the term of the node matched by an atom to the instance of the pattern there: at most one
 * congruence. */
bool ex_to_left(explainer *x, chain *c, const use *u, uint32_t atom, uint32_t *made) {
  uint32_t node = u->tuple[atom], n = eg_arity(x->g, node), from = ex_term_of(x, node);
  const eg_atom *a = &u->r->atom[atom];
  kid_work w = {0};
  bool ok = from != NONE;
  for (uint32_t i = 0; ok && i < a->n_elem; i++) {
    const eg_elem *e = &u->r->elem[a->elem + i];
    const uint32_t *k = ex_origin(x, node) + eg_elem_pos(u->r, atom, e, u->tuple, n);
    ok = e->kind == TARN_EG_PAT_SEG ? left_seg(x, &w, u, e->ref, k) : left_kid(x, &w, u, e, k[0]);
  }
  if (!ok) {
    eg_vec_free(x->m, &w.term), eg_vec_free(x->m, &w.lemma);
    return false;
  }
  return ex_kids_done(x, c, &w, eg_head_of(x->g, node), from, true, made);
}

bool ex_to_right(explainer *x, chain *c, const use *u, uint32_t t, uint32_t *made);

/* From the instance of one kid of a right side, to the term of id. */
static bool right_kid(explainer *x, kid_work *w, const use *u, eg_ref ref, uint32_t id) {
  chain sub = {0}, there = {0};
  uint32_t made = NONE;
  bool ok;
  if (ref.kind == REF_NODE) { /* the instance became the node made for it, which was id's class */
    ok = ex_to_right(x, &sub, u, ref.i, &made) && ex_explain(x, &sub, u->made[ref.i], id, u->limit);
  } else {
    ok = ex_to_var(x, &there, u, id, ref.i, &made) && ex_add_reversed(x, &sub, &there);
    ex_drop(x, &there);
  }
  return ex_kid_done(x, w, ok ? made : NONE, &sub);
}

static bool right_seg(explainer *x, kid_work *w, const use *u, uint32_t seg, const uint32_t *ids,
                      uint32_t *used) {
  const uint32_t *have;
  seg_kids(x, u, seg, &have, used);
  for (uint32_t i = 0; i < *used; i++) {
    chain sub = {0};
    bool ok = ex_explain(x, &sub, have[i], ids[i], u->limit);
    if (!ex_kid_done(x, w, ok ? ex_term_of(x, have[i]) : NONE, &sub)) return false;
  }
  return true;
}

/* From the instance of right-side node t (in *made) to the term of the node made for it. */
bool ex_to_right(explainer *x, chain *c, const use *u, uint32_t t, uint32_t *made) {
  const eg_tnode *tn = &u->r->tnode[t];
  uint32_t node = u->made[t], at = 0, to = ex_term_of(x, node);
  const uint32_t *ids = ex_origin(x, node);
  kid_work w = {0};
  bool ok = to != NONE;
  for (uint32_t i = 0; ok && i < tn->n_ref; i++) {
    eg_ref ref = u->r->ref[tn->ref + i];
    uint32_t used = 1;
    ok = ref.kind == REF_SEG ? right_seg(x, &w, u, ref.i, ids + at, &used)
                             : right_kid(x, &w, u, ref, ids[at]);
    at += used;
  }
  if (!ok) {
    eg_vec_free(x->m, &w.term), eg_vec_free(x->m, &w.lemma);
    return false;
  }
  return ex_kids_done(x, c, &w, eg_head_of(x->g, node), to, false, made);
}

/* ---- premises: the other roots of a rule ---- */

/* From the instance of one atom to that of another, nodes of one class. */
static bool between_atoms(explainer *x, chain *c, const use *u, uint32_t from, uint32_t to) {
  chain back = {0};
  uint32_t made;
  bool ok = ex_to_left(x, &back, u, from, &made) && ex_add_reversed(x, c, &back) &&
            ex_explain(x, c, u->tuple[from], u->tuple[to], u->limit) &&
            ex_to_left(x, c, u, to, &made);
  ex_drop(x, &back);
  return ok;
}

/* From what the class of the root at atom stands for in the step, which rewrites the instance of
 * the atom `by`, to the instance of the root's pattern. */
static bool premise_into(explainer *x, chain *c, const use *u, uint32_t by, uint32_t atom) {
  uint32_t v = u->r->root_var[u->r->atom[atom].block], made;
  if (v == NONE) return true;
  if (by != NONE && u->r->root_var[u->r->atom[by].block] == v)
    return between_atoms(x, c, u, by, atom);
  uint32_t is = var_atom(u, v);
  if (is != NONE) return is == atom || between_atoms(x, c, u, is, atom);
  uint32_t id = shown_id(x, u, v);
  return ex_explain(x, c, id, u->tuple[atom], u->limit) && ex_to_left(x, c, u, atom, &made);
}

/* The place of the premises' lemmas, as a step has it. */
bool ex_premises(explainer *x, const use *u, uint32_t by, uint32_t *place) {
  eg_vec all = {0};
  bool ok = eg_push(x->m, &all, 0);
  for (uint32_t a = 0; ok && a < u->r->n_atoms && u->r->joined; a++) {
    chain c = {0};
    uint32_t lemma = NONE;
    if (u->r->atom[a].parent != NONE || a == by) continue;
    ok = premise_into(x, &c, u, by, a);
    if (ok && c.n && c.p[0].before != c.p[c.n - 1].after) ok = ex_finish(x, &c, &lemma);
    ok = ok && (lemma == NONE || eg_push(x->m, &all, lemma));
    ex_drop(x, &c);
  }
  *place = 0;
  if (ok && all.n > 1) {
    all.p[0] = (uint32_t)all.n - 1;
    *place = 1 + (uint32_t)x->p->kid_lemmas.n;
    for (size_t i = 0; ok && i < all.n; i++) ok = eg_push(x->m, &x->p->kid_lemmas, all.p[i]);
  }
  eg_vec_free(x->m, &all);
  return ok;
}
