/* The vocabulary of rules for units whose operands are padded: what such a unit takes at once, and
 * how a tensor lies along a group of loops. */
#include "rules/lang/loops.h"
#include "rules/lang/range.h"
#include "rules/lang/vocab.h"
#include <math.h>
#include <string.h>

enum { SIZES = 64 };

/* Steps of a product's reduction that a unit whose operands are padded does at once; 0: none takes
 * it. */
static int64_t unit_steps(const renv *e, const kern *k) {
  const kstage *st = &k->stage[0];
  int64_t most = 0;
  if (!e->hw || !kern_single(k) || k->depth || st->reducer == TARN_NONE || st->nb != 2) return 0;
  if (st->read[0].stage || st->read[1].stage) return 0;
  const tarn_dtype type[2] = {kern_leaf_type(k, st->read[0].src)->dtype,
                              kern_leaf_type(k, st->read[1].src)->dtype};
  const tarn_machines m = tarn_hw_machines(e->hw);
  for (uint32_t i = 0; i < m.n; i++) {
    if (!tarn_hw_traits_of(m.hw[i]).pads) continue;
    int64_t steps = tarn_hw_multiplies(k->L, m.hw[i], st->body, st->reducer, type);
    if (steps > most) most = steps;
  }
  return most;
}
static bool f_steps(renv *e, const rv *a, rv *out) {
  return (void)a, rv_int(out, unit_steps(e, &e->loops->k));
}

/* ---------------------------------------------------------------- products */

uint32_t units_product(tarn_lang *L, tarn_dtype sum) {
  uint32_t h0 = tarn_fx_cast(L, sum, tarn_fx_hole(L, 0));
  uint32_t h1 = tarn_fx_cast(L, sum, tarn_fx_hole(L, 1));
  return tarn_fx_op(L, TARN_FX_MUL, h0, h1, 0);
}
/* A CPU's instructions take several steps of one reduced loop at once; other units are padded. */
bool units_hw_sums(const tarn_hw *hw, const kern *k, tarn_dtype sum, uint32_t body,
                   const tarn_dtype type[2]) {
  int64_t steps =
      tarn_hw_multiplies(k->L, hw, body, tarn_reducer_of(k->L, TARN_RED_SUM, sum), type);
  bool any = tarn_hw_traits_of(hw).pads && steps;
  for (uint32_t r = 0; r < k->stage[0].nred && steps; r++) any |= k->stage[0].red[r] >= steps;
  return any;
}
bool units_widens(const tarn_hw *hw, const kern *k, uint32_t body, uint32_t red,
                  const tarn_dtype type[2]) {
  tarn_hw_dot d[TARN_HW_DOTS];
  return tarn_hw_dots(k->L, hw, body, red, type, d, TARN_HW_DOTS) &&
         (d[0].widens[0] || d[0].widens[1]);
}
bool units_sum(const renv *e, const kern *k, tarn_dtype sum, uint32_t body,
               const tarn_dtype type[2]) {
  const tarn_machines m = e->hw ? tarn_hw_machines(e->hw) : (tarn_machines){0};
  for (uint32_t i = 0; i < m.n; i++)
    if (units_hw_sums(m.hw[i], k, sum, body, type)) return true;
  return false;
}
/* tf32 is how a product takes operands of f32. */
static bool f_sums_products(renv *e, const rv *a, rv *out) {
  tarn_dtype t = TARN_F32, sum;
  bool tf32 = !strcmp(a->name, "tf32");
  uint32_t h[2] = {tarn_fx_hole(e->L, 0), tarn_fx_hole(e->L, 1)};
  if ((!tf32 && !tarn_dtype_parse(a->name, &t)) || !tarn_dtype_parse(a[1].name, &sum)) return false;
  for (uint32_t i = 0; i < 2 && tf32; i++) h[i] = tarn_fx_op(e->L, TARN_FX_TF32, h[i], 0, 0);
  uint32_t body = tf32 ? tarn_fx_op(e->L, TARN_FX_MUL, h[0], h[1], 0) : units_product(e->L, sum);
  return rv_bool(out, kern_is_product(&e->loops->k, sum) &&
                          units_sum(e, &e->loops->k, sum, body, (tarn_dtype[]){t, t}));
}

/* ---------------------------------------------------------------- vector units */

static bool kids_are(const tarn_fx *x, uint32_t n, const fxwalk *w, const bool *is) {
  for (uint32_t a = 0; a < n; a++) {
    uint32_t i = 0;
    while (w->id[i] != x->kid[a]) i++;
    if (!is[i]) return false;
  }
  return true;
}
/* What vector units compute on numbers of a type; without a description of such, sums, bounds and
 * shifts of i32. False: nothing. */
static bool vector_ops(const renv *e, tarn_dtype t, bool does[TARN_FX_COUNT]) {
  const tarn_machines m = e->hw ? tarn_hw_machines(e->hw) : (tarn_machines){0};
  bool described = false;
  bool any = false;
  memset(does, 0, TARN_FX_COUNT * sizeof *does);
  for (uint32_t i = 0; i < m.n; i++) {
    if (tarn_hw_traits_of(m.hw[i]).any_nest) continue;
    described = true;
    tarn_hw_vectors(e->L, m.hw[i], t, does);
  }
  if (!described && t == TARN_I32)
    does[TARN_FX_ADD] = does[TARN_FX_MIN] = does[TARN_FX_MAX] = does[TARN_FX_SHR] = true;
  for (uint32_t i = 0; i < TARN_FX_COUNT; i++) any |= does[i];
  return any;
}
/* Of a node of that type: `is` says it of those before it in the walk. */
static bool vector_op(const tarn_lang *L, const fxwalk *w, uint32_t i, const bool *is,
                      const bool *does) {
  const tarn_fx *x = tarn_fx_get(L, w->id[i]);
  switch (x->op) {
  case TARN_FX_HOLE:
  case TARN_FX_CONST: return true;
  case TARN_FX_CAST: return tarn_fx_get(L, x->kid[0])->op == TARN_FX_HOLE;
  case TARN_FX_SHR:
    return does[x->op] && tarn_fx_get(L, x->kid[1])->op == TARN_FX_CONST && kids_are(x, 1, w, is);
  default: return does[x->op] && kids_are(x, tarn_fx_arity(x->op), w, is);
  }
}
/* The most of what is done behind the reduction, and through which alone its value is read, that a
 * vector unit does; TARN_NONE. */
static uint32_t by_vectors(const renv *e) {
  const kern *k = &e->loops->k;
  const rv epi = {.kind = 'e', .id = k->stage[0].epi, .i = L_PART(0, false)};
  uint32_t other = tarn_fx_hole(e->L, K_READS);
  fxwalk w;
  vrange hole[K_READS + 1], of[K_FX];
  bool is[K_FX];
  bool does[TARN_FX_COUNT];
  if (k->stage[0].reducer == TARN_NONE) return TARN_NONE;
  tarn_dtype type = tarn_reducer_get(e->L, k->stage[0].reducer)->dtype;
  if (!vector_ops(e, type, does) || !loops_walk(e, &epi, &w)) return TARN_NONE;
  vrange_walk(e->L, &w, hole, vrange_holes(e->host, k, &k->stage[0], false, hole), of);
  for (uint32_t i = 0; i < w.n; i++)
    is[i] = of[i].typed && of[i].type == type && vector_op(e->L, &w, i, is, does);
  for (uint32_t i = w.n; i-- > 0;) {
    if (!is[i] || !tarn_fx_uses(e->L, w.id[i], 0)) continue;
    uint32_t rest = fx_replace(e->L, epi.id, &w.id[i], &other, 1);
    if (rest != TARN_NONE && !tarn_fx_uses(e->L, rest, 0)) return w.id[i];
  }
  return TARN_NONE;
}
static bool f_vectors(renv *e, const rv *a, rv *out) {
  return rv_bool(out, a->id != TARN_NONE && a->id == by_vectors(e));
}
/* A cast to integers is how the unit stores it. */
static bool f_vectors_all(renv *e, const rv *a, rv *out) {
  uint32_t all = e->loops->k.stage[0].epi, most = by_vectors(e);
  const tarn_fx *top = all == TARN_NONE ? NULL : tarn_fx_get(e->L, all);
  bool stores = top && top->op == TARN_FX_CAST && !tarn_dtype_is_float(top->dtype);
  return (void)a, rv_bool(out, most == all || (stores && top->kid[0] == most));
}

/* ---------------------------------------------------------------- sizes
 * Without a description, which is where rules and proofs are checked, all that may be wanted. */

static bool f_fills(renv *e, const rv *a, rv *out) {
  int64_t v[SIZES], steps = unit_steps(e, &e->loops->k);
  uint32_t n = 0;
  if (e->hw && steps > 1 && a->i % steps) v[n++] = tarn_ceildiv(a->i, steps) * steps;
  for (; !e->hw && n < SIZES; n++) v[n] = a->i + 1 + n;
  return rv_list(e, out, v, n);
}
/* The fewest of n groups, prime by prime, that have so many steps; 1: none. */
static int64_t fewest(int64_t n, int64_t each, int64_t steps) {
  int64_t p = 1;
  for (int64_t f = 2; n > 1 && each * p < steps; f++)
    while (n % f == 0 && each * p < steps) p *= f, n /= f;
  return p;
}
static bool f_merges(renv *e, const rv *a, rv *out) {
  int64_t v[SIZES], steps = unit_steps(e, &e->loops->k);
  uint32_t n = 0;
  for (int64_t p = 2; p <= a->i && n < SIZES; p++)
    if (a->i % p == 0 && (!e->hw || (steps > 1 && p == fewest(a->i, a[1].i, steps)))) v[n++] = p;
  return rv_list(e, out, v, n);
}

/* ---------------------------------------------------------------- how a tensor lies */

static const tarn_imap *read_map(const renv *e, const rv *v) {
  const tarn_read *r = rv_read(e, v);
  return r ? tarn_imap_get(e->L, r->map) : NULL;
}
/* The most q for which an index depends on loop o by o div q alone; 0: not on it. */
static int64_t run_of(const tarn_lang *L, uint32_t ix, uint32_t o) {
  const tarn_ix *x = tarn_ix_get(L, ix);
  int64_t q = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    bool has = t->kind == TARN_IX_VAR ? t->arg == o : tarn_ix_dims(L, t->arg) >> o & 1;
    if (has) q = tarn_gcd(t->kind == TARN_IX_DIV && ix_loop(L, t->arg) == o ? t->by : 1, q);
  }
  return q;
}
static bool f_run(renv *e, const rv *a, rv *out) {
  const tarn_imap *m = read_map(e, a);
  int64_t q = 0;
  for (uint32_t i = 0; m && i < m->nin; i++) q = tarn_gcd(run_of(e->L, m->e[i], a[1].id), q);
  for (uint32_t i = 0; m && i < m->nguard; i++)
    q = tarn_gcd(run_of(e->L, m->guard[i].e, a[1].id), q);
  return q > 0 && rv_int(out, q);
}
/* The dim of the tensor that these loops walk, and nothing else does or is walked by them;
 * TARN_NONE. */
static uint32_t axis_of(const tarn_lang *L, const tarn_imap *m, uint32_t set) {
  uint32_t axis = TARN_NONE, seen = 0;
  for (uint32_t a = 0; a < m->nin; a++) {
    uint32_t dims = tarn_ix_dims(L, m->e[a]);
    if (!(dims & set)) continue;
    if (axis != TARN_NONE || (dims & ~set)) return TARN_NONE;
    axis = a, seen = dims;
  }
  return seen == set && !(imap_guarded(L, m) & set) ? axis : TARN_NONE;
}
/* Do the loops walk through a whole dim, in order? */
static bool f_walks(renv *e, const rv *a, rv *out) {
  const tarn_imap *m = read_map(e, a);
  uint32_t set = (uint32_t)a[1].i, axis = m ? axis_of(e->L, m, set) : TARN_NONE;
  int64_t n = 1, top = 0;
  if (axis == TARN_NONE) return rv_bool(out, false);
  const tarn_ix *x = tarn_ix_get(e->L, m->e[axis]);
  bool whole = x->c == 0;
  for (uint32_t i = 0; i < x->n; i++) {
    const tarn_ixterm *t = &x->t[i];
    uint32_t loop = t->kind == TARN_IX_VAR ? t->arg : ix_loop(e->L, t->arg);
    whole &= t->kind != TARN_IX_MOD && loop != TARN_NONE;
    if (!whole) break;
    int64_t trips = t->kind == TARN_IX_DIV ? e->loops->dim[loop] / t->by : e->loops->dim[loop];
    n *= trips, top += t->coef * (trips - 1);
  }
  return rv_bool(out, whole && n == m->in[axis] && top == n - 1);
}
static bool f_pads_with(renv *e, const rv *a, rv *out) {
  const tarn_imap *m = read_map(e, a);
  return m && rv_bool(out, m->nguard == 0 || tarn_fx_get(e->L, m->fill)->ivalue == a[1].i);
}

/* Is, for all values of the other loops, one of the reduced within the guard? Of one of each. */
static bool meets(tarn_lang *L, const tarn_imap *m, const tarn_guard *g, uint32_t reduced) {
  int64_t at[2 * TARN_MAX_DIMS] = {0};
  uint32_t dims = tarn_ix_dims(L, g->e), own = TARN_NONE, red = TARN_NONE;
  for (uint32_t d = 0; d < m->n; d++) {
    if (!(dims >> d & 1)) continue;
    uint32_t *of = reduced >> d & 1 ? &red : &own;
    if (*of != TARN_NONE) return false;
    *of = d;
  }
  for (int64_t i = 0, n = own == TARN_NONE ? 1 : m->dim[own]; i < n; i++) {
    bool any = false;
    if (own != TARN_NONE) at[own] = i;
    for (int64_t j = 0, w = red == TARN_NONE ? 1 : m->dim[red]; j < w && !any; j++) {
      if (red != TARN_NONE) at[red] = j;
      int64_t e = tarn_ix_eval(L, g->e, at);
      any = e >= g->lo && e < g->hi;
    }
    if (!any) return false;
  }
  return true;
}
/* Guards on loops of their own, so that each may be met by itself. */
static bool always_meets(tarn_lang *L, const tarn_imap *m, uint32_t reduced) {
  uint32_t seen = 0;
  for (uint32_t i = 0; i < m->nguard; i++) {
    uint32_t dims = tarn_ix_dims(L, m->guard[i].e) & reduced;
    if ((seen & dims) || !meets(L, m, &m->guard[i], reduced)) return false;
    seen |= dims;
  }
  return true;
}
static bool f_meets(renv *e, const rv *a, rv *out) {
  const tarn_imap *m = read_map(e, a);
  return m && rv_bool(out, always_meets(e->L, m, (uint32_t)a[1].i));
}
static bool f_pads_below(renv *e, const rv *a, rv *out) {
  const tarn_imap *m = read_map(e, a);
  const tarn_fx *x = m && m->nguard ? tarn_fx_get(e->L, m->fill) : NULL;
  double v = x && tarn_dtype_is_float(x->dtype) ? x->value : x ? (double)x->ivalue : INFINITY;
  return m && rv_bool(out, v < (double)a[1].i);
}
static bool f_nonneg_integers(renv *e, const rv *a, rv *out) {
  const tarn_read *r =
      read_map(e, a) ? loops_read_of(e->loops, a->i, tarn_fx_get(e->L, a->id)->hole) : NULL;
  const kern *k = &e->loops->k;
  return r && rv_bool(out, !tarn_dtype_is_float(kern_leaf_type(k, r->src)->dtype) &&
                               e->host->range(e->host->user, k->leaf[r->src]).lo >= 0);
}

const rfun rfun_units_table[] = {
    {"unit-steps", ":i", f_steps, 0,
     "steps of the reduction that a unit whose operands are padded does at once; 0: none takes it"},
    {"sums-products", "yy:b", f_sums_products, 0,
     "it is a sum of products in the second type, and a unit takes operands of the first, or tf32"},
    {"by-vectors", "e:b", f_vectors, R_READS_FACTS,
     "the most of what is done behind the reduction that a described vector unit does; without "
     "one, sums, bounds and shifts of i32"},
    {"all-by-vectors", ":b", f_vectors_all, R_READS_FACTS,
     "all that is done behind the reduction is such, perhaps cast to other integers"},
    {"fills", "i:l", f_fills, 0, "the next multiple of these steps, where it is none"},
    {"merges-to", "ii:l", f_merges, 0,
     "how many of n groups, of so many steps each, have as many as the unit, where one has not"},
    {"run", "eo:i", f_run, 0, "the most n for which it depends on the loop by (/ loop n) alone"},
    {"walks", "eo:b", f_walks, 0,
     "the loops go through one dim of the tensor that is read, in order"},
    {"always-meets", "eo:b", f_meets, 0,
     "for all values of other loops, some of these are where the tensor is, and nothing beside it"},
    {"pads-below", "ei:b", f_pads_below, 0,
     "something is read beside the tensor, and it is less than this number"},
    {"nonneg-integers", "e:b", f_nonneg_integers, R_READS_FACTS,
     "the tensor that is read holds integers, none below 0"},
    {"pads-with", "ei:b", f_pads_with, 0,
     "what is read beside the tensor is this number, or nothing is"},
};
const uint32_t rfun_units_count = sizeof rfun_units_table / sizeof *rfun_units_table;
