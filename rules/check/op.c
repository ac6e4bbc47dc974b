/* Instances of operators of several operands and of kernels, and the table of all. */
#include "rules/check/op.h"

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
bool make_CONCAT(node *x) {
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

bool make_PAIR(node *x) {
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
bool make_CART_PROD(node *x) {
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

bool make_GATHER(node *x) {
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

bool make_TUPLE(node *x) {
  for (uint32_t i = 0; i < x->p->n; i++)
    if (x->p->kid[i]->kind == RP_SEG || !kid(x, i, &want_any)) return false;
  return true;
}
bool make_NTH(node *x) {
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

bool make_COMPUTE(node *x) {
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

bool make_FOLD(node *x) {
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

bool make_SYSTOLIC(node *x) {
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

bool make_CONST(node *x) {
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

bool make_NEST(node *x) {
  uint32_t nest;
  if (x->has[0] || !gen_nest(x->g, x->p, x->m, &nest)) return false;
  set_id(x, 0, 'n', nest);
  return true;
}

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
