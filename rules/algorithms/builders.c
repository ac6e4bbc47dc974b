/* The table of builders: what a kernel-level rule's right side may be. */
#include "rules/algorithms/build.h"
#include <string.h>

#define FACTS R_READS_FACTS
#define GRAPH TARN_EG_READS_GRAPH

static const rbuild builders[] = {
    {"inline", when_inline_map, build_inline, GRAPH, false, "the opened map computed where it is read, first child first"},
    {"inline-reduced", when_inline_reduction, build_inline, GRAPH, false, "the opened map computed inside a reduction"},
    {"epilogue", when_epilogue, build_epilogue, GRAPH, false, "the root as the last thing that the opened kernel does"},
    {"place", when_place, build_place, GRAPH, false,
     "a kernel that the root reads as an earlier stage of it, in the loops they share"},
    {"outputs", when_outputs, build_outputs, GRAPH, false,
     "a kernel and the root, a map of its result, as one nest that writes both"},
    {"literals", NULL, build_literals, 0, true, "children whose elements are all one value become numbers"},
    {"powers", NULL, build_powers, 0, true, "small powers as products, division by a power of two as one"},
    {"roots", NULL, build_roots, 0, true, "further powers as products, roots and quotients"},
    {"affine", NULL, build_affine, 0, true, "what constants are added to and multiply in turn as one product and one sum"},
    {"recast", NULL, build_recast, 0, true, "no casts to integers and back of what is whole and in their range"},
    {"reciprocal", NULL, build_reciprocal, 0, true, "a stage divides 1 by its result, and what divided by it multiplies"},
    {"hoist", when_hoist, build_hoist, GRAPH, true, "subexpressions of constants become tensors, computed at compile time"},
    {"scale", NULL, build_scale, 0, true, "a constant factor after a sum of products moves into the constant operand"},
    {"copy", NULL, build_copy, 0, true, "a nest that only moves data becomes a view"},
    {"absorb", when_absorb, build_absorb, GRAPH, false, "the opened view's base read through the view"},
    {"split-concat", when_split_concat, build_split_concat, GRAPH, false,
     "a map of a concatenation as a concatenation of maps"},
    {"flat", NULL, build_flat, 0, false, "the reduce loops as one loop"},
    {"im2col", NULL, build_im2col, 0, false, "an operand read through overlapping windows is written out first"},
    {"inline-sum", when_inline_sum, build_inline_sum, GRAPH, true, "the opened sum as terms of the sum that reads it"},
    {"residue", NULL, build_residue, 0, true, "a reduce loop steps through the residue class in which its guard holds"},
    {"winograd-2", NULL, build_winograd_2, 0, false,
     "a convolution of 3x3 or 2x2 taps by tiles of 2x2 results, in fewer multiplications"},
    {"winograd-4", NULL, build_winograd_4, 0, false, "the same by tiles of 4x4 results"},
    {"winograd-2-rows", NULL, build_winograd_2_rows, 0, false, "2x2 results in one kernel, a row of tiles after the other"},
    {"winograd-4-rows", NULL, build_winograd_4_rows, 0, false, "4x4 results in one kernel, a row of tiles after the other"},
    {"strassen", NULL, build_strassen, 0, false, "a product with a constant by seven products of halves"},
    {"online-2", NULL, build_online_2, 0, false, "sums weighted by exponentials, over 2 parts of their axis and then together"},
    {"online-4", NULL, build_online_4, 0, false, "sums weighted by exponentials, over 4 parts of their axis and then together"},
    {"online-8", NULL, build_online_8, 0, false, "sums weighted by exponentials, over 8 parts of their axis and then together"},
    {"online-16", NULL, build_online_16, 0, false,
     "sums weighted by exponentials, over 16 parts of their axis and then together"},
    {"online-32", NULL, build_online_32, 0, false,
     "sums weighted by exponentials, over 32 parts of their axis and then together"},
    {"online-64", NULL, build_online_64, 0, false,
     "sums weighted by exponentials, over 64 parts of their axis and then together"},
    {"parts-2", NULL, build_parts_2, 0, false, "a reduction over 2 parts of a dim and then together"},
    {"parts-4", NULL, build_parts_4, 0, false, "a reduction over 4 parts of a dim and then together"},
    {"parts-8", NULL, build_parts_8, 0, false, "a reduction over 8 parts of a dim and then together"},
    {"parts-16", NULL, build_parts_16, 0, false, "a reduction over 16 parts of a dim and then together"},
    {"parts-32", NULL, build_parts_32, 0, false, "a reduction over 32 parts of a dim and then together"},
    {"sum", when_sum, build_sum, GRAPH, true, "a sum of products over shifted views becomes one product"},
    {"integers", when_integers, build_integers, GRAPH, false, "zero points of a product of 8-bit integers behind its sum"},
    {"integers-moved", when_integers_moved, build_integers_moved, GRAPH, false, "the same, one operand moved by 128"},
    {"quantised", when_quantised, build_quantised, GRAPH, false, "a product of dequantised tensors on their integers"},
    {"quantised-moved", when_quantised_moved, build_quantised_moved, GRAPH, false, "the same, one operand moved by 128"},
    {"narrow-bytes", when_narrow_bytes, build_narrow_bytes, GRAPH, false, "a product of floats on operands rounded to bytes"},
    {"narrow-bf16", when_narrow_bf16, build_narrow_bf16, GRAPH, false, "a product of floats on operands rounded to bf16"},
    {"merge", when_merge, build_merge, GRAPH, false, "products that share an operand become slices of one product"},
};

const rbuild *rbuild_find(const char *name) {
  for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
    if (strcmp(builders[i].name, name) == 0) return &builders[i];
  return NULL;
}
