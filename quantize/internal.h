/* quantize/: what its files share.
 *
 * The model is a graph of values and nodes (graph.c).  Nodes that are computed together in bytes
 * are a group (groups.c): a product with what is folded into it, an addition, an operator that
 * moves bytes.  The samples give each group's values their ranges (calibrate.c), from which scales
 * follow (range.c, scales.c).  One writer for each form (machine.c, qdq.c) makes the new graph with
 * what write.c offers. */
#ifndef TARN_QUANTIZE_INTERNAL_H
#define TARN_QUANTIZE_INTERNAL_H
#include "model/onnx.h"
#include "quantize/quantize.h"

/* ---- target.c: what the machine computes with ---- */
typedef struct qz_target {
  bool machine; /* operators on integers; else QDQ */
  bool scales;  /* the machine scales sums by real numbers as they leave; else it has shifts */
  bool i8;      /* its products are of i8, so QDQ has no others */
  int max_shift;
} qz_target;
qz_target qz_target_of(tarn_lang *L, const tarn_hw *hw);

/* ---- upgrade.c ---- */
#define QZ_OPSET                                                                                   \
  13            /* of what is written: scales along an axis, min and max as inputs, integers       \
                 */
#define QZ_IR 7 /* the format that came with it */
typedef struct qz_graph qz_graph;
/* A model of an earlier operator set becomes one of that. */
void qz_upgrade(qz_graph *g);

/* ---- graph.c ---- */
typedef struct qz_value {
  const char *name;
  uint32_t maker; /* a node; TARN_NONE: an input or an initializer */
  uint32_t user;  /* a node that reads it */
  uint32_t uses;  /* times that nodes read it */
  bool kept;      /* an output, or read by a subgraph: it must exist under its name */
  bool fixed;     /* depends on no input */
  tarn_dtype dtype;
  uint32_t n;
  const int64_t *dim;
  tarn_term term; /* its meaning; TARN_NONE: none is known */
} qz_value;

typedef struct qz_node {
  const Onnx__NodeProto *p;
  const char *name, *op; /* op: "" outside of the default domain */
  uint32_t nin, nout;
  uint32_t *in, *out; /* values; TARN_NONE: absent */
  uint32_t group;     /* that it belongs to; TARN_NONE: it stays f32 */
  const char *why;    /* it stays f32 though it is a product */
} qz_node;

struct qz_graph {
  tarn_ctx *cx;
  tarn_lang *L;
  const char *file;
  Onnx__ModelProto *model;
  tarn_program *program; /* with all values as outputs */
  uint32_t nout;         /* outputs of the model: the first of the program */
  tarn_intern *names;    /* of values */
  uint32_t nvalue, nnode;
  qz_value *value;
  qz_node *node; /* in an order in which each follows what it reads */
};
qz_graph *qz_graph_read(tarn_lang *L, const tarn_quantize_options *o);
/* Value of that name; TARN_NONE: none. */
uint32_t qz_find(const qz_graph *g, const char *name);
/* What a fixed value is. */
const tarn_tensor *qz_constant(const qz_graph *g, uint32_t v);
bool qz_is_op(const qz_node *n, const char *op);
/* Input i; TARN_NONE: absent. */
uint32_t qz_in(const qz_node *n, uint32_t i);
/* The only reader of a value that nobody else needs; NULL. */
qz_node *qz_reader(const qz_graph *g, uint32_t v);

/* ---- groups.c ---- */
typedef enum qz_kind {
  QZ_PRODUCT, /* convolution, product of matrices: with batch normalisation and additions folded */
  QZ_ADD,     /* of two values of one shape */
  QZ_CLIP,    /* relu or clip of a value by itself */
  QZ_MOVE     /* bytes as they are: max pooling, concat, reshape … */
} qz_kind;
typedef struct qz_group {
  qz_kind kind;
  qz_node *main;
  uint32_t nin, *in; /* what it reads in bytes */
  uint32_t out;      /* what it makes in bytes */
  double lo, hi;     /* real bounds of the result: a relu or clip that was folded */
  uint32_t wide;     /* ADD: the product that it adds as i32; TARN_NONE */
  bool inside;       /* PRODUCT: it is the wide one of an addition, and makes no bytes */
  /* PRODUCT: */
  bool conv;
  tarn_tensor *w; /* f32: O,C,… or K,N */
  double *bias;   /* of each channel; NULL: none */
  uint32_t channels;
} qz_group;
typedef struct qz_groups {
  uint32_t n;
  qz_group *group;
} qz_groups;
/* wide: products may be added as i32. */
qz_groups *qz_groups_find(qz_graph *g, bool wide);

/* ---- fold.c: into the weights ---- */
/* Fills what a PRODUCT has, and moves out along what is folded. NULL: done; else why not. */
const char *qz_fold(qz_graph *g, qz_group *p, uint32_t id);
/* Folds a relu or clip that alone reads the result. */
void qz_fold_clip(qz_graph *g, qz_group *p, uint32_t id);
/* The bounds of a relu or clip; false: it is neither, or they are not fixed. */
bool qz_bounds(const qz_graph *g, const qz_node *n, double *lo, double *hi);

/* ---- range.c: how often which numbers occur ---- */
typedef struct qz_range {
  uint64_t n;
  double lo, hi;
  double reach; /* the bins cover [-reach, reach); a power of two */
  uint64_t *bin;
} qz_range;
void qz_range_add(tarn_ctx *cx, qz_range *r, const tarn_tensor *t);
/* The power of two of the least error over several. */
int qz_exponent(const qz_range *const *r, uint32_t n);
typedef struct qz_scale {
  float scale;
  int zero;
} qz_scale;
qz_scale qz_scale_u8(const qz_range *r);
qz_scale qz_scale_i8(const qz_range *const *r, uint32_t n); /* of several; its zero is 0 */

/* ---- calibrate.c: the samples ---- */
typedef struct qz_samples {
  uint32_t n;
  const char **path;          /* for messages */
  const tarn_binding **input; /* of each sample, in the program's order */
} qz_samples;
qz_samples *qz_samples_read(const qz_graph *g, const char *dir);

/* ---- run.c: a model on samples ---- */
typedef struct qz_model {
  tarn_lang *L;
  const qz_samples *s;
  uint32_t nin, nout;
  tarn_term *out;                     /* of the interpreter */
  tarn_io *type;                      /* of the outputs */
  const tarn_quantize_engine *engine; /* NULL: the interpreter */
  void *loaded;
} qz_model;
/* Multiply-adds of the groups on all samples. */
double qz_work(const qz_graph *g, const qz_groups *s, const qz_samples *samples);
/* A program to be run; the same as a message, for the engine (NULL: the interpreter). */
qz_model qz_model_new(const tarn_program *p, const qz_samples *s,
                      const tarn_quantize_engine *engine, const Onnx__ModelProto *message);
/* New tensors. */
void qz_model_run(const qz_model *m, uint32_t sample, tarn_tensor **out);
/* range[v] of each value v that is wanted; mean[i][k]: of channel k of what the product i reads;
 * reference[s][k]: output k of sample s. */
typedef struct qz_calibration {
  qz_range *range;
  double **mean;
  tarn_tensor ***reference;
} qz_calibration;
qz_calibration *qz_calibrate(const qz_graph *g, const qz_groups *groups, const qz_samples *s,
                             const tarn_quantize_engine *engine);

/* ---- bias.c ---- */
/* The bias of a product whose weights became wq: without what their errors add on average. */
double *qz_bias(const qz_graph *g, const qz_groups *s, const qz_calibration *c, uint32_t group,
                const float *wq);

/* ---- scales.c: of the machine forms ---- */
typedef struct qz_scales {
  const qz_calibration *c;
  bool real;      /* else all are powers of two, and additions have a sum's */
  double *of;     /* by value: what its bytes are times */
  double *weight; /* by group: of a product's weights */
  double *sum;    /* by group: of an addition, before its last shift */
} qz_scales;
qz_scales *qz_scales_choose(const qz_graph *g, qz_groups *s, const qz_calibration *c,
                            const qz_target *t);
/* round(x / scale) in 8 bits. */
int qz_byte(double x, double scale);
/* Values that need a range. */
bool *qz_wanted(const qz_graph *g, const qz_groups *s);

/* ---- write.c: the new graph ---- */
typedef struct qz_writer {
  qz_graph *g;
  const qz_groups *s;
  tarn_ctx *cx;
  tarn_intern *taken, *nodes; /* names of values, of nodes */
  TARN_VEC(Onnx__NodeProto *) node;
  TARN_VEC(Onnx__TensorProto *) init;
  tarn_intern *scalars;
  TARN_VEC(const char *) scalar; /* names, by number in scalars */
  const char **bytes;            /* by value: the name of its bytes; NULL: not there */
  bool *real;                    /* by value: does it exist under its own name? */
  void *form;                    /* the writer's own */
  void (*back)(struct qz_writer *w, uint32_t v); /* makes the real value from its bytes */
} qz_writer;
qz_writer *qz_writer_new(qz_graph *g, const qz_groups *s);
/* A name like base, that no value has. */
const char *qz_fresh(qz_writer *w, const char *base, const char *suffix);
const char *qz_scalar(qz_writer *w, tarn_dtype t, double v);
const char *qz_tensor(qz_writer *w, const tarn_tensor *t, const char *base, const char *suffix);
/* A node of group `of`; returns the name of its output: out, or fresh when NULL. */
const char *qz_emit(qz_writer *w, const qz_node *of, const char *op, const char *suffix,
                    const char *out, uint32_t nin, ...);
const char *qz_cast(qz_writer *w, const qz_node *of, const char *suffix, const char *out,
                    const char *x, tarn_dtype to);
/* A copy of a node's message that reads and makes these; attributes go along. */
const char *qz_emit_like(qz_writer *w, const qz_node *of, const char *op, const char *out,
                         uint32_t nin, const char *const *in);
/* The name of the real value, made now when it is not there. */
const char *qz_real(qz_writer *w, uint32_t v);
/* Copies a node that stays f32. */
void qz_copy_node(qz_writer *w, const qz_node *n);
/* Puts together what is reached from the outputs. */
void qz_finish(qz_writer *w);

/* ---- the forms ---- */
void qz_write_machine(qz_writer *w, const qz_scales *c);
void qz_write_qdq(qz_writer *w, const qz_calibration *c, bool i8);

/* ---- accuracy.c ---- */
const tarn_quantized_output *qz_compare(const qz_graph *g, const tarn_quantize_options *o,
                                        const qz_samples *s, const qz_calibration *c,
                                        const tarn_quantize_engine *engine, const char *bytes,
                                        size_t n);

#endif
