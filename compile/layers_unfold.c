/* From the kernel program of the folded model to that of the whole one.
 *
 * A kernel belongs to the last block of which it, or what it reads, has a constant or an input. The
 * kernels of one block in the middle have to be those of the next one, in the same order, with its
 * constants, inputs and buffers in place of their own. They are then repeated for the blocks that
 * were left out. What they read of the block before has to be the value of a term of the model, and
 * what the next one reads of them that of the term one block later, in the same order in memory and
 * within a range that is no wider: so each repetition computes, from the terms of one block, the
 * same terms of the next.  */
#include "compile/layers_unfold.h"
#include <string.h>

/* ---------------------------------------------------------------- leaves of a term */
/* Of a term of constants: a bit for each compiled block that it has leaves of. */
static uint32_t blocks_of(unfolding *u, tarn_term t) {
  bool fresh;
  uint64_t *at = tarn_map_at(u->blocks, t, &fresh);
  if (!fresh) return (uint32_t)*at;
  const tarn_node *x = tarn_term_get(u->l->L, t);
  const uint64_t *leaf = tarn_map_get(u->l->leaf_of, t);
  uint32_t set = 0, n = x->n;
  if (leaf && u->l->leaf.p[*leaf - 1].chain == u->number) set = 1u << u->l->leaf.p[*leaf - 1].block;
  for (uint32_t i = 0; i < n; i++) set |= blocks_of(u, tarn_term_get(u->l->L, t)->kid[i]);
  return (uint32_t)(*tarn_map_at(u->blocks, t, NULL) = set);
}
/* What a stand-in is `by` blocks later: the constant, or the stand-in of that block. */
static tarn_term leaf_later(const unfolding *u, const lay_leaf *x, uint32_t by, bool folded) {
  const lay_chain *c = u->c;
  if (!folded) return c->leaf[(size_t)(x->block + by) * c->ncol + c->first[x->stand]];
  uint32_t type = tarn_term_get(u->l->L, x->term)->type;
  return lay_stand_in(u->l, u->number, x->block + by, x->stand, type);
}
static tarn_term later(unfolding *u, tarn_term t, uint32_t by, bool folded, tarn_map *seen) {
  bool fresh;
  if (!blocks_of(u, t)) return t;
  uint64_t *at = tarn_map_at(seen, t, &fresh);
  if (!fresh) return (tarn_term)*at;
  const uint64_t *leaf = tarn_map_get(u->l->leaf_of, t);
  tarn_term made;
  if (leaf) made = leaf_later(u, &u->l->leaf.p[*leaf - 1], by, folded);
  else {
    tarn_node x = *tarn_term_get(u->l->L, t);
    tarn_term *kid = TARN_ARRAY(u->l->cx, tarn_term, x.n + 1);
    for (uint32_t i = 0; i < x.n; i++) kid[i] = later(u, x.kid[i], by, folded, seen);
    made = tarn_mk(u->l->L, x.op, x.payload, kid, x.n);
  }
  *tarn_map_at(seen, t, NULL) = made;
  return made;
}
tarn_term lay_later(unfolding *u, tarn_term t, uint32_t by, bool folded) {
  return later(u, t, by, folded, tarn_map_new(u->l->cx));
}

/* ---------------------------------------------------------------- which block */
/* The node that an input buffer is; TARN_NONE: of no block of this chain. */
uint32_t lay_input_node(const unfolding *u, const tarn_buffer *b) {
  const tarn_program *p = u->l->whole;
  for (uint32_t i = 0; i < p->nin; i++) {
    if (strcmp(p->in[i].name, b->name) != 0) continue;
    uint32_t node = lay_number(u->l, p->in[i].term);
    return node != TARN_NONE && u->l->node.p[node].chain == u->number ? node : TARN_NONE;
  }
  return TARN_NONE;
}
/* The last block that a buffer's own leaves are of. */
static int leaves_of_buffer(unfolding *u, uint32_t buffer) {
  const tarn_buffer *b = &u->p->buf.p[buffer];
  if (b->kind == TARN_BUF_CONST) return 30 - __builtin_clz(blocks_of(u, b->term) << 1 | 1);
  uint32_t node = b->kind == TARN_BUF_INPUT ? lay_input_node(u, b) : TARN_NONE;
  return node == TARN_NONE ? -1 : (int)lay_kept(u->c, u->l->node.p[node].block);
}
static int at_least(int a, int b) { return a > b ? a : b; }
/* Of what is read: what was written there, or around it. */
static int block_read(const unfolding *u, uint32_t buffer) {
  int block = u->of_buffer[buffer];
  for (uint32_t b = u->p->buf.p[buffer].parent; b != TARN_NONE; b = u->p->buf.p[b].parent)
    if (u->written[b]) block = at_least(block, u->of_buffer[b]);
  return block;
}
static void write_buffer(unfolding *u, uint32_t buffer, int block) {
  u->written[buffer] = true;
  for (uint32_t b = buffer; b != TARN_NONE; b = u->p->buf.p[b].parent)
    u->of_buffer[b] = at_least(u->of_buffer[b], block);
}
static void place_kernels(unfolding *u) {
  const lay_program *p = u->p;
  for (uint32_t i = 0; i < p->buf.n; i++) u->of_buffer[i] = leaves_of_buffer(u, i);
  for (uint32_t i = 0; i < p->ker.n; i++) {
    const tarn_kernel *k = &p->ker.p[i];
    int block = -1;
    for (uint32_t j = 0; j < k->nin; j++) block = at_least(block, block_read(u, k->in[j]));
    u->of_kernel[i] = block;
    for (uint32_t j = 0; j < k->nout; j++) write_buffer(u, k->out[j], block);
  }
}

/* ---------------------------------------------------------------- one block and the next */
static bool same_layouts(const tarn_layout *a, const tarn_layout *b, uint32_t n) {
  bool same = true;
  for (uint32_t i = 0; i < n; i++) same = same && tarn_layout_equal(&a[i], &b[i]);
  return same;
}
/* A schedule that packing made anew is the same where what was packed is. */
static bool same_schedule(const unfolding *u, const tarn_kernel *a, const tarn_kernel *b) {
  if (a->sched == b->sched) return true;
  if (!a->sched || !b->sched || a->chosen != b->chosen || a->sig != b->sig) return false;
  tarn_ctx *cx = u->l->cx;
  return !strcmp(tarn_schedule_text(cx, a->sched), tarn_schedule_text(cx, b->sched));
}
static bool same_operator(const unfolding *u, tarn_term a, tarn_term b) {
  if (a == TARN_NONE || b == TARN_NONE) return a == b;
  const tarn_node *x = tarn_term_get(u->l->L, a), *y = tarn_term_get(u->l->L, b);
  return x->op == y->op && x->payload == y->payload && x->type == y->type;
}
static bool same_kernel(const unfolding *u, const tarn_kernel *a, const tarn_kernel *b) {
  return a->kind == b->kind && a->machine == b->machine && a->nest == b->nest &&
         a->payload == b->payload && a->nin == b->nin && a->nout == b->nout && a->copy == b->copy &&
         same_layouts(a->in_layout, b->in_layout, a->nin) &&
         same_layouts(a->out_layout, b->out_layout, a->nout) && same_schedule(u, a, b) &&
         same_operator(u, a->term, b->term);
}
static bool same_memory(const tarn_buffer *a, const tarn_buffer *b) {
  return a->kind == b->kind && a->dtype == b->dtype && a->place == b->place &&
         tarn_layout_equal(&a->layout, &b->layout);
}
static bool match_constants(unfolding *u, uint32_t a, uint32_t b) {
  const tarn_buffer *x = &u->p->buf.p[a], *y = &u->p->buf.p[b];
  uint32_t blocks = blocks_of(u, x->term);
  if (blocks >> (LAY_KEPT - 1)) return false;
  return same_memory(x, y) && lay_later(u, x->term, 1, true) == y->term;
}
static bool match_inputs(unfolding *u, uint32_t a, uint32_t b) {
  uint32_t x = lay_input_node(u, &u->p->buf.p[a]), y = lay_input_node(u, &u->p->buf.p[b]);
  if (a == b) return x == TARN_NONE;
  if (x == TARN_NONE || y == TARN_NONE) return false;
  const lay_node *m = &u->l->node.p[x], *n = &u->l->node.p[y];
  return m->ref == n->ref && lay_kept(u->c, m->block) + 1 == lay_kept(u->c, n->block);
}
/* a, of this block or of the one before, is to the next block b. */
static bool match_values(unfolding *u, uint32_t a, uint32_t b) {
  int x = u->of_buffer[a], y = u->of_buffer[b], g = (int)u->repeat;
  if (a == b && u->next[a] == TARN_NONE) u->next[a] = a;
  if (a == b) return x < g && u->next[a] == a;
  if (u->next[a] != TARN_NONE) return u->next[a] == b;
  if (y != x + 1 || (x != g && x != g - 1)) return false;
  const tarn_buffer *m = &u->p->buf.p[a], *n = &u->p->buf.p[b];
  if (!same_memory(m, n) || (m->parent == TARN_NONE) != (n->parent == TARN_NONE)) return false;
  u->next[a] = b;
  return m->parent == TARN_NONE || match_values(u, m->parent, n->parent);
}
static bool match_operands(unfolding *u, const tarn_kernel *a, const tarn_kernel *b) {
  for (uint32_t j = 0; j < a->nin; j++) {
    tarn_buf_kind x = u->p->buf.p[a->in[j]].kind, y = u->p->buf.p[b->in[j]].kind;
    bool constant = x == TARN_BUF_CONST, input = x == TARN_BUF_INPUT;
    if (constant != (y == TARN_BUF_CONST) || input != (y == TARN_BUF_INPUT)) return false;
    if (constant ? !match_constants(u, a->in[j], b->in[j])
        : input  ? !match_inputs(u, a->in[j], b->in[j])
                 : !match_values(u, a->in[j], b->in[j]))
      return false;
  }
  for (uint32_t j = 0; j < a->nout; j++)
    if (!match_values(u, a->out[j], b->out[j])) return false;
  return true;
}
static uint32_t next_of(const unfolding *u, uint32_t from, int block) {
  while (from < u->p->ker.n && u->of_kernel[from] != block) from++;
  return from;
}
static bool match_kernels(unfolding *u) {
  const lay_program *p = u->p;
  int g = (int)u->repeat;
  uint32_t a = next_of(u, 0, g), b = next_of(u, 0, g + 1);
  if (a == p->ker.n) return false;
  for (; a < p->ker.n && b < p->ker.n; a = next_of(u, a + 1, g), b = next_of(u, b + 1, g + 1))
    if (!same_kernel(u, &p->ker.p[a], &p->ker.p[b]) ||
        !match_operands(u, &p->ker.p[a], &p->ker.p[b]))
      return false;
  return a == p->ker.n && b == p->ker.n;
}

/* ---------------------------------------------------------------- what goes from block to block */
/* What is known of a is known of b. Then, block by block, no range grows: what rules were told of
 * the first of them holds for all that follow. */
static bool no_wider(const tarn_saturation *s, tarn_term a, tarn_term b) {
  tarn_range x = tarn_sat_range(s, tarn_sat_class(s, a));
  tarn_range y = tarn_sat_range(s, tarn_sat_class(s, b));
  return x.lo <= y.lo && x.hi >= y.hi && x.finite <= y.finite && x.nan >= y.nan &&
         x.whole <= y.whole && x.rounded <= y.rounded;
}
/* Do two buffers hold a node and the same one a block later? */
static bool hold(const unfolding *u, uint32_t node, uint32_t buffer, uint32_t next) {
  const comp_layers *l = u->l;
  tarn_layout a, b;
  uint32_t block = l->node.p[node].block, last = u->c->n - 1;
  uint32_t then = block + 2 == LAY_KEPT ? last : block + 1;
  if (lay_kept(u->c, block) == TARN_NONE || block == last) return false;
  tarn_term x = l->node.p[node].folded;
  tarn_term y = l->node.p[lay_at(u->c, then, l->node.p[node].ref)].folded;
  return tarn_extract_holds(u->x, u->p->first.p[buffer], x, &a) &&
         tarn_extract_holds(u->x, u->p->first.p[next], y, &b) && tarn_layout_equal(&a, &b) &&
         no_wider(u->s, x, y);
}
bool lay_carried(const unfolding *u, uint32_t buffer) {
  uint32_t next = u->next[buffer];
  return next != TARN_NONE && next != buffer && u->of_buffer[buffer] == (int)u->repeat - 1;
}
static bool carries_terms(const unfolding *u) {
  uint32_t n = u->c->size * LAY_KEPT;
  for (uint32_t b = 0; b < u->p->buf.n; b++) {
    bool found = !lay_carried(u, b);
    for (uint32_t i = 0; i < n && !found; i++) found = hold(u, u->c->from + i, b, u->next[b]);
    if (!found) return false;
  }
  return true;
}
/* What is read of the repeated block behind it, the next block reads. */
static bool reads_neighbours(const unfolding *u) {
  int g = (int)u->repeat;
  for (uint32_t i = 0; i < u->p->ker.n; i++)
    for (uint32_t j = 0; j < u->p->ker.p[i].nin && u->of_kernel[i] > g + 1; j++) {
      uint32_t in = u->p->ker.p[i].in[j];
      bool computed =
          u->p->buf.p[in].kind == TARN_BUF_TEMP || u->p->buf.p[in].kind == TARN_BUF_OUTPUT;
      if (computed && u->of_buffer[in] == g) return false;
    }
  return true;
}
/* Parts of a buffer are of the block that it is of. */
static bool parts_together(const unfolding *u) {
  int g = (int)u->repeat;
  for (uint32_t b = 0; b < u->p->buf.n; b++) {
    uint32_t parent = u->p->buf.p[b].parent;
    if (parent == TARN_NONE || !u->written[b]) continue; /* or nothing is there by itself */
    if ((u->of_buffer[b] == g) != (u->of_buffer[parent] == g)) return false;
  }
  return true;
}
static const char *can_repeat(unfolding *u, uint32_t block) {
  u->repeat = block;
  memset(u->next, 0xff, u->p->buf.n * sizeof *u->next);
  if (!match_kernels(u)) return "the kernels of neighbouring layers differ";
  if (!carries_terms(u)) return "what goes from layer to layer is no value of the model";
  if (!reads_neighbours(u) || !parts_together(u)) return "layers are read from elsewhere";
  return NULL;
}
const char *lay_match(unfolding *u) {
  const char *why = NULL;
  u->blocks = tarn_map_new(u->l->cx);
  u->of_buffer = TARN_ARRAY(u->l->cx, int, u->p->buf.n + 1);
  u->written = TARN_ARRAY(u->l->cx, bool, u->p->buf.n + 1);
  u->of_kernel = TARN_ARRAY(u->l->cx, int, u->p->ker.n + 1);
  u->next = TARN_ARRAY(u->l->cx, uint32_t, u->p->buf.n + 1);
  place_kernels(u);
  for (uint32_t block = 1; block + 2 < LAY_KEPT; block++)
    if (!(why = can_repeat(u, block))) return NULL;
  return why;
}
