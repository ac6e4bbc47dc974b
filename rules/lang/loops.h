/* rules: the notation of loops (docs/loop-rules.md). A rule in it has a left side that a nest of
 * one stage may be, or a scalar expression anywhere in a nest, and a right side of kernels.
 *
 * loops_read.c reads both sides, loops_match.c finds the ways in which a nest is the left side, and
 * loops_make.c makes the right side. Names of loops, rows of loops and expressions are variables of
 * the rule, of kinds 'o' and 'e', so that conditions may use them (vocab_loops.c). */
#ifndef TARN_RULES_LOOPS_H
#define TARN_RULES_LOOPS_H
#include "rules/lang/lang.h"
#include "rules/lang/range.h"
#include "rules/lang/reader.h"

typedef struct lix { /* an index */
  enum {
    LIX_LOOP,
    LIX_NUMBER,
    LIX_ADD,
    LIX_SUB,
    LIX_MUL,
    LIX_DIV,
    LIX_MOD,
    LIX_WITHIN,
    LIX_BEYOND,
    LIX_FIRST
  } kind;
  uint32_t var; /* LOOP, FIRST */
  uint32_t of;  /* FIRST: an expression */
  rx *number;   /* NUMBER */
  struct lix *kid[2];
} lix;

typedef struct lloop { /* what stands in a list of loops */
  enum { LL_ROW, LL_LOOP, LL_OF, LL_ON, LL_OFF, LL_WITH } kind;
  uint32_t var; /* ROW, LOOP, OF: its name; ON, OFF: an expression */
  rx *extent;   /* LOOP; NULL: as it was */
  lix *ix;      /* in (at …): what the loop, or the row counted through, becomes */
  uint32_t n;   /* OF, ON, OFF, WITH */
  struct lloop *kid;
} lloop;

typedef enum {
  LX_ANY,    /* ?e */
  LX_NUMBER, /* 2, ?N */
  LX_OP,
  LX_FOLD,
  LX_THEN,
  LX_AT,
  LX_FOR,
  LX_STAGE,
  LX_SHARED,
  LX_KEPT,
  LX_PADDED,
  LX_TENSOR,
  LX_BESIDE,
  LX_TABLE
} lx_kind;
typedef struct lx { /* a scalar expression over loops */
  lx_kind kind;
  uint32_t var;      /* ANY, THEN, PADDED, TENSOR, BESIDE; FOLD: the reducer, OP cast: the type, or
                        TARN_NONE */
  uint32_t op;       /* OP: tarn_fxop; FOLD: tarn_red_kind; TABLE: its number */
  tarn_dtype type;   /* OP cast, where var is TARN_NONE */
  uint32_t name;     /* OP on the left: what it is called, or TARN_NONE */
  double value;      /* NUMBER */
  const rx *counted; /* NUMBER, of the rule's integers; NULL */
  uint32_t nloop;
  lloop *loop;
  uint32_t nix;
  lix **ix; /* TABLE */
  uint32_t n;
  struct lx **kid;
} lx;

typedef struct ltable { /* constants of a rule */
  const char *name;
  tarn_dtype type; /* f32 where the rule does not say */
  uint32_t n;
  int64_t dim[TARN_MAX_DIMS];
  double *v;
} ltable;

typedef struct loops {
  bool anywhere; /* left: an expression wherever it stands */
  bool inner;    /* which is what a kernel computes that the nest reads, (for (?*i) ?e), */
  bool view;     /* or an element of a view, (view ?e) */
  lx *left, *right;
  uint32_t ntable;
  ltable *table;
} loops;

/* Loops of the left side are numbered as they stand in the nest, others from here on by variable.
 */
enum { L_FRESH = 2 * TARN_MAX_DIMS, L_LOOPS = L_FRESH + R_ATTRS };

/* What is known of all nodes of an expression of the nest, worked out once. */
typedef struct lfacts {
  uint32_t part, root, nread; /* where it stands, what it is, the reads of its stage */
  bool typed, ranged, split;  /* are these known? */
  fxwalk w;
  uint8_t type[K_FX];
  bool varies[K_FX]; /* is something that it reads not constant? */
  uint32_t nhole;
  vrange hole[K_READS + 1], is[K_FX];
} lfacts;
/* The nest that is being matched. */
typedef struct lmatch {
  kern k;
  lfacts *facts; /* of a body and of an epilogue */
  uint32_t n;    /* loops: own, then reduced */
  int64_t dim[2 * TARN_MAX_DIMS];
  tarn_dtype type;   /* of its reduction, or of what was matched */
  uint32_t part, at; /* where that stands, and the expression */
  const lx *body;    /* what the pattern says of what is reduced */
  bool swapped;      /* its operands fit the other way round */
  kern *inner;       /* of a rule with an inner kernel: a map that the nest reads, */
  uint32_t slot;     /* as which child, */
  uint32_t map;      /* and how, at the read that is at hand */
  kern *earlier;     /* room for inner kernels that may come first; NULL */
  const kern *made;  /* in (:subsume COND): what the nest became */
} lmatch;
/* The hole of what (then ?h E) takes E for, in what is reduced; in an epilogue it is hole 0. */
enum { L_VALUE = K_READS };
#define L_PART(stage, body) (2 * (stage) + !(body)) /* where an expression stands: rv.i */
#define L_INNER             L_PART(K_STAGES, true)  /* in the inner kernel */
/* vocab_loops.c: what the expression is one read of; NULL: none, or of a result */
const tarn_read *rv_read(const renv *e, const rv *v);
const tarn_read *loops_read_of(const lmatch *m, int64_t part, uint32_t hole); /* NULL: a result */
/* Of the expression of a part of the nest, its nodes; NULL: it is too large. Types, TARN_F32 of a
 * stage's result; ranges. */
const lfacts *loops_walk_part(renv *e, uint32_t part);
const lfacts *loops_types(renv *e, uint32_t part);
const lfacts *loops_ranges(renv *e, uint32_t part);
const lfacts *loops_varying(renv *e, uint32_t part);
/* Which node of it that is; TARN_NONE: none. */
uint32_t loops_node(const lfacts *x, uint32_t f);
/* Forgets all: the nest or what is known of its children is another. */
void loops_forget(lmatch *m);
/* A walk of an expression variable; false: it has none, or is too large. */
bool loops_walk(const renv *e, const rv *v, fxwalk *w);

/* loops_guards.c: a guard of an expression that leaves few values of a loop. */
bool loops_stride(const renv *e, const rv *v, uint32_t loop, int64_t *stride, int64_t *trips);
bool loops_sparse(const renv *e, const rv *v, uint32_t loop); /* where it fails, nothing is added */
/* Does a read depend on loops o and r by their sum alone? */
bool loops_by_sum(const tarn_lang *L, const tarn_imap *m, uint32_t o, uint32_t r);
/* Is what is reduced over r, at each y of loop o, the first y + 1 - *c terms of those at the last?
 */
bool loops_prefix(const renv *e, const rv *v, uint32_t o, uint32_t r, int64_t *c);
/* May a body be made of v where the reads of with[] give these numbers (others: TARN_NONE), being
 * behind the end of a loop? Of a loop that is reduced nothing may be added there; of others the
 * value does not matter, but one that is not finite would spoil sums that it cancels out of. */
bool loops_may_end(const renv *e, const rv *v, const uint32_t *with, bool reduced);
uint32_t loops_shifters(const renv *e, const rv *v,
                        uint32_t loop); /* which other loops it depends on */
/* The least of these values, of what the other loops are over the loops `dim`. */
uint32_t loops_first(const renv *e, const rv *v, uint32_t loop, const uint32_t *ix,
                     const int64_t *dim);
/* vocab_units.c. Does an instruction of a machine, or of any of the description, sum in that type
 * what this body makes of elements of these types, several at once along a reduced loop of k? */
bool units_hw_sums(const tarn_hw *hw, const kern *k, tarn_dtype sum, uint32_t body,
                   const tarn_dtype type[2]);
/* Does a dot-product instruction sum what the body makes, and widen elements of these types in
 * registers? */
bool units_widens(const tarn_hw *hw, const kern *k, uint32_t body, uint32_t red,
                  const tarn_dtype type[2]);
bool units_sum(const renv *e, const kern *k, tarn_dtype sum, uint32_t body,
               const tarn_dtype type[2]);
uint32_t units_product(tarn_lang *L, tarn_dtype sum); /* of two elements cast to the type */
/* loops_read.c: is it a left side of this notation? Both sides, and (:table …). */
bool loops_is_left(const tarn_sx *s);
void loops_left(reader *rd, const tarn_sx *s);
void loops_right(reader *rd, const tarn_sx *s);
void loops_table(reader *rd, const tarn_sx *s);
/* loops_match.c: calls fn for each way; in a graph for the first alone for which conditions and
 * guards hold. Was it stopped? */
bool loops_match(renv *e, const rule *r, r_choice_fn *fn, void *arg);
/* The same of the nest as it was loaded or changed since. */
void loops_ways(renv *e, const rule *r, r_choice_fn *fn, void *arg);
/* The reduction in what a nest computes; NULL: none. */
const lx *loops_fold(const lx *x);
/* Of a rule with an inner kernel: what the match holds at read `number` of the nest's stage or its
 * epilogue; the variables for the inner kernel that it holds, false: it does not fit. */
void loops_at_read(lmatch *m, uint32_t stage, bool body, uint32_t number);
bool loops_bind_inner(renv *e, const rule *r);
/* loops_anywhere.c, loops_inline.c, loops_make.c */
extern const rbuild loops_builder;
uint32_t loops_anywhere(rsite *s, const rule *r);
uint32_t loops_replace_inner(rsite *s, const rule *r);
/* The expression of map p where the stage reads its result through map; its operands become reads
 * of the stage. TARN_NONE: there is no room, or no single map. */
uint32_t loops_inlined(kern *k, kstage *s, bool body, const kern *p, uint32_t map);
/* loops_make.c: a right side where the left one was matched, its reads added there; an operator
 * over kids, a number. TARN_NONE. */
uint32_t loops_in_place(renv *e, const lx *x);
uint32_t loops_op(renv *e, const lx *x, const uint32_t *kid);
uint32_t loops_number(renv *e, const lx *x);
int64_t l2_capacity(const renv *e); /* bytes of the description's; usual ones without it */
uint32_t seen_as(rsite *s, uint32_t id, uint32_t map); /* as that view */
/* The result as the consumer has it: through map, split at ns. */
uint32_t seen_through(rsite *s, uint32_t id, uint32_t map, uint32_t ns);
#endif
