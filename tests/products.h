/* Products as kernels, for the tests of tune/ and of packing. */
#ifndef TARN_TESTS_PRODUCTS_H
#define TARN_TESTS_PRODUCTS_H
#include "plan/plan.h"
#include "tests/terms.h"

/* Product of a (rows x terms) with constants (terms x cols). */
static inline tarn_ksig product(int64_t rows, int64_t cols, int64_t terms) {
  int64_t dim[] = {rows, cols, terms}, flat_a = rows * terms, flat_b = terms * cols;
  tarn_imap a = {.ns = 3, .n = 3, .nin = 1, .in = {flat_a}, .fill = TARN_NONE}, b = a;
  memcpy(a.dim, dim, sizeof dim), memcpy(b.dim, dim, sizeof dim);
  b.in[0] = flat_b;
  a.e[0] = tarn_ix_add(L, tarn_ix_scale(L, tarn_ix_var(L, 0, dim), terms, dim),
                       tarn_ix_var(L, 2, dim), dim);
  b.e[0] = tarn_ix_add(L, tarn_ix_scale(L, tarn_ix_var(L, 2, dim), cols, dim),
                       tarn_ix_var(L, 1, dim), dim);
  tarn_func f = {.nops = 2,
                 .body = tarn_fx_op(L, TARN_FX_MUL, tarn_fx_hole(L, 0), tarn_fx_hole(L, 1), 0),
                 .red = tarn_reducer_of(L, TARN_RED_SUM, TARN_F32),
                 .epi = TARN_NONE};
  tarn_read read[] = {{.src = 0, .map = tarn_map_intern(L, &a)},
                      {.src = 1, .map = tarn_map_intern(L, &b)}};
  tarn_stage st = {.nown = 2,
                   .nred = 1,
                   .own = {rows, cols},
                   .red = {terms},
                   .read = read,
                   .out = true,
                   .fn = tarn_fn_intern(L, &f)};
  tarn_nest n = {.out_ns = 2, .nstage = 1, .nchild = 2, .stage = &st};
  tarn_ksig k = {.nest = tarn_nest_intern(L, &n), .nin = 2, .nout = 1};
  k.in[0] = tarn_layout_row_major(1, &flat_a), k.in[1] = tarn_layout_row_major(1, &flat_b);
  k.in_type[0] = k.in_type[1] = k.out_type[0] = TARN_F32, k.in_const[1] = true;
  k.out[0] = tarn_layout_row_major(2, dim);
  tarn_ksig_canonical(L, &k);
  return k;
}

#endif
