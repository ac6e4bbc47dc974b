/* The functions of egglog's primitive sorts (egg_prim.def). */
#include "lab/egg.h"
#include "lab/text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */
static bool divides(egg_values a) {
  return a[1]->i != 0 && !(a[0]->i == INT64_MIN && a[1]->i == -1);
}
static bool shifts(egg_values a) { return a[1]->i >= 0 && a[1]->i < 64; }
static bool real_is(double f, egg_value *out) {
  *out = (egg_value){.sort = SORT_F64, .f = f};
  return true;
}
static bool bool_is(bool b, egg_value *out) {
  *out = (egg_value){.sort = SORT_BOOL, .i = b};
  return true;
}
static bool big_is(tarn_egg *E, big x, egg_value *out) {
  *out = (egg_value){.sort = SORT_BIGINT, .q = {x, big_from(E->cx, 1)}};
  return true;
}
static bool big_with(tarn_egg *E, char op, egg_values a, big b, egg_value *out) {
  return big_is(E, b, out) && big_apply(E->cx, op, &a[0]->q.num, &b, &out->q.num);
}
static bool big_of(tarn_egg *E, char op, egg_values a, egg_value *out) {
  return big_with(E, op, a, a[1]->q.num, out);
}
static bool rat_is(bigrat q, egg_value *out) {
  *out = (egg_value){.sort = SORT_BIGRAT, .q = q};
  return true;
}
static bool rat_of(tarn_egg *E, char op, egg_values a, egg_value *out) {
  return rat_is(a[0]->q, out) && bigrat_apply(E->cx, op, &a[0]->q, &a[1]->q, &out->q);
}

/* ---- comparisons: -1 0 1, or 2 where one is no number ---- */
static int compare(const tarn_egg *E, egg_values a) {
  switch (E->sort.p[a[0]->sort].base) {
  case EGG_I64: return a[0]->i < a[1]->i ? -1 : a[0]->i > a[1]->i;
  case EGG_F64:
    if (isnan(a[0]->f) || isnan(a[1]->f)) return 2;
    return a[0]->f < a[1]->f ? -1 : a[0]->f > a[1]->f;
  case EGG_BIGINT: return big_compare(&a[0]->q.num, &a[1]->q.num);
  default: return bigrat_compare(&a[0]->q, &a[1]->q);
  }
}
/* Of two that are no numbers nothing holds. */
static bool is_upward(int c) { return c == 0 || c == 1; }
EGG_PRIM(less) { return egg_unit_if(compare(E, a) == -1, out); }
EGG_PRIM(greater) { return egg_unit_if(compare(E, a) == 1, out); }
EGG_PRIM(at_most) { return egg_unit_if(compare(E, a) <= 0, out); }
EGG_PRIM(at_least) { return egg_unit_if(is_upward(compare(E, a)), out); }
EGG_PRIM(is_less) { return bool_is(compare(E, a) == -1, out); }
EGG_PRIM(is_greater) { return bool_is(compare(E, a) == 1, out); }
EGG_PRIM(is_at_most) { return bool_is(compare(E, a) <= 0, out); }
EGG_PRIM(is_at_least) { return bool_is(is_upward(compare(E, a)), out); }
EGG_PRIM(is_equal) { return bool_is(compare(E, a) == 0, out); }

/* ---- strings ---- */
static bool text_is(const tarn_buf *b, egg_value *out) {
  *out = (egg_value){.sort = SORT_STRING, .s = b->p ? b->p : "", .n = (uint32_t)b->n};
  return b->n < 1 << 24;
}
EGG_PRIM(s_join) {
  tarn_buf b = {.cx = E->cx};
  for (uint32_t i = 0; i < n; i++) tarn_buf_add(&b, a[i]->s, a[i]->n);
  return text_is(&b, out);
}
EGG_PRIM(s_replace) {
  tarn_buf b = {.cx = E->cx};
  text_replace(&b, a[0]->s, a[0]->n, a[1]->s, a[1]->n, a[2]->s, a[2]->n);
  return text_is(&b, out);
}
EGG_PRIM(to_string) {
  tarn_buf b = {.cx = E->cx};
  if (a[0]->sort == SORT_BIGINT) big_print(&b, &a[0]->q.num);
  else egg_print_value(E, &b, egg_number(E, a[0]));
  return text_is(&b, out);
}

/* ---- table ---- */
#define PRIM(name, sorts, id, ...)                                                                 \
  EGG_PRIM(id) { return __VA_ARGS__; }
#define ROW(name, sorts, id)
#include "lab/egg_prim.def"
static const egg_prim prims[] = {
#define PRIM(name, sorts, id, ...) {name, sorts, id},
#define ROW(name, sorts, id)       {name, sorts, id},
#include "lab/egg_prim.def"
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
