/* Determinants by Gaussian elimination with partial pivoting, one column after the other, in f64
 * (Golub and Van Loan, Matrix Computations, 3.4). Rows are not swapped: a row that was a pivot is
 * set to zero, so that it is none again, and the sign is that of the order of the pivots. */
#include "model/import.h"

enum { MOST_ROWS = 32 }; /* each is a kernel or two; larger ones are opaque */

/* Of a permutation (batch, 1, rows): x, or -x where it is odd. x: (batch) */
static tarn_term with_sign(im_node *n, tarn_term x, tarn_term p, int64_t rows) {
  static const uint32_t upright[] = {0, 2, 1};
  tarn_term i = im_steps(n, 1, 3, rows), k = im_steps(n, 2, 3, rows);
  tarn_term falls = im_el(n, "(select (lt $2 $3) (select (lt $1 $0) 1 0) 0)", 4,
                          im_permute(n, p, upright), p, i, k);
  tarn_term count = im_reduce(n, falls, 6, TARN_NONE, TARN_RED_SUM, false);
  tarn_term sign = im_el(n, "(sub 1 (mul 2 (mod $0 2)))", 1, count);
  return im_el(n, "(mul $0 $1)", 2, x, im_cast(n, sign, TARN_F64));
}

/* The columns of a (batch, rows, columns) but the first, after its elimination; *row: which row was
 * the pivot's, (batch, 1, 1); *pivot: its value. */
static tarn_term eliminated(im_node *n, tarn_term a, tarn_term *row, tarn_term *pivot) {
  im_dims d = im_shape(n, a);
  tarn_term at = im_steps(n, 1, 3, d.d[1]), first = im_cut(n, a, 2, 0, 1, 1);
  tarn_term rest = im_cut(n, a, 2, 1, d.d[2], 1);
  *row = im_arg_extreme(n, im_el(n, "(abs $0)", 1, first), 2, true, false, true);
  tarn_term line = im_el(n, "(select (eq $1 $2) $0 0)", 3, a, at, *row);
  line = im_reduce(n, line, 2, TARN_NONE, TARN_RED_SUM, true);
  *pivot = im_cut(n, line, 2, 0, 1, 1);
  tarn_term left =
      im_el(n, "(select (eq $1 $2) 0 (sub $0 (mul (select (eq $4 0) 0 (div $3 $4)) $5)))", 6, rest,
            at, *row, first, *pivot, im_cut(n, line, 2, 1, d.d[2], 1));
  return im_settled(n, left);
}

/* a: (batch, rows, rows) in f64 */
static tarn_term determinants(im_node *n, tarn_term a, int64_t rows) {
  tarn_term *row = TARN_ARRAY(n->cx, tarn_term, (size_t)rows);
  tarn_term *pivot = TARN_ARRAY(n->cx, tarn_term, (size_t)rows);
  for (int64_t k = 0; k < rows; k++) a = eliminated(n, a, &row[k], &pivot[k]);
  tarn_term all = im_concat(n, 2, pivot, (uint32_t)rows);
  all = im_reduce(n, all, 6, TARN_NONE, TARN_RED_PROD, false);
  return with_sign(n, all, im_concat(n, 2, row, (uint32_t)rows), rows);
}

void im_do_det(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  if (d.n < 2 || d.d[d.n - 1] != d.d[d.n - 2]) im_bad(n, "the matrices are not square");
  int64_t rows = d.d[d.n - 1], batch = 1;
  if (rows > MOST_ROWS) {
    im_do_opaque(n);
    return;
  }
  d.n -= 2;
  for (uint32_t i = 0; i < d.n; i++) batch *= d.d[i];
  tarn_term r = im_fill(n, im_scalar(n, TARN_F64, 1, 0), 1, &batch);
  tarn_term a = im_reshape(n, im_cast(n, x, TARN_F64), 3, (int64_t[]){batch, rows, rows});
  if (rows) r = determinants(n, a, rows);
  im_set(n, 0, im_cast(n, im_reshape(n, r, d.n, d.d), im_type(n, x)));
}
