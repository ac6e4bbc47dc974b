/* access: reading terms under names, shared by parse.c and program.c. */
#ifndef TARN_ACCESS_PARSE_H
#define TARN_ACCESS_PARSE_H
#include "access/internal.h"

/* env: interned name (%a) -> term + 1, or 0. */
tarn_term tarn_term_read(tarn_lang *L, const tarn_sx *s, tarn_map *env);
tarn_term tarn_let_read(tarn_lang *L, const tarn_sx *s, tarn_map *env);
void tarn_bind(tarn_lang *L, const tarn_sx *s, uint32_t from, tarn_map *env, uint64_t *hidden);
tarn_term tarn_mk_at(tarn_lang *L, const tarn_sx *s, uint32_t op, uint32_t payload,
                     const tarn_term *kid, uint32_t n);
/* The constant NAME of the folder that the program being read has its constants in (program.c). */
uint32_t tarn_const_load(tarn_lang *L, const tarn_sx *at, const char *name, uint32_t type);

#endif
