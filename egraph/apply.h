/* Instantiating right sides: see apply.c. */
#ifndef TARN_EGRAPH_APPLY_H
#define TARN_EGRAPH_APPLY_H

#include "egraph/match.h"

typedef enum {
  EG_APPLIED, /* and perhaps joined something */
  EG_HELD,    /* a condition does not hold now but may later */
  EG_DROPPED, /* a condition can never hold, or an analysis refuses the right side */
  EG_STOPPED  /* a limit, memory, a conflict: see the graph's status */
} eg_outcome;

typedef struct eg_applier {
  tarn_egraph *g;
  const tarn_eg_rules *rs;
  eg_reader reader;
  eg_vec ids;   /* of the right-side nodes made */
  eg_vec kids;  /* of the one being made */
  eg_vec heads; /* per rule, per right-side node: the head when it is fixed, else NONE */
  eg_vec heads_at;
  eg_vec block_ids;
  uint32_t set; /* number of the rule set in the graph's log */
  uint64_t unions, refused;
} eg_applier;

bool eg_applier_init(eg_applier *ap, tarn_egraph *g, const tarn_eg_rules *rs);
void eg_applier_free(eg_applier *ap);
/* Adds to ap->unions and ap->refused. */
eg_outcome eg_apply(eg_applier *ap, uint32_t rule, const uint32_t *tuple);

/* A node could not be made: whether that is because an analysis refuses it. Then it is counted, and
 * the status clear. */
bool eg_refused(eg_applier *ap);

/* bulk.c: rules that can be applied in blocks of at most EG_BLOCK matches. ahead: how many tuples
 * after these will be needed next. false: stopped. */
enum { EG_BLOCK = 32 }; /* bits of a word */
bool eg_is_bulk(const eg_applier *ap, uint32_t rule);
bool eg_apply_block(eg_applier *ap, uint32_t rule, const uint32_t *tuple, uint32_t n,
                    uint32_t ahead);
bool eg_apply_block_wide(eg_applier *ap, uint32_t rule, const uint32_t *tuple, uint32_t n,
                         uint32_t ahead); /* wide.c */
/* Remembers that part k of the rule is a reason; false: no memory. */
bool eg_log_rule(eg_applier *ap, uint32_t rule, uint32_t k, const uint32_t *tuple,
                 const uint32_t *made, uint32_t n_made);
/* Joins the classes of from and to because part k of the rule says so. */
eg_outcome eg_join_ids(eg_applier *ap, uint32_t rule, uint32_t k, const uint32_t *tuple,
                       const uint32_t *made, uint32_t n_made, uint32_t from, uint32_t to);

#endif
