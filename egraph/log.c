/* The log of reasons: what tarn_eg_explain() works from.
 *
 * Each union appends one record; its place in the log is its time.  The low two bits of a record's
 * first word are its kind.  LOG_CONG: above them one node, then the other.  LOG_PLAIN, LOG_AT: the
 * length, the two ids, rule, note, the evidence.  LOG_RULE: internal.h and apply.c.  Nothing else
 * is done while the graph grows: chains are found in the log when they are asked for.  The original
 * kids of a node whose kids changed go to g->origin as (id, kids…). */
#include "egraph/internal.h"

#include <string.h>

bool eg_log_reserve(tarn_egraph *g, size_t words) {
  return !g->reasons || eg_vec_reserve(&g->mem, &g->log, words);
}

void eg_log_congruent(tarn_egraph *g, uint32_t x, uint32_t y) {
  uint32_t *p = g->log.p + g->log.n;
  p[0] = LOG_CONG | x << 2, p[1] = y;
  g->log.n += 2;
}

void eg_log_take_back(tarn_egraph *g, size_t at) {
  bool tells =
      g->has_conflict && g->conflict_how == CONFLICT_UNION && !g->refused.n && g->log.n > at;
  if (tells && eg_vec_reserve(&g->mem, &g->refused, g->log.n - at)) {
    g->refused.n = g->log.n - at;
    memcpy(g->refused.p, g->log.p + at, g->refused.n * sizeof *g->refused.p);
  }
  g->log.n = at;
}

bool eg_save_origin(tarn_egraph *g, uint32_t id, const uint32_t *kids, uint32_t n) {
  if (!eg_vec_reserve(&g->mem, &g->origin, n + (size_t)1)) return false;
  uint32_t *p = g->origin.p + g->origin.n;
  p[0] = id;
  memcpy(p + 1, kids, n * sizeof *kids);
  g->origin.n += n + 1;
  return true;
}

static uint32_t origin_hash(uint32_t id) { return (uint32_t)((id * 0x9E3779B97F4A7C15u) >> 32); }

static void origin_put(tarn_egraph *g, size_t at) {
  uint32_t m = (uint32_t)g->origin_index.n - 1, i = origin_hash(g->origin.p[at]) & m;
  while (g->origin_index.p[i] != NONE) i = (i + 1) & m;
  g->origin_index.p[i] = (uint32_t)at;
}

/* The index is a hash table of places in the origin log, at most half full. */
bool eg_index_origins(tarn_egraph *g) {
  if (g->origin_indexed == g->origin.n && g->origin_index.n) return true;
  size_t want = 64; /* a record has at least two words */
  while (want < g->origin.n + 2) want *= 2;
  bool fresh = want > g->origin_index.n;
  if (fresh) {
    if (!eg_vec_reserve(&g->mem, &g->origin_index, want - g->origin_index.n)) return false;
    g->origin_index.n = want;
    memset(g->origin_index.p, 0xFF, want * sizeof *g->origin_index.p);
    g->origin_indexed = 0;
  }
  while (g->origin_indexed < g->origin.n) {
    size_t at = g->origin_indexed;
    origin_put(g, at);
    g->origin_indexed += 1 + eg_arity(g, g->origin.p[at]);
  }
  return true;
}

const uint32_t *eg_origin(tarn_egraph *g, uint32_t id, uint32_t n) {
  if (!(g->rec[id].head & HEAD_SAVED)) return eg_kids(g, id, n);
  if (!eg_index_origins(g)) return NULL;
  uint32_t m = (uint32_t)g->origin_index.n - 1;
  for (uint32_t i = origin_hash(id) & m; g->origin_index.p[i] != NONE; i = (i + 1) & m)
    if (g->origin.p[g->origin_index.p[i]] == id) return g->origin.p + g->origin_index.p[i] + 1;
  return eg_kids(g, id, n);
}

/* Reading only: the index is a cache, so the constant graph is changed in nothing that can be seen.
 */
tarn_eg_node tarn_eg_term_at(const tarn_egraph *g, uint32_t node) {
  tarn_eg_node v = tarn_eg_node_at(g, node);
  const uint32_t *k = eg_origin((tarn_egraph *)(uintptr_t)g, node, v.n);
  if (k) v.kids = k;
  return v;
}
