/* Another program that is run to its end, and what it said. */
#ifndef TARN_CHILD_H
#define TARN_CHILD_H
#include "base/base.h"

typedef struct tarn_child {
  bool ok;    /* it ended with 0 */
  char *text; /* what it wrote to stderr, as far as 2 KB go */
} tarn_child;
/* The first of these names that is in the path; argv: the words, of which the first is not looked
 * at, and NULL. False: there is no such program. Raises TARN_IO. */
TARN_API bool tarn_child_run(tarn_ctx *cx, const char *const *name, uint32_t n,
                             const char *const *argv, tarn_child *child);
#endif
