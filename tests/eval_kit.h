/* What the tests of the reference interpreter share: a context, random tensors, and the comparison
 * of its values with an evaluation of every operator by its definition. */
#ifndef TARN_TESTS_EVAL_KIT_H
#define TARN_TESTS_EVAL_KIT_H
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/alloc.h"
#include "tests/eval_naive.h"

/* ---------------------------------------------------------------- comparing */
static inline void same_value(tarn_dtype t, tarn_value a, tarn_value b, tarn_term term,
                              int64_t at) {
  bool same = a.i == b.i;
  if (tarn_dtype_is_float(t)) same = !memcmp(&a.d, &b.d, sizeof a.d) || (isnan(a.d) && isnan(b.d));
  if (!same)
    ck_abort_msg("term %u, element %lld: %.17g (%lld), by definition %.17g (%lld)", term,
                 (long long)at, a.d, (long long)a.i, b.d, (long long)b.i);
}

/* The interpreter and the definitions agree to the bit, in both modes. */
static inline void agree(const tarn_term *root, uint32_t n, const tarn_binding *in, uint32_t nin) {
  tarn_tensor *out[8];
  given = in, ngiven = nin;
  for (int m = 0; m < 2; m++) {
    mode = m ? TARN_WIDE : TARN_STRICT;
    tarn_eval(L, root, n, in, nin, mode, NULL, out);
    memo = TARN_ARRAY(cx, naive, tarn_term_count(L));
    for (uint32_t i = 0; i < n; i++) {
      naive want = define(root[i]);
      bool widened = m && tarn_dtype_is_float(want.t->dtype);
      ck_assert_int_eq(out[i]->dtype, widened ? TARN_F64 : want.t->dtype);
      ck_assert_uint_eq(out[i]->n, want.t->n);
      ck_assert_int_eq(tarn_tensor_count(out[i]), tarn_type_count(want.t));
      for (int64_t j = 0; j < tarn_tensor_count(out[i]); j++)
        same_value(want.t->dtype, tarn_tensor_get(out[i], j), want.v[j], root[i], j);
    }
  }
}

/* ---------------------------------------------------------------- random tensors */
static inline tarn_value random_value(tarn_dtype t) {
  static const double odd[] = {-0.0, INFINITY, NAN, 1e30, 1e-30, 1};
  tarn_value v;
  if (!tarn_dtype_is_float(t)) v.i = below(9) - 4;
  else v.d = below(40) ? (double)below(1 << 24) / (1 << 20) - 8 : odd[below(6)];
  return v;
}

static inline tarn_tensor *random_tensor(tarn_dtype t, uint32_t n, const int64_t *dim) {
  tarn_tensor *x = tarn_tensor_new(cx, t, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(x); i++) tarn_tensor_set(x, i, random_value(t));
  return x;
}

/* ---------------------------------------------------------------- terms */
/* x as ((N,P,Q),(C,k,k)), weights ((O),(C,k,k)) -> NCHW. */
static inline tarn_term conv(tarn_term x, tarn_term w, int64_t k, int64_t stride, int64_t pad) {
  const tarn_type *t = tarn_term_type(L, x);
  uint32_t zero = tarn_fx_const(L, t->dtype, 0);
  x = tarn_pad(L, 2, zero, pad, pad, tarn_pad(L, 3, zero, pad, pad, x));
  x = tarn_windows(L, (int64_t[]){t->dim[1], k, k}, (int64_t[]){1, stride, stride}, NULL,
                   tarn_access(L, 1, x));
  tarn_term c = tarn_cart(L, 0, tarn_access(L, 1, w), tarn_squeeze(L, 1, x));
  c = tarn_compute(L, tarn_fn_dot(L, t->dtype), &c, 1);
  return tarn_transpose(L, (uint32_t[]){1, 0, 2, 3}, c);
}
#endif
