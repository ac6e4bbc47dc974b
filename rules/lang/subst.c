/* Matching and instantiating rules over a host. The e-graph has a matcher of its own (engine.c);
 * this file has the shared parts and the matcher over terms of the rule checker and the proof
 * checker. */
#include "rules/lang/loops.h"
#include <string.h>

void tarn_r_env_reset(renv *e, const rule *r) {
  e->used = 0;
  e->rule = r;
  for (uint32_t i = 0; i < r->nattr; i++) e->attr[i].kind = 0;
  for (uint32_t i = 0; i < r->ncls; i++) e->cls[i] = TARN_NONE;
  for (uint32_t i = 0; i < r->nseg; i++) e->seg[i] = (rseg){NULL, UINT32_MAX};
}

/* ---------------------------------------------------------------- left sides */

static bool bind(renv *e, const rx *x, const rv *v) {
  rv *to = &e->attr[x->var];
  if (to->kind) return rv_equal(to, v);
  *to = *v;
  return true;
}

bool r_bind_payload(renv *e, const rpat *p, uint32_t payload) {
  rv v[4];
  uint32_t n = r_payload_split(e, p->op, payload, v);
  e->payload[p->var] = payload;
  for (uint32_t i = 0; i < p->npay && i < n; i++) {
    const rx *x = p->pay[i];
    if (x->kind == RX_VAR && !bind(e, x, &v[i])) return false;
    if (x->kind == RX_LIT && !rv_equal(&x->lit, &v[i])) return false;
  }
  return n == p->npay ||
         r_payload_join(e, p->op, v, p->npay) == payload; /* what is left out is the default */
}

/* Payload elements that are expressions, now that all variables are bound. */
static bool deferred(renv *e, const rpat *p) {
  rv v[4], want;
  bool any = false;
  for (uint32_t i = 0; i < p->npay; i++) any |= p->pay[i]->kind == RX_CALL;
  if (any) r_payload_split(e, p->op, e->payload[p->var], v);
  for (uint32_t i = 0; any && i < p->npay; i++)
    if (p->pay[i]->kind == RX_CALL && (!rx_eval(e, p->pay[i], &want) || !rv_equal(&want, &v[i])))
      return false;
  for (uint32_t i = 0; i < p->n; i++)
    if (!deferred(e, p->kid[i])) return false;
  return true;
}

/* Is it a question whose answer may change, and not asked now? */
static bool left_open(const renv *e, const rx *x) { return e->shape && rx_reads(x); }

bool tarn_r_conditions(renv *e, const rule *r, uint32_t skip) {
  rv v;
  for (uint32_t i = 0; i < r->nlhs; i++)
    if (!deferred(e, r->lhs[i].pat)) return false;
  for (uint32_t i = 0; i < r->nwhere; i++)
    if (!r->where_each[i] && !rx_eval(e, r->where[i], &e->attr[r->where_var[i]])) return false;
  for (uint32_t i = 0; i < r->ncond; i++)
    if (i != skip && !left_open(e, r->cond[i]) && (!rx_eval(e, r->cond[i], &v) || !v.i))
      return false;
  return true;
}

bool r_guards(renv *e, const rule *r) {
  rv v;
  for (uint32_t i = 0; i < r->nguard; i++)
    if (!left_open(e, r->guard[i]) && (!rx_eval(e, r->guard[i], &v) || !v.i)) return false;
  return true;
}

bool r_has_choices(const rule *r) {
  for (uint32_t i = 0; i < r->nwhere; i++)
    if (r->where_each[i]) return true;
  return false;
}

/* Does an :each of a rule over loops depend on what its left side binds? */
static bool has_variable(const rx *x) {
  bool any = x->kind == RX_VAR;
  for (uint32_t i = 0; i < x->n; i++) any |= has_variable(x->kid[i]);
  return any;
}
bool r_late(const rule *r, uint32_t where) {
  return r->loops && r->where_each[where] && has_variable(r->where[where]);
}
bool r_late_choices(renv *e, const rule *r, uint32_t from, r_choice_fn *fn, void *arg) {
  rv v;
  for (; from < r->nwhere && !r_late(r, from); from++)
    if (!r->where_each[from] && !rx_eval(e, r->where[from], &e->attr[r->where_var[from]]))
      return true;
  if (from == r->nwhere) return fn(arg, e);
  if (!rx_eval(e, r->where[from], &v)) return true;
  for (uint32_t i = 0; i < v.n; i++) {
    e->attr[r->where_var[from]] = (rv){.kind = 'i', .i = v.p[i]};
    if (!r_late_choices(e, r, from + 1, fn, arg)) return false;
  }
  return true;
}

/* The where-clauses from number `from` on. True: stopped. */
static bool choose(renv *e, const rule *r, uint32_t from, r_choice_fn *fn, void *arg) {
  rv v;
  while (from < r->nwhere && (!r->where_each[from] || r_late(r, from))) {
    if (!r->loops && !rx_eval(e, r->where[from], &e->attr[r->where_var[from]])) return false;
    from++;
  }
  if (from == r->nwhere) return r->loops ? loops_match(e, r, fn, arg) : !fn(arg, e);
  if (!rx_eval(e, r->where[from], &v)) return false;
  for (uint32_t i = 0; i < v.n; i++) {
    uint32_t used = e->used;
    e->attr[r->where_var[from]] = (rv){.kind = 'i', .i = v.p[i]};
    if (choose(e, r, from + 1, fn, arg)) return true;
    e->used = used;
  }
  return false;
}

bool tarn_r_choices(renv *e, const rule *r, r_choice_fn *fn, void *arg) {
  return choose(e, r, 0, fn, arg);
}

/* ---------------------------------------------------------------- right sides */

static bool each(renv *e, const rule *r, const rpat *p, uint32_t *out, uint32_t *n) {
  rseg s = e->seg[p->var];
  for (uint32_t i = 0; i < s.n; i++) {
    if (*n == R_KIDS) return false;
    e->cls[p->item] = s.id[i];
    if ((out[(*n)++] = tarn_r_instantiate(e, r, p->kid[0])) == TARN_NONE) return false;
  }
  return true;
}

static bool append_kids(renv *e, const rule *r, const rpat *p, uint32_t *out, uint32_t *n);

static bool repeat(renv *e, const rule *r, const rpat *p, uint32_t *out, uint32_t *n) {
  rv many;
  if (!rx_eval(e, p->pay[0], &many) || many.i < 0 || many.i > R_KIDS) return false;
  for (int64_t i = 0; i < many.i; i++) {
    uint32_t used = e->used;
    e->attr[p->var] = (rv){.kind = 'i', .i = i};
    if (!append_kids(e, r, p, out, n)) return false;
    e->used = used;
  }
  return true;
}

static bool append_kids(renv *e, const rule *r, const rpat *p, uint32_t *out, uint32_t *n) {
  for (uint32_t i = 0; i < p->n; i++) {
    const rpat *k = p->kid[i];
    if (k->kind == RP_SEG) {
      rseg s = e->seg[k->var];
      if (s.n > R_KIDS - *n) return false;
      if (s.n) memcpy(out + *n, s.id, s.n * sizeof *out);
      *n += s.n;
    } else if (k->kind == RP_EACH) {
      if (!each(e, r, k, out, n)) return false;
    } else if (k->kind == RP_FOR) {
      if (!repeat(e, r, k, out, n)) return false;
    } else {
      if (*n == R_KIDS || (out[(*n)++] = tarn_r_instantiate(e, r, k)) == TARN_NONE) return false;
    }
  }
  return true;
}

/* The kids of a pattern node, segments spliced in. Number, or TARN_NONE. */
static uint32_t r_kids(renv *e, const rule *r, const rpat *p, uint32_t *out) {
  uint32_t n = 0;
  return append_kids(e, r, p, out, &n) ? n : TARN_NONE;
}

static uint32_t payload_of(renv *e, const rpat *p) {
  rv v[4];
  for (uint32_t i = 0; i < p->npay; i++)
    if (!rx_eval(e, p->pay[i], &v[i])) return TARN_NONE;
  return r_payload_join(e, p->op, v, p->npay);
}

/* A call of a kernel written by hand has the type that follows from its operands. */
static uint32_t call_of_written(renv *e, const rpat *p, const uint32_t *kid, uint32_t n) {
  uint32_t types[R_KIDS];
  const tarn_written *w = tarn_written_find(e->L, p->pay[0]->lit.name);
  for (uint32_t i = 0; i < n; i++) types[i] = e->host->nest.type(e->host->nest.user, kid[i]);
  uint32_t type = tarn_written_type(e->L, w, types, n);
  if (type == TARN_NONE) return TARN_NONE;
  return tarn_payload_intern(e->L,
                             &(tarn_payload){.kind = TARN_P_CALL, .name = w->name, .type = type});
}

uint32_t tarn_r_instantiate(renv *e, const rule *r, const rpat *p) {
  uint32_t kid[R_KIDS];
  if (p->kind == RP_VAR) return e->cls[p->var];
  if (p->kind == RP_BUILD) return p->build->build(e->site);
  uint32_t n = r_kids(e, r, p, kid);
  if (n == TARN_NONE) return TARN_NONE;
  bool written = p->op == TARN_OP_CALL && p->npay == 1;
  uint32_t payload = written ? call_of_written(e, p, kid, n) : payload_of(e, p);
  return payload == TARN_NONE ? TARN_NONE
                              : e->host->nest.mk(e->host->nest.user, p->op, payload, kid, n);
}

/* ---------------------------------------------------------------- left sides as they were matched
 */

static uint32_t left_kids(renv *e, const rule *r, const rpat *p, uint32_t *out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const rpat *k = p->kid[i];
    uint32_t more = k->kind == RP_SEG ? e->seg[k->var].n : 1;
    if (more > R_KIDS - n) return TARN_NONE;
    if (k->kind == RP_SEG && more) memcpy(out + n, e->seg[k->var].id, more * sizeof *out);
    else if (k->kind != RP_SEG && (out[n] = r_left(e, r, k)) == TARN_NONE) return TARN_NONE;
    n += more;
  }
  return n;
}

uint32_t r_left(renv *e, const rule *r, const rpat *p) {
  uint32_t kid[R_KIDS];
  if (p->kind == RP_VAR) return e->cls[p->var];
  uint32_t n = left_kids(e, r, p, kid);
  return n == TARN_NONE ? TARN_NONE
                        : e->host->nest.mk(e->host->nest.user, p->op, e->payload[p->var], kid, n);
}

static bool open_kid(renv *e, const rpat *p, rkid *k, uint32_t **leaf, const uint32_t *end) {
  *k = (rkid){.id = e->node[p->var], .op = p->op, .payload = e->payload[p->var], .leaf = *leaf};
  for (uint32_t i = 0; i < p->n; i++) {
    const rpat *q = p->kid[i];
    uint32_t more = q->kind == RP_SEG ? e->seg[q->var].n : 1;
    if (q->kind == RP_NODE || more > (uint32_t)(end - *leaf)) return false;
    if (more)
      memcpy(*leaf, q->kind == RP_SEG ? e->seg[q->var].id : &e->cls[q->var], more * sizeof **leaf);
    *leaf += more;
    k->n += more;
  }
  return true;
}

bool r_site(renv *e, const rule *r, rsite *s, rkid *kids, uint32_t *leaves) {
  const rpat *p = r->lhs[0].pat;
  const uint32_t *end = leaves + 2 * R_KIDS;
  *s = (rsite){.e = e,
               .payload = e->payload[p->var],
               .kid = kids,
               .slot = TARN_NONE,
               .root = TARN_NONE,
               .also = {TARN_NONE, TARN_NONE}};
  const rpat *right = r->rhs[0].pat;
  if (right->kind == RP_BUILD && right->arg && !rx_eval(e, right->arg, &s->arg)) return false;
  for (uint32_t i = 0; i < p->n; i++) {
    const rpat *k = p->kid[i];
    uint32_t more = k->kind == RP_SEG ? e->seg[k->var].n : 1;
    if (more > R_KIDS - s->n) return false;
    if (k->kind == RP_NODE) s->slot = s->n;
    if (k->kind == RP_NODE && !open_kid(e, k, &kids[s->n], &leaves, end)) return false;
    for (uint32_t j = 0; k->kind != RP_NODE && j < more; j++)
      kids[s->n + j] = (rkid){.id = k->kind == RP_SEG ? e->seg[k->var].id[j] : e->cls[k->var],
                              .payload = TARN_NONE};
    s->n += more;
  }
  return p->op == TARN_OP_NEST;
}

/* Kid i, opened, or the same as one that was opened. */
static uint32_t left_kid(rsite *s, uint32_t i) {
  const rhost *h = s->e->host;
  const rkid *k = &s->kid[i];
  for (uint32_t j = 0; j < s->n && k->payload == TARN_NONE; j++)
    if (s->kid[j].id == s->kid[i].id && s->kid[j].payload != TARN_NONE) k = &s->kid[j];
  return k->payload == TARN_NONE ? k->id
                                 : h->nest.mk(h->nest.user, k->op, k->payload, k->leaf, k->n);
}

uint32_t r_site_left(rsite *s) {
  const rhost *h = s->e->host;
  uint32_t kid[R_KIDS];
  for (uint32_t i = 0; i < s->n; i++)
    if ((kid[i] = left_kid(s, i)) == TARN_NONE) return TARN_NONE;
  return h->nest.mk(h->nest.user, TARN_OP_NEST, s->payload, kid, s->n);
}

/* ---------------------------------------------------------------- matching terms */

/* A goal list: patterns still to be matched against terms, so that segments can backtrack. */
typedef struct goal {
  const struct goal *next;
  const rpat *const *pat;
  uint32_t npat;
  const tarn_term *term;
  uint32_t nterm;
} goal;
typedef struct matcher {
  const rule *r;
  r_match_fn *fn;
  void *arg;
  bool stop;
} matcher;

static void solve(matcher *m, renv *e, const goal *g);

static void solve_seg(matcher *m, renv *e, const goal *g, const rpat *p) {
  rseg had = e->seg[p->var];
  for (uint32_t k = 0; k <= g->nterm && !m->stop; k++) {
    if (had.n != UINT32_MAX && (had.n != k || (k && memcmp(had.id, g->term, k * sizeof *had.id))))
      continue;
    goal rest = {g->next, g->pat + 1, g->npat - 1, g->term + k, g->nterm - k};
    e->seg[p->var] = (rseg){g->term, k};
    solve(m, e, &rest);
  }
  e->seg[p->var] = had;
}

static void solve_node(matcher *m, renv *e, const goal *rest, const rpat *p, tarn_term t) {
  const tarn_node *x = tarn_term_get(e->L, t);
  if (x->op != p->op) return;
  rv saved[R_ATTRS];
  memcpy(saved, e->attr, sizeof saved);
  uint32_t n = x->n;
  const tarn_term *kid = x->kid;
  goal inner = {rest, (const rpat *const *)p->kid, p->n, kid, n};
  e->node[p->var] = t;
  if (r_bind_payload(e, p, x->payload)) solve(m, e, &inner);
  memcpy(e->attr, saved, sizeof saved);
}

static void solve(matcher *m, renv *e, const goal *g) {
  while (g && g->npat == 0) {
    if (g->nterm) return;
    g = g->next;
  }
  if (!g) {
    m->stop = !m->fn(m->arg, e);
    return;
  }
  const rpat *p = g->pat[0];
  if (p->kind == RP_SEG) {
    solve_seg(m, e, g, p);
    return;
  }
  if (g->nterm == 0) return;
  goal rest = {g->next, g->pat + 1, g->npat - 1, g->term + 1, g->nterm - 1};
  if (p->kind == RP_NODE) {
    solve_node(m, e, &rest, p, g->term[0]);
    return;
  }
  uint32_t had = e->cls[p->var];
  if (had != TARN_NONE && had != g->term[0]) return;
  e->cls[p->var] = g->term[0];
  solve(m, e, &rest);
  e->cls[p->var] = had;
}

bool tarn_r_match_term(renv *e, const rule *r, uint32_t root, tarn_term t, r_match_fn *fn,
                       void *arg) {
  matcher m = {.r = r, .fn = fn, .arg = arg};
  const rpat *pat = r->lhs[root].pat;
  goal g = {NULL, &pat, 1, &t, 1};
  solve(&m, e, &g);
  return m.stop;
}
