/* tarn plan: kernels on machines whose memories the program manages (accelerators).
 *
 * Such a machine moves and computes whole entries of its memories. A kernel is therefore seen in
 * entries: a unit (a described product) takes `unit[d]` elements of dim d at once, loops count
 * units, operands are entries at sums of these counts. From the kernel and its schedule follows the
 * loop program: which tile is filled when and into which slot, what is issued, which steps of the
 * vector unit make a result of the sums, when it leaves. The price visits this program and adds
 * cycles; the emitter visits it and writes instructions.
 *
 *   unit_match.c   which units compute a kernel, and how its operands lie in entries
 *   unit_map.c     kernels that sum nothing: the accumulators begin with an operand
 *   unit_taps.c    windows that the vector unit reduces
 *   unit_whole.c   kernels that one instruction computes
 *   unit_same.c    whether two nests compute the same
 *   unit_vector.c  the epilogue as steps of the vector unit
 *   unit_rows.c    rows of a tile that one transfer moves
 *   unit_inside.c  tiles without padding, and with what lies between their entries
 *   unit_issue.c   loops of an instruction that issues a unit
 *   unit_micro.c   its lists of micro-ops, and when they come
 *   unit_schedule.c from a schedule to loops and places, and back
 *   unit_program.c the loop program (code.h)
 *   unit_visit.c   the loop program, executed trip by trip
 *
 * Everything lies in the context's arena. */
#ifndef TARN_UNIT_H
#define TARN_UNIT_H
#include "plan/code.h"
#include "plan/coordinate.h"
#include "plan/schedule.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TARN_UNIT_COORDS   8
#define TARN_UNIT_TENSORS  12
#define TARN_UNIT_STEPS    24
#define TARN_UNIT_SLOTS    64 /* of a hold, at most */
#define TARN_UNIT_MEMORIES 16
#define TARN_UNIT_QUEUES   8

typedef enum tarn_unit_what {
  TARN_UNIT_ROWS,    /* the product's operand that goes along rows */
  TARN_UNIT_COLUMNS, /* the other one, along columns */
  TARN_UNIT_SUMS,    /* the accumulators */
  TARN_UNIT_RESULT,  /* what leaves */
  TARN_UNIT_ADDEND,  /* an operand of the vector unit, beside the accumulators */
  TARN_UNIT_ONE,     /* the identity, by which a product loads an addend */
  TARN_UNIT_ONTO,    /* a transfer computes it into the accumulators that are there */
  TARN_UNIT_TAP,     /* what a reduction that is no product folds into the accumulators next */
  TARN_UNIT_COPY     /* what the accumulators held, for a later step of the vector unit */
} tarn_unit_what;

/* What lies in one memory of the machine, a tile at a time. */
typedef struct tarn_unit_tensor {
  tarn_unit_what what;
  uint32_t read;     /* of the stage; TARN_NONE: none */
  uint32_t memory;   /* of the description */
  uint32_t transfer; /* by which it comes, or leaves; TARN_NONE: neither */
  uint32_t source;   /* tensor that the identity is multiplied by to fill this one; or TARN_NONE */
  bool packed;       /* a constant: laid out tile by tile */
  bool vector;       /* the same, ONTO: laid out along the columns alone */
  bool small;        /* it does not change along some own dim: steps of the vector unit read it,
                        nothing replaces it */
  bool unpadded;     /* a tile has no padding: products with it are left out */
  bool gaps;         /* what lies between entries that are read comes with them, in longer rows */
  uint32_t n;
  tarn_coordinate at[TARN_UNIT_COORDS]; /* outermost in a tile first */
  int64_t base;                         /* entries: where all dims are 0 */
  int64_t each;      /* entries of one operand of the unit, one after the other */
  int64_t lanes[2];  /* elements of an entry, rows × those side by side */
  uint32_t along[2]; /* the dims they go along; TARN_NONE: the same everywhere */
  int64_t constant;  /* read TARN_NONE, ADDEND: each element */
  double real;       /* the same, of a float */
  /* of the schedule: */
  uint32_t at_loop; /* so many loops are outside of its tile */
  uint32_t slots;
  bool fresh; /* filled in each trip of these loops, whether it is there or not */
} tarn_unit_tensor;

/* A step of the vector unit over a tile: to = intrinsic(to, from or immediate). Where `from` comes
 * ONTO the sums, its transfer is the step. */
typedef struct tarn_unit_step {
  uint32_t intrinsic;
  uint32_t to, from; /* tensors; from TARN_NONE: the immediate */
  int64_t immediate;
} tarn_unit_step;

typedef struct tarn_unit_loop {
  uint32_t dim;
  int64_t step; /* units */
} tarn_unit_loop;

/* How the accumulators come to hold what the vector unit goes on with. */
typedef enum tarn_unit_way {
  TARN_UNIT_MULTIPLIES, /* products are summed */
  TARN_UNIT_FOLDS,      /* taps of a window, loaded by the identity, are joined */
  TARN_UNIT_JOINS,      /* taps of a window, which a transfer brings, are joined */
  TARN_UNIT_LOADS,      /* an operand is loaded by the identity */
  TARN_UNIT_FILLS,      /* a transfer brings an operand */
  TARN_UNIT_WHOLE       /* one instruction computes the kernel */
} tarn_unit_way;

/* What kind of reason there is against a kernel, the weightiest of all ways that were tried. */
typedef enum tarn_unit_reason {
  TARN_UNIT_NO_WAY,       /* no way of the machine is one to compute it */
  TARN_UNIT_RESULT_LIES,  /* its result does not lie in entries; in another order it may */
  TARN_UNIT_OPERAND_LIES, /* the result does, an operand does not */
  TARN_UNIT_CANNOT        /* the machine lacks something */
} tarn_unit_reason;

typedef struct tarn_unit_plan {
  tarn_lang *L;
  const tarn_hw *hw;
  const tarn_ksig *k;
  const tarn_stage *stage;
  uint32_t n, nacc;              /* dims: own, then reduced */
  int64_t extent[TARN_MAX_DIMS]; /* elements */
  int64_t unit[TARN_MAX_DIMS];   /* elements */
  int64_t dim[TARN_MAX_DIMS];    /* units */
  tarn_unit_way way;
  uint32_t product; /* intrinsic whose accumulators these are; JOINS: that joins */
  tarn_hw_form form;
  uint32_t rows, columns, sum; /* dims; TARN_NONE where none is needed */
  int64_t wide;                /* FILLS: entries of a row of one dim alone; else 0 */
  uint32_t ntensor;
  tarn_unit_tensor tensor[TARN_UNIT_TENSORS];
  uint32_t sums, result; /* tensors; those before the sums are what the product multiplies */
  uint32_t fold, tap;    /* FOLDS: intrinsic; tensor. JOINS: fold is the product */
  uint32_t nstep;
  tarn_unit_step step[TARN_UNIT_STEPS];
  uint32_t store; /* intrinsic that makes an element of the result of a sum; TARN_NONE: as it is */
  int64_t store_immediate; /* its immediate, of a float: the bits */
  uint32_t nloop;          /* over tiles, outermost first */
  tarn_unit_loop loop[TARN_MAX_LEVELS];
  tarn_plan_code code; /* the loop program, once the schedule is settled: tarn_unit_make() */
  tarn_unit_reason reason;
} tarn_unit_plan;

/* How the machine computes the kernel. False: it cannot; *why: the reason, in words, and p->reason
 * its kind. */
TARN_API bool tarn_unit_match(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                              tarn_unit_plan *p, const char **why);

/* A nest that is known to equal an intrinsic's meaning, of its nwhole, as a kernel. */
TARN_API bool tarn_unit_known(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic, uint32_t which,
                              tarn_ksig *k);

/* The dims that a tensor changes along, as bits. */
static inline uint32_t tarn_unit_dims(const tarn_unit_tensor *t) {
  return plan_coordinate_dims(t->at, t->n);
}

/* A box of dims, in units. */
typedef struct tarn_unit_box {
  int64_t lo[TARN_MAX_DIMS], n[TARN_MAX_DIMS];
} tarn_unit_box;
/* All that the kernel has. */
TARN_API tarn_unit_box tarn_unit_all(const tarn_unit_plan *p);
/* Of a coordinate in a box: its first value and how many from there to its last one; unpadded, of
 * those that lie in main memory. */
TARN_API void tarn_unit_span(const tarn_coordinate *c, const tarn_unit_box *b, int64_t *first,
                             int64_t *n);
/* Entries that a tile has for it, at least n. */
TARN_API int64_t tarn_unit_room(const tarn_coordinate *c, const tarn_unit_box *b);
/* Entries of a tensor's tile. */
TARN_API int64_t tarn_unit_entries(const tarn_unit_tensor *t, const tarn_unit_box *b);
/* The same, at most, wherever a box of this size lies. */
TARN_API int64_t tarn_unit_most_entries(const tarn_unit_tensor *t, const tarn_unit_box *b);

/* The product's rows become unpadded, or come with their gaps. False: they cannot, or have none. */
TARN_API bool tarn_unit_unpad(tarn_unit_plan *p);
TARN_API bool tarn_unit_bridge(tarn_unit_plan *p);
/* Calls f for the parts of a box in which no product is one with padding, those of one window's
 * elements at a time; of rows that are not unpadded, for the box. */
typedef void tarn_unit_inside_fn(void *user, const tarn_unit_box *b);
TARN_API void tarn_unit_inside(const tarn_unit_plan *p, const tarn_unit_box *b,
                               tarn_unit_inside_fn *f, void *user);

/* One transfer: rows of entries, with zeros around them. Places are in entries. Of zeros alone a
 * row has at most so many, which lie in main memory. */
#define TARN_UNIT_ZEROS 64
typedef struct tarn_unit_move {
  int64_t main, local; /* of the first entry, without zeros; of the first, zeros included */
  int64_t rows, entries, stride;
  int64_t pad[4]; /* rows before and behind, entries before and behind */
  int64_t block;  /* from an entry to its neighbour in the memory, the rows lie side by side; 0: the
                     entries do */
  bool zeros;     /* they come from zeros, each row from the same ones, not from the tensor */
} tarn_unit_move;
typedef void tarn_unit_move_fn(void *user, const tarn_unit_move *m);
/* Calls f for each transfer of a tile; returns their number, or -1 where the machine's transfers
 * cannot. f may be NULL. */
TARN_API int64_t tarn_unit_moves(const tarn_unit_plan *p, const tarn_unit_tensor *t,
                                 const tarn_unit_box *b, tarn_unit_move_fn *f, void *user);
/* Where an entry of a packed tile of n entries lies in main memory: one behind the other, but where
 * a transfer puts the entries of its rows apart. */
TARN_API int64_t tarn_unit_packed_at(const tarn_unit_plan *p, const tarn_unit_tensor *t, int64_t n,
                                     int64_t entry);
/* Entries of a row of a transfer, at most; of one whose entries it puts apart in its memory, 1:
 * it does not. */
TARN_API int64_t tarn_unit_longest_row(const tarn_hw *hw, uint32_t transfer);
TARN_API int64_t tarn_unit_widest_block(const tarn_hw *hw, uint32_t transfer);
TARN_API double tarn_unit_move_cycles(const tarn_hw *hw, const tarn_hw_transfer *t,
                                      const tarn_unit_move *m);

/* An instruction that issues an intrinsic: loops of its own, and micro-ops; dims that neither has
 * are instructions of their own. Operands are numbered as the intrinsic's. */
#define TARN_UNIT_OPERANDS 4
typedef struct tarn_unit_walk { /* a loop of an issue, and how each operand goes along it */
  int64_t trips;
  bool sums; /* along it the result stays where it is */
  int64_t step[TARN_UNIT_OPERANDS];
} tarn_unit_walk;
typedef enum { TARN_UNIT_APART, TARN_UNIT_LOOP, TARN_UNIT_MICRO } tarn_unit_by;
typedef struct tarn_unit_issue {
  uint32_t nwalk;
  tarn_unit_walk walk[TARN_MAX_DIMS];
  uint8_t by[TARN_MAX_DIMS];             /* tarn_unit_by; of a LOOP: which, in `loop` */
  uint8_t loop[TARN_MAX_DIMS];           /* number of the instruction's loop */
  uint32_t order[TARN_MAX_DIMS], nmicro; /* micro-ops: walks, outermost first */
  int64_t instructions, micro;           /* how many; micro-ops of one */
  const tarn_hw_instruction *is[2]; /* that goes on, or clears; that begins: with the same loops */
} tarn_unit_issue;
/* The fewest cycles. Walks are given, and the immediate where the intrinsic has one; false: no
 * instruction of the machine can. */
TARN_API bool tarn_unit_issue_of(const tarn_unit_plan *p, uint32_t intrinsic, bool clears,
                                 int64_t immediate, tarn_unit_issue *i);
TARN_API double tarn_unit_issue_cycles(const tarn_hw *hw, uint32_t intrinsic,
                                       const tarn_unit_issue *i);

/* The program, statement by statement. */
typedef enum tarn_unit_does {
  TARN_UNIT_FILL,    /* a tensor's tile into a slot; ONTO: into the accumulators' */
  TARN_UNIT_CLEAR,   /* the accumulators' tile becomes 0 */
  TARN_UNIT_PRODUCT, /* of a tile of rows and columns, added to the accumulators */
  TARN_UNIT_LOAD,    /* an addend's tile from its source, multiplied by the identity */
  TARN_UNIT_VECTOR,  /* a step of the vector unit over the accumulators' tile */
  TARN_UNIT_LEAVE    /* the result's tile, or a part of it that is complete */
} tarn_unit_does;
typedef struct tarn_unit_stmt {
  tarn_unit_does does;
  uint32_t tensor;   /* FILL, LEAVE, LOAD */
  int64_t immediate; /* VECTOR */
  bool begins; /* PRODUCT: where all summed dims begin, what the accumulators held is no part */
  const tarn_unit_box *box;             /* what is computed or moved */
  const tarn_unit_box *of;              /* of each tensor: what its slot holds */
  const uint32_t *slot;                 /* of each tensor: the one it has now */
  uint32_t intrinsic;                   /* CLEAR, PRODUCT, LOAD, VECTOR */
  uint32_t operand[TARN_UNIT_OPERANDS]; /* tensors of the intrinsic's operands */
  int64_t first[TARN_UNIT_OPERANDS];    /* entries from the beginning of its slot; LEAVE: [0] */
  tarn_unit_issue issue;
} tarn_unit_stmt;
/* False: no further statement is asked for. */
typedef bool tarn_unit_visit_fn(void *user, const tarn_unit_plan *p, const tarn_unit_stmt *s);
/* False, and no further statement, where the machine cannot do one, or none is asked for. */
TARN_API bool tarn_unit_visit(const tarn_unit_plan *p, tarn_unit_visit_fn *f, void *user);

/* Lists of micro-ops that statements have had, each by a hash of what makes it. */
#define TARN_UNIT_LISTS 2048
typedef struct tarn_unit_lists {
  uint32_t n;
  uint64_t list[TARN_UNIT_LISTS];
} tarn_unit_lists;
/* Micro-ops of a statement whose list none before it had; it has it from now on. */
TARN_API int64_t tarn_unit_new_micro(const tarn_unit_plan *p, tarn_unit_lists *seen,
                                     const tarn_unit_stmt *s);
/* All lists of a kernel come before its tiles, at once, where they fit their memory. */
TARN_API bool tarn_unit_micro_fits(const tarn_hw *hw, int64_t micro);
/* Whether they do (*first); *micro: of how many micro-ops. False where the machine cannot do a
 * statement. */
TARN_API bool tarn_unit_micro_first(const tarn_unit_plan *p, bool *first, int64_t *micro);

/* The schedule's loops and holds; raises TARN_BAD_INPUT where they do not fit the machine. */
TARN_API void tarn_unit_schedule(tarn_unit_plan *p, const tarn_schedule *s);
/* Where results leave part by part, does each part lie in one piece? */
TARN_API bool tarn_unit_leaves_in_parts(const tarn_unit_plan *p);
/* The plan of a kernel with its schedule; NULL, or why the machine cannot compute the kernel.
 * Raises as tarn_unit_schedule(). */
TARN_API const char *tarn_unit_make(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                                    const tarn_schedule *s, tarn_unit_plan *p);
/* The other way: a schedule of the plan's loops. */
TARN_API const tarn_schedule *tarn_unit_scheduled(const tarn_unit_plan *p);
/* Of each tensor the entries of one slot at most, and the entry in its memory at which slot 0
 * begins: slots follow one another, memories are filled from 0 on. */
typedef struct tarn_unit_place {
  int64_t entries[TARN_UNIT_TENSORS], first[TARN_UNIT_TENSORS];
  uint32_t memory; /* that is too small, or the last one; */
  int64_t needs;   /* entries of it that are needed */
} tarn_unit_place;
/* False: a memory is too small. */
TARN_API bool tarn_unit_places(const tarn_unit_plan *p, tarn_unit_place *out);
/* "rows 0": what a tensor is, and of which operand. */
TARN_API void tarn_unit_name(const tarn_unit_plan *p, uint32_t tensor, tarn_buf *b);
TARN_API void tarn_unit_print(const tarn_unit_plan *p, tarn_buf *b);

#ifdef __cplusplus
}
#endif
#endif
