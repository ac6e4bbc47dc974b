/* tarn equal: what the files equal_*.c share. */
#ifndef TARN_CLI_EQUAL_H
#define TARN_CLI_EQUAL_H
#include "base/limit.h"
#include "cli/cli.h"

/* Inputs on which two roots differ. */
typedef struct equal_witness {
  uint32_t output;
  int64_t at; /* the element */
  double value[2];
  uint32_t nin;
  tarn_binding *in; /* as few numbers other than 0 as were found */
} equal_witness;

typedef struct equal_job {
  tarn_ctx *cx;
  tarn_lang *L;
  tarn_program *p[2];
  cli_list rules;
  cli_compile model; /* how both are read */
  uint64_t nodes, iters, samples, seed;
  double seconds, rtol;
  tarn_rule_class numerics;
  const char *explain, *parts;
  bool json;
  uint32_t tried; /* samples */
  double worst;   /* difference of two values in these, of the largest of their tensor */
  bool hinted;    /* values that differ by far, where time was up before rounding was looked at: */
  equal_witness hint;
} equal_job;

/* The next node of each side whose values are not shown to be equal. */
typedef struct equal_place {
  const tarn_origin *node[2]; /* NULL: an output by itself */
  tarn_term part[2];          /* what it computes of what is proved, which are inputs */
  bool differs;
  equal_witness w;
  uint32_t proved, pairs; /* nodes of B that have the values of one of A's, and of these proved */
  bool outputs;           /* all outputs are proved so */
} equal_place;

/* False: late by then, in this share of the time that is left. */
bool equal_in_time(equal_job *k, double share, tarn_fn *f, void *arg);
/* equal_sample.c: a[i] and b[i] on random inputs. Raises where it is late. */
bool equal_differ(equal_job *k, const tarn_term *a, const tarn_term *b, uint32_t n,
                  equal_witness *w);
/* All terms below the roots, each once. */
uint32_t equal_terms(equal_job *k, const tarn_term *root, uint32_t n, const tarn_term **out);
/* The roots on one random input, floats as f64. */
tarn_tensor **equal_values(equal_job *k, const tarn_term *root, uint32_t n, uint64_t sample);
/* equal_prove.c: by rules, in this share of the time that is left; the proof of this name goes to
 * chain. stop: why there is none. */
bool equal_prove(equal_job *k, double share, tarn_term a, tarn_term b, const char *name,
                 tarn_buf *chain, const char **stop);
/* equal_locate.c: node by node. What is proved of nodes goes to chain. */
void equal_locate(equal_job *k, equal_place *out, tarn_buf *chain);
#endif
