/* Proofs of rules for all sizes. Both sides are computed at one point with symbolic indices: views
 * become polynomials, functions and their reductions stay as they are, applied to what they are
 * given at any point of what they go over. Values are interned, so equal numbers mean equal values.
 * A proof holds for the ranks and axes of the instance that it was made from, and for all sizes of
 * at least 1. */
#include "rules/check/prove.h"
#include "rules/check/prove_loops.h"
#include "rules/check/sym.h"
#include <string.h>

enum { V_READ = 1, V_FILL, V_APPLY, V_LAMBDA, V_ROW, V_GUARD };
typedef struct valuing {
  prover *p;
  polys *s;
  tarn_intern *ids;
  struct {
    uint32_t depth, k, var;
  } bound[128];
  uint32_t nbound;
  TARN_VEC(const struct guard *) guard; /* by id, NULL for others */
} valuing;
typedef struct guard { /* then where c is at least 0 */
  uint32_t then, other;
  poly c;
} guard;

/* ---------------------------------------------------------------- interning */
typedef struct key {
  tarn_buf b;
} key;
static key begin(valuing *v, uint64_t tag) {
  key k = {{.cx = v->p->cx}};
  tarn_buf_add(&k.b, (const char *)&tag, sizeof tag);
  return k;
}
static void word(key *k, uint64_t w) { tarn_buf_add(&k->b, (const char *)&w, sizeof w); }
static void add_poly(valuing *v, key *k, const poly *a) {
  poly x = poly_now(v->s, a);
  word(k, x.n);
  for (uint32_t i = 0; i < x.n; i++) {
    word(k, (uint64_t)x.m[i].c), word(k, x.m[i].n);
    for (uint32_t j = 0; j < x.m[i].n; j++) word(k, x.m[i].v[j]);
  }
}
static uint32_t done(valuing *v, key *k, const guard *g) {
  uint32_t id = tarn_intern_add(v->ids, k->b.p, k->b.n);
  while (v->guard.n <= id) tarn_push(v->p->cx, &v->guard, (const guard *)NULL);
  v->guard.p[id] = g;
  return id;
}
static void attribute(key *k, const sv *a) {
  word(k, a->free);
  word(k, a->free ? a->var : a->given.id);
  word(k, (uint64_t)a->kind);
}

/* The k-th index at this depth: the same one where the extents are the same. */
static poly index_of(valuing *v, uint32_t depth, uint32_t k, const poly *extent) {
  for (uint32_t i = 0; i < v->nbound; i++)
    if (v->bound[i].depth == depth && v->bound[i].k == k &&
        poly_equal(v->s, &v->s->var[v->bound[i].var].a, extent))
      return poly_var(v->s, v->bound[i].var);
  if (v->nbound == sizeof v->bound / sizeof *v->bound) poly_stuck(v->s, "too many indices");
  poly x = poly_now(v->s, extent), zero = {0};
  int64_t c;
  if (poly_constant(&x, &c) && c == 1) return zero;
  uint32_t var = poly_index(v->s, &x);
  v->bound[v->nbound].depth = depth, v->bound[v->nbound].k = k, v->bound[v->nbound++].var = var;
  return poly_var(v->s, var);
}

/* ---------------------------------------------------------------- what lies in parts */
static int order(const poly *a, const poly *b) { return memcmp(a, b, sizeof *a); }
/* Clean: what is beyond the monomials is 0, so that bytes can be compared. */
static poly clean(valuing *v, const poly *a) {
  poly x = poly_now(v->s, a), y;
  memset(&y, 0, sizeof y);
  y.n = x.n;
  for (uint32_t i = 0; i < x.n; i++) {
    y.m[i].c = x.m[i].c, y.m[i].n = x.m[i].n;
    memcpy(y.m[i].v, x.m[i].v, x.m[i].n * sizeof *x.m[i].v);
  }
  return y;
}
/* a - times b + c >= 0 */
static bool above(valuing *v, const poly *a, const poly *b, int64_t times, int64_t c) {
  poly more = poly_int(c), d = poly_add(v->s, a, b, -times);
  d = poly_add(v->s, &d, &more, 1);
  return poly_natural(v->s, &d);
}
static uint32_t node(valuing *v, const poly *c, uint32_t then, uint32_t other) {
  if (then == other) return then;
  guard *g = TARN_NEW(v->p->cx, guard);
  *g = (guard){.then = then, .other = other, .c = *c};
  key k = begin(v, V_GUARD);
  word(&k, then), word(&k, other);
  add_poly(v, &k, c);
  return done(v, &k, g);
}
/* The value where c is at least 0 (yes), or is not. */
static uint32_t restricted(valuing *v, uint32_t id, const poly *c, bool yes) {
  const guard *g = v->guard.p[id];
  if (!g) return id;
  bool holds = yes ? above(v, &g->c, c, 1, 0) : above(v, &g->c, c, -1, 1);
  poly none = {0}, minus = poly_add(v->s, &none, &g->c, -1);
  bool fails = yes ? above(v, &minus, c, 1, -1) : above(v, &minus, c, -1, 0);
  if (holds) return restricted(v, g->then, c, yes);
  if (fails) return restricted(v, g->other, c, yes);
  uint32_t then = restricted(v, g->then, c, yes), other = restricted(v, g->other, c, yes);
  return then == g->then && other == g->other ? id : node(v, &g->c, then, other);
}
/* Conditions come in one order, as in a decision diagram; those that others imply are left out. */
static uint32_t guarded(valuing *v, const poly *cond, uint32_t then, uint32_t other) {
  poly c = clean(v, cond), none = {0}, not = poly_add(v->s, &none, &c, -1);
  if (then == other || poly_natural(v->s, &c)) return then;
  if (above(v, &not, &none, 0, -1)) return other;
  then = restricted(v, then, &c, true), other = restricted(v, other, &c, false);
  const guard *g = v->guard.p[then], *h = v->guard.p[other];
  if (then == other || (g && g->other == other && above(v, &c, &g->c, 1, 0))) return then;
  if (h && h->then == then && above(v, &h->c, &c, 1, 0)) return other;
  const poly *d = g && order(&g->c, &c) < 0 ? &g->c : NULL;
  if (h && order(&h->c, d ? d : &c) < 0) d = &h->c;
  if (!d) return node(v, &c, then, other);
  uint32_t part[2];
  for (uint32_t k = 0; k < 2; k++)
    part[k] = guarded(v, &c, restricted(v, then, d, !k), restricted(v, other, d, !k));
  return node(v, d, part[0], part[1]);
}

/* ---------------------------------------------------------------- values */
static uint32_t value(valuing *v, const st *t, const poly *at, uint32_t depth);

static uint32_t pad_value(valuing *v, const st *t, const poly *at, uint32_t depth) {
  poly in[TARN_MAX_DIMS], one = poly_int(1);
  const st *x = t->kid[0];
  int64_t axis = poly_value(v->s, &t->pay[0].p[0]);
  memcpy(in, at, t->n * sizeof *in);
  in[axis] = poly_add(v->s, &at[axis], t->pay[2].p, -1);
  poly room = poly_add(v->s, &x->dim[axis], &in[axis], -1);
  room = poly_add(v->s, &room, &one, -1);
  key k = begin(v, V_FILL);
  attribute(&k, &t->pay[1]);
  uint32_t fill = done(v, &k, NULL), y = value(v, x, in, depth);
  return guarded(v, &in[axis], guarded(v, &room, y, fill), fill);
}
static uint32_t concat_value(valuing *v, const st *t, const poly *at, uint32_t depth, uint32_t j) {
  poly in[TARN_MAX_DIMS], one = poly_int(1);
  int64_t axis = poly_value(v->s, &t->pay[0].p[0]);
  memcpy(in, at, t->n * sizeof *in);
  for (uint32_t i = 0; i < j; i++) in[axis] = poly_add(v->s, &in[axis], &t->kid[i]->dim[axis], -1);
  uint32_t here = value(v, t->kid[j], in, depth);
  if (j + 1 == t->nkid) return here;
  poly room = poly_add(v->s, &t->kid[j]->dim[axis], &in[axis], -1);
  room = poly_add(v->s, &room, &one, -1);
  return guarded(v, &room, here, concat_value(v, t, at, depth, j + 1));
}
/* Row-major: dims `to` of the operand from the indices of dims `from`. Where groups of dims have
 * one product they are split there. */
static poly joined(valuing *v, const poly *dim, const poly *at, uint32_t n) {
  poly x = {0};
  for (uint32_t i = 0; i < n; i++) {
    x = poly_mul(v->s, &x, &dim[i]);
    x = poly_add(v->s, &x, &at[i], 1);
  }
  return x;
}
static void parted(valuing *v, poly x, const poly *dim, poly *at, uint32_t n) {
  for (uint32_t i = n; i-- > 1;) {
    at[i] = poly_mod(v->s, &x, &dim[i]);
    x = poly_div(v->s, &x, &dim[i]);
  }
  if (n) at[0] = x;
}
static void regroup(valuing *v, const poly *from, const poly *at, uint32_t n, const poly *to,
                    poly *in, uint32_t m) {
  while (n || m) {
    uint32_t i = 0, j = 0;
    poly a = poly_int(1), b = poly_int(1);
    do {
      if (i == n && j == m) poly_stuck(v->s, "a reshape whose sizes are not comparable");
      bool more = j == m || (i < n && i <= j);
      if (more) a = poly_mul(v->s, &a, &from[i++]);
      else b = poly_mul(v->s, &b, &to[j++]);
    } while (!poly_equal(v->s, &a, &b) || (i == 0 && j == 0));
    parted(v, joined(v, from, at, i), to, in, j);
    from += i, at += i, n -= i, to += j, in += j, m -= j;
  }
}
static void reshaped(valuing *v, const st *t, const poly *at, poly *in) {
  const st *x = t->kid[0];
  regroup(v, t->dim, at, t->ns, x->dim, in, x->ns);
  regroup(v, t->dim + t->ns, at + t->ns, t->n - t->ns, x->dim + x->ns, in + x->ns, x->n - x->ns);
}
static void windowed(valuing *v, const st *t, const poly *at, poly *in) {
  const st *x = t->kid[0];
  for (uint32_t i = x->ns; i < x->n; i++) {
    poly far = poly_mul(v->s, &t->pay[1].p[i - x->ns], &at[i]),
         near = poly_mul(v->s, &t->pay[2].p[i - x->ns], &at[x->n + i - x->ns]);
    in[i] = poly_add(v->s, &far, &near, 1);
  }
}
static uint32_t view_value(valuing *v, const st *t, const poly *at, uint32_t depth) {
  const st *x = t->kid[0];
  poly in[TARN_MAX_DIMS], zero = {0};
  uint32_t n = 0;
  int64_t axis = t->npay && t->pay[0].kind == 'i' ? poly_value(v->s, t->pay[0].p) : 0;
  for (uint32_t i = 0; i < x->n && i < t->n; i++) in[i] = at[i];
  switch (t->op) {
  case TARN_OP_TRANSPOSE:
    for (uint32_t i = 0; i < t->n; i++) in[poly_value(v->s, &t->pay[0].p[i])] = at[i];
    break;
  case TARN_OP_WINDOWS: windowed(v, t, at, in); break;
  case TARN_OP_SLICE: {
    poly step = poly_int(poly_value(v->s, t->pay[3].p)), far = poly_mul(v->s, &at[axis], &step);
    in[axis] = poly_add(v->s, &far, t->pay[1].p, 1);
    break;
  }
  case TARN_OP_SQUEEZE:
    for (uint32_t i = 0; i < x->n; i++) in[i] = (int64_t)i == axis ? zero : at[n++];
    break;
  case TARN_OP_INSERT_AXIS:
    for (uint32_t i = 0; i < t->n; i++)
      if ((int64_t)i != axis) in[n++] = at[i];
    break;
  case TARN_OP_BROADCAST:
    for (uint32_t i = 0; i < t->n; i++)
      if (type_at(v->p->g, t->term)->dim[i] != type_at(v->p->g, x->term)->dim[i]) in[i] = zero;
    break;
  case TARN_OP_RESHAPE:
  case TARN_OP_FLATTEN: reshaped(v, t, at, in); break;
  default: break;
  }
  return value(v, x, in, depth);
}
static uint32_t product_value(valuing *v, const st *t, const poly *at, uint32_t depth) {
  const st *a = t->kid[0], *b = t->kid[1];
  bool cart = t->op == TARN_OP_CART_PROD;
  uint32_t shared = cart ? (uint32_t)poly_value(v->s, t->pay[0].p) : a->ns, nc = a->n - a->ns;
  poly left[TARN_MAX_DIMS], right[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < a->ns; i++) left[i] = at[i];
  for (uint32_t i = 0; i < b->ns; i++) right[i] = at[i < shared ? i : a->ns + i - shared];
  for (uint32_t i = 0; i < nc; i++) left[a->ns + i] = right[b->ns + i] = at[t->ns + 1 + i];
  int64_t which;
  if (poly_constant(&at[t->ns], &which))
    return which ? value(v, b, right, depth) : value(v, a, left, depth);
  poly zero = {0}, first = poly_add(v->s, &zero, &at[t->ns], -1); /* 0 or 1 */
  uint32_t one = value(v, a, left, depth);
  return guarded(v, &first, one, value(v, b, right, depth));
}
/* What the function is given at one place, and what its last part reads there. */
typedef struct row {
  uint32_t n, id[2 * TARN_MAX_OPERANDS];
} row;
static row given(valuing *v, const st *t, const tarn_func *f, const poly *at, uint32_t depth) {
  const st *x = t->kid[0];
  poly in[TARN_MAX_DIMS];
  row r = {0};
  for (uint32_t i = 0; i < f->ntuple; i++) {
    memcpy(in, at, x->ns * sizeof *in);
    memcpy(in + x->ns + 1, at + x->ns, (x->n - x->ns - 1) * sizeof *in);
    in[x->ns] = poly_int(i);
    r.id[r.n++] = value(v, x, in, depth);
  }
  for (uint32_t j = 0; j < f->nops && !f->ntuple; j++) r.id[r.n++] = value(v, t->kid[j], at, depth);
  return r;
}
static uint32_t row_id(valuing *v, const row *r) {
  key k = begin(v, V_ROW);
  for (uint32_t i = 0; i < r->n; i++) word(&k, r->id[i]);
  return done(v, &k, NULL);
}
/* A map of what lies in parts lies in parts. */
static uint32_t mapped(valuing *v, const sv *f, const row *r) {
  uint32_t i = 0;
  while (i < r->n && !v->guard.p[r->id[i]]) i++;
  if (i == r->n) {
    key k = begin(v, V_APPLY);
    attribute(&k, f);
    word(&k, row_id(v, r));
    return done(v, &k, NULL);
  }
  const guard *g = v->guard.p[r->id[i]];
  row then = *r, other = *r;
  for (uint32_t j = i; j < r->n; j++) {
    const guard *h = v->guard.p[r->id[j]];
    if (h) then.id[j] = restricted(v, r->id[j], &g->c, true);
    if (h) other.id[j] = restricted(v, r->id[j], &g->c, false);
  }
  uint32_t y = mapped(v, f, &then), z = mapped(v, f, &other);
  return guarded(v, &g->c, y, z);
}
static bool over(const valuing *v, const poly *a, const poly *in, uint32_t n);
/* Is it one of these indices, or a quotient or remainder of what depends on one? */
static bool var_over(const valuing *v, uint32_t var, const poly *in, uint32_t n) {
  const pvar *x = &v->s->var[var];
  if (x->kind == PV_DIV || x->kind == PV_MOD) return over(v, &x->a, in, n) || over(v, &x->b, in, n);
  for (uint32_t k = 0; k < n; k++)
    if (in[k].n && in[k].m[0].n && in[k].m[0].v[0] == var) return true;
  return false;
}
static bool over(const valuing *v, const poly *a, const poly *in, uint32_t n) {
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t j = 0; j < a->m[i].n; j++)
      if (var_over(v, a->m[i].v[j], in, n)) return true;
  return false;
}
typedef struct reducing {
  const st *t;
  const poly *at, *in; /* where the result is, and what is gone over */
  uint32_t n, from, depth;
} reducing;
/* Of what lies in parts that the result's place alone tells apart, the results do. */
static uint32_t reduced(valuing *v, const reducing *x, const row *r) {
  for (uint32_t i = 0; i < r->n; i++) {
    const guard *g = v->guard.p[r->id[i]];
    if (!g || over(v, &g->c, x->in, x->n)) continue;
    row then = *r, other = *r;
    for (uint32_t j = i; j < r->n; j++) {
      then.id[j] = restricted(v, r->id[j], &g->c, true);
      other.id[j] = restricted(v, r->id[j], &g->c, false);
    }
    uint32_t y = reduced(v, x, &then), z = reduced(v, x, &other);
    return guarded(v, &g->c, y, z);
  }
  key l = begin(v, V_LAMBDA);
  for (uint32_t i = 0; i < x->n; i++) add_poly(v, &l, &x->in[i]);
  word(&l, row_id(v, r));
  uint32_t body = done(v, &l, NULL);
  key k = begin(v, V_APPLY);
  attribute(&k, &x->t->pay[0]);
  word(&k, body);
  for (uint32_t j = x->from; j < x->t->nkid; j++) word(&k, value(v, x->t->kid[j], x->at, x->depth));
  return done(v, &k, NULL);
}
/* The factors of a dot product in one order. */
static void sort_factors(const valuing *v, const sv *f, row *r) {
  bool dot = !f->free && r->n == 2 && tarn_fn_is_dot(v->p->g->L, f->given.id);
  if (!dot || r->id[0] <= r->id[1]) return;
  uint32_t x = r->id[0];
  r->id[0] = r->id[1], r->id[1] = x;
}
static uint32_t compute_value(valuing *v, const st *t, const poly *at, uint32_t depth) {
  const tarn_func *f = tarn_fn_get(v->p->g->L, t->pay[0].given.id);
  const st *x = t->kid[0];
  poly in[TARN_MAX_DIMS];
  uint32_t skip = f->ntuple ? 1 : 0;
  row r;
  if (f->red == TARN_NONE) {
    r = given(v, t, f, at, depth);
    if (t->nkid != (f->ntuple ? 1 : f->nops)) poly_stuck(v->s, "a map of other operands");
    return mapped(v, &t->pay[0], &r);
  }
  memcpy(in, at, x->ns * sizeof *in);
  for (uint32_t i = x->ns + skip; i < x->n; i++)
    in[i - skip] = index_of(v, depth + 1, i - x->ns - skip, &x->dim[i]);
  r = given(v, t, f, in, depth + 1);
  sort_factors(v, &t->pay[0], &r);
  reducing go = {t, at, in + x->ns, x->n - skip - x->ns, f->ntuple ? 1 : f->nops, depth};
  return reduced(v, &go, &r);
}
static uint32_t value(valuing *v, const st *t, const poly *at, uint32_t depth) {
  key k;
  switch (t->op) {
  case TARN_OP_INPUT:
    k = begin(v, V_READ);
    word(&k, t->leaf), word(&k, t->seg), word(&k, t->n);
    for (uint32_t i = 0; i < t->n; i++) add_poly(v, &k, &at[i]);
    return done(v, &k, NULL);
  case TARN_OP_PAD: return pad_value(v, t, at, depth);
  case TARN_OP_CONCAT: return concat_value(v, t, at, depth, 0);
  case TARN_OP_PAIR:
  case TARN_OP_CART_PROD: return product_value(v, t, at, depth);
  case TARN_OP_COMPUTE: return compute_value(v, t, at, depth);
  default: return view_value(v, t, at, depth);
  }
}

/* ---------------------------------------------------------------- one instance */
typedef struct proving {
  gen *g;
  uint64_t which;
} proving;
static void prove(tarn_ctx *cx, void *arg) {
  proving *x = arg;
  gen *g = x->g;
  const rule *r = g->r;
  if (r->loops) {
    prove_loops(cx, g);
    return;
  }
  prover *p = TARN_NEW(cx, prover);
  *p = (prover){.g = g, .cx = cx};
  p->s.cx = cx;
  if (r->level != TARN_RULE_SURFACE) poly_stuck(&p->s, "a rule over kernels");
  if (r->nlhs > 1 || r->nrhs > 1) poly_stuck(&p->s, "several terms at once");
  sym_begin(p);
  const st *left = sym_left(p, r->lhs[0].pat);
  sym_conditions(p);
  const st *right = sym_right(p, r->rhs[0].pat, g->right[0]);
  x->which = sym_case(p);
  valuing v = {.p = p, .s = &p->s, .ids = tarn_intern_new(cx)};
  poly at[TARN_MAX_DIMS];
  if (!sym_same_type(p, left, right)) poly_stuck(&p->s, "the types are not shown to be equal");
  for (uint32_t d = 0; d < left->n; d++) at[d] = index_of(&v, 0, d, &left->dim[d]);
  if (value(&v, left, at, 0) != value(&v, right, at, 0))
    poly_stuck(&p->s, "the sides are not shown to be equal");
}
bool prove_instance(gen *g, uint64_t *which, char *why, size_t room) {
  proving x = {g, 0};
  tarn_status got = tarn_protect(g->cx, prove, &x);
  if (got && got != TARN_NO_RESULT) tarn_reraise(g->cx, got);
  *which = x.which;
  if (got) snprintf(why, room, "%s", tarn_message(g->cx));
  return got == TARN_OK;
}
