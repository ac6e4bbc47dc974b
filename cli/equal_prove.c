/* tarn equal: a proof that two terms are equal. Both are rewritten in one e-graph, over access
 * patterns and in kernel form, until they are of one class. */
#include "cli/equal.h"
#include <math.h>

/* Other algorithms for the same values make no two programs more alike. */
static const char *const algorithms[] = {"winograd", "strassen",   "im2col", "parts",
                                         "online",   "interleave", "rows",   "narrow"};
static tarn_ruleset *rules(equal_job *k, bool surface) {
  tarn_ruleset *rs = tarn_ruleset_new(k->L);
  tarn_ruleset_ship(rs, NULL, surface ? TARN_RULE_SURFACE : TARN_RULE_KERNEL);
  for (size_t i = 0; !surface && i < sizeof algorithms / sizeof *algorithms; i++)
    tarn_ruleset_drop(rs, algorithms[i]);
  for (uint32_t i = 0; i < k->rules.n; i++) tarn_ruleset_add(rs, k->rules.p[i]);
  return rs;
}
static tarn_sat_options options(equal_job *k, bool surface, tarn_term goal) {
  double until = tarn_limit_get(k->cx).until;
  tarn_sat_options o = tarn_sat_defaults();
  o.surface = surface, o.reasons = TARN_EG_REASONS_ALL;
  o.demand = "equality", o.numerics = k->numerics;
  o.goal = surface ? goal : tarn_kernel_form(k->L, goal);
  o.max_nodes = k->nodes, o.max_iterations = (uint32_t)k->iters;
  if (until > 0) o.max_seconds = fmax(1e-3, until - tarn_now());
  return o;
}
typedef struct proving {
  equal_job *k;
  tarn_term a, b;
  const char *name, **stop;
  tarn_buf *chain;
  bool surface, proved;
} proving;
static void prove(tarn_ctx *cx, void *arg) {
  proving *p = arg;
  tarn_io both[2] = {{p->name, p->a, tarn_term_get(p->k->L, p->a)->type},
                     {p->name, p->b, tarn_term_get(p->k->L, p->b)->type}};
  tarn_program two = {.L = p->k->L, .nout = 2, .out = both};
  tarn_sat_options o = options(p->k, p->surface, p->b);
  (void)cx;
  tarn_saturation *s = tarn_saturate(&two, rules(p->k, p->surface), &o);
  p->proved = tarn_sat_root(s, 0) == tarn_sat_root(s, 1);
  if (p->proved) tarn_sat_explain(s, 0, o.goal, p->chain);
  else *p->stop = tarn_sat_result(s)->stop;
  tarn_sat_free(s);
}
bool equal_prove(equal_job *k, double share, tarn_term a, tarn_term b, const char *name,
                 tarn_buf *chain, const char **stop) {
  for (int surface = 0; surface < 2; surface++) {
    proving p = {k, a, b, name, stop, chain, surface, false};
    *stop = "time";
    if (equal_in_time(k, surface ? share / 2 : share, prove, &p) && p.proved) return true;
  }
  return false;
}
