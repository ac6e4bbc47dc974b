/* quantize/: the machine form in the interpreter against integers computed here, node by node;
 * shifts within what the description has; the form of QuantizeLinear and DequantizeLinear; digits;
 * what is refused. */
#include "tests/alloc.h"
#include "tests/folder.h"
#include "tests/onnx_text.h"
#include "tests/quantize_machine.h"
#include "tests/terms.h"

#include "model/onnx.h"
#include "quantize/internal.h"
#include "quantize/quantize.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- models and samples */

static const char *at(const char *name) { return in_folder(cx, name); }

static void numbers(tarn_buf *b, const char *name, const char *dims, int n, double scale,
                    double centre, uint64_t *seed) {
  tarn_buf_fmt(b, "init %s f32 %s :", name, dims);
  for (int i = 0; i < n; i++) tarn_buf_fmt(b, " %.4f", centre + scale * tarn_random_unit(seed));
  tarn_buf_str(b, "\n");
}

/* Every kind of group: convolutions (plain, depthwise, of windows), normalisation, a constant that
 * is added, relu, clip, residual additions (one with a product, one without), moves, a product. */
static const char *network(uint64_t seed) {
  tarn_buf b = {.cx = cx};
  tarn_buf_str(&b, "opset 13\nin x f32 N,3,12,12\n");
  numbers(&b, "w0", "16,3,3,3", 432, 0.4, 0, &seed);
  numbers(&b, "g0", "16", 16, 0.5, 1, &seed);
  numbers(&b, "b0", "16", 16, 0.5, 0, &seed);
  numbers(&b, "m0", "16", 16, 0.5, 0, &seed);
  numbers(&b, "v0", "16", 16, 0.5, 1, &seed);
  numbers(&b, "w1", "16,1,3,3", 144, 0.6, 0, &seed);
  numbers(&b, "w2", "16,16,1,1", 256, 0.5, 0, &seed);
  numbers(&b, "b2", "16", 16, 0.5, 0, &seed);
  numbers(&b, "w3", "8,32,3,3", 2304, 0.1, 0, &seed);
  numbers(&b, "c3", "1,8,1,1", 8, 2.0, 0, &seed);
  numbers(&b, "w4", "10,72", 720, 0.3, 0, &seed);
  numbers(&b, "b4", "10", 10, 3.0, 0, &seed);
  tarn_buf_str(&b, "init lo f32 - : 0.0\ninit hi f32 - : 1.3\n"
                   "node Conv conv0 x w0 -> a0 : pads=1,1,1,1\n"
                   "node BatchNormalization bn0 a0 g0 b0 m0 v0 -> n0\n"
                   "node Relu relu0 n0 -> r0\n"
                   "node MaxPool pool r0 -> p : kernel_shape=2,2 strides=2,2\n"
                   "node Conv conv1 p w1 -> a1 : pads=1,1,1,1 group=16\n"
                   "node Clip clip a1 lo hi -> r1\n"
                   "node Conv conv2 r1 w2 b2 -> a2\n"
                   "node Add sum a2 p -> s\n"
                   "node Relu relu2 s -> r2\n"
                   "node Add twice r2 p -> t\n"
                   "node Concat both t r1 -> u : axis=1\n"
                   "node Conv conv3 u w3 -> a3 : pads=1,1,1,1 strides=2,2\n"
                   "node Add shifted a3 c3 -> s3\n"
                   "node Flatten flat s3 -> f\n"
                   "node Gemm gemm f w4 b4 -> y : transB=1\nout y\n");
  return b.p;
}

static void write_model(const char *text, const char *file) {
  size_t n;
  const uint8_t *bytes = onnx_model(cx, text, &n);
  tarn_write_file(cx, file, bytes, n);
}

static const tarn_tensor *write_sample(const char *file, uint32_t n, const int64_t *dim,
                                       uint64_t seed) {
  tarn_tensor *t = tarn_tensor_new(cx, TARN_F32, n, dim);
  for (int64_t i = 0; i < tarn_tensor_count(t); i++)
    ((float *)t->data)[i] = (float)(2 * tarn_random_unit(&seed));
  tarn_tensor_write(cx, file, t);
  return t;
}

static tarn_quantize_options options(const char *model, const char *samples) {
  static tarn_shape_binding n;
  static const int64_t two[] = {2};
  n = (tarn_shape_binding){"N", 1, two, NULL};
  return (tarn_quantize_options){
      .model = model, .samples = samples, .output = at("q.onnx"), .nshape = 1, .shape = &n};
}

/* The network and two samples; the input of the first. */
static const tarn_tensor *prepare(uint64_t seed) {
  const int64_t dim[] = {2, 3, 12, 12};
  mkdir(at("samples"), 0777);
  write_model(network(seed), at("m.onnx"));
  write_sample(at("samples/b.npy"), 4, dim, seed + 1);
  return write_sample(at("samples/a.npy"), 4, dim, seed + 2);
}

/* ---------------------------------------------------------------- integers, node by node */

/* Every value that is bytes, a sum, or an output, as tarn's interpreter gives it. */
static uint32_t compare(Onnx__ModelProto *model, const machine *m, const tarn_tensor *x) {
  Onnx__GraphProto *g = model->graph;
  onnx_text t = {.cx = cx};
  for (uint32_t i = 0; i < m->n; i++)
    if ((m->v[i].type == I8 || m->v[i].type == I32) && m->v[i].count > 1)
      ONNX_ADD(&t, g->output, g->n_output, tarn_onnx_value(cx, m->v[i].name));
  tarn_model_options o = {.nshape = 1, .shape = options("", "").shape};
  tarn_program *p = tarn_onnx_program(L, model, "q", &o, NULL);
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout);
  tarn_tensor **out = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_binding in = {"x", x};
  tarn_eval(L, root, p->nout, &in, 1, TARN_STRICT, tarn_opaque_eval, out);
  for (uint32_t i = 0; i < p->nout; i++) {
    const value *v = find((machine *)(uintptr_t)m, p->out[i].name);
    ck_assert_int_eq(tarn_tensor_count(out[i]), v->count);
    for (int64_t k = 0; k < v->count; k++)
      ck_assert_msg(tarn_tensor_number(out[i], k) == (v->d ? v->d[k] : (double)v->i[k]),
                    "%s[%lld] is %g", v->name, (long long)k, tarn_tensor_number(out[i], k));
  }
  return p->nout;
}

static void check_values(tarn_ctx *c, void *arg) {
  uint64_t seed = (uint64_t) * (int *)arg;
  const tarn_tensor *x = prepare(seed);
  tarn_quantize_options o = options(at("m.onnx"), at("samples"));
  o.hw = tarn_hw_load(L, "vta-pynq");
  const tarn_quantized *q = tarn_quantize(L, &o);
  ck_assert(q->machine && q->products == 5 && q->nleft == 0 && q->nsample == 2);
  ck_assert_double_lt(q->out[0].error, 0.25);
  Onnx__ModelProto *model = tarn_onnx_read(c, o.output);
  machine *m = computed(model, x);
  ck_assert_int_eq(m->products, 5);
  ck_assert_int_le(m->most, 15);
  ck_assert_uint_gt(compare(model, m, x), 20);
}
START_TEST(values) { must(check_values, &_i); }
END_TEST

/* ---------------------------------------------------------------- the description decides */

static const char *replaced(const char *text, const char *what, const char *with) {
  const char *p = strstr(text, what);
  ck_assert_ptr_nonnull(p);
  return tarn_format(cx, "%.*s%s%s", (int)(p - text), text, with, p + strlen(what));
}

/* The same machine under another name, with shifts of at most 3; without shifts. */
static void check_description(tarn_ctx *c, void *arg) {
  (void)arg;
  size_t n;
  const tarn_tensor *x = prepare(5);
  tarn_quantize_options o = options(at("m.onnx"), at("samples"));
  const char *text =
      replaced(tarn_read_file(c, TARN_TOP "/hw/vta-pynq.hw", &n), "(hw vta-pynq", "(hw mine");
  const char *small = replaced(text, "(immediate 0 15)", "(immediate 0 3)");
  tarn_write_file(c, at("mine.hw"), small, strlen(small));
  o.hw = tarn_hw_load(L, at("mine.hw"));
  ck_assert(tarn_quantize(L, &o)->machine);
  ck_assert_int_le(computed(tarn_onnx_read(c, o.output), x)->most, 3);
  /* A machine of i8 into i32 and nothing else: no zero points, one scale of weights. */
  o.hw = tarn_hw_load(L, TARN_TOP "/tests/data/hw/bytes.hw");
  const tarn_quantized *q = tarn_quantize(L, &o);
  ck_assert(!q->machine && q->products == 5 && q->out[0].error < 0.25);
  const Onnx__GraphProto *g = tarn_onnx_read(c, o.output)->graph;
  for (size_t i = 0; i < g->n_initializer; i++) {
    const Onnx__TensorProto *t = g->initializer[i];
    ck_assert_int_ne(t->data_type, tarn_onnx_dtype(TARN_U8));
    ck_assert(t->data_type != F32 || t->n_dims == 0);
  }
  o.hw = tarn_hw_load(L, "systolic-f32");
  ck_assert(!tarn_quantize(L, &o)->machine);
}
START_TEST(description) { must(check_description, NULL); }
END_TEST

/* ---------------------------------------------------------------- sums that are scaled */

static uint32_t count(const Onnx__GraphProto *g, const char *op);
static bool makes(const Onnx__NodeProto *n, const char *name) {
  bool does = false;
  for (size_t i = 0; i < n->n_output; i++) does |= !strcmp(n->output[i], name);
  return does;
}
static const Onnx__NodeProto *maker(const Onnx__GraphProto *g, const char *name) {
  for (size_t i = 0; i < g->n_node; i++)
    if (makes(g->node[i], name)) return g->node[i];
  return NULL;
}
static double initial(const Onnx__GraphProto *g, const char *name) {
  for (size_t i = 0; i < g->n_initializer; i++)
    if (!strcmp(g->initializer[i]->name, name))
      return tarn_tensor_number(tarn_onnx_tensor(cx, g->initializer[i], NULL, "w"), 0);
  ck_abort_msg("%s is no constant", name);
}
/* Of every cast to i8 the way back to a sum, in the order that the machine has: a relu makes the
 * lower bound 0, the upper one is 127, but where a clip shares its scale with larger numbers. */
static uint32_t ends(const Onnx__GraphProto *g) {
  static const char *const before[] = {"Clip", "Round", "Mul"};
  uint32_t n = 0;
  uint32_t whole = 0;
  for (size_t i = 0; i < g->n_node; i++) {
    const Onnx__NodeProto *p = g->node[i];
    if (strcmp(p->op_type, "Cast") != 0 || tarn_onnx_attr_int(p, "to", 0) != I8) continue;
    for (size_t k = 0; k < sizeof before / sizeof *before; k++) {
      p = maker(g, p->input[0]);
      ck_assert_str_eq(p->op_type, before[k]);
      if (k) continue;
      double lo = initial(g, p->input[1]);
      ck_assert(lo == -128 || lo == 0);
      whole += initial(g, p->input[2]) == 127;
    }
    n++;
  }
  ck_assert_uint_eq(whole + 1, n);
  return n;
}
static void check_scaled(tarn_ctx *c, void *arg) {
  (void)arg;
  prepare(11);
  tarn_quantize_options o = options(at("m.onnx"), at("samples"));
  o.hw = tarn_hw_load(L, "gemmini-default");
  const tarn_quantized *q = tarn_quantize(L, &o);
  ck_assert(q->machine && q->scales && q->products == 5 && q->nleft == 0);
  ck_assert_double_lt(q->out[0].error, 0.25);
  const Onnx__GraphProto *g = tarn_onnx_read(c, o.output)->graph;
  ck_assert_uint_eq(count(g, "ConvInteger"), 4);
  ck_assert_uint_eq(count(g, "MatMulInteger"), 1);
  ck_assert_uint_eq(ends(g), 8);         /* x, five products, two additions */
  for (size_t i = 0; i < g->n_node; i++) /* of operands with one scale */
    if (!strcmp(g->node[i]->op_type, "Add") && maker(g, g->node[i]->input[1]))
      for (uint32_t k = 0; k < 2; k++)
        ck_assert_str_eq(maker(g, g->node[i]->input[k])->op_type, "Cast");
}
START_TEST(scaled) { must(check_scaled, NULL); }
END_TEST

/* ---------------------------------------------------------------- QDQ */

static uint32_t count(const Onnx__GraphProto *g, const char *op) {
  uint32_t n = 0;
  for (size_t i = 0; i < g->n_node; i++) n += !strcmp(g->node[i]->op_type, op);
  return n;
}

/* Weights and biases with a scale for each channel; each activation once. */
static void check_qdq(tarn_ctx *c, void *arg) {
  (void)arg;
  prepare(7);
  tarn_quantize_options o = options(at("m.onnx"), at("samples"));
  const tarn_quantized *q = tarn_quantize(L, &o);
  ck_assert(!q->machine && q->products == 5 && q->nleft == 0);
  ck_assert_double_lt(q->out[0].error, 0.1);
  const Onnx__GraphProto *g = tarn_onnx_read(c, o.output)->graph;
  ck_assert_uint_eq(count(g, "BatchNormalization"), 0);
  ck_assert_uint_eq(count(g, "Conv"), 4);
  ck_assert_uint_eq(count(g, "Gemm"), 1);
  uint32_t activations = count(g, "QuantizeLinear"); /* x r0 p r1 a2 r2 t u s3 f y */
  ck_assert_uint_eq(activations, 11);
  ck_assert_uint_eq(count(g, "DequantizeLinear"), activations + 5 + 4);
}
START_TEST(qdq) { must(check_qdq, NULL); }
END_TEST

/* ---------------------------------------------------------------- an engine */

typedef struct engine {
  int loads, runs;
} engine;
typedef struct loaded {
  engine *e;
  tarn_program *p;
} loaded;
static void *load(void *user, tarn_ctx *c, const char *bytes, size_t n) {
  loaded *m = TARN_NEW(c, loaded);
  tarn_model_options mo = {.nshape = 1, .shape = options("", "").shape};
  *m = (loaded){user, tarn_model_load_bytes(L, bytes, n, "engine", NULL, &mo, NULL)};
  m->e->loads++;
  return m;
}
static void run_loaded(void *model, const tarn_tensor *const *in, tarn_tensor *const *out) {
  loaded *m = model;
  tarn_program *p = m->p;
  tarn_term *root = TARN_ARRAY(cx, tarn_term, p->nout);
  tarn_tensor **got = TARN_ARRAY(cx, tarn_tensor *, p->nout);
  tarn_binding b = {p->in[0].name, in[0]};
  for (uint32_t i = 0; i < p->nout; i++) root[i] = p->out[i].term;
  tarn_eval(L, root, p->nout, &b, 1, TARN_STRICT, tarn_opaque_eval, got);
  for (uint32_t i = 0; i < p->nout; i++)
    memcpy(out[i]->data, got[i]->data, tarn_tensor_bytes(got[i]));
  m->e->runs++;
}

/* Two models, four runs; the same bytes as without. */
static void check_engine(tarn_ctx *c, void *arg) {
  (void)arg;
  (void)c;
  engine e = {0};
  prepare(9);
  tarn_quantize_options o = options(at("m.onnx"), at("samples"));
  tarn_quantize_engine way = {&e, load, run_loaded};
  o.hw = tarn_hw_load(L, "vta-pynq");
  o.engine = &way;
  const tarn_quantized *q = tarn_quantize(L, &o);
  ck_assert_int_eq(e.loads, 0);
  o.work = 1;
  const tarn_quantized *again = tarn_quantize(L, &o);
  ck_assert(e.loads == 2 && e.runs == 4);
  ck_assert(q->n == again->n && !memcmp(q->bytes, again->bytes, q->n));
  ck_assert(q->out[0].error == again->out[0].error);
}
START_TEST(engines) { must(check_engine, NULL); }
END_TEST

/* ---------------------------------------------------------------- digits */

#define IMAGES 160 /* of the 359 that are there; tests/cli/quantize.sh takes all */
static double accuracy(const char *model, const tarn_tensor *images, const int32_t *label) {
  static const int64_t n[] = {IMAGES};
  tarn_shape_binding shape = {"n", 1, n, NULL};
  tarn_model_options mo = {.nshape = 1, .shape = &shape};
  tarn_program *p = tarn_model_load(L, model, &mo, NULL);
  tarn_tensor *y;
  tarn_binding in = {"image", images};
  tarn_eval(L, &p->out[0].term, 1, &in, 1, TARN_STRICT, tarn_opaque_eval, &y);
  int right = 0;
  for (int64_t i = 0; i < n[0]; i++) {
    int64_t best = 0;
    for (int64_t k = 1; k < 10; k++)
      if (tarn_tensor_number(y, i * 10 + k) > tarn_tensor_number(y, i * 10 + best)) best = k;
    right += best == label[i];
  }
  return 100.0 * right / (double)n[0];
}

#define DIGITS TARN_TOP "/examples/digits/"
static void check_digits(tarn_ctx *c, void *arg) {
  static const int64_t n[] = {IMAGES};
  tarn_shape_binding shape = {"n", 1, n, NULL};
  static const char *const machines[] = {NULL, "vta-pynq", "gemmini-default"};
  const char *hw = machines[*(int *)arg];
  tarn_tensor *images = tarn_tensor_read(c, DIGITS "held_images.npy");
  images->dim[0] = n[0];
  const int32_t *label = tarn_tensor_read(c, DIGITS "held_labels.npy")->data;
  mkdir(at("digits"), 0777);
  tarn_tensor_write(c, at("digits/held.npy"), images);
  tarn_quantize_options o = {.model = DIGITS "digits.onnx",
                             .samples = at("digits"),
                             .output = at("digits.onnx"),
                             .hw = hw ? tarn_hw_load(L, hw) : NULL,
                             .nshape = 1,
                             .shape = &shape};
  const tarn_quantized *q = tarn_quantize(L, &o);
  ck_assert(q->products == 7 && q->out[0].classes && q->out[0].vectors == IMAGES);
  ck_assert_int_ge(q->out[0].agree, IMAGES - 2);
  double before = accuracy(o.model, images, label), after = accuracy(o.output, images, label);
  ck_assert_msg(after >= before - 1, "%.2f of 100 right, %.2f before", after, before);
}
START_TEST(digits) { must(check_digits, &_i); }
END_TEST

/* ---------------------------------------------------------------- corners */

typedef struct corner {
  const char *text;
  int inputs, products, left;
} corner;
static const corner corners[] = {
    /* a value that is f32 and bytes at once, an output in the middle */
    {"in x f32 1,8\ninit w f32 8,4 : 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 "
     "8.0"
     " 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0\n"
     "node MatMul m x w -> y\nnode Tanh t y -> z\nnode Relu r y -> q\nout y\nout z\nout q\n",
     1, 1, 1},
    /* weights that nodes make, a scale of the product, an initializer that is an input too */
    {"in x f32 3,2\nin b f32 1,2\ninit w f32 2,2 : 1.5 -2.5 0.25 4.0\ninit b f32 1,2 : 0.5 -9.0\n"
     "node Transpose t w -> v : perm=1,0\nnode Gemm g x v b -> y : alpha=2.5 beta=0.5\nout y\n",
     1, 1, 0},
    /* two inputs, the sum of two products, no product of inputs */
    {"in x f32 2,4\nin z f32 2,4\ninit w f32 4,4 : 1.0 0.0 0.0 0.0 0.0 1.0 0.0 0.0 0.0 0.0 1.0 0.0"
     " 0.0 0.0 0.0 -1.0\nnode MatMul a x w -> p\nnode MatMul b z w -> q\nnode Add s p q -> r\n"
     "node Transpose t z -> u : perm=1,0\nnode MatMul c r u -> y\nout y\n",
     2, 2, 2},
    /* an older operator set, whose clip has attributes */
    {"opset 9\nin x f32 1,1,4,4\ninit w f32 2,1,1,1 : 1.0 -1.0\nnode Conv c x w -> v\n"
     "node Clip k v -> y : min=-0.5 max=1.0\nout y\n",
     1, 1, 0},
    /* all zeros, weights too */
    {"in x f32 1,1,4,4\ninit w f32 2,1,3,3 : 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 "
     "0.0"
     " 0.0 0.0 0.0 0.0\nnode Conv c x w -> y\nout y\n",
     1, 1, 0},
    /* a bias far larger than the sums, a huge weight */
    {"in x f32 1,2\ninit w f32 2,2 : 0.001 0.002 -0.001 100000.0\ninit b f32 2 : 1000000.0 -3.0\n"
     "node MatMul m x w -> p\nnode Add a b p -> y\nout y\n",
     1, 1, 0},
};

static void check_corner(tarn_ctx *c, void *arg) {
  const corner *k = &corners[*(int *)arg];
  write_model(k->text, at("m.onnx"));
  tarn_program *p = tarn_model_load(L, at("m.onnx"), NULL, NULL);
  ck_assert_int_eq(p->nin, k->inputs);
  const char *dir = at(tarn_format(c, "corner%d", *(int *)arg));
  mkdir(dir, 0777);
  for (uint32_t s = 0; s < 2; s++) {
    const char *sample = k->inputs == 1 ? dir : tarn_format(c, "%s/%u", dir, s);
    mkdir(sample, 0777);
    for (uint32_t i = 0; i < p->nin; i++) {
      const tarn_type *t = tarn_type_get(L, p->in[i].type);
      const char *name = k->inputs == 1 ? tarn_format(c, "s%u", s) : p->in[i].name;
      write_sample(tarn_format(c, "%s/%s.npy", sample, name), t->n, t->dim, 10 * s + i);
    }
  }
  tarn_quantize_options o = {.model = at("m.onnx"), .samples = dir, .output = at("q.onnx")};
  for (int way = 0; way < 2; way++) {
    o.hw = way ? tarn_hw_load(L, "vta-pynq") : NULL;
    const tarn_quantized *q = tarn_quantize(L, &o);
    ck_assert_uint_eq(q->products, k->products);
    ck_assert_uint_eq(q->nleft, k->left);
    ck_assert_uint_eq(q->nout, p->nout);
    for (uint32_t i = 0; i < q->nout; i++)
      ck_assert_msg(q->out[i].error < 0.06, "%s: off by %g", q->out[i].name, q->out[i].error);
    tarn_program *again = tarn_model_load(L, o.output, NULL, NULL);
    ck_assert_uint_eq(again->nin, p->nin);
  }
}
START_TEST(corner_cases) { must(check_corner, &_i); }
END_TEST

/* Operators that changed before set 13, as they were and as they are written. */
static const char *const old =
    "opset 9\nin x f32 2,6,4,4\ninit w f32 3,3 : 1.0 0.5 -0.5 0.25 1.5 0.0 -1.0 0.5 2.0\n"
    "node Pad p x -> a : pads=0,0,1,0,0,0,0,1 value=0.5\n" /* 2,6,5,5 */
    "node Slice s a -> b : starts=1,0 ends=4,4 axes=2,3\n" /* 2,6,3,4 */
    "node Clip c b -> d : min=-1.0 max=1.5\n"
    "node Softmax m d -> e : axis=2\n"
    "node Dropout r e -> f : ratio=0.5\n"
    "node ReduceSum z f -> g : axes=3,1 keepdims=1\n" /* 2,1,3,1 */
    "node Squeeze q g -> h : axes=1,3\n"              /* 2,3 */
    "node Softmax n h -> i\n"
    "node MatMul w i w -> j\n"
    "node Unsqueeze u j -> k : axes=0,3\n" /* 1,2,3,1 */
    "node Split t k -> l o : axis=2 split=1,2\n"
    "node LogSoftmax v o -> y : axis=1\nout y\nout l\nout f\n";

static void check_upgrade(tarn_ctx *c, void *arg) {
  (void)arg;
  (void)c;
  const int64_t dim[] = {2, 6, 4, 4};
  tarn_tensor *out[2][3];
  mkdir(at("old"), 0777);
  write_model(old, at("m.onnx"));
  const tarn_tensor *x = write_sample(at("old/x.npy"), 4, dim, 4);
  tarn_quantize_options o = {.model = at("m.onnx"), .samples = at("old"), .output = at("q.onnx")};
  ck_assert_uint_eq(tarn_quantize(L, &o)->products, 1);
  for (int k = 0; k < 2; k++) {
    tarn_model_report r;
    tarn_program *p = tarn_model_load(L, k ? o.output : o.model, NULL, &r);
    tarn_term root[] = {p->out[0].term, p->out[1].term, p->out[2].term};
    tarn_binding in = {"x", x};
    ck_assert_int_eq(r.opset, k ? 13 : 9);
    tarn_eval(L, root, 3, &in, 1, TARN_STRICT, tarn_opaque_eval, out[k]);
  }
  for (int i = 0; i < 3; i++) {
    ck_assert_uint_eq(out[0][i]->n, out[1][i]->n);
    for (int64_t k = 0; k < tarn_tensor_count(out[0][i]); k++)
      ck_assert_double_eq_tol(tarn_tensor_number(out[0][i], k), tarn_tensor_number(out[1][i], k),
                              i < 2 ? 0.03 : 1e-6);
  }
}
START_TEST(upgraded) { must(check_upgrade, NULL); }
END_TEST

/* ---------------------------------------------------------------- refusals */

typedef struct refusal {
  const char *model; /* text; NULL: the network */
  const char *samples, *output;
  const char *words;
} refusal;
static const refusal refusals[] = {
    {NULL, "none", "q.onnx", "none: No such file"},
    {NULL, "empty", "q.onnx", "empty: no samples: files *.npy are expected"},
    {NULL, "wrong", "q.onnx",
     "wrong/a.npy: input x expects shape and type f32[2,3,12,12], given f32[2,3]"},
    {NULL, "infinite", "q.onnx", "infinite/a.npy: value x is infinite or NaN"},
    {NULL, "samples", "no/q.onnx", "no/q.onnx: "},
    {NULL, "samples", "samples", "samples: Is a directory"},
    {"in x f32 N,3,12,12\nnode Relu r x -> y\nout y\n", "samples", "q.onnx",
     "nothing to quantise: no convolution or product"},
    {"in x f32 N,3,12,12\nin z f32 1\nnode Add a x z -> y\nout y\n", "empty", "q.onnx",
     "folders with K/x.npy for each of 2 inputs are expected"},
    {"opset 9\nin x f32 N,3,12,12\ninit s f32 4 : 1.0 1.0 2.0 2.0\nnode Upsample u x s -> y\n"
     "out y\n",
     "samples", "q.onnx", "node u (Upsample): operator set 9; what is written has set 13"},
    {"in x f32 N,3,12,12\nnode Nonsense s x -> y\nout y\n", "samples", "q.onnx",
     "node s (Nonsense)"},
};

static void refuse(tarn_ctx *c, void *arg) {
  (void)c;
  tarn_quantize(L, arg);
}
static void check_refusal(tarn_ctx *c, void *arg) {
  const refusal *r = &refusals[*(int *)arg];
  const int64_t dim[] = {2, 3}, whole[] = {2, 3, 12, 12};
  static const char *const made[] = {"empty", "wrong", "infinite"};
  for (int i = 0; i < 3; i++) mkdir(at(made[i]), 0777);
  prepare(3);
  write_sample(at("wrong/a.npy"), 2, dim, 1);
  tarn_tensor *t = (tarn_tensor *)(uintptr_t)write_sample(at("infinite/a.npy"), 4, whole, 1);
  ((float *)t->data)[100] = INFINITY;
  tarn_tensor_write(c, at("infinite/a.npy"), t);
  if (r->model) write_model(r->model, at("m.onnx"));
  tarn_write_file(c, at("q.onnx"), "was here", 8);
  tarn_quantize_options o = options(at("m.onnx"), at(r->samples));
  o.output = at(r->output);
  tarn_status st = tarn_protect(c, refuse, &o);
  ck_assert_msg(st == TARN_BAD_INPUT || st == TARN_IO, "status %d", (int)st);
  ck_assert_msg(strstr(tarn_message(c), r->words), "%s", tarn_message(c));
  size_t n;
  ck_assert_str_eq(tarn_read_file(c, at("q.onnx"), &n), "was here");
}
START_TEST(refused) { must(check_refusal, &_i); }
END_TEST

/* ---------------------------------------------------------------- scales */

/* Sum of squared errors of the numbers themselves, of which the scales look at a histogram. */
static double squared(const tarn_tensor *t, double scale, int zero, int lo, int hi) {
  const float *x = t->data;
  double sum = 0;
  for (int64_t i = 0; i < t->dim[0]; i++) {
    double q = fmin(fmax(floor((double)x[i] / scale + 0.5) + zero, lo), hi) - zero;
    sum += ((double)x[i] - q * scale) * ((double)x[i] - q * scale);
  }
  return sum;
}
/* Many numbers from -1 to 1, at last two outside, for which bins are joined and which are clipped:
 * more is lost by a scale that covers them. Nearly the best of the scales tried, and much better
 * than the covering one. */
static void check_clips(tarn_ctx *c, void *arg) {
  const double far[] = {1.5, 3, 6};
  enum { N = 20000 };
  uint64_t seed = 58;
  const double out = far[*(int *)arg];
  tarn_tensor *t = tarn_tensor_new(c, TARN_F32, 1, (int64_t[]){N});
  float *x = t->data;
  for (int i = 0; i < N; i++) x[i] = (float)tarn_random_unit(&seed);
  x[0] = 0.75f; /* the bins cover [-1, 1) from here on */
  x[N - 2] = (float)out;
  x[N - 1] = (float)-out;
  qz_range r = {0};
  const qz_range *one = &r;
  qz_range_add(c, &r, t);
  ck_assert_uint_eq(r.n, N);
  ck_assert(r.hi == (double)(float)out && r.lo == -r.hi);

  qz_scale i8 = qz_scale_i8(&one, 1);
  qz_scale u8 = qz_scale_u8(&r);
  int e = qz_exponent(&one, 1);
  double best8 = INFINITY, bestu = INFINITY, best2 = INFINITY;
  for (int i = 0; i < 40; i++) {
    double share = 1 - 0.02 * i, su = 2 * out * share / 255;
    best8 = fmin(best8, squared(t, out / 127 * share, 0, -128, 127));
    bestu = fmin(bestu, squared(t, su, (int)floor(out * share / su + 0.5), 0, 255));
  }
  for (int k = -20; k < 3; k++) best2 = fmin(best2, squared(t, ldexp(1, k), 0, -128, 127));
  ck_assert_double_le(squared(t, (double)i8.scale, 0, -128, 127), 1.05 * best8);
  ck_assert_double_le(squared(t, (double)u8.scale, u8.zero, 0, 255), 1.05 * bestu);
  ck_assert_double_le(squared(t, ldexp(1, e), 0, -128, 127), 1.05 * best2);
  ck_assert_double_lt((double)i8.scale, 0.99 * out / 127);
  ck_assert_double_lt((double)u8.scale, 0.99 * 2 * out / 255);
}
START_TEST(clips) { must(check_clips, &_i); }
END_TEST

/* ---------------------------------------------------------------- memory */

static void quantise_alone(tarn_ctx *c, void *arg) {
  tarn_quantize_options o = *(tarn_quantize_options *)arg;
  tarn_lang *own = tarn_lang_new(c);
  o.hw = tarn_hw_load(own, "vta-pynq");
  tarn_quantize(own, &o);
}
static void check_memory(tarn_ctx *c, void *arg) {
  (void)arg;
  const int64_t dim[] = {3, 2};
  uint64_t bad;
  mkdir(at("few"), 0777);
  write_model(corners[1].text, at("m.onnx"));
  write_sample(at("few/x.npy"), 2, dim, 1);
  tarn_quantize_options o = {.model = at("m.onnx"), .samples = at("few"), .output = at("q.onnx")};
  ck_assert_uint_gt(tarn_test_fail_each(quantise_alone, &o, 1, &bad), 3);
  ck_assert_msg(bad == 0, "a wrong outcome when allocation %llu fails", (unsigned long long)bad);
  (void)c;
}
START_TEST(memory) { must(check_memory, NULL); }
END_TEST

int main(void) {
  const looped tests[] = {{values, 4},
                          {description, 1},
                          {qdq, 1},
                          {scaled, 1},
                          {engines, 1},
                          {digits, 3},
                          {clips, 3},
                          {corner_cases, COUNT(corners)},
                          {upgraded, 1},
                          {memory, 1},
                          {refused, COUNT(refusals)}};
  if (!folder_make()) return 2;
  int failed = run_suite("quantize", tests, sizeof tests / sizeof *tests);
  folder_drop();
  return failed;
}
