/* What the files of hw/ share. */
#ifndef TARN_HW_INTERNAL_H
#define TARN_HW_INTERNAL_H
#include "hw/hw.h"
/* tarn_hw_parse() and tarn_hw_load() of a machine on which as many others hang, one on another. */
const tarn_hw *hw_parse(tarn_lang *L, const tarn_sx *s, uint32_t guests);
const tarn_hw *hw_load(tarn_lang *L, const char *name, uint32_t guests);
/* The shipped descriptions, generated from the .hw files of this folder at build time. */
extern const tarn_embedded tarn_hw_embedded[];
#endif
