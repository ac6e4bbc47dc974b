/* A convolution of stride 1 by fewer multiplications: F(m x m, r x r) of Winograd (Lavin and Gray,
 * "Fast algorithms for convolutional neural networks", CVPR 2016), Y = A'[ (G w G') . (B' d B) ]A
 * for tiles d of m+r-1 by m+r-1 inputs that overlap by r-1; filters of three taps a dim, or of two.
 *
 * Any sum of products qualifies in which one operand depends on two own loops and two reduce loops
 * of r only by their sums, row + krow and column + kcolumn, and the other, a constant, depends on
 * neither own loop: layout, padding and what else is summed over do not matter, nor which other own
 * loops both depend on, as on those of a transposed convolution's parts (residue.c).  It
 * becomes three nests and a constant:
 *   V[u v … tiles … c]   tiles transformed: sums that two small matrices weigh, of rows and of
 *                        columns
 *   U[u v … c o]         the weights transformed (constant)
 *   M[u v … tiles … o]   sums over c of V·U
 *   Y                    transformed back in the same way, and the epilogue
 * Tiles that pass the end compute what nobody reads; the result is a view of Y. */
#include "rules/algorithms/build.h"
#include "rules/algorithms/make.h"
#include <string.h>

enum { MOST_TAPS = 3, MOST_OUTPUTS = 4, MOST_INPUTS = MOST_TAPS + MOST_OUTPUTS - 1 };

typedef struct algorithm {
  uint32_t m, r, n; /* along a dim: outputs of a tile, taps, inputs of a tile; n = m + r - 1 */
  double bt[MOST_INPUTS * MOST_INPUTS];                              /* n x n */
  double g[MOST_INPUTS * MOST_TAPS], at[MOST_OUTPUTS * MOST_INPUTS]; /* n x r, m x n */
} algorithm;

/* Cook's and Toom's: polynomials of degree r-1 and m-1 are multiplied by their values at n-1 points
 * and at infinity (Blahut, "Fast algorithms for digital signal processing", 1985); transposed, that
 * is the filter.  With N_p the product of p - q over the other points, row p of B' holds the
 * coefficients of the product of x - q, that of G p^j/N_p, column p of A' p^i; the last row of B'
 * those of the product over all points.  The signs are such that the first row of B' and the last
 * begin with what is above 0: then they are the same, moved by one. */
static algorithm cook_toom(uint32_t m, uint32_t r) {
  static const double point[MOST_INPUTS - 1] = {0, 1, -1, 2, -2};
  algorithm g = {.m = m, .r = r, .n = m + r - 1};
  uint32_t n = g.n;
  double sign = 1;
  for (uint32_t q = 1; q + 1 < n; q++) sign = point[q] > 0 ? -sign : sign;
  for (uint32_t p = 0; p < n; p++) {
    bool last = p + 1 == n;
    double x = last ? 0 : point[p], s = p && !last ? 1 : sign, *c = g.bt + p * n, size = s,
           power = 1;
    c[0] = s;
    for (uint32_t q = 0, degree = 0; q + 1 < n; q++) {
      if (q == p) continue;
      for (uint32_t i = ++degree + 1; i-- > 0;) c[i] = (i ? c[i - 1] : 0) - point[q] * c[i];
      size *= x - point[q];
    }
    for (uint32_t i = 0; i < (m > r ? m : r); i++, power *= x) {
      if (i < m) g.at[i * n + p] = last ? (i + 1 == m ? s : 0) : power;
      if (i < r) g.g[p * r + i] = last ? (i + 1 == r) : power / size;
    }
  }
  return g;
}

typedef struct wino {
  rsite *s;
  tarn_lang *L;
  algorithm g;
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
    if (x->t[i].kind != TARN_IX_VAR && (tarn_ix_dims(L, x->t[i].arg) & (1u << o | 1u << r)))
      return false;
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

/* The window's loops, of r taps each, the outer one first. */
static bool find_window(wino *w, uint32_t taps) {
  const kstage *st = w->st;
  uint32_t found = 0, map = st->read[w->data].map, fixed = map_uses(w->L, st->read[w->weight].map);
  for (uint32_t o = 0; o < st->nown; o++)
    for (uint32_t r = st->nown; r < st->nown + st->nred; r++) {
      if (st->red[r - st->nown] != taps || (fixed >> o & 1) || st->own[o] < w->g.m ||
          !slides(w->L, map, o, r))
        continue;
      if (found == 2 || (found && w->krow == r)) return false;
      *(found ? &w->col : &w->row) = o, *(found ? &w->kcol : &w->krow) = r;
      found++;
      break;
    }
  return found == 2;
}

static bool qualifies(wino *w, uint32_t m) {
  uint32_t taps = MOST_TAPS;
  w->st = &w->k.stage[0];
  w->g.m = m;
  if (!kern_single(&w->k) || w->k.depth || !site_weights(w->s, &w->k, &w->data, &w->weight))
    return false;
  while (!find_window(w, taps))
    if (--taps < 2) return false;
  w->g = cook_toom(m, taps);
  uint32_t out = ~(1u << w->row | 1u << w->col | 1u << w->krow | 1u << w->kcol);
  w->by_data = map_uses(w->L, w->st->read[w->data].map) & out;
  w->by_weight = map_uses(w->L, w->st->read[w->weight].map) & out;
  w->th = (w->st->own[w->row] + w->g.m - 1) / w->g.m;
  w->tw = (w->st->own[w->col] + w->g.m - 1) / w->g.m;
  return (w->by_data & w->by_weight) >> w->st->nown; /* a sum over something beside the window */
}

/* ---------------------------------------------------------------- loops of the new nests */

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

/* A matrix of numbers, read at (row, column) by loops of s. */
static bool read_matrix(const wino *w, kern *k, kstage *st, const double *v, int64_t rows,
                        int64_t columns, const space *s, uint32_t row, uint32_t column) {
  return make_numbers(w->s, k, st, "winograd", v, 2, (const int64_t[]){rows, columns}, s,
                      (const uint32_t[]){row, column});
}
static uint32_t view(const wino *w, uint32_t map, uint32_t id) {
  const rhost *h = w->s->e->host;
  return id == TARN_NONE ? id
                         : h->nest.mk(h->nest.user, TARN_OP_VIEW,
                                      tarn_payload_of(w->L, TARN_P_MAP, map), &id, 1);
}

/* ---------------------------------------------------------------- the weights */

/* U over (u, v, loops of the weights). */
static uint32_t weights(const wino *w) {
  const tarn_read *r = &w->st->read[w->weight];
  uint32_t list[TARN_MAX_DIMS], n = loops_in(w->by_weight, list), e[TARN_MAX_DIMS], a = w->g.n,
                                taps = w->g.r;
  int64_t in[TARN_MAX_DIMS];
  /* as they are, over (krow, kcol, loops) */
  space s = {.L = w->L};
  moved v = {0};
  for (uint32_t i = 0; i < w->st->nown + w->st->nred; i++) v.sub[i] = tarn_ix_const(w->L, 0);
  space_loop(&s, taps), space_loop(&s, taps);
  for (uint32_t i = 0; i < n; i++) space_loop(&s, extent(w, list[i]));
  v.sub[w->krow] = space_var(&s, 0), v.sub[w->kcol] = space_var(&s, 1);
  for (uint32_t i = 0; i < n; i++) v.sub[list[i]] = space_var(&s, 2 + i);
  uint32_t map = space_move(&s, &v, r->map, TARN_F32),
           id = map == TARN_NONE ? map : view(w, map, w->k.leaf[r->src]);
  memcpy(in, s.dim, s.n * sizeof *in);
  for (uint32_t side = 0; side < 2; side++) { /* rows: (u, kcol, …), then columns: (u, v, …) */
    space x = {.L = w->L}, none = {.L = w->L};
    space_loop(&x, a), space_loop(&x, side ? a : taps);
    for (uint32_t i = 0; i < n; i++) space_loop(&x, extent(w, list[i]));
    uint32_t q = space_loop(&x, taps);
    kern *k = make_kern(w->s->e, &none);
    kstage *st = make_stage(k, &x, 2, 1);
    k->out_ns = x.n - 1, st->out = true;
    e[0] = space_var(&x, side ? 0 : q), e[1] = space_var(&x, side ? q : 1);
    for (uint32_t i = 0; i < n; i++) e[2 + i] = space_var(&x, 2 + i);
    if (!make_read(k, st, id, space_map(&x, 2 + n, in, e)) ||
        !read_matrix(w, k, st, w->g.g, a, taps, &x, side, q))
      return TARN_NONE;
    id = kern_store(k);
    in[0] = a, in[1] = side ? a : taps;
  }
  return id;
}

/* ---------------------------------------------------------------- tiles */

/* A kernel whose stages share loops: none, or rows of tiles and the own loops of the data in front
 * of them. */
typedef struct tiles {
  kern *k;
  space s;
  uint32_t shared, at[2 * TARN_MAX_DIMS]; /* old loops, and where they are */
} tiles;

static int64_t extent_of_tiles(const wino *w, uint32_t old) {
  return old == w->row ? w->th : old == w->col ? w->tw : extent(w, old);
}
static void loops_for(const wino *w, space *s, const uint32_t *list, uint32_t n, uint32_t *at) {
  for (uint32_t i = 0; i < n; i++) at[list[i]] = space_loop(s, extent_of_tiles(w, list[i]));
}
static tiles new_tiles(const wino *w, bool rows) {
  uint32_t list[2 * TARN_MAX_DIMS];
  tiles t = {.s = {.L = w->L},
             .shared = rows ? (w->by_data & ((1u << w->row) - 1)) | 1u << w->row : 0};
  loops_for(w, &t.s, list, loops_in(t.shared, list), t.at);
  t.k = make_kern(w->s->e, &t.s);
  return t;
}
/* Which of its loops a stage has for itself: own loops of the data, rows and columns of tiles. */
static uint32_t loops_of_tiles(const wino *w, const tiles *t, uint32_t *list) {
  uint32_t n = loops_in(w->by_data & own_mask(w) & ~t->shared, list);
  if (!(t->shared >> w->row & 1)) list[n++] = w->row;
  list[n++] = w->col;
  return n;
}
static uint32_t data_loops(const wino *w, uint32_t *red) {
  return loops_in(w->by_data & ~own_mask(w), red);
}
/* Own loops that the data does not depend on. */
static uint32_t other_loops(const wino *w, uint32_t *list) {
  return loops_in(own_mask(w) & ~w->by_data & ~(1u << w->row | 1u << w->col), list);
}

/* V[u, v, …, ty, tx, …] = sum over i, j of B'[u, i] B'[v, j] d[…, m ty + i, m tx + j, …] */
static bool add_tiles(const wino *w, tiles *t) {
  uint32_t list[2 * TARN_MAX_DIMS], m = w->g.m, a = w->g.n, r = w->g.r;
  space q = t->s;
  moved to = {.nend = 2,
              .which = {w->row, w->col},
              .end = {w->st->own[w->row] + r - 1, w->st->own[w->col] + r - 1}};
  uint32_t at[2 * TARN_MAX_DIMS], u = space_loop(&q, a), v = space_loop(&q, a);
  memcpy(at, t->at, sizeof at);
  loops_for(w, &q, list, loops_of_tiles(w, t, list), at);
  loops_for(w, &q, list, data_loops(w, list), at);
  uint32_t i = space_loop(&q, a), j = space_loop(&q, a);
  for (uint32_t l = 0; l < w->st->nown + w->st->nred; l++)
    to.sub[l] = w->by_data >> l & 1 ? space_var(&q, at[l]) : tarn_ix_const(w->L, 0);
  to.sub[w->row] = space_scaled(&q, m, at[w->row], i),
  to.sub[w->col] = space_scaled(&q, m, at[w->col], j);
  kstage *st = make_stage(t->k, &q, 3, 2);
  const tarn_read *d = &w->st->read[w->data];
  return make_read(t->k, st, w->k.leaf[d->src], space_move(&q, &to, d->map, TARN_F32)) &&
         read_matrix(w, t->k, st, w->g.bt, a, a, &q, u, i) &&
         read_matrix(w, t->k, st, w->g.bt, a, a, &q, v, j);
}

/* ---------------------------------------------------------------- the products */

/* Something over u, v and these old loops, read from the loops of s. */
static uint32_t map_of(const wino *w, const space *s, uint32_t u, const uint32_t *list, uint32_t n,
                       const uint32_t *at) {
  uint32_t e[2 * TARN_MAX_DIMS] = {space_var(s, u), space_var(s, u + 1)};
  int64_t in[2 * TARN_MAX_DIMS] = {w->g.n, w->g.n};
  for (uint32_t i = 0; i < n; i++)
    e[2 + i] = space_var(s, at[list[i]]), in[2 + i] = extent_of_tiles(w, list[i]);
  return space_map(s, 2 + n, in, e);
}

/* M[u, v, …, ty, tx, …] = sum of V·U; V is data or, without that, the last stage. */
static bool add_products(const wino *w, tiles *t, uint32_t data, uint32_t weight) {
  uint32_t list[2 * TARN_MAX_DIMS], at[2 * TARN_MAX_DIMS], n;
  space s = t->s;
  uint32_t u = space_loop(&s, w->g.n);
  space_loop(&s, w->g.n);
  memcpy(at, t->at, sizeof at);
  loops_for(w, &s, list, loops_of_tiles(w, t, list), at);
  loops_for(w, &s, list, loops_in(w->by_weight & own_mask(w) & ~w->by_data, list), at);
  n = loops_in((w->by_data | w->by_weight) & ~own_mask(w), list);
  loops_for(w, &s, list, n, at);
  kstage *st = make_stage(t->k, &s, 2, n);
  n = loops_of_tiles(w, t, list);
  n += data_loops(w, list + n);
  uint32_t map = map_of(w, &s, u, list, n, at);
  if (!(data == TARN_NONE ? make_read_stage(st, t->k->nstage - 2, map)
                          : make_read(t->k, st, data, map)))
    return false;
  return make_read(t->k, st, weight, map_of(w, &s, u, list, loops_in(w->by_weight, list), at));
}

/* ---------------------------------------------------------------- the results */

/* Where the loops of a result are: old own loops, of tiles rows and columns, and those within a
 * tile. */
typedef struct places {
  uint32_t at[2 * TARN_MAX_DIMS], p, q;
} places;

/* In the old order, so that neighbours stay neighbours: p behind the rows of tiles, q behind the
 * columns; last what the data does not depend on. */
static places loops_of_results(const wino *w, const tiles *t, space *y) {
  uint32_t list[2 * TARN_MAX_DIMS],
      n = loops_in((w->by_data & own_mask(w)) | 1u << w->row | 1u << w->col, list);
  places to = {{0}, 0, 0};
  memcpy(to.at, t->at, sizeof to.at);
  for (uint32_t i = 0; i < n; i++) {
    if (!(t->shared >> list[i] & 1)) loops_for(w, y, &list[i], 1, to.at);
    if (list[i] == w->row) to.p = space_loop(y, w->g.m);
    if (list[i] == w->col) to.q = space_loop(y, w->g.m);
  }
  loops_for(w, y, list, other_loops(w, list), to.at);
  return to;
}

/* Y[…, ty, p, …, tx, q, …] = sum over u, v of A'[p, u] A'[q, v] M[u, v, …, ty, tx, …], M a child or
 * the last stage, and the epilogue */
static bool add_results(const wino *w, tiles *t, uint32_t product) {
  uint32_t list[2 * TARN_MAX_DIMS], m = w->g.m, a = w->g.n, n;
  space y = t->s;
  places to = loops_of_results(w, t, &y);
  moved o = {.nend = 2, .which = {w->row, w->col}, .end = {w->st->own[w->row], w->st->own[w->col]}};
  for (uint32_t i = 0; i < w->st->nown; i++) o.sub[i] = space_var(&y, to.at[i]);
  o.sub[w->row] = space_scaled(&y, m, to.at[w->row], to.p),
  o.sub[w->col] = space_scaled(&y, m, to.at[w->col], to.q);
  space s = y;
  uint32_t u = space_loop(&s, a), v = space_loop(&s, a);
  kstage *st = make_stage(t->k, &s, 3, 2);
  n = loops_of_tiles(w, t, list);
  n += loops_in(w->by_weight & own_mask(w) & ~w->by_data, list + n);
  uint32_t map = map_of(w, &s, u, list, n, to.at);
  if (!(product == TARN_NONE ? make_read_stage(st, t->k->nstage - 2, map)
                             : make_read(t->k, st, product, map)) ||
      !read_matrix(w, t->k, st, w->g.at, m, a, &s, to.p, u) ||
      !read_matrix(w, t->k, st, w->g.at, m, a, &s, to.q, v))
    return false;
  return make_epilogue(t->k, st, &w->k, &y, &o);
}

/* The old result as a view of the last stage's. */
static uint32_t old_result(const wino *w, const tiles *t) {
  int64_t m = w->g.m, in[2 * TARN_MAX_DIMS];
  uint32_t e[2 * TARN_MAX_DIMS];
  space s = {.L = w->L}, y = t->s;
  places to = loops_of_results(w, t, &y);
  for (uint32_t i = 0; i < w->st->nown; i++) space_loop(&s, w->st->own[i]);
  for (uint32_t i = 0; i < w->st->nown; i++) e[to.at[i]] = space_var(&s, i);
  e[to.at[w->row]] = tarn_ix_div(w->L, space_var(&s, w->row), m, s.dim),
  e[to.p] = tarn_ix_mod(w->L, space_var(&s, w->row), m, s.dim);
  e[to.at[w->col]] = tarn_ix_div(w->L, space_var(&s, w->col), m, s.dim),
  e[to.q] = tarn_ix_mod(w->L, space_var(&s, w->col), m, s.dim);
  kern_dims(t->k, kern_last(t->k), false, in);
  return space_map(&s, y.n, in, e);
}

/* ---------------------------------------------------------------- the rule */

enum { MOST_LOOPS = 10 }; /* of the convolution: its tiles have up to six more */

/* A kernel for each of V, M and Y: every weight is read once. */
static uint32_t in_passes(const wino *w, uint32_t weight, uint32_t *map) {
  tiles v = new_tiles(w, false), m = new_tiles(w, false), y = new_tiles(w, false);
  if (!add_tiles(w, &v)) return TARN_NONE;
  uint32_t id = make_result(v.k);
  if (id == TARN_NONE || !add_products(w, &m, id, weight) || (id = make_result(m.k)) == TARN_NONE ||
      !add_results(w, &y, id))
    return TARN_NONE;
  *map = old_result(w, &y);
  return make_result(y.k);
}

/* All in one kernel, a row of tiles after the other: V and M stay in the cache. */
static uint32_t in_rows(const wino *w, uint32_t weight, uint32_t *map) {
  tiles t = new_tiles(w, true);
  if (!add_tiles(w, &t) || !add_products(w, &t, TARN_NONE, weight) ||
      !add_results(w, &t, TARN_NONE))
    return TARN_NONE;
  *map = old_result(w, &t);
  return make_result(t.k);
}

static uint32_t build(rsite *s, uint32_t m,
                      uint32_t (*how)(const wino *w, uint32_t weight, uint32_t *map)) {
  wino *w = TARN_NEW(tarn_lang_ctx(s->e->L), wino);
  uint32_t map = TARN_NONE;
  w->s = s, w->L = s->e->L;
  if (!site_root(s, &w->k) || w->k.stage[0].nown + w->k.stage[0].nred > MOST_LOOPS ||
      !qualifies(w, m))
    return TARN_NONE;
  uint32_t u = weights(w), y = u == TARN_NONE ? u : how(w, u, &map);
  return y == TARN_NONE ? y : seen_through(s, y, map, w->k.out_ns);
}

uint32_t build_winograd_2(rsite *s) { return build(s, 2, in_passes); }
uint32_t build_winograd_4(rsite *s) { return build(s, 4, in_passes); }
uint32_t build_winograd_2_rows(rsite *s) { return build(s, 2, in_rows); }
uint32_t build_winograd_4_rows(rsite *s) { return build(s, 4, in_rows); }
