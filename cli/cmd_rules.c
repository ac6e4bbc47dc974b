/* tarn rules list|check|learn|derive|stats [FILE…] */
#include "base/limit.h"
#include "lab/lab.h"
#include "cli/rules.h"
#include <string.h>

void cli_ship_rules(tarn_ctx *cx, tarn_ruleset *rs) {
  const char *file, *text;
  for (uint32_t i = 0; tarn_rules_shipped(i, &file, &text); i++) {
    const char *name = tarn_format(cx, "%s.rules", file);
    tarn_ruleset_read(rs, text, strlen(text), name);
  }
}

void cli_derive_rules(tarn_ruleset *rs, const tarn_hw *hw) {
  tarn_ruleset_derive(rs, hw);
  if (tarn_hw_traits_of(hw).pads) tarn_ruleset_derive_units(rs, hw);
}

static void check_only(tarn_ctx *cx, const rules_job *k, const tarn_ruleset *rs) {
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_rule_info r = tarn_ruleset_at(rs, i);
    if (!k->only || !strcmp(k->only, r.name) || !strcmp(k->only, r.family)) return;
  }
  if (k->only) tarn_raise(cx, TARN_USAGE, "--only %s: there is no such family or rule", k->only);
}
static tarn_ruleset *load(tarn_ctx *cx, const rules_job *k) {
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = k->free ? tarn_free_ruleset_new(L) : tarn_ruleset_new(L);
  if (!k->files.n && !k->free && !k->hw) cli_ship_rules(cx, rs);
  if (k->hw) cli_derive_rules(rs, cli_hardware(L, k->hw));
  for (uint32_t i = 0; i < k->files.n; i++) tarn_ruleset_load(rs, k->files.p[i]);
  check_only(cx, k, rs);
  return rs;
}
static bool wanted(const rules_job *k, const tarn_rule_info *r) {
  return !k->only || !strcmp(k->only, r->name) || !strcmp(k->only, r->family);
}

/* ---- list ---- */
static const char *const levels[] = {"surface", "kernel", "free"};

/* Does it keep to the type's range where its left side does? NULL: the same values in any case. */
static const char *range_of(const tarn_rule_info *r) {
  if (r->numeric == TARN_RULE_EXACT || r->level == TARN_RULE_FREE) return NULL;
  return r->open || r->numeric == TARN_RULE_APPROX ? "open" : "kept";
}
static void list_json(tarn_json *j, const tarn_rule_info *r) {
  tarn_json_open(j, NULL, '{');
  tarn_json_put(j, "name", r->name, "family", r->family, "level", levels[r->level], "class",
                tarn_rule_class_name(r->numeric));
  if (r->numeric == TARN_RULE_APPROX) tarn_json_num(j, "bound", r->bound);
  if (range_of(r)) tarn_json_str(j, "range", range_of(r));
  tarn_json_put(j, "conditions", r->conditions, "file", r->file, "line", r->line);
  tarn_json_close(j, '}');
}
/* A row of the table in docs/rule-list.md: a doc is a sentence and, in brackets, its numbers. */
static void list_row(const tarn_rule_info *r) {
  size_t n = strlen(r->doc), label = n;
  for (size_t i = 0; i + 3 < n; i++)
    if (r->doc[n - 1] == ')' && !strncmp(r->doc + i, " (R", 3)) label = i;
  printf("| `%s` | %s%s | %.*s | ", r->name, r->family,
         r->level == TARN_RULE_KERNEL ? ", kernel" : "", label < n ? (int)(n - label - 3) : 0,
         label < n ? r->doc + label + 2 : "");
  printf("%s", tarn_rule_class_name(r->numeric));
  if (r->numeric == TARN_RULE_APPROX) printf(" %g", r->bound);
  printf(" | %s | %s%s%s | ", range_of(r) ? range_of(r) : "", r->both ? "both ways" : "",
         r->both && r->demand ? ", " : "", r->demand ? "on demand" : "");
  if (r->conditions) printf("%u ", r->conditions);
  printf("| %.*s |\n", (int)label, r->doc);
}
static int list(tarn_ctx *cx, const rules_job *k) {
  const tarn_ruleset *rs = load(cx, k);
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "rules", '[');
  for (uint32_t i = 0; i < tarn_ruleset_count(rs); i++) {
    tarn_rule_info r = tarn_ruleset_at(rs, i);
    tarn_buf b = {.cx = cx};
    if (!wanted(k, &r)) continue;
    list_json(j, &r);
    if (k->text) tarn_rule_print(rs, i, &b);
    if (k->table) {
      if (!strchr(r.name, ':')) list_row(&r);
      continue;
    }
    if (!k->json && k->text) printf("; %s, %s\n%s\n", r.family, levels[r.level], b.p);
    else if (!k->json)
      printf("%-28s %-12s %-8s %s\n", r.name, r.family, levels[r.level],
             tarn_rule_class_name(r.numeric));
  }
  tarn_json_close(j, ']');
  if (k->json) cli_json_print(j);
  return 0;
}

/* ---- check ---- */
void cli_load_written(tarn_ctx *cx, const tarn_ruleset *rs) {
  tarn_written *w;
  uint32_t rule;
  for (uint32_t i = 0; (w = tarn_ruleset_written(rs, i, &rule)); i++) tarn_written_load(cx, w);
}
static void check_json(tarn_json *j, const tarn_rule_result *r) {
  tarn_json_open(j, NULL, '{');
  tarn_json_put(j, "name", r->name, "family", r->family, "class", tarn_rule_class_name(r->stated),
                "class_found", tarn_rule_class_name(r->found));
  if (r->deleted) tarn_json_str(j, "deleted", r->deleted);
  tarn_json_put(j, "samples", r->samples, "tried", r->tried, "worst", r->worst, "ok", r->ok);
  if (r->all) tarn_json_bool(j, "all", true);
  if (r->identity) tarn_json_bool(j, "identity", true);
  if (r->unchecked) tarn_json_str(j, "unchecked", r->unchecked);
  if (r->proved || r->unproved) tarn_json_bool(j, "proved", r->proved);
  if (r->proved) tarn_json_int(j, "cases", r->cases);
  if (r->unproved) tarn_json_str(j, "unproved", r->unproved);
  tarn_json_str(j, "counterexample", r->counterexample);
  tarn_json_close(j, '}');
}
/* A mutation is well when it has a counterexample, a rule when it has none: each shows what is
 * there. */
static void check_text(const tarn_rule_result *r, bool free) {
  if (r->unchecked) {
    printf("%-5s %-28s %s\n", "-", r->name, r->unchecked);
    return;
  }
  printf("%-5s %-28s ", r->ok ? "ok" : "WRONG", r->name);
  if (free)
    printf("%6u of %6u say something%s", r->samples, r->tried,
           r->all        ? ", all there are"
           : r->identity ? ", an identity"
                         : "");
  else printf("%-8s %6u of %6u fired", tarn_rule_class_name(r->found), r->samples, r->tried);
  if (!free && r->stated == TARN_RULE_APPROX) printf(", worst error %.2g", r->worst);
  if (!free && r->stated == TARN_RULE_REASSOC)
    printf(", at most %.2g times the bound of the left side", r->worst);
  if (r->deleted) printf(", without %s", r->deleted);
  if (r->proved && r->loops) printf(", proved for all extents");
  else if (r->proved) printf(", proved for all sizes in %u cases of ranks and axes", r->cases);
  else if (r->unproved) printf(", tested on %u instances: %s", r->samples, r->unproved);
  printf("\n");
  if (r->counterexample && (!r->ok || r->deleted)) printf("%s\n", r->counterexample);
}
/* How many are proved of those that proofs are tried of, in either notation. */
static void count_proofs(tarn_json *j, const tarn_rule_result *r, uint32_t n, bool json) {
  static const char *const notation[] = {"access patterns", "loops"};
  for (uint32_t loops = 0; loops < 2; loops++) {
    uint32_t tried = 0, proved = 0;
    for (uint32_t i = 0; i < n; i++)
      if (r[i].loops == loops) tried += r[i].proved || r[i].unproved, proved += r[i].proved;
    tarn_json_int(j, loops ? "proved_loops" : "proved_patterns", proved);
    if (!json && tried)
      printf("; proved for all sizes: %u of %u over %s", proved, tried, notation[loops]);
  }
}
static int check(tarn_ctx *cx, const rules_job *k) {
  tarn_rules_check_options o = {.samples = (uint32_t)k->samples,
                                .seed = k->seed,
                                .only = k->only,
                                .mutate = k->mutate,
                                .prove = k->prove};
  const tarn_rule_result *r;
  tarn_ruleset *rs = load(cx, k);
  cli_load_written(cx, rs);
  uint32_t n = tarn_rules_check(rs, &o, &r), bad = 0, left = 0;
  cli_writes();
  tarn_json *j = cli_json_new(cx);
  tarn_json_open(j, "rules", '[');
  for (uint32_t i = 0; i < n; i++) {
    bad += !r[i].ok, left += r[i].unchecked != NULL;
    check_json(j, &r[i]);
    if (!k->json) check_text(&r[i], k->free);
  }
  tarn_json_close(j, ']');
  tarn_json_bool(j, "ok", bad == 0);
  if (left) tarn_json_int(j, "unchecked", left);
  if (!k->json)
    printf("%u of %u %s", n - bad - left, n - left,
           k->mutate ? "conditions needed, guards not" : "rules hold");
  bool late = left && tarn_late(cx);
  if (k->prove) count_proofs(j, r, n, k->json);
  if (k->json) cli_json_print(j);
  if (!k->json && left) printf("; %u %s", left, k->free && !late ? "have no meaning" : "not tried");
  if (!k->json) printf("\n");
  if (!bad && late)
    tarn_raise(cx, TARN_NO_RESULT, "rules check: %u of %u are left within the limit of time", left,
               n);
  return bad ? TARN_NO : 0;
}

static const struct action {
  const char *name;
  int (*run)(tarn_ctx *cx, const rules_job *k);
} actions[] = {{"list", list},
               {"check", check},
               {"learn", rules_learn},
               {"derive", rules_derive},
               {"stats", rules_stats}};

/* What is wanted comes first, files after it. */
int tarn_cmd_rules(tarn_ctx *cx, int argc, char **argv) {
  rules_job k = {0};
  const char *usage = "rules list|check|learn|derive|stats [FILE…] [options]";
  const cli_opt opts[] = {
      {"--only", NULL, CLI_STR, &k.only, "NAME", "one family or rule"},
      {"--hw", NULL, CLI_STR, &k.hw, "NAME|FILE",
       "rules derived from a description, and FILEs, not the shipped ones; stats: compile for it"},
      {"--text", NULL, CLI_FLAG, &k.text, NULL, "list: the rules as they are written"},
      {"--table", NULL, CLI_FLAG, &k.table, NULL,
       "list: the rows of the table in docs/rule-list.md"},
      {"--free", NULL, CLI_FLAG, &k.free, NULL,
       "FILE holds rules over operators of any name; check: over their (interpretation …)"},
      {"--samples", NULL, CLI_U32, &k.samples, "N",
       "check: instances in which a rule must fire (default 100; --free 1,000)"},
      {"--seed", NULL, CLI_UINT, &k.seed, "K", "seed of shapes and values"},
      {"--mutate", NULL, CLI_FLAG, &k.mutate, NULL,
       "check: delete each side condition; a counterexample must appear"},
      {"--prove", NULL, CLI_FLAG, &k.prove, NULL,
       "check: prove each rule for all sizes, where that can be had"},
      {"--size", NULL, CLI_U32, &k.size, "N",
       "learn: operators and leaves of a term (default 5, or what FILE says)"},
      {"--vars", NULL, CLI_U32, &k.vars, "N", "learn: variables (default 3, or what FILE says)"},
      {"--ops", NULL, CLI_STR, &k.ops, "NAMES",
       "learn: operators, separated by spaces (default: what FILE says)"},
      {"--seconds", NULL, CLI_REAL, &k.seconds, "S",
       "limit of time (default: none; derive: 20 for each rule)"},
      {"--bytes", NULL, CLI_UINT, &k.bytes, "N",
       "derive: limit of memory for each rule (default 1 GiB)"},
      {"--output", "-o", CLI_STR, &k.out, "FILE", "learn: write the rules there"},
      {"--lax", NULL, CLI_FLAG, &k.lax, NULL, "derive: ignore conditions"},
      {"--iters", NULL, CLI_U32, &k.iters, "N",
       "derive: iterations for each rule (default 8); stats: as in compile"},
      {"--nodes", NULL, CLI_U32, &k.nodes, "N",
       "derive: e-nodes for each rule (default 100,000); stats: as in compile"},
      {"--numerics", NULL, CLI_STR, &k.numerics, "exact|reassoc|approx", "stats: default: reassoc"},
      {"--shape", NULL, CLI_LIST, &k.shapes, "NAME=DIMS", "stats: bind a dynamic shape"},
      CLI_SET(k),
      {"--json", NULL, CLI_FLAG, &k.json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &k.words)) return 0;
  if (!k.words.n) tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  for (uint32_t i = 1; i < k.words.n; i++) tarn_push(cx, &k.files, k.words.p[i]);
  cli_limit(cx, k.seconds);
  if (!strcmp(k.words.p[0], "learn") || !strcmp(k.words.p[0], "check")) cli_ends_early(cx);
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (!strcmp(k.words.p[0], actions[i].name)) return actions[i].run(cx, &k);
  tarn_raise(cx, TARN_USAGE, "rules %s: no such action; usage: tarn %s", k.words.p[0], usage);
}
