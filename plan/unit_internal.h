/* What the files about units share. */
#ifndef TARN_UNIT_INTERNAL_H
#define TARN_UNIT_INTERNAL_H
#include "plan/hold.h"
#include "plan/unit.h"

typedef struct unit_match {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_unit_plan *p;
  const char *why; /* the first reason against the kernel of the weightiest kind */
  tarn_unit_reason reason;
  uint32_t epi;   /* what is made of the sums, hole 0; TARN_NONE: they are the result */
  uint32_t first; /* the read that is hole 1; the others follow */
  uint32_t twice; /* an expression that the epilogue adds several times; or TARN_NONE */
  uint32_t copy;  /* tensor: what it was; TARN_NONE: it has not been computed yet */
} unit_match;
/* Notes a reason; returns false. */
bool unit_because(unit_match *m, tarn_unit_reason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define unit_no(m, ...)   unit_because(m, TARN_UNIT_CANNOT, __VA_ARGS__)
#define unit_lies(m, ...) unit_because(m, TARN_UNIT_OPERAND_LIES, __VA_ARGS__)
#define unit_else(m, ...) unit_because(m, TARN_UNIT_NO_WAY, __VA_ARGS__)

uint32_t unit_memory(const tarn_hw *hw, const char *name); /* TARN_NONE: none */
const tarn_imap *unit_map(const unit_match *m, uint32_t read);
/* A further tensor; NULL: there is no room. */
tarn_unit_tensor *unit_tensor(unit_match *m, tarn_unit_what what, uint32_t read, uint32_t memory);
/* The same, lying as the sums do. */
tarn_unit_tensor *unit_like_sums(unit_match *m, tarn_unit_what what);
/* What the first `loops` loops leave of each dim where they stand at `at` (unit_visit.c). */
void unit_box_at(const tarn_unit_plan *p, uint32_t loops, const int64_t *at, tarn_unit_box *b);
/* Entries from one unit of dim d to the next; -1: not a whole number of them. */
int64_t unit_step(const unit_match *m, const tarn_unit_tensor *t, int64_t coef, uint32_t d,
                  int64_t block);
/* Only the dim along an entry may be divided, by the entry's elements: that is a blocked layout,
 * whose last block may be ragged. *block: elements from one block to the next, beside those of an
 * entry. */
bool unit_affine(const unit_match *m, const tarn_unit_tensor *t, uint32_t e, int64_t *block);
/* Does the last entry that is read end within the operand's memory? */
bool unit_ends_inside(const unit_match *m, const tarn_unit_tensor *t);
bool unit_coords(unit_match *m, tarn_unit_tensor *t, const tarn_imap *map);
void unit_packed(unit_match *m, tarn_unit_tensor *t, const tarn_imap *map);
bool unit_rows(unit_match *m, tarn_unit_tensor *t);
bool unit_sums(unit_match *m);
bool unit_result(unit_match *m, uint32_t memory, uint32_t transfer);
/* An instruction of the unit has a flag by which the accumulators begin anew: nothing clears them.
 */
bool unit_begins(const tarn_hw *hw, uint32_t intrinsic);
/* Some instruction that issues the intrinsic can have this immediate. */
bool unit_takes(const tarn_hw *hw, uint32_t intrinsic, int64_t immediate);
/* The meaning of a map, $k being operand k; TARN_NONE: it is none, or reads its result otherwise
 * than asked. */
uint32_t unit_meaning(const unit_match *m, uint32_t intrinsic, bool acc);
/* The operand that the result replaces; TARN_NONE: none. */
uint32_t unit_replaced(const tarn_hw *hw, uint32_t intrinsic);
/* The loop program (unit_program.c): as many statements as are returned, and tests. */
#define UNIT_STATEMENTS 128
#define UNIT_TESTS      (2 * TARN_MAX_LEVELS)
uint32_t unit_program(const tarn_unit_plan *p, tarn_plan_stmt *code, tarn_plan_test *test);
void unit_keep_program(tarn_unit_plan *p); /* as p->code */
bool unit_epilogue(unit_match *m);         /* unit_vector.c: steps, addends, the result */
/* Where the elements of an operand lie that comes to the places of the sums. */
bool unit_beside_sums(unit_match *m, tarn_unit_tensor *t);
/* The dim of the result, but that of the columns, that fills the unit's rows best becomes theirs.
 */
void unit_fullest_rows(unit_match *m);
/* The intrinsic is a product whose product with the identity loads operand `read` as it is, widened
 * to the type of the accumulators. */
bool unit_loads(unit_match *m, uint32_t intrinsic, uint32_t read);
/* An operand that is loaded so, and the identity: the first two tensors; and the sums. */
bool unit_loaded(unit_match *m, uint32_t intrinsic, uint32_t read);
/* The dim of the result that lies along an operand's elements and in entries. */
bool unit_lane(unit_match *m, uint32_t read);
bool unit_map_kernel(unit_match *m); /* unit_map.c */
bool unit_reduction(unit_match *m);  /* unit_taps.c */
bool unit_whole(unit_match *m);      /* unit_whole.c */
/* What a kernel has in parts: of each of its n outermost loops, trips of a part; of each operand, a
 * read that says how it goes along these. n 0: all at once. */
typedef struct unit_parts {
  uint32_t n;
  int64_t part[TARN_MAX_DIMS];
  uint32_t map[TARN_MAX_OPERANDS];
  bool alike; /* nests of one stage have the same function, if not the same loops */
} unit_parts;
/* Kernel a computes b, or part after part of it; operand i of a is operand as[i] of b
 * (unit_same.c). */
bool unit_same_kernel(tarn_lang *L, const tarn_ksig *a, const tarn_ksig *b, uint32_t *as,
                      unit_parts *parts);

#endif
