/* Applying many matches of a plain rule at once.
 *
 * Almost all the time of applying is spent waiting for memory: the matched nodes, the classes of their kids, the
 * slot of the hash table, the node found there.  For rules that only build nodes of at most two kids, matches are
 * taken in blocks, each right-side node being made for the whole block in passes that first ask for the memory and
 * then use it.  All nodes of a block are made before its unions: the closure is the same. */
#include "egraph/apply.h"

#include <string.h>

static bool simple_var(const tarn_eg_rules *rs, const eg_rule *r, uint32_t v) {
  if (r->bare || r->var[v].atom == NONE || r->var[v].slot == SLOT_SELF) return true;
  const eg_test *t = &rs->test[r->atom[r->var[v].atom].test];
  return !t->segs && t->n <= 2 && r->var[v].slot >= 0 && r->var[v].slot < 2;
}

bool eg_is_bulk(const eg_applier *ap, uint32_t rule) {
  const eg_rule *r = &ap->rs->rule[rule];
  if (r->n_cond || r->apply || r->n_segs) return false;
  for (uint32_t v = 0; v < r->n_vars; v++)
    if (!simple_var(ap->rs, r, v)) return false;
  for (uint32_t t = 0; t < r->n_tnode; t++)
    if (ap->heads.p[ap->heads_at.p[rule] + t] == NONE || r->tnode[t].n_ref > 2) return false;
  return true;
}

typedef struct block {
  eg_applier *ap;
  tarn_egraph *g;
  const eg_rule *r;
  uint32_t rule, n;
  const uint32_t *tuple; /* the first one */
  uint32_t *ids;         /* n_tnode for each match */
  bool dead[EG_BLOCK];   /* an analysis refuses the right side */
  uint32_t given[EG_BLOCK][2], canon[EG_BLOCK][2];
  uint64_t hash[EG_BLOCK];
} block;

/* What a reference stands for in each match of the block. */
static void resolve(const block *b, eg_ref ref, uint32_t *to, uint32_t step) {
  const eg_rec *rec = b->g->rec;
  const uint32_t *from = b->tuple, n = b->n;
  size_t w = b->r->n_words;
  if (ref.kind == REF_NODE) {
    from = b->ids + ref.i, w = b->r->n_tnode;
    for (uint32_t m = 0; m < n; m++) to[m * step] = from[m * w];
    return;
  }
  eg_src s = b->r->bare ? (eg_src){0, SLOT_SELF} : b->r->var[ref.i];
  from += s.atom;
  if (s.slot == SLOT_SELF)
    for (uint32_t m = 0; m < n; m++) to[m * step] = from[m * w];
  else
    for (uint32_t m = 0; m < n; m++) to[m * step] = rec[from[m * w]].k[s.slot];
}

static void gather(block *b, const eg_tnode *t) {
  const uint32_t *uf = b->g->uf;
  for (uint32_t k = 0; k < t->n_ref; k++) {
    resolve(b, b->r->ref[t->ref + k], &b->given[0][k], 2);
    for (uint32_t m = 0; m < b->n; m++) EG_FETCH(&uf[b->given[m][k]]);
  }
}

enum { NEAR = 1 << 15 }; /* a graph of so many ids is near the processor anyway */

static void hash_keys(block *b, uint32_t head, uint32_t n) {
  tarn_egraph *g = b->g;
  for (uint32_t m = 0; m < b->n; m++) {
    b->canon[m][0] = n > 0 ? eg_find_mut(g, b->given[m][0]) : 0;
    b->canon[m][1] = n > 1 ? eg_find_mut(g, b->given[m][1]) : 0;
    b->hash[m] = eg_hash2(head, b->canon[m][0], b->canon[m][1]);
    eg_fetch_slot(g, b->hash[m]);
  }
  if (g->n_ids < NEAR) return;
  for (uint32_t m = 0; m < b->n; m++) {
    uint32_t id = eg_table_peek(g, b->hash[m]);
    if (id != NONE) EG_FETCH(&g->rec[id]);
  }
}

/* One by one, with every check: when a limit is near. */
static bool make_slowly(block *b, uint32_t t, uint32_t head) {
  for (uint32_t m = 0; m < b->n; m++) {
    uint32_t id = eg_add_head(b->g, head, b->given[m], b->r->tnode[t].n_ref, false);
    if (id == NONE) return false;
    b->ids[m * b->r->n_tnode + t] = id;
  }
  return true;
}

/* An analysis looks at each new node, and may join classes meanwhile: keys made before are then only a guess. */
static bool make_looked_at(block *b, uint32_t t, uint32_t head) {
  tarn_egraph *g = b->g;
  const eg_tnode *node = &b->r->tnode[t];
  uint32_t *ids = b->ids + t, step = b->r->n_tnode;
  gather(b, node);
  hash_keys(b, head, node->n_ref);
  for (uint32_t m = 0; m < b->n; m++) {
    uint32_t slot, *id = &ids[m * step];
    *id = b->tuple[(size_t)m * b->r->n_words]; /* some id, for what is made of it */
    if (b->dead[m]) continue;
    uint32_t known = eg_probe2(g, b->hash[m], head, b->canon[m][0], b->canon[m][1], &slot);
    if (known == NONE) known = eg_add_head(g, head, b->given[m], node->n_ref, false);
    if (known != NONE) *id = known;
    else if (eg_refused(b->ap)) b->dead[m] = true;
    else return false;
  }
  return true;
}

static bool make_block(block *b, uint32_t t, uint32_t head) {
  tarn_egraph *g = b->g;
  uint32_t n = b->r->tnode[t].n_ref, step = b->r->n_tnode, *ids = b->ids + t;
  if (g->n_analyses) return make_looked_at(b, t, head);
  gather(b, &b->r->tnode[t]);
  if (!eg_reserve_nodes(g, b->n)) {
    if (g->mem.st == TARN_MEMORY) return false;
    return make_slowly(b, t, head);
  }
  hash_keys(b, head, n);
  for (uint32_t m = 0; m < b->n; m++) {
    uint32_t slot, k0 = b->canon[m][0], k1 = b->canon[m][1];
    uint32_t id = eg_probe2(g, b->hash[m], head, k0, k1, &slot);
    if (id == NONE) {
      bool respelt = g->reasons && ((n > 0 && k0 != b->given[m][0]) || (n > 1 && k1 != b->given[m][1]));
      if (respelt && !eg_save_origin(g, g->n_ids, b->given[m], n)) return false;
      id = eg_put2(g, b->hash[m], slot, head, k0, k1);
      if (respelt) g->rec[id].head |= HEAD_SAVED;
    }
    ids[m * step] = id;
  }
  return true;
}

/* A class of one new node, used nowhere, goes into another: nothing waits for rebuilding. */
static inline bool join_single(tarn_egraph *g, uint32_t root, uint32_t single) {
  if (g->uf[single] != (UF_ROOT | USE_END) || g->rec[single].next != single || !g->stamp[single]) return false;
  if (root == single || g->n_analyses) return false;
  g->uf[single] = root;
  g->stamp[single] = (uint16_t)g->now;
  g->rec[single].next = g->rec[root].next;
  g->rec[root].next = single;
  g->mask[root] |= g->mask[single];
  g->classes--, g->version++;
  g->dirty = g->now_used = true;
  return true;
}

static bool join_block(block *b, uint32_t k) {
  tarn_egraph *g = b->g;
  const eg_rule *r = b->r;
  const eg_part *part = &r->part[k];
  uint32_t from[EG_BLOCK], to[EG_BLOCK], root[EG_BLOCK];
  resolve(b, part->result, to, 1);
  if (part->atom != NONE || part->var == NONE)
    for (uint32_t m = 0; m < b->n; m++) from[m] = b->tuple[m * (size_t)r->n_words + (part->atom != NONE ? part->atom : 0)];
  else
    resolve(b, (eg_ref){REF_VAR, part->var}, from, 1);
  for (uint32_t m = 0; m < b->n; m++) EG_FETCH(&g->uf[from[m]]), EG_FETCH(&g->uf[to[m]]);
  for (uint32_t m = 0; m < b->n; m++) {
    root[m] = eg_find_mut(g, from[m]);
    EG_FETCH(&g->rec[root[m]]), EG_FETCH(&g->mask[root[m]]);
  }
  bool all = g->reasons == TARN_EG_REASONS_ALL;
  for (uint32_t m = 0; m < b->n; m++) {
    if (b->dead[m]) continue;
    uint32_t at = eg_find_mut(g, root[m]);
    if (!g->reasons && join_single(g, at, to[m])) {
      b->ap->unions++;
      continue;
    }
    if (!all && at == eg_find_mut(g, to[m])) continue;
    if (eg_join_ids(b->ap, b->rule, k, b->tuple + (size_t)m * r->n_words, b->ids + (size_t)m * r->n_tnode, r->n_tnode,
                    from[m], to[m]) == EG_STOPPED)
      return false;
  }
  return true;
}

static void fetch_nodes(const tarn_egraph *g, const uint32_t *tuple, size_t words) {
  for (size_t i = 0; i < words; i++) EG_FETCH(&g->rec[tuple[i]]);
}

bool eg_apply_block(eg_applier *ap, uint32_t rule, const uint32_t *tuple, uint32_t n, uint32_t ahead) {
  const eg_rule *r = &ap->rs->rule[rule];
  block b;
  b.ap = ap, b.g = ap->g, b.r = r, b.rule = rule, b.n = n, b.tuple = tuple, b.ids = ap->block_ids.p;
  memset(b.dead, 0, sizeof b.dead);
  /* the tuples' words are ids but for lengths of segments, which plain rules do not have */
  fetch_nodes(ap->g, tuple + (size_t)n * r->n_words, (size_t)ahead * r->n_words);
  for (uint32_t t = 0; t < r->n_tnode; t++)
    if (!make_block(&b, t, ap->heads.p[ap->heads_at.p[rule] + t])) return false;
  for (uint32_t k = 0; k < r->n_part; k++)
    if (!join_block(&b, k)) return false;
  return true;
}
