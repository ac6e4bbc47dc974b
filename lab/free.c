/* Free rule sets: untyped terms over any operator names, for `explore --free`. */
#include "lab/free.h"
#include <stdio.h>
#include <string.h>

/* ---- symbols ---- */
uint32_t free_symbol(free_state *f, const char *s, size_t n) {
  uint32_t id = tarn_intern_add(free_of(f->rs)->symbol, s, n);
  while (f->value.n <= id) {
    const char *name = tarn_intern_key(free_of(f->rs)->symbol, f->value.n, &n);
    fval v = f->counts ? free_parse(f, name, n) : (fval){0};
    tarn_push(f->cx, &f->value, v);
  }
  return id;
}
/* (:fresh …) never becomes what was written. */
uint32_t free_written(free_state *f, const char *s, size_t n, bool rules) {
  uint32_t id = free_symbol(f, s, n);
  while (f->written.n <= id) {
    tarn_push(f->cx, &f->written, false);
    tarn_push(f->cx, &f->in_rules, false);
  }
  f->written.p[id] = true;
  f->in_rules.p[id] |= rules;
  return id;
}
uint32_t tarn_free_symbol(const tarn_ruleset *rs, const char *name, size_t n) {
  return free_written(free_of(rs), name, n, false);
}
bool tarn_free_known(const tarn_ruleset *rs, const char *name) {
  return tarn_intern_find(free_of(rs)->symbol, name, strlen(name)) != TARN_NONE;
}
void tarn_free_name(const tarn_ruleset *rs, uint32_t op, uint32_t payload, char *buf, size_t n) {
  size_t len;
  const char *s = tarn_intern_key(free_of(rs)->symbol, op, &len);
  (void)payload;
  snprintf(buf, n, "%.*s", (int)len, s);
}
void tarn_free_print(const tarn_ruleset *rs, tarn_buf *b, uint32_t op) {
  size_t n;
  const char *s = tarn_intern_key(free_of(rs)->symbol, op, &n);
  tarn_sx_name(b, s, n);
}

/* ---- terms in ---- */
typedef struct frame {
  const tarn_sx *s;
  uint32_t done; /* operands whose ids are there */
} frame;
static uint32_t add(const tarn_ruleset *rs, tarn_egraph *g, const tarn_sx *s) {
  TARN_VEC(frame) open = {0};
  TARN_VEC(uint32_t) ids = {0};
  frame top = {s, 0};
  for (tarn_push(rs->cx, &open, top); open.n;) {
    frame *f = &open.p[open.n - 1];
    uint32_t n = f->s->kind == TARN_SX_LIST && f->s->n ? f->s->n - 1 : 0;
    const tarn_sx *head = f->s->kind == TARN_SX_LIST && f->s->n ? f->s->kid[0] : f->s;
    if (head->kind == TARN_SX_LIST) tarn_sx_error(rs->cx, f->s, "expected an operator");
    if (f->done < n) {
      frame kid = {f->s->kid[++f->done], 0};
      tarn_push(rs->cx, &open, kid);
      continue;
    }
    ids.n -= n;
    uint32_t op = free_written(free_of(rs), head->text, head->len, false);
    uint32_t id = tarn_eg_add_exact(g, op, 0, n ? ids.p + ids.n : NULL, n);
    if (id == TARN_NONE) tarn_raise(rs->cx, tarn_eg_status(g), "%s", tarn_eg_message(g));
    tarn_push(rs->cx, &ids, id);
    open.n--;
  }
  return ids.p[0];
}
/* (:equal A B): two terms that are given to be equal. */
uint32_t tarn_free_add(const tarn_ruleset *rs, tarn_egraph *g, const tarn_sx *s) {
  if (!tarn_sx_is(s, ":equal")) return add(rs, g, s);
  if (s->n != 3) tarn_sx_error(rs->cx, s, "expected (:equal A B)");
  uint32_t a = add(rs, g, s->kid[1]), b = add(rs, g, s->kid[2]);
  if (tarn_eg_union(g, a, b, TARN_EG_RULE_GIVEN, 0) < 0)
    tarn_raise(rs->cx, TARN_BAD_INPUT, "%s", tarn_eg_message(g));
  return a;
}

/* ---- leaves of right sides that are computed: values, and fresh names ---- */
typedef struct leaf {
  free_state *f;
  const rule *r;
  const rpat *p;
} leaf;
typedef struct leaf_call {
  const leaf *x;
  fenv e;
  uint32_t symbol; /* NONE: there is no value */
} leaf_call;

/* A name that stands in no term of the graph and was never read. */
static uint32_t new_name(free_state *f, const char *prefix) {
  for (;;) {
    char name[64];
    int n = snprintf(name, sizeof name, "%.40s%u", prefix, ++f->n_fresh);
    if (tarn_intern_find(f->symbol, name, (size_t)n) == TARN_NONE)
      return free_symbol(f, name, (size_t)n);
  }
}
/* The nodes of a match say what it is: one name for each, so that finding it again makes nothing
 * new. A name that was written meanwhile is given up. */
static uint32_t fresh_name(free_state *f, const rule *r, const tarn_eg_match *m,
                           const char *prefix) {
  uint32_t key[2 + R_CLASSES + R_SEGS], n = 0;
  key[n++] = m->rule;
  key[n++] = (uint32_t)tarn_hash_bytes(prefix, strlen(prefix), 0);
  for (uint32_t i = 0; i < r->nnode; i++) key[n++] = m->nodes[i];
  if (!r->nnode) key[n++] = m->root;
  for (uint32_t i = 0; i < r->nseg; i++) key[n++] = m->segs[i].n;
  uint32_t id = tarn_intern_add(f->fresh_of, key, n * sizeof *key);
  while (f->fresh.n <= id) tarn_push(f->cx, &f->fresh, TARN_NONE);
  uint32_t had = f->fresh.p[id];
  bool taken = had == TARN_NONE || (had < f->written.n && f->written.p[had]);
  return f->fresh.p[id] = taken ? new_name(f, prefix) : had;
}
static void leaf_raises(tarn_ctx *cx, void *arg) {
  leaf_call *k = arg;
  const leaf *x = k->x;
  fval v = {0};
  (void)cx;
  if (x->p->kind == RP_FRESH) k->symbol = fresh_name(x->f, x->r, k->e.m, x->p->name);
  else if (x->p->value->fun->fn(&k->e, x->p->value, &v)) k->symbol = free_value_symbol(x->f, &v);
}
static bool leaf_symbol(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *op) {
  const leaf *x = user;
  leaf_call k = {x, {.f = x->f, .g = g, .cls = m->vars, .m = m}, TARN_NONE};
  tarn_status st = tarn_protect(x->f->cx, leaf_raises, &k);
  if (st) x->f->failed = st;
  *op = k.symbol;
  return !st && k.symbol != TARN_NONE;
}

/* ---- patterns ---- */
/* Must the right side be made by a function of ours, as it is not a plain pattern? */
static bool computed(const rpat *p) {
  bool any = p->kind == RP_EACH || p->kind == RP_ADD;
  for (uint32_t i = 0; i < p->n; i++) any |= computed(p->kid[i]);
  return any;
}
static tarn_eg_pat *translate(const tarn_ruleset *rs, const rule *r, const rpat *p) {
  tarn_eg_pat *q = TARN_NEW(rs->cx, tarn_eg_pat);
  if (p->kind == RP_VALUE || p->kind == RP_FRESH) {
    leaf *x = TARN_NEW(rs->cx, leaf);
    *x = (leaf){free_of(rs), r, p};
    *q = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE,
                       .var = TARN_NONE,
                       .op_how = TARN_EG_COMPUTED,
                       .compute = leaf_symbol,
                       .user = x};
    return q;
  }
  if (p->kind != RP_NODE) {
    *q =
        (tarn_eg_pat){.kind = p->kind == RP_SEG ? TARN_EG_PAT_SEG : TARN_EG_PAT_VAR, .var = p->var};
    return q;
  }
  tarn_eg_pat const **kid = TARN_ARRAY(rs->cx, const tarn_eg_pat *, p->n ? p->n : 1);
  for (uint32_t i = 0; i < p->n; i++) kid[i] = translate(rs, r, p->kid[i]);
  bool bind = p->op == TARN_NONE;
  *q = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE,
                     .var = TARN_NONE,
                     .op_how = bind ? TARN_EG_BIND : TARN_EG_EXACT,
                     .op = bind ? p->opvar : p->op,
                     .payload_how = TARN_EG_EXACT,
                     .payload = 0,
                     .kids = kid,
                     .n = p->n};
  return q;
}
static tarn_eg_root *roots(const tarn_ruleset *rs, const rule *r, const rroot *root, uint32_t n) {
  tarn_eg_root *q = TARN_ARRAY(rs->cx, tarn_eg_root, n);
  for (uint32_t i = 0; i < n; i++)
    q[i] = (tarn_eg_root){root[i].var, translate(rs, r, root[i].pat)};
  return q;
}

void free_sides(const tarn_ruleset *rs, const rule *r, tarn_eg_rule *e) {
  e->lhs = roots(rs, r, r->lhs, r->nlhs), e->n_lhs = r->nlhs;
  e->rhs = roots(rs, r, r->rhs, r->nrhs), e->n_rhs = r->nrhs;
}

/* ---- conditions ---- */
typedef struct held {
  free_state *f;
  const fexpr *x;
  bool computes; /* values, which may need memory for the time being */
} held;
typedef struct holding {
  const held *h;
  fenv e;
  bool is;
} holding;
static void holds_raises(tarn_ctx *cx, void *arg) {
  holding *k = arg;
  tarn_mark mark = tarn_arena_mark(cx);
  k->is = free_holds(&k->e, k->h->x);
  tarn_release(cx, mark);
}
static bool holds(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  const held *h = user;
  holding k = {h, {.f = h->f, .g = g, .cls = m->vars, .m = m}, false};
  if (!h->computes) return free_holds(&k.e, h->x);
  tarn_status st = tarn_protect(h->f->cx, holds_raises, &k);
  if (st) h->f->failed = st;
  return !st && k.is;
}
static bool computes(const fexpr *x) {
  bool any = x->n && strchr(x->fun->sig, ':')[1] == 'v';
  for (uint32_t i = 0; i < x->n; i++) any |= computes(x->kid[i]);
  return any;
}
uint32_t free_look_up(const fenv *e, const rpat *p) {
  uint32_t kid[64];
  if (p->kind == RP_VAR) return tarn_eg_find(e->g, e->cls[p->var]);
  if (p->kind != RP_NODE || p->n > 64 || p->op == TARN_NONE) return TARN_NONE;
  for (uint32_t i = 0; i < p->n; i++)
    if ((kid[i] = free_look_up(e, p->kid[i])) == TARN_NONE) return TARN_NONE;
  uint32_t id = tarn_eg_lookup(e->g, p->op, 0, kid, p->n);
  return id == TARN_NONE ? id : tarn_eg_find(e->g, id);
}

/* ---- computed right sides: the match is copied, for the graph changes under it ---- */
typedef struct making {
  free_state *f;
  tarn_egraph *g;
  const rule *r;
  const tarn_eg_match *m;
  uint32_t cls[R_CLASSES];
  rseg seg[R_SEGS];
  int unions;
  uint32_t result;
} making;
typedef struct free_rule {
  free_state *f;
  const rule *r;
  uint32_t number;
} free_rule;

static uint32_t node(making *k, uint32_t op, const uint32_t *kid, uint32_t n) {
  uint32_t id = tarn_eg_add(k->g, op, 0, kid, n);
  if (id == TARN_NONE) tarn_raise(k->f->cx, tarn_eg_status(k->g), "%s", tarn_eg_message(k->g));
  return id;
}
static uint32_t build(making *k, const rpat *p);
static void kids(making *k, const rpat *p, uint32_t *to, uint32_t *n) {
  if (p->kind == RP_SEG || p->kind == RP_EACH) {
    rseg s = k->seg[p->var];
    if (s.n > R_KIDS - *n)
      tarn_raise(k->f->cx, TARN_BAD_INPUT, "rule %s: more than %d operands", k->r->name, R_KIDS);
    for (uint32_t i = 0; i < s.n; i++) {
      if (p->kind == RP_EACH) k->cls[p->item] = s.id[i];
      to[(*n)++] = p->kind == RP_EACH ? build(k, p->kid[0]) : s.id[i];
    }
    return;
  }
  if (*n == R_KIDS)
    tarn_raise(k->f->cx, TARN_BAD_INPUT, "rule %s: more than %d operands", k->r->name, R_KIDS);
  to[*n] = build(k, p);
  ++*n;
}
/* TARN_NO is raised where a value is not known: the rule does not apply. */
static uint32_t build(making *k, const rpat *p) {
  uint32_t kid[R_KIDS], n = 0;
  fenv e = {.f = k->f, .g = k->g, .cls = k->cls, .m = k->m};
  fval v = {0};
  switch (p->kind) {
  case RP_VAR: return k->cls[p->var];
  case RP_VALUE:
    if (!p->value->fun->fn(&e, p->value, &v)) tarn_raise(k->f->cx, TARN_NO, "no value");
    return node(k, free_value_symbol(k->f, &v), NULL, 0);
  case RP_FRESH: return node(k, fresh_name(k->f, k->r, k->m, p->name), NULL, 0);
  default: break;
  }
  for (uint32_t i = 0; i < p->n; i++) kids(k, p->kid[i], kid, &n);
  return node(k, p->op == TARN_NONE ? k->m->ops[p->opvar] : p->op, kid, n);
}
/* (:set ANALYSIS PATTERN VALUE): without a value, nothing is set. */
static void set_value(making *k, const rpat *p) {
  uint32_t a = free_lattice_named(k->f, p->name), cls = build(k, p->kid[0]);
  fenv e = {.f = k->f, .g = k->g, .cls = k->cls, .m = k->m};
  fval v = {0};
  if (!p->value->fun->fn(&e, p->value, &v)) return;
  int changed = tarn_eg_join_data(k->g, a, cls, 1 + (uint64_t)free_value_symbol(k->f, &v));
  if (changed < 0) tarn_raise(k->f->cx, TARN_BAD_INPUT, "%s", tarn_eg_message(k->g));
  k->unions += changed;
}
/* What (:delete PATTERN…) names is looked up, never made. */
static void add_or_remove(making *k, const rpat *p, const rpat *kid) {
  if (!p->deletes) {
    build(k, kid);
    return;
  }
  fenv e = {.f = k->f, .g = k->g, .cls = k->cls, .m = k->m};
  uint32_t kids[64];
  if (kid->kind != RP_NODE || kid->op == TARN_NONE || kid->n > 64)
    tarn_raise(k->f->cx, TARN_BAD_INPUT, "rule %s: only a term can be deleted", k->r->name);
  for (uint32_t i = 0; i < kid->n; i++)
    if ((kids[i] = free_look_up(&e, kid->kid[i])) == TARN_NONE) return;
  uint32_t id = tarn_eg_lookup(k->g, kid->op, 0, kids, kid->n);
  if (id != TARN_NONE) tarn_eg_remove(k->g, id);
}
static void apply_raises(tarn_ctx *cx, void *arg) {
  making *k = arg;
  const rule *r = k->r;
  for (uint32_t i = 0; i < r->nseg; i++)
    k->seg[i] = (rseg){tarn_copy(cx, k->m->segs[i].kids, k->m->segs[i].n * sizeof(uint32_t)),
                       k->m->segs[i].n};
  for (uint32_t i = 0; i < r->nrhs; i++) {
    const rpat *p = r->rhs[i].pat;
    if (p->kind == RP_ADD && p->sets) set_value(k, p);
    for (uint32_t j = 0; p->kind == RP_ADD && !p->sets && j < p->n; j++)
      add_or_remove(k, p, p->kid[j]);
    if (p->kind == RP_ADD) continue;
    uint32_t id = build(k, p);
    if (r->rhs[i].var == TARN_NONE) {
      k->result = id;
      continue;
    }
    int u = tarn_eg_union(k->g, k->cls[r->rhs[i].var], id, k->m->rule, 0);
    if (u < 0) tarn_raise(cx, TARN_BAD_INPUT, "%s", tarn_eg_message(k->g));
    k->unions += u;
  }
}
static int apply(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result) {
  const free_rule *x = user;
  making k = {.f = x->f, .g = g, .r = x->r, .m = m, .result = TARN_NONE};
  memcpy(k.cls, m->vars, x->r->ncls * sizeof *k.cls);
  tarn_status st = tarn_protect(x->f->cx, apply_raises, &k);
  if (!st && k.result != TARN_NONE) *result = k.result;
  if (st == TARN_NO && !tarn_eg_status(g))
    st = TARN_OK; /* what was made until then stays; it is equal to nothing new */
  if (st == TARN_MEMORY) x->f->failed = st;
  return st ? -1 : k.unions;
}

/* ---- rules ---- */
static void free_set(void *arg) { tarn_eg_rules_free(arg); }
static tarn_eg_rules *new_set(tarn_ctx *cx) {
  tarn_eg_rules *out = tarn_eg_rules_new(tarn_ctx_allocator(cx));
  if (!out) tarn_raise(cx, TARN_MEMORY, "rules: out of memory");
  tarn_defer(cx, free_set, out);
  return out;
}
static void add_rule(const tarn_ruleset *rs, tarn_eg_rules *out, const rule *r,
                     const tarn_eg_rule *e) {
  if (tarn_eg_rules_add(out, e) != TARN_NONE) return;
  if (tarn_eg_rules_status(out) == TARN_MEMORY)
    tarn_raise(rs->cx, TARN_MEMORY, "%s", tarn_eg_rules_message(out));
  tarn_sx_error(rs->cx, r->at, "%s", tarn_eg_rules_message(out));
}
static void add_condition(const tarn_ruleset *rs, const rule *r, const rx *x,
                          tarn_eg_condition *to) {
  held *h = TARN_NEW(rs->cx, held);
  *h = (held){.f = free_of(rs), .x = x->free};
  if (!h->x) h->x = free_condition(free_of(rs)->rs, (rule *)(uintptr_t)r, x->at);
  h->computes = computes(h->x);
  *to = (tarn_eg_condition){holds, h, free_reads(free_of(rs), h->x, true), NULL};
}
static bool always(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  (void)user, (void)g, (void)m;
  return true;
}
/* What (:set …) reads: the rule is applied again when it changes. */
static uint64_t reads_to_set(const tarn_ruleset *rs, const rule *r) {
  uint64_t reads = 0;
  for (uint32_t i = 0; i < r->nrhs; i++) {
    const rpat *p = r->rhs[i].pat;
    if (p->kind != RP_ADD || !p->sets) continue;
    if (free_lattice_named(free_of(rs), p->name) == TARN_NONE)
      tarn_sx_error(rs->cx, p->at, "no lattice is called %s", p->name);
    reads |= free_reads(free_of(rs), p->value, true) | free_reads(free_of(rs), p->value, false);
  }
  return reads;
}
static tarn_eg_condition *conditions(const tarn_ruleset *rs, const rule *r) {
  tarn_eg_condition *c = TARN_ARRAY(rs->cx, tarn_eg_condition, r->ncond + r->nguard + 2);
  c[r->ncond + r->nguard] = (tarn_eg_condition){always, NULL, reads_to_set(rs, r), NULL};
  for (uint32_t i = 0; i < r->ncond; i++) add_condition(rs, r, r->cond[i], &c[i]);
  for (uint32_t i = 0; i < r->nguard; i++) add_condition(rs, r, r->guard[i], &c[r->ncond + i]);
  return c;
}
tarn_eg_rules *tarn_free_rules(const tarn_ruleset *rs) {
  tarn_r_check_phases(rs);
  tarn_eg_rules *out = new_set(rs->cx);
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    tarn_eg_rule e = {.name = r->name,
                      .id = i,
                      .lhs = roots(rs, r, r->lhs, r->nlhs),
                      .n_lhs = r->nlhs,
                      .conditions = conditions(rs, r),
                      .n_conditions = r->ncond + r->nguard + (reads_to_set(rs, r) != 0),
                      .again = reads_to_set(rs, r) != 0,
                      .subsume = r->subsumes};
    bool any = false;
    free_check_growth(rs, r);
    for (uint32_t k = 0; k < r->nrhs; k++) any |= computed(r->rhs[k].pat);
    if (any) {
      free_rule *x = TARN_NEW(rs->cx, free_rule);
      *x = (free_rule){free_of(rs), r, i};
      e.apply = apply, e.user = x;
    } else e.rhs = roots(rs, r, r->rhs, r->nrhs), e.n_rhs = r->nrhs;
    add_rule(rs, out, r, &e);
  }
  return out;
}
static int nothing(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result) {
  (void)user, (void)g, (void)m, (void)result;
  return 0;
}
tarn_eg_rules *tarn_free_pattern(tarn_ruleset *rs, const tarn_sx *s) {
  const char *const *names;
  uint32_t n;
  return tarn_free_pattern_named(rs, s, &names, &n);
}
tarn_eg_rules *tarn_free_pattern_named(tarn_ruleset *rs, const tarn_sx *s,
                                       const char *const **names, uint32_t *n) {
  tarn_eg_rules *out = new_set(rs->cx);
  rule *r = tarn_r_left_pattern(rs, s);
  *names = r->cls_name, *n = r->ncls;
  tarn_eg_rule e = {
      .name = "pattern", .lhs = roots(rs, r, r->lhs, r->nlhs), .n_lhs = r->nlhs, .apply = nothing};
  add_rule(rs, out, r, &e);
  return out;
}
