/* A product of matrices by seven products of their halves instead of eight (Strassen, "Gaussian
 * elimination is not optimal", Numerische Mathematik 13, 1969), once: with A in blocks A[a b], B in
 * B[b c],
 *   C[a c] = sum over r of W[a c r] · ( (sum over a b of U[r a b] A[a b]) ·
 *                                       (sum over b c of V[r b c] B[b c]) ).
 *
 * Any sum of products of a constant and another operand qualifies that has an even reduce loop on
 * which both depend, an even own loop of the one and an even own loop of the other; what else it
 * goes over, and where it lies, does not matter, as long as it is one product of matrices (not
 * those of a batch, nor what this rule makes, again) and the operand is not read through windows
 * that overlap. It becomes three nests and a constant, as a convolution by Winograd's algorithm
 * does (winograd.c). */
#include "rules/algorithms/build.h"
#include "rules/algorithms/make.h"

enum { PRODUCTS = 7, MOST_LOOPS = 10 };
/* [r][a][b], [r][b][c], [a][c][r] */
static const double of_data[] = {1, 0, 0, 1, 0, 0, 1,  1, 1, 0, 0, 0, 0, 0,
                                 0, 1, 1, 1, 0, 0, -1, 0, 1, 0, 0, 1, 0, -1};
static const double of_weights[] = {1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, -1, -1, 0,
                                    1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0,  1,  1};
static const double of_results[] = {1, 0, 0, 1, -1, 0, 1, 0, 0,  1, 0, 1, 0, 0,
                                    0, 1, 0, 1, 0,  0, 0, 1, -1, 1, 0, 0, 1, 0};

typedef struct halves {
  rsite *s;
  tarn_lang *L;
  kern k;
  const kstage *st;
  uint32_t data, weight, by_data, by_weight; /* reads; the loops that they depend on */
  uint32_t row, col, red;                    /* loops that are halved */
} halves;

static int64_t extent(const halves *w, uint32_t l) {
  return l < w->st->nown ? w->st->own[l] : w->st->red[l - w->st->nown];
}
static int64_t half(const halves *w, uint32_t l) {
  return l == w->row || l == w->col || l == w->red ? extent(w, l) / 2 : extent(w, l);
}
static int64_t points(const halves *w, uint32_t loops) {
  int64_t n = 1;
  for (uint32_t l = 0; l < w->st->nown + w->st->nred; l++)
    if (loops >> l & 1) n *= extent(w, l);
  return n;
}
/* The longest even loop of a set; false: there is none. */
static bool longest(const halves *w, uint32_t loops, uint32_t *out) {
  int64_t most = 0;
  for (uint32_t l = 0; l < w->st->nown + w->st->nred; l++)
    if ((loops >> l & 1) && extent(w, l) % 2 == 0 && extent(w, l) > most)
      most = extent(w, l), *out = l;
  return most > 0;
}
/* Rows from which on an eighth of the products may outweigh the sums, which go through the second
 * memory; columns and steps, twice as many: the side of a cube of as many products as that memory
 * holds numbers. */
static int64_t least_rows(const halves *w) {
  int64_t n = 1, room = l2_capacity(w->s->e) / 4;
  while ((n + 1) * (n + 1) * (n + 1) <= room) n++;
  return n;
}
static bool qualifies(halves *w) {
  w->st = &w->k.stage[0];
  if (!kern_single(&w->k) || w->k.depth || !site_weights(w->s, &w->k, &w->data, &w->weight))
    return false;
  uint32_t n = w->st->nown + w->st->nred, own = (1u << w->st->nown) - 1, all = (1u << n) - 1;
  if (n > MOST_LOOPS) return false;
  w->by_data = map_uses(w->L, w->st->read[w->data].map),
  w->by_weight = map_uses(w->L, w->st->read[w->weight].map);
  for (uint32_t l = 0; l < n; l++) /* of which nobody says which element */
    if (extent(w, l) == 1) w->by_data |= 1u << l, w->by_weight |= 1u << l & ~own;
  int64_t least = least_rows(w);
  uint32_t rows = w->by_data & own & ~w->by_weight, columns = w->by_weight & own & ~w->by_data;
  if ((w->by_data | w->by_weight) != all || (w->by_data & w->by_weight & ~own) != (all & ~own))
    return false;
  if (points(w, w->by_data & w->by_weight & own) > 1) return false; /* many products */
  if (points(w, rows) < least || points(w, columns) < 2 * least ||
      points(w, all & ~own) < 2 * least)
    return false;
  const tarn_type *t = kern_leaf_type(&w->k, w->st->read[w->data].src);
  int64_t elems = 1;
  for (uint32_t d = 0; d < t->n; d++) elems *= t->dim[d];
  return points(w, w->by_data) <= elems && longest(w, rows, &w->row) &&
         longest(w, columns, &w->col) && longest(w, all & ~own, &w->red);
}

/* Loops of s for the old ones of a set, halves where they are halved; `at`: where. */
static void loops_for(const halves *w, space *s, uint32_t loops, uint32_t *at) {
  for (uint32_t l = 0; l < w->st->nown + w->st->nred; l++)
    if (loops >> l & 1) at[l] = space_loop(s, half(w, l));
}
/* Something over the products and these old loops, read from the loops of s. */
static uint32_t map_of(const halves *w, const space *s, uint32_t product, uint32_t loops,
                       const uint32_t *at) {
  uint32_t e[TARN_MAX_DIMS] = {space_var(s, product)}, n = 1;
  int64_t in[TARN_MAX_DIMS] = {PRODUCTS};
  for (uint32_t l = 0; l < w->st->nown + w->st->nred; l++)
    if (loops >> l & 1) e[n] = space_var(s, at[l]), in[n++] = half(w, l);
  return space_map(s, n, in, e);
}
/* [r … ]: the sums of an operand's halves, of loop `first` and then of loop `then`. */
static uint32_t sums(const halves *w, uint32_t read, uint32_t loops, uint32_t first, uint32_t then,
                     const double *by) {
  space s = {.L = w->L}, none = s;
  uint32_t at[2 * TARN_MAX_DIMS], r = space_loop(&s, PRODUCTS);
  loops_for(w, &s, loops, at);
  uint32_t a = space_loop(&s, 2), b = space_loop(&s, 2);
  moved to = {.nend = 0};
  for (uint32_t l = 0; l < w->st->nown + w->st->nred; l++)
    to.sub[l] = loops >> l & 1 ? space_var(&s, at[l]) : tarn_ix_const(w->L, 0);
  to.sub[first] = space_scaled(&s, half(w, first), a, at[first]),
  to.sub[then] = space_scaled(&s, half(w, then), b, at[then]);
  kern *k = make_kern(w->s->e, &none);
  kstage *st = make_stage(k, &s, 2, 2);
  const tarn_read *x = &w->st->read[read];
  if (!make_read(k, st, w->k.leaf[x->src], space_move(&s, &to, x->map, TARN_F32)) ||
      !make_numbers(w->s, k, st, "strassen", by, 3, (const int64_t[]){PRODUCTS, 2, 2}, &s,
                    (const uint32_t[]){r, a, b}))
    return TARN_NONE;
  return make_result(k);
}
/* [r, own loops]: the seven products. */
static uint32_t products(const halves *w, uint32_t data, uint32_t weight) {
  space s = {.L = w->L}, none = s;
  uint32_t at[2 * TARN_MAX_DIMS], r = space_loop(&s, PRODUCTS);
  loops_for(w, &s, w->by_data | w->by_weight, at); /* own loops, then the reduced ones */
  kern *k = make_kern(w->s->e, &none);
  kstage *st = make_stage(k, &s, 2, w->st->nred);
  return make_read(k, st, data, map_of(w, &s, r, w->by_data, at)) &&
                 make_read(k, st, weight, map_of(w, &s, r, w->by_weight, at))
             ? make_result(k)
             : TARN_NONE;
}
/* Over the old own loops: which half, and where in it, is read off them, so that the result stays
 * what it was. */
static uint32_t results(const halves *w, uint32_t product) {
  space s = {.L = w->L}, none = s;
  for (uint32_t l = 0; l < w->st->nown; l++) space_loop(&s, extent(w, l));
  uint32_t r = space_loop(&s, PRODUCTS), e[TARN_MAX_DIMS] = {space_var(&s, r)}, which[2];
  int64_t in[TARN_MAX_DIMS] = {PRODUCTS}, of[] = {2, 2, PRODUCTS};
  for (uint32_t l = 0; l < w->st->nown; l++) {
    bool cut = l == w->row || l == w->col;
    e[1 + l] = cut ? tarn_ix_mod(w->L, space_var(&s, l), half(w, l), s.dim) : space_var(&s, l),
          in[1 + l] = half(w, l);
    if (cut) which[l == w->col] = tarn_ix_div(w->L, space_var(&s, l), half(w, l), s.dim);
  }
  kern *k = make_kern(w->s->e, &none);
  kstage *st = make_stage(k, &s, 2, 1);
  uint32_t to = space_map(&s, 3, of, (const uint32_t[]){which[0], which[1], space_var(&s, r)});
  if (!make_read(k, st, product, space_map(&s, 1u + w->st->nown, in, e)) ||
      !make_read(k, st, make_tensor(w->s, "strassen", of_results, 3, of), to))
    return TARN_NONE;
  if (!make_epilogue(k, st, &w->k, &s, NULL)) return TARN_NONE;
  st->out = true, k->out_ns = w->k.out_ns;
  return kern_store(k);
}

uint32_t build_strassen(rsite *s) {
  halves *w = TARN_NEW(tarn_lang_ctx(s->e->L), halves);
  w->s = s, w->L = s->e->L;
  if (!site_root(s, &w->k) || !qualifies(w)) return TARN_NONE;
  uint32_t v = sums(w, w->weight, w->by_weight, w->red, w->col, of_weights);
  uint32_t t = v == TARN_NONE ? v : sums(w, w->data, w->by_data, w->row, w->red, of_data);
  uint32_t m = t == TARN_NONE ? t : products(w, t, v);
  return m == TARN_NONE ? m : results(w, m);
}
