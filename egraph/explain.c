/* Explanations from the log.
 *
 * The records of the log are edges between ids, in order of time.  A chain from a to b is a
 * cheapest path in that graph; what an edge needs (kids that were matched through other members of
 * their class, kids of congruent nodes) is explained by edges older than it.  Such a chain always
 * exists, because the classes were equal when the record was written; and going back in time ends.
 * Finished chains are kept as lemmas and used again. */
#include "egraph/proof.h"

#include <string.h>

typedef struct edge {
  uint32_t x, y;
  size_t at; /* record */
} edge;

typedef struct chain {
  pf_step *p;
  uint32_t n;
  size_t cap;
} chain;

typedef struct front {
  eg_vec dist, via, mark; /* per id; via = edge * 2 + (entered backwards) */
  eg_vec heap;            /* pairs (distance, id) */
  uint64_t work;          /* edges looked at */
} front;

typedef struct explainer {
  tarn_egraph *g;
  tarn_eg_proof *p;
  eg_mem *m; /* the proof's: scratch is counted there too */
  edge *e;
  uint32_t n_e;
  size_t e_cap;
  eg_vec off, adj; /* edges of each id */
  eg_vec cost;     /* of each edge that was looked at; 0: not yet */
  eg_vec term;     /* per id, NONE = not yet made */
  front side[2];   /* of the search at work: from either end */
  uint32_t round, meet;
  uint64_t work_left; /* edges that may still be looked at */
  eg_vec todo;
  eg_vec cache; /* triples (a, b, lemma) by hash; a = NONE: empty */
  uint32_t cached;
  uint32_t depth;
} explainer;

enum { MAX_DEPTH = 50000, MAX_STEPS = 4000000, CONFLICT_WORK = 50000000 };
enum { STACK = 1 << 28 }; /* of MAX_DEPTH chains in one another */

typedef struct use { /* one application of a rule, as the log has it */
  const eg_rule *r;
  const uint32_t *tuple, *made;
  uint32_t part, n_made;
  uint32_t limit;  /* edges below may be used */
  uint64_t leaves; /* analyses whose values its step is to show by leaves */
} use;

static bool explain_into(explainer *x, chain *c, uint32_t a, uint32_t b, uint32_t limit);

/* ---- records ---- */

static uint32_t rec_len(const uint32_t *p) {
  switch (p[0] & 3) {
  case LOG_CONG: return 2;
  case LOG_RULE: return p[0] >> 2 & 0xFF ? p[0] >> 2 & 0xFF : p[1];
  default: return p[0] >> 2 & 0x3FFF;
  }
}

/* The ids that a record joins, but for LOG_RULE. */
static edge plain_edge(const uint32_t *p, size_t at) {
  return (p[0] & 3) == LOG_CONG ? (edge){p[0] >> 2, p[1], at} : (edge){p[1], p[2], at};
}

/* The analyses with leaves that a rule may have asked for the values of what it matched. */
static uint64_t shows(const tarn_egraph *g, const eg_rule *r) {
  uint64_t all = 0, read = r->apply ? UINT64_MAX : 0;
  for (uint32_t a = 0; a < g->n_analyses; a++) all |= g->analyses[a].leaves ? UINT64_C(1) << a : 0;
  for (uint32_t i = 0; all && i < r->n_cond; i++) read |= r->cond[i].reads;
  for (uint32_t i = 0; all && i < r->n_tnode; i++)
    if (r->tnode[i].pat->payload_how == TARN_EG_COMPUTED ||
        r->tnode[i].pat->op_how == TARN_EG_COMPUTED)
      read = UINT64_MAX;
  return r->bare ? 0 : all & read;
}

static use read_use(const explainer *x, uint32_t e) {
  const uint32_t *p = x->g->log.p + x->e[e].at;
  bool small = p[0] >> 2 & 0xFF;
  uint32_t head = small ? 1 : 4, set = small ? p[0] >> 26 : p[2];
  uint32_t rule = small ? p[0] >> 14 & 0xFFF : p[3] & 0xFFFFF,
           part = small ? p[0] >> 10 & 15 : p[3] >> 20;
  if (small && part == LOG_FUNCTION) part = PART_FUNCTION;
  const eg_rule *r = &x->g->sets[set]->rule[rule];
  use u = {r, p + head, p + head + r->n_words, part, 0, e, shows(x->g, r)};
  u.n_made = rec_len(p) - head - r->n_words;
  return u;
}

static const uint32_t *origin(const explainer *x, uint32_t id) {
  return eg_origin(x->g, id, eg_arity(x->g, id));
}

/* The id that stands for a variable: where the rule reads it, as the matched node was made. */
static uint32_t var_id(const explainer *x, const use *u, uint32_t v) {
  eg_src s = u->r->var[v];
  if (u->r->bare || s.slot == SLOT_SELF) return u->tuple[s.atom];
  uint32_t node = u->tuple[s.atom];
  return origin(x, node)[eg_slot_pos(u->r, s, u->tuple, eg_arity(x->g, node))];
}

static void rule_ends(const explainer *x, const use *u, uint32_t *from, uint32_t *to) {
  if (u->part == PART_FUNCTION) {
    *from = u->tuple[0], *to = u->made[0];
    return;
  }
  const eg_part *part = &u->r->part[u->part];
  *to = part->result.kind == REF_NODE ? u->made[part->result.i] : var_id(x, u, part->result.i);
  *from = part->atom != NONE  ? u->tuple[part->atom]
          : part->var == NONE ? u->tuple[0]
                              : var_id(x, u, part->var);
}

/* ---- the graph of records ---- */

static bool read_log(explainer *x) {
  tarn_egraph *g = x->g;
  for (size_t at = 0; at < g->log.n; at += rec_len(g->log.p + at)) {
    if (!eg_grow(x->m, (void **)&x->e, &x->e_cap, x->n_e + 1u, sizeof *x->e)) return false;
    const uint32_t *p = g->log.p + at;
    x->e[x->n_e] = plain_edge(p, at);
    if ((p[0] & 3) == LOG_RULE) {
      use u = read_use(x, x->n_e);
      rule_ends(x, &u, &x->e[x->n_e].x, &x->e[x->n_e].y);
    }
    x->n_e++;
  }
  return true;
}

static bool filled(explainer *x, eg_vec *v, size_t n, int byte) {
  if (!eg_vec_reserve(x->m, v, n)) return false;
  v->n = n;
  memset(v->p, byte, n * sizeof *v->p);
  return true;
}

static bool index_edges(explainer *x) {
  uint32_t n = x->g->n_ids;
  if (!filled(x, &x->off, n + (size_t)2, 0) || !filled(x, &x->adj, 2 * (size_t)x->n_e + 1, 0))
    return false;
  uint32_t *off = x->off.p;
  for (uint32_t e = 0; e < x->n_e; e++) off[x->e[e].x + 2]++, off[x->e[e].y + 2]++;
  for (uint32_t i = 0; i < n; i++) off[i + 2] += off[i + 1];
  for (uint32_t e = 0; e < x->n_e; e++)
    x->adj.p[off[x->e[e].x + 1]++] = e, x->adj.p[off[x->e[e].y + 1]++] = e;
  for (front *f = x->side; f < x->side + 2; f++)
    if (!filled(x, &f->dist, n, 0) || !filled(x, &f->via, n, 0) || !filled(x, &f->mark, n, 0))
      return false;
  return filled(x, &x->cost, x->n_e + (size_t)1, 0) && filled(x, &x->term, n, 0xFF);
}

/* ---- the cheapest path ---- */

/* An estimate of how many steps an edge unfolds to. */
static uint32_t edge_cost(const explainer *x, uint32_t e) {
  const uint32_t *p = x->g->log.p + x->e[e].at;
  uint32_t kind = p[0] & 3, cost = 2;
  if (kind == LOG_CONG) {
    edge at = x->e[e];
    uint32_t n = eg_arity(x->g, at.x);
    const uint32_t *a = origin(x, at.x), *b = origin(x, at.y);
    for (uint32_t i = 0; i < n; i++) cost += a[i] != b[i] ? 3 : 0;
  } else if (kind == LOG_RULE) {
    use u = read_use(x, e);
    for (uint32_t a = 0; a < u.r->n_atoms; a++) {
      const eg_atom *at = &u.r->atom[a];
      if (at->parent == NONE) continue;
      eg_src s = {at->parent, at->slot};
      uint32_t up = u.tuple[at->parent];
      cost += origin(x, up)[eg_slot_pos(u.r, s, u.tuple, eg_arity(x->g, up))] != u.tuple[a] ? 3 : 0;
    }
  }
  return cost;
}

static bool heap_put(explainer *x, eg_vec *h, uint32_t d, uint32_t id) {
  if (!eg_vec_reserve(x->m, h, 2)) return false;
  size_t i = h->n / 2;
  h->n += 2;
  for (size_t up; i && h->p[2 * (up = (i - 1) / 2)] > d; i = up)
    h->p[2 * i] = h->p[2 * up], h->p[2 * i + 1] = h->p[2 * up + 1];
  h->p[2 * i] = d, h->p[2 * i + 1] = id;
  return true;
}

static uint32_t heap_take(eg_vec *heap, uint32_t *d) {
  uint32_t *h = heap->p, id = h[1];
  *d = h[0];
  heap->n -= 2;
  size_t n = heap->n / 2, i = 0;
  uint32_t ld = h[2 * n], lid = h[2 * n + 1];
  for (size_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && h[2 * (k + 1)] < h[2 * k]) k++;
    if (h[2 * k] >= ld) break;
    h[2 * i] = h[2 * k], h[2 * i + 1] = h[2 * k + 1];
  }
  h[2 * i] = ld, h[2 * i + 1] = lid;
  return id;
}

static bool reach_id(explainer *x, front *f, uint32_t id, uint32_t d, uint32_t via) {
  if (f->mark.p[id] == x->round && f->dist.p[id] <= d) return true;
  f->mark.p[id] = x->round, f->dist.p[id] = d, f->via.p[id] = via;
  return heap_put(x, &f->heap, d, id);
}

/* One id of one side, and its neighbours; *best: the length of the best path known. */
static bool look_on(explainer *x, front *f, const front *other, uint32_t limit, uint32_t *best) {
  uint32_t d, id = heap_take(&f->heap, &d);
  if (d > f->dist.p[id]) return true;
  uint32_t edges = x->off.p[id + 1] - x->off.p[id];
  if (edges > x->work_left) {
    eg_fail(x->m, TARN_NO_RESULT, "egraph: the explanation takes too long");
    return false;
  }
  f->work += edges, x->work_left -= edges;
  for (uint32_t i = x->off.p[id]; i < x->off.p[id + 1]; i++) {
    uint32_t e = x->adj.p[i];
    if (e >= limit) break; /* in order of time */
    if (!x->cost.p[e]) x->cost.p[e] = edge_cost(x, e);
    bool back = x->e[e].y == id;
    uint32_t to = back ? x->e[e].x : x->e[e].y, far = d + x->cost.p[e];
    if (!reach_id(x, f, to, far, 2 * e + back)) return false;
    if (other->mark.p[to] == x->round && far + other->dist.p[to] < *best)
      *best = far + other->dist.p[to], x->meet = to;
  }
  return true;
}

/* What a side will have looked at after its next id. */
static uint64_t work_after(const explainer *x, const front *f) {
  uint32_t id = f->heap.p[1];
  return f->work + x->off.p[id + 1] - x->off.p[id];
}

/* Looks for a cheapest path from a to b, from both ends, as classes may be large and a constant may
 * have edges to all of a class: where they met is x->meet, NONE: nowhere. */
static bool look_for(explainer *x, uint32_t a, uint32_t b, uint32_t limit) {
  front *f = &x->side[0], *t = &x->side[1];
  uint32_t best = UINT32_MAX;
  x->round++, x->meet = a == b ? a : NONE;
  f->heap.n = t->heap.n = 0, f->work = t->work = 0;
  if (!reach_id(x, f, a, 0, NONE) || !reach_id(x, t, b, 0, NONE)) return false;
  while (a != b && f->heap.n && t->heap.n && f->heap.p[0] + t->heap.p[0] < best) {
    bool first = work_after(x, f) <= work_after(x, t);
    if (!look_on(x, first ? f : t, first ? t : f, limit, &best)) return false;
  }
  return true;
}

/* The other end of how a side came to an id. */
static uint32_t came_from(const explainer *x, uint32_t via) {
  return via & 1 ? x->e[via / 2].y : x->e[via / 2].x;
}

static void reverse(uint32_t *p, size_t n) {
  for (size_t i = 0; i < n / 2; i++) {
    uint32_t t = p[i];
    p[i] = p[n - 1 - i], p[n - 1 - i] = t;
  }
}

/* The edges of a cheapest path from a to b, last first, as edge * 2 + backwards. */
static bool find_path(explainer *x, uint32_t a, uint32_t b, uint32_t limit, eg_vec *path) {
  if (!look_for(x, a, b, limit)) return false;
  if (x->meet == NONE) {
    eg_fail(x->m, TARN_INTERNAL, "egraph: no reason is known for %u = %u", a, b);
    return false;
  }
  for (uint32_t id = x->meet, v; id != b; id = came_from(x, v)) {
    v = x->side[1].via.p[id];
    if (!eg_push(x->m, path, v ^ 1)) return false;
  }
  reverse(path->p, path->n);
  for (uint32_t id = x->meet, v; id != a; id = came_from(x, v)) {
    v = x->side[0].via.p[id];
    if (!eg_push(x->m, path, v)) return false;
  }
  return true;
}

/* ---- terms ---- */

/* The term of an id: its original kids' terms are older. */
static uint32_t term_of(explainer *x, uint32_t id) {
  x->todo.n = 0;
  if (x->term.p[id] == NONE && !eg_push(x->m, &x->todo, id)) return NONE;
  while (x->todo.n) {
    uint32_t top = x->todo.p[x->todo.n - 1], n = eg_arity(x->g, top);
    const uint32_t *k = origin(x, top);
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

static bool add_step(explainer *x, chain *c, pf_step s) {
  if (!eg_grow(x->m, (void **)&c->p, &c->cap, c->n + 1u, sizeof *c->p)) return false;
  c->p[c->n++] = s;
  return true;
}

static void drop(explainer *x, chain *c) {
  eg_release(x->m, c->p, c->cap * sizeof *c->p);
  *c = (chain){0};
}

static bool add_reversed(explainer *x, chain *c, const chain *from) {
  for (uint32_t i = from->n; i-- > 0;) {
    pf_step s = from->p[i];
    uint32_t t = s.before;
    s.before = s.after, s.after = t, s.forward = !s.forward;
    if (!add_step(x, c, s)) return false;
  }
  return true;
}

/* Makes a chain a lemma; NONE in *lemma when it is empty. */
static bool finish(explainer *x, chain *c, uint32_t *lemma) {
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

/* What happens to the kids in one congruence step. */
typedef struct kid_work {
  eg_vec term, lemma;
} kid_work;

static bool kid_done(explainer *x, kid_work *w, uint32_t term, chain *sub) {
  uint32_t lemma;
  bool ok = term != NONE && finish(x, sub, &lemma) && eg_push(x->m, &w->term, term) &&
            eg_push(x->m, &w->lemma, lemma);
  drop(x, sub);
  return ok;
}

/* Ends the kids' work: the step from before to op(kids), if any kid changed; forward false: the
 * lemmas lead from op(kids) to before, and so does the step. The term op(kids) in *made. */
static bool kids_done(explainer *x, chain *c, kid_work *w, uint32_t head, uint32_t other,
                      bool forward, uint32_t *made) {
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
    ok = ok && add_step(x, c, s);
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

static bool to_left(explainer *x, chain *c, const use *u, uint32_t atom, uint32_t *made);

/* A leaf of the class whose value is the class's, in all of these analyses; NONE: there is none. */
static uint32_t telling_leaf(const tarn_egraph *g, uint32_t id, uint64_t analyses) {
  uint32_t cls = eg_find(g, id);
  for (uint32_t n = tarn_eg_next_node(g, cls, NONE); n != NONE; n = tarn_eg_next_node(g, cls, n)) {
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

/* As var_id(), or the leaf that shows the value that a condition read. */
static uint32_t shown_id(explainer *x, const use *u, uint32_t v) {
  uint32_t id = var_id(x, u, v);
  if (!u->leaves || eg_arity(x->g, id) == 0) return id;
  uint32_t leaf = telling_leaf(x->g, id, u->leaves);
  return leaf != NONE && look_for(x, id, leaf, u->limit) && x->meet != NONE ? leaf : id;
}

/* From the term of id to that of variable v. */
static bool to_var(explainer *x, chain *c, const use *u, uint32_t id, uint32_t v, uint32_t *made) {
  uint32_t atom = var_atom(u, v);
  if (atom != NONE)
    return explain_into(x, c, id, u->tuple[atom], u->limit) && to_left(x, c, u, atom, made);
  uint32_t as = shown_id(x, u, v);
  *made = term_of(x, as);
  return *made != NONE && explain_into(x, c, id, as, u->limit);
}

static bool seg_kids(const explainer *x, const use *u, uint32_t seg, const uint32_t **kids,
                     uint32_t *n) {
  uint32_t atom = u->r->seg[seg].atom, node = u->tuple[atom], arity = eg_arity(x->g, node);
  const eg_elem *e = &u->r->elem[u->r->atom[atom].elem + (uint32_t)u->r->seg[seg].slot];
  *n = eg_seg_len(u->r, atom, e, u->tuple, arity);
  *kids = origin(x, node) + eg_elem_pos(u->r, atom, e, u->tuple, arity);
  return true;
}

static bool left_kid(explainer *x, kid_work *w, const use *u, const eg_elem *e, uint32_t kid) {
  chain sub = {0};
  uint32_t made = NONE;
  bool ok;
  if (e->kind == TARN_EG_PAT_NODE)
    ok = explain_into(x, &sub, kid, u->tuple[e->ref], u->limit) &&
         to_left(x, &sub, u, e->ref, &made);
  else ok = to_var(x, &sub, u, kid, e->ref, &made);
  return kid_done(x, w, ok ? made : NONE, &sub);
}

static bool left_seg(explainer *x, kid_work *w, const use *u, uint32_t seg, const uint32_t *kids) {
  const uint32_t *want;
  uint32_t n;
  seg_kids(x, u, seg, &want, &n);
  for (uint32_t i = 0; i < n; i++) {
    chain sub = {0};
    bool ok = explain_into(x, &sub, kids[i], want[i], u->limit);
    if (!kid_done(x, w, ok ? term_of(x, want[i]) : NONE, &sub)) return false;
  }
  return true;
}

/* From the term of the node matched by an atom to the instance of the pattern there: at most one
 * congruence. */
static bool to_left(explainer *x, chain *c, const use *u, uint32_t atom, uint32_t *made) {
  uint32_t node = u->tuple[atom], n = eg_arity(x->g, node), from = term_of(x, node);
  const eg_atom *a = &u->r->atom[atom];
  kid_work w = {0};
  bool ok = from != NONE;
  for (uint32_t i = 0; ok && i < a->n_elem; i++) {
    const eg_elem *e = &u->r->elem[a->elem + i];
    const uint32_t *k = origin(x, node) + eg_elem_pos(u->r, atom, e, u->tuple, n);
    ok = e->kind == TARN_EG_PAT_SEG ? left_seg(x, &w, u, e->ref, k) : left_kid(x, &w, u, e, k[0]);
  }
  if (!ok) {
    eg_vec_free(x->m, &w.term), eg_vec_free(x->m, &w.lemma);
    return false;
  }
  return kids_done(x, c, &w, eg_head_of(x->g, node), from, true, made);
}

static bool to_right(explainer *x, chain *c, const use *u, uint32_t t, uint32_t *made);

/* From the instance of one kid of a right side, to the term of id. */
static bool right_kid(explainer *x, kid_work *w, const use *u, eg_ref ref, uint32_t id) {
  chain sub = {0}, there = {0};
  uint32_t made = NONE;
  bool ok;
  if (ref.kind == REF_NODE) { /* the instance became the node made for it, which was id's class */
    ok = to_right(x, &sub, u, ref.i, &made) && explain_into(x, &sub, u->made[ref.i], id, u->limit);
  } else {
    ok = to_var(x, &there, u, id, ref.i, &made) && add_reversed(x, &sub, &there);
    drop(x, &there);
  }
  return kid_done(x, w, ok ? made : NONE, &sub);
}

static bool right_seg(explainer *x, kid_work *w, const use *u, uint32_t seg, const uint32_t *ids,
                      uint32_t *used) {
  const uint32_t *have;
  seg_kids(x, u, seg, &have, used);
  for (uint32_t i = 0; i < *used; i++) {
    chain sub = {0};
    bool ok = explain_into(x, &sub, have[i], ids[i], u->limit);
    if (!kid_done(x, w, ok ? term_of(x, have[i]) : NONE, &sub)) return false;
  }
  return true;
}

/* From the instance of right-side node t (in *made) to the term of the node made for it. */
static bool to_right(explainer *x, chain *c, const use *u, uint32_t t, uint32_t *made) {
  const eg_tnode *tn = &u->r->tnode[t];
  uint32_t node = u->made[t], at = 0, to = term_of(x, node);
  const uint32_t *ids = origin(x, node);
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
  return kids_done(x, c, &w, eg_head_of(x->g, node), to, false, made);
}

/* ---- premises: the other roots of a rule ---- */

/* From the instance of one atom to that of another, nodes of one class. */
static bool between_atoms(explainer *x, chain *c, const use *u, uint32_t from, uint32_t to) {
  chain back = {0};
  uint32_t made;
  bool ok = to_left(x, &back, u, from, &made) && add_reversed(x, c, &back) &&
            explain_into(x, c, u->tuple[from], u->tuple[to], u->limit) &&
            to_left(x, c, u, to, &made);
  drop(x, &back);
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
  return explain_into(x, c, id, u->tuple[atom], u->limit) && to_left(x, c, u, atom, &made);
}

/* The place of the premises' lemmas, as a step has it. */
static bool premises(explainer *x, const use *u, uint32_t by, uint32_t *place) {
  eg_vec all = {0};
  bool ok = eg_push(x->m, &all, 0);
  for (uint32_t a = 0; ok && a < u->r->n_atoms && u->r->n_plans > 1; a++) {
    chain c = {0};
    uint32_t lemma = NONE;
    if (u->r->atom[a].parent != NONE || a == by) continue;
    ok = premise_into(x, &c, u, by, a);
    if (ok && c.n && c.p[0].before != c.p[c.n - 1].after) ok = finish(x, &c, &lemma);
    ok = ok && (lemma == NONE || eg_push(x->m, &all, lemma));
    drop(x, &c);
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

/* ---- edges as steps ---- */

static bool rule_step(explainer *x, chain *c, uint32_t rule, uint32_t note, uint32_t before,
                      uint32_t after, uint32_t place) {
  if (before == NONE || after == NONE) return false;
  return add_step(x, c, (pf_step){rule, note, before, after, place, true});
}

static bool rule_into(explainer *x, chain *c, uint32_t e) {
  use u = read_use(x, e);
  uint32_t from, to, left = NONE, right = NONE;
  rule_ends(x, &u, &from, &to);
  const eg_part *part = u.part == PART_FUNCTION ? NULL : &u.r->part[u.part];
  uint32_t atom = u.r->bare ? NONE : part ? part->atom : 0;
  chain tail = {0};
  uint32_t place = 0;
  bool ok = atom != NONE ? to_left(x, c, &u, atom, &left) : (left = term_of(x, from)) != NONE;
  if (ok && part && part->result.kind == REF_NODE) {
    ok = to_right(x, &tail, &u, part->result.i, &right);
  } else if (ok && part) { /* a variable: from its term to that of the id */
    chain there = {0};
    ok = to_var(x, &there, &u, to, part->result.i, &right) && add_reversed(x, &tail, &there);
    drop(x, &there);
  } else if (ok) {
    right = term_of(x, to);
  }
  ok = ok && premises(x, &u, atom, &place) && rule_step(x, c, u.r->id, 0, left, right, place);
  for (uint32_t i = 0; ok && i < tail.n; i++) ok = add_step(x, c, tail.p[i]);
  drop(x, &tail);
  return ok;
}

/* From the term of node to op(kids). */
static bool respell(explainer *x, chain *c, uint32_t node, const uint32_t *kids, uint32_t limit,
                    uint32_t *made) {
  uint32_t n = eg_arity(x->g, node), from = term_of(x, node);
  kid_work w = {0};
  bool ok = from != NONE;
  for (uint32_t i = 0; ok && i < n; i++) {
    chain sub = {0};
    ok = explain_into(x, &sub, origin(x, node)[i], kids[i], limit);
    ok = kid_done(x, &w, ok ? term_of(x, kids[i]) : NONE, &sub);
  }
  if (!ok) {
    eg_vec_free(x->m, &w.term), eg_vec_free(x->m, &w.lemma);
    return false;
  }
  return kids_done(x, c, &w, eg_head_of(x->g, node), from, true, made);
}

static bool edge_into(explainer *x, chain *c, uint32_t e) {
  const uint32_t *p = x->g->log.p + x->e[e].at;
  uint32_t left;
  switch (p[0] & 3) {
  case LOG_CONG: return respell(x, c, x->e[e].x, origin(x, x->e[e].y), e, &left);
  case LOG_PLAIN: return rule_step(x, c, p[3], p[4], term_of(x, p[1]), term_of(x, p[2]), 0);
  case LOG_AT:
    return respell(x, c, p[1], p + 5, e, &left) &&
           rule_step(x, c, p[3], p[4], left, term_of(x, p[2]), 0);
  default: return rule_into(x, c, e);
  }
}

/* ---- lemmas that are used again ---- */

static size_t cache_slot(const explainer *x, uint32_t a, uint32_t b) {
  size_t m = x->cache.n / 3 - 1, i = (size_t)tarn_hash_mix(a, b) & m;
  while (x->cache.p[3 * i] != NONE && (x->cache.p[3 * i] != a || x->cache.p[3 * i + 1] != b))
    i = (i + 1) & m;
  return 3 * i;
}

static bool cache_put(explainer *x, uint32_t a, uint32_t b, uint32_t lemma) {
  if ((x->cached + 1) * 6 > x->cache.n) {
    eg_vec old = x->cache;
    x->cache = (eg_vec){0};
    if (!filled(x, &x->cache, old.n ? old.n * 2 : 3 * 64, 0xFF)) {
      x->cache = old;
      return false;
    }
    for (size_t i = 0; i < old.n; i += 3)
      if (old.p[i] != NONE)
        memcpy(x->cache.p + cache_slot(x, old.p[i], old.p[i + 1]), old.p + i, 3 * sizeof *old.p);
    eg_vec_free(x->m, &old);
  }
  uint32_t *p = x->cache.p + cache_slot(x, a, b);
  if (p[0] == NONE) x->cached++;
  p[0] = a, p[1] = b, p[2] = lemma;
  return true;
}

static bool copy_lemma(explainer *x, chain *c, uint32_t lemma) {
  tarn_eg_lemma l = x->p->lemma[lemma];
  for (uint32_t i = 0; i < l.n; i++)
    if (!add_step(x, c, x->p->step[l.first + i])) return false;
  return true;
}

static bool walk_path(explainer *x, chain *c, const eg_vec *path) {
  for (size_t i = path->n; i-- > 0;) {
    uint32_t v = path->p[i];
    if (!(v & 1)) {
      if (!edge_into(x, c, v / 2)) return false;
      continue;
    }
    chain there = {0};
    bool ok = edge_into(x, &there, v / 2) && add_reversed(x, c, &there);
    drop(x, &there);
    if (!ok) return false;
  }
  return true;
}

/* Appends steps from the term of a to that of b, using edges below limit only. */
static bool explain_into(explainer *x, chain *c, uint32_t a, uint32_t b, uint32_t limit) {
  uint32_t ta = term_of(x, a), tb = term_of(x, b);
  if (ta == NONE || tb == NONE) return false;
  if (ta == tb) return true;
  if (x->cache.n) {
    size_t s = cache_slot(x, a, b);
    if (x->cache.p[s] != NONE) return copy_lemma(x, c, x->cache.p[s + 2]);
  }
  if (++x->depth > MAX_DEPTH) {
    eg_fail(x->m, TARN_NO_RESULT, "egraph: the explanation nests deeper than %d", MAX_DEPTH);
    return false;
  }
  eg_vec path = {0};
  chain whole = {0};
  uint32_t lemma;
  bool ok =
      find_path(x, a, b, limit, &path) && walk_path(x, &whole, &path) && finish(x, &whole, &lemma);
  ok = ok && (lemma == NONE || (cache_put(x, a, b, lemma) && copy_lemma(x, c, lemma)));
  drop(x, &whole);
  eg_vec_free(x->m, &path);
  x->depth--;
  return ok;
}

/* ---- */

static void free_scratch(explainer *x) {
  eg_release(x->m, x->e, x->e_cap * sizeof *x->e);
  eg_vec *v[] = {&x->off, &x->adj, &x->cost, &x->term, &x->todo, &x->cache};
  for (size_t i = 0; i < sizeof v / sizeof *v; i++) eg_vec_free(x->m, v[i]);
  for (front *f = x->side; f < x->side + 2; f++)
    eg_vec_free(x->m, &f->dist), eg_vec_free(x->m, &f->via), eg_vec_free(x->m, &f->mark),
        eg_vec_free(x->m, &f->heap);
}

/* The last lemma is the answer, even when there is nothing to do or it was found before. */
static bool last_lemma(explainer *x, uint32_t a, uint32_t b) {
  tarn_eg_proof *p = x->p;
  chain c = {0};
  uint32_t lemma = NONE;
  bool ok = explain_into(x, &c, a, b, x->n_e);
  tarn_eg_lemma have = p->n_lemmas ? p->lemma[p->n_lemmas - 1] : (tarn_eg_lemma){NONE, NONE, 0, 0};
  bool there = ok && c.n && have.from == c.p[0].before && have.to == c.p[c.n - 1].after;
  ok = ok && (there || finish(x, &c, &lemma));
  drop(x, &c);
  if (!ok || there || lemma != NONE) return ok;
  if (!eg_grow(x->m, (void **)&p->lemma, &p->lemma_cap, p->n_lemmas + 1u, sizeof *p->lemma))
    return false;
  p->lemma[p->n_lemmas++] = (tarn_eg_lemma){term_of(x, a), term_of(x, b), p->n_steps, 0};
  return true;
}

typedef struct asking {
  explainer *x;
  uint32_t a, b;
  bool ok;
} asking;
static void ask(void *arg) {
  asking *k = arg;
  k->ok = read_log(k->x) && index_edges(k->x) && last_lemma(k->x, k->a, k->b);
}

/* A path between any two ids. */
static tarn_eg_proof *explain_ids(tarn_egraph *g, uint32_t a, uint32_t b, uint64_t work) {
  if (!eg_index_origins(g)) return NULL;
  tarn_eg_proof *p = eg_resize(&g->mem, NULL, 0, sizeof *p);
  if (!p) return NULL;
  g->mem.bytes -= sizeof *p; /* the proof counts for itself */
  memset(p, 0, sizeof *p);
  eg_mem_init(&p->mem, &g->mem.a);
  explainer x = {.g = g, .p = p, .m = &p->mem, .work_left = work};
  asking k = {&x, a, b, false};
  if (!tarn_deep(STACK, ask, &k)) eg_fail(&p->mem, TARN_MEMORY, "egraph: no stack to explain on");
  free_scratch(&x);
  if (k.ok) return p;
  eg_fail(&g->mem, p->mem.st == TARN_OK ? TARN_MEMORY : p->mem.st, "%s", p->mem.msg);
  tarn_eg_proof_free(p);
  return NULL;
}

tarn_eg_proof *tarn_eg_explain(tarn_egraph *g, uint32_t a, uint32_t b) {
  if (a >= g->n_ids || b >= g->n_ids || !g->reasons) {
    eg_fail(&g->mem, TARN_USAGE, "egraph: explain needs two ids and a graph that keeps reasons");
    return NULL;
  }
  if (eg_find(g, a) != eg_find(g, b)) {
    eg_fail(&g->mem, TARN_NO, "egraph: %u and %u are not equal", a, b);
    return NULL;
  }
  return explain_ids(g, a, b, UINT64_MAX);
}

/* ---- conflicts: what was not joined is put behind the log as if it had been ---- */

/* The node whose value is not that of its class, over leaves that show the values it was computed
 * from, is b. */
static bool log_value(tarn_egraph *g, uint32_t b) {
  uint32_t node = g->conflict.b, n = eg_arity(g, node), len = 5 + n;
  if (n > 10000 || !eg_log_reserve(g, len)) return false;
  uint32_t *p = g->log.p + g->log.n;
  p[0] = LOG_AT | len << 2, p[1] = node, p[2] = b, p[3] = TARN_EG_RULE_ANALYSIS,
  p[4] = g->conflict.analysis;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t kid = eg_find(g, eg_kids(g, node, n)[i]),
             leaf = telling_leaf(g, kid, UINT64_C(1) << g->conflict.analysis);
    p[5 + i] = leaf != NONE ? leaf : kid;
  }
  g->log.n += len;
  return true;
}

static bool log_conflict(tarn_egraph *g, uint32_t b) {
  uint32_t said[5] = {LOG_PLAIN | 5u << 2, g->conflict.a, b, TARN_EG_RULE_GIVEN, 0};
  const eg_vec *r = &g->refused;
  bool is_said = g->conflict_how == CONFLICT_SAID;
  if (g->conflict_how == CONFLICT_JOINED) return true; /* the log has it */
  if (g->conflict_how == CONFLICT_NODE) return log_value(g, b);
  size_t n = is_said ? 5 : r->n;
  if (!n || !eg_log_reserve(g, n)) return false;
  memcpy(g->log.p + g->log.n, is_said ? said : r->p, n * sizeof *said);
  g->log.n += n;
  return true;
}

tarn_eg_proof *tarn_eg_explain_conflict(tarn_egraph *g, uint32_t a, uint32_t b) {
  size_t at = g->log.n;
  if (a >= g->n_ids || b >= g->n_ids || !g->reasons || !g->has_conflict) {
    eg_fail(&g->mem, TARN_USAGE,
            "egraph: explain_conflict needs a conflict, two ids and a graph that keeps reasons");
    return NULL;
  }
  tarn_eg_proof *p = log_conflict(g, b) ? explain_ids(g, a, b, CONFLICT_WORK) : NULL;
  if (!p) eg_fail(&g->mem, TARN_NO_RESULT, "egraph: the conflict cannot be explained");
  g->log.n = at;
  return p;
}
