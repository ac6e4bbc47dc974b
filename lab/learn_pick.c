/* Which candidates become rules: again and again the simplest of those that do not follow. */
#include "base/limit.h"
#include "lab/learn.h"
#include <stdlib.h>
#include <string.h>

enum {
  SETTLE_ITERATIONS = 5,
  SETTLE_NODES = 60000,
  MINIMISE_ITERATIONS = 5,
  MINIMISE_NODES = 40000,
  ALONE_ITERATIONS = 8,
  ALONE_NODES = 20000,
  AT_ONCE = 8000
};

/* ---------------------------------------------------------------- what follows */

typedef struct asking { /* which of these pairs follow from the rules? */
  learn *l;
  lpair *pair;
  uint32_t n, without;
  uint64_t assume;
  uint32_t iterations, nodes;
  bool *follows;
} asking;

static uint32_t add_term(const learn *l, lgraph *g, uint32_t term, const uint8_t *name) {
  const lterm *t = &l->term.p[term];
  const lop *o = &l->op.p[t->op];
  uint32_t kid[3];
  if (o->var != TARN_NONE) return lgraph_variable(g, name[o->var]);
  for (uint32_t i = 0; i < o->arity; i++) kid[i] = add_term(l, g, t->kid[i], name);
  return lgraph_node(g, o->symbol, kid, o->arity);
}
static void ask(tarn_ctx *cx, void *arg) {
  asking *a = arg;
  learn *l = a->l;
  bool *keep = TARN_ARRAY(cx, bool, l->samples.n + 1);
  uint32_t *left = TARN_ARRAY(cx, uint32_t, a->n + 1), *right = TARN_ARRAY(cx, uint32_t, a->n + 1);
  for (uint32_t s = 0; s < l->samples.n; s++)
    keep[s] = learn_assumed(l, a->assume, l->samples.var[s]);
  bool by_values = l->partial || a->assume || l->report.conditional;
  lgraph_config c = {.samples = by_values ? &l->samples : NULL,
                     .keep = keep,
                     .iterations = a->iterations,
                     .nodes = a->nodes};
  lgraph *g = lgraph_new(l->rs, &c);
  for (uint32_t i = 0; i < a->n; i++) {
    left[i] = add_term(l, g, a->pair[i].l, a->pair[i].name);
    right[i] = add_term(l, g, a->pair[i].r, a->pair[i].name);
  }
  lgraph_run(g, a->without);
  for (uint32_t i = 0; i < a->n; i++) a->follows[i] = lgraph_same(g, left[i], right[i]);
}
static void run(asking *a) {
  tarn_ctx *cx = a->l->cx;
  tarn_mark m = tarn_arena_mark(cx);
  tarn_status st = tarn_protect(cx, ask, a);
  a->l->report.runs++;
  if (st) tarn_reraise(cx, st);
  tarn_release(cx, m);
}

/* ---------------------------------------------------------------- a rule */

static uint32_t arity_of(const learn *l, uint32_t t) { return l->op.p[l->term.p[t].op].arity; }

static const char *rule_text(const learn *l, const lpair *p) {
  tarn_buf b = {.cx = l->cx};
  const lterm *x = &l->term.p[p->l], *y = &l->term.p[p->r];
  bool turn =
      (y->vars & ~x->vars) != 0; /* the smaller side has variables that the larger has not */
  bool both = x->vars == y->vars && arity_of(l, p->r) &&
              (x->size == y->size || (x->size <= y->size + 2 && y->size >= 3));
  tarn_buf_fmt(&b, "(family learned (rule law-%u ", l->named + 1);
  learn_print(l, &b, turn ? p->r : p->l, p->name);
  tarn_buf_str(&b, both ? " <=> " : " => ");
  learn_print(l, &b, turn ? p->l : p->r, p->name);
  for (uint32_t i = 0; i < l->fact.n; i++) {
    const lfact *f = &l->fact.p[i];
    if (!(p->assume >> i & 1)) continue;
    tarn_buf_fmt(&b, " :if (%s ?%c", l->cond.p[f->cond], 'a' + (int)f->v);
    if (f->w != TARN_NONE) tarn_buf_fmt(&b, " ?%c", 'a' + (int)f->w);
    tarn_buf_str(&b, ")");
  }
  tarn_buf_str(&b, "))");
  return b.p;
}
/* The pair as a rule of the set. False: it is refuted, and no rule. */
static bool adopt(learn *l, const lpair *p) {
  const char *text = rule_text(l, p);
  uint32_t before = l->rs->rule.n;
  tarn_ruleset_read(l->rs, text, strlen(text), "learned");
  tarn_rules_check_options o = {
      .seed = l->o->seed + 1, .samples = 2000, .only = l->rs->rule.p[before]->name};
  const tarn_rule_result *r;
  uint32_t n = tarn_rules_check(l->rs, &o, &r);
  for (uint32_t i = 0; i < n; i++)
    if (r[i].counterexample) {
      l->rs->rule.n = before;
      l->report.refuted++;
      return false;
    }
  for (uint32_t i = before; i < l->rs->rule.n; i++) tarn_push(l->cx, &l->chosen, *p);
  l->named++, l->report.rules++, l->report.conditional += p->assume != 0;
  return true;
}

/* ---------------------------------------------------------------- choosing */

static uint32_t constants(const learn *l, uint32_t t) {
  const lop *o = &l->op.p[l->term.p[t].op];
  uint32_t n = o->arity == 0 && o->var == TARN_NONE;
  for (uint32_t i = 0; i < o->arity; i++) n += constants(l, l->term.p[t].kid[i]);
  return n;
}
/* Small, then general, then as enumerated. */
static bool simpler(const learn *l, const lpair *a, const lpair *b) {
  if (a->size != b->size) return a->size < b->size;
  if (a->vars != b->vars) return a->vars > b->vars;
  uint32_t ca = constants(l, a->l) + constants(l, a->r),
           cb = constants(l, b->l) + constants(l, b->r);
  if (ca != cb) return ca < cb;
  return a->l < b->l;
}
static void simplest_first(const learn *l, lpair *p, uint32_t n) { /* by merging */
  lpair *tmp;
  if (n < 2) return;
  uint32_t h = n / 2, i = 0, j = h, k = 0;
  simplest_first(l, p, h);
  simplest_first(l, p + h, n - h);
  tarn_mark m = tarn_arena_mark(l->cx);
  tmp = TARN_ARRAY(l->cx, lpair, n);
  while (i < h || j < n)
    tmp[k++] = j == n || (i < h && !simpler(l, &p[j], &p[i])) ? p[i++] : p[j++];
  memcpy(p, tmp, n * sizeof *p);
  tarn_release(l->cx, m);
}

/* A few thousand pairs at a time, simplest first. */
static void settle(learn *l, lpair *p, uint32_t n, uint64_t assume) {
  bool *follows = TARN_ARRAY(l->cx, bool, n + 1);
  while (n && !learn_late(l)) {
    uint32_t left = 0;
    asking a = {.l = l,
                .pair = p,
                .n = n,
                .without = TARN_NONE,
                .assume = assume,
                .iterations = SETTLE_ITERATIONS,
                .nodes = SETTLE_NODES,
                .follows = follows};
    run(&a);
    if (tarn_late(l->cx)) return; /* in the middle: what follows is not known */
    for (uint32_t i = 0; i < n; i++) {
      if (follows[i]) tarn_push(l->cx, &l->followed, p[i]);
      else p[left++] = p[i];
    }
    l->report.followed += n - left, n = left;
    uint32_t first = 0;
    while (first < n && !adopt(l, &p[first])) first++;
    if (first == n) return;
    n -= first + 1;
    memmove(p, p + first + 1, n * sizeof *p);
  }
}
void learn_settle(learn *l, lpair *p, uint32_t n, uint64_t assume) {
  l->report.candidates += n;
  simplest_first(l, p, n);
  for (uint32_t i = 0; i < n; i += AT_ONCE)
    settle(l, p + i, n - i < AT_ONCE ? n - i : AT_ONCE, assume);
}

void learn_minimise(learn *l) {
  for (uint32_t i = l->rs->rule.n; i-- > 0 && !learn_late(l);) {
    rule *r = l->rs->rule.p[i];
    uint32_t last = i, follows_n = 1;
    bool follows = false;
    if (r->back) i--; /* NAME:back stands behind NAME: both or none */
    lpair p = l->chosen.p[i];
    asking a = {.l = l,
                .pair = &p,
                .n = follows_n,
                .without = TARN_NONE,
                .assume = p.assume,
                .iterations = MINIMISE_ITERATIONS,
                .nodes = MINIMISE_NODES,
                .follows = &follows};
    for (uint32_t k = i; k <= last; k++) l->rs->rule.p[k]->dropped = true;
    run(&a);
    if (follows) l->report.redundant++, l->report.rules--, l->report.conditional -= p.assume != 0;
    for (uint32_t k = i; k <= last && !follows; k++) l->rs->rule.p[k]->dropped = false;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->rs->rule.n; i++)
    if (!l->rs->rule.p[i]->dropped) l->rs->rule.p[n++] = l->rs->rule.p[i];
  l->rs->rule.n = n;
}

/* A candidate may have followed only because terms of others were in the same graph: what does not
 * follow from the rules by its own two terms becomes a rule too. Most follow soon. */
static bool follows_alone(learn *l, lpair *p) {
  static const uint32_t limits[][2] = {{2, 500}, {4, 3000}, {ALONE_ITERATIONS, ALONE_NODES}};
  bool follows = false;
  for (size_t i = 0; i < sizeof limits / sizeof *limits && !follows; i++) {
    asking a = {.l = l,
                .pair = p,
                .n = 1,
                .without = TARN_NONE,
                .assume = p->assume,
                .iterations = limits[i][0],
                .nodes = limits[i][1],
                .follows = &follows};
    run(&a);
  }
  return follows;
}
void learn_complete(learn *l) {
  lpair *p = l->followed.p;
  simplest_first(l, p, l->followed.n);
  for (uint32_t i = 0; i < l->followed.n && !learn_late(l); i++)
    if (!follows_alone(l, &p[i]) && !tarn_late(l->cx) && adopt(l, &p[i])) l->report.followed--;
}
