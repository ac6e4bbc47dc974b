/* Candidate kernels: every compute, nest, copy, concatenation and opaque e-node, for each way to
 * read its operands and each storage order of what it reads and writes, with the price of its best
 * schedule. */
#include "extract/kgraph.h"
#include <stdlib.h>
#include <string.h>

#define EACH_NODE(k, c, n)                                                                         \
  for (uint32_t n = kg_next_node(k, c, TARN_NONE); n != TARN_NONE; n = kg_next_node(k, c, n))

/* An operand as a candidate sees it: a buffer through a map, or a constant. */
typedef struct operand {
  bool constant;
  uint32_t kcls, nv;
  kview v[KG_MAX_VIEWS]; /* constant: v[0].map leads to term */
  tarn_term term;        /* constant: what is stored, broadcasts and other views taken off */
} operand;

static kcand *add_cand(kgraph *k, uint32_t ag, kcand c) {
  tarn_push(k->cx, &k->cand, c);
  tarn_push(k->cx, &k->cand_class, ag);
  k->r->candidates++;
  return &k->cand.p[k->cand.n - 1];
}

/* ---- nests over buffers ---- */
/* One stage whose own dims are put over the representative's dims: own dims d become inv.e[d]. */
static uint32_t over_rep(kgraph *k, uint32_t map, const tarn_imap *inv, uint32_t nown, bool epi,
                         uint32_t nred, const int64_t *red) {
  tarn_imap m = *tarn_imap_get(k->L, map);
  int64_t dim[TARN_MAX_DIMS * 2] = {0};
  uint32_t sub[TARN_MAX_DIMS * 2], n = inv->n;
  memcpy(dim, inv->dim, n * sizeof *dim);
  for (uint32_t i = 0; i < nred && !epi; i++) dim[n + i] = red[i];
  uint32_t total = n + (epi ? 0 : nred);
  if (total > TARN_MAX_DIMS) return TARN_NONE;
  for (uint32_t i = 0; i < nown; i++) sub[i] = inv->e[i];
  for (uint32_t i = 0; i < nred && !epi; i++) sub[nown + i] = tarn_ix_var(k->L, n + i, dim);
  for (uint32_t a = 0; a < m.nin; a++) m.e[a] = tarn_ix_subst(k->L, m.e[a], sub, dim);
  for (uint32_t g = 0; g < m.nguard; g++)
    m.guard[g].e = tarn_ix_subst(k->L, m.guard[g].e, sub, dim);
  m.n = m.ns = (uint8_t)total;
  memset(m.dim, 0, sizeof m.dim);
  memcpy(m.dim, dim, total * sizeof *dim);
  return tarn_map_intern_derived(k->L, &m);
}
/* A single-stage nest over rep dims: TARN_NONE when it has more stages or too many dims. */
static uint32_t nest_over_rep(kgraph *k, uint32_t nest, const kclass *c) {
  tarn_nest n = *tarn_nest_get(k->L, nest);
  const tarn_type *t = tarn_type_get(k->L, c->type);
  uint32_t back = tarn_map_invert(k->L, c->to_rep, t->ns);
  if (n.nstage != 1 || n.depth || back == TARN_NONE) return TARN_NONE;
  tarn_imap inv = *tarn_imap_get(k->L, back);
  tarn_stage s = n.stage[0];
  const tarn_func f = *tarn_fn_get(k->L, s.fn);
  uint32_t nread = (uint32_t)f.nops + f.nepi;
  tarn_read *r = TARN_ARRAY(k->cx, tarn_read, nread);
  for (uint32_t i = 0; i < nread; i++) {
    r[i] = s.read[i];
    r[i].map = over_rep(k, r[i].map, &inv, s.nown, i >= f.nops, s.nred, s.red);
    if (r[i].map == TARN_NONE) return TARN_NONE;
  }
  s.nown = inv.n, s.read = r;
  memset(s.own, 0, sizeof s.own);
  memcpy(s.own, inv.dim, inv.n * sizeof(int64_t));
  n.stage = &s, n.out_ns = inv.n;
  return tarn_nest_intern(k->L, &n);
}
/* Child j of the nest read through view v[j] instead. */
static uint32_t nest_through(kgraph *k, uint32_t nest, const kview *const *v) {
  tarn_nest n = *tarn_nest_get(k->L, nest);
  tarn_stage *st = TARN_ARRAY(k->cx, tarn_stage, n.nstage);
  for (uint32_t i = 0; i < n.nstage; i++) {
    st[i] = n.stage[i];
    const tarn_func f = *tarn_fn_get(k->L, st[i].fn);
    uint32_t nread = (uint32_t)f.nops + f.nepi;
    tarn_read *r = TARN_ARRAY(k->cx, tarn_read, nread);
    for (uint32_t j = 0; j < nread; j++) {
      r[j] = st[i].read[j];
      if (r[j].stage || !v[r[j].src]) continue;
      r[j].map = tarn_map_compose(k->L, r[j].map, v[r[j].src]->map);
      if (r[j].map == TARN_NONE) return TARN_NONE;
    }
    st[i].read = r;
  }
  n.stage = st;
  return tarn_nest_intern(k->L, &n);
}

/* ---- constants as the kernel reads them ---- */
tarn_term kg_constant(kgraph *k, uint32_t c) {
  if (k->const_term[c] != TARN_NONE) return k->const_term[c];
  /* the smallest term of the class; a class is left open while it is being built, so that cycles
   * are avoided */
  k->const_term[c] = TARN_NONE - 1;
  tarn_term best = TARN_NONE;
  for (int leaf = 1; leaf >= 0 && best == TARN_NONE; leaf--) EACH_NODE(k, k->cls.p[c].cls, n) {
      tarn_eg_node e = tarn_eg_node_at(k->g, n);
      if ((e.n == 0) != (bool)leaf || best != TARN_NONE || e.op == TARN_OP_PLACE) continue;
      tarn_term *kid = TARN_ARRAY(k->cx, tarn_term, e.n ? e.n : 1);
      uint32_t *kids = tarn_copy(k->cx, e.kids, e.n * sizeof *e.kids);
      bool ok = true;
      for (uint32_t j = 0; j < e.n && ok; j++) {
        uint32_t kc = kg_class(k, kids[j]);
        if (kc == TARN_NONE) {
          bool fresh;
          *tarn_map_at(k->by_class, tarn_eg_find(k->g, kids[j]), &fresh) = k->cls.n + 1;
          kclass nc = {.cls = tarn_eg_find(k->g, kids[j]), .constant = true, .group = TARN_NONE};
          nc.type = k->in->type_of(k->in->user, nc.cls);
          kc = k->cls.n;
          tarn_push(k->cx, &k->cls, nc);
          tarn_term *grown = TARN_ARRAY(k->cx, tarn_term, k->cls.cap);
          memset(grown, 0xff, k->cls.cap * sizeof *grown);
          memcpy(grown, k->const_term, kc * sizeof *grown);
          k->const_term = grown;
        }
        kid[j] = kg_constant(k, kc);
        ok = kid[j] < TARN_NONE - 1;
      }
      if (!ok) continue;
      bool fresh;
      best = tarn_mk(k->L, e.op, e.payload, kid, e.n);
      *tarn_map_at(k->pick, tarn_eg_find(k->g, k->cls.p[c].cls), &fresh) = n + 1;
    }
  k->const_term[c] = best;
  return best;
}

/* How far an operand moves per step of each dim, with its layout. */
static void steps(kgraph *k, uint32_t map, const tarn_layout *l, int64_t *out) {
  const tarn_imap *m = tarn_imap_get(k->L, map);
  for (uint32_t d = 0; d < m->n; d++) {
    out[d] = 0;
    for (uint32_t a = 0; a < m->nin; a++) out[d] += l->stride[a] * tarn_ix_coef(k->L, m->e[a], d);
  }
}
/* Own dims along which the result is written contiguously, the innermost first: more than one where
 * every other operand goes on alike, so that they become one loop once the constants do too. */
typedef struct inner_dims {
  uint32_t mask, n, dim[TARN_MAX_DIMS];
} inner_dims;
static void own_steps(const kcand *c, const tarn_stage *s, uint32_t depth, uint32_t out,
                      int64_t *stride, int64_t *dim) {
  if (s->out) {
    memcpy(stride, c->out[out].stride, sizeof c->out[out].stride);
    memcpy(dim, c->out[out].dim, sizeof c->out[out].dim);
    return;
  }
  int64_t step = 1; /* a local buffer lies in row-major order */
  for (uint32_t d = s->nown; d-- > 0; step *= s->own[d])
    stride[depth + d] = step, dim[depth + d] = s->own[d];
}
static bool goes_on(kgraph *k, const kcand *c, const tarn_stage *s, uint32_t inner, uint32_t d,
                    int64_t extent) {
  const tarn_func f = *tarn_fn_get(k->L, s->fn);
  for (uint32_t j = 0; j < (uint32_t)f.nops + f.nepi; j++) {
    const tarn_read *r = &s->read[j];
    if (!r->stage && c->child[r->src] == TARN_NONE) continue;
    const tarn_imap *m = tarn_imap_get(k->L, r->map);
    int64_t st[TARN_MAX_DIMS] = {0};
    if (r->stage) return false;
    steps(k, r->map, &c->in[r->src], st);
    for (uint32_t g = 0; g < m->nguard; g++)
      if (tarn_ix_dims(k->L, m->guard[g].e) & (1u << inner | 1u << d)) return false;
    if (st[d] != st[inner] * extent) return false;
  }
  return true;
}
static inner_dims written_last(kgraph *k, const kcand *c, const tarn_stage *s, uint32_t depth,
                               uint32_t out) {
  inner_dims l = {0};
  int64_t stride[TARN_MAX_DIMS] = {0}, dim[TARN_MAX_DIMS] = {0}, step = 1;
  own_steps(c, s, depth, out, stride, dim);
  for (bool more = true; more;) {
    more = false;
    for (uint32_t d = 0; d < depth + s->nown && !more; d++)
      if (dim[d] > 1 && stride[d] == step && !(l.mask >> d & 1) &&
          (!l.n || goes_on(k, c, s, l.dim[l.n - 1], d, dim[l.dim[l.n - 1]])))
        l.dim[l.n++] = d, l.mask |= 1u << d, step *= dim[d], more = true;
  }
  return l;
}
/* Constants are copied at compile time into the order in which the loops will walk them: one dim
 * for each dim of the iteration space that the read depends on; own dims, then reduce dims by
 * falling step of the other operands, then the own dims along which the result is written
 * contiguously. */
static bool pack_read(kgraph *k, kcand *c, const tarn_stage *s, uint32_t depth, tarn_read *r,
                      const int64_t *order_key, const inner_dims *last) {
  tarn_imap m = *tarn_imap_get(k->L, r->map);
  uint32_t mask = 0, nacc = depth + s->nown, by[TARN_MAX_DIMS], n = 0;
  for (uint32_t a = 0; a < m.nin; a++) mask |= tarn_ix_dims(k->L, m.e[a]);
  for (uint32_t g = 0; g < m.nguard; g++) mask |= tarn_ix_dims(k->L, m.guard[g].e);
  double have = 1, want = 1;
  for (uint32_t a = 0; a < m.nin; a++) have *= (double)m.in[a];
  for (uint32_t d = 0; d < m.n; d++)
    if (mask >> d & 1) want *= (double)m.dim[d];
  if (want > 4 * have) return false;
  for (uint32_t d = 0; d < nacc && d < m.n; d++)
    if ((mask & ~last->mask) >> d & 1) by[n++] = d;
  uint32_t first = n;
  for (uint32_t d = nacc; d < m.n; d++)
    if (mask >> d & 1) {
      uint32_t at = n++;
      for (; at > first && order_key[by[at - 1]] < order_key[d]; at--) by[at] = by[at - 1];
      by[at] = d;
    }
  for (uint32_t i = last->n; i-- > 0;)
    if (mask >> last->dim[i] & 1) by[n++] = last->dim[i];
  tarn_imap pack = m, pick = {.ns = m.ns, .n = m.n, .fill = TARN_NONE};
  int64_t dim[TARN_MAX_DIMS] = {0};
  uint32_t sub[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) dim[i] = m.dim[by[i]];
  for (uint32_t d = 0; d < m.n; d++) sub[d] = tarn_ix_const(k->L, 0);
  for (uint32_t i = 0; i < n; i++) sub[by[i]] = tarn_ix_var(k->L, i, dim);
  for (uint32_t a = 0; a < m.nin; a++) pack.e[a] = tarn_ix_subst(k->L, m.e[a], sub, dim);
  for (uint32_t g = 0; g < m.nguard; g++)
    pack.guard[g].e = tarn_ix_subst(k->L, m.guard[g].e, sub, dim);
  pack.n = pack.ns = (uint8_t)n;
  memset(pack.dim, 0, sizeof pack.dim);
  memcpy(pack.dim, dim, sizeof dim);
  memcpy(pick.dim, m.dim, sizeof m.dim);
  pick.nin = (uint8_t)n;
  for (uint32_t i = 0; i < n; i++) pick.in[i] = dim[i], pick.e[i] = tarn_ix_var(k->L, by[i], m.dim);
  uint32_t j = c->nchild++;
  c->cterm[j] = tarn_view(k->L, tarn_map_intern_derived(k->L, &pack), c->cterm[r->src]);
  c->child[j] = TARN_NONE;
  c->in[j] = tarn_layout_row_major(n, dim);
  r->src = j, r->map = tarn_map_intern_derived(k->L, &pick);
  return true;
}
/* A candidate's nest and layouts as loop/ takes them, not canonical; and back. */
static tarn_ksig loops_of(const kcand *c) {
  tarn_ksig sig = {.nest = c->nest, .nin = c->nchild, .nout = c->nout};
  memcpy(sig.in, c->in, c->nchild * sizeof *c->in);
  memcpy(sig.out, c->out, c->nout * sizeof *c->out);
  for (uint32_t j = 0; j < c->nchild; j++) sig.in_const[j] = c->child[j] == TARN_NONE;
  return sig;
}
static void set_loops(kcand *c, const tarn_ksig *sig) {
  c->nest = sig->nest;
  memcpy(c->in, sig->in, c->nchild * sizeof *c->in);
  memcpy(c->out, sig->out, c->nout * sizeof *c->out);
}
/* Loops split where the reads divide by a part of them: a constant then depends on the part that it
 * needs. */
static void split_loops(kgraph *k, kcand *c) {
  tarn_ksig sig = loops_of(c);
  tarn_ksig_split(k->L, &sig);
  set_loops(c, &sig);
}
/* Loops that everything walks as one, merged. */
static void merge_loops(kgraph *k, kcand *c) {
  tarn_ksig sig = loops_of(c);
  tarn_ksig_merge(k->L, &sig);
  set_loops(c, &sig);
}
/* Shared loops in blocks. */
static bool cut_loops(kgraph *k, kcand *c, const kcut *cut) {
  if (cut->pack) merge_loops(k, c); /* as kg_packs() was shown it */
  tarn_ksig sig = loops_of(c);
  if (cut->pack ? !tarn_ksig_pack(k->L, &sig, cut->read, cut->dim, cut->block[0], cut->block[1])
                : !tarn_ksig_cut(k->L, &sig, cut->block, cut->behind))
    return false;
  if (cut->gather && !tarn_ksig_gather(k->L, &sig)) return false;
  set_loops(c, &sig);
  return true;
}
/* The largest own dim that the constants of a product go along; UINT32_MAX where they go along what
 * is written last. */
static uint32_t constants_along(kgraph *k, const kcand *c, const tarn_stage *s, uint32_t depth,
                                const inner_dims *last) {
  const tarn_func f = *tarn_fn_get(k->L, s->fn);
  uint32_t mask = 0, best = UINT32_MAX;
  int64_t dim[TARN_MAX_DIMS] = {0};
  if (!s->nred) return best;
  for (uint32_t j = 0; j < f.nops; j++) {
    const tarn_imap *m = tarn_imap_get(k->L, s->read[j].map);
    memcpy(dim, m->dim, m->n * sizeof *dim);
    if (s->read[j].stage || c->child[s->read[j].src] != TARN_NONE) continue;
    for (uint32_t a = 0; a < m->nin; a++) mask |= tarn_ix_dims(k->L, m->e[a]);
  }
  for (uint32_t d = depth; d < depth + s->nown && !(mask & last->mask); d++)
    if ((mask >> d & 1) && dim[d] > 1 && (best == UINT32_MAX || dim[d] > dim[best])) best = d;
  return best;
}
/* across: constants lie along a dim of their own where the result does not go along any of theirs.
 * False: there is none. */
static bool pack_constants(kgraph *k, kcand *c, bool across) {
  tarn_nest n = *tarn_nest_get(k->L, c->nest);
  tarn_stage *st = TARN_ARRAY(k->cx, tarn_stage, n.nstage);
  uint32_t out = 0;
  if (across && n.nstage > 1) return false;
  for (uint32_t i = 0; i < n.nstage; i++) {
    st[i] = n.stage[i];
    const tarn_func f = *tarn_fn_get(k->L, st[i].fn);
    uint32_t nread = (uint32_t)f.nops + f.nepi, guarded = 0;
    tarn_read *r = TARN_ARRAY(k->cx, tarn_read, nread);
    int64_t key[TARN_MAX_DIMS] = {0}, st_of[TARN_MAX_DIMS];
    memcpy(r, st[i].read, nread * sizeof *r);
    inner_dims last = written_last(k, c, &st[i], n.depth, out);
    uint32_t own = across ? constants_along(k, c, &st[i], n.depth, &last) : 0;
    if (own == UINT32_MAX) return false;
    if (across) last = (inner_dims){.mask = 1u << own, .n = 1, .dim = {own}};
    out += st[i].out;
    for (uint32_t j = 0; j < f.nops; j++) {
      if (r[j].stage || c->child[r[j].src] == TARN_NONE) continue;
      steps(k, r[j].map, &c->in[r[j].src], st_of);
      for (uint32_t d = 0; d < tarn_imap_get(k->L, r[j].map)->n; d++)
        if (llabs(st_of[d]) > key[d]) key[d] = llabs(st_of[d]);
      const tarn_imap *m = tarn_imap_get(k->L, r[j].map);
      for (uint32_t g = 0; g < m->nguard; g++) guarded |= tarn_ix_dims(k->L, m->guard[g].e);
    }
    for (uint32_t d = 0; d < TARN_MAX_DIMS; d++) /* as tarn_ksig_canonical() orders them */
      if (guarded >> d & 1) key[d] += (int64_t)1 << 48;
    for (uint32_t j = 0; j < nread; j++)
      if (!r[j].stage && c->child[r[j].src] == TARN_NONE && c->nchild < KG_MAX_KIDS)
        pack_read(k, c, &st[i], n.depth, &r[j], key, &last);
    st[i].read = r;
  }
  n.stage = st, n.nchild = c->nchild;
  /* children no longer read are dropped */
  uint32_t to[KG_MAX_KIDS], used[KG_MAX_KIDS] = {0}, m = 0;
  for (uint32_t i = 0; i < n.nstage; i++) {
    const tarn_func *f = tarn_fn_get(k->L, st[i].fn);
    for (uint32_t j = 0; j < (uint32_t)f->nops + f->nepi; j++)
      if (!st[i].read[j].stage) used[st[i].read[j].src] = 1;
  }
  for (uint32_t j = 0; j < n.nchild; j++) {
    to[j] = m;
    if (used[j]) c->child[m] = c->child[j], c->cterm[m] = c->cterm[j], c->in[m++] = c->in[j];
  }
  for (uint32_t i = 0; i < n.nstage; i++) {
    const tarn_func *f = tarn_fn_get(k->L, st[i].fn);
    tarn_read *r = (tarn_read *)(uintptr_t)st[i].read;
    for (uint32_t j = 0; j < (uint32_t)f->nops + f->nepi; j++)
      if (!r[j].stage) r[j].src = to[r[j].src];
  }
  c->nchild = n.nchild = m;
  c->nest = tarn_nest_intern(k->L, &n);
  return true;
}

/* ---- pricing ---- */
static tarn_dtype child_type(kgraph *k, const kcand *c, uint32_t j) {
  if (c->child[j] == TARN_NONE) return tarn_term_type(k->L, c->cterm[j])->dtype;
  for (uint32_t g = 0; g < k->group.n; g++)
    if (c->child[j] >= k->group.p[g].first &&
        c->child[j] < k->group.p[g].first + k->group.p[g].nlayout)
      return tarn_type_get(k->L, k->group.p[g].type)->dtype;
  return TARN_F32;
}
/* What lies there of a small constant, from offset 0 on. */
static const float *numbers_of(kgraph *k, tarn_term t, const tarn_layout *l) {
  bool fresh;
  uint64_t key =
      tarn_hash_mix(tarn_hash_bytes(l->stride, l->n * sizeof *l->stride, t), (uint64_t)l->block);
  uint64_t *at = tarn_map_at(k->numbers, key, &fresh);
  if (!fresh) return (const float *)(uintptr_t)*at;
  tarn_tensor *v;
  tarn_eval(k->L, &t, 1, NULL, 0, TARN_STRICT, NULL, &v);
  int64_t idx[TARN_MAX_DIMS] = {0}, n = tarn_tensor_count(v);
  float *out = TARN_ARRAY(k->cx, float, tarn_layout_elems(l));
  for (int64_t i = 0; i < n; i++) {
    out[tarn_layout_at(l, idx)] = ((const float *)v->data)[i];
    for (uint32_t d = l->n; d-- > 0 && ++idx[d] == l->dim[d];) idx[d] = 0;
  }
  *at = (uint64_t)(uintptr_t)out;
  return out;
}
void kg_signature(kgraph *k, const kcand *c, tarn_ksig *sig) {
  memset(sig, 0, sizeof *sig);
  sig->nest = c->nest, sig->strict = k->o->strict, sig->nin = c->nchild, sig->nout = c->nout;
  for (uint32_t j = 0; j < c->nchild; j++) {
    sig->in[j] = c->in[j];
    sig->in_const[j] = c->child[j] == TARN_NONE;
    sig->in_type[j] = child_type(k, c, j);
  }
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[c->kcls].type);
  for (uint32_t j = 0; j < c->nout; j++) {
    sig->out[j] = c->out[j];
    sig->out_type[j] = t->tuple ? tarn_type_get(k->L, t->elem[j])->dtype : t->dtype;
  }
  tarn_ksig_canonical(k->L, sig);
  for (uint64_t m = tarn_ksig_matrices(k->L, sig); m; m &= m - 1) {
    uint32_t j = (uint32_t)__builtin_ctzll(m);
    if (tarn_layout_elems(&sig->in[j]) == tarn_layout_elems(&c->in[j]) && !c->in[j].offset)
      sig->in_numbers[j] = numbers_of(k, c->cterm[j], &c->in[j]);
  }
}
static void price(kgraph *k, kcand *c) {
  tarn_ksig sig;
  tarn_cost cost;
  kg_signature(k, c, &sig);
  const tarn_schedule *s = tarn_solve(k->solver, &sig, &cost);
  const tarn_price *p = k->o->price ? k->o->price : tarn_price_analytic();
  c->price =
      (p->kernel ? p->kernel : p->seconds)(p->user, k->L, k->o->hw, &sig, s, k->threads, &cost);
}

/* ---- candidates of one e-node ---- */
/* Where a candidate writes: AND/OR class, and per result a layout over the dims of its class. */
typedef struct target {
  uint32_t ag, kcls; /* kcls: of the single result, or of the tuple */
  uint32_t nout;
  tarn_layout out[KG_MAX_OUT];
} target;

/* How the operands of a candidate are read: op[j] as v[j], in layout pick[j] of where that leads.
 */
typedef struct reading {
  uint32_t n;
  const operand *op;
  const kview *const *v;
  const uint32_t *pick;
} reading;

/* The AND/OR class that operand j is read from. */
static uint32_t from_group(kgraph *k, const reading *r, uint32_t j) {
  return k->group.p[r->v[j]->group].first + r->pick[j];
}
/* Room for the children of a candidate that may not be kept. */
typedef struct kids {
  uint32_t child[KG_MAX_KIDS], cterm[KG_MAX_KIDS];
  tarn_layout in[KG_MAX_KIDS];
} kids;
static void set_children(kgraph *k, kcand *c, kids *room, const reading *r) {
  c->child = room->child, c->cterm = room->cterm, c->in = room->in;
  for (uint32_t j = 0; j < r->n; j++) {
    c->child[j] = c->cterm[j] = TARN_NONE;
    if (r->op[j].constant) {
      const tarn_type *t = tarn_term_type(k->L, r->op[j].term);
      c->cterm[j] = r->op[j].term;
      c->in[j] = tarn_layout_row_major(t->n, t->dim);
      continue;
    }
    c->child[j] = from_group(k, r, j);
    c->in[j] = k->group.p[r->v[j]->group].layout[r->pick[j]];
  }
}
/* cand with its shared loops cut (NULL: as they are) and its constants packed, into best if nothing
 * is cheaper. */
static bool offer(kgraph *k, kcand cand, const reading *r, const kcut *cut, bool across,
                  kcand *best) {
  kids room;
  set_children(k, &cand, &room, r);
  if (cut && !cut_loops(k, &cand, cut)) return false;
  split_loops(k, &cand);
  if (!pack_constants(k, &cand, across)) return false;
  price(k, &cand);
  if (best->nest != TARN_NONE && cand.price >= best->price) return true;
  *best = cand;
  best->child = tarn_copy(k->cx, cand.child, cand.nchild * sizeof *cand.child);
  best->cterm = tarn_copy(k->cx, cand.cterm, cand.nchild * sizeof *cand.cterm);
  best->in = tarn_copy(k->cx, cand.in, cand.nchild * sizeof *cand.in);
  return true;
}
/* A nest candidate for operands read in this way. over: the group layout to write when the nest has
 * to be put over the representative's dims first, else NULL. */
static void nest_cand(kgraph *k, const target *to, uint32_t node, uint32_t nest, const reading *r,
                      const tarn_layout *over, bool copy) {
  kcand cand = {.kind = KC_NEST,
                .node = node,
                .kcls = to->kcls,
                .nchild = r->n,
                .nout = to->nout,
                .copy = copy};
  kcand best = {.nest = TARN_NONE};
  memcpy(cand.out, to->out, sizeof cand.out);
  if (over) nest = nest_over_rep(k, nest, &k->cls.p[to->kcls]), cand.out[0] = *over;
  if (nest == TARN_NONE) return;
  for (uint32_t j = 0; j < r->n; j++)
    if (!r->op[j].constant && from_group(k, r, j) == to->ag) return; /* reads what it writes */
  cand.nest = nest_through(k, nest, r->v);
  if (cand.nest == TARN_NONE) return;
  kcut cut[KG_MAX_CUTS];
  bool any = false;
  /* stages that would go over single rows go over blocks instead, where they can; the cheapest
   * stands for the node */
  for (uint32_t i = kg_cuts(k, cand.nest, cut); i-- > 0;)
    any |= offer(k, cand, r, &cut[i], false, &best) && !cut[i].more;
  if (!any && offer(k, cand, r, NULL, false, &best)) offer(k, cand, r, NULL, true, &best);
  if (tarn_nest_get(k->L, cand.nest)->nstage == 1) {
    kids room;
    kcand merged = cand;
    set_children(k, &merged, &room, r);
    merge_loops(k, &merged);
    for (uint32_t i = kg_packs(k, &merged, cut); i-- > 0;) offer(k, cand, r, &cut[i], false, &best);
  }
  if (best.nest != TARN_NONE) add_cand(k, to->ag, best);
}

static uint32_t plain_layouts(const kgroup *g) {
  uint32_t n = 0;
  while (n < g->nlayout && g->part_of[n] == TARN_NONE) n++;
  return n;
}
/* The next combination of views and layouts of the operands; false: there is none. */
static bool next_combo(const kgraph *k, const operand *op, uint32_t nk, uint32_t *vi,
                       uint32_t *li) {
  for (uint32_t j = 0; j < nk; j++) {
    if (op[j].constant) continue;
    if (++li[j] < plain_layouts(&k->group.p[op[j].v[vi[j]].group])) return true;
    li[j] = 0;
    if (++vi[j] < op[j].nv) return true;
    vi[j] = 0;
  }
  return false;
}
/* Many operands: each in its layout number `at`, or its last one; false: none has so many. */
static bool alike(const kgraph *k, const operand *op, uint32_t nk, uint32_t *li, uint32_t at) {
  bool any = at == 0;
  for (uint32_t j = 0; j < nk; j++) {
    uint32_t n = op[j].constant ? 1 : plain_layouts(&k->group.p[op[j].v[0].group]);
    li[j] = at < n ? at : n - 1;
    any |= at < n;
  }
  return any;
}
/* All combinations of views and layouts of the operands, the likeliest first, at most 32. */
static void combos(kgraph *k, const target *to, uint32_t node, uint32_t nest, uint32_t nk,
                   const operand *op, const tarn_layout *over, bool copy) {
  enum { COMBOS = 32, MANY = 16 };
  uint32_t vi[KG_MAX_KIDS] = {0}, li[KG_MAX_KIDS] = {0};
  bool more = true;
  for (uint32_t tries = 0; tries < COMBOS && more; tries++) {
    const kview *v[KG_MAX_KIDS] = {0};
    for (uint32_t j = 0; j < nk; j++) v[j] = &op[j].v[vi[j]];
    nest_cand(k, to, node, nest, &(reading){nk, op, v, li}, over, copy);
    more = nk > MANY ? alike(k, op, nk, li, tries + 1) : next_combo(k, op, nk, vi, li);
  }
}
/* … for each storage order of the result. */
static void all_orders(kgraph *k, uint32_t kc, uint32_t node, uint32_t nest, uint32_t nk,
                       const operand *op, bool copy) {
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  for (uint32_t lo = 0; lo < g->nlayout; lo++) {
    target to = {.ag = g->first + lo, .kcls = kc, .nout = 1};
    bool direct = kg_layout_over(k, &g->layout[lo], k->cls.p[kc].to_rep, &to.out[0]);
    combos(k, &to, node, nest, nk, op, direct ? NULL : &g->layout[lo], copy);
  }
}
static bool read_constant(kgraph *k, operand *op) {
  op->term = kg_constant(k, op->kcls);
  if (op->term >= TARN_NONE - 1) return false;
  op->nv = 1, op->v[0] = (kview){TARN_NONE, tarn_map_identity(k->L, k->cls.p[op->kcls].type)};
  for (;;) {
    tarn_node n = *tarn_term_get(k->L, op->term);
    if (n.op != TARN_OP_VIEW) return true;
    uint32_t m = tarn_map_compose(k->L, op->v[0].map, tarn_payload_get(k->L, n.payload)->id);
    if (m == TARN_NONE) return true;
    op->v[0].map = m, op->term = n.kid[0];
  }
}
static bool read_operands(kgraph *k, uint32_t kc, const tarn_eg_node *e, operand *op) {
  for (uint32_t j = 0; j < e->n; j++) {
    op[j] = (operand){.kcls = kg_class(k, e->kids[j])};
    op[j].constant = k->cls.p[op[j].kcls].constant;
    if (op[j].constant && !read_constant(k, &op[j])) return false;
    if (op[j].constant) continue;
    uint32_t n = kg_views(k, op[j].kcls, op[j].v);
    for (uint32_t i = 0; i < n; i++) /* only buffers that have a storage order */
      if (k->group.p[op[j].v[i].group].nlayout) op[j].v[op[j].nv++] = op[j].v[i];
    if (!op[j].nv) return false;
  }
  (void)kc;
  return true;
}
static uint32_t identity_nest(kgraph *k, uint32_t type) {
  uint32_t fn = tarn_fn_map(k->L, tarn_fx_hole(k->L, 0), 1);
  return tarn_nest_of(k->L, TARN_OP_COMPUTE, tarn_payload_of(k->L, TARN_P_FN, fn), &type, 1);
}
/* A buffer that holds the operand as a plain row-major tensor, or a constant; false when there is
 * none. */
static bool plain_operand(kgraph *k, const operand *op, kcand *c, uint32_t j) {
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[op->kcls].type);
  tarn_layout row = tarn_layout_row_major(t->n, t->dim), over;
  c->child[j] = c->cterm[j] = TARN_NONE, c->in[j] = row;
  if (op->constant) {
    c->cterm[j] = kg_constant(k, op->kcls);
    return true;
  }
  for (uint32_t i = 0; i < op->nv; i++) {
    kgroup *from = &k->group.p[op->v[i].group];
    for (uint32_t l = 0; l < plain_layouts(from); l++)
      if (kg_layout_over(k, &from->layout[l], op->v[i].map, &over) &&
          tarn_layout_equal(&over, &row)) {
        c->child[j] = from->first + l;
        return true;
      }
  }
  return false;
}
static uint32_t copied(kgraph *k, const operand *op, const tarn_layout *l);
/* A kernel that is no nest: reads and writes plain row-major tensors; operands lying otherwise are
 * copied first. */
static void other_cand(kgraph *k, const target *to, uint32_t node, const tarn_eg_node *e,
                       const operand *op) {
  kcand c = {.kind = KC_OTHER,
             .node = node,
             .kcls = to->kcls,
             .nchild = e->n,
             .nout = to->nout,
             .op = e->op,
             .payload = e->payload};
  memcpy(c.out, to->out, sizeof c.out);
  c.child = TARN_ARRAY(k->cx, uint32_t, e->n + 1), c.cterm = TARN_ARRAY(k->cx, uint32_t, e->n + 1);
  c.in = TARN_ARRAY(k->cx, tarn_layout, e->n + 1);
  double elements = 0;
  for (uint32_t j = 0; j < to->nout; j++) elements += (double)tarn_layout_elems(&to->out[j]);
  for (uint32_t j = 0; j < e->n; j++) {
    if (!plain_operand(k, &op[j], &c, j)) c.child[j] = copied(k, &op[j], &c.in[j]);
    if (e->op != TARN_OP_GATHER || j) elements += (double)tarn_layout_elems(&c.in[j]);
  }
  c.price = elements * 1e-9 +
            k->o->hw->launch; /* about an element a nanosecond; there is no alternative to weigh */
  add_cand(k, to->ag, c);
}
static void other_node(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e,
                       const operand *op) {
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[kc].type);
  tarn_layout row = tarn_layout_row_major(t->n, t->dim), over;
  for (uint32_t l = 0; l < g->nlayout; l++)
    if (kg_layout_over(k, &g->layout[l], k->cls.p[kc].to_rep, &over) &&
        tarn_layout_equal(&over, &row)) {
      target to = {.ag = g->first + l, .kcls = kc, .nout = 1, .out = {over}};
      other_cand(k, &to, node, e, op);
    }
}

/* ---- concatenations, copies, roots ---- */
static uint32_t new_class(kgraph *k) { return k->nag++; }
/* Copies of an operand into layout l (over its dims), from whatever group it can be read from but
 * one. */
static void copy_into(kgraph *k, uint32_t ag, const operand *op, const tarn_layout *l,
                      uint32_t but) {
  uint32_t nest = identity_nest(k, k->cls.p[op->kcls].type);
  for (uint32_t i = 0; i < op->nv; i++) {
    const kview *v = &op->v[i];
    if (!op->constant && v->group == but) continue;
    for (uint32_t s = 0; s < (op->constant ? 1 : plain_layouts(&k->group.p[v->group])); s++) {
      kcand c = {.kind = KC_NEST,
                 .node = TARN_NONE,
                 .kcls = op->kcls,
                 .nchild = 1,
                 .nout = 1,
                 .copy = true};
      c.out[0] = *l;
      c.child = TARN_ARRAY(k->cx, uint32_t, 1), c.cterm = TARN_ARRAY(k->cx, uint32_t, 1);
      c.in = TARN_ARRAY(k->cx, tarn_layout, 1);
      c.child[0] = c.cterm[0] = TARN_NONE;
      c.nest = nest_through(k, nest, &v);
      if (c.nest == TARN_NONE) continue;
      if (!op->constant) {
        c.child[0] = k->group.p[v->group].first + s, c.in[0] = k->group.p[v->group].layout[s];
      } else {
        const tarn_type *t = tarn_term_type(k->L, op->term);
        c.cterm[0] = op->term, c.in[0] = tarn_layout_row_major(t->n, t->dim);
      }
      price(k, &c);
      add_cand(k, ag, c);
    }
  }
}
/* An AND/OR class for an operand copied to a place of its own. */
static uint32_t copied(kgraph *k, const operand *op, const tarn_layout *l) {
  uint32_t ag = new_class(k);
  copy_into(k, ag, op, l, TARN_NONE);
  return ag;
}
/* A part that is computed in its place together with what lies around it. */
static void within_larger(kgraph *k, uint32_t ag, const operand *op, const tarn_layout *whole,
                          uint32_t part_of, uint32_t axis, int64_t at, const tarn_layout *part) {
  tarn_layout over;
  for (uint32_t i = 0; i < op->nv && !op->constant; i++) {
    const kgroup *g = &k->group.p[op->v[i].group];
    if (!kg_part_with_more(k, op->kcls, &op->v[i], whole, axis, at, &over)) continue;
    for (uint32_t l = 0; l < g->nlayout; l++) {
      if (g->part_of[l] != part_of || !tarn_layout_equal(&over, &g->layout[l])) continue;
      kcand c = {.kind = KC_ALIAS, .node = TARN_NONE, .kcls = op->kcls, .nchild = 1, .nout = 1};
      c.child = TARN_ARRAY(k->cx, uint32_t, 1), c.cterm = TARN_ARRAY(k->cx, uint32_t, 1);
      c.in = TARN_ARRAY(k->cx, tarn_layout, 1);
      c.child[0] = g->first + l, c.cterm[0] = TARN_NONE, c.in[0] = c.out[0] = *part;
      add_cand(k, ag, c);
    }
  }
}
static void concat_cand(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e,
                        const operand *op) {
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  uint32_t gi = k->cls.p[kc].group, axis = (uint32_t)tarn_payload_get(k->L, e->payload)->ints[0];
  for (uint32_t lo = 0; lo < g->nlayout; lo++) {
    tarn_layout whole;
    if (g->part_of[lo] != TARN_NONE ||
        !kg_layout_over(k, &g->layout[lo], k->cls.p[kc].to_rep, &whole))
      continue;
    kcand c = {.kind = KC_CONCAT, .node = node, .kcls = kc, .nchild = e->n, .nout = 1};
    c.child = TARN_ARRAY(k->cx, uint32_t, e->n), c.cterm = TARN_ARRAY(k->cx, uint32_t, e->n);
    c.in = TARN_ARRAY(k->cx, tarn_layout, e->n);
    c.out[0] = whole;
    int64_t at = 0;
    for (uint32_t j = 0; j < e->n; j++) {
      const kclass *kid = &k->cls.p[op[j].kcls];
      const tarn_type *t = tarn_type_get(k->L, kid->type);
      c.in[j] = kg_part(&whole, t, axis, at), c.cterm[j] = TARN_NONE, c.child[j] = TARN_NONE;
      const kgroup *in = &k->group.p[kid->group];
      uint32_t back = tarn_map_invert(k->L, kid->to_rep, t->ns);
      tarn_layout over;
      for (uint32_t l = 0; l < in->nlayout && back != TARN_NONE && !kid->constant; l++)
        if (in->part_of[l] == gi * KG_MAX_LAYOUTS + lo &&
            kg_layout_over(k, &c.in[j], back, &over) && tarn_layout_equal(&over, &in->layout[l]))
          c.child[j] = in->first + l;
      if (c.child[j] == TARN_NONE) c.child[j] = copied(k, &op[j], &c.in[j]);
      else
        copy_into(k, c.child[j], &op[j], &c.in[j],
                  kid->group); /* a part that is a view of something larger */
      within_larger(k, c.child[j], &op[j], &whole, gi * KG_MAX_LAYOUTS + lo, axis, at, &c.in[j]);
      at += t->dim[axis];
    }
    add_cand(k, g->first + lo, c);
  }
}
static void copies(kgraph *k) {
  for (uint32_t gi = 0; gi < k->group.n; gi++) {
    kgroup *g = &k->group.p[gi];
    if (g->nlayout < 2) continue;
    uint32_t nest = identity_nest(k, g->type);
    for (uint32_t a = 0; a < plain_layouts(g); a++)
      for (uint32_t b = 0; b < g->nlayout; b++) {
        if (a == b) continue;
        kview self = {gi, tarn_map_identity(k->L, g->type)};
        const kview *v = &self;
        operand op = {.kcls = g->rep};
        target to = {.ag = g->first + b, .kcls = g->rep, .nout = 1, .out = {g->layout[b]}};
        nest_cand(k, &to, TARN_NONE, nest, &(reading){1, &op, &v, &a}, NULL, true);
      }
  }
}
static void roots(kgraph *k) {
  k->root_class = TARN_ARRAY(k->cx, uint32_t, k->in->nroot);
  tarn_map *taken = tarn_map_new(k->cx);
  for (uint32_t i = 0; i < k->in->nroot; i++) {
    uint32_t kc = kg_class(k, k->in->root[i]);
    const tarn_type *t = tarn_type_get(k->L, k->cls.p[kc].type);
    kgroup *g = &k->group.p[k->cls.p[kc].group];
    tarn_layout row = tarn_layout_row_major(t->n, t->dim), over;
    operand op = {.kcls = kc, .constant = k->cls.p[kc].constant};
    if (op.constant) {
      if (!read_constant(k, &op))
        tarn_raise(k->cx, TARN_INTERNAL, "output %u: a constant without a term", i);
    } else {
      kview all[KG_MAX_VIEWS];
      uint32_t n = kg_views(k, kc, all);
      for (uint32_t j = 0; j < n; j++)
        if (k->group.p[all[j].group].nlayout) op.v[op.nv++] = all[j];
    }
    uint32_t ag = copied(k, &op, &row);
    k->root_class[i] = ag;
    bool fresh;
    tarn_map_at(taken, k->cls.p[kc].group, &fresh);
    for (uint32_t l = 0; l < g->nlayout && fresh && !g->input && !op.constant; l++) {
      if (g->part_of[l] != TARN_NONE ||
          !kg_layout_over(k, &g->layout[l], k->cls.p[kc].to_rep, &over) ||
          !tarn_layout_equal(&over, &row))
        continue;
      kcand c = {.kind = KC_ALIAS, .node = TARN_NONE, .kcls = kc, .nchild = 1, .nout = 1};
      c.child = TARN_ARRAY(k->cx, uint32_t, 1), c.cterm = TARN_ARRAY(k->cx, uint32_t, 1);
      c.in = TARN_ARRAY(k->cx, tarn_layout, 1);
      c.child[0] = g->first + l, c.cterm[0] = TARN_NONE, c.in[0] = c.out[0] = row;
      add_cand(k, ag, c);
    }
  }
}

/* The nest that a compute or a nest of at most KG_MAX_KIDS children is. */
static uint32_t nest_of(kgraph *k, const tarn_eg_node *e) {
  uint32_t type[KG_MAX_KIDS];
  for (uint32_t j = 0; j < e->n; j++) type[j] = k->cls.p[kg_class(k, e->kids[j])].type;
  return tarn_nest_of(k->L, e->op, e->payload, type, e->n);
}

/* ---- kernels with several results ---- */
/* The class that is result i of tuple class t, and its e-node; TARN_NONE when nothing asks for it.
 */
static uint32_t nth_class(kgraph *k, uint32_t t, uint32_t i, uint32_t *node) {
  tarn_eg_use u = tarn_eg_uses(k->g, k->cls.p[t].cls);
  while (tarn_eg_next_use(k->g, &u)) {
    tarn_eg_node e = tarn_eg_node_at(k->g, u.node);
    if (e.op != TARN_OP_NTH || tarn_payload_get(k->L, e.payload)->ints[0] != (int64_t)i) continue;
    uint32_t c = kg_class(k, u.node);
    *node = u.node;
    if (c != TARN_NONE && !k->cls.p[c].constant) return c;
  }
  return TARN_NONE;
}
/* How many storage orders result i of a tuple can have: one that nothing asks for lies in row-major
 * order. */
static uint32_t result_orders(const kgraph *k, uint32_t cls) {
  return cls == TARN_NONE ? 1 : plain_layouts(&k->group.p[k->cls.p[cls].group]);
}
static bool result_layout(kgraph *k, uint32_t cls, uint32_t type, uint32_t li, bool row_major,
                          tarn_layout *out) {
  const tarn_type *t = tarn_type_get(k->L, type);
  tarn_layout row = tarn_layout_row_major(t->n, t->dim);
  *out = row;
  if (cls == TARN_NONE) return true;
  const kgroup *g = &k->group.p[k->cls.p[cls].group];
  return kg_layout_over(k, &g->layout[li], k->cls.p[cls].to_rep, out) &&
         (!row_major || tarn_layout_equal(&row, out));
}
/* Each choice of a storage order per result is an AND/OR class of its own, from which the results
 * are taken for nothing. */
static void tuple_node(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e,
                       const operand *op) {
  const tarn_type *t = tarn_type_get(k->L, k->cls.p[kc].type);
  uint32_t cls[KG_MAX_OUT], nth[KG_MAX_OUT], li[KG_MAX_OUT] = {0};
  if (t->nelem > KG_MAX_OUT) return;
  for (uint32_t i = 0; i < t->nelem; i++)
    if (!result_orders(k, cls[i] = nth_class(k, kc, i, &nth[i]))) return;
  uint32_t nest = e->op == TARN_OP_NEST ? nest_of(k, e) : TARN_NONE;
  for (uint32_t tries = 0, i = 0; tries < 8 && i < t->nelem; tries++) {
    target to = {.ag = k->nag, .kcls = kc, .nout = t->nelem};
    bool ok = true;
    for (i = 0; i < t->nelem && ok; i++)
      ok = result_layout(k, cls[i], t->elem[i], li[i], nest == TARN_NONE, &to.out[i]);
    if (ok) {
      k->nag++;
      if (nest != TARN_NONE) combos(k, &to, node, nest, e->n, op, NULL, false);
      else other_cand(k, &to, node, e, op);
      for (i = 0; i < t->nelem; i++) {
        if (cls[i] == TARN_NONE) continue;
        kcand n = {
            .kind = KC_NTH, .node = nth[i], .kcls = cls[i], .nchild = 1, .nout = 1, .nth = i};
        n.child = TARN_ARRAY(k->cx, uint32_t, 1), n.cterm = TARN_ARRAY(k->cx, uint32_t, 1);
        n.in = TARN_ARRAY(k->cx, tarn_layout, 1);
        n.child[0] = to.ag, n.cterm[0] = TARN_NONE, n.in[0] = n.out[0] = to.out[i];
        add_cand(k, k->group.p[k->cls.p[cls[i]].group].first + li[i], n);
      }
    }
    for (i = 0; i < t->nelem; i++) {
      if (++li[i] < result_orders(k, cls[i])) break;
      li[i] = 0;
    }
  }
}

/* A nest, or a compute, with as many operands as a kernel may have. */
static bool emittable(kgraph *k, const tarn_eg_node *e) {
  return e->n <= KG_MAX_KIDS && tarn_nest_emittable(k->L, nest_of(k, e));
}

static void of_node(kgraph *k, uint32_t kc, uint32_t node) {
  tarn_eg_node e = tarn_eg_node_at(k->g, node);
  kgroup *g = &k->group.p[k->cls.p[kc].group];
  if (e.op == TARN_OP_INPUT) {
    if (g->nlayout)
      add_cand(k, g->first,
               (kcand){.kind = KC_INPUT, .node = node, .kcls = kc, .payload = e.payload});
    return;
  }
  bool nest = e.op == TARN_OP_COMPUTE || e.op == TARN_OP_NEST;
  if (!kg_produces(e.op) || e.op == TARN_OP_NTH || (nest && !emittable(k, &e))) return;
  operand *op = TARN_ARRAY(k->cx, operand, e.n + 1);
  if (!read_operands(k, kc, &e, op)) return;
  bool other = e.op == TARN_OP_OPAQUE || e.op == TARN_OP_GATHER || e.op == TARN_OP_CALL;
  if (tarn_type_get(k->L, k->cls.p[kc].type)->tuple) {
    if (e.op == TARN_OP_NEST || other) tuple_node(k, kc, node, &e, op);
  } else if (e.op == TARN_OP_CONCAT) {
    concat_cand(k, kc, node, &e, op);
  } else if (other) {
    other_node(k, kc, node, &e, op);
  } else if (nest) {
    all_orders(k, kc, node, nest_of(k, &e), e.n, op, false);
  } else if (e.op == TARN_OP_MATERIALISE) {
    all_orders(k, kc, node, identity_nest(k, k->cls.p[op[0].kcls].type), 1, op, true);
  }
}

void kg_candidates(kgraph *k) {
  uint32_t n = k->cls.n; /* kg_constant may add classes: they have no candidates */
  for (uint32_t c = 0; c < n; c++) {
    const tarn_type *t = tarn_type_get(k->L, k->cls.p[c].type);
    if (k->cls.p[c].constant || (!t->tuple && !k->group.p[k->cls.p[c].group].nlayout)) continue;
    EACH_NODE(k, k->cls.p[c].cls, node) of_node(k, c, node);
  }
  copies(k);
  roots(k);
}
