/* Kernel forms of what surface rules made: every e-node of every class that the outputs need, as
 * nests and views over the classes that it reads.
 *
 * A nest holds the views of its reads, so a class that is a view is looked through: each of its
 * views is another form of what reads it.  Where a class is computed, or is a leaf, an input stands
 * for it (its leaf); so the form of an e-node is that of a small term, whatever lies below.  The
 * term and its form are then added over the classes, and joined: a step between two terms of one
 * normal form, which proofs re-check.
 *
 * What people wrote keeps its place in its class, for proofs, but is not looked at any more. */
#include "rules/run/run.h"
#include <string.h>

enum { VIEWS = 4, FORMS = 8, DEPTH = 8 }; /* of a class, of an e-node, of views of views */

typedef struct offered { /* what may stand for a class in what reads it: terms over leaves */
  uint32_t n;
  tarn_term term[VIEWS], normal[VIEWS];
} offered;

typedef struct forming {
  tarn_saturation *s;
  tarn_lang *L;
  tarn_ctx *cx;
  kern_host terms;
  tarn_map *leaf, *of_leaf;  /* class -> its leaf + 1, and back, + 1 */
  tarn_map *reached;         /* class -> its number in cls + 1 */
  TARN_VEC(uint32_t) cls;    /* all below the outputs */
  TARN_VEC(offered) offer;   /* by that number */
  TARN_VEC(uint32_t) needed; /* classes that kernels are made for */
  tarn_map *seen;            /* of them */
  TARN_VEC(tarn_term) form;  /* over leaves, of which the forms are added */
  tarn_map *used;            /* their subterms */
  tarn_term *out;            /* kernel forms of the outputs as they were given */
  TARN_VEC(tarn_term) given; /* all terms that were */
  tarn_map *given_in;        /* class -> kernel form of one of them, + 1 */
} forming;

/* Operators that kernel form does not have: what they do is done by maps of nests and views. */
static bool as_written(uint32_t op) {
  tarn_opkernel k = tarn_op_info(op)->kernel;
  if (op == TARN_OP_PAIR || op == TARN_OP_CART_PROD || op == TARN_OP_PLACE) return true;
  return op != TARN_OP_VIEW && op != TARN_OP_NEST && (k == TARN_OPK_VIEW || k == TARN_OPK_NEST);
}
static bool several(const forming *f, uint32_t cls) {
  return tarn_type_get(f->L, tarn_sat_type(f->s, cls))->tuple;
}
/* Is it looked through by what reads its class? */
static bool looked_through(const forming *f, uint32_t cls, uint32_t op) {
  return several(f, cls) || tarn_op_is_view(op) || op == TARN_OP_PAIR || op == TARN_OP_CART_PROD ||
         op == TARN_OP_PLACE || op == TARN_OP_CONCAT;
}
static uint32_t kid_class(const forming *f, const tarn_eg_node *x, uint32_t i) {
  return tarn_eg_find(f->s->g, x->kids[i]);
}

/* ---------------------------------------------------------------- leaves */

/* The constant or input that a class is, or the kernel form of what the program has in it, so that
 * forms over leaves are those of the program; else TARN_NONE. */
static tarn_term as_given(const forming *f, uint32_t cls) {
  const tarn_egraph *g = f->s->g;
  const uint64_t *given = tarn_map_get(f->given_in, cls);
  if (given) return (tarn_term)(*given - 1);
  TARN_EG_NODES(g, cls, n) {
    tarn_eg_node x = tarn_eg_node_at(g, n);
    if (x.op == TARN_OP_CONST || x.op == TARN_OP_INPUT)
      return tarn_mk(f->L, x.op, x.payload, NULL, 0);
  }
  return TARN_NONE;
}
static tarn_term leaf_of(forming *f, uint32_t cls) {
  bool fresh;
  uint64_t *at = tarn_map_at(f->leaf, cls, &fresh);
  if (!fresh) return (tarn_term)(*at - 1);
  tarn_term t = as_given(f, cls);
  if (t == TARN_NONE || tarn_map_get(f->of_leaf, t))
    t = tarn_input(f->L, tarn_format(f->cx, "?class %u", cls), tarn_sat_type(f->s, cls));
  *tarn_map_at(f->leaf, cls, NULL) = (uint64_t)t + 1;
  *tarn_map_at(f->of_leaf, t, NULL) = (uint64_t)cls + 1;
  return t;
}
/* Kernel forms of the program's terms, by their classes. */
static void form_given(forming *f) {
  tarn_saturation *s = f->s;
  for (uint32_t i = 0; i < s->nroot; i++)
    f->out[i] = kern_form(&f->terms, s->form, s->program->out[i].term);
  for (uint32_t i = 0; i < f->given.n; i++) {
    tarn_term t = f->given.p[i];
    uint32_t cls = tarn_eg_find(s->g, (uint32_t)*tarn_map_get(s->added, t) - 1);
    const uint64_t *form = tarn_map_get(s->form, tarn_normalise(f->L, t));
    if (!form || looked_through(f, cls, tarn_term_get(f->L, t)->op)) continue;
    if (!tarn_map_get(f->given_in, cls)) *tarn_map_at(f->given_in, cls, NULL) = *form;
  }
}
/* Is there a node whose value is computed, or given? Then kernels may read it as it lies. A view of
 * a constant that was computed in passing stays a view. */
static bool is_computed(const forming *f, uint32_t cls) {
  const tarn_egraph *g = f->s->g;
  bool constant = false, views = several(f, cls);
  if (tarn_map_get(f->given_in, cls)) return true;
  for (uint32_t n = tarn_eg_next_node(g, cls, TARN_NONE); n != TARN_NONE && !several(f, cls);
       n = tarn_eg_next_node(g, cls, n)) {
    uint32_t op = tarn_eg_node_at(g, n).op;
    if (looked_through(f, cls, op)) views = true;
    else if (op == TARN_OP_CONST) constant = true;
    else return true;
  }
  return constant && !views;
}

static bool has_constant(const forming *f, uint32_t cls) {
  const tarn_egraph *g = f->s->g;
  TARN_EG_NODES(g, cls, n)
    if (tarn_eg_node_at(g, n).op == TARN_OP_CONST) return true;
  return false;
}

/* ---------------------------------------------------------------- what may stand for a class */

static const offered *offer_of(const forming *f, uint32_t cls) {
  return &f->offer.p[*tarn_map_get(f->reached, cls) - 1];
}
/* Number `way` of the ways to put what is offered for the kids of x: false behind the last. */
static bool kids_of(const forming *f, const tarn_eg_node *x, uint32_t way, tarn_term *kid) {
  for (uint32_t i = 0; i < x->n; i++) {
    const offered *o = offer_of(f, kid_class(f, x, i));
    if (!o->n) return false;
    kid[i] = o->term[way % o->n];
    way /= o->n;
  }
  return way == 0;
}
static tarn_term over(const forming *f, const tarn_eg_node *x, const tarn_term *kid) {
  return tarn_mk(f->L, x->op, x->payload, kid, x->n);
}
/* A concatenation stands for its class where it is a view of one tensor. */
static bool stands(forming *f, tarn_term t, uint32_t op) {
  return op != TARN_OP_CONCAT ||
         tarn_term_get(f->L, kern_form(&f->terms, f->s->form, t))->op == TARN_OP_VIEW;
}
static bool add_offer(forming *f, offered *o, tarn_term t, uint32_t op) {
  tarn_term normal = tarn_normalise(f->L, t);
  for (uint32_t i = 0; i < o->n; i++)
    if (o->normal[i] == normal) return false;
  if (o->n == VIEWS || !stands(f, t, op)) return false;
  o->term[o->n] = t, o->normal[o->n] = normal, o->n++;
  return true;
}
static bool offer_more(forming *f, uint32_t number) {
  const tarn_egraph *g = f->s->g;
  uint32_t cls = f->cls.p[number];
  bool more = false;
  TARN_EG_NODES(g, cls, n) {
    tarn_eg_node x = tarn_eg_node_at(g, n);
    tarn_term *kid = TARN_ARRAY(f->cx, tarn_term, x.n + 1u);
    if (!looked_through(f, cls, x.op)) continue;
    for (uint32_t way = 0; way < FORMS && kids_of(f, &x, way, kid); way++)
      more |= add_offer(f, &f->offer.p[number], over(f, &x, kid), x.op);
  }
  return more;
}
static void offer_leaf(forming *f, uint32_t number) {
  tarn_term t = leaf_of(f, f->cls.p[number]);
  f->offer.p[number] = (offered){.n = 1, .term = {t}, .normal = {tarn_normalise(f->L, t)}};
}
static void offer_views(forming *f) {
  bool more = true;
  for (int depth = 0; more && depth < DEPTH; depth++) {
    more = false;
    for (uint32_t i = f->cls.n; i-- > 0;) more |= offer_more(f, i);
  }
}
/* Constants that are views of one another alone are leaves after all. */
static void offer_all(forming *f) {
  for (uint32_t i = 0; i < f->cls.n; i++) {
    tarn_push(f->cx, &f->offer, ((offered){0}));
    if (is_computed(f, f->cls.p[i])) offer_leaf(f, i);
  }
  offer_views(f);
  bool more = false;
  for (uint32_t i = 0; i < f->cls.n; i++) {
    if (f->offer.p[i].n || several(f, f->cls.p[i]) || !has_constant(f, f->cls.p[i])) continue;
    offer_leaf(f, i);
    more = true;
  }
  if (more) offer_views(f);
}
/* All classes below the outputs, those that read before those that are read where that is possible.
 */
static void reach_all(forming *f) {
  tarn_saturation *s = f->s;
  bool fresh;
  for (uint32_t i = 0; i < s->nroot; i++) {
    uint32_t root = tarn_eg_find(s->g, s->exact[i]);
    uint64_t *at = tarn_map_at(f->reached, root, &fresh);
    if (fresh) tarn_push(f->cx, &f->cls, root), *at = f->cls.n;
  }
  for (uint32_t i = 0; i < f->cls.n; i++)
    TARN_EG_NODES(s->g, f->cls.p[i], n) {
      tarn_eg_node x = tarn_eg_node_at(s->g, n);
      for (uint32_t k = 0; k < x.n; k++) {
        uint32_t c = kid_class(f, &x, k);
        uint64_t *at = tarn_map_at(f->reached, c, &fresh);
        if (fresh) tarn_push(f->cx, &f->cls, c), *at = f->cls.n;
      }
    }
}

/* ---------------------------------------------------------------- forms */

static void need(forming *f, uint32_t cls) {
  bool fresh;
  tarn_map_at(f->seen, cls, &fresh);
  if (fresh) tarn_push(f->cx, &f->needed, cls);
}
/* The classes whose leaves a term has are needed. */
static void need_leaves(forming *f, tarn_term t) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(f->cx, &todo, t);
  while (todo.n) {
    tarn_term u = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(f->L, u);
    const uint64_t *cls = tarn_map_get(f->of_leaf, u);
    if (cls) {
      need(f, (uint32_t)*cls - 1);
      continue;
    }
    for (uint32_t i = 0; i < x->n; i++) tarn_push(f->cx, &todo, x->kid[i]);
  }
}
static void add_form(forming *f, tarn_term t) {
  tarn_push(f->cx, &f->form, t);
  need_leaves(f, t);
}
/* What is no nest reads whole buffers: the leaves of its kids. */
static void form_whole(forming *f, const tarn_eg_node *x) {
  tarn_term *kid = TARN_ARRAY(f->cx, tarn_term, x->n + 1u);
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t c = kid_class(f, x, i);
    const offered *o = several(f, c) ? offer_of(f, c) : NULL;
    if (o && !o->n) return;
    kid[i] = o ? o->term[0] : leaf_of(f, c);
  }
  add_form(f, over(f, x, kid));
}
static void form_nest(forming *f, const tarn_eg_node *x) {
  tarn_term *kid = TARN_ARRAY(f->cx, tarn_term, x->n + 1u);
  for (uint32_t way = 0; way < FORMS && kids_of(f, x, way, kid); way++)
    add_form(f, over(f, x, kid));
}
static void form_class(forming *f, uint32_t cls) {
  const tarn_egraph *g = f->s->g;
  const offered *o = offer_of(f, cls);
  for (uint32_t i = is_computed(f, cls); i < o->n; i++) add_form(f, o->term[i]);
  TARN_EG_NODES(g, cls, n) {
    tarn_eg_node x = tarn_eg_node_at(g, n);
    if (x.op == TARN_OP_CONCAT) form_whole(f, &x);
    if (looked_through(f, cls, x.op) || x.n == 0) continue;
    if (tarn_op_info(x.op)->kernel == TARN_OPK_NEST) form_nest(f, &x);
    else form_whole(f, &x);
  }
}

/* ---------------------------------------------------------------- what was written */

static void set_aside(tarn_saturation *s) {
  TARN_EG_CLASSES(s->g, c)
    TARN_EG_NODES(s->g, c, n)
      if (as_written(tarn_eg_node_at(s->g, n).op)) sat_set_state(s, n, SAT_WRITTEN);
}
static void use_class(tarn_saturation *s, uint32_t id) {
  uint32_t c = tarn_eg_find(s->g, id);
  TARN_EG_NODES(s->g, c, n)
    if (sat_state_of(s, n) == SAT_WRITTEN) sat_set_state(s, n, SAT_LIVE);
}
/* What kernel form can only say as it was written stays a node like others. */
static void use_written(forming *f, tarn_term form, const tarn_map *id) {
  TARN_VEC(tarn_term) todo = {0};
  bool fresh;
  tarn_push(f->cx, &todo, form);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    const tarn_node *x = tarn_term_get(f->L, t);
    tarn_map_at(f->used, t, &fresh);
    if (!fresh || tarn_map_get(f->of_leaf, t)) continue;
    if (as_written(x->op) && tarn_map_get(id, t))
      use_class(f->s, (uint32_t)*tarn_map_get(id, t) - 1);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(f->cx, &todo, x->kid[i]);
  }
}

/* ---------------------------------------------------------------- into the graph */

static void join(forming *f, uint32_t a, uint32_t b) {
  if (tarn_eg_union(f->s->g, a, b, R_RULE_NORM, 0) < 0) sat_engine_failed(f->s);
}
/* An id of the class, its own term computed where there is one that is. */
static uint32_t id_of(const forming *f, uint32_t cls) {
  const tarn_egraph *g = f->s->g;
  uint32_t first = tarn_eg_next_node(g, cls, TARN_NONE);
  for (uint32_t n = first; n != TARN_NONE; n = tarn_eg_next_node(g, cls, n))
    if (!looked_through(f, cls, tarn_eg_node_at(g, n).op)) return n;
  return first;
}
static tarn_map *leaf_ids(forming *f) {
  tarn_map *id = tarn_map_new(f->cx);
  for (uint32_t i = 0; i < f->cls.n; i++) {
    const uint64_t *t = tarn_map_get(f->leaf, f->cls.p[i]);
    if (t) *tarn_map_at(id, (tarn_term)(*t - 1), NULL) = (uint64_t)id_of(f, f->cls.p[i]) + 1;
  }
  return id;
}
/* The form of a term, which may itself be the leaf of its class: its kids are leaves, it is not. */
static uint32_t add_form_of(forming *f, tarn_term form, tarn_map *id) {
  tarn_node x = *tarn_term_get(f->L, form);
  uint32_t *kid = TARN_ARRAY(f->cx, uint32_t, x.n + 1u);
  if (!x.n) return sat_add_term(f->s, form, id);
  for (uint32_t i = 0; i < x.n; i++) kid[i] = sat_add_term(f->s, x.kid[i], id);
  uint32_t made = f->s->host.nest.mk(f->s, x.op, x.payload, kid, x.n);
  if (made == TARN_NONE) sat_engine_failed(f->s);
  return made;
}
static void add_forms(forming *f, tarn_map *id) {
  tarn_saturation *s = f->s;
  for (uint32_t i = 0; i < f->form.n; i++) {
    tarn_term t = f->form.p[i], form = kern_form(&f->terms, f->s->form, t);
    uint32_t made = add_form_of(f, form, id);
    if (form != t) join(f, add_form_of(f, t, id), made);
    if (as_written(tarn_term_get(f->L, form)->op)) use_class(s, made);
    use_written(f, form, id);
  }
}
/* The kernel forms of the program as it was given. Nearly all are there by now: what is left is
 * joined term by term. */
static void add_given(forming *f) {
  tarn_saturation *s = f->s;
  for (uint32_t i = 0; i < s->nroot; i++) {
    sat_add_term(s, f->out[i], s->added);
    use_written(f, f->out[i], s->added);
  }
  sat_restore(s);
  for (uint32_t i = 0; i < f->given.n; i++) {
    tarn_term t = f->given.p[i];
    const uint64_t *form = tarn_map_get(s->form, tarn_normalise(f->L, t));
    const uint64_t *id = form ? tarn_map_get(s->added, (tarn_term)(*form - 1)) : NULL;
    uint32_t was = (uint32_t)*tarn_map_get(s->added, t) - 1;
    if (id && tarn_eg_find(s->g, was) != tarn_eg_find(s->g, (uint32_t)*id - 1))
      join(f, was, (uint32_t)*id - 1);
  }
  sat_restore(s);
}

/* What the given program reads more than once; of classes that it has not, what any live node
 * does. */
static void count_uses(forming *f) {
  tarn_saturation *s = f->s;
  tarn_map *uses = tarn_map_new(f->cx);
  TARN_VEC(tarn_term) todo = {0};
  bool fresh;
  for (uint32_t i = 0; i < s->nroot; i++) tarn_push(f->cx, &todo, f->out[i]);
  uint8_t *known = TARN_ARRAY(f->cx, uint8_t, tarn_eg_id_count(s->g) + 1);
  while (todo.n) {
    tarn_term t = todo.p[--todo.n];
    uint32_t c = tarn_eg_find(s->g, (uint32_t)*tarn_map_get(s->added, t) - 1);
    uint64_t *n = tarn_map_at(uses, t, &fresh);
    known[c] = true;
    if (++*n == 2) facts_mark(s, c, R_SHARED);
    if (!fresh) continue;
    const tarn_node *x = tarn_term_get(f->L, t);
    for (uint32_t i = 0; i < x->n; i++) tarn_push(f->cx, &todo, x->kid[i]);
  }
  sat_count_other_uses(s, known);
}

static void mark_several(tarn_saturation *s) {
  TARN_EG_CLASSES(s->g, c) {
    uint32_t ways = 0;
    TARN_EG_NODES(s->g, c, n)
      ways += sat_state_of(s, n) == SAT_LIVE && tarn_eg_node_at(s->g, n).op != TARN_OP_CONST;
    if (ways > 1) facts_mark(s, c, R_SEVERAL);
  }
}

void sat_forms(tarn_saturation *s) {
  tarn_ctx *cx = s->cx;
  forming f = {.s = s, .L = s->L, .cx = cx, .terms = kern_term_host(s->L)};
  f.used = tarn_map_new(cx), f.seen = tarn_map_new(cx);
  f.leaf = tarn_map_new(cx), f.of_leaf = tarn_map_new(cx), f.reached = tarn_map_new(cx);
  f.out = TARN_ARRAY(cx, tarn_term, s->nroot + 1);
  f.given_in = tarn_map_new(cx);
  for (tarn_term t = 0, all = tarn_term_count(f.L); t < all; t++)
    if (tarn_map_get(s->added, t)) tarn_push(cx, &f.given, t);
  form_given(&f);
  reach_all(&f);
  offer_all(&f);
  for (uint32_t i = 0; i < s->nroot; i++) need(&f, tarn_eg_find(s->g, s->exact[i]));
  for (uint32_t i = 0; i < f.needed.n; i++) form_class(&f, f.needed.p[i]);
  tarn_map *id = leaf_ids(&f); /* before anything is added */
  set_aside(s);
  add_forms(&f, id);
  sat_restore(s);
  add_given(&f);
  count_uses(&f);
  mark_several(s);
}

/* ---------------------------------------------------------------- views back */

/* The views there are; more are added meanwhile. */
static uint32_t live_views(const tarn_saturation *s, uint32_t *node) {
  uint32_t k = 0;
  TARN_EG_CLASSES(s->g, c)
    TARN_EG_NODES(s->g, c, n)
      if (tarn_eg_node_at(s->g, n).op == TARN_OP_VIEW && sat_state_of(s, n) == SAT_LIVE)
        node[k++] = n;
  return k;
}
void sat_back_views(tarn_saturation *s) {
  uint32_t *node = TARN_ARRAY(s->cx, uint32_t, tarn_eg_id_count(s->g) + 1);
  tarn_eg_set_limits(s->g, 0, s->o.max_bytes);
  for (uint32_t i = 0, n = live_views(s, node); i < n; i++) {
    tarn_eg_node v = tarn_eg_term_at(s->g, node[i]);
    uint32_t of = v.kids[0], map = tarn_payload_get(s->L, v.payload)->id;
    uint32_t ns = tarn_type_get(s->L, tarn_sat_type(s, of))->ns;
    uint32_t back = tarn_map_invert(s->L, map, ns);
    if (back == TARN_NONE) continue;
    uint32_t payload = tarn_payload_of(s->L, TARN_P_MAP, back);
    uint32_t id = s->host.nest.mk(s, TARN_OP_VIEW, payload, &node[i], 1);
    if (id == TARN_NONE || tarn_eg_union(s->g, id, of, R_RULE_NORM, 0) < 0) sat_engine_failed(s);
  }
  sat_restore(s);
}
