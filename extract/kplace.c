/* Places: the machines that kernels run on, each with its price, and copies between their memories.
 */
#include "extract/kgraph.h"
#include <math.h>

/* ---------------------------------------------------------------- machines */
/* Other programs use the last-level cache too, and all of a large network's weights pass between
 * two uses of one.
 */
#define SMALL                                                                                      \
  0.4 /* of the last-level cache: 14 MB of 64 stay there, 45 do not (bench/notes/performance.md)   \
       */

/* Are the weights of the network, as it was imported, few?  Terms have larger numbers than what
 * they are made of. */
static bool is_small(const kgraph *k, const tarn_hw *hw) {
  const tarn_program *p = k->in->whole ? k->in->whole : k->in->program;
  const tarn_hw_memory *last = tarn_hw_mem(hw, TARN_HW_LLC);
  if (!p || !last) return false;
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->nout; i++) n = p->out[i].term >= n ? p->out[i].term + 1 : n;
  bool *used = TARN_ARRAY(k->cx, bool, n + 1);
  for (uint32_t i = 0; i < p->nout; i++) used[p->out[i].term] = true;
  double bytes = 0;
  for (tarn_term t = n; t-- > 0;) {
    if (!used[t]) continue;
    const tarn_node *e = tarn_term_get(k->L, t);
    const tarn_type *type = e->op == TARN_OP_CONST ? tarn_term_type(k->L, t) : NULL;
    if (type) bytes += (double)(tarn_type_count(type) * (int64_t)tarn_dtype_size(type->dtype));
    for (uint32_t i = 0; i < e->n; i++) used[e->kid[i]] = true;
  }
  return bytes <= SMALL * (double)last->capacity;
}

/* Of machine i. small: the program's weights stay in the last-level cache. */
static tarn_solver *solver_of(kgraph *k, uint32_t i, bool small) {
  const tarn_kgraph_options *o = k->o;
  const kmachine *m = &k->of[i];
  tarn_solver *made = NULL, **s = o->solvers ? &o->solvers[2 * i + small] : &made;
  if (*s) return *s;
  *s = (o->solver ? o->solver : tarn_solver_new)(k->L, m->hw, m->threads);
  if (i + 1 == k->machines.n && o->price) tarn_solver_rank(*s, o->price, TARN_RANKED);
  if (i + 1 < k->machines.n) tarn_solver_of_host(*s);
  if (small) tarn_solver_cache_weights(*s);
  return *s;
}
void kg_machines(kgraph *k) {
  const tarn_kgraph_options *o = k->o;
  k->machines = tarn_hw_machines(o->hw);
  for (uint32_t i = 0; i < k->machines.n; i++) {
    kmachine *m = &k->of[i];
    bool last = i + 1 == k->machines.n; /* the described one: a learned price is its */
    m->hw = k->machines.hw[i];
    m->threads = o->threads && !i ? o->threads : m->hw->units;
    m->price = last && o->price ? o->price : tarn_price_analytic();
    m->solver = solver_of(k, i, is_small(k, m->hw));
    m->before = tarn_solver_count(m->solver);
  }
  kg_machine(k, 0);
}
void kg_machine(kgraph *k, uint32_t number) {
  k->machine = number, k->place = k->machines.place[number];
  k->now = k->of[number];
}

/* ---------------------------------------------------------------- copies between places */
/* A buffer as it stands, from one place to another. */
static void move(kgraph *k, uint32_t group, uint32_t layout, uint32_t from, uint32_t to) {
  const kgroup *g = &k->group.p[group];
  const tarn_layout *l = &g->layout[layout];
  double each = (double)tarn_dtype_size(tarn_type_get(k->L, g->type)->dtype);
  kcand c = kg_new_cand(k, KC_MOVE, TARN_NONE, g->rep, 1);
  c.child[0] = g->first + from * g->nlayout + layout;
  c.in[0] = c.out[0] = *l;
  c.copy = true, c.machine = from > to ? from : to, c.place = to;
  c.price = tarn_hw_copy_seconds(&k->machines, from, to, (double)tarn_layout_elems(l) * each);
  if (c.price == INFINITY) return;
  kg_add_cand(k, g->first + to * g->nlayout + layout, c);
}
void kg_moves(kgraph *k) {
  for (uint32_t g = 0; g < k->group.n && k->machines.n > 1; g++)
    for (uint32_t l = 0; l < k->group.p[g].nlayout; l++)
      for (uint32_t a = 0; a < k->machines.n; a++)
        for (uint32_t b = 0; b < k->machines.n; b++)
          if (a != b && k->group.p[g].part_of[l] == TARN_NONE) move(k, g, l, a, b);
}

/* ---- the host of a GPU ----
 * Kernels that are no nests run on the host, and what they exchange with the device is copied. The
 * selection counts copies that a choice of one candidate makes certain, each once at most, so that
 * its bound holds for the program with all of its copies (plan/copies.c). */
enum { BY_HOST = 1, BY_DEVICE = 2, BY_OTHERS = 4 };
static uint8_t side_of(const kcand *c) {
  return c->kind == KC_OTHER ? BY_HOST : c->kind == KC_NEST ? BY_DEVICE : BY_OTHERS;
}
static void see_candidate(ksides *s, uint32_t ag, const kcand *c) {
  if (c->kind == KC_NTH) return;
  s->made[ag] |= side_of(c);
  for (uint32_t j = 0; j < c->nchild; j++) {
    if (c->child[j] == TARN_NONE) continue;
    s->read[c->child[j]] |= side_of(c);
    s->readers[c->child[j]] += c->kind == KC_OTHER;
  }
}
void kg_sides(kgraph *k) {
  const tarn_hw *hw = k->of[0].hw;
  ksides *s = &k->sides;
  if (!tarn_hw_traits_of(hw).hosted) return;
  *s = (ksides){TARN_ARRAY(k->cx, uint8_t, k->nag), TARN_ARRAY(k->cx, uint8_t, k->nag),
                TARN_ARRAY(k->cx, uint32_t, k->nag)};
  for (uint32_t i = 0; i < k->cand.n; i++) see_candidate(s, k->cand_class.p[i], &k->cand.p[i]);
  for (uint32_t i = 0; i < k->cand.n; i++) { /* one of several results */
    const kcand *c = &k->cand.p[i];
    if (c->kind != KC_NTH) continue;
    s->made[k->cand_class.p[i]] |= s->made[c->child[0]];
    s->read[c->child[0]] |= s->read[k->cand_class.p[i]];
  }
}
static double copy_of(const kgraph *k, bool send, uint32_t kcls, const tarn_layout *l) {
  double each = (double)tarn_dtype_size(tarn_type_get(k->L, k->cls.p[kcls].type)->dtype);
  return tarn_hw_link_seconds(&k->of[0].hw->link, send, (double)tarn_layout_elems(l) * each);
}
double kg_exchanged(const kgraph *k, uint32_t ag, const kcand *c) {
  const ksides *s = &k->sides;
  double seconds = 0;
  if (!s->made || side_of(c) == BY_OTHERS || tarn_type_get(k->L, k->cls.p[c->kcls].type)->tuple)
    return 0;
  if (c->kind == KC_NEST && s->made[ag] == (BY_HOST | BY_DEVICE) && s->read[ag] == BY_HOST)
    return copy_of(k, false, c->kcls, &c->out[0]);
  if (c->kind != KC_OTHER) return 0;
  tarn_eg_node e = tarn_eg_node_at(k->g, c->node);
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] != TARN_NONE && s->made[c->child[j]] == BY_DEVICE)
      seconds += copy_of(k, false, kg_class(k, e.kids[j]), &c->in[j]) / s->readers[c->child[j]];
  if (s->read[ag] == BY_DEVICE) seconds += copy_of(k, true, c->kcls, &c->out[0]);
  return seconds;
}
