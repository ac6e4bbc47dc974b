/* Applying many matches of a plain rule at once.
 *
 * Almost all the time of applying is spent waiting for memory: the matched nodes, the classes of
 * their kids, the slot of the hash table, the node found there.  For rules that only build nodes of
 * at most two kids, matches are taken in blocks, each right-side node being made for the whole
 * block in passes that first ask for the memory and then use it.  All nodes of a block are made
 * before its unions: the closure is the same. */
#include "egraph/apply.h"
#include "egraph/lanes.h"

#include <string.h>

#ifndef EG_APPLY_BLOCK /* wide.c compiles this file once more */
#define EG_APPLY_BLOCK eg_apply_block
#endif

typedef struct block {
  eg_applier *ap;
  tarn_egraph *g;
  const eg_rule *r;
  uint32_t rule, n;
  bool large;            /* the graph does not fit into the caches */
  const uint32_t *tuple; /* the first one */
  uint32_t *ids;         /* EG_BLOCK for each right-side node */
  bool dead[EG_BLOCK];   /* an analysis refuses the right side */
  uint32_t given[2][EG_BLOCK],
      canon[2][EG_BLOCK]; /* kids of the node to be made, as written and as found */
  uint64_t hash[EG_BLOCK];
} block;

/* What a reference stands for in each match of the block. */
static void resolve(const block *b, eg_ref ref, uint32_t *to) {
  if (ref.kind == REF_NODE) {
    memcpy(to, b->ids + (size_t)EG_BLOCK * ref.i, b->n * sizeof *to);
    return;
  }
  eg_src s = b->r->bare ? (eg_src){0, SLOT_SELF} : b->r->var[ref.i];
  eg_gather(b->tuple + s.atom, b->r->n_words, to, b->n);
  if (s.slot != SLOT_SELF) eg_gather_kids(b->g->rec, (uint32_t)s.slot, to, b->n);
}

/* The kids of a right-side node and its key in each match. */
static void make_keys(block *b, const eg_tnode *t, uint32_t head) {
  tarn_egraph *g = b->g;
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t *given = b->given[k], *canon = b->canon[k];
    if (k >= t->n_ref) {
      memset(given, 0, b->n * sizeof *given), memset(canon, 0, b->n * sizeof *canon);
      continue;
    }
    resolve(b, b->r->ref[t->ref + k], given);
    for (uint32_t m = 0; b->large && m < b->n; m++) EG_FETCH(&g->uf[given[m]]);
  }
  for (uint32_t k = 0; k < t->n_ref; k++) eg_find_all(g, b->given[k], b->canon[k], b->n);
  eg_hash_all(head, b->canon[0], b->canon[1], b->hash, b->n);
  if (!b->large) return;
  for (uint32_t m = 0; m < b->n; m++) eg_fetch_slot(g, b->hash[m]);
}

enum { CACHED = 1 << 15 }; /* a graph of so many ids fits into the caches */

/* One by one, with every check: close to a limit. */
static bool make_slowly(block *b, uint32_t t, uint32_t head) {
  for (uint32_t m = 0; m < b->n; m++) {
    uint32_t given[2] = {b->given[0][m], b->given[1][m]};
    uint32_t id = eg_add_head(b->g, head, given, b->r->tnode[t].n_ref, false);
    if (id == NONE) return false;
    b->ids[EG_BLOCK * t + m] = id;
  }
  return true;
}

/* An analysis looks at each new node, and may join classes meanwhile: keys made before are then
 * only a guess. */
static bool make_looked_at(block *b, uint32_t t, uint32_t head) {
  tarn_egraph *g = b->g;
  uint32_t *ids = b->ids + (size_t)EG_BLOCK * t;
  for (uint32_t m = 0; m < b->n; m++) {
    uint32_t slot, *id = &ids[m], given[2] = {b->given[0][m], b->given[1][m]};
    *id = b->tuple[(size_t)m * b->r->n_words]; /* some id, for what is made of it */
    if (b->dead[m]) continue;
    uint32_t known = eg_probe2(g, b->hash[m], head, b->canon[0][m], b->canon[1][m], &slot);
    if (known == NONE) known = eg_add_head(g, head, given, b->r->tnode[t].n_ref, false);
    if (known != NONE) *id = known;
    else if (eg_refused(b->ap)) b->dead[m] = true;
    else return false;
  }
  return true;
}

/* Remembers the kids of a node to be made as they were written; *flag is for its head. */
static bool keep_spelling(const block *b, uint32_t m, uint32_t id, uint32_t n, uint32_t *flag) {
  uint32_t given[2] = {b->given[0][m], b->given[1][m]};
  if (given[0] == b->canon[0][m] && given[1] == b->canon[1][m]) return true;
  if (!eg_save_origin(b->g, id, given, n)) return false;
  *flag = HEAD_SAVED;
  return true;
}

static bool make_nodes(block *b, uint32_t t, uint32_t head) {
  tarn_egraph *g = b->g;
  const eg_head h = g->heads[head];
  uint32_t *ids = b->ids + (size_t)EG_BLOCK * t, first = g->n_ids, next = first;
  uint32_t left = UINT32_MAX >> (EG_BLOCK - b->n);
  if (EG_SIDE_BY_SIDE || b->large) { /* no branch for each match: which nodes are known is chance */
    left = eg_peek_all(g, b->hash, ids, b->n);
    for (uint32_t m = 0; b->large && m < b->n; m++) EG_FETCH(&g->rec[ids[m]]);
    left |= eg_wrong(g->rec, ids, &head, 0, b->canon[0], b->canon[1], b->n);
  }
  for (; left; left &= left - 1) {
    uint32_t slot, m = eg_lowest(left), k0 = b->canon[0][m], k1 = b->canon[1][m], flag = 0;
    uint32_t id = eg_probe2(g, b->hash[m], head, k0, k1, &slot);
    if (id == NONE) {
      if (g->reasons && !keep_spelling(b, m, next, h.n, &flag)) break;
      id = next++;
      eg_put2(g, id, b->hash[m], slot, head, h.bit, k0, k1, h.n);
      g->rec[id].head |= flag;
    }
    ids[m] = id;
  }
  eg_count_new(g, head, next - first);
  return !left;
}

static bool make_block(block *b, uint32_t t, uint32_t head) {
  tarn_egraph *g = b->g;
  make_keys(b, &b->r->tnode[t], head);
  if (g->n_analyses) return make_looked_at(b, t, head);
  if (!eg_reserve_nodes(g, b->n)) return g->mem.st != TARN_MEMORY && make_slowly(b, t, head);
  return make_nodes(b, t, head);
}

/* A class of one new node, used nowhere, goes into another: nothing waits for rebuilding. */
static inline bool is_single(const tarn_egraph *g, uint32_t id) {
  return g->uf[id] == (UF_ROOT | USE_END) && g->rec[id].next == id && g->stamp[id] &&
         !g->n_analyses;
}
static inline void join_single(tarn_egraph *g, uint32_t root, uint32_t single) {
  eg_set_parent(g, single, root);
  g->stamp[single] = (uint16_t)g->now;
  g->rec[single].next = g->rec[root].next;
  g->rec[root].next = single;
  g->mask[root] |= g->mask[single];
  g->classes--, g->version++;
  g->dirty = g->now_used = true;
}

/* from[m] and to[m] become one class. */
static bool join_match(block *b, uint32_t k, uint32_t m, uint32_t from, uint32_t to) {
  tarn_egraph *g = b->g;
  const eg_rule *r = b->r;
  const uint32_t *tuple = b->tuple + (size_t)m * r->n_words, *made = b->ap->ids.p;
  for (uint32_t t = 0; g->reasons && t < r->n_tnode; t++)
    b->ap->ids.p[t] = b->ids[EG_BLOCK * t + m];
  uint32_t at = eg_find_mut(g, from);
  if (at == to || !is_single(g, to))
    return (g->reasons != TARN_EG_REASONS_ALL && at == eg_find_mut(g, to)) ||
           eg_join_ids(b->ap, b->rule, k, tuple, made, r->n_tnode, from, to) != EG_STOPPED;
  if (g->reasons && !eg_log_rule(b->ap, b->rule, k, tuple, made, r->n_tnode)) return false;
  join_single(g, at, to);
  b->ap->unions++;
  return true;
}

static bool join_block(block *b, uint32_t k) {
  tarn_egraph *g = b->g;
  const eg_rule *r = b->r;
  const eg_part *part = &r->part[k];
  uint32_t from[EG_BLOCK], to[EG_BLOCK];
  resolve(b, part->result, to);
  if (part->atom != NONE || part->var == NONE)
    eg_gather(b->tuple + (part->atom != NONE ? part->atom : 0), r->n_words, from, b->n);
  else resolve(b, (eg_ref){REF_VAR, part->var}, from);
  for (uint32_t m = 0; b->large && m < b->n; m++)
    EG_FETCH(&g->uf[from[m]]), EG_FETCH(&g->uf[to[m]]);
  uint32_t at[EG_BLOCK], known[EG_BLOCK];
  eg_find_all(g, from, at, b->n), eg_find_all(g, to, known, b->n);
  uint32_t apart = g->reasons == TARN_EG_REASONS_ALL ? UINT32_MAX >> (EG_BLOCK - b->n)
                                                     : eg_differ(at, known, b->n);
  for (uint32_t left = b->large ? apart : 0; left; left &= left - 1) {
    uint32_t root = at[eg_lowest(left)];
    EG_FETCH(&g->rec[root]), EG_FETCH(&g->mask[root]);
  }
  for (; apart; apart &= apart - 1) {
    uint32_t m = eg_lowest(apart);
    if (!b->dead[m] && !join_match(b, k, m, g->reasons ? from[m] : at[m], to[m])) return false;
  }
  return true;
}

static void fetch_nodes(const tarn_egraph *g, const uint32_t *tuple, size_t words) {
  for (size_t i = 0; i < words; i++) EG_FETCH(&g->rec[tuple[i]]);
}

bool EG_APPLY_BLOCK(eg_applier *ap, uint32_t rule, const uint32_t *tuple, uint32_t n,
                    uint32_t ahead) {
  const eg_rule *r = &ap->rs->rule[rule];
  block b;
  b.ap = ap, b.g = ap->g, b.r = r, b.rule = rule, b.n = n, b.tuple = tuple, b.ids = ap->block_ids.p;
  b.large = ap->g->n_ids >= CACHED;
  memset(b.dead, 0, sizeof b.dead);
  /* the tuples' words are ids but for lengths of segments, which plain rules do not have */
  if (b.large) fetch_nodes(ap->g, tuple + (size_t)n * r->n_words, (size_t)ahead * r->n_words);
  for (uint32_t t = 0; t < r->n_tnode; t++)
    if (!make_block(&b, t, ap->heads.p[ap->heads_at.p[rule] + t])) return false;
  for (uint32_t k = 0; k < r->n_part; k++)
    if (!join_block(&b, k)) return false;
  return true;
}
