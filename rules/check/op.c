/* For each operator: kids and payload of a node whose type is wanted.  With a kid that is given, or
 * nothing wanted, the payload is chosen for the kid; else the kid's type is chosen for the payload.
 */
#include "rules/check/check.h"
#include <string.h>

typedef struct node {
  gen *g;
  const rpat *p;
  const want *w;
  made *m;
  rv v[4];     /* payload elements */
  bool has[4]; /* known beforehand */
} node;

static bool is_any(const want *w) { return w->ns < 0 && w->nc < 0; }
static int64_t int_of(const node *x, uint32_t i) { return x->v[i].i; }
static void set_int(node *x, uint32_t i, int64_t v) {
  if (!x->has[i]) x->v[i] = (rv){.kind = 'i', .i = v};
}
static void set_id(node *x, uint32_t i, char kind, uint32_t id) {
  if (!x->has[i]) x->v[i] = (rv){.kind = kind, .id = id};
}
static bool set_list(node *x, uint32_t i, const int64_t *v, uint32_t n) {
  if (x->has[i]) return true;
  int64_t *q = r_ints(&x->g->e, n);
  if (!q) return false;
  if (n) memcpy(q, v, n * sizeof *q);
  x->v[i] = (rv){.kind = 'l', .n = n, .p = q};
  return true;
}
/* What of the payload follows from the kids, now that they are there. */
static bool again(node *x) {
  for (uint32_t k = 0; k < x->p->npay; k++)
    if (!x->has[k]) x->has[k] = pay_get(x->g, x->p, k, &x->v[k]);
  return true;
}
static bool kid(node *x, uint32_t i, const want *w) {
  x->m->n = i + 1;
  return gen_pattern(x->g, x->p->kid[i], w, &x->m->kid[i]) && (w->ns >= 0 || again(x));
}
static const tarn_type *kid_type(const node *x, uint32_t i) { return type_at(x->g, x->m->kid[i]); }
/* Is the only kid's type settled without regard to the node's? */
static bool forward(node *x) { return is_any(x->w) || gen_ready(x->g, x->p->kid[0]); }
static want pinned(node *x, int least_s, int least_c) {
  want w = *x->w;
  want_pin(x->g, &w, least_s, least_c);
  return w;
}
/* The axis: given, else any of n. */
static bool axis(node *x, uint32_t i, uint32_t n) {
  if (n == 0) return false;
  if (!x->has[i]) set_int(x, i, draw(x->g, n));
  return int_of(x, i) >= 0 && int_of(x, i) < (int64_t)n;
}
static int64_t known_dim(const want *w, uint32_t i) { /* of the wanted type, or -1 */
  if (w->ns < 0) return -1;
  if ((int)i < w->ns) return w->s[i];
  return w->nc >= 0 && (int)i - w->ns < w->nc ? w->c[(int)i - w->ns] : -1;
}
static void insert(want *w, uint32_t i, bool access, int64_t dim) {
  int64_t *at = access ? &w->s[i] : &w->c[(int)i - w->ns];
  int *n = access ? &w->ns : &w->nc;
  uint32_t after = access ? (uint32_t)w->ns - i : (uint32_t)w->nc - (i - (uint32_t)w->ns);
  memmove(at + 1, at, after * sizeof *at);
  *at = dim;
  ++*n;
}
static void drop(want *w, uint32_t i) {
  bool access = (int)i < w->ns;
  int64_t *at = want_dim(w, i);
  uint32_t after = (access ? (uint32_t)w->ns : want_rank(w)) - i - 1;
  memmove(at, at + 1, after * sizeof *at);
  --*(access ? &w->ns : &w->nc);
}

/* ---------------------------------------------------------------- views */

static bool make_ACCESS(node *x) {
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
static bool make_TRANSPOSE(node *x) {
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
  int64_t l = least + draw(x->g, (uint32_t)(d - least));
  set_int(x, 1, l);
  set_int(x, 2, e > 0 ? l + (e - 1) * step - 1 : (int64_t)draw(x->g, (uint32_t)l + 1) - 1);
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
    set_int(x, 1, draw(g, (uint32_t)most));
  }
  int64_t l = int_of(x, 1), step = int_of(x, 3);
  if (l < 0 || l >= d) return false;
  set_int(x, 2, e >= 0 ? l + (e - 1) * step + 1 : l + 1 + draw(g, (uint32_t)(d - l)));
  return int_of(x, 2) <= d;
}
static bool make_SLICE(node *x) {
  if (forward(x)) return kid(x, 0, &want_any) && slice_of(x, kid_type(x, 0));
  want w = pinned(x, 0, 0);
  if (!axis(x, 0, want_rank(&w))) return false;
  int64_t *e = want_dim(&w, (uint32_t)int_of(x, 0));
  if (*e >= 0) {
    int64_t l = x->has[1] ? int_of(x, 1) : (int64_t)draw(x->g, 3);
    set_int(x, 1, l);
    x->has[1] = true;
    *e += l + (int64_t)draw(x->g, 3);
  }
  x->has[0] = true;
  return kid(x, 0, &w) && slice_of(x, kid_type(x, 0));
}

static void pad_amounts(node *x) {
  set_id(x, 1, 'x', some_constant(x->g, false));
  set_int(x, 2, draw(x->g, 3));
  set_int(x, 3, draw(x->g, 3));
}
static bool make_PAD(node *x) {
  pad_amounts(x);
  if (forward(x)) return kid(x, 0, &want_any) && axis(x, 0, kid_type(x, 0)->n);
  want w = pinned(x, 0, 0);
  if (!axis(x, 0, want_rank(&w))) return false;
  int64_t *e = want_dim(&w, (uint32_t)int_of(x, 0));
  if (*e >= 0) *e -= int_of(x, 2) + int_of(x, 3);
  return *e >= -1 && kid(x, 0, &w);
}

static bool make_SQUEEZE(node *x) {
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

static bool make_INSERT_AXIS(node *x) {
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

static uint32_t shape_of(gen *g, const want *w) {
  int64_t dim[TARN_MAX_DIMS];
  want k = *w;
  for (uint32_t i = 0; i < want_rank(w); i++) dim[i] = *want_dim(&k, i);
  return tarn_type_tensor(g->L, TARN_F32, (uint32_t)w->ns, want_rank(w), dim);
}
static want shape_want(const gen *g, uint32_t shape) { return want_of(tarn_type_get(g->L, shape)); }

static bool make_BROADCAST(node *x) {
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

static bool make_FLATTEN(node *x) {
  if (forward(x)) return kid(x, 0, &want_any);
  want w = pinned(x, 0, 0);
  if (w.ns > 1 || w.nc > 1) return false;
  want_fill(x->g, &w);
  want k = regrouped(x->g, &w);
  if ((w.ns == 0) != (k.ns == 0)) k.ns = w.ns, k.s[0] = w.s[0];
  if ((w.nc == 0) != (k.nc == 0)) k.nc = w.nc, k.c[0] = w.c[0];
  return kid(x, 0, &k);
}
static bool make_RESHAPE(node *x) {
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
static bool make_VIEW(node *x) {
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
    int64_t w = x->has[0]      ? x->v[0].p[j]
                : chance(g, 4) ? d
                               : 1 + (int64_t)draw(g, (uint32_t)(d < 4 ? d : 4));
    v[0][j] = w;
    v[1][j] = x->has[1] ? x->v[1].p[j] : 1 + (int64_t)draw(g, 3);
    v[2][j] = x->has[2] ? x->v[2].p[j] : 1;
    if (!x->has[2] && x->p->npay > 2 && 2 * (w - 1) < d) v[2][j] = 1 + (int64_t)draw(g, 2);
  }
  for (uint32_t i = 0; i < 3; i++)
    if (!set_list(x, i, v[i], m)) return false;
  return true;
}
static bool make_WINDOWS(node *x) {
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
    v[1][j] = x->has[1] && (int)x->v[1].n == w.nc ? x->v[1].p[j] : 1 + (int64_t)draw(g, 3);
    v[2][j] = x->has[2] && (int)x->v[2].n == w.nc ? x->v[2].p[j]
                                                  : 1 + (int64_t)(x->p->npay > 2 && chance(g, 3));
    k.c[j] =
        (w.s[k.ns + j] - 1) * v[1][j] + (w.c[j] - 1) * v[2][j] + 1 + draw(g, (uint32_t)v[1][j]);
  }
  for (uint32_t i = 0; i < 3; i++)
    if (!set_list(x, i, v[i], (uint32_t)w.nc)) return false;
  return kid(x, 0, &k);
}

static bool make_MATERIALISE(node *x) { return kid(x, 0, is_any(x->w) ? &want_any : x->w); }
static bool make_PLACE(node *x) {
  tarn_payload p = {.kind = TARN_P_PLACE, .name = draw(x->g, 2) ? "smem" : "reg"};
  set_id(x, 0, 'p', tarn_payload_intern(x->g->L, &p));
  return make_MATERIALISE(x);
}

/* ---------------------------------------------------------------- several operands */

static uint32_t size_of(const rpat *p) {
  uint32_t n = 1;
  for (uint32_t i = 0; p->kind == RP_NODE && i < p->n; i++) n += size_of(p->kid[i]);
  return n;
}
/* The kid to begin with: one that is given, else the one of which most, or least, is said. */
static uint32_t lead(const node *x, uint32_t n) {
  uint32_t best = TARN_NONE, most = 0;
  for (uint32_t i = 0; i < n; i++)
    if (x->p->kid[i]->kind != RP_SEG && gen_ready(x->g, x->p->kid[i])) return i;
  bool large = n > 1 && draw(x->g, 2) == 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t size = size_of(x->p->kid[i]);
    if (x->p->kid[i]->kind == RP_SEG ||
        (best != TARN_NONE && (large ? size <= most : size >= most)))
      continue;
    most = size, best = i;
  }
  return best == TARN_NONE ? 0 : best;
}

static bool gen_kids(node *x, const uint32_t *many, uint32_t first, const want *body,
                     const want *epi, uint32_t nops);
static bool plan_rows(node *x, uint32_t total, uint32_t *many, uint32_t *sum);
/* Kids of one type but for free extents. */
static bool kids_like(node *x, uint32_t done, const want *w) {
  uint32_t many[R_KIDS], n;
  return plan_rows(x, TARN_NONE, many, &n) && gen_kids(x, many, done, w, w, R_KIDS);
}

static bool concat_parts(node *x, want w) {
  gen *g = x->g;
  if (!axis(x, 0, want_rank(&w))) return false;
  int64_t *e = want_dim(&w, (uint32_t)int_of(x, 0)), left = *e;
  if (left < 0) return kids_like(x, TARN_NONE, &w);
  for (uint32_t i = 0; i < x->p->n; i++) {
    uint32_t rest = x->p->n - 1 - i;
    if (x->p->kid[i]->kind == RP_SEG || left <= (int64_t)rest) return false;
    *e = rest ? 1 + (int64_t)draw(g, (uint32_t)(left - rest)) : left;
    if (gen_ready(g, x->p->kid[i])) *e = -1;
    if (!kid(x, i, &w)) return false;
    left -= kid_type(x, i)->dim[int_of(x, 0)];
  }
  return left == 0;
}
static bool make_CONCAT(node *x) {
  if (!is_any(x->w)) return concat_parts(x, pinned(x, 0, 0));
  uint32_t first = lead(x, x->p->n);
  if (x->p->kid[first]->kind == RP_SEG) {
    want w = pinned(x, 1, 0);
    return concat_parts(x, w);
  }
  want w = want_any;
  uint32_t most = 1;
  if (x->has[0]) most = (uint32_t)int_of(x, 0) + 1;
  if (!gen_ready(x->g, x->p->kid[first]) && x->p->kid[first]->kind == RP_VAR)
    want_pin(x->g, &w, (int)most, 0);
  uint32_t many[R_KIDS], n, before = 0;
  if (!plan_rows(x, TARN_NONE, many, &n)) return false;
  for (uint32_t i = 0; i < first; i++) before += many[i];
  if (!gen_pattern(x->g, x->p->kid[first], &w, &x->m->kid[before])) return false;
  const tarn_type *t = type_at(x->g, x->m->kid[before]);
  if (!axis(x, 0, t->n)) return false;
  w = want_of(t);
  *want_dim(&w, (uint32_t)int_of(x, 0)) = -1;
  return gen_kids(x, many, first, &w, &w, R_KIDS);
}

static bool make_PAIR(node *x) {
  want w = want_any;
  if (!is_any(x->w)) {
    w = pinned(x, 0, 1);
    if (w.nc < 1 || (w.c[0] != 2 && w.c[0] != -1)) return false;
    drop(&w, (uint32_t)w.ns);
  }
  uint32_t first = lead(x, 2);
  if (!gen_pattern(x->g, x->p->kid[first], &w, &x->m->kid[first])) return false;
  want k = want_of(kid_type(x, first));
  x->m->n = 2;
  return gen_pattern(x->g, x->p->kid[1 - first], &k, &x->m->kid[1 - first]);
}

static bool cart_free(node *x) {
  gen *g = x->g;
  uint32_t first = lead(x, 2);
  want w = want_any;
  if (x->p->npay == 0) set_int(x, 0, 0);
  int shared = x->has[0] || x->p->npay == 0 ? (int)int_of(x, 0) : -1;
  if (!gen_ready(g, x->p->kid[first]) && x->p->kid[first]->kind == RP_VAR)
    want_pin(g, &w, shared >= 0 ? shared : (int)draw(g, 3), 1);
  if (!gen_pattern(g, x->p->kid[first], &w, &x->m->kid[first])) return false;
  const tarn_type *t = kid_type(x, first);
  if (shared < 0) shared = (int)draw(g, t->ns + 1u);
  set_int(x, 0, shared);
  if (shared > t->ns) return false;
  want k = want_of(t);
  k.ns = shared + (int)draw(g, 3);
  for (int i = shared; i < k.ns; i++) k.s[i] = -1;
  if (gen_ready(g, x->p->kid[1 - first])) k = want_any;
  x->m->n = 2;
  return gen_pattern(g, x->p->kid[1 - first], &k, &x->m->kid[1 - first]);
}
static bool make_CART_PROD(node *x) {
  if (is_any(x->w)) return cart_free(x);
  gen *g = x->g;
  want w = pinned(x, 1, 1), a, b;
  if (w.nc < 1 || (w.c[0] != 2 && w.c[0] != -1)) return false;
  drop(&w, (uint32_t)w.ns);
  int shared = x->has[0] ? (int)int_of(x, 0) : x->p->npay ? (int)draw(g, (uint32_t)w.ns + 1) : 0;
  if (shared > w.ns) return false;
  set_int(x, 0, shared);
  int na = shared + (int)draw(g, (uint32_t)(w.ns - shared) + 1);
  a = b = w;
  a.ns = na, b.ns = shared + w.ns - na;
  memcpy(b.s + shared, w.s + na, (size_t)(w.ns - na) * sizeof *b.s);
  x->m->n = 2;
  if (!gen_pattern(g, x->p->kid[0], &a, &x->m->kid[0])) return false;
  want k = want_of(kid_type(x, 0));
  for (int i = 0; i < k.nc; i++) b.c[i] = k.c[i];
  for (int i = 0; i < shared; i++) b.s[i] = k.s[i];
  return gen_pattern(g, x->p->kid[1], &b, &x->m->kid[1]);
}

static bool make_GATHER(node *x) {
  gen *g = x->g;
  if (!is_any(x->w) || !kid(x, 0, &want_any)) return false;
  const tarn_type *t = kid_type(x, 0);
  if (!axis(x, 0, t->n)) return false;
  want w = {.ns = 1 + (int)draw(g, 2),
            .nc = 0,
            .s = {-1, -1},
            .index = true,
            .below = t->dim[int_of(x, 0)]};
  return w.below > 0 && kid(x, 1, &w);
}

/* One table, whose rows are summed over no dim of the indices or one. */
static bool make_GATHER_SUM(node *x) {
  gen *g = x->g;
  if (!is_any(x->w) || x->p->n != 2 || !kid(x, 0, &want_any) || !axis(x, 0, 2)) return false;
  const tarn_type *t = kid_type(x, 0);
  if (!t->n || t->dtype == TARN_BOOL || t->dim[0] < 1) return false;
  want w = {.ns = 1 + (int)draw(g, 2), .nc = 0, .s = {-1, -1}, .index = true, .below = t->dim[0]};
  return kid(x, 1, &w);
}

static bool make_TUPLE(node *x) {
  for (uint32_t i = 0; i < x->p->n; i++)
    if (x->p->kid[i]->kind == RP_SEG || !kid(x, i, &want_any)) return false;
  return true;
}
static bool make_NTH(node *x) {
  if (!kid(x, 0, &want_any) || !kid_type(x, 0)->tuple) return false;
  return axis(x, 0, kid_type(x, 0)->nelem);
}

/* ---------------------------------------------------------------- kernels */

/* Is the tuple form the likely one? */
static bool tuple_kid(const rpat *p) {
  return p->kind == RP_NODE && (p->op == TARN_OP_CART_PROD || p->op == TARN_OP_PAIR);
}

/* The function: chosen until what is said of it alone holds. */
static bool choose_function(node *x, uint32_t nkid) {
  gen *g = x->g;
  if (x->has[0]) return true;
  for (int tries = 0; tries < 16; tries++) {
    rv saved[R_ATTRS];
    memcpy(saved, g->e.attr, sizeof saved);
    bool reduce = x->w->nc <= 0 && draw(g, 2);
    uint32_t tuple = 0, nops = nkid, nepi = 0;
    if (nkid == 1 && (tuple_kid(x->p->kid[0]) ? !chance(g, 8) : chance(g, 4))) tuple = 2;
    if (reduce && nkid > 1) nepi = draw(g, nkid), nops = nkid - nepi;
    if (nops == 1 && tuple_kid(x->p->kid[0]) && !chance(g, 8)) tuple = 2;
    set_id(x, 0, 'f', some_function(g, nops, nepi, reduce, tuple));
    if (!pay_set(g, x->p, 0, &x->v[0])) return false;
    if (gen_settle(g)) return true;
    memcpy(g->e.attr, saved, sizeof saved);
  }
  return false;
}

/* How many terms each kid of a compute stands for, rows included; `total` of them, or TARN_NONE: as
 * it comes. */
static bool plan_rows(node *x, uint32_t total, uint32_t *many, uint32_t *sum) {
  gen *g = x->g;
  uint32_t open = 0;
  *sum = 0;
  for (uint32_t i = 0; i < x->p->n; i++) {
    const rpat *p = x->p->kid[i];
    bool free_row = p->kind == RP_SEG && g->e.seg[p->var].n == UINT32_MAX;
    many[i] = p->kind != RP_SEG ? 1 : free_row ? 0 : g->e.seg[p->var].n;
    open += free_row;
    *sum += many[i];
  }
  if (total != TARN_NONE && (total < *sum || (!open && total != *sum) || total > *sum + 6))
    return false;
  for (uint32_t i = 0; i < x->p->n; i++) {
    const rpat *p = x->p->kid[i];
    if (p->kind != RP_SEG || g->e.seg[p->var].n != UINT32_MAX) continue;
    if (total == TARN_NONE) many[i] = draw(g, 3);
    else many[i] = open == 1 ? total - *sum : draw(g, total - *sum + 1);
    open--;
    *sum += many[i];
  }
  return true;
}

/* The terms of a row: fresh leaves named after it. */
static bool gen_row(gen *g, const rpat *p, const want *body, const want *epi, uint32_t at,
                    uint32_t nops, uint32_t n) {
  uint32_t *out = g->segs[p->var];
  for (uint32_t i = 0; i < n; i++) {
    want k = at + i < nops ? *body : *epi;
    int64_t dim[TARN_MAX_DIMS];
    want_fill(g, &k);
    for (uint32_t j = 0; j < want_rank(&k); j++) dim[j] = *want_dim(&k, j);
    uint32_t type = tarn_type_tensor(g->L, g->dtype, (uint32_t)k.ns, want_rank(&k), dim);
    if (g->nleaf == R_CLASSES || i == 8) return false;
    const char *name = tarn_format(g->cx, "%s%u", g->r->seg_name[p->var] + 2, i + 1);
    leaf f = {.var = TARN_NONE, .kind = F_WILD, .term = tarn_input(g->L, name, type)};
    g->leaf[g->nleaf++] = f;
    out[i] = f.term;
  }
  g->e.seg[p->var] = (rseg){out, n};
  return true;
}

/* The kids from the leading one on; those before `nops` are of type body, the others of type epi.
 */
static bool gen_kids(node *x, const uint32_t *many, uint32_t first, const want *body,
                     const want *epi, uint32_t nops) {
  gen *g = x->g;
  uint32_t at = 0;
  for (uint32_t i = 0; i < x->p->n; i++) {
    const rpat *p = x->p->kid[i];
    if (p->kind != RP_SEG) {
      if (i != first && !gen_pattern(g, p, at < nops ? body : epi, &x->m->kid[at])) return false;
      at++;
      continue;
    }
    if (g->e.seg[p->var].n == UINT32_MAX && !gen_row(g, p, body, epi, at, nops, many[i]))
      return false;
    for (uint32_t k = 0; k < many[i]; k++) x->m->kid[at++] = g->e.seg[p->var].id[k];
  }
  x->m->n = at;
  return true;
}

/* Operands of the body, then those of the epilogue; the leading kid decides what is still free. */
static bool operands(node *x, const tarn_func *f, const uint32_t *many, want body) {
  gen *g = x->g;
  uint32_t first = lead(x, x->p->n), at = 0;
  want epi = {.ns = body.ns, .nc = 0};
  memcpy(epi.s, body.s, sizeof epi.s);
  for (uint32_t i = 0; i < first; i++) at += many[i];
  bool row = x->p->kid[first]->kind == RP_SEG;
  if (row) want_fill(g, &body);
  else if (!gen_pattern(g, x->p->kid[first], at < f->nops ? &body : &epi, &x->m->kid[at]))
    return false;
  if (!row && at < f->nops) body = want_of(type_at(g, x->m->kid[at]));
  else if (!row) {
    want_pin(g, &body, 0, 0);
    epi = want_of(type_at(g, x->m->kid[at]));
    body.ns = epi.ns;
    memcpy(body.s, epi.s, sizeof body.s);
    want_fill(g, &body);
  }
  epi = body;
  epi.nc = 0;
  return gen_kids(x, many, row ? TARN_NONE : first, &body, &epi, f->nops);
}

static bool make_COMPUTE(node *x) {
  gen *g = x->g;
  uint32_t many[R_KIDS], nkid, total = TARN_NONE;
  if (x->has[0]) {
    const tarn_func *f = tarn_fn_get(g->L, x->v[0].id);
    total = (uint32_t)f->nops + f->nepi;
  }
  if (!plan_rows(x, total, many, &nkid) || nkid == 0 || nkid > 8 || !choose_function(x, nkid))
    return false;
  tarn_func f = *tarn_fn_get(g->L, x->v[0].id);
  if ((uint32_t)f.nops + f.nepi != nkid) return false;
  want w = *x->w;
  if (f.red != TARN_NONE) {
    if (w.nc > 0) return false;
    w.nc = -1;
    if (w.ns < 0 || f.ntuple) want_pin(g, &w, 0, f.ntuple ? 1 : 0);
  } else if (w.nc < 0 && f.ntuple) want_pin(g, &w, 0, 0);
  if (f.ntuple && f.red == TARN_NONE) insert(&w, (uint32_t)w.ns, false, f.ntuple);
  else if (f.ntuple) w.c[0] = f.ntuple;
  if (is_any(x->w) && x->p->kid[0]->kind == RP_NODE && (!f.ntuple || tuple_kid(x->p->kid[0])))
    w = want_any; /* the operand decides */
  return operands(x, &f, many, w);
}

static bool make_FOLD(node *x) {
  gen *g = x->g;
  set_id(x, 0, 'r', some_reducer(g));
  if (forward(x)) {
    want k = want_any;
    if (x->p->kid[0]->kind == RP_VAR && !gen_ready(g, x->p->kid[0])) want_pin(g, &k, 1, 0);
    return kid(x, 0, &k) && axis(x, 1, kid_type(x, 0)->ns);
  }
  want w = pinned(x, 0, 0);
  if (!axis(x, 1, (uint32_t)w.ns + 1)) return false;
  insert(&w, (uint32_t)int_of(x, 1), true, -1);
  return kid(x, 0, &w);
}

static bool make_SYSTOLIC(node *x) {
  want w = pinned(x, 1, 0), a = {.nc = 1}, p;
  if (w.nc > 0 || w.ns < 1) {
    if (!is_any(x->w)) return false;
    w.nc = 0;
  }
  if (x->has[1]) w.s[w.ns - 1] = int_of(x, 1);
  a.ns = w.ns - 1;
  memcpy(a.s, w.s, sizeof a.s);
  a.c[0] = x->has[0] ? int_of(x, 0) : -1;
  if (!kid(x, 0, &a)) return false;
  const tarn_type *t = kid_type(x, 0);
  want b = {.ns = 0, .nc = 2, .c = {t->dim[t->ns], w.s[w.ns - 1]}};
  if (!kid(x, 1, &b)) return false;
  set_int(x, 0, t->dim[t->ns]);
  set_int(x, 1, kid_type(x, 1)->dim[1]);
  if (x->p->n < 3) return true;
  p = want_of(t);
  p.nc = 0;
  p.s[p.ns++] = kid_type(x, 1)->dim[1];
  return kid(x, 2, &p);
}

static bool make_CONST(node *x) {
  want w = *x->w;
  leaf f = {.kind = F_CONST};
  if (x->has[0]) return true;
  want_fill(x->g, &w);
  tarn_type of = *tarn_type_get(x->g->L, shape_of(x->g, &w));
  of.dtype = x->g->dtype;
  const tarn_type *t = tarn_type_get(x->g->L, tarn_type_intern(x->g->L, &of));
  tarn_term c = tarn_constant(x->g->L, tarn_format(x->g->cx, "k%u", tarn_term_count(x->g->L)),
                              some_values(x->g, t, &f, const_values(x->g)), t->ns);
  set_id(x, 0, 'p', tarn_term_get(x->g->L, c)->payload);
  return true;
}

static bool make_NEST(node *x) {
  uint32_t nest;
  if (x->has[0] || !gen_nest(x->g, x->p, x->m, &nest)) return false;
  set_id(x, 0, 'n', nest);
  return true;
}

typedef bool make_fn(node *x);
#define make_INPUT        NULL /* rules do not match these */
#define make_OPAQUE       NULL
#define make_CALL         NULL
#define make_SYSTOLIC_ACC make_SYSTOLIC
static make_fn *const makers[TARN_OP_COUNT] = {
#define OP(ID, ...) [TARN_OP_##ID] = make_##ID,
#include "access/ops.def"
#undef OP
};

bool op_make(gen *g, const rpat *p, const want *w, made *m) {
  node x = {.g = g, .p = p, .w = w, .m = m};
  if (!makers[p->op]) return false;
  for (uint32_t i = 0; i < p->npay; i++) x.has[i] = pay_get(g, p, i, &x.v[i]);
  if (!makers[p->op](&x)) return false;
  for (uint32_t i = 0; i < p->npay; i++)
    if (!pay_set(g, p, i, &x.v[i])) return false;
  m->payload = r_payload_join(&g->e, p->op, x.v, p->npay);
  return m->payload != TARN_NONE;
}
