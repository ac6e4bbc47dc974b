/* plan: the work of a kernel, which is the summary of its loop program that a search counts before
 * there is a program: how the loops move each operand and what they touch, which statements a
 * register tile has, what follows for them from the kernel. The same code decides these things when
 * the program is made.
 *
 *   work.c      a canonical kernel's accesses and functions    touch.c     bytes that loops touch
 *   bilinear.c  constant matrices                              dot.c       dot-product instructions
 *   order.c     windows                                        peel.c      what padding leaves out
 *   prefetch.c  walks, as prefetches are chosen for them       transpose.c register transposes
 *   tile.c      the register tile                              inside.c    padding, counted
 *
 * It is made once for a kernel and counted for each of its schedules. Dims are a stage's: shared,
 * own up to nacc, then reduced. */
#ifndef TARN_WORK_H
#define TARN_WORK_H
#include "plan/plan.h"
#ifdef __cplusplus
extern "C" {
#endif

/* One access of a stage: how far the element address moves per step of each dim of the iteration
 * space. */
typedef struct tarn_touch {
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
  uint8_t nby, by[TARN_MAX_DIMS]; /* the dims that it touches, by rising step (tarn_touch_sort) */
} tarn_touch;
#define TARN_PLAN_FEW 256 /* elements of one */
#define TARN_PADDINGS 4
/* Padding along dims of the result and of the reduction: of their points, the part that lies
 * inside. */
typedef struct tarn_padding {
  uint32_t dims;
  double inside;
} tarn_padding;
typedef struct tarn_stage_work {
  uint32_t n, nshared, nacc; /* dims: shared, then own up to nacc, then reduce */
  int64_t dim[TARN_MAX_DIMS];
  uint32_t nread;
  tarn_touch *read;
  tarn_touch result;
  bool reduces, fma, custom;
  bool splits;       /* tarn_plan_splits */
  bool resumes;      /* tarn_stage_resumes */
  uint32_t matrices; /* dims of its constant matrices, see bilinear.c; 0: no such sum */
  double matrix_ops; /* vector operations of all that these dims make, where they are in the tile */
  double body_cycles;       /* of the body as it is written */
  double body_ops, epi_ops; /* cycles of the scalar expressions per vector, multiply and add of a
                               product excluded */
  double flops_each, flops_result;
  uint32_t npad; /* what lies in padding adds nothing to the sum */
  tarn_padding pad[TARN_PADDINGS];
  bool block;      /* of a kernel whose shared loops walk blocks, see tarn_kernel_work */
  bool in_l1;      /* then: all that its stages touch for one block fits L1 */
  double held;     /* bytes that all stages of its kernel touch in one trip of the shared loops */
  tarn_hw_dot dot; /* an instruction that means the body over k elements of a reduce dim; k: 0 when
                      there is none */
  uint32_t dot_read[2]; /* what it multiplies: reads, as bits */
  double dot_ops[2];    /* cycles of what is computed of them before, for each vector */
} tarn_stage_work;
typedef struct tarn_kernel_work {
  uint32_t nstage;
  tarn_stage_work *stage;
  /* Some product reads an operand that stays the same from one point of the shared loops to the
   * next: what all stages touch is then reckoned together, and local buffers that stay in a
   * cache cost no transfers. */
  bool blocks;
  uint32_t stages, reads; /* room: of `stage`, of `read` */
  tarn_touch *read;       /* of all stages */
} tarn_kernel_work;
/* Bytes that all stages touch while the shared loops from `from` on go round; local buffers once.
 */
double tarn_work_held(const tarn_kernel_work *km, uint32_t from, double line);
/* Marks memory that may be released behind a model: what the model's making interns in the language
 * lies before the mark. */
tarn_mark tarn_work_mark(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
tarn_kernel_work *tarn_work_of(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k);
/* The same into km, whose room it uses again; all zero at first. */
void tarn_work_into(tarn_lang *L, const tarn_hw *hw, const tarn_ksig *k, tarn_kernel_work *km);

/* ---- what loops touch (touch.c) ---- */
/* Puts the dims that it touches, of n, in order: all that follows asks for it. */
void tarn_touch_sort(tarn_touch *a, uint32_t n);
typedef struct tarn_footprint {
  double bytes, piece; /* piece: bytes that lie together */
} tarn_footprint;
/* What one access touches while the dims walk the given spans (elements of each dim), unpacked. */
tarn_footprint tarn_footprint_of(const tarn_touch *a, const int64_t *span, double line);
/* Its bytes; a constant is packed. */
double tarn_touch_bytes(const tarn_touch *a, const int64_t *span, double line);
/* By all that a stage reads and writes. */
double tarn_stage_bytes(const tarn_stage_work *m, const int64_t *span, double line);
/* Bytes of all that a stage reads and writes. */
double tarn_stage_whole(const tarn_stage_work *m);
/* What the accesses of a stage touch inside of each level of a schedule; 0 is the result, 1 + r
 * read r. Each is computed when it is first asked for, and kept. */
#define TARN_FOOTPRINTS (TARN_MAX_OPERANDS + 1) /* so many are */
typedef struct tarn_footprints {
  const tarn_stage_work *m;
  const tarn_stage_sched *s;
  uint64_t dense; /* reads that are packed */
  double line;
  uint32_t nspan, nsum; /* known ones */
  uint8_t known[TARN_FOOTPRINTS];
  int64_t span[TARN_MAX_LEVELS + 1][TARN_MAX_DIMS];
  double sum[TARN_MAX_LEVELS + 1];
  tarn_footprint at[TARN_FOOTPRINTS][TARN_MAX_LEVELS + 1];
} tarn_footprints;
void tarn_footprints_begin(tarn_footprints *p, const tarn_stage_work *m, const tarn_stage_sched *s,
                           uint64_t dense);
void tarn_footprints_in(tarn_footprints *p,
                        double line); /* in lines of so many bytes from now on */
bool tarn_footprint_packed(const tarn_footprints *p, uint32_t access);
/* What dims cover inside of the levels before `from`. */
const int64_t *tarn_footprints_span(tarn_footprints *p, uint32_t from);
tarn_footprint tarn_footprint_at(tarn_footprints *p, uint32_t access, uint32_t from);
double tarn_footprints_sum(tarn_footprints *p, uint32_t from); /* bytes of all accesses */
tarn_footprint tarn_footprint_whole(const tarn_footprints *p,
                                    uint32_t access); /* while all loops go round */

/* ---- the register tile ---- */
typedef struct tarn_tile_work {
  int64_t size[TARN_MAX_DIMS];
  uint32_t vdim,
      dot;        /* dot: the dim of which one instruction takes the whole tile; UINT32_MAX: none */
  uint32_t inner; /* the innermost loop of the reduction, likewise */
  uint32_t rdim;  /* of whose steps a vector holds `rows`, likewise */
  uint32_t ordered; /* dims whose unrolled copies go in the order of what they read (order.c) */
  int64_t lanes, rows;
  double passes; /* over the results */
} tarn_tile_work;
tarn_tile_work tarn_tile_of(const tarn_stage_work *m, const tarn_stage_sched *s);
/* Vectors of `size` steps of dim d. */
double tarn_tile_vectors(const tarn_tile_work *t, uint32_t d, int64_t size);
/* Loads, or stores, of an access for one point of the loops outside the tile. */
typedef struct tarn_tile_access {
  double count;    /* of vectors, or of single elements where they are gathered or shared */
  double shuffles; /* vectors that are put together of two */
  bool lanes;      /* it goes along the lanes */
  bool gathered;   /* their elements lie apart */
  bool grouped;    /* what a dot-product instruction takes is put together element by element */
} tarn_tile_access;
tarn_tile_access tarn_tile_access_of(const tarn_stage_work *m, const tarn_tile_work *t,
                                     const tarn_touch *a);
/* Does the tile hold all dims of the constant matrices? (bilinear.c) */
bool tarn_tile_holds_matrices(const tarn_stage_work *m, const int64_t *size);
/* Does a step of dim e go less far than `size` of dim d? Then windows along d overlap (order.c). */
bool tarn_touch_overlaps(const tarn_touch *a, uint32_t d, int64_t size, uint32_t e);
/* Steps of the reduction that are unrolled in a register tile whose neighbours share loads, which
 * is then ordered by these; 0: they share none. */
int64_t tarn_tile_window(const tarn_stage_work *m, const tarn_tile_work *t);
/* The factor of an unrolled reduction's dim d on the loads of a tile, whose neighbours share them.
 */
double tarn_tile_shared(const tarn_stage_work *m, const tarn_tile_work *t, const tarn_touch *a,
                        uint32_t d);
/* Vectors of an access that the accumulators' dims walk; those of the operand with fewest, which a
 * tile keeps; registers that a window's weights fill, of so many steps. */
double tarn_tile_own(const tarn_stage_work *m, const tarn_tile_work *t, const tarn_touch *a);
double tarn_tile_held(const tarn_stage_work *m, const tarn_tile_work *t);
double tarn_tile_weights(const tarn_stage_work *m, const tarn_tile_work *t, int64_t steps);
/* The dim of the tile along which the rows of a register transpose lie; UINT32_MAX: none
 * (transpose.c). */
uint32_t tarn_tile_transposed(const tarn_stage_work *m, const tarn_tile_work *t);
/* Are trips in this padding left out (peel.c)? */
bool tarn_tile_leaves_out(const tarn_stage_work *m, const tarn_tile_work *t, const tarn_padding *p);
/* Has each of so many unrolled steps of a reduction along the lanes an accumulator of its own? */
static inline bool tarn_plan_keeps_chains(double n) { return n <= PLAN_MOST_CHAINS; }
static inline uint32_t tarn_first_dims(uint32_t n) {
  return n >= 32 ? UINT32_MAX : (UINT32_C(1) << n) - 1;
}
/* Points of the dims whose bits are set. */
double tarn_work_points(const tarn_stage_work *m, uint32_t dims);
/* Trips of a stage's body, over all its results, whose operands lie inside what they are read from:
 * the others add nothing to the reduction (inside.c). */
double tarn_work_inside(tarn_lang *L, const tarn_stage *s, const tarn_stage_work *m);
/* Of the points of the dims that a guard depends on, the part where it holds; 1: more than two
 * dims.
 */
double tarn_work_part_inside(tarn_lang *L, const tarn_guard *g, const tarn_stage_work *m);
/* ---- of a kernel ---- */
/* Constant matrices that a sum is multiplied by, as in Winograd transforms (one bit each). Their
 * zeros and the terms that their rows share make the code, so a kernel can only be measured with
 * their values. */
TARN_API uint64_t tarn_ksig_matrices(tarn_lang *L, const tarn_ksig *k);
/* Is what they hold known? Else what is measured is another code than a program's. */
TARN_API bool tarn_ksig_complete(tarn_lang *L, const tarn_ksig *k);
/* May reduce loops of a stage stand outside of its accumulators? The partial sums are left in
 * result `out` meanwhile, which holds them if it is of their type. Pure. */
TARN_API bool tarn_stage_resumes(tarn_lang *L, const tarn_ksig *k, const tarn_stage *s,
                                 uint32_t out);
/* ---- packing, prefetches ---- */
/* How a constant is packed; no other access is. */
tarn_packing tarn_touch_packing(const tarn_stage_work *m, const tarn_touch *a, const tarn_blocks *b,
                                const tarn_stage_sched *s);
/* NULL: more levels than are looked at. */
tarn_walks *tarn_work_walks(tarn_ctx *cx, const tarn_hw *hw, const tarn_kernel_work *km,
                            const tarn_schedule *s);

#ifdef __cplusplus
}
#endif
#endif
