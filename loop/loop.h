/* tarn loop: programs as kernels over buffers; layouts, loop nests, schedules, their features and analytic price.
 * Nothing here belongs to one target. */
#ifndef TARN_LOOP_H
#define TARN_LOOP_H
#include "hw/hw.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- layouts: from the logical dims of a buffer to an element offset ----
 *   offset + Σ_{a != baxis} i[a]·stride[a] + (i[b] / block)·stride[b] + (i[b] mod block)
 * block 0: no blocking. A blocked axis is padded up to a multiple of the block (the padding is zero in constants). */
typedef struct tarn_layout {
  uint8_t n;
  int64_t dim[TARN_MAX_DIMS], stride[TARN_MAX_DIMS];
  int64_t offset;
  uint8_t baxis;
  int64_t block;
} tarn_layout;
TARN_API tarn_layout tarn_layout_row_major(uint32_t n, const int64_t *dim);
/* order[0] outermost … order[n-1] innermost; block > 0 blocks axis baxis with the block innermost. */
TARN_API tarn_layout tarn_layout_ordered(uint32_t n, const int64_t *dim, const uint8_t *order, uint8_t baxis, int64_t block);
TARN_API int64_t
tarn_layout_elems(const tarn_layout *l); /* elements to allocate, offset excluded: from the offset to the last */
TARN_API int64_t tarn_layout_before(const tarn_layout *l); /* how many lie before the offset: dims walked backwards */
TARN_API int64_t tarn_layout_at(const tarn_layout *l, const int64_t *idx);
TARN_API bool tarn_layout_equal(const tarn_layout *a, const tarn_layout *b);

/* ---- programs ---- */
typedef enum tarn_buf_kind { TARN_BUF_INPUT, TARN_BUF_OUTPUT, TARN_BUF_CONST, TARN_BUF_TEMP } tarn_buf_kind;
typedef struct tarn_buffer {
  tarn_buf_kind kind;
  const char *name; /* inputs and outputs: the model's name */
  tarn_dtype dtype;
  tarn_layout layout;
  uint32_t parent; /* TARN_NONE, or the buffer this one lies in (a part of a concatenation): layout is relative to it */
  tarn_term term; /* what it holds, over the program's terms: for explanations and for CONST, whose value is computed from it at
                     compile time */
  const tarn_tensor *value; /* CONST once computed, logical row-major; NULL before */
} tarn_buffer;

#define TARN_MAX_RESULTS 4 /* of one kernel */
typedef enum tarn_level_kind {
  TARN_SERIAL,
  TARN_PARALLEL,
  TARN_UNROLL,
  TARN_VECTOR,
  TARN_BLOCK,
  TARN_THREAD,
  TARN_DOT
} tarn_level_kind;
/* One loop over `dim` of the stage's iteration space (shared dims, own dims, reduce dims, in this order), in steps of `step`
 * elements. The levels of one dim have falling steps, each dividing the one before; the innermost has step 1.
 * A VECTOR level covers the step of the next outer level of its dim (that many lanes) and is the innermost of its dim. Where
 * the last two levels are VECTOR ones of own dims, lanes are rows: of the last one's dim, side by side, for steps of the other.
 * A DOT level is the innermost of all, of a reduce dim: one instruction takes the step of the next outer level of that dim
 * (tarn_hw_dots); where there is no such instruction, or a tail is shorter, it is unrolled. */
typedef struct tarn_level {
  uint8_t dim;
  uint8_t kind;
  int64_t step;
} tarn_level;
#define TARN_MAX_LEVELS 48
/* Results across the lanes are turned in registers: so many lanes at most, so many unrolled neighbours of a row. */
#define TARN_TURN_LANES 16
#define TARN_TURN_ROWS  32
/* A small matrix that weighs a sum, and is numbers in the code: so many rows and columns at most. */
#define TARN_MOST_WEIGHED 8
/* A reduction's loop of so many trips at most is written out where padding leaves some of them out. */
#define TARN_MOST_WRITTEN 8
/* Bytes of a page of memory: what the next access finds on another one is not foreseen by the processor. */
#define TARN_PAGE 4096
/* Levels from the outermost to the innermost.  `acc`: index of the first level inside which the accumulators live:
 * access-dim levels at and after it are UNROLL or VECTOR (the register tile) unless the accumulators do not fit; the
 * accumulators are initialised before level acc (or loaded from the result when a reduce level lies outside of it and it
 * is not its first iteration) and the epilogue runs after it when the reduction is complete. Maps have acc = nlevel. */
typedef struct tarn_stage_sched {
  uint32_t nlevel, acc;
  tarn_level level[TARN_MAX_LEVELS];
} tarn_stage_sched;
/* nshared levels over the shared dims (depth > 0), then each stage's own. */
typedef struct tarn_schedule {
  uint32_t nshared;
  tarn_level shared[TARN_MAX_LEVELS];
  uint32_t nstage;
  tarn_stage_sched *stage;
} tarn_schedule;
/* Checks a schedule against a nest: every dim covered once, steps divide … Raises TARN_BAD_INPUT. */
TARN_API void tarn_schedule_check(tarn_lang *L, const tarn_nest *n, const tarn_schedule *s);
TARN_API void tarn_schedule_print(const tarn_lang *L, tarn_buf *b, const tarn_nest *n, const tarn_schedule *s);

typedef struct tarn_ksig tarn_ksig;
typedef struct tarn_kernel {
  const char *name; /* unique, a C identifier: k12_conv_add_relu … */
  enum { TARN_K_NEST, TARN_K_OPAQUE, TARN_K_CALL } kind;
  uint32_t nest;    /* K_NEST: tarn_nest id, canonical (see tarn_nest_canonical) */
  uint32_t payload; /* K_OPAQUE (any operator that is no nest: gather, opaque), K_CALL */
  uint32_t nin, nout;
  const uint32_t *in, *out;                  /* buffer numbers: children of the nest; output stages in order */
  const tarn_layout *in_layout, *out_layout; /* how this kernel walks them: the canonical kernel's layouts (K_NEST), over
                                              * the nest's dims; the same memory as the buffers' own layouts. Offsets are
                                              * elements from the start of the buffer (of its outermost parent, for a part). */
  const tarn_schedule *sched;
  bool copy;            /* only moves data (layout copy, materialise): counted apart */
  double price;         /* predicted seconds on the described hardware */
  double flops;         /* operations of one run; a multiply-add is 2 */
  double slots;         /* lanes of vector instructions of one run: tarn_ksig_slots; K_NEST */
  double products;      /* of those that multiply: tarn_ksig_products; K_NEST */
  double reads, writes; /* bytes that one run has to read and write: tarn_ksig_traffic */
  const tarn_ksig *sig; /* K_NEST: the canonical kernel that was priced, before constants were blocked; or NULL */
  tarn_term term;       /* K_OPAQUE: the operator over inputs that stand for the buffers; else TARN_NONE */
} tarn_kernel;
typedef struct tarn_kprog {
  tarn_lang *L;
  const tarn_hw *hw;
  uint32_t nbuf;
  tarn_buffer *buf;
  uint32_t nker;
  tarn_kernel *ker; /* in an order that respects dependences */
  uint32_t nin, nout;
  uint32_t *in, *out; /* buffer numbers in the model's order */
} tarn_kprog;
/* program.tarn: text that holds everything but the constants' values. */
TARN_API void tarn_kprog_print(const tarn_kprog *p, tarn_buf *b);
/* Runs it in the interpreter, kernel by kernel with its buffers, layouts and maps (not its schedules): the check that
 * extraction lost nothing. Row-major inputs and outputs. Raises. */
TARN_API void tarn_kprog_eval(const tarn_kprog *p, const tarn_binding *in, uint32_t nin, tarn_mode mode, tarn_opaque_fn *opaque,
                              tarn_tensor **out);

/* ---- canonical nests ----
 * The iteration space put in normal form: extent-1 dims dropped, dims split where a map divides by a factor of their
 * extent (so that maps become affine wherever possible), adjacent dims merged where all maps and layouts allow it
 * (contiguous in each), reduce dims likewise. in[i], out[i]: layouts of children and outputs (a child's dims may be
 * re-split to match; the new layouts are returned). Two kernels that do the same work on the same shapes and layouts have
 * equal (nest, layouts): that pair, with dtypes and which operands are constant, is the kernel's signature. */
struct tarn_ksig { /* a kernel to be scheduled and priced */
  uint32_t nest;
  bool strict; /* reduce dims keep their order (numerics `exact`) */
  uint32_t nin, nout;
  tarn_layout in[TARN_MAX_DIMS * 4], out[TARN_MAX_RESULTS];
  tarn_dtype in_type[TARN_MAX_DIMS * 4], out_type[TARN_MAX_RESULTS];
  bool in_const[TARN_MAX_DIMS * 4];
  /* Of tarn_ksig_matrices(), where known, else NULL: what lies there. Codes differ by it, signatures and prices do not. */
  const float *in_numbers[TARN_MAX_DIMS * 4];
};
TARN_API void tarn_ksig_canonical(tarn_lang *L, tarn_ksig *k); /* in place; raises */
/* Only the first step of that: iteration dims split where a map divides by a factor of their extent, children as they are. */
TARN_API void tarn_ksig_split(tarn_lang *L, tarn_ksig *k);
/* Only the last step, of extents of 1 and of neighbours that everything walks as one; children that are no constants become
 * flat buffers. */
TARN_API void tarn_ksig_merge(tarn_lang *L, tarn_ksig *k);
/* Shared loop d of a kernel with several stages cut in blocks of block[d] (1: not cut; it divides the extent): the loops
 * within a block become own loops of every stage, so that a local buffer holds a block of results, and each stage has a
 * schedule of its own over it. behind: local buffers lie along the block, else along what their stages owned before.
 * False, and the kernel as it was, when nothing is cut or the loops become too many. */
TARN_API bool tarn_ksig_cut(tarn_lang *L, tarn_ksig *k, const int64_t *block, bool behind);
/* Operands that a stage reads in steps along the dim along which its local buffer lies, several times over: a further stage
 * copies each into a buffer that lies along that dim too. False, and the kernel as it was, when there is none. */
TARN_API bool tarn_ksig_gather(tarn_lang *L, tarn_ksig *k);
/* Of a kernel of one stage: own dim d in blocks of `block`, shared loops over them and over whatever else operand read `read`
 * depends on, and within a block panels of `panel` (each divides the one before it). A stage in front copies what the reduction
 * walks of that operand into a local buffer, panel by panel. False, and the kernel as it was, when that is not possible. */
TARN_API bool tarn_ksig_pack(tarn_lang *L, tarn_ksig *k, uint32_t read, uint32_t d, int64_t block, int64_t panel);
TARN_API bool tarn_ksig_equal(const tarn_ksig *a, const tarn_ksig *b); /* whatever the offsets */
/* Constants that are small matrices of numbers by which a sum is weighed, as Winograd's transforms are (one bit each): their
 * zeros and what their rows share make the code, so that a kernel can be measured only with what they hold. */
TARN_API uint64_t tarn_ksig_matrices(tarn_lang *L, const tarn_ksig *k);
/* Is what they hold known? Else what is measured is another code than a program's. */
TARN_API bool tarn_ksig_complete(tarn_lang *L, const tarn_ksig *k);
TARN_API uint64_t tarn_ksig_hash(tarn_lang *L, const tarn_ksig *k); /* within this program: nests by their number */
/* A kernel and a schedule as text that means the same in every program, offsets left out; parsing raises TARN_BAD_INPUT,
 * so does a schedule that does not fit its nest. Texts lie in cx. */
TARN_API const char *tarn_ksig_text(const tarn_lang *L, tarn_ctx *cx, const tarn_ksig *k);
TARN_API void tarn_ksig_parse(tarn_lang *L, const char *text, size_t n, tarn_ksig *k);
TARN_API const char *tarn_schedule_text(const tarn_lang *L, tarn_ctx *cx, const tarn_nest *n, const tarn_schedule *s);
TARN_API const tarn_schedule *tarn_schedule_parse(tarn_lang *L, const tarn_nest *n, const char *text, size_t size);

/* ---- features and price ---- */
/* Bytes of operands and of results, each once, in whole lines of 64 bytes: what any schedule has to move between the level
 * that holds them and the unit. Pure. */
TARN_API void tarn_ksig_traffic(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, double *read, double *write);
/* Lanes of 32 bits of the vector instructions that one run has to issue, whatever its schedule: of each distinct value of a
 * scalar expression (not of each place where it is used: what does not depend on a loop is computed outside of it) what
 * tarn_fx_slots says, a product that is added to something being one with the addition. Loads, stores and shuffles are
 * not counted. Pure. */
TARN_API double tarn_ksig_slots(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* Those of them that multiply floats: products and multiply-adds, those within functions too. */
TARN_API double tarn_ksig_products(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* Vector instructions of one operator, the fewest on any target. Those of a function are what lower/math.c emits for it
 * where one instruction multiplies by a power of two; functions that are called count as one. */
TARN_API double tarn_fx_slots(tarn_fxop op);
TARN_API double tarn_fx_products(tarn_fxop op); /* those of them that multiply */
/* Cycles of an expression per vector, shared subexpressions once. Pure. */
TARN_API double tarn_fx_cycles(tarn_lang *L, const tarn_hw *hw, uint32_t f);
typedef struct tarn_cost { /* analytic, one run */
  double seconds;          /* the estimate */
  double flops;            /* multiply-add = 2 */
  double bytes[8];         /* moved between memory level i and i+1 of the description (reuse of each loop counted) */
  double compute_seconds, memory_seconds[8], overhead_seconds;
  const char *binds; /* which of them is largest: "fma", a memory's name, "launch" … */
  double parallel;   /* units kept busy */
  double least;      /* by tarn_solve(): seconds of the kernel's best schedule by the analytic price, another one perhaps */
} tarn_cost;
/* Analytic estimate of a scheduled kernel: operations, bytes per memory level from the reuse of each loop, vector use,
 * register pressure, parallelism. Pure; raises only on memory. */
TARN_API void tarn_cost_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s, uint32_t threads,
                           tarn_cost *out);
/* ---- what is asked for ahead (ahead.c) ---- */
#define TARN_WALK_LEVELS 64
#define TARN_WHOLE_LINE  64      /* bytes that are stored past the caches at once, and aligned to */
typedef struct tarn_walk_level { /* one level as it is emitted: SERIAL, PARALLEL, UNROLL or VECTOR */
  uint8_t kind;
  bool red, inside; /* of a reduce dim; inside of the accumulators */
  int64_t trips;
} tarn_walk_level;
/* How the levels of a stage walk an operand of its body, or its result. */
typedef struct tarn_walk {
  int64_t by[TARN_WALK_LEVELS];         /* elements from one trip of a level to the next */
  uint64_t moved, uneven;               /* bit i: level i moves it; by no constant step */
  bool linear, local, constant, result; /* linear: no level does so unevenly; local: of a stage's buffer */
  uint32_t operand, size;               /* number of the kernel's operand; bytes of an element */
  int64_t bytes;                        /* of all of it */
  /* decided by tarn_read_ahead(): */
  int64_t ahead; /* elements: a load of neighbours asks for what lies so far beyond it too; 0: no */
  bool second;   /* into the second cache */
  bool past;     /* a result whose lines, each written at once, may go past the caches: what holds them is aligned to lines */
} tarn_walk;
typedef struct tarn_stage_walk {
  uint32_t nlevel; /* the shared levels, then its own, from the outermost on */
  tarn_walk_level level[TARN_WALK_LEVELS];
  int64_t slots;      /* accumulators of a tile */
  uint32_t red_lanes; /* lanes along the reduction, or 1 */
  bool in_memory;     /* loops walk the accumulators */
  bool reduces;
  double body;         /* cycles of the body, for one vector */
  double work, points; /* of one trip of all shared loops: cycles, a vector counted as one element; results */
  uint32_t nwalk;
  tarn_walk *walk;
} tarn_stage_walk;
/* During one trip of level `level` what a walk touches from element `first` of the next one on is asked for: in each trip of
 * level `at`, a loop of the stage that asks, `step` bytes of each of `rows` rows, `row` elements apart; its next trip goes on
 * behind them: along a row that has several `parts`, then with the next rows. `trips` trips ask for `units` such pieces, where
 * they are more. */
typedef struct tarn_ask {
  uint32_t of, walk, by; /* stage and number of what is asked for; the stage that asks */
  int64_t first, step, rows, row, parts, units, trips;
  uint32_t level, at;
  bool near; /* into the first cache, else the second */
} tarn_ask;
typedef struct tarn_walks {
  tarn_ctx *cx;
  const tarn_hw *hw;
  uint32_t nshared, nstage; /* levels; stages */
  tarn_stage_walk *stage;
  TARN_VEC(tarn_ask) ask; /* decided */
} tarn_walks;
TARN_API void tarn_read_ahead(tarn_walks *w);

/* Numbers that a learned price works on, and what each is in words. Pure. */
#define TARN_FEATURES 167
TARN_API const char *tarn_feature_name(uint32_t i); /* NULL beyond the last */
TARN_API void tarn_features(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s, uint32_t threads,
                            const tarn_cost *cost, float out[TARN_FEATURES]);
/* The price of a kernel. The analytic price is the default; a learned one takes its place (tune/). */
typedef struct tarn_price {
  const char *name; /* "analytic", "learned: …"; shown in the report */
  void *user;
  /* Predicted seconds of a canonical kernel with this schedule; analytic: what tarn_cost_of says. May return the
   * analytic seconds. Pure. */
  double (*seconds)(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s, uint32_t threads,
                    const tarn_cost *analytic);
  /* The schedule that a canonical kernel shall have, or NULL: the solver looks for one. May itself be NULL. */
  const tarn_schedule *(*schedule)(void *user, tarn_lang *L, const tarn_ksig *k);
  /* What a selection among kernels is told of one that has this schedule; cost: tarn_solve()'s. NULL: `seconds`. Another one
   * since a selection looks for what is priced too low, and a learned price is wrong most where nothing was measured. */
  double (*kernel)(void *user, tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s, uint32_t threads,
                   const tarn_cost *cost);
  /* How much of what it says beside the analytic price (the logarithm of their ratio) counts where the solver compares
   * schedules of a kernel, up to 1; 0: a third. */
  double within;
} tarn_price;
/* The best schedule found by the analytic price: enumerates vector dims, register tiles and loop orders whose sizes come
 * from the description. Deterministic. Memoise by signature (tarn_solver). */
typedef struct tarn_solver tarn_solver;
TARN_API tarn_solver *tarn_solver_new(tarn_lang *L, const tarn_hw *hw, uint32_t threads); /* arena */
TARN_API const tarn_schedule *tarn_solve(tarn_solver *s, const tarn_ksig *canonical, tarn_cost *cost);
/* From now on single-stage kernels get, of their `top` best schedules by the analytic price (at most TARN_RANKED), the best by
 * p and the analytic price together. */
#define TARN_RANKED 96
TARN_API void tarn_solver_rank(tarn_solver *s, const tarn_price *p, uint32_t top);
/* From now on kernels are priced with weights that come from the last cache, not from memory; schedules of one kernel are told
 * apart as before. */
TARN_API void tarn_solver_near(tarn_solver *s);
/* May reduce loops of a stage stand outside of its accumulators? The partial sums are left in result `out` meanwhile, which
 * holds them if it is of their type. Pure. */
TARN_API bool tarn_stage_resumes(tarn_lang *L, const tarn_ksig *k, const tarn_stage *s, uint32_t out);
/* Every schedule that the solver tries for a kernel of one stage, with its analytic seconds (launch left out); false, and
 * no visit, for other kernels. */
typedef void tarn_schedule_visit(void *user, const tarn_schedule *s, double seconds);
TARN_API bool tarn_schedules(tarn_solver *s, const tarn_ksig *canonical, tarn_schedule_visit *visit, void *user);
/* The dim that fills the lanes and how many of its elements one register tile holds; 0, and TARN_NONE, when none does. */
TARN_API int64_t tarn_schedule_tile(const tarn_stage_sched *s, uint32_t *lane_dim);
/* The dim whose steps the rows are where lanes are rows; TARN_NONE: they are not. */
TARN_API uint32_t tarn_schedule_rows(const tarn_stage_sched *s);
/* How a single stage's constants are packed: what depends on the lane dim in blocks of the register tile along it, what does
 * not in blocks of the unrolled dim with most steps. The last block
 * may be ragged. A tile of 0: that dim is not cut into tiles, or there is none (TARN_NONE). */
typedef struct tarn_blocks {
  uint32_t lane, row;
  int64_t lane_tile, row_tile;
} tarn_blocks;
TARN_API tarn_blocks tarn_schedule_blocks(const tarn_stage_sched *s, uint32_t nown, const int64_t *own);
/* Dims whose loops are all outside of dim d's, as bits: a constant packed in blocks of d has them outside of the blocks. */
TARN_API uint32_t tarn_schedule_outside(const tarn_stage_sched *s, uint32_t d);
/* The dim of a schedule's dot level and how many of its elements one instruction takes (0: the whole dim); TARN_NONE when it
 * has none. */
TARN_API uint32_t tarn_schedule_dot(const tarn_stage_sched *s, int64_t *k);
/* Packs constant operands so, and for a dot level whose dim is a multiple of what one instruction takes that many of its
 * elements side by side: rewrites the canonical kernel, and its schedule to match. False, and both as they were, when nothing
 * is blocked. */
TARN_API bool tarn_ksig_block(tarn_lang *L, tarn_ksig *canonical, const tarn_schedule **s);
typedef struct tarn_solver_stats {
  uint64_t signatures, uses, evaluations;
} tarn_solver_stats;
TARN_API tarn_solver_stats tarn_solver_count(const tarn_solver *s);

#ifdef __cplusplus
}
#endif
#endif
