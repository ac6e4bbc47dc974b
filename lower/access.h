/* What one access reads, for access.c and sharing.c. */
#ifndef TARN_LOWER_ACCESS_H
#define TARN_LOWER_ACCESS_H
#include "lower/internal.h"

/* Are the elements in the tensor, or in the padding? */
typedef struct low_cond {
  bool never;
  LLVMValueRef all;  /* i1 for all lanes, NULL: true */
  LLVMValueRef lane; /* lanes of i1, NULL: true */
} low_cond;
low_cond low_conditions(low_fn *E, const low_access *a);
bool low_lanes_vary(const low_fn *E, const low_access *a);   /* are they apart by a size? */
LLVMValueRef low_fill_value(low_fn *E, const low_access *a); /* in all lanes; as in memory */
LLVMValueRef low_half_of(low_fn *E, const LLVMValueRef *pair,
                         uint32_t first); /* every second lane of what a pair holds */
/* By itself, from memory; pair: what lanes at a step of two were made of, or NULL. out, in: the
 * offset in two parts. */
LLVMValueRef low_load_guarded(low_fn *E, low_access *a, const low_off *out, const low_off *in,
                              LLVMValueRef *pair);

/* offset.c */
LLVMValueRef low_off_vector(low_fn *E, const low_off *o); /* all lanes */
low_off low_atom(low_fn *E, const tarn_plan_term *t);     /* of counters */
low_off low_row(low_fn *E, low_access *look, const tarn_plan_term *t);
void low_off_add(low_fn *E, low_off *to, int64_t k, const low_off *x);
/* Each term is widened by itself, before its factor: that is one instruction (mul.wide), and LLVM
 * adds to a pointer what does not change in a loop, before it. */
void low_off_add_wide(low_fn *E, low_off *to, int64_t k, low_off x);

/* sharing.c */
uint64_t low_copy_key(const low_fn *E, const low_access *a);
LLVMValueRef low_load_copy(low_fn *E, low_access *a, const low_off *out,
                           const low_off *in); /* compute type; once a block */
#endif
