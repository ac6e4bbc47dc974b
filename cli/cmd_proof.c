/* tarn proof check FILE: a chain of rewrites, checked without the e-graph. */
#include "lab/lab.h"
#include "cli/rules.h"
#include <string.h>

static void report(tarn_ctx *cx, const tarn_proof_result *r, bool replay) {
  tarn_json *j = cli_json_new(cx);
  tarn_json_put(j, "ok", r->ok, "steps", r->steps);
  if (r->bad == TARN_NONE) tarn_json_str(j, "bad", NULL);
  else tarn_json_int(j, "bad", r->bad);
  tarn_json_str(j, "why", r->ok ? NULL : r->why);
  if (replay) tarn_json_int(j, "replayed", r->replayed);
  if (replay || r->skipped) tarn_json_int(j, "skipped", r->skipped);
  if (r->nassumed) tarn_json_open(j, "assumed", '[');
  for (uint32_t i = 0; i < r->nassumed; i++) tarn_json_str(j, NULL, r->assumed[i]);
  if (r->nassumed) tarn_json_close(j, ']');
  tarn_json_open(j, "rules", '{');
  for (uint32_t i = 0; i < r->nuse; i++) tarn_json_int(j, r->use[i].rule, r->use[i].count);
  tarn_json_close(j, '}');
  cli_json_print(j);
}
static void tell(tarn_ctx *cx, const tarn_proof_result *r, bool replay) {
  if (!r->ok && r->bad != TARN_NONE)
    printf("WRONG at step %u: %s\n", r->bad, tarn_shown(cx, r->why));
  else if (!r->ok) printf("WRONG: %s\n", tarn_shown(cx, r->why));
  else printf("ok: %u steps hold\n", r->steps);
  if (replay) printf("  %u steps evaluated on both sides, %u skipped\n", r->replayed, r->skipped);
  for (uint32_t i = 0; i < r->nuse; i++) printf("  %6u  %s\n", r->use[i].count, r->use[i].rule);
}

/* Steps that hold because of what a function of C computes. */
static uint32_t tell_given(tarn_ctx *cx, const tarn_ruleset *rs, const tarn_proof_result *r,
                           bool quiet) {
  const tarn_written *w;
  uint32_t rule, n = 0;
  for (uint32_t i = 0; (w = tarn_ruleset_written(rs, i, &rule)); i++)
    for (uint32_t k = 0; k < r->nuse; k++) {
      if (strcmp(r->use[k].rule, tarn_ruleset_at(rs, rule).name) != 0) continue;
      n++;
      if (quiet) continue;
      printf("  given: %s, by the function %s of %s%s%s\n", tarn_shown(cx, r->use[k].rule),
             w->symbol, w->link ? tarn_shown(cx, w->link) : "the program", w->absent ? "; " : "",
             w->absent ? w->absent : "");
    }
  return n;
}
int tarn_cmd_proof(tarn_ctx *cx, int argc, char **argv) {
  cli_list words = {0}, rules = {0};
  cli_compile c = {0};
  tarn_proof_options o = {.opaque = tarn_opaque_eval};
  uint64_t samples = 0;
  bool json = false, free = false, strict = false;
  const char *usage = "proof check FILE [--replay] [options]", *hw = NULL;
  const cli_opt opts[] = {
      {"--replay", NULL, CLI_FLAG, &o.replay, NULL,
       "evaluate both sides of each step on random inputs"},
      {"--samples", NULL, CLI_U32, &samples, "N", "random inputs for each step (default 1)"},
      {"--seed", NULL, CLI_UINT, &o.seed, "K", "seed of the inputs"},
      {"--rules", NULL, CLI_LIST, &rules, "FILE", "rules of the chain besides the shipped ones"},
      {"--free", NULL, CLI_FLAG, &free, NULL,
       "a chain of tarn explore --free, by the rules of --rules alone"},
      {"--strict", NULL, CLI_FLAG, &strict, NULL,
       "exit with 1 while anything is assumed, given or skipped"},
      {"--hw", NULL, CLI_STR, &hw, "NAME|FILE", "also the rules derived from this description"},
      {"--model", NULL, CLI_STR, &c.model, "FILE", "the model that the proof must be about"},
      {"--shape", NULL, CLI_LIST, &c.shapes, "NAME=DIMS", "bind a dynamic shape of it"},
      CLI_SET(c),
      CLI_OUTPUTS(c),
      {"--json", NULL, CLI_FLAG, &json, NULL, "print JSON"},
      {0}};
  if (cli_parse(cx, usage, opts, argc, argv, &words)) return 0;
  if (words.n != 2 || strcmp(words.p[0], "check"))
    tarn_raise(cx, TARN_USAGE, "usage: tarn %s", usage);
  o.samples = (uint32_t)samples;
  tarn_lang *L = tarn_lang_new(cx);
  tarn_ruleset *rs = free ? tarn_free_ruleset_new(L) : tarn_ruleset_new(L);
  if (!free) cli_ship_rules(cx, rs);
  for (uint32_t i = 0; i < rules.n; i++)
    if (free) tarn_ruleset_load(rs, rules.p[i]);
    else tarn_ruleset_add(rs, rules.p[i]);
  if (hw) cli_derive_rules(rs, cli_hardware(L, hw));
  if (c.model) o.program = cli_reload(L, &c);
  if (o.replay) cli_load_written(cx, rs);
  const tarn_sx *chain = tarn_sx_read_file(cx, words.p[1]);
  tarn_proof_result r = free ? tarn_free_proof_check(rs, chain) : tarn_proof_check(rs, chain, &o);
  if (r.nassumed && !json && free)
    printf("of %u steps something is assumed that terms alone do not show:\n", r.skipped);
  else if (r.nassumed && !json)
    printf("assumed of constants that have no values here (--model gives them):\n");
  for (uint32_t i = 0; i < r.nassumed && !json; i++) printf("  %s\n", r.assumed[i]);
  if (json) report(cx, &r, o.replay);
  else tell(cx, &r, o.replay);
  uint32_t given = tell_given(cx, rs, &r, json);
  return r.ok && !(strict && (r.nassumed || r.skipped || given)) ? 0 : TARN_NO;
}
