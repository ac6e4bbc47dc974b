/* com.microsoft's quantised operators: numbers, the operator on them, and back; products stay on
 * the integers.  Source: ONNX Runtime's docs/ContribOperators.md. */
#include "model/import.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- numbers and back */

static tarn_term single(im_node *n, uint32_t i) {
  tarn_term t = im_opt(n, i);
  int64_t none = 0;
  if (t == TARN_NONE) return t;
  im_dims d = im_shape(n, t);
  if (im_count(&d) != 1) im_bad(n, "input %u is not a single number", i);
  return im_reshape(n, t, 0, &none);
}

/* Inputs i, i + 1, i + 2: an operand, its scale and its zero point. */
static tarn_term numbers(im_node *n, uint32_t i) {
  return im_dequantised(n, im_arg(n, i), single(n, i + 1), single(n, i + 2));
}

/* x by the scale and the zero point at inputs i and i + 1; without one, of the first input's type.
 */
static void set_quantised(im_node *n, tarn_term x, uint32_t i) {
  if (im_opt(n, i) == TARN_NONE) im_bad(n, "input %u is missing", i);
  im_set(n, 0, im_quantised(n, x, single(n, i), single(n, i + 1), im_type(n, im_arg(n, 0))));
}

void im_do_qlinear_binary(im_node *n) {
  const char *text = strcmp(n->op, "QLinearAdd") == 0 ? "(add $0 $1)" : "(mul $0 $1)";
  set_quantised(n, im_el(n, text, 2, numbers(n, 0), numbers(n, 3)), 6);
}

void im_do_qlinear_where(im_node *n) {
  set_quantised(n, im_el(n, "(select $2 $0 $1)", 3, numbers(n, 1), numbers(n, 4), im_arg(n, 0)), 7);
}

void im_do_qlinear_unary(im_node *n) {
  tarn_term x = numbers(n, 0);
  set_quantised(n, im_apply(n, n->op + strlen("QLinear"), 16, &x, 1)->t, 3);
}

/* The channels of an image last (1), or behind the batch. */
static tarn_term channels(im_node *n, tarn_term x, bool to_last) {
  uint32_t rank = im_shape(n, x).n, p[TARN_MAX_DIMS] = {0};
  if (!im_attr_int(n, "channels_last", 0)) return x;
  for (uint32_t i = 1; i < rank; i++) p[i] = to_last ? (i + 1 < rank ? i + 1 : 1) : i - 1;
  if (!to_last) p[1] = rank - 1;
  return im_permute(n, x, p);
}

void im_do_qlinear_pool(im_node *n) {
  tarn_term x = channels(n, numbers(n, 0), false);
  x = im_apply(n, n->op + strlen("QLinear"), 11, &x, 1)->t;
  set_quantised(n, channels(n, x, true), 3);
}

void im_do_qlinear_softmax(im_node *n) {
  tarn_term x = numbers(n, 0);
  int64_t set = im_attr_int(n, "opset", 13);
  set_quantised(n, im_apply(n, "Softmax", set < 13 ? 11 : 13, &x, 1)->t, 3);
}

/* Inputs: scale and zero point of the result, then a triple for each operand. */
void im_do_qlinear_concat(im_node *n) {
  uint32_t k = (n->nin - 2) / 3;
  tarn_term *part = TARN_ARRAY(n->cx, tarn_term, k + 1), zero = single(n, 1);
  if (n->nin < 5 || k * 3 + 2 != n->nin) im_bad(n, "%u inputs are no triples", n->nin);
  for (uint32_t i = 0; i < k; i++) part[i] = numbers(n, 2 + 3 * i);
  im_dims d = im_shape(n, part[0]);
  tarn_term y = im_concat(n, im_axis(n, im_attr_int(n, "axis", 0), d.n), part, k);
  im_set(n, 0, im_quantised(n, y, single(n, 0), zero, im_type(n, im_arg(n, 2))));
}

/* ---------------------------------------------------------------- products */

/* A scale for each column, or one. */
static tarn_term scaled(im_node *n, tarn_term sum, tarn_term a, tarn_term b) {
  const char *type = tarn_dtype_name(im_type(n, a));
  const char *text = tarn_format(n->cx, "(mul (cast %s $0) (mul $1 $2))", type);
  return im_el(n, text, 3, sum, a, b);
}

static tarn_term plus_bias(im_node *n, tarn_term y, uint32_t i) {
  return im_opt(n, i) == TARN_NONE ? y : im_el(n, "(add $0 $1)", 2, y, im_arg(n, i));
}

void im_do_matmul_integer_to_float(im_node *n) {
  tarn_term sum = im_byte_product(n, im_arg(n, 0), im_opt(n, 4), im_arg(n, 1), im_opt(n, 5));
  im_set(n, 0, plus_bias(n, scaled(n, sum, single(n, 2), im_arg(n, 3)), 6));
}

void im_do_dynamic_quantize_matmul(im_node *n) {
  tarn_term x = im_arg(n, 0);
  const im_val *q = im_apply(n, "DynamicQuantizeLinear", 11, &x, 1);
  tarn_term sum = im_byte_product(n, q[0].t, q[2].t, im_arg(n, 1), im_opt(n, 3));
  im_set(n, 0, plus_bias(n, scaled(n, sum, q[1].t, im_arg(n, 2)), 4));
}

static tarn_term turned(im_node *n, tarn_term t, const char *name) {
  static const uint32_t p[] = {1, 0};
  if (im_shape(n, t).n != 2) im_bad(n, "an operand is no matrix");
  return im_attr_int(n, name, 0) ? im_permute(n, t, p) : t;
}

void im_do_qgemm(im_node *n) {
  tarn_term a = turned(n, im_arg(n, 0), "transA"), b = turned(n, im_arg(n, 3), "transB");
  tarn_term sum = plus_bias(n, im_byte_product(n, a, im_arg(n, 2), b, im_arg(n, 5)), 6);
  im_param p[] = {{"alpha", im_attr_real(n, "alpha", 1), 0}};
  tarn_term scale = im_elp(n, "(mul $0 alpha)", p, 1, 1, single(n, 1));
  tarn_term y = scaled(n, sum, scale, im_arg(n, 4));
  if (im_opt(n, 7) != TARN_NONE) set_quantised(n, y, 7);
  else im_set(n, 0, y);
}

/* ---------------------------------------------------------------- packed weights */

tarn_term im_unpacked(im_node *n, tarn_term t, int64_t bits, int64_t run, int64_t count) {
  im_dims d = im_shape(n, t);
  int64_t per = 8 / bits, column[] = {per, 1};
  im_param p[] = {{"bits", 0, bits}, {"mask", 0, (1 << bits) - 1}};
  if (im_type(n, t) != TARN_U8) im_bad(n, "packed numbers are bytes");
  if (per > 1) {
    int64_t bytes = d.d[d.n - 1];
    d.d[d.n - 1] = bytes / run, d.d[d.n] = 1, d.d[d.n + 1] = run;
    tarn_term shift = im_reshape(n, im_iota(n, TARN_U8, per), 2, column);
    t = im_elp(n, "(and (shr $0 (mul $1 bits)) mask)", p, 2, 2, im_reshape(n, t, d.n + 2, d.d),
               shift);
    d.d[d.n - 1] = bytes * per;
    t = im_reshape(n, t, d.n, d.d);
  }
  if (d.d[d.n - 1] < count)
    im_bad(n, "%lld packed numbers where %lld are needed", (long long)d.d[d.n - 1],
           (long long)count);
  return im_cut(n, t, d.n - 1, 0, count, 1);
}

/* The zero points (N, blocks) as numbers of type t. */
static tarn_term zero_points(im_node *n, int64_t rows, int64_t blocks, int64_t bits, tarn_dtype t) {
  tarn_term z = im_opt(n, 3);
  int64_t row[] = {rows, blocks}, packed[] = {rows, (blocks * bits + 7) / 8};
  if (z == TARN_NONE) return im_scalar(n, t, ldexp(1, (int)bits - 1), 0);
  if (tarn_dtype_is_float(im_type(n, z))) return im_reshape(n, z, 2, row);
  return im_cast(n, im_unpacked(n, im_reshape(n, z, 2, packed), bits, 1, blocks), t);
}

/* The scales or zero points t of all blocks, (N, blocks), so that they broadcast to the weights:
 * (N, K) where g_idx (input 4) assigns each element a block, else (N, blocks, 1). One number for
 * all blocks stays as it is. */
static tarn_term of_blocks(im_node *n, tarn_term t, int64_t k) {
  tarn_term block = im_opt(n, 4);
  im_dims d = im_shape(n, t), di;
  int64_t column[] = {d.d[0], d.n ? d.d[1] : 0, 1}, flat = k;
  if (d.n == 0) return t;
  if (block == TARN_NONE) return im_reshape(n, t, 3, column);
  di = im_shape(n, block);
  if (im_count(&di) < k) im_bad(n, "g_idx has fewer than %lld elements", (long long)k);
  block = im_cut(n, im_reshape(n, block, 1, (int64_t[]){im_count(&di)}), 0, 0, flat, 1);
  return im_gather(n, t, 1, im_within(n, block, 0, d.d[1] - 1));
}

/* Rows of `blocks` blocks, as bytes times a scale of each block: its largest magnitude over 127. */
static tarn_term in_bytes(im_node *n, tarn_term x, int64_t blocks, int64_t block) {
  im_dims d = im_shape(n, x);
  x = im_pad(n, x, d.n - 1, 0, 0, blocks * block - d.d[d.n - 1]);
  d.d[d.n - 1] = blocks, d.d[d.n] = block;
  x = im_reshape(n, x, d.n + 1, d.d);
  uint32_t magnitude = im_formula(n, "(abs $0)", TARN_F32, NULL, 0);
  tarn_term most = im_reduce(n, x, 1u << d.n, magnitude, TARN_RED_MAX, true);
  tarn_term scale = im_el(n, "(div (max $0 1e-35) 127)", 1, most);
  tarn_term bytes = im_el(n, "(cast i8 (round (div $0 $1)))", 2, x, scale);
  return im_el(n, "(mul (cast f32 $0) $1)", 2, im_settled(n, bytes), im_settled(n, scale));
}

/* y = x · Wᵀ, W (N,K) in blocks of numbers of a few bits, each block with a scale and a zero point.
 */
void im_do_matmul_nbits(im_node *n) {
  enum { SUM = 100, BLOCK, COLUMN, IN_BYTES = 4 };
  tarn_term x = im_arg(n, 0), w = im_arg(n, 1), scale = im_arg(n, 2);
  im_dims d = im_shape(n, x);
  int64_t k = im_attr_int(n, "K", 0), rows = im_attr_int(n, "N", 0);
  int64_t bits = im_attr_int(n, "bits", 4), block = im_attr_int(n, "block_size", 0);
  int64_t level = im_attr_int(n, "accuracy_level", 0);
  if (im_attr_int(n, "weight_prepacked", 0)) im_bad(n, "weights in an order of their own");
  if (bits != 2 && bits != 4 && bits != 8)
    im_bad(n, "weights of %lld bits are not supported", (long long)bits);
  if (d.n < 1 || k < 1 || rows < 1 || block < 1 || d.d[d.n - 1] != k)
    im_bad(n, "K, N and block_size do not fit the input");
  int64_t blocks = (k + block - 1) / block, by_row[] = {rows, blocks};
  int64_t packed[] = {rows, blocks * block * bits / 8};
  bool reordered = im_opt(n, 4) != TARN_NONE;
  tarn_dtype t = im_type(n, x);
  w = im_unpacked(n, im_reshape(n, w, 2, packed), bits, 1, reordered ? k : blocks * block);
  int64_t in_blocks[] = {rows, blocks, block}, flat[] = {rows, blocks * block};
  if (!reordered) w = im_reshape(n, w, 3, in_blocks);
  tarn_term zero = of_blocks(n, zero_points(n, rows, blocks, bits, t), k);
  scale = of_blocks(n, im_reshape(n, im_cast(n, scale, t), 2, by_row), k);
  w = im_el(n, tarn_format(n->cx, "(mul (sub (cast %s $0) $1) $2)", tarn_dtype_name(t)), 3, w, zero,
            scale);
  bool bytes = level == IN_BYTES && !reordered && d.n < TARN_MAX_DIMS;
  if (bytes) x = in_bytes(n, x, blocks, block);
  else if (!reordered) w = im_cut(n, im_reshape(n, w, 2, flat), 1, 0, k, 1);
  uint8_t lx[TARN_MAX_DIMS], lo[TARN_MAX_DIMS], lw[] = {COLUMN, bytes ? BLOCK : SUM, SUM};
  for (uint32_t i = 0; i < d.n; i++) lo[i] = lx[i] = (uint8_t)i;
  lx[d.n - 1] = lw[1], lx[d.n] = SUM, lo[d.n - 1] = COLUMN;
  im_set(n, 0, plus_bias(n, im_contract(n, x, lx, w, lw, lo, d.n), 5));
}

/* ---------------------------------------------------------------- packed tables */

/* A table in blocks along an axis, and the axis that is indexed. */
typedef struct table {
  im_node *n;
  uint32_t axis, indexed;
  int64_t block, bits;
  int32_t stored;          /* the type of its numbers; 0: packed in bytes */
  tarn_term index, within; /* an index that is in range; is the one given? */
} table;

static int64_t blocks_of(const table *t, int64_t length) {
  return (length + t->block - 1) / t->block;
}

/* Indices count from the end where they are negative; one outside reads element 0. */
static void set_indices(table *t, int64_t extent) {
  im_node *n = t->n;
  im_param p[] = {{"extent", 0, extent}};
  tarn_term i = im_cast(n, im_arg(n, 1), TARN_I64);
  if (tarn_dtype_is_float(im_type(n, im_arg(n, 1)))) im_bad(n, "the indices are not integers");
  i = im_elp(n, "(select (lt $0 0) (add $0 extent) $0)", p, 1, 1, i);
  t->within = im_elp(n, "(and (le 0 $0) (lt $0 extent))", p, 1, 1, i);
  t->index = im_el(n, "(select $1 $0 0)", 2, i, t->within);
}

/* The elements at the indices, of the table, its scales or its zero points. */
static tarn_term indexed(const table *t, tarn_term x) {
  return x == TARN_NONE ? x : im_gather(t->n, x, t->indexed, t->index);
}

static void check_table(const table *t, const im_dims *d, int64_t length) {
  im_node *n = t->n;
  im_dims s = im_shape(n, im_arg(n, 2)), z = s;
  bool real = t->stored && !im_stored_is_integer(t->stored), fits = s.n == d->n;
  for (uint32_t i = 0; fits && i < d->n; i++)
    fits =
        i == t->axis ? s.d[i] == blocks_of(t, length) : s.d[i] == d->d[i] || (real && s.d[i] == 1);
  if (!fits) im_bad(n, "the scales do not fit blocks of %lld", (long long)t->block);
  if (!t->stored && (t->axis != d->n - 1 || t->indexed == t->axis))
    im_bad(n, "numbers packed in bytes are in blocks along the last axis, and not indexed there");
  if (im_opt(n, 3) == TARN_NONE) return;
  if (!t->stored) z.d[t->axis] = (s.d[t->axis] * t->bits + 7) / 8;
  im_dims given = im_shape(n, im_arg(n, 3));
  if (real || n->in[3]->stored != t->stored || given.n != z.n ||
      memcmp(given.d, z.d, z.n * sizeof *z.d) != 0)
    im_bad(n, "the zero points do not fit the scales");
}

static tarn_term dequantised(const table *t, tarn_term x, tarn_term scale, tarn_term zero) {
  im_node *n = t->n;
  if (t->stored && !im_stored_is_integer(t->stored)) {
    x = im_cast(n, im_stored_read(n, x, t->stored), im_type(n, scale));
    return im_el(n, "(mul $0 $1)", 2, x, scale);
  }
  if (zero == TARN_NONE && !t->stored) zero = im_scalar(n, TARN_I32, 0, 1 << (t->bits - 1));
  return im_dequantised(n, x, scale, zero);
}

/* The table's elements, or those of the rows that were picked from it, as numbers. */
static tarn_term numbers_of(const table *t, tarn_term x, tarn_term scale, tarn_term zero,
                            uint32_t axis, int64_t length) {
  im_node *n = t->n;
  if (!t->stored) x = im_unpacked(n, x, t->bits, 1, length);
  if (!t->stored && zero != TARN_NONE)
    zero = im_unpacked(n, zero, t->bits, 1, blocks_of(t, length));
  scale = im_repeat(n, scale, axis, t->block, length);
  if (zero != TARN_NONE) zero = im_repeat(n, zero, axis, t->block, length);
  return dequantised(t, x, scale, zero);
}

static table table_of(im_node *n, const im_dims *d) {
  table t = {.n = n, .stored = n->in[0]->stored, .block = im_attr_int(n, "block_size", 128)};
  tarn_dtype type = im_type(n, im_arg(n, 0));
  t.bits = im_attr_int(n, "bits", 4);
  t.indexed = im_axis(n, im_attr_int(n, "gather_axis", 0), d->n);
  t.axis = im_axis(n, im_attr_int(n, "quantize_axis", 1), d->n);
  if (!t.stored && (type != TARN_U8 || (t.bits != 2 && t.bits != 4 && t.bits != 8)))
    im_bad(n, "numbers of %lld bits in %s", (long long)t.bits, tarn_dtype_name(type));
  if (t.block == 0 && t.stored && !im_stored_is_integer(t.stored)) t.block = d->d[t.axis];
  if (t.block < 1) im_bad(n, "blocks of %lld", (long long)t.block);
  return t;
}

/* Elements of a table of few bits, dequantised. */
void im_do_gather_block_quantized(im_node *n) {
  tarn_term x = im_arg(n, 0), scale = im_arg(n, 2), zero = im_opt(n, 3);
  im_dims d = im_shape(n, x), di = im_shape(n, im_arg(n, 1)), to = d;
  if (d.n < 1 || d.n + di.n >= TARN_MAX_DIMS) im_bad(n, "%u dims and %u", d.n, di.n);
  table t = table_of(n, &d);
  int64_t length = d.d[t.axis] * (t.stored ? 1 : 8 / t.bits);
  check_table(&t, &d, length);
  set_indices(&t, d.d[t.indexed]);
  to.d[t.axis] = blocks_of(&t, length);
  scale = im_broadcast(n, scale, &to);
  uint32_t axis = t.axis > t.indexed ? t.axis + di.n - 1 : t.axis;
  tarn_term y = t.axis == t.indexed ? indexed(&t, numbers_of(&t, x, scale, zero, t.axis, length))
                                    : numbers_of(&t, indexed(&t, x), indexed(&t, scale),
                                                 indexed(&t, zero), axis, length);
  for (uint32_t i = di.n; i < d.n - 1 - t.indexed + di.n; i++) di.d[i] = 1;
  di.n += d.n - 1 - t.indexed;
  im_set(n, 0, im_el(n, "(select $1 $0 0)", 2, y, im_reshape(n, t.within, di.n, di.d)));
}
