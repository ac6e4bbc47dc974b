/* Polynomials over sizes and indices. */
#include "rules/check/poly.h"
#include <string.h>

_Noreturn void poly_stuck(polys *s, const char *why) {
  tarn_raise(s->cx, TARN_NO_RESULT, "%s", why);
}
poly poly_int(int64_t c) {
  poly p = {.n = c != 0};
  p.m[0] = (mono){.c = c};
  return p;
}
poly poly_var(polys *s, uint32_t v) {
  (void)s;
  poly p = {.n = 1};
  p.m[0] = (mono){.c = 1, .n = 1, .v = {(uint16_t)v}};
  return p;
}
static uint32_t new_var(polys *s, pvar v) {
  if (s->n == POLY_VARS) poly_stuck(s, "too many variables");
  s->var[s->n] = v;
  return s->n++;
}
uint32_t poly_size(polys *s, int64_t value, int64_t least) {
  return new_var(s, (pvar){.kind = PV_SIZE, .value = value, .least = least});
}
uint32_t poly_index(polys *s, const poly *extent) {
  return new_var(s, (pvar){.kind = PV_INDEX, .a = *extent});
}

/* ---------------------------------------------------------------- arithmetic */
static int compare(const mono *a, const mono *b) {
  if (a->n != b->n) return a->n < b->n ? -1 : 1;
  return memcmp(a->v, b->v, a->n * sizeof *a->v);
}
static void add_mono(polys *s, poly *p, mono m) {
  uint32_t i = 0;
  while (i < p->n && compare(&p->m[i], &m) < 0) i++;
  if (i < p->n && !compare(&p->m[i], &m)) {
    if (__builtin_add_overflow(p->m[i].c, m.c, &p->m[i].c)) poly_stuck(s, "a number is too large");
    if (p->m[i].c) return;
    memmove(&p->m[i], &p->m[i + 1], (--p->n - i) * sizeof m);
    return;
  }
  if (!m.c) return;
  if (p->n == POLY_MONOS) poly_stuck(s, "an index is too large");
  memmove(&p->m[i + 1], &p->m[i], (p->n++ - i) * sizeof m);
  p->m[i] = m;
}
poly poly_add(polys *s, const poly *a, const poly *b, int64_t times) {
  poly p = *a;
  for (uint32_t i = 0; i < b->n; i++) {
    mono m = b->m[i];
    if (__builtin_mul_overflow(m.c, times, &m.c)) poly_stuck(s, "a number is too large");
    add_mono(s, &p, m);
  }
  return p;
}
static mono times_mono(polys *s, const mono *a, const mono *b) {
  mono m = {.n = 0};
  uint32_t i = 0, j = 0;
  if (a->n + b->n > POLY_DEGREE) poly_stuck(s, "an index has too many factors");
  if (__builtin_mul_overflow(a->c, b->c, &m.c)) poly_stuck(s, "a number is too large");
  while (i < a->n || j < b->n)
    m.v[m.n++] = j == b->n || (i < a->n && a->v[i] <= b->v[j]) ? a->v[i++] : b->v[j++];
  return m;
}
poly poly_mul(polys *s, const poly *a, const poly *b) {
  poly p = {0};
  for (uint32_t i = 0; i < a->n; i++)
    for (uint32_t j = 0; j < b->n; j++) add_mono(s, &p, times_mono(s, &a->m[i], &b->m[j]));
  return p;
}
bool poly_constant(const poly *a, int64_t *c) {
  *c = a->n ? a->m[0].c : 0;
  return a->n == 0 || (a->n == 1 && a->m[0].n == 0);
}
int64_t poly_value(const polys *s, const poly *a) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < a->n; i++) {
    int64_t one = a->m[i].c;
    for (uint32_t k = 0; k < a->m[i].n; k++) one *= s->var[a->m[i].v[k]].value;
    sum += one;
  }
  return sum;
}
void poly_check(polys *s, const poly *a, int64_t value) {
  if (poly_value(s, a) != value)
    tarn_raise(s->cx, TARN_INTERNAL, "prove: a size of %lld where the instance has %lld",
               (long long)poly_value(s, a), (long long)value);
}

/* ---------------------------------------------------------------- equations */
poly poly_with(polys *s, const poly *a, poly (*is)(polys *s, uint32_t v, void *arg), void *arg) {
  poly p = {0};
  for (uint32_t i = 0; i < a->n; i++) {
    poly term = poly_int(a->m[i].c);
    for (uint32_t k = 0; k < a->m[i].n; k++) {
      poly f = is(s, a->m[i].v[k], arg);
      term = poly_mul(s, &term, &f);
    }
    p = poly_add(s, &p, &term, 1);
  }
  return p;
}
static poly solved(polys *s, uint32_t v, void *any) {
  *(bool *)any |= s->var[v].solved;
  return s->var[v].solved ? s->var[v].is : poly_var(s, v);
}
poly poly_now(polys *s, const poly *a) {
  bool any = false;
  poly p = poly_with(s, a, solved, &any);
  return any ? poly_now(s, &p) : p;
}
bool poly_equal(polys *s, const poly *a, const poly *b) {
  poly d = poly_add(s, a, b, -1);
  d = poly_now(s, &d);
  return d.n == 0;
}
/* Does it occur in more than the monomial m? */
static bool elsewhere(const poly *p, uint32_t m, uint16_t v) {
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t k = 0; k < p->m[i].n; k++)
      if (p->m[i].v[k] == v && (i != m || p->m[i].n > 1)) return true;
  return false;
}
static bool over_sizes(const polys *s, const poly *p) {
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t k = 0; k < p->m[i].n; k++)
      if (s->var[p->m[i].v[k]].kind != PV_SIZE) return false;
  return true;
}
/* An equation that cannot be solved is left out: less is assumed then. */
void poly_assume_equal(polys *s, const poly *a, const poly *b) {
  poly d = poly_add(s, a, b, -1);
  d = poly_now(s, &d);
  poly_check(s, &d, 0);
  if (!over_sizes(s, &d)) return;
  for (uint32_t i = d.n; i-- > 0;) {
    const mono m = d.m[i];
    if (m.n != 1 || (m.c != 1 && m.c != -1) || elsewhere(&d, i, m.v[0])) continue;
    pvar *v = &s->var[m.v[0]];
    poly self = poly_var(s, m.v[0]), rest = poly_add(s, &d, &self, -m.c), none = {0};
    v->is = poly_add(s, &none, &rest, -m.c);
    v->solved = true;
    poly least = poly_int(v->least), fact = poly_add(s, &v->is, &least, -1);
    poly_assume_natural(s, &fact);
    return;
  }
}
void poly_assume_natural(polys *s, const poly *a) {
  if (poly_value(s, a) < 0) poly_stuck(s, "a condition that the instance does not meet");
  if (over_sizes(s, a) && s->nfact < sizeof s->fact / sizeof *s->fact) s->fact[s->nfact++] = *a;
}

/* ---------------------------------------------------------------- what is at least 0 */
/* Sizes written as least + more: no coefficient below 0? */
static poly least_and_more(polys *s, uint32_t v, void *arg) {
  poly f = poly_var(s, v), least = poly_int(s->var[v].kind == PV_SIZE ? s->var[v].least : 0);
  (void)arg;
  return poly_add(s, &f, &least, 1);
}
static bool plainly_natural(polys *s, const poly *a) {
  poly p = poly_with(s, a, least_and_more, NULL);
  for (uint32_t i = 0; i < p.n; i++)
    if (p.m[i].c < 0) return false;
  return true;
}
static bool natural(polys *s, const poly *a, uint32_t depth) {
  if (plainly_natural(s, a)) return true;
  for (uint32_t i = 0; i < s->nfact && depth; i++) {
    poly fact = poly_now(s, &s->fact[i]), rest = poly_add(s, a, &fact, -1);
    if (rest.n <= a->n + 1 && natural(s, &rest, depth - 1)) return true;
  }
  return false;
}
/* Of a polynomial that has quotients by one number or size, [A / m] and -[B / m], and else is R:
 * A + m R - B, of which it is at least 0 if that is. False: it is none of these. */
static bool without_quotients(polys *s, const poly *p, poly *out) {
  poly rest = {0}, plus = {0}, minus = {0}, by = {0};
  bool any = false;
  for (uint32_t i = 0; i < p->n; i++) {
    const mono *m = &p->m[i];
    const pvar *v = m->n == 1 ? &s->var[m->v[0]] : NULL;
    if (!v || v->kind != PV_DIV || (m->c != 1 && m->c != -1)) {
      add_mono(s, &rest, *m);
      continue;
    }
    poly *to = m->c > 0 ? &plus : &minus;
    if (to->n || (any && !poly_equal(s, &by, &v->b))) return false;
    by = v->b, *to = v->a, any = true;
  }
  if (!any) return false;
  *out = poly_mul(s, &rest, &by);
  *out = poly_add(s, out, &plus, 1);
  *out = poly_add(s, out, &minus, -1);
  return true;
}
/* An index at the end that makes the polynomial least; -1: there is none left. */
static int an_index(const polys *s, const poly *p, bool *low) {
  for (uint32_t i = p->n; i-- > 0;)
    for (uint32_t k = 0; k < p->m[i].n; k++) {
      uint16_t v = p->m[i].v[k];
      if (s->var[v].kind == PV_SIZE) continue;
      *low = p->m[i].c > 0;
      for (uint32_t j = 0; j < p->n; j++)
        for (uint32_t q = 0; q < p->m[j].n; q++)
          if (p->m[j].v[q] == v && (p->m[j].c > 0) != *low) return -2;
      return v;
    }
  return -1;
}
bool poly_natural(polys *s, const poly *a) {
  poly p = poly_now(s, a), q;
  for (uint32_t steps = 0; steps < 32; steps++) {
    bool low;
    if (without_quotients(s, &p, &q)) p = poly_now(s, &q);
    int v = an_index(s, &p, &low);
    if (v == -2) return false;
    for (uint32_t depth = 0; v == -1 && depth < 4; depth++)
      if (natural(s, &p, depth)) return true;
    if (v == -1) return false;
    const pvar *x = &s->var[v];
    if (!low && x->kind == PV_DIV) return false; /* nothing is known above */
    poly end = poly_int(0), one = poly_int(1), sum = {0};
    if (!low) end = poly_add(s, x->kind == PV_INDEX ? &x->a : &x->b, &one, -1);
    for (uint32_t i = 0; i < p.n; i++) {
      poly term = poly_int(p.m[i].c);
      for (uint32_t k = 0; k < p.m[i].n; k++) {
        poly f = p.m[i].v[k] == v ? end : poly_var(s, p.m[i].v[k]);
        term = poly_mul(s, &term, &f);
      }
      sum = poly_add(s, &sum, &term, 1);
    }
    p = poly_now(s, &sum);
  }
  return false;
}

/* ---------------------------------------------------------------- quotients and remainders */
static poly atom(polys *s, int kind, const poly *a, const poly *b) {
  int64_t x = poly_value(s, a), y = poly_value(s, b);
  for (uint32_t i = 0; i < s->n; i++)
    if ((int)s->var[i].kind == kind && poly_equal(s, &s->var[i].a, a) &&
        poly_equal(s, &s->var[i].b, b))
      return poly_var(s, i);
  if (y <= 0 || x < 0) poly_stuck(s, "a quotient of no naturals");
  return poly_var(s, new_var(s, (pvar){.kind = kind == PV_DIV ? PV_DIV : PV_MOD,
                                       .value = kind == PV_DIV ? x / y : x % y,
                                       .a = *a,
                                       .b = *b}));
}
/* m / d, where d is one monomial that divides it. */
static bool divided(const mono *m, const mono *d, mono *q) {
  uint32_t j = 0;
  if (m->c % d->c) return false;
  *q = (mono){.c = m->c / d->c};
  for (uint32_t i = 0; i < m->n; i++) {
    if (j < d->n && d->v[j] == m->v[i]) j++;
    else q->v[q->n++] = m->v[i];
  }
  return j == d->n;
}
/* a = b q + r with 0 <= r < b, for sure. */
static bool split(polys *s, const poly *a, const poly *b, poly *q, poly *r) {
  *q = *r = (poly){0};
  if (b->n != 1) return false;
  for (uint32_t i = 0; i < a->n; i++) {
    mono m;
    if (divided(&a->m[i], &b->m[0], &m)) add_mono(s, q, m);
    else add_mono(s, r, a->m[i]);
  }
  poly one = poly_int(1), room = poly_add(s, b, r, -1);
  room = poly_add(s, &room, &one, -1);
  return poly_natural(s, r) && poly_natural(s, &room) && poly_natural(s, q);
}
poly poly_div(polys *s, const poly *a, const poly *b) {
  poly x = poly_now(s, a), y = poly_now(s, b), q, r;
  return split(s, &x, &y, &q, &r) ? q : atom(s, PV_DIV, &x, &y);
}
poly poly_mod(polys *s, const poly *a, const poly *b) {
  poly x = poly_now(s, a), y = poly_now(s, b), q, r;
  return split(s, &x, &y, &q, &r) ? r : atom(s, PV_MOD, &x, &y);
}
