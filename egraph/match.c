/* E-matching.
 *
 * A plan binds the atoms of a rule one by one; run() interprets it with backtracking.  To find only what is new
 * since a stamp, each match is found from its first changed atom: a search is made for each atom i in which atom i
 * must be changed and the atoms before it must not be.  For a root that starts from the changed nodes; for an inner
 * atom, from the classes that hold changed nodes, climbing their uses to the root (the nodes on the way are then
 * fixed).  In a class list changed nodes come first, so that old ones are not visited. */
#include "egraph/match.h"

#include <string.h>

enum { ANY, OLD, CHANGED, FIXED };

#define GROW(s, field, need)                                                                       \
  (eg_grow(&(s)->g->mem, (void **)&(s)->field, &(s)->field##_cap, (need), sizeof *(s)->field))

void eg_searcher_init(eg_searcher *s, tarn_egraph *g, const tarn_eg_rules *rs) {
  *s = (eg_searcher){.g = g, .rs = rs};
}

void eg_searcher_free(eg_searcher *s) {
  eg_mem *m = &s->g->mem;
  eg_release(m, s->ok, s->ok_cap);
  eg_release(m, s->leaf, s->leaf_cap * sizeof *s->leaf);
  eg_release(m, s->tuple, s->tuple_cap * sizeof *s->tuple);
  eg_release(m, s->fixed, s->fixed_cap * sizeof *s->fixed);
  eg_release(m, s->mode, s->mode_cap);
  eg_vec_free(m, &s->order), eg_vec_free(m, &s->head_at), eg_vec_free(m, &s->classes);
  eg_vec_free(m, &s->trig), eg_vec_free(m, &s->trig_at);
}

/* ---- which heads each test accepts ---- */

static bool accepts(const eg_test *t, const eg_head *h) {
  if (t->op_how == TARN_EG_EXACT && t->op != h->op) return false;
  if (t->payload_how == TARN_EG_EXACT && t->payload != h->payload) return false;
  if (t->segs ? h->n < t->n : h->n != t->n) return false;
  return !t->test || t->test(t->user, h->op, h->payload);
}

static bool prepare_tests(eg_searcher *s) {
  uint32_t tests = s->rs->n_tests, heads = s->g->n_heads;
  if (heads > s->ok_stride || tests > s->ok_tests) { /* lay the table out again */
    s->ok_stride = heads + heads / 2 + 16;
    if (!GROW(s, ok, s->ok_stride * tests + 1)) return false;
    s->ok_heads = 0;
  }
  for (uint32_t t = 0; t < tests; t++)
    for (uint32_t h = s->ok_heads; h < heads; h++)
      s->ok[t * s->ok_stride + h] = accepts(&s->rs->test[t], &s->g->heads[h]);
  s->ok_heads = heads, s->ok_tests = tests;
  return true;
}

static bool prepare_leaves(eg_searcher *s) {
  if (!GROW(s, leaf, s->rs->n_tests + 1u)) return false;
  for (uint32_t i = 0; i < s->rs->n_tests; i++) {
    const eg_test *t = &s->rs->test[i];
    bool leaf = t->n == 0 && !t->segs && t->op_how == TARN_EG_EXACT && t->payload_how == TARN_EG_EXACT;
    if (leaf && t->test && !t->test(t->user, t->op, t->payload)) leaf = false;
    uint32_t id = leaf ? tarn_eg_lookup(s->g, t->op, t->payload, NULL, 0) : NONE;
    s->leaf[i] = id != NONE && eg_visible(s->g, id) ? id : NONE;
  }
  return true;
}

bool eg_searcher_prepare(eg_searcher *s) {
  uint32_t w = s->rs->max_words + 1;
  return prepare_tests(s) && prepare_leaves(s) && GROW(s, tuple, w) && GROW(s, fixed, w) &&
         GROW(s, mode, w);
}

static inline bool head_ok(const eg_searcher *s, uint32_t test, uint32_t rec_head) {
  uint32_t h = rec_head & (HEAD_HIDDEN | HEAD_BITS);
  return h < s->ok_heads && s->ok[test * s->ok_stride + h];
}

static bool test_possible(const eg_searcher *s, uint32_t test) {
  for (uint32_t h = 0; h < s->ok_heads; h++)
    if (s->ok[test * s->ok_stride + h] && s->g->heads[h].live) return true;
  return false;
}

/* A rule none of whose nodes of some kind exist costs nothing. */
static bool rule_possible(const eg_searcher *s, const eg_rule *r) {
  for (uint32_t a = 0; a < r->n_atoms; a++)
    if (!test_possible(s, r->atom[a].test)) return false;
  return true;
}

/* ---- running a plan ---- */

static bool run(eg_searcher *s, uint32_t pc);

static bool is_new(const eg_searcher *s) {
  for (uint32_t a = 0; a < s->r->n_atoms; a++)
    if (s->g->stamp[s->tuple[a]] > s->sink->seen) return true;
  return false;
}

static inline bool found(eg_searcher *s) {
  eg_sink *k = s->sink;
  if (++k->count > k->limit) {
    k->full = true;
    return false;
  }
  eg_vec *v = k->seen <= s->since || is_new(s) ? k->found : k->known;
  if (!v) return true;
  uint32_t w = s->r->n_words;
  if (v->cap - v->n < w && !eg_vec_reserve(&s->g->mem, v, w)) {
    s->gave_up = true;
    return false;
  }
  memcpy(v->p + v->n, s->tuple, w * sizeof *v->p);
  v->n += w;
  return true;
}

/* Time is asked for once in a while only. */
static bool out_of_time(eg_searcher *s) {
  if (!s->hurry || ++s->patience < 4096) return false;
  s->patience = 0;
  if (s->hurry(s->user)) s->gave_up = true;
  return s->gave_up;
}

static bool mode_allows(const eg_searcher *s, uint32_t atom, uint32_t node) {
  uint16_t st = s->g->stamp[node];
  switch (s->mode[atom]) {
  case OLD: return st <= s->since;
  case CHANGED: return st > s->since;
  case FIXED: return node == s->fixed[atom];
  default: return true;
  }
}

static bool bind(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t node) {
  s->tuple[atom] = node;
  return pc + 1 == s->len ? found(s) : run(s, pc + 1);
}

static bool try_node(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t node) {
  if (!head_ok(s, s->r->atom[atom].test, s->g->rec[node].head) || !mode_allows(s, atom, node)) return true;
  return bind(s, pc, atom, node);
}

static bool run_enum(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t cls) {
  const tarn_egraph *g = s->g;
  const eg_test *t = &s->rs->test[s->r->atom[atom].test];
  uint8_t mode = s->mode[atom];
  if (mode == FIXED) {
    uint32_t n = s->fixed[atom];
    return eg_find(g, n) != cls || bind(s, pc, atom, n);
  }
  if (mode == CHANGED && s->require != NONE && cls != s->require) return true;
  if (t->op_how == TARN_EG_EXACT && !(g->mask[cls] & eg_op_bit(t->op))) return true;
  if (!try_node(s, pc, atom, cls)) return false;
  const uint8_t *ok = s->ok + s->r->atom[atom].test * s->ok_stride;
  for (uint32_t n = g->rec[cls].next; n != cls; n = g->rec[n].next) {
    uint16_t st = mode == ANY ? 1 : g->stamp[n];
    if (mode == CHANGED && st <= s->since) {
      if (st == 0) continue;
      break;
    }
    if (mode == OLD && st > s->since) continue;
    uint32_t h = g->rec[n].head & (HEAD_HIDDEN | HEAD_BITS);
    if (h < s->ok_heads && ok[h] && !bind(s, pc, atom, n)) return false;
  }
  return !out_of_time(s);
}

static bool run_scan(eg_searcher *s, uint32_t pc, uint32_t atom) {
  for (uint32_t n = 0; n < s->g->n_ids; n++)
    if (!try_node(s, pc, atom, n)) return false;
  return !out_of_time(s);
}

static bool run_uses(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t cls, uint32_t slot) {
  const tarn_egraph *g = s->g;
  for (uint32_t e = eg_use_head(g, cls); e != USE_END; e = *eg_use_next(g, e)) {
    uint32_t n = eg_use_owner(g, e);
    if (eg_visible(g, n) && eg_use_slot(g, e, n) == slot && !try_node(s, pc, atom, n)) return false;
  }
  return !out_of_time(s);
}

static bool run_leaf(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t cls) {
  uint32_t n = s->leaf[s->r->atom[atom].test];
  if (n == NONE || eg_find(s->g, n) != cls || !mode_allows(s, atom, n)) return true;
  return bind(s, pc, atom, n);
}

/* Every way to give the segments of an atom their lengths; the last one takes the rest. */
static bool run_split(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t seg, uint32_t rest) {
  const eg_atom *a = &s->r->atom[atom];
  if (seg + 1 == a->n_segs) return pc + 1 == s->len ? found(s) : run(s, pc + 1);
  for (uint32_t len = 0; len <= rest; len++) {
    s->tuple[a->choice + seg] = len;
    if (!run_split(s, pc, atom, seg + 1, rest - len)) return false;
  }
  return true;
}

static const uint32_t *seg_at(const eg_searcher *s, eg_src x, uint32_t *len) {
  uint32_t node = s->tuple[x.atom], n = eg_arity(s->g, node);
  const eg_elem *e = &s->r->elem[s->r->atom[x.atom].elem + (uint32_t)x.slot];
  *len = eg_seg_len(s->r, x.atom, e, s->tuple, n);
  return eg_kids(s->g, node, n) + eg_elem_pos(s->r, x.atom, e, s->tuple, n);
}

static bool same_segs(const eg_searcher *s, eg_src x, eg_src y) {
  uint32_t nx, ny;
  const uint32_t *a = seg_at(s, x, &nx), *b = seg_at(s, y, &ny);
  return nx == ny && memcmp(a, b, nx * sizeof *a) == 0;
}

static const eg_head *head_at(const eg_searcher *s, uint32_t atom) {
  return &s->g->heads[eg_head_of(s->g, s->tuple[atom])];
}

/* From instruction pc on. false: stop searching. */
static bool run(eg_searcher *s, uint32_t pc) {
  for (; pc < s->len; pc++) {
    const eg_instr *in = &s->code[pc];
    switch (in->code) {
    case I_EQ:
      if (eg_src_class(s->g, s->r, in->x, s->tuple) != eg_src_class(s->g, s->r, in->y, s->tuple)) return true;
      break;
    case I_PAYLOAD:
      if (head_at(s, in->x.atom)->payload != head_at(s, in->y.atom)->payload) return true;
      break;
    case I_OP:
      if (head_at(s, in->x.atom)->op != head_at(s, in->y.atom)->op) return true;
      break;
    case I_SEG:
      if (!same_segs(s, in->x, in->y)) return true;
      break;
    case I_ENUM: return run_enum(s, pc, in->a, eg_src_class(s->g, s->r, in->x, s->tuple));
    case I_LEAF: return run_leaf(s, pc, in->a, eg_src_class(s->g, s->r, in->x, s->tuple));
    case I_USES:
      return run_uses(s, pc, in->a, eg_src_class(s->g, s->r, in->x, s->tuple), (uint32_t)in->y.slot);
    case I_SCAN: return run_scan(s, pc, in->a);
    case I_SPLIT:
      return run_split(s, pc, in->a, 0, eg_arity(s->g, s->tuple[in->a]) - s->r->atom[in->a].n_fixed);
    }
  }
  return found(s);
}

/* ---- searches ---- */

/* From a root bound to node. */
static bool run_from(eg_searcher *s, uint32_t root, uint32_t node) {
  s->tuple[root] = node;
  return run(s, 1);
}

/* Atom must be changed, those before it old, those after it anything. */
static void set_modes(eg_searcher *s, const eg_rule *r, uint32_t atom) {
  for (uint32_t a = 0; a < r->n_atoms; a++) s->mode[a] = a < atom ? OLD : ANY;
  s->mode[atom] = CHANGED;
}

static void start_rule(eg_searcher *s, const eg_rule *r, eg_sink *sink, uint32_t block) {
  s->r = r, s->sink = sink;
  s->code = r->plan[block], s->len = r->plan_len[block];
}

static bool search_bare(eg_searcher *s, const eg_rule *r, eg_sink *sink, uint32_t first) {
  const tarn_egraph *g = s->g;
  s->r = r, s->sink = sink;
  if (!sink->found && !sink->known && !first) { /* only counting */
    sink->count += g->classes;
    sink->full = sink->count > sink->limit;
    return true;
  }
  for (uint32_t c = first; c < g->n_ids; c++) {
    if (!(g->uf[c] & UF_ROOT)) continue;
    if (++sink->count > sink->limit) {
      sink->full = true;
      return true;
    }
    if (sink->found && !eg_push(&s->g->mem, sink->found, c)) return false;
  }
  return true;
}

/* Roots among all nodes, in order of ids; for few rules, when everything is new. */
static bool search_roots_all(eg_searcher *s, const eg_rule *r, eg_sink *sink) {
  uint32_t root = 0, test = r->atom[0].test;
  start_rule(s, r, sink, 0);
  memset(s->mode, ANY, r->n_atoms);
  const uint8_t *ok = s->ok + test * s->ok_stride;
  for (uint32_t n = 0; n < s->g->n_ids && !sink->full; n++) {
    uint32_t h = s->g->rec[n].head & (HEAD_HIDDEN | HEAD_BITS);
    if (h < s->ok_heads && ok[h] && !run_from(s, root, n) && s->gave_up) return false;
  }
  return true;
}

/* Matches whose first changed atom is a root. */
static bool search_roots(eg_searcher *s, const eg_rule *r, eg_sink *sink, uint32_t root) {
  const eg_atom *at = &r->atom[root];
  start_rule(s, r, sink, at->block);
  set_modes(s, r, root);
  const uint8_t *ok = s->ok + at->test * s->ok_stride;
  for (uint32_t h = 0; h < s->ok_heads && !sink->full; h++) {
    if (!ok[h]) continue;
    for (uint32_t i = s->head_at.p[h]; i < s->head_at.p[h + 1] && !sink->full; i++)
      if (!run_from(s, root, s->order.p[i]) && s->gave_up) return false;
  }
  return true;
}

/* node is fixed for atom; climb to the root through nodes that are not changed. */
static bool climb(eg_searcher *s, uint32_t atom, uint32_t node);

static bool slot_fits(const eg_searcher *s, uint32_t atom, uint32_t owner, uint32_t slot, uint32_t cls) {
  int32_t want = s->r->atom[atom].slot;
  uint32_t n = eg_arity(s->g, owner);
  if (want >= SLOT_ELEM) { /* several places are possible: take the first use only, run() tries all */
    const uint32_t *k = eg_kids(s->g, owner, n);
    for (uint32_t i = 0; i < slot; i++)
      if (k[i] == cls) return false;
    return true;
  }
  return slot == (want >= 0 ? (uint32_t)want : n - 1 - (uint32_t)(SLOT_END - want));
}

static bool climb_one(eg_searcher *s, uint32_t atom, uint32_t cls, uint32_t e, uint32_t owner) {
  uint32_t up = s->r->atom[atom].parent;
  if (!head_ok(s, s->r->atom[up].test, s->g->rec[owner].head)) return true;
  if (!slot_fits(s, atom, owner, eg_use_slot(s->g, e, owner), cls)) return true;
  return climb(s, up, owner);
}

static bool climb(eg_searcher *s, uint32_t atom, uint32_t node) {
  const tarn_egraph *g = s->g;
  if (s->r->atom[atom].parent == NONE) return run_from(s, atom, node);
  uint8_t was = s->mode[atom];
  uint32_t cls = eg_find(g, node);
  s->mode[atom] = FIXED, s->fixed[atom] = node;
  bool go = true;
  for (uint32_t e = eg_use_head(g, cls); go && e != USE_END; e = *eg_use_next(g, e)) {
    uint32_t owner = eg_use_owner(g, e);
    uint16_t st = g->stamp[owner];
    if (st && st <= s->since) go = climb_one(s, atom, cls, e, owner);
  }
  s->mode[atom] = was;
  return go;
}

/* ---- what has changed ---- */

/* Nodes stamped after since, by head and id. */
static bool index_nodes(eg_searcher *s) {
  const tarn_egraph *g = s->g;
  uint32_t since = s->since;
  s->head_at.n = s->order.n = 0;
  if (!eg_vec_reserve(&s->g->mem, &s->head_at, g->n_heads + 2)) return false;
  uint32_t *at = s->head_at.p;
  memset(at, 0, (g->n_heads + 2) * sizeof *at);
  const uint16_t *stamp = g->stamp;
  size_t total = 0;
  for (uint32_t i = 0; i < g->n_ids; i++)
    if (stamp[i] > since) at[(g->rec[i].head & HEAD_BITS) + 2]++, total++;
  if (!eg_vec_reserve(&s->g->mem, &s->order, total)) return false;
  for (uint32_t h = 0; h < g->n_heads; h++) at[h + 2] += at[h + 1];
  for (uint32_t i = 0; i < g->n_ids; i++)
    if (stamp[i] > since) s->order.p[at[(g->rec[i].head & HEAD_BITS) + 1]++] = i;
  s->order.n = total;
  return true;
}

static uint16_t changed_ops(const tarn_egraph *g, uint32_t cls, uint32_t since) {
  uint16_t ops = 0;
  if (g->stamp[cls] > since) ops = eg_op_bit(g->heads[eg_head_of(g, cls)].op);
  for (uint32_t n = g->rec[cls].next; n != cls; n = g->rec[n].next) {
    if (g->stamp[n] > since) ops |= eg_op_bit(g->heads[eg_head_of(g, n)].op);
    else if (g->stamp[n]) break;
  }
  return ops;
}

/* Classes that hold such nodes: found once each, through the first changed node of the class list. */
static bool index_classes(eg_searcher *s) {
  tarn_egraph *g = s->g;
  s->classes.n = 0;
  for (size_t i = 0; i < s->order.n; i++) {
    uint32_t c = eg_find(g, s->order.p[i]);
    if (g->mask[c] & CLS_QUEUED || eg_use_head(g, c) == USE_END) continue;
    if (!eg_vec_reserve(&g->mem, &s->classes, 2)) break;
    g->mask[c] |= CLS_QUEUED; /* as a mark, taken back below */
    s->classes.p[s->classes.n++] = c;
    s->classes.p[s->classes.n++] = changed_ops(g, c, s->since);
  }
  for (size_t i = 0; i < s->classes.n; i += 2) g->mask[s->classes.p[i]] &= (uint16_t)~CLS_QUEUED;
  return true;
}

/* For each head: the (rule, atom) pairs where a node of that head may be the parent of the atom. */
static bool index_triggers(eg_searcher *s, const uint32_t *rules, const eg_sink *sinks, uint32_t n,
                           uint16_t *ops) {
  eg_mem *m = &s->g->mem;
  s->trig.n = s->trig_at.n = 0;
  *ops = 0;
  for (uint32_t h = 0; h <= s->ok_heads; h++) {
    if (!eg_push(m, &s->trig_at, (uint32_t)s->trig.n)) return false;
    if (h == s->ok_heads || !s->g->heads[h].live) continue;
    for (uint32_t i = 0; i < n; i++) {
      const eg_rule *r = &s->rs->rule[rules[i]];
      if (sinks[i].full || r->bare || !rule_possible(s, r)) continue;
      for (uint32_t a = 0; a < r->n_atoms; a++) {
        uint32_t up = r->atom[a].parent;
        if (up == NONE || !s->ok[r->atom[up].test * s->ok_stride + h]) continue;
        const eg_test *t = &s->rs->test[r->atom[a].test];
        *ops |= t->op_how == TARN_EG_EXACT ? eg_op_bit(t->op) : 0x7FFF;
        if (!eg_push(m, &s->trig, i) || !eg_push(m, &s->trig, a)) return false;
      }
    }
  }
  return true;
}

static bool pull_trigger(eg_searcher *s, const uint32_t *rules, eg_sink *sinks, const uint32_t *trig,
                         uint32_t cls, uint16_t ops, uint32_t e, uint32_t owner) {
  eg_sink *sink = &sinks[trig[0]];
  const eg_rule *r = &s->rs->rule[rules[trig[0]]];
  uint32_t atom = trig[1];
  const eg_test *t = &s->rs->test[r->atom[atom].test];
  if (sink->full || (t->op_how == TARN_EG_EXACT && !(ops & eg_op_bit(t->op)))) return true;
  int32_t slot = r->atom[atom].slot;
  if (slot >= 0 && slot < SLOT_ELEM && eg_use_slot(s->g, e, owner) != (uint32_t)slot) return true;
  start_rule(s, r, sink, r->atom[atom].block);
  set_modes(s, r, atom);
  s->require = cls;
  climb_one(s, atom, cls, e, owner);
  return !s->gave_up;
}

/* Matches whose first changed atom is not a root. */
static bool search_inner(eg_searcher *s, const uint32_t *rules, eg_sink *sinks, uint32_t n) {
  const tarn_egraph *g = s->g;
  uint16_t wanted;
  if (!index_triggers(s, rules, sinks, n, &wanted)) return false;
  if (!s->trig.n) return true;
  if (!index_classes(s)) return false;
  for (size_t i = 0; i < s->classes.n; i += 2) {
    uint32_t cls = s->classes.p[i];
    uint16_t ops = (uint16_t)s->classes.p[i + 1];
    if (!(ops & wanted)) continue;
    for (uint32_t e = eg_use_head(g, cls); e != USE_END; e = *eg_use_next(g, e)) {
      uint32_t owner = eg_use_owner(g, e);
      uint16_t st = g->stamp[owner];
      if (!st || st > s->since) continue;
      uint32_t h = g->rec[owner].head & HEAD_BITS;
      for (uint32_t k = s->trig_at.p[h]; k < s->trig_at.p[h + 1]; k += 2)
        if (!pull_trigger(s, rules, sinks, s->trig.p + k, cls, ops, e, owner)) return false;
    }
  }
  return true;
}

bool eg_search(eg_searcher *s, const uint32_t *rules, eg_sink *sinks, uint32_t n, uint32_t since,
               const uint32_t *first_id) {
  s->since = since, s->require = NONE, s->gave_up = false;
  uint32_t left = 0;
  for (uint32_t i = 0; i < n; i++) {
    const eg_rule *r = &s->rs->rule[rules[i]];
    if (r->bare && !search_bare(s, r, &sinks[i], since ? first_id[i] : 0)) return false;
    left += !r->bare && rule_possible(s, r);
  }
  if (!left) return true;
  bool scan = since == 0 && left <= 3;
  if (!scan && !index_nodes(s)) return false;
  for (uint32_t i = 0; i < n; i++) {
    const eg_rule *r = &s->rs->rule[rules[i]];
    if (r->bare || !rule_possible(s, r)) continue;
    if (scan && !search_roots_all(s, r, &sinks[i])) return false;
    for (uint32_t a = 0; !scan && a < r->n_atoms; a++)
      if (r->atom[a].parent == NONE && (since || a == 0) && !search_roots(s, r, &sinks[i], a)) return false;
  }
  return scan || since == 0 || search_inner(s, rules, sinks, n);
}

/* ---- reading a tuple ---- */

bool eg_reader_init(eg_reader *rd, eg_mem *m, const tarn_eg_rules *rs) {
  return eg_grow(m, (void **)&rd->vars, &rd->vars_cap, rs->max_vars + 1u, sizeof *rd->vars) &&
         eg_grow(m, (void **)&rd->payloads, &rd->payloads_cap, rs->max_payloads + 1u, sizeof *rd->payloads) &&
         eg_grow(m, (void **)&rd->ops, &rd->ops_cap, rs->max_ops + 1u, sizeof *rd->ops) &&
         eg_grow(m, (void **)&rd->segs, &rd->segs_cap, rs->max_segs + 1u, sizeof *rd->segs);
}

void eg_reader_free(eg_reader *rd, eg_mem *m) {
  eg_release(m, rd->vars, rd->vars_cap * sizeof *rd->vars);
  eg_release(m, rd->payloads, rd->payloads_cap * sizeof *rd->payloads);
  eg_release(m, rd->ops, rd->ops_cap * sizeof *rd->ops);
  eg_release(m, rd->segs, rd->segs_cap * sizeof *rd->segs);
  eg_vec_free(m, &rd->kids);
  *rd = (eg_reader){0};
}

static bool read_segs(eg_reader *rd, tarn_egraph *g, const eg_rule *r, const uint32_t *tuple) {
  size_t total = 0;
  rd->kids.n = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < r->n_segs; i++) {
      if (r->seg[i].atom == NONE) {
        rd->segs[i] = (tarn_eg_slice){NULL, 0};
        continue;
      }
      uint32_t atom = r->seg[i].atom, n = eg_arity(g, tuple[atom]);
      const eg_elem *e = &r->elem[r->atom[atom].elem + (uint32_t)r->seg[i].slot];
      uint32_t len = eg_seg_len(r, atom, e, tuple, n);
      if (pass == 0) {
        total += len;
        continue;
      }
      const uint32_t *k = eg_kids(g, tuple[atom], n) + eg_elem_pos(r, atom, e, tuple, n);
      rd->segs[i] = (tarn_eg_slice){rd->kids.p + rd->kids.n, len};
      for (uint32_t j = 0; j < len; j++) rd->kids.p[rd->kids.n++] = eg_find_mut(g, k[j]);
    }
    if (pass == 0 && !eg_vec_reserve(&g->mem, &rd->kids, total + 1)) return false;
  }
  return true;
}

bool eg_read(eg_reader *rd, tarn_egraph *g, const eg_rule *r, uint32_t number, const uint32_t *tuple,
             tarn_eg_match *out) {
  for (uint32_t v = 0; v < r->n_vars; v++)
    rd->vars[v] = r->bare ? (r->var[v].atom == NONE ? NONE : eg_find_mut(g, tuple[0]))
                  : r->var[v].atom == NONE ? NONE
                                           : eg_find_mut(g, eg_src_class(g, r, r->var[v], tuple));
  for (uint32_t i = 0; i < r->n_payloads; i++)
    rd->payloads[i] = r->payload[i] == NONE ? 0 : g->heads[eg_head_of(g, tuple[r->payload[i]])].payload;
  for (uint32_t i = 0; i < r->n_ops; i++)
    rd->ops[i] = r->op[i] == NONE ? 0 : g->heads[eg_head_of(g, tuple[r->op[i]])].op;
  if (r->n_segs && !read_segs(rd, g, r, tuple)) return false;
  *out = (tarn_eg_match){number, eg_find_mut(g, tuple[0]), rd->vars, rd->payloads, rd->ops, rd->segs, tuple};
  return true;
}

/* ---- the public search ---- */

uint64_t tarn_eg_search(tarn_egraph *g, const tarn_eg_rules *rs, uint32_t rule, tarn_eg_match_fn *fn,
                        void *user) {
  if (rule >= rs->n || g->dirty) {
    eg_fail(&g->mem, TARN_USAGE, "egraph: search needs a rule of the set and a rebuilt graph");
    return UINT64_MAX;
  }
  const eg_rule *r = &rs->rule[rule];
  eg_searcher s;
  eg_searcher_init(&s, g, rs);
  eg_reader rd = {0};
  eg_vec tuples = {0};
  eg_sink sink = {.found = fn ? &tuples : NULL, .limit = UINT64_MAX};
  uint32_t zero = 0;
  uint64_t n = UINT64_MAX;
  if (eg_searcher_prepare(&s) && eg_search(&s, &rule, &sink, 1, 0, &zero) &&
      (!fn || eg_reader_init(&rd, &g->mem, rs))) {
    n = sink.count;
    tarn_eg_match m;
    for (size_t i = 0; i < tuples.n; i += r->n_words)
      if (!eg_read(&rd, g, r, rule, tuples.p + i, &m) || !fn(user, &m)) {
        n = i / r->n_words + 1;
        break;
      }
  }
  eg_reader_free(&rd, &g->mem);
  eg_vec_free(&g->mem, &tuples);
  eg_searcher_free(&s);
  return n;
}
