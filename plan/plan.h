/* tarn plan: what follows from a kernel's schedule, decided once.
 *
 * A schedule is a choice; a plan is everything that follows from it: the kinds of levels, accesses
 * as sums over level counters, the register tile and its accumulators, dot-product instructions,
 * the order of unrolled copies, prefetches, non-temporal stores, and the loop program (code.h) that
 * lower/ prints. Only the sharing of loads between unrolled copies is left to lower/.
 *
 *   levels.c    levels, the register tile       lin.c        index expressions over levels
 *   prepare.c   accesses, functions
 *   dot.c       dot-product instructions        transpose.c  register transposes
 *   bilinear.c  small constant matrices         order.c      order of unrolled copies
 *   lanes.c     lanes in another order          softmax.c    what is known of exp's arguments
 *   ahead.c     choice of prefetches            prefetch.c   prefetches of a plan's levels
 *   constant.c  constants as kernels read them  program.c    kernels by themselves
 *   walk.c      the loop program (code.h)       peel.c       borders of padding
 *   check.c     what a loop program computes    (tests/plan_run.c runs it)
 *   print.c     a plan as text                  text.c       schedules as text, and their check
 *   pack.c      packed constants                eval.c       programs in the interpreter
 *   places.c    programs of several machines    program_text.c  programs as text, both ways
 *   hold.c      what lies in managed memories   coordinate.c what an operand's elements are
 *   fetch.c     what a GPU's block holds            fragment.c   tensor cores
 *   wide.c      loads of several elements       work.c, touch.c, tile.c, inside.c  the summary that
 *                                               a search counts (work.h)
 *
 * Level lists: list 0 holds the shared levels, list 1+i those of stage i. Variables
 * (PLAN_MAX_VARS): a shared level has its own number, the levels of a stage follow them; stages use
 * the same numbers one after the other.
 *
 * Plans lie in the context's arena. Functions raise. */
#ifndef TARN_PLAN_H
#define TARN_PLAN_H
#include "plan/code.h"
#include "plan/schedule.h"
#include "plan/unit.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- index expressions over levels (lin.c): Σ coef·atom + c; immutable, in the arena ---- */
#define PLAN_MAX_VARS 64
typedef struct tarn_plan_lin tarn_plan_lin;
/* Beside the kinds of atoms that index maps have: the row that a lookup of the stage names. */
#define TARN_PLAN_ROW (TARN_IX_MOD + 1)
typedef struct tarn_plan_term {
  int64_t coef;
  uint8_t kind;             /* tarn_atom_kind or TARN_PLAN_ROW */
  uint32_t var;             /* VAR; ROW: the lookup's number */
  const tarn_plan_lin *arg; /* DIV and MOD: by `by`; ROW: where the lookup reads, of `by` rows */
  int64_t by;
  uint64_t deps; /* levels it depends on */
  uint32_t last; /* the innermost of them */
} tarn_plan_term;
struct tarn_plan_lin {
  int64_t c;
  uint32_t n;
  const tarn_plan_term *t;
};
/* What is known of the levels: each counts from 0 to hi. */
typedef struct tarn_plan_space {
  tarn_ctx *cx;
  int64_t hi[PLAN_MAX_VARS];
} tarn_plan_space;
const tarn_plan_lin *tarn_plan_lin_const(tarn_ctx *cx, int64_t c);
const tarn_plan_lin *tarn_plan_lin_add(const tarn_plan_space *s, const tarn_plan_lin *a, int64_t k,
                                       const tarn_plan_lin *b); /* a + k·b */
const tarn_plan_lin *tarn_plan_lin_var(const tarn_plan_space *s, int64_t coef, uint32_t var);
const tarn_plan_lin *tarn_plan_lin_div(const tarn_plan_space *s, const tarn_plan_lin *a, int64_t d);
const tarn_plan_lin *tarn_plan_lin_mod(const tarn_plan_space *s, const tarn_plan_lin *a, int64_t d);
/* An index expression of access/, dim i being sub[i]. */
const tarn_plan_lin *tarn_plan_lin_ix(const tarn_plan_space *s, const tarn_lang *L, uint32_t ix,
                                      const tarn_plan_lin *const *sub);
/* The element offset in a layout of the element with these indices, the layout's own offset left
 * out. */
/* Which of `extent` rows lookup number `lookup`, whose offset is `off`, reads. */
const tarn_plan_lin *tarn_plan_lin_row(const tarn_plan_space *s, uint32_t lookup,
                                       const tarn_plan_lin *off, int64_t extent);
const tarn_plan_lin *tarn_plan_lin_layout(const tarn_plan_space *s, const tarn_layout *l,
                                          const tarn_plan_lin *const *idx);
TARN_API uint64_t tarn_plan_lin_deps(const tarn_plan_lin *a);
/* Range of a variable, and of an expression, where `at` says what stands for each. */
TARN_API void tarn_plan_bounds(const tarn_plan_space *s, const tarn_plan_at *at, int64_t *lo,
                               int64_t *hi);
TARN_API void tarn_plan_range(const tarn_plan_space *s, const tarn_plan_at *at,
                              const tarn_plan_lin *a, int64_t *lo, int64_t *hi);
/* How far it goes in one step of a variable; false where that is not the same everywhere. */
TARN_API bool tarn_plan_moves_by(const tarn_plan_lin *a, uint32_t var, int64_t *by);
/* Its value where variable v is at[v], without what rows add. */
TARN_API int64_t tarn_plan_lin_at(const tarn_plan_lin *a, const int64_t *at);
/* Range when variable v lies in lo[v] … hi[v]. */
TARN_API void tarn_plan_lin_range(const tarn_plan_lin *a, const int64_t *lo, const int64_t *hi,
                                  int64_t *rlo, int64_t *rhi);

/* ---- operands ---- */
/* few: a small constant of floats, its memory as numbers from the layout's offset on, or NULL. */
typedef struct tarn_plan_operand {
  tarn_dtype dtype;
  tarn_layout layout;
  const double *few;
  uint32_t nfew;
  bool constant;
} tarn_plan_operand;
typedef struct tarn_plan_guard {
  const tarn_plan_lin *e;
  int64_t lo, hi;
} tarn_plan_guard;
typedef struct tarn_plan_access {
  tarn_dtype dtype;
  const tarn_plan_lin *off;
  int64_t elems; /* from the base on so many may be read; 0: those that the offsets name */
  uint32_t nguard;
  tarn_plan_guard guard[TARN_MAX_DIMS];
  uint64_t deps;  /* of off and guards */
  uint64_t inner; /* serial levels inside of those that the guards depend on */
  uint32_t fill;  /* fx constant */
  const double
      *few; /* of a small constant: an element whose place is known is a number in the code */
  uint32_t nfew;
  bool store;
  uint64_t varies;     /* levels whose step is another at other sizes of the program (alike.c) */
  int64_t prefetch_by; /* elements: a unit-stride load also prefetches so far ahead; 0: no */
  bool into_l2;        /* not into L1 */
  uint64_t along;      /* levels whose copies share what lanes along them hold */
  bool streaming; /* whole lines are stored by non-temporal stores; the base is aligned to them */
  uint32_t held;  /* 1 + number of what the block holds of it; 0: it is read where it lies */
  uint32_t wide, wide_var; /* > 1: so many counts of that unrolled level lie side by side, aligned
                              as one vector, at each multiple of so many: one load */
} tarn_plan_access;

/* What the threads of a GPU's block hold of an operand in shared memory: slots of a box of
 * coordinates (hold.h). A copy counts the coordinates, its last one fastest and `wide` elements at
 * a time, and goes from memory as the operand has it to where the box has it. */
#define PLAN_MOST_COORDS 8
typedef struct tarn_plan_held {
  uint32_t read;
  int64_t elems; /* of a slot */
  int64_t at;    /* bytes: where it begins in the block's shared memory */
  uint32_t n, wide;
  int64_t count[PLAN_MOST_COORDS];
  uint32_t var[PLAN_MOST_COORDS];
  tarn_plan_access from; /* over outer levels and what a copy counts; its fill where guards fail */
  const tarn_plan_lin *to; /* over the slot's number and what a copy counts */
  bool async;              /* nobody waits for it at once */
  bool border;             /* part of it no copy ever writes: it is filled first */
} tarn_plan_held;

/* ---- levels ---- */
#define TARN_PLAN_TIERS 3
typedef struct tarn_plan_level {
  uint8_t dim;
  uint8_t kind;        /* SERIAL PARALLEL UNROLL VECTOR DOT TEAM */
  bool red, inside;    /* of a reduce dim; inside of the accumulators */
  bool open;           /* counts elements, see tarn_schedule */
  int64_t step, trips; /* trips: for the full length outside of it, the tail's counted */
  /* Of an open dim: its extent, and the steps in which it goes, falling: one after the other, as
   * long as a whole step is left; of a shared or own dim the first that is no more than all. */
  int64_t extent, tier[TARN_PLAN_TIERS];
  uint32_t ntier;
  uint32_t var;
} tarn_plan_level;
/* Of an open level of a shared or own dim, with this kernel's numbers: the step that it takes. */
static inline int64_t tarn_plan_step(const tarn_plan_level *l) {
  uint32_t i = 0;
  while (l->tier[i] > l->extent && i + 1 < l->ntier) i++;
  return l->tier[i];
}
/* Elements of its dim that one count stands for. */
static inline int64_t tarn_plan_level_by(const tarn_plan_level *l) { return l->open ? 1 : l->step; }
typedef struct tarn_plan_list {
  uint32_t n;
  tarn_plan_level level[TARN_MAX_LEVELS];
  uint32_t parallel; /* so many levels from the outermost on are parallel */
} tarn_plan_list;

/* ---- levels of a schedule, with the kinds they have in code (levels.c) ---- */
typedef struct tarn_plan_rules {
  const int64_t *dim; /* shared, own and reduce dims */
  uint32_t nacc;      /* dims from here on are reduced */
  bool reduces;
  bool splits;        /* lanes may hold partial results of the reduction */
  bool lanes_outside; /* shared levels are lanes */
  bool team;          /* the threads of a block share TEAM levels */
} tarn_plan_rules;
TARN_API void tarn_plan_list_shared(tarn_ctx *cx, const tarn_schedule *s, const int64_t *dim,
                                    tarn_plan_list *out);
TARN_API void tarn_plan_list_own(tarn_ctx *cx, const tarn_plan_rules *r, const tarn_schedule *s,
                                 uint32_t stage, tarn_plan_list *out);
TARN_API uint32_t tarn_plan_acc(const tarn_stage_sched *s, bool reduces); /* its first level */
TARN_API void tarn_plan_list_parallel(tarn_plan_list *list, bool allowed);
/* The accumulators of a list's levels. */
typedef struct tarn_plan_tile {
  int64_t slots;
  int64_t chains;     /* unrolled steps of the reduction, for each slot */
  uint32_t lanes;     /* of all vector levels */
  uint32_t red_lanes; /* > 1: the lanes are partial results along a reduce dim */
  bool in_memory;     /* loops walk the accumulators */
} tarn_plan_tile;
TARN_API tarn_plan_tile tarn_plan_tile_of(const tarn_plan_list *list);

/* ---- stages ---- */
/* A prefetch: k->of and k->walk name the access (walk: its number among the reads, or nops for the
 * result). */
typedef struct tarn_plan_prefetch {
  tarn_prefetch k;
} tarn_plan_prefetch;

#define PLAN_MOST_CHAINS 16 /* accumulators in registers, beside what is loaded */
#define PLAN_MOST_TERMS  32 /* of a constant matrix: columns and pairs */
/* A further value: value a plus k times value b. */
typedef struct tarn_plan_pair {
  uint32_t a, b;
  double k;
} tarn_plan_pair;
/* A small constant matrix that a sum is multiplied by (a Winograd transform), as sums of pairs. */
typedef struct tarn_plan_factor {
  uint32_t read, own, red; /* the operand; levels of its rows and columns */
  uint32_t rows, cols, npair;
  tarn_plan_pair pair[PLAN_MOST_TERMS];             /* values after the columns */
  double weight[TARN_MOST_MATRIX][PLAN_MOST_TERMS]; /* of each value in each row */
} tarn_plan_factor;
typedef struct tarn_plan_stage {
  const tarn_stage *s;
  const tarn_func *f;
  const tarn_reducer *red; /* NULL: a map */
  uint32_t n, nacc;        /* dims; of them shared and own */
  int64_t dim[TARN_MAX_DIMS];
  tarn_plan_space space;
  uint32_t acc; /* level */
  uint32_t nread;
  tarn_plan_access *read, result;
  tarn_plan_access *look;                    /* of its lookups, s->nlook of them */
  uint32_t out_no;                           /* output stages */
  const tarn_plan_lin *index[TARN_MAX_DIMS]; /* each dim over levels */
  tarn_dtype body_type, out_type;
  /* reductions */
  tarn_dtype state[TARN_MAX_STATE];
  uint32_t step[TARN_MAX_STATE]; /* over state…, flat index, body operands… */
  bool step_index;
  const tarn_plan_lin *flat; /* index of the element */
  uint32_t red_lanes;        /* > 1: the lanes are partial results along a reduce dim */
  bool in_memory;            /* the accumulators are walked by loops */
  uint32_t max_lanes;
  int64_t slots;
  int64_t chains; /* of each slot: unrolled steps along the lanes' reduce dim do not wait for one
                     another */
  uint32_t ndot;  /* instructions that the dot level may become */
  tarn_hw_dot dot[TARN_HW_DOTS];
  uint32_t multiplied[2]; /* by them: of the body's operands, see plan_dots() */
  uint64_t serial;        /* variables that are loops */
  uint32_t order,
      order_end; /* levels whose copies go in the order of what they read; order beyond all: none */
  uint32_t order_read; /* which operand that is; TARN_NONE: that of a tile with fewer vectors */
  bool halves;         /* the lanes of what it reduces are in the order of lanes.c */
  const tarn_plan_level
      *rows; /* its copies make neighbours of rows that lie across the lanes; NULL: there is none */
  int64_t local_bytes;    /* result of a stage that is no output */
  int64_t shared_at;      /* where it lies in shared memory, of a team's; -1: not there */
  uint32_t pad, skew;     /* of its rows, see hold.h; skewed by elements */
  uint32_t nfactor, data; /* multiplied by so many constant matrices is read number `data` */
  tarn_plan_factor *factor;
  bool at_most_0; /* arguments of exp in a map's body, see softmax.c */
  bool nan_shows; /* a NaN that it reduces need not be kept: see there, too */
  /* operands held in a block's shared memory */
  bool tiled;
  int64_t over[TARN_MAX_DIMS]; /* extents, of such a stage rounded up to whole tiles */
  uint32_t nheld, nslot, slot; /* slot: the variable that is its number */
  tarn_plan_held *held;
  uint32_t until; /* levels acc … until - 1 are pipelined: trips of them all */
  int64_t trips;
  int64_t threads, shared; /* of a block: threads; bytes */
  int64_t parts;           /* groups of threads that have each a part of the sums; 1: none */
  uint32_t part;           /* > 1: the variable that is the group's number */
  /* and computed by an instruction of a warp, see fragment.c; NULL: not so */
  const tarn_hw_intrinsic *unit;
  tarn_hw_form form;
  uint32_t unit_at, unit_rows;     /* its first level; how far behind it the one of its rows is */
  uint32_t unit_read[2];           /* which reads its operands are */
  uint32_t unit_round[2];          /* fx of $0: each is rounded on its way there; TARN_NONE: not */
  uint32_t lane, reg[3], place[2]; /* variables */
  int64_t nreg[3], each[3];        /* registers, and elements in each, of operands and result */
  bool pairs; /* its steps of the sum are in the order in which two registers of a lane lie
                 side by side; of an operand where they are loaded at once, how far apart
                 their numbers are; 0: one by one */
  int64_t pair[2];
  bool scattered[2];   /* what a register of an operand holds does not lie side by side */
  int64_t matrices[2]; /* registers of an operand that one instruction loads, matrices of eight rows
                          (ldmatrix); 0: each lane loads its own */
  uint32_t start; /* an operand of the epilogue: the sum begins with it, instead of its being added;
                     TARN_NONE: there is none */
  TARN_VEC(tarn_plan_prefetch) prefetch; /* issued in its loops, of any stage's accesses */
} tarn_plan_stage;

typedef struct tarn_plan_nest {
  tarn_ctx *cx;
  tarn_lang *L;
  const tarn_hw *hw;
  bool contract; /* reassociation and multiply-add allowed */
  const tarn_nest *n;
  uint32_t nshared, nstage;
  tarn_plan_list *list; /* 1 + nstage */
  tarn_plan_stage *stage;
  bool split; /* every stage has its own parallel region */
  bool team;  /* each item is a block of threads, which share each stage's own items */
  const tarn_plan_code **code; /* of each region */
} tarn_plan_nest;
/* in, out: operands of the nest's children, and of its output stages in order. */
TARN_API tarn_plan_nest *tarn_plan_make(tarn_lang *L, const tarn_hw *hw, bool contract,
                                        const tarn_nest *n, const tarn_schedule *s,
                                        const tarn_plan_operand *in, const tarn_plan_operand *out);
/* Parallel regions, one after the other: stages that share no loops have each their own. */
TARN_API uint32_t tarn_plan_regions(const tarn_plan_nest *N);
/* The levels whose parallel ones make a region's items. */
TARN_API const tarn_plan_list *tarn_plan_parallel(const tarn_plan_nest *N, uint32_t region);
TARN_API int64_t tarn_plan_items(const tarn_plan_nest *N, uint32_t region); /* 1: not parallel */
/* Is a stage's reduction continued in later trips of a loop outside of its accumulators, so that
 * its result holds partial sums until then? */
TARN_API bool tarn_plan_resumes(const tarn_plan_nest *N, uint32_t stage);
/* Of a stage in a team: items that its threads share. */
TARN_API int64_t tarn_plan_team_items(const tarn_plan_nest *N, uint32_t stage);
/* Do the threads of a team wait for one another behind a stage? Not when the same thread alone does
 * the next one, nor where the block ends. */
TARN_API bool tarn_plan_waits(const tarn_plan_nest *N, uint32_t stage);
/* Threads of a block whose threads, or warps, have nothing to do with one another; most of a team.
 */
enum { TARN_BLOCK_ALONE = 128, TARN_BLOCK_TEAM = 256 };
/* Of a region on a GPU: threads of a block, threads that share an item, and bytes of shared memory,
 * see blocks.c. */
TARN_API int64_t tarn_plan_block(const tarn_plan_nest *N, uint32_t region);
TARN_API int64_t tarn_plan_each(const tarn_plan_nest *N, uint32_t region);
TARN_API int64_t tarn_plan_shared(const tarn_plan_nest *N, uint32_t region);
/* Are counters and numbers of elements of 32 bits, on a GPU? Else they have 64, see narrow.c. */
TARN_API bool tarn_plan_narrow(const tarn_plan_nest *N, uint32_t region);
/* Does an instruction of a warp compute a reduction by `red` of `body` over elements of the two
 * types, the first operand's its rows? */
TARN_API bool tarn_plan_unit_serves(tarn_lang *L, const tarn_hw *hw, uint32_t intrinsic,
                                    uint32_t body, uint32_t red, const tarn_dtype *type,
                                    tarn_hw_form *f);
/* May lanes, threads and chains hold partial results of a reduction over nred dims, which are
 * merged at its end? Not where its order counts. A step that uses the index may rely on its
 * growing: it does in each part of a single dim. contract: rounding may differ. r may be NULL. */
TARN_API bool tarn_plan_splits(const tarn_lang *L, const tarn_reducer *r, uint32_t nred,
                               bool contract);
/* As tarn_plan_make(), but for the loop program. */
TARN_API tarn_plan_nest *tarn_plan_prepare(tarn_lang *L, const tarn_hw *hw, bool contract,
                                           const tarn_nest *n, const tarn_schedule *s,
                                           const tarn_plan_operand *in,
                                           const tarn_plan_operand *out);
TARN_API bool tarn_plan_streams_out(const tarn_plan_nest *N, uint32_t region,
                                    bool *out); /* results of non-temporal stores, if aligned */
TARN_API bool tarn_plan_lanes_are_rows(
    const tarn_plan_list *list); /* of the last level, as many as the level outside of it steps */
/* The levels around the body of a list's stage, from the outermost. */
TARN_API uint32_t tarn_plan_levels(const tarn_plan_nest *N, uint32_t list,
                                   const tarn_plan_level **out);

/* ---- the kernels of a program (constant.c) ---- */
/* Value of a CONST buffer, computed where it is not known. */
TARN_API const tarn_tensor *tarn_plan_const_value(const tarn_kprog *p, const tarn_buffer *b);
/* Every element of t to its place in the memory of the layout, from its offset on. */
TARN_API void tarn_plan_const_lay_out(const tarn_layout *l, const tarn_tensor *t, char *to);
/* in, out: k->nin and k->nout of them. */
TARN_API void tarn_plan_operands(const tarn_kprog *p, const tarn_kernel *k, tarn_plan_operand *in,
                                 tarn_plan_operand *out);
/* What was decided of a kernel, for the machine that runs it. */
typedef struct tarn_plan {
  const tarn_plan_nest *nest;    /* of one that runs any nest, else NULL */
  const tarn_plan_nest *through; /* the same without non-temporal stores; NULL: it has none */
  const tarn_unit_plan *unit;    /* of one whose memories the program manages, else NULL */
} tarn_plan;
/* Plans of several programs for the same machines; of kernels that are planned alike it is one
 * plan. host: what the kernels of the outermost host are planned for; NULL: the program's own. */
typedef struct tarn_planner tarn_planner;
TARN_API tarn_planner *tarn_planner_new(tarn_lang *L, bool contract, const tarn_hw *host);
/* Each kernel that is a nest and has no plan gets it (plans.c). Raises. */
TARN_API void tarn_kprog_plan(tarn_planner *pl, tarn_kprog *p);
/* The same of one program at n sizes, of a CPU, so that their code may become one (alike.c). */
TARN_API void tarn_plan_samples(tarn_planner *pl, tarn_kprog *const *p, uint32_t n);

/* ---- buffers of a program's workspace (lives.c) ---- */
typedef struct tarn_life {
  uint32_t buffer, first, last; /* kernels that touch it, or a part of it: the first and the last */
  int64_t bytes;                /* rounded up to the alignment */
  int64_t at;                   /* -1; where it lies, in a memory plan */
} tarn_life;
/* l: room for one for each buffer. Gives how many there are, in the order of the buffers. */
TARN_API uint32_t tarn_kprog_lives(const tarn_kprog *p, int64_t align, tarn_life *l);
/* live: of each kernel, the bytes alive while it runs. Gives the most. */
TARN_API int64_t tarn_lives_bytes(const tarn_life *l, uint32_t n, uint32_t nker, int64_t *live);

/* ---- a program on a GPU and its host (copies.c) ---- */
TARN_API uint32_t tarn_kprog_root(const tarn_kprog *p, uint32_t b); /* the buffer that owns it */
TARN_API int64_t tarn_buffer_bytes(const tarn_buffer *b);
typedef struct tarn_host_copy {
  uint32_t kernel;  /* that wants it; p->nker: nobody but the caller of the program */
  uint32_t segment; /* before it to the device, or behind it to the host */
  uint32_t buffer;
  int64_t bytes;
  bool send; /* to the device */
  bool port; /* an input as it is given or an output: it is copied without kernels of the host, too
              */
} tarn_host_copy;
typedef struct tarn_host_copies {
  TARN_VEC(tarn_host_copy) copy; /* in their order */
  uint32_t nsegment;
  bool works; /* kernels of the host touch the workspace */
} tarn_host_copies;
TARN_API const tarn_host_copies *tarn_kprog_copies(const tarn_kprog *p);
/* Of those that are no ports. */
TARN_API double tarn_kprog_copy_seconds(const tarn_kprog *p, const tarn_host_copies *c);

/* Kernels by themselves as a program (program.c), to be emitted and measured. */
typedef struct tarn_plan_choice {
  const tarn_ksig *sig; /* canonical */
  const tarn_schedule *sched;
} tarn_plan_choice;
TARN_API tarn_kprog *tarn_plan_program(tarn_lang *L, const tarn_hw *hw, const tarn_plan_choice *c,
                                       uint32_t n);

/* Raises where the loop program computes more or less than its nest (check.c). */
TARN_API void tarn_plan_check(const tarn_plan_nest *N);
/* As text (print.c), ends with a newline. */
TARN_API void tarn_plan_print(const tarn_plan_nest *N, tarn_buf *b);

#ifdef __cplusplus
}
#endif
#endif
