/* Integers and fractions of any size, by GMP. */
#include "lab/big.h"
#include <gmp.h>
#include <stdlib.h>
#include <string.h>

/* GMP's numbers for one operation; they are cleared however it ends. */
enum { TEMPS = 4 };
typedef struct temps {
  mpz_t z[TEMPS];
} temps;
static void clear(void *arg) {
  temps *t = arg;
  for (int i = 0; i < TEMPS; i++) mpz_clear(t->z[i]);
}
static temps *begin(tarn_ctx *cx) {
  temps *t = TARN_NEW(cx, temps);
  for (int i = 0; i < TEMPS; i++) mpz_init(t->z[i]);
  tarn_defer(cx, clear, t);
  return t;
}
static void end(tarn_ctx *cx, temps *t) {
  tarn_keep(cx, t);
  clear(t);
}

static mpz_srcptr view(mpz_t z, const big *a) {
  static const mp_limb_t zero[1];
  return mpz_roinit_n(z, a->n ? (const mp_limb_t *)a->p : zero, a->n);
}
static bool keep(tarn_ctx *cx, mpz_srcptr z, big *out) {
  size_t n = mpz_size(z);
  if (n > BIG_LIMBS) return false;
  *out = (big){n ? tarn_copy(cx, mpz_limbs_read(z), n * sizeof(uint64_t)) : NULL,
               mpz_sgn(z) < 0 ? -(int32_t)n : (int32_t)n};
  return true;
}

big big_from(tarn_ctx *cx, int64_t i) {
  uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
  if (!i) return (big){0};
  return (big){tarn_copy(cx, &size, sizeof size), i < 0 ? -1 : 1};
}
bool big_parse(tarn_ctx *cx, const char *s, size_t n, big *out) {
  size_t sign = n && (*s == '-' || *s == '+');
  if (n == sign || n > 19 * BIG_LIMBS || strspn(s + sign, "0123456789") < n - sign) return false;
  temps *t = begin(cx);
  const char *copy = tarn_strndup(cx, s + (*s == '+'), n - (*s == '+'));
  bool ok = !mpz_set_str(t->z[0], copy, 10) && keep(cx, t->z[0], out);
  end(cx, t);
  return ok;
}
bool big_fits(const big *a, int64_t *out) {
  uint64_t size = a->n ? a->p[0] : 0;
  if (a->n > 1 || a->n < -1 || size > INT64_MAX) return false;
  *out = a->n < 0 ? -(int64_t)size : (int64_t)size;
  return true;
}
int big_compare(const big *a, const big *b) {
  mpz_t x, y;
  int c = mpz_cmp(view(x, a), view(y, b));
  return c < 0 ? -1 : c > 0;
}
void big_print(tarn_buf *b, const big *a) {
  mpz_t x;
  size_t most = mpz_sizeinbase(view(x, a), 10) + 2;
  char *text = tarn_new(b->cx, most);
  tarn_buf_str(b, mpz_get_str(text, 10, view(x, a)));
}

static bool shift(char op, mpz_t to, mpz_srcptr a, const big *by) {
  int64_t n;
  if (!big_fits(by, &n) || n < 0 || n > 64 * BIG_LIMBS) return false;
  if (op == '<') mpz_mul_2exp(to, a, (mp_bitcnt_t)n);
  else mpz_fdiv_q_2exp(to, a, (mp_bitcnt_t)n);
  return true;
}
static bool compute(char op, mpz_t to, mpz_srcptr a, mpz_srcptr b) {
  if ((op == '/' || op == '%') && !mpz_sgn(b)) return false;
  switch (op) {
  case '+': mpz_add(to, a, b); break;
  case '-': mpz_sub(to, a, b); break;
  case '*': mpz_mul(to, a, b); break;
  case '/': mpz_tdiv_q(to, a, b); break;
  case '%': mpz_tdiv_r(to, a, b); break;
  case '&': mpz_and(to, a, b); break;
  case '|': mpz_ior(to, a, b); break;
  case '^': mpz_xor(to, a, b); break;
  default: return false;
  }
  return true;
}
bool big_apply(tarn_ctx *cx, char op, const big *a, const big *b, big *out) {
  mpz_t x, y;
  temps *t = begin(cx);
  bool shifts = op == '<' || op == '>';
  bool ok =
      shifts ? shift(op, t->z[0], view(x, a), b) : compute(op, t->z[0], view(x, a), view(y, b));
  ok = ok && keep(cx, t->z[0], out);
  end(cx, t);
  return ok;
}

/* ---- fractions ---- */

/* What z[0] / z[1] is. */
static bool reduce(tarn_ctx *cx, temps *t, bigrat *out) {
  if (!mpz_sgn(t->z[1])) return false;
  mpz_gcd(t->z[2], t->z[0], t->z[1]);
  if (mpz_sgn(t->z[1]) < 0) mpz_neg(t->z[2], t->z[2]);
  mpz_divexact(t->z[0], t->z[0], t->z[2]);
  mpz_divexact(t->z[1], t->z[1], t->z[2]);
  return keep(cx, t->z[0], &out->num) && keep(cx, t->z[1], &out->den);
}
bool bigrat_make(tarn_ctx *cx, const big *num, const big *den, bigrat *out) {
  mpz_t x, y;
  temps *t = begin(cx);
  mpz_set(t->z[0], view(x, num));
  mpz_set(t->z[1], view(y, den));
  bool ok = reduce(cx, t, out);
  end(cx, t);
  return ok;
}
int bigrat_compare(const bigrat *a, const bigrat *b) {
  mpz_t x, y, l, r;
  mpz_inits(l, r, NULL);
  mpz_mul(l, view(x, &a->num), view(y, &b->den));
  mpz_mul(r, view(x, &b->num), view(y, &a->den));
  int c = mpz_cmp(l, r);
  mpz_clears(l, r, NULL);
  return c < 0 ? -1 : c > 0;
}
static bool power(tarn_ctx *cx, temps *t, const bigrat *a, const bigrat *b, bigrat *out) {
  int64_t n, one;
  mpz_t x;
  if (!big_fits(&b->num, &n) || !big_fits(&b->den, &one) || one != 1 || n < -1000 || n > 1000)
    return false;
  uint64_t times = (uint64_t)(n < 0 ? -n : n);
  uint64_t limbs = (uint64_t)(labs(a->num.n) + labs(a->den.n));
  if (limbs * times > BIG_LIMBS) return false;
  mpz_pow_ui(t->z[n < 0], view(x, &a->num), times);
  mpz_pow_ui(t->z[n >= 0], view(x, &a->den), times);
  return reduce(cx, t, out);
}
static bool arithmetic(tarn_ctx *cx, temps *t, char op, const bigrat *a, const bigrat *b,
                       bigrat *out) {
  mpz_t an, ad, bn, bd;
  view(an, &a->num), view(ad, &a->den), view(bn, &b->num), view(bd, &b->den);
  if (op == '*' || op == '/') {
    mpz_mul(t->z[0], an, op == '*' ? bn : bd);
    mpz_mul(t->z[1], ad, op == '*' ? bd : bn);
  } else {
    mpz_mul(t->z[0], an, bd);
    mpz_mul(t->z[1], bn, ad);
    if (op == '+') mpz_add(t->z[0], t->z[0], t->z[1]);
    else mpz_sub(t->z[0], t->z[0], t->z[1]);
    mpz_mul(t->z[1], ad, bd);
  }
  return reduce(cx, t, out);
}
bool bigrat_apply(tarn_ctx *cx, char op, const bigrat *a, const bigrat *b, bigrat *out) {
  temps *t = begin(cx);
  bool ok = op == 'p' ? power(cx, t, a, b, out) : arithmetic(cx, t, op, a, b, out);
  end(cx, t);
  return ok;
}
bigrat bigrat_round(tarn_ctx *cx, char how, const bigrat *a) {
  mpz_t n, d;
  temps *t = begin(cx);
  bigrat out = {.den = big_from(cx, 1)};
  view(n, &a->num), view(d, &a->den);
  if (how == 'f') mpz_fdiv_q(t->z[0], n, d);
  else if (how == 'c') mpz_cdiv_q(t->z[0], n, d);
  else { /* (2 |n| + d) / (2 d), with the sign of n */ mpz_abs(t->z[0], n);
    mpz_mul_2exp(t->z[0], t->z[0], 1);
    mpz_add(t->z[0], t->z[0], d);
    mpz_mul_2exp(t->z[1], d, 1);
    mpz_fdiv_q(t->z[0], t->z[0], t->z[1]);
    if (mpz_sgn(n) < 0) mpz_neg(t->z[0], t->z[0]);
  }
  keep(cx, t->z[0], &out.num);
  end(cx, t);
  return out;
}
bigrat bigrat_negate(tarn_ctx *cx, const bigrat *a) {
  (void)cx;
  return (bigrat){{a->num.p, -a->num.n}, a->den};
}
double bigrat_double(const bigrat *a) {
  mpz_t n, d;
  mpq_t q;
  mpq_init(q);
  mpz_set(mpq_numref(q), view(n, &a->num));
  mpz_set(mpq_denref(q), view(d, &a->den));
  double x = mpq_get_d(q);
  mpq_clear(q);
  return x;
}
