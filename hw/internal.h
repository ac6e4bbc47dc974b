/* What the files of hw/ share. */
#ifndef TARN_HW_INTERNAL_H
#define TARN_HW_INTERNAL_H
#include "hw/hw.h"
/* The shipped descriptions, generated from the .hw files of this folder at build time. */
extern const tarn_embedded tarn_hw_embedded[];
#endif
