/* What the files of hw/ share. */
#ifndef TARN_HW_INTERNAL_H
#define TARN_HW_INTERNAL_H
#include "hw/hw.h"

/* ---- reading forms (parse.c); at what stands at an offset is stored ---- */
typedef struct hw_reader {
  tarn_lang *L;
  tarn_ctx *cx;
  uint32_t guests; /* machines that hang on the one that is read */
} hw_reader;
typedef enum { F_WORD, F_NUM, F_POS, F_U32, F_I64, F_FLAG } hw_form_kind;
typedef struct hw_form {
  const char *name;
  hw_form_kind kind;
  size_t at;
} hw_form; /* tables end with a NULL name */
const tarn_sx *hw_arg(hw_reader *r, const tarn_sx *s, uint32_t i);
const tarn_sx *hw_value(hw_reader *r, const tarn_sx *s); /* the one value of (NAME VALUE) */
int64_t hw_integer(hw_reader *r, const tarn_sx *s, int64_t lo, int64_t hi);
const char *hw_name_of(hw_reader *r, const tarn_sx *s);
/* A form may not stand twice among those of its list. */
void hw_once(hw_reader *r, const tarn_sx *list, const tarn_sx *s);
bool hw_store_form(hw_reader *r, const hw_form *table, const tarn_sx *list, const tarn_sx *s,
                   void *base); /* false: it is none of the table */

/* ---- accelerators (machine.c): forms kept until all are there, as they name one another ---- */
typedef TARN_VEC(const tarn_sx *) hw_list;
typedef struct hw_parts {
  hw_list queue, token, transfer, format, reg, instruction;
} hw_parts;
bool hw_part(hw_reader *r, const tarn_sx *list, const tarn_sx *s, tarn_hw *h, hw_parts *parts);
void hw_read_parts(hw_reader *r, tarn_hw *h, const hw_parts *parts);
/* Is it possible: operands, entries, paths, fields, tokens (machine_check.c)? */
void hw_check_machine(hw_reader *r, const tarn_sx *s, const tarn_hw *h);
/* What an instruction has in its fields and registers, and what of it is fixed (fields.c). */
void hw_check_places(hw_reader *r, const tarn_hw *h, const tarn_hw_instruction *x);

/* tarn_hw_parse() of a machine on which as many others hang, one on another. */
const tarn_hw *hw_parse(tarn_lang *L, const tarn_sx *s, uint32_t guests);
/* Of a description, unread. by: what names it in another one, for messages; NULL: --hw. */
const tarn_sx *hw_text(tarn_lang *L, const char *name, const tarn_sx *by);
/* ---- like.c ---- */
/* (hw NAME (like OTHER) …) as one description; another as it is. */
const tarn_sx *hw_like(hw_reader *r, const tarn_sx *s);
/* A file's name that is relative to the file that s stands in. */
const char *hw_beside(hw_reader *r, const tarn_sx *s, const char *name);

/* The shipped descriptions, generated from the .hw files of this folder at build time. */
extern const tarn_embedded tarn_hw_embedded[];
#endif
