/* Images: grids, samples in boxes, patches put back, crops around the middle. */
#include "model/import.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- AffineGrid */

/* Coordinate i of `extent` pixels between -1 and 1: of its middle, or (align) of the corners. */
static double coordinate(int64_t i, int64_t extent, bool align) {
  if (!align) return (2 * (double)i + 1) / (double)extent - 1;
  return extent == 1 ? -1 : 2 * (double)i / (double)(extent - 1) - 1;
}

/* (D…, r + 1): x, y … of every pixel and a one. */
static tarn_term pixels(im_node *n, tarn_dtype t, uint32_t r, const int64_t *size, bool align) {
  int64_t dim[TARN_MAX_DIMS];
  memcpy(dim, size, r * sizeof *dim);
  dim[r] = r + 1;
  tarn_tensor *p = im_new(n, t, r + 1, dim);
  for (int64_t i = 0, count = tarn_tensor_count(p); i < count; i++) {
    uint32_t which = (uint32_t)(i % (r + 1));
    int64_t rest = i / (r + 1), at = 0;
    for (uint32_t k = r; k-- > 0 && which < r; rest /= size[k])
      if (k == r - 1 - which) at = rest % size[k];
    double v = which == r ? 1 : coordinate(at, size[r - 1 - which], align);
    tarn_tensor_set(p, i, (tarn_value){.d = v});
  }
  return im_const(n, p);
}

void im_do_affine_grid(im_node *n) {
  enum { N = 1, ROW, SUM, SPACE };
  tarn_term theta = im_arg(n, 0);
  im_dims d = im_shape(n, theta);
  uint32_t k, r = d.n == 3 ? (uint32_t)d.d[1] : 0;
  const int64_t *size = im_ints(n, 1, "the size", &k);
  if ((r != 2 && r != 3) || d.d[2] != r + 1 || k != r + 2 || size[0] != d.d[0])
    im_bad(n, "a transform of %u dims for a size of %u", d.n, k);
  for (uint32_t i = 0; i < r; i++)
    if (size[2 + i] < 1 || size[2 + i] > IM_MAX_MADE) im_bad(n, "the size is out of range");
  tarn_term p = pixels(n, im_type(n, theta), r, size + 2, im_attr_int(n, "align_corners", 0));
  uint8_t lt[] = {N, ROW, SUM}, lp[4], lo[5] = {N};
  for (uint32_t i = 0; i < r; i++) lp[i] = lo[1 + i] = (uint8_t)(SPACE + i);
  lp[r] = SUM, lo[1 + r] = ROW;
  im_set(n, 0, im_contract(n, theta, lt, p, lp, lo, r + 2));
}

/* ---------------------------------------------------------------- CenterCropPad */

void im_do_center_crop_pad(im_node *n) {
  tarn_term x = im_arg(n, 0);
  uint32_t rank = im_shape(n, x).n, k, ka;
  const int64_t *shape = im_ints(n, 1, "the shape", &k), *axes = im_attr_ints(n, "axes", &ka);
  if (!axes) ka = rank;
  if (k != ka) im_bad(n, "%u extents for %u axes", k, ka);
  for (uint32_t i = 0; i < k; i++) {
    uint32_t axis = axes ? im_axis(n, axes[i], rank) : i;
    int64_t is = im_shape(n, x).d[axis], want = shape[i];
    if (want < 0 || want > IM_MAX_EXTENT) im_bad(n, "extent %lld is out of range", (long long)want);
    int64_t half = (want > is ? want - is : is - want) / 2;
    x = want > is ? im_pad(n, x, axis, 0, half, want - is - half)
                  : im_cut(n, x, axis, half, half + want, 1);
  }
  im_set(n, 0, x);
}

/* ---------------------------------------------------------------- Col2Im */

typedef struct patches {
  uint32_t r;
  const int64_t *image, *block;
  int64_t s[TARN_MAX_DIMS], d[TARN_MAX_DIMS], b[TARN_MAX_DIMS], a[TARN_MAX_DIMS];
  int64_t count[TARN_MAX_DIMS]; /* of patches */
} patches;

static patches read_patches(im_node *n) {
  patches p = {0};
  uint32_t k;
  int64_t pads[2 * TARN_MAX_DIMS];
  p.image = im_ints(n, 1, "image_shape", &p.r);
  p.block = im_ints(n, 2, "block_shape", &k);
  if (p.r != k || p.r < 1 || 2 * p.r + 2 > TARN_MAX_DIMS)
    im_bad(n, "an image of %u dims, blocks of %u", p.r, k);
  im_attr_list(n, "strides", p.s, p.r, 1, 1, IM_MAX_MADE);
  im_attr_list(n, "dilations", p.d, p.r, 1, 1, IM_MAX_MADE);
  im_attr_list(n, "pads", pads, 2 * p.r, 0, 0, IM_MAX_MADE);
  for (uint32_t i = 0; i < p.r; i++) {
    p.b[i] = pads[i], p.a[i] = pads[p.r + i];
    if (p.image[i] < 1 || p.image[i] > IM_MAX_MADE || p.block[i] < 1 || p.block[i] > IM_MAX_MADE)
      im_bad(n, "an extent of the image or of the blocks is out of range");
    int64_t room = p.image[i] + p.b[i] + p.a[i] - (p.d[i] * (p.block[i] - 1) + 1);
    if (room < 0) im_bad(n, "the blocks are larger than the image");
    p.count[i] = room / p.s[i] + 1;
  }
  return p;
}

/* ((N,C,H…),(K…)) over x (N,C,K…,L…): the element of each patch that lies on a pixel, if any. */
static tarn_term over_pixels(im_node *n, tarn_term x, const patches *p) {
  tarn_lang *L = n->L;
  im_dims d = im_shape(n, x);
  uint32_t r = p->r;
  tarn_imap m = {.ns = (uint8_t)(2 + r),
                 .n = (uint8_t)(2 + 2 * r),
                 .nin = (uint8_t)d.n,
                 .fill = im_fxc(n, im_type(n, x), 0)};
  memcpy(m.in, d.d, sizeof m.in);
  m.dim[0] = d.d[0], m.dim[1] = d.d[1];
  for (uint32_t i = 0; i < r; i++) m.dim[2 + i] = p->image[i], m.dim[2 + r + i] = p->block[i];
  m.e[0] = tarn_ix_var(L, 0, m.dim), m.e[1] = tarn_ix_var(L, 1, m.dim);
  for (uint32_t i = 0; i < r; i++) {
    uint32_t k = tarn_ix_var(L, 2 + r + i, m.dim);
    uint32_t at = tarn_ix_add(L, tarn_ix_var(L, 2 + i, m.dim), tarn_ix_const(L, p->b[i]), m.dim);
    at = tarn_ix_add(L, at, tarn_ix_scale(L, k, -p->d[i], m.dim), m.dim);
    m.e[2 + i] = k;
    m.e[2 + r + i] = tarn_ix_div(L, at, p->s[i], m.dim);
    m.guard[m.nguard++] = (tarn_guard){at, 0, (p->count[i] - 1) * p->s[i] + 1};
    if (p->s[i] > 1) m.guard[m.nguard++] = (tarn_guard){tarn_ix_mod(L, at, p->s[i], m.dim), 0, 1};
  }
  return tarn_view(L, tarn_map_intern(L, &m), x);
}

void im_do_col2im(im_node *n) {
  tarn_term x = im_arg(n, 0);
  im_dims d = im_shape(n, x);
  patches p = read_patches(n);
  int64_t dim[TARN_MAX_DIMS], block = 1, count = 1;
  for (uint32_t i = 0; i < p.r; i++) {
    if (__builtin_mul_overflow(block, p.block[i], &block) ||
        __builtin_mul_overflow(count, p.count[i], &count))
      im_bad(n, "the product of the extents overflows");
    dim[2 + i] = p.block[i], dim[2 + p.r + i] = p.count[i];
  }
  if (d.n != 3 || d.d[1] % block || d.d[2] != count)
    im_bad(n, "the input is not (batch, channels x %lld, %lld)", (long long)block,
           (long long)count);
  dim[0] = d.d[0], dim[1] = d.d[1] / block;
  tarn_term v = over_pixels(n, im_reshape(n, x, 2 + 2 * p.r, dim), &p);
  tarn_dtype t = im_type(n, x);
  uint32_t sum =
      tarn_fn_reduce(n->L, tarn_fx_hole(n->L, 0), 1, tarn_reducer_of(n->L, TARN_RED_SUM, t));
  im_set(n, 0, tarn_compute(n->L, sum, &v, 1));
}

/* ---------------------------------------------------------------- RoiAlign */

#define MOST_SAMPLES 64

typedef struct boxes {
  im_node *n;
  tarn_term box; /* (R,4): x1 y1 x2 y2 */
  double scale;
  bool half;       /* pixels have their middle at a half; else a box has one pixel at least */
  int64_t samples; /* of a bin, along each axis */
} boxes;

/* What a box's bins read along one axis, (R,bins,2·samples): a sample lies between two pixels. */
typedef struct side {
  tarn_term at, inside, weight;
} side;

/* (R) -> (R,1,1) */
static tarn_term of_boxes(im_node *n, tarn_term t) {
  int64_t dim[] = {im_shape(n, t).d[0], 1, 1};
  return im_reshape(n, t, 3, dim);
}

/* An end of the boxes, in pixels. */
static tarn_term edge(const boxes *b, int64_t column) {
  im_param p[] = {{"scale", b->scale, 0}, {"shift", b->half ? 0.5 : 0, 0}};
  tarn_term v = im_pick(b->n, b->box, 1, column);
  return of_boxes(b->n, im_elp(b->n, "(sub (mul $0 scale) shift)", p, 2, 1, v));
}

/* Where the samples of all bins lie. */
static tarn_term samples_of(const boxes *b, int64_t column, int64_t bins) {
  im_node *n = b->n;
  tarn_dtype t = im_type(n, b->box);
  im_param p[] = {{"bins", (double)bins, 0}, {"samples", (double)b->samples, 0}};
  tarn_term lo = edge(b, column),
            size = im_el(n, b->half ? "(sub $1 $0)" : "(max 1 (sub $1 $0))", 2, lo,
                         edge(b, column + 2)),
            bin = im_elp(n, "(div $0 bins)", p, 2, 1, size),
            k = im_cast(n, im_el(n, "(div $0 2)", 1, im_steps(n, 2, 3, 2 * b->samples)), t),
            step = im_elp(n, "(add $0 (div (add $1 0.5) samples))", p, 2, 2,
                          im_cast(n, im_steps(n, 1, 3, bins), t), k);
  return im_el(n, "(add $0 (mul $1 $2))", 3, lo, step, bin);
}

/* Samples outside by more than a pixel are 0, others at the edge. One tap is the even pixel beside
 * a sample, one the odd one, so that where a tap jumps its weight is 0: kernels that compute a
 * sample apart may round it to either side. */
static side side_of(const boxes *b, int64_t column, int64_t bins, int64_t extent) {
  im_node *n = b->n;
  im_param p[] = {{"last", (double)(extent - 1), 0}, {"extent", (double)extent, 0}};
  tarn_term v = samples_of(b, column, bins);
  tarn_term inside = im_elp(n, "(and (le -1 $0) (le $0 extent))", p, 2, 1, v);
  v = im_elp(n, "(select $1 (max 0 (min last $0)) 0)", p, 2, 2, v, inside);
  tarn_term tap =
      im_cast(n, im_el(n, "(mod $0 2)", 1, im_steps(n, 2, 3, 2 * b->samples)), im_type(n, v));
  tarn_term at = im_el(n, "(add (mul 2 (floor (mul 0.5 (add (sub $0 $1) 1)))) $1)", 2, v, tap),
            weight = im_el(n, "(max 0 (sub 1 (abs (sub $0 $1))))", 2, v, at);
  at = im_elp(n, "(cast i64 (max 0 (min last $0)))", p, 2, 1, at);
  return (side){at, inside, weight};
}

/* (R,bins,taps) of rows or columns -> (R,rows,taps,columns,taps), the others' dims 1. */
static tarn_term beside(im_node *n, tarn_term t, bool columns) {
  im_dims d = im_shape(n, t);
  int64_t row[] = {d.d[0], d.d[1], d.d[2], 1, 1}, column[] = {d.d[0], 1, 1, d.d[1], d.d[2]};
  return im_reshape(n, t, 5, columns ? column : row);
}

/* Σ over taps, or the largest, as ONNX has it: of weighed pixels. (R,rows,columns,C) */
static tarn_term aligned(const boxes *b, tarn_term x, tarn_term batch, side y, side u, bool max) {
  im_node *n = b->n;
  im_dims d = im_shape(n, x);
  im_param p[] = {{"height", 0, d.d[2]},
                  {"width", 0, d.d[3]},
                  {"images", 0, d.d[0]},
                  {"nowhere", 0, INT64_MAX}};
  int64_t dim[] = {im_shape(n, batch).d[0], 1, 1, 1, 1};
  tarn_term image = im_reshape(n, im_cast(n, batch, TARN_I64), 5, dim);
  tarn_term at = im_elp(n,
                        "(select (or (lt $0 0) (le images $0)) nowhere (add (mul (add (mul $0 "
                        "height) $1) width) $2))",
                        p, 4, 3, image, beside(n, y.at, false), beside(n, u.at, true));
  tarn_term weight =
      im_el(n, "(mul $0 $1)", 2, beside(n, y.weight, false), beside(n, u.weight, true));
  tarn_term inside =
      im_el(n, "(and $0 $1)", 2, beside(n, y.inside, false), beside(n, u.inside, true));
  inside = im_el(n, "(and $1 (not (eq $0 0)))", 2, weight, inside);
  tarn_term v = im_gather(n, im_rows_of_channels(n, x), 0, at);
  v = im_el(n, "(select $1 (mul $0 $2) 0)", 3, v, im_over_channels(n, inside),
            im_over_channels(n, im_cast(n, weight, im_type(n, v))));
  return im_reduce(n, v, 1u << 2 | 1u << 4, TARN_NONE, max ? TARN_RED_MAX : TARN_RED_SUM, false);
}

void im_do_roi_align(im_node *n) {
  const uint32_t order[] = {0, 3, 1, 2};
  tarn_term x = im_arg(n, 0), batch = im_arg(n, 2);
  boxes b = {.n = n, .box = im_arg(n, 1), .scale = im_attr_real(n, "spatial_scale", 1)};
  im_dims d = im_shape(n, x), dr = im_shape(n, b.box), db = im_shape(n, batch);
  int64_t rows = im_attr_int(n, "output_height", 1), columns = im_attr_int(n, "output_width", 1);
  b.samples = im_attr_int(n, "sampling_ratio", 0);
  bool max = strcmp(im_attr_str(n, "mode", "avg"), "max") == 0;
  const char *usual = n->version < 16 ? "output_half_pixel" : "half_pixel";
  b.half = strcmp(im_attr_str(n, "coordinate_transformation_mode", usual), "half_pixel") == 0;
  /* Without a number of samples it depends on the boxes. */
  bool fits = d.n == 4 && dr.n == 2 && dr.d[1] == 4 && db.n == 1 && db.d[0] == dr.d[0];
  if (!fits || im_count(&d) == 0 || b.samples < 1 || b.samples > MOST_SAMPLES || rows < 1 ||
      columns < 1) {
    im_do_opaque(n);
    return;
  }
  side y = side_of(&b, 1, rows, d.d[2]), u = side_of(&b, 0, columns, d.d[3]);
  tarn_term t = im_permute(n, aligned(&b, x, batch, y, u, max), order);
  im_param count = {"count", (double)(b.samples * b.samples), 0};
  im_set(n, 0, max ? t : im_elp(n, "(div $0 count)", &count, 1, 1, t));
}

/* ---------------------------------------------------------------- MaxRoiPool */

/* An end of the boxes in whole pixels, halves away from 0: (R,1,1). */
static tarn_term pixel(const boxes *b, int64_t column) {
  return im_el(b->n,
               "(mul (sign $0) (add (floor (abs $0)) (select (le 0.5 (sub (abs $0) (floor (abs "
               "$0)))) 1 0)))",
               1, edge(b, 1 + column));
}

/* Which pixels of one axis each bin of a box holds, both its ends included: (R,bins,extent). In the
 * floats of others, by which the last bin of a few boxes reaches one pixel farther. Divided in f64,
 * as a product with the reciprocal rounds to the same float. */
static tarn_term bins_of(const boxes *b, int64_t column, int64_t bins, int64_t extent) {
  im_node *n = b->n;
  tarn_dtype t = im_type(n, b->box);
  im_param p[] = {{"bins", (double)bins, 0}};
  tarn_term lo = pixel(b, column), hi = pixel(b, column + 2),
            size = im_cast(n, im_el(n, "(max 1 (add (sub $1 $0) 1))", 2, lo, hi), TARN_F64);
  size = im_cast(n, im_elp(n, "(div $0 bins)", p, 1, 1, size), t);
  tarn_term k = im_steps(n, 1, 3, bins + 1), at = im_cast(n, im_steps(n, 2, 3, extent), t);
  tarn_term from = im_cast(n, im_cut(n, k, 1, 0, bins, 1), t),
            to = im_cast(n, im_cut(n, k, 1, 1, bins + 1, 1), t);
  return im_el(n, "(and (le (add (floor (mul $2 $1)) $0) $4) (lt $4 (add (ceil (mul $3 $1)) $0)))",
               5, lo, size, from, to, at);
}

/* Is any of the last axis inside? As a number of x's type. */
static tarn_term some_inside(im_node *n, tarn_term x, tarn_term inside) {
  uint32_t last = im_shape(n, inside).n - 1;
  inside = im_cast(n, inside, im_type(n, x));
  return im_reduce(n, inside, 1u << last, TARN_NONE, TARN_RED_MAX, false);
}
/* The largest of the last axis where it is inside, which broadcasts to it; -inf: none. */
static tarn_term largest(im_node *n, tarn_term x, tarn_term inside) {
  im_param p[] = {{"none", -INFINITY, 0}};
  uint32_t last = im_shape(n, x).n - 1;
  x = im_elp(n, "(select $1 $0 none)", p, 1, 2, x, inside);
  return im_reduce(n, x, 1u << last, TARN_NONE, TARN_RED_MAX, false);
}

/* Along rows, then along columns: (R,C,H,W) -> (R,C,rows,columns). A bin without pixels is 0. */
static tarn_term pooled(const boxes *b, tarn_term x, int64_t rows, int64_t columns) {
  im_node *n = b->n;
  im_dims d = im_shape(n, x);
  int64_t r = d.d[0], c = d.d[1], h = d.d[2], w = d.d[3];
  const uint32_t turn[] = {0, 1, 3, 2};
  tarn_term in_row = im_reshape(n, bins_of(b, 0, columns, w), 5, (int64_t[]){r, 1, 1, columns, w});
  tarn_term in_column = im_reshape(n, bins_of(b, 1, rows, h), 5, (int64_t[]){r, 1, rows, 1, h});
  x = largest(n, im_reshape(n, x, 5, (int64_t[]){r, c, h, 1, w}), in_row);
  x = im_reshape(n, im_permute(n, x, turn), 5, (int64_t[]){r, c, 1, columns, h});
  return im_el(n, "(select (lt 0 (mul $1 $2)) $0 0)", 3, largest(n, x, in_column),
               some_inside(n, x, in_row), some_inside(n, x, in_column));
}

/* Boxes (image, x1, y1, x2, y2). */
void im_do_max_roi_pool(im_node *n) {
  tarn_term x = im_arg(n, 0), box = im_arg(n, 1);
  im_dims d = im_shape(n, x), dr = im_shape(n, box);
  uint32_t k;
  const int64_t *shape = im_attr_ints(n, "pooled_shape", &k);
  boxes b = {.n = n, .box = box, .scale = im_attr_real(n, "spatial_scale", 1)};
  if (d.n != 4 || dr.n != 2 || dr.d[1] != 5) im_bad(n, "only images (N,C,H,W) with boxes (R,5)");
  if (k != 2 || shape[0] < 1 || shape[1] < 1) im_bad(n, "pooled_shape is not two extents");
  int64_t dim[] = {dr.d[0], d.d[1], shape[0], shape[1]};
  if (im_count(&d) == 0 || dr.d[0] == 0) {
    im_set(n, 0, im_fill(n, im_scalar(n, im_type(n, x), 0, 0), 4, dim));
    return;
  }
  uint32_t f = im_formula(n, "(select (isnan $0) -1 (cast i64 $0))", TARN_I64, NULL, 0);
  tarn_term image = im_pick(n, box, 1, 0);
  x = im_rows(n, x, im_map(n, f, &image, 1));
  im_set(n, 0, pooled(&b, x, shape[0], shape[1]));
}
