/* tarn quantize: post-training quantisation of an f32 ONNX model to standard ONNX; what `tarn
 * quantize` does, as a library (libtarn).
 *
 *   tarn_quantize_options o = {.model = "m.onnx", .samples = "samples", .output = "m8.onnx"};
 *   const tarn_quantized *q = tarn_quantize(L, &o);
 *
 * Convolutions and products with constant weights are computed in bytes, with what lies between
 * them as far as it has an integer form; batch normalisation and constant additions are folded into
 * the weights first.  Everything else stays f32.  Scales are those of the least squared error over
 * the samples, on which the model is run for that.
 *
 * Three forms (docs/quantize.md writes them out):
 *   - of a machine that has integer shifts and no floats: scales that are powers of two, integer
 *     operators, shifts that round to the nearest;
 *   - of a machine that scales its sums as they leave: integer operators, a product with an f32,
 *     rounding, saturation;
 *   - otherwise QuantizeLinear and DequantizeLinear around f32 operators, as ONNX Runtime's static
 *     quantisation writes them: activations u8, weights i8 with a scale for each channel.
 *
 * Raises, so it is called inside tarn_protect(): TARN_BAD_INPUT for a model, a sample or a machine,
 * TARN_IO for a file.  The output is written last and in one step: when something is raised, a file
 * that was there is as it was. */
#ifndef TARN_QUANTIZE_H
#define TARN_QUANTIZE_H
#include "hw/hw.h"
#include "model/model.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Who runs models: faster than the interpreter, for much work. */
typedef struct tarn_quantize_engine {
  void *user;
  /* Makes a model ready to run, with the shapes of the options; it is there until the enclosing
   * protected call ends. Raises. */
  void *(*load)(void *user, tarn_ctx *cx, const char *bytes, size_t n);
  /* One run: tensors in the model's order. Raises. */
  void (*run)(void *model, const tarn_tensor *const *in, tarn_tensor *const *out);
} tarn_quantize_engine;

typedef struct tarn_quantize_options {
  const char *model;   /* an ONNX file */
  const char *samples; /* a folder: *.npy of a model with one input, else K/NAME.npy */
  const char *output;  /* the file to write; NULL: none */
  const tarn_hw *hw;   /* for which machine; NULL: a CPU */
  uint32_t nshape;     /* of dynamic dims, while the samples run; the output keeps them dynamic */
  const tarn_shape_binding *shape;
  /* Runs the samples where they are more than so many multiply-adds (0: TARN_QUANTIZE_WORK), else
   * the interpreter does; NULL: always. */
  const tarn_quantize_engine *engine;
  double work;
} tarn_quantize_options;
#define TARN_QUANTIZE_WORK 2e10

/* An output of the quantised model on all samples, beside the f32 model's. */
typedef struct tarn_quantized_output {
  const char *name;
  bool classes;           /* its last dim holds scores of classes: */
  int64_t vectors, agree; /* how many such rows, in how many the largest stands in the same place */
  double error;           /* sqrt of (sum of squared differences / sum of squares) */
  double largest;         /* difference */
} tarn_quantized_output;

/* A node that stays f32, and why. */
typedef struct tarn_quantized_left {
  const char *node, *op, *why;
} tarn_quantized_left;

typedef struct tarn_quantized {
  bool machine; /* the form of a machine with integer shifts, or that scales its sums */
  bool scales;  /* the latter */
  uint32_t nsample;
  uint32_t products; /* convolutions and products in bytes */
  uint32_t nleft;
  const tarn_quantized_left *left; /* in the order of the graph */
  uint32_t nout;
  const tarn_quantized_output *out;
  const char *bytes; /* the model */
  size_t n;
} tarn_quantized;

TARN_API const tarn_quantized *tarn_quantize(tarn_lang *L, const tarn_quantize_options *o);

#ifdef __cplusplus
}
#endif
#endif
