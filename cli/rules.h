/* What the files of `tarn rules` share. */
#ifndef TARN_CLI_RULES_H
#define TARN_CLI_RULES_H
#include "cli/cli.h"

typedef struct rules_job {
  cli_list words, files, no_rules, shapes, sets;
  const char *def; /* of a file of comprehensions */
  bool copies;
  const char *only, *hw, *ops, *out, *numerics;
  uint64_t samples, seed, size, vars, nodes, iters;
  double seconds;
  uint64_t bytes;
  bool json, mutate, prove, free, text, table, lax;
} rules_job;

/* Functions that rules call are loaded, where they can be. */
void cli_load_written(tarn_ctx *cx, const tarn_ruleset *rs);
int rules_learn(tarn_ctx *cx, const rules_job *k);
int rules_derive(tarn_ctx *cx, const rules_job *k);
int rules_stats(tarn_ctx *cx, const rules_job *k);
#endif
