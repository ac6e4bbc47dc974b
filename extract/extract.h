/* tarn extract: from a saturated e-graph to the program it holds.
 *
 * Selection (extract/select.h) works on any AND/OR graph and knows nothing of tensors; the kernel
 * graph below makes one of an e-graph of access patterns: its classes are buffers in a storage
 * order, its nodes are kernels. */
#ifndef TARN_EXTRACT_H
#define TARN_EXTRACT_H
#include "egraph/egraph.h"
#include "extract/select.h"
#include "plan/plan.h"
#include "price/price.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The default price: what tarn_cost_of() says. */
TARN_API const tarn_price *tarn_price_analytic(void);

/* What the kernel graph needs of a saturated e-graph. Nodes carry (tarn_op, payload id). */
typedef struct tarn_kgraph_input {
  tarn_lang *L;
  tarn_egraph *g;                                /* rebuilt */
  uint32_t (*type_of)(void *user, uint32_t cls); /* type id of a class */
  bool (*is_constant)(void *user, const tarn_egraph *g,
                      uint32_t cls);             /* computable at compile time */
  bool (*left_out)(void *user, uint32_t node);   /* NULL, or e-nodes that need no looking at */
  uint32_t (*class_of)(void *user, tarn_term t); /* NULL, or the class of a term of the program,
                                                    TARN_NONE for none: to name kernels by */
  void *user;
  uint32_t nroot;
  const uint32_t *root;        /* classes, in the order of the program's outputs */
  const tarn_program *program; /* names of inputs and outputs */
  const tarn_program *whole;   /* NULL, or the one that it stands for: how many weights there are */
  /* Inputs that are to lie in outputs. One that cannot has memory of its own: ask
   * tarn_kprog_in_place() of the program. */
  uint32_t nplace;
  const tarn_in_place *place;
} tarn_kgraph_input;
/* What extractions of one model at several sizes have in common: those after the first choose the
 * kernels that it chose, or raise TARN_NO_RESULT with what differs. Dims that depend on the sizes
 * are open in their schedules. Of a CPU. */
#define TARN_FAMILY_SAMPLES 8
typedef struct tarn_family tarn_family;
/* A constant that grows with the sizes, such as a mask of all tokens by all. At each size it lies
 * as a part of one with the dims `most`, which contains it. */
typedef struct tarn_box {
  tarn_dtype dtype;
  uint32_t n;
  tarn_poly dim[TARN_MAX_DIMS];
  int64_t most[TARN_MAX_DIMS];
} tarn_box;
/* In the arena. of: the choices of sizes that there are, and the samples; box: those that are
 * known.
 */
TARN_API tarn_family *tarn_family_new(tarn_lang *L, const tarn_points *of, uint32_t nbox,
                                      const tarn_box *box);
/* After tarn_extract_choose() of all samples, and before tarn_extract_program() of any. Raises
 * TARN_NO_RESULT where their numbers are no polynomials in the sizes. */
TARN_API void tarn_family_schedule(tarn_family *f);

#define TARN_EXTRACT_SOLVERS (2 * TARN_HW_MACHINES)
typedef struct tarn_kgraph_options {
  const tarn_hw *hw;
  const tarn_price *price; /* NULL: analytic */
  /* The search for schedules on each machine; NULL: tarn_solver_new. */
  tarn_solver *(*solver)(tarn_lang *L, const tarn_hw *hw, uint32_t threads);
  /* NULL, or what extractions of one lang, hardware and price share: the solvers of each machine,
   * TARN_EXTRACT_SOLVERS, which the first that needs one makes. */
  tarn_solver **solvers;
  uint32_t threads;       /* 0: hw->units */
  bool strict;            /* numerics exact: reductions keep their order */
  uint32_t max_views;     /* (buffer, map) pairs kept per operand, at most 4; 0 = 4 */
  uint32_t max_orders;    /* storage orders per buffer; 0 = 3 */
  tarn_sel_method method; /* TARN_SEL_TREE counts shared buffers every time; default EXACT */
  double seconds;         /* for the selection; 0 = none: limited in steps, deterministic */
  uint64_t steps;         /* … so many; 0: TARN_EXTRACT_STEPS */
  tarn_buf *graph;        /* NULL, or where the kernel graph is printed */
  tarn_family *family;    /* NULL, or which this one is of, … */
  const int64_t *at;      /* … and its sizes */
  /* Schedules that the chosen kernels with these signatures get; they change no choice. */
  uint32_t ngiven;
  const tarn_plan_choice *given;
} tarn_kgraph_options;
/* A chosen kernel that reads windows, in seconds predicted: reading them in place, or from a copy
 * of them, made first (which is counted in). */
typedef struct tarn_ways {
  const char *kernel;
  double implicit, materialised;
} tarn_ways;
/* A kernel written by hand whose price is measured, and is not, at these sizes. */
typedef struct tarn_unmeasured {
  const tarn_written *w;
  int64_t size[TARN_WRITTEN_SIZES];
} tarn_unmeasured;
#define TARN_EXTRACT_STEPS UINT64_C(300000000) /* some seconds */
typedef struct tarn_kgraph_report {
  uint32_t buffers, orders, candidates; /* of the kernel graph */
  uint64_t signatures, price_uses, evaluations;
  uint64_t steps;                        /* of the selection */
  uint32_t cut_views, cut_orders;        /* what the limits dropped */
  double price, price_bound, tree_price; /* seconds predicted: chosen, lower bound over the graph
                                            after cuts, sharing-blind choice */
  bool optimal;
  const char *method, *price_name;
  uint32_t kernels, copies; /* chosen; copies apart */
  uint32_t nunmeasured;
  const tarn_unmeasured *unmeasured; /* kernels written by hand that are no candidates yet */
  uint32_t nways;
  const tarn_ways *ways; /* of the chosen kernels that have both */
} tarn_kgraph_report;
/* Builds the kernel graph, selects, gives the program. Raises TARN_NO_RESULT when some root has no
 * finite choice. *picks (may be NULL): the e-node chosen in each class that the program is made of,
 * for tarn_extract_pick(). */
typedef struct tarn_picks tarn_picks;
TARN_API tarn_kprog *tarn_extract(const tarn_kgraph_input *in, const tarn_kgraph_options *o,
                                  tarn_kgraph_report *r, tarn_picks **picks);
/* The same in two steps, between which in, o, r and the e-graph stay. */
typedef struct tarn_extraction tarn_extraction;
TARN_API tarn_extraction *tarn_extract_choose(const tarn_kgraph_input *in,
                                              const tarn_kgraph_options *o, tarn_kgraph_report *r);
TARN_API tarn_kprog *tarn_extract_program(tarn_extraction *x, tarn_picks **picks);
/* Between the two: chooses again, so that temporary buffers, each rounded up to `align`, take at
 * most `bytes` at once, and little time. False: nothing was found that does, and what needs least
 * is chosen. found: what it takes, and at which kernel. The price in r is that of the kernels alone
 * then, and its bound that of before. */
typedef struct tarn_room {
  int64_t bytes;
  const char *kernel;
} tarn_room;
TARN_API bool tarn_extract_within(tarn_extraction *x, int64_t bytes, int64_t align,
                                  tarn_room *found);
/* After that: does the buffer of that program hold the value of this term of in->program, and with
 * which strides over its dims? */
TARN_API bool tarn_extract_holds(tarn_extraction *x, uint32_t buffer, tarn_term t, tarn_layout *as);
/* What kernels are named after these nodes of a program: "layer1.0.conv1+bn1+relu". In cx. */
TARN_API const char *tarn_nodes_label(tarn_ctx *cx, const tarn_program *p, tarn_nodes nodes);
/* The chosen e-node of a class: a kernel's, a view's that leads to one, or a constant's; TARN_NONE
 * when the program does not need the class. */
TARN_API uint32_t tarn_extract_pick(const tarn_picks *p, uint32_t cls);

#ifdef __cplusplus
}
#endif
#endif
