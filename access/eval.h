/* access: the reference interpreter's parts.
 *
 *   eval.c       terms: values, their life, the operators that are no loops
 *   eval_nest.c  a nest: stages, blocks of shared loops, the vector machine for scalar expressions
 *   eval_read.c  where an operand's element lies, for a run of results at a time
 *   eval_dot.c   sums of products, the same order of operations in tighter loops
 *   eval_noise.c noisy runs: roundings up or down at random
 *
 * A stage's results are numbered in row-major order of its lane dims (shared ++ own) and computed
 * in runs of at most TARN_EV_LANES: the steps of a reduction are taken one after the other, each
 * for the whole run. Every result is thus reduced left to right. */
#ifndef TARN_ACCESS_EVAL_H
#define TARN_ACCESS_EVAL_H
#include "access/internal.h"
#include "access/judge.h"

#define TARN_EV_LANES 256
#define TARN_EV_RED   2048 /* reduction steps whose offsets are held at once */

/* Memory that a raise gives back: blocks in a list, freed by a clean-up registered by tarn_eval. */
typedef struct tarn_evblock tarn_evblock;
typedef struct tarn_ev {
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_mode mode;
  bool noisy; /* with TARN_STRICT */
  tarn_noise noise;
  uint64_t random; /* state of tarn_random */
  tarn_evblock *blocks;
} tarn_ev;
void *tarn_ev_alloc(tarn_ev *e, size_t n); /* aligned to 64, not zeroed; raises */
void tarn_ev_free(tarn_ev *e, void *p);    /* NULL is allowed */

/* As `like` says, which has no blocks yet. */
void tarn_ev_roots(const tarn_ev *like, const tarn_term *root, uint32_t nroot,
                   const tarn_binding *in, uint32_t nin, tarn_opaque_fn *opaque, tarn_tensor **out);

/* Does the root depend on numbers that are rounded to whole ones? */
bool tarn_ev_steps(tarn_lang *L, tarn_term root);

/* How values of a type are stored between kernels: floats as f64 in wide mode. */
static inline tarn_dtype tarn_ev_store(const tarn_ev *e, tarn_dtype t) {
  return e->mode == TARN_WIDE && tarn_dtype_is_float(t) ? TARN_F64 : t;
}

/* A child of a nest: a row-major buffer, seen through a map (TARN_NONE: as it is). */
typedef struct tarn_evarg {
  const void *data;
  tarn_dtype store, type; /* elements in memory; as the program sees them */
  uint32_t map;           /* child's dims -> buffer's dims */
} tarn_evarg;

/* ---- eval_read.c ---- */
typedef struct tarn_evloops {
  uint32_t nlane, nall; /* dims 0 … nlane-1 number the results, the rest is reduced over */
  int64_t ext[TARN_MAX_DIMS];
} tarn_evloops;

enum { TARN_EV_LANE = 1, TARN_EV_RED_DIMS = 2 };
/* c + Σ coef[d]·x[d] + Σ atoms */
typedef struct tarn_evsum {
  int64_t c, coef[TARN_MAX_DIMS];
  uint32_t natom;
  struct tarn_evatom *atom;
} tarn_evsum;
typedef struct tarn_evatom {
  int64_t coef;
  tarn_ixterm t; /* DIV or MOD */
  uint32_t dims; /* bit set of the dims it reads */
  int uses;      /* TARN_EV_LANE | TARN_EV_RED_DIMS */
  /* Of an atom that uses both: the sum under the division, itself taken apart. */
  tarn_evsum arg;
  int64_t *lane, *red;
  int shift; /* by is 2^shift; -1: it is not a power of two */
} tarn_evatom;
typedef struct tarn_evguard {
  tarn_evsum e;
  int64_t lo, hi;      /* lo <= e < hi */
  int64_t least, most; /* of the current run's lane part */
  int64_t *lane, *red;
} tarn_evguard;
typedef struct tarn_evread {
  const tarn_lang *L;
  const tarn_evloops *loops;
  const void *data;
  tarn_dtype store;
  tarn_evsum at; /* element number, counted from origin */
  int64_t origin;
  uint32_t nguard;
  tarn_evguard *guard;
  tarn_value fill;
  bool mixed, deep; /* some atom mixes lane and reduce dims; so does one inside another */
  bool dense, same; /* the current run's elements follow each other; are one */
  int64_t start;    /* of the current run */
  int64_t red_start;
  int64_t *lane, *red; /* element number = lane[v] + red[r] */
  tarn_ev *e;
  const struct tarn_evread *by; /* which row it is in; NULL: in none */
  tarn_row row;
} tarn_evread;

/* map: loops -> dims of a row-major buffer. Scratch comes from tarn_ev_alloc and is kept in *r. */
void tarn_evread_init(tarn_ev *e, tarn_evread *r, const tarn_evloops *loops, uint32_t map,
                      const void *data, tarn_dtype store);
void tarn_evread_free(tarn_ev *e, tarn_evread *r);
/* Results start … start+n-1; reduction steps start … start+n-1 (in row-major order). */
void tarn_evread_run(tarn_evread *r, int64_t start, uint32_t n);
void tarn_evread_reduce(tarn_evread *r, int64_t start, uint32_t n);
/* Values of the run at reduction step number `step` of the current ones. */
void tarn_evread_load(const tarn_evread *r, uint32_t step, uint32_t n, tarn_value *out);
typedef enum { TARN_EV_NONE, TARN_EV_SOME, TARN_EV_ALL } tarn_evinside;
/* Of a read that is mixed but not deep: where the run's elements lie at a step, and whether the
 * guards hold. */
void tarn_evread_where(const tarn_evread *r, uint32_t step, uint32_t n, int64_t *at, bool *ok);
tarn_evinside tarn_evread_inside(const tarn_evread *r,
                                 uint32_t step); /* do the guards hold for the run? */
static inline bool tarn_evread_ok(const tarn_evread *r, uint32_t step, uint32_t v) {
  for (uint32_t i = 0; i < r->nguard; i++) {
    int64_t x = r->guard[i].lane[v] + r->guard[i].red[step];
    if (x < r->guard[i].lo || x >= r->guard[i].hi) return false;
  }
  return true;
}
/* Bit set of the dims that its elements depend on, guards included. */
uint32_t tarn_evread_dims(const tarn_evread *r);
void tarn_ev_put(void *data, tarn_dtype store, int64_t at, uint32_t n, const tarn_value *v);

/* ---- eval_nest.c ---- */
typedef void tarn_lane_fn(tarn_value *o, const tarn_value *a, const tarn_value *b,
                          uint32_t n); /* one operator */
typedef struct tarn_evcode {           /* scalar expressions over runs */
  const tarn_fxcode *code;
  uint32_t nhole;
  const tarn_value **hole; /* arrays of the run's values */
  const tarn_value **slot;
  tarn_value *own; /* code->n arrays */
  double products; /* of a sum of products in a noisy run */
} tarn_evcode;
typedef struct tarn_evstage {
  const tarn_stage *s;
  tarn_evloops loops, outer; /* outer: without the reduction, for the epilogue */
  int64_t nown, nred;        /* results per point of the shared loops; reduction steps */
  uint32_t nops, nread, nlook, nstate;
  tarn_evread *read;  /* operands of the body, then of the epilogue, then nlook lookups */
  tarn_value *loaded; /* nread arrays of a run */
  tarn_value init[TARN_MAX_STATE];
  tarn_value *state[2];   /* nstate arrays each: now and next */
  tarn_value *index;      /* the reduction step's number, as a run */
  tarn_evcode step, last; /* last: result and epilogue; an elementwise stage has only this */
  tarn_dtype store;
  void *out;
  int64_t origin;      /* number of the first result in out */
  bool dot;            /* a sum of products of two operands */
  tarn_dtype dot_type; /* F32, F64 or I32: what it is computed in */
} tarn_evstage;
/* out[i]: buffers of the outputs, in order, stored as tarn_ev_store says; all raise. */
void tarn_ev_nest(tarn_ev *e, uint32_t nest, const tarn_evarg *arg, void *const *out);
/* Result and epilogue for n results from number start on, from state[0]. */
void tarn_ev_finish(tarn_ev *e, tarn_evstage *s, int64_t start, uint32_t n);

/* ---- eval_noise.c ---- */
/* One operator of a noisy run on n values. False: it is exact, or gives no float. lanes: does it
 * for f32 or f64 in strict mode, or NULL; products: a multiplication is off by so much of itself.
 */
bool tarn_ev_noise(tarn_ev *e, const tarn_fxstep *s, tarn_lane_fn *lanes,
                   const tarn_value *const *kid, double products, uint32_t n, tarn_value *out);
/* Does this operator make no noise? */
static inline bool tarn_ev_skips(tarn_ev *e) {
  return e->noise.some && tarn_random(&e->random) >> 63;
}
/* 1, or what a factor is multiplied by so that its products are off. */
static inline double tarn_ev_factor(tarn_ev *e) {
  return e->noise.products > 0 ? 1 + e->noise.products * tarn_random_unit(&e->random) : 1;
}
/* A noisy run draws a direction in which the processor rounds until tarn_ev_nearest. Nothing may
 * raise in between. */
bool tarn_ev_draw_rounding(tarn_ev *e); /* up? */
void tarn_ev_restore_rounding(void);
static inline void tarn_ev_direct(tarn_ev *e) {
  if (e->noisy && !tarn_ev_skips(e)) tarn_ev_draw_rounding(e);
}
static inline void tarn_ev_nearest(const tarn_ev *e) {
  if (e->noisy) tarn_ev_restore_rounding();
}

/* A further run of a root: its distance counts. */
void tarn_rounding_add(tarn_rounding *r, const tarn_tensor *run);

/* ---- eval_dot.c ---- */
/* Results first … end-1. dmin: the lowest dim that may be split off (runs may not cross lower ones
 * unless the range is everything). False: this stage does not suit. */
bool tarn_ev_dot(tarn_ev *e, tarn_evstage *s, int64_t first, int64_t end, uint32_t dmin);
#endif
