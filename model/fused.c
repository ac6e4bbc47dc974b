/* com.microsoft's floats: an operator with what ONNX Runtime's optimiser fused into it.  Source:
 * ONNX Runtime's docs/ContribOperators.md. */
#include "model/import.h"
#include <math.h>
#include <string.h>

im_handler im_do_bias_gelu, im_do_fast_gelu, im_do_quick_gelu, im_do_fused_conv, im_do_fused_gemm,
    im_do_fused_matmul;

/* ---------------------------------------------------------------- Gelu */

static tarn_term with_bias(im_node *n) {
  if (im_opt(n, 1) == TARN_NONE) return im_arg(n, 0);
  return im_el(n, "(add $0 $1)", 2, im_arg(n, 0), im_arg(n, 1));
}

void im_do_bias_gelu(im_node *n) {
  tarn_term x = with_bias(n);
  im_set(n, 0, im_apply(n, "Gelu", 20, &x, 1)->t);
}

void im_do_fast_gelu(im_node *n) {
  im_param p[] = {{"c", sqrt(2 / acos(-1.0)), 0}};
  im_set(n, 0,
         im_elp(n,
                "(mul (mul 0.5 $0)"
                " (add 1 (tanh (mul c (add $0 (mul 0.044715 (mul $0 (mul $0 $0))))))))",
                p, 1, 1, with_bias(n)));
}

void im_do_quick_gelu(im_node *n) {
  im_param p[] = {{"alpha", im_attr_real(n, "alpha", 1.702f), 0}};
  im_set(n, 0, im_elp(n, "(div $0 (add 1 (exp (neg (mul alpha $0)))))", p, 1, 1, im_arg(n, 0)));
}

/* ---------------------------------------------------------------- activations */

static const struct {
  const char *name, *text;
} activations[] = {{"Relu", "(max $0 0)"},
                   {"Tanh", "(tanh $0)"},
                   {"Sigmoid", "(div 1 (add 1 (exp (neg $0))))"},
                   {"LeakyRelu", "(select (lt $0 0) (mul p0 $0) $0)"},
                   {"Clip", "(min (max $0 p0) p1)"},
                   {"HardSigmoid", "(max 0 (min 1 (add (mul p0 $0) p1)))"},
                   {"Elu", "(select (lt $0 0) (mul p0 (sub (exp $0) 1)) $0)"},
                   {"Softplus", "(add (max $0 0) (log1p (exp (neg (abs $0)))))"}};

static tarn_term activated(im_node *n, tarn_term x, double p0, double p1) {
  const char *name = im_attr_str(n, "activation", "");
  im_param p[] = {{"p0", p0, 0}, {"p1", p1, 0}};
  if (!*name) return x;
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
    if (strcmp(activations[i].name, name) == 0) return im_elp(n, activations[i].text, p, 2, 1, x);
  im_bad(n, "activation %s is unknown", name);
}

void im_do_fused_conv(im_node *n) {
  tarn_term in[] = {im_arg(n, 0), im_arg(n, 1), im_opt(n, 2)};
  tarn_term y = im_apply(n, "Conv", 11, in, 3)->t;
  if (im_opt(n, 3) != TARN_NONE) y = im_el(n, "(add $0 $1)", 2, y, im_arg(n, 3));
  const Onnx__AttributeProto *a = im_attr(n, "activation_params");
  double p0 = a && a->n_floats > 0 ? (double)a->floats[0] : 0.01;
  im_set(n, 0, activated(n, y, p0, a && a->n_floats > 1 ? (double)a->floats[1] : 0));
}

void im_do_fused_gemm(im_node *n) {
  tarn_term in[] = {im_arg(n, 0), im_arg(n, 1), im_opt(n, 2)};
  tarn_term y = im_apply(n, "Gemm", 13, in, 3)->t;
  im_attr_ignore(n, "activation_gamma");
  im_set(n, 0,
         activated(n, y, im_attr_real(n, "activation_alpha", 0.01),
                   im_attr_real(n, "activation_beta", 0)));
}

/* Rows and columns exchanged, if the attribute says so. */
static tarn_term turned(im_node *n, tarn_term t, const char *name) {
  uint32_t p[TARN_MAX_DIMS], rank = im_shape(n, t).n;
  if (!im_attr_int(n, name, 0) || rank < 2) return t;
  for (uint32_t i = 0; i < rank; i++) p[i] = i;
  p[rank - 2] = rank - 1, p[rank - 1] = rank - 2;
  return im_permute(n, t, p);
}

/* The first dim behind those of the batch, if the attribute says so. */
static tarn_term batch_first(im_node *n, tarn_term t, const char *name) {
  uint32_t p[TARN_MAX_DIMS], rank = im_shape(n, t).n;
  if (!im_attr_int(n, name, 0) || rank < 3) return t;
  for (uint32_t i = 0; i < rank; i++) p[i] = i + 1 < rank - 1 ? i + 1 : i;
  p[rank - 2] = 0;
  return im_permute(n, t, p);
}

void im_do_fused_matmul(im_node *n) {
  tarn_term a = batch_first(n, im_arg(n, 0), "transBatchA");
  tarn_term b = batch_first(n, im_arg(n, 1), "transBatchB");
  tarn_term in[] = {turned(n, a, "transA"), turned(n, b, "transB")};
  im_param p[] = {{"alpha", im_attr_real(n, "alpha", 1), 0}};
  tarn_term y = im_apply(n, "MatMul", 13, in, 2)->t;
  im_set(n, 0, p->r == 1 ? y : im_elp(n, "(mul $0 alpha)", p, 1, 1, y));
}
