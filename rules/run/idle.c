/* Why rules that were asked for did nothing. */
#include "rules/run/run.h"
#include <string.h>

static const char *not_allowed(const tarn_saturation *s, const rule *r) {
  const tarn_hw *hw = s->o.hw;
  if (r->numeric > s->o.numerics)
    return tarn_format(s->cx, "its class is %s, and --numerics is %s",
                       tarn_rule_class_name(r->numeric), tarn_rule_class_name(s->o.numerics));
  if (r->numeric == TARN_RULE_APPROX && r->bound > s->o.rtol)
    return tarn_format(s->cx, "its bound is %g, and --rtol is %g", r->bound, s->o.rtol);
  if (r->demand && !engine_demanded(s, r))
    return hw ? tarn_format(s->cx, "its :demand is %s, and %s has none", r->demand, hw->name)
              : tarn_format(s->cx, "its :demand is %s, and there is no --hw", r->demand);
  return NULL;
}
static bool occurs(const tarn_saturation *s, uint32_t op, tarn_rule_level level) {
  TARN_EG_CLASSES(s->g, c)
    TARN_EG_NODES(s->g, c, n)
      if (tarn_eg_node_at(s->g, n).op == op &&
          (level != TARN_RULE_KERNEL || sat_state_of(s, n) != SAT_WRITTEN))
        return true;
  return false;
}
/* An operator of the pattern that no e-node has; TARN_NONE: all occur. */
static uint32_t missing(const tarn_saturation *s, const rpat *p, tarn_rule_level level) {
  if (p->kind != RP_NODE) return TARN_NONE;
  if (!occurs(s, p->op, level)) return p->op;
  for (uint32_t i = 0; i < p->n; i++) {
    uint32_t op = missing(s, p->kid[i], level);
    if (op != TARN_NONE) return op;
  }
  return TARN_NONE;
}
static uint32_t lacks(const tarn_saturation *s, const rule *r) {
  uint32_t op = TARN_NONE;
  for (uint32_t i = 0; i < r->nlhs && op == TARN_NONE; i++)
    op = missing(s, r->lhs[i].pat, r->level);
  return op;
}
static const char *no_match(const tarn_saturation *s, const rule *r) {
  const char *stop = r->level == TARN_RULE_SURFACE ? s->report.surface.stop : s->report.stop;
  bool whole = stop && !strcmp(stop, tarn_eg_stop_name(TARN_EG_STOP_SATURATED));
  const char *until =
      whole || !stop ? "" : tarn_format(s->cx, "; the run ended at its limit of %s", stop);
  uint32_t op = lacks(s, r);
  const char *when =
      r_unphased(s->rs, r) ? "; it runs before the first phase, and no phase names it" : "";
  if (op == TARN_NONE) return tarn_format(s->cx, "its left side matches nothing%s%s", until, when);
  return tarn_format(s->cx, "%s has no (%s …)%s%s",
                     r->level == TARN_RULE_KERNEL ? "kernel form" : "the program",
                     tarn_op_info(op)->text, until, when);
}
static const char *no_effect(const tarn_saturation *s, const tarn_eg_rule_stats *n) {
  unsigned long long matches = n->matches, refused = n->refused;
  if (!n->applied)
    return tarn_format(
        s->cx,
        "an attribute, condition or guard fails at each of the %llu places that have "
        "its operators",
        matches);
  if (n->refused)
    return tarn_format(s->cx, "its right side has no type at %llu of its %llu matches", refused,
                       matches);
  return tarn_format(s->cx, "what it makes of its %llu matches was equal already, or ill-typed",
                     matches);
}

void sat_idle(tarn_saturation *s) {
  TARN_VEC(tarn_sat_idle) idle = {0};
  for (uint32_t i = 0, k = 0; i < s->rs->rule.n; i++) {
    const rule *r = s->rs->rule.p[i];
    bool active = k < s->nactive && s->er[k].number == i;
    tarn_eg_rule_stats n = {0};
    if (active) n = tarn_eg_stats(s->runner, k++);
    if (!r->asked || n.unions) continue;
    bool meets = n.matches && (r->level != TARN_RULE_KERNEL || lacks(s, r) == TARN_NONE);
    const char *why = active ? meets ? no_effect(s, &n) : no_match(s, r) : not_allowed(s, r);
    if (!why) why = "it is of the other level";
    tarn_push(s->cx, &idle, ((tarn_sat_idle){i, why}));
  }
  s->report.nidle = idle.n, s->report.idle = idle.p;
}
