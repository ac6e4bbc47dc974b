/* What decoding a statement needs: the op that is made, and what its operands are.
 *
 * A place is where a register lies in a warp's file. All of these raise where an operand is not of
 * the kind that is asked for. */
#ifndef TARN_PTX_DECODE_H
#define TARN_PTX_DECODE_H
#include "sim/ptx_internal.h"

typedef struct ptx_decoder {
  ptx_body *b;
  tarn_ctx *cx;
  const ptx_statement *st;
  ptx_op x;
  /* of the opcode's words */
  ptx_type type[4];
  uint32_t ntype;
  const char *key; /* its first word and those that tell rows apart */
} ptx_decoder;

TARN_NORETURN void ptx_wrong(const ptx_decoder *d, const char *what); /* names opcode and line */
bool ptx_has(const ptx_decoder *d, const char *word);                 /* among the opcode's words */
void ptx_count(const ptx_decoder *d, uint32_t least, uint32_t most);  /* so many operands */
uint32_t ptx_register_bytes(ptx_type t);
uint32_t ptx_bytes_at(const ptx_decoder *d, uint32_t i); /* of register operand i; 0: it is none */
/* A new place of so many bytes, all lanes together. */
uint32_t ptx_room_for(ptx_entry *e, uint32_t bytes);
/* The place of a number, made once. */
uint32_t ptx_constant(ptx_decoder *d, uint64_t bits, uint32_t bytes);
/* A register of so many bytes, read. wide: or of more. */
uint32_t ptx_reg(ptx_decoder *d, uint32_t no, uint32_t bytes, bool wide);
/* Of a value put together from parts; one that nothing writes is all ones: LLVM leaves parts whose
 * bits it masks off undefined. */
uint32_t ptx_part_of(ptx_decoder *d, const ptx_operand *o, ptx_type t);
uint32_t ptx_source(ptx_decoder *d, uint32_t i, ptx_type t);
/* Written: a register or a sink. */
uint32_t ptx_dest_of(ptx_decoder *d, const ptx_operand *o, uint32_t bytes, bool wide);
uint32_t ptx_predicate_of(ptx_decoder *d, uint32_t no, bool written); /* of register no */
uint32_t ptx_predicate(ptx_decoder *d, uint32_t i);
uint32_t ptx_dest_predicate(ptx_decoder *d, uint32_t i);
/* A number that stands in the text, from lo to hi. */
int64_t ptx_literal(ptx_decoder *d, uint32_t i, int64_t lo, int64_t hi);
ptx_space ptx_space_named(const char *w); /* GENERIC: none */
uint64_t ptx_window(ptx_space s);         /* where it begins among generic addresses */
/* An address in brackets: the place and bytes of its base, and what is added to it. */
void ptx_address(ptx_decoder *d, uint32_t i, ptx_space space, uint32_t *base, uint8_t *bytes,
                 int64_t *offset);
/* The registers of a vector of x.n elements, or of one: all as wide as the first, x.wide_d. */
const uint32_t *ptx_elements(ptx_decoder *d, const ptx_operand *o, bool written);
/* n words of a matrix, of 32 bits each. */
void ptx_fragment(ptx_decoder *d, uint32_t i, uint32_t n, ptx_type t, bool written, uint32_t *v);
#endif
