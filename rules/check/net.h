/* rules: small random networks for testing kernel-level rules. */
#ifndef TARN_RULES_CHECK_NET_H
#define TARN_RULES_CHECK_NET_H
#include "rules/check/check.h"

/* A random network of at most three outputs. Raises. */
tarn_program *check_network(gen *g);

typedef struct kernel_result { /* of one rule */
  const rule *rule;
  bool extra;       /* it is not asked for, but may be the one at fault */
  uint32_t samples; /* networks in which it joined classes */
  bool exact, real;
  double worst;
  const char *counterexample;
} kernel_result;
/* Tries the kernel-level rules of a set on networks until each has joined classes in `samples` of
 * them, or none is left to try. changed, skip: a rule whose condition (then guard) `skip` is left
 * out, or NULL. */
typedef struct kernel_check {
  tarn_ruleset *rs;
  const tarn_rules_check_options *o;
  uint32_t samples, most;
  const rule *changed;
  uint32_t skip;
  kernel_result *res; /* n */
  uint32_t n, tried;  /* networks: at every moment, so that what is raised leaves it */
} kernel_check;
void check_kernel(kernel_check *c);
#endif
