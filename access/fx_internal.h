/* access: the scalar operator table, shared by fx.c, fx_eval.c and the text files. */
#ifndef TARN_ACCESS_FX_INTERNAL_H
#define TARN_ACCESS_FX_INTERNAL_H
#include "access/internal.h"

#define TARN_IF_Y(x) x
#define TARN_IF_N(x) 0
/* The cells of fx.def that are no names of functions; they are explained there. */
typedef enum tarn_fxgives {
  TARN_FXG_LEAF,
  TARN_FXG_CAST,
  TARN_FXG_SEL,
  TARN_FXG_SAME,
  TARN_FXG_BOOL
} tarn_fxgives;
typedef enum tarn_fxerror {
  TARN_FXE_NONE,
  TARN_FXE_SUM,
  TARN_FXE_PRODUCT,
  TARN_FXE_QUOTIENT,
  TARN_FXE_MODULO,
  TARN_FXE_EXTREME,
  TARN_FXE_SIGN,
  TARN_FXE_STEP,
  TARN_FXE_ROUND,
  TARN_FXE_POWER,
  TARN_FXE_EXP,
  TARN_FXE_SMOOTH,
  TARN_FXE_TEST,
  TARN_FXE_COMPARE
} tarn_fxerror;
typedef enum tarn_fxrounds { TARN_FXR_NEVER, TARN_FXR_ONCE, TARN_FXR_LIB } tarn_fxrounds;
typedef struct tarn_span {
  double lo, hi;
} tarn_span;
typedef struct tarn_fxinfo {
  const char *text;
  uint8_t arity;
  tarn_fxgives gives;
  tarn_span domain;
  tarn_fxerror error;
  tarn_fxrounds rounds;
  double cycles, slots, products;
} tarn_fxinfo;
TARN_API const tarn_fxinfo *tarn_fx_info(uint32_t op);
/* Operators only, not $ and const; TARN_NONE when unknown. */
TARN_API uint32_t tarn_fx_find(const char *text);
TARN_API bool tarn_fx_gives_bool(uint32_t op); /* whatever it takes */

/* Result type of an operator over operands of these types; not for leaves and casts. NULL, or what
 * is wrong. */
const char *tarn_fx_optype(uint32_t op, const tarn_dtype *in, tarn_dtype *out);
/* One operator (no leaf). dtype: of the first operand (SEL: of the others); out: of the result. v
 * has two values, whatever the operator takes, and three of SEL. */
tarn_value tarn_fx_step(uint32_t op, tarn_dtype dtype, tarn_dtype out, const tarn_value *v,
                        tarn_mode mode);
/* Where the exact result of an operator over values in these intervals lies; an end is infinite
 * where nothing is known.  Not for leaves and casts, and not of NaN.  t: type of the operands (SEL:
 * of the values); same: the first two are one value. */
tarn_span tarn_fx_span(uint32_t op, tarn_dtype t, const tarn_span *of, bool same);
/* What f uses, itself included, ascending; valid until the next walk over scalar expressions. */
uint32_t tarn_fx_reachable(const tarn_lang *L, uint32_t f, const uint32_t **ids);
/* The nodes of an expression from which a step is computed: a rounding, a cast to integers, or a
 * sum with a number that has half the digits of its type before the point, which may be added to
 * round by it, as in x + 1.5·2^23 - 1.5·2^23.  What is computed in another way there may be on the
 * other side of a step.  n is 0 where the expression has no step; ids ascend. */
typedef struct tarn_fxsteps {
  uint32_t n, *id;
  bool *before;
} tarn_fxsteps;
TARN_API tarn_fxsteps tarn_fx_steps(tarn_ctx *cx, const tarn_lang *L, uint32_t f);
TARN_API bool tarn_fx_before_step(const tarn_fxsteps *s, uint32_t node);
void tarn_fx_start(tarn_lang *L); /* for tarn_lang_new */

/* Are two scalar functions the same, where `hole` says whether a hole of f stands for an expression
 * of g? either: factors and terms may stand in either order; `hole` then keeps nothing, since an
 * order that fails is followed by the other. */
TARN_API bool tarn_fx_match(const tarn_lang *L, uint32_t f, uint32_t g, bool either,
                            bool (*hole)(void *user, uint32_t hole, uint32_t g), void *user);
#endif
