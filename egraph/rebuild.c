/* Unions, congruence, analyses.
 *
 * A union joins the two class lists and the analysis values at once; the uses of the class that
 * lost its name wait in g->pending.  Rebuilding makes those uses canonical, which may show two
 * nodes to be the same: one of them dies and their classes are joined.  Analysis values that
 * changed are carried to the uses of their class.  At the end the lists of classes whose nodes died
 * or changed are put in order again. */
#include "egraph/table.h"

#include <string.h>

#define GROW(g, field, need)                                                                       \
  (eg_grow(&(g)->mem, (void **)&(g)->field, &(g)->field##_cap, (need), sizeof *(g)->field))

/* ---- analyses ---- */

uint32_t tarn_eg_add_analysis(tarn_egraph *g, const tarn_eg_analysis *a) {
  eg_mem *m = &g->mem;
  if (g->n_ids || g->n_analyses == 32) {
    eg_fail(m, TARN_USAGE, "egraph: analyses are added to an empty graph, at most 32");
    return NONE;
  }
  if (!g->analyses) {
    size_t cap[6] = {0};
    void *p[6] = {NULL};
    const size_t each[6] = {sizeof *g->analyses, sizeof *g->data,      sizeof *g->cause,
                            sizeof *g->data_cap, sizeof *g->cause_cap, sizeof *g->data_version};
    bool ok = true;
    for (int i = 0; i < 6; i++) {
      ok = ok && eg_grow(m, &p[i], &cap[i], 32, each[i]);
      if (ok) memset(p[i], 0, 32 * each[i]);
    }
    if (!ok) {
      for (int i = 0; i < 6; i++) eg_release(m, p[i], cap[i] * each[i]);
      return NONE;
    }
    g->analyses = p[0], g->data = p[1], g->cause = p[2];
    g->data_cap = p[3], g->cause_cap = p[4], g->data_version = p[5];
  }
  const char *name = a->name ? a->name : "";
  char *copy = eg_resize(m, NULL, 0, strlen(name) + 1);
  if (!copy) return NONE;
  memcpy(copy, name, strlen(name) + 1);
  g->ids_cap = 0; /* the new value array has no room yet */
  g->analyses[g->n_analyses] = *a;
  g->analyses[g->n_analyses].name = copy;
  return g->n_analyses++;
}

uint64_t tarn_eg_data(const tarn_egraph *g, uint32_t analysis, uint32_t cls) {
  return g->data[analysis][eg_find(g, cls)];
}

static bool make_one(tarn_egraph *g, uint32_t a, uint32_t head, const uint32_t *kids, uint32_t n,
                     uint64_t *out) {
  const tarn_eg_analysis *an = &g->analyses[a];
  tarn_eg_node v = {g->heads[head].op, g->heads[head].payload, n, kids};
  bool was = g->making;
  g->making = true;
  bool ok = an->make(an->user, g, &v, out);
  g->making = was;
  if (!ok)
    eg_fail(&g->mem, TARN_BAD_INPUT,
            "egraph: analysis %s refuses node (op %u, payload %u, %u kids)", an->name, v.op,
            v.payload, n);
  return ok;
}

bool eg_make_all(tarn_egraph *g, uint32_t head, const uint32_t *kids, uint32_t n, uint64_t *out) {
  for (uint32_t a = 0; a < g->n_analyses; a++)
    if (!make_one(g, a, head, kids, n, &out[a])) return false;
  return true;
}

static unsigned join_values(tarn_egraph *g, uint32_t a, uint64_t *x, uint64_t y) {
  const tarn_eg_analysis *an = &g->analyses[a];
  if (*x == y) return TARN_EG_JOIN_SAME;
  bool was = g->making;
  g->making = true;
  unsigned r = an->join(an->user, g, x, y);
  g->making = was;
  return r;
}

static void modify_one(tarn_egraph *g, uint32_t a, uint32_t cls) {
  const tarn_eg_analysis *an = &g->analyses[a];
  if (!an->modify) return;
  cls = eg_find_mut(g, cls);
  an->modify(an->user, g, cls, g->reasons ? g->cause[a][cls] : NONE);
}

void eg_modify_all(tarn_egraph *g, uint32_t cls) {
  for (uint32_t a = 0; a < g->n_analyses; a++) modify_one(g, a, cls);
}

/* How: a union was refused; congruent nodes were joined all the same; node y of class x has that
 * value; someone said so. */
static void note_conflict(tarn_egraph *g, int how, const tarn_eg_conflict *c) {
  g->conflict = *c;
  g->has_conflict = true, g->conflict_how = how;
  g->refused.n = 0;
  eg_fail(&g->mem, TARN_BAD_INPUT,
          "egraph: analysis %s cannot join classes %u and %u (rule %u, note %u)",
          g->analyses[c->analysis].name, c->a, c->b, c->rule, c->note);
}

bool tarn_eg_last_conflict(const tarn_egraph *g, tarn_eg_conflict *out) {
  if (g->has_conflict && out) *out = g->conflict;
  return g->has_conflict;
}

static bool push_changed(tarn_egraph *g, uint32_t cls, uint32_t bits) {
  if (!eg_vec_reserve(&g->mem, &g->changed, 2)) return false;
  g->changed.p[g->changed.n++] = cls;
  g->changed.p[g->changed.n++] = bits;
  return true;
}

/* Joins value into the class's; cause is the node it came from. */
static int join_data(tarn_egraph *g, uint32_t a, uint32_t cls, uint64_t value, uint32_t cause) {
  uint32_t c = eg_find_mut(g, cls);
  uint64_t v = g->data[a][c];
  if (!eg_vec_reserve(&g->mem, &g->changed, 2)) return -1;
  unsigned r = join_values(g, a, &v, value);
  if (r & TARN_EG_JOIN_FAIL) {
    tarn_eg_conflict k = {a,           c,          cause == NONE ? c : cause, g->data[a][c], value,
                          g->cur_rule, g->cur_note};
    note_conflict(g, cause == NONE ? CONFLICT_SAID : CONFLICT_NODE, &k);
    return -1;
  }
  if (!(r & TARN_EG_JOIN_A)) return 0;
  g->data[a][c] = v;
  if (g->reasons && cause != NONE) g->cause[a][c] = cause;
  g->data_version[a]++, g->version++;
  g->dirty = true;
  push_changed(g, c, 1u << a);
  modify_one(g, a, c);
  return 1;
}

int tarn_eg_join_data(tarn_egraph *g, uint32_t analysis, uint32_t cls, uint64_t value) {
  if (analysis >= g->n_analyses || cls >= g->n_ids || g->making) {
    eg_fail(&g->mem, TARN_USAGE, "egraph: join_data: no such analysis or class, or inside make");
    return -1;
  }
  return join_data(g, analysis, cls, value, NONE);
}

/* ---- union ---- */

typedef struct walk { /* over the uses, then the nodes, of a class */
  uint32_t use, node, root;
} walk;

static bool walk_on(const tarn_egraph *g, walk *w) {
  if (w->use != USE_END) {
    w->use = *eg_use_next(g, w->use);
    return true;
  }
  w->node = g->rec[w->node].next;
  return w->node != w->root;
}

/* Of two classes, the one with fewer uses and nodes, in time proportional to that. */
static uint32_t smaller(const tarn_egraph *g, uint32_t a, uint32_t b) {
  uint32_t young = a > b ? a : b, old = a > b ? b : a;
  walk y = {eg_use_head(g, young), young, young}, o = {eg_use_head(g, old), old, old};
  for (;;) {
    if (!walk_on(g, &y)) return young;
    if (!walk_on(g, &o)) return old;
  }
}

static void queue_repair(tarn_egraph *g, uint32_t root) {
  if (g->mask[root] & CLS_QUEUED) return;
  g->mask[root] |= CLS_QUEUED;
  g->queued.p[g->queued.n++] = root; /* room was reserved */
}

/* Room for what k unions and changed nodes may push, and for what is pushed back when something
 * fails. */
static bool reserve_work(tarn_egraph *g, size_t k) {
  return GROW(g, pending, g->n_pending + 3 * k) && eg_vec_reserve(&g->mem, &g->changed, 2 * k) &&
         eg_vec_reserve(&g->mem, &g->queued, 3 * k);
}

static void join_lists(tarn_egraph *g, uint32_t win, uint32_t lose) {
  uint32_t n = lose;
  bool seen = false;
  do {
    if (g->stamp[n]) g->stamp[n] = (uint16_t)g->now, seen = true;
    n = g->rec[n].next;
  } while (n != lose);
  if (seen) g->now_used = true;
  if (!eg_visible(g, lose)) queue_repair(g, win);
  uint32_t t = g->rec[win].next;
  g->rec[win].next = g->rec[lose].next;
  g->rec[lose].next = t;
  g->mask[win] |= g->mask[lose];
}

/* The joined values of win and lose in out; bits of analyses changed for either. false: a join
 * failed. */
static bool join_all(tarn_egraph *g, uint32_t win, uint32_t lose, uint32_t rule, uint32_t note,
                     uint64_t *out, uint32_t *for_win, uint32_t *for_lose) {
  bool ok = true;
  for (uint32_t a = 0; a < g->n_analyses; a++) {
    out[a] = g->data[a][win];
    unsigned r = join_values(g, a, &out[a], g->data[a][lose]);
    if (r & TARN_EG_JOIN_FAIL) {
      tarn_eg_conflict k = {a, win, lose, g->data[a][win], g->data[a][lose], rule, note};
      note_conflict(g, rule == TARN_EG_RULE_CONGRUENCE ? CONFLICT_JOINED : CONFLICT_UNION, &k);
      out[a] = g->data[a][win];
      ok = false;
      continue;
    }
    if (r & TARN_EG_JOIN_A) *for_win |= 1u << a;
    if (r & TARN_EG_JOIN_B) *for_lose |= 1u << a;
  }
  return ok;
}

static void commit_values(tarn_egraph *g, uint32_t win, uint32_t lose, const uint64_t *value,
                          uint32_t for_win, uint32_t for_lose) {
  for (uint32_t a = 0; a < g->n_analyses; a++) {
    g->data[a][win] = value[a];
    if ((for_win | for_lose) >> a & 1) g->data_version[a]++;
    if (g->reasons && for_win >> a & 1) g->cause[a][win] = g->cause[a][lose];
  }
  if (for_win) push_changed(g, win, for_win);
}

/* 1: joined, 0: one class already, -1: refused. By congruence it cannot be refused for a failed
 * join: the classes are equal; the conflict is noted. */
int eg_join(tarn_egraph *g, uint32_t a, uint32_t b, uint32_t rule, uint32_t note) {
  uint32_t ra = eg_find_mut(g, a), rb = eg_find_mut(g, b);
  if (ra == rb) return 0;
  if (!reserve_work(g, 1)) return -1;
  uint32_t lose = smaller(g, ra, rb), win = lose == ra ? rb : ra;
  uint64_t value[32];
  uint32_t for_win = 0, for_lose = 0;
  if (g->n_analyses && !join_all(g, win, lose, rule, note, value, &for_win, &for_lose) &&
      rule != TARN_EG_RULE_CONGRUENCE)
    return -1;
  uint32_t uses = eg_use_head(g, lose);
  if (uses != USE_END) g->pending[g->n_pending++] = (eg_use_list){uses, lose, for_lose};
  eg_set_parent(g, lose, win);
  g->classes--, g->version++;
  g->dirty = true;
  join_lists(g, win, lose);
  if (g->n_analyses) {
    commit_values(g, win, lose, value, for_win, for_lose);
    eg_modify_all(g, win);
  }
  return 1;
}

static bool may_union(tarn_egraph *g, uint32_t a, uint32_t b) {
  if (a < g->n_ids && b < g->n_ids && !g->making) return true;
  eg_fail(&g->mem, TARN_USAGE, "egraph: union of %u and %u: no such id, or inside make or join", a,
          b);
  return false;
}

/* Writes the record (room was reserved), joins, and takes the record back when that is refused. */
static int join_logged(tarn_egraph *g, const uint32_t *record, uint32_t n, uint32_t a, uint32_t b,
                       uint32_t rule, uint32_t note) {
  size_t at = g->log.n;
  if (g->reasons) {
    memcpy(g->log.p + at, record, n * sizeof *record);
    g->log.n += n;
  }
  int r = eg_join(g, a, b, rule, note);
  if (r < 0 && g->reasons) eg_log_take_back(g, at);
  return r;
}

int tarn_eg_union(tarn_egraph *g, uint32_t a, uint32_t b, uint32_t rule, uint32_t note) {
  if (!may_union(g, a, b)) return -1;
  if (a == b) return 0;
  if (g->reasons != TARN_EG_REASONS_ALL && eg_find_mut(g, a) == eg_find_mut(g, b)) return 0;
  if (!eg_log_reserve(g, 5)) return -1;
  uint32_t record[5] = {LOG_PLAIN | 5u << 2, a, b, rule, note};
  return join_logged(g, record, 5, a, b, rule, note);
}

int tarn_eg_union_at(tarn_egraph *g, uint32_t node, const uint32_t *evidence, uint32_t n,
                     uint32_t b, uint32_t rule, uint32_t note) {
  if (!may_union(g, node, b)) return -1;
  if (!g->reasons) return eg_join(g, node, b, rule, note);
  if (n > 10000) return tarn_eg_union(g, node, b, rule, note); /* longer than a record can be */
  if (node == b) return 0;
  if (g->reasons != TARN_EG_REASONS_ALL && eg_find_mut(g, node) == eg_find_mut(g, b)) return 0;
  uint32_t have = eg_arity(g, node);
  const uint32_t *kids = eg_kids(g, node, have);
  bool ok = n == have;
  for (uint32_t i = 0; ok && i < n; i++)
    ok = evidence[i] < g->n_ids && eg_find(g, evidence[i]) == eg_find(g, kids[i]);
  if (!ok) {
    eg_fail(&g->mem, TARN_USAGE, "egraph: evidence for node %u is not in the classes of its kids",
            node);
    return -1;
  }
  if (!eg_log_reserve(g, 5 + n)) return -1;
  size_t at = g->log.n;
  uint32_t *p = g->log.p + at;
  p[0] = LOG_AT | (5 + n) << 2, p[1] = node, p[2] = b, p[3] = rule, p[4] = note;
  memcpy(p + 5, evidence, n * sizeof *evidence);
  g->log.n += 5 + n;
  int r = eg_join(g, node, b, rule, note);
  if (r < 0) eg_log_take_back(g, at);
  return r;
}

/* ---- pruning ---- */

void tarn_eg_prune_to_leaves(tarn_egraph *g, uint32_t cls) {
  if (g->making) return;
  uint32_t root = eg_find_mut(g, cls), last = root;
  bool leaf = false, other = false;
  uint32_t n = root;
  do {
    if (eg_visible(g, n)) *(eg_arity(g, n) == 0 ? &leaf : &other) = true;
    n = g->rec[n].next;
  } while (n != root);
  if (!leaf || !other) return;
  uint16_t mask = g->mask[root] & CLS_QUEUED;
  for (n = root;;) {
    uint32_t next = g->rec[n].next;
    if (eg_visible(g, n) && eg_arity(g, n) != 0) eg_hide(g, n, 0);
    if (n == root || eg_visible(g, n)) {
      if (n != root) g->rec[last].next = n, last = n;
      if (eg_visible(g, n)) mask |= g->heads[eg_head_of(g, n)].bit;
    } else {
      g->rec[n].next = n;
    }
    if ((n = next) == root) break;
  }
  g->rec[last].next = root;
  g->mask[root] = mask;
}

/* Of an id that stands for a term in another spelling: the node itself, or NONE. */
static uint32_t real_node(const tarn_egraph *g, uint32_t node) {
  tarn_eg_node v = tarn_eg_node_at(g, node);
  return g->rec[node].head & HEAD_DEAD ? tarn_eg_lookup(g, v.op, v.payload, v.kids, v.n) : node;
}

static void take_out(tarn_egraph *g, uint32_t node, uint32_t flags) {
  eg_hide(g, node, flags);
  queue_repair(g, eg_find_mut(g, node));
}

void tarn_eg_subsume(tarn_egraph *g, uint32_t node) {
  node = node < g->n_ids && !g->making ? real_node(g, node) : NONE;
  if (node == NONE || g->rec[node].head & HEAD_GONE || !reserve_work(g, 1)) return;
  g->n_gone++;
  take_out(g, node, HEAD_GONE);
}

bool tarn_eg_is_subsumed(const tarn_egraph *g, uint32_t node) {
  uint32_t flags = g->rec[node].head;
  return flags & HEAD_GONE && !(flags & HEAD_DEAD);
}

void tarn_eg_remove(tarn_egraph *g, uint32_t node) {
  node = node < g->n_ids && !g->making ? real_node(g, node) : NONE;
  if (node == NONE || !reserve_work(g, 1)) return;
  uint32_t head = eg_head_of(g, node), n = g->heads[head].n;
  eg_table_remove(g, eg_hash_node(head, eg_kids(g, node, n), n), node);
  take_out(g, node, HEAD_DEAD);
}

/* ---- rebuilding ---- */

static void touch(tarn_egraph *g, uint32_t node) {
  if (eg_visible(g, node)) g->stamp[node] = (uint16_t)g->now, g->now_used = true;
  queue_repair(g, eg_find_mut(g, node));
}

/* Two nodes became the same: one goes. A visible one is kept before a pruned one. */
static bool merge_nodes(tarn_egraph *g, uint64_t h, uint32_t node, uint32_t known) {
  bool keep_new = eg_visible(g, node) && !eg_visible(g, known);
  if (keep_new) eg_table_replace(g, h, known, node);
  uint32_t gone = keep_new ? known : node, kept = keep_new ? node : known;
  bool subsumed = (g->rec[gone].head & ~g->rec[kept].head) & HEAD_GONE;
  eg_hide(g, gone, HEAD_DEAD);
  if (subsumed) take_out(g, kept, HEAD_GONE);
  touch(g, node);
  if (gone != node) queue_repair(g, eg_find_mut(g, gone));
  bool apart = eg_find_mut(g, node) != eg_find_mut(g, known);
  if (g->reasons && (apart || g->reasons == TARN_EG_REASONS_ALL)) eg_log_congruent(g, node, known);
  return !apart || eg_join(g, node, known, TARN_EG_RULE_CONGRUENCE, 0) >= 0;
}

/* Makes the kids of a living node canonical. false: no memory, nothing changed. */
static bool canonize(tarn_egraph *g, uint32_t node) {
  uint32_t head = eg_head_of(g, node), n = g->heads[head].n;
  uint32_t *kids = eg_kids(g, node, n);
  bool stale = false;
  for (uint32_t i = 0; i < n; i++) stale |= !(g->uf[kids[i]] & UF_ROOT);
  if (!stale) return true;
  if (!reserve_work(g, 2) || !eg_table_reserve(g, 1)) return false;
  if (g->reasons) {
    if (!eg_log_reserve(g, 2)) return false;
    if (!(g->rec[node].head & HEAD_SAVED)) {
      if (!eg_save_origin(g, node, kids, n)) return false;
      g->rec[node].head |= HEAD_SAVED;
    }
  }
  eg_table_remove(g, eg_hash_node(head, kids, n), node);
  for (uint32_t i = 0; i < n; i++) kids[i] = eg_find_mut(g, kids[i]);
  uint64_t h = eg_hash_node(head, kids, n);
  uint32_t known = eg_table_find(g, h, head, kids, n);
  if (known != NONE) return merge_nodes(g, h, node, known);
  eg_table_insert(g, h, node);
  touch(g, node);
  return true;
}

static bool remake(tarn_egraph *g, uint32_t node, uint32_t bits) {
  uint32_t head = eg_head_of(g, node), n = g->heads[head].n;
  for (uint32_t a = 0; a < g->n_analyses; a++) {
    uint64_t v;
    if (!(bits >> a & 1) || !make_one(g, a, head, eg_kids(g, node, n), n, &v)) continue;
    if (join_data(g, a, node, v, node) < 0 && g->mem.st == TARN_MEMORY) return false;
  }
  return true;
}

/* Puts a processed entry into the list of the class it now uses. */
static void keep_entry(tarn_egraph *g, uint32_t e, uint32_t owner) {
  uint32_t n = eg_arity(g, owner), kid = eg_kids(g, owner, n)[eg_use_slot(g, e, owner)];
  if (g->uf[kid] & UF_ROOT) {
    *eg_use_next(g, e) = eg_use_head(g, kid);
    g->uf[kid] = UF_ROOT | e;
  } else { /* lost its name meanwhile */
    *eg_use_next(g, e) = USE_END;
    g->pending[g->n_pending++] = (eg_use_list){e, kid, 0};
  }
}

static bool process_uses(tarn_egraph *g, eg_use_list l) {
  for (uint32_t e = l.head; e != USE_END;) {
    uint32_t next = *eg_use_next(g, e), owner = eg_use_owner(g, e);
    bool ok = reserve_work(g, 1);
    if (ok && !(g->rec[owner].head & HEAD_DEAD)) {
      ok = canonize(g, owner);
      if (ok && !(g->rec[owner].head & HEAD_DEAD)) {
        if (l.remake) ok = remake(g, owner, l.remake);
        keep_entry(g, e, owner); /* every union leaves room for this and one more */
      }
    }
    if (!ok) { /* the list's own place is free for what is left of it */
      g->pending[--g->pending_at] = (eg_use_list){e, l.loser, l.remake};
      return false;
    }
    e = next;
  }
  return true;
}

/* The first use of a list that will be processed soon: each call asks for what the next one reads.
 */
static void look_ahead(const tarn_egraph *g, size_t i, int stage) {
  if (i >= g->n_pending) return;
  uint32_t e = g->pending[i].head, owner = eg_use_owner(g, e);
  if (stage == 0) {
    EG_FETCH(&g->rec[owner]), EG_FETCH(eg_use_next(g, e));
    return;
  }
  uint32_t head = g->rec[owner].head, n = g->heads[head & HEAD_BITS].n;
  if (head & HEAD_DEAD || n > 2) return;
  const uint32_t *k = g->rec[owner].k;
  if (stage == 1) {
    for (uint32_t j = 0; j < n; j++) EG_FETCH(&g->uf[k[j]]);
    uint32_t next = *eg_use_next(g, e);
    if (next != USE_END && !(next & USE_WIDE))
      EG_FETCH(&g->rec[next >> 1]), EG_FETCH(&g->link[next >> 1]);
    return;
  }
  uint32_t canon[2];
  for (uint32_t j = 0; j < n; j++) canon[j] = eg_find(g, k[j]);
  eg_fetch_slot(g, eg_hash_node(head & HEAD_BITS, k, n));
  eg_fetch_slot(g, eg_hash_node(head & HEAD_BITS, canon, n));
}

static bool process_pending(tarn_egraph *g) {
  while (g->pending_at < g->n_pending) {
    size_t i = g->pending_at++;
    look_ahead(g, i + 18, 0), look_ahead(g, i + 12, 1), look_ahead(g, i + 6, 2);
    if (!process_uses(g, g->pending[i])) return false;
  }
  g->pending_at = g->n_pending = 0;
  return true;
}

static bool process_changed(tarn_egraph *g) {
  uint32_t bits = g->changed.p[--g->changed.n], cls = g->changed.p[--g->changed.n];
  for (uint32_t e = eg_use_head(g, eg_find_mut(g, cls)); e != USE_END; e = *eg_use_next(g, e)) {
    uint32_t owner = eg_use_owner(g, e);
    if (!(g->rec[owner].head & HEAD_DEAD) && !remake(g, owner, bits)) return false;
  }
  return true;
}

/* Drops hidden nodes from a class list, brings those changed now to the front, recomputes the ops
 * present. */
static void repair(tarn_egraph *g, uint32_t root) {
  uint32_t young = root, first_old = NONE, last_old = NONE;
  uint16_t mask = 0, now = (uint16_t)g->now;
  if (eg_visible(g, root)) mask = g->heads[eg_head_of(g, root)].bit;
  for (uint32_t n = g->rec[root].next, next; n != root; n = next) {
    next = g->rec[n].next;
    if (!eg_visible(g, n)) {
      g->rec[n].next = n;
      continue;
    }
    mask |= g->heads[eg_head_of(g, n)].bit;
    if (g->stamp[n] == now) {
      g->rec[young].next = n, young = n;
    } else {
      if (first_old == NONE) first_old = n;
      else g->rec[last_old].next = n;
      last_old = n;
    }
  }
  g->rec[young].next = first_old == NONE ? root : first_old;
  if (last_old != NONE) g->rec[last_old].next = root;
  g->mask[root] = mask;
}

static void repair_queued(tarn_egraph *g) {
  for (size_t i = 0; i < g->queued.n; i++) {
    uint32_t c = eg_find_mut(g, g->queued.p[i]);
    if (g->mask[c] & CLS_QUEUED) repair(g, c);
  }
  g->queued.n = 0;
}

tarn_status tarn_eg_rebuild(tarn_egraph *g) {
  if (!g->dirty && !g->queued.n) return TARN_OK;
  if (g->making) return TARN_USAGE;
  bool ok = true;
  uint32_t rule = g->cur_rule;
  g->cur_rule = TARN_EG_RULE_CONGRUENCE;
  g->mem.urgent = true;
  while (ok && (g->n_pending || g->changed.n)) {
    ok = process_pending(g);
    if (ok && g->changed.n) ok = process_changed(g);
  }
  g->cur_rule = rule;
  g->mem.urgent = false;
  if (!ok) return g->mem.st == TARN_OK ? TARN_MEMORY : g->mem.st;
  repair_queued(g);
  g->dirty = false;
#ifdef TARN_DEBUG_CHECKS
  return tarn_eg_check(g);
#else
  return TARN_OK;
#endif
}
