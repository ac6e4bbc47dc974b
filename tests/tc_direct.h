/* A direct interpreter of tensor comprehensions: the trees of a definition, element by element,
 * with ranges found by trying.  It shares the reader with the importer and nothing else. What it
 * refuses sets `why`. */
#ifndef TARN_TESTS_TC_DIRECT_H
#define TARN_TESTS_TC_DIRECT_H
#include "model/tc.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DT_MOST  64
#define DT_LIMIT 64 /* no index of a test goes so far */

typedef struct dt_value {
  tarn_dtype t;
  bool literal;
  double d; /* of floats */
  int64_t i;
} dt_value;
typedef struct dt_tensor {
  const char *name;
  tarn_tensor *v;
} dt_tensor;
typedef struct dt_index {
  const char *name;
  bool known, left;
  int64_t lo, hi, at;
} dt_index;
typedef struct dt {
  tarn_ctx *cx;
  const char *why;
  uint32_t nsize, ntensor, nindex;
  struct {
    const char *name;
    int64_t v;
  } size[DT_MOST];
  dt_tensor tensor[DT_MOST];
  dt_index index[DT_MOST];
  const tc_stmt *s;
  bool outside; /* a data-dependent subscript */
} dt;

static inline dt_value dt_eval(dt *x, const tc_expr *e);

static inline bool dt_refuse(dt *x, const char *why) {
  if (!x->why) x->why = why;
  return false;
}
static inline dt_tensor *dt_find(dt *x, const char *name) {
  for (uint32_t i = 0; i < x->ntensor; i++)
    if (!strcmp(x->tensor[i].name, name)) return &x->tensor[i];
  return NULL;
}
static inline dt_index *dt_index_of(dt *x, const char *name) {
  for (uint32_t i = 0; i < x->nindex; i++)
    if (!strcmp(x->index[i].name, name)) return &x->index[i];
  return NULL;
}
static inline bool dt_size(const dt *x, const char *name, int64_t *v) {
  for (uint32_t i = 0; i < x->nsize; i++)
    if (!strcmp(x->size[i].name, name)) {
      *v = x->size[i].v;
      return true;
    }
  return false;
}

/* ---- values ---- */
static inline dt_value dt_whole(tarn_dtype t, int64_t i) {
  if (t == TARN_I32) i = (int32_t)i;
  if (t == TARN_BOOL) i = i != 0;
  return (dt_value){.t = t, .i = i, .d = (double)i};
}
static inline dt_value dt_real(tarn_dtype t, double d) {
  return (dt_value){.t = t, .d = t == TARN_F32 ? (double)(float)d : d};
}
static inline bool dt_float(tarn_dtype t) { return t == TARN_F32 || t == TARN_F64; }
static inline int64_t dt_cut(double d, tarn_dtype t) {
  if (isnan(d)) return 0;
  if (t == TARN_I32) return d >= INT32_MAX ? INT32_MAX : d <= INT32_MIN ? INT32_MIN : (int64_t)d;
  return d >= 9e18 ? INT64_MAX : d <= -9e18 ? INT64_MIN : (int64_t)d;
}
static inline dt_value dt_as(dt_value v, tarn_dtype t) {
  if (dt_float(t)) return dt_real(t, dt_float(v.t) ? v.d : (double)v.i);
  if (t == TARN_BOOL) return dt_whole(t, dt_float(v.t) ? v.d != 0 : v.i != 0);
  return dt_whole(t, dt_float(v.t) ? dt_cut(v.d, t) : v.i);
}
static inline int dt_rank(tarn_dtype t) {
  return t == TARN_BOOL ? 0 : t == TARN_I32 ? 1 : t == TARN_F32 ? 2 : 3;
}
static inline tarn_dtype dt_common(dt_value a, dt_value b) {
  if (a.literal != b.literal) {
    dt_value l = a.literal ? a : b, v = a.literal ? b : a;
    if (dt_float(l.t)) return dt_float(v.t) ? v.t : TARN_F32;
    return v.t == TARN_BOOL ? TARN_I32 : v.t;
  }
  return dt_rank(a.t) > dt_rank(b.t) ? a.t : b.t;
}
static inline tarn_dtype dt_counted(tarn_dtype t) { return t == TARN_BOOL ? TARN_I32 : t; }

static inline double dt_least(double a, double b) {
  return isnan(a) || isnan(b) ? (double)NAN : a < b ? a : b;
}
static inline double dt_most(double a, double b) {
  return isnan(a) || isnan(b) ? (double)NAN : a > b ? a : b;
}
/* + - * / % and < (min), > (max) */
static inline dt_value dt_op(char op, dt_value a, dt_value b, tarn_dtype t) {
  a = dt_as(a, t);
  b = dt_as(b, t);
  if (dt_float(t)) {
    switch (op) {
    case '+': return dt_real(t, a.d + b.d);
    case '-': return dt_real(t, a.d - b.d);
    case '*': return dt_real(t, a.d * b.d);
    case '/': return dt_real(t, a.d / b.d);
    case '%': return dt_real(t, fmod(a.d, b.d));
    case '<': return dt_real(t, dt_least(a.d, b.d));
    default: return dt_real(t, dt_most(a.d, b.d));
    }
  }
  switch (op) {
  case '+': return dt_whole(t, a.i + b.i);
  case '-': return dt_whole(t, a.i - b.i);
  case '*': return dt_whole(t, a.i * b.i);
  case '/': return dt_whole(t, b.i ? a.i / b.i : 0);
  case '%': return dt_whole(t, b.i ? a.i % b.i : 0);
  case '<': return a.i < b.i ? a : b;
  default: return a.i > b.i ? a : b;
  }
}
static inline bool dt_less(dt_value a, dt_value b, tarn_dtype t) {
  return dt_float(t) ? a.d < b.d : a.i < b.i;
}
static inline dt_value dt_compare(tc_op op, dt_value a, dt_value b) {
  tarn_dtype t = dt_common(a, b);
  a = dt_as(a, t);
  b = dt_as(b, t);
  bool eq = dt_float(t) ? a.d == b.d : a.i == b.i;
  bool lt = dt_less(a, b, t), gt = dt_less(b, a, t), r = false;
  switch (op) {
  case TC_EQ: r = eq; break;
  case TC_NE: r = !eq; break;
  case TC_LT: r = lt; break;
  case TC_LE: r = lt || eq; break;
  case TC_GT: r = gt; break;
  default: r = gt || eq; break;
  }
  return dt_whole(TARN_BOOL, r);
}

static inline dt_value dt_binary(dt *x, const tc_expr *e) {
  static const char text[] = "+-*/%";
  dt_value a = dt_eval(x, e->kid[0]), b = dt_eval(x, e->kid[1]);
  if (e->op == TC_AND || e->op == TC_OR) {
    bool p = dt_as(a, TARN_BOOL).i, q = dt_as(b, TARN_BOOL).i;
    return dt_whole(TARN_BOOL, e->op == TC_AND ? p && q : p || q);
  }
  if (e->op < TC_ADD) return dt_compare(e->op, a, b);
  bool folds = a.literal && b.literal && e->op <= TC_MUL;
  tarn_dtype t = folds && (dt_float(a.t) || dt_float(b.t)) ? TARN_F64 : dt_counted(dt_common(a, b));
  dt_value v = dt_op(text[e->op - TC_ADD], a, b, t);
  if (folds && t == TARN_F64) v.t = TARN_F32;
  v.literal = folds;
  return v;
}

static inline dt_value dt_call(dt *x, const tc_expr *e) {
  dt_value a = dt_eval(x, e->kid[0]), b = e->n > 1 ? dt_eval(x, e->kid[1]) : a;
  tarn_dtype t = dt_counted(e->n > 1 ? dt_common(a, b) : a.t);
  a.literal = b.literal = false;
  if (!strcmp(e->name, "float")) return dt_as(a, TARN_F32);
  if (!strcmp(e->name, "int")) return dt_as(a, TARN_I32);
  if (!strcmp(e->name, "fmax")) return dt_op('>', a, b, t);
  if (!strcmp(e->name, "fmin")) return dt_op('<', a, b, t);
  if (!strcmp(e->name, "relu")) return dt_op('>', a, dt_whole(TARN_I32, 0), t);
  a = dt_as(a, t);
  if (!strcmp(e->name, "abs")) return dt_float(t) ? dt_real(t, fabs(a.d)) : dt_whole(t, llabs(a.i));
  t = dt_float(t) ? t : TARN_F32;
  return dt_real(t, tanh(dt_as(a, t).d));
}

static inline dt_value dt_element(const tarn_tensor *t, int64_t flat) {
  tarn_value v = tarn_tensor_get(t, flat);
  return dt_float(t->dtype) ? dt_real(t->dtype, v.d) : dt_whole(t->dtype, v.i);
}

static inline dt_value dt_read(dt *x, const tc_expr *e, const tarn_tensor *t) {
  int64_t flat = 0;
  for (uint32_t d = 0; d < e->n; d++) {
    int64_t at = dt_eval(x, e->kid[d]).i;
    if (at < 0) at += t->dim[d];
    if (at < 0 || at >= t->dim[d]) {
      x->outside = true;
      at = 0;
    }
    flat = flat * t->dim[d] + at;
  }
  return dt_element(t, flat);
}

static inline dt_value dt_eval(dt *x, const tc_expr *e) {
  int64_t n;
  dt_tensor *t = e->name ? dt_find(x, e->name) : NULL;
  dt_index *i = e->name ? dt_index_of(x, e->name) : NULL;
  dt_value v;
  switch (e->kind) {
  case TC_INT:
  case TC_REAL:
    v = e->kind == TC_INT ? dt_whole(TARN_I32, e->i) : (dt_value){.t = TARN_F32, .d = e->r};
    v.literal = true;
    return v;
  case TC_NAME:
    if (i) return dt_whole(TARN_I32, i->at);
    if (t) return dt_element(t->v, 0);
    v = dt_whole(TARN_I32, dt_size(x, e->name, &n) ? n : 0);
    v.literal = true;
    return v;
  case TC_EXTENT:
    v = dt_whole(TARN_I32, t->v->dim[e->i]);
    v.literal = true;
    return v;
  case TC_APPLY: return t ? dt_read(x, e, t->v) : dt_call(x, e);
  default: break;
  }
  if (e->op == TC_CHOOSE) {
    dt_value a = dt_eval(x, e->kid[1]), b = dt_eval(x, e->kid[2]);
    return dt_as(dt_as(dt_eval(x, e->kid[0]), TARN_BOOL).i ? a : b, dt_common(a, b));
  }
  if (e->op == TC_NOT) return dt_whole(TARN_BOOL, !dt_as(dt_eval(x, e->kid[0]), TARN_BOOL).i);
  if (e->op != TC_NEG) return dt_binary(x, e);
  v = dt_eval(x, e->kid[0]);
  if (v.literal) return dt_float(v.t) ? (v.d = -v.d, v) : (v.i = -v.i, v);
  return dt_float(v.t) ? dt_real(v.t, -v.d) : dt_whole(dt_counted(v.t), -v.i);
}

/* ---- ranges ---- */
static inline bool dt_has_read(dt *x, const tc_expr *e) {
  bool has = (e->kind == TC_APPLY || e->kind == TC_NAME) && dt_find(x, e->name);
  for (uint32_t i = 0; i < e->n; i++) has |= dt_has_read(x, e->kid[i]);
  return has;
}
/* The indices of a subscript, each once. */
static inline void dt_used(dt *x, const tc_expr *e, bool *used) {
  dt_index *i = e->kind == TC_NAME ? dt_index_of(x, e->name) : NULL;
  if (i) used[i - x->index] = true;
  for (uint32_t k = 0; k < e->n; k++) dt_used(x, e->kid[k], used);
}
/* Is it in bounds for all values of the indices from number i on? */
static inline bool dt_inside(dt *x, const tc_expr *e, int64_t extent, const bool *used,
                             uint32_t i) {
  while (i < x->nindex && (!used[i] || !x->index[i].known)) i++;
  if (i == x->nindex) {
    int64_t at = dt_eval(x, e).i;
    return at >= 0 && at < extent;
  }
  for (x->index[i].at = x->index[i].lo; x->index[i].at < x->index[i].hi; x->index[i].at++)
    if (!dt_inside(x, e, extent, used, i + 1)) return false;
  return true;
}
/* How far may the one index go that has no range? */
static inline int64_t dt_far(dt *x, const tc_expr *e, int64_t extent, const bool *used,
                             dt_index *i) {
  for (i->at = 0; i->at < DT_LIMIT; i->at++)
    if (!dt_inside(x, e, extent, used, 0)) return i->at;
  return INT64_MAX;
}

typedef struct dt_bound {
  const tc_expr *e;
  int64_t extent;
} dt_bound;
typedef struct dt_bounds {
  uint32_t n;
  dt_bound p[256];
} dt_bounds;

static inline bool dt_gather(dt *x, const tc_expr *e, dt_bounds *b) {
  dt_tensor *t = e->kind == TC_APPLY ? dt_find(x, e->name) : NULL;
  if (t && t->v->n != e->n) return dt_refuse(x, "subscripts");
  for (uint32_t d = 0; t && d < e->n; d++)
    if (!dt_has_read(x, e->kid[d]) && b->n < 256)
      b->p[b->n++] = (dt_bound){e->kid[d], t->v->dim[d]};
  for (uint32_t i = 0; i < e->n; i++)
    if (!dt_gather(x, e->kid[i], b)) return false;
  return true;
}

static inline bool dt_round(dt *x, const dt_bounds *b) {
  int64_t far[DT_MOST];
  bool more = false;
  for (uint32_t i = 0; i < x->nindex; i++) far[i] = INT64_MAX;
  for (uint32_t k = 0; k < b->n; k++) {
    bool used[DT_MOST] = {false};
    uint32_t unknown = 0, which = 0;
    dt_used(x, b->p[k].e, used);
    for (uint32_t i = 0; i < x->nindex; i++)
      if (used[i] && !x->index[i].known) unknown++, which = i;
    if (unknown != 1) continue;
    int64_t n = dt_far(x, b->p[k].e, b->p[k].extent, used, &x->index[which]);
    far[which] = tarn_min(far[which], n);
  }
  for (uint32_t i = 0; i < x->nindex; i++)
    if (!x->index[i].known && far[i] != INT64_MAX) {
      x->index[i].hi = far[i];
      x->index[i].known = more = true;
    }
  return more;
}

static inline void dt_add_index(dt *x, const char *name, bool left) {
  if (dt_index_of(x, name) || x->nindex == DT_MOST) return;
  x->index[x->nindex++] = (dt_index){.name = name, .left = left};
}
static inline void dt_collect(dt *x, const tc_expr *e) {
  int64_t n;
  if (e->kind == TC_NAME && !dt_find(x, e->name) && !dt_size(x, e->name, &n))
    dt_add_index(x, e->name, false);
  for (uint32_t i = 0; i < e->n; i++) dt_collect(x, e->kid[i]);
}

static inline bool dt_ranges(dt *x) {
  dt_bounds b = {0};
  dt_tensor *t = dt_find(x, x->s->left.name);
  bool empty = false;
  for (uint32_t i = 0; i < x->s->nwhere; i++) {
    dt_index *k = dt_index_of(x, x->s->where[i].name);
    if (!k || k->known) return dt_refuse(x, "where");
    k->lo = dt_eval(x, x->s->where[i].lo).i;
    k->hi = dt_eval(x, x->s->where[i].hi).i;
    k->known = true;
    if (k->hi < k->lo) return dt_refuse(x, "range");
  }
  if (t && t->v->n != x->s->nindex) return dt_refuse(x, "left side");
  for (uint32_t d = 0; t && d < t->v->n; d++) {
    tc_expr *e = TARN_NEW(x->cx, tc_expr);
    *e = (tc_expr){.kind = TC_NAME, .name = x->s->index[d].name};
    b.p[b.n++] = (dt_bound){e, t->v->dim[d]};
  }
  if (!dt_gather(x, x->s->value, &b)) return false;
  while (dt_round(x, &b)) {}
  for (uint32_t i = 0; i < x->nindex; i++)
    empty |= x->index[i].known && x->index[i].hi == x->index[i].lo;
  if (empty) return dt_refuse(x, "empty");
  for (uint32_t i = 0; i < x->nindex; i++)
    if (!x->index[i].known) return dt_refuse(x, "unbounded");
  for (uint32_t k = 0; k < b.n; k++) {
    bool used[DT_MOST] = {false};
    dt_used(x, b.p[k].e, used);
    if (!dt_inside(x, b.p[k].e, b.p[k].extent, used, 0)) return dt_refuse(x, "out of bounds");
  }
  return true;
}

/* ---- statements ---- */
static inline bool dt_self(dt *x, const tc_expr *e, bool reduces) {
  bool reads = e->name && !strcmp(e->name, x->s->left.name), same = e->n == x->s->nindex;
  for (uint32_t i = 0; reads && same && i < e->n; i++)
    same = e->kid[i]->kind == TC_NAME && !strcmp(e->kid[i]->name, x->s->index[i].name);
  if (reads && e->kind != TC_EXTENT && (reduces || !same)) return dt_refuse(x, "reads itself");
  for (uint32_t i = 0; i < e->n; i++)
    if (!dt_self(x, e->kid[i], reduces)) return false;
  return true;
}

static inline dt_value dt_identity(tc_assign how, tarn_dtype t) {
  double far = how == TC_MAX ? -(double)INFINITY : (double)INFINITY;
  if (how == TC_MAX || how == TC_MIN)
    return dt_float(t) ? dt_real(t, far)
                       : dt_whole(t, how == TC_MIN    ? INT32_MAX
                                     : t == TARN_BOOL ? 0
                                                      : INT32_MIN);
  return dt_as(dt_whole(TARN_I32, how == TC_PROD), t);
}

/* All values of the indices that only the right side has, from number i on. */
static inline void dt_reduce(dt *x, uint32_t i, tarn_dtype t, dt_value *sum) {
  static const char op[] = "=++*><";
  if (i == x->nindex) {
    *sum = dt_op(op[x->s->how], *sum, dt_as(dt_eval(x, x->s->value), t), t);
    return;
  }
  dt_index *k = &x->index[i];
  for (k->at = k->lo; k->at < k->hi; k->at++) dt_reduce(x, i + 1, t, sum);
}

typedef struct dt_write {
  dt *x;
  tarn_dtype t;
  const tarn_tensor *was;
  tarn_tensor *to;
} dt_write;

static inline void dt_point(const dt_write *w, int64_t flat) {
  static const char op[] = "=+-*><";
  dt *x = w->x;
  tc_assign how = x->s->how;
  dt_value v = dt_identity(how, w->t);
  if (x->nindex > x->s->nindex) dt_reduce(x, x->s->nindex, w->t, &v);
  else v = dt_as(dt_eval(x, x->s->value), w->t);
  if (how != TC_SET && !x->s->fresh) v = dt_op(op[how], dt_element(w->was, flat), v, w->t);
  else if (how == TC_LESS) v = dt_op('-', dt_as(dt_whole(TARN_I32, 0), w->t), v, w->t);
  tarn_tensor_set(w->to, flat, dt_float(w->t) ? (tarn_value){.d = v.d} : (tarn_value){.i = v.i});
}
static inline void dt_points(const dt_write *w, uint32_t d, int64_t flat) {
  if (d == w->x->s->nindex) {
    dt_point(w, flat);
    return;
  }
  dt_index *k = &w->x->index[d];
  for (k->at = k->lo; k->at < k->hi; k->at++) dt_points(w, d + 1, flat * w->to->dim[d] + k->at);
}

/* The type of the right side: that of any of its values. */
static inline tarn_dtype dt_type(dt *x, bool counts) {
  for (uint32_t i = 0; i < x->nindex; i++) x->index[i].at = x->index[i].lo;
  bool outside = x->outside;
  tarn_dtype t = dt_eval(x, x->s->value).t;
  x->outside = outside;
  return counts ? dt_counted(t) : t;
}

static inline bool dt_statement(dt *x, const tc_stmt *s) {
  x->s = s;
  x->nindex = 0;
  int64_t n;
  for (uint32_t i = 0; i < s->nindex; i++) {
    if (dt_index_of(x, s->index[i].name) || dt_find(x, s->index[i].name) ||
        dt_size(x, s->index[i].name, &n))
      return dt_refuse(x, "index");
    dt_add_index(x, s->index[i].name, true);
  }
  dt_collect(x, s->value);
  dt_tensor *was = dt_find(x, s->left.name);
  bool reduces = x->nindex > s->nindex, counts = s->how >= TC_SUM && s->how <= TC_PROD;
  if (s->how != TC_SET && !s->fresh && !was) return dt_refuse(x, "no value");
  if (s->how == TC_SET && reduces) return dt_refuse(x, "no reduction");
  if (dt_index_of(x, s->left.name)) return dt_refuse(x, "reads itself");
  if (was && !dt_self(x, s->value, reduces)) return false;
  if (!dt_ranges(x)) return false;
  int64_t dim[DT_MOST];
  for (uint32_t d = 0; d < s->nindex; d++) {
    dim[d] = was ? was->v->dim[d] : x->index[d].hi;
    if (!was && x->index[d].lo) return dt_refuse(x, "begins late");
  }
  dt_write w = {.x = x, .t = was ? was->v->dtype : dt_type(x, counts)};
  if (counts && w.t == TARN_BOOL) return dt_refuse(x, "sum of truth");
  w.was = was ? was->v : NULL;
  w.to = tarn_tensor_new(x->cx, w.t, s->nindex, dim);
  for (int64_t i = 0; was && i < tarn_tensor_count(was->v); i++)
    tarn_tensor_set(w.to, i, tarn_tensor_get(was->v, i));
  dt_points(&w, 0, 0);
  if (!was) was = &x->tensor[x->ntensor++];
  *was = (dt_tensor){s->left.name, w.to};
  return true;
}
#endif
