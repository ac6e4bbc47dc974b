/* tarn plan: schedules, programs of scheduled kernels, how constants are packed, what is
 * prefetched. plan.h has what follows from a schedule. */
#ifndef TARN_SCHEDULE_H
#define TARN_SCHEDULE_H
#include "hw/hw.h"
#include "kernel/kernel.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- programs ---- */
typedef enum tarn_buf_kind {
  TARN_BUF_INPUT,
  TARN_BUF_OUTPUT,
  TARN_BUF_CONST,
  TARN_BUF_TEMP
} tarn_buf_kind;
typedef struct tarn_buffer {
  tarn_buf_kind kind;
  const char *name; /* inputs and outputs: the model's name */
  tarn_dtype dtype;
  tarn_layout layout;
  uint32_t parent; /* TARN_NONE, or the buffer this one lies in (a part of a concatenation): layout
                      is relative to it */
  tarn_term term;  /* what it holds, over the program's terms: for explanations and for CONST, whose
                      value is computed from it at  compile time */
  uint32_t place;  /* the machine in whose memory it lies: a number of p->machines */
  int64_t
      room; /* elements of its storage, where the caller's has more than the layout reaches; 0 */
  const tarn_tensor *value; /* CONST once computed, logical row-major; NULL before */
} tarn_buffer;

typedef enum tarn_level_kind {
  TARN_SERIAL,
  TARN_PARALLEL,
  TARN_UNROLL,
  TARN_VECTOR,
  TARN_DOT,
  TARN_TEAM
} tarn_level_kind;
/* One loop over `dim` of the stage's iteration space (shared dims, own dims, reduce dims, in this
 * order), in steps of `step` elements. The levels of one dim have falling steps, each dividing the
 * one before; the innermost has step 1. A VECTOR level covers the step of the next outer level of
 * its dim (that many lanes) and is the innermost of its dim. Where the last two levels are VECTOR
 * ones of own dims, lanes are rows: of the last one's dim, side by side, for steps of the other. A
 * DOT level is the innermost of all, of a reduce dim: one instruction takes the step of the next
 * outer level of that dim (tarn_hw_dots); where there is no such instruction, or a tail is shorter,
 * it is unrolled. The trips of TEAM levels are shared out to the threads of a GPU's block, the last
 * such level's to neighbours: inside of the accumulators of a stage whose operands are held in
 * shared memory, where the parallel levels are blocks. */
typedef struct tarn_level {
  uint8_t dim;
  uint8_t kind;
  int64_t step;
} tarn_level;
#define TARN_MAX_LEVELS 48
/* Register transpose of results across the lanes: most lanes, and most unrolled neighbours of a
 * row.
 */
#define TARN_TRANSPOSE_LANES 16
#define TARN_TRANSPOSE_ROWS  32
/* May so many lanes of results of so many bytes each, `step` elements apart in memory, be
 * transposed; and are so many unrolled neighbours, `step` apart, the rows that come of it? */
static inline bool tarn_transposes(int64_t lanes, int64_t step, size_t bytes) {
  return lanes >= 2 && lanes <= TARN_TRANSPOSE_LANES && bytes >= 4 && step != 1;
}
static inline bool tarn_transposed_rows(int64_t rows, int64_t step) {
  return rows > 1 && rows <= TARN_TRANSPOSE_ROWS && step == 1;
}
/* Most rows and columns of a constant matrix that is multiplied by in registers (Winograd
 * transform); by how many of them a sum is multiplied.
 */
#define TARN_MOST_MATRIX    8
#define TARN_LEAST_MATRICES 2
#define TARN_MOST_MATRICES  3
/* Most trips of a reduction's loop that is fully unrolled because padding leaves some of them out.
 */
#define TARN_MOST_UNROLLED 8
/* Levels from the outermost to the innermost.  `acc`: index of the first level inside which the
 * accumulators live: access-dim levels at and after it are UNROLL or VECTOR (the register tile)
 * unless the accumulators do not fit; the accumulators are initialised before level acc (or loaded
 * from the result when a reduce level lies outside of it and it is not its first iteration) and the
 * epilogue runs after it when the reduction is complete. Maps have acc = nlevel. */
/* What lies in a memory that the program manages, see hold.h. As text:
 * (hold OPERAND|accumulators|result MEMORY (at LEVEL|all) [(slots N)] [(fresh)] [(slides)]
 *       [(unpadded)] [(gaps)] [(order PART…)] [(pad K)] [(skew K)]), a PART being dN, dN/K or dN%K.
 */
typedef enum tarn_hold_what {
  TARN_HOLD_OPERAND,
  TARN_HOLD_ACCUMULATORS,
  TARN_HOLD_RESULT
} tarn_hold_what;
#define TARN_HOLD_PARTS 8
typedef struct tarn_hold_part { /* floor(d / div) mod `mod`; mod 0: all of it */
  uint8_t dim;
  int64_t div, mod;
} tarn_hold_part;
typedef struct tarn_hold {
  uint8_t what;       /* tarn_hold_what */
  uint8_t operand;    /* its number in the body */
  uint8_t slots;      /* at least 1 */
  bool fresh;         /* filled in every trip of its level, whether it has changed or not */
  bool slides;        /* of overlapping windows, what is new is filled in only */
  bool unpadded;      /* without the padding; products with that are left out */
  bool gaps;          /* with what lies between the elements that are read */
  int32_t at;         /* number of a level of the stage; -1: around all of them */
  const char *memory; /* its name in the description */
  uint32_t npart;     /* the order in which it lies there, outermost first; 0: as in memory */
  tarn_hold_part part[TARN_HOLD_PARTS];
  /* Both keep banks apart: unused elements behind each row of the innermost part; or every so many
   * rows, vectors of 16 bytes move one further in their row, the last one to its beginning. */
  uint32_t pad, skew;
} tarn_hold;
/* An instruction computes the innermost part of a stage: its rows, columns and sum are these dims,
 * or none (TARN_NONE). With pairs a tensor core takes the sum's steps in an order in which what a
 * lane has of them lies side by side, two registers at a time. As text: (unit NAME [(rows dN)]
 * [(columns dN)] [(sum dN)] [(pairs)]). */
typedef struct tarn_unit {
  const char *name; /* of an intrinsic of the description */
  uint32_t rows, columns, sum;
  bool pairs;
} tarn_unit;
typedef struct tarn_stage_sched {
  uint32_t nlevel, acc;
  uint32_t open, brief; /* bit d: dim d is, see tarn_schedule */
  tarn_level level[TARN_MAX_LEVELS];
  uint32_t nhold;
  const tarn_hold *hold;
  const tarn_unit *unit; /* NULL: none */
} tarn_stage_sched;
/* The next one inside. */
static inline void tarn_level_add(tarn_stage_sched *s, uint32_t dim, tarn_level_kind kind,
                                  int64_t step) {
  s->level[s->nlevel++] = (tarn_level){(uint8_t)dim, (uint8_t)kind, step};
}
/* nshared levels over the shared dims (depth > 0), then each stage's own.
 *
 * The extent of an open dim is a number that is known when the program runs. Its outermost level is
 * a loop that counts elements: 0, step, 2 step … Of a shared or own dim the extent is at least the
 * step, and the last trip begins at extent - step, so that its results are computed twice where the
 * step does not divide the extent; of a brief one it may be less, and then it goes in steps of the
 * lanes, or one by one. Of a reduce dim it is any number, and what is left goes on in steps of the
 * lanes and then one by one; such a loop lies inside of the accumulators. */
typedef struct tarn_schedule {
  uint32_t open, brief; /* of the shared dims */
  uint32_t nshared;
  tarn_level shared[TARN_MAX_LEVELS];
  uint32_t nstage;
  tarn_stage_sched *stage;
  const struct tarn_ahead *ahead; /* NULL: what is fetched ahead is chosen as seems best */
} tarn_schedule;
/* Do these levels cover each dim in [from, to) by steps that divide one another, down to 1? *at: of
 * which level, or dim, they do not. */
typedef enum {
  TARN_LEVELS_FINE,
  TARN_LEVEL_FOREIGN, /* it walks another dim */
  TARN_LEVEL_UNEVEN,
  TARN_DIM_UNCOVERED
} tarn_level_fault;
TARN_API tarn_level_fault tarn_levels_check(const tarn_level *l, uint32_t n, uint32_t from,
                                            uint32_t to, uint32_t *at);
/* Checks a schedule against a nest: every dim covered once, steps divide … Raises TARN_BAD_INPUT.
 */
TARN_API void tarn_schedule_check(tarn_lang *L, const tarn_nest *n, const tarn_schedule *s);
/* And against its kernel: a strict one keeps the order of its sums. */
TARN_API void tarn_schedule_fits(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k,
                                 const tarn_schedule *s);
TARN_API void tarn_schedule_print(tarn_buf *b, const tarn_schedule *s);

typedef struct tarn_nodes { /* of the model: numbers of the program's origins */
  uint32_t n;
  const uint32_t *at;
} tarn_nodes;
typedef struct tarn_kernel {
  const char *name; /* unique; letters, digits and _ . + -: k12_layer1.0.conv1+bn1+relu, after the
                       model's nodes that it computes */
  tarn_nodes nodes; /* that it is named after */
  enum { TARN_K_NEST, TARN_K_OPAQUE, TARN_K_MOVE, TARN_K_DEVICE } kind;
  uint32_t machine; /* that runs it: a number of p->machines; MOVE copies a buffer as it stands from
                       one place to another, as the machine does whose link it passes */
  uint32_t nest;    /* K_NEST: tarn_nest id, canonical (see tarn_nest_canonical) */
  uint32_t payload; /* K_DEVICE, in a host's program: the segment that the device runs, TARN_NONE:
                       it has run already; K_OPAQUE (any operator that is no nest: gather, opaque,
                       call) */
  uint32_t nin, nout;
  const uint32_t *in, *out; /* buffer numbers: children of the nest; output stages in order */
  const tarn_layout *in_layout,
      *out_layout; /* how this kernel walks them: the canonical kernel's layouts (K_NEST), over
                    * the nest's dims; the same memory as the buffers' own layouts. Offsets are
                    * elements from the start of the buffer (of its outermost parent, for a part).
                    */
  const tarn_schedule *sched;
  bool copy;       /* only moves data (layout copy, materialise): counted apart */
  double price;    /* predicted seconds on the described hardware */
  double flops;    /* operations of one run: tarn_ksig_flops; K_NEST, and of a call those of what
                      it stands for */
  double slots;    /* lanes of vector instructions of one run: tarn_ksig_slots; K_NEST */
  double products; /* of those that multiply: tarn_ksig_products; K_NEST */
  double reads, writes; /* bytes that one run has to read and write: tarn_ksig_traffic */
  /* K_NEST: the canonical kernel that was priced, before constants were packed, and its schedule
   * (`sched` is what packing made of it); or NULL. */
  const tarn_ksig *sig;
  const tarn_schedule *chosen;
  /* The same from the same buffers as one kernel of the accelerator: seconds, of the best one and
   * the best order of the buffers; where none can be, INFINITY, and the one of which least is
   * missing. NULL: nobody tried. */
  double there;
  const tarn_ksig *unfit;
  const struct tarn_plan *plan; /* K_NEST, once it is planned (plan.h); else NULL */
  tarn_term
      term; /* K_OPAQUE: the operator over inputs that stand for the buffers; else TARN_NONE */
} tarn_kernel;
typedef struct tarn_kprog {
  tarn_lang *L;
  const tarn_hw *hw;
  tarn_machines machines; /* the hosts of hw, and hw itself; n below 2: there is one place */
  uint32_t nbuf;
  tarn_buffer *buf;
  uint32_t nker;
  tarn_kernel *ker; /* in an order that respects dependences */
  uint32_t nin, nout;
  uint32_t *in, *out; /* buffer numbers in the model's order */
} tarn_kprog;
/* An input that lies in an output, such as the cache of a decoder: the output is the input's rows,
 * then new ones. Both are one buffer of the caller's, row-major with room for `rows` rows along
 * `axis`. Of these the first `filled`, the input, are there before a run, which only reads them; it
 * writes the next `added`. The program reaches all of them by the output's address. */
typedef struct tarn_in_place {
  uint32_t in, out; /* numbers of p->in and p->out */
  uint32_t axis;
  int64_t rows, filled, added;
} tarn_in_place;
/* Have both n dims, of which one alone differs, where the output has more? */
TARN_API bool tarn_in_place_axis(uint32_t n, const int64_t *in, const int64_t *out, uint32_t *axis);
/* The pair of which input or output number `port` is one; false: it has memory of its own. */
TARN_API bool tarn_kprog_in_place(const tarn_kprog *p, bool output, uint32_t port,
                                  tarn_in_place *x);
/* The order in which such an input or output of these dims lies. */
TARN_API tarn_layout tarn_in_place_layout(const tarn_in_place *x, uint32_t n, const int64_t *dim);
/* Of a program that was made within a scope, outside of it: a copy that stays when the scope goes.
 */
TARN_API tarn_kprog *tarn_kprog_keep(const tarn_kprog *p, tarn_scope *s);
/* program.tarn: text that holds everything but the constants' values. */
TARN_API void tarn_kprog_print(const tarn_kprog *p, tarn_buf *b);
/* Reads it; hw: the description that it was made for. Constants have no values. Raises. */
TARN_API tarn_kprog *tarn_kprog_parse(tarn_lang *L, const tarn_hw *hw, const tarn_sx *s);
/* Kernels touch buffers in the place where they run, copies go along a link, inputs and outputs lie
 * in the host's memory: raises TARN_BAD_INPUT where that is not so. */
TARN_API void tarn_kprog_check(const tarn_kprog *p);
/* Runs it in the interpreter, kernel by kernel with its buffers, layouts and maps (not its
 * schedules): the check that extraction lost nothing. Row-major inputs and outputs. Raises. */
TARN_API void tarn_kprog_eval(const tarn_kprog *p, const tarn_binding *in, uint32_t nin,
                              tarn_mode mode, tarn_opaque_fn *opaque, tarn_tensor **out);
/* One kernel of it; mem: of each buffer that is no part of another its memory, a tensor of one dim.
 * Raises. */
TARN_API void tarn_kprog_step(const tarn_kprog *p, uint32_t kernel, tarn_tensor **mem,
                              tarn_mode mode, tarn_opaque_fn *opaque);

/* Number of the machine that a schedule is for: what holds something in memories that a program
 * manages is for the described one, the last; all else for the outermost host. */
TARN_API uint32_t tarn_schedule_machine(const tarn_machines *m, const tarn_schedule *s);

/* ---- as text ---- */
TARN_API const char *tarn_schedule_text(tarn_ctx *cx, const tarn_schedule *s);
TARN_API const tarn_schedule *tarn_schedule_parse(tarn_lang *L, const tarn_nest *n,
                                                  const char *text, size_t size);
/* Of a larger text, and not checked. */
TARN_API const tarn_schedule *tarn_schedule_read(tarn_lang *L, const tarn_nest *n,
                                                 const tarn_sx *s);

/* ---- tiles and packed constants (pack.c) ---- */
/* The dim that fills the lanes and how many of its elements one register tile holds; 0, and
 * TARN_NONE, when none does. */
TARN_API int64_t tarn_schedule_tile(const tarn_stage_sched *s, uint32_t *lane_dim);
/* The dim whose steps the rows are where lanes are rows; TARN_NONE: they are not. */
TARN_API uint32_t tarn_schedule_rows(const tarn_stage_sched *s);
/* How a single stage's constants are packed: what depends on the lane dim in blocks of the register
 * tile along it, what does not in blocks of the unrolled dim with most steps. The last block may be
 * ragged. A tile of 0: that dim is not cut into tiles, or there is none (TARN_NONE). */
typedef struct tarn_blocks {
  uint32_t lane, row;
  int64_t lane_tile, row_tile;
} tarn_blocks;
TARN_API tarn_blocks tarn_schedule_blocks(const tarn_stage_sched *s, uint32_t nown,
                                          const int64_t *own);
/* The dim of a schedule's dot level and how many of its elements one instruction takes (0: the
 * whole dim); TARN_NONE when it has none. */
TARN_API uint32_t tarn_schedule_dot(const tarn_stage_sched *s, int64_t *k);
/* Are constants packed in a stage that reduces nred dims? Of several stages, in those that walk a
 * constant again and again. */
bool tarn_packs(uint32_t nstage, uint32_t depth, uint32_t nred);
/* The address of a flat constant of `elems` elements: start + Σ coef[d]·i[d]. */
typedef struct tarn_address {
  uint32_t n;
  const int64_t *dim, *coef;
  int64_t start, elems;
} tarn_address;
/* How a constant lies: in tiles of `dim`, whose steps are `step` elements, all of them a span
 * (TARN_NONE: as it is). Its address becomes what walks whole spans, dim, and what lies within a
 * step (none where that is 1): these are the dims of the layout. What walks whole spans are nby
 * dims, a layout's dim for each; 0: one for all of them. */
typedef struct tarn_packing {
  uint32_t dim, nby;
  uint8_t by[TARN_MAX_DIMS];
  int64_t tile, step, span;
  tarn_layout layout;
} tarn_packing;
tarn_packing tarn_packing_of(const tarn_address *a, const tarn_blocks *b,
                             const tarn_stage_sched *s);
/* What is to be written where an operand of a kernel was a flat constant: its elements in this
 * layout (without dims: as they are), in row-major order of the layout's dims, or where `view` is
 * no TARN_NONE through that view of them. */
typedef struct tarn_packed {
  uint32_t view;
  tarn_layout layout;
} tarn_packed;
/* Packs constant operands so, and for a dot level whose dim is a multiple of what one instruction
 * takes that many of its elements side by side: rewrites the canonical kernel, and its schedule to
 * match. how: of each operand; or NULL. False, and both as they were, when nothing is packed. */
TARN_API bool tarn_ksig_block(tarn_lang *L, tarn_ksig *canonical, const tarn_schedule **s,
                              tarn_packed *how);
/* ---- prefetches and non-temporal stores (ahead.c) ---- */
#define TARN_WALK_LEVELS 64
#define TARN_WHOLE_LINE  64      /* bytes and alignment of non-temporal stores */
typedef struct tarn_walk_level { /* one level as it is emitted: SERIAL, PARALLEL, UNROLL or VECTOR
                                  */
  uint8_t kind;
  bool red, inside; /* of a reduce dim; inside of the accumulators */
  int64_t trips;
} tarn_walk_level;
/* How the levels of a stage walk an operand of its body, or its result. */
typedef struct tarn_walk {
  int64_t by[TARN_WALK_LEVELS]; /* elements from one trip of a level to the next */
  uint64_t moved, uneven;       /* bit i: level i moves it; by no constant step */
  bool linear, local, constant,
      result;             /* linear: all steps are constant; local: of a stage's buffer */
  uint32_t operand, size; /* number of the kernel's operand; bytes of an element */
  int64_t bytes;          /* of all of it */
  /* chosen by tarn_choose_prefetches(): */
  int64_t prefetch_by; /* elements: a unit-stride load also prefetches so far ahead; 0: no */
  bool into_l2;        /* not into L1 */
  bool streaming; /* a result stored by non-temporal stores, whole lines; its buffer is aligned to
                     lines */
} tarn_walk;
typedef struct tarn_stage_walk {
  uint32_t nlevel; /* the shared levels, then its own, from the outermost on */
  tarn_walk_level level[TARN_WALK_LEVELS];
  int64_t slots;      /* accumulators of a tile */
  uint32_t red_lanes; /* lanes along the reduction, or 1 */
  bool in_memory;     /* loops walk the accumulators */
  bool reduces;
  double body;         /* cycles of the body, for one vector */
  double work, points; /* of one trip of all shared loops: cycles, a vector counted as one element;
                          results */
  uint32_t nwalk;
  tarn_walk *walk;
} tarn_stage_walk;
/* A prefetch during one trip of level `level`, of what a walk touches from element `first` of the
 * next trip on. Each trip of level `at`, a loop of the stage that prefetches, fetches `step` bytes
 * of each of `rows` rows, `row` elements apart. Its next trip continues behind them: along a row
 * that has several `parts`, then with the next rows. If there are more trips than pieces, `units`
 * pieces are spread over `trips` trips. */
typedef struct tarn_prefetch {
  uint32_t of, walk, by; /* stage and number of the walk; the stage that prefetches it */
  int64_t first, step, rows, row, parts, units, trips;
  int64_t line; /* bytes of one: `step` bytes are fetched a line at a time */
  uint32_t level, at;
  bool into_l1; /* else into L2 */
} tarn_prefetch;
/* A choice of them: the walks of each stage, one after the other, with their last three members,
 * and prefetches. */
typedef struct tarn_ahead {
  const tarn_walk *access;
  uint32_t n;
  const tarn_prefetch *prefetch;
} tarn_ahead;
typedef struct tarn_walks {
  tarn_ctx *cx;
  const tarn_hw *hw;
  uint32_t nshared, nstage; /* levels; stages */
  tarn_stage_walk *stage;
  TARN_VEC(tarn_prefetch) prefetch; /* chosen */
} tarn_walks;
TARN_API void tarn_choose_prefetches(tarn_walks *w);

#ifdef __cplusplus
}
#endif
#endif
