/* plan: the walk over a nest's levels that appends the statements of its loop program. */
#ifndef TARN_PLAN_WALK_H
#define TARN_PLAN_WALK_H
#include "plan/internal.h"

typedef struct plan_walk {
  const tarn_plan_nest *N;
  TARN_VEC(tarn_plan_stmt) code;
  const tarn_plan_space *space; /* of the stage being walked */
  tarn_plan_at env[PLAN_MAX_VARS];
  int64_t len[TARN_MAX_DIMS];  /* extent left of each dim of the stage being walked */
  int64_t last[PLAN_MAX_VARS]; /* the last trip of each variable that is set */
  int64_t copy[PLAN_MAX_VARS]; /* 1 + the only copy that an unrolled level has; 0: all */
  int64_t copies;              /* of what is inside of peeled loops */
  tarn_plan_phase phase;
  tarn_plan_phase end; /* how accumulators end that are complete before the others, or MAP */
  bool ended;          /* they have */
  bool fetching;       /* inside of a pipeline */
  bool takes;          /* a leaf puts what operand st->data holds in `value` */
  uint32_t value;      /* of TAKE, or the sum that a result is made of */
  uint32_t values;     /* given out */
  uint32_t due, asked; /* lines whose addresses are made, and of them, those prefetched */
  uint32_t
      held[TARN_MAX_OPERANDS]; /* bit g: guard g of the operand has been tested here, and holds */
} plan_walk;

tarn_plan_code *tarn_plan_walk_of(tarn_plan_nest *N, uint32_t region);
/* What is inside of list's levels before l. */
void plan_walk_in(plan_walk *w, uint32_t list, uint32_t l);
void plan_add(plan_walk *w, tarn_plan_stmt s); /* one that holds nothing */
uint32_t plan_open_phase(plan_walk *w, tarn_plan_phase phase, tarn_plan_phase *before);
void plan_close_phase(plan_walk *w, uint32_t at, tarn_plan_phase before);
void plan_prefetch_due(plan_walk *w, uint32_t part, uint32_t parts); /* so many parts of all due */
void plan_walk_range(const plan_walk *w, const tarn_plan_lin *a, int64_t *lo, int64_t *hi);
/* ---- order.c ---- */
bool plan_walk_in_order(plan_walk *w, uint32_t list); /* the body, from level st->order on */
/* ---- bilinear.c ---- */
void plan_walk_bilinear(plan_walk *w, uint32_t list, uint32_t l); /* all from level acc on */

/* ---- peel.c ---- */
/* So many of the `full` trips of level l, the first and the last, cross the border of a padded
 * operand with part of their tile; the others lie inside. False: nothing to be gained. */
bool plan_peel(plan_walk *w, uint32_t list, uint32_t l, int64_t full, int64_t *first,
               int64_t *last);
bool plan_peel_begin(plan_walk *w, int64_t pieces); /* false: too much code */
/* Is loop l of a reduction, inside a tile that crosses the border, better fully unrolled? */
bool plan_unrolls(plan_walk *w, uint32_t list, uint32_t l, int64_t full);
/* Do the accumulators and the vectors that one trip of reduce loop l reads need more than all
 * registers? Then the next trip cannot reuse them. */
bool plan_fills(const plan_walk *w, uint32_t list, uint32_t l);
bool plan_left_out(const plan_walk *w, uint32_t stage); /* this copy of the body adds nothing */
/* A guard that `var` has just decided and without which the body adds nothing. */
bool plan_decisive(const plan_walk *w, uint32_t stage, uint32_t var, uint32_t *read,
                   uint32_t *guard);
#endif
