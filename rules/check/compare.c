/* Both sides of an instance, evaluated and compared. */
#include "access/judge.h"
#include "rules/check/check.h"
#include "rules/proof/points.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- the work that an evaluation
 * costs */

/* Elements of all results and operands below the terms; more than most_work() are too many. */
static int64_t work_of(const gen *g, tarn_map *seen, tarn_term t) {
  bool fresh;
  tarn_map_at(seen, t, &fresh);
  if (!fresh) return 0;
  const tarn_node *x = tarn_term_get(g->L, t);
  const tarn_type *type = tarn_type_get(g->L, x->type);
  int64_t sum = type->tuple ? 0 : tarn_type_count(type);
  for (uint32_t i = 0; i < x->n && sum <= most_work(g); i++) sum += work_of(g, seen, x->kid[i]);
  return sum;
}
static bool affordable(const gen *g) {
  tarn_map *seen = tarn_map_new(g->cx);
  int64_t sum = 0;
  for (uint32_t i = 0; i < g->nroot; i++) sum += work_of(g, seen, g->left[i]);
  for (uint32_t i = 0; i < g->r->nrhs; i++) sum += work_of(g, seen, g->right[i]);
  return sum <= most_work(g);
}

/* ---------------------------------------------------------------- evaluation */

/* The left root that right side i rewrites. */
uint32_t check_left(const gen *g, uint32_t i) {
  const rule *r = g->r;
  for (uint32_t k = 0; k < r->nlhs && r->rhs[i].var != TARN_NONE; k++)
    if (r->lhs[k].var == r->rhs[i].var) return g->left[k];
  return r->rhs[i].var != TARN_NONE ? g->e.cls[r->rhs[i].var] : g->left[0];
}

static void give_values(gen *g, values how) {
  for (uint32_t i = 0; i < g->nleaf; i++) {
    leaf *f = &g->leaf[i];
    if (f->kind != F_CONST && f->kind != F_DERIVED)
      f->value = some_values(g, type_at(g, f->term), f, how);
  }
}

static uint32_t bindings(const gen *g, tarn_binding *in) {
  uint32_t nin = 0;
  for (uint32_t i = 0; i < g->nleaf; i++) {
    const leaf *f = &g->leaf[i];
    const tarn_node *x = tarn_term_get(g->L, f->term);
    if (x->op != TARN_OP_INPUT) continue;
    in[nin++] = (tarn_binding){tarn_payload_get(g->L, x->payload)->name, f->value};
  }
  return nin;
}
void check_evaluate(gen *g, tarn_mode mode, const tarn_term *t, uint32_t n, tarn_tensor **out) {
  tarn_binding in[R_CLASSES];
  tarn_eval(g->L, t, n, in, bindings(g, in), mode, NULL, out);
}

/* ---------------------------------------------------------------- what rounding may do */

pvalue *check_bounds(gen *g, tarn_map *given, tarn_term t, int64_t *count) {
  const tarn_type *y = tarn_term_type(g->L, t);
  tarn_type type = *y;
  int64_t n = *count = tarn_type_count(y), index[TARN_MAX_DIMS] = {0};
  pvalue *v = TARN_ARRAY(g->cx, pvalue, n + 1);
  points p = {.L = g->L,
              .cx = g->cx,
              .mode = TARN_WIDE,
              .given = given,
              .bounds = true,
              .budget = INT64_MAX};
  p.memo = tarn_map_new(g->cx);
  p.part = tarn_map_new(g->cx);
  for (int64_t i = 0; i < n; i++) {
    v[i] = points_at(&p, t, index);
    for (uint32_t d = type.n; d-- > 0 && ++index[d] == type.dim[d];) index[d] = 0;
  }
  return v;
}

tarn_map *check_given(gen *g) {
  tarn_map *given = tarn_map_new(g->cx);
  for (uint32_t i = 0; i < g->nleaf; i++) {
    const leaf *f = &g->leaf[i];
    if (tarn_term_get(g->L, f->term)->op != TARN_OP_INPUT) continue;
    int64_t n = tarn_tensor_count(f->value);
    pvalue *v = TARN_ARRAY(g->cx, pvalue, n + 1);
    for (int64_t k = 0; k < n; k++) {
      v[k].v = tarn_tensor_get(f->value, k);
      v[k].r = rounding_leaf(f->value->dtype, v[k].v, ROUNDING_VARIES);
    }
    *tarn_map_at(given, f->term, NULL) = (uint64_t)(uintptr_t)v;
  }
  return given;
}

/* What rounding may do to a left side. Of a rule that is open nothing is promised where a product
 * in another order leaves the type's range. */
static pvalue *left_bounds(gen *g, tarn_map *given, tarn_term t, int64_t *n) {
  pvalue *v = check_bounds(g, given, t, n);
  for (int64_t i = 0; g->r->open && !g->closed && i < *n; i++) rounding_open(&v[i].r);
  return v;
}

/* The same where the right side calls kernels written by hand: of what they compute nothing is
 * known but the values. */
static double values_against_bound(gen *g, tarn_term left, tarn_term right, int64_t *where) {
  tarn_tensor *x;
  int64_t n;
  double most = 0;
  const pvalue *a = left_bounds(g, check_given(g), left, &n);
  check_evaluate(g, TARN_STRICT, &right, 1, &x);
  for (int64_t i = 0; i < n; i++) {
    tarn_value v = tarn_tensor_get(x, i);
    double off = rounding_off(x->dtype, a[i].v, &a[i].r, v, fabs(v.d - a[i].v.d));
    if (off > most) most = off, *where = i;
  }
  return most;
}

/* How often the bound of the left side the right side's is, and what both sides are off by when
 * their roundings go up and down at random; the largest of all elements. */
double check_against_bound(gen *g, tarn_term left, tarn_term right, int64_t *where) {
  if (g->r->nwritten) return values_against_bound(g, left, right, where);
  tarn_map *given = check_given(g);
  tarn_term t[2] = {left, right};
  tarn_binding in[R_CLASSES];
  tarn_rounding off[2];
  int64_t n;
  const pvalue *a = left_bounds(g, given, left, &n), *b = check_bounds(g, given, right, &n);
  double most = 0;
  tarn_eval_rounding(g->L, t, 2, in, bindings(g, in), 1, (tarn_noise){.seed = g->t.n}, NULL, off);
  tarn_dtype type = off[0].strict->dtype;
  for (int64_t i = 0; i < n; i++) {
    double x = rounding_ratio(type, a[i].v, &a[i].r, b[i].v, &b[i].r);
    for (uint32_t k = 0; k < 2; k++) {
      double e = tarn_tensor_get(off[k].error, i).d;
      x = fmax(x, rounding_off(type, a[i].v, &a[i].r, tarn_tensor_get(off[k].strict, i), e));
    }
    if (x > most) most = x, *where = i;
  }
  return most;
}

/* ---------------------------------------------------------------- comparison */

bool check_same_bits(const tarn_tensor *a, const tarn_tensor *b) {
  int64_t n = tarn_tensor_count(a);
  bool real = tarn_dtype_is_float(a->dtype);
  for (int64_t i = 0; i < n; i++) {
    tarn_value x = tarn_tensor_get(a, i), y = tarn_tensor_get(b, i);
    if (real && isnan(x.d) && isnan(y.d)) continue;
    if (x.i != y.i) return false;
  }
  return true;
}

double check_distance(const tarn_tensor *a, const tarn_tensor *b, int64_t *where) {
  int64_t n = tarn_tensor_count(a);
  double most = 0, diff = 0;
  if (!tarn_dtype_is_float(a->dtype)) return check_same_bits(a, b) ? 0 : INFINITY;
  for (int64_t i = 0; i < n; i++) {
    double x = tarn_tensor_get(a, i).d, y = tarn_tensor_get(b, i).d, d = fabs(x - y);
    if (!isfinite(x)) continue;
    most = fmax(most, fabs(x));
    if (x == y) continue;
    if (isnan(d)) d = INFINITY;
    if (d > diff) diff = d, *where = i;
  }
  return diff == 0 ? 0 : diff / fmax(most, 1e-3);
}

/* What a rule in a lower precision is off by: of what rounding may do to the left side where each
 * operation may be off by its whole result. For a sum of products that is at least Σ |a| |b|. */
static double coarse_distance(gen *g, tarn_term left, const tarn_tensor *is, const tarn_tensor *v) {
  int64_t n;
  const pvalue *may = check_bounds(g, check_given(g), left, &n);
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double d = fabs(tarn_tensor_get(v, i).d - tarn_tensor_get(is, i).d);
    if (d > 0) most = fmax(most, d / rounding_total(&may[i].r, may[i].v.d));
  }
  return most;
}

/* Would replacing every root by its right side make a term contain itself? */
static bool cyclic(const gen *g) {
  const rule *r = g->r;
  if (r->nlhs < 2) return false;
  for (uint32_t i = 0; i < r->nrhs; i++)
    for (uint32_t k = 0; k < g->nroot; k++)
      if (g->plain.depends(g->plain.user, g->left[k], g->right[i]) &&
          !(g->r->lhs[k].pat->kind == RP_VAR))
        return true;
  return false;
}

static bool same_types(const gen *g) {
  for (uint32_t i = 0; i < g->r->nrhs; i++)
    if (tarn_term_get(g->L, check_left(g, i))->type != tarn_term_get(g->L, g->right[i])->type)
      return false;
  return true;
}

/* The values that a rule was refuted by stay for what is printed. */
static void swap_values(gen *g, tarn_tensor **kept) {
  for (uint32_t i = 0; i < g->nleaf; i++) {
    tarn_tensor *x = g->leaf[i].value;
    g->leaf[i].value = kept[i], kept[i] = x;
  }
}
static void keep_values(const gen *g, tarn_tensor **kept) {
  for (uint32_t i = 0; i < g->nleaf; i++) kept[i] = g->leaf[i].value;
}

/* Of a large instance few values tell what is wrong: several are tried. */
static bool same_strictly(gen *g, const tarn_term *t, uint32_t n) {
  enum { TIMES = 3 };
  tarn_tensor *x[2 * R_SEGS];
  bool same = true;
  uint32_t times = g->far && g->r->numeric == TARN_RULE_EXACT ? TIMES : 1;
  for (uint32_t k = 0; k < times && same; k++) {
    give_values(g, V_STRANGE);
    check_evaluate(g, TARN_STRICT, t, 2 * n, x);
    for (uint32_t i = 0; i < n; i++) same &= check_same_bits(x[i], x[n + i]);
  }
  return same;
}
/* An approximation is off by this, relative; what rounding does to the long sums of a large left
 * side is not its fault. */
static double approximate(gen *g, const tarn_term *t, uint32_t n) {
  enum { OWN = 4 };
  tarn_tensor *wide[R_SEGS], *strict[2 * R_SEGS];
  double most = 0;
  int64_t where;
  check_evaluate(g, TARN_WIDE, t, n, wide);
  check_evaluate(g, TARN_STRICT, t, 2 * n, strict);
  for (uint32_t i = 0; i < n; i++) {
    double own = check_distance(wide[i], strict[i], &where),
           x = g->r->bound > TARN_RTOL ? coarse_distance(g, t[i], wide[i], strict[n + i])
                                       : check_distance(wide[i], strict[n + i], &where);
    most = fmax(most, x - (g->far && isfinite(own) ? OWN * own : 0));
  }
  return most;
}

void check_compare(gen *g, verdict *v) {
  tarn_term t[2 * R_SEGS];
  uint32_t n = g->r->nrhs;
  tarn_tensor *kept[R_CLASSES];
  int64_t where = 0;
  bool approx = g->r->numeric == TARN_RULE_APPROX;
  v->exact = v->real = true;
  for (uint32_t i = 0; i < n; i++) {
    t[i] = check_left(g, i), t[n + i] = g->right[i];
    v->differs |= t[i] != t[n + i];
  }
  if (!v->differs) return;
  if (!same_types(g)) v->why = "the sides differ in type";
  else if (cyclic(g)) v->why = "the right side contains what it replaces";
  if (v->why) {
    v->exact = v->real = false;
    v->error = INFINITY;
    return;
  }
  if (!affordable(g) || tarn_term_type(g->L, t[0])->tuple) {
    v->applied = false;
    return;
  }
  v->exact = same_strictly(g, t, n);
  if (v->exact && g->r->numeric == TARN_RULE_EXACT) return;
  keep_values(g, kept);
  give_values(g, V_SPREAD);
  for (uint32_t i = 0; i < n && !approx; i++)
    v->error = fmax(v->error, check_against_bound(g, t[i], t[n + i], &where));
  v->real = !approx && v->error <= ROUNDING_MOST;
  if (g->r->numeric == TARN_RULE_EXACT) swap_values(g, kept);
  if (!approx) return;
  give_values(g, V_TAME);
  v->error = fmax(v->error, approximate(g, t, n));
}

double check_apart(gen *g) {
  double most = 0;
  int64_t where;
  tarn_tensor *kept[R_CLASSES];
  keep_values(g, kept);
  give_values(g, V_TAME);
  for (uint32_t i = 0; i < g->r->nrhs; i++) {
    tarn_term t[2] = {check_left(g, i), g->right[i]};
    tarn_tensor *x[2];
    check_evaluate(g, TARN_WIDE, t, 2, x);
    most = fmax(most, check_distance(x[0], x[1], &where));
  }
  swap_values(g, kept);
  return most;
}

bool check_bad(const rule *r, const verdict *v) {
  if (!v->made || !v->applied || !v->differs) return false;
  if (v->why) return true;
  if (r->numeric == TARN_RULE_EXACT) return !v->exact;
  if (r->numeric == TARN_RULE_REASSOC) return !v->real;
  return v->error > r->bound;
}
