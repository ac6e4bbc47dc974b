/* model/: what the importer's files share.
 *
 * A node of an ONNX graph is handled by one function found in the table model/ops.def.  The handler
 * reads its inputs (im_arg, im_ints …) and attributes (im_attr_…), builds terms of type
 * ((dims),()), and sets its outputs (im_set). It may raise at any point: the caller puts the file's
 * and the node's name before the message.
 */
#ifndef TARN_MODEL_IMPORT_H
#define TARN_MODEL_IMPORT_H
#include "model/model.h"
#include "onnx.pb-c.h"

/* Largest tensor that the importer itself makes or computes (elements), and the elements it may
 * compute in all. */
#define IM_MAX_MADE   ((int64_t)1 << 22)
#define IM_MAX_WORK   ((int64_t)1 << 28)
#define IM_MAX_NODES  1000000u /* nodes run, calls of functions expanded */
#define IM_MAX_CALLS  32u      /* depth of functions and subgraphs */
#define IM_MAX_EXTENT ((int64_t)1 << 40)

/* A value of the graph. */
typedef struct im_val {
  tarn_term t;              /* type ((dims),()); TARN_NONE while undefined */
  const tarn_tensor *known; /* its value, when it has been computed */
  bool fixed;               /* depends on no input of the program */
  int32_t stored;           /* ONNX's number of its type if that is only stored, else 0: stored.c */
  const struct im_list *list; /* no tensor, but these: sequence.c; NULL: a tensor */
} im_val;
typedef struct im_list {
  uint32_t n;
  bool optional; /* an optional value that is not there */
  im_val *v;
} im_list;
/* In a scope: an input of a function that the call leaves out; while a model is inspected, what a
 * node makes that is not supported, or that reads such a value. */
#define IM_ABSENT  (TARN_NONE - 1)
#define IM_UNKNOWN (TARN_NONE - 2)

typedef struct im_function im_function;       /* function.c */
typedef struct im_safetensors im_safetensors; /* safetensors.c */
typedef struct im_inspect im_inspect;         /* inspect.c */

/* Names of one graph or function body. */
typedef struct im_scope {
  struct im_scope *parent; /* a subgraph sees its parent's values; a function sees nothing */
  const struct im_node *caller;
  const im_function *function; /* whose body it is; NULL: a graph's */
  tarn_intern *names;
  TARN_VEC(im_val) val; /* by name id */
  const Onnx__OperatorSetIdProto *const *opset;
  size_t nopset;
  uint32_t depth;
  tarn_term when; /* a bool of the run: what its nodes make counts only then; TARN_NONE: always */
} im_scope;

typedef struct im {
  tarn_ctx *cx;
  tarn_lang *L;
  const char *file, *dir;
  const char *format; /* for the report */
  const Onnx__ModelProto *model;
  im_function *function;       /* by number in the model */
  const im_scope *top;         /* of the model's graph */
  im_safetensors *safetensors; /* whose heads were read */
  const tarn_model_options *options;
  im_inspect *inspect; /* faults are noted there, and the import goes on; NULL: the first ends it */
  int64_t work;        /* elements computed while importing */
  uint32_t nrun;       /* nodes run */
  uint32_t nfolded;
  TARN_VEC(tarn_opaque_use) opaque;
  TARN_VEC(tarn_origin) origin;
} im;

typedef struct im_node {
  im *m;
  tarn_ctx *cx;
  tarn_lang *L;
  im_scope *scope;
  const Onnx__NodeProto *p;
  const char *name, *op;
  int64_t version; /* opset of the operator's domain */
  uint32_t nin, nout;
  im_val **in; /* NULL: absent */
  im_val *out;
  bool inner;   /* its outputs are a subgraph's */
  bool unknown; /* it reads a value that is: IM_UNKNOWN */
  uint8_t *attr_used;
  tarn_dtype *given; /* the inputs' types before 16-bit floats were widened: see graph.c */
  tarn_dtype narrow; /* what widened results are rounded to; TARN_DTYPES: they are not */
  uint64_t own;      /* outputs of a type of their own, a bit each */
} im_node;

typedef void im_handler(im_node *n);
/* im_do_HANDLER, of each row of the table. */
#define ONNX(name, lo, hi, handler, ...) im_handler im_do_##handler;
#define MICROSOFT(name, handler, ...)    im_handler im_do_##handler;
#define GGML(name, handler, ...)         im_handler im_do_##handler;
#include "model/ops.def"
#undef ONNX
enum { IM_PLAIN = 1, IM_STORED = 2, IM_MOVES = 4 };
typedef struct im_op {
  const char *domain, *name;
  int lo, hi;
  im_handler *run;
  int min_in, max_in;
  uint8_t floats; /* of ops.def */
} im_op;
/* The row of that name whose range of operator sets holds version; NULL when none. */
const im_op *im_op_find(const char *domain, const char *name, int64_t version);
/* The last operator set of a domain whose operators are known: one that a later set changes would
 * be taken as it was. */
int64_t im_newest_set(const char *domain);
/* Is it known, but not supported? */
bool im_op_is_refused(const im_op *row);
/* The sets that some row of that name holds for, in words; NULL when none has it. */
const char *im_op_sets(tarn_ctx *cx, const char *domain, const char *name);

_Noreturn void im_bad(const im_node *n, const char *fmt, ...) TARN_PRINTF(2, 3);

/* ---- inspect.c: noting what is not supported ---- */
/* Before nodes run: counts and numbers them all, and notes those without a row. */
void im_walk(im *m, im_scope *top);
/* Of node p, or of an input or initializer (NULL), which `node` names. Once for each node. */
void im_note_fault(im *m, const Onnx__NodeProto *p, const char *node, const char *op,
                   const char *why);
void im_note_unjudged(im *m, const Onnx__NodeProto *p);
/* What a dim without a value is taken for: `name`, or if that is "" this axis of the input. -1: not
 * inspected. */
int64_t im_assumed(im *m, const char *name, const char *input, uint32_t axis);
/* The input has not even a number of dims. */
void im_note_shapeless(im *m, const char *input);
/* Runs it; what it raises is noted as a fault of that name. True: it did not raise. */
bool im_tried(im *m, const char *name, tarn_fn *run, void *arg);

/* ---- graph.c: graphs, functions and subgraphs ---- */
int64_t im_version(const im *m, const im_scope *s, const Onnx__NodeProto *p);
const im_op *im_operator(im_node *n); /* its row; raises where there is none */
const char *im_domain(const char *d); /* "" for ONNX's own, however it is written */
tarn_program *im_run(im *m, tarn_model_report *report);
/* Its outputs become n's; they count only when that bool of the run holds (TARN_NONE: always). */
void im_run_subgraph(im_node *n, const Onnx__GraphProto *g, tarn_term when);
/* Its inputs are given by position; returns the values of its outputs. */
im_val *im_run_body(im_node *n, const Onnx__GraphProto *g, const im_val *in, size_t nin);
bool im_declared_type(const Onnx__ValueInfoProto *v, tarn_dtype *t, uint32_t *rank,
                      int64_t *dim); /* false unless type and shape are given as numbers */
im_scope *im_enter(const im_node *caller,
                   im_scope *parent); /* names of a body; raises when nested too deeply */
im_val *im_define(im *m, im_scope *s, const char *name);
void im_run_nodes(im *m, im_scope *s, Onnx__NodeProto *const *node, size_t count);
void im_take_results(im_node *n, im_scope *s, char *const *name, size_t count);

/* ---- formats.c ---- */
/* Raises where the first bytes say what else it is; they may be an ONNX file's otherwise. */
void im_refuse_format(tarn_ctx *cx, const void *bytes, size_t n, const char *name);

/* ---- load.c: what a file was ---- */
struct tarn_source {
  tarn_ctx *cx;
  const char *path;
  const Onnx__ModelProto *onnx; /* NULL: it is none */
  const char *format;           /* of the file that it was */
  const char *dir;              /* of its external data; NULL: refused */
  const char *text;             /* of a comprehension; NULL: it is none */
  size_t n;
};

/* ---- inputs.c ---- */
bool im_is_initialised(const Onnx__GraphProto *g, const Onnx__ValueInfoProto *v);
void im_check_bindings(im *m, const Onnx__GraphProto *g); /* --shape: raises for unknown names */
void im_load_initializers(im *m, im_scope *s, const Onnx__GraphProto *g);
/* Inputs that no initializer defines, and no value that was given. */
void im_declare_inputs(im *m, im_scope *s, const Onnx__GraphProto *g, tarn_program *p);
/* A value without elements is known: nothing after the import meets an extent of 0 but in
 * constants. */
void im_settle_empty(im *m, im_val *v);
/* f32[N,3] as a model declares it. */
const char *im_declared_text(im *m, const Onnx__TypeProto__Tensor *t);

/* What another operator makes of these inputs (TARN_NONE: absent) with n's attributes: its outputs.
 */
const im_val *im_apply(im_node *n, const char *op, int64_t version, const tarn_term *in,
                       uint32_t nin);

/* ---- order.c ---- */
const char *im_node_name(im *m, const Onnx__NodeProto *p,
                         size_t index); /* or what it makes, or its number */
uint32_t *im_order(im *m, Onnx__NodeProto *const *node,
                   size_t n); /* numbers of nodes; raises for a cycle */

/* ---- set.c ---- */
/* The value given as text for an input of this type; n, dim: its shape, NULL: unknown; a dim below
 * 0: unknown. Raises. */
const tarn_tensor *im_set_value(tarn_ctx *cx, const tarn_value_binding *b, tarn_dtype type,
                                const uint32_t *n, const int64_t *dim);
void im_set_inputs(tarn_program *p, const char *file,
                   const tarn_model_options *o); /* of a program that is read */
/* The outputs of p as options->last says. Raises TARN_USAGE, TARN_BAD_INPUT. */
void im_last_rows(tarn_program *p, const char *file, const tarn_model_options *options);
void im_refuse_twice(tarn_ctx *cx, const char *file,
                     const tarn_model_options *o); /* --set of one name */
_Noreturn void im_no_input(tarn_ctx *cx, const char *file, const tarn_value_binding *b);

/* ---- function.c ---- */
void im_functions(im *m); /* reads what calls need of them */
const im_function *
im_find_function(const im_node *n); /* that n calls, or NULL; raises for an unknown overload */
void im_call_function(im_node *n, const im_function *f);
const im_scope *im_function_scope(const im_scope *s); /* of the function that s lies in, or NULL */
const char *im_function_name(tarn_ctx *cx, const im_scope *s);
const Onnx__AttributeProto *im_function_default(const im_function *f,
                                                const char *name); /* NULL: none */

/* ---- wire.c ---- */
/* Unpacks a message after checking depth, message count and repetition. Lives in the arena. Raises.
 */
ProtobufCMessage *im_unpack(tarn_ctx *cx, const ProtobufCMessageDescriptor *d, const void *p,
                            size_t n, const char *name);

/* ---- stored.c: types that are only stored, in a carrier of bytes ---- */
bool im_stored_dtype(int32_t onnx, tarn_dtype *carrier); /* false: no such type */
const char *im_stored_name(int32_t onnx);                /* NULL: no such type */
bool im_stored_is_integer(int32_t onnx);
void im_stored_range(int32_t onnx, double *lo, double *hi); /* of an integer type */
size_t im_stored_bytes(int32_t onnx, size_t count);
void *im_stored_unpack(tarn_ctx *cx, int32_t onnx, const void *packed, size_t count);
tarn_term im_stored_read(im_node *n, tarn_term t, int32_t onnx); /* as numbers */
tarn_term im_stored_write(im_node *n, tarn_term t, int32_t onnx, bool saturate);
void im_stored_check(im_node *n,
                     const im_op *op); /* raises when the operator does not take such inputs */
void im_stored_hand_on(im_node *n, const im_op *op); /* what moves elements keeps their type */

/* ---- control.c ---- */
/* Both are tensors of one type and shape. */
bool im_same_kind(const im_node *n, const im_val *a, const im_val *b);

/* ---- sequence.c ---- */
void im_list_check(im_node *n); /* raises when the operator does not take lists */

/* ---- tensorproto.c ---- */
bool im_dtype(int32_t onnx, tarn_dtype *t);                    /* of what is computed with */
bool im_carrier(int32_t onnx, tarn_dtype *t, int32_t *stored); /* or stored */
int32_t im_onnx_dtype(tarn_dtype t);
const char *im_onnx_dtype_name(int32_t onnx);
/* `what` stands in messages. dir: where external data may lie; NULL: refused. May keep pointers
 * into t. */
tarn_tensor *im_tensor(tarn_ctx *cx, const Onnx__TensorProto *t, const char *dir, const char *what);
/* Bytes of a file in the folder dir, aligned to 64; length below 0: to its end. Raises. */
void *im_external(tarn_ctx *cx, const char *dir, const char *location, int64_t offset,
                  int64_t length, size_t *n, const char *what);
/* safetensors.c: says where the initializer's bytes are, if they lie in such a file by name. */
void im_find_safetensors(im *m, Onnx__TensorProto *t, const char *what);
/* A sparse one as a dense one; *stored: as in im_val.  sparse.c */
tarn_tensor *im_sparse(tarn_ctx *cx, const Onnx__SparseTensorProto *t, const char *dir,
                       const char *what, int32_t *stored);
/* The tensor as a message, which points to its data. */
Onnx__TensorProto *im_tensor_proto(tarn_ctx *cx, const tarn_tensor *t, const char *name);
void im_pack(tarn_buf *b, const ProtobufCMessage *m);

/* ---- attr.c: attributes; each look-up marks the attribute as understood ---- */
const Onnx__AttributeProto *im_attr(im_node *n, const char *name); /* NULL when absent */
int64_t im_attr_int(im_node *n, const char *name, int64_t otherwise);
double im_attr_real(im_node *n, const char *name, double otherwise);
const char *im_attr_str(im_node *n, const char *name, const char *otherwise);
const int64_t *im_attr_ints(im_node *n, const char *name,
                            uint32_t *count); /* NULL and 0 when absent */
/* count integers from least to most, all `otherwise` when the attribute is absent; raises */
void im_attr_list(im_node *n, const char *name, int64_t *to, uint32_t count, int64_t otherwise,
                  int64_t least, int64_t most);
bool im_attr_is(im_node *n, const char *name, const char *text, const char *otherwise);
void im_attr_ignore(im_node *n, const char *name);
void im_attr_finish(im_node *n); /* raises when some attribute was never looked up */

/* ---- known.c: values that decide shapes ---- */
const tarn_tensor *im_known(im_node *n, im_val *v, const char *what); /* raises unless v is fixed */
bool im_is_known(im_node *n, uint32_t i); /* input i is there and fixed */
bool im_all_known(const im_node *n);      /* all inputs that are there are */
/* Input i as a list of integers (rank 0 or 1); raises unless it is fixed. */
const int64_t *im_ints(im_node *n, uint32_t i, const char *what, uint32_t *count);
/* Input i is one element: as it is; as an integer, which it must be; as a double, which may round a
 * large integer. */
typedef struct im_number {
  tarn_dtype t;
  tarn_value v;
} im_number;
im_number im_one(im_node *n, uint32_t i, const char *what);
int64_t im_int(im_node *n, uint32_t i, const char *what);
double im_real(im_node *n, uint32_t i, const char *what);
uint32_t im_number_fx(im_node *n, im_number x); /* as a scalar constant */
void im_fold(im_node *n); /* small integer outputs of fixed nodes become constants */
bool im_is_finite(im_node *n, tarn_term t); /* seen easily: no element is infinite or NaN */

/* ---- build.c: terms ---- */
typedef struct im_dims {
  uint32_t n;
  int64_t d[TARN_MAX_DIMS];
} im_dims;
tarn_term im_arg(im_node *n, uint32_t i);          /* raises when absent */
tarn_term im_opt(im_node *n, uint32_t i);          /* TARN_NONE when absent */
void im_alike(im_node *n, uint32_t i, uint32_t j); /* raises unless both inputs, where they are
                                                      there, have one type */
void im_set(im_node *n, uint32_t k, tarn_term t);
void im_set_as(im_node *n, uint32_t k, tarn_term t,
               tarn_dtype type); /* whatever type the others are rounded to */
void im_set_tensor(im_node *n, uint32_t k, const tarn_tensor *t);
im_dims im_shape(const im_node *n, tarn_term t);
tarn_dtype im_type(const im_node *n, tarn_term t);
int64_t im_count(const im_dims *d);
uint32_t im_axis(const im_node *n, int64_t axis, uint32_t rank); /* negative from the end; raises */
tarn_tensor *im_new(const im_node *n, tarn_dtype t, uint32_t rank,
                    const int64_t *dim); /* limited by IM_MAX_MADE */
tarn_term im_const(im_node *n, const tarn_tensor *t);
tarn_term im_iota(im_node *n, tarn_dtype t, int64_t count);
tarn_term im_scalar(im_node *n, tarn_dtype t, double r, int64_t i);
uint32_t im_fxc(const im_node *n, tarn_dtype t, double v); /* scalar constant of either kind */
/* 0, 1, … along an axis, the other dims 1. */
tarn_term im_steps(im_node *n, uint32_t axis, uint32_t rank, int64_t extent);
tarn_term im_reshape(im_node *n, tarn_term t, uint32_t rank, const int64_t *dim);
tarn_term im_permute(im_node *n, tarn_term t, const uint32_t *p);   /* the identity vanishes */
tarn_term im_broadcast(im_node *n, tarn_term t, const im_dims *to); /* numpy's rule, one way */
tarn_term im_fill(im_node *n, tarn_term scalar, uint32_t rank, const int64_t *dim);
tarn_term im_pad(im_node *n, tarn_term t, uint32_t axis, double value, int64_t before,
                 int64_t after); /* <0 slices */
tarn_term im_pad_fx(im_node *n, tarn_term t, uint32_t axis, uint32_t value, int64_t before,
                    int64_t after);
tarn_term im_cut(im_node *n, tarn_term t, uint32_t axis, int64_t lo, int64_t hi, int64_t step);
tarn_term im_pick(im_node *n, tarn_term t, uint32_t axis, int64_t i); /* the axis vanishes */
tarn_term im_concat(im_node *n, uint32_t axis, const tarn_term *t, uint32_t k);
tarn_term im_stack(im_node *n, uint32_t axis, const tarn_term *t, uint32_t k); /* a new axis */
tarn_term im_drop(im_node *n, tarn_term t, uint32_t axis);                     /* of extent 1 */
tarn_term im_cast(im_node *n, tarn_term t, tarn_dtype to);
/* What every later step reads is computed once: otherwise the expressions of all steps would be
 * tried inside one another. */
tarn_term im_settled(im_node *n, tarn_term t);
double im_lowest(tarn_dtype t); /* -inf, or the least integer */
/* Elementwise, numpy broadcasting; constants of one element move into the expression. */
tarn_term im_map(im_node *n, uint32_t fx, const tarn_term *t, uint32_t k);

/* A formula: s-expression over $0 $1 …, numbers, parameters by name and the operators of fx.def,
 * and gt ge ne neither; (cast f32 x), (cast T x). Bare numbers and parameters have dtype `t`, which
 * `T` names. */
typedef struct im_param {
  const char *name;
  double r;
  int64_t i;
} im_param;
uint32_t im_formula(const im_node *n, const char *text, tarn_dtype t, const im_param *param,
                    uint32_t nparam);
/* Is there an elementwise ONNX operator of that name, in whatever case? Its formula, attributes at
 * their defaults, in numbers of type t; *wide: 16-bit floats are widened for it. */
bool im_is_elementary(const char *name);
uint32_t im_elementary(tarn_lang *L, const char *name, tarn_dtype t, uint32_t *inputs, bool *wide);
/* Of an elementwise ONNX operator, or another function that recurrent and fused operators may end
 * with, in whatever case: its formula of $0, and its parameters at their defaults. */
typedef struct im_activation {
  const char *text;
  im_param p[3];
  uint32_t np;
} im_activation;
bool im_activation_find(const char *name, im_activation *a);
/* A formula mapped over k ≤ 6 operands (broadcast). dtype of its numbers: of the first operand. */
tarn_term im_el(im_node *n, const char *text, uint32_t k, ...);
tarn_term im_elp(im_node *n, const char *text, const im_param *param, uint32_t nparam, uint32_t k,
                 ...);

/* Reduces the axes in mask (bit i = axis i). body: fx of one hole, TARN_NONE for the element
 * itself. */
tarn_term im_reduce(im_node *n, tarn_term t, uint32_t mask, uint32_t body, tarn_red_kind kind,
                    bool keep);
tarn_term im_reduce_with(im_node *n, tarn_term t, uint32_t mask, uint32_t fn, bool keep);
/* The position of the largest or least element among those of the axes, counted row by row. */
tarn_term im_arg_extreme(im_node *n, tarn_term t, uint32_t mask, bool max, bool last,
                         bool keep); /* reduce.c */
tarn_term im_mean(im_node *n, tarn_term t, uint32_t mask, bool keep);

/* Sum of products: A and B with a label per dim (labels within one operand differ), result in the
 * order of `out`. Labels in both operands are summed unless they are in out, which makes them
 * shared dims of a cartProd. */
tarn_term im_contract(im_node *n, tarn_term a, const uint8_t *la, tarn_term b, const uint8_t *lb,
                      const uint8_t *lo, uint32_t nlo);

/* Keeps the node as an opaque term; attributes that are numbers, number lists or strings go along.
 */
void im_opaque(im_node *n, const uint32_t *out_type, uint32_t nout);

/* Every element of an axis `each` times, the first `count` of them. */
tarn_term im_repeat(im_node *n, tarn_term t, uint32_t axis, int64_t each, int64_t count);
tarn_term im_softmax(im_node *n, tarn_term x, uint32_t mask); /* norm.c */
/* x over the root of its mean square along the axes, times the scale (norm.c). */
tarn_term im_rms_norm(im_node *n, tarn_term x, uint32_t axes, double epsilon, tarn_term scale);
/* An index out of range is an error of the run, except where the node's results do not count. */
tarn_term im_gather(im_node *n, tarn_term t, uint32_t axis, tarn_term index); /* slice.c */
/* An index that is 0 where the node's results do not count. */
tarn_term im_index_that_counts(im_node *n, tarn_term index);

/* ---- sample.c ---- */
tarn_term im_rows_of_channels(im_node *n, tarn_term x); /* (N,C,D…) -> (N·D…, C) */
tarn_term im_over_channels(im_node *n, tarn_term t);    /* a further axis of extent 1 */

/* ---- gather.c: indices that do not count from the end; one out of range is an error of the run */
tarn_term im_rows(im_node *n, tarn_term x, tarn_term index);
/* The element of each line along the axis: index has x's other dims. */
tarn_term im_along(im_node *n, tarn_term x, uint32_t axis, tarn_term index);
/* What is made for the axis among the first `count` whose number the run has; all must have one
 * shape. */
tarn_term im_by_axis(im_node *n, tarn_term number, uint32_t count,
                     tarn_term (*make)(im_node *n, uint32_t axis));
/* An index or a length in i64, as it is, of which the run is refused unless least <= it <= most. */
tarn_term im_within(im_node *n, tarn_term index, int64_t least, int64_t most);

/* ---- quant.c ---- */
/* A quantised operand as numbers: (x - zero) · scale; zero may be TARN_NONE. */
tarn_term im_dequantised(im_node *n, tarn_term x, tarn_term scale, tarn_term zero);
/* saturate(round(x / scale) + zero), in the type of zero, or without one in type t. */
tarn_term im_quantised(im_node *n, tarn_term x, tarn_term scale, tarn_term zero, tarn_dtype t);
/* The product of matrices of bytes in i32, zero points taken away first. */
tarn_term im_byte_product(im_node *n, tarn_term a, tarn_term za, tarn_term b, tarn_term zb);

/* ---- quantised.c ---- */
/* (…,bytes) -> (…,count): numbers of `bits` in bytes. Each run of so many bytes, which divides
 * them, holds the low bits of all of its numbers first, one in each byte, then the next bits. */
tarn_term im_unpacked(im_node *n, tarn_term t, int64_t bits, int64_t run, int64_t count);

/* ---- recurrent operators: gather.c, opaque.c ---- */
tarn_term im_reversed(im_node *n, tarn_term x, tarn_term length, uint32_t time);
int64_t im_recurrent_check(im_node *n, int64_t gates);

/* ---- conv.c, used by pool.c and quant.c too ---- */
typedef struct im_window {
  uint32_t r;                                                   /* spatial rank */
  int64_t k[TARN_MAX_DIMS], s[TARN_MAX_DIMS], d[TARN_MAX_DIMS]; /* kernel, stride, dilation */
  int64_t b[TARN_MAX_DIMS], a[TARN_MAX_DIMS];                   /* padding before and after */
  int64_t out[TARN_MAX_DIMS];
} im_window;
/* kernel NULL: from the attribute kernel_shape. Reads strides, dilations, pads, auto_pad. */
/* Of dim i: elements from the first to the last that a window reads. */
static inline int64_t im_reach(const im_window *w, uint32_t i) {
  return (w->k[i] - 1) * w->d[i] + 1;
}
void im_window_read(im_node *n, im_window *w, const im_dims *x, const int64_t *kernel,
                    bool ceil_mode);
/* x (N,C,D…), w (O,C/G,K…) -> (N,O,P…) */
tarn_term im_conv(im_node *n, tarn_term x, tarn_term w, int64_t group, const im_window *win);
tarn_term im_channel(im_node *n, tarn_term v,
                     uint32_t rank); /* (C) -> (C,1,1…) for broadcasting over N,C,D… */
/* Gathers along an axis by known indices: a slice or a view where they follow a rule. */
tarn_term im_take(im_node *n, tarn_term t, uint32_t axis, const int64_t *index, int64_t count);

#endif
