/* rules: analyses of a saturation's e-graph. */
#ifndef TARN_RULES_FACTS_H
#define TARN_RULES_FACTS_H
#include "rules/internal.h"
void facts_install(tarn_saturation *s);
/* Adds to what a class holds. */
void facts_mark(tarn_saturation *s, uint32_t cls, unsigned has);
/* R_HAS_MAP, R_HAS_RED, or 0 for several outputs. */
unsigned nest_kinds(const tarn_lang *L, uint32_t nest);
#endif
