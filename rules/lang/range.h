/* rules: facts about the elements of a value: bounds, whole numbers, NaN, whether they were
 * rounded.
 *
 * Interval arithmetic over scalar expressions and the stages of nests.  Bounds hold for what strict
 * arithmetic gives and for what rules make of it, up to a few units in the last place. */
#ifndef TARN_RULES_RANGE_H
#define TARN_RULES_RANGE_H
#include "kernel/edit.h"
#include "rules/lang/lang.h"

typedef struct vrange {
  bool typed; /* is the type known? */
  tarn_dtype type;
  tarn_range r;
} vrange;

vrange vrange_any(tarn_dtype t); /* of the type, and nothing else */
/* One of both sides is known. */
tarn_range vrange_both(tarn_range a, tarn_range b);
void vrange_widen(tarn_range *r, tarn_range more); /* to what is in either */
double vrange_largest(tarn_dtype t);               /* of a float type: the largest number, */
double vrange_normal(tarn_dtype t);                /* and the least that has all digits */
/* Whole numbers up to here are numbers of a float type. */
double vrange_exact(tarn_dtype t);
/* Whole numbers that all are numbers of the type. */
bool vrange_exactly(tarn_dtype t, tarn_range r);
/* May sums of products of the two be rounded? Of integers they are what they are in any order. */
bool vrange_rounds(tarn_dtype t, tarn_range a, tarn_range b);
/* Is it kept by a cast to t? */
bool vrange_survives(const vrange *k, tarn_dtype t);
bool vrange_widens(tarn_dtype from, tarn_dtype to);

double vrange_most(tarn_range r);  /* largest magnitude */
double vrange_least(tarn_range r); /* a magnitude that none is below; 0: not known */
/* Do the products of constants keep to the numbers of their type, and are not all of them lost
 * below these? */
bool vrange_folds(tarn_dtype t, tarn_range a, tarn_range b);
/* And no product of an element of each is below its normal numbers. */
bool vrange_loses_none(tarn_dtype t, tarn_range a, tarn_range b);
/* Can no two summands cancel: is a sum about as large as they are? */
bool vrange_apart(tarn_range x, tarn_range y);

vrange vrange_tensor(const tarn_tensor *t); /* of its elements */
/* Of every node of a walk, from what is known of the holes. */
void vrange_walk(tarn_lang *L, const fxwalk *w, const vrange *hole, uint32_t nhole, vrange *is);
/* Of an expression. */
vrange vrange_of(tarn_lang *L, uint32_t f, const vrange *hole, uint32_t nhole);

/* The holes of the body (or epilogue, whose hole 0 is the reduction's result) of a stage of a
 * kernel that is being changed. Their number. */
uint32_t vrange_holes(const rhost *h, const kern *k, const kstage *st, bool body, vrange *hole);
/* Of a node that moves elements or computes some, from its children. fill: of a pad or of a guarded
 * view. */
vrange vrange_node(tarn_lang *L, uint32_t op, uint32_t payload, uint32_t type, const vrange *kid,
                   uint32_t n);

#endif
