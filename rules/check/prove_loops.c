/* Proofs of rules over loops for all extents. The right side is computed at one point of the left
 * side's result: what a kernel computes is read where it stands, so indices are polynomials over
 * those of the left side. Values are sums of products of atoms, in real arithmetic; of a rule that
 * says `exact` only what keeps every bit is used. In a sum, factors that its loops leave alone
 * stand before it, loops on which nothing depends are a factor, and two loops a and b that are only
 * ever read as |b| a + b are one. Equal values are equal numbers.
 *
 * What typing ensures is taken as known: an expression that the right side reads where a loop of
 * the left side is gone does not depend on it, because the right side is not made otherwise. */
#include "rules/check/prove_loops.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- reductions */
static uint32_t height(const lprover *p, const lval *v) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < v->n; i++)
    for (uint32_t k = 0; k < v->t[i].n; k++) {
      const latom *a = &p->atom.p[v->t[i].atom[k]];
      uint32_t own = a->kind == LA_FOLD;
      for (uint32_t j = 0; j < a->nkid; j++) {
        uint32_t h = own + height(p, &a->kid[j]);
        if (h > most) most = h;
      }
    }
  return most;
}
/* The k-th index of a reduction of this height and extent: always the same one. */
static uint32_t standard(lprover *p, uint32_t high, uint32_t k, const poly *extent) {
  for (uint32_t i = 0; i < p->nstandard; i++)
    if (p->standard[i].high == high && p->standard[i].k == k &&
        poly_equal(&p->s, &p->s.var[p->standard[i].var].a, extent))
      return p->standard[i].var;
  if (p->nstandard == L_STANDARD) poly_stuck(&p->s, "too many indices");
  uint32_t var = poly_index(&p->s, extent);
  p->standard[p->nstandard].high = high, p->standard[p->nstandard].k = k;
  return p->standard[p->nstandard++].var = var;
}
enum { APART = 1000 }; /* a height that nothing has */
static lval named(lprover *p, const lfold *f, const uint32_t *perm) {
  latom a = {.kind = LA_FOLD, .var = f->var, .op = f->op, .nkid = 1, .nloop = f->n};
  uint32_t high = height(p, &f->body);
  lval body = f->body;
  for (uint32_t i = 0; i < f->n; i++) { /* apart first: a standard index may be among them */
    poly apart = poly_var(&p->s, standard(p, APART, i, &p->s.var[f->loop[perm[i]]].a));
    body = val_with(p, &body, f->loop[perm[i]], &apart);
    a.bound[i] = apart.m[0].v[0];
  }
  for (uint32_t i = 0; i < f->n; i++) {
    uint32_t var = standard(p, high, i, &p->s.var[a.bound[i]].a);
    poly is = poly_var(&p->s, var);
    body = val_with(p, &body, a.bound[i], &is);
    a.bound[i] = var;
  }
  a.kid = tarn_copy(p->cx, &body, sizeof body);
  return value_of(p, &a);
}
static bool next_order(uint32_t *perm, uint32_t n) {
  uint32_t i = n, j = n;
  while (i > 1 && perm[i - 2] > perm[i - 1]) i--;
  if (i < 2) return false;
  while (perm[j - 1] < perm[i - 2]) j--;
  uint32_t x = perm[i - 2];
  perm[i - 2] = perm[j - 1], perm[j - 1] = x;
  for (uint32_t a = i - 1, b = n - 1; a < b; a++, b--) x = perm[a], perm[a] = perm[b], perm[b] = x;
  return true;
}
/* Of all orders of the loops the one whose atom was there first. */
static lval any_order(lprover *p, const lfold *f) {
  uint32_t perm[L_LIST] = {0, 1, 2, 3, 4, 5};
  if (f->n > 4 && !f->ordered) poly_stuck(&p->s, "a reduction over many loops");
  lval best = named(p, f, perm);
  while (!f->ordered && next_order(perm, f->n)) {
    lval v = named(p, f, perm);
    if (v.t[0].atom[0] < best.t[0].atom[0]) best = v;
  }
  return best;
}
/* Loops a and b that are only read as |b| a + b. */
static bool join_two(lprover *p, lfold *f, uint32_t a, uint32_t b) {
  poly A = p->s.var[f->loop[a]].a, B = p->s.var[f->loop[b]].a, extent = poly_mul(&p->s, &A, &B);
  uint32_t j = poly_index(&p->s, &extent);
  poly ia = poly_var(&p->s, f->loop[a]), far = poly_mul(&p->s, &B, &ia), both = poly_var(&p->s, j);
  poly is = poly_add(&p->s, &both, &far, -1);
  lval body = val_with(p, &f->body, f->loop[b], &is);
  if (val_has(p, &body, f->loop[a])) {
    if (j + 1 == p->s.n) p->s.n--;
    return false;
  }
  f->body = body, f->loop[a] = j;
  memmove(&f->loop[b], &f->loop[b + 1], (--f->n - b) * sizeof *f->loop);
  return true;
}
static void join_loops(lprover *p, lfold *f) {
  for (uint32_t a = 0; a < f->n; a++)
    for (uint32_t b = 0; b < f->n; b++)
      if (a != b && join_two(p, f, a, b)) {
        a = UINT32_MAX;
        break;
      }
}
/* A reduction of a reduction by the same reducer is one; false: it is none. */
static bool absorb(lprover *p, lfold *f) {
  const latom *in = atom_of(p, &f->body);
  if (!in || in->kind != LA_FOLD || in->var != f->var || in->op != f->op) return false;
  latom a = *in;
  lval body = a.kid[0];
  if (f->n + a.nloop > L_LIST) poly_stuck(&p->s, "a reduction over many loops");
  for (uint32_t i = 0; i < a.nloop; i++) {
    uint32_t var = poly_index(&p->s, &p->s.var[a.bound[i]].a);
    poly is = poly_var(&p->s, var);
    body = val_with(p, &body, a.bound[i], &is);
    f->loop[f->n++] = var;
  }
  f->body = body;
  return true;
}
static bool depends(const lprover *p, const lfold *f, const lval *v) {
  for (uint32_t i = 0; i < f->n; i++)
    if (val_has(p, v, f->loop[i])) return true;
  return false;
}
/* Takes out loops on which nothing depends; the product of their extents. */
static poly drop_loops(lprover *p, lfold *f) {
  poly times = poly_int(1);
  for (uint32_t i = f->n; i-- > 0;)
    if (!val_has(p, &f->body, f->loop[i])) {
      times = poly_mul(&p->s, &times, &p->s.var[f->loop[i]].a);
      memmove(&f->loop[i], &f->loop[i + 1], (--f->n - i) * sizeof *f->loop);
    }
  return times;
}
static lval sum_of(lprover *p, lfold f);
/* Of one product: what does not depend on the loops stands before the sum. */
static lval sum_of_product(lprover *p, const lfold *of, const lterm *t) {
  lfold f = *of;
  lval before = number_value(p, 1), in = number_value(p, 1);
  for (uint32_t k = 0; k < t->n; k++) {
    lval x = atom_value(p, t->atom[k]);
    lval *to = depends(p, of, &x) ? &in : &before;
    *to = val_multiply(p, to, &x);
  }
  f.body = in;
  if (absorb(p, &f)) in = sum_of(p, f);
  else {
    poly times = drop_loops(p, &f);
    lval many = poly_value_of(p, &times);
    join_loops(p, &f);
    if (f.n) in = any_order(p, &f);
    in = val_multiply(p, &in, &many);
  }
  return val_multiply(p, &before, &in);
}
/* The same of one that was there before is known. */
static lval sum_of_term(lprover *p, const lfold *f, const lterm *t) {
  tarn_buf b = {.cx = p->cx};
  tarn_buf_add(&b, (const char *)f->loop, f->n * sizeof *f->loop);
  tarn_buf_add(&b, (const char *)&f->n, sizeof f->n);
  tarn_buf_add(&b, (const char *)t->atom, t->n * sizeof *t->atom);
  uint32_t id = tarn_intern_add(p->folds, b.p, b.n);
  if (id < p->folded.n) return p->folded.p[id];
  lval none = {0};
  tarn_push(p->cx, &p->folded, none);
  lval v = sum_of_product(p, f, t);
  return p->folded.p[id] = v;
}
static lval sum_of(lprover *p, lfold f) {
  lval v = {0};
  for (uint32_t i = 0; i < f.body.n; i++) {
    lval c = number_value(p, f.body.t[i].c), x = sum_of_term(p, &f, &f.body.t[i]);
    x = val_multiply(p, &c, &x);
    for (uint32_t k = 0; k < x.n; k++) val_add_term(p, &v, &x.t[k]);
  }
  return v;
}
static lval operate(lprover *p, uint32_t op, lval *kid, uint32_t n);
/* max (max (x, a)) = max (max x, a), max (x + a) = max x + a: what the loops leave alone. */
static bool put_before(lprover *p, const lfold *f, lval *out) {
  const latom *a = atom_of(p, &f->body);
  uint32_t same = f->op == TARN_RED_MAX ? TARN_FX_MAX : TARN_FX_MIN;
  if (!a || a->kind != LA_OP || (a->op != same && a->op != TARN_FX_ADD)) return false;
  uint32_t op = a->op, n = a->nkid, with_loops = 0, at = 0;
  lval kid[L_KIDS];
  memcpy(kid, a->kid, n * sizeof *kid);
  for (uint32_t i = 0; i < n; i++)
    if (depends(p, f, &kid[i])) with_loops++, at = i;
  if (n != 2 || with_loops != 1) return false;
  lfold in = *f;
  in.body = kid[at];
  kid[at] = fold_value(p, in);
  *out = operate(p, op, kid, n);
  return true;
}
/* Summands that do not depend on the loops. */
static lval take_out(lprover *p, lfold *f) {
  lval out = {0}, in = {0};
  for (uint32_t i = 0; i < f->body.n; i++) {
    lval x = term_value(p, &f->body.t[i]);
    val_add_term(p, depends(p, f, &x) ? &in : &out, &f->body.t[i]);
  }
  f->body = in;
  return out;
}
static lval extreme_of(lprover *p, lfold f) {
  lval before;
  while (absorb(p, &f)) continue;
  drop_loops(p, &f);
  if (!f.n) return f.body;
  if (put_before(p, &f, &before)) return before;
  before = p->real ? take_out(p, &f) : number_value(p, 0);
  join_loops(p, &f);
  lval most = any_order(p, &f);
  return val_add(p, &most, &before, 1);
}
lval fold_value(lprover *p, lfold f) {
  bool extreme = f.var == TARN_NONE && (f.op == TARN_RED_MAX || f.op == TARN_RED_MIN);
  bool built_in = f.var == TARN_NONE || p->merges == f.var;
  if (extreme) return extreme_of(p, f);
  if (p->real && f.var == TARN_NONE && f.op == TARN_RED_SUM) return sum_of(p, f);
  f.ordered = !p->real || !built_in;
  if (f.ordered) return any_order(p, &f);
  while (absorb(p, &f)) continue;
  join_loops(p, &f);
  return any_order(p, &f);
}

/* ---------------------------------------------------------------- operators */
static bool commutes(uint32_t op) {
  return op == TARN_FX_ADD || op == TARN_FX_MUL || op == TARN_FX_MAX || op == TARN_FX_MIN;
}
static uint32_t rank_of(lprover *p, const lval *v) {
  tarn_buf b = {.cx = p->cx};
  val_put(&b, v);
  return tarn_intern_add(p->ranks, b.p, b.n);
}
static void sort_kids(lprover *p, lval *kid, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = i; k && rank_of(p, &kid[k - 1]) > rank_of(p, &kid[k]); k--) {
      lval x = kid[k];
      kid[k] = kid[k - 1], kid[k - 1] = x;
    }
}
/* max (max (x, y), z): one of three. */
static uint32_t spread(lprover *p, uint32_t op, const lval *kid, uint32_t n, lval *out) {
  uint32_t m = 0;
  for (uint32_t i = 0; i < n; i++) {
    const latom *a = atom_of(p, &kid[i]);
    bool same = a && a->kind == LA_OP && a->op == op;
    uint32_t more = same ? a->nkid : 1;
    if (m + more > L_KIDS) poly_stuck(&p->s, "an expression of many operands");
    memcpy(&out[m], same ? a->kid : &kid[i], more * sizeof *out);
    m += more;
  }
  return m;
}
static lval plain_op(lprover *p, uint32_t op, uint32_t type, lval *kid, uint32_t n) {
  lval flat[L_KIDS];
  if (op == TARN_FX_MAX || op == TARN_FX_MIN) n = spread(p, op, kid, n, flat), kid = flat;
  if (commutes(op)) sort_kids(p, kid, n);
  latom a = {.kind = LA_OP, .op = op, .var = type, .nkid = n};
  a.kid = tarn_copy(p->cx, kid, n * sizeof *kid);
  return value_of(p, &a);
}
static lval inverse(lprover *p, lval v) {
  if (!p->floats) poly_stuck(&p->s, "a quotient that may be one of integers");
  lval x = number_value(p, 1);
  if (v.n != 1) return plain_op(p, TARN_FX_DIV, TARN_NONE, &v, 1);
  for (uint32_t k = 0; k < v.t[0].n; k++) {
    lval f = atom_value(p, v.t[0].atom[k]);
    const latom *a = atom_of(p, &f);
    bool twice = a->kind == LA_OP && a->op == TARN_FX_DIV && a->nkid == 1;
    f = twice ? a->kid[0] : plain_op(p, TARN_FX_DIV, TARN_NONE, &f, 1);
    x = val_multiply(p, &x, &f);
  }
  lval c = number_value(p, 1 / v.t[0].c);
  return val_multiply(p, &c, &x);
}
/* |v|: of each factor. */
static lval magnitude(lprover *p, lval v) {
  if (v.n != 1) return plain_op(p, TARN_FX_ABS, TARN_NONE, &v, 1);
  lval x = number_value(p, fabs(v.t[0].c));
  for (uint32_t k = 0; k < v.t[0].n; k++) {
    lval f = atom_value(p, v.t[0].atom[k]);
    f = plain_op(p, TARN_FX_ABS, TARN_NONE, &f, 1);
    x = val_multiply(p, &x, &f);
  }
  return x;
}
/* Of the square of a product: its magnitude. */
static lval square_root(lprover *p, lval v) {
  const lterm *t = v.t;
  bool square = v.n == 1 && t->c == 1 && t->n % 2 == 0;
  for (uint32_t k = 0; square && k < t->n; k += 2) square = t->atom[k] == t->atom[k + 1];
  if (!square) return plain_op(p, TARN_FX_SQRT, TARN_NONE, &v, 1);
  lterm half = {.c = 1, .n = t->n / 2};
  for (uint32_t k = 0; k < half.n; k++) half.atom[k] = t->atom[2 * k];
  return magnitude(p, term_value(p, &half));
}
static lval power(lprover *p, lval *kid) {
  const lval *e = &kid[1];
  double n = e->n ? e->t[0].c : 0;
  bool known = e->n == 1 && !e->t[0].n && (n == 1 || n == 2 || n == 3 || n == -1 || n == -2);
  if (e->n == 1 && !e->t[0].n && (n == 0.5 || n == -0.5)) {
    lval root = square_root(p, kid[0]);
    return n < 0 ? inverse(p, root) : root;
  }
  if (!known) return plain_op(p, TARN_FX_POW, TARN_NONE, kid, 2);
  lval base = n < 0 ? inverse(p, kid[0]) : kid[0], v = base;
  for (double i = 1; i < (n < 0 ? -n : n); i++) v = val_multiply(p, &v, &base);
  return v;
}
bool has_fact(const lprover *p, uint32_t kind, uint32_t a, uint32_t b, uint32_t type) {
  for (uint32_t i = 0; i < p->nfact; i++) {
    const lfact *f = &p->fact[i];
    if (f->kind == kind && f->a == a && f->b == b && f->type == type) return true;
  }
  return false;
}
/* The variable that a value is, or what is done by one; TARN_NONE. */
static uint32_t variable_of(const lprover *p, const lval *v) {
  const latom *a = atom_of(p, v);
  return a && (a->kind == LA_READ || a->kind == LA_THEN) ? a->var : TARN_NONE;
}
/* What keeps every bit: x^1 = x, x^2 = x x, x / 2^n = x 2^-n. */
static lval operate_exactly(lprover *p, uint32_t op, lval *kid, uint32_t n) {
  double e = op == TARN_FX_POW && kid[1].n == 1 && !kid[1].t[0].n ? kid[1].t[0].c : 0;
  if (e == 1) return kid[0];
  if (e == 2) op = TARN_FX_MUL, kid[1] = kid[0];
  if (op == TARN_FX_DIV && has_fact(p, LF_TWO, variable_of(p, &kid[1]), TARN_NONE, TARN_NONE) &&
      !(kid[0].n == 1 && !kid[0].t[0].n)) {
    lval by[2] = {number_value(p, 1), kid[1]};
    kid[1] = plain_op(p, TARN_FX_DIV, TARN_NONE, by, 2), op = TARN_FX_MUL;
  }
  return plain_op(p, op, TARN_NONE, kid, n);
}
/* NaN is no real number. */
static bool is_nan_test(const lprover *p, const lval *v) {
  const latom *a = atom_of(p, v);
  return a && a->kind == LA_OP && a->op == TARN_FX_ISNAN;
}
static lval operate(lprover *p, uint32_t op, lval *kid, uint32_t n) {
  lval zero = {0}, x;
  if (!p->real) return operate_exactly(p, op, kid, n);
  switch (op) {
  case TARN_FX_SQRT: return square_root(p, kid[0]);
  case TARN_FX_ABS: return magnitude(p, kid[0]);
  case TARN_FX_SEL: return is_nan_test(p, &kid[0]) ? kid[2] : plain_op(p, op, TARN_NONE, kid, n);
  case TARN_FX_ADD: return val_add(p, &kid[0], &kid[1], 1);
  case TARN_FX_SUB: return val_add(p, &kid[0], &kid[1], -1);
  case TARN_FX_NEG: return val_add(p, &zero, &kid[0], -1);
  case TARN_FX_MUL: return val_multiply(p, &kid[0], &kid[1]);
  case TARN_FX_DIV: x = inverse(p, kid[1]); return val_multiply(p, &kid[0], &x);
  case TARN_FX_POW: return power(p, kid);
  default: return plain_op(p, op, TARN_NONE, kid, n);
  }
}
/* Is it a variable whose values such a cast keeps, or a sum or difference of two? */
static bool cast_keeps(lprover *p, const lval *v, uint32_t type) {
  uint32_t a = variable_of(p, v);
  if (v->n == 0) return true;
  if (a != TARN_NONE)
    return has_fact(p, LF_SURVIVES, a, TARN_NONE, type) ||
           has_fact(p, LF_WIDENS, a, TARN_NONE, type) || has_fact(p, LF_TYPED, a, TARN_NONE, type);
  for (uint32_t i = 0; i < 2 && v->n == 2; i++) {
    const lterm *t = &v->t[i], *u = &v->t[1 - i];
    if (t->n != 1 || u->n != 1 || t->c != 1 || fabs(u->c) != 1) continue;
    lval one = atom_value(p, t->atom[0]), other = atom_value(p, u->atom[0]);
    uint32_t x = variable_of(p, &one), y = variable_of(p, &other);
    if (has_fact(p, u->c < 0 ? LF_DIFFERENCE : LF_SUM, x, y, TARN_NONE) &&
        has_fact(p, LF_SURVIVES, x, TARN_NONE, type) &&
        has_fact(p, LF_SURVIVES, y, TARN_NONE, type))
      return true;
  }
  return false;
}
/* What is cast first, of two casts, if it is cast to a wider type and back. */
static const lval *cast_back(const lprover *p, const lval *v, uint32_t type) {
  const latom *a = atom_of(p, v);
  if (!a || a->kind != LA_OP || a->op != TARN_FX_CAST) return NULL;
  uint32_t x = variable_of(p, &a->kid[0]);
  bool back = has_fact(p, LF_TYPED, x, TARN_NONE, type);
  return back && has_fact(p, LF_WIDENS, x, TARN_NONE, a->var) ? &a->kid[0] : NULL;
}
/* Casts of integers by way of bytes: of what bytes hold, back to its type, it is that; to other
 * bytes, the bytes in between do not matter. What is cast first; NULL. */
static const lval *cast_before(const lprover *p, const lval *v, uint32_t type) {
  const latom *a = atom_of(p, v);
  if (!a || a->kind != LA_OP || a->op != TARN_FX_CAST) return NULL;
  uint32_t x = variable_of(p, &a->kid[0]), bytes = a->var;
  if ((bytes != TARN_I8 && bytes != TARN_U8) || !has_fact(p, LF_TYPED, x, TARN_NONE, TARN_I32))
    return NULL;
  bool held = type == TARN_I32 && has_fact(p, LF_SURVIVES, x, TARN_NONE, bytes);
  return held || type == TARN_I8 || type == TARN_U8 ? &a->kid[0] : NULL;
}
static uint32_t cast_type(const lx *x) {
  return x->var == TARN_NONE ? (uint32_t)x->type : 1000 + x->var;
}
lval op_value(lprover *p, const lx *x, lval *kid) {
  if (x->op != TARN_FX_CAST) return operate(p, x->op, kid, x->n);
  uint32_t type = cast_type(x);
  if (p->real && cast_keeps(p, kid, type)) return kid[0];
  const lval *same = cast_back(p, kid, type), *first = cast_before(p, kid, type);
  if (same) return *same;
  if (first && type == TARN_I32) return *first;
  /* Casts of one number from floats and from integers may differ: those saturate, these wrap. */
  bool twice = x->kid[0]->kind == LX_OP && x->kid[0]->op == TARN_FX_CAST;
  lval of[2] = {first ? *first : kid[0],
                number_value(p, twice && !first ? 1 + cast_type(x->kid[0]) : 0)};
  return plain_op(p, x->op, type, of, 2);
}
/* A pair of loops, one of them loop i, on which the expression depends by their sum; NULL. */
static const lslide *slide_of(const lprover *p, uint32_t kind, uint32_t var, uint32_t i) {
  for (uint32_t k = 0; k < p->nslide && kind == LA_READ; k++)
    if (p->slide[k].of == var && (p->slide[k].a == i || p->slide[k].b == i)) return &p->slide[k];
  return NULL;
}
lval read_value(lprover *p, uint32_t kind, uint32_t var, const lenv *e, lval *kid) {
  latom a = {.kind = kind, .var = var, .nkid = kid ? 1 : 0};
  a.ix = TARN_ARRAY(p->cx, poly, p->nloop + 1);
  uint32_t last = kind == LA_THEN ? p->nown : p->nleft;
  for (uint32_t i = 0; i < last; i++) {
    if (!e->has[i]) p->gone[var] |= 1u << i;
    const lslide *with = slide_of(p, kind, var, i);
    bool sparse = kind == LA_READ && has_fact(p, LF_SPARSE, var, i, TARN_NONE);
    if (sparse != (kind == LA_READ && (e->counts >> i & 1)))
      poly_stuck(&p->s, "a value of a loop that a guard may leave out");
    if (p->gone[var] >> i & 1 || (with && with->b == i)) continue;
    a.ix[a.nix] = e->at[i];
    if (with && e->has[with->b]) a.ix[a.nix] = poly_add(&p->s, &a.ix[a.nix], &e->at[with->b], 1);
    a.nix++;
  }
  if (kid) a.kid = tarn_copy(p->cx, kid, sizeof *kid);
  return value_of(p, &a);
}
