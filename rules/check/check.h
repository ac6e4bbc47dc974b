/* rules: the checker of rules.
 *
 *   check.c     instances of a rule until it has fired often enough; results
 *   gen.c       a random instance of a left side: fitting types, payloads, conditions
 *   sizes.c     sizes near the numbers of a rule, and large ones
 *   op.c        instances of each operator
 *   value.c     random functions, constants and elements
 *   compare.c   both sides evaluated and compared
 *   show.c      the counterexample as text
 *   shrink.c    a smaller counterexample
 *   loops.c     instances of rules over loops
 *   nest.c      instances of rules derived from a description
 *   kernel.c    kernel-level rules: small networks saturated, every e-node against its class
 *   net.c       those networks
 *
 * All random choices are drawn from a tape of numbers, in which smaller numbers are simpler
 * choices. An instance is a tape, and a smaller tape gives a smaller counterexample (as in MacIver
 * and Donaldson, "Test-case reduction via test-case generation", ECOOP 2020). */
#ifndef TARN_RULES_CHECK_H
#define TARN_RULES_CHECK_H
#include "base/limit.h"
#include "rules/lang/lang.h"

enum { C_TAPE = 1 << 15, C_RANK = 6, C_LEAF = 1500, C_WORK = 30000 };

typedef struct tape {
  uint64_t seed;
  bool replay;
  uint32_t at, n, end; /* end: how long the replayed tape is */
  uint32_t *v;         /* C_TAPE: what was drawn */
  const uint32_t *from;
  bool silent; /* what is drawn follows from a number that was drawn before, and is not written */
} tape;

/* Sizes that a rule is tried with, beside those up to 7 (sizes.c). */
typedef struct sizes {
  uint32_t n, nnear, nall;
  int64_t *number, *near, *all; /* in the rule; at and around those; with large ones, ascending */
} sizes;

/* What is known, and stated to conditions, of the elements of a leaf. */
typedef enum { F_WILD, F_FINITE, F_NONNEG, F_UNIFORM, F_CONST, F_INDEX, F_DERIVED } flavour;
typedef struct leaf {
  uint32_t term, var;
  flavour kind;
  uint32_t uniform;   /* fx constant */
  int64_t below;      /* F_INDEX */
  tarn_tensor *value; /* what it is just now; a constant always */
} leaf;

/* What kinds of elements leaves have: small ones; for exact rules also what is awkward in f32; for
 * rules that reorder, magnitudes from 1e-30 to 1e30, numbers that cancel, infinities and NaN. */
typedef enum { V_TAME, V_STRANGE, V_SPREAD } values;

typedef struct gen {
  tarn_ctx *cx;
  tarn_lang *L;
  const rule *r;
  uint32_t skip; /* a condition (then a guard) that must not hold; TARN_NONE */
  renv e;
  rhost host, plain;
  tape t;
  int64_t max_extent;
  const sizes *sizes; /* NULL: small ones alone */
  uint32_t turn;      /* which of them is wanted, from 1; 0: none */
  int64_t far;        /* the large size of the instance; 0: it has none */
  uint32_t far_in;    /* choices of sizes until the one that takes it */
  uint32_t nleaf;
  leaf leaf[R_CLASSES];
  tarn_dtype dtype; /* of the leaves: mostly f32 */
  bool spread;      /* so are the constants of a network */
  bool special;     /* V_SPREAD: infinities and NaN among the inputs of a network */
  uint32_t span;    /* V_SPREAD: how far magnitudes lie apart */
  bool ends;        /* V_SPREAD: numbers are the largest, or the least, and some close to 1 */
  double seen[4];   /* numbers drawn last */
  bool only_f32;    /* the rule's literals fit nothing else */
  bool lax;         /* guards need not hold */
  bool closed;      /* an open rule as if it were not: there must be a counterexample */
  bool whole;       /* most operands are whole numbers, sums of which are exact */
  uint32_t nroot, last, left[R_SEGS], right[R_SEGS]; /* last: the root made last */
  uint32_t segs[R_SEGS][8];
} gen;

/* In place of a condition's number: the option :open is left out. */
enum { CHECK_OPEN = 1000 };
static inline const rx *rule_cond(const rule *r, uint32_t i) { /* conditions, then guards */
  return i < r->ncond ? r->cond[i] : r->guard[i - r->ncond];
}

/* ---- check.c: the tape ---- */
uint32_t draw(gen *g, uint32_t n);                /* 0 … n-1; 0 is the simplest */
uint32_t draw_as(gen *g, uint32_t n, uint32_t v); /* v, or what a tape has in its place */
static inline bool chance(gen *g, uint32_t one_in) { return draw(g, one_in) == one_in - 1; }

/* ---- check_gen.c ----
 * What a type must be: counts and extents that are -1 are free. */
typedef struct want {
  int ns, nc;
  int64_t s[TARN_MAX_DIMS], c[TARN_MAX_DIMS];
  bool index; /* integers below `below` */
  int64_t below;
} want;
extern const want want_any;
want want_of(const tarn_type *t);
/* Free counts and then extents chosen. */
void want_pin(gen *g, want *w, int least_s, int least_c);
void want_fill(gen *g, want *w);
int64_t *want_dim(want *w, uint32_t i); /* of a pinned one */
uint32_t want_rank(const want *w);

/* ---- sizes.c ---- */
sizes *sizes_of(tarn_ctx *cx, const rule *r);
/* Which size the k-th instance with a large one has, for gen.turn; how many of these there should
 * be for so many others. */
uint32_t sizes_turn(const sizes *s, uint32_t k, uint64_t seed);
uint32_t sizes_wanted(const sizes *s, uint32_t samples);
void far_begin(gen *g);
int64_t some_extent(gen *g, uint32_t rank);
int64_t some_size(gen *g, int64_t least, uint32_t few); /* least … least + few - 1, or large */
int64_t some_listed(gen *g, const int64_t *few, uint32_t n); /* one of n, or large */
int64_t some_place(gen *g, int64_t n);                       /* 0 … n - 1 */
int64_t most_elements(const gen *g);                         /* of a leaf, */
int64_t most_work(const gen *g);                             /* and of all there is to evaluate */
/* Fills a large leaf so that one place stands out; false: as all others. */
bool some_peaked(gen *g, tarn_tensor *x, const tarn_type *t, const leaf *f, values how);

bool gen_pattern(gen *g, const rpat *p, const want *w, uint32_t *term);
bool gen_ready(const gen *g, const rpat *p); /* a variable that is bound */
/* Where-clauses and conditions that can be evaluated by now. */
bool gen_settle(gen *g);
/* Instance of all left roots, conditions checked. */
bool gen_left(gen *g);
/* Right sides; false: the rule does not apply. */
bool gen_right(gen *g);
const tarn_type *type_at(const gen *g, uint32_t term);

/* A payload element: known (literal, bound, computable, or solved for by a condition)? */
bool pay_get(gen *g, const rpat *p, uint32_t i, rv *out);
bool pay_set(gen *g, const rpat *p, uint32_t i, const rv *v);

bool gen_bound(const gen *g, const rx *x);
uint32_t gen_leaf(gen *g, uint32_t type, bool is_const); /* a tensor without a name; TARN_NONE */

/* ---- loops.c ---- */
/* Both sides of a rule over loops. */
bool gen_loops(gen *g);

/* ---- check_op.c ---- */
/* Kids and payload of a node of the given type; false: it did not work out. */
typedef struct made {
  uint32_t payload, n, kid[R_KIDS];
} made;
bool op_make(gen *g, const rpat *p, const want *w, made *m);

/* ---- check_nest.c ---- */
/* A nest for a derived rule; false for others. */
bool gen_nest(gen *g, const rpat *p, made *m, uint32_t *nest);

/* ---- check_value.c ---- */
uint32_t some_function(gen *g, uint32_t nops, uint32_t nepi, bool reduce, uint32_t tuple);
uint32_t some_constant(gen *g, bool finite);
uint32_t some_unary(gen *g, uint32_t x);
uint32_t some_reducer(gen *g);
tarn_tensor *some_values(gen *g, const tarn_type *t, const leaf *f, values how);
/* The values of the instance's constants, by the class of the rule. */
values const_values(const gen *g);
double some_magnitude(gen *g); /* a number of V_SPREAD, finite */
void some_span(gen *g);
rhost check_host(gen *g);

/* ---- check_compare.c ---- */
typedef struct verdict {
  bool made, applied, differs; /* a left side; a right side; other terms */
  bool exact, real; /* strictly equal; no worse than what rounding may do to the left side */
  double error; /* approx: of strict against wide, relative; else how often the left side's bound */
  const char *why; /* NULL, or the disagreement that is not one of values */
} verdict;
void check_compare(gen *g, verdict *v);
bool check_bad(const rule *r, const verdict *v);
/* The left root that right side i rewrites. */
uint32_t check_left(const gen *g, uint32_t i);
/* With the values that the leaves have now. */
void check_evaluate(gen *g, tarn_mode mode, const tarn_term *t, uint32_t n, tarn_tensor **out);
tarn_map *check_given(gen *g); /* leaf -> pvalue[] */
/* How often the bound of the left side the right side's is, and what both sides are off by when
 * their roundings go up and down at random; the largest of all elements. */
double check_against_bound(gen *g, uint32_t left, uint32_t right, int64_t *where);
/* The sides' largest difference in real arithmetic on small values, relative. */
double check_apart(gen *g);
/* ---- show.c ---- */
void check_print(gen *g, const verdict *v, tarn_buf *b);
/* All elements of a term without a tuple, with what rounding may do to them. given: input ->
 * pvalue[]. */
struct pvalue *check_bounds(gen *g, tarn_map *given, tarn_term t, int64_t *count);
void check_print_bound(tarn_buf *b, const struct pvalue *v);
/* Bit for bit; one NaN is as good as another. */
bool check_same_bits(const tarn_tensor *a, const tarn_tensor *b);
/* Largest difference, relative to the largest element of a; where a is not finite nothing is asked.
 */
double check_distance(const tarn_tensor *a, const tarn_tensor *b, int64_t *where);
void check_print_elements(tarn_buf *b, const tarn_tensor *t);

/* ---- check.c ---- */
typedef struct job {
  tarn_ctx *outer;
  const rule *given;  /* as in the set that is checked */
  rbuild_fn *builder; /* of that set */
  uint32_t skip, turn;
  int64_t max_extent;
  tarn_ctx *cx; /* of the instances; renewed now and then */
  tarn_lang *L;
  rule *r;
  gen *g;
  verdict v;
  bool only_f32;
  tarn_buf *print;    /* where to print the instance; NULL */
  bool prove, proved; /* prove: try; proved: this instance was, for all sizes */
  bool tried;         /* a rule over loops, of which a proof is one of all instances */
  bool apart;         /* its sides differ in more than rounding */
  uint64_t which;     /* the case of that proof */
  char why[160];      /* why it was not */
} job;
/* Runs one instance: fresh when from is NULL, else the tape again. False: no instance. */
bool job_run(job *j, uint64_t seed, const uint32_t *from, uint32_t n);
/* ---- check_shrink.c ---- */
/* The text of a smaller counterexample like the one just run. */
const char *check_shrink(job *j);

/* Why what is not done by now is left. */
static inline const char *check_no_time(const tarn_ctx *cx) {
  return tarn_interrupted(cx) ? "interrupted" : "the limit of time";
}
#endif
