/* What to search for: which roots and which classes to start from.
 *
 * To find only what is new since a stamp, each match is found from its first changed atom: a search
 * is made for each atom i in which atom i must be changed and the atoms before it must not be.  For
 * a root, and every atom of a joined rule, that starts from the changed nodes; for an inner atom,
 * from the classes that hold changed nodes, climbing their uses to the root (the nodes on the way
 * are then fixed). */
#include "egraph/match.h"
#include "egraph/table.h"

#include <string.h>

static bool test_possible(const eg_searcher *s, uint32_t test) {
  for (uint32_t h = 0; h < s->ok_heads; h++)
    if (s->ok[test * s->ok_stride + h] && s->g->heads[h].live) return true;
  return false;
}

/* A rule none of whose nodes of some kind exist costs nothing. */
static bool rule_possible(const eg_searcher *s, const eg_rule *r) {
  for (uint32_t a = 0; a < r->n_atoms; a++)
    if (!test_possible(s, r->atom[a].test)) return false;
  return !r->bare;
}

static uint64_t count_test(const eg_searcher *s, uint32_t test) {
  uint64_t n = 0;
  for (uint32_t h = 0; h < s->ok_heads; h++)
    if (s->ok[test * s->ok_stride + h]) n += s->g->heads[h].live;
  return n;
}

/* Where all is new, any atom of a joined rule will do to begin from: the first, or one that far
 * fewer nodes fit. */
static uint32_t root_to_begin(const eg_searcher *s, const eg_rule *r) {
  enum { MANY = 256, FEWER = 4 };
  uint32_t root = 0;
  if (s->since || !r->joined) return root;
  uint64_t least = count_test(s, r->atom[0].test) / FEWER;
  if (least < MANY / FEWER) return root;
  for (uint32_t a = 1; a < r->n_atoms; a++) {
    uint64_t n = count_test(s, r->atom[a].test);
    if (n < least) root = a, least = n;
  }
  return root;
}

/* A piece of a search: its part of the roots, then of the classes. */
static size_t piece(size_t n, const eg_search_job *j, uint32_t k) { return n * k / j->pieces; }

/* ---- searches ---- */

/* Atom must be changed, those before it old, those after it anything. */
static void set_modes(eg_searcher *s, const eg_rule *r, uint32_t atom) {
  for (uint32_t a = 0; a < r->n_atoms; a++) s->mode[a] = a < atom && s->since ? OLD : ANY;
  s->mode[atom] = CHANGED;
}

/* By the plan of this atom, or of the root above it. */
static void start_rule(eg_searcher *s, const eg_rule *r, eg_sink *sink, uint32_t atom) {
  uint32_t plan = r->joined ? atom : 0;
  s->r = r, s->sink = sink;
  s->code = r->plan[plan], s->len = r->plan_len[plan];
  s->left = s->n_trail = 0;
  if (r->joined) eg_join_begin(s, atom);
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
    if (sink->found && !eg_push(s->mem, sink->found, c)) return false;
  }
  return true;
}

/* Roots among all nodes, in order of ids; for few rules, when everything is new. */
static bool search_roots_all(eg_searcher *s, const eg_rule *r, eg_sink *sink, uint32_t first,
                             uint32_t end) {
  uint32_t root = 0, test = r->atom[0].test;
  start_rule(s, r, sink, 0);
  memset(s->mode, ANY, r->n_atoms);
  const uint8_t *ok = s->ok + test * s->ok_stride;
  for (uint32_t n = first; n < end && !sink->full; n++) {
    uint32_t h = s->g->rec[n].head & (HEAD_HIDDEN | HEAD_BITS);
    if (h < s->ok_heads && ok[h] && !eg_run_from(s, root, n) && s->gave_up) return false;
  }
  return true;
}

void eg_sort_by_key(uint64_t *p, uint64_t *tmp, size_t n, uint32_t n_keys) {
  enum { DIGIT = 11, VALUES = 1 << DIGIT };
  uint64_t *from = p, *to = tmp;
  for (unsigned shift = 32; shift == 32 || n_keys >> (shift - 32); shift += DIGIT) {
    size_t at[VALUES + 1] = {0};
    for (size_t i = 0; i < n; i++) at[(from[i] >> shift) % VALUES + 1]++;
    for (size_t v = 0; v < VALUES; v++) at[v + 1] += at[v];
    for (size_t i = 0; i < n; i++) to[at[(from[i] >> shift) % VALUES]++] = from[i];
    uint64_t *t = from;
    from = to, to = t;
  }
  if (from != p) memcpy(p, from, n * sizeof *p);
}

/* Roots one after the other whose nodes are looked for in the same class. */
static bool run_grouped(eg_searcher *s, uint32_t root, int32_t slot, const uint32_t *node,
                        size_t n) {
  if (!eg_grow(s->mem, (void **)&s->pairs, &s->pairs_cap, n, sizeof *s->pairs) ||
      !eg_grow(s->mem, (void **)&s->pairs2, &s->pairs2_cap, n, sizeof *s->pairs2)) {
    s->gave_up = true;
    return false;
  }
  for (size_t i = 0; i < n; i++) s->pairs[i] = (uint64_t)s->g->rec[node[i]].k[slot] << 32 | node[i];
  eg_sort_by_key(s->pairs, s->pairs2, n, s->g->n_ids);
  for (size_t i = 0; i < n; i++)
    if (!eg_run_from(s, root, (uint32_t)s->pairs[i])) return false;
  return true;
}

/* The kid of the root whose class the plan enumerates first, or -1. */
static int32_t first_kid(const eg_searcher *s, uint32_t root) {
  const eg_instr *in = s->len > 1 ? &s->code[1] : NULL;
  return in && (in->code == I_ENUM || in->code == I_KEYED) && in->x_near && in->x.atom == root
             ? in->x.slot
             : -1;
}

static bool run_roots(eg_searcher *s, uint32_t root, const uint32_t *node, size_t n) {
  enum { UNCACHED = 1 << 15, AHEAD = 8 }; /* ids of a graph that does not fit into the caches */
  const tarn_egraph *g = s->g;
  int32_t kid = g->n_ids < UNCACHED ? -1 : first_kid(s, root);
  for (size_t i = 0; i < n; i++) {
    if (kid >= 0 && i + 2 * AHEAD < n) {
      EG_FETCH(&g->rec[node[i + 2 * AHEAD]]);
      uint32_t cls = g->rec[node[i + AHEAD]].k[kid];
      EG_FETCH(&g->mask[cls]), EG_FETCH(&g->rec[cls]);
    }
    if (!eg_run_from(s, root, node[i])) return false;
  }
  return true;
}

/* Matches whose first changed atom is a root. */
static bool search_roots(eg_searcher *s, const eg_rule *r, eg_sink *sink, uint32_t root,
                         size_t first, size_t end) {
  enum { WORTH = 256 }; /* to sort */
  const eg_atom *at = &r->atom[root];
  start_rule(s, r, sink, root);
  set_modes(s, r, root);
  const uint8_t *ok = s->ok + at->test * s->ok_stride;
  int32_t slot = r->group_by;
  for (uint32_t h = 0; h < s->ok_heads && !sink->full; h++) {
    size_t i = s->head_at.p[h], stop = s->head_at.p[h + 1];
    i = i > first ? i : first, stop = stop < end ? stop : end;
    if (!ok[h] || i >= stop) continue;
    const uint32_t *node = s->order.p + i;
    bool sort = slot >= 0 && s->since == 0 && stop - i >= WORTH;
    bool go =
        sort ? run_grouped(s, root, slot, node, stop - i) : run_roots(s, root, node, stop - i);
    if (!go && s->gave_up) return false;
  }
  return true;
}

/* node is fixed for atom; climb to the root through nodes that are not changed. */
static bool climb(eg_searcher *s, uint32_t atom, uint32_t node);

static bool slot_fits(const eg_searcher *s, uint32_t atom, uint32_t owner, uint32_t slot,
                      uint32_t cls) {
  int32_t want = s->r->atom[atom].slot;
  uint32_t n = eg_arity(s->g, owner);
  if (want >=
      SLOT_ELEM) { /* several places are possible: take the first use only, run() tries all */
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
  if (s->r->atom[atom].parent == NONE) return eg_run_from(s, atom, node);
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

/* The next node from i on that is stamped after since; n: none. Most are old where little has
 * changed, eight at a time. */
static inline uint32_t next_changed(const uint16_t *stamp, uint32_t i, uint32_t n, uint32_t since) {
  if (i < n && stamp[i] > since) return i;
#if defined(__SSE2__)
  const __m128i at = _mm_set1_epi16((short)since), zero = _mm_setzero_si128();
  while (i + 8 <= n) {
    __m128i over = _mm_subs_epu16(_mm_loadu_si128((const __m128i *)(const void *)(stamp + i)), at);
    uint32_t old = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi16(over, zero));
    if (old != 0xFFFF) return i + eg_lowest(~old) / 2;
    i += 8;
  }
#endif
  while (i < n && stamp[i] <= since) i++;
  return i;
}

/* Nodes stamped after since, by head and id. */
static bool index_nodes(eg_searcher *s) {
  const tarn_egraph *g = s->g;
  uint32_t since = s->since;
  s->head_at.n = s->order.n = 0;
  if (!eg_vec_reserve(s->mem, &s->head_at, g->n_heads + 2)) return false;
  uint32_t *at = s->head_at.p;
  memset(at, 0, (g->n_heads + 2) * sizeof *at);
  const uint16_t *stamp = g->stamp;
  size_t total = 0;
  for (uint32_t i = 0; (i = next_changed(stamp, i, g->n_ids, since)) < g->n_ids; i++)
    at[(g->rec[i].head & HEAD_BITS) + 2]++, total++;
  if (!eg_vec_reserve(s->mem, &s->order, total)) return false;
  for (uint32_t h = 0; h < g->n_heads; h++) at[h + 2] += at[h + 1];
  for (uint32_t i = 0; (i = next_changed(stamp, i, g->n_ids, since)) < g->n_ids; i++)
    s->order.p[at[(g->rec[i].head & HEAD_BITS) + 1]++] = i;
  s->order.n = total;
  return true;
}

/* Of its changed nodes, as far as somebody wants to know. */
static uint16_t changed_ops(const tarn_egraph *g, uint32_t cls, uint32_t since, uint16_t wanted) {
  uint16_t ops = 0;
  if (g->stamp[cls] > since) ops = g->heads[eg_head_of(g, cls)].bit;
  for (uint32_t n = g->rec[cls].next; n != cls && (ops & wanted) != wanted; n = g->rec[n].next) {
    if (g->stamp[n] > since) ops |= g->heads[eg_head_of(g, n)].bit;
    else if (g->stamp[n]) break;
  }
  return ops;
}

/* Classes that hold such nodes and have uses by old ones: found once each, through the first
 * changed node of the class list. Those from new_id on have only new names, and so have their uses.
 */
static bool index_classes(eg_searcher *s, uint32_t new_id) {
  tarn_egraph *g = s->g;
  bool ok = true;
  s->classes.n = 0;
  for (size_t i = 0; ok && i < s->order.n; i++) {
    uint32_t c = eg_find(g, s->order.p[i]);
    if (c >= new_id || g->mask[c] & CLS_QUEUED || eg_use_head(g, c) == USE_END) continue;
    if (!(ok = eg_vec_reserve(s->mem, &s->classes, 2))) break;
    g->mask[c] |= CLS_QUEUED; /* as a mark, taken back below */
    s->classes.p[s->classes.n++] = c;
    s->classes.p[s->classes.n++] = changed_ops(g, c, s->since, s->wanted);
  }
  for (size_t i = 0; i < s->classes.n; i += 2) g->mask[s->classes.p[i]] &= (uint16_t)~CLS_QUEUED;
  return ok;
}

/* A rule's inner atom, as a use of a class that holds changed nodes is asked about it. */
typedef struct trigger {
  uint32_t rule, atom; /* the rule's place among those searched for */
  uint32_t ops;        /* of the atom's test */
  uint32_t slot;       /* of the use; NONE: any */
} trigger;
enum { TRIGGER_WORDS = sizeof(trigger) / sizeof(uint32_t) };

static trigger trigger_of(const eg_searcher *s, const eg_rule *r, uint32_t i, uint32_t a) {
  int32_t slot = r->atom[a].slot;
  return (trigger){i, a, s->rs->test[r->atom[a].test].ops,
                   slot >= 0 && slot < SLOT_ELEM ? (uint32_t)slot : NONE};
}

/* For each head: the triggers of atoms whose parent a node of that head may be, and the ops that
 * they are about. */
static bool index_triggers(eg_searcher *s, const uint32_t *rules, const eg_sink *sinks, uint32_t n,
                           uint16_t *ops) {
  eg_mem *m = s->mem;
  s->trig.n = s->trig_at.n = 0;
  *ops = 0;
  for (uint32_t h = 0; h <= s->ok_heads; h++) {
    uint32_t about = 0;
    size_t at = s->trig_at.n;
    if (!eg_push(m, &s->trig_at, (uint32_t)s->trig.n) || !eg_push(m, &s->trig_at, 0)) return false;
    if (h == s->ok_heads || !s->g->heads[h].live) continue;
    for (uint32_t i = 0; i < n; i++) {
      const eg_rule *r = &s->rs->rule[rules[i]];
      if (sinks[i].full || !s->possible.p[i] || r->joined) continue;
      for (uint32_t a = 0; a < r->n_atoms; a++) {
        uint32_t up = r->atom[a].parent;
        if (up == NONE || !s->ok[r->atom[up].test * s->ok_stride + h]) continue;
        trigger t = trigger_of(s, r, i, a);
        about |= t.ops;
        if (!eg_vec_reserve(m, &s->trig, TRIGGER_WORDS)) return false;
        memcpy(s->trig.p + s->trig.n, &t, sizeof t);
        s->trig.n += TRIGGER_WORDS;
      }
    }
    s->trig_at.p[at + 1] = about;
    *ops |= (uint16_t)about;
  }
  return true;
}

static bool pull_trigger(eg_searcher *s, const uint32_t *rules, eg_sink *sinks, const trigger *t,
                         uint32_t cls, uint32_t e, uint32_t owner) {
  eg_sink *sink = &sinks[t->rule];
  const eg_rule *r = &s->rs->rule[rules[t->rule]];
  if (sink->full) return true;
  start_rule(s, r, sink, t->atom);
  set_modes(s, r, t->atom);
  s->require = cls;
  climb_one(s, t->atom, cls, e, owner);
  return !s->gave_up;
}

/* A use of a class, by a node that is old itself. */
static inline bool pull_triggers(eg_searcher *s, const eg_search_job *j, eg_sink *sinks,
                                 uint32_t cls, uint32_t ops, uint32_t e, uint32_t owner) {
  uint32_t h = s->g->rec[owner].head & HEAD_BITS;
  const uint32_t *at = s->trig_at.p + 2 * (size_t)h;
  if (!(ops & at[1])) return true;
  uint32_t slot = eg_use_slot(s->g, e, owner);
  for (uint32_t k = at[0]; k < at[2]; k += TRIGGER_WORDS) {
    trigger t;
    memcpy(&t, s->trig.p + k, sizeof t);
    if (!(ops & t.ops) || (t.slot != slot && t.slot != NONE)) continue;
    if (!pull_trigger(s, j->rules, sinks, &t, cls, e, owner)) return false;
  }
  return true;
}

/* Matches whose first changed atom is not a root. */
static bool search_inner(eg_searcher *s, const eg_search_job *j, eg_sink *sinks, size_t first,
                         size_t end) {
  const tarn_egraph *g = s->g;
  for (size_t i = 2 * first; i < 2 * end; i += 2) {
    uint32_t cls = s->classes.p[i];
    uint16_t ops = (uint16_t)s->classes.p[i + 1];
    if (!(ops & s->wanted)) continue;
    for (uint32_t e = eg_use_head(g, cls); e != USE_END; e = *eg_use_next(g, e)) {
      uint32_t owner = eg_use_owner(g, e);
      uint16_t st = g->stamp[owner];
      if (st && st <= s->since && !pull_triggers(s, j, sinks, cls, ops, e, owner)) return false;
    }
  }
  return true;
}

bool eg_search_piece(eg_searcher *s, const eg_search_job *j, eg_sink *sinks, uint32_t k) {
  s->require = NONE;
  for (uint32_t i = 0; i < j->n; i++) {
    const eg_rule *r = &s->rs->rule[j->rules[i]];
    if (!s->possible.p[i]) continue;
    size_t n = j->scan ? s->g->n_ids : s->order.n, first = piece(n, j, k), end = piece(n, j, k + 1);
    if (j->scan && !search_roots_all(s, r, &sinks[i], (uint32_t)first, (uint32_t)end)) return false;
    for (uint32_t a = 0; !j->scan && a < r->n_atoms; a++)
      if (eg_plan_of(r, a) != NONE && (s->since || a == s->possible.p[i] - 1) &&
          !search_roots(s, r, &sinks[i], a, first, end))
        return false;
  }
  size_t n = s->classes.n / 2;
  return search_inner(s, j, sinks, piece(n, j, k), piece(n, j, k + 1));
}

/* What has changed, where that is not everything, and what could be found from it. */
static bool index_changes(eg_searcher *s, const eg_search_job *j, const eg_sink *sinks,
                          uint32_t new_id) {
  s->trig.n = s->classes.n = 0, s->wanted = 0;
  if (j->scan) return true;
  if (!index_nodes(s)) return false;
  if (!s->since) return true;
  if (!index_triggers(s, j->rules, sinks, j->n, &s->wanted)) return false;
  return !s->trig.n || index_classes(s, new_id);
}

/* Pieces are searched one after the other, or by several threads, with the same result: their
 * number depends on the size of the search alone. */
enum { FEW_RULES = 3, PIECES = 32, SMALL = 1 << 13, WORTH_THREADS = 1 << 14 };

bool eg_search(eg_searcher *s, const uint32_t *rules, eg_sink *sinks, uint32_t n, uint32_t since,
               const uint32_t *first_id) {
  uint32_t left = 0, new_id = 0;       /* ids from there on are younger than since */
  bool grouped = false, begun = false; /* some rule's roots; by another one than the first */
  s->since = since, s->gave_up = false;
  s->possible.n = 0;
  for (size_t a = 0; a < s->keyed_cap; a++)
    s->keyed[a].at = NULL; /* classes and stamps are no longer what they were */
  eg_kinds_forget(&s->kinds);
  for (uint32_t i = 0; i < n; i++) {
    const eg_rule *r = &s->rs->rule[rules[i]];
    if (r->bare && !search_bare(s, r, &sinks[i], since ? first_id[i] : 0)) return false;
    uint32_t root = rule_possible(s, r) ? 1 + root_to_begin(s, r) : 0;
    if (!eg_push(s->mem, &s->possible, root)) return false;
    left += root > 0;
    begun |= root > 1;
    if (first_id[i] > new_id) new_id = first_id[i];
    grouped |= s->possible.p[i] && r->group_by >= 0;
  }
  bool changed = !since || since + 1 < s->g->now || s->g->now_used;
  if (!left || !changed) return true;
  eg_search_job j = {rules, n, since == 0 && left <= FEW_RULES && !grouped && !begun, 1};
  eg_team *team = NULL;
  if (s->threads > 1 && s->g->n_ids - new_id > WORTH_THREADS && !(team = eg_team_start(s)))
    return false;
  if (!index_changes(s, &j, sinks, new_id)) {
    eg_team_send_home(team);
    return false;
  }
  size_t roots = j.scan ? s->g->n_ids : s->order.n;
  double more = s->last_roots ? (double)roots / (double)s->last_roots : 0;
  s->last_roots = roots;
  if (roots > SMALL) j.pieces = PIECES;
  if (s->threads > 1 && !team && roots > WORTH_THREADS && !(team = eg_team_start(s))) return false;
  if (team) return eg_team_search(team, &j, sinks, more);
  for (uint32_t k = 0; k < j.pieces; k++)
    if (!eg_search_piece(s, &j, sinks, k)) return false;
  return true;
}

/* ---- the public search ---- */

uint64_t tarn_eg_search(tarn_egraph *g, const tarn_eg_rules *rs, uint32_t rule,
                        tarn_eg_match_fn *fn, void *user) {
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
