/* Finds chains of equal blocks: a stretch of the list of nodes that repeats itself.
 *
 * Nodes are compared by what they are and what their operands are; then, stretch by stretch,
 * exactly: an operand is the same place of the same block, of the one before, or one node for all
 * blocks; constants have one form and their leaves one type. Single numbers have to be equal: rules
 * look at them. What reads the middle of a block from outside must read every block alike. */
#include "compile/layers.h"
#include <stdlib.h>
#include <string.h>

#define DEEPEST 200 /* constant terms that are compared: no deeper */
#define PERIODS 64  /* lengths of a block that are tried, the most frequent first */

typedef struct walked { /* of a term */
  bool seen, variable;
  uint16_t depth;
  uint64_t own, form; /* hashes: of itself; of a constant with all it is made of */
} walked;
typedef struct run {
  uint32_t from, to, size; /* nodes from…to repeat themselves every `size` */
} run;
typedef struct finding {
  comp_layers *l;
  walked *term;   /* by term */
  uint64_t *sign; /* by node */
  TARN_VEC(run) run;
  uint32_t *period; /* by length: how often like nodes are so far apart */
} finding;

/* ---------------------------------------------------------------- nodes in order */
bool lay_is_leaf(const tarn_lang *L, const tarn_node *x) {
  const tarn_type *t = tarn_type_get(L, x->type);
  return x->op == TARN_OP_CONST && !t->tuple && tarn_type_count(t) > 1;
}
static uint64_t hash_own(const tarn_lang *L, const tarn_node *x) {
  bool other = x->op == TARN_OP_INPUT || lay_is_leaf(L, x);
  uint64_t h = tarn_hash_mix(tarn_hash_mix(x->op, x->type), x->n);
  return other ? h : tarn_hash_mix(h, x->payload + 1u);
}
static void walk_term(finding *f, tarn_term t) {
  const tarn_node *x = tarn_term_get(f->l->L, t);
  walked *w = &f->term[t];
  w->variable = x->op == TARN_OP_INPUT || tarn_is_outside(f->l->L, x->op, x->payload);
  w->own = w->form = hash_own(f->l->L, x);
  for (uint32_t i = 0; i < x->n; i++) {
    const walked *kid = &f->term[x->kid[i]];
    w->variable |= kid->variable;
    if (!kid->variable && kid->depth >= w->depth) w->depth = (uint16_t)(kid->depth + 1);
    w->form = tarn_hash_mix(w->form, kid->variable ? kid->own : kid->form);
  }
  if (w->depth >= DEEPEST) w->form = tarn_hash_mix(w->form, t), w->depth = DEEPEST; /* its own */
  if (!w->variable) return;
  tarn_push(f->l->cx, &f->l->node, ((lay_node){t, TARN_NONE, TARN_NONE, 0, 0}));
  *tarn_map_at(f->l->number, t, NULL) = f->l->node.n;
}
static void walk_from(finding *f, tarn_term root) {
  TARN_VEC(tarn_term) todo = {0};
  tarn_push(f->l->cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(f->l->L, t);
    uint32_t missing = x->n;
    for (uint32_t i = x->n; i-- > 0 && !f->term[t].seen;)
      if (!f->term[x->kid[i]].seen) missing = i;
    if (f->term[t].seen || missing == x->n) {
      todo.n--;
      if (!f->term[t].seen) walk_term(f, t);
      f->term[t].seen = true;
    } else tarn_push(f->l->cx, &todo, x->kid[missing]);
  }
}
static void walk_all(finding *f) {
  comp_layers *l = f->l;
  f->term = TARN_ARRAY(l->cx, walked, tarn_term_count(l->L) + 1);
  for (uint32_t i = 0; i < l->whole->nout; i++) walk_from(f, l->whole->out[i].term);
  f->sign = TARN_ARRAY(l->cx, uint64_t, l->node.n + 1);
  for (uint32_t i = 0; i < l->node.n; i++) f->sign[i] = f->term[l->node.p[i].term].form;
}

/* ---------------------------------------------------------------- what repeats itself */
/* How far like nodes are apart. */
static void count_periods(finding *f) {
  uint32_t n = f->l->node.n;
  tarn_map *last = tarn_map_new(f->l->cx);
  f->period = TARN_ARRAY(f->l->cx, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    bool fresh;
    uint64_t *at = tarn_map_at(last, f->sign[i], &fresh);
    if (!fresh) f->period[i - *at]++;
    *at = i;
  }
}
static void add_runs(finding *f, uint32_t size) {
  uint32_t n = f->l->node.n;
  for (uint32_t i = 0; i + size < n;) {
    uint32_t from = i;
    while (i + size < n && f->sign[i] == f->sign[i + size]) i++;
    if (i + size - from >= LAY_FEWEST * size)
      tarn_push(f->l->cx, &f->run, ((run){from, i + size, size}));
    i++;
  }
}
static uint32_t saved(const run *r) { return r->to - r->from - LAY_KEPT * r->size; }
static int by_saving(const void *a, const void *b) {
  const run *x = a, *y = b;
  if (saved(x) != saved(y)) return saved(x) > saved(y) ? -1 : 1;
  if (x->size != y->size) return x->size < y->size ? -1 : 1;
  return (x->from > y->from) - (x->from < y->from);
}
static void find_runs(finding *f) {
  count_periods(f);
  for (uint32_t tries = 0; tries < PERIODS; tries++) {
    uint32_t best = 0;
    for (uint32_t d = 1; d * LAY_FEWEST <= f->l->node.n; d++)
      if (f->period[d] > f->period[best]) best = d;
    if (!f->period[best] || !best) break;
    f->period[best] = 0;
    add_runs(f, best);
  }
  if (f->run.n) qsort(f->run.p, f->run.n, sizeof *f->run.p, by_saving);
}
/* The values that go from the nodes before `cut` to those behind it, of neighbouring blocks. */
static uint32_t crossing(const finding *f, const run *r, uint32_t cut) {
  tarn_map *seen = tarn_map_new(f->l->cx);
  for (uint32_t i = cut; i < cut + r->size; i++) {
    const tarn_node *x = tarn_term_get(f->l->L, f->l->node.p[i].term);
    for (uint32_t k = 0; k < x->n; k++) {
      uint32_t kid = lay_number(f->l, x->kid[k]);
      if (kid != TARN_NONE && kid < cut && kid + r->size >= cut) tarn_map_at(seen, kid, NULL);
    }
  }
  return tarn_map_count(seen);
}
/* Where to cut it: where fewest values cross, rather early. */
static uint32_t phase_of(const finding *f, const run *r) {
  uint32_t best = 0, least = UINT32_MAX;
  for (uint32_t i = 0; i < r->size; i++) {
    tarn_mark before = tarn_arena_mark(f->l->cx);
    uint32_t n = crossing(f, r, r->from + 2 * r->size + i);
    tarn_release(f->l->cx, before);
    if (n < least) least = n, best = i;
  }
  return best;
}

/* ---------------------------------------------------------------- blocks, exactly */
typedef TARN_VEC(tarn_term) leaves;
typedef struct comparing {
  finding *f;
  lay_chain *c;
  uint8_t *shared; /* by operand of the second block: one node for all */
  leaves *leaf;    /* by block */
} comparing;
/* The leaves of constant b, which has the form of a; false: it has not. */
static bool pair(const comparing *k, tarn_term a, tarn_term b, tarn_map *seen, leaves *out) {
  const tarn_lang *L = k->f->l->L;
  const tarn_node *x = tarn_term_get(L, a), *y = tarn_term_get(L, b);
  bool fresh, leaf = lay_is_leaf(L, x);
  uint64_t *at = tarn_map_at(seen, a, &fresh);
  if (!fresh) return *at == b;
  *at = b;
  if (x->op != y->op || x->type != y->type || x->n != y->n) return false;
  if (x->payload != y->payload && !leaf) return false;
  if (leaf) tarn_push(k->f->l->cx, out, b);
  for (uint32_t i = 0; i < x->n; i++)
    if (!pair(k, x->kid[i], y->kid[i], seen, out)) return false;
  return true;
}
/* Operand `a` of the second block and `b` of another. */
static bool same_place(const comparing *k, uint32_t block, tarn_term a, tarn_term b,
                       uint8_t *shared) {
  const lay_chain *c = k->c;
  uint32_t x = lay_number(k->f->l, a), y = lay_number(k->f->l, b);
  int64_t there = (int64_t)x - lay_at(c, 1, 0), here = (int64_t)y - lay_at(c, block, 0);
  if (block == 2) *shared = a == b;
  if (*shared) return a == b && there < 0;
  if (there < -(int64_t)c->size) return false;
  if (block || there >= 0) return here == there;
  return here < 0 && k->f->term[b].variable &&
         tarn_term_get(k->f->l->L, a)->type == tarn_term_get(k->f->l->L, b)->type;
}
static bool same_node(comparing *k, uint32_t block, uint32_t ref, uint32_t *operand) {
  finding *f = k->f;
  comp_layers *l = f->l;
  const tarn_node *x = tarn_term_get(l->L, l->node.p[lay_at(k->c, 1, ref)].term);
  const tarn_node *y = tarn_term_get(l->L, l->node.p[lay_at(k->c, block, ref)].term);
  if (x->op != y->op || x->type != y->type || x->n != y->n) return false;
  if (x->op != TARN_OP_INPUT && x->payload != y->payload) return false;
  for (uint32_t i = 0; i < x->n; i++, ++*operand) {
    tarn_term a = x->kid[i], b = y->kid[i];
    if (f->term[a].variable != f->term[b].variable) return false;
    if (f->term[a].variable && !same_place(k, block, a, b, &k->shared[*operand])) return false;
    if (!f->term[a].variable && !pair(k, a, b, tarn_map_new(l->cx), &k->leaf[block])) return false;
  }
  return true;
}
static bool same_block(comparing *k, uint32_t block) {
  uint32_t operand = 0;
  for (uint32_t ref = 0; ref < k->c->size; ref++)
    if (!same_node(k, block, ref, &operand)) return false;
  return true;
}
/* Where the leaves of each node begin. */
static uint32_t *columns(const comparing *k) {
  comp_layers *l = k->f->l;
  lay_chain *c = k->c;
  uint32_t *col = TARN_ARRAY(l->cx, uint32_t, c->size + 1);
  for (uint32_t ref = 0; ref < c->size; ref++) {
    leaves one = {0};
    const tarn_node *x = tarn_term_get(l->L, l->node.p[lay_at(c, 1, ref)].term);
    for (uint32_t i = 0; i < x->n; i++)
      if (!k->f->term[x->kid[i]].variable)
        (void)pair(k, x->kid[i], x->kid[i], tarn_map_new(l->cx), &one);
    col[ref + 1] = col[ref] + one.n;
  }
  return col;
}
static void set_leaves(comparing *k) {
  comp_layers *l = k->f->l;
  lay_chain *c = k->c;
  c->col = columns(k);
  c->ncol = c->col[c->size];
  tarn_term *leaf = TARN_ARRAY(l->cx, tarn_term, (size_t)c->n * c->ncol + 1);
  for (uint32_t b = 0; b < c->n; b++)
    if (c->ncol && k->leaf[b].n == c->ncol)
      memcpy(leaf + (size_t)b * c->ncol, k->leaf[b].p, c->ncol * sizeof *leaf);
  c->leaf = leaf;
}
/* The chain in a run; false: too few of its blocks are equal. */
static bool compare_blocks(finding *f, const run *r, lay_chain *c) {
  comp_layers *l = f->l;
  uint32_t phase = phase_of(f, r), operands = 0, n = 2;
  *c = (lay_chain){.from = r->from + phase, .size = r->size};
  c->n = (r->to - c->from) / c->size;
  for (uint32_t ref = 0; ref < c->size; ref++)
    operands += tarn_term_get(l->L, l->node.p[lay_at(c, 1, ref)].term)->n;
  comparing k = {.f = f, .c = c};
  k.shared = TARN_ARRAY(l->cx, uint8_t, operands + 1);
  k.leaf = TARN_ARRAY(l->cx, leaves, c->n);
  if (c->n < LAY_FEWEST) return false;
  while (n < c->n && same_block(&k, n)) n++;
  c->n = n;
  bool first = same_block(&k, 0);
  k.leaf[1] = (leaves){0};
  (void)same_block(&k, 1);
  set_leaves(&k);
  if (first) return n >= LAY_FEWEST;
  c->n--;
  c->from += c->size;
  c->leaf += c->ncol;
  return c->n >= LAY_FEWEST;
}

/* ---------------------------------------------------------------- readers outside */
typedef TARN_VEC(uint32_t) keys;
typedef struct outside {
  finding *f;
  lay_chain *c;
  tarn_intern *key;
  keys *of;              /* by block: what is read of it, and is output */
  uint32_t *block, *ref; /* by node outside: 1 + the block that it reads alone, and its key */
} outside;
static bool inside(const lay_chain *c, uint32_t node) {
  return node >= c->from && node < c->from + c->size * c->n;
}
static uint32_t block_of(const outside *o, uint32_t node) {
  if (inside(o->c, node)) return 1 + (node - o->c->from) / o->c->size;
  return o->block[node];
}
static uint32_t ref_of(const outside *o, uint32_t node) {
  return inside(o->c, node) ? (node - o->c->from) % o->c->size : o->ref[node];
}
static void word(tarn_buf *b, uint32_t w) { tarn_buf_add(b, (const char *)&w, sizeof w); }
static void add_key(outside *o, uint32_t block, uint32_t key) {
  keys *v = &o->of[block];
  for (uint32_t i = 0; i < v->n; i++)
    if (v->p[i] == key) return;
  tarn_push(o->f->l->cx, v, key);
}
/* What a node outside of all blocks reads: one block, none, or several, which then differ. */
static void see_reader(outside *o, uint32_t node) {
  comp_layers *l = o->f->l;
  const tarn_node *x = tarn_term_get(l->L, l->node.p[node].term);
  tarn_buf b = {.cx = l->cx};
  uint32_t only = 0;
  bool several = false;
  word(&b, x->op), word(&b, x->payload), word(&b, x->type);
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t kid = lay_number(l, x->kid[i]), block = kid == TARN_NONE ? 0 : block_of(o, kid);
    several |= block && only && block != only;
    if (block) only = block;
    word(&b, block ? 1 : 0);
    word(&b, block ? ref_of(o, kid) : x->kid[i]);
  }
  if (several) word(&b, node); /* like no other */
  if (!only) return;
  uint32_t key = o->c->size + tarn_intern_add(o->key, b.p, b.n);
  o->block[node] = only, o->ref[node] = key;
  for (uint32_t i = 0; i < x->n; i++) {
    uint32_t kid = lay_number(l, x->kid[i]), block = kid == TARN_NONE ? 0 : block_of(o, kid);
    if (block) add_key(o, block - 1, key);
  }
}
static void see_output(outside *o, tarn_term t) {
  uint32_t node = lay_number(o->f->l, t), block = node == TARN_NONE ? 0 : block_of(o, node);
  if (!block) return;
  uint32_t key[2] = {TARN_NONE, ref_of(o, node)};
  add_key(o, block - 1, o->c->size + tarn_intern_add(o->key, key, sizeof key));
}
static bool same_keys(const keys *a, const keys *b) {
  return a->n == b->n && (!a->n || !memcmp(a->p, b->p, a->n * sizeof *a->p));
}
static bool has_keys(const keys *a, const keys *all) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < all->n; i++)
    n += bsearch(&all->p[i], a->p, a->n, sizeof *a->p, tarn_by_u32) != NULL;
  return n == all->n;
}
/* The longest row of blocks that are read alike; the last one may be read by more. */
static void cut_unlike(const outside *o, uint32_t *first, uint32_t *n) {
  *n = 0;
  for (uint32_t i = 0; i < o->c->n; i++) {
    uint32_t to = i + 1;
    while (to < o->c->n && same_keys(&o->of[i], &o->of[to])) to++;
    if (to < o->c->n && has_keys(&o->of[to], &o->of[i])) to++;
    if (to - i > *n) *n = to - i, *first = i;
  }
}
static void see_outside(outside *o) {
  comp_layers *l = o->f->l;
  o->key = tarn_intern_new(l->cx);
  o->of = TARN_ARRAY(l->cx, keys, o->c->n);
  o->block = TARN_ARRAY(l->cx, uint32_t, l->node.n);
  o->ref = TARN_ARRAY(l->cx, uint32_t, l->node.n);
  for (uint32_t i = o->c->from + o->c->size * o->c->n; i < l->node.n; i++) see_reader(o, i);
  for (uint32_t i = 0; i < l->whole->nout; i++) see_output(o, l->whole->out[i].term);
  for (uint32_t b = 0; b < o->c->n; b++)
    if (o->of[b].n) qsort(o->of[b].p, o->of[b].n, sizeof *o->of[b].p, tarn_by_u32);
}
/* Gives the nodes of the blocks that are left, and what reads each of them, to the chain. */
static void take_nodes(outside *o, uint32_t first, uint32_t n) {
  comp_layers *l = o->f->l;
  const keys *all = &o->of[first];
  for (uint32_t i = 0; i < l->node.n; i++) {
    uint32_t block = block_of(o, i), ref = block ? ref_of(o, i) : 0;
    bool own = inside(o->c, i);
    if (block <= first || block > first + n) continue;
    if (!own && !bsearch(&ref, all->p, all->n, sizeof *all->p, tarn_by_u32)) continue;
    l->node.p[i].chain = l->chain.n;
    l->node.p[i].block = block - 1 - first;
    l->node.p[i].ref = ref;
  }
}

/* ---------------------------------------------------------------- chains */
/* A sum or the like: what is worth a kernel. */
static bool has_kernel(const comp_layers *l, const lay_chain *c) {
  for (uint32_t ref = 0; ref < c->size; ref++) {
    const tarn_node *x = tarn_term_get(l->L, l->node.p[lay_at(c, 0, ref)].term);
    tarn_opkernel by = tarn_op_info(x->op)->kernel;
    if (by == TARN_OPK_OWN || (by == TARN_OPK_NEST && x->op != TARN_OP_COMPUTE)) return true;
    if (x->op != TARN_OP_COMPUTE) continue;
    if (tarn_fn_get(l->L, tarn_payload_get(l->L, x->payload)->id)->red != TARN_NONE) return true;
  }
  return false;
}
/* Columns with the same constants in each block have one stand-in. */
static void name_stand_ins(const comp_layers *l, lay_chain *c) {
  tarn_intern *like = tarn_intern_new(l->cx);
  tarn_term *v = TARN_ARRAY(l->cx, tarn_term, c->n);
  c->stand = TARN_ARRAY(l->cx, uint32_t, c->ncol + 1);
  c->first = TARN_ARRAY(l->cx, uint32_t, c->ncol + 1);
  for (uint32_t i = 0; i < c->ncol; i++) {
    bool differs = false;
    for (uint32_t b = 0; b < c->n; b++) {
      v[b] = c->leaf[(size_t)b * c->ncol + i];
      differs |= v[b] != v[0];
    }
    c->stand[i] = differs ? tarn_intern_add(like, v, c->n * sizeof *v) : TARN_NONE;
    if (differs && c->stand[i] == c->nstand) c->first[c->nstand++] = i;
  }
}
static bool is_free(const comp_layers *l, const run *r) {
  for (uint32_t i = r->from; i < r->to; i++)
    if (l->node.p[i].chain != TARN_NONE) return false;
  return true;
}
static void try_run(finding *f, const run *r) {
  comp_layers *l = f->l;
  lay_chain c;
  uint32_t first = 0, n = 0;
  if (!is_free(l, r) || !compare_blocks(f, r, &c)) return;
  outside o = {.f = f, .c = &c};
  see_outside(&o);
  cut_unlike(&o, &first, &n);
  if (n < LAY_FEWEST || !has_kernel(l, &c)) return;
  take_nodes(&o, first, n);
  c.from += first * c.size;
  c.leaf += (size_t)first * c.ncol;
  c.n = n;
  name_stand_ins(l, &c);
  tarn_push(l->cx, &l->chain, c);
}
void lay_find(comp_layers *l) {
  finding f = {.l = l};
  l->number = tarn_map_new(l->cx);
  walk_all(&f);
  find_runs(&f);
  for (uint32_t i = 0; i < f.run.n; i++) try_run(&f, &f.run.p[i]);
}
