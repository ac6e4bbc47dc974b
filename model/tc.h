/* Tensor comprehensions: what the files that import them share.
 *
 * A file holds definitions. tc_read.c makes trees of the text; tc_bind.c gives each symbolic extent
 * and each scalar of a subscript its number; tc_range.c finds the ranges of a statement's indices;
 * tc_value.c makes the scalar expression and the views that it reads; tc.c makes a term of each
 * statement, and a program of the definition.  Nothing behind a term knows where it came from.
 *
 * A statement is a function of whole tensors: its right side is read before its left side is
 * written, so that the left name stands for another term afterwards.
 *
 * Source: Vasilache et al., "Tensor Comprehensions: framework-agnostic high-performance machine
 * learning abstractions", arXiv:1802.04730, sections 2 and 3. */
#ifndef TARN_MODEL_TC_H
#define TARN_MODEL_TC_H
#include "model/import.h"

/* ---- text ---- */
typedef struct tc_at {
  uint32_t line, col;
} tc_at;

typedef enum tc_kind {
  TC_INT,
  TC_REAL,
  TC_NAME,
  TC_EXTENT, /* A.0 */
  TC_APPLY,  /* a read or a call: NAME(kids) */
  TC_OP
} tc_kind;

/* X(ID, text, precedence): two operands, of the same precedence from left to right. */
#define TC_BINARY(X)                                                                               \
  X(OR, "||", 1)                                                                                   \
  X(AND, "&&", 2)                                                                                  \
  X(EQ, "==", 3)                                                                                   \
  X(NE, "!=", 3)                                                                                   \
  X(LE, "<=", 4)                                                                                   \
  X(GE, ">=", 4)                                                                                   \
  X(LT, "<", 4)                                                                                    \
  X(GT, ">", 4)                                                                                    \
  X(ADD, "+", 5)                                                                                   \
  X(SUB, "-", 5)                                                                                   \
  X(MUL, "*", 6)                                                                                   \
  X(DIV, "/", 6)                                                                                   \
  X(MOD, "%", 6)
typedef enum tc_op {
#define TC_ID(ID, text, precedence) TC_##ID,
  TC_BINARY(TC_ID)
#undef TC_ID
      TC_NEG,
  TC_NOT,
  TC_CHOOSE, /* c ? a : b */
  TC_OPS
} tc_op;

typedef struct tc_expr {
  tc_kind kind;
  tc_op op;
  tc_at at;
  const char *name; /* NAME, EXTENT, APPLY */
  int64_t i;        /* INT, EXTENT: the dim */
  double r;         /* INT, REAL */
  uint32_t n;
  struct tc_expr *const *kid;
} tc_expr;

typedef struct tc_where {
  const char *name; /* NAME in lo:hi; NULL: exists lo */
  tc_at at;
  const tc_expr *lo, *hi;
} tc_where;

typedef struct tc_name {
  const char *name;
  tc_at at;
} tc_name;

typedef enum tc_assign { TC_SET, TC_SUM, TC_LESS, TC_PROD, TC_MAX, TC_MIN } tc_assign;

typedef struct tc_stmt {
  tc_name left;
  uint32_t nindex, nwhere;
  const tc_name *index;
  tc_assign how;
  bool fresh; /* with !: begins with the identity */
  tc_at how_at;
  const tc_expr *value;
  const tc_where *where;
} tc_stmt;

typedef struct tc_param {
  tc_name of;
  tarn_dtype type;
  uint32_t n;
  const tc_expr *const *extent;
} tc_param;

typedef struct tc_def {
  tc_name of;
  uint32_t nparam, nresult, nstmt;
  const tc_param *param;
  const tc_name *result;
  const tc_stmt *stmt;
} tc_def;

/* A file of definitions. */
typedef struct tc_text {
  tarn_ctx *cx;
  const char *file;
  uint32_t n;
  const tc_def *def;
} tc_text;
tc_text *tc_read(tarn_ctx *cx, const char *text, size_t n, const char *file);
/* The definition of that name, NULL: the only one. Raises. */
const tc_def *tc_chosen(const tc_text *t, const char *name);
/* Raises "FILE:LINE:COL: …". */
_Noreturn void tc_bad(const tc_text *t, tc_at at, const char *fmt, ...) TARN_PRINTF(3, 4);
const char *tc_op_text(tc_op op);
bool tc_type_named(const char *name, tarn_dtype *t); /* float, half, int … and those of terms */

/* ---- names while a definition is imported ---- */
typedef enum tc_what { TC_SIZE, TC_SCALAR, TC_TENSOR } tc_what;
typedef struct tc_var {
  tc_what what;
  const char *name;
  bool known;    /* SIZE; SCALAR: its number is */
  int64_t value; /* of a SIZE, or of a SCALAR that is whole */
  tarn_term t;   /* SCALAR, TENSOR: what it is by now; SIZE: TARN_NONE */
} tc_var;

typedef struct tc_run {
  const tc_text *text;
  const tc_def *def;
  tarn_ctx *cx;
  tarn_lang *L;
  const tarn_model_options *options;
  TARN_VEC(tc_var) var;
  TARN_VEC(tarn_io) in;
  TARN_VEC(tarn_origin) origin;
  const struct tc_stmt *stmt; /* that is imported now */
  struct tc_index *index;     /* of it, with ranges once they are found */
  uint32_t nindex;
} tc_run;
tc_var *tc_find(const tc_run *r, const char *name); /* NULL: no such name */

/* ---- tc_bind.c ---- */
/* Sizes from options->shape and the shapes of parameters; scalars from options->set and shape.
 * Raises for a size that stays unknown. Makes the INPUT terms. */
void tc_bind(tc_run *r);

/* ---- tc_range.c ---- */
typedef struct tc_index {
  const char *name;
  tc_at at;
  bool left;  /* stands on the left side */
  bool known; /* lo <= index < hi */
  bool given; /* by where */
  int64_t lo, hi;
} tc_index;
tc_index *tc_index_of(const tc_run *r, const char *name); /* NULL: none of this statement */
/* The indices of r->stmt: those of the left side in its order, then others as they occur. */
void tc_indices(tc_run *r);
/* And their ranges. Raises for what has no range, or reads out of bounds. */
void tc_ranges(tc_run *r);
/* A number made of sizes, extents and known scalars. Raises. */
int64_t tc_number(const tc_run *r, const tc_expr *e);

/* A subscript: floor((sum of coef × index + c) / by) and the like as a sum of atoms. */
typedef struct tc_atom {
  int64_t coef;
  tc_op op;       /* TC_ADD: an index; TC_DIV, TC_MOD: of a sum by a number */
  uint32_t index; /* number of it */
  const struct tc_sum *of;
  int64_t by;
  const tc_expr *from;
} tc_atom;
typedef struct tc_sum {
  bool data; /* depends on what is read: the rest says nothing */
  int64_t c;
  uint32_t n;
  tc_atom *atom;
} tc_sum;
tc_sum tc_subscript(const tc_run *r, const tc_expr *e);

/* ---- tc_value.c ---- */
/* What is computed over some indices of the statement: operands, views over these, and the
 * expression of them. */
typedef struct tc_body {
  uint32_t ns, n; /* indices: the first ns are access dims */
  uint32_t index[TARN_MAX_DIMS];
  int64_t dim[TARN_MAX_DIMS];
  TARN_VEC(tarn_term) operand;
  uint32_t fx; /* of type: */
  tarn_dtype type;
} tc_body;
bool tc_is_function(const char *name);
/* The value of e over all indices of the statement, those of the left side as access dims. */
tc_body tc_value(tc_run *r, const tc_expr *e);
void tc_cast(const tc_run *r, tc_body *b, tarn_dtype t);
/* The hole that stands for the term, which has no dims, or the dims of the body's indices. */
uint32_t tc_operand(const tc_run *r, tc_body *b, tarn_term t);

#endif
