/* tarn kernel: the nest, what every computation is in a kernel-level graph. edit.h has what changes one. */
#ifndef TARN_KERNEL_H
#define TARN_KERNEL_H
#include "access/access.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The normal form of a term (tarn_normalise) with every compute as a NEST that reads buffers through its own maps: what a
 * kernel-level graph starts from. Exactly equal to the term. Raises. */
TARN_API tarn_term tarn_kernel_form(tarn_lang *L, tarn_term t);

#ifdef __cplusplus
}
#endif
#endif
