/* com.microsoft's floats: an operator with what ONNX Runtime's optimiser fused into it.  Source:
 * ONNX Runtime's docs/ContribOperators.md. */
#include "model/import.h"
#include <math.h>
#include <string.h>

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

/* given: its parameters, those that are there. */
static tarn_term activated(im_node *n, tarn_term x, const double *given, size_t ngiven) {
  const char *name = im_attr_str(n, "activation", "");
  im_activation a;
  if (!*name) return x;
  if (!im_activation_find(name, &a)) im_bad(n, "activation %s is unknown", name);
  for (uint32_t i = 0; i < a.np && i < ngiven; i++) a.p[i].r = given[i];
  return im_elp(n, a.text, a.p, a.np, 1, x);
}

void im_do_fused_conv(im_node *n) {
  tarn_term in[] = {im_arg(n, 0), im_arg(n, 1), im_opt(n, 2)};
  tarn_term y = im_apply(n, "Conv", 11, in, 3)->t;
  if (im_opt(n, 3) != TARN_NONE) y = im_el(n, "(add $0 $1)", 2, y, im_arg(n, 3));
  const Onnx__AttributeProto *a = im_attr(n, "activation_params");
  double p[2] = {0};
  for (size_t i = 0; a && i < a->n_floats && i < 2; i++) p[i] = (double)a->floats[i];
  im_set(n, 0, activated(n, y, p, a ? a->n_floats : 0));
}

void im_do_fused_gemm(im_node *n) {
  tarn_term in[] = {im_arg(n, 0), im_arg(n, 1), im_opt(n, 2)};
  tarn_term y = im_apply(n, "Gemm", 13, in, 3)->t;
  im_attr_ignore(n, "activation_gamma");
  double p[] = {im_attr_real(n, "activation_alpha", 0.01), im_attr_real(n, "activation_beta", 0)};
  im_set(n, 0, activated(n, y, p, 2));
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
