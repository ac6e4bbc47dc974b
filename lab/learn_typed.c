/* Equations of typed terms beside the rules: which rules they are instances of, which follow, and
 * which become rules. */
#include "lab/learn_terms.h"
#include <string.h>

enum { EACH_FORM = 3, AT_ONCE = 16, ITERATIONS = 4, NODES = 20000, SAMPLES = 200, ROUNDS = 400 };

/* ---------------------------------------------------------------- found again */

typedef struct again {
  lt *l;
  const rule *r;
  tarn_term left, right; /* right: TARN_NONE until found */
} again;

/* An instance whose right side was enumerated too: then it is one of the equations. */
static bool try_choice(void *arg, renv *e) {
  again *a = arg;
  if (!tarn_r_conditions(e, a->r, TARN_NONE) || a->r->rhs[0].pat->kind == RP_BUILD) return true;
  tarn_term t = tarn_r_instantiate(e, a->r, a->r->rhs[0].pat);
  const lt *l = a->l;
  if (t == TARN_NONE || t == a->left || t >= l->value.n || !l->value.p[t] ||
      l->value.p[t] != l->value.p[a->left])
    return true;
  a->right = t;
  return false;
}
static bool try_match(void *arg, renv *e) {
  again *a = arg;
  tarn_r_choices(e, a->r, try_choice, a);
  return a->right == TARN_NONE;
}
static void find_again(lt *l) {
  rhost host = tarn_r_term_host(l->L);
  renv *e = TARN_NEW(l->cx, renv);
  TARN_VEC(tarn_found_again) found = {0};
  *e = (renv){.L = l->L, .host = &host};
  for (uint32_t k = 0; k < l->rs->rule.n && !lt_late(l); k++) {
    const rule *r = l->rs->rule.p[k];
    again a = {l, r, TARN_NONE, TARN_NONE};
    if (r->level != TARN_RULE_SURFACE || r->nlhs != 1 || r->nrhs != 1 ||
        r->lhs[0].pat->kind != RP_NODE)
      continue;
    for (uint32_t i = 0; i < l->all.n && a.right == TARN_NONE; i++) {
      a.left = l->all.p[i];
      if (tarn_term_get(l->L, a.left)->op != r->lhs[0].pat->op) continue;
      tarn_r_env_reset(e, r);
      tarn_r_match_term(e, r, 0, a.left, try_match, &a);
    }
    if (a.right == TARN_NONE) continue;
    tarn_buf x = {.cx = l->cx}, y = {.cx = l->cx};
    lt_print(l, &x, a.left);
    lt_print(l, &y, a.right);
    tarn_found_again f = {k, x.p, y.p};
    tarn_push(l->cx, &found, f);
  }
  l->report.found = found.p, l->report.nfound = found.n;
}

/* ---------------------------------------------------------------- forms */

/* Operators without their payloads, leaves by where they first stand; functions are part of the
 * form. */
static void form(const lt *l, tarn_buf *b, tarn_term t, tarn_term *seen, uint32_t *n) {
  const tarn_node *x = tarn_term_get(l->L, t);
  uint32_t i = 0;
  if (x->op == TARN_OP_INPUT) {
    while (i < *n && seen[i] != t) i++;
    if (i == *n) seen[(*n)++] = t;
    tarn_buf_fmt(b, "%u ", i);
    return;
  }
  tarn_buf_fmt(b, "(%u:%u ", x->op, x->op == TARN_OP_COMPUTE ? x->payload : 0);
  for (i = 0; i < tarn_term_get(l->L, t)->n; i++)
    form(l, b, tarn_term_get(l->L, t)->kid[i], seen, n);
}
static uint32_t leaves(const lt *l, tarn_term t) { /* bit set */
  const tarn_node *x = tarn_term_get(l->L, t);
  uint32_t set = 0;
  for (uint32_t i = 0; i < l->nleaf; i++)
    if (l->leaf[i] == t) set |= 1u << i;
  for (uint32_t i = 0; i < x->n; i++) set |= leaves(l, x->kid[i]);
  return set;
}
static bool orientable(const lt *l, lt_equation *e) {
  uint32_t a = leaves(l, e->left), b = leaves(l, e->right);
  if (!(b & ~a)) return true;
  if ((a & ~b) || tarn_term_get(l->L, e->right)->n == 0) return false;
  *e = (lt_equation){e->right, e->left, e->size};
  return true;
}
static uint64_t form_of(const lt *l, const lt_equation *e) {
  tarn_term seen[LT_LEAVES];
  uint32_t k = 0;
  tarn_mark m = tarn_arena_mark(l->cx);
  tarn_buf b = {.cx = l->cx};
  form(l, &b, e->left, seen, &k);
  tarn_buf_str(&b, "= ");
  form(l, &b, e->right, seen, &k);
  uint64_t h = tarn_hash_bytes(b.p, b.n, 3);
  tarn_release(l->cx, m);
  return h;
}
/* A few equations of each form: small ones first, then those of many leaves. */
static uint32_t pick_forms(lt *l, lt_equation *out) {
  tarn_map *count = tarn_map_new(l->cx);
  TARN_VEC(lt_equation) of[2 * LT_SIZE + 1][LT_LEAVES + 1] = {0};
  uint32_t n = 0;
  bool fresh;
  for (uint32_t i = 0; i < l->equation.n; i++) {
    lt_equation e = l->equation.p[i];
    if (!orientable(l, &e)) continue;
    uint64_t *c = tarn_map_at(count, form_of(l, &e), &fresh);
    l->report.forms += fresh;
    if ((*c)++ < EACH_FORM) tarn_push(l->cx, &of[e.size][__builtin_popcount(leaves(l, e.left))], e);
  }
  for (uint32_t size = 0; size <= 2 * l->most; size++)
    for (uint32_t k = l->nleaf + 1; k-- > 0; n += of[size][k].n)
      if (of[size][k].n) memcpy(out + n, of[size][k].p, of[size][k].n * sizeof *out);
  return n;
}

/* ---------------------------------------------------------------- what follows */

typedef struct asking {
  lt *l;
  const lt_equation *e;
  uint32_t n;
  bool *follows;
} asking;

static void ask(tarn_ctx *cx, void *arg) {
  asking *a = arg;
  tarn_lang *L = a->l->L;
  tarn_program p = {.L = L,
                    .nout = 2 * a->n,
                    .out = TARN_ARRAY(cx, tarn_io, 2 * a->n + 1),
                    .nin = a->l->nleaf,
                    .in = TARN_ARRAY(cx, tarn_io, a->l->nleaf)};
  for (uint32_t i = 0; i < a->l->nleaf; i++)
    p.in[i] = (tarn_io){a->l->in[i].name, a->l->leaf[i], tarn_term_get(L, a->l->leaf[i])->type};
  for (uint32_t i = 0; i < p.nout; i++) {
    tarn_term t = i % 2 ? a->e[i / 2].right : a->e[i / 2].left;
    p.out[i] = (tarn_io){tarn_format(cx, "out%u", i), t, tarn_term_get(L, t)->type};
  }
  tarn_sat_options o = tarn_sat_defaults();
  o.surface = true, o.numerics = TARN_RULE_REASSOC;
  o.max_iterations = ITERATIONS, o.max_nodes = NODES;
  tarn_saturation *s = tarn_saturate(&p, a->l->rs, &o);
  for (uint32_t i = 0; i < a->n; i++)
    a->follows[i] = tarn_sat_root(s, 2 * i) == tarn_sat_root(s, 2 * i + 1);
}
/* Leaves what does not follow; TARN_NONE: a rule joins terms of two types. Terms that a run makes
 * stay in the language, so nothing is released. */
static uint32_t not_following(lt *l, lt_equation *e, uint32_t n) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < n && !lt_late(l); i += AT_ONCE) {
    bool follows[AT_ONCE] = {0};
    asking a = {l, e + i, n - i < AT_ONCE ? n - i : AT_ONCE, follows};
    tarn_status st = tarn_protect(l->cx, ask, &a);
    if (st == TARN_BAD_INPUT || st == TARN_INTERNAL) return TARN_NONE;
    if (st) tarn_reraise(l->cx, st);
    l->report.asked += a.n;
    for (uint32_t k = 0; k < a.n; k++)
      if (follows[k]) l->report.followed++;
      else e[left++] = e[i + k];
  }
  return left;
}

/* ---------------------------------------------------------------- rules */

/* How much the rule says of its variables' types: nothing, the number of access dims, that of
 * compute dims too. */
enum { SAY_NOTHING, SAY_ACCESS, SAY_BOTH, SAY_MOST };

static const char *rule_text(const lt *l, const lt_equation *e, const char *numeric, int say) {
  tarn_buf b = {.cx = l->cx};
  uint32_t used = leaves(l, e->left);
  tarn_buf_fmt(&b, "(family learned (rule law-%u ", l->report.rules + l->report.local + 1);
  lt_print(l, &b, e->left);
  tarn_buf_str(&b, " => ");
  lt_print(l, &b, e->right);
  for (uint32_t i = 0; i < l->nleaf && say; i++) {
    const tarn_type *t = tarn_term_type(l->L, l->leaf[i]);
    if (!(used >> i & 1)) continue;
    tarn_buf_fmt(&b, " :if (= (ns ?%s) %u)", l->in[i].name, t->ns);
    if (say == SAY_BOTH)
      tarn_buf_fmt(&b, " :if (= (nc ?%s) %u)", l->in[i].name, (uint32_t)(t->n - t->ns));
  }
  tarn_buf_fmt(&b, " :class %s))", numeric);
  return b.p;
}
typedef struct adopting {
  lt *l;
  const lt_equation *e;
  bool ok;
} adopting;

static bool holds(lt *l, const char *text, tarn_rule_class *found) {
  uint32_t at = l->rs->rule.n;
  tarn_ruleset_read(l->rs, text, strlen(text), "learned");
  tarn_rules_check_options o = {
      .samples = SAMPLES, .seed = l->o->seed, .only = l->rs->rule.p[at]->name};
  const tarn_rule_result *r;
  bool ok = tarn_rules_check(l->rs, &o, &r) == 1 && r->ok;
  if (ok) *found = r->found;
  l->rs->rule.n = at;
  return ok;
}
/* The equation as a rule, with as few conditions as it needs. A pattern that the language of rules
 * refuses is no rule. */
static void adopt(tarn_ctx *cx, void *arg) {
  adopting *a = arg;
  tarn_rule_class found = TARN_RULE_EXACT;
  (void)cx;
  for (int say = SAY_NOTHING; say < SAY_MOST && !a->ok; say++) {
    if (!holds(a->l, rule_text(a->l, a->e, "reassoc", say), &found)) continue;
    const char *text = rule_text(a->l, a->e, tarn_rule_class_name(found), say);
    tarn_ruleset_read(a->l->rs, text, strlen(text), "learned");
    a->ok = true;
  }
}
/* Again and again the first that does not follow, if it holds for other shapes too, and joins what
 * has one type. */
static void learn_new(lt *l, lt_equation *e, uint32_t n) {
  lt_equation *had = TARN_ARRAY(l->cx, lt_equation, n + 1);
  for (uint32_t round = 0; n && round < ROUNDS && !lt_late(l); round++) {
    adopting a = {l, e, false};
    tarn_status st = tarn_protect(l->cx, adopt, &a);
    if (st == TARN_MEMORY || st == TARN_INTERNAL) tarn_reraise(l->cx, st);
    memmove(e, e + 1, --n * sizeof *e);
    memcpy(had, e, n * sizeof *e);
    uint32_t left = a.ok ? not_following(l, e, n) : n;
    if (left == TARN_NONE) {
      memcpy(e, had, n * sizeof *e);
      l->rs->rule.n--, a.ok = false;
    } else n = left;
    l->report.rules += a.ok, l->report.local += !a.ok;
  }
}

tarn_terms_report tarn_rules_learn_terms(tarn_ruleset *rs, const tarn_sx *terms,
                                         const tarn_learn_options *o) {
  lt *l = TARN_NEW(rs->cx, lt);
  *l = (lt){.cx = rs->cx, .L = rs->L, .rs = rs, .o = o};
  if (o->seconds > 0) l->deadline = o->seconds + tarn_now();
  if (rs->theory) tarn_raise(rs->cx, TARN_USAGE, "rules learn: typed terms need a typed rule set");
  lt_enumerate(l, terms);
  find_again(l);
  lt_equation *e = TARN_ARRAY(l->cx, lt_equation, l->equation.n + 1);
  uint32_t n = not_following(l, e, pick_forms(l, e));
  if (n == TARN_NONE) tarn_raise(l->cx, TARN_BAD_INPUT, "rules learn: %s", tarn_message(l->cx));
  learn_new(l, e, n);
  l->report.late = lt_late(l);
  return l->report;
}
