/* Does one free rule set imply another? Each rule's sides as terms, saturated by the rules of the
 * other set. */
#include "base/limit.h"
#include "lab/learn.h"
#include <string.h>

enum { DERIVE_SAMPLES = 48 };

typedef struct deriving {
  tarn_ruleset *from, *of;
  const tarn_derive_options *o;
  const rule *r;
  bool follows, struck;
} deriving;

/* Values of the rule's variables, and where its conditions hold. */
static lsamples *samples(deriving *d, bool *keep) {
  tarn_ctx *cx = d->from->cx;
  lsamples *s = TARN_NEW(cx, lsamples);
  const meaning *m = free_of(d->from)->meaning;
  uint64_t seed = tarn_hash_mix(d->o->seed, 5);
  const char *why = NULL;
  *s = (lsamples){.n = DERIVE_SAMPLES, .nvar = d->r->ncls};
  s->var = tarn_new_array(cx, s->n, sizeof *s->var);
  if (d->r->ncls > L_VARS) tarn_sx_error(cx, d->r->at, "more than %d variables", L_VARS);
  const mexpr **cond = TARN_ARRAY(cx, const mexpr *, d->r->ncond + 1);
  for (uint32_t i = 0; i < d->r->ncond; i++)
    cond[i] = meaning_condition(d->from, d->r, d->r->cond[i]->at, &why);
  if (why) tarn_sx_error(cx, d->r->at, "%s", why);
  for (uint32_t i = 0; i < s->n; i++) {
    for (uint32_t v = 0; v < s->nvar; v++)
      if (i % 3 || !m_corner(m, (uint32_t)(tarn_random(&seed) % 4), &s->var[i][v]))
        s->var[i][v] = m_random(m, &seed);
    keep[i] = true;
    for (uint32_t k = 0; k < d->r->ncond; k++)
      keep[i] &= m_truth(meaning_eval(m, cond[k], s->var[i]));
  }
  return s;
}
/* For one rule, of what the limit leaves. */
static double seconds_of(tarn_ctx *cx, const tarn_derive_options *o) {
  double s = o->seconds > 0 ? o->seconds : 20, until = tarn_limit_get(cx).until;
  tarn_go_on(cx);
  return until > 0 ? tarn_fmin(s, tarn_fmax(1e-3, until - tarn_now())) : s;
}
static void derive(tarn_ctx *cx, void *arg) {
  deriving *d = arg;
  bool *keep = TARN_ARRAY(cx, bool, DERIVE_SAMPLES);
  lgraph_config c = {.keep = keep,
                     .lax = d->o->lax || !free_of(d->from)->meaning,
                     .iterations = d->o->iterations ? d->o->iterations : 8,
                     .nodes = d->o->nodes ? d->o->nodes : 100000,
                     .bytes = d->o->bytes ? d->o->bytes : UINT64_C(1) << 30,
                     .seconds = seconds_of(cx, d->o),
                     .clock = d->o->clock,
                     .user = d->o->user};
  if (!c.lax) c.samples = samples(d, keep);
  lgraph *g = lgraph_new(d->from, &c);
  uint32_t left = lgraph_pattern(g, d->of, d->r->lhs[0].pat),
           right = lgraph_pattern(g, d->of, d->r->rhs[0].pat);
  lgraph_run(g, TARN_NONE);
  d->follows = lgraph_same(g, left, right);
  d->struck = lgraph_struck(g);
}

uint32_t tarn_rules_derive(tarn_ruleset *from, tarn_ruleset *of, const tarn_derive_options *o,
                           bool *follows) {
  uint32_t n = 0, variable[R_CLASSES];
  if (!from->theory || !of->theory)
    tarn_raise(from->cx, TARN_USAGE, "rules derive: rules over operators of any name are expected");
  lgraph_symbols(from, variable);
  if (o->struck) *o->struck = 0;
  for (uint32_t i = 0; i < of->rule.n; i++) {
    deriving d = {from, of, o, of->rule.p[i], false, false};
    if (d.r->nlhs != 1 || d.r->nrhs != 1)
      tarn_sx_error(from->cx, d.r->at, "one left and one right side are expected");
    tarn_status st = tarn_protect(from->cx, derive, &d);
    if (st) tarn_reraise(from->cx, st);
    n += follows[i] = d.follows;
    if (o->struck && d.struck && !d.follows) ++*o->struck;
  }
  return n;
}
