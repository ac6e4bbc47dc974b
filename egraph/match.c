/* E-matching.
 *
 * A plan binds the atoms of a rule one by one; run() interprets it with backtracking.  Where a rule
 * has several roots, each atom has a plan of its own, and join.c says which comes next.  Each atom
 * has a mode: any node, only one that has changed since a stamp, only one that has not, or one
 * fixed node.  In a class list changed nodes come first, so that old ones are not visited when only
 * changed ones are wanted. */
#include "egraph/match.h"

#include <string.h>

#define GROW(s, field, need)                                                                       \
  (eg_grow((s)->mem, (void **)&(s)->field, &(s)->field##_cap, (need), sizeof *(s)->field))

void eg_searcher_init(eg_searcher *s, tarn_egraph *g, const tarn_eg_rules *rs) {
  *s = (eg_searcher){.g = g, .rs = rs, .mem = &g->mem};
}

void eg_scratch_free(eg_searcher *s) {
  eg_mem *m = s->mem;
  eg_release(m, s->tuple, s->tuple_cap * sizeof *s->tuple);
  eg_release(m, s->fixed, s->fixed_cap * sizeof *s->fixed);
  eg_release(m, s->mode, s->mode_cap);
  eg_release(m, s->done, s->done_cap);
  eg_release(m, s->met, s->met_cap * sizeof *s->met);
  eg_release(m, s->trail, s->trail_cap * sizeof *s->trail);
  for (size_t a = 0; a < s->keyed_cap; a++)
    eg_release(m, s->keyed[a].pair, s->keyed[a].pair_cap * sizeof *s->keyed[a].pair);
  eg_release(m, s->keyed, s->keyed_cap * sizeof *s->keyed);
  eg_kinds_free(m, &s->kinds);
  eg_release(m, s->pairs, s->pairs_cap * sizeof *s->pairs);
  eg_release(m, s->pairs2, s->pairs2_cap * sizeof *s->pairs2);
}

void eg_searcher_free(eg_searcher *s) {
  eg_mem *m = s->mem;
  eg_release(m, s->ok, s->ok_cap);
  eg_release(m, s->leaf, s->leaf_cap * sizeof *s->leaf);
  eg_vec_free(m, &s->order), eg_vec_free(m, &s->head_at), eg_vec_free(m, &s->classes);
  eg_vec_free(m, &s->trig), eg_vec_free(m, &s->trig_at), eg_vec_free(m, &s->possible);
  eg_scratch_free(s);
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
    bool leaf =
        t->n == 0 && !t->segs && t->op_how == TARN_EG_EXACT && t->payload_how == TARN_EG_EXACT;
    if (leaf && t->test && !t->test(t->user, t->op, t->payload)) leaf = false;
    uint32_t id = leaf ? tarn_eg_lookup(s->g, t->op, t->payload, NULL, 0) : NONE;
    s->leaf[i] = id != NONE && eg_visible(s->g, id) ? id : NONE;
  }
  return true;
}

static bool prepare_keyed(eg_searcher *s) {
  size_t was = s->keyed_cap;
  if (!GROW(s, keyed, s->rs->max_words + 1u)) return false;
  memset(s->keyed + was, 0, (s->keyed_cap - was) * sizeof *s->keyed);
  return true;
}

bool eg_scratch_prepare(eg_searcher *s) {
  uint32_t w = s->rs->max_words + 1, met = s->rs->max_met + 1;
  return prepare_keyed(s) && GROW(s, tuple, w) && GROW(s, fixed, w) && GROW(s, mode, w) &&
         GROW(s, done, w) && GROW(s, met, met) && GROW(s, trail, met);
}

bool eg_searcher_prepare(eg_searcher *s) {
  return prepare_tests(s) && prepare_leaves(s) && eg_scratch_prepare(s);
}

/* ---- running a plan ---- */

static bool run(eg_searcher *s, uint32_t pc);

static inline uint32_t class_at(const eg_searcher *s, eg_src x, bool near) {
  return near ? s->g->rec[s->tuple[x.atom]].k[x.slot] : eg_src_class(s->g, s->r, x, s->tuple);
}

static bool is_new(const eg_searcher *s) {
  for (uint32_t a = 0; a < s->r->n_atoms; a++)
    if (s->g->stamp[s->tuple[a]] > s->sink->seen) return true;
  return false;
}

/* Most tuples are short: no call for those. */
static inline void write_tuple(uint32_t *to, const uint32_t *tuple, uint32_t n) {
  if (n > 3) {
    memcpy(to, tuple, n * sizeof *to);
    return;
  }
  to[0] = tuple[0];
  if (n > 1) to[1] = tuple[1];
  if (n > 2) to[2] = tuple[2];
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
  if (v->cap - v->n < w && !eg_vec_reserve(s->mem, v, w)) {
    s->gave_up = true;
    return false;
  }
  write_tuple(v->p + v->n, s->tuple, w);
  v->n += w;
  return true;
}

/* Time is asked for once in LOOK nodes that were looked at. */
enum { LOOK = 1 << 16 };
bool eg_out_of_time(eg_searcher *s, uint32_t looked) {
  if (!s->hurry || (s->patience += 1 + looked) < LOOK) return false;
  s->patience = 0;
  if (s->hurry(s->user)) s->gave_up = true;
  return s->gave_up;
}

static inline bool bind(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t node) {
  s->tuple[atom] = node;
  return pc + 1 == s->len ? found(s) : run(s, pc + 1);
}

static bool try_node(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t node) {
  if (!head_ok(s, s->r->atom[atom].test, s->g->rec[node].head) || !eg_mode_allows(s, atom, node))
    return true;
  return bind(s, pc, atom, node);
}

/* ---- joining on a kid ----
 * A pattern like (+ (* ?a ?b) (* ?a ?c)) asks the same class again and again for nodes with a given
 * kid.  From the second time on, a long class is sorted by that kid.  Each atom has its own list:
 * an enumeration may go on inside that of another atom. */

enum { LONG_CLASS = 12 };
/* In a class of so many nodes, such as that of true, a kid with few uses is asked for these. */
enum { HUGE_CLASS = 1024 };

static void sift(uint64_t *h, size_t i, size_t n) {
  for (size_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && h[k + 1] > h[k]) k++;
    if (h[i] >= h[k]) return;
    uint64_t t = h[i];
    h[i] = h[k], h[k] = t;
  }
}

static void sort_pairs(uint64_t *h, size_t n) {
  for (size_t i = n / 2; i-- > 0;) sift(h, i, n);
  for (size_t i = n; i-- > 1;) {
    uint64_t t = h[0];
    h[0] = h[i], h[i] = t;
    sift(h, 0, i);
  }
}

static inline bool fits(const eg_searcher *s, const uint8_t *ok, uint32_t node) {
  uint32_t h = s->g->rec[node].head & (HEAD_HIDDEN | HEAD_BITS);
  return h < s->ok_heads && ok[h];
}

/* The nodes of the class that may be taken, one after the other: root first, then changed ones,
 * then old ones. */
static inline bool over(const eg_searcher *s, uint8_t mode, uint32_t node) {
  return mode == CHANGED && s->g->stamp[node] && s->g->stamp[node] <= s->since;
}
static inline bool taken(const eg_searcher *s, const uint8_t *ok, uint32_t atom, uint32_t node) {
  return fits(s, ok, node) && eg_mode_allows(s, atom, node);
}

static bool sort_class(eg_searcher *s, eg_keyed *j, const uint8_t *ok, const eg_instr *in) {
  const tarn_egraph *g = s->g;
  size_t n = 0;
  uint32_t node = j->cls;
  do {
    if (taken(s, ok, in->a, node)) {
      if (!eg_grow(s->mem, (void **)&j->pair, &j->pair_cap, n + 1, sizeof *j->pair)) return false;
      j->pair[n++] = (uint64_t)g->rec[node].k[in->key] << 32 | node;
    }
    node = g->rec[node].next;
  } while (node != j->cls && !over(s, j->mode, node));
  sort_pairs(j->pair, n);
  j->n = n, j->sorted = true;
  return true;
}

static bool run_sorted(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t kid) {
  const eg_keyed *j = &s->keyed[atom];
  size_t lo = 0, hi = j->n;
  while (lo < hi) {
    size_t mid = (lo + hi) / 2;
    if (j->pair[mid] >> 32 < kid) lo = mid + 1;
    else hi = mid;
  }
  for (; lo < j->n && j->pair[lo] >> 32 == kid; lo++)
    if (!bind(s, pc, atom, (uint32_t)j->pair[lo])) return false;
  return !eg_out_of_time(s, 0);
}

/* By the uses of the kid. */
static bool run_few(eg_searcher *s, uint32_t pc, const eg_instr *in, uint32_t cls, uint32_t kid) {
  const tarn_egraph *g = s->g;
  const uint8_t *ok = s->ok + s->r->atom[in->a].test * s->ok_stride;
  for (uint32_t e = eg_use_head(g, kid); e != USE_END; e = *eg_use_next(g, e)) {
    uint32_t n = eg_use_owner(g, e);
    if (!eg_visible(g, n) || eg_use_slot(g, e, n) != in->key || !taken(s, ok, in->a, n)) continue;
    if (eg_find(g, n) == cls && !bind(s, pc, in->a, n)) return false;
  }
  return !eg_out_of_time(s, FEW_USES / 2);
}

/* The nodes of the class with that kid. */
static bool run_join(eg_searcher *s, uint32_t pc, const eg_instr *in, uint32_t cls, uint32_t kid) {
  const tarn_egraph *g = s->g;
  const uint8_t *ok = s->ok + s->r->atom[in->a].test * s->ok_stride;
  uint8_t mode = s->mode[in->a];
  eg_keyed *j = &s->keyed[in->a];
  bool again = j->at == in && j->cls == cls && j->mode == mode;
  if (again && j->is_long) {
    if (!j->sorted && j->is_huge && eg_has_few_uses(g, kid)) return run_few(s, pc, in, cls, kid);
    if (j->sorted || sort_class(s, j, ok, in)) return run_sorted(s, pc, in->a, kid);
    s->gave_up = true;
    return false;
  }
  uint32_t n = cls, steps = 0;
  do {
    steps++;
    if (g->rec[n].k[in->key] == kid && taken(s, ok, in->a, n) && !bind(s, pc, in->a, n))
      return false;
    n = g->rec[n].next;
  } while (n != cls && !over(s, mode, n));
  if (!again)
    *j = (eg_keyed){.at = in,
                    .cls = cls,
                    .mode = mode,
                    .is_long = steps > LONG_CLASS,
                    .is_huge = steps > HUGE_CLASS,
                    .pair = j->pair,
                    .pair_cap = j->pair_cap};
  return !eg_out_of_time(s, steps);
}

/* ---- enumerating ---- */

/* No node of the class can be right. */
static inline bool class_hopeless(const eg_searcher *s, uint32_t atom, uint32_t cls) {
  if (s->mode[atom] == CHANGED && s->require != NONE && cls != s->require) return true;
  return !(s->g->mask[cls] & s->rs->test[s->r->atom[atom].test].ops);
}

/* The rest of the list after the class's name, for a mode that does not fix the node. */
static inline bool run_list(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t cls,
                            uint8_t mode) {
  const tarn_egraph *g = s->g;
  const uint8_t *ok = s->ok + s->r->atom[atom].test * s->ok_stride;
  uint32_t looked = 0;
  for (uint32_t n = g->rec[cls].next; n != cls; n = g->rec[n].next) {
    looked++;
    uint16_t st = mode == ANY ? 1 : g->stamp[n];
    if (mode == CHANGED && st <= s->since) {
      if (st == 0) continue;
      break;
    }
    if (mode == OLD && st > s->since) continue;
    if (fits(s, ok, n) && !bind(s, pc, atom, n)) return false;
  }
  return !eg_out_of_time(s, looked);
}

/* The same for the last atom when all that is found is new and none too many: each node that fits
 * is a match. */
static bool run_last(eg_searcher *s, uint32_t atom, uint32_t cls) {
  const eg_rec *rec = s->g->rec;
  const uint8_t *ok = s->ok + s->r->atom[atom].test * s->ok_stride;
  uint32_t heads = s->ok_heads, words = s->r->n_words, *tuple = s->tuple;
  uint64_t count = 0;
  eg_vec *v = s->sink->found;
  for (uint32_t n = rec[cls].next; n != cls; n = rec[n].next) {
    uint32_t h = rec[n].head & (HEAD_HIDDEN | HEAD_BITS);
    if (h >= heads || !ok[h]) continue;
    count++;
    if (!v) continue;
    if (v->cap - v->n < words && !eg_vec_reserve(s->mem, v, words)) {
      s->gave_up = true;
      return false;
    }
    tuple[atom] = n;
    write_tuple(v->p + v->n, tuple, words);
    v->n += words;
  }
  s->sink->count += count;
  return !eg_out_of_time(s, (uint32_t)count);
}

static bool run_enum(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t cls) {
  uint8_t mode = s->mode[atom];
  if (mode == FIXED)
    return eg_find(s->g, s->fixed[atom]) != cls || bind(s, pc, atom, s->fixed[atom]);
  if (class_hopeless(s, atom, cls)) return true;
  if (!try_node(s, pc, atom, cls)) return false;
  if (mode != ANY) return run_list(s, pc, atom, cls, mode);
  bool plain = s->sink->limit == UINT64_MAX && s->sink->seen <= s->since;
  return plain && pc + 1 == s->len ? run_last(s, atom, cls) : run_list(s, pc, atom, cls, ANY);
}

static bool run_keyed(eg_searcher *s, uint32_t pc, const eg_instr *in) {
  const tarn_egraph *g = s->g;
  uint32_t cls = class_at(s, in->x, in->x_near), kid = class_at(s, in->y, in->y_near);
  uint8_t mode = s->mode[in->a];
  if (mode == FIXED) {
    uint32_t n = s->fixed[in->a];
    return eg_find(g, n) != cls || g->rec[n].k[in->key] != kid || bind(s, pc, in->a, n);
  }
  if (class_hopeless(s, in->a, cls)) return true;
  return run_join(s, pc, in, cls, kid);
}

static bool run_leaf(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t cls) {
  uint32_t n = s->leaf[s->r->atom[atom].test];
  if (n == NONE || eg_find(s->g, n) != cls || !eg_mode_allows(s, atom, n)) return true;
  return bind(s, pc, atom, n);
}

/* Every way to give the segments of an atom their lengths; the last one takes the rest. */
static bool run_split(eg_searcher *s, uint32_t pc, uint32_t atom, uint32_t seg, uint32_t rest) {
  const eg_atom *a = &s->r->atom[atom];
  if (seg + 1 == a->n_segs) {
    uint32_t mark = s->n_trail;
    bool go = run(s, pc + 1);
    eg_join_undo(s, mark);
    return go;
  }
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

static bool same(const eg_searcher *s, eg_opcode how, eg_src x, eg_src y) {
  switch (how) {
  case I_PAYLOAD: return head_at(s, x.atom)->payload == head_at(s, y.atom)->payload;
  case I_OP: return head_at(s, x.atom)->op == head_at(s, y.atom)->op;
  case I_SEG: return same_segs(s, x, y);
  default: return class_at(s, x, false) == class_at(s, y, false);
  }
}

static bool met(eg_searcher *s, const eg_instr *in) {
  eg_src *first = &s->met[in->a];
  if (first->atom != NONE) return same(s, (eg_opcode)in->key, *first, in->x);
  *first = in->x;
  s->trail[s->n_trail++] = in->a;
  return true;
}

/* From instruction pc on. false: stop searching. */
static bool run(eg_searcher *s, uint32_t pc) {
  for (; pc < s->len; pc++) {
    const eg_instr *in = &s->code[pc];
    switch (in->code) {
    case I_EQ:
      if (class_at(s, in->x, in->x_near) != class_at(s, in->y, in->y_near)) return true;
      break;
    case I_PAYLOAD:
    case I_OP:
    case I_SEG:
      if (!same(s, in->code, in->x, in->y)) return true;
      break;
    case I_MEET:
      if (!met(s, in)) return true;
      break;
    case I_ENUM: return run_enum(s, pc, in->a, class_at(s, in->x, in->x_near));
    case I_KEYED: return run_keyed(s, pc, in);
    case I_LEAF: return run_leaf(s, pc, in->a, class_at(s, in->x, in->x_near));
    case I_SPLIT:
      return run_split(s, pc, in->a, 0,
                       eg_arity(s->g, s->tuple[in->a]) - s->r->atom[in->a].n_fixed);
    case I_ROOT: break;
    }
  }
  return s->left ? eg_join_next(s) : found(s);
}

bool eg_run_from(eg_searcher *s, uint32_t root, uint32_t node) {
  uint32_t mark = s->n_trail;
  s->tuple[root] = node;
  bool go = run(s, 1);
  eg_join_undo(s, mark);
  return go;
}

/* ---- reading a tuple ---- */

bool eg_reader_init(eg_reader *rd, eg_mem *m, const tarn_eg_rules *rs) {
  return eg_grow(m, (void **)&rd->vars, &rd->vars_cap, rs->max_vars + 1u, sizeof *rd->vars) &&
         eg_grow(m, (void **)&rd->payloads, &rd->payloads_cap, rs->max_payloads + 1u,
                 sizeof *rd->payloads) &&
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

bool eg_read(eg_reader *rd, tarn_egraph *g, const eg_rule *r, uint32_t number,
             const uint32_t *tuple, tarn_eg_match *out) {
  for (uint32_t v = 0; v < r->n_vars; v++)
    rd->vars[v] = r->bare ? (r->var[v].atom == NONE ? NONE : eg_find_mut(g, tuple[0]))
                  : r->var[v].atom == NONE ? NONE
                                           : eg_find_mut(g, eg_src_class(g, r, r->var[v], tuple));
  for (uint32_t i = 0; i < r->n_payloads; i++)
    rd->payloads[i] =
        r->payload[i] == NONE ? 0 : g->heads[eg_head_of(g, tuple[r->payload[i]])].payload;
  for (uint32_t i = 0; i < r->n_ops; i++)
    rd->ops[i] = r->op[i] == NONE ? 0 : g->heads[eg_head_of(g, tuple[r->op[i]])].op;
  if (r->n_segs && !read_segs(rd, g, r, tuple)) return false;
  *out = (tarn_eg_match){
      number, eg_find_mut(g, tuple[0]), rd->vars, rd->payloads, rd->ops, rd->segs, tuple};
  return true;
}
