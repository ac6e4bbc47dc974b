/* Samples between the pixels of an image: at the points of a grid, and where the taps of a
 * deformable convolution lie.
 *
 * Source: Dai et al., "Deformable convolutional networks", ICCV 2017; Zhu et al., "Deformable
 * ConvNets v2", CVPR 2019 (masks). */
#include "model/import.h"
#include <string.h>

/* ---------------------------------------------------------------- GridSample */

typedef enum padding { ZEROS, BORDER, REFLECTION } padding;

typedef struct grid {
  im_node *n;
  uint32_t r;
  int64_t extent[TARN_MAX_DIMS]; /* of the image */
  padding padding;
  bool align;
  tarn_term base[TARN_MAX_DIMS]; /* the pixel of the first tap, along each axis */
  tarn_term part[TARN_MAX_DIMS]; /* how far the point lies behind it */
  int taps, first;               /* the first tap's distance from the base */
} grid;

static tarn_term both(im_node *n, const char *text, tarn_term a, tarn_term b) {
  return a == TARN_NONE ? b : b == TARN_NONE ? a : im_el(n, text, 2, a, b);
}

static tarn_term padded(const grid *g, tarn_term v, uint32_t axis) {
  double last = (double)(g->extent[axis] - 1), lo = g->align ? 0 : -0.5;
  double range = g->align ? last : last + 1;
  im_param p[] = {{"last", last, 0},
                  {"lo", lo, 0},
                  {"range", range, 0},
                  {"twice", 2 * range, 0},
                  {"top", lo + 2 * range, 0}};
  if (g->padding == ZEROS) return v;
  if (g->padding == REFLECTION && range > 0) {
    v = im_elp(g->n, "(fmod (abs (sub $0 lo)) twice)", p, 5, 1, v);
    v = im_elp(g->n, "(select (lt range $0) (sub top $0) (add lo $0))", p, 5, 1, v);
  }
  return im_elp(g->n, "(max 0 (min last $0))", p, 5, 1, v);
}

/* Coordinates between -1 and 1 as pixels. */
static void read_pixels(const grid *g, tarn_term at, tarn_term *v) {
  for (uint32_t k = 0; k < g->r; k++) {
    double e = (double)g->extent[k];
    im_param p[] = {{"scale", (g->align ? e - 1 : e) / 2, 0}, {"half", g->align ? 0 : 0.5, 0}};
    v[k] = im_pick(g->n, at, g->r + 1, g->r - 1 - k);
    v[k] = im_elp(g->n, "(sub (mul (add $0 1) scale) half)", p, 2, 1, v[k]);
  }
}

/* Points in pixels along each axis; what is no number, or far away, lies outside. */
static void read_points(grid *g, tarn_term *v, bool smooth, bool nearest) {
  im_node *n = g->n;
  tarn_term far = TARN_NONE;
  for (uint32_t k = 0; k < g->r; k++)
    far = both(n, "(or $0 $1)", far, im_el(n, "(not (lt (abs $0) 1e15))", 1, v[k]));
  for (uint32_t k = 0; k < g->r; k++) {
    v[k] = im_el(n, "(select $1 -1e15 $0)", 2, v[k], far);
    if (!smooth) v[k] = padded(g, v[k], k);
    g->base[k] = im_el(n, nearest ? "(round $0)" : "(floor $0)", 1, v[k]);
    g->part[k] = im_el(n, "(sub $0 $1)", 2, v[k], g->base[k]);
  }
  g->taps = nearest ? 1 : smooth ? 4 : 2;
  g->first = smooth ? -1 : 0;
}

/* What all taps of a point read, along further axes of the points: (N,P…,taps…). */
typedef struct taps {
  tarn_term index, inside, weight; /* inside, weight TARN_NONE: all, 1 */
} taps;

/* (N,P…) -> (N,P…,1…) */
static tarn_term before_taps(const grid *g, tarn_term t) {
  im_dims d = im_shape(g->n, t);
  for (uint32_t k = 0; k < g->r; k++) d.d[d.n++] = 1;
  return im_reshape(g->n, t, d.n, d.d);
}

/* The weights along one axis: i the number of a tap.  Keys' cubic has a = -0.75. */
static tarn_term weights_of(const grid *g, uint32_t axis, tarn_term i) {
  tarn_term f = before_taps(g, g->part[axis]);
  if (g->taps == 1) return TARN_NONE;
  if (g->taps == 2) return im_el(g->n, "(select (eq $1 0) (sub 1 $0) $0)", 2, f, i);
  tarn_term d = im_el(g->n, "(abs (sub $0 $1))", 2, f, i);
  return im_el(g->n,
               "(select (le $0 1) (add 1 (mul (mul $0 $0) (sub (mul 1.25 $0) 2.25)))"
               " (add 3 (mul $0 (sub (mul $0 (sub 3.75 (mul 0.75 $0))) 6))))",
               1, d);
}

/* 0, 1, … from the first tap on, along its axis of the taps. */
static tarn_term numbers_of(const grid *g, uint32_t axis) {
  int64_t dim[TARN_MAX_DIMS] = {0};
  for (uint32_t k = 0; k < 1 + 2 * g->r; k++) dim[k] = k == 1 + g->r + axis ? g->taps : 1;
  tarn_term i = im_iota(g->n, im_type(g->n, g->base[axis]), g->taps);
  im_param p[] = {{"first", g->first, 0}};
  return im_elp(g->n, "(add $0 first)", p, 1, 1, im_reshape(g->n, i, 1 + 2 * g->r, dim));
}

static void add_axis(const grid *g, taps *t, uint32_t axis) {
  im_node *n = g->n;
  tarn_term i = numbers_of(g, axis);
  im_param p[] = {{"last", (double)(g->extent[axis] - 1), 0}, {"extent", 0, g->extent[axis]}};
  tarn_term at = im_el(n, "(add $0 $1)", 2, before_taps(g, g->base[axis]), i);
  if (g->padding != ZEROS) at = padded(g, at, axis);
  else
    t->inside =
        both(n, "(and $0 $1)", t->inside, im_elp(n, "(and (le 0 $0) (le $0 last))", p, 1, 1, at));
  at = im_elp(n, "(cast i64 (max 0 (min last $0)))", p, 1, 1, at);
  t->index = im_elp(n, "(add (mul $0 extent) $1)", p, 2, 2, t->index, at);
  t->weight = both(n, "(mul $0 $1)", t->weight, weights_of(g, axis, i));
}

/* A further axis for the channels. */
tarn_term im_over_channels(im_node *n, tarn_term t) {
  im_dims d = im_shape(n, t);
  d.d[d.n++] = 1;
  return im_reshape(n, t, d.n, d.d);
}

/* x (N·D…, C), as many dims P as D: (N,P…,C). What has no weight has no part in the result,
 * infinite or not. */
static tarn_term sampled(const grid *g, tarn_term x, int64_t batch) {
  im_node *n = g->n;
  int64_t dim[TARN_MAX_DIMS] = {batch};
  for (uint32_t k = 0; k < 2 * g->r; k++) dim[1 + k] = 1;
  taps t = {im_reshape(n, im_iota(n, TARN_I64, batch), 1 + 2 * g->r, dim), TARN_NONE, TARN_NONE};
  for (uint32_t k = 0; k < g->r; k++) add_axis(g, &t, k);
  tarn_term v = im_gather(n, x, 0, t.index);
  if (t.weight != TARN_NONE) {
    t.weight = im_cast(n, t.weight, im_type(n, x));
    t.inside = both(n, "(and $0 $1)", t.inside, im_el(n, "(not (eq $0 0))", 1, t.weight));
    v = im_el(n, "(mul $0 $1)", 2, v, im_over_channels(n, t.weight));
  }
  if (t.inside != TARN_NONE) v = im_el(n, "(select $1 $0 0)", 2, v, im_over_channels(n, t.inside));
  uint32_t mask = ((1u << g->r) - 1) << (1 + g->r);
  return im_reduce(n, v, mask, TARN_NONE, TARN_RED_SUM, false);
}

static void check_grid(im_node *n, const im_dims *x, const im_dims *g) {
  bool fits = x->n == g->n && (x->n == 4 || x->n == 5) && g->d[g->n - 1] == (int64_t)x->n - 2 &&
              g->d[0] == x->d[0];
  if (!fits) im_bad(n, "only images (N,C,H,W) with a grid (N,H,W,2), or those with one more dim");
  if (!tarn_dtype_is_float(im_type(n, im_arg(n, 0)))) im_bad(n, "only images of floats");
}

/* (N,C,D…) -> (N·D…, C) */
tarn_term im_rows_of_channels(im_node *n, tarn_term x) {
  im_dims d = im_shape(n, x);
  uint32_t p[TARN_MAX_DIMS] = {0};
  for (uint32_t i = 2; i < d.n; i++) p[i - 1] = i;
  p[d.n - 1] = 1;
  int64_t rows[] = {im_count(&d) / d.d[1], d.d[1]};
  return im_reshape(n, im_permute(n, x, p), 2, rows);
}

void im_do_grid_sample(im_node *n) {
  tarn_term x = im_arg(n, 0), at = im_arg(n, 1);
  im_dims d = im_shape(n, x), dg = im_shape(n, at);
  check_grid(n, &d, &dg);
  const char *mode = im_attr_str(n, "mode", "bilinear");
  const char *outside = im_attr_str(n, "padding_mode", "zeros");
  bool nearest = strcmp(mode, "nearest") == 0;
  bool smooth = strcmp(mode, "bicubic") == 0 || strcmp(mode, "cubic") == 0;
  grid g = {.n = n, .r = d.n - 2, .align = im_attr_int(n, "align_corners", 0) != 0};
  if (strcmp(outside, "border") == 0) g.padding = BORDER;
  else if (strcmp(outside, "reflection") == 0) g.padding = REFLECTION;
  else if (strcmp(outside, "zeros") != 0) im_bad(n, "padding_mode %s is unknown", outside);
  if (!nearest && !smooth && strcmp(mode, "bilinear") != 0 && strcmp(mode, "linear") != 0)
    im_bad(n, "mode %s is unknown", mode);
  if (im_count(&d) == 0) im_bad(n, "the image has no elements");
  memcpy(g.extent, d.d + 2, g.r * sizeof *g.extent);
  tarn_term v[TARN_MAX_DIMS];
  read_pixels(&g, at, v);
  read_points(&g, v, smooth, nearest);
  tarn_term y = sampled(&g, im_rows_of_channels(n, x), d.d[0]);
  uint32_t p[TARN_MAX_DIMS] = {0, d.n - 1};
  for (uint32_t i = 2; i < d.n; i++) p[i] = i - 1;
  im_set(n, 0, im_permute(n, y, p));
}

/* ---------------------------------------------------------------- DeformConv */

/* Groups of channels that share their offsets are images of their own: (N·groups, C/groups, D…). */
typedef struct deform {
  im_node *n;
  im_dims x, w;
  im_window win;
  int64_t group, shared; /* of the weights, of the offsets */
  int64_t k, out;        /* taps, places */
} deform;

/* As one dim of a vector: where tap or place i starts along an axis. */
static tarn_term starts(const deform *c, uint32_t axis, bool tap) {
  const im_window *w = &c->win;
  const int64_t *dims = tap ? w->k : w->out;
  int64_t count = tap ? c->k : c->out, after = 1;
  for (uint32_t i = axis + 1; i < w->r; i++) after *= dims[i];
  tarn_tensor *t = im_new(c->n, im_type(c->n, im_arg(c->n, 2)), 1, &count);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = i / after % dims[axis];
    at = tap ? at * w->d[axis] : at * w->s[axis] - w->b[axis];
    tarn_tensor_set(t, i, (tarn_value){.d = (double)at});
  }
  return im_reshape(c->n, im_const(c->n, t), tap ? 2 : 1, (int64_t[]){count, 1});
}

/* The images' dims of taps and places: as many as the image has. */
static tarn_term as_points(const deform *c, tarn_term t) {
  int64_t dim[TARN_MAX_DIMS] = {c->x.d[0] * c->shared, c->k, c->out};
  for (uint32_t i = 2; i < c->win.r; i++) dim[1 + i] = 1;
  if (c->win.r == 1) dim[1] = c->k * c->out;
  return im_reshape(c->n, t, 1 + c->win.r, dim);
}

/* The input under each tap at each place, times its mask: (N, C, taps, places). */
static tarn_term under_taps(const deform *c) {
  im_node *n = c->n;
  uint32_t r = c->win.r;
  int64_t images = c->x.d[0] * c->shared, channels = c->x.d[1] / c->shared;
  int64_t by_axis[] = {images, c->k, r, c->out};
  tarn_term offset = im_reshape(n, im_arg(n, 2), 4, by_axis), v[TARN_MAX_DIMS];
  grid g = {.n = n, .r = r};
  memcpy(g.extent, c->x.d + 2, r * sizeof *g.extent);
  for (uint32_t i = 0; i < r; i++)
    v[i] = as_points(c, im_el(n, "(add $0 (add $1 $2))", 3, im_pick(n, offset, 2, i),
                              starts(c, i, true), starts(c, i, false)));
  read_points(&g, v, false, false);
  im_dims d = {.n = c->x.n, .d = {images, channels}};
  memcpy(d.d + 2, c->x.d + 2, r * sizeof *d.d);
  tarn_term y = sampled(&g, im_rows_of_channels(n, im_reshape(n, im_arg(n, 0), d.n, d.d)), images);
  y = im_reshape(n, y, 4, (int64_t[]){images, c->k, c->out, channels});
  if (im_opt(n, 4) != TARN_NONE)
    y = im_el(n, "(mul $0 $1)", 2, y,
              im_reshape(n, im_arg(n, 4), 4, (int64_t[]){images, c->k, c->out, 1}));
  y = im_permute(n, y, (const uint32_t[]){0, 3, 1, 2});
  return im_reshape(n, y, 4, (int64_t[]){c->x.d[0], c->x.d[1], c->k, c->out});
}

/* Is input i (N, channels, places…)? */
static void check_places(const deform *c, uint32_t i, int64_t channels, const char *what) {
  im_dims d = im_shape(c->n, im_arg(c->n, i));
  bool fits = d.n == c->x.n && d.d[0] == c->x.d[0] && d.d[1] == channels;
  for (uint32_t k = 0; fits && k < c->win.r; k++) fits = d.d[2 + k] == c->win.out[k];
  if (!fits) im_bad(c->n, "the %s is not (batch, %lld, places)", what, (long long)channels);
}

static deform read_deform(im_node *n) {
  deform c = {.n = n, .k = 1, .out = 1};
  c.x = im_shape(n, im_arg(n, 0)), c.w = im_shape(n, im_arg(n, 1));
  c.group = im_attr_int(n, "group", 1), c.shared = im_attr_int(n, "offset_group", 1);
  for (uint32_t i = 1; i < 5; i++) im_alike(n, 0, i);
  if (c.x.n < 3 || c.w.n != c.x.n || c.group < 1 || c.w.d[0] % c.group ||
      c.x.d[1] != c.w.d[1] * c.group || c.shared < 1 || c.x.d[1] % c.shared)
    im_bad(n, "the input has %u dims, the weights %u, and their channels do not fit", c.x.n, c.w.n);
  im_window_read(n, &c.win, &c.x, c.w.d + 2, false);
  for (uint32_t i = 0; i < c.win.r; i++)
    if (__builtin_mul_overflow(c.k, c.win.k[i], &c.k) ||
        __builtin_mul_overflow(c.out, c.win.out[i], &c.out) || c.k > IM_MAX_MADE)
      im_bad(n, "the product of the extents overflows");
  check_places(&c, 2, c.shared * c.k * c.win.r, "offset");
  if (im_opt(n, 4) != TARN_NONE) check_places(&c, 4, c.shared * c.k, "mask");
  if (im_count(&c.x) == 0) im_bad(n, "the image has no elements");
  return c;
}

void im_do_deform_conv(im_node *n) {
  enum { N = 1, G, O, C, K, P };
  const uint8_t lx[] = {N, G, C, K, P}, lw[] = {G, O, C, K}, lo[] = {N, G, O, P};
  deform c = read_deform(n);
  int64_t split[] = {c.x.d[0], c.group, c.w.d[1], c.k, c.out};
  int64_t weights[] = {c.group, c.w.d[0] / c.group, c.w.d[1], c.k};
  tarn_term x = im_reshape(n, under_taps(&c), 5, split),
            w = im_reshape(n, im_arg(n, 1), 4, weights), bias = im_opt(n, 3);
  int64_t dim[TARN_MAX_DIMS] = {c.x.d[0], c.w.d[0]};
  memcpy(dim + 2, c.win.out, c.win.r * sizeof *dim);
  tarn_term y = im_reshape(n, im_contract(n, w, lw, x, lx, lo, 4), c.x.n, dim);
  if (bias != TARN_NONE) {
    im_dims b = im_shape(n, bias);
    if (b.n != 1 || b.d[0] != dim[1])
      im_bad(n, "the bias does not have one entry per output channel");
    y = im_el(n, "(add $0 $1)", 2, y, im_channel(n, bias, c.x.n));
  }
  im_set(n, 0, y);
}
