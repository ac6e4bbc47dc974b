/* tarn model: what comes in from outside, as terms.
 *
 * An ONNX file, a tensor comprehension (.tc), a program text (.tarn) or a term text (.term) becomes
 * a tarn_program; tensors are read and written as .npy (NumPy's format 1.0 to 3.0) and as ONNX
 * TensorProto (.pb).
 *
 * Every value of an imported graph is a term of type ((dims),()): all dims are access dims.
 * Operators become surface terms (access, windows, cartProd, compute …); views stay views, and
 * nothing is folded that a rule can fold: only what decides a shape is computed while importing.  A
 * known ONNX operator outside the term language stays as `opaque`.
 *
 * Nothing in a file is trusted: any byte string either loads or raises TARN_BAD_INPUT with one line
 * that names the file and, inside a graph, the node and its operator.  Memory is bounded by a
 * constant plus a constant times the size of the file (and of the external data files it names,
 * which must lie in the folder of the model).
 *
 * Functions that raise must be called inside tarn_protect().  What they return lives in the arena
 * of L's context.
 */
#ifndef TARN_MODEL_H
#define TARN_MODEL_H
#include "access/access.h"
#include "access/judge.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- programs */

/* NAME=1,3,640,640: the shape of the graph input NAME, or, with one number and no input of that
 * name, the value of the symbolic dim NAME wherever it occurs; NAME=OTHER + 1: that of a sum,
 * difference or product of numbers and of dims that have a value (a minus stands between spaces, as
 * names have hyphens). A dim that the model fixes must
 * agree. A dim whose name is such an expression, "past + 1", has its value without being bound. */
typedef struct tarn_shape_binding {
  const char *name;
  uint32_t n;
  const int64_t *dim;
  const char *is; /* NULL, or the expression; n is 0 */
} tarn_shape_binding;

/* Does it give the dim an expression? */
TARN_API bool tarn_shape_is_expression(const char *text);
/* Reads "NAME=1,3,640,640" and "NAME=OTHER + 1"; raises TARN_USAGE. The result lives in the arena.
 */
TARN_API tarn_shape_binding tarn_shape_binding_parse(tarn_ctx *cx, const char *text);

/* NAME=VALUE: what the input NAME is from now on. VALUE is read by the input's type: a number, true
 * or false, which fills the input's shape; several with commas between them, a vector; or a file.
 */
typedef struct tarn_value_binding {
  const char *name, *text;
} tarn_value_binding;

/* Reads "NAME=VALUE"; raises TARN_USAGE. The result lives in the arena. */
TARN_API tarn_value_binding tarn_value_binding_parse(tarn_ctx *cx, const char *text);
TARN_API bool
tarn_value_binding_file(const tarn_value_binding *b); /* is VALUE a file (.npy, .pb)? */

/* Shapes of inputs, and inputs whose value is known now (a shape, an axis, a switch), as tensors or
 * as text: those become constants and are no longer inputs of the program. */
typedef struct tarn_model_options {
  uint32_t nshape;
  const tarn_shape_binding *shape;
  uint32_t nvalue;
  const tarn_binding *value;
  uint32_t nset;
  const tarn_value_binding *set;
  uint32_t nlast; /* "NAME=last": of the output NAME the last row, along the dim before the last;
                     "last": of each output of three dims */
  const char *const *last;
  const char *def;   /* of a file of comprehensions: which one; NULL: the only one */
  bool allow_copies; /* a statement of one may read what it writes, as it was before */
} tarn_model_options;

/* An ONNX node that became an `opaque` term. */
typedef struct tarn_opaque_use {
  const char *node, *op;
} tarn_opaque_use;

/* Filled by a successful load; strings live in the arena. */
typedef struct tarn_model_report {
  const char *format;        /* "onnx", "tarn", "term", "tc" */
  const char *producer;      /* "" when not given */
  int64_t ir_version, opset; /* opset of the default domain; 0 outside ONNX */
  uint32_t nnode;            /* nodes of the file; statements of a comprehension */
  uint32_t nfolded; /* of them: computed while importing, because a shape depended on them */
  uint32_t nopaque;
  const tarn_opaque_use *opaque; /* in the order of the graph */
} tarn_model_report;

/* Loads by the name's ending: .onnx, .tc (comprehensions), .tarn (a program; its constants lie
 * beside it), .term (one term; the program's output is `out`, its inputs are those of the term in
 * order of name); any other ending is tried as ONNX. options and report may be NULL.  Raises
 * TARN_BAD_INPUT, TARN_IO, TARN_MEMORY; a dynamic dim without a binding is TARN_BAD_INPUT and the
 * message names the input, the dim and the option that binds it. */
TARN_API tarn_program *tarn_model_load(tarn_lang *L, const char *path,
                                       const tarn_model_options *options,
                                       tarn_model_report *report);

/* A file that is loaded several times, with other options each time: it is read once. Raises as
 * tarn_model_load(). text: NULL, or that of a comprehension, of n bytes; `path` is its name then.
 */
typedef struct tarn_source tarn_source;
TARN_API tarn_source *tarn_source_open(tarn_ctx *cx, const char *path, const char *text, size_t n);
/* An ONNX ModelProto in memory, which names no other file; it may be freed then. */
TARN_API tarn_source *tarn_source_onnx(tarn_ctx *cx, const void *bytes, size_t n, const char *name);
TARN_API tarn_program *tarn_source_load(tarn_lang *L, const tarn_source *s,
                                        const tarn_model_options *options,
                                        tarn_model_report *report);
/* Is NAME a tensor whose shape --shape NAME=DIMS gives? Else it may be a size. */
TARN_API bool tarn_source_has_input(const tarn_source *s, const tarn_model_options *options,
                                    const char *name);

/* ---- what a model is, before it is compiled ---- */
/* An operator, and how many nodes use it: of subgraphs and functions too, each once. Of a
 * comprehension, a program or a term: the operators of terms (domain "tarn"). */
typedef struct tarn_op_use {
  const char *domain, *name;
  uint32_t n;
} tarn_op_use;
/* What is not supported: a node, or with op "" an input, an initializer or, with node "" too, all
 * of it. */
typedef struct tarn_unsupported {
  const char *node, *op, *why;
} tarn_unsupported;
/* A dim that a compile needs a value for, by --shape NAME=N; one without a name: an axis of the
 * input, by --shape INPUT=…; rank unknown: axis TARN_NONE. */
typedef struct tarn_open_size {
  const char *name, *input;
  uint32_t axis;
  int64_t assumed; /* while nodes were judged; 0: nothing, what reads the input was not judged */
} tarn_open_size;
typedef struct tarn_declared {
  const char *name, *type; /* "f32[n,3]", as the model declares it; "": it does not */
} tarn_declared;
typedef struct tarn_inspection {
  tarn_model_report report; /* its opaque uses: of nodes that were judged */
  uint32_t nop, nin, nout, nsize, nunsupported, nunjudged;
  const tarn_op_use *op; /* the most frequent first */
  const tarn_declared *in, *out;
  const tarn_open_size *size;
  const tarn_unsupported *unsupported; /* in the order of the file */
  /* nunjudged: nodes that read what a node makes that is not supported; of them only operators
   * without a row are found */
  uint32_t nweight;
  int64_t weight_bytes; /* as they are stored */
  int64_t most_bytes;   /* of the largest value that a node makes, with the assumed sizes */
  const char *most;     /* the node; "": unknown */
} tarn_inspection;
/* Finds every fault, where tarn_source_load() raises the first. Dims without a value are assumed to
 * be 1, or another number with which less is wrong. Raises for what is no model at all. */
TARN_API const tarn_inspection *tarn_source_inspect(const tarn_source *s,
                                                    const tarn_model_options *options);

/* The operators that are known, a row each, sorted by domain and name. */
typedef enum tarn_op_support {
  TARN_OP_AS_TERMS,  /* rewritten and compiled with the rest */
  TARN_OP_REFERENCE, /* runs as a kernel of runtime/ref.h */
  TARN_OP_CONSTANT,  /* computed by the import where its inputs are constants, else refused */
  TARN_OP_REFUSED
} tarn_op_support;
typedef struct tarn_known_op {
  const char *domain, *name, *sets; /* "7 and later" */
  tarn_op_support support;
} tarn_known_op;
TARN_API uint32_t tarn_known_ops(tarn_ctx *cx, const tarn_known_op **op);

/* A text of tensor comprehensions (docs/comprehensions.md). `name` stands in messages, with line
 * and column. Extents come from options->shape: "M=128" for a size or a scalar, "A=128,32" for a
 * parameter. */
TARN_API tarn_program *tarn_comprehension(tarn_lang *L, const char *text, size_t n,
                                          const char *name, const tarn_model_options *options,
                                          tarn_model_report *report);

/* What such a text means with these options, as a text: two that differ in names, remarks and
 * spaces alone have the same. Of the file of a value that is set it holds the name. */
TARN_API const char *tarn_comprehension_key(tarn_ctx *cx, const char *text, size_t n,
                                            const char *name, const tarn_model_options *options);

/* The parameters of a definition, of the one that is called def (NULL: of the only one), and the
 * names of its results. Raises as tarn_comprehension(). */
typedef struct tarn_parameter {
  const char *name;
  tarn_dtype dtype;
  uint32_t n; /* dims; 0: a scalar */
  bool fixed; /* a scalar whose number extents, ranges or subscripts need when it is compiled */
} tarn_parameter;
typedef struct tarn_signature {
  const char *name;
  uint32_t nparam, nresult;
  const tarn_parameter *param;
  const char *const *result;
} tarn_signature;
TARN_API tarn_signature tarn_comprehension_signature(tarn_ctx *cx, const char *text, size_t n,
                                                     const char *name, const char *def);
/* An ONNX ModelProto in memory. `name` stands in messages. External data is looked up in `dir`;
 * NULL: refused. */
TARN_API tarn_program *tarn_model_load_bytes(tarn_lang *L, const void *bytes, size_t n,
                                             const char *name, const char *dir,
                                             const tarn_model_options *options,
                                             tarn_model_report *report);

/* ---------------------------------------------------------------- tensors */

/* Reads by the ending (.npy, else TensorProto). At most TARN_MAX_DIMS dims. Raises TARN_BAD_INPUT,
 * TARN_IO. */
TARN_API tarn_tensor *tarn_tensor_read(tarn_ctx *cx, const char *path);
/* As an input of type want: tarn_tensor_as(). */
TARN_API tarn_tensor *tarn_tensor_read_as(tarn_ctx *cx, const char *path, tarn_dtype want);
TARN_API void tarn_tensor_write(tarn_ctx *cx, const char *path, const tarn_tensor *t);

TARN_API tarn_tensor *tarn_tensorproto_read_bytes(tarn_ctx *cx, const void *bytes, size_t n,
                                                  const char *name);
TARN_API void tarn_tensorproto_write_bytes(tarn_buf *b, const tarn_tensor *t,
                                           const char *tensor_name);

/* ---------------------------------------------------------------- opaque operators */

/* Computes any `opaque` that an import makes, by the kernels of runtime/ref.h; for tarn_eval(). */
TARN_API tarn_opaque_fn tarn_opaque_eval;

/* ---------------------------------------------------------------- kernels written by hand */

/* Links the file of a kernel by itself into a shared object; false: *why. */
TARN_API bool tarn_written_link(tarn_ctx *cx, const tarn_written *w, const char *so,
                                const char **why);
/* Raises TARN_BAD_INPUT, with the place of the declaration, when the file or its function is not
 * there. */
TARN_API void tarn_written_verify(tarn_ctx *cx, tarn_written *w);
/* Loads the function into this process, for tarn_eval(), until the enclosing protected call ends.
 * Else w->absent says why it cannot be called here. */
TARN_API void tarn_written_load(tarn_ctx *cx, tarn_written *w);

/* Which operands are indices or lengths, and how far they go; for tarn_input_domains(). Integers of
 * an operator that it does not know are 0 or 1. */
TARN_API tarn_opaque_index_fn tarn_opaque_index;

#ifdef __cplusplus
}
#endif
#endif
