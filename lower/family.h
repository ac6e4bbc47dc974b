/* lower: one code for a family of sizes: unify.c, family.c. */
#ifndef TARN_LOWER_FAMILY_H
#define TARN_LOWER_FAMILY_H
#include "lower/internal.h"

/* ---- unify.c ---- */
/* The name of an argument that points to the sizes, each an i64. */
#define LOW_SIZE "sizes"
/* Makes the modules of a family's samples, of one context, the same: numbers that differ become
 * polynomials in what the argument called LOW_SIZE of the function they stand in points to. NULL:
 * each now computes what every one did at its sizes; else why it cannot, with the function's name.
 */
const char *low_unify(tarn_ctx *cx, const LLVMModuleRef *m, const tarn_points *at);

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
