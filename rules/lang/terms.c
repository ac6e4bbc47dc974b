/* Plain terms as a host: matches rules without an e-graph. */
#include "rules/lang/range.h"
#include <math.h>
#include <string.h>

typedef struct terms {
  tarn_lang *L;
  tarn_map *constant; /* term -> 1 no, 2 yes */
  tarn_map *range;    /* term -> tarn_range */
  tarn_map *uniform;  /* term -> fx constant, or TARN_NONE */
  tarn_map *bounds;   /* of inputs that stand for constants; NULL */
} terms;

static tarn_lang *lang_of(void *user) { return ((terms *)user)->L; }

static bool term_const(void *user, uint32_t id);
static bool const_node(void *user, uint32_t id) {
  tarn_lang *L = lang_of(user);
  const tarn_node *x = tarn_term_get(L, id);
  if (x->op == TARN_OP_INPUT) { /* a big constant whose values a proof does not carry */
    const char *name = tarn_payload_get(L, x->payload)->name;
    return strncmp(name, "const:", 6) == 0;
  }
  if (tarn_is_outside(L, x->op, x->payload)) return false;
  for (uint32_t i = 0; i < x->n; i++)
    if (!term_const(user, x->kid[i])) return false;
  return true;
}

static bool term_const(void *user, uint32_t id) {
  terms *h = user;
  uint64_t *had = tarn_map_get(h->constant, id);
  if (had) return *had == 2;
  bool yes = const_node(user, id);
  *tarn_map_at(h->constant, id, NULL) = yes ? 2 : 1;
  return yes;
}

/* Constants all the way down, with their values, and not many. */
static bool term_known(tarn_lang *L, uint32_t id, int *left) {
  const tarn_node *x = tarn_term_get(L, id);
  bool values = x->op != TARN_OP_INPUT && !tarn_is_outside(L, x->op, x->payload) && --*left >= 0;
  for (uint32_t i = 0; i < x->n && values; i++)
    values = term_known(L, tarn_term_get(L, id)->kid[i], left);
  return values;
}

/* The value of a small term of constants; NULL: it is none. Saturation computes smaller ones, and
 * knows what is a view of them. */
static const tarn_tensor *term_value(void *user, uint32_t id) {
  enum { SMALL = 1 << 16 /* bytes */, NODES = 1000 };
  int left = NODES;
  tarn_lang *L = lang_of(user);
  const tarn_node *x = tarn_term_get(L, id);
  const tarn_type *t = tarn_type_get(L, x->type);
  if (x->op == TARN_OP_CONST) return tarn_payload_get(L, x->payload)->tensor;
  if (t->tuple || (size_t)tarn_type_count(t) * tarn_dtype_size(t->dtype) > SMALL ||
      !term_const(user, id) || !term_known(L, id, &left))
    return NULL;
  tarn_tensor *out;
  tarn_eval(L, &(tarn_term){id}, 1, NULL, 0, TARN_STRICT, NULL, &out);
  return out;
}

uint32_t r_uniform_moved(const tarn_lang *L, uint32_t op, uint32_t payload, const uint32_t *kid,
                         uint32_t n, uint32_t (*uniform)(void *user, uint32_t id), void *user) {
  tarn_opvalues from = tarn_op_info(op)->values;
  bool checks = op == TARN_OP_GATHER; /* a number in its place would not check the indices */
  uint32_t u = from == TARN_OPV_NEW || checks ? TARN_NONE : uniform(user, kid[0]);
  const tarn_payload *p = tarn_payload_get(L, payload);
  for (uint32_t i = 1; from == TARN_OPV_ALL && i < n && u != TARN_NONE; i++)
    if (uniform(user, kid[i]) != u) u = TARN_NONE;
  if (op == TARN_OP_PAD && p->value != u) u = TARN_NONE;
  bool guarded = op == TARN_OP_VIEW && tarn_imap_get(L, p->id)->nguard;
  return guarded && tarn_imap_get(L, p->id)->fill != u ? TARN_NONE : u;
}
static uint32_t uniform_value(void *user, uint32_t id) {
  tarn_lang *L = lang_of(user);
  const tarn_tensor *t = term_value(user, id);
  if (!t) return TARN_NONE;
  size_t each = tarn_dtype_size(t->dtype), all = (size_t)tarn_tensor_count(t) * each;
  if (all == 0 || (all > each && memcmp(t->data, (const char *)t->data + each, all - each)))
    return TARN_NONE;
  tarn_value v = tarn_tensor_get(t, 0);
  return tarn_dtype_is_float(t->dtype) ? tarn_fx_const(L, t->dtype, v.d)
                                       : tarn_fx_iconst(L, t->dtype, v.i);
}

static uint32_t term_uniform(void *user, uint32_t id) {
  terms *h = user;
  const tarn_node x = *tarn_term_get(h->L, id);
  uint64_t *had = tarn_map_get(h->uniform, id);
  if (had) return (uint32_t)*had;
  uint32_t u = r_uniform_moved(h->L, x.op, x.payload, x.kid, x.n, term_uniform, user);
  if (u == TARN_NONE) u = uniform_value(user, id);
  *tarn_map_at(h->uniform, id, NULL) = u;
  return u;
}

static tarn_range term_range(void *user, uint32_t id);
static tarn_range range_of_term(terms *h, uint32_t id) {
  tarn_lang *L = h->L;
  tarn_node x = *tarn_term_get(L, id);
  vrange kid[R_KIDS], k = {.r = {.lo = -INFINITY, .hi = INFINITY, .nan = true}};
  const uint64_t *bounds = h->bounds ? tarn_map_get(h->bounds, id) : NULL;
  if (bounds) {
    const double *v = (const double *)(uintptr_t)*bounds;
    return (tarn_range){.lo = v[0], .hi = v[1], .finite = isfinite(v[0]) && isfinite(v[1])};
  }
  const tarn_tensor *value = term_value(h, id); /* then the range is exact */
  if (value) return vrange_tensor(value).r;
  if (x.n > R_KIDS || tarn_type_get(L, x.type)->tuple) return k.r;
  for (uint32_t i = 0; i < x.n; i++) {
    const tarn_type *t = tarn_term_type(L, x.kid[i]);
    kid[i] = (vrange){!t->tuple, t->dtype, term_range(h, x.kid[i])};
  }
  k = vrange_node(L, x.op, x.payload, x.type, kid, x.n);
  return k.r;
}

/* As for classes, from the term alone. */
static tarn_range term_range(void *user, uint32_t id) {
  terms *h = user;
  uint64_t *had = tarn_map_get(h->range, id);
  if (had) return *(const tarn_range *)(uintptr_t)*had;
  tarn_range r = range_of_term(h, id);
  *tarn_map_at(h->range, id, NULL) =
      (uint64_t)(uintptr_t)tarn_copy(tarn_lang_ctx(h->L), &r, sizeof r);
  return r;
}

static bool term_depends(void *user, uint32_t on, uint32_t id) {
  const tarn_node *x = tarn_term_get(lang_of(user), id);
  if (id == on) return true;
  for (uint32_t i = 0; i < x->n; i++)
    if (term_depends(user, on, x->kid[i])) return true;
  return false;
}

unsigned r_nest_kinds(const tarn_lang *L, uint32_t nest) {
  const tarn_nest *n = tarn_nest_get(L, nest);
  bool red = n->nstage > 1;
  uint32_t outs = 0;
  for (uint32_t i = 0; i < n->nstage; i++) {
    red |= tarn_fn_get(L, n->stage[i].fn)->red != TARN_NONE;
    outs += n->stage[i].out;
  }
  return outs > 1 ? 0 : red ? R_HAS_RED : R_HAS_MAP;
}

static unsigned term_facts(void *user, uint32_t id) {
  const tarn_node *x = tarn_term_get(lang_of(user), id);
  if (x->op == TARN_OP_VIEW) return R_HAS_VIEW;
  if (x->op != TARN_OP_NEST) return 0;
  return r_nest_kinds(lang_of(user), tarn_payload_get(lang_of(user), x->payload)->id);
}

rhost tarn_r_term_host(tarn_lang *L) {
  terms *h = TARN_NEW(tarn_lang_ctx(L), terms);
  tarn_ctx *cx = tarn_lang_ctx(L);
  *h = (terms){
      .L = L, .constant = tarn_map_new(cx), .range = tarn_map_new(cx), .uniform = tarn_map_new(cx)};
  return (rhost){.nest = kern_term_host(L),
                 .user = h,
                 .is_const = term_const,
                 .uniform = term_uniform,
                 .range = term_range,
                 .depends = term_depends,
                 .facts = term_facts};
}

void r_term_bounds(rhost *host, tarn_map *bounds) {
  terms *h = host->user;
  h->bounds = bounds;
  h->range = tarn_map_new(tarn_lang_ctx(h->L));
}
