/* What the files of price/ share: a canonical kernel reduced to what pricing and scheduling ask of
 * it. */
#ifndef TARN_PRICE_INTERNAL_H
#define TARN_PRICE_INTERNAL_H
#include "price/price.h"
#include <string.h>

#define LOOP_SHORT 8 /* most trips of a reduction's loop that may be fully unrolled */

/* One access of a stage: how far the element address moves per step of each dim of the iteration
 * space. */
typedef struct acc_model {
  int64_t coef[TARN_MAX_DIMS], start;
  uint32_t touched; /* bit d: the address depends on dim d */
  uint32_t guarded; /* bit d: a guard depends on dim d */
  double bytes;     /* of one element */
  int64_t elems;    /* of the whole operand; of a local buffer: 0 */
  uint32_t src;     /* number of the operand */
  uint32_t from;    /* of a local buffer: number of its stage */
  bool irregular;   /* a division remains: no constant step */
  bool local;       /* another stage's local buffer */
  bool epi;         /* read once a result, not once an operation */
  bool again;       /* an earlier stage reads the same in the same trip of the shared loops */
  bool constant;
  bool few; /* a small constant: its elements are numbers in the code where loops over it are
               unrolled */
  uint8_t nby, by[TARN_MAX_DIMS]; /* the dims that it touches, by rising step (loop_by_step) */
} acc_model;
#define LOOP_FEW  256 /* elements of one */
#define LOOP_PADS 4
/* Padding along dims of the result and of the reduction: of their points, the part that lies
 * inside. */
typedef struct pad_model {
  uint32_t dims;
  double inside;
} pad_model;
typedef struct stage_model {
  uint32_t n, nshared, nacc; /* dims: shared, then own up to nacc, then reduce */
  int64_t dim[TARN_MAX_DIMS];
  uint32_t nread;
  acc_model *read;
  acc_model result;
  bool reduces, fma, custom;
  bool resumes;      /* tarn_stage_resumes */
  uint32_t matrices; /* dims of its constant matrices, see model.c; 0: no such sum */
  double matrix_ops; /* vector operations of all that these dims make, where they are in the tile */
  double body_cycles;       /* of the body as it is written */
  double body_ops, epi_ops; /* cycles of the scalar expressions per vector, multiply and add of a
                               product excluded */
  double flops_each, flops_result;
  uint32_t npad; /* what lies in padding adds nothing to the sum */
  pad_model pad[LOOP_PADS];
  bool block;      /* of a kernel whose shared loops walk blocks, see kernel_model */
  bool in_l1;      /* then: all that its stages touch for one block fits L1 */
  double held;     /* bytes that all stages of its kernel touch in one trip of the shared loops */
  tarn_hw_dot dot; /* an instruction that means the body over k elements of a reduce dim; k: 0 when
                      there is none */
} stage_model;
typedef struct kernel_model {
  uint32_t nstage;
  stage_model *stage;
  /* Some product reads an operand that stays the same from one point of the shared loops to the
   * next: what all stages touch is then reckoned together, and local buffers that stay in a
   * cache cost no transfers. */
  bool blocks;
  uint32_t stages, reads; /* room: of `stage`, of `read` */
  acc_model *read;        /* of all stages */
} kernel_model;
/* Bytes that all stages touch while the shared loops from `from` on go round; local buffers once.
 */
double loop_held(const kernel_model *km, uint32_t from, double line);
/* Marks memory that may be released behind a model: what the model's making interns in the language
 * lies before the mark. */
tarn_mark loop_mark(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
kernel_model *loop_model(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* The same into km, whose room it uses again; all zero at first. */
void loop_model_into(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, kernel_model *km);

/* ---- footprint.c ---- */
/* Puts the dims that it touches, of n, in order: all that follows asks for it. */
void loop_by_step(acc_model *a, uint32_t n);
typedef struct loop_print {
  double bytes, piece; /* piece: bytes that lie together */
} loop_print;
/* What one access touches while the dims walk the given spans (elements of each dim), unpacked. */
loop_print loop_print_of(const acc_model *a, const int64_t *span, double line);
/* Its bytes; a constant is packed. */
double loop_footprint(const acc_model *a, const int64_t *span, double line);
/* By all that a stage reads and writes. */
double loop_footprints(const stage_model *m, const int64_t *span, double line);
/* Bytes of all that a stage reads and writes. */
double loop_whole(const stage_model *m);
/* What the accesses of a stage touch inside of each level of a schedule; 0 is the result, 1 + r
 * read r. Each is computed when it is first asked for, and kept. */
#define LOOP_PRINTS (TARN_MAX_OPERANDS + 1) /* so many are */
typedef struct loop_prints {
  const stage_model *m;
  const tarn_stage_sched *s;
  uint64_t dense; /* reads that are packed */
  double line;
  uint32_t nspan, nsum; /* known ones */
  uint8_t known[LOOP_PRINTS];
  int64_t span[TARN_MAX_LEVELS + 1][TARN_MAX_DIMS];
  double sum[TARN_MAX_LEVELS + 1];
  loop_print at[LOOP_PRINTS][TARN_MAX_LEVELS + 1];
} loop_prints;
void loop_prints_of(loop_prints *p, const stage_model *m, const tarn_stage_sched *s,
                    uint64_t dense);
void loop_prints_in(loop_prints *p, double line); /* in lines of so many bytes from now on */
bool loop_is_packed(const loop_prints *p, uint32_t access);
/* What dims cover inside of the levels before `from`. */
const int64_t *loop_spans(loop_prints *p, uint32_t from);
loop_print loop_print_at(loop_prints *p, uint32_t access, uint32_t from);
double loop_prints_sum(loop_prints *p, uint32_t from);              /* bytes of all accesses */
loop_print loop_print_whole(const loop_prints *p, uint32_t access); /* while all loops go round */

/* ---- tile.c: cycles of register tiles that were asked for before ---- */
typedef struct loop_tile {
  int64_t size[TARN_MAX_DIMS];
  uint32_t vdim,
      dot;        /* dot: the dim of which one instruction takes the whole tile; UINT32_MAX: none */
  uint32_t inner; /* the innermost loop of the reduction, likewise */
  uint32_t rdim;  /* of whose steps a vector holds `rows`, likewise */
  int64_t lanes, rows;
  double passes; /* over the results */
} loop_tile;
#define LOOP_TILES 128
/* What the prices of a stage's schedules share; begun anew for each stage. */
typedef struct loop_room {
  loop_prints prints;
  uint8_t has[LOOP_TILES];
  struct {
    loop_tile tile;
    double cycles;
  } known[LOOP_TILES];
} loop_room;
static inline void loop_room_begin(loop_room *r) { memset(r->has, 0, sizeof r->has); }
/* Price of one stage on one unit with the loops outside it (shared levels) counted in `repeat`. */
void loop_stage_cost(const tarn_hw *hw, const stage_model *m, const tarn_level *shared,
                     uint32_t nshared, const tarn_stage_sched *s, uint32_t threads, tarn_cost *c);
/* The same, but false as soon as it is known to take `most` seconds or more, a barrier included:
 * then *c is a part of its cost. */
bool loop_stage_below(const tarn_hw *hw, const stage_model *m, const tarn_level *shared,
                      uint32_t nshared, const tarn_stage_sched *s, uint32_t threads, double most,
                      loop_room *room, tarn_cost *c);
/* Cycles of all its register tiles on one unit, in `repeat` trips of the shared loops (tile.c). */
double loop_cycles(const tarn_hw *hw, const stage_model *m, const tarn_stage_sched *s,
                   double repeat, loop_room *room);
/* Computing and transfers, which overlap, but not perfectly; *binds (may be NULL): the level whose
 * transfers take longest, left alone when computing does. */
double loop_overlapped(const tarn_hw *hw, const tarn_cost *c, uint32_t *binds);
/* tarn_cost_of(); cached: weights come from the last-level cache. */
void loop_cost(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, const tarn_schedule *s,
               uint32_t threads, bool cached, tarn_cost *out);
/* Does the tile hold all dims of the constant matrices? */
bool loop_holds_matrices(const stage_model *m, const int64_t *size);
/* Does a step of dim e go less far than `size` of dim d? Then windows along d overlap. */
bool loop_overlaps(const acc_model *a, uint32_t d, int64_t size, uint32_t e);
/* Steps of the reduction that are unrolled in a register tile whose neighbours share loads; 0: they
 * share none. vdim: of the lanes. */
int64_t loop_window(const stage_model *m, uint32_t vdim, const int64_t *size);
static inline uint32_t loop_first_dims(uint32_t n) {
  return n >= 32 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
}
/* Points of the dims whose bits are set. */
double loop_points(const stage_model *m, uint32_t dims);
/* Trips of a stage's body, over all its results, whose operands lie inside what they are read from:
 * the others add nothing to the reduction (taps.c). */
double loop_inside(tarn_lang *L, const tarn_stage *s, const stage_model *m);
/* How a constant is packed; no other access is. */
tarn_packing loop_packing(const stage_model *m, const acc_model *a, const tarn_blocks *b,
                          const tarn_stage_sched *s);
/* Threads that the outermost parallel levels keep busy: threads × (iterations / rounds × threads).
 */
double loop_parallel(const stage_model *m, const tarn_level *level, uint32_t n, uint32_t threads);
/* See walk.c; NULL: more levels than are looked at. */
tarn_walks *loop_walks(tarn_ctx *cx, const tarn_hw *hw, const kernel_model *km,
                       const tarn_schedule *s);
#endif
