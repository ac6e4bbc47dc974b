/* model/gguf: a language model in one GGUF file, as a model of ONNX in memory.
 *
 * file.c reads the container, blocks.c its tensors of a few bits an element; text.c runs the text
 * of an architecture (NAME.arch), which says what is computed with them, and graph.c makes the
 * nodes.  Source of the format: the specification "GGUF" of ggml, versions 2 and 3. */
#ifndef TARN_MODEL_GGUF_H
#define TARN_MODEL_GGUF_H
#include "model/onnx.h"

enum { GGUF_MAX_DIMS = 4, GGUF_FIELDS = 6 };

/* ---- blocks.c: types of elements ---- */
typedef enum gguf_role { NO_FIELD, BITS, HIGH, SCALE, SCALES, LEAST, LEASTS, GGUF_ROLES } gguf_role;
/* What lies in a block. Numbers of a few bits: each run of so many bytes holds the low bits of all
 * of them first. */
typedef struct gguf_field {
  gguf_role role;
  tarn_dtype dtype;
  uint16_t at, bytes;
  uint8_t bits, run; /* of numbers that are smaller than a byte; else 0 */
} gguf_field;
typedef struct gguf_type {
  const char *name;
  uint32_t code;                 /* ggml's number of it */
  uint32_t elements, bytes;      /* of a block; elements 0: known by name alone */
  tarn_dtype dtype;              /* of elements that are no blocks */
  gguf_field field[GGUF_FIELDS]; /* none: elements of that type */
} gguf_type;
const gguf_type *gguf_type_find(uint32_t code); /* NULL: none */

/* ---- file.c ---- */
typedef struct gguf_key {
  const char *name;
  uint32_t type; /* of the value, or of an array's items */
  bool array;
  uint64_t count;    /* of items */
  const uint8_t *at; /* the value or the items, in the file */
} gguf_key;
typedef struct gguf_tensor {
  const char *name;
  uint32_t n;
  int64_t dim[GGUF_MAX_DIMS]; /* the outermost first */
  const gguf_type *type;
  const uint8_t *data; /* in the file */
} gguf_tensor;
typedef struct gguf_file {
  tarn_ctx *cx;
  const char *name; /* as messages show it */
  const uint8_t *bytes, *end;
  uint32_t nkey, ntensor;
  gguf_key *key;
  gguf_tensor *tensor;
  tarn_intern *keys, *tensors; /* numbers by name */
} gguf_file;

/* Does it begin as such a file does? */
bool gguf_is(const void *bytes, size_t n);
/* What is returned points into the bytes. Raises. */
gguf_file *gguf_read(tarn_ctx *cx, const void *bytes, size_t n, const char *name);
const gguf_key *gguf_key_find(const gguf_file *f, const char *name);       /* NULL: none */
const gguf_tensor *gguf_tensor_find(const gguf_file *f, const char *name); /* NULL: none */
bool gguf_is_text(const gguf_key *k);
bool gguf_is_real(const gguf_key *k);
/* Item i < count: false where it is no number of 63 bits and a sign. */
bool gguf_whole(const gguf_key *k, uint64_t i, int64_t *v);
double gguf_real(const gguf_key *k, uint64_t i);
const char *gguf_text(const gguf_file *f, const gguf_key *k); /* "": it is no text */
uint64_t gguf_blocks(const gguf_tensor *t);

/* ---- blocks.c: tensors ---- */
/* One field of all blocks: (dims but the last…, blocks, bytes of it). */
tarn_tensor *gguf_part(tarn_ctx *cx, const gguf_tensor *t, const gguf_field *field);
/* A tensor without blocks. */
tarn_tensor *gguf_plain(tarn_ctx *cx, const gguf_tensor *t);

/* ---- graph.c: a graph that grows ---- */
typedef enum gg_kind { GG_ABSENT, GG_WHOLE, GG_REAL, GG_TEXT, GG_LIST, GG_TENSOR } gg_kind;
typedef struct gg_value {
  gg_kind kind;
  int64_t i;
  double r;         /* of numbers of both kinds */
  const char *text; /* TEXT; TENSOR: its name in the graph */
  uint32_t n;
  const struct gg_value *item; /* LIST */
} gg_value;
typedef struct gg_graph gg_graph;
gg_graph *gg_new(const gguf_file *f);
gg_value gg_weight(gg_graph *g, const gguf_tensor *t);
/* Rows of it, whose numbers are given. */
gg_value gg_rows(gg_graph *g, const gguf_tensor *t, gg_value index);
typedef struct gg_attribute {
  const char *name;
  gg_value value;
} gg_attribute;
/* One output, or a list of several. op: NAME or DOMAIN:NAME. */
gg_value gg_node(gg_graph *g, const char *op, const char *name, const gg_value *in, uint32_t nin,
                 const gg_attribute *attribute, uint32_t nattribute, uint32_t nout);
/* dim: numbers and names. False: there is one of that name. */
bool gg_input(gg_graph *g, const char *name, int32_t type, const gg_value *dim, uint32_t n);
/* Outputs that are not first come behind those that are. */
void gg_output(gg_graph *g, const char *name, gg_value v, bool first);
/* Raises where a tensor of the file was not used. */
Onnx__ModelProto *gg_finish(gg_graph *g, const char *architecture);

/* ---- text.c ---- */
/* The model that the file's architecture makes of it; it holds what it needs of the bytes. dir:
 * where the texts of further architectures may lie; NULL: nowhere. Raises. */
Onnx__ModelProto *gguf_model(tarn_ctx *cx, const void *bytes, size_t n, const char *name,
                             const char *dir);

#endif
