/* Builds the kernel program in which the kernels of one block of a chain stand once for each block
 * that was left out.
 *
 * Instance i of the repeated block is that many blocks behind it; what comes behind all of them is
 * as many blocks further on as there are instances. What a kernel reads of its own block is of its
 * own instance, what it reads of the block before of the one before. */
#include "compile/layers_unfold.h"
#include <stdlib.h>
#include <string.h>

typedef struct repeating {
  unfolding *u;
  lay_program *to;
  uint32_t more;  /* instances beside the block itself */
  tarn_map *made; /* buffer and instance -> 1 + its number in `to` */
  tarn_intern *constant;
  TARN_VEC(uint32_t) constant_at; /* by its number: the buffer */
  TARN_VEC(bool) written;         /* by buffer of `to` */
  bool failed;
} repeating;

/* How many blocks further on a kernel or buffer of this block and instance is. */
static uint32_t shift_of(const repeating *r, int block, uint32_t instance) {
  int g = (int)r->u->repeat;
  return block < g ? 0 : block == g ? instance : r->more;
}

/* ---------------------------------------------------------------- places in the model */
static uint64_t place_key(uint32_t chain, uint32_t block, uint32_t ref, uint32_t number) {
  uint64_t h = tarn_hash_mix(tarn_hash_mix(chain, block), ref);
  return tarn_hash_mix(h, number);
}
/* The key of a term that an origin or an output has; those of one term are numbered. 0: it is of no
 * block. */
static uint64_t number_place(const comp_layers *l, tarn_map *seen, tarn_term t) {
  uint32_t node = lay_number(l, t);
  if (node == TARN_NONE || l->node.p[node].chain == TARN_NONE) return 0;
  const lay_node *x = &l->node.p[node];
  uint64_t number = (*tarn_map_at(seen, t, NULL))++;
  return place_key(x->chain, x->block, x->ref, (uint32_t)number);
}
static tarn_map *places(const comp_layers *l, uint32_t n,
                        tarn_term (*at)(const tarn_program *, uint32_t)) {
  tarn_map *m = tarn_map_new(l->cx), *seen = tarn_map_new(l->cx);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t key = number_place(l, seen, at(l->whole, i));
    if (key) *tarn_map_at(m, key, NULL) = i + 1;
  }
  return m;
}
static tarn_term origin_at(const tarn_program *p, uint32_t i) { return p->origin[i].term; }
static tarn_term output_at(const tarn_program *p, uint32_t i) { return p->out[i].term; }
static tarn_map *origins(const comp_layers *l) { return places(l, l->whole->norigin, origin_at); }
/* Which of several with its term number i is. */
static uint32_t which(const comp_layers *l, uint32_t i,
                      tarn_term (*at)(const tarn_program *, uint32_t)) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < i; k++) n += at(l->whole, k) == at(l->whole, i);
  return n;
}
/* Number i of the model so many blocks later; i itself: it is of no block. */
static uint32_t place_later(const repeating *r, const tarn_map *m, uint32_t i, uint32_t by,
                            tarn_term (*at)(const tarn_program *, uint32_t)) {
  const comp_layers *l = r->u->l;
  uint32_t node = lay_number(l, at(l->whole, i));
  if (node == TARN_NONE || l->node.p[node].chain != r->u->number) return i;
  const lay_node *x = &l->node.p[node];
  uint32_t block = lay_kept(r->u->c, x->block) + by;
  const uint64_t *to = tarn_map_get(m, place_key(x->chain, block, x->ref, which(l, i, at)));
  return to ? (uint32_t)*to - 1 : i;
}

/* ---------------------------------------------------------------- buffers */
static uint32_t add_buffer(repeating *r, const tarn_buffer *b, uint32_t first) {
  tarn_ctx *cx = r->u->l->cx;
  tarn_push(cx, &r->to->buf, *b);
  tarn_push(cx, &r->to->first, first);
  tarn_push(cx, &r->written, false);
  return r->to->buf.n - 1;
}
static uint32_t constant_later(repeating *r, uint32_t buffer, uint32_t by) {
  tarn_buffer b = r->u->p->buf.p[buffer];
  b.term = lay_later(r->u, b.term, by, false);
  tarn_buf key = {.cx = r->u->l->cx};
  tarn_buf_add(&key, (const char *)&b.term, sizeof b.term);
  tarn_buf_add(&key, (const char *)&b.place, sizeof b.place);
  tarn_buf_add(&key, (const char *)b.layout.dim, b.layout.n * sizeof *b.layout.dim);
  tarn_buf_add(&key, (const char *)b.layout.stride, b.layout.n * sizeof *b.layout.stride);
  const int64_t rest[] = {b.layout.block, b.layout.block ? b.layout.baxis : 0, b.layout.offset};
  tarn_buf_add(&key, (const char *)rest, sizeof rest);
  uint32_t id = tarn_intern_add(r->constant, key.p, key.n);
  if (id == r->constant_at.n)
    tarn_push(r->u->l->cx, &r->constant_at, add_buffer(r, &b, r->u->p->first.p[buffer]));
  return r->constant_at.p[id];
}
static uint32_t instance_of(repeating *r, uint32_t buffer, uint32_t instance);
static uint32_t make_buffer(repeating *r, uint32_t buffer, uint32_t instance) {
  tarn_buffer b = r->u->p->buf.p[buffer];
  if (b.parent != TARN_NONE) b.parent = instance_of(r, b.parent, instance);
  return add_buffer(r, &b, r->u->p->first.p[buffer]);
}
static uint32_t instance_of(repeating *r, uint32_t buffer, uint32_t instance) {
  bool fresh;
  if (r->u->of_buffer[buffer] != (int)r->u->repeat) instance = 0;
  uint64_t key = (uint64_t)instance << 32 | buffer;
  const uint64_t *at = tarn_map_at(r->made, key, &fresh);
  if (!fresh) return (uint32_t)*at - 1;
  uint32_t made = make_buffer(r, buffer, instance);
  *tarn_map_at(r->made, key, NULL) = made + 1;
  return made;
}
static uint32_t input_later(repeating *r, uint32_t buffer, uint32_t by) {
  const comp_layers *l = r->u->l;
  tarn_buffer b = r->u->p->buf.p[buffer];
  uint32_t node = lay_input_node(r->u, &b);
  if (node != TARN_NONE) {
    const lay_node *x = &l->node.p[node];
    uint32_t there = lay_at(r->u->c, lay_kept(r->u->c, x->block) + by, x->ref);
    tarn_term t = l->node.p[there].term;
    b.name = tarn_payload_get(l->L, tarn_term_get(l->L, t)->payload)->name;
  }
  for (uint32_t i = 0; i < r->to->buf.n; i++)
    if (r->to->buf.p[i].kind == TARN_BUF_INPUT && !strcmp(r->to->buf.p[i].name, b.name)) return i;
  b.parent = TARN_NONE;
  return add_buffer(r, &b, r->u->p->first.p[buffer]);
}
/* What lies in an output does so in each block: the outputs are there by now. */
static void place_input(repeating *r, const tarn_map *outputs, uint32_t buffer, uint32_t by) {
  const unfolding *u = r->u;
  uint32_t parent = u->p->buf.p[buffer].parent, made = input_later(r, buffer, by), i = 0, k = 0;
  if (parent == TARN_NONE) return;
  while (i < u->p->out.n && u->p->out.p[i] != parent) i++;
  if (i == u->p->out.n) {
    r->failed = true;
    return;
  }
  uint32_t of = place_later(r, outputs, u->p->out_of.p[i], by, output_at);
  while (k < r->to->out.n && r->to->out_of.p[k] != of) k++;
  if (k == r->to->out.n) r->failed = true;
  else r->to->buf.p[made].parent = r->to->out.p[k];
}
static void place_inputs(repeating *r, const tarn_map *outputs) {
  const unfolding *u = r->u;
  for (uint32_t b = 0; b < u->p->buf.n && !r->failed; b++) {
    if (u->p->buf.p[b].kind != TARN_BUF_INPUT) continue;
    int block = u->of_buffer[b], g = (int)u->repeat;
    uint32_t last = block == g ? r->more : shift_of(r, block, 0);
    for (uint32_t by = block == g ? 0 : last; by <= last; by++) place_input(r, outputs, b, by);
  }
}
static bool is_written(const repeating *r, uint32_t buffer) {
  for (uint32_t b = buffer; b != TARN_NONE; b = r->to->buf.p[b].parent)
    if (r->written.p[b]) return true;
  return false;
}
static uint32_t operand(repeating *r, int block, uint32_t instance, uint32_t buffer) {
  const unfolding *u = r->u;
  uint32_t by = shift_of(r, block, instance), made;
  tarn_buf_kind kind = u->p->buf.p[buffer].kind;
  if (kind == TARN_BUF_CONST) return constant_later(r, buffer, by);
  if (kind == TARN_BUF_INPUT) return input_later(r, buffer, by);
  bool carried = block == (int)u->repeat && instance && lay_carried(u, buffer);
  if (carried) made = instance_of(r, u->next[buffer], instance - 1);
  else made = instance_of(r, buffer, by);
  if (!is_written(r, made)) r->failed = true;
  return made;
}

/* ---------------------------------------------------------------- kernels */
static tarn_nodes nodes_later(const repeating *r, tarn_nodes nodes, uint32_t by) {
  uint32_t *at = TARN_ARRAY(r->u->l->cx, uint32_t, nodes.n + 1);
  for (uint32_t i = 0; i < nodes.n; i++)
    at[i] = place_later(r, r->u->origin, nodes.at[i], by, origin_at);
  if (nodes.n) qsort(at, nodes.n, sizeof *at, tarn_by_u32);
  return (tarn_nodes){nodes.n, at};
}
static void write_result(repeating *r, uint32_t made) {
  for (uint32_t b = made; b != TARN_NONE; b = r->to->buf.p[b].parent) r->written.p[b] = true;
}
static void add_kernel(repeating *r, uint32_t number, uint32_t instance) {
  tarn_ctx *cx = r->u->l->cx;
  tarn_kernel k = r->u->p->ker.p[number];
  int block = r->u->of_kernel[number];
  uint32_t *in = TARN_ARRAY(cx, uint32_t, k.nin + 1), *out = TARN_ARRAY(cx, uint32_t, k.nout + 1);
  for (uint32_t j = 0; j < k.nin; j++) in[j] = operand(r, block, instance, k.in[j]);
  for (uint32_t j = 0; j < k.nout; j++) {
    out[j] = instance_of(r, k.out[j], instance);
    write_result(r, out[j]);
  }
  k.in = in, k.out = out;
  k.nodes = nodes_later(r, k.nodes, shift_of(r, block, instance));
  tarn_push(cx, &r->to->ker, k);
  if (!instance) return;
  r->to->price += k.price;
  *(k.copy ? &r->to->copies : &r->to->kernels) += 1;
}
/* Neighbouring kernels of the repeated block are followed by their other instances. */
static void add_kernels(repeating *r) {
  const unfolding *u = r->u;
  int g = (int)u->repeat;
  for (uint32_t i = 0, to; i < u->p->ker.n; i = to) {
    for (to = i + 1; to < u->p->ker.n && (u->of_kernel[to] == g) == (u->of_kernel[i] == g);) to++;
    uint32_t instances = u->of_kernel[i] == g ? 1 + r->more : 1;
    for (uint32_t n = 0; n < instances; n++)
      for (uint32_t k = i; k < to; k++) add_kernel(r, k, n);
  }
}

/* ---------------------------------------------------------------- outputs */
static void add_output(repeating *r, const tarn_map *outputs, uint32_t i, uint32_t instance) {
  const unfolding *u = r->u;
  tarn_ctx *cx = u->l->cx;
  uint32_t buffer = u->p->out.p[i], by = shift_of(r, u->of_buffer[buffer], instance);
  tarn_buf_kind kind = u->p->buf.p[buffer].kind;
  uint32_t made = kind == TARN_BUF_OUTPUT ? instance_of(r, buffer, instance) : TARN_NONE;
  uint32_t of = place_later(r, outputs, u->p->out_of.p[i], by, output_at);
  if (made == TARN_NONE || !is_written(r, made)) r->failed = true;
  if (r->failed) return;
  r->to->buf.p[made].name = u->l->whole->out[of].name;
  tarn_push(cx, &r->to->out, made);
  tarn_push(cx, &r->to->out_of, of);
}
static void add_outputs(repeating *r, const tarn_map *outputs) {
  const unfolding *u = r->u;
  for (uint32_t i = 0; i < u->p->out.n; i++) {
    bool of = u->of_buffer[u->p->out.p[i]] == (int)u->repeat;
    for (uint32_t n = 0; n < (of ? 1 + r->more : 1); n++) add_output(r, outputs, i, n);
  }
}
bool lay_repeat(unfolding *u, lay_program *to) {
  repeating r = {.u = u, .to = to, .more = u->c->n - LAY_KEPT};
  r.made = tarn_map_new(u->l->cx);
  r.constant = tarn_intern_new(u->l->cx);
  u->origin = origins(u->l);
  *to = (lay_program){.kernels = u->p->kernels, .copies = u->p->copies, .price = u->p->price};
  add_kernels(&r);
  const tarn_map *outputs = places(u->l, u->l->whole->nout, output_at);
  add_outputs(&r, outputs);
  place_inputs(&r, outputs);
  return !r.failed;
}
