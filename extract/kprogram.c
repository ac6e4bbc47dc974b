/* Selects from the kernel graph and makes the program of the selection. */
#include "base/progress.h"
#include "extract/kgraph.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- the analytic price ---- */
static double analytic_seconds(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                               const tarn_schedule *s, uint32_t threads,
                               const tarn_cost *analytic) {
  (void)user, (void)L, (void)hw, (void)k, (void)s, (void)threads;
  return analytic->seconds;
}
const tarn_price *tarn_price_analytic(void) {
  static const tarn_price p = {.name = "analytic", .seconds = analytic_seconds};
  return &p;
}

/* ---- the program ---- */
typedef struct build {
  kgraph *k;
  const uint32_t *choice; /* candidate per AND/OR class */
  uint32_t *buffer;       /* buffer per AND/OR class, TARN_NONE */
  uint8_t *done;
  uint32_t nests; /* emitted */
  TARN_VEC(tarn_buffer) buf;
  TARN_VEC(tarn_kernel) ker;
  tarn_map *consts; /* (term, layout hash) -> 1 + buffer */
  tarn_kprog *p;
} build;

static uint32_t new_buffer(build *b, tarn_buf_kind kind, tarn_dtype t, const tarn_layout *l,
                           tarn_term term) {
  tarn_buffer x = {.kind = kind, .dtype = t, .layout = *l, .parent = TARN_NONE, .term = term};
  tarn_push(b->k->cx, &b->buf, x);
  return b->buf.n - 1;
}
/* A constant lies where its readers want it: in each of their places. */
static uint32_t const_buffer(build *b, tarn_term term, const tarn_layout *l, uint32_t place) {
  bool fresh;
  uint64_t key =
      tarn_hash_bytes(l->stride, sizeof l->stride, tarn_hash_mix(term, (uint64_t)l->block));
  uint64_t *at = tarn_map_at(b->consts, place ? tarn_hash_mix(key, place) : key, &fresh);
  if (fresh) *at = 1 + new_buffer(b, TARN_BUF_CONST, tarn_term_type(b->k->L, term)->dtype, l, term);
  b->buf.p[*at - 1].place = place;
  return (uint32_t)*at - 1;
}
static tarn_dtype type_of_class(const build *b, uint32_t kc) {
  return tarn_type_get(b->k->L, b->k->cls.p[kc].type)->dtype;
}
static uint32_t buffer_of(build *b, uint32_t ag);
/* The buffer in which the parts of a concatenation lie, though it may be chosen nowhere itself. */
static uint32_t storage_of(build *b, uint32_t whole) {
  if (b->buffer[whole] != TARN_NONE || b->choice[whole] != TARN_SEL_NONE)
    return buffer_of(b, whole);
  const kgroup *g = &b->k->group.p[kg_group_of(b->k, whole)];
  uint32_t number = whole - g->first;
  uint32_t x = new_buffer(b, TARN_BUF_TEMP, tarn_type_get(b->k->L, g->type)->dtype,
                          &g->layout[number % g->nlayout], TARN_NONE);
  b->buf.p[x].place = number / g->nlayout;
  return b->buffer[whole] = x;
}
/* The buffer of an AND/OR class, which any of its candidates may compute. */
static uint32_t buffer_of(build *b, uint32_t ag) {
  if (b->buffer[ag] != TARN_NONE) return b->buffer[ag];
  const kcand *c = &b->k->cand.p[b->choice[ag]];
  if (c->kind == KC_ALIAS) return b->buffer[ag] = buffer_of(b, c->child[0]);
  const tarn_layout *l = c->out;
  if (c->kind == KC_INPUT) l = &b->k->group.p[b->k->cls.p[c->kcls].group].layout[0];
  b->buffer[ag] = new_buffer(b, c->kind == KC_INPUT ? TARN_BUF_INPUT : TARN_BUF_TEMP,
                             type_of_class(b, c->kcls), l, TARN_NONE);
  b->buf.p[b->buffer[ag]].place = c->place;
  if (c->kind == KC_INPUT)
    b->buf.p[b->buffer[ag]].name = tarn_payload_get(b->k->L, c->payload)->name;
  const uint64_t *whole = tarn_map_get(b->k->whole_of, ag);
  uint32_t parent = whole ? storage_of(b, (uint32_t)*whole) : TARN_NONE;
  b->buf.p[b->buffer[ag]].parent = parent;
  return b->buffer[ag];
}

static const char *kind_word(const build *b, const kcand *c) {
  if (c->kind == KC_MOVE) return tarn_format(b->k->cx, "to_%s", b->k->machines.hw[c->place]->name);
  if (c->copy) return "copy";
  if (c->kind == KC_OTHER)
    return c->op == TARN_OP_OPAQUE || c->op == TARN_OP_CALL
               ? tarn_payload_get(b->k->L, c->payload)->name
               : tarn_op_info(c->op)->text;
  const tarn_nest *n = tarn_nest_get(b->k->L, c->nest);
  if (n->nstage > 1) return "nest";
  const tarn_func *f = tarn_fn_get(b->k->L, n->stage[0].fn);
  static const char *const red[] = {"map", "sum", "prod", "max", "min", "fold"};
  if (f->red == TARN_NONE) return red[0];
  return tarn_fn_is_dot(b->k->L, n->stage[0].fn) ? "dot"
                                                 : red[tarn_reducer_get(b->k->L, f->red)->kind];
}
static const char *kernel_name(const build *b, uint32_t ag, const kcand *c) {
  tarn_ctx *cx = b->k->cx;
  const char *label = c->kind == KC_MOVE ? NULL : b->k->label[ag];
  if (label) return tarn_format(cx, "k%u_%s%s", b->ker.n, c->copy ? "copy_" : "", label);
  char *s = tarn_format(cx, "k%u_%s", b->ker.n, kind_word(b, c));
  for (char *p = s; *p; p++)
    if (!isalnum((unsigned char)*p)) *p = '_';
  return s;
}
/* A constant in another order of the same elements: its own are numbered in row-major order. */
static tarn_term reordered(tarn_lang *L, tarn_term constant, uint32_t view) {
  const tarn_type *t = tarn_term_type(L, constant);
  tarn_imap m = {.ns = 1, .n = 1, .dim = {1}, .nin = t->n, .fill = TARN_NONE};
  int64_t step = 1;
  for (uint32_t a = 0; a < t->n; a++) m.in[a] = t->dim[a], m.dim[0] *= t->dim[a];
  for (uint32_t a = t->n; a-- > 0; step *= t->dim[a]) {
    uint32_t at = tarn_ix_div(L, tarn_ix_var(L, 0, m.dim), step, m.dim);
    m.e[a] = tarn_ix_mod(L, at, t->dim[a], m.dim);
  }
  return tarn_view(L, tarn_map_compose(L, view, tarn_map_intern(L, &m)), constant);
}

/* Buffers of a kernel's results: its own, or for a kernel with several those of the classes that
 * take them (a result that nothing takes gets one that nobody reads). */
static uint32_t *result_buffers(build *b, uint32_t ag, const kcand *c) {
  kgraph *k = b->k;
  uint32_t *out = TARN_ARRAY(k->cx, uint32_t, c->nout);
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[c->kcls].type);
  if (!t->tuple) {
    out[0] = buffer_of(b, ag);
    return out;
  }
  for (uint32_t i = 0; i < c->nout; i++) {
    out[i] = TARN_NONE;
    for (uint32_t x = 0; x < k->nag && out[i] == TARN_NONE; x++) {
      if (b->choice[x] == TARN_SEL_NONE) continue;
      const kcand *n = &k->cand.p[b->choice[x]];
      if (n->kind == KC_NTH && n->child[0] == ag && n->nth == i) out[i] = buffer_of(b, x);
    }
    if (out[i] != TARN_NONE) continue;
    out[i] =
        new_buffer(b, TARN_BUF_TEMP, tarn_type_get(k->L, t->elem[i])->dtype, &c->out[i], TARN_NONE);
    b->buf.p[out[i]].place = c->place;
  }
  return out;
}
/* packed: how constants are; or NULL. */
static const uint32_t *operand_buffers(build *b, const kcand *c, const tarn_packed *packed) {
  uint32_t *in = TARN_ARRAY(b->k->cx, uint32_t, c->nchild + 1);
  for (uint32_t j = 0; j < c->nchild; j++) {
    const tarn_packed *p = packed && packed[j].layout.n ? &packed[j] : NULL;
    tarn_term t = c->cterm[j];
    if (p && p->view != TARN_NONE) t = reordered(b->k->L, t, p->view);
    const tarn_layout *l = p ? &p->layout : c->stored ? &c->stored[j] : &c->in[j];
    in[j] = c->child[j] == TARN_NONE ? const_buffer(b, t, l, c->place) : buffer_of(b, c->child[j]);
  }
  return in;
}
/* As a kernel of the accelerator. */
static ktried tried(const kgraph *k, const kcand *c) {
  const uint64_t *at = tarn_map_get(k->tried, kg_work_of(k, c));
  return at ? *(const ktried *)(uintptr_t)*at : (ktried){.seconds = INFINITY};
}
/* The solver need not know kernels of a family. */
static const tarn_ksig *kept(const build *b, const tarn_ksig *sig) {
  if (!b->k->o->family) return tarn_solver_kept(b->k->now.solver, sig);
  for (uint32_t i = 0; i < b->ker.n; i++)
    if (b->ker.p[i].sig && !memcmp(b->ker.p[i].sig, sig, sizeof *sig)) return b->ker.p[i].sig;
  return tarn_copy(b->k->cx, sig, sizeof *sig);
}
static void emit_nest(build *b, uint32_t ag, const kcand *c) {
  kgraph *k = b->k;
  kg_machine(k, c->machine);
  tarn_ksig sig;
  tarn_cost cost;
  tarn_packed packed[TARN_MAX_OPERANDS];
  kg_signature(k, c, &sig);
  const tarn_schedule *s = k->o->family ? kg_family_schedule(k, b->nests, &sig, &cost)
                                        : tarn_solve(k->now.solver, &sig, &cost);
  const tarn_ksig *priced = kept(b, &sig);
  const tarn_schedule *chosen = s;
  b->nests++;
  double predicted = kg_price(k, priced, chosen, &cost);
  k->r->price += predicted - c->price; /* 0 but for a schedule that was given */
  bool packs = !tarn_solver_takes_as_is(k->now.solver);
  if (packs) tarn_ksig_block(k->L, &sig, &s, packed);
  tarn_kernel x = {.name = kernel_name(b, ag, c),
                   .nodes = b->k->nodes[ag],
                   .kind = TARN_K_NEST,
                   .machine = c->machine,
                   .nest = sig.nest,
                   .nin = sig.nin,
                   .nout = c->nout,
                   .sched = s,
                   .sig = priced,
                   .chosen = chosen,
                   .there = tried(k, c).seconds,
                   .unfit = tried(k, c).sig,
                   .copy = c->copy,
                   .price = predicted,
                   .flops = tarn_ksig_flops(k->L, k->now.hw, priced),
                   .term = TARN_NONE};
  x.in = operand_buffers(b, c, packs ? packed : NULL), x.out = result_buffers(b, ag, c);
  x.in_layout = tarn_copy(k->cx, sig.in, sig.nin * sizeof *sig.in);
  x.out_layout = tarn_copy(k->cx, sig.out, sig.nout * sizeof *sig.out);
  /* as it was priced: blocks of a constant, of which the last is ragged, hide how much of it is
   * read */
  tarn_ksig_traffic(k->L, k->now.hw, priced, &x.reads, &x.writes);
  x.slots = tarn_ksig_slots(k->L, k->now.hw, priced),
  x.products = tarn_ksig_products(k->L, k->now.hw, priced);
  tarn_push(k->cx, &b->ker, x);
  if (!c->copy && packs && !k->o->family) kg_ways(k, ag, c, x.name);
}
static double layout_bytes(const build *b, uint32_t buf, const tarn_layout *l) {
  return (double)tarn_layout_elems(l) * (double)tarn_dtype_size(b->buf.p[buf].dtype);
}
static void emit_move(build *b, uint32_t ag, const kcand *c) {
  tarn_kernel x = {.name = kernel_name(b, ag, c),
                   .kind = TARN_K_MOVE,
                   .machine = c->machine,
                   .nin = 1,
                   .nout = 1,
                   .copy = true,
                   .price = c->price,
                   .term = TARN_NONE};
  x.in = operand_buffers(b, c, NULL), x.out = result_buffers(b, ag, c);
  x.in_layout = c->in, x.out_layout = tarn_copy(b->k->cx, c->out, sizeof *c->out);
  x.reads = layout_bytes(b, x.in[0], c->in), x.writes = x.reads;
  tarn_push(b->k->cx, &b->ker, x);
}
/* The kernel's term is its operator over inputs that stand for its buffers. */
static void emit_other(build *b, uint32_t ag, const kcand *c) {
  kgraph *k = b->k;
  tarn_kernel x = {.name = kernel_name(b, ag, c),
                   .nodes = b->k->nodes[ag],
                   .kind = TARN_K_OPAQUE,
                   .machine = c->machine,
                   .payload = c->payload,
                   .nin = c->nchild,
                   .nout = c->nout,
                   .price = c->price};
  x.in = operand_buffers(b, c, NULL), x.out = result_buffers(b, ag, c);
  tarn_term *kid = TARN_ARRAY(k->cx, tarn_term, c->nchild + 1);
  tarn_eg_node e = tarn_eg_node_at(k->g, c->node);
  for (uint32_t j = 0; j < c->nchild; j++)
    kid[j] = tarn_input(k->L, tarn_format(k->cx, "%s.%u", x.name, j),
                        k->in->type_of(k->in->user, e.kids[j]));
  x.term = tarn_mk(k->L, c->op, c->payload, kid, c->nchild);
  x.in_layout = c->in, x.out_layout = tarn_copy(k->cx, c->out, c->nout * sizeof *c->out);
  for (uint32_t j = 0; j < x.nin; j++) x.reads += layout_bytes(b, x.in[j], &x.in_layout[j]);
  for (uint32_t j = 0; j < x.nout; j++) x.writes += layout_bytes(b, x.out[j], &x.out_layout[j]);
  kwork work = kg_written(k, &e) ? kg_call_work(k, c->kcls, c->node) : (kwork){0};
  x.flops = work.flops, x.slots = work.slots, x.products = work.products;
  tarn_push(k->cx, &b->ker, x);
}
/* The e-node of a class is that of its first kernel: of several buffers that hold the class, later
 * ones may be made of it. */
static void pick(build *b, const kcand *c) {
  bool fresh;
  if (c->node == TARN_NONE) return;
  uint64_t *at = tarn_map_at(b->k->pick, tarn_eg_find(b->k->g, b->k->cls.p[c->kcls].cls), &fresh);
  if (fresh) *at = (uint64_t)c->node + 1;
  for (uint32_t i = 0; c->look && i < c->look->n; i++) {
    const klook *l = &c->look->at[i];
    at = tarn_map_at(b->k->pick, tarn_eg_find(b->k->g, b->k->cls.p[l->kcls].cls), &fresh);
    if (fresh) *at = (uint64_t)l->node + 1;
  }
}
static void emit(build *b, uint32_t ag) {
  if (b->done[ag]) return;
  b->done[ag] = 1;
  kcand *c = &b->k->cand.p[b->choice[ag]];
  bool several = tarn_type_get(b->k->L, b->k->cls.p[c->kcls].type)->tuple;
  if (c->kind != KC_NTH && !several) buffer_of(b, ag);
  for (uint32_t j = 0; j < c->nchild; j++)
    if (c->child[j] != TARN_NONE) emit(b, c->child[j]);
  double copies = kg_exchanged(b->k, ag, c); /* the program's are added when it is known */
  b->k->r->price -= copies, b->k->r->tree_price -= copies;
  if (c->kind == KC_NEST) emit_nest(b, ag, c);
  if (c->kind == KC_OTHER) emit_other(b, ag, c);
  if (c->kind == KC_MOVE) emit_move(b, ag, c);
  pick(b, c);
}

/* A buffer's dims are its group's; an input or output has the model's own, over the same row-major
 * memory. */
static void as_declared(build *b, uint32_t buffer, const tarn_io *io, const tarn_in_place *x) {
  const tarn_type *t = tarn_type_get(b->k->L, io->type);
  tarn_buffer *buf = &b->buf.p[buffer];
  buf->layout = x ? tarn_in_place_layout(x, t->n, t->dim) : tarn_layout_row_major(t->n, t->dim);
  if (x && buf->kind == TARN_BUF_INPUT) buf->parent = b->p->out[x->out];
  else if (x) buf->room = tarn_type_count(t) / t->dim[x->axis] * x->rows;
}
tarn_kprog *kg_program(kgraph *k, const uint32_t *choice) {
  build b = {.k = k, .choice = choice, .consts = tarn_map_new(k->cx)};
  b.buffer = TARN_ARRAY(k->cx, uint32_t, k->nag);
  b.done = TARN_ARRAY(k->cx, uint8_t, k->nag);
  memset(b.buffer, 0xff, k->nag * sizeof *b.buffer);
  tarn_kprog *p = b.p = TARN_NEW(k->cx, tarn_kprog);
  p->L = k->L, p->hw = k->o->hw, p->machines = k->machines;
  p->nout = k->in->nroot, p->out = TARN_ARRAY(k->cx, uint32_t, p->nout);
  for (uint32_t i = 0; i < p->nout; i++) {
    emit(&b, k->root_class[i]);
    p->out[i] = buffer_of(&b, k->root_class[i]);
    b.buf.p[p->out[i]].kind = TARN_BUF_OUTPUT;
    b.buf.p[p->out[i]].name = k->in->program->out[i].name;
    as_declared(&b, p->out[i], &k->in->program->out[i], kg_shared_port(k, true, i));
  }
  p->nin = k->in->program->nin, p->in = TARN_ARRAY(k->cx, uint32_t, p->nin);
  for (uint32_t i = 0; i < p->nin; i++) {
    const tarn_io *io = &k->in->program->in[i];
    p->in[i] = TARN_NONE;
    for (uint32_t j = 0; j < b.buf.n; j++)
      if (b.buf.p[j].kind == TARN_BUF_INPUT && !strcmp(b.buf.p[j].name, io->name)) p->in[i] = j;
    if (p->in[i] == TARN_NONE) { /* that no output needs */
      p->in[i] = new_buffer(&b, TARN_BUF_INPUT, tarn_type_get(k->L, io->type)->dtype,
                            &(tarn_layout){0}, io->term);
      b.buf.p[p->in[i]].name = io->name;
    }
    as_declared(&b, p->in[i], io, kg_shared_port(k, false, i));
  }
  k->buffer = b.buffer;
  p->nbuf = b.buf.n, p->buf = b.buf.p, p->nker = b.ker.n, p->ker = b.ker.p;
  kg_sequence(k, p);
  k->r->kernels = k->r->copies = 0;
  for (uint32_t i = 0; i < p->nker; i++) *(p->ker[i].copy ? &k->r->copies : &k->r->kernels) += 1;
  return p;
}

/* ---- selection ---- */
static void raise_if(kgraph *k, tarn_status st) {
  if (st != TARN_OK) tarn_reraise(k->cx, st);
}
static void free_graph(void *g) { tarn_sel_graph_free(g); }
static void free_result(void *r) { tarn_sel_result_free(r); }

#define WIDE_GAP 1.2 /* of the price over its bound; a wider one is said */
static void tell_gap(kgraph *k, const tarn_sel_result *r) {
  bool ended = strcmp(r->stop, "done"), bound = r->lower_bound > 0;
  const char *why = ended ? tarn_format(k->cx, "the search ended at its limit of %s", r->stop)
                          : "no better bound is known";
  if (bound && r->dag_cost > WIDE_GAP * r->lower_bound)
    tarn_warn(k->cx, "the kernels cost %.2f times the proven lower bound: %s",
              r->dag_cost / r->lower_bound, why);
  else if (!bound && ended) tarn_warn(k->cx, "nothing is proven of the choice of kernels: %s", why);
}

/* What is chosen only where nothing else can be: a kernel of the host, of a machine without one.
 * Rather one that brings a buffer into another order, and least of all a copy that a rule made. */
#define NEVER 1e6 /* seconds */
static double weight_of(const kgraph *k, uint32_t ag, const kcand *c) {
  bool runs = c->kind == KC_NEST || c->kind == KC_OTHER;
  double price = c->price + kg_exchanged(k, ag, c) + (k->rent ? k->rent[ag] : 0);
  if (!k->o->hw->alone || c->machine || !runs) return price;
  bool order = c->copy && c->node == TARN_NONE;
  return price + (order ? NEVER / 1e3 : c->copy ? 2 * NEVER : NEVER);
}
const uint32_t *kg_choose(kgraph *k) {
  tarn_sel_graph *g;
  raise_if(k, tarn_sel_graph_new(k->cx, &g));
  tarn_defer(k->cx, free_graph, g);
  raise_if(k, tarn_sel_add_classes(g, k->nag, NULL));
  uint32_t most = 1;
  for (uint32_t i = 0; i < k->cand.n; i++)
    if (k->cand.p[i].nchild > most) most = k->cand.p[i].nchild;
  uint32_t *kids = TARN_ARRAY(k->cx, uint32_t, most);
  kg_sides(k);
  for (uint32_t i = 0; i < k->cand.n; i++) {
    const kcand *c = &k->cand.p[i];
    uint32_t n = 0;
    for (uint32_t j = 0; j < c->nchild; j++)
      if (c->child[j] != TARN_NONE) kids[n++] = c->child[j];
    raise_if(k, tarn_sel_add_node(g, k->cand_class.p[i], weight_of(k, k->cand_class.p[i], c), kids,
                                  n, NULL));
  }
  for (uint32_t i = 0; i < k->in->nroot; i++) raise_if(k, tarn_sel_add_root(g, k->root_class[i]));
  tarn_sel_result *tree = TARN_NEW(k->cx, tarn_sel_result),
                  *best = TARN_NEW(k->cx, tarn_sel_result);
  raise_if(k, tarn_sel_run(g, TARN_SEL_TREE, NULL, tree));
  tarn_defer(k->cx, free_result, tree);
  k->r->tree_price = tree->dag_cost;
  tarn_sel_options so = tarn_sel_defaults(k->o->method);
  if (k->o->seconds > 0) so.seconds = k->o->seconds;
  else so.seconds = INFINITY, so.steps = k->o->steps ? k->o->steps : TARN_EXTRACT_STEPS;
  raise_if(k, tarn_sel_run(g, k->o->method, &so, best));
  tarn_defer(k->cx, free_result, best);
  k->r->price = best->dag_cost, k->r->price_bound = best->lower_bound,
  k->r->optimal = best->optimal, k->r->steps = best->steps;
  tell_gap(k, best);
  return tarn_copy(k->cx, best->choice, k->nag * sizeof(uint32_t));
}

/* A class without a kernel of its own is a view of one that has, at most 8 views away. The nearest:
 * views lead back as well, and each step comes nearer. */
static uint32_t pick_view(const tarn_picks *p, uint32_t cls, int depth) {
  const uint64_t *at = tarn_map_get(p->pick, tarn_eg_find(p->g, cls));
  if (at) return (uint32_t)*at - 1;
  for (uint32_t n = tarn_eg_next_node(p->g, cls, TARN_NONE); n != TARN_NONE && depth;
       n = tarn_eg_next_node(p->g, cls, n)) {
    tarn_eg_node e = tarn_eg_node_at(p->g, n);
    if (tarn_op_is_view(e.op) && pick_view(p, e.kids[0], depth - 1) != TARN_NONE) return n;
  }
  return TARN_NONE;
}
uint32_t tarn_extract_pick(const tarn_picks *p, uint32_t cls) {
  uint32_t n = TARN_NONE;
  for (int depth = 0; depth <= 8 && n == TARN_NONE; depth++)
    n = pick_view(p, tarn_eg_find(p->g, cls), depth);
  return n;
}

static void count_prices(kgraph *k) {
  for (uint32_t i = 0; i < k->machines.n; i++) {
    tarn_solver_stats st = tarn_solver_count(k->of[i].solver), had = k->of[i].before;
    k->r->signatures += st.signatures - had.signatures;
    k->r->price_uses += st.uses - had.uses;
    k->r->evaluations += st.evaluations - had.evaluations;
  }
  k->r->price_name = (k->o->price ? k->o->price : tarn_price_analytic())->name;
}
tarn_extraction *tarn_extract_choose(const tarn_kgraph_input *in, const tarn_kgraph_options *o,
                                     tarn_kgraph_report *r) {
  tarn_ctx *cx = tarn_lang_ctx(in->L);
  tarn_extraction *x = TARN_NEW(cx, tarn_extraction);
  kgraph *k = &x->k;
  *k = (kgraph){.in = in,
                .o = o,
                .L = in->L,
                .cx = cx,
                .g = in->g,
                .r = r,
                .by_class = tarn_map_new(cx),
                .numbers = tarn_map_new(cx),
                .layouts = tarn_intern_new(cx),
                .whole_of = tarn_map_new(cx),
                .part_copies = tarn_map_new(cx),
                .tried = tarn_map_new(cx),
                .pick = tarn_map_new(cx)};
  *r = (tarn_kgraph_report){.method = tarn_sel_method_name(o->method)};
  kg_machines(k);
  kg_groups(k);
  for (uint32_t i = 0; i < k->cls.n; i++) tarn_push(cx, &k->const_term, TARN_NONE);
  kg_layouts(k);
  kg_candidates(k);
  tarn_progress(cx, "choosing kernels", 0, 0, NULL);
  x->choice = x->first = kg_replays(k) ? kg_family_again(k) : kg_choose(k);
  if (o->graph) kg_print(k, x->choice, o->graph);
  kg_names(k, x->choice);
  if (o->family && !kg_replays(k)) kg_family_first(k, x->choice);
  x->of_first = *r;
  return x;
}
tarn_kprog *tarn_extract_program(tarn_extraction *x, tarn_picks **picks) {
  kgraph *k = &x->k;
  const tarn_kgraph_options *o = k->o;
  for (uint32_t i = 0; i < o->ngiven; i++)
    tarn_solver_give(k->of[tarn_schedule_machine(&k->machines, o->given[i].sched)].solver,
                     o->given[i].sig, o->given[i].sched);
  count_prices(k);
  if (picks) {
    *picks = TARN_NEW(k->cx, tarn_picks);
    **picks = (tarn_picks){k->in->g, k->pick};
  }
  tarn_kprog *p = kg_program(k, x->choice);
  k->r->ways = k->ways.p, k->r->nways = k->ways.n;
  k->r->unmeasured = k->unmeasured.p, k->r->nunmeasured = k->unmeasured.n;
  return p;
}
bool tarn_extract_holds(tarn_extraction *x, uint32_t buffer, tarn_term t, tarn_layout *as) {
  kgraph *k = &x->k;
  uint32_t cls = k->in->class_of(k->in->user, t);
  uint32_t c = cls == TARN_NONE ? TARN_NONE : kg_class(k, cls);
  if (c == TARN_NONE || k->cls.p[c].group == TARN_NONE) return false;
  const kgroup *g = &k->group.p[k->cls.p[c].group];
  uint32_t n = g->nlayout * (k->machines.n ? k->machines.n : 1);
  for (uint32_t i = 0; i < n; i++)
    if (k->buffer[g->first + i] == buffer)
      return kg_layout_over(k, &g->layout[i % g->nlayout], k->cls.p[c].to_rep, as);
  return false;
}
tarn_kprog *tarn_extract(const tarn_kgraph_input *in, const tarn_kgraph_options *o,
                         tarn_kgraph_report *r, tarn_picks **picks) {
  return tarn_extract_program(tarn_extract_choose(in, o, r), picks);
}
