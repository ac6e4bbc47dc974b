/* Trying a program: what rounding does to a result, whether one is right, and inputs to try it on.
 */
#ifndef TARN_ACCESS_JUDGE_H
#define TARN_ACCESS_JUDGE_H
#include "access/access.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- what rounding does
 * A noisy run is strict, but each operator's one rounding, and that of each partial sum, goes up or
 * down at random where the result is inexact: what is exact (integers, zeros, products with powers
 * of two) stays so. Elementary functions are off by up to four units in the last place. What
 * `opaque` computes has no noise of its own. Source: Vignes, "A stochastic arithmetic for reliable
 * scientific computation", Math. Comp. Simulation 35 (1993). */
typedef struct tarn_noise {
  uint64_t seed;   /* determines the run */
  double products; /* the products of a sum of products are off by up to this, of themselves,
                      besides: other algorithms */
  bool sums; /* sums and differences of f32 and f64 are off by about a unit in the last place of the
                larger operand, exact or not, unless both are short numbers (counts, masks): in
                another order they round, and k·x - k·c does where x - c is exact. So are quotients,
                but by a power of two: a product with the reciprocal rounds */
  bool apart; /* operands of an operator that compares nothing are rounded one by one, as if each
                 reader of a value had computed it anew */
  bool some;  /* only half of the operators do so at a time: a difference of equal numbers that one
                 kernel rounds may be divided by one that another does not */
  int toward; /* not 0: all roundings go up (1) or down (-1), and sums are off that way */
} tarn_noise;
TARN_API void tarn_eval_noisy(tarn_lang *L, const tarn_term *root, uint32_t nroot,
                              const tarn_binding *in, uint32_t nin, tarn_noise noise,
                              tarn_opaque_fn *opaque, tarn_tensor **out);

/* A root in strict and in wide arithmetic, and what rounding does to each element of it (f64): the
 * largest distance of the strict and the noisy runs from wide, infinite where rounding decides
 * whether the element is finite, or which of NaN, -inf and inf it is. Where the strict one alone is
 * not finite (f32 overflows) the noisy ones count. */
typedef struct tarn_rounding {
  tarn_tensor *strict, *wide, *error;
} tarn_rounding;
#define TARN_NOISY_RUNS 4
/* runs: noisy ones, with the seeds noise.seed, noise.seed + 1, …; out: one for each root. Raises.
 */
TARN_API void tarn_eval_rounding(tarn_lang *L, const tarn_term *root, uint32_t nroot,
                                 const tarn_binding *in, uint32_t nin, uint32_t runs,
                                 tarn_noise noise, tarn_opaque_fn *opaque, tarn_rounding *out);

/* ---------------------------------------------------------------- is a result right?
 * Each element by itself. A float is right within
 *     times · error + rtol · |wide| + two units in the last place of its type at wide + the least
 * normal number of wide (the last, not of f16: emitted functions give 0 for what is smaller), an
 * integer within times · error; of integers and 16-bit floats an eighth of times counts, which are
 * rounded where the strict run rounds them. An infinity or a NaN is right where the strict run, in
 * the model's order and types, has the same; an infinity also where that interval reaches past the
 * largest number of the type; either where noisy runs have some, as rounding decides there, and
 * then any number is right. */
#define TARN_JUDGE_TIMES 32
#define TARN_JUDGE_RTOL  1e-5
typedef struct tarn_verdict {
  bool ok;
  const char *wrong; /* NULL, or what is wrong with all of it: "another shape", "another type" */
  double max_abs,
      max_rel;  /* the largest difference of finite elements; that over the largest finite |wide| */
  int64_t at;   /* the element that took the largest share of what is allowed; -1: there is none */
  double share; /* at most 1: right */
  double got, wanted, allowed;
  bool got_nan,
      want_nan; /* there are elements, all of them NaN: of the result, of the strict run */
} tarn_verdict;
TARN_API tarn_verdict tarn_judge(const tarn_tensor *got, const tarn_rounding *want, double times,
                                 double rtol);
/* "y[0,3] is 1.5, 1.25 is right (0.1 allowed)", "y has another shape". In the arena. */
TARN_API const char *tarn_verdict_text(tarn_ctx *cx, const tarn_verdict *v, const char *name,
                                       const tarn_tensor *got);

/* What the roots are expected to be. Raises. */
typedef struct tarn_expected tarn_expected;
TARN_API tarn_expected *tarn_expect(tarn_lang *L, const tarn_term *root, uint32_t nroot,
                                    const tarn_binding *in, uint32_t nin, uint32_t runs,
                                    tarn_noise noise, tarn_opaque_fn *opaque);
TARN_API const tarn_rounding *tarn_expected_root(const tarn_expected *e, uint32_t root);
/* Judges root number `root`. Where an element seems wrong, further noisy runs look at what the
 * first cannot see: a value that two kernels compute, each with its own roundings, a fraction
 * that is cut off, and where the few random runs all rounded one way. Their errors count for all
 * elements then. Where numbers are rounded to whole ones, as bytes of a quantised network are,
 * rounding moves an element here and there by a step, and a few runs do not see each of them: as
 * many more as they saw may be off, by twice the largest step that they saw. Raises. */
TARN_API tarn_verdict tarn_expected_judge(tarn_expected *e, uint32_t root, const tarn_tensor *got,
                                          double times, double rtol);

/* ---------------------------------------------------------------- inputs to try a program on
 * Floats from [-1, 1), bool both. Of an integer input: the largest range around 0 (where 0 is not
 * allowed, around 1 or a number that it is compared with) for which every index that is made of it,
 * as far as intervals tell, lies within its axis (of a signed type from -n, the far end; at most
 * twice the axis where more makes no difference). Where none is: bytes are whole; what is compared
 * with constants goes from 0, or the least of them, to one beyond the largest; x in 1 - x, and what
 * is cast to bool, is 0 or 1; others -8 to 8, unsigned ones 0 to 16. */
typedef struct tarn_domain {
  int64_t lo, hi; /* inclusive; of floats not used */
} tarn_domain;
/* What operand `kid` of an `opaque` may be; false: anything. */
typedef bool tarn_opaque_index_fn(const tarn_lang *L, const tarn_node *x, uint32_t kid,
                                  tarn_domain *r);
/* out: by input of the program; opaque may be NULL. Raises. */
TARN_API void tarn_input_domains(const tarn_program *p, tarn_opaque_index_fn *opaque,
                                 tarn_domain *out);
/* Uniform; *state as for tarn_random. */
TARN_API tarn_tensor *tarn_random_tensor(tarn_ctx *cx, tarn_dtype t, uint32_t n, const int64_t *dim,
                                         tarn_domain in, uint64_t *state);

#ifdef __cplusplus
}
#endif
#endif
