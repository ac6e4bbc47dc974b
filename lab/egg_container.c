/* Sets, vectors, multisets and maps of primitive values, as egglog has them. */
#include "lab/egg.h"
#include <string.h>

/* out->sort is what the caller knows it to be. */
static bool made(tarn_egg *E, const uint32_t *elem, uint32_t n, egg_value *out) {
  uint32_t sort = out->sort;
  *out = (egg_value){.sort = sort, .n = n, .elem = tarn_copy(E->cx, elem, n * sizeof *elem)};
  return n < 1 << 20;
}
/* How elements are ordered: whole numbers as they are, others as they were met. */
static bool before(const tarn_egg *E, uint32_t x, uint32_t y) {
  const egg_value *a = &E->value.p[x], *b = &E->value.p[y];
  return a->sort == SORT_I64 && b->sort == SORT_I64 ? a->i < b->i : x < y;
}
/* Where x is in it, or would be. */
static uint32_t place(const tarn_egg *E, const egg_value *c, uint32_t x, uint32_t step) {
  uint32_t i = 0;
  while (i < c->n && before(E, c->elem[i], x)) i += step;
  return i;
}
static bool has(const tarn_egg *E, const egg_value *c, uint32_t x, uint32_t step) {
  uint32_t i = place(E, c, x, step);
  return i < c->n && c->elem[i] == x;
}
/* n elements of c from at on; elem is NULL where there are none. */
static void copy(uint32_t *to, const egg_value *c, uint32_t at, uint32_t n) {
  if (n) memcpy(to, c->elem + at, n * sizeof *to);
}
static bool cut(tarn_egg *E, const egg_value *c, uint32_t at, uint32_t n, egg_value *out) {
  uint32_t *p = TARN_ARRAY(E->cx, uint32_t, c->n + 1);
  copy(p, c, 0, at);
  copy(p + at, c, at + n, c->n - at - n);
  return made(E, p, c->n - n, out);
}
static bool put(tarn_egg *E, const egg_value *c, uint32_t at, const uint32_t *x, uint32_t n,
                egg_value *out) {
  uint32_t *p = TARN_ARRAY(E->cx, uint32_t, c->n + n + 1);
  copy(p, c, 0, at);
  if (n) memcpy(p + at, x, n * sizeof *x);
  copy(p + at + n, c, at, c->n - at);
  return made(E, p, c->n + n, out);
}
static bool one_by_one(tarn_egg *E, egg_values a, uint32_t n, bool once, egg_value *out) {
  egg_value c = {.sort = out->sort};
  for (uint32_t i = 0; i < n; i++) {
    uint32_t x = egg_number(E, a[i]);
    egg_value next = {.sort = out->sort};
    if (once && has(E, &c, x, 1)) continue;
    if (!put(E, &c, place(E, &c, x, 1), &x, 1, &next)) return false;
    c = next;
  }
  return made(E, c.elem, c.n, out);
}
/* Of two ascending ones: what is in both ('b'), in the first alone ('d'), in either ('u'), or all
 * of both ('s'). */
static bool merged(tarn_egg *E, char how, egg_values a, egg_value *out) {
  uint32_t *p = TARN_ARRAY(E->cx, uint32_t, a[0]->n + a[1]->n + 1), n = 0, i = 0, k = 0;
  while (i < a[0]->n || k < a[1]->n) {
    bool left = i < a[0]->n && (k == a[1]->n || !before(E, a[1]->elem[k], a[0]->elem[i]));
    bool both = left && k < a[1]->n && a[0]->elem[i] == a[1]->elem[k];
    uint32_t x = left ? a[0]->elem[i] : a[1]->elem[k];
    if (how == 's' || how == 'u' || (how == 'b' ? both : left && !both)) p[n++] = x;
    i += left, k += !left || (both && how != 's');
  }
  return made(E, p, n, out);
}

EGG_PRIM(set_of) { return one_by_one(E, a, n, true, out); }
EGG_PRIM(multiset_of) { return one_by_one(E, a, n, false, out); }
EGG_PRIM(set_insert) {
  uint32_t x = egg_number(E, a[1]);
  if (has(E, a[0], x, 1)) return made(E, a[0]->elem, a[0]->n, out);
  return put(E, a[0], place(E, a[0], x, 1), &x, 1, out);
}
EGG_PRIM(multiset_insert) {
  uint32_t x = egg_number(E, a[1]);
  return put(E, a[0], place(E, a[0], x, 1), &x, 1, out);
}
EGG_PRIM(set_remove) {
  uint32_t x = egg_number(E, a[1]);
  return cut(E, a[0], place(E, a[0], x, 1), has(E, a[0], x, 1), out);
}
EGG_PRIM(set_union) { return merged(E, 'u', a, out); }
EGG_PRIM(set_both) { return merged(E, 'b', a, out); }
EGG_PRIM(set_less) { return merged(E, 'd', a, out); }
EGG_PRIM(multiset_sum) { return merged(E, 's', a, out); }
/* What is not in it cannot be taken out. */
EGG_PRIM(multiset_less) { return merged(E, 'd', a, out) && out->n + a[1]->n == a[0]->n; }
EGG_PRIM(multiset_remove) {
  uint32_t x = egg_number(E, a[1]);
  return has(E, a[0], x, 1) && cut(E, a[0], place(E, a[0], x, 1), 1, out);
}
static uint32_t times(const tarn_egg *E, const egg_value *c, uint32_t x) {
  uint32_t from = place(E, c, x, 1), i = from;
  while (i < c->n && c->elem[i] == x) i++;
  return i - from;
}
EGG_PRIM(multiset_count) { return egg_int_is(times(E, a[0], egg_number(E, a[1])), out); }
EGG_PRIM(multiset_single) {
  egg_value c = {.sort = out->sort};
  uint32_t x = egg_number(E, a[0]);
  if (a[1]->i < 0 || a[1]->i >= 1 << 20) return false;
  uint32_t *p = TARN_ARRAY(E->cx, uint32_t, (size_t)a[1]->i + 1);
  while (c.n < a[1]->i) p[c.n++] = x;
  return made(E, p, c.n, out);
}
EGG_PRIM(multiset_once) {
  egg_value c = {.sort = out->sort};
  uint32_t *p = TARN_ARRAY(E->cx, uint32_t, a[0]->n + 1);
  for (uint32_t i = 0; i < a[0]->n; i++)
    if (!i || a[0]->elem[i] != a[0]->elem[i - 1]) p[c.n++] = a[0]->elem[i];
  return made(E, p, c.n, out);
}
EGG_PRIM(multiset_pick) { return a[0]->n && egg_is(&E->value.p[a[0]->elem[0]], out); }
/* What is most often in it; of several, the last. */
EGG_PRIM(multiset_pick_max) {
  uint32_t best = 0, most = 0;
  for (uint32_t i = 0, k; i < a[0]->n; i += k) {
    k = times(E, a[0], a[0]->elem[i]);
    if (k >= most) most = k, best = i;
  }
  if (most) *out = E->value.p[a[0]->elem[best]];
  return most > 0;
}
/* Of multisets in a multiset. */
EGG_PRIM(multiset_sum_all) {
  egg_value all = {.sort = out->sort};
  if (E->sort.p[out->sort].base != EGG_MULTISET) return false;
  for (uint32_t i = 0; i < a[0]->n; i++) {
    egg_value one = E->value.p[a[0]->elem[i]], next = {.sort = out->sort};
    if (!merged(E, 's', (const egg_value *[]){&all, &one}, &next)) return false;
    all = next;
  }
  return made(E, all.elem, all.n, out);
}
#define SWAPPED(name, of)                                                                          \
  EGG_PRIM(name) { return of(E, (const egg_value *[]){a[1], a[0]}, n, out); }

EGG_PRIM(any_has) { return egg_unit_if(has(E, a[0], egg_number(E, a[1]), 1), out); }
EGG_PRIM(any_lacks) { return egg_unit_if(!has(E, a[0], egg_number(E, a[1]), 1), out); }
EGG_PRIM(length) { return egg_int_is(a[0]->n, out); }
SWAPPED(multiset_swapped_less, multiset_less)
SWAPPED(multiset_swapped_remove, multiset_remove)
SWAPPED(swapped_has, any_has)
SWAPPED(swapped_lacks, any_lacks)

EGG_PRIM(vec_of) {
  uint32_t *p = TARN_ARRAY(E->cx, uint32_t, n + 1);
  for (uint32_t i = 0; i < n; i++) p[i] = egg_number(E, a[i]);
  return made(E, p, n, out);
}
EGG_PRIM(vec_push) {
  uint32_t x = egg_number(E, a[1]);
  return put(E, a[0], a[0]->n, &x, 1, out);
}
EGG_PRIM(vec_pop) { return a[0]->n && cut(E, a[0], a[0]->n - 1, 1, out); }
EGG_PRIM(vec_append) {
  egg_value all = {.sort = out->sort};
  for (uint32_t i = 0; i < n; i++) {
    egg_value next = {.sort = out->sort};
    if (!put(E, &all, all.n, a[i]->elem, a[i]->n, &next)) return false;
    all = next;
  }
  return made(E, all.elem, all.n, out);
}
static bool inside(egg_values a) { return a[1]->i >= 0 && a[1]->i < a[0]->n; }
EGG_PRIM(vec_get) { return inside(a) && egg_is(&E->value.p[a[0]->elem[a[1]->i]], out); }
EGG_PRIM(vec_set) {
  if (!inside(a)) return false;
  uint32_t *p = TARN_ARRAY(E->cx, uint32_t, a[0]->n);
  copy(p, a[0], 0, a[0]->n);
  p[a[1]->i] = egg_number(E, a[2]);
  return made(E, p, a[0]->n, out);
}
static bool vec_holds(tarn_egg *E, egg_values a) {
  uint32_t x = egg_number(E, a[1]);
  for (uint32_t i = 0; i < a[0]->n; i++)
    if (a[0]->elem[i] == x) return true;
  return false;
}
EGG_PRIM(vec_has) { return egg_unit_if(vec_holds(E, a), out); }
EGG_PRIM(vec_lacks) { return egg_unit_if(!vec_holds(E, a), out); }

EGG_PRIM(map_insert) {
  uint32_t pair[2] = {egg_number(E, a[1]), egg_number(E, a[2])}, i = place(E, a[0], pair[0], 2);
  egg_value without = {.sort = out->sort};
  return cut(E, a[0], i, has(E, a[0], pair[0], 2) ? 2 : 0, &without) &&
         put(E, &without, i, pair, 2, out);
}
EGG_PRIM(map_get) {
  uint32_t x = egg_number(E, a[1]);
  return has(E, a[0], x, 2) && egg_is(&E->value.p[a[0]->elem[place(E, a[0], x, 2) + 1]], out);
}
EGG_PRIM(map_remove) {
  uint32_t x = egg_number(E, a[1]);
  return cut(E, a[0], place(E, a[0], x, 2), has(E, a[0], x, 2) ? 2 : 0, out);
}
EGG_PRIM(map_has) { return egg_unit_if(has(E, a[0], egg_number(E, a[1]), 2), out); }
EGG_PRIM(map_lacks) { return egg_unit_if(!has(E, a[0], egg_number(E, a[1]), 2), out); }
EGG_PRIM(map_length) { return egg_int_is(a[0]->n / 2, out); }

const egg_prim egg_containers[] = {
    {"set-of", "e*:S", set_of},
    {"set-empty", ":S", set_of},
    {"set-insert", "Se:S", set_insert},
    {"set-remove", "Se:S", set_remove},
    {"set-union", "SS:S", set_union},
    {"set-intersect", "SS:S", set_both},
    {"set-diff", "SS:S", set_less},
    {"set-contains", "Se:u", any_has},
    {"set-not-contains", "Se:u", any_lacks},
    {"set-length", "S:i", length},
    {"multiset-of", "e*:M", multiset_of},
    {"multiset-insert", "Me:M", multiset_insert},
    {"multiset-remove", "Me:M", multiset_remove},
    {"multiset-remove-swapped", "eM:M", multiset_swapped_remove},
    {"multiset-single", "ei:M", multiset_single},
    {"multiset-subtract", "MM:M", multiset_less},
    {"multiset-subtract-swapped", "MM:M", multiset_swapped_less},
    {"multiset-intersection", "MM:M", set_both},
    {"multiset-reset-counts", "M:M", multiset_once},
    {"multiset-sum-multisets", "M:e", multiset_sum_all},
    {"multiset-pick", "M:e", multiset_pick},
    {"multiset-pick-max", "M:e", multiset_pick_max},
    {"multiset-count", "Me:i", multiset_count},
    {"multiset-contains-swapped", "eM:u", swapped_has},
    {"multiset-not-contains-swapped", "eM:u", swapped_lacks},
    {"multiset-sum", "MM:M", multiset_sum},
    {"multiset-contains", "Me:u", any_has},
    {"multiset-not-contains", "Me:u", any_lacks},
    {"multiset-length", "M:i", length},
    {"vec-of", "e*:V", vec_of},
    {"vec-empty", ":V", vec_of},
    {"vec-push", "Ve:V", vec_push},
    {"vec-pop", "V:V", vec_pop},
    {"vec-append", "V*:V", vec_append},
    {"vec-get", "Vi:e", vec_get},
    {"vec-set", "Vie:V", vec_set},
    {"vec-contains", "Ve:u", vec_has},
    {"vec-not-contains", "Ve:u", vec_lacks},
    {"vec-length", "V:i", length},
    {"map-empty", ":P", vec_of},
    {"map-insert", "Pkv:P", map_insert},
    {"map-get", "Pk:v", map_get},
    {"map-remove", "Pk:P", map_remove},
    {"map-contains", "Pk:u", map_has},
    {"map-not-contains", "Pk:u", map_lacks},
    {"map-length", "P:i", map_length},
};
const uint32_t egg_n_containers = sizeof egg_containers / sizeof *egg_containers;
