/* plan: what its files share. Each plan_…_settle decides one thing about a stage whose levels and
 * accesses are known. */
#ifndef TARN_PLAN_INTERNAL_H
#define TARN_PLAN_INTERNAL_H
#include "plan/work.h"

#define PLAN_HALVES 8

/* Names of level kinds, as schedules are written (text.c). */
#define PLAN_LEVEL_KINDS (TARN_TEAM + 1)
extern const char *const tarn_plan_level_names[PLAN_LEVEL_KINDS];

/* Instructions that take several steps of a reduction of products, the one of most lanes first:
 * room for TARN_HW_DOTS. type: of f's operands. factor: what is multiplied, before it is cast to
 * the type of the sum: operands, or what is computed of some, as numbers of few bits from a byte.
 * They change the order of the sum: not where floats keep it. */
uint32_t plan_dots(tarn_lang *L, const tarn_hw *hw, const tarn_func *f, const tarn_dtype *type,
                   bool contract, tarn_hw_dot *dot, uint32_t factor[2]);
/* Does an element of the reduction change nothing where operand r is what it is padded with? Of a
 * product that is said for finite other factors, so that a strict program computes it. */
bool plan_adds_nothing(const tarn_lang *L, const tarn_func *f, uint32_t r, uint32_t fill,
                       bool contract);
/* Inside of the accumulators, from the last level outside of the lanes outwards: does the order of
 * copies go on to this level? *dims: those so far. */
bool plan_orders(uint32_t kind, uint32_t dim, uint32_t *dims);
/* A sum of products of one operand, the data, and several small matrices, each over one dim (or
 * level) of the result and one of the reduction. Dims are bits. */
typedef struct plan_matrix_read {
  bool small;              /* a constant of no more rows and columns than a matrix has */
  uint64_t moved, guarded; /* by these dims */
} plan_matrix_read;
typedef struct plan_matrices {
  uint32_t n, data, read[TARN_MOST_MATRICES];
  uint64_t own, red; /* dims of all matrices */
} plan_matrices;
/* The body is exactly the product of its operands, each once. */
bool plan_is_product(const tarn_lang *L, const tarn_func *f);
/* False: they have not that form. reduced: dims of the reduction. */
bool plan_matrices_of(const plan_matrix_read *r, uint32_t n, uint64_t reduced, plan_matrices *out);
void tarn_plan_dot_settle(
    tarn_plan_nest *N, tarn_plan_stage *st,
    tarn_plan_list *list); /* is the innermost level one that an instruction takes? */
void tarn_plan_transpose_settle(tarn_plan_stage *st, const tarn_plan_list *list);
void tarn_plan_bilinear_settle(const tarn_plan_nest *N, tarn_plan_stage *st,
                               const tarn_plan_list *list); /* after all else but the order */
void tarn_plan_order_settle(const tarn_plan_nest *N, tarn_plan_stage *st,
                            const tarn_plan_list *list);
void tarn_plan_lanes_settle(const tarn_plan_nest *N, tarn_plan_stage *st,
                            const tarn_plan_list *list);
/* fetch.c, for a stage that holds operands in shared memory: its rounded extents and the check of
 * its levels, before they are read; then what is held. */
void tarn_plan_fetch_levels(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_stage_sched *s);
void tarn_plan_whole_tiles(tarn_plan_stage *st, const tarn_stage_sched *s); /* the extents */
/* wide.c: are all terms multiples of w; and loads of several elements at once. */
bool tarn_plan_multiple(const tarn_plan_lin *a, int64_t w);
void tarn_plan_wide_settle(tarn_plan_nest *N, const tarn_plan_operand *in);
uint32_t tarn_plan_zero(const tarn_plan_nest *N, tarn_dtype t); /* fx constant */
bool tarn_plan_is_zero(const tarn_plan_nest *N, uint32_t fill, tarn_dtype t);
/* fragment.c: the levels of an instruction of a warp; its variables; a fragment's index of rows,
 * columns or sum, as its operand o has it; what is held as a register takes it. */
#define TARN_PLAN_UNIT_VARS 6
void tarn_plan_fragment_levels(tarn_plan_nest *N, tarn_plan_stage *st, tarn_plan_list *list,
                               const tarn_stage_sched *s, const tarn_plan_operand *in);
void tarn_plan_fragment_vars(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list);
const tarn_plan_lin *tarn_plan_fragment(const tarn_plan_nest *N, const tarn_plan_stage *st,
                                        uint32_t o, tarn_hw_role role);
void tarn_plan_fragment_matrices(const tarn_plan_nest *N, tarn_plan_stage *st);
void tarn_plan_fragment_check(const tarn_plan_nest *N, const tarn_plan_stage *st);
/* Of a stage in a team, an item of which a warp does: its levels; the index of each dim in operand
 * o; what lies beyond the end of a dim. */
void tarn_plan_fragment_own(const tarn_plan_nest *N, tarn_plan_stage *st,
                            const tarn_stage_sched *s);
void tarn_plan_fragment_index(const tarn_plan_nest *N, const tarn_plan_stage *st, uint32_t o,
                              const tarn_plan_lin **index);
void tarn_plan_fragment_settle(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_unit *u,
                               const tarn_plan_operand *in);
void tarn_plan_fetch_vars(tarn_plan_nest *N, tarn_plan_stage *st, tarn_plan_list *list,
                          const tarn_stage_sched *s, const tarn_plan_operand *in);
/* Where a team's buffers lie: blocks.c. */
void tarn_plan_share(tarn_plan_nest *N);
void tarn_plan_fetch_settle(tarn_plan_nest *N, tarn_plan_stage *st, const tarn_plan_list *list,
                            const tarn_stage_sched *s, const tarn_plan_operand *in);
bool tarn_plan_exp_at_most_0(const tarn_plan_nest *N, const tarn_plan_stage *st);
bool tarn_plan_nan_shows(const tarn_plan_nest *N,
                         const tarn_plan_stage *st); /* when all stages are prepared */
/* given: NULL, or what was chosen before. */
void tarn_plan_prefetch_settle(tarn_plan_nest *N, const tarn_ahead *given,
                               const tarn_plan_operand *in, const tarn_plan_operand *out);
#endif
