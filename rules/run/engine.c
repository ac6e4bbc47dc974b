/* Runs typed rules in the e-graph: translates patterns, makes environments from matches, adds right
 * sides. */
#include "rules/run/run.h"
#include <string.h>

/* ---------------------------------------------------------------- patterns */

static tarn_eg_pat *translate(tarn_saturation *s, const rpat *p, uint32_t name) {
  tarn_eg_pat *q = TARN_NEW(s->cx, tarn_eg_pat);
  if (p->kind != RP_NODE) {
    *q =
        (tarn_eg_pat){.kind = p->kind == RP_SEG ? TARN_EG_PAT_SEG : TARN_EG_PAT_VAR, .var = p->var};
    return q;
  }
  tarn_eg_pat const **kid = TARN_ARRAY(s->cx, const tarn_eg_pat *, p->n ? p->n : 1);
  for (uint32_t i = 0; i < p->n; i++) kid[i] = translate(s, p->kid[i], TARN_NONE);
  *q = (tarn_eg_pat){.kind = TARN_EG_PAT_NODE,
                     .var = name,
                     .op_how = TARN_EG_EXACT,
                     .op = p->op,
                     .payload_how = TARN_EG_ANY,
                     .kids = kid,
                     .n = p->n};
  return q;
}

/* ---------------------------------------------------------------- matches */

/* Does the class hold as many nodes as the phase wants? */
static bool full(const tarn_saturation *s, uint32_t cls) {
  uint32_t n = 0;
  for (uint32_t e = tarn_eg_next_node(s->g, cls, TARN_NONE); e != TARN_NONE && n < s->forms;
       e = tarn_eg_next_node(s->g, cls, e))
    n += !sat_subsumed(s, e);
  return s->forms && n == s->forms;
}
/* No node that stands for one of the pattern is subsumed. */
static bool live_nodes(const tarn_saturation *s, const rpat *p, const uint32_t *nodes) {
  if (p->kind != RP_NODE) return true;
  bool live = !sat_subsumed(s, nodes[p->var]);
  for (uint32_t i = 0; i < p->n && live; i++) live = live_nodes(s, p->kid[i], nodes);
  return live;
}
static bool live(void *user, const uint32_t *nodes) {
  const engine_rule *x = user;
  if (full(x->s, tarn_eg_find(x->s->g, nodes[0]))) return false;
  for (uint32_t i = 0; i < x->r->nlhs; i++)
    if (!live_nodes(x->s, x->r->lhs[i].pat, nodes)) return false;
  return true;
}

static bool bind_nodes(tarn_saturation *s, const rpat *p, const tarn_eg_match *m) {
  if (p->kind != RP_NODE) return true;
  uint32_t node = m->nodes[p->var];
  if (sat_subsumed(s, node)) return false;
  s->env.node[p->var] = tarn_eg_find(s->g, node);
  if (!r_bind_payload(&s->env, p, tarn_eg_node_at(s->g, node).payload)) return false;
  for (uint32_t i = 0; i < p->n; i++)
    if (!bind_nodes(s, p->kid[i], m)) return false;
  return true;
}

static bool bind_match(engine_rule *x, const tarn_eg_match *m) {
  tarn_saturation *s = x->s;
  renv *e = &s->env;
  tarn_r_env_reset(e, x->r);
  for (uint32_t i = 0; i < x->r->ncls; i++) e->cls[i] = m->vars[i];
  uint32_t *room = s->segs, *end = room + sizeof s->segs / sizeof *s->segs;
  for (uint32_t i = 0; i < x->r->nseg; i++) {
    uint32_t n = m->segs[i].n;
    if (n > (uint32_t)(end - room)) return false;
    if (n) memcpy(room, m->segs[i].kids, n * sizeof *room);
    e->seg[i] = (rseg){room, n};
    room += n;
  }
  for (uint32_t i = 0; i < x->r->nlhs; i++)
    if (!bind_nodes(s, x->r->lhs[i].pat, m)) return false;
  return true;
}

typedef struct site_room {
  rsite site;
  rkid kid[R_KIDS];
  uint32_t leaf[2 * R_KIDS];
} site_room;

static const rbuild *builder_of(const rule *r) {
  const rpat *p = r->rhs[0].pat;
  return p->kind == RP_BUILD ? p->build : NULL;
}

/* ---------------------------------------------------------------- calls from the engine
 * They may raise (memory); the engine's frames must not be jumped over. */
typedef struct guarded {
  engine_rule *x;
  const tarn_eg_match *m;
  bool holds;
  int unions;
} guarded;

/* Do conditions and guards hold for the choice at hand, and is what the builder makes of it wanted?
 * Its kids may be opened for this. */
static bool wants(engine_rule *x, renv *e, uint32_t root) {
  const rbuild *b = builder_of(x->r);
  site_room room;
  if (!tarn_r_conditions(e, x->r, TARN_NONE) || !r_guards(e, x->r)) return false;
  if (!b || !b->when || root == TARN_NONE) return true;
  if (!r_site(e, x->r, &room.site, room.kid, room.leaf)) return false;
  room.site.root = root;
  return b->when(&room.site);
}

typedef struct choice {
  engine_rule *x;
  uint32_t root; /* TARN_NONE: the builder is not asked */
  bool found;
} choice;
static bool fitting(void *arg, renv *e) {
  choice *c = arg;
  c->found = wants(c->x, e, c->root);
  return !c->found;
}
/* Is some choice wanted at least? */
static bool possible(engine_rule *x, uint32_t root) {
  choice c = {x, root, false};
  tarn_r_choices(&x->s->env, x->r, fitting, &c);
  return c.found;
}

static void check(tarn_ctx *cx, void *arg) {
  (void)cx;
  guarded *c = arg;
  c->holds = bind_match(c->x, c->m) && possible(c->x, c->m->root);
}

/* What depends on payloads and types alone: a match that fails is dropped for good. */
static void check_shape(tarn_ctx *cx, void *arg) {
  (void)cx;
  guarded *c = arg;
  renv *e = &c->x->s->env;
  e->shape = c->x->asks;
  c->holds = bind_match(c->x, c->m) && possible(c->x, TARN_NONE);
  e->shape = false;
}

static bool fits(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  guarded c = {user, m, false, 0};
  tarn_saturation *s = c.x->s;
  (void)g;
  tarn_status st = tarn_protect(s->cx, check_shape, &c);
  s->env.shape = false;
  if (st) s->failed = st;
  return c.holds && !st;
}

static bool holds(void *user, tarn_egraph *g, const tarn_eg_match *m) {
  guarded c = {user, m, false, 0};
  tarn_saturation *s = c.x->s;
  (void)g;
  s->asks = true;
  tarn_status st = tarn_protect(s->cx, check, &c);
  s->asks = false;
  if (st) s->failed = st;
  return c.holds && !st;
}

/* Joins two ids, the second made by the rule from the first. */
static bool unite(engine_rule *x, uint32_t by, uint32_t a, uint32_t b, uint32_t note, guarded *c) {
  if (a == TARN_NONE || b == TARN_NONE) return true;
  int u = tarn_eg_union(x->s->g, a, b, by, note);
  if (u > 0) c->unions++;
  return u >= 0;
}

/* What a proof must know of a site: its left side, the kid that it is about, the kids that were
 * opened, further terms. */
static uint32_t keep_note(tarn_saturation *s, const rsite *site, uint32_t left) {
  if (!s->o.reasons) return 0;
  if (s->note.n == 0) tarn_push(s->cx, &s->note, 0); /* note 0: nothing */
  uint32_t at = s->note.n, nopen = 0;
  for (uint32_t i = 0; i < site->n; i++) nopen += site->kid[i].payload != TARN_NONE;
  tarn_push(s->cx, &s->note, left);
  tarn_push(s->cx, &s->note, site->slot);
  tarn_push(s->cx, &s->note, nopen);
  for (uint32_t i = 0; i < site->n; i++)
    if (site->kid[i].payload != TARN_NONE) tarn_push(s->cx, &s->note, i);
  tarn_push(s->cx, &s->note, site->nextra);
  for (uint32_t i = 0; i < site->nextra; i++) tarn_push(s->cx, &s->note, site->extra[i]);
  return at;
}

/* The left sides of a rule with several roots. */
static uint32_t keep_roots(tarn_saturation *s, const rule *r) {
  if (!s->o.reasons || r->nlhs < 2) return 0;
  if (s->note.n == 0) tarn_push(s->cx, &s->note, 0);
  uint32_t at = s->note.n;
  tarn_push(s->cx, &s->note, TARN_NONE);
  tarn_push(s->cx, &s->note, TARN_NONE);
  tarn_push(s->cx, &s->note, 0);
  tarn_push(s->cx, &s->note, r->nlhs);
  for (uint32_t i = 0; i < r->nlhs; i++)
    tarn_push(s->cx, &s->note, r_left(&s->env, r, r->lhs[i].pat));
  return at;
}

/* What is made from one way to compute a kid is no replacement where there are others. */
static bool opens_one_of_several(const tarn_saturation *s, const rsite *site) {
  for (uint32_t i = 0; s->both && i < site->n; i++)
    if (site->kid[i].payload != TARN_NONE && (sat_facts(s, site->kid[i].id)->has & R_SEVERAL))
      return true;
  return false;
}

static bool apply_build(engine_rule *x, guarded *c, const tarn_eg_match *m) {
  tarn_saturation *s = x->s;
  site_room room;
  rsite *site = &room.site;
  if (!r_site(&s->env, x->r, site, room.kid, room.leaf)) return true;
  site->root = m->root;
  uint32_t right = builder_of(x->r)->build(site);
  if (right == TARN_NONE) return true;
  if (site->elsewhere) tarn_push(s->cx, &s->rerouted, m->nodes[0]);
  bool replaced = builder_of(x->r)->replaces || site->replaced;
  if (opens_one_of_several(s, site)) {
    if (replaced || site->worse) facts_mark(s, m->root, R_SEVERAL);
  } else if (replaced || site->worse) {
    sat_set_state(s, m->nodes[0], replaced ? SAT_REPLACED : SAT_WORSE);
  }
  uint32_t left = s->o.reasons ? r_site_left(site) : m->root, note = keep_note(s, site, left);
  if (!unite(x, x->number, left, right, note, c)) return false;
  if (!unite(x, x->number, site->also[0], site->also[1], note, c)) return false;
  for (uint32_t i = 0; i < site->nmore; i++)
    if (!unite(x, R_RULE_NORM, site->more[2 * i], site->more[2 * i + 1], 0, c)) return false;
  return true;
}

static bool apply_plain(engine_rule *x, guarded *c, const tarn_eg_match *m) {
  tarn_saturation *s = x->s;
  const rule *r = x->r;
  uint32_t note = keep_roots(s, r);
  for (uint32_t i = 0; i < r->nrhs; i++) {
    uint32_t right = tarn_r_instantiate(&s->env, r, r->rhs[i].pat), left = m->root;
    if (right == TARN_NONE) continue;
    uint32_t l = 0;
    for (uint32_t k = 0; k < r->nlhs && r->rhs[i].var != TARN_NONE; k++)
      if (r->lhs[k].var == r->rhs[i].var) l = k;
    if (r->rhs[i].var != TARN_NONE) left = s->env.cls[r->rhs[i].var];
    if (s->o.reasons) left = r_left(&s->env, r, r->lhs[l].pat);
    if (!unite(x, x->number, left, right, note, c)) return false;
    if (r->subsumes) sat_set_state(s, m->nodes[0], SAT_REPLACED);
  }
  return true;
}

/* What a choice must be is looked at before the rule changes anything. */
enum { CHOICES = 1024 };
typedef struct acting {
  guarded *c;
  bool ok;
  uint32_t n; /* of the choice at hand */
  bool wanted[CHOICES];
} acting;
static bool look_once(void *arg, renv *e) {
  acting *a = arg;
  a->wanted[a->n++] = wants(a->c->x, e, a->c->m->root);
  return a->n < CHOICES;
}
static bool act_once(void *arg, renv *e) {
  acting *a = arg;
  engine_rule *x = a->c->x;
  bool choices = r_has_choices(x->r);
  if (choices && a->n == CHOICES) return false;
  if (choices && !a->wanted[a->n++]) return true;
  if (!tarn_r_conditions(e, x->r, TARN_NONE) || (!choices && !r_guards(e, x->r))) return true;
  a->ok = builder_of(x->r) ? apply_build(x, a->c, a->c->m) : apply_plain(x, a->c, a->c->m);
  return a->ok;
}

static void act(tarn_ctx *cx, void *arg) {
  guarded *c = arg;
  acting a;
  a.c = c, a.ok = true, a.n = 0;
  if (full(c->x->s, c->m->root) || !bind_match(c->x, c->m)) return;
  if (r_has_choices(c->x->r)) tarn_r_choices(&c->x->s->env, c->x->r, look_once, &a);
  a.n = 0;
  tarn_r_choices(&c->x->s->env, c->x->r, act_once, &a);
  if (!a.ok) tarn_raise(cx, TARN_NO, "%s", tarn_eg_message(c->x->s->g));
}

static int apply(void *user, tarn_egraph *g, const tarn_eg_match *m, uint32_t *result) {
  guarded c = {user, m, false, 0};
  tarn_saturation *s = c.x->s;
  (void)result;
  tarn_status st = tarn_protect(s->cx, act, &c);
  if (st == TARN_BAD_INPUT)
    st = TARN_OK; /* a right side that is too large to be written down: the rule does not apply */
  if (st && st != TARN_NO) s->failed = st;
  if (tarn_eg_status(g) == TARN_BAD_INPUT && !st)
    tarn_eg_clear_status(g); /* a refused right side */
  return st || tarn_eg_status(g) ? -1 : c.unions;
}

/* ---------------------------------------------------------------- rule sets */

static uint64_t rule_reads(const rule *r) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < r->ncond; i++) bits |= rx_reads(r->cond[i]);
  for (uint32_t i = 0; i < r->nguard; i++) bits |= rx_reads(r->guard[i]);
  return bits;
}

_Noreturn static void refused(tarn_ctx *cx, const rule *r, const tarn_eg_rules *rules) {
  if (tarn_eg_rules_status(rules) == TARN_MEMORY)
    tarn_raise(cx, TARN_MEMORY, "%s", tarn_eg_rules_message(rules));
  tarn_sx_error(cx, r->at, "%s", tarn_eg_rules_message(rules));
}
static void compile_rule(tarn_saturation *s, const rule *r, uint32_t number) {
  engine_rule *x = &s->er[s->nactive];
  *x = (engine_rule){.s = s, .r = r, .number = number};
  tarn_eg_root *lhs = TARN_ARRAY(s->cx, tarn_eg_root, r->nlhs);
  for (uint32_t i = 0; i < r->nlhs; i++)
    lhs[i] = (tarn_eg_root){r->lhs[i].var, translate(s, r->lhs[i].pat, TARN_NONE)};
  const rbuild *b = builder_of(r);
  uint64_t reads = rule_reads(r), asks = reads & TARN_EG_READS_GRAPH;
  tarn_eg_condition cond[2] = {{fits, x, asks ? 0 : reads, live},
                               {holds, x, b ? b->reads | asks : 0, NULL}};
  x->asks = asks != 0;
  tarn_eg_rule e = {.name = r->name,
                    .id = number,
                    .lhs = lhs,
                    .n_lhs = r->nlhs,
                    .conditions = cond,
                    .n_conditions = asks || (b && b->when) ? 2 : 1,
                    .apply = apply,
                    .user = x};
  if (tarn_eg_rules_add(s->rules, &e) == TARN_NONE) refused(s->cx, r, s->rules);
  s->nactive++;
}

/* Does the description, or that of a machine that it hangs on, ask for what a rule makes? By the
 * name of an intrinsic, or by what units it has. */
static bool demanded_by(tarn_lang *L, const tarn_hw *hw, const char *what) {
  if (strcmp(what, "product") == 0 && tarn_hw_wants_products(L, hw)) return true;
  if (strcmp(what, "shifts") == 0 && tarn_hw_shifts(L, hw)) return true;
  for (uint32_t i = 0; i < hw->nintrin; i++)
    if (strcmp(hw->intrin[i].name, what) == 0) return true;
  return false;
}
bool engine_demanded(const tarn_saturation *s, const rule *r) {
  if (!r->demand) return true;
  if (s->o.demand && strcmp(r->demand, s->o.demand) == 0) return true;
  if (!s->o.hw) return false;
  if (strcmp(r->demand, "always") == 0) return true;
  const tarn_machines m = tarn_hw_machines(s->o.hw);
  for (uint32_t i = 0; i < m.n; i++)
    if (demanded_by(s->L, m.hw[i], r->demand)) return true;
  return false;
}

static bool allowed(const tarn_saturation *s, const rule *r) {
  return r->numeric <= s->o.numerics && (r->numeric != TARN_RULE_APPROX || r->bound <= s->o.rtol);
}

static bool of_mode(const tarn_saturation *s, const rule *r) {
  if (r->level == TARN_RULE_SURFACE) return s->o.surface || s->o.surface_first;
  return r->level == TARN_RULE_KERNEL && !s->o.surface;
}

void engine_compile(tarn_saturation *s) {
  const tarn_ruleset *rs = s->rs;
  s->rules = tarn_eg_rules_new(tarn_ctx_allocator(s->cx));
  if (!s->rules) tarn_raise(s->cx, TARN_MEMORY, "rules: out of memory");
  s->er = TARN_ARRAY(s->cx, engine_rule, rs->rule.n ? rs->rule.n : 1);
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    if (!of_mode(s, r) || !allowed(s, r) || !engine_demanded(s, r)) continue;
    compile_rule(s, r, i);
    s->both |= !s->o.surface && r->level == TARN_RULE_SURFACE;
  }
}
