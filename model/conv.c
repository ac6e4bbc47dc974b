/* Convolutions: windows of the padded input against the weights, as one cartProd and a dot product.
 *
 *   x (N,C,D…) --pad--> access 2 --windows (C,K…)--> ((N,P…),(C,K…))
 *   w (O,C/G,K…)                  access 1 -------->  ((O),(C,K…))
 *   cartProd w x, dotProd, transpose                  (N,O,P…)
 *
 * With groups x becomes ((G,N,P…),(C/G,K…)) and w ((G,O/G),(C/G,K…)).
 *
 * A transposed convolution is an ordinary one over a view: its input with stride-1 zeros between
 * elements, its weights reversed.  Weights that may be infinite are left out where the input is
 * such a zero, or padding.
 *
 * Source: Dumoulin & Visin, "A guide to convolution arithmetic for deep
 * learning", 2016, section 4. */
#include "model/import.h"
#include <string.h>

/* ---------------------------------------------------------------- kernel, stride, dilation,
 * padding */

static void read_kernel(im_node *n, im_window *w, const int64_t *kernel) {
  uint32_t k;
  const int64_t *v = im_attr_ints(n, "kernel_shape", &k);
  if (!v && !kernel) im_bad(n, "kernel_shape is missing");
  if (v && k != w->r) im_bad(n, "kernel_shape has %u entries, %u are needed", k, w->r);
  for (uint32_t i = 0; i < w->r; i++) {
    w->k[i] = v ? v[i] : kernel[i];
    if (kernel && w->k[i] != kernel[i])
      im_bad(n, "kernel_shape differs from the shape of the weights");
    if (w->k[i] < 1 || w->k[i] > INT32_MAX)
      im_bad(n, "kernel extent %lld is out of range", (long long)w->k[i]);
  }
}

/* SAME_*: as many outputs as strides fit in the input; the odd element goes after (UPPER) or before
 * (LOWER). */
static void pad_same(im_window *w, const int64_t *x, bool lower) {
  for (uint32_t i = 0; i < w->r; i++) {
    int64_t outs = (x[i] + w->s[i] - 1) / w->s[i],
            total = (outs - 1) * w->s[i] + im_reach(w, i) - x[i];
    total = total > 0 ? total : 0;
    w->b[i] = lower ? total - total / 2 : total / 2;
    w->a[i] = total - w->b[i];
  }
}

static void read_padding(im_node *n, im_window *w, const int64_t *x) {
  const char *mode = im_attr_str(n, "auto_pad", "NOTSET");
  int64_t pads[2 * TARN_MAX_DIMS];
  im_attr_list(n, "pads", pads, 2 * w->r, 0, 0, INT32_MAX);
  memcpy(w->b, pads, w->r * sizeof *pads);
  memcpy(w->a, pads + w->r, w->r * sizeof *pads);
  if (strcmp(mode, "NOTSET") == 0 || !*mode) return;
  memset(w->b, 0, sizeof w->b);
  memset(w->a, 0, sizeof w->a);
  if (strcmp(mode, "VALID") == 0) return;
  bool lower = strcmp(mode, "SAME_LOWER") == 0;
  if (!lower && strcmp(mode, "SAME_UPPER") != 0) im_bad(n, "auto_pad %s is unknown", mode);
  pad_same(w, x, lower);
}

/* Number of windows; with ceil_mode a last one, or the only one, may hang over the end, unless it
 * starts in the padding after. */
static int64_t windows_along(im_node *n, const im_window *w, uint32_t i, int64_t x,
                             bool ceil_mode) {
  int64_t wide = x + w->b[i] + w->a[i], room = wide - im_reach(w, i);
  int64_t k = tarn_floordiv(room, w->s[i]) + 1;
  if (ceil_mode && room % w->s[i] && k * w->s[i] < x + w->b[i]) k++;
  if (k < 1)
    im_bad(n, "a window of %lld does not fit in %lld", (long long)(wide - room), (long long)wide);
  return k;
}

static void read_shape(im_node *n, im_window *w, const im_dims *x, const int64_t *kernel) {
  if (x->n < 3) im_bad(n, "the input has %u dims, at least 3 are needed", x->n);
  w->r = x->n - 2;
  if (2 + 2 * w->r + 1 > TARN_MAX_DIMS) im_bad(n, "%u spatial dims are too many", w->r);
  for (uint32_t i = 0; i < w->r; i++)
    if (x->d[2 + i] > IM_MAX_EXTENT) im_bad(n, "extent %lld is too large", (long long)x->d[2 + i]);
  read_kernel(n, w, kernel);
  im_attr_list(n, "strides", w->s, w->r, 1, 1, INT32_MAX);
  im_attr_list(n, "dilations", w->d, w->r, 1, 1, INT32_MAX);
}

void im_window_read(im_node *n, im_window *w, const im_dims *x, const int64_t *kernel,
                    bool ceil_mode) {
  read_shape(n, w, x, kernel);
  read_padding(n, w, x->d + 2);
  ceil_mode &= !im_attr_is(n, "auto_pad", "VALID", "NOTSET"); /* its windows lie inside */
  for (uint32_t i = 0; i < w->r; i++) w->out[i] = windows_along(n, w, i, x->d[2 + i], ceil_mode);
}

/* ---------------------------------------------------------------- the convolution itself */

/* Windows over all channels and the kernel: ((lead…, 1, P…), (C, K…)), then without the 1. */
static tarn_term patches(im_node *n, tarn_term x, uint32_t lead, int64_t channels,
                         const im_window *w) {
  int64_t k[TARN_MAX_DIMS], s[TARN_MAX_DIMS], d[TARN_MAX_DIMS];
  k[0] = channels;
  s[0] = d[0] = 1;
  memcpy(k + 1, w->k, w->r * sizeof *k);
  memcpy(s + 1, w->s, w->r * sizeof *s);
  memcpy(d + 1, w->d, w->r * sizeof *d);
  return tarn_squeeze(n->L, lead, tarn_windows(n->L, k, s, d, tarn_access(n->L, lead, x)));
}

static tarn_term conv_plain(im_node *n, tarn_term x, tarn_term w, const im_window *win) {
  im_dims xd = im_shape(n, x);
  tarn_term c = tarn_cart(n->L, 0, tarn_access(n->L, 1, w), patches(n, x, 1, xd.d[1], win));
  tarn_term y = tarn_compute(n->L, tarn_fn_dot(n->L, im_type(n, x)), &c, 1); /* (O,N,P…) */
  uint32_t p[TARN_MAX_DIMS] = {1, 0};
  for (uint32_t i = 2; i < xd.n; i++) p[i] = i;
  return im_permute(n, y, p);
}

/* (N,C,D…) -> (G,N,C/G,D…) */
static tarn_term group_input(im_node *n, tarn_term x, int64_t group) {
  im_dims d = im_shape(n, x);
  int64_t split[TARN_MAX_DIMS] = {d.d[0], group, d.d[1] / group};
  uint32_t p[TARN_MAX_DIMS] = {1, 0, 2};
  for (uint32_t i = 2; i < d.n; i++) split[i + 1] = d.d[i], p[i + 1] = i + 1;
  return im_permute(n, im_reshape(n, x, d.n + 1, split), p);
}

/* (O,C/G,K…) -> (G,O/G,C/G,K…) */
static tarn_term group_weights(im_node *n, tarn_term w, int64_t group) {
  im_dims d = im_shape(n, w);
  int64_t split[TARN_MAX_DIMS] = {group, d.d[0] / group};
  for (uint32_t i = 1; i < d.n; i++) split[i + 1] = d.d[i];
  return im_reshape(n, w, d.n + 1, split);
}

/* (G,O/G,N,P…) -> (N,O,P…) */
static tarn_term join_groups(im_node *n, tarn_term y) {
  im_dims d = im_shape(n, y);
  uint32_t p[TARN_MAX_DIMS] = {2, 0, 1};
  int64_t out[TARN_MAX_DIMS] = {d.d[2], d.d[0] * d.d[1]};
  for (uint32_t i = 3; i < d.n; i++) {
    p[i] = i;
    out[i - 1] = d.d[i];
  }
  return im_reshape(n, im_permute(n, y, p), d.n - 1, out);
}

static tarn_term conv_grouped(im_node *n, tarn_term x, tarn_term w, int64_t group,
                              const im_window *win) {
  tarn_term wg = tarn_access(n->L, 2, group_weights(n, w, group));
  tarn_term xg = patches(n, group_input(n, x, group), 2, im_shape(n, w).d[1], win);
  tarn_term c = tarn_cart(n->L, 1, wg, xg);
  return join_groups(n, tarn_compute(n->L, tarn_fn_dot(n->L, im_type(n, x)), &c, 1));
}

static tarn_term padded(im_node *n, tarn_term x, const im_window *win) {
  for (uint32_t i = 0; i < win->r; i++) x = im_pad(n, x, 2 + i, 0, win->b[i], win->a[i]);
  return x;
}

/* Sums over nothing. */
static tarn_term nothing(im_node *n, int64_t batch, int64_t channels, const im_window *win,
                         tarn_dtype t) {
  int64_t dim[TARN_MAX_DIMS] = {batch, channels};
  memcpy(dim + 2, win->out, win->r * sizeof *dim);
  return im_fill(n, im_scalar(n, t, 0, 0), 2 + win->r, dim);
}

tarn_term im_conv(im_node *n, tarn_term x, tarn_term w, int64_t group, const im_window *win) {
  im_dims xd = im_shape(n, x), wd = im_shape(n, w);
  if (xd.d[1] == 0) return nothing(n, xd.d[0], wd.d[0], win, im_type(n, x));
  x = padded(n, x, win);
  return group == 1 ? conv_plain(n, x, w, win) : conv_grouped(n, x, w, group, win);
}

tarn_term im_channel(im_node *n, tarn_term v, uint32_t rank) {
  im_dims d = im_shape(n, v);
  if (d.n != 1) im_bad(n, "a per-channel operand has %u dims, one is needed", d.n);
  for (uint32_t i = 2; i < rank; i++) d.d[i - 1] = 1;
  return im_reshape(n, v, rank - 1, d.d);
}

static tarn_term add_bias(im_node *n, tarn_term y) {
  tarn_term bias = im_opt(n, 2);
  if (bias == TARN_NONE) return y;
  im_dims d = im_shape(n, y), b = im_shape(n, bias);
  if (b.n != 1 || b.d[0] != d.d[1])
    im_bad(n, "the bias does not have one entry per output channel");
  return im_el(n, "(add $0 $1)", 2, y, im_channel(n, bias, d.n));
}

static void check_group(im_node *n, const im_dims *x, const im_dims *w, int64_t group,
                        int64_t channels) {
  if (w->n != x->n) im_bad(n, "the weights have %u dims, the input %u", w->n, x->n);
  if (group < 1 || x->d[1] % group || w->d[0] % group || channels != x->d[1])
    im_bad(n, "%lld channels in, weights for %lld, group %lld", (long long)x->d[1],
           (long long)channels, (long long)group);
}

void im_do_conv(im_node *n) {
  im_alike(n, 0, 1);
  im_alike(n, 0, 2);
  tarn_term x = im_arg(n, 0), w = im_arg(n, 1);
  im_dims xd = im_shape(n, x), wd = im_shape(n, w);
  int64_t group = im_attr_int(n, "group", 1);
  int64_t channels = 0;
  if (wd.n < 2 || group < 1 || __builtin_mul_overflow(wd.d[1], group, &channels)) channels = -1;
  check_group(n, &xd, &wd, group, channels);
  im_window win;
  im_window_read(n, &win, &xd, wd.d + 2, false);
  im_set(n, 0, add_bias(n, im_conv(n, x, w, group, &win)));
}

/* ---------------------------------------------------------------- transposed */

/* Zeros between elements: (…,D,…) -> (…,D,1,…) -> pad -> (…,D,s,…) -> (…,D·s,…) -> the first
 * (D-1)·s+1. */
static tarn_term spread(im_node *n, tarn_term x, uint32_t axis, int64_t stride) {
  im_dims d = im_shape(n, x);
  int64_t len = d.d[axis];
  if (stride == 1 || len == 0) return x;
  if (stride > IM_MAX_EXTENT / len) im_bad(n, "stride %lld is too large", (long long)stride);
  tarn_term t = im_pad(n, tarn_insert_axis(n->L, axis + 1, x), axis + 1, 0, 0, stride - 1);
  d.d[axis] = len * stride;
  return im_cut(n, im_reshape(n, t, d.n, d.d), axis, 0, (len - 1) * stride + 1, 1);
}

/* (C,M/G,K…) -> (M,C/G,K…), each kernel reversed. */
static tarn_term turn_weights(im_node *n, tarn_term w, int64_t group) {
  im_dims d = im_shape(n, w);
  for (uint32_t i = 2; i < d.n; i++) w = im_cut(n, w, i, d.d[i] - 1, -1, -1);
  int64_t split[TARN_MAX_DIMS] = {group, d.d[0] / group},
          out[TARN_MAX_DIMS] = {d.d[1] * group, d.d[0] / group};
  uint32_t p[TARN_MAX_DIMS] = {0, 2, 1};
  for (uint32_t i = 1; i < d.n; i++) {
    split[i + 1] = d.d[i];
    if (i >= 2) p[i + 1] = i + 1, out[i] = d.d[i];
  }
  return im_reshape(n, im_permute(n, im_reshape(n, w, d.n + 1, split), p), d.n, out);
}

/* Padding of the output: pads, or from output_shape or SAME by ONNX's formula; extra: elements only
 * at the end. */
static void read_output(im_node *n, im_window *w, const im_dims *x, int64_t *extra) {
  uint32_t k;
  const int64_t *shape = im_attr_ints(n, "output_shape", &k);
  bool upper = im_attr_is(n, "auto_pad", "SAME_UPPER", "NOTSET");
  bool given = shape && k;
  bool same = upper || im_attr_is(n, "auto_pad", "SAME_LOWER", "NOTSET");
  im_attr_list(n, "output_padding", extra, w->r, 0, 0, INT32_MAX);
  read_padding(n, w, x->d + 2);
  if (!given && !same) return;
  if (given && k != w->r && k != w->r + 2)
    im_bad(n, "output_shape has %u entries, %u are needed", k, w->r);
  for (uint32_t i = 0; i < w->r; i++) {
    int64_t want = given ? shape[k - w->r + i] : x->d[2 + i] * w->s[i];
    int64_t total = w->s[i] * (x->d[2 + i] - 1) + extra[i] + im_reach(w, i) - want;
    if (want < 0 || want > IM_MAX_EXTENT)
      im_bad(n, "output_shape: %lld is out of range", (long long)want);
    int64_t most =
        total > 0 ? total : 0; /* a larger output than there is data for grows at the end */
    w->b[i] = upper ? most / 2 : most - most / 2;
    w->a[i] = total - w->b[i];
  }
}

static tarn_term spread_all(im_node *n, tarn_term x, const im_window *w) {
  for (uint32_t i = 0; i < w->r; i++) x = spread(n, x, 2 + i, w->s[i]);
  return x;
}

/* The window of the ordinary convolution over x spread out; extra: elements only at the end. */
static im_window turned(im_node *n, const im_window *w, const int64_t *x, const int64_t *extra) {
  im_window t = *w;
  for (uint32_t i = 0; i < w->r; i++) {
    int64_t around = im_reach(w, i) - 1, len = (x[i] - 1) * w->s[i] + 1;
    t.b[i] = around - w->b[i];
    t.a[i] = around - w->a[i] + extra[i];
    t.s[i] = 1;
    t.out[i] = len + t.b[i] + t.a[i] - around;
    if (t.out[i] < 0)
      im_bad(n, "the output would have %lld elements along an axis", (long long)t.out[i]);
  }
  return t;
}

typedef struct transposed {
  int64_t group, outputs; /* of a group */
  im_window given, turned;
} transposed;

/* Windows of the input as the map of one view, ((G,O/G,N,P…),(C/G,K…)), whose guards say where
 * there is input. */
static uint32_t map_of_input(im_node *n, tarn_term x, const transposed *t) {
  tarn_term any = tarn_input(n->L, "x", tarn_term_get(n->L, x)->type);
  any = group_input(n, padded(n, spread_all(n, any, &t->given), &t->turned), t->group);
  any = tarn_insert_axis(n->L, 1, patches(n, any, 2, im_shape(n, any).d[2], &t->turned));
  tarn_type d = *tarn_term_type(n->L, any);
  d.dim[1] = t->outputs;
  any = tarn_normalise(n->L, tarn_broadcast(n->L, d.ns, d.n, d.dim, any));
  const tarn_node *v = tarn_term_get(n->L, any);
  if (v->op != TARN_OP_VIEW || tarn_term_get(n->L, v->kid[0])->op != TARN_OP_INPUT)
    im_bad(n, "its padding has no plain form");
  return tarn_payload_get(n->L, v->payload)->id;
}

/* The sum over the input alone: where there is none, the weights are left out as well, so that
 * none that is infinite meets a zero. */
static tarn_term conv_inside(im_node *n, tarn_term x, tarn_term w, const transposed *t) {
  tarn_term wg = group_weights(n, w, t->group);
  im_dims d = im_shape(n, wg);
  uint32_t of_x = map_of_input(n, x, t), r = t->given.r;
  tarn_imap m = *tarn_imap_get(n->L, of_x);
  m.nin = (uint8_t)d.n;
  memcpy(m.in, d.d, sizeof m.in);
  for (uint32_t i = 0; i < d.n; i++) m.e[i] = tarn_ix_var(n->L, i < 2 ? i : i + r + 1, m.dim);
  tarn_term operand[] = {tarn_view(n->L, of_x, x), tarn_view(n->L, tarn_map_intern(n->L, &m), wg)};
  tarn_func product = tarn_fn_product(n->L, im_type(n, x));
  return join_groups(n, tarn_compute(n->L, tarn_fn_intern(n->L, &product), operand, 2));
}

static tarn_term conv_transposed(im_node *n, tarn_term x, tarn_term w, const transposed *t) {
  im_dims d = im_shape(n, x);
  bool empty = im_count(&d) == 0;
  for (uint32_t i = 0; i < t->turned.r; i++) empty |= t->turned.out[i] == 0;
  if (empty) return nothing(n, d.d[0], t->group * t->outputs, &t->turned, im_type(n, x));
  bool finite = im_is_finite(n, w);
  w = turn_weights(n, w, t->group);
  return finite ? im_conv(n, spread_all(n, x, &t->given), w, t->group, &t->turned)
                : conv_inside(n, x, w, t);
}

void im_do_conv_transpose(im_node *n) {
  im_alike(n, 0, 1);
  im_alike(n, 0, 2);
  tarn_term x = im_arg(n, 0), w = im_arg(n, 1);
  im_dims xd = im_shape(n, x), wd = im_shape(n, w);
  int64_t extra[TARN_MAX_DIMS];
  transposed t = {.group = im_attr_int(n, "group", 1), .outputs = wd.n > 1 ? wd.d[1] : 0};
  check_group(n, &xd, &wd, t.group, wd.n ? wd.d[0] : -1);
  read_shape(n, &t.given, &xd, wd.d + 2);
  read_output(n, &t.given, &xd, extra);
  t.turned = turned(n, &t.given, xd.d + 2, extra);
  im_set(n, 0, add_bias(n, conv_transposed(n, x, w, &t)));
}
