/* What the blocks of random networks share: values that are there, and more of them. */
#ifndef TARN_RULES_CHECK_BLOCKS_H
#define TARN_RULES_CHECK_BLOCKS_H
#include "rules/check/check.h"

typedef struct net {
  gen *g;
  tarn_lang *L;
  uint32_t n, nin;
  tarn_term pool[32];
} net;

static inline const tarn_type *type(const net *x, tarn_term t) { return tarn_term_type(x->L, t); }
static inline tarn_term last(const net *x) { return x->pool[x->n - 1]; }
void net_add(net *x, tarn_term t); /* unless there are many, or it is large */
tarn_term net_cast(net *x, tarn_dtype t, tarn_term a);

/* net_bytes.c: of bytes and other integers. */
void net_quantised(net *x);
void net_requantised(net *x);
void net_shifted(net *x);
void net_pooled(net *x);
void net_grouped(net *x);
#endif
