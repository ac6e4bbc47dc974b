/* tarn equal: where two programs are not shown to be equal, node by node.
 *
 * A node of B and one of A with equal values on random inputs are a pair. In B's order each pair is
 * proved over what is proved already, which is one input for both sides then. The first pair that
 * is not proved, and that an output still needs, is the place. */
#include "cli/equal.h"
#include <math.h>
#include <string.h>

enum { SAMPLES = 2, MOST_VALUES = 1 << 26 };

/* Nodes of one side that have a tensor made of inputs, each once. */
typedef struct side {
  TARN_VEC(tarn_origin) node;
  tarn_tensor **value[SAMPLES];
  bool *taken;   /* has its pair */
  tarn_map *cut; /* a proved term -> 1 + the input for it */
} side;
typedef struct locating {
  equal_job *k;
  side s[2];
  equal_place *out;
  tarn_buf *chain;
  uint32_t cuts;
} locating;

/* ---- nodes and their values ---- */
static bool of_inputs(const equal_job *k, tarn_map *known, tarn_term root) {
  const uint64_t *d = tarn_map_get(known, root);
  if (d) return *d;
  const tarn_node *x = tarn_term_get(k->L, root);
  bool any = x->op == TARN_OP_INPUT;
  for (uint32_t i = 0; i < x->n && !any; i++) any = of_inputs(k, known, x->kid[i]);
  *tarn_map_at(known, root, NULL) = any;
  return any;
}
static double find_nodes(locating *l, int i) {
  const tarn_program *p = l->k->p[i];
  tarn_map *seen = tarn_map_new(l->k->cx), *known = tarn_map_new(l->k->cx);
  double total = 0;
  for (uint32_t n = 0; n < p->norigin; n++) {
    const tarn_origin *o = &p->origin[n];
    const tarn_type *t = tarn_term_type(l->k->L, o->term);
    bool fresh;
    tarn_map_at(seen, o->term, &fresh);
    if (!fresh || t->tuple || !of_inputs(l->k, known, o->term)) continue;
    if (tarn_term_get(l->k->L, o->term)->op == TARN_OP_INPUT) continue;
    tarn_push(l->k->cx, &l->s[i].node, *o);
    total += (double)tarn_type_count(t);
  }
  l->s[i].taken = TARN_ARRAY(l->k->cx, bool, l->s[i].node.n + 1);
  l->s[i].cut = tarn_map_new(l->k->cx);
  return total;
}
static void evaluate(locating *l) {
  uint32_t na = l->s[0].node.n, nb = l->s[1].node.n;
  tarn_term *root = TARN_ARRAY(l->k->cx, tarn_term, na + nb + 1);
  for (uint32_t i = 0; i < na + nb; i++)
    root[i] = i < na ? l->s[0].node.p[i].term : l->s[1].node.p[i - na].term;
  for (uint32_t k = 0; k < SAMPLES; k++) {
    l->s[0].value[k] = equal_values(l->k, root, na + nb, k);
    l->s[1].value[k] = l->s[0].value[k] + na;
  }
}
static bool same_values(const tarn_tensor *a, const tarn_tensor *b) {
  double most = 0;
  if (a->dtype != b->dtype || a->n != b->n || memcmp(a->dim, b->dim, a->n * sizeof *a->dim))
    return false;
  for (int64_t i = 0; i < tarn_tensor_count(a); i++)
    if (isfinite(tarn_tensor_number(a, i))) most = fmax(most, fabs(tarn_tensor_number(a, i)));
  for (int64_t i = 0; i < tarn_tensor_count(a); i++) {
    double x = tarn_tensor_number(a, i), y = tarn_tensor_number(b, i);
    if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= 1e-5 * most)) return false;
  }
  return true;
}
static uint32_t partner(const locating *l, uint32_t b) {
  const side *s = &l->s[0];
  for (uint32_t a = 0; a < s->node.n; a++) {
    bool same = !s->taken[a];
    for (uint32_t k = 0; k < SAMPLES && same; k++)
      same = same_values(s->value[k][a], l->s[1].value[k][b]);
    if (same) return a;
  }
  return TARN_NONE;
}

/* ---- over what is proved ---- */
/* The term with the inputs for what is proved below it. */
static tarn_term over_cuts(const locating *l, int i, tarn_term root) {
  tarn_map *done = tarn_map_new(l->k->cx);
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(l->k->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    tarn_node x = *tarn_term_get(l->k->L, t);
    tarn_term *kid = TARN_ARRAY(l->k->cx, tarn_term, x.n + 1u);
    const uint64_t *cut = t == root ? NULL : tarn_map_get(l->s[i].cut, t);
    uint32_t had = todo.n;
    for (uint32_t n = 0; n < x.n && !cut; n++) {
      const uint64_t *d = tarn_map_get(done, x.kid[n]);
      if (d) kid[n] = (tarn_term)(*d - 1);
      else tarn_push(l->k->cx, &todo, x.kid[n]);
    }
    if (todo.n > had) continue;
    todo.n--;
    *tarn_map_at(done, t, NULL) =
        cut ? *cut : 1 + (uint64_t)tarn_mk(l->k->L, x.op, x.payload, kid, x.n);
  }
  return (tarn_term)(*tarn_map_get(done, root) - 1);
}
static bool holds(const locating *l, tarn_term root, tarn_term what) {
  tarn_map *seen = tarn_map_new(l->k->cx);
  TARN_VEC(tarn_term) todo = {0};
  bool fresh;
  tarn_push(l->k->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(l->k->L, t);
    if (t == what) return true;
    tarn_map_at(seen, t, &fresh);
    if (!fresh || (t != root && tarn_map_get(l->s[1].cut, t))) continue;
    for (uint32_t i = 0; i < x->n; i++) tarn_push(l->k->cx, &todo, x->kid[i]);
  }
  return false;
}
static void cut(locating *l, tarn_term a, tarn_term b) {
  uint32_t type = tarn_term_get(l->k->L, a)->type;
  if (tarn_map_get(l->s[0].cut, a) || tarn_map_get(l->s[1].cut, b)) return;
  tarn_term input = tarn_input(l->k->L, tarn_format(l->k->cx, "proved %u", l->cuts++), type);
  *tarn_map_at(l->s[0].cut, a, NULL) = 1 + (uint64_t)input;
  *tarn_map_at(l->s[1].cut, b, NULL) = 1 + (uint64_t)input;
}
static bool proved(locating *l, tarn_term a, tarn_term b, const char *name, tarn_term part[2]) {
  const char *stop;
  part[0] = over_cuts(l, 0, a), part[1] = over_cuts(l, 1, b);
  if (part[0] == part[1]) return true;
  if (tarn_term_get(l->k->L, part[0])->type != tarn_term_get(l->k->L, part[1])->type) return false;
  return equal_prove(l->k, 0.2, part[0], part[1], name, l->chain, &stop);
}

/* ---- pair by pair ---- */
typedef struct unproved {
  uint32_t a, b;
  tarn_term part[2];
} unproved;
typedef TARN_VEC(unproved) unproved_pairs;
static void prove_pairs(locating *l, unproved_pairs *open) {
  for (uint32_t b = 0; b < l->s[1].node.n && !tarn_late(l->k->cx); b++) {
    uint32_t a = partner(l, b);
    unproved u = {a, b, {0, 0}};
    if (a == TARN_NONE) continue;
    l->s[0].taken[a] = l->s[1].taken[b] = true;
    l->out->pairs++;
    tarn_term of_a = l->s[0].node.p[a].term, of_b = l->s[1].node.p[b].term;
    if (!proved(l, of_a, of_b, l->s[1].node.p[b].node, u.part)) {
      tarn_push(l->k->cx, open, u);
      continue;
    }
    l->out->proved++;
    cut(l, of_a, of_b);
  }
}
static void name_place(locating *l, const unproved *u) {
  l->out->node[0] = &l->s[0].node.p[u->a], l->out->node[1] = &l->s[1].node.p[u->b];
  memcpy(l->out->part, u->part, sizeof u->part);
}
static bool was_tried(const locating *l, const unproved_pairs *open, tarn_term a, tarn_term b,
                      tarn_term part[2]) {
  for (uint32_t n = 0; n < open->n; n++) {
    const unproved *u = &open->p[n];
    memcpy(part, u->part, sizeof u->part);
    if (l->s[0].node.p[u->a].term == a && l->s[1].node.p[u->b].term == b) return true;
  }
  return false;
}
/* The first output that is not proved, and the first pair in it. */
static void judge_outputs(locating *l, const unproved_pairs *open) {
  for (uint32_t i = 0; i < l->k->p[1]->nout; i++) {
    tarn_term a = l->k->p[0]->out[i].term, b = l->k->p[1]->out[i].term, part[2];
    const uint64_t *x = tarn_map_get(l->s[0].cut, a), *y = tarn_map_get(l->s[1].cut, b);
    if (x && y && *x == *y) continue;
    if (!was_tried(l, open, a, b, part) && proved(l, a, b, l->k->p[1]->out[i].name, part)) continue;
    memcpy(l->out->part, part, sizeof part);
    for (uint32_t n = 0; n < open->n; n++) {
      if (!holds(l, b, l->s[1].node.p[open->p[n].b].term)) continue;
      name_place(l, &open->p[n]);
      return;
    }
    return;
  }
  l->out->outputs = true;
}
static const tarn_origin *first_alone(const side *s) {
  for (uint32_t i = 0; i < s->node.n; i++)
    if (!s->taken[i]) return &s->node.p[i];
  return NULL;
}
static void find(tarn_ctx *cx, void *arg) {
  locating *l = arg;
  unproved_pairs open = {0};
  (void)cx;
  evaluate(l);
  prove_pairs(l, &open);
  if (l->out->differs) {
    for (int i = 0; i < 2; i++) l->out->node[i] = first_alone(&l->s[i]);
    return;
  }
  judge_outputs(l, &open);
  if (l->out->outputs || tarn_term_get(l->k->L, l->out->part[0])->type !=
                             tarn_term_get(l->k->L, l->out->part[1])->type)
    return;
  l->out->differs = equal_differ(l->k, &l->out->part[0], &l->out->part[1], 1, &l->out->w);
}
void equal_locate(equal_job *k, equal_place *out, tarn_buf *chain) {
  locating l = {.k = k, .out = out, .chain = chain};
  double total = 0;
  out->part[0] = k->p[0]->out[0].term, out->part[1] = k->p[1]->out[0].term;
  for (int i = 0; i < 2; i++) total += find_nodes(&l, i);
  if (total > MOST_VALUES || !l.s[0].node.n || !l.s[1].node.n) return;
  equal_in_time(k, 1, find, &l);
}
