/* Plain terms as a host: matches rules without an e-graph. */
#include "rules/lang/range.h"
#include <math.h>
#include <string.h>

/* What is found out with one effort. */
typedef struct memo {
  tarn_map *range;   /* term -> tarn_range */
  tarn_map *uniform; /* term -> fx constant, or TARN_NONE */
  tarn_map *value;   /* term of constants -> its tensor, or NULL */
} memo;
typedef struct terms {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_map *constant; /* term -> 1 no, 2 yes */
  r_effort effort;
  memo memo[R_STATED + 1];
  tarn_map *bounds; /* of inputs that stand for constants; NULL */
  tarn_map *asked;  /* those whose bounds were used */
} terms;

static memo new_memo(tarn_ctx *cx) {
  return (memo){tarn_map_new(cx), tarn_map_new(cx), tarn_map_new(cx)};
}
static memo *memo_of(terms *h) { return &h->memo[h->effort]; }
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

/* ---------------------------------------------------------------- values */

static bool fits(tarn_lang *L, uint32_t type, int64_t bytes) {
  const tarn_type *t = tarn_type_get(L, type);
  int64_t each = (int64_t)tarn_dtype_size(t->dtype);
  return !t->tuple && tarn_type_count(t) > 0 && tarn_type_count(t) <= bytes / each;
}

const tarn_tensor *r_fold(tarn_lang *L, uint32_t op, uint32_t payload, uint32_t type,
                          const uint32_t *value, uint32_t n) {
  tarn_term kid[R_FOLD_KIDS];
  if (n == 0 || n > R_FOLD_KIDS || !fits(L, type, R_SMALL)) return NULL;
  for (uint32_t i = 0; i < n; i++) kid[i] = tarn_mk(L, TARN_OP_CONST, value[i], NULL, 0);
  tarn_term t = tarn_mk(L, op, payload, kid, n);
  tarn_tensor *out;
  tarn_eval(L, &t, 1, NULL, 0, TARN_STRICT, NULL, &out);
  return out;
}

typedef struct valuing {
  terms *h;
  tarn_term t;
  const tarn_tensor *out;
} valuing;
static const tarn_tensor *term_value(terms *h, tarn_term t);

/* As saturation does: small, from small operands. */
static const tarn_tensor *folded(terms *h, tarn_term t) {
  tarn_node x = *tarn_term_get(h->L, t);
  uint32_t value[R_FOLD_KIDS];
  if (x.n > R_FOLD_KIDS || !fits(h->L, x.type, R_SMALL)) return NULL;
  for (uint32_t i = 0; i < x.n; i++) {
    const tarn_tensor *v = term_value(h, x.kid[i]);
    if (!v || tarn_tensor_bytes(v) > R_SMALL) return NULL;
    const tarn_type *type = tarn_term_type(h->L, x.kid[i]);
    value[i] = tarn_term_get(h->L, tarn_constant(h->L, "folded", v, type->ns))->payload;
  }
  return r_fold(h->L, x.op, x.payload, x.type, value, x.n);
}
/* Takes what t is made of from what is left; false: it is too much, or not known. */
static bool affordable(terms *h, tarn_term t, tarn_map *seen, int64_t *left) {
  bool fresh, fine = true;
  tarn_node x = *tarn_term_get(h->L, t);
  tarn_map_at(seen, t, &fresh);
  if (!fresh) return true;
  if (x.op == TARN_OP_INPUT) return false; /* a constant of which a proof gives no values */
  if (!tarn_type_get(h->L, x.type)->tuple) {
    const tarn_type *type = tarn_type_get(h->L, x.type);
    if (!fits(h->L, x.type, *left)) return false;
    *left -= tarn_type_count(type) * (int64_t)tarn_dtype_size(type->dtype);
  }
  for (uint32_t i = 0; i < x.n && fine; i++) fine = affordable(h, x.kid[i], seen, left);
  return fine;
}
/* Whatever it takes, within reason. */
static const tarn_tensor *computed(terms *h, tarn_term t) {
  int64_t left = INT64_C(1) << 30; /* bytes */
  if (!affordable(h, t, tarn_map_new(h->cx), &left)) return NULL;
  tarn_tensor *out;
  tarn_eval(h->L, &t, 1, NULL, 0, TARN_STRICT, NULL, &out);
  return out;
}
static void find_value(tarn_ctx *cx, void *arg) {
  valuing *v = arg;
  (void)cx;
  v->out = v->h->effort == R_AT_ONCE ? folded(v->h, v->t) : computed(v->h, v->t);
}
/* The value of a term of constants; NULL: it is none, or has none with this effort. */
static const tarn_tensor *term_value(terms *h, tarn_term t) {
  const tarn_node *x = tarn_term_get(h->L, t);
  if (x->op == TARN_OP_CONST) return tarn_payload_get(h->L, x->payload)->tensor;
  if (tarn_type_get(h->L, x->type)->tuple || !term_const(h, t)) return NULL;
  const uint64_t *had = tarn_map_get(memo_of(h)->value, t);
  if (had) return (const tarn_tensor *)(uintptr_t)*had;
  valuing v = {h, t, NULL};
  tarn_status st = tarn_protect(h->cx, find_value, &v);
  if (st && st != TARN_BAD_INPUT) tarn_reraise(h->cx, st);
  *tarn_map_at(memo_of(h)->value, t, NULL) = (uint64_t)(uintptr_t)v.out;
  return v.out;
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
  uint64_t *had = tarn_map_get(memo_of(h)->uniform, id);
  if (had) return (uint32_t)*had;
  uint32_t u = r_uniform_moved(h->L, x.op, x.payload, x.kid, x.n, term_uniform, user);
  if (u == TARN_NONE) u = uniform_value(user, id);
  *tarn_map_at(memo_of(h)->uniform, id, NULL) = u;
  return u;
}

static tarn_range term_range(void *user, uint32_t id);
/* Within bounds that a proof states of a constant. */
static tarn_range stated(tarn_dtype t, const double *v) {
  tarn_range r = vrange_any(t).r;
  r.lo = v[0], r.hi = v[1];
  r.nan = isinf(v[0]) && isinf(v[1]);
  r.finite = isfinite(v[0]) && isfinite(v[1]);
  return r;
}
static tarn_range range_of_term(terms *h, uint32_t id) {
  tarn_lang *L = h->L;
  tarn_node x = *tarn_term_get(L, id);
  vrange kid[R_KIDS], k = {.r = {.lo = -INFINITY, .hi = INFINITY, .nan = true}};
  const uint64_t *bounds = h->effort == R_STATED && h->bounds ? tarn_map_get(h->bounds, id) : NULL;
  if (bounds) {
    *tarn_map_at(h->asked, id, NULL) = 1;
    return stated(tarn_term_type(L, id)->dtype, (const double *)(uintptr_t)*bounds);
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
  uint64_t *had = tarn_map_get(memo_of(h)->range, id);
  if (had) return *(const tarn_range *)(uintptr_t)*had;
  tarn_range r = range_of_term(h, id);
  *tarn_map_at(memo_of(h)->range, id, NULL) =
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
  tarn_ctx *cx = tarn_lang_ctx(L);
  terms *h = TARN_NEW(cx, terms);
  *h = (terms){.L = L, .cx = cx, .constant = tarn_map_new(cx), .asked = tarn_map_new(cx)};
  h->memo[R_AT_ONCE] = new_memo(cx);
  return (rhost){.nest = kern_term_host(L),
                 .user = h,
                 .is_const = term_const,
                 .uniform = term_uniform,
                 .range = term_range,
                 .depends = term_depends,
                 .facts = term_facts};
}

void r_term_bounds(rhost *host, tarn_map *bounds) { ((terms *)host->user)->bounds = bounds; }

void r_term_effort(rhost *host, r_effort effort) {
  terms *h = host->user;
  h->effort = effort;
  if (effort == R_STATED) h->asked = tarn_map_new(h->cx);
  if (effort == R_STATED || !memo_of(h)->range) *memo_of(h) = new_memo(h->cx);
}

const tarn_map *r_term_asked(const rhost *host) { return ((const terms *)host->user)->asked; }
