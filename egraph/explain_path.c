/* The log of reasons as a graph: its records as edges between ids, and the cheapest path between
 * two of these. */
#include "egraph/explain.h"

#include <string.h>

/* ---- records ---- */

static uint32_t rec_len(const uint32_t *p) {
  switch (p[0] & 3) {
  case LOG_CONG: return 2;
  case LOG_RULE: return p[0] >> 2 & 0xFF ? p[0] >> 2 & 0xFF : p[1];
  default: return p[0] >> 2 & 0x3FFF;
  }
}

/* The ids that a record joins, but for LOG_RULE. */
static edge plain_edge(const uint32_t *p, size_t at) {
  return (p[0] & 3) == LOG_CONG ? (edge){p[0] >> 2, p[1], at} : (edge){p[1], p[2], at};
}

/* The analyses with leaves that a rule may have asked for the values of what it matched. */
static uint64_t shows(const tarn_egraph *g, const eg_rule *r) {
  uint64_t all = 0, read = r->apply ? UINT64_MAX : 0;
  for (uint32_t a = 0; a < g->n_analyses; a++) all |= g->analyses[a].leaves ? UINT64_C(1) << a : 0;
  for (uint32_t i = 0; all && i < r->n_cond; i++) read |= r->cond[i].reads;
  for (uint32_t i = 0; all && i < r->n_tnode; i++)
    if (r->tnode[i].pat->payload_how == TARN_EG_COMPUTED ||
        r->tnode[i].pat->op_how == TARN_EG_COMPUTED)
      read = UINT64_MAX;
  return r->bare ? 0 : all & read;
}

use ex_read_use(const explainer *x, uint32_t e) {
  const uint32_t *p = x->g->log.p + x->e[e].at;
  bool small = p[0] >> 2 & 0xFF;
  uint32_t head = small ? 1 : 4, set = small ? p[0] >> 26 : p[2];
  uint32_t rule = small ? p[0] >> 14 & 0xFFF : p[3] & 0xFFFFF,
           part = small ? p[0] >> 10 & 15 : p[3] >> 20;
  if (small && part == LOG_FUNCTION) part = PART_FUNCTION;
  const eg_rule *r = &x->g->sets[set]->rule[rule];
  use u = {r, p + head, p + head + r->n_words, part, 0, e, shows(x->g, r)};
  u.n_made = rec_len(p) - head - r->n_words;
  return u;
}

const uint32_t *ex_origin(const explainer *x, uint32_t id) {
  return eg_origin(x->g, id, eg_arity(x->g, id));
}

/* The id that stands for a variable: where the rule reads it, as the matched node was made. */
uint32_t ex_var_id(const explainer *x, const use *u, uint32_t v) {
  eg_src s = u->r->var[v];
  if (u->r->bare || s.slot == SLOT_SELF) return u->tuple[s.atom];
  uint32_t node = u->tuple[s.atom];
  return ex_origin(x, node)[eg_slot_pos(u->r, s, u->tuple, eg_arity(x->g, node))];
}

void ex_rule_ends(const explainer *x, const use *u, uint32_t *from, uint32_t *to) {
  if (u->part == PART_FUNCTION) {
    *from = u->tuple[0], *to = u->made[0];
    return;
  }
  const eg_part *part = &u->r->part[u->part];
  *to = part->result.kind == REF_NODE ? u->made[part->result.i] : ex_var_id(x, u, part->result.i);
  *from = part->atom != NONE  ? u->tuple[part->atom]
          : part->var == NONE ? u->tuple[0]
                              : ex_var_id(x, u, part->var);
}

/* ---- the graph of records ---- */

bool ex_read_log(explainer *x) {
  tarn_egraph *g = x->g;
  for (size_t at = 0; at < g->log.n; at += rec_len(g->log.p + at)) {
    if (!eg_grow(x->m, (void **)&x->e, &x->e_cap, x->n_e + 1u, sizeof *x->e)) return false;
    const uint32_t *p = g->log.p + at;
    x->e[x->n_e] = plain_edge(p, at);
    if ((p[0] & 3) == LOG_RULE) {
      use u = ex_read_use(x, x->n_e);
      ex_rule_ends(x, &u, &x->e[x->n_e].x, &x->e[x->n_e].y);
    }
    x->n_e++;
  }
  return true;
}

bool ex_filled(explainer *x, eg_vec *v, size_t n, int byte) {
  if (!eg_vec_reserve(x->m, v, n)) return false;
  v->n = n;
  memset(v->p, byte, n * sizeof *v->p);
  return true;
}

bool ex_index_edges(explainer *x) {
  uint32_t n = x->g->n_ids;
  if (!ex_filled(x, &x->off, n + (size_t)2, 0) || !ex_filled(x, &x->adj, 2 * (size_t)x->n_e + 1, 0))
    return false;
  uint32_t *off = x->off.p;
  for (uint32_t e = 0; e < x->n_e; e++) off[x->e[e].x + 2]++, off[x->e[e].y + 2]++;
  for (uint32_t i = 0; i < n; i++) off[i + 2] += off[i + 1];
  for (uint32_t e = 0; e < x->n_e; e++)
    x->adj.p[off[x->e[e].x + 1]++] = e, x->adj.p[off[x->e[e].y + 1]++] = e;
  for (front *f = x->side; f < x->side + 2; f++)
    if (!ex_filled(x, &f->dist, n, 0) || !ex_filled(x, &f->via, n, 0) ||
        !ex_filled(x, &f->mark, n, 0))
      return false;
  return ex_filled(x, &x->cost, x->n_e + (size_t)1, 0) && ex_filled(x, &x->term, n, 0xFF);
}

/* ---- the cheapest path ---- */

/* An estimate of how many steps an edge unfolds to. */
static uint32_t edge_cost(const explainer *x, uint32_t e) {
  const uint32_t *p = x->g->log.p + x->e[e].at;
  uint32_t kind = p[0] & 3, cost = 2;
  if (kind == LOG_CONG) {
    edge at = x->e[e];
    uint32_t n = eg_arity(x->g, at.x);
    const uint32_t *a = ex_origin(x, at.x), *b = ex_origin(x, at.y);
    for (uint32_t i = 0; i < n; i++) cost += a[i] != b[i] ? 3 : 0;
  } else if (kind == LOG_RULE) {
    use u = ex_read_use(x, e);
    for (uint32_t a = 0; a < u.r->n_atoms; a++) {
      const eg_atom *at = &u.r->atom[a];
      if (at->parent == NONE) continue;
      eg_src s = {at->parent, at->slot};
      uint32_t up = u.tuple[at->parent];
      cost +=
          ex_origin(x, up)[eg_slot_pos(u.r, s, u.tuple, eg_arity(x->g, up))] != u.tuple[a] ? 3 : 0;
    }
  }
  return cost;
}

static bool reach_id(explainer *x, front *f, uint32_t id, uint32_t d, uint32_t via) {
  if (f->mark.p[id] == x->round && f->dist.p[id] <= d) return true;
  f->mark.p[id] = x->round, f->dist.p[id] = d, f->via.p[id] = via;
  return eg_heap_put(x->m, &f->heap, d, id);
}

/* One id of one side, and its neighbours; *best: the length of the best path known. */
static bool look_on(explainer *x, front *f, const front *other, uint32_t limit, uint32_t *best) {
  uint32_t d, id = eg_heap_take(&f->heap, &d);
  if (d > f->dist.p[id]) return true;
  uint32_t edges = x->off.p[id + 1] - x->off.p[id];
  if (edges > x->work_left) {
    eg_fail(x->m, TARN_NO_RESULT, "egraph: the explanation takes too long");
    return false;
  }
  f->work += edges, x->work_left -= edges;
  for (uint32_t i = x->off.p[id]; i < x->off.p[id + 1]; i++) {
    uint32_t e = x->adj.p[i];
    if (e >= limit) break; /* in order of time */
    if (!x->cost.p[e]) x->cost.p[e] = edge_cost(x, e);
    bool back = x->e[e].y == id;
    uint32_t to = back ? x->e[e].x : x->e[e].y, far = d + x->cost.p[e];
    if (!reach_id(x, f, to, far, 2 * e + back)) return false;
    if (other->mark.p[to] == x->round && far + other->dist.p[to] < *best)
      *best = far + other->dist.p[to], x->meet = to;
  }
  return true;
}

/* What a side will have looked at after its next id. */
static uint64_t work_after(const explainer *x, const front *f) {
  uint32_t id = f->heap.p[1];
  return f->work + x->off.p[id + 1] - x->off.p[id];
}

/* Looks for a cheapest path from a to b, from both ends, as classes may be large and a constant may
 * have edges to all of a class: where they met is x->meet, NONE: nowhere. */
bool ex_look_for(explainer *x, uint32_t a, uint32_t b, uint32_t limit) {
  front *f = &x->side[0], *t = &x->side[1];
  uint32_t best = UINT32_MAX;
  x->round++, x->meet = a == b ? a : NONE;
  f->heap.n = t->heap.n = 0, f->work = t->work = 0;
  if (!reach_id(x, f, a, 0, NONE) || !reach_id(x, t, b, 0, NONE)) return false;
  while (a != b && f->heap.n && t->heap.n && f->heap.p[0] + t->heap.p[0] < best) {
    bool first = work_after(x, f) <= work_after(x, t);
    if (!look_on(x, first ? f : t, first ? t : f, limit, &best)) return false;
  }
  return true;
}

/* The other end of how a side came to an id. */
static uint32_t came_from(const explainer *x, uint32_t via) {
  return via & 1 ? x->e[via / 2].y : x->e[via / 2].x;
}

static void reverse(uint32_t *p, size_t n) {
  for (size_t i = 0; i < n / 2; i++) {
    uint32_t t = p[i];
    p[i] = p[n - 1 - i], p[n - 1 - i] = t;
  }
}

/* The edges of a cheapest path from a to b, last first, as edge * 2 + backwards. */
bool ex_find_path(explainer *x, uint32_t a, uint32_t b, uint32_t limit, eg_vec *path) {
  if (!ex_look_for(x, a, b, limit)) return false;
  if (x->meet == NONE) {
    eg_fail(x->m, TARN_INTERNAL, "egraph: no reason is known for %u = %u", a, b);
    return false;
  }
  for (uint32_t id = x->meet, v; id != b; id = came_from(x, v)) {
    v = x->side[1].via.p[id];
    if (!eg_push(x->m, path, v ^ 1)) return false;
  }
  reverse(path->p, path->n);
  for (uint32_t id = x->meet, v; id != a; id = came_from(x, v)) {
    v = x->side[0].via.p[id];
    if (!eg_push(x->m, path, v)) return false;
  }
  return true;
}
