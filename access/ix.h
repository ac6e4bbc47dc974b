/* access: linear forms, the working representation of index expressions (ix.c), shared with the map
 * files.
 *
 * A tarn_lin is a sum  c + Σ coef × atom.  In core form its atoms are VAR and DIV only: e mod d is
 * written e - d·floor(e/d), so that everything that can cancel does.  An interned tarn_ix is the
 * packed form of a core form: MOD is put back where it shortens, by a deterministic procedure; so
 * equal core forms have equal ids.
 */
#ifndef TARN_ACCESS_IX_H
#define TARN_ACCESS_IX_H
#include "access/internal.h"

#define TARN_LIN_MAX 40
typedef struct tarn_lin {
  int64_t c;
  uint32_t n;
  tarn_ixterm t[TARN_LIN_MAX];
} tarn_lin;

/* What is known where an expression is evaluated: inclusive bounds of the dims, and further guards.
 */
typedef struct tarn_box {
  int64_t lo[TARN_MAX_DIMS], hi[TARN_MAX_DIMS];
  uint32_t nguard;
  tarn_guard guard[2 * TARN_MAX_DIMS];
} tarn_box;

void tarn_box_of(tarn_box *b, uint32_t n,
                 const int64_t *extent); /* dims of extent 0 or 1 are the constant 0 */
/* Adds a guard as a fact. False when it leaves nothing. */
bool tarn_box_assume(const tarn_lang *L, tarn_box *b, const tarn_guard *g);

/* All raise TARN_BAD_INPUT when a coefficient does not fit in 64 bits or there are too many terms.
 */
void tarn_lin_var(tarn_lang *L, tarn_lin *out, int64_t k, uint32_t dim,
                  const tarn_box *b);                                         /* out += k·dim */
void tarn_lin_add(tarn_lang *L, tarn_lin *out, int64_t k, const tarn_lin *a); /* out += k·a */
/* out += k·floor(num / d); num, a core form, is used up. */
void tarn_lin_div(tarn_lang *L, tarn_lin *out, int64_t k, tarn_lin *num, int64_t d,
                  const tarn_box *b);
/* out += k·(num mod d); num, a core form, is used up. */
void tarn_lin_mod(tarn_lang *L, tarn_lin *out, int64_t k, tarn_lin *num, int64_t d,
                  const tarn_box *b);
/* out += k·ix, dim i replaced by sub[i]; sub NULL keeps the dims and simplifies anew under the box.
 */
void tarn_lin_ix(tarn_lang *L, tarn_lin *out, int64_t k, uint32_t ix, const tarn_lin *sub,
                 const tarn_box *b);
/* Core -> packed, sorted. digits: not the form that is interned but the one that splits every
 * quotient from its remainder, even where that gives no shorter sum (for reading off mixed-radix
 * digits). */
void tarn_lin_pack(tarn_lang *L, tarn_lin *a, const tarn_box *b, bool digits);
/* Inclusive range of a core form. */
void tarn_lin_range(tarn_lang *L, const tarn_lin *a, const tarn_box *b, int64_t *lo, int64_t *hi);
/* lo <= a < hi as bounds on fewer terms, where the small terms cannot matter: a (core) and the
 * bounds are replaced. */
bool tarn_lin_peel_bounds(tarn_lang *L, tarn_lin *a, int64_t *lo, int64_t *hi, const tarn_box *b);
/* e with the sums that the box's guards fix to one value replaced by it. */
uint32_t tarn_ix_pin(tarn_lang *L, uint32_t e, const tarn_box *b);
/* Range of an interned expression; guards before number `from` are not used. */
void tarn_ix_range_in(const tarn_lang *L, uint32_t ix, const tarn_box *b, uint32_t from,
                      int64_t *lo, int64_t *hi);
void tarn_ix_mark(const tarn_lang *L, uint32_t a, bool *used); /* sets used[dim] for its dims */
void tarn_ix_mark_term(const tarn_lang *L, const tarn_ixterm *t, bool *used);
int64_t tarn_ix_eval_term(const tarn_lang *L, const tarn_ixterm *t,
                          const int64_t *dims); /* with its coefficient */
uint32_t tarn_lin_intern(tarn_lang *L, const tarn_lin *a, const tarn_box *b); /* a: core */
/* A total order that does not depend on ids, hence not on history. */
int tarn_ix_cmp(const tarn_lang *L, uint32_t a, uint32_t b);

/* Normalises and interns without checking that e stays in `in` (the caller knows). TARN_NONE: too
 * many guards. */
uint32_t tarn_map_make(tarn_lang *L, tarn_imap *m, uint32_t nguard, const tarn_guard *guard);
#endif
