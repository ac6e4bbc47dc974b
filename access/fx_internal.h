/* access: the scalar operator table, shared by fx.c, fx_eval.c and the text files. */
#ifndef TARN_ACCESS_FX_INTERNAL_H
#define TARN_ACCESS_FX_INTERNAL_H
#include "access/internal.h"

typedef enum tarn_fxkind {
  TARN_FXK_LEAF,
  TARN_FXK_ARITH,
  TARN_FXK_FLOAT,
  TARN_FXK_CMP,
  TARN_FXK_BITS,
  TARN_FXK_SEL,
  TARN_FXK_CAST
} tarn_fxkind;
typedef struct tarn_fxinfo {
  const char *text;
  uint8_t arity;
  tarn_fxkind kind;
} tarn_fxinfo;
const tarn_fxinfo *tarn_fx_info(uint32_t op);
uint32_t
tarn_fx_find(const char *text); /* operators only, not $ and const; TARN_NONE when unknown */

/* Result type of an operator over operands of these types; not for leaves and casts. NULL, or what
 * is wrong. */
const char *tarn_fx_optype(uint32_t op, const tarn_dtype *in, tarn_dtype *out);
/* One operator (no leaf). dtype: of the first operand (SEL: of the others); out: of the result. */
tarn_value tarn_fx_step(uint32_t op, tarn_dtype dtype, tarn_dtype out, const tarn_value *v,
                        tarn_mode mode);
/* What f uses, itself included, ascending; valid until the next walk over scalar expressions. */
uint32_t tarn_fx_reachable(const tarn_lang *L, uint32_t f, const uint32_t **ids);
void tarn_fx_start(tarn_lang *L); /* for tarn_lang_new */

#endif
