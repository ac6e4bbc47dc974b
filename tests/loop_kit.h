/* Random kernels for the tests of kernel/, plan/ and price/: nests over buffers in random layouts,
 * and their values in the interpreter. */
#ifndef TARN_TESTS_LOOP_KIT_H
#define TARN_TESTS_LOOP_KIT_H
#include "price/price.h"
#include "tests/transforms.h"

#define KIT_IN 12
typedef struct loop_case {
  tarn_ksig sig;            /* as made; the canonical one is a copy of it */
  tarn_tensor *mem[KIT_IN]; /* flat memory of the children: whole numbers, so that no order of a sum
                               matters */
  tarn_read look[KIT_IN];   /* lookups of the stage that is made */
  uint32_t nlook;
} loop_case;

/* ---- spaces and coordinates ---- */
typedef struct space {
  uint32_t n, nacc;
  int64_t dim[TARN_MAX_DIMS];
} space;

static inline uint32_t axis_of(const space *s, uint32_t d) { return tarn_ix_var(L, d, s->dim); }
/* A coordinate over dims [0, n); affine: without divisions, never below 0. */
static inline uint32_t coordinate(const space *s, uint32_t n, bool affine) {
  if (n == 0 || below(12) == 0) return tarn_ix_const(L, below(3));
  uint32_t a = axis_of(s, (uint32_t)below(n)), b = axis_of(s, (uint32_t)below(n));
  switch (affine ? 3 + below(4) : below(12)) {
  case 0:
    return tarn_ix_add(L, tarn_ix_add(L, a, b, s->dim), tarn_ix_const(L, -1 - below(2)), s->dim);
  case 1:
  case 2: return tarn_ix_add(L, tarn_ix_const(L, 9), tarn_ix_scale(L, a, -1, s->dim), s->dim);
  case 3:
    return tarn_ix_add(L, tarn_ix_scale(L, a, 1 + below(2), s->dim),
                       tarn_ix_scale(L, b, 1 + below(2), s->dim), s->dim);
  case 4: return tarn_ix_scale(L, a, 2 + below(3), s->dim);
  case 7: return tarn_ix_div(L, a, 2 + below(4), s->dim);
  case 8: return tarn_ix_mod(L, a, 2 + below(4), s->dim);
  case 9:
    return tarn_ix_div(L, tarn_ix_add(L, tarn_ix_scale(L, a, 7, s->dim), b, s->dim), 3 + below(4),
                       s->dim);
  case 10:
    return tarn_ix_mod(L, tarn_ix_add(L, tarn_ix_scale(L, a, 4, s->dim), b, s->dim), 2 + below(7),
                       s->dim);
  default: return a;
  }
}
static inline uint32_t whole_number(int64_t v) { return tarn_fx_const(L, TARN_F32, (double)v); }

/* A map over the first n dims to `rank` coordinates. in[0…rank-1] are given (fixed), or chosen so
 * that most are in range. */
static inline uint32_t random_map(const space *s, uint32_t n, uint32_t rank, int64_t *in,
                                  bool fixed, bool affine) {
  tarn_imap m = {.ns = (uint8_t)n, .n = (uint8_t)n, .nin = (uint8_t)rank, .fill = TARN_NONE};
  memcpy(m.dim, s->dim, n * sizeof *m.dim);
  for (uint32_t k = 0; k < rank; k++) {
    int64_t lo, hi;
    m.e[k] = coordinate(s, n, affine);
    tarn_ix_range(L, m.e[k], s->dim, &lo, &hi);
    int64_t cut = affine || below(3) ? 0 : 2;
    if (!fixed) in[k] = hi - cut + 1 > 0 ? hi - cut + 1 : 1;
    m.in[k] = in[k];
    if (lo >= 0 && hi < in[k]) continue;
    m.guard[m.nguard++] = (tarn_guard){m.e[k], 0, in[k]};
    m.fill = whole_number(2 * below(2) - 1);
  }
  return tarn_map_intern(L, &m);
}

static inline tarn_layout random_layout(uint32_t n, const int64_t *dim, bool blocks) {
  uint8_t order[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) order[i] = (uint8_t)i;
  for (uint32_t i = n; i > 1 && below(2); i--) {
    int64_t k = below(i);
    uint8_t t = order[i - 1];
    order[i - 1] = order[k], order[k] = t;
  }
  bool block = blocks && n > 0 && below(3) == 0;
  tarn_layout l =
      tarn_layout_ordered(n, dim, order, (uint8_t)(n ? below(n) : 0), block ? 2 + below(7) : 0);
  l.offset = below(4) ? 0 : below(10);
  return l;
}
static inline tarn_tensor *random_memory(const tarn_layout *l) {
  int64_t n = tarn_layout_elems(l) + l->offset;
  tarn_tensor *t = tarn_tensor_new(cx, TARN_F32, 1, &n);
  for (int64_t i = 0; i < n; i++) tarn_tensor_set(t, i, (tarn_value){.d = (double)(below(7) - 3)});
  return t;
}

/* ---- functions ---- */
/* The place of the first largest element: its result depends on the order of the reduction. */
static inline uint32_t first_largest(void) {
  uint32_t m = tarn_fx_hole(L, 0), at = tarn_fx_hole(L, 1), x = tarn_fx_hole(L, 2),
           i = tarn_fx_hole(L, 3);
  uint32_t more = tarn_fx_op(L, TARN_FX_LT, m, x, 0), more2 = tarn_fx_op(L, TARN_FX_LT, m, x, 0);
  tarn_reducer r = {.kind = TARN_RED_CUSTOM, .dtype = TARN_F32, .ns = 2};
  r.init[0] = tarn_fx_const(L, TARN_F32, -INFINITY), r.init[1] = tarn_fx_iconst(L, TARN_I64, 0);
  r.step[0] = tarn_fx_op(L, TARN_FX_SEL, more, x, m),
  r.step[1] = tarn_fx_op(L, TARN_FX_SEL, more, i, at);
  r.merge[0] = tarn_fx_op(L, TARN_FX_SEL, more2, x, m),
  r.merge[1] = tarn_fx_op(L, TARN_FX_SEL, more2, i, at);
  r.result = tarn_fx_cast(L, TARN_F32, at);
  return tarn_reducer_intern(L, &r);
}
static inline uint32_t random_fn(uint32_t nops, uint32_t nepi, bool reduces, bool ordered) {
  static const tarn_fxop op[] = {TARN_FX_ADD, TARN_FX_SUB, TARN_FX_MUL, TARN_FX_MIN, TARN_FX_MAX};
  static const tarn_red_kind red[] = {TARN_RED_SUM, TARN_RED_SUM, TARN_RED_MAX, TARN_RED_MIN};
  tarn_func f = {.nops = (uint8_t)nops,
                 .nepi = (uint8_t)nepi,
                 .body = tarn_fx_hole(L, 0),
                 .red = TARN_NONE,
                 .epi = TARN_NONE};
  for (uint32_t i = 1; i < nops; i++)
    f.body = tarn_fx_op(L, op[below(5)], f.body, tarn_fx_hole(L, i), 0);
  if (reduces) f.red = ordered ? first_largest() : tarn_reducer_of(L, red[below(4)], TARN_F32);
  if (!nepi) return tarn_fn_intern(L, &f);
  f.epi = tarn_fx_hole(L, 0);
  for (uint32_t i = 1; i <= nepi; i++)
    f.epi = tarn_fx_op(L, op[below(5)], f.epi, tarn_fx_hole(L, i), 0);
  return tarn_fn_intern(L, &f);
}

/* ---- nests ---- */
static inline uint32_t new_child(loop_case *c, uint32_t rank, const int64_t *dim, bool blocks) {
  uint32_t i = c->sig.nin++;
  c->sig.in[i] = random_layout(rank, dim, blocks), c->sig.in_type[i] = TARN_F32,
  c->sig.in_const[i] = below(4) == 0;
  c->mem[i] = random_memory(&c->sig.in[i]);
  return i;
}
/* Names of so many rows, negative ones among them, along up to two of the first n dims: the number
 * of the lookup, counted from 1. */
static inline uint32_t random_lookup(loop_case *c, const space *s, uint32_t n, int64_t rows) {
  tarn_imap m = {.ns = (uint8_t)s->n, .n = (uint8_t)s->n, .fill = TARN_NONE};
  memcpy(m.dim, s->dim, s->n * sizeof *m.dim);
  for (uint32_t k = (uint32_t)below(3); k > 0 && n; k--) {
    uint32_t d = (uint32_t)below(n);
    m.e[m.nin] = axis_of(s, d), m.in[m.nin++] = s->dim[d];
  }
  uint32_t i = new_child(c, m.nin, m.in, false);
  int64_t elems = tarn_tensor_count(c->mem[i]);
  c->sig.in_type[i] = below(2) ? TARN_I64 : TARN_I32;
  c->mem[i] = tarn_tensor_new(cx, c->sig.in_type[i], 1, &elems);
  for (int64_t x = 0; x < elems; x++)
    tarn_tensor_set(c->mem[i], x, (tarn_value){.i = below(2 * rows) - rows});
  c->look[c->nlook++] = (tarn_read){.src = i, .map = tarn_map_intern(L, &m)};
  return c->nlook;
}
/* Rows of a flat table, further apart than a row is long, or not. */
static inline tarn_read random_row(loop_case *c, const space *s, uint32_t n, bool affine) {
  int64_t in, rows = 1 + below(5), pitch = 1 + below(20);
  tarn_imap m = *tarn_imap_get(L, random_map(s, n, 1, &in, false, affine));
  m.in[0] = in += (rows - 1) * pitch;
  tarn_read r = {.map = tarn_map_intern(L, &m), .row = {.pitch = pitch, .extent = rows}};
  int64_t lo, hi;
  tarn_ix_range(L, m.e[0], m.dim, &lo, &hi);
  if (m.nguard || lo < 0 || tarn_imap_get(L, r.map)->nin != 1) r.row = (tarn_row){0};
  r.src = new_child(c, 1, &in, false);
  if (r.row.extent) r.row.by = random_lookup(c, s, n, rows);
  return r;
}
static inline tarn_read random_read(loop_case *c, const space *s, uint32_t n, bool affine) {
  int64_t in[4];
  if (c->sig.nin + 2 < KIT_IN - 4 && below(5) == 0) return random_row(c, s, n, affine);
  uint32_t rank = (uint32_t)below(4), map = random_map(s, n, rank, in, false, affine);
  return (tarn_read){.src = new_child(c, rank, in, !affine), .map = map};
}
/* The reads of a stage, with its lookups behind them. */
static inline void take_reads(loop_case *c, tarn_stage *st, const tarn_read *read, uint32_t n) {
  tarn_read *all = TARN_ARRAY(cx, tarn_read, n + c->nlook);
  memcpy(all, read, n * sizeof *all);
  memcpy(all + n, c->look, c->nlook * sizeof *all);
  st->read = all, st->nlook = c->nlook;
  c->nlook = 0;
}

/* A type with few elements and a read of it: transforms of a tensor, as a model's views are. */
static inline bool viewed_read(loop_case *c, space *s, tarn_read *r) {
  uint32_t from = random_type(), type, map = TARN_NONE, op, payload;
  type = from;
  for (int i = 0; i < 5; i++) {
    if (!random_op(type, &op, &payload)) continue;
    uint32_t to = tarn_type_of(L, op, payload, &type, 1);
    if (to == TARN_NONE || tarn_type_count(tarn_type_get(L, to)) > 2000) continue;
    uint32_t m = tarn_map_of(L, op, payload, type);
    if (map != TARN_NONE) m = tarn_map_compose(L, m, map);
    if (m == TARN_NONE) continue;
    map = m, type = to;
  }
  if (map == TARN_NONE) return false;
  tarn_imap m = *tarn_imap_get(L, map);
  const tarn_type *t = tarn_type_get(L, from);
  if (tarn_type_count(tarn_type_get(L, type)) == 0 || tarn_type_count(t) == 0 || m.n > 7)
    return false;
  s->n = m.n, s->nacc = (uint32_t)below(m.n + 1);
  memcpy(s->dim, m.dim, sizeof m.dim);
  *r = (tarn_read){.src = new_child(c, t->n, t->dim, true), .map = map};
  return true;
}
static inline space random_space(uint32_t own, uint32_t red) {
  space s = {.n = own + red, .nacc = own};
  for (uint32_t d = 0; d < s.n; d++) s.dim[d] = below(6) ? 2 + below(8) : 1;
  return s;
}
static inline void new_output(loop_case *c, uint32_t n, const int64_t *dim) {
  uint32_t o = c->sig.nout++;
  c->sig.out[o] = random_layout(n, dim, true), c->sig.out_type[o] = TARN_F32;
}

static inline void random_single(loop_case *c, bool affine, bool ordered) {
  memset(c, 0, sizeof *c);
  tarn_read *read = TARN_ARRAY(cx, tarn_read, 8);
  space s;
  uint32_t nops = 0, want = 1 + (uint32_t)below(3), nepi = 0;
  if (affine || below(2) || !viewed_read(c, &s, &read[0])) {
    c->sig.nin = 0;
    s = random_space((uint32_t)below(4), (uint32_t)below(3));
    if (ordered && s.n == s.nacc) s.dim[s.n++] = 6;
  } else {
    nops = 1;
  }
  bool reduces = s.n > s.nacc;
  for (; nops < want; nops++) read[nops] = random_read(c, &s, s.n, affine);
  if (reduces) nepi = (uint32_t)below(3);
  for (uint32_t i = 0; i < nepi; i++) read[nops + i] = random_read(c, &s, s.nacc, affine);
  tarn_stage st = {
      .nown = (uint8_t)s.nacc,
      .nred = (uint8_t)(s.n - s.nacc),
      .out = true,
  };
  take_reads(c, &st, read, nops + nepi);
  memcpy(st.own, s.dim, s.nacc * sizeof *st.own);
  memcpy(st.red, s.dim + s.nacc, (s.n - s.nacc) * sizeof *st.red);
  st.fn = random_fn(nops, nepi, reduces, ordered);
  tarn_nest n = {.out_ns = (uint8_t)s.nacc, .nstage = 1, .nchild = c->sig.nin, .stage = &st};
  c->sig.nest = tarn_nest_intern(L, &n);
  new_output(c, s.nacc, s.dim);
}

/* Stages under shared dims; each reads children and earlier stages. */
static inline void random_staged(loop_case *c) {
  memset(c, 0, sizeof *c);
  uint32_t depth = (uint32_t)below(3), nstage = 2 + (uint32_t)below(2);
  tarn_stage *st = TARN_ARRAY(cx, tarn_stage, nstage);
  space p = random_space(depth, 0);
  tarn_nest n = {.depth = (uint8_t)depth, .out_ns = (uint8_t)depth, .nstage = nstage, .stage = st};
  memcpy(n.shared, p.dim, depth * sizeof *p.dim);
  for (uint32_t i = 0; i < nstage; i++) {
    space s = random_space(depth + (uint32_t)below(3), (uint32_t)below(2));
    uint32_t nops = 1 + (uint32_t)below(2);
    memcpy(s.dim, p.dim, depth * sizeof *p.dim);
    bool reduces = s.n > s.nacc;
    uint32_t nepi = reduces ? (uint32_t)below(2) : 0;
    tarn_read *read = TARN_ARRAY(cx, tarn_read, nops + nepi);
    for (uint32_t r = 0; r < nops + nepi; r++) {
      uint32_t over = r < nops ? s.n : s.nacc, from = i ? (uint32_t)below(i) : 0;
      if (i && (below(2) || r == 0))
        read[r] =
            (tarn_read){.stage = true,
                        .src = from,
                        .map = random_map(&s, over, st[from].nown, st[from].own, true, below(2))};
      else read[r] = random_read(c, &s, over, below(2));
    }
    st[i] = (tarn_stage){
        .nown = (uint8_t)(s.nacc - depth),
        .nred = (uint8_t)(s.n - s.nacc),
        .out = i + 1 == nstage || below(3) == 0,
    };
    take_reads(c, &st[i], read, nops + nepi);
    memcpy(st[i].own, s.dim + depth, st[i].nown * sizeof *s.dim);
    memcpy(st[i].red, s.dim + s.nacc, st[i].nred * sizeof *s.dim);
    st[i].fn = random_fn(nops, nepi, reduces, below(4) == 0);
    if (st[i].out) new_output(c, s.nacc, s.dim);
  }
  n.nchild = c->sig.nin;
  c->sig.nest = tarn_nest_intern(L, &n);
}

/* ---- values ---- */
static inline void place(tarn_tensor *flat, const tarn_layout *l, tarn_tensor *t, bool store) {
  int64_t idx[TARN_MAX_DIMS] = {0}, n = tarn_tensor_count(t);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = tarn_layout_at(l, idx);
    MUST(at >= 0 && at < tarn_tensor_count(flat));
    if (store) tarn_tensor_set(flat, at, tarn_tensor_get(t, i));
    else tarn_tensor_set(t, i, tarn_tensor_get(flat, at));
    step_index(l->n, l->dim, idx);
  }
}
/* Runs the nest of k over the case's memory; out: flat memory of the outputs, made by the caller.
 */
static inline void run_signature(const loop_case *c, const tarn_ksig *k, tarn_tensor **out) {
  tarn_binding bind[KIT_IN];
  tarn_term kid[KIT_IN], root[4];
  for (uint32_t i = 0; i < k->nin; i++) {
    tarn_tensor *t = tarn_tensor_new(cx, k->in_type[i], k->in[i].n, k->in[i].dim);
    place(c->mem[i], &k->in[i], t, false);
    bind[i] = (tarn_binding){tarn_format(cx, "in%u", i), t};
    kid[i] = tarn_input(L, bind[i].name, tarn_type_tensor(L, t->dtype, t->n, t->n, t->dim));
  }
  tarn_term all = tarn_mk(L, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, k->nest), kid, k->nin);
  tarn_tensor *got[4];
  for (uint32_t o = 0; o < k->nout; o++) {
    int64_t which = o;
    root[o] =
        k->nout == 1 ? all : tarn_mk(L, TARN_OP_NTH, tarn_payload_ints(L, 1, &which), &all, 1);
  }
  tarn_eval(L, root, k->nout, bind, k->nin, TARN_STRICT, NULL, got);
  for (uint32_t o = 0; o < k->nout; o++) place(out[o], &k->out[o], got[o], true);
}
static inline const char *nest_text(uint32_t nest) {
  tarn_buf b = {.cx = cx};
  tarn_payload_print(L, &b, TARN_OP_NEST, tarn_payload_of(L, TARN_P_NEST, nest));
  return b.p;
}

/* ---- one case as well in another shape: the same work ---- */
/* Own dim d (of a single stage) said as two, the inner one of extent f; the output's layout
 * follows. */
static inline bool split_own(const tarn_ksig *a, uint32_t d, int64_t f, tarn_ksig *b) {
  tarn_nest n = *tarn_nest_get(L, a->nest);
  tarn_stage s = n.stage[0];
  if (a->out[0].block || s.nown + s.nred + 1u > TARN_MAX_DIMS) return false;
  int64_t dim[TARN_MAX_DIMS] = {0};
  uint32_t sub[TARN_MAX_DIMS], all = (uint32_t)s.nown + s.nred, at = 0, from[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < all; i++) {
    int64_t e = i < s.nown ? s.own[i] : s.red[i - s.nown];
    from[i] = at;
    if (i == d) dim[at++] = e / f, dim[at++] = f;
    else dim[at++] = e;
  }
  for (uint32_t i = 0; i < all; i++) {
    sub[i] = tarn_ix_var(L, from[i], dim);
    if (i == d)
      sub[i] =
          tarn_ix_add(L, tarn_ix_scale(L, sub[i], f, dim), tarn_ix_var(L, from[i] + 1, dim), dim);
  }
  uint32_t reads = tarn_stage_reads(L, &s);
  tarn_read *read = tarn_copy(cx, s.read, reads * sizeof *read);
  for (uint32_t r = 0; r < reads; r++) {
    tarn_imap m = *tarn_imap_get(L, read[r].map);
    for (uint32_t i = 0; i < m.nin; i++) m.e[i] = tarn_ix_subst(L, m.e[i], sub, dim);
    for (uint32_t g = 0; g < m.nguard; g++) m.guard[g].e = tarn_ix_subst(L, m.guard[g].e, sub, dim);
    m.n = m.ns = (uint8_t)(m.n + 1);
    memcpy(m.dim, dim, m.n * sizeof *dim);
    read[r].map = tarn_map_intern(L, &m);
  }
  *b = *a;
  tarn_layout *l = &b->out[0];
  memset(s.own, 0, sizeof s.own);
  for (uint32_t i = 0; i < (uint32_t)s.nown + 1; i++) s.own[i] = l->dim[i] = dim[i];
  for (uint32_t i = 0; i < s.nown; i++) l->stride[from[i]] = a->out[0].stride[i] * (i == d ? f : 1);
  l->stride[d + 1] = a->out[0].stride[d];
  l->n++, s.nown++, s.read = read;
  n.stage = &s, n.out_ns = s.nown;
  b->nest = tarn_nest_intern(L, &n);
  return true;
}
#endif
