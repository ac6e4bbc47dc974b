/* Builders of the constants family: they move what depends on constants alone out of the kernel.
 *
 * literals   a tensor whose elements are all one value becomes a number in the expression
 * hoist      a subexpression of constants becomes a tensor of its own, computed at compile time
 * scale      a factor after a sum of products moves into the constant operand, as in batch-norm
 *            folding (R40)
 * affine     a chain of sums, products and quotients with constants becomes one product and one sum
 *
 * Distributing a factor over a sum is not a reordering.  (x + b) a becomes a x + a b only where the
 * error of x + b may be as large as that of its terms: x was rounded itself, or has the sign of b,
 * or is much larger or smaller.  A mask (1 - m) c stays as it is.  Constants are put together only
 * where neither overflows, nor all of them underflow. */
#include "access/fx_internal.h"
#include "rules/algorithms/build.h"
#include "rules/lang/range.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- literals */

static bool literal_read(rsite *s, const kern *k, const tarn_read *r, uint32_t *with) {
  if (r->stage) return false;
  uint32_t u = s->e->host->uniform(s->e->host->user, k->leaf[r->src]);
  const tarn_imap *m = tarn_imap_get(k->L, r->map);
  if (u == TARN_NONE || (m->nguard && m->fill != u)) return false;
  *with = u;
  return true;
}

uint32_t build_literals(rsite *s) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++) {
    kstage *st = &k.stage[i];
    uint32_t with[K_READS + 1];
    for (uint32_t r = 0; r < st->nb; r++) {
      with[r] = TARN_NONE;
      any |= literal_read(s, &k, &st->read[r], &with[r]);
    }
    st->body = tarn_fx_subst(k.L, st->body, with, st->nb);
    with[0] = TARN_NONE;
    for (uint32_t r = 0; r < st->ne; r++) {
      with[r + 1] = TARN_NONE;
      any |= literal_read(s, &k, &st->read[st->nb + r], &with[r + 1]);
    }
    if (st->epi != TARN_NONE) st->epi = tarn_fx_subst(k.L, st->epi, with, st->ne + 1);
  }
  return any ? kern_store(&k) : TARN_NONE;
}

/* ---------------------------------------------------------------- tensors of constants */

static uint32_t loops_of(uint32_t set, uint32_t *axis) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < TARN_MAX_DIMS; i++)
    if (set >> i & 1) axis[n++] = i;
  return n;
}

static int64_t extent_of(const int64_t *dim, const uint32_t *axis, uint32_t n) {
  int64_t p = 1;
  for (uint32_t i = 0; i < n; i++)
    if (__builtin_mul_overflow(p, dim[axis[i]], &p)) return INT64_MAX;
  return p;
}

/* ---------------------------------------------------------------- hoist */

typedef struct part { /* body or epilogue of a stage */
  kern *k;
  kstage *st;
  bool body;
  uint32_t ndim;
  int64_t dim[2 * TARN_MAX_DIMS];
  fxwalk w;
  bool constant[K_FX]; /* by walk number: of constants only, with a hole */
  bool free[K_FX];     /* of nothing: a literal */
  uint32_t loops[K_FX];
  const rhost *host;                  /* affine parts */
  vrange hole[K_READS + 1], is[K_FX]; /* of holes and nodes */
  uint32_t nhole;
} part;

static const tarn_read *part_read(const part *p, uint32_t hole) {
  if (p->body) return &p->st->read[hole];
  return hole == 0 ? NULL : &p->st->read[p->st->nb + hole - 1];
}

static uint32_t walk_index(const fxwalk *w, uint32_t id) {
  uint32_t i = 0;
  while (w->id[i] != id) i++;
  return i;
}

static void classify(rsite *s, part *p) {
  for (uint32_t i = 0; i < p->w.n; i++) {
    const tarn_fx *x = tarn_fx_get(p->k->L, p->w.id[i]);
    bool hole = x->op == TARN_FX_HOLE, all = true, some = false;
    const tarn_read *r = hole ? part_read(p, x->hole) : NULL;
    p->loops[i] = r ? map_uses(p->k->L, r->map) : 0;
    for (uint32_t a = 0; a < tarn_fx_arity(x->op); a++) {
      uint32_t j = walk_index(&p->w, x->kid[a]);
      p->loops[i] |= p->loops[j];
      all &= p->constant[j] || p->free[j];
      some |= p->constant[j];
    }
    p->free[i] = !hole && all && !some;
    p->constant[i] = hole ? r && !r->stage && site_const(s, p->k->leaf[r->src]) : all && some;
  }
}

/* What is known of the nodes. */
static void learn(const rsite *s, part *p) {
  p->host = s->e->host;
  p->nhole = vrange_holes(p->host, p->k, p->st, p->body, p->hole);
  vrange_walk(p->k->L, &p->w, p->hole, p->nhole, p->is);
}

/* Is the body a product of widened bytes, or of bf16? What sums those reads them as they are
 * (integers.c, narrow.c). */
static bool of_narrow(const kern *k, const kstage *st) {
  const tarn_fx *x = tarn_fx_get(k->L, st->body);
  if (x->op != TARN_FX_MUL || st->reducer == TARN_NONE) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const tarn_fx *c = tarn_fx_get(k->L, x->kid[i]),
                  *h = c->op == TARN_FX_CAST ? tarn_fx_get(k->L, c->kid[0]) : c;
    if (c->op != TARN_FX_CAST || h->op != TARN_FX_HOLE || st->read[h->hole].stage) return false;
    tarn_dtype t = kern_leaf_type(k, st->read[h->hole].src)->dtype;
    bool bytes = c->dtype == TARN_I32 && (t == TARN_I8 || t == TARN_U8);
    if (!bytes && (c->dtype != TARN_F32 || t != TARN_BF16)) return false;
  }
  return true;
}
/* Worth a tensor of its own: it computes something, some user of it is not constant, and it is not
 * much larger than what it is made of. */
static bool worth(const part *p, uint32_t i) {
  const tarn_fx *x = tarn_fx_get(p->k->L, p->w.id[i]);
  if (p->body && of_narrow(p->k, p->st)) return false;
  uint32_t axis[TARN_MAX_DIMS], n = loops_of(p->loops[i], axis);
  if (!p->constant[i] || x->op == TARN_FX_HOLE) return false;
  bool top = i == p->w.n - 1;
  for (uint32_t j = i + 1; j < p->w.n; j++) {
    const tarn_fx *y = tarn_fx_get(p->k->L, p->w.id[j]);
    for (uint32_t a = 0; a < tarn_fx_arity(y->op); a++)
      top |= y->kid[a] == p->w.id[i] && !p->constant[j];
  }
  int64_t most = 1024, size;
  for (uint32_t r = 0; r < p->st->nb + p->st->ne; r++)
    if (!p->st->read[r].stage &&
        (size = tarn_type_count(kern_leaf_type(p->k, p->st->read[r].src)) * 4) > most)
      most = size;
  return top && extent_of(p->dim, axis, n) <= most;
}

/* The constant tensor of node i, and a read of it. */
static bool hoist_node(part *p, uint32_t i, uint32_t *hole) {
  kern *k = p->k;
  fxwalk w;
  tarn_read read[K_READS];
  uint32_t with[K_READS + 1], axis[TARN_MAX_DIMS], n = 0, naxis = loops_of(p->loops[i], axis);
  if (!fx_walk(k->L, p->w.id[i], &w)) return false;
  for (uint32_t j = 0; j < K_READS + 1; j++) with[j] = TARN_NONE;
  for (uint32_t j = 0; j < w.n; j++) {
    const tarn_fx *x = tarn_fx_get(k->L, w.id[j]);
    if (x->op != TARN_FX_HOLE) continue;
    with[x->hole] = tarn_fx_hole(k->L, n);
    read[n++] = *part_read(p, x->hole);
  }
  uint32_t f = tarn_fx_subst(k->L, p->w.id[i], with, K_READS + 1);
  uint32_t c = kern_part(k, p->dim, p->ndim, axis, naxis, f, read, n);
  uint32_t leaf = c == TARN_NONE ? c : kern_leaf(k, c);
  if (leaf == TARN_NONE) return false;
  tarn_read r = {false, leaf, map_project(k->L, p->dim, p->ndim, axis, naxis)};
  uint32_t at = kern_add_read(p->st, p->body, r);
  *hole = at == TARN_NONE ? at : tarn_fx_hole(k->L, at + !p->body);
  return at != TARN_NONE;
}

static bool hoist_part(rsite *s, kern *k, kstage *st, bool body, bool *any) {
  uint32_t *f = body ? &st->body : &st->epi, node[K_READS], with[K_READS], n = 0;
  part p = {.k = k, .st = st, .body = body};
  if (*f == TARN_NONE) return true;
  if (!fx_walk(k->L, *f, &p.w)) return false;
  p.ndim = kern_dims(k, st, body, p.dim);
  classify(s, &p);
  for (uint32_t i = 0; i < p.w.n && n < K_READS; i++) {
    if (!worth(&p, i)) continue;
    if (!hoist_node(&p, i, &with[n])) return false;
    node[n++] = p.w.id[i];
  }
  if (n == 0) return true;
  *any = true;
  *f = fx_replace(k->L, *f, node, with, n);
  return *f != TARN_NONE;
}

/* Maps whose children may still be inlined wait until they are. */
bool when_hoist(rsite *s) {
  if (s->root != TARN_NONE && site_const(s, s->root)) return false;
  bool all = true;
  for (uint32_t i = 0; i < s->n; i++) all &= site_const(s, s->kid[i].id);
  return !all;
}

uint32_t build_hoist(rsite *s) {
  kern k;
  bool any = false;
  if (!site_root(s, &k)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++)
    if (!hoist_part(s, &k, &k.stage[i], true, &any) || !hoist_part(s, &k, &k.stage[i], false, &any))
      return TARN_NONE;
  return any ? kern_store(&k) : TARN_NONE;
}

/* ---------------------------------------------------------------- affine parts */

/* a * base + b, a and b of constants (TARN_NONE: 1 and 0); base: a walk number. */
typedef struct affine {
  bool is, divides;
  bool loose; /* its error may be that of half a unit in the last place of a * base, and of b */
  uint32_t a, b, base, ops; /* ops: those that stand in the expression */
} affine;

static uint32_t mul(tarn_lang *L, uint32_t x, uint32_t y) {
  return tarn_fx_op(L, TARN_FX_MUL, x, y, 0);
}
static tarn_range range_of(const part *p, uint32_t f) {
  return vrange_of(p->k->L, f, p->hole, p->nhole).r;
}

/* May a constant be divided by as a product? */
static bool inverts(tarn_dtype t, tarn_range c) {
  return c.finite && vrange_least(c) >= 2 * vrange_normal(t) &&
         vrange_most(c) * vrange_normal(t) <= 0.5;
}
static bool power_of_two(tarn_range r) {
  int e;
  return r.lo == r.hi && isfinite(r.lo) && fabs(frexp(r.lo, &e)) == 0.5;
}
static affine affine_none(void) { return (affine){.a = TARN_NONE, .b = TARN_NONE}; }
static affine affine_plain(const part *p, uint32_t base) {
  return (affine){
      .is = true, .loose = p->is[base].r.rounded, .a = TARN_NONE, .b = TARN_NONE, .base = base};
}

static tarn_range negated(tarn_range r) {
  double lo = r.lo;
  r.lo = -r.hi, r.hi = -lo;
  return r;
}
/* Whole numbers that the type holds, so that no order of a sum of such loses any of them. */
static bool exactly_whole(const vrange *k) {
  return k->r.whole && vrange_most(k->r) <= vrange_exact(k->type);
}

/* Is the sum of two constants one of them, and the other lost? */
static bool swallows(tarn_dtype t, tarn_range a, tarn_range b, bool minus) {
  if (a.lo != a.hi || b.lo != b.hi || a.lo == 0 || b.lo == 0) return false;
  const tarn_value v[2] = {{.d = a.lo}, {.d = b.lo}};
  double sum = tarn_fx_step(minus ? TARN_FX_SUB : TARN_FX_ADD, t, t, v, TARN_STRICT).d;
  return fabs(sum) == fabs(a.lo) || fabs(sum) == fabs(b.lo);
}

/* k, the value x, plus or minus c, which makes sum. */
static affine affine_sum(const part *p, affine k, const vrange *x, uint32_t c, bool minus,
                         const vrange *sum) {
  tarn_lang *L = p->k->L;
  tarn_range r = range_of(p, c);
  if (k.b == TARN_NONE) {
    k.b = minus ? tarn_fx_op(L, TARN_FX_NEG, c, 0, 0) : c;
    k.loose |= vrange_apart(x->r, minus ? negated(r) : r);
    return k;
  }
  bool real = tarn_dtype_is_float(sum->type);
  if (real && exactly_whole(x) && !exactly_whole(sum)) return affine_none();
  tarn_range b = range_of(p, k.b);
  if (real && b.finite && r.finite && vrange_most(b) + vrange_most(r) > vrange_largest(sum->type))
    return affine_none();
  if (real && swallows(sum->type, b, r, minus)) return affine_none();
  k.b = tarn_fx_op(L, minus ? TARN_FX_SUB : TARN_FX_ADD, k.b, c, 0);
  k.loose |= !exactly_whole(sum); /* three terms, which have several orders */
  return k;
}

static affine affine_neg(const part *p, affine k, tarn_dtype t) {
  tarn_lang *L = p->k->L;
  k.a = k.a == TARN_NONE ? tarn_fx_const(L, t, -1) : tarn_fx_op(L, TARN_FX_NEG, k.a, 0, 0);
  if (k.b != TARN_NONE) k.b = tarn_fx_op(L, TARN_FX_NEG, k.b, 0, 0);
  return k;
}

static affine affine_times(const part *p, affine k, uint32_t c, bool over, tarn_dtype t) {
  tarn_lang *L = p->k->L;
  tarn_fxop op = over ? TARN_FX_DIV : TARN_FX_MUL;
  uint32_t one = tarn_fx_const(L, t, 1), by = over ? tarn_fx_op(L, op, one, c, 0) : c;
  if (tarn_dtype_is_float(t)) {
    tarn_range r = range_of(p, by);
    bool exact = power_of_two(r);
    if ((over && !inverts(t, range_of(p, c))) || (k.b != TARN_NONE && !k.loose))
      return affine_none();
    if ((k.a != TARN_NONE && !vrange_folds(t, range_of(p, k.a), r)) ||
        (k.b != TARN_NONE && !r.finite))
      return affine_none();
    if (k.b != TARN_NONE && vrange_most(range_of(p, k.b)) * vrange_most(r) > vrange_largest(t) / 2)
      return affine_none();
    k.loose |= !exact && k.b == TARN_NONE;
  }
  k.a = k.a == TARN_NONE ? by : tarn_fx_op(L, op, k.a, c, 0);
  if (k.b != TARN_NONE) k.b = tarn_fx_op(L, op, k.b, c, 0);
  return k;
}

/* One node from its kids; fixed[j]: kid j is of constants; at[j]: its walk number. */
static affine affine_node(const part *p, const tarn_fx *x, const affine *kid, const bool *fixed,
                          const uint32_t *at, const vrange *sum, tarn_dtype t) {
  bool left = kid[0].is && (tarn_fx_arity(x->op) == 1 || fixed[1]);
  bool right = tarn_fx_arity(x->op) == 2 && kid[1].is && fixed[0];
  if (!left && !right) return affine_none();
  affine k = left ? kid[0] : kid[1];
  k.ops++;
  uint32_t c = left ? x->kid[1] : x->kid[0];
  vrange of = p->is[at[left ? 0 : 1]];
  if (!left && x->op == TARN_FX_SUB) of.r = negated(of.r);
  switch (x->op) {
  case TARN_FX_ADD: return affine_sum(p, k, &of, c, false, sum);
  case TARN_FX_SUB:
    return left ? affine_sum(p, k, &of, c, true, sum)
                : affine_sum(p, affine_neg(p, k, t), &of, c, false, sum);
  case TARN_FX_MUL: return affine_times(p, k, c, false, t);
  case TARN_FX_DIV: /* of integers it rounds */
    k.divides = true;
    return left && tarn_dtype_is_float(t) ? affine_times(p, k, c, true, t) : affine_none();
  case TARN_FX_NEG: return affine_neg(p, k, t);
  default: return affine_none();
  }
}
/* Where what the kid is cannot be gone on with, it is a value like any other. */
static affine affine_step(const part *p, const tarn_fx *x, const affine *kid, const bool *fixed,
                          const uint32_t *at, const vrange *sum, tarn_dtype t, bool any) {
  affine k = affine_node(p, x, kid, fixed, at, sum, t), again[2];
  if (k.is || !any || tarn_fx_arity(x->op) > 2) return k;
  for (uint32_t a = 0; a < 2; a++) again[a] = kid[a].is ? affine_plain(p, at[a]) : kid[a];
  return affine_node(p, x, again, fixed, at, sum, t);
}

static uint32_t uses_of(const part *p, uint32_t i) {
  uint32_t n = i == p->w.n - 1;
  for (uint32_t j = i + 1; j < p->w.n; j++) {
    const tarn_fx *y = tarn_fx_get(p->k->L, p->w.id[j]);
    for (uint32_t a = 0; a < tarn_fx_arity(y->op); a++) n += y->kid[a] == p->w.id[i];
  }
  return n;
}

/* Every node of the part as affine in what it is made of: in hole 0 alone, or (any: the nodes of
 * type t) in whatever varies and is no such expression itself, or is used several times. */
static void find_affine(part *p, tarn_dtype t, bool any, affine *all) {
  for (uint32_t i = 0; i < p->w.n; i++) {
    tarn_fx x = *tarn_fx_get(p->k->L, p->w.id[i]);
    uint32_t arity = tarn_fx_arity(x.op), at[3] = {0};
    affine kid[3] = {{0}}, plain = affine_plain(p, i);
    bool fixed[3] = {false}, of_type = p->is[i].typed && p->is[i].type == t;
    for (uint32_t a = 0; a < arity; a++) {
      uint32_t j = at[a] = walk_index(&p->w, x.kid[a]);
      kid[a] = all[j];
      fixed[a] = p->constant[j] || p->free[j];
      if (any && all[j].is && uses_of(p, j) > 1) kid[a] = affine_plain(p, j);
    }
    plain.is = any ? !p->constant[i] && !p->free[i] : x.op == TARN_FX_HOLE && x.hole == 0;
    bool sum = (arity == 1 || arity == 2) && (!any || of_type);
    all[i] = sum ? affine_step(p, &x, kid, fixed, at, &p->is[i], t, any) : plain;
    if (any && !all[i].is) all[i] = plain;
  }
}
/* Is node i affine, and no user of it the same expression continued? */
static bool is_whole(const part *p, const affine *all, uint32_t i) {
  bool top = i == p->w.n - 1;
  for (uint32_t j = i + 1; j < p->w.n; j++) {
    const tarn_fx *y = tarn_fx_get(p->k->L, p->w.id[j]);
    for (uint32_t a = 0; a < tarn_fx_arity(y->op); a++)
      top |=
          y->kid[a] == p->w.id[i] && !(all[j].is && all[j].base == all[i].base && all[j].base != j);
  }
  return all[i].is && top;
}
/* a * base + b as an expression. */
static uint32_t affine_of(const part *p, affine k) {
  uint32_t x = p->w.id[k.base];
  if (k.a != TARN_NONE) x = mul(p->k->L, x, k.a);
  return k.b == TARN_NONE ? x : tarn_fx_op(p->k->L, TARN_FX_ADD, x, k.b, 0);
}

/* The constant factor of a sum of products of two: its read's number. */
static bool constant_factor(rsite *s, const kern *k, uint32_t *which) {
  const kstage *st = &k->stage[0];
  if (k->nstage != 1 || st->reducer == TARN_NONE || st->epi == TARN_NONE || st->nb != 2)
    return false;
  if (tarn_reducer_get(k->L, st->reducer)->kind != TARN_RED_SUM) return false;
  const tarn_fx *x = tarn_fx_get(k->L, st->body);
  uint32_t h0 = tarn_fx_hole(k->L, 0), h1 = tarn_fx_hole(k->L, 1);
  if (x->op != TARN_FX_MUL ||
      !((x->kid[0] == h0 && x->kid[1] == h1) || (x->kid[0] == h1 && x->kid[1] == h0)))
    return false;
  bool c0 = !st->read[0].stage && site_const(s, k->leaf[st->read[0].src]);
  bool c1 = !st->read[1].stage && site_const(s, k->leaf[st->read[1].src]);
  *which = c0 ? 0 : 1;
  return c0 != c1;
}

/* ---------------------------------------------------------------- affine */

/* The only affine expression of the epilogue, if it has a factor; its walk number. */
static bool only_affine(part *p, tarn_dtype t, uint32_t *at, affine *out) {
  affine all[K_FX];
  uint32_t found = 0;
  find_affine(p, t, false, all);
  for (uint32_t i = 0; i < p->w.n; i++)
    if (is_whole(p, all, i)) *at = i, *out = all[i], found++;
  return found == 1 && out->a != TARN_NONE;
}

/* Has the epilogue of a sum of products with a constant a factor that can move into that? */
static bool has_factor(rsite *s, kern *k, part *p, uint32_t *which, uint32_t *at, affine *f) {
  if (!constant_factor(s, k, which)) return false;
  *p = (part){.k = k, .st = &k->stage[0], .body = false};
  if (!fx_walk(k->L, p->st->epi, &p->w)) return false;
  p->ndim = kern_dims(k, p->st, false, p->dim);
  classify(s, p);
  learn(s, p);
  return only_affine(p, tarn_reducer_get(k->L, p->st->reducer)->dtype, at, f);
}

/* In what a stage maps, or in its epilogue; what it sums is other rules' (Winograd's small matrices
 * stay two factors). */
static bool to_affine(rsite *s, kern *k, kstage *st, bool body, bool *any) {
  uint32_t *f = body ? &st->body : &st->epi;
  affine all[K_FX];
  for (bool more = *f != TARN_NONE; more;) {
    part p = {.k = k, .st = st, .body = body};
    if (!fx_walk(k->L, *f, &p.w)) return false;
    p.ndim = kern_dims(k, st, body, p.dim);
    classify(s, &p);
    learn(s, &p);
    find_affine(&p, TARN_F32, true, all);
    more = false;
    for (uint32_t i = p.w.n; i-- > 0 && !more;) {
      uint32_t need = (all[i].a != TARN_NONE) + (all[i].b != TARN_NONE);
      bool apart =
          need == 2 && tarn_fx_get(k->L, p.w.id[i])->op == TARN_FX_MUL; /* a sum, then a product */
      if (!is_whole(&p, all, i) || (all[i].ops <= need && !all[i].divides && !apart)) continue;
      uint32_t now = affine_of(&p, all[i]);
      if ((*f = fx_replace(k->L, *f, &p.w.id[i], &now, 1)) == TARN_NONE) return false;
      more = *any = true;
    }
  }
  return true;
}

uint32_t build_affine(rsite *s) {
  kern k;
  part p;
  uint32_t which, at;
  affine f;
  bool any = false;
  if (!site_root(s, &k) || has_factor(s, &k, &p, &which, &at, &f)) return TARN_NONE;
  for (uint32_t i = 0; i < k.nstage; i++)
    if (!to_affine(s, &k, &k.stage[i], k.stage[i].reducer == TARN_NONE, &any)) return TARN_NONE;
  return any ? kern_store(&k) : TARN_NONE;
}

/* ---------------------------------------------------------------- scale */

/* w * a as a tensor over the loops that w's read uses. The reads of a are over the loops of the
 * result, which come first among those of the body. */
static uint32_t scaled_weight(part *p, uint32_t which, uint32_t a, tarn_read *out) {
  kern *k = p->k;
  kstage *st = p->st;
  int64_t dim[2 * TARN_MAX_DIMS];
  fxwalk w;
  tarn_read read[K_READS];
  uint32_t axis[TARN_MAX_DIMS], with[K_READS + 1], n = 1, ndim = kern_dims(k, st, true, dim);
  uint32_t used = map_uses(k->L, st->read[which].map), naxis = loops_of(used, axis),
           outs[TARN_MAX_DIMS];
  for (uint32_t i = 0; i < p->ndim; i++) outs[i] = i;
  uint32_t widen = map_project(k->L, dim, ndim, outs, p->ndim);
  if (!fx_walk(k->L, a, &w)) return TARN_NONE;
  for (uint32_t j = 0; j < K_READS + 1; j++) with[j] = TARN_NONE;
  read[0] = st->read[which];
  for (uint32_t j = 0; j < w.n; j++) {
    const tarn_fx *x = tarn_fx_get(k->L, w.id[j]);
    if (x->op != TARN_FX_HOLE) continue;
    tarn_read r = *part_read(p, x->hole);
    if (map_uses(k->L, r.map) & ~used)
      return TARN_NONE; /* the factor varies where the weight does not */
    r.map = tarn_map_compose(k->L, widen, r.map);
    if (r.map == TARN_NONE || n == K_READS) return TARN_NONE;
    with[x->hole] = tarn_fx_hole(k->L, n);
    read[n++] = r;
  }
  int64_t size = tarn_type_count(kern_leaf_type(k, st->read[which].src));
  tarn_range weight = p->host->range(p->host->user, k->leaf[st->read[which].src]);
  tarn_dtype t = kern_leaf_type(k, st->read[which].src)->dtype;
  if (extent_of(dim, axis, naxis) > 2 * size) return TARN_NONE;
  if (tarn_dtype_is_float(t) && !vrange_folds(t, weight, range_of(p, a))) return TARN_NONE;
  uint32_t f = mul(k->L, tarn_fx_hole(k->L, 0), tarn_fx_subst(k->L, a, with, K_READS + 1));
  *out = (tarn_read){false, 0, map_project(k->L, dim, ndim, axis, naxis)};
  return kern_part(k, dim, ndim, axis, naxis, f, read, n);
}

uint32_t build_scale(rsite *s) {
  kern k;
  part p;
  uint32_t which, at;
  affine f;
  tarn_read r;
  if (!site_root(s, &k) || !has_factor(s, &k, &p, &which, &at, &f)) return TARN_NONE;
  kstage *st = p.st;
  uint32_t w = scaled_weight(&p, which, f.a, &r), leaf = w == TARN_NONE ? w : kern_leaf(&k, w);
  if (leaf == TARN_NONE) return TARN_NONE;
  r.src = leaf;
  uint32_t h0 = tarn_fx_hole(k.L, 0),
           now = f.b == TARN_NONE ? h0 : tarn_fx_op(k.L, TARN_FX_ADD, h0, f.b, 0);
  st->epi = fx_replace(k.L, st->epi, &p.w.id[at], &now, 1);
  st->read[which] = r;
  return st->epi == TARN_NONE ? TARN_NONE : kern_store(&k);
}
