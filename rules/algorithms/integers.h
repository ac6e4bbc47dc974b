/* rules: products of 8-bit integers times scales, shared by the rules that find such factors and
 * those that make them. */
#ifndef TARN_RULES_INTEGERS_H
#define TARN_RULES_INTEGERS_H
#include "rules/algorithms/build.h"

typedef struct factor { /* scale · (cast(element) - zero) */
  kern p;               /* the map that it is */
  uint32_t hole;        /* of p: the 8-bit tensor */
  tarn_dtype type;      /* of it */
  uint32_t zero, scale; /* fx of p's holes; TARN_NONE: 0 and 1 */
  bool real;            /* f32; else i32 */
} factor;
typedef struct product {
  kern k;
  factor f[2];
  int64_t dim[2 * TARN_MAX_DIMS], steps; /* the loops; elements of the reduction */
  uint32_t ndim, nacc;
} product;

/* The root as a sum of products in that type; p->f is not looked at. */
bool product_find(rsite *s, product *p, tarn_dtype sum);
/* The product p of its factors as one of their 8-bit tensors, leaf[0] and leaf[1] of the host, zero
 * points and scales behind the sum. Changes p. TARN_NONE where it cannot be. */
uint32_t product_of_bytes(product *p, const uint32_t *leaf);
#endif
