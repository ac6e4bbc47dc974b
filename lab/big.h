/* Integers and fractions of any size, by GMP, as values that live in the context's arena.
 *
 * A big is immutable: its limbs, least first, and their number, which is negative where the value
 * is. Results longer than BIG_LIMBS have no value, so that no rule fills the memory with one
 * number. */
#ifndef TARN_LAB_BIG_H
#define TARN_LAB_BIG_H
#include "base/base.h"

enum { BIG_LIMBS = 1 << 12 };

typedef struct big {
  const uint64_t *p;
  int32_t n; /* 0: zero */
} big;
typedef struct bigrat { /* in lowest terms, den > 0 */
  big num, den;
} bigrat;

/* All raise TARN_MEMORY; false: there is no value. */
big big_from(tarn_ctx *cx, int64_t i);
bool big_parse(tarn_ctx *cx, const char *s, size_t n, big *out); /* decimal digits with a sign */
bool big_fits(const big *a, int64_t *out);
int big_compare(const big *a, const big *b);
void big_print(tarn_buf *b, const big *a);
/* + - * / % (truncated), & | ^; < and > shift by b. */
bool big_apply(tarn_ctx *cx, char op, const big *a, const big *b, big *out);

bool bigrat_make(tarn_ctx *cx, const big *num, const big *den, bigrat *out);
int bigrat_compare(const bigrat *a, const bigrat *b);
/* + - * /, and p: to a whole exponent of at most 1,000. */
bool bigrat_apply(tarn_ctx *cx, char op, const bigrat *a, const bigrat *b, bigrat *out);
/* f: floor, c: ceiling, r: to the nearest, halves away from zero. */
bigrat bigrat_round(tarn_ctx *cx, char how, const bigrat *a);
bigrat bigrat_negate(tarn_ctx *cx, const bigrat *a);
double bigrat_double(const bigrat *a);
#endif
