/* Operators outside the term language: `opaque` terms, their output types, and their evaluation by
 * runtime/ref.h. */
#include "access/judge.h"
#include "model/import.h"
#include "runtime/ref.h"
#include <stdlib.h>
#include <string.h>

_Static_assert((int)TARN_REF_F32 == (int)TARN_F32 && (int)TARN_REF_BF16 == (int)TARN_BF16 &&
                   (int)TARN_REF_I64 == (int)TARN_I64 && (int)TARN_REF_BOOL == (int)TARN_BOOL,
               "the runtime numbers the types like the term language");

/* ---------------------------------------------------------------- the term */

static const char *joined(im_node *n, const Onnx__AttributeProto *a) {
  tarn_buf b = {.cx = n->cx};
  for (size_t i = 0; i < a->n_strings; i++) {
    if (i) tarn_buf_add(&b, ",", 1);
    tarn_buf_add(&b, (const char *)a->strings[i].data, a->strings[i].len);
  }
  return b.p ? b.p : "";
}

static const double *widened(im_node *n, const Onnx__AttributeProto *a) {
  double *v = TARN_ARRAY(n->cx, double, a->n_floats + 1);
  for (size_t i = 0; i < a->n_floats; i++) v[i] = (double)a->floats[i];
  return v;
}

static tarn_attr attribute(im_node *n, const Onnx__AttributeProto *a, const char *name) {
  tarn_attr r = {.name = name, .kind = TARN_A_INT};
  if (a->has_s || a->n_strings) {
    r.kind = TARN_A_STR;
    r.s = a->has_s ? tarn_strndup(n->cx, (const char *)a->s.data, a->s.len) : joined(n, a);
  } else if (a->n_ints) {
    r.kind = TARN_A_INTS;
    r.n = (uint32_t)a->n_ints;
    r.is = a->ints;
  } else if (a->n_floats) {
    r.kind = TARN_A_REALS;
    r.n = (uint32_t)a->n_floats;
    r.rs = widened(n, a);
  } else if (a->has_f) {
    r.kind = TARN_A_REAL;
    r.r = (double)a->f;
  } else if (a->has_i) r.i = a->i;
  else im_bad(n, "attribute %s is of a kind that is not supported", name);
  return r;
}

/* Inputs that are there, and (when one between them is not) their positions as the attribute
 * `slots`. */
static uint32_t kids_of(im_node *n, tarn_term *kid, tarn_attr *slots) {
  int64_t *at = TARN_ARRAY(n->cx, int64_t, n->nin + 1);
  uint32_t k = 0;
  for (uint32_t i = 0; i < n->nin; i++)
    if (n->in[i]) at[k] = i, kid[k++] = n->in[i]->t;
  *slots = (tarn_attr){.name = "slots", .kind = TARN_A_INTS, .n = k, .is = at};
  return k;
}

static tarn_payload payload_of(im_node *n, const tarn_attr *slots) {
  tarn_attr *a = TARN_ARRAY(n->cx, tarn_attr, n->p->n_attribute + 2);
  uint32_t k = 0;
  if (n->version < 16 &&
      strcmp(n->op, "RoiAlign") == 0) /* the attribute came with 16, and another default */
    a[k++] = (tarn_attr){
        .name = "coordinate_transformation_mode", .kind = TARN_A_STR, .s = "output_half_pixel"};
  for (size_t i = 0; i < n->p->n_attribute; i++) {
    const char *name = n->p->attribute[i]->name;
    const Onnx__AttributeProto *p = name ? im_attr(n, name) : NULL;
    if (p) a[k++] = attribute(n, p, name);
  }
  if (slots->n && slots->is[slots->n - 1] != (int64_t)slots->n - 1) a[k++] = *slots;
  qsort(a, k, sizeof *a, tarn_by_text);
  for (uint32_t i = 1; i < k; i++)
    if (strcmp(a[i - 1].name, a[i].name) == 0) im_bad(n, "attribute %s occurs twice", a[i].name);
  return (tarn_payload){.kind = TARN_P_OPAQUE,
                        .name = strcmp(n->op, "Scatter") == 0 ? "ScatterElements" : n->op,
                        .nattr = k,
                        .attr = a};
}

/* Nothing but constants below: the value takes the term's place, and nothing stays opaque. */
static bool computed(im_node *n, uint32_t nout) {
  if (!im_all_known(n)) return false;
  for (uint32_t i = 0; i < nout && i < n->nout; i++) {
    n->out[i].fixed = true;
    im_set_tensor(n, i, im_known(n, &n->out[i], "its value"));
  }
  return true;
}

/* One that is too large is an error of the run, too. */
static bool is_box(const im_node *n, uint32_t i) {
  return strcmp(n->op, "RoiAlign") == 0 && i == 1;
}

static tarn_term with_indices_that_count(im_node *n, uint32_t payload, tarn_term *kid, uint32_t k) {
  tarn_domain range;
  tarn_term t = tarn_mk(n->L, TARN_OP_OPAQUE, payload, kid, k);
  for (uint32_t i = 0; i < k; i++)
    if (tarn_opaque_index(n->L, tarn_term_get(n->L, t), i, &range) || is_box(n, i))
      kid[i] = im_index_that_counts(n, kid[i]);
  return tarn_mk(n->L, TARN_OP_OPAQUE, payload, kid, k);
}

void im_opaque(im_node *n, const uint32_t *out_type, uint32_t nout) {
  tarn_attr slots;
  tarn_term *kid = TARN_ARRAY(n->cx, tarn_term, n->nin + 1);
  uint32_t k = kids_of(n, kid, &slots);
  tarn_payload p = payload_of(n, &slots);
  p.type = nout == 1 ? out_type[0] : tarn_type_tuple(n->L, nout, out_type);
  tarn_term t = with_indices_that_count(n, tarn_payload_intern(n->L, &p), kid, k);
  for (uint32_t i = 0; i < nout; i++) {
    int64_t which = i;
    im_set(n, i,
           nout == 1 ? t : tarn_mk(n->L, TARN_OP_NTH, tarn_payload_ints(n->L, 1, &which), &t, 1));
  }
  if (!computed(n, nout)) tarn_push(n->cx, &n->m->opaque, ((tarn_opaque_use){n->name, n->op}));
}

/* ---------------------------------------------------------------- output types */

static uint32_t tensor_type(im_node *n, tarn_dtype t, const im_dims *d) {
  return tarn_type_tensor(n->L, t, d->n, d->n, d->d);
}

static uint32_t like(im_node *n, uint32_t input, const im_dims *d) {
  return tensor_type(n, im_type(n, im_arg(n, input)), d);
}

static void check_rank(im_node *n, uint32_t input, uint32_t least, uint32_t most) {
  uint32_t rank = im_shape(n, im_arg(n, input)).n;
  if (rank < least || rank > most) im_bad(n, "input %u has %u dims", input, rank);
}

static void check_extent(im_node *n, int64_t v, const char *what) {
  if (v < 0 || v > IM_MAX_EXTENT) im_bad(n, "%s %lld is out of range", what, (long long)v);
}

typedef void typer(im_node *n, uint32_t *out);

static void type_same(im_node *n, uint32_t *out) {
  out[0] = tarn_term_get(n->L, im_arg(n, 0))->type;
}

static void type_det(im_node *n, uint32_t *out) {
  im_dims d = im_shape(n, im_arg(n, 0));
  d.n -= 2;
  out[0] = like(n, 0, &d);
}

/* Sums and the like are of numbers. */
static void check_reduction(im_node *n) {
  const char *how = im_attr_str(n, "reduction", "none");
  if (im_type(n, im_arg(n, 0)) == TARN_BOOL && strcmp(how, "none") != 0)
    im_bad(n, "reduction %s of bools", how);
}

static void type_scatter_elements(im_node *n, uint32_t *out) {
  check_reduction(n);
  im_dims i = im_shape(n, im_arg(n, 1)), u = im_shape(n, im_arg(n, 2)),
          x = im_shape(n, im_arg(n, 0));
  if (i.n != x.n || i.n == 0) im_bad(n, "the indices have %u dims, the data %u", i.n, x.n);
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", 0), i.n);
  for (uint32_t k = 0; k < i.n; k++)
    if (k != axis && i.d[k] > x.d[k])
      im_bad(n, "the indices are larger than the data along axis %u", k);
  if (i.n != u.n || memcmp(i.d, u.d, i.n * sizeof *i.d) != 0 ||
      im_type(n, im_arg(n, 0)) != im_type(n, im_arg(n, 2)))
    im_bad(n, "the updates do not have the shape of the indices and the type of the data");
  type_same(n, out);
}

static void type_scatter_nd(im_node *n, uint32_t *out) {
  check_reduction(n);
  im_dims x = im_shape(n, im_arg(n, 0)), i = im_shape(n, im_arg(n, 1)),
          u = im_shape(n, im_arg(n, 2)), d = {0};
  if (i.n < 1 || i.d[i.n - 1] < 1 || i.d[i.n - 1] > x.n)
    im_bad(n, "data of %u dims, indices of %u", x.n, i.n);
  for (uint32_t k = 0; k + 1 < i.n; k++) d.d[d.n++] = i.d[k];
  for (uint32_t k = (uint32_t)i.d[i.n - 1]; k < x.n && d.n < TARN_MAX_DIMS; k++)
    d.d[d.n++] = x.d[k];
  if (d.n != u.n || memcmp(d.d, u.d, d.n * sizeof *d.d) != 0 ||
      im_type(n, im_arg(n, 0)) != im_type(n, im_arg(n, 2)))
    im_bad(n, "the updates have the wrong shape or type");
  type_same(n, out);
}

/* The number of directions; raises when the shapes do not fit so many gates. */
int64_t im_recurrent_check(im_node *n, int64_t gates) {
  for (uint32_t i = 0; i < 3; i++) check_rank(n, i, 3, 3);
  im_dims x = im_shape(n, im_arg(n, 0)), w = im_shape(n, im_arg(n, 1)),
          r = im_shape(n, im_arg(n, 2));
  int64_t hidden = r.d[2], dirs = im_attr_is(n, "direction", "bidirectional", "forward") ? 2 : 1;
  if (hidden > IM_MAX_EXTENT || w.d[0] != dirs || r.d[0] != dirs || w.d[1] != gates * hidden ||
      r.d[1] != gates * hidden || w.d[2] != x.d[2] ||
      im_attr_int(n, "hidden_size", hidden) != hidden)
    im_bad(n, "the weights do not have the shapes of %lld gates of %lld", (long long)gates,
           (long long)hidden);
  return dirs;
}

/* Y, Y_h, Y_c of recurrent operators; layout 1: the batch first. */
static void type_recurrent(im_node *n, uint32_t *out) {
  im_dims x = im_shape(n, im_arg(n, 0)), r = im_shape(n, im_arg(n, 2));
  int64_t layout = im_attr_int(n, "layout", 0), dirs = r.d[0], hidden = r.d[2];
  int64_t seq = x.d[layout ? 1 : 0], batch = x.d[layout ? 0 : 1];
  im_dims y =
      layout ? (im_dims){4, {batch, seq, dirs, hidden}} : (im_dims){4, {seq, dirs, batch, hidden}};
  im_dims h = layout ? (im_dims){3, {batch, dirs, hidden}} : (im_dims){3, {dirs, batch, hidden}};
  out[0] = like(n, 0, &y);
  out[1] = out[2] = like(n, 0, &h);
}

static void type_roi(im_node *n, uint32_t *out) {
  im_dims x = im_shape(n, im_arg(n, 0)), rois = im_shape(n, im_arg(n, 1)),
          d = {4, {rois.d[0], x.d[1], 1, 1}};
  if (x.n != 4 || rois.n != 2 || rois.d[1] != 4) im_bad(n, "only images (N,C,H,W) with boxes");
  d.d[2] = im_attr_int(n, "output_height", 1);
  d.d[3] = im_attr_int(n, "output_width", 1);
  check_extent(n, d.d[2], "height");
  check_extent(n, d.d[3], "width");
  out[0] = like(n, 0, &d);
}

static void type_unpool(im_node *n, uint32_t *out) {
  im_dims d = im_shape(n, im_arg(n, 0));
  uint32_t kk, ks, kp, k;
  const int64_t *kernel = im_attr_ints(n, "kernel_shape", &kk),
                *stride = im_attr_ints(n, "strides", &ks);
  const int64_t *pads = im_attr_ints(n, "pads", &kp);
  if (d.n < 3 || kk != d.n - 2 || (stride && ks != kk) || (pads && kp != 2 * kk))
    im_bad(n, "kernel_shape, strides or pads do not fit");
  for (uint32_t i = 0; i < kk; i++) {
    int64_t s = stride ? stride[i] : 1, p = pads ? pads[i] + pads[kk + i] : 0;
    check_extent(n, s, "stride");
    check_extent(n, kernel[i], "kernel extent");
    if (d.d[2 + i] > IM_MAX_EXTENT / (s ? s : 1)) im_bad(n, "the output is too large");
    check_extent(n, d.d[2 + i] = (d.d[2 + i] - 1) * s + kernel[i] - p, "extent");
  }
  if (im_opt(n, 2) != TARN_NONE) {
    const int64_t *shape = im_ints(n, 2, "output_shape", &k);
    if (k != d.n) im_bad(n, "output_shape has %u entries", k);
    for (uint32_t i = 0; i < k; i++) check_extent(n, d.d[i] = shape[i], "extent");
  }
  out[0] = like(n, 0, &d);
}

static void type_top_k(im_node *n, uint32_t *out) {
  im_dims d = im_shape(n, im_arg(n, 0));
  uint32_t axis = im_axis(n, im_attr_int(n, "axis", -1), d.n), k;
  int64_t count = n->version < 10 ? im_attr_int(n, "k", -1) : 0;
  if (n->version >= 10) {
    const int64_t *v = im_ints(n, 1, "k", &k);
    if (k != 1) im_bad(n, "k is not one number");
    count = *v;
  }
  if (count < 0 || count > d.d[axis])
    im_bad(n, "the %lld largest of %lld", (long long)count, (long long)d.d[axis]);
  d.d[axis] = count;
  out[0] = like(n, 0, &d);
  out[1] = tensor_type(n, TARN_I64, &d);
}

static const struct {
  const char *op;
  uint32_t nout;
  typer *type;
} typers[] = {
    {"Det", 1, type_det},
    {"GRU", 2, type_recurrent},
    {"LSTM", 3, type_recurrent},
    {"MaxUnpool", 1, type_unpool},
    {"RNN", 2, type_recurrent},
    {"RoiAlign", 1, type_roi},
    {"Scatter", 1, type_scatter_elements},
    {"ScatterElements", 1, type_scatter_elements},
    {"ScatterND", 1, type_scatter_nd},
    {"TopK", 2, type_top_k},
};

void im_do_opaque(im_node *n) {
  for (size_t i = 0; i < sizeof typers / sizeof *typers; i++) {
    if (strcmp(typers[i].op, n->op) != 0) continue;
    uint32_t out[3] = {0};
    typers[i].type(n, out);
    im_opaque(n, out, typers[i].nout);
    return;
  }
  im_bad(n, "no rule gives its output types");
}

/* ---------------------------------------------------------------- evaluation */

static tarn_ref_tensor ref_tensor(const tarn_tensor *t) {
  return (tarn_ref_tensor){(int32_t)t->dtype, (int32_t)t->n, t->dim, t->data, NULL};
}

void tarn_opaque_eval(tarn_ctx *cx, const tarn_payload *p, const tarn_tensor *const *in,
                      uint32_t nin, tarn_tensor *const *out, uint32_t nout) {
  tarn_ref_attr *attr = TARN_ARRAY(cx, tarn_ref_attr, p->nattr + 1);
  tarn_ref_tensor *ri = TARN_ARRAY(cx, tarn_ref_tensor, nin + 1),
                  *ro = TARN_ARRAY(cx, tarn_ref_tensor, nout + 1);
  for (uint32_t i = 0; i < p->nattr; i++) {
    const tarn_attr *a = &p->attr[i];
    attr[i] = (tarn_ref_attr){a->name, a->i,  a->r, a->kind == TARN_A_STR ? a->s : NULL,
                              a->n,    a->is, a->rs};
  }
  for (uint32_t i = 0; i < nin; i++) ri[i] = ref_tensor(in[i]);
  for (uint32_t i = 0; i < nout; i++) ro[i] = ref_tensor(out[i]);
  char message[TARN_REF_MESSAGE];
  if (tarn_ref_run(p->name, attr, p->nattr, ri, nin, ro, nout, message) != 0)
    tarn_raise(cx, TARN_BAD_INPUT, "opaque %s: %s", p->name, message);
}
