/* What the files of the kernel graph share.
 *
 * A group is a buffer: the e-classes that are bijective views of one another. Its logical dims are
 * those of its representative class; to_rep maps each member's dims to them. A group has storage
 * orders (layouts over the representative's dims) in each of the places; an AND/OR class of the
 * selection problem is a (group, place, layout), its nodes are kernels. */
#ifndef TARN_KGRAPH_H
#define TARN_KGRAPH_H
#include "base/limit.h"
#include "extract/extract.h"

#define KG_MAX_LAYOUTS 8
#define KG_MAX_VIEWS   4
#define KG_MAX_OUT     TARN_MAX_RESULTS
#define KG_MAX_KIDS    TARN_MAX_OPERANDS /* of a nest */

typedef struct kclass { /* an e-class that matters */
  uint32_t cls, type, group;
  uint32_t to_rep; /* map: this class's dims -> the representative's */
  bool constant;
} kclass;
typedef struct kview {
  uint32_t group, map;
} kview; /* map: an operand's dims -> the group's dims */
typedef struct kgroup {
  uint32_t rep; /* kclass number */
  uint32_t type;
  bool produced, input, constant, root;
  uint32_t gather;         /* an e-node that gathers it, TARN_NONE: there is none */
  uint32_t gathered;       /* its class */
  bool walked;             /* an operand of a product of two variables */
  uint32_t summed;         /* dims that products with constants sum along */
  bool single;             /* a product with a vector of constants writes it: in one column */
  uint32_t nlayout, first; /* first: AND/OR class of layout 0 */
  tarn_layout layout[KG_MAX_LAYOUTS];
  uint32_t part_of[KG_MAX_LAYOUTS]; /* the concatenation this layout lies in, or TARN_NONE: group *
                                       KG_MAX_LAYOUTS + layout */
  bool fixed;                       /* it has layout 0 and gets no other: see kshared.c */
  uint32_t demand;                  /* layout 0 is demanded (an input's or an output's own order) */
  uint32_t inner[KG_MAX_LAYOUTS];   /* masks of dims that some kernel likes innermost */
  uint32_t ninner;
} kgroup;

/* Blocks of the loops that the stages of a nest share (tarn_ksig_cut): at most KG_MAX_CUTS ways
 * worth a price. */
#define KG_MAX_CUTS 10
typedef struct kcut {
  int64_t block[TARN_MAX_DIMS];
  bool behind, gather; /* gather: tarn_ksig_gather() after it */
  int64_t hold;        /* > 0: tarn_ksig_hold() of so many bytes after it */
  bool more;           /* the nest as it is may be as good */
  bool pack; /* instead: tarn_ksig_pack() of read `read`, own dim `dim` in blocks of block[0],
                panels of block[1] */
  uint32_t read, dim;
} kcut;
/* Constants that a candidate reads, its nest opened, put into the order in which the loops walk
 * them: one dim for each loop, the last one that along which the result is written; or a dim of
 * their own where the result does not go along any of theirs; or that of the sum. (kconst.c) */
typedef enum kg_order { KG_WRITTEN, KG_ACROSS, KG_SUMMED } kg_order;
/* How a candidate came from its node. */
typedef struct kway {
  bool cut;
  kcut c; /* a block of KG_WHOLE: the whole extent */
  kg_order how;
} kway;
#define KG_WHOLE 0

/* NEST, OTHER (gather, opaque, called) are kernels; CONCAT lays its parts side by side; ALIAS is a
 * program output, or a part of a concatenation, that is another buffer as it stands; NTH is one
 * result of a kernel with several, whose AND/OR class is its only child; MOVE is a copy to another
 * place. */
typedef enum { KC_INPUT, KC_NEST, KC_CONCAT, KC_OTHER, KC_ALIAS, KC_NTH, KC_MOVE } kcand_kind;
typedef struct kcand {
  kcand_kind kind;
  uint32_t node;       /* e-node it comes from, TARN_NONE for copies */
  uint32_t kcls;       /* the class whose value it computes */
  uint32_t nest;       /* before canonicalising */
  uint32_t nchild;     /* of the nest (or concat, opaque) */
  uint32_t *child;     /* AND/OR class; constants: TARN_NONE */
  uint32_t *cterm;     /* constants: the (packed) term; else TARN_NONE */
  tarn_layout *in;     /* layout per child */
  tarn_layout *stored; /* NULL: as `in`; of constants, over the dims of cterm */
  tarn_layout *out;    /* layout per result; once it is added, candidates share theirs and `in` */
  uint32_t nout;
  uint32_t op, payload; /* OTHER, INPUT */
  uint32_t nth;         /* NTH: which result */
  bool copy;
  uint32_t machine; /* that runs it */
  uint32_t place;   /* where its result lies */
  double price;
  const kway *way;           /* of a node, for families; else NULL */
  const struct klooks *look; /* gathers that it reads through; NULL: none */
} kcand;

/* What prices the kernels of a machine. */
typedef struct kmachine {
  const tarn_hw *hw;
  const tarn_price *price;
  tarn_solver *solver;
  tarn_solver_stats before; /* what it had done for other programs */
  uint32_t threads;
} kmachine;

/* The kernels of an accelerator that compute a class from the same buffers, in whatever order. */
typedef struct ktried {
  double seconds;       /* the least; INFINITY: none can be */
  const tarn_ksig *sig; /* then: of which least is missing */
  uint32_t near;        /* how little */
} ktried;
/* By AND/OR class; NULL: no kernels run on the host of a GPU. readers: candidates on the host. */
typedef struct ksides {
  uint8_t *made, *read;
  uint32_t *readers;
} ksides;

/* An input that lies in an output: their groups and, over the dims of these, their orders. */
typedef struct kshared {
  tarn_in_place x;
  uint32_t in_group, out_group; /* in_group: TARN_NONE where there are no old rows */
  tarn_layout in_order, out_order;
} kshared;

typedef struct kgraph {
  const tarn_kgraph_input *in;
  const tarn_kgraph_options *o;
  tarn_lang *L;
  tarn_ctx *cx;
  tarn_egraph *g;
  tarn_machines machines;
  kmachine of[TARN_HW_MACHINES], now; /* now: of the machine whose kernels are looked at */
  uint32_t machine, place;            /* that machine's number, and its place */
  tarn_map *by_class;                 /* e-class -> 1 + kclass number */
  TARN_VEC(kclass) cls;
  TARN_VEC(kgroup) group;
  uint32_t nag; /* AND/OR classes: group layouts, then roots */
  TARN_VEC(kcand) cand;
  TARN_VEC(uint32_t) cand_class; /* AND/OR class per candidate */
  ksides sides;
  tarn_intern *layouts;           /* lists of them, of candidates */
  uint32_t *root_class;           /* AND/OR class per root */
  tarn_map *numbers;              /* small matrices as they lie: by term and layout */
  TARN_VEC(tarn_term) const_term; /* per kclass: of a constant class, TARN_NONE until asked */
  tarn_map *pick;                 /* e-class -> 1 + chosen e-node */
  tarn_map *whole_of; /* AND/OR class of a part -> that of the concatenation it lies in */
  TARN_VEC(kshared) shared;
  tarn_map *part_copies;  /* AND/OR classes of copied parts, by what and where */
  const char **label;     /* per AND/OR class: the model's nodes, see knames.c; NULL: none */
  tarn_nodes *nodes;      /* the same, as numbers of origins */
  const uint32_t *buffer; /* of the program: per AND/OR class, TARN_NONE; NULL before it is made */
  tarn_map *tried;        /* kg_work_of() -> ktried */
  double *rent;           /* seconds for the buffer of an AND/OR class, kroom.c; NULL: none */
  struct kways *by_group; /* see kways.c; NULL before it is asked for */
  TARN_VEC(tarn_ways) ways;
  TARN_VEC(tarn_unmeasured) unmeasured;
  tarn_kgraph_report *r;
} kgraph;
struct tarn_picks {
  tarn_egraph *g;
  tarn_map *pick;
};
struct tarn_extraction {
  kgraph k;
  const uint32_t *choice, *first; /* first: without a budget of memory */
  tarn_kgraph_report of_first;
};
const uint32_t *kg_choose(kgraph *k); /* per AND/OR class: candidate or TARN_NONE */

/* The AND/OR class of a group's layout in the place that is looked at. */
static inline uint32_t kg_ag(const kgraph *k, const kgroup *g, uint32_t layout) {
  return g->first + k->place * g->nlayout + layout;
}
/* The group of an AND/OR class, in whatever place; TARN_NONE: of an output, a copied part, a tuple.
 * Groups have their classes one after the other. */
uint32_t kg_group_of(const kgraph *k, uint32_t ag);
void kg_sequence(kgraph *k, tarn_kprog *p);  /* ksequence.c: kernels in the order of least memory */
void kg_machines(kgraph *k);                 /* kplace.c: the machines of the description */
void kg_machine(kgraph *k, uint32_t number); /* looks at one of them from now on */
void kg_moves(kgraph *k);                    /* copies between places as candidates */
/* kshared.c: fixes the orders of inputs that lie in outputs, before others are thought of. */
void kg_share(kgraph *k);
/* The pair that an input or output of the program is of; NULL: it has memory of its own. */
const tarn_in_place *kg_shared_port(const kgraph *k, bool output, uint32_t port);
/* May this candidate compute class ag? Of an output that has an input in it: with that alone. */
bool kg_shared_allows(const kgraph *k, uint32_t ag, const kcand *c);
/* Of a GPU's program: who makes and reads what each class holds; before kg_exchanged(). */
void kg_sides(kgraph *k);
/* Seconds of the copies between host and device that candidate c of class ag makes certain. */
double kg_exchanged(const kgraph *k, uint32_t ag, const kcand *c);
uint32_t kg_next_node(const kgraph *k, uint32_t eclass,
                      uint32_t node); /* those left out are passed over */
#define EACH_NODE(k, c, n)                                                                         \
  for (uint32_t n = kg_next_node(k, c, TARN_NONE); n != TARN_NONE; n = kg_next_node(k, c, n))
uint32_t kg_class(const kgraph *k, uint32_t eclass); /* kclass number of an e-class */
/* What class ag holds is written into the storage of class whole. */
static inline void kg_lies_in(kgraph *k, uint32_t ag, uint32_t whole) {
  bool fresh;
  *tarn_map_at(k->whole_of, ag, &fresh) = whole;
}
bool kg_produces(uint32_t op);
/* The nest that a compute or a nest of at most KG_MAX_KIDS children is. */
uint32_t kg_nest_of(kgraph *k, const tarn_eg_node *e);
void kg_groups(kgraph *k);  /* classes, groups, maps to representatives */
void kg_layouts(kgraph *k); /* storage orders */
/* Where operand class c (kclass number) can be read from; not from group `but` (TARN_NONE: from
 * any). */
uint32_t kg_views(kgraph *k, uint32_t c, uint32_t but, kview out[KG_MAX_VIEWS]);
void kg_candidates(kgraph *k); /* kernels and their prices */
/* An operand as a candidate sees it: a buffer through a map, or a constant. */
typedef struct koperand {
  bool constant;
  uint32_t kcls, nv;
  kview v[KG_MAX_VIEWS]; /* constant: v[0].map leads to term */
  tarn_term term;        /* constant: what is stored, broadcasts and other views taken off */
} koperand;
/* Operands that a gather gives, read where the gather's operands lie: `table` stands in the place
 * of the operand, `index` behind all of them. (klook.c) */
typedef struct klook {
  uint32_t node, kcls;     /* the gather */
  uint32_t child, index;   /* numbers of its operands, among the candidate's */
  uint32_t axis, view;     /* view: from the operand's dims to the gather's */
  uint32_t table, indices; /* types */
} klook;
typedef struct klooks {
  uint32_t n;
  klook at[KG_MAX_KIDS];
} klooks;
static inline bool kg_looked_up(const klooks *look, uint32_t child) {
  bool is = false;
  for (uint32_t i = 0; look && i < look->n; i++) is |= look->at[i].child == child;
  return is;
}
/* Its lists are copied, but for `stored`. */
void kg_add_cand(kgraph *k, uint32_t ag, kcand c);
/* A candidate with one result and n children, none of which is said yet. */
kcand kg_new_cand(kgraph *k, kcand_kind kind, uint32_t node, uint32_t kcls, uint32_t n);
uint32_t kg_identity_nest(kgraph *k, uint32_t type);
/* ---- variants of a nest (kvariants.c) ---- */
struct knest;
/* Where a candidate writes: AND/OR class, and per result a layout over the dims of its class. */
typedef struct ktarget {
  uint32_t ag, kcls; /* kcls: of the single result, or of the tuple */
  uint32_t nout;
  tarn_layout out[KG_MAX_OUT];
} ktarget;
/* How the operands of a candidate are read: op[j] as v[j], in layout pick[j] of where that leads.
 */
typedef struct kreading {
  uint32_t n;
  const koperand *op;
  const kview *const *v;
  const uint32_t *pick;
  const klooks *look; /* NULL: nothing is looked up */
} kreading;
/* A nest candidate for operands read in this way. over: the group layout to write when the nest has
 * to be put over the representative's dims first, else NULL. */
void kg_nest_cand(kgraph *k, const ktarget *to, uint32_t node, uint32_t nest, const kreading *r,
                  const tarn_layout *over, bool copy);
/* The same for combinations of views and layouts of the operands, the likeliest first: all of them,
 * at most 32, of operands that few can be read in several ways. */
void kg_combos(kgraph *k, const ktarget *to, uint32_t node, uint32_t nest, uint32_t nk,
               const koperand *op, const klooks *look, const tarn_layout *over, bool copy);
/* Of each operand that a gather gives, the gather's table takes the place, and its indices follow
 * the nk operands: *more of them. NULL: there is no such operand. */
const klooks *kg_looks(kgraph *k, uint32_t nk, koperand *op, uint32_t *more);
/* In w, what is read of the gathered operand is read of the table. False: it cannot be. v: how the
 * operands are read. */
bool kg_look_up(kgraph *k, struct knest *w, const klook *l, const kview *const *v);
/* Where a class can be read from but group `but`; false: a constant without a term. */
bool kg_operand(kgraph *k, uint32_t kcls, uint32_t but, koperand *op);
/* A copy of one operand; of constants nothing is packed. */
void kg_copy_cand(kgraph *k, const ktarget *to, uint32_t nest, const kreading *r);
/* Canonical signature of a nest candidate. */
void kg_signature(kgraph *k, const kcand *c, tarn_ksig *sig);
/* What a selection is told of a kernel with this schedule; cost: tarn_solve()'s. */
double kg_price(const kgraph *k, const tarn_ksig *sig, const tarn_schedule *s,
                const tarn_cost *cost);
bool kg_price_cand(kgraph *k, kcand *c); /* of a nest; false: the machine cannot run it */
/* The same for candidates that compute the same class from the same buffers, in whatever order. */
uint64_t kg_work_of(const kgraph *k, const kcand *c);
/* kcall.c: calls of kernels written by hand. */
const tarn_written *kg_written(const kgraph *k, const tarn_eg_node *e); /* NULL: it is none */
void kg_call(kgraph *k, uint32_t kc, uint32_t node, const tarn_eg_node *e, const koperand *op);
/* What a call does is what the program does without it, from its operands to its result. */
typedef struct kwork {
  double flops, slots, products;
} kwork;
kwork kg_call_work(kgraph *k, uint32_t kc, uint32_t node);
tarn_term kg_constant(kgraph *k, uint32_t c); /* a term for constant class c */
tarn_kprog *kg_program(kgraph *k,
                       const uint32_t *choice_cand); /* per AND/OR class: candidate or TARN_NONE */
/* From the dims of its group's representative to the class's own, whatever their splits. */
uint32_t kg_from_rep(kgraph *k, uint32_t c);
/* The strides that layout l of group gr has when walked over class c's dims; false when they are
 * not constant. */
bool kg_layout_over(kgraph *k, const tarn_layout *l, uint32_t to_rep, tarn_layout *out);
/* One more storage order of a group that has fewer than max; false: it has not got it. */
bool kg_add_order(kgraph *k, kgroup *g, const tarn_layout *l, uint32_t part_of, uint32_t max);
void kg_concat_room(kgraph *k);  /* kconcat.c: rows as far apart as parts need */
void kg_concat_parts(kgraph *k); /* parts where the whole wants them */
/* The layout of one part of a concatenation whose whole is laid out over its own dims. */
tarn_layout kg_part(const tarn_layout *whole, const tarn_type *part, uint32_t axis, int64_t at);
/* The part is a view that leaves out the ends of a larger buffer: that buffer's layout where the
 * part lies in its place, and the rest between and behind the rows of the whole. False: there is no
 * room for it. */
bool kg_part_with_more(kgraph *k, uint32_t part, const kview *v, const tarn_layout *whole,
                       uint32_t axis, int64_t at, tarn_layout *over);
/* Notes both ways to read windows, if what the chosen candidate computes from its operands can be
 * computed in both (kways.c).
 */
void kg_ways(kgraph *k, uint32_t ag, const kcand *chosen, const char *kernel);
uint32_t kg_cuts(kgraph *k, uint32_t nest, kcut out[KG_MAX_CUTS]);
/* Blocks of an operand that is no constant, to be copied together before all rows of a product go
 * over them. Loops that all operands walk as one are merged (tarn_ksig_merge). */
uint32_t kg_packs(kgraph *k, const tarn_ksig *sig, kcut out[KG_MAX_CUTS]);
/* False: there is none. */
bool kg_pack_constants(kgraph *k, struct knest *w, kcand *c, kg_order how);
/* What lies there of a small constant, from offset 0 on; NULL: its values are not known. */
const float *kg_numbers(kgraph *k, tarn_term t, const tarn_layout *l);
/* ---- families (kfamily.c) ---- */
bool kg_replays(const kgraph *k);                /* only kernels that the first one chose */
bool kg_may_cut(const kgraph *k, int64_t block); /* does it depend on no size? */
int64_t kg_offset_step(const kgraph *k);         /* for tarn_ksig_rebase() */
bool kg_family_price(kgraph *k, const tarn_ksig *sig, kcand *c); /* false: it is none of them */
uint32_t kg_family_ways(const kgraph *k, const kway *const **way);
/* How a constant of these dims lies: row-major, or as a part of a larger one. */
tarn_layout kg_family_layout(const kgraph *k, tarn_dtype t, uint32_t n, const int64_t *dim);
void kg_family_first(kgraph *k, const uint32_t *choice); /* what was chosen */
/* That choice; raises, where a kernel of the family has no candidate. */
const uint32_t *kg_family_again(kgraph *k);
const tarn_schedule *kg_family_schedule(const kgraph *k, uint32_t number, const tarn_ksig *sig,
                                        tarn_cost *cost);
/* As text, with what was chosen for each AND/OR class (kprint.c). */
void kg_print(const kgraph *k, const uint32_t *choice, tarn_buf *b);
/* k->label, k->nodes: what the chosen kernels compute, in the words of the model (knames.c). */
void kg_names(kgraph *k, const uint32_t *choice);
#endif
