/* kernel: changes the computation of a nest.
 *
 * A client loads a nest, substitutes index maps and scalar expressions in it, and stores it again.
 * Storing makes equal nests identical: reads in the order in which the expressions first use
 * them, each once; stages that nobody reads dropped; children in order of first use, each once;
 * shared loops of a single stage become its own. */
#ifndef TARN_KERNEL_EDIT_H
#define TARN_KERNEL_EDIT_H
#include "kernel/maps.h"

/* Where the nests live: terms, or classes of an e-graph. Ids are terms or classes. */
typedef struct kern_host {
  tarn_lang *L;
  void *user;
  uint32_t (*type)(void *user, uint32_t id);
  /* A new node; TARN_NONE when it is ill-typed or refused. */
  uint32_t (*mk)(void *user, uint32_t op, uint32_t payload, const uint32_t *kid, uint32_t n);
  /* Some node of `id` that fits: an op and a test of its payload; the least by (payload, kids).
   * false: none. */
  bool (*open)(void *user, uint32_t id, uint32_t op,
               bool (*test)(void *arg, uint32_t payload, const uint32_t *kid, uint32_t n),
               void *arg, uint32_t *payload, const uint32_t **kid, uint32_t *n);
} kern_host;
kern_host kern_term_host(tarn_lang *L); /* plain terms */
enum { KERN_KIDS = 128 };               /* of a node */

enum { K_READS = 144, K_STAGES = 8, K_LEAVES = 144, K_FX = 400 };

typedef struct kstage {
  uint32_t nown, nred;
  int64_t own[TARN_MAX_DIMS], red[TARN_MAX_DIMS];
  uint32_t body, reducer, epi; /* reducer, epi: TARN_NONE when absent */
  uint32_t nb, ne;             /* reads of the body, then of the epilogue */
  tarn_read read[K_READS];     /* src of a child: index into leaf */
  bool out;
  uint32_t space;
} kstage;

typedef struct kern {
  const kern_host *host;
  tarn_lang *L;
  uint32_t depth, out_ns;
  int64_t shared[TARN_MAX_DIMS];
  uint32_t nstage;
  kstage stage[K_STAGES];
  uint32_t nleaf;
  uint32_t leaf[K_LEAVES]; /* ids of the host */
  bool wide; /* may be stored with more operands than a kernel that is emitted may have */
} kern;

/* False when it is larger than a kern holds. */
bool kern_load(kern *k, const kern_host *host, uint32_t nest, const uint32_t *leaf, uint32_t n);
/* The node over the host; TARN_NONE when it is too large or refused. */
uint32_t kern_store(kern *k);
/* What it would be stored as; false: it is too large. */
bool kern_payload(kern *k, uint32_t *payload);
/* Reads in order and each once, no stages and children that nothing reads; false: an expression is
 * too large. */
bool kern_tidy(kern *k);
/* A kernel of at most so many operands can be emitted; larger ones are stored where `wide` says so.
 */
bool kern_fits(const kern *k);
/* Parts of the expressions become kernels of their own, until it fits; false: there is no way.
 * operands.c */
bool kern_take_apart(kern *k);
/* A map kernel over the chosen loops: f over these reads (holes 0…n-1), whose maps are over the
 * loops `dim`. */
uint32_t kern_part(const kern *k, const int64_t *dim, uint32_t ndim, const uint32_t *axis,
                   uint32_t naxis, uint32_t f, const tarn_read *read, uint32_t n);
/* The same of one read, reducing the last nred of the chosen loops. */
uint32_t kern_reduced(const kern *k, const int64_t *dim, uint32_t ndim, const uint32_t *axis,
                      uint32_t nown, uint32_t nred, uint32_t reducer, uint32_t f, uint32_t epi,
                      tarn_read read);
/* A map kernel: f of each element of a tensor, seen through this map; TARN_NONE: as it is. */
uint32_t kern_of_tensor(const kern *k, uint32_t id, uint32_t map, uint32_t f);

uint32_t kern_leaf(kern *k, uint32_t id); /* index of a child, added when new; TARN_NONE: full */
const tarn_type *kern_leaf_type(const kern *k, uint32_t leaf);
/* Dims of a stage: shared, own, and (body) reduce. */
uint32_t kern_dims(const kern *k, const kstage *s, bool body, int64_t *dim);
/* Dims of the result: shared and the last stage's own. */
uint32_t kern_out(const kern *k, int64_t *dim);
bool kern_single(const kern *k); /* one stage */
bool kern_is_map(const kern *k); /* one stage without reduction */
bool kern_has_reduction(const kern *k);
bool kern_is_product(
    const kern *k,
    tarn_dtype sum); /* one stage: the sum in that type of $0 * $1, both of children */
kstage *kern_last(kern *k);
uint32_t kern_outputs(const kern *k);

/* Adds a read to the body (or epilogue) of a stage; its number among the holes' operands, or
 * TARN_NONE. */
uint32_t kern_add_read(kstage *s, bool body, tarn_read r);
/* Changes the loops of a nest: `to` says for new loop i of the free ones which old one it is (a
 * permutation of them); the first d become shared, the others each stage's own. Free loops: a
 * single stage's own (and shared), else the shared. */
bool kern_reorder(kern *k, const uint32_t *to, uint32_t d);
uint32_t kern_free_loops(const kern *k);
/* The own loops of a single stage become what `map` says of them, over its dims; it has no guards.
 * False: more stages, shared loops, or too many. */
bool kern_own_as(kern *k, uint32_t map);

/* The stages of another nest, which has the same shared loops, after those of k; false: too many.
 */
bool kern_append(kern *k, const kern *more);
/* How many of the first access dims of the result choose of the child only what its n dims from
 * `axis` on say: samples, where these dims are of indices. */
uint32_t kern_samples(const kern *k, uint32_t axis, uint32_t n);
/* k becomes k and then p, two results, the first n loops shared; p is spent. False: these loops
 * differ, or one of them has several results. */
bool kern_beside(kern *k, kern *p, uint32_t n);

/* Expressions: the distinct nodes in the order in which a walk from the left first leaves them;
 * false: more than K_FX. */
typedef struct fxwalk {
  uint32_t n, id[K_FX];
  tarn_fxkids kid[K_FX]; /* where the operands are */
} fxwalk;
bool fx_walk(const tarn_lang *L, uint32_t f, fxwalk *w);
/* op over kids, as the node x was */

/* A view that the node (with these kids) is, or TARN_NONE (kernel_views.c). */
tarn_term kern_view(tarn_lang *L, const tarn_node *x, const tarn_term *kid);
/* Loads a nest of the class that has at most so many children (K_LEAVES: all) and fits: the least
 * by (payload, kids). */
bool kern_open(kern *k, const kern_host *host, uint32_t id, uint32_t most,
               bool (*fits)(const kern *k), uint32_t *payload, const uint32_t **kid, uint32_t *n);
/* f with the nodes `node` replaced by `with`. */
uint32_t fx_replace(tarn_lang *L, uint32_t f, const uint32_t *node, const uint32_t *with,
                    uint32_t n);
/* The kernel form of a term; memo: normalised term -> its kernel form + 1, kept from call to call.
 * host: of terms. */
tarn_term kern_form(const kern_host *host, tarn_map *memo, tarn_term t);

/* Maps that differ by shifts which form a grid (grid.c). */
enum { R_TAPS = 128, R_GRID = 4 };
typedef struct grid {
  tarn_lang *L; /* set by the caller */
  uint32_t n, ngrid;
  int64_t extent[R_GRID], at[R_TAPS][R_GRID]; /* coordinates by tap */
} grid;
bool grid_find(grid *g, const uint32_t *map,
               uint32_t n); /* the grid that the shifts of these maps form */
bool grid_order(const grid *g,
                uint32_t *tap); /* taps in row-major order of the grid; false: not one each */
bool grid_wider(const grid *g, const tarn_imap *m,
                tarn_imap *out); /* the dims of a map, then the grid's */
uint32_t grid_map(const grid *g, const uint32_t *map,
                  uint32_t origin); /* all maps as one; origin: the first tap. TARN_NONE */

#endif
