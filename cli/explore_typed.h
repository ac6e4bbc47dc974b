/* Terms of the language, saturated: what `tarn explore` does once, and a session again and again.
 */
#ifndef TARN_CLI_EXPLORE_TYPED_H
#define TARN_CLI_EXPLORE_TYPED_H
#include "cli/explore.h"

typedef struct typed {
  tarn_ctx *cx;
  cli_explore *x;
  tarn_lang *L;
  tarn_ruleset *rs;
  tarn_saturation *s;
  const tarn_hw *hw;        /* NULL, or whose units terms may use */
  TARN_VEC(tarn_node) unit; /* operators of what its intrinsics mean, but views and leaves */
} typed;

/* All raise. */
tarn_ruleset *typed_rules(typed *k, const tarn_hw *hw);
/* From what was asked; iterations will go to x. */
tarn_sat_options typed_options(typed *k, const tarn_hw *hw);
void typed_best(typed *k, tarn_saturation *s, const uint32_t *root, uint32_t n);
explore_view typed_view(typed *k, const uint32_t *root,
                        uint32_t n); /* the graph is NULL before there is one */
#endif
