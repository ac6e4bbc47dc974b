/* Instances of views: operators of one operand that move its elements. */
#include "rules/check/op.h"

static bool set_list(node *x, uint32_t i, const int64_t *v, uint32_t n) {
  if (x->has[i]) return true;
  int64_t *q = r_ints(&x->g->e, n);
  if (!q) return false;
  if (n) memcpy(q, v, n * sizeof *q);
  x->v[i] = (rv){.kind = 'l', .n = n, .p = q};
  return true;
}
static int64_t known_dim(const want *w, uint32_t i) { /* of the wanted type, or -1 */
  if (w->ns < 0) return -1;
  if ((int)i < w->ns) return w->s[i];
  return w->nc >= 0 && (int)i - w->ns < w->nc ? w->c[(int)i - w->ns] : -1;
}

bool make_ACCESS(node *x) {
  if (forward(x)) {
    if (!kid(x, 0, &want_any)) return false;
    set_int(x, 0, x->w->ns >= 0 ? x->w->ns : (int64_t)draw(x->g, kid_type(x, 0)->n + 1u));
    return true;
  }
  want w = pinned(x, 0, 0), k = {0};
  uint32_t n = want_rank(&w);
  set_int(x, 0, w.ns);
  k.ns = (int)draw(x->g, n + 1), k.nc = (int)n - k.ns;
  for (uint32_t i = 0; i < n; i++) *want_dim(&k, i) = *want_dim(&w, i);
  return kid(x, 0, &k);
}

static void shuffle(gen *g, int64_t *p, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i + 1 < to; i++) {
    uint32_t j = i + draw(g, to - i);
    int64_t s = p[i];
    p[i] = p[j], p[j] = s;
  }
}
static bool some_permutation(node *x, uint32_t ns, uint32_t n) {
  int64_t p[TARN_MAX_DIMS];
  uint32_t how = draw(x->g, 5);
  for (uint32_t i = 0; i < n; i++) p[i] = i;
  if (how < 2) shuffle(x->g, p, 0, n);
  if (how == 2 || how == 4) shuffle(x->g, p, 0, ns);
  if (how == 3 || how == 4) shuffle(x->g, p, ns, n);
  return set_list(x, 0, p, n) && x->v[0].n == n;
}
bool make_TRANSPOSE(node *x) {
  if (forward(x)) {
    if (!kid(x, 0, &want_any)) return false;
    return some_permutation(x, kid_type(x, 0)->ns, kid_type(x, 0)->n);
  }
  want w = pinned(x, 0, 0), k = w;
  if (!some_permutation(x, (uint32_t)w.ns, want_rank(&w))) return false;
  for (uint32_t i = 0; i < want_rank(&w); i++) {
    if (x->v[0].p[i] < 0 || x->v[0].p[i] >= (int64_t)want_rank(&w)) return false;
    *want_dim(&k, (uint32_t)x->v[0].p[i]) = *want_dim(&w, i);
  }
  return kid(x, 0, &k);
}

/* Steps downward. */
static bool slice_back(node *x, int64_t d, int64_t e) {
  int64_t step = -1 - (int64_t)draw(x->g, 2), least = e > 0 ? (1 - e) * step : 0;
  if (least >= d) return false;
  int64_t l = least + some_place(x->g, d - least);
  set_int(x, 1, l);
  set_int(x, 2, e > 0 ? l + (e - 1) * step - 1 : some_place(x->g, l + 1) - 1);
  x->v[3] = (rv){.kind = 'i', .i = step};
  return true;
}

static bool slice_of(node *x, const tarn_type *t) {
  gen *g = x->g;
  if (!axis(x, 0, t->n)) return false;
  uint32_t i = (uint32_t)int_of(x, 0);
  int64_t d = t->dim[i], e = known_dim(x->w, i);
  if (!x->has[3]) set_int(x, 3, x->p->npay > 3 && chance(g, 2) ? 2 + draw(g, 2) : 1);
  if (d < 1 || e > d) return false;
  if (!x->has[1] && !x->has[2] && !x->has[3] && x->p->npay > 3 && chance(g, 4))
    return slice_back(x, d, e);
  if (!x->has[1]) {
    int64_t most = x->has[2] ? int_of(x, 2) : e >= 0 ? d - e + 1 : d;
    if (most < 1) return false;
    set_int(x, 1, some_place(g, most));
  }
  int64_t l = int_of(x, 1), step = int_of(x, 3);
  if (l < 0 || l >= d) return false;
  set_int(x, 2, e >= 0 ? l + (e - 1) * step + 1 : l + 1 + some_place(g, d - l));
  return int_of(x, 2) <= d;
}
bool make_SLICE(node *x) {
  if (forward(x)) return kid(x, 0, &want_any) && slice_of(x, kid_type(x, 0));
  want w = pinned(x, 0, 0);
  if (!axis(x, 0, want_rank(&w))) return false;
  int64_t *e = want_dim(&w, (uint32_t)int_of(x, 0));
  if (*e >= 0) {
    int64_t l = x->has[1] ? int_of(x, 1) : some_size(x->g, 0, 3);
    set_int(x, 1, l);
    x->has[1] = true;
    *e += l + some_size(x->g, 0, 3);
  }
  x->has[0] = true;
  return kid(x, 0, &w) && slice_of(x, kid_type(x, 0));
}

static void pad_amounts(node *x) {
  set_id(x, 1, 'x', some_constant(x->g, false));
  set_int(x, 2, some_size(x->g, 0, 3));
  set_int(x, 3, some_size(x->g, 0, 3));
}
bool make_PAD(node *x) {
  pad_amounts(x);
  if (forward(x)) return kid(x, 0, &want_any) && axis(x, 0, kid_type(x, 0)->n);
  want w = pinned(x, 0, 0);
  if (!axis(x, 0, want_rank(&w))) return false;
  int64_t *e = want_dim(&w, (uint32_t)int_of(x, 0));
  if (*e >= 0) *e -= int_of(x, 2) + int_of(x, 3);
  return *e >= -1 && kid(x, 0, &w);
}

bool make_SQUEEZE(node *x) {
  if (gen_ready(x->g, x->p->kid[0]) || (is_any(x->w) && x->has[0] && draw(x->g, 2))) {
    uint32_t ones[TARN_MAX_DIMS], n = 0;
    if (!kid(x, 0, &want_any)) return false;
    for (uint32_t i = 0; i < kid_type(x, 0)->n; i++)
      if (kid_type(x, 0)->dim[i] == 1) ones[n++] = i;
    if (n) set_int(x, 0, ones[draw(x->g, n)]);
    return n > 0 && int_of(x, 0) < kid_type(x, 0)->n && kid_type(x, 0)->dim[int_of(x, 0)] == 1;
  }
  want w = pinned(x, 0, 0);
  bool access = draw(x->g, 2) == 0;
  uint32_t from = access ? 0 : (uint32_t)w.ns, count = (uint32_t)(access ? w.ns : w.nc) + 1;
  if (!x->has[0]) set_int(x, 0, from + draw(x->g, count));
  if (int_of(x, 0) < 0 || int_of(x, 0) > (int64_t)want_rank(&w)) return false;
  uint32_t i = (uint32_t)int_of(x, 0);
  insert(&w, i, access ? (int)i <= w.ns : (int)i < w.ns, 1);
  return kid(x, 0, &w);
}

bool make_INSERT_AXIS(node *x) {
  gen *g = x->g;
  if (forward(x)) {
    if (!kid(x, 0, &want_any)) return false;
    uint32_t ns = kid_type(x, 0)->ns, n = kid_type(x, 0)->n;
    bool front = x->has[1] ? int_of(x, 1) == 1 : x->p->npay > 1 && chance(g, 3);
    set_int(x, 1, front);
    set_int(x, 0, front ? ns : draw(g, n + 1));
    return true;
  }
  want w = pinned(x, 0, 0);
  if (x->has[1] && int_of(x, 1) == 1) set_int(x, 0, w.ns);
  else if (!axis(x, 0, want_rank(&w))) return false;
  uint32_t i = (uint32_t)int_of(x, 0);
  if (i >= want_rank(&w)) return false;
  if (*want_dim(&w, i) != 1 && *want_dim(&w, i) != -1) return false;
  bool front = (int)i == w.ns;
  if (front && x->p->npay < 2) return false;
  set_int(x, 1, front);
  drop(&w, i);
  return kid(x, 0, &w);
}

static want shape_want(const gen *g, uint32_t shape) { return want_of(tarn_type_get(g->L, shape)); }

bool make_BROADCAST(node *x) {
  gen *g = x->g;
  want w, k;
  if (gen_ready(g, x->p->kid[0])) {
    if (!kid(x, 0, &want_any)) return false;
    k = want_of(kid_type(x, 0)), w = k;
    for (uint32_t i = 0; i < want_rank(&w); i++) {
      if (*want_dim(&k, i) != 1) continue;
      int64_t known = known_dim(x->w, i);
      *want_dim(&w, i) = known >= 0 ? known : some_extent(g, want_rank(&w));
    }
    set_id(x, 0, 's', shape_of(g, &w));
    return true;
  }
  w = x->has[0] ? shape_want(g, x->v[0].id) : *x->w;
  want_fill(g, &w);
  if (want_rank(&w) > C_RANK) return false;
  set_id(x, 0, 's', shape_of(g, &w));
  k = w;
  uint32_t how = draw(g, 4); /* compute dims, access dims, any */
  for (uint32_t i = 0; i < want_rank(&w); i++) {
    bool access = (int)i < w.ns;
    if (how == 0 ? !access : how == 1 ? access : draw(g, 2)) *want_dim(&k, i) = 1;
  }
  return kid(x, 0, &k);
}

/* Extents of a given product. */
static int factors(gen *g, int64_t c, int64_t *dim) {
  int n = 0;
  if (c == 0) return dim[0] = 0, 1;
  while (c > 1 && n < 3) {
    int64_t f = 2 + draw(g, (uint32_t)c - 1);
    while (c % f) f--;
    if (f < 2 || n == 2) f = c;
    dim[n++] = f;
    c /= f;
  }
  if (n < 3 && chance(g, 6)) dim[n++] = 1;
  return n;
}
static int64_t product(const int64_t *dim, int n) {
  int64_t c = 1;
  for (int i = 0; i < n; i++) c *= dim[i];
  return c;
}
static want regrouped(gen *g, const want *w) {
  want k = {0};
  k.ns = factors(g, product(w->s, w->ns), k.s);
  k.nc = factors(g, product(w->c, w->nc), k.c);
  return k;
}

bool make_FLATTEN(node *x) {
  if (forward(x)) return kid(x, 0, &want_any);
  want w = pinned(x, 0, 0);
  if (w.ns > 1 || w.nc > 1) return false;
  want_fill(x->g, &w);
  want k = regrouped(x->g, &w);
  if ((w.ns == 0) != (k.ns == 0)) k.ns = w.ns, k.s[0] = w.s[0];
  if ((w.nc == 0) != (k.nc == 0)) k.nc = w.nc, k.c[0] = w.c[0];
  return kid(x, 0, &k);
}
bool make_RESHAPE(node *x) {
  if (forward(x) && !(x->has[0] && !gen_ready(x->g, x->p->kid[0]))) {
    if (!kid(x, 0, &want_any)) return false;
    want t = want_of(kid_type(x, 0)), w = regrouped(x->g, &t);
    if (x->w->ns >= 0) w = *x->w;
    if (want_rank(&w) > C_RANK + 1) return false;
    want_fill(x->g, &w);
    set_id(x, 0, 's', shape_of(x->g, &w));
    return true;
  }
  want w = x->has[0] ? shape_want(x->g, x->v[0].id) : *x->w;
  want_fill(x->g, &w);
  set_id(x, 0, 's', shape_of(x->g, &w));
  want k = regrouped(x->g, &w);
  return kid(x, 0, &k);
}

/* A view: one transform's map, or the identity. */
bool make_VIEW(node *x) {
  gen *g = x->g;
  if (!kid(x, 0, &want_any)) return false;
  uint32_t type = tarn_term_get(g->L, x->m->kid[0])->type, n = kid_type(x, 0)->n, map;
  int64_t p[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < n; i++) p[i] = i;
  uint32_t how = n ? draw(g, 3) : 0;
  if (how == 0) map = tarn_map_identity(g->L, type);
  else if (how == 1) {
    shuffle(g, p, 0, n);
    map = tarn_map_of(g->L, TARN_OP_TRANSPOSE, tarn_payload_ints(g->L, n, p), type);
  } else {
    uint32_t i = draw(g, n);
    int64_t v[4] = {i, 0, kid_type(x, 0)->dim[i], 2};
    map = tarn_map_of(g->L, TARN_OP_SLICE, tarn_payload_ints(g->L, 4, v), type);
  }
  set_id(x, 0, 'm', map);
  return true;
}

static bool windows_of(node *x, const tarn_type *t) {
  gen *g = x->g;
  int64_t v[3][TARN_MAX_DIMS];
  uint32_t m = t->n - t->ns;
  for (uint32_t i = 0; i < 3; i++)
    if (x->has[i] && x->v[i].n != m) return false;
  for (uint32_t j = 0; j < m; j++) {
    int64_t d = t->dim[t->ns + j];
    int64_t w = x->has[0]           ? x->v[0].p[j]
                : chance(g, 4)      ? d
                : d <= 4 || !g->far ? 1 + (int64_t)draw(g, (uint32_t)(d < 4 ? d : 4))
                                    : 1 + some_place(g, d);
    v[0][j] = w;
    v[1][j] = x->has[1] ? x->v[1].p[j] : some_size(g, 1, 3);
    v[2][j] = x->has[2] ? x->v[2].p[j] : 1;
    if (!x->has[2] && x->p->npay > 2 && 2 * (w - 1) < d) v[2][j] = 1 + (int64_t)draw(g, 2);
  }
  for (uint32_t i = 0; i < 3; i++)
    if (!set_list(x, i, v[i], m)) return false;
  return true;
}
bool make_WINDOWS(node *x) {
  gen *g = x->g;
  if (forward(x)) {
    want k = want_any;
    if (!gen_ready(g, x->p->kid[0])) want_pin(g, &k, 0, x->has[0] ? (int)x->v[0].n : 1);
    return kid(x, 0, &k) && again(x) && windows_of(x, kid_type(x, 0));
  }
  want w = pinned(x, 0, 1);
  if (w.ns < w.nc) return false;
  want_fill(g, &w);
  want k = {.ns = w.ns - w.nc, .nc = w.nc};
  memcpy(k.s, w.s, sizeof k.s);
  int64_t v[3][TARN_MAX_DIMS];
  for (int j = 0; j < w.nc; j++) {
    v[0][j] = w.c[j];
    v[1][j] = x->has[1] && (int)x->v[1].n == w.nc ? x->v[1].p[j] : some_size(g, 1, 3);
    v[2][j] = x->has[2] && (int)x->v[2].n == w.nc ? x->v[2].p[j]
                                                  : 1 + (int64_t)(x->p->npay > 2 && chance(g, 3));
    k.c[j] =
        (w.s[k.ns + j] - 1) * v[1][j] + (w.c[j] - 1) * v[2][j] + 1 + draw(g, (uint32_t)v[1][j]);
  }
  for (uint32_t i = 0; i < 3; i++)
    if (!set_list(x, i, v[i], (uint32_t)w.nc)) return false;
  return kid(x, 0, &k);
}

bool make_MATERIALISE(node *x) { return kid(x, 0, is_any(x->w) ? &want_any : x->w); }
bool make_PLACE(node *x) {
  tarn_payload p = {.kind = TARN_P_PLACE, .name = draw(x->g, 2) ? "smem" : "reg"};
  set_id(x, 0, 'p', tarn_payload_intern(x->g->L, &p));
  return make_MATERIALISE(x);
}
