/* lower: a nest with its schedule, prepared for emission (prepare.c makes it, nest.c and reduce.c walk it).
 *
 * Level lists: list 0 holds the shared levels, list 1+i those of stage i. Variables (LOW_MAX_VARS): a shared level has its
 * own number, the levels of a stage follow them; stages use the same numbers one after the other. */
#ifndef TARN_LOWER_NEST_H
#define TARN_LOWER_NEST_H
#include "lower/internal.h"

typedef struct low_level {
  uint8_t dim;
  uint8_t kind;        /* what is emitted: SERIAL PARALLEL UNROLL VECTOR */
  bool red, inside;    /* of a reduce dim; inside of the accumulators */
  int64_t step, trips; /* trips: for the full length outside of it, the tail's counted */
  uint32_t var;
} low_level;

typedef struct low_list {
  uint32_t n;
  low_level level[TARN_MAX_LEVELS];
  uint32_t parallel; /* so many levels from the outermost on are parallel */
} low_list;

typedef struct low_block_of_rows {
  uint64_t key;
  uint32_t n;
  low_off at; /* of the first copy */
  LLVMValueRef v[TARN_TURN_ROWS];
} low_block_of_rows;

/* What a stage asks for early; levels are variables. */
typedef struct low_ask {
  const low_access *a;
  tarn_ask k;
} low_ask;

typedef enum { LOW_OUTER, LOW_INIT, LOW_RESUME, LOW_BODY, LOW_PARTIAL, LOW_FINAL } low_mode;
#define LOW_MOST_CHAINS 16 /* accumulators in registers, beside what is loaded */
typedef struct low_stage {
  const tarn_stage *s;
  const tarn_func *f;
  const tarn_reducer *red; /* NULL: a map */
  uint32_t n, nacc;        /* dims; of them shared and own */
  int64_t dim[TARN_MAX_DIMS];
  low_space space;
  uint32_t acc; /* level */
  uint32_t nread;
  low_access *read, result;
  uint32_t *operand;                   /* by read: child number, or TARN_NONE for a stage's result */
  uint32_t out_no;                     /* output stages */
  const low_lin *index[TARN_MAX_DIMS]; /* each dim over levels */
  tarn_dtype body_type, out_type;
  /* reductions */
  tarn_dtype state[TARN_MAX_STATE];
  uint32_t step[TARN_MAX_STATE]; /* over state…, flat index, body operands… */
  bool step_index;
  const low_lin *flat; /* index of the element */
  uint32_t red_lanes;  /* > 1: the lanes are partial results along a reduce dim */
  bool in_memory;      /* the accumulators are walked by loops */
  uint32_t max_lanes;
  int64_t slots;
  int64_t chains;     /* of each slot: unrolled steps along the lanes' reduce dim do not wait for one another */
  LLVMValueRef *slot; /* slots × chains × state; in_memory: slot[0] is their base */
  uint32_t ndot;      /* instructions that the dot level may become */
  tarn_hw_dot dot[TARN_HW_DOTS];
  uint64_t serial;           /* variables that are loops */
  uint32_t order, order_end; /* levels whose copies go in the order of what they read, see order.c; order past all: none */
  uint32_t order_read;       /* which operand that is; TARN_NONE: that of a tile with fewer vectors */
  low_mode end;              /* how accumulators end that are complete before the others; OUTER: all end together */
  bool ended;                /* they have */
  bool crossed;              /* the lanes of what it reduces lie in another order, see crossed.c */
  const low_level *rows;     /* its copies make neighbours of rows that lie across the lanes; NULL: there is none */
  TARN_VEC(low_block_of_rows) block; /* those begun */
  int64_t local_bytes;               /* result of a stage that is no output */
  uint32_t nfactor, data;            /* sums that so many small matrices weigh, of read number `data`: see weigh.c */
  struct low_factor *factor;
  bool at_most_0; /* arguments of exp in a map's body, see sign.c */
  bool nan_shows; /* a NaN that it reduces need not be kept: see there, too */
  uint32_t start; /* an operand of the epilogue: the sum begins with it, instead of its being added; TARN_NONE: there is none */
  TARN_VEC(low_ask) ask;      /* what it asks for early, of any stage's accesses: see ahead.c */
  LLVMValueRef *taken, given; /* then: where a copy of the body puts what it reads; the sum that a result is made of, NULL: 0 */
} low_stage;

/* Copies of results that follow one another: see interleave.c */
#define LOW_COPIES 8
typedef struct low_copies {
  LLVMBasicBlockRef block;
  uint32_t gen, n;
  LLVMValueRef from, end[LOW_COPIES]; /* the instructions that stand before the first, and last in each */
} low_copies;

/* A line that is to be asked for while a tile is computed: so far behind a base. */
typedef struct low_due {
  const low_access *a;
  LLVMValueRef at;
  unsigned locality;
} low_due;

struct low_nest {
  low_module *M;
  TARN_VEC(low_due) due;
  uint32_t asked; /* of them, already */
  const tarn_nest *n;
  uint32_t nshared, nstage;
  low_list *list; /* 1 + nstage */
  low_stage *stage;
  int64_t len[TARN_MAX_DIMS]; /* extent left of each dim of the stage being walked */
  int64_t last[LOW_MAX_VARS]; /* the last trip of each variable that is set */
  int64_t copy[LOW_MAX_VARS]; /* 1 + the only copy that an unrolled level emits; 0: all */
  int64_t copies;             /* of what is inside of peeled loops */
  low_copies turns;           /* noted so far */
  bool split;                 /* every stage has its own parallel region */
};

/* ---- prepare.c: see low_nest_new ---- */
bool low_lanes_are_rows(const low_list *list); /* of the last level, as many as the level outside of it steps */

/* ---- crossed.c ---- */
void low_crossed_settle(const low_nest *N, low_stage *st, const low_list *list);
/* ---- sign.c ---- */
bool low_exp_at_most_0(const low_nest *N, const low_stage *st);
bool low_nan_shows(const low_nest *N, const low_stage *st); /* when all stages are prepared */
/* ---- ahead.c ---- */
void low_read_ahead(low_nest *N, const low_operand *in, const low_operand *out);
void low_fetch(low_nest *N, low_fn *E, uint32_t list, uint32_t l); /* in a trip of loop l */
void low_fetch_due(low_nest *N, uint32_t part, uint32_t parts);    /* the first so many parts of what is due */
/* ---- peel.c ---- */
/* So many of the `full` trips of level l, the first and the last, cross the border of a padded operand with part of their
 * tile; the others lie inside. False: nothing to be gained. */
bool low_peel(low_nest *N, low_fn *E, uint32_t list, uint32_t l, int64_t full, int64_t *first, int64_t *last);
bool low_peel_begin(low_nest *N, int64_t pieces); /* false: too much code; after it the caller sets N->copies back */
/* Is loop l of a reduction, inside a tile that crosses the border, better written out? */
bool low_written_out(const low_nest *N, low_fn *E, uint32_t list, uint32_t l, int64_t full);
bool low_adds_nothing(const low_nest *N, const low_stage *st, uint32_t read); /* where the read's fill stands */
bool low_left_out(const low_nest *N, const low_fn *E, const low_stage *st);   /* this copy of the body adds nothing */
/* A guard that `var` has just decided and without which the body adds nothing. */
bool low_decisive(const low_nest *N, const low_fn *E, const low_stage *st, uint32_t var, uint32_t *read, uint32_t *guard);
/* ---- nest.c ---- */
void low_walk(low_nest *N, low_fn *E, uint32_t list, uint32_t l, low_mode mode);
void low_apart(low_fn *E); /* nothing that is read is moved from before to behind, or kept */
/* ---- order.c ---- */
void low_order_settle(const low_nest *N, low_stage *st, const low_list *list);
bool low_walk_in_order(low_nest *N, low_fn *E, uint32_t list); /* the body, from level st->order on; false: not done */
/* ---- across.c ---- */
void low_across_settle(low_stage *st, const low_list *list);
void low_store_across(low_nest *N, low_fn *E, low_stage *st, uint32_t level, LLVMValueRef v); /* where st->rows */
/* ---- interleave.c ---- */
/* Around what emits one copy of a result, its operands' loads and its store. */
void low_copy_begin(low_nest *N, const low_fn *E);
void low_copy_end(low_nest *N, const low_fn *E);
void low_copies_end(low_nest *N); /* no more copies: those noted are put in turns */
/* ---- reduce.c ---- */
void low_reduction(low_nest *N, low_fn *E, uint32_t list, uint32_t l); /* everything from level acc on */
LLVMValueRef low_acc_load(low_nest *N, low_fn *E, uint32_t list);      /* of a reducer with one state */
void low_acc_store(low_nest *N, low_fn *E, uint32_t list, LLVMValueRef v);
/* ---- weigh.c ---- */
void low_weigh_settle(const low_nest *N, low_stage *st, const low_list *list); /* after all else but the order of copies */
void low_weighed_sum(low_nest *N, low_fn *E, uint32_t list, uint32_t l);       /* everything from level acc on */
/* ---- dot.c ---- */
/* Is the stage's innermost level one that an instruction takes at once? Else it is unrolled. */
void low_dot_settle(low_nest *N, low_stage *st, low_list *list);
void low_dot_leaf(low_nest *N, low_fn *E, uint32_t list); /* all levels but the dot level are entered */
void low_reduce_leaf(low_nest *N, low_fn *E, uint32_t list, low_mode mode);
#endif
