/* lower: one code for a family of sizes: unify.c, growth.c, family.c. */
#ifndef TARN_LOWER_FAMILY_H
#define TARN_LOWER_FAMILY_H
#include "lower/internal.h"

/* ---- growth.c: a number of each sample as a polynomial in the size ---- */
/* (c[0] + c[1]·n + c[2]·n²) / div, which leaves no remainder; in lowest terms, div > 0. */
typedef struct low_growth {
  int64_t c[3], div;
} low_growth;
/* Through v[i] at size[i], n of them, rising. False: there is none of degree 2 at most, or a step
 * of its computation does not fit in 62 bits at some size up to the last. */
bool low_growth_of(const int64_t *size, const int64_t *v, uint32_t n, low_growth *g);
int64_t low_growth_at(const low_growth *g, int64_t size);
LLVMValueRef low_growth_emit(LLVMBuilderRef b, const low_growth *g, LLVMValueRef size,
                             LLVMTypeRef type);

/* ---- unify.c ---- */
/* The name of an argument that is the size. */
#define LOW_SIZE "size"
/* Makes n modules of one context the same: numbers that differ become functions of the argument
 * called LOW_SIZE of the function they stand in. NULL: each now computes what every one did at its
 * size[i]; else why it cannot, with the function's name. */
const char *low_unify(tarn_ctx *cx, const LLVMModuleRef *m, uint32_t n, const int64_t *size);

/* ---- family.c ---- */
/* A module that one sample of a family is emitted into. */
typedef TARN_VEC(int64_t) low_room; /* of local buffers and pages, in the order of emission */
typedef struct low_sample {
  low_module *of;         /* the module of the whole artefact */
  bool dry;               /* which gets nothing */
  const char *prefix;     /* of symbols */
  low_room *room;         /* of each sample */
  uint32_t number, most;  /* which sample; the largest, which was emitted first */
  const uint32_t *serves; /* of each kernel of the program: the first one that its function serves;
                             TARN_NONE: one that does not depend on the size */
  low_kernel **kernel;    /* of each: its function in this module */
} low_sample;
#endif
