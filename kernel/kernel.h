/* tarn kernel: nests, the form of every computation in a kernel-level graph; layouts; canonical
 * kernels and their text. edit.h and loops.h change nests. */
#ifndef TARN_KERNEL_H
#define TARN_KERNEL_H
#include "access/access.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The normal form of a term (tarn_normalise) with every compute as a NEST that reads buffers
 * through its own maps: what a kernel-level graph starts from. Exactly equal to the term. Raises.
 */
TARN_API tarn_term tarn_kernel_form(tarn_lang *L, tarn_term t);

/* ---- layouts: from the logical dims of a buffer to an element offset ----
 *   offset + Σ_{a != baxis} i[a]·stride[a] + (i[b] / block)·stride[b] + (i[b] mod block)
 * block 0: no blocking. A blocked axis is padded up to a multiple of the block (the padding is zero
 * in constants). */
typedef struct tarn_layout {
  uint8_t n;
  int64_t dim[TARN_MAX_DIMS], stride[TARN_MAX_DIMS];
  int64_t offset;
  uint8_t baxis;
  int64_t block;
} tarn_layout;
TARN_API tarn_layout tarn_layout_row_major(uint32_t n, const int64_t *dim);
/* order[0] outermost … order[n-1] innermost; block > 0 blocks axis baxis with the block innermost.
 */
TARN_API tarn_layout tarn_layout_ordered(uint32_t n, const int64_t *dim, const uint8_t *order,
                                         uint8_t baxis, int64_t block);
TARN_API int64_t tarn_layout_elems(
    const tarn_layout *l); /* elements to allocate, offset excluded: from the offset to the last */
TARN_API int64_t tarn_layout_before(
    const tarn_layout *l); /* how many lie before the offset: dims walked backwards */
TARN_API int64_t tarn_layout_at(const tarn_layout *l, const int64_t *idx);
TARN_API bool tarn_layout_equal(const tarn_layout *a, const tarn_layout *b);
/* Does it leave out elements between its own? */
TARN_API bool tarn_layout_gaps(const tarn_layout *l);

#define TARN_MAX_RESULTS 4 /* of one kernel */
/* ---- canonical nests ----
 * The iteration space put in normal form: extent-1 dims dropped, dims split where a map divides by
 * a factor of their extent (so that maps become affine wherever possible), adjacent dims merged
 * where all maps and layouts allow it (contiguous in each), reduce dims likewise. in[i], out[i]:
 * layouts of children and outputs (a child's dims may be re-split to match; the new layouts are
 * returned). Two kernels that do the same work on the same shapes and layouts have equal (nest,
 * layouts): that pair, with dtypes and which operands are constant, is the kernel's signature. */
typedef struct tarn_ksig { /* a kernel to be scheduled and priced */
  uint32_t nest;
  bool strict; /* reduce dims keep their order (numerics `exact`) */
  uint32_t nin, nout;
  tarn_layout out[TARN_MAX_RESULTS];
  tarn_dtype in_type[TARN_MAX_OPERANDS], out_type[TARN_MAX_RESULTS];
  bool in_const[TARN_MAX_OPERANDS];
  /* Of tarn_ksig_matrices(), where known, else NULL: what lies there. Codes differ by it,
   * signatures and prices do not. */
  const float *in_numbers[TARN_MAX_OPERANDS];
  tarn_layout in[TARN_MAX_OPERANDS];
} tarn_ksig;
TARN_API void tarn_ksig_canonical(tarn_lang *L, tarn_ksig *k); /* in place; raises */
/* Of a canonical kernel: what all reads of an operand add goes into its layout's offset, in steps
 * of so many elements; TARN_KSIG_STEP keeps vectors and cache lines aligned. Kernels that work
 * alike on several parts of a buffer are equal then. Constants stay as they are. */
#define TARN_KSIG_STEP 16 /* elements */
TARN_API void tarn_ksig_rebase(tarn_lang *L, tarn_ksig *k, int64_t step);
/* Only the last step, of extents of 1 and of neighbours that everything walks as one; children that
 * are no constants become flat buffers. */
TARN_API void tarn_ksig_merge(tarn_lang *L, tarn_ksig *k);
/* Shared loop d of a kernel with several stages cut in blocks of block[d] (1: not cut; it divides
 * the extent): the loops within a block become own loops of every stage, so that a local buffer
 * holds a block of results, and each stage has a schedule of its own over it. behind: local buffers
 * lie along the block, else along what their stages owned before. False, and the kernel as it was,
 * when nothing is cut or the loops become too many. */
TARN_API bool tarn_ksig_cut(tarn_lang *L, tarn_ksig *k, const int64_t *block, bool behind);
/* Operands that a stage reads in steps along the dim along which its local buffer lies, several
 * times over: a further stage copies each into a buffer that lies along that dim too. False, and
 * the kernel as it was, when there is none. */
TARN_API bool tarn_ksig_gather(tarn_lang *L, tarn_ksig *k);
/* Operands of sums that a stage reads several times over in one trip of the shared loops, at most
 * so many bytes of each: a further stage copies each into a buffer that lies as the operand does.
 * False, and the kernel as it was, when there is none. */
TARN_API bool tarn_ksig_hold(tarn_lang *L, tarn_ksig *k, int64_t bytes);
/* Of a kernel of one stage: own dim d in blocks of `block`, shared loops over them and over
 * whatever else operand read `read` depends on, and within a block panels of `panel` (each divides
 * the one before it). A stage in front copies what the reduction walks of that operand into a local
 * buffer, panel by panel. False, and the kernel as it was, when that is not possible. */
TARN_API bool tarn_ksig_pack(tarn_lang *L, tarn_ksig *k, uint32_t read, uint32_t d, int64_t block,
                             int64_t panel);
TARN_API bool tarn_ksig_equal(const tarn_ksig *a, const tarn_ksig *b); /* whatever the offsets */
/* Bytes that are equal where tarn_ksig_equal() says so, within this program: a key for tables. */
TARN_API void tarn_ksig_key(const tarn_ksig *k, tarn_buf *b);
TARN_API uint64_t
tarn_ksig_hash(const tarn_ksig *k); /* within this program: nests by their number */
/* ---- the same kernel at several sizes (numbers.c) ---- */
typedef struct tarn_numbers {
  int64_t *p;
  uint32_t n, cap;
} tarn_numbers;
/* Adds to `form` all of it but the numbers that may depend on a size, which go to `number`: first
 * the extents, of the shared loops, then of each stage's own and reduce dims. */
TARN_API void tarn_ksig_form(const tarn_lang *L, const tarn_ksig *k, tarn_buf *form,
                             tarn_numbers *number);
/* A number as a polynomial in the sizes of its tensors: Σ coef · Π size^power over `over`, which
 * leaves no remainder; few terms, none of them the same, in lowest terms. */
#define TARN_MOST_SIZES 4 /* that are open */
#define TARN_POLY_TERMS 4
typedef struct tarn_poly_term {
  int64_t coef;
  uint8_t power[TARN_MOST_SIZES];
} tarn_poly_term;
typedef struct tarn_poly {
  uint32_t n;
  tarn_poly_term t[TARN_POLY_TERMS];
  int64_t over;
} tarn_poly;
/* Choices of sizes, from a box that holds lo, lo + step … hi of each. */
typedef struct tarn_points {
  uint32_t n, sizes;
  const int64_t *const *at;
  const int64_t *lo, *hi, *step;
} tarn_points;
/* The simplest through v[i] at point i: of fewest terms, and fewer than there are points, so that
 * one at least confirms it; a whole number at each choice of the box, which is proved. False: there
 * is none. */
TARN_API bool tarn_poly_through(const tarn_points *p, const int64_t *v, tarn_poly *out);
TARN_API int64_t tarn_poly_at(const tarn_poly *p, const int64_t *size);
/* Does it rise, or stay, as any size of the box does? False: that is not seen. */
TARN_API bool tarn_poly_rises(const tarn_poly *p, const tarn_points *box);

/* Why no program of this kernel may run: results of other shapes or types than its nest computes,
 * whose elements share places, buffers too large for any memory …; NULL: it may. Reading a kernel's
 * text asks it. */
TARN_API const char *tarn_ksig_wrong(tarn_lang *L, const tarn_ksig *k);
/* A kernel and a schedule as text that means the same in every program, offsets left out; parsing
 * raises TARN_BAD_INPUT, so does a schedule that does not fit its nest. Texts lie in cx. */
TARN_API const char *tarn_ksig_text(const tarn_lang *L, tarn_ctx *cx, const tarn_ksig *k);
TARN_API void tarn_ksig_parse(tarn_lang *L, const char *text, size_t n, tarn_ksig *k);
TARN_API void tarn_ksig_read(tarn_lang *L, const tarn_sx *s, tarn_ksig *k); /* of a larger text */

#ifdef __cplusplus
}
#endif
#endif
