/* Kernel form: every computation one nest over buffers, views inside its reads. And the host of plain terms. */
#include "rules/kernel.h"
#include "rules/facts.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- the host of terms */

typedef struct terms {
  tarn_lang *L;
  tarn_map *constant; /* term -> 1 no, 2 yes */
} terms;

static tarn_lang *lang_of(void *user) { return ((terms *)user)->L; }
static uint32_t term_type(void *user, uint32_t id) { return tarn_term_get(lang_of(user), id)->type; }

static bool term_const(void *user, uint32_t id);
static bool const_node(void *user, uint32_t id) {
  tarn_lang *L = lang_of(user);
  const tarn_node *x = tarn_term_get(L, id);
  if (x->op == TARN_OP_INPUT) { /* a big constant whose values a proof does not carry */
    const char *name = tarn_payload_get(L, x->payload)->name;
    return strncmp(name, "const:", 6) == 0;
  }
  if (x->op == TARN_OP_OPAQUE) return false;
  for (uint32_t i = 0; i < x->n; i++)
    if (!term_const(user, x->kid[i])) return false;
  return true;
}

static bool term_const(void *user, uint32_t id) {
  terms *h = user;
  uint64_t *known = tarn_map_get(h->constant, id);
  if (known) return *known == 2;
  bool yes = const_node(user, id);
  *tarn_map_at(h->constant, id, NULL) = yes ? 2 : 1;
  return yes;
}

/* Constants all the way down, with their values, and not many. */
static bool term_known(tarn_lang *L, uint32_t id, int *left) {
  const tarn_node *x = tarn_term_get(L, id);
  bool known = x->op != TARN_OP_INPUT && x->op != TARN_OP_OPAQUE && --*left >= 0;
  for (uint32_t i = 0; i < x->n && known; i++) known = term_known(L, tarn_term_get(L, id)->kid[i], left);
  return known;
}

/* The value of a small term of constants, as saturation computes it; NULL: it is none. */
static const tarn_tensor *term_value(void *user, uint32_t id) {
  enum { SMALL = 4096 /* bytes */, NODES = 1000 };
  int left = NODES;
  tarn_lang *L = lang_of(user);
  const tarn_node *x = tarn_term_get(L, id);
  const tarn_type *t = tarn_type_get(L, x->type);
  if (x->op == TARN_OP_CONST) return tarn_payload_get(L, x->payload)->tensor;
  if (t->tuple || (size_t)tarn_type_count(t) * tarn_dtype_size(t->dtype) > SMALL || !term_const(user, id) ||
      !term_known(L, id, &left))
    return NULL;
  tarn_tensor *out;
  tarn_eval(L, &(tarn_term){id}, 1, NULL, 0, TARN_STRICT, NULL, &out);
  return out;
}

static uint32_t term_uniform(void *user, uint32_t id) {
  tarn_lang *L = lang_of(user);
  const tarn_node *x = tarn_term_get(L, id);
  if (x->op == TARN_OP_VIEW && !tarn_imap_get(L, tarn_payload_get(L, x->payload)->id)->nguard)
    return term_uniform(user, x->kid[0]);
  const tarn_tensor *t = term_value(user, id);
  if (!t) return TARN_NONE;
  size_t each = tarn_dtype_size(t->dtype), all = (size_t)tarn_tensor_count(t) * each;
  if (all == 0 || (all > each && memcmp(t->data, (const char *)t->data + each, all - each))) return TARN_NONE;
  tarn_value v = tarn_tensor_get(t, 0);
  return tarn_dtype_is_float(t->dtype) ? tarn_fx_const(L, t->dtype, v.d) : tarn_fx_iconst(L, t->dtype, v.i);
}

/* Constants are looked at, everything else is unknown. */
static tarn_range term_range(void *user, uint32_t id) {
  tarn_lang *L = lang_of(user);
  const tarn_node *x = tarn_term_get(L, id);
  tarn_range r = {-INFINITY, INFINITY, false, true};
  if (tarn_op_is_view(x->op) && x->op != TARN_OP_PAD &&
      !(x->op == TARN_OP_VIEW && tarn_imap_get(L, tarn_payload_get(L, x->payload)->id)->nguard))
    return term_range(user, x->kid[0]);
  if (x->op != TARN_OP_CONST) return r;
  const tarn_tensor *t = tarn_payload_get(L, x->payload)->tensor;
  int64_t n = tarn_tensor_count(t);
  if (!tarn_dtype_is_float(t->dtype)) return (tarn_range){-INFINITY, INFINITY, true, false};
  if (n == 0) return r;
  r = (tarn_range){INFINITY, -INFINITY, true, false};
  for (int64_t i = 0; i < n; i++) {
    double v = tarn_tensor_get(t, i).d;
    r.nan |= isnan(v);
    r.finite &= isfinite(v);
    r.lo = fmin(r.lo, v), r.hi = fmax(r.hi, v);
  }
  return r;
}

static bool term_depends(void *user, uint32_t on, uint32_t id) {
  const tarn_node *x = tarn_term_get(lang_of(user), id);
  if (id == on) return true;
  for (uint32_t i = 0; i < x->n; i++)
    if (term_depends(user, on, x->kid[i])) return true;
  return false;
}

static unsigned term_facts(void *user, uint32_t id) {
  const tarn_node *x = tarn_term_get(lang_of(user), id);
  if (x->op == TARN_OP_VIEW) return R_HAS_VIEW;
  if (x->op != TARN_OP_NEST) return 0;
  return nest_kinds(lang_of(user), tarn_payload_get(lang_of(user), x->payload)->id);
}

static uint32_t term_mk(void *user, uint32_t op, uint32_t payload, const uint32_t *kid, uint32_t n) {
  tarn_lang *L = lang_of(user);
  uint32_t type[R_KIDS];
  if (n > R_KIDS) return TARN_NONE;
  for (uint32_t i = 0; i < n; i++) type[i] = tarn_term_get(L, kid[i])->type;
  if (tarn_type_of(L, op, payload, type, n) == TARN_NONE) return TARN_NONE;
  return tarn_mk(L, op, payload, kid, n);
}

static bool term_open(void *user, uint32_t id, uint32_t op,
                      bool (*test)(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n), void *arg, uint32_t *payload,
                      const uint32_t **kid, uint32_t *n) {
  const tarn_node *x = tarn_term_get(lang_of(user), id);
  if (x->op != op || !test(arg, x->payload, x->kid, x->n)) return false;
  *payload = x->payload, *kid = x->kid, *n = x->n;
  return true;
}

rhost r_term_host(tarn_lang *L) {
  terms *h = TARN_NEW(tarn_lang_ctx(L), terms);
  *h = (terms){L, tarn_map_new(tarn_lang_ctx(L))};
  return (rhost){.user = h,
                 .type = term_type,
                 .is_const = term_const,
                 .uniform = term_uniform,
                 .range = term_range,
                 .depends = term_depends,
                 .facts = term_facts,
                 .mk = term_mk,
                 .open = term_open};
}

/* ---------------------------------------------------------------- absorbing views */

bool kern_absorb(kern *k, uint32_t leaf, uint32_t map, uint32_t base) {
  uint32_t to = kern_leaf(k, base);
  if (to == TARN_NONE) return false;
  for (int pass = 0; pass < 2; pass++) /* first: is it possible at all? */
    for (uint32_t i = 0; i < k->nstage; i++)
      for (uint32_t r = 0; r < k->stage[i].nb + k->stage[i].ne; r++) {
        tarn_read *x = &k->stage[i].read[r];
        if (x->stage || x->src != leaf) continue;
        uint32_t m = tarn_map_compose(k->L, x->map, map);
        if (m == TARN_NONE) return false;
        if (pass) x->map = m, x->src = to;
      }
  return true;
}

/* ---------------------------------------------------------------- terms */

/* A view that no index map can be composed with (two paddings of different values) is computed: a copy of what it shows. */
static tarn_term computed_view(tarn_lang *L, tarn_term view) { return tarn_mk(L, TARN_OP_MATERIALISE, 0, &view, 1); }

static tarn_term kernel_of(renv *e, const tarn_node *x, const tarn_term *kid) {
  tarn_lang *L = e->L;
  uint32_t type[R_KIDS];
  kern k;
  for (uint32_t i = 0; i < x->n; i++) type[i] = tarn_term_get(L, kid[i])->type;
  uint32_t nest = tarn_nest_of(L, x->op, x->payload, type, x->n);
  if (!kern_load(&k, e, nest, kid, x->n)) return tarn_mk(L, x->op, x->payload, kid, x->n);
  for (uint32_t i = 0; i < k.nleaf; i++) {
    const tarn_node *v = tarn_term_get(L, k.leaf[i]);
    if (v->op == TARN_OP_VIEW && !kern_absorb(&k, i, tarn_payload_get(L, v->payload)->id, v->kid[0]))
      k.leaf[i] = computed_view(L, k.leaf[i]);
  }
  tarn_term t = kern_store(&k);
  return t == TARN_NONE ? tarn_mk(L, x->op, x->payload, kid, x->n) : t;
}

static tarn_term rebuilt(renv *e, tarn_term t, const tarn_term *kid) {
  tarn_node x = *tarn_term_get(e->L, t);
  bool kernel = x.op == TARN_OP_COMPUTE || x.op == TARN_OP_FOLD || x.op == TARN_OP_NEST;
  if (kernel && x.n <= R_KIDS) return kernel_of(e, &x, kid);
  tarn_term v = kern_view(e->L, &x, kid);
  if (v == TARN_NONE) v = tarn_mk(e->L, x.op, x.payload, kid, x.n);
  tarn_node y = *tarn_term_get(e->L, v);
  if (y.op != TARN_OP_VIEW || tarn_term_get(e->L, y.kid[0])->op != TARN_OP_VIEW) return v;
  tarn_term below = computed_view(e->L, y.kid[0]);
  return tarn_mk(e->L, TARN_OP_VIEW, y.payload, &below, 1);
}

tarn_term kern_form(renv *e, tarn_map *memo, tarn_term root) {
  tarn_lang *L = e->L;
  tarn_ctx *cx = tarn_lang_ctx(L);
  TARN_VEC(tarn_term) todo = {0};
  root = tarn_normalise(L, root);
  tarn_push(cx, &todo, root);
  while (todo.n) {
    tarn_term t = todo.p[todo.n - 1];
    const tarn_node *x = tarn_term_get(L, t);
    tarn_term *kid = TARN_ARRAY(cx, tarn_term, x->n ? x->n : 1);
    uint32_t have = todo.n;
    for (uint32_t i = 0; i < x->n; i++) {
      uint64_t *k = tarn_map_get(memo, x->kid[i]);
      if (k) kid[i] = (tarn_term)(*k - 1);
      else tarn_push(cx, &todo, x->kid[i]);
    }
    if (todo.n > have) continue;
    todo.n--;
    uint64_t *done = tarn_map_get(memo, t);
    if (!done) *tarn_map_at(memo, t, NULL) = (uint64_t)rebuilt(e, t, kid) + 1;
  }
  return (tarn_term)(*tarn_map_get(memo, root) - 1);
}

tarn_term tarn_kernel_form(tarn_lang *L, tarn_term root) {
  tarn_ctx *cx = tarn_lang_ctx(L);
  rhost host = r_term_host(L);
  renv *e = TARN_NEW(cx, renv);
  *e = (renv){.L = L, .host = &host};
  return kern_form(e, tarn_map_new(cx), root);
}
