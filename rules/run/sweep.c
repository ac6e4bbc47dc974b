/* Between phases: rules and extraction skip what no output needs any more.
 *
 * A subsumed node stays in its class, and so does what only it needs: a convolution's nine products
 * after they became one. Rules that went on fusing those would make forms that nothing reads. */
#include "rules/run/run.h"
#include "rules/lang/lang.h"

void sat_set_state(tarn_saturation *s, uint32_t node, sat_state how) {
  while (s->state.n <= node) tarn_push(s->cx, &s->state, SAT_LIVE);
  if (s->state.p[node] != SAT_REPLACED) s->state.p[node] = (uint8_t)how;
}

/* There is a better one. */
static bool beaten(const tarn_saturation *s, uint32_t node) {
  sat_state now = sat_state_of(s, node);
  return now == SAT_REPLACED || now == SAT_WORSE || now == SAT_WRITTEN;
}

/* Classes that the outputs need through nodes that were not beaten. A class all of whose nodes were
 * needs all of them. */
static tarn_map *needed(tarn_saturation *s) {
  TARN_VEC(uint32_t) todo = {0};
  tarn_map *seen = tarn_map_new(s->cx);
  bool fresh;
  for (uint32_t i = 0; i < s->nroot; i++) tarn_push(s->cx, &todo, tarn_eg_find(s->g, s->exact[i]));
  while (todo.n) {
    uint32_t c = todo.p[--todo.n], live = 0;
    tarn_map_at(seen, c, &fresh);
    if (!fresh) continue;
    TARN_EG_NODES(s->g, c, n) live += !beaten(s, n);
    TARN_EG_NODES(s->g, c, n) {
      tarn_eg_node x = tarn_eg_node_at(s->g, n);
      if (live && beaten(s, n)) continue;
      for (uint32_t i = 0; i < x.n; i++) tarn_push(s->cx, &todo, tarn_eg_find(s->g, x.kids[i]));
    }
  }
  return seen;
}

/* ---------------------------------------------------------------- uses */

/* uses[c]: by how many classes class c is read, through live nodes; 2: by more than one, or
 * twice by one of their nodes. What an output is counts as read. */
static uint8_t *uses_of(tarn_saturation *s) {
  uint32_t ids = tarn_eg_id_count(s->g);
  uint8_t *uses = TARN_ARRAY(s->cx, uint8_t, ids + 1);
  uint32_t *by = TARN_ARRAY(s->cx, uint32_t, ids + 1), *node = TARN_ARRAY(s->cx, uint32_t, ids + 1);
  TARN_EG_CLASSES(s->g, c)
    TARN_EG_NODES(s->g, c, n) {
      tarn_eg_node x = tarn_eg_node_at(s->g, n);
      if (sat_state_of(s, n) != SAT_LIVE) continue;
      for (uint32_t i = 0; i < x.n; i++) {
        uint32_t k = tarn_eg_find(s->g, x.kids[i]);
        if (uses[k] < 2 && (!uses[k] || by[k] != c || node[k] == n)) uses[k]++;
        by[k] = c, node[k] = n;
      }
    }
  for (uint32_t i = 0; i < s->nroot; i++) {
    uint32_t k = tarn_eg_find(s->g, s->exact[i]);
    if (uses[k] < 2) uses[k]++;
  }
  return uses;
}

void sat_count_uses(tarn_saturation *s) {
  uint8_t *uses = uses_of(s);
  for (uint32_t i = 0, n = tarn_eg_id_count(s->g); i < n; i++)
    if (uses[i] > 1) facts_mark(s, i, R_SHARED);
}

void sat_count_other_uses(tarn_saturation *s, const uint8_t *known) {
  const uint8_t *uses = uses_of(s);
  for (uint32_t i = 0, n = tarn_eg_id_count(s->g); i < n; i++)
    if (uses[i] > 1 && !known[i]) facts_mark(s, i, R_SHARED);
}

/* What nodes read whose replacements read others, and these others: a dequantised tensor that a sum
 * of products no longer needs, and the bytes that it takes instead. */
static void count_again(tarn_saturation *s) {
  uint8_t *uses = s->rerouted.n ? uses_of(s) : NULL;
  for (uint32_t g = 0; g < s->rerouted.n; g++) {
    tarn_eg_node x = tarn_eg_node_at(s->g, s->rerouted.p[g]);
    for (uint32_t i = 0; i < x.n; i++) {
      uint32_t k = tarn_eg_find(s->g, x.kids[i]);
      if (uses[k] < 2 && (sat_facts(s, k)->has & R_SHARED)) facts_mark(s, k, R_ALONE);
    }
    uint32_t c = tarn_eg_find(s->g, s->rerouted.p[g]);
    TARN_EG_NODES(s->g, c, n) {
      tarn_eg_node y = tarn_eg_node_at(s->g, n);
      for (uint32_t i = 0; i < y.n && sat_state_of(s, n) == SAT_LIVE; i++) {
        uint32_t k = tarn_eg_find(s->g, y.kids[i]);
        if (uses[k] > 1 && !(sat_facts(s, k)->has & R_SHARED)) facts_mark(s, k, R_SHARED);
      }
    }
  }
  s->rerouted.n = 0;
}

/* ---------------------------------------------------------------- between phases */

void sat_sweep(tarn_saturation *s) {
  if (s->state.n == 0) return; /* nothing was replaced */
  tarn_map *seen = needed(s);
  TARN_EG_CLASSES(s->g, c) {
    bool dead = !tarn_map_get(seen, c);
    TARN_EG_NODES(s->g, c, n) {
      if (sat_state_of(s, n) == SAT_WRITTEN) continue;
      if (beaten(s, n)) sat_set_state(s, n, SAT_REPLACED);
      else sat_set_state(s, n, dead ? SAT_UNNEEDED : SAT_LIVE);
    }
  }
  count_again(s);
}

/* ---------------------------------------------------------------- what selection need not look at
 */

static bool ready(const tarn_saturation *s, const uint8_t *made, uint32_t node) {
  tarn_eg_node x = tarn_eg_node_at(s->g, node);
  if (sat_state_of(s, node) != SAT_LIVE) return false;
  if (x.op == TARN_OP_NEST && !tarn_nest_emittable(s->L, tarn_payload_get(s->L, x.payload)->id))
    return false;
  for (uint32_t i = 0; i < x.n; i++)
    if (!made[tarn_eg_find(s->g, x.kids[i])]) return false;
  return true;
}

/* made[c]: class c can be computed by nodes that are not subsumed. */
static void producible(const tarn_saturation *s, uint8_t *made) {
  for (bool again = true; again;) {
    again = false;
    TARN_EG_CLASSES(s->g, c) {
      if (made[c]) continue;
      made[c] = sat_facts(s, c)->constant;
      for (uint32_t n = tarn_eg_next_node(s->g, c, TARN_NONE); n != TARN_NONE && !made[c];
           n = tarn_eg_next_node(s->g, c, n))
        made[c] = ready(s, made, n);
      again |= made[c];
    }
  }
}

/* Restores subsumed nodes of needed classes that cannot be computed without it; false: there
 * was nothing. */
static bool take_back(tarn_saturation *s, const uint8_t *made) {
  tarn_map *seen = needed(s);
  bool any = false;
  TARN_EG_CLASSES(s->g, c) {
    if (made[c] || !tarn_map_get(seen, c)) continue;
    TARN_EG_NODES(s->g, c, n)
      if (beaten(s, n) && sat_state_of(s, n) != SAT_WRITTEN) s->state.p[n] = SAT_LIVE, any = true;
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
  return sat_state_of(s, node) != SAT_LIVE && !sat_facts(s, tarn_eg_find(s->g, node))->constant;
}
