/* access: the inverse of an index map.
 *
 * The viewed indices y are known.  What is known grows: an expression that is a mixed-radix number
 * of its terms gives each term as a digit of it; a remainder a mod d together with the quotient a /
 * d gives a.  When all dims of the view are known, that is the inverse; it is checked by composing.
 */
#include "access/ix.h"

#define KNOWN_MAX 128

typedef struct inverter {
  tarn_lang *L;
  const tarn_imap *m;
  tarn_box view, in;
  bool empty; /* some dim is 0 */
  uint32_t n;
  uint32_t what[KNOWN_MAX]; /* ix over the view's dims */
  uint32_t is[KNOWN_MAX];   /* its value as an ix over the viewed dims */
} inverter;

static uint32_t lookup(const inverter *v, uint32_t what) {
  for (uint32_t i = 0; i < v->n; i++)
    if (v->what[i] == what) return v->is[i];
  return TARN_NONE;
}

static void learn(inverter *v, uint32_t what, const tarn_lin *is) {
  if (v->n == KNOWN_MAX || lookup(v, what) != TARN_NONE || !tarn_ix_get(v->L, what)->n) return;
  v->what[v->n] = what;
  v->is[v->n++] = tarn_lin_intern(v->L, is, &v->in);
}

typedef struct digit {
  int64_t unit, count;
  bool down; /* counts from count - 1 to 0 */
  tarn_ixterm atom;
} digit;

/* The terms of a known expression as digits, least first; false when it is no dense mixed-radix
 * number. *least: the least value of the expression. */
static bool digits_of(inverter *v, const tarn_lin *a, digit *d, int64_t *least) {
  *least = a->c;
  for (uint32_t i = 0; i < a->n; i++) {
    tarn_lin one = {.n = 1, .t = {a->t[i]}};
    int64_t lo, hi, k = a->t[i].coef;
    one.t[0].coef = 1;
    tarn_lin_range(v->L, &one, &v->view, &lo, &hi);
    if (lo != 0) return false;
    digit x = {.unit = k < 0 ? -k : k, .count = hi + 1, .down = k < 0, .atom = one.t[0]};
    if (k < 0) *least += k * hi;
    uint32_t j = i;
    for (; j && x.unit < d[j - 1].unit; j--) d[j] = d[j - 1];
    d[j] = x;
  }
  int64_t unit = 1;
  for (uint32_t i = 0; i < a->n; i++) {
    if (d[i].unit != unit) return false;
    if (__builtin_mul_overflow(unit, d[i].count, &unit)) return false;
  }
  return true;
}

/* The number of a single atom, as an expression. */
static uint32_t atom_ix(inverter *v, const tarn_ixterm *t) {
  tarn_lin a = {0};
  if (t->kind == TARN_IX_VAR) tarn_lin_var(v->L, &a, 1, t->arg, &v->view);
  else {
    tarn_lin num = {0};
    tarn_lin_ix(v->L, &num, 1, t->arg, NULL, &v->view);
    (t->kind == TARN_IX_DIV ? tarn_lin_div : tarn_lin_mod)(v->L, &a, 1, &num, t->by, &v->view);
  }
  return tarn_lin_intern(v->L, &a, &v->view);
}

static void split_digits(inverter *v, uint32_t at) {
  tarn_lin a = {0};
  digit d[TARN_LIN_MAX];
  int64_t least;
  tarn_lin_ix(v->L, &a, 1, v->what[at], NULL, &v->view);
  tarn_lin_pack(v->L, &a, &v->view, true);
  if (!digits_of(v, &a, d, &least)) return;
  for (uint32_t i = 0; i < a.n; i++) {
    tarn_lin num = {.c = -least}, q = {0}, r = {0};
    tarn_lin_ix(v->L, &num, 1, v->is[at], NULL, &v->in);
    tarn_lin_div(v->L, &q, 1, &num, d[i].unit, &v->in);
    tarn_lin_mod(v->L, &r, d[i].down ? -1 : 1, &q, d[i].count, &v->in);
    if (d[i].down) r.c += d[i].count - 1;
    learn(v, atom_ix(v, &d[i].atom), &r);
  }
}

/* what[at] = e mod d: e is known when e / d is. */
static void join_quotient(inverter *v, uint32_t at) {
  const tarn_ix *x = tarn_ix_get(v->L, v->what[at]);
  if (x->n != 1 || x->c || x->t->coef != 1 || x->t->kind != TARN_IX_MOD) return;
  uint32_t e = x->t->arg;
  int64_t d = x->t->by;
  tarn_lin num = {0}, q = {0}, is = {0};
  tarn_lin_ix(v->L, &num, 1, e, NULL, &v->view);
  tarn_lin_div(v->L, &q, 1, &num, d, &v->view);
  uint32_t quo = tarn_lin_intern(v->L, &q, &v->view);
  const tarn_ix *c = tarn_ix_get(v->L, quo);
  uint32_t known = c->n ? lookup(v, quo) : TARN_NONE;
  if (known != TARN_NONE) tarn_lin_ix(v->L, &is, d, known, NULL, &v->in);
  else if (!c->n) is.c = d * c->c;
  else return;
  tarn_lin_ix(v->L, &is, 1, v->is[at], NULL, &v->in);
  learn(v, e, &is);
}

static bool cancels(tarn_lang *L, uint32_t a, uint32_t b) {
  uint32_t c = tarn_map_compose(L, a, b);
  return c != TARN_NONE && tarn_map_is_identity(L, c);
}

static int64_t count(uint32_t n, const int64_t *dim) {
  int64_t c = 1;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_mul_overflow(c, dim[i], &c)) return -1;
  return c;
}

static uint32_t finish(inverter *v, uint32_t in_ns) {
  const tarn_imap *m = v->m;
  tarn_imap r = {.ns = (uint8_t)in_ns, .n = m->nin, .nin = m->n, .fill = TARN_NONE};
  for (uint32_t i = 0; i < m->nin; i++) r.dim[i] = m->in[i];
  for (uint32_t i = 0; i < m->n; i++) {
    r.in[i] = m->dim[i];
    r.e[i] = m->dim[i] > 1 && !v->empty ? lookup(v, tarn_ix_var(v->L, i, m->dim))
                                        : tarn_ix_const(v->L, 0);
    int64_t lo, hi;
    if (r.e[i] == TARN_NONE) return TARN_NONE;
    tarn_ix_range(v->L, r.e[i], r.dim, &lo, &hi);
    if (!v->empty && (lo < 0 || hi >= m->dim[i])) return TARN_NONE;
  }
  return tarn_map_make(v->L, &r, 0, NULL);
}

static uint32_t invert(tarn_lang *L, uint32_t id, uint32_t in_ns) {
  inverter v = {.L = L, .m = tarn_imap_get(L, id)};
  const tarn_imap *m = v.m;
  int64_t elements = count(m->n, m->dim);
  if (m->nguard || elements < 0 || elements != count(m->nin, m->in) || in_ns > m->nin)
    return TARN_NONE;
  v.empty = !elements;
  tarn_box_of(&v.view, m->n, m->dim);
  tarn_box_of(&v.in, m->nin, m->in);
  for (uint32_t i = 0; elements && i < m->nin; i++) {
    tarn_lin y = {0};
    tarn_lin_var(L, &y, 1, i, &v.in);
    learn(&v, m->e[i], &y);
  }
  for (uint32_t before = 0; before != v.n;) {
    before = v.n;
    for (uint32_t i = 0; i < v.n; i++) split_digits(&v, i);
    for (uint32_t i = 0; i < v.n; i++) join_quotient(&v, i);
  }
  uint32_t inv = finish(&v, in_ns);
  if (inv == TARN_NONE || !elements) return inv;
  return cancels(L, inv, id) || cancels(L, id, inv)
             ? inv
             : TARN_NONE; /* one side is enough: the counts agree */
}

uint32_t tarn_map_invert(tarn_lang *L, uint32_t id, uint32_t in_ns) {
  bool fresh;
  if (!L->inverted) L->inverted = tarn_map_new(L->cx);
  uint64_t key = (uint64_t)id << 32 | in_ns, *known = tarn_map_get(L->inverted, key);
  if (known) return (uint32_t)*known;
  uint32_t inv = invert(L, id, in_ns);
  *tarn_map_at(L->inverted, key, &fresh) = inv;
  return inv;
}
