/* Facts about a class beyond its type: computed at compile time, uniform, within a range, kinds of
 * kernels.
 *
 * Facts are interned by their bytes; the analysis carries the number. Joining takes what either
 * side knows, so facts only grow, and do not depend on the order of unions. */
#include "rules/lang/range.h"
#include "rules/run/run.h"
#include <math.h>
#include <string.h>

static facts unknown(void) {
  facts f;
  memset(&f, 0, sizeof f); /* padding too: the bytes are a key */
  f.uniform = f.value = TARN_NONE;
  f.range.lo = -INFINITY;
  f.range.hi = INFINITY;
  f.range.nan = true;
  return f;
}

/* Member by member: not what lies between them. */
static void set_range(facts *f, const tarn_range *r) {
  f->range.lo = r->lo + 0; /* one zero */
  f->range.hi = r->hi + 0;
  f->range.finite = r->finite, f->range.nan = r->nan;
  f->range.whole = r->whole, f->range.rounded = r->rounded;
}

static uint64_t intern(tarn_saturation *s, const facts *f) {
  return tarn_intern_add(s->fact, f, sizeof *f);
}

static const facts *facts_at(const tarn_saturation *s, uint64_t value) {
  size_t n;
  return tarn_intern_key(s->fact, (uint32_t)value, &n);
}

const facts *sat_facts(const tarn_saturation *s, uint32_t cls) {
  return facts_at(s, tarn_eg_data(s->g, RA_FACTS, cls));
}

/* ---------------------------------------------------------------- constants */

static bool same_bytes(const tarn_tensor *t, int64_t n) {
  size_t each = tarn_dtype_size(t->dtype), all = (size_t)n * each;
  return all == each || memcmp(t->data, (const char *)t->data + each, all - each) == 0;
}

static void scan(tarn_saturation *s, const tarn_tensor *t, facts *f) {
  int64_t n = tarn_tensor_count(t);
  if (n == 0 || !same_bytes(t, n)) return;
  tarn_value v = tarn_tensor_get(t, 0);
  bool real = tarn_dtype_is_float(t->dtype);
  f->uniform = real ? tarn_fx_const(s->L, t->dtype, v.d) : tarn_fx_iconst(s->L, t->dtype, v.i);
}

static void facts_const(tarn_saturation *s, uint32_t payload, facts *f) {
  const tarn_tensor *t = tarn_payload_get(s->L, payload)->tensor;
  f->constant = 1;
  if (tarn_tensor_bytes(t) <= R_SMALL) f->value = payload;
  scan(s, t, f);
}

/* ---------------------------------------------------------------- inputs that stand for them */

static tarn_range range_of_all(const tarn_stand_in *x) {
  tarn_range r = vrange_tensor(x->value[0]).r;
  for (uint32_t i = 1; i < x->n; i++) vrange_widen(&r, vrange_tensor(x->value[i]).r);
  return r;
}
static void know_stand_ins(tarn_saturation *s) {
  s->stand = tarn_map_new(s->cx);
  s->stand_range = TARN_ARRAY(s->cx, tarn_range, s->o.nstand + 1);
  tarn_map *known = tarn_map_new(s->cx); /* values -> 1 + the first with these */
  for (uint32_t i = 0; i < s->o.nstand; i++) {
    const tarn_stand_in *x = &s->o.stand[i];
    uint64_t *had = tarn_map_at(known, (uint64_t)(uintptr_t)x->value, NULL);
    s->stand_range[i] = *had ? s->stand_range[*had - 1] : range_of_all(x);
    if (!*had) *had = i + 1;
    *tarn_map_at(s->stand, tarn_term_get(s->L, x->leaf)->payload, NULL) = i + 1;
  }
}
static bool facts_stand_in(const tarn_saturation *s, const tarn_eg_node *n, facts *f) {
  const uint64_t *at = n->op == TARN_OP_INPUT ? tarn_map_get(s->stand, n->payload) : NULL;
  if (!at) return false;
  f->constant = true;
  set_range(f, &s->stand_range[*at - 1]);
  return true;
}

/* ---------------------------------------------------------------- nodes */

static vrange vrange_class(tarn_saturation *s, uint32_t cls) {
  const tarn_type *t = tarn_type_get(s->L, (uint32_t)tarn_eg_data(s->g, RA_TYPE, cls));
  return (vrange){!t->tuple, t->dtype, sat_facts(s, cls)->range};
}

static void range_of(tarn_saturation *s, const tarn_eg_node *n, facts *f) {
  vrange kid[R_KIDS];
  uint32_t types[R_KIDS];
  if (n->n > R_KIDS) return;
  for (uint32_t i = 0; i < n->n; i++) {
    kid[i] = vrange_class(s, n->kids[i]);
    types[i] = (uint32_t)tarn_eg_data(s->g, RA_TYPE, n->kids[i]);
  }
  uint32_t type = tarn_type_of(s->L, n->op, n->payload, types, n->n);
  if (type == TARN_NONE) return;
  vrange k = vrange_node(s->L, n->op, n->payload, type, kid, n->n);
  if (k.typed) set_range(f, &k.r);
}

uint32_t sat_uniform(void *user, uint32_t cls) { return sat_facts(user, cls)->uniform; }

/* Is the nest a map that reads some kernel's result, each element once? Then that kernel can do it.
 */
static bool could_be_epilogue(tarn_saturation *s, const tarn_eg_node *n) {
  const tarn_nest *x = tarn_nest_get(s->L, tarn_payload_get(s->L, n->payload)->id);
  const tarn_func *fn = tarn_fn_get(s->L, x->stage[0].fn);
  for (uint32_t r = 0; r < fn->nops; r++) {
    const tarn_read *d = &x->stage[0].read[r];
    const facts *k = sat_facts(s, n->kids[d->src]);
    if (k->constant || !(k->has & (R_HAS_RED | R_EPILOGUE))) continue;
    if (tarn_map_invert(s->L, d->map, 0) != TARN_NONE) return true;
  }
  return false;
}

static facts facts_of(tarn_saturation *s, const tarn_eg_node *n) {
  facts f = unknown();
  if (facts_stand_in(s, n, &f)) return f;
  if (n->op == TARN_OP_CONST) facts_const(s, n->payload, &f);
  f.constant = n->op != TARN_OP_INPUT && !tarn_is_outside(s->L, n->op, n->payload);
  for (uint32_t i = 0; i < n->n; i++) f.constant = f.constant && sat_facts(s, n->kids[i])->constant;
  if (n->op != TARN_OP_CONST)
    f.uniform = r_uniform_moved(s->L, n->op, n->payload, n->kids, n->n, sat_uniform, s);
  range_of(s, n, &f);
  if (n->op == TARN_OP_NEST)
    f.has = (uint8_t)r_nest_kinds(s->L, tarn_payload_get(s->L, n->payload)->id);
  if ((f.has & R_HAS_MAP) && could_be_epilogue(s, n)) f.has |= R_EPILOGUE;
  if (n->op == TARN_OP_VIEW) {
    uint32_t map = tarn_payload_get(s->L, n->payload)->id;
    f.has = R_HAS_VIEW;
    if ((sat_facts(s, n->kids[0])->has & R_HAS_RED) && tarn_map_invert(s->L, map, 0) != TARN_NONE)
      f.has |= R_HAS_RED; /* a kernel whose result is seen with its dims moved */
  }
  return f;
}

typedef struct job {
  tarn_saturation *s;
  const tarn_eg_node *n;
  uint64_t *value;
  bool ok;
  uint32_t cls;
} job;

static void make_facts(tarn_ctx *cx, void *arg) {
  (void)cx;
  job *j = arg;
  facts f = facts_of(j->s, j->n);
  *j->value = intern(j->s, &f);
  j->ok = true;
}

static bool guarded(tarn_saturation *s, tarn_fn *fn, job *j) {
  tarn_status st = tarn_protect(s->cx, fn, j);
  if (st && st != TARN_BAD_INPUT) s->failed = st;
  return st == TARN_OK && j->ok;
}

static bool facts_make(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *value) {
  (void)g;
  job j = {.s = user, .n = n, .value = value};
  return guarded(user, make_facts, &j);
}

static unsigned facts_join(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  tarn_saturation *s = user;
  (void)g;
  if (*a == b) return TARN_EG_JOIN_SAME;
  facts x = *facts_at(s, *a);
  const facts *y = facts_at(s, b);
  x.constant |= y->constant;
  x.has |= y->has;
  tarn_range both = vrange_both(x.range, y->range);
  set_range(&x, &both);
  if (y->uniform < x.uniform) x.uniform = y->uniform;
  if (y->value < x.value) x.value = y->value;
  uint64_t old = *a;
  *a = intern(s, &x);
  return (*a != old ? TARN_EG_JOIN_A : 0u) | (*a != b ? TARN_EG_JOIN_B : 0u);
}

/* ---------------------------------------------------------------- small constants computed */

static void fold_node(tarn_ctx *cx, void *arg) {
  job *j = arg;
  tarn_saturation *s = j->s;
  const tarn_eg_node *n = j->n;
  uint32_t value[R_FOLD_KIDS], evidence[R_FOLD_KIDS];
  uint32_t type = (uint32_t)tarn_eg_data(s->g, RA_TYPE, j->cls);
  (void)cx;
  if (n->n > R_FOLD_KIDS) return;
  for (uint32_t i = 0; i < n->n; i++)
    if ((value[i] = sat_facts(s, n->kids[i])->value) == TARN_NONE) return;
  const tarn_tensor *out = r_fold(s->L, n->op, n->payload, type, value, n->n);
  if (!out) return;
  for (uint32_t i = 0; i < n->n; i++)
    evidence[i] = tarn_eg_add(s->g, TARN_OP_CONST, value[i], NULL, 0);
  tarn_payload p = {.kind = TARN_P_CONST, .name = "folded", .type = type, .tensor = out};
  uint32_t c = tarn_eg_add(s->g, TARN_OP_CONST, tarn_payload_intern(s->L, &p), NULL, 0);
  if (c != TARN_NONE)
    tarn_eg_union_at(s->g, *(uint32_t *)(void *)j->value, evidence, n->n, c, TARN_EG_RULE_ANALYSIS,
                     0);
}

/* All kids are small constants and the result is small too: it is one. */
static void facts_modify(void *user, tarn_egraph *g, uint32_t cls, uint32_t cause) {
  tarn_saturation *s = user;
  const facts *f = sat_facts(s, cls);
  if (!f->constant || f->value != TARN_NONE || s->failed) return;
  TARN_EG_NODES(g, cls, n) {
    tarn_eg_node x = tarn_eg_node_at(g, n);
    uint32_t kids[R_FOLD_KIDS], node = n;
    if (x.n == 0 || x.n > R_FOLD_KIDS) continue;
    memcpy(kids, x.kids, x.n * sizeof *kids);
    x.kids = kids;
    job j = {.s = s, .n = &x, .value = (void *)&node, .cls = cls, .ok = true};
    (void)guarded(s, fold_node, &j);
    if (sat_facts(s, cls)->value != TARN_NONE) return;
    break;
  }
  (void)cause;
}

/* ---------------------------------------------------------------- types */

static void make_type(tarn_ctx *cx, void *arg) {
  job *j = arg;
  uint32_t few[R_KIDS];
  const tarn_eg_node *n = j->n;
  uint32_t *kid = n->n <= R_KIDS ? few : TARN_ARRAY(cx, uint32_t, n->n);
  for (uint32_t i = 0; i < n->n; i++) kid[i] = (uint32_t)tarn_eg_data(j->s->g, RA_TYPE, n->kids[i]);
  uint32_t t = tarn_type_of(j->s->L, n->op, n->payload, kid, n->n);
  *j->value = t;
  j->ok = t != TARN_NONE;
}

static bool type_make(void *user, const tarn_egraph *g, const tarn_eg_node *n, uint64_t *value) {
  (void)g;
  job j = {.s = user, .n = n, .value = value};
  return guarded(user, make_type, &j);
}

static unsigned type_join(void *user, const tarn_egraph *g, uint64_t *a, uint64_t b) {
  (void)user;
  (void)g;
  return *a == b ? TARN_EG_JOIN_SAME : TARN_EG_JOIN_FAIL;
}

void facts_mark(tarn_saturation *s, uint32_t cls, unsigned has) {
  facts f = *sat_facts(s, cls);
  f.has |= (uint8_t)has;
  if (tarn_eg_join_data(s->g, RA_FACTS, cls, intern(s, &f)) < 0 || s->failed) sat_engine_failed(s);
}

void facts_install(tarn_saturation *s) {
  tarn_eg_analysis type = {.name = "type", .user = s, .make = type_make, .join = type_join};
  tarn_eg_analysis know = {
      .name = "facts", .user = s, .make = facts_make, .join = facts_join, .modify = facts_modify};
  s->fact = tarn_intern_new(s->cx);
  know_stand_ins(s);
  if (tarn_eg_add_analysis(s->g, &type) != RA_TYPE || tarn_eg_add_analysis(s->g, &know) != RA_FACTS)
    sat_engine_failed(s);
}
