/* Rule sets: what is in them, names of classes. */
#include "rules/lang/lang.h"
#include <string.h>

static const char *const class_names[] = {"exact", "reassoc", "approx"};

const char *tarn_rule_class_name(tarn_rule_class c) { return class_names[c]; }

bool tarn_rule_class_parse(const char *s, tarn_rule_class *out) {
  for (int i = 0; i < 3; i++)
    if (strcmp(s, class_names[i]) == 0) return *out = (tarn_rule_class)i, true;
  return false;
}

tarn_ruleset *tarn_r_ruleset(tarn_lang *L, const rtheory *theory, rbuild_fn *builder) {
  tarn_ruleset *rs = TARN_NEW(tarn_lang_ctx(L), tarn_ruleset);
  *rs = (tarn_ruleset){.L = L, .cx = tarn_lang_ctx(L), .theory = theory, .builder = builder};
  return rs;
}

/* A rule or a family. */
static bool is_named(const tarn_ruleset *rs, const char *name) {
  for (uint32_t i = 0; i < rs->rule.n; i++)
    if (!strcmp(rs->rule.p[i]->family, name) || !strcmp(rs->rule.p[i]->name, name)) return true;
  return false;
}
/* Phases name only what is there, but for names that never were. */
static void forget_names(tarn_ruleset *rs, const tarn_ruleset *before) {
  for (uint32_t p = 0; p < rs->phase.n; p++) {
    rphase *x = &rs->phase.p[p];
    uint32_t n = 0;
    for (uint32_t k = 0; k < x->nfamily; k++)
      if (is_named(rs, x->family[k]) || !is_named(before, x->family[k]))
        x->family[n++] = x->family[k];
    x->nfamily = n;
  }
}
void tarn_ruleset_drop(tarn_ruleset *rs, const char *name) {
  uint32_t n = 0;
  tarn_ruleset before = *rs;
  before.rule.p = tarn_copy(rs->cx, rs->rule.p, (rs->rule.n ? rs->rule.n : 1) * sizeof *rs->rule.p);
  for (uint32_t i = 0; i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    if (strcmp(r->family, name) && strcmp(r->name, name)) rs->rule.p[n++] = rs->rule.p[i];
  }
  if (n == rs->rule.n)
    tarn_raise(rs->cx, TARN_USAGE, "rules: no family or rule is called %s", name);
  rs->rule.n = n;
  forget_names(rs, &before);
}

uint32_t tarn_ruleset_count(const tarn_ruleset *rs) { return rs->rule.n; }

tarn_rule_info tarn_ruleset_at(const tarn_ruleset *rs, uint32_t i) {
  const rule *r = rs->rule.p[i];
  return (tarn_rule_info){.name = r->name,
                          .family = r->family,
                          .level = r->level,
                          .numeric = r->numeric,
                          .bound = r->bound,
                          .file = r->at->file,
                          .line = r->at->line,
                          .conditions = r->ncond,
                          .both = r->both,
                          .asked = r->asked,
                          .doc = r->doc ? r->doc : "",
                          .demand = r->demand,
                          .open = r->open};
}

uint32_t tarn_ruleset_find(const tarn_ruleset *rs, const char *name) {
  for (uint32_t i = 0; i < rs->rule.n; i++)
    if (strcmp(rs->rule.p[i]->name, name) == 0) return i;
  return TARN_NONE;
}

tarn_written *tarn_ruleset_written(const tarn_ruleset *rs, uint32_t i, uint32_t *number) {
  for (*number = 0; *number < rs->rule.n; ++*number) {
    const rule *r = rs->rule.p[*number];
    if (i < r->nwritten) return r->written[i];
    i -= r->nwritten;
  }
  return NULL;
}

uint32_t tarn_ruleset_phases(const tarn_ruleset *rs) { return rs->phase.n; }

tarn_phase_info tarn_ruleset_phase(const tarn_ruleset *rs, uint32_t i) {
  return (tarn_phase_info){rs->phase.p[i].name, rs->phase.p[i].iterations};
}

/* The shipped phases are of the kernel level, whatever else has a name that is in them. */
static bool is_for(const rphase *p, const rule *r) {
  return !p->shipped || r->level == TARN_RULE_KERNEL;
}
bool r_in_phase(const rphase *p, const rule *r) {
  for (uint32_t k = 0; k < p->nfamily && is_for(p, r); k++)
    if (strcmp(r->family, p->family[k]) == 0 || strcmp(r->name, p->family[k]) == 0) return true;
  return false;
}
bool tarn_ruleset_in_phase(const tarn_ruleset *rs, uint32_t phase, uint32_t i) {
  return r_in_phase(&rs->phase.p[phase], rs->rule.p[i]);
}
bool r_unphased(const tarn_ruleset *rs, const rule *r) {
  bool any = false;
  for (uint32_t i = 0; i < rs->phase.n; i++) {
    any |= is_for(&rs->phase.p[i], r);
    if (r_in_phase(&rs->phase.p[i], r)) return false;
  }
  return any;
}
bool tarn_ruleset_unphased(const tarn_ruleset *rs, uint32_t i) {
  return r_unphased(rs, rs->rule.p[i]);
}
/* A phase that names nothing would do nothing. */
static void must_name(const tarn_ruleset *rs, const rphase *p) {
  for (uint32_t k = 0; k < p->nfamily; k++)
    if (!is_named(rs, p->family[k]))
      tarn_sx_error(rs->cx, p->at, "no rule or family is called %s", p->family[k]);
}
void tarn_r_check_phases(const tarn_ruleset *rs) {
  bool own = false;
  for (uint32_t i = 0; i < rs->phase.n; i++)
    if (!rs->phase.p[i].shipped) own = true, must_name(rs, &rs->phase.p[i]);
  for (uint32_t i = 0; own && i < rs->rule.n; i++) {
    const rule *r = rs->rule.p[i];
    if (!r->shipped && r_unphased(rs, r))
      tarn_warn(rs->cx, "%s:%u: no phase names rule %s or its family %s; it runs before the first",
                r->at->file, r->at->line, r->name, r->family);
  }
}

tarn_ruleset_mark tarn_ruleset_size(const tarn_ruleset *rs) {
  tarn_ruleset_mark m = {.rules = rs->rule.n, .phases = rs->phase.n, .constants = TARN_NONE};
  if (rs->theory) rs->theory->size(rs, &m);
  return m;
}

void tarn_ruleset_shrink(tarn_ruleset *rs, tarn_ruleset_mark to) {
  rs->rule.n = to.rules;
  rs->phase.n = to.phases;
  if (rs->theory) rs->theory->shrink(rs, &to);
}
