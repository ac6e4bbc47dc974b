/* The shipped families, and new sets of rules over access patterns. */
#include "rules/algorithms/build.h"
#include <string.h>

extern const tarn_embedded tarn_rules_embedded[];

tarn_ruleset *tarn_ruleset_new(tarn_lang *L) { return tarn_r_ruleset(L, NULL, rbuild_find); }

bool tarn_rules_shipped(uint32_t i, const char **file, const char **text) {
  for (uint32_t k = 0; k <= i; k++)
    if (!tarn_rules_embedded[k].name) return false;
  *file = tarn_rules_embedded[i].name;
  *text = tarn_rules_embedded[i].text;
  return true;
}

/* Keeps the rules from number `from` on that are of the family (NULL: any) and level; how many
 * remain. */
static uint32_t keep(tarn_ruleset *rs, uint32_t from, const char *family, tarn_rule_level level) {
  uint32_t n = from;
  for (uint32_t i = from; i < rs->rule.n; i++) {
    rule *r = rs->rule.p[i];
    if (r->level == level && (!family || strcmp(r->family, family) == 0)) rs->rule.p[n++] = r;
  }
  rs->rule.n = n;
  return n - from;
}

void tarn_ruleset_ship(tarn_ruleset *rs, const char *family, tarn_rule_level level) {
  uint32_t found = 0;
  for (const tarn_embedded *f = tarn_rules_embedded; f->name; f++) {
    uint32_t from = rs->rule.n, phases = rs->phase.n;
    tarn_ruleset_read(rs, f->text, f->n, tarn_format(rs->cx, "%s.rules", f->name));
    found += keep(rs, from, family, level);
    if (family || level != TARN_RULE_KERNEL)
      rs->phase.n = phases; /* shipped phases are of the kernel level */
    for (uint32_t p = phases; p < rs->phase.n; p++) rs->phase.p[p].shipped = true;
  }
  if (found == 0 && family)
    tarn_raise(rs->cx, TARN_USAGE, "rules: no shipped family is called %s", family);
}
