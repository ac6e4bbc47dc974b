/* A 3x3 convolution of stride 1 by fewer multiplications: F(m x m, 3 x 3) of Winograd (Lavin and Gray, "Fast algorithms for
 * convolutional neural networks", CVPR 2016), Y = A'[ (G w G') . (B' d B) ]A for tiles d of m+2 by m+2 inputs that overlap
 * by two.
 *
 * Any sum of products qualifies in which one operand depends on two own loops and two reduce loops of 3 only by their sums,
 * row + krow and column + kcolumn, and the other, a constant, depends on neither own loop: layout, padding and what else is
 * summed over do not matter.  It becomes three nests and a constant:
 *   V[u v … tiles … c]   tiles transformed: sums that two small matrices weigh, of rows and of columns
 *   U[u v … c o]         the weights transformed (constant)
 *   M[u v … tiles … o]   sums over c of V·U
 *   Y                    transformed back in the same way, and the epilogue
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
static uint32_t own_mask(const wino *w) { return (1u << w->st->nown) - 1; }

/* ---------------------------------------------------------------- parts of a nest */

static kern *new_kern(const wino *w, const space *shared) {
  kern *k = TARN_NEW(tarn_lang_ctx(w->L), kern);
  k->e = w->k.e, k->L = w->L, k->depth = shared->n;
  memcpy(k->shared, shared->dim, shared->n * sizeof *shared->dim);
  return k;
}
/* The next stage of k: a sum of products of n operands over the loops of s, the last nred of them reduced. */
static kstage *new_stage(const wino *w, kern *k, const space *s, uint32_t n, uint32_t nred) {
  kstage *st = &k->stage[k->nstage++];
  st->nown = s->n - k->depth - nred, st->nred = nred;
  memcpy(st->own, s->dim + k->depth, st->nown * sizeof *st->own);
  memcpy(st->red, s->dim + s->n - nred, nred * sizeof *st->red);
  st->body = tarn_fx_hole(w->L, 0);
  for (uint32_t i = 1; i < n; i++) st->body = tarn_fx_op(w->L, TARN_FX_MUL, st->body, tarn_fx_hole(w->L, i), 0);
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
    kstage *st = new_stage(w, k, &x, 2, 1);
    k->out_ns = x.n - 1, st->out = true;
    e[0] = var(&x, side ? 0 : q), e[1] = var(&x, side ? q : 1);
    for (uint32_t i = 0; i < n; i++) e[2 + i] = var(&x, 2 + i);
    if (!read_leaf(k, st, id, map_to(&x, 2 + n, in, e)) || !read_matrix(w, k, st, w->g->g, a, 3, &x, side, q)) return TARN_NONE;
    id = kern_store(k);
    in[0] = a, in[1] = side ? a : 3;
  }
  return id;
}

/* ---------------------------------------------------------------- tiles */

/* A kernel whose stages share loops: none, or own loops of the data and rows of tiles. */
typedef struct tiles {
  kern *k;
  space s;
  uint32_t ty; /* s.n > 0: a shared loop */
} tiles;

static tiles new_tiles(const wino *w, bool rows) {
  uint32_t own[TARN_MAX_DIMS], n = loops_in(w->by_data & own_mask(w), own);
  tiles t = {.s = {.L = w->L}};
  for (uint32_t i = 0; i < n && rows; i++) loop(&t.s, extent(w, own[i]));
  if (rows) t.ty = loop(&t.s, w->th);
  t.k = new_kern(w, &t.s);
  return t;
}
static uint32_t loops_of(const wino *w, space *s, const uint32_t *list, uint32_t n) {
  uint32_t first = s->n;
  for (uint32_t i = 0; i < n; i++) loop(s, extent(w, list[i]));
  return first;
}
/* Own loops of the data and rows of tiles, where stages do not share them: the first of them, and the row. */
static uint32_t loops_of_rows(const wino *w, const tiles *t, space *s, uint32_t *ty) {
  uint32_t own[TARN_MAX_DIMS], n = loops_in(w->by_data & own_mask(w), own);
  *ty = t->ty;
  if (t->s.n) return 0;
  uint32_t first = loops_of(w, s, own, n);
  *ty = loop(s, w->th);
  return first;
}

static uint32_t data_loops(const wino *w, uint32_t *red) { return loops_in(w->by_data & ~own_mask(w), red); }
/* Own loops that the data does not depend on. */
static uint32_t other_loops(const wino *w, uint32_t *list) {
  return loops_in(own_mask(w) & ~w->by_data & ~(1u << w->row | 1u << w->col), list);
}

/* V[u, v, …, ty, tx, …] = sum over i, j of B'[u, i] B'[v, j] d[…, m ty + i, m tx + j, …] */
static bool add_tiles(const wino *w, tiles *t) {
  uint32_t own[TARN_MAX_DIMS], red[TARN_MAX_DIMS], m = w->g->m, a = m + 2, ty;
  uint32_t nown = loops_in(w->by_data & own_mask(w), own), nred = data_loops(w, red);
  space q = t->s;
  moved to = {.nend = 2, .which = {w->row, w->col}, .end = {w->st->own[w->row] + 2, w->st->own[w->col] + 2}};
  uint32_t u = loop(&q, a), v = loop(&q, a), mine = loops_of_rows(w, t, &q, &ty), tx = loop(&q, w->tw);
  uint32_t first = loops_of(w, &q, red, nred), i = loop(&q, a), j = loop(&q, a);
  for (uint32_t l = 0; l < w->st->nown + w->st->nred; l++) to.sub[l] = tarn_ix_const(w->L, 0);
  for (uint32_t l = 0; l < nown; l++) to.sub[own[l]] = var(&q, mine + l);
  for (uint32_t l = 0; l < nred; l++) to.sub[red[l]] = var(&q, first + l);
  to.sub[w->row] = scaled(&q, m, ty, i), to.sub[w->col] = scaled(&q, m, tx, j);
  kstage *st = new_stage(w, t->k, &q, 3, 2);
  const tarn_read *d = &w->st->read[w->data];
  return read_leaf(t->k, st, w->k.leaf[d->src], move(&q, &to, d->map, TARN_F32)) &&
         read_matrix(w, t->k, st, w->g->bt, a, a, &q, u, i) && read_matrix(w, t->k, st, w->g->bt, a, a, &q, v, j);
}

/* M at (u, v) for the tile of a result. */
static bool read_product(const wino *w, tiles *t, kstage *st, const space *q, uint32_t product, uint32_t mine, uint32_t ty,
                         uint32_t tx, uint32_t first, uint32_t u) {
  uint32_t own[TARN_MAX_DIMS], rest[TARN_MAX_DIMS], e[TARN_MAX_DIMS], a = w->g->m + 2, n = 0;
  uint32_t nown = loops_in(w->by_data & own_mask(w), own), nrest = other_loops(w, rest);
  int64_t in[TARN_MAX_DIMS];
  e[n] = var(q, u), in[n++] = a;
  e[n] = var(q, u + 1), in[n++] = a;
  for (uint32_t i = 0; i < nown && !t->s.n; i++) e[n] = var(q, mine + i), in[n++] = extent(w, own[i]);
  if (!t->s.n) e[n] = var(q, ty), in[n++] = w->th;
  e[n] = var(q, tx), in[n++] = w->tw;
  for (uint32_t i = 0; i < nrest; i++)
    if (w->by_weight >> rest[i] & 1) e[n] = var(q, first + i), in[n++] = extent(w, rest[i]);
  uint32_t map = map_to(q, n, in, e);
  return t->s.n ? read_stage(st, t->k->nstage - 2, map) : read_leaf(t->k, st, product, map);
}

/* Y[…, ty, p, tx, q, …] = sum over u, v of A'[p, u] A'[q, v] M[u, v, …, ty, tx, …], M a child or the last stage, and the
 * epilogue */
static bool add_results(const wino *w, tiles *t, uint32_t product) {
  uint32_t own[TARN_MAX_DIMS], rest[TARN_MAX_DIMS], m = w->g->m, a = m + 2, ty;
  uint32_t nown = loops_in(w->by_data & own_mask(w), own), nrest = other_loops(w, rest);
  space y = t->s;
  uint32_t mine = loops_of_rows(w, t, &y, &ty), p = loop(&y, m), tx = loop(&y, w->tw), column = loop(&y, m);
  uint32_t first = loops_of(w, &y, rest, nrest);
  moved o = {.nend = 2, .which = {w->row, w->col}, .end = {w->st->own[w->row], w->st->own[w->col]}};
  for (uint32_t i = 0; i < nown; i++) o.sub[own[i]] = var(&y, mine + i);
  for (uint32_t i = 0; i < nrest; i++) o.sub[rest[i]] = var(&y, first + i);
  o.sub[w->row] = scaled(&y, m, ty, p), o.sub[w->col] = scaled(&y, m, tx, column);
  space q = y;
  uint32_t u = loop(&q, a), v = loop(&q, a);
  kstage *st = new_stage(w, t->k, &q, 3, 2);
  st->out = true, t->k->out_ns = y.n;
  if (!read_product(w, t, st, &q, product, mine, ty, tx, first, u) || !read_matrix(w, t->k, st, w->g->at, m, a, &q, p, u) ||
      !read_matrix(w, t->k, st, w->g->at, m, a, &q, column, v))
    return false;
  st->epi = w->st->epi;
  for (uint32_t i = 0; i < w->st->ne; i++) {
    const tarn_read *x = &w->st->read[w->st->nb + i];
    uint32_t leaf = kern_leaf(t->k, w->k.leaf[x->src]), to = move(&y, &o, x->map, kern_leaf_type(&w->k, x->src)->dtype);
    if (leaf == TARN_NONE || to == TARN_NONE || kern_add_read(st, false, (tarn_read){false, leaf, to}) == TARN_NONE)
      return false;
  }
  return true;
}

/* The old result as a view of the last stage's. */
static uint32_t old_result(const wino *w, const tiles *t) {
  uint32_t own[TARN_MAX_DIMS], rest[TARN_MAX_DIMS], m = w->g->m, e[TARN_MAX_DIMS], n = 0;
  uint32_t nown = loops_in(w->by_data & own_mask(w), own), nrest = other_loops(w, rest);
  int64_t in[2 * TARN_MAX_DIMS];
  space q = {.L = w->L};
  for (uint32_t i = 0; i < w->st->nown; i++) loop(&q, w->st->own[i]);
  for (uint32_t i = 0; i < nown; i++) e[n++] = var(&q, own[i]);
  e[n++] = tarn_ix_div(w->L, var(&q, w->row), m, q.dim);
  e[n++] = tarn_ix_mod(w->L, var(&q, w->row), m, q.dim);
  e[n++] = tarn_ix_div(w->L, var(&q, w->col), m, q.dim);
  e[n++] = tarn_ix_mod(w->L, var(&q, w->col), m, q.dim);
  for (uint32_t i = 0; i < nrest; i++) e[n++] = var(&q, rest[i]);
  kern_dims(t->k, kern_last(t->k), false, in);
  return map_to(&q, n, in, e);
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
  kstage *st = new_stage(w, k, &s, 2, n);
  st->out = true, k->out_ns = s.n - n;
  return read_operands(w, k, st, &s, at, 0, data, weight) ? kern_store(k) : TARN_NONE;
}

/* M[u, v, tx, …] as a stage after V. */
static bool add_products(const wino *w, tiles *t, uint32_t weight) {
  uint32_t list[TARN_MAX_DIMS], a = w->g->m + 2, at[2 * TARN_MAX_DIMS] = {0}, own[TARN_MAX_DIMS];
  space s = t->s;
  uint32_t u = loop(&s, a), n = loops_in(w->by_data & own_mask(w), own);
  loop(&s, a);
  for (uint32_t i = 0; i < n; i++) at[own[i]] = i;
  at[w->row] = t->ty, at[w->col] = loop(&s, w->tw);
  n = loops_in(w->by_weight & own_mask(w) & ~w->by_data, list);
  for (uint32_t i = 0; i < n; i++) at[list[i]] = loop(&s, extent(w, list[i]));
  n = loops_in((w->by_data | w->by_weight) & ~own_mask(w), list);
  for (uint32_t i = 0; i < n; i++) at[list[i]] = loop(&s, extent(w, list[i]));
  kstage *st = new_stage(w, t->k, &s, 2, n);
  return read_operands(w, t->k, st, &s, at, u, TARN_NONE, weight);
}

/* ---------------------------------------------------------------- the rule */

enum { MOST_LOOPS = 10 }; /* of the convolution: its tiles have up to six more */

/* A kernel for each of V, M and Y: every weight is read once. */
static uint32_t in_passes(const wino *w, uint32_t weight, uint32_t *map) {
  tiles t = new_tiles(w, false);
  if (!add_tiles(w, &t)) return TARN_NONE;
  kstage *st = kern_last(t.k);
  st->out = true, t.k->out_ns = st->nown;
  uint32_t v = kern_store(t.k), m = v == TARN_NONE ? v : products(w, v, weight);
  if (m == TARN_NONE) return m;
  t = new_tiles(w, false);
  if (!add_results(w, &t, m)) return TARN_NONE;
  *map = old_result(w, &t);
  return kern_store(t.k);
}

/* All in one kernel, a row of tiles after the other: V and M stay near. */
static uint32_t in_rows(const wino *w, uint32_t weight, uint32_t *map) {
  tiles t = new_tiles(w, true);
  if (!add_tiles(w, &t) || !add_products(w, &t, weight) || !add_results(w, &t, TARN_NONE)) return TARN_NONE;
  *map = old_result(w, &t);
  return kern_store(t.k);
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
