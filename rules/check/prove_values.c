/* Values in proofs of rules over loops: sums of products of atoms (prove_loops.c), their
 * arithmetic, and other indices in them. */
#include "rules/check/prove_loops.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- atoms and values */
bool loop_number(const lprover *p, uint32_t var, uint32_t *at) {
  for (*at = 0; *at < p->nloop; ++*at)
    if (p->loop[*at].var == var) return true;
  return false;
}
static void put_poly(lprover *p, tarn_buf *b, const poly *a) {
  poly x = poly_now(&p->s, a);
  tarn_buf_add(b, (const char *)&x.n, sizeof x.n);
  for (uint32_t i = 0; i < x.n; i++) {
    tarn_buf_add(b, (const char *)&x.m[i].c, sizeof x.m[i].c);
    tarn_buf_add(b, (const char *)&x.m[i].n, sizeof x.m[i].n);
    tarn_buf_add(b, (const char *)x.m[i].v, x.m[i].n * sizeof *x.m[i].v);
  }
}
void val_put(tarn_buf *b, const lval *v) {
  tarn_buf_add(b, (const char *)&v->n, sizeof v->n);
  for (uint32_t i = 0; i < v->n; i++) {
    tarn_buf_add(b, (const char *)&v->t[i].c, sizeof v->t[i].c);
    tarn_buf_add(b, (const char *)&v->t[i].n, sizeof v->t[i].n);
    tarn_buf_add(b, (const char *)v->t[i].atom, v->t[i].n * sizeof *v->t[i].atom);
  }
}
static uint32_t intern(lprover *p, const latom *a) {
  tarn_buf b = {.cx = p->cx};
  uint32_t head[6] = {(uint32_t)a->kind, a->var, a->op, a->nix, a->nkid, a->nloop};
  tarn_buf_add(&b, (const char *)head, sizeof head);
  for (uint32_t i = 0; i < a->nix; i++) put_poly(p, &b, &a->ix[i]);
  for (uint32_t i = 0; i < a->nkid; i++) val_put(&b, &a->kid[i]);
  for (uint32_t i = 0; i < a->nloop; i++) put_poly(p, &b, &p->s.var[a->bound[i]].a);
  uint32_t id = tarn_intern_add(p->ids, b.p, b.n);
  if (id == p->atom.n) tarn_push(p->cx, &p->atom, *a);
  return id;
}
static int term_order(const lterm *a, const lterm *b) {
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  return memcmp(a->atom, b->atom, a->n * sizeof *a->atom);
}
/* Where there are tables of fractions: the multiple of 1/den that a computed number stands for. */
static double exactly(lprover *p, double c) {
  if (!p->den) return c;
  double k = rint(c * (double)p->den);
  if (fabs(c * (double)p->den - k) > 1e-4) poly_stuck(&p->s, "a number that is no simple fraction");
  return k / (double)p->den;
}
static uint32_t place_of(const lval *v, const lterm *t) {
  uint32_t lo = 0, hi = v->n;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (term_order(&v->t[mid], t) < 0) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
static void make_room(lprover *p, lval *v, uint32_t n) {
  if (n <= v->room) return;
  if (n > L_TERMS) poly_stuck(&p->s, "an expression of many terms");
  lterm *t = TARN_ARRAY(p->cx, lterm, 2 * n);
  if (v->n) memcpy(t, v->t, v->n * sizeof *t);
  v->t = t, v->room = 2 * n;
}
void val_add_term(lprover *p, lval *v, const lterm *t) {
  uint32_t i = place_of(v, t);
  if (i < v->n && !term_order(&v->t[i], t)) {
    v->t[i].c = exactly(p, v->t[i].c + t->c);
    if (v->t[i].c != 0) return;
    memmove(&v->t[i], &v->t[i + 1], (--v->n - i) * sizeof *v->t);
    return;
  }
  if (t->c == 0) return;
  make_room(p, v, v->n + 1);
  memmove(&v->t[i + 1], &v->t[i], (v->n++ - i) * sizeof *v->t);
  v->t[i] = *t;
}
lval val_add(lprover *p, const lval *a, const lval *b, double times) {
  lval v = {0};
  make_room(p, &v, a->n + 1);
  if (a->n) memcpy(v.t, a->t, a->n * sizeof *a->t);
  v.n = a->n;
  for (uint32_t i = 0; i < b->n; i++) {
    lterm t = b->t[i];
    t.c *= times;
    val_add_term(p, &v, &t);
  }
  return v;
}
static lterm join_terms(lprover *p, const lterm *a, const lterm *b) {
  lterm t = {.c = exactly(p, a->c * b->c)};
  uint32_t i = 0, j = 0;
  if (a->n + b->n > L_FACTORS) poly_stuck(&p->s, "a product of many factors");
  while (i < a->n || j < b->n)
    t.atom[t.n++] =
        j == b->n || (i < a->n && a->atom[i] <= b->atom[j]) ? a->atom[i++] : b->atom[j++];
  return t;
}
lval val_multiply(lprover *p, const lval *a, const lval *b) {
  lval v = {0};
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t j = 0; j < b->n; j++) {
      lterm t = join_terms(p, &a->t[i], &b->t[j]);
      val_add_term(p, &v, &t);
    }
  return v;
}
lval term_value(lprover *p, const lterm *t) {
  lval v = {0};
  val_add_term(p, &v, t);
  return v;
}
lval number_value(lprover *p, double c) {
  lterm t = {.c = c};
  return term_value(p, &t);
}
lval atom_value(lprover *p, uint32_t id) {
  lterm t = {.c = 1, .n = 1, .atom = {id}};
  return term_value(p, &t);
}
lval value_of(lprover *p, const latom *a) { return atom_value(p, intern(p, a)); }
/* The atom that a value is; NULL. */
const latom *atom_of(const lprover *p, const lval *v) {
  return v->n == 1 && v->t[0].c == 1 && v->t[0].n == 1 ? &p->atom.p[v->t[0].atom[0]] : NULL;
}
lval poly_value_of(lprover *p, const poly *a) {
  lval v = {0};
  poly x = poly_now(&p->s, a);
  for (uint32_t i = 0; i < x.n; i++) {
    lval m = number_value(p, (double)x.m[i].c);
    for (uint32_t k = 0; k < x.m[i].n; k++) {
      latom size = {.kind = LA_SIZE, .var = x.m[i].v[k]};
      lval f = value_of(p, &size);
      m = val_multiply(p, &m, &f);
    }
    v = val_add(p, &v, &m, 1);
  }
  return v;
}

/* ---------------------------------------------------------------- indices in values */
static bool poly_has(const poly *a, uint32_t var) {
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t k = 0; k < a->m[i].n; k++)
      if (a->m[i].v[k] == var) return true;
  return false;
}
static bool atom_has(const lprover *p, uint32_t id, uint32_t var) {
  const latom *a = &p->atom.p[id];
  for (uint32_t i = 0; i < a->nix; i++)
    if (poly_has(&a->ix[i], var)) return true;
  for (uint32_t i = 0; i < a->nkid; i++)
    if (val_has(p, &a->kid[i], var)) return true;
  return false;
}
bool val_has(const lprover *p, const lval *v, uint32_t var) {
  for (uint32_t i = 0; i < v->n; i++)
    for (uint32_t k = 0; k < v->t[i].n; k++)
      if (atom_has(p, v->t[i].atom[k], var)) return true;
  return false;
}
typedef struct replaced {
  uint32_t var;
  const poly *is;
} replaced;
static poly replace(polys *s, uint32_t v, void *arg) {
  const replaced *r = arg;
  return v == r->var ? *r->is : poly_var(s, v);
}
static poly replace_in(lprover *p, const poly *a, uint32_t var, const poly *is) {
  poly x = poly_with(&p->s, a, replace, &(replaced){var, is});
  return poly_now(&p->s, &x);
}
static uint32_t atom_with(lprover *p, uint32_t id, uint32_t var, const poly *is) {
  latom a = p->atom.p[id];
  if (!atom_has(p, id, var)) return id;
  const latom was = a;
  a.ix = TARN_ARRAY(p->cx, poly, a.nix + 1);
  a.kid = TARN_ARRAY(p->cx, lval, a.nkid + 1);
  for (uint32_t i = 0; i < a.nix; i++) a.ix[i] = replace_in(p, &was.ix[i], var, is);
  for (uint32_t i = 0; i < a.nkid; i++) a.kid[i] = val_with(p, &was.kid[i], var, is);
  return intern(p, &a);
}
static void sort_atoms(lterm *t) {
  for (uint32_t i = 1; i < t->n; i++)
    for (uint32_t k = i; k && t->atom[k - 1] > t->atom[k]; k--) {
      uint32_t x = t->atom[k];
      t->atom[k] = t->atom[k - 1], t->atom[k - 1] = x;
    }
}
/* The value where an index is that polynomial. */
lval val_with(lprover *p, const lval *v, uint32_t var, const poly *is) {
  lval x = {0};
  for (uint32_t i = 0; i < v->n; i++) {
    lterm t = v->t[i];
    for (uint32_t k = 0; k < t.n; k++) t.atom[k] = atom_with(p, t.atom[k], var, is);
    sort_atoms(&t);
    val_add_term(p, &x, &t);
  }
  return x;
}

bool same_value(const lval *a, const lval *b) {
  bool same = a->n == b->n;
  for (uint32_t i = 0; same && i < a->n; i++)
    same = a->t[i].c == b->t[i].c && !term_order(&a->t[i], &b->t[i]);
  return same;
}
