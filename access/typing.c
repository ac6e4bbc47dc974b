/* The typing of terms: one function an operator, in a table made from ops.def.
 *
 * A failing function says why with no(), which puts the node's text in front. */
#include "access/internal.h"
#include <stdio.h>
#include <string.h>

typedef struct node {
  tarn_lang *L;
  uint32_t op, payload, n;
  const uint32_t *type; /* of the kids */
  const tarn_payload *p;
} node;

typedef struct shape { /* a type under construction; may be too long until done() looks */
  tarn_dtype dtype;
  uint32_t ns, n;
  int64_t dim[3 * TARN_MAX_DIMS];
} shape;

static uint32_t no(const node *x, const char *fmt, ...) TARN_PRINTF(2, 3);
static uint32_t no(const node *x, const char *fmt, ...) {
  tarn_ctx *cx = x->L->cx;
  char why[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(why, sizeof why, fmt, ap);
  va_end(ap);
  tarn_mark m = tarn_arena_mark(cx);
  tarn_buf b = {.cx = cx};
  tarn_buf_fmt(&b, "(%s", tarn_op_info(x->op)->text);
  tarn_payload_print(x->L, &b, x->op, x->payload);
  for (uint32_t i = 0; i < x->n; i++) {
    tarn_buf_str(&b, " ");
    tarn_type_print(x->L, &b, x->type[i]);
  }
  tarn_set_message(cx, "%.2000s): %s", b.p, why);
  tarn_release(cx, m);
  return TARN_NONE;
}

static uint32_t done(const node *x, const shape *s) {
  int64_t count;
  if (s->n > TARN_MAX_DIMS)
    return no(x, "the result has %u dims, at most %d are possible", s->n, TARN_MAX_DIMS);
  if (!tarn_count_dims(s->n, s->dim, &count)) return no(x, "the element count overflows");
  return tarn_type_tensor(x->L, s->dtype, s->ns, s->n, s->dim);
}

static const tarn_type *kid(const node *x, uint32_t i) { return tarn_type_get(x->L, x->type[i]); }

static shape shape_of(const tarn_type *t) {
  shape s = {.dtype = t->dtype, .ns = t->ns, .n = t->n};
  memcpy(s.dim, t->dim, t->n * sizeof *t->dim);
  return s;
}

static void append(shape *s, uint32_t n, const int64_t *dim) {
  memcpy(s->dim + s->n, dim, n * sizeof *dim);
  s->n += n;
}

/* Integer i of the payload as an axis below limit; TARN_NONE with a message otherwise. */
static uint32_t axis_at(const node *x, uint32_t i, uint32_t limit) {
  int64_t a = x->p->ints[i];
  if (a >= 0 && a < (int64_t)limit) return (uint32_t)a;
  return no(x, "axis %lld is out of range", (long long)a);
}

static bool same_shape(const tarn_type *a, const tarn_type *b) {
  return a->ns == b->ns && tarn_type_same_dims(a, b);
}

/* ---------------------------------------------------------------- leaves */
static uint32_t type_INPUT(const node *x) {
  if (tarn_type_get(x->L, x->p->type)->tuple) return no(x, "an input cannot be a tuple");
  return x->p->type;
}
static uint32_t type_CONST(const node *x) { return x->p->type; }

/* ---------------------------------------------------------------- views */
static uint32_t type_ACCESS(const node *x) {
  shape s = shape_of(kid(x, 0));
  uint32_t d = axis_at(x, 0, s.n + 1);
  if (d == TARN_NONE) return d;
  s.ns = d;
  return done(x, &s);
}

static uint32_t type_TRANSPOSE(const node *x) {
  const tarn_type *t = kid(x, 0);
  shape s = shape_of(t);
  uint32_t seen = 0;
  if (x->p->n != s.n) return no(x, "%u axes for %u dims", x->p->n, s.n);
  for (uint32_t i = 0; i < s.n; i++) {
    uint32_t a = axis_at(x, i, s.n);
    if (a == TARN_NONE) return a;
    if (seen >> a & 1) return no(x, "axis %u comes twice", a);
    seen |= 1u << a;
    s.dim[i] = t->dim[a];
  }
  return done(x, &s);
}

/* W_j = floor((C_j - (w_j - 1) d_j - 1) / s_j) + 1 */
static uint32_t type_WINDOWS(const node *x) {
  shape s = shape_of(kid(x, 0));
  uint32_t m = s.n - s.ns;
  const int64_t *w = x->p->ints, *step = w + m, *dil = step + m;
  int64_t span, count[TARN_MAX_DIMS];
  if (x->p->n != 3 * m) return no(x, "%u integers for %u compute dims", x->p->n, m);
  for (uint32_t j = 0; j < m; j++) {
    if (w[j] < 1 || step[j] < 1 || dil[j] < 1)
      return no(x, "window, stride and dilation must be at least 1");
    if (!tarn_mul64(w[j] - 1, dil[j], &span) || span >= s.dim[s.ns + j])
      return no(x, "the window does not fit into compute dim %u", j);
    count[j] = (s.dim[s.ns + j] - span - 1) / step[j] + 1;
  }
  s.n = s.ns;
  append(&s, m, count);
  s.ns = s.n;
  append(&s, m, w);
  return done(x, &s);
}

/* Indices l, l + step, … before h. */
static uint32_t type_SLICE(const node *x) {
  shape s = shape_of(kid(x, 0));
  uint32_t a = axis_at(x, 0, s.n);
  if (a == TARN_NONE) return a;
  int64_t d = s.dim[a], l = x->p->ints[1], h = x->p->ints[2], step = x->p->ints[3];
  if (step == 0 || step == INT64_MIN) return no(x, "step %lld", (long long)step);
  if (step > 0 ? l < 0 || h < l || h > d : l >= d || h > l || h < -1)
    return no(x, "%lld to %lld by %lld does not lie within %lld", (long long)l, (long long)h,
              (long long)step, (long long)d);
  int64_t span = step > 0 ? h - l : l - h, by = step > 0 ? step : -step;
  s.dim[a] = span == 0 ? 0 : (span - 1) / by + 1;
  return done(x, &s);
}

static uint32_t type_PAD(const node *x) {
  shape s = shape_of(kid(x, 0));
  uint32_t a = axis_at(x, 0, s.n);
  if (a == TARN_NONE) return a;
  const tarn_fx *v = tarn_fx_get(x->L, x->p->value);
  int64_t before = x->p->ints[1], after = x->p->ints[2], *d = &s.dim[a];
  if (v->op != TARN_FX_CONST) return no(x, "the value is not a constant");
  if (v->dtype != s.dtype) return no(x, "the value is %s", tarn_dtype_name(v->dtype));
  if (before < 0 || after < 0) return no(x, "negative padding");
  if (__builtin_add_overflow(*d, before, d) || __builtin_add_overflow(*d, after, d))
    return no(x, "the extent overflows");
  return done(x, &s);
}

static uint32_t type_SQUEEZE(const node *x) {
  shape s = shape_of(kid(x, 0));
  uint32_t a = axis_at(x, 0, s.n);
  if (a == TARN_NONE) return a;
  if (s.dim[a] != 1) return no(x, "axis %u has extent %lld", a, (long long)s.dim[a]);
  memmove(s.dim + a, s.dim + a + 1, (s.n - a - 1) * sizeof *s.dim);
  s.n--;
  if (a < s.ns) s.ns--;
  return done(x, &s);
}

/* At i <= nS into S, except (insertAxis nS 1 A), which puts it in front of C. */
static uint32_t type_INSERT_AXIS(const node *x) {
  shape s = shape_of(kid(x, 0));
  bool front_of_c = x->p->n == 2 && x->p->ints[1] == 1;
  if (x->p->n != 1 && !front_of_c) return no(x, "the side, when given, is 1");
  uint32_t a = axis_at(x, 0, s.n + 1);
  if (a == TARN_NONE) return a;
  if (front_of_c && a != s.ns) return no(x, "axis %u is not the front of the compute dims", a);
  memmove(s.dim + a + 1, s.dim + a, (s.n - a) * sizeof *s.dim);
  s.dim[a] = 1;
  s.n++;
  if (a <= s.ns && !front_of_c) s.ns++;
  return done(x, &s);
}

static uint32_t type_BROADCAST(const node *x) {
  const tarn_type *t = kid(x, 0), *to = tarn_type_get(x->L, x->p->id);
  shape s = shape_of(to);
  if (t->n != to->n || t->ns != to->ns) return no(x, "the ranks differ (insert axes first)");
  for (uint32_t i = 0; i < t->n; i++)
    if (t->dim[i] != 1 && t->dim[i] != to->dim[i])
      return no(x, "dim %u of extent %lld cannot become %lld", i, (long long)t->dim[i],
                (long long)to->dim[i]);
  s.dtype = t->dtype;
  return done(x, &s);
}

static uint32_t type_FLATTEN(const node *x) {
  const tarn_type *t = kid(x, 0);
  shape s = {.dtype = t->dtype};
  int64_t side[2];
  if (!tarn_count_dims(t->ns, t->dim, &side[0]) ||
      !tarn_count_dims(t->n - t->ns, t->dim + t->ns, &side[1]))
    return no(x, "the element count overflows");
  append(&s, t->ns > 0, &side[0]);
  s.ns = s.n;
  append(&s, t->n > t->ns, &side[1]);
  return done(x, &s);
}

static uint32_t type_RESHAPE(const node *x) {
  const tarn_type *t = kid(x, 0), *to = tarn_type_get(x->L, x->p->id);
  shape s = shape_of(to);
  int64_t a, b, c, d;
  s.dtype = t->dtype;
  tarn_count_dims(t->ns, t->dim, &a);
  tarn_count_dims(to->ns, to->dim, &b);
  tarn_count_dims(t->n - t->ns, t->dim + t->ns, &c);
  tarn_count_dims(to->n - to->ns, to->dim + to->ns, &d);
  if (a != b) return no(x, "%lld access elements cannot become %lld", (long long)a, (long long)b);
  if (c != d) return no(x, "%lld compute elements cannot become %lld", (long long)c, (long long)d);
  return done(x, &s);
}

static uint32_t type_VIEW(const node *x) {
  const tarn_type *t = kid(x, 0);
  const tarn_imap *m = tarn_imap_get(x->L, x->p->id);
  shape s = {.dtype = t->dtype, .ns = m->ns};
  if (m->nin != t->n || memcmp(m->in, t->dim, t->n * sizeof *t->dim) != 0)
    return no(x, "the map is of other dims");
  if (m->nguard && tarn_fx_get(x->L, m->fill)->dtype != t->dtype)
    return no(x, "the fill value is %s", tarn_dtype_name(tarn_fx_get(x->L, m->fill)->dtype));
  append(&s, m->n, m->dim);
  return done(x, &s);
}

/* ---------------------------------------------------------------- several operands */
static uint32_t type_CONCAT(const node *x) {
  shape s = shape_of(kid(x, 0));
  uint32_t a = axis_at(x, 0, s.n);
  if (a == TARN_NONE) return a;
  for (uint32_t k = 1; k < x->n; k++) {
    const tarn_type *t = kid(x, k);
    if (t->dtype != s.dtype || t->n != s.n || t->ns != s.ns)
      return no(x, "operand %u differs in type, rank or split", k);
    for (uint32_t i = 0; i < s.n; i++)
      if (i != a && t->dim[i] != s.dim[i]) return no(x, "operand %u differs in dim %u", k, i);
    if (__builtin_add_overflow(s.dim[a], t->dim[a], &s.dim[a]))
      return no(x, "the extent overflows");
  }
  return done(x, &s);
}

static uint32_t type_PAIR(const node *x) {
  const tarn_type *t = kid(x, 0);
  shape s = shape_of(t);
  if (x->type[0] != x->type[1]) return no(x, "the operands differ in type");
  s.n = s.ns;
  append(&s, 1, &(int64_t){2});
  append(&s, t->n - t->ns, t->dim + t->ns);
  return done(x, &s);
}

static uint32_t type_CART_PROD(const node *x) {
  const tarn_type *a = kid(x, 0), *b = kid(x, 1);
  shape s = shape_of(a);
  uint32_t m = a->n - a->ns, k = axis_at(x, 0, (a->ns < b->ns ? a->ns : b->ns) + 1u);
  if (k == TARN_NONE) return k;
  if (a->dtype != b->dtype) return no(x, "the operands differ in element type");
  if (m != (uint32_t)(b->n - b->ns) || memcmp(a->dim + a->ns, b->dim + b->ns, m * sizeof *a->dim))
    return no(x, "the compute dims differ");
  if (memcmp(a->dim, b->dim, k * sizeof *a->dim)) return no(x, "the shared dims differ");
  s.n = s.ns;
  append(&s, b->ns - k, b->dim + k);
  s.ns = s.n;
  append(&s, 1, &(int64_t){2});
  append(&s, m, a->dim + a->ns);
  return done(x, &s);
}

/* ---------------------------------------------------------------- kernels */
/* The operands must be of shape t, the epilogue operands of t without compute dims. */
static bool operands_fit(const node *x, const tarn_func *f, const tarn_type *t) {
  tarn_type s = *t;
  for (uint32_t i = 1; i < f->nops; i++)
    if (!same_shape(kid(x, i), t)) return no(x, "operand %u differs in shape", i), false;
  s.n = s.ns;
  for (uint32_t i = f->nops; i < x->n; i++)
    if (!same_shape(kid(x, i), &s))
      return no(x, "epilogue operand %u is not over the access dims", i - f->nops), false;
  return true;
}

static uint32_t type_COMPUTE(const node *x) {
  const tarn_func *f = tarn_fn_get(x->L, x->p->id);
  const tarn_type *t = kid(x, 0);
  shape s = shape_of(t);
  tarn_dtype in[2 * UINT8_MAX];
  if (x->n != (uint32_t)f->nops + f->nepi)
    return no(x, "the function takes %u operands", f->nops + f->nepi);
  if (!operands_fit(x, f, t)) return TARN_NONE;
  if (f->ntuple && (t->n == t->ns || t->dim[t->ns] != f->ntuple))
    return no(x, "the first compute dim is not the tuple of %u", f->ntuple);
  for (uint32_t i = 0; i < x->n; i++) in[i] = kid(x, i)->dtype;
  if (!tarn_fn_type(x->L, x->p->id, in, x->n, &s.dtype)) return no(x, "%s", tarn_message(x->L->cx));
  s.n = s.ns;
  if (f->red == TARN_NONE) {
    uint32_t from = t->ns + (f->ntuple > 0);
    append(&s, t->n - from, t->dim + from);
  }
  return done(x, &s);
}

static uint32_t type_NEST(const node *x) {
  uint32_t t = tarn_nest_type(x->L, x->p->id, x->type, x->n);
  return t != TARN_NONE ? t : no(x, "%s", tarn_message(x->L->cx));
}

static uint32_t type_FOLD(const node *x) {
  const tarn_reducer *r = tarn_reducer_get(x->L, x->p->value);
  shape s = shape_of(kid(x, 0));
  tarn_dtype state[TARN_MAX_STATE];
  uint32_t a = axis_at(x, 0, s.ns);
  if (a == TARN_NONE) return a;
  if (r->dtype != s.dtype) return no(x, "the reducer takes %s", tarn_dtype_name(r->dtype));
  if (!tarn_reducer_type(x->L, x->p->value, state, &s.dtype))
    return no(x, "%s", tarn_message(x->L->cx));
  memmove(s.dim + a, s.dim + a + 1, (s.n - a - 1) * sizeof *s.dim);
  s.n--;
  s.ns--;
  return done(x, &s);
}

static uint32_t type_MATERIALISE(const node *x) { return x->type[0]; }
static uint32_t type_PLACE(const node *x) { return x->type[0]; }

/* The index's dims replace the axis, on the axis's side. */
static uint32_t type_GATHER(const node *x) {
  const tarn_type *t = kid(x, 0), *index = kid(x, 1);
  shape s = {.dtype = t->dtype, .ns = t->ns};
  uint32_t a = axis_at(x, 0, t->n);
  if (a == TARN_NONE) return a;
  if (tarn_dtype_is_float(index->dtype) || index->dtype == TARN_BOOL)
    return no(x, "the index is not of an integer type");
  append(&s, a, t->dim);
  append(&s, index->n, index->dim);
  append(&s, t->n - a - 1, t->dim + a + 1);
  if (a < t->ns) s.ns = t->ns + index->n - 1u;
  return done(x, &s);
}

static uint32_t type_TUPLE(const node *x) { return tarn_type_tuple(x->L, x->n, x->type); }

static uint32_t type_NTH(const node *x) {
  const tarn_type *t = kid(x, 0);
  int64_t i = x->p->ints[0];
  if (!t->tuple) return no(x, "the operand is not a tuple");
  if (i < 0 || i >= (int64_t)t->nelem) return no(x, "the tuple has %u elements", t->nelem);
  return t->elem[i];
}

static uint32_t type_OPAQUE(const node *x) { return x->p->type; }
static uint32_t type_CALL(const node *x) {
  return tarn_call_types(x->L, x->p, x->type, x->n) ? x->p->type
                                                    : no(x, "%s", tarn_message(x->L->cx));
}

/* A ((M),(r)), B ((),(r,c)) -> ((M,c),()) */
static uint32_t systolic(const node *x, shape *s) {
  const tarn_type *a = kid(x, 0), *b = kid(x, 1);
  int64_t r = x->p->ints[0], c = x->p->ints[1];
  *s = shape_of(a);
  if (a->dtype != b->dtype || a->dtype == TARN_BOOL)
    return no(x, "the operands must be numbers of one type");
  if (a->n != a->ns + 1 || a->dim[a->ns] != r)
    return no(x, "the first operand's compute dims are not (%lld)", (long long)r);
  if (b->ns != 0 || b->n != 2 || b->dim[0] != r || b->dim[1] != c)
    return no(x, "the second operand is not (() (%lld %lld))", (long long)r, (long long)c);
  s->dim[s->ns++] = c;
  return 0;
}

static uint32_t type_SYSTOLIC(const node *x) {
  shape s;
  return systolic(x, &s) == TARN_NONE ? TARN_NONE : done(x, &s);
}

static uint32_t type_SYSTOLIC_ACC(const node *x) {
  shape s;
  const tarn_type *p = kid(x, 2);
  if (systolic(x, &s) == TARN_NONE) return TARN_NONE;
  if (p->dtype != s.dtype || p->n != s.n || p->ns != s.ns ||
      memcmp(p->dim, s.dim, s.n * sizeof *s.dim))
    return no(x, "the accumulator is not of the result's type");
  return done(x, &s);
}

/* ---------------------------------------------------------------- the table */
typedef uint32_t typing_fn(const node *x);
static typing_fn *const rules[] = {
#define OP(ID, ...) [TARN_OP_##ID] = type_##ID,
#include "access/ops.def"
#undef OP
};

static bool tuples_allowed(uint32_t op) { return op == TARN_OP_TUPLE || op == TARN_OP_NTH; }

uint32_t tarn_type_of(tarn_lang *L, uint32_t op, uint32_t payload, const uint32_t *kid_types,
                      uint32_t n) {
  const tarn_opinfo *info = tarn_op_info(op);
  if (!info || payload >= tarn_table_count(&L->payload)) {
    tarn_set_message(L->cx, "no such operator or payload");
    return TARN_NONE;
  }
  node x = {L, op, payload, n, kid_types, tarn_payload_get(L, payload)};
  if (x.p->kind != info->payload) {
    tarn_set_message(L->cx, "%s: the payload is of another kind", info->text);
    return TARN_NONE;
  }
  if (n < (uint32_t)info->min_kids || (info->max_kids >= 0 && n > (uint32_t)info->max_kids))
    return no(&x, "%u operands", n);
  for (uint32_t i = 0; i < n && !tuples_allowed(op); i++)
    if (kid(&x, i)->tuple) return no(&x, "operand %u is a tuple", i);
  if (info->kept_ints && x.p->n != info->kept_ints)
    return no(&x, "%u integers where %u belong", x.p->n, info->kept_ints);
  return rules[op](&x);
}
