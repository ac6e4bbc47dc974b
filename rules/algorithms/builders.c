/* The table of builders: C functions for the right sides of kernel-level rules. */
#include "rules/algorithms/build.h"
#include <string.h>

#define GRAPH TARN_EG_READS_GRAPH

static const rbuild builders[] = {
    {"epilogue", when_epilogue, build_epilogue, GRAPH, false,
     "the root as the last thing that the opened kernel does"},
    {"place", when_place, build_place, GRAPH, false,
     "a kernel that the root reads as an earlier stage of it, in the loops they share"},
    {"outputs", when_outputs, build_outputs, GRAPH, false,
     "a kernel and the root, a map of its result, as one nest that writes both"},
    {"reciprocal", NULL, build_reciprocal, 0, true,
     "a stage computes its reciprocal, and divisions by it become products"},
    {"split-concat", when_split_concat, build_split_concat, GRAPH, false,
     "a map of a concatenation as a concatenation of maps"},
    {"online:i", NULL, build_online, 0, false,
     "sums weighted by exponentials, over so many parts of their axis, then combined"},
    {"sum", when_sum, build_sum, GRAPH, true,
     "a sum of products over shifted views becomes one product"},
    {"integers:i", when_integers, build_integers, GRAPH, false,
     "zero points of a product of 8-bit integers are subtracted after its sum; bit i: operand i is "
     "moved to the other 8-bit type"},
    {"quantised:i", when_quantised, build_quantised, GRAPH, false,
     "a product of dequantised tensors on their integers, some moved likewise"},
    {"shifts", NULL, build_shifts, 0, true,
     "floats that are integers times a power of two are computed as integers"},
    {"shifts-halves", NULL, build_shifts_halves, 0, true,
     "the same, rounding to nearest even as floor(x + 1/2)"},
    {"narrow", when_narrow, build_narrow, GRAPH, false,
     "a product of floats on operands rounded to bytes"},
    {"merge", when_merge, build_merge, GRAPH, false,
     "products that share an operand become slices of one product"},
};

const rbuild *rbuild_find(const char *name) {
  size_t n = strlen(name);
  for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
    if (strncmp(builders[i].name, name, n) == 0 &&
        (!builders[i].name[n] || builders[i].name[n] == ':'))
      return &builders[i];
  return NULL;
}
