/* Between phases: what no output needs any more is left alone.
 *
 * A node that was replaced (set aside) still stands in its class, and what only it needs stands too: a convolution's
 * nine products after they have become one.  Rules that went on fusing those would make forms that nothing reads. */
#include "rules/internal.h"

enum { LIVE = 0, REPLACED = 1, UNNEEDED = 2 };

static bool replaced(const tarn_saturation *s, uint32_t node) {
  return node < s->aside.n && s->aside.p[node] == REPLACED;
}

/* Classes that the outputs need through nodes that were not replaced. A class all of whose nodes were replaced needs all
 * of them. */
static tarn_map *needed(tarn_saturation *s) {
  TARN_VEC(uint32_t) todo = {0};
  tarn_map *seen = tarn_map_new(s->cx);
  bool fresh;
  for (uint32_t i = 0; i < s->nroot; i++) tarn_push(s->cx, &todo, tarn_eg_find(s->g, s->exact[i]));
  while (todo.n) {
    uint32_t c = todo.p[--todo.n], live = 0;
    tarn_map_at(seen, c, &fresh);
    if (!fresh) continue;
    for (uint32_t n = tarn_eg_next_node(s->g, c, TARN_NONE); n != TARN_NONE; n = tarn_eg_next_node(s->g, c, n))
      live += !replaced(s, n);
    for (uint32_t n = tarn_eg_next_node(s->g, c, TARN_NONE); n != TARN_NONE; n = tarn_eg_next_node(s->g, c, n)) {
      tarn_eg_node x = tarn_eg_node_at(s->g, n);
      if (live && replaced(s, n)) continue;
      for (uint32_t i = 0; i < x.n; i++) tarn_push(s->cx, &todo, tarn_eg_find(s->g, x.kids[i]));
    }
  }
  return seen;
}

void sat_sweep(tarn_saturation *s) {
  if (s->aside.n == 0) return; /* nothing was replaced */
  tarn_map *seen = needed(s);
  for (uint32_t c = tarn_eg_next_class(s->g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(s->g, c)) {
    bool dead = !tarn_map_get(seen, c);
    for (uint32_t n = tarn_eg_next_node(s->g, c, TARN_NONE); n != TARN_NONE; n = tarn_eg_next_node(s->g, c, n)) {
      while (s->aside.n <= n) tarn_push(s->cx, &s->aside, LIVE);
      if (s->aside.p[n] != REPLACED) s->aside.p[n] = dead ? UNNEEDED : LIVE;
    }
  }
}

/* ---------------------------------------------------------------- what selection need not look at */

static bool ready(const tarn_saturation *s, const uint8_t *made, uint32_t node) {
  tarn_eg_node x = tarn_eg_node_at(s->g, node);
  if (node < s->aside.n && s->aside.p[node]) return false;
  for (uint32_t i = 0; i < x.n; i++)
    if (!made[tarn_eg_find(s->g, x.kids[i])]) return false;
  return true;
}

/* made[c]: class c can be computed by nodes that were not set aside. */
static void producible(const tarn_saturation *s, uint8_t *made) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t c = tarn_eg_next_class(s->g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(s->g, c)) {
      if (made[c]) continue;
      made[c] = sat_facts(s, c)->constant;
      for (uint32_t n = tarn_eg_next_node(s->g, c, TARN_NONE); n != TARN_NONE && !made[c]; n = tarn_eg_next_node(s->g, c, n))
        made[c] = ready(s, made, n);
      again |= made[c];
    }
  }
}

/* Takes back what was set aside in needed classes that cannot be computed without it; false: there was nothing. */
static bool take_back(tarn_saturation *s, const uint8_t *made) {
  tarn_map *seen = needed(s);
  bool any = false;
  for (uint32_t c = tarn_eg_next_class(s->g, TARN_NONE); c != TARN_NONE; c = tarn_eg_next_class(s->g, c)) {
    if (made[c] || !tarn_map_get(seen, c)) continue;
    for (uint32_t n = tarn_eg_next_node(s->g, c, TARN_NONE); n != TARN_NONE; n = tarn_eg_next_node(s->g, c, n))
      if (replaced(s, n)) s->aside.p[n] = LIVE, any = true;
  }
  return any;
}

void sat_settle(tarn_saturation *s) {
  uint8_t *made = TARN_ARRAY(s->cx, uint8_t, tarn_eg_id_count(s->g) + 1);
  sat_sweep(s);
  producible(s, made);
  while (take_back(s, made)) {
    sat_sweep(s);
    producible(s, made);
  }
}

bool tarn_sat_left_out(const tarn_saturation *s, uint32_t node) {
  return node < s->aside.n && s->aside.p[node] && !sat_facts(s, tarn_eg_find(s->g, node))->constant;
}
