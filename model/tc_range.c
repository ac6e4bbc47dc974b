/* Tensor comprehensions: subscripts as sums of indices, and the ranges of a statement's indices.
 *
 * An index starts at 0 and runs as far as no read goes out of bounds. It is found in rounds: a
 * subscript with one index that has no range yet bounds that index; what one round finds serves the
 * next. Afterwards every subscript is shown to stay in bounds over all ranges, so that what is
 * ambiguous is refused and nothing reads outside. */
#include "model/tc.h"
#include <string.h>

tc_index *tc_index_of(const tc_run *r, const char *name) {
  for (uint32_t i = 0; i < r->nindex; i++)
    if (!strcmp(r->index[i].name, name)) return &r->index[i];
  return NULL;
}

/* ---------------------------------------------------------------- numbers */

_Noreturn static void too_large(const tc_run *r, const tc_expr *e) {
  tc_bad(r->text, e->at, "this number is too large");
}

static int64_t checked(const tc_run *r, const tc_expr *e, int64_t v) {
  if (v > IM_MAX_EXTENT || v < -IM_MAX_EXTENT) too_large(r, e);
  return v;
}

static int64_t product(const tc_run *r, const tc_expr *e, int64_t a, int64_t b) {
  int64_t v;
  if (__builtin_mul_overflow(a, b, &v)) too_large(r, e);
  return checked(r, e, v);
}

static int64_t extent_of(const tc_run *r, const tc_expr *e) {
  const tc_var *v = tc_find(r, e->name);
  if (!v || v->what != TC_TENSOR || v->t == TARN_NONE)
    tc_bad(r->text, e->at, "%s is no tensor with extents", e->name);
  const tarn_type *t = tarn_term_type(r->L, v->t);
  if (e->i >= t->n) tc_bad(r->text, e->at, "%s has %u dims, counted from 0", e->name, t->n);
  return t->dim[e->i];
}

static int64_t named_number(const tc_run *r, const tc_expr *e) {
  const tc_var *v = tc_find(r, e->name);
  if (!v) tc_bad(r->text, e->at, "%s is no size: a number must be known here", e->name);
  if (v->what == TC_TENSOR) tc_bad(r->text, e->at, "%s is a tensor, no number", e->name);
  if (!v->known)
    tc_bad(r->text, e->at, "%s is not known: --%s %s=… says it", e->name,
           v->what == TC_SIZE ? "shape" : "set", e->name);
  return checked(r, e, v->value);
}

static int64_t divided(const tc_run *r, const tc_expr *e, int64_t a, int64_t b) {
  if (b <= 0)
    tc_bad(r->text, e->at, "%s by %lld, which is not positive", tc_op_text(e->op), (long long)b);
  if (a < 0)
    tc_bad(r->text, e->at, "%s of %lld, which is negative", tc_op_text(e->op), (long long)a);
  return e->op == TC_DIV ? a / b : a % b;
}

int64_t tc_number(const tc_run *r, const tc_expr *e) {
  if (e->kind == TC_INT) return checked(r, e, e->i);
  if (e->kind == TC_NAME) return named_number(r, e);
  if (e->kind == TC_EXTENT) return extent_of(r, e);
  bool sum = e->kind == TC_OP && (e->op == TC_NEG || (e->op >= TC_ADD && e->op <= TC_MOD));
  if (!sum) tc_bad(r->text, e->at, "a whole number that is known now is expected");
  int64_t a = tc_number(r, e->kid[0]), b = e->n > 1 ? tc_number(r, e->kid[1]) : 0;
  switch (e->op) {
  case TC_NEG: return -a;
  case TC_ADD: return checked(r, e, a + b);
  case TC_SUB: return checked(r, e, a - b);
  case TC_MUL: return product(r, e, a, b);
  default: return divided(r, e, a, b);
  }
}

/* ---------------------------------------------------------------- subscripts */

static tc_sum constant(int64_t c) { return (tc_sum){.c = c}; }
static tc_sum data(void) { return (tc_sum){.data = true}; }

static tc_sum single(const tc_run *r, tc_atom a) {
  return (tc_sum){.n = 1, .atom = tarn_copy(r->cx, &a, sizeof a)};
}

static bool alike(const tc_atom *a, const tc_atom *b) {
  return a->op == TC_ADD && b->op == TC_ADD && a->index == b->index;
}

static void add_atom(tc_sum *s, tc_atom a) {
  uint32_t i = 0;
  while (i < s->n && !alike(&s->atom[i], &a)) i++;
  if (i == s->n) s->atom[s->n++] = a;
  else s->atom[i].coef += a.coef;
  if (s->atom[i].coef == 0) s->atom[i] = s->atom[--s->n];
}

static tc_sum added(const tc_run *r, const tc_expr *e, tc_sum a, tc_sum b, int64_t by) {
  if (a.data || b.data) return data();
  tc_sum s = {.c = checked(r, e, a.c + product(r, e, b.c, by))};
  s.atom = TARN_ARRAY(r->cx, tc_atom, a.n + b.n + 1);
  for (uint32_t i = 0; i < a.n; i++) add_atom(&s, a.atom[i]);
  for (uint32_t i = 0; i < b.n; i++) {
    tc_atom x = b.atom[i];
    x.coef = product(r, e, x.coef, by);
    if (x.coef) add_atom(&s, x);
  }
  return s;
}

static tc_sum times(const tc_run *r, const tc_expr *e, tc_sum a, tc_sum b) {
  if (a.data || b.data) return data();
  if (a.n && b.n) tc_bad(r->text, e->at, "a subscript may not hold a product of two indices");
  return a.n ? added(r, e, constant(0), a, b.c) : added(r, e, constant(0), b, a.c);
}

static tc_sum parted(const tc_run *r, const tc_expr *e, tc_sum a, tc_sum b) {
  if (a.data || b.data) return data();
  if (b.n) tc_bad(r->text, e->at, "a subscript may hold %s only by a number", tc_op_text(e->op));
  if (!a.n) return constant(divided(r, e, a.c, b.c));
  if (b.c <= 0) divided(r, e, 0, b.c);
  const tc_sum *of = tarn_copy(r->cx, &a, sizeof a);
  return single(r, (tc_atom){.coef = 1, .op = e->op, .of = of, .by = b.c, .from = e});
}

static tc_sum named(const tc_run *r, const tc_expr *e) {
  const tc_index *x = tc_index_of(r, e->name);
  if (x)
    return single(r,
                  (tc_atom){.coef = 1, .op = TC_ADD, .index = (uint32_t)(x - r->index), .from = e});
  const tc_var *v = tc_find(r, e->name);
  bool fixed = !v || v->what == TC_SIZE || v->known;
  return fixed ? constant(tc_number(r, e)) : data();
}

tc_sum tc_subscript(const tc_run *r, const tc_expr *e) {
  if (e->kind == TC_NAME) return named(r, e);
  if (e->kind == TC_REAL) tc_bad(r->text, e->at, "a subscript is a whole number");
  if (e->kind == TC_APPLY) return data();
  if (e->kind != TC_OP) return constant(tc_number(r, e));
  bool sum = e->op == TC_NEG || (e->op >= TC_ADD && e->op <= TC_MOD);
  if (!sum) return data();
  tc_sum a = tc_subscript(r, e->kid[0]);
  if (e->op == TC_NEG) return added(r, e, constant(0), a, -1);
  tc_sum b = tc_subscript(r, e->kid[1]);
  switch (e->op) {
  case TC_ADD: return added(r, e, a, b, 1);
  case TC_SUB: return added(r, e, a, b, -1);
  case TC_MUL: return times(r, e, a, b);
  default: return parted(r, e, a, b);
  }
}

/* ---------------------------------------------------------------- what a sum may be */

typedef struct interval {
  int64_t lo, hi; /* inclusive */
} interval;

static interval of_sum(const tc_run *r, const tc_sum *s);

static interval of_part(const tc_run *r, const tc_atom *a) {
  interval x = of_sum(r, a->of);
  if (x.lo < 0)
    tc_bad(r->text, a->from->at, "%s of a subscript that may be negative: %lld", tc_op_text(a->op),
           (long long)x.lo);
  if (a->op == TC_DIV) return (interval){x.lo / a->by, x.hi / a->by};
  if (x.hi - x.lo < a->by && x.lo % a->by <= x.hi % a->by)
    return (interval){x.lo % a->by, x.hi % a->by};
  return (interval){0, a->by - 1};
}

static interval of_atom(const tc_run *r, const tc_atom *a) {
  const tc_index *x = &r->index[a->index];
  if (a->op == TC_ADD) return (interval){x->lo, x->hi - 1};
  return of_part(r, a);
}

static void widen(const tc_run *r, interval *x, const tc_atom *a) {
  interval y = of_atom(r, a);
  int64_t p = product(r, a->from, a->coef, y.lo), q = product(r, a->from, a->coef, y.hi);
  x->lo = checked(r, a->from, x->lo + tarn_min(p, q));
  x->hi = checked(r, a->from, x->hi + tarn_max(p, q));
}

static interval of_sum(const tc_run *r, const tc_sum *s) {
  interval x = {s->c, s->c};
  for (uint32_t i = 0; i < s->n; i++) widen(r, &x, &s->atom[i]);
  return x;
}

/* ---------------------------------------------------------------- accesses */

/* One dim of one read: 0 <= sum < extent. */
typedef struct bound {
  tc_sum sum;
  int64_t extent;
  const tc_expr *at;
  const char *tensor;
} bound;
typedef struct solver {
  tc_run *r;
  TARN_VEC(bound) bound;
  int64_t end[TARN_MAX_DIMS + 1]; /* of each index in this round */
} solver;

static void add_bound(solver *s, const char *tensor, const tc_expr *at, int64_t extent) {
  bound b = {tc_subscript(s->r, at), extent, at, tensor};
  if (!b.sum.data) tarn_push(s->r->cx, &s->bound, b);
}

/* A tensor that has a value by now; NULL: a function, or nothing. */
static const tc_var *tensor_named(const tc_run *r, const char *name) {
  const tc_var *v = tc_find(r, name);
  return v && v->what == TC_TENSOR && v->t != TARN_NONE ? v : NULL;
}

static void add_reads(solver *s, const tc_expr *e) {
  const tc_var *v = e->kind == TC_APPLY ? tensor_named(s->r, e->name) : NULL;
  if (v) {
    const tarn_type *t = tarn_term_type(s->r->L, v->t);
    if (t->n != e->n)
      tc_bad(s->r->text, e->at, "%s has %u dims, %u subscripts are given", e->name, t->n, e->n);
    for (uint32_t d = 0; d < e->n; d++) add_bound(s, e->name, e->kid[d], t->dim[d]);
  }
  for (uint32_t i = 0; i < e->n; i++) add_reads(s, e->kid[i]);
}

/* A left side that has a shape already bounds its indices as a read does. */
static void add_left(solver *s) {
  const tc_stmt *st = s->r->stmt;
  const tc_var *v = tc_find(s->r, st->left.name);
  if (!v || v->t == TARN_NONE) return;
  const tarn_type *t = tarn_term_type(s->r->L, v->t);
  if (t->n != st->nindex)
    tc_bad(s->r->text, st->left.at, "%s has %u dims, %u indices are given", st->left.name, t->n,
           st->nindex);
  for (uint32_t d = 0; d < t->n; d++) {
    tc_expr *e = TARN_NEW(s->r->cx, tc_expr);
    *e = (tc_expr){.kind = TC_NAME, .at = st->index[d].at, .name = st->index[d].name};
    add_bound(s, st->left.name, e, t->dim[d]);
  }
}

/* ---------------------------------------------------------------- indices */

static void add_index(tc_run *r, const char *name, tc_at at, bool left) {
  if (tc_index_of(r, name)) return;
  if (r->nindex == TARN_MAX_DIMS)
    tc_bad(r->text, at, "a statement may have at most %d indices", TARN_MAX_DIMS);
  r->index[r->nindex++] = (tc_index){.name = name, .at = at, .left = left};
}

static void left_index(tc_run *r, const tc_name *x) {
  if (tc_find(r, x->name))
    tc_bad(r->text, x->at, "%s is the name of a %s, not of an index", x->name,
           tc_find(r, x->name)->what == TC_TENSOR ? "tensor" : "number");
  if (tc_index_of(r, x->name))
    tc_bad(r->text, x->at, "%s stands twice on the left side: an element would be written twice",
           x->name);
  add_index(r, x->name, x->at, true);
}

static void collect(tc_run *r, const tc_expr *e) {
  if (e->kind == TC_APPLY && !tc_find(r, e->name) && !tc_is_function(e->name))
    tc_bad(r->text, e->at, "%s is neither a tensor that has a value here nor a function", e->name);
  if (e->kind == TC_NAME && !tc_find(r, e->name)) add_index(r, e->name, e->at, false);
  for (uint32_t i = 0; i < e->n; i++) collect(r, e->kid[i]);
}

static void given_range(tc_run *r, const tc_where *w) {
  tc_index *x = tc_index_of(r, w->name);
  if (!x) tc_bad(r->text, w->at, "%s is no index of this statement", w->name);
  if (x->given) tc_bad(r->text, w->at, "%s has a range already", w->name);
  x->lo = tc_number(r, w->lo);
  x->hi = tc_number(r, w->hi);
  if (x->hi < x->lo)
    tc_bad(r->text, w->at, "the range of %s, %lld:%lld, ends before it begins", w->name,
           (long long)x->lo, (long long)x->hi);
  x->known = x->given = true;
}

/* An index in a bound would make ranges that are no rectangle. */
static void refuse_indices(const tc_run *r, const tc_where *w, const tc_expr *e) {
  if (e->kind == TC_NAME && tc_index_of(r, e->name))
    tc_bad(r->text, e->at, "the range of %s depends on %s: ranges are rectangles", w->name,
           e->name);
  for (uint32_t i = 0; i < e->n; i++) refuse_indices(r, w, e->kid[i]);
}

/* ---------------------------------------------------------------- rounds */

/* The number of indices without a range in a sum, at most 2. */
static uint32_t unknown(const tc_run *r, const tc_sum *s) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < s->n; i++)
    n += s->atom[i].op == TC_ADD ? !r->index[s->atom[i].index].known : unknown(r, s->atom[i].of);
  return n;
}

static bool atom_unknown(const tc_run *r, const tc_atom *a) {
  return a->op == TC_ADD ? !r->index[a->index].known : unknown(r, a->of) > 0;
}

/* least <= sum <= most: how far may its one index go? */
static void bound_index(solver *s, const tc_sum *sum, int64_t least, int64_t most) {
  const tc_run *r = s->r;
  interval rest = {sum->c, sum->c};
  const tc_atom *a = NULL;
  for (uint32_t i = 0; i < sum->n; i++)
    if (atom_unknown(r, &sum->atom[i])) a = &sum->atom[i];
    else widen(r, &rest, &sum->atom[i]);
  if (a->op == TC_MOD) return;
  int64_t end = a->coef > 0 ? tarn_floordiv(most - rest.hi, a->coef)
                            : tarn_floordiv(rest.lo - least, -a->coef);
  if (a->op == TC_DIV) {
    int64_t far = product(r, a->from, end < 0 ? -1 : end, a->by) + a->by - 1;
    bound_index(s, a->of, 0, end < 0 ? -1 : far);
    return;
  }
  s->end[a->index] = tarn_min(s->end[a->index], end + 1);
}

_Noreturn static void nothing_fits(const solver *s, const tc_index *x) {
  tc_bad(s->r->text, x->at, "nothing is left for %s: its subscripts are out of bounds from 0 on",
         x->name);
}

static bool one_round(solver *s) {
  bool more = false;
  for (uint32_t i = 0; i < s->r->nindex; i++) s->end[i] = INT64_MAX;
  for (uint32_t i = 0; i < s->bound.n; i++) {
    const bound *b = &s->bound.p[i];
    if (unknown(s->r, &b->sum) == 1) bound_index(s, &b->sum, 0, b->extent - 1);
  }
  for (uint32_t i = 0; i < s->r->nindex; i++) {
    tc_index *x = &s->r->index[i];
    if (x->known || s->end[i] == INT64_MAX) continue;
    if (s->end[i] < 0) nothing_fits(s, x);
    x->hi = s->end[i];
    x->known = more = true;
  }
  return more;
}

/* ---------------------------------------------------------------- refusals */

static bool sum_has(const tc_sum *s, uint32_t index) {
  bool has = false;
  for (uint32_t i = 0; i < s->n; i++)
    has |= s->atom[i].op == TC_ADD ? s->atom[i].index == index : sum_has(s->atom[i].of, index);
  return has;
}

static const char *other_unknown(const tc_run *r, const tc_sum *s, uint32_t but) {
  for (uint32_t i = 0; i < r->nindex; i++)
    if (i != but && !r->index[i].known && sum_has(s, i)) return r->index[i].name;
  return NULL;
}

_Noreturn static void unbounded(const solver *s, uint32_t i) {
  const tc_index *x = &s->r->index[i];
  for (uint32_t k = 0; k < s->bound.n; k++) {
    const bound *b = &s->bound.p[k];
    const char *with = sum_has(&b->sum, i) ? other_unknown(s->r, &b->sum, i) : NULL;
    if (with)
      tc_bad(s->r->text, x->at,
             "the ranges of %s and %s in the statement of %s are no rectangle: a subscript of %s "
             "bounds only both together; 'where %s in 0:…' settles it",
             x->name, with, s->r->stmt->left.name, b->tensor, x->name);
  }
  tc_bad(s->r->text, x->at,
         "nothing bounds %s in the statement of %s; 'where %s in 0:…' settles it", x->name,
         s->r->stmt->left.name, x->name);
}

static bool empty(const tc_run *r) {
  bool none = false;
  for (uint32_t i = 0; i < r->nindex; i++) none |= r->index[i].hi == r->index[i].lo;
  return none;
}

static void check_bounds(const solver *s) {
  for (uint32_t i = 0; i < s->bound.n && !empty(s->r); i++) {
    const bound *b = &s->bound.p[i];
    interval x = of_sum(s->r, &b->sum);
    if (x.lo < 0 || x.hi >= b->extent)
      tc_bad(s->r->text, b->at->at,
             "this subscript of %s goes from %lld to %lld, its extent is %lld; 'where' can bound "
             "the index",
             b->tensor, (long long)x.lo, (long long)x.hi, (long long)b->extent);
  }
}

/* Of the first index that has no range, one that stands in a subscript with another rather than
 * that other. */
static void check_known(const solver *s) {
  for (uint32_t i = s->r->nindex; i-- > 0;)
    if (!s->r->index[i].known) unbounded(s, i);
}

void tc_indices(tc_run *r) {
  const tc_stmt *st = r->stmt;
  r->index = TARN_ARRAY(r->cx, tc_index, TARN_MAX_DIMS + 1);
  r->nindex = 0;
  for (uint32_t i = 0; i < st->nindex; i++) left_index(r, &st->index[i]);
  collect(r, st->value);
  for (uint32_t i = 0; i < st->nwhere; i++)
    if (!st->where[i].name) collect(r, st->where[i].lo);
}

void tc_ranges(tc_run *r) {
  const tc_stmt *st = r->stmt;
  solver s = {.r = r};
  for (uint32_t i = 0; i < st->nwhere; i++) {
    const tc_where *w = &st->where[i];
    if (!w->name) continue;
    refuse_indices(r, w, w->lo);
    refuse_indices(r, w, w->hi);
    given_range(r, w);
  }
  add_left(&s);
  add_reads(&s, st->value);
  for (uint32_t i = 0; i < st->nwhere; i++)
    if (!st->where[i].name) add_reads(&s, st->where[i].lo);
  while (one_round(&s)) {}
  check_known(&s);
  check_bounds(&s);
}
