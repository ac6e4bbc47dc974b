/* The shipped families, and new sets of rules over access patterns. */
#include "rules/algorithms/build.h"
#include <string.h>
#include <unistd.h>

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
    for (uint32_t i = from; i < rs->rule.n; i++) rs->rule.p[i]->shipped = true;
    found += keep(rs, from, family, level);
    if (family || level != TARN_RULE_KERNEL)
      rs->phase.n = phases; /* shipped phases are of the kernel level */
    for (uint32_t p = phases; p < rs->phase.n; p++) rs->phase.p[p].shipped = true;
  }
  if (found == 0 && family)
    tarn_raise(rs->cx, TARN_USAGE, "rules: no shipped family is called %s", family);
}

static bool is_family(const rule *r, const char *name) {
  return r->level == TARN_RULE_SURFACE && !strcmp(r->family, name);
}
static uint32_t ask(tarn_ruleset *rs, uint32_t from, const char *family) {
  uint32_t n = 0;
  for (uint32_t i = from; i < rs->rule.n; i++)
    if (!family || is_family(rs->rule.p[i], family)) rs->rule.p[i]->asked = true, n++;
  return n;
}
/* The rules of a shipped family, beside what is in the set. */
static uint32_t take(tarn_ruleset *rs, const char *family) {
  tarn_ruleset *all = tarn_ruleset_new(rs->L);
  uint32_t n = 0;
  tarn_ruleset_ship(all, NULL, TARN_RULE_SURFACE);
  for (uint32_t i = 0; i < all->rule.n; i++) {
    rule *r = all->rule.p[i];
    if (!is_family(r, family)) continue;
    if (tarn_ruleset_find(rs, r->name) != TARN_NONE)
      tarn_raise(rs->cx, TARN_BAD_INPUT, "--rules %s: there is a rule %s already", family, r->name);
    tarn_push(rs->cx, &rs->rule, r), n++;
  }
  return n;
}
void tarn_ruleset_add(tarn_ruleset *rs, const char *name) {
  uint32_t from = rs->rule.n;
  bool file = access(name, F_OK) == 0 || strchr(name, '/') || strchr(name, '.');
  if (!file && ask(rs, 0, name)) return;
  if (file) tarn_ruleset_load(rs, name);
  else if (!take(rs, name))
    tarn_raise(rs->cx, TARN_USAGE,
               "--rules %s: neither a file nor a shipped family over access patterns", name);
  ask(rs, from, NULL);
}
