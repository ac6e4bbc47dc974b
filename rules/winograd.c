/* A 3x3 convolution of stride 1 by fewer multiplications: F(m x m, 3 x 3) of Winograd (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", CVPR 2016), Y = A'[ (G w G') . (B' d B) ]A for tiles d of m+2 by m+2 inputs that overlap
 * by two.
 *
 * Any sum of products qualifies in which one operand depends on two own loops and two reduce loops of 3 only by their sums,
 * row + krow and column + kcolumn, and the other, a constant, depends on neither own loop: layout, padding and what else is
 * summed over do not matter.  It becomes three nests and a constant:
 *   V[u v … tiles … c]   rows, then columns of each tile transformed, in two stages; a block of channels at a time
 *   U[u v … c o]         the weights transformed (constant)
 *   M[u v … tiles … o]   sums over c of V·U
 *   Y                    columns, then rows transformed back, and the epilogue
 * Tiles that pass the end compute what nobody reads; the result is a view of Y. */
#include "rules/build.h"
#include <string.h>

typedef struct algorithm {
  uint32_t m;                /* outputs of a tile along a dim */
  const double *bt, *g, *at; /* (m+2)x(m+2), (m+2)x3, m x(m+2) */
} algorithm;

static const algorithm by_two = {2, (const double[]){1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1},
                                 (const double[]){1, 0, 0, 0.5, 0.5, 0.5, 0.5, -0.5, 0.5, 0, 0, 1},
                                 (const double[]){1, 1, 1, 0, 0, 1, -1, -1}};
static const algorithm by_four = {4, (const double[]){4, 0,  -5, 0, 1, 0, 0, -4, -4, 1,  1, 0, 0, 4, -4, -1, 1, 0,
                                                      0, -2, -1, 2, 1, 0, 0, 2,  -1, -2, 1, 0, 0, 4, 0,  -5, 0, 1},
                                  (const double[]){1.0 / 4, 0, 0, -1.0 / 6, -1.0 / 6, -1.0 / 6, -1.0 / 6, 1.0 / 6, -1.0 / 6,
                                                   1.0 / 24, 1.0 / 12, 1.0 / 6, 1.0 / 24, -1.0 / 12, 1.0 / 6, 0, 0, 1},
                                  (const double[]){1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1}};

enum { BLOCK = 16 }; /* channels that are transformed together: a cache line of them */

typedef struct wino {
  rsite *s;
  tarn_lang *L;
  const algorithm *g;
  kern k;
  const kstage *st;            /* of k */
  uint32_t data, weight;       /* reads */
  uint32_t row, col;           /* own loops */
  uint32_t krow, kcol;         /* reduce loops, counted from the own ones on */
  uint32_t by_data, by_weight; /* loops that the operands depend on, these four left out */
  int64_t th, tw;              /* tiles */
} wino;

/* ---------------------------------------------------------------- what qualifies */

/* Does the expression depend on loops o and r by their sum alone? */
static bool by_sum(const tarn_lang *L, uint32_t e, uint32_t o, uint32_t r) {
  const tarn_ix *x = tarn_ix_get(L, e);
  for (uint32_t i = 0; i < x->n; i++)
    if (x->t[i].kind != TARN_IX_VAR && (tarn_ix_dims(L, x->t[i].arg) & (1u << o | 1u << r))) return false;
  return tarn_ix_coef(L, e, o) == tarn_ix_coef(L, e, r);
}

static bool slides(const tarn_lang *L, uint32_t map, uint32_t o, uint32_t r) {
  const tarn_imap *m = tarn_imap_get(L, map);
  if (!(map_uses(L, map) >> o & 1)) return false;
  for (uint32_t i = 0; i < m->nin; i++)
    if (!by_sum(L, m->e[i], o, r)) return false;
  for (uint32_t i = 0; i < m->nguard; i++)
    if (!by_sum(L, m->guard[i].e, o, r)) return false;
  return true;
}

/* The sum of products of f32, one factor constant. */
static bool is_product(wino *w) {
  const kstage *st = w->st;
  if (st->reducer == TARN_NONE || st->nb != 2) return false;
  const tarn_reducer *r = tarn_reducer_get(w->L, st->reducer);
  const tarn_fx *x = tarn_fx_get(w->L, st->body);
  if (r->kind != TARN_RED_SUM || r->dtype != TARN_F32 || x->op != TARN_FX_MUL) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (tarn_fx_get(w->L, x->kid[i])->op != TARN_FX_HOLE || st->read[i].stage ||
        kern_leaf_type(&w->k, st->read[i].src)->dtype != TARN_F32)
      return false;
  if (x->kid[0] == x->kid[1]) return false;
  w->weight = site_const(w->s, w->k.leaf[st->read[0].src]) ? 0 : 1;
  w->data = 1 - w->weight;
  return site_const(w->s, w->k.leaf[st->read[w->weight].src]) && !site_const(w->s, w->k.leaf[st->read[w->data].src]);
}

/* The window's loops, the outer one first. */
static bool find_window(wino *w) {
  const kstage *st = w->st;
  uint32_t found = 0, map = st->read[w->data].map, fixed = map_uses(w->L, st->read[w->weight].map);
  for (uint32_t o = 0; o < st->nown; o++)
    for (uint32_t r = st->nown; r < st->nown + st->nred; r++) {
      if (st->red[r - st->nown] != 3 || (fixed >> o & 1) || st->own[o] < w->g->m || !slides(w->L, map, o, r)) continue;
      if (found == 2 || (found && w->krow == r)) return false;
      *(found ? &w->col : &w->row) = o, *(found ? &w->kcol : &w->krow) = r;
      found++;
      break;
    }
  return found == 2;
}

static bool qualifies(wino *w) {
  w->st = &w->k.stage[0];
  if (!kern_single(&w->k) || w->k.depth || !is_product(w) || !find_window(w)) return false;
  uint32_t out = ~(1u << w->row | 1u << w->col | 1u << w->krow | 1u << w->kcol);
  w->by_data = map_uses(w->L, w->st->read[w->data].map) & out;
  w->by_weight = map_uses(w->L, w->st->read[w->weight].map) & out;
  w->th = (w->st->own[w->row] + w->g->m - 1) / w->g->m;
  w->tw = (w->st->own[w->col] + w->g->m - 1) / w->g->m;
  return (w->by_data & w->by_weight) >> w->st->nown; /* a sum over something beside the window */
}

/* ---------------------------------------------------------------- loops and maps of the new nests */

typedef struct space {
  tarn_lang *L;
  uint32_t n;
  int64_t dim[2 * TARN_MAX_DIMS];
} space;

static uint32_t loop(space *s, int64_t extent) {
  s->dim[s->n] = extent;
  return s->n++;
}
static uint32_t var(const space *s, uint32_t i) { return tarn_ix_var(s->L, i, s->dim); }
/* k·i + j */
static uint32_t scaled(const space *s, int64_t k, uint32_t i, uint32_t j) {
  return tarn_ix_add(s->L, tarn_ix_scale(s->L, var(s, i), k, s->dim), var(s, j), s->dim);
}

/* From the loops of s to a tensor (or stage) with these extents. */
static uint32_t map_to(const space *s, uint32_t n, const int64_t *in, const uint32_t *e) {
  tarn_imap m = {.n = (uint8_t)s->n, .ns = (uint8_t)s->n, .nin = (uint8_t)n, .fill = TARN_NONE};
  memcpy(m.dim, s->dim, s->n * sizeof *s->dim);
  memcpy(m.in, in, n * sizeof *in);
  memcpy(m.e, e, n * sizeof *e);
  return tarn_map_intern(s->L, &m);
}

/* A read over the old loops in terms of new ones: old loop i is sub[i].  Beyond `end` of two of them, `fill`. */
typedef struct moved {
  uint32_t sub[2 * TARN_MAX_DIMS], nend, which[2];
  int64_t end[2];
} moved;
static uint32_t move(const space *s, const moved *v, uint32_t map, tarn_dtype t) {
  tarn_imap m = *tarn_imap_get(s->L, map);
  uint32_t uses = map_uses(s->L, map);
  for (uint32_t i = 0; i < m.nin; i++) m.e[i] = tarn_ix_subst(s->L, m.e[i], v->sub, s->dim);
  for (uint32_t i = 0; i < m.nguard; i++) m.guard[i].e = tarn_ix_subst(s->L, m.guard[i].e, v->sub, s->dim);
  for (uint32_t i = 0; i < v->nend; i++) {
    if (!(uses >> v->which[i] & 1)) continue;
    if (m.nguard == TARN_MAX_DIMS) return TARN_NONE;
    if (m.nguard == 0) m.fill = tarn_fx_const(s->L, t, 0);
    m.guard[m.nguard++] = (tarn_guard){v->sub[v->which[i]], 0, v->end[i]};
  }
  m.n = m.ns = (uint8_t)s->n;
  memset(m.dim, 0, sizeof m.dim);
  memcpy(m.dim, s->dim, s->n * sizeof *s->dim);
  return tarn_map_intern_derived(s->L, &m);
}

static int64_t extent(const wino *w, uint32_t old) {
  return old < w->st->nown ? w->st->own[old] : w->st->red[old - w->st->nown];
}
/* The old loops of a set in order; their number. */
static uint32_t loops_in(uint32_t set, uint32_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < 32; i++)
    if (set >> i & 1) out[n++] = i;
  return n;
}
static int64_t block_of(int64_t n) { return n % BLOCK ? n : BLOCK; }
static uint32_t own_mask(const wino *w) { return (1u << w->st->nown) - 1; }

/* ---------------------------------------------------------------- parts of a nest */

static kern *new_kern(const wino *w, const space *shared) {
  kern *k = TARN_NEW(tarn_lang_ctx(w->L), kern);
  k->e = w->k.e, k->L = w->L, k->depth = shared->n;
  memcpy(k->shared, shared->dim, shared->n * sizeof *shared->dim);
  return k;
}
/* The next stage of k: a sum of products over the loops of s, the last nred of them reduced. */
static kstage *new_stage(const wino *w, kern *k, const space *s, uint32_t nred) {
  kstage *st = &k->stage[k->nstage++];
  st->nown = s->n - k->depth - nred, st->nred = nred;
  memcpy(st->own, s->dim + k->depth, st->nown * sizeof *st->own);
  memcpy(st->red, s->dim + s->n - nred, nred * sizeof *st->red);
  st->body = tarn_fx_op(w->L, TARN_FX_MUL, tarn_fx_hole(w->L, 0), tarn_fx_hole(w->L, 1), 0);
  st->reducer = tarn_reducer_of(w->L, TARN_RED_SUM, TARN_F32);
  st->epi = st->space = TARN_NONE;
  return st;
}
static bool read_leaf(kern *k, kstage *st, uint32_t id, uint32_t map) {
  uint32_t leaf = id == TARN_NONE || map == TARN_NONE ? TARN_NONE : kern_leaf(k, id);
  return leaf != TARN_NONE && kern_add_read(st, true, (tarn_read){false, leaf, map}) != TARN_NONE;
}
static bool read_stage(kstage *st, uint32_t stage, uint32_t map) {
  return kern_add_read(st, true, (tarn_read){true, stage, map}) != TARN_NONE;
}

/* A matrix of numbers, read at (row, column) by loops of s. */
static bool read_matrix(const wino *w, kern *k, kstage *st, const double *v, int64_t rows, int64_t columns, const space *s,
                        uint32_t row, uint32_t column) {
  const rhost *h = w->s->e->host;
  int64_t dim[2] = {rows, columns};
  tarn_tensor *t = tarn_tensor_new(tarn_lang_ctx(w->L), TARN_F32, 2, dim);
  for (int64_t i = 0; i < rows * columns; i++) tarn_tensor_set(t, i, (tarn_value){.d = v[i]});
  tarn_payload p = {.kind = TARN_P_CONST, .name = "winograd", .type = tarn_type_tensor(w->L, TARN_F32, 2, 2, dim), .tensor = t};
  uint32_t id = h->mk(h->user, TARN_OP_CONST, tarn_payload_intern(w->L, &p), NULL, 0);
  return read_leaf(k, st, id, map_to(s, 2, dim, (uint32_t[]){var(s, row), var(s, column)}));
}
static uint32_t view(const wino *w, uint32_t map, uint32_t id) {
  const rhost *h = w->s->e->host;
  return id == TARN_NONE ? id : h->mk(h->user, TARN_OP_VIEW, tarn_payload_of(w->L, TARN_P_MAP, map), &id, 1);
}

/* ---------------------------------------------------------------- the weights */

/* U over (u, v, loops of the weights). */
static uint32_t weights(const wino *w) {
  const tarn_read *r = &w->st->read[w->weight];
  uint32_t list[TARN_MAX_DIMS], n = loops_in(w->by_weight, list), e[TARN_MAX_DIMS], a = w->g->m + 2;
  int64_t in[TARN_MAX_DIMS];
  /* as they are, over (krow, kcol, loops) */
  space s = {.L = w->L};
  moved v = {0};
  for (uint32_t i = 0; i < w->st->nown + w->st->nred; i++) v.sub[i] = tarn_ix_const(w->L, 0);
  loop(&s, 3), loop(&s, 3);
  for (uint32_t i = 0; i < n; i++) loop(&s, extent(w, list[i]));
  v.sub[w->krow] = var(&s, 0), v.sub[w->kcol] = var(&s, 1);
  for (uint32_t i = 0; i < n; i++) v.sub[list[i]] = var(&s, 2 + i);
  uint32_t map = move(&s, &v, r->map, TARN_F32), id = map == TARN_NONE ? map : view(w, map, w->k.leaf[r->src]);
  memcpy(in, s.dim, s.n * sizeof *in);
  for (uint32_t side = 0; side < 2; side++) { /* rows: (u, kcol, …), then columns: (u, v, …) */
    space x = {.L = w->L}, none = {.L = w->L};
    loop(&x, a), loop(&x, side ? a : 3);
    for (uint32_t i = 0; i < n; i++) loop(&x, extent(w, list[i]));
    uint32_t q = loop(&x, 3);
    kern *k = new_kern(w, &none);
    kstage *st = new_stage(w, k, &x, 1);
    k->out_ns = x.n - 1, st->out = true;
    e[0] = var(&x, side ? 0 : q), e[1] = var(&x, side ? q : 1);
    for (uint32_t i = 0; i < n; i++) e[2 + i] = var(&x, 2 + i);
    if (!read_leaf(k, st, id, map_to(&x, 2 + n, in, e)) || !read_matrix(w, k, st, w->g->g, a, 3, &x, side, q)) return TARN_NONE;
    id = kern_store(k);
    in[0] = a, in[1] = side ? a : 3;
  }
  return id;
}

/* ---------------------------------------------------------------- a kernel over rows of tiles */

/* Loops that its stages share: own loops of the data, rows of tiles, blocks of channels (one block when it does all). */
typedef struct rows {
  kern *k;
  space s;
  uint32_t ty, c1;
} rows;

static rows new_rows(const wino *w, int64_t blocks) {
  uint32_t own[TARN_MAX_DIMS], n = loops_in(w->by_data & own_mask(w), own);
  rows r = {.s = {.L = w->L}};
  for (uint32_t i = 0; i < n; i++) loop(&r.s, extent(w, own[i]));
  r.ty = loop(&r.s, w->th), r.c1 = loop(&r.s, blocks);
  r.k = new_kern(w, &r.s);
  return r;
}
/* Loops of a list after its last, which is in blocks: the first of them is returned. */
static uint32_t loops_of(const wino *w, space *s, const uint32_t *list, uint32_t n, int64_t block) {
  uint32_t first = s->n;
  for (uint32_t i = 0; i + 1 < n; i++) loop(s, extent(w, list[i]));
  loop(s, block);
  return first;
}
/* The stage's own dims, for a stage that reads it. */
static uint32_t own_dims(const rows *r, uint32_t stage, int64_t *in) {
  const kstage *st = &r->k->stage[stage];
  memcpy(in, st->own, st->nown * sizeof *in);
  return st->nown;
}

/* The last reduce loop of the data: its channels. */
static uint32_t data_loops(const wino *w, uint32_t *red) { return loops_in(w->by_data & ~own_mask(w), red); }
/* Own loops that the data does not depend on; the last of them is in blocks. */
static uint32_t other_loops(const wino *w, uint32_t *list) {
  return loops_in(own_mask(w) & ~w->by_data & ~(1u << w->row | 1u << w->col), list);
}

/* R[u, x, …, c0] = sum over i of B'[u, i] d[m ty + i, x, …]
 * V[u, v, tx, …, c0] = sum over j of B'[v, j] R[u, m tx + j, …] */
static bool add_tiles(const wino *w, rows *r, int64_t block) {
  uint32_t own[TARN_MAX_DIMS], red[TARN_MAX_DIMS], e[TARN_MAX_DIMS], m = w->g->m, a = m + 2;
  uint32_t nown = loops_in(w->by_data & own_mask(w), own), nred = data_loops(w, red), last = red[nred - 1];
  int64_t in[TARN_MAX_DIMS];
  space q = r->s;
  moved v = {.nend = 2, .which = {w->row, w->col}, .end = {w->st->own[w->row] + 2, w->st->own[w->col] + 2}};
  uint32_t u = loop(&q, a), x = loop(&q, m * w->tw + 2), first = loops_of(w, &q, red, nred, block), i = loop(&q, a);
  for (uint32_t j = 0; j < w->st->nown + w->st->nred; j++) v.sub[j] = tarn_ix_const(w->L, 0);
  for (uint32_t j = 0; j < nown; j++) v.sub[own[j]] = var(&q, j);
  for (uint32_t j = 0; j + 1 < nred; j++) v.sub[red[j]] = var(&q, first + j);
  v.sub[last] = scaled(&q, block, r->c1, first + nred - 1);
  v.sub[w->row] = scaled(&q, m, r->ty, i), v.sub[w->col] = var(&q, x);
  kstage *st = new_stage(w, r->k, &q, 1);
  const tarn_read *d = &w->st->read[w->data];
  if (!read_leaf(r->k, st, w->k.leaf[d->src], move(&q, &v, d->map, TARN_F32)) ||
      !read_matrix(w, r->k, st, w->g->bt, a, a, &q, u, i))
    return false;
  q = r->s;
  u = loop(&q, a), x = loop(&q, a);
  uint32_t tx = loop(&q, w->tw);
  first = loops_of(w, &q, red, nred, block), i = loop(&q, a);
  e[0] = var(&q, u), e[1] = scaled(&q, m, tx, i);
  for (uint32_t l = 0; l < nred; l++) e[2 + l] = var(&q, first + l);
  uint32_t n = own_dims(r, 0, in);
  st = new_stage(w, r->k, &q, 1);
  return read_stage(st, 0, map_to(&q, n, in, e)) && read_matrix(w, r->k, st, w->g->bt, a, a, &q, x, i);
}

/* S[p, v, tx, …, c0] = sum over u of A'[p, u] M[u, v, tx, …], M a child or the last stage
 * Y[p, tx, q, …, c0] = sum over v of A'[q, v] S[p, v, tx, …], and the epilogue */
static bool add_results(const wino *w, rows *r, int64_t block, uint32_t product) {
  uint32_t mine[TARN_MAX_DIMS], rest[TARN_MAX_DIMS], m = w->g->m, a = m + 2, e[TARN_MAX_DIMS], n = 0;
  uint32_t nmine = loops_in(w->by_data & own_mask(w), mine), nrest = other_loops(w, rest);
  uint32_t from = r->k->nstage;
  int64_t in[TARN_MAX_DIMS];
  space q = r->s;
  uint32_t p = loop(&q, m), v = loop(&q, a), tx = loop(&q, w->tw), first = loops_of(w, &q, rest, nrest, block), u = loop(&q, a);
  e[n] = var(&q, u), in[n++] = a;
  e[n] = var(&q, v), in[n++] = a;
  for (uint32_t i = 0; i < nmine && !from; i++) e[n] = var(&q, i), in[n++] = extent(w, mine[i]);
  if (!from) e[n] = var(&q, r->ty), in[n++] = w->th;
  e[n] = var(&q, tx), in[n++] = w->tw;
  for (uint32_t i = 0; i < nrest; i++) {
    if (!(w->by_weight >> rest[i] & 1)) continue;
    in[n] = extent(w, rest[i]);
    e[n++] = i + 1 < nrest ? var(&q, first + i) : scaled(&q, block, r->c1, first + i);
  }
  kstage *st = new_stage(w, r->k, &q, 1);
  uint32_t map = map_to(&q, n, in, e);
  if (!(from ? read_stage(st, from - 1, map) : read_leaf(r->k, st, product, map)) ||
      !read_matrix(w, r->k, st, w->g->at, m, a, &q, p, u))
    return false;
  space y = r->s;
  p = loop(&y, m), tx = loop(&y, w->tw);
  uint32_t column = loop(&y, m);
  first = loops_of(w, &y, rest, nrest, block);
  moved o = {.nend = 2, .which = {w->row, w->col}, .end = {w->st->own[w->row], w->st->own[w->col]}};
  for (uint32_t i = 0; i < nmine; i++) o.sub[mine[i]] = var(&y, i);
  for (uint32_t i = 0; i + 1 < nrest; i++) o.sub[rest[i]] = var(&y, first + i);
  if (nrest) o.sub[rest[nrest - 1]] = scaled(&y, block, r->c1, first + nrest - 1);
  o.sub[w->row] = scaled(&y, m, r->ty, p), o.sub[w->col] = scaled(&y, m, tx, column);
  q = y;
  v = loop(&q, a);
  st = new_stage(w, r->k, &q, 1);
  e[0] = var(&q, p), e[1] = var(&q, v), e[2] = var(&q, tx);
  for (uint32_t i = first; i < y.n; i++) e[3 + i - first] = var(&q, i);
  n = own_dims(r, from, in);
  st->out = true, r->k->out_ns = y.n;
  if (!read_stage(st, from, map_to(&q, n, in, e)) || !read_matrix(w, r->k, st, w->g->at, m, a, &q, column, v)) return false;
  st->epi = w->st->epi;
  for (uint32_t i = 0; i < w->st->ne; i++) {
    const tarn_read *x = &w->st->read[w->st->nb + i];
    uint32_t leaf = kern_leaf(r->k, w->k.leaf[x->src]), to = move(&y, &o, x->map, kern_leaf_type(&w->k, x->src)->dtype);
    if (leaf == TARN_NONE || to == TARN_NONE || kern_add_read(st, false, (tarn_read){false, leaf, to}) == TARN_NONE)
      return false;
  }
  return true;
}

/* The old result as a view of the last stage's. */
static uint32_t old_result(const wino *w, const rows *r, int64_t block) {
  uint32_t mine[TARN_MAX_DIMS], rest[TARN_MAX_DIMS], m = w->g->m, e[TARN_MAX_DIMS], n = 0;
  uint32_t nmine = loops_in(w->by_data & own_mask(w), mine), nrest = other_loops(w, rest), last = nrest ? rest[nrest - 1] : 0;
  const kstage *st = kern_last(r->k);
  int64_t in[2 * TARN_MAX_DIMS];
  space t = {.L = w->L};
  for (uint32_t i = 0; i < w->st->nown; i++) loop(&t, w->st->own[i]);
  for (uint32_t i = 0; i < nmine; i++) e[n++] = var(&t, mine[i]);
  e[n++] = tarn_ix_div(w->L, var(&t, w->row), m, t.dim);
  e[n++] = nrest ? tarn_ix_div(w->L, var(&t, last), block, t.dim) : tarn_ix_const(w->L, 0);
  e[n++] = tarn_ix_mod(w->L, var(&t, w->row), m, t.dim);
  e[n++] = tarn_ix_div(w->L, var(&t, w->col), m, t.dim);
  e[n++] = tarn_ix_mod(w->L, var(&t, w->col), m, t.dim);
  for (uint32_t i = 0; i + 1 < nrest; i++) e[n++] = var(&t, rest[i]);
  e[n++] = nrest ? tarn_ix_mod(w->L, var(&t, last), block, t.dim) : tarn_ix_const(w->L, 0);
  kern_dims(r->k, st, false, in);
  return map_to(&t, n, in, e);
}

/* ---------------------------------------------------------------- the products */

/* The operands' maps from the loops of s; at: old loops to those. data_stage: V is the last stage. */
static bool read_operands(const wino *w, kern *k, kstage *st, const space *s, const uint32_t *at, uint32_t u, uint32_t data,
                          uint32_t weight) {
  uint32_t list[TARN_MAX_DIMS], e[TARN_MAX_DIMS], a = w->g->m + 2, from = k->nstage - 1;
  int64_t in[TARN_MAX_DIMS];
  for (uint32_t side = 0; side < 2; side++) {
    bool local = !side && from;
    uint32_t m = 2, n = loops_in((side ? w->by_weight : w->by_data) & own_mask(w), list);
    e[0] = var(s, u), e[1] = var(s, u + 1), in[0] = in[1] = a;
    for (uint32_t i = 0; i < n && !local; i++) e[m] = var(s, at[list[i]]), in[m++] = extent(w, list[i]);
    if (!side && !local) e[m] = var(s, at[w->row]), in[m++] = w->th;
    if (!side) e[m] = var(s, at[w->col]), in[m++] = w->tw;
    n = loops_in((side ? w->by_weight : w->by_data) & ~own_mask(w), list);
    for (uint32_t i = 0; i < n; i++) e[m] = var(s, at[list[i]]), in[m++] = extent(w, list[i]);
    if (!side && !local) { /* channels in blocks */
      uint32_t c = e[m - 1];
      int64_t block = block_of(in[m - 1]);
      in[m] = block, in[m - 1] /= block;
      e[m - 1] = tarn_ix_div(w->L, c, block, s->dim), e[m++] = tarn_ix_mod(w->L, c, block, s->dim);
    }
    uint32_t map = map_to(s, m, in, e);
    if (!(local ? read_stage(st, from - 1, map) : read_leaf(k, st, side ? weight : data, map))) return false;
  }
  return true;
}

/* M over (u, v, own loops of the data, tile row, tile column, the weights' other own loops), of V and U. */
static uint32_t products(const wino *w, uint32_t data, uint32_t weight) {
  uint32_t list[TARN_MAX_DIMS], a = w->g->m + 2, at[2 * TARN_MAX_DIMS] = {0}, mine = w->by_data & own_mask(w), n;
  space s = {.L = w->L}, none = {.L = w->L};
  loop(&s, a), loop(&s, a);
  n = loops_in(mine, list);
  for (uint32_t i = 0; i < n; i++) at[list[i]] = loop(&s, extent(w, list[i]));
  at[w->row] = loop(&s, w->th), at[w->col] = loop(&s, w->tw);
  n = loops_in(w->by_weight & own_mask(w) & ~mine, list);
  for (uint32_t i = 0; i < n; i++) at[list[i]] = loop(&s, extent(w, list[i]));
  n = loops_in((w->by_data | w->by_weight) & ~own_mask(w), list);
  for (uint32_t i = 0; i < n; i++) at[list[i]] = loop(&s, extent(w, list[i]));
  kern *k = new_kern(w, &none);
  kstage *st = new_stage(w, k, &s, n);
  st->out = true, k->out_ns = s.n - n;
  return read_operands(w, k, st, &s, at, 0, data, weight) ? kern_store(k) : TARN_NONE;
}

/* M[u, v, tx, …] as a stage after V. */
static bool add_products(const wino *w, rows *r, uint32_t weight) {
  uint32_t list[TARN_MAX_DIMS], a = w->g->m + 2, at[2 * TARN_MAX_DIMS] = {0}, own[TARN_MAX_DIMS];
  space s = r->s;
  uint32_t u = loop(&s, a), n = loops_in(w->by_data & own_mask(w), own);
  loop(&s, a);
  for (uint32_t i = 0; i < n; i++) at[own[i]] = i;
  at[w->row] = r->ty, at[w->col] = loop(&s, w->tw);
  n = loops_in(w->by_weight & own_mask(w) & ~w->by_data, list);
  for (uint32_t i = 0; i < n; i++) at[list[i]] = loop(&s, extent(w, list[i]));
  n = loops_in((w->by_data | w->by_weight) & ~own_mask(w), list);
  for (uint32_t i = 0; i < n; i++) at[list[i]] = loop(&s, extent(w, list[i]));
  kstage *st = new_stage(w, r->k, &s, n);
  return read_operands(w, r->k, st, &s, at, u, TARN_NONE, weight);
}

/* V over (u, v, own loops of the data, tile row, tile column, reduce loops of the data), the last of these in blocks, so
 * that it has as many dims as what the kernel writes and can be stored in this order (extract/kgroup.c). */
static uint32_t as_operand(const wino *w, const rows *r, uint32_t id) {
  uint32_t red[TARN_MAX_DIMS], e[TARN_MAX_DIMS], nred = data_loops(w, red), nown = r->s.n - 2, n = 0, a = w->g->m + 2;
  int64_t in[2 * TARN_MAX_DIMS];
  space t = {.L = w->L};
  loop(&t, a), loop(&t, a);
  for (uint32_t l = 0; l < nown + 1; l++) loop(&t, r->s.dim[l]);
  loop(&t, w->tw);
  for (uint32_t l = 0; l + 1 < nred; l++) loop(&t, extent(w, red[l]));
  loop(&t, r->s.dim[r->c1]), loop(&t, extent(w, red[nred - 1]) / r->s.dim[r->c1]);
  for (uint32_t l = 0; l < nown + 1; l++) e[n++] = var(&t, 2 + l);
  e[n++] = var(&t, t.n - 2), e[n++] = var(&t, 0), e[n++] = var(&t, 1), e[n++] = var(&t, 3 + nown);
  for (uint32_t l = 0; l + 1 < nred; l++) e[n++] = var(&t, 4 + nown + l);
  e[n++] = var(&t, t.n - 1);
  kern_dims(r->k, kern_last(r->k), false, in);
  return view(w, map_to(&t, n, in, e), id);
}

/* ---------------------------------------------------------------- the rule */

enum { MOST_LOOPS = 10 }; /* of the convolution: its tiles have up to six more */

static int64_t last_extent(const wino *w, uint32_t (*loops)(const wino *w, uint32_t *list)) {
  uint32_t list[TARN_MAX_DIMS], n = loops(w, list);
  return n ? extent(w, list[n - 1]) : 1;
}

/* A kernel for each of V, M and Y: every weight is read once. */
static uint32_t in_passes(const wino *w, uint32_t weight, uint32_t *map) {
  int64_t in = last_extent(w, data_loops), out = last_extent(w, other_loops);
  rows r = new_rows(w, in / block_of(in));
  if (!add_tiles(w, &r, block_of(in))) return TARN_NONE;
  kstage *st = kern_last(r.k);
  st->out = true, r.k->out_ns = r.s.n + st->nown;
  uint32_t v = kern_store(r.k), data = v == TARN_NONE ? v : as_operand(w, &r, v);
  uint32_t m = data == TARN_NONE ? data : products(w, data, weight);
  if (m == TARN_NONE) return m;
  r = new_rows(w, out / block_of(out));
  if (!add_results(w, &r, block_of(out), m)) return TARN_NONE;
  *map = old_result(w, &r, block_of(out));
  return kern_store(r.k);
}

/* All in one kernel, a row of tiles after the other: V and M stay near. */
static uint32_t in_rows(const wino *w, uint32_t weight, uint32_t *map) {
  rows r = new_rows(w, 1);
  int64_t out = last_extent(w, other_loops);
  if (!add_tiles(w, &r, last_extent(w, data_loops)) || !add_products(w, &r, weight) || !add_results(w, &r, out, TARN_NONE))
    return TARN_NONE;
  *map = old_result(w, &r, out);
  return kern_store(r.k);
}

static uint32_t build(rsite *s, const algorithm *g, uint32_t (*how)(const wino *w, uint32_t weight, uint32_t *map)) {
  wino *w = TARN_NEW(tarn_lang_ctx(s->e->L), wino);
  uint32_t map = TARN_NONE;
  w->s = s, w->L = s->e->L, w->g = g;
  if (!site_root(s, &w->k) || w->k.stage[0].nown + w->k.stage[0].nred > MOST_LOOPS || !qualifies(w)) return TARN_NONE;
  uint32_t u = weights(w), y = u == TARN_NONE ? u : how(w, u, &map);
  return y == TARN_NONE ? y : seen_through(s, y, map, w->k.out_ns);
}

uint32_t build_winograd_2(rsite *s) { return build(s, &by_two, in_passes); }
uint32_t build_winograd_4(rsite *s) { return build(s, &by_four, in_passes); }
uint32_t build_winograd_2_rows(rsite *s) { return build(s, &by_two, in_rows); }
uint32_t build_winograd_4_rows(rsite *s) { return build(s, &by_four, in_rows); }
