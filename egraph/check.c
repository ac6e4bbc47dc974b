/* Recomputes every invariant the slow way. */
#include "egraph/table.h"

#include <string.h>

#define BROKEN(g, ...) (eg_fail(&(g)->mem, TARN_INTERNAL, "egraph: " __VA_ARGS__), false)

static bool check_node(tarn_egraph *g, uint32_t id) {
  uint32_t head = eg_head_of(g, id), n = g->heads[head].n;
  const uint32_t *k = eg_kids(g, id, n);
  if (g->rec[id].head & HEAD_DEAD) {
    if (eg_visible(g, id) || g->stamp[id]) return BROKEN(g, "dead node %u is visible", id);
    return true;
  }
  if (eg_visible(g, id) != (g->stamp[id] != 0))
    return BROKEN(g, "node %u: stamp and visibility differ", id);
  for (uint32_t i = 0; i < n; i++)
    if (!(g->uf[k[i]] & UF_ROOT)) return BROKEN(g, "node %u: kid %u is not canonical", id, i);
  if (eg_table_find(g, eg_hash_node(head, k, n), head, k, n) != id)
    return BROKEN(g, "node %u is not what its key finds", id);
  return true;
}

/* Class lists: each visible node once, in its class; after the first by descending stamp; masks
 * cover ops. */
static bool check_classes(tarn_egraph *g, uint32_t *in_list, uint32_t *classes) {
  *classes = 0;
  for (uint32_t c = 0; c < g->n_ids; c++) {
    if (!(g->uf[c] & UF_ROOT)) continue;
    ++*classes;
    uint32_t n = c, last = UINT32_MAX, steps = 0;
    do {
      if (++steps > g->n_ids || eg_find(g, n) != c)
        return BROKEN(g, "list of class %u strays to %u", c, n);
      if (eg_visible(g, n)) {
        ++*in_list;
        if (n != c && g->stamp[n] > last)
          return BROKEN(g, "class %u: node %u is out of order", c, n);
        if (n != c) last = g->stamp[n];
        if (!(g->mask[c] & g->heads[eg_head_of(g, n)].bit))
          return BROKEN(g, "class %u: the mask lacks the op of node %u", c, n);
      } else if (n != c) {
        return BROKEN(g, "class %u lists hidden node %u", c, n);
      }
      n = g->rec[n].next;
    } while (n != c);
    if (g->mask[c] & CLS_QUEUED) return BROKEN(g, "class %u still waits for repair", c);
  }
  return true;
}

static bool check_counts(tarn_egraph *g) {
  uint32_t live = 0, listed = 0, classes, dead = 0;
  uint32_t heads = 0;
  for (uint32_t id = 0; id < g->n_ids; id++) {
    if (!check_node(g, id)) return false;
    if (eg_is_root(g, id) != (g->uf[id] >= UF_ROOT))
      return BROKEN(g, "id %u: whether it is a root", id);
    live += eg_visible(g, id);
    dead += (g->rec[id].head & HEAD_DEAD) != 0;
  }
  if (!check_classes(g, &listed, &classes)) return false;
  for (uint32_t h = 0; h < g->n_heads; h++) heads += g->heads[h].live;
  if (live != g->live || listed != live || heads != live)
    return BROKEN(g, "counts differ: %u live, %u counted, %u listed, %u by head", g->live, live,
                  listed, heads);
  if (classes != g->classes) return BROKEN(g, "%u classes, %u counted", g->classes, classes);
  if (g->table.live != g->n_ids - dead)
    return BROKEN(g, "%u keys for %u nodes", g->table.live, g->n_ids - dead);
  return true;
}

/* Every kid position of a living node is in the use list of its kid exactly once. */
static bool check_uses(tarn_egraph *g) {
  uint64_t want = 0, have = 0;
  for (uint32_t id = 0; id < g->n_ids; id++)
    if (!(g->rec[id].head & HEAD_DEAD)) want += eg_arity(g, id);
  for (uint32_t c = 0; c < g->n_ids; c++) {
    if (!(g->uf[c] & UF_ROOT)) continue;
    uint64_t steps = 0;
    for (uint32_t e = eg_use_head(g, c); e != USE_END; e = *eg_use_next(g, e)) {
      uint32_t o = eg_use_owner(g, e);
      if (++steps > 2 * (uint64_t)g->n_ids + g->n_wide)
        return BROKEN(g, "uses of %u are a ring", c);
      if (g->rec[o].head & HEAD_DEAD) continue;
      have++;
      if (eg_kids(g, o, eg_arity(g, o))[eg_use_slot(g, e, o)] != c)
        return BROKEN(g, "class %u lists node %u as a use", c, o);
    }
  }
  return have == want ||
         BROKEN(g, "%llu uses listed of %llu", (unsigned long long)have, (unsigned long long)want);
}

/* The value of a class is above that of each of its nodes: joining one in changes nothing. */
static bool check_values(tarn_egraph *g) {
  for (uint32_t id = 0; id < g->n_ids; id++) {
    uint64_t v[32];
    uint32_t head = eg_head_of(g, id), n = g->heads[head].n;
    if ((g->rec[id].head & HEAD_DEAD) || !eg_make_all(g, head, eg_kids(g, id, n), n, v)) continue;
    for (uint32_t a = 0; a < g->n_analyses; a++) {
      const tarn_eg_analysis *an = &g->analyses[a];
      uint64_t x = tarn_eg_data(g, a, id);
      unsigned r = x == v[a] ? 0 : an->join(an->user, g, &x, v[a]);
      if (r & TARN_EG_JOIN_A)
        return BROKEN(g, "analysis %s is not at its fixpoint at node %u", an->name, id);
    }
  }
  return true;
}

tarn_status tarn_eg_check(tarn_egraph *g) {
  if (g->dirty) return TARN_USAGE;
  bool ok =
      check_counts(g) && check_uses(g) && (g->has_conflict || !g->n_analyses || check_values(g));
  return ok ? TARN_OK : TARN_INTERNAL;
}
