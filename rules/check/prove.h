/* rules: proofs of rules for all sizes, from instances (prove.c). */
#ifndef TARN_RULES_PROVE_H
#define TARN_RULES_PROVE_H
#include "rules/check/check.h"
#include <stdio.h>

/* Is the rule shown to hold for all sizes at the ranks and axes of the instance? which: the case.
 */
bool prove_instance(gen *g, uint64_t *which, char *why, size_t room);
#endif
