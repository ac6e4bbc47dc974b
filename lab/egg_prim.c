/* The functions of egglog's primitive sorts. */
#include "lab/egg.h"
#include "lab/text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef const egg_value *const *values;
#define PRIM(name) static bool name(tarn_egg *E, values a, uint32_t n, egg_value *out)
#define UNUSED     ((void)E, (void)a, (void)n)

/* ---- whole numbers of 64 bits: what does not fit has no value ---- */
PRIM(i_add) {
  int64_t r;
  UNUSED;
  return !__builtin_add_overflow(a[0]->i, a[1]->i, &r) && egg_int_is(r, out);
}
PRIM(i_sub) {
  int64_t r;
  UNUSED;
  return !__builtin_sub_overflow(a[0]->i, a[1]->i, &r) && egg_int_is(r, out);
}
PRIM(i_mul) {
  int64_t r;
  UNUSED;
  return !__builtin_mul_overflow(a[0]->i, a[1]->i, &r) && egg_int_is(r, out);
}
static bool divides(values a) { return a[1]->i != 0 && !(a[0]->i == INT64_MIN && a[1]->i == -1); }
PRIM(i_div) { return UNUSED, divides(a) && egg_int_is(a[0]->i / a[1]->i, out); }
PRIM(i_rem) { return UNUSED, divides(a) && egg_int_is(a[0]->i % a[1]->i, out); }
PRIM(i_and) { return UNUSED, egg_int_is(a[0]->i & a[1]->i, out); }
PRIM(i_or) { return UNUSED, egg_int_is(a[0]->i | a[1]->i, out); }
PRIM(i_xor) { return UNUSED, egg_int_is(a[0]->i ^ a[1]->i, out); }
PRIM(i_not) { return UNUSED, egg_int_is(~a[0]->i, out); }
PRIM(i_shl) {
  UNUSED;
  return a[1]->i >= 0 && a[1]->i < 64 && egg_int_is((int64_t)((uint64_t)a[0]->i << a[1]->i), out);
}
PRIM(i_shr) { return UNUSED, a[1]->i >= 0 && a[1]->i < 64 && egg_int_is(a[0]->i >> a[1]->i, out); }
PRIM(i_abs) {
  UNUSED;
  return a[0]->i != INT64_MIN && egg_int_is(a[0]->i < 0 ? -a[0]->i : a[0]->i, out);
}
PRIM(i_log2) {
  UNUSED;
  return a[0]->i > 0 && egg_int_is(63 - __builtin_clzll((unsigned long long)a[0]->i), out);
}
PRIM(i_min) { return UNUSED, egg_int_is(tarn_min(a[0]->i, a[1]->i), out); }
PRIM(i_max) { return UNUSED, egg_int_is(tarn_max(a[0]->i, a[1]->i), out); }

/* ---- reals ---- */
static bool real_is(double f, egg_value *out) {
  *out = (egg_value){.sort = SORT_F64, .f = f};
  return true;
}
PRIM(f_add) { return UNUSED, real_is(a[0]->f + a[1]->f, out); }
PRIM(f_sub) { return UNUSED, real_is(a[0]->f - a[1]->f, out); }
PRIM(f_mul) { return UNUSED, real_is(a[0]->f * a[1]->f, out); }
PRIM(f_div) { return UNUSED, a[1]->f != 0 && real_is(a[0]->f / a[1]->f, out); }
PRIM(f_rem) { return UNUSED, a[1]->f != 0 && real_is(fmod(a[0]->f, a[1]->f), out); }
PRIM(f_pow) { return UNUSED, real_is(pow(a[0]->f, a[1]->f), out); }
PRIM(f_neg) { return UNUSED, real_is(-a[0]->f, out); }
PRIM(f_abs) { return UNUSED, real_is(fabs(a[0]->f), out); }
PRIM(f_min) { return UNUSED, real_is(fmin(a[0]->f, a[1]->f), out); }
PRIM(f_max) { return UNUSED, real_is(fmax(a[0]->f, a[1]->f), out); }
PRIM(f_of_i) { return UNUSED, real_is((double)a[0]->i, out); }
PRIM(f_to_i) { return UNUSED, fabs(a[0]->f) < 0x1p63 && egg_int_is((int64_t)a[0]->f, out); }

/* ---- integers and fractions of any size ---- */
static bool big_of(tarn_egg *E, char op, values a, egg_value *out) {
  *out = (egg_value){.sort = SORT_BIGINT, .q.den = big_from(E->cx, 1)};
  return big_apply(E->cx, op, &a[0]->q.num, &a[1]->q.num, &out->q.num);
}
static bool big_is(tarn_egg *E, big x, egg_value *out) {
  *out = (egg_value){.sort = SORT_BIGINT, .q = {x, big_from(E->cx, 1)}};
  return true;
}
PRIM(z_add) { return UNUSED, big_of(E, '+', a, out); }
PRIM(z_sub) { return UNUSED, big_of(E, '-', a, out); }
PRIM(z_mul) { return UNUSED, big_of(E, '*', a, out); }
PRIM(z_div) { return UNUSED, big_of(E, '/', a, out); }
PRIM(z_rem) { return UNUSED, big_of(E, '%', a, out); }
PRIM(z_and) { return UNUSED, big_of(E, '&', a, out); }
PRIM(z_or) { return UNUSED, big_of(E, '|', a, out); }
PRIM(z_xor) { return UNUSED, big_of(E, '^', a, out); }
static bool shifted(tarn_egg *E, char op, values a, egg_value *out) {
  big by = big_from(E->cx, a[1]->i);
  *out = (egg_value){.sort = SORT_BIGINT, .q.den = big_from(E->cx, 1)};
  return big_apply(E->cx, op, &a[0]->q.num, &by, &out->q.num);
}
PRIM(z_shl) { return UNUSED, shifted(E, '<', a, out); }
PRIM(z_shr) { return UNUSED, shifted(E, '>', a, out); }
PRIM(z_of_i) { return UNUSED, big_is(E, big_from(E->cx, a[0]->i), out); }
PRIM(z_of_s) {
  big x;
  UNUSED;
  return big_parse(E->cx, a[0]->s, a[0]->n, &x) && big_is(E, x, out);
}
static bool rat_of(tarn_egg *E, char op, values a, egg_value *out) {
  *out = (egg_value){.sort = SORT_BIGRAT};
  return bigrat_apply(E->cx, op, &a[0]->q, &a[1]->q, &out->q);
}
static bool rat_is(bigrat q, egg_value *out) {
  *out = (egg_value){.sort = SORT_BIGRAT, .q = q};
  return true;
}
PRIM(q_add) { return UNUSED, rat_of(E, '+', a, out); }
PRIM(q_sub) { return UNUSED, rat_of(E, '-', a, out); }
PRIM(q_mul) { return UNUSED, rat_of(E, '*', a, out); }
PRIM(q_div) { return UNUSED, rat_of(E, '/', a, out); }
PRIM(q_pow) { return UNUSED, rat_of(E, 'p', a, out); }
PRIM(q_neg) { return UNUSED, rat_is(bigrat_negate(E->cx, &a[0]->q), out); }
PRIM(q_abs) {
  UNUSED;
  return rat_is(a[0]->q.num.n < 0 ? bigrat_negate(E->cx, &a[0]->q) : a[0]->q, out);
}
PRIM(q_floor) { return UNUSED, rat_is(bigrat_round(E->cx, 'f', &a[0]->q), out); }
PRIM(q_ceil) { return UNUSED, rat_is(bigrat_round(E->cx, 'c', &a[0]->q), out); }
PRIM(q_round) { return UNUSED, rat_is(bigrat_round(E->cx, 'r', &a[0]->q), out); }
PRIM(q_num) { return UNUSED, big_is(E, a[0]->q.num, out); }
PRIM(q_den) { return UNUSED, big_is(E, a[0]->q.den, out); }
PRIM(q_real) { return UNUSED, real_is(bigrat_double(&a[0]->q), out); }
PRIM(q_make) {
  UNUSED;
  *out = (egg_value){.sort = SORT_BIGRAT};
  return bigrat_make(E->cx, &a[0]->q.num, &a[1]->q.num, &out->q);
}

/* ---- comparisons: -1 0 1, or 2 where one is no number ---- */
static int compare(const tarn_egg *E, values a) {
  switch (E->sort.p[a[0]->sort].base) {
  case EGG_I64: return a[0]->i < a[1]->i ? -1 : a[0]->i > a[1]->i;
  case EGG_F64:
    if (isnan(a[0]->f) || isnan(a[1]->f)) return 2;
    return a[0]->f < a[1]->f ? -1 : a[0]->f > a[1]->f;
  case EGG_BIGINT: return big_compare(&a[0]->q.num, &a[1]->q.num);
  default: return bigrat_compare(&a[0]->q, &a[1]->q);
  }
}
static bool bool_is(bool b, egg_value *out) {
  *out = (egg_value){.sort = SORT_BOOL, .i = b};
  return true;
}
PRIM(less) { return UNUSED, egg_unit_if(compare(E, a) == -1, out); }
PRIM(greater) { return UNUSED, egg_unit_if(compare(E, a) == 1, out); }
PRIM(at_most) { return UNUSED, egg_unit_if(abs(compare(E, a)) <= 1 && compare(E, a) <= 0, out); }
PRIM(at_least) {
  int c = compare(E, a);
  UNUSED;
  return egg_unit_if(c == 0 || c == 1, out);
}
PRIM(is_less) { return UNUSED, bool_is(compare(E, a) == -1, out); }
PRIM(is_greater) { return UNUSED, bool_is(compare(E, a) == 1, out); }
PRIM(is_at_most) { return UNUSED, bool_is(compare(E, a) <= 0, out); }
PRIM(is_at_least) {
  int c = compare(E, a);
  UNUSED;
  return bool_is(c == 0 || c == 1, out);
}
PRIM(is_equal) { return UNUSED, bool_is(compare(E, a) == 0, out); }
PRIM(big_min) {
  UNUSED;
  *out = *a[compare(E, a) == 1];
  return true;
}
PRIM(big_max) {
  UNUSED;
  *out = *a[compare(E, a) == -1];
  return true;
}

/* ---- truth values and strings ---- */
PRIM(b_not) { return UNUSED, bool_is(!a[0]->i, out); }
PRIM(b_and) { return UNUSED, bool_is(a[0]->i && a[1]->i, out); }
PRIM(b_or) { return UNUSED, bool_is(a[0]->i || a[1]->i, out); }
PRIM(b_xor) { return UNUSED, bool_is(a[0]->i != a[1]->i, out); }
PRIM(b_implies) { return UNUSED, bool_is(!a[0]->i || a[1]->i, out); }

static bool text_is(const tarn_buf *b, egg_value *out) {
  *out = (egg_value){.sort = SORT_STRING, .s = b->p ? b->p : "", .n = (uint32_t)b->n};
  return b->n < 1 << 24;
}
PRIM(s_join) {
  tarn_buf b = {.cx = E->cx};
  for (uint32_t i = 0; i < n; i++) tarn_buf_add(&b, a[i]->s, a[i]->n);
  return text_is(&b, out);
}
PRIM(s_count) {
  UNUSED;
  return egg_int_is(text_count(a[0]->s, a[0]->n, a[1]->s, a[1]->n), out);
}
PRIM(s_replace) {
  tarn_buf b = {.cx = E->cx};
  UNUSED;
  text_replace(&b, a[0]->s, a[0]->n, a[1]->s, a[1]->n, a[2]->s, a[2]->n);
  return text_is(&b, out);
}
PRIM(to_string) {
  tarn_buf b = {.cx = E->cx};
  UNUSED;
  if (a[0]->sort == SORT_BIGINT) big_print(&b, &a[0]->q.num);
  else egg_print_value(E, &b, egg_number(E, a[0]));
  return text_is(&b, out);
}

/* ---- table ---- */
static const egg_prim prims[] = {
    {"+", "ii:i", i_add},
    {"-", "ii:i", i_sub},
    {"*", "ii:i", i_mul},
    {"/", "ii:i", i_div},
    {"%", "ii:i", i_rem},
    {"&", "ii:i", i_and},
    {"|", "ii:i", i_or},
    {"^", "ii:i", i_xor},
    {"not-i64", "i:i", i_not},
    {"<<", "ii:i", i_shl},
    {">>", "ii:i", i_shr},
    {"abs", "i:i", i_abs},
    {"log2", "i:i", i_log2},
    {"min", "ii:i", i_min},
    {"max", "ii:i", i_max},
    {"to-f64", "i:f", f_of_i},
    {"+", "ff:f", f_add},
    {"-", "ff:f", f_sub},
    {"*", "ff:f", f_mul},
    {"/", "ff:f", f_div},
    {"%", "ff:f", f_rem},
    {"^", "ff:f", f_pow},
    {"neg", "f:f", f_neg},
    {"abs", "f:f", f_abs},
    {"min", "ff:f", f_min},
    {"max", "ff:f", f_max},
    {"to-i64", "f:i", f_to_i},
    {"bigint", "i:z", z_of_i},
    {"from-string", "s:z", z_of_s},
    {"+", "zz:z", z_add},
    {"-", "zz:z", z_sub},
    {"*", "zz:z", z_mul},
    {"/", "zz:z", z_div},
    {"%", "zz:z", z_rem},
    {"&", "zz:z", z_and},
    {"|", "zz:z", z_or},
    {"^", "zz:z", z_xor},
    {"<<", "zi:z", z_shl},
    {">>", "zi:z", z_shr},
    {"min", "zz:z", big_min},
    {"max", "zz:z", big_max},
    {"bigrat", "zz:q", q_make},
    {"+", "qq:q", q_add},
    {"-", "qq:q", q_sub},
    {"*", "qq:q", q_mul},
    {"/", "qq:q", q_div},
    {"pow", "qq:q", q_pow},
    {"neg", "q:q", q_neg},
    {"abs", "q:q", q_abs},
    {"floor", "q:q", q_floor},
    {"ceil", "q:q", q_ceil},
    {"round", "q:q", q_round},
    {"numer", "q:z", q_num},
    {"denom", "q:z", q_den},
    {"to-f64", "q:f", q_real},
    {"min", "qq:q", big_min},
    {"max", "qq:q", big_max},
#define ORDER(l)                                                                                   \
  {"<", l l ":u", less}, {">", l l ":u", greater}, {"<=", l l ":u", at_most},                      \
      {">=", l l ":u", at_least}, {"bool-<", l l ":b", is_less}, {"bool->", l l ":b", is_greater}, \
      {"bool-<=", l l ":b", is_at_most}, {"bool->=", l l ":b", is_at_least}, {                     \
    "bool-=", l l ":b", is_equal                                                                   \
  }
    ORDER("i"),
    ORDER("f"),
    ORDER("z"),
    ORDER("q"),
    {"not", "b:b", b_not},
    {"and", "bb:b", b_and},
    {"or", "bb:b", b_or},
    {"xor", "bb:b", b_xor},
    {"=>", "bb:b", b_implies},
    {"+", "s*:s", s_join},
    {"replace", "sss:s", s_replace},
    {"count-matches", "ss:i", s_count},
    {"to-string", "i:s", to_string},
    {"to-string", "f:s", to_string},
    {"to-string", "z:s", to_string},
};

extern const egg_prim egg_containers[];
extern const uint32_t egg_n_containers;

/* ---- finding one ---- */
static const egg_prim *at(uint32_t i) {
  uint32_t n = sizeof prims / sizeof *prims;
  return i < n ? &prims[i] : i - n < egg_n_containers ? &egg_containers[i - n] : NULL;
}
bool egg_is_primitive(const char *name) {
  for (uint32_t i = 0; at(i); i++)
    if (!strcmp(at(i)->name, name)) return true;
  return false;
}

static const char letters[] = "?ifbsuzqSVMP"; /* by base */
typedef struct trying {
  const tarn_egg *E;
  uint32_t cls, elem, to; /* the container's sort, and what is in it; NONE: not known */
} trying;
static bool agree(uint32_t *known, uint32_t sort) {
  if (*known == TARN_NONE) *known = sort;
  return *known == sort;
}
static bool takes(trying *t, char letter, uint32_t sort) {
  if (letter == 'e' || letter == 'k') return agree(&t->elem, sort);
  if (letter == 'v') return agree(&t->to, sort);
  const egg_sort *s = &t->E->sort.p[sort];
  if (s->base == EGG_EQ || letters[s->base] != letter) return false;
  if (s->base < EGG_SET) return true;
  return agree(&t->cls, sort) && agree(&t->elem, s->elem) &&
         (s->base != EGG_MAP || agree(&t->to, s->to));
}
/* The one container of this kind that holds what the arguments are. */
static uint32_t container(const trying *t, char letter, uint32_t wanted) {
  uint32_t found = TARN_NONE;
  if (t->cls != TARN_NONE) return t->cls;
  for (uint32_t i = 0; i < t->E->sort.n; i++) {
    const egg_sort *s = &t->E->sort.p[i];
    if (s->base == EGG_EQ || letters[s->base] != letter) continue;
    if ((t->elem != TARN_NONE && t->elem != s->elem) || (wanted != TARN_NONE && wanted != i))
      continue;
    if (found != TARN_NONE) return TARN_NONE;
    found = i;
  }
  return found;
}
static uint32_t result_of(const trying *t, char letter, uint32_t wanted) {
  if (letter == 'e' || letter == 'k') return t->elem;
  if (letter == 'v') return t->to;
  uint32_t base = (uint32_t)(strchr(letters, letter) - letters);
  return base < EGG_SET ? base - EGG_I64 : container(t, letter, wanted);
}
static bool fits(trying *t, const egg_prim *p, const uint32_t *sort, uint32_t n) {
  const char *s = p->sig;
  for (uint32_t i = 0; i < n; i++) {
    if (*s == ':' || !takes(t, *s, sort[i])) return false;
    if (s[1] != '*') s++;
  }
  return *s == ':' || s[1] == '*';
}
const egg_prim *egg_primitive(const tarn_egg *E, const char *name, const uint32_t *sort, uint32_t n,
                              uint32_t wanted, uint32_t *result) {
  for (uint32_t i = 0; i < n; i++)
    if (sort[i] == TARN_NONE) return NULL;
  for (uint32_t i = 0; at(i); i++) {
    trying t = {E, TARN_NONE, TARN_NONE, TARN_NONE};
    if (strcmp(at(i)->name, name) || !fits(&t, at(i), sort, n)) continue;
    *result = result_of(&t, strchr(at(i)->sig, ':')[1], wanted);
    if (*result != TARN_NONE) return at(i);
  }
  return NULL;
}

/* The arguments are copied: the table of values may move while a result is made. */
bool egg_apply_primitive(tarn_egg *E, const egg_prim *p, const uint32_t *arg, uint32_t n,
                         egg_value *out) {
  egg_value few[EGG_FEW];
  const egg_value *few_at[EGG_FEW];
  bool many = n > EGG_FEW;
  egg_value *copy = many ? TARN_ARRAY(E->cx, egg_value, n) : few;
  const egg_value **a = many ? TARN_ARRAY(E->cx, const egg_value *, n) : few_at;
  for (uint32_t i = 0; i < n; i++) {
    copy[i] = E->value.p[arg[i]];
    a[i] = &copy[i];
  }
  return p->fn(E, a, n, out);
}
